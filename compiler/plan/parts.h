/* The steps of sw_make_plan, in their order. */
#ifndef SW_PLAN_PARTS_H
#define SW_PLAN_PARTS_H

#include "compiler/plan/plan.h"

/* The op's plan while the pass still fills it in. */
static inline struct sw_op_plan *plan_of(const struct sw_program *p, int op)
{
  return (struct sw_op_plan *)p->ops.v[op].plan;
}

/* Option tile: ops that have a named dim run in a counted loop over tiles of it. */
enum sw_rc sw_tile_given(struct sw_job *job, const struct sw_options *o, struct sw_program *p);

/* Ops around buffers that are too large for the scratchpads become one op a tile (profile best). */
void sw_tile(struct sw_job *job, const struct sw_options *o, struct sw_program *p);

/* Ops that no division makes addressable become several ops, each for a piece of one loop. */
enum sw_rc sw_cut_pieces(struct sw_job *job, const struct sw_options *o, struct sw_program *p);

/* Core splits of every op; all faults are recorded, the worst is returned. */
enum sw_rc sw_divide_program(struct sw_job *job, const struct sw_options *o, struct sw_program *p);

/* Splits that let buffers stay in the scratchpads (profile best); wants splits and kernels. */
enum sw_rc sw_divide_together(struct sw_job *job, const struct sw_options *o, struct sw_program *p);

/* Kernels in launch order with their names; sets op.plan->kernel. */
void sw_cut_kernels(struct sw_job *job, const struct sw_options *o, const struct sw_program *p, struct sw_plan *plan);

/* Time of every op and of the whole; wants splits, kernels and places. */
void sw_predict(struct sw_job *job, const struct sw_options *o, const struct sw_program *p, struct sw_plan *plan);

#endif
