/* What size convolutions and poolings give. [8] with a window of 3, padding 1 and step 2 gives floor((8 + 2 - 3) / 2) + 1 = 4;
 * rounded up 5, since the fifth window still begins inside. */
#include "compiler/graph/infer.h"

#include <string.h>

enum { MOST_DIMS = 3 };
static const int64_t most = INT32_MAX; /* of a window's numbers: beyond it no sum of ours is safe */

struct window {
  int n; /* dims */
  int64_t kernel[MOST_DIMS], stride[MOST_DIMS], padding[MOST_DIMS], dilation[MOST_DIMS], more[MOST_DIMS];
  bool reaches_over; /* "same": padded by what the window reaches over, in front and behind together */
};

/* A number for each dim; one number counts for all, no argument and an empty list are `normal`. False: not plain numbers. */
static bool numbers(const struct sw_infer *c, const char *name, int n, const int64_t *normal, int64_t *out)
{
  int64_t given[SW_MAX_RANK];
  int count = sw_infer__integers(c, name, given);
  if (count < 0 && sw_infer__integer(c, name, given))
    count = 1;
  if (count < 0 && sw_node_arg(c->n, name))
    return false;
  for (int d = 0; d < n; d++)
    out[d] = count <= 0 ? normal[d] : given[count == 1 ? 0 : d < count ? d : count - 1];
  return true;
}

static bool in_range(const struct window *w)
{
  for (int d = 0; d < w->n; d++) {
    const int64_t least_one[] = {w->kernel[d], w->stride[d], w->dilation[d]}, none[] = {w->padding[d], w->more[d]};
    for (int i = 0; i < 3; i++)
      if (least_one[i] < 1 || least_one[i] > most)
        return false;
    if (none[0] < 0 || none[0] > most || none[1] < 0 || none[1] > most)
      return false;
  }
  return true;
}

/* The first dims of x, channels replaced if `channels` is not negative, and as many windows as there are in each of the last. */
static bool count_windows(struct sw_infer *c, const struct window *w, int64_t channels, bool transposed, bool up)
{
  const struct sw_value *x = sw_infer__self(c);
  int first = x->rank - w->n;
  if (first < 1 || first > 2)
    return sw_infer__wrong(c, "the input has another number of dims");
  if (!in_range(w))
    return sw_infer__wrong(c, "a number of its windows is out of range");
  sw_infer__copy_shape(c->out, x);
  if (channels >= 0)
    c->out->size[first - 1] = channels;
  for (int d = 0; d < w->n; d++) {
    int64_t size = x->size[first + d], reach = w->dilation[d] * (w->kernel[d] - 1), count;
    if (size > INT64_MAX / 4)
      return sw_infer__wrong(c, "sizes are too large");
    if (transposed) {
      count = sw_infer__plus(sw_infer__times(size - 1, w->stride[d]), reach + w->more[d] + 1 - 2 * w->padding[d]);
    } else {
      int64_t room = size + (w->reaches_over ? reach : 2 * w->padding[d]) - reach - 1;
      count = room < 0 ? 0 : (room + (up ? w->stride[d] - 1 : 0)) / w->stride[d] + 1;
      if (up && (count - 1) * w->stride[d] >= size + w->padding[d])
        count--;
    }
    if (count < 1)
      return sw_infer__wrong(c, "its window is larger than the input");
    c->out->size[first + d] = count;
  }
  return true;
}

bool sw_infer__convolution(struct sw_infer *c)
{
  static const int64_t one[] = {1, 1, 1}, zero[] = {0, 0, 0};
  const struct sw_value *x = sw_infer__self(c), *weight = sw_infer__tensor(c, "weight");
  int64_t groups = 1, transposed = strstr(c->n->target, "conv_transpose") != NULL;
  if (!weight || !sw_infer__integer(c, "groups", &groups) ||
      (sw_node_arg(c->n, "transposed") && !sw_infer__integer(c, "transposed", &transposed)))
    return SW_INFER_UNKNOWN;
  struct window w = {.n = weight->rank - 2};
  if (w.n < 1 || w.n > MOST_DIMS || x->rank < w.n + 1)
    return sw_infer__wrong(c, "the weight has another number of dims");
  const struct sw_arg *padding = sw_node_arg(c->n, "padding");
  bool in_words = padding && padding->kind == SW_ARG_STR;
  w.reaches_over = in_words && !strcmp(padding->s, "same");
  if (!numbers(c, "stride", w.n, one, w.stride) || (!in_words && !numbers(c, "padding", w.n, zero, w.padding)) ||
      !numbers(c, "dilation", w.n, one, w.dilation) || !numbers(c, "output_padding", w.n, zero, w.more))
    return SW_INFER_UNKNOWN;
  memcpy(w.kernel, weight->size + 2, (size_t)w.n * sizeof *w.kernel);
  int64_t in = x->size[x->rank - w.n - 1], of_group = weight->size[1];
  if (groups < 1 || groups > most || of_group > most || weight->size[0] % groups)
    return sw_infer__wrong(c, "its groups don't divide the weight");
  if (in != (transposed ? weight->size[0] : of_group * groups))
    return sw_infer__wrong(c, "input and weight have different numbers of channels");
  return count_windows(c, &w, transposed ? of_group * groups : weight->size[0], transposed, false);
}

bool sw_infer__pool(struct sw_infer *c)
{
  static const int64_t one[] = {1, 1, 1}, zero[] = {0, 0, 0};
  const char *dims = strstr(c->n->target, "pool");
  struct window w = {.n = dims[4] - '0'};
  int64_t up = 0;
  if (w.n < 1 || w.n > MOST_DIMS || !numbers(c, "kernel_size", w.n, one, w.kernel) || !numbers(c, "stride", w.n, w.kernel, w.stride) ||
      !numbers(c, "padding", w.n, zero, w.padding) || !numbers(c, "dilation", w.n, one, w.dilation) ||
      (sw_node_arg(c->n, "ceil_mode") && !sw_infer__integer(c, "ceil_mode", &up)))
    return SW_INFER_UNKNOWN;
  for (int d = 0; d < w.n; d++)
    if (w.padding[d] > w.kernel[d] / 2)
      return sw_infer__wrong(c, "its padding is more than half of the window");
  return count_windows(c, &w, -1, false, up);
}
