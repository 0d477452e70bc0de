/* Float32 regions that are computed in fp16.
 *
 * A region is what hangs together by float32 values: the results and operands of all nodes between casts from fp16 and
 * casts back. It is closed when it touches the outside by such casts alone: no float32 input or result of the program,
 * no cast to integers, no host step. A closed region is computed in fp16, and named in a warning,
 *
 *  - when it holds a node that the device has in fp16 only (it has no float32 matrix product, choice, tanh..);
 *  - in profile best when all of it, casts included, is the decomposition of one node: core ATen spells an fp16 rms_norm
 *    out in float32, because PyTorch's kernel computes so. The other dialect says rms_norm, which the device has in fp16
 *    (ops.md 5.4), and both dialects of a model are one program. Who writes x.float() means it: that cast is a node of its
 *    own before the decomposition too.
 *
 * Anything else stays float32, and what is missing is refused. --precision=strict leaves all regions alone.
 * Reference: ops.md 1.2, pt2.md 8 (from_node) and 12. */
#include "compiler/lower/families.h"

#include <string.h>

struct regions {
  struct lower *l;
  int *parent;     /* union-find over values */
  bool *open;      /* of a root: touches the outside otherwise */
  bool *lacking;   /* of a root: holds a node the device has in fp16 only */
  bool *bf16;      /* of a root: its casts are from bfloat16 */
  const char **origin; /* of a root: what all its nodes were decomposed from; NULL: no node yet */
};

static const char several[] = ""; /* origins, or one unknown */

static void meet(struct regions *r, int root, const char *origin)
{
  const char *known = r->origin[root];
  r->origin[root] = !origin || (known && strcmp(known, origin)) ? several : origin;
}

static int find(struct regions *r, int v)
{
  while (r->parent[v] != v)
    v = r->parent[v] = r->parent[r->parent[v]];
  return v;
}

static void join(struct regions *r, int a, int b)
{
  a = find(r, a);
  b = find(r, b);
  int root = a < b ? a : b, other = a < b ? b : a;
  r->parent[other] = root;
  r->open[root] = r->open[root] || r->open[other];
  r->lacking[root] = r->lacking[root] || r->lacking[other];
  r->bf16[root] = r->bf16[root] || r->bf16[other];
  if (r->origin[other])
    meet(r, root, r->origin[other]);
}

static bool is_float32(const struct lower *l, int value)
{
  const struct sw_value *v = &l->graph->values.v[value];
  return v->kind == SW_VALUE_TENSOR && v->dtype == SW_F32 && !l->values[value].constant;
}

static bool is_cast(const struct sw_node *n)
{
  static const char *const casts[] = {"aten._to_copy.default", "aten.to.dtype", "aten.to.dtype_layout", "aten.type_as.default",
                                      "prims.convert_element_type.default"};
  for (size_t i = 0; i < sizeof casts / sizeof casts[0]; i++)
    if (!strcmp(n->target, casts[i]))
      return true;
  return false;
}

/* The device masks a padded float32 stick wrongly (ops.md 1.2), so a reduction over a last dim that is no multiple of 32 is
 * as good as missing; and one of half a pair of sticks, the 32 elements of one row, where no other dim can be the stick. */
static bool reduces_padded_stick(const struct lower *l, const struct sw_node *n)
{
  static const char *const reductions[] = {"aten.sum.dim_IntList", "aten.mean.dim", "aten.amax.default", "aten.amin.default",
                                           "aten._softmax.default", "aten.softmax.int", "aten._log_softmax.default",
                                           "aten.log_softmax.int", "aten.var.correction", "aten.var_mean.correction"};
  bool reduces = false;
  for (size_t i = 0; i < sizeof reductions / sizeof reductions[0]; i++)
    reduces = reduces || !strcmp(n->target, reductions[i]);
  if (!reduces || n->args[0].kind != SW_ARG_VALUE)
    return false;
  const struct sw_value *x = &l->graph->values.v[n->args[0].value];
  const struct sw_arg *dim = sw_node_arg(n, "dim");
  if (x->rank == 0)
    return false;
  int64_t row = x->size[x->rank - 1];
  bool one_row = sw_value_elements(x) == row;
  if (row % (one_row ? 64 : 32) == 0)
    return false;
  bool last = !dim || dim->kind == SW_ARG_NONE || (dim->kind == SW_ARG_INT && lw_dim(dim->i, x->rank) == x->rank - 1);
  for (int i = 0; dim && dim->kind == SW_ARG_LIST && i < dim->list.n; i++)
    last = last || lw_dim(dim->list.v[i].i, x->rank) == x->rank - 1;
  return last;
}

/* The device's layer norm reads lanes in standard order, which a cast to float32 changes. */
static bool is_layer_norm(const struct sw_node *n)
{
  return !strcmp(n->target, "aten.layer_norm.default") || !strcmp(n->target, "aten.native_layer_norm.default");
}

static bool is_lacking(struct lower *l, const struct sw_node *n)
{
  const struct lw_operation *o = lw_operation_of(l, n);
  return (o && o->half_only) || reduces_padded_stick(l, n) || is_layer_norm(n);
}

/* The float32 values of one node, joined; the first of them. */
struct members {
  struct regions *r;
  int first;
};

static void add_member(void *ctx, int value)
{
  struct members *m = ctx;
  if (!is_float32(m->r->l, value))
    return;
  if (m->first < 0)
    m->first = value;
  else
    join(m->r, m->first, value);
}

/* Host operations that choose and move elements without computing. */
static bool only_moves(const struct sw_node *n)
{
  static const char *const moves[] = {"aten.gather.default", "aten.take_along_dim.default", "aten.scatter.src", "aten.sort.default"};
  for (size_t i = 0; i < sizeof moves / sizeof moves[0]; i++)
    if (!strcmp(n->target, moves[i]))
      return true;
  return false;
}

static void add_node(struct regions *r, int node)
{
  struct lower *l = r->l;
  const struct sw_node *n = &l->graph->nodes.v[node];
  struct members m = {r, -1};
  if (is_cast(n)) {
    int from = n->args[0].kind == SW_ARG_VALUE ? n->args[0].value : -1, to = n->results[0];
    enum sw_dtype a = from < 0 ? SW_F32 : l->graph->values.v[from].dtype, b = l->graph->values.v[to].dtype;
    for (int k = 0; k < 2; k++) {
      int value = k ? to : from;
      if (value >= 0 && is_float32(l, value))
        meet(r, find(r, value), n->origin);
    }
    if (a == SW_F32 && b == SW_F32) {
      add_member(&m, from);
      add_member(&m, to);
    } else if (is_float32(l, to) && a != SW_BOOL) {
      int root = find(r, to);
      r->open[root] = r->open[root] || !lw_is_half(a);
      r->bf16[root] = r->bf16[root] || a == SW_BF16;
    } else if (from >= 0 && is_float32(l, from) && !lw_is_half(b) && b != SW_BOOL) {
      r->open[find(r, from)] = true;
    }
    return;
  }
  lw_each_value(n->args, n->n_args, add_member, &m);
  for (int k = 0; k < n->n_results; k++)
    if (n->results[k] >= 0)
      add_member(&m, n->results[k]);
  if (m.first < 0)
    return;
  const struct lw_operation *o = lw_operation_of(l, n);
  int root = find(r, m.first);
  r->open[root] = r->open[root] || !o || (o->kind == LW_HOST && !only_moves(n));
  r->lacking[root] = r->lacking[root] || is_lacking(l, n);
  meet(r, root, n->origin);
}

static void open_region(void *ctx, int value)
{
  struct regions *r = ctx;
  if (is_float32(r->l, value))
    r->open[find(r, value)] = true;
}

void lw_find_narrow(struct lower *l)
{
  const struct sw_graph *g = l->graph;
  if (l->options->precision == SW_PRECISION_STRICT)
    return;
  struct regions r = {.l = l};
  r.parent = SW_NEW_N(l->arena, int, g->values.n);
  r.open = SW_NEW_N(l->arena, bool, g->values.n);
  r.lacking = SW_NEW_N(l->arena, bool, g->values.n);
  r.bf16 = SW_NEW_N(l->arena, bool, g->values.n);
  r.origin = SW_NEW_N(l->arena, const char *, g->values.n);
  for (int v = 0; v < g->values.n; v++)
    r.parent[v] = v;
  for (int i = 0; i < g->nodes.n; i++)
    if (l->node_live[i] && !l->matches[i])
      add_node(&r, i);
    else if (l->node_live[i] && (l->matches[i]->kind == LW_MATCH_SOFTPLUS || l->matches[i]->kind == LW_MATCH_LOGSUMEXP) &&
             is_float32(l, l->matches[i]->q)) {
      int result = g->nodes.v[i].results[0];
      join(&r, l->matches[i]->q, result);
      r.lacking[find(&r, result)] = true;
    }
  for (int i = 0; i < g->inputs.n; i++)
    if (g->inputs.v[i].value >= 0 && g->inputs.v[i].kind != SW_INPUT_PARAMETER)
      open_region(&r, g->inputs.v[i].value);
  for (int i = 0; i < g->outputs.n; i++)
    lw_each_value(&g->outputs.v[i].arg, 1, open_region, &r);
  for (int v = 0; v < g->values.n; v++) {
    int root = find(&r, v), node = g->values.v[v].node;
    bool one = l->best && r.origin[root] && r.origin[root] != several;
    if (!is_float32(l, v) || r.open[root] || !(r.lacking[root] || one) || node < 0)
      continue;
    l->values[v].narrow = true;
    l->values[v].narrow_bf16 = r.bf16[root];
    if (!l->node_live[node])
      continue;
    if (is_lacking(l, &g->nodes.v[node]))
      sw_warn(l->job, "precision: node %s: %s in float16, the graph says float32", g->nodes.v[node].name, g->nodes.v[node].target);
    else if (v == root && !r.lacking[root])
      sw_warn(l->job, "precision: the nodes from %s on that %s was decomposed into: in float16, the graph says float32",
              g->nodes.v[node].name, r.origin[root]);
  }
}
