/* From a problem to the pairwise network: groups become pairs, pairs of the same variables become one. */
#include "solver/assign/net.h"

#include <stdlib.h>
#include <string.h>

/* While building: pairs in any order, several of the same variables. `serial` keeps the sort stable. */
struct raw {
  int a, b, step_a, step_b, serial;
  const int64_t *t;
};

struct build {
  struct sw_arena *arena;
  SW_VEC(struct raw) raw;
};

static void add_pair(struct build *b, int v, int w, int step_v, int step_w, const int64_t *t)
{
  struct raw *r = SW_PUSH(b->arena, &b->raw);
  *r = v < w ? (struct raw){v, w, step_v, step_w, b->raw.n, t} : (struct raw){w, v, step_w, step_v, b->raw.n, t};
}

static int by_variables(const void *x, const void *y)
{
  const struct raw *p = x, *q = y;
  return p->a != q->a ? (p->a < q->a ? -1 : 1) : p->b != q->b ? (p->b < q->b ? -1 : 1) : p->serial - q->serial;
}

/* Sum of the n tables of one pair of variables, row-major. */
static const int64_t *sum_tables(struct sw_arena *a, const struct raw *r, int n, int rows, int cols)
{
  int64_t *t = SW_NEW_N(a, int64_t, (size_t)rows * (size_t)cols);
  for (int k = 0; k < n; k++)
    for (int i = 0; i < rows; i++)
      for (int j = 0; j < cols; j++)
        t[i * cols + j] = sw_assign__plus(t[i * cols + j], r[k].t[i * r[k].step_a + j * r[k].step_b]);
  return t;
}

/* Sorts, joins and indexes the pairs. */
static void finish(struct sw_net *net, struct build *b)
{
  struct raw *r = b->raw.v;
  int n = b->raw.n;
  bool sorted = true;
  for (int i = 1; i < n && sorted; i++)
    sorted = by_variables(&r[i - 1], &r[i]) < 0;
  if (!sorted)
    qsort(r, (size_t)n, sizeof *r, by_variables);
  net->pairs = SW_NEW_N(net->arena, struct sw_pair, n);
  for (int i = 0, j; i < n; i = j) {
    for (j = i + 1; j < n && r[j].a == r[i].a && r[j].b == r[i].b;)
      j++;
    struct sw_pair *p = &net->pairs[net->n_pairs++];
    *p = (struct sw_pair){r[i].a, r[i].b, r[i].step_a, r[i].step_b, r[i].t};
    if (j > i + 1) {
      int rows = sw_net_labels(net, p->a), cols = sw_net_labels(net, p->b);
      p->t = sum_tables(net->arena, &r[i], j - i, rows, cols);
      p->step_a = cols;
      p->step_b = 1;
    }
  }
  net->adj_first = SW_NEW_N(net->arena, int, net->n + 1);
  net->adj = SW_NEW_N(net->arena, int, 2 * (size_t)net->n_pairs);
  int *first = net->adj_first;
  for (int i = 0; i < net->n_pairs; i++)
    first[net->pairs[i].a]++, first[net->pairs[i].b]++;
  for (int v = 0, sum = 0; v <= net->n; v++) {
    int degree = v < net->n ? first[v] : 0;
    first[v] = sum;
    sum += degree;
  }
  for (int i = 0; i < net->n_pairs; i++)
    net->adj[first[net->pairs[i].a]++] = i, net->adj[first[net->pairs[i].b]++] = i;
  for (int v = net->n; v > 0; v--)
    first[v] = first[v - 1];
  first[0] = 0;
}

/* A reader's table in mode per-edge: rows producer, columns reader. Equal ones are made once. */
static const int64_t *reader_table(struct sw_net *net, const struct sw_assign_problem *p, struct sw_map *ids,
                                   int table, const int *wants, int n_wants)
{
  int few[32], *key = n_wants < 32 ? few : SW_NEW_N(ids->arena, int, n_wants + 1);
  key[0] = table;
  memcpy(key + 1, wants, (size_t)n_wants * sizeof *wants);
  size_t len = (size_t)(n_wants + 1) * sizeof *key;
  int64_t was = sw_map_get(ids, key, len);
  if (was >= 0)
    return (const int64_t *)(uintptr_t)was;
  const struct sw_assign_table *conv = &p->tables.v[table];
  int64_t *t = SW_NEW_N(net->arena, int64_t, (size_t)conv->rows * (size_t)n_wants);
  for (int i = 0; i < conv->rows; i++)
    for (int j = 0; j < n_wants; j++)
      t[i * n_wants + j] = wants[j] < 0 ? 0 : conv->cost[i * conv->cols + wants[j]];
  sw_map_set(ids, key, len, (int64_t)(uintptr_t)t);
  return t;
}

static bool all_zero(const int64_t *t, int64_t n)
{
  for (int64_t i = 0; i < n; i++)
    if (t[i])
      return false;
  return true;
}

static void add_readers_per_edge(struct sw_net *net, struct build *b, const struct sw_assign_problem *p, bool free_too)
{
  struct sw_map ids = {.arena = b->arena};
  for (int i = 0; i < p->readers.n; i++) {
    const struct sw_assign_reader *r = &p->readers.v[i];
    const struct sw_assign_group *g = &p->groups.v[r->group];
    int k = sw_net_labels(net, r->variable), rows = sw_net_labels(net, g->producer);
    const int64_t *t = reader_table(net, p, &ids, g->table, r->wants, k);
    if (free_too || !all_zero(t, (int64_t)rows * k))
      add_pair(b, g->producer, r->variable, k, 1, t);
  }
}

/* Reader against copy: not made (column 0) is impossible under a label that wants the class. */
static const int64_t *want_table(struct sw_net *net, const struct sw_assign_reader *r, int class_index, int k)
{
  int64_t *t = SW_NEW_N(net->arena, int64_t, 2 * (size_t)k);
  for (int j = 0; j < k; j++)
    t[2 * j] = r->wants[j] == class_index ? SW_ASSIGN_INF : 0;
  return t;
}

static void add_readers_shared(struct sw_net *net, struct build *b, const struct sw_assign_problem *p)
{
  for (int g = 0, copy = net->n_real; g < p->groups.n; copy += p->groups.v[g++].n_classes) {
    const struct sw_assign_group *group = &p->groups.v[g];
    const int64_t *conv = p->tables.v[group->table].cost;
    int k = sw_net_labels(net, group->producer);
    for (int t = 0; t < group->n_classes; t++) {
      int64_t *made = SW_NEW_N(net->arena, int64_t, 2 * (size_t)k);
      for (int i = 0; i < k; i++)
        made[2 * i + 1] = conv[i * group->n_classes + t];
      if (!all_zero(made, 2 * (int64_t)k))
        add_pair(b, group->producer, copy + t, 2, 1, made);
    }
  }
  int *first = SW_NEW_N(b->arena, int, p->groups.n + 1);
  for (int g = 0; g < p->groups.n; g++)
    first[g + 1] = first[g] + p->groups.v[g].n_classes;
  for (int i = 0; i < p->readers.n; i++) {
    const struct sw_assign_reader *r = &p->readers.v[i];
    int k = sw_net_labels(net, r->variable);
    for (int t = 0; t < p->groups.v[r->group].n_classes; t++) {
      const int64_t *table = want_table(net, r, t, k);
      if (!all_zero(table, 2 * (int64_t)k))
        add_pair(b, r->variable, net->n_real + first[r->group] + t, 2, 1, table);
    }
  }
}

static struct sw_net *new_net(struct sw_arena *a, int n, int n_real)
{
  struct sw_net *net = SW_NEW(a, struct sw_net);
  net->arena = a;
  net->n = n;
  net->n_real = n_real;
  net->first = SW_NEW_N(a, int, n + 1);
  net->rep = SW_NEW_N(a, int, n);
  net->map = SW_NEW_N(a, int *, n);
  for (int v = 0; v < n; v++)
    net->rep[v] = v;
  return net;
}

struct sw_net *sw_net_build(struct sw_arena *a, const struct sw_assign_problem *p, enum sw_net_groups groups)
{
  bool shared = groups == SW_NET_COPIES;
  int n = p->variables.n, copies = 0;
  for (int g = 0; shared && g < p->groups.n; g++)
    copies += p->groups.v[g].n_classes;
  struct sw_net *net = new_net(a, n + copies, n);
  for (int v = 0; v < net->n; v++)
    net->first[v + 1] = net->first[v] + (v < n ? p->variables.v[v].n_labels : 2);
  net->unary = SW_NEW_N(a, int64_t, net->first[net->n]);
  net->gone = SW_NEW_N(a, bool, net->first[net->n]);
  for (int v = 0; v < n; v++)
    if (p->variables.v[v].cost)
      memcpy(net->unary + net->first[v], p->variables.v[v].cost,
             (size_t)p->variables.v[v].n_labels * sizeof *net->unary);
  struct build b = {.arena = sw_arena_new(a, 0)};
  b.raw.cap = p->edges.n + copies + p->readers.n + 1; /* the most common case without growing */
  b.raw.v = SW_NEW_N(b.arena, struct raw, b.raw.cap);
  for (int i = 0; i < p->edges.n; i++) {
    const struct sw_assign_edge *e = &p->edges.v[i];
    const struct sw_assign_table *t = &p->tables.v[e->table];
    add_pair(&b, e->a, e->b, t->cols, 1, t->cost);
  }
  if (shared)
    add_readers_shared(net, &b, p);
  else if (groups == SW_NET_PER_EDGE || groups == SW_NET_EVERY_EDGE)
    add_readers_per_edge(net, &b, p, groups == SW_NET_EVERY_EDGE);
  finish(net, &b);
  sw_arena_free(b.arena);
  return net;
}

static int through(const struct sw_net *net, int v, int label)
{
  return net->map[v] ? net->map[v][label] : label;
}

struct sw_net *sw_net_contract(struct sw_arena *a, const struct sw_net *old)
{
  struct sw_net *net = new_net(a, old->n, old->n_real);
  memcpy(net->first, old->first, (size_t)(old->n + 1) * sizeof *net->first);
  memcpy(net->rep, old->rep, (size_t)old->n * sizeof *net->rep);
  memcpy(net->map, old->map, (size_t)old->n * sizeof *net->map);
  net->unary = sw_arena_copy(a, old->unary, (size_t)old->first[old->n], sizeof *old->unary);
  net->gone = sw_arena_copy(a, old->gone, (size_t)old->first[old->n], sizeof *old->gone);
  for (int v = 0; v < old->n; v++) {
    int r = old->rep[v];
    if (r == v)
      continue;
    int64_t *to = net->unary + net->first[r];
    for (int i = 0; i < sw_net_labels(net, r); i++)
      if (to[i] != SW_ASSIGN_INF)
        to[i] = sw_assign__plus(to[i], old->unary[old->first[v] + through(old, v, i)]);
  }
  for (int v = 0; v < old->n; v++)
    if (old->rep[v] != v) /* its costs are with the other now */
      memset(net->unary + net->first[v], 0, (size_t)sw_net_labels(net, v) * sizeof *net->unary);
  struct build b = {.arena = sw_arena_new(a, 0)};
  for (int i = 0; i < old->n_pairs; i++) {
    const struct sw_pair *p = &old->pairs[i];
    int v = old->rep[p->a], w = old->rep[p->b];
    if (v == p->a && w == p->b) {
      add_pair(&b, v, w, p->step_a, p->step_b, p->t);
      continue;
    }
    int kv = sw_net_labels(net, v), kw = sw_net_labels(net, w);
    if (v == w) {
      for (int x = 0; x < kv; x++)
        if (net->unary[net->first[v] + x] != SW_ASSIGN_INF)
          net->unary[net->first[v] + x] = sw_assign__plus(net->unary[net->first[v] + x],
            sw_pair_cost(p, p->a, through(old, p->a, x), through(old, p->b, x)));
      continue;
    }
    int64_t *t = SW_NEW_N(a, int64_t, (size_t)kv * (size_t)kw);
    for (int x = 0; x < kv; x++)
      for (int y = 0; y < kw; y++)
        t[x * kw + y] = sw_pair_cost(p, p->a, through(old, p->a, x), through(old, p->b, y));
    add_pair(&b, v, w, kw, 1, t);
  }
  finish(net, &b);
  sw_arena_free(b.arena);
  return net;
}
