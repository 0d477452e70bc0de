/* Lanes that no copy can bring into place: one row of 128 columns is 4 heads of 32, columns 12 to 19 start inside a
 * stick, and a dim of size 1 has no room for the stick meanwhile. Matrices of zeros and ones do it, as constants.
 *
 * Dense: a product puts each element where it is wanted. x [1,128], head h, element d at column 32*h + d:
 *
 *   copy[h,d] = sum over k of x[k] * S[h,d,k]                    S = (k == 32*h + d)
 *
 * and where the elements of a stick lie in several rows, x [4,32] as one row of 128, the rows are summed up:
 *
 *   copy[n] = sum over h of (sum over k of x[h,k] * S[h,n,k])    S = (k == n mod 32 and h == n div 32)
 *
 * That is exact for finite numbers; an infinity would make NaN of its neighbours. So tensors in which infinities are by
 * design (masks) are left alone, and what comes straight from an input is named in a warning.
 *
 * Alone: one element a stick, for an operand that is broadcast along the stick of the result. Exact whatever the numbers:
 *
 *   copy[j] = sum over k of (S[j,k] ? x[k] : 0)                  S = (k == 12 + j) */
#include "compiler/layout/choose.h"

#include <math.h>

enum { MOST_PRODUCT_LOOPS = 5, MOST_DIMS = 6 };

/* What a loop of the first op is for. */
enum part {
  KEPT = 1,   /* of the reading op, over other dims of the operand */
  ROW = 2,    /* over a whole host dim of the operand that the copy's stick runs through too */
  PLACED = 4, /* of the reading op, over the columns (and rows) */
  COLUMN = 8, /* over all elements of the operand's stick dim */
};

static void add_run(struct sw_select *x, enum part part, int64_t range, int64_t step, int loop, int dim)
{
  x->run[x->n_runs++] = (struct sw_select_run){part, range, step, loop, dim};
}

/* A row-major tensor with the runs of these parts as dims; its step over each run. */
static void shape_of(const struct sw_select *x, unsigned parts, enum sw_dtype dtype, struct sw_storage *s, int64_t *step)
{
  int64_t n = 1;
  *s = (struct sw_storage){.dtype = dtype};
  for (int i = 0; i < x->n_runs; i++)
    s->rank += (x->run[i].part & parts) != 0;
  for (int i = x->n_runs - 1, d = s->rank; i >= 0; i--) {
    step[i] = 0;
    if (!(x->run[i].part & parts))
      continue;
    s->size[--d] = x->run[i].range;
    s->stride[d] = step[i] = n;
    n *= x->run[i].range;
  }
}

/* The last dim but `behind` on the stick, or (-1) none. */
static bool lay_out(const struct sw_storage *s, int behind, struct sw_layout *l)
{
  int order[SW_MAX_RANK + 1], n = 0, stick = behind < 0 ? -1 : s->rank - 1 - behind;
  for (int d = 0; d < s->rank; d++)
    if (d != stick)
      order[n++] = d;
  order[n++] = stick;
  return sw_layout_make(l, SW_FORMAT_FP16, SW_EA_STANDARD, s->rank, s->size, s->stride, order, n);
}

static unsigned loops_of(const struct sw_coord *c)
{
  unsigned loops = 0;
  for (int t = 0; t < c->n; t++)
    loops |= 1u << c->term[t].loop;
  return loops;
}

/* The runs; false when there are too many. */
static bool take_apart(const struct sw_storage *s, const struct sw_op *op, const struct sw_access *a, int loop,
                       struct sw_select *x)
{
  unsigned placed = loops_of(&x->place[x->dim]), rows = 0;
  for (int d = 0; d < s->rank; d++)
    if (d != x->dim && !(rows >> d & 1) && loops_of(&x->place[d]) & placed) {
      rows |= 1u << d;
      placed |= loops_of(&x->place[d]);
      d = -1;
    }
  if (x->alone ? rows != 0 : !(placed >> loop & 1))
    return false;
  for (int l = 0; l < op->n_loops; l++)
    if (a->step[l] && !(placed >> l & 1))
      add_run(x, KEPT, op->range[l], a->step[l], l, -1);
  for (int d = 0; d < s->rank; d++)
    if (rows >> d & 1 && s->size[d] > 1)
      add_run(x, ROW, s->size[d], s->stride[d], -1, d);
  for (int l = 0; l < op->n_loops; l++)
    if (placed >> l & 1 && (x->alone || l != loop))
      add_run(x, PLACED, op->range[l], 0, l, -1);
  if (!x->alone)
    add_run(x, PLACED, op->range[loop], 0, loop, -1);
  add_run(x, COLUMN, s->size[x->dim], s->stride[x->dim], -1, x->dim);
  return x->n_runs <= (x->alone ? MOST_DIMS : MOST_PRODUCT_LOOPS);
}

/* Where element `dim` of the operand's index is, for the loops of the reading op. */
static int64_t coordinate(const struct sw_coord *c, const int64_t *at)
{
  int64_t k = c->constant;
  for (int t = 0; t < c->n; t++) {
    int64_t v = at[c->term[t].loop];
    k += c->term[t].num * ((c->term[t].mod ? v % c->term[t].mod : v) / c->term[t].den);
  }
  return k;
}

static struct sw_op new_op(enum sw_device_op op, int n_in)
{
  struct sw_op o = {.op = op, .role = SW_ROLE_CONVERSION, .n_in = n_in};
  o.out = (struct sw_access){.index_input = -1};
  for (int i = 0; i < n_in; i++)
    o.in[i] = o.out;
  return o;
}

/* mask ? operand : 0, or operand times matrix. */
static void first_op(struct sw_select *x, int storage, int64_t offset, const int64_t *over_matrix, const int64_t *over_made)
{
  struct sw_op *op = &x->first;
  int operand = x->alone;
  *op = x->alone ? new_op(SW_OP_WHERE, 3) : new_op(SW_OP_MATMUL, 2);
  op->n_loops = x->n_runs;
  op->n_written = x->n_runs - !x->alone;
  op->in[operand].storage = storage;
  op->in[operand].offset = offset;
  for (int i = 0; i < x->n_runs; i++) {
    op->range[i] = x->run[i].range;
    op->in[operand].step[i] = x->run[i].step;
    op->in[!operand].step[i] = over_matrix[i];
    op->out.step[i] = over_made[i];
  }
}

static void second_op(struct sw_select *x, const int64_t *over_made, const int64_t *over_copy)
{
  struct sw_op *op = &x->second;
  *op = new_op(SW_OP_SUM, 1);
  for (int summed = 0; summed < 2; summed++)
    for (int i = 0; i < x->n_runs; i++) {
      if (!over_made[i] || summed == (over_copy[i] != 0))
        continue;
      op->range[op->n_loops] = x->run[i].range;
      op->in[0].step[op->n_loops] = over_made[i];
      op->out.step[op->n_loops++] = over_copy[i];
      op->n_written += !summed;
    }
  x->sums = op->n_written < op->n_loops;
}

bool sw_layout__select(const struct sw_choosing *c, const struct sw_op *op, int input, int loop, bool alone,
                       const struct sw_layout *from, struct sw_select *x)
{
  const struct sw_access *a = &op->in[input];
  const struct sw_storage *s = &c->p->storages.v[a->storage];
  int64_t over_matrix[SW_MAX_LOOPS], over_made[SW_MAX_LOOPS], over_copy[SW_MAX_LOOPS], offset = a->offset, elements = 1;
  *x = (struct sw_select){.alone = alone, .dim = sw_layout__stick_dim(s, from), .read = {.index_input = -1}};
  if ((!alone && loop < 0) || x->dim < 0 || from->format != SW_FORMAT_FP16 || from->arrangement != SW_EA_STANDARD ||
      a->index_input >= 0 || (s->dtype != SW_F16 && s->dtype != SW_BF16) ||
      !sw_layout__host_coords(s, op, a, SW_OFFSET_EXACT, x->place) || !take_apart(s, op, a, loop, x))
    return false;
  shape_of(x, ROW | PLACED | COLUMN, alone ? SW_BOOL : s->dtype, &x->matrix, over_matrix);
  shape_of(x, alone ? KEPT | PLACED | COLUMN : KEPT | ROW | PLACED, s->dtype, &x->made, over_made);
  shape_of(x, KEPT | PLACED, s->dtype, &x->copy, over_copy);
  for (int i = 0; i < x->n_runs; i++) {
    const struct sw_select_run *r = &x->run[i];
    if (r->dim >= 0)
      offset -= x->place[r->dim].constant * s->stride[r->dim];
    if (r->loop >= 0)
      x->read.step[r->loop] = over_copy[i];
    elements *= (r->range + 63) / 64 * 64 < SW_MOST_SELECTION ? r->range : SW_MOST_SELECTION;
    if (elements > (int64_t)SW_MOST_SELECTION << 10)
      return false;
  }
  first_op(x, a->storage, offset, over_matrix, over_made);
  second_op(x, over_made, over_copy);
  if (sw_storage_elements(&x->matrix) > SW_MOST_SELECTION || !lay_out(&x->matrix, alone ? 0 : 1, &x->rows) ||
      !lay_out(&x->made, 0, &x->middle) || !lay_out(&x->copy, alone ? -1 : 0, &x->to))
    return false;
  int64_t k = s->size[x->dim]; /* the columns are the dim of step 1 of the matrix; rows of zeros up to a whole stick */
  for (int j = 0; j < x->rows.rank - 1 && !alone; j++)
    if (x->rows.stride_map[j] == 1 && x->rows.device_size[j] == k)
      x->rows.device_size[j] = (k - 1) / 64 * 64 + 64;
  return true;
}

int64_t sw_layout__select_cost(const struct sw_choosing *c, const struct sw_select *x, const struct sw_layout *from)
{
  int64_t cost = sw_layout__work_cost(c, &x->first, (const struct sw_layout *[]){from, &x->rows, &x->middle}, 3);
  return cost + (x->sums ? sw_layout__work_cost(c, &x->second, (const struct sw_layout *[]){&x->middle, &x->to}, 2) : 0);
}

/* The elements of the matrix: 16 bits each, little-endian, or bools. */
static unsigned char *ones(struct sw_choosing *c, const struct sw_select *x, size_t *n_bytes)
{
  int64_t at[SW_MAX_LOOPS] = {0}, width = x->alone ? 1 : 2;
  const int64_t *over_matrix = x->first.in[!x->alone].step;
  unsigned char *bytes = SW_NEW_N(c->job->arena, unsigned char, width *sw_storage_elements(&x->matrix));
  *n_bytes = (size_t)(width * sw_storage_elements(&x->matrix));
  for (int i = 0; i >= 0;) {
    int64_t element = 0;
    for (i = 0; i < x->n_runs; i++)
      element += over_matrix[i] * (x->run[i].loop >= 0 ? at[x->run[i].loop] : coordinate(&x->place[x->run[i].dim], at));
    unsigned one = x->alone ? 1 : x->matrix.dtype == SW_BF16 ? 0x3f80 : 0x3c00;
    for (int64_t b = 0; b < width; b++)
      bytes[width * element + b] = (unsigned char)(one >> 8 * b);
    for (i = x->n_runs - 1; i >= 0; i--) { /* the next place */
      if (x->run[i].part != PLACED)
        continue;
      if (++at[x->run[i].loop] < x->run[i].range)
        break;
      at[x->run[i].loop] = 0;
    }
  }
  return bytes;
}

int sw_layout__selection_matrix(struct sw_choosing *c, const struct sw_select *x)
{
  size_t n;
  const unsigned char *bytes = ones(c, x, &n);
  struct sw_buf key = {.arena = c->arena};
  sw_buf_add(&key, x->matrix.size, sizeof x->matrix.size);
  sw_buf_add(&key, &x->matrix.dtype, sizeof x->matrix.dtype);
  sw_buf_add(&key, bytes, n);
  int at = (int)sw_map_get(&c->selections, key.p, key.n);
  if (at >= 0)
    return at;
  at = sw_layout__add_storage(c, &x->matrix, "selection");
  struct sw_storage *s = &c->p->storages.v[at];
  s->kind = SW_STORAGE_CONSTANT;
  s->data = bytes;
  s->n_bytes = n;
  s->has_pad_fill = true;
  s->pad_fill = 0;
  s->layout = sw_arena_copy(c->job->arena, &x->rows, 1, sizeof x->rows);
  sw_map_set(&c->selections, key.p, key.n, at);
  return at;
}

/* -- infinities -- */

/* What a result may hold, by what its operand may. Infinities by design, as -inf in a mask, end in functions with bounds;
 * what came with an input may be NaN too, which passes everything but a comparison. */
static enum sw_infinities passed(enum sw_device_op op, enum sw_infinities operand, enum sw_infinities perhaps)
{
  switch (op) {
  case SW_OP_EQ:
  case SW_OP_NE:
  case SW_OP_GT:
  case SW_OP_GE:
  case SW_OP_LT:
  case SW_OP_LE:
    return SW_FINITE;
  case SW_OP_EXP:
  case SW_OP_SIGMOID:
  case SW_OP_TANH:
  case SW_OP_CLIP:
    return operand < perhaps ? operand : perhaps;
  default:
    return operand;
  }
}

/* Infinities and NaN of a constant: the exponent is all ones. */
static bool has_infinity(const struct sw_storage *s)
{
  const unsigned char *b = s->data;
  if (s->kind == SW_STORAGE_SCALAR)
    return !isfinite(s->fill);
  size_t width = s->dtype == SW_F32 ? 4 : 2;
  int mask = s->dtype == SW_F16 ? 0x7c00 : 0x7f80;
  bool is_float = s->dtype == SW_F16 || s->dtype == SW_BF16 || s->dtype == SW_F32;
  for (size_t i = width - 2; s->kind == SW_STORAGE_CONSTANT && b && is_float && i + 1 < s->n_bytes; i += width)
    if (((b[i] | b[i + 1] << 8) & mask) == mask)
      return true;
  return false;
}

static bool makes_infinities(enum sw_device_op op)
{
  switch (op) {
  case SW_OP_RECIPROCAL:
  case SW_OP_DIV:
  case SW_OP_LOG:
  case SW_OP_RSQRT:
    return true;
  default:
    return false;
  }
}

static bool may_come_infinite(const struct sw_storage *s)
{
  return s->kind == SW_STORAGE_INPUT && sw_dtype_is_float(s->dtype);
}

static void raise_to(struct sw_choosing *c, int storage, enum sw_infinities least)
{
  if (storage >= 0 && sw_dtype_is_float(c->p->storages.v[storage].dtype) && c->infinite[storage] < least)
    c->infinite[storage] = least;
}

/* With precision strict, what may be infinite counts as if it were. */
void sw_layout__find_infinities(struct sw_choosing *c)
{
  enum sw_infinities perhaps = c->o->precision == SW_PRECISION_STRICT ? SW_INFINITE : SW_MAYBE_INFINITE;
  c->infinite = SW_NEW_N(c->arena, enum sw_infinities, c->n_storages + 1);
  for (int i = 0; i < c->n_storages; i++)
    c->infinite[i] = has_infinity(&c->p->storages.v[i]) ? SW_INFINITE
                     : may_come_infinite(&c->p->storages.v[i]) ? perhaps
                                                               : SW_FINITE;
  for (int i = 0; i < c->p->steps.n; i++) {
    struct sw_step step = c->p->steps.v[i];
    if (step.is_host) {
      const struct sw_host_step *h = &c->p->host_steps.v[step.index];
      for (int k = 0; k < h->results.n; k++)
        raise_to(c, h->results.v[k].storage, perhaps);
      continue;
    }
    const struct sw_op *op = &c->p->ops.v[step.index];
    if (makes_infinities(op->op))
      raise_to(c, op->out.storage, perhaps);
    for (int k = 0; k < op->n_in; k++)
      raise_to(c, op->out.storage, passed(op->op, c->infinite[op->in[k].storage], perhaps));
  }
}

void sw_layout__warn_of_product(struct sw_choosing *c, const struct sw_op *op, const struct sw_storage *operand)
{
  sw_warn(c->job, "precision: node %s: its operand %s is put in place by a product with zeros and ones, which is right for "
                  "finite numbers", op->name, operand->name);
}
