/* Profile best places a program several times, with and without copies of graph inputs into LX, with and without
 * relayouts, and keeps what is predicted to be fastest. Which one that is only the whole program tells: a kernel of plain ops fetches an input once anyway, and then a
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

/* What an attempt has made of the copies that it was allowed to make. */
static struct sw_lx_copies copies_of(const struct sw_program *p, int n_ops)
{
  struct sw_lx_copies made = {0};
  for (int i = n_ops; i < p->ops.n; i++) {
    made.inputs |= p->storages.v[p->ops.v[i].in[0].storage].kind != SW_STORAGE_TEMPORARY;
    made.relayouts |= p->ops.v[i].plan->relayout != NULL;
  }
  return made;
}

enum sw_rc sw_plan_best_places(struct sw_job *job, const struct sw_options *o, struct sw_program *p,
                               struct sw_plan *plan)
{
  if (!o->lx || p->ops.n > MOST_OPS)
    return sw_plan_places(job, o, p, plan, (struct sw_lx_copies){0});
  struct state before = state_of(job->arena, p, plan);
  SW_TRY(sw_plan_places(job, o, p, plan, (struct sw_lx_copies){true, true}));
  sw_predict(job, o, p, plan);
  struct state best = {*p, *plan};
  struct sw_lx_copies made = copies_of(p, before.program.ops.n);
  for (int less = 1; less < 4; less++) {
    struct sw_lx_copies copies = {.inputs = !(less & 1), .relayouts = !(less & 2)};
    if ((!copies.inputs && !made.inputs) || (!copies.relayouts && !made.relayouts))
      continue; /* the same plan again */
    struct state again = state_of(job->arena, &before.program, &before.plan);
    *p = again.program;
    *plan = again.plan;
    SW_TRY(sw_plan_places(job, o, p, plan, copies));
    sw_predict(job, o, p, plan);
    if (plan->predicted_ns <= best.plan.predicted_ns)
      best = (struct state){*p, *plan};
  }
  *p = best.program;
  *plan = best.plan;
  return SW_OK;
}
