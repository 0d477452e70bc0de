/* The tables of a study that hold every run: CSV, JSON, times; and the check against an earlier one. */
#include "base/map.h"
#include "compiler/study/study.h"

#include <inttypes.h>
#include <string.h>

static const char *graph_name(const struct sw_study *s, const struct sw_study_run *r)
{
  return s->graphs.v[r->graph].name;
}

static const char *label(const struct sw_study *s, const struct sw_study_run *r)
{
  return s->options.v[r->options].label;
}

/* A field of a CSV (RFC 4180), with the comma behind it. */
static void field(struct sw_buf *out, const char *text)
{
  if (!text[strcspn(text, ",\"\r\n")]) {
    sw_buf_printf(out, "%s,", text);
    return;
  }
  sw_buf_puts(out, "\"");
  for (const char *c = text; *c; c++)
    sw_buf_add(out, *c == '"' ? "\"\"" : c, *c == '"' ? 2 : 1);
  sw_buf_puts(out, "\",");
}

static void who(const struct sw_study *s, const struct sw_study_run *r, struct sw_buf *out)
{
  field(out, graph_name(s, r));
  field(out, sw_study_profile_name(r->profile));
  field(out, sw_study_solver_name(r->solver));
  field(out, label(s, r));
}

void sw_study_csv(const struct sw_study *s, struct sw_buf *out)
{
  sw_buf_puts(out, "graph,profile,solver,options,status,unit,value,bound,conversions,conversion_elements,predicted_ns,ops,"
                   "host_steps,kernels,intermediates,in_lx,peak_pool_bytes,faults,fault\n");
  for (int i = 0; i < s->runs.n; i++) {
    const struct sw_study_run *r = &s->runs.v[i];
    const struct sw_compared *c = &r->row;
    who(s, r, out);
    field(out, c->status);
    if (c->has_plan) {
      char ns[32];
      sw_real_text(ns, c->predicted_ns);
      sw_buf_printf(out, "%s,%" PRId64 ",%" PRId64 ",%d,%" PRId64 ",%s,%d,%d,%d,%d,%d,%" PRId64 ",", c->unit, c->value,
                    c->bound, c->n_conversions, c->conversion_elements, ns, c->n_ops, c->n_host_steps, c->n_kernels,
                    c->n_intermediates, c->n_in_lx, c->peak_pool_bytes);
    } else {
      sw_buf_puts(out, ",,,,,,,,,,,,");
    }
    sw_buf_printf(out, "%d,", c->faults.n);
    field(out, c->fault ? c->fault : "");
    out->p[out->n - 1] = '\n';
  }
}

void sw_study_times(const struct sw_study *s, struct sw_buf *out)
{
  sw_buf_puts(out, "graph,profile,solver,options,seconds\n");
  for (int i = 0; i < s->runs.n; i++) {
    who(s, &s->runs.v[i], out);
    sw_buf_printf(out, "%.3f\n", s->runs.v[i].seconds);
  }
}

void sw_study_json(const struct sw_study *s, struct sw_buf *out)
{
  struct sw_jw w = {.out = out, .indent = 1};
  sw_jw_object(&w);
  sw_jw_kstr(&w, "format", "stickwright.study-result/1");
  sw_jw_kstr(&w, "version", SW_VERSION);
  sw_jw_kstr(&w, "name", s->name);
  sw_jw_key(&w, "runs");
  sw_jw_array(&w);
  for (int i = 0; i < s->runs.n; i++) {
    const struct sw_study_run *r = &s->runs.v[i];
    sw_jw_object(&w);
    sw_jw_kstr(&w, "graph", graph_name(s, r));
    sw_jw_kstr(&w, "digest", s->graphs.v[r->graph].digest);
    sw_jw_kstr(&w, "profile", sw_study_profile_name(r->profile));
    sw_jw_kstr(&w, "solver", sw_study_solver_name(r->solver));
    sw_jw_kstr(&w, "options", label(s, r));
    sw_study_row_write(r, &w);
    sw_jw_end_object(&w);
  }
  sw_jw_end_array(&w);
  sw_jw_end_object(&w);
  sw_buf_puts(out, "\n");
}

/* -- baseline -- */

static const char *identity(struct sw_arena *a, const char *digest, const char *profile, const char *solver,
                            const char *options)
{
  return sw_arena_printf(a, "%s %s %s %s", digest ? digest : "", profile ? profile : "", solver ? solver : "",
                         options ? options : "");
}

static const char *member(const json_t *o, const char *key)
{
  return json_string_value(json_object_get(o, key));
}

/* All that is worse about a run than it was, in words; NULL when nothing is. Costs count in one unit only, times always. */
static const char *how_worse(struct sw_arena *a, const json_t *old, const struct sw_compared *c)
{
  const char *unit = member(old, "unit");
  if (!unit)
    return NULL; /* it had no plan */
  if (!c->has_plan)
    return sw_arena_printf(a, "compiled before, now %s: %s", c->status, c->fault ? c->fault : "");
  int64_t value = json_integer_value(json_object_get(old, "value"));
  double ns = json_number_value(json_object_get(old, "predicted_ns"));
  struct sw_buf how = {.arena = a};
  if (!strcmp(unit, c->unit) && c->value > value)
    sw_buf_printf(&how, "cost %" PRId64 " before, %" PRId64 " %s now", value, c->value, c->unit);
  if (c->predicted_ns > ns * (1 + 1e-9))
    sw_buf_printf(&how, "%s%.3f us before, %.3f us now", how.n ? "; " : "", ns / 1e3, c->predicted_ns / 1e3);
  return how.p;
}

int sw_study_check(struct sw_job *job, const struct sw_study *s, const char *baseline, size_t len, struct sw_buf *out)
{
  const json_t *root = sw_json_parse(job, "baseline", baseline, len, 100000000);
  const json_t *runs = root ? sw_json_member(job, root, "", "runs", JSON_ARRAY) : NULL;
  if (!runs)
    return -1;
  struct sw_map at = {.arena = job->arena};
  size_t k;
  json_t *old;
  json_array_foreach (runs, k, old)
    sw_map_set_str(&at, identity(job->arena, member(old, "digest"), member(old, "profile"), member(old, "solver"),
                                 member(old, "options")), (int64_t)k);
  int worse = 0, n_new = 0, n_met = 0;
  for (int i = 0; i < s->runs.n; i++) {
    const struct sw_study_run *r = &s->runs.v[i];
    const char *profile = sw_study_profile_name(r->profile), *solver = sw_study_solver_name(r->solver);
    int64_t was = sw_map_get_str(&at, identity(job->arena, s->graphs.v[r->graph].digest, profile, solver, label(s, r)));
    n_new += was < 0;
    n_met += was >= 0;
    const char *how = was < 0 ? NULL : how_worse(job->arena, json_array_get(runs, (size_t)was), &r->row);
    if (!how)
      continue;
    worse++;
    sw_buf_printf(out, "worse: %s %s %s%s%s: %s\n", graph_name(s, r), profile, solver, *label(s, r) ? " " : "", label(s, r),
                  how);
  }
  if (n_new)
    sw_buf_printf(out, "%d of %d runs are not in the baseline\n", n_new, s->runs.n);
  if ((size_t)n_met < at.n)
    sw_buf_printf(out, "%zu of %zu runs of the baseline are not in this study\n", at.n - (size_t)n_met, at.n);
  return worse;
}
