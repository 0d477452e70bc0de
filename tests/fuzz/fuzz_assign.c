/* Layout problems on any bytes: what is read is solved in four ways within a small budget. No way may contradict
 * another, and every claim must stand the stranger's check. */
#include "solver/assign/assign.h"
#include "fuzz.h"

static const enum sw_solver_kind solvers[] = {SW_SOLVER_ILP, SW_SOLVER_ILP_FULL, SW_SOLVER_BEAM, SW_SOLVER_GREEDY};
enum { N_SOLVERS = sizeof solvers / sizeof *solvers, FULL_MOST = 16 }; /* the whole program in GLPK gets slow early */

static void read_and_solve(struct fuzz *f)
{
  struct sw_assign_problem *p = sw_assign_read(&f->job, f->bytes, f->len);
  if (!p)
    return;
  const struct sw_assign_result *best = NULL;
  for (int i = 0; i < N_SOLVERS; i++) {
    struct sw_assign_options o = sw_assign_defaults();
    struct sw_assign_result *r = NULL;
    bool unchecked;
    o.solver = solvers[i];
    o.budget = 20000;
    if (o.solver == SW_SOLVER_ILP_FULL && p->variables.n > FULL_MOST)
      continue;
    if (sw_assign_solve(&f->job, p, &o, &r) != SW_OK)
      continue;
    fuzz_check(sw_assign_check(&f->job, p, r, 20000, &unchecked) == SW_OK);
    if (r->status == SW_ASSIGN_OPTIMAL && best && best->status == SW_ASSIGN_OPTIMAL)
      fuzz_check(r->cost == best->cost);
    if (best && best->status == SW_ASSIGN_OPTIMAL && r->labels)
      fuzz_check(r->cost >= best->cost);
    if (best && best->status == SW_ASSIGN_INFEASIBLE)
      fuzz_check(!r->labels);
    if (!best)
      best = r;
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  return fuzz_run(data, size, (size_t)128 << 20, read_and_solve);
}
