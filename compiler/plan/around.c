/* New ops among the old ones: in the order of the program and of their kernels. */
#include "compiler/plan/scratchpad.h"

/* What runs in front of a loop comes before what runs in it in front of its first op, and the other way round behind. */
static void push_around(struct sw_arena *a, const struct sw_program *p, int op, const struct sw_around *x,
                        struct sw_ops *out)
{
  for (int inside = 0; op < x->n && inside <= SW_MAX_LEVELS; inside++)
    for (int k = 0; k < x->before[op].of.n; k++)
      if (p->ops.v[x->before[op].of.v[k]].n_levels == inside)
        *SW_PUSH(a, &out->of) = x->before[op].of.v[k];
  *SW_PUSH(a, &out->of) = op;
  for (int inside = SW_MAX_LEVELS; op < x->n && inside >= 0; inside--)
    for (int k = 0; k < x->behind[op].of.n; k++)
      if (p->ops.v[x->behind[op].of.v[k]].n_levels == inside)
        *SW_PUSH(a, &out->of) = x->behind[op].of.v[k];
}

void sw_insert_around(struct sw_job *job, struct sw_program *p, struct sw_plan *plan, const struct sw_around *x)
{
  struct sw_arena *scratch = sw_arena_new(job->arena, SIZE_MAX);
  for (int k = 0; k < plan->kernels.n; k++) {
    struct sw_ops ops = {0};
    for (int i = 0; i < plan->kernels.v[k].ops.n; i++)
      push_around(job->arena, p, plan->kernels.v[k].ops.v[i], x, &ops);
    plan->kernels.v[k].ops.v = ops.of.v;
    plan->kernels.v[k].ops.n = ops.of.n;
    plan->kernels.v[k].ops.cap = ops.of.cap;
  }
  SW_VEC(struct sw_step) steps = {0};
  for (int t = 0; t < p->steps.n; t++) {
    struct sw_ops ops = {0};
    if (p->steps.v[t].is_host)
      *SW_PUSH(job->arena, &steps) = p->steps.v[t];
    else
      push_around(scratch, p, p->steps.v[t].index, x, &ops);
    for (int k = 0; k < ops.of.n; k++)
      *SW_PUSH(job->arena, &steps) = (struct sw_step){false, ops.of.v[k]};
  }
  p->steps.v = steps.v;
  p->steps.n = steps.n;
  p->steps.cap = steps.cap;
  sw_arena_free(scratch);
}
