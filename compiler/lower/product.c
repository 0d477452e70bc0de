/* Products under names of their own, by the plain one. */
#include "compiler/lower/families.h"

#include <string.h>

static struct tensor argument(struct lower *l, const char *name)
{
  return lw_argument(l, lw_arg(l, name), lw_result_dtype(l, 0));
}

static int64_t elements(const int64_t *size, int n)
{
  int64_t p = 1;
  for (int i = 0; i < n; i++)
    p *= size[i];
  return p;
}

/* a with `k` dims at its end by b with `k` dims in front, in the shape of the result. */
static void contract(struct lower *l, struct tensor a, struct tensor b, int k)
{
  const struct sw_value *v = lw_value(l, 0);
  if (!lw_known(a) || !lw_known(b)) {
    lw_set(l, 0, lw_unknown());
    return;
  }
  int64_t inner = elements(b.size, k);
  a = lw_reshape(l, a, 2, (const int64_t[]){elements(a.size, a.rank - k), inner});
  b = lw_reshape(l, b, 2, (const int64_t[]){inner, elements(b.size + k, b.rank - k)});
  a = lw_matmul(l, a, b);
  lw_set(l, 0, lw_known(a) ? lw_reshape(l, a, v->rank, v->size) : a);
}

/* The named dims behind the others, or in front of them. */
static struct tensor gathered(struct lower *l, struct tensor x, const char *name, bool behind, int *count)
{
  int64_t dims[SW_MAX_RANK];
  int order[SW_MAX_RANK], n = lw_ints(l, name, dims), at = 0;
  uint32_t named = 0;
  *count = n;
  if (!lw_known(x))
    return x;
  for (int i = 0; i < n; i++)
    named |= 1u << lw_dim(dims[i], x.rank);
  for (int i = 0; i < n && !behind; i++)
    order[at++] = lw_dim(dims[i], x.rank);
  for (int d = 0; d < x.rank; d++)
    if (!(named >> d & 1))
      order[at++] = d;
  for (int i = 0; i < n && behind; i++)
    order[at++] = lw_dim(dims[i], x.rank);
  return lw_permute(x, order);
}

void lw_op_tensordot(struct lower *l, int unused)
{
  (void)unused;
  int k;
  struct tensor a = gathered(l, argument(l, "self"), "dims_self", true, &k);
  struct tensor b = gathered(l, argument(l, "other"), "dims_other", false, &k);
  contract(l, a, b, k);
}

void lw_op_inner(struct lower *l, int unused)
{
  (void)unused;
  struct tensor a = argument(l, "self"), b = argument(l, "other");
  if (lw_known(a) && lw_known(b) && (!a.rank || !b.rank)) {
    lw_set(l, 0, lw_binary(l, SW_OP_MUL, a, b));
    return;
  }
  int order[SW_MAX_RANK] = {b.rank - 1};
  for (int d = 1; d < b.rank; d++)
    order[d] = d - 1;
  contract(l, a, lw_known(b) ? lw_permute(b, order) : b, 1);
}

/* chain_matmul, linalg_multi_dot; a vector in front is a row, one at the end a column. */
void lw_op_chain(struct lower *l, int unused)
{
  (void)unused;
  const struct sw_arg *list = lw_given(l, "matrices") ? lw_arg(l, "matrices") : lw_arg(l, "tensors");
  const struct sw_value *v = lw_value(l, 0);
  struct tensor y = lw_unknown();
  for (int i = 0; i < list->list.n; i++) {
    struct tensor x = lw_argument(l, &list->list.v[i], lw_result_dtype(l, 0));
    if (lw_known(x) && x.rank == 1)
      x = lw_unsqueeze(x, i ? 1 : 0);
    y = i ? lw_matmul(l, y, x) : x;
  }
  lw_set(l, 0, lw_known(y) ? lw_reshape(l, y, v->rank, v->size) : y);
}

/* beta self + alpha times a product: of two vectors (0) or the sum of a batch of them (1), which is one product over
 * batch and inner dim together. */
void lw_op_add_product(struct lower *l, int batch)
{
  struct tensor p, a = argument(l, batch ? "batch1" : "vec1"), b = argument(l, batch ? "batch2" : "vec2");
  if (!lw_known(a) || !lw_known(b)) {
    lw_set(l, 0, lw_unknown());
    return;
  }
  if (batch) {
    int64_t k = a.size[0] * a.size[2];
    a = lw_reshape(l, lw_permute(a, (const int[]){1, 0, 2}), 2, (const int64_t[]){a.size[1], k});
    b = lw_reshape(l, b, 2, (const int64_t[]){k, b.size[2]});
    p = lw_matmul(l, a, b);
  } else {
    p = lw_binary(l, SW_OP_MUL, lw_unsqueeze(a, 1), b);
  }
  double alpha = lw_real(l, "alpha"), beta = lw_real(l, "beta");
  if (alpha != 1)
    p = lw_binary_number(l, SW_OP_MUL, p, alpha);
  if (beta != 0) {
    struct tensor x = argument(l, "self");
    p = lw_binary(l, SW_OP_ADD, beta == 1 ? x : lw_binary_number(l, SW_OP_MUL, x, beta), p);
  }
  lw_set(l, 0, p);
}

/* [O,N,J] = x1 [N,I] by w [O,I,J]; then a dot product with x2 [N,J] for every one of the O results. */
void lw_op_bilinear(struct lower *l, int unused)
{
  (void)unused;
  const struct sw_value *v = lw_value(l, 0);
  struct tensor a = argument(l, "input1"), b = argument(l, "input2"), w = argument(l, "weight");
  if (!lw_known(a) || !lw_known(b) || !lw_known(w)) {
    lw_set(l, 0, lw_unknown());
    return;
  }
  a = lw_reshape(l, a, 2, (const int64_t[]){elements(a.size, a.rank - 1), a.size[a.rank - 1]});
  b = lw_reshape(l, b, 2, (const int64_t[]){elements(b.size, b.rank - 1), b.size[b.rank - 1]});
  struct tensor y = lw_binary(l, SW_OP_MUL, lw_matmul(l, a, w), b);
  y = lw_known(y) ? lw_transpose(lw_reduce(l, SW_OP_SUM, y, 4, false), 0, 1) : y;
  if (lw_given(l, "bias"))
    y = lw_binary(l, SW_OP_ADD, y, argument(l, "bias"));
  lw_set(l, 0, lw_known(y) ? lw_reshape(l, y, v->rank, v->size) : y);
}

/* [m,n] and [p,q]: [m,1,n,1] times [1,p,1,q], joined. */
void lw_op_kron(struct lower *l, int unused)
{
  (void)unused;
  const struct sw_value *v = lw_value(l, 0);
  struct tensor a = argument(l, "self"), b = argument(l, "other");
  if (2 * v->rank > SW_MAX_RANK) {
    lw_refuse(l, NULL, "rank %d", v->rank);
    return;
  }
  while (lw_known(a) && a.rank < v->rank)
    a = lw_unsqueeze(a, 0);
  while (lw_known(b) && b.rank < v->rank)
    b = lw_unsqueeze(b, 0);
  for (int d = 0; d < v->rank; d++) {
    a = lw_unsqueeze(a, 2 * d + 1);
    b = lw_unsqueeze(b, 2 * d);
  }
  a = lw_binary(l, SW_OP_MUL, a, b);
  lw_set(l, 0, lw_known(a) ? lw_reshape(l, a, v->rank, v->size) : a);
}

/* Component i is a[i+1] b[i+2] - a[i+2] b[i+1]. */
void lw_op_cross(struct lower *l, int unused)
{
  (void)unused;
  const struct sw_value *v = lw_value(l, 0);
  struct tensor a = lw_expand(l, argument(l, "self"), v->rank, v->size), b = lw_expand(l, argument(l, "other"), v->rank, v->size);
  int dim = lw_given(l, "dim") ? lw_dim(lw_int(l, "dim"), v->rank) : 0;
  while (!lw_given(l, "dim") && dim < v->rank - 1 && v->size[dim] != 3)
    dim++;
  struct tensor piece[3];
  for (int i = 0; i < 3; i++) {
    int j = (i + 1) % 3, k = (i + 2) % 3;
    struct tensor p = lw_binary(l, SW_OP_MUL, lw_slice(a, dim, j, 1, 1), lw_slice(b, dim, k, 1, 1));
    struct tensor q = lw_binary(l, SW_OP_MUL, lw_slice(a, dim, k, 1, 1), lw_slice(b, dim, j, 1, 1));
    piece[i] = lw_binary(l, SW_OP_SUB, p, q);
  }
  lw_set(l, 0, lw_join(l, 3, piece, dim, lw_new(l, lw_result_dtype(l, 0), v->rank, v->size, v->stride)));
}

void lw_op_vecdot(struct lower *l, int unused)
{
  (void)unused;
  struct tensor x = argument(l, "x"), y = argument(l, "y"), p = lw_binary(l, SW_OP_MUL, x, y);
  lw_set(l, 0, lw_known(p) ? lw_reduce(l, SW_OP_SUM, p, 1u << lw_dim(lw_int(l, "dim"), p.rank), false) : p);
}

/* Three tensors with dims of size 1 put in, multiplied, summed over some dims; what the first two do not need is left to the
 * third. */
void lw_op_trilinear(struct lower *l, int unused)
{
  (void)unused;
  static const char *const names[3][2] = {{"i1", "expand1"}, {"i2", "expand2"}, {"i3", "expand3"}};
  struct tensor y = lw_unknown();
  for (int i = 0; i < 3; i++) {
    struct tensor x = argument(l, names[i][0]);
    int64_t dims[SW_MAX_RANK];
    int n = lw_ints(l, names[i][1], dims), whole = x.rank + n;
    for (int d = 0; d < whole && lw_known(x); d++)
      for (int k = 0; k < n; k++)
        if (lw_dim(dims[k], whole) == d)
          x = lw_unsqueeze(x, d);
    y = i ? lw_binary(l, SW_OP_MUL, y, x) : x;
  }
  lw_set(l, 0, lw_known(y) ? lw_reduce(l, SW_OP_SUM, y, lw_dims(l, "sumdim", y.rank), false) : y);
}
