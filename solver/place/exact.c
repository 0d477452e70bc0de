/* The exact placer: select, then pack (scratchpad.md 13.2).
 *
 *   1. The capacity program gives the most valuable set that no tick forbids: a bound.
 *   2. If that set packs, it is the optimum. If not, a smallest part of it that does not pack becomes a cut, and again.
 *   3. The least height at which the capacity program still has a set of that value is a bound for the peak; the same
 *      loop at that height finds a plan, or refutes the height and goes up by one granule.
 *
 * All is bounded by work, never by time. What is not proved is said: a set that was given up is cut too, so that
 * others get their turn, but then the bound stays where it was. The plans of the heuristics are where it starts: the
 * result is never below them. */
#include "solver/place/exact.h"

#include "solver/place/chosen.h"
#include "solver/place/master.h"

#include <string.h>

enum { MAX_CUTS = 400, MAX_GIVEN_UP = 6, MAX_SHRUNK = 60 };

struct exact {
  struct sw_job *job;
  struct sw_arena *arena;
  const struct sw_model *model;
  struct sw_place_result *r;
  int64_t work;
  SW_VEC(struct sw_cut) cuts;
};

static int64_t share(const struct exact *x, int part)
{
  return x->work / part + 1000;
}

/* -- the best plan so far -- */

void sw_exact_offer(struct sw_job *job, const struct sw_place_problem *p, struct sw_place_result *r,
                    const int64_t *address, const char *by)
{
  int64_t value, peak;
  if (sw_place_check(job, p, address, &value, &peak))
    return;
  if (r->address && (value < r->value || (value == r->value && peak >= r->peak)))
    return;
  r->address = sw_arena_copy(job->arena, address, (size_t)p->buffers.n, sizeof *address);
  r->value = value;
  r->peak = peak;
  r->packed_by = by;
}

static void offer(struct exact *x, const int64_t *address, const char *by)
{
  sw_exact_offer(x->job, x->model->p, x->r, address, by);
}

/* -- packing and cutting -- */

static enum sw_packed pack(struct exact *x, const bool *in, const bool *merged, int64_t height, int64_t work,
                           struct sw_cut *failed)
{
  struct sw_arena *scratch = sw_arena_new(x->arena, SIZE_MAX);
  struct sw_chosen c = {.arena = scratch, .job = x->job, .model = x->model, .in = in, .merged = merged,
                        .height = height, .work = work};
  enum sw_packed answer = sw_pack_chosen(&c);
  x->work -= work - c.work;
  if (answer == SW_PACKED)
    offer(x, c.address, c.by);
  else if (failed)
    *failed = (struct sw_cut){sw_arena_copy(x->arena, c.failed, (size_t)c.n_failed, sizeof *c.failed), c.n_failed};
  sw_arena_free(scratch);
  return answer;
}

/* Leaves out units one by one as long as what is left still provably does not pack: the cut becomes minimal, if small
 * enough to try. */
static void shrink(struct exact *x, struct sw_cut *cut, int64_t height)
{
  if (cut->n > MAX_SHRUNK)
    return;
  bool *in = SW_NEW_N(x->arena, bool, x->model->n_units);
  for (int k = 0; k < cut->n; k++)
    in[cut->units[k]] = true;
  for (int k = cut->n - 1; k >= 0; k--) {
    in[cut->units[k]] = false;
    if (pack(x, in, NULL, height, share(x, 50), NULL) != SW_UNPACKABLE) {
      in[cut->units[k]] = true;
      continue;
    }
    memmove(&cut->units[k], &cut->units[k + 1], sizeof *cut->units * (size_t)(cut->n - k - 1));
    cut->n--;
  }
}

enum outcome { FOUND, NO_SET, SPENT };

/* Work for packing a set: a part, or all of it when there is no other set to turn to. */
static int64_t work_for(const struct exact *x, const bool *in)
{
  for (int u = 0; u < x->model->n_units; u++)
    if (in[u] && !x->model->units[u].required)
      return share(x, 6);
  return x->work;
}

/* Steps 1 and 2 at one height: the best set (need -1), or one of value `need`, that packs. `bound`: what no plan of
 * this height can exceed, as far as proved. */
static enum outcome select_and_pack(struct exact *x, int64_t height, int64_t need, int64_t *bound)
{
  int given_up = 0, first_cut = x->cuts.n;
  enum outcome outcome = SPENT;
  while (x->cuts.n - first_cut < MAX_CUTS && x->work > 0 && !sw_cancelled(x->job)) {
    struct sw_master m = {.model = x->model, .cuts = x->cuts.v, .n_cuts = x->cuts.n, .height = height, .need = need,
                          .work = share(x, 4), .job = x->job};
    int64_t given = m.work;
    if (!sw_master_solve(x->arena, &m)) { /* not proved, but what we have stays good */
      sw_warn(x->job, "placement: GLPK stopped: %s", m.message);
      break;
    }
    x->work -= given - m.work;
    x->r->n_glpk_calls += m.used_glpk;
    if (!x->r->n_rows) {
      x->r->n_rows = m.n_rows;
      x->r->n_columns = m.n_columns;
    }
    if (m.answer == SW_MASTER_NONE) {
      outcome = given_up ? SPENT : NO_SET;
      break;
    }
    if (!given_up && m.bound < *bound)
      *bound = m.bound;
    if (need < 0)
      sw_tell(x->job, (struct sw_progress){"place", 1, 1, x->r->address, *bound != INT64_MAX, x->r->value, *bound});
    if (m.answer == SW_MASTER_GAVE_UP)
      break;
    if (need < 0 && x->r->address && m.value <= x->r->value) { /* what we have is as good */
      outcome = m.answer == SW_MASTER_BEST && !given_up ? FOUND : SPENT;
      break;
    }
    struct sw_cut cut;
    enum sw_packed answer = pack(x, m.in, m.merged, height, work_for(x, m.in), &cut);
    if (answer == SW_PACKED) {
      outcome = m.answer == SW_MASTER_BEST && !given_up ? FOUND : SPENT;
      break;
    }
    if (answer == SW_UNPACKABLE)
      shrink(x, &cut, height);
    else if (++given_up > MAX_GIVEN_UP)
      break;
    *SW_PUSH(x->arena, &x->cuts) = cut;
    x->r->n_cuts++;
  }
  return outcome;
}

/* -- the peak -- */

/* Whether the capacity program alone has a set of value `need` at a height; what can't be told counts as yes. */
static bool has_set(struct exact *x, int64_t height, int64_t need)
{
  struct sw_master m = {.model = x->model, .height = height, .need = need, .work = share(x, 8), .job = x->job};
  int64_t given = m.work;
  if (!sw_master_solve(x->arena, &m))
    return true;
  x->work -= given - m.work;
  x->r->n_glpk_calls += m.used_glpk;
  return m.answer != SW_MASTER_NONE;
}

/* Step 3. Heights are counted in granules: no plan has a peak between. */
static void minimise_peak(struct exact *x)
{
  struct sw_place_result *r = x->r;
  int64_t g = x->model->granule, low = -1, high = (r->peak + g - 1) / g; /* the least one is in (low, high] */
  for (int64_t top = high; low + 1 < top && x->work > 0;) {
    int64_t middle = low + (top - low) / 2;
    if (has_set(x, middle * g, r->value))
      top = middle;
    else
      low = middle;
  }
  r->peak_bound = (low + 1) * g < r->peak ? (low + 1) * g : r->peak;
  /* From the bound upwards while heights are refuted; when one is not, a plan is looked for between. */
  bool proving = true;
  int64_t tried = low;
  while (r->peak > r->peak_bound && x->work > 0 && !sw_cancelled(x->job)) {
    high = (r->peak + g - 1) / g;
    int64_t h = proving ? tried + 1 : tried + (high - tried) / 2;
    if (h >= high || h <= tried)
      break;
    x->cuts.n = 0; /* what does not pack at one height may at the next */
    int64_t bound = INT64_MAX, before = r->peak;
    enum outcome o = select_and_pack(x, h * g, r->value, &bound);
    if (o == NO_SET && proving)
      r->peak_bound = (h + 1) * g < r->peak ? (h + 1) * g : r->peak;
    else
      proving = false;
    if (r->peak == before)
      tried = h;
  }
  r->peak_status = r->peak_bound == r->peak ? SW_PLACED_OPTIMAL : SW_PLACED_FEASIBLE;
}

/* -- infeasible -- */

/* A minimal set of required units that can't be resident together. */
static void find_conflict(struct exact *x)
{
  const struct sw_model *m = x->model;
  struct sw_cut all = {SW_NEW_N(x->arena, int, m->n_units), 0};
  for (int u = 0; u < m->n_units; u++) {
    if (m->units[u].required && m->units[u].out) {
      all.n = 0;
      all.units[all.n++] = u;
      break;
    }
    if (m->units[u].required)
      all.units[all.n++] = u;
  }
  bool *in = SW_NEW_N(x->arena, bool, m->n_units);
  for (int k = 0; k < all.n; k++)
    in[all.units[k]] = true;
  struct sw_cut failed = all;
  if (!m->units[all.units[0]].out && pack(x, in, NULL, m->p->capacity, share(x, 2), &failed) == SW_UNPACKABLE)
    shrink(x, &failed, m->p->capacity);
  for (int k = 0; k < failed.n; k++)
    for (int b = 0; b < m->units[failed.units[k]].n; b++)
      *SW_PUSH(x->job->arena, &x->r->conflict) = m->units[failed.units[k]].buffers[b];
}

/* -- all -- */

void sw_place_exact(struct sw_job *job, const struct sw_model *model, const struct sw_place_options *o,
                    struct sw_place_result *r)
{
  struct exact x = {.job = job, .arena = model->arena, .model = model, .r = r, .work = o->budget};
  r->bound = INT64_MAX;
  enum outcome outcome = select_and_pack(&x, model->p->capacity, -1, &r->bound);
  if (outcome == NO_SET && r->address) { /* every set with more value is cut away: what we have is the optimum */
    outcome = FOUND;
    r->bound = r->value;
  }
  if (outcome == NO_SET) {
    r->status = SW_PLACED_INFEASIBLE;
    r->method = x.cuts.n ? "cuts" : "tick-capacity";
    find_conflict(&x);
  } else if (!r->address) {
    r->status = SW_PLACED_UNKNOWN;
  } else {
    if (outcome == FOUND)
      r->bound = r->value;
    r->status = r->bound == r->value ? SW_PLACED_OPTIMAL : SW_PLACED_FEASIBLE;
    r->method = r->status != SW_PLACED_OPTIMAL ? NULL : x.cuts.n ? "cuts" : "tick-capacity";
  }
  if (r->bound == INT64_MAX)
    r->bound = -1;
  if (r->address && !o->no_peak)
    minimise_peak(&x);
  r->work = o->budget - x.work;
  if (x.work <= 0)
    r->stopped_by = "budget";
  if (sw_cancelled(job))
    r->stopped_by = "cancelled";
}
