/* Tiles for a part of what belongs together: the group ends where an op can't follow (profile best).
 *
 * A group of tile_groups.c is all ops joined by large buffers, or nothing. Here it grows from one op and one of its loops. A
 * large buffer behind it or in front of it comes inside if every op that touches it walks the same dim and does not reduce
 * it; else it stays in memory, where the tiles write and read slices of it. The loop may walk sticks, in whole ones.
 *
 * Two things are saved: the trips of what comes inside, and what a matmul fetches again because a core's part of the
 * result is too large to be kept (cost.c); a tile of the result has a smaller part. Operands without the dim are fetched in every turn.
 *
 * Example: the gate of an MLP, 1024 rows, 4096 to 14336: silu(x g) * (x u), then a matmul that reduces the 14336. In 7 tiles of
 * 2048 columns each core has 65,536 elements of a product, which it can keep: 1.06 ms less for each of the two, 0.39 ms
 * less for silu's result, which stays on the cores, and 0.67 ms more for x. The product of both is written slice by slice. */
#include "compiler/plan/tile.h"

#include "base/options.h"
#include "compiler/layout/machine.h"

#include <math.h>

enum { MAX_PART = 64, MAX_TILES = 32, MAX_COUNTS = 3, NO_LOOP = -1 };

/* The loop with which an op walks all of a storage along a dim, through every access to it. */
static int loop_along(struct sw_tiler *t, int index, int storage, int dim)
{
  const struct sw_op *op = &t->p->ops.v[index];
  const struct sw_storage *s = &t->p->storages.v[storage];
  int loop = NO_LOOP;
  for (int k = 0; k <= op->n_in; k++) {
    const struct sw_access *x = sw_access_of(op, k);
    if (x->storage != storage)
      continue;
    int l = sw_tile_loop_along(s, op, x, dim);
    if (l < 0 || l >= op->n_written || (loop >= 0 && l != loop))
      return NO_LOOP;
    loop = l;
  }
  return loop;
}

/* Whether all ops that touch it walk it along the dim, those that are members already with the loop they have. */
static bool can_come_inside(struct sw_tiler *t, int storage, int dim)
{
  const struct sw_tiled_storage *s = &t->storage[storage];
  if (dim < 0 || !sw_tile_free(t, storage))
    return false;
  for (int i = 0; i < s->ops.n; i++) {
    const struct sw_tiled_op *op = &t->op[s->ops.v[i]];
    int loop = loop_along(t, s->ops.v[i], storage, dim);
    if (loop < 0 || op->tiled || (op->group && (op->group != t->number || op->loop != loop)))
      return false;
  }
  return true;
}

static void add_member(struct sw_tiler *t, int index, int loop)
{
  t->op[index].group = t->number;
  t->op[index].loop = loop;
  *SW_PUSH(t->scratch, &t->group) = index;
}

static void bring_inside(struct sw_tiler *t, int storage, int dim)
{
  struct sw_tiled_storage *s = &t->storage[storage];
  for (int i = 0; i < s->ops.n; i++)
    if (t->op[s->ops.v[i]].group != t->number)
      add_member(t, s->ops.v[i], loop_along(t, s->ops.v[i], storage, dim));
  s->group = t->number;
  s->dim = dim;
}

static bool all_are_members(const struct sw_tiler *t, int storage)
{
  for (int i = 0; i < t->storage[storage].ops.n; i++)
    if (t->op[t->storage[storage].ops.v[i]].group != t->number)
      return false;
  return true;
}

/* Large buffers bring in the ops that touch them; smaller ones only come inside where all of these are members. */
static bool grow(struct sw_tiler *t, int seed, int loop)
{
  t->group.n = 0;
  t->number++;
  add_member(t, seed, loop);
  for (int large = 1; large >= 0; large--)
    for (int i = 0; i < t->group.n && t->group.n <= MAX_PART; i++) {
      const struct sw_op *op = &t->p->ops.v[t->group.v[i]];
      for (int k = 0; k <= op->n_in; k++) {
        const struct sw_access *x = sw_access_of(op, k);
        int l = t->op[t->group.v[i]].loop, dim = x->step[l] ? sw_walked_dim(&t->p->storages.v[x->storage], op, x, l) : -1;
        bool joins = large ? sw_tile_large(t, x->storage) : all_are_members(t, x->storage);
        if (joins && t->storage[x->storage].group != t->number && can_come_inside(t, x->storage, dim))
          bring_inside(t, x->storage, dim);
      }
    }
  return t->group.n <= MAX_PART && sw_tile_settle(t);
}

/* What the length of a tile has to be a multiple of: the longest stick that the loop walks in a member, 0: no tiles. */
static int64_t unit_of(struct sw_tiler *t)
{
  int64_t unit = 1;
  for (int i = 0; i < t->group.n; i++) {
    const struct sw_op *op = &t->p->ops.v[t->group.v[i]];
    if (sw_work_of(&t->quiet, t->o, t->p, op, t->w) != SW_OK || t->w->window)
      return 0;
    int64_t eps = t->w->var[t->op[t->group.v[i]].loop].eps;
    unit = eps > unit ? eps : unit;
  }
  return unit;
}

/* Bytes that the matmuls of the group fetch again when done in n tiles. */
static double spilled_bytes(const struct sw_tiler *t, int64_t n)
{
  const struct sw_machine *m = sw_machine_or_spyre(t->p->machine);
  double sum = 0;
  for (int i = 0; i < t->group.n; i++) {
    const struct sw_op *op = &t->p->ops.v[t->group.v[i]];
    int l = t->op[t->group.v[i]].loop;
    if (op->op != SW_OP_MATMUL)
      continue;
    double part = 1.0 / (double)(t->o->cores * n), bytes = 0;
    for (int v = 0; v < op->n_written; v++)
      part *= (double)op->range[v];
    for (int k = 0; k < op->n_in; k++)
      bytes += (double)sw_layout_bytes(t->p->storages.v[op->in[k].storage].layout) * (op->in[k].step[l] ? 1 : (double)n);
    sum += bytes * fmin(m->spill_most, m->spill_slope * log2(fmax(1, part / m->spill_area)));
  }
  return sum;
}

struct option {
  int loop;
  int64_t n_tiles;
  double saved; /* bytes, about */
};

/* For every loop of the seed the counts that save most. */
static int list_options(struct sw_tiler *t, int seed, struct option *out)
{
  const struct sw_op *op = &t->p->ops.v[seed];
  int n_options = 0;
  for (int l = 0; l < op->n_written; l++) {
    if (grow(t, seed, l)) {
      double inside = (double)sw_tile_saved_bytes(t), again = (double)sw_tile_repeated_bytes(t), spilled = spilled_bytes(t, 1);
      int64_t most = sw_tile_bytes_at_once(t), unit = unit_of(t), listed = 0;
      for (int64_t n = 2; unit && n <= MAX_TILES && op->range[l] / n >= 2; n++) {
        if (op->range[l] % (n * unit) || most / n > t->o->lx_bytes * t->o->cores)
          continue;
        struct option x = {l, n, inside + spilled - spilled_bytes(t, n) - again * (double)(n - 1)};
        int at = n_options;
        if (x.saved <= 0 || (listed == MAX_COUNTS && x.saved <= out[n_options - 1].saved))
          continue;
        at -= listed == MAX_COUNTS;
        listed += listed < MAX_COUNTS;
        n_options = at + 1;
        int first = n_options - (int)listed;
        for (; at > first && out[at - 1].saved < x.saved; at--)
          out[at] = out[at - 1];
        out[at] = x;
      }
    }
    sw_tile_give_up(t);
  }
  for (int i = 1; i < n_options; i++) { /* the most first */
    struct option x = out[i];
    int at = i;
    for (; at && out[at - 1].saved < x.saved; at--)
      out[at] = out[at - 1];
    out[at] = x;
  }
  return n_options;
}

/* Ops from which a part may grow: what writes a large buffer, and a matmul that fetches operands again. */
void sw_tile_look_for_parts(struct sw_tiler *t)
{
  const struct sw_machine *m = sw_machine_or_spyre(t->p->machine);
  t->room = t->o->lx_bytes * t->o->cores / 2;
  for (int i = 0; i < t->p->steps.n; i++) {
    int index = t->p->steps.v[i].index;
    const struct sw_op *op = &t->p->ops.v[index];
    if (t->p->steps.v[i].is_host || t->op[index].tiled || !sw_tile_plain(op))
      continue;
    double results = 1;
    for (int l = 0; l < op->n_written; l++)
      results *= (double)op->range[l];
    if (!(op->op == SW_OP_MATMUL && results > m->spill_area * (double)t->o->cores) &&
        !(sw_tile_large(t, op->out.storage) && sw_tile_free(t, op->out.storage)))
      continue;
    sw_ints key = {0};
    const struct sw_tiled_storage *out = &t->storage[op->out.storage];
    *SW_PUSH(t->scratch, &key) = index;
    for (int k = 0; k < out->ops.n; k++)
      *SW_PUSH(t->scratch, &key) = out->ops.v[k];
    int kind = sw_tile_kind_of(t, &t->part_kinds, key.v, key.n);
    t->op[index].part_kind = kind < SW_MAX_PART_KINDS ? kind : -1;
  }
  t->wish->n_part_kinds = t->part_kinds.n < SW_MAX_PART_KINDS ? (int)t->part_kinds.n : SW_MAX_PART_KINDS;
}

bool sw_tile_part(struct sw_tiler *t, int seed, int64_t *n_tiles)
{
  struct option options[SW_MAX_LOOPS * MAX_COUNTS];
  int kind = t->op[seed].part_kind;
  if (kind < 0 || t->op[seed].tiled)
    return false;
  t->group.n = 0;
  int n = list_options(t, seed, options), which = t->wish->part[kind] - 1;
  t->wish->n_part_options[kind] = n;
  t->wish->part_ns[kind] += n ? options[0].saved / sw_machine_or_spyre(t->p->machine)->hbm : 0;
  t->group.n = 0;
  if (which < 0 || which >= n || !grow(t, seed, options[which].loop))
    return false;
  *n_tiles = options[which].n_tiles;
  return true;
}
