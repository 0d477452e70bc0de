#include "compiler/verify/view.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

void sim_wrong(struct sim_exec *x, int tensor, const char *what)
{
  if (x->rc != SW_OK)
    return;
  struct sw_fault *f = sw_fault(x->job, SW_DIFFERENT, "%s: tensor %d: %s", x->d->fn, tensor, what);
  f->source = x->d->file;
  x->rc = SW_DIFFERENT;
}

static const struct dsc_window *window_of(const struct sim_exec *x, const struct dsc_tensor *t, int dim)
{
  const struct dsc_window *w = &x->d->window[dim];
  return w->is_set && t == &x->d->tensor[x->d->in[0]] ? w : NULL;
}

/* Extent of a dim in this tensor's memory, M5. */
static int64_t extent(const struct sim_exec *x, const struct dsc_tensor *t, int dim, bool *rounded_up)
{
  const struct dsc *d = x->d;
  *rounded_up = false;
  if (t->max_dim[dim] > 0)
    return t->max_dim[dim];
  if (t->scale[dim] != 1)
    return 1;
  const struct dsc_window *w = window_of(x, t, dim);
  if (t->is_lx)
    return t->has_own ? d->size[dim] / t->own_split[dim] : d->slice[dim];
  int64_t n = w ? w->total - w->pad_front - w->pad_back : d->size[dim];
  const struct dsc_tensor *other = t == &d->tensor[d->out] ? &d->tensor[d->in[0]] : &d->tensor[d->out];
  if (!strcmp(d->fn, "ReStickifyOpHBM") && dim != t->stick && dim == other->stick && t->gap[dim] &&
      t->gap[dim] < other->e) {
    *rounded_up = true;
    return n - t->gap[dim];
  }
  return n + t->gap[dim];
}

/* Whether the elements differ along a dim; a row dim of a gather's value tensor is reached through the index. */
static bool varies(const struct dsc_tensor *t, int dim)
{
  return t->scale[dim] == 1 && !(t->is_value && t->max_dim[dim] == 1);
}

/* Elements of a dim that lie in one stick. Of a stick of two dims [2, 64] it is 64 of the second, one after the other, and
 * 2 of the first, 64 apart. No recorded program tells how the card orders the 128; writer and reader of such a stick are
 * both card functions (qfp8wt, batchmatmulfp8), so any one order gives the same results. */
static int64_t in_stick(const struct dsc_tensor *t, int dim)
{
  return dim == t->stick ? t->e : dim == t->rows_dim ? t->rows : 1;
}

static int64_t slot_start(const struct sim_exec *x, const struct sim_view *v, int dim)
{
  const struct dsc_tensor *t = v->t;
  return (t->has_own ? t->own_slot[x->core][dim] : x->d->slot[x->core][dim]) * v->count[dim];
}

enum { STICK = 128 }; /* bytes that memory moves at a time */

/* Address of the core's first element. */
static void locate(struct sim_exec *x, int number)
{
  struct sim_view *v = &x->view[number];
  int64_t start = v->t->start[x->core];
  if (v->t->is_lx) {
    struct sim_memory **lx = &x->card->lx[x->core];
    *lx = *lx ? *lx : sim_memory_new(x->card->scratch, "LX", x->card->lx_bytes, false);
    (*lx)->is_dl16 = x->card->is_dl16;
    v->memory = *lx;
    v->base = start;
    if (start % STICK)
      sim_wrong(x, number, "it does not start at a stick");
    return;
  }
  for (int i = 0; i < x->symbols->n; i++)
    if (x->symbols->ids[i] == start) {
      int64_t address = x->symbols->values[i], space = (address >> SIM_SPACE_BITS) - 1;
      if (space < 0 || space >= x->card->n_hbm) {
        sim_wrong(x, number, "its address lies in no buffer");
        return;
      }
      v->memory = x->card->hbm[space];
      v->base = address - ((space + 1) << SIM_SPACE_BITS);
      if (v->base % STICK)
        sim_wrong(x, number, "it does not start at a stick");
      return;
    }
  sim_wrong(x, number, "its start address is a symbol that was not passed");
}

/* Steps of the arrays: dims in the op's order, the inner one last. */
static void lay_out(const struct sim_exec *x, struct sim_view *v, const bool *over)
{
  v->n = 1;
  memset(v->step, 0, sizeof v->step);
  for (int k = x->d->n_dims; k >= 0; k--) {
    int dim = k == x->d->n_dims ? x->inner : k;
    if ((k < x->d->n_dims && k == x->inner) || !over[dim])
      continue;
    v->step[dim] = v->n;
    v->n *= v->count[dim];
  }
}

/* Row numbers of a gather or scatter, read from its index tensor (M10). */
static const struct sim_view *rows(struct sim_exec *x, int number)
{
  int i = x->view[number].t->related;
  if (i < 0 || i >= x->d->n_tensors || !x->d->tensor[i].is_index) {
    sim_wrong(x, number, "a value tensor names no index tensor");
    return NULL;
  }
  sim_read(x, i, 0);
  for (int64_t k = 0; x->rc == SW_OK && k < x->view[i].n; k++)
    if (x->view[i].poison[k])
      sim_wrong(x, i, "a row number was never written");
  return x->rc == SW_OK ? &x->view[i] : NULL;
}

/* M4: walk the tensor's own order from the innermost dim; the stride starts at one stick. A worked number: order
 * [mb,out,x], stick out, e 64, sizes 4, 128, 32: mb steps 64, out's sticks 64*4 = 256, x 256*2 = 512. */
static void make_view(struct sim_exec *x, int number)
{
  struct sim_view *v = &x->view[number];
  const struct dsc *d = x->d;
  const struct dsc_tensor *t = v->t = &d->tensor[number];
  struct sw_arena *a = x->core_arena;
  int64_t *offset[DSC_MAX_DIMS] = {0}, limit[DSC_MAX_DIMS], stride = t->e * t->rows, row = stride;
  bool over[DSC_MAX_DIMS] = {false};
  const struct sim_view *index = NULL;
  v->bytes = sim_format_bytes(t->format);
  v->at = NULL;
  v->v = NULL;
  for (int i = 0; i < d->n_dims; i++)
    v->count[i] = t->has_own ? d->size[i] / t->own_split[i] : d->slice[i];
  for (int k = 0; k < t->n; k++) {
    int dim = t->order[k];
    bool rounded_up;
    int64_t ext = extent(x, t, dim, &rounded_up), e = in_stick(t, dim), steps = (ext + e - 1) / e;
    const struct dsc_window *w = window_of(x, t, dim);
    v->stride[dim] = stride;
    limit[dim] = rounded_up || w ? ext : INT64_MAX;
    over[dim] = varies(t, dim);
    if (over[dim]) {
      offset[dim] = SW_NEW_N(a, int64_t, v->count[dim]);
      for (int64_t i = 0; i < v->count[dim]; i++)
        offset[dim][i] = i * (w ? w->stride : 1) / e * stride + i % e * (dim == t->stick ? 1 : t->e);
      row *= steps;
    }
    stride *= steps;
  }
  v->whole = stride;
  for (int k = 0; k < t->n; k++) {
    const struct dsc_window *w = window_of(x, t, t->order[k]);
    if (!w)
      continue;
    over[w->tap] = true;
    offset[w->tap] = SW_NEW_N(a, int64_t, v->count[w->tap]);
    for (int64_t i = 0; i < v->count[w->tap]; i++)
      offset[w->tap][i] = (i * w->dilation - w->pad_front) * v->stride[t->order[k]];
  }
  locate(x, number);
  if (t->is_value) {
    index = rows(x, number);
    for (int i = 0; index && i < d->n_dims; i++)
      over[i] |= index->step[i] != 0;
  }
  lay_out(x, v, over);
  if (x->rc != SW_OK)
    return;
  v->at = SW_NEW_N(a, int64_t, v->n);
  int64_t at[DSC_MAX_DIMS] = {0}, n = 0;
  int inner = x->inner;
  bool outer[DSC_MAX_DIMS];
  memcpy(outer, over, sizeof outer);
  outer[inner] = false;
  do {
    int64_t elements = 0, missing = 0, inner_limit = INT64_MAX;
    for (int i = 0; i < d->n_dims; i++) {
      if (i != inner && offset[i])
        elements += offset[i][at[i]];
      if (!over[i] || !varies(t, i) || limit[i] == INT64_MAX)
        continue;
      const struct dsc_window *w = window_of(x, t, i);
      int64_t first = slot_start(x, v, i) + at[i];
      if (w) {
        int64_t r = first * w->stride + at[w->tap] * w->dilation - w->pad_front;
        missing = r < 0 || r >= limit[i] ? SIM_ZERO : missing;
      } else if (i == inner) {
        inner_limit = limit[i] - first;
      } else if (first >= limit[i]) {
        missing = SIM_ABSENT;
      }
    }
    for (int64_t j = 0; j < (over[inner] ? v->count[inner] : 1); j++) {
      int64_t e = elements + (offset[inner] ? offset[inner][j] : 0);
      at[inner] = j;
      if (index)
        e += (int64_t)index->v[sim_place(index, d->n_dims, at)] * row;
      v->at[n++] = missing ? missing : j >= inner_limit ? SIM_ABSENT : v->base + v->bytes * e;
      if (!missing && v->at[n - 1] < 0 && j < inner_limit) {
        sim_wrong(x, number, sw_arena_printf(x->job->arena, "byte %" PRId64 " lies before the start of %s", v->at[n - 1],
                                             v->memory->name));
        return;
      }
    }
    at[inner] = 0;
  } while (sim_advance(d->n_dims, v->count, outer, at));
}

void sim_enter(struct sim_exec *x, int core)
{
  sw_arena_free(x->core_arena);
  x->core_arena = sw_arena_new(x->arena, 0);
  x->core = core;
  x->stamp = x->card->n_executes * 64 + (uint32_t)core + 1;
  /* a value tensor's addresses need its index tensor's view */
  for (int pass = 0; pass < 2; pass++)
    for (int i = 0; i < x->d->n_tensors && x->rc == SW_OK; i++)
      if (x->d->tensor[i].is_value == (pass == 1))
        make_view(x, i);
}

static void report(struct sim_exec *x, int tensor, enum sim_clash c, int64_t at)
{
  const struct sim_memory *m = x->view[tensor].memory;
  struct sw_arena *a = x->job->arena;
  if (c == SIM_OUTSIDE)
    sim_wrong(x, tensor, sw_arena_printf(a, "byte %" PRId64 " lies outside %s of %zu bytes", at, m->name, m->n));
  else if (c == SIM_RACE)
    sim_wrong(x, tensor, sw_arena_printf(a, "byte %" PRId64 " of %s is written by one core and used by another in one "
                                            "execute", at, m->name));
}

void sim_read(struct sim_exec *x, int tensor, int64_t shift)
{
  struct sim_view *v = &x->view[tensor];
  v->v = SW_NEW_N(x->core_arena, double, v->n);
  v->poison = SW_NEW_N(x->core_arena, unsigned char, v->n);
  v->has_poison = false;
  for (int64_t i = 0; x->rc == SW_OK && i < v->n; i++) {
    int64_t at = v->at[i];
    if (at < 0) {
      v->poison[i] = at == SIM_ABSENT;
    } else {
      struct sim_value got = {0, true};
      enum sim_clash c = sim_load(v->memory, at + shift, v->t->format, x->stamp, &got);
      if (c != SIM_FINE)
        report(x, tensor, c, at + shift);
      v->v[i] = got.poison ? 0 : got.v;
      v->poison[i] = got.poison;
    }
    v->has_poison |= v->poison[i];
  }
}

/* Whether a number becomes infinite or zero as a half. */
static bool leaves_half(double v)
{
  double size = fabs(v);
  return isfinite(v) && (size >= 65520 || (size > 0 && size <= 0x1p-25));
}

void sim_write(struct sim_exec *x, int64_t shift, const double *values, const unsigned char *poison)
{
  struct sim_view *v = &x->view[x->d->out];
  for (int64_t i = 0; x->rc == SW_OK && i < v->n; i++) {
    if (v->at[i] < 0)
      continue;
    enum sim_clash c =
        sim_store(v->memory, v->at[i] + shift, v->t->format, x->stamp, (struct sim_value){values[i], poison[i]});
    if (c != SIM_FINE)
      report(x, x->d->out, c, v->at[i] + shift);
    x->card->leaves_half |= v->t->format == SIM_FP16 && !poison[i] && leaves_half(values[i]);
  }
}

void sim_move(struct sim_exec *x, int tensor, int64_t from, int64_t to)
{
  struct sim_view *a = &x->view[tensor], *b = &x->view[x->d->out];
  int64_t at = a->at[from], out = b->at[to];
  if (a->bytes != b->bytes) {
    sim_wrong(x, x->d->out, "a move between elements of different size");
  } else if (out >= 0 && at < 0) {
    report(x, x->d->out, sim_store(b->memory, out, b->t->format, x->stamp, (struct sim_value){0, true}), out);
  } else if (out >= 0) {
    enum sim_clash c = sim_copy(b->memory, out, a->memory, at, b->bytes, x->stamp);
    bool is_out = c == SIM_OUTSIDE && (size_t)out >= b->memory->n;
    report(x, is_out ? x->d->out : tensor, c, is_out ? out : at);
  }
}

bool sim_advance(int n_dims, const int64_t *count, const bool *over, int64_t *at)
{
  for (int i = n_dims - 1; i >= 0; i--) {
    if (!over[i])
      continue;
    if (++at[i] < count[i])
      return true;
    at[i] = 0;
  }
  return false;
}

/* M5. The slots of core 0 are wherever its map puts them; all other cores must lie where theirs say. */
static void check_starts(struct sim_exec *x, int number, const int64_t *first_base)
{
  const struct sim_view *v = &x->view[number];
  const struct dsc_tensor *t = v->t;
  const struct dsc *d = x->d;
  int64_t elements = 0;
  for (int i = 0; i < d->n_dims; i++) {
    const struct dsc_window *w = window_of(x, t, i);
    int64_t slots = d->slot[x->core][i] - d->slot[0][i], n = d->slice[i];
    if (varies(t, i))
      elements += slots * v->stride[i] * (w ? n * w->stride : n / in_stick(t, i));
  }
  if (v->base - first_base[number] != elements * v->bytes)
    sim_wrong(x, number, sw_arena_printf(x->job->arena, "core %d starts %" PRId64 " bytes behind core 0; its slices are %" PRId64 " behind",
                                         x->core, v->base - first_base[number], elements * v->bytes));
}

/* M2: an argument's buffer is as large as the extents of the tensor. */
static void check_extents(struct sim_exec *x, int number)
{
  const struct sim_view *v = &x->view[number];
  bool has_window = false;
  for (int i = 0; i < x->d->n_dims; i++)
    has_window |= x->d->window[i].is_set;
  if (v->t->is_lx || v->t->is_value || v->t->is_index || has_window || v->memory == x->card->pool)
    return;
  if (v->whole * v->bytes != (int64_t)v->memory->n)
    sim_wrong(x, number, sw_arena_printf(x->job->arena, "its extents span %" PRId64 " bytes, %s has %zu", v->whole * v->bytes,
                                         v->memory->name, v->memory->n));
}

void sim_check_addresses(struct sim_exec *x, int64_t *first_base)
{
  for (int i = 0; i < x->d->n_tensors && x->rc == SW_OK && x->core == 0; i++)
    check_extents(x, i);
  for (int i = 0; i < x->d->n_tensors && x->rc == SW_OK; i++)
    if (x->core == 0)
      first_base[i] = x->view[i].base;
    else if (x->d->tensor[i].is_lx && x->view[i].base != first_base[i])
      sim_wrong(x, i, "cores have different places in LX");
    else if (!x->d->tensor[i].is_lx)
      check_starts(x, i, first_base);
}
