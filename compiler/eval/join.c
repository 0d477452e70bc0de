/* Tensors put together from pieces: cat, stack, repeat, flip, roll. */
#include "compiler/eval/ops.h"

#include <string.h>

/* `what` 1: stack, along a new dim. Empty tensors of rank 1 do not count in cat. */
void sw_op_cat(struct sw_call *c)
{
  int n, rank = -1, used = 0;
  const struct sw_tensor *given = sw_call_tensors(c, "tensors", &n);
  struct sw_tensor *ts = SW_NEW_N(c->scratch, struct sw_tensor, n);
  for (int i = 0; i < n; i++) {
    struct sw_tensor t = given[i];
    if (!t.cells || (!c->op->what && t.rank == 1 && t.size[0] == 0))
      continue;
    ts[used++] = t;
    rank = rank < t.rank ? t.rank : rank;
  }
  if (used == 0) {
    int64_t none = 0;
    sw_call_out(c, 0, 1, &none);
    return;
  }
  bool stack = c->op->what;
  int dim = sw_call_dim(c, "dim", rank + stack);
  if (rank + stack > SW_MAX_RANK || (!stack && rank == 0))
    sw_call_stop(c, SW_INVALID, "tensors of rank %d can't be joined", rank);
  int64_t size[SW_MAX_RANK], at = 0;
  for (int i = 0; stack && i < used; i++) {
    if (ts[i].rank == rank) {
      ts[i].size[rank] = 1;
      ts[i].stride[rank] = 0;
      ts[i].rank++;
      ts[i] = sw_tensor_move(&ts[i], rank, dim);
    }
  }
  rank += stack;
  memcpy(size, ts[0].size, sizeof size);
  size[dim] = 0;
  for (int i = 0; i < used; i++)
    if (ts[i].rank != rank || __builtin_add_overflow(size[dim], ts[i].size[dim], &size[dim]))
      sw_call_stop(c, SW_INVALID, "tensors of rank %d and %d can't be joined", rank, ts[i].rank);
  struct sw_tensor out = sw_call_out(c, 0, rank, size);
  for (int i = 0; i < used; i++) {
    struct sw_tensor to = out;
    to.offset += at * out.stride[dim];
    to.size[dim] = ts[i].size[dim];
    sw_call_copy(c, &to, &ts[i]);
    at += to.size[dim];
  }
}

/* Every dim becomes two, how often and what; `from` has stride 0 in the first. [2,3] three times along dim 1 is the
 * copy of [2,3(0),3] into [2,3,3]. */
static void repeat(struct sw_call *c, struct sw_tensor t, struct sw_ints times)
{
  int rank = times.n > t.rank ? times.n : t.rank;
  int64_t size[SW_MAX_RANK];
  if (2 * rank > SW_MAX_RANK)
    sw_call_stop(c, SW_UNSUPPORTED, "repeating a tensor of rank %d", rank);
  for (int d = 0; d < rank; d++)
    size[d] = d < rank - t.rank ? 1 : t.size[d - (rank - t.rank)];
  t = sw_call_expand(c, &t, rank, size);
  for (int d = 0; d < times.n; d++)
    if (times.v[d] < 0 || __builtin_mul_overflow(size[rank - times.n + d], times.v[d], &size[rank - times.n + d]))
      sw_call_stop(c, SW_INVALID, "%lld times", (long long)times.v[d]);
  struct sw_tensor out = sw_call_out(c, 0, rank, size), from = t, to = out;
  from.rank = to.rank = 2 * rank;
  for (int d = 0; d < rank; d++) {
    from.size[2 * d] = to.size[2 * d] = d < rank - times.n ? 1 : times.v[d - (rank - times.n)];
    from.size[2 * d + 1] = to.size[2 * d + 1] = t.size[d];
    from.stride[2 * d] = 0;
    from.stride[2 * d + 1] = t.stride[d];
    to.stride[2 * d] = t.size[d] * out.stride[d];
    to.stride[2 * d + 1] = out.stride[d];
  }
  sw_call_copy(c, &to, &from);
}

void sw_op_repeat(struct sw_call *c)
{
  struct sw_ints times = sw_call_ints(c, c->op->args);
  struct sw_tensor t = sw_call_tensor(c, "self");
  if (c->op->what == 0 && times.n < t.rank) /* tile allows fewer */
    sw_call_stop(c, SW_INVALID, "%d repeats for rank %d", times.n, t.rank);
  repeat(c, t, times);
}

/* Every element several times in a row. */
void sw_op_repeat_interleave(struct sw_call *c)
{
  struct sw_tensor t = sw_call_tensor(c, "self");
  int64_t times = sw_call_int(c, "repeats"), open = -1, size[SW_MAX_RANK];
  int dim = 0;
  if (sw_call_has(c, "dim") && t.rank > 0)
    dim = sw_call_dim(c, "dim", t.rank);
  else
    t = sw_call_reshape(c, &t, 1, &open);
  memcpy(size, t.size, sizeof size);
  if (times < 0 || t.rank == SW_MAX_RANK || __builtin_mul_overflow(size[dim], times, &size[dim]))
    sw_call_stop(c, SW_INVALID, "%lld times", (long long)times);
  struct sw_tensor out = sw_call_out(c, 0, t.rank, size), to = out;
  t.size[t.rank] = to.size[t.rank] = times;
  t.stride[t.rank] = 0;
  to.stride[t.rank] = out.stride[dim];
  to.size[dim] = t.size[dim];
  to.stride[dim] = times * out.stride[dim];
  t.rank = ++to.rank;
  sw_call_copy(c, &to, &t);
}

void sw_op_flip(struct sw_call *c)
{
  struct sw_tensor t = sw_call_tensor(c, "self");
  struct sw_ints dims = sw_call_ints(c, "dims");
  struct sw_tensor out = sw_call_out(c, 0, t.rank, t.size), from = t;
  for (int i = 0; i < dims.n && t.rank > 0; i++) {
    int d = sw_dim_of(c, dims.v[i], t.rank);
    if (t.size[d] > 1) {
      from.offset = from.stride[d] == t.stride[d] ? from.offset + (t.size[d] - 1) * t.stride[d] : from.offset;
      from.stride[d] = -t.stride[d];
    }
  }
  sw_call_copy(c, &out, &from);
}

/* Elements move on by `shifts` along `dims`, those beyond the end to the start; without dims in the flat tensor. */
void sw_op_roll(struct sw_call *c)
{
  struct sw_tensor t = sw_call_tensor(c, "self"), v = t;
  struct sw_ints shifts = sw_call_ints(c, "shifts"), dims = sw_call_ints(c, "dims");
  int64_t open = -1;
  if (dims.n == 0)
    v = sw_call_reshape(c, &t, 1, &open);
  if (shifts.n != (dims.n ? dims.n : 1))
    sw_call_stop(c, SW_INVALID, "%d shifts for %d dims", shifts.n, dims.n);
  for (int i = 0; i < shifts.n && v.rank > 0 && sw_tensor_elements(&v) > 0; i++) {
    int dim = dims.n ? sw_dim_of(c, dims.v[i], v.rank) : 0;
    int64_t n = v.size[dim], by = (shifts.v[i] % n + n) % n;
    struct sw_tensor moved = sw_call_new(c, v.dtype, v.rank, v.size);
    for (int half = 0; half < 2; half++) {
      struct sw_tensor from = v, to = moved;
      from.size[dim] = to.size[dim] = half ? by : n - by;
      from.offset += (half ? n - by : 0) * v.stride[dim];
      to.offset += (half ? 0 : by) * moved.stride[dim];
      sw_call_copy(c, &to, &from);
    }
    v = moved;
  }
  v = sw_call_reshape(c, &v, t.rank, t.size);
  struct sw_tensor out = sw_call_out(c, 0, t.rank, t.size);
  sw_call_copy(c, &out, &v);
}
