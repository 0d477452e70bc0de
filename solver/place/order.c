/* Cheap packers: items in some order, each at the lowest address that is free. */
#include "solver/place/pack.h"

#include <stdlib.h>
#include <string.h>

struct span {
  int64_t a, z; /* addresses a < x < z are taken for the base of the item in hand */
};

static int by_address(const void *a, const void *b)
{
  const struct span *x = a, *y = b;
  if (x->a != y->a)
    return x->a < y->a ? -1 : 1;
  return (x->z > y->z) - (x->z < y->z);
}

/* The lowest address for item i beside what is placed, or -1. An item of height 4 beside one of height 3 at 10 can't
 * have its base in (6, 13). */
static int64_t lowest(struct sw_pack *k, int i, struct span *taken)
{
  const struct sw_item *it = &k->items[i];
  int n = 0;
  for (int64_t e = k->meet_at[i]; e < k->meet_at[i + 1]; e++) {
    int64_t at = k->offset[k->meet[e].other];
    if (at >= 0)
      taken[n++] = (struct span){at - k->meet[e].own, at + k->meet[e].others};
  }
  k->work -= n + 1;
  qsort(taken, (size_t)n, sizeof *taken, by_address);
  int64_t base = it->address >= 0 ? it->address : 0;
  for (int s = 0; s < n && taken[s].a < base; s++)
    if (taken[s].z > base)
      base = sw_round_up(taken[s].z, it->alignment);
  if (it->address >= 0 && base != it->address)
    return -1;
  return base <= k->height - k->tallest[i] ? base : -1;
}

int sw_by_pack_key(const void *x, const void *y)
{
  const struct sw_pack_key *p = x, *q = y;
  if (p->a != q->a)
    return p->a > q->a ? -1 : 1;
  if (p->b != q->b)
    return p->b > q->b ? -1 : 1;
  if (p->c != q->c)
    return p->c > q->c ? -1 : 1;
  return (p->i > q->i) - (p->i < q->i);
}

enum order { BY_AREA, BY_LIFE, BY_HEIGHT, BY_START, N_ORDERS };

/* Pinned items come first in every order. */
static struct sw_pack_key key_of(const struct sw_pack *k, int i, int position, enum order order)
{
  const struct sw_shape *s = &k->items[i].shape;
  int64_t life = s->v[s->n - 1].s1 - s->v[0].s0, h = k->tallest[i], area = 0;
  for (int p = 0; p < s->n; p++)
    area += (s->v[p].s1 - s->v[p].s0) * s->v[p].h;
  struct sw_pack_key key = {.i = position};
  switch (order) {
  case BY_AREA:
    key.a = area;
    key.b = h;
    break;
  case BY_LIFE:
    key.a = life;
    key.b = h;
    break;
  case BY_HEIGHT:
    key.a = h;
    key.b = life;
    break;
  default:
    break;
  }
  if (k->items[i].address >= 0)
    key.a = INT64_MAX;
  return key;
}

/* Tries the order and then repairs it: what found no room goes to the front. */
static bool try_order(struct sw_pack *k, const int *list, int n, int rounds, struct sw_pack_key *keys, struct span *taken)
{
  int64_t front = (int64_t)1 << 61;
  for (int round = 0; round < rounds; round++) {
    bool fits = true;
    for (int p = 0; p < n; p++)
      k->offset[list[p]] = -1;
    qsort(keys, (size_t)n, sizeof *keys, sw_by_pack_key);
    for (int p = 0; p < n; p++) {
      int i = list[keys[p].i];
      k->offset[i] = lowest(k, i, taken);
      if (k->offset[i] < 0) {
        if (!p || k->work < 0)
          return false;
        fits = false;
        if (k->items[i].address < 0)
          keys[p].a = front++;
      }
    }
    if (fits)
      return true;
  }
  return false;
}

bool sw_pack_by_order(struct sw_pack *k, const int *list, int n, int rounds)
{
  int64_t widest = 0;
  for (int p = 0; p < n; p++)
    if (k->meet_at[list[p] + 1] - k->meet_at[list[p]] > widest)
      widest = k->meet_at[list[p] + 1] - k->meet_at[list[p]];
  struct span *taken = SW_NEW_N(k->arena, struct span, widest);
  struct sw_pack_key *keys = SW_NEW_N(k->arena, struct sw_pack_key, n);
  for (int order = 0; order < N_ORDERS; order++) {
    for (int p = 0; p < n; p++)
      keys[p] = key_of(k, list[p], p, (enum order)order);
    if (try_order(k, list, n, rounds, keys, taken))
      return true;
  }
  return false;
}
