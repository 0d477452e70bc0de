#include "compiler/layout/burst.h"

#include "compiler/layout/machine.h"

#include <math.h>

/* One load fetches 128 to 4096 bytes, and loads come at a fixed interval: short runs wait for requests, not for bytes.
 * Between the measured core counts the interval of the next lower one is used. */
static double transfer_ns(const struct sw_burst *b, double byte_time)
{
  const struct sw_machine *m = sw_machine_or_spyre(b->machine);
  double interval = m->interval[b->cores >= 32 ? 2 : b->cores >= 4 ? 1 : 0];
  double requests = b->bytes / fmin(fmax(b->run, 128), 4096);
  return byte_time + fmax(byte_time, requests * interval);
}

double sw_burst_extra_ns(const struct sw_burst *b, bool restickify, bool stays)
{
  const struct sw_machine *m = sw_machine_or_spyre(b->machine);
  double byte_time = b->bytes / (restickify ? m->restickify : m->hbm);
  double ns = transfer_ns(b, byte_time);
  if (restickify && !stays)
    ns = fmax(ns, b->bytes / (m->turn * b->cores)); /* the cores turn sticks at 40 GB/s each */
  return fmax(0, ns - 2 * byte_time);
}
