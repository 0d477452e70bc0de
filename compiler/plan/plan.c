/* The planning pass: core splits and time of every op, kernels, places.
 *
 * requires   every storage that is not host_only has a layout
 * ensures    op.plan and storage.place are set; kernels hold every op once, in program order
 * preserves  storages, accesses, the meaning of the program */
#include "compiler/plan/division.h"
#include "compiler/plan/parts.h"
#include "compiler/plan/scratchpad.h"

#include "base/options.h"

#include <string.h>

/* A split for an op that does not exist is a slip of the user's. */
static enum sw_rc check_given_splits(struct sw_job *job, const struct sw_options *o, const struct sw_program *p)
{
  for (int i = 0; i < o->splits.n; i++) {
    int op = 0;
    while (op < p->ops.n && !sw_split_names(o->splits.v[i], &p->ops.v[op]))
      op++;
    if (op < p->ops.n)
      continue;
    sw_fault(job, SW_USAGE, "option split: there is no such op: %s", o->splits.v[i])->advice =
        "see ops[].name of a result without this option";
    return SW_USAGE;
  }
  return SW_OK;
}

/* A size stays dynamic only where every op can keep it, as in the reference, which has no plan for others. There all loops
 * run to the maximum, and every size will do, not only those that cores can share out. */
static void fix_rows(struct sw_job *job, const struct sw_options *o, struct sw_program *p, struct sw_work *w)
{
  bool *fixed = SW_NEW_N(job->arena, bool, p->graph->dims.n + 1);
  for (int pass = 0; pass < 2; pass++)
    for (int i = 0; i < p->ops.n; i++) {
      struct sw_op *op = &p->ops.v[i];
      int dim = p->storages.v[op->out.storage].dynamic;
      if (pass && fixed[dim])
        op->row_loop = 0;
      else if (!pass && op->row_loop && sw_work_of(job, o, p, op, w) == SW_OK && !w->dynamic_loop)
        fixed[dim] = true;
    }
}

enum sw_rc sw_divide_program(struct sw_job *job, const struct sw_options *o, struct sw_program *p)
{
  enum sw_rc worst = check_given_splits(job, o, p);
  struct sw_work *w = SW_NEW(job->arena, struct sw_work);
  if (p->graph && p->graph->dims.n)
    fix_rows(job, o, p, w);
  for (int i = 0; i < p->ops.n; i++) {
    struct sw_op *op = &p->ops.v[i];
    struct sw_op_plan *plan = SW_NEW(job->arena, struct sw_op_plan);
    for (int l = 0; l < SW_MAX_LOOPS; l++)
      plan->split[l] = 1;
    op->plan = plan;
    int faults = job->faults.n;
    enum sw_rc rc = sw_work_of(job, o, p, op, w);
    if (rc == SW_OK)
      rc = sw_divide(job, w, plan->split);
    for (; faults < job->faults.n; faults++)
      job->faults.v[faults].source = op->source;
    plan->cores = (int)sw_split_product(plan->split, op->n_loops);
    plan->dynamic_loop = w->dynamic_loop;
    plan->granularity = w->dynamic_loop ? w->var[w->dynamic_loop - 1].granularity : 0;
    worst = rc > worst ? rc : worst;
    if (sw_cancelled(job))
      return sw_fail(job, SW_CANCELLED, "cancelled while dividing work over the cores");
  }
  return worst;
}

/* What an attempt has made of the copies that it was allowed to make. */
static unsigned copies_among(const struct sw_program *p, int n_ops)
{
  unsigned made = 0;
  for (int i = n_ops; i < p->ops.n; i++) {
    if (p->storages.v[p->ops.v[i].in[0].storage].kind != SW_STORAGE_TEMPORARY)
      made |= 1U << SW_MEANS_INPUT_COPIES;
    if (p->ops.v[i].plan->relayout)
      made |= 1U << SW_MEANS_RELAYOUTS;
  }
  return made;
}

enum sw_rc sw_plan_so(struct sw_job *job, const struct sw_options *o, struct sw_program *p, struct sw_way *way,
                      struct sw_plan *plan, unsigned *made)
{
  bool changed = false;
  *made = 0;
  if (way->means & 1U << SW_MEANS_TILES && sw_tile(job, o, p, &way->tiles))
    *made |= 1U << SW_MEANS_TILES;
  SW_TRY(sw_cut_pieces(job, o, p));
  SW_TRY(sw_divide_program(job, o, p));
  sw_cut_kernels(job, o, p, plan);
  if (way->means & 1U << SW_MEANS_TOGETHER)
    SW_TRY(sw_divide_together(job, o, p, &changed));
  if (changed)
    *made |= 1U << SW_MEANS_TOGETHER;
  int n_ops = p->ops.n;
  struct sw_lx_copies copies = {.inputs = way->means & 1U << SW_MEANS_INPUT_COPIES,
                                .relayouts = way->means & 1U << SW_MEANS_RELAYOUTS};
  SW_TRY(sw_plan_places(job, o, p, plan, copies));
  *made |= copies_among(p, n_ops);
  sw_predict(job, o, p, plan);
  return SW_OK;
}

/* The reference's habits: its relayouts belong to one placer, and it knows nothing of the rest. */
static unsigned recorded_means(const struct sw_options *o)
{
  return 1U << SW_MEANS_INPUT_COPIES | (o->lx_placer == SW_LX_GREEDY ? 1U << SW_MEANS_RELAYOUTS : 0);
}

enum sw_rc sw_make_plan(struct sw_job *job, const struct sw_options *o, struct sw_program *p, struct sw_plan **out)
{
  struct sw_plan *plan = SW_NEW(job->arena, struct sw_plan);
  unsigned made;
  SW_TRY(sw_tile_given(job, o, p));
  struct sw_way way = {.means = recorded_means(o)};
  if (o->profile == SW_PROFILE_BEST)
    way = sw_choose_way(job, o, p, plan);
  SW_TRY(sw_plan_so(job, o, p, &way, plan, &made));
  *out = plan;
  return SW_OK;
}
