/* The time of every kernel, shared out among its ops by the bytes they move. Reference: cost-model.md sections 3, 10,
 * 13.
 *
 * In profile best two effects are added op by op that the recorded model leaves out: memory is slower when few cores
 * ask for it, and a conversion that reads short runs pays for every request. */
#include "compiler/plan/cost.h"
#include "compiler/plan/parts.h"

#include "base/options.h"

static void predict_run(struct sw_job *job, const struct sw_options *o, const struct sw_program *p, const int *ops,
                        int n, struct sw_plan *plan)
{
  struct sw_arena *scratch = sw_arena_new(job->arena, SIZE_MAX);
  struct sw_cost_op *costs = SW_NEW_N(scratch, struct sw_cost_op, n);
  struct sw_work *w = SW_NEW(scratch, struct sw_work);
  double bytes = 0;
  for (int i = 0; i < n; i++) {
    sw_cost_of(p, &p->ops.v[ops[i]], o->profile == SW_PROFILE_TORCH_SPYRE, &costs[i]);
    bytes += sw_moved_bytes(&costs[i]);
  }
  struct sw_kernel_time whole = sw_kernel_time(scratch, costs, n);
  plan->predicted_ns += whole.total;
  for (int i = 0; i < n; i++) {
    double share = bytes > 0 ? sw_moved_bytes(&costs[i]) / bytes : 1.0 / n;
    struct sw_time *t = &plan_of(p, ops[i])->time;
    t->total = share * whole.total;
    t->compute = sw_compute_ns(&costs[i]);
    t->hbm = share * whole.memory;
    t->overhead = share * whole.split;
    if (o->profile != SW_PROFILE_BEST || (n == 1 && costs[i].is_reduction)) /* the model knows the cores of that one */
      continue;
    if (sw_work_of(job, o, p, &p->ops.v[ops[i]], w) != SW_OK)
      continue; /* the division before would have failed */
    double extra = sw_extra_ns(p, &p->ops.v[ops[i]], &costs[i], w, p->ops.v[ops[i]].plan->split);
    t->total += extra;
    t->overhead += extra;
    plan->predicted_ns += extra;
  }
  sw_arena_free(scratch);
}

/* The time model knows no borders but host steps. */
void sw_predict(struct sw_job *job, const struct sw_options *o, const struct sw_program *p, struct sw_plan *plan)
{
  SW_VEC(int) run = {0};
  plan->predicted_ns = 0;
  for (int i = 0; i <= p->steps.n; i++) {
    if (i < p->steps.n && !p->steps.v[i].is_host) {
      *SW_PUSH(job->arena, &run) = p->steps.v[i].index;
    } else if (run.n) {
      predict_run(job, o, p, run.v, run.n, plan);
      run.n = 0;
    }
  }
}
