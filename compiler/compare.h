/* The same graph under several solvers and profiles, side by side. */
#ifndef SW_COMPARE_H
#define SW_COMPARE_H

#include "compiler/pipeline.h"

/* One compile of a comparison: what is kept of it after its memory is gone. */
struct sw_compared {
  const char *model, *digest;
  enum sw_profile profile;
  enum sw_solver_kind solver;
  const char *status, *fault; /* fault: the first one, or NULL */
  bool has_plan;
  const char *unit;
  int64_t value, bound, conversion_elements, solver_nodes, solver_work;
  int n_conversions, n_variables, n_ops, n_host_steps, n_kernels;
  int n_intermediates, n_in_lx; /* storages that a device op writes, and how many of them live in the scratchpads */
  int64_t peak_pool_bytes;
  double predicted_ns;
  SW_VEC(const char *) conversions; /* "storage -> layout", in order of insertion */
  SW_VEC(const char *) faults;      /* all of them, with node and advice */
};

struct sw_comparison {
  SW_VEC(struct sw_compared) runs; /* models, then profiles, then solvers */
};

/* A fault in one line, with node and advice. */
const char *sw_compare_fault(struct sw_arena *a, const struct sw_fault *f);

/* Compiles `in` once and adds what came out. Faults of that compile are part of the answer, not of `job`. */
void sw_compare_run(struct sw_job *job, const char *model, const struct sw_compile_input *in,
                    const struct sw_options *o, struct sw_comparison *c);

/* The same for each of the profiles with each of the solvers, in the order of the two comma-separated lists (NULL: best
 * and torch-spyre; ilp, beam and greedy). `in` NULL only checks the lists. */
enum sw_rc sw_compare_grid(struct sw_job *job, const char *model, const struct sw_compile_input *in, const char *profiles,
                           const char *solvers, const struct sw_options *base, struct sw_comparison *c);

/* A table for people; "over" is the cost above the proved optimum of the same model and profile. Each run also says which conversions the first run of its model has and it has not ("-"), and
 * the other way round ("+"). */
void sw_compare_text(const struct sw_comparison *c, struct sw_buf *out);
void sw_compare_json(const struct sw_comparison *c, struct sw_buf *out);

/* Checks against an earlier sw_compare_json: a run with the same model digest, profile and solver must not cost more
 * in the same unit. The number that do, each named in `out`. -1 after a fault. */
int sw_compare_check(struct sw_job *job, const struct sw_comparison *c, const char *baseline, size_t len,
                     struct sw_buf *out);

#endif
