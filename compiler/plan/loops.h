/* Counted loops around ops: where they run, and how far an access moves in memory. Reference: tiling.md. */
#ifndef SW_PLAN_LOOPS_H
#define SW_PLAN_LOOPS_H

#include "compiler/layout/layout.h"

/* Device elements that an access moves on with a turn of each level around its op. False when it has no form in the
 * layout, moves inside a stick, or does not go straight: an address in a bundle is a sum of products, nothing else.
 * Rows 0..255 of [1024,4096] in [64,1024,64], advance 256 * 4096: 256 * 64 elements. */
bool sw_access_advance(const struct sw_layout *l, const struct sw_op *op, const struct sw_access *x,
                       int64_t out[SW_MAX_LEVELS]);
/* The same for all operands of an op. NULL, or the first storage that does not go straight. */
const struct sw_storage *sw_op_strays(const struct sw_program *p, const struct sw_op *op);

bool sw_access_moves(const struct sw_op *op, const struct sw_access *x);

/* First and last step of each loop of the program, by number. */
struct sw_span {
  int first, last;
};
struct sw_span *sw_loop_spans(struct sw_arena *arena, const struct sw_program *p);

/* Loops that are around both ops. */
int sw_common_levels(const struct sw_op *a, const struct sw_op *b);
/* The op in front of which something runs that is in the `inside` outermost loops around `op` (number `index`) only. */
int sw_entrance(const struct sw_program *p, const struct sw_span *span, const struct sw_op *op, int inside, int index);
/* The host dim that a step in host memory leads along, -1: none. */
int sw_dim_of_step(const struct sw_storage *s, int64_t step);
/* Makes a dense tensor n times shorter along a host dim, its layout with it; false when the layout has no such part, as
 * when it would end inside a stick. [1024,4096] in [64,1024,64], 2 tiles of rows, 4 of columns: [512,1024] in
 * [16,512,64] / [64,1024,1]. */
bool sw_shorten(struct sw_arena *arena, struct sw_storage *s, int dim, int64_t n);

/* Operand k of an op, the output behind the inputs. */
static inline const struct sw_access *sw_access_of(const struct sw_op *op, int k)
{
  return k < op->n_in ? &op->in[k] : &op->out;
}

/* The host dim that an op's loop walks from end to end through this access, -1: none. */
int sw_walked_dim(const struct sw_storage *s, const struct sw_op *op, const struct sw_access *x, int loop);

/* Makes an op that does not move run in the first n loops around another one. */
void sw_enter_loops(struct sw_op *op, const struct sw_op *like, int n);

#endif
