#include "compiler/report/report.h"

static const char *const storage_kinds[] = {"input", "parameter", "buffer", "constant", "scalar", "temporary"};
static const char *const place_kinds[] = {"hbm", "pool", "lx"};

/* The sizes of a dynamic dim that one program serves. */
static void write_sizes(struct sw_jw *w, const struct sw_graph *g, const struct sw_dim *d)
{
  if (!d->serves_less)
    return;
  sw_jw_key(w, d->range.symbol);
  sw_jw_object(w);
  sw_jw_kint(w, "min", d->least);
  sw_jw_kint(w, "max", d->value);
  sw_jw_kint(w, "step", d->step);
  sw_jw_kstr(w, "input", g->inputs.v[d->input].name);
  sw_jw_kint(w, "dim", d->in_dim);
  sw_jw_end_object(w);
}

static void write_input(struct sw_jw *w, const struct sw_report *r)
{
  const struct sw_graph *g = r->graph;
  sw_jw_key(w, "input");
  sw_jw_object(w);
  sw_jw_kstr(w, "digest", g ? g->digest : NULL);
  sw_jw_kstr(w, "name", g && *g->name ? g->name : NULL);
  sw_jw_kint(w, "nodes", g ? g->nodes.n : 0);
  sw_jw_key(w, "dims");
  sw_jw_object(w);
  for (int i = 0; g && i < g->dims.n; i++)
    sw_jw_kint(w, g->dims.v[i].range.symbol, g->dims.v[i].value);
  sw_jw_end_object(w);
  sw_jw_key(w, "sizes");
  sw_jw_object(w);
  for (int i = 0; g && r->program && i < g->dims.n; i++)
    write_sizes(w, g, &g->dims.v[i]);
  sw_jw_end_object(w);
  sw_jw_end_object(w);
}

static void write_objective(struct sw_jw *w, const struct sw_report *r)
{
  const struct sw_choice *c = r->choice;
  sw_jw_key(w, "objective");
  if (!c || r->job->worst == SW_INFEASIBLE) {
    sw_jw_null(w);
    return;
  }
  double gap = (double)(c->cost - c->bound) / (double)(c->cost > 1 ? c->cost : 1);
  sw_jw_object(w);
  sw_jw_kstr(w, "unit", c->unit);
  sw_jw_kint(w, "value", c->cost);
  sw_jw_kint(w, "full_value", c->full_cost);
  sw_jw_kint(w, "bound", c->bound);
  sw_jw_kreal(w, "gap", gap);
  sw_jw_kint(w, "conversions", c->conversions.n);
  sw_jw_kint(w, "conversion_elements", c->conversion_elements);
  sw_jw_key(w, "predicted_ns");
  if (r->plan)
    sw_jw_real(w, r->plan->predicted_ns);
  else
    sw_jw_null(w);
  sw_jw_kreal(w, "host_ns", r->plan ? r->plan->host_ns : 0);
  sw_jw_key(w, "reference_ns");
  if (r->plan)
    sw_jw_real(w, r->plan->reference_ns);
  else
    sw_jw_null(w);
  sw_jw_kstr(w, "plan_of", r->plan ? r->plan->plan_of : NULL);
  sw_jw_key(w, "plans");
  sw_jw_object(w);
  for (int i = 0; r->plan && i < r->plan->tried.n; i++)
    sw_jw_kreal(w, r->plan->tried.v[i].name, r->plan->tried.v[i].predicted_ns);
  sw_jw_end_object(w);
  static const char *const means[] = {
#define X(id, key, what) key,
      SW_MEANS(X)
#undef X
  };
  sw_jw_key(w, "without");
  sw_jw_object(w);
  for (int k = 0; r->plan && k < SW_N_MEANS; k++)
    if (r->plan->without_ns[k] > 0)
      sw_jw_kreal(w, means[k], r->plan->without_ns[k]);
  sw_jw_end_object(w);
  sw_jw_end_object(w);
}

struct sw_report_counts sw_report_count(const struct sw_program *program, const struct sw_plan *plan)
{
  struct sw_report_counts n = {.ops = program->ops.n, .host_steps = program->host_steps.n, .kernels = plan->kernels.n,
                               .peak_pool_bytes = plan->peak_pool_bytes};
  for (int i = 0; i < program->storages.n; i++) {
    const struct sw_storage *s = &program->storages.v[i];
    bool is_intermediate = s->kind == SW_STORAGE_TEMPORARY && !s->host_only;
    n.intermediates += is_intermediate;
    n.in_lx += is_intermediate && s->place && s->place->kind == SW_PLACE_LX;
  }
  return n;
}

static void write_counts(struct sw_jw *w, const struct sw_report *r)
{
  sw_jw_key(w, "counts");
  if (!r->plan || r->job->worst != SW_OK) {
    sw_jw_null(w);
    return;
  }
  struct sw_report_counts n = sw_report_count(r->program, r->plan);
  sw_jw_object(w);
  sw_jw_kint(w, "ops", n.ops);
  sw_jw_kint(w, "host_steps", n.host_steps);
  sw_jw_kint(w, "kernels", n.kernels);
  sw_jw_kint(w, "intermediates", n.intermediates);
  sw_jw_kint(w, "in_lx", n.in_lx);
  sw_jw_kint(w, "peak_pool_bytes", n.peak_pool_bytes);
  sw_jw_end_object(w);
}

static void write_place(struct sw_jw *w, const struct sw_place *p)
{
  sw_jw_key(w, "place");
  if (!p) {
    sw_jw_null(w);
  } else {
    sw_jw_object(w);
    sw_jw_kint(w, place_kinds[p->kind], p->offset);
    sw_jw_kint(w, "bytes", p->bytes);
    sw_jw_end_object(w);
  }
  sw_jw_kstr(w, "not_in_lx", p ? p->not_in_lx : NULL);
}

static void write_storages(struct sw_jw *w, const struct sw_report *r)
{
  const struct sw_program *p = r->program;
  sw_jw_key(w, "storages");
  sw_jw_array(w);
  for (int i = 0; p && i < p->storages.n; i++) {
    const struct sw_storage *s = &p->storages.v[i];
    if (s->kind == SW_STORAGE_SCALAR)
      continue;
    const struct sw_candidates *c =
        r->choice && r->choice->candidates && i < r->choice->n_candidates ? &r->choice->candidates[i] : NULL;
    sw_jw_object(w);
    sw_jw_kstr(w, "name", s->name);
    sw_jw_kstr(w, "kind", storage_kinds[s->kind]);
    sw_jw_kstr(w, "dtype", sw_dtype_torch(s->dtype));
    sw_jw_kints(w, "size", s->size, s->rank);
    sw_jw_kints(w, "stride", s->stride, s->rank);
    sw_jw_key(w, "layout");
    sw_layout_json(w, s->layout);
    sw_jw_kint(w, "candidates", c ? c->n : 0);
    sw_jw_kbool(w, "pinned", c && c->pinned);
    write_place(w, s->place);
    sw_jw_end_object(w);
  }
  sw_jw_end_array(w);
}

/* Values of the graph that are views: the storage that is read for them. */
static void write_views(struct sw_jw *w, const struct sw_report *r)
{
  sw_jw_key(w, "views");
  sw_jw_object(w);
  for (int i = 0; r->program && i < r->program->views.n; i++)
    sw_jw_kstr(w, r->program->views.v[i].name, r->program->views.v[i].of);
  sw_jw_end_object(w);
}

static void write_conversions(struct sw_jw *w, const struct sw_report *r)
{
  sw_jw_key(w, "conversions");
  sw_jw_array(w);
  for (int i = 0; r->choice && i < r->choice->conversions.n; i++) {
    const struct sw_conversion *c = &r->choice->conversions.v[i];
    const struct sw_op *op = &r->program->ops.v[c->op];
    sw_jw_object(w);
    sw_jw_kstr(w, "storage", r->program->storages.v[c->storage].name);
    sw_jw_kstr(w, "copy", r->program->storages.v[c->copy].name);
    sw_jw_key(w, "from");
    sw_layout_json(w, r->program->storages.v[c->storage].layout);
    sw_jw_key(w, "to");
    sw_layout_json(w, r->program->storages.v[c->copy].layout);
    sw_jw_key(w, "readers");
    sw_jw_array(w);
    for (int k = 0; k < c->readers.n; k++)
      sw_jw_str(w, r->program->ops.v[c->readers.v[k]].name);
    sw_jw_end_array(w);
    sw_jw_kint(w, "elements", c->elements);
    sw_jw_key(w, "predicted_ns");
    if (op->plan)
      sw_jw_real(w, op->plan->time.total);
    else
      sw_jw_null(w);
    sw_jw_kstr(w, "reason", c->reason);
    sw_jw_kstr(w, "advice", c->advice);
    sw_jw_end_object(w);
  }
  sw_jw_end_array(w);
}

static void write_op_plan(struct sw_jw *w, const struct sw_op *op, const char *file)
{
  const struct sw_op_plan *plan = op->plan;
  sw_jw_kints(w, "loops", op->range, op->n_loops);
  if (op->n_levels) {
    sw_jw_key(w, "in_loops");
    sw_jw_array(w);
    for (int l = 0; l < op->n_levels; l++) {
      sw_jw_object(w);
      sw_jw_kint(w, "loop", op->level[l].loop);
      sw_jw_kint(w, "turns", op->level[l].count);
      sw_jw_end_object(w);
    }
    sw_jw_end_array(w);
  }
  if (!plan)
    return;
  sw_jw_kints(w, "split", plan->split, op->n_loops);
  sw_jw_kint(w, "cores", plan->cores);
  sw_jw_kint(w, "kernel", plan->kernel);
  sw_jw_kstr(w, "file", file);
  sw_jw_kreal(w, "predicted_ns", plan->time.total);
  sw_jw_key(w, "time");
  sw_jw_object(w);
  sw_jw_kreal(w, "compute", plan->time.compute);
  sw_jw_kreal(w, "hbm", plan->time.hbm);
  sw_jw_kreal(w, "lx", plan->time.lx);
  sw_jw_kreal(w, "overhead", plan->time.overhead);
  sw_jw_end_object(w);
}

/* The SuperDSC file of each op: they are numbered in the order of their kernel. NULL without a plan. */
static const char **files_of_ops(const struct sw_report *r)
{
  struct sw_arena *a = r->job->arena;
  if (!r->plan)
    return NULL;
  const char **files = SW_NEW_N(a, const char *, r->program->ops.n);
  for (int k = 0; k < r->plan->kernels.n; k++)
    for (int i = 0; i < r->plan->kernels.v[k].ops.n; i++)
      files[r->plan->kernels.v[k].ops.v[i]] = sw_arena_printf(a, "bundle_%d/sdsc_%d.json", k, i);
  return files;
}

static void write_ops(struct sw_jw *w, const struct sw_report *r)
{
  const struct sw_program *p = r->program;
  const char **files = files_of_ops(r);
  sw_jw_key(w, "ops");
  sw_jw_array(w);
  for (int i = 0; p && i < p->steps.n; i++) {
    if (p->steps.v[i].is_host)
      continue;
    const struct sw_op *op = &p->ops.v[p->steps.v[i].index];
    sw_jw_object(w);
    sw_jw_kstr(w, "name", op->name);
    sw_jw_kstr(w, "device_op", sw_device_op_name(op->op));
    sw_jw_key(w, "nodes");
    sw_jw_array(w);
    for (int k = 0; k < op->nodes.n; k++)
      sw_jw_str(w, r->program->graph->nodes.v[op->nodes.v[k]].name);
    sw_jw_end_array(w);
    sw_jw_kstr(w, "source", op->source);
    sw_jw_key(w, "reads");
    sw_jw_array(w);
    for (int k = 0; k < op->n_in; k++)
      if (p->storages.v[op->in[k].storage].kind != SW_STORAGE_SCALAR)
        sw_jw_str(w, p->storages.v[op->in[k].storage].name);
    sw_jw_end_array(w);
    sw_jw_kstr(w, "writes", p->storages.v[op->out.storage].name);
    write_op_plan(w, op, files ? files[p->steps.v[i].index] : NULL);
    sw_jw_end_object(w);
  }
  sw_jw_end_array(w);
}

static void write_host_steps(struct sw_jw *w, const struct sw_report *r)
{
  sw_jw_key(w, "host_steps");
  sw_jw_array(w);
  for (int i = 0; r->program && i < r->program->host_steps.n; i++) {
    const struct sw_host_step *h = &r->program->host_steps.v[i];
    sw_jw_object(w);
    sw_jw_kstr(w, "name", h->name);
    sw_jw_kstr(w, "op", h->target);
    sw_jw_kstr(w, "why", h->why);
    if (r->plan)
      sw_jw_kreal(w, "predicted_ns", sw_host_step_ns(r->program, h));
    sw_jw_end_object(w);
  }
  sw_jw_end_array(w);
}

static void write_solver(struct sw_jw *w, const struct sw_report *r)
{
  const struct sw_choice *c = r->choice;
  sw_jw_key(w, "solver");
  if (!c) {
    sw_jw_null(w);
    return;
  }
  sw_jw_object(w);
  sw_jw_kstr(w, "name", c->solver);
  sw_jw_kint(w, "variables", c->n_variables);
  sw_jw_kint(w, "labels", c->n_labels);
  sw_jw_kint(w, "presolved", c->n_presolved);
  sw_jw_kint(w, "islands", c->n_islands);
  sw_jw_kint(w, "distinct", c->n_distinct);
  sw_jw_kint(w, "eliminated", c->n_eliminated);
  sw_jw_kint(w, "pruned", c->n_pruned);
  sw_jw_kint(w, "glpk_calls", c->n_glpk_calls);
  sw_jw_kint(w, "glpk_nodes", c->n_glpk_nodes);
  sw_jw_kint(w, "max_width", c->max_width);
  sw_jw_kstr(w, "stopped_by", c->stopped_by);
  sw_jw_end_object(w);
}

static void write_verdict(struct sw_jw *w, const struct sw_report *r)
{
  const struct sw_verdict *v = r->verdict;
  sw_jw_key(w, "verify");
  if (!v) {
    sw_jw_null(w);
    return;
  }
  sw_jw_object(w);
  sw_jw_kstr(w, "outcome", v->outcome);
  sw_jw_kint(w, "outputs", v->n_outputs);
  sw_jw_kint(w, "work", v->work);
  sw_jw_kbool(w, "weights_made_up", v->weights_made_up);
  sw_jw_kstr(w, "why", v->why);
  sw_jw_end_object(w);
}

void sw_report_result(const struct sw_report *r, struct sw_buf *out)
{
  struct sw_jw w = {.out = out, .indent = 1};
  sw_jw_object(&w);
  sw_jw_kstr(&w, "format", "stickwright.result/1");
  sw_jw_kstr(&w, "version", SW_VERSION);
  sw_jw_kstr(&w, "status", r->status);
  write_input(&w, r);
  sw_jw_key(&w, "options");
  sw_options_write(r->options, &w);
  write_objective(&w, r);
  write_counts(&w, r);
  write_storages(&w, r);
  write_views(&w, r);
  write_conversions(&w, r);
  write_ops(&w, r);
  write_host_steps(&w, r);
  write_verdict(&w, r);
  sw_jw_key(&w, "warnings");
  sw_jw_array(&w);
  for (int i = 0; i < r->job->warnings.n; i++)
    sw_jw_str(&w, r->job->warnings.v[i]);
  sw_jw_end_array(&w);
  sw_jw_key(&w, "faults");
  sw_jw_faults(&w, r->job);
  write_solver(&w, r);
  sw_jw_end_object(&w);
  sw_buf_puts(out, "\n");
}
