/* A host step of a manifest, computed with the evaluator. */
#ifndef SW_VERIFY_HOST_STEP_H
#define SW_VERIFY_HOST_STEP_H

#include "compiler/eval/eval.h"

#include <jansson.h>

/* How a step reaches tensors: by a buffer name or a view of the manifest. False after a fault. */
struct host_memory {
  bool (*read)(void *ctx, const json_t *view, struct sw_tensor *out);
  bool (*shape)(void *ctx, const json_t *view, struct sw_tensor *out); /* dtype, size, stride only */
  bool (*write)(void *ctx, const json_t *view, const struct sw_tensor *t);
  void *ctx;
};

enum sw_rc sim_host_step(struct sw_job *job, const json_t *step, const struct host_memory *memory);

#endif
