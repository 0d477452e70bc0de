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
#include "solver/place/master.h"

#include "solver/glpk_trap.h"

#include <glpk.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct row {
  int from, n; /* in the entries */
  int64_t limit;
};

struct entry {
  int column;
  int64_t factor;
};

/* The program as numbers, ready for GLPK. */
struct program {
  struct sw_master *m;
  struct sw_arena *arena;
  SW_VEC(struct row) rows;
  SW_VEC(struct entry) entries;
  int *column_of_unit, *column_of_edge; /* 0: none */
  int *unit_of_column, *edge_of_column; /* -1: none */
  int n_columns;
  int64_t always;                       /* value of the units without a column */
  int64_t value_unit;                   /* values are divided by it */
  int *index;
  double *factor;
  /* of the run */
  int64_t nodes;
  double best_bound;
  bool no_set, stopped;
};

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
      const struct sw_part *part = &d->units[u].shape.v[p];
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

/* -- building -- */

static int column_of_unit(struct program *g, int u)
{
  if (!g->column_of_unit[u]) {
    g->column_of_unit[u] = ++g->n_columns;
    g->unit_of_column[g->n_columns] = u;
  }
  return g->column_of_unit[u];
}

static int column_of_edge(struct program *g, int e)
{
  if (!g->column_of_edge[e]) {
    g->column_of_edge[e] = ++g->n_columns;
    g->edge_of_column[g->n_columns] = e;
  }
  return g->column_of_edge[e];
}

static void begin_row(struct program *g, int64_t limit)
{
  *SW_PUSH(g->arena, &g->rows) = (struct row){g->entries.n, 0, limit};
}

static void add(struct program *g, int column, int64_t factor)
{
  *SW_PUSH(g->arena, &g->entries) = (struct entry){column, factor};
  g->rows.v[g->rows.n - 1].n++;
}

/* Divides a row of non-negative limit by the common divisor of its factors. */
static void scale_row(struct program *g)
{
  struct row *r = &g->rows.v[g->rows.n - 1];
  int64_t d = 0;
  for (int k = 0; k < r->n; k++)
    d = sw_gcd(d, llabs(g->entries.v[r->from + k].factor));
  for (int k = 0; d > 1 && k < r->n; k++)
    g->entries.v[r->from + k].factor /= d;
  if (d > 1)
    r->limit /= d;
}

/* The sections that need a row, in order, each with its live units: a sweep over the parts. */
static void add_capacity_rows(struct program *g)
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
static void add_edge_rows(struct program *g)
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

static void add_cut_rows(struct program *g)
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
static bool settle_free_units(struct program *g)
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

/* -- solving -- */

static glp_prob *to_glpk(const struct program *g)
{
  const struct sw_model *d = g->m->model;
  glp_prob *lp = glp_create_prob();
  glp_set_obj_dir(lp, GLP_MAX);
  glp_add_cols(lp, g->n_columns);
  for (int c = 1; c <= g->n_columns; c++) {
    int u = g->unit_of_column[c];
    glp_set_col_kind(lp, c, GLP_BV);
    if (u >= 0)
      glp_set_obj_coef(lp, c, (double)(d->units[u].value / g->value_unit));
    if (u >= 0 && d->units[u].required)
      glp_set_col_bnds(lp, c, GLP_FX, 1, 1);
  }
  glp_add_rows(lp, g->rows.n);
  for (int r = 0; r < g->rows.n; r++) {
    const struct row *row = &g->rows.v[r];
    for (int k = 0; k < row->n; k++) {
      g->index[k + 1] = g->entries.v[row->from + k].column;
      g->factor[k + 1] = (double)g->entries.v[row->from + k].factor;
    }
    glp_set_row_bnds(lp, r + 1, GLP_UP, 0, (double)row->limit);
    glp_set_mat_row(lp, r + 1, row->n, g->index, g->factor);
  }
  return lp;
}

/* Value in problem units of an objective that GLPK reports, rounded down with its tolerance: the true optimum is an
 * integer number of value units. */
static int64_t whole(const struct program *g, double objective)
{
  double units = floor(objective + 1e-6 * (1 + fabs(objective) * 1e-3));
  return g->always + (int64_t)units * g->value_unit;
}

static void on_node(glp_tree *tree, void *info)
{
  struct program *g = info;
  if (glp_ios_reason(tree) != GLP_ISELECT)
    return;
  int best = glp_ios_best_node(tree);
  if (best && glp_ios_node_bound(tree, best) < g->best_bound) /* the root's is DBL_MAX at first */
    g->best_bound = glp_ios_node_bound(tree, best);
  g->nodes++;
  const struct sw_master *m = g->m;
  glp_prob *lp = glp_ios_get_prob(tree);
  int64_t spent = g->nodes * (g->rows.n + 10);
  bool has_set = glp_mip_status(lp) == GLP_FEAS;
  bool enough = m->need >= 0 && has_set && whole(g, glp_mip_obj_val(lp)) >= m->need;
  bool hopeless = m->need >= 0 && best && whole(g, g->best_bound) < m->need;
  if (enough || hopeless || spent > m->work || (m->job && sw_cancelled(m->job))) {
    g->stopped = !enough && !hopeless;
    g->no_set = hopeless;
    glp_ios_terminate(tree);
  }
}

static void read_solution(struct program *g, glp_prob *lp)
{
  struct sw_master *m = g->m;
  m->value = g->always;
  for (int c = 1; c <= g->n_columns; c++) {
    bool is_one = glp_mip_col_val(lp, c) > 0.5;
    if (g->edge_of_column[c] >= 0) {
      m->merged[g->edge_of_column[c]] = is_one;
    } else {
      m->in[g->unit_of_column[c]] = is_one;
      m->value += is_one ? m->model->units[g->unit_of_column[c]].value : 0;
    }
  }
}

static void solve(void *ctx)
{
  struct program *g = ctx;
  struct sw_master *m = g->m;
  glp_prob *lp = to_glpk(g);
  glp_smcp simplex;
  glp_init_smcp(&simplex);
  simplex.it_lim = (int)(m->work / 100 < 1000000 ? m->work / 100 : 1000000);
  glp_adv_basis(lp, 0);
  int rc = glp_simplex(lp, &simplex);
  m->work -= glp_get_it_cnt(lp) * 10;
  int status = glp_get_status(lp);
  m->answer = SW_MASTER_GAVE_UP;
  if (status == GLP_NOFEAS || (status == GLP_OPT && m->need >= 0 && whole(g, glp_get_obj_val(lp)) < m->need)) {
    m->answer = SW_MASTER_NONE;
  } else if (rc == 0 && status == GLP_OPT) {
    m->bound = whole(g, glp_get_obj_val(lp));
    g->best_bound = glp_get_obj_val(lp);
    glp_iocp mip;
    glp_init_iocp(&mip);
    mip.cb_func = on_node;
    mip.cb_info = g;
    mip.tol_obj = 1e-9;
    mip.mir_cuts = mip.cov_cuts = GLP_ON;
    rc = glp_intopt(lp, &mip);
    m->work -= g->nodes * (g->rows.n + 10);
    int found = glp_mip_status(lp);
    bool has_set = found == GLP_OPT || found == GLP_FEAS;
    if (has_set)
      read_solution(g, lp);
    bool complete = rc == 0 && !g->stopped;
    if (g->no_set || (complete && !has_set) || (complete && m->need >= 0 && has_set && m->value < m->need))
      m->answer = SW_MASTER_NONE;
    else if (complete || (has_set && m->need >= 0 && m->value >= m->need))
      m->answer = SW_MASTER_BEST;
    else if (has_set)
      m->answer = SW_MASTER_GOOD;
    if (m->answer == SW_MASTER_BEST)
      m->bound = m->value;
    else if (whole(g, g->best_bound) < m->bound)
      m->bound = whole(g, g->best_bound);
  }
  glp_delete_prob(lp);
}

bool sw_master_solve(struct sw_arena *arena, struct sw_master *m)
{
  const struct sw_model *d = m->model;
  struct program g = {.m = m, .arena = sw_arena_new(arena, SIZE_MAX)};
  int most = d->n_units + d->n_edges + 1;
  m->in = SW_NEW_N(arena, bool, d->n_units);
  m->merged = SW_NEW_N(arena, bool, d->n_edges);
  g.column_of_unit = SW_NEW_N(g.arena, int, d->n_units);
  g.column_of_edge = SW_NEW_N(g.arena, int, d->n_edges);
  g.unit_of_column = SW_NEW_N(g.arena, int, most);
  g.edge_of_column = SW_NEW_N(g.arena, int, most);
  memset(g.unit_of_column, -1, sizeof *g.unit_of_column * (size_t)most);
  memset(g.edge_of_column, -1, sizeof *g.edge_of_column * (size_t)most);
  add_capacity_rows(&g);
  add_edge_rows(&g);
  add_cut_rows(&g);
  m->n_rows = g.rows.n;
  m->n_columns = g.n_columns;
  bool good = true;
  if (!settle_free_units(&g)) {
    m->answer = SW_MASTER_NONE;
  } else if (!g.rows.n) {
    m->value = m->bound = g.always;
    m->answer = m->need > m->value ? SW_MASTER_NONE : SW_MASTER_BEST;
  } else {
    g.index = SW_NEW_N(g.arena, int, g.n_columns + 1);
    g.factor = SW_NEW_N(g.arena, double, g.n_columns + 1);
    good = sw_glpk_run(solve, &g, m->message);
  }
  sw_arena_free(g.arena);
  return good;
}
