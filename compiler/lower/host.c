/* Steps on the host: explicit, with their reason. The step is the ATen node itself, its tensors are views of storages,
 * so that a runtime can hand them to torch as they are. */
#include "compiler/lower/lower.h"

#include <string.h>

struct sw_view lw_view_of(struct tensor t)
{
  struct sw_view v = {.storage = t.storage, .rank = t.rank, .offset = t.offset};
  memcpy(v.size, t.size, sizeof v.size);
  memcpy(v.stride, t.stride, sizeof v.stride);
  return v;
}

static struct sw_host_arg host_arg(struct lower *l, const struct sw_arg *a)
{
  struct sw_host_arg h = {.kind = SW_HOST_LITERAL, .literal = *a};
  switch (a->kind) {
  case SW_ARG_NONE:
    h.kind = SW_HOST_NONE;
    break;
  case SW_ARG_VALUE:
    if (lw_is_tensor(l, a)) {
      struct tensor t = lw_tensor_of(l, a);
      const struct sw_value *v = &l->graph->values.v[a->value];
      if (lw_known(t) && t.dtype != v->dtype) /* kept in fp16: the host wants what the graph says */
        t = lw_host_cast(l, t, v->dtype);
      h.kind = SW_HOST_VIEW;
      h.view = lw_view_of(t);
      l->failed = l->failed || !lw_known(t);
    } else {
      h.literal = (struct sw_arg){.name = a->name, .kind = SW_ARG_INT, .i = lw_number(l, a->value)};
    }
    break;
  case SW_ARG_LIST:
    h.kind = SW_HOST_LIST;
    h.n_list = a->list.n;
    h.list = SW_NEW_N(l->arena, struct sw_host_arg, a->list.n);
    for (int i = 0; i < a->list.n; i++)
      h.list[i] = host_arg(l, &a->list.v[i]);
    break;
  default:
    break;
  }
  return h;
}

struct sw_host_step *lw_add_host_step(struct lower *l, struct sw_host_step h)
{
  for (int r = 0; r < h.results.n; r++)
    if (h.results.v[r].storage >= 0)
      lw_storage(l, h.results.v[r].storage)->by_host = true;
  struct sw_host_step *p = SW_PUSH(l->arena, &l->program->host_steps);
  *p = h;
  struct sw_step *s = SW_PUSH(l->arena, &l->program->steps);
  s->is_host = true;
  s->index = l->program->host_steps.n - 1;
  return p;
}

const char lw_why_half_only[] = "the device computes this in float16 only, and the graph wants float32";

static const char *reason(struct lower *l, int why)
{
  if (l->node_constant[l->node])
    return "depends on constants only, but their values are not in the file: with weights this is folded";
  if (why == LW_HALF_ONLY)
    return lw_why_half_only;
  if (why == LW_HOST_FLOAT)
    return "works on float32 that comes from the host, whose lanes the device's casts would leave in another order";
  if (why == LW_ELEMENTS)
    return "the device reads and writes whole rows by one list of numbers, not single elements, and does not add rows up";
  const struct lw_operation *o = lw_operation_of(l, lw_node(l));
  if (o && o->kind == LW_HOST && o->note)
    return o->note;
  return "the device has no such operation on these dtypes";
}

void lw_host(struct lower *l, int why)
{
  lw_host_except(l, why, 0);
}

/* "aten.add.Tensor" for "aten.add_.Tensor"; NULL: there is none, or the node writes into a part of a tensor, which stays
 * where it is. */
static const char *functional_target(struct lower *l, const char *target)
{
  const char *mark = strstr(target, "_.");
  struct tensor t = lw_tensor_of(l, &lw_node(l)->args[0]);
  if (!mark || !lw_known(t))
    return NULL;
  const struct sw_storage *s = &l->program->storages.v[t.storage];
  bool whole = !t.offset && s->rank == t.rank && !memcmp(s->size, t.size, (size_t)t.rank * sizeof *t.size) &&
               !memcmp(s->stride, t.stride, (size_t)t.rank * sizeof *t.stride);
  const char *name = sw_arena_printf(l->arena, "%.*s%s", (int)(mark - target), target, mark + 1);
  return whole && sw_schema_find(name) ? name : NULL;
}

void lw_host_except(struct lower *l, int why, uint32_t made)
{
  const struct sw_node *n = lw_node(l);
  for (int r = 0; r < n->n_results; r++) {
    const struct sw_value *v = lw_value(l, r);
    if (v && v->kind != SW_VALUE_TENSOR) {
      lw_refuse(l, "pass it as an argument", "a number that is known at run time only");
      return;
    }
  }
  struct sw_host_step h = {.name = n->name, .target = n->target, .node = l->node, .why = reason(l, why)};
  for (int i = 0; i < n->n_args; i++) {
    const struct sw_arg *a = &n->args[i];
    bool keyword = n->schema && i < n->schema->n_args && n->schema->args[i].keyword_only;
    bool placement = a->kind == SW_ARG_DEVICE || a->kind == SW_ARG_LAYOUT || a->kind == SW_ARG_MEMORY_FORMAT;
    if (keyword && (placement || !a->given))
      continue;
    struct sw_host_arg arg = host_arg(l, a);
    arg.name = keyword ? a->name : NULL;
    *SW_PUSH(l->arena, &h.args) = arg;
  }
  if (l->failed)
    return;
  bool writes = lw_node_writes(l, l->node); /* into its first argument */
  const char *functional = l->best && writes ? functional_target(l, n->target) : NULL;
  if (functional) {
    h.target = functional;
    writes = false;
  }
  for (int r = 0; r < n->n_results; r++) {
    const struct sw_value *v = lw_value(l, r);
    if (!v || made >> r & 1 || (!lw_wanted(l, r) && !lw_node_writes(l, l->node))) {
      *SW_PUSH(l->arena, &h.results) = (struct sw_view){.storage = -1};
      continue;
    }
    struct tensor t = writes && r == 0 ? lw_tensor_of(l, &n->args[0])
                                            : lw_new(l, v->dtype, v->rank, v->size, v->stride);
    *SW_PUSH(l->arena, &h.results) = lw_view_of(t);
    lw_set(l, r, t);
  }
  lw_add_host_step(l, h);
}

struct tensor lw_host_cast(struct lower *l, struct tensor x, enum sw_dtype dtype)
{
  if (sw_dtype_is_complex(dtype) || sw_dtype_is_complex(x.dtype))
    return lw_refuse(l, NULL, "the device has no complex numbers");
  struct tensor t = lw_new(l, dtype, x.rank, x.size, x.stride); /* it lies as PyTorch lays it out: like x */
  struct sw_host_step h = {
      .name = l->program->storages.v[t.storage].name,
      .target = "aten._to_copy.default",
      .node = l->node,
      .why = x.dtype == SW_F32 && (dtype == SW_F16 || dtype == SW_BF16)
                 ? "the device casts pairs of float32 sticks in its own order of lanes; this tensor comes from the host"
             : x.dtype == SW_F8E4M3 && (dtype == SW_F16 || dtype == SW_BF16)
                 ? "the device casts whole sticks of 128 fp8 numbers that it made; this tensor comes from the host or has others"
                 : sw_arena_printf(l->arena, "the device has no cast from %s to %s", sw_dtype_torch(x.dtype), sw_dtype_torch(dtype)),
  };
  *SW_PUSH(l->arena, &h.args) = (struct sw_host_arg){.kind = SW_HOST_VIEW, .view = lw_view_of(x)};
  *SW_PUSH(l->arena, &h.args) = (struct sw_host_arg){
      .kind = SW_HOST_LITERAL, .name = "dtype", .literal = {.name = "dtype", .kind = SW_ARG_DTYPE, .dtype = dtype}};
  *SW_PUSH(l->arena, &h.results) = lw_view_of(t);
  lw_add_host_step(l, h);
  return t;
}

struct tensor lw_host_clone(struct lower *l, struct tensor x, const int64_t *stride, const char *why)
{
  if (!lw_known(x))
    return x;
  struct tensor t = lw_new(l, x.dtype, x.rank, x.size, stride);
  struct sw_host_step h = {.name = l->program->storages.v[t.storage].name, .target = "aten.clone.default", .node = l->node, .why = why};
  *SW_PUSH(l->arena, &h.args) = (struct sw_host_arg){.kind = SW_HOST_VIEW, .view = lw_view_of(x)};
  *SW_PUSH(l->arena, &h.results) = lw_view_of(t);
  lw_add_host_step(l, h);
  return t;
}
