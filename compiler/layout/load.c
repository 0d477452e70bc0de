/* Layouts of what ops do not write: inputs, parameters, buffers and constants, what a host step gives, and whatever
 * the user has pinned. Reference: layouts.md 1.7, 1.8, 4.12; graphs.md section 4. */
#include "compiler/layout/choose.h"

#include <stdlib.h>
#include <string.h>

/* -- defaults -- */

/* The dims of a tensor in this order, the stick on the last. A tensor without elements gets the layout of one with one
 * element in each empty dim, and one of more than six dims that of its dims of more than one element: where sizes are 1
 * there is nothing to lay out. */
static bool plain_layout(struct sw_choosing *c, int storage, enum sw_format f, const int *dims, struct sw_layout *out)
{
  const struct sw_storage *s = &c->p->storages.v[storage];
  int64_t size[SW_MAX_RANK] = {0};
  int order[SW_MAX_RANK] = {0}, n = 0, rank = s->rank;
  for (int k = 0; k < s->rank; k++) {
    int d = dims[k];
    size[d] = s->size[d] < 1 ? 1 : s->size[d];
    if (s->rank <= 6 || size[d] > 1)
      order[n++] = d;
  }
  if (n == 0)
    rank = 0;
  if (f != SW_N_FORMATS && (c->best || s->rank <= 6) &&
      sw_layout_make(out, f, SW_EA_STANDARD, rank, size, s->stride, order, n))
    return true;
  struct sw_fault *x;
  if (f == SW_N_FORMATS) {
    x = sw_fault(c->job, SW_UNSUPPORTED, "the device has no format for %s", sw_dtype_torch(s->dtype));
    x->advice = "convert it to float16, or keep it on the host";
  } else if (n > 6) {
    x = sw_fault(c->job, SW_UNSUPPORTED, "%d dims: a tensor on the device has at most 6", s->rank);
    x->advice = "merge dims with a view before this tensor is made";
    x->has_limit = true;
    x->value = s->rank;
    x->limit = 6;
  } else {
    x = sw_fault(c->job, SW_LIMIT, "its padded size does not fit 63 bits");
  }
  x->tensor = s->name;
  return false;
}

bool sw_layout__default(struct sw_choosing *c, int storage, enum sw_format f, struct sw_layout *out)
{
  int dims[SW_MAX_RANK];
  for (int d = 0; d < SW_MAX_RANK; d++)
    dims[d] = d;
  return plain_layout(c, storage, f, dims, out);
}

/* What a host step gives. Profile torch-spyre takes it as if it were row major, whatever its strides are (form A, 4.2 rule
 * 12): the float32 copy of a transposed int64 [128,128] has strides [1,128], and its stick lies along the step of 1, dim 0. */
static bool host_result_layout(struct sw_choosing *c, int storage, enum sw_format f, struct sw_layout *out)
{
  const struct sw_storage *s = &c->p->storages.v[storage];
  int dims[SW_MAX_RANK] = {0};
  if (c->best)
    return sw_layout__default(c, storage, f, out);
  for (int d = 0; d < s->rank; d++) {
    int k = d;
    for (; k > 0 && s->stride[dims[k - 1]] < s->stride[d]; k--)
      dims[k] = dims[k - 1];
    dims[k] = d;
  }
  return plain_layout(c, storage, f, dims, out);
}

/* -- the module loader's rules (1.8) -- */

static const struct sw_arg *argument(const struct sw_node *n, const char *name)
{
  for (int i = 0; i < n->n_args; i++)
    if (n->args[i].name && !strcmp(n->args[i].name, name))
      return &n->args[i];
  return NULL;
}

static bool starts(const char *s, const char *with)
{
  return !strncmp(s, with, strlen(with));
}

enum role { ROLE_NONE, ROLE_LINEAR, ROLE_EMBEDDING };

static bool is_transpose(const struct sw_node *n)
{
  return !strcmp(n->target, "aten.t.default") || !strcmp(n->target, "aten.permute.default") ||
         !strcmp(n->target, "aten.transpose.int");
}

/* What each value is to the nodes that read it: the weight of a linear layer (also where an exporter has taken it apart
 * into a transpose and a product), the table of an embedding. */
static unsigned char *value_roles(struct sw_choosing *c)
{
  const struct sw_graph *g = c->p->graph;
  int n_values = g ? g->values.n : 0, n_nodes = g ? g->nodes.n : 0;
  unsigned char *role = SW_NEW_N(c->arena, unsigned char, n_values + 1);
  bool *multiplied = SW_NEW_N(c->arena, bool, n_values + 1);
  for (int i = 0; i < n_nodes; i++) {
    const struct sw_node *n = &g->nodes.v[i];
    if (starts(n->target, "aten.mm.") || starts(n->target, "aten.addmm."))
      for (int a = 0; a < n->n_args; a++)
        if (n->args[a].kind == SW_ARG_VALUE)
          multiplied[n->args[a].value] = true;
  }
  for (int i = 0; i < n_nodes; i++) {
    const struct sw_node *n = &g->nodes.v[i];
    const struct sw_arg *w = NULL;
    enum role r = ROLE_LINEAR;
    if (starts(n->target, "aten.linear.")) {
      w = argument(n, "weight");
    } else if (starts(n->target, "aten.embedding.")) {
      w = argument(n, "weight");
      r = ROLE_EMBEDDING;
    } else if (is_transpose(n) && n->n_results && n->results[0] >= 0 && multiplied[n->results[0]]) {
      w = argument(n, "self");
    }
    if (w && w->kind == SW_ARG_VALUE && role[w->value] == ROLE_NONE)
      role[w->value] = (unsigned char)r;
  }
  return role;
}

/* Form C for a table that rows are gathered from: [V,D] is [V, D/eps, eps] / [D, eps, 1]. */
static bool table_layout(const struct sw_storage *s, enum sw_format f, struct sw_layout *out)
{
  int eps = sw_format_eps(f);
  if (s->rank != 2 || s->size[1] % eps || s->size[0] == 1)
    return false;
  *out = (struct sw_layout){.rank = 3, .format = f};
  out->device_size[0] = s->size[0];
  out->device_size[1] = s->size[1] / eps;
  out->device_size[2] = eps;
  out->stride_map[0] = s->stride[0];
  out->stride_map[1] = s->stride[1] * eps;
  out->stride_map[2] = s->stride[1];
  return true;
}

static bool stick_last(const struct sw_storage *s, enum sw_format f, int stick, struct sw_layout *out)
{
  int order[SW_MAX_RANK], n = 0;
  for (int d = 0; d < s->rank; d++)
    if (d != stick && (s->rank <= 6 || s->size[d] > 1))
      order[n++] = d;
  order[n++] = stick;
  return sw_layout_make(out, f, SW_EA_STANDARD, s->rank, s->size, s->stride, order, n);
}

/* -- pins -- */

/* A layout fits a storage when every element has one place. */
static bool holds(const struct sw_storage *s, const struct sw_layout *l)
{
  struct sw_op op = {0};
  struct sw_access x = {.index_input = -1};
  for (int d = 0; d < s->rank; d++) {
    if (s->size[d] == 1)
      continue;
    if (op.n_loops == SW_MAX_LOOPS)
      return false;
    op.range[op.n_loops] = s->size[d];
    x.step[op.n_loops++] = s->stride[d];
  }
  struct sw_coord out[SW_MAX_DEVICE_RANK];
  return sw_layout_coords(l, &op, &x, out);
}

static bool read_numbers(const char **text, int64_t *out, int most, int *n)
{
  const char *p = *text;
  for (*n = 0;; p++) {
    char *end;
    if (*n == most)
      return false;
    out[(*n)++] = strtoll(p, &end, 10);
    if (end == p)
      return false;
    p = end;
    if (*p != ',')
      break;
  }
  *text = p;
  return true;
}

/* NULL, or what is wrong with it. */
static const char *parse_pin(const struct sw_pin_text *t, struct sw_pin *out)
{
  static const char *const no_layout = "not a layout";
  int64_t v[SW_MAX_RANK + 1];
  const char *p = t->layout;
  int n;
  *out = (struct sw_pin){.name = t->name};
  if (starts(p, "order:")) {
    p += 6;
    if (!read_numbers(&p, v, SW_MAX_RANK, &n) || *p)
      return no_layout;
    out->by_order = true;
    out->n = n;
    for (int i = 0; i < n; i++)
      out->order[i] = v[i] < -1 || v[i] >= SW_MAX_RANK ? SW_MAX_RANK : (int)v[i];
    return NULL;
  }
  if (!starts(p, "device_size:"))
    return no_layout;
  p += 12;
  if (!read_numbers(&p, out->device_size, SW_MAX_DEVICE_RANK, &out->n) || !starts(p, "/stride_map:"))
    return no_layout;
  p += 12;
  if (!read_numbers(&p, out->stride_map, SW_MAX_DEVICE_RANK, &n) || n != out->n || (*p && *p != '/'))
    return no_layout;
  return *p ? "the order of lanes in a stick follows from the casts and can't be pinned" : NULL;
}

static bool is_permutation(const struct sw_pin *pin, int rank)
{
  unsigned seen = 0;
  int n = pin->n;
  if (n == rank + 1 && pin->order[rank] == -1)
    n--;
  for (int i = 0; i < n; i++) {
    if (pin->order[i] < 0 || pin->order[i] >= rank || seen >> pin->order[i] & 1)
      return false;
    seen |= 1u << pin->order[i];
  }
  return n == rank;
}

/* The layout a pin gives to a storage, or why it gives none. */
static const char *pinned_layout(const struct sw_storage *s, enum sw_format f, const struct sw_pin *pin,
                                 struct sw_layout *out)
{
  if (pin->by_order) {
    if (!is_permutation(pin, s->rank))
      return "the order does not name each dim of the tensor once";
    return sw_layout_make(out, f, SW_EA_STANDARD, s->rank, s->size, s->stride, pin->order, pin->n)
               ? NULL
               : "too many dims for a device layout";
  }
  *out = (struct sw_layout){.rank = pin->n, .format = f};
  memcpy(out->device_size, pin->device_size, sizeof out->device_size);
  memcpy(out->stride_map, pin->stride_map, sizeof out->stride_map);
  if (pin->n < 2 || out->device_size[pin->n - 1] != sw_format_eps(f))
    return "the last device dim must be one stick of this dtype";
  int64_t n = 128;
  for (int j = 0; j < pin->n; j++)
    if (out->device_size[j] < 1 || __builtin_mul_overflow(n, out->device_size[j], &n))
      return "a device size is not positive, or their product does not fit 63 bits";
  return holds(s, out) ? NULL : "the layout does not give every element of the tensor a place of its own";
}

static void refuse_pin(struct sw_choosing *c, const char *name, const char *layout, const char *why)
{
  struct sw_fault *f = sw_fault(c->job, SW_INVALID, "pin %s=%s: %s", name, layout, why);
  f->tensor = name;
  f->advice = "a pin is order:1,0 or device_size:4,128,64/stride_map:64,256,1";
}

static void pin_storage(struct sw_choosing *c, int storage, const struct sw_pin *pin, const char *text)
{
  const struct sw_storage *s = &c->p->storages.v[storage];
  struct sw_layout l;
  enum sw_format f = sw_format_of(s->dtype);
  const char *why = f == SW_N_FORMATS ? "its dtype has no format on the device" : pinned_layout(s, f, pin, &l);
  if (!why && c->pinned[storage] && !sw_layout_equal(&c->candidates[storage].v[0], &l))
    why = sw_arena_printf(c->job->arena, "%s is pinned to %s already", s->name,
                          sw_layout_text(c->arena, &c->candidates[storage].v[0]));
  if (why) {
    refuse_pin(c, pin->name, text, why);
    return;
  }
  c->pinned[storage] = true;
  sw_layout__propose(c, storage, &l);
}

/* Whether the graph has such an input: one that nothing reads may be pinned too. */
static bool is_input(const struct sw_graph *g, const char *name)
{
  for (int i = 0; g && i < g->inputs.n; i++)
    if (!strcmp(g->inputs.v[i].name, name) || (g->inputs.v[i].target && !strcmp(g->inputs.v[i].target, name)))
      return true;
  return false;
}

/* Names a pin may use: storages (values of the graph), inputs, qualified names. */
static void pins(struct sw_choosing *c)
{
  const struct sw_graph *g = c->p->graph;
  struct sw_map names = {.arena = c->arena};
  for (int i = 0; i < c->n_storages; i++) {
    const struct sw_storage *s = &c->p->storages.v[i];
    const struct sw_input *in = g && s->input >= 0 ? &g->inputs.v[s->input] : NULL;
    if (in && in->target)
      sw_map_set_str(&names, in->target, i);
    if (in && in->name)
      sw_map_set_str(&names, in->name, i);
    if (in && in->layout) {
      struct sw_pin pin = {.name = s->name, .n = in->layout->rank};
      if (pin.n <= SW_MAX_DEVICE_RANK) {
        memcpy(pin.device_size, in->layout->device_size, (size_t)pin.n * sizeof pin.device_size[0]);
        memcpy(pin.stride_map, in->layout->stride_map, (size_t)pin.n * sizeof pin.stride_map[0]);
      } else {
        pin.n = 0;
      }
      pin_storage(c, i, &pin, "(given in the graph)");
    }
  }
  for (int i = 0; i < c->n_storages; i++)
    if (sw_map_get_str(&names, c->p->storages.v[i].name) < 0)
      sw_map_set_str(&names, c->p->storages.v[i].name, i);
  for (int i = 0; i < c->o->pins.n; i++) {
    const struct sw_pin_text *t = &c->o->pins.v[i];
    struct sw_pin pin;
    int64_t storage = sw_map_get_str(&names, t->name);
    const char *why = parse_pin(t, &pin);
    if (why)
      refuse_pin(c, t->name, t->layout, why);
    else if (storage >= 0 && c->p->storages.v[storage].kind == SW_STORAGE_SCALAR)
      refuse_pin(c, t->name, t->layout, "a scalar has no layout to choose");
    else if (storage >= 0)
      pin_storage(c, (int)storage, &pin, t->layout);
    else if (!is_input(g, t->name))
      refuse_pin(c, t->name, t->layout, "no tensor of this name is laid out: it is unknown, a view, or not used");
  }
}

/* -- everything loaded -- */

/* float32 in the order that the cast to float16 undoes: whoever writes it through a layout can write it so, and a
 * cosine that the host computes is in standard order once it is float16. Every row is in pairs of sticks. */
static void propose_staggered(struct sw_choosing *c, int storage)
{
  const struct sw_storage *s = &c->p->storages.v[storage];
  for (int i = 0, n = c->candidates[storage].n; i < n; i++) {
    struct sw_layout l = c->candidates[storage].v[i];
    int d = sw_layout__stick_dim(s, &l);
    if (d < 0 || !sw_layout_pair_tiles(&l, s->stride[d], s->size[d]))
      continue;
    l.arrangement = SW_EA_DL16_TO_FP32;
    if (holds(s, &l))
      sw_layout__propose(c, storage, &l);
  }
}

static void add_layout(struct sw_choosing *c, sw_layout_list *list, const struct sw_layout *l)
{
  for (int i = 0; i < list->n; i++)
    if (sw_layout_equal(&list->v[i], l))
      return;
  if (list->n < SW_MAX_LABELS)
    *SW_PUSH(c->arena, list) = *l;
}

/* What else the loader could make of an input: each dim on the stick, and none; float32 also in the order that the cast to
 * float16 undoes. */
static void list_reloads(struct sw_choosing *c, int i)
{
  const struct sw_storage *s = &c->p->storages.v[i];
  struct sw_layout l;
  for (int d = s->rank - 1; d >= -1; d--) {
    if ((d >= 0 && s->size[d] == 1) || !stick_last(s, sw_format_of(s->dtype), d, &l))
      continue;
    add_layout(c, &c->reload[i], &l);
    if (s->dtype != SW_F32 || d < 0 || !sw_layout_pair_tiles(&l, s->stride[d], s->size[d]))
      continue;
    l.arrangement = SW_EA_DL16_TO_FP32;
    if (holds(s, &l))
      add_layout(c, &c->reload[i], &l);
  }
}

const sw_layout_list *sw_layout__reloads(const struct sw_choosing *c, int storage)
{
  return c->load_twice[storage] ? &c->candidates[storage] : &c->reload[storage];
}

static void propose_loaded(struct sw_choosing *c, int i, enum role role, bool free_layout)
{
  const struct sw_storage *s = &c->p->storages.v[i];
  enum sw_format f = sw_format_of(s->dtype);
  struct sw_layout l;
  bool from_host = s->kind == SW_STORAGE_TEMPORARY;
  if (!(from_host ? host_result_layout(c, i, f, &l) : sw_layout__default(c, i, f, &l))) {
    c->refused[i] = true;
    return;
  }
  struct sw_layout plain = l;
  if (role == ROLE_EMBEDDING && table_layout(s, f, &l))
    sw_layout__propose(c, i, &l);
  else if (role == ROLE_LINEAR && !free_layout && s->rank == 2 && stick_last(s, f, 0, &l))
    sw_layout__propose(c, i, &l);
  if (!free_layout && c->candidates[i].n)
    return;
  sw_layout__propose(c, i, &plain);
  for (int d = s->rank - 1; d >= -1 && free_layout; d--)
    if ((d < 0 || s->size[d] > 1) && stick_last(s, f, d, &l))
      sw_layout__propose(c, i, &l);
  if (free_layout)
    propose_staggered(c, i);
}

/* Whether n elements `step` apart are one host dim or several in a row: then what would come behind them in the last
 * stick is outside the tensor. Rows of 4 that are cut from a dim of 40 are not: the lanes behind them are the next row. */
static bool is_whole_dims(const struct sw_storage *s, int64_t n, int64_t step)
{
  int64_t size = 1, stride = step;
  for (int d = s->rank - 1; d >= 0 && size < n; d--)
    if (s->size[d] > 1 && s->stride[d] == stride) {
      size *= s->size[d];
      stride *= s->size[d];
    }
  return size == n;
}

/* Whether the loader, or whoever takes a host step's result to the device, may give it further layouts. */
static bool is_laid_out(const struct sw_choosing *c, int storage)
{
  return c->best && !c->pinned[storage] && (c->load_twice[storage] || c->reload[storage].n ||
         (c->p->storages.v[storage].kind == SW_STORAGE_TEMPORARY && c->candidates[storage].n));
}

/* Where a matmul reads all of a loaded tensor through loops that are not its dims, a layout by those loops: filters
 * [64,8,3,3] as a matrix [64,72]. Likewise row numbers: [16,2] of them as 32. */
static void propose_as_read(struct sw_choosing *c, const struct sw_op *op, int input)
{
  int storage = op->in[input].storage;
  const struct sw_storage *s = &c->p->storages.v[storage];
  struct sw_need need = sw_layout__need(c, op, input);
  int64_t size[SW_MAX_LOOPS], stride[SW_MAX_LOOPS], n_read = 1, n = 1;
  int order[SW_MAX_LOOPS], rank = 0, k = 0, stick = -1;
  bool rows = need.kind == SW_NEED_ROWS;
  if (!rows && (need.kind != SW_NEED_LOOP || need.loop < 0 || op->in[input].index_input >= 0))
    return;
  for (int d = 0; d < s->rank; d++)
    n *= s->size[d];
  for (int l = 0; l < op->n_loops; l++) {
    if (!op->in[input].step[l])
      continue;
    stick = l == need.loop || rows ? rank : stick;
    size[rank] = op->range[l];
    stride[rank++] = op->in[input].step[l];
    n_read *= op->range[l];
  }
  enum sw_format f = sw_format_of(s->dtype);
  if (n_read != n || op->in[input].offset || stick < 0 || rank > 6 ||
      (size[stick] % sw_format_eps(f) && !is_whole_dims(s, size[stick], stride[stick])))
    return;
  for (int d = 0; d < rank; d++)
    if (d != stick)
      order[k++] = d;
  order[k++] = stick;
  struct sw_layout l;
  if (!sw_layout_make(&l, f, SW_EA_STANDARD, rank, size, stride, order, k) || !holds(s, &l))
    return;
  if (c->reload[storage].n)
    add_layout(c, &c->reload[storage], &l);
  else
    sw_layout__propose(c, storage, &l);
}

void sw_layout__load_candidates(struct sw_choosing *c)
{
  const struct sw_graph *g = c->p->graph;
  unsigned char *roles = value_roles(c);
  pins(c);
  for (int i = 0; i < c->n_storages; i++) {
    const struct sw_storage *s = &c->p->storages.v[i];
    if (c->candidates[i].n || s->host_only || s->kind == SW_STORAGE_SCALAR || s->kind == SW_STORAGE_TEMPORARY)
      continue;
    bool ours = s->kind != SW_STORAGE_INPUT && c->best && c->o->free_weights;
    int value = g && s->input >= 0 ? g->inputs.v[s->input].value : -1;
    enum role role = s->kind == SW_STORAGE_PARAMETER && value >= 0 ? (enum role)roles[value] : ROLE_NONE;
    c->load_twice[i] = ours && !c->written[i];
    c->free_layout[i] = ours;
    propose_loaded(c, i, role, ours);
    if (s->kind == SW_STORAGE_INPUT && c->best && !c->written[i] && !c->refused[i])
      list_reloads(c, i);
  }
  for (int i = 0; i < c->p->steps.n; i++) {
    if (!c->p->steps.v[i].is_host)
      continue;
    const struct sw_host_step *h = &c->p->host_steps.v[c->p->steps.v[i].index];
    for (int r = 0; r < h->results.n; r++) {
      int storage = h->results.v[r].storage;
      if (storage < 0 || c->candidates[storage].n || c->refused[storage] || c->p->storages.v[storage].host_only ||
          c->p->storages.v[storage].kind == SW_STORAGE_SCALAR)
        continue;
      propose_loaded(c, storage, ROLE_NONE, c->best);
    }
  }
  for (int i = 0; i < c->p->ops.n; i++)
    for (int k = 0; k < c->p->ops.v[i].n_in; k++)
      if (is_laid_out(c, c->p->ops.v[i].in[k].storage))
        propose_as_read(c, &c->p->ops.v[i], k);
}
