#include "compiler/compare.h"

#include "compiler/report/report.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static const char *const profiles[] = {"best", "torch-spyre"};
static const char *const solvers[] = {"ilp", "ilp-full", "beam", "greedy"};

struct attempt {
  struct sw_job job;
  const struct sw_options *o;
  const struct sw_compile_input *in;
  struct sw_compiled done;
};

static void attempt(void *p)
{
  struct attempt *a = p;
  struct sw_compile_input in = *a->in;
  in.dir = sw_files_nowhere(&a->job);
  sw_compile(&a->job, a->o, &in, NULL, NULL, &a->done);
}

/* A compile that failed behind the plan has none to show. */
static void keep(struct sw_arena *a, const struct sw_compiled *done, bool is_good, struct sw_compared *r)
{
  r->digest = done->graph ? sw_arena_strdup(a, done->graph->digest) : NULL;
  if (!done->choice)
    return;
  const struct sw_choice *c = done->choice;
  r->unit = sw_arena_strdup(a, c->unit ? c->unit : "");
  r->value = c->cost;
  r->bound = c->bound;
  r->n_conversions = c->conversions.n;
  r->conversion_elements = c->conversion_elements;
  r->n_variables = c->n_variables;
  r->solver_nodes = c->n_glpk_nodes;
  r->solver_work = c->work;
  for (int i = 0; i < c->conversions.n; i++) {
    const struct sw_conversion *v = &c->conversions.v[i];
    const struct sw_storage *from = &done->program->storages.v[v->storage], *to = &done->program->storages.v[v->copy];
    *SW_PUSH(a, &r->conversions) = sw_arena_printf(a, "%s -> %s", from->name, sw_layout_text(a, to->layout));
  }
  if (!done->plan || !is_good)
    return;
  r->has_plan = true;
  struct sw_report_counts n = sw_report_count(done->program, done->plan);
  r->n_ops = n.ops;
  r->n_host_steps = n.host_steps;
  r->n_kernels = n.kernels;
  r->n_intermediates = n.intermediates;
  r->n_in_lx = n.in_lx;
  r->peak_pool_bytes = n.peak_pool_bytes;
  r->predicted_ns = done->plan->predicted_ns;
}

const char *sw_compare_fault(struct sw_arena *a, const struct sw_fault *f)
{
  size_t n = f->node ? strlen(f->node) : 0;
  bool is_named = n && !strncmp(f->detail, f->node, n) && f->detail[n] == ':';
  return sw_arena_printf(a, "%s%s%s%s%s", n && !is_named ? f->node : "", n && !is_named ? ": " : "", f->detail,
                         f->advice ? "; " : "", f->advice ? f->advice : "");
}

static void keep_faults(struct sw_arena *a, const struct sw_job *job, struct sw_compared *r)
{
  for (int i = 0; i < job->faults.n; i++)
    *SW_PUSH(a, &r->faults) = sw_compare_fault(a, &job->faults.v[i]);
  r->fault = job->faults.n ? sw_arena_strdup(a, job->faults.v[0].detail) : NULL;
}

void sw_compare_run(struct sw_job *job, const char *model, const struct sw_compile_input *in,
                    const struct sw_options *o, struct sw_comparison *c)
{
  struct sw_compared *r = SW_PUSH(job->arena, &c->runs);
  r->model = model;
  r->profile = o->profile;
  r->solver = o->solver;
  struct attempt a = {.job = {.cancel = job->cancel, .on_progress = job->on_progress, .progress_ctx = job->progress_ctx},
                      .o = o, .in = in};
  a.job.arena = sw_arena_new(job->arena, 0);
  if (sw_arena_run(a.job.arena, attempt, &a)) {
    keep(job->arena, &a.done, a.job.worst == SW_OK, r);
    r->status = sw_arena_strdup(job->arena, a.done.status);
    keep_faults(job->arena, &a.job, r);
  } else {
    r->status = sw_rc_slug(SW_LIMIT);
    r->fault = "out of memory";
    *SW_PUSH(job->arena, &r->faults) = r->fault;
  }
  sw_arena_free(a.job.arena);
}

/* The parts of "a,b,c"; -1 when there are more than `most`. */
static int split(struct sw_arena *a, const char *list, const char **out, int most)
{
  int n = 0;
  while (n < most) {
    size_t len = strcspn(list, ",");
    out[n++] = sw_arena_strndup(a, list, len);
    if (!list[len])
      return n;
    list += len + 1;
  }
  return -1;
}

enum sw_rc sw_compare_grid(struct sw_job *job, const char *model, const struct sw_compile_input *in,
                           const char *given_profiles, const char *given_solvers, const struct sw_options *base,
                           struct sw_comparison *c)
{
  enum { MOST = 8 };
  const char *in_profiles[MOST], *with_solvers[MOST];
  int n_profiles = split(job->arena, given_profiles ? given_profiles : "best,torch-spyre", in_profiles, MOST);
  int n_solvers = split(job->arena, given_solvers ? given_solvers : "ilp,beam,greedy", with_solvers, MOST);
  if (n_profiles < 0 || n_solvers < 0)
    return sw_fail(job, SW_USAGE, "compare: more than %d profiles or solvers", MOST);
  for (int p = 0; p < n_profiles; p++)
    for (int s = 0; s < n_solvers; s++) {
      struct sw_options o = *base;
      SW_TRY(sw_option_set(job, &o, "profile", in_profiles[p]));
      SW_TRY(sw_option_set(job, &o, "solver", with_solvers[s]));
      sw_options_settle(&o);
      if (in)
        sw_compare_run(job, model, in, &o, c);
    }
  return SW_OK;
}

static bool holds(const struct sw_compared *r, const char *conversion)
{
  for (int i = 0; i < r->conversions.n; i++)
    if (!strcmp(r->conversions.v[i], conversion))
      return true;
  return false;
}

/* First run of the same model. */
static const struct sw_compared *first_of(const struct sw_comparison *c, int i)
{
  while (i && !strcmp(c->runs.v[i - 1].model, c->runs.v[i].model))
    i--;
  return &c->runs.v[i];
}

/* Cost above that of the run of the same model and profile that is proved, as a part of it; NAN: none is, or in another unit. */
static double over(const struct sw_comparison *c, const struct sw_compared *r)
{
  for (int i = 0; i < c->runs.n; i++) {
    const struct sw_compared *best = &c->runs.v[i];
    if (best->has_plan && r->has_plan && best->profile == r->profile && best->value == best->bound && !strcmp(best->model, r->model) &&
        !strcmp(best->unit, r->unit))
      return (double)(r->value - best->value) / (double)(best->value > 1 ? best->value : 1);
  }
  return NAN;
}

void sw_compare_text(const struct sw_comparison *c, struct sw_buf *out)
{
  enum { MOST = 6 };
  sw_buf_printf(out, "%-28s %-11s %-8s %-10s %14s %-8s %8s %5s %13s %11s %11s\n", "model", "profile", "solver", "status", "cost",
                "unit", "over", "conv", "elements", "us", "work");
  for (int i = 0; i < c->runs.n; i++) {
    const struct sw_compared *r = &c->runs.v[i], *first = first_of(c, i);
    sw_buf_printf(out, "%-28s %-11s %-8s %-10s ", r == first ? r->model : "", profiles[r->profile], solvers[r->solver],
                  r->status);
    if (!r->has_plan) {
      sw_buf_printf(out, "%s\n", r->fault ? r->fault : "");
      continue;
    }
    double above = over(c, r);
    sw_buf_printf(out, "%14" PRId64 " %-8s ", r->value, r->unit);
    if (isnan(above))
      sw_buf_printf(out, "%8s", "-");
    else
      sw_buf_printf(out, "%+7.1f%%", 100 * above);
    sw_buf_printf(out, " %5d %13" PRId64 " %11.1f %11" PRId64 "\n", r->n_conversions, r->conversion_elements, r->predicted_ns / 1e3,
                  r->solver_work);
    int shown = 0;
    for (int k = 0; k < r->conversions.n; k++)
      if (!holds(first, r->conversions.v[k]) && shown++ < MOST)
        sw_buf_printf(out, "  + %s\n", r->conversions.v[k]);
    for (int k = 0; k < first->conversions.n; k++)
      if (!holds(r, first->conversions.v[k]) && shown++ < MOST)
        sw_buf_printf(out, "  - %s\n", first->conversions.v[k]);
    if (shown > MOST)
      sw_buf_printf(out, "  and %d more that differ\n", shown - MOST);
  }
}

void sw_compare_json(const struct sw_comparison *c, struct sw_buf *out)
{
  struct sw_jw w = {.out = out, .indent = 1};
  sw_jw_object(&w);
  sw_jw_kstr(&w, "format", "stickwright.comparison/1");
  sw_jw_kstr(&w, "version", SW_VERSION);
  sw_jw_key(&w, "runs");
  sw_jw_array(&w);
  for (int i = 0; i < c->runs.n; i++) {
    const struct sw_compared *r = &c->runs.v[i];
    sw_jw_object(&w);
    sw_jw_kstr(&w, "model", r->model);
    sw_jw_kstr(&w, "digest", r->digest);
    sw_jw_kstr(&w, "profile", profiles[r->profile]);
    sw_jw_kstr(&w, "solver", solvers[r->solver]);
    sw_jw_kstr(&w, "status", r->status);
    sw_jw_kstr(&w, "fault", r->fault);
    if (r->has_plan) {
      sw_jw_kstr(&w, "unit", r->unit);
      sw_jw_kint(&w, "value", r->value);
      sw_jw_kint(&w, "bound", r->bound);
      sw_jw_key(&w, "over");
      if (isnan(over(c, r)))
        sw_jw_null(&w);
      else
        sw_jw_real(&w, over(c, r));
      sw_jw_kint(&w, "conversion_elements", r->conversion_elements);
      sw_jw_kreal(&w, "predicted_ns", r->predicted_ns);
      sw_jw_kint(&w, "ops", r->n_ops);
      sw_jw_kint(&w, "kernels", r->n_kernels);
      sw_jw_kint(&w, "variables", r->n_variables);
      sw_jw_kint(&w, "glpk_nodes", r->solver_nodes);
      sw_jw_kint(&w, "work", r->solver_work);
      sw_jw_key(&w, "conversions");
      sw_jw_array(&w);
      for (int k = 0; k < r->conversions.n; k++)
        sw_jw_str(&w, r->conversions.v[k]);
      sw_jw_end_array(&w);
    }
    sw_jw_end_object(&w);
  }
  sw_jw_end_array(&w);
  sw_jw_end_object(&w);
  sw_buf_puts(out, "\n");
}

static bool is_text(const json_t *o, const char *key, const char *want)
{
  const char *s = json_string_value(json_object_get(o, key));
  return s && want && !strcmp(s, want);
}

int sw_compare_check(struct sw_job *job, const struct sw_comparison *c, const char *baseline, size_t len,
                     struct sw_buf *out)
{
  const json_t *root = sw_json_parse(job, "baseline", baseline, len, 100000000);
  const json_t *runs = root ? sw_json_member(job, root, "", "runs", JSON_ARRAY) : NULL;
  if (!runs)
    return -1;
  int worse = 0;
  for (int i = 0; i < c->runs.n; i++) {
    const struct sw_compared *r = &c->runs.v[i];
    size_t k;
    json_t *old;
    json_array_foreach (runs, k, old) {
      if (!is_text(old, "digest", r->digest) || !is_text(old, "profile", profiles[r->profile]) ||
          !is_text(old, "solver", solvers[r->solver]) || !json_object_get(old, "value"))
        continue;
      int64_t was = json_integer_value(json_object_get(old, "value"));
      if (r->has_plan && (!is_text(old, "unit", r->unit) || r->value <= was))
        continue;
      worse++;
      sw_buf_printf(out, "worse: %s %s %s: %" PRId64 " before, ", r->model, profiles[r->profile], solvers[r->solver], was);
      if (r->has_plan)
        sw_buf_printf(out, "%" PRId64 " now\n", r->value);
      else
        sw_buf_printf(out, "%s now\n", r->status);
    }
  }
  return worse;
}
