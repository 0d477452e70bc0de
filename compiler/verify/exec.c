#include "compiler/verify/function.h"
#include "compiler/verify/view.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static float pointwise(const struct sim_exec *x, enum sim_fn fn, const float *v, int n)
{
  const struct dsc *d = x->d;
  float a = v[0], b = n > 1 ? v[1] : 0;
  switch (fn) {
  case F_ABS: return fabsf(a);
  case F_EXP: return expf(a);
  case F_FLOOR: return floorf(a);
  case F_GELU: return 0.5f * a * (1 + erff(a * 0.70710678f));
  case F_LOG: return logf(a);
  case F_NEG: return -a;
  case F_RECIPROCAL: return 1 / a;
  case F_RELU: return a > 0 || isnan(a) ? a : 0;
  case F_RSQRT: return 1 / sqrtf(a);
  case F_SIGMOID: return 1 / (1 + expf(-a));
  case F_SILU: return a / (1 + expf(-a));
  case F_SQRT: return sqrtf(a);
  case F_TANH: return tanhf(a);
  case F_CLIP: {
    float low = (float)dsc_constant(d, "clipMin", -65504), high = (float)dsc_constant(d, "clipMax", 65504);
    return a < low ? low : a > high ? high : a;
  }
  case F_SOFTPLUS: {
    float beta = (float)dsc_constant(d, "softplusBeta", 1), limit = (float)dsc_constant(d, "softplusThresh", 20);
    return a * beta > limit ? a : log1pf(expf(a * beta)) / beta;
  }
  case F_ADD: return a + b;
  case F_SUB: return a - b;
  case F_MUL: return a * b;
  case F_DIV: return a / b;
  case F_MAX: return isnan(a) || isnan(b) ? NAN : a > b ? a : b;
  case F_MIN: return isnan(a) || isnan(b) ? NAN : a < b ? a : b;
  case F_EQ: return a == b;
  case F_NE: return a != b;
  case F_GT: return a > b;
  case F_GE: return a >= b;
  case F_LT: return a < b;
  case F_LE: return a <= b;
  case F_WHERE: return a != 0 ? b : v[2];
  case F_NORM: return (a - v[1]) * v[2] * (n > 3 ? v[3] : 1) + (n > 4 ? v[4] : 0);
  default: return a;
  }
}

/* Local coordinate of the inner dim from which all elements are masked; 0 when an outer one is masked already. */
static int64_t mask_begin(const struct sim_exec *x, const int64_t *at)
{
  const struct dsc *d = x->d;
  int64_t begin = INT64_MAX;
  for (int i = 0; d->has_mask && i < d->n_dims; i++) {
    if (!d->is_masked[i])
      continue;
    int64_t local = d->mask_start[i] - d->slot[x->core][i] * d->slice[i];
    if (i == x->inner)
      begin = local < begin ? local : begin;
    else if (at[i] >= local)
      return 0;
  }
  return begin;
}

static void outer_dims(const struct sim_exec *x, bool *outer)
{
  for (int i = 0; i < x->d->n_dims; i++)
    outer[i] = i != x->inner;
}

/* Results of a core, in the order of the output's view. */
struct results {
  double *v;
  unsigned char *poison, *set;
};

static struct results new_results(struct sw_arena *a, int64_t n)
{
  return (struct results){SW_NEW_N(a, double, n), SW_NEW_N(a, unsigned char, n), SW_NEW_N(a, unsigned char, n)};
}

/* An output that lacks a dim gets an element several times: it must be the same. */
static void put(struct sim_exec *x, struct results *r, int64_t at, double v, bool poison)
{
  if (r->set[at] && (r->poison[at] != poison || (r->v[at] != v && !poison)))
    sim_wrong(x, x->d->out, "one core writes an element twice, with different values");
  r->v[at] = v;
  r->poison[at] = poison;
  r->set[at] = 1;
}

/* The inputs that take part in a formula. */
static int operands(const struct sim_exec *x, int *out)
{
  int n = 0;
  for (int i = 0; i < x->d->n_in; i++)
    if (!x->d->tensor[x->d->in[i]].is_index)
      out[n++] = x->d->in[i];
  return n;
}

static void run_pointwise(struct sim_exec *x, enum sim_fn fn)
{
  const struct dsc *d = x->d;
  const struct sim_view *out = &x->view[d->out];
  struct results r = new_results(x->core_arena, out->n);
  int in[DSC_MAX_TENSORS], n = operands(x, in);
  int64_t at[DSC_MAX_DIMS] = {0};
  bool outer[DSC_MAX_DIMS];
  outer_dims(x, outer);
  for (int k = 0; k < n; k++)
    sim_read(x, in[k], 0);
  do {
    int64_t from[DSC_MAX_TENSORS], to = sim_place(out, d->n_dims, at), masked = mask_begin(x, at);
    for (int k = 0; k < n; k++)
      from[k] = sim_place(&x->view[in[k]], d->n_dims, at);
    for (int64_t j = 0; j < d->slice[x->inner] && x->rc == SW_OK; j++) {
      float v[DSC_MAX_TENSORS] = {0};
      /* masked lanes are nobody's: what is computed there must not be told from what nobody wrote */
      bool poison[DSC_MAX_TENSORS] = {false}, is_masked = j >= masked, any = is_masked;
      for (int k = 0; k < n; k++) {
        const struct sim_view *w = &x->view[in[k]];
        int64_t e = from[k] + j * w->step[x->inner];
        v[k] = is_masked ? (float)d->mask_value : (float)w->v[e];
        any |= poison[k] = !is_masked && w->poison[e];
      }
      if (fn == F_WHERE && !poison[0] && !is_masked)
        any = poison[v[0] != 0 ? 1 : 2];
      put(x, &r, to + j * out->step[x->inner], (double)pointwise(x, fn, v, n), any);
    }
  } while (x->rc == SW_OK && sim_advance(d->n_dims, d->slice, outer, at));
  sim_write(x, 0, r.v, r.poison);
}

/* The first tensor of a move that is not an index is its source. */
static int source(const struct dsc *d)
{
  for (int i = 0; i < d->n_in; i++)
    if (!d->tensor[d->in[i]].is_index)
      return d->in[i];
  return d->in[0];
}

static void run_move(struct sim_exec *x)
{
  const struct dsc *d = x->d;
  const struct sim_view *from = &x->view[source(d)], *to = &x->view[d->out];
  int64_t at[DSC_MAX_DIMS] = {0};
  bool outer[DSC_MAX_DIMS];
  outer_dims(x, outer);
  do {
    int64_t a = sim_place(from, d->n_dims, at), b = sim_place(to, d->n_dims, at);
    for (int64_t j = 0; j < d->slice[x->inner] && x->rc == SW_OK; j++)
      sim_move(x, source(d), a + j * from->step[x->inner], b + j * to->step[x->inner]);
  } while (x->rc == SW_OK && sim_advance(d->n_dims, d->slice, outer, at));
}

/* -- shuffle (M6): source and destination are cut by maps of their own; all source slices are pasted together, then cut
 * anew. Paste[] holds the whole tensor, dims in the op's order. -- */

static int64_t paste_place(const struct sim_exec *x, const struct sim_view *v, const int64_t *at)
{
  const struct dsc *d = x->d;
  int64_t i = 0;
  for (int k = 0; k < d->n_dims; k++)
    i = i * d->size[k] + (v->step[k] ? v->t->own_slot[x->core][k] * v->count[k] + at[k] : 0);
  return i;
}

static void run_shuffle(struct sim_exec *x)
{
  const struct dsc *d = x->d;
  int64_t n = 1;
  for (int k = 0; k < d->n_dims; k++)
    n *= d->size[k];
  struct results paste = new_results(x->arena, n);
  memset(paste.poison, 1, (size_t)n);
  for (int half = 0; half < 2; half++)
    for (int c = 0; c < d->n_cores && x->rc == SW_OK; c++) {
      sim_enter(x, c);
      struct sim_view *v = &x->view[half ? d->out : d->in[0]];
      if (!v->t->has_own)
        sim_wrong(x, half, "a shuffle whose tensor has no map of its own");
      if (x->rc != SW_OK)
        return;
      struct results r = new_results(x->core_arena, v->n);
      int64_t at[DSC_MAX_DIMS] = {0};
      bool all[DSC_MAX_DIMS];
      for (int k = 0; k < d->n_dims; k++)
        all[k] = v->step[k] != 0;
      if (!half)
        sim_read(x, d->in[0], 0);
      do {
        int64_t whole = paste_place(x, v, at), local = sim_place(v, d->n_dims, at);
        if (half)
          put(x, &r, local, paste.v[whole], paste.poison[whole]);
        else
          put(x, &paste, whole, v->v[local], v->poison[local]);
      } while (x->rc == SW_OK && sim_advance(d->n_dims, v->count, all, at));
      if (half)
        sim_write(x, 0, r.v, r.poison);
    }
}

/* M11: lane p of a fp16 stick and lane q of the pair of fp32 sticks: q = 4k + w if w < 4, else 32 + 4k + w - 4, with
 * k = p div 8, w = p mod 8. 13 (k 1, w 5) -> 37. */
static int64_t wide_lane(int64_t p)
{
  int64_t k = p / 8, w = p % 8;
  return w < 4 ? 4 * k + w : 32 + 4 * k + w - 4;
}

static void run_cast(struct sim_exec *x, enum sim_fn fn)
{
  const struct dsc *d = x->d;
  const struct sim_view *in = &x->view[d->in[0]], *out = &x->view[d->out];
  struct results r = new_results(x->core_arena, out->n);
  int64_t at[DSC_MAX_DIMS] = {0}, narrow_of[64];
  bool outer[DSC_MAX_DIMS];
  outer_dims(x, outer);
  for (int p = 0; p < 64; p++)
    narrow_of[wide_lane(p)] = p;
  if (in->t->stick != x->inner || d->slice[x->inner] % 64) {
    sim_wrong(x, d->out, "a cast whose slices are not whole pairs of sticks");
    return;
  }
  sim_read(x, d->in[0], 0);
  do {
    int64_t a = sim_place(in, d->n_dims, at), b = sim_place(out, d->n_dims, at);
    for (int64_t j = 0; j < d->slice[x->inner] && x->rc == SW_OK; j++) {
      int64_t e = a + (j / 64 * 64 + (fn == F_WIDEN ? narrow_of[j % 64] : wide_lane(j % 64))) * in->step[x->inner];
      put(x, &r, b + j * out->step[x->inner], in->v[e], in->poison[e]);
    }
  } while (x->rc == SW_OK && sim_advance(d->n_dims, d->slice, outer, at));
  sim_write(x, 0, r.v, r.poison);
}

/* -- reductions: cores with equal slots in the output's dims form a group (M6) -- */

struct partial {
  double *sum, *second;
  unsigned char *poison;
};

static double neutral(enum sim_fn f)
{
  return f == F_MAX ? -INFINITY : f == F_MIN ? INFINITY : f == F_PROD ? 1 : 0;
}

static double combine(enum sim_fn f, double a, double b)
{
  switch (f) {
  case F_MAX: return isnan(a) || isnan(b) ? NAN : a > b ? a : b;
  case F_MIN: return isnan(a) || isnan(b) ? NAN : a < b ? a : b;
  case F_PROD: return a * b;
  default: return a + b;
  }
}

static void reduce_core(struct sim_exec *x, enum sim_fn fn, struct partial *p)
{
  const struct dsc *d = x->d;
  const struct sim_view *in = &x->view[d->in[0]], *out = &x->view[d->out];
  int64_t at[DSC_MAX_DIMS] = {0};
  bool outer[DSC_MAX_DIMS];
  outer_dims(x, outer);
  sim_read(x, d->in[0], 0);
  do {
    int64_t a = sim_place(in, d->n_dims, at), b = sim_place(out, d->n_dims, at), masked = mask_begin(x, at);
    for (int64_t j = 0; j < d->slice[x->inner]; j++, a += in->step[x->inner], b += out->step[x->inner]) {
      double v = j < masked ? in->v[a] : d->mask_value;
      p->poison[b] |= j < masked && in->poison[a];
      p->sum[b] = combine(fn, p->sum[b], v);
      if (p->second)
        p->second[b] += v * v;
    }
  } while (sim_advance(d->n_dims, d->slice, outer, at));
}

/* Sum of products over one row of the inner dim. Lanes of the first operand beyond the real K are poison, and in the files
 * they meet zero rows of the second (M8): poison x 0 counts as 0. Whatever has a value is multiplied: infinity x 0 is NaN.
 * Poison is stored as 0. */
static void products(const struct sim_view *a, int64_t ia, const struct sim_view *b, int64_t ib, struct partial *p,
                     int64_t ic, int64_t n, int64_t sa, int64_t sb, int64_t sc)
{
  bool plain = sa == 0 && sb == 1 && sc == 1 && !b->has_poison && !a->poison[ia] && isfinite(a->v[ia]);
  if (plain) {
    const double f = a->v[ia], *restrict from = b->v + ib;
    double *restrict to = p->sum + ic;
    for (int64_t j = 0; j < n; j++)
      to[j] += f * from[j];
    return;
  }
  for (int64_t j = 0; j < n; j++, ia += sa, ib += sb, ic += sc) {
    bool zero = (!b->poison[ib] && b->v[ib] == 0) || (!a->poison[ia] && a->v[ia] == 0);
    if (!a->poison[ia] && !b->poison[ib])
      p->sum[ic] += a->v[ia] * b->v[ib];
    else if (!zero)
      p->poison[ic] = 1;
  }
}

static void multiply_core(struct sim_exec *x, struct partial *p)
{
  const struct dsc *d = x->d;
  const struct sim_view *a = &x->view[d->in[0]], *b = &x->view[d->in[1]], *out = &x->view[d->out];
  int i = x->inner;
  int64_t at[DSC_MAX_DIMS] = {0};
  bool outer[DSC_MAX_DIMS];
  outer_dims(x, outer);
  sim_read(x, d->in[0], 0);
  sim_read(x, d->in[1], 0);
  if (x->rc != SW_OK)
    return;
  do
    products(a, sim_place(a, d->n_dims, at), b, sim_place(b, d->n_dims, at), p, sim_place(out, d->n_dims, at),
             d->slice[i], a->step[i], b->step[i], out->step[i]);
  while (sim_advance(d->n_dims, d->slice, outer, at));
}

static void write_out(struct sim_exec *x, const struct sim_function *how, const struct partial *p)
{
  const struct dsc *d = x->d;
  int64_t n = x->view[d->out].n;
  double scale = how->fn == F_MEAN   ? dsc_constant(d, "scaling_factor", 1)
                 : how->fn == F_POOL ? dsc_constant(d, "nmap", 1)
                 : how->kind == SIM_EXX2 ? dsc_constant(d, "exx2scale", 1)
                                     : 1;
  for (int64_t i = 0; i < n; i++)
    p->sum[i] *= scale;
  if (how->kind == SIM_EXX2) {
    for (int64_t i = 0; i < n; i++)
      p->second[i] *= scale;
    if (dsc_constant(d, "useZeroMean", 0) != 0)
      memset(p->sum, 0, sizeof *p->sum * (size_t)n);
    sim_write(x, x->view[d->out].bytes, p->second, p->poison);
  }
  sim_write(x, 0, p->sum, p->poison);
}

static bool same_slots(const struct dsc *d, int a, int b, const bool *dims)
{
  for (int i = 0; i < d->n_dims; i++)
    if (dims[i] && d->slot[a][i] != d->slot[b][i])
      return false;
  return true;
}

static void run_reduction(struct sim_exec *x, const struct sim_function *how)
{
  const struct dsc *d = x->d;
  bool kept[DSC_MAX_DIMS], all[DSC_MAX_DIMS], done[DSC_MAX_CORES] = {false};
  for (int i = 0; i < d->n_dims; i++) {
    all[i] = true;
    kept[i] = d->tensor[d->out].scale[i] == 1;
  }
  for (int leader = 0; leader < d->n_cores && x->rc == SW_OK; leader++) {
    if (done[leader])
      continue;
    struct sw_arena *a = sw_arena_new(x->arena, 0);
    struct partial p = {0};
    int last = leader;
    for (int c = leader; c < d->n_cores && x->rc == SW_OK; c++) {
      if (done[c] || !same_slots(d, leader, c, kept))
        continue;
      bool twice = false, later = false;
      for (int b = leader; b < c; b++)
        twice |= done[b] && same_slots(d, b, c, all);
      done[c] = true;
      if (twice)
        continue;
      sim_enter(x, c);
      if (x->rc == SW_OK && !p.sum) {
        int64_t n = x->view[d->out].n;
        p = (struct partial){SW_NEW_N(a, double, n), how->kind == SIM_EXX2 ? SW_NEW_N(a, double, n) : NULL,
                             SW_NEW_N(a, unsigned char, n)};
        for (int64_t i = 0; i < n; i++)
          p.sum[i] = neutral(how->fn);
      }
      if (x->rc == SW_OK && how->kind == SIM_MATMUL)
        multiply_core(x, &p);
      else if (x->rc == SW_OK)
        reduce_core(x, how->fn, &p);
      for (int i = 0; i < d->n_dims; i++)
        later |= d->slot[c][i] > d->slot[last][i];
      last = later ? c : last;
    }
    if (x->rc == SW_OK) {
      sim_enter(x, last);
      write_out(x, how, &p);
    }
    sw_arena_free(a);
  }
}

static void run_normscale(struct sim_exec *x)
{
  const struct dsc *d = x->d;
  float eps = (float)dsc_constant(d, "eps", 0);
  const struct sim_view *in = &x->view[d->in[0]], *out = &x->view[d->out];
  struct results r = new_results(x->core_arena, out->n);
  int64_t at[DSC_MAX_DIMS] = {0};
  bool all[DSC_MAX_DIMS];
  memset(all, true, sizeof all);
  sim_read(x, d->in[0], 0);
  const double *mean = in->v;
  const unsigned char *mean_poison = in->poison;
  sim_read(x, d->in[0], in->bytes);
  do {
    int64_t e = sim_place(in, d->n_dims, at);
    float m = (float)mean[e], s = (float)in->v[e];
    put(x, &r, sim_place(out, d->n_dims, at), (double)(1 / sqrtf(s - m * m + eps)), mean_poison[e] || in->poison[e]);
  } while (x->rc == SW_OK && sim_advance(d->n_dims, d->slice, all, at));
  sim_write(x, 0, r.v, r.poison);
}

struct ranked {
  double v;
  int64_t index;
};

static int by_value(const void *a, const void *b)
{
  const struct ranked *x = a, *y = b;
  return x->v != y->v ? (x->v < y->v) - (x->v > y->v) : (x->index > y->index) - (x->index < y->index);
}

/* Searched dim: the input's that the output lacks; rank dim: the output's that the input lacks. */
static void run_topk(struct sim_exec *x, enum sim_fn fn)
{
  const struct dsc *d = x->d;
  const struct sim_view *in = &x->view[d->in[0]], *out = &x->view[d->out];
  int search = -1, rank = -1;
  bool rest[DSC_MAX_DIMS] = {false};
  for (int i = 0; i < d->n_dims; i++) {
    if (in->t->scale[i] == 1 && out->t->scale[i] != 1)
      search = i;
    else if (out->t->scale[i] == 1 && in->t->scale[i] != 1)
      rank = i;
    else
      rest[i] = true;
  }
  if (search < 0 || d->split[search] != 1) {
    sim_wrong(x, d->in[0], "top-k without one searched dim on one core");
    return;
  }
  struct results r = new_results(x->core_arena, out->n);
  struct ranked *list = SW_NEW_N(x->core_arena, struct ranked, d->slice[search]);
  int64_t at[DSC_MAX_DIMS] = {0};
  memset(r.poison, 1, (size_t)out->n);
  sim_read(x, d->in[0], 0);
  do {
    bool poison = false;
    int64_t from = sim_place(in, d->n_dims, at), to = sim_place(out, d->n_dims, at);
    for (int64_t i = 0; i < d->slice[search]; i++, from += in->step[search]) {
      list[i] = (struct ranked){in->v[from], i};
      poison |= in->poison[from];
    }
    qsort(list, (size_t)d->slice[search], sizeof *list, by_value);
    int64_t n = rank < 0 ? 1 : d->slice[rank], first = rank < 0 ? 0 : d->slot[x->core][rank] * n;
    for (int64_t k = 0; k < n && first + k < d->slice[search]; k++) {
      const struct ranked *e = &list[first + k];
      put(x, &r, to + (rank < 0 ? 0 : k * out->step[rank]), fn == F_INDEX ? (double)e->index : e->v, poison);
    }
  } while (x->rc == SW_OK && sim_advance(d->n_dims, d->slice, rest, at));
  sim_write(x, 0, r.v, r.poison);
}

static void run_core(struct sim_exec *x, const struct sim_function *how)
{
  switch (how->kind) {
  case SIM_POINTWISE: run_pointwise(x, how->fn); break;
  case SIM_MOVE: run_move(x); break;
  case SIM_CAST: run_cast(x, how->fn); break;
  case SIM_NORMSCALE: run_normscale(x); break;
  default: run_topk(x, how->fn); break;
  }
}

/* Rules that hold whatever the data: M2. */
static void check_rules(struct sim_exec *x)
{
  const struct dsc *d = x->d;
  const struct dsc_tensor *a = &d->tensor[source(d)], *out = &d->tensor[d->out];
  if (!strncmp(d->fn, "batchmatmul", 11)) {
    const struct dsc_tensor *b = &d->tensor[d->in[1]];
    if (out->scale[a->stick] == 1)
      sim_wrong(x, 0, "the first operand's stick is not the summed dim");
    if (b->stick != out->stick)
      sim_wrong(x, 1, "the second operand and the output stick on different dims");
  }
  bool scalar = true;
  for (int i = 0; i < d->n_dims; i++)
    scalar &= a->scale[i] != 1;
  if (!strcmp(d->fn, "identity") && a->stick != out->stick && !scalar)
    sim_wrong(x, d->out, "identity can't change the stick");
  if (!strcmp(d->fn, "ReStickifyOpHBM") && a->stick == out->stick)
    sim_wrong(x, d->out, "a restickify that keeps the stick");
}

/* Whether the cores of an execute work on one result. */
static bool is_joint(enum sim_kind kind)
{
  return kind == SIM_SHUFFLE || kind == SIM_REDUCE || kind == SIM_MATMUL || kind == SIM_EXX2;
}

/* First and last byte of a view. */
static void range_of(const struct sim_view *v, int64_t *first, int64_t *last)
{
  *first = INT64_MAX;
  *last = -1;
  for (int64_t k = 0; k < v->n; k++) {
    if (v->at[k] < 0)
      continue;
    *first = v->at[k] < *first ? v->at[k] : *first;
    *last = v->at[k] + v->bytes - 1 > *last ? v->at[k] + v->bytes - 1 : *last;
  }
}

static int by_number(const void *a, const void *b)
{
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

static bool share_bytes(struct sw_arena *arena, const struct sim_view *v, const struct sim_view *w)
{
  struct sw_arena *a = sw_arena_new(arena, 0);
  int64_t *x = sw_arena_copy(a, v->at, (size_t)v->n, sizeof *x), *y = sw_arena_copy(a, w->at, (size_t)w->n, sizeof *y);
  bool found = false;
  qsort(x, (size_t)v->n, sizeof *x, by_number);
  qsort(y, (size_t)w->n, sizeof *y, by_number);
  for (int64_t i = 0, k = 0; i < v->n && k < w->n && !found;) {
    found = x[i] >= 0 && y[k] >= 0 && x[i] < y[k] + w->bytes && y[k] < x[i] + v->bytes;
    *(x[i] < y[k] ? &i : &k) += 1;
  }
  sw_arena_free(a);
  return found;
}

/* A core takes the elements of an op in no order either: what it writes over must be the very elements that it makes the new
 * ones of, one by one. Gives the operand for which that is not so, or -1. */
static int overwritten(struct sim_exec *x, bool one_by_one)
{
  const struct dsc *d = x->d;
  const struct sim_view *out = &x->view[d->out];
  int64_t first, last, out_first, out_last;
  range_of(out, &out_first, &out_last);
  for (int i = 0; i < d->n_tensors; i++) {
    const struct sim_view *v = &x->view[i];
    if (i == d->out || v->memory != out->memory)
      continue;
    range_of(v, &first, &last);
    if (last < out_first || out_last < first ||
        (one_by_one && v->n == out->n && !memcmp(v->at, out->at, sizeof *v->at * (size_t)v->n)))
      continue;
    if (share_bytes(x->core_arena, v, out))
      return i;
  }
  return -1;
}

/* An op whose dims have the sizes of this run: `N_` is the largest one and what memory is laid out for, a core does its
 * part of the size. False after a fault. */
static bool take_sizes(struct sw_job *job, const struct dsc *d, const struct sim_symbols *symbols, struct dsc *now)
{
  const char *what = NULL;
  *now = *d;
  for (int k = 0; k < d->n_symbols && !what; k++) {
    int dim = d->symbol_dim[k];
    int64_t size = -1;
    for (int i = 0; i < symbols->n; i++)
      if (symbols->ids[i] == d->symbol[k])
        size = symbols->values[i];
    if (size < 1 || size > d->size[dim] || size % d->split[dim])
      what = "a dynamic size that its cores can't share out evenly";
    for (int t = 0; t < d->n_tensors; t++)
      if (d->tensor[t].scale[dim] == 1 && (d->tensor[t].is_lx || d->tensor[t].stick == dim || d->tensor[t].is_index))
        what = "a dynamic size in the stick, in LX or of row numbers";
    now->slice[dim] = size / d->split[dim];
  }
  if (what)
    sw_fault(job, SW_DIFFERENT, "%s: %s", d->file, what)->source = d->file;
  return !what;
}

enum sw_rc sim_execute(struct sw_job *job, struct sim_card *card, const struct dsc *d, const struct sim_symbols *symbols)
{
  const struct sim_function *how = sim_function_find(d->fn);
  struct dsc now;
  int lost = -1;
  if (!how) {
    sw_fault(job, SW_UNSUPPORTED, "op %s is not simulated", d->fn)->source = d->file;
    return SW_UNSUPPORTED;
  }
  if (d->n_symbols) {
    if (!take_sizes(job, d, symbols, &now))
      return SW_DIFFERENT;
    d = &now;
  }
  struct sim_exec x = {.job = job, .card = card, .d = d, .symbols = symbols, .inner = d->tensor[d->out].stick};
  int64_t first_base[DSC_MAX_TENSORS];
  x.arena = sw_arena_new(job->arena, 0);
  x.core_arena = sw_arena_new(x.arena, 0);
  card->n_executes++;
  check_rules(&x);
  for (int c = 0; c < d->n_cores && x.rc == SW_OK; c++) {
    sim_enter(&x, c);
    if (x.rc == SW_OK)
      sim_check_addresses(&x, first_base);
    if (x.rc == SW_OK && lost < 0)
      lost = overwritten(&x, how->kind == SIM_POINTWISE || how->kind == SIM_MOVE);
    if (x.rc == SW_OK && !is_joint(how->kind))
      run_core(&x, how);
  }
  if (x.rc == SW_OK && how->kind == SIM_SHUFFLE)
    run_shuffle(&x);
  else if (x.rc == SW_OK && is_joint(how->kind))
    run_reduction(&x, how);
  if (x.rc == SW_OK && lost >= 0) /* what cores do to each other is told first */
    sim_wrong(&x, lost, "the op writes over it while it still reads it");
  sw_arena_free(x.arena);
  return x.rc;
}
