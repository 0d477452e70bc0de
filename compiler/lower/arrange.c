/* Movement under PyTorch's composite names: turns, stacks, grids, diagonals, shuffles. Views where strides say it all. */
#include "compiler/lower/families.h"

#include <string.h>

/* The last two dims swapped. */
void lw_op_turn(struct lower *l, int unused)
{
  (void)unused;
  struct tensor x = lw_tensor(l, "self");
  lw_set(l, 0, lw_known(x) && x.rank > 1 ? lw_transpose(x, x.rank - 2, x.rank - 1) : x);
}

/* hstack, vstack, dstack, column_stack: pieces with the rank of the result, one behind the other. */
void lw_op_stacked(struct lower *l, int which)
{
  const struct sw_arg *list = lw_arg(l, "tensors");
  int n = list->kind == SW_ARG_LIST ? list->list.n : 0;
  const struct sw_value *v = lw_value(l, 0);
  struct tensor *piece = SW_NEW_N(l->arena, struct tensor, n);
  int dim = which == LW_VSTACK ? 0 : which == LW_DSTACK ? 2 : v->rank > 1;
  for (int i = 0; i < n; i++) {
    struct tensor x = lw_argument(l, &list->list.v[i], lw_result_dtype(l, 0));
    for (int front = which == LW_VSTACK || (which == LW_DSTACK && x.rank == 1); lw_known(x) && x.rank < v->rank; front = 0)
      x = lw_unsqueeze(x, front ? 0 : x.rank);
    piece[i] = x;
  }
  lw_set(l, 0, lw_join(l, n, piece, dim, lw_new(l, lw_result_dtype(l, 0), v->rank, v->size, v->stride)));
}

/* Tensor i runs along its own dim of the result; "xy" swaps the first two. */
void lw_op_meshgrid(struct lower *l, int unused)
{
  (void)unused;
  const struct sw_arg *list = lw_arg(l, "tensors"), *indexing = lw_arg(l, "indexing");
  bool swapped = indexing->kind == SW_ARG_STR && !strcmp(indexing->s, "xy");
  for (int i = 0; i < lw_node(l)->n_results; i++) {
    const struct sw_value *v = lw_value(l, i);
    if (!v)
      continue;
    int along = swapped && i < 2 ? 1 - i : i;
    int64_t size[SW_MAX_RANK];
    for (int d = 0; d < v->rank; d++)
      size[d] = d == along ? v->size[d] : 1;
    struct tensor x = lw_reshape(l, lw_tensor_of(l, &list->list.v[i]), v->rank, size);
    lw_set(l, i, lw_expand(l, x, v->rank, v->size));
  }
}

void lw_op_broadcast(struct lower *l, int unused)
{
  (void)unused;
  const struct sw_arg *list = lw_arg(l, "tensors");
  for (int i = 0; i < lw_node(l)->n_results; i++) {
    const struct sw_value *v = lw_value(l, i);
    if (v)
      lw_set(l, i, lw_expand(l, lw_tensor_of(l, &list->list.v[i]), v->rank, v->size));
  }
}

/* -- turned round -- */

/* flipud, fliplr */
void lw_op_flip_dim(struct lower *l, int dim)
{
  lw_set(l, 0, lw_flip(l, lw_tensor(l, "self"), dim));
}

/* Once: the second dim reversed, then both swapped. */
void lw_op_rot90(struct lower *l, int unused)
{
  (void)unused;
  struct tensor x = lw_tensor(l, "self");
  int64_t dims[SW_MAX_RANK] = {0, 1}, k = (lw_int(l, "k") % 4 + 4) % 4;
  lw_ints(l, "dims", dims);
  int a = lw_dim(dims[0], x.rank), b = lw_dim(dims[1], x.rank);
  if (k == 1 || k == 2)
    x = lw_flip(l, x, b);
  if (k == 2 || k == 3)
    x = lw_flip(l, x, a);
  lw_set(l, 0, k % 2 ? lw_transpose(x, a, b) : x);
}

/* -- diagonals --
 *
 * The elements of a diagonal lie in different lanes of different sticks, which no access of the device can follow. So the
 * rows are read as they are and a constant mask picks one element of each: diag(x)[i] = sum over j of where(j == i, x[i,j], 0). */

static bool computes(enum sw_dtype t)
{
  return t == SW_F16 || t == SW_BF16 || t == SW_F32;
}

/* [rows, columns] of truth values, true where column = row + shift. */
static struct tensor mask_of(struct lower *l, int64_t rows, int64_t columns, int64_t shift)
{
  int64_t size[] = {rows, columns};
  double *m = SW_NEW_N(lw_scratch(l), double, (size_t)(rows * columns));
  for (int64_t i = 0; i < rows; i++)
    if (i + shift >= 0 && i + shift < columns)
      m[i * columns + i + shift] = 1;
  return lw_table(l, sw_arena_printf(l->arena, "%s:mask", lw_node(l)->name), SW_BOOL, 2, size, m);
}

/* Rows of the last two dims of x with zeros beside the diagonal; n rows from the first that has an element of it. */
static struct tensor masked_rows(struct lower *l, struct tensor x, int64_t offset, int64_t n)
{
  if (!lw_known(x))
    return x;
  x = lw_slice(x, x.rank - 2, offset < 0 ? -offset : 0, n, 1);
  struct tensor m = mask_of(l, n, x.size[x.rank - 1], offset > 0 ? offset : 0);
  return lw_where(l, m, x, lw_scalar(l, 0, x.dtype));
}

/* The diagonal of two dims as the last dim. */
static struct tensor diagonal(struct lower *l, struct tensor x, int a, int b, int64_t offset, int64_t n)
{
  int order[SW_MAX_RANK], at = 0;
  for (int d = 0; d < x.rank; d++)
    if (d != a && d != b)
      order[at++] = d;
  order[at++] = a;
  order[at] = b;
  x = masked_rows(l, lw_known(x) ? lw_permute(x, order) : x, offset, n);
  return lw_known(x) ? lw_reduce(l, SW_OP_SUM, x, 1u << (x.rank - 1), false) : x;
}

/* Whether nobody on the device looks at a value: it leaves the program, as it is or through views. */
static bool only_leaves(struct lower *l, int value)
{
  const struct lw_operation *o;
  for (; l->values[value].n_readers == 1; value = l->graph->nodes.v[l->values[value].reader].results[0]) {
    if (l->values[value].reader < 0)
      return true;
    o = lw_operation_of(l, &l->graph->nodes.v[l->values[value].reader]);
    if (!o || o->kind != LW_VIEW || l->graph->nodes.v[l->values[value].reader].n_results != 1)
      return false;
  }
  return false;
}

/* A view where both dims lie outside the innermost one, somebody writes through it, or nobody computes with it; else one
 * sum a row. */
void lw_op_diagonal(struct lower *l, int unused)
{
  (void)unused;
  struct tensor x = lw_tensor(l, "self");
  const struct sw_value *v = lw_value(l, 0);
  if (!lw_known(x)) {
    lw_set(l, 0, x);
    return;
  }
  int a = lw_dim(lw_int(l, "dim1"), x.rank), b = lw_dim(lw_int(l, "dim2"), x.rank);
  int64_t offset = lw_int(l, "offset"), n = v->size[v->rank - 1];
  bool across = x.stride[a] == 1 || x.stride[b] == 1, mutated = l->values[l->values[lw_node(l)->results[0]].root].mutated;
  if (l->best && across && n > 1 && !mutated && !only_leaves(l, lw_node(l)->results[0]) && (x.dtype == SW_F16 || x.dtype == SW_BF16)) {
    lw_set(l, 0, diagonal(l, x, a, b, offset, n));
    return;
  }
  int64_t step = x.stride[a] + x.stride[b];
  x.offset += offset >= 0 ? offset * x.stride[b] : -offset * x.stride[a];
  x = lw_squeeze(lw_squeeze(x, a > b ? a : b), a > b ? b : a);
  x = lw_unsqueeze(x, x.rank);
  x.size[x.rank - 1] = n;
  x.stride[x.rank - 1] = step;
  lw_set(l, 0, x);
}

/* [.., n] on a diagonal of two new dims at the end. On the main one and below, column j holds x[j]:
 * out[i,j] = where(i == j - offset, x[j], 0) for the first n columns. */
static struct tensor embedded(struct lower *l, struct tensor x, int64_t offset)
{
  if (!lw_known(x))
    return x;
  int64_t n = x.size[x.rank - 1], side = n - offset;
  struct tensor m = mask_of(l, side, n, offset);
  struct tensor y = lw_where(l, m, lw_unsqueeze(x, x.rank - 1), lw_scalar(l, 0, x.dtype));
  if (!offset || !lw_known(y))
    return y;
  int64_t size[SW_MAX_RANK];
  memcpy(size, y.size, sizeof size);
  size[y.rank - 1] = side;
  struct tensor out = lw_zeros(l, x.dtype, y.rank, size);
  lw_write(l, lw_slice(out, y.rank - 1, 0, n, 1), y);
  return l->failed ? lw_unknown() : out;
}

void lw_op_diag(struct lower *l, int which)
{
  struct tensor x = lw_tensor(l, "self");
  int64_t offset = lw_int(l, which == LW_DIAG ? "diagonal" : "offset");
  bool makes = which != LW_DIAG || x.rank == 1, half = x.dtype == SW_F16 || x.dtype == SW_BF16;
  bool last = which != LW_DIAG_EMBED || (lw_dim(lw_int(l, "dim1"), x.rank + 1) == x.rank - 1 && lw_dim(lw_int(l, "dim2"), x.rank + 1) == x.rank);
  if (lw_known(x) && (!half || (makes && (offset > 0 || !last)))) {
    lw_host(l, 0);
    return;
  }
  if (which == LW_DIAGFLAT && lw_known(x)) {
    int64_t n = 1;
    for (int d = 0; d < x.rank; d++)
      n *= x.size[d];
    x = lw_reshape(l, x, 1, &n);
  }
  lw_set(l, 0, makes ? embedded(l, x, offset) : diagonal(l, x, 0, 1, offset, lw_value(l, 0)->size[0]));
}

void lw_op_trace(struct lower *l, int unused)
{
  (void)unused;
  struct tensor x = lw_tensor(l, "self");
  if (x.dtype != SW_F16 && x.dtype != SW_BF16) {
    lw_host(l, 0);
    return;
  }
  if (lw_known(x)) {
    x = masked_rows(l, x, 0, x.size[0] < x.size[1] ? x.size[0] : x.size[1]);
    x = lw_reduce(l, SW_OP_SUM, x, 3, false);
  }
  lw_set(l, 0, x);
}

void lw_op_block_diag(struct lower *l, int unused)
{
  (void)unused;
  const struct sw_arg *list = lw_arg(l, "tensors");
  const struct sw_value *v = lw_value(l, 0);
  enum sw_dtype t = lw_result_dtype(l, 0);
  if (!computes(t)) {
    lw_host(l, 0);
    return;
  }
  struct tensor out = lw_zeros(l, t, v->rank, v->size);
  int64_t row = 0, column = 0;
  for (int i = 0; i < list->list.n; i++) {
    struct tensor x = lw_argument(l, &list->list.v[i], t);
    while (lw_known(x) && x.rank < 2)
      x = lw_unsqueeze(x, 0);
    if (!lw_known(x))
      break;
    lw_write(l, lw_slice(lw_slice(out, 0, row, x.size[0], 1), 1, column, x.size[1], 1), x);
    row += x.size[0];
    column += x.size[1];
  }
  lw_set(l, 0, l->failed ? lw_unknown() : out);
}

/* -- shuffles -- */

/* Splits some dims in two, permutes, and joins into the result. */
static void shuffle(struct lower *l, int rank, const int64_t *size, const int *order)
{
  const struct sw_value *v = lw_value(l, 0);
  struct tensor x = lw_tensor(l, "self");
  if (lw_known(x))
    x = lw_reshape(l, x, rank, size);
  lw_set(l, 0, lw_known(x) ? lw_reshape(l, lw_permute(x, order), v->rank, v->size) : x);
}

/* [n, g k, ..] as [n, k, g, ..]. */
void lw_op_channel_shuffle(struct lower *l, int unused)
{
  (void)unused;
  const struct sw_value *v = lw_value(l, 0);
  int64_t groups = lw_int(l, "groups"), size[SW_MAX_RANK + 1] = {v->size[0], groups, v->size[1] / groups};
  int order[SW_MAX_RANK + 1] = {0, 2, 1};
  for (int d = 2; d < v->rank; d++) {
    size[d + 1] = v->size[d];
    order[d + 1] = d + 1;
  }
  if (v->rank == SW_MAX_RANK)
    lw_refuse(l, NULL, "rank %d", v->rank);
  else
    shuffle(l, v->rank + 1, size, order);
}

/* [.., c, h r, w r] as [.., c, h, r, w, r], in the order c, r, r, h, w. */
void lw_op_pixel_unshuffle(struct lower *l, int unused)
{
  (void)unused;
  const struct sw_value *v = lw_value(l, 0);
  int n = v->rank - 3;
  int64_t r = lw_int(l, "downscale_factor"), size[SW_MAX_RANK];
  int order[SW_MAX_RANK];
  if (n + 5 > SW_MAX_RANK) {
    lw_refuse(l, NULL, "rank %d", v->rank);
    return;
  }
  for (int d = 0; d < n; d++) {
    size[d] = v->size[d];
    order[d] = d;
  }
  const int64_t split[] = {v->size[n] / (r * r), v->size[n + 1], r, v->size[n + 2], r};
  const int moved[] = {n, n + 2, n + 4, n + 1, n + 3};
  memcpy(size + n, split, sizeof split);
  memcpy(order + n, moved, sizeof moved);
  shuffle(l, n + 5, size, order);
}
