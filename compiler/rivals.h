/* Profile best against what greedy, beam and profile torch-spyre choose: it keeps the fastest plan, or with objective
 * elements the one that converts least. */
#ifndef SW_RIVALS_H
#define SW_RIVALS_H

#include "compiler/pipeline.h"

/* A program with layouts and a plan. */
struct sw_planned {
  struct sw_program *program;
  struct sw_choice *choice;
  struct sw_plan *plan;
};

/* Replaces `p`, the planned layout optimum, by a rival that is better; plan.tried lists all that were planned. A rival that
 * fails is none, and leaves no fault. */
enum sw_rc sw_keep_best_rival(struct sw_job *job, const struct sw_options *o, const struct sw_compile_input *in,
                              const char *name_of_program, struct sw_graph *g, struct sw_planned *p);

#endif
