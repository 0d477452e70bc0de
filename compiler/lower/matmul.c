/* Matrix products. Reference: ops.md 5.5. The operands may be any views; only the number of batch dims is matched. */
#include "compiler/lower/families.h"

#include <string.h>

/* mm, bmm, matmul: 1-d operands get a dim that goes away again. */
void lw_op_matmul(struct lower *l, int unused)
{
  (void)unused;
  const struct sw_node *n = lw_node(l);
  enum sw_dtype t = lw_result_dtype(l, 0);
  struct tensor x = lw_argument(l, &n->args[0], t), y = lw_argument(l, &n->args[1], t);
  if (!lw_known(x) || !lw_known(y)) {
    lw_set(l, 0, lw_unknown());
    return;
  }
  bool row = x.rank == 1, column = y.rank == 1;
  if (row)
    x = lw_unsqueeze(x, 0);
  if (column)
    y = lw_unsqueeze(y, 1);
  struct tensor z = lw_matmul(l, x, y);
  if (column)
    z = lw_squeeze(z, z.rank - 1);
  if (row)
    z = lw_squeeze(z, z.rank - (column ? 1 : 2));
  lw_set(l, 0, z);
}

struct tensor lw_linear(struct lower *l, struct tensor x, struct tensor w, const struct tensor *bias)
{
  if (!lw_known(x) || !lw_known(w))
    return lw_unknown();
  bool row = x.rank == 1;
  if (row)
    x = lw_unsqueeze(x, 0);
  struct tensor y = lw_matmul(l, x, lw_transpose(w, 0, 1));
  if (row)
    y = lw_squeeze(y, 0);
  return bias ? lw_binary(l, SW_OP_ADD, y, *bias) : y;
}

void lw_op_linear(struct lower *l, int unused)
{
  (void)unused;
  enum sw_dtype t = lw_result_dtype(l, 0);
  struct tensor bias;
  bool has_bias = lw_given(l, "bias");
  if (has_bias)
    bias = lw_argument(l, lw_arg(l, "bias"), t);
  struct tensor x = lw_argument(l, lw_arg(l, "input"), t), w = lw_argument(l, lw_arg(l, "weight"), t);
  lw_set(l, 0, lw_linear(l, x, w, has_bias ? &bias : NULL));
}

/* beta * self + alpha * (a @ b); beta 0 ignores self. */
void lw_op_addmm(struct lower *l, int unused)
{
  (void)unused;
  const struct sw_node *n = lw_node(l);
  enum sw_dtype t = lw_result_dtype(l, 0);
  double alpha = lw_real(l, "alpha"), beta = lw_real(l, "beta");
  struct tensor a = lw_argument(l, &n->args[1], t), b = lw_argument(l, &n->args[2], t), y;
  bool column = lw_known(b) && b.rank == 1; /* addmv */
  y = lw_matmul(l, a, column ? lw_unsqueeze(b, 1) : b);
  if (column)
    y = lw_squeeze(y, y.rank - 1);
  if (alpha != 1)
    y = lw_binary_number(l, SW_OP_MUL, y, alpha);
  if (beta != 0) {
    struct tensor s = lw_argument(l, &n->args[0], t);
    if (beta != 1)
      s = lw_binary_number(l, SW_OP_MUL, s, beta);
    y = lw_binary(l, SW_OP_ADD, s, y);
  }
  lw_set(l, 0, y);
}

void lw_op_dot(struct lower *l, int unused)
{
  (void)unused;
  const struct sw_node *n = lw_node(l);
  enum sw_dtype t = lw_result_dtype(l, 0);
  struct tensor a = lw_argument(l, &n->args[0], t), b = lw_argument(l, &n->args[1], t);
  struct tensor p = lw_binary(l, SW_OP_MUL, a, b);
  lw_set(l, 0, lw_reduce(l, SW_OP_SUM, p, 1, false));
}

void lw_op_outer(struct lower *l, int unused)
{
  (void)unused;
  const struct sw_node *n = lw_node(l);
  enum sw_dtype t = lw_result_dtype(l, 0);
  struct tensor a = lw_argument(l, &n->args[0], t), b = lw_argument(l, &n->args[1], t);
  lw_set(l, 0, lw_binary(l, SW_OP_MUL, lw_unsqueeze(a, 1), lw_unsqueeze(b, 0)));
}
