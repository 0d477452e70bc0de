/* Who is resident, by the capacity of every tick, without addresses. */
#ifndef SW_PLACE_MASTER_H
#define SW_PLACE_MASTER_H

#include "solver/place/model.h"

/* Units that can't be resident together. */
struct sw_cut {
  int *units;
  int n;
};

struct sw_master {
  const struct sw_model *model;
  const struct sw_cut *cuts;
  int n_cuts;
  int64_t height; /* capacity */
  int64_t need;   /* enough: stop at a set of this value, or when there is none; -1: the best */
  int64_t work;   /* branch-and-bound nodes and simplex steps that may be spent; counts down */
  const struct sw_job *job;
  /* out */
  enum {
    SW_MASTER_BEST,       /* `in` has the largest value there is, or `need` */
    SW_MASTER_GOOD,       /* `in` is a set, `bound` above its value */
    SW_MASTER_NONE,       /* no set (of value `need`) */
    SW_MASTER_GAVE_UP,    /* no set found; bound holds */
  } answer;
  bool *in;     /* per unit */
  bool *merged; /* per edge: the child takes the parent's slot */
  int64_t value, bound;
  int n_rows, n_columns;
  bool used_glpk;
  char message[128]; /* of GLPK when it stopped */
};

/* False when GLPK stopped. */
bool sw_master_solve(struct sw_arena *arena, struct sw_master *m);

#endif
