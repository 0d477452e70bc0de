#include "compiler/plan/loops.h"

enum { MOST_TURNS = 1 << 16 }; /* that are looked at one by one */

bool sw_access_moves(const struct sw_op *op, const struct sw_access *x)
{
  for (int l = 0; l < op->n_levels; l++)
    if (x->advance[l])
      return true;
  return false;
}

/* The address of the constant part, and whether the rest is that of the first turn. */
static bool address_at(const struct sw_layout *l, const struct sw_op *op, const struct sw_access *x, int64_t offset,
                       const struct sw_coord *first, int64_t *address)
{
  struct sw_access at = *x;
  struct sw_coord c[SW_MAX_DEVICE_RANK];
  at.offset = offset;
  if (!sw_layout_coords(l, op, &at, c))
    return false;
  int64_t below = 1;
  *address = 0;
  for (int j = l->rank - 1; j >= 0; below *= l->device_size[j--]) {
    *address += c[j].constant * below;
    bool same = !first || (c[j].n == first[j].n && (j < l->rank - 1 || c[j].constant == first[j].constant));
    for (int i = 0; first && same && i < c[j].n; i++) {
      const struct sw_term *a = &c[j].term[i], *b = &first[j].term[i];
      same = a->loop == b->loop && a->num == b->num && a->mod == b->mod && a->den == b->den;
    }
    if (!same)
      return false;
  }
  return true;
}

bool sw_access_advance(const struct sw_layout *l, const struct sw_op *op, const struct sw_access *x,
                       int64_t out[SW_MAX_LEVELS])
{
  for (int v = 0; v < SW_MAX_LEVELS; v++)
    out[v] = 0;
  if (!sw_access_moves(op, x))
    return true;
  struct sw_coord first[SW_MAX_DEVICE_RANK];
  int64_t start, address, turns = sw_op_turns(op);
  if (turns > MOST_TURNS || !sw_layout_coords(l, op, x, first) || !address_at(l, op, x, x->offset, NULL, &start))
    return false;
  for (int v = 0; v < op->n_levels; v++) {
    if (!address_at(l, op, x, x->offset + x->advance[v], first, &address))
      return false;
    out[v] = address - start;
  }
  for (int64_t turn = 0; turn < turns; turn++) {
    int64_t offset = x->offset, expected = start, rest = turn;
    for (int v = op->n_levels - 1; v >= 0; rest /= op->level[v--].count) {
      offset += rest % op->level[v].count * x->advance[v];
      expected += rest % op->level[v].count * out[v];
    }
    if (!address_at(l, op, x, offset, first, &address) || address != expected)
      return false;
  }
  return true;
}

const struct sw_storage *sw_op_strays(const struct sw_program *p, const struct sw_op *op)
{
  int64_t advance[SW_MAX_LEVELS];
  for (int k = 0; k <= op->n_in; k++) {
    const struct sw_access *x = k < op->n_in ? &op->in[k] : &op->out;
    const struct sw_storage *s = &p->storages.v[x->storage];
    if (s->layout && !sw_access_advance(s->layout, op, x, advance))
      return s;
  }
  return NULL;
}

struct sw_span *sw_loop_spans(struct sw_arena *arena, const struct sw_program *p)
{
  struct sw_span *span = SW_NEW_N(arena, struct sw_span, p->n_loops);
  for (int l = 0; l < p->n_loops; l++)
    span[l] = (struct sw_span){p->steps.n, -1};
  for (int t = 0; t < p->steps.n; t++) {
    const struct sw_op *op = p->steps.v[t].is_host ? NULL : &p->ops.v[p->steps.v[t].index];
    for (int l = 0; op && l < op->n_levels; l++) {
      struct sw_span *s = &span[op->level[l].loop];
      s->first = t < s->first ? t : s->first;
      s->last = t;
    }
  }
  return span;
}

int sw_common_levels(const struct sw_op *a, const struct sw_op *b)
{
  int n = 0;
  while (n < a->n_levels && n < b->n_levels && a->level[n].loop == b->level[n].loop)
    n++;
  return n;
}

int sw_entrance(const struct sw_program *p, const struct sw_span *span, const struct sw_op *op, int inside, int index)
{
  return op->n_levels > inside ? p->steps.v[span[op->level[inside].loop].first].index : index;
}

void sw_enter_loops(struct sw_op *op, const struct sw_op *like, int n)
{
  op->n_levels = n;
  for (int l = 0; l < n; l++) {
    op->level[l] = like->level[l];
    op->level[l].cut = SW_UNCUT;
  }
}

/* The host dim that a step in host memory leads along, -1: none. Dims of one element have no steps. */
int sw_dim_of_step(const struct sw_storage *s, int64_t step)
{
  for (int d = 0; d < s->rank; d++)
    if (s->size[d] > 1 && step >= s->stride[d] && step < s->stride[d] * s->size[d] && step % s->stride[d] == 0)
      return d;
  return -1;
}

bool sw_shorten(struct sw_arena *arena, struct sw_storage *s, int dim, int64_t n)
{
  const struct sw_storage whole = *s;
  const struct sw_layout *from = s->layout;
  int64_t size = whole.size[dim] / n;
  int top = -1; /* the outermost device dim of the host dim: the others hold its lower digits */
  if (whole.size[dim] % n || !from)
    return false;
  struct sw_layout *l = SW_NEW(arena, struct sw_layout);
  *l = *from;
  for (int j = 0; j < l->rank; j++) {
    int d = from->stride_map[j] > 0 && from->device_size[j] > 1 ? sw_dim_of_step(&whole, from->stride_map[j]) : -1;
    if (d == dim && (top < 0 || from->stride_map[j] > from->stride_map[top] ||
                     (from->stride_map[j] == from->stride_map[top] && from->device_size[j] > from->device_size[top])))
      top = j;
    if (d < 0 || whole.stride[d] <= whole.stride[dim])
      continue;
    if (from->stride_map[j] % n)
      return false;
    l->stride_map[j] = from->stride_map[j] / n;
  }
  int64_t digit = top < 0 ? 0 : from->stride_map[top] / whole.stride[dim];
  bool in_sticks = top >= 0 && from->stride_map[l->rank - 1] > 0 &&
                   sw_dim_of_step(&whole, from->stride_map[l->rank - 1]) == dim;
  if (top < 0 || top == l->rank - 1 || size % digit || (in_sticks && l->arrangement != SW_EA_STANDARD))
    return false;
  l->device_size[top] = size / digit;
  s->size[dim] = size;
  for (int d = 0; d < s->rank; d++)
    if (whole.stride[d] > whole.stride[dim])
      s->stride[d] /= n;
  s->layout = l;
  return true;
}

int sw_walked_dim(const struct sw_storage *s, const struct sw_op *op, const struct sw_access *x, int loop)
{
  for (int d = 0; d < s->rank; d++)
    if (x->step[loop] && s->size[d] > 1 && s->stride[d] == x->step[loop] && s->size[d] == op->range[loop] &&
        x->offset / s->stride[d] % s->size[d] == 0)
      return d;
  return -1;
}
