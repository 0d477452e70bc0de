/* The planning pass: core splits and time of every op, kernels, places.
 *
 * requires   every storage that is not host_only has a layout
 * ensures    op.plan and storage.place are set; kernels hold every op once, in program order
 * preserves  storages, ops, accesses */
#include "compiler/plan/plan.h"

#include "base/options.h"

enum sw_rc sw_make_plan(struct sw_job *job, const struct sw_options *o, struct sw_program *p, struct sw_plan **out)
{
  (void)o;
  struct sw_plan *plan = SW_NEW(job->arena, struct sw_plan);
  struct sw_kernel *kernel = NULL;
  for (int i = 0; i < p->steps.n; i++) {
    const struct sw_step *step = &p->steps.v[i];
    if (step->is_host) {
      kernel = NULL;
      continue;
    }
    if (!kernel) {
      kernel = SW_PUSH(job->arena, &plan->kernels);
      kernel->name = sw_arena_printf(job->arena, "sdsc_fused_%d", plan->kernels.n - 1);
    }
    *SW_PUSH(job->arena, &kernel->ops) = step->index;
    struct sw_op_plan *op = SW_NEW(job->arena, struct sw_op_plan);
    for (int l = 0; l < SW_MAX_LOOPS; l++)
      op->split[l] = 1;
    op->cores = 1;
    op->kernel = plan->kernels.n - 1;
    p->ops.v[step->index].plan = op;
  }
  for (int s = 0; s < p->storages.n; s++) {
    struct sw_storage *storage = &p->storages.v[s];
    if (!storage->layout)
      continue;
    struct sw_place *place = SW_NEW(job->arena, struct sw_place);
    place->bytes = sw_layout_bytes(storage->layout);
    storage->place = place;
  }
  *out = plan;
  return SW_OK;
}
