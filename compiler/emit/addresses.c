#include "compiler/emit/superdsc.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Which slice a core works on, where its part of every tensor starts, and the symbols that stand for these addresses
 * in the bundle (superdsc.md section 7).
 *
 * Worked number: add [128,256] fp16, device size [4,128,64], on 2 x 2 cores. Stride of mb is 128*64 = 8192 elements, of
 * out 4*128*64 = 32768; core 3 has slots (1,1): 8192/2 + 32768/2 = 20480 elements, 40960 bytes. */

enum { MAX_CORES = 1024 };

static enum sw_rc map_cores(struct sw_job *job, struct sw_sdsc *s)
{
  struct sw_labels order = s->dims, *l = &s->core_order;
  int64_t cores = 1;
  for (int i = 0; i < order.n; i++)
    if (__builtin_mul_overflow(cores, s->split[order.v[i]], &cores) || cores > MAX_CORES) {
      sw_sdsc_fault(job, s, SW_LIMIT, -1, "the splits ask for more than 1024 cores");
      return SW_LIMIT;
    }
  s->cores = (int)cores;
  enum sw_label last = order.v[order.n - 1];
  if (s->is.mat && s->k_fast && s->split[last] > 1) { /* the cores of one sum are neighbours */
    order.n--;
    sw_labels_add_first(&order, last);
  }
  *l = order;
  s->slot = SW_NEW_N(job->arena, int, s->cores * (int)SW_N_LABELS);
  for (int c = 0; c < s->cores; c++)
    for (int64_t i = 0, below = 1; i < l->n; below *= s->split[l->v[i++]])
      s->slot[c * (int)SW_N_LABELS + (int)l->v[i]] = (int)(c / below % s->split[l->v[i]]);
  return SW_OK;
}

static int slot(const struct sw_sdsc *s, int core, enum sw_label d)
{
  return s->slot[core * (int)SW_N_LABELS + (int)d];
}

/* Cores of a dynamic dim start where the parts of the cores before them end, as far as the size of the run goes: then
 * the address grows with the size. Worked number: 256 rows of 128 bytes on 32 cores, core 1 starts size / 32 rows behind
 * core 0, that is 4 bytes for every one of the size. */
static const struct sw_sdsc_dynamic *split_size(const struct sw_sdsc *s, const struct sw_sdsc_tensor *t)
{
  for (int i = 0; i < s->dynamics.n; i++) {
    const struct sw_sdsc_dynamic *d = &s->dynamics.v[i];
    if (s->split[d->dim] > 1 && t->scale[d->dim] > 0 && sw_labels_has(&t->order, d->dim))
      return d;
  }
  return NULL;
}

static enum sw_rc find_rows(struct sw_job *job, const struct sw_sdsc *s, struct sw_sdsc_tensor *t, int i)
{
  const struct sw_sdsc_dynamic *d = t->arg->alloc == SW_ALLOC_LX ? NULL : split_size(s, t);
  t->rows = SW_NEW_N(job->arena, int64_t, s->cores);
  if (d && d->granularity % s->split[d->dim]) {
    sw_sdsc_fault(job, s, SW_UNSUPPORTED, i,
                  sw_arena_printf(job->arena, "%s, a multiple of %" PRId64 ", is split over %" PRId64 " cores", d->name,
                                  d->granularity, s->split[d->dim]))
        ->advice = "split other loops, or fix the size";
    return SW_UNSUPPORTED;
  }
  for (int c = 0; d && c < s->cores; c++) {
    int64_t bytes = t->bytes * (slot(s, c, d->dim) * t->stride[d->dim] / s->split[d->dim]);
    if (bytes % d->max) {
      sw_sdsc_fault(job, s, SW_UNSUPPORTED, i,
                    sw_arena_printf(job->arena, "%s is split over %" PRId64 " cores, whose starts are no multiples of it",
                                    d->name, s->split[d->dim]))
          ->advice = "split other loops, or fix the size";
      return SW_UNSUPPORTED;
    }
    t->rows[c] = bytes / d->max;
    t->address[c] -= bytes;
  }
  return SW_OK;
}

static void place(struct sw_job *job, struct sw_sdsc *s, struct sw_sdsc_tensor *t)
{
  t->address = SW_NEW_N(job->arena, int64_t, s->cores);
  t->start = t->arg->address;
  for (int c = 0; c < s->cores; c++) {
    int64_t elements = 0;
    for (int i = 0; i < t->order.n && t->arg->alloc != SW_ALLOC_LX; i++) {
      enum sw_label d = t->order.v[i];
      elements += t->offset[d];
      if (t->scale[d] > 0)
        elements += slot(s, c, d) * t->stride[d] / s->split[d];
    }
    t->address[c] = t->start + t->bytes * elements;
  }
}

/* -- symbols -- */

struct registry {
  struct sw_job *job;
  struct sw_bundle *bundle;
  struct sw_map map; /* of one op: equal keys share one symbol */
};

static int intern(struct registry *r, const char *key, struct sw_address a)
{
  int64_t known = sw_map_get_str(&r->map, key);
  if (known >= 0)
    return (int)known;
  *SW_PUSH(r->job->arena, &r->bundle->addresses) = a;
  int id = r->bundle->addresses.n; /* the first one is 1 */
  sw_map_set_str(&r->map, key, id);
  return id;
}

/* The start of a core whose part of a dynamic dim begins behind others. */
static int with_rows(struct registry *r, const struct sw_sdsc *s, const struct sw_sdsc_tensor *t, int core, int base)
{
  if (!t->rows[core])
    return base;
  const struct sw_sdsc_dynamic *d = split_size(s, t);
  const char *name = sw_arena_printf(r->job->arena, "%s_rows_%" PRId64 "_of_%s", r->bundle->addresses.v[base - 1].name,
                                     t->rows[core], r->bundle->addresses.v[d->symbol - 1].name + 1);
  return intern(r, name, (struct sw_address){.kind = SW_ADDRESS_ROWS,
                                             .arg = t->arg->arg_index,
                                             .base = base,
                                             .size = d->symbol,
                                             .bytes = t->rows[core],
                                             .name = name});
}

static void register_argument(struct registry *r, const struct sw_sdsc *s, struct sw_sdsc_tensor *t)
{
  struct sw_arena *a = r->job->arena;
  int arg = t->arg->arg_index;
  const char *name = sw_arena_printf(a, "%%arg_%d", arg);
  int base = intern(r, name, (struct sw_address){.kind = SW_ADDRESS_KERNEL, .arg = arg, .name = name});
  int64_t offset = t->start - arg;
  for (int i = 0; i < t->order.n; i++)
    offset += t->bytes * t->offset[t->order.v[i]];
  if (offset > 0) {
    name = sw_arena_printf(a, "%%arg_%d_slice_%" PRId64, arg, offset);
    base = intern(r, name, (struct sw_address){.kind = SW_ADDRESS_SLICE, .arg = arg, .bytes = offset, .name = name});
  }
  for (int c = 0; c < s->cores; c++) {
    int64_t more = t->address[c] - t->address[0];
    t->symbol[c] = with_rows(r, s, t, c, base);
    if (!more)
      continue;
    const char *key = sw_arena_printf(a, "%d at %" PRId64, arg, t->address[c]);
    t->symbol[c] = intern(r, key,
                          (struct sw_address){.kind = SW_ADDRESS_DERIVED,
                                              .arg = arg,
                                              .base = base,
                                              .bytes = more,
                                              .name = sw_arena_printf(a, "%s_core_%" PRId64, name, more)});
    t->symbol[c] = with_rows(r, s, t, c, t->symbol[c]);
  }
}

static void register_pool(struct registry *r, const struct sw_sdsc *s, struct sw_sdsc_tensor *t)
{
  for (int c = 0; c < s->cores; c++) {
    const char *name = sw_arena_printf(r->job->arena, "%%pool_addr_%" PRId64, t->address[c]);
    t->symbol[c] = intern(r, name, (struct sw_address){.kind = SW_ADDRESS_POOL, .bytes = t->address[c], .name = name});
    t->symbol[c] = with_rows(r, s, t, c, t->symbol[c]);
  }
}

static void register_dynamics(struct registry *r, struct sw_sdsc *s)
{
  const struct sw_spec *p = s->spec;
  int ordinal = 0;
  for (int i = 0; i < p->space.n; i++) {
    const struct sw_spec_symbol *x = &p->space.v[i];
    if (!x->dynamic)
      continue;
    /* The SSA value is named after the op that uses the size first. */
    int64_t first = sw_map_get_str(&r->bundle->sizes, x->dynamic);
    const char *name = first >= 0 ? r->bundle->addresses.v[first].name
                                  : sw_arena_printf(r->job->arena, "%%sym_%d_%d", s->number, ++ordinal);
    if (first < 0)
      sw_map_set_str(&r->bundle->sizes, x->dynamic, r->bundle->addresses.n);
    int id = intern(r, name,
                    (struct sw_address){.kind = SW_ADDRESS_DIMENSION,
                                        .name = name,
                                        .max = x->range,
                                        .granularity = x->granularity});
    struct sw_sdsc_dynamic *d = SW_PUSH(r->job->arena, &s->dynamics);
    *d = (struct sw_sdsc_dynamic){
        .dim = s->label[i], .name = x->dynamic, .max = x->range, .granularity = x->granularity, .symbol = id};
  }
}

/* -- tile steps (7.4) -- */

/* Coefficient of a symbol in one additive term "k*t", "t/k", "floor(k*t)". False when the symbol is not in it. */
static bool term_coefficient(const char *p, const char *end, const char *symbol, int64_t *num, int64_t *den)
{
  bool found = false, over = false;
  *num = *den = 1;
  while (p < end) {
    if (isdigit((unsigned char)*p)) {
      char *stop;
      int64_t k = strtoll(p, &stop, 10);
      if (over ? __builtin_mul_overflow(*den, k, den) : __builtin_mul_overflow(*num, k, num))
        *num = *den = 0;
      p = stop;
    } else if (isalpha((unsigned char)*p) || *p == '_') {
      size_t n = 0;
      while (p + n < end && (isalnum((unsigned char)p[n]) || p[n] == '_'))
        n++;
      found = found || (strlen(symbol) == n && !memcmp(p, symbol, n));
      p += n;
    } else {
      over = *p == '/' || (over && *p != '*');
      p++;
    }
  }
  return found;
}

static bool coefficient(const char *text, const char *symbol, int64_t *num, int64_t *den)
{
  for (const char *p = text; *p;) {
    size_t n = strcspn(p, "+");
    if (term_coefficient(p, p + n, symbol, num, den))
      return true;
    p += n + (p[n] == '+');
  }
  return false;
}

static int count_terms(const char *text)
{
  int n = text != NULL;
  for (; text && *text; text++)
    n += *text == '+';
  return n;
}

static enum sw_rc find_steps(struct sw_job *job, struct sw_sdsc *s, int i)
{
  struct sw_sdsc_tensor *t = &s->tensor[i];
  const struct sw_spec *p = s->spec;
  int left = count_terms(t->arg->tile_advance);
  t->levels = SW_NEW_N(job->arena, struct sw_tile_steps, p->n_tile_levels);
  for (int l = 0; l < p->n_tile_levels; l++) {
    const struct sw_tile_level *level = &p->tile_levels[p->n_tile_levels - 1 - l];
    struct sw_tile_steps *steps = &t->levels[l];
    steps->v = SW_NEW_N(job->arena, struct sw_tile_step, level->n);
    for (int k = 0; k < level->n; k++) {
      int64_t num, den, bytes;
      if (!t->arg->tile_advance || !coefficient(t->arg->tile_advance, level->symbols[k], &num, &den))
        continue;
      left--;
      if (num == 0)
        continue;
      if (den < 1 || num % den || __builtin_mul_overflow(num / den, t->bytes, &bytes)) {
        sw_sdsc_fault(job, s, SW_UNSUPPORTED, i,
                      sw_arena_printf(job->arena, "a step of the loop symbol %s is below stick granularity",
                                      level->symbols[k]))->advice = "tile in whole sticks";
        return SW_UNSUPPORTED;
      }
      steps->v[steps->n++] = (struct sw_tile_step){level->symbols[k], bytes};
      t->moves = true;
    }
  }
  if (left > 0) {
    sw_sdsc_fault(job, s, SW_INVALID, i,
                  sw_arena_printf(job->arena, "it moves with a symbol that no loop has: %s", t->arg->tile_advance));
    return SW_INVALID;
  }
  if (t->moves && t->arg->alloc == SW_ALLOC_LX) {
    sw_sdsc_fault(job, s, SW_UNSUPPORTED, i, "a tensor in LX can't move with a loop");
    return SW_UNSUPPORTED;
  }
  return SW_OK;
}

static bool same_steps(const struct sw_sdsc *s, const struct sw_sdsc_tensor *a, const struct sw_sdsc_tensor *b)
{
  for (int l = 0; l < s->spec->n_tile_levels; l++) {
    if (a->levels[l].n != b->levels[l].n)
      return false;
    for (int k = 0; k < a->levels[l].n; k++)
      if (a->levels[l].v[k].bytes != b->levels[l].v[k].bytes)
        return false;
  }
  return true;
}

/* An address is replaced by its moved form wherever the op uses it, so all users have to move alike. */
static enum sw_rc check_steps(struct sw_job *job, const struct sw_sdsc *s)
{
  for (int i = 0; i < s->n_tensors; i++)
    for (int j = 0; j < i; j++) {
      const struct sw_sdsc_tensor *a = &s->tensor[i], *b = &s->tensor[j];
      if (!a->symbol || !b->symbol || same_steps(s, a, b))
        continue;
      for (int c = 0; c < s->cores; c++)
        for (int k = 0; k < s->cores; k++)
          if (a->symbol[c] == b->symbol[k]) {
            sw_sdsc_fault(job, s, SW_UNSUPPORTED, i, "the same address is used moving and not moving in one op");
            return SW_UNSUPPORTED;
          }
    }
  return SW_OK;
}

enum sw_rc sw_sdsc_addresses(struct sw_job *job, struct sw_bundle *b, struct sw_sdsc *s)
{
  struct registry r = {.job = job, .bundle = b, .map = {.arena = sw_arena_new(job->arena, 0)}};
  register_dynamics(&r, s);
  SW_TRY(map_cores(job, s));
  for (int i = 0; i < s->n_tensors; i++) {
    struct sw_sdsc_tensor *t = &s->tensor[i];
    place(job, s, t);
    SW_TRY(find_rows(job, s, t, i));
    SW_TRY(find_steps(job, s, i));
    if (t->arg->alloc == SW_ALLOC_LX)
      continue;
    t->symbol = SW_NEW_N(job->arena, int, s->cores);
    if (t->arg->alloc == SW_ALLOC_HBM)
      register_argument(&r, s, t);
    else
      register_pool(&r, s, t);
  }
  sw_arena_free(r.map.arena);
  return s->spec->n_tile_levels ? check_steps(job, s) : SW_OK;
}
