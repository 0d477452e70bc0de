#include "solver/place/model.h"

#include <stdlib.h>
#include <string.h>

/* -- who meets whom -- */

struct keyed {
  int64_t key;
  int i;
};

static int by_key(const void *a, const void *b)
{
  const struct keyed *x = a, *y = b;
  if (x->key != y->key)
    return x->key < y->key ? -1 : 1;
  return (x->i > y->i) - (x->i < y->i);
}

/* Sweeps over the starts: a buffer meets all that are live when it starts. Run twice, to count and to fill. */
static void sweep(const struct sw_place_problem *p, const struct keyed *order, int *live, int64_t *n, int *v)
{
  int n_live = 0;
  for (int k = 0; k < p->buffers.n; k++) {
    int i = order[k].i, kept = 0;
    for (int l = 0; l < n_live; l++) {
      int j = live[l];
      if (p->buffers.v[j].end <= p->buffers.v[i].start)
        continue;
      live[kept++] = j;
      if (v) {
        v[n[i]] = j;
        v[n[j]] = i;
      }
      n[i]++;
      n[j]++;
    }
    live[kept++] = i;
    n_live = kept;
  }
}

struct sw_meets sw_meets_make(struct sw_arena *arena, const struct sw_place_problem *p)
{
  int n = p->buffers.n;
  struct keyed *order = SW_NEW_N(arena, struct keyed, n);
  for (int i = 0; i < n; i++)
    order[i] = (struct keyed){p->buffers.v[i].start, i};
  qsort(order, (size_t)n, sizeof *order, by_key);
  int *live = SW_NEW_N(arena, int, n);
  int64_t *count = SW_NEW_N(arena, int64_t, n + 1);
  sweep(p, order, live, count, NULL);
  struct sw_meets m = {.at = SW_NEW_N(arena, int64_t, n + 1)};
  for (int i = 0; i < n; i++)
    m.at[i + 1] = m.at[i] + count[i];
  m.v = SW_NEW_N(arena, int, m.at[n]);
  memcpy(count, m.at, sizeof *count * (size_t)(n + 1));
  sweep(p, order, live, count, m.v);
  return m;
}

/* -- sections -- */

static void cut_time(struct sw_model *m)
{
  int n = m->p->buffers.n, s = -1;
  struct keyed *at = SW_NEW_N(m->arena, struct keyed, 2 * n);
  for (int i = 0; i < n; i++) {
    at[2 * i] = (struct keyed){m->p->buffers.v[i].start, 2 * i};
    at[2 * i + 1] = (struct keyed){m->p->buffers.v[i].end, 2 * i + 1};
  }
  qsort(at, (size_t)(2 * n), sizeof *at, by_key);
  m->first = SW_NEW_N(m->arena, int, n);
  m->last = SW_NEW_N(m->arena, int, n);
  for (int k = 0; k < 2 * n; k++) {
    if (k == 0 || at[k].key != at[k - 1].key)
      s++;
    (at[k].i & 1 ? m->last : m->first)[at[k].i / 2] = s;
  }
  m->n_sections = s < 0 ? 0 : s;
}

/* -- shapes -- */

static int by_int(const void *a, const void *b)
{
  int x = *(const int *)a, y = *(const int *)b;
  return (x > y) - (x < y);
}

struct sw_shape sw_shape_of(struct sw_arena *arena, const struct sw_model *m, const int *buffers, int n)
{
  struct sw_shape out = {.v = SW_NEW_N(arena, struct sw_slab, 2 * n)};
  if (n == 1) {
    out.v[out.n++] = (struct sw_slab){m->first[buffers[0]], m->last[buffers[0]], m->p->buffers.v[buffers[0]].size};
    return out;
  }
  /* Buffers in order of their start; `live` holds those that have not ended. */
  struct keyed *order = SW_NEW_N(arena, struct keyed, n);
  int *cut = SW_NEW_N(arena, int, 2 * n), *live = SW_NEW_N(arena, int, n), n_live = 0, next = 0;
  for (int k = 0; k < n; k++) {
    order[k] = (struct keyed){m->first[buffers[k]], buffers[k]};
    cut[2 * k] = m->first[buffers[k]];
    cut[2 * k + 1] = m->last[buffers[k]];
  }
  qsort(order, (size_t)n, sizeof *order, by_key);
  qsort(cut, (size_t)(2 * n), sizeof *cut, by_int);
  for (int c = 0; c + 1 < 2 * n; c++) {
    if (cut[c] == cut[c + 1])
      continue;
    for (; next < n && order[next].key <= cut[c]; next++)
      live[n_live++] = order[next].i;
    int kept = 0;
    int64_t h = 0;
    for (int l = 0; l < n_live; l++) {
      int i = live[l];
      if (m->last[i] <= cut[c])
        continue;
      live[kept++] = i;
      if (m->p->buffers.v[i].size > h)
        h = m->p->buffers.v[i].size;
    }
    n_live = kept;
    if (!h)
      continue;
    if (out.n && out.v[out.n - 1].s1 == cut[c] && out.v[out.n - 1].h == h)
      out.v[out.n - 1].s1 = cut[c + 1];
    else
      out.v[out.n++] = (struct sw_slab){cut[c], cut[c + 1], h};
  }
  return out;
}

/* -- units and edges -- */

static void add_to_unit(struct sw_model *m, struct sw_unit *u, int i)
{
  const struct sw_place_buffer *b = &m->p->buffers.v[i];
  int64_t own = b->alignment ? b->alignment : 1;
  u->buffers[u->n++] = i;
  u->value += b->value;
  u->alignment = u->alignment / sw_gcd(u->alignment, own) * own;
  u->required |= b->required;
  if (b->barred && !u->out)
    u->out = b->barred;
  if (b->size > m->p->capacity && !u->out)
    u->out = sw_arena_printf(m->arena, "min footprint %lld B > LX capacity %lld B", (long long)b->size,
                             (long long)m->p->capacity);
  if (b->address >= 0) {
    if (u->address >= 0 && u->address != b->address && !u->out)
      u->out = "its alias group is pinned to two addresses";
    u->address = b->address;
  }
}

static void make_units(struct sw_model *m)
{
  int n = m->p->buffers.n;
  int *members = SW_NEW_N(m->arena, int, m->p->aliases.n), *group = SW_NEW_N(m->arena, int, m->p->aliases.n);
  for (int i = 0; i < n; i++)
    if (m->p->buffers.v[i].alias >= 0)
      members[m->p->buffers.v[i].alias]++;
  m->units = SW_NEW_N(m->arena, struct sw_unit, n);
  m->unit_of = SW_NEW_N(m->arena, int, n);
  for (int i = 0; i < n; i++) {
    int alias = m->p->buffers.v[i].alias, u = alias >= 0 ? group[alias] - 1 : -1;
    if (u < 0) {
      u = m->n_units++;
      m->units[u] = (struct sw_unit){.buffers = SW_NEW_N(m->arena, int, alias >= 0 ? members[alias] : 1),
                                     .alignment = m->p->alignment,
                                     .address = -1};
      if (alias >= 0)
        group[alias] = u + 1;
    }
    m->unit_of[i] = u;
    add_to_unit(m, &m->units[u], i);
  }
  for (int u = 0; u < m->n_units; u++)
    m->units[u].shape = sw_shape_of(m->arena, m, m->units[u].buffers, m->units[u].n);
}

static void make_edges(struct sw_model *m)
{
  SW_VEC(struct sw_edge) edges = {0};
  for (int i = 0; i < m->p->buffers.n; i++) {
    const struct sw_place_buffer *b = &m->p->buffers.v[i];
    for (int k = 0; k < b->n_parents; k++) {
      int from = m->unit_of[b->parents[k]], to = m->unit_of[i];
      if (from != to && !m->units[from].out && !m->units[to].out)
        *SW_PUSH(m->arena, &edges) = (struct sw_edge){b->parents[k], i, m->first[i]};
    }
  }
  m->edges = edges.v;
  m->n_edges = edges.n;
}

/* Pushed down, a buffer rests on 0, on another one or at a pinned address: its address is a sum of rounded sizes and
 * pinned addresses. */
static int64_t granule_of(const struct sw_model *m)
{
  int64_t g = 0;
  for (int i = 0; i < m->p->buffers.n; i++) {
    const struct sw_place_buffer *b = &m->p->buffers.v[i];
    const struct sw_unit *u = &m->units[m->unit_of[i]];
    if (u->out)
      continue;
    g = sw_gcd(g, b->size);
    g = sw_gcd(g, sw_round_up(b->size, u->alignment));
    if (b->address > 0)
      g = sw_gcd(g, b->address);
  }
  for (int u = 0; g > 1 && u < m->n_units; u++)
    if (g % m->units[u].alignment) /* then rounding of sums matters */
      g = sw_gcd(g, m->units[u].alignment);
  return g ? g : 1;
}

struct sw_model *sw_model_make(struct sw_arena *arena, const struct sw_place_problem *p)
{
  struct sw_model *m = SW_NEW(arena, struct sw_model);
  m->p = p;
  m->arena = arena;
  cut_time(m);
  make_units(m);
  make_edges(m);
  m->granule = granule_of(m);
  return m;
}
