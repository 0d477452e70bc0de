/* What is proved is the optimum of the layout objective. With objective time it knows conversions, traffic, and who may stay in the
 * scratchpads, but not yet the plan: which divisions agree, what finds room, what overlaps in a kernel. So a choice
 * that is worse there may run faster, and where it does the user shall have it: "never slower than the reference's way, and
 * never by more than a hundredth slower than greedy or beam" holds because those plans are made and compared. (A hundredth
 * is less than a prediction can tell apart; for so little a proved choice is not given up.)
 *
 * With objective elements the optimum is what was asked for, among the programs that profile best lowers a graph to. Profile
 * torch-spyre lowers to others (a convolution's patches are cut out by the host), and one that converts less, with all that its own
 * objective leaves out, is kept.
 *
 * A rival counts only if it can be emitted.
 *
 * The price is a few more plans, from lowering on, since choosing layouts rewrites the program. Equal choices of layouts give
 * equal plans and are not planned again. Above MOST_OPS ops there is no comparison: large programs repeat their layers,
 * and what compares well for one layer does for forty.
 *
 * The result says whose plan it is (objective.plan_of) and what the others take (objective.plans). A kept rival's status is
 * "feasible", its bound that of the layout optimum. */
#include "compiler/rivals.h"

#include "compiler/dims.h"
#include "compiler/emit/opspec.h"
#include "compiler/layout/machine.h"

#include <math.h>
#include <string.h>

enum { MOST_OPS = 640 };

static const struct rival {
  const char *name;
  enum sw_profile profile;
  enum sw_solver_kind solver;
  bool by_time;  /* only where times are compared */
  double margin; /* how much faster it must be than the proved choice, as a part of that */
} rivals[] = {
    {"greedy", SW_PROFILE_BEST, SW_SOLVER_GREEDY, true, 0.01},
    {"beam", SW_PROFILE_BEST, SW_SOLVER_BEAM, true, 0.01},
    {"torch-spyre", SW_PROFILE_TORCH_SPYRE, SW_SOLVER_ILP, false, 0},
};

struct attempt {
  struct sw_job job;
  struct sw_options o;
  const struct sw_compile_input *in;
  const char *program;
  struct sw_graph *graph;
  const struct sw_choice *known; /* a choice that is planned already, NULL: none */
  bool by_time;
  double to_beat;                /* ns, or elements */
  struct sw_planned p;
  enum sw_rc rc;
};

static bool same_choice(const struct sw_choice *a, const struct sw_choice *b)
{
  if (a->n_candidates != b->n_candidates)
    return false;
  for (int s = 0; s < a->n_candidates; s++)
    if (a->candidates[s].n != b->candidates[s].n || a->candidates[s].chosen != b->candidates[s].chosen)
      return false;
  return true;
}

/* The smaller the better. */
static double figure(bool by_time, const struct sw_planned *p)
{
  return by_time ? p->plan->predicted_ns : (double)p->choice->full_cost;
}

static bool is_better(const struct attempt *a)
{
  return a->p.plan && figure(a->by_time, &a->p) < a->to_beat * (1 - 1e-9);
}

static enum sw_rc plan(struct attempt *a)
{
  SW_TRY(sw_lower(&a->job, &a->o, a->graph, &a->p.program));
  SW_TRY(sw_machine_read(&a->job, &a->o, &a->p.program->machine));
  sw_find_serving_dims(&a->job, &a->o, a->in, a->program, a->graph, a->p.program);
  SW_TRY(sw_choose_layouts(&a->job, &a->o, a->p.program, &a->p.choice));
  if (a->known && same_choice(a->known, a->p.choice))
    return SW_OK;
  if (!a->by_time && (double)a->p.choice->full_cost >= a->to_beat)
    return SW_OK;
  SW_TRY(sw_make_plan(&a->job, &a->o, a->p.program, &a->p.plan));
  struct sw_files files = {.dir = sw_files_nowhere(&a->job)}; /* some of the reference's plans can't be written down */
  if (is_better(a))
    SW_TRY(sw_emit(&a->job, &a->o, a->p.program, a->p.plan, &files));
  return a->job.worst;
}

static void run(void *p)
{
  struct attempt *a = p;
  a->rc = plan(a);
}

static void note(struct sw_job *job, struct sw_plan *plan, const char *name, double ns)
{
  *SW_PUSH(job->arena, &plan->tried) = (struct sw_tried){name, ns};
}

/* The rival in the place of what was kept so far. The solver's figures stay those of the optimum, whose bound it has. */
static void keep(struct sw_planned *p, const struct rival *r, const struct attempt *a, const struct sw_choice *optimum)
{
  struct sw_plan before = *p->plan;
  *p = a->p;
  p->plan->tried.v = before.tried.v;
  p->plan->tried.n = before.tried.n;
  p->plan->tried.cap = before.tried.cap;
  p->plan->plan_of = r->name;
  struct sw_choice own = *p->choice, *c = p->choice;
  *c = *optimum;
  c->status = "feasible";
  c->cost = own.full_cost;
  c->full_cost = own.full_cost;
  c->unit = own.unit;
  c->bound = r->profile == SW_PROFILE_BEST ? optimum->bound : 0;
  c->conversion_elements = own.conversion_elements;
  c->conversions.v = own.conversions.v;
  c->conversions.n = own.conversions.n;
  c->conversions.cap = own.conversions.cap;
  c->candidates = own.candidates;
  c->n_candidates = own.n_candidates;
  c->problem = own.problem;
  c->dropped.v = own.dropped.v;
  c->dropped.n = own.dropped.n;
  c->dropped.cap = own.dropped.cap;
}

enum sw_rc sw_keep_best_rival(struct sw_job *job, const struct sw_options *o, const struct sw_compile_input *in,
                              const char *name_of_program, struct sw_graph *g, struct sw_planned *p)
{
  bool is_exact = o->solver == SW_SOLVER_ILP || o->solver == SW_SOLVER_ILP_FULL;
  bool by_time = o->objective == SW_OBJECTIVE_TIME;
  int n_ops = p->program->ops.n;
  if (o->profile != SW_PROFILE_BEST || !is_exact || (by_time && n_ops > MOST_OPS) || !n_ops)
    return SW_OK;
  const struct sw_choice *optimum = p->choice;
  double least = figure(by_time, p), optimum_ns = p->plan->predicted_ns;
  p->plan->plan_of = "ilp";
  note(job, p->plan, "ilp", optimum_ns);
  for (size_t i = 0; i < sizeof rivals / sizeof *rivals; i++) {
    const struct rival *r = &rivals[i];
    struct attempt *a = SW_NEW(job->arena, struct attempt);
    if (r->by_time && !by_time)
      continue;
    if (g->dims.n && r->profile != o->profile)
      continue; /* for which sizes a program serves is written into the graph */
    *a = (struct attempt){.job = {.cancel = job->cancel}, .o = *o, .in = in, .program = name_of_program, .graph = g};
    a->job.arena = sw_arena_new(job->arena, 0);
    a->o.profile = r->profile;
    a->o.solver = r->solver;
    sw_options_settle(&a->o);
    a->by_time = by_time;
    a->to_beat = fmin(figure(by_time, p), least * (1 - r->margin));
    a->known = r->profile == SW_PROFILE_BEST ? optimum : NULL;
    bool done = sw_arena_run(a->job.arena, run, a) && a->rc == SW_OK;
    bool same = done && by_time && !a->p.plan;
    if (same || (done && a->p.plan))
      note(job, p->plan, r->name, same ? optimum_ns : a->p.plan->predicted_ns);
    if (done && is_better(a))
      keep(p, r, a, optimum);
    else
      sw_arena_free(a->job.arena);
    if (sw_cancelled(job))
      return sw_fail(job, SW_CANCELLED, "cancelled while plans were compared");
  }
  return SW_OK;
}
