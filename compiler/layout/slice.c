/* Copies of just what one operand reads, for operands that no copy of their whole storage would serve: heads of 32
 * elements in rows of 128, windows that start inside a stick, vectors that have to become matrices.
 *
 * The copy is a tensor whose dims are the loops of the copying op. It lies in memory as the operand does, largest step
 * outermost, and loops that are one walk through the operand are one loop: heads [2,2,40,32] of rows [80,64] are 80
 * rows, 2 heads, 32 elements. Two ops make it: one copies with the stick that the operand has, one moves the stick.
 * Where the moving op can read the slice itself it is one op. */
#include "compiler/layout/choose.h"

/* A loop of the copy: over the operand and over the copy. */
struct run {
  int64_t range, step, out_step;
};

static bool add_loop(struct sw_slice *out, struct run r)
{
  struct sw_op *op = &out->op;
  int d = op->n_loops;
  if (d == 6)
    return false;
  op->range[d] = out->shape.size[d] = r.range;
  op->in[0].step[d] = r.step;
  op->out.step[d] = out->shape.stride[d] = r.out_step;
  op->n_loops = op->n_written = out->shape.rank = d + 1;
  return true;
}

/* Adds a run, split where it goes over several host dims of the operand: 100 rows of 128 over [50,8,32] are 2 steps of
 * 128 inside 50 steps of 256. Only even splits. */
static bool add_split(struct sw_slice *out, const struct sw_storage *s, struct run r)
{
  struct run part[SW_MAX_LOOPS];
  int n = 0;
  while (r.step && n < SW_MAX_LOOPS - 1) {
    int64_t next = 0;
    for (int d = 0; d < s->rank; d++)
      if (s->size[d] > 1 && s->stride[d] > r.step && s->stride[d] % r.step == 0 && (!next || s->stride[d] < next))
        next = s->stride[d];
    int64_t q = next ? next / r.step : r.range;
    if (q >= r.range || r.range % q)
      break;
    part[n++] = (struct run){q, r.step, r.out_step};
    r = (struct run){r.range / q, next, r.out_step * q};
  }
  part[n++] = r;
  while (n-- > 0)
    if (!add_loop(out, part[n]))
      return false;
  return true;
}

bool sw_layout__slice(const struct sw_choosing *c, const struct sw_op *op, int input, int loop, struct sw_slice *out)
{
  const struct sw_access *x = &op->in[input];
  const struct sw_storage *s = &c->p->storages.v[x->storage];
  int by_step[SW_MAX_LOOPS], n = 0;
  *out = (struct sw_slice){.shape = {.dtype = s->dtype}, .read = {.index_input = -1}, .stick = -1};
  out->op = (struct sw_op){.op = SW_OP_IDENTITY, .role = SW_ROLE_CONVERSION, .n_in = 1};
  out->op.in[0] = (struct sw_access){.storage = x->storage, .offset = x->offset, .index_input = -1};
  out->op.out = (struct sw_access){.index_input = -1};
  for (int l = 0; l < op->n_loops; l++)
    if (x->step[l] || l == loop) {
      int at = n++;
      for (; at > 0 && x->step[by_step[at - 1]] < x->step[l]; at--)
        by_step[at] = by_step[at - 1];
      by_step[at] = l;
    }
  int64_t step = 1;
  for (int i = n - 1; i >= 0; i--) {
    out->read.step[by_step[i]] = step;
    step *= op->range[by_step[i]];
  }
  for (int i = 0; i < n; i++) {
    int l = by_step[i];
    struct run r = {op->range[l], x->step[l], out->read.step[l]};
    if (l == loop) {
      out->stick = out->op.n_loops;
      if (!add_loop(out, r))
        return false;
      continue;
    }
    for (; i + 1 < n && by_step[i + 1] != loop; i++) {
      int inner = by_step[i + 1];
      if (r.step != x->step[inner] * op->range[inner])
        break;
      r = (struct run){r.range * op->range[inner], x->step[inner], out->read.step[inner]};
    }
    if (!add_split(out, s, r))
      return false;
  }
  return out->stick >= 0 && out->shape.rank >= 2;
}

/* The layout of the copy with one of its dims on the stick. */
static bool with_stick(const struct sw_slice *slice, int dim, struct sw_layout *l)
{
  int order[SW_MAX_RANK], n = 0;
  for (int d = 0; d < slice->shape.rank; d++)
    if (d != dim)
      order[n++] = d;
  order[n++] = dim;
  return sw_layout_make(l, SW_FORMAT_FP16, SW_EA_STANDARD, slice->shape.rank, slice->shape.size, slice->shape.stride,
                        order, n);
}

bool sw_layout__plan_slice(const struct sw_choosing *c, const struct sw_slice *slice, const struct sw_layout *from,
                           struct sw_slice_plan *plan)
{
  struct sw_seen seen = sw_layout__see(from, &slice->op, &slice->op.in[0], SW_OFFSET_EXACT);
  if (!seen.formed || seen.stick.class != SW_STICK_LOOP || seen.stick.loop == slice->stick ||
      !with_stick(slice, slice->stick, &plan->last))
    return false;
  struct sw_seen written = sw_layout__see(&plan->last, &slice->op, &slice->op.out, SW_OFFSET_EXACT);
  plan->at_once = sw_layout__moves_stick(c, &slice->op, from, &seen, &slice->shape, &plan->last, &written);
  const struct sw_storage *s = &c->p->storages.v[slice->op.in[0].storage];
  if (plan->at_once) {
    plan->cost = sw_layout__copy_cost(c, s, &slice->op, from, &plan->last);
    return true;
  }
  if (!with_stick(slice, seen.stick.loop, &plan->middle) ||
      !sw_layout__move_stick(&slice->shape, &plan->middle, slice->stick, &plan->last))
    return false;
  struct sw_op turn = sw_layout__copy_of(&slice->shape);
  plan->cost = sw_layout__copy_cost(c, s, &slice->op, from, &plan->middle) +
               sw_layout__copy_cost(c, &slice->shape, &turn, &plan->middle, &plan->last);
  return true;
}

bool sw_layout__is_slice(const struct sw_storage *s, const struct sw_op *op)
{
  int l = 0;
  for (int d = 0; d < s->rank; d++)
    if (s->size[d] > 1) {
      if (l == op->n_loops || op->range[l] != s->size[d] || op->in[0].step[l] != s->stride[d] ||
          op->out.step[l] != s->stride[d])
        return true;
      l++;
    }
  return l != op->n_loops || op->in[0].offset != 0;
}
