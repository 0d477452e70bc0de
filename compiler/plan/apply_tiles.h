/* What puts given tiles into the program: ops in loops and accumulators (apply_tiles.c), copies at the border of a loop
 * (tile_copies.c). Reference: tiling.md 2, 4. */
#ifndef SW_PLAN_APPLY_TILES_H
#define SW_PLAN_APPLY_TILES_H

#include "compiler/plan/given_tiles.h"

/* How a storage is touched within loops that are around all ops which touch it. */
struct sw_tile_local {
  bool seen, outside;
  int writer;               /* first op that touches it, if it writes */
  int n_writers;
  int n;                    /* loops whose turns find it new, from the outside in */
  int loop[SW_MAX_LEVELS], dim[SW_MAX_LEVELS];
  int64_t count[SW_MAX_LEVELS];
};

/* A copy of a tile that later ops of the same loops may read too. */
struct sw_tile_copy {
  int storage, copy, reader;
};

struct sw_applier {
  struct sw_tiling *t;
  struct sw_arena *arena;
  struct sw_tile_local *local; /* by storage, those that were there */
  const struct sw_op *old_op;           /* ops and storages before anything became shorter */
  const struct sw_storage *old_storage;
  const struct sw_op *whole;            /* and ops with shorter buffers, but not in tiles yet */
  int *tile_of;        /* by storage: the buffer of one tile that these loops have instead, -1 */
  int *tile_writer;    /* and the op that writes it */
  int *written_in;     /* by storage: outermost loop that writes it, the last one so far */
  int n_storages;
  int group;           /* outermost loop at hand, -1 */
  SW_VEC(struct sw_step) steps;
  int opened[SW_MAX_LEVELS];     /* by depth: number of the loop, and the place of its first step */
  int first_step[SW_MAX_LEVELS];
  int depth;
  SW_VEC(struct sw_tile_copy) copies;
};

/* The access of a shorter buffer instead of the whole one. */
void sw_tiles__walk_shorter(const struct sw_storage *whole, const struct sw_storage *shorter, const struct sw_op *op,
                            struct sw_access *x);
/* The op in the first `n` of its loops: ranges of a tile, accesses that move. `op` has the whole ranges; a buffer that
 * is as short as a tile does not move. */
struct sw_op sw_tiles__cut(const struct sw_applier *a, const struct sw_op *op, const struct sw_nest *nest, int n);
/* Loops whose tiles have one element are gone. */
void sw_tiles__drop_single_loops(struct sw_op *op);

/* New ones; their numbers. */
int sw_tiles__add_buffer(struct sw_applier *a, const struct sw_storage *like, const char *name);
int sw_tiles__push_op(struct sw_applier *a, const struct sw_op *op);
void sw_tiles__push_step(struct sw_applier *a, int index);
/* The tile of what operand k walks, on its own; false when it has no such part. */
bool sw_tiles__tile_of(const struct sw_applier *a, int index, int k, struct sw_storage *out);
/* An op on the whole of what another one writes, without its inputs and what was reduced. */
struct sw_op sw_tiles__like_result(const struct sw_op *op, const char *name);

/* Operands from outside the loops come as copies, results of other ops that leave the loops from their buffers. */
void sw_tiles__copy_operands(struct sw_applier *a, int index, struct sw_op *op);
/* A result that leaves the loops is made in a buffer of one tile and copied from there. False: it is written where it lies. */
bool sw_tiles__copy_result(struct sw_applier *a, int index, struct sw_op *op, struct sw_op *copy);

#endif
