/* All vectors, one by one, in lexicographic order: the oracle of the tests. */
#include "solver/assign/internal.h"

#include <string.h>

enum sw_assign_status sw_assign_brute(struct sw_arena *a, const struct sw_assign_problem *p, int64_t max_vectors,
                                      int64_t *cost, int **labels)
{
  int n = p->variables.n, *x = SW_NEW_N(a, int, n);
  *cost = SW_ASSIGN_INF;
  *labels = NULL;
  for (int64_t tried = 0; tried < max_vectors; tried++) {
    int64_t c = sw_assign_cost(p, x);
    if (c < *cost) { /* not <=: the first of equals is the smallest */
      *cost = c;
      *labels = sw_arena_copy(a, x, (size_t)n, sizeof *x);
    }
    int v = n - 1;
    while (v >= 0 && ++x[v] == p->variables.v[v].n_labels)
      x[v--] = 0;
    if (v < 0)
      return *labels ? SW_ASSIGN_OPTIMAL : SW_ASSIGN_INFEASIBLE;
  }
  return SW_ASSIGN_UNKNOWN;
}
