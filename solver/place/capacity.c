/* Which units are resident, as an integer program of the capacity in every section.
 *
 * Columns:
 *   x[u] in {0,1}   unit u is resident
 *   m[e] in {0,1}   the child of edge e takes the slot of the parent
 * Rows:
 *   per section t that can overflow   sum of h[u,t] x[u] over the live units - sum of saved[e] m[e] over the edges of t
 *                                     <= capacity
 *   per parent    sum of m[e] <= x[parent]      a slot is handed over once, and only if it is there
 *   per child     sum of m[e] <= x[child]
 *   per cut       sum of x[u] over the cut <= its length - 1
 * Maximise the value.
 *
 * A section whose live units are all live in a neighbour that saves nothing needs no row (of equal ones the first stays). Units in no row are resident
 * without being asked: most of a program that fits. Example (place-problem.md 5 A): sizes 6, 5, 5 at one tick of
 * capacity 10, values 7, 4, 4: 6a + 5b + 5c <= 10 gives b = c = 1, value 8.
 *
 * Addresses are multiples of the common alignment A. If the capacity is one too, a unit takes its size rounded up to A.
 * All numbers are divided by their greatest common divisor, so that GLPK's floating point sees small integers. */
#include "solver/place/capacity.h"

#include <stdlib.h>
#include <string.h>

/* -- heights -- */

static int64_t common_alignment(const struct sw_model *m)
{
  int64_t a = 0;
  for (int u = 0; u < m->n_units; u++)
    a = sw_gcd(a, m->units[u].alignment);
  return a ? a : 1;
}

struct loads {
  int64_t round;
  int64_t *load;   /* per section, of all units that may be in */
  bool *saves;     /* per section: an edge hands over here */
  bool *starts, *ends; /* per section: somebody starts with it, somebody ends with it */
};

static bool may_be_in(const struct sw_master *m, int u)
{
  const struct sw_unit *x = &m->model->units[u];
  if (x->out || (!x->value && !x->required))
    return false;
  for (int p = 0; p < x->shape.n; p++)
    if (x->shape.v[p].h + (x->address > 0 ? x->address : 0) > m->height)
      return false;
  return true;
}

static int64_t height_in(const struct sw_unit *u, int section, int64_t round)
{
  for (int p = 0; p < u->shape.n; p++)
    if (u->shape.v[p].s0 <= section && section < u->shape.v[p].s1)
      return sw_round_up(u->shape.v[p].h, round);
  return 0;
}

static struct loads find_loads(struct sw_arena *arena, const struct sw_master *m)
{
  const struct sw_model *d = m->model;
  struct loads l = {.round = common_alignment(d),
                    .load = SW_NEW_N(arena, int64_t, d->n_sections + 1),
                    .saves = SW_NEW_N(arena, bool, d->n_sections + 1),
                    .starts = SW_NEW_N(arena, bool, d->n_sections + 1),
                    .ends = SW_NEW_N(arena, bool, d->n_sections + 1)};
  if (m->height % l.round)
    l.round = 1;
  for (int u = 0; u < d->n_units; u++)
    for (int p = 0; may_be_in(m, u) && p < d->units[u].shape.n; p++) {
      const struct sw_slab *part = &d->units[u].shape.v[p];
      int64_t h = sw_round_up(part->h, l.round);
      l.load[part->s0] += h;
      l.load[part->s1] -= h;
      l.starts[part->s0] = true;
      l.ends[part->s1 - 1] = true;
    }
  for (int s = 0; s < d->n_sections; s++)
    l.load[s + 1] += l.load[s];
  for (int e = 0; e < d->n_edges; e++)
    l.saves[d->edges[e].section] = true;
  return l;
}

/* -- rows -- */

static int column_of_unit(struct sw_capacity *g, int u)
{
  if (!g->column_of_unit[u]) {
    g->column_of_unit[u] = ++g->n_columns;
    g->unit_of_column[g->n_columns] = u;
  }
  return g->column_of_unit[u];
}

static int column_of_edge(struct sw_capacity *g, int e)
{
  if (!g->column_of_edge[e]) {
    g->column_of_edge[e] = ++g->n_columns;
    g->edge_of_column[g->n_columns] = e;
  }
  return g->column_of_edge[e];
}

static void begin_row(struct sw_capacity *g, int64_t limit)
{
  *SW_PUSH(g->arena, &g->rows) = (struct sw_row){g->entries.n, 0, limit};
}

static void add(struct sw_capacity *g, int column, int64_t factor)
{
  *SW_PUSH(g->arena, &g->entries) = (struct sw_entry){column, factor};
  g->rows.v[g->rows.n - 1].n++;
}

/* Divides a row of non-negative limit by the common divisor of its factors. */
static void scale_row(struct sw_capacity *g)
{
  struct sw_row *r = &g->rows.v[g->rows.n - 1];
  int64_t d = 0;
  for (int k = 0; k < r->n; k++)
    d = sw_gcd(d, llabs(g->entries.v[r->from + k].factor));
  for (int k = 0; d > 1 && k < r->n; k++)
    g->entries.v[r->from + k].factor /= d;
  if (d > 1)
    r->limit /= d;
}

/* The sections that need a row, in order, each with its live units: a sweep over the parts. */
static void add_capacity_rows(struct sw_capacity *g)
{
  struct sw_master *m = g->m;
  const struct sw_model *d = m->model;
  struct loads l = find_loads(g->arena, m);
  struct list {
    SW_VEC(int) of;
  } *start_at = SW_NEW_N(g->arena, struct list, d->n_sections), *edges_at = SW_NEW_N(g->arena, struct list,
                                                                                    d->n_sections);
  for (int u = 0; u < d->n_units; u++)
    for (int p = 0; may_be_in(m, u) && p < d->units[u].shape.n; p++)
      *SW_PUSH(g->arena, &start_at[d->units[u].shape.v[p].s0].of) = u;
  for (int e = 0; e < d->n_edges; e++)
    *SW_PUSH(g->arena, &edges_at[d->edges[e].section].of) = e;
  int *live = SW_NEW_N(g->arena, int, d->n_units), n_live = 0;
  for (int s = 0; s < d->n_sections; s++) {
    int kept = 0;
    for (int k = 0; k < n_live; k++)
      if (height_in(&d->units[live[k]], s, 1))
        live[kept++] = live[k];
    n_live = kept;
    for (int k = 0; k < start_at[s].of.n; k++) {
      int u = start_at[s].of.v[k];
      bool is_there = false; /* a part that follows on another one of the same unit */
      for (int q = 0; q < kept; q++)
        is_there |= live[q] == u;
      if (!is_there)
        live[n_live++] = u;
    }
    bool in_previous = s > 0 && !l.starts[s] && !l.saves[s - 1];
    bool in_next = s + 1 < d->n_sections && !l.ends[s] && !l.saves[s + 1] && (l.starts[s + 1] || l.saves[s]);
    if (l.load[s] <= m->height || in_previous || in_next)
      continue;
    begin_row(g, m->height);
    for (int k = 0; k < n_live; k++)
      add(g, column_of_unit(g, live[k]), height_in(&d->units[live[k]], s, l.round));
    for (int k = 0; k < edges_at[s].of.n; k++) {
      int e = edges_at[s].of.v[k];
      int from = d->unit_of[d->edges[e].parent], to = d->unit_of[d->edges[e].child];
      int64_t a = height_in(&d->units[from], s, l.round), b = height_in(&d->units[to], s, l.round);
      if (may_be_in(m, from) && may_be_in(m, to))
        add(g, column_of_edge(g, e), -(a < b ? a : b));
    }
    scale_row(g);
  }
}

/* One row per buffer that hands over, and one per buffer that takes over. */
static void add_edge_rows(struct sw_capacity *g)
{
  const struct sw_model *d = g->m->model;
  int n = d->p->buffers.n;
  int *next = SW_NEW_N(g->arena, int, d->n_edges), *head = SW_NEW_N(g->arena, int, n);
  for (int side = 0; side < 2; side++) {
    memset(head, -1, sizeof *head * (size_t)n);
    for (int e = d->n_edges - 1; e >= 0; e--)
      if (g->column_of_edge[e]) {
        int b = side ? d->edges[e].child : d->edges[e].parent;
        next[e] = head[b];
        head[b] = e;
      }
    for (int b = 0; b < n; b++) {
      if (head[b] < 0)
        continue;
      begin_row(g, 0);
      for (int e = head[b]; e >= 0; e = next[e])
        add(g, g->column_of_edge[e], 1);
      add(g, column_of_unit(g, d->unit_of[b]), -1);
    }
  }
}

static void add_cut_rows(struct sw_capacity *g)
{
  for (int c = 0; c < g->m->n_cuts; c++) {
    const struct sw_cut *cut = &g->m->cuts[c];
    int n = 0;
    for (int k = 0; k < cut->n; k++)
      n += may_be_in(g->m, cut->units[k]);
    if (n < cut->n)
      continue;
    begin_row(g, cut->n - 1);
    for (int k = 0; k < cut->n; k++)
      add(g, column_of_unit(g, cut->units[k]), 1);
  }
}

/* Units without a column are in: nothing keeps them out. False when a required one can't be. */
static bool settle_free_units(struct sw_capacity *g)
{
  struct sw_master *m = g->m;
  for (int u = 0; u < m->model->n_units; u++) {
    const struct sw_unit *x = &m->model->units[u];
    bool may = may_be_in(m, u);
    if (x->required && !may)
      return false;
    if (g->column_of_unit[u]) {
      g->value_unit = sw_gcd(g->value_unit, x->value);
    } else {
      m->in[u] = may;
      g->always += may ? x->value : 0;
    }
  }
  if (!g->value_unit)
    g->value_unit = 1;
  return true;
}

bool sw_capacity_make(struct sw_arena *arena, struct sw_master *m, struct sw_capacity *g)
{
  const struct sw_model *d = m->model;
  int most = d->n_units + d->n_edges + 1;
  *g = (struct sw_capacity){.m = m,
                            .arena = arena,
                            .column_of_unit = SW_NEW_N(arena, int, d->n_units),
                            .column_of_edge = SW_NEW_N(arena, int, d->n_edges),
                            .unit_of_column = SW_NEW_N(arena, int, most),
                            .edge_of_column = SW_NEW_N(arena, int, most)};
  memset(g->unit_of_column, -1, sizeof *g->unit_of_column * (size_t)most);
  memset(g->edge_of_column, -1, sizeof *g->edge_of_column * (size_t)most);
  add_capacity_rows(g);
  g->n_sections = g->rows.n;
  add_edge_rows(g);
  add_cut_rows(g);
  return settle_free_units(g);
}
