/* Profile best plans the layout optimum, and what greedy, beam and profile torch-spyre choose, and keeps the fastest. */
#ifndef SW_FASTEST_H
#define SW_FASTEST_H

#include "compiler/pipeline.h"

/* A program with layouts and a plan. */
struct sw_planned {
  struct sw_program *program;
  struct sw_choice *choice;
  struct sw_plan *plan;
};

/* Replaces `p`, the planned layout optimum, by a rival whose predicted time is less; plan.tried lists them all. A rival
 * that fails is none, and leaves no fault. */
enum sw_rc sw_keep_fastest(struct sw_job *job, const struct sw_options *o, const struct sw_compile_input *in,
                           const char *name_of_program, struct sw_graph *g, struct sw_planned *p);

#endif
