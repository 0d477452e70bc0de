/* Tensors from nothing. */
#include "compiler/eval/ops.h"

#include <math.h>
#include <string.h>

static struct sw_number whole(int64_t i)
{
  return (struct sw_number){.kind = SW_NUMBER_INT, .i = i};
}

bool sw_eval_needs_size_only(const char *target)
{
  static const char *const targets[] = {"aten.empty_like.default", "aten.full_like.default", "aten.new_empty.default", "aten.new_full.default",
                                        "aten.new_ones.default", "aten.new_zeros.default", "aten.ones_like.default", "aten.zeros_like.default"};
  for (size_t i = 0; i < sizeof targets / sizeof targets[0]; i++)
    if (!strcmp(target, targets[i]))
      return true;
  return false;
}

/* Result 0 of the size that `size` names, or of self's. */
static struct sw_tensor sized(struct sw_call *c, bool like)
{
  const struct sw_value *declared = sw_call_declared(c, 0);
  const struct sw_arg *self = like ? sw_call_arg(c, "self") : NULL;
  if (declared && self && self->kind == SW_ARG_VALUE && c->eval->values[self->value].kind == SW_UNKNOWN)
    return sw_call_out(c, 0, declared->rank, declared->size);
  if (like) {
    struct sw_tensor t = sw_call_tensor(c, "self");
    return sw_call_out(c, 0, t.rank, t.size);
  }
  struct sw_ints size = sw_call_ints(c, "size");
  return sw_call_out(c, 0, size.n, size.v);
}

/* `what` of the table, or the argument that it names. */
static struct sw_number filler(struct sw_call *c)
{
  return c->op->args ? sw_call_number(c, sw_call_need(c, c->op->args)) : whole(c->op->what);
}

void sw_op_full(struct sw_call *c)
{
  struct sw_number n = filler(c);
  struct sw_tensor t = sized(c, false);
  sw_call_fill(c, &t, n);
}

void sw_op_full_like(struct sw_call *c)
{
  struct sw_number n = filler(c);
  struct sw_tensor t = sized(c, true);
  sw_call_fill(c, &t, n);
}

void sw_op_scalar_tensor(struct sw_call *c)
{
  struct sw_tensor n = sw_call_tensor(c, "s"), t = sw_call_out(c, 0, 0, NULL);
  sw_call_copy(c, &t, &n);
}

/* ceil((end - start) / step) numbers: start, start + step, .. */
void sw_op_arange(struct sw_call *c)
{
  const struct sw_arg *first = sw_call_arg(c, "start"), *by = sw_call_arg(c, "step");
  struct sw_number start = first ? sw_call_number(c, first) : whole(0), step = by ? sw_call_number(c, by) : whole(1);
  struct sw_number end = sw_call_number(c, sw_call_need(c, "end"));
  double count = ceil((sw_number_real(end) - sw_number_real(start)) / sw_number_real(step));
  if (sw_number_real(step) == 0 || !isfinite(count) || count < 0)
    sw_call_stop(c, SW_INVALID, "no numbers from %g to %g by %g", sw_number_real(start), sw_number_real(end),
                 sw_number_real(step));
  if (count > 0x1p60)
    sw_call_over_limit(c);
  int64_t n = (int64_t)count;
  bool reals = start.kind == SW_NUMBER_REAL || step.kind == SW_NUMBER_REAL;
  struct sw_tensor t = sw_call_out(c, 0, 1, &n);
  for (int64_t i = 0; i < n; i++) {
    double x = sw_number_real(start) + (double)i * sw_number_real(step);
    int64_t j = (int64_t)((uint64_t)sw_number_int(start) + (uint64_t)i * (uint64_t)sw_number_int(step));
    if (reals)
      sw_row_put_reals(&t, i, 1, 1, &x, c->rounding);
    else
      sw_row_put_wholes(&t, i, 1, 1, &j, c->rounding);
  }
}

/* From both ends inwards, as PyTorch does, so that the last is exactly `end`. */
void sw_op_linspace(struct sw_call *c)
{
  double start = sw_call_real(c, "start"), end = sw_call_real(c, "end");
  int64_t n = sw_call_int(c, "steps");
  struct sw_tensor t = sw_call_out(c, 0, 1, &n);
  double step = n > 1 ? (end - start) / (double)(n - 1) : 0;
  for (int64_t i = 0; i < n; i++) {
    double x = i < n / 2 || n == 1 ? start + step * (double)i : end - step * (double)(n - 1 - i);
    sw_row_put_reals(&t, i, 1, 1, &x, c->rounding);
  }
}

/* Powers of `base` with exponents as linspace gives them. */
void sw_op_logspace(struct sw_call *c)
{
  double start = sw_call_real(c, "start"), end = sw_call_real(c, "end"), base = sw_call_real(c, "base");
  int64_t n = sw_call_int(c, "steps");
  struct sw_tensor t = sw_call_out(c, 0, 1, &n);
  double step = n > 1 ? (end - start) / (double)(n - 1) : 0;
  for (int64_t i = 0; i < n; i++) {
    double x = pow(base, i < n / 2 || n == 1 ? start + step * (double)i : end - step * (double)(n - 1 - i));
    sw_row_put_reals(&t, i, 1, 1, &x, c->rounding);
  }
}

void sw_op_eye(struct sw_call *c)
{
  int64_t n = sw_call_int(c, "n"), size[2] = {n, sw_call_int_or(c, "m", n)}, one = 1;
  struct sw_tensor t = sw_call_out(c, 0, 2, size);
  for (int64_t i = 0; i < size[0] && i < size[1]; i++)
    sw_row_put_wholes(&t, i * (t.stride[0] + t.stride[1]), 1, 1, &one, c->rounding);
}

/* Keeps the lower (`what` 0) or upper triangle of the last two dims, the diagonal `diagonal` included. */
void sw_op_triangle(struct sw_call *c)
{
  struct sw_tensor t = sw_call_tensor(c, "self");
  int64_t diagonal = sw_call_int(c, "diagonal");
  if (t.rank < 2)
    sw_call_stop(c, SW_INVALID, "a tensor of rank %d has no triangle", t.rank);
  struct sw_tensor out = sw_call_out(c, 0, t.rank, t.size);
  for (int64_t i = 0; i < t.size[t.rank - 2]; i++) {
    struct sw_tensor row = sw_tensor_at(&t, t.rank - 2, i), to = sw_tensor_at(&out, t.rank - 2, i);
    int last = row.rank - 1;
    int64_t n = row.size[last], cut;
    if (__builtin_add_overflow(i, diagonal, &cut))
      cut = diagonal < 0 ? -1 : n;
    cut += c->op->what == 0;
    cut = cut < 0 ? 0 : cut > n ? n : cut; /* columns left of the cut are the lower triangle */
    int64_t from = c->op->what == 0 ? 0 : cut;
    row.offset += from * row.stride[last];
    to.offset += from * to.stride[last];
    row.size[last] = to.size[last] = c->op->what == 0 ? cut : n - cut;
    sw_call_copy(c, &to, &row);
  }
}

void sw_op_one_hot(struct sw_call *c)
{
  struct sw_tensor t = sw_call_tensor(c, "self");
  int64_t *v = sw_call_get_wholes(c, &t), n = sw_tensor_elements(&t), classes = sw_call_int(c, "num_classes");
  int64_t size[SW_MAX_RANK], one = 1;
  if (classes < 0) {
    classes = 0;
    for (int64_t i = 0; i < n; i++)
      classes = v[i] >= classes && v[i] < INT64_MAX ? v[i] + 1 : classes;
  }
  if (t.rank == SW_MAX_RANK)
    sw_call_stop(c, SW_UNSUPPORTED, "a tensor of rank %d is over the limit of %d", t.rank + 1, SW_MAX_RANK);
  for (int d = 0; d < t.rank; d++)
    size[d] = t.size[d];
  size[t.rank] = classes;
  struct sw_tensor made = sw_call_new(c, SW_I64, t.rank + 1, size), out = sw_call_out(c, 0, t.rank + 1, size);
  for (int64_t i = 0; i < n; i++) {
    if (v[i] < 0 || v[i] >= classes)
      sw_call_stop(c, SW_INVALID, "class %lld of %lld", (long long)v[i], (long long)classes);
    sw_row_put_wholes(&made, i * classes + v[i], 1, 1, &one, c->rounding);
  }
  sw_call_copy(c, &out, &made);
}

/* `copy`: the source in the size and dtype of self. */
void sw_op_copy(struct sw_call *c)
{
  struct sw_tensor t = sw_call_tensor(c, "self"), from = sw_call_tensor(c, c->op->args);
  struct sw_tensor out = sw_call_out(c, 0, t.rank, t.size);
  from = sw_call_expand(c, &from, t.rank, t.size);
  sw_call_copy(c, &out, &from);
}

void sw_op_random(struct sw_call *c)
{
  sw_call_stop(c, SW_UNSUPPORTED, "random numbers can't be repeated here");
}
