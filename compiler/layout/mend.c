/* Writes that suit no stick: columns 100 to 127 and rows 60 to 63 of [64,128] both start inside a stick, whichever dim it is on.
 * Profile best gives such a tensor a stick all the same and writes whole rows of it, in which a product with zeros and
 * ones (select.c has the same) has put the new elements in place:
 *
 *   x[.., 100:128] = v      becomes      x[.., :] = where(100 <= j, v, x[.., :])
 *   x[.., 0:100] = y        becomes      p[.., j] = sum over k of y[.., k] * (j == k)
 *                                        x[.., :] = where(j < 100, p[.., :], x[.., :])
 *
 * The first write needs no choice: whatever else is in the row is written later. */
#include "compiler/layout/choose.h"

static bool suits(struct sw_choosing *c, const struct sw_op *op, int stick)
{
  const struct sw_storage *s = &c->p->storages.v[op->out.storage];
  struct sw_layout l;
  int order[SW_MAX_RANK], n = 0;
  for (int d = 0; d < s->rank; d++)
    if (d != stick)
      order[n++] = d;
  order[n++] = stick;
  if (!sw_layout_make(&l, SW_FORMAT_FP16, SW_EA_STANDARD, s->rank, s->size, s->stride, order, n))
    return false;
  struct sw_seen seen = sw_layout__see(&l, op, &op->out, SW_OFFSET_EXACT);
  return seen.formed && seen.stick.class <= SW_STICK_LOOP && sw_layout__writes_whole_sticks(s, op, &l, &seen);
}

/* Dims that suit a write, as bits. */
static unsigned suitable(struct sw_choosing *c, const struct sw_op *op)
{
  const struct sw_storage *s = &c->p->storages.v[op->out.storage];
  unsigned dims = 0;
  for (int d = 0; d < s->rank; d++)
    dims |= s->size[d] > 1 && suits(c, op, d) ? 1u << d : 0;
  return dims;
}

/* The loop that runs over part of dim `dim`, one element a step; -1: there is none. */
static int loop_over(const struct sw_storage *s, const struct sw_op *op, int dim, int64_t *first)
{
  struct sw_coord host[SW_MAX_RANK];
  if (!sw_layout__host_coords(s, op, &op->out, SW_OFFSET_EXACT, host) || host[dim].n > 1)
    return -1;
  *first = host[dim].constant;
  const struct sw_term *t = &host[dim].term[0];
  return host[dim].n && t->num == 1 && t->den == 1 && !t->mod ? t->loop : -1;
}

static int constant(struct sw_choosing *c, const char *name, enum sw_dtype dtype, int rank, int64_t rows, int64_t columns,
                    int64_t first)
{
  struct sw_storage like = {.dtype = dtype, .rank = rank, .size = {rank == 2 ? rows : columns, columns}};
  int width = dtype == SW_BOOL ? 1 : 2;
  unsigned one = dtype == SW_BOOL ? 1 : dtype == SW_BF16 ? 0x3f80 : 0x3c00;
  like.stride[0] = rank == 2 ? columns : 1;
  like.stride[1] = 1;
  int at = sw_layout__add_storage(c, &like, name);
  struct sw_storage *s = &c->p->storages.v[at];
  unsigned char *bytes = SW_NEW_N(c->job->arena, unsigned char, width *sw_storage_elements(s));
  for (int64_t k = 0; k < rows; k++) { /* rank 1: ones from `first` on; rank 2: the diagonal that starts there */
    int64_t element = (rank == 2 ? k * columns : 0) + first + k;
    for (int b = 0; b < width; b++)
      bytes[width * element + b] = (unsigned char)(one >> 8 * b);
  }
  s->kind = SW_STORAGE_CONSTANT;
  s->data = bytes;
  s->n_bytes = (size_t)(width * sw_storage_elements(s));
  return at;
}

/* The operand of the write in whole rows: an access to a new tensor, over the loops of the write. */
static struct sw_access in_place(struct sw_choosing *c, const struct sw_op *op, int loop, int64_t first, int64_t columns)
{
  struct sw_storage from = c->p->storages.v[op->in[0].storage], shape = {.dtype = from.dtype};
  struct sw_op p = {.op = SW_OP_MATMUL, .n_in = 2, .source = op->source};
  struct sw_access reads = {.index_input = -1};
  p.in[1] = p.out = reads;
  p.in[0] = op->in[0];
  int n = 0;
  for (int l = 0; l < op->n_loops; l++) {
    if (l == loop)
      continue;
    p.range[n] = shape.size[n] = op->range[l];
    p.in[0].step[n++] = op->in[0].step[l];
  }
  p.range[n] = shape.size[n] = columns;
  p.in[0].step[n] = 0;
  p.in[1].step[n] = 1;
  p.range[n + 1] = op->range[loop];
  p.in[0].step[n + 1] = op->in[0].step[loop];
  p.in[1].step[n + 1] = columns;
  p.n_written = shape.rank = n + 1;
  p.n_loops = n + 2;
  int64_t step = 1;
  for (int d = n; d >= 0; step *= shape.size[d--])
    shape.stride[d] = p.out.step[d] = step;
  p.in[1].storage = constant(c, "shift", from.dtype, 2, op->range[loop], columns, first);
  p.out.storage = reads.storage =
      sw_layout__add_storage(c, &shape, sw_arena_printf(c->job->arena, "%s:shifted", from.name));
  sw_layout__add_op(c, &p, sw_arena_printf(c->job->arena, "shift %s", from.name));
  for (int l = 0, d = 0; l < op->n_loops; l++)
    reads.step[l] = l == loop ? 1 : shape.stride[d++];
  return reads;
}

static void mend(struct sw_choosing *c, int op_i, int dim, bool is_first)
{
  struct sw_op op = c->p->ops.v[op_i];
  const struct sw_storage *s = &c->p->storages.v[op.out.storage];
  const struct sw_storage *from = &c->p->storages.v[op.in[0].storage];
  enum sw_infinities infinite = c->infinite[op.in[0].storage];
  int64_t first, columns = s->size[dim], step = s->stride[dim];
  int loop = loop_over(s, &op, dim, &first);
  bool is_scalar = from->kind == SW_STORAGE_SCALAR;
  if (op.op != SW_OP_IDENTITY || op.n_in != 1 || loop < 0 || op.in[0].index_input >= 0 || op.out.index_input >= 0 ||
      (!is_scalar && (op.n_loops > 4 || infinite == SW_INFINITE || !op.in[0].step[loop] ||
                      op.range[loop] > SW_MOST_SELECTION / columns || from->dtype != s->dtype)))
    return; /* the choice will say that there is none */
  int64_t n = op.range[loop];
  if (!is_scalar) {
    if (infinite == SW_MAYBE_INFINITE)
      sw_layout__warn_of_product(c, &op, from);
    op.in[0] = in_place(c, &op, loop, first, columns);
  }
  op.range[loop] = columns;
  op.out.offset -= first * step;
  if (!is_first) {
    struct sw_access value = op.in[0];
    op.op = SW_OP_WHERE;
    op.n_in = 3;
    op.in[0] = (struct sw_access){.index_input = -1};
    op.in[0].step[loop] = 1;
    op.in[0].storage = constant(c, "place", SW_BOOL, 1, n, columns, first);
    op.in[1] = value;
    op.in[2] = op.out;
  }
  c->p->ops.v[op_i] = op;
}

void sw_layout__mend_writes(struct sw_choosing *c)
{
  int n = c->p->storages.n;
  unsigned *dims = SW_NEW_N(c->arena, unsigned, n + 1);
  bool *pieces = SW_NEW_N(c->arena, bool, n + 1), *made = SW_NEW_N(c->arena, bool, n + 1), any = false;
  for (int i = 0; i < n; i++)
    dims[i] = ~0u;
  for (int i = 0; i < c->p->ops.n; i++) {
    const struct sw_op *op = &c->p->ops.v[i];
    int s = op->out.storage;
    const struct sw_storage *t = &c->p->storages.v[s];
    pieces[s] |= op->role == SW_ROLE_WRITE;
    if (t->kind == SW_STORAGE_TEMPORARY && (t->dtype == SW_F16 || t->dtype == SW_BF16) && t->rank <= 6)
      dims[s] &= suitable(c, op);
  }
  for (int i = 0; i < n; i++)
    any |= pieces[i] && !dims[i];
  if (!any)
    return;
  c->n_storages = n;
  sw_layout__find_infinities(c);
  for (int i = 0; i < c->p->steps.n; i++) {
    struct sw_step step = c->p->steps.v[i];
    const struct sw_op *op = step.is_host ? NULL : &c->p->ops.v[step.index];
    int s = op ? op->out.storage : -1, stick = -1;
    for (int d = 0; s >= 0 && pieces[s] && !dims[s] && d < c->p->storages.v[s].rank; d++)
      stick = c->p->storages.v[s].size[d] > 1 ? d : stick;
    if (stick >= 0 && op->role == SW_ROLE_WRITE && !suits(c, op, stick))
      mend(c, step.index, stick, !made[s]);
    if (s >= 0)
      made[s] = true;
    const struct sw_host_step *h = step.is_host ? &c->p->host_steps.v[step.index] : NULL;
    for (int r = 0; h && r < h->results.n; r++)
      if (h->results.v[r].storage >= 0)
        made[h->results.v[r].storage] = true;
    *SW_PUSH(c->job->arena, &c->steps) = step;
  }
  sw_layout__take_steps(c);
}
