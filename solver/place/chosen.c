#include "solver/place/chosen.h"

#include <stdlib.h>
#include <string.h>

/* In-place hand-overs turn units into groups that share a base. For the units of one piece of time a matching of edges
 * is tried that the capacity program likes and as many more as go with it, then that one alone, then (few edges) every
 * matching: only if none of them packs, the piece does not. */

struct piece {
  struct sw_chosen *c;
  int *units, n_units;
  int *edges, n_edges;        /* between them */
  int *child_of, *parent_of;  /* per buffer: the hand-overs that are tried, -1 */
  bool is_proof;              /* so far every refusal was one */
  int leaves;
};

enum { MAX_LEAVES = 5000, MAX_ENUMERATED = 40 };

/* -- hand-overs -- */

static void set_edge(struct piece *x, int e, bool on)
{
  const struct sw_edge *edge = &x->c->model->edges[e];
  x->child_of[edge->parent] = on ? edge->child : -1;
  x->parent_of[edge->child] = on ? edge->parent : -1;
}

/* Whether edge e goes with the hand-overs so far: slots once, and no chain over a buffer that lives for one section
 * (its parent would still be there when its child starts). */
static bool edge_is_possible(const struct piece *x, int e)
{
  const struct sw_model *m = x->c->model;
  int p = m->edges[e].parent, q = m->edges[e].child;
  if (x->child_of[p] >= 0 || x->parent_of[q] >= 0)
    return false;
  bool p_is_short = m->last[p] - m->first[p] == 1, q_is_short = m->last[q] - m->first[q] == 1;
  return !(p_is_short && x->parent_of[p] >= 0) && !(q_is_short && x->child_of[q] >= 0);
}

static void clear_edges(struct piece *x)
{
  for (int k = 0; k < x->n_edges; k++) {
    x->child_of[x->c->model->edges[x->edges[k]].parent] = -1;
    x->parent_of[x->c->model->edges[x->edges[k]].child] = -1;
  }
}

/* -- from units to items and back -- */

static int root(int *up, int i)
{
  while (up[i] != i)
    i = up[i] = up[up[i]];
  return i;
}

/* Buffers at one base may meet only as alias or as parent and child of a hand-over. `buffers` in any order. */
static bool group_is_legal(struct sw_arena *arena, const struct piece *x, const int *buffers, int n)
{
  const struct sw_model *m = x->c->model;
  struct sw_place_problem few = {.alignment = 1};
  for (int i = 0; i < n; i++)
    *SW_PUSH(arena, &few.buffers) = m->p->buffers.v[buffers[i]];
  struct sw_meets meets = sw_meets_make(arena, &few);
  for (int i = 0; i < n; i++)
    for (int64_t e = meets.at[i]; e < meets.at[i + 1]; e++) {
      int a = buffers[i], b = buffers[meets.v[e]];
      int group = m->p->buffers.v[a].alias;
      if (x->parent_of[a] != b && x->parent_of[b] != a && !(group >= 0 && group == m->p->buffers.v[b].alias))
        return false;
    }
  return true;
}

/* Packs the piece with the hand-overs as they are set. An illegal set of hand-overs is a proof of its own. */
static enum sw_packed try_edges(struct piece *x, int64_t work)
{
  struct sw_chosen *c = x->c;
  const struct sw_model *m = c->model;
  struct sw_arena *arena = sw_arena_new(c->arena, SIZE_MAX);
  int *up = SW_NEW_N(arena, int, x->n_units), *at = SW_NEW_N(arena, int, m->n_units);
  for (int i = 0; i < x->n_units; i++)
    at[x->units[i]] = up[i] = i;
  for (int k = 0; k < x->n_edges; k++) {
    const struct sw_edge *e = &m->edges[x->edges[k]];
    if (x->parent_of[e->child] == e->parent)
      up[root(up, at[m->unit_of[e->child]])] = root(up, at[m->unit_of[e->parent]]);
  }
  struct group {
    SW_VEC(int) buffers;
  } *groups = SW_NEW_N(arena, struct group, x->n_units);
  struct sw_item *items = SW_NEW_N(arena, struct sw_item, x->n_units);
  int *item_of = SW_NEW_N(arena, int, x->n_units), *number = SW_NEW_N(arena, int, x->n_units), n = 0;
  bool is_legal = true;
  for (int i = 0; i < x->n_units; i++) {
    const struct sw_unit *u = &m->units[x->units[i]];
    int r = root(up, i);
    if (!number[r]) {
      items[n] = (struct sw_item){.alignment = 1, .address = -1};
      number[r] = ++n;
    }
    int k = item_of[i] = number[r] - 1;
    for (int b = 0; b < u->n; b++)
      *SW_PUSH(arena, &groups[k].buffers) = u->buffers[b];
    items[k].alignment = items[k].alignment / sw_gcd(items[k].alignment, u->alignment) * u->alignment;
    is_legal &= items[k].address < 0 || u->address < 0 || items[k].address == u->address;
    if (u->address >= 0)
      items[k].address = u->address;
  }
  for (int k = 0; k < n && is_legal; k++) {
    is_legal = items[k].address < 0 || !(items[k].address % items[k].alignment);
    if (groups[k].buffers.n > 1)
      is_legal &= group_is_legal(arena, x, groups[k].buffers.v, groups[k].buffers.n);
    items[k].shape = sw_shape_of(arena, m, groups[k].buffers.v, groups[k].buffers.n);
  }
  enum sw_packed answer = SW_UNPACKABLE;
  if (is_legal) {
    struct sw_pack pack = {.arena = arena, .job = c->job, .items = items, .n = n, .n_sections = m->n_sections,
                           .height = c->height, .work = work, .offset = SW_NEW_N(arena, int64_t, n)};
    answer = sw_pack(&pack);
    c->work -= work - pack.work + x->n_units;
    if (answer == SW_PACKED) {
      c->by = pack.by;
      for (int i = 0; i < x->n_units; i++)
        for (int b = 0; b < m->units[x->units[i]].n; b++)
          c->address[m->units[x->units[i]].buffers[b]] = pack.offset[item_of[i]];
    }
  }
  sw_arena_free(arena);
  return answer;
}

/* -- one piece -- */

/* Every matching of the edges from k on; true when one packs. */
static bool enumerate(struct piece *x, int k)
{
  if (x->c->work <= 0 || x->leaves >= MAX_LEAVES) {
    x->is_proof = false;
    return false;
  }
  if (k == x->n_edges) {
    x->leaves++;
    enum sw_packed answer = try_edges(x, x->c->work / 4);
    x->is_proof &= answer != SW_GAVE_UP;
    return answer == SW_PACKED;
  }
  if (edge_is_possible(x, x->edges[k])) {
    set_edge(x, x->edges[k], true);
    if (enumerate(x, k + 1))
      return true;
    set_edge(x, x->edges[k], false);
  }
  return enumerate(x, k + 1);
}

static enum sw_packed pack_piece(struct piece *x)
{
  struct sw_chosen *c = x->c;
  const struct sw_model *m = c->model;
  for (int more = 1; more >= 0; more--) {
    clear_edges(x);
    for (int pass = 0; pass <= more; pass++)
      for (int k = 0; k < x->n_edges; k++) {
        int e = x->edges[k];
        bool plain = m->units[m->unit_of[m->edges[e].parent]].n == 1 && m->units[m->unit_of[m->edges[e].child]].n == 1;
        bool wanted = pass ? plain : c->merged && c->merged[e];
        if (wanted && edge_is_possible(x, e))
          set_edge(x, e, true);
      }
    enum sw_packed answer = try_edges(x, x->n_edges ? c->work / 4 : c->work);
    if (answer == SW_PACKED || !x->n_edges)
      return answer;
  }
  if (x->n_edges > MAX_ENUMERATED)
    return SW_GAVE_UP;
  clear_edges(x);
  x->is_proof = true;
  if (enumerate(x, 0))
    return SW_PACKED;
  return x->is_proof ? SW_UNPACKABLE : SW_GAVE_UP;
}

/* -- all -- */

struct start {
  int first, unit;
};

static int by_first(const void *a, const void *b)
{
  const struct start *x = a, *y = b;
  if (x->first != y->first)
    return x->first < y->first ? -1 : 1;
  return (x->unit > y->unit) - (x->unit < y->unit);
}

enum sw_packed sw_pack_chosen(struct sw_chosen *c)
{
  const struct sw_model *m = c->model;
  int n = 0, n_buffers = m->p->buffers.n;
  struct start *order = SW_NEW_N(c->arena, struct start, m->n_units);
  struct piece x = {.c = c,
                    .units = SW_NEW_N(c->arena, int, m->n_units),
                    .edges = SW_NEW_N(c->arena, int, m->n_edges),
                    .child_of = SW_NEW_N(c->arena, int, n_buffers),
                    .parent_of = SW_NEW_N(c->arena, int, n_buffers)};
  c->address = SW_NEW_N(c->arena, int64_t, n_buffers);
  c->n_failed = 0;
  for (int b = 0; b < n_buffers; b++)
    c->address[b] = x.child_of[b] = x.parent_of[b] = -1;
  for (int u = 0; u < m->n_units; u++)
    if (c->in[u])
      order[n++] = (struct start){m->units[u].shape.v[0].s0, u};
  qsort(order, (size_t)n, sizeof *order, by_first);
  /* Edges come in order of the child's buffer; a piece takes those whose child is in it. */
  int *piece_of = SW_NEW_N(c->arena, int, m->n_units), n_pieces = 0, end = -1;
  for (int k = 0; k < n; k++) {
    const struct sw_shape *s = &m->units[order[k].unit].shape;
    n_pieces += s->v[0].s0 >= end;
    if (s->v[s->n - 1].s1 > end)
      end = s->v[s->n - 1].s1;
    piece_of[order[k].unit] = n_pieces;
  }
  struct list {
    SW_VEC(int) of;
  } *edges = SW_NEW_N(c->arena, struct list, n_pieces + 1);
  for (int e = 0; e < m->n_edges; e++) {
    int from = m->unit_of[m->edges[e].parent], to = m->unit_of[m->edges[e].child];
    if (piece_of[from] && piece_of[from] == piece_of[to])
      *SW_PUSH(c->arena, &edges[piece_of[to]].of) = e;
  }
  enum sw_packed answer = SW_PACKED;
  for (int a = 0, z; a < n && answer == SW_PACKED; a = z) {
    int number = piece_of[order[a].unit];
    x.n_units = 0;
    for (z = a; z < n && piece_of[order[z].unit] == number; z++)
      x.units[x.n_units++] = order[z].unit;
    x.edges = edges[number].of.v;
    x.n_edges = edges[number].of.n;
    answer = pack_piece(&x);
    if (answer != SW_PACKED) {
      c->failed = sw_arena_copy(c->arena, x.units, (size_t)x.n_units, sizeof *x.units);
      c->n_failed = x.n_units;
    }
  }
  return answer;
}
