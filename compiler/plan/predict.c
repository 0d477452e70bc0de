/* The time of every kernel, shared out among its ops by the bytes they move. Reference: cost-model.md sections 3, 10,
 * 13.
 *
 * In profile best two effects are added op by op that the recorded model leaves out: memory is slower when few cores
 * ask for it, and a conversion that reads short runs pays for every request. */
#include "compiler/plan/cost.h"
#include "compiler/plan/parts.h"

#include "base/options.h"

#include <math.h>
#include <string.h>

static double moved_bytes(const struct sw_cost_op *op)
{
  double sum = op->out.bytes;
  for (int i = 0; i < op->n_in; i++)
    sum += op->in[i].bytes;
  return sum;
}

/* What idle cores cost an op that only moves data: its own time at the lower rate, less what the kernel counts. */
static double idle_ns(const struct sw_cost_op *op, bool alone)
{
  if (op->is_matmul || (alone && op->is_reduction))
    return 0; /* the model knows the cores of these */
  double rate = sw_traffic_rate(op);
  return moved_bytes(op) / (rate > 0 ? rate : sw_spyre.hbm) * (1 / sw_cores_factor(op->cores) - 1);
}

static void predict_run(struct sw_job *job, const struct sw_options *o, const struct sw_program *p, const int *ops,
                        int n, struct sw_plan *plan)
{
  struct sw_arena *scratch = sw_arena_new(job->arena, SIZE_MAX);
  struct sw_cost_op *costs = SW_NEW_N(scratch, struct sw_cost_op, n);
  double bytes = 0;
  for (int i = 0; i < n; i++) {
    sw_cost_of(p, &p->ops.v[ops[i]], o->profile == SW_PROFILE_TORCH_SPYRE, &costs[i]);
    bytes += moved_bytes(&costs[i]);
  }
  struct sw_kernel_time whole = sw_kernel_time(scratch, costs, n);
  plan->predicted_ns += whole.total;
  for (int i = 0; i < n; i++) {
    double share = bytes > 0 ? moved_bytes(&costs[i]) / bytes : 1.0 / n;
    struct sw_time *t = &plan_of(p, ops[i])->time;
    t->total = share * whole.total;
    t->compute = sw_compute_ns(&costs[i]);
    t->hbm = share * whole.memory;
    t->overhead = share * whole.split;
    if (o->profile != SW_PROFILE_BEST)
      continue;
    double extra = idle_ns(&costs[i], n == 1);
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
