/* Composite operations that the core ATen dialect has spelled out, found again by what their nodes compute:
 *
 *   attention   view(bmm(softmax(bmm(q s, k' s) [+ mask]) [guarded], v)), in float32 between casts from and to fp16,
 *               often followed by permute, clone, permute back                    -> scaled_dot_product_attention
 *   silu        cast(mul(x32, sigmoid(x32))), x32 = cast(x)                       -> silu
 *   softplus    where(x > 20, x, log1p(exp(x)))                                   -> softplus
 *
 * The device has no float32 matrix product, so the first must be recognised; the first two then run in fp16 exactly as the
 * training dialect of the same model does (option precision=device; every such node is named in a warning).
 * A match replaces the node that makes the final result; the nodes in between die unless somebody else reads them.
 * Reference: pt2.md section 12. */
#include "compiler/lower/families.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct sw_node *maker(const struct lower *l, int value)
{
  int n = value < 0 ? -1 : l->graph->values.v[value].node;
  return n < 0 ? NULL : &l->graph->nodes.v[n];
}

static bool is_one_of(const struct sw_node *n, const char *const *targets)
{
  for (; n && *targets; targets++)
    if (!strcmp(n->target, *targets))
      return true;
  return false;
}

static bool is(const struct sw_node *n, const char *target)
{
  return n && !strcmp(n->target, target);
}

/* Value of argument k, or -1. */
static int operand(const struct sw_node *n, int k)
{
  return n && k < n->n_args && n->args[k].kind == SW_ARG_VALUE ? n->args[k].value : -1;
}

static const char *const reshapes[] = {"aten.expand.default", "aten.view.default", "aten.reshape.default",
                                       "aten._unsafe_view.default", "aten.alias.default", "aten.clone.default", NULL};
static const char *const views[] = {"aten.view.default", "aten.reshape.default", "aten._unsafe_view.default", NULL};

static int64_t elements(const struct lower *l, int value)
{
  return sw_value_elements(&l->graph->values.v[value]);
}

/* Behind views that keep all elements in order; not into the five dims of repeated heads. */
static int behind_views(const struct lower *l, int value)
{
  for (const struct sw_node *n = maker(l, value); is_one_of(n, reshapes); n = maker(l, value)) {
    int from = operand(n, 0);
    if (from < 0 || elements(l, from) != elements(l, value) || l->graph->values.v[from].rank > 4)
      break;
    value = from;
  }
  return value;
}

static bool is_half(enum sw_dtype t)
{
  return t == SW_F16 || t == SW_BF16;
}

/* Behind a cast from fp16 to float32. */
static int behind_cast(const struct lower *l, int value)
{
  const struct sw_node *n = maker(l, value);
  int from = operand(n, 0);
  bool cast = is(n, "aten._to_copy.default") || is(n, "aten.to.dtype");
  return cast && from >= 0 && is_half(l->graph->values.v[from].dtype) ? from : value;
}

static bool swaps_last_two(const struct lower *l, const struct sw_node *n)
{
  if (!is(n, "aten.permute.default"))
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

static const struct sw_arg *number(const struct sw_node *n, int k)
{
  const struct sw_arg *a = &n->args[k];
  return a->kind == SW_ARG_REAL || a->kind == SW_ARG_INT ? a : NULL;
}

/* Behind a multiplication by a number, which goes into *factor. */
static int behind_scale(const struct lower *l, int value, double *factor)
{
  const struct sw_node *n = maker(l, value);
  if (!is(n, "aten.mul.Scalar") && !is(n, "aten.mul.Tensor"))
    return value;
  const struct sw_arg *a = number(n, 1);
  if (!a || operand(n, 0) < 0)
    return value;
  *factor *= a->kind == SW_ARG_REAL ? a->r : (double)a->i;
  return operand(n, 0);
}

/* -- heads that were repeated for grouped queries -- */

/* Nobody writes into what value looks at between its maker and `node`. */
static bool unchanged_until(struct lower *l, int value, int node)
{
  int root = l->values[value].root;
  if (!l->values[root].mutated)
    return true;
  for (int i = l->graph->values.v[value].node + 1; i < node; i++)
    if (i >= 0 && lw_node_writes(l, i) && operand(&l->graph->nodes.v[i], 0) >= 0 &&
        l->values[operand(&l->graph->nodes.v[i], 0)].root == root)
      return false;
  return true;
}

/* [B,H,S,D] made by unsqueeze, expand and reshape of [B,H/g,S,D], every head g times: the smaller one; else itself. */
int lw_unrepeated(struct lower *l, int value)
{
  const struct sw_value *whole = &l->graph->values.v[value];
  int at = behind_cast(l, value);
  const struct sw_node *n = maker(l, at);
  while (is_one_of(n, views) || is(n, "aten.clone.default")) {
    at = operand(n, 0);
    n = maker(l, at);
  }
  if (!is(n, "aten.expand.default") || whole->rank != 4)
    return value;
  int narrow = operand(n, 0);
  const struct sw_node *u = maker(l, narrow);
  const struct sw_value *e = &l->graph->values.v[at], *x = narrow < 0 ? NULL : &l->graph->values.v[narrow];
  if (!x || e->rank != 5 || x->rank != 5 || x->size[2] != 1 || !is(u, "aten.unsqueeze.default"))
    return value;
  for (int d = 0; d < 5; d++)
    if (d != 2 && x->size[d] != e->size[d])
      return value;
  int small = operand(u, 0);
  if (small < 0 || e->size[0] != whole->size[0] || e->size[1] * e->size[2] != whole->size[1] ||
      e->size[3] != whole->size[2] || e->size[4] != whole->size[3] || l->graph->values.v[small].rank != 4 ||
      l->graph->values.v[small].size[1] != e->size[1] || !unchanged_until(l, small, l->node))
    return value;
  return behind_cast(l, small);
}

/* -- rotary halves -- */

/* cat([-x[.., D/2:], x[.., :D/2]], -1): the value x, or -1. Reference: ops.md 6.10. */
int lw_rotated_half(struct lower *l, const struct sw_node *cat)
{
  const struct sw_arg *list = sw_node_arg(cat, "tensors"), *dim = sw_node_arg(cat, "dim");
  if (!list || list->kind != SW_ARG_LIST || list->list.n != 2 || list->list.v[0].kind != SW_ARG_VALUE ||
      list->list.v[1].kind != SW_ARG_VALUE)
    return -1;
  const struct sw_node *neg = maker(l, list->list.v[0].value), *low = maker(l, list->list.v[1].value);
  const struct sw_node *high = is(neg, "aten.neg.default") ? maker(l, operand(neg, 0)) : NULL;
  if (!is(low, "aten.slice.Tensor") || !is(high, "aten.slice.Tensor") || operand(low, 0) < 0 || operand(low, 0) != operand(high, 0))
    return -1;
  int x = operand(low, 0), rank = l->graph->values.v[x].rank;
  int64_t d = l->graph->values.v[x].size[rank - 1];
  const struct sw_value *a = &l->graph->values.v[high->results[0]], *b = &l->graph->values.v[low->results[0]];
  const struct sw_arg *start = sw_node_arg(high, "start"), *first = sw_node_arg(low, "start");
  bool last = dim && dim->kind == SW_ARG_INT && lw_dim(dim->i, rank) == rank - 1 &&
              lw_dim(sw_node_arg(high, "dim")->i, rank) == rank - 1 && lw_dim(sw_node_arg(low, "dim")->i, rank) == rank - 1;
  bool halves = last && d % 2 == 0 && a->size[rank - 1] == d / 2 && b->size[rank - 1] == d / 2 &&
                start->kind == SW_ARG_INT && start->i == d / 2 &&
                (first->kind == SW_ARG_NONE || (first->kind == SW_ARG_INT && first->i == 0));
  return halves && unchanged_until(l, x, l->node) ? x : -1;
}

/* -- weights gathered by row numbers -- */

static bool turns(const struct lower *l, const struct sw_node *n)
{
  if (!is(n, "aten.transpose.int"))
    return swaps_last_two(l, n);
  const struct sw_arg *a = sw_node_arg(n, "dim0"), *b = sw_node_arg(n, "dim1");
  int rank = l->graph->values.v[n->results[0]].rank;
  return a->kind == SW_ARG_INT && b->kind == SW_ARG_INT && lw_dim(a->i, rank) + lw_dim(b->i, rank) == 2 * rank - 3 &&
         lw_dim(a->i, rank) != lw_dim(b->i, rank) && rank - lw_dim(a->i, rank) <= 2;
}

bool lw_find_gathered(struct lower *l, int value, struct lw_gathered *out)
{
  const struct sw_node *n = maker(l, value);
  out->turned = n && turns(l, n);
  if (out->turned)
    n = maker(l, operand(n, 0));
  out->table = operand(n, 0);
  if (!is(n, "aten.index.Tensor") || out->table < 0 || n->args[1].kind != SW_ARG_LIST || n->args[1].list.n != 1 ||
      n->args[1].list.v[0].kind != SW_ARG_VALUE)
    return false;
  out->rows = n->args[1].list.v[0].value;
  const struct sw_value *table = &l->graph->values.v[out->table], *rows = &l->graph->values.v[out->rows];
  return table->rank == 3 && rows->rank == 1 && (rows->dtype == SW_I64 || rows->dtype == SW_I32) &&
         !lw_constant_elements(l, out->rows) && unchanged_until(l, out->table, l->node) &&
         unchanged_until(l, out->rows, l->node);
}

/* -- matrix products of flattened tensors -- */

/* What a matrix operand of rank 2 or 3 was before its leading dims were joined: a value whose last `kept` dims are the
 * same, with all its elements in order; itself when there is none. Reference: ops.md 3.3 (mm_to_bmm, bmm_unflatten). */
int lw_unflattened(struct lower *l, int value, int kept)
{
  const struct sw_value *values = l->graph->values.v, *flat = &values[value];
  int best = value;
  for (int at = value; is_one_of(maker(l, at), reshapes);) {
    int from = operand(maker(l, at), 0);
    if (from < 0 || elements(l, from) != elements(l, value) || !unchanged_until(l, from, l->node))
      break;
    const struct sw_value *x = &values[from];
    bool same = x->rank >= flat->rank;
    for (int d = 1; same && d <= kept; d++)
      same = x->size[x->rank - d] == flat->size[flat->rank - d];
    if (same)
      best = from;
    at = from;
  }
  return best;
}

/* -- masks -- */

static bool is_constant_number(const struct lower *l, int value, double x)
{
  const struct sw_node *n = maker(l, value);
  if (!is(n, "aten.scalar_tensor.default") && !is(n, "aten.full.default"))
    return false;
  const struct sw_arg *a = number(n, is(n, "aten.full.default") ? 1 : 0);
  return a && (a->kind == SW_ARG_REAL ? a->r : (double)a->i) == x;
}

/* where(open, 0, -inf) is the boolean mask `open`. */
static int behind_mask(const struct lower *l, int value)
{
  const struct sw_node *n = maker(l, value);
  if (is(n, "aten.where.self") && is_constant_number(l, operand(n, 1), 0) && is_constant_number(l, operand(n, 2), -INFINITY) &&
      operand(n, 0) >= 0 && l->graph->values.v[operand(n, 0)].dtype == SW_BOOL)
    return operand(n, 0);
  return value;
}

/* -- attention -- */

/* softmax, or where(every key is masked, 0, softmax). */
static int behind_guard(const struct lower *l, int value)
{
  const struct sw_node *n = maker(l, value);
  return is(n, "aten.where.self") && is(maker(l, operand(n, 1)), "aten.full_like.default") &&
                 is(maker(l, operand(n, 2)), "aten._softmax.default")
             ? operand(n, 2)
             : value;
}

static bool last_dim(const struct lower *l, const struct sw_node *softmax)
{
  const struct sw_arg *dim = sw_node_arg(softmax, "dim");
  int rank = l->graph->values.v[softmax->results[0]].rank;
  return dim && dim->kind == SW_ARG_INT && lw_dim(dim->i, rank) == rank - 1;
}

/* A float32 operand in fp16: before its cast, or before the repetition of its heads and the cast. */
static int in_half(struct lower *l, int value)
{
  int x = behind_cast(l, value);
  return is_half(l->graph->values.v[x].dtype) ? x : lw_unrepeated(l, x);
}

/* The two products around a softmax, from the second one's node. */
static bool match_products(struct lower *l, const struct sw_node *second, struct lw_match *m)
{
  int p = behind_guard(l, behind_views(l, operand(second, 0)));
  const struct sw_node *softmax = maker(l, p);
  if (!is(softmax, "aten._softmax.default") || !last_dim(l, softmax))
    return false;
  int s = operand(softmax, 0);
  const struct sw_node *add = maker(l, s);
  m->mask = -1;
  if (is(add, "aten.add.Tensor") && operand(add, 1) >= 0) {
    m->mask = behind_mask(l, operand(add, 1));
    s = operand(add, 0);
  }
  const struct sw_node *first = maker(l, behind_views(l, s));
  if (!is(first, "aten.bmm.default"))
    return false;
  m->scale = 1;
  m->q = behind_cast(l, behind_scale(l, behind_views(l, operand(first, 0)), &m->scale));
  int k = behind_scale(l, behind_views(l, operand(first, 1)), &m->scale);
  if (!swaps_last_two(l, maker(l, k)))
    return false;
  k = behind_scale(l, operand(maker(l, k), 0), &m->scale);
  m->k = in_half(l, k);
  m->v = in_half(l, behind_views(l, operand(second, 1)));
  return m->q >= 0 && m->k >= 0 && m->v >= 0;
}

/* The only node that reads a value, or -1. */
static int only_reader(const struct lower *l, int value)
{
  return value >= 0 && l->values[value].n_readers == 1 ? l->values[value].reader : -1;
}

static int follow(const struct lower *l, int node, const char *target)
{
  int next = only_reader(l, l->graph->nodes.v[node].results[0]);
  return next >= 0 && !strcmp(l->graph->nodes.v[next].target, target) ? next : -1;
}

/* permute, clone, permute back: the result in another order in memory. */
static int behind_reorder(const struct lower *l, int node)
{
  int a = follow(l, node, "aten.permute.default"), b = a < 0 ? -1 : follow(l, a, "aten.clone.default");
  int c = b < 0 ? -1 : follow(l, b, "aten.permute.default");
  if (c < 0)
    return node;
  const struct sw_arg *to = sw_node_arg(&l->graph->nodes.v[a], "dims"), *back = sw_node_arg(&l->graph->nodes.v[c], "dims");
  for (int d = 0; d < to->list.n; d++)
    if (to->list.v[back->list.v[d].i].i != d)
      return node;
  return c;
}

static bool is_plain_4d(const struct lower *l, const struct lw_match *m, const struct sw_value *result)
{
  const struct sw_value *v = l->graph->values.v;
  return v[m->q].rank == 4 && v[m->k].rank == 4 && v[m->v].rank == 4 && result->rank == 4 && v[m->q].size[0] == result->size[0] &&
         v[m->q].size[1] == result->size[1] && v[m->k].size[1] == v[m->v].size[1] && v[m->k].size[1] > 0 &&
         result->size[1] % v[m->k].size[1] == 0;
}

static void match_attention(struct lower *l, int node)
{
  struct lw_match m = {.kind = LW_MATCH_ATTENTION};
  if (!match_products(l, &l->graph->nodes.v[node], &m))
    return;
  int at = only_reader(l, l->graph->nodes.v[node].results[0]);
  if (at < 0 || !is_one_of(&l->graph->nodes.v[at], views))
    return;
  const struct sw_value *result = &l->graph->values.v[l->graph->nodes.v[at].results[0]];
  if (result->dtype == SW_F32) {
    at = follow(l, at, "aten._to_copy.default");
    if (at < 0)
      return;
    result = &l->graph->values.v[l->graph->nodes.v[at].results[0]];
    m.precision = true;
  }
  enum sw_dtype q = l->graph->values.v[m.q].dtype;
  if (!is_half(result->dtype) || q != result->dtype || l->graph->values.v[m.k].dtype != q || l->graph->values.v[m.v].dtype != q ||
      !is_plain_4d(l, &m, result))
    return;
  /* (s^1/2)^2 is s but for the last digit */
  char text[40];
  snprintf(text, sizeof text, "%.15g", m.scale);
  m.scale = strtod(text, NULL);
  at = behind_reorder(l, at);
  l->matches[at] = SW_NEW(l->arena, struct lw_match);
  *l->matches[at] = m;
}

/* -- silu -- */

static void match_silu(struct lower *l, int node)
{
  const struct sw_node *cast = &l->graph->nodes.v[node], *mul = maker(l, operand(cast, 0));
  if (!is(cast, "aten._to_copy.default") || !is(mul, "aten.mul.Tensor"))
    return;
  int x = operand(mul, 0), x16 = x < 0 ? -1 : behind_cast(l, x);
  const struct sw_node *sigmoid = maker(l, operand(mul, 1));
  if (x16 == x || !is(sigmoid, "aten.sigmoid.default") || operand(sigmoid, 0) != x ||
      l->graph->values.v[cast->results[0]].dtype != l->graph->values.v[x16].dtype)
    return;
  l->matches[node] = SW_NEW(l->arena, struct lw_match);
  *l->matches[node] = (struct lw_match){.kind = LW_MATCH_SILU, .q = x16, .k = -1, .v = -1, .mask = -1, .precision = true};
}

/* -- softplus -- */

/* where(x > 20, x, log1p(exp(x))) in float32 on a cast of fp16: the device's softplus takes fp16 only. */
static void match_softplus(struct lower *l, int node)
{
  const struct sw_node *where = &l->graph->nodes.v[node], *gt = maker(l, operand(where, 0));
  const struct sw_node *log = maker(l, operand(where, 2)), *exp = is(log, "aten.log1p.default") ? maker(l, operand(log, 0)) : NULL;
  int x = operand(where, 1);
  if (!is(gt, "aten.gt.Scalar") || !is(exp, "aten.exp.default") || x < 0 || operand(gt, 0) != x || operand(exp, 0) != x || !number(gt, 1))
    return;
  const struct sw_arg *threshold = number(gt, 1);
  l->matches[node] = SW_NEW(l->arena, struct lw_match);
  *l->matches[node] = (struct lw_match){.kind = LW_MATCH_SOFTPLUS, .q = x, .k = -1, .v = -1, .mask = -1,
                                        .scale = threshold->kind == SW_ARG_REAL ? threshold->r : (double)threshold->i};
}

void lw_find_patterns(struct lower *l)
{
  const struct sw_graph *g = l->graph;
  l->matches = SW_NEW_N(l->arena, struct lw_match *, g->nodes.n);
  if (l->options->precision == SW_PRECISION_STRICT)
    return;
  for (int i = 0; i < g->nodes.n; i++)
    if (is(&g->nodes.v[i], "aten.bmm.default"))
      match_attention(l, i);
    else if (is(&g->nodes.v[i], "aten._to_copy.default"))
      match_silu(l, i);
    else if (is(&g->nodes.v[i], "aten.where.self"))
      match_softplus(l, i);
}

void lw_run_match(struct lower *l, const struct lw_match *m)
{
  const struct sw_node *n = lw_node(l);
  if (m->precision)
    sw_warn(l->job, "precision: node %s: %s in float16, the graph says float32", n->name,
            m->kind == LW_MATCH_SILU ? "silu" : "attention");
  struct tensor q = lw_tensor_of_value(l, m->q);
  if (m->kind == LW_MATCH_SOFTPLUS) {
    lw_set(l, 0, lw_softplus(l, q, 1, m->scale));
    return;
  }
  if (m->kind == LW_MATCH_SILU) {
    lw_set(l, 0, lw_unary(l, SW_OP_SILU, q));
    return;
  }
  struct sw_arg mask = {.name = "attn_mask", .kind = SW_ARG_VALUE, .value = m->mask};
  int keys = l->best ? lw_unrepeated(l, m->k) : m->k, values = l->best ? lw_unrepeated(l, m->v) : m->v;
  struct tensor k = lw_tensor_of_value(l, keys), v = lw_tensor_of_value(l, values);
  lw_set(l, 0, lw_attention(l, m->q, q, k, v, m->mask < 0 ? NULL : &mask, false, m->scale));
}
