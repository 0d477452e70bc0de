/* Reductions. Reference: ops.md 4.3, 5.3. Several dims are one op. */
#include "compiler/lower/families.h"

#include <math.h>

uint32_t lw_dims(struct lower *l, const char *name, int rank)
{
  int64_t dims[SW_MAX_RANK];
  int n = lw_ints(l, name, dims);
  uint32_t mask = 0;
  for (int i = 0; i < n; i++)
    mask |= 1u << lw_dim(dims[i], rank);
  return n ? mask : (1u << rank) - 1;
}

/* The operand in the dtype of the result; integers and bools accumulate in int64, which the device has not. */
static bool operand(struct lower *l, struct tensor *x)
{
  enum sw_dtype t = lw_result_dtype(l, 0);
  if (!lw_computes(t)) {
    lw_host(l, 0);
    return false;
  }
  *x = lw_argument(l, &lw_node(l)->args[0], t);
  return lw_known(*x);
}

void lw_op_reduce(struct lower *l, int op)
{
  struct tensor x;
  if (lw_result_dtype(l, 0) == SW_BOOL && (op == SW_OP_MAX || op == SW_OP_MIN))
    x = lw_tensor(l, "self"); /* 0 and 1 in fp16 lanes */
  else if (!operand(l, &x))
    return;
  if (!lw_known(x)) {
    lw_set(l, 0, x);
    return;
  }
  lw_set(l, 0, lw_reduce(l, (enum sw_device_op)op, x, lw_dims(l, "dim", x.rank), lw_given(l, "keepdim") && lw_bool(l, "keepdim")));
}

void lw_op_prod(struct lower *l, int unused)
{
  (void)unused;
  lw_op_reduce(l, SW_OP_PROD);
}

void lw_op_reduce_all(struct lower *l, int op)
{
  struct tensor x;
  if (operand(l, &x))
    lw_set(l, 0, lw_reduce(l, (enum sw_device_op)op, x, (1u << x.rank) - 1, false));
}

/* Only what somebody reads. Positions come from the host; profile best then takes the values from there too, the
 * reference computes those on the device. */
void lw_op_max_dim(struct lower *l, int op)
{
  struct tensor x;
  bool positions = lw_wanted(l, 1);
  if (positions && (l->best || !lw_computes(lw_result_dtype(l, 0)))) {
    lw_host(l, 0);
    return;
  }
  if (lw_wanted(l, 0) && operand(l, &x))
    lw_set(l, 0, lw_reduce(l, (enum sw_device_op)op, x, 1u << lw_dim(lw_int(l, "dim"), x.rank), lw_bool(l, "keepdim")));
  if (positions)
    lw_host_except(l, 0, 1);
}

void lw_op_aminmax(struct lower *l, int unused)
{
  (void)unused;
  struct tensor x;
  if (!operand(l, &x))
    return;
  uint32_t dims = lw_given(l, "dim") ? 1u << lw_dim(lw_int(l, "dim"), x.rank) : (1u << x.rank) - 1;
  lw_set(l, 0, lw_reduce(l, SW_OP_MIN, x, dims, lw_bool(l, "keepdim")));
  lw_set(l, 1, lw_reduce(l, SW_OP_MAX, x, dims, lw_bool(l, "keepdim")));
}

/* any is a maximum, all a minimum over 0 and 1. */
void lw_op_any(struct lower *l, int op)
{
  struct tensor x = lw_tensor(l, "self");
  if (!lw_known(x)) {
    lw_set(l, 0, x);
    return;
  }
  if (x.dtype != SW_BOOL && !lw_computes(x.dtype)) {
    lw_host(l, 0);
    return;
  }
  if (x.dtype != SW_BOOL)
    x = lw_binary_number(l, SW_OP_NE, x, 0);
  uint32_t dims = lw_given(l, "dim") ? lw_dims(l, "dim", x.rank) : (1u << x.rank) - 1;
  lw_set(l, 0, lw_reduce(l, (enum sw_device_op)op, x, dims, lw_given(l, "keepdim") && lw_bool(l, "keepdim")));
}

/* var = sum((x - mean)^2) / (n - correction): mean, sub, mul, mean, and one factor unless the correction is 0. */
void lw_op_moments(struct lower *l, int which)
{
  struct tensor x;
  if (!operand(l, &x))
    return;
  uint32_t dims = lw_dims(l, "dim", x.rank);
  bool keepdim = lw_given(l, "keepdim") && lw_bool(l, "keepdim");
  double correction = lw_given(l, "correction") ? lw_real(l, "correction")
                      : lw_given(l, "unbiased") ? lw_bool(l, "unbiased") : 1;
  double n = 1;
  for (int d = 0; d < x.rank; d++)
    if (dims >> d & 1)
      n *= (double)x.size[d];
  struct tensor mean = lw_reduce(l, SW_OP_MEAN, x, dims, true);
  struct tensor d = lw_binary(l, SW_OP_SUB, x, mean);
  struct tensor var = lw_reduce(l, SW_OP_MEAN, lw_binary(l, SW_OP_MUL, d, d), dims, keepdim);
  if (correction != 0)
    var = lw_binary_number(l, SW_OP_MUL, var, n > correction ? n / (n - correction) : NAN);
  if (which == LW_STD || which == LW_STD_MEAN)
    var = lw_unary(l, SW_OP_SQRT, var);
  lw_set(l, 0, var);
  if (which != LW_VAR_MEAN && which != LW_STD_MEAN)
    return;
  for (int k = x.rank - 1; k >= 0 && !keepdim; k--)
    if (dims >> k & 1)
      mean = lw_squeeze(mean, k);
  lw_set(l, 1, mean);
}

/* The device's log takes fp16 only. */
static struct tensor logsumexp_by_host(struct lower *l, struct tensor x, uint32_t dims, bool keepdim)
{
  struct tensor out = x;
  struct sw_host_arg list = {.kind = SW_HOST_LIST, .list = SW_NEW_N(l->arena, struct sw_host_arg, x.rank)};
  for (int d = 0; d < x.rank; d++)
    if (dims >> d & 1) {
      list.list[list.n_list++] = (struct sw_host_arg){.kind = SW_HOST_LITERAL, .literal = {.kind = SW_ARG_INT, .i = d}};
      out.size[d] = 1;
    }
  for (int d = x.rank - 1; d >= 0 && !keepdim; d--)
    if (dims >> d & 1)
      out = lw_squeeze(out, d);
  out = lw_new(l, x.dtype, out.rank, out.size, NULL);
  struct sw_host_step h = {.name = lw_node(l)->name, .target = "aten.logsumexp.default", .node = l->node, .why = lw_why_half_only};
  *SW_PUSH(l->arena, &h.args) = (struct sw_host_arg){.kind = SW_HOST_VIEW, .view = lw_view_of(x)};
  *SW_PUSH(l->arena, &h.args) = list;
  *SW_PUSH(l->arena, &h.args) = (struct sw_host_arg){.kind = SW_HOST_LITERAL, .literal = {.kind = SW_ARG_BOOL, .i = keepdim}};
  *SW_PUSH(l->arena, &h.results) = lw_view_of(out);
  lw_add_host_step(l, h);
  return out;
}

/* log(sum(exp(x - m))) + m. An infinite maximum is made the largest number, so that x - m is no nan: of a row of -inf, -inf
 * comes out, as from PyTorch, and inf of one that holds inf. */
struct tensor lw_logsumexp(struct lower *l, struct tensor x, uint32_t dims, bool keepdim)
{
  if (!lw_known(x) || x.dtype == SW_F32)
    return lw_known(x) ? logsumexp_by_host(l, x, dims, keepdim) : x;
  struct tensor m = lw_reduce(l, SW_OP_MAX, x, dims, true);
  if (x.dtype == SW_F16) /* clip's bounds; bf16 has larger numbers */
    m = lw_clip(l, m, -65504, 65504);
  struct tensor e = lw_unary(l, SW_OP_EXP, lw_binary(l, SW_OP_SUB, x, m));
  struct tensor s = lw_unary(l, SW_OP_LOG, lw_reduce(l, SW_OP_SUM, e, dims, true));
  s = lw_binary(l, SW_OP_ADD, s, m);
  for (int d = x.rank - 1; d >= 0 && !keepdim; d--)
    if (dims >> d & 1)
      s = lw_squeeze(s, d);
  return s;
}

void lw_op_logsumexp(struct lower *l, int unused)
{
  (void)unused;
  struct tensor x;
  if (operand(l, &x))
    lw_set(l, 0, lw_logsumexp(l, x, lw_dims(l, "dim", x.rank), lw_bool(l, "keepdim")));
}

/* One search: k values along dim, or their positions. */
static struct tensor search(struct lower *l, enum sw_device_op op, struct tensor x, int dim, const int64_t *size)
{
  bool repeats = false;
  for (int d = 0; lw_known(x) && d < x.rank; d++)
    repeats = repeats || (x.size[d] > 1 && x.stride[d] == 0);
  if (repeats) /* the card takes lanes, which an expanded tensor has not */
    x = lw_clone(l, x);
  if (!lw_known(x))
    return x;
  struct tensor out = lw_new(l, x.dtype, x.rank, size, NULL), nest = out, in = x;
  int64_t range[SW_MAX_RANK];
  for (int d = 0; d < x.rank; d++)
    range[d] = size[d];
  range[x.rank] = x.size[dim];
  in.rank = nest.rank = x.rank + 1;
  in.stride[x.rank] = x.stride[dim];
  in.stride[dim] = 0;
  nest.stride[x.rank] = 0;
  lw_nest(l, op, SW_ROLE_PLAIN, x.rank, x.rank + 1, range, nest, 1, &in);
  return out;
}

/* Values and positions are two searches. Positions come as fp16 numbers, exact up to 1024 on the device, and the host makes
 * integers of them; in profile best, and for larger dims, the host does the whole node when positions are read.
 * Reference: ops.md 4.3 (limits), layouts.md 4.10. */
void lw_op_topk(struct lower *l, int unused)
{
  (void)unused;
  int64_t k = lw_int(l, "k");
  const struct sw_value *v = lw_value(l, 0) ? lw_value(l, 0) : lw_value(l, 1), *positions = lw_value(l, 1);
  struct tensor x = lw_tensor(l, "self");
  int dim = lw_dim(lw_int(l, "dim"), x.rank);
  bool read = lw_wanted(l, 1), exact = lw_known(x) && x.size[dim] <= 1024;
  bool only_one = lw_known(x) && (x.rank == 0 || x.size[dim] == 1); /* no loop to search along */
  if (!lw_bool(l, "largest") || k > 128 || (read && (l->best || !exact || only_one)) || !lw_computes(x.dtype)) {
    lw_host(l, 0);
    return;
  }
  if (!lw_known(x) || !v) {
    lw_set(l, 0, x);
    return;
  }
  if (lw_wanted(l, 0))
    lw_set(l, 0, only_one && k == 1 ? lw_clone(l, x) : search(l, SW_OP_TOPKVALUE, x, dim, v->size));
  if (read)
    lw_set(l, 1, lw_host_cast(l, search(l, SW_OP_TOPKINDEX, x, dim, v->size), positions->dtype));
}
