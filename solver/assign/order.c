/* In which order to eliminate. The cost of an order is the number of entries of all tables on the way; finding the best
 * is as hard as the problem itself, so several cheap ways are tried and the cheapest result is taken:
 *
 *   natural   last variable first. Decoding then runs in variable order and gives the tie-break for nothing.
 *   degree    always the variable with the smallest table: trees, ladders, hubs.
 *   sweep     one front moves over the graph; next is the front's variable that makes it grow least: grids.
 *             A 20 x 20 grid of 2 labels: 2^21 entries in the largest table, degree gets 2^28.
 *   fill      the variable that joins the fewest unjoined neighbours; again with ties shuffled. For what is costly. */
#include "solver/assign/net.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int ascending(const void *x, const void *y)
{
  int a = *(const int *)x, b = *(const int *)y;
  return (a > b) - (a < b);
}

struct sw_order *sw_order_scopes(struct sw_arena *a, const struct sw_island *is, const int *order, double limit)
{
  int n = is->n;
  struct sw_order *o = SW_NEW(a, struct sw_order);
  o->order = sw_arena_copy(a, order, (size_t)n, sizeof *order);
  o->position = SW_NEW_N(a, int, n);
  o->scope_first = SW_NEW_N(a, int64_t, n + 1);
  for (int i = 0; i < n; i++)
    o->position[order[i]] = i;
  /* The table left by position i goes to the first position of its scope: a tree, children as lists. */
  int *child = SW_NEW_N(a, int, n), *sibling = SW_NEW_N(a, int, n), *mark = SW_NEW_N(a, int, n);
  for (int i = 0; i < n; i++)
    child[i] = sibling[i] = mark[i] = -1;
  SW_VEC(int) scope = {0};
  for (int i = 0; i < n; i++) {
    int v = order[i], begin = scope.n;
    double entries = is->k[v];
    mark[i] = i;
    for (int e = is->adj_first[v]; e < is->adj_first[v + 1]; e++) {
      int w = o->position[sw_pair_other(&is->pairs[is->adj[e]], v)];
      if (w < i || mark[w] == i)
        continue;
      mark[w] = i;
      *SW_PUSH(a, &scope) = w;
    }
    for (int c = child[i]; c >= 0; c = sibling[c])
      for (int64_t e = o->scope_first[c]; e < o->scope_first[c + 1]; e++) {
        int w = scope.v[e];
        if (mark[w] == i)
          continue;
        mark[w] = i;
        *SW_PUSH(a, &scope) = w;
      }
    int width = scope.n - begin;
    for (int e = begin; e < scope.n; e++)
      entries *= is->k[order[scope.v[e]]];
    o->entries += entries;
    if (o->entries > limit)
      return NULL;
    if (entries > o->largest)
      o->largest = entries;
    if (width > o->width)
      o->width = width;
    o->scope_first[i + 1] = scope.n;
    if (!width)
      continue;
    qsort(scope.v + begin, (size_t)width, sizeof *scope.v, ascending);
    int parent = scope.v[begin];
    sibling[i] = child[parent];
    child[parent] = i;
  }
  o->scope = scope.v;
  return o;
}

/* -- greedy orders -- */

/* Set of pairs of variables, open addressing. */
struct pair_set {
  struct sw_arena *arena;
  uint64_t *slot; /* key + 1, 0: free */
  size_t n, cap;
};

static bool pair_add(struct pair_set *s, int v, int w, bool only_look)
{
  uint64_t key = v < w ? (uint64_t)v << 32 | (uint32_t)w : (uint64_t)w << 32 | (uint32_t)v;
  if (2 * s->n >= s->cap) {
    struct pair_set old = *s;
    s->cap = old.cap ? 2 * old.cap : 256;
    s->slot = SW_NEW_N(s->arena, uint64_t, s->cap);
    for (size_t i = 0; i < old.cap; i++)
      if (old.slot[i]) {
        size_t h = (old.slot[i] - 1) * 0x9E3779B97F4A7C15u >> 20 & (s->cap - 1);
        while (s->slot[h])
          h = (h + 1) & (s->cap - 1);
        s->slot[h] = old.slot[i];
      }
  }
  size_t h = key * 0x9E3779B97F4A7C15u >> 20 & (s->cap - 1);
  for (; s->slot[h]; h = (h + 1) & (s->cap - 1))
    if (s->slot[h] == key + 1)
      return false;
  if (!only_look) {
    s->slot[h] = key + 1;
    s->n++;
  }
  return true;
}

struct entry {
  int64_t key;
  int tie, v;
};

struct greedy {
  struct sw_arena *arena;
  const struct sw_island *is;
  struct pair_set pairs;
  SW_VEC(int) * near; /* neighbours, eliminated ones included */
  bool *done;
  int64_t *key, *log; /* current key; 1024 * log2 of the labels */
  int *tie;
  bool by_fill;
  SW_VEC(struct entry) heap; /* entries may be out of date */
};

static bool before(const struct entry *x, const struct entry *y)
{
  return x->key != y->key ? x->key < y->key : x->tie != y->tie ? x->tie < y->tie : x->v < y->v;
}

static void heap_push(struct greedy *g, struct entry e)
{
  int i = g->heap.n;
  (void)SW_PUSH(g->arena, &g->heap);
  for (; i && before(&e, &g->heap.v[(i - 1) / 2]); i = (i - 1) / 2)
    g->heap.v[i] = g->heap.v[(i - 1) / 2];
  g->heap.v[i] = e;
}

static struct entry heap_pop(struct greedy *g)
{
  struct entry top = g->heap.v[0], last = g->heap.v[--g->heap.n];
  int i = 0, n = g->heap.n;
  for (int c; (c = 2 * i + 1) < n; i = c) {
    if (c + 1 < n && before(&g->heap.v[c + 1], &g->heap.v[c]))
      c++;
    if (!before(&g->heap.v[c], &last))
      break;
    g->heap.v[i] = g->heap.v[c];
  }
  g->heap.v[i] = last;
  return top;
}

static int64_t fill_of(struct greedy *g, int v)
{
  int64_t fill = 0;
  for (int i = 0; i < g->near[v].n; i++) {
    int x = g->near[v].v[i];
    if (g->done[x])
      continue;
    for (int j = 0; j < i; j++) {
      int y = g->near[v].v[j];
      fill += !g->done[y] && pair_add(&g->pairs, x, y, true);
    }
  }
  return fill;
}

static void touch(struct greedy *g, int v, int64_t key)
{
  g->key[v] = key;
  heap_push(g, (struct entry){key, g->tie[v], v});
}

static uint32_t next_random(uint64_t *state)
{
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(*state >> 33);
}

static void remove_from(struct greedy *g, int v)
{
  for (int j = 0; j < g->near[v].n; j++) {
    int u = g->near[v].v[j];
    if (!g->done[u])
      touch(g, u, g->key[u] - g->log[v]);
  }
}

/* The one of v and its neighbours whose absence helps most: it has most around it. */
static int crowded(const struct greedy *g, int v)
{
  int best = v;
  for (int j = 0; j < g->near[v].n; j++) {
    int u = g->near[v].v[j];
    if (!g->done[u] && (g->key[u] > g->key[best] || (g->key[u] == g->key[best] && g->tie[u] < g->tie[best])))
      best = u;
  }
  return best;
}

enum { MAX_FRONT = 48 }; /* a table over more is of no use */

/* seed 0: ties to the first variable; else shuffled. When no table of at most 2^(max_log/1024) entries is left, a
 * variable is left out (left_out). Gives the length of the order, or -1 when it is of no use. */
static int greedy_order(struct sw_arena *a, const struct sw_island *is, bool by_fill, uint64_t seed, int64_t max_log,
                        int *order, bool *left_out)
{
  int n = is->n, length = 0;
  struct greedy g = {.arena = a, .is = is, .by_fill = by_fill, .pairs = {.arena = a}};
  g.near = (void *)SW_NEW_N(a, __typeof__(*g.near), n);
  g.done = SW_NEW_N(a, bool, n);
  g.key = SW_NEW_N(a, int64_t, n);
  g.log = SW_NEW_N(a, int64_t, n);
  g.tie = SW_NEW_N(a, int, n);
  for (int v = 0; v < n; v++) {
    g.log[v] = llround(1024 * log2(is->k[v]));
    g.tie[v] = seed ? (int)(next_random(&seed) >> 1) : 0;
  }
  for (int i = 0; i < is->n_pairs; i++) {
    int v = is->pairs[i].a, w = is->pairs[i].b;
    pair_add(&g.pairs, v, w, false);
    *SW_PUSH(a, &g.near[v]) = w;
    *SW_PUSH(a, &g.near[w]) = v;
    g.key[v] += g.log[w];
    g.key[w] += g.log[v];
  }
  for (int v = 0; v < n; v++)
    touch(&g, v, by_fill ? fill_of(&g, v) : g.key[v] + g.log[v]);
  int *around = SW_NEW_N(a, int, n), *seen = SW_NEW_N(a, int, n);
  for (int i = 0; i < n;) {
    struct entry e = heap_pop(&g);
    int v = e.v, m = 0;
    if (g.done[v] || e.key != g.key[v])
      continue;
    if (left_out && e.key > max_log) {
      heap_push(&g, e);
      int w = crowded(&g, v);
      g.done[w] = left_out[w] = true;
      i++;
      remove_from(&g, w);
      continue;
    }
    g.done[v] = true;
    order[length++] = v;
    i++;
    for (int j = 0; j < g.near[v].n; j++)
      if (!g.done[g.near[v].v[j]])
        around[m++] = g.near[v].v[j];
    if (m > MAX_FRONT)
      return -1;
    for (int x = 0; x < m; x++)
      for (int y = 0; y < x; y++) {
        int u = around[x], w = around[y];
        if (!pair_add(&g.pairs, u, w, false))
          continue;
        *SW_PUSH(a, &g.near[u]) = w;
        *SW_PUSH(a, &g.near[w]) = u;
        if (!by_fill) {
          g.key[u] += g.log[w];
          g.key[w] += g.log[u];
        }
      }
    for (int x = 0; x < m; x++) {
      int u = around[x];
      if (!by_fill) {
        touch(&g, u, g.key[u] - g.log[v]);
        continue;
      }
      /* Neighbours and theirs may have another fill now. */
      for (int j = -1; j < g.near[u].n; j++) {
        int w = j < 0 ? u : g.near[u].v[j];
        if (g.done[w] || seen[w] == i)
          continue;
        seen[w] = i;
        int64_t fill = fill_of(&g, w);
        if (fill != g.key[w])
          touch(&g, w, fill);
      }
    }
  }
  return length;
}

int sw_order_partial(struct sw_arena *a, const struct sw_island *is, int max_log2, uint64_t seed, int *order,
                     bool *left_out)
{
  struct sw_arena *scratch = sw_arena_new(a, 0);
  int n = greedy_order(scratch, is, false, seed, (int64_t)max_log2 * 1024, order, left_out);
  sw_arena_free(scratch);
  return n;
}

/* -- sweep -- */

/* False when the front gets too wide to be of use. */
static bool sweep_order(struct sw_arena *a, const struct sw_island *is, int start, int *order)
{
  int n = is->n, front[MAX_FRONT], width = 0;
  double *unseen = SW_NEW_N(a, double, n), *log = SW_NEW_N(a, double, n);
  bool *seen = SW_NEW_N(a, bool, n);
  for (int v = 0; v < n; v++)
    log[v] = log2(is->k[v]);
  for (int i = 0; i < is->n_pairs; i++) {
    unseen[is->pairs[i].a] += log[is->pairs[i].b];
    unseen[is->pairs[i].b] += log[is->pairs[i].a];
  }
  for (int i = 0, v = start, w = v; i < n; i++) {
    if (width) {
      int best = 0;
      for (int j = 1; j < width; j++)
        if (unseen[front[j]] - log[front[j]] < unseen[front[best]] - log[front[best]] - 1e-9)
          best = j;
      v = front[best];
      memmove(front + best, front + best + 1, (size_t)(--width - best) * sizeof *front);
    } else {
      seen[v] = true;
      for (int e = is->adj_first[v]; e < is->adj_first[v + 1]; e++)
        unseen[sw_pair_other(&is->pairs[is->adj[e]], v)] -= log[v];
    }
    order[i] = v;
    for (int e = is->adj_first[v]; e < is->adj_first[v + 1]; e++) {
      w = sw_pair_other(&is->pairs[is->adj[e]], v);
      if (seen[w])
        continue;
      if (width == MAX_FRONT)
        return false;
      seen[w] = true;
      front[width++] = w;
      for (int f = is->adj_first[w]; f < is->adj_first[w + 1]; f++)
        unseen[sw_pair_other(&is->pairs[is->adj[f]], w)] -= log[w];
    }
  }
  return true;
}

/* The variable farthest from `from` by number of pairs, lowest degree then first index among equals. */
static int farthest(struct sw_arena *a, const struct sw_island *is, int from)
{
  int *queue = SW_NEW_N(a, int, is->n), *far = SW_NEW_N(a, int, is->n), n = 0, best = from;
  queue[n++] = from;
  far[from] = 1;
  for (int i = 0; i < n; i++) {
    int v = queue[i];
    int degree = is->adj_first[v + 1] - is->adj_first[v], least = is->adj_first[best + 1] - is->adj_first[best];
    if (far[v] > far[best] || (far[v] == far[best] && (degree < least || (degree == least && v < best))))
      best = v;
    for (int e = is->adj_first[v]; e < is->adj_first[v + 1]; e++) {
      int w = sw_pair_other(&is->pairs[is->adj[e]], v);
      if (!far[w]) {
        far[w] = far[v] + 1;
        queue[n++] = w;
      }
    }
  }
  return best;
}

/* -- the choice -- */

static void keep_better(struct sw_arena *a, const struct sw_island *is, const int *order, struct sw_order **best)
{
  struct sw_order *o = sw_order_scopes(a, is, order, *best ? (*best)->entries : INFINITY);
  if (o && (!*best || o->entries < (*best)->entries))
    *best = o;
}

struct sw_order *sw_order_find(struct sw_arena *a, const struct sw_island *is)
{
  enum { SMALL_TABLE = 256 };
  int n = is->n, *order = SW_NEW_N(a, int, n);
  for (int i = 0; i < n; i++)
    order[i] = n - 1 - i;
  struct sw_order *natural = sw_order_scopes(a, is, order, 1e12), *best = NULL;
  if (natural)
    natural->natural = true;
  if (natural && natural->largest <= SMALL_TABLE)
    return natural;
  struct sw_arena *scratch = sw_arena_new(a, 0);
  if (greedy_order(scratch, is, false, 0, 0, order, NULL) == n)
    keep_better(a, is, order, &best);
  int first = farthest(scratch, is, 0), last = farthest(scratch, is, first);
  int starts[] = {0, n - 1, first, last};
  for (int i = 0; i < 4; i++)
    if (sweep_order(scratch, is, starts[i], order))
      keep_better(a, is, order, &best);
  /* Small tables need no better order, and hopeless ones won't find one. */
  uint64_t tries = n <= 1000 ? 24 : n <= 20000 ? 6 : 2;
  for (uint64_t seed = 0; seed < tries && best && best->entries > 1 << 22 && best->entries < 1e12; seed++) {
    sw_arena_free(scratch);
    scratch = sw_arena_new(a, 0);
    if (greedy_order(scratch, is, true, seed, 0, order, NULL) == n)
      keep_better(a, is, order, &best);
    if (seed && n <= 1000 && sweep_order(scratch, is, (int)(seed * (uint64_t)n / tries), order))
      keep_better(a, is, order, &best);
  }
  sw_arena_free(scratch);
  return natural && (!best || natural->entries <= 2 * best->entries) ? natural : best;
}
