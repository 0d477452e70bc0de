/* What few cores and short runs cost an op beyond the recorded model (profile best): memory is slower when few cores
 * ask for it, and a copy that reads short runs waits for its requests. Reference: cost-model.md 10.3, 13. */
#include "compiler/plan/cost.h"
#include "compiler/plan/scratchpad.h"

#include "compiler/layout/burst.h"

#include <math.h>

double sw_moved_bytes(const struct sw_cost_op *op)
{
  double sum = op->out.bytes;
  for (int i = 0; i < op->n_in; i++)
    sum += op->in[i].bytes;
  return sum;
}

static double relayout_ns(const struct sw_program *p, const struct sw_op *op)
{
  struct sw_core_view view;
  struct sw_part from, to;
  bool known = sw_core_view(p, op, 0, &view) == SW_LX_FITS && sw_part_of_view(&view, &from) &&
               sw_core_view(p, op, -1, &view) == SW_LX_FITS && sw_part_of_view(&view, &to);
  return known ? sw_part_move_ns(sw_machine_or_spyre(p->machine), p->storages.v[op->out.storage].layout, &from, &to) : 0;
}

static double copy_ns(const struct sw_program *p, const struct sw_op *op, const struct sw_work *w, const int64_t *split)
{
  bool restickify = op->op == SW_OP_RESTICKIFY;
  if ((!restickify && op->op != SW_OP_IDENTITY) || op->n_in != 1 || w->n_in != 1)
    return 0;
  const struct sw_storage *from = &p->storages.v[op->in[0].storage], *to = &p->storages.v[op->out.storage];
  if (sw_in_lx(from))
    return 0;
  struct sw_burst b = {.bytes = fmin((double)sw_layout_bytes(from->layout), (double)sw_layout_bytes(to->layout)),
                       .run = (double)sw_work_run(w, &w->in[0], split),
                       .cores = (int)sw_split_product(split, w->n_vars),
                       .machine = p->machine};
  return sw_burst_extra_ns(&b, restickify, sw_in_lx(to));
}

/* Small tiles reach part of the rate (section 8). */
static double underfill_ns(const struct sw_program *p, const struct sw_op *op, const struct sw_cost_op *cost)
{
  struct sw_cost_op c = *cost;
  c.tile = sw_tile_work_of(p, op, cost, false);
  double rate = sw_traffic_rate(cost);
  return sw_moved_bytes(cost) / (rate > 0 ? rate : sw_machine_or_spyre(p->machine)->hbm) * (1 / fmin(1, sw_tile_efficiency(&c, cost->is_matmul)) - 1);
}

double sw_extra_ns(const struct sw_program *p, const struct sw_op *op, const struct sw_cost_op *cost,
                   const struct sw_work *w, const int64_t *split)
{
  if (op->plan && op->plan->relayout)
    return relayout_ns(p, op) * (double)sw_op_turns(op);
  double ns = copy_ns(p, op, w, split) * (double)sw_op_turns(op);
  if (op->n_levels)
    ns += underfill_ns(p, op, cost);
  if (cost->is_matmul || cost->rate.traffic == SW_TRAFFIC_RESTICKIFY)
    return ns; /* their own rates know the cores */
  double rate = sw_traffic_rate(cost);
  int cores = (int)sw_split_product(split, w->n_vars);
  return ns + sw_moved_bytes(cost) / (rate > 0 ? rate : sw_machine_or_spyre(p->machine)->hbm) * (1 / sw_cores_factor(sw_machine_or_spyre(p->machine), cores) - 1);
}
