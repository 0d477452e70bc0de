/* Automatic tiles between finding groups of ops (tile_groups.c), choosing a loop for one (tile_loop.c) and putting it into
 * the program (tile.c). Reference: tiling.md. */
#ifndef SW_PLAN_TILE_H
#define SW_PLAN_TILE_H

#include "base/map.h"
#include "compiler/plan/division.h"
#include "compiler/plan/loops.h"
#include "compiler/plan/parts.h"

typedef SW_VEC(int) sw_ints;

struct sw_tiled_storage {
  int writer;  /* op, or < 0: nobody, several */
  sw_ints ops; /* that touch it, in order of steps, each once */
  bool fixed;  /* seen from outside, by a host step, or without a layout */
  int group;   /* it lives inside that one, 0: none */
  int dim;     /* host dim of the tiles */
};

struct sw_tiled_op {
  int tick, group, loop; /* loop -1: not known yet */
  int part_kind;         /* of the part that may grow from it, -1: none */
  bool tiled;
};

struct sw_tiler {
  struct sw_job *job;
  const struct sw_options *o;
  struct sw_program *p;
  struct sw_arena *scratch;
  struct sw_tile_wish *wish;
  int64_t room; /* bytes from which on a buffer is large */
  struct sw_tiled_storage *storage;
  struct sw_tiled_op *op;
  struct sw_map kinds;  /* of groups */
  struct sw_map part_kinds;
  struct sw_job quiet;  /* takes the faults of attempts */
  struct sw_work *w;
  sw_ints group; /* ops of the group at hand, in order of steps */
  int number;
  struct sw_storage *shorter; /* by storage: what a tile has of it */
  int *storage_of;            /* by storage: that of the tile at hand */
  sw_ints *at_tick;           /* by tick: ops that run there instead */
  bool moved;                 /* any */
};

/* What the groups are made of; before all else. */
void sw_tile_look(struct sw_tiler *t);
/* Whether the buffer is so large that tiles of it are worth a look, and a tile can have its own. */
bool sw_tile_large(const struct sw_tiler *t, int storage);
bool sw_tile_free(const struct sw_tiler *t, int storage);
/* Makes the group around a buffer. False: it can't be done in turns. */
bool sw_tile_collect(struct sw_tiler *t, int storage);
void sw_tile_give_up(struct sw_tiler *t);

/* Whether a tile can repeat the op. */
bool sw_tile_plain(const struct sw_op *op);
/* Puts the members in order; false when they can't run together. */
bool sw_tile_settle(struct sw_tiler *t);
/* The op's loop along a dim of a storage of which the access walks all, -1: none. */
int sw_tile_loop_along(const struct sw_storage *s, const struct sw_op *op, const struct sw_access *x, int dim);
/* Bytes of memory traffic that tiles of the group save, that one more of them adds, and the most of what lives inside that one op
 * touches. */
int64_t sw_tile_saved_bytes(const struct sw_tiler *t);
int64_t sw_tile_repeated_bytes(const struct sw_tiler *t);
int64_t sw_tile_bytes_at_once(const struct sw_tiler *t);
/* Equal lists of ops over equal ranges have equal numbers. */
int sw_tile_kind_of(struct sw_tiler *t, struct sw_map *kinds, const int *ops, int n);

/* Parts of groups (tile_part.c): their kinds, before the first of them is made; and the part around an op that is wished. False:
 * there is none. */
void sw_tile_look_for_parts(struct sw_tiler *t);
bool sw_tile_part(struct sw_tiler *t, int seed, int64_t *n_tiles);

/* Gives every member its loop and every buffer inside its dim, as the wish says. False: none is worth it. */
bool sw_tile_choose_loop(struct sw_tiler *t, int64_t *n_tiles);

#endif
