/* Truth and choice: bools are 0 and 1 in fp16 lanes. Reference: ops.md 5.2. */
#include "compiler/lower/families.h"

#include <string.h>

/* -- logic -- */

static struct tensor truth(struct lower *l, struct tensor x)
{
  return lw_known(x) && x.dtype != SW_BOOL ? lw_binary_number(l, SW_OP_NE, x, 0) : x;
}

static bool is_logic(struct lower *l, const struct sw_arg *a)
{
  if (!lw_is_tensor(l, a))
    return true;
  enum sw_dtype t = lw_dtype_of_value(l, a->value);
  return t == SW_BOOL || lw_computes(t) || lw_constant_elements(l, a->value);
}

static struct tensor logic_argument(struct lower *l, const struct sw_arg *a)
{
  if (!lw_is_tensor(l, a) || lw_constant_elements(l, a->value))
    return lw_argument(l, a, SW_BOOL);
  return truth(l, lw_tensor_of(l, a));
}

void lw_op_logic(struct lower *l, int op)
{
  const struct sw_arg *a = lw_arg(l, "self"), *b = lw_arg(l, "other");
  if (lw_result_dtype(l, 0) != SW_BOOL || !is_logic(l, a) || !is_logic(l, b)) {
    lw_host(l, 0);
    return;
  }
  struct tensor in[2];
  in[0] = logic_argument(l, a);
  in[1] = logic_argument(l, b);
  lw_set(l, 0, lw_pointwise(l, (enum sw_device_op)op, SW_BOOL, 2, in));
}

void lw_op_not(struct lower *l, int unused)
{
  (void)unused;
  const struct sw_arg *a = lw_arg(l, "self");
  if (lw_result_dtype(l, 0) != SW_BOOL || !is_logic(l, a)) {
    lw_host(l, 0);
    return;
  }
  struct tensor x = lw_tensor_of(l, a);
  if (!l->best && lw_known(x) && x.dtype == SW_BOOL) /* x != x is false everywhere */
    lw_set(l, 0, lw_binary(l, SW_OP_EQ, x, lw_binary(l, SW_OP_NE, x, x)));
  else
    lw_set(l, 0, lw_binary_number(l, SW_OP_EQ, x, 0));
}

/* -- choice -- */

/* -- conditions that are known -- */

/* 1 or 0 when a condition is that everywhere, by constants; else -1. */
static int constant_choice(struct lower *l, const struct sw_arg *c)
{
  if (!lw_is_tensor(l, c) || !lw_constant_elements(l, c->value))
    return -1;
  const double *x = lw_constant_doubles(l, c->value);
  int64_t n = sw_value_elements(&l->graph->values.v[c->value]);
  for (int64_t i = 1; i < n; i++)
    if ((x[i] != 0) != (x[0] != 0))
      return -1;
  return n ? x[0] != 0 : -1;
}

/* The only place along one dim, not the last, where a constant condition holds, all other dims being one number: y[:, 3] = 1
 * as core ATen spells it, where(arange == 3, 1, y). Gives the dim of a result of that rank, or -1. */
static int only_place(struct lower *l, const struct sw_arg *c, int rank, int64_t *place)
{
  const struct sw_value *v = lw_is_tensor(l, c) ? &l->graph->values.v[c->value] : NULL;
  if (!v || !lw_constant_elements(l, c->value))
    return -1;
  int dim = -1;
  for (int d = 0; d < v->rank; d++) {
    if (v->size[d] != 1 && dim >= 0)
      return -1;
    dim = v->size[d] != 1 ? d : dim;
  }
  if (dim < 0 || dim == v->rank - 1)
    return -1;
  const double *x = lw_constant_doubles(l, c->value);
  int found = 0;
  for (int64_t i = 0; i < v->size[dim]; i++)
    if (x[i] != 0) {
      *place = i;
      found++;
    }
  return found == 1 ? rank - v->rank + dim : -1;
}

/* One row written in place of a choice over the whole tensor. */
static bool write_only_place(struct lower *l, const struct sw_arg *c, const struct sw_arg *a, const struct sw_arg *b)
{
  const struct sw_value *v = lw_value(l, 0);
  int64_t place;
  int dim = l->best && lw_is_tensor(l, b) ? only_place(l, c, v->rank, &place) : -1;
  if (dim < 0 || l->graph->values.v[b->value].rank != v->rank ||
      memcmp(l->graph->values.v[b->value].size, v->size, (size_t)v->rank * sizeof *v->size))
    return false;
  struct tensor src = lw_expand(l, lw_argument(l, a, lw_result_dtype(l, 0)), v->rank, v->size), x = lw_writable(l, b);
  if (lw_known(x))
    lw_write(l, lw_select(x, dim, place), lw_select(src, dim, place));
  lw_set(l, 0, l->failed ? lw_unknown() : x);
  return true;
}

void lw_op_where(struct lower *l, int unused)
{
  (void)unused;
  enum sw_dtype t = lw_result_dtype(l, 0);
  const struct sw_arg *a = lw_arg(l, "self"), *b = lw_arg(l, "other");
  if (t == SW_BOOL) { /* c a + (not c) b, on bools */
    struct tensor c = truth(l, lw_tensor(l, "condition"));
    struct tensor x = lw_binary(l, SW_OP_MUL, c, lw_argument(l, a, t));
    struct tensor y = lw_binary(l, SW_OP_GT, lw_argument(l, b, t), c);
    lw_set(l, 0, lw_binary(l, SW_OP_MAXIMUM, x, y));
    return;
  }
  if (!lw_computes(t)) {
    lw_host(l, 0);
    return;
  }
  int chosen = l->best ? constant_choice(l, lw_arg(l, "condition")) : -1;
  if (chosen >= 0) {
    const struct sw_value *v = lw_value(l, 0);
    lw_set(l, 0, lw_expand(l, lw_argument(l, chosen ? a : b, t), v->rank, v->size));
    return;
  }
  if (write_only_place(l, lw_arg(l, "condition"), a, b))
    return;
  struct tensor c = truth(l, lw_tensor(l, "condition"));
  struct tensor x = lw_argument(l, a, t), y = lw_argument(l, b, t);
  if (!lw_is_tensor(l, a))
    x = lw_spread(l, x, lw_is_tensor(l, b) ? y : c);
  if (!lw_is_tensor(l, b))
    y = lw_spread(l, y, lw_is_tensor(l, a) ? x : c);
  lw_set(l, 0, lw_where(l, c, x, y));
}

void lw_op_masked_fill(struct lower *l, int unused)
{
  (void)unused;
  enum sw_dtype t = lw_result_dtype(l, 0);
  if (!lw_computes(t)) {
    lw_host(l, 0);
    return;
  }
  struct tensor x = lw_argument(l, lw_arg(l, "self"), t), v = lw_argument(l, lw_arg(l, "value"), t);
  if (!lw_is_tensor(l, lw_arg(l, "value")))
    v = lw_spread(l, v, x);
  lw_set(l, 0, lw_where(l, truth(l, lw_tensor(l, "mask")), v, x));
}

/* The triangle of a matrix by a constant mask: below and on diagonal k (tril), or above and on it (triu). The mask has an
 * element for every one of the matrix, so a very large one goes to the host. */
void lw_op_triangle(struct lower *l, int upper)
{
  enum { MAX_MASK = 16 << 20 };
  struct tensor x = lw_tensor(l, "self");
  int64_t k = lw_int(l, "diagonal"), size[2] = {0, 0};
  for (int i = 0; i < 2 && x.rank >= 2; i++)
    size[i] = x.size[x.rank - 2 + i];
  if (lw_known(x) && (!l->best || (x.dtype != SW_F16 && x.dtype != SW_BF16) || x.rank < 2 || size[0] > MAX_MASK / (size[1] + 1))) {
    lw_host(l, 0);
    return;
  }
  if (!lw_known(x)) {
    lw_set(l, 0, x);
    return;
  }
  double *open = SW_NEW_N(lw_scratch(l), double, size[0] * size[1]);
  for (int64_t i = 0; i < size[0]; i++)
    for (int64_t j = 0; j < size[1]; j++)
      open[i * size[1] + j] = upper ? j - i >= k : j - i <= k;
  struct tensor mask = lw_table(l, sw_arena_printf(l->arena, "%s:mask", lw_node(l)->name), SW_BOOL, 2, size, open);
  lw_set(l, 0, lw_where(l, mask, x, lw_scalar(l, 0, x.dtype)));
}

/* Numbers for one lane of the last dim, y[:, 3] = src in place: a choice over the whole tensor, as core ATen spells it. Alone
 * they would be a piece of every stick, and the tensor had to lie along another dim for the write. */
bool lw_write_lane(struct lower *l, struct tensor dst, struct tensor src)
{
  const struct sw_storage *s = &l->program->storages.v[dst.storage];
  int last = s->rank - 1;
  if (!l->best || !lw_is_half(dst.dtype) || dst.rank != last || last < 0 || s->size[last] < 2 || s->stride[last] != 1 ||
      dst.offset >= s->size[last] || memcmp(dst.size, s->size, (size_t)last * sizeof *s->size) ||
      memcmp(dst.stride, s->stride, (size_t)last * sizeof *s->stride))
    return false;
  double *lane = SW_NEW_N(lw_scratch(l), double, s->size[last]);
  lane[dst.offset] = 1;
  struct tensor whole = dst, in[3];
  whole.offset = 0;
  whole.rank = s->rank;
  whole.size[last] = s->size[last];
  whole.stride[last] = 1;
  in[0] = lw_table(l, sw_arena_printf(l->arena, "%s:lane", lw_node(l)->name), SW_BOOL, 1, &whole.size[last], lane);
  in[1] = lw_unsqueeze(lw_expand(l, lw_cast(l, src, dst.dtype), dst.rank, dst.size), last);
  in[2] = whole;
  for (int k = 0; k < 2; k++)
    in[k] = lw_expand(l, in[k], whole.rank, whole.size);
  struct tensor out = lw_new(l, dst.dtype, whole.rank, whole.size, whole.stride);
  lw_nest(l, SW_OP_WHERE, SW_ROLE_PLAIN, whole.rank, whole.rank, whole.size, out, 3, in);
  struct lw_storage *new = lw_storage(l, out.storage), *old = lw_storage(l, dst.storage);
  new->mutated = true;
  new->last_use = old->last_use;
  old->moved = out.storage + 1;
  return true;
}
