/* A network as an integer program with marginal rows, for GLPK and for files.
 *
 * Columns:
 *   x[v,i] in {0,1}     variable v has label i (possible labels only)
 *   y[p,i,j] >= 0       pair p has labels i and j (possible pairs only)
 * Rows:
 *   choose  v           sum over i of x[v,i] = 1
 *   left    p,i         sum over j of y[p,i,j] - x[a,i] = 0
 *   right   p,j         sum over i of y[p,i,j] - x[b,j] = 0
 * Minimise sum of unary(v,i) x[v,i] + sum of T(p,i,j) y[p,i,j]. With whole x the rows force the y to 0 or 1. */
#ifndef SW_SOLVER_ASSIGN_PROGRAM_H
#define SW_SOLVER_ASSIGN_PROGRAM_H

#include "solver/assign/net.h"

struct sw_program {
  int n, n_pairs;
  const int *first;
  const struct sw_pair *pairs;
  int n_cols, n_x, n_rows;
  int *col_of;         /* by label offset: 1 .., 0 if impossible */
  int *variable, *label; /* of column 1 .. n_x; of a y column: pair, and i * labels of b + j */
  int64_t *cost;       /* of column 1 .., without the least unary cost of the variable, */
  int64_t constant;    /* which is here */
  int n_entries;       /* row by row */
  int *row, *col;      /* from 1, as GLPK wants them */
  double *value;
};

struct sw_program *sw_program_build(struct sw_arena *a, int n, const int *first, const int64_t *unary, int n_pairs,
                                    const struct sw_pair *pairs);

/* What branch and bound made of it. The budget is nodes; `start` (may be NULL) a vector to begin with. */
struct sw_ilp {
  enum sw_assign_status status;
  enum sw_assign_stop stopped_by;
  int64_t cost, bound, nodes;
  int *labels;
  int calls;
};
void sw_ilp_solve(struct sw_job *job, struct sw_arena *a, const struct sw_program *q, int64_t max_nodes,
                  const int *start, int64_t start_cost, int n_ranked, struct sw_ilp *out);

#endif
