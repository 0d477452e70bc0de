#include "compiler/layout/normal.h"

#include "base/number.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Op specs allow one symbol a coordinate, the same number of device dims in all tensors of an op, and the stick's
 * symbol twice (tile and lane). Accesses are freer: a dim of 64 heads-and-tiles may be addressed by 2*d1 + d3 div 64.
 * Dims are cut until every piece belongs to one loop, loops are cut until every piece of a dim is one symbol, and what a
 * tensor lacks is added as dims of one element outside. Cutting a row-major dim into (outer, inner) moves nothing in
 * memory.
 *
 * Worked number: the heads [2,32,256,128] of [2,256,4096] have coordinates (d2, 2*d1 + d3 div 64, d0, d3 mod 64) over
 * sizes [256,64,2,64]. The second dim is cut into 32 x 2, the result is (d2, d1, d3 div 64, d0, d3 mod 64) over
 * [256,32,2,2,64]; no loop is cut.
 *
 * Unlike the reference, a step (every second row) becomes a dim of its own with a symbol of range 1, so that its
 * position is counted like any other; and carries between the pieces of a dim are refused. */

enum { MAX_PIECES = SW_NORMAL_RANK, MAX_POINTS = 16 };

/* A piece of a device dim: start + (loop mod `mod`) div `den`, or a fixed place (loop -1), or a row number. */
struct piece {
  int64_t extent;
  int loop;
  int64_t den, mod; /* mod: upper end, the loop's range where nothing wraps */
  int64_t start;
  int unit; /* number of the symbol of range 1 for a fixed place, -1 */
  bool is_row, is_half; /* is_half: both tiles of a pair of which only lane 0 counts */
};

struct shape {
  struct piece v[MAX_PIECES];
  int n;
  int stick; /* loop, -1 */
  int64_t eps;
  int n_units;
  /* aligned: */
  int64_t size[MAX_PIECES];
  struct sw_spec_coord coord[MAX_PIECES];
  int rank;
};

struct align {
  struct sw_arena *arena; /* of the result */
  struct sw_normal *out;
  const struct sw_op *op;
  const struct sw_normal_input *t;
  struct shape *shape;
  int n;
  /* where loops are cut: point[l][0] = 1 < .. < point[l][n_points - 1] = range */
  int64_t point[SW_MAX_LOOPS][MAX_POINTS];
  int n_points[SW_MAX_LOOPS];
  int symbol[SW_MAX_LOOPS][MAX_POINTS]; /* of segment [point k, point k + 1) */
  int unit[MAX_PIECES];                 /* symbols of range 1 */
  int n_units;
};

static bool refuse(struct align *a, int i, const char *why, const char *advice)
{
  a->out->culprit = i;
  a->out->why = why;
  a->out->advice = advice;
  return false;
}

/* Text of a refusal; without an arena nobody asks why. */
static const char *say(struct align *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static const char *say(struct align *a, const char *fmt, ...)
{
  char text[160];
  va_list args;
  va_start(args, fmt);
  vsnprintf(text, sizeof text, fmt, args);
  va_end(args);
  return a->arena ? sw_arena_strdup(a->arena, text) : "";
}

static const char copy_first[] = "copy the tensor (contiguous, clone) before this op";

/* -- cutting dims into pieces (3.7.1) -- */

static bool add_piece(struct align *a, int i, struct piece p)
{
  struct shape *s = &a->shape[i];
  if (s->n == MAX_PIECES)
    return refuse(a, i, "more than 16 pieces of device dims", copy_first);
  s->v[s->n++] = p;
  return true;
}

static bool add_unit(struct align *a, int i, int64_t extent, int64_t start)
{
  struct shape *s = &a->shape[i];
  return add_piece(a, i, (struct piece){.extent = extent, .loop = -1, .start = start, .unit = s->n_units++});
}

/* Largest value of a term's (loop mod m) div den. */
static int64_t most(const struct align *a, const struct sw_term *t)
{
  int64_t range = a->op->range[t->loop], m = t->mod && t->mod < range ? t->mod : range;
  return (m - 1) / t->den;
}

/* One device dim that is not the stick: a sum of terms, biggest unit outermost. */
static bool cut_dim(struct align *a, int i, int64_t extent, const struct sw_coord *c)
{
  struct sw_term term[4];
  int n = c->n;
  for (int k = 0; k < n; k++) {
    int at = k;
    for (; at > 0 && term[at - 1].num < c->term[k].num; at--)
      term[at] = term[at - 1];
    term[at] = c->term[k];
  }
  if (c->index)
    return n || c->constant ? refuse(a, i, "a row number with something added to it", copy_first)
                            : add_piece(a, i, (struct piece){.extent = extent, .loop = -1, .unit = -1, .is_row = true});
  if (!n)
    return extent <= 1 || add_unit(a, i, extent, c->constant);
  int64_t rest = c->constant;
  for (int k = 0; k < n; k++) {
    const struct sw_term *t = &term[k];
    int64_t range = a->op->range[t->loop];
    if ((t->num != 1 && t->den != 1) || extent % t->num)
      return refuse(a, i,
                    say(a, "steps of %" PRId64 "/%" PRId64 " in a device dim of %" PRId64,
                                    t->num, t->den, extent),
                    copy_first);
    struct piece p = {.extent = extent / t->num,
                      .loop = t->loop,
                      .den = t->den,
                      .mod = t->mod && t->mod < range ? t->mod : range,
                      .start = rest / t->num,
                      .unit = -1};
    rest %= t->num;
    if (p.start + most(a, t) >= p.extent)
      return refuse(a, i, "loops that carry into each other within one device dim", copy_first);
    if (!add_piece(a, i, p))
      return false;
    extent = t->num;
  }
  return extent <= 1 || add_unit(a, i, extent, rest);
}

/* Steps that a device dim is not a multiple of: it and the dim outside, where that has a fixed place, count as one. Rows 1, 3,
 * 5, 7 of 9 in tile 0 of 2 are places 1 + 2 d of 18, in tile 1 places 10 + 2 d. Gives the number of dims. */
static int join_dims(const struct sw_normal_input *t, int64_t *extent, struct sw_coord *coord)
{
  int n = 0;
  for (int j = 0; j < t->layout->rank - 1; j++) {
    extent[n] = t->layout->device_size[j];
    coord[n++] = t->coord[j];
    for (int k = 0; k < coord[n - 1].n; k++)
      while (n > 1 && extent[n - 1] % coord[n - 1].term[k].num && !coord[n - 2].n && !coord[n - 2].index) {
        coord[n - 1].constant += coord[n - 2].constant * extent[n - 1];
        extent[n - 2] *= extent[n - 1];
        coord[n - 2] = coord[n - 1];
        n--;
      }
  }
  return n;
}

static bool cut_tensor(struct align *a, int i)
{
  const struct sw_layout *l = a->t[i].layout;
  const struct sw_coord *c = a->t[i].coord, *lane = &c[l->rank - 1];
  struct shape *s = &a->shape[i];
  s->eps = sw_format_eps(l->format);
  s->stick = lane->n ? lane->term[0].loop : -1;
  if (lane->n > 1 || lane->constant || lane->index || (lane->n && (lane->term[0].num != 1 || lane->term[0].den != 1)) ||
      (lane->n && lane->term[0].mod && lane->term[0].mod != s->eps))
    return refuse(a, i, "an access that starts or steps inside a stick", "convert the tensor to another stick dim");
  int half = s->stick < 0 ? sw_layout_half_pair(l) : -1, n = l->rank - 1;
  int64_t extent[SW_MAX_DEVICE_RANK];
  struct sw_coord joined[SW_MAX_DEVICE_RANK];
  memcpy(extent, l->device_size, sizeof extent);
  memcpy(joined, c, (size_t)n * sizeof *joined);
  if (half < 0)
    n = join_dims(&a->t[i], extent, joined);
  for (int j = 0; j < n; j++)
    if (j == half ? !add_piece(a, i, (struct piece){.extent = 2, .loop = -1, .unit = -1, .is_half = true})
                  : !cut_dim(a, i, extent[j], &joined[j]))
      return false;
  if (s->n_units > a->n_units)
    a->n_units = s->n_units;
  return true;
}

/* Two neighbours that are the upper and the lower part of one loop are one dim (3.7.2): d0 div 4 over d0 mod 4. */
static void fuse(struct shape *s)
{
  int n = 0;
  for (int k = 0; k < s->n; k++) {
    struct piece *outer = n ? &s->v[n - 1] : NULL;
    const struct piece *inner = &s->v[k];
    if (outer && outer->loop >= 0 && outer->loop == inner->loop && outer->den == inner->mod &&
        inner->extent * inner->den == outer->den) {
      outer->start = outer->start * inner->extent + inner->start;
      outer->extent *= inner->extent;
      outer->den = inner->den;
      continue;
    }
    s->v[n++] = *inner;
  }
  s->n = n;
}

/* -- cutting loops (3.7.3) -- */

static bool add_point(struct align *a, int loop, int64_t at)
{
  int64_t *p = a->point[loop];
  int n = a->n_points[loop], k = n;
  while (k > 0 && p[k - 1] > at)
    k--;
  if (k > 0 && p[k - 1] == at)
    return true;
  if (n == MAX_POINTS)
    return false;
  memmove(p + k + 1, p + k, (size_t)(n - k) * sizeof *p);
  p[k] = at;
  a->n_points[loop]++;
  return true;
}

static bool cut_loops(struct align *a)
{
  for (int l = 0; l < a->op->n_loops; l++) {
    add_point(a, l, 1);
    add_point(a, l, a->op->range[l]);
  }
  for (int i = 0; i < a->n; i++)
    for (int k = 0; k < a->shape[i].n; k++) {
      const struct piece *p = &a->shape[i].v[k];
      if (p->loop < 0)
        continue;
      /* The tile of the stick's own loop stays floor(v / e). */
      bool is_tile = p->loop == a->shape[i].stick && p->den == a->shape[i].eps;
      if ((!is_tile && !add_point(a, p->loop, p->den)) || !add_point(a, p->loop, p->mod))
        return refuse(a, i, "a loop in more than 15 parts", copy_first);
    }
  for (int i = 0; i < a->n; i++)
    for (int k = -1; k < a->shape[i].n; k++) {
      const struct shape *s = &a->shape[i];
      int l = k < 0 ? s->stick : s->v[k].loop;
      if (l < 0)
        continue;
      for (int q = 1; q < a->n_points[l]; q++)
        if (a->point[l][q] % a->point[l][q - 1])
          return refuse(a, i,
                        say(a, "a loop of %" PRId64 " that would be cut into parts of %" PRId64
                                        " and %" PRId64,
                                        a->op->range[l], a->point[l][q - 1], a->point[l][q]),
                        copy_first);
      if (k < 0 && a->n_points[l] > 2 && a->point[l][1] % s->eps)
        return refuse(a, i,
                      say(a, "a stick that would be cut at element %" PRId64, a->point[l][1]),
                      copy_first);
    }
  return true;
}

static int add_symbol(struct align *a, bool is_new, int number, int64_t range, int64_t split)
{
  *SW_PUSH(a->arena, &a->out->space) = (struct sw_normal_symbol){is_new, number, range, split};
  return a->out->space.n - 1;
}

/* Elements a core may not share: a stick where the loop is somebody's stick. */
static int64_t grain(const struct align *a, int loop)
{
  int64_t e = 1;
  for (int i = 0; i < a->n; i++)
    if (a->shape[i].stick == loop && a->shape[i].eps > e)
      e = a->shape[i].eps;
  return e;
}

/* How many accesses want loop a inside loop b: those that do not depend on b or step further with it. */
static int votes(const struct sw_op *op, int a, int b)
{
  int n = op->out.step[b] == 0 || op->out.step[a] < op->out.step[b];
  for (int i = 0; i < op->n_in; i++)
    n += op->in[i].step[b] == 0 || op->in[i].step[a] < op->in[i].step[b];
  return n;
}

/* The written loops, outermost first, as most accesses lie in memory; ties stay as they are. So the reference's
 * framework orders them, and labels and core numbers follow the order. The loops of a matmul have their roles by
 * place. */
static void order_loops(const struct sw_op *op, int *order)
{
  bool sorts = op->op != SW_OP_MATMUL && op->op != SW_OP_MATMULFP8;
  for (int l = 0; l < op->n_loops; l++) {
    int at = l;
    for (; sorts && l < op->n_written && at > 0 && votes(op, order[at - 1], l) > votes(op, l, order[at - 1]); at--)
      order[at] = order[at - 1];
    order[at] = l;
  }
}

bool sw_renumbers_cores(const struct sw_op *op, const int64_t *split, const int *order)
{
  int last = -1;
  for (int i = 0; i < op->n_loops; i++) {
    if (split[order[i]] == 1)
      continue;
    if (order[i] < last)
      return true;
    last = order[i];
  }
  return false;
}

void sw_loop_order(const struct sw_op *op, const int64_t *split, bool keeps_cores, int *order)
{
  order_loops(op, order);
  if (keeps_cores && split && sw_renumbers_cores(op, split, order))
    for (int l = 0; l < op->n_loops; l++)
      order[l] = l;
}

/* The first part of a loop keeps its name, the others follow it. The cores go to the outer parts first. */
static void make_symbols(struct align *a, const int64_t *split, const int *order)
{
  int next = 0;
  for (int i = 0; i < a->op->n_loops; i++) {
    int l = order[i];
    const int64_t *p = a->point[l];
    int n = a->n_points[l] - 1;
    int64_t left = split ? split[l] : 1, part[MAX_POINTS];
    for (int k = n - 1; k >= 0; k--) {
      int64_t length = p[k + 1] / p[k], e = k ? 1 : grain(a, l);
      part[k] = n == 1 ? left : sw_gcd(left, (length + e - 1) / e);
      left /= part[k];
    }
    for (int k = 0; k < n; k++)
      a->symbol[l][k] = add_symbol(a, k > 0, k ? next++ : i, p[k + 1] / p[k], part[k]);
  }
  for (int k = 0; k < a->n_units; k++)
    a->unit[k] = add_symbol(a, true, next++, 1, 1);
}

/* -- writing the pieces over the symbols (3.7.4) -- */

static bool put(struct align *a, int i, int64_t size, struct sw_spec_coord c)
{
  struct shape *s = &a->shape[i];
  if (s->rank == MAX_PIECES - 1)
    return refuse(a, i, "more than 16 device dims", copy_first);
  s->size[s->rank] = size;
  s->coord[s->rank++] = c;
  return true;
}

static bool put_piece(struct align *a, int i, const struct piece *p)
{
  const struct shape *s = &a->shape[i];
  if (p->is_row)
    return put(a, i, p->extent, (struct sw_spec_coord){.form = SW_COORD_INDIRECT});
  if (p->is_half)
    return put(a, i, p->extent, (struct sw_spec_coord){.form = SW_COORD_CONST});
  if (p->loop < 0)
    return put(a, i, p->extent,
               (struct sw_spec_coord){.form = SW_COORD_SYMBOL, .symbol = a->unit[p->unit], .k = p->start});
  const int64_t *at = a->point[p->loop];
  int n = a->n_points[p->loop] - 1;
  int64_t left = p->extent, start = p->start;
  bool is_tile = p->loop == s->stick && p->den == s->eps;
  if (is_tile && at[n] <= p->den) /* tiles of which the loop reaches one only */
    return put(a, i, left, (struct sw_spec_coord){.form = SW_COORD_FLOOR, .symbol = a->symbol[p->loop][0], .e = s->eps});
  for (int k = n - 1; k >= 0; k--) { /* outermost part first */
    int64_t low = at[k] > p->den ? at[k] : p->den;
    if (at[k + 1] <= p->den || at[k] >= p->mod)
      continue;
    int64_t below = low / p->den; /* elements of the piece inside this part */
    if (left % below)
      return refuse(a, i, say(a, "a device dim of %" PRId64 " that would be cut at %" PRId64,
                                          p->extent, below),
                    copy_first);
    struct sw_spec_coord c = {.form = SW_COORD_SYMBOL, .symbol = a->symbol[p->loop][k], .k = start / below};
    if (is_tile && !k) {
      c.form = SW_COORD_FLOOR;
      c.e = s->eps;
    }
    start %= below;
    if (!put(a, i, left / below, c))
      return false;
    left = below;
  }
  return !start || refuse(a, i, "a start that carries between the parts of a loop", copy_first);
}

static void put_first(struct shape *s, struct sw_spec_coord c)
{
  memmove(s->size + 1, s->size, (size_t)s->rank * sizeof *s->size);
  memmove(s->coord + 1, s->coord, (size_t)s->rank * sizeof *s->coord);
  s->size[0] = 1;
  s->coord[0] = c;
  s->rank++;
}

/* -- common rank (3.7.5) -- */

/* The tile dim of the stick, -1: there is none. One value a stick has tile 0. */
static int tile(const struct shape *s, const struct sw_spec_coord *lane)
{
  for (int j = 0; j < s->rank; j++)
    if (lane->form == SW_COORD_MOD ? s->coord[j].form == SW_COORD_FLOOR && s->coord[j].symbol == lane->symbol
                                   : s->coord[j].form == SW_COORD_CONST)
      return j;
  return -1;
}

static int placeholder(const struct shape *s)
{
  for (int j = 0; j < s->rank; j++)
    if (s->size[j] == 1 && s->coord[j].form == SW_COORD_CONST)
      return j;
  return -1;
}

static bool level(struct align *a, const struct sw_spec_coord *lanes)
{
  const struct sw_spec_coord zero = {.form = SW_COORD_CONST};
  int rank = 0;
  for (int i = 0; i < a->n; i++)
    rank = a->shape[i].rank > rank ? a->shape[i].rank : rank;
  for (int i = 0; i < a->n; i++)
    while (a->shape[i].rank < rank)
      put_first(&a->shape[i], zero);
  bool grow = false;
  for (int i = 0; i < a->n; i++)
    grow = grow || (tile(&a->shape[i], &lanes[i]) < 0 && placeholder(&a->shape[i]) < 0);
  if (rank + grow > MAX_PIECES - 1)
    return refuse(a, 0, "more than 16 device dims", copy_first);
  for (int i = 0; i < a->n; i++) {
    struct shape *s = &a->shape[i];
    if (grow)
      put_first(s, zero);
    if (tile(s, &lanes[i]) < 0)
      s->coord[placeholder(s)] =
          (struct sw_spec_coord){.form = SW_COORD_FLOOR, .symbol = lanes[i].symbol, .e = s->eps};
  }
  return true;
}

/* Every tensor but index tensors counts every fixed place; what it lacks is a dim of one element, outermost. */
static bool add_missing_units(struct align *a, int i)
{
  struct shape *s = &a->shape[i];
  for (int k = a->n_units - 1; k >= s->n_units && !a->t[i].is_index; k--) {
    if (s->rank == MAX_PIECES - 1)
      return refuse(a, i, "more than 16 device dims", copy_first);
    put_first(s, (struct sw_spec_coord){.form = SW_COORD_SYMBOL, .symbol = a->unit[k]});
  }
  return true;
}

unsigned sw_normal_cut_loops(const struct sw_op *op, const struct sw_normal_input *t, int n)
{
  struct shape shape[SW_MAX_INPUTS + 1];
  struct sw_normal out;
  struct align a = {.out = &out, .op = op, .t = t, .n = n, .shape = shape};
  memset(shape, 0, sizeof shape);
  for (int i = 0; i < n; i++) {
    if (!cut_tensor(&a, i))
      return ~0u;
    fuse(&a.shape[i]);
  }
  if (!cut_loops(&a))
    return ~0u;
  unsigned cut = 0;
  for (int l = 0; l < op->n_loops; l++)
    cut |= a.n_points[l] > 2 ? 1u << l : 0;
  return cut;
}

static bool align(struct align *a, const int64_t *split, const int *order, struct sw_spec_coord *lanes)
{
  for (int i = 0; i < a->n; i++) {
    if (!cut_tensor(a, i))
      return false;
    fuse(&a->shape[i]);
  }
  if (!cut_loops(a))
    return false;
  make_symbols(a, split, order);
  for (int i = 0; i < a->n; i++) {
    struct shape *s = &a->shape[i];
    for (int k = 0; k < s->n; k++)
      if (!put_piece(a, i, &s->v[k]))
        return false;
    if (!add_missing_units(a, i))
      return false;
    lanes[i] = (struct sw_spec_coord){.form = s->stick < 0 ? SW_COORD_CONST : SW_COORD_MOD};
    if (s->stick >= 0) {
      lanes[i].symbol = a->symbol[s->stick][0];
      lanes[i].e = s->eps;
    }
  }
  return level(a, lanes);
}

bool sw_normal_form(struct sw_arena *arena, const struct sw_op *op, const int64_t *split, const int *order,
                    const struct sw_normal_input *t, int n, struct sw_normal *out)
{
  struct sw_arena *scratch = sw_arena_new(arena, 0);
  struct align *a = SW_NEW(scratch, struct align);
  struct sw_spec_coord *lanes = SW_NEW_N(scratch, struct sw_spec_coord, n);
  *out = (struct sw_normal){.tensor = SW_NEW_N(arena, struct sw_normal_tensor, n)};
  *a = (struct align){
      .arena = arena, .out = out, .op = op, .t = t, .n = n, .shape = SW_NEW_N(scratch, struct shape, n)};
  bool ok = align(a, split, order, lanes);
  for (int i = 0; i < n && ok; i++) {
    struct sw_normal_tensor *x = &out->tensor[i];
    const struct shape *s = &a->shape[i];
    x->rank = s->rank + 1;
    memcpy(x->size, s->size, (size_t)s->rank * sizeof *s->size);
    memcpy(x->coord, s->coord, (size_t)s->rank * sizeof *s->coord);
    x->size[s->rank] = s->eps;
    x->coord[s->rank] = lanes[i];
  }
  sw_arena_free(scratch);
  return ok;
}
