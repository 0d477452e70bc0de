/* The capacity program solved by GLPK, where the walk through time (frontier.c) has too much to look at. */
#include "solver/place/capacity.h"

#include "solver/glpk_trap.h"

#include <glpk.h>
#include <math.h>

struct run {
  struct sw_capacity *g;
  int *index; /* scratch of one row */
  double *factor;
  int64_t nodes;
  double best_bound;
  bool no_set, stopped;
};

static glp_prob *to_glpk(struct run *run)
{
  const struct sw_capacity *g = run->g;
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
    const struct sw_row *row = &g->rows.v[r];
    for (int k = 0; k < row->n; k++) {
      run->index[k + 1] = g->entries.v[row->from + k].column;
      run->factor[k + 1] = (double)g->entries.v[row->from + k].factor;
    }
    glp_set_row_bnds(lp, r + 1, GLP_UP, 0, (double)row->limit);
    glp_set_mat_row(lp, r + 1, row->n, run->index, run->factor);
  }
  return lp;
}

/* Value in problem units of an objective that GLPK reports, rounded down with its tolerance: the true optimum is an
 * integer number of value units. */
static int64_t whole(const struct sw_capacity *g, double objective)
{
  double units = floor(objective + 1e-6 * (1 + fabs(objective) * 1e-3));
  return g->always + (int64_t)units * g->value_unit;
}

/* Work in the unit of the packers, a look at an item: what an iteration of the simplex method and a node of the tree
 * take beside it. */
enum { NODE_WORK = 20000, ROW_WORK = 5 };

static int64_t work_of(const struct run *run, glp_prob *lp)
{
  return run->nodes * NODE_WORK + (int64_t)glp_get_it_cnt(lp) * (run->g->rows.n + 10) * ROW_WORK;
}

static void on_node(glp_tree *tree, void *info)
{
  struct run *run = info;
  struct sw_capacity *g = run->g;
  if (glp_ios_reason(tree) != GLP_ISELECT)
    return;
  int best = glp_ios_best_node(tree);
  if (best && glp_ios_node_bound(tree, best) < run->best_bound) /* the root's is DBL_MAX at first */
    run->best_bound = glp_ios_node_bound(tree, best);
  const struct sw_master *m = g->m;
  glp_prob *lp = glp_ios_get_prob(tree);
  run->nodes++;
  int64_t spent = work_of(run, lp);
  bool has_set = glp_mip_status(lp) == GLP_FEAS;
  bool enough = m->need >= 0 && has_set && whole(g, glp_mip_obj_val(lp)) >= m->need;
  bool hopeless = m->need >= 0 && best && whole(g, run->best_bound) < m->need;
  if (enough || hopeless || spent > m->work || (m->job && sw_cancelled(m->job))) {
    run->stopped = !enough && !hopeless;
    run->no_set = hopeless;
    glp_ios_terminate(tree);
  }
}

static void read_solution(struct sw_capacity *g, glp_prob *lp)
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
  struct run *run = ctx;
  struct sw_capacity *g = run->g;
  struct sw_master *m = g->m;
  glp_prob *lp = to_glpk(run);
  int64_t step = (int64_t)(g->rows.n + 10) * ROW_WORK;
  glp_smcp simplex;
  glp_init_smcp(&simplex);
  int64_t iterations = m->work > 0 ? m->work / step + 1 : 1;
  simplex.it_lim = iterations < 1000000 ? (int)iterations : 1000000;
  glp_adv_basis(lp, 0);
  int rc = glp_simplex(lp, &simplex);
  int status = glp_get_status(lp);
  m->answer = SW_MASTER_GAVE_UP;
  m->bound = g->always; /* of all, until something is known */
  for (int c = 1; c <= g->n_columns; c++)
    if (g->unit_of_column[c] >= 0)
      m->bound += m->model->units[g->unit_of_column[c]].value;
  if (status == GLP_NOFEAS || (status == GLP_OPT && m->need >= 0 && whole(g, glp_get_obj_val(lp)) < m->need)) {
    m->answer = SW_MASTER_NONE;
  } else if (rc == 0 && status == GLP_OPT) {
    m->bound = whole(g, glp_get_obj_val(lp));
    run->best_bound = glp_get_obj_val(lp);
    glp_iocp mip;
    glp_init_iocp(&mip);
    mip.cb_func = on_node;
    mip.cb_info = run;
    mip.tol_obj = 1e-9;
    mip.mir_cuts = mip.cov_cuts = GLP_ON;
    rc = glp_intopt(lp, &mip);
    int found = glp_mip_status(lp);
    bool has_set = found == GLP_OPT || found == GLP_FEAS;
    if (has_set)
      read_solution(g, lp);
    bool complete = rc == 0 && !run->stopped;
    if (run->no_set || (complete && !has_set) || (complete && m->need >= 0 && has_set && m->value < m->need))
      m->answer = SW_MASTER_NONE;
    else if (complete || (has_set && m->need >= 0 && m->value >= m->need))
      m->answer = SW_MASTER_BEST;
    else if (has_set)
      m->answer = SW_MASTER_GOOD;
    if (m->answer == SW_MASTER_BEST)
      m->bound = m->value;
    else if (whole(g, run->best_bound) < m->bound)
      m->bound = whole(g, run->best_bound);
  }
  m->work -= work_of(run, lp);
  glp_delete_prob(lp);
}

bool sw_master_solve(struct sw_arena *arena, struct sw_master *m)
{
  const struct sw_model *d = m->model;
  struct sw_arena *scratch = sw_arena_new(arena, SIZE_MAX);
  m->in = SW_NEW_N(arena, bool, d->n_units);
  m->merged = SW_NEW_N(arena, bool, d->n_edges);
  struct sw_capacity g;
  bool good = true;
  if (!sw_capacity_make(scratch, m, &g)) {
    m->answer = SW_MASTER_NONE;
  } else if (!g.rows.n) {
    m->value = m->bound = g.always;
    m->answer = m->need > m->value ? SW_MASTER_NONE : SW_MASTER_BEST;
  } else if (!sw_frontier_solve(&g)) {
    struct run run = {.g = &g,
                      .index = SW_NEW_N(scratch, int, g.n_columns + 1),
                      .factor = SW_NEW_N(scratch, double, g.n_columns + 1)};
    good = sw_glpk_run(solve, &run, m->message);
    m->used_glpk = true;
  }
  m->n_rows = g.rows.n;
  m->n_columns = g.n_columns;
  sw_arena_free(scratch);
  return good;
}
