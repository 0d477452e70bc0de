/* The emission pass.
 *
 * requires   layouts, plans of all ops, places of all storages
 * ensures    bundle_K/, manifest.json, weights.json and constants/ are in the set of files, or a fault says why not
 * preserves  the program */
#include "compiler/emit/emit.h"

enum sw_rc sw_emit(struct sw_job *job, const struct sw_options *o, const struct sw_program *p, const struct sw_plan *plan,
                   struct sw_files *out)
{
  (void)o;
  struct sw_kernel_specs *kernels = SW_NEW_N(job->arena, struct sw_kernel_specs, plan->kernels.n);
  enum sw_rc worst = SW_OK;
  for (int k = 0; k < plan->kernels.n; k++) {
    struct sw_arena *a = job->arena;
    enum sw_rc rc = sw_kernel_specs(job, p, plan, k, &kernels[k]);
    if (rc == SW_OK) {
      struct sw_buf text = {.arena = a};
      sw_opspecs_write(&kernels[k].specs, &text);
      sw_files_add(job, out, sw_arena_printf(a, "bundle_%d/opspec.json", k), text.p, text.n);
      rc = sw_emit_superdsc(job, &kernels[k].specs, sw_arena_printf(a, "bundle_%d/", k), out);
    }
    worst = rc > worst ? rc : worst;
    if (sw_cancelled(job))
      return sw_fail(job, SW_CANCELLED, "cancelled while writing kernel %d", k);
  }
  SW_TRY(worst);
  SW_TRY(sw_write_manifest(job, p, plan, kernels, out));
  sw_write_weights(job, p, out);
  return SW_OK;
}
