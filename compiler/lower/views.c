/* Views: only the numbers of a tensor change. The overloads that are views are at the end. */
#include "compiler/lower/families.h"

#include <string.h>

bool lw_is_contiguous(struct tensor x)
{
  int64_t n = 1;
  for (int d = x.rank - 1; d >= 0; d--) {
    if (x.size[d] != 1 && x.stride[d] != n)
      return false;
    n *= x.size[d];
  }
  return true;
}

bool lw_same_view(struct tensor a, struct tensor b)
{
  if (a.storage != b.storage || a.offset != b.offset || a.rank != b.rank)
    return false;
  for (int d = 0; d < a.rank; d++)
    if (a.size[d] != b.size[d] || (a.size[d] > 1 && a.stride[d] != b.stride[d]))
      return false;
  return true;
}

bool lw_broadcast(int n, const struct tensor *in, int *rank, int64_t size[SW_MAX_RANK])
{
  *rank = 0;
  for (int i = 0; i < n; i++)
    *rank = in[i].rank > *rank ? in[i].rank : *rank;
  for (int d = 0; d < *rank; d++) {
    size[d] = 1;
    for (int i = 0; i < n; i++) {
      int own = d - (*rank - in[i].rank);
      if (own < 0 || in[i].size[own] == 1)
        continue;
      if (size[d] != 1 && size[d] != in[i].size[own])
        return false;
      size[d] = in[i].size[own];
    }
  }
  return true;
}

/* The strides of x seen with other sizes, or false when some new dim would run over a seam. Runs of dims that lie in
 * one another are merged first: size [2,3,4] stride [24,4,1] has the runs [2]x24 and [12]x1; each run must split into
 * a run of new dims. */
bool lw_reshape_view(struct tensor x, int rank, const int64_t *size, struct tensor *out)
{
  struct tensor t = x;
  t.rank = rank;
  memcpy(t.size, size, (size_t)rank * sizeof *size);
  int64_t elements = 1;
  for (int d = 0; d < x.rank; d++)
    elements *= x.size[d];
  if (elements == 0) {
    lw_contiguous_strides(rank, size, t.stride);
    *out = t;
    return true;
  }
  int at = rank - 1;
  int64_t run = 1, base = 0;
  for (int d = x.rank - 1; d >= 0; d--) {
    if (x.size[d] == 1)
      continue;
    if (run == 1)
      base = x.stride[d];
    run *= x.size[d];
    int next = d - 1;
    while (next >= 0 && x.size[next] == 1)
      next--;
    if (next >= 0 && x.stride[next] == x.size[d] * x.stride[d])
      continue; /* the run goes on */
    int64_t got = 1;
    while (at >= 0 && (got < run || size[at] == 1)) {
      t.stride[at] = got * base;
      got *= size[at--];
    }
    if (got != run)
      return false;
    run = 1;
  }
  for (; at >= 0; at--) {
    if (size[at] != 1)
      return false;
    t.stride[at] = 0;
  }
  *out = t;
  return true;
}

struct tensor lw_reshape(struct lower *l, struct tensor x, int rank, const int64_t *size)
{
  struct tensor t;
  if (!lw_known(x))
    return x;
  if (lw_reshape_view(x, rank, size, &t))
    return t;
  if (!lw_reshape_view(lw_clone(l, x), rank, size, &t))
    return lw_refuse(l, NULL, "a view with another number of elements");
  return t;
}

struct tensor lw_expand(struct lower *l, struct tensor x, int rank, const int64_t *size)
{
  if (!lw_known(x))
    return x;
  struct tensor t = x;
  t.rank = rank;
  for (int d = 0; d < rank; d++) {
    int own = d - (rank - x.rank);
    bool broadcast = own < 0 || (x.size[own] == 1 && size[d] != 1);
    if (!broadcast && x.size[own] != size[d])
      return lw_refuse(l, NULL, "a dim of %lld elements can not be expanded to %lld", (long long)x.size[own],
                       (long long)size[d]);
    t.size[d] = size[d];
    t.stride[d] = broadcast ? 0 : x.stride[own];
  }
  return t;
}

struct tensor lw_permute(struct tensor x, const int *order)
{
  struct tensor t = x;
  for (int d = 0; d < x.rank; d++) {
    t.size[d] = x.size[order[d]];
    t.stride[d] = x.stride[order[d]];
  }
  return t;
}

struct tensor lw_transpose(struct tensor x, int a, int b)
{
  if (!lw_known(x) || x.rank == 0)
    return x;
  struct tensor t = x;
  t.size[a] = x.size[b];
  t.stride[a] = x.stride[b];
  t.size[b] = x.size[a];
  t.stride[b] = x.stride[a];
  return t;
}

struct tensor lw_slice(struct tensor x, int dim, int64_t start, int64_t n, int64_t step)
{
  if (!lw_known(x))
    return x;
  x.offset += start * x.stride[dim];
  x.size[dim] = n;
  x.stride[dim] *= step;
  return x;
}

struct tensor lw_squeeze(struct tensor x, int dim)
{
  if (!lw_known(x))
    return x;
  for (int d = dim; d + 1 < x.rank; d++) {
    x.size[d] = x.size[d + 1];
    x.stride[d] = x.stride[d + 1];
  }
  x.rank--;
  return x;
}

struct tensor lw_select(struct tensor x, int dim, int64_t index)
{
  return lw_squeeze(lw_slice(x, dim, index, 1, 1), dim);
}

struct tensor lw_unsqueeze(struct tensor x, int dim)
{
  if (!lw_known(x) || x.rank == SW_MAX_RANK)
    return x;
  for (int d = x.rank; d > dim; d--) {
    x.size[d] = x.size[d - 1];
    x.stride[d] = x.stride[d - 1];
  }
  x.size[dim] = 1;
  x.stride[dim] = 0;
  x.rank++;
  return x;
}

/* -- overloads -- */

/* The result's shape is known: reshape, flatten, squeeze, unsqueeze and their like are one thing. */
void lw_op_reshape(struct lower *l, int unused)
{
  (void)unused;
  const struct sw_value *v = lw_value(l, 0);
  lw_set(l, 0, lw_reshape(l, lw_tensor_of(l, &lw_node(l)->args[0]), v->rank, v->size));
}

void lw_op_expand(struct lower *l, int unused)
{
  (void)unused;
  const struct sw_value *v = lw_value(l, 0);
  lw_set(l, 0, lw_expand(l, lw_tensor(l, "self"), v->rank, v->size));
}

void lw_op_alias(struct lower *l, int unused)
{
  (void)unused;
  lw_set(l, 0, lw_tensor_of(l, &lw_node(l)->args[0]));
}

void lw_op_permute(struct lower *l, int unused)
{
  (void)unused;
  struct tensor x = lw_tensor(l, "self");
  int64_t dims[SW_MAX_RANK];
  int order[SW_MAX_RANK], n = lw_ints(l, "dims", dims);
  for (int d = 0; d < n; d++)
    order[d] = lw_dim(dims[d], n);
  lw_set(l, 0, lw_known(x) ? lw_permute(x, order) : x);
}

void lw_op_transpose(struct lower *l, int unused)
{
  (void)unused;
  struct tensor x = lw_tensor(l, "self");
  int64_t a = 0, b = x.rank > 1;
  if (lw_node(l)->n_args >= 3) {
    a = lw_int_of(l, &lw_node(l)->args[1]);
    b = lw_int_of(l, &lw_node(l)->args[2]);
  }
  lw_set(l, 0, lw_transpose(x, lw_dim(a, x.rank), lw_dim(b, x.rank)));
}

void lw_op_reverse_dims(struct lower *l, int unused)
{
  (void)unused;
  struct tensor x = lw_tensor(l, "self");
  int order[SW_MAX_RANK];
  for (int d = 0; d < x.rank; d++)
    order[d] = x.rank - 1 - d;
  lw_set(l, 0, lw_known(x) ? lw_permute(x, order) : x);
}

/* The moved dims take the places named in destination, the others keep their order. */
void lw_op_movedim(struct lower *l, int unused)
{
  (void)unused;
  struct tensor x = lw_tensor(l, "self");
  int64_t from[SW_MAX_RANK], to[SW_MAX_RANK];
  int n = lw_ints(l, "source", from), order[SW_MAX_RANK];
  lw_ints(l, "destination", to);
  bool moved[SW_MAX_RANK] = {false};
  for (int d = 0; d < x.rank; d++)
    order[d] = -1;
  for (int i = 0; i < n && lw_known(x); i++) {
    order[lw_dim(to[i], x.rank)] = lw_dim(from[i], x.rank);
    moved[lw_dim(from[i], x.rank)] = true;
  }
  for (int d = 0, next = 0; d < x.rank; d++)
    if (order[d] < 0) {
      while (moved[next])
        next++;
      order[d] = next++;
    }
  lw_set(l, 0, lw_known(x) ? lw_permute(x, order) : x);
}

/* start:end:step as Python means it: negative counts from the end, both are clipped. */
static int64_t clip_index(int64_t i, int64_t n)
{
  if (i < 0)
    i += n;
  return i < 0 ? 0 : i > n ? n : i;
}

void lw_op_slice(struct lower *l, int unused)
{
  (void)unused;
  struct tensor x = lw_tensor(l, "self");
  if (!lw_known(x)) {
    lw_set(l, 0, x);
    return;
  }
  int dim = lw_dim(lw_int(l, "dim"), x.rank);
  int64_t start = lw_given(l, "start") ? clip_index(lw_int(l, "start"), x.size[dim]) : 0;
  int64_t step = lw_given(l, "step") ? lw_int(l, "step") : 1;
  lw_set(l, 0, lw_slice(x, dim, start, lw_value(l, 0)->size[dim], step));
}

void lw_op_narrow(struct lower *l, int unused)
{
  (void)unused;
  struct tensor x = lw_tensor(l, "self");
  int dim = lw_dim(lw_int(l, "dim"), x.rank);
  int64_t start = lw_int(l, "start");
  lw_set(l, 0, lw_slice(x, dim, start < 0 && lw_known(x) ? start + x.size[dim] : start, lw_int(l, "length"), 1));
}

void lw_op_select(struct lower *l, int unused)
{
  (void)unused;
  struct tensor x = lw_tensor(l, "self");
  int dim = lw_dim(lw_int(l, "dim"), x.rank);
  int64_t index = lw_int(l, "index");
  lw_set(l, 0, lw_select(x, dim, index < 0 && lw_known(x) ? index + x.size[dim] : index));
}

/* split, chunk, unbind and their like: pieces one behind the other; their sizes are those of the results. Those with a
 * dim in their name cut rows, columns or what is behind them. */
void lw_op_split(struct lower *l, int which)
{
  struct tensor x = lw_tensor(l, "self");
  bool unbind = which == LW_UNBIND;
  int dim = which == LW_HSPLIT ? x.rank > 1 : which == LW_VSPLIT ? 0 : which == LW_DSPLIT ? 2 : lw_dim(lw_int(l, "dim"), x.rank);
  const struct sw_node *n = lw_node(l);
  int64_t at = 0;
  for (int r = 0; r < n->n_results; r++) {
    const struct sw_value *v = lw_value(l, r);
    if (unbind) {
      lw_set(l, r, lw_select(x, dim, r));
      continue;
    }
    if (!v) {
      lw_refuse(l, NULL, "piece %d has no shape", r);
      return;
    }
    lw_set(l, r, lw_slice(x, dim, at, v->size[dim], 1));
    at += v->size[dim];
  }
}

/* A view whose dims walk over the same elements (windows that overlap) as a tensor of its own: no layout has an element in
 * two places. The shorter of two such dims is copied step by step, outermost in memory. 5 elements as windows of 3, strides
 * 1 and 1: three copies of 3 elements. */
struct tensor lw_apart(struct lower *l, struct tensor t)
{
  for (int a = 0; lw_known(t) && a < t.rank; a++)
    for (int b = 0; b < t.rank; b++) {
      bool crosses = a != b && t.size[a] > 1 && t.size[b] > 1 && t.stride[b] > 0 && t.stride[a] >= t.stride[b] &&
                     (t.size[b] - 1) * t.stride[b] >= t.stride[a];
      if (!crosses)
        continue;
      int d = t.size[a] < t.size[b] ? a : b, order[SW_MAX_RANK];
      int64_t size[SW_MAX_RANK] = {t.size[d]};
      for (int k = 0; k < t.rank; k++) {
        if (k != d)
          size[k < d ? k + 1 : k] = t.size[k];
        order[k] = k == d ? 0 : k < d ? k + 1 : k;
      }
      struct tensor out = lw_new(l, t.dtype, t.rank, size, NULL);
      for (int64_t i = 0; i < t.size[d] && !l->failed; i++)
        lw_write(l, lw_select(out, 0, i), lw_apart(l, lw_select(t, d, i)));
      return l->failed ? lw_unknown() : lw_permute(out, order);
    }
  return t;
}

void lw_op_unfold(struct lower *l, int unused)
{
  (void)unused;
  struct tensor x = lw_tensor(l, "self");
  if (lw_known(x)) {
    int dim = lw_dim(lw_int(l, "dimension"), x.rank);
    int64_t size = lw_int(l, "size"), step = lw_int(l, "step"), stride = x.stride[dim];
    x.stride[dim] = stride * step;
    x.size[dim] = lw_value(l, 0)->size[dim];
    x = lw_unsqueeze(x, x.rank);
    x.size[x.rank - 1] = size;
    x.stride[x.rank - 1] = stride;
    if (l->best && !l->values[l->values[lw_node(l)->results[0]].root].mutated)
      x = lw_apart(l, x);
  }
  lw_set(l, 0, x);
}

/* Strides count elements of the storage, so they mean what PyTorch meant only where the storage lies as it did. */
void lw_op_as_strided(struct lower *l, int unused)
{
  (void)unused;
  struct tensor x = lw_tensor(l, "self"), t;
  const struct sw_arg *a = lw_arg(l, "self");
  if (!lw_known(x)) {
    lw_set(l, 0, x);
    return;
  }
  const struct sw_value *from = &l->graph->values.v[a->value], *v = lw_value(l, 0);
  t = x;
  t.rank = v->rank;
  for (int d = 0; d < x.rank; d++)
    if (x.size[d] > 1 && x.stride[d] != from->stride[d]) {
      lw_refuse(l, "use slice, permute or view instead", "the tensor does not lie in memory as the strides assume");
      return;
    }
  if (lw_given(l, "storage_offset") && x.offset != from->offset) {
    lw_refuse(l, "use slice, permute or view instead", "the tensor does not start in memory where the offset assumes");
    return;
  }
  int64_t last = t.offset = lw_given(l, "storage_offset") ? lw_int(l, "storage_offset") : x.offset;
  for (int d = 0; d < v->rank; d++) {
    t.size[d] = v->size[d];
    t.stride[d] = v->stride[d];
    last += (v->size[d] - 1) * v->stride[d];
  }
  if (last >= sw_storage_elements(&l->program->storages.v[x.storage]))
    lw_refuse(l, "use slice, permute or view instead", "the view reaches element %lld, behind the tensor", (long long)last);
  else
    lw_set(l, 0, l->best && !l->values[l->values[lw_node(l)->results[0]].root].mutated ? lw_apart(l, t) : t);
}
