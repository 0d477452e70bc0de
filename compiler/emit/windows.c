#include "compiler/emit/superdsc.h"

/* Sliding windows of pools and convolutions along i and j (superdsc.md 9.3). A window of `kernel` taps that advances
 * by `stride` covers (size - 1) * stride + kernel rows: 8 rows, stride 1, kernel 3 are 10. */

const struct sw_window *sw_sdsc_window(const struct sw_sdsc *s, enum sw_label spatial)
{
  for (int i = 0; i < s->n_windows; i++)
    if (s->window[i].spatial == spatial)
      return &s->window[i];
  return NULL;
}

bool sw_sdsc_prints(const struct sw_sdsc *s, const struct sw_sdsc_layout *l, enum sw_label d)
{
  if (s->is.dw || l->name[0] == 'K')
    return true;
  for (int i = 0; i < s->n_windows; i++)
    if (s->window[i].window == d)
      return false;
  return true;
}

/* Rows that no output needs are taken from the padding behind first, then from the valid rows, then from the padding
 * in front. */
static struct sw_window_pads depthwise_pads(int64_t pad, int64_t total, int64_t out, int64_t stride, int64_t kernel)
{
  struct sw_window_pads w = {.front = pad, .back = pad, .total = total};
  int64_t left = total - ((out - 1) * stride + kernel), valid = total - 2 * pad;
  w.unneeded = left;
  w.unneeded_back = left < pad ? left : pad;
  left -= w.unneeded_back;
  left -= left < valid ? left : valid;
  w.unneeded_front = left < pad ? left : pad;
  return w;
}

enum sw_rc sw_sdsc_windows(struct sw_job *job, struct sw_sdsc *s)
{
  static const struct {
    enum sw_label spatial, window;
    const char *kernel, *stride, *pad, *dw_stride, *dw_pad, *dw_total;
  } axes[] = {
      {SW_LABEL_I, SW_LABEL_KI, "kernel_h", "stride_h", "pad_h", "stride_i", "pad_i", "total_size_i"},
      {SW_LABEL_J, SW_LABEL_KJ, "kernel_w", "stride_w", "pad_w", "stride_j", "pad_j", "total_size_j"},
  };
  const struct sw_spec *p = s->spec;
  if ((!s->is.pool && !s->is.conv) || (s->is.dw && !p->conv.n))
    return SW_OK;
  const struct sw_named_number *v = s->is.pool ? p->constants.v : p->conv.v;
  int n = s->is.pool ? p->constants.n : p->conv.n;
  for (int i = 0; i < 2; i++) {
    if (!sw_labels_has(&s->dims, axes[i].window) || !sw_labels_has(&s->dims, axes[i].spatial))
      continue;
    struct sw_window *w = &s->window[s->n_windows++];
    w->spatial = axes[i].spatial;
    w->window = axes[i].window;
    w->kernel = sw_named_int(v, n, axes[i].kernel, 0);
    w->stride = sw_named_int(v, n, s->is.dw ? axes[i].dw_stride : axes[i].stride, 0);
    int64_t pad = sw_named_int(v, n, s->is.dw ? axes[i].dw_pad : axes[i].pad, 0);
    int64_t total = sw_named_int(v, n, axes[i].dw_total, 0), size = s->size[w->spatial];
    if (w->kernel < 1 || w->stride < 1 || pad < 0 || (s->is.dw && total < w->kernel)) {
      sw_sdsc_fault(job, s, SW_INVALID, -1, "kernel and stride must be at least 1, the window inside the image");
      return SW_INVALID;
    }
    if (!s->is.dw) {
      w->whole = (struct sw_window_pads){.front = pad, .back = pad, .total = (size - 1) * w->stride + w->kernel};
      w->core = w->whole;
      continue;
    }
    int64_t split = s->split[w->spatial], out = size / split;
    w->whole = depthwise_pads(pad, total, (total - w->kernel) / w->stride + 1, w->stride, w->kernel);
    w->core = depthwise_pads(pad, split == 1 ? total : out * w->stride + w->kernel - 1, out, w->stride, w->kernel);
  }
  return SW_OK;
}
