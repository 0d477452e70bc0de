/* Splits given by the user. They replace the planner's own; nothing is distributed beside them. Reference:
 * work-division.md section 10. */
#include "compiler/plan/division.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static enum sw_rc refuse(struct sw_job *job, const struct sw_work *w, const struct sw_hint *h, const char *why)
{
  struct sw_fault *f = sw_fault(job, SW_USAGE, "split %" PRId64 " of %s %s", h->slices, h->var, why);
  f->node = w->op;
  f->advice = "a split must be a positive divisor: of sticks along a stick, of elements elsewhere";
  return SW_USAGE;
}

static int find_var(const struct sw_work *w, const char *name)
{
  for (int v = 0; v < w->n_vars; v++)
    if (!strcmp(w->var[v].name, name))
      return v;
  return -1;
}

static enum sw_rc take(struct sw_job *job, const struct sw_work *w, const struct sw_work_limits *limits,
                       const struct sw_hint *h, int v, int64_t *split)
{
  if (h->slices < 1)
    return refuse(job, w, h, "must be positive");
  if (limits->blocked[v] && h->slices > 1)
    return refuse(job, w, h, "is not allowed: the dim is padded or part of a window");
  if (limits->pin[v] && limits->pin[v] != h->slices) {
    char why[48];
    snprintf(why, sizeof why, "is pinned to split=%" PRId64, limits->pin[v]);
    return refuse(job, w, h, why);
  }
  if (sw_split_product(split, w->n_vars) * h->slices > w->cores) {
    sw_warn(job, "%s: split %" PRId64 " of %s is left out, there are %d cores", w->op, h->slices, h->var, w->cores);
    return SW_OK;
  }
  if (sw_work_basis(w, v) % h->slices)
    return refuse(job, w, h, "is not evenly divisible");
  split[v] = h->slices;
  return SW_OK;
}

enum sw_rc sw_divide_hinted(struct sw_job *job, const struct sw_work *w, const struct sw_work_limits *limits,
                            int64_t *split)
{
  int reductions = 0;
  for (int v = 0; v < w->n_vars; v++)
    split[v] = 1;
  for (int i = 0; i < w->n_hints; i++) {
    int v = find_var(w, w->hint[i].var);
    if (v >= 0) /* a dim that this op does not have is no concern of it */
      SW_TRY(take(job, w, limits, &w->hint[i], v, split));
  }
  for (int v = 0; v < w->n_vars; v++) {
    reductions += split[v] > 1 && !w->var[v].is_output;
    if (limits->pin[v] && split[v] != limits->pin[v])
      return refuse(job, w, &(struct sw_hint){w->var[v].name, split[v]}, "does not meet what the op needs");
  }
  if (reductions <= 1)
    return SW_OK;
  sw_fault(job, SW_USAGE, "%d reduction dimensions are split, one is possible", reductions)->node = w->op;
  return SW_USAGE;
}
