/* Every exported model with values, both dialects and profiles: the lowered program, interpreted in doubles, gives what
 * PyTorch computed (float32 run; tolerances stored beside it). Needs the model corpus: SW_SHARED, or the folder `shared`
 * beside the sources; without it the test says how many cases it left out. SW_MODEL picks one, SW_MODELS=all takes all. */
#include "../unit.h"

#include "base/files.h"
#include "base/json.h"
#include "base/options.h"
#include "interpret.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

/* Small, and between them most families. */
static const char *const few[] = {
    "add_transpose", "softmax_block", "rmsnorm_swiglu_mlp_fp16", "attention_math", "attention_sdpa",
    "attention_sdpa_causal", "attention_sdpa_gqa", "attention_sdpa_mask_bool", "views_chain", "inplace_ops", "norms",
    "cat_split_slice", "kv_decode_slice", "kv_decode_index_copy", "einsum_ops", "conv1d_stack", "reduce_stick", "llama_tiny",
};

static const char *shared;

struct one {
  struct sw_job job;
  const char *model, *file; /* NAME and NAME[.core].pt2 */
  enum sw_profile profile;
  bool skipped, wrong;
  double worst;             /* error over tolerance */
  char text[300];
};

static const char *path(struct one *c, const char *name)
{
  return sw_arena_printf(c->job.arena, "%s/models/%s", shared, name);
}

static void complain(struct one *c, const char *what, const char *name)
{
  if (!c->text[0])
    snprintf(c->text, sizeof c->text, "%.150s %.140s", what, name);
}

static enum sw_dtype dtype_of(const json_t *j)
{
  return sw_dtype_from_text(json_string_value(json_object_get(j, "dtype")));
}

static bool read_tensor(struct one *c, const json_t *j, struct sw_tensor *t)
{
  const json_t *shape = json_object_get(j, "shape");
  int64_t size[SW_MAX_RANK];
  int rank = (int)json_array_size(shape);
  for (int d = 0; d < rank; d++)
    size[d] = json_integer_value(json_array_get(shape, (size_t)d));
  const char *bytes;
  size_t len;
  enum sw_dtype dtype = dtype_of(j);
  if (dtype == SW_N_DTYPES || sw_file_read(&c->job, path(c, json_string_value(json_object_get(j, "file"))), 1u << 30, &bytes, &len))
    return false;
  sw_tensor_from_bytes(c->job.arena, t, dtype, rank, size, bytes);
  return true;
}

static void compare(struct one *c, struct machine *m, const struct sw_program_output *o, const json_t *want)
{
  struct sw_tensor expected;
  if (!o->is_tensor || !read_tensor(c, want, &expected))
    return;
  struct sw_tensor got = get(m, &o->view, SW_F64);
  double atol = json_number_value(json_object_get(want, "atol")), rtol = json_number_value(json_object_get(want, "rtol"));
  bool differ = got.cells->n != expected.cells->n;
  for (int64_t i = 0; !differ && i < got.cells->n; i++) {
    double w = cell_of(&expected, i), g = got.cells->real[i], limit = atol + rtol * fabs(w);
    if (w == g || (isnan(w) && isnan(g)) || (w == 0 && fabs(g) < 1e-30))
      continue;
    double error = limit > 0 ? fabs(g - w) / limit : INFINITY;
    if (!(error <= 1) && !c->wrong) {
      snprintf(c->text, sizeof c->text, "output %.80s[%lld] is %g, should be %g", o->name, (long long)i, g, w);
      c->wrong = true;
    }
    c->worst = error > c->worst ? error : c->worst;
  }
  if (differ) {
    complain(c, "another size of output", o->name);
    c->wrong = true;
  }
}

static void load(struct one *c, struct machine *m, struct sw_eval *e, const json_t *inputs)
{
  const struct sw_graph *g = m->p->graph;
  for (int s = 0; s < m->p->storages.n; s++) {
    const struct sw_storage *st = &m->p->storages.v[s];
    if (st->input < 0)
      continue;
    const struct sw_input *in = &g->inputs.v[st->input];
    struct sw_tensor t;
    const json_t *j;
    size_t i;
    bool found = false;
    if (in->kind == SW_INPUT_USER) {
      size_t order = 0;
      for (int k = 0; k < st->input; k++)
        order += g->inputs.v[k].kind == SW_INPUT_USER;
      json_array_foreach((json_t *)(uintptr_t)inputs, i, j)
        if (i == order)
          found = read_tensor(c, j, &t);
    } else if (sw_eval_load(e, st->input)) {
      t = sw_eval_value(e, in->value)->tensor;
      found = true;
    }
    if (!found) {
      complain(c, "no values for", in->name);
      c->skipped = true;
      return;
    }
    put(storage_cells(m, s), st->stride, 0, &t);
  }
}

/* The values in io.json are those of the export's own inputs. */
static enum sw_rc at_export_sizes(struct sw_job *job, struct sw_graph *g)
{
  struct sw_texts sizes = {0};
  sw_graph_find_dims(job, g);
  for (int i = 0; i < g->dims.n; i++)
    *SW_PUSH(job->arena, &sizes) = sw_arena_printf(job->arena, "%s=%lld", g->dims.v[i].range.symbol, (long long)g->dims.v[i].hint);
  return sw_graph_fix_dims(job, g, &sizes);
}

static void run_case(void *p)
{
  struct one *c = p;
  const char *bytes, *text;
  size_t len, text_len;
  struct sw_graph *g;
  struct sw_program *program;
  struct sw_options o;
  sw_options_init(&o);
  o.profile = c->profile;
  sw_options_settle(&o);
  c->skipped = true;
  if (sw_file_read(&c->job, path(c, c->file), 1u << 30, &bytes, &len) ||
      sw_file_read(&c->job, path(c, sw_arena_printf(c->job.arena, "%s.io.json", c->model)), 1u << 20, &text, &text_len))
    return;
  const json_t *io = sw_json_parse(&c->job, "io", text, text_len, 100000);
  if (sw_graph_read(&c->job, c->file, bytes, len, NULL, &g) || at_export_sizes(&c->job, g) || sw_lower(&c->job, &o, g, &program)) {
    complain(c, "refused:", c->job.faults.n ? c->job.faults.v[0].detail : "");
    return;
  }
  c->skipped = false;
  if (sw_program_verify(&c->job, program, "lower")) {
    complain(c, c->job.faults.v[c->job.faults.n - 1].detail, "");
    c->wrong = true;
    return;
  }
  struct machine m = {.job = &c->job, .p = program};
  m.cells = SW_NEW_N(c->job.arena, double *, program->storages.n);
  m.second = SW_NEW_N(c->job.arena, double *, program->storages.n);
  struct sw_eval *e = sw_eval_new(&c->job, g, SW_ROUND_NONE, (size_t)2 << 30);
  load(c, &m, e, json_object_get(io, "inputs"));
  if (c->skipped)
    return;
  run_program(&m);
  if (m.failed) {
    complain(c, "host step", m.why);
    c->skipped = true;
    return;
  }
  const json_t *outputs = json_object_get(io, "outputs"), *after = json_object_get(io, "buffers_after");
  size_t at = 0;
  for (int i = 0; i < program->outputs.n; i++) {
    const struct sw_program_output *out = &program->outputs.v[i];
    if (!out->mutates) {
      compare(c, &m, out, json_array_get(outputs, at++));
      continue;
    }
    const json_t *j;
    size_t k;
    json_array_foreach((json_t *)(uintptr_t)after, k, j)
      if (!strcmp(json_string_value(json_object_get(j, "buffer")), out->mutates))
        compare(c, &m, out, j);
  }
}

static int run_one(const char *model, const char *file, enum sw_profile profile, int *skipped)
{
  struct one c = {.job = {.arena = sw_arena_new(NULL, (size_t)4 << 30)}, .model = model, .file = file, .profile = profile};
  if (!sw_arena_run(c.job.arena, run_case, &c)) {
    c.skipped = true;
    snprintf(c.text, sizeof c.text, "memory");
  }
  *skipped += c.skipped;
  if (c.wrong || c.text[0])
    printf("%s %s, profile %s: %s (%.3g)\n", c.wrong ? "WRONG" : "left out", file, profile ? "torch-spyre" : "best", c.text, c.worst);
  sw_arena_free(c.job.arena);
  return c.wrong;
}

static bool exists(const char *model, const char *end)
{
  char name[600];
  snprintf(name, sizeof name, "%s/models/%s%s", shared, model, end);
  FILE *f = fopen(name, "rb");
  if (f)
    fclose(f);
  return f != NULL;
}

static int run_model(const char *model, int *cases, int *skipped)
{
  static const char *const ends[] = {".pt2", ".core.pt2"};
  int wrong = 0;
  for (int d = 0; d < 2; d++) {
    char file[300];
    snprintf(file, sizeof file, "%s%s", model, ends[d]);
    if (!exists(model, ends[d]) || !exists(model, ".io.json"))
      continue;
    for (int profile = 0; profile < 2; profile++) {
      (*cases)++;
      wrong += run_one(model, file, (enum sw_profile)profile, skipped);
    }
  }
  return wrong;
}

static int by_name(const void *a, const void *b)
{
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void models_compute_what_pytorch_computed(void **state)
{
  (void)state;
  int cases = 0, skipped = 0, wrong = 0;
  const char *only = getenv("SW_MODEL"), *which = getenv("SW_MODELS");
  if (only) {
    wrong = run_model(only, &cases, &skipped);
  } else if (which && !strcmp(which, "all")) {
    char folder[600];
    snprintf(folder, sizeof folder, "%s/models", shared);
    DIR *dir = opendir(folder);
    char *names[400];
    int n = 0;
    for (struct dirent *f = dir ? readdir(dir) : NULL; f; f = readdir(dir)) {
      char *end = strstr(f->d_name, ".io.json");
      if (end && n < 400)
        names[n++] = strndup(f->d_name, (size_t)(end - f->d_name));
    }
    if (dir)
      closedir(dir);
    qsort(names, (size_t)n, sizeof *names, by_name);
    for (int i = 0; i < n; i++) {
      wrong += run_model(names[i], &cases, &skipped);
      free(names[i]);
    }
  } else {
    for (size_t i = 0; i < sizeof few / sizeof few[0]; i++)
      wrong += run_model(few[i], &cases, &skipped);
  }
  printf("%d cases, %d left out, %d wrong\n", cases, skipped, wrong);
  if (cases == 0)
    printf("no models at %s: %zu models left out\n", shared, sizeof few / sizeof few[0]);
  assert_int_equal(wrong, 0);
}

int main(void)
{
  shared = getenv("SW_SHARED");
  if (!shared)
    shared = SW_SOURCE_DIR "/../shared";
  const struct CMUnitTest tests[] = {cmocka_unit_test(models_compute_what_pytorch_computed)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
