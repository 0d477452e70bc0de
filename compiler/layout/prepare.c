/* Profile best: two changes to the program that give layouts a chance, before any are looked at.
 *
 * Loops that are one walk. A piece of a concatenation may be written by two loops that run over one dim of the result,
 * rows 1 + 14a + b of 197; where every operand allows it they are made one loop, rows 1 + c, for a dim that is split
 * at 14 with an offset of 1 has no form.
 *
 * Writes into part of a stick. A user's tensor keeps its layout; where a write would have to touch some lanes of a
 * stick only, it goes through a copy: copy out, write, copy back. The copy may have any layout, and the two copies
 * move the stick on their way. Reference: layouts.md 4.12. */
#include "compiler/layout/choose.h"

static bool one_walk(const struct sw_access *x, int outer, int64_t inner_range)
{
  return x->step[outer] == x->step[outer + 1] * inner_range;
}

/* Whether some dim of the storage holds both loops. */
static bool in_one_dim(const struct sw_storage *s, const struct sw_access *x, int outer)
{
  for (int d = 0; d < s->rank; d++)
    if (s->size[d] > 1 && x->step[outer + 1] == s->stride[d])
      for (int e = 0; e < s->rank; e++)
        if (s->size[e] > 1 && s->stride[e] > s->stride[d] && s->stride[e] <= x->step[outer])
          return false;
  return x->step[outer + 1] != 0;
}

static void remove_loop(struct sw_access *x, int l, int n)
{
  for (; l + 1 < n; l++)
    x->step[l] = x->step[l + 1];
  x->step[n - 1] = 0;
}

static void merge_loops(struct sw_choosing *c, struct sw_op *op)
{
  if (op->role != SW_ROLE_WRITE || op->op != SW_OP_IDENTITY)
    return;
  for (int l = op->n_loops - 2; l >= 0; l--) {
    bool merge = one_walk(&op->out, l, op->range[l + 1]) &&
                 in_one_dim(&c->p->storages.v[op->out.storage], &op->out, l);
    for (int k = 0; k < op->n_in; k++)
      merge = merge && one_walk(&op->in[k], l, op->range[l + 1]);
    if (!merge)
      continue;
    op->range[l] *= op->range[l + 1];
    for (int m = l + 1; m + 1 < op->n_loops; m++)
      op->range[m] = op->range[m + 1];
    remove_loop(&op->out, l, op->n_loops);
    for (int k = 0; k < op->n_in; k++)
      remove_loop(&op->in[k], l, op->n_loops);
    op->n_loops--;
    op->n_written--;
  }
}

/* A write into a user's tensor that its layout does not take. */
static bool goes_through_copy(struct sw_choosing *c, const struct sw_op *op)
{
  const struct sw_storage *s = &c->p->storages.v[op->out.storage];
  struct sw_layout l;
  if (s->kind != SW_STORAGE_INPUT || s->host_only || op->out.index_input >= 0 ||
      sw_format_of(s->dtype) != SW_FORMAT_FP16 || s->rank > 6 ||
      !sw_layout__default(c, op->out.storage, SW_FORMAT_FP16, &l))
    return false;
  struct sw_seen seen = sw_layout__see(&l, op, &op->out, SW_OFFSET_EXACT);
  return seen.stick.class == SW_STICK_OFFSET || !sw_layout__writes_whole_sticks(s, op, &l, &seen);
}

static void write_through_copy(struct sw_choosing *c, int op_i)
{
  int target = c->p->ops.v[op_i].out.storage;
  struct sw_storage s = c->p->storages.v[target];
  const char *source = c->p->ops.v[op_i].source;
  int copy = sw_layout__add_storage(c, &s, sw_arena_printf(c->job->arena, "%s:copy", s.name));
  struct sw_op out = sw_layout__whole_copy(c, target, copy), back = sw_layout__whole_copy(c, copy, target);
  out.role = SW_ROLE_CLONE;
  back.role = SW_ROLE_WRITE;
  out.source = back.source = source;
  sw_layout__add_op(c, &out, sw_arena_printf(c->job->arena, "copy out %s", s.name));
  *SW_PUSH(c->job->arena, &c->steps) = (struct sw_step){false, op_i};
  sw_layout__add_op(c, &back, sw_arena_printf(c->job->arena, "copy back %s", s.name));
  struct sw_op *op = &c->p->ops.v[op_i];
  for (int k = 0; k < op->n_in; k++)
    if (op->in[k].storage == target)
      op->in[k].storage = copy;
  op->out.storage = copy;
}

void sw_layout__prepare(struct sw_choosing *c)
{
  for (int i = 0; i < c->p->steps.n; i++) {
    struct sw_step step = c->p->steps.v[i];
    if (!step.is_host)
      merge_loops(c, &c->p->ops.v[step.index]);
    if (!step.is_host && goes_through_copy(c, &c->p->ops.v[step.index]))
      write_through_copy(c, step.index);
    else
      *SW_PUSH(c->job->arena, &c->steps) = step;
  }
  sw_layout__take_steps(c);
}
