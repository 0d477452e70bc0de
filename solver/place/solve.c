/* The door to the placers: runs the one that was asked for and explains who is not resident. */
#include "solver/place/exact.h"

#include <inttypes.h>

/* Units that are out, per buffer. */
static bool *who_is_out(const struct sw_model *m)
{
  bool *out = SW_NEW_N(m->arena, bool, m->p->buffers.n);
  for (int i = 0; i < m->p->buffers.n; i++)
    out[i] = m->units[m->unit_of[i]].out != NULL;
  return out;
}

static void run_heuristic(struct sw_job *job, const struct sw_model *m, const bool *out, enum sw_lx_placer placer,
                          struct sw_place_result *r)
{
  static const char *const names[] = {[SW_LX_GREEDY] = "greedy", [SW_LX_FIRSTFIT] = "firstfit",
                                      [SW_LX_BESTFIT] = "bestfit", [SW_LX_STACK] = "stack"};
  int64_t *address = SW_NEW_N(m->arena, int64_t, m->p->buffers.n);
  if (placer == SW_LX_GREEDY)
    sw_place_greedy(m->arena, m->p, out, address);
  else if (placer == SW_LX_STACK)
    sw_place_stack(m->arena, m->p, out, address);
  else
    sw_place_fit(m->arena, m->p, out, placer == SW_LX_BESTFIT, address);
  sw_exact_offer(job, m->p, r, address, names[placer]);
}

static void explain(struct sw_job *job, const struct sw_model *m, struct sw_place_result *r)
{
  r->reason = SW_NEW_N(job->arena, const char *, m->p->buffers.n);
  for (int i = 0; i < m->p->buffers.n; i++) {
    const struct sw_place_buffer *b = &m->p->buffers.v[i];
    const struct sw_unit *u = &m->units[m->unit_of[i]];
    if (r->address[i] >= 0)
      continue;
    r->reason[i] = u->out ? sw_arena_strdup(job->arena, u->out)
                          : sw_arena_printf(job->arena, "no room on scratchpad: ticks %" PRId64 "..%" PRId64 ", %.1f KiB",
                                            b->start, b->end, (double)b->size / 1024);
  }
}

enum sw_rc sw_place_solve(struct sw_job *job, const struct sw_place_problem *p, const struct sw_place_options *o,
                          struct sw_place_result **out)
{
  struct sw_arena *scratch = sw_arena_new(job->arena, SIZE_MAX);
  struct sw_model *m = sw_model_make(scratch, p);
  struct sw_place_result *r = SW_NEW(job->arena, struct sw_place_result);
  bool *is_out = who_is_out(m);
  r->bound = r->peak_bound = -1;
  if (o->placer == SW_LX_EXACT) {
    run_heuristic(job, m, is_out, SW_LX_GREEDY, r);
    run_heuristic(job, m, is_out, SW_LX_FIRSTFIT, r);
    run_heuristic(job, m, is_out, SW_LX_BESTFIT, r);
    sw_place_exact(job, m, o, r);
  } else {
    run_heuristic(job, m, is_out, o->placer, r);
    r->status = r->peak_status = r->address ? SW_PLACED_FEASIBLE : SW_PLACED_UNKNOWN;
  }
  if (!r->address)
    r->peak_status = SW_PLACED_UNKNOWN;
  if (r->address)
    explain(job, m, r);
  sw_arena_free(scratch);
  *out = r;
  return SW_OK;
}
