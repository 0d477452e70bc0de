/* The lexicographically smallest of all optimal vectors, from the bits that elimination leaves.
 *
 * Marked are the entries (scope, own label) that lie on some optimum: from the roots down, every minimal own label
 * under a scope that a marked entry of the parent has. Entry and child's entry meet in a *node*, one labelling of the
 * child's scope. Then for each variable in order the smallest label with a marked entry stays and the other labels'
 * entries go; a node that lost its last entry on one side takes those on the other side along. Every entry goes at
 * most once, so this costs no more than the marks themselves.
 *
 * Example A of docs/solver.md: edge [[9,5],[5,9]], x goes first. Entries of y: 0 and 1 (both reach 5); of x: (y=0, 1)
 * and (y=1, 0). Variable x takes 0, so (y=0, 1) goes, its node y=0 has nothing left below, and y = 0 goes: [0, 1]. */
#include "solver/assign/net.h"

#include <string.h>

enum { MAX_MARKS = 1 << 25 };

struct level {
  int n;         /* marked entries, those of one node side by side */
  uint64_t *key; /* scope index * labels + own label */
  int *node_of;
  bool *gone;
  int n_nodes;
  int *below_first;  /* entries of a node: below_first[node] .. below_first[node + 1] */
  int *above_first, *above; /* entries of the parent that have the node's scope */
  int *below, *upper; /* how many of each are left */
  int *down;          /* by entry of the parent: the node */
  int parent, child, sibling;
};

struct ties {
  struct sw_arena *arena;
  const struct sw_choices *c;
  struct level *levels;
  int64_t marks;
  struct {
    struct mark {
      int level, entry;
    } * v;
    int n, cap;
  } stack;
};

static int labels_at(const struct ties *t, int i)
{
  return t->c->island->k[t->c->order->order[i]];
}

/* Scope index of child i under entry `key` of its parent p. */
static uint64_t project(const struct ties *t, int i, int p, uint64_t key)
{
  const struct sw_order *o = t->c->order;
  int64_t at = o->scope_first[p];
  uint64_t kp = (uint64_t)labels_at(t, p), rest = key / kp, s = 0, step = 1;
  for (int64_t e = o->scope_first[i]; e < o->scope_first[i + 1]; e++) {
    int w = o->scope[e];
    uint64_t k = (uint64_t)labels_at(t, w), label;
    if (w == p) {
      label = key % kp;
    } else {
      /* Both scopes ascend, the child's is part of the parent's. */
      for (; o->scope[at] != w; at++)
        rest /= (uint64_t)labels_at(t, o->scope[at]);
      label = rest % k;
    }
    s += label * step;
    step *= k;
  }
  return s;
}

/* Marked entries of level i: all minimal own labels under each node's scope. */
static void grow(struct ties *t, const uint64_t *nodes, int i)
{
  struct level *l = &t->levels[i];
  const uint64_t *bits = t->c->bits[i];
  int k = labels_at(t, i);
  SW_VEC(uint64_t) key = {0};
  l->below_first = SW_NEW_N(t->arena, int, l->n_nodes + 1);
  for (int node = 0; node < l->n_nodes; node++) {
    l->below_first[node] = key.n;
    for (int x = 0; x < k; x++) {
      uint64_t e = nodes[node] * (uint64_t)k + (uint64_t)x;
      if (bits[e >> 6] >> (e & 63) & 1)
        *SW_PUSH(t->arena, &key) = e;
    }
  }
  l->below_first[l->n_nodes] = key.n;
  l->n = key.n;
  l->key = key.v;
  l->gone = SW_NEW_N(t->arena, bool, l->n);
  l->node_of = SW_NEW_N(t->arena, int, l->n);
  l->below = SW_NEW_N(t->arena, int, l->n_nodes);
  for (int node = 0; node < l->n_nodes; node++) {
    l->below[node] = l->below_first[node + 1] - l->below_first[node];
    for (int e = l->below_first[node]; e < l->below_first[node + 1]; e++)
      l->node_of[e] = node;
  }
  t->marks += l->n;
}

static void mark(struct ties *t, int i)
{
  const struct sw_order *o = t->c->order;
  struct level *l = &t->levels[i];
  SW_VEC(uint64_t) nodes = {0};
  l->child = l->sibling = l->parent = -1;
  if (o->scope_first[i] == o->scope_first[i + 1]) {
    *SW_PUSH(t->arena, &nodes) = 0;
    l->n_nodes = 1;
    l->upper = SW_NEW_N(t->arena, int, 1);
    l->upper[0] = 1; /* nothing above takes the root's node away */
    grow(t, nodes.v, i);
    return;
  }
  l->parent = o->scope[o->scope_first[i]];
  struct level *p = &t->levels[l->parent];
  l->sibling = p->child;
  p->child = i;
  struct sw_map ids = {.arena = sw_arena_new(t->arena, 0)};
  l->down = SW_NEW_N(t->arena, int, p->n);
  for (int e = 0; e < p->n; e++) {
    uint64_t s = project(t, i, l->parent, p->key[e]);
    int64_t id = sw_map_get(&ids, &s, sizeof s);
    if (id < 0) {
      id = nodes.n;
      sw_map_set(&ids, &s, sizeof s, id);
      *SW_PUSH(t->arena, &nodes) = s;
    }
    l->down[e] = (int)id;
  }
  sw_arena_free(ids.arena);
  l->n_nodes = nodes.n;
  l->upper = SW_NEW_N(t->arena, int, l->n_nodes);
  l->above_first = SW_NEW_N(t->arena, int, l->n_nodes + 1);
  l->above = SW_NEW_N(t->arena, int, p->n);
  for (int e = 0; e < p->n; e++)
    l->upper[l->down[e]]++;
  for (int node = 0; node < l->n_nodes; node++)
    l->above_first[node + 1] = l->above_first[node] + l->upper[node];
  int *at = sw_arena_copy(t->arena, l->above_first, (size_t)l->n_nodes, sizeof *at);
  for (int e = 0; e < p->n; e++)
    l->above[at[l->down[e]]++] = e;
  grow(t, nodes.v, i);
}

static void let_go(struct ties *t, int level, int entry)
{
  if (t->levels[level].gone[entry])
    return;
  t->levels[level].gone[entry] = true;
  *SW_PUSH(t->arena, &t->stack) = (struct mark){level, entry};
}

static void run(struct ties *t)
{
  while (t->stack.n) {
    struct mark m = t->stack.v[--t->stack.n];
    struct level *l = &t->levels[m.level];
    int node = l->node_of[m.entry];
    if (!--l->below[node] && l->parent >= 0)
      for (int e = l->above_first[node]; e < l->above_first[node + 1]; e++)
        let_go(t, l->parent, l->above[e]);
    for (int c = l->child; c >= 0; c = t->levels[c].sibling) {
      struct level *d = &t->levels[c];
      int under = d->down[m.entry];
      if (!--d->upper[under])
        for (int e = d->below_first[under]; e < d->below_first[under + 1]; e++)
          let_go(t, c, e);
    }
  }
}

bool sw_ties_smallest(struct sw_arena *a, const struct sw_choices *c, int *labels)
{
  const struct sw_island *is = c->island;
  struct ties t = {.arena = sw_arena_new(a, 0), .c = c};
  t.levels = SW_NEW_N(t.arena, struct level, is->n);
  for (int i = is->n - 1; i >= 0 && t.marks <= MAX_MARKS; i--)
    mark(&t, i);
  bool fits = t.marks <= MAX_MARKS;
  for (int v = 0; v < is->n && fits; v++) {
    int i = c->order->position[v], k = is->k[v], least = k;
    struct level *l = &t.levels[i];
    for (int e = 0; e < l->n; e++)
      if (!l->gone[e] && (int)(l->key[e] % (uint64_t)k) < least)
        least = (int)(l->key[e] % (uint64_t)k);
    labels[v] = least;
    for (int e = 0; e < l->n; e++)
      if ((int)(l->key[e] % (uint64_t)k) != least)
        let_go(&t, i, e);
    run(&t);
  }
  sw_arena_free(t.arena);
  return fits;
}
