/* One run as JSON: the same members in DIR/runs/KEY.json and in study.json. One table writes and reads them, and says
 * where result.json has them. */
#include "compiler/study/study.h"

#include <string.h>

static const struct {
  const char *name;
  const char *part; /* of result.json */
  bool is_wide; /* int64_t, else int */
  size_t at;
} numbers[] = {
#define WIDE(name, part, field) {name, part, true, offsetof(struct sw_compared, field)}
#define NARROW(name, part, field) {name, part, false, offsetof(struct sw_compared, field)}
    WIDE("value", "objective", value),
    WIDE("bound", "objective", bound),
    NARROW("conversions", "objective", n_conversions),
    WIDE("conversion_elements", "objective", conversion_elements),
    NARROW("ops", "counts", n_ops),
    NARROW("host_steps", "counts", n_host_steps),
    NARROW("kernels", "counts", n_kernels),
    NARROW("intermediates", "counts", n_intermediates),
    NARROW("in_lx", "counts", n_in_lx),
    WIDE("peak_pool_bytes", "counts", peak_pool_bytes),
    NARROW("variables", "solver", n_variables),
    WIDE("glpk_nodes", "solver", solver_nodes),
};
enum { N_NUMBERS = sizeof numbers / sizeof numbers[0] };

static int64_t number_at(const struct sw_compared *c, int i)
{
  const char *p = (const char *)c + numbers[i].at;
  return numbers[i].is_wide ? *(const int64_t *)(const void *)p : *(const int *)(const void *)p;
}

void sw_study_row_write(const struct sw_study_run *r, struct sw_jw *w)
{
  const struct sw_compared *c = &r->row;
  sw_jw_kstr(w, "status", c->status);
  if (c->has_plan) {
    sw_jw_kstr(w, "unit", c->unit);
    for (int i = 0; i < N_NUMBERS; i++)
      sw_jw_kint(w, numbers[i].name, number_at(c, i));
    sw_jw_kreal(w, "predicted_ns", c->predicted_ns);
  }
  sw_jw_key(w, "faults");
  sw_jw_array(w);
  for (int i = 0; i < c->faults.n; i++)
    sw_jw_str(w, c->faults.v[i]);
  sw_jw_end_array(w);
}

void sw_study_row_text(const struct sw_study_run *r, struct sw_buf *out)
{
  struct sw_jw w = {.out = out};
  sw_jw_object(&w);
  sw_jw_kstr(&w, "key", r->key);
  sw_jw_kreal(&w, "seconds", r->seconds);
  sw_study_row_write(r, &w);
  sw_jw_end_object(&w);
  sw_buf_puts(out, "\n");
}

static bool take_number(const json_t *v, int i, struct sw_compared *c)
{
  char *p = (char *)c + numbers[i].at;
  if (numbers[i].is_wide)
    *(int64_t *)(void *)p = json_integer_value(v);
  else
    *(int *)(void *)p = (int)json_integer_value(v);
  return json_is_integer(v);
}

static bool read_plan(struct sw_job *job, const json_t *o, struct sw_compared *c)
{
  const json_t *unit = json_object_get(o, "unit"), *ns = json_object_get(o, "predicted_ns");
  if (!unit)
    return true; /* refused */
  if (!json_is_string(unit) || !json_is_number(ns))
    return false;
  c->has_plan = true;
  c->unit = sw_arena_strdup(job->arena, json_string_value(unit));
  c->predicted_ns = json_number_value(ns);
  for (int i = 0; i < N_NUMBERS; i++)
    if (!take_number(json_object_get(o, numbers[i].name), i, c))
      return false;
  return true;
}

static bool read_row(struct sw_job *job, const json_t *o, struct sw_study_run *r)
{
  const char *key = json_string_value(json_object_get(o, "key"));
  const char *status = json_string_value(json_object_get(o, "status"));
  const json_t *faults = json_object_get(o, "faults"), *seconds = json_object_get(o, "seconds");
  if (!key || strcmp(key, r->key) || !status || !json_is_array(faults) || !json_is_number(seconds))
    return false;
  struct sw_compared c = {.profile = r->profile, .solver = r->solver};
  c.status = sw_arena_strdup(job->arena, status);
  if (!read_plan(job, o, &c))
    return false;
  for (size_t i = 0; i < json_array_size(faults); i++)
    if (json_is_string(json_array_get(faults, i)))
      *SW_PUSH(job->arena, &c.faults) = sw_arena_strdup(job->arena, json_string_value(json_array_get(faults, i)));
  c.fault = c.faults.n ? c.faults.v[0] : NULL;
  r->row = c;
  r->seconds = json_number_value(seconds);
  r->done = true;
  return true;
}

bool sw_study_row_read(struct sw_job *job, const char *text, size_t len, struct sw_study_run *r)
{
  struct sw_job scratch = {.arena = sw_arena_new(job->arena, 0)};
  bool ok = read_row(job, sw_json_parse(&scratch, "run", text, len, 100000), r);
  sw_arena_free(scratch.arena);
  return ok;
}

/* -- from what a compile gave -- */

static void decref(void *p)
{
  json_decref(p);
}

/* A member of result.json without reading all of it: a line `\n "NAME": ` begins no other thing, since the text is
 * written by sw_report_result and has no raw line break in a string. NULL when there is none. */
static const json_t *part(struct sw_job *job, const char *result, size_t len, const char *name)
{
  const char *line = sw_arena_printf(job->arena, "\n \"%s\": ", name);
  size_t n = strlen(line);
  for (const char *p = result, *end = result + len; (p = memchr(p, '\n', (size_t)(end - p))); p++) {
    if ((size_t)(end - p) <= n || memcmp(p, line, n))
      continue;
    json_t *o = json_loadb(p + n, (size_t)(end - p) - n, JSON_DISABLE_EOF_CHECK | JSON_DECODE_ANY, NULL);
    if (o)
      sw_arena_defer(job->arena, decref, o);
    return o;
  }
  return NULL;
}

bool sw_study_row_of_result(struct sw_job *job, const char *result, size_t len, struct sw_study_run *r)
{
  struct sw_compared c = {.profile = r->profile, .solver = r->solver, .has_plan = true};
  struct sw_job mine = {.arena = sw_arena_new(job->arena, 0)};
  const json_t *objective = part(&mine, result, len, "objective");
  const char *status = json_string_value(part(&mine, result, len, "status"));
  const char *unit = json_string_value(json_object_get(objective, "unit"));
  const json_t *ns = json_object_get(objective, "predicted_ns");
  bool ok = status && unit && json_is_number(ns);
  const json_t *at = NULL;
  for (int i = 0; i < N_NUMBERS && ok; i++) {
    if (!i || strcmp(numbers[i].part, numbers[i - 1].part))
      at = part(&mine, result, len, numbers[i].part);
    ok = take_number(json_object_get(at, numbers[i].name), i, &c);
  }
  if (ok) {
    c.status = sw_arena_strdup(job->arena, status);
    c.unit = sw_arena_strdup(job->arena, unit);
    c.predicted_ns = json_number_value(ns);
    r->row = c;
    r->done = true;
  }
  sw_arena_free(mine.arena);
  return ok;
}

void sw_study_row_of_faults(struct sw_job *job, const char *slug, const char *detail, const char *errors,
                            struct sw_study_run *r)
{
  struct sw_compared c = {.profile = r->profile, .solver = r->solver, .status = sw_arena_strdup(job->arena, slug)};
  struct sw_job mine = {.arena = sw_arena_new(job->arena, 0)};
  const json_t *list = errors ? sw_json_parse(&mine, "errors", errors, strlen(errors), 100000) : NULL;
  for (size_t i = 0; i < json_array_size(list); i++) {
    const json_t *e = json_array_get(list, i);
    struct sw_fault f = {.detail = json_string_value(json_object_get(e, "detail")),
                         .node = json_string_value(json_object_get(e, "node")),
                         .advice = json_string_value(json_object_get(e, "advice"))};
    if (f.detail)
      *SW_PUSH(job->arena, &c.faults) = sw_compare_fault(job->arena, &f);
  }
  if (!c.faults.n)
    *SW_PUSH(job->arena, &c.faults) = sw_arena_strdup(job->arena, detail);
  c.fault = c.faults.v[0];
  r->row = c;
  r->done = true;
  sw_arena_free(mine.arena);
}
