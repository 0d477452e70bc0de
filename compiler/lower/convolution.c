/* Convolutions and pools. The matrix unit has no padding and few window sizes, so:
 *
 *   few taps       one matrix product per tap over a strided view of the input, added up: 1x1 is one product, a 3-wide
 *                  1-d convolution three. Depthwise ones are mul and add.
 *   many taps      the windows are laid out by a host step (aten.im2col), then one product (ops.md 5.6, 6.7)
 *   transposed     the input is spread over zeros, then as above with the taps in reverse
 *
 * 1-d operands get a dim of size 1. Pools are one op per tap over strided views. */
#include "compiler/lower/families.h"

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
 * its elements. */
static struct tensor surround(struct lower *l, struct tensor x, const int64_t before[2], const int64_t size[2],
                              const int64_t step[2], double value)
{
  int64_t full[] = {x.size[0], x.size[1], size[0], size[1]};
  if (!lw_known(x))
    return x;
  struct tensor out = lw_new(l, x.dtype, 4, full, NULL), inner = out;
  struct tensor zero = lw_expand(l, lw_scalar(l, value, x.dtype), 4, full);
  lw_nest(l, SW_OP_IDENTITY, SW_ROLE_FILL, 4, 4, full, out, 1, &zero);
  for (int i = 0; i < 2; i++)
    inner = lw_slice(inner, 2 + i, before[i], x.size[2 + i], step[i]);
  lw_write(l, inner, x);
  return out;
}

/* The elements under tap (i, j) for every window: a strided slice. */
static struct tensor tap(struct tensor x, const struct window *w, const int64_t at[2], const int64_t out[2])
{
  for (int i = 0; i < 2; i++)
    x = lw_slice(x, 2 + i, at[i] * w->dilation[i], out[i], w->stride[i]);
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

/* The result, [N,O,H,W], with channels last in memory so that products and sums share their sticks. */
static struct tensor sum_of_taps(struct lower *l, struct tensor x, struct tensor w, const struct window *p,
                                 const int64_t out[2])
{
  struct tensor sum = lw_unknown();
  for (int64_t i = 0; i < p->kernel[0]; i++)
    for (int64_t j = 0; j < p->kernel[1]; j++) {
      int64_t at[] = {i, j}, from[] = {p->transposed ? p->kernel[0] - 1 - i : i, p->transposed ? p->kernel[1] - 1 - j : j};
      struct tensor y = lw_matmul(l, channels_last(tap(x, p, at, out), p->groups), tap_weights(w, p, from));
      sum = i + j ? lw_binary(l, SW_OP_ADD, sum, y) : y; /* [N,g,H,W,O/g] */
    }
  if (!lw_known(sum))
    return sum;
  int64_t size[] = {sum.size[0], sum.size[1] * sum.size[4], sum.size[2], sum.size[3]};
  return lw_reshape(l, lw_permute(sum, (const int[]){0, 1, 4, 2, 3}), 4, size);
}

/* One weight a channel and tap. */
static struct tensor depthwise(struct lower *l, struct tensor x, struct tensor w, const struct window *p, const int64_t out[2])
{
  struct tensor sum = lw_unknown();
  for (int64_t i = 0; i < p->kernel[0]; i++)
    for (int64_t j = 0; j < p->kernel[1]; j++) {
      int64_t at[] = {i, j};
      struct tensor k = lw_slice(lw_slice(lw_squeeze(w, 1), 1, i, 1, 1), 2, j, 1, 1); /* [C,1,1] */
      struct tensor y = lw_binary(l, SW_OP_MUL, tap(x, p, at, out), k);
      sum = i + j ? lw_binary(l, SW_OP_ADD, sum, y) : y;
    }
  return sum;
}

static struct sw_host_arg int_list(struct lower *l, const int64_t v[2])
{
  struct sw_host_arg a = {.kind = SW_HOST_LIST, .n_list = 2, .list = SW_NEW_N(l->arena, struct sw_host_arg, 2)};
  for (int i = 0; i < 2; i++)
    a.list[i] = (struct sw_host_arg){.kind = SW_HOST_LITERAL, .literal = {.kind = SW_ARG_INT, .i = v[i]}};
  return a;
}

/* The windows as columns, [N, C k k, L], by the host. */
static struct tensor columns(struct lower *l, struct tensor x, const struct window *p, const int64_t out[2])
{
  int64_t size[] = {x.size[0], x.size[1] * p->kernel[0] * p->kernel[1], out[0] * out[1]};
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
  *SW_PUSH(l->arena, &h.results) = lw_view_of(t);
  lw_add_host_step(l, h);
  return t;
}

/* [N,g,C/g k k,L] by [g,O/g,C/g k k] */
static struct tensor by_columns(struct lower *l, struct tensor x, struct tensor w, const struct window *p, const int64_t out[2])
{
  int64_t g = p->groups, k = w.size[1] * p->kernel[0] * p->kernel[1], o = w.size[0];
  struct tensor c = columns(l, x, p, out);
  struct tensor y = g == 1
    ? lw_matmul(l, lw_reshape(l, w, 2, (const int64_t[]){o, k}), c)
    : lw_matmul(l, lw_reshape(l, w, 4, (const int64_t[]){1, g, o / g, k}),
                lw_reshape(l, c, 4, (const int64_t[]){x.size[0], g, k, out[0] * out[1]}));
  return lw_known(y) ? lw_reshape(l, y, 4, (const int64_t[]){x.size[0], o, out[0], out[1]}) : y;
}

static struct tensor convolve(struct lower *l, struct tensor x, struct tensor w, struct window p, const int64_t out[2])
{
  int64_t taps = p.kernel[0] * p.kernel[1], channels = x.size[1];
  int64_t one[] = {1, 1};
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
    return sum_of_taps(l, x, w, &p, out);
  }
  bool is_depthwise = p.groups == channels && p.groups == w.size[0] && p.groups > 1;
  bool few = taps == 1 || (l->best && taps <= 9 && (is_depthwise || channels / p.groups >= 16));
  if (!few && !is_depthwise)
    return by_columns(l, x, w, &p, out);
  if (p.padding[0] || p.padding[1]) {
    int64_t size[] = {x.size[2] + 2 * p.padding[0], x.size[3] + 2 * p.padding[1]};
    x = surround(l, x, p.padding, size, one, 0);
  }
  return is_depthwise ? depthwise(l, x, w, &p, out) : sum_of_taps(l, x, w, &p, out);
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
  struct tensor y = convolve(l, x, w, p, out);
  if (lw_known(y) && lw_given(l, "bias")) {
    struct tensor b = lw_argument(l, lw_arg(l, "bias"), t);
    y = lw_binary(l, SW_OP_ADD, y, lw_unsqueeze(lw_unsqueeze(b, 1), 2));
  }
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

/* op over all taps. */
static struct tensor pool(struct lower *l, struct tensor x, const struct window *p, const int64_t out[2], enum sw_device_op op,
                          double border)
{
  if (p->padding[0] || p->padding[1]) {
    int64_t size[] = {x.size[2] + 2 * p->padding[0], x.size[3] + 2 * p->padding[1]}, one[] = {1, 1};
    x = surround(l, x, p->padding, size, one, border);
  }
  struct tensor y = lw_unknown();
  for (int64_t i = 0; i < p->kernel[0]; i++)
    for (int64_t j = 0; j < p->kernel[1]; j++) {
      int64_t at[] = {i, j};
      struct tensor t = tap(x, p, at, out);
      y = i + j ? lw_binary(l, op, y, t) : t;
    }
  return y;
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
