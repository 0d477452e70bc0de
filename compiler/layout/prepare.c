/* Profile best: three changes to the program that give layouts a chance, before any are looked at.
 *
 * Loops that are one walk. A piece of a concatenation may be written by two loops that run over one dim of the result,
 * rows 1 + 14a + b of 197; where the operand allows it they are made one loop, rows 1 + c, for a dim that is cut at 14
 * with an offset of 1 has no form. Where it is the operand's dims that would cut it, the operand is copied into the
 * shape of the piece first.
 *
 * Writes into part of a stick. A user's tensor keeps its layout; where a write would have to touch some lanes of a
 * stick only, it goes through a copy: copy out, write, copy back. The copy may have any layout, and the two copies
 * move the stick on their way. Reference: layouts.md 4.12.
 *
 * Searches along a row that is not a whole number of sticks. Lanes behind the last element would be found, so they are
 * made -inf first: where(mask, x, -inf), with a mask that the loader fills up with zeros. */
#include "compiler/layout/choose.h"

#include <math.h>

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

static void merge_at(struct sw_op *op, int l)
{
  op->range[l] *= op->range[l + 1];
  for (int m = l + 1; m + 1 < op->n_loops; m++)
    op->range[m] = op->range[m + 1];
  remove_loop(&op->out, l, op->n_loops);
  remove_loop(&op->in[0], l, op->n_loops);
  op->n_loops--;
  op->n_written--;
}

/* Steps of the innermost host dim that ends inside the loop, or its whole range. */
static int64_t inner_part(const struct sw_storage *s, int64_t step, int64_t range)
{
  int64_t part = range;
  for (int d = 0; d < s->rank; d++)
    if (s->size[d] > 1 && step > 0 && s->stride[d] > step && s->stride[d] % step == 0 && s->stride[d] / step < part)
      part = s->stride[d] / step;
  return range % part ? range : part;
}

/* Whether the operand's dims cut a loop of the write where the dim that is written can't be cut. */
static bool cuts_written_dim(const struct sw_storage *from, const struct sw_storage *to, const struct sw_op *op)
{
  struct sw_coord host[SW_MAX_RANK];
  if (!sw_layout__host_coords(to, op, &op->out, SW_OFFSET_EXACT, host))
    return false;
  for (int l = 0; l < op->n_loops; l++) {
    int64_t part = inner_part(from, op->in[0].step[l], op->range[l]);
    for (int d = 0; d < to->rank && part < op->range[l]; d++)
      if (op->out.step[l] == to->stride[d] && to->size[d] > 1 && (host[d].constant % part || to->size[d] % part))
        return true;
  }
  return false;
}

/* A copy of the operand in the shape of the write comes first; its loops are cut where the operand's dims end. */
static void copy_operand(struct sw_choosing *c, int op_i)
{
  struct sw_op *op = &c->p->ops.v[op_i];
  struct sw_storage s = c->p->storages.v[op->in[0].storage], shape = {.dtype = s.dtype, .rank = op->n_loops};
  struct sw_op copy = {.op = SW_OP_IDENTITY, .role = SW_ROLE_CLONE, .n_in = 1, .in = {op->in[0]}, .source = op->source};
  struct sw_access reads = {.index_input = -1};
  int64_t total = 1;
  for (int d = op->n_loops - 1; d >= 0; d--) {
    shape.size[d] = op->range[d];
    shape.stride[d] = reads.step[d] = total;
    total *= op->range[d];
  }
  copy.out = (struct sw_access){.index_input = -1};
  for (int l = op->n_loops - 1; l >= 0; l--)
    for (int64_t left = op->range[l], step = op->in[0].step[l], at = shape.stride[l]; left > 1;) {
      int64_t part = inner_part(&s, step, left);
      if (copy.n_loops == SW_MAX_LOOPS)
        return; /* what writes the kernel says so */
      for (int k = copy.n_loops++; k > 0; k--) {
        copy.range[k] = copy.range[k - 1];
        copy.in[0].step[k] = copy.in[0].step[k - 1];
        copy.out.step[k] = copy.out.step[k - 1];
      }
      copy.range[0] = part;
      copy.in[0].step[0] = step;
      copy.out.step[0] = at;
      left /= part;
      step *= part;
      at *= part;
    }
  copy.n_written = copy.n_loops;
  for (int k = copy.n_loops; k < SW_MAX_LOOPS; k++)
    copy.in[0].step[k] = 0;
  const char *name = sw_arena_printf(c->job->arena, "%s:piece", s.name);
  copy.out.storage = reads.storage = sw_layout__add_storage(c, &shape, name);
  sw_layout__add_op(c, &copy, sw_arena_printf(c->job->arena, "piece %s", s.name));
  c->p->ops.v[op_i].in[0] = reads;
}

static void prepare_write(struct sw_choosing *c, int op_i)
{
  struct sw_op *op = &c->p->ops.v[op_i];
  if (op->role != SW_ROLE_WRITE || op->op != SW_OP_IDENTITY || op->n_in != 1)
    return;
  const struct sw_storage *from = &c->p->storages.v[op->in[0].storage], *to = &c->p->storages.v[op->out.storage];
  for (int l = op->n_loops - 2; l >= 0; l--)
    if (one_walk(&op->out, l, op->range[l + 1]) && one_walk(&op->in[0], l, op->range[l + 1]) &&
        in_one_dim(to, &op->out, l))
      merge_at(op, l);
  if (from->kind != SW_STORAGE_SCALAR && cuts_written_dim(from, to, op))
    copy_operand(c, op_i);
}

/* A write into a user's tensor that its layout does not take. */
static bool goes_through_copy(struct sw_choosing *c, const struct sw_op *op)
{
  const struct sw_storage *s = &c->p->storages.v[op->out.storage];
  struct sw_layout l;
  if (s->kind != SW_STORAGE_INPUT || s->host_only || (op->out.index_input >= 0 && !c->best) ||
      sw_format_of(s->dtype) != SW_FORMAT_FP16 || s->rank > 6 ||
      !sw_layout__default(c, op->out.storage, SW_FORMAT_FP16, &l))
    return false;
  struct sw_seen seen = sw_layout__see(&l, op, &op->out, SW_OFFSET_EXACT);
  if (op->out.index_input >= 0)
    return seen.formed && !seen.coord[0].index; /* its rows must be outermost (4.13) */
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

static int mask_of(struct sw_choosing *c, int64_t n)
{
  struct sw_storage like = {.dtype = SW_BOOL, .rank = 1, .size = {n}, .stride = {1}};
  unsigned char *ones = SW_NEW_N(c->job->arena, unsigned char, n);
  for (int64_t i = 0; i < n; i++)
    ones[i] = 1;
  int at = sw_layout__add_storage(c, &like, "ends");
  struct sw_storage *s = &c->p->storages.v[at];
  s->kind = SW_STORAGE_CONSTANT;
  s->data = ones;
  s->n_bytes = (size_t)n;
  s->has_pad_fill = true;
  s->pad_fill = 0;
  return at;
}

/* Fills the ends of the rows that a search runs along. */
static void fill_ends(struct sw_choosing *c, int op_i)
{
  const struct sw_op *op = &c->p->ops.v[op_i];
  struct sw_storage s = c->p->storages.v[op->in[0].storage], shape = {.dtype = s.dtype};
  int along = -1;
  if (op->op != SW_OP_TOPKVALUE && op->op != SW_OP_TOPKINDEX)
    return;
  for (int l = op->n_written; l < op->n_loops; l++)
    along = op->in[0].step[l] ? l : along;
  if (along < 0 || op->range[along] % 64 == 0)
    return;
  struct sw_op fill = {.op = SW_OP_WHERE, .n_in = 3, .source = op->source};
  struct sw_access reads = {.index_input = -1};
  fill.in[0] = fill.in[2] = fill.out = reads;
  fill.in[1] = op->in[0];
  int64_t total = 1;
  for (int l = op->n_loops - 1; l >= 0; l--)
    if (op->in[0].step[l]) {
      reads.step[l] = total;
      total *= op->range[l];
    }
  for (int l = 0; l < op->n_loops; l++) {
    if (!op->in[0].step[l])
      continue;
    int d = fill.n_loops++;
    fill.range[d] = shape.size[d] = op->range[l];
    shape.stride[d] = fill.out.step[d] = reads.step[l];
    fill.in[1].step[d] = op->in[0].step[l];
    fill.in[0].step[d] = l == along;
  }
  for (int d = fill.n_loops; d < SW_MAX_LOOPS; d++)
    fill.in[1].step[d] = 0;
  shape.rank = fill.n_written = fill.n_loops;
  fill.in[0].storage = mask_of(c, op->range[along]);
  fill.in[2].storage = sw_layout__number(c, -INFINITY, s.dtype);
  fill.out.storage = reads.storage = sw_layout__add_storage(c, &shape, sw_arena_printf(c->job->arena, "%s:ends", s.name));
  c->p->storages.v[reads.storage].has_pad_fill = true;
  c->p->storages.v[reads.storage].pad_fill = -INFINITY;
  sw_layout__add_op(c, &fill, sw_arena_printf(c->job->arena, "fill ends of %s", s.name));
  c->p->ops.v[op_i].in[0] = reads;
}

void sw_layout__prepare(struct sw_choosing *c)
{
  for (int i = 0; i < c->p->steps.n; i++) {
    struct sw_step step = c->p->steps.v[i];
    if (!step.is_host) {
      prepare_write(c, step.index);
      fill_ends(c, step.index);
    }
    if (!step.is_host && goes_through_copy(c, &c->p->ops.v[step.index]))
      write_through_copy(c, step.index);
    else
      *SW_PUSH(c->job->arena, &c->steps) = step;
  }
  sw_layout__take_steps(c);
}
