/* Who touches a storage, and when. Reference: scratchpad.md section 3.
 *
 * A tick is a place in program.steps. Scratchpads and pools live inside one kernel: a storage that is touched by two
 * kernels, by a host step or from outside the program lives in HBM. */
#ifndef SW_PLAN_LIVENESS_H
#define SW_PLAN_LIVENESS_H

#include "compiler/plan/plan.h"

struct sw_touch {
  int tick, op;
  int operand; /* number of the input, or -1: the output */
};

struct sw_life {
  struct sw_touch *touch; /* in order of ticks; of one op its reads before its write */
  int n;
  int n_writes, n_reads;  /* touches of each kind */
  int first, last;        /* ticks */
  bool carried;           /* by a loop, from its first tick to its last */
  int64_t turns;          /* how often ops touch it, loops counted: each op once a turn */
  int kernel;             /* the only one that touches it; -1: none or several */
  bool by_host;           /* a host step reads or writes it */
  bool outside;           /* input, parameter, buffer, constant, or named by an output of the program */
};

/* One life per storage. */
struct sw_life *sw_lives_make(struct sw_arena *arena, const struct sw_program *p);

#endif
