/* The one door: validity, the chosen solver, and the parts of a result that follow from the labels. */
#include "solver/assign/exact.h"

#include <string.h>

/* Copies that the labels make. Per group the readers stand together in the order of adding. */
static void list_conversions(struct sw_job *job, const struct sw_assign_problem *p, struct sw_assign_result *r)
{
  struct sw_arena *a = job->arena, *scratch = sw_arena_new(a, 0);
  int n = p->readers.n, *first = SW_NEW_N(scratch, int, p->groups.n + 2), *reader = SW_NEW_N(scratch, int, n);
  for (int i = 0; i < n; i++)
    first[p->readers.v[i].group + 2]++;
  for (int g = 2; g <= p->groups.n; g++)
    first[g + 1] += first[g];
  for (int i = 0; i < n; i++)
    reader[first[p->readers.v[i].group + 1]++] = i;
  for (int g = 0; g < p->groups.n; g++) {
    const struct sw_assign_group *group = &p->groups.v[g];
    const int64_t *conv = p->tables.v[group->table].cost + r->labels[group->producer] * group->n_classes;
    /* One entry a reader; mode shared: the later readers of a class join the first one's entry. */
    for (int i = first[g]; i < first[g + 1]; i++) {
      const struct sw_assign_reader *e = &p->readers.v[reader[i]];
      int t = e->wants[r->labels[e->variable]];
      if (t < 0 || !conv[t])
        continue;
      bool joined = false;
      for (int j = first[g]; j < i && p->mode == SW_ASSIGN_SHARED && !joined; j++) {
        const struct sw_assign_reader *f = &p->readers.v[reader[j]];
        joined = f->wants[r->labels[f->variable]] == t;
      }
      if (joined)
        continue;
      int *list = SW_NEW_N(a, int, p->mode == SW_ASSIGN_SHARED ? first[g + 1] - i : 1), m = 0;
      for (int j = i; j < first[g + 1] && (p->mode == SW_ASSIGN_SHARED || j == i); j++) {
        const struct sw_assign_reader *f = &p->readers.v[reader[j]];
        if (f->wants[r->labels[f->variable]] == t && (!m || list[m - 1] != f->variable))
          list[m++] = f->variable;
      }
      *SW_PUSH(a, &r->conversions) = (struct sw_assign_conversion){g, group->producer, t, conv[t], list, m};
    }
  }
  sw_arena_free(scratch);
}

enum sw_rc sw_assign_solve(struct sw_job *job, const struct sw_assign_problem *p, const struct sw_assign_options *o,
                           struct sw_assign_result **out)
{
  typedef const int *solver(struct sw_job *, const struct sw_assign_problem *, const struct sw_assign_options *,
                            struct sw_assign_result *);
  static solver *const solvers[] = {[SW_SOLVER_ILP] = sw_assign__exact, [SW_SOLVER_ILP_FULL] = sw_assign__ilp_full,
                                    [SW_SOLVER_BEAM] = sw_assign__beam, [SW_SOLVER_GREEDY] = sw_assign__greedy};
  SW_TRY(sw_assign_validate(job, p));
  struct sw_assign_result *r = SW_NEW(job->arena, struct sw_assign_result);
  r->mode = p->mode;
  r->stats.variables = p->variables.n;
  for (int v = 0; v < p->variables.n; v++)
    r->stats.labels += p->variables.v[v].n_labels;
  r->labels = solvers[o->solver](job, p, o, r);
  if (r->labels) {
    r->cost = sw_assign_cost(p, r->labels);
    if (r->status == SW_ASSIGN_OPTIMAL && r->cost != r->bound)
      return sw_fail(job, SW_INTERNAL, "the solver claims optimum %lld, its labels cost %lld", (long long)r->bound,
                     (long long)r->cost);
    if (r->cost == SW_ASSIGN_INF || r->bound > r->cost)
      return sw_fail(job, SW_INTERNAL, "the solver's labels cost %lld, its bound is %lld", (long long)r->cost,
                     (long long)r->bound);
    list_conversions(job, p, r);
  } else if (r->status == SW_ASSIGN_INFEASIBLE) {
    r->bound = 0;
    r->conflict = sw_assign__conflict(job, p);
  }
  sw_tell(job, (struct sw_progress){"assign", 0, r->stats.islands, r->labels, r->bound != SW_ASSIGN_INF, r->cost, r->bound});
  if (r->status != SW_ASSIGN_OPTIMAL)
    r->certificate = (struct sw_assign_certificate){0};
  *out = r;
  return SW_OK;
}
