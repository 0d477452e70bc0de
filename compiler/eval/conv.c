/* Convolutions of one to three dims, as matrix products over columns of patches. */
#include "compiler/eval/ops.h"

#include <string.h>

/* A sliding window over an image, always of three dims: missing ones have size 1. Tap k of window l lies at
 * l * stride - pad + k * dilation in the image. */
struct window {
  int64_t image[3], taps[3], places[3], stride[3], pad[3], dilation[3];
};

static int64_t volume(const int64_t *v)
{
  return v[0] * v[1] * v[2];
}

/* Between `channels` images and the matrix [channels * taps, places] of their patches: copies into the matrix, or
 * (scatter) adds from it. Taps outside the image count as 0. */
static void patches(const struct window *g, int64_t channels, double *image, double *matrix, bool scatter)
{
  int64_t rows = volume(g->taps), columns = volume(g->places);
  for (int64_t ch = 0; ch < channels; ch++, image += volume(g->image))
    for (int64_t tap = 0; tap < rows; tap++) {
      int64_t k[3] = {tap / (g->taps[1] * g->taps[2]), tap / g->taps[2] % g->taps[1], tap % g->taps[2]};
      double *row = matrix + (ch * rows + tap) * columns;
      for (int64_t l = 0; l < columns; l++) {
        int64_t p[3] = {l / (g->places[1] * g->places[2]), l / g->places[2] % g->places[1], l % g->places[2]}, at = 0;
        bool inside = true;
        for (int d = 0; d < 3; d++) {
          int64_t x = p[d] * g->stride[d] - g->pad[d] + k[d] * g->dilation[d];
          inside = inside && x >= 0 && x < g->image[d];
          at = at * g->image[d] + x;
        }
        if (inside && scatter)
          image[at] += row[l];
        else if (!scatter)
          row[l] = inside ? image[at] : 0;
      }
    }
}

/* Numbers that multiply sizes: small enough that nothing overflows. */
static int64_t modest(struct sw_call *c, int64_t x, int64_t least, const char *what)
{
  if (x < least || x > 1 << 24)
    sw_call_stop(c, SW_INVALID, "%s %lld", what, (long long)x);
  return x;
}

/* stride, padding, dilation of the call and the taps of the weight. */
static struct window window_of(struct sw_call *c, int dims, const int64_t *taps, const int64_t *image)
{
  struct sw_ints stride = sw_call_ints(c, "stride"), dilation = sw_call_ints(c, "dilation"), pad = {0};
  const struct sw_arg *padding = sw_call_arg(c, "padding");
  bool named = padding && padding->kind == SW_ARG_STR;
  if (!named)
    pad = sw_call_ints(c, "padding");
  struct window g = {.image = {1, 1, 1}, .taps = {1, 1, 1}, .places = {1, 1, 1}, .stride = {1, 1, 1},
                     .dilation = {1, 1, 1}};
  for (int i = 0; i < dims; i++) {
    int d = 3 - dims + i;
    g.image[d] = modest(c, image[i], 0, "an image of");
    g.taps[d] = modest(c, taps[i], 1, "a kernel of");
    g.stride[d] = modest(c, sw_ints_at(c, stride, i, 1), 1, "stride");
    g.dilation[d] = modest(c, sw_ints_at(c, dilation, i, 1), 1, "dilation");
    g.pad[d] = named ? 0 : modest(c, sw_ints_at(c, pad, i, 0), 0, "padding");
    int64_t span = g.dilation[d] * (g.taps[d] - 1);
    if (named && !strcmp(padding->s, "same")) {
      g.pad[d] = span / 2; /* an odd rest goes behind the image */
      g.places[d] = g.image[d];
      continue;
    }
    int64_t room = g.image[d] + 2 * g.pad[d] - span - 1;
    g.places[d] = room < 0 ? 0 : room / g.stride[d] + 1;
  }
  return g;
}

/* Output size of a transposed convolution, whose windows lie over its output. */
static void transpose_window(struct sw_call *c, struct window *g, int dims)
{
  struct sw_ints extra = sw_call_ints(c, "output_padding");
  for (int i = 0; i < dims; i++) {
    int d = 3 - dims + i;
    g->places[d] = g->image[d];
    g->image[d] = (g->places[d] - 1) * g->stride[d] - 2 * g->pad[d] + g->dilation[d] * (g->taps[d] - 1) +
                  modest(c, sw_ints_at(c, extra, i, 0), 0, "output padding") + 1;
    if (g->image[d] < 0)
      sw_call_stop(c, SW_INVALID, "an output of %lld", (long long)g->image[d]);
  }
}

void sw_op_convolution(struct sw_call *c)
{
  struct sw_tensor x = sw_call_tensor(c, "input"), w = sw_call_tensor(c, "weight");
  bool transposed = c->op->what == 1 || sw_call_bool(c, "transposed");
  int dims = w.rank - 2;
  int64_t groups = sw_call_int(c, "groups");
  bool batched = x.rank == w.rank;
  if (dims < 1 || dims > 3 || (!batched && x.rank != w.rank - 1) || groups < 1)
    sw_call_stop(c, SW_INVALID, "input of rank %d, weight of rank %d, %lld groups", x.rank, w.rank, (long long)groups);
  int64_t batch = batched ? x.size[0] : 1, n_in = x.size[batched];
  int64_t from = transposed ? w.size[0] : w.size[1] * groups, n_out = transposed ? w.size[1] * groups : w.size[0];
  if (n_in != from || n_in % groups || n_out % groups)
    sw_call_stop(c, SW_INVALID, "%lld channels, a weight for %lld, %lld groups", (long long)n_in, (long long)from,
                 (long long)groups);
  struct window g = window_of(c, dims, &w.size[2], &x.size[1 + batched]);
  if (transposed)
    transpose_window(c, &g, dims);

  const int64_t *result = transposed ? g.image : g.places, *source = transposed ? g.places : g.image;
  int64_t size[5] = {batch, n_out};
  for (int i = 0; i < dims; i++)
    size[2 + i] = result[3 - dims + i];
  struct sw_tensor sum = sw_call_new(c, SW_F64, 2 + dims, size);
  int64_t in_group = n_in / groups, out_group = n_out / groups, taps = volume(g.taps), places = volume(g.places);
  double *image = sw_call_get(c, &x), *weight = sw_call_get(c, &w), *turned = NULL;
  int64_t matrix_size[] = {transposed ? out_group : in_group, taps, places};
  double *matrix = sw_call_reals(c, sw_call_product(c, 3, matrix_size));
  if (transposed)
    turned = sw_call_reals(c, in_group * out_group * taps);
  for (int64_t b = 0; b < batch; b++)
    for (int64_t k = 0; k < groups; k++) {
      double *in = image + (b * n_in + k * in_group) * volume(source);
      double *out = sum.cells->real + (b * n_out + k * out_group) * volume(result);
      if (!transposed) {
        patches(&g, in_group, in, matrix, false);
        sw_gemm(out_group, places, in_group * taps, weight + k * out_group * in_group * taps, matrix, out);
        continue;
      }
      int64_t rows = out_group * taps; /* the weight of a group is [in, rows]; it is needed the other way round */
      for (int64_t i = 0; i < in_group; i++)
        for (int64_t r = 0; r < rows; r++)
          turned[r * in_group + i] = weight[(k * in_group + i) * rows + r];
      memset(matrix, 0, (size_t)(rows * places) * sizeof *matrix);
      sw_gemm(rows, places, in_group, turned, in, matrix);
      patches(&g, out_group, out, matrix, true);
    }
  if (!batched)
    sum = sw_tensor_at(&sum, 0, 0);
  if (!sw_call_has(c, "bias")) {
    struct sw_tensor out = sw_call_out(c, 0, sum.rank, sum.size);
    sw_call_copy(c, &out, &sum);
    return;
  }
  struct sw_tensor bias = sw_call_tensor(c, "bias");
  bias = sw_call_reshape(c, &bias, 1 + dims, (int64_t[]){n_out, 1, 1, 1});
  struct sw_tensor one = sw_call_scalar(c, (struct sw_number){.kind = SW_NUMBER_BOOL, .i = 1});
  sw_map(c, 0, SW_K_add, 3, (struct sw_tensor[]){sum, bias, one}, NULL);
}

/* The matrix of patches itself: [batch, channels * taps, places]. */
void sw_op_im2col(struct sw_call *c)
{
  struct sw_tensor x = sw_call_tensor(c, "self");
  bool batched = x.rank == 4;
  if (x.rank != 3 && !batched)
    sw_call_stop(c, SW_INVALID, "an input of rank %d", x.rank);
  struct sw_ints taps = sw_call_ints(c, "kernel_size");
  int64_t kernel[2] = {sw_ints_at(c, taps, 0, 1), sw_ints_at(c, taps, 1, 1)};
  struct window g = window_of(c, 2, kernel, &x.size[1 + batched]);
  int64_t batch = batched ? x.size[0] : 1, channels = x.size[batched], places = volume(g.places);
  int64_t rows = sw_call_product(c, 3, (int64_t[]){channels, g.taps[1], g.taps[2]});
  struct sw_tensor t = sw_call_new(c, SW_F64, 3, (int64_t[]){batch, rows, places});
  double *image = sw_call_get(c, &x);
  for (int64_t b = 0; b < batch; b++)
    patches(&g, channels, image + b * channels * volume(g.image), t.cells->real + b * rows * places, false);
  if (!batched)
    t = sw_tensor_at(&t, 0, 0);
  struct sw_tensor out = sw_call_out(c, 0, t.rank, t.size);
  sw_call_copy(c, &out, &t);
}

/* Patches added up where they lie in the image: the other way round of im2col. */
void sw_op_col2im(struct sw_call *c)
{
  struct sw_tensor x = sw_call_tensor(c, "self");
  bool batched = x.rank == 3;
  if (x.rank != 2 && !batched)
    sw_call_stop(c, SW_INVALID, "columns of rank %d", x.rank);
  struct sw_ints taps = sw_call_ints(c, "kernel_size"), image = sw_call_ints(c, "output_size");
  int64_t kernel[2], size[2];
  for (int i = 0; i < 2; i++) {
    kernel[i] = sw_ints_at(c, taps, i, 1);
    size[i] = sw_ints_at(c, image, i, 1);
  }
  struct window g = window_of(c, 2, kernel, size);
  int64_t batch = batched ? x.size[0] : 1, rows = x.size[batched], places = volume(g.places);
  if (rows % volume(g.taps) || x.size[1 + batched] != places)
    sw_call_stop(c, SW_INVALID, "%lld columns of %lld for %lld windows", (long long)x.size[1 + batched], (long long)rows, (long long)places);
  int64_t channels = rows / volume(g.taps);
  double *v = sw_call_get(c, &x);
  struct sw_tensor t = sw_call_new(c, SW_F64, 4, (int64_t[]){batch, channels, size[0], size[1]});
  for (int64_t b = 0; b < batch; b++)
    patches(&g, channels, t.cells->real + b * channels * volume(g.image), v + b * rows * places, true);
  if (!batched)
    t = sw_tensor_at(&t, 0, 0);
  struct sw_tensor out = sw_call_out(c, 0, t.rank, t.size);
  sw_call_copy(c, &out, &t);
}
