/* Sums of products and differences under names of their own: norms, distances, similarities, losses, and products that
 * PyTorch composes. Each is a formula over tensors brought to one size, then reduced. */
#include "compiler/eval/rows.h"

#include <math.h>
#include <string.h>

static double norm_of(const double *x, int64_t n, int64_t step, double p)
{
  double sum = 0, largest = 0, smallest = (double)INFINITY;
  for (int64_t i = 0; i < n; i++) {
    double a = fabs(x[i * step]);
    if (isnan(a))
      return a;
    largest = fmax(largest, a);
    smallest = fmin(smallest, a);
    sum += p == 2 ? a * a : p == 1 ? a : p == 0 ? a != 0 : pow(a, p);
  }
  if (isinf(p))
    return p > 0 ? largest : n ? smallest : 0;
  return p == 2 ? sqrt(sum) : p == 1 || p == 0 ? sum : pow(sum, 1 / p);
}

/* -- norms over dims -- */

static double norm_of_row(const struct sw_call *c, const double *row, int64_t n, double p)
{
  (void)c;
  return norm_of(row, n, 1, p);
}

/* norm, frobenius_norm, linalg_norm: the order is argument `args` (2 when left out), the dims are `dim` or all. Norms of
 * matrices other than Frobenius' have no meaning here. */
void sw_op_norm(struct sw_call *c)
{
  struct sw_tensor x = sw_call_tensor(c, "self");
  struct sw_ints dims = sw_call_ints(c, "dim");
  double p = 2;
  const struct sw_arg *a = c->op->args ? sw_call_arg(c, c->op->args) : NULL;
  if (a && a->kind == SW_ARG_STR && strcmp(a->s, "fro"))
    sw_call_stop(c, SW_UNSUPPORTED, "a norm of order \"%s\"", a->s);
  if (a && a->kind != SW_ARG_STR)
    p = sw_number_real(sw_call_number(c, a));
  bool matrix = !strcmp(c->op->target, "aten.linalg_norm.default") && a && (dims.n == 2 || (!dims.n && x.rank == 2));
  if (matrix && a->kind != SW_ARG_STR)
    sw_call_stop(c, SW_UNSUPPORTED, "a norm of order %g of a matrix", p);
  sw_reduce_rows(c, x, norm_of_row, p);
}

/* -- two tensors of one size -- */

struct pair {
  int rank;
  int64_t size[SW_MAX_RANK], n;
  double *a, *b;
};

static struct pair broadcast(struct sw_call *c, const char *first, const char *second)
{
  struct sw_tensor a = sw_call_tensor(c, first), b = sw_call_tensor(c, second);
  struct pair p = {0};
  p.rank = sw_call_broadcast(c, p.size, sw_call_broadcast(c, p.size, 0, &a), &b);
  a = sw_call_expand(c, &a, p.rank, p.size);
  b = sw_call_expand(c, &b, p.rank, p.size);
  p.n = sw_call_product(c, p.rank, p.size);
  p.a = sw_call_get(c, &a);
  p.b = sw_call_get(c, &b);
  return p;
}

static void put(struct sw_call *c, int rank, const int64_t *size, const double *v)
{
  struct sw_tensor out = sw_call_out(c, 0, rank, size);
  sw_put_reals(&out, v, c->rounding);
}

/* Along one dim: rows of n elements `step` apart, the first of row r at this place. */
static int64_t row_start(int64_t r, int64_t n, int64_t step)
{
  return r / step * n * step + r % step;
}

/* a . b / (max(|a|, eps) max(|b|, eps)) */
void sw_op_cosine_similarity(struct sw_call *c)
{
  struct pair p = broadcast(c, "x1", "x2");
  int dim = sw_call_dim(c, "dim", p.rank);
  double eps = sw_call_real(c, "eps");
  int64_t n = p.rank ? p.size[dim] : 1, step = 1, size[SW_MAX_RANK];
  for (int d = dim + 1; d < p.rank; d++)
    step *= p.size[d];
  for (int d = 0, k = 0; d < p.rank; d++)
    if (d != dim)
      size[k++] = p.size[d];
  int64_t rows = n ? p.n / n : 0;
  double *out = sw_call_reals(c, rows);
  for (int64_t r = 0; r < rows; r++) {
    const double *a = p.a + row_start(r, n, step), *b = p.b + row_start(r, n, step);
    double dot = 0;
    for (int64_t i = 0; i < n; i++)
      dot += a[i * step] * b[i * step];
    out[r] = dot / (fmax(norm_of(a, n, step, 2), eps) * fmax(norm_of(b, n, step, 2), eps));
  }
  put(c, p.rank ? p.rank - 1 : 0, size, out);
}

/* v g / |v|, the length over all dims but `dim`, of which g has one number each. */
void sw_op_weight_norm(struct sw_call *c)
{
  struct pair p = broadcast(c, "v", "g");
  int dim = sw_call_dim(c, "dim", p.rank);
  int64_t n = p.rank ? p.size[dim] : 1, step = 1, others = n ? p.n / n : 0;
  for (int d = dim + 1; d < p.rank; d++)
    step *= p.size[d];
  double *out = sw_call_reals(c, p.n);
  for (int64_t k = 0; k < n; k++) {
    double squares = 0;
    for (int64_t r = 0; r < others; r++)
      squares += p.a[row_start(r, n, step) + k * step] * p.a[row_start(r, n, step) + k * step];
    for (int64_t r = 0; r < others; r++)
      out[row_start(r, n, step) + k * step] = p.a[row_start(r, n, step) + k * step] * p.b[row_start(r, n, step) + k * step] / sqrt(squares);
  }
  put(c, p.rank, p.size, out);
}

/* The norm of x1 - x2 + eps along the last dim. */
void sw_op_pairwise_distance(struct sw_call *c)
{
  enum sw_dtype a = sw_call_tensor(c, "x1").dtype, b = sw_call_tensor(c, "x2").dtype;
  if (!sw_dtype_is_float(a) && !sw_dtype_is_float(b)) /* differences wrap around in their dtype */
    sw_call_stop(c, SW_UNSUPPORTED, "a distance of %s and %s", sw_dtype_text(a), sw_dtype_text(b));
  struct pair p = broadcast(c, "x1", "x2");
  double order = sw_call_real(c, "p"), eps = sw_call_real(c, "eps");
  int64_t n = p.rank ? p.size[p.rank - 1] : 1, rows = n ? p.n / n : 0;
  double *out = sw_call_reals(c, rows);
  for (int64_t i = 0; i < p.n; i++)
    p.a[i] = p.a[i] - p.b[i] + eps;
  for (int64_t r = 0; r < rows; r++)
    out[r] = norm_of(p.a + r * n, n, 1, order);
  bool keepdim = sw_call_bool(c, "keepdim");
  if (p.rank)
    p.size[p.rank - 1] = 1;
  put(c, p.rank && !keepdim ? p.rank - 1 : p.rank, p.size, out);
}

void sw_op_dist(struct sw_call *c)
{
  struct pair p = broadcast(c, "self", "other");
  for (int64_t i = 0; i < p.n; i++)
    p.a[i] -= p.b[i];
  double d = norm_of(p.a, p.n, 1, sw_call_real_or(c, "p", 2));
  put(c, 0, NULL, &d);
}

/* [.., P, M] and [.., R, M]: the norm of every difference of two rows, [.., P, R]. */
void sw_op_cdist(struct sw_call *c)
{
  struct sw_tensor a = sw_call_tensor(c, "x1"), b = sw_call_tensor(c, "x2");
  if (a.rank < 2 || b.rank < 2 || a.rank == SW_MAX_RANK || b.rank == SW_MAX_RANK)
    sw_call_stop(c, SW_INVALID, "tensors of rank %d and %d", a.rank, b.rank);
  int64_t rows = a.size[a.rank - 2], others = b.size[b.rank - 2], n = a.size[a.rank - 1], size[SW_MAX_RANK];
  struct sw_tensor x = a, y = b;
  x.rank -= 2;
  y.rank -= 2;
  int rank = sw_call_broadcast(c, size, sw_call_broadcast(c, size, 0, &x), &y);
  int64_t batch = sw_call_product(c, rank, size);
  size[rank] = rows;
  size[rank + 1] = n;
  a = sw_call_expand(c, &a, rank + 2, size);
  size[rank] = others;
  b = sw_call_expand(c, &b, rank + 2, size);
  double *v = sw_call_get(c, &a), *w = sw_call_get(c, &b), *d = sw_call_reals(c, n), p = sw_call_real(c, "p");
  double *out = sw_call_reals(c, sw_call_product(c, 3, (int64_t[]){batch, rows, others}));
  for (int64_t o = 0; o < batch * rows * others; o++) {
    const double *i = v + o / others * n, *j = w + (o / (rows * others) * others + o % others) * n;
    for (int64_t k = 0; k < n; k++)
      d[k] = i[k] - j[k];
    out[o] = norm_of(d, n, 1, p);
  }
  size[rank] = rows;
  size[rank + 1] = others;
  put(c, rank + 2, size, out);
}

/* -- losses -- */

/* All of it (0), the mean (1) or the sum (2). */
static void put_loss(struct sw_call *c, const struct pair *p, const double *loss)
{
  int64_t reduction = sw_call_int(c, "reduction");
  if (reduction == 0) {
    put(c, p->rank, p->size, loss);
    return;
  }
  double sum = 0;
  for (int64_t i = 0; i < p->n; i++)
    sum += loss[i];
  sum = reduction == 1 ? sum / (double)p->n : sum;
  put(c, 0, NULL, &sum);
}

/* An optional tensor in the size of the pair, or NULL. */
static double *spread(struct sw_call *c, const char *name, const struct pair *p)
{
  if (!sw_call_has(c, name))
    return NULL;
  struct sw_tensor t = sw_call_tensor(c, name);
  t = sw_call_expand(c, &t, p->rank, p->size);
  return sw_call_get(c, &t);
}

/* Not below -100; NaN stays. */
static double bounded(double x)
{
  return x < -100 ? -100 : x;
}

static double softplus(double x)
{
  return fmax(x, 0) + log1p(exp(-fabs(x)));
}

void sw_op_loss(struct sw_call *c)
{
  struct pair p = broadcast(c, "self", "target");
  enum sw_loss what = (enum sw_loss)c->op->what;
  double edge = c->op->args ? sw_call_real(c, c->op->args) : 0;
  double *weight = what == SW_LOSS_BCE || what == SW_LOSS_BCE_LOGITS ? spread(c, "weight", &p) : NULL;
  double *positive = what == SW_LOSS_BCE_LOGITS ? spread(c, "pos_weight", &p) : NULL;
  bool by_log = what == SW_LOSS_KL && sw_call_bool(c, "log_target");
  for (int64_t i = 0; i < p.n; i++) {
    double x = p.a[i], t = p.b[i], d = x - t, e = fabs(d), y = 0;
    switch (what) {
    case SW_LOSS_SQUARE:
      y = d * d;
      break;
    case SW_LOSS_ABS:
      y = e;
      break;
    case SW_LOSS_SMOOTH: /* divided by beta inside it */
      y = e < edge ? 0.5 * d * d / edge : e - 0.5 * edge;
      break;
    case SW_LOSS_HUBER:
      y = e <= edge ? 0.5 * d * d : edge * (e - 0.5 * edge);
      break;
    case SW_LOSS_BCE:
      y = -(t * bounded(log(x)) + (1 - t) * bounded(log1p(-x)));
      break;
    case SW_LOSS_BCE_LOGITS:
      y = (1 - t) * x + (1 + ((positive ? positive[i] : 1) - 1) * t) * softplus(-x);
      break;
    case SW_LOSS_KL:
      y = by_log ? exp(t) * d * -1 : t != 0 ? t * (log(t) - x) : 0 * x;
      break;
    case SW_LOSS_SOFT_MARGIN:
      y = softplus(-t * x);
      break;
    }
    p.a[i] = weight ? y * weight[i] : y;
  }
  put_loss(c, &p, p.a);
}

/* Minus the score of the class that the target names, weighted; classes are dim 1. cross_entropy_loss (`what` 1) makes
 * log-probabilities of the scores first, and takes probabilities as targets too. The second result of the core forms
 * is the weight of all. */
void sw_op_nll_loss(struct sw_call *c)
{
  struct sw_tensor x = sw_call_tensor(c, "self"), target = sw_call_tensor(c, "target");
  int dim = x.rank > 1;
  int64_t classes = x.rank ? x.size[dim] : 0, n = x.rank > 1 ? x.size[0] : 1, inner = 1, reduction = sw_call_int(c, "reduction");
  for (int d = 2; d < x.rank; d++)
    inner *= x.size[d];
  double *v = sw_call_get(c, &x), *weight = NULL, smoothing = sw_call_real_or(c, "label_smoothing", 0);
  if (sw_call_has(c, "weight")) {
    struct sw_tensor t = sw_call_tensor(c, "weight");
    if (sw_tensor_elements(&t) != classes)
      sw_call_stop(c, SW_INVALID, "weights for %lld classes", (long long)sw_tensor_elements(&t));
    weight = sw_call_get(c, &t);
  }
  double *row = sw_call_reals(c, classes), *loss = sw_call_reals(c, n * inner), sum = 0, all = 0;
  bool soft = sw_class_of(target.dtype) == SW_CLASS_REAL;
  if (classes < 1 || sw_tensor_elements(&target) != n * inner * (soft ? classes : 1))
    sw_call_stop(c, SW_INVALID, "a target of %lld elements", (long long)sw_tensor_elements(&target));
  double *share = soft ? sw_call_get(c, &target) : NULL;
  int64_t *class = soft ? NULL : sw_call_get_wholes(c, &target), ignored = sw_call_int_or(c, "ignore_index", -100);
  for (int64_t o = 0; o < n * inner; o++) {
    int64_t start = row_start(o, classes, inner);
    for (int64_t k = 0; k < classes; k++)
      row[k] = v[start + k * inner];
    double lse = c->op->what ? sw_row_logsumexp(row, classes) : 0, w = 0, y = 0, smooth = 0;
    for (int64_t k = 0; k < classes; k++) {
      double own = weight ? weight[k] : 1, log_p = row[k] - lse;
      double t = soft ? share[start + k * inner] : k == class[o];
      t = soft && smoothing > 0 ? t * (1 - smoothing) + smoothing / (double)classes : t;
      y -= t != 0 ? t * own * log_p : 0;
      w += t * own;
      smooth -= own * log_p;
    }
    if (!soft && class[o] == ignored)
      w = y = smooth = 0;
    else if (!soft && (class[o] < 0 || class[o] >= classes))
      sw_call_stop(c, SW_INVALID, "class %lld of %lld", (long long)class[o], (long long)classes);
    if (!soft && smoothing > 0)
      y = (1 - smoothing) * y + smoothing / (double)classes * smooth;
    loss[o] = y;
    sum += y;
    all += w;
  }
  int64_t size[SW_MAX_RANK];
  int rank = 0;
  for (int d = 0; d < x.rank; d++)
    if (d != dim)
      size[rank++] = x.size[d];
  if (reduction == 0) {
    put(c, rank, size, loss);
  } else {
    sum = reduction == 1 ? sum / (soft ? (double)(n * inner) : all) : sum;
    put(c, 0, NULL, &sum);
  }
  if (sw_call_n_results(c) > 1) {
    struct sw_tensor t = sw_call_out(c, 1, 0, NULL);
    all = reduction == 0 ? 0 : all;
    sw_put_reals(&t, &all, c->rounding);
  }
}
