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

/* Which buffers and groups of ops are worth tiles. Groups of equal ops are of one kind and done alike. */
enum { SW_MAX_TILE_KINDS = 8, SW_MAX_PART_KINDS = 16 };
struct sw_tile_wish {
  int halvings;                  /* buffers over this part of all scratchpads: 1/1, 1/2, 1/4.. */
  int option[SW_MAX_TILE_KINDS]; /* by kind: which of its loops, the one that repeats least first; -1: no tiles */
  /* what was found */
  int n_kinds, n_options[SW_MAX_TILE_KINDS];

  /* Parts of groups, by the kind of the op they grow from (tile_part.c): 0 none, else which option, from 1 on. */
  int part[SW_MAX_PART_KINDS];
  int n_part_kinds, n_part_options[SW_MAX_PART_KINDS];
  double part_ns[SW_MAX_PART_KINDS]; /* what all of that kind save at most, about */
};
/* Ops around large buffers run in a loop over tiles (profile best). Whether there are any. */
bool sw_tile(struct sw_job *job, const struct sw_options *o, struct sw_program *p, struct sw_tile_wish *wish);

/* Ops that no division makes addressable become several ops, each for a piece of one loop. */
enum sw_rc sw_cut_pieces(struct sw_job *job, const struct sw_options *o, struct sw_program *p);

/* Core splits of every op; all faults are recorded, the worst is returned. */
enum sw_rc sw_divide_program(struct sw_job *job, const struct sw_options *o, struct sw_program *p);

/* Splits that let buffers stay in the scratchpads (profile best); wants splits and kernels. Whether any op is cut otherwise
 * than before. */
enum sw_rc sw_divide_together(struct sw_job *job, const struct sw_options *o, struct sw_program *p, bool *changed);

/* Kernels in launch order with their names; sets op.plan->kernel. */
void sw_cut_kernels(struct sw_job *job, const struct sw_options *o, const struct sw_program *p, struct sw_plan *plan);

/* Whether the op writes a part of a tensor that is there before it: cat, stack, a padded operand. */
bool sw_is_destination(const struct sw_program *p, const struct sw_op *op);

/* One way to plan a program. */
struct sw_way {
  unsigned means; /* a set of 1 << enum sw_means */
  struct sw_tile_wish tiles;
};
/* Gives those of the means that made a difference. */
enum sw_rc sw_plan_so(struct sw_job *job, const struct sw_options *o, struct sw_program *p, struct sw_way *way,
                      struct sw_plan *plan, unsigned *made);
/* The way whose plan is the fastest; sets without_ns. */
struct sw_way sw_choose_way(struct sw_job *job, const struct sw_options *o, const struct sw_program *p,
                            struct sw_plan *plan);

/* Time of every op and of the whole; wants splits, kernels and places. */
void sw_predict(struct sw_job *job, const struct sw_options *o, const struct sw_program *p, struct sw_plan *plan);

#endif
