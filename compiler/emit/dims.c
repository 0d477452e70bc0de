#include "compiler/emit/superdsc.h"

#include "base/number.h"

#include <string.h>

/* Labels for the symbols of the iteration space, and the dims that no symbol stands for (superdsc.md section 4).
 *
 * Worked number: max over the columns of [64,100] has c0: 64, c1: 100; two symbols of an ordinary op get mb, out; the
 * reference tensor is the input, device size [2,64,64], whose coordinates (floor(c1/64), c0, Mod(c1,64)) read from the
 * last but one outwards give the order mb, out with stick out. */

const char *sw_label_name(enum sw_label d)
{
  static const char *const names[] = {
#define X(id, name) name,
      SW_LABELS(X)
#undef X
  };
  return names[d];
}

int sw_labels_find(const struct sw_labels *l, enum sw_label d)
{
  for (int i = 0; i < l->n; i++)
    if (l->v[i] == d)
      return i;
  return -1;
}

bool sw_labels_has(const struct sw_labels *l, enum sw_label d)
{
  return sw_labels_find(l, d) >= 0;
}

void sw_labels_add(struct sw_labels *l, enum sw_label d)
{
  if (d != SW_NO_LABEL && !sw_labels_has(l, d))
    l->v[l->n++] = d;
}

void sw_labels_add_first(struct sw_labels *l, enum sw_label d)
{
  if (sw_labels_has(l, d))
    return;
  memmove(l->v + 1, l->v, (size_t)l->n * sizeof *l->v);
  l->v[0] = d;
  l->n++;
}

int64_t sw_named_int(const struct sw_named_number *v, int n, const char *name, int64_t def)
{
  for (int i = 0; i < n; i++)
    if (!strcmp(v[i].name, name))
      return sw_whole_of_real(v[i].value);
  return def;
}

struct sw_fault *sw_sdsc_fault(struct sw_job *job, const struct sw_sdsc *s, enum sw_rc rc, int tensor,
                               const char *detail)
{
  const struct sw_spec *p = s->spec;
  const char *name = tensor < 0 ? NULL : p->args.v[tensor].storage;
  if (tensor >= 0 && !name)
    name = sw_arena_printf(job->arena, "tensor %d", tensor);
  const char *op = p->origin ? sw_arena_printf(job->arena, "%s of %s", p->op, p->origin)
                             : sw_arena_printf(job->arena, "sdsc_%d (%s)", s->number, p->op);
  struct sw_fault *f = sw_fault(job, rc, "%s: %s%s%s", op, name ? name : "", name ? ": " : "", detail);
  f->node = p->origin ? p->origin : p->op;
  f->tensor = name;
  f->source = p->source;
  return f;
}

/* The label pool of ordinary ops, also of injected dims. */
static const enum sw_label free_labels[] = {SW_LABEL_MB, SW_LABEL_X, SW_LABEL_Y, SW_LABEL_I,
                                            SW_LABEL_J,  SW_LABEL_KI, SW_LABEL_KJ};
enum { N_FREE_LABELS = sizeof free_labels / sizeof *free_labels };

static bool has_symbol(const struct sw_spec_coord *c)
{
  return c->form == SW_COORD_SYMBOL || c->form == SW_COORD_FLOOR || c->form == SW_COORD_MOD;
}

static int stick_symbol(const struct sw_spec_arg *a)
{
  const struct sw_spec_coord *c = &a->coord[a->rank - 1];
  return has_symbol(c) ? c->symbol : -1;
}

enum sw_label sw_sdsc_label_of(const struct sw_sdsc *s, int symbol)
{
  return symbol < 0 ? SW_NO_LABEL : s->label[symbol];
}

/* -- symbol to label (4.1) -- */

static bool take_last(struct sw_sdsc *s, const enum sw_label *labels, int n_labels)
{
  int n = s->spec->space.n;
  for (int i = 0; i < n && n <= n_labels; i++)
    s->label[i] = labels[n_labels - n + i];
  return n <= n_labels;
}

static bool label_ordinary(struct sw_sdsc *s)
{
  int n = s->spec->space.n;
  for (int i = 0; i < n && n - 1 <= N_FREE_LABELS; i++)
    s->label[i] = i < n - 1 ? free_labels[i] : SW_LABEL_OUT;
  return n - 1 <= N_FREE_LABELS;
}

static bool label_pool(struct sw_sdsc *s)
{
  static const enum sw_label roles[] = {SW_LABEL_MB,  SW_LABEL_I,  SW_LABEL_J,
                                        SW_LABEL_OUT, SW_LABEL_KI, SW_LABEL_KJ};
  static const int range_of[] = {0, 2, 3, 1};
  const struct sw_spec *p = s->spec;
  int n = 0;
  for (int i = 0; i < 6; i++) {
    if (i < 4 && p->n_node_output_ranges == 4 && p->node_output_ranges[range_of[i]] == 1)
      continue;
    if (n < p->space.n)
      s->label[n] = roles[i];
    n++;
  }
  return n == p->space.n;
}

static bool label_depthwise(struct sw_sdsc *s)
{
  static const enum sw_label roles[] = {SW_LABEL_MB, SW_LABEL_OUT, SW_LABEL_I, SW_LABEL_J, SW_LABEL_KI, SW_LABEL_KJ};
  const struct sw_spec *p = s->spec;
  int n = p->space.n;
  if (!p->conv.n || p->n_node_output_ranges != 4)
    return take_last(s, roles, 6);
  const int64_t *r = p->node_output_ranges;
  const int64_t extent[] = {r[0],
                            r[1],
                            r[2],
                            r[3],
                            SW_NAMED_INT(p->conv, "kernel_h", 1),
                            SW_NAMED_INT(p->conv, "kernel_w", 1)};
  struct sw_labels left = {0};
  for (int i = 0; i < 6; i++)
    sw_labels_add(&left, roles[i]);
  for (int i = 5; i >= 0 && left.n > n; i--)
    if (extent[i] == 1) {
      int at = sw_labels_find(&left, roles[i]);
      memmove(left.v + at, left.v + at + 1, (size_t)(left.n - at - 1) * sizeof *left.v);
      left.n--;
    }
  if (left.n != n)
    return false;
  int n_units = 0;
  for (int i = 0; i < n; i++)
    n_units += p->space.v[i].range == 1;
  bool spatial = sw_labels_has(&left, SW_LABEL_I) && sw_labels_has(&left, SW_LABEL_J) &&
                 sw_labels_has(&left, SW_LABEL_KI) && sw_labels_has(&left, SW_LABEL_KJ);
  if (!spatial || r[2] != 1 || n_units != 2) {
    memcpy(s->label, left.v, (size_t)n * sizeof *left.v);
    return true;
  }
  enum sw_label unit = SW_LABEL_I;
  for (int i = 0, at = 0; i < n; i++) {
    if (p->space.v[i].range == 1) {
      s->label[i] = unit;
      unit = SW_LABEL_J;
      continue;
    }
    while (left.v[at] == SW_LABEL_I || left.v[at] == SW_LABEL_J)
      at++;
    s->label[i] = left.v[at++];
  }
  return true;
}

/* Forward convolution: the roles follow from which tensors have a symbol (4.2). */
static bool label_conv(struct sw_sdsc *s)
{
  static const enum sw_label fallback[] = {SW_LABEL_MB, SW_LABEL_I,  SW_LABEL_J, SW_LABEL_OUT,
                                           SW_LABEL_IN, SW_LABEL_KI, SW_LABEL_KJ};
  const struct sw_spec *p = s->spec;
  const struct sw_spec_arg *out = &p->args.v[p->args.n - 1];
  int out_stick = stick_symbol(out), weight = -1;
  for (int i = 0; i < p->args.n - 1; i++)
    if (stick_symbol(&p->args.v[i]) == out_stick)
      weight = i;
  if (p->args.n != 3 || weight < 0 || out_stick < 0)
    return take_last(s, fallback, 7);
  const struct sw_spec_arg *w = &p->args.v[weight], *x = &p->args.v[1 - weight];
  int in_stick = stick_symbol(x);
  for (int i = 0; i < p->space.n; i++)
    s->label[i] = SW_NO_LABEL;
  if (in_stick < 0 || in_stick == out_stick)
    return take_last(s, fallback, 7);
  s->label[out_stick] = SW_LABEL_OUT;
  s->label[in_stick] = SW_LABEL_IN;
  static const enum sw_label outer[] = {SW_LABEL_I, SW_LABEL_J, SW_LABEL_MB};
  int n = 0;
  for (int j = 0; j < out->rank - 1; j++) {
    int symbol = has_symbol(&out->coord[j]) ? out->coord[j].symbol : -1;
    if (symbol < 0 || s->label[symbol] != SW_NO_LABEL)
      continue;
    if (n == 3)
      return take_last(s, fallback, 7);
    s->label[symbol] = outer[n++];
  }
  for (int j = 0; j < w->rank - 1; j++) {
    int tap = has_symbol(&w->coord[j]) ? w->coord[j].symbol : -1, at = -1;
    if (tap < 0 || s->label[tap] != SW_NO_LABEL)
      continue;
    for (int k = 0; k < x->rank; k++)
      if (has_symbol(&x->coord[k]) && x->coord[k].symbol == tap)
        at = k;
    for (; at >= 0 && s->label[tap] == SW_NO_LABEL; at--) {
      enum sw_label near = has_symbol(&x->coord[at]) ? s->label[x->coord[at].symbol] : SW_NO_LABEL;
      if (near == SW_LABEL_I || near == SW_LABEL_J)
        s->label[tap] = near == SW_LABEL_I ? SW_LABEL_KI : SW_LABEL_KJ;
    }
  }
  for (int i = 0; i < p->space.n; i++)
    if (s->label[i] == SW_NO_LABEL)
      return take_last(s, fallback, 7);
  return true;
}

static bool label_symbols(struct sw_sdsc *s)
{
  static const enum sw_label mat[] = {SW_LABEL_KI, SW_LABEL_KJ,  SW_LABEL_Y, SW_LABEL_X,
                                      SW_LABEL_MB, SW_LABEL_OUT, SW_LABEL_IN};
  if (s->is.mat)
    return take_last(s, mat, 7);
  if (s->is.pool)
    return label_pool(s);
  if (s->is.dw)
    return label_depthwise(s);
  return s->is.fwd ? label_conv(s) : label_ordinary(s);
}

/* -- orders (4.4) -- */

void sw_sdsc_index_dims(const struct sw_sdsc *s, int index, struct sw_labels *out)
{
  const struct sw_spec_arg *a = &s->spec->args.v[index];
  *out = (struct sw_labels){0};
  for (int j = a->rank - 2; j >= 0; j--)
    if (has_symbol(&a->coord[j]))
      sw_labels_add(out, s->label[a->coord[j].symbol]);
}

/* The label of a unit loop i or j that the weight of a depthwise convolution does not have. */
static bool weight_lacks(const struct sw_sdsc *s, int tensor, enum sw_label d)
{
  return s->is.dw && tensor == 1 && (d == SW_LABEL_I || d == SW_LABEL_J) && s->size[d] == 1;
}

void sw_sdsc_order(const struct sw_sdsc *s, int tensor, bool plain, struct sw_labels *order, enum sw_label *stick)
{
  const struct sw_spec_arg *a = &s->spec->args.v[tensor];
  *order = (struct sw_labels){0};
  *stick = sw_sdsc_label_of(s, stick_symbol(a));
  for (int j = a->rank - 2; j >= 0; j--) {
    const struct sw_spec_coord *c = &a->coord[j];
    if (c->form == SW_COORD_INDIRECT) {
      struct sw_labels dims = {0};
      if (!plain)
        sw_sdsc_index_dims(s, s->tensor[tensor].related, &dims);
      for (int i = 0; i < dims.n; i++)
        sw_labels_add(order, dims.v[i]);
    } else if (c->form == SW_COORD_CONST) {
      sw_labels_add(order, *stick); /* a placeholder of size 1 is taken as the outer stick dim */
    } else if (!weight_lacks(s, tensor, s->label[c->symbol])) {
      sw_labels_add(order, s->label[c->symbol]);
    }
  }
  if (s->is.dw && tensor == 1 && !plain) {
    sw_labels_add_first(order, SW_LABEL_KI);
    sw_labels_add_first(order, SW_LABEL_KJ);
  }
}

/* -- injected dims (4.6) -- */

static void add_dim(struct sw_sdsc *s, enum sw_label d, int64_t size, bool first)
{
  if (sw_labels_has(&s->dims, d))
    return;
  if (first)
    sw_labels_add_first(&s->dims, d);
  else
    sw_labels_add(&s->dims, d);
  s->size[d] = size;
  s->split[d] = 1;
}

static enum sw_label first_free(const struct sw_labels *a, const struct sw_labels *b)
{
  for (int i = 0; i < N_FREE_LABELS; i++)
    if (!sw_labels_has(a, free_labels[i]) && !sw_labels_has(b, free_labels[i]))
      return free_labels[i];
  return SW_NO_LABEL;
}

static void inject_for_indices(struct sw_sdsc *s)
{
  for (int i = 0; i < s->n_tensors; i++) {
    if (!s->tensor[i].is_index || s->single != SW_NO_LABEL)
      continue;
    struct sw_labels order;
    enum sw_label stick;
    sw_sdsc_order(s, i, true, &order, &stick);
    if (order.n)
      continue;
    s->single = first_free(&s->ref_order, &s->ref_order);
    add_dim(s, s->single, 1, false);
    sw_labels_add_first(&s->ref_order, s->single);
  }
  for (int i = 0; i < s->n_tensors; i++) {
    if (!s->tensor[i].is_index)
      continue;
    struct sw_labels order;
    enum sw_label stick;
    sw_sdsc_order(s, i, true, &order, &stick);
    if (!order.n || stick != SW_NO_LABEL)
      continue;
    enum sw_label p = s->tensor[i].placeholder = first_free(&s->ref_order, &order);
    add_dim(s, p, 1, false);
    sw_labels_add(&s->ref_order, p);
  }
}

static bool inject_for_sparse(struct sw_sdsc *s)
{
  const struct sw_spec *p = s->spec;
  if (s->is.pool || s->is.dw) {
    if (p->n_node_output_ranges != 4)
      return false;
    add_dim(s, SW_LABEL_OUT, p->node_output_ranges[1], s->is.dw);
    return true;
  }
  if (p->space.n >= N_FREE_LABELS)
    return false;
  add_dim(s, free_labels[p->space.n], sw_format_eps(p->args.v[0].format), false);
  return true;
}

/* The reduced dim of a matmul counts whole sticks of the second operand (4.6f). */
static void round_up_reduced(struct sw_sdsc *s)
{
  struct sw_labels w, out;
  enum sw_label stick, out_stick;
  sw_sdsc_order(s, 1, true, &w, &stick);
  sw_sdsc_order(s, s->n_tensors - 1, true, &out, &out_stick);
  for (int i = 0; i < w.n; i++)
    if (w.v[i] != stick && !sw_labels_has(&out, w.v[i])) {
      s->size[w.v[i]] = sw_round_up(s->size[w.v[i]], sw_format_eps(s->spec->args.v[1].format));
      return;
    }
}

static bool inject_top_one(struct sw_sdsc *s)
{
  struct sw_labels in, out;
  enum sw_label stick;
  sw_sdsc_order(s, 0, true, &in, &stick);
  sw_sdsc_order(s, s->n_tensors - 1, true, &out, &stick);
  for (int i = 0; i < out.n; i++)
    if (!sw_labels_has(&in, out.v[i]))
      return true;
  if (s->dims.n >= N_FREE_LABELS)
    return false;
  s->top_one = free_labels[s->dims.n];
  add_dim(s, s->top_one, 1, false);
  return true;
}

static bool only_stick(const struct sw_labels *order, enum sw_label stick)
{
  for (int i = 0; i < order->n; i++)
    if (order->v[i] != stick)
      return false;
  return stick != SW_NO_LABEL;
}

enum sw_rc sw_sdsc_dims(struct sw_job *job, struct sw_sdsc *s)
{
  const struct sw_spec *p = s->spec;
  s->single = s->top_one = SW_NO_LABEL;
  if (!label_symbols(s)) {
    sw_sdsc_fault(job, s, SW_UNSUPPORTED, -1,
                  sw_arena_printf(job->arena, "no labels for %d loops of this kind of op", p->space.n));
    return SW_UNSUPPORTED;
  }
  for (int i = 0; i < p->space.n; i++) {
    add_dim(s, s->label[i], p->space.v[i].range, false);
    s->split[s->label[i]] = s->has_index ? 1 : p->space.v[i].split;
  }
  if (s->is.dw) {
    add_dim(s, SW_LABEL_KI, SW_NAMED_INT(p->conv, "kernel_h", 1), false);
    add_dim(s, SW_LABEL_KJ, SW_NAMED_INT(p->conv, "kernel_w", 1), false);
  }
  sw_sdsc_order(s, p->is_reduction ? 0 : s->n_tensors - 1, true, &s->ref_order, &s->ref_stick);
  if ((s->is.cvt || !strcmp(p->op, "qfp8ch")) && only_stick(&s->ref_order, s->ref_stick)) {
    s->single = SW_LABEL_MB;
    add_dim(s, s->single, 1, true);
    sw_labels_add_first(&s->ref_order, s->single);
  }
  if (s->has_index)
    inject_for_indices(s);
  bool fits = s->ref_stick != SW_NO_LABEL || inject_for_sparse(s);
  if (s->is.mat)
    round_up_reduced(s);
  if (s->is.topk)
    fits = inject_top_one(s) && fits;
  if (!fits) {
    sw_sdsc_fault(job, s, SW_UNSUPPORTED, -1, "too many loops for another dim, or node_output_ranges missing");
    return SW_UNSUPPORTED;
  }
  return SW_OK;
}
