#include "compiler/layout/layout.h"

#include <string.h>

static const struct {
  const char *name;
  int eps;
} formats[] = {
#define X(id, name, eps) {name, eps},
    SW_FORMATS(X)
#undef X
};

static const char *const arrangements[] = {
#define X(id) #id,
    SW_ARRANGEMENTS(X)
#undef X
};

const char *sw_format_name(enum sw_format f)
{
  return formats[f].name;
}

int sw_format_eps(enum sw_format f)
{
  return formats[f].eps;
}

const char *sw_arrangement_name(enum sw_arrangement a)
{
  return arrangements[a];
}

/* Reference: layouts.md section 2. A bool that an op computes carries its operands' format instead. */
enum sw_format sw_format_of(enum sw_dtype t)
{
  switch (t) {
  case SW_F16:
  case SW_BF16:
  case SW_BOOL:
    return SW_FORMAT_FP16;
  case SW_F32:
    return SW_FORMAT_FP32;
  case SW_I32:
  case SW_I64:
    return SW_FORMAT_INT32;
  case SW_F8E4M3:
    return SW_FORMAT_FP8;
  case SW_F8E5M2Z:
    return SW_FORMAT_FP8B;
  case SW_I8:
    return SW_FORMAT_INT8;
  case SW_I16:
    return SW_FORMAT_INT16;
  case SW_U8:
    return SW_FORMAT_UINT32;
  default:
    return SW_N_FORMATS;
  }
}

bool sw_layout_equal(const struct sw_layout *a, const struct sw_layout *b)
{
  size_t n = (size_t)a->rank * sizeof a->device_size[0];
  return a->rank == b->rank && a->format == b->format && a->arrangement == b->arrangement &&
         !memcmp(a->device_size, b->device_size, n) && !memcmp(a->stride_map, b->stride_map, n);
}

int64_t sw_layout_elements(const struct sw_layout *l)
{
  int64_t n = 1;
  for (int j = 0; j < l->rank; j++)
    n *= l->device_size[j];
  return n;
}

int64_t sw_layout_bytes(const struct sw_layout *l)
{
  int64_t sticks = 1;
  for (int j = 0; j < l->rank - 1; j++)
    sticks *= l->device_size[j];
  return 128 * sticks;
}

const char *sw_layout_text(struct sw_arena *a, const struct sw_layout *l)
{
  struct sw_buf b = {.arena = a};
  for (int j = 0; j < l->rank; j++)
    sw_buf_printf(&b, "%s%lld", j ? "," : "device_size:", (long long)l->device_size[j]);
  for (int j = 0; j < l->rank; j++)
    sw_buf_printf(&b, "%s%lld", j ? "," : "/stride_map:", (long long)l->stride_map[j]);
  return sw_buf_text(&b);
}

/* Whether elements and bytes of the layout can be counted in 63 bits. */
static bool countable(const struct sw_layout *l)
{
  int64_t n = 128;
  for (int j = 0; j < l->rank; j++)
    if (l->device_size[j] <= 0 || __builtin_mul_overflow(n, l->device_size[j], &n))
      return false;
  return true;
}

/* The dims in `order` from outer to inner, the last one being the stick: the first moves to just before the stick, and
 * the stick dim stands twice, as its count of tiles in front of the moved one and as the lanes at the end. Order
 * o0 o1 o2 gives device dims o1, o2 (tiles), o0, o2 (lanes): [5,100,150] is [100,3,5,64]. A one-dim order gives
 * tiles, lanes. Strides are found from the lanes outward: the first device dim of a host dim steps by the host stride,
 * the next by what the first covers. */
bool sw_layout_make(struct sw_layout *out, enum sw_format f, enum sw_arrangement ea, int n, const int64_t *size,
                    const int64_t *stride, const int *order, int n_order)
{
  int eps = sw_format_eps(f), host[SW_MAX_DEVICE_RANK];
  *out = (struct sw_layout){.format = f, .arrangement = ea};
  if (n == 0) {
    out->rank = 2;
    out->device_size[0] = 1;
    out->device_size[1] = eps;
    out->stride_map[0] = out->stride_map[1] = -1;
    return true;
  }
  int stick = order[n_order - 1];
  if (n_order > 7 || (n_order == 7 && stick >= 0))
    return false;
  out->rank = n_order + 1;
  for (int j = 1; j < n_order; j++)
    host[j - 1] = order[j];
  host[n_order - 1] = order[0];
  host[n_order] = stick;

  int64_t covered[SW_MAX_RANK] = {0};
  for (int j = n_order; j >= 0; j--) {
    int d = host[j];
    if (j == n_order)
      out->device_size[j] = eps;
    else if (d == stick)
      out->device_size[j] = d < 0 ? 1 : (size[d] - 1) / eps + 1;
    else
      out->device_size[j] = size[d];
    out->stride_map[j] = d < 0 || size[d] == 1 ? -1 : covered[d] ? covered[d] : stride[d];
    if (out->stride_map[j] > 0 && __builtin_mul_overflow(out->stride_map[j], out->device_size[j], &covered[d]))
      return false;
  }
  return countable(out);
}

/* One tile is a dim of one element with a step, which only tiles are; of more tiles the step alone names them. */
bool sw_layout_pair_tiles(struct sw_layout *l, int64_t stride, int64_t size)
{
  bool one_lane = l->stride_map[l->rank - 1] == -1;
  if (l->format != SW_FORMAT_FP32)
    return false;
  if (sw_layout_half_pair(l) >= 0)
    return true;
  for (int j = 0; j < l->rank - 1 && one_lane; j++)
    if (l->device_size[j] == 1 && l->stride_map[j] == -1) { /* a fixed place goes outermost: no dim counts it */
      memmove(l->device_size + 1, l->device_size, (size_t)j * sizeof l->device_size[0]);
      memmove(l->stride_map + 1, l->stride_map, (size_t)j * sizeof l->stride_map[0]);
      l->device_size[0] = 2;
      l->stride_map[0] = -1;
      return true;
    }
  if (one_lane || l->stride_map[l->rank - 1] != stride || size < 2)
    return false;
  int64_t tiles = (size - 1) / 32 + 1;
  for (int j = 0; j < l->rank - 1; j++) {
    bool paired = tiles > 1 && l->device_size[j] == tiles + tiles % 2;
    if (l->stride_map[j] != stride * 32 || (l->device_size[j] != tiles && !paired))
      continue;
    l->device_size[j] = tiles + tiles % 2;
    l->stride_map[j] = tiles == 1 ? -1 : stride * 32;
    return true;
  }
  return false;
}

int sw_layout_half_pair(const struct sw_layout *l)
{
  for (int j = 0; j < l->rank - 1; j++)
    if (l->format == SW_FORMAT_FP32 && l->stride_map[j] == -1 && l->device_size[j] == 2)
      return j;
  return -1;
}

void sw_layout_json(struct sw_jw *w, const struct sw_layout *l)
{
  if (!l) {
    sw_jw_null(w);
    return;
  }
  sw_jw_object(w);
  sw_jw_kints(w, "device_size", l->device_size, l->rank);
  sw_jw_kints(w, "stride_map", l->stride_map, l->rank);
  sw_jw_kstr(w, "element_arrangement", sw_arrangement_name(l->arrangement));
  sw_jw_kstr(w, "format", sw_format_name(l->format));
  sw_jw_end_object(w);
}
