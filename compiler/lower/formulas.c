/* Elementwise functions that PyTorch has as one overload and the device as a few ops. */
#include "compiler/lower/families.h"

#include <math.h>

static bool computes(enum sw_dtype t)
{
  return t == SW_F16 || t == SW_BF16 || t == SW_F32;
}

static struct tensor number(struct lower *l, double x, struct tensor like)
{
  return lw_scalar(l, x, like.dtype);
}

/* x with `other` where it is `op` to a number. */
static struct tensor replaced(struct lower *l, enum sw_device_op op, struct tensor x, double than, struct tensor other)
{
  return lw_where(l, lw_binary_number(l, op, x, than), other, x);
}

/* log(a / (1 - a)), a kept eps away from 0 and 1. */
static struct tensor logit(struct lower *l, struct tensor x)
{
  if (lw_given(l, "eps") && lw_real(l, "eps") > 0.5)
    return lw_refuse(l, "an eps of at most 0.5", "an eps that leaves no number between it and 1 - eps");
  if (lw_given(l, "eps"))
    x = lw_clip(l, x, lw_real(l, "eps"), 1 - lw_real(l, "eps"));
  struct tensor rest = lw_binary(l, SW_OP_SUB, number(l, 1, x), x);
  return lw_unary(l, SW_OP_LOG, lw_binary(l, SW_OP_DIV, x, rest));
}

/* Numbers in place of NaN, inf and -inf; left out they are 0 and the ends of the dtype. */
static struct tensor without_infinities(struct lower *l, struct tensor x)
{
  double most = x.dtype == SW_F16 ? 65504 : x.dtype == SW_BF16 ? 0x1.fep127 : 0x1.fffffep127;
  double nan = lw_given(l, "nan") ? lw_real(l, "nan") : 0;
  double high = lw_given(l, "posinf") ? lw_real(l, "posinf") : most, low = lw_given(l, "neginf") ? lw_real(l, "neginf") : -most;
  x = lw_where(l, lw_binary(l, SW_OP_NE, x, x), number(l, nan, x), x);
  x = replaced(l, SW_OP_EQ, x, INFINITY, number(l, high, x));
  return replaced(l, SW_OP_EQ, x, -INFINITY, number(l, low, x));
}

/* log(e^a + e^b) = max + softplus(-|a - b|); equal ones, infinities among them, have no difference to speak of. */
static struct tensor log_sum(struct lower *l, struct tensor a, struct tensor b)
{
  struct tensor most = lw_binary(l, SW_OP_MAXIMUM, a, b);
  struct tensor apart = lw_unary(l, SW_OP_NEG, lw_unary(l, SW_OP_ABS, lw_binary(l, SW_OP_SUB, a, b)));
  struct tensor sum = lw_binary(l, SW_OP_ADD, most, lw_softplus(l, apart, 1, 20));
  struct tensor twice = lw_binary_number(l, SW_OP_ADD, most, log(2));
  return lw_where(l, lw_binary(l, SW_OP_EQ, a, b), twice, sum);
}

/* Questions about x, whose dtype is not that of the answer. */
void lw_op_question(struct lower *l, int which)
{
  struct tensor x = lw_tensor(l, "self");
  if (lw_known(x) && !computes(lw_lanes(l, x))) {
    lw_host(l, 0);
    return;
  }
  if (which == LW_ISFINITE)
    lw_set(l, 0, lw_binary_number(l, SW_OP_LT, lw_unary(l, SW_OP_ABS, x), INFINITY));
  else
    lw_set(l, 0, lw_binary_number(l, SW_OP_EQ, x, which == LW_ISPOSINF ? INFINITY : -INFINITY));
}

void lw_op_more(struct lower *l, int which)
{
  enum sw_dtype t = lw_result_dtype(l, 0);
  if (!computes(t)) {
    lw_host(l, 0);
    return;
  }
  struct tensor x = lw_argument(l, &lw_node(l)->args[0], t), y = lw_unknown();
  switch (which) {
  case LW_HARDSHRINK: {
    struct tensor small = lw_binary_number(l, SW_OP_LE, lw_unary(l, SW_OP_ABS, x), lw_real(l, "lambd"));
    y = lw_where(l, small, number(l, 0, x), x);
    break;
  }
  case LW_SOFTSHRINK:
    y = lw_binary(l, SW_OP_SUB, x, lw_clip(l, x, -lw_real(l, "lambd"), lw_real(l, "lambd")));
    break;
  case LW_THRESHOLD:
    y = replaced(l, SW_OP_LE, x, lw_real(l, "threshold"), number(l, lw_real(l, "value"), x));
    break;
  case LW_RRELU:
    if (lw_bool(l, "training")) {
      lw_refuse(l, "export the model in eval mode", "rrelu in training mode draws random slopes");
      return;
    }
    y = replaced(l, SW_OP_LT, x, 0, lw_binary_number(l, SW_OP_MUL, x, (lw_real(l, "lower") + lw_real(l, "upper")) / 2));
    break;
  case LW_LOGIT:
    y = logit(l, x);
    break;
  case LW_NAN_TO_NUM:
    y = without_infinities(l, x);
    break;
  case LW_DEG2RAD:
    y = lw_binary_number(l, SW_OP_MUL, x, M_PI / 180);
    break;
  case LW_RAD2DEG:
    y = lw_binary_number(l, SW_OP_MUL, x, 180 / M_PI);
    break;
  case LW_LOGADDEXP:
    y = log_sum(l, x, lw_argument(l, lw_arg(l, "other"), t));
    break;
  default: { /* LW_HEAVISIDE */
    struct tensor step = lw_operand(l, lw_binary_number(l, SW_OP_GT, x, 0), t);
    y = lw_where(l, lw_binary_number(l, SW_OP_EQ, x, 0), lw_argument(l, lw_arg(l, "values"), t), step);
  }
  }
  lw_set(l, 0, y);
}
