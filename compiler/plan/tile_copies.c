/* Copies at the border of a loop, as the reference makes them (profile torch-spyre): what comes from outside a loop is copied
 * into a buffer of one tile first, in every loop, and what leaves it is copied out of one at its end. Reference: tiling.md 4. */
#include "compiler/plan/apply_tiles.h"

#include <string.h>

static bool same_read(const struct sw_op *a, const struct sw_access *x, const struct sw_op *b, const struct sw_access *y)
{
  return a->n_loops == b->n_loops && !memcmp(a->range, b->range, sizeof *a->range * (size_t)a->n_loops) &&
         !memcmp(x->step, y->step, sizeof *x->step * (size_t)a->n_loops) && x->offset == y->offset;
}

/* Whether an access leaves nothing out: the rows of zeros behind a matmul's K are read too, though no loop says so. */
static bool walks_whole(const struct sw_storage *s, const struct sw_op *op, const struct sw_access *x)
{
  int64_t n = 1;
  for (int l = 0; l < op->n_loops; l++)
    n *= x->step[l] ? op->range[l] : 1;
  return n == sw_storage_elements(s);
}

/* The copy has a dim for every loop of its reader, also for those that the operand does not depend on: a matrix unit's
 * operand of 128 x 256 is copied 128 times over. One with a value a stick can't have such a dim. */
static int copy_for_reading(struct sw_applier *a, int index, int k)
{
  struct sw_program *p = a->t->p;
  const struct sw_op *whole = &a->whole[index];
  const struct sw_nest *nest = &a->t->nest[index];
  const struct sw_access *x = &whole->in[k];
  struct sw_storage shape;
  const struct sw_op *old = &a->old_op[index];
  if (!walks_whole(&a->old_storage[x->storage], old, &old->in[k]) || !sw_tiles__tile_of(a, index, k, &shape))
    return -1;
  struct sw_op copy = {.op = SW_OP_IDENTITY, .n_loops = whole->n_loops, .n_written = whole->n_loops, .n_in = 1};
  copy.source = whole->source;
  copy.nodes.v = whole->nodes.v;
  copy.nodes.n = copy.nodes.cap = whole->nodes.n;
  memcpy(copy.range, whole->range, sizeof copy.range);
  copy.in[0] = copy.out = *x;
  copy = sw_tiles__cut(a, &copy, nest, nest->n);
  copy.out = *x;
  sw_tiles__walk_shorter(&p->storages.v[x->storage], &shape, whole, &copy.out);
  struct sw_layout *l = SW_NEW(a->arena, struct sw_layout);
  *l = *shape.layout;
  shape.rank = copy.n_loops;
  bool repeats = l->stride_map[l->rank - 1] > 0;
  for (int d = 0; d < copy.n_loops; d++) {
    if (!copy.out.step[d] && (!repeats || l->rank == SW_MAX_DEVICE_RANK))
      copy.range[d] = 1;
    shape.size[d] = copy.range[d];
    shape.stride[d] = copy.out.step[d];
    if (shape.stride[d] || copy.range[d] == 1)
      continue;
    memmove(l->device_size + 1, l->device_size, sizeof *l->device_size * (size_t)l->rank);
    memmove(l->stride_map + 1, l->stride_map, sizeof *l->stride_map * (size_t)l->rank);
    l->device_size[0] = shape.size[d];
    l->stride_map[0] = 0;
    l->rank++;
  }
  shape.layout = l;
  copy.name = sw_arena_printf(a->arena, "coarse_tile_read_copy_%s_%s_%d", whole->name, p->storages.v[x->storage].name, k);
  copy.out.storage = sw_tiles__add_buffer(a, &shape, copy.name);
  sw_tiles__drop_single_loops(&copy);
  sw_tiles__push_step(a, sw_tiles__push_op(a, &copy));
  *SW_PUSH(a->t->scratch, &a->copies) = (struct sw_tile_copy){x->storage, copy.out.storage, index};
  return copy.out.storage;
}

static bool same_nest(const struct sw_nest *a, const struct sw_nest *b)
{
  return a->n == b->n && !memcmp(a->loop, b->loop, sizeof *a->loop * (size_t)a->n);
}

/* A copy made for an earlier reader in the same loops. */
static int copy_read_alike(const struct sw_applier *a, int index, int k)
{
  const struct sw_op *op = &a->whole[index];
  for (int i = 0; i < a->copies.n; i++) {
    const struct sw_tile_copy *c = &a->copies.v[i];
    const struct sw_op *other = &a->whole[c->reader];
    for (int j = 0; j < other->n_in; j++)
      if (c->storage == op->in[k].storage && other->in[j].storage == c->storage &&
          same_nest(&a->t->nest[c->reader], &a->t->nest[index]) && same_read(other, &other->in[j], op, &op->in[k]))
        return c->copy;
  }
  return -1;
}

void sw_tiles__copy_operands(struct sw_applier *a, int index, struct sw_op *op)
{
  const struct sw_op *whole = &a->whole[index];
  const struct sw_nest *nest = &a->t->nest[index];
  for (int k = 0; k < op->n_in; k++) {
    int s = whole->in[k].storage;
    bool gathers = whole->in[k].index_input >= 0;
    if (a->t->p->storages.v[s].kind == SW_STORAGE_SCALAR || a->local[s].n || gathers)
      continue;
    if (a->tile_of[s] >= 0 && same_nest(&a->t->nest[a->tile_writer[s]], nest)) {
      op->in[k] = whole->in[k];
      sw_tiles__walk_shorter(&a->t->p->storages.v[s], &a->t->p->storages.v[a->tile_of[s]], whole, &op->in[k]);
      op->in[k].storage = a->tile_of[s];
      continue;
    }
    if (a->written_in[s] == nest->loop[0])
      continue;
    int copy = copy_read_alike(a, index, k);
    if (copy < 0)
      copy = copy_for_reading(a, index, k);
    if (copy < 0)
      continue;
    op->in[k] = whole->in[k];
    op->in[k].storage = copy;
    for (int l = 0; l < whole->n_loops; l++)
      op->in[k].step[l] = whole->in[k].step[l] ? a->t->p->storages.v[copy].stride[l] : 0;
  }
}

/* A result that leaves the loops is made in a buffer of one tile and copied from there; one that other ops write too is
 * not all in that buffer. */
bool sw_tiles__copy_result(struct sw_applier *a, int index, struct sw_op *op, struct sw_op *copy)
{
  struct sw_program *p = a->t->p;
  const struct sw_op *whole = &a->whole[index];
  const struct sw_nest *nest = &a->t->nest[index];
  int s = op->out.storage;
  struct sw_storage tile;
  if (a->local[s].n == nest->n || a->local[s].n_writers > 1 || whole->role == SW_ROLE_WRITE || !sw_tiles__tile_of(a, index, op->n_in, &tile))
    return false;
  const struct sw_storage all = p->storages.v[s];
  *copy = sw_tiles__like_result(whole, sw_arena_printf(a->arena, "coarse_tile_copy_%s", all.name));
  copy->op = SW_OP_IDENTITY;
  copy->role = SW_ROLE_WRITE;
  copy->n_in = 1;
  copy->in[0] = copy->out;
  *copy = sw_tiles__cut(a, copy, nest, nest->n);
  op->out = whole->out;
  sw_tiles__walk_shorter(&all, &tile, whole, &op->out);
  op->out.storage = sw_tiles__add_buffer(a, &tile, sw_arena_printf(a->arena, "%s:tile", all.name));
  copy->in[0] = op->out;
  a->tile_of[s] = op->out.storage;
  a->tile_writer[s] = index;
  return true;
}
