/* Elementwise operations. Reference: ops.md 5.1, 5.2. A binary node computes in the dtype of its result; integers have
 * no arithmetic on the device, so such a node becomes a host step. */
#include "compiler/lower/families.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* -- dtypes -- */

static int category(enum sw_dtype t)
{
  return sw_dtype_is_complex(t) ? 3 : sw_dtype_is_float(t) ? 2 : sw_dtype_is_integer(t) ? 1 : 0;
}

/* torch.promote_types for two dtypes of one category. */
static enum sw_dtype wider(enum sw_dtype a, enum sw_dtype b)
{
  if (a == b)
    return a;
  if ((a == SW_F16 && b == SW_BF16) || (a == SW_BF16 && b == SW_F16))
    return SW_F32;
  if (sw_dtype_bytes(a) == sw_dtype_bytes(b) && (a == SW_U8 || b == SW_U8))
    return SW_I16;
  return sw_dtype_bytes(a) >= sw_dtype_bytes(b) ? a : b;
}

/* torch.result_type: tensors with dims decide, 0-d tensors and then numbers only raise the category. */
static enum sw_dtype result_type(struct lower *l, int n, const struct sw_arg *const *args)
{
  enum sw_dtype of[3];
  bool any[3] = {false};
  for (int i = 0; i < n; i++) {
    int class = 2;
    enum sw_dtype t;
    if (lw_is_tensor(l, args[i])) {
      class = l->graph->values.v[args[i]->value].rank == 0;
      t = lw_dtype_of_value(l, args[i]->value);
    } else {
      t = args[i]->kind == SW_ARG_REAL ? SW_F32 : args[i]->kind == SW_ARG_BOOL ? SW_BOOL : SW_I64;
    }
    of[class] = !any[class] ? t : category(of[class]) == category(t) ? wider(of[class], t)
              : category(of[class]) > category(t) ? of[class] : t;
    any[class] = true;
  }
  enum sw_dtype r = SW_BOOL;
  bool have = false;
  for (int class = 0; class < 3; class++)
    if (any[class] && (!have || category(of[class]) > category(r))) {
      r = of[class];
      have = true;
    }
  return r;
}

struct tensor lw_argument(struct lower *l, const struct sw_arg *a, enum sw_dtype dtype)
{
  if (!lw_is_tensor(l, a)) {
    double x = a->kind == SW_ARG_REAL ? a->r : (double)lw_int_of(l, a);
    const struct sw_node *n = lw_node(l);
    bool narrow = n->n_results > 0 && n->results[0] >= 0 && l->values[n->results[0]].narrow;
    return lw_scalar(l, narrow ? lw_narrowed(x, dtype) : x, dtype);
  }
  if (lw_constant_elements(l, a->value) && lw_dtype_of_value(l, a->value) != dtype)
    return lw_constant_value(l, a->value, dtype);
  return lw_operand(l, lw_tensor_of_value(l, a->value), dtype);
}

static struct tensor argument(struct lower *l, const char *name, enum sw_dtype dtype)
{
  return lw_argument(l, lw_arg(l, name), dtype);
}

struct tensor lw_spread(struct lower *l, struct tensor scalar, struct tensor like)
{
  if (l->best || !lw_known(scalar) || !lw_known(like))
    return scalar;
  return lw_fill(l, l->program->storages.v[scalar.storage].fill, scalar.dtype, like.rank, like.size, NULL);
}

static void set0(struct lower *l, struct tensor t)
{
  enum sw_dtype want = lw_result_dtype(l, 0);
  lw_set(l, 0, t.dtype == SW_BOOL && want != SW_BOOL ? lw_cast(l, t, want) : t);
}

/* -- unary -- */

void lw_op_unary(struct lower *l, int op)
{
  enum sw_dtype t = lw_result_dtype(l, 0);
  if (!lw_computes(t)) {
    lw_host(l, 0);
    return;
  }
  lw_set(l, 0, lw_unary(l, (enum sw_device_op)op, argument(l, lw_node(l)->args[0].name, t)));
}

static struct tensor self(struct lower *l)
{
  return lw_argument(l, &lw_node(l)->args[0], lw_result_dtype(l, 0));
}

/* A unary node that is a small formula. */
void lw_op_formula(struct lower *l, int which)
{
  enum sw_dtype t = lw_result_dtype(l, 0);
  if (!lw_computes(t) && t != SW_BOOL) {
    lw_host(l, 0);
    return;
  }
  struct tensor x = which == LW_ISNAN || which == LW_ISINF ? lw_tensor(l, "self") : self(l), y;
  if ((which == LW_ISNAN || which == LW_ISINF) && !lw_computes(lw_lanes(l, x)) && lw_known(x)) {
    lw_host(l, 0);
    return;
  }
  switch (which) {
  case LW_SQUARE:
    y = lw_binary(l, SW_OP_MUL, x, x);
    break;
  case LW_CEIL:
    y = lw_unary(l, SW_OP_NEG, lw_unary(l, SW_OP_FLOOR, lw_unary(l, SW_OP_NEG, x)));
    break;
  case LW_SILU: /* the device's silu takes fp16 only */
    y = t == SW_F32 && l->best ? lw_binary(l, SW_OP_MUL, x, lw_unary(l, SW_OP_SIGMOID, x)) : lw_unary(l, SW_OP_SILU, x);
    break;
  case LW_MISH:
    y = lw_binary(l, SW_OP_MUL, x, lw_unary(l, SW_OP_TANH, lw_softplus(l, x, 1, 20)));
    break;
  case LW_HARDSIGMOID:
  case LW_HARDSWISH: {
    struct tensor s = lw_binary_number(l, SW_OP_ADD, x, 3);
    s = l->best ? lw_clip(l, s, 0, 6) : lw_clip(l, lw_clip(l, s, 0, 65504), -65504, 6);
    y = lw_binary_number(l, SW_OP_DIV, which == LW_HARDSWISH ? lw_binary(l, SW_OP_MUL, x, s) : s, 6);
    break;
  }
  case LW_LOG_SIGMOID:
    y = lw_unary(l, SW_OP_NEG, lw_softplus(l, lw_unary(l, SW_OP_NEG, x), 1, 20));
    break;
  case LW_SIGN: {
    struct tensor in[2];
    in[0] = lw_operand(l, lw_binary_number(l, SW_OP_GT, x, 0), t);
    in[1] = lw_operand(l, lw_binary_number(l, SW_OP_LT, x, 0), t);
    y = lw_pointwise(l, SW_OP_SUB, t, 2, in);
    break;
  }
  case LW_ISNAN:
    y = lw_binary(l, SW_OP_NE, x, x);
    break;
  case LW_ISINF:
    y = lw_binary_number(l, SW_OP_EQ, lw_unary(l, SW_OP_ABS, x), INFINITY);
    break;
  default: { /* LW_GLU */
    int dim = lw_dim(lw_int(l, "dim"), x.rank);
    int64_t half = lw_known(x) ? x.size[dim] / 2 : 0;
    struct tensor gate = lw_unary(l, SW_OP_SIGMOID, lw_slice(x, dim, half, half, 1));
    y = lw_binary(l, SW_OP_MUL, lw_slice(x, dim, 0, half, 1), gate);
  }
  }
  set0(l, y);
}

/* beta 1 is the device's own; else softplus(beta x) / beta. */
struct tensor lw_softplus(struct lower *l, struct tensor x, double beta, double threshold)
{
  if (beta != 1)
    x = lw_binary_number(l, SW_OP_MUL, x, beta);
  int before = l->program->ops.n;
  struct tensor y = lw_unary(l, SW_OP_SOFTPLUS, x);
  if (l->program->ops.n > before) {
    lw_constant(l, &l->program->ops.v[before], "softplusBeta", 1);
    lw_constant(l, &l->program->ops.v[before], "softplusThresh", threshold);
  }
  return beta != 1 ? lw_binary_number(l, SW_OP_MUL, y, 1 / beta) : y;
}

void lw_op_softplus(struct lower *l, int unused)
{
  (void)unused;
  lw_set(l, 0, lw_softplus(l, self(l), lw_real(l, "beta"), lw_real(l, "threshold")));
}

/* where(x > 0, scale x, a (exp(b x) - 1)) */
static struct tensor elu(struct lower *l, struct tensor x, double scale, double a, double b)
{
  struct tensor up = scale == 1 ? x : lw_binary_number(l, SW_OP_MUL, x, scale);
  struct tensor down = lw_unary(l, SW_OP_EXP, b == 1 ? x : lw_binary_number(l, SW_OP_MUL, x, b));
  down = lw_binary_number(l, SW_OP_SUB, down, 1);
  down = a == 1 ? down : lw_binary_number(l, SW_OP_MUL, down, a);
  return lw_where(l, lw_binary_number(l, SW_OP_GT, x, 0), up, down);
}

void lw_op_elu(struct lower *l, int which)
{
  struct tensor x = self(l);
  if (which == LW_SELU)
    lw_set(l, 0, elu(l, x, 1.0507009873554804934193349852946, 1.0507009873554804934 * 1.6732632423543772848, 1));
  else if (which == LW_CELU)
    lw_set(l, 0, elu(l, x, 1, lw_real(l, "alpha"), 1 / lw_real(l, "alpha")));
  else
    lw_set(l, 0, elu(l, x, lw_real(l, "scale"), lw_real(l, "alpha") * lw_real(l, "scale"), lw_real(l, "input_scale")));
}

void lw_op_leaky_relu(struct lower *l, int which)
{
  struct tensor x = self(l), w;
  if (which == LW_PRELU) {
    w = argument(l, "weight", x.dtype);
    if (lw_known(w) && w.rank == 1 && x.rank > 1) { /* one slope a channel, dim 1 */
      int64_t size[SW_MAX_RANK];
      for (int d = 0; d < x.rank; d++)
        size[d] = d == 1 ? w.size[0] : 1;
      w = lw_reshape(l, w, x.rank, size);
    }
  } else {
    w = lw_scalar(l, lw_real(l, "negative_slope"), x.dtype);
  }
  struct tensor positive = lw_binary_number(l, SW_OP_GT, x, 0);
  w = lw_binary(l, SW_OP_MUL, x, w);
  lw_set(l, 0, lw_where(l, positive, x, w));
}

/* Bounds: numbers, tensors or None. */
void lw_op_clamp(struct lower *l, int which)
{
  enum sw_dtype t = lw_result_dtype(l, 0);
  if (!lw_computes(t)) {
    lw_host(l, 0);
    return;
  }
  struct tensor x = self(l);
  const char *low = which == LW_HARDTANH ? "min_val" : "min", *high = which == LW_HARDTANH ? "max_val" : "max";
  bool has_low = which == LW_RELU6 || lw_given(l, low), has_high = which == LW_RELU6 || lw_given(l, high);
  bool tensors = lw_is_tensor(l, lw_arg(l, low)) || lw_is_tensor(l, lw_arg(l, high));
  if (which == LW_RELU6) {
    lw_set(l, 0, lw_clip(l, x, 0, 6));
  } else if (tensors || (l->best && (t == SW_F32 || has_low != has_high))) { /* clip takes numbers and fp16 only, and has two bounds */
    if (has_low)
      x = lw_binary(l, SW_OP_MAXIMUM, x, argument(l, low, t));
    if (has_high)
      x = lw_binary(l, SW_OP_MINIMUM, x, argument(l, high, t));
    lw_set(l, 0, x);
  } else {
    double least = has_low ? lw_real(l, low) : -65504, most = has_high ? lw_real(l, high) : 65504;
    if (has_low && has_high && !l->best) { /* the reference takes one bound at a time */
      x = lw_clip(l, x, least, 65504);
      least = -65504;
    }
    lw_set(l, 0, lw_clip(l, x, least, most));
  }
}

/* Repeated squaring: x^5 = x (x^2)^2. A negative exponent inverts x first. */
void lw_op_pow(struct lower *l, int unused)
{
  (void)unused;
  double e = lw_real(l, "exponent");
  enum sw_dtype t = lw_result_dtype(l, 0);
  bool whole = e == floor(e) && fabs(e) < 32;
  if (!lw_computes(t) || !(whole || fabs(e) == 0.5)) {
    lw_host(l, 0);
    return;
  }
  struct tensor x = self(l);
  if (fabs(e) == 0.5) {
    lw_set(l, 0, lw_unary(l, e > 0 ? SW_OP_SQRT : SW_OP_RSQRT, x));
    return;
  }
  if (e == 0) {
    lw_set(l, 0, lw_expand(l, lw_scalar(l, 1, t), x.rank, x.size));
    return;
  }
  if (e < 0)
    x = lw_unary(l, SW_OP_RECIPROCAL, x);
  struct tensor y = lw_unknown();
  bool started = false;
  for (int n = (int)fabs(e); n; n >>= 1) {
    if (n & 1)
      y = started ? lw_binary(l, SW_OP_MUL, y, x) : x;
    started = started || n & 1;
    if (n > 1)
      x = lw_binary(l, SW_OP_MUL, x, x);
  }
  lw_set(l, 0, e == 1 && !l->best ? lw_clone(l, y) : y);
}

/* -- binary -- */

/* y * alpha as the reference spells it. */
static struct tensor scaled(struct lower *l, struct tensor y, double alpha)
{
  if (alpha == 1 || !lw_known(y))
    return y;
  return lw_binary(l, SW_OP_MUL, y, lw_spread(l, lw_scalar(l, alpha, lw_lanes(l, y)), y));
}

/* The reference's integers (ops.md 1.6): to float32 on the host, the op on the device, back on the host. */
static void run_int64(struct lower *l, enum sw_device_op op)
{
  const struct sw_node *n = lw_node(l);
  sw_warn(l->job, "%s: int64 runs in float32, which is exact up to 2^24 only; profile best computes it on the host", n->name);
  struct tensor in[2];
  for (int i = 0; i < 2; i++)
    in[i] = lw_argument(l, &n->args[i], SW_F32);
  if (lw_given(l, "alpha"))
    in[1] = scaled(l, in[1], lw_real(l, "alpha"));
  struct tensor y = lw_pointwise(l, op, SW_F32, 2, in);
  lw_set(l, 0, lw_known(y) ? lw_host_cast(l, y, SW_I64) : y);
}

static bool is_power_of_two(const struct sw_arg *a)
{
  int exponent;
  double x = a->kind == SW_ARG_REAL ? a->r : a->kind == SW_ARG_INT ? (double)a->i : 0;
  return fabs(frexp(x, &exponent)) == 0.5 && abs(exponent) < 14;
}

/* The number that a node fills a tensor with whose shape it takes from another one; NAN: none. */
static double filling(struct lower *l, int value)
{
  static const struct {
    const char *target;
    double number;
  } table[] = {{"aten.zeros_like.default", 0}, {"aten.new_zeros.default", 0}, {"aten.ones_like.default", 1}, {"aten.new_ones.default", 1}};
  int node = l->graph->values.v[value].node;
  for (size_t i = 0; node >= 0 && i < sizeof table / sizeof table[0]; i++)
    if (!strcmp(l->graph->nodes.v[node].target, table[i].target) && !l->values[l->values[value].root].mutated)
      return table[i].number;
  return NAN;
}

/* Whether a tensor is full of one number. */
static bool is_full_of(struct lower *l, const struct sw_arg *a, double number)
{
  if (lw_is_tensor(l, a) && filling(l, a->value) == number)
    return true;
  const struct sw_tensor *t = lw_is_tensor(l, a) ? lw_constant_elements(l, a->value) : NULL;
  if (!t || !t->rank)
    return false;
  const double *x = lw_constant_doubles(l, a->value);
  int64_t n = sw_value_elements(&l->graph->values.v[a->value]);
  for (int64_t i = 0; i < n; i++)
    if (x[i] != number)
      return false;
  return n > 0;
}

/* x + 0, x - 0, x * 1 and x / 1 with a whole tensor of zeros or ones are x; a zero keeps its sign. */
static bool is_nothing(struct lower *l, enum sw_device_op op)
{
  const struct sw_node *n = lw_node(l);
  bool sum = op == SW_OP_ADD || op == SW_OP_SUB;
  if ((!sum && op != SW_OP_MUL && op != SW_OP_DIV) || (lw_given(l, "alpha") && lw_real(l, "alpha") != 1))
    return false;
  for (int k = op == SW_OP_ADD || op == SW_OP_MUL ? 0 : 1; k < 2; k++) {
    const struct sw_arg *x = &n->args[1 - k];
    if (!lw_is_tensor(l, x) || !is_full_of(l, &n->args[k], sum ? 0 : 1))
      continue;
    const struct sw_value *v = lw_value(l, 0), *w = &l->graph->values.v[x->value];
    if (v->rank != w->rank || v->dtype != w->dtype || memcmp(v->size, w->size, (size_t)v->rank * sizeof *v->size))
      continue;
    lw_set(l, 0, lw_tensor_of(l, x));
    return true;
  }
  return false;
}

void lw_op_binary(struct lower *l, int op)
{
  enum sw_dtype t = lw_result_dtype(l, 0);
  const struct sw_node *n = lw_node(l);
  if (is_nothing(l, (enum sw_device_op)op))
    return;
  if (t == SW_BOOL && (op == SW_OP_ADD || op == SW_OP_MUL || op == SW_OP_MAXIMUM || op == SW_OP_MINIMUM)) {
    struct tensor a = argument(l, n->args[0].name, SW_BOOL), b = argument(l, n->args[1].name, SW_BOOL);
    lw_set(l, 0, lw_binary(l, op == SW_OP_ADD ? SW_OP_MAXIMUM : (enum sw_device_op)op, a, b));
    return;
  }
  if (t == SW_I64 && !l->best) {
    run_int64(l, (enum sw_device_op)op);
    return;
  }
  if (!lw_computes(t)) {
    lw_host(l, 0);
    return;
  }
  struct tensor a = lw_argument(l, &n->args[0], t), b = lw_argument(l, &n->args[1], t);
  if (lw_given(l, "alpha"))
    b = scaled(l, b, lw_real(l, "alpha"));
  if (op == SW_OP_DIV && is_power_of_two(&n->args[1])) {
    op = SW_OP_MUL; /* exact, and cheaper */
    b = lw_scalar(l, 1 / lw_real(l, n->args[1].name), t);
  }
  struct tensor in[] = {a, b};
  lw_set(l, 0, lw_pointwise(l, (enum sw_device_op)op, t, 2, in));
}

void lw_op_rsub(struct lower *l, int unused)
{
  (void)unused;
  enum sw_dtype t = lw_result_dtype(l, 0);
  if (!lw_computes(t)) {
    lw_host(l, 0);
    return;
  }
  struct tensor in[2];
  in[0] = argument(l, "other", t);
  in[1] = scaled(l, argument(l, "self", t), lw_real(l, "alpha"));
  lw_set(l, 0, lw_pointwise(l, SW_OP_SUB, t, 2, in));
}

void lw_op_div_mode(struct lower *l, int unused)
{
  (void)unused;
  enum sw_dtype t = lw_result_dtype(l, 0);
  const struct sw_arg *mode = lw_arg(l, "rounding_mode");
  bool floors = mode->kind == SW_ARG_STR || !strcmp(lw_node(l)->target, "aten.floor_divide.default");
  bool trunc = mode->kind == SW_ARG_STR && mode->s[0] == 't';
  if (!lw_computes(t) || trunc) {
    lw_host(l, 0);
    return;
  }
  struct tensor in[2];
  in[0] = argument(l, "self", t);
  in[1] = argument(l, "other", t);
  struct tensor q = lw_pointwise(l, SW_OP_DIV, t, 2, in);
  lw_set(l, 0, floors ? lw_unary(l, SW_OP_FLOOR, q) : q);
}

void lw_op_compare(struct lower *l, int op)
{
  const struct sw_arg *args[] = {lw_arg(l, "self"), lw_arg(l, "other")};
  enum sw_dtype t = result_type(l, 2, args);
  if (!lw_computes(t) && t != SW_BOOL) {
    lw_host(l, 0);
    return;
  }
  struct tensor a = lw_argument(l, args[0], t), b = lw_argument(l, args[1], t);
  lw_set(l, 0, lw_binary(l, (enum sw_device_op)op, a, b));
}

/* self + value * tensor1 * tensor2, in PyTorch's order; the reference multiplies by value last. */
void lw_op_addcmul(struct lower *l, int op)
{
  enum sw_dtype t = lw_result_dtype(l, 0);
  struct tensor a = argument(l, "tensor1", t), b = argument(l, "tensor2", t);
  double value = lw_real(l, "value");
  bool first = value != 1 && l->best;
  if (first)
    a = lw_binary_number(l, SW_OP_MUL, a, value);
  struct tensor p = lw_binary(l, (enum sw_device_op)op, a, b);
  if (value != 1 && !first)
    p = lw_binary_number(l, SW_OP_MUL, p, value);
  lw_set(l, 0, lw_binary(l, SW_OP_ADD, argument(l, "self", t), p));
}

/* w (b - a) + a; from w = 0.5 on (w - 1) (b - a) + b, which gives b for w = 1 (where w is a number, profile best). */
void lw_op_lerp(struct lower *l, int unused)
{
  (void)unused;
  enum sw_dtype t = lw_result_dtype(l, 0);
  struct tensor a = argument(l, "self", t), b = argument(l, "end", t);
  const struct sw_arg *arg = lw_arg(l, "weight");
  bool near = l->best && !lw_is_tensor(l, arg) && fabs(lw_real(l, "weight")) >= 0.5;
  struct tensor d = lw_binary(l, SW_OP_SUB, b, a);
  struct tensor w = near ? lw_scalar(l, lw_real(l, "weight") - 1, t) : lw_argument(l, arg, t);
  if (l->best)
    lw_set(l, 0, lw_binary(l, SW_OP_ADD, lw_binary(l, SW_OP_MUL, w, d), near ? b : a));
  else
    lw_set(l, 0, lw_binary(l, SW_OP_ADD, a, lw_binary(l, SW_OP_MUL, d, w)));
}
