/* Gathers and scatters of rows, and constant indices that are views. Reference: ops.md 4.5, 5.8.
 *
 * The device takes one index tensor whose elements are row numbers of one dim. Constant indices are looked at first:
 * when the elements they pick lie at regular distances they are a view (an arange over a dim, a mask's broadcast batch
 * and key numbers), and nothing runs at all. */
#include "compiler/lower/families.h"

#include <string.h>

/* Index arguments by dim of x; NULL where a dim is taken whole. */
struct indices {
  const struct sw_arg *of[SW_MAX_RANK];
  int n, first;    /* how many, and the first such dim */
  bool adjacent, constant;
};

static bool read_indices(struct lower *l, struct tensor x, struct indices *ix)
{
  *ix = (struct indices){.constant = true, .adjacent = true, .first = -1};
  const struct sw_arg *list = lw_arg(l, "indices");
  if (list->kind != SW_ARG_LIST || list->list.n > x.rank)
    return false;
  int last = -1;
  for (int d = 0; d < list->list.n; d++) {
    const struct sw_arg *a = &list->list.v[d];
    if (a->kind == SW_ARG_NONE)
      continue;
    if (!lw_is_tensor(l, a) || !sw_dtype_is_integer(l->graph->values.v[a->value].dtype))
      return false;
    ix->of[d] = a;
    ix->n++;
    if (ix->first < 0)
      ix->first = d;
    ix->adjacent = ix->adjacent && (last < 0 || d == last + 1);
    ix->constant = ix->constant && lw_constant_elements(l, a->value);
    last = d;
  }
  return ix->n > 0;
}

/* Host elements of x, counted from its start, that constant indices pick, over their broadcast shape (rank, size). */
static int64_t *picked(struct lower *l, struct tensor x, const struct indices *ix, int *rank, int64_t *size)
{
  struct tensor shape[SW_MAX_RANK];
  int n = 0;
  for (int d = 0; d < x.rank; d++)
    if (ix->of[d]) {
      const struct sw_value *v = &l->graph->values.v[ix->of[d]->value];
      shape[n].rank = v->rank;
      memcpy(shape[n++].size, v->size, (size_t)v->rank * sizeof *v->size);
    }
  if (!lw_broadcast(n, shape, rank, size))
    return NULL;
  int64_t count = 1;
  for (int d = 0; d < *rank; d++)
    count *= size[d];
  int64_t *at = SW_NEW_N(l->arena, int64_t, count);
  for (int d = 0; d < x.rank; d++) {
    if (!ix->of[d])
      continue;
    const struct sw_value *v = &l->graph->values.v[ix->of[d]->value];
    double *row = lw_constant_doubles(l, ix->of[d]->value);
    int64_t dense[SW_MAX_RANK];
    lw_contiguous_strides(v->rank, v->size, dense);
    for (int64_t i = 0; i < count; i++) {
      int64_t rest = i, from = 0;
      for (int k = *rank - 1; k >= 0; k--) {
        int own = k - (*rank - v->rank);
        if (own >= 0 && v->size[own] != 1)
          from += rest % size[k] * dense[own];
        rest /= size[k];
      }
      int64_t r = (int64_t)row[from];
      r = r < 0 ? r + x.size[d] : r;
      if (r < 0 || r >= x.size[d])
        return NULL;
      at[i] += r * x.stride[d];
    }
  }
  return at;
}

/* Whether the numbers are offset + sum step * i with no negative step. */
static bool is_regular(const int64_t *at, int rank, const int64_t *size, int64_t *step)
{
  int64_t dense[SW_MAX_RANK], count = 1;
  lw_contiguous_strides(rank, size, dense);
  for (int d = 0; d < rank; d++) {
    step[d] = size[d] > 1 ? at[dense[d]] - at[0] : 0;
    count *= size[d];
    if (step[d] < 0)
      return false;
  }
  for (int64_t i = 0; i < count; i++) {
    int64_t expected = at[0], rest = i;
    for (int d = rank - 1; d >= 0; d--) {
      expected += rest % size[d] * step[d];
      rest /= size[d];
    }
    if (expected != at[i])
      return false;
  }
  return count > 0;
}

/* x with its indexed dims replaced by (rank, size, step), at the place of the first or in front. */
static struct tensor indexed_view(struct tensor x, const struct indices *ix, int64_t offset, int rank, const int64_t *size,
                                  const int64_t *step)
{
  struct tensor t = x;
  t.rank = 0;
  t.offset += offset;
  int place = ix->adjacent ? ix->first : 0;
  for (int d = 0; d <= x.rank; d++) {
    if (d == place)
      for (int k = 0; k < rank; k++) {
        t.size[t.rank] = size[k];
        t.stride[t.rank++] = step[k];
      }
    if (d < x.rank && !ix->of[d]) {
      t.size[t.rank] = x.size[d];
      t.stride[t.rank++] = x.stride[d];
    }
  }
  return t;
}

/* The files name an index by the loop it is read in: one number alone has none. */
static void refuse_single(struct lower *l, const struct sw_op *op)
{
  if (!op->n_loops)
    lw_refuse(l, "take the element on the host, or look up more than one", "one element by a row number that is known at run time");
}

/* The dims of t that are one number each become size 1. */
static bool unexpand(struct tensor *t, int except)
{
  bool any = false;
  for (int d = 0; d < t->rank; d++)
    if (d != except && t->size[d] > 1 && !t->stride[d]) {
      t->size[d] = 1;
      any = true;
    }
  return any;
}

static struct tensor gather(struct lower *l, struct tensor x, int dim, struct tensor index);

/* Rows that are one number along a dim, or row numbers that repeat, are looked up once and spread afterwards: the files
 * say of a table's dims how far they step, and have no word for one that does not. False: nothing is expanded. */
static bool gather_and_spread(struct lower *l, struct tensor x, int dim, struct tensor index, const int64_t *size,
                              int rank, struct tensor *out)
{
  bool table = unexpand(&x, dim), numbers = unexpand(&index, -1);
  if (!table && !numbers)
    return false;
  *out = lw_clone(l, lw_expand(l, gather(l, x, dim, index), rank, size));
  return true;
}

/* Rows of dim `dim`; the dims of the index take its place. */
static struct tensor gather(struct lower *l, struct tensor x, int dim, struct tensor index)
{
  if (!lw_known(x) || !lw_known(index))
    return lw_unknown();
  int rank = x.rank - 1 + index.rank;
  int64_t size[SW_MAX_RANK] = {0};
  struct tensor in[2] = {index, x};
  bool only_row = x.size[dim] == 1 || !x.stride[dim]; /* all legal row numbers name the same row: nothing is looked up */
  in[0].rank = in[1].rank = rank;
  for (int d = 0; d < rank; d++) {
    bool of_index = d >= dim && d < dim + index.rank;
    int own = d < dim ? d : d - index.rank + 1;
    size[d] = of_index ? index.size[d - dim] : x.size[own];
    in[0].stride[d] = of_index ? index.stride[d - dim] : 0;
    in[1].stride[d] = of_index ? 0 : x.stride[own];
  }
  struct tensor out;
  if (!only_row && gather_and_spread(l, x, dim, index, size, rank, &out))
    return out;
  out = lw_new_like(l, x.dtype, rank, size, 0, NULL);
  struct sw_op *op = lw_nest(l, SW_OP_IDENTITY, SW_ROLE_PLAIN, rank, rank, size, out, only_row ? 1 : 2, only_row ? &in[1] : in);
  if (op && !only_row) {
    op->in[1].index_input = 0;
    op->in[1].index_step = x.stride[dim];
    op->in[1].index_range = x.size[dim];
    refuse_single(l, op);
  }
  return l->failed ? lw_unknown() : out;
}

/* Whether the device reads these row numbers as they are, or after a copy: in order, and in whole sticks (32 of int32) of what they
 * are a part of. */
static bool in_sticks(struct lower *l, struct tensor t)
{
  int64_t whole = t.offset ? 32 : 1, before = 0;
  for (int d = t.rank - 1; d >= 0; d--) {
    if (t.size[d] == 1 || t.stride[d] == 0)
      continue;
    if (before ? t.stride[d] < before || (t.stride[d] != before && t.stride[d] % 32) : t.stride[d] != 1)
      return false;
    before = t.stride[d] * t.size[d];
  }
  return l->program->storages.v[t.storage].kind == SW_STORAGE_SCALAR || t.offset % whole == 0;
}

static struct tensor index_tensor(struct lower *l, const struct sw_arg *a)
{
  struct tensor t = lw_tensor_of(l, a);
  if (lw_known(t) && t.dtype != SW_I64 && t.dtype != SW_I32)
    return lw_refuse(l, "use int32 or int64 row numbers", "row numbers of dtype %s", sw_dtype_torch(t.dtype));
  if (l->best && lw_known(t) && !in_sticks(l, t))
    t = lw_host_clone(l, t, NULL, "the device reads row numbers in whole sticks along their last dim, and does not rearrange integers");
  return t;
}

/* -- rows whose numbers are known -- */

enum { MAX_RUNS = 8 };

/* Length of the longest run of evenly rising (or equal) numbers from the first one on, and its step. Steps that do not divide
 * the dim are nothing that the device could follow. */
static int64_t run_length(int64_t size, int64_t n, const int64_t *row, int64_t *step)
{
  int64_t length = 1;
  *step = n > 1 && row[1] >= row[0] ? row[1] - row[0] : 0;
  if (*step > 1 && size % *step)
    return 1;
  while (length < n && row[length] - row[length - 1] == *step && row[length] >= row[length - 1])
    length++;
  return length;
}

/* A few runs of rows are as many copies of slices, on all cores, where a look-up has one: 61 62 63 0 1 .. 60 (a roll) are
 * two, 1 | 0 1 .. 11 | 10 (padding by reflection) three. False: too many. */
static bool copy_runs(struct lower *l, struct tensor x, int dim, int64_t n, const int64_t *row, struct tensor *out)
{
  struct tensor piece[MAX_RUNS];
  int runs = 0;
  for (int64_t at = 0, step; at < n; runs++) {
    if (runs == MAX_RUNS)
      return false;
    int64_t length = run_length(x.size[dim], n - at, row + at, &step);
    piece[runs] = lw_slice(x, dim, row[at], length, step);
    at += length;
  }
  struct tensor whole = x;
  whole.size[dim] = n;
  *out = runs == 1 ? piece[0] : lw_join(l, runs, piece, dim, lw_new(l, x.dtype, whole.rank, whole.size, NULL));
  return true;
}

struct tensor lw_known_rows(struct lower *l, struct tensor x, int dim, int64_t n, const int64_t *row)
{
  struct tensor out;
  if (!lw_known(x) || (l->best && n > 0 && copy_runs(l, x, dim, n, row, &out)))
    return lw_known(x) ? out : x;
  double *number = SW_NEW_N(lw_scratch(l), double, n);
  for (int64_t i = 0; i < n; i++)
    number[i] = (double)row[i];
  return gather(l, x, dim, lw_table(l, sw_arena_printf(l->arena, "%s:rows%d", lw_node(l)->name, dim), SW_I64, 1, &n, number));
}

/* Copies of slices for constant row numbers in one dim. */
static bool copy_constant_rows(struct lower *l, struct tensor x, int dim, const struct sw_arg *index, struct tensor *out)
{
  const struct sw_value *v = &l->graph->values.v[index->value];
  if (!l->best || v->rank != 1 || !v->size[0] || !lw_constant_elements(l, index->value))
    return false;
  double *number = lw_constant_doubles(l, index->value);
  int64_t n = v->size[0], *row = SW_NEW_N(lw_scratch(l), int64_t, n);
  for (int64_t i = 0; i < n; i++) {
    row[i] = (int64_t)number[i] + (number[i] < 0 ? x.size[dim] : 0);
    if (row[i] < 0 || row[i] >= x.size[dim])
      return false;
  }
  return copy_runs(l, x, dim, n, row, out);
}

/* Rows of one dim: a view when their numbers are constant and regular. */
static struct tensor rows(struct lower *l, struct tensor x, int dim, const struct sw_arg *index)
{
  struct indices ix = {.n = 1, .first = dim, .adjacent = true};
  ix.of[dim] = index;
  int rank;
  int64_t size[SW_MAX_RANK], step[SW_MAX_RANK], *at = NULL;
  if (lw_known(x) && l->best && lw_constant_elements(l, index->value))
    at = picked(l, x, &ix, &rank, size);
  if (at && is_regular(at, rank, size, step))
    return lw_apart(l, indexed_view(x, &ix, at[0], rank, size, step));
  struct tensor copied;
  if (at && copy_constant_rows(l, x, dim, index, &copied))
    return copied;
  return gather(l, x, dim, index_tensor(l, index));
}

void lw_op_embedding(struct lower *l, int unused)
{
  (void)unused;
  struct tensor w = lw_tensor(l, "weight");
  lw_set(l, 0, rows(l, w, 0, lw_arg(l, "indices")));
}

void lw_op_index_select(struct lower *l, int unused)
{
  (void)unused;
  struct tensor x = lw_tensor(l, "self");
  lw_set(l, 0, rows(l, x, lw_dim(lw_int(l, "dim"), x.rank), lw_arg(l, "index")));
}

void lw_op_index(struct lower *l, int unused)
{
  (void)unused;
  struct tensor x = lw_tensor(l, "self");
  struct indices ix;
  if (!lw_known(x)) {
    lw_set(l, 0, x);
    return;
  }
  if (!read_indices(l, x, &ix)) {
    lw_host(l, LW_ELEMENTS);
    return;
  }
  int rank;
  int64_t size[SW_MAX_RANK], step[SW_MAX_RANK], *at = ix.constant ? picked(l, x, &ix, &rank, size) : NULL;
  struct tensor copied;
  if (at && is_regular(at, rank, size, step))
    lw_set(l, 0, lw_apart(l, indexed_view(x, &ix, at[0], rank, size, step)));
  else if (at && ix.n == 1 && copy_constant_rows(l, x, ix.first, ix.of[ix.first], &copied))
    lw_set(l, 0, copied);
  else if (ix.n == 1)
    lw_set(l, 0, gather(l, x, ix.first, index_tensor(l, ix.of[ix.first])));
  else
    lw_host(l, LW_ELEMENTS);
}

/* -- writes of rows -- */

/* Rows `index` (1-d) of dim `dim` of x become src, whose dim `dim` has their number. Constant rows at regular distances
 * are a slice. */
static void write_rows(struct lower *l, struct tensor x, int dim, const struct sw_arg *index, struct tensor src)
{
  struct indices ix = {.n = 1, .first = dim, .adjacent = true, .constant = lw_constant_elements(l, index->value)};
  ix.of[dim] = index;
  int rank;
  int64_t size[SW_MAX_RANK], step[SW_MAX_RANK];
  int64_t *at = ix.constant ? picked(l, x, &ix, &rank, size) : NULL;
  if (at && rank == 1 && is_regular(at, rank, size, step)) {
    lw_write(l, indexed_view(x, &ix, at[0], rank, size, step), src);
    return;
  }
  struct tensor number = index_tensor(l, index);
  if (!lw_known(number) || !lw_known(src))
    return;
  if (x.size[dim] == 1 && number.rank == 1 && number.size[0] == 1) { /* the only row */
    lw_write(l, x, src);
    return;
  }
  if (number.rank == 0)
    number = lw_unsqueeze(number, 0);
  struct tensor out = x, in[2] = {number, lw_cast(l, src, x.dtype)};
  out.size[dim] = number.size[0];
  out.stride[dim] = 0;
  in[1] = lw_expand(l, in[1], out.rank, out.size);
  if (out.size[dim] > 1 && !in[1].stride[dim]) /* one row for all: the files name the loop over row numbers by a tensor that has it */
    in[1] = lw_clone(l, in[1]);
  in[0].rank = out.rank;
  for (int d = 0; d < out.rank; d++)
    in[0].stride[d] = d == dim ? number.stride[0] : 0;
  struct sw_op *op = lw_nest(l, SW_OP_IDENTITY, SW_ROLE_WRITE, out.rank, out.rank, out.size, out, 2, in);
  if (op) {
    op->out.index_input = 0;
    op->out.index_step = x.stride[dim];
    op->out.index_range = x.size[dim];
    refuse_single(l, op);
  }
}

/* Rows of one element each have no dim for a stick but that of the row numbers. */
static bool has_single_elements(const struct sw_value *x, int dim)
{
  return sw_value_elements(x) == x->size[dim];
}

/* The tensor to write into: in-place overloads write into their own. */
static struct tensor destination(struct lower *l)
{
  const struct sw_arg *a = lw_arg(l, "self");
  return lw_node_writes(l, l->node) ? lw_tensor_of(l, a) : lw_writable(l, a);
}

void lw_op_index_copy(struct lower *l, int unused)
{
  (void)unused;
  const struct sw_value *v = &l->graph->values.v[lw_arg(l, "self")->value];
  int dim = lw_dim(lw_int(l, "dim"), v->rank);
  if (v->rank && l->best && has_single_elements(v, dim)) {
    lw_host(l, LW_ELEMENTS);
    return;
  }
  struct tensor src = lw_argument(l, lw_arg(l, "source"), lw_result_dtype(l, 0));
  struct tensor x = destination(l);
  if (lw_known(x))
    write_rows(l, x, dim, lw_arg(l, "index"), src);
  lw_set(l, 0, l->failed ? lw_unknown() : x);
}

/* One 1-d index tensor: rows of that dim. Others, and adding up, on the host. */
void lw_op_index_put(struct lower *l, int unused)
{
  (void)unused;
  struct indices ix;
  const struct sw_arg *a = lw_arg(l, "self");
  const struct sw_value *v = &l->graph->values.v[a->value];
  struct tensor shape = {.storage = LW_NONE, .rank = v->rank};
  bool rows = read_indices(l, shape, &ix) && ix.n == 1 && l->graph->values.v[ix.of[ix.first]->value].rank <= 1;
  if (!rows || lw_bool(l, "accumulate") || (l->best && has_single_elements(v, ix.first))) {
    lw_host(l, LW_ELEMENTS);
    return;
  }
  struct tensor src = lw_argument(l, lw_arg(l, "values"), lw_result_dtype(l, 0));
  struct tensor x = destination(l);
  if (lw_known(x))
    write_rows(l, x, ix.first, ix.of[ix.first], src);
  lw_set(l, 0, l->failed ? lw_unknown() : x);
}

/* -- reversed -- */

/* Rows in descending order, by a table of row numbers. */
struct tensor lw_flip(struct lower *l, struct tensor x, int dim)
{
  if (!lw_known(x) || x.size[dim] < 2)
    return x;
  int64_t size = x.size[dim], *row = SW_NEW_N(lw_scratch(l), int64_t, size);
  for (int64_t k = 0; k < size; k++)
    row[k] = size - 1 - k;
  return lw_known_rows(l, x, dim, size, row);
}

void lw_op_flip(struct lower *l, int unused)
{
  (void)unused;
  struct tensor x = lw_tensor(l, "self");
  int64_t dims[SW_MAX_RANK];
  int n = lw_ints(l, "dims", dims);
  bool vector = lw_known(x) && n == 1 && x.rank > 0 && x.size[lw_dim(dims[0], x.rank)] > MAX_RUNS;
  for (int d = 0; vector && d < x.rank; d++)
    vector = x.size[d] == 1 || d == lw_dim(dims[0], x.rank);
  if (l->best && vector) { /* no other dim that could be the stick */
    lw_host(l, 0);
    return;
  }
  for (int i = 0; i < n && lw_known(x); i++)
    x = lw_flip(l, x, lw_dim(dims[i], x.rank));
  lw_set(l, 0, x);
}
