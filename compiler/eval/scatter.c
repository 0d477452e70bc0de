/* One index per element: gather, scatter; and counting: histc, bincount, isin, unique. */
#include "compiler/eval/rows.h"

#include <math.h>
#include <string.h>

/* Calls body for every element of `index`: *at is the place in `t` of the same element, with dim replaced by the
 * index. */
struct picks {
  struct sw_walk w;
  struct sw_tensor t, index;
  int dim;
};

static void picks_start(struct sw_call *c, struct picks *p, const struct sw_tensor *t, const struct sw_tensor *index,
                        const struct sw_tensor *other, int dim)
{
  p->t = *t;
  p->index = *index;
  p->dim = dim;
  struct sw_tensor base = *t, beside = *other;
  if (t->rank != index->rank || other->rank != index->rank)
    sw_call_stop(c, SW_INVALID, "an index of rank %d for a tensor of rank %d", index->rank, t->rank);
  for (int d = 0; d < index->rank; d++) {
    if ((d != dim && index->size[d] > t->size[d]) || index->size[d] > other->size[d])
      sw_call_stop(c, SW_INVALID, "the index is larger than the tensor in dim %d", d);
    base.size[d] = beside.size[d] = index->size[d];
  }
  if (t->rank > 0)
    base.stride[dim] = 0;
  sw_walk(&p->w, 3, (const struct sw_tensor *const[]){&base, index, &beside});
}

static int64_t picks_place(struct sw_call *c, const struct picks *p, int64_t i)
{
  int64_t k, n = p->t.rank ? p->t.size[p->dim] : 1;
  sw_row_wholes(&p->index, p->w.at[1] + i * p->w.step[1], 1, 1, &k);
  if (k < -n || k >= n)
    sw_call_stop(c, SW_INVALID, "index %lld is not in a dim of %lld", (long long)k, (long long)n);
  return p->w.at[0] + i * p->w.step[0] + (k < 0 ? k + n : k) * (p->t.rank ? p->t.stride[p->dim] : 0);
}

static void gather(struct sw_call *c, const struct sw_tensor *t, const struct sw_tensor *index, int dim)
{
  struct sw_tensor out = sw_call_out(c, 0, index->rank, index->size);
  struct picks p;
  for (picks_start(c, &p, t, index, &out, dim); p.w.more; sw_walk_on(&p.w))
    for (int64_t i = 0; i < p.w.n; i++) {
      struct sw_tensor from = *t, to = out;
      from.rank = to.rank = 0;
      from.offset = picks_place(c, &p, i);
      to.offset = p.w.at[2] + i * p.w.step[2];
      sw_tensor_copy(&to, &from, c->rounding);
    }
}

void sw_op_gather(struct sw_call *c)
{
  struct sw_tensor t = sw_call_tensor(c, "self"), index = sw_call_tensor(c, "index");
  gather(c, &t, &index, sw_call_dim(c, "dim", t.rank));
}

/* gather after broadcasting all dims but one; without a dim, in the flattened tensor. */
void sw_op_take_along_dim(struct sw_call *c)
{
  struct sw_tensor t = sw_call_tensor(c, "self"), index = sw_call_tensor(c, "indices");
  if (!sw_call_has(c, "dim")) {
    int64_t open = -1;
    t = sw_call_reshape(c, &t, 1, &open);
    index = sw_call_reshape(c, &index, 1, &open);
    gather(c, &t, &index, 0);
    return;
  }
  int dim = sw_call_dim(c, "dim", t.rank);
  if (t.rank != index.rank)
    sw_call_stop(c, SW_INVALID, "an index of rank %d for a tensor of rank %d", index.rank, t.rank);
  int64_t size[SW_MAX_RANK], along = t.rank ? t.size[dim] : 1, picked = t.rank ? index.size[dim] : 1;
  struct sw_tensor a = t, b = index;
  a.size[dim] = b.size[dim] = 1;
  int rank = sw_call_broadcast(c, size, sw_call_broadcast(c, size, 0, &a), &b);
  size[dim] = along;
  t = sw_call_expand(c, &t, rank, size);
  size[dim] = picked;
  index = sw_call_expand(c, &index, rank, size);
  gather(c, &t, &index, dim);
}

/* What becomes of an element that is hit: `old` and how often it was hit before count. */
static double combine(enum sw_scatter how, double old, double x)
{
  switch (how) {
  case SW_SCATTER_WRITE:
    return x;
  case SW_SCATTER_ADD:
  case SW_SCATTER_MEAN:
    return old + x;
  case SW_SCATTER_PROD:
    return old * x;
  case SW_SCATTER_MAX:
    return isnan(old) || old > x ? old : x;
  case SW_SCATTER_MIN:
  case SW_SCATTER_NAMED:
    break;
  }
  return isnan(old) || old < x ? old : x;
}

static enum sw_scatter named(struct sw_call *c)
{
  static const char *const names[] = {"", "sum", "mean", "prod", "amax", "amin"};
  const char *name = sw_call_text(c, "reduce", "");
  for (int i = 1; i < (int)(sizeof names / sizeof names[0]); i++)
    if (!strcmp(name, names[i]))
      return (enum sw_scatter)i;
  sw_call_stop(c, SW_UNSUPPORTED, "reduce \"%s\"", name);
}

/* Sums are kept in double until the end, so the order of hits does not show in the rounding. */
void sw_op_scatter(struct sw_call *c)
{
  struct sw_tensor self = sw_call_tensor(c, "self"), index = sw_call_tensor(c, "index");
  struct sw_tensor src = sw_call_tensor(c, c->op->args);
  enum sw_scatter how = c->op->what == SW_SCATTER_NAMED ? named(c) : (enum sw_scatter)c->op->what;
  bool fresh = c->op->what == SW_SCATTER_NAMED && !sw_call_bool(c, "include_self");
  int dim = sw_call_dim(c, "dim", self.rank);
  if (!strcmp(c->op->args, "value"))
    src = sw_call_expand(c, &src, index.rank, index.size);
  bool whole = sw_class_of(self.dtype) == SW_CLASS_WHOLE;
  if (sw_class_of(self.dtype) == SW_CLASS_COMPLEX)
    sw_call_stop(c, SW_UNSUPPORTED, "complex numbers");
  struct sw_tensor sum = sw_call_new(c, whole ? SW_I64 : SW_F64, self.rank, self.size);
  struct sw_tensor hits = sw_call_new(c, SW_I64, self.rank, self.size);
  sw_call_copy(c, &sum, &self);
  struct picks p;
  for (picks_start(c, &p, &sum, &index, &src, dim); p.w.more; sw_walk_on(&p.w))
    for (int64_t i = 0; i < p.w.n; i++) {
      int64_t at = picks_place(c, &p, i), from = p.w.at[2] + i * p.w.step[2];
      bool first = fresh && hits.cells->integer[at] == 0;
      hits.cells->integer[at]++;
      if (whole && how <= SW_SCATTER_ADD) {
        int64_t x;
        sw_row_wholes(&src, from, 1, 1, &x);
        bool adds = how == SW_SCATTER_ADD && !first;
        sum.cells->integer[at] = adds ? (int64_t)((uint64_t)sum.cells->integer[at] + (uint64_t)x) : x;
        continue;
      }
      double x, old;
      sw_row_reals(&src, from, 1, 1, &x);
      sw_row_reals(&sum, at, 1, 1, &old);
      x = first ? x : combine(how, old, x);
      sw_row_put_reals(&sum, at, 1, 1, &x, SW_ROUND_NONE);
    }
  for (int64_t i = 0; how == SW_SCATTER_MEAN && i < hits.cells->n; i++) {
    int64_t n = hits.cells->integer[i] + !fresh;
    if (n > 1 && whole)
      sum.cells->integer[i] = (int64_t)floor((double)sum.cells->integer[i] / (double)n);
    else if (n > 1)
      sum.cells->real[i] /= (double)n;
  }
  struct sw_tensor out = sw_call_out(c, 0, self.rank, self.size);
  sw_call_copy(c, &out, &sum);
}

/* -- counting -- */

/* `bins` equal bins from min to max, both included; equal limits stand for the data's own. Others do not count. */
void sw_op_histc(struct sw_call *c)
{
  struct sw_tensor t = sw_call_tensor(c, "self");
  int64_t bins = sw_call_int(c, "bins"), n = sw_tensor_elements(&t);
  double low = sw_call_real(c, "min"), high = sw_call_real(c, "max"), *v = sw_call_get(c, &t);
  if (low == high && n > 0) {
    low = high = v[0];
    for (int64_t i = 1; i < n; i++) {
      low = fmin(low, v[i]);
      high = fmax(high, v[i]);
    }
  }
  if (low == high) {
    low--;
    high++;
  }
  if (bins <= 0 || !(low < high) || isinf(high - low))
    sw_call_stop(c, SW_INVALID, "%lld bins from %g to %g", (long long)bins, low, high);
  double *count = sw_call_reals(c, bins);
  for (int64_t i = 0; i < n; i++)
    if (v[i] >= low && v[i] <= high) {
      int64_t k = (int64_t)((v[i] - low) / (high - low) * (double)bins);
      count[k < bins ? k : bins - 1]++;
    }
  struct sw_tensor out = sw_call_out(c, 0, 1, &bins);
  sw_put_reals(&out, count, c->rounding);
}

void sw_op_bincount(struct sw_call *c)
{
  struct sw_tensor t = sw_call_tensor(c, "self");
  int64_t n = sw_tensor_elements(&t), *v = sw_call_get_wholes(c, &t), bins = sw_call_int_or(c, "minlength", 0);
  double *weights = NULL;
  if (sw_call_has(c, "weights")) {
    struct sw_tensor w = sw_call_tensor(c, "weights");
    if (sw_tensor_elements(&w) != n)
      sw_call_stop(c, SW_INVALID, "a weight per element is needed");
    weights = sw_call_get(c, &w);
  }
  for (int64_t i = 0; i < n; i++) {
    if (v[i] < 0 || v[i] == INT64_MAX)
      sw_call_stop(c, SW_INVALID, "bin %lld", (long long)v[i]);
    bins = v[i] >= bins ? v[i] + 1 : bins;
  }
  double *count = sw_call_reals(c, bins);
  for (int64_t i = 0; i < n; i++)
    count[v[i]] += weights ? weights[i] : 1;
  struct sw_tensor out = sw_call_out(c, 0, 1, &bins);
  sw_put_reals(&out, count, c->rounding);
}

/* All elements of t as a row; integers exactly. */
static struct sw_row row_of(struct sw_call *c, const struct sw_tensor *t)
{
  struct sw_row r = {.n = sw_tensor_elements(t)};
  if (sw_class_of(t->dtype) == SW_CLASS_WHOLE)
    r.whole = sw_call_get_wholes(c, t);
  else
    r.real = sw_call_get(c, t);
  return r;
}

/* Both tensors in one row, sorted stably with the tests first: then an element is in the set when the nearest test
 * element before it in the order is equal. */
void sw_op_isin(struct sw_call *c)
{
  struct sw_tensor t = sw_call_tensor(c, "elements"), set = sw_call_tensor(c, "test_elements");
  bool invert = sw_call_bool(c, "invert");
  bool whole = sw_class_of(t.dtype) == SW_CLASS_WHOLE && sw_class_of(set.dtype) == SW_CLASS_WHOLE;
  int64_t n = sw_tensor_elements(&t), m = sw_tensor_elements(&set), open = -1;
  struct sw_tensor all = sw_call_new(c, whole ? SW_I64 : SW_F64, 1, (int64_t[]){n + m}), to = all, flat;
  flat = sw_call_reshape(c, &set, 1, &open);
  to.size[0] = m;
  sw_call_copy(c, &to, &flat);
  flat = sw_call_reshape(c, &t, 1, &open);
  to.offset = m;
  to.size[0] = n;
  sw_call_copy(c, &to, &flat);
  struct sw_row r = row_of(c, &all);
  int64_t *order = sw_call_wholes(c, r.n), *room = sw_call_wholes(c, r.n), *found = sw_call_wholes(c, n), last = -1;
  sw_row_sort(&r, false, order, room);
  for (int64_t i = 0; i < r.n; i++) {
    if (order[i] < m)
      last = order[i];
    else
      found[order[i] - m] = (last >= 0 && sw_row_compare(&r, last, order[i]) == 0) != invert;
  }
  struct sw_tensor out = sw_call_out(c, 0, t.rank, t.size);
  sw_put_wholes(&out, found, c->rounding);
}

/* Different elements in rising order, where each went, and how often there was each. */
void sw_op_unique(struct sw_call *c)
{
  struct sw_tensor t = sw_call_tensor(c, "self");
  struct sw_row r = row_of(c, &t);
  int64_t *order = sw_call_wholes(c, r.n), *room = sw_call_wholes(c, r.n), n = 0;
  int64_t *place = sw_call_wholes(c, r.n), *count = sw_call_wholes(c, r.n), *first = sw_call_wholes(c, r.n);
  sw_row_sort(&r, false, order, room);
  for (int64_t i = 0; i < r.n; i++) {
    bool is_nan = r.real && isnan(r.real[order[i]]);
    if (i == 0 || is_nan || sw_row_compare(&r, order[i - 1], order[i]) != 0)
      first[n++] = order[i];
    place[order[i]] = n - 1;
    count[n - 1]++;
  }
  struct sw_tensor out = sw_call_out(c, 0, 1, &n);
  for (int64_t i = 0; i < n; i++) {
    if (r.whole)
      sw_row_put_wholes(&out, out.offset + i * out.stride[0], 1, 1, &r.whole[first[i]], c->rounding);
    else
      sw_row_put_reals(&out, out.offset + i * out.stride[0], 1, 1, &r.real[first[i]], c->rounding);
  }
  int64_t none = 0;
  bool inverse = sw_call_bool(c, "return_inverse"), counts = sw_call_bool(c, "return_counts");
  out = inverse ? sw_call_out(c, 1, t.rank, t.size) : sw_call_out(c, 1, 1, &none);
  if (inverse)
    sw_put_wholes(&out, place, c->rounding);
  out = counts ? sw_call_out(c, 2, 1, &n) : sw_call_out(c, 2, 1, &none);
  if (counts)
    sw_put_wholes(&out, count, c->rounding);
}
