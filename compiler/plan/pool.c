/* Pools: storages that live inside one kernel share one region of HBM (scratchpad.md section 10).
 *
 * Profile torch-spyre repeats the reference's allocator: in order of birth, the first free block that is large enough,
 * blocks freed only before the step, never merged. Profile best packs the same storages as low as it can
 * (solver/place). In both a block that is read at a step is not written at that step: cores do not wait for each other
 * inside an op. Unlike the reference a storage that is written several times is born at its first write. */
#include "compiler/plan/liveness.h"
#include "compiler/plan/scratchpad.h"

#include "base/options.h"
#include "solver/place/place.h"

#include <inttypes.h>
#include <string.h>

/* A segment of 16 GiB without 2 GiB. */
static const int64_t POOL_LIMIT = ((int64_t)16 << 30) - ((int64_t)2 << 30);

enum { MAX_EXACT = 3000 };

struct block {
  int64_t offset, bytes;
  int end; /* last step that reads it */
};

struct pool {
  struct sw_arena *arena;
  SW_VEC(struct block) used, spare; /* used in no order; spare in the order it came free */
  int64_t end;
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
  if (bytes > POOL_LIMIT - p->end)
    return -1;
  p->end += bytes;
  return p->end - bytes;
}

/* Frees what was read for the last time before this step, in order of that time. */
static void expire(struct pool *p, int step)
{
  for (;;) {
    int first = -1;
    for (int k = 0; k < p->used.n; k++)
      if (p->used.v[k].end < step && (first < 0 || p->used.v[k].end < p->used.v[first].end))
        first = k;
    if (first < 0)
      return;
    *SW_PUSH(p->arena, &p->spare) = p->used.v[first];
    memmove(&p->used.v[first], &p->used.v[first + 1], sizeof *p->used.v * (size_t)(p->used.n - first - 1));
    p->used.n--;
  }
}

/* Offsets of n storages in order of birth; -1: over the limit. Gives the size of the pool. */
static int64_t as_reference(struct sw_arena *arena, const struct sw_life *lives, const struct sw_program *p,
                            const int *storages, int n, int64_t *offset)
{
  struct pool pool = {.arena = arena};
  for (int k = 0; k < n; k++) {
    const struct sw_life *l = &lives[storages[k]];
    int64_t bytes = sw_layout_bytes(p->storages.v[storages[k]].layout);
    expire(&pool, l->first);
    offset[k] = allocate(&pool, bytes);
    if (offset[k] >= 0)
      *SW_PUSH(arena, &pool.used) = (struct block){offset[k], bytes, l->last};
  }
  return pool.end;
}

static enum sw_rc packed(struct sw_job *job, struct sw_arena *arena, const struct sw_options *o,
                         const struct sw_life *lives, const struct sw_program *p, const int *storages, int n,
                         int64_t *offset, int64_t *size)
{
  struct sw_place_problem problem = {.name = "pool", .capacity = POOL_LIMIT, .alignment = 128};
  for (int k = 0; k < n; k++) {
    const struct sw_life *l = &lives[storages[k]];
    const struct sw_storage *s = &p->storages.v[storages[k]];
    int64_t bytes = sw_layout_bytes(s->layout);
    sw_place_add(job, &problem, s->name, bytes, l->first, l->last + 1, bytes);
  }
  struct sw_place_options options = {.placer = n > MAX_EXACT ? SW_LX_FIRSTFIT : SW_LX_EXACT, .budget = o->budget};
  struct sw_place_result *r;
  SW_TRY(sw_place_validate(job, &problem));
  SW_TRY(sw_place_solve(job, &problem, &options, &r));
  int64_t reference_size = as_reference(arena, lives, p, storages, n, offset);
  if (!r->address || r->peak >= reference_size) { /* never above the reference */
    *size = reference_size;
    return SW_OK;
  }
  memcpy(offset, r->address, sizeof *offset * (size_t)n);
  *size = r->peak;
  return SW_OK;
}

/* Whether a storage may be in the pool of its kernel: written first, then read, in one kernel, seen by nobody else. */
static bool is_candidate(const struct sw_storage *s, const struct sw_life *l)
{
  return s->layout && s->place && s->place->kind == SW_PLACE_HBM && !s->host_only && l->kernel >= 0 && !l->by_host &&
         !l->outside && l->n_writes && l->n_reads && l->touch[0].operand < 0;
}

enum sw_rc sw_plan_pools(struct sw_job *job, const struct sw_options *o, const struct sw_program *p,
                         const struct sw_life *lives, struct sw_plan *plan)
{
  if (!o->pool)
    return SW_OK;
  struct sw_arena *arena = sw_arena_new(job->arena, SIZE_MAX);
  /* Storages in order of birth, which is order of kernels too: an op writes one storage. */
  int *at = SW_NEW_N(arena, int, p->steps.n), *list = SW_NEW_N(arena, int, p->storages.n);
  int64_t *offset = SW_NEW_N(arena, int64_t, p->storages.n);
  for (int s = 0; s < p->storages.n; s++)
    if (is_candidate(&p->storages.v[s], &lives[s]))
      at[lives[s].first] = s + 1;
  enum sw_rc rc = SW_OK;
  for (int t = 0; t < p->steps.n && rc == SW_OK;) {
    int n = 0, kernel = -1;
    for (; t < p->steps.n; t++) {
      if (!at[t])
        continue;
      if (n && lives[at[t] - 1].kernel != kernel)
        break;
      kernel = lives[at[t] - 1].kernel;
      list[n++] = at[t] - 1;
    }
    if (!n)
      break;
    int64_t size = 0;
    if (o->profile == SW_PROFILE_TORCH_SPYRE)
      size = as_reference(arena, lives, p, list, n, offset);
    else
      rc = packed(job, arena, o, lives, p, list, n, offset, &size);
    for (int k = 0; k < n && rc == SW_OK; k++) {
      struct sw_place *place = (struct sw_place *)p->storages.v[list[k]].place;
      if (offset[k] >= 0) {
        place->kind = SW_PLACE_POOL;
        place->offset = offset[k];
      }
    }
    plan->kernels.v[kernel].pool_bytes = size;
    if (size > plan->peak_pool_bytes)
      plan->peak_pool_bytes = size;
  }
  sw_arena_free(arena);
  return rc;
}
