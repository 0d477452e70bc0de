/* Packing by undoing cuts.
 *
 * In a full memory buffers that live exactly as long as each other can mostly be stacked into one, and a buffer that
 * starts when one of its height ends can mostly take its place. Both leave a smaller problem of the same kind; undone
 * in reverse they give addresses. A rectangle cut into pieces by a sequence of straight cuts comes together again:
 * [0,4) x 2 and [4,9) x 2 join to [0,9) x 2, which is stacked on [0,9) x 3 to [0,9) x 5. It proves nothing: other
 * packings are not looked at. */
#include "solver/place/pack.h"

#include <stdlib.h>

struct rect {
  int s0, s1;
  int64_t h;
  int item;        /* of the problem, or -1: made of a and b */
  int a, b;        /* a below b, or a before b */
  bool is_stack;
  bool is_gone;    /* inside another one */
};

struct glue {
  struct sw_pack *k;
  struct rect *r;
  int n;
  int *alive, n_alive;
  int64_t alignment; /* of all */
};

/* qsort has no context: the rects are sorted as copies with what is compared in front. */
struct key {
  int64_t a, b;
  int r;
};

static int by_key(const void *x, const void *y)
{
  const struct key *p = x, *q = y;
  if (p->a != q->a)
    return p->a < q->a ? -1 : 1;
  if (p->b != q->b)
    return p->b < q->b ? -1 : 1;
  return (p->r > q->r) - (p->r < q->r);
}

static void make(struct glue *g, int a, int b, bool is_stack)
{
  struct rect *x = &g->r[a], *y = &g->r[b];
  g->r[g->n] = (struct rect){.s0 = x->s0,
                             .s1 = is_stack ? x->s1 : y->s1,
                             .h = is_stack ? x->h + y->h : x->h,
                             .item = -1,
                             .a = a,
                             .b = b,
                             .is_stack = is_stack};
  x->is_gone = y->is_gone = true;
  g->alive[g->n_alive++] = g->n++;
}

static void drop_gone(struct glue *g)
{
  int kept = 0;
  for (int i = 0; i < g->n_alive; i++)
    if (!g->r[g->alive[i]].is_gone)
      g->alive[kept++] = g->alive[i];
  g->n_alive = kept;
}

/* Stacks all of equal life. */
static void stack(struct glue *g, struct key *keys)
{
  int n = g->n_alive;
  for (int i = 0; i < n; i++)
    keys[i] = (struct key){g->r[g->alive[i]].s0, g->r[g->alive[i]].s1, g->alive[i]};
  qsort(keys, (size_t)n, sizeof *keys, by_key);
  for (int i = 1; i < n; i++)
    if (keys[i].a == keys[i - 1].a && keys[i].b == keys[i - 1].b) {
      make(g, keys[i - 1].r, keys[i].r, true);
      keys[i].r = g->n - 1;
    }
  drop_gone(g);
}

/* Joins what ends with what starts there at the same height: a merge of the two sorted lists. */
static void join(struct glue *g, struct key *starts, struct key *ends)
{
  int n = g->n_alive;
  for (int i = 0; i < n; i++) {
    const struct rect *x = &g->r[g->alive[i]];
    starts[i] = (struct key){x->s0, x->h, g->alive[i]};
    ends[i] = (struct key){x->s1, x->h, g->alive[i]};
  }
  qsort(starts, (size_t)n, sizeof *starts, by_key);
  qsort(ends, (size_t)n, sizeof *ends, by_key);
  for (int i = 0, j = 0; i < n && j < n;) {
    int64_t d = ends[i].a != starts[j].a ? ends[i].a - starts[j].a : ends[i].b - starts[j].b;
    if (d < 0 || (d == 0 && g->r[ends[i].r].is_gone)) {
      i++;
    } else if (d > 0 || g->r[starts[j].r].is_gone) {
      j++;
    } else {
      make(g, ends[i].r, starts[j].r, false);
      i++;
      j++;
    }
  }
  drop_gone(g);
}

/* Gives the parts of rect r their addresses, from the top of the tree down. */
static void undo(struct glue *g, int64_t *base)
{
  for (int r = g->n - 1; r >= 0; r--) {
    const struct rect *x = &g->r[r];
    if (x->item >= 0) {
      g->k->offset[x->item] = base[r];
      continue;
    }
    base[x->a] = base[r];
    base[x->b] = base[r] + (x->is_stack ? g->r[x->a].h : 0);
  }
}

/* Packs the rects that are left: alone it is at 0, else they are a problem of their own. */
static bool pack_rest(struct glue *g, int64_t *base)
{
  struct sw_pack *k = g->k;
  struct sw_item *items = SW_NEW_N(k->arena, struct sw_item, g->n_alive);
  struct sw_slab *parts = SW_NEW_N(k->arena, struct sw_slab, g->n_alive);
  for (int i = 0; i < g->n_alive; i++) {
    const struct rect *x = &g->r[g->alive[i]];
    parts[i] = (struct sw_slab){x->s0, x->s1, x->h};
    items[i] = (struct sw_item){{&parts[i], 1}, g->alignment, -1};
  }
  struct sw_pack rest = {.arena = k->arena, .items = items, .n = g->n_alive, .n_sections = k->n_sections,
                         .height = k->height, .work = k->work / 8, .job = k->job,
                         .offset = SW_NEW_N(k->arena, int64_t, g->n_alive)};
  int64_t given = rest.work;
  enum sw_packed answer = sw_pack(&rest);
  k->work -= given - rest.work;
  for (int i = 0; i < g->n_alive; i++)
    base[g->alive[i]] = rest.offset[i];
  return answer == SW_PACKED;
}

bool sw_pack_glued(struct sw_pack *k, const int *list, int n)
{
  for (int p = 0; p < n; p++) {
    const struct sw_item *it = &k->items[list[p]];
    if (it->shape.n > 1 || it->address >= 0 || it->alignment != k->items[list[0]].alignment ||
        it->shape.v[0].h % it->alignment)
      return false;
  }
  struct glue g = {.k = k, .r = SW_NEW_N(k->arena, struct rect, 2 * n), .alive = SW_NEW_N(k->arena, int, 2 * n),
                   .alignment = k->items[list[0]].alignment};
  struct key *keys = SW_NEW_N(k->arena, struct key, 2 * n), *ends = SW_NEW_N(k->arena, struct key, 2 * n);
  for (int p = 0; p < n; p++) {
    const struct sw_slab *x = &k->items[list[p]].shape.v[0];
    g.r[g.n] = (struct rect){.s0 = x->s0, .s1 = x->s1, .h = x->h, .item = list[p]};
    g.alive[g.n_alive++] = g.n++;
  }
  for (int before = g.n_alive + 1; g.n_alive < before;) {
    before = g.n_alive;
    stack(&g, keys);
    join(&g, keys, ends);
  }
  if (g.n_alive == n)
    return false;
  int64_t *base = SW_NEW_N(k->arena, int64_t, g.n);
  if (!pack_rest(&g, base))
    return false;
  undo(&g, base);
  k->by = "gluing";
  return true;
}
