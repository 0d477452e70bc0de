/* stickwright show FILE.json|DIR: what a SuperDSC file, a bundle or a result directory does, in plain words. */
#include "compiler/cli/verb.h"

#include "base/buf.h"
#include "compiler/verify/dsc.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char *const formats[] = {"fp16", "fp32", "int32", "fp8"};

/* "mb 64 in 4 slices of 16" */
static void show_dims(const struct dsc *d, struct sw_buf *out)
{
  for (int i = 0; i < d->n_dims; i++) {
    sw_buf_printf(out, "  dim %s: %" PRId64, d->dim[i], d->size[i]);
    if (d->split[i] > 1)
      sw_buf_printf(out, ", %" PRId64 " slices of %" PRId64, d->split[i], d->slice[i]);
    if (d->is_masked[i])
      sw_buf_printf(out, ", %g in place of elements from %" PRId64 " on", d->mask_value, d->mask_start[i]);
    const struct dsc_window *w = &d->window[i];
    if (w->is_set)
      sw_buf_printf(out, ", window %s by steps of %" PRId64 " with %" PRId64 " before", d->dim[w->tap], w->stride, w->pad_front);
    sw_buf_puts(out, "\n");
  }
}

/* "tensor 1 (input): fp16 in LX at byte 1024, sticks along out, innermost first: mb, out" */
static void show_tensor(const struct dsc *d, int i, struct sw_buf *out)
{
  const struct dsc_tensor *t = &d->tensor[i];
  sw_buf_printf(out, "  tensor %d (%s): %s ", i, i == d->out ? "output" : t->is_index ? "row numbers" : "input", formats[t->format]);
  int64_t least = t->start[0], most = t->start[0];
  for (int c = 0; c < d->n_cores; c++) {
    least = t->start[c] < least ? t->start[c] : least;
    most = t->start[c] > most ? t->start[c] : most;
  }
  if (t->is_lx)
    sw_buf_printf(out, "in LX at byte %" PRId64, least);
  else if (least == most)
    sw_buf_printf(out, "in HBM at symbol %" PRId64 ", the same for all cores", least);
  else
    sw_buf_printf(out, "in HBM at symbols %" PRId64 " to %" PRId64, most, least);
  sw_buf_printf(out, ", sticks of %" PRId64 " along %s; innermost first:", t->e, d->dim[t->stick]);
  for (int k = 0; k < t->n; k++) {
    int dim = t->order[k];
    sw_buf_printf(out, "%s %s", k ? "," : "", d->dim[dim]);
    if (t->scale[dim] == -1)
      sw_buf_puts(out, " (absent)");
    else if (t->scale[dim] == -2)
      sw_buf_puts(out, " (one value a stick)");
    else if (t->gap[dim])
      sw_buf_printf(out, " (and %" PRId64 " more in memory)", t->gap[dim]);
  }
  if (t->is_value)
    sw_buf_printf(out, "; rows by tensor %d", t->related);
  sw_buf_puts(out, "\n");
}

static enum sw_rc show_file(struct sw_job *job, const char *path, struct sw_buf *out)
{
  const char *text, *slash = strrchr(path, '/');
  size_t len;
  SW_TRY(sw_cli_read(job, path, &text, &len));
  const struct sim_form *form = sim_form_new(job);
  const struct dsc *d = form ? dsc_read(job, form, slash ? slash + 1 : path, text, len) : NULL;
  if (!d)
    return job->worst;
  sw_buf_printf(out, "%s: %s on %d core%s\n", d->file, d->fn, d->n_cores, d->n_cores == 1 ? "" : "s");
  show_dims(d, out);
  for (int i = 0; i < d->n_tensors; i++)
    show_tensor(d, i, out);
  for (int i = 0; i < d->n_constants; i++)
    sw_buf_printf(out, "  constant %s: %g\n", d->constant[i].name, d->constant[i].value);
  return SW_OK;
}

/* Loops and executes of bundle.mlir, in its order; a bound is "%loop_bound_0 = arith.constant 4". */
static enum sw_rc show_bundle(struct sw_job *job, const char *dir, struct sw_buf *out)
{
  const char *text;
  size_t len;
  int open = 0; /* loops */
  SW_TRY(sw_cli_read(job, sw_arena_printf(job->arena, "%s/bundle.mlir", dir), &text, &len));
  for (const char *line = text; line && *line; line = strchr(line, '\n'), line += line != NULL) {
    const char *end = strchr(line, '\n'), *s = line + strspn(line, " \t");
    char *copy = sw_arena_strndup(job->arena, s, end ? (size_t)(end - s) : strlen(s));
    char *bound = strstr(copy, "%loop_bound_"), *file = strstr(copy, "sdsc_filename=\"");
    char *bytes = strstr(copy, "device_mem_allocate ");
    if (bytes) {
      sw_buf_printf(out, "a pool of %ld bytes\n", atol(bytes + strlen("device_mem_allocate ")));
    } else if (!strncmp(copy, "scf.for ", 8) && bound) {
      char *name = sw_arena_printf(job->arena, "%.*s =", (int)strcspn(bound, " "), bound), *at = strstr(text, name);
      const char *count = at ? strstr(at, "constant ") : NULL;
      sw_buf_printf(out, "loop %.*s, %ld times:\n", (int)strcspn(copy + 8, " "), copy + 8, count ? atol(count + 9) : 0L);
      open++;
    } else if (*copy == '}' && open) {
      open--;
      sw_buf_puts(out, "end of the loop\n");
    } else if (file) {
      file += strlen("sdsc_filename=\"");
      SW_TRY(show_file(job, sw_arena_printf(job->arena, "%s/%.*s", dir, (int)strcspn(file, "\""), file), out));
    }
  }
  return SW_OK;
}

static bool exists(const char *path)
{
  struct stat s;
  return !stat(path, &s);
}

/* A bundle's own directory, or all bundles of a result directory. */
static enum sw_rc show_directory(struct sw_job *job, const char *dir, struct sw_buf *out)
{
  if (exists(sw_arena_printf(job->arena, "%s/bundle.mlir", dir)))
    return show_bundle(job, dir, out);
  int n = 0;
  for (char *at; exists(at = sw_arena_printf(job->arena, "%s/bundle_%d", dir, n)); n++) {
    sw_buf_printf(out, "%sbundle_%d\n", n ? "\n" : "", n);
    SW_TRY(show_bundle(job, at, out));
  }
  return n ? SW_OK : sw_fail(job, SW_NO_INPUT, "%s holds no bundle", dir);
}

int sw_verb_show(struct sw_job *job, int argc, char **argv)
{
  struct sw_cli_args args = {0};
  struct stat s;
  if (!sw_cli_parse(job, argc, argv, "show", NULL, &args))
    return sw_rc_exit(job->worst);
  if (args.operands.n != 1)
    return sw_rc_exit(sw_fail(job, SW_USAGE, "show: one sdsc_N.json or DIR expected"));
  const char *path = args.operands.v[0];
  struct sw_buf out = {.arena = job->arena};
  enum sw_rc rc = !stat(path, &s) && S_ISDIR(s.st_mode) ? show_directory(job, path, &out) : show_file(job, path, &out);
  int printed = sw_cli_print(job, sw_buf_text(&out), out.n);
  return rc == SW_OK ? printed : sw_rc_exit(rc);
}
