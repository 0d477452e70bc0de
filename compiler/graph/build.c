/* What both readers need: names, and arguments matched with a schema. */
#include "compiler/graph/build.h"

#include <string.h>

int sw_graph__value(struct sw_names *names, const char *name)
{
  int64_t i = sw_map_get_str(&names->values, name);
  if (i >= 0)
    return (int)i;
  struct sw_graph *g = names->graph;
  i = g->values.n;
  sw_map_set_str(&names->values, name, i);
  struct sw_value *v = SW_PUSH(names->job->arena, &g->values);
  v->name = sw_arena_strdup(names->job->arena, name);
  v->node = SW_NODE_UNDEFINED;
  return (int)i;
}

bool sw_graph__row_major(int rank, const int64_t *size, int64_t *stride)
{
  int64_t step = 1;
  for (int d = rank - 1; d >= 0; d--) {
    stride[d] = step;
    if (__builtin_mul_overflow(step, size[d] > 1 ? size[d] : 1, &step))
      return false;
  }
  return true;
}

const json_t *sw_graph__json(struct sw_job *job, struct sw_arena *scratch, const char *what, const char *text,
                             size_t len, size_t max_values)
{
  struct sw_job inner = {.arena = scratch, .cancel = job->cancel};
  const json_t *root = sw_json_parse(&inner, what, text, len, max_values);
  for (int i = 0; i < inner.faults.n; i++) {
    const struct sw_fault *f = &inner.faults.v[i];
    struct sw_fault *copy = sw_fault(job, f->rc, "%s", f->detail);
    copy->has_limit = f->has_limit;
    copy->value = f->value;
    copy->limit = f->limit;
  }
  return root;
}

int64_t sw_value_elements(const struct sw_value *v)
{
  int64_t n = 1;
  for (int d = 0; d < v->rank; d++)
    n *= v->size[d];
  return n;
}

/* -- fitting one argument to its type -- */

enum fit { NO_FIT, LOOSE, EXACT }; /* loose: a number where the schema says Tensor (pt2.md section 4) */

static bool is_symbol(const struct sw_names *names, const struct sw_arg *a)
{
  return a->kind == SW_ARG_VALUE && names->graph->values.v[a->value].kind != SW_VALUE_TENSOR;
}

static bool is_number(const struct sw_arg *a)
{
  return a->kind == SW_ARG_INT || a->kind == SW_ARG_REAL || a->kind == SW_ARG_BOOL;
}

/* Whether a thing that is no list fits, and the argument in the schema's form. */
static enum fit fit_one(const struct sw_names *names, struct sw_arg *a, enum sw_type_base base)
{
  bool symbol = is_symbol(names, a);
  switch (base) {
  case SW_TYPE_TENSOR:
    return symbol || is_number(a) ? LOOSE : a->kind == SW_ARG_VALUE ? EXACT : NO_FIT;
  case SW_TYPE_SCALAR:
    return symbol || is_number(a) ? EXACT : a->kind == SW_ARG_VALUE ? LOOSE : NO_FIT;
  case SW_TYPE_INT:
    if (a->kind == SW_ARG_BOOL)
      a->kind = SW_ARG_INT;
    return symbol || a->kind == SW_ARG_INT ? EXACT : NO_FIT;
  case SW_TYPE_FLOAT:
    if (a->kind == SW_ARG_INT) {
      a->kind = SW_ARG_REAL;
      a->r = (double)a->i;
    }
    return symbol || a->kind == SW_ARG_REAL ? EXACT : NO_FIT;
  case SW_TYPE_BOOL:
    return symbol || a->kind == SW_ARG_BOOL ? EXACT : NO_FIT;
  case SW_TYPE_STR:
    return a->kind == SW_ARG_STR ? EXACT : NO_FIT;
  case SW_TYPE_DTYPE:
    return a->kind == SW_ARG_DTYPE ? EXACT : NO_FIT;
  case SW_TYPE_LAYOUT:
    return a->kind == SW_ARG_LAYOUT ? EXACT : NO_FIT;
  case SW_TYPE_MEMORY_FORMAT:
    return a->kind == SW_ARG_MEMORY_FORMAT ? EXACT : NO_FIT;
  case SW_TYPE_DEVICE:
    if (a->kind == SW_ARG_STR)
      a->kind = SW_ARG_DEVICE;
    return a->kind == SW_ARG_DEVICE ? EXACT : NO_FIT;
  case SW_TYPE_OTHER:
    return EXACT;
  }
  return NO_FIT;
}

/* Puts an argument into the schema's form; the list of `a` is replaced, never changed in place. */
static enum fit fit(const struct sw_names *names, struct sw_arg *a, struct sw_type t)
{
  if (a->kind == SW_ARG_NONE)
    return t.is_optional ? EXACT : NO_FIT;
  if (!t.is_list)
    return a->kind == SW_ARG_LIST ? NO_FIT : fit_one(names, a, t.base);
  bool one_for_all = a->kind != SW_ARG_LIST && t.length;
  if (a->kind != SW_ARG_LIST && !one_for_all)
    return NO_FIT;
  int n = one_for_all ? t.length : a->list.n;
  struct sw_arg *v = SW_NEW_N(names->job->arena, struct sw_arg, n);
  enum fit worst = EXACT;
  for (int i = 0; i < n; i++) {
    v[i] = one_for_all ? *a : a->list.v[i];
    v[i].name = "";
    enum fit f = v[i].kind == SW_ARG_NONE ? (t.element_is_optional ? EXACT : NO_FIT)
                 : v[i].kind == SW_ARG_LIST ? NO_FIT
                                            : fit_one(names, &v[i], t.base);
    worst = f < worst ? f : worst;
  }
  a->kind = SW_ARG_LIST;
  a->list.v = v;
  a->list.n = n;
  return worst;
}

/* Number of the schema's argument that `w` (i-th as written) means, or -1. */
static int slot_of(const struct sw_schema *s, const struct sw_written *w, int i)
{
  if (!w->name)
    return i < s->n_args && !s->args[i].keyword_only ? i : -1;
  for (int k = 0; k < s->n_args; k++)
    if (!strcmp(s->args[k].name, w->name))
      return k;
  return -1;
}

static const char *describe(const struct sw_names *names, const struct sw_arg *a)
{
  static const char *const words[] = {
      [SW_ARG_NONE] = "None",       [SW_ARG_INT] = "an int",          [SW_ARG_REAL] = "a float",
      [SW_ARG_BOOL] = "a bool",     [SW_ARG_STR] = "a string",        [SW_ARG_DTYPE] = "a dtype",
      [SW_ARG_LAYOUT] = "a layout", [SW_ARG_MEMORY_FORMAT] = "a memory format", [SW_ARG_DEVICE] = "a device",
      [SW_ARG_LIST] = "a list",     [SW_ARG_GRAPH] = "a graph",
  };
  if (a->kind != SW_ARG_VALUE)
    return words[a->kind];
  return sw_arena_printf(names->job->arena, "%s %%%s", is_symbol(names, a) ? "symbolic number" : "tensor",
                         names->graph->values.v[a->value].name);
}

static void misfit(struct sw_names *names, const struct sw_node *node, const char *text)
{
  sw_fault(names->job, SW_INVALID, "%s: %s", node->target, text)->node = node->name;
}

void sw_graph__bind(struct sw_names *names, struct sw_node *node, const struct sw_written *w, int n)
{
  struct sw_arena *a = names->job->arena;
  const struct sw_schema *s = node->schema;
  node->n_args = s ? s->n_args : n;
  node->args = SW_NEW_N(a, struct sw_arg, node->n_args);
  if (!s) {
    for (int i = 0; i < n; i++) {
      node->args[i] = w[i].arg;
      node->args[i].name = w[i].name ? w[i].name : "";
      node->args[i].given = true;
    }
    return;
  }
  for (int i = 0; i < n; i++) {
    int k = slot_of(s, &w[i], i);
    if (k < 0 && w[i].name)
      misfit(names, node, sw_arena_printf(a, "has no argument %s", w[i].name));
    else if (k < 0)
      misfit(names, node, sw_arena_printf(a, "takes fewer positional arguments than %d", i + 1));
    else if (node->args[k].given)
      misfit(names, node, sw_arena_printf(a, "argument %s is given twice", s->args[k].name));
    if (k < 0 || node->args[k].given)
      continue;
    struct sw_arg *arg = &node->args[k];
    *arg = w[i].arg;
    arg->given = true;
    if (!fit(names, arg, sw_schema__type(s->args[k].type)))
      misfit(names, node,
             sw_arena_printf(a, "argument %s is %s, expected %s", s->args[k].name, describe(names, arg),
                             s->args[k].type));
  }
  for (int k = 0; k < s->n_args; k++) {
    struct sw_arg *arg = &node->args[k];
    if (!arg->given && s->args[k].has_default)
      *arg = s->args[k].def;
    else if (!arg->given)
      misfit(names, node, sw_arena_printf(a, "argument %s is missing", s->args[k].name));
    arg->name = s->args[k].name;
  }
}

/* -- names without overload -- */

static enum fit fit_all(const struct sw_names *names, const struct sw_schema *s, const struct sw_written *w, int n)
{
  enum fit worst = EXACT;
  bool *given = SW_NEW_N(names->job->arena, bool, s->n_args);
  for (int i = 0; i < n; i++) {
    int k = slot_of(s, &w[i], i);
    if (k < 0 || given[k])
      return NO_FIT;
    given[k] = true;
    struct sw_arg copy = w[i].arg;
    enum fit f = fit(names, &copy, sw_schema__type(s->args[k].type));
    worst = f < worst ? f : worst;
  }
  for (int k = 0; k < s->n_args; k++)
    if (!given[k] && !s->args[k].has_default)
      return NO_FIT;
  return worst;
}

const struct sw_schema *sw_graph__overload(struct sw_names *names, const char *packet, const struct sw_written *w,
                                           int n, const char **why)
{
  const struct sw_schema *all, *best = NULL;
  int n_all = sw_schema__packet(packet, &all), n_best = 0;
  if (n_all == 1)
    return all;
  struct sw_buf list = {.arena = names->job->arena};
  enum fit best_fit = LOOSE;
  for (int i = 0; i < n_all; i++) {
    enum fit f = fit_all(names, &all[i], w, n);
    if (f > best_fit || (f && f == best_fit && !n_best)) {
      best = &all[i];
      best_fit = f;
      n_best = 1;
    } else if (f && f == best_fit) {
      n_best++;
    }
    sw_buf_printf(&list, "%s%s", i ? ", " : "", all[i].target);
  }
  *why = sw_arena_printf(names->job->arena, "%s: %s fits these arguments; write one of %s", packet,
                         n_best ? "more than one overload" : "no overload", sw_buf_text(&list));
  return n_best == 1 ? best : NULL;
}
