/* The passes of work division in order, and the small facts they share. Reference: work-division.md sections 4, 8, 12,
 * 15 and 11. */
#include "compiler/plan/division.h"

#include <inttypes.h>
#include <string.h>

bool sw_coord_uses(const struct sw_coord *c, int var)
{
  for (int i = 0; i < c->n; i++)
    if (c->term[i].loop == var)
      return true;
  return false;
}

bool sw_tensor_uses(const struct sw_work_tensor *t, int var)
{
  for (int d = 0; d < t->rank; d++)
    if (sw_coord_uses(&t->coord[d], var))
      return true;
  return false;
}

/* The only variable of a coordinate, or -1. */
static int only_var(const struct sw_coord *c)
{
  if (!c->n)
    return -1;
  for (int i = 1; i < c->n; i++)
    if (c->term[i].loop != c->term[0].loop)
      return -1;
  return c->term[0].loop;
}

/* Section 4.3: a variable that some tensor has as its stick is counted in sticks of the largest eps. */
static void find_sticks(struct sw_work *w, const struct sw_work_tensor *t)
{
  int eps = (int)t->device_size[t->rank - 1];
  for (int d = t->rank - 1; d >= 0 && d >= t->rank - (t->two_dim_stick ? 2 : 1); d--) {
    int v = only_var(&t->coord[d]);
    if (v < 0)
      continue;
    int unit = t->pairs && (w->var[v].size - 1) / eps % 2 == 0 ? 2 * eps : eps; /* an odd number of sticks in pairs */
    if (w->var[v].eps < unit)
      w->var[v].eps = unit;
  }
}

enum sw_rc sw_work_settle(struct sw_job *job, struct sw_work *w)
{
  for (int i = 0; i < w->n_in; i++)
    find_sticks(w, &w->in[i]);
  find_sticks(w, &w->out);
  bool matmul = w->kind == SW_WORK_MATMUL || w->kind == SW_WORK_MATMUL_FP8;
  for (int v = 0; v < w->n_vars; v++) {
    struct sw_work_var *x = &w->var[v];
    x->adjusted = x->eps ? (x->size + x->eps - 1) / x->eps : x->size;
    for (int d = 0; d < w->out.rank - 1; d++)
      x->is_output |= sw_coord_uses(&w->out.coord[d], v);
    if (!x->granularity || (!x->eps && !matmul))
      continue;
    struct sw_fault *f = sw_fault(job, SW_UNSUPPORTED, "%s is dynamic, %s", x->name,
                                  matmul ? "which a matmul does not support"
                                         : "and a symbolic stick dim is not supported");
    f->node = w->op;
    f->advice = "export the model with a fixed size for this dim";
    return SW_UNSUPPORTED;
  }
  return SW_OK;
}

int64_t sw_split_product(const int64_t *split, int n)
{
  int64_t product = 1;
  for (int i = 0; i < n; i++)
    product *= split[i];
  return product;
}

int64_t sw_granularity(int64_t min, int64_t max)
{
  enum { MAX_BUCKETS = 32, LEAST = 4 };
  if (min > 2)
    return max % min == 0 && max / min <= MAX_BUCKETS ? min : 0;
  for (int64_t d = LEAST; d <= max; d++)
    if (max % d == 0 && max / d <= MAX_BUCKETS)
      return d;
  return 0;
}

void sw_core_strides(int n, const int64_t *split, int first, int64_t *below)
{
  int64_t stride = 1;
  for (int i = first >= 0 ? -1 : 0; i < n; i++) {
    int d = i < 0 ? first : i;
    if (i == first && first >= 0)
      continue; /* had its turn before the others */
    below[d] = stride;
    stride *= split[d];
  }
}

void sw_core_slices(int n, const int64_t *split, int first, int core, int64_t *slice)
{
  int64_t below[SW_MAX_LOOPS];
  sw_core_strides(n, split, first, below);
  for (int d = 0; d < n; d++)
    slice[d] = core / below[d] % split[d];
}

static void ones(int64_t *split, int n)
{
  for (int v = 0; v < n; v++)
    split[v] = 1;
}

/* Section 11. What is over the limit now would be over it on the card. */
static enum sw_rc check_span(struct sw_job *job, const struct sw_work *w, const struct sw_work_tensor *t,
                             const int64_t *split)
{
  int64_t span = sw_work_span(w, t, split);
  if (span <= SW_MAX_SPAN)
    return SW_OK;
  struct sw_buf sizes = {.arena = job->arena}, splits = {.arena = job->arena};
  for (int d = 0; d < t->rank; d++)
    sw_buf_printf(&sizes, "%s%" PRId64, d ? "," : "", t->device_size[d]);
  for (int v = 0; v < w->n_vars; v++)
    sw_buf_printf(&splits, "%s%s %" PRId64, v ? ", " : "", w->var[v].name, split[v]);
  struct sw_fault *f =
      sw_fault(job, SW_LIMIT, "one core would have to address %" PRId64 " bytes of %s, device_size [%s], cut %s", span,
               t->name, sw_buf_text(&sizes), w->n_vars ? sw_buf_text(&splits) : "nowhere");
  f->node = w->op;
  f->tensor = t->name;
  f->has_limit = true;
  f->value = span;
  f->limit = SW_MAX_SPAN;
  f->advice = "cut the tensor into pieces in the model, or use more cores";
  return SW_LIMIT;
}

enum sw_rc sw_divide(struct sw_job *job, const struct sw_work *w, int64_t *split)
{
  int64_t committed[SW_MAX_LOOPS];
  struct sw_work_limits limits;
  ones(split, w->n_vars);
  SW_TRY(sw_divide_for_span(job, w, committed));
  SW_TRY(sw_work_limits(job, w, committed, &limits));
  int64_t greedy[SW_MAX_LOOPS];
  if (w->n_hints) {
    SW_TRY(sw_divide_hinted(job, w, &limits, split));
  } else {
    sw_divide_greedy(w, &limits, committed, greedy);
    if (!sw_divide_matmul(w, &limits, committed, greedy, split))
      memcpy(split, greedy, sizeof greedy);
  }
  enum sw_rc rc = SW_OK;
  for (int i = 0; i <= w->n_in; i++) {
    enum sw_rc this_rc = check_span(job, w, i < w->n_in ? &w->in[i] : &w->out, split);
    rc = this_rc ? this_rc : rc;
  }
  return rc;
}
