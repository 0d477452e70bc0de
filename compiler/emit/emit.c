/* The emission pass.
 *
 * requires   layouts, plans of all ops, places of all storages
 * ensures    bundle_K/, manifest.json, weights.json and constants/ are in the set of files, or a fault says why not
 * preserves  the program */
#include "compiler/emit/emit.h"

#include "base/options.h"

void sw_emit_keep(struct sw_job *job, struct sw_files *out, const char *path, const struct sw_buf *text)
{
  const void *bytes = out->dir ? text->p : sw_arena_copy(job->arena, text->p, text->n, 1);
  sw_files_add(job, out, path, bytes, text->n);
}

static void write_specs(struct sw_job *job, const struct sw_opspecs *specs, const char *folder, struct sw_files *out)
{
  struct sw_arena *scratch = sw_arena_new(job->arena, 0);
  struct sw_buf text = {.arena = scratch};
  sw_opspecs_write(specs, &text);
  sw_emit_keep(job, out, sw_arena_printf(scratch, "%sopspec.json", folder), &text);
  sw_arena_free(scratch);
}

enum sw_rc sw_emit(struct sw_job *job, const struct sw_options *o, const struct sw_program *p, const struct sw_plan *plan,
                   struct sw_files *out)
{
  struct sw_kernel_specs *kernels = SW_NEW_N(job->arena, struct sw_kernel_specs, plan->kernels.n);
  enum sw_rc worst = SW_OK;
  for (int k = 0; k < plan->kernels.n; k++) {
    enum sw_rc rc = sw_kernel_specs(job, p, plan, k, &kernels[k]);
    const char *folder = sw_arena_printf(job->arena, "bundle_%d/", k);
    if (rc == SW_OK && out)
      write_specs(job, &kernels[k].specs, folder, out);
    if (rc == SW_OK)
      rc = sw_emit_superdsc(job, &kernels[k].specs, folder, out);
    worst = rc > worst ? rc : worst;
    if (sw_cancelled(job))
      return sw_fail(job, SW_CANCELLED, "cancelled while writing kernel %d", k);
  }
  SW_TRY(worst);
  if (!out)
    return SW_OK;
  SW_TRY(sw_write_manifest(job, o->lx_bytes, p, plan, kernels, out));
  sw_write_weights(job, p, out);
  return SW_OK;
}
