/* What every later pass may rely on: a node reads inputs and results of earlier nodes only, results match the schema,
 * sizes are sane and their products fit 63 bits. */
#include "compiler/graph/build.h"

#include <inttypes.h>
#include <string.h>

struct check {
  struct sw_job *job;
  struct sw_graph *graph;
};

static void at_node(struct sw_fault *f, const struct sw_node *n)
{
  f->node = n->name;
  f->source = n->source;
}

/* Largest index of the tensor, or false when it or the number of bytes leaves 63 bits. */
static bool extent_fits(const struct sw_value *v)
{
  int64_t elements = sw_dtype_bytes(v->dtype), last = v->offset, step;
  bool empty = false;
  for (int d = 0; d < v->rank; d++)
    empty |= v->size[d] == 0;
  for (int d = 0; d < v->rank; d++) {
    if (__builtin_mul_overflow(elements, v->size[d] ? v->size[d] : 1, &elements))
      return false;
    if (!empty && (__builtin_mul_overflow(v->size[d] - 1, v->stride[d], &step) ||
                   __builtin_add_overflow(last, step, &last)))
      return false;
  }
  return true;
}

bool sw_graph__is_sane(const struct sw_value *v)
{
  for (int d = 0; d < v->rank; d++)
    if (v->size[d] < 0 || v->stride[d] < 0)
      return false;
  return v->offset >= 0 && extent_fits(v);
}

static void check_value(const struct check *c, const struct sw_value *v)
{
  if (v->kind != SW_VALUE_TENSOR || sw_graph__is_sane(v))
    return;
  const char *node = v->node >= 0 ? c->graph->nodes.v[v->node].name : NULL;
  struct sw_fault *f = NULL;
  for (int d = 0; d < v->rank && !f; d++)
    if (v->size[d] < 0 || v->stride[d] < 0)
      f = sw_fault(c->job, SW_INVALID, "tensor %s: %s of dim %d is %" PRId64, v->name,
                   v->size[d] < 0 ? "size" : "stride", d, v->size[d] < 0 ? v->size[d] : v->stride[d]);
  if (!f && v->offset < 0)
    f = sw_fault(c->job, SW_INVALID, "tensor %s: storage offset is %" PRId64, v->name, v->offset);
  if (!f)
    f = sw_fault(c->job, SW_INVALID, "tensor %s: its size in bytes does not fit 63 bits", v->name);
  f->node = node;
  f->tensor = v->name;
}

static void check_arg(const struct check *c, int node, const struct sw_arg *a)
{
  if (a->kind == SW_ARG_LIST) {
    for (int i = 0; i < a->list.n; i++)
      check_arg(c, node, &a->list.v[i]);
  } else if (a->kind == SW_ARG_GRAPH) {
    sw_graph__verify(c->job, a->graph);
  } else if (a->kind == SW_ARG_VALUE) {
    const struct sw_value *v = &c->graph->values.v[a->value];
    if (v->node < node)
      return;
    const struct sw_node *n = &c->graph->nodes.v[node];
    struct sw_fault *f =
        v->node == node
            ? sw_fault(c->job, SW_INVALID, "%s reads its own result %s: a cycle", n->name, v->name)
            : sw_fault(c->job, SW_INVALID, "%s reads %s, a result of the later node %s: a cycle or a wrong order",
                       n->name, v->name, c->graph->nodes.v[v->node].name);
    at_node(f, n);
    f->tensor = v->name;
  }
}

/* Operands of a higher-order op: elements of its lists (cond, while_loop; pt2.md section 9). */
static void check_operands(const struct check *c, const struct sw_node *n)
{
  bool known = !strcmp(n->target, "higher_order.cond") || !strcmp(n->target, "higher_order.while_loop");
  int operands = 0;
  for (int i = 0; known && i < n->n_args; i++)
    if (n->args[i].kind == SW_ARG_LIST)
      operands += n->args[i].list.n;
  for (int i = 0; known && i < n->n_args; i++)
    if (n->args[i].kind == SW_ARG_GRAPH && n->args[i].graph->inputs.n != operands)
      at_node(sw_fault(c->job, SW_INVALID, "%s: graph %s has %d inputs for %d operands", n->name,
                       n->args[i].graph->name, n->args[i].graph->inputs.n, operands),
              n);
}

/* One result a return type; only a Tensor[] has as many as it likes. The first is defined: no operator that we know does
 * without, and later passes look at it; further ones may be missing. */
static void check_results(const struct check *c, const struct sw_node *n)
{
  const struct sw_schema *s = n->schema;
  if (s && n->n_results && n->results[0] < 0)
    at_node(sw_fault(c->job, SW_INVALID, "%s: the first result of %s has no name; name it, read or not", n->name, n->target), n);
  if (!s || (s->n_returns == 1 && strstr(s->returns[0], "[]")) || s->n_returns == n->n_results)
    return;
  at_node(sw_fault(c->job, SW_INVALID, "%s: %s has %d results, %d expected", n->name, n->target, n->n_results,
                   s->n_returns),
          n);
}

/* A mutation writes back into an input: it must exist, and is found here. */
static void check_mutation(const struct check *c, struct sw_output *o, const struct sw_map *inputs)
{
  int64_t i = sw_map_get_str(inputs, o->target ? o->target : "");
  o->input = (int)i;
  if (i < 0) {
    sw_fault(c->job, SW_INVALID, "output: %s can't be mutated: it is no input and no buffer", o->target)->tensor =
        o->target;
    return;
  }
  if (o->arg.kind != SW_ARG_VALUE || c->graph->values.v[o->arg.value].kind != SW_VALUE_TENSOR)
    sw_fault(c->job, SW_INVALID, "output: the new value of %s is no tensor", o->target)->tensor = o->target;
}

static void check_outputs(const struct check *c)
{
  struct sw_arena *scratch = sw_arena_new(c->job->arena, 0);
  struct sw_map buffers = {.arena = scratch}, users = {.arena = scratch};
  for (int i = 0; i < c->graph->inputs.n; i++) {
    const struct sw_input *in = &c->graph->inputs.v[i];
    if (in->kind == SW_INPUT_USER && in->value >= 0)
      sw_map_set_str(&users, in->name, i);
    else if (in->target)
      sw_map_set_str(&buffers, in->target, i);
  }
  for (int i = 0; i < c->graph->outputs.n; i++) {
    struct sw_output *o = &c->graph->outputs.v[i];
    if (o->kind != SW_OUTPUT_USER)
      check_mutation(c, o, o->kind == SW_OUTPUT_BUFFER_MUTATION ? &buffers : &users);
  }
  sw_arena_free(scratch);
}

/* Faults and reports name nodes. */
static void check_node_names(const struct check *c)
{
  struct sw_arena *scratch = sw_arena_new(c->job->arena, 0);
  struct sw_map names = {.arena = scratch};
  for (int i = 0; i < c->graph->nodes.n; i++)
    if (sw_map_set_str(&names, c->graph->nodes.v[i].name, i) >= 0)
      at_node(sw_fault(c->job, SW_INVALID, "two nodes are named %s", c->graph->nodes.v[i].name), &c->graph->nodes.v[i]);
  sw_arena_free(scratch);
}

void sw_graph__verify(struct sw_job *job, struct sw_graph *g)
{
  struct check c = {job, g};
  check_node_names(&c);
  for (int i = 0; i < g->values.n; i++)
    check_value(&c, &g->values.v[i]);
  for (int i = 0; i < g->nodes.n; i++) {
    const struct sw_node *n = &g->nodes.v[i];
    for (int k = 0; k < n->n_args; k++)
      check_arg(&c, i, &n->args[k]);
    check_results(&c, n);
    check_operands(&c, n);
  }
  check_outputs(&c);
}
