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
