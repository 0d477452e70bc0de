/* One run as JSON: the same members in DIR/runs/KEY.json and in study.json. One table writes and reads them. */
#include "compiler/study/study.h"

#include <string.h>

static const struct {
  const char *name;
  bool is_wide; /* int64_t, else int */
  size_t at;
} numbers[] = {
#define WIDE(name, field) {name, true, offsetof(struct sw_compared, field)}
#define NARROW(name, field) {name, false, offsetof(struct sw_compared, field)}
    WIDE("value", value),
    WIDE("bound", bound),
    NARROW("conversions", n_conversions),
    WIDE("conversion_elements", conversion_elements),
    NARROW("ops", n_ops),
    NARROW("host_steps", n_host_steps),
    NARROW("kernels", n_kernels),
    NARROW("intermediates", n_intermediates),
    NARROW("in_lx", n_in_lx),
    WIDE("peak_pool_bytes", peak_pool_bytes),
    NARROW("variables", n_variables),
    WIDE("glpk_nodes", solver_nodes),
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
  for (int i = 0; i < N_NUMBERS; i++) {
    const json_t *v = json_object_get(o, numbers[i].name);
    if (!json_is_integer(v))
      return false;
    char *p = (char *)c + numbers[i].at;
    if (numbers[i].is_wide)
      *(int64_t *)(void *)p = json_integer_value(v);
    else
      *(int *)(void *)p = (int)json_integer_value(v);
  }
  return true;
}

bool sw_study_row_read(struct sw_job *job, const char *text, size_t len, struct sw_study_run *r)
{
  const json_t *o = sw_json_parse(job, "run", text, len, 100000);
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
