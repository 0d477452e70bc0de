/* Windows over images: pooling, resampling, padding. An image is [.., height, width]; of one dim it has height 1. */
#include "compiler/eval/ops.h"

#include <math.h>
#include <string.h>

struct axis {
  int64_t in, out, taps, stride, pad, dilation;
};

/* How often the window fits. With ceil_mode a last window may hang over the end, but must start before it. */
static struct axis axis_of(struct sw_call *c, int i, int64_t in)
{
  struct sw_ints stride = sw_call_ints(c, "stride");
  struct axis a = {.in = in, .taps = sw_ints_at(c, sw_call_ints(c, "kernel_size"), i, 1)};
  a.stride = sw_ints_at(c, stride, i, a.taps);
  a.pad = sw_ints_at(c, sw_call_ints(c, "padding"), i, 0);
  a.dilation = sw_ints_at(c, sw_call_ints(c, "dilation"), i, 1);
  if (a.taps < 1 || a.stride < 1 || a.dilation < 1 || a.pad < 0 || a.pad > a.taps / 2 || a.taps > 1 << 24 ||
      a.stride > 1 << 24 || a.dilation > 1 << 24)
    sw_call_stop(c, SW_INVALID, "a window of %lld with stride %lld, padding %lld, dilation %lld", (long long)a.taps,
                 (long long)a.stride, (long long)a.pad, (long long)a.dilation);
  int64_t room = in + 2 * a.pad - a.dilation * (a.taps - 1) - 1;
  bool ceil_mode = sw_call_bool(c, "ceil_mode");
  a.out = room < 0 ? 0 : (room + (ceil_mode ? a.stride - 1 : 0)) / a.stride + 1;
  if (ceil_mode && a.out > 0 && (a.out - 1) * a.stride >= in + a.pad)
    a.out--;
  return a;
}

/* The image dims of x: two, or one after a height of 1. */
static struct sw_tensor image_of(struct sw_call *c, const char *name, int dims, int64_t *height, int64_t *width)
{
  struct sw_tensor x = sw_call_tensor(c, name);
  if (x.rank < dims)
    sw_call_stop(c, SW_INVALID, "an image of rank %d", x.rank);
  *height = dims == 2 ? x.size[x.rank - 2] : 1;
  *width = x.size[x.rank - 1];
  return x;
}

static struct sw_tensor out_image(struct sw_call *c, int result, const struct sw_tensor *x, int dims, int64_t height,
                                  int64_t width)
{
  int64_t size[SW_MAX_RANK];
  memcpy(size, x->size, sizeof size);
  if (dims == 2)
    size[x->rank - 2] = height;
  size[x->rank - 1] = width;
  return sw_call_out(c, result, x->rank, size);
}

static int64_t planes(const struct sw_tensor *x, int dims)
{
  int64_t n = 1;
  for (int d = 0; d < x->rank - dims; d++)
    n *= x->size[d];
  return n;
}

/* `what`: image dims. A second result holds the places of the largest within the image. */
void sw_op_max_pool(struct sw_call *c)
{
  int dims = c->op->what;
  int64_t height, width;
  struct sw_tensor x = image_of(c, "self", dims, &height, &width);
  struct axis h = {.in = 1, .out = 1, .taps = 1, .stride = 1, .dilation = 1}, w = axis_of(c, dims - 1, width);
  if (dims == 2)
    h = axis_of(c, 0, height);
  double *v = sw_call_get(c, &x);
  int64_t n = planes(&x, dims), room = sw_call_product(c, 3, (int64_t[]){n, h.out, w.out});
  double *best = sw_call_reals(c, room);
  int64_t *place = sw_call_wholes(c, room);
  for (int64_t o = 0; o < room; o++) {
    const double *image = v + o / (h.out * w.out) * height * width;
    int64_t y0 = o / w.out % h.out * h.stride - h.pad, x0 = o % w.out * w.stride - w.pad;
    best[o] = -(double)INFINITY;
    place[o] = -1;
    for (int64_t i = 0; i < h.taps; i++)
      for (int64_t j = 0; j < w.taps; j++) {
        int64_t yy = y0 + i * h.dilation, xx = x0 + j * w.dilation;
        if (yy < 0 || yy >= height || xx < 0 || xx >= width)
          continue;
        double z = image[yy * width + xx];
        if (place[o] < 0 || z > best[o] || isnan(z)) {
          best[o] = z;
          place[o] = yy * width + xx;
        }
      }
  }
  struct sw_tensor out = out_image(c, 0, &x, dims, h.out, w.out);
  sw_put_reals(&out, best, c->rounding);
  if (sw_call_n_results(c) > 1) {
    out = out_image(c, 1, &x, dims, h.out, w.out);
    sw_put_wholes(&out, place, c->rounding);
  }
}

/* The mean of a rectangle of a plane that lies inside it. */
static double sum_of(const double *image, int64_t width, int64_t y0, int64_t y1, int64_t x0, int64_t x1)
{
  double sum = 0;
  for (int64_t y = y0; y < y1; y++)
    for (int64_t x = x0; x < x1; x++)
      sum += image[y * width + x];
  return sum;
}

static int64_t at_least(int64_t x, int64_t low)
{
  return x < low ? low : x;
}

static int64_t at_most(int64_t x, int64_t high)
{
  return x > high ? high : x;
}

/* The sum over the part of a window inside the image, divided by the window's elements: padding included or not, but
 * never what hangs over the padding. */
void sw_op_avg_pool(struct sw_call *c)
{
  int64_t height, width;
  struct sw_tensor x = image_of(c, "self", 2, &height, &width);
  struct axis h = axis_of(c, 0, height), w = axis_of(c, 1, width);
  bool with_padding = sw_call_bool(c, "count_include_pad");
  double divisor = sw_call_real_or(c, "divisor_override", 0), *v = sw_call_get(c, &x);
  int64_t room = sw_call_product(c, 3, (int64_t[]){planes(&x, 2), h.out, w.out});
  double *mean = sw_call_reals(c, room);
  for (int64_t o = 0; o < room; o++) {
    const double *image = v + o / (h.out * w.out) * height * width;
    int64_t y0 = o / w.out % h.out * h.stride - h.pad, x0 = o % w.out * w.stride - w.pad;
    int64_t y1 = at_most(y0 + h.taps, height + h.pad), x1 = at_most(x0 + w.taps, width + w.pad);
    int64_t padded = (y1 - y0) * (x1 - x0);
    y0 = at_least(y0, 0);
    x0 = at_least(x0, 0);
    y1 = at_most(y1, height);
    x1 = at_most(x1, width);
    int64_t inside = at_least(y1 - y0, 0) * at_least(x1 - x0, 0);
    double n = divisor != 0 ? divisor : (double)(with_padding ? padded : inside);
    mean[o] = inside ? sum_of(image, width, y0, y1, x0, x1) / n : 0;
  }
  struct sw_tensor out = out_image(c, 0, &x, 2, h.out, w.out);
  sw_put_reals(&out, mean, c->rounding);
}

/* Window i of n over a dim of `in`: from floor(i * in / n) to ceil((i + 1) * in / n). */
void sw_op_adaptive_avg_pool(struct sw_call *c)
{
  int64_t height, width;
  struct sw_tensor x = image_of(c, "self", 2, &height, &width);
  struct sw_ints size = sw_call_ints(c, "output_size");
  int64_t h = sw_ints_at(c, size, 0, height), w = sw_ints_at(c, size, 1, width);
  int64_t room = sw_call_product(c, 3, (int64_t[]){planes(&x, 2), h, w});
  double *v = sw_call_get(c, &x), *mean = sw_call_reals(c, room);
  for (int64_t o = 0; o < room; o++) {
    const double *image = v + o / (h * w) * height * width;
    int64_t i = o / w % h, j = o % w, y0 = i * height / h, y1 = ((i + 1) * height + h - 1) / h;
    int64_t x0 = j * width / w, x1 = ((j + 1) * width + w - 1) / w;
    mean[o] = sum_of(image, width, y0, y1, x0, x1) / (double)((y1 - y0) * (x1 - x0));
  }
  struct sw_tensor out = out_image(c, 0, &x, 2, h, w);
  sw_put_reals(&out, mean, c->rounding);
}

/* -- resampling -- */

/* Output size and step in the input per output element of image dim i. A scale factor that was given counts as it is,
 * not as the ratio of the sizes. */
static int64_t resized(struct sw_call *c, int i, int64_t in, bool align_corners, double *step)
{
  struct sw_ints size = sw_call_ints(c, "output_size");
  double factor = 0;
  int64_t out;
  if (size.n) {
    out = sw_ints_at(c, size, i, in);
  } else {
    const struct sw_arg *a = sw_call_need(c, "scale_factors");
    if (a->kind != SW_ARG_LIST || a->list.n <= i)
      sw_call_stop(c, SW_INVALID, "scale_factors is not a list of two numbers");
    factor = sw_number_real(sw_call_number(c, &a->list.v[i]));
    if (!(factor > 0) || factor > 0x1p24)
      sw_call_stop(c, SW_INVALID, "a scale factor of %g", factor);
    out = (int64_t)floor((double)in * factor);
  }
  if (out <= 0 || in <= 0 || out > 1 << 30)
    sw_call_stop(c, SW_INVALID, "%lld elements from %lld", (long long)out, (long long)in);
  if (align_corners)
    *step = out > 1 ? (double)(in - 1) / (double)(out - 1) : 0;
  else
    *step = factor > 0 ? 1 / factor : (double)in / (double)out;
  return out;
}

void sw_op_upsample_nearest(struct sw_call *c)
{
  int64_t height, width;
  struct sw_tensor x = image_of(c, "input", 2, &height, &width);
  double dy, dx, *v = sw_call_get(c, &x);
  int64_t h = resized(c, 0, height, false, &dy), w = resized(c, 1, width, false, &dx);
  int64_t room = sw_call_product(c, 3, (int64_t[]){planes(&x, 2), h, w});
  double *to = sw_call_reals(c, room);
  for (int64_t o = 0; o < room; o++) {
    int64_t y = at_most((int64_t)((float)(o / w % h) * (float)dy), height - 1);
    int64_t z = at_most((int64_t)((float)(o % w) * (float)dx), width - 1);
    to[o] = v[(o / (h * w) * height + y) * width + z];
  }
  struct sw_tensor out = out_image(c, 0, &x, 2, h, w);
  sw_put_reals(&out, to, c->rounding);
}

/* Centres of pixels are mapped onto one another, or corners when aligned. */
static double source_of(int64_t i, double step, bool align_corners)
{
  double x = align_corners ? (double)i * step : ((double)i + 0.5) * step - 0.5;
  return x < 0 ? 0 : x;
}

void sw_op_upsample_bilinear(struct sw_call *c)
{
  int64_t height, width;
  struct sw_tensor x = image_of(c, "input", 2, &height, &width);
  bool align = sw_call_bool(c, "align_corners");
  double dy, dx, *v = sw_call_get(c, &x);
  int64_t h = resized(c, 0, height, align, &dy), w = resized(c, 1, width, align, &dx);
  int64_t room = sw_call_product(c, 3, (int64_t[]){planes(&x, 2), h, w});
  double *to = sw_call_reals(c, room);
  for (int64_t o = 0; o < room; o++) {
    const double *image = v + o / (h * w) * height * width;
    double y = source_of(o / w % h, dy, align), z = source_of(o % w, dx, align);
    int64_t y0 = at_most((int64_t)y, height - 1), y1 = at_most(y0 + 1, height - 1);
    int64_t x0 = at_most((int64_t)z, width - 1), x1 = at_most(x0 + 1, width - 1);
    double fy = y - (double)y0, fx = z - (double)x0;
    double top = image[y0 * width + x0] * (1 - fx) + image[y0 * width + x1] * fx;
    double bottom = image[y1 * width + x0] * (1 - fx) + image[y1 * width + x1] * fx;
    to[o] = top * (1 - fy) + bottom * fy;
  }
  struct sw_tensor out = out_image(c, 0, &x, 2, h, w);
  sw_put_reals(&out, to, c->rounding);
}

/* [n, c * r * r, h, w] as [n, c, h * r, w * r]. */
void sw_op_pixel_shuffle(struct sw_call *c)
{
  struct sw_tensor x = sw_call_tensor(c, "self");
  int64_t r = sw_call_int(c, "upscale_factor");
  if (x.rank < 3 || x.rank + 2 > SW_MAX_RANK || r < 1 || r > 1 << 15 || x.size[x.rank - 3] % (r * r))
    sw_call_stop(c, SW_INVALID, "channels can't be shuffled by %lld", (long long)r);
  int64_t size[SW_MAX_RANK];
  int k = x.rank - 3;
  memcpy(size, x.size, sizeof size);
  int64_t parts[] = {x.size[k] / (r * r), r, r, x.size[k + 1], x.size[k + 2]};
  memcpy(&size[k], parts, sizeof parts);
  struct sw_tensor v = sw_call_reshape(c, &x, x.rank + 2, size);
  v = sw_tensor_move(&v, k + 1, k + 3); /* c r2 h r1 w */
  v = sw_tensor_move(&v, k + 1, k + 4); /* c h r1 w r2 */
  memcpy(size, x.size, sizeof size);
  size[k] /= r * r;
  size[k + 1] *= r;
  size[k + 2] *= r;
  struct sw_tensor out = sw_call_out(c, 0, x.rank, size), seen = out;
  int64_t step[] = {out.stride[k], r * out.stride[k + 1], out.stride[k + 1], r * out.stride[k + 2], out.stride[k + 2]};
  seen.rank = x.rank + 2;
  memcpy(seen.size, v.size, sizeof seen.size);
  memcpy(&seen.stride[k], step, sizeof step);
  sw_call_copy(c, &seen, &v);
}

/* -- padding -- */

/* Where index i of a padded dim comes from; -1: from nowhere. */
static int64_t pad_source(const char *mode, int64_t i, int64_t n)
{
  if (i >= 0 && i < n)
    return i;
  if (!strcmp(mode, "replicate"))
    return i < 0 ? 0 : n - 1;
  if (!strcmp(mode, "circular"))
    return (i % n + n) % n;
  if (!strcmp(mode, "reflect"))
    return i < 0 ? -i : 2 * (n - 1) - i;
  return -1;
}

/* `pad` counts from the last dim: before, after, .. Negative numbers cut. */
void sw_op_pad(struct sw_call *c)
{
  struct sw_tensor x = sw_call_tensor(c, "self");
  struct sw_ints pad = sw_call_ints(c, "pad");
  const char *mode = sw_call_text(c, "mode", "constant");
  bool constant = !strcmp(mode, "constant");
  if (pad.n % 2 || pad.n / 2 > x.rank ||
      (!constant && strcmp(mode, "replicate") && strcmp(mode, "circular") && strcmp(mode, "reflect")))
    sw_call_stop(c, SW_INVALID, "%d numbers to pad a tensor of rank %d, mode %s", pad.n, x.rank, mode);
  struct sw_tensor t = x;
  for (int p = 0; p < pad.n / 2; p++) {
    int dim = x.rank - 1 - p;
    int64_t before = pad.v[2 * p], after = pad.v[2 * p + 1], n = t.size[dim], size[SW_MAX_RANK];
    int64_t most = constant ? 1 << 30 : !strcmp(mode, "reflect") ? n - 1 : !strcmp(mode, "circular") ? n : 1 << 30;
    if (before > most || after > most || before < -n || after < -n - (before < 0 ? before : 0) || (!constant && n == 0))
      sw_call_stop(c, SW_INVALID, "a dim of %lld padded by %lld and %lld", (long long)n, (long long)before,
                   (long long)after);
    memcpy(size, t.size, sizeof size);
    size[dim] = n + before + after;
    struct sw_tensor padded = sw_call_new(c, t.dtype, t.rank, size);
    if (constant && sw_call_has(c, "value"))
      sw_call_fill(c, &padded, sw_call_number(c, sw_call_need(c, "value")));
    for (int64_t i = 0; i < size[dim]; i++) {
      int64_t source = pad_source(mode, i - before, n);
      if (source < 0)
        continue;
      struct sw_tensor to = sw_tensor_at(&padded, dim, i), from = sw_tensor_at(&t, dim, source);
      sw_call_copy(c, &to, &from);
    }
    t = padded;
  }
  struct sw_tensor out = sw_call_out(c, 0, t.rank, t.size);
  sw_call_copy(c, &out, &t);
}
