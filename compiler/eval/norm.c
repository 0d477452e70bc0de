/* Normalisations: x minus the mean over some elements, divided by their deviation, times a weight, plus a bias. */
#include "compiler/eval/ops.h"

#include <math.h>

/* Mean and 1 / sqrt(variance + eps) of n numbers; the variance is that of the population. */
static void moments(const double *v, int64_t n, double eps, double *mean, double *rstd)
{
  double sum = 0, squares = 0;
  for (int64_t i = 0; i < n; i++)
    sum += v[i];
  *mean = sum / (double)n;
  for (int64_t i = 0; i < n; i++)
    squares += (v[i] - *mean) * (v[i] - *mean);
  *rstd = 1 / sqrt(squares / (double)n + eps);
}

/* Elements of an optional argument, which must be `n`; NULL when there is none. */
static double *vector(struct sw_call *c, const char *name, int64_t n)
{
  if (!sw_call_has(c, name))
    return NULL;
  struct sw_tensor t = sw_call_tensor(c, name);
  if (sw_tensor_elements(&t) != n)
    sw_call_stop(c, SW_INVALID, "%s has %lld elements, not %lld", name, (long long)sw_tensor_elements(&t),
                 (long long)n);
  return sw_call_get(c, &t);
}

static void put_result(struct sw_call *c, int result, int rank, const int64_t *size, const double *v)
{
  struct sw_tensor out = sw_call_out(c, result, rank, size);
  sw_put_reals(&out, v, c->rounding);
}

/* The sizes of the last dims, as the call names them; gives how many dims those are. */
static int normalized(struct sw_call *c, const struct sw_tensor *x, int64_t *n)
{
  struct sw_ints shape = sw_call_ints(c, "normalized_shape");
  if (shape.n > x->rank)
    sw_call_stop(c, SW_INVALID, "normalized_shape has %d dims, the input %d", shape.n, x->rank);
  for (int i = 0; i < shape.n; i++)
    if (shape.v[i] != x->size[x->rank - shape.n + i])
      sw_call_stop(c, SW_INVALID, "normalized_shape does not end the size of the input");
  *n = sw_call_product(c, shape.n, shape.v);
  return shape.n;
}

/* layer_norm, and native_layer_norm with mean and rstd as further results. */
void sw_op_layer_norm(struct sw_call *c)
{
  struct sw_tensor x = sw_call_tensor(c, "input");
  int64_t n, size[SW_MAX_RANK];
  int dims = normalized(c, &x, &n);
  double eps = sw_call_real(c, "eps"), *v = sw_call_get(c, &x);
  double *weight = vector(c, "weight", n), *bias = vector(c, "bias", n);
  int64_t rows = n ? sw_tensor_elements(&x) / n : 0;
  double *means = sw_call_reals(c, rows), *rstds = sw_call_reals(c, rows);
  for (int64_t r = 0; r < rows; r++) {
    double *row = v + r * n;
    moments(row, n, eps, &means[r], &rstds[r]);
    for (int64_t i = 0; i < n; i++)
      row[i] = (row[i] - means[r]) * rstds[r] * (weight ? weight[i] : 1) + (bias ? bias[i] : 0);
  }
  put_result(c, 0, x.rank, x.size, v);
  for (int d = 0; d < x.rank; d++)
    size[d] = d < x.rank - dims ? x.size[d] : 1;
  if (sw_call_n_results(c) > 1 && n) {
    put_result(c, 1, x.rank, size, means);
    put_result(c, 2, x.rank, size, rstds);
  }
}

/* x / sqrt(mean(x^2) + eps) * weight; eps defaults to that of float32 (of float64 for float64). */
void sw_op_rms_norm(struct sw_call *c)
{
  struct sw_tensor x = sw_call_tensor(c, "input");
  int64_t n, size[SW_MAX_RANK];
  int dims = normalized(c, &x, &n);
  double eps = sw_call_real_or(c, "eps", x.dtype == SW_F64 ? 0x1p-52 : 0x1p-23);
  double *v = sw_call_get(c, &x), *weight = vector(c, "weight", n);
  int64_t rows = n ? sw_tensor_elements(&x) / n : 0;
  double *rstds = sw_call_reals(c, rows);
  for (int64_t r = 0; r < rows; r++) {
    double *row = v + r * n, squares = 0;
    for (int64_t i = 0; i < n; i++)
      squares += row[i] * row[i];
    rstds[r] = 1 / sqrt(squares / (double)n + eps);
    for (int64_t i = 0; i < n; i++)
      row[i] *= rstds[r] * (weight ? weight[i] : 1);
  }
  put_result(c, 0, x.rank, x.size, v);
  for (int d = 0; d < x.rank; d++)
    size[d] = d < x.rank - dims ? x.size[d] : 1;
  if (sw_call_n_results(c) > 1 && n)
    put_result(c, 1, x.rank, size, rstds);
}

static struct sw_tensor channels(struct sw_call *c, const char *name)
{
  struct sw_tensor x = sw_call_tensor(c, name);
  if (x.rank < 2)
    sw_call_stop(c, SW_INVALID, "an input of rank %d has no channels", x.rank);
  return x;
}

/* Groups of channels of one sample are normalised together. instance_norm: every channel is a group of its own. */
void sw_op_group_norm(struct sw_call *c)
{
  bool instance = c->op->what == 1;
  struct sw_tensor x = channels(c, "input");
  if (instance && !sw_call_bool(c, "use_input_stats"))
    sw_call_stop(c, SW_UNSUPPORTED, "running statistics");
  if (instance && sw_call_has(c, "running_mean"))
    sw_call_stop(c, SW_UNSUPPORTED, "running statistics that it updates");
  int64_t batch = x.size[0], n_ch = x.size[1], groups = instance ? n_ch : sw_call_int(c, c->op->args);
  if (groups <= 0 || n_ch % groups)
    sw_call_stop(c, SW_INVALID, "%lld channels in %lld groups", (long long)n_ch, (long long)groups);
  double eps = sw_call_real(c, "eps"), *v = sw_call_get(c, &x);
  double *weight = vector(c, "weight", n_ch), *bias = vector(c, "bias", n_ch);
  int64_t n = batch && groups ? sw_tensor_elements(&x) / (batch * groups) : 0, per_channel = n / (n_ch / groups);
  double *means = sw_call_reals(c, batch * groups), *rstds = sw_call_reals(c, batch * groups);
  for (int64_t g = 0; g < batch * groups; g++) {
    double *row = v + g * n;
    moments(row, n, eps, &means[g], &rstds[g]);
    for (int64_t i = 0; i < n; i++) {
      int64_t ch = g % groups * (n_ch / groups) + i / per_channel;
      row[i] = (row[i] - means[g]) * rstds[g] * (weight ? weight[ch] : 1) + (bias ? bias[ch] : 0);
    }
  }
  put_result(c, 0, x.rank, x.size, v);
  if (sw_call_n_results(c) > 1) {
    put_result(c, 1, 2, (int64_t[]){batch, groups}, means);
    put_result(c, 2, 2, (int64_t[]){batch, groups}, rstds);
  }
}

/* Mean and variance of every channel over batch and image. */
static void batch_moments(const struct sw_tensor *x, const double *v, double *means, double *variances)
{
  int64_t n_ch = x->size[1], inner = 1, n = 0;
  for (int d = 2; d < x->rank; d++)
    inner *= x->size[d];
  n = x->size[0] * inner;
  for (int64_t ch = 0; ch < n_ch; ch++) {
    double sum = 0, squares = 0;
    for (int64_t b = 0; b < x->size[0]; b++)
      for (int64_t i = 0; i < inner; i++)
        sum += v[(b * n_ch + ch) * inner + i];
    means[ch] = sum / (double)n;
    for (int64_t b = 0; b < x->size[0]; b++)
      for (int64_t i = 0; i < inner; i++) {
        double d = v[(b * n_ch + ch) * inner + i] - means[ch];
        squares += d * d;
      }
    variances[ch] = squares / (double)n;
  }
}

/* Running statistics drift towards those of the batch; the variance kept is that of a sample. */
static void update_running(struct sw_call *c, const char *name, const double *now, double scale, int64_t n_ch)
{
  if (!sw_call_has(c, name))
    return;
  struct sw_tensor t = sw_call_tensor(c, name);
  double *v = vector(c, name, n_ch), momentum = sw_call_real(c, "momentum");
  for (int64_t i = 0; i < n_ch; i++)
    v[i] = (1 - momentum) * v[i] + momentum * scale * now[i];
  sw_put_reals(&t, v, c->rounding);
}

/* `what`: SW_BATCH_ARG: argument `training` says which statistics; SW_BATCH_RUNNING; SW_BATCH_INPUT. Running ones come
 * with two empty further results, the input's with mean and rstd. */
void sw_op_batch_norm(struct sw_call *c)
{
  struct sw_tensor x = channels(c, "input");
  int64_t n_ch = x.size[1], n = sw_tensor_elements(&x), inner = 1;
  for (int d = 2; d < x.rank; d++)
    inner *= x.size[d];
  bool from_input = c->op->what == SW_BATCH_INPUT || (c->op->what == SW_BATCH_ARG && sw_call_bool(c, "training"));
  double eps = sw_call_real(c, "eps"), *v = sw_call_get(c, &x);
  double *weight = vector(c, "weight", n_ch), *bias = vector(c, "bias", n_ch);
  double *means = from_input ? sw_call_reals(c, n_ch) : vector(c, "running_mean", n_ch);
  double *variances = from_input ? sw_call_reals(c, n_ch) : vector(c, "running_var", n_ch);
  if (!means || !variances)
    sw_call_stop(c, SW_INVALID, "running statistics are missing");
  if (from_input) {
    double count = n_ch ? (double)(n / n_ch) : 0;
    batch_moments(&x, v, means, variances);
    update_running(c, "running_mean", means, 1, n_ch);
    update_running(c, "running_var", variances, count / (count - 1), n_ch);
  }
  double *rstds = sw_call_reals(c, n_ch);
  for (int64_t ch = 0; ch < n_ch; ch++)
    rstds[ch] = 1 / sqrt(variances[ch] + eps);
  for (int64_t i = 0; i < n; i++) {
    int64_t ch = i / inner % n_ch;
    v[i] = (v[i] - means[ch]) * rstds[ch] * (weight ? weight[ch] : 1) + (bias ? bias[ch] : 0);
  }
  put_result(c, 0, x.rank, x.size, v);
  int64_t kept = from_input ? n_ch : 0;
  if (sw_call_n_results(c) > 1) {
    put_result(c, 1, 1, &kept, means);
    put_result(c, 2, 1, &kept, rstds);
  }
}
