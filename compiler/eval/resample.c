/* Resampling: every dim of the image by a matrix of its own. The smooth kinds are those with antialias=True, whose
 * kernel is as wide as the step when an image shrinks.
 *
 * Linear, 4 to 2: step 2, output 0 looks at place (0 + 0.5) * 2 - 0.5 = 0.5: half of elements 0 and 1. */
#include "compiler/eval/resample.h"

#include "compiler/eval/ops.h"

#include <math.h>
#include <string.h>

static int64_t clamp(int64_t x, int64_t n)
{
  return x < 0 ? 0 : x >= n ? n - 1 : x;
}

/* Keys' kernel; a is -0.75 in PyTorch, -0.5 with antialias. */
static double cubic(double x, double a)
{
  x = fabs(x);
  if (x <= 1)
    return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? (((x - 5) * x + 8) * x - 4) * a : 0;
}

static double tent(double x)
{
  return fabs(x) < 1 ? 1 - fabs(x) : 0;
}

/* A row of the smooth kinds: the kernel stretched over the step, its weights made to sum to 1. */
static void smooth_row(bool is_cubic, int64_t o, int64_t in, double step, double *row)
{
  double stretch = step > 1 ? step : 1, support = (is_cubic ? 2 : 1) * stretch, centre = step * ((double)o + 0.5), sum = 0;
  int64_t first = clamp((int64_t)(centre - support + 0.5), in + 1), end = (int64_t)(centre + support + 0.5);
  end = end > in ? in : end;
  for (int64_t i = first; i < end; i++) {
    double x = ((double)i - centre + 0.5) / stretch;
    sum += row[i] = is_cubic ? cubic(x, -0.5) : tent(x);
  }
  for (int64_t i = first; i < end && sum != 0; i++)
    row[i] /= sum;
}

void sw_resample_matrix(enum sw_resampling how, int64_t in, int64_t out, double factor, bool align_corners, double *matrix)
{
  double step = factor > 0 ? 1 / factor : (double)in / (double)out;
  bool smooth = how == SW_LINEAR_SMOOTH || how == SW_CUBIC_SMOOTH;
  if (align_corners && how >= SW_LINEAR)
    step = out > 1 ? (double)(in - 1) / (double)(out - 1) : 0;
  for (int64_t o = 0; o < out; o++) {
    double *row = matrix + o * in;
    double x = align_corners ? (double)o * step : ((double)o + 0.5) * step - 0.5;
    int64_t i;
    switch (how) {
    case SW_NEAREST: /* PyTorch computes this in float32 */
      row[clamp((int64_t)((float)o * (float)step), in)] = 1;
      break;
    case SW_NEAREST_EXACT:
      row[clamp((int64_t)(((float)o + 0.5f) * (float)step), in)] = 1;
      break;
    case SW_LINEAR:
      x = x < 0 ? 0 : x;
      i = clamp((int64_t)x, in);
      row[i] += 1 - (x - (double)i);
      row[clamp(i + 1, in)] += x - (double)i;
      break;
    case SW_CUBIC:
      i = (int64_t)floor(x);
      for (int64_t k = -1; k <= 2; k++)
        row[clamp(i + k, in)] += cubic(x - (double)(i + k), -0.75);
      break;
    default:
      if (smooth && align_corners)
        x += 0.5; /* the window is centred there */
      smooth_row(how == SW_CUBIC_SMOOTH, o, in, step, row);
    }
  }
}

/* What was asked for in dim i: a size, and a factor that counts as it is, not as the ratio of the sizes. */
static int64_t resized(struct sw_call *c, int i, int dims, int64_t in, double *factor)
{
  static const char *const scales[] = {"scales_d", "scales_h", "scales_w"};
  struct sw_ints size = sw_call_ints(c, "output_size");
  const struct sw_arg *list = sw_call_arg(c, "scale_factors");
  const char *name = dims == 1 ? "scales" : scales[3 - dims + i];
  *factor = 0;
  if (list && list->kind == SW_ARG_LIST && list->list.n > i)
    *factor = sw_number_real(sw_call_number(c, &list->list.v[i]));
  else if (sw_call_has(c, name))
    *factor = sw_call_real(c, name);
  if (*factor < 0 || *factor > 0x1p24)
    sw_call_stop(c, SW_INVALID, "a scale factor of %g", *factor);
  int64_t out = size.n ? sw_ints_at(c, size, i, in) : (int64_t)floor((double)in * *factor);
  if (out <= 0 || in <= 0 || out > 1 << 20 || in > 1 << 20)
    sw_call_stop(c, SW_INVALID, "%lld elements from %lld", (long long)out, (long long)in);
  return out;
}

/* `what`: the kind; `args`: the number of image dims. */
void sw_op_upsample(struct sw_call *c)
{
  int dims = c->op->args[0] - '0';
  struct sw_tensor x = sw_call_tensor(c, sw_call_has(c, "input") ? "input" : "self");
  if (x.rank < dims + 2)
    sw_call_stop(c, SW_INVALID, "an image of rank %d", x.rank);
  if (c->op->what != SW_NEAREST && c->op->what != SW_NEAREST_EXACT && !sw_dtype_is_float(x.dtype)) /* PyTorch rounds weights and rows */
    sw_call_stop(c, SW_UNSUPPORTED, "weighed means of %s", sw_dtype_text(x.dtype));
  bool align = sw_call_bool(c, "align_corners");
  int64_t size[SW_MAX_RANK];
  double *v = sw_call_get(c, &x);
  memcpy(size, x.size, sizeof size);
  for (int i = 0; i < dims; i++) {
    int d = x.rank - dims + i;
    double factor;
    int64_t in = size[d], out = resized(c, i, dims, in, &factor), before = 1, behind = 1;
    for (int k = 0; k < x.rank; k++) {
      before *= k < d ? size[k] : 1;
      behind *= k > d ? size[k] : 1;
    }
    double *matrix = sw_call_reals(c, sw_call_product(c, 2, (int64_t[]){out, in}));
    sw_resample_matrix((enum sw_resampling)c->op->what, in, out, factor, align, matrix);
    double *to = sw_call_reals(c, sw_call_product(c, 3, (int64_t[]){before, out, behind}));
    for (int64_t b = 0; b < before; b++)
      for (int64_t o = 0; o < out; o++)
        for (int64_t k = 0; k < in; k++) {
          double w = matrix[o * in + k];
          for (int64_t j = 0; w != 0 && j < behind; j++)
            to[(b * out + o) * behind + j] += w * v[(b * in + k) * behind + j];
        }
    v = to;
    size[d] = out;
  }
  struct sw_tensor t = sw_call_out(c, 0, x.rank, size);
  sw_put_reals(&t, v, c->rounding);
}

/* -- looked up at places of a grid -- */

/* Place x of -1 .. 1 in a dim of n elements; beyond the border by `mode` 1 the border, 2 mirrored. */
static double place(double x, int64_t n, int64_t mode, bool align)
{
  double size = (double)n;
  x = align ? (x + 1) / 2 * (size - 1) : ((x + 1) * size - 1) / 2;
  if (mode == 2) {
    double low = align ? 0 : -0.5, span = align ? size - 1 : size;
    double away = span > 0 ? fabs(x - low) : 0, rest = span > 0 ? fmod(away, span) : 0;
    bool back = span > 0 && (int64_t)floor(away / span) % 2;
    x = (back ? span - rest : rest) + low;
  }
  if (mode)
    x = x < 0 ? 0 : x > size - 1 ? size - 1 : x;
  return x;
}

static double element(const double *image, int64_t height, int64_t width, int64_t y, int64_t x)
{
  return y < 0 || y >= height || x < 0 || x >= width ? 0 : image[y * width + x];
}

/* [n,c,h,w] at the places of [n,h',w',2], last dim x and y. Interpolation 0 linear, 1 nearest; 2 cubic is refused. */
void sw_op_grid_sampler(struct sw_call *c)
{
  struct sw_tensor x = sw_call_tensor(c, "input"), grid = sw_call_tensor(c, "grid");
  int64_t kind = sw_call_int(c, "interpolation_mode"), mode = sw_call_int(c, "padding_mode");
  bool align = sw_call_bool(c, "align_corners");
  if (x.rank != 4 || grid.rank != 4 || grid.size[3] != 2 || grid.size[0] != x.size[0] || kind < 0 || kind > 1 || mode < 0 || mode > 2)
    sw_call_stop(c, SW_UNSUPPORTED, "an image of rank %d, interpolation %lld, padding %lld", x.rank, (long long)kind, (long long)mode);
  int64_t channels = x.size[1], height = x.size[2], width = x.size[3], area = grid.size[1] * grid.size[2];
  double *v = sw_call_get(c, &x), *g = sw_call_get(c, &grid);
  double *to = sw_call_reals(c, sw_call_product(c, 3, (int64_t[]){x.size[0], channels, area}));
  for (int64_t n = 0; n < x.size[0]; n++)
    for (int64_t p = 0; p < area; p++) {
      double px = place(g[(n * area + p) * 2], width, mode, align), py = place(g[(n * area + p) * 2 + 1], height, mode, align);
      px = isfinite(px) && fabs(px) < 0x1p30 ? px : -100;
      py = isfinite(py) && fabs(py) < 0x1p30 ? py : -100;
      for (int64_t ch = 0; ch < channels; ch++) {
        const double *image = v + (n * channels + ch) * height * width;
        double *out = to + (n * channels + ch) * area + p;
        if (kind == 1) {
          *out = element(image, height, width, (int64_t)nearbyint(py), (int64_t)nearbyint(px));
          continue;
        }
        int64_t x0 = (int64_t)floor(px), y0 = (int64_t)floor(py);
        double fx = px - (double)x0, fy = py - (double)y0;
        *out = (element(image, height, width, y0, x0) * (1 - fx) + element(image, height, width, y0, x0 + 1) * fx) * (1 - fy) +
               (element(image, height, width, y0 + 1, x0) * (1 - fx) + element(image, height, width, y0 + 1, x0 + 1) * fx) * fy;
      }
    }
  struct sw_tensor t = sw_call_out(c, 0, 4, (int64_t[]){x.size[0], channels, grid.size[1], grid.size[2]});
  sw_put_reals(&t, to, c->rounding);
}
