/* Tiles (profile best): ops around buffers that are too large for the scratchpads are done tile by tile, so that what
 * lies between them fits.
 *
 * A group is a set of ops joined by such buffers (tile_groups.c). Its loop walks one dim of each of them (tile_loop.c). What
 * lives inside the group gets a buffer a part as large; what the group reads and writes outside is taken in slices.
 *
 * The tiles are the turns of a counted loop. Where what it takes from outside is not equally far apart in memory from
 * tile to tile, which is all that a loop can say, every tile gets ops of its own.
 *
 * Example: attention of 32 heads over 1024 positions has scores of 64 MiB, 2 MiB a core where 1.55 MiB fit. In 4 tiles
 * of 8 heads a score buffer takes 512 KiB a core, and none of its six trips to memory is left. */
#include "compiler/plan/tile.h"

#include "base/options.h"

#include <string.h>

enum { MAX_FAILURES = 1000 };

/* One op of one tile: inside accesses walk the smaller buffers, outside ones a slice. */
static struct sw_op op_of_tile(const struct sw_tiler *t, const struct sw_op *whole, int loop, int64_t tile, int64_t n)
{
  struct sw_op op = *whole;
  op.range[loop] /= n;
  for (int k = 0; k <= op.n_in; k++) {
    struct sw_access *x = k < op.n_in ? &op.in[k] : &op.out;
    const struct sw_storage *s = &t->p->storages.v[x->storage];
    if (t->storage[x->storage].group != t->number) {
      x->offset += x->step[loop] * op.range[loop] * tile;
      if (k == op.n_in)
        op.role = SW_ROLE_WRITE;
      continue;
    }
    const struct sw_storage *shorter = &t->shorter[x->storage];
    for (int l = 0; l < op.n_loops; l++)
      if (x->step[l])
        x->step[l] = shorter->stride[sw_walked_dim(s, whole, sw_access_of(whole, k), l)];
    x->storage = t->storage_of[x->storage];
  }
  return op;
}

/* The same op as the body of a loop: what it touches outside moves on. */
static struct sw_op op_of_loop(const struct sw_tiler *t, const struct sw_op *whole, int loop, int64_t n)
{
  struct sw_op op = op_of_tile(t, whole, loop, 0, n);
  struct sw_level *level = &op.level[op.n_levels++];
  *level = (struct sw_level){.loop = t->p->n_loops, .count = n, .cut = loop};
  for (int k = 0; k <= op.n_in; k++)
    if (t->storage[sw_access_of(whole, k)->storage].group != t->number) {
      struct sw_access *x = k < op.n_in ? &op.in[k] : &op.out;
      x->advance[op.n_levels - 1] = x->step[loop] * op.range[loop];
    }
  return op;
}

/* Whether every access of a tile has device coordinates. */
static bool has_coordinates(const struct sw_tiler *t, const struct sw_op *whole, const struct sw_op *op)
{
  for (int k = 0; k <= op->n_in; k++) {
    int s = sw_access_of(whole, k)->storage;
    const struct sw_layout *l = t->p->storages.v[s].layout;
    struct sw_coord coord[SW_MAX_DEVICE_RANK];
    if (t->storage[s].group == t->number)
      l = t->shorter[s].layout;
    if (l && !sw_layout_coords(l, op, sw_access_of(op, k), coord))
      return false;
  }
  return true;
}

static bool prepare(struct sw_tiler *t, int64_t n)
{
  for (int i = 0; i < t->group.n; i++) {
    int s = t->p->ops.v[t->group.v[i]].out.storage;
    if (t->storage[s].group != t->number)
      continue;
    t->shorter[s] = t->p->storages.v[s];
    t->storage_of[s] = s;
    if (!sw_shorten(t->job->arena, &t->shorter[s], t->storage[s].dim, n))
      return false;
  }
  for (int i = 0; i < t->group.n; i++) {
    const struct sw_op *whole = &t->p->ops.v[t->group.v[i]];
    for (int64_t tile = 0; tile < n; tile++) {
      struct sw_op op = op_of_tile(t, whole, t->op[t->group.v[i]].loop, tile, n);
      if (!has_coordinates(t, whole, &op))
        return false;
    }
  }
  return true;
}

/* The buffers of one tile more. */
static void add_buffers(struct sw_tiler *t, int tile)
{
  struct sw_arena *a = t->job->arena;
  for (int i = 0; i < t->group.n; i++) {
    int s = t->p->ops.v[t->group.v[i]].out.storage;
    if (t->storage[s].group != t->number)
      continue;
    struct sw_storage *more = SW_PUSH(a, &t->p->storages);
    *more = t->shorter[s];
    more->name = sw_arena_printf(a, "%s/tile%d", t->shorter[s].name, tile + 1);
    t->storage_of[s] = t->p->storages.n - 1;
  }
}

/* All ops run where the group ended. */
static sw_ints *run_together(struct sw_tiler *t)
{
  sw_ints *order = &t->at_tick[t->op[t->group.v[t->group.n - 1]].tick];
  t->moved = true;
  for (int i = 0; i < t->group.n; i++) {
    *SW_PUSH(t->scratch, order) = t->group.v[i];
    t->op[t->group.v[i]].tiled = true;
  }
  return order;
}

static void shorten_buffers(struct sw_tiler *t)
{
  for (int i = 0; i < t->group.n; i++) {
    int s = t->p->ops.v[t->group.v[i]].out.storage;
    if (t->storage[s].group == t->number)
      t->p->storages.v[s] = t->shorter[s];
  }
}

/* False when some access does not go straight. */
static bool commit_loop(struct sw_tiler *t, int64_t n)
{
  struct sw_op *body = SW_NEW_N(t->scratch, struct sw_op, t->group.n);
  for (int i = 0; i < t->group.n; i++) {
    const struct sw_op *whole = &t->p->ops.v[t->group.v[i]];
    int64_t advance[SW_MAX_LEVELS];
    if (whole->n_levels == SW_MAX_LEVELS)
      return false;
    body[i] = op_of_loop(t, whole, t->op[t->group.v[i]].loop, n);
    for (int k = 0; k <= whole->n_in; k++) {
      int s = sw_access_of(whole, k)->storage;
      const struct sw_layout *l = t->p->storages.v[s].layout;
      if (l && t->storage[s].group != t->number && !sw_access_advance(l, &body[i], sw_access_of(&body[i], k), advance))
        return false;
    }
  }
  run_together(t);
  for (int i = 0; i < t->group.n; i++)
    t->p->ops.v[t->group.v[i]] = body[i];
  shorten_buffers(t);
  t->p->n_loops++;
  return true;
}

/* Tile 0 takes the places of the group's ops and buffers, at last, since the others are made from them. */
static void commit_one_by_one(struct sw_tiler *t, int64_t n)
{
  struct sw_arena *a = t->job->arena;
  sw_ints *order = run_together(t);
  for (int tile = 1; tile < n; tile++) {
    add_buffers(t, tile);
    for (int i = 0; i < t->group.n; i++) {
      const struct sw_op *whole = &t->p->ops.v[t->group.v[i]];
      struct sw_op op = op_of_tile(t, whole, t->op[t->group.v[i]].loop, tile, n);
      op.name = sw_arena_printf(a, "%s/tile%d", whole->name, tile + 1);
      *SW_PUSH(a, &t->p->ops) = op;
      *SW_PUSH(t->scratch, order) = t->p->ops.n - 1;
    }
  }
  for (int i = 0; i < t->group.n; i++) {
    int s = t->p->ops.v[t->group.v[i]].out.storage;
    t->storage_of[s] = s;
  }
  for (int i = 0; i < t->group.n; i++) {
    struct sw_op *whole = &t->p->ops.v[t->group.v[i]];
    *whole = op_of_tile(t, whole, t->op[t->group.v[i]].loop, 0, n);
  }
  shorten_buffers(t);
}

/* Does the group at hand in n tiles, or gives it up; 0: there are none. */
static bool commit(struct sw_tiler *t, int64_t n)
{
  bool can = n && prepare(t, n);
  if (!can)
    sw_tile_give_up(t);
  else if (!commit_loop(t, n))
    commit_one_by_one(t, n);
  return can;
}

static void rebuild_steps(struct sw_tiler *t)
{
  SW_VEC(struct sw_step) steps = {0};
  for (int i = 0; i < t->p->steps.n; i++) {
    const struct sw_step *step = &t->p->steps.v[i];
    if (step->is_host || !t->op[step->index].tiled)
      *SW_PUSH(t->job->arena, &steps) = *step;
    for (int k = 0; k < t->at_tick[i].n; k++)
      *SW_PUSH(t->job->arena, &steps) = (struct sw_step){.is_host = false, .index = t->at_tick[i].v[k]};
  }
  memcpy(&t->p->steps, &steps, sizeof steps);
}

bool sw_tile(struct sw_job *job, const struct sw_options *o, struct sw_program *p, struct sw_tile_wish *wish)
{
  struct sw_tiler t = {.job = job, .o = o, .p = p, .scratch = sw_arena_new(job->arena, SIZE_MAX), .wish = wish};
  int n_storages = p->storages.n, failures = 0;
  t.room = (o->lx_bytes * o->cores) >> wish->halvings;
  t.quiet = (struct sw_job){.arena = t.scratch, .cancel = job->cancel};
  t.kinds.arena = t.part_kinds.arena = t.scratch;
  t.storage = SW_NEW_N(t.scratch, struct sw_tiled_storage, n_storages);
  t.op = SW_NEW_N(t.scratch, struct sw_tiled_op, p->ops.n);
  t.w = SW_NEW(t.scratch, struct sw_work);
  t.shorter = SW_NEW_N(t.scratch, struct sw_storage, n_storages);
  t.storage_of = SW_NEW_N(t.scratch, int, n_storages);
  t.at_tick = SW_NEW_N(t.scratch, sw_ints, p->steps.n);
  sw_tile_look(&t);
  for (int s = 0; s < n_storages && failures < MAX_FAILURES; s++) {
    int64_t n = 0;
    if (!sw_tile_large(&t, s) || !sw_tile_free(&t, s))
      continue;
    bool found = sw_tile_collect(&t, s) && sw_tile_choose_loop(&t, &n);
    failures += !commit(&t, found ? n : 0);
  }
  memset(wish->part_ns, 0, sizeof wish->part_ns);
  sw_tile_look_for_parts(&t);
  for (int i = 0; i < p->steps.n; i++) {
    int64_t n = 0;
    if (!p->steps.v[i].is_host && sw_tile_part(&t, p->steps.v[i].index, &n))
      commit(&t, n);
  }
  wish->n_kinds = (int)t.kinds.n < SW_MAX_TILE_KINDS ? (int)t.kinds.n : SW_MAX_TILE_KINDS;
  if (t.moved)
    rebuild_steps(&t);
  sw_arena_free(t.scratch);
  return t.moved;
}
