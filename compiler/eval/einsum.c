/* einsum as one loop nest. Every label is a loop, output labels outside; each tensor has a stride per label, 0 where it
 * lacks it. "ij,jk->ik" loops over i, k, j: a [2,8] has strides (8,0,1), b [8,4] has (0,1,4), the output (4,1,0). */
#include "compiler/eval/ops.h"

#include <string.h>

struct nest {
  int n, n_out;
  char label[SW_MAX_RANK];
  int64_t size[SW_MAX_RANK];
};

static bool is_label(char x)
{
  return (x >= 'a' && x <= 'z') || (x >= 'A' && x <= 'Z') || (x >= '0' && x <= '9');
}

static int loop_of(struct sw_call *c, struct nest *l, char label)
{
  for (int i = 0; i < l->n; i++)
    if (l->label[i] == label)
      return i;
  if (l->n == SW_MAX_RANK)
    sw_call_stop(c, SW_UNSUPPORTED, "more than %d labels", SW_MAX_RANK);
  l->label[l->n] = label;
  l->size[l->n] = 1;
  return l->n++;
}

/* "..." spelled out as labels 0 to 9: of two dims it is "89", of one "9", so that they broadcast from the last. The
 * output, the term behind the arrow, has those of the largest. */
static const char *without_dots(struct sw_call *c, const char *equation, const struct sw_tensor *ts, int n)
{
  struct sw_buf b = {.arena = c->scratch};
  int most = 0, k = 0;
  for (const char *p = equation; *p;) {
    size_t len = strcspn(p, ",-"), named = 0;
    for (size_t i = 0; i < len; i++)
      named += is_label(p[i]);
    int dots = k < n ? ts[k].rank - (int)named : most;
    k++;
    for (size_t i = 0; i < len; i++) {
      if (strncmp(p + i, "...", 3)) {
        sw_buf_add(&b, p + i, 1);
        continue;
      }
      if (dots < 0 || dots > 10)
        sw_call_stop(c, SW_INVALID, "\"%s\" does not fit its tensors", equation);
      most = dots > most ? dots : most;
      for (int d = 10 - dots; d < 10; d++)
        sw_buf_printf(&b, "%d", d);
      i += 2;
    }
    p += len;
    size_t between = strspn(p, ",->");
    sw_buf_add(&b, p, between);
    p += between;
  }
  return sw_buf_text(&b);
}

/* Loops of the output: those behind the arrow; without one the labels that occur once, "..." first. */
static void output_loops(struct sw_call *c, struct nest *l, const char *equation)
{
  const char *arrow = strstr(equation, "->");
  for (const char *p = arrow ? arrow + 2 : ""; *p; p++)
    if (is_label(*p))
      loop_of(c, l, *p);
  for (char x = '0'; !arrow && x <= 'z'; x++) {
    const char *at = is_label(x) ? strchr(equation, x) : NULL;
    if (at && (x <= '9' || !strchr(at + 1, x)))
      loop_of(c, l, x);
  }
  l->n_out = l->n;
}

/* A tensor of reals in the nest, its labels read from *p up to the next comma. */
static struct sw_tensor place(struct sw_call *c, struct nest *l, const struct sw_tensor *given, const char **p)
{
  struct sw_tensor t = sw_call_new(c, SW_F64, given->rank, given->size), in_nest = t;
  sw_call_copy(c, &t, given);
  memset(in_nest.stride, 0, sizeof in_nest.stride);
  int d = 0;
  for (; **p && **p != ',' && **p != '-'; ++*p) {
    if (!is_label(**p))
      continue;
    int i = loop_of(c, l, **p);
    if (d >= t.rank || (l->size[i] != 1 && t.size[d] != 1 && t.size[d] != l->size[i]))
      sw_call_stop(c, SW_INVALID, "label %c does not fit the size of its tensor", **p);
    l->size[i] = l->size[i] == 1 ? t.size[d] : l->size[i];
    in_nest.stride[i] += t.size[d] == 1 ? 0 : t.stride[d];
    d++;
  }
  if (d != t.rank)
    sw_call_stop(c, SW_INVALID, "%d labels for a tensor of rank %d", d, t.rank);
  return in_nest;
}

void sw_op_einsum(struct sw_call *c)
{
  int n;
  const struct sw_tensor *given = sw_call_tensors(c, "tensors", &n);
  if (n >= SW_WALK_MAX)
    sw_call_stop(c, SW_UNSUPPORTED, "%d tensors", n);
  const char *p = without_dots(c, sw_call_text(c, "equation", ""), given, n);
  struct nest l = {0};
  output_loops(c, &l, p);
  struct sw_tensor ts[SW_WALK_MAX];
  const struct sw_tensor *all[SW_WALK_MAX];
  for (int k = 1; k <= n; k++, p += *p == ',') {
    if (!given[k - 1].cells)
      sw_call_stop(c, SW_INVALID, "tensor %d is None", k - 1);
    ts[k] = place(c, &l, &given[k - 1], &p);
  }
  struct sw_tensor sum = sw_call_new(c, SW_F64, l.n_out, l.size);
  ts[0] = sum;
  memset(ts[0].stride + l.n_out, 0, sizeof ts[0].stride[0] * (size_t)(SW_MAX_RANK - l.n_out));
  for (int k = 0; k <= n; k++) {
    ts[k].rank = l.n;
    memcpy(ts[k].size, l.size, sizeof l.size);
    all[k] = &ts[k];
  }
  struct sw_walk w;
  for (sw_walk(&w, n + 1, all); w.more; sw_walk_on(&w))
    for (int64_t i = 0; i < w.n; i++) {
      double x = 1;
      for (int k = 1; k <= n; k++)
        x *= ts[k].cells->real[w.at[k] + i * w.step[k]];
      sum.cells->real[w.at[0] + i * w.step[0]] += x;
    }
  struct sw_tensor out = sw_call_out(c, 0, sum.rank, sum.size);
  sw_call_copy(c, &out, &sum);
}
