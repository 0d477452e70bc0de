/* The node at work: its arguments by schema name, its results, its faults. */
#include "compiler/lower/lower.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const struct sw_node *lw_node(const struct lower *l)
{
  static const struct sw_node end = {.name = "output", .target = "output"};
  return l->node < 0 ? &end : &l->graph->nodes.v[l->node];
}

const struct lw_operation *lw_operation_of(struct lower *l, const struct sw_node *n)
{
  const char *target = n->schema ? n->schema->target : n->target; /* an alias goes by its original */
  int64_t at = sw_map_get_str(&l->operations, target);
  const char *dot = strrchr(target, '.');
  char plain[128];
  if (at < 0 && dot && dot > target && dot[-1] == '_' &&
      snprintf(plain, sizeof plain, "%.*s%s", (int)(dot - target - 1), target, dot) < (int)sizeof plain)
    at = sw_map_get_str(&l->operations, plain);
  return at < 0 ? NULL : &lw_operations[at];
}

static const struct sw_arg absent = {.name = "", .kind = SW_ARG_NONE};

const struct sw_arg *lw_arg(struct lower *l, const char *name)
{
  const struct sw_arg *a = sw_node_arg(lw_node(l), name);
  return a ? a : &absent;
}

bool lw_given(struct lower *l, const char *name)
{
  return lw_arg(l, name)->kind != SW_ARG_NONE;
}

bool lw_is_tensor(struct lower *l, const struct sw_arg *a)
{
  return a->kind == SW_ARG_VALUE && l->graph->values.v[a->value].kind == SW_VALUE_TENSOR;
}

struct tensor lw_tensor_of(struct lower *l, const struct sw_arg *a)
{
  if (lw_is_tensor(l, a))
    return lw_tensor_of_value(l, a->value);
  return lw_refuse(l, NULL, "a tensor is expected for argument %s", a->name);
}

struct tensor lw_tensor(struct lower *l, const char *name)
{
  return lw_tensor_of(l, lw_arg(l, name));
}

int64_t lw_number(struct lower *l, int value)
{
  const struct sw_value *v = &l->graph->values.v[value];
  if (v->kind == SW_VALUE_SYM_FLOAT || v->expr)
    lw_refuse(l, "pass it as a constant", "the number %s (%s) is known at run time only", v->name,
              v->expr ? v->expr : "a fraction");
  return v->hint;
}

int64_t lw_int_of(struct lower *l, const struct sw_arg *a)
{
  switch (a->kind) {
  case SW_ARG_INT: case SW_ARG_BOOL:
    return a->i;
  case SW_ARG_REAL:
    return (int64_t)a->r;
  case SW_ARG_VALUE:
    if (!lw_is_tensor(l, a))
      return lw_number(l, a->value);
    lw_refuse(l, "pass a number", "argument %s is a tensor; its value is known at run time only", a->name);
    return 0;
  default:
    return 0;
  }
}

int64_t lw_int(struct lower *l, const char *name)
{
  return lw_int_of(l, lw_arg(l, name));
}

bool lw_bool(struct lower *l, const char *name)
{
  return lw_int(l, name) != 0;
}

double lw_real(struct lower *l, const char *name)
{
  const struct sw_arg *a = lw_arg(l, name);
  return a->kind == SW_ARG_REAL ? a->r : (double)lw_int_of(l, a);
}

int lw_ints(struct lower *l, const char *name, int64_t out[SW_MAX_RANK])
{
  const struct sw_arg *a = lw_arg(l, name);
  if (a->kind == SW_ARG_NONE)
    return 0;
  if (a->kind != SW_ARG_LIST) {
    out[0] = lw_int_of(l, a);
    return 1;
  }
  int n = a->list.n < SW_MAX_RANK ? a->list.n : SW_MAX_RANK;
  for (int i = 0; i < n; i++)
    out[i] = lw_int_of(l, &a->list.v[i]);
  return n;
}

int lw_dim(int64_t dim, int rank)
{
  int64_t d = dim < 0 ? dim + (rank ? rank : 1) : dim;
  return (int)d;
}

const struct sw_value *lw_value(struct lower *l, int result)
{
  const struct sw_node *n = lw_node(l);
  return result < n->n_results && n->results[result] >= 0 ? &l->graph->values.v[n->results[result]] : NULL;
}

enum sw_dtype lw_dtype_of_value(struct lower *l, int value)
{
  const struct lw_value *v = &l->values[value];
  return v->narrow ? v->narrow_bf16 ? SW_BF16 : SW_F16 : l->graph->values.v[value].dtype;
}

enum sw_dtype lw_result_dtype(struct lower *l, int result)
{
  return lw_dtype_of_value(l, lw_node(l)->results[result]);
}

bool lw_wanted(struct lower *l, int result)
{
  const struct sw_node *n = lw_node(l);
  return result < n->n_results && n->results[result] >= 0 && l->values[n->results[result]].live;
}

/* An intermediate of this node that becomes a result takes the value's name. */
/* What has another size than the graph declares comes of operands that don't fit: no op may read it by the declared one. */
static struct tensor as_declared(struct lower *l, const struct sw_value *v, struct tensor t)
{
  bool same = !lw_known(t) || t.rank == v->rank;
  for (int d = 0; same && lw_known(t) && d < t.rank; d++)
    same = t.size[d] == v->size[d];
  if (same)
    return t;
  return lw_refuse(l, "export the model with shapes that PyTorch ran", "%s is not of the size that its operands give", v->name);
}

void lw_set(struct lower *l, int result, struct tensor t)
{
  const struct sw_value *v = lw_value(l, result);
  if (!v)
    return;
  t = as_declared(l, v, t);
  if (lw_known(t) && t.storage >= l->first_storage) {
    struct sw_storage *s = &l->program->storages.v[t.storage];
    if (s->kind == SW_STORAGE_TEMPORARY && s->name[0] && strchr(s->name, ':'))
      s->name = v->name;
  }
  if (lw_known(t)) {
    struct lw_storage *s = lw_storage(l, t.storage);
    const struct lw_value *root = &l->values[l->values[lw_node(l)->results[result]].root];
    s->last_use = root->last_use > s->last_use ? root->last_use : s->last_use;
    s->mutated = s->mutated || root->mutated;
  }
  lw_pin_strides(l, lw_node(l)->results[result], &t);
  if (lw_known(t) && l->values[lw_node(l)->results[result]].looked_at)
    lw_storage(l, t.storage)->settled = true;
  l->tensors[lw_node(l)->results[result]] = t;
}

struct tensor lw_refuse(struct lower *l, const char *advice, const char *fmt, ...)
{
  if (!l->failed) {
    l->failed = true;
    const struct sw_node *n = lw_node(l);
    char text[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    struct sw_fault *f = sw_fault(l->job, SW_UNSUPPORTED, "%s: %s", n->target, text);
    f->node = n->name;
    f->source = n->source;
    f->advice = advice;
    const struct sw_value *v = lw_value(l, 0);
    if (v && v->kind == SW_VALUE_TENSOR)
      f->tensor = v->name;
  }
  return lw_unknown();
}
