/* Rows that become rows: softmax, running sums, sorting. */
#include "compiler/eval/rows.h"

#include <math.h>

/* A row in, a row out, and where its elements came from (NULL when nobody asks). */
typedef void scan_fn(const struct sw_row *in, struct sw_row *out, int64_t *from);

static void softmax(const struct sw_row *in, struct sw_row *out, int64_t *from)
{
  (void)from;
  double shift = sw_row_softmax_shift(in->real, in->n);
  for (int64_t i = 0; i < in->n; i++)
    out->real[i] = exp(in->real[i] - shift);
}

/* A row of nothing but -inf gives 0, not NaN. */
static void safe_softmax(const struct sw_row *in, struct sw_row *out, int64_t *from)
{
  if (isinf(sw_row_logsumexp(in->real, in->n)) && sw_row_logsumexp(in->real, in->n) < 0)
    for (int64_t i = 0; i < in->n; i++)
      out->real[i] = 0;
  else
    softmax(in, out, from);
}

static void log_softmax(const struct sw_row *in, struct sw_row *out, int64_t *from)
{
  (void)from;
  double shift = sw_row_softmax_shift(in->real, in->n);
  for (int64_t i = 0; i < in->n; i++)
    out->real[i] = in->real[i] - shift;
}

static void cumsum(const struct sw_row *in, struct sw_row *out, int64_t *from)
{
  (void)from;
  double sum = 0;
  uint64_t whole = 0;
  for (int64_t i = 0; i < in->n; i++)
    if (in->whole)
      out->whole[i] = (int64_t)(whole += (uint64_t)in->whole[i]);
    else
      out->real[i] = sum += in->real[i];
}

static void cumprod(const struct sw_row *in, struct sw_row *out, int64_t *from)
{
  (void)from;
  double product = 1;
  uint64_t whole = 1;
  for (int64_t i = 0; i < in->n; i++)
    if (in->whole)
      out->whole[i] = (int64_t)(whole *= (uint64_t)in->whole[i]);
    else
      out->real[i] = product *= in->real[i];
}

static void logcumsumexp(const struct sw_row *in, struct sw_row *out, int64_t *from)
{
  (void)from;
  double sum = -(double)INFINITY; /* log of the sum so far */
  for (int64_t i = 0; i < in->n; i++) {
    double x = in->real[i], high = x > sum ? x : sum, low = x > sum ? sum : x;
    if (isnan(x) || isnan(sum))
      sum = (double)NAN;
    else
      sum = isinf(high) ? high : high + log1p(exp(low - high));
    out->real[i] = sum;
  }
}

static void put(const struct sw_row *in, struct sw_row *out, int64_t i, int64_t k)
{
  if (in->whole)
    out->whole[i] = in->whole[k];
  else
    out->real[i] = in->real[k];
}

/* The extreme so far; of equal ones the last. */
static void running_best(const struct sw_row *in, struct sw_row *out, int64_t *from, int sign)
{
  int64_t best = 0;
  for (int64_t i = 0; i < in->n; i++) {
    bool stuck = !in->whole && isnan(in->real[best]) && !isnan(in->real[i]);
    bool nan = !in->whole && isnan(in->real[i]);
    if (nan || (!stuck && sign * sw_row_compare(in, i, best) >= 0))
      best = i;
    put(in, out, i, best);
    from[i] = best;
  }
}

static void cummax(const struct sw_row *in, struct sw_row *out, int64_t *from)
{
  running_best(in, out, from, 1);
}

static void cummin(const struct sw_row *in, struct sw_row *out, int64_t *from)
{
  running_best(in, out, from, -1);
}

/* The first out->n of the sorted row. */
static void sorted(const struct sw_row *in, struct sw_row *out, int64_t *from, bool falling)
{
  sw_row_sort(in, falling, from, from + in->n);
  for (int64_t i = 0; i < out->n; i++)
    put(in, out, i, from[i]);
}

static void rising(const struct sw_row *in, struct sw_row *out, int64_t *from)
{
  sorted(in, out, from, false);
}

static void falling(const struct sw_row *in, struct sw_row *out, int64_t *from)
{
  sorted(in, out, from, true);
}

/* Applies fn along a dim: rows of x give rows of `length` elements. `values` and `places` are numbers of results, or
 * -1. Rows are read in the class of the result. */
static void scan(struct sw_call *c, const struct sw_tensor *x, int dim, int64_t length, scan_fn *fn, int values,
                 int places)
{
  int64_t size[SW_MAX_RANK];
  bool in_row[SW_MAX_RANK] = {false};
  for (int d = 0; d < x->rank; d++)
    size[d] = d == dim ? length : x->size[d];
  in_row[dim] = true;
  struct sw_tensor to[2];
  if (values >= 0)
    to[0] = sw_call_out(c, values, x->rank, size);
  if (places >= 0)
    to[1] = sw_call_out(c, places, x->rank, size);
  enum sw_dtype dtype = values >= 0 ? to[0].dtype : x->dtype;
  struct sw_split s = sw_split_dims(x, in_row), out[2];
  for (int k = 0; k < 2; k++)
    out[k] = (k ? places : values) >= 0 ? sw_split_dims(&to[k], in_row) : s;
  struct sw_row in = {.n = sw_tensor_elements(&s.row)}, row = {.n = x->rank ? length : 1};
  if (sw_class_of(dtype) == SW_CLASS_WHOLE) {
    in.whole = sw_call_wholes(c, in.n);
    row.whole = sw_call_wholes(c, row.n);
  } else {
    in.real = sw_call_reals(c, in.n);
    row.real = sw_call_reals(c, row.n);
  }
  int64_t *from = sw_call_wholes(c, 2 * in.n);
  const struct sw_tensor *kept[3] = {&s.kept, &out[0].kept, &out[1].kept};
  struct sw_walk w;
  for (sw_walk(&w, 3, kept); w.more; sw_walk_on(&w))
    for (int64_t i = 0; i < w.n; i++) {
      s.row.offset = w.at[0] + i * w.step[0];
      if (in.whole)
        sw_get_wholes(&s.row, in.whole);
      else
        sw_get_reals(&s.row, in.real);
      fn(&in, &row, from);
      out[0].row.offset = w.at[1] + i * w.step[1];
      out[1].row.offset = w.at[2] + i * w.step[2];
      if (values >= 0 && in.whole)
        sw_put_wholes(&out[0].row, row.whole, c->rounding);
      else if (values >= 0)
        sw_put_reals(&out[0].row, row.real, c->rounding);
      if (places >= 0)
        sw_put_wholes(&out[1].row, from, c->rounding);
    }
}

void sw_op_scan(struct sw_call *c)
{
  static scan_fn *const fns[] = {
      [SW_SCAN_SOFTMAX] = softmax,   [SW_SCAN_SAFE_SOFTMAX] = safe_softmax, [SW_SCAN_LOG_SOFTMAX] = log_softmax,
      [SW_SCAN_CUMSUM] = cumsum,     [SW_SCAN_CUMPROD] = cumprod,           [SW_SCAN_LOGCUMSUMEXP] = logcumsumexp,
      [SW_SCAN_CUMMAX] = cummax,     [SW_SCAN_CUMMIN] = cummin,
  };
  struct sw_tensor x = sw_call_tensor(c, "self");
  int dim = sw_call_dim(c, "dim", x.rank);
  bool places = c->op->what == SW_SCAN_CUMMAX || c->op->what == SW_SCAN_CUMMIN;
  scan(c, &x, dim, x.rank ? x.size[dim] : 1, fns[c->op->what], 0, places ? 1 : -1);
}

/* sort and (`what` 1) argsort. Equal elements keep their order, which both the stable and the plain overload allow. */
void sw_op_sort(struct sw_call *c)
{
  struct sw_tensor x = sw_call_tensor(c, "self");
  int dim = sw_call_dim(c, "dim", x.rank);
  bool only_places = c->op->what == 1;
  scan(c, &x, dim, x.rank ? x.size[dim] : 1, sw_call_bool(c, "descending") ? falling : rising, only_places ? -1 : 0,
       only_places ? 0 : 1);
}

void sw_op_topk(struct sw_call *c)
{
  struct sw_tensor x = sw_call_tensor(c, "self");
  int dim = sw_call_dim(c, "dim", x.rank);
  int64_t k = sw_call_int(c, "k");
  if (k < 0 || k > (x.rank ? x.size[dim] : 1))
    sw_call_stop(c, SW_INVALID, "%lld elements of a dim of %lld", (long long)k, (long long)(x.rank ? x.size[dim] : 1));
  scan(c, &x, dim, k, sw_call_bool(c, "largest") ? falling : rising, 0, 1);
}

/* self with the optional `prepend` before it and `append` behind it along dim. */
static struct sw_tensor extended(struct sw_call *c, int dim)
{
  static const char *const names[] = {"prepend", "self", "append"};
  struct sw_tensor parts[3], all = sw_call_tensor(c, "self");
  int64_t length = 0, at = 0;
  for (int i = 0; i < 3; i++) {
    bool there = sw_call_has(c, names[i]);
    parts[i] = there ? sw_call_tensor(c, names[i]) : all;
    if (parts[i].rank != all.rank)
      sw_call_stop(c, SW_INVALID, "%s of rank %d for a tensor of rank %d", names[i], parts[i].rank, all.rank);
    parts[i].size[dim] = there ? parts[i].size[dim] : 0;
    length += parts[i].size[dim];
  }
  int64_t size[SW_MAX_RANK];
  for (int d = 0; d < all.rank; d++)
    size[d] = d == dim ? length : all.size[d];
  all = sw_call_new(c, all.dtype, all.rank, size);
  for (int i = 0; i < 3; i++) {
    struct sw_tensor to = all;
    to.offset += at * to.stride[dim];
    to.size[dim] = parts[i].size[dim];
    sw_call_copy(c, &to, &parts[i]);
    at += to.size[dim];
  }
  return all;
}

/* Differences of neighbours, n times; of bools whether they differ. */
void sw_op_diff(struct sw_call *c)
{
  struct sw_tensor x = sw_call_tensor(c, "self");
  int dim = sw_call_dim(c, "dim", x.rank);
  int64_t n = sw_call_int(c, "n");
  if (x.rank == 0 || n < 0)
    sw_call_stop(c, SW_INVALID, "%lld differences along dim %d", (long long)n, dim);
  if (sw_call_has(c, "prepend") || sw_call_has(c, "append"))
    x = extended(c, dim);
  n = n < x.size[dim] ? n : x.size[dim];
  for (int64_t i = 0; i < n; i++) {
    struct sw_tensor low = x, high = x;
    low.size[dim] = high.size[dim] = x.size[dim] - 1;
    high.offset += high.stride[dim];
    struct sw_tensor one = sw_call_scalar(c, (struct sw_number){.kind = SW_NUMBER_BOOL, .i = 1});
    x = sw_call_new(c, sw_call_out_dtype(c, 0), low.rank, low.size);
    sw_apply(c, &x, x.dtype == SW_BOOL ? SW_K_logical_xor : SW_K_sub, x.dtype == SW_BOOL ? 2 : 3,
             (struct sw_tensor[]){high, low, one}, NULL);
  }
  struct sw_tensor out = sw_call_out(c, 0, x.rank, x.size);
  sw_call_copy(c, &out, &x);
}
