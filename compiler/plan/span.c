/* Pass 1: cuts that are needed so that one core can address its part of every tensor. Reference: work-division.md
 * sections 5 and 6. */
#include "compiler/plan/division.h"

/* Positions that a coordinate takes for the slice of one core: 1 + the sum of what each of its terms grows by from the
 * slice's first element to its last. */
static int64_t extent(const struct sw_work *w, const struct sw_coord *c, const int64_t *split)
{
  int64_t sum = 1;
  for (int i = 0; i < c->n; i++) {
    const struct sw_term *t = &c->term[i];
    int64_t last = w->var[t->loop].size / split[t->loop] - 1;
    if (t->mod && last >= t->mod)
      last = t->mod - 1;
    if (last > 0)
      sum += t->num * (last / t->den);
  }
  return sum;
}

/* The first device dim in which the slice takes more than one position decides: everything inside it counts whole.
 * [4096,2048] in fp16 is [32,4096,64]: 32 * 4096 * 64 * 2 bytes however its rows are cut. */
int64_t sw_work_span(const struct sw_work *w, const struct sw_work_tensor *t, const int64_t *split)
{
  int64_t eps = t->device_size[t->rank - 1];
  int64_t bytes = 128 / eps;
  for (int d = 0; d < t->rank - 1; d++) {
    int64_t n = extent(w, &t->coord[d], split);
    if (n <= 1)
      continue;
    bytes *= n;
    for (int inner = d + 1; inner < t->rank; inner++)
      bytes *= t->device_size[inner];
    return bytes;
  }
  return bytes;
}

/* [4096,2048] in fp16 is [32,4096,64]: uncut the whole tensor is one run; rows cut by 32 leave 128 rows * 128 bytes. */
int64_t sw_work_run(const struct sw_work *w, const struct sw_work_tensor *t, const int64_t *split)
{
  int64_t run = 128;
  for (int d = t->rank - 2; d >= 0; d--) {
    int64_t n = extent(w, &t->coord[d], split);
    run *= n;
    if (n < t->device_size[d])
      break;
  }
  return run;
}

/* Variables of a coordinate that can be cut, in iteration order. */
static int cuttable(const struct sw_work *w, const struct sw_coord *c, const bool *whole, int *vars)
{
  int n = 0;
  for (int v = 0; v < w->n_vars; v++)
    if (w->var[v].size > 1 && !whole[v] && sw_coord_uses(c, v))
      vars[n++] = v;
  return n;
}

static bool next_divisor(const struct sw_work *w, int v, int64_t *split)
{
  int64_t basis = sw_work_basis(w, v);
  for (int64_t d = *split + 1; d <= basis && d <= w->cores; d++)
    if (basis % d == 0) {
      *split = d;
      return true;
    }
  return false;
}

/* Tries all divisors of the variables of one coordinate, the last one fastest. The best cut leaves the largest span
 * within the limit (fewest cores spent), else the smallest above it; the first of equals stays. */
static void cut_coordinate(const struct sw_work *w, const struct sw_work_tensor *t, const int *vars, int n,
                           int64_t *committed)
{
  int64_t trial[SW_MAX_LOOPS], best[SW_MAX_LOOPS], best_span = 0;
  bool found = false;
  for (int v = 0; v < w->n_vars; v++)
    trial[v] = best[v] = committed[v];
  for (;;) {
    if (sw_split_product(trial, w->n_vars) <= w->cores) {
      int64_t span = sw_work_span(w, t, trial);
      bool better;
      if (!found)
        better = true;
      else if (best_span <= SW_MAX_SPAN)
        better = span <= SW_MAX_SPAN && span > best_span;
      else
        better = span < best_span;
      if (better) {
        found = true;
        best_span = span;
        for (int v = 0; v < w->n_vars; v++)
          best[v] = trial[v];
      }
    }
    int i = n - 1;
    while (i >= 0 && !next_divisor(w, vars[i], &trial[vars[i]])) {
      trial[vars[i]] = committed[vars[i]];
      i--;
    }
    if (i < 0)
      break;
  }
  for (int v = 0; v < w->n_vars; v++)
    committed[v] = best[v];
}

static void fit_tensor(const struct sw_work *w, const struct sw_work_tensor *t, const bool *whole, int64_t *committed)
{
  for (int d = 0; d < t->rank - 1 && sw_work_span(w, t, committed) > SW_MAX_SPAN; d++) {
    int vars[SW_MAX_LOOPS];
    int n = cuttable(w, &t->coord[d], whole, vars);
    if (n)
      cut_coordinate(w, t, vars, n, committed);
    if (extent(w, &t->coord[d], committed) > 1)
      return; /* cutting further inside can't help; the final check reports it */
  }
}

enum sw_rc sw_divide_for_span(struct sw_job *job, const struct sw_work *w, int64_t *committed)
{
  bool whole[SW_MAX_LOOPS] = {0};
  for (int v = 0; v < w->n_vars; v++)
    committed[v] = 1;
  if (w->best) {
    struct sw_work_limits limits;
    SW_TRY(sw_work_limits(job, w, committed, &limits));
    for (int v = 0; v < w->n_vars; v++)
      whole[v] = limits.blocked[v] || limits.pin[v];
  }
  for (int i = 0; i < w->n_in; i++)
    fit_tensor(w, &w->in[i], whole, committed);
  fit_tensor(w, &w->out, whole, committed);

  int reductions = 0;
  for (int v = 0; v < w->n_vars; v++)
    reductions += committed[v] > 1 && !w->var[v].is_output;
  if (reductions <= 1)
    return SW_OK;
  struct sw_fault *f = sw_fault(job, SW_UNSUPPORTED,
                                "%d reduction dimensions would have to be cut so that a core can address its part",
                                reductions);
  f->node = w->op;
  f->advice = "cut the reduction into pieces in the model";
  return SW_UNSUPPORTED;
}
