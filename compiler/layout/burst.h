/* Time of copies by the length of what they read in one piece. Pure numbers, for whoever weighs a conversion: the
 * layout choice (with an assumed split) and the plan (with the real one). Reference: cost-model.md 10.3. */
#ifndef SW_LAYOUT_BURST_H
#define SW_LAYOUT_BURST_H

#include <stdbool.h>

struct sw_burst {
  double bytes; /* payload, one way */
  double run;   /* contiguous source bytes that one core reads */
  int cores;
  const struct sw_machine *machine; /* NULL: the built-in one */
};

/* ns beyond reading and writing the payload at the plain rate of a copy (or of a change of stick, 116 GB/s). `stays` is
 * true when the result stays in the scratchpads. 2 MiB turned in runs of 128 bytes on 32 cores: 79520 - 36158. */
double sw_burst_extra_ns(const struct sw_burst *b, bool restickify, bool stays);

#endif
