#include "compiler/study.h"

#include "base/files.h"
#include "base/map.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_FILE = 1 << 30, MAX_VALUES = 10000000 };

/* -- the spec -- */

/* A list of texts of the spec; `otherwise` (separated by blanks) when it is left out. */
static bool read_list(struct sw_job *job, const json_t *spec, const char *key, const char *otherwise, struct sw_texts *out)
{
  const json_t *list = json_object_get(spec, key), *v;
  size_t i;
  if (!list && otherwise)
    for (size_t n; *otherwise; otherwise += n + strspn(otherwise + n, " ")) {
      n = strcspn(otherwise, " ");
      *SW_PUSH(job->arena, out) = sw_arena_strndup(job->arena, otherwise, n);
    }
  bool ok = true;
  json_array_foreach (list, i, v) {
    ok = ok && json_is_string(v);
    *SW_PUSH(job->arena, out) = json_string_value(v);
  }
  if (ok && out->n)
    return true;
  sw_fail(job, SW_INVALID, "study: /%s: a list of texts with at least one is expected", key);
  return false;
}

/* The spec's own texts are used as they are: its tree lives as long as the job. */
static bool read_options(struct sw_job *job, const json_t *spec, struct sw_study *s)
{
  json_t *list = json_object_get(spec, "options"), *v;
  size_t i;
  if (!list)
    *SW_PUSH(job->arena, &s->options) = (struct sw_study_options){"default", NULL};
  json_array_foreach (list, i, v) {
    const char *name = json_string_value(json_object_get(v, "name"));
    json_t *set = json_object_get(v, "set");
    if (!name || (set && !json_is_object(set))) {
      sw_fail(job, SW_INVALID, "study: /options/%zu: {name, set{}} expected", i);
      return false;
    }
    *SW_PUSH(job->arena, &s->options) = (struct sw_study_options){name, set};
  }
  if (!s->options.n)
    sw_fail(job, SW_INVALID, "study: /options: a list with at least one is expected");
  return s->options.n;
}

struct sw_study *sw_study_read(struct sw_job *job, const char *path)
{
  const char *text;
  size_t len;
  if (sw_file_read(job, path, MAX_FILE, &text, &len) != SW_OK)
    return NULL;
  const json_t *spec = sw_json_parse(job, "study", text, len, MAX_VALUES);
  if (!spec)
    return NULL;
  const char *format = json_string_value(json_object_get(spec, "format"));
  if (!format || strcmp(format, "stickwright.study/1")) {
    sw_fail(job, SW_INVALID, "study: /format: \"stickwright.study/1\" expected");
    return NULL;
  }
  struct sw_study *s = SW_NEW(job->arena, struct sw_study);
  if (!read_list(job, spec, "models", NULL, &s->models) ||
      !read_list(job, spec, "profiles", "best torch-spyre", &s->profiles) ||
      !read_list(job, spec, "solvers", "ilp beam greedy", &s->solvers) || !read_options(job, spec, s))
    return NULL;
  const char *slash = strrchr(path, '/');
  s->dir = slash ? sw_arena_strndup(job->arena, path, (size_t)(slash + 1 - path)) : "";
  return s;
}

/* -- runs, in the order of the spec -- */

struct run {
  int number;
  const char *model, *option_set;
  const char *key; /* version, content of the model, effective options: equal keys, equal lines */
  struct sw_compile_input in;
  struct sw_options options;
};

static int n_runs(const struct sw_study *s)
{
  return s->models.n * s->profiles.n * s->solvers.n * s->options.n;
}

static enum sw_rc set_options(struct sw_job *job, const struct sw_study *s, int p, int v, int o, struct sw_options *out)
{
  const char *name;
  json_t *value;
  sw_options_init(out);
  SW_TRY(sw_option_set(job, out, "profile", s->profiles.v[p]));
  SW_TRY(sw_option_set(job, out, "solver", s->solvers.v[v]));
  json_object_foreach (s->options.v[o].set, name, value) {
    const char *text = json_is_integer(value) ? sw_arena_printf(job->arena, "%" PRId64, (int64_t)json_integer_value(value))
                                              : json_string_value(value);
    if (!text)
      return sw_fail(job, SW_INVALID, "study: option %s: a text or a whole number expected", name);
    SW_TRY(sw_option_set(job, out, name, text));
  }
  sw_options_settle(out);
  return SW_OK;
}

static enum sw_rc each_run(struct sw_job *job, const struct sw_study *s, enum sw_rc (*fn)(void *, struct run *), void *ctx)
{
  struct run r = {0};
  for (int m = 0; m < s->models.n; m++) {
    r.model = s->models.v[m];
    const char *path = *r.model == '/' ? r.model : sw_arena_printf(job->arena, "%s%s", s->dir, r.model);
    SW_TRY(sw_file_read(job, path, MAX_FILE, &r.in.bytes, &r.in.len));
    uint64_t hash = sw_hash(r.in.bytes, r.in.len);
    for (int p = 0; p < s->profiles.n; p++)
      for (int v = 0; v < s->solvers.n; v++)
        for (int o = 0; o < s->options.n; o++, r.number++) {
          struct sw_buf key = {.arena = job->arena};
          SW_TRY(set_options(job, s, p, v, o, &r.options));
          sw_buf_printf(&key, SW_VERSION " %s %s %016" PRIx64 " %zu ", r.model, s->options.v[o].name, hash, r.in.len);
          sw_options_write(&r.options, &(struct sw_jw){.out = &key});
          r.option_set = s->options.v[o].name;
          r.key = sw_buf_text(&key);
          SW_TRY(fn(ctx, &r));
        }
  }
  return SW_OK;
}

/* -- lines -- */

/* All that has been done: lines by their key. */
struct done {
  struct sw_map at; /* key to its place in lines */
  SW_VEC(json_t *) lines;
};

/* Lines up to the last newline; what a killed process left behind it does not count. */
static enum sw_rc load_file(struct sw_job *job, const char *path, struct done *d, size_t *whole)
{
  const char *text;
  size_t len;
  *whole = 0;
  if (access(path, F_OK))
    return SW_OK;
  SW_TRY(sw_file_read(job, path, MAX_FILE, &text, &len));
  for (const char *nl; (nl = memchr(text + *whole, '\n', len - *whole)); *whole = (size_t)(nl + 1 - text)) {
    json_t *line = sw_json_parse(job, path, text + *whole, (size_t)(nl - text) - *whole, MAX_VALUES);
    const char *key = line ? json_string_value(json_object_get(line, "key")) : NULL;
    if (!key)
      return sw_fail(job, SW_INVALID, "%s: a line without a key; remove the file to begin again", path);
    if (sw_map_get_str(&d->at, key) < 0) {
      sw_map_set_str(&d->at, key, d->lines.n);
      *SW_PUSH(job->arena, &d->lines) = line;
    }
  }
  return SW_OK;
}

static bool is_lines_file(const char *name)
{
  size_t n = strlen(name);
  return n > 10 && !strncmp(name, "runs-", 5) && !strcmp(name + n - 6, ".jsonl");
}

static enum sw_rc load_all(struct sw_job *job, const char *out, struct done *d)
{
  d->at.arena = job->arena;
  DIR *dir = opendir(out);
  enum sw_rc rc = SW_OK;
  size_t whole;
  for (const struct dirent *e; dir && rc == SW_OK && (e = readdir(dir));)
    if (is_lines_file(e->d_name))
      rc = load_file(job, sw_arena_printf(job->arena, "%s/%s", out, e->d_name), d, &whole);
  if (dir)
    closedir(dir);
  return rc;
}

static void write_line(const struct run *r, const struct sw_compared *c, struct sw_buf *b)
{
  struct sw_jw w = {.out = b};
  sw_jw_object(&w);
  sw_jw_kstr(&w, "key", r->key);
  sw_jw_kstr(&w, "model", r->model);
  sw_jw_key(&w, "profile");
  sw_option_write(&r->options, "profile", &w);
  sw_jw_key(&w, "solver");
  sw_option_write(&r->options, "solver", &w);
  sw_jw_kstr(&w, "options", r->option_set);
  sw_jw_kstr(&w, "status", c->status);
  sw_jw_kstr(&w, "fault", c->fault);
  if (c->has_plan) {
    sw_jw_kstr(&w, "unit", c->unit);
    sw_jw_kint(&w, "value", c->value);
    sw_jw_kint(&w, "bound", c->bound);
    sw_jw_kint(&w, "conversions", c->n_conversions);
    sw_jw_kint(&w, "conversion_elements", c->conversion_elements);
    sw_jw_kint(&w, "variables", c->n_variables);
    sw_jw_kint(&w, "ops", c->n_ops);
    sw_jw_kint(&w, "kernels", c->n_kernels);
    sw_jw_kreal(&w, "predicted_ns", c->predicted_ns);
  }
  sw_jw_end_object(&w);
  sw_buf_puts(b, "\n");
}

struct running {
  struct sw_job *job;
  const struct sw_study *s;
  struct done done;
  FILE *to;
  int shard, n_shards;
  void (*on_run)(void *, int, int, const char *);
  void *ctx;
};

static enum sw_rc do_run(void *ctx, struct run *r)
{
  struct running *x = ctx;
  if (r->number % x->n_shards != x->shard || sw_map_get_str(&x->done.at, r->key) >= 0)
    return SW_OK;
  if (x->on_run)
    x->on_run(x->ctx, r->number, n_runs(x->s), r->model);
  struct sw_comparison c = {0};
  struct sw_buf line = {.arena = x->job->arena};
  sw_compare_run(x->job, r->model, &r->in, &r->options, &c);
  write_line(r, &c.runs.v[0], &line);
  if (fwrite(line.p, 1, line.n, x->to) != line.n || fflush(x->to))
    return sw_fail(x->job, SW_IO, "study: a line can't be written: %s", strerror(errno));
  return SW_OK;
}

enum sw_rc sw_study_run(struct sw_job *job, const struct sw_study *s, const char *out, int shard, int n_shards,
                        void (*on_run)(void *ctx, int done, int of, const char *what), void *ctx)
{
  struct running x = {.job = job, .s = s, .shard = shard, .n_shards = n_shards, .on_run = on_run, .ctx = ctx};
  struct done own = {.at = {.arena = job->arena}};
  const char *path = sw_arena_printf(job->arena, "%s/runs-%d.jsonl", out, shard);
  size_t whole;
  if (mkdir(out, 0777) && errno != EEXIST)
    return sw_fail(job, SW_IO, "%s: %s", out, strerror(errno));
  SW_TRY(load_all(job, out, &x.done));
  SW_TRY(load_file(job, path, &own, &whole));
  x.to = fopen(path, "ae");
  if (!x.to || truncate(path, (off_t)whole)) /* behind the last whole line */
    return sw_fail(job, SW_IO, "%s: %s", path, strerror(errno));
  enum sw_rc rc = each_run(job, s, do_run, &x);
  if (fclose(x.to) && rc == SW_OK)
    rc = sw_fail(job, SW_IO, "%s: %s", path, strerror(errno));
  return rc;
}

/* -- tables -- */

struct table {
  struct sw_job *job;
  struct done done;
  SW_VEC(const json_t *) rows; /* in the order of the spec */
  int missing;
};

static enum sw_rc take_row(void *ctx, struct run *r)
{
  struct table *t = ctx;
  int64_t at = sw_map_get_str(&t->done.at, r->key);
  if (at < 0)
    t->missing++;
  else
    *SW_PUSH(t->job->arena, &t->rows) = t->done.lines.v[at];
  return SW_OK;
}

static const char *text(const json_t *row, const char *key)
{
  const char *s = json_string_value(json_object_get(row, key));
  return s ? s : "";
}

static bool has_plan(const json_t *row)
{
  return json_object_get(row, "predicted_ns");
}

static double predicted(const json_t *row)
{
  return json_number_value(json_object_get(row, "predicted_ns"));
}

static const char *const columns[] = {"model", "profile", "solver", "options", "status", "unit", "value", "bound",
                                      "conversions", "conversion_elements", "variables", "ops", "kernels",
                                      "predicted_ns", "fault"};
enum { N_COLUMNS = sizeof columns / sizeof columns[0] };

static const char *cell(struct sw_arena *a, const json_t *v)
{
  char real[32];
  if (json_is_integer(v))
    return sw_arena_printf(a, "%" PRId64, (int64_t)json_integer_value(v));
  if (!json_is_real(v))
    return v && json_is_string(v) ? json_string_value(v) : "";
  sw_real_text(real, json_real_value(v));
  return sw_arena_strdup(a, real);
}

static void write_csv(const struct table *t, struct sw_buf *b)
{
  for (int i = 0; i < N_COLUMNS; i++)
    sw_buf_printf(b, "%s%s", columns[i], i + 1 < N_COLUMNS ? "," : "\n");
  for (int k = 0; k < t->rows.n; k++)
    for (int i = 0; i < N_COLUMNS; i++) {
      const char *s = cell(b->arena, json_object_get(t->rows.v[k], columns[i]));
      bool quoted = strpbrk(s, ",\"\n");
      sw_buf_puts(b, quoted ? "\"" : "");
      for (; *s; s++)
        sw_buf_add(b, *s == '"' ? "\"\"" : s, *s == '"' ? 2 : 1);
      sw_buf_puts(b, quoted ? "\"" : "");
      sw_buf_puts(b, i + 1 < N_COLUMNS ? "," : "\n");
    }
}

static void write_json(const struct table *t, struct sw_buf *b)
{
  struct sw_jw w = {.out = b, .indent = 1};
  sw_jw_object(&w);
  sw_jw_kstr(&w, "format", "stickwright.study.result/1");
  sw_jw_kstr(&w, "version", SW_VERSION);
  sw_jw_key(&w, "runs");
  sw_jw_array(&w);
  for (int k = 0; k < t->rows.n; k++) {
    sw_jw_object(&w);
    for (int i = 0; i < N_COLUMNS; i++) {
      const json_t *v = json_object_get(t->rows.v[k], columns[i]);
      if (json_is_integer(v))
        sw_jw_kint(&w, columns[i], json_integer_value(v));
      else if (json_is_real(v))
        sw_jw_kreal(&w, columns[i], json_real_value(v));
      else
        sw_jw_kstr(&w, columns[i], v ? json_string_value(v) : NULL);
    }
    sw_jw_end_object(&w);
  }
  sw_jw_end_array(&w);
  sw_jw_end_object(&w);
  sw_buf_puts(b, "\n");
}

/* Per variant (profile, solver, options): on how many models it has the shortest predicted time, and the geometric mean
 * of its time over the shortest of the model. Times 10, 20 and 40 of three variants on one model are 1, 2 and 4; with
 * 30, 15, 15 on a second one: wins 1, 1, 1 and means sqrt(1 * 2), sqrt(2 * 1), sqrt(4 * 1). */
static void write_summary(const struct table *t, int n_variants, struct sw_buf *b)
{
  sw_buf_puts(b, "| profile | solver | options | plans | proved optimal | shortest on | time over the shortest |\n"
                 "|---|---|---|---|---|---|---|\n");
  int n_models = t->rows.n / n_variants;
  for (int v = 0; v < n_variants; v++) {
    int plans = 0, wins = 0, proved = 0;
    double logs = 0;
    for (int m = 0; m < n_models; m++) {
      const json_t *const *rows = &t->rows.v[m * n_variants];
      double shortest = INFINITY;
      for (int u = 0; u < n_variants; u++)
        if (has_plan(rows[u]))
          shortest = fmin(shortest, predicted(rows[u]));
      if (!has_plan(rows[v]))
        continue;
      plans++;
      proved += !strcmp(text(rows[v], "status"), "optimal");
      wins += predicted(rows[v]) <= shortest;
      logs += shortest > 0 ? log(predicted(rows[v]) / shortest) : 0;
    }
    const json_t *row = t->rows.v[v];
    sw_buf_printf(b, "| %s | %s | %s | %d of %d | %d | %d | ", text(row, "profile"), text(row, "solver"),
                  text(row, "options"), plans, n_models, proved, wins);
    if (plans)
      sw_buf_printf(b, "%.3f |\n", exp(logs / plans));
    else
      sw_buf_puts(b, "- |\n");
  }
}

static void write_markdown(const struct table *t, int n_variants, struct sw_buf *b)
{
  sw_buf_printf(b, "# Study\n\n%d models, %d variants, stickwright " SW_VERSION ".\n\n", t->rows.n / n_variants, n_variants);
  write_summary(t, n_variants, b);
  sw_buf_puts(b, "\n| model | profile | solver | options | status | cost | conversions | predicted ns |\n"
                 "|---|---|---|---|---|---|---|---|\n");
  for (int k = 0; k < t->rows.n; k++) {
    const json_t *r = t->rows.v[k];
    sw_buf_printf(b, "| %s | %s | %s | %s | %s | ", text(r, "model"), text(r, "profile"), text(r, "solver"),
                  text(r, "options"), text(r, "status"));
    if (has_plan(r))
      sw_buf_printf(b, "%s %s | %s | %.0f |\n", cell(b->arena, json_object_get(r, "value")), text(r, "unit"),
                    cell(b->arena, json_object_get(r, "conversions")), predicted(r));
    else
      sw_buf_printf(b, "%s | | |\n", text(r, "fault"));
  }
}

enum sw_rc sw_study_tables(struct sw_job *job, const struct sw_study *s, const char *out, struct sw_files *files)
{
  struct table t = {.job = job};
  SW_TRY(load_all(job, out, &t.done));
  SW_TRY(each_run(job, s, take_row, &t));
  if (t.missing)
    return sw_fail(job, SW_NO_INPUT, "study: %d of %d runs are not done yet", t.missing, n_runs(s));
  struct sw_buf *b = SW_NEW_N(job->arena, struct sw_buf, 3);
  static const char *const names[] = {"study.json", "study.csv", "study.md"};
  for (int i = 0; i < 3; i++)
    b[i].arena = job->arena;
  write_json(&t, &b[0]);
  write_csv(&t, &b[1]);
  write_markdown(&t, n_runs(s) / s->models.n, &b[2]);
  for (int i = 0; i < 3; i++)
    sw_files_add(job, files, names[i], b[i].p, b[i].n);
  return SW_OK;
}
