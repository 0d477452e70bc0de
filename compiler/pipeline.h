/* The pipeline: one input in, one result directory out. Both front doors call this and nothing else. */
#ifndef SW_PIPELINE_H
#define SW_PIPELINE_H

#include "base/files.h"
#include "base/options.h"
#include "compiler/plan/plan.h"
#include "compiler/verify/verify.h"

/* In order: X(name, what holds behind it). --dump-after, stats.json and docs/architecture.md use these names. */
#define SW_PASSES(X)                                                                      \
  X(read, "values, nodes and source lines are known and checked; dynamic dims have one size")                         \
  X(lower, "one device op per node, views folded into accesses, constants folded")        \
  X(choose, "one layout per storage; conversions and padding inserted")                   \
  X(plan, "core splits, kernels, addresses and predicted times")                          \
  X(emit, "op specs, SuperDSC and manifest")                                              \
  X(verify, "a small program was executed and computes what the graph means")

enum sw_pass {
#define X(name, ensures) SW_PASS_##name,
  SW_PASSES(X)
#undef X
  SW_N_PASSES
};

struct sw_compile_input {
  const char *bytes; /* borrowed for the job */
  size_t len;
  const char *program; /* which one of an archive with several; NULL: the only one */
  void (*on_pass)(void *ctx, const char *pass); /* told each pass that begins; may be NULL */
  void *ctx;
  struct sw_files_dir *dir; /* where the files go at once, then they are not in `files`; NULL: they are kept */
};

/* What there is after a run; parts behind the pass that failed are NULL. */
struct sw_compiled {
  struct sw_graph *graph;
  struct sw_program *program;
  struct sw_choice *choice;
  struct sw_plan *plan;
  struct sw_verdict verdict; /* outcome NULL: the compile failed before */
  const char *status;     /* of result.json */
  struct sw_files files;  /* the whole directory; only result.json and stats.json when the compile failed */
  const char *result;     /* result.json; always there, faults included */
  size_t result_len;
  double seconds[SW_N_PASSES];
};

/* Runs all passes, or (dump_after given) up to that one and then writes a readable dump of the state to `dump`. The
 * result is complete in every case; the return code is the worst fault. */
enum sw_rc sw_compile(struct sw_job *job, const struct sw_options *o, const struct sw_compile_input *in,
                      const char *dump_after, struct sw_buf *dump, struct sw_compiled *out);

#endif
