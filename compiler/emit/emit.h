/* From program and plan to the files of a result directory. */
#ifndef SW_EMIT_EMIT_H
#define SW_EMIT_EMIT_H

#include "compiler/emit/opspec.h"
#include "compiler/plan/plan.h"

/* Op specs of one kernel, and the storages behind its arguments: argument i of the bundle is args[i]. */
struct sw_kernel_specs {
  struct sw_opspecs specs;
  SW_VEC(int) args;
};

enum sw_rc sw_kernel_specs(struct sw_job *job, const struct sw_program *p, const struct sw_plan *plan, int kernel,
                           struct sw_kernel_specs *out);

/* Where a storage lives; storages without a place are in HBM. */
enum sw_place_kind sw_place_of(const struct sw_storage *s);

/* A scalar takes no part in layout choice: one stick whose first element counts. */
const struct sw_layout *sw_emit_layout(struct sw_arena *a, const struct sw_storage *s);

/* manifest.json with constants/, weights.json. */
/* lx_bytes: of a scratchpad, what the plan may use. */
enum sw_rc sw_write_manifest(struct sw_job *job, int64_t lx_bytes, const struct sw_program *p, const struct sw_plan *plan,
                             const struct sw_kernel_specs *kernels, struct sw_files *out);
void sw_write_weights(struct sw_job *job, const struct sw_program *p, struct sw_files *out);

#endif
