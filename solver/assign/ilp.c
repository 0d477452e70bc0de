/* Branch and bound by GLPK, made safe: trapped, counted in nodes, checked in integers.
 *
 * GLPK computes in floating point and prunes what is within 1e-7 of the incumbent. So costs are divided by their common
 * divisor first, and only an optimum below 4,000,000 such units counts as proved (1e-7 of it is less than half a unit);
 * beyond, the bound given is that much lower. The labels' cost is recomputed in integers in any case.
 *
 * Ties: with the optimum known, the cost is held there, and the ranks of the variables are minimised in chunks of
 * about 20 bits, the first variables first, each chunk held before the next. */
#include "solver/assign/program.h"

#include "base/number.h"
#include "solver/glpk_trap.h"

#include <glpk.h>
#include <math.h>

enum { MAX_UNITS = 4000000, MAX_COLUMNS = 400000, MEMORY_MB = 4096, SLICE = 2000, MAX_SLICES = 100 };

/* With a relaxation below this part of a known vector's cost, branching won't close the gap. */
static const double HOPELESS = 0.8;

struct search {
  struct sw_job *job;
  const struct sw_program *q;
  int64_t unit, max_nodes; /* of one search */
  int64_t nodes, nodes_before;
  const int *start;
  int *labels;
  double *column; /* scratch, one a column */
  double *reduced; /* reduced costs in the first relaxation */
  double relaxed;  /* its value */
  int *index;
  double bound;   /* of the last search, in units; -1: none */
  double start_units; /* cost of the start vector; -1: none */
  bool stopped, cancelled, infeasible, done, tie_proved;
  int calls, n_ranked;
  int64_t cost;
};

/* A bound in units as a cost, GLPK's tolerance taken off. No cost is below 0; GLPK begins with minus infinity. */
static int64_t bound_of(const struct search *s, double units)
{
  return s->q->constant + (int64_t)ceil(fmax(0, units * (1 - 1e-6) - 1e-6)) * s->unit;
}

/* Costs, that is: the searches behind the first one are for ties and count ranks. */
static void tell(const struct search *s, glp_tree *tree)
{
  glp_prob *lp = glp_ios_get_prob(tree);
  double units = glp_mip_status(lp) == GLP_FEAS ? glp_mip_obj_val(lp) : s->start_units;
  sw_tell(s->job, (struct sw_progress){"assign", s->job->part, s->job->parts, units >= 0, s->bound >= 0,
                                       s->q->constant + (int64_t)llround(units) * s->unit, bound_of(s, s->bound)});
}

static void on_node(glp_tree *tree, void *info)
{
  struct search *s = info;
  int best = glp_ios_best_node(tree);
  if (best)
    s->bound = glp_ios_node_bound(tree, best);
  if (s->calls == 1)
    tell(s, tree);
  if (glp_ios_reason(tree) == GLP_ISELECT && ++s->nodes - s->nodes_before >= s->max_nodes)
    s->stopped = true;
  if (sw_cancelled(s->job))
    s->cancelled = true;
  if (s->stopped || s->cancelled) {
    glp_ios_terminate(tree);
  } else if (glp_ios_reason(tree) == GLP_IHEUR && s->start) {
    glp_ios_heur_sol(tree, s->column);
    s->start = NULL;
  }
}

static void load(struct search *s, glp_prob *lp)
{
  const struct sw_program *q = s->q;
  glp_add_rows(lp, q->n_rows);
  glp_add_cols(lp, q->n_cols);
  for (int r = 1; r <= q->n_rows; r++)
    glp_set_row_bnds(lp, r, GLP_FX, r <= q->n, r <= q->n);
  for (int c = 1; c <= q->n_cols; c++) {
    if (c <= q->n_x)
      glp_set_col_kind(lp, c, GLP_BV);
    else
      glp_set_col_bnds(lp, c, GLP_LO, 0, 0);
    glp_set_obj_coef(lp, c, (double)(q->cost[c] / s->unit));
  }
  glp_load_matrix(lp, q->n_entries, q->row, q->col, q->value);
}

/* The start vector as columns. */
static void set_start(struct search *s)
{
  const struct sw_program *q = s->q;
  for (int c = 1; c <= q->n_cols; c++) {
    if (c <= q->n_x) {
      s->column[c] = s->start[q->variable[c]] == q->label[c];
    } else {
      const struct sw_pair *p = &q->pairs[q->variable[c]];
      int kb = q->first[p->b + 1] - q->first[p->b];
      s->column[c] = s->start[p->a] == q->label[c] / kb && s->start[p->b] == q->label[c] % kb;
    }
  }
}

/* Solves what is loaded; true when the answer is proved. The relaxation is solved in slices of pivots, for the callback
 * is silent until the root is done. */
static bool branch_and_bound(struct search *s, glp_prob *lp)
{
  glp_smcp simplex;
  glp_init_smcp(&simplex);
  simplex.msg_lev = GLP_MSG_OFF;
  simplex.it_lim = SLICE;
  int rc, slices = 0;
  s->calls++;
  s->nodes_before = s->nodes;
  do {
    rc = glp_simplex(lp, &simplex);
    s->cancelled |= sw_cancelled(s->job);
    s->stopped |= rc == GLP_EITLIM && ++slices == MAX_SLICES;
  } while (rc == GLP_EITLIM && !s->cancelled && !s->stopped);
  s->bound = -1;
  s->infeasible = rc == 0 && glp_get_status(lp) == GLP_NOFEAS;
  if (rc || s->cancelled || glp_get_status(lp) != GLP_OPT)
    return s->infeasible;
  s->bound = glp_get_obj_val(lp);
  if (s->calls == 1) {
    s->relaxed = s->bound;
    for (int c = 1; c <= s->q->n_cols; c++)
      s->reduced[c] = glp_get_col_dual(lp, c);
  }
  if (s->bound < HOPELESS * s->start_units) {
    s->stopped = true;
    return false;
  }
  glp_iocp mip;
  glp_init_iocp(&mip);
  mip.msg_lev = GLP_MSG_OFF;
  mip.br_tech = GLP_BR_DTH;
  mip.gmi_cuts = mip.mir_cuts = GLP_ON;
  mip.cb_func = on_node;
  mip.cb_info = s;
  rc = glp_intopt(lp, &mip);
  int status = glp_mip_status(lp);
  s->infeasible = rc == 0 && status == GLP_NOFEAS;
  if (status == GLP_OPT || status == GLP_FEAS)
    for (int c = 1; c <= s->q->n_x; c++)
      if (glp_mip_col_val(lp, c) > 0.5)
        s->labels[s->q->variable[c]] = s->q->label[c];
  if (status == GLP_OPT || status == GLP_FEAS)
    s->done = true;
  return rc == 0 && (status == GLP_OPT || status == GLP_NOFEAS);
}

/* Without the program's constant. */
static int64_t cost_of(const struct sw_program *q, const int *labels)
{
  int64_t sum = 0;
  for (int v = 0; v < q->n; v++)
    sum += q->cost[q->col_of[q->first[v] + labels[v]]];
  for (int p = 0; p < q->n_pairs; p++)
    sum = sw_assign__plus(sum, sw_pair_cost(&q->pairs[p], q->pairs[p].a, labels[q->pairs[p].a], labels[q->pairs[p].b]));
  return sum;
}

/* Leaves only vectors of the optimal cost. If the relaxation reaches it, whatever moves a column with a reduced cost
 * would cost more: those are held, and what is left has that cost. Else a row holds it; columns that cost more alone
 * can't be in. */
static void hold_cost(struct search *s, glp_prob *lp)
{
  const struct sw_program *q = s->q;
  double units = (double)(s->cost / s->unit);
  bool tight = s->relaxed > units - 1e-6 * (1 + units);
  int n = 0;
  for (int c = 1; c <= q->n_cols; c++) {
    double d = tight ? s->reduced[c] : 0;
    if (q->cost[c] > s->cost || d > 0.01) {
      glp_set_col_bnds(lp, c, GLP_FX, 0, 0);
    } else if (d < -0.01) { /* at its upper bound: leaving it costs */
      glp_set_col_bnds(lp, c, GLP_FX, 1, 1);
    } else if (q->cost[c]) {
      s->index[++n] = c;
      s->column[n] = (double)(q->cost[c] / s->unit);
    }
  }
  if (tight)
    return;
  int row = glp_add_rows(lp, 1);
  glp_set_mat_row(lp, row, n, s->index, s->column);
  glp_set_row_bnds(lp, row, GLP_UP, 0, units + 0.25);
}

/* Smallest labels among those of the optimal cost. */
static bool break_ties(struct search *s, glp_prob *lp)
{
  const struct sw_program *q = s->q;
  hold_cost(s, lp);
  for (int c = 1; c <= q->n_cols; c++)
    glp_set_obj_coef(lp, c, 0);
  for (int v = 0, end; v < s->n_ranked; v = end) {
    double weight = 1;
    for (end = v; end < s->n_ranked && (end == v || weight * (q->first[end + 1] - q->first[end]) < 1 << 20); end++)
      weight *= q->first[end + 1] - q->first[end];
    for (int w = v; w < end; w++) {
      weight /= q->first[w + 1] - q->first[w];
      for (int i = q->first[w]; i < q->first[w + 1]; i++)
        if (q->col_of[i])
          glp_set_obj_coef(lp, q->col_of[i], weight * (i - q->first[w]));
    }
    if (!branch_and_bound(s, lp) || s->infeasible)
      return false;
    for (int w = v; w < end; w++)
      for (int i = q->first[w]; i < q->first[w + 1]; i++)
        if (q->col_of[i]) {
          glp_set_obj_coef(lp, q->col_of[i], 0);
          if (glp_get_col_type(lp, q->col_of[i]) == GLP_FX)
            continue;
          double fixed = s->labels[w] == i - q->first[w];
          glp_set_col_bnds(lp, q->col_of[i], GLP_FX, fixed, fixed);
        }
  }
  return cost_of(q, s->labels) == s->cost;
}

struct body {
  struct search s;
  bool proved;
  double bound;
  int *best;
};

static void body(void *ctx)
{
  struct body *b = ctx;
  struct search *s = &b->s;
  glp_mem_limit(MEMORY_MB);
  glp_prob *lp = glp_create_prob();
  load(s, lp);
  if (s->start)
    set_start(s);
  b->proved = branch_and_bound(s, lp);
  s->start = NULL; /* the searches for ties have other costs and need the column */
  b->bound = s->bound;
  if (s->done) {
    s->cost = cost_of(s->q, s->labels);
    for (int v = 0; v < s->q->n; v++)
      b->best[v] = s->labels[v];
    s->start_units = -1;
    if (b->proved && s->cost / s->unit <= MAX_UNITS) {
      bool keep = s->done;
      s->tie_proved = break_ties(s, lp);
      s->done = keep;
    }
  }
  glp_delete_prob(lp);
}

void sw_ilp_solve(struct sw_job *job, struct sw_arena *a, const struct sw_program *q, int64_t max_nodes,
                  const int *start, int64_t start_cost, int n_ranked, struct sw_ilp *out)
{
  *out = (struct sw_ilp){.status = SW_ASSIGN_UNKNOWN, .stopped_by = SW_ASSIGN_STOP_MEMORY, .bound = q->constant};
  if (start) {
    out->status = SW_ASSIGN_FEASIBLE;
    out->labels = sw_arena_copy(a, start, (size_t)q->n, sizeof *start);
    out->cost = start_cost;
  }
  if (q->n_cols > MAX_COLUMNS)
    return;
  struct body b = {.s = {.job = job, .q = q, .max_nodes = max_nodes, .start = start, .n_ranked = n_ranked}};
  struct search *s = &b.s;
  for (int c = 1; c <= q->n_cols; c++)
    s->unit = sw_gcd(s->unit, q->cost[c]);
  s->unit = s->unit ? s->unit : 1;
  start_cost -= q->constant;
  s->start_units = start ? (double)(start_cost / s->unit) : -1;
  s->labels = SW_NEW_N(a, int, q->n);
  b.best = SW_NEW_N(a, int, q->n);
  s->column = SW_NEW_N(a, double, q->n_cols + 1);
  s->reduced = SW_NEW_N(a, double, q->n_cols + 1);
  s->index = SW_NEW_N(a, int, q->n_cols + 1);
  for (int v = 0; v < q->n; v++) { /* no label at all: GLPK would not like the empty row */
    bool possible = false;
    for (int i = q->first[v]; i < q->first[v + 1]; i++)
      possible |= q->col_of[i] > 0;
    if (!possible) {
      out->status = SW_ASSIGN_INFEASIBLE;
      out->stopped_by = SW_ASSIGN_STOP_NONE;
      return;
    }
  }
  char message[128];
  bool finished = q->n == 0 || sw_glpk_run(body, &b, message);
  out->nodes = s->nodes;
  out->calls = s->calls;
  if (!finished) /* what it knew is gone with it */
    return;
  out->stopped_by = s->cancelled ? SW_ASSIGN_STOP_CANCELLED : s->stopped ? SW_ASSIGN_STOP_NODES : SW_ASSIGN_STOP_NONE;
  bool found = s->done || q->n == 0;
  if (b.bound > 0)
    out->bound = bound_of(s, b.bound);
  if (b.proved && !found && !start) {
    out->status = SW_ASSIGN_INFEASIBLE;
  } else if (found && (!start || s->cost <= start_cost)) {
    out->status = SW_ASSIGN_FEASIBLE;
    out->labels = s->tie_proved ? s->labels : b.best;
    out->cost = q->constant + s->cost;
    if ((b.proved || q->n == 0) && s->cost / s->unit <= MAX_UNITS) {
      out->bound = out->cost;
      out->status = s->tie_proved || q->n == 0 ? SW_ASSIGN_OPTIMAL : SW_ASSIGN_FEASIBLE;
    }
  }
  if (out->bound > out->cost && out->labels)
    out->bound = out->cost;
}
