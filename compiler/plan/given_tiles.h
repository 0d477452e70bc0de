/* Tiles between finding them (given_tiles.c: those of the user, pieces.c) and putting them into the program
 * (apply_tiles.c).
 * Reference: tiling.md. */
#ifndef SW_PLAN_GIVEN_TILES_H
#define SW_PLAN_GIVEN_TILES_H

#include "compiler/plan/loops.h"
#include "compiler/plan/plan.h"

struct sw_given_level {
  const char *text; /* of the option */
  int64_t count;
};

/* The loops around one op: for each the number in the program, the level it belongs to, its turns, and the op's loop that
 * it cuts. */
struct sw_nest {
  int n;
  int loop[SW_MAX_LEVELS], level[SW_MAX_LEVELS], cut[SW_MAX_LEVELS];
  int64_t count[SW_MAX_LEVELS];
};

struct sw_tiling {
  struct sw_job *job;
  const struct sw_options *o;
  struct sw_program *p;
  struct sw_arena *scratch;
  int n_levels;
  struct sw_given_level level[SW_MAX_LEVELS];
  bool copies_operands;          /* profile torch-spyre, where the user asked for tiles */
  struct sw_nest *nest;          /* by op */
  SW_VEC(struct sw_step) steps;  /* in their new order */
};

static inline struct sw_access *sw_operand(struct sw_op *op, int k)
{
  return k < op->n_in ? &op->in[k] : &op->out;
}

/* Ops in tiles, buffers of one tile, accumulators. Sets the program's steps. */
enum sw_rc sw_apply_tiles(struct sw_tiling *t);

#endif
