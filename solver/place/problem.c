/* What a placement problem must obey before anybody looks at it (place-problem.md section 1). */
#include "solver/place/place.h"

#include "base/number.h"

#include <inttypes.h>

/* Totals stay far from overflow, so that no solver needs to check a sum. */
static const int64_t MAX_TOTAL = (int64_t)1 << 60;

struct sw_place_buffer *sw_place_add(struct sw_job *job, struct sw_place_problem *p, const char *name, int64_t size,
                                     int64_t start, int64_t end, int64_t value)
{
  struct sw_place_buffer *b = SW_PUSH(job->arena, &p->buffers);
  *b = (struct sw_place_buffer){
      .name = name, .size = size, .start = start, .end = end, .value = value, .address = -1, .alias = -1};
  return b;
}

static void refuse(struct sw_job *job, const struct sw_place_problem *p, int i, const char *key, const char *what)
{
  struct sw_fault *f = sw_fault(job, SW_INVALID, "%s", what);
  f->source = sw_arena_printf(job->arena, "/buffers/%d/%s", i, key);
  f->tensor = p->buffers.v[i].name;
}

static void check_parents(struct sw_job *job, const struct sw_place_problem *p, int i)
{
  const struct sw_place_buffer *b = &p->buffers.v[i];
  for (int k = 0; k < b->n_parents; k++) {
    if (b->parents[k] < 0 || b->parents[k] >= p->buffers.n || b->parents[k] == i) {
      refuse(job, p, i, "parents", "a parent that is not another buffer");
      continue;
    }
    const struct sw_place_buffer *q = &p->buffers.v[b->parents[k]];
    for (int j = 0; j < k; j++)
      if (b->parents[j] == b->parents[k])
        refuse(job, p, i, "parents", sw_arena_printf(job->arena, "%s is named twice", q->name));
    if (q->end != b->start + 1)
      refuse(job, p, i, "parents",
             sw_arena_printf(job->arena, "%s ends at %" PRId64 ", must end at start + 1 = %" PRId64, q->name, q->end,
                             b->start + 1));
    if (b->size > q->size)
      refuse(job, p, i, "parents",
             sw_arena_printf(job->arena, "%s has %" PRId64 " bytes, the child %" PRId64, q->name, q->size, b->size));
  }
}

static void check_buffer(struct sw_job *job, const struct sw_place_problem *p, int i)
{
  const struct sw_place_buffer *b = &p->buffers.v[i];
  if (b->size < 1)
    refuse(job, p, i, "size", "must be at least 1");
  if (b->start >= b->end)
    refuse(job, p, i, "end",
           sw_arena_printf(job->arena, "is %" PRId64 ", must be above start %" PRId64, b->end, b->start));
  if (b->value < 0)
    refuse(job, p, i, "value", "must not be negative");
  if (b->alignment & (b->alignment - 1))
    refuse(job, p, i, "alignment", "must be a power of two");
  if (b->required && b->barred)
    refuse(job, p, i, "required", "the buffer is barred too");
  if (b->address >= 0) {
    if (b->address % p->alignment || (b->alignment && b->address % b->alignment))
      refuse(job, p, i, "address", "is not a multiple of the alignment");
    if (b->size > p->capacity || b->address > p->capacity - b->size)
      refuse(job, p, i, "address", "reaches beyond the capacity");
  }
  check_parents(job, p, i);
}

enum sw_rc sw_place_validate(struct sw_job *job, const struct sw_place_problem *p)
{
  int before = job->faults.n;
  if (p->capacity < 0)
    sw_fault(job, SW_INVALID, "must not be negative")->source = "/capacity";
  if (p->alignment < 1) {
    sw_fault(job, SW_INVALID, "must be at least 1")->source = "/alignment";
    return SW_INVALID;
  }
  int64_t value = 0, size = 0;
  for (int i = 0; i < p->buffers.n; i++) {
    const struct sw_place_buffer *b = &p->buffers.v[i];
    check_buffer(job, p, i);
    /* Rounded up to the alignment, so that rounding is safe too. */
    int64_t step = b->alignment > 1 ? p->alignment / sw_gcd(p->alignment, b->alignment) : p->alignment;
    if (__builtin_mul_overflow(step, b->alignment > 1 ? b->alignment : 1, &step) || step > MAX_TOTAL ||
        __builtin_add_overflow(value, b->value, &value) || __builtin_add_overflow(size, b->size + step, &size) ||
        value > MAX_TOTAL || size > MAX_TOTAL) {
      sw_fault(job, SW_LIMIT, "the sizes or values of the buffers add up to more than 2^60")->advice =
          "count in larger units";
      return job->worst;
    }
  }
  return job->faults.n > before ? job->worst : SW_OK;
}
