/* What a compile has to say: result.json for programs, the one-screen summary for people. */
#ifndef SW_REPORT_H
#define SW_REPORT_H

#include "base/options.h"
#include "compiler/plan/plan.h"
#include "compiler/verify/verify.h"

/* Parts behind a failed pass are NULL. */
struct sw_report {
  const struct sw_job *job;
  const struct sw_options *options;
  const char *status;
  const struct sw_graph *graph;
  const struct sw_program *program;
  const struct sw_choice *choice;
  const struct sw_plan *plan;
  const struct sw_verdict *verdict;
};

/* What a plan consists of, in numbers. */
struct sw_report_counts {
  int ops, host_steps, kernels;
  int intermediates, in_lx; /* storages that a device op writes, and how many of them live in the scratchpads */
  int64_t peak_pool_bytes;
};
struct sw_report_counts sw_report_count(const struct sw_program *program, const struct sw_plan *plan);

/* result.json: docs/formats.md, section "Result". Holds nothing that differs between two runs. */
void sw_report_result(const struct sw_report *r, struct sw_buf *out);

/* Status, cost, conversions with reasons, split of predicted time, warnings; at most about 40 lines. */
void sw_report_summary(const struct sw_report *r, struct sw_buf *out);

#endif
