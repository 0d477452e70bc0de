#include "compiler/verify/image.h"

#include <string.h>

int64_t image_bytes(const struct image *im)
{
  int64_t sticks = 1;
  for (int i = 0; i + 1 < im->layout.rank; i++)
    sticks *= im->layout.device_size[i];
  return 128 * sticks;
}

int64_t image_span(const struct image *im)
{
  int64_t n = 1;
  for (int i = 0; i < im->rank; i++) {
    if (!im->size[i])
      return 0;
    n += (im->size[i] - 1) * im->stride[i];
  }
  return n;
}

/* The same host tensor with dims merged that the layout does not tell apart: no device dim steps by their stride, and
 * the next inner dim fills it. A weight [64,3,8,8] on [3,64,64] / [64,192,1] is [64,3,64]. */
static struct image merged(const struct image *im)
{
  struct image out = *im;
  out.rank = 0;
  for (int d = 0; d < im->rank; d++) {
    if (im->size[d] == 1)
      continue;
    out.size[out.rank] = im->size[d];
    out.stride[out.rank++] = im->stride[d];
  }
  for (int d = out.rank - 2; d >= 0; d--) {
    bool is_stepped = false;
    for (int j = 0; j < im->layout.rank; j++)
      is_stepped |= im->layout.device_size[j] > 1 && im->layout.stride_map[j] == out.stride[d];
    if (is_stepped || out.stride[d] != out.size[d + 1] * out.stride[d + 1])
      continue;
    out.size[d] *= out.size[d + 1];
    out.stride[d] = out.stride[d + 1];
    out.rank--;
    for (int k = d + 1; k < out.rank; k++) {
      out.size[k] = out.size[k + 1];
      out.stride[k] = out.stride[k + 1];
    }
  }
  return out;
}

/* Device dim j steps through host dim `dim` by `factor`; dim -1: it has no host counterpart. */
struct match {
  int dim;
  int64_t factor;
};

static int dim_with_stride(const struct image *im, int64_t stride)
{
  for (int d = 0; d < im->rank; d++)
    if (im->size[d] > 1 && im->stride[d] == stride)
      return d;
  return -1;
}

/* A step equal to a host dim's stride is that dim; one of a whole stick is the stick dim's tile count; any other is a
 * part of the dim with the largest stride below. [512,240] on [4,512,64] / [64,240,1]: 240 is dim 0, 64 and 1 are
 * dim 1 by 64 and by 1. */
static bool find_match(const struct image *im, int j, struct match *out)
{
  const struct image_layout *l = &im->layout;
  int64_t step = l->stride_map[j], stick = l->stride_map[l->rank - 1];
  *out = (struct match){-1, 0};
  if (step == -1 && l->device_size[j] == 2 && stick > 0 && l->device_size[l->rank - 1] == 32) {
    *out = (struct match){dim_with_stride(im, stick), 32}; /* the second tile of a pair, see sw_layout_pair_tiles() */
    return true;
  }
  if (step <= 0 || l->device_size[j] == 1)
    return true;
  out->factor = 1;
  out->dim = dim_with_stride(im, step);
  if (out->dim >= 0)
    return true;
  if (stick > 0 && step == stick * l->device_size[l->rank - 1]) {
    out->dim = dim_with_stride(im, stick);
    out->factor = l->device_size[l->rank - 1];
  }
  for (int d = 0; d < im->rank && out->dim < 0; d++) {
    bool best = im->size[d] > 1 && im->stride[d] <= step;
    for (int k = 0; k < im->rank && best; k++)
      best = im->size[k] <= 1 || im->stride[k] > step || im->stride[k] <= im->stride[d];
    if (best) {
      if (step % im->stride[d])
        return false;
      out->dim = d;
      out->factor = step / im->stride[d];
    }
  }
  return out->dim >= 0;
}

/* Logical place of physical place `at` along the stick dim. */
static int64_t logical(const char *arrangement, int64_t at)
{
  int64_t group = at / 64 * 64, lane = at % 64, k = lane / 8, w = lane % 8;
  if (!strcmp(arrangement, "FP32_TO_DL16"))
    return group + (w < 4 ? 4 * k + w : 32 + 4 * k + w - 4);
  if (!strcmp(arrangement, "DL16_TO_FP32")) {
    int64_t half = lane % 32;
    return group + half / 4 * 8 + half % 4 + (lane < 32 ? 0 : 4);
  }
  return at;
}

/* Calls visit for every device element; host -1: a lane without an element. False: the layout can't be read. */
static bool each(const struct image *whole, void (*visit)(void *ctx, int64_t device, int64_t host), void *ctx)
{
  const struct image canonical = merged(whole), *im = &canonical;
  const struct image_layout *l = &im->layout;
  struct match match[16];
  int64_t at[16] = {0}, device = 0;
  int stick_dim = -1;
  for (int j = 0; j < l->rank; j++)
    if (!find_match(im, j, &match[j]))
      return false;
  if (l->stride_map[l->rank - 1] > 0)
    stick_dim = match[l->rank - 1].dim;
  for (;;) {
    int64_t c[SW_MAX_RANK] = {0}, host = 0;
    for (int j = 0; j < l->rank; j++)
      if (match[j].dim >= 0)
        c[match[j].dim] += at[j] * match[j].factor;
      else if (at[j])
        host = -1;
    if (stick_dim >= 0)
      c[stick_dim] = logical(l->arrangement, c[stick_dim]);
    for (int d = 0; d < im->rank && host >= 0; d++)
      host = c[d] < im->size[d] ? host + c[d] * im->stride[d] : -1;
    visit(ctx, device++, host);
    int j = l->rank - 1;
    while (j >= 0 && ++at[j] == l->device_size[j])
      at[j--] = 0;
    if (j < 0)
      return true;
  }
}

struct transfer {
  const struct image *im;
  struct sim_memory *memory;
  const struct image_host *host;
  bool has_fill;
  double fill;
  unsigned char *seen; /* per host element */
  bool bad;
};

static void up(void *ctx, int64_t device, int64_t host)
{
  struct transfer *t = ctx;
  int64_t at = device * sim_format_bytes(t->im->layout.format);
  struct sim_value v = {t->fill, !t->has_fill};
  if (host >= 0) {
    t->bad |= t->seen[host]++ != 0;
    v = (struct sim_value){t->host->v[host], t->host->undefined[host]};
  } else if (!t->has_fill) {
    return;
  }
  t->bad |= sim_store(t->memory, at, t->im->layout.format, 0, v) != SIM_FINE;
}

static void down(void *ctx, int64_t device, int64_t host)
{
  struct transfer *t = ctx;
  struct sim_value v = {0, true};
  if (host < 0)
    return;
  t->bad |= t->seen[host]++ != 0;
  t->bad |= sim_load(t->memory, device * sim_format_bytes(t->im->layout.format), t->im->layout.format, 0, &v) != SIM_FINE;
  t->host->v[host] = v.v;
  t->host->undefined[host] = v.poison;
}

/* Every element of the host tensor was met once. */
static bool complete(const struct image *im, const struct transfer *t)
{
  int64_t met = 0, wanted = 1, span = image_span(im);
  for (int64_t i = 0; i < span; i++)
    met += t->seen[i];
  for (int d = 0; d < im->rank; d++)
    wanted *= im->size[d];
  return !t->bad && met == wanted;
}

bool image_upload(struct sw_arena *a, const struct image *im, const struct image_host *host, bool has_fill, double fill,
                  struct sim_memory *to)
{
  struct transfer t = {im, to, host, has_fill, fill, SW_NEW_N(a, unsigned char, image_span(im)), false};
  return each(im, up, &t) && complete(im, &t);
}

bool image_download(struct sw_arena *a, const struct image *im, struct sim_memory *from, struct image_host *out)
{
  int64_t span = image_span(im);
  *out = (struct image_host){span, SW_NEW_N(a, double, span), SW_NEW_N(a, bool, span)};
  for (int64_t i = 0; i < span; i++)
    out->undefined[i] = true;
  struct transfer t = {im, from, out, false, 0, SW_NEW_N(a, unsigned char, span), false};
  return each(im, down, &t) && complete(im, &t);
}
