/* Exact packing by depth-first search.
 *
 * Push every item of a packing down until it rests on 0, on another item or at its pinned address; then place the
 * items again in ascending order of address (equal ones by rank). Whenever one is placed, everything it rests on is
 * there already, so it stands exactly on the highest of them: a packing is the same as an order. The search therefore
 * picks the next item and nothing else. At every node:
 *
 *   order       the next address is not below the last one
 *   dominance   nor at or above where some other item could already stand with its top: that one would go first
 *   bound       no section can hold what is still to come: lowest base possible there + heights to come > height
 *   pieces      items that no longer meet each other, directly or by others, are packed apart
 *
 * The bound counts what is wasted below: height 10, section with 4 placed and items of 3 and 3 to come; if both also
 * stand on something that ends at 5, then 5 + 3 + 3 > 10. The same ideas are in the minimalloc project's solver.
 *
 * Which item is tried first matters a lot and differs by problem: three rankings take turns with growing limits. */
#include "solver/place/pack.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_ITEMS = 3000 }; /* also the depth of the recursion */

/* What a placement changed, to be undone: the rest address of an item, or (item < 0) a placement. */
struct change {
  int item;
  int64_t rest;
};

struct candidate {
  int64_t rest;
  int rank, item;
};

/* Memory of one depth of the recursion. */
struct level {
  struct candidate *candidates;
  int *left;
};

struct search {
  struct sw_pack *k;
  const int *list;
  int n;
  int64_t *rest;    /* per item: lowest base on top of what is placed; pinned: its address */
  int *rank;        /* per item */
  int64_t *to_come; /* per section: heights of what is not placed */
  int64_t *lowest;  /* per section: scratch of the bound */
  struct level *levels;
  SW_VEC(struct change) trail;
  int64_t limit;    /* work of this turn */
  bool gave_up;
};

static int by_rest(const void *a, const void *b)
{
  const struct candidate *x = a, *y = b;
  if (x->rest != y->rest)
    return x->rest < y->rest ? -1 : 1;
  return (x->rank > y->rank) - (x->rank < y->rank);
}

/* Where item i goes if it goes now. */
static int64_t base_of(const struct search *s, int i)
{
  return s->k->items[i].address >= 0 ? s->k->items[i].address : s->rest[i];
}

static void place(struct search *s, int i)
{
  struct sw_pack *k = s->k;
  const struct sw_item *it = &k->items[i];
  k->offset[i] = base_of(s, i);
  *SW_PUSH(k->arena, &s->trail) = (struct change){-1 - i, 0};
  for (int p = 0; p < it->shape.n; p++)
    for (int t = it->shape.v[p].s0; t < it->shape.v[p].s1; t++)
      s->to_come[t] -= it->shape.v[p].h;
  for (int64_t e = k->meet_at[i]; e < k->meet_at[i + 1]; e++) {
    int j = k->meet[e].other;
    int64_t top = k->offset[i] + k->meet[e].own;
    if (k->offset[j] >= 0 || s->rest[j] >= top)
      continue;
    *SW_PUSH(k->arena, &s->trail) = (struct change){j, s->rest[j]};
    s->rest[j] = sw_round_up(top, k->items[j].alignment);
  }
}

static void undo_to(struct search *s, int mark)
{
  struct sw_pack *k = s->k;
  while (s->trail.n > mark) {
    struct change *c = &s->trail.v[--s->trail.n];
    if (c->item >= 0) {
      s->rest[c->item] = c->rest;
      continue;
    }
    int i = -1 - c->item;
    k->offset[i] = -1;
    const struct sw_item *it = &k->items[i];
    for (int p = 0; p < it->shape.n; p++)
      for (int t = it->shape.v[p].s0; t < it->shape.v[p].s1; t++)
        s->to_come[t] += it->shape.v[p].h;
  }
}

/* Whether all of list[0..n) may still fit, given that no base is below `last`. */
static bool may_fit(struct search *s, const int *list, int n, int64_t last)
{
  struct sw_pack *k = s->k;
  for (int p = 0; p < n; p++) {
    const struct sw_item *it = &k->items[list[p]];
    int64_t rest = s->rest[list[p]];
    if (it->address >= 0 && (rest > it->address || last > it->address))
      return false;
    if (rest < last)
      rest = last;
    if (rest > k->height - k->tallest[list[p]])
      return false;
    for (int q = 0; q < it->shape.n; q++)
      for (int t = it->shape.v[q].s0; t < it->shape.v[q].s1; t++)
        s->lowest[t] = INT64_MAX;
  }
  for (int p = 0; p < n; p++) {
    const struct sw_item *it = &k->items[list[p]];
    int64_t base = base_of(s, list[p]), rest = base < last ? last : base;
    for (int q = 0; q < it->shape.n; q++)
      for (int t = it->shape.v[q].s0; t < it->shape.v[q].s1; t++)
        if (rest < s->lowest[t])
          s->lowest[t] = rest;
    k->work -= it->shape.v[it->shape.n - 1].s1 - it->shape.v[0].s0;
  }
  for (int p = 0; p < n; p++) {
    const struct sw_item *it = &k->items[list[p]];
    for (int q = 0; q < it->shape.n; q++)
      for (int t = it->shape.v[q].s0; t < it->shape.v[q].s1; t++)
        if (s->lowest[t] + s->to_come[t] > k->height)
          return false;
  }
  return true;
}

static bool pack_all(struct search *s, const int *list, int n, int64_t last, int last_rank, int depth);

/* One piece: tries every item that may come next. */
static bool pack_piece(struct search *s, const int *list, int n, int64_t last, int last_rank, int depth)
{
  struct sw_pack *k = s->k;
  if (n == 1) {
    place(s, list[0]);
    return true;
  }
  int64_t lowest_top = INT64_MAX;
  for (int p = 0; p < n; p++) {
    int i = list[p];
    int64_t at = base_of(s, i);
    if (at + k->tallest[i] < lowest_top)
      lowest_top = at + k->tallest[i];
  }
  struct level *level = &s->levels[depth];
  if (!level->left) { /* items that are left at this depth: at most all but those placed above */
    level->left = SW_NEW_N(k->arena, int, s->n - depth);
    level->candidates = SW_NEW_N(k->arena, struct candidate, s->n - depth);
  }
  struct candidate *c = level->candidates;
  int *left = level->left, n_candidates = 0;
  for (int p = 0; p < n; p++) {
    int i = list[p];
    int64_t at = base_of(s, i);
    bool in_order = at > last || (at == last && s->rank[i] > last_rank);
    if (in_order && at < lowest_top)
      c[n_candidates++] = (struct candidate){at, s->rank[i], i};
  }
  qsort(c, (size_t)n_candidates, sizeof *c, by_rest);
  for (int q = 0; q < n_candidates && !s->gave_up; q++) {
    int n_left = 0, mark = s->trail.n;
    for (int p = 0; p < n; p++)
      if (list[p] != c[q].item)
        left[n_left++] = list[p];
    place(s, c[q].item);
    if (pack_all(s, left, n_left, c[q].rest, c[q].rank, depth + 1))
      return true;
    undo_to(s, mark);
  }
  return false;
}

/* Items in order of their first section: splits them where nothing that is left crosses. */
static bool pack_all(struct search *s, const int *list, int n, int64_t last, int last_rank, int depth)
{
  struct sw_pack *k = s->k;
  if (k->work < s->limit || (k->job && sw_cancelled(k->job))) {
    s->gave_up = true;
    return false;
  }
  if (!may_fit(s, list, n, last))
    return false;
  for (int a = 0, z; a < n; a = z) {
    int end = -1;
    for (z = a; z < n && (z == a || k->items[list[z]].shape.v[0].s0 < end); z++) {
      const struct sw_shape *shape = &k->items[list[z]].shape;
      if (shape->v[shape->n - 1].s1 > end)
        end = shape->v[shape->n - 1].s1;
    }
    if (!pack_piece(s, list + a, z - a, last, last_rank, depth))
      return false;
  }
  return true;
}

/* -- rankings -- */

enum ranking { LIFE_AREA, LOAD_AREA, LOAD_LIFE, N_RANKINGS };

static void rank(struct search *s, enum ranking ranking)
{
  struct sw_pack_key *keys = SW_NEW_N(s->k->arena, struct sw_pack_key, s->n);
  for (int p = 0; p < s->n; p++) {
    const struct sw_shape *shape = &s->k->items[s->list[p]].shape;
    int64_t life = shape->v[shape->n - 1].s1 - shape->v[0].s0, area = 0, load = 0;
    for (int q = 0; q < shape->n; q++) {
      area += shape->v[q].h * (shape->v[q].s1 - shape->v[q].s0);
      for (int t = shape->v[q].s0; t < shape->v[q].s1; t++)
        if (s->to_come[t] > load)
          load = s->to_come[t];
    }
    keys[p] = ranking == LIFE_AREA   ? (struct sw_pack_key){life, area, load, s->list[p]}
              : ranking == LOAD_AREA ? (struct sw_pack_key){load, area, life, s->list[p]}
                                     : (struct sw_pack_key){load, life, area, s->list[p]};
  }
  qsort(keys, (size_t)s->n, sizeof *keys, sw_by_pack_key);
  for (int p = 0; p < s->n; p++)
    s->rank[keys[p].i] = p;
}

enum { FIRST_TURN = 300000 };

enum sw_packed sw_pack_search(struct sw_pack *k, const int *list, int n)
{
  if (n > MAX_ITEMS)
    return SW_GAVE_UP;
  struct search s = {.k = k, .list = list, .n = n};
  s.rest = SW_NEW_N(k->arena, int64_t, k->n);
  s.rank = SW_NEW_N(k->arena, int, k->n);
  s.levels = SW_NEW_N(k->arena, struct level, n);
  s.to_come = SW_NEW_N(k->arena, int64_t, k->n_sections);
  s.lowest = SW_NEW_N(k->arena, int64_t, k->n_sections);
  for (int p = 0; p < n; p++) {
    const struct sw_shape *shape = &k->items[list[p]].shape;
    k->offset[list[p]] = -1;
    for (int q = 0; q < shape->n; q++)
      for (int t = shape->v[q].s0; t < shape->v[q].s1; t++)
        s.to_come[t] += shape->v[q].h;
  }
  for (int64_t turn = FIRST_TURN; k->work > 0; turn *= 2)
    for (int r = 0; r < N_RANKINGS && k->work > 0; r++) {
      rank(&s, (enum ranking)r);
      s.limit = k->work > turn ? k->work - turn : 0;
      s.gave_up = false;
      if (pack_all(&s, list, n, 0, -1, 0))
        return SW_PACKED;
      undo_to(&s, 0);
      if (!s.gave_up)
        return SW_UNPACKABLE;
    }
  return SW_GAVE_UP;
}
