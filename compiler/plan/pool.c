/* Pools: storages that live inside one kernel share one region of HBM (scratchpad.md section 10).
 *
 * Profile torch-spyre repeats the reference's allocator: in order of birth, the first free block that is large enough,
 * blocks freed only before the step, never merged; a counted loop is one step. Profile best packs the same storages as low as it can
 * (solver/place). In both a block that is read at a step is not written at that step: cores do not wait for each other
 * inside an op. */
#include "compiler/plan/liveness.h"
#include "compiler/plan/loops.h"
#include "compiler/plan/scratchpad.h"

#include "base/options.h"
#include "solver/place/place.h"

#include <stdlib.h>
#include <string.h>

/* A segment of 16 GiB without 2 GiB. */
static const int64_t POOL_LIMIT = ((int64_t)16 << 30) - ((int64_t)2 << 30);

struct block {
  int64_t offset, bytes;
  int last; /* step that reads it last */
};

struct pool {
  struct sw_arena *arena;
  SW_VEC(struct block) used, spare; /* in order of birth; in order of coming free */
  int64_t end, limit;
};

/* The first spare block with room (its rest goes to the end of the list), else the end of the pool; -1 over limit. */
static int64_t allocate(struct pool *p, int64_t bytes)
{
  for (int k = 0; k < p->spare.n; k++) {
    struct block b = p->spare.v[k];
    if (b.bytes < bytes)
      continue;
    memmove(&p->spare.v[k], &p->spare.v[k + 1], sizeof b * (size_t)(p->spare.n - k - 1));
    p->spare.n--;
    if (b.bytes > bytes)
      *SW_PUSH(p->arena, &p->spare) = (struct block){b.offset + bytes, b.bytes - bytes, 0};
    return b.offset;
  }
  if (bytes > p->limit - p->end)
    return -1;
  p->end += bytes;
  return p->end - bytes;
}

/* Frees what was read for the last time before this step. */
static void expire(struct pool *p, int step)
{
  int kept = 0;
  for (int k = 0; k < p->used.n; k++)
    if (p->used.v[k].last < step)
      *SW_PUSH(p->arena, &p->spare) = p->used.v[k];
    else
      p->used.v[kept++] = p->used.v[k];
  p->used.n = kept;
}

int64_t sw_pool_first_fit(struct sw_arena *arena, int n, const int64_t *bytes, const int *first, const int *last,
                          int64_t limit, int64_t *offset)
{
  struct pool pool = {.arena = arena, .limit = limit};
  for (int k = 0; k < n; k++) {
    expire(&pool, first[k]);
    offset[k] = allocate(&pool, bytes[k]);
    if (offset[k] >= 0)
      *SW_PUSH(arena, &pool.used) = (struct block){offset[k], bytes[k], last[k]};
  }
  return pool.end;
}

/* The storages of one kernel's pool as numbers. */
struct tenants {
  int n;
  int *storage, *first, *last;
  int64_t *bytes, *offset;
};

/* Packed as low as the solver can, never above the reference. */
static enum sw_rc pack(struct sw_job *job, const struct sw_options *o, const struct sw_program *p, struct tenants *x,
                       int64_t *size)
{
  struct sw_place_problem problem = {.name = "pool", .capacity = *size, .alignment = 128};
  for (int k = 0; k < x->n; k++) {
    if (x->offset[k] < 0)
      return SW_OK; /* over the limit even so: the first ones stay */
    sw_place_add(job, &problem, p->storages.v[x->storage[k]].name, x->bytes[k], x->first[k], x->last[k] + 1, 0)
        ->required = true;
  }
  struct sw_place_options options = {.placer = SW_LX_EXACT, .budget = o->budget};
  struct sw_place_result *r;
  SW_TRY(sw_place_validate(job, &problem));
  SW_TRY(sw_place_solve(job, &problem, &options, &r));
  if (r->address && r->peak < *size) {
    memcpy(x->offset, r->address, sizeof *x->offset * (size_t)x->n);
    *size = r->peak;
  }
  return SW_OK;
}

/* Whether a storage may be in the pool of its kernel: written first, then read, in one kernel, seen by nobody else. */
static bool is_candidate(const struct sw_storage *s, const struct sw_life *l)
{
  return s->layout && s->place && s->place->kind == SW_PLACE_HBM && !s->host_only && l->kernel >= 0 && !l->by_host &&
         !l->outside && l->n_writes && l->n_reads && l->touch[0].operand < 0;
}

/* Whether no two tenants that are alive at the same step share a byte. */
static bool is_legal(struct sw_job *job, const struct tenants *x)
{
  struct sw_place_problem problem = {.capacity = POOL_LIMIT, .alignment = 1};
  int64_t value, peak;
  for (int k = 0; k < x->n; k++)
    sw_place_add(job, &problem, "", x->bytes[k], x->first[k], x->last[k] + 1, 0);
  return !sw_place_check(job, &problem, x->offset, &value, &peak);
}

struct birth {
  int step, tenant;
};

static int by_step(const void *a, const void *b)
{
  return ((const struct birth *)a)->step - ((const struct birth *)b)->step;
}

/* The reference's offsets. There every write of a storage asks for a block of its own, held up to the next write (or the
 * last read), and the last one is where the storage is. That is taken as long as the earlier writes hit nobody there; else
 * births are the first writes. */
static int64_t as_reference(struct sw_job *job, struct sw_arena *arena, const struct sw_life *lives, struct tenants *x)
{
  SW_VEC(struct birth) births = {0};
  for (int k = 0; k < x->n; k++) {
    const struct sw_life *l = &lives[x->storage[k]];
    for (int t = 0; t < l->n; t++)
      if (l->touch[t].operand < 0)
        *SW_PUSH(arena, &births) = (struct birth){l->carried ? l->first : l->touch[t].tick, k};
  }
  qsort(births.v, (size_t)births.n, sizeof *births.v, by_step);
  int *first = SW_NEW_N(arena, int, births.n), *last = SW_NEW_N(arena, int, births.n);
  int *until = SW_NEW_N(arena, int, x->n); /* of each tenant: its next write, going backwards */
  memcpy(until, x->last, sizeof *until * (size_t)x->n);
  int64_t *bytes = SW_NEW_N(arena, int64_t, births.n), *offset = SW_NEW_N(arena, int64_t, births.n);
  for (int k = births.n - 1; k >= 0; k--) {
    first[k] = births.v[k].step;
    last[k] = until[births.v[k].tenant];
    until[births.v[k].tenant] = first[k];
    bytes[k] = x->bytes[births.v[k].tenant];
  }
  int64_t size = sw_pool_first_fit(arena, births.n, bytes, first, last, POOL_LIMIT, offset);
  for (int k = 0; k < births.n; k++)
    x->offset[births.v[k].tenant] = offset[k];
  return is_legal(job, x) ? size : sw_pool_first_fit(arena, x->n, x->bytes, x->first, x->last, POOL_LIMIT, x->offset);
}

static enum sw_rc plan_pool(struct sw_job *job, const struct sw_options *o, const struct sw_program *p,
                            const struct sw_life *lives, struct tenants *x, struct sw_kernel *kernel)
{
  struct sw_arena *arena = sw_arena_new(job->arena, SIZE_MAX);
  int64_t size = as_reference(job, arena, lives, x);
  enum sw_rc rc = o->profile == SW_PROFILE_BEST ? pack(job, o, p, x, &size) : SW_OK;
  sw_arena_free(arena);
  for (int k = 0; k < x->n && rc == SW_OK; k++) {
    struct sw_place *place = (struct sw_place *)p->storages.v[x->storage[k]].place;
    if (x->offset[k] >= 0) {
      place->kind = SW_PLACE_POOL;
      place->offset = x->offset[k];
    }
  }
  kernel->pool_bytes = size;
  return rc;
}

/* A storage that wants a place in a pool. */
struct tenant {
  int storage, kernel, first, write;
};

/* By kernel, in order of birth; of those that a loop carries, in order of their first writes. */
static int by_birth(const void *a, const void *b)
{
  const struct tenant *x = a, *y = b;
  return x->kernel != y->kernel ? x->kernel - y->kernel
         : x->first != y->first ? x->first - y->first
                                : x->write - y->write;
}

/* The reference sees a loop as one step. */
static struct sw_life *in_whole_loops(struct sw_arena *arena, const struct sw_program *p, const struct sw_life *lives)
{
  struct sw_life *whole = sw_arena_copy(arena, lives, (size_t)p->storages.n, sizeof *lives);
  const struct sw_span *span = sw_loop_spans(arena, p);
  for (int s = 0; s < p->storages.n; s++)
    for (int t = 0; t < whole[s].n; t++) {
      const struct sw_op *op = &p->ops.v[whole[s].touch[t].op];
      if (!op->n_levels)
        continue;
      const struct sw_span *loop = &span[op->level[0].loop];
      whole[s].carried = true;
      whole[s].first = loop->first < whole[s].first ? loop->first : whole[s].first;
      whole[s].last = loop->last > whole[s].last ? loop->last : whole[s].last;
    }
  return whole;
}

enum sw_rc sw_plan_pools(struct sw_job *job, const struct sw_options *o, const struct sw_program *p,
                         const struct sw_life *lives, struct sw_plan *plan)
{
  if (!o->pool)
    return SW_OK;
  struct sw_arena *arena = sw_arena_new(job->arena, SIZE_MAX);
  SW_VEC(struct tenant) all = {0};
  if (o->profile == SW_PROFILE_TORCH_SPYRE && p->n_loops)
    lives = in_whole_loops(arena, p, lives);
  for (int s = 0; s < p->storages.n; s++)
    if (is_candidate(&p->storages.v[s], &lives[s]))
      *SW_PUSH(arena, &all) = (struct tenant){s, lives[s].kernel, lives[s].first, lives[s].touch[0].tick};
  if (all.n)
    qsort(all.v, (size_t)all.n, sizeof *all.v, by_birth);
  int n = all.n;
  struct tenants x = {0, SW_NEW_N(arena, int, n), SW_NEW_N(arena, int, n), SW_NEW_N(arena, int, n),
                      SW_NEW_N(arena, int64_t, n), SW_NEW_N(arena, int64_t, n)};
  enum sw_rc rc = SW_OK;
  for (int from = 0, to; from < n && rc == SW_OK; from = to) {
    struct sw_kernel *kernel = &plan->kernels.v[all.v[from].kernel];
    x.n = 0;
    for (to = from; to < n && all.v[to].kernel == all.v[from].kernel; to++) {
      int s = all.v[to].storage;
      x.storage[x.n] = s;
      x.first[x.n] = lives[s].first;
      x.last[x.n] = lives[s].last;
      x.bytes[x.n++] = sw_layout_bytes(p->storages.v[s].layout);
    }
    rc = plan_pool(job, o, p, lives, &x, kernel);
    if (kernel->pool_bytes > plan->peak_pool_bytes)
      plan->peak_pool_bytes = kernel->pool_bytes;
  }
  sw_arena_free(arena);
  return rc;
}
