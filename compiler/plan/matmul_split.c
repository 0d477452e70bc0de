/* Pass 2: the split of a matmul by cost. The cost function is a fit to one hardware build; its shape terms encode
 * measurements, not physics. Reference: work-division.md section 9.
 *
 * 512 x 4096 by 4096 x 4096 on 32 cores: m 4, n 8 costs 399.56 us (compute 174.76, memory 204.8, lanes 20), m 32
 * 874.01. */
#include "compiler/plan/division.h"

#include <math.h>
#include <string.h>

static double positive(double x)
{
  return x > 0 ? x : 0;
}

double sw_matmul_split_cost(const struct sw_matmul_sizes *z, const int64_t s[4], int cores)
{
  const double macs_per_us = 1536000, bytes_per_us = 204800, pt_rows = 8, passes = 5, cohort = 8, n_tile = 512;
  int64_t used = s[0] * s[1] * s[2] * s[3];
  if (used <= 0 || used > cores)
    return INFINITY;
  double b = (double)s[0], m = (double)s[1], n = (double)s[2], k = (double)s[3];
  double mt = floor(z->m / m), nt = floor(z->n / n);
  double macs = z->b * z->m * z->n * z->k;

  double e = fmin(1, pow(fmax(1, mt / pt_rows) / passes, 0.25));
  double compute = macs / (double)used / (macs_per_us * e);
  double followers = z->shared ? fmax(m, n) : n;
  double bytes = 2 * (z->b * z->m * z->k + (z->shared ? 1 : z->b) * z->k * z->n + z->b * z->m * z->n);
  double hbm = bytes / bytes_per_us * fmax(1, pow(followers / cohort, 0.75));
  double psum = positive(k - 1) * (z->b * z->m * z->n / (b * m * n)) * (z->shared ? 1e-3 : 1e-4);
  double target = fmax(4, fmin(floor((double)cores / 2), fmax(1, floor(z->m / 32))));
  double lanes = 10 * positive(log2(target / m));
  double underfill = 30 * positive(log2(16 / fmax(1, mt)));
  double wide = 25 * positive(log2(fmax(1, nt) / n_tile));
  double value = !z->shared && n > 1 && mt >= 16 ? 20 * positive(log2(z->k / z->n)) * log2(n) : 0;
  double narrow = z->shared && mt >= 16 ? 5 * positive(log2(4096 / z->n)) * positive(log2(fmax(1, nt) / 128)) : 0;
  double down = z->shared && n > 1 ? 10 * positive(log2(z->k / z->n)) * log2(n) : 0;
  double idle = 150 * positive(log2((double)cores / (double)used));
  double batch = z->shared ? 0 : 10 * log2(fmax(1, b));
  return compute + hbm + psum + lanes + underfill + wide + value + narrow + down + idle + batch;
}

/* Which variables play batch, M, N and K. */
struct roles {
  int m, n, k;
  int batch[SW_MAX_LOOPS], n_batch;
  bool shared;
};

/* False when the op is outside the model: N of one stick, no rows, no row dim that only one operand has. */
static bool find_roles(const struct sw_work *w, struct roles *r)
{
  int rows[SW_MAX_LOOPS], n_rows = 0, n_sticks = 0, n_reduced = 0, n_candidates = 0;
  *r = (struct roles){.m = -1};
  for (int v = 0; v < w->n_vars; v++) {
    if (!w->var[v].is_output) {
      r->k = v;
      n_reduced++;
    } else if (w->var[v].eps) {
      r->n = v;
      n_sticks++;
    } else {
      rows[n_rows++] = v;
    }
  }
  if (n_sticks != 1 || n_reduced != 1 || !n_rows)
    return false;
  for (int i = 0; i < n_rows; i++) {
    int readers = 0;
    for (int t = 0; t < w->n_in; t++)
      readers += sw_tensor_uses(&w->in[t], rows[i]);
    if (readers != 1)
      continue;
    n_candidates++;
    int64_t step = w->out_step[rows[i]];
    if (r->m < 0 || (step && step < w->out_step[r->m]))
      r->m = rows[i]; /* the innermost row dim */
  }
  if (r->m < 0)
    return false;
  for (int i = 0; i < n_rows; i++)
    if (rows[i] != r->m)
      r->batch[r->n_batch++] = rows[i];
  r->shared = n_candidates > 1 || !r->n_batch;
  return true;
}

static struct sw_matmul_sizes sizes_of(const struct sw_work *w, const struct roles *r)
{
  double eps = (double)w->out.device_size[w->out.rank - 1];
  struct sw_matmul_sizes z = {.b = 1,
                              .m = (double)w->var[r->m].size,
                              .n = (double)w->var[r->n].adjusted * eps,
                              .k = (double)w->var[r->k].adjusted * eps,
                              .shared = r->shared};
  for (int i = 0; i < r->n_batch; i++)
    z.b *= (double)w->var[r->batch[i]].size;
  return z;
}

static double cost_of(const struct sw_work *w, const struct roles *r, const struct sw_matmul_sizes *z,
                      const int64_t *split)
{
  int64_t bmnk[4] = {1, split[r->m], split[r->n], split[r->k]};
  for (int i = 0; i < r->n_batch; i++)
    bmnk[0] *= split[r->batch[i]];
  return sw_matmul_split_cost(z, bmnk, w->cores);
}

double sw_matmul_cost(const struct sw_work *w, const int64_t *split)
{
  struct roles r;
  if (w->kind != SW_WORK_MATMUL || !find_roles(w, &r))
    return -1;
  struct sw_matmul_sizes z = sizes_of(w, &r);
  return cost_of(w, &r, &z, split);
}

struct search {
  const struct sw_work *w;
  const struct sw_work_limits *limits;
  const struct roles *roles;
  struct sw_matmul_sizes sizes;
  int order[SW_MAX_LOOPS], n_order; /* batch.., m, n, k: the last one fastest */
  int64_t trial[SW_MAX_LOOPS], best[SW_MAX_LOOPS];
  double best_cost;
};

/* All divisors of the variables from order[at] on that `left` cores allow; the first of equal costs stays. */
static void search(struct search *s, int at, int64_t left)
{
  if (at == s->n_order) {
    double cost = cost_of(s->w, s->roles, &s->sizes, s->trial);
    if (cost < s->best_cost) {
      s->best_cost = cost;
      memcpy(s->best, s->trial, sizeof s->best);
    }
    return;
  }
  int v = s->order[at];
  int64_t basis = sw_work_basis(s->w, v), most = s->limits->blocked[v] ? 1 : left;
  for (int64_t d = 1; d <= most && d <= basis; d++) {
    if (basis % d)
      continue;
    s->trial[v] = d;
    search(s, at + 1, left / d);
  }
}

bool sw_divide_matmul(const struct sw_work *w, const struct sw_work_limits *limits, const int64_t *committed,
                      const int64_t *greedy, int64_t *split)
{
  struct roles r;
  if (w->kind != SW_WORK_MATMUL || w->greedy_only || limits->any_pin || sw_split_product(committed, w->n_vars) > 1 ||
      !find_roles(w, &r))
    return false;
  struct search s = {.w = w, .limits = limits, .roles = &r, .sizes = sizes_of(w, &r), .best_cost = INFINITY};
  for (int i = 0; i < r.n_batch; i++)
    s.order[s.n_order++] = r.batch[i];
  s.order[s.n_order++] = r.m;
  s.order[s.n_order++] = r.n;
  s.order[s.n_order++] = r.k;
  search(&s, 0, w->cores);
  if (isinf(s.best_cost) || sw_split_product(s.best, w->n_vars) < sw_split_product(greedy, w->n_vars))
    return false;
  memcpy(split, s.best, sizeof s.best);
  return true;
}
