#include "solver/place/pack.h"

#include <stdlib.h>
#include <string.h>

static int first_of(const struct sw_item *it)
{
  return it->shape.v[0].s0;
}

static int last_of(const struct sw_item *it)
{
  return it->shape.v[it->shape.n - 1].s1;
}

/* -- meetings -- */

struct piece {
  struct sw_slab part;
  int item;
};

static int by_start(const void *a, const void *b)
{
  const struct piece *x = a, *y = b;
  if (x->part.s0 != y->part.s0)
    return x->part.s0 < y->part.s0 ? -1 : 1;
  return (x->item > y->item) - (x->item < y->item);
}

/* All parts in order of their start; live ones meet the new one. Run twice, to count and to fill. */
static void sweep(const struct piece *pieces, int n, int *live, int64_t *at, struct sw_meeting *out)
{
  int n_live = 0;
  for (int k = 0; k < n; k++) {
    const struct piece *x = &pieces[k];
    int kept = 0;
    for (int l = 0; l < n_live; l++) {
      const struct piece *y = &pieces[live[l]];
      if (y->part.s1 <= x->part.s0)
        continue;
      live[kept++] = live[l];
      if (out) {
        out[at[x->item]] = (struct sw_meeting){y->item, x->part.h, y->part.h};
        out[at[y->item]] = (struct sw_meeting){x->item, y->part.h, x->part.h};
      }
      at[x->item]++;
      at[y->item]++;
    }
    live[kept++] = k;
    n_live = kept;
  }
}

static void find_meetings(struct sw_pack *k)
{
  int n = 0;
  for (int i = 0; i < k->n; i++)
    n += k->items[i].shape.n;
  struct piece *pieces = SW_NEW_N(k->arena, struct piece, n);
  n = 0;
  for (int i = 0; i < k->n; i++)
    for (int p = 0; p < k->items[i].shape.n; p++)
      pieces[n++] = (struct piece){k->items[i].shape.v[p], i};
  qsort(pieces, (size_t)n, sizeof *pieces, by_start);
  int *live = SW_NEW_N(k->arena, int, n);
  int64_t *count = SW_NEW_N(k->arena, int64_t, k->n + 1);
  sweep(pieces, n, live, count, NULL);
  k->meet_at = SW_NEW_N(k->arena, int64_t, k->n + 1);
  for (int i = 0; i < k->n; i++)
    k->meet_at[i + 1] = k->meet_at[i] + count[i];
  memcpy(count, k->meet_at, sizeof *count * (size_t)(k->n + 1));
  k->meet = SW_NEW_N(k->arena, struct sw_meeting, k->meet_at[k->n]);
  sweep(pieces, n, live, count, k->meet);
}

/* -- heights -- */

/* With one alignment, and a height that is a multiple of it, rounding all heights up changes nothing but makes the
 * bounds of the search sharper. */
static const struct sw_item *rounded(const struct sw_pack *k)
{
  for (int i = 0; i < k->n; i++)
    if (k->items[i].alignment != k->items[0].alignment || k->height % k->items[0].alignment)
      return k->items;
  struct sw_item *out = sw_arena_copy(k->arena, k->items, (size_t)k->n, sizeof *k->items);
  for (int i = 0; i < k->n; i++) {
    out[i].shape.v = sw_arena_copy(k->arena, out[i].shape.v, (size_t)out[i].shape.n, sizeof *out[i].shape.v);
    for (int p = 0; p < out[i].shape.n; p++)
      out[i].shape.v[p].h = sw_round_up(out[i].shape.v[p].h, out[i].alignment);
  }
  return out;
}

/* False when one item is too tall or a section too full. */
static bool fits_section_wise(struct sw_pack *k)
{
  int64_t *change = SW_NEW_N(k->arena, int64_t, k->n_sections + 1), load = 0;
  k->tallest = SW_NEW_N(k->arena, int64_t, k->n);
  for (int i = 0; i < k->n; i++) {
    const struct sw_item *it = &k->items[i];
    for (int p = 0; p < it->shape.n; p++) {
      const struct sw_slab *part = &it->shape.v[p];
      change[part->s0] += part->h;
      change[part->s1] -= part->h;
      if (part->h > k->tallest[i])
        k->tallest[i] = part->h;
    }
    if (k->tallest[i] > k->height || (it->address >= 0 && it->address > k->height - k->tallest[i]))
      return false;
  }
  for (int s = 0; s < k->n_sections; s++) {
    load += change[s];
    if (load > k->height)
      return false;
  }
  return true;
}

/* -- pieces of time -- */

struct start {
  int first, item;
};

static int by_first(const void *a, const void *b)
{
  const struct start *x = a, *y = b;
  if (x->first != y->first)
    return x->first < y->first ? -1 : 1;
  return (x->item > y->item) - (x->item < y->item);
}

static enum sw_packed pack_piece(struct sw_pack *k, const int *list, int n)
{
  if (sw_pack_by_order(k, list, n, 1) || sw_pack_glued(k, list, n) || sw_pack_by_order(k, list, n, 20))
    return SW_PACKED;
  k->by = "search";
  return sw_pack_search(k, list, n);
}

enum sw_packed sw_pack(struct sw_pack *k)
{
  struct sw_pack inner = *k;
  inner.arena = sw_arena_new(k->arena, SIZE_MAX);
  inner.items = rounded(&inner);
  inner.by = "order";
  enum sw_packed answer = SW_UNPACKABLE;
  if (fits_section_wise(&inner)) {
    find_meetings(&inner);
    struct start *order = SW_NEW_N(inner.arena, struct start, k->n);
    int *list = SW_NEW_N(inner.arena, int, k->n);
    for (int i = 0; i < k->n; i++)
      order[i] = (struct start){first_of(&inner.items[i]), i};
    qsort(order, (size_t)k->n, sizeof *order, by_first);
    answer = SW_PACKED;
    for (int a = 0, z; a < k->n && answer != SW_UNPACKABLE; a = z) {
      int end = 0;
      for (z = a; z < k->n && (z == a || order[z].first < end); z++) {
        list[z - a] = order[z].item;
        if (last_of(&inner.items[order[z].item]) > end)
          end = last_of(&inner.items[order[z].item]);
      }
      enum sw_packed one = pack_piece(&inner, list, z - a);
      if (one != SW_PACKED)
        answer = one;
    }
  }
  k->work = inner.work;
  k->by = inner.by;
  sw_arena_free(inner.arena);
  return answer;
}
