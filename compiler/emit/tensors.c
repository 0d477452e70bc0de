#include "compiler/emit/superdsc.h"

#include "base/number.h"

#include <string.h>

/* What the tensors of an op look like over its dims, and what padding does to the op (superdsc.md sections 5 and 6).
 *
 * Dim k of a tensor's order is device dim rank - k - 2, counted purely by position: the tensor has been normalised so
 * that unit dims are outermost. Worked number: y of the max over [64,100] has device size [1,64,64] and coordinates
 * (0, c0, 0), so order mb, and the reduced out is appended with scale -2 (one value a stick); the stride of mb is
 * 64*64 = 4096 elements. The input pads out from 100 to 128, and the 28 lanes are masked with -inf. */

static int64_t elements_from(const struct sw_spec_arg *a, int first)
{
  int64_t n = 1;
  for (int j = first > 0 ? first : 0; j < a->rank; j++)
    n *= a->device_size[j];
  return n;
}

static bool same_order(const struct sw_labels *a, const struct sw_labels *b)
{
  return a->n == b->n && !memcmp(a->v, b->v, (size_t)a->n * sizeof *a->v);
}

static bool is_permutation(const struct sw_labels *a, const struct sw_labels *b)
{
  for (int i = 0; i < a->n; i++)
    if (!sw_labels_has(b, a->v[i]))
      return false;
  return a->n == b->n;
}

/* -- layout classes (5.4) -- */

static void find_layout(struct sw_sdsc *s, struct sw_sdsc_tensor *t)
{
  static const char *const mat[] = {"INPUT", "KERNEL", "OUTPUT", "KERNEL_IDX"};
  static const char *const depthwise[] = {"OUTPUT", "INPUT", "KERNEL", "KERNEL_IDX"};
  static const char *const others[] = {"OUTPUT", "KERNEL", "INPUT", "KERNEL_IDX"};
  const char *const *names = s->is.mat || s->is.fwd ? mat : s->is.dw ? depthwise : others;
  struct sw_sdsc_layout l = {.order = t->order, .n_sticks = 1, .stick_size = {sw_format_eps(t->arg->format)}};
  l.stick[0] = t->stick != SW_NO_LABEL ? t->stick : s->ref_stick;
  if (t->arg->arrangement == SW_EA_QFP8WT && t->order.n >= 2) {
    l.n_sticks = 2;
    l.stick[0] = t->order.v[t->order.n - 2];
    l.stick[1] = t->order.v[t->order.n - 1];
    l.stick_size[1] = l.stick_size[0] / 2;
    l.stick_size[0] = 2;
  }
  const char *fixed = !s->has_index ? NULL : t->is_index ? "KERNEL_IDX" : "OUTPUT";
  for (int i = 0; i < s->n_layouts; i++) {
    const struct sw_sdsc_layout *old = &s->layout[i];
    bool same = old->n_sticks == l.n_sticks && is_permutation(&old->order, &l.order);
    for (int j = 0; j < l.n_sticks && same; j++)
      same = old->stick[j] == l.stick[j] && old->stick_size[j] == l.stick_size[j];
    if (fixed ? !strcmp(old->name, fixed) : same) {
      t->layout = i;
      return;
    }
  }
  t->layout = -1;
  if (s->n_layouts == 4)
    return;
  l.name = fixed ? fixed : names[s->n_layouts];
  t->layout = s->n_layouts;
  s->layout[s->n_layouts++] = l;
}

static bool is_stick(const struct sw_sdsc *s, const struct sw_sdsc_tensor *t, enum sw_label d)
{
  const struct sw_sdsc_layout *l = &s->layout[t->layout];
  return d == l->stick[0] || (l->n_sticks == 2 && d == l->stick[1]);
}

/* -- order, scale, positions (5.1, 5.3) -- */

static void order_of(const struct sw_sdsc *s, int i)
{
  struct sw_sdsc_tensor *t = &s->tensor[i];
  sw_sdsc_order(s, i, t->is_index, &t->order, &t->stick);
  if (!t->is_index)
    return;
  if (s->single != SW_NO_LABEL && !t->order.n) {
    t->order = (struct sw_labels){.n = 1, .v = {s->single}};
    t->stick = s->single;
  } else if (t->stick == SW_NO_LABEL && t->placeholder != SW_NO_LABEL) {
    t->stick = t->placeholder;
    sw_labels_add(&t->order, t->placeholder);
  }
}

static void shape_tensor(struct sw_sdsc *s, int i)
{
  struct sw_sdsc_tensor *t = &s->tensor[i];
  bool use_op = !s->is.mat && !s->is.conv;
  struct sw_labels absent = {0}; /* broadcast (inputs) or reduced (outputs) dims */
  order_of(s, i);
  enum sw_label own_stick = t->stick;
  if (use_op && !same_order(&t->order, &s->dims) && !s->is.topk && !t->is_index)
    for (int j = 0; j < s->ref_order.n; j++)
      if (!sw_labels_has(&t->order, s->ref_order.v[j]) && s->ref_order.v[j] != s->single)
        sw_labels_add(&absent, s->ref_order.v[j]);
  for (int j = 0; j < absent.n; j++)
    sw_labels_add(&t->order, absent.v[j]);
  if (s->ref_stick == SW_NO_LABEL && !t->is_index) {
    t->stick = own_stick = SW_NO_LABEL;
    for (int j = 0; j < s->dims.n && t->stick == SW_NO_LABEL; j++)
      if (!sw_labels_has(&s->ref_order, s->dims.v[j]))
        t->stick = s->dims.v[j];
    own_stick = t->stick;
    sw_labels_add(&t->order, t->stick);
  }
  if (s->is.layernormscale && i == 0)
    absent = (struct sw_labels){.n = 1, .v = {t->stick}};
  struct sw_labels sorted = {0};
  for (int j = 0; j < t->order.n; j++)
    if (!sw_labels_has(&absent, t->order.v[j]))
      sw_labels_add(&sorted, t->order.v[j]);
  for (int j = 0; j < absent.n; j++)
    sw_labels_add(&sorted, absent.v[j]);
  for (int j = 0; j < sorted.n; j++) {
    enum sw_label d = sorted.v[j];
    t->position[d] = t->arg->rank - j - 2;
    t->scale[d] = 1;
    t->max_dim[d] = -1;
    if (t->is_index || t->is_value || !sw_labels_has(&absent, d))
      continue;
    bool one_a_stick = s->is.layernormscale ? d == t->stick : own_stick == SW_NO_LABEL && d == s->ref_stick;
    t->scale[d] = one_a_stick ? -2 : -1;
  }
}

static bool is_placeholder(const struct sw_sdsc *s, enum sw_label d)
{
  for (int i = 0; i < s->n_tensors; i++)
    if (s->tensor[i].placeholder == d)
      return true;
  return false;
}

/* Dims that no coordinate of the tensor has but the op needs: they come first, resp. last (5.3). */
static void inject(struct sw_sdsc *s, int i)
{
  struct sw_sdsc_tensor *t = &s->tensor[i];
  const struct sw_spec_arg *a = t->arg;
  if (s->single != SW_NO_LABEL && !(t->is_index && s->has_index)) {
    enum sw_label v = s->single;
    sw_labels_add_first(&t->order, v);
    t->scale[v] = 1;
    t->position[v] = -1;
    t->stride[v] = a->rank < 2 ? a->device_size[0] : a->device_size[a->rank - 2] * a->device_size[a->rank - 1];
    t->max_dim[v] = t->is_value ? 1 : -1;
  }
  for (int k = 0; k < t->order.n; k++)
    if (is_placeholder(s, t->order.v[k]))
      t->max_dim[t->order.v[k]] = 1;
  if (s->top_one != SW_NO_LABEL && i == s->n_tensors - 1) {
    enum sw_label d = s->top_one;
    sw_labels_add(&t->order, d);
    t->scale[d] = 1;
    t->position[d] = -1;
    t->max_dim[d] = -1;
    t->stride[d] = elements_from(a, a->rank - t->order.n - 1);
  }
}

/* Rows of a value tensor are found through its index tensor, so the index's dims have extent 1 there (5.2). The
 * reference takes the extent from the index tensor at the place that the dim has in the *value* tensor: with a table of
 * one stick a row and a 2-D index that is not 1, and rows would be counted twice. */
static int64_t max_of_value(const struct sw_sdsc *s, const struct sw_sdsc_tensor *t, enum sw_label d)
{
  struct sw_labels dims;
  sw_sdsc_index_dims(s, t->related, &dims);
  return d != t->stick && sw_labels_has(&dims, d) ? 1 : -1;
}

/* Strides, start offsets and gaps (5.2). Unlike the reference, a gap is what is left behind the *padded* dim: only so
 * is padded dim + gap the extent of memory (section 16, M5). */
static void measure(struct sw_sdsc *s, int i)
{
  struct sw_sdsc_tensor *t = &s->tensor[i];
  const struct sw_spec_arg *a = t->arg;
  for (int j = 0; j < t->order.n; j++) {
    enum sw_label d = t->order.v[j];
    if (d == s->single || d == s->top_one) {
      if (!t->is_index || !s->has_index)
        continue;
    }
    int p = t->position[d];
    if (t->is_value && !is_placeholder(s, d))
      t->max_dim[d] = max_of_value(s, t, d);
    t->stride[d] = t->placeholder == d ? 1 : elements_from(a, p);
    if (p < 0 || a->coord[p].form == SW_COORD_INDIRECT)
      continue;
    int64_t e = d == t->stick ? sw_format_eps(a->format) : 1;
    int64_t in_memory = a->device_size[p] * e;
    int64_t used = sw_round_up(s->size[d], e);
    if (in_memory <= used)
      continue;
    t->offset[d] = a->coord[p].k * elements_from(a, p + 1);
    t->stride[d] = t->stride[d] / in_memory * used;
    if (!s->is.conv)
      t->gap[d] = in_memory - used;
  }
}

/* -- padding, masks, constants (6) -- */

static bool pads(const struct sw_sdsc *s, int i)
{
  if (s->is.mat || s->is.conv || s->is.cvt || s->is.restickify)
    return true;
  return s->spec->is_reduction ? i == 0 : i == s->n_tensors - 1;
}

/* Elements of which a row is a whole number. float32 in the order of a cast from float16 is in pairs of sticks, with real
 * elements in both: 32 of them are in lanes 0..15 and 32..47. */
static int64_t unit(const struct sw_sdsc *s, const struct sw_sdsc_tensor *t)
{
  const struct sw_sdsc_layout *l = &s->layout[t->layout];
  int p = l->stick[0] == SW_NO_LABEL ? -1 : t->position[l->stick[0]];
  bool one_lane = t->arg->coord[t->arg->rank - 1].form == SW_COORD_CONST;
  if (t->arg->arrangement == SW_EA_DL16_TO_FP32 && p >= 0 && t->arg->device_size[p] % 2 == 0 && !one_lane)
    return 64;
  return l->stick_size[0] * (l->n_sticks == 2 ? l->stick_size[1] : 1);
}

static void pad(struct sw_sdsc *s)
{
  for (int i = 0; i < s->n_tensors; i++) {
    const struct sw_sdsc_tensor *t = &s->tensor[i];
    int64_t q = unit(s, t);
    int virtual = s->single != SW_NO_LABEL; /* mb = 1 in front of a vector is no device dim */
    for (int j = 0; pads(s, i) && j < t->order.n && j < t->arg->rank - 1 + virtual; j++) {
      enum sw_label d = t->order.v[j];
      int64_t more = sw_round_up(s->size[d], q) - s->size[d];
      if (!is_stick(s, t, d) || !more)
        continue;
      s->pad[d] += more;
      s->size[d] += more;
    }
  }
}

/* A restickify rounds up the new stick dim too, whose rows end earlier in memory: the difference is printed as the gap,
 * and a padded dim stays on one core (6.2). */
static void after_restickify(struct sw_sdsc *s)
{
  for (int i = 0; i < s->n_tensors; i++) {
    struct sw_sdsc_tensor *t = &s->tensor[i];
    for (int j = 0; j < t->order.n; j++) {
      enum sw_label d = t->order.v[j];
      int p = t->position[d];
      if (p >= 0 && t->scale[d] == 1 && !is_stick(s, t, d) && t->arg->device_size[p] < s->size[d])
        t->gap[d] = s->size[d] - t->arg->device_size[p];
    }
  }
  for (int d = 0; d < SW_N_LABELS; d++)
    if (s->pad[d])
      s->split[d] = 1;
}

static void mask(struct sw_job *job, struct sw_sdsc *s)
{
  const char *op = s->spec->op;
  const struct sw_sdsc_tensor *out = &s->tensor[s->n_tensors - 1];
  bool in_order = out->arg->arrangement == SW_EA_STANDARD; /* else elements are not in front of the padding */
  bool is_exp = !strcmp(op, "exp") && in_order;
  for (int j = 0; j < s->dims.n; j++) {
    enum sw_label d = s->dims.v[j];
    if (s->pad[d] && sw_labels_has(&out->order, d) && (out->scale[d] == -2 || is_exp))
      sw_labels_add(&s->masked, d);
  }
  s->mask_constant = -1;
  if (!s->masked.n)
    return;
  s->mask_constant = s->constants.n;
  struct sw_sdsc_constant *c = SW_PUSH(job->arena, &s->constants);
  c->name = "samv-maskvalue";
  c->value = is_exp || !strcmp(op, "max") ? -__builtin_inf() : !strcmp(op, "min") ? __builtin_inf() : 0;
}

static void find_constants(struct sw_job *job, struct sw_sdsc *s)
{
  for (int i = 0; i < s->spec->constants.n; i++) {
    const struct sw_named_number *v = &s->spec->constants.v[i];
    if (s->is.pool && strcmp(v->name, "scaling_factor"))
      continue;
    struct sw_sdsc_constant *c = SW_PUSH(job->arena, &s->constants);
    c->name = s->is.pool ? "nmap" : v->name;
    c->value = v->value;
  }
}

/* Formats of 16 bits: sign, 6 bits of exponent (bias 31), 9 of fraction; from a float, rounded half away from zero by
 * adding half of the 14 bits that are cut. 0.01 = 2^-7 * 1.28: (31 - 7) * 512 + 143 = 12431. */
uint32_t sw_device_constant(enum sw_format f, double value)
{
  float x = (float)value;
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  if (f == SW_FORMAT_FP32)
    return bits;
  uint32_t sign = bits >> 16 & 0x8000, magnitude = bits & 0x7FFFFFFF;
  if (magnitude >= 0x7F800000)
    return sign | 0x7FFF;
  uint32_t rounded = magnitude + (1u << 13);
  int32_t exponent = (int32_t)(rounded >> 23) - 127 + 31;
  if (exponent < 0)
    return sign;
  uint32_t out = (uint32_t)exponent << 9 | (rounded >> 14 & 0x1FF);
  if (!magnitude)
    return sign;
  return out > 0x7FFE ? sign | 0x7FFF : sign | out;
}

/* -- the op as a whole (6.5) -- */

static void settle(struct sw_job *job, struct sw_sdsc *s)
{
  const struct sw_spec *p = s->spec;
  const struct sw_sdsc_tensor *out = &s->tensor[s->n_tensors - 1];
  s->n_in = s->is.topk || s->is.pool                     ? 1
            : p->is_reduction && !s->is.mat && !s->is.fwd ? s->n_tensors
                                                          : s->n_tensors - 1;
  s->unit = s->is.mat || s->is.fwd ? "pt" : "sfp";
  s->format = s->tensor[s->has_index && s->n_tensors > 1 ? 1 : 0].fmt;
  s->fn = p->op;
  bool sparse = false;
  for (int j = 0; j < out->order.n; j++)
    sparse = sparse || out->scale[out->order.v[j]] == -2;
  if (p->is_reduction && !s->is.pool && !s->is.conv && !s->is.mat && !s->is.topk && !sparse)
    s->fn = sw_arena_printf(job->arena, "%snonstick", p->op);
  if (s->is.pool || s->is.conv)
    s->split[SW_LABEL_KI] = s->split[SW_LABEL_KJ] = 1;
}

enum sw_rc sw_sdsc_tensors(struct sw_job *job, struct sw_sdsc *s)
{
  for (int i = 0; i < s->n_tensors; i++) {
    shape_tensor(s, i);
    inject(s, i);
    find_layout(s, &s->tensor[i]);
    if (s->tensor[i].layout < 0) {
      sw_sdsc_fault(job, s, SW_UNSUPPORTED, i, "more than four kinds of layout in one op")->advice =
          "copy an operand into the layout of another";
      return SW_UNSUPPORTED;
    }
  }
  pad(s);
  for (int i = 0; i < s->n_tensors; i++)
    measure(s, i);
  if (s->is.restickify)
    after_restickify(s);
  find_constants(job, s);
  mask(job, s);
  settle(job, s);
  return SW_OK;
}
