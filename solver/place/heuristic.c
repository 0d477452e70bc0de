/* The reference's greedy, first-fit and best-fit placers and its stack (scratchpad.md 5.3 to 5.5), with its ties.
 *
 * Two things that the reference does not know are added so that every problem gets a legal plan: pinned buffers are
 * placed before all others, and the buffers of an alias group are placed together, without in-place reuse. */
#include "solver/place/model.h"

#include <stdlib.h>
#include <string.h>

struct span {
  int64_t a, z; /* [a, z) */
};

struct state {
  const struct sw_place_problem *p;
  struct sw_meets meets;
  const bool *out;
  int64_t *address;
  int **group, *n_group;           /* members of every alias group */
  bool *handed;                    /* the slot was given to a child */
  struct span *span;               /* room for the obstacles of one buffer */
  const int *members, *parents;    /* of the buffer in hand; parents: none for an alias group */
  int n_members, n_parents, self;
  int64_t size, alignment;
};

static void take(struct state *s, int i)
{
  const struct sw_place_buffer *b = &s->p->buffers.v[i];
  s->self = i;
  s->members = &s->self;
  s->n_members = 1;
  s->parents = b->parents;
  s->n_parents = b->n_parents;
  if (b->alias >= 0) {
    s->members = s->group[b->alias];
    s->n_members = s->n_group[b->alias];
    s->n_parents = 0;
  }
  s->size = 0;
  s->alignment = s->p->alignment;
  for (int k = 0; k < s->n_members; k++) {
    const struct sw_place_buffer *q = &s->p->buffers.v[s->members[k]];
    if (q->size > s->size)
      s->size = q->size;
    if (q->alignment)
      s->alignment = s->alignment / sw_gcd(s->alignment, q->alignment) * q->alignment;
  }
}

static void put(struct state *s, int64_t address)
{
  for (int k = 0; k < s->n_members; k++)
    s->address[s->members[k]] = address;
}

/* Whether buffer j is a parent whose slot is still to be had. */
static bool is_open_parent(const struct state *s, int j)
{
  if (s->handed[j] || s->p->buffers.v[j].alias >= 0)
    return false;
  for (int k = 0; k < s->n_parents; k++)
    if (s->parents[k] == j)
      return true;
  return false;
}

static int by_address(const void *a, const void *b)
{
  const struct span *x = a, *y = b;
  if (x->a != y->a)
    return x->a < y->a ? -1 : 1;
  return (x->z > y->z) - (x->z < y->z);
}

/* Placed buffers that meet the one in hand, merged to spans in ascending order; `without_parents` leaves out those
 * whose slot it may take. */
static int obstacles(struct state *s, bool without_parents)
{
  int n = 0, merged = 0;
  for (int k = 0; k < s->n_members; k++) {
    int i = s->members[k];
    for (int64_t e = s->meets.at[i]; e < s->meets.at[i + 1]; e++) {
      int j = s->meets.v[e];
      bool is_self = s->p->buffers.v[i].alias >= 0 && s->p->buffers.v[j].alias == s->p->buffers.v[i].alias;
      if (s->address[j] >= 0 && !is_self && !(without_parents && is_open_parent(s, j)))
        s->span[n++] = (struct span){s->address[j], s->address[j] + s->p->buffers.v[j].size};
    }
  }
  qsort(s->span, (size_t)n, sizeof *s->span, by_address);
  for (int k = 0; k < n; k++)
    if (merged && s->span[k].a <= s->span[merged - 1].z) {
      if (s->span[k].z > s->span[merged - 1].z)
        s->span[merged - 1].z = s->span[k].z;
    } else {
      s->span[merged++] = s->span[k];
    }
  return merged;
}

/* Pinned buffers take their places, in order, where they do not collide. */
static void place_pinned(struct state *s)
{
  for (int i = 0; i < s->p->buffers.n; i++) {
    int64_t at = s->p->buffers.v[i].address;
    if (at < 0 || s->out[i] || s->address[i] >= 0)
      continue;
    take(s, i);
    bool is_free = true;
    for (int n = obstacles(s, false), k = 0; k < n; k++)
      is_free &= s->span[k].z <= at || at + s->size <= s->span[k].a;
    if (is_free)
      put(s, at);
  }
}

static struct state begin(struct sw_arena *arena, const struct sw_place_problem *p, const bool *out, int64_t *address)
{
  int n = p->buffers.n, n_groups = p->aliases.n;
  struct state s = {.p = p, .out = out, .address = address, .meets = sw_meets_make(arena, p)};
  s.handed = SW_NEW_N(arena, bool, n);
  s.n_group = SW_NEW_N(arena, int, n_groups);
  s.group = SW_NEW_N(arena, int *, n_groups);
  int64_t widest = 0;
  for (int i = 0; i < n; i++) {
    address[i] = -1;
    int64_t degree = s.meets.at[i + 1] - s.meets.at[i];
    if (degree > widest)
      widest = degree;
    if (p->buffers.v[i].alias >= 0)
      s.n_group[p->buffers.v[i].alias]++;
  }
  for (int g = 0; g < n_groups; g++) {
    s.group[g] = SW_NEW_N(arena, int, s.n_group[g]);
    s.n_group[g] = 0;
  }
  for (int i = 0; i < n; i++) {
    int g = p->buffers.v[i].alias;
    if (g >= 0)
      s.group[g][s.n_group[g]++] = i;
  }
  /* The obstacles of an alias group are those of all its members. */
  int64_t most = widest;
  for (int g = 0; g < n_groups; g++)
    if (widest * s.n_group[g] > most)
      most = widest * s.n_group[g];
  s.span = SW_NEW_N(arena, struct span, most);
  place_pinned(&s);
  return s;
}

static bool to_be_placed(const struct state *s, int i)
{
  return !s->out[i] && s->address[i] < 0 && s->p->buffers.v[i].address < 0;
}

static void hand_over(struct state *s, int parent)
{
  s->handed[parent] = true;
  put(s, s->address[parent]);
}

/* -- greedy -- */

/* Below the lowest block in use, else above the highest, else the first gap; -1 when there is none. 30 bytes beside
 * live [20, 40) of 100: not below (20 < 30), so at 40. */
static int64_t find_room(struct state *s)
{
  int n = obstacles(s, false);
  int64_t capacity = s->p->capacity;
  if (s->size > capacity)
    return -1;
  if (!n || s->span[0].a >= s->size)
    return 0;
  int64_t above = sw_round_up(s->span[n - 1].z, s->alignment);
  if (above <= capacity - s->size)
    return above;
  for (int k = 0; k + 1 < n; k++) {
    int64_t at = sw_round_up(s->span[k].z, s->alignment);
    if (at + s->size <= s->span[k + 1].a)
      return at;
  }
  return -1;
}

struct ordered {
  int64_t key;
  int i;
};

static int by_order(const void *a, const void *b)
{
  const struct ordered *x = a, *y = b;
  if (x->key != y->key)
    return x->key < y->key ? -1 : 1;
  return (x->i > y->i) - (x->i < y->i);
}

void sw_place_greedy(struct sw_arena *arena, const struct sw_place_problem *p, const bool *out, int64_t *address)
{
  struct state s = begin(arena, p, out, address);
  struct ordered *order = SW_NEW_N(arena, struct ordered, p->buffers.n);
  for (int i = 0; i < p->buffers.n; i++)
    order[i] = (struct ordered){p->buffers.v[i].start, i};
  qsort(order, (size_t)p->buffers.n, sizeof *order, by_order);
  for (int k = 0; k < p->buffers.n; k++) {
    int i = order[k].i, parent = -1;
    if (!to_be_placed(&s, i))
      continue;
    take(&s, i);
    for (int q = 0; q < s.n_parents && parent < 0; q++)
      if (address[s.parents[q]] >= 0 && is_open_parent(&s, s.parents[q]) &&
          !(address[s.parents[q]] % s.alignment))
        parent = s.parents[q];
    if (parent >= 0)
      hand_over(&s, parent);
    else
      put(&s, find_room(&s));
  }
}

/* -- first-fit and best-fit -- */

/* The reference's score (span - 1/4 [has parents] - 1/4 [is a parent]) / (uses + 1/2 [first use is a write]) as a
 * fraction of integers, and its tie: the span. */
struct score {
  int64_t num, den, span;
  int i;
};

static int by_score(const void *a, const void *b)
{
  const struct score *x = a, *y = b;
  __int128 left = (__int128)x->num * y->den, right = (__int128)y->num * x->den;
  if (left != right)
    return left < right ? -1 : 1;
  if (x->span != y->span)
    return x->span < y->span ? -1 : 1;
  return (x->i > y->i) - (x->i < y->i);
}

/* A heap of positions, smallest first. */
static void heap_push(int *heap, int *n, int v)
{
  int k = (*n)++;
  for (; k && heap[(k - 1) / 2] > v; k = (k - 1) / 2)
    heap[k] = heap[(k - 1) / 2];
  heap[k] = v;
}

static int heap_pop(int *heap, int *n)
{
  int top = heap[0], v = heap[--*n], k = 0;
  for (int c; (c = 2 * k + 1) < *n; k = c) {
    if (c + 1 < *n && heap[c + 1] < heap[c])
      c++;
    if (heap[c] >= v)
      break;
    heap[k] = heap[c];
  }
  heap[k] = v;
  return top;
}

struct list {
  SW_VEC(int) of;
};

int *sw_place_parents_first(struct sw_arena *arena, const struct sw_place_problem *p, const bool *out, const int *rank,
                            int *n_out)
{
  int n = p->buffers.n, n_heap = 0, n_order = 0;
  int *waits = SW_NEW_N(arena, int, n), *position = SW_NEW_N(arena, int, n), *heap = SW_NEW_N(arena, int, n),
      *order = SW_NEW_N(arena, int, n);
  struct list *children = SW_NEW_N(arena, struct list, n);
  for (int i = 0; i < n; i++)
    for (int k = 0; k < p->buffers.v[i].n_parents; k++) {
      int parent = p->buffers.v[i].parents[k];
      if (!out[i] && !out[parent]) {
        waits[i]++;
        *SW_PUSH(arena, &children[parent].of) = i;
      }
    }
  for (int k = 0; k < n; k++)
    position[rank[k]] = k;
  for (int i = 0; i < n; i++)
    if (!out[i] && !waits[i])
      heap_push(heap, &n_heap, position[i]);
  while (n_heap) {
    int i = rank[heap_pop(heap, &n_heap)];
    order[n_order++] = i;
    for (int k = 0; k < children[i].of.n; k++)
      if (!--waits[children[i].of.v[k]])
        heap_push(heap, &n_heap, position[children[i].of.v[k]]);
  }
  *n_out = n_order;
  return order;
}

/* Buffers by score, parents before children. */
static int *order_by_score(struct sw_arena *arena, const struct state *s, int *n_out)
{
  int n = s->p->buffers.n;
  bool *is_parent = SW_NEW_N(arena, bool, n);
  int *rank = SW_NEW_N(arena, int, n);
  struct score *score = SW_NEW_N(arena, struct score, n);
  for (int i = 0; i < n; i++)
    for (int k = 0; k < s->p->buffers.v[i].n_parents; k++)
      is_parent[s->p->buffers.v[i].parents[k]] = true;
  for (int i = 0; i < n; i++) {
    const struct sw_place_buffer *b = &s->p->buffers.v[i];
    int64_t span = b->end - b->start;
    score[i] = (struct score){4 * span - (b->n_parents > 0) - is_parent[i],
                              2 * (int64_t)(b->uses ? b->uses : 2) + !b->is_input, span, i};
  }
  qsort(score, (size_t)n, sizeof *score, by_score);
  for (int k = 0; k < n; k++)
    rank[k] = score[k].i;
  return sw_place_parents_first(arena, s->p, s->out, rank, n_out);
}

/* The first declared parent whose whole slot lies inside the gap, or -1. */
static int parent_inside(const struct state *s, struct span gap)
{
  for (int k = 0; k < s->n_parents; k++) {
    int j = s->parents[k];
    if (s->address[j] >= gap.a && s->address[j] + s->p->buffers.v[j].size <= gap.z && is_open_parent(s, j) &&
        !(s->address[j] % s->alignment))
      return j;
  }
  return -1;
}

/* Picks a gap between the obstacles that has room: the first, or (best) the one with the least left over. With
 * for_parents only gaps count that hold the slot of a parent. Gives the gap; its a is -1 when there is none. */
static struct span pick_gap(struct state *s, bool for_parents, bool best)
{
  int n = obstacles(s, for_parents);
  struct span found = {-1, -1};
  int64_t least = INT64_MAX, from = 0;
  for (int k = 0; k <= n; k++) {
    struct span gap = {from, k < n ? s->span[k].a : s->p->capacity};
    if (k < n)
      from = s->span[k].z;
    int64_t left = gap.z - sw_round_up(gap.a, s->alignment) - s->size;
    if (left < 0 || left >= least || (for_parents && parent_inside(s, gap) < 0))
      continue;
    found = gap;
    least = left;
    if (!best)
      break;
  }
  return found;
}

void sw_place_fit(struct sw_arena *arena, const struct sw_place_problem *p, const bool *out, bool best,
                  int64_t *address)
{
  struct state s = begin(arena, p, out, address);
  int n, *order = order_by_score(arena, &s, &n);
  for (int k = 0; k < n; k++) {
    if (!to_be_placed(&s, order[k]))
      continue;
    take(&s, order[k]);
    struct span gap = s.n_parents ? pick_gap(&s, true, best) : (struct span){-1, -1};
    if (gap.a >= 0) {
      hand_over(&s, parent_inside(&s, gap));
      continue;
    }
    gap = pick_gap(&s, false, best);
    put(&s, gap.a < 0 ? -1 : sw_round_up(gap.a, s.alignment));
  }
}

/* -- stack -- */

/* Whether one of the two may take the other's slot. */
static bool is_pair(const struct state *s, int parent, int child)
{
  const struct sw_place_buffer *c = &s->p->buffers.v[child], *p = &s->p->buffers.v[parent];
  if (c->alias >= 0 || p->alias >= 0 || c->size > p->size)
    return false;
  for (int k = 0; k < c->n_parents; k++)
    if (c->parents[k] == parent)
      return true;
  return false;
}

/* The bytes in use that end highest and are not those of buffer `but` (-1: of all). */
static int64_t top_beside(const struct state *s, int but)
{
  int64_t top = 0;
  for (int k = 0; k < s->n_members; k++) {
    int i = s->members[k];
    for (int64_t e = s->meets.at[i]; e < s->meets.at[i + 1]; e++) {
      int j = s->meets.v[e];
      if (j != but && s->address[j] >= 0 && s->address[j] + s->p->buffers.v[j].size > top)
        top = s->address[j] + s->p->buffers.v[j].size;
    }
  }
  return top;
}

/* The slot of a partner in place that nothing else stands above, or -1. A parent may come behind its child. */
static int64_t slot_of_partner(const struct state *s)
{
  if (s->n_members > 1)
    return -1;
  for (int64_t e = s->meets.at[s->self]; e < s->meets.at[s->self + 1]; e++) {
    int j = s->meets.v[e];
    if (s->address[j] >= 0 && !(s->address[j] % s->alignment) && (is_pair(s, j, s->self) || is_pair(s, s->self, j)) &&
        top_beside(s, j) <= s->address[j] && s->address[j] + s->size <= s->p->capacity)
      return s->address[j];
  }
  return -1;
}

/* Buffers in the order of the list, each on top of all that it meets and that came before; a buffer that meets one
 * without a place has none either (barred ones do not count). a [0,2) of 64 bytes, b [1,5) of 64, c [3,5) of 64: at 0, 64 and 128, although the
 * bytes under b are free by then. The order is all there is to it: whoever looks for a good one gets its plan here. */
void sw_place_stack(struct sw_arena *arena, const struct sw_place_problem *p, const bool *out, int64_t *address)
{
  struct state s = begin(arena, p, out, address);
  bool *homeless = SW_NEW_N(arena, bool, p->buffers.n);
  for (int i = 0; i < p->buffers.n; i++) {
    homeless[i] |= p->buffers.v[i].size > p->capacity;
    if (!to_be_placed(&s, i) || homeless[i])
      continue;
    take(&s, i);
    bool rests = true;
    for (int k = 0; k < s.n_members; k++)
      for (int64_t e = s.meets.at[s.members[k]]; e < s.meets.at[s.members[k] + 1]; e++)
        rests &= !homeless[s.meets.v[e]];
    int64_t at = rests ? slot_of_partner(&s) : -1;
    if (rests && at < 0) {
      at = sw_round_up(top_beside(&s, -1), s.alignment);
      if (at > p->capacity - s.size)
        at = -1;
    }
    put(&s, at);
    for (int k = 0; k < s.n_members; k++)
      homeless[s.members[k]] = at < 0;
  }
}
