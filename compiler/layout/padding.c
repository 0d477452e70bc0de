/* A matmul sums over whole sticks of K. Lanes of the first operand beyond K are masked by the hardware; the rows of the
 * second operand beyond K are read, so they must be there and zero. Where K is not a whole number of sticks the second
 * operand goes through a copy with rows of zeros at its end. Reference: layouts.md 6.1.
 *
 * mm [55,67] x [67,128]: the copy is [128,128]; rows 64 to 127 are zeroed first (a fill starts at a stick), then rows
 * 0 to 66 are written. The loop over K stays 67.
 *
 * A second operand that is loaded gets its rows of zeros at load time for nothing: profile best gives it a layout with
 * more rows and a fill value. */
#include "compiler/layout/choose.h"

#include <string.h>

int sw_layout__number(struct sw_choosing *c, double value, enum sw_dtype dtype)
{
  for (int i = 0; i < c->p->storages.n; i++) {
    const struct sw_storage *s = &c->p->storages.v[i];
    if (s->kind == SW_STORAGE_SCALAR && s->dtype == dtype && s->fill == value)
      return i;
  }
  struct sw_storage number = {.dtype = dtype, .fill = value};
  int at = sw_layout__add_storage(c, &number, sw_arena_printf(c->job->arena, "%.1f:%s", value, sw_dtype_text(dtype)));
  c->p->storages.v[at].kind = SW_STORAGE_SCALAR;
  sw_layout__place_default(c, at);
  return at;
}

/* Rows of zeros in the layout of a loaded tensor: its device dim of K grows. */
static bool padded_at_load(struct sw_choosing *c, const struct sw_op *op, int k, int64_t rows)
{
  int at = op->in[1].storage;
  struct sw_storage *s = &c->p->storages.v[at];
  bool loaded = s->kind == SW_STORAGE_PARAMETER || s->kind == SW_STORAGE_BUFFER || s->kind == SW_STORAGE_CONSTANT;
  bool is_new = at >= c->n_storages; /* a second load, a selection matrix: nobody's wish and nobody's to write */
  if (!c->best || !c->o->free_weights || !loaded || (!is_new && (c->written[at] || c->pinned[at])))
    return false;
  struct sw_seen seen = sw_layout__see(s->layout, op, &op->in[1], SW_OFFSET_EXACT);
  int dim = -1;
  for (int j = 0; seen.formed && j < s->layout->rank - 1; j++) {
    const struct sw_coord *x = &seen.coord[j];
    for (int t = 0; t < x->n; t++)
      if (x->term[t].loop == k) {
        if (dim >= 0 || x->n > 1 || x->term[t].num != 1 || x->term[t].den != 1 || x->term[t].mod || x->constant)
          return false;
        dim = j;
      }
  }
  if (dim < 0 || (s->layout->device_size[dim] != op->range[k] && s->layout->device_size[dim] != rows) ||
      (s->has_pad_fill && s->pad_fill != 0))
    return false;
  struct sw_layout l = *s->layout;
  l.device_size[dim] = rows;
  s->layout = sw_arena_copy(c->job->arena, &l, 1, sizeof l);
  s->has_pad_fill = true;
  s->pad_fill = 0;
  return true;
}

void sw_layout__pad_matmul(struct sw_choosing *c, int op_i)
{
  const struct sw_op *op = &c->p->ops.v[op_i];
  if (op->op != SW_OP_MATMUL && op->op != SW_OP_MATMULFP8)
    return;
  int k = sw_layout__matmul_k(op), eps = sw_format_eps(c->p->storages.v[op->in[0].storage].layout->format);
  int64_t range = op->range[k], rows = (range - 1) / eps * eps + eps;
  if (range == rows || padded_at_load(c, op, k, rows))
    return;

  /* the copy has one dim per loop of the operand, the columns last */
  const struct sw_storage *y = &c->p->storages.v[op->in[1].storage];
  struct sw_storage shape = {.dtype = y->dtype};
  struct sw_op copy = {.op = SW_OP_IDENTITY, .role = SW_ROLE_PADDING, .n_in = 1, .source = op->source};
  struct sw_access to = {.index_input = -1}, padded = {.index_input = -1};
  int loop[SW_MAX_LOOPS], k_dim = -1, n = sw_layout__matmul_n(op), order[SW_MAX_RANK];
  for (int l = 0; l < op->n_loops; l++)
    if (op->in[1].step[l] && l != n)
      loop[shape.rank++] = l;
  loop[shape.rank++] = n;
  for (int d = 0; d < shape.rank; d++) {
    order[d] = d;
    shape.size[d] = loop[d] == k ? rows : op->range[loop[d]];
    k_dim = loop[d] == k ? d : k_dim;
  }
  int64_t step = 1;
  for (int d = shape.rank - 1; d >= 0; d--) {
    shape.stride[d] = step;
    step *= shape.size[d];
    to.step[d] = padded.step[loop[d]] = shape.stride[d];
  }
  struct sw_layout l;
  if (!sw_layout_make(&l, y->layout->format, SW_EA_STANDARD, shape.rank, shape.size, shape.stride, order, shape.rank)) {
    struct sw_fault *f = sw_fault(c->job, SW_UNSUPPORTED, "K = %lld needs a padded copy of %s, which has no layout",
                                  (long long)range, y->name);
    f->node = op->name;
    f->advice = "pad K to a multiple of 64 elements";
    return;
  }
  const char *name = y->name;
  struct sw_access from = op->in[1], reads = {.index_input = -1};
  int storage = sw_layout__add_storage(c, &shape, sw_arena_printf(c->job->arena, "%s:padded", name));
  c->p->storages.v[storage].layout = sw_arena_copy(c->job->arena, &l, 1, sizeof l);

  copy.n_loops = copy.n_written = shape.rank;
  copy.out = to;
  copy.out.storage = storage;
  copy.in[0] = from;
  for (int d = 0; d < SW_MAX_LOOPS; d++)
    copy.in[0].step[d] = d < shape.rank ? from.step[loop[d]] : 0;
  for (int d = 0; d < shape.rank; d++)
    copy.range[d] = shape.size[d];

  struct sw_op fill = copy;
  int64_t start = range / eps * eps;
  reads.storage = sw_layout__number(c, 0, shape.dtype);
  fill.in[0] = reads;
  fill.out.offset = start * shape.stride[k_dim];
  fill.range[k_dim] = rows - start;
  copy.range[k_dim] = range;
  sw_layout__add_op(c, &fill, sw_arena_printf(c->job->arena, "zero rows of %s", name));
  sw_layout__add_op(c, &copy, sw_arena_printf(c->job->arena, "pad %s", name));
  padded.storage = storage;
  c->p->ops.v[op_i].in[1] = padded;
}
