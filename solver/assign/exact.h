/* The solvers behind sw_assign_solve. Each fills status, bound, stopped_by, certificate and stats of a fresh result and
 * gives the labels (in the job's arena) or NULL; the rest of the result is made from those in solve.c. */
#ifndef SW_SOLVER_ASSIGN_EXACT_H
#define SW_SOLVER_ASSIGN_EXACT_H

#include "solver/assign/net.h"

const int *sw_assign__exact(struct sw_job *job, const struct sw_assign_problem *p, const struct sw_assign_options *o,
                            struct sw_assign_result *r);
const int *sw_assign__beam(struct sw_job *job, const struct sw_assign_problem *p, const struct sw_assign_options *o,
                           struct sw_assign_result *r);
const int *sw_assign__greedy(struct sw_job *job, const struct sw_assign_problem *p, const struct sw_assign_options *o,
                             struct sw_assign_result *r);
/* GLPK gets the unreduced program. */
const int *sw_assign__ilp_full(struct sw_job *job, const struct sw_assign_problem *p,
                               const struct sw_assign_options *o, struct sw_assign_result *r);

/* A minimal conflict of an infeasible problem. */
struct sw_assign_conflict *sw_assign__conflict(struct sw_job *job, const struct sw_assign_problem *p);

#endif
