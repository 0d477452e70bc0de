/* Higher-order ops that only run a graph (wrap_with_set_grad_enabled, wrap_with_autocast: pt2.md section 9) are
 * replaced by the nodes of that graph, at any depth and also inside graphs of cond and while_loop.
 *
 * In an autocast region PyTorch casts the float operands of matmuls and convolutions when they run. The exported graph
 * shows it in the result's dtype only (matmul of two float32 is bfloat16), so the casts are written out here, as
 * run_decompositions() does.
 *
 * A new graph is built in one walk. Every graph that is walked has a table: its value -> value of the new graph. An
 * operand's number goes into the table of the inner graph, a result of the wrapper becomes what the inner graph
 * returns. A value made inside takes the wrapper's name for it where that is free, so that names of outputs stay; other
 * inner names get _1, _2, .. where the outer graph uses them already. */
#include "compiler/graph/build.h"

#include <string.h>

static bool is_wrapper(const struct sw_node *n)
{
  return !strcmp(n->target, "higher_order.wrap_with_set_grad_enabled") ||
         !strcmp(n->target, "higher_order.wrap_with_autocast");
}

static bool has_wrapper(const struct sw_graph *g);

static bool arg_has_wrapper(const struct sw_arg *a)
{
  if (a->kind == SW_ARG_LIST)
    for (int i = 0; i < a->list.n; i++)
      if (arg_has_wrapper(&a->list.v[i]))
        return true;
  return a->kind == SW_ARG_GRAPH && has_wrapper(a->graph);
}

static bool has_wrapper(const struct sw_graph *g)
{
  for (int i = 0; i < g->nodes.n; i++) {
    if (is_wrapper(&g->nodes.v[i]))
      return true;
    for (int k = 0; k < g->nodes.v[i].n_args; k++)
      if (arg_has_wrapper(&g->nodes.v[i].args[k]))
        return true;
  }
  return false;
}

struct inliner {
  struct sw_job *job;
  struct sw_graph *out;
  struct sw_map names; /* taken by values or nodes -> the number to try next behind them */
};

/* `name` where it is free, else name_1, name_2, .. */
static const char *unique(struct inliner *in, const char *name)
{
  struct sw_map *taken = &in->names;
  int64_t n = sw_map_get_str(taken, name);
  if (n < 0) {
    sw_map_set_str(taken, name, 1);
    return name;
  }
  const char *text;
  do
    text = sw_arena_printf(in->job->arena, "%s_%lld", name, (long long)n++);
  while (sw_map_get_str(taken, text) >= 0);
  sw_map_set_str(taken, name, n);
  sw_map_set_str(taken, text, 1);
  return text;
}

static struct sw_arg translate(struct inliner *in, const struct sw_arg *a, const int *table)
{
  struct sw_arg b = *a;
  if (a->kind == SW_ARG_VALUE)
    b.value = table[a->value];
  else if (a->kind == SW_ARG_GRAPH)
    b.graph = sw_graph__inline(in->job, a->graph);
  else if (a->kind == SW_ARG_LIST) {
    b.list.v = SW_NEW_N(in->job->arena, struct sw_arg, a->list.n);
    for (int i = 0; i < a->list.n; i++)
      b.list.v[i] = translate(in, &a->list.v[i], table);
  }
  return b;
}

/* One graph that is walked. */
struct region {
  const struct sw_graph *g;
  int *table;              /* its values -> values of the new graph */
  bool is_top;
  const char *const *wish; /* names that the surrounding graph has for its values, reserved for them */
  enum sw_dtype autocast;  /* SW_N_DTYPES: none */
};

static int copy_value(struct inliner *in, const struct sw_value *v, const char *name, int node)
{
  struct sw_value *c = SW_PUSH(in->job->arena, &in->out->values);
  *c = *v;
  c->name = name;
  c->node = node;
  return in->out->values.n - 1;
}

static void copy_nodes(struct inliner *in, const struct region *r);

/* Where the graph argument of a wrapper stands, or -1. */
static int graph_arg(const struct sw_node *n)
{
  for (int i = 0; i < n->n_args; i++)
    if (n->args[i].kind == SW_ARG_GRAPH)
      return i;
  return -1;
}

static bool wrapper_fault(struct inliner *in, const struct sw_node *n, const char *what)
{
  sw_fault(in->job, SW_INVALID, "%s: %s", n->target, what)->node = n->name;
  return false;
}

/* wrap_with_autocast(device type, dtype, enabled, cache, graph, operands..): the dtype, or what holds outside. */
static enum sw_dtype autocast_of(const struct sw_node *n, enum sw_dtype outside)
{
  if (strcmp(n->target, "higher_order.wrap_with_autocast") || n->n_args < 3)
    return outside;
  bool enabled = n->args[2].kind != SW_ARG_BOOL || n->args[2].i;
  return enabled && n->args[1].kind == SW_ARG_DTYPE ? n->args[1].dtype : SW_N_DTYPES;
}

static bool expand(struct inliner *in, const struct region *r, const struct sw_node *n)
{
  struct sw_arena *a = in->job->arena;
  const struct sw_graph *g = r->g;
  int *table = r->table;
  int at = graph_arg(n);
  const struct sw_graph *inner = at < 0 ? NULL : n->args[at].graph;
  if (!inner)
    return wrapper_fault(in, n, "it has no graph");
  if (inner->inputs.n != n->n_args - at - 1 || inner->outputs.n != n->n_results)
    return wrapper_fault(in, n, "operands or results are not as many as its graph's inputs or outputs");
  int *inner_table = SW_NEW_N(a, int, inner->values.n);
  for (int i = 0; i < inner->inputs.n; i++) {
    const struct sw_arg *operand = &n->args[at + 1 + i];
    if (inner->inputs.v[i].value < 0)
      continue;
    if (operand->kind != SW_ARG_VALUE)
      return wrapper_fault(in, n, "an operand is no value");
    inner_table[inner->inputs.v[i].value] = table[operand->value];
  }
  const char **wish = SW_NEW_N(a, const char *, inner->values.n);
  for (int i = 0; i < n->n_results; i++) {
    const struct sw_arg *o = &inner->outputs.v[i].arg;
    if (o->kind == SW_ARG_VALUE && n->results[i] >= 0 && !wish[o->value])
      wish[o->value] = g->values.v[n->results[i]].name;
  }
  struct region region = {inner, inner_table, false, wish, autocast_of(n, r->autocast)};
  copy_nodes(in, &region);
  for (int i = 0; i < n->n_results; i++) {
    const struct sw_arg *o = &inner->outputs.v[i].arg;
    if (n->results[i] >= 0 && o->kind != SW_ARG_VALUE)
      return wrapper_fault(in, n, "its graph returns something else than a value");
    if (n->results[i] >= 0)
      table[n->results[i]] = inner_table[o->value];
  }
  return true;
}

/* Ops that run in the region's dtype (torch's list for lower precision). */
static bool is_autocast_op(const char *target)
{
  static const char *const packets[] = {
      "linear", "matmul", "mm",     "bmm",    "addmm",  "baddbmm", "addbmm",
      "addmv",  "mv",     "conv1d", "conv2d", "conv3d", "scaled_dot_product_attention",
  };
  if (strncmp(target, "aten.", 5))
    return false;
  size_t n = strcspn(target + 5, ".");
  for (size_t i = 0; i < sizeof packets / sizeof packets[0]; i++)
    if (strlen(packets[i]) == n && !memcmp(packets[i], target + 5, n))
      return true;
  return !strncmp(target + 5, "conv_transpose", 14);
}

/* A node that casts value `id`; gives its result. */
static int cast(struct inliner *in, int id, enum sw_dtype dtype, const struct sw_node *for_node)
{
  const struct sw_schema *s = sw_schema_find("aten.to.dtype");
  struct sw_arena *a = in->job->arena;
  if (!s)
    return id;
  const struct sw_value v = in->out->values.v[id];
  struct sw_node *n = SW_PUSH(a, &in->out->nodes);
  int number = in->out->nodes.n - 1;
  const char *name = unique(in, sw_arena_printf(a, "%s_%s", v.name, sw_dtype_text(dtype)));
  int result = copy_value(in, &v, name, number);
  struct sw_value *c = &in->out->values.v[result];
  c->dtype = dtype;
  c->result = 0;
  c->offset = 0;
  *n = (struct sw_node){.name = name, .target = s->target, .schema = s, .source = for_node->source,
                        .module = for_node->module, .n_args = s->n_args, .n_results = 1};
  n->results = sw_arena_copy(a, &result, 1, sizeof result);
  n->args = SW_NEW_N(a, struct sw_arg, s->n_args);
  for (int k = 0; k < s->n_args; k++) {
    n->args[k] = s->args[k].def;
    n->args[k].name = s->args[k].name;
  }
  n->args[0].kind = SW_ARG_VALUE;
  n->args[0].value = id;
  n->args[1].kind = SW_ARG_DTYPE;
  n->args[1].dtype = dtype;
  n->args[0].given = n->args[1].given = true;
  return result;
}

/* Casts the operands of a node in an autocast region; only where its result says that PyTorch did. */
static void cast_operands(struct inliner *in, const struct region *r, const struct sw_node *n, struct sw_arg *args)
{
  if (r->autocast == SW_N_DTYPES || !is_autocast_op(n->target) || n->n_results != 1 || n->results[0] < 0 ||
      r->g->values.v[n->results[0]].dtype != r->autocast)
    return;
  for (int k = 0; k < n->n_args; k++) {
    if (args[k].kind != SW_ARG_VALUE)
      continue;
    const struct sw_value *v = &in->out->values.v[args[k].value];
    if (v->kind == SW_VALUE_TENSOR && sw_dtype_is_float(v->dtype) && v->dtype != SW_F64 && v->dtype != r->autocast)
      args[k].value = cast(in, args[k].value, r->autocast, n);
  }
}

static const char *new_name(struct inliner *in, const struct region *r, int value)
{
  const char *name = r->g->values.v[value].name;
  if (r->is_top)
    return name;
  return r->wish[value] ? r->wish[value] : unique(in, name);
}

static void copy_node(struct inliner *in, const struct region *r, const struct sw_node *n)
{
  struct sw_arena *a = in->job->arena;
  struct sw_node c = *n;
  c.args = SW_NEW_N(a, struct sw_arg, n->n_args);
  for (int k = 0; k < n->n_args; k++)
    c.args[k] = translate(in, &n->args[k], r->table);
  cast_operands(in, r, n, c.args);
  c.results = SW_NEW_N(a, int, n->n_results);
  bool named_like_result = false;
  for (int k = 0; k < n->n_results; k++) {
    c.results[k] = -1;
    if (n->results[k] < 0)
      continue;
    const struct sw_value *v = &r->g->values.v[n->results[k]];
    const char *name = new_name(in, r, n->results[k]);
    if (n->n_results == 1 && !strcmp(n->name, v->name)) {
      c.name = name;
      named_like_result = true;
    }
    c.results[k] = r->table[n->results[k]] = copy_value(in, v, name, in->out->nodes.n);
  }
  if (!r->is_top && !named_like_result)
    c.name = unique(in, n->name);
  *SW_PUSH(a, &in->out->nodes) = c;
}

static void copy_nodes(struct inliner *in, const struct region *r)
{
  for (int i = 0; i < r->g->nodes.n; i++) {
    const struct sw_node *n = &r->g->nodes.v[i];
    if (!is_wrapper(n))
      copy_node(in, r, n);
    else if (!expand(in, r, n))
      return;
  }
}

struct sw_graph *sw_graph__inline(struct sw_job *job, struct sw_graph *g)
{
  if (!has_wrapper(g))
    return g;
  struct sw_arena *a = job->arena;
  struct sw_graph *out = SW_NEW(a, struct sw_graph);
  *out = *g;
  memset(&out->values, 0, sizeof out->values);
  memset(&out->nodes, 0, sizeof out->nodes);
  memset(&out->inputs, 0, sizeof out->inputs);
  memset(&out->outputs, 0, sizeof out->outputs);
  struct inliner in = {.job = job, .out = out, .names = {.arena = a}};
  for (int i = 0; i < g->values.n; i++)
    sw_map_set_str(&in.names, g->values.v[i].name, 1);
  for (int i = 0; i < g->nodes.n; i++)
    sw_map_set_str(&in.names, g->nodes.v[i].name, 1);
  int *table = SW_NEW_N(a, int, g->values.n);
  for (int i = 0; i < g->inputs.n; i++) {
    struct sw_input *c = SW_PUSH(a, &out->inputs);
    *c = g->inputs.v[i];
    if (c->value < 0)
      continue;
    const struct sw_value *v = &g->values.v[c->value];
    table[c->value] = copy_value(&in, v, v->name, -1);
    c->value = table[g->inputs.v[i].value];
  }
  struct region top = {g, table, true, NULL, SW_N_DTYPES};
  copy_nodes(&in, &top);
  for (int i = 0; i < g->outputs.n; i++) {
    struct sw_output *o = SW_PUSH(a, &out->outputs);
    *o = g->outputs.v[i];
    o->arg = translate(&in, &g->outputs.v[i].arg, table);
  }
  return out;
}
