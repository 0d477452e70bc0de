/* Copies, casts, creation, concatenation, padding, writes into slices. Reference: ops.md 5.10. */
#include "compiler/lower/families.h"

#include <math.h>
#include <string.h>

/* Whether values of this class are written in place by anybody. */
static bool is_mutated(struct lower *l, int value)
{
  return l->values[l->values[value].root].mutated;
}

/* In profile best a clone is nothing unless somebody writes into the copy or the original. */
void lw_op_clone(struct lower *l, int unused)
{
  (void)unused;
  const struct sw_arg *a = &lw_node(l)->args[0];
  struct tensor x = lw_tensor_of(l, a);
  int result = lw_node(l)->results[0];
  bool shared = !is_mutated(l, a->value) && !is_mutated(l, result) && !l->values[result].output;
  lw_set(l, 0, l->best && shared ? x : lw_clone(l, x));
}

/* A view where it is contiguous already, as in PyTorch. */
void lw_op_contiguous(struct lower *l, int unused)
{
  (void)unused;
  struct tensor x = lw_tensor(l, "self");
  lw_set(l, 0, !lw_known(x) || lw_is_contiguous(x) ? x : lw_clone(l, x));
}

void lw_op_cast(struct lower *l, int unused)
{
  (void)unused;
  const struct sw_arg *a = &lw_node(l)->args[0];
  enum sw_dtype t = lw_result_dtype(l, 0);
  if (lw_constant_elements(l, a->value)) {
    lw_set(l, 0, lw_constant_value(l, a->value, t));
    return;
  }
  struct tensor x = lw_tensor_of(l, a);
  if (lw_known(x) && x.dtype == t && !strcmp(lw_node(l)->target, "aten._to_copy.default")) {
    lw_op_clone(l, 0);
    return;
  }
  lw_set(l, 0, lw_cast(l, x, t));
}

/* copy_(dst, src) and copy(self, src): the source in the shape and dtype of the first; writing it is the caller's. */
void lw_op_copy(struct lower *l, int unused)
{
  (void)unused;
  const struct sw_value *v = lw_value(l, 0);
  struct tensor x = lw_argument(l, lw_arg(l, "src"), lw_result_dtype(l, 0));
  lw_set(l, 0, lw_expand(l, x, v->rank, v->size));
}

/* full, zeros, ones, *_like, new_*: folded where nobody writes into them; this is the other case. */
void lw_op_full(struct lower *l, int one)
{
  const struct sw_value *v = lw_value(l, 0);
  double value = one;
  const char *const names[] = {"fill_value", "value", "s"};
  for (int i = 0; i < 3; i++)
    if (lw_given(l, names[i]) && !lw_is_tensor(l, lw_arg(l, names[i])))
      value = lw_real(l, names[i]);
  enum sw_dtype t = lw_result_dtype(l, 0);
  if (t != SW_F16 && t != SW_BF16 && t != SW_F32)
    lw_host(l, 0);
  else
    lw_set(l, 0, lw_fill(l, value, t, v->rank, v->size));
}

void lw_op_nothing(struct lower *l, int unused)
{
  (void)unused;
  (void)l;
}

void lw_op_dropout(struct lower *l, int unused)
{
  (void)unused;
  if (lw_bool(l, "train") && lw_real(l, "p") != 0)
    lw_refuse(l, "export the model in eval mode", "dropout in training mode");
  else
    lw_op_alias(l, 0);
}

void lw_op_refuse(struct lower *l, int unused)
{
  (void)unused;
  int64_t at = sw_map_get_str(&l->operations, lw_node(l)->target);
  lw_refuse(l, lw_operations[at].note, "not supported");
}
