/* Norms, distances, similarities and losses as the formulas they are. */
#include "compiler/lower/families.h"

#include <math.h>
#include <string.h>

static bool computes(enum sw_dtype t)
{
  return t == SW_F16 || t == SW_BF16 || t == SW_F32;
}

static struct tensor argument(struct lower *l, const char *name)
{
  return lw_argument(l, lw_arg(l, name), lw_result_dtype(l, 0));
}

static struct tensor square(struct lower *l, struct tensor x)
{
  return lw_binary(l, SW_OP_MUL, x, x);
}

/* -- norms -- */

/* Orders 1, 2, inf, -inf, 0; unknown for others. */
static struct tensor norm(struct lower *l, struct tensor x, double p, uint32_t dims, bool keepdim)
{
  if (p == 2)
    return lw_unary(l, SW_OP_SQRT, lw_reduce(l, SW_OP_SUM, square(l, x), dims, keepdim));
  if (p == 0)
    return lw_reduce(l, SW_OP_SUM, lw_operand(l, lw_binary_number(l, SW_OP_NE, x, 0), x.dtype), dims, keepdim);
  if (p == 1 || isinf(p))
    return lw_reduce(l, p == 1 ? SW_OP_SUM : p > 0 ? SW_OP_MAX : SW_OP_MIN, lw_unary(l, SW_OP_ABS, x), dims, keepdim);
  return lw_refuse(l, "use order 0, 1, 2 or inf", "a norm of order %g", p);
}

/* norm, frobenius_norm, linalg_norm, linalg_vector_norm: the order is `p` or `ord`, 2 when left out. */
void lw_op_norm(struct lower *l, int unused)
{
  (void)unused;
  const struct sw_arg *a = lw_given(l, "ord") ? lw_arg(l, "ord") : lw_arg(l, "p");
  if (!computes(lw_result_dtype(l, 0))) {
    lw_host(l, 0);
    return;
  }
  struct tensor x = lw_argument(l, &lw_node(l)->args[0], lw_result_dtype(l, 0));
  int64_t listed[SW_MAX_RANK];
  int n = lw_ints(l, "dim", listed);
  bool is_linalg = !strcmp(lw_node(l)->target, "aten.linalg_norm.default");
  bool matrix = is_linalg && a->kind != SW_ARG_NONE && a->kind != SW_ARG_STR && (n == 2 || (!n && x.rank == 2));
  if (matrix || (a->kind == SW_ARG_STR && strcmp(a->s, "fro"))) {
    lw_refuse(l, "use Frobenius' norm, or norms of vectors", "a norm of a matrix other than Frobenius'");
    return;
  }
  double p = a->kind == SW_ARG_REAL ? a->r : a->kind == SW_ARG_NONE || a->kind == SW_ARG_STR ? 2 : (double)lw_int_of(l, a);
  bool keepdim = lw_given(l, "keepdim") && lw_bool(l, "keepdim");
  lw_set(l, 0, lw_known(x) ? norm(l, x, p, lw_dims(l, "dim", x.rank), keepdim) : x);
}

void lw_op_dist(struct lower *l, int unused)
{
  (void)unused;
  struct tensor a = argument(l, "self"), b = argument(l, "other");
  struct tensor d = lw_binary(l, SW_OP_SUB, a, b);
  lw_set(l, 0, lw_known(d) ? norm(l, d, lw_real(l, "p"), (1u << d.rank) - 1, false) : d);
}

/* The norm of x1 - x2 + eps over the last dim. */
void lw_op_pairwise_distance(struct lower *l, int unused)
{
  (void)unused;
  enum sw_dtype x1 = lw_dtype_of_value(l, lw_arg(l, "x1")->value), x2 = lw_dtype_of_value(l, lw_arg(l, "x2")->value);
  if (!sw_dtype_is_float(x1) && !sw_dtype_is_float(x2)) { /* their difference wraps around */
    lw_host(l, 0);
    return;
  }
  struct tensor a = argument(l, "x1"), b = argument(l, "x2");
  struct tensor d = lw_binary(l, SW_OP_SUB, a, b);
  if (lw_real(l, "eps") != 0)
    d = lw_binary_number(l, SW_OP_ADD, d, lw_real(l, "eps"));
  lw_set(l, 0, lw_known(d) ? norm(l, d, lw_real(l, "p"), 1u << (d.rank - 1), lw_bool(l, "keepdim")) : d);
}

/* Every row of the first less every row of the second. */
void lw_op_cdist(struct lower *l, int unused)
{
  (void)unused;
  struct tensor a = argument(l, "x1"), b = argument(l, "x2");
  if (lw_known(a) && lw_known(b)) {
    struct tensor d = lw_binary(l, SW_OP_SUB, lw_unsqueeze(a, a.rank - 1), lw_unsqueeze(b, b.rank - 2));
    lw_set(l, 0, lw_known(d) ? norm(l, d, lw_real(l, "p"), 1u << (d.rank - 1), false) : d);
  }
}

/* x over its length, which counts as eps at least. */
static struct tensor unit(struct lower *l, struct tensor x, int dim, double eps)
{
  struct tensor n = norm(l, x, 2, 1u << dim, true);
  return lw_binary(l, SW_OP_DIV, x, lw_binary_number(l, SW_OP_MAXIMUM, n, eps));
}

void lw_op_cosine_similarity(struct lower *l, int unused)
{
  (void)unused;
  struct tensor a = argument(l, "x1"), b = argument(l, "x2"), in[] = {a, b};
  int rank;
  int64_t size[SW_MAX_RANK];
  if (!lw_known(a) || !lw_known(b) || !lw_broadcast(2, in, &rank, size))
    return;
  int dim = lw_dim(lw_int(l, "dim"), rank);
  double eps = lw_real(l, "eps");
  a = unit(l, lw_expand(l, a, rank, size), dim, eps);
  b = unit(l, lw_expand(l, b, rank, size), dim, eps);
  lw_set(l, 0, lw_reduce(l, SW_OP_SUM, lw_binary(l, SW_OP_MUL, a, b), 1u << dim, false));
}

void lw_op_weight_norm(struct lower *l, int unused)
{
  (void)unused;
  struct tensor v = argument(l, "v"), g = argument(l, "g");
  if (!lw_known(v) || !lw_known(g))
    return;
  struct tensor length = norm(l, v, 2, ((1u << v.rank) - 1) & ~(1u << lw_dim(lw_int(l, "dim"), v.rank)), true);
  lw_set(l, 0, lw_binary(l, SW_OP_MUL, v, lw_binary(l, SW_OP_DIV, g, length)));
}

/* -- losses -- */

/* All of it (0), the mean (1) or the sum (2). */
static void set_loss(struct lower *l, struct tensor y)
{
  int64_t reduction = lw_int(l, "reduction");
  if (lw_known(y) && reduction)
    y = lw_reduce(l, reduction == 1 ? SW_OP_MEAN : SW_OP_SUM, y, (1u << y.rank) - 1, false);
  lw_set(l, 0, y);
}

/* log(x), not below -100. */
static struct tensor bounded_log(struct lower *l, struct tensor x)
{
  return lw_binary_number(l, SW_OP_MAXIMUM, lw_unary(l, SW_OP_LOG, x), -100);
}

static struct tensor one_less(struct lower *l, struct tensor x)
{
  return lw_binary(l, SW_OP_SUB, lw_scalar(l, 1, x.dtype), x);
}

/* t log(x) + (1 - t) log(1 - x), negative */
static struct tensor cross_entropy(struct lower *l, struct tensor x, struct tensor t)
{
  struct tensor yes = lw_binary(l, SW_OP_MUL, t, bounded_log(l, x));
  struct tensor rest = bounded_log(l, one_less(l, x));
  struct tensor no = lw_binary(l, SW_OP_MUL, one_less(l, t), rest);
  return lw_unary(l, SW_OP_NEG, lw_binary(l, SW_OP_ADD, yes, no));
}

/* (1 - t) x + (1 + (w - 1) t) softplus(-x) */
static struct tensor logits_entropy(struct lower *l, struct tensor x, struct tensor t)
{
  struct tensor up = lw_softplus(l, lw_unary(l, SW_OP_NEG, x), 1, 20);
  if (lw_given(l, "pos_weight")) {
    struct tensor w = lw_binary_number(l, SW_OP_SUB, argument(l, "pos_weight"), 1);
    up = lw_binary(l, SW_OP_MUL, lw_binary_number(l, SW_OP_ADD, lw_binary(l, SW_OP_MUL, w, t), 1), up);
  }
  return lw_binary(l, SW_OP_ADD, lw_binary(l, SW_OP_MUL, one_less(l, t), x), up);
}

/* t (log t - x), 0 where t is 0; of logarithms e^t (t - x). */
static struct tensor divergence(struct lower *l, struct tensor x, struct tensor t)
{
  if (lw_bool(l, "log_target"))
    return lw_binary(l, SW_OP_MUL, lw_unary(l, SW_OP_EXP, t), lw_binary(l, SW_OP_SUB, t, x));
  struct tensor y = lw_binary(l, SW_OP_MUL, t, lw_binary(l, SW_OP_SUB, lw_unary(l, SW_OP_LOG, t), x));
  return lw_where(l, lw_binary_number(l, SW_OP_EQ, t, 0), lw_scalar(l, 0, x.dtype), y);
}

void lw_op_loss(struct lower *l, int what)
{
  if (!computes(lw_result_dtype(l, 0))) {
    lw_host(l, 0);
    return;
  }
  struct tensor x = argument(l, "self"), t = argument(l, "target"), y = lw_unknown(), d, e;
  switch (what) {
  case LW_LOSS_SQUARE:
    y = square(l, lw_binary(l, SW_OP_SUB, x, t));
    break;
  case LW_LOSS_ABS:
    y = lw_unary(l, SW_OP_ABS, lw_binary(l, SW_OP_SUB, x, t));
    break;
  case LW_LOSS_SMOOTH:
  case LW_LOSS_HUBER: { /* half a square inside the edge, a line of that slope outside */
    bool huber = what == LW_LOSS_HUBER;
    double edge = lw_real(l, huber ? "delta" : "beta");
    d = lw_binary(l, SW_OP_SUB, x, t);
    e = lw_unary(l, SW_OP_ABS, d);
    struct tensor line = lw_binary_number(l, SW_OP_SUB, e, 0.5 * edge);
    line = huber && edge != 1 ? lw_binary_number(l, SW_OP_MUL, line, edge) : line;
    if (edge == 0) {
      y = line;
      break;
    }
    struct tensor curve = lw_binary_number(l, SW_OP_MUL, square(l, d), huber ? 0.5 : 0.5 / edge);
    y = lw_where(l, lw_binary_number(l, huber ? SW_OP_LE : SW_OP_LT, e, edge), curve, line);
    break;
  }
  case LW_LOSS_BCE:
    y = cross_entropy(l, x, t);
    break;
  case LW_LOSS_BCE_LOGITS:
    y = logits_entropy(l, x, t);
    break;
  case LW_LOSS_KL:
    y = divergence(l, x, t);
    break;
  default: /* LW_LOSS_SOFT_MARGIN: log(1 + e^(-t x)) */
    y = lw_softplus(l, lw_unary(l, SW_OP_NEG, lw_binary(l, SW_OP_MUL, t, x)), 1, 20);
  }
  if (lw_given(l, "weight"))
    y = lw_binary(l, SW_OP_MUL, y, argument(l, "weight"));
  set_loss(l, y);
}
