/* The loop of a group of ops: which dim its tiles cut, and in how many. The dim is walked by every buffer inside, reduced by
 * no op and in no stick. An operand without it is fetched again in every turn, so a loop is worth a look only if the traffic that
 * the tiles save is more than that. Which of these is best a prediction of the whole plan decides (choose_way.c); here they
 * are listed, those that repeat least first. */
#include "compiler/plan/tile.h"

#include "base/options.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_TILES = 32, MAX_COUNTS = 3 };

static int loop_of(const struct sw_storage *s, const struct sw_op *op, const struct sw_access *x, int dim)
{
  for (int l = 0; l < op->n_loops; l++)
    if (x->step[l] == s->stride[dim] && op->range[l] == s->size[dim])
      return l;
  return -1;
}

/* Whether an access walks all of a buffer, a dim a loop, so that it can walk a smaller one. */
static bool walks_all(const struct sw_storage *s, const struct sw_op *op, const struct sw_access *x)
{
  int walked = 0, dims = 0;
  for (int l = 0; l < op->n_loops; l++) {
    if (x->step[l] && sw_walked_dim(s, op, x, l) < 0)
      return false;
    walked += x->step[l] != 0;
  }
  for (int d = 0; d < s->rank; d++)
    dims += s->size[d] > 1;
  return !x->offset && walked == dims;
}

int sw_tile_loop_along(const struct sw_storage *s, const struct sw_op *op, const struct sw_access *x, int dim)
{
  return walks_all(s, op, x) ? loop_of(s, op, x, dim) : -1;
}

/* Gives every op of the group the loop, and every buffer inside the dim, that belong to this loop of the first op. */
static bool spread(struct sw_tiler *t, int loop)
{
  for (int i = 0; i < t->group.n; i++) {
    const struct sw_op *op = &t->p->ops.v[t->group.v[i]];
    t->op[t->group.v[i]].loop = -1;
    for (int k = 0; k <= op->n_in; k++)
      t->storage[sw_access_of(op, k)->storage].dim = -1;
  }
  sw_ints queue = {0};
  *SW_PUSH(t->scratch, &queue) = t->group.v[0];
  t->op[t->group.v[0]].loop = loop;
  for (int i = 0; i < queue.n; i++) {
    const struct sw_op *op = &t->p->ops.v[queue.v[i]];
    int l = t->op[queue.v[i]].loop;
    if (l >= op->n_written || sw_work_of(&t->quiet, t->o, t->p, op, t->w) != SW_OK || t->w->var[l].eps)
      return false;
    for (int k = 0; k <= op->n_in; k++) {
      const struct sw_access *x = sw_access_of(op, k);
      const struct sw_storage *s = &t->p->storages.v[x->storage];
      struct sw_tiled_storage *f = &t->storage[x->storage];
      if (f->group != t->number)
        continue;
      int dim = x->step[l] ? sw_walked_dim(s, op, x, l) : -1;
      if (dim < 0 || !walks_all(s, op, x) || (f->dim >= 0 && f->dim != dim))
        return false;
      f->dim = dim;
      for (int j = 0; j < f->ops.n; j++) {
        const struct sw_op *other = &t->p->ops.v[f->ops.v[j]];
        for (int m = 0; m <= other->n_in; m++) {
          if (sw_access_of(other, m)->storage != x->storage)
            continue;
          int *known = &t->op[f->ops.v[j]].loop, there = loop_of(s, other, sw_access_of(other, m), dim);
          if (there < 0 || (*known >= 0 && *known != there))
            return false;
          if (*known < 0)
            *SW_PUSH(t->scratch, &queue) = f->ops.v[j];
          *known = there;
        }
      }
    }
  }
  return queue.n == t->group.n;
}

/* Bytes of memory traffic that tiles save, and that they add. */
int64_t sw_tile_saved_bytes(const struct sw_tiler *t)
{
  int64_t sum = 0;
  for (int i = 0; i < t->group.n; i++) {
    int s = t->p->ops.v[t->group.v[i]].out.storage;
    if (t->storage[s].group == t->number && sw_tile_large(t, s))
      sum += sw_layout_bytes(t->p->storages.v[s].layout) * t->storage[s].ops.n;
  }
  return sum;
}

int64_t sw_tile_repeated_bytes(const struct sw_tiler *t)
{
  int64_t sum = 0;
  for (int i = 0; i < t->group.n; i++) {
    const struct sw_op *op = &t->p->ops.v[t->group.v[i]];
    for (int k = 0; k < op->n_in; k++) {
      const struct sw_layout *l = t->p->storages.v[op->in[k].storage].layout;
      if (l && !op->in[k].step[t->op[t->group.v[i]].loop])
        sum += sw_layout_bytes(l);
    }
  }
  return sum;
}

/* The most bytes of what lives inside that one op touches. */
int64_t sw_tile_bytes_at_once(const struct sw_tiler *t)
{
  int64_t most = 0;
  for (int i = 0; i < t->group.n; i++) {
    const struct sw_op *op = &t->p->ops.v[t->group.v[i]];
    int64_t bytes = 0;
    for (int k = 0; k <= op->n_in; k++)
      if (t->storage[sw_access_of(op, k)->storage].group == t->number)
        bytes += sw_layout_bytes(t->p->storages.v[sw_access_of(op, k)->storage].layout);
    most = bytes > most ? bytes : most;
  }
  return most;
}

struct option {
  int loop; /* of the first op */
  int64_t n_tiles, again; /* bytes fetched again */
};

static int by_bytes_again(const void *a, const void *b)
{
  const struct option *x = a, *y = b;
  if (x->again != y->again)
    return x->again < y->again ? -1 : 1;
  return x->loop != y->loop ? x->loop - y->loop : (int)(x->n_tiles - y->n_tiles);
}

/* For every loop the fewest tiles with which all that an op touches inside fits at once, and the next numbers that divide. */
static int list_options(struct sw_tiler *t, struct option *out)
{
  const struct sw_op *first = &t->p->ops.v[t->group.v[0]];
  int64_t saved = sw_tile_saved_bytes(t), most = sw_tile_bytes_at_once(t);
  int n_options = 0;
  for (int l = 0; l < first->n_written; l++) {
    if (!spread(t, l))
      continue;
    int64_t range = first->range[l], repeated = sw_tile_repeated_bytes(t);
    int listed = 0;
    for (int64_t n = 2; n <= MAX_TILES && range / n >= 2 && listed < MAX_COUNTS; n++) {
      if (range % n || most / n > t->o->lx_bytes * t->o->cores || repeated * (n - 1) >= saved)
        continue;
      out[n_options++] = (struct option){l, n, repeated * (n - 1)};
      listed++;
    }
  }
  qsort(out, (size_t)n_options, sizeof *out, by_bytes_again);
  return n_options;
}

/* Groups of equal ops over equal ranges are of one kind. */
int sw_tile_kind_of(struct sw_tiler *t, struct sw_map *kinds, const int *ops, int n)
{
  SW_VEC(int64_t) key = {0};
  for (int i = 0; i < n; i++) {
    const struct sw_op *op = &t->p->ops.v[ops[i]];
    *SW_PUSH(t->scratch, &key) = op->op;
    *SW_PUSH(t->scratch, &key) = op->n_loops;
    for (int l = 0; l < op->n_loops; l++)
      *SW_PUSH(t->scratch, &key) = op->range[l];
  }
  size_t bytes = sizeof *key.v * (size_t)key.n;
  int64_t kind = sw_map_get(kinds, key.v, bytes);
  if (kind < 0) {
    kind = (int64_t)kinds->n;
    sw_map_set(kinds, key.v, bytes, kind);
  }
  return (int)kind;
}

bool sw_tile_choose_loop(struct sw_tiler *t, int64_t *n_tiles)
{
  struct option options[SW_MAX_LOOPS * MAX_COUNTS];
  int n = list_options(t, options), which = 0;
  int kind = n ? sw_tile_kind_of(t, &t->kinds, t->group.v, t->group.n) : SW_MAX_TILE_KINDS;
  if (kind < SW_MAX_TILE_KINDS) {
    t->wish->n_options[kind] = n;
    which = t->wish->option[kind];
  }
  if (which < 0 || which >= n)
    return false;
  *n_tiles = options[which].n_tiles;
  return spread(t, options[which].loop);
}
