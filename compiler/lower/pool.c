/* Pools and resampling. Windows of few taps are one op a tap over strided views; where windows differ in size (ceil_mode, an
 * adaptive pool that does not divide, a border that does not count) an average is a product with a constant matrix in each
 * dim, and so is every resampling with weights.
 *
 * 5 elements to 2, adaptive: rows of the matrix are 1/3 1/3 1/3 0 0 and 0 0 1/3 1/3 1/3. */
#include "compiler/lower/window.h"

#include "compiler/eval/resample.h"

#include <math.h>
#include <string.h>

static bool read_pool(struct lower *l, struct lw_window *p, int dims)
{
  *p = (struct lw_window){.groups = 1};
  lw_read_pair(l, "kernel_size", dims, 1, p->kernel);
  lw_read_pair(l, "stride", dims, 0, p->stride);
  lw_read_pair(l, "padding", dims, 0, p->padding);
  lw_read_pair(l, "dilation", dims, 1, p->dilation);
  for (int i = 0; i < 2; i++)
    p->stride[i] = p->stride[i] ? p->stride[i] : i == 0 && dims == 1 ? 1 : p->kernel[i];
  return true;
}

static struct tensor plain_tap(struct lower *l, struct tensor slice, struct tensor w, const struct lw_window *p, const int64_t at[2])
{
  (void)l, (void)w, (void)p, (void)at;
  return slice;
}

/* op over all taps. */
static struct tensor pool(struct lower *l, struct tensor x, const struct lw_window *p, const int64_t out[2], enum sw_device_op op,
                          double border)
{
  return lw_over_taps(l, x, x, *p, out, op, border, plain_tap, 2);
}

/* x seen as [N,C,H,W]: a missing batch has one entry, a missing height one row. */
static struct tensor as_image(struct tensor x, int dims)
{
  if (lw_known(x) && dims == 1)
    x = lw_unsqueeze(x, x.rank - 1);
  return lw_known(x) && x.rank == 3 ? lw_unsqueeze(x, 0) : x;
}

static struct tensor shaped(struct lower *l, struct tensor y)
{
  const struct sw_value *v = lw_value(l, 0);
  return lw_known(y) ? lw_reshape(l, y, v->rank, v->size) : y;
}

/* -- largest -- */

/* In three dims: rows and columns first, then the depth, with the image of each step as one dim. */
static struct tensor max_pool_3d(struct lower *l, struct tensor x)
{
  const struct sw_value *v = lw_value(l, 0);
  int64_t kernel[SW_MAX_RANK], stride[SW_MAX_RANK], padding[SW_MAX_RANK], dilation[SW_MAX_RANK];
  struct {
    const char *name;
    int64_t *v, normal;
  } args[] = {{"kernel_size", kernel, 1}, {"stride", stride, 0}, {"padding", padding, 0}, {"dilation", dilation, 1}};
  for (int i = 0; i < 4; i++) {
    int n = lw_ints(l, args[i].name, args[i].v);
    for (int d = n ? n : 0; d < 3; d++)
      args[i].v[d] = n ? args[i].v[n - 1] : args[i].normal;
  }
  for (int d = 0; d < 3; d++)
    stride[d] = stride[d] ? stride[d] : kernel[d];
  if (x.rank == 4)
    x = lw_unsqueeze(x, 0);
  int64_t n = x.size[0] * x.size[1], depth = x.size[2];
  const int64_t *out = &v->size[v->rank - 3];
  struct lw_window flat = {.groups = 1, .kernel = {kernel[1], kernel[2]}, .stride = {stride[1], stride[2]},
                           .padding = {padding[1], padding[2]}, .dilation = {dilation[1], dilation[2]}};
  struct lw_window deep = {.groups = 1, .kernel = {kernel[0], 1}, .stride = {stride[0], 1}, .padding = {padding[0], 0},
                           .dilation = {dilation[0], 1}};
  x = lw_reshape(l, x, 4, (const int64_t[]){n, depth, x.size[3], x.size[4]});
  x = lw_known(x) ? pool(l, x, &flat, &out[1], SW_OP_MAXIMUM, -65504) : x;
  if (lw_known(x))
    x = lw_reshape(l, x, 4, (const int64_t[]){1, n, depth, out[1] * out[2]});
  return lw_known(x) ? pool(l, x, &deep, (const int64_t[]){out[0], out[1] * out[2]}, SW_OP_MAXIMUM, -65504) : x;
}

void lw_op_max_pool(struct lower *l, int dims)
{
  struct lw_window p;
  if (lw_wanted(l, 1)) {
    lw_host(l, 0);
    return;
  }
  struct tensor x = lw_argument(l, lw_arg(l, "self"), lw_result_dtype(l, 0));
  if (!lw_known(x)) {
    lw_set(l, 0, x);
    return;
  }
  if (dims == 3) {
    lw_set(l, 0, shaped(l, max_pool_3d(l, x)));
    return;
  }
  read_pool(l, &p, dims);
  const struct sw_value *v = lw_value(l, 0);
  int64_t out[] = {dims == 1 ? 1 : v->size[v->rank - 2], v->size[v->rank - 1]};
  lw_set(l, 0, shaped(l, pool(l, as_image(x, dims), &p, out, SW_OP_MAXIMUM, -65504)));
}

/* Down to one place a maximum; where the sizes divide a pool of equal windows; else on the host. */
void lw_op_adaptive_max_pool(struct lower *l, int dims)
{
  const struct sw_value *v = lw_value(l, 0);
  struct tensor x = lw_argument(l, lw_arg(l, "self"), lw_result_dtype(l, 0));
  if (lw_wanted(l, 1) || !v) {
    lw_host(l, 0);
    return;
  }
  bool one = true, divides = dims < 3;
  for (int d = v->rank - dims; lw_known(x) && d < v->rank; d++) {
    one = one && v->size[d] == 1;
    divides = divides && v->size[d] && x.size[d] % v->size[d] == 0;
  }
  if (!lw_known(x)) {
    lw_set(l, 0, x);
  } else if (one) {
    lw_set(l, 0, lw_reduce(l, SW_OP_MAX, x, ((1u << dims) - 1) << (x.rank - dims), true));
  } else if (divides) {
    x = as_image(x, dims);
    int64_t out[] = {dims == 1 ? 1 : v->size[v->rank - 2], v->size[v->rank - 1]};
    struct lw_window p = {.groups = 1, .dilation = {1, 1}};
    for (int i = 0; i < 2; i++)
      p.kernel[i] = p.stride[i] = x.size[2 + i] / out[i];
    lw_set(l, 0, shaped(l, pool(l, x, &p, out, SW_OP_MAXIMUM, -65504)));
  } else {
    lw_host(l, 0);
  }
}

/* -- one matrix a dim -- */

static struct tensor along(struct lower *l, struct tensor x, int dim, int64_t out, const double *matrix)
{
  bool has_zeros = false;
  for (int64_t i = 0; i < out * x.size[dim]; i++)
    has_zeros = has_zeros || matrix[i] == 0;
  if (lw_known(x) && has_zeros && lw_is_given_floats(l) && l->warned_of_zeros != l->node + 1) {
    l->warned_of_zeros = l->node + 1;
    sw_warn(l->job, "precision: node %s: its windows are weighed by a product with zeros and weights, which is right for finite "
                    "numbers", lw_node(l)->name);
  }
  if (!lw_known(x))
    return x;
  bool last = dim == x.rank - 1;
  int64_t in = x.size[dim], size[] = {last ? in : out, last ? out : in};
  double *m = SW_NEW_N(lw_scratch(l), double, (size_t)(in * out));
  for (int64_t o = 0; o < out; o++)
    for (int64_t i = 0; i < in; i++)
      m[last ? i * out + o : o * in + i] = matrix[o * in + i];
  struct tensor t = lw_table(l, sw_arena_printf(l->arena, "%s:weights%d", lw_node(l)->name, dim), x.dtype, 2, size, m);
  if (last)
    return lw_matmul(l, x, t);
  x = lw_transpose(x, dim, x.rank - 2);
  x = lw_matmul(l, t, x);
  return lw_known(x) ? lw_transpose(x, dim, x.rank - 2) : x;
}

/* -- averages -- */

struct mean_window {
  int64_t kernel, stride, padding;
  bool with_padding, adaptive;
  double divisor; /* of this dim; 0: as many elements as count */
};

/* [out, in]: what every element counts in every window. What hangs over the padding (ceil_mode) never counts. */
static void mean_matrix(const struct mean_window *w, int64_t in, int64_t out, double *matrix)
{
  for (int64_t o = 0; o < out; o++) {
    int64_t from = w->adaptive ? o * in / out : o * w->stride - w->padding;
    int64_t to = w->adaptive ? ((o + 1) * in + out - 1) / out : from + w->kernel;
    to = to < in + w->padding ? to : in + w->padding;
    int64_t all = to - from;
    from = from > 0 ? from : 0;
    to = to < in ? to : in;
    double n = w->divisor != 0 ? w->divisor : (double)(w->with_padding ? all : to - from);
    for (int64_t i = from; i < to; i++)
      matrix[o * in + i] = 1 / n;
  }
}

static struct tensor mean_along(struct lower *l, struct tensor x, int dim, int64_t out, const struct mean_window *w)
{
  if (!lw_known(x))
    return x;
  double *matrix = SW_NEW_N(lw_scratch(l), double, (size_t)(x.size[dim] * out));
  mean_matrix(w, x.size[dim], out, matrix);
  return along(l, x, dim, out, matrix);
}

void lw_op_avg_pool(struct lower *l, int dims)
{
  struct tensor x = lw_argument(l, lw_arg(l, "self"), lw_result_dtype(l, 0));
  const struct sw_value *v = lw_value(l, 0);
  if (!lw_known(x)) {
    lw_set(l, 0, x);
    return;
  }
  bool with_padding = lw_bool(l, "count_include_pad"), padded = false;
  double divisor = lw_given(l, "divisor_override") ? lw_real(l, "divisor_override") : 0;
  bool half = x.dtype == SW_F16 || x.dtype == SW_BF16;
  int64_t kernel[SW_MAX_RANK], stride[SW_MAX_RANK], padding[SW_MAX_RANK] = {0};
  int n_kernel = lw_ints(l, "kernel_size", kernel), n_stride = lw_ints(l, "stride", stride), n_padding = lw_ints(l, "padding", padding);
  for (int i = 0; i < n_padding; i++)
    padded = padded || padding[i];
  if (dims < 3 && !(padded && !with_padding) && !lw_bool(l, "ceil_mode")) {
    struct lw_window p;
    read_pool(l, &p, dims);
    int64_t out[] = {dims == 1 ? 1 : v->size[v->rank - 2], v->size[v->rank - 1]};
    struct tensor y = pool(l, as_image(x, dims), &p, out, SW_OP_ADD, 0);
    double n = divisor != 0 ? divisor : (double)((dims == 2 ? p.kernel[0] : 1) * p.kernel[1]);
    lw_set(l, 0, shaped(l, lw_binary_number(l, SW_OP_MUL, y, 1 / n)));
    return;
  }
  if (!half) {
    lw_host(l, 0);
    return;
  }
  for (int i = 0; i < dims; i++) {
    int dim = v->rank - dims + i;
    struct mean_window w = {.kernel = kernel[i < n_kernel ? i : n_kernel - 1], .with_padding = with_padding};
    w.stride = n_stride ? stride[i < n_stride ? i : n_stride - 1] : w.kernel;
    w.padding = n_padding ? padding[i < n_padding ? i : n_padding - 1] : 0;
    w.divisor = divisor == 0 ? 0 : i == 0 ? divisor : 1;
    x = mean_along(l, x, dim, v->size[dim], &w);
  }
  lw_set(l, 0, x);
}

/* To one place a mean; windows of equal size where the sizes divide; else a matrix a dim. */
void lw_op_adaptive_avg_pool(struct lower *l, int dims)
{
  struct tensor x = lw_argument(l, lw_arg(l, "self"), lw_result_dtype(l, 0));
  const struct sw_value *v = lw_value(l, 0);
  if (!lw_known(x)) {
    lw_set(l, 0, x);
    return;
  }
  bool one = true, divides = dims < 3;
  for (int d = v->rank - dims; d < v->rank; d++) {
    one = one && v->size[d] == 1;
    divides = divides && v->size[d] && x.size[d] % v->size[d] == 0;
  }
  if (one) {
    lw_set(l, 0, lw_reduce(l, SW_OP_MEAN, x, ((1u << dims) - 1) << (x.rank - dims), true));
  } else if (divides) {
    x = as_image(x, dims);
    int64_t out[] = {dims == 1 ? 1 : v->size[v->rank - 2], v->size[v->rank - 1]};
    struct lw_window p = {.groups = 1, .dilation = {1, 1}};
    for (int i = 0; i < 2; i++)
      p.kernel[i] = p.stride[i] = x.size[2 + i] / out[i];
    struct tensor y = pool(l, x, &p, out, SW_OP_ADD, 0);
    lw_set(l, 0, shaped(l, lw_binary_number(l, SW_OP_MUL, y, 1 / (double)(p.kernel[0] * p.kernel[1]))));
  } else if (x.dtype != SW_F16 && x.dtype != SW_BF16) {
    lw_host(l, 0);
  } else {
    struct mean_window w = {.adaptive = true};
    for (int d = v->rank - dims; d < v->rank; d++)
      x = x.size[d] == v->size[d] ? x : mean_along(l, x, d, v->size[d], &w);
    lw_set(l, 0, x);
  }
}

/* -- resampling -- */

/* The scale that was asked for in image dim i; 0: none. */
static double factor_of(struct lower *l, int i, int dims)
{
  static const char *const scales[] = {"scales_d", "scales_h", "scales_w"};
  const struct sw_arg *list = lw_arg(l, "scale_factors");
  const char *name = dims == 1 ? "scales" : scales[3 - dims + i];
  if (list->kind == SW_ARG_LIST && list->list.n > i)
    return list->list.v[i].kind == SW_ARG_REAL ? list->list.v[i].r : (double)lw_int_of(l, &list->list.v[i]);
  return lw_given(l, name) ? lw_real(l, name) : 0;
}

/* param: the kind, times 4, plus the number of image dims. Nearest elements are rows by number, and exact; weights are products. */
void lw_op_upsample(struct lower *l, int param)
{
  int dims = param % 4;
  enum sw_resampling how = (enum sw_resampling)(param / 4);
  const struct sw_value *v = lw_value(l, 0);
  struct tensor x = lw_argument(l, &lw_node(l)->args[0], lw_result_dtype(l, 0));
  bool align = lw_given(l, "align_corners") && lw_bool(l, "align_corners"), picks = how == SW_NEAREST || how == SW_NEAREST_EXACT;
  if (!lw_known(x) || (!picks && x.dtype != SW_F16 && x.dtype != SW_BF16)) {
    if (lw_known(x))
      lw_host(l, 0);
    return;
  }
  for (int i = 0; i < dims && lw_known(x); i++) {
    int dim = v->rank - dims + i;
    int64_t in = x.size[dim], out = v->size[dim], *row = SW_NEW_N(lw_scratch(l), int64_t, (size_t)out);
    double *matrix = SW_NEW_N(lw_scratch(l), double, (size_t)(in * out));
    sw_resample_matrix(how, in, out, factor_of(l, i, dims), align, matrix);
    if (in == out && !align && factor_of(l, i, dims) == 0)
      continue;
    if (!picks) {
      x = along(l, x, dim, out, matrix);
      continue;
    }
    bool even = out % in == 0;
    for (int64_t o = 0; o < out; o++) {
      for (row[o] = 0; matrix[o * in + row[o]] == 0;)
        row[o]++;
      even = even && row[o] == o / (out / in);
    }
    if (even) { /* every element so many times: a broadcast dim */
      int64_t size[SW_MAX_RANK];
      memcpy(size, x.size, sizeof size);
      size[dim] = out;
      x = lw_unsqueeze(x, dim + 1);
      x.size[dim + 1] = out / in;
      x = lw_reshape(l, x, x.rank - 1, size);
    } else {
      x = lw_known_rows(l, x, dim, out, row);
    }
  }
  lw_set(l, 0, x);
}
