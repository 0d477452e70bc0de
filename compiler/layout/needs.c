/* What an operand needs, and what it takes to give it that. Reference: layouts.md 3.4 to 3.6, 4.6 to 4.12, 5.1. */
#include "compiler/layout/choose.h"
#include "compiler/layout/normal.h"

#include <math.h>

unsigned sw_layout__reduced_loops(const struct sw_op *op)
{
  unsigned reduced = 0;
  for (int l = op->n_written; l < op->n_loops; l++)
    reduced |= 1u << l;
  return reduced;
}

int sw_layout__matmul_k(const struct sw_op *op)
{
  return op->n_loops == op->n_written + 1 && op->in[0].step[op->n_written] && op->in[1].step[op->n_written]
             ? op->n_written
             : -1;
}

/* The innermost loop of the output that the second operand has and the first has not. */
int sw_layout__matmul_n(const struct sw_op *op)
{
  for (int l = op->n_written - 1; l >= 0; l--)
    if (op->in[1].step[l] && !op->in[0].step[l])
      return l;
  return -1;
}

static bool is_matmul(const struct sw_op *op)
{
  return op->op == SW_OP_MATMUL || op->op == SW_OP_MATMULFP8;
}

static bool is_topk(const struct sw_op *op)
{
  return op->op == SW_OP_TOPKVALUE || op->op == SW_OP_TOPKINDEX;
}

static bool changes_format(const struct sw_op *op)
{
  return op->op == SW_OP_DL16TOFP32 || op->op == SW_OP_FP32TODL16 || op->op == SW_OP_FP8TODL16 ||
         op->op == SW_OP_QFP8CH || op->op == SW_OP_QFP8WT;
}

bool sw_layout__is_row_number(const struct sw_op *op, int input)
{
  for (int i = 0; i < op->n_in; i++)
    if (op->in[i].index_input == input)
      return true;
  return op->out.index_input == input;
}

struct sw_need sw_layout__need(const struct sw_choosing *c, const struct sw_op *op, int input)
{
  int storage = op->in[input].storage;
  const struct sw_storage *s = &c->p->storages.v[storage];
  bool rows = sw_layout__is_row_number(op, input);
  bool chosen = storage < c->n_storages && c->candidates[storage].n; /* not a copy of row numbers */
  if (s->kind == SW_STORAGE_SCALAR || (rows && (!c->best || !chosen)))
    return (struct sw_need){SW_NEED_NONE, -1};
  if (rows)
    return (struct sw_need){SW_NEED_ROWS, -1};
  if (is_matmul(op))
    return (struct sw_need){SW_NEED_LOOP, input ? sw_layout__matmul_n(op) : sw_layout__matmul_k(op)};
  if (op->op == SW_OP_EXX2)
    return (struct sw_need){SW_NEED_LOOP, op->n_loops - 1};
  if (op->role == SW_ROLE_CLONE || (c->best && op->op == SW_OP_IDENTITY && op->in[input].index_input < 0))
    return (struct sw_need){SW_NEED_COPY, -1};
  return (struct sw_need){SW_NEED_SAME, -1};
}

bool sw_layout__writes_whole_sticks(const struct sw_storage *s, const struct sw_op *op, const struct sw_layout *l,
                                    const struct sw_seen *seen)
{
  struct sw_coord host[SW_MAX_RANK];
  int d = sw_layout__stick_dim(s, l), loop = seen->stick.loop;
  int eps = l->arrangement == SW_EA_DL16_TO_FP32 ? 64 : sw_format_eps(l->format); /* there, pairs are */
  if (!seen->formed || d < 0 || (loop >= 0 && op->range[loop] % eps == 0))
    return true;
  return loop >= 0 && sw_layout__host_coords(s, op, &op->out, SW_OFFSET_EXACT, host) &&
         host[d].constant + op->range[loop] >= s->size[d];
}

/* Whether the operand is the table of a gather, or what a scatter writes. */
static bool moves_rows(const struct sw_op *op, int input)
{
  return op->in[input].index_input >= 0 || (op->out.index_input >= 0 && op->out.index_input != input);
}

/* Whether the op counts a loop of row numbers in whole sticks of its result: then it would read numbers behind the last.
 * With one element a stick it is the stick of the row numbers that counts; a scatter would write the rows they name. */
static bool rounds_rows_up(const struct sw_op *op, const struct sw_layout *l, int loop)
{
  bool rounds = false;
  for (int k = 0; k < op->n_in; k++)
    for (int r = 0; r < op->n_loops && sw_layout__is_row_number(op, k); r++)
      rounds |= (loop < 0 ? op->out.index_input == k : loop == r) && op->in[k].step[r] && op->range[r] % sw_format_eps(l->format);
  return rounds;
}

/* Of a top-k: there is a loop over the k best. */
static bool finds_several(const struct sw_op *op)
{
  for (int l = 0; l < op->n_written; l++)
    if (!op->in[0].step[l])
      return true;
  return false;
}

enum sw_reason sw_layout__unwritable(const struct sw_choosing *c, const struct sw_op *op, const struct sw_layout *l,
                                     const struct sw_seen *seen)
{
  const struct sw_stick *s = &seen->stick;
  if (!seen->formed || s->class > SW_STICK_LOOP)
    return sw_layout__stick_reason(seen);
  if (c->best && op->out.index_input >= 0 && !seen->coord[0].index)
    return SW_WHY_ROWS_OUTERMOST;
  if (c->best && rounds_rows_up(op, l, s->loop))
    return SW_WHY_ROUNDED_ROWS;
  if (!sw_layout__writes_whole_sticks(&c->p->storages.v[op->out.storage], op, l, seen))
    return SW_WHY_SHARED_STICK;
  if (is_matmul(op)) {
    int n = sw_layout__matmul_n(op);
    return (n < 0 ? s->class == SW_STICK_ZERO : s->loop == n) ? SW_WHY_NONE : SW_WHY_MATRIX_RESULT;
  }
  if (op->op == SW_OP_EXX2 && s->class != SW_STICK_ZERO)
    return SW_WHY_ONE_ELEMENT;
  if (is_topk(op) && s->loop >= 0 && !op->in[0].step[s->loop])
    return SW_WHY_K_BEST_DIM;
  return SW_WHY_NONE;
}

/* Lanes in another order go only where everything is in that order too, or where one lane a stick counts: the first,
 * which is the first in every order. Reference: ops.md 1.4. */
static bool arrangement_fits(const struct sw_op *op, const struct sw_layout *from, const struct sw_seen *seen,
                             const struct sw_layout *to)
{
  enum sw_arrangement a = from->arrangement, b = to->arrangement;
  bool staggered = a == SW_EA_DL16_TO_FP32 || a == SW_EA_FP32_TO_DL16;
  bool to_staggered = b == SW_EA_DL16_TO_FP32 || b == SW_EA_FP32_TO_DL16;
  bool one_lane = seen->stick.class == SW_STICK_ZERO && a != SW_EA_EXX2;
  switch (op->op) {
  case SW_OP_DL16TOFP32:
    return (a == SW_EA_STANDARD && b == SW_EA_DL16_TO_FP32) || (a == SW_EA_FP32_TO_DL16 && b == SW_EA_STANDARD) ||
           one_lane;
  case SW_OP_FP32TODL16:
    return (a == SW_EA_STANDARD && b == SW_EA_FP32_TO_DL16) || (a == SW_EA_DL16_TO_FP32 && b == SW_EA_STANDARD) ||
           one_lane;
  case SW_OP_FP8TODL16:
    return !staggered && b == SW_EA_STANDARD;
  case SW_OP_QFP8CH:
    return !staggered && b == SW_EA_QFP8CH;
  case SW_OP_QFP8WT:
    return !staggered && b == SW_EA_QFP8WT;
  case SW_OP_MATMULFP8:
  case SW_OP_LAYERNORMNORM:
  case SW_OP_LAYERNORMSCALE:
    return !staggered && !to_staggered;
  case SW_OP_MATMUL:
  case SW_OP_EXX2:
  case SW_OP_TOPKVALUE:
  case SW_OP_TOPKINDEX:
    return a == SW_EA_STANDARD && !to_staggered;
  default:
    break;
  }
  if (a == SW_EA_EXX2 || b == SW_EA_EXX2)
    return a == b;
  if (one_lane || (seen->stick.loop >= 0 && sw_layout__reduced_loops(op) >> seen->stick.loop & 1))
    return true;
  return a == b;
}

/* Whether loop l, on some stick of the op, would be cut inside a stick by a dim of this tensor: 128 elements over
 * dims [4,32] change dim after 32. */
static bool cuts_stick(const struct sw_layout *l, const struct sw_seen *seen, int loop)
{
  int eps = sw_format_eps(l->format);
  for (int j = 0; j < l->rank - 1 && loop >= 0; j++)
    for (int t = 0; t < seen->coord[j].n; t++) {
      const struct sw_term *m = &seen->coord[j].term[t];
      if (m->loop == loop && (m->mod % eps || (m->den > 1 && m->den % eps)))
        return true;
    }
  return false;
}

/* float32 in the order of a cast from float16 has neighbours in different sticks of a pair. Loops over 32 of 96 elements are
 * rounded up to pairs when they are written down, so a pair must begin where they begin and be in memory to its end. */
static bool splits_pair(const struct sw_op *op, const struct sw_layout *l, const struct sw_seen *seen)
{
  int loop = seen->stick.loop;
  if (l->arrangement != SW_EA_DL16_TO_FP32 || seen->stick.class != SW_STICK_LOOP)
    return false;
  int64_t tiles = (op->range[loop] - 1) / 32 + 1, in_memory = 1;
  for (int j = 0; j < l->rank - 1; j++)
    for (int t = 0; t < seen->coord[j].n; t++) {
      if (seen->coord[j].term[t].loop != loop)
        continue;
      if (seen->coord[j].term[t].mod % 64 || seen->coord[j].constant % 2)
        return true;
      in_memory = seen->coord[j].n == 1 ? l->device_size[j] - seen->coord[j].constant : tiles;
    }
  return tiles % 2 && in_memory <= tiles;
}

/* Whether the lanes behind its last elements hold -inf, so that no search finds them (prepare.c). */
static bool has_ends(const struct sw_storage *s)
{
  return s->has_pad_fill && isinf(s->pad_fill);
}

/* What is in the way of reading the operand as it is. */
static enum sw_reason obstacle(const struct sw_choosing *c, const struct sw_op *op, int input, struct sw_need need,
                               const struct sw_layout *from, const struct sw_seen *seen, const struct sw_layout *to,
                               const struct sw_seen *to_seen)
{
  const struct sw_stick *s = &seen->stick;
  if (!seen->formed || s->class > SW_STICK_LOOP)
    return sw_layout__stick_reason(seen);
  if (need.kind == SW_NEED_ROWS)
    return SW_WHY_NONE;
  if (need.kind == SW_NEED_LOOP) {
    if (need.loop < 0 ? s->class != SW_STICK_ZERO : s->loop != need.loop)
      return s->class == SW_STICK_ZERO ? SW_WHY_GATHER : SW_WHY_MATRIX_DIM;
  } else if (!sw_layout__compatible(seen, to_seen)) {
    if (s->class == SW_STICK_ZERO && to_seen->stick.class == SW_STICK_LOOP)
      return SW_WHY_GATHER;
    return to_seen->stick.class == SW_STICK_ZERO ? SW_WHY_SCATTER : SW_WHY_OTHER_DIM;
  }
  if (cuts_stick(from, seen, to_seen->stick.loop) || cuts_stick(to, to_seen, s->loop) ||
      (is_matmul(op) && cuts_stick(from, seen, sw_layout__matmul_k(op))))
    return SW_WHY_CUT;
  if (op->op == SW_OP_PROD && s->loop >= 0 && sw_layout__reduced_loops(op) >> s->loop & 1)
    return SW_WHY_PRODUCT;
  bool along_stick = s->loop >= 0 && sw_layout__reduced_loops(op) >> s->loop & 1;
  if (from->format == SW_FORMAT_FP32 && along_stick &&
      op->range[s->loop] % (from->arrangement == SW_EA_STANDARD ? 32 : 64))
    return SW_WHY_FLOAT32_SUM;
  if (is_topk(op) && along_stick && op->range[s->loop] % sw_format_eps(from->format) &&
      !has_ends(&c->p->storages.v[op->in[input].storage]))
    return SW_WHY_SEARCH;
  if (from->arrangement == SW_EA_FP32_TO_DL16 && along_stick && op->range[s->loop] % 64)
    return SW_WHY_LANES_SUM;
  if (is_topk(op) && finds_several(op) && s->loop < 0 && to_seen->stick.loop < 0)
    return SW_WHY_K_BEST_ALONE;
  if (splits_pair(op, from, seen) || splits_pair(op, to, to_seen))
    return SW_WHY_HALF_PAIR;
  if (!arrangement_fits(op, from, seen, to))
    return SW_WHY_LANES;
  if (op->op == SW_OP_MATMULFP8 && input == 1 && from->arrangement != SW_EA_QFP8WT)
    return SW_WHY_FP8_OPERAND;
  if (!changes_format(op) && op->op != SW_OP_MATMULFP8 && s->loop >= 0 && s->loop == to_seen->stick.loop &&
      sw_format_eps(from->format) != sw_format_eps(to->format))
    return SW_WHY_STICK_SIZES;
  if (c->best && op->in[input].index_input >= 0 && !seen->coord[0].index)
    return SW_WHY_ROWS_OUTERMOST;
  if (c->best && moves_rows(op, input) && s->loop != to_seen->stick.loop)
    return SW_WHY_ROWS_STICK;
  return SW_WHY_NONE;
}

/* A stick along one loop, to ask which host dim it is. */
static struct sw_stick along(int loop)
{
  struct sw_stick s = {.class = SW_STICK_LOOP, .loop = loop};
  s.coord.n = 1;
  s.coord.term[0] = (struct sw_term){loop, 1, 0, 1};
  return s;
}

static int device_dim_of_index(const struct sw_layout *l, const struct sw_seen *seen)
{
  for (int j = 0; seen->formed && j < l->rank; j++)
    if (seen->coord[j].index)
      return j;
  return -1;
}

bool sw_layout__converted(const struct sw_storage *s, const struct sw_layout *from, int dim, int front,
                          struct sw_layout *out)
{
  *out = *from;
  int own = sw_layout__stick_dim(s, from);
  bool stays = dim == own || (own < 0 && s->size[dim] == 1); /* a stick of one element lies on a dim of size 1 */
  if (!stays && !sw_layout__move_stick(s, from, dim, out))
    return false;
  if (front > 0 && front < out->rank - 1) {
    int64_t n = out->device_size[front], m = out->stride_map[front];
    for (int j = front; j > 0; j--) {
      out->device_size[j] = out->device_size[j - 1];
      out->stride_map[j] = out->stride_map[j - 1];
    }
    out->device_size[0] = n;
    out->stride_map[0] = m;
  }
  return true;
}

/* Whether the kernel of a copy can be written down with these layouts. */
static bool can_be_emitted(const struct sw_choosing *c, const struct sw_op *op, const struct sw_layout *from,
                           const struct sw_storage *written, const struct sw_layout *to)
{
  struct sw_arena *a = sw_arena_new(c->arena, 0);
  int culprit;
  bool ok = !sw_layout_obstacle(a, op, (const struct sw_layout *[]){from, to}, written, &culprit);
  sw_arena_free(a);
  return ok;
}

/* Whether a copy from one stick to the other is one device op: both loops are in both tensors. */
bool sw_layout__moves_stick(const struct sw_choosing *c, const struct sw_op *op, const struct sw_layout *from,
                            const struct sw_seen *seen, const struct sw_storage *written, const struct sw_layout *to,
                            const struct sw_seen *to_seen)
{
  return op->op == SW_OP_IDENTITY && op->n_in == 1 && seen->formed && to_seen->formed &&
         seen->stick.class == SW_STICK_LOOP &&
         !cuts_stick(from, seen, to_seen->stick.loop) && !cuts_stick(to, to_seen, seen->stick.loop) &&
         to_seen->stick.class == SW_STICK_LOOP && seen->nonstick >> to_seen->stick.loop & 1 &&
         to_seen->nonstick >> seen->stick.loop & 1 && from->format == SW_FORMAT_FP16 &&
         to->format == SW_FORMAT_FP16 && from->arrangement == SW_EA_STANDARD && to->arrangement == SW_EA_STANDARD &&
         (!c->best || can_be_emitted(c, op, from, written, to));
}

static int64_t whole_cost(const struct sw_choosing *c, const struct sw_storage *s, const struct sw_layout *from,
                          const struct sw_layout *to)
{
  struct sw_op copy = sw_layout__copy_of(s);
  return sw_layout__copy_cost(c, s, &copy, from, to);
}

static double total(const struct sw_outcome *o)
{
  return (double)(o->cost + o->move) + o->read;
}

/* Whether a copy with its stick on `dim` would do; fills in the outcome. */
static bool try_dim(const struct sw_choosing *c, const struct sw_op *op, int input, struct sw_need need,
                    const struct sw_layout *from, const struct sw_layout *to, const struct sw_seen *to_seen, int dim,
                    struct sw_outcome *out)
{
  const struct sw_access *x = &op->in[input];
  const struct sw_storage *s = &c->p->storages.v[x->storage];
  struct sw_layout copy;
  int front = -1;
  if (!sw_layout__converted(s, from, dim, -1, &copy))
    return false;
  struct sw_seen seen = sw_layout__see(&copy, op, x, SW_OFFSET_EXACT);
  if (c->best && x->index_input >= 0) {
    front = device_dim_of_index(&copy, &seen);
    if (front > 0 && !sw_layout__converted(s, from, dim, front, &copy))
      return false;
    seen = sw_layout__see(&copy, op, x, SW_OFFSET_EXACT);
  }
  int64_t move = 0;
  if (obstacle(c, op, input, need, &copy, &seen, to, to_seen)) {
    const struct sw_storage *written = &c->p->storages.v[op->out.storage];
    if (need.kind != SW_NEED_COPY || !sw_layout__moves_stick(c, op, &copy, &seen, written, to, to_seen))
      return false;
    move = sw_layout__in_op_cost(c, op, &copy, to); /* the copy that the op is does the rest */
  }
  int64_t cost = whole_cost(c, s, from, &copy);
  double read = move ? 0 : sw_layout__copy_read(c, op, x, s, &copy, to_seen);
  if (out->kind == SW_CONVERT && total(out) <= (double)(cost + move) + read)
    return true;
  *out = (struct sw_outcome){
      .kind = SW_CONVERT, .dim = dim, .front = front, .cost = cost, .move = move, .read = read, .why = out->why};
  return true;
}

/* The reference knows one target: the host dim that is the output's stick (3.6). An offset anywhere on the two dims
 * that change places rules it out. */
static bool convert_as_reference(const struct sw_choosing *c, const struct sw_op *op, int input, struct sw_need need,
                                 const struct sw_layout *from, const struct sw_seen *seen, const struct sw_layout *to,
                                 const struct sw_seen *to_seen, struct sw_outcome *out)
{
  const struct sw_access *x = &op->in[input];
  const struct sw_storage *s = &c->p->storages.v[x->storage];
  const struct sw_storage *r = &c->p->storages.v[op->out.storage];
  struct sw_coord host[SW_MAX_RANK], written[SW_MAX_RANK];
  if (!seen->formed || (seen->stick.class != SW_STICK_LOOP && seen->stick.class != SW_STICK_OFFSET) ||
      !sw_layout__host_coords(s, op, x, c->rule, host) ||
      sw_layout__covering_dim(host, s->rank, &seen->stick) < 0)
    return false;
  if (need.kind == SW_NEED_COPY) { /* 4.9: the first scan candidate of the output that the input can follow */
    if (!sw_layout__host_coords(r, op, &op->out, c->rule, written))
      return false;
    for (int d = 0; d < r->rank; d++) {
      if (r->size[d] % sw_format_eps(to->format) || written[d].n != 1)
        continue;
      struct sw_stick t = along(written[d].term[0].loop);
      int dim = sw_layout__covering_dim(host, s->rank, &t);
      if (dim >= 0 && try_dim(c, op, input, need, from, to, to_seen, dim, out))
        return true;
    }
    return false;
  }
  struct sw_stick target = need.kind == SW_NEED_LOOP ? along(need.loop) : to_seen->stick;
  if (target.class == SW_STICK_ZERO && seen->stick.class == SW_STICK_OFFSET)
    for (int l = op->n_written; l < op->n_loops && target.loop < 0; l++)
      if (x->step[l])
        target = along(l);
  int dim = sw_layout__covering_dim(host, s->rank, &target);
  return dim >= 0 && try_dim(c, op, input, need, from, to, to_seen, dim, out);
}

/* No copy of the whole will do: a copy of what this operand reads, in its own shape, where the loop that needs the
 * stick is a dim; behind a copy of the whole where not even the slice can be read as it is. */
static void try_slice(const struct sw_choosing *c, const struct sw_op *op, int input, struct sw_need need,
                      const struct sw_layout *from, const struct sw_layout *to, const struct sw_seen *to_seen,
                      struct sw_outcome *out)
{
  const struct sw_storage *s = &c->p->storages.v[op->in[input].storage];
  int loop = need.kind == SW_NEED_LOOP ? need.loop : to_seen->stick.loop;
  struct sw_slice slice;
  if (loop < 0 || !sw_layout__slice(c, op, input, loop, &slice) || !sw_layout__is_slice(s, &slice.op))
    return;
  for (int d = -1; d < s->rank; d++) {
    struct sw_layout whole = *from;
    struct sw_slice_plan plan;
    if ((d >= 0 && (s->size[d] == 1 || !sw_layout__move_stick(s, from, d, &whole))) ||
        !sw_layout__plan_slice(c, &slice, &whole, &plan))
      continue;
    struct sw_seen read = sw_layout__see(&plan.last, op, &slice.read, SW_OFFSET_EXACT);
    if (obstacle(c, op, input, need, &plan.last, &read, to, to_seen))
      continue;
    int64_t cost = plan.cost + (d < 0 ? 0 : whole_cost(c, s, from, &whole));
    double ns = sw_layout__copy_read(c, op, &slice.read, &slice.shape, &plan.last, to_seen);
    if (out->kind == SW_CONVERT && total(out) <= (double)cost + ns)
      continue;
    *out = (struct sw_outcome){
        .kind = SW_CONVERT, .dim = d, .front = -1, .slice = 1 + loop, .cost = cost, .read = ns, .why = out->why};
  }
}

static void try_selection(const struct sw_choosing *c, const struct sw_op *op, int input, struct sw_need need,
                          const struct sw_layout *from, const struct sw_layout *to, const struct sw_seen *to_seen, int dim,
                          bool alone, struct sw_outcome *out)
{
  int storage = op->in[input].storage, loop = need.kind == SW_NEED_LOOP ? need.loop : to_seen->stick.loop;
  const struct sw_storage *s = &c->p->storages.v[storage];
  struct sw_layout whole = *from;
  struct sw_select x;
  if ((dim >= 0 && (s->size[dim] == 1 || !sw_layout__move_stick(s, from, dim, &whole))) ||
      !sw_layout__select(c, op, input, loop, alone, &whole, &x))
    return;
  const struct sw_layout *made_in = x.sums ? &x.middle : &x.to;
  struct sw_seen read = sw_layout__see(&x.to, op, &x.read, SW_OFFSET_EXACT);
  struct sw_seen in = sw_layout__see(&whole, &x.first, &x.first.in[alone], SW_OFFSET_EXACT);
  struct sw_seen made = sw_layout__see(made_in, &x.first, &x.first.out, SW_OFFSET_EXACT);
  struct sw_need first = {alone ? SW_NEED_SAME : SW_NEED_LOOP, alone ? -1 : x.first.n_written};
  if (obstacle(c, &x.first, alone, first, &whole, &in, made_in, &made) ||
      obstacle(c, op, input, need, &x.to, &read, to, to_seen))
    return;
  int64_t cost = sw_layout__select_cost(c, &x, &whole) + (dim < 0 ? 0 : whole_cost(c, s, from, &whole));
  double ns = sw_layout__copy_read(c, op, &x.read, &x.copy, &x.to, to_seen);
  if (out->kind == SW_CONVERT && total(out) <= (double)cost + ns)
    return;
  *out = (struct sw_outcome){.kind = SW_CONVERT,
                             .dim = dim,
                             .front = -1,
                             .select = 2 + loop,
                             .alone = alone,
                             .cost = cost,
                             .read = ns,
                             .why = out->why};
}

/* No copy will do at all: a matrix of zeros and ones, where need be behind a copy of the whole. */
static void try_select(const struct sw_choosing *c, const struct sw_op *op, int input, struct sw_need need,
                       const struct sw_layout *from, const struct sw_layout *to, const struct sw_seen *to_seen,
                       struct sw_outcome *out)
{
  const struct sw_storage *s = &c->p->storages.v[op->in[input].storage];
  for (int d = -1; d < s->rank; d++) {
    try_selection(c, op, input, need, from, to, to_seen, d, true, out);
    if (c->infinite[op->in[input].storage] != SW_INFINITE)
      try_selection(c, op, input, need, from, to, to_seen, d, false, out);
  }
}

/* What the loader lays out it can lay out twice: another of the candidates, as a buffer of its own. A parameter is loaded once
 * for all runs; an input on every run, which is the last resort. */
static bool try_loading_again(const struct sw_choosing *c, const struct sw_op *op, int input, struct sw_need need,
                              const struct sw_layout *to, const struct sw_seen *to_seen, struct sw_outcome *out)
{
  const struct sw_access *x = &op->in[input];
  const sw_layout_list *all = sw_layout__reloads(c, x->storage);
  for (int i = 0; i < all->n; i++) {
    struct sw_seen seen = sw_layout__see(&all->v[i], op, x, SW_OFFSET_EXACT);
    if (obstacle(c, op, input, need, &all->v[i], &seen, to, to_seen))
      continue;
    *out = (struct sw_outcome){.kind = SW_CONVERT, .dim = -1, .front = -1, .load = 1 + i, .why = out->why};
    out->cost = sw_layout__reload_cost(c, x->storage, &all->v[i]);
    out->read = sw_layout__copy_read(c, op, x, &c->p->storages.v[x->storage], &all->v[i], to_seen);
    return true;
  }
  return false;
}

/* The copies by which an operand may get there. */
static struct sw_outcome through_copy(const struct sw_choosing *c, const struct sw_op *op, int input, struct sw_need need,
                                      const struct sw_layout *from, const struct sw_seen *seen,
                                      const struct sw_layout *to, const struct sw_seen *to_seen, enum sw_reason why)
{
  struct sw_outcome out = {.kind = SW_IMPOSSIBLE, .dim = -1, .front = -1, .why = why};
  const struct sw_storage *s = &c->p->storages.v[op->in[input].storage];
  int own = sw_layout__stick_dim(s, from);
  bool gather = op->in[input].index_input >= 0;
  int turned = own;
  for (int d = 0; turned < 0 && d < s->rank; d++)
    turned = s->size[d] == 1 ? d : -1;
  if (c->best && gather && turned >= 0 && try_dim(c, op, input, need, from, to, to_seen, turned, &out))
    return out;
  if (from->format != SW_FORMAT_FP16 || from->arrangement != SW_EA_STANDARD)
    return out;
  if (!c->best) {
    convert_as_reference(c, op, input, need, from, seen, to, to_seen, &out);
    return out;
  }
  /* The whole can be shared by all readers, a slice can't: it is taken where it would be cheaper even if each reader had
   * one. K of a projection to Q, K and V together is such a slice. */
  for (int d = 0; d < s->rank; d++)
    if (s->size[d] > 1 && d != own)
      try_dim(c, op, input, need, from, to, to_seen, d, &out);
  struct sw_outcome slice = {.kind = SW_IMPOSSIBLE, .why = out.why};
  if (!gather)
    try_slice(c, op, input, need, from, to, to_seen, &slice);
  int64_t readers = c->accesses[op->in[input].storage] - c->written[op->in[input].storage];
  double shared = (double)(out.cost + out.move) / (double)(readers > 1 ? readers : 1) + out.read;
  bool cheaper = slice.kind == SW_CONVERT && total(&slice) <= shared;
  out = out.kind == SW_IMPOSSIBLE || cheaper ? slice : out;
  if (out.kind == SW_IMPOSSIBLE && c->means >= SW_MEANS_SELECT)
    try_select(c, op, input, need, from, to, to_seen, &out);
  return out;
}

struct sw_outcome sw_layout__outcome(const struct sw_choosing *c, const struct sw_op *op, int input,
                                     const struct sw_layout *from, const struct sw_seen *seen,
                                     const struct sw_layout *to, const struct sw_seen *to_seen)
{
  struct sw_need need = sw_layout__need(c, op, input);
  struct sw_outcome out = {.kind = SW_FREE, .dim = -1, .front = -1};
  if (need.kind == SW_NEED_NONE)
    return out;
  out.why = obstacle(c, op, input, need, from, seen, to, to_seen);
  if (!out.why) {
    out.read = sw_layout__read(c, op, input, from, seen, to_seen);
    return out;
  }
  if (need.kind == SW_NEED_COPY &&
      sw_layout__moves_stick(c, op, from, seen, &c->p->storages.v[op->out.storage], to, to_seen)) {
    out.kind = SW_IN_OP;
    out.move = sw_layout__in_op_cost(c, op, from, to);
    return out;
  }
  int storage = op->in[input].storage;
  if (c->load_twice[storage] && try_loading_again(c, op, input, need, to, to_seen, &out))
    return out;
  out.kind = SW_IMPOSSIBLE;
  if (has_ends(&c->p->storages.v[storage])) /* a copy would not have them */
    return out;
  out = through_copy(c, op, input, need, from, seen, to, to_seen, out.why);
  if (out.kind == SW_IMPOSSIBLE && c->means >= SW_MEANS_RELOAD && !c->load_twice[storage])
    try_loading_again(c, op, input, need, to, to_seen, &out);
  return out;
}
