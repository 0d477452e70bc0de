/* The layout pass.
 *
 * requires   a lowered program
 * ensures    every storage that is not host_only has a layout; every access has a clean stick in it; all operands of an
 *            op go together; the reported cost is that of the conversions in the program
 * preserves  what the program computes, names and order of its ops; ops and storages are added, and only copies into inputs
 *            that nobody needs go
 *
 * First the program is prepared (prepare.c, profile best). Then candidates (load.c, candidates.c, pointwise.c), the
 * assignment problem (needs.c, slice.c, problem.c), once more with copies by the host where it has no solution
 * (host_copy.c), the program again (insert.c, gather.c, padding.c), a check of the result (check.c), and the end of copies
 * back that nobody needs (elide.c). */
#include "compiler/layout/choose.h"

static const char *const solvers[] = {
    [SW_SOLVER_ILP] = "ilp",
    [SW_SOLVER_ILP_FULL] = "ilp-full",
    [SW_SOLVER_BEAM] = "beam",
    [SW_SOLVER_GREEDY] = "greedy",
};

static void start(struct sw_choosing *c)
{
  int n = c->p->storages.n;
  c->n_storages = n;
  c->weighs_traffic = c->best && c->o->objective == SW_OBJECTIVE_TIME;
  c->rule = c->best ? SW_OFFSET_EXACT : SW_OFFSET_REFERENCE;
  c->candidates = SW_NEW_N(c->arena, sw_layout_list, n + 1);
  c->pinned = SW_NEW_N(c->arena, bool, n + 1);
  c->refused = SW_NEW_N(c->arena, bool, n + 1);
  c->written = SW_NEW_N(c->arena, int, n + 1);
  c->free_layout = SW_NEW_N(c->arena, bool, n + 1);
  c->load_twice = SW_NEW_N(c->arena, bool, n + 1);
  c->reload = SW_NEW_N(c->arena, sw_layout_list, n + 1);
  c->accesses = SW_NEW_N(c->arena, int, n + 1);
  for (int i = 0; i < c->p->ops.n; i++) {
    const struct sw_op *op = &c->p->ops.v[i];
    c->written[op->out.storage]++;
    c->accesses[op->out.storage]++;
    for (int k = 0; k < op->n_in; k++)
      c->accesses[op->in[k].storage]++;
  }
  c->choice = SW_NEW(c->job->arena, struct sw_choice);
  c->drops.n = 0;
  c->choice->unit = c->o->objective == SW_OBJECTIVE_TIME ? "ns" : "elements";
  c->choice->solver = solvers[c->o->solver];
}

/* For reports, also of failures. */
static void list_candidates(struct sw_choosing *c)
{
  c->choice->n_candidates = c->n_storages;
  c->choice->candidates = SW_NEW_N(c->job->arena, struct sw_candidates, c->n_storages + 1);
  for (int s = 0; s < c->n_storages; s++) {
    struct sw_candidates *k = &c->choice->candidates[s];
    k->n = c->candidates[s].n;
    k->pinned = c->pinned[s];
    if (k->n)
      k->v = sw_arena_copy(c->job->arena, c->candidates[s].v, (size_t)k->n, sizeof *k->v);
  }
}

static enum sw_rc solve(struct sw_choosing *c, struct sw_problem *q)
{
  sw_layout__forget_impossible(c);
  sw_layout__build(c, q);
  struct sw_buf text = {.arena = c->job->arena};
  sw_assign_write(q->assign, &text);
  c->choice->problem = sw_buf_text(&text);
  if (sw_cancelled(c->job))
    return sw_fail(c->job, SW_CANCELLED, "cancelled while layouts were chosen");
  return sw_layout__solve(c, q);
}

/* Rounds of copies by the host (host_copy.c) at most, one pair of a conflict each. */
enum { MOST_ROUNDS = 64 };

static enum sw_rc choose(struct sw_choosing *c, struct sw_problem *q)
{
  start(c);
  sw_layout__load_candidates(c);
  sw_layout__op_candidates(c);
  list_candidates(c);
  if (c->job->worst != SW_OK)
    return c->job->worst;
  sw_layout__survey(c);
  c->means = SW_MEANS_COPIES;
  enum sw_rc rc = solve(c, q);
  while (rc == SW_INFEASIBLE && c->best && c->means + 1 < SW_N_MEANS) {
    c->means++;
    if (c->means == SW_MEANS_SELECT)
      sw_layout__find_infinities(c);
    rc = solve(c, q);
  }
  sw_layout__settle_drops(c);
  return rc;
}

static enum sw_rc run(struct sw_choosing *c)
{
  struct sw_problem q;
  enum sw_rc rc = choose(c, &q);
  for (int round = 0; rc == SW_INFEASIBLE && c->best && round < MOST_ROUNDS && sw_layout__copy_by_host(c, &q); round++)
    rc = choose(c, &q);
  if (rc == SW_INFEASIBLE)
    sw_layout__explain(c, &q);
  SW_TRY(rc);
  SW_TRY(sw_layout__insert(c, &q));
  SW_TRY(sw_layout__check(c, &q));
  sw_layout__elide_copies_back(c);
  return SW_OK;
}

enum sw_rc sw_choose_layouts(struct sw_job *job, const struct sw_options *o, struct sw_program *p,
                             struct sw_choice **out)
{
  struct sw_choosing c = {.job = job, .arena = sw_arena_new(job->arena, 0), .o = o, .p = p};
  c.best = o->profile == SW_PROFILE_BEST;
  sw_layout__take_names(&c);
  if (c.best) {
    sw_layout__prepare(&c);
    sw_layout__mend_writes(&c);
  }
  c.first_host_copy = p->storages.n;
  enum sw_rc rc = run(&c);
  c.choice->status_rc = rc;
  if (!c.choice->status)
    c.choice->status = sw_rc_slug(rc);
  *out = c.choice;
  sw_arena_free(c.arena);
  return rc;
}
