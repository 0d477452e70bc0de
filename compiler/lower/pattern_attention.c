/* Attention that core ATen has spelled out: view(bmm(softmax(bmm(q s, k' s) [+ mask]) [guarded], v)), in float32 between
 * casts from and to fp16, often followed by permute, clone, permute back. It is scaled_dot_product_attention again.
 * Reference: pt2.md section 12. */
#include "compiler/lower/pattern.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* -- operands behind what changes no number -- */

static int64_t elements(const struct lower *l, int value)
{
  return sw_value_elements(&l->graph->values.v[value]);
}

/* Behind views that keep all elements in order; not into the five dims of repeated heads. */
static int behind_views(const struct lower *l, int value)
{
  for (const struct sw_node *n = lw_maker(l, value); lw_is_one_of(n, lw_reshapes); n = lw_maker(l, value)) {
    int from = lw_arg_value(n, 0);
    if (from < 0 || elements(l, from) != elements(l, value) || l->graph->values.v[from].rank > 4)
      break;
    value = from;
  }
  return value;
}

/* Behind a multiplication by a number, which goes into *factor. */
static int behind_scale(const struct lower *l, int value, double *factor)
{
  const struct sw_node *n = lw_maker(l, value);
  if (!lw_is(n, "aten.mul.Scalar") && !lw_is(n, "aten.mul.Tensor"))
    return value;
  const struct sw_arg *a = lw_number_at(n, 1);
  if (!a || lw_arg_value(n, 0) < 0)
    return value;
  *factor *= lw_number_of(a);
  return lw_arg_value(n, 0);
}

/* -- masks -- */

/* where(open, 0, -inf) is the boolean mask `open`. */
static int behind_mask(const struct lower *l, int value)
{
  const struct sw_node *n = lw_maker(l, value);
  if (lw_is(n, "aten.where.self") && lw_is_constant_number(l, lw_arg_value(n, 1), 0) && lw_is_constant_number(l, lw_arg_value(n, 2), -INFINITY) &&
      lw_arg_value(n, 0) >= 0 && l->graph->values.v[lw_arg_value(n, 0)].dtype == SW_BOOL)
    return lw_arg_value(n, 0);
  return value;
}

/* -- attention -- */

/* softmax, or where(every key is masked, 0, softmax). */
static int behind_guard(const struct lower *l, int value)
{
  const struct sw_node *n = lw_maker(l, value);
  return lw_is(n, "aten.where.self") && lw_is(lw_maker(l, lw_arg_value(n, 1)), "aten.full_like.default") &&
                 lw_is(lw_maker(l, lw_arg_value(n, 2)), "aten._softmax.default")
             ? lw_arg_value(n, 2)
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
  int x = lw_behind_cast(l, value);
  return lw_is_half(l->graph->values.v[x].dtype) ? x : lw_unrepeated(l, x);
}

/* The two products around a softmax, from the second one's node. */
static bool match_products(struct lower *l, const struct sw_node *second, struct lw_match *m)
{
  int p = behind_guard(l, behind_views(l, lw_arg_value(second, 0)));
  const struct sw_node *softmax = lw_maker(l, p);
  if (!lw_is(softmax, "aten._softmax.default") || !last_dim(l, softmax))
    return false;
  int s = lw_arg_value(softmax, 0);
  const struct sw_node *add = lw_maker(l, s);
  m->mask = -1;
  if (lw_is(add, "aten.add.Tensor") && lw_arg_value(add, 1) >= 0) {
    m->mask = behind_mask(l, lw_arg_value(add, 1));
    s = lw_arg_value(add, 0);
  }
  const struct sw_node *first = lw_maker(l, behind_views(l, s));
  if (!lw_is(first, "aten.bmm.default"))
    return false;
  m->scale = 1;
  m->q = lw_behind_cast(l, behind_scale(l, behind_views(l, lw_arg_value(first, 0)), &m->scale));
  int k = behind_scale(l, behind_views(l, lw_arg_value(first, 1)), &m->scale);
  if (!lw_swaps_last_two(l, lw_maker(l, k)))
    return false;
  k = behind_scale(l, lw_arg_value(lw_maker(l, k), 0), &m->scale);
  m->k = in_half(l, k);
  m->v = in_half(l, behind_views(l, lw_arg_value(second, 1)));
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

void lw_match_attention(struct lower *l, int node)
{
  struct lw_match m = {.kind = LW_MATCH_ATTENTION};
  if (!match_products(l, &l->graph->nodes.v[node], &m))
    return;
  int at = only_reader(l, l->graph->nodes.v[node].results[0]);
  if (at < 0 || !lw_is_one_of(&l->graph->nodes.v[at], lw_views))
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
  if (!lw_is_half(result->dtype) || q != result->dtype || l->graph->values.v[m.k].dtype != q || l->graph->values.v[m.v].dtype != q ||
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
