/* Indexing with tensors: index, index_put, embedding, index_select and its like. */
#include "compiler/eval/ops.h"

#include <string.h>

/* self[i0, :, i2] : dims with an index tensor and dims without. The index tensors broadcast to one size; per element of
 * it there is one place in self, which is a block of the other dims. The block dims before the index dims stay before
 * them when the index dims are neighbours; else all index dims come first, as in NumPy. */
struct indexing {
  int64_t n;           /* places */
  int64_t *at;         /* their offsets in self */
  struct sw_tensor block; /* self at place 0 without the indexed dims */
  int rank;            /* of the result: block dims before, index dims, block dims behind */
  int64_t size[SW_MAX_RANK];
  int first, index_rank;
};

static int64_t checked(struct sw_call *c, int64_t i, int64_t n)
{
  if (i < -n || i >= n)
    sw_call_stop(c, SW_INVALID, "index %lld is not in a dim of %lld", (long long)i, (long long)n);
  return i < 0 ? i + n : i;
}

/* Places where a mask is true, one index tensor per dim of it. */
static void mask_indices(struct sw_call *c, const struct sw_tensor *mask, struct sw_tensor *to)
{
  int64_t *v = sw_call_get_wholes(c, mask), all = sw_tensor_elements(mask), n = 0;
  for (int64_t i = 0; i < all; i++)
    n += v[i] != 0;
  for (int d = 0; d < mask->rank; d++)
    to[d] = sw_call_new(c, SW_I64, 1, &n);
  n = 0;
  for (int64_t i = 0; i < all; i++) {
    int64_t rest = i;
    for (int d = mask->rank - 1; d >= 0 && v[i] != 0; d--) {
      to[d].cells->integer[n] = rest % mask->size[d];
      rest /= mask->size[d];
    }
    n += v[i] != 0;
  }
}

static struct indexing resolve(struct sw_call *c, const struct sw_tensor *self)
{
  int n_given;
  const struct sw_tensor *given = sw_call_tensors(c, "indices", &n_given);
  struct sw_tensor index[SW_MAX_RANK] = {0};
  int dims = 0;
  for (int i = 0; i < n_given; i++) {
    bool is_mask = given[i].cells && (given[i].dtype == SW_BOOL || given[i].dtype == SW_U8);
    int takes = is_mask ? given[i].rank : 1;
    if (dims + takes > self->rank || (is_mask && takes == 0))
      sw_call_stop(c, SW_INVALID, "more indices than the %d dims of the tensor", self->rank);
    for (int d = 0; is_mask && d < takes; d++)
      if (given[i].size[d] != self->size[dims + d])
        sw_call_stop(c, SW_INVALID, "a mask of another size than the tensor");
    if (is_mask)
      mask_indices(c, &given[i], &index[dims]);
    else
      index[dims] = given[i];
    dims += takes;
  }
  struct indexing x = {.first = -1, .block = *self};
  int64_t size[SW_MAX_RANK];
  int last = -1, n_indexed = 0;
  for (int d = 0; d < dims; d++)
    if (index[d].cells) {
      x.index_rank = sw_call_broadcast(c, size, x.index_rank, &index[d]);
      x.first = x.first < 0 ? d : x.first;
      last = d;
      n_indexed++;
    }
  if (n_indexed == 0)
    sw_call_stop(c, SW_INVALID, "no index is a tensor");
  if (last - x.first + 1 != n_indexed)
    x.first = 0;
  x.n = sw_call_product(c, x.index_rank, size);
  x.at = sw_call_wholes(c, x.n);
  for (int d = dims - 1; d >= 0; d--) {
    if (!index[d].cells)
      continue;
    struct sw_tensor wide = sw_call_expand(c, &index[d], x.index_rank, size);
    int64_t *v = sw_call_get_wholes(c, &wide);
    for (int64_t i = 0; i < x.n; i++)
      x.at[i] += checked(c, v[i], self->size[d]) * self->stride[d];
    x.block = sw_tensor_at(&x.block, d, 0);
  }
  if (x.block.rank + x.index_rank > SW_MAX_RANK)
    sw_call_stop(c, SW_UNSUPPORTED, "a result of rank %d", x.block.rank + x.index_rank);
  for (int d = 0; d < x.block.rank + x.index_rank; d++) {
    bool before = d < x.first, index_dim = !before && d < x.first + x.index_rank;
    x.size[x.rank++] = index_dim ? size[d - x.first] : x.block.size[before ? d : d - x.index_rank];
  }
  return x;
}

/* The part of the result that belongs to a place: the index dims fixed. */
static struct sw_tensor part_of_place(const struct indexing *x, const struct sw_tensor *t, int64_t place)
{
  struct sw_tensor v = *t;
  for (int d = x->first + x->index_rank - 1; d >= x->first; d--) {
    int64_t n = v.size[d];
    v = sw_tensor_at(&v, d, place % n);
    place /= n;
  }
  return v;
}

/* Single elements: masks of transformers are made this way, millions of them. */
static void pick_elements(const struct sw_tensor *self, const struct indexing *x, const struct sw_tensor *out)
{
  int64_t k = 0;
  struct sw_walk w;
  for (sw_walk(&w, 1, &out); w.more; sw_walk_on(&w))
    for (int64_t i = 0; i < w.n; i++, k++) {
      int64_t to = w.at[0] + i * w.step[0], from = self->offset + x->at[k];
      if (out->cells->integer)
        out->cells->integer[to] = self->cells->integer[from];
      else
        out->cells->real[to] = self->cells->real[from];
    }
}

void sw_op_index(struct sw_call *c)
{
  struct sw_tensor self = sw_call_tensor(c, "self");
  struct indexing x = resolve(c, &self);
  struct sw_tensor out = sw_call_out(c, 0, x.rank, x.size);
  if (x.block.rank == 0 && self.dtype == out.dtype && sw_class_of(self.dtype) != SW_CLASS_COMPLEX) {
    pick_elements(&self, &x, &out);
    return;
  }
  for (int64_t i = 0; i < x.n; i++) {
    struct sw_tensor to = part_of_place(&x, &out, i), from = x.block;
    from.offset = self.offset + x.at[i];
    sw_call_copy(c, &to, &from);
  }
}

/* Adds or writes `from` into `to`. */
static void put(struct sw_call *c, const struct sw_tensor *to, const struct sw_tensor *from, bool add)
{
  if (!add) {
    sw_call_copy(c, to, from);
    return;
  }
  struct sw_tensor one = sw_call_scalar(c, (struct sw_number){.kind = SW_NUMBER_BOOL, .i = 1});
  sw_apply(c, to, SW_K_add, 3, (struct sw_tensor[]){*to, *from, one}, NULL);
}

/* Result 0 as a copy of self, to be written into. */
static struct sw_tensor copy_of_self(struct sw_call *c)
{
  struct sw_tensor self = sw_call_tensor(c, "self"), out = sw_call_out(c, 0, self.rank, self.size);
  sw_call_copy(c, &out, &self);
  return out;
}

void sw_op_index_put(struct sw_call *c)
{
  struct sw_tensor out = copy_of_self(c), values = sw_call_tensor(c, "values");
  struct indexing x = resolve(c, &out);
  while (values.rank > x.rank && values.size[0] == 1)
    values = sw_tensor_at(&values, 0, 0);
  values = sw_call_expand(c, &values, x.rank, x.size);
  for (int64_t i = 0; i < x.n; i++) {
    struct sw_tensor from = part_of_place(&x, &values, i), to = x.block;
    to.offset = out.offset + x.at[i];
    put(c, &to, &from, sw_call_bool(c, "accumulate"));
  }
}

/* Rows of a table. */
void sw_op_embedding(struct sw_call *c)
{
  struct sw_tensor table = sw_call_tensor(c, "weight"), rows = sw_call_tensor(c, "indices");
  int64_t size[SW_MAX_RANK], n = sw_tensor_elements(&rows), *v = sw_call_get_wholes(c, &rows);
  if (table.rank != 2 || rows.rank == SW_MAX_RANK)
    sw_call_stop(c, SW_INVALID, "a table of rank %d", table.rank);
  memcpy(size, rows.size, sizeof size);
  size[rows.rank] = table.size[1];
  struct sw_tensor made = sw_call_new(c, table.dtype, 2, (int64_t[]){n, table.size[1]});
  for (int64_t i = 0; i < n; i++) {
    struct sw_tensor to = sw_tensor_at(&made, 0, i), from = sw_tensor_at(&table, 0, checked(c, v[i], table.size[0]));
    sw_call_copy(c, &to, &from);
  }
  struct sw_tensor out = sw_call_out(c, 0, rows.rank + 1, size);
  made = sw_call_reshape(c, &made, rows.rank + 1, size);
  sw_call_copy(c, &out, &made);
}

void sw_op_index_select(struct sw_call *c)
{
  struct sw_tensor self = sw_call_tensor(c, "self"), index = sw_call_tensor(c, "index");
  int dim = sw_call_dim(c, "dim", self.rank);
  int64_t size[SW_MAX_RANK], n = sw_tensor_elements(&index), *v = sw_call_get_wholes(c, &index);
  if (self.rank == 0)
    sw_call_stop(c, SW_INVALID, "a tensor of rank 0 has no rows");
  memcpy(size, self.size, sizeof size);
  size[dim] = n;
  struct sw_tensor out = sw_call_out(c, 0, self.rank, size);
  for (int64_t i = 0; i < n; i++) {
    struct sw_tensor to = sw_tensor_at(&out, dim, i), from = sw_tensor_at(&self, dim, checked(c, v[i], self.size[dim]));
    sw_call_copy(c, &to, &from);
  }
}

/* Rows of self are written (index_copy), added to (index_add) or filled (index_fill), by `what`. */
void sw_op_index_write(struct sw_call *c)
{
  struct sw_tensor out = copy_of_self(c), index = sw_call_tensor(c, "index"), source = {0};
  int dim = sw_call_dim(c, "dim", out.rank);
  int64_t n = sw_tensor_elements(&index), *v = sw_call_get_wholes(c, &index);
  if (out.rank == 0)
    sw_call_stop(c, SW_INVALID, "a tensor of rank 0 has no rows");
  if (c->op->what == SW_INDEX_FILL) {
    int64_t size[SW_MAX_RANK];
    memcpy(size, out.size, sizeof size);
    size[dim] = n;
    struct sw_tensor value = sw_call_tensor(c, "value");
    source = sw_call_expand(c, &value, out.rank, size);
  } else {
    source = sw_call_tensor(c, "source");
  }
  if (source.rank != out.rank || source.size[dim] != n)
    sw_call_stop(c, SW_INVALID, "the source does not have a row per index");
  if (c->op->what == SW_INDEX_ADD && sw_call_has(c, "alpha")) {
    struct sw_tensor scaled = sw_call_new(c, out.dtype, source.rank, source.size);
    sw_apply(c, &scaled, SW_K_mul, 2, (struct sw_tensor[]){source, sw_call_operand(c, "alpha", NULL)}, NULL);
    source = scaled;
  }
  for (int64_t i = 0; i < n; i++) {
    struct sw_tensor to = sw_tensor_at(&out, dim, checked(c, v[i], out.size[dim]));
    struct sw_tensor from = sw_tensor_at(&source, dim, i);
    put(c, &to, &from, c->op->what == SW_INDEX_ADD);
  }
}

/* slice_scatter and select_scatter: a copy of self with a view of it written. */
void sw_op_view_scatter(struct sw_call *c)
{
  struct sw_tensor out = copy_of_self(c), source = sw_call_tensor(c, "src");
  struct sw_tensor to = c->op->what ? sw_call_select(c, &out) : sw_call_slice(c, &out);
  source = sw_call_expand(c, &source, to.rank, to.size);
  sw_call_copy(c, &to, &source);
}

/* The next elements of the source where the mask is true. */
void sw_op_masked_scatter(struct sw_call *c)
{
  struct sw_tensor self = sw_call_tensor(c, "self"), mask = sw_call_tensor(c, "mask");
  struct sw_tensor source = sw_call_tensor(c, "source");
  int64_t size[SW_MAX_RANK], at = 0, have = sw_tensor_elements(&source);
  int rank = sw_call_broadcast(c, size, sw_call_broadcast(c, size, 0, &self), &mask);
  struct sw_tensor out = sw_call_out(c, 0, rank, size);
  self = sw_call_expand(c, &self, rank, size);
  mask = sw_call_expand(c, &mask, rank, size);
  sw_call_copy(c, &out, &self);
  struct sw_tensor row = sw_call_reshape(c, &source, 1, &have);
  int64_t n = sw_tensor_elements(&mask), *seen = sw_call_get_wholes(c, &mask), dense[SW_MAX_RANK];
  sw_dense(rank, size, dense);
  for (int64_t i = 0; i < n; i++) {
    if (!seen[i])
      continue;
    if (at == have)
      sw_call_stop(c, SW_INVALID, "the mask has more places than the source elements");
    struct sw_tensor to = out, from = sw_tensor_at(&row, 0, at++);
    to.rank = 0;
    for (int d = 0; d < rank; d++)
      to.offset += i / dense[d] % size[d] * out.stride[d];
    sw_call_copy(c, &to, &from);
  }
}

/* Places of elements that are not 0, row by row: one tensor [n, rank], or (where.default) a tensor per dim. */
void sw_op_nonzero(struct sw_call *c)
{
  bool per_dim = c->op->what == 1;
  struct sw_tensor t = sw_call_tensor(c, per_dim ? "condition" : "self"), index[SW_MAX_RANK];
  struct sw_tensor truth = sw_call_new(c, SW_BOOL, t.rank, t.size), zero = sw_call_scalar(c, (struct sw_number){0});
  sw_apply(c, &truth, SW_K_ne, 2, (struct sw_tensor[]){t, zero}, NULL);
  mask_indices(c, &truth, index);
  int64_t n = 0, *v = truth.cells->integer;
  for (int64_t i = 0; i < truth.cells->n; i++)
    n += v[i];
  struct sw_tensor out = {0};
  if (!per_dim)
    out = sw_call_out(c, 0, 2, (int64_t[]){n, t.rank});
  for (int d = 0; d < t.rank; d++) {
    struct sw_tensor to = per_dim ? sw_call_out(c, d, 1, &n) : sw_tensor_at(&out, 1, d);
    sw_call_copy(c, &to, &index[d]);
  }
}

/* The first `size` places of elements that are not 0; rows that are left over hold `fill_value`. */
void sw_op_nonzero_static(struct sw_call *c)
{
  struct sw_tensor t = sw_call_tensor(c, "self");
  int64_t n = sw_call_int(c, "size"), fill = sw_call_int_or(c, "fill_value", -1), all = sw_tensor_elements(&t), k = 0;
  double *v = sw_call_get(c, &t);
  int64_t *to = sw_call_wholes(c, sw_call_product(c, 2, (int64_t[]){n, t.rank})), dense[SW_MAX_RANK];
  sw_dense(t.rank, t.size, dense);
  for (int64_t i = 0; i < all && k < n; i++) {
    for (int d = 0; d < t.rank && v[i] != 0; d++)
      to[k * t.rank + d] = i / dense[d] % t.size[d];
    k += v[i] != 0;
  }
  for (int64_t i = k * t.rank; i < n * t.rank; i++)
    to[i] = fill;
  struct sw_tensor out = sw_call_out(c, 0, 2, (int64_t[]){n, t.rank});
  sw_put_wholes(&out, to, c->rounding);
}
