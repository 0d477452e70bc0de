/* Where an access lands: its index, a sum of steps counted in host elements, is taken apart into one coordinate per
 * device dim (or per host dim), as a number is taken apart into digits. The strides are the weights of the digits.
 *
 * Example: [256,128] as [2,256,64] / [64,128,1], read as its transpose at d0 + 128*d1. The dims by weight are lanes
 * (1), tiles (64), rows (128). Loop d0 steps 1 and runs to 128: it reaches the lanes as d0 mod 64 and the tiles as
 * d0 div 64. Loop d1 steps 128: it is the row itself. Coordinates: d0 div 64, d1, d0 mod 64.
 *
 * That is right only as long as no sum of digits carries into the next dim, and as long as a remainder of a remainder
 * is one remainder; both are checked, and what does not pass has no form. Reference: layouts.md section 3. */
#include "compiler/layout/stick.h"

enum { INDEX = SW_MAX_LOOPS }; /* stands for a gather's row number where loops are numbered */

/* The dims that can have a coordinate (more than one position, a positive stride), by ascending stride. */
struct digits {
  int n;
  int dim[SW_MAX_RANK];
  int64_t weight[SW_MAX_RANK], size[SW_MAX_RANK];
  int64_t below[SW_MAX_RANK]; /* most that the digits up to here can add up to, in host elements */
};

/* False when two dims have the same weight: then positions have no single name. */
static bool sort_dims(struct digits *g, int n, const int64_t *size, const int64_t *stride)
{
  g->n = 0;
  for (int d = 0; d < n; d++) {
    if (size[d] <= 1 || stride[d] <= 0)
      continue;
    int k = g->n++;
    for (; k > 0 && g->weight[k - 1] > stride[d]; k--) {
      g->weight[k] = g->weight[k - 1];
      g->size[k] = g->size[k - 1];
      g->dim[k] = g->dim[k - 1];
    }
    if (k > 0 && g->weight[k - 1] == stride[d])
      return false;
    g->weight[k] = stride[d];
    g->size[k] = size[d];
    g->dim[k] = d;
    g->below[k] = 0;
  }
  return true;
}

static void add_constant(struct digits *g, int64_t c, enum sw_offset_rule rule, struct sw_coord *out)
{
  for (int k = g->n - 1; k >= 0; k--) {
    int64_t rest = c;
    if (rule == SW_OFFSET_REFERENCE && k + 1 < g->n)
      rest %= g->weight[k + 1];
    out[g->dim[k]].constant = rest / g->weight[k];
    if (rule == SW_OFFSET_EXACT)
      c %= g->weight[k];
  }
  int64_t sum = 0;
  for (int k = 0; k < g->n; k++)
    g->below[k] = sum += out[g->dim[k]].constant * g->weight[k];
}

static bool add_term(struct sw_coord *c, int loop, int64_t num, int64_t mod, int64_t den)
{
  if (loop == INDEX) {
    if (c->index || num != 1 || mod || den != 1)
      return false;
    c->index = true;
    return true;
  }
  if (c->n == (int)(sizeof c->term / sizeof *c->term))
    return false;
  c->term[c->n++] = (struct sw_term){loop, num, mod, den};
  return true;
}

/* The part step * v of an index, v in 0 .. range - 1. The lowest dim it reaches is the one of the largest weight not
 * above the step, the highest the last one below the end of its reach. */
static bool add_loop(struct digits *g, int loop, int64_t step, int64_t range, struct sw_coord *out)
{
  int64_t limit;
  if (step < 0 || __builtin_mul_overflow(step, range, &limit))
    return false;
  int low = g->n - 1;
  while (low >= 0 && g->weight[low] > step)
    low--;
  if (low < 0)
    return false;
  for (int k = low; k < g->n && (k == low || g->weight[k] < limit); k++) {
    int64_t w = g->weight[k], next = k + 1 < g->n ? g->weight[k + 1] : limit, mod = 0;
    bool wraps = next < limit;
    if (wraps && (next % step || (k > low && next % w)))
      return false;
    if (wraps)
      mod = next / step;
    if (step >= w ? step % w : w % step)
      return false;
    if (!add_term(&out[g->dim[k]], loop, step >= w ? step / w : 1, mod, step >= w ? 1 : w / step))
      return false;
    g->below[k] += wraps ? next - step : limit - step;
  }
  for (int k = low + 1; k < g->n; k++)
    if (g->weight[k] >= limit)
      g->below[k] += limit - step;
  return true;
}

/* Whether every digit stays below its dim's size and no sum reaches the next weight. A stick that starts inside (dim
 * `offset`, -1: none) may run over: nobody reads through it, it only says what to convert. */
static bool fits(const struct digits *g, const struct sw_op *op, const struct sw_access *x, const struct sw_coord *c,
                 int offset)
{
  for (int k = 0; k < g->n; k++) {
    if (g->dim[k] == offset)
      continue;
    const struct sw_coord *at = &c[g->dim[k]];
    int64_t most = at->constant + (at->index ? x->index_range - 1 : 0);
    for (int t = 0; t < at->n; t++) {
      const struct sw_term *m = &at->term[t];
      int64_t last = op->range[m->loop] - 1;
      most += m->num * ((m->mod && m->mod - 1 < last ? m->mod - 1 : last) / m->den);
    }
    if (most >= g->size[k] || (k + 1 < g->n && g->below[k] >= g->weight[k + 1]))
      return false;
  }
  return true;
}

/* `stick` is the dim that may start inside a stick (-1: none). */
static bool take_apart(int n, const int64_t *size, const int64_t *stride, int stick, const struct sw_op *op,
                       const struct sw_access *x, enum sw_offset_rule rule, struct sw_coord *out)
{
  struct digits g;
  for (int d = 0; d < n; d++)
    out[d] = (struct sw_coord){0};
  if (x->offset < 0 || !sort_dims(&g, n, size, stride))
    return false;
  add_constant(&g, x->offset, rule, out);
  for (int l = 0; l < op->n_loops; l++)
    if (x->step[l] && op->range[l] > 1 && !add_loop(&g, l, x->step[l], op->range[l], out))
      return false;
  if (x->index_input >= 0 && x->index_range > 1 && !add_loop(&g, INDEX, x->index_step, x->index_range, out))
    return false;
  bool inside = stick >= 0 && out[stick].constant && out[stick].n;
  if (inside && rule == SW_OFFSET_REFERENCE)
    return true;
  return fits(&g, op, x, out, inside ? stick : -1);
}

bool sw_layout__coords(const struct sw_layout *l, const struct sw_op *op, const struct sw_access *x,
                       enum sw_offset_rule rule, struct sw_coord out[SW_MAX_DEVICE_RANK])
{
  if (!take_apart(l->rank, l->device_size, l->stride_map, l->rank - 1, op, x, rule, out))
    return false;
  int half = sw_layout_half_pair(l);
  const struct sw_coord *lane = &out[l->rank - 1];
  if (half >= 0 && lane->n == 1 && !lane->constant) /* a tile as any other, though no loop gets to the second one */
    return add_term(&out[half], lane->term[0].loop, 1, lane->term[0].mod, 32);
  return true;
}

bool sw_layout_coords(const struct sw_layout *l, const struct sw_op *op, const struct sw_access *x,
                      struct sw_coord out[SW_MAX_DEVICE_RANK])
{
  return sw_layout__coords(l, op, x, SW_OFFSET_EXACT, out);
}

bool sw_layout__host_coords(const struct sw_storage *s, const struct sw_op *op, const struct sw_access *x,
                            enum sw_offset_rule rule, struct sw_coord out[SW_MAX_RANK])
{
  return take_apart(s->rank, s->size, s->stride, -1, op, x, rule, out);
}

struct sw_stick sw_layout__stick(const struct sw_layout *l, const struct sw_coord *coords)
{
  const struct sw_coord *c = &coords[l->rank - 1];
  struct sw_stick s = {.class = SW_STICK_OTHER, .loop = -1, .coord = *c};
  if (c->index || c->n > 1 || (c->n == 0 && c->constant))
    return s;
  if (c->n == 0) {
    s.class = SW_STICK_ZERO;
    return s;
  }
  const struct sw_term *t = &c->term[0];
  if (t->num != 1 || t->den != 1 || (t->mod && t->mod != sw_format_eps(l->format)))
    return s;
  s.class = c->constant ? SW_STICK_OFFSET : SW_STICK_LOOP;
  s.loop = t->loop;
  return s;
}

struct sw_seen sw_layout__see(const struct sw_layout *l, const struct sw_op *op, const struct sw_access *x,
                              enum sw_offset_rule rule)
{
  struct sw_seen s = {.formed = false, .stick = {.class = SW_STICK_OTHER, .loop = -1}};
  s.formed = sw_layout__coords(l, op, x, rule, s.coord);
  if (!s.formed)
    return s;
  s.stick = sw_layout__stick(l, s.coord);
  for (int j = 0; j < l->rank - 1; j++)
    for (int t = 0; t < s.coord[j].n; t++)
      if (s.coord[j].term[t].loop != s.stick.loop)
        s.nonstick |= 1u << s.coord[j].term[t].loop;
  return s;
}

bool sw_layout__compatible(const struct sw_seen *a, const struct sw_seen *b)
{
  if (!a->formed || !b->formed || a->stick.class == SW_STICK_OTHER || b->stick.class == SW_STICK_OTHER)
    return false;
  int u = a->stick.loop, v = b->stick.loop;
  if (u >= 0 && v >= 0 && u != v)
    return false;
  unsigned sticks = (u < 0 ? 0 : 1u << u) | (v < 0 ? 0 : 1u << v);
  return !(sticks & (a->nonstick | b->nonstick));
}

int sw_layout__covering_dim(const struct sw_coord *host, int rank, const struct sw_stick *stick)
{
  int found = -1;
  if (stick->loop < 0)
    return -1;
  for (int d = 0; d < rank; d++) {
    const struct sw_coord *h = &host[d];
    const struct sw_term *t = &h->term[0], *u = &stick->coord.term[0];
    if (h->n != 1 || h->index || t->loop != stick->loop || t->num != 1 || t->den != 1)
      continue;
    if (h->constant != stick->coord.constant || (t->mod && (!u->mod || u->mod > t->mod)))
      continue;
    if (found >= 0)
      return -1;
    found = d;
  }
  return found;
}

/* Reads a whole storage in its own order: one loop per host dim of more than one element. */
static bool whole_read(const struct sw_storage *s, struct sw_op *op, struct sw_access *x, int dim[SW_MAX_LOOPS])
{
  *op = (struct sw_op){0};
  *x = (struct sw_access){.index_input = -1};
  for (int d = 0; d < s->rank; d++) {
    if (s->size[d] == 1)
      continue;
    if (op->n_loops == SW_MAX_LOOPS)
      return false;
    dim[op->n_loops] = d;
    op->range[op->n_loops] = s->size[d];
    x->step[op->n_loops++] = s->stride[d];
  }
  op->n_written = op->n_loops;
  return true;
}

static bool on_dim(const struct sw_coord *c, int loop)
{
  for (int t = 0; t < c->n; t++)
    if (c->term[t].loop == loop)
      return true;
  return false;
}

int sw_layout__stick_dim(const struct sw_storage *s, const struct sw_layout *l)
{
  struct sw_op op;
  struct sw_access x;
  int dim[SW_MAX_LOOPS];
  if (!whole_read(s, &op, &x, dim))
    return -1;
  struct sw_seen seen = sw_layout__see(l, &op, &x, SW_OFFSET_EXACT);
  return seen.stick.class == SW_STICK_LOOP ? dim[seen.stick.loop] : -1;
}

/* The place of the old stick dim's tiles takes the tiles of the new one, and the new one's place takes all of the old
 * dim: [256,128] as [2,256,64] / [64,128,1] moved to dim 0 is [4,128,64] / [8192,1,128]. */
bool sw_layout__move_stick(const struct sw_storage *s, const struct sw_layout *from, int to, struct sw_layout *out)
{
  struct sw_op op;
  struct sw_access x;
  int dim[SW_MAX_LOOPS], old = -1, new = -1, tiles = -1, zero = -1, place = -1, eps = sw_format_eps(from->format);
  if (!whole_read(s, &op, &x, dim))
    return false;
  struct sw_seen seen = sw_layout__see(from, &op, &x, SW_OFFSET_EXACT);
  if (seen.stick.class != SW_STICK_LOOP)
    return false;
  old = seen.stick.loop;
  for (int l = 0; l < op.n_loops; l++)
    if (dim[l] == to)
      new = l;
  if (new < 0 || new == old)
    return false;
  for (int j = from->rank - 2; j >= 0; j--) {
    if (on_dim(&seen.coord[j], old))
      tiles = j;
    if (on_dim(&seen.coord[j], new))
      place = j;
    if (!seen.coord[j].n && !seen.coord[j].constant)
      zero = j;
  }
  tiles = tiles < 0 ? zero : tiles;
  if (tiles < 0 || place < 0 || tiles == place)
    return false;
  *out = *from;
  out->arrangement = SW_EA_STANDARD;
  out->device_size[tiles] = (s->size[to] - 1) / eps + 1;
  if (__builtin_mul_overflow(s->stride[to], eps, &out->stride_map[tiles]))
    return false;
  out->device_size[place] = s->size[dim[old]];
  out->stride_map[place] = s->stride[dim[old]];
  out->stride_map[from->rank - 1] = s->stride[to];
  return sw_layout__stick_dim(s, out) == to;
}
