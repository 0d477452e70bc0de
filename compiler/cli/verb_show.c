/* stickwright show FILE.json|DIR: what a SuperDSC file, a bundle or a result directory does, in plain words. With the
 * bundle.mlir beside a file, its symbols are arguments and their bytes; with the manifest above that, buffers by name. */
#include "compiler/cli/verb.h"

#include "base/buf.h"
#include "base/files.h"
#include "compiler/verify/bundle.h"

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

/* What is around a file. */
struct context {
  const struct sim_seen *seen; /* NULL: no bundle */
  const json_t *args;          /* names of buffers by argument, or NULL */
};

static const struct sim_symbol_seen *symbol(const struct context *c, int64_t id)
{
  for (int i = 0; c->seen && i < c->seen->n; i++)
    if (c->seen->symbols[i].id == id)
      return &c->seen->symbols[i];
  return NULL;
}

/* "in HBM, argument 1 (y) at bytes 0 to 6144 by core" */
static void show_place(const struct context *c, const struct dsc *d, const struct dsc_tensor *t, struct sw_buf *out)
{
  const struct sim_symbol_seen *first = symbol(c, t->start[0]);
  int64_t least = INT64_MAX, most = INT64_MIN;
  for (int i = 0; i < d->n_cores; i++) {
    const struct sim_symbol_seen *s = symbol(c, t->start[i]);
    int64_t at = t->is_lx || !s ? t->start[i] : s->offset;
    least = at < least ? at : least;
    most = at > most ? at : most;
  }
  if (t->is_lx)
    sw_buf_printf(out, "in LX at byte %" PRId64, least);
  else if (!first && least == most)
    sw_buf_printf(out, "in HBM at symbol %" PRId64 ", the same for all cores", least);
  else if (!first)
    sw_buf_printf(out, "in HBM at symbols %" PRId64 " to %" PRId64, most, least);
  else {
    if (first->argument == SIM_POOL)
      sw_buf_puts(out, "in the pool");
    else if (first->argument == SIM_NUMBER)
      sw_buf_puts(out, "at an address without a base");
    else
      sw_buf_printf(out, "in HBM, argument %d", first->argument);
    const char *name = first->argument < 0 ? NULL : json_string_value(json_array_get(c->args, (size_t)first->argument));
    if (name)
      sw_buf_printf(out, " (%s)", name);
    if (least == most)
      sw_buf_printf(out, " at byte %" PRId64 "%s", least, d->n_cores > 1 ? " for all cores" : "");
    else
      sw_buf_printf(out, " at bytes %" PRId64 " to %" PRId64 " by core", least, most);
  }
}

static void show_tensor(const struct context *c, const struct dsc *d, int i, struct sw_buf *out)
{
  const struct dsc_tensor *t = &d->tensor[i];
  sw_buf_printf(out, "  tensor %d (%s): %s ", i, i == d->out ? "output" : t->is_index ? "row numbers" : "input", formats[t->format]);
  show_place(c, d, t, out);
  sw_buf_printf(out, ", sticks of %" PRId64 " along %s", t->e, d->dim[t->stick]);
  if (t->rows_dim >= 0)
    sw_buf_printf(out, " by %" PRId64 " of %s", t->rows, d->dim[t->rows_dim]);
  sw_buf_puts(out, "; innermost first:");
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
  const struct sim_symbol_seen *s = symbol(c, t->start[0]);
  for (int l = 0; s && l < c->seen->n_loops; l++)
    if (s->move[l])
      sw_buf_printf(out, "; %+" PRId64 " bytes a round of loop %d", s->move[l], l);
  sw_buf_puts(out, "\n");
}

/* "from model.py:7, node y (aten.add.Tensor), op y" */
static void show_origin(const json_t *handle, struct sw_buf *out)
{
  const json_t *source = json_object_get(handle, "source"), *chain = json_object_get(handle, "ir_chain");
  const char *aten = json_string_value(json_object_get(handle, "aten_op"));
  size_t n = json_array_size(chain);
  if (!n)
    return;
  sw_buf_puts(out, "  from");
  if (json_is_object(source))
    sw_buf_printf(out, " %s:%" JSON_INTEGER_FORMAT ",", json_string_value(json_object_get(source, "file")),
                  json_integer_value(json_object_get(source, "start_line")));
  for (size_t i = 0; i + 1 < n; i++)
    sw_buf_printf(out, " node %s%s", json_string_value(json_array_get(chain, i)), i + 2 == n && !aten ? "," : "");
  if (aten)
    sw_buf_printf(out, " (%s),", aten);
  sw_buf_printf(out, " op %s\n", json_string_value(json_array_get(chain, n - 1)));
}

static void show_op(const struct context *c, const struct dsc *d, struct sw_buf *out)
{
  sw_buf_printf(out, "%s: %s on %d core%s\n", d->file, d->fn, d->n_cores, d->n_cores == 1 ? "" : "s");
  show_origin(d->handle, out);
  show_dims(d, out);
  for (int i = 0; i < d->n_tensors; i++)
    show_tensor(c, d, i, out);
  for (int i = 0; i < d->n_constants; i++)
    sw_buf_printf(out, "  constant %s: %g\n", d->constant[i].name, d->constant[i].value);
}

static bool from_disk(void *ctx, struct sw_job *job, const char *name, const char **text, size_t *len)
{
  return sw_file_read(job, sw_arena_printf(job->arena, "%s/%s", (const char *)ctx, name), (size_t)1 << 31, text, len) == SW_OK;
}

static bool exists(const char *path)
{
  struct stat s;
  return !stat(path, &s);
}

/* The arguments of a bundle by the manifest of the directory above it; NULL: there is none. */
static const json_t *arguments(struct sw_job *job, const char *dir)
{
  char *path = sw_arena_printf(job->arena, "%s/../manifest.json", dir), *real = realpath(dir, NULL);
  char *own = real ? sw_arena_strdup(job->arena, real) : sw_arena_strdup(job->arena, dir);
  free(real);
  const char *text, *slash = strrchr(own, '/');
  size_t len, i;
  json_t *manifest, *step;
  if (!exists(path) || sw_file_read(job, path, (size_t)1 << 31, &text, &len) != SW_OK ||
      !(manifest = sw_json_parse(job, "manifest.json", text, len, 100000000)))
    return NULL;
  json_array_foreach (json_object_get(manifest, "steps"), i, step) {
    const char *kernel = json_string_value(json_object_get(step, "kernel"));
    if (kernel && !strcmp(kernel, slash ? slash + 1 : own))
      return json_object_get(step, "args");
  }
  return NULL;
}

static enum sw_rc describe(struct sw_job *job, const char *dir, struct sim_seen_list *out)
{
  return sim_describe_bundle(job, &(struct sim_files){from_disk, (void *)(intptr_t)dir}, out);
}

static enum sw_rc show_file(struct sw_job *job, const char *path, struct sw_buf *out)
{
  const char *text, *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
  char *dir = slash ? sw_arena_strndup(job->arena, path, (size_t)(slash - path)) : sw_arena_strdup(job->arena, ".");
  size_t len;
  if (exists(sw_arena_printf(job->arena, "%s/bundle.mlir", dir))) {
    struct sim_seen_list seen = {0};
    SW_TRY(describe(job, dir, &seen));
    for (int i = 0; i < seen.list.n; i++)
      if (!strcmp(seen.list.v[i].d->file, name)) {
        show_op(&(struct context){&seen.list.v[i], arguments(job, dir)}, seen.list.v[i].d, out);
        return SW_OK;
      }
  }
  SW_TRY(sw_cli_read(job, path, &text, &len));
  const struct sim_form *form = sim_form_new(job);
  const struct dsc *d = form ? dsc_read(job, form, name, text, len) : NULL;
  if (!d)
    return job->worst;
  show_op(&(struct context){0}, d, out);
  return SW_OK;
}

/* Loops and executes of bundle.mlir, in its order; a bound is "%loop_bound_0 = arith.constant 4". */
static enum sw_rc show_bundle(struct sw_job *job, const char *dir, struct sw_buf *out)
{
  const char *text;
  size_t len;
  int open = 0, next = 0; /* loops, executes */
  struct sim_seen_list seen = {0};
  SW_TRY(describe(job, dir, &seen));
  const json_t *args = arguments(job, dir);
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
      sw_buf_printf(out, "loop %d (%.*s), %ld times:\n", open++, (int)strcspn(copy + 8, " "), copy + 8,
                    count ? atol(count + 9) : 0L);
    } else if (*copy == '}' && open) {
      open--;
      sw_buf_puts(out, "end of the loop\n");
    } else if (file) {
      show_op(&(struct context){&seen.list.v[next], args}, seen.list.v[next].d, out);
      next++;
    }
  }
  return SW_OK;
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
