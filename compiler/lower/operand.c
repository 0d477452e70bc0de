/* Operands as they were before a model repeated, cut or flattened them for PyTorch's sake. Who calls these reads the
 * earlier value, so fold.c keeps it alive until then. */
#include "compiler/lower/pattern.h"

#include <string.h>

/* [B,H,S,D] made by unsqueeze, expand and reshape of [B,H/g,S,D], every head g times: the smaller one; else itself. */
int lw_unrepeated(struct lower *l, int value)
{
  const struct sw_value *whole = &l->graph->values.v[value];
  int at = lw_behind_cast(l, value);
  const struct sw_node *n = lw_maker(l, at);
  while (lw_is_one_of(n, lw_views) || lw_is(n, "aten.clone.default")) {
    at = lw_arg_value(n, 0);
    n = lw_maker(l, at);
  }
  if (!lw_is(n, "aten.expand.default") || whole->rank != 4)
    return value;
  int narrow = lw_arg_value(n, 0);
  const struct sw_node *u = lw_maker(l, narrow);
  const struct sw_value *e = &l->graph->values.v[at], *x = narrow < 0 ? NULL : &l->graph->values.v[narrow];
  if (!x || e->rank != 5 || x->rank != 5 || x->size[2] != 1 || !lw_is(u, "aten.unsqueeze.default"))
    return value;
  for (int d = 0; d < 5; d++)
    if (d != 2 && x->size[d] != e->size[d])
      return value;
  int small = lw_arg_value(u, 0);
  if (small < 0 || e->size[0] != whole->size[0] || e->size[1] * e->size[2] != whole->size[1] ||
      e->size[3] != whole->size[2] || e->size[4] != whole->size[3] || l->graph->values.v[small].rank != 4 ||
      l->graph->values.v[small].size[1] != e->size[1] || !lw_unchanged_until(l, small, l->node))
    return value;
  return lw_behind_cast(l, small);
}

/* -- rotary halves -- */

/* cat([-x[.., D/2:], x[.., :D/2]], -1): the value x, or -1. Reference: ops.md 6.10. */
int lw_rotated_half(struct lower *l, const struct sw_node *cat)
{
  const struct sw_arg *list = sw_node_arg(cat, "tensors"), *dim = sw_node_arg(cat, "dim");
  if (!list || list->kind != SW_ARG_LIST || list->list.n != 2 || list->list.v[0].kind != SW_ARG_VALUE ||
      list->list.v[1].kind != SW_ARG_VALUE)
    return -1;
  const struct sw_node *neg = lw_maker(l, list->list.v[0].value), *low = lw_maker(l, list->list.v[1].value);
  const struct sw_node *high = lw_is(neg, "aten.neg.default") ? lw_maker(l, lw_arg_value(neg, 0)) : NULL;
  if (!lw_is(low, "aten.slice.Tensor") || !lw_is(high, "aten.slice.Tensor") || lw_arg_value(low, 0) < 0 || lw_arg_value(low, 0) != lw_arg_value(high, 0))
    return -1;
  int x = lw_arg_value(low, 0), rank = l->graph->values.v[x].rank;
  int64_t d = l->graph->values.v[x].size[rank - 1];
  const struct sw_value *a = &l->graph->values.v[high->results[0]], *b = &l->graph->values.v[low->results[0]];
  const struct sw_arg *start = sw_node_arg(high, "start"), *first = sw_node_arg(low, "start");
  bool last = dim && dim->kind == SW_ARG_INT && lw_dim(dim->i, rank) == rank - 1 &&
              lw_dim(sw_node_arg(high, "dim")->i, rank) == rank - 1 && lw_dim(sw_node_arg(low, "dim")->i, rank) == rank - 1;
  bool halves = last && d % 2 == 0 && a->size[rank - 1] == d / 2 && b->size[rank - 1] == d / 2 &&
                start->kind == SW_ARG_INT && start->i == d / 2 &&
                (first->kind == SW_ARG_NONE || (first->kind == SW_ARG_INT && first->i == 0));
  return halves && lw_unchanged_until(l, x, l->node) ? x : -1;
}

/* -- weights gathered by row numbers -- */

static bool turns(const struct lower *l, const struct sw_node *n)
{
  if (!lw_is(n, "aten.transpose.int"))
    return lw_swaps_last_two(l, n);
  const struct sw_arg *a = sw_node_arg(n, "dim0"), *b = sw_node_arg(n, "dim1");
  int rank = l->graph->values.v[n->results[0]].rank;
  return a->kind == SW_ARG_INT && b->kind == SW_ARG_INT && lw_dim(a->i, rank) + lw_dim(b->i, rank) == 2 * rank - 3 &&
         lw_dim(a->i, rank) != lw_dim(b->i, rank) && rank - lw_dim(a->i, rank) <= 2;
}

bool lw_find_gathered(struct lower *l, int value, struct lw_gathered *out)
{
  const struct sw_node *n = lw_maker(l, value);
  out->turned = n && turns(l, n);
  if (out->turned)
    n = lw_maker(l, lw_arg_value(n, 0));
  out->table = lw_arg_value(n, 0);
  if (!lw_is(n, "aten.index.Tensor") || out->table < 0 || n->args[1].kind != SW_ARG_LIST || n->args[1].list.n != 1 ||
      n->args[1].list.v[0].kind != SW_ARG_VALUE)
    return false;
  out->rows = n->args[1].list.v[0].value;
  const struct sw_value *table = &l->graph->values.v[out->table], *rows = &l->graph->values.v[out->rows];
  return table->rank == 3 && rows->rank == 1 && (rows->dtype == SW_I64 || rows->dtype == SW_I32) &&
         !lw_constant_elements(l, out->rows) && lw_unchanged_until(l, out->table, l->node) &&
         lw_unchanged_until(l, out->rows, l->node);
}

/* -- matrix products of flattened tensors -- */

/* What a matrix operand of rank 2 or 3 was before its leading dims were joined: a value whose last `kept` dims are the
 * same, with all its elements in order; itself when there is none. Reference: ops.md 3.3 (mm_to_bmm, bmm_unflatten). */
int lw_unflattened(struct lower *l, int value, int kept)
{
  const struct sw_value *values = l->graph->values.v, *flat = &values[value];
  int best = value;
  for (int at = value; lw_is_one_of(lw_maker(l, at), lw_reshapes);) {
    int from = lw_arg_value(lw_maker(l, at), 0);
    if (from < 0 || sw_value_elements(&values[from]) != sw_value_elements(&values[value]) || !lw_unchanged_until(l, from, l->node))
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

/* -- instance norm -- */

/* What `repeat(v, [times])` repeats; v itself when it is not repeated; -2: neither. An absent vector (-1) stays so. */
static int unrepeated_vector(const struct lower *l, int value, int64_t channels, int64_t times)
{
  const struct sw_node *n = lw_maker(l, value);
  int from = lw_arg_value(n, 0);
  const struct sw_arg *list = lw_is(n, "aten.repeat.default") ? sw_node_arg(n, "repeats") : NULL;
  bool repeated = from >= 0 && list && list->kind == SW_ARG_LIST && list->list.n == 1 && list->list.v[0].kind == SW_ARG_INT &&
                  list->list.v[0].i == times && l->graph->values.v[from].rank == 1 && l->graph->values.v[from].size[0] == channels;
  return value < 0 ? value : repeated ? from : -2;
}

bool lw_find_instances(struct lower *l, const struct sw_node *n, struct lw_instances *out)
{
  const struct sw_value *values = l->graph->values.v;
  int x = lw_arg_value(n, 0), from = lw_is_one_of(lw_maker(l, x), lw_views) ? lw_arg_value(lw_maker(l, x), 0) : -1;
  if (!lw_is(n, "aten._native_batch_norm_legit.no_stats") || from < 0 || values[from].rank != values[x].rank || values[x].rank < 2)
    return false;
  const struct sw_value *whole = &values[from], *flat = &values[x];
  bool same = flat->size[0] == 1 && whole->size[0] * whole->size[1] == flat->size[1];
  for (int d = 2; d < flat->rank; d++)
    same = same && whole->size[d] == flat->size[d];
  *out = (struct lw_instances){from, unrepeated_vector(l, lw_arg_value(n, 1), whole->size[1], whole->size[0]),
                               unrepeated_vector(l, lw_arg_value(n, 2), whole->size[1], whole->size[0])};
  return same && out->weight > -2 && out->bias > -2 && lw_unchanged_until(l, from, l->node) &&
         (out->weight < 0 || lw_unchanged_until(l, out->weight, l->node)) && (out->bias < 0 || lw_unchanged_until(l, out->bias, l->node));
}
