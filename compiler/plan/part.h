/* Which part of a tensor each core touches, for any split that one thinks of. A buffer can stay in the scratchpads
 * between two ops only if both give the same part to the same core: nobody reads another core's scratchpad.
 * Reference: scratchpad.md 4.3. */
#ifndef SW_PLAN_PART_H
#define SW_PLAN_PART_H

#include "compiler/layout/machine.h"
#include "compiler/plan/division.h"

/* Core c touches slice (c / stride) % factor of each cut device dim, and all of the others. */
struct sw_cut {
  int dim;
  int64_t factor, stride;
};

struct sw_part {
  const char *broken; /* why the cores don't share the tensor out in boxes of equal size; NULL when they do */
  int cores, n;
  struct sw_cut cut[SW_MAX_DEVICE_RANK]; /* by ascending dim */
};

/* The parts of tensor t of w under a split, numbered as the cores are (work-division.md 15). */
void sw_part_of(const struct sw_work *w, const struct sw_work_tensor *t, const int64_t *split, struct sw_part *out);

/* Whether a copy within the scratchpads can hand part `from` of every core over to part `to`: every core sends to as many
 * others as any other, and gets from as many. */
bool sw_part_moves_evenly(const struct sw_part *from, const struct sw_part *to);
/* ns of such a copy: in 2 MiB on 8 cores with runs of 256 bytes, cut 4 ways next to the runs, 8780. */
double sw_part_move_ns(const struct sw_machine *m, const struct sw_layout *l, const struct sw_part *from,
                       const struct sw_part *to);

#endif
