/* The pairwise network behind a problem, and what the exact solver does with it, stage by stage.
 *
 * A sharing group in mode per-edge is a table per reader. In mode shared every class that several readers may want
 * becomes a 0/1 variable of its own, the copy: made (1) costs conv[i][t] with the producer's label i, not made (0)
 * costs nothing but is impossible with a reader that wants t. Pairs only, so groups need no code behind this point.
 * Copies come behind the real variables and don't count for ties. */
#ifndef SW_SOLVER_ASSIGN_NET_H
#define SW_SOLVER_ASSIGN_NET_H

#include "solver/assign/internal.h"

/* Cost of label i of a and j of b: t[i * step_a + j * step_b]. */
struct sw_pair {
  int a, b; /* a < b */
  int step_a, step_b;
  const int64_t *t;
};

struct sw_net {
  struct sw_arena *arena;
  int n, n_real; /* variables with copies; without */
  int *first;    /* label offsets, n + 1 */
  int64_t *unary; /* by first[v] + i; impossible: the label is gone */
  bool *gone;     /* a step of the certificate says so */
  int n_pairs;   /* at most one a pair of variables */
  struct sw_pair *pairs;
  int *adj_first, *adj; /* pairs of a variable */
  /* A variable that another one determines: rep[v] = that one (v itself if free), map[v][label of rep] = label of v. */
  int *rep;
  int **map;
};

static inline int sw_net_labels(const struct sw_net *net, int v)
{
  return net->first[v + 1] - net->first[v];
}

static inline int64_t sw_pair_cost(const struct sw_pair *p, int v, int label_v, int label_other)
{
  return v == p->a ? p->t[label_v * p->step_a + label_other * p->step_b]
                   : p->t[label_other * p->step_a + label_v * p->step_b];
}

static inline int sw_pair_other(const struct sw_pair *p, int v)
{
  return v == p->a ? p->b : p->a;
}

/* What becomes of sharing groups: a pair a reader (also for a reader that costs nothing under any labels), copies, or nothing (the
 * caller sees to them). */
enum sw_net_groups { SW_NET_PER_EDGE, SW_NET_EVERY_EDGE, SW_NET_COPIES, SW_NET_EDGES_ONLY };

struct sw_net *sw_net_build(struct sw_arena *a, const struct sw_assign_problem *p, enum sw_net_groups groups);
/* The same network with every variable put into its rep. */
struct sw_net *sw_net_contract(struct sw_arena *a, const struct sw_net *net);

/* -- reductions (reduce.c). All keep the optimum and the lexicographically smallest optimal vector. -- */

/* Takes impossible labels away: impossible by themselves, or without a possible partner in some neighbour. Gives a
 * variable without labels, or -1. `certificate` (may be NULL) gets the steps; `involved` (may be NULL; one flag a
 * variable) the variables that the proof of an empty one needs. */
int sw_net_propagate(struct sw_net *net, struct sw_assign_certificate *certificate, struct sw_arena *keep,
                     bool *involved);

/* Propagation, dominance, merging of determined variables until nothing changes. Gives the reduced network; *empty is
 * a variable without labels or -1. */
struct sw_net *sw_net_reduce(struct sw_arena *a, struct sw_net *net, struct sw_assign_certificate *certificate,
                             struct sw_arena *keep, int *empty);

/* -- islands -- */

/* What is left between fixed variables, numbered from 0 in variable order; labels that are gone are squeezed out. */
struct sw_island {
  int n, n_pairs;
  int n_ranked;  /* the first n_ranked variables count for ties (the rest are copies) */
  int *k;        /* labels, each >= 2 */
  int *first;    /* label offsets */
  int64_t *unary; /* least of each variable is 0 */
  struct sw_pair *pairs; /* ordered by a, then b; tables row-major of a's labels */
  int *adj_first, *adj;
};

/* -- elimination (order.c, eliminate.c, ties.c) -- */

/* An order of elimination with, for each position, the scope of the table that is left: positions, ascending. */
struct sw_order {
  int *order, *position; /* position -> variable, variable -> position */
  int64_t *scope_first;
  int *scope;
  double entries;     /* of all tables, own variable included */
  double largest;     /* table */
  int width;          /* most variables in a scope */
  bool natural;       /* last variable first: decoding is the tie-break */
};

/* The cheapest order found. */
struct sw_order *sw_order_find(struct sw_arena *a, const struct sw_island *is);
/* Scopes and sizes of a given order; NULL as soon as the entries exceed `limit`. */
struct sw_order *sw_order_scopes(struct sw_arena *a, const struct sw_island *is, const int *order, double limit);

/* An order of as many variables as possible without a table of more than 2^max_log2 entries; the others are marked in
 * left_out (zeroed). Ties by seed. Gives the length. */
int sw_order_partial(struct sw_arena *a, const struct sw_island *is, int max_log2, uint64_t seed, int *order,
                     bool *left_out);

/* Optimum and labels of the island by elimination in that order; SW_ASSIGN_INF if there is none. False when marking
 * ties took too much memory: then labels are optimal, but maybe not the smallest. */
bool sw_eliminate(struct sw_arena *a, const struct sw_island *is, const struct sw_order *o, int64_t *cost, int *labels);

/* One bit for each entry (scope, own label) of each position: the entry is minimal among the own labels. */
struct sw_choices {
  const struct sw_island *island;
  const struct sw_order *order;
  uint64_t **bits; /* by position */
};
/* -- islands too wide to eliminate (wide.c) -- */

struct sw_answer {
  enum sw_assign_status status;
  enum sw_assign_stop stopped_by;
  int64_t cost, bound;
  const int *labels; /* of the island's variables, squeezed numbers */
  const int *order;  /* of elimination; NULL when it was solved in another way */
  int width;
};
struct sw_answer sw_wide(struct sw_job *job, struct sw_arena *keep, const struct sw_island *is, int64_t budget,
                         struct sw_assign_stats *stats);

bool sw_ties_smallest(struct sw_arena *a, const struct sw_choices *c, int *labels);

#endif
