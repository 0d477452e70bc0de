/* The time of every kernel, shared out among its ops by the bytes they move. Reference: cost-model.md sections 3, 10,
 * 13.
 *
 * Two effects that the recorded model leaves out are added op by op: memory is slower when few cores ask for it, and a
 * copy that reads short runs pays for every request. Both profiles are measured with this yardstick, so that their
 * times can be compared; what the reference itself would report is a number beside it. */
#include "compiler/plan/cost.h"
#include "compiler/plan/parts.h"

#include "base/options.h"

/* What the reference's report says of a run: it counts the no-op node that stands for the allocation of a destination (kernels.c)
 * as an op that writes it all; loops have none, their output is there before them. */
static double recorded_ns(struct sw_arena *scratch, const struct sw_program *p, const int *ops, int n, bool *written)
{
  struct sw_cost_op *costs = SW_NEW_N(scratch, struct sw_cost_op, 2 * n);
  int n_costs = 0;
  for (int i = 0; i < n; i++) {
    const struct sw_op *op = &p->ops.v[ops[i]];
    const struct sw_storage *to = &p->storages.v[op->out.storage];
    sw_cost_of(p, op, true, &costs[n_costs++]);
    if (!op->n_levels && !written[op->out.storage] && sw_is_destination(p, op))
      costs[n_costs++] = (struct sw_cost_op){
          .machine = p->machine,
          .out = {.storage = op->out.storage,
                  .bytes = (double)sw_dtype_bytes(to->dtype) * (double)sw_layout_elements(to->layout)}};
    written[op->out.storage] = true;
  }
  return sw_kernel_time(scratch, costs, n_costs).total;
}

/* The cuts that a core sees: emission drops those of a padded loop of a conversion, which the reference plans all the same
 * (superdsc.md 6.2). [67,100] turned with 4 cores planned runs on one. */
static void as_emitted(const struct sw_work *w, const int64_t *split, int64_t *out)
{
  for (int v = 0; v < w->n_vars; v++) {
    bool padded = w->var[v].eps && w->var[v].size % w->var[v].eps;
    out[v] = padded && w->kind == SW_WORK_RESTICKIFY ? 1 : split[v];
  }
}

static double extra_of(struct sw_job *job, const struct sw_options *o, const struct sw_program *p,
                       const struct sw_op *op, const struct sw_cost_op *cost, struct sw_work *w)
{
  if (sw_work_of(job, o, p, op, w) != SW_OK)
    return 0; /* the division before would have failed */
  int64_t split[SW_MAX_LOOPS];
  as_emitted(w, op->plan->split, split);
  return sw_extra_ns(p, op, cost, w, split);
}

static void predict_run(struct sw_job *job, const struct sw_options *o, const struct sw_program *p, const int *ops,
                        int n, bool *written, struct sw_plan *plan)
{
  struct sw_arena *scratch = sw_arena_new(job->arena, SIZE_MAX);
  struct sw_cost_op *costs = SW_NEW_N(scratch, struct sw_cost_op, n);
  struct sw_work *w = SW_NEW(scratch, struct sw_work);
  plan->reference_ns += recorded_ns(scratch, p, ops, n, written);
  for (int i = 0; i < n; i++)
    sw_cost_of(p, &p->ops.v[ops[i]], false, &costs[i]);
  struct sw_kernel_time whole = sw_kernel_time(scratch, costs, n);
  double bytes = 0;
  for (int i = 0; i < n; i++)
    bytes += sw_moved_bytes(&costs[i]);
  plan->predicted_ns += whole.total;
  for (int i = 0; i < n; i++) {
    double share = bytes > 0 ? sw_moved_bytes(&costs[i]) / bytes : 1.0 / n;
    bool alone = n == 1 && costs[i].is_reduction; /* the model knows the cores of that one */
    double extra = alone ? 0 : extra_of(job, o, p, &p->ops.v[ops[i]], &costs[i], w);
    struct sw_time *t = &plan_of(p, ops[i])->time;
    t->total = share * whole.total + extra;
    t->compute = sw_compute_ns(&costs[i]);
    t->hbm = share * whole.memory;
    t->overhead = share * whole.split + extra;
    plan->predicted_ns += extra;
  }
  sw_arena_free(scratch);
}

/* The time model knows no borders but host steps. Kernels follow each other without a gap, but not what the host has to
 * wait for: behind a step that touches the card the next kernel's start shows (the first start of all counts for nobody). */
void sw_predict(struct sw_job *job, const struct sw_options *o, const struct sw_program *p, struct sw_plan *plan)
{
  struct sw_arena *scratch = sw_arena_new(job->arena, SIZE_MAX);
  bool *written = SW_NEW_N(scratch, bool, p->storages.n);
  SW_VEC(int) run = {0};
  bool waits = false, any_run = false;
  plan->predicted_ns = plan->reference_ns = plan->host_ns = 0;
  for (int i = 0; i <= p->steps.n; i++) {
    if (i < p->steps.n && !p->steps.v[i].is_host) {
      *SW_PUSH(scratch, &run) = p->steps.v[i].index;
      continue;
    }
    if (run.n) {
      predict_run(job, o, p, run.v, run.n, written, plan);
      plan->host_ns += waits && any_run ? sw_machine_or_spyre(p->machine)->launch : 0;
      waits = false;
      any_run = true;
      run.n = 0;
    }
    if (i < p->steps.n) {
      double ns = sw_host_step_ns(p, &p->host_steps.v[p->steps.v[i].index]);
      plan->host_ns += ns;
      waits |= ns > 0;
    }
  }
  plan->predicted_ns += plan->host_ns;
  sw_arena_free(scratch);
}
