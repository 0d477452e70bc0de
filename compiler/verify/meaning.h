/* The graph's own meaning, for comparison: evaluated on the host. */
#ifndef SW_VERIFY_MEANING_H
#define SW_VERIFY_MEANING_H

#include "compiler/verify/verify.h"

/* An input and its values; borrowed. */
struct sim_given {
  int value;
  const struct sw_tensor *t;
};

/* The whole graph, with copies of the given inputs and the stored weights. */
enum sw_rc sim_evaluate(struct sw_job *job, const struct sw_graph *g, const struct sim_given *given, int n,
                        enum sw_rounding rounding, struct sw_eval **out);

/* Largest difference of two evaluations of a value, where both are finite; 0 when it is no tensor of floats. */
double sim_distance(struct sw_arena *a, const struct sw_evaluated *x, const struct sw_evaluated *y);

/* A program that differs from its graph may still be right: rounding decides on which side of a jump a number falls
 * (floor, x > y), numbers beyond fp16 have no meaning on the card, and a graph may amplify what rounding does inside of its ops. A
 * sentence about that, or NULL. */
const char *sim_doubt(struct sw_job *job, const struct sw_graph *g, const struct sim_given *given, int n,
                      const struct sw_verified *v);

#endif
