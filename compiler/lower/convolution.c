/* Convolutions and pools. The matrix unit has no padding and few window sizes, so:
 *
 *   few taps       one matrix product per tap over a strided view of the input, added up: 1x1 is one product, a 3-wide
 *                  1-d convolution three. Depthwise ones are mul and add.
 *   many taps      the windows are laid out by a host step (aten.im2col), then one product (ops.md 5.6, 6.7)
 *   transposed     the input is spread over zeros, then as above with the taps in reverse
 *
 * 1-d operands get a dim of size 1. Three dims are sums of
 * two-dimensional ones over the depth, or one product where the windows do not overlap. */
#include "compiler/lower/window.h"

#include "base/number.h"

#include <string.h>

void lw_read_pair(struct lower *l, const char *name, int dims, int64_t normal, int64_t out[2])
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
static bool tap(struct tensor x, const struct lw_window *w, const int64_t at[2], const int64_t out[2], int64_t first[2],
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
static bool order_taps(struct tensor x, const struct lw_window *p, const int64_t out[2], int64_t *order)
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

/* Whether slices of every second row and the like are whole parts of x: not of 17 rows. */
static bool has_whole_steps(struct tensor x, const struct lw_window *p)
{
  return x.size[2] % p->stride[0] == 0 && x.size[3] % p->stride[1] == 0;
}

/* x with its border, when no tap covers all windows; behind the end as far as the last window reaches, and in profile best
 * in whole steps of the windows. */
static struct tensor with_border(struct lower *l, struct tensor x, struct lw_window *p, const int64_t out[2], double value)
{
  int64_t size[2], one[] = {1, 1};
  for (int i = 0; i < 2; i++) {
    int64_t reach = (out[i] - 1) * p->stride[i] + (p->kernel[i] - 1) * p->dilation[i] + 1;
    size[i] = x.size[2 + i] + 2 * p->padding[i];
    size[i] = sw_round_up(size[i] > reach ? size[i] : reach, l->best ? p->stride[i] : 1);
  }
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
static struct tensor tap_weights(struct tensor w, const struct lw_window *p, const int64_t at[2])
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

struct tensor lw_over_taps(struct lower *l, struct tensor x, struct tensor w, struct lw_window p, const int64_t out[2],
                               enum sw_device_op op, double border, lw_tap_fn *fn, int dims)
{
  int64_t taps = p.kernel[0] * p.kernel[1];
  int64_t *order = SW_NEW_N(l->arena, int64_t, taps);
  if (!order_taps(x, &p, out, order) || (l->best && !has_whole_steps(x, &p))) {
    x = with_border(l, x, &p, out, border);
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
    bool whole = n[0] == out[0] && n[1] == out[1];
    if (k == 0 ? taps == 1 && lw_known(y) && y.storage == x.storage : !whole && lw_known(sum) && sum.storage == x.storage) {
      struct tensor *own = k == 0 ? &y : &sum;
      *own = l->best ? lw_binary_number(l, SW_OP_MUL, *own, 1) : lw_clone(l, *own); /* a copy would want the sticks as they lie */
    }
    sum = k ? combine(l, op, sum, y, first, n, out, dims) : y;
  }
  return sum;
}

static struct tensor product_tap(struct lower *l, struct tensor slice, struct tensor w, const struct lw_window *p, const int64_t at[2])
{
  int64_t from[] = {p->transposed ? p->kernel[0] - 1 - at[0] : at[0], p->transposed ? p->kernel[1] - 1 - at[1] : at[1]};
  return lw_matmul(l, channels_last(slice, p->groups), tap_weights(w, p, from)); /* [N,g,H,W,O/g] */
}

/* The result, [N,O,H,W], with channels last in memory so that products and sums share their sticks. */
static struct tensor sum_of_taps(struct lower *l, struct tensor x, struct tensor w, const struct lw_window *p,
                                 const int64_t out[2])
{
  struct tensor sum = lw_over_taps(l, x, w, *p, out, SW_OP_ADD, 0, product_tap, 2);
  if (!lw_known(sum))
    return sum;
  int64_t size[] = {sum.size[0], sum.size[1] * sum.size[4], sum.size[2], sum.size[3]};
  return lw_reshape(l, lw_permute(sum, (const int[]){0, 1, 4, 2, 3}), 4, size);
}

/* One weight a channel and tap. */
static struct tensor channel_tap(struct lower *l, struct tensor slice, struct tensor w, const struct lw_window *p, const int64_t at[2])
{
  (void)p;
  struct tensor k = lw_slice(lw_slice(lw_squeeze(w, 1), 1, at[0], 1, 1), 2, at[1], 1, 1); /* [C,1,1] */
  return lw_binary(l, SW_OP_MUL, slice, k);
}

static struct tensor depthwise(struct lower *l, struct tensor x, struct tensor w, const struct lw_window *p, const int64_t out[2])
{
  return lw_over_taps(l, x, w, *p, out, SW_OP_ADD, 0, channel_tap, 2);
}

static struct sw_host_arg int_list(struct lower *l, const int64_t v[2])
{
  struct sw_host_arg a = {.kind = SW_HOST_LIST, .n_list = 2, .list = SW_NEW_N(l->arena, struct sw_host_arg, 2)};
  for (int i = 0; i < 2; i++)
    a.list[i] = (struct sw_host_arg){.kind = SW_HOST_LITERAL, .literal = {.kind = SW_ARG_INT, .i = v[i]}};
  return a;
}

/* The windows by the host: the columns of aten.im2col, [N, C k k, L]; profile best lays them down as rows, [N, L, C k k]. */
static struct tensor windows(struct lower *l, struct tensor x, const struct lw_window *p, const int64_t out[2])
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
                                const struct lw_window *p, const int64_t out[2])
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
                                const struct lw_window *p, const int64_t out[2])
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

static struct tensor convolve(struct lower *l, struct tensor x, struct tensor w, const struct tensor *bias, struct lw_window p,
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

/* -- three dims -- */

struct volume {
  int64_t kernel[3], stride[3], padding[3], dilation[3];
};

/* Windows side by side without overlap, as of video patches: rows of a matrix, one product. [N,C,D,H,W] becomes
 * [N, D',H',W', C,d,h,w] in two copies, because no tensor on the device has as many dims: W' moves in front of h, then
 * channels and d behind the places. */
static struct tensor by_blocks(struct lower *l, struct tensor x, struct tensor w, const struct volume *g, const int64_t out[3])
{
  int64_t n = x.size[0], channels = x.size[1], o = w.size[0], places = out[0] * out[1] * out[2];
  const int64_t *k = g->kernel;
  int64_t depth = channels * k[0] * k[1] * k[2];
  for (int i = 0; i < 3; i++)
    x = lw_slice(x, 2 + i, 0, out[i] * k[i], 1);
  if (out[2] > 1) {
    x = lw_reshape(l, x, 4, (const int64_t[]){n * channels * out[0] * k[0] * out[1], k[1], out[2], k[2]});
    x = lw_known(x) ? lw_clone(l, lw_permute(x, (const int[]){0, 2, 1, 3})) : x;
  }
  if (lw_known(x) && places > 1) {
    x = lw_reshape(l, x, 6, (const int64_t[]){n, channels, out[0], k[0], out[1] * out[2], k[1] * k[2]});
    x = lw_known(x) ? lw_clone(l, lw_permute(x, (const int[]){0, 2, 4, 1, 3, 5})) : x;
  }
  if (!lw_known(x))
    return x;
  x = lw_reshape(l, x, 2, (const int64_t[]){n * places, depth});
  w = lw_reshape(l, w, 2, (const int64_t[]){o, depth});
  x = lw_matmul(l, x, lw_transpose(w, 0, 1)); /* [N D'H'W', O] */
  if (!lw_known(x))
    return x;
  x = lw_reshape(l, x, 5, (const int64_t[]){n, out[0], out[1], out[2], o});
  return lw_known(x) ? lw_permute(x, (const int[]){0, 4, 1, 2, 3}) : x;
}

/* For every plane of the window a convolution in two dims of the planes it meets, added up. */
static struct tensor by_planes(struct lower *l, struct tensor x, struct tensor w, const struct volume *g, int64_t groups, const int64_t out[3])
{
  int64_t n = x.size[0], channels = x.size[1], depth = x.size[2] + 2 * g->padding[0];
  struct lw_window p = {.kernel = {g->kernel[1], g->kernel[2]}, .stride = {g->stride[1], g->stride[2]}, .groups = groups,
                        .padding = {g->padding[1], g->padding[2]}, .dilation = {g->dilation[1], g->dilation[2]}};
  x = lw_permute(x, (const int[]){0, 2, 3, 4, 1}); /* channels last, so that planes and windows are slices outside the stick */
  struct tensor deep = g->padding[0] ? lw_zeros(l, x.dtype, 5, (const int64_t[]){n, depth, x.size[2], x.size[3], channels})
                                     : lw_new(l, x.dtype, 5, (const int64_t[]){n, depth, x.size[2], x.size[3], channels}, NULL);
  lw_write(l, lw_slice(deep, 1, g->padding[0], x.size[1], 1), x);
  /* the weights as [taps, O, C/g]: one dim instead of three, which a product could not name any more */
  const int64_t *taps = g->kernel, o = w.size[0], inner = w.size[1];
  w = lw_reshape(l, w, 3, (const int64_t[]){o, inner, taps[0] * taps[1] * taps[2]});
  w = lw_known(w) ? lw_clone(l, lw_permute(w, (const int[]){2, 0, 1})) : w;
  struct tensor sum = lw_unknown();
  for (int64_t k = 0; k < g->kernel[0] && lw_known(w); k++) {
    struct tensor own = lw_slice(w, 0, k * taps[1] * taps[2], taps[1] * taps[2], 1);
    own = lw_reshape(l, own, 4, (const int64_t[]){taps[1], taps[2], o, inner});
    own = lw_permute(own, (const int[]){2, 3, 0, 1});
    struct tensor planes = lw_slice(deep, 1, k * g->dilation[0], out[0], g->stride[0]);
    planes = lw_reshape(l, planes, 4, (const int64_t[]){n * out[0], x.size[2], x.size[3], channels});
    if (!lw_known(planes))
      return planes;
    planes = lw_permute(planes, (const int[]){0, 3, 1, 2});
    struct tensor y = convolve(l, planes, own, NULL, p, &out[1]);
    sum = k ? lw_binary(l, SW_OP_ADD, sum, y) : y;
  }
  if (!lw_known(sum))
    return sum;
  sum = lw_reshape(l, sum, 5, (const int64_t[]){n, out[0], o, out[1], out[2]});
  return lw_known(sum) ? lw_permute(sum, (const int[]){0, 2, 1, 3, 4}) : sum;
}

static void convolve_3d(struct lower *l, struct tensor x, struct tensor w, const struct lw_window *p, bool batched)
{
  const struct sw_value *v = lw_value(l, 0);
  struct volume g;
  int64_t stride[SW_MAX_RANK], padding[SW_MAX_RANK], dilation[SW_MAX_RANK], out[3];
  int n_stride = lw_ints(l, "stride", stride), n_dilation = lw_ints(l, "dilation", dilation), n_padding = 0;
  const struct sw_arg *named = lw_arg(l, "padding");
  if (named->kind != SW_ARG_STR)
    n_padding = lw_ints(l, "padding", padding);
  bool blocks = p->groups == 1, same = named->kind == SW_ARG_STR && !strcmp(named->s, "same"), even = false;
  for (int i = 0; i < 3; i++) {
    g.kernel[i] = w.size[2 + i];
    g.stride[i] = n_stride ? stride[i < n_stride ? i : n_stride - 1] : 1;
    g.dilation[i] = n_dilation ? dilation[i < n_dilation ? i : n_dilation - 1] : 1;
    g.padding[i] = same ? g.dilation[i] * (g.kernel[i] - 1) / 2 : n_padding ? padding[i < n_padding ? i : n_padding - 1] : 0;
    even = even || (same && g.dilation[i] * (g.kernel[i] - 1) % 2);
    out[i] = v->size[v->rank - 3 + i];
    blocks = blocks && g.kernel[i] == g.stride[i] && !g.padding[i] && g.dilation[i] == 1;
  }
  if (p->transposed || even) {
    lw_host(l, 0);
    return;
  }
  struct tensor y = blocks ? by_blocks(l, x, w, &g, out) : by_planes(l, x, w, &g, p->groups, out);
  if (lw_given(l, "bias")) {
    struct tensor bias = lw_argument(l, lw_arg(l, "bias"), lw_result_dtype(l, 0));
    for (int i = 0; i < 3; i++)
      bias = lw_unsqueeze(bias, bias.rank);
    y = lw_binary(l, SW_OP_ADD, y, bias);
  }
  lw_set(l, 0, batched ? y : lw_squeeze(y, 0));
}

/* convolution, conv1d, conv2d, conv_transpose2d. dims 0: as many as the input has. */
void lw_op_convolution(struct lower *l, int transposed)
{
  enum sw_dtype t = lw_result_dtype(l, 0);
  struct tensor x = lw_argument(l, lw_arg(l, "input"), t), w = lw_argument(l, lw_arg(l, "weight"), t);
  const struct sw_value *v = lw_value(l, 0);
  struct lw_window p = {.transposed = transposed || (lw_given(l, "transposed") && lw_bool(l, "transposed"))};
  if (!lw_known(x) || !lw_known(w)) {
    lw_set(l, 0, lw_unknown());
    return;
  }
  int dims = w.rank - 2;
  bool batched = x.rank == w.rank;
  if (!batched)
    x = lw_unsqueeze(x, 0);
  p.groups = lw_int(l, "groups");
  if (dims == 3) {
    convolve_3d(l, x, w, &p, batched);
    return;
  }
  lw_read_pair(l, "stride", dims, 1, p.stride);
  lw_read_pair(l, "dilation", dims, 1, p.dilation);
  if (dims == 1) {
    x = lw_unsqueeze(x, 2);
    w = lw_unsqueeze(w, 2);
  }
  p.kernel[0] = w.size[2];
  p.kernel[1] = w.size[3];
  const struct sw_arg *padding = lw_arg(l, "padding");
  int64_t out[] = {dims == 1 ? 1 : v->size[v->rank - 2], v->size[v->rank - 1]};
  bool odd = false;
  if (padding->kind == SW_ARG_STR) { /* "same" pads so that out = in, "valid" not at all */
    for (int i = 0; i < 2; i++) {
      int64_t all = strcmp(padding->s, "same") ? 0 : p.dilation[i] * (p.kernel[i] - 1);
      p.padding[i] = all / 2;
      odd = odd || all % 2;
    }
    if (odd) { /* one more place behind the image than in front of it */
      int64_t size[2], one[] = {1, 1};
      for (int i = 0; i < 2; i++)
        size[i] = x.size[2 + i] + p.dilation[i] * (p.kernel[i] - 1);
      x = surround(l, x, p.padding, size, one, 0);
      p.padding[0] = p.padding[1] = 0;
    }
  } else {
    lw_read_pair(l, "padding", dims, 0, p.padding);
    if (dims == 1)
      p.padding[0] = 0;
  }
  struct tensor bias, y;
  bool has_bias = lw_given(l, "bias");
  if (has_bias)
    bias = lw_argument(l, lw_arg(l, "bias"), t);
  y = convolve(l, x, w, has_bias ? &bias : NULL, p, out);
  y = lw_known(y) && dims == 1 ? lw_squeeze(y, 2) : y;
  lw_set(l, 0, batched ? y : lw_squeeze(y, 0));
}
