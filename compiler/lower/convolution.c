/* Convolutions and pools. The matrix unit has no padding and few window sizes, so:
 *
 *   few taps       one matrix product per tap over a strided view of the input, added up: 1x1 is one product, a 3-wide
 *                  1-d convolution three. Depthwise ones are mul and add.
 *   many taps      the windows are laid out by a host step (aten.im2col), then one product (ops.md 5.6, 6.7)
 *   transposed     the input is spread over zeros, then as above with the taps in reverse
 *
 * 1-d operands get a dim of size 1. Pools are one op per tap over strided views. */
#include "compiler/lower/families.h"

#include "base/number.h"

#include <string.h>

struct window {
  int64_t kernel[2], stride[2], padding[2], dilation[2], out_padding[2];
  bool transposed;
  int64_t groups;
};

/* A list of one or two ints; 1-d windows lie in the last dim. */
static void read_pair(struct lower *l, const char *name, int dims, int64_t normal, int64_t out[2])
{
  int64_t v[SW_MAX_RANK];
  int n = lw_ints(l, name, v);
  out[0] = out[1] = normal;
  if (n == 0)
    return;
  out[1] = v[n - 1];
  if (dims == 2)
    out[0] = v[0];
}

/* x inside a tensor of `value`, with room at the borders: [N,C,H,W] to [N,C,H+2p,W+2p]; step > 1 leaves gaps between
 * its elements, and then whole steps: 12 elements in every second of 25 places are written into 26. */
static struct tensor surround(struct lower *l, struct tensor x, const int64_t before[2], const int64_t size[2],
                              const int64_t step[2], double value)
{
  int64_t full[] = {x.size[0], x.size[1], sw_round_up(size[0], step[0]), sw_round_up(size[1], step[1])};
  if (!lw_known(x))
    return x;
  struct tensor out = lw_new(l, x.dtype, 4, full, NULL), inner = out;
  struct tensor zero = lw_expand(l, lw_scalar(l, value, x.dtype), 4, full);
  lw_nest(l, SW_OP_IDENTITY, SW_ROLE_FILL, 4, 4, full, out, 1, &zero);
  for (int i = 0; i < 2; i++)
    inner = lw_slice(inner, 2 + i, before[i], x.size[2 + i], step[i]);
  lw_write(l, inner, x);
  return lw_slice(lw_slice(out, 2, 0, size[0], 1), 3, 0, size[1], 1);
}

/* The windows whose tap `at` lies inside the input, first[i] .. first[i] + n[i] - 1 in dim i, and the elements there: a
 * strided slice of x. Window o looks at element o * stride + at * dilation - padding. False: no window. */
static bool tap(struct tensor x, const struct window *w, const int64_t at[2], const int64_t out[2], int64_t first[2],
                int64_t n[2], struct tensor *slice)
{
  *slice = x;
  for (int i = 0; i < 2; i++) {
    int64_t shift = at[i] * w->dilation[i] - w->padding[i], size = x.size[2 + i];
    first[i] = shift < 0 ? (-shift + w->stride[i] - 1) / w->stride[i] : 0;
    int64_t last = size - 1 - shift < 0 ? -1 : (size - 1 - shift) / w->stride[i];
    last = last < out[i] ? last : out[i] - 1;
    n[i] = last - first[i] + 1;
    if (n[i] <= 0)
      return false;
    *slice = lw_slice(*slice, 2 + i, first[i] * w->stride[i] + shift, n[i], w->stride[i]);
  }
  return true;
}

/* Combines what one tap gives for some windows into the result: the first tap, which covers all windows, makes it; the
 * others change their part of it. `dims`: where rows and columns are. No padded copy of the input is needed. */
static struct tensor combine(struct lower *l, enum sw_device_op op, struct tensor sum, struct tensor y, const int64_t first[2],
                             const int64_t n[2], const int64_t out[2], int dims)
{
  if (!lw_known(sum) || !lw_known(y))
    return lw_unknown();
  if (n[0] == out[0] && n[1] == out[1])
    return lw_binary(l, op, sum, y);
  struct tensor part = lw_slice(lw_slice(sum, dims, first[0], n[0], 1), dims + 1, first[1], n[1], 1);
  struct tensor in[] = {part, y};
  lw_nest(l, op, SW_ROLE_WRITE, part.rank, part.rank, part.size, part, 2, in);
  return l->failed ? lw_unknown() : sum;
}

/* Taps in order, one that covers all windows first; false when there is none. order[0] is that one. */
static bool order_taps(struct tensor x, const struct window *p, const int64_t out[2], int64_t *order)
{
  int64_t taps = p->kernel[0] * p->kernel[1], whole = -1;
  for (int64_t k = 0; k < taps && whole < 0; k++) {
    int64_t at[] = {k / p->kernel[1], k % p->kernel[1]}, first[2], n[2];
    struct tensor slice;
    if (tap(x, p, at, out, first, n, &slice) && n[0] == out[0] && n[1] == out[1])
      whole = k;
  }
  int64_t fill = 0;
  if (whole >= 0)
    order[fill++] = whole;
  for (int64_t k = 0; k < taps; k++)
    if (k != whole)
      order[fill++] = k;
  return whole >= 0;
}

/* x with its border, when no tap covers all windows. */
static struct tensor with_border(struct lower *l, struct tensor x, struct window *p, double value)
{
  int64_t size[] = {x.size[2] + 2 * p->padding[0], x.size[3] + 2 * p->padding[1]}, one[] = {1, 1};
  x = surround(l, x, p->padding, size, one, value);
  p->padding[0] = p->padding[1] = 0;
  return x;
}

/* [N,C,H,W] as [N,g,H,W,C/g]: the channels last, groups as a batch dim. */
static struct tensor channels_last(struct tensor x, int64_t groups)
{
  if (!lw_known(x))
    return x;
  x = lw_unsqueeze(x, 2);
  x.size[2] = x.size[1] / groups;
  x.stride[2] = x.stride[1];
  x.size[1] = groups;
  x.stride[1] *= x.size[2];
  return lw_permute(x, (const int[]){0, 1, 3, 4, 2});
}

/* Weights of one tap as [1,g,1,C/g,O/g]. */
static struct tensor tap_weights(struct tensor w, const struct window *p, const int64_t at[2])
{
  w = lw_select(lw_select(w, 3, at[1]), 2, at[0]); /* [O, C/g], transposed: [C, O/g] */
  if (!lw_known(w))
    return w;
  struct tensor t = lw_unsqueeze(w, 0);
  t.size[0] = p->groups;
  t.size[1] = w.size[0] / p->groups;
  t.stride[0] = w.stride[0] * t.size[1]; /* [g, O/g, C/g], transposed: [g, C/g, O/g] */
  if (!p->transposed)
    t = lw_transpose(t, 1, 2);
  return lw_unsqueeze(lw_unsqueeze(t, 1), 0);
}

/* What a tap is for: given its slice of the input and its place in the window. */
typedef struct tensor tap_fn(struct lower *l, struct tensor slice, struct tensor w, const struct window *p, const int64_t at[2]);

static struct tensor over_taps(struct lower *l, struct tensor x, struct tensor w, struct window p, const int64_t out[2],
                               enum sw_device_op op, double border, tap_fn *fn, int dims)
{
  int64_t taps = p.kernel[0] * p.kernel[1];
  int64_t *order = SW_NEW_N(l->arena, int64_t, taps);
  if (!order_taps(x, &p, out, order)) {
    x = with_border(l, x, &p, border);
    order_taps(x, &p, out, order);
  }
  struct tensor sum = lw_unknown();
  for (int64_t k = 0; k < taps; k++) {
    int64_t at[] = {order[k] / p.kernel[1], order[k] % p.kernel[1]}, first[2], n[2];
    struct tensor slice;
    if (!lw_known(x) || !tap(x, &p, at, out, first, n, &slice))
      continue;
    struct tensor y = fn(l, slice, w, &p, at);
    /* parts of the result are changed in place: it must not be the input itself */
    if (k == 0 && lw_known(y) && y.storage == x.storage && (taps == 1 || p.padding[0] || p.padding[1]))
      y = lw_clone(l, y);
    sum = k ? combine(l, op, sum, y, first, n, out, dims) : y;
  }
  return sum;
}

static struct tensor product_tap(struct lower *l, struct tensor slice, struct tensor w, const struct window *p, const int64_t at[2])
{
  int64_t from[] = {p->transposed ? p->kernel[0] - 1 - at[0] : at[0], p->transposed ? p->kernel[1] - 1 - at[1] : at[1]};
  return lw_matmul(l, channels_last(slice, p->groups), tap_weights(w, p, from)); /* [N,g,H,W,O/g] */
}

/* The result, [N,O,H,W], with channels last in memory so that products and sums share their sticks. */
static struct tensor sum_of_taps(struct lower *l, struct tensor x, struct tensor w, const struct window *p,
                                 const int64_t out[2])
{
  struct tensor sum = over_taps(l, x, w, *p, out, SW_OP_ADD, 0, product_tap, 2);
  if (!lw_known(sum))
    return sum;
  int64_t size[] = {sum.size[0], sum.size[1] * sum.size[4], sum.size[2], sum.size[3]};
  return lw_reshape(l, lw_permute(sum, (const int[]){0, 1, 4, 2, 3}), 4, size);
}

/* One weight a channel and tap. */
static struct tensor channel_tap(struct lower *l, struct tensor slice, struct tensor w, const struct window *p, const int64_t at[2])
{
  (void)p;
  struct tensor k = lw_slice(lw_slice(lw_squeeze(w, 1), 1, at[0], 1, 1), 2, at[1], 1, 1); /* [C,1,1] */
  return lw_binary(l, SW_OP_MUL, slice, k);
}

static struct tensor depthwise(struct lower *l, struct tensor x, struct tensor w, const struct window *p, const int64_t out[2])
{
  return over_taps(l, x, w, *p, out, SW_OP_ADD, 0, channel_tap, 2);
}

static struct sw_host_arg int_list(struct lower *l, const int64_t v[2])
{
  struct sw_host_arg a = {.kind = SW_HOST_LIST, .n_list = 2, .list = SW_NEW_N(l->arena, struct sw_host_arg, 2)};
  for (int i = 0; i < 2; i++)
    a.list[i] = (struct sw_host_arg){.kind = SW_HOST_LITERAL, .literal = {.kind = SW_ARG_INT, .i = v[i]}};
  return a;
}

/* The windows by the host: the columns of aten.im2col, [N, C k k, L]; profile best lays them down as rows, [N, L, C k k]. */
static struct tensor windows(struct lower *l, struct tensor x, const struct window *p, const int64_t out[2])
{
  int64_t area = out[0] * out[1], depth = x.size[1] * p->kernel[0] * p->kernel[1];
  int64_t size[] = {x.size[0], l->best ? area : depth, l->best ? depth : area};
  struct tensor t = lw_new(l, x.dtype, 3, size, NULL);
  struct sw_host_step h = {
      .name = l->program->storages.v[t.storage].name,
      .target = "aten.im2col.default",
      .node = l->node,
      .why = "the device has no convolution with this window: the windows are laid out as columns",
  };
  *SW_PUSH(l->arena, &h.args) = (struct sw_host_arg){.kind = SW_HOST_VIEW, .view = lw_view_of(x)};
  *SW_PUSH(l->arena, &h.args) = int_list(l, p->kernel);
  *SW_PUSH(l->arena, &h.args) = int_list(l, p->dilation);
  *SW_PUSH(l->arena, &h.args) = int_list(l, p->padding);
  *SW_PUSH(l->arena, &h.args) = int_list(l, p->stride);
  *SW_PUSH(l->arena, &h.results) = lw_view_of(l->best ? lw_transpose(t, 1, 2) : t);
  lw_add_host_step(l, h);
  return t;
}

/* A reshape by the host, as the reference does it to weights and bias: the result has the default layout. */
static struct tensor host_reshape(struct lower *l, struct tensor x, int rank, const int64_t *size)
{
  struct tensor t = lw_new(l, x.dtype, rank, size, NULL);
  struct sw_host_step h = {
      .name = l->program->storages.v[t.storage].name,
      .target = "aten.reshape.default",
      .node = l->node,
      .why = "the weights of a convolution have their stick on the window: the host lays them out anew",
  };
  struct sw_host_arg shape = {.kind = SW_HOST_LIST, .n_list = rank, .list = SW_NEW_N(l->arena, struct sw_host_arg, rank)};
  for (int d = 0; d < rank; d++)
    shape.list[d] = (struct sw_host_arg){.kind = SW_HOST_LITERAL, .literal = {.kind = SW_ARG_INT, .i = size[d]}};
  *SW_PUSH(l->arena, &h.args) = (struct sw_host_arg){.kind = SW_HOST_VIEW, .view = lw_view_of(x)};
  *SW_PUSH(l->arena, &h.args) = shape;
  *SW_PUSH(l->arena, &h.results) = lw_view_of(t);
  lw_add_host_step(l, h);
  return t;
}

/* The reference's way round: [O,C k k] by the columns as they are, [N,C k k,L]. */
static struct tensor by_columns(struct lower *l, struct tensor x, struct tensor w, const struct tensor *bias,
                                const struct window *p, const int64_t out[2])
{
  int64_t g = p->groups, k = w.size[1] * p->kernel[0] * p->kernel[1], o = w.size[0], n = x.size[0];
  struct tensor c = windows(l, x, p, out), y;
  if (l->failed)
    return lw_unknown();
  if (g == 1) {
    y = lw_matmul(l, host_reshape(l, w, 2, (const int64_t[]){o, k}), c);
    if (bias)
      y = lw_binary(l, SW_OP_ADD, y, host_reshape(l, *bias, 3, (const int64_t[]){1, o, 1}));
  } else {
    struct tensor flat = host_reshape(l, w, 4, (const int64_t[]){1, g, o / g, k});
    y = lw_matmul(l, flat, lw_reshape(l, c, 4, (const int64_t[]){n, g, k, out[0] * out[1]}));
    if (bias)
      y = lw_binary(l, SW_OP_ADD, y, host_reshape(l, *bias, 4, (const int64_t[]){1, g, o / g, 1}));
  }
  return lw_known(y) ? lw_reshape(l, y, 4, (const int64_t[]){n, o, out[0], out[1]}) : y;
}

/* [N,g,L,C/g k k] by [g,C/g k k,O/g], plus the bias: channels last, [N,g,L,O/g]. */
static struct tensor by_windows(struct lower *l, struct tensor x, struct tensor w, const struct tensor *bias,
                                const struct window *p, const int64_t out[2])
{
  int64_t g = p->groups, k = w.size[1] * p->kernel[0] * p->kernel[1], o = w.size[0], n = x.size[0], area = out[0] * out[1];
  struct tensor rows = windows(l, x, p, out), flat, y;
  if (g == 1) {
    flat = lw_reshape(l, w, 2, (const int64_t[]){o, k});
    y = lw_matmul(l, rows, lw_transpose(flat, 0, 1));
    if (bias)
      y = lw_binary(l, SW_OP_ADD, y, *bias);
  } else {
    rows = lw_transpose(lw_reshape(l, rows, 4, (const int64_t[]){n, area, g, k}), 1, 2);
    flat = lw_reshape(l, w, 4, (const int64_t[]){1, g, o / g, k});
    y = lw_matmul(l, rows, lw_transpose(flat, 2, 3));
    if (bias)
      y = lw_binary(l, SW_OP_ADD, y, lw_reshape(l, *bias, 4, (const int64_t[]){1, g, 1, o / g}));
  }
  if (!lw_known(y))
    return y;
  if (g == 1)
    y = lw_unsqueeze(y, 1);
  y = lw_permute(y, (const int[]){0, 1, 3, 2}); /* [N,g,O/g,L] */
  return lw_reshape(l, y, 4, (const int64_t[]){n, o, out[0], out[1]});
}

static struct tensor add_bias(struct lower *l, struct tensor y, const struct tensor *bias)
{
  return bias ? lw_binary(l, SW_OP_ADD, y, lw_unsqueeze(lw_unsqueeze(*bias, 1), 2)) : y;
}

static struct tensor convolve(struct lower *l, struct tensor x, struct tensor w, const struct tensor *bias, struct window p,
                              const int64_t out[2])
{
  int64_t taps = p.kernel[0] * p.kernel[1], channels = x.size[1];
  if (p.transposed) {
    int64_t before[2], size[2];
    for (int i = 0; i < 2; i++) {
      before[i] = p.dilation[i] * (p.kernel[i] - 1) - p.padding[i];
      if (before[i] < 0)
        return lw_refuse(l, "use a padding below the window", "a transposed convolution with padding %lld",
                         (long long)p.padding[i]);
      size[i] = out[i] + p.dilation[i] * (p.kernel[i] - 1);
    }
    x = surround(l, x, before, size, p.stride, 0);
    p.stride[0] = p.stride[1] = 1;
    p.padding[0] = p.padding[1] = 0;
    return add_bias(l, sum_of_taps(l, x, w, &p, out), bias);
  }
  bool is_depthwise = p.groups == channels && p.groups == w.size[0] && p.groups > 1;
  bool few = taps == 1 || (taps <= 9 && (is_depthwise || channels / p.groups >= 16));
  if (!is_depthwise && (!few || !l->best))
    return l->best ? by_windows(l, x, w, bias, &p, out) : by_columns(l, x, w, bias, &p, out);
  return add_bias(l, is_depthwise ? depthwise(l, x, w, &p, out) : sum_of_taps(l, x, w, &p, out), bias);
}

/* convolution, conv1d, conv2d, conv_transpose2d. dims 0: as many as the input has. */
void lw_op_convolution(struct lower *l, int transposed)
{
  enum sw_dtype t = lw_result_dtype(l, 0);
  struct tensor x = lw_argument(l, lw_arg(l, "input"), t), w = lw_argument(l, lw_arg(l, "weight"), t);
  const struct sw_value *v = lw_value(l, 0);
  struct window p = {.transposed = transposed || (lw_given(l, "transposed") && lw_bool(l, "transposed"))};
  if (!lw_known(x) || !lw_known(w)) {
    lw_set(l, 0, lw_unknown());
    return;
  }
  int dims = x.rank - 2;
  if (dims < 1 || dims > 2) {
    lw_refuse(l, "batched 1-d and 2-d convolutions are supported", "a convolution over an input of rank %d", x.rank);
    return;
  }
  p.groups = lw_int(l, "groups");
  read_pair(l, "stride", dims, 1, p.stride);
  read_pair(l, "dilation", dims, 1, p.dilation);
  if (dims == 1) {
    x = lw_unsqueeze(x, 2);
    w = lw_unsqueeze(w, 2);
  }
  p.kernel[0] = w.size[2];
  p.kernel[1] = w.size[3];
  const struct sw_arg *padding = lw_arg(l, "padding");
  int64_t out[] = {dims == 1 ? 1 : v->size[2], v->size[v->rank - 1]};
  if (padding->kind == SW_ARG_STR) { /* "same" pads so that out = in, "valid" not at all */
    for (int i = 0; i < 2; i++) {
      int64_t all = strcmp(padding->s, "same") ? 0 : p.dilation[i] * (p.kernel[i] - 1);
      if (all % 2) {
        lw_refuse(l, "pad before the convolution", "padding \"same\" with a window of even size");
        return;
      }
      p.padding[i] = all / 2;
    }
  } else {
    read_pair(l, "padding", dims, 0, p.padding);
    if (dims == 1)
      p.padding[0] = 0;
  }
  struct tensor bias, y;
  bool has_bias = lw_given(l, "bias");
  if (has_bias)
    bias = lw_argument(l, lw_arg(l, "bias"), t);
  y = convolve(l, x, w, has_bias ? &bias : NULL, p, out);
  lw_set(l, 0, lw_known(y) && dims == 1 ? lw_squeeze(y, 2) : y);
}

/* -- pools -- */

static bool read_pool(struct lower *l, struct window *p, int dims)
{
  *p = (struct window){.groups = 1};
  read_pair(l, "kernel_size", dims, 1, p->kernel);
  read_pair(l, "stride", dims, 0, p->stride);
  read_pair(l, "padding", dims, 0, p->padding);
  read_pair(l, "dilation", dims, 1, p->dilation);
  for (int i = 0; i < 2; i++)
    p->stride[i] = p->stride[i] ? p->stride[i] : i == 0 && dims == 1 ? 1 : p->kernel[i];
  if (lw_given(l, "ceil_mode") && lw_bool(l, "ceil_mode")) {
    lw_refuse(l, "use ceil_mode=False", "a pool with ceil_mode");
    return false;
  }
  return true;
}

static struct tensor plain_tap(struct lower *l, struct tensor slice, struct tensor w, const struct window *p, const int64_t at[2])
{
  (void)l, (void)w, (void)p, (void)at;
  return slice;
}

/* op over all taps. */
static struct tensor pool(struct lower *l, struct tensor x, const struct window *p, const int64_t out[2], enum sw_device_op op,
                          double border)
{
  return over_taps(l, x, x, *p, out, op, border, plain_tap, 2);
}

void lw_op_max_pool(struct lower *l, int dims)
{
  struct window p;
  if (lw_wanted(l, 1)) {
    lw_host(l, 0);
    return;
  }
  struct tensor x = lw_argument(l, lw_arg(l, "self"), lw_result_dtype(l, 0));
  if (!read_pool(l, &p, dims) || !lw_known(x))
    return;
  const struct sw_value *v = lw_value(l, 0);
  if (dims == 1)
    x = lw_unsqueeze(x, x.rank - 1);
  bool flat = x.rank == 3;
  if (flat)
    x = lw_unsqueeze(x, 0);
  int64_t out[] = {dims == 1 ? 1 : v->size[v->rank - 2], v->size[v->rank - 1]};
  struct tensor y = pool(l, x, &p, out, SW_OP_MAXIMUM, -65504);
  lw_set(l, 0, lw_known(y) ? lw_reshape(l, y, v->rank, v->size) : y);
}

void lw_op_avg_pool(struct lower *l, int unused)
{
  (void)unused;
  struct window p;
  struct tensor x = lw_argument(l, lw_arg(l, "self"), lw_result_dtype(l, 0));
  if (!read_pool(l, &p, 2) || !lw_known(x))
    return;
  bool padded = p.padding[0] || p.padding[1];
  if (padded && !lw_bool(l, "count_include_pad")) {
    lw_host(l, 0);
    return;
  }
  const struct sw_value *v = lw_value(l, 0);
  bool flat = x.rank == 3;
  if (flat)
    x = lw_unsqueeze(x, 0);
  double n = lw_given(l, "divisor_override") ? lw_real(l, "divisor_override") : (double)(p.kernel[0] * p.kernel[1]);
  struct tensor y = pool(l, x, &p, &v->size[v->rank - 2], SW_OP_ADD, 0);
  y = lw_binary_number(l, SW_OP_MUL, y, 1 / n);
  lw_set(l, 0, lw_known(y) && flat ? lw_squeeze(y, 0) : y);
}

/* To 1x1 a mean; else windows of equal size where the sizes divide. */
void lw_op_adaptive_avg_pool(struct lower *l, int unused)
{
  (void)unused;
  struct tensor x = lw_argument(l, lw_arg(l, "self"), lw_result_dtype(l, 0));
  const struct sw_value *v = lw_value(l, 0);
  if (!lw_known(x)) {
    lw_set(l, 0, x);
    return;
  }
  int h = x.rank - 2, w = x.rank - 1;
  if (v->size[h] == 1 && v->size[w] == 1) {
    lw_set(l, 0, lw_reduce(l, SW_OP_MEAN, x, 3u << h, true));
    return;
  }
  if (x.size[h] % v->size[h] || x.size[w] % v->size[w] || x.rank != 4) {
    lw_host(l, 0);
    return;
  }
  struct window p = {.groups = 1, .dilation = {1, 1}};
  for (int i = 0; i < 2; i++)
    p.kernel[i] = p.stride[i] = x.size[2 + i] / v->size[2 + i];
  struct tensor y = pool(l, x, &p, &v->size[2], SW_OP_ADD, 0);
  lw_set(l, 0, lw_binary_number(l, SW_OP_MUL, y, 1 / (double)(p.kernel[0] * p.kernel[1])));
}
