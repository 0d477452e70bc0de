/* Windows over images of one to three dims: pooling; padding and pixel shuffle. */
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

/* An image of up to three dims, always seen as three: missing ones come first and have size 1. */
struct image {
  struct sw_tensor x;
  int dims;
  int64_t planes, size[3];
};

static struct image image_of(struct sw_call *c, const char *name, int dims)
{
  struct image m = {.x = sw_call_tensor(c, name), .dims = dims, .planes = 1, .size = {1, 1, 1}};
  if (m.x.rank < dims)
    sw_call_stop(c, SW_INVALID, "an image of rank %d", m.x.rank);
  for (int d = 0; d < m.x.rank; d++)
    if (d < m.x.rank - dims)
      m.planes *= m.x.size[d];
    else
      m.size[3 - m.x.rank + d] = m.x.size[d];
  return m;
}

static struct sw_tensor out_image(struct sw_call *c, int result, const struct image *m, const int64_t out[3])
{
  int64_t size[SW_MAX_RANK];
  memcpy(size, m->x.size, sizeof size);
  for (int i = 3 - m->dims; i < 3; i++)
    size[m->x.rank - 3 + i] = out[i];
  return sw_call_out(c, result, m->x.rank, size);
}

/* The maxima of the windows, and their places where somebody asks for them. */
static void put_largest(struct sw_call *c, const struct image *m, const int64_t out[3], const double *best, const int64_t *place)
{
  struct sw_tensor t = out_image(c, 0, m, out);
  sw_put_reals(&t, best, c->rounding);
  if (sw_call_n_results(c) > 1) {
    t = out_image(c, 1, m, out);
    sw_put_wholes(&t, place, c->rounding);
  }
}

static void axes_of(struct sw_call *c, const struct image *m, struct axis a[3], int64_t out[3])
{
  for (int i = 0; i < 3; i++) {
    a[i] = (struct axis){.in = 1, .out = 1, .taps = 1, .stride = 1, .dilation = 1};
    if (i >= 3 - m->dims)
      a[i] = axis_of(c, i - (3 - m->dims), m->size[i]);
    out[i] = a[i].out;
  }
}

/* Output element o of one plane by dims. */
static void place_of(int64_t o, const int64_t out[3], int64_t p[3])
{
  p[2] = o % out[2];
  p[1] = o / out[2] % out[1];
  p[0] = o / (out[2] * out[1]) % out[0];
}

static int64_t volume(const int64_t v[3])
{
  return v[0] * v[1] * v[2];
}

/* The largest of the taps of one window inside the image, and where it stands. The window begins at `from` and has `n`
 * taps a dim, `step` apart. */
static int64_t largest(const double *image, const int64_t size[3], const int64_t from[3], const int64_t n[3],
                       const int64_t step[3])
{
  int64_t best = -1;
  for (int64_t k = 0; k < volume(n); k++) {
    int64_t tap[3], at = 0;
    bool inside = true;
    place_of(k, n, tap);
    for (int i = 0; i < 3; i++) {
      int64_t x = from[i] + tap[i] * step[i];
      inside = inside && x >= 0 && x < size[i];
      at = at * size[i] + x;
    }
    if (inside && (best < 0 || image[at] > image[best] || isnan(image[at])))
      best = at;
  }
  return best;
}

/* `what`: image dims. A second result holds the places of the largest within the image. */
void sw_op_max_pool(struct sw_call *c)
{
  struct image m = image_of(c, "self", c->op->what);
  struct axis a[3];
  int64_t out[3];
  axes_of(c, &m, a, out);
  int64_t room = sw_call_product(c, 4, (int64_t[]){m.planes, out[0], out[1], out[2]});
  double *v = sw_call_get(c, &m.x), *best = sw_call_reals(c, room);
  int64_t *place = sw_call_wholes(c, room);
  for (int64_t o = 0; o < room; o++) {
    const double *image = v + o / volume(out) * volume(m.size);
    int64_t from[3], taps[3], step[3];
    place_of(o, out, from);
    for (int i = 0; i < 3; i++) {
      from[i] = from[i] * a[i].stride - a[i].pad;
      taps[i] = a[i].taps;
      step[i] = a[i].dilation;
    }
    place[o] = largest(image, m.size, from, taps, step);
    best[o] = place[o] < 0 ? -(double)INFINITY : image[place[o]];
  }
  put_largest(c, &m, out, best, place);
}

/* The sum of a box of the image, from `from` up to `to`. */
static double sum_of(const double *image, const int64_t size[3], const int64_t from[3], const int64_t to[3])
{
  double sum = 0;
  for (int64_t z = from[0]; z < to[0]; z++)
    for (int64_t y = from[1]; y < to[1]; y++)
      for (int64_t x = from[2]; x < to[2]; x++)
        sum += image[(z * size[1] + y) * size[2] + x];
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
  struct image m = image_of(c, "self", c->op->what);
  struct axis a[3];
  int64_t out[3];
  axes_of(c, &m, a, out);
  bool with_padding = sw_call_bool(c, "count_include_pad");
  double divisor = sw_call_real_or(c, "divisor_override", 0), *v = sw_call_get(c, &m.x);
  int64_t room = sw_call_product(c, 4, (int64_t[]){m.planes, out[0], out[1], out[2]});
  double *mean = sw_call_reals(c, room);
  for (int64_t o = 0; o < room; o++) {
    int64_t from[3], to[3], padded = 1, inside = 1;
    place_of(o, out, from);
    for (int i = 0; i < 3; i++) {
      from[i] = from[i] * a[i].stride - a[i].pad;
      to[i] = at_most(from[i] + a[i].taps, m.size[i] + a[i].pad);
      padded *= to[i] - from[i];
      from[i] = at_least(from[i], 0);
      to[i] = at_most(to[i], m.size[i]);
      inside *= at_least(to[i] - from[i], 0);
    }
    double n = divisor != 0 ? divisor : (double)(with_padding ? padded : inside);
    mean[o] = inside ? sum_of(v + o / volume(out) * volume(m.size), m.size, from, to) / n : 0;
  }
  struct sw_tensor t = out_image(c, 0, &m, out);
  sw_put_reals(&t, mean, c->rounding);
}

/* Window i of n over a dim of `in`: from floor(i * in / n) to ceil((i + 1) * in / n). */
static struct image adaptive(struct sw_call *c, int dims, int64_t out[3])
{
  struct image m = image_of(c, "self", dims);
  struct sw_ints size = sw_call_ints(c, "output_size");
  for (int i = 0; i < 3; i++)
    out[i] = i < 3 - dims ? 1 : sw_ints_at(c, size, i - (3 - dims), m.size[i]);
  return m;
}

static void adaptive_window(int64_t o, const int64_t out[3], const int64_t size[3], int64_t from[3], int64_t to[3])
{
  int64_t p[3];
  place_of(o, out, p);
  for (int i = 0; i < 3; i++) {
    from[i] = p[i] * size[i] / out[i];
    to[i] = ((p[i] + 1) * size[i] + out[i] - 1) / out[i];
  }
}

void sw_op_adaptive_avg_pool(struct sw_call *c)
{
  int64_t out[3], from[3], to[3];
  struct image m = adaptive(c, c->op->what, out);
  int64_t room = sw_call_product(c, 4, (int64_t[]){m.planes, out[0], out[1], out[2]});
  double *v = sw_call_get(c, &m.x), *mean = sw_call_reals(c, room);
  for (int64_t o = 0; o < room; o++) {
    adaptive_window(o, out, m.size, from, to);
    double n = (double)((to[0] - from[0]) * (to[1] - from[1]) * (to[2] - from[2]));
    mean[o] = sum_of(v + o / volume(out) * volume(m.size), m.size, from, to) / n;
  }
  struct sw_tensor t = out_image(c, 0, &m, out);
  sw_put_reals(&t, mean, c->rounding);
}

void sw_op_adaptive_max_pool(struct sw_call *c)
{
  int64_t out[3], from[3], to[3];
  struct image m = adaptive(c, c->op->what, out);
  int64_t room = sw_call_product(c, 4, (int64_t[]){m.planes, out[0], out[1], out[2]});
  double *v = sw_call_get(c, &m.x), *best = sw_call_reals(c, room);
  int64_t *place = sw_call_wholes(c, room);
  for (int64_t o = 0; o < room; o++) {
    const double *image = v + o / volume(out) * volume(m.size);
    adaptive_window(o, out, m.size, from, to);
    for (int i = 0; i < 3; i++)
      to[i] -= from[i];
    place[o] = largest(image, m.size, from, to, (int64_t[]){1, 1, 1});
    best[o] = place[o] < 0 ? -(double)INFINITY : image[place[o]];
  }
  put_largest(c, &m, out, best, place);
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

/* Where index i of a padded dim comes from; -1: from nowhere. A circle closes over what negative padding leaves. */
static int64_t pad_source(const char *mode, int64_t i, int64_t n, int64_t before, int64_t after)
{
  int64_t first = before < 0 ? -before : 0, left = n - first + (after < 0 ? after : 0);
  if (!strcmp(mode, "circular"))
    return left > 0 ? first + ((i - first) % left + left) % left : -1;
  if (i >= 0 && i < n)
    return i;
  if (!strcmp(mode, "replicate"))
    return i < 0 ? 0 : n - 1;
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
      int64_t source = pad_source(mode, i - before, n, before, after);
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
