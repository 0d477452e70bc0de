/* What the file said, counted before anything is changed. */
#include "compiler/graph/build.h"

#include <stdlib.h>
#include <string.h>

struct count {
  struct sw_arena *arena;
  struct sw_map index; /* target -> counter */
  SW_VEC(struct sw_op_count) ops;
};

static void add(struct count *c, const char *target)
{
  int64_t i = sw_map_get_str(&c->index, target);
  if (i < 0) {
    sw_map_set_str(&c->index, target, i = c->ops.n);
    *SW_PUSH(c->arena, &c->ops) = (struct sw_op_count){target, 0};
  }
  c->ops.v[i].n++;
}

static int by_target(const void *a, const void *b)
{
  return strcmp(((const struct sw_op_count *)a)->target, ((const struct sw_op_count *)b)->target);
}

/* Nodes of the graphs in an argument. Returns how many graphs stand there directly. */
static int count_graphs(struct count *c, const struct sw_arg *a)
{
  int n = 0;
  if (a->kind == SW_ARG_LIST) {
    for (int i = 0; i < a->list.n; i++)
      n += count_graphs(c, &a->list.v[i]);
  } else if (a->kind == SW_ARG_GRAPH) {
    n = 1;
    for (int i = 0; i < a->graph->nodes.n; i++) {
      const struct sw_node *inner = &a->graph->nodes.v[i];
      add(c, inner->target);
      for (int k = 0; k < inner->n_args; k++)
        count_graphs(c, &inner->args[k]);
    }
  }
  return n;
}

static void count_tensor(struct sw_census *census, const struct sw_value *v)
{
  if (v->kind != SW_VALUE_TENSOR)
    return;
  for (int d = 0; d < v->rank; d++)
    if (v->size_expr && v->size_expr[d])
      return;
  census->static_tensors++;
  int64_t n = sw_value_elements(v);
  if (__builtin_add_overflow(census->static_elements, n, &census->static_elements))
    census->static_elements = INT64_MAX;
}

/* torch.fx takes the results of a node that has several by getitem, unless nobody reads them: then the exporter names
 * them NODE_unused_I. */
static bool is_unused(const struct sw_node *n, const struct sw_value *v)
{
  size_t len = strlen(n->name);
  return !strncmp(v->name, n->name, len) && !strncmp(v->name + len, "_unused_", 8);
}

void sw_graph__census(struct sw_job *job, struct sw_graph *g)
{
  struct sw_arena *a = job->arena;
  struct count ops = {.arena = a, .index = {.arena = a}}, inner = {.arena = a, .index = {.arena = a}};
  struct sw_census *c = &g->census;
  c->nodes = g->nodes.n;
  for (int i = 0; i < g->inputs.n; i++)
    if (g->inputs.v[i].value >= 0)
      count_tensor(c, &g->values.v[g->inputs.v[i].value]);
  for (int i = 0; i < g->nodes.n; i++) {
    const struct sw_node *n = &g->nodes.v[i];
    add(&ops, n->target);
    for (int k = 0; k < n->n_args; k++)
      c->subgraphs += count_graphs(&inner, &n->args[k]);
    for (int k = 0; k < n->n_results; k++) {
      const struct sw_value *v = n->results[k] < 0 ? NULL : &g->values.v[n->results[k]];
      if (!v || is_unused(n, v))
        continue;
      c->getitems += strcmp(v->name, n->name) != 0;
      count_tensor(c, v);
    }
  }
  if (ops.ops.n)
    qsort(ops.ops.v, (size_t)ops.ops.n, sizeof *ops.ops.v, by_target);
  if (inner.ops.n)
    qsort(inner.ops.v, (size_t)inner.ops.n, sizeof *inner.ops.v, by_target);
  c->ops.v = ops.ops.v;
  c->ops.n = ops.ops.n;
  c->subgraph_ops.v = inner.ops.v;
  c->subgraph_ops.n = inner.ops.n;
}
