#include "compiler/verify/exec.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* How an op is run: by element (all its dims are the output's), or with dims that are summed away. */
enum kind {
  POINTWISE, /* f(inputs) */
  MOVE,      /* bits */
  CAST,      /* fp16 <-> fp32, lanes interleave */
  REDUCE,
  MATMUL,
  EXX2,
  NORMSCALE,
  TOPK,
};

enum fn {
  F_ABS, F_EXP, F_FLOOR, F_GELU, F_LOG, F_NEG, F_RECIPROCAL, F_RELU, F_RSQRT, F_SIGMOID, F_SILU, F_SQRT, F_TANH,
  F_CLIP, F_SOFTPLUS, F_ADD, F_SUB, F_MUL, F_DIV, F_MAX, F_MIN, F_EQ, F_NE, F_GT, F_GE, F_LT, F_LE, F_WHERE, F_NORM,
  F_FIRST, /* the value itself */
  F_SUM, F_MEAN, F_PROD, F_VALUE, F_INDEX, F_WIDEN, F_NARROW,
};

static const struct known {
  const char *name;
  enum kind kind;
  enum fn fn;
} known[] = {
    {"abs", POINTWISE, F_ABS}, {"exp", POINTWISE, F_EXP}, {"floor", POINTWISE, F_FLOOR},
    {"gelufwd", POINTWISE, F_GELU}, {"log", POINTWISE, F_LOG}, {"neg", POINTWISE, F_NEG},
    {"reciprocal", POINTWISE, F_RECIPROCAL}, {"relufwd", POINTWISE, F_RELU}, {"rsqrt", POINTWISE, F_RSQRT},
    {"sigmoid", POINTWISE, F_SIGMOID}, {"silu", POINTWISE, F_SILU}, {"sqrt", POINTWISE, F_SQRT},
    {"tanh", POINTWISE, F_TANH}, {"clip", POINTWISE, F_CLIP}, {"softplus", POINTWISE, F_SOFTPLUS},
    {"add", POINTWISE, F_ADD}, {"sub", POINTWISE, F_SUB}, {"mul", POINTWISE, F_MUL}, {"realdiv", POINTWISE, F_DIV},
    {"maximum", POINTWISE, F_MAX}, {"minimum", POINTWISE, F_MIN}, {"equal", POINTWISE, F_EQ},
    {"notequal", POINTWISE, F_NE}, {"greaterthan", POINTWISE, F_GT}, {"greaterequal", POINTWISE, F_GE},
    {"lesserthan", POINTWISE, F_LT}, {"lesserequal", POINTWISE, F_LE}, {"where3", POINTWISE, F_WHERE},
    {"layernormnorm", POINTWISE, F_NORM}, {"fp8todl16", POINTWISE, F_FIRST}, {"qfp8ch", POINTWISE, F_FIRST},
    {"identity", MOVE, F_FIRST}, {"ReStickifyOpHBM", MOVE, F_FIRST}, {"shuffle", MOVE, F_FIRST},
    {"dl16tofp32", CAST, F_WIDEN}, {"fp32todl16", CAST, F_NARROW},
    {"sum", REDUCE, F_SUM}, {"mean", REDUCE, F_MEAN}, {"max", REDUCE, F_MAX}, {"min", REDUCE, F_MIN},
    {"prod", REDUCE, F_PROD}, {"batchmatmul", MATMUL, F_SUM}, {"exx2", EXX2, F_SUM},
    {"layernormscale", NORMSCALE, F_FIRST}, {"topkvalue", TOPK, F_VALUE}, {"topkindex", TOPK, F_INDEX},
};

static const struct known *find(const char *fn)
{
  size_t n = strlen(fn), tail = strlen("nonstick");
  if (n > tail && !strcmp(fn + n - tail, "nonstick"))
    n -= tail;
  for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
    if (strlen(known[i].name) == n && !memcmp(known[i].name, fn, n))
      return &known[i];
  return NULL;
}

/* Everything about one tensor that a core needs: offset[d][i] = elements that local coordinate i of dim d adds, or
 * ABSENT for a row that does not exist here (a restickified dim that was rounded up for the other stick). */
#define ABSENT INT64_MIN

struct lane {
  const struct dsc_tensor *t;
  int bytes;
  int64_t *offset[DSC_MAX_DIMS];
  int64_t row; /* elements a row number counts (value tensors of gathers) */
  struct sim_memory *memory;
  int64_t base; /* byte offset in it of the core's own first element */
};

struct exec {
  struct sw_job *job;
  struct sw_arena *arena; /* of this execute */
  struct sim_card *card;
  const struct dsc *d;
  const struct sim_symbols *symbols;
  const struct known *how;
  struct lane lane[DSC_MAX_TENSORS];
  int core;
  uint32_t stamp;
  int64_t at[DSC_MAX_DIMS]; /* local coordinates */
  enum sw_rc rc;
};

static void wrong(struct exec *x, int tensor, const char *what)
{
  if (x->rc != SW_OK)
    return;
  struct sw_fault *f = sw_fault(x->job, SW_DIFFERENT, "%s (%s): tensor %d: %s", x->d->file, x->d->fn, tensor, what);
  f->source = x->d->file;
  x->rc = SW_DIFFERENT;
}

/* Extent of a dim in this tensor's memory, M5. */
static int64_t extent(const struct exec *x, const struct dsc_tensor *t, int dim, bool *rounded_up)
{
  const struct dsc *d = x->d;
  *rounded_up = false;
  if (t->max_dim[dim] > 0)
    return t->max_dim[dim];
  if (t->scale[dim] != 1)
    return 1;
  if (t->is_lx)
    return t->has_own ? d->size[dim] / t->own_split[dim] : d->slice[dim];
  int64_t n = d->size[dim];
  const struct dsc_window *w = &d->window[dim];
  if (w->is_set && t != &d->tensor[d->out])
    n = w->total - w->pad_front - w->pad_back;
  const struct dsc_tensor *other = t == &d->tensor[d->out] ? &d->tensor[d->in[0]] : &d->tensor[d->out];
  if (!strcmp(d->fn, "ReStickifyOpHBM") && dim != t->stick && dim == other->stick && t->gap[dim] &&
      t->gap[dim] < other->e) {
    *rounded_up = true;
    return n - t->gap[dim];
  }
  return n + t->gap[dim];
}

/* Slices of `dim` this tensor is cut into, and this core's slot among them. */
static int64_t slice_start(const struct exec *x, const struct dsc_tensor *t, int dim)
{
  if (t->has_own)
    return t->own_slot[x->core][dim] * (x->d->size[dim] / t->own_split[dim]);
  return x->d->slot[x->core][dim] * x->d->slice[dim];
}

/* M4: walk the tensor's own order from the innermost dim; the stride starts at one stick. A worked number: order
 * [mb,out,x], stick out, e 64, sizes 4, 128, 32: mb steps 64, out's sticks 64*4 = 256, x 256*2 = 512. */
static void prepare_offsets(struct exec *x, int number)
{
  struct lane *l = &x->lane[number];
  const struct dsc *d = x->d;
  const struct dsc_tensor *t = &d->tensor[number];
  l->t = t;
  l->bytes = sim_format_bytes(t->format);
  int64_t stride = t->e;
  l->row = t->e;
  for (int k = 0; k < t->n; k++) {
    int dim = t->order[k];
    bool rounded_up;
    int64_t ext = extent(x, t, dim, &rounded_up), steps = dim == t->stick ? (ext + t->e - 1) / t->e : ext;
    int64_t n = d->slice[dim];
    int64_t *offset = l->offset[dim] = SW_NEW_N(x->arena, int64_t, n);
    bool is_row = t->is_value && t->max_dim[dim] == 1;
    for (int64_t i = 0; i < n && t->scale[dim] == 1 && !is_row; i++) {
      offset[i] = dim == t->stick ? i / t->e * stride + i % t->e : i * stride;
      if (rounded_up && slice_start(x, t, dim) + i >= ext)
        offset[i] = ABSENT;
    }
    if (!is_row)
      l->row *= steps;
    stride *= steps;
  }
}

static void locate(struct exec *x, int number)
{
  struct lane *l = &x->lane[number];
  const struct dsc_tensor *t = l->t;
  int64_t start = t->start[x->core];
  if (t->is_lx) {
    l->memory = x->card->lx[x->core];
    l->base = start;
    return;
  }
  for (int i = 0; i < x->symbols->n; i++)
    if (x->symbols->ids[i] == start) {
      int64_t address = x->symbols->values[i], space = (address >> SIM_SPACE_BITS) - 1;
      if (space < 0 || space >= x->card->n_hbm) {
        wrong(x, number, "its address lies in no buffer");
        return;
      }
      l->memory = x->card->hbm[space];
      l->base = address - ((space + 1) << SIM_SPACE_BITS);
      return;
    }
  wrong(x, number, "its start address is a symbol that was not passed");
}

/* Byte position of the element at x->at, ABSENT if there is none. */
static int64_t position(const struct exec *x, const struct lane *l)
{
  int64_t elements = 0;
  for (int k = 0; k < l->t->n; k++) {
    int dim = l->t->order[k];
    int64_t o = l->offset[dim][x->at[dim]];
    if (o == ABSENT)
      return ABSENT;
    elements += o;
  }
  return l->base + l->bytes * elements;
}

static void clashed(struct exec *x, int tensor, enum sim_clash c, int64_t at)
{
  const char *name = x->lane[tensor].memory->name;
  struct sw_arena *a = x->job->arena;
  if (c == SIM_OUTSIDE)
    wrong(x, tensor, sw_arena_printf(a, "byte %" PRId64 " lies outside %s of %zu bytes", at, name,
                                     x->lane[tensor].memory->n));
  else if (c == SIM_RACE)
    wrong(x, tensor, sw_arena_printf(a, "byte %" PRId64 " of %s is written by one core and used by another in one execute",
                                     at, name));
}

static bool is_masked(const struct exec *x)
{
  const struct dsc *d = x->d;
  for (int i = 0; d->has_mask && i < d->n_dims; i++)
    if (d->is_masked[i] && d->slot[x->core][i] * d->slice[i] + x->at[i] >= d->mask_start[i])
      return true;
  return false;
}

/* Row number of a gather or scatter at x->at. */
static int64_t row_number(struct exec *x, const struct dsc_tensor *value)
{
  int i = value->related;
  struct sim_value v = {0, true};
  if (i < 0 || i >= x->d->n_tensors)
    wrong(x, 0, "a value tensor names no index tensor");
  else {
    int64_t at = position(x, &x->lane[i]);
    clashed(x, i, sim_load(x->lane[i].memory, at, SIM_INT32, x->stamp, &v), at);
    if (v.poison)
      wrong(x, i, "a row number was never written");
  }
  return v.poison ? 0 : (int64_t)v.v;
}

static int64_t place(struct exec *x, int tensor)
{
  struct lane *l = &x->lane[tensor];
  int64_t at = position(x, l);
  if (l->t->is_value && at != ABSENT)
    at += row_number(x, l->t) * l->row * l->bytes;
  return at;
}

static struct sim_value load(struct exec *x, int tensor, int64_t lane_bytes)
{
  struct sim_value v = {0, true};
  int64_t at = place(x, tensor);
  if (at == ABSENT || x->rc != SW_OK)
    return v;
  at += lane_bytes;
  clashed(x, tensor, sim_load(x->lane[tensor].memory, at, x->lane[tensor].t->format, x->stamp, &v), at);
  return v;
}

static void store(struct exec *x, int64_t lane_bytes, struct sim_value v)
{
  int tensor = x->d->out;
  int64_t at = place(x, tensor);
  if (at == ABSENT || x->rc != SW_OK)
    return;
  at += lane_bytes;
  clashed(x, tensor, sim_store(x->lane[tensor].memory, at, x->lane[tensor].t->format, x->stamp, v), at);
}

/* Next coordinates over the dims with over[dim]; false after the last. */
static bool advance(struct exec *x, const bool *over)
{
  for (int i = x->d->n_dims - 1; i >= 0; i--) {
    if (!over[i])
      continue;
    if (++x->at[i] < x->d->slice[i])
      return true;
    x->at[i] = 0;
  }
  return false;
}

static float pointwise(const struct exec *x, const float *v, int n)
{
  const struct dsc *d = x->d;
  float a = v[0], b = n > 1 ? v[1] : 0;
  switch (x->how->fn) {
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

static void run_pointwise(struct exec *x, const bool *all)
{
  const struct dsc *d = x->d;
  do {
    float v[DSC_MAX_TENSORS] = {0};
    bool poison[DSC_MAX_TENSORS] = {false}, any = false, masked = is_masked(x);
    for (int i = 0, k = 0; i < d->n_in; i++) {
      if (d->tensor[d->in[i]].is_index)
        continue;
      struct sim_value in = masked ? (struct sim_value){d->mask_value, false} : load(x, d->in[i], 0);
      v[k] = (float)in.v;
      any |= poison[k++] = in.poison;
    }
    if (x->how->fn == F_WHERE && !poison[0])
      any = poison[v[0] != 0 ? 1 : 2];
    store(x, 0, (struct sim_value){(double)pointwise(x, v, d->n_in), any});
  } while (x->rc == SW_OK && advance(x, all));
}

/* The first tensor of a move that is not an index is its source. */
static int source(const struct dsc *d)
{
  for (int i = 0; i < d->n_in; i++)
    if (!d->tensor[d->in[i]].is_index)
      return d->in[i];
  return d->in[0];
}

static void run_move(struct exec *x, const bool *all)
{
  int from = source(x->d), to = x->d->out;
  if (x->lane[from].bytes != x->lane[to].bytes) {
    wrong(x, to, "a move between elements of different size");
    return;
  }
  do {
    int64_t a = place(x, from), b = place(x, to);
    if (b == ABSENT || x->rc != SW_OK)
      continue;
    if (a == ABSENT)
      store(x, 0, (struct sim_value){0, true});
    else {
      enum sim_clash c = sim_copy(x->lane[to].memory, b, x->lane[from].memory, a, x->lane[to].bytes, x->stamp);
      clashed(x, c == SIM_OUTSIDE && (b < 0 || (size_t)b >= x->lane[to].memory->n) ? to : from, c, a);
    }
  } while (x->rc == SW_OK && advance(x, all));
}

/* M11: lane p of a fp16 stick and lane q of the pair of fp32 sticks: q = 4k + w if w < 4, else 32 + 4k + w - 4, with
 * k = p div 8, w = p mod 8. 13 (k 1, w 5) -> 37. */
static int64_t wide_lane(int64_t p)
{
  int64_t k = p / 8, w = p % 8;
  return w < 4 ? 4 * k + w : 32 + 4 * k + w - 4;
}

static void run_cast(struct exec *x, const bool *all)
{
  const struct dsc *d = x->d;
  int dim = d->tensor[d->in[0]].stick;
  int64_t narrow_of[64];
  for (int p = 0; p < 64; p++)
    narrow_of[wide_lane(p)] = p;
  if (d->tensor[d->out].stick != dim || d->slice[dim] % 64) {
    wrong(x, d->out, "a cast whose slices are not whole pairs of sticks");
    return;
  }
  do {
    int64_t out = x->at[dim];
    x->at[dim] = out / 64 * 64 + (x->how->fn == F_WIDEN ? narrow_of[out % 64] : wide_lane(out % 64));
    struct sim_value v = load(x, d->in[0], 0);
    x->at[dim] = out;
    store(x, 0, v);
  } while (x->rc == SW_OK && advance(x, all));
}

/* -- reductions: cores with equal slots in the output's dims form a group (M6) -- */

struct partial {
  double *sum, *second;
  bool *poison;
  int64_t n;
};

static double neutral(enum fn f)
{
  return f == F_MAX ? -INFINITY : f == F_MIN ? INFINITY : f == F_PROD ? 1 : 0;
}

static double combine(enum fn f, double a, double b)
{
  switch (f) {
  case F_MAX: return isnan(a) || isnan(b) ? NAN : a > b ? a : b;
  case F_MIN: return isnan(a) || isnan(b) ? NAN : a < b ? a : b;
  case F_PROD: return a * b;
  default: return a + b;
  }
}

static void add_element(struct exec *x, struct partial *p, int64_t at)
{
  const struct dsc *d = x->d;
  struct sim_value a = is_masked(x) ? (struct sim_value){d->mask_value, false} : load(x, d->in[0], 0);
  if (x->how->kind == MATMUL) {
    struct sim_value b = load(x, d->in[1], 0);
    /* The matrix unit masks lanes of the first operand beyond the real K, whatever they hold; in the files they are
     * the ones that meet zero rows of the second (superdsc.md M8). */
    bool masked = !b.poison && b.v == 0, zero = masked || (!a.poison && a.v == 0);
    if ((a.poison || b.poison) && !zero)
      p->poison[at] = true;
    else if (!a.poison && !b.poison && !masked)
      p->sum[at] += a.v * b.v;
    return;
  }
  if (a.poison) {
    p->poison[at] = true;
    return;
  }
  p->sum[at] = combine(x->how->fn, p->sum[at], a.v);
  if (p->second)
    p->second[at] += a.v * a.v;
}

static void accumulate(struct exec *x, const bool *kept, const bool *reduced, struct partial *p)
{
  int64_t at = 0;
  memset(x->at, 0, sizeof x->at);
  do {
    do
      add_element(x, p, at);
    while (x->rc == SW_OK && advance(x, reduced));
    at++;
  } while (x->rc == SW_OK && advance(x, kept));
}

static void write_out(struct exec *x, const bool *kept, const struct partial *p)
{
  const struct dsc *d = x->d;
  double scale = x->how->fn == F_MEAN ? dsc_constant(d, "scaling_factor", 1) : 1;
  double exx2 = dsc_constant(d, "exx2scale", 1);
  bool zero_mean = dsc_constant(d, "useZeroMean", 0) != 0;
  int64_t at = 0;
  memset(x->at, 0, sizeof x->at);
  do {
    if (x->how->kind == EXX2) {
      store(x, 0, (struct sim_value){zero_mean ? 0 : p->sum[at] * exx2, p->poison[at]});
      store(x, x->lane[d->out].bytes, (struct sim_value){p->second[at] * exx2, p->poison[at]});
    } else {
      store(x, 0, (struct sim_value){p->sum[at] * scale, p->poison[at]});
    }
    at++;
  } while (x->rc == SW_OK && advance(x, kept));
}

static void set_core(struct exec *x, int core)
{
  x->core = core;
  x->stamp = x->card->n_executes * 64 + (uint32_t)core + 1;
  memset(x->at, 0, sizeof x->at);
  for (int i = 0; i < x->d->n_tensors; i++) {
    prepare_offsets(x, i);
    locate(x, i);
  }
}

static bool same_slots(const struct dsc *d, int a, int b, const bool *dims)
{
  for (int i = 0; i < d->n_dims; i++)
    if (dims[i] && d->slot[a][i] != d->slot[b][i])
      return false;
  return true;
}

static void run_reduction(struct exec *x)
{
  const struct dsc *d = x->d;
  bool kept[DSC_MAX_DIMS] = {false}, reduced[DSC_MAX_DIMS] = {false}, all[DSC_MAX_DIMS];
  struct partial p = {.n = 1};
  for (int i = 0; i < d->n_dims; i++) {
    all[i] = true;
    kept[i] = d->tensor[d->out].scale[i] == 1;
    reduced[i] = !kept[i];
    p.n *= kept[i] ? d->slice[i] : 1;
  }
  bool done[DSC_MAX_CORES] = {false};
  for (int leader = 0; leader < d->n_cores && x->rc == SW_OK; leader++) {
    if (done[leader])
      continue;
    p.sum = SW_NEW_N(x->arena, double, p.n);
    p.second = x->how->kind == EXX2 ? SW_NEW_N(x->arena, double, p.n) : NULL;
    p.poison = SW_NEW_N(x->arena, bool, p.n);
    for (int64_t i = 0; i < p.n; i++)
      p.sum[i] = neutral(x->how->fn);
    int last = leader;
    for (int c = leader; c < d->n_cores && x->rc == SW_OK; c++) {
      if (done[c] || !same_slots(d, leader, c, kept))
        continue;
      bool twice = false;
      for (int b = leader; b < c; b++)
        twice |= done[b] && same_slots(d, b, c, all);
      done[c] = true;
      if (twice)
        continue;
      set_core(x, c);
      accumulate(x, kept, reduced, &p);
      bool later = false;
      for (int i = 0; i < d->n_dims; i++)
        later |= d->slot[c][i] > d->slot[last][i];
      last = later ? c : last;
    }
    if (x->rc == SW_OK) {
      set_core(x, last);
      write_out(x, kept, &p);
    }
  }
}

static void run_normscale(struct exec *x, const bool *all)
{
  float eps = (float)dsc_constant(x->d, "eps", 0);
  int in = x->d->in[0];
  do {
    struct sim_value mean = load(x, in, 0), square = load(x, in, x->lane[in].bytes);
    float m = (float)mean.v, s = (float)square.v;
    store(x, 0, (struct sim_value){(double)(1 / sqrtf(s - m * m + eps)), mean.poison || square.poison});
  } while (x->rc == SW_OK && advance(x, all));
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
static void run_topk(struct exec *x)
{
  const struct dsc *d = x->d;
  const struct dsc_tensor *in = &d->tensor[d->in[0]], *out = &d->tensor[d->out];
  int search = -1, rank = -1;
  bool rest[DSC_MAX_DIMS] = {false};
  for (int i = 0; i < d->n_dims; i++) {
    if (in->scale[i] == 1 && out->scale[i] != 1)
      search = i;
    else if (out->scale[i] == 1 && in->scale[i] != 1)
      rank = i;
    else
      rest[i] = true;
  }
  if (search < 0 || d->split[search] != 1) {
    wrong(x, d->in[0], "top-k without one searched dim on one core");
    return;
  }
  struct ranked *list = SW_NEW_N(x->arena, struct ranked, d->slice[search]);
  do {
    bool poison = false;
    for (int64_t i = 0; i < d->slice[search]; i++) {
      x->at[search] = i;
      struct sim_value v = load(x, d->in[0], 0);
      list[i] = (struct ranked){v.v, i};
      poison |= v.poison;
    }
    x->at[search] = 0;
    qsort(list, (size_t)d->slice[search], sizeof *list, by_value);
    int64_t n = rank < 0 ? 1 : d->slice[rank], first = rank < 0 ? 0 : d->slot[x->core][rank] * n;
    for (int64_t k = 0; k < n && first + k < d->slice[search]; k++) {
      if (rank >= 0)
        x->at[rank] = k;
      const struct ranked *e = &list[first + k];
      store(x, 0, (struct sim_value){x->how->fn == F_INDEX ? (double)e->index : e->v, poison});
    }
    if (rank >= 0)
      x->at[rank] = 0;
  } while (x->rc == SW_OK && advance(x, rest));
}

static void run_core(struct exec *x)
{
  bool all[DSC_MAX_DIMS];
  for (int i = 0; i < DSC_MAX_DIMS; i++)
    all[i] = true;
  switch (x->how->kind) {
  case POINTWISE: run_pointwise(x, all); break;
  case MOVE: run_move(x, all); break;
  case CAST: run_cast(x, all); break;
  case NORMSCALE: run_normscale(x, all); break;
  default: run_topk(x); break;
  }
}

/* Rules that hold whatever the data: M2. */
static void check_rules(struct exec *x)
{
  const struct dsc *d = x->d;
  const struct dsc_tensor *a = &d->tensor[source(d)], *out = &d->tensor[d->out];
  if (x->how->kind == MATMUL) {
    const struct dsc_tensor *b = &d->tensor[d->in[1]];
    if (out->scale[a->stick] == 1)
      wrong(x, 0, "the first operand's stick is not the summed dim");
    if (b->stick != out->stick)
      wrong(x, 1, "the second operand and the output stick on different dims");
  }
  bool scalar = true;
  for (int i = 0; i < d->n_dims; i++)
    scalar &= a->scale[i] != 1;
  if (!strcmp(d->fn, "identity") && a->stick != out->stick && !scalar)
    wrong(x, d->out, "identity can't change the stick");
  if (!strcmp(d->fn, "ReStickifyOpHBM") && a->stick == out->stick)
    wrong(x, d->out, "a restickify that keeps the stick");
}

enum sw_rc sim_execute(struct sw_job *job, struct sim_card *card, const struct dsc *d, const struct sim_symbols *symbols)
{
  const struct known *how = find(d->fn);
  if (!how) {
    sw_fault(job, SW_UNSUPPORTED, "%s: op %s is not simulated", d->file, d->fn)->source = d->file;
    return SW_UNSUPPORTED;
  }
  struct exec x = {.job = job, .card = card, .d = d, .symbols = symbols, .how = how};
  x.arena = sw_arena_new(job->arena, 0);
  card->n_executes++;
  check_rules(&x);
  if (how->kind == REDUCE || how->kind == MATMUL || how->kind == EXX2) {
    run_reduction(&x);
  } else {
    for (int c = 0; c < d->n_cores && x.rc == SW_OK; c++) {
      set_core(&x, c);
      if (x.rc == SW_OK)
        run_core(&x);
    }
  }
  sw_arena_free(x.arena);
  return x.rc;
}
