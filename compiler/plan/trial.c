/* Profile best places a program twice, with graph inputs copied into LX and without, and keeps what is predicted to be
 * faster. Which one that is only the whole program tells: a kernel of plain ops fetches an input once anyway, and then a
 * copy is one op too many; where some op has a rate of its own every op fetches its operands itself. Layer norm of
 * [2,64,256]: with the copy the input is read once instead of twice, and what is left of the broadcast in its last op is
 * small: 1991 ns instead of 3451. */
#include "compiler/plan/parts.h"
#include "compiler/plan/scratchpad.h"

#include "base/options.h"

enum { MOST_OPS = 4096 }; /* of a program that is worth two plans */

struct state {
  struct sw_program program;
  struct sw_plan plan;
};

#define KEEP(arena, vec)                                                              \
  do {                                                                                \
    (vec)->cap = (vec)->n;                                                            \
    if ((vec)->n)                                                                     \
      (vec)->v = sw_arena_copy((arena), (vec)->v, (size_t)(vec)->n, sizeof *(vec)->v); \
  } while (0)

/* Everything that placing changes. */
static struct state state_of(struct sw_arena *a, const struct sw_program *p, const struct sw_plan *plan)
{
  struct state s = {*p, *plan};
  KEEP(a, &s.program.storages);
  KEEP(a, &s.program.ops);
  KEEP(a, &s.program.steps);
  KEEP(a, &s.program.outputs);
  KEEP(a, &s.plan.kernels);
  return s;
}

static bool copies_an_input(const struct sw_program *p, int n_ops)
{
  for (int i = n_ops; i < p->ops.n; i++)
    if (p->storages.v[p->ops.v[i].in[0].storage].kind != SW_STORAGE_TEMPORARY)
      return true;
  return false;
}

enum sw_rc sw_plan_best_places(struct sw_job *job, const struct sw_options *o, struct sw_program *p,
                               struct sw_plan *plan)
{
  if (!o->lx || p->ops.n > MOST_OPS)
    return sw_plan_places(job, o, p, plan, false);
  struct state before = state_of(job->arena, p, plan);
  SW_TRY(sw_plan_places(job, o, p, plan, true));
  if (!copies_an_input(p, before.program.ops.n))
    return SW_OK;
  sw_predict(job, o, p, plan);
  struct state with = {*p, *plan};
  *p = before.program;
  *plan = before.plan;
  SW_TRY(sw_plan_places(job, o, p, plan, false));
  sw_predict(job, o, p, plan);
  if (with.plan.predicted_ns < plan->predicted_ns) {
    *p = with.program;
    *plan = with.plan;
  }
  return SW_OK;
}
