/* The assignment problem: pick one label for each variable so that the sum of costs is least. Numbers only: tensors,
 * sticks and layouts do not occur here. Format, meaning and examples: docs/solver.md.
 *
 *   struct sw_assign_problem *p = sw_assign_new(job->arena);
 *   int a = sw_assign_add_variable(p, "a", 2, NULL, (int64_t[]){0, 5});
 *   int b = sw_assign_add_variable(p, "b", 2, NULL, NULL);
 *   sw_assign_add_edge(p, a, b, sw_assign_add_table(p, 2, 2, (int64_t[]){7, 0, 0, 7}));
 *   struct sw_assign_options o = sw_assign_defaults();
 *   struct sw_assign_result *r;
 *   if (sw_assign_solve(job, p, &o, &r) == SW_OK && r->labels) ...     here: optimal, cost 0, labels {0, 1}
 *
 * All solvers stand behind sw_assign_solve and give the same kind of result. An answer depends on the order of
 * variables and labels (ties) and on nothing else: not on names, order of edges or time. */
#ifndef SW_SOLVER_ASSIGN_H
#define SW_SOLVER_ASSIGN_H

#include "base/json.h"
#include "base/map.h"
#include "base/options.h"

/* Impossible. Not a number: nothing is compared with it but "is it impossible". */
#define SW_ASSIGN_INF INT64_MAX
/* Largest finite cost of one entry. */
#define SW_ASSIGN_MAX_COST ((int64_t)1 << 53)

/* -- the problem -- */

enum sw_assign_mode {
  SW_ASSIGN_PER_EDGE, /* every reader of a group makes its own copy */
  SW_ASSIGN_SHARED,   /* one copy a class serves all readers of the group */
};

struct sw_assign_variable {
  const char *name;          /* NULL: v<index> */
  const char *const *labels; /* names; NULL: the numbers */
  const int64_t *cost;       /* one a label; NULL: all 0 */
  int n_labels;
};

struct sw_assign_table {
  const int64_t *cost; /* row-major */
  int rows, cols;
};

struct sw_assign_edge {
  int a, b, table; /* rows are a's labels, columns b's; several edges may join one pair, all count */
};

/* Producer p has label i: its copy in class t costs conv[i][t], 0 if p is in that class already. */
struct sw_assign_group {
  int producer, table; /* rows are the producer's labels, columns the classes */
  int n_classes;
  const char *const *classes; /* names; NULL: the numbers */
};

struct sw_assign_reader {
  int group, variable;
  const int *wants; /* class wanted under each label of the reader, -1: takes the producer as it is, free */
};

struct sw_assign_problem {
  struct sw_arena *arena;
  const char *name; /* never NULL */
  enum sw_assign_mode mode;
  SW_VEC(struct sw_assign_variable) variables;
  SW_VEC(struct sw_assign_table) tables;
  SW_VEC(struct sw_assign_edge) edges;
  SW_VEC(struct sw_assign_group) groups;
  SW_VEC(struct sw_assign_reader) readers; /* of all groups, in order of adding */
  struct sw_map table_ids;                 /* tables by content */
};

/* Empty, mode per-edge; everything added is copied into the arena. */
struct sw_assign_problem *sw_assign_new(struct sw_arena *a);

/* The add functions give the index. `labels` may be NULL; if not, the array and its names are borrowed for the
 * problem's life (so that variables can share them). Names are copied. */
int sw_assign_add_variable(struct sw_assign_problem *p, const char *name, int n_labels, const char *const *labels,
                           const int64_t *cost);
/* Equal tables get the same index. */
int sw_assign_add_table(struct sw_assign_problem *p, int rows, int cols, const int64_t *cost);
int sw_assign_add_edge(struct sw_assign_problem *p, int a, int b, int table);
int sw_assign_add_group(struct sw_assign_problem *p, int producer, int n_classes, const char *const *classes,
                        int table);
/* wants[j]: class or -1, one for each label of the variable. Readers of a group need not be added in one go. */
int sw_assign_add_reader(struct sw_assign_problem *p, int group, int variable, const int *wants);

/* All that is wrong with a problem, as faults with a JSON pointer each (SW_INVALID), or SW_LIMIT when the largest
 * finite entries add up to 2^63 or more. The reader and sw_assign_solve call it. */
enum sw_rc sw_assign_validate(struct sw_job *job, const struct sw_assign_problem *p);

/* Cost of a vector from the document alone, SW_ASSIGN_INF if it is impossible. */
int64_t sw_assign_cost(const struct sw_assign_problem *p, const int *labels);

/* -- the answer -- */

#define SW_ASSIGN_STATUSES(X)                                                                        \
  X(OPTIMAL, "optimal")       /* cost is the optimum, labels the lexicographically smallest vector */ \
  X(FEASIBLE, "feasible")     /* labels of that cost; bound <= optimum is proved */                   \
  X(INFEASIBLE, "infeasible") /* proved; conflict is given */                                         \
  X(UNKNOWN, "unknown")       /* no vector found, nothing proved but the bound */

#define SW_ASSIGN_STOPS(X) \
  X(NONE, NULL)            \
  X(NODES, "nodes")        \
  X(MEMORY, "memory")      \
  X(DEADLINE, "deadline")  \
  X(CANCELLED, "cancelled")

#define X(id, name) SW_ASSIGN_##id,
enum sw_assign_status { SW_ASSIGN_STATUSES(X) };
#undef X
#define X(id, name) SW_ASSIGN_STOP_##id,
enum sw_assign_stop { SW_ASSIGN_STOPS(X) };
#undef X

const char *sw_assign_status_name(enum sw_assign_status s);
const char *sw_assign_stop_name(enum sw_assign_stop s); /* NULL for NONE */

/* A copy that is made: one for each class wanted in mode shared, one a reader in mode per-edge. Free ones don't
 * appear. */
struct sw_assign_conversion {
  int group, producer, class_index;
  int64_t cost;
  const int *readers; /* variables */
  int n_readers;
};

/* A minimal set of terms that can't all be met: leave out any one and the rest (with the finite labels of
 * `variables`) is feasible. A variable without a finite label is a conflict by itself. */
struct sw_assign_conflict {
  SW_VEC(int) variables, edges, groups;
};

/* A claim of optimality that a stranger can check: follow the steps one after the other (a label that is impossible; a
 * label that is no better than label `by` whatever the neighbours do; a variable whose label is determined by that of
 * variable `by`, into which it goes), then eliminate the rest in `order` with dense tables: the constant left is the
 * optimum. A copy of class t of group g in mode shared is variable n_variables + (classes of the groups before g) + t.
 */
enum sw_assign_step_kind { SW_ASSIGN_IMPOSSIBLE, SW_ASSIGN_WORSE, SW_ASSIGN_MERGED };
struct sw_assign_step {
  enum sw_assign_step_kind kind;
  int variable, label, by; /* label -1 for MERGED, by -1 for IMPOSSIBLE */
};
struct sw_assign_certificate {
  const char *method; /* "elimination", "ilp", "search"; NULL: none */
  SW_VEC(struct sw_assign_step) steps;
  SW_VEC(int) order;
  int width;
};

struct sw_assign_stats {
  int variables, labels, presolved, islands, distinct, eliminated, glpk_calls, max_width;
  int64_t pruned;           /* states that a beam dropped */
  int64_t glpk_nodes, work; /* work: table entries, states and nodes, what the budget counts */
};

struct sw_assign_result {
  enum sw_assign_status status;
  enum sw_assign_mode mode;
  enum sw_assign_stop stopped_by;
  int64_t cost, bound; /* cost only with labels; bound 0 if nothing better is proved */
  const int *labels;   /* one a variable, NULL if there is no vector */
  SW_VEC(struct sw_assign_conversion) conversions;
  struct sw_assign_conflict *conflict; /* of status infeasible, else NULL */
  struct sw_assign_certificate certificate;
  struct sw_assign_stats stats;
};

/* (cost - bound) / max(1, cost); 0 without labels. */
double sw_assign_gap(const struct sw_assign_result *r);

/* -- solving -- */

struct sw_assign_options {
  enum sw_solver_kind solver;
  int beam_width;
  int64_t budget; /* table entries, states and branch-and-bound nodes: a count, so that results can be repeated */
};

/* ilp, width 200, budget 2,000,000,000. */
struct sw_assign_options sw_assign_defaults(void);

/* SW_OK whenever there is a result, infeasible and unknown included; else a fault says what is wrong with the problem.
 * The cost of the result was recomputed from the problem, and the result lives in the job's arena. */
enum sw_rc sw_assign_solve(struct sw_job *job, const struct sw_assign_problem *p, const struct sw_assign_options *o,
                           struct sw_assign_result **out);

/* A stranger's check of a result: cost, conversions, bound, conflict and certificate, without any code of the solvers.
 * SW_DIFFERENT with a fault for each claim that does not hold. What is too large to check again (tables beyond
 * max_entries, or a search's word) is left out and *unchecked says so. */
enum sw_rc sw_assign_check(struct sw_job *job, const struct sw_assign_problem *p, const struct sw_assign_result *r,
                           int64_t max_entries, bool *unchecked);

/* All vectors tried one by one, at most max_vectors of them (then UNKNOWN): for tests. Labels NULL if infeasible. */
enum sw_assign_status sw_assign_brute(struct sw_arena *a, const struct sw_assign_problem *p, int64_t max_vectors,
                                      int64_t *cost, int **labels);

/* -- files -- */

/* A problem document. NULL after faults, each with the JSON pointer in `source`. */
struct sw_assign_problem *sw_assign_read(struct sw_job *job, const char *text, size_t len);
void sw_assign_write(const struct sw_assign_problem *p, struct sw_buf *out);
/* The result document. */
void sw_assign_write_result(const struct sw_assign_result *r, struct sw_jw *w);
/* The unreduced integer program with marginal rows, in CPLEX LP format. */
void sw_assign_write_lp(const struct sw_assign_problem *p, struct sw_buf *out);

#endif
