/* Softmax and normalisations. Reference: ops.md 5.4. */
#include "compiler/lower/families.h"

/* max, sub, exp, sum, realdiv */
struct tensor lw_softmax(struct lower *l, struct tensor x, int dim)
{
  struct tensor m = lw_reduce(l, SW_OP_MAX, x, 1u << dim, true);
  struct tensor e = lw_unary(l, SW_OP_EXP, lw_binary(l, SW_OP_SUB, x, m));
  struct tensor s = lw_reduce(l, SW_OP_SUM, e, 1u << dim, true);
  return lw_binary(l, SW_OP_DIV, e, s);
}

/* The argument in the dtype of the result. The reference copies an operand that is not contiguous first. */
static struct tensor softmax_operand(struct lower *l)
{
  struct tensor x = lw_argument(l, &lw_node(l)->args[0], lw_result_dtype(l, 0));
  return lw_known(x) && !l->best && !lw_is_contiguous(x) ? lw_clone(l, x) : x;
}

void lw_op_softmax(struct lower *l, int unused)
{
  (void)unused;
  struct tensor x = softmax_operand(l);
  lw_set(l, 0, lw_known(x) ? lw_softmax(l, x, lw_dim(lw_int(l, "dim"), x.rank)) : x);
}

/* A row of nothing but -inf gives 0: with its maximum at the lowest number all its exps are 0, and no other row's sum, which
 * is 1 at least, changes by a bound of 0.5. */
void lw_op_safe_softmax(struct lower *l, int unused)
{
  (void)unused;
  struct tensor x = softmax_operand(l);
  if (!lw_known(x)) {
    lw_set(l, 0, x);
    return;
  }
  uint32_t dim = 1u << lw_dim(lw_int(l, "dim"), x.rank);
  double lowest = x.dtype == SW_F16 ? -65504 : x.dtype == SW_BF16 ? -0x1.fep127 : -0x1.fffffep127;
  struct tensor m = lw_binary_number(l, SW_OP_MAXIMUM, lw_reduce(l, SW_OP_MAX, x, dim, true), lowest);
  struct tensor e = lw_unary(l, SW_OP_EXP, lw_binary(l, SW_OP_SUB, x, m));
  struct tensor s = lw_binary_number(l, SW_OP_MAXIMUM, lw_reduce(l, SW_OP_SUM, e, dim, true), 0.5);
  lw_set(l, 0, lw_binary(l, SW_OP_DIV, e, s));
}

/* max, sub, exp, sum, log, sub */
void lw_op_log_softmax(struct lower *l, int unused)
{
  (void)unused;
  struct tensor x = softmax_operand(l);
  if (lw_known(x)) {
    uint32_t dim = 1u << lw_dim(lw_int(l, "dim"), x.rank);
    x = lw_binary(l, SW_OP_SUB, x, lw_reduce(l, SW_OP_MAX, x, dim, true));
    struct tensor s = lw_reduce(l, SW_OP_SUM, lw_unary(l, SW_OP_EXP, x), dim, true);
    x = lw_binary(l, SW_OP_SUB, x, lw_unary(l, SW_OP_LOG, s));
  }
  lw_set(l, 0, x);
}

/* -- layer norm: exx2, layernormscale, layernormnorm over one last dim (ops.md 5.4) -- */

/* A vector of ones or zeros for a missing weight or bias. */
static struct tensor filled(struct lower *l, double value, enum sw_dtype t, int64_t n)
{
  if (!l->best)
    return lw_fill(l, value, t, 1, &n, NULL);
  double *x = SW_NEW_N(lw_scratch(l), double, n);
  for (int64_t i = 0; i < n; i++)
    x[i] = value;
  return lw_table(l, sw_arena_printf(l->arena, "%s:%s", lw_node(l)->name, value == 0 ? "zeros" : "ones"), t, 1, &n, x);
}

static struct tensor optional(struct lower *l, const char *name, enum sw_dtype t, double value, int64_t n)
{
  if (!lw_given(l, name))
    return filled(l, value, t, n);
  struct tensor w = lw_argument(l, lw_arg(l, name), t);
  return lw_known(w) ? lw_reshape(l, w, 1, &n) : w;
}

/* Several normalised dims are seen as one. Gives their product. */
static int64_t join_dims(struct lower *l, struct tensor *x)
{
  int64_t shape[SW_MAX_RANK], n = 1;
  int count = lw_ints(l, "normalized_shape", shape);
  for (int i = 0; i < count; i++)
    n *= shape[i];
  if (lw_known(*x) && count > 1) {
    int64_t size[SW_MAX_RANK];
    int rank = x->rank - count;
    for (int d = 0; d < rank; d++)
      size[d] = x->size[d];
    size[rank] = n;
    *x = lw_reshape(l, *x, rank + 1, size);
  }
  return n;
}

static struct tensor layer_norm(struct lower *l, struct tensor x, int64_t n, double eps)
{
  for (int d = 0; d < x.rank; d++)
    if (!x.size[d])
      return x;
  /* exx2 leaves its sums in the stick it reads, so the rows must be there as such, not one value for all of a row */
  if (lw_known(x) && x.size[x.rank - 1] > 1 && x.stride[x.rank - 1] == 0)
    x = lw_clone(l, x);
  struct tensor in[5] = {x};
  int before = l->program->ops.n;
  in[1] = lw_reduce(l, SW_OP_EXX2, x, 1u << (x.rank - 1), true);
  if (!lw_known(in[1]) || l->program->ops.n == before)
    return lw_unknown();
  lw_constant(l, &l->program->ops.v[before], "exx2scale", 1 / (double)n);
  lw_constant(l, &l->program->ops.v[before], "useZeroMean", 0);
  in[2] = lw_unary(l, SW_OP_LAYERNORMSCALE, in[1]);
  double kept = lw_not_vanishing(l, eps, x.dtype);
  if (!l->best && eps > 0 && eps <= 0x1p-25 && x.dtype != SW_F32)
    sw_warn(l->job, "precision: node %s: eps %g is 0 in float16: a row of equal elements becomes NaN; profile best takes 2^-24",
            lw_node(l)->name, eps);
  lw_constant(l, &l->program->ops.v[before + 1], "eps", kept);
  in[3] = optional(l, "weight", x.dtype, 1, n);
  in[4] = optional(l, "bias", x.dtype, 0, n);
  return lw_pointwise(l, SW_OP_LAYERNORMNORM, x.dtype, 5, in);
}

static void set_in_shape(struct lower *l, struct tensor y)
{
  const struct sw_value *v = lw_value(l, 0);
  lw_set(l, 0, lw_reshape(l, y, v->rank, v->size));
}

/* x made to have mean 0 and variance 1 over some dims: mean, sub, mul, mean, add, rsqrt, mul. */
struct standard {
  struct tensor mean, rstd, y; /* mean and rstd = 1 / sqrt(variance + eps) keep the dims, with size 1 */
};

static struct standard standardise(struct lower *l, struct tensor x, uint32_t dims)
{
  struct tensor mean = lw_reduce(l, SW_OP_MEAN, x, dims, true);
  struct tensor d = lw_binary(l, SW_OP_SUB, x, mean);
  struct tensor var = lw_reduce(l, SW_OP_MEAN, lw_binary(l, SW_OP_MUL, d, d), dims, true);
  struct tensor rstd = lw_unary(l, SW_OP_RSQRT, lw_binary_number(l, SW_OP_ADD, var, lw_real(l, "eps")));
  return (struct standard){mean, rstd, lw_binary(l, SW_OP_MUL, d, rstd)};
}

/* exx2 reads whole sticks with their lanes in standard order: not what was cast up to float32, nor padded rows of it. */
static bool suits_exx2(struct lower *l, struct tensor x)
{
  return x.dtype != SW_F32 || !l->best || (!lw_storage(l, x.storage)->cast_up && x.size[x.rank - 1] % 32 == 0);
}

/* The moments are made one by one where somebody reads them, and where exx2 can't make them. */
void lw_op_layer_norm(struct lower *l, int unused)
{
  (void)unused;
  enum sw_dtype t = lw_result_dtype(l, 0);
  struct tensor x = lw_argument(l, lw_arg(l, "input"), t);
  int64_t n = join_dims(l, &x);
  if (!lw_known(x)) {
    lw_set(l, 0, x);
    return;
  }
  bool moments_read = lw_wanted(l, 1) || lw_wanted(l, 2);
  if (!moments_read && suits_exx2(l, x)) {
    set_in_shape(l, layer_norm(l, x, n, lw_real(l, "eps")));
    return;
  }
  struct standard s = standardise(l, x, 1u << (x.rank - 1));
  struct tensor y = s.y;
  if (lw_given(l, "weight"))
    y = lw_binary(l, SW_OP_MUL, y, optional(l, "weight", t, 1, n));
  if (lw_given(l, "bias"))
    y = lw_binary(l, SW_OP_ADD, y, optional(l, "bias", t, 0, n));
  set_in_shape(l, y);
  for (int k = 1; k <= 2; k++) {
    const struct sw_value *v = lw_value(l, k);
    struct tensor m = k == 1 ? s.mean : s.rstd;
    if (v && lw_wanted(l, k))
      lw_set(l, k, lw_reshape(l, lw_cast(l, m, v->dtype), v->rank, v->size));
  }
}

/* mul, mean, add, rsqrt, mul, and mul by the weight; in the dtype of the input. */
void lw_op_rms_norm(struct lower *l, int unused)
{
  (void)unused;
  enum sw_dtype t = lw_result_dtype(l, 0);
  struct tensor x = lw_argument(l, lw_arg(l, "input"), t);
  int64_t n = join_dims(l, &x);
  if (!lw_known(x)) {
    lw_set(l, 0, x);
    return;
  }
  double eps = lw_given(l, "eps") ? lw_real(l, "eps") : 1.1920928955078125e-07; /* of float32, as PyTorch computes it */
  struct tensor m = lw_reduce(l, SW_OP_MEAN, lw_binary(l, SW_OP_MUL, x, x), 1u << (x.rank - 1), true);
  struct tensor r = lw_unary(l, SW_OP_RSQRT, lw_binary_number(l, SW_OP_ADD, m, eps));
  struct tensor y = lw_binary(l, SW_OP_MUL, x, r);
  if (lw_given(l, "weight"))
    y = lw_binary(l, SW_OP_MUL, y, optional(l, "weight", t, 1, n));
  set_in_shape(l, y);
}

/* -- norms with statistics per channel (dim 1) -- */

/* A [C] vector seen as [C,1,..]: broadcasts over dim 1 of a tensor of that rank. */
static struct tensor per_channel(struct tensor v, int rank)
{
  for (int d = 2; d < rank; d++)
    v = lw_unsqueeze(v, v.rank);
  return v;
}

/* y times the weight and plus the bias of its channel, where there are some. */
static struct tensor affine_per_channel(struct lower *l, struct tensor y, const struct sw_arg *weight, const struct sw_arg *bias)
{
  if (weight && weight->kind == SW_ARG_VALUE)
    y = lw_binary(l, SW_OP_MUL, y, per_channel(lw_argument(l, weight, y.dtype), y.rank));
  if (bias && bias->kind == SW_ARG_VALUE)
    y = lw_binary(l, SW_OP_ADD, y, per_channel(lw_argument(l, bias, y.dtype), y.rank));
  return y;
}

/* Result 0 is y; the statistics, the other results, are made by nobody. */
static void set_first_only(struct lower *l, struct tensor y)
{
  for (int k = 1; k < lw_node(l)->n_results; k++)
    if (lw_wanted(l, k)) {
      lw_refuse(l, "use the first result only", "the statistics of this norm as results");
      return;
    }
  set_in_shape(l, y);
}

/* The statistics of the batch itself, over all dims but the channels. x is seen as [N, C, rest]. */
static void batch_statistics(struct lower *l)
{
  struct tensor x = lw_argument(l, &lw_node(l)->args[0], lw_result_dtype(l, 0));
  if (!lw_known(x)) {
    lw_set(l, 0, x);
    return;
  }
  int64_t size[] = {x.size[0], x.size[1], 1};
  for (int d = 2; d < x.rank; d++)
    size[2] *= x.size[d];
  /* the dims of size 1 stay out: one sample is an instance norm, a batch of vectors has no rest */
  uint32_t dims = (size[0] > 1 ? 1u : 0) | (size[2] > 1 || size[0] == 1 ? 4u : 0);
  struct tensor y = standardise(l, lw_reshape(l, x, 3, size), dims).y;
  set_first_only(l, affine_per_channel(l, lw_reshape(l, y, x.rank, x.size), lw_arg(l, "weight"), lw_arg(l, "bias")));
}

/* Folds the kept statistics into one factor and one shift per channel, both [C]:
 * y = x * (w / sqrt(var + eps)) + (b - mean * w / sqrt(var + eps)) */
void lw_op_batch_norm(struct lower *l, int unused)
{
  (void)unused;
  enum sw_dtype t = lw_result_dtype(l, 0);
  if (!lw_given(l, "running_mean")) {
    batch_statistics(l);
    return;
  }
  if (lw_given(l, "training") && lw_bool(l, "training")) {
    lw_refuse(l, "export the model in eval mode", "batch norm in training mode writes its running statistics");
    return;
  }
  struct tensor x = lw_argument(l, lw_arg(l, "input"), t);
  struct tensor mean = lw_argument(l, lw_arg(l, "running_mean"), t), var = lw_argument(l, lw_arg(l, "running_var"), t);
  struct tensor scale = lw_unary(l, SW_OP_RSQRT, lw_binary_number(l, SW_OP_ADD, var, lw_real(l, "eps")));
  if (lw_given(l, "weight"))
    scale = lw_binary(l, SW_OP_MUL, scale, lw_argument(l, lw_arg(l, "weight"), t));
  struct tensor shift = lw_binary(l, SW_OP_MUL, mean, scale);
  if (lw_given(l, "bias"))
    shift = lw_binary(l, SW_OP_SUB, lw_argument(l, lw_arg(l, "bias"), t), shift);
  else
    shift = lw_unary(l, SW_OP_NEG, shift);
  struct tensor y = lw_binary(l, SW_OP_MUL, x, per_channel(scale, x.rank));
  lw_set(l, 0, lw_binary(l, SW_OP_ADD, y, per_channel(shift, x.rank)));
}

/* x seen as [N, groups, C / groups, ..]: centred and scaled over the rest, then weight and bias per channel. Instance norm: one
 * group a channel; a batch norm of statistics of its own is one where the samples were made channels (operand.c). */
void lw_op_group_norm(struct lower *l, int kind)
{
  struct sw_arg of = lw_node(l)->args[0], weight = *lw_arg(l, "weight"), bias = *lw_arg(l, "bias");
  struct lw_instances found;
  if (kind != LW_GROUPS && l->best && lw_find_instances(l, lw_node(l), &found)) {
    of.value = found.x;
    weight.value = found.weight < 0 ? weight.value : found.weight;
    bias.value = found.bias < 0 ? bias.value : found.bias;
  } else if (kind == LW_BATCH) {
    batch_statistics(l);
    return;
  }
  struct tensor x = lw_argument(l, &of, lw_result_dtype(l, 0));
  if (!lw_known(x)) {
    lw_set(l, 0, x);
    return;
  }
  if (kind == LW_INSTANCES && lw_given(l, "use_input_stats") && !lw_bool(l, "use_input_stats")) {
    lw_op_batch_norm(l, 0);
    return;
  }
  if (kind == LW_INSTANCES && lw_given(l, "running_mean")) {
    lw_refuse(l, "export the model in eval mode", "instance norm in training mode writes its running statistics");
    return;
  }
  const char *name = lw_given(l, "num_groups") ? "num_groups" : "group";
  int64_t groups = kind != LW_GROUPS ? x.size[1] : lw_int(l, name), size[SW_MAX_RANK] = {x.size[0], groups, x.size[1] / groups};
  uint32_t dims = size[2] > 1 || x.rank == 2 ? 4 : 0;
  for (int d = 2; d < x.rank; d++) {
    size[d + 1] = x.size[d];
    dims |= x.size[d] > 1 || dims == 0 ? 2u << d : 0;
  }
  struct tensor y = standardise(l, lw_reshape(l, x, x.rank + 1, size), dims).y;
  set_first_only(l, affine_per_channel(l, lw_reshape(l, y, x.rank, x.size), &weight, &bias));
}
