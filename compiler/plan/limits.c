/* What an op does not allow to be cut. Reference: work-division.md section 7, in its order of rules. */
#include "compiler/plan/division.h"

#include <inttypes.h>

struct pinning {
  struct sw_job *job;
  const struct sw_work *w;
  const int64_t *committed;
  struct sw_work_limits *out;
  enum sw_rc rc;
};

static void pin(struct pinning *p, int v, int64_t split)
{
  const char *name = p->w->var[v].name;
  struct sw_fault *f = NULL;
  if (p->committed[v] > 1 && p->committed[v] != split)
    f = sw_fault(p->job, SW_UNSUPPORTED,
                 "%s must be cut %" PRId64 " times, but the hardware memory-span limit committed it to %" PRId64, name,
                 split, p->committed[v]);
  else if (p->out->pin[v] && p->out->pin[v] != split)
    f = sw_fault(p->job, SW_UNSUPPORTED, "conflicting pinned split of %s: %" PRId64 " and %" PRId64, name,
                 p->out->pin[v], split);
  if (f) {
    f->node = p->w->op;
    p->rc = SW_UNSUPPORTED;
  }
  p->out->pin[v] = split;
  p->out->any_pin = true;
}

/* Rules 3 and 4: a QFP8WT stick has two dims, and neither the second one nor K of its matmul is cut. */
static void pin_two_dim_sticks(struct pinning *p)
{
  const struct sw_work *w = p->w;
  const struct sw_work_tensor *kernel = w->n_in > 1 ? &w->in[1] : NULL;
  bool any = w->out.two_dim_stick;
  for (int i = 0; i < w->n_in; i++)
    any |= w->in[i].two_dim_stick;
  for (int v = 0; v < w->n_vars; v++) {
    bool second = (w->out.two_dim_stick && w->out.rank > 1 && sw_coord_uses(&w->out.coord[w->out.rank - 2], v)) ||
                  (kernel && kernel->two_dim_stick && kernel->rank > 1 &&
                   sw_coord_uses(&kernel->coord[kernel->rank - 2], v));
    bool matmul = w->kind == SW_WORK_MATMUL || w->kind == SW_WORK_MATMUL_FP8;
    if (second || (matmul && any && !w->var[v].is_output))
      pin(p, v, 1);
  }
}

/* Rules 5 and 6: the search of a top-k stays on one core, and a core finds at most 4 of the k rows: k 16 is cut into
 * 4 slices of 4, k 10 into 5 of 2. */
static void pin_topk(struct pinning *p)
{
  enum { ROWS_PER_CORE = 4 };
  const struct sw_work *w = p->w;
  int k = -1, without_input = 0;
  for (int v = 0; v < w->n_vars; v++) {
    if (!w->var[v].is_output) {
      pin(p, v, 1);
      continue;
    }
    bool read = false;
    for (int i = 0; i < w->n_in; i++)
      read |= sw_tensor_uses(&w->in[i], v);
    if (!read) {
      k = v;
      without_input++;
    }
  }
  if (without_input != 1)
    return;
  int64_t size = w->var[k].size;
  for (int64_t d = 1; d <= w->cores && d <= size; d++)
    if (size % d == 0 && size / d <= ROWS_PER_CORE) {
      if (d > 1)
        pin(p, k, d);
      return;
    }
  struct sw_fault *f =
      sw_fault(p->job, SW_UNSUPPORTED, "k = %" PRId64 " can't be cut into equal slices of at most %d rows on %d cores",
               size, ROWS_PER_CORE, w->cores);
  f->node = w->op;
  f->advice = "choose a k that has a divisor d <= cores with k / d <= 4";
  p->rc = SW_UNSUPPORTED;
}

enum sw_rc sw_work_limits(struct sw_job *job, const struct sw_work *w, const int64_t *committed,
                          struct sw_work_limits *out)
{
  *out = (struct sw_work_limits){0};
  struct pinning p = {.job = job, .w = w, .committed = committed, .out = out, .rc = SW_OK};
  for (int v = 0; v < w->n_vars; v++) {
    const struct sw_work_var *x = &w->var[v];
    bool padded = x->eps && x->size % x->eps;
    /* rule 1: emission masks it, and a mask counts from the first core */
    out->blocked[v] = padded && (!x->is_output || w->pads_output);
    if (v >= w->n_vars - w->window)
      out->blocked[v] = true; /* the hardware adds a window up on one core */
    if (v < w->n_written && v >= w->n_written - w->strided_window)
      out->blocked[v] = true; /* rule 2 */
  }
  pin_two_dim_sticks(&p);
  if (w->kind == SW_WORK_TOPK)
    pin_topk(&p);
  if (w->indirect)
    for (int v = 0; v < w->n_vars; v++)
      pin(&p, v, 1); /* rule 7 */
  for (int v = 0; v < w->n_vars; v++)
    if (committed[v] > 1)
      out->blocked[v] = false; /* the span went first */
  return p.rc;
}
