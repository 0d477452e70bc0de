/* Composite operations that the core ATen dialect has spelled out, found again by what their nodes compute:
 *
 *   attention   pattern_attention.c
 *   silu        cast(mul(x32, sigmoid(x32))), x32 = cast(x)
 *   softplus    where(x > 20, x, log1p(exp(x)))
 *   logsumexp   log(sum(exp(x - g))) + g, where g = where(abs(m) == inf, 0, m) and m is the maximum
 *   all         not any(not x)
 *
 * The device has no float32 matrix product, so attention must be recognised; attention and silu then run in fp16 exactly as
 * the training dialect of the same model does (option precision=device; every such node is named in a warning).
 * A match replaces the node that makes the final result; the nodes in between die unless somebody else reads them.
 * Reference: pt2.md section 12. */
#include "compiler/lower/families.h"
#include "compiler/lower/pattern.h"

#include <math.h>
#include <string.h>

/* -- looking back -- */

bool lw_unchanged_until(const struct lower *l, int value, int node)
{
  int root = l->values[value].root;
  if (!l->values[root].mutated)
    return true;
  for (int i = l->graph->values.v[value].node + 1; i < node; i++)
    if (i >= 0 && lw_node_writes(l, i) && lw_arg_value(&l->graph->nodes.v[i], 0) >= 0 &&
        l->values[lw_arg_value(&l->graph->nodes.v[i], 0)].root == root)
      return false;
  return true;
}

const struct sw_node *lw_maker(const struct lower *l, int value)
{
  int n = value < 0 ? -1 : l->graph->values.v[value].node;
  return n < 0 || !lw_unchanged_until(l, value, l->node) ? NULL : &l->graph->nodes.v[n];
}

bool lw_is_one_of(const struct sw_node *n, const char *const *targets)
{
  for (; n && *targets; targets++)
    if (!strcmp(n->target, *targets))
      return true;
  return false;
}

bool lw_is(const struct sw_node *n, const char *target)
{
  return n && !strcmp(n->target, target);
}

int lw_arg_value(const struct sw_node *n, int k)
{
  return n && k < n->n_args && n->args[k].kind == SW_ARG_VALUE ? n->args[k].value : -1;
}

const char *const lw_reshapes[] = {"aten.expand.default", "aten.view.default", "aten.reshape.default",
                                   "aten._unsafe_view.default", "aten.alias.default", "aten.clone.default", NULL};
const char *const lw_views[] = {"aten.view.default", "aten.reshape.default", "aten._unsafe_view.default", NULL};

int lw_behind_cast(const struct lower *l, int value)
{
  const struct sw_node *n = lw_maker(l, value);
  int from = lw_arg_value(n, 0);
  bool cast = lw_is(n, "aten._to_copy.default") || lw_is(n, "aten.to.dtype");
  return cast && from >= 0 && lw_is_half(l->graph->values.v[from].dtype) ? from : value;
}

bool lw_swaps_last_two(const struct lower *l, const struct sw_node *n)
{
  if (!lw_is(n, "aten.permute.default"))
    return false;
  const struct sw_arg *dims = sw_node_arg(n, "dims");
  int rank = l->graph->values.v[n->results[0]].rank;
  for (int d = 0; d < rank; d++) {
    int expected = d == rank - 2 ? rank - 1 : d == rank - 1 ? rank - 2 : d;
    if (dims->kind != SW_ARG_LIST || dims->list.n != rank || lw_dim(dims->list.v[d].i, rank) != expected)
      return false;
  }
  return rank >= 2;
}

const struct sw_arg *lw_number_at(const struct sw_node *n, int k)
{
  const struct sw_arg *a = &n->args[k];
  return a->kind == SW_ARG_REAL || a->kind == SW_ARG_INT ? a : NULL;
}

bool lw_is_constant_number(const struct lower *l, int value, double x)
{
  const struct sw_node *n = lw_maker(l, value);
  if (!lw_is(n, "aten.scalar_tensor.default") && !lw_is(n, "aten.full.default"))
    return false;
  const struct sw_arg *a = lw_number_at(n, lw_is(n, "aten.full.default") ? 1 : 0);
  return a && lw_number_of(a) == x;
}

double lw_number_of(const struct sw_arg *a)
{
  return a->kind == SW_ARG_REAL ? a->r : (double)a->i;
}

static void match(struct lower *l, int node, struct lw_match m)
{
  l->matches[node] = SW_NEW(l->arena, struct lw_match);
  *l->matches[node] = m;
}

/* Nobody writes into it, ever. */
static bool is_unwritten(const struct lower *l, int value)
{
  return value >= 0 && !l->values[l->values[value].root].mutated;
}

/* -- silu -- */

static void match_silu(struct lower *l, int node)
{
  const struct sw_node *cast = &l->graph->nodes.v[node], *mul = lw_maker(l, lw_arg_value(cast, 0));
  if (!lw_is(cast, "aten._to_copy.default") || !lw_is(mul, "aten.mul.Tensor"))
    return;
  int x = lw_arg_value(mul, 0), x16 = x < 0 ? -1 : lw_behind_cast(l, x);
  const struct sw_node *sigmoid = lw_maker(l, lw_arg_value(mul, 1));
  if (x16 == x || !lw_is(sigmoid, "aten.sigmoid.default") || lw_arg_value(sigmoid, 0) != x ||
      l->graph->values.v[cast->results[0]].dtype != l->graph->values.v[x16].dtype)
    return;
  match(l, node, (struct lw_match){.kind = LW_MATCH_SILU, .q = x16, .k = -1, .v = -1, .mask = -1, .precision = true});
}

/* -- softplus -- */

/* where(x > 20, x, log1p(exp(x))) in float32 on a cast of fp16: the device's softplus takes fp16 only. */
static void match_softplus(struct lower *l, int node)
{
  const struct sw_node *where = &l->graph->nodes.v[node], *gt = lw_maker(l, lw_arg_value(where, 0));
  const struct sw_node *log = lw_maker(l, lw_arg_value(where, 2)), *exp = lw_is(log, "aten.log1p.default") ? lw_maker(l, lw_arg_value(log, 0)) : NULL;
  int x = lw_arg_value(where, 1);
  if (!lw_is(gt, "aten.gt.Scalar") || !lw_is(exp, "aten.exp.default") || x < 0 || lw_arg_value(gt, 0) != x || lw_arg_value(exp, 0) != x || !lw_number_at(gt, 1))
    return;
  match(l, node, (struct lw_match){.kind = LW_MATCH_SOFTPLUS, .q = x, .k = -1, .v = -1, .mask = -1,
                                   .scale = lw_number_of(lw_number_at(gt, 1))});
}

/* -- reductions -- */

/* The dims that a node reduces, and whether it keeps them. */
static bool reduced(const struct lower *l, const struct sw_node *n, struct lw_match *m)
{
  int x = lw_arg_value(n, 0), rank = x < 0 ? 0 : l->graph->values.v[x].rank;
  const struct sw_arg *dim = sw_node_arg(n, "dim"), *keep = sw_node_arg(n, "keepdim");
  m->dims = 0;
  m->keepdim = keep && keep->kind == SW_ARG_BOOL && keep->i;
  if (dim && dim->kind == SW_ARG_INT && rank)
    m->dims = 1u << lw_dim(dim->i, rank);
  for (int i = 0; dim && dim->kind == SW_ARG_LIST && i < dim->list.n && rank; i++) {
    if (dim->list.v[i].kind != SW_ARG_INT)
      return false;
    m->dims |= 1u << lw_dim(dim->list.v[i].i, rank);
  }
  if (!m->dims)
    m->dims = (1u << rank) - 1;
  return x >= 0;
}

/* not any(not x), of bools. */
static void match_all(struct lower *l, int node)
{
  static const char *const any[] = {"aten.any.default", "aten.any.dim", "aten.any.dims", NULL};
  const struct sw_node *outer = &l->graph->nodes.v[node], *n = lw_maker(l, lw_arg_value(outer, 0));
  const struct sw_node *inner = lw_is_one_of(n, any) ? lw_maker(l, lw_arg_value(n, 0)) : NULL;
  int x = lw_is(inner, "aten.logical_not.default") ? lw_arg_value(inner, 0) : -1;
  struct lw_match m = {.kind = LW_MATCH_ALL, .q = x, .k = -1, .v = -1, .mask = -1};
  if (x >= 0 && l->graph->values.v[x].dtype == SW_BOOL && is_unwritten(l, x) && is_unwritten(l, inner->results[0]) &&
      is_unwritten(l, n->results[0]) && reduced(l, n, &m))
    match(l, node, m);
}

/* The maximum m behind g = where(abs(m) == inf, 0, m), or -1. */
static int behind_finite(const struct lower *l, int g)
{
  const struct sw_node *where = lw_maker(l, g);
  const struct sw_node *eq = lw_is(where, "aten.where.self") ? lw_maker(l, lw_arg_value(where, 0)) : NULL;
  const struct sw_node *abs = lw_is(eq, "aten.eq.Scalar") ? lw_maker(l, lw_arg_value(eq, 0)) : NULL;
  const struct sw_arg *limit = abs ? lw_number_at(eq, 1) : NULL;
  int m = lw_arg_value(where, 2);
  return lw_is(abs, "aten.abs.default") && lw_arg_value(abs, 0) == m && limit && isinf(lw_number_of(limit)) &&
                 lw_is_constant_number(l, lw_arg_value(where, 1), 0)
             ? m
             : -1;
}

static void match_logsumexp(struct lower *l, int node)
{
  const struct sw_node *add = &l->graph->nodes.v[node], *log = lw_maker(l, lw_arg_value(add, 0));
  const struct sw_node *sum = lw_is(log, "aten.log.default") ? lw_maker(l, lw_arg_value(log, 0)) : NULL;
  const struct sw_node *exp = lw_is(sum, "aten.sum.dim_IntList") ? lw_maker(l, lw_arg_value(sum, 0)) : NULL;
  const struct sw_node *sub = lw_is(exp, "aten.exp.default") ? lw_maker(l, lw_arg_value(exp, 0)) : NULL;
  if (!lw_is(sub, "aten.sub.Tensor"))
    return;
  int x = lw_arg_value(sub, 0), g = lw_arg_value(sub, 1), back = lw_arg_value(add, 1);
  const struct sw_node *max = lw_maker(l, behind_finite(l, g)), *squeeze = lw_maker(l, back);
  struct lw_match m = {.kind = LW_MATCH_LOGSUMEXP, .q = x, .k = -1, .v = -1, .mask = -1}, s = m;
  if (!lw_is(max, "aten.amax.default") || lw_arg_value(max, 0) != x || !is_unwritten(l, x) || !reduced(l, sum, &m) ||
      !reduced(l, max, &s) || m.dims != s.dims || !s.keepdim)
    return;
  bool same = back == g || (lw_is(squeeze, "aten.squeeze.dims") && lw_arg_value(squeeze, 0) == g);
  if (same && l->graph->values.v[add->results[0]].rank == l->graph->values.v[sum->results[0]].rank)
    match(l, node, m);
}

/* A match is computed where its last node stands, from operands that must be then what they were. */
static bool is_current(const struct lower *l, int node)
{
  const struct lw_match *m = l->matches[node];
  const int of[] = {m->q, m->k, m->v, m->mask};
  for (int i = 0; i < 4; i++)
    if (of[i] >= 0 && !lw_unchanged_until(l, of[i], node))
      return false;
  return true;
}

void lw_find_patterns(struct lower *l)
{
  const struct sw_graph *g = l->graph;
  bool narrows = l->options->precision != SW_PRECISION_STRICT;
  l->matches = SW_NEW_N(l->arena, struct lw_match *, g->nodes.n);
  for (int i = 0; i < g->nodes.n; i++) {
    const struct sw_node *n = &g->nodes.v[i];
    l->node = i;
    if (narrows && lw_is(n, "aten.bmm.default"))
      lw_match_attention(l, i);
    else if (narrows && lw_is(n, "aten._to_copy.default"))
      match_silu(l, i);
    else if (narrows && lw_is(n, "aten.where.self"))
      match_softplus(l, i);
    else if (l->best && lw_is(n, "aten.add.Tensor"))
      match_logsumexp(l, i);
    else if (l->best && lw_is(n, "aten.logical_not.default"))
      match_all(l, i);
  }
  for (int i = 0; i < g->nodes.n; i++)
    if (l->matches[i] && !is_current(l, i))
      l->matches[i] = NULL;
}

void lw_run_match(struct lower *l, const struct lw_match *m)
{
  if (m->precision)
    sw_warn(l->job, "precision: node %s: %s in float16, the graph says float32", lw_node(l)->name,
            m->kind == LW_MATCH_SILU ? "silu" : "attention");
  struct tensor x = lw_tensor_of_value(l, m->q);
  switch (m->kind) {
  case LW_MATCH_SOFTPLUS:
    lw_set(l, 0, lw_softplus(l, x, 1, m->scale));
    break;
  case LW_MATCH_SILU:
    lw_set(l, 0, lw_unary(l, SW_OP_SILU, x));
    break;
  case LW_MATCH_LOGSUMEXP:
    lw_set(l, 0, lw_logsumexp(l, x, m->dims, m->keepdim));
    break;
  case LW_MATCH_ALL:
    lw_set(l, 0, lw_known(x) ? lw_reduce(l, SW_OP_MIN, x, m->dims, m->keepdim) : x);
    break;
  case LW_MATCH_ATTENTION: {
    struct sw_arg mask = {.name = "attn_mask", .kind = SW_ARG_VALUE, .value = m->mask};
    int keys = l->best ? lw_unrepeated(l, m->k) : m->k, values = l->best ? lw_unrepeated(l, m->v) : m->v;
    struct tensor k = lw_tensor_of_value(l, keys), v = lw_tensor_of_value(l, values);
    lw_set(l, 0, lw_attention(l, m->q, x, k, v, m->mask < 0 ? NULL : &mask, false, m->scale));
  }
  }
}
