/* The judge: whether addresses are a legal plan (place-problem.md section 2). Uses the problem alone. */
#include "solver/place/place.h"

#include <stdlib.h>

struct resident {
  int64_t start;
  int buffer;
};

static int by_start(const void *a, const void *b)
{
  const struct resident *x = a, *y = b;
  if (x->start != y->start)
    return x->start < y->start ? -1 : 1;
  return (x->buffer > y->buffer) - (x->buffer < y->buffer);
}

static bool has_parent(const struct sw_place_buffer *b, int parent)
{
  for (int k = 0; k < b->n_parents; k++)
    if (b->parents[k] == parent)
      return true;
  return false;
}

/* The rules for one buffer alone. */
static const char *check_one(struct sw_job *job, const struct sw_place_problem *p, int i, int64_t address)
{
  const struct sw_place_buffer *b = &p->buffers.v[i];
  const char *what = NULL;
  if (address < 0)
    what = b->required ? "is required but not resident" : NULL;
  else if (b->barred)
    what = "is barred but resident";
  else if (b->address >= 0 && b->address != address)
    what = "is not at its pinned address";
  else if (address % p->alignment || (b->alignment && address % b->alignment))
    what = "is not aligned";
  else if (b->size > p->capacity || address > p->capacity - b->size)
    what = "reaches beyond the capacity";
  return what ? sw_arena_printf(job->arena, "%s %s", b->name, what) : NULL;
}

/* Two residents that meet and share a byte: legal for an alias pair, and for parent and child at one address while
 * neither slot is used twice. child_of[p], parent_of[c]: the hand-overs so far, -1. */
static const char *check_overlap(struct sw_job *job, const struct sw_place_problem *p, const int64_t *address, int i,
                                 int j, int *child_of, int *parent_of)
{
  const struct sw_place_buffer *a = &p->buffers.v[i], *b = &p->buffers.v[j];
  if (address[i] == address[j]) {
    if (a->alias >= 0 && a->alias == b->alias)
      return NULL;
    bool is_child = has_parent(a, j);
    if (is_child || has_parent(b, i)) {
      int child = is_child ? i : j, parent = is_child ? j : i;
      if (child_of[parent] >= 0 || parent_of[child] >= 0)
        return sw_arena_printf(job->arena, "%s and %s: a slot is handed over twice", a->name, b->name);
      child_of[parent] = child;
      parent_of[child] = parent;
      return NULL;
    }
  }
  return sw_arena_printf(job->arena, "%s and %s overlap", a->name, b->name);
}

static const char *check_pairs(struct sw_job *job, const struct sw_place_problem *p, const int64_t *address)
{
  int n = p->buffers.n, n_resident = 0, n_live = 0;
  struct resident *order = SW_NEW_N(job->arena, struct resident, n);
  int *live = SW_NEW_N(job->arena, int, n), *child_of = SW_NEW_N(job->arena, int, n),
      *parent_of = SW_NEW_N(job->arena, int, n);
  for (int i = 0; i < n; i++) {
    child_of[i] = parent_of[i] = -1;
    if (address[i] >= 0)
      order[n_resident++] = (struct resident){p->buffers.v[i].start, i};
  }
  qsort(order, (size_t)n_resident, sizeof *order, by_start);
  for (int k = 0; k < n_resident; k++) {
    int i = order[k].buffer, kept = 0;
    const struct sw_place_buffer *b = &p->buffers.v[i];
    for (int l = 0; l < n_live; l++) {
      int j = live[l];
      const struct sw_place_buffer *o = &p->buffers.v[j];
      if (o->end <= b->start)
        continue;
      live[kept++] = j;
      if (address[i] < address[j] + o->size && address[j] < address[i] + b->size) {
        const char *why = check_overlap(job, p, address, i, j, child_of, parent_of);
        if (why)
          return why;
      }
    }
    live[kept++] = i;
    n_live = kept;
  }
  return NULL;
}

const char *sw_place_check(struct sw_job *job, const struct sw_place_problem *p, const int64_t *address,
                           int64_t *value, int64_t *peak)
{
  int64_t *at = SW_NEW_N(job->arena, int64_t, p->aliases.n); /* address + 2 of an alias group; 0 not seen yet */
  *value = *peak = 0;
  for (int i = 0; i < p->buffers.n; i++) {
    const struct sw_place_buffer *b = &p->buffers.v[i];
    const char *why = check_one(job, p, i, address[i]);
    if (why)
      return why;
    if (b->alias >= 0) {
      if (at[b->alias] && at[b->alias] != address[i] + 2)
        return sw_arena_printf(job->arena, "%s is not where its alias group %s is", b->name, p->aliases.v[b->alias]);
      at[b->alias] = address[i] + 2;
    }
    if (address[i] < 0)
      continue;
    *value += b->value;
    if (address[i] + b->size > *peak)
      *peak = address[i] + b->size;
  }
  return check_pairs(job, p, address);
}
