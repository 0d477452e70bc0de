/* Reductions: a row becomes one element. */
#include "compiler/eval/rows.h"

#include <math.h>

struct reduction {
  enum sw_reduction what;
  double order;      /* of a norm */
  double correction; /* of a variance: divided by n - correction */
};

static double mean(const struct sw_row *r)
{
  double sum = 0;
  for (int64_t i = 0; i < r->n; i++)
    sum += r->real[i];
  return sum / (double)r->n;
}

static double variance(const struct sw_row *r, double correction)
{
  double m = mean(r), sum = 0, n = (double)r->n - correction;
  for (int64_t i = 0; i < r->n; i++)
    sum += (r->real[i] - m) * (r->real[i] - m);
  return sum / (n > 0 ? n : 0);
}

static double norm(const struct sw_row *r, double order)
{
  double sum = 0, largest = 0, smallest = (double)INFINITY;
  for (int64_t i = 0; i < r->n; i++) {
    double x = fabs(r->real[i]);
    if (isnan(x))
      return x;
    largest = fmax(largest, x);
    smallest = fmin(smallest, x);
    sum += order == 2 ? x * x : order == 1 ? x : order == 0 ? x != 0 : pow(x, order);
  }
  if (isinf(order))
    return order > 0 ? largest : smallest;
  return order == 2 ? sqrt(sum) : order == 1 || order == 0 ? sum : pow(sum, 1 / order);
}

/* log of the sum of exps, about the largest so that nothing overflows. */
double sw_row_logsumexp(const double *v, int64_t n)
{
  double m = -(double)INFINITY, sum = 0;
  for (int64_t i = 0; i < n; i++)
    m = isnan(v[i]) || v[i] > m ? v[i] : m;
  if (isinf(m) || isnan(m))
    return m;
  for (int64_t i = 0; i < n; i++)
    sum += exp(v[i] - m);
  return m + log(sum);
}

double sw_row_softmax_shift(const double *v, int64_t n)
{
  double sum = sw_row_logsumexp(v, n);
  return isinf(sum) && sum > 0 ? (double)NAN : sum;
}

static double real_of(const struct reduction *d, const struct sw_row *r)
{
  double x = d->what == SW_R_PROD;
  switch (d->what) {
  case SW_R_SUM:
    for (int64_t i = 0; i < r->n; i++)
      x += r->real[i];
    return x;
  case SW_R_PROD:
    for (int64_t i = 0; i < r->n; i++)
      x *= r->real[i];
    return x;
  case SW_R_MEAN:
    return mean(r);
  case SW_R_AMAX:
  case SW_R_AMIN:
    return r->real[sw_row_best(r, d->what == SW_R_AMIN)];
  case SW_R_NORM:
    return norm(r, d->order);
  case SW_R_LOGSUMEXP:
    return sw_row_logsumexp(r->real, r->n);
  case SW_R_VAR:
    return variance(r, d->correction);
  case SW_R_STD:
    return sqrt(variance(r, d->correction));
  case SW_R_ANY:
  case SW_R_ALL:
    break;
  }
  for (int64_t i = 0; i < r->n; i++)
    if ((r->real[i] != 0) == (d->what == SW_R_ANY))
      return d->what == SW_R_ANY;
  return d->what == SW_R_ALL;
}

static int64_t whole_of(enum sw_reduction what, const struct sw_row *r)
{
  if (what == SW_R_AMAX || what == SW_R_AMIN)
    return r->whole[sw_row_best(r, what == SW_R_AMIN)];
  uint64_t x = what == SW_R_PROD;
  for (int64_t i = 0; i < r->n; i++)
    x = what == SW_R_PROD ? x * (uint64_t)r->whole[i] : x + (uint64_t)r->whole[i];
  return (int64_t)x;
}

/* Result number `result` of the call, from x along the rows' dims. */
static void reduce(struct sw_call *c, int result, const struct sw_tensor *x, const bool *in_row, bool keepdim,
                   const struct reduction *how)
{
  struct sw_split s = sw_split_dims(x, in_row);
  int64_t size[SW_MAX_RANK];
  int rank = 0;
  for (int d = 0; d < x->rank; d++)
    if (keepdim || !in_row[d])
      size[rank++] = in_row[d] ? 1 : x->size[d];
  struct sw_tensor out = sw_call_out(c, result, rank, size);
  if (keepdim)
    out = sw_split_dims(&out, in_row).kept;
  bool exact = how->what == SW_R_SUM || how->what == SW_R_PROD || how->what == SW_R_AMAX || how->what == SW_R_AMIN;
  bool whole = exact && sw_class_of(out.dtype) == SW_CLASS_WHOLE;
  struct sw_row r = {.n = sw_tensor_elements(&s.row)};
  if (r.n == 0 && (how->what == SW_R_AMAX || how->what == SW_R_AMIN) && sw_tensor_elements(&out) > 0)
    sw_call_stop(c, SW_INVALID, "a row without elements has no extreme");
  if (whole)
    r.whole = sw_call_wholes(c, r.n);
  else
    r.real = sw_call_reals(c, r.n);
  struct sw_walk w;
  for (sw_walk(&w, 2, (const struct sw_tensor *const[]){&out, &s.kept}); w.more; sw_walk_on(&w))
    for (int64_t i = 0; i < w.n; i++) {
      s.row.offset = w.at[1] + i * w.step[1];
      if (whole) {
        sw_get_wholes(&s.row, r.whole);
        int64_t v = whole_of(how->what, &r);
        sw_row_put_wholes(&out, w.at[0] + i * w.step[0], 1, 1, &v, c->rounding);
      } else {
        sw_get_reals(&s.row, r.real);
        double v = real_of(how, &r);
        sw_row_put_reals(&out, w.at[0] + i * w.step[0], 1, 1, &v, c->rounding);
      }
    }
}

/* `args` names the dims, or is NULL for all of them. */
void sw_op_reduce(struct sw_call *c)
{
  struct sw_tensor x = sw_call_tensor(c, "self");
  bool in_row[SW_MAX_RANK];
  sw_call_dims(c, c->op->args, x.rank, in_row);
  struct reduction how = {.what = (enum sw_reduction)c->op->what};
  if (how.what == SW_R_NORM)
    how.order = sw_call_real(c, "ord");
  reduce(c, 0, &x, in_row, sw_call_bool(c, "keepdim"), &how);
}

/* var, std, var_mean; the divisor is n - correction, or n - 1 when unbiased. */
void sw_op_var(struct sw_call *c)
{
  struct sw_tensor x = sw_call_tensor(c, "self");
  bool in_row[SW_MAX_RANK], keepdim = sw_call_bool(c, "keepdim");
  sw_call_dims(c, "dim", x.rank, in_row);
  bool biased = sw_call_has(c, "unbiased") && !sw_call_bool(c, "unbiased");
  struct reduction how = {.what = (enum sw_reduction)c->op->what,
                          .correction = sw_call_real_or(c, "correction", biased ? 0 : 1)};
  reduce(c, 0, &x, in_row, keepdim, &how);
  if (sw_call_n_results(c) > 1)
    reduce(c, 1, &x, in_row, keepdim, &(struct reduction){.what = SW_R_MEAN});
}

void sw_op_aminmax(struct sw_call *c)
{
  struct sw_tensor x = sw_call_tensor(c, "self");
  bool in_row[SW_MAX_RANK], keepdim = sw_call_bool(c, "keepdim");
  sw_call_dims(c, "dim", x.rank, in_row);
  reduce(c, 0, &x, in_row, keepdim, &(struct reduction){.what = SW_R_AMIN});
  reduce(c, 1, &x, in_row, keepdim, &(struct reduction){.what = SW_R_AMAX});
}

/* -- an element and where it stands -- */

/* The lower median; NaN when there is one. */
static int64_t median(const struct sw_row *r, int64_t *order, int64_t *room)
{
  sw_row_sort(r, false, order, room);
  int64_t last = order[r->n - 1];
  return !r->whole && isnan(r->real[last]) ? last : order[(r->n - 1) / 2];
}

/* The most frequent element, the smallest of several; the last place where it stands. */
static int64_t mode(const struct sw_row *r, int64_t *order, int64_t *room)
{
  sw_row_sort(r, false, order, room);
  int64_t best = order[0], best_run = 0, run = 0;
  for (int64_t i = 0; i < r->n; i++) {
    run = i > 0 && sw_row_compare(r, order[i], order[i - 1]) == 0 ? run + 1 : 1;
    if (run > best_run || sw_row_compare(r, order[i], best) == 0) {
      best_run = run > best_run ? run : best_run;
      best = order[i];
    }
  }
  return best;
}

/* k: of the k-th smallest. */
static int64_t pick(enum sw_pick what, int64_t k, const struct sw_row *r, int64_t *order, int64_t *room)
{
  switch (what) {
  case SW_PICK_MAX:
  case SW_PICK_MIN:
    return sw_row_best(r, what == SW_PICK_MIN);
  case SW_PICK_MEDIAN:
    return median(r, order, room);
  case SW_PICK_KTH:
    sw_row_sort(r, false, order, room);
    return order[k - 1];
  case SW_PICK_MODE:
    break;
  }
  return mode(r, order, room);
}

/* max.dim and its like give values and places; argmax and argmin only places (`args` "place"). Without a dim the place
 * is that in the flattened tensor. */
void sw_op_pick(struct sw_call *c)
{
  struct sw_tensor x = sw_call_tensor(c, "self");
  bool only_place = c->op->args != NULL, keepdim = sw_call_bool(c, "keepdim"), all = !sw_call_has(c, "dim");
  int dim = all ? 0 : sw_call_dim(c, "dim", x.rank), rank = 0;
  int64_t size[SW_MAX_RANK];
  for (int d = 0; d < x.rank; d++) {
    bool gone = all || d == dim;
    if (!gone || keepdim)
      size[rank++] = gone ? 1 : x.size[d];
  }
  bool in_row[SW_MAX_RANK];
  for (int d = 0; d < x.rank; d++)
    in_row[d] = all || d == dim;
  struct sw_split s = sw_split_dims(&x, in_row);
  struct sw_row r = {.n = sw_tensor_elements(&s.row)};
  if (r.n == 0)
    sw_call_stop(c, SW_INVALID, "a row without elements has no extreme");
  if (sw_class_of(x.dtype) == SW_CLASS_WHOLE)
    r.whole = sw_call_wholes(c, r.n);
  else
    r.real = sw_call_reals(c, r.n);
  int64_t nth = c->op->what == SW_PICK_KTH ? sw_call_int(c, "k") : 1;
  if (nth < 1 || nth > r.n)
    sw_call_stop(c, SW_INVALID, "element %lld of a row of %lld", (long long)nth, (long long)r.n);
  int64_t *order = sw_call_wholes(c, r.n), *room = sw_call_wholes(c, r.n);
  struct sw_tensor places = sw_call_out(c, only_place ? 0 : 1, rank, size), values = places;
  if (!only_place)
    values = sw_call_out(c, 0, rank, size);
  if (keepdim) {
    places = sw_split_dims(&places, in_row).kept;
    values = sw_split_dims(&values, in_row).kept;
  }
  struct sw_walk w;
  for (sw_walk(&w, 3, (const struct sw_tensor *const[]){&places, &values, &s.kept}); w.more; sw_walk_on(&w))
    for (int64_t i = 0; i < w.n; i++) {
      s.row.offset = w.at[2] + i * w.step[2];
      if (r.whole)
        sw_get_wholes(&s.row, r.whole);
      else
        sw_get_reals(&s.row, r.real);
      int64_t k = pick((enum sw_pick)c->op->what, nth, &r, order, room);
      sw_row_put_wholes(&places, w.at[0] + i * w.step[0], 1, 1, &k, c->rounding);
      if (only_place)
        continue;
      if (r.whole)
        sw_row_put_wholes(&values, w.at[1] + i * w.step[1], 1, 1, &r.whole[k], c->rounding);
      else
        sw_row_put_reals(&values, w.at[1] + i * w.step[1], 1, 1, &r.real[k], c->rounding);
    }
}
