/* Tiles given by the user, put into the program. Reference: tiling.md 2, 4.
 *
 * An op's loop of 256 in 4 tiles has range 64 and, around it, a counted loop of 4 turns in which its accesses move on by
 * 64 steps. A buffer that lives within a turn holds one tile and does not move. A reduced dim needs three ops: the
 * result is filled with the neutral element in front of the loop, a turn reduces its tile into a buffer of its own, and
 * a third op combines the two.
 *
 * What comes from outside a loop or leaves it is read and written tile by tile where it lies, but in profile torch-spyre
 * (tile_copies.c). */
#include "compiler/plan/apply_tiles.h"

#include "base/options.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static enum sw_rc refuse(const struct sw_applier *a, const struct sw_op *op, int storage, const char *text)
{
  const char *name = a->t->p->storages.v[storage].name;
  struct sw_fault *f = sw_fault(a->t->job, SW_UNSUPPORTED, "option tile: %s %s", name, text);
  f->node = op->name;
  f->tensor = name;
  f->source = op->source;
  f->advice = "tile another dim, or in whole sticks";
  return SW_UNSUPPORTED;
}

/* -- what lives within a turn -- */

/* Whether every loop of the access walks along one host dim, so that it can walk a shorter one. */
static bool is_plain(const struct sw_storage *s, const struct sw_op *op, const struct sw_access *x)
{
  for (int l = 0; l < op->n_loops; l++) {
    int d = x->step[l] > 0 ? sw_dim_of_step(s, x->step[l]) : -1;
    if (x->step[l] && (d < 0 || x->step[l] / s->stride[d] * (op->range[l] - 1) >= s->size[d]))
      return false;
  }
  return !x->offset && x->index_input < 0;
}

static bool reduces_in(const struct sw_op *op, const struct sw_nest *nest, int depth)
{
  return nest->cut[depth] >= op->n_written;
}

static int first_reduction(const struct sw_op *op, const struct sw_nest *nest)
{
  int v = 0;
  while (v < nest->n && !reduces_in(op, nest, v))
    v++;
  return v;
}

static void see(struct sw_applier *a, int index, int k)
{
  struct sw_op *op = &a->t->p->ops.v[index];
  const struct sw_access *x = sw_operand(op, k);
  const struct sw_nest *nest = &a->t->nest[index];
  const struct sw_storage *s = &a->t->p->storages.v[x->storage];
  struct sw_tile_local *at = &a->local[x->storage];
  int n = k == op->n_in ? first_reduction(op, nest) : nest->n, same = 0;
  at->n_writers += k == op->n_in;
  if (!at->seen) {
    at->seen = true;
    at->writer = k == op->n_in ? index : -1;
    at->n = k == op->n_in ? n : 0;
    for (int v = 0; v < n; v++) {
      at->loop[v] = nest->loop[v];
      at->count[v] = nest->count[v];
      at->dim[v] = sw_walked_dim(s, op, x, nest->cut[v]);
    }
  }
  while (same < at->n && same < n && at->loop[same] == nest->loop[same] && at->dim[same] >= 0 &&
         at->dim[same] == sw_walked_dim(s, op, x, nest->cut[same]))
    same++;
  at->n = is_plain(s, op, x) ? same : 0;
}

static void find_locals(struct sw_applier *a)
{
  struct sw_program *p = a->t->p;
  for (int i = 0; i < a->t->steps.n; i++) {
    if (a->t->steps.v[i].is_host)
      continue;
    int index = a->t->steps.v[i].index;
    for (int k = 0; k <= p->ops.v[index].n_in; k++)
      see(a, index, k);
  }
  for (int s = 0; s < p->storages.n; s++)
    if (p->storages.v[s].kind != SW_STORAGE_TEMPORARY || p->storages.v[s].is_output || a->local[s].outside)
      a->local[s].n = 0;
}

static void mark_host(struct sw_applier *a, const struct sw_host_arg *args, int n)
{
  for (int i = 0; i < n; i++) {
    if (args[i].kind == SW_HOST_VIEW)
      a->local[args[i].view.storage].outside = true;
    mark_host(a, args[i].list, args[i].n_list);
  }
}

static void find_outside(struct sw_applier *a)
{
  const struct sw_program *p = a->t->p;
  for (int h = 0; h < p->host_steps.n; h++) {
    mark_host(a, p->host_steps.v[h].args.v, p->host_steps.v[h].args.n);
    for (int r = 0; r < p->host_steps.v[h].results.n; r++)
      if (p->host_steps.v[h].results.v[r].storage >= 0)
        a->local[p->host_steps.v[h].results.v[r].storage].outside = true;
  }
  for (int i = 0; i < p->outputs.n; i++)
    if (p->outputs.v[i].is_tensor)
      a->local[p->outputs.v[i].view.storage].outside = true;
}

/* -- accesses -- */

void sw_tiles__walk_shorter(const struct sw_storage *whole, const struct sw_storage *shorter, const struct sw_op *op,
                         struct sw_access *x)
{
  for (int l = 0; l < op->n_loops; l++) {
    int d = x->step[l] ? sw_dim_of_step(whole, x->step[l]) : -1;
    if (d >= 0)
      x->step[l] = x->step[l] / whole->stride[d] * shorter->stride[d];
  }
}

/* Steps of its loop between two turns of a level: what all levels inside it leave of the range. */
static int64_t extent(const struct sw_op *op, const struct sw_nest *nest, int depth)
{
  int64_t n = op->range[nest->cut[depth]];
  for (int v = 0; v <= depth; v++)
    n /= nest->cut[v] == nest->cut[depth] ? nest->count[v] : 1;
  return n;
}

struct sw_op sw_tiles__cut(const struct sw_applier *a, const struct sw_op *op, const struct sw_nest *nest, int n)
{
  struct sw_op tile = *op;
  tile.n_levels = n;
  for (int v = 0; v < n; v++) {
    int64_t count = nest->count[v], steps = extent(op, nest, v);
    int cut = nest->cut[v];
    tile.level[v] = (struct sw_level){.loop = nest->loop[v], .count = count, .cut = cut < op->n_loops ? cut : SW_CUT_AWAY};
    tile.range[cut] /= count;
    for (int k = 0; k <= op->n_in; k++) {
      struct sw_access *x = sw_operand(&tile, k);
      const struct sw_tile_local *own = x->storage < a->n_storages ? &a->local[x->storage] : NULL;
      bool stays = own && v < own->n;
      x->advance[v] = stays ? 0 : x->step[cut] * steps;
    }
  }
  return tile;
}

void sw_tiles__drop_single_loops(struct sw_op *op)
{
  int kept = 0, written = 0, rows = op->row_loop - 1;
  for (int l = 0; l < op->n_loops; l++) {
    bool keeps = op->range[l] > 1;
    if (l == rows)
      op->row_loop = keeps ? kept + 1 : 0;
    for (int v = 0; v < op->n_levels; v++)
      if (op->level[v].cut == l)
        op->level[v].cut = keeps ? kept : SW_CUT_AWAY;
    if (!keeps)
      continue;
    op->range[kept] = op->range[l];
    for (int k = 0; k <= op->n_in; k++)
      sw_operand(op, k)->step[kept] = sw_operand(op, k)->step[l];
    written += l < op->n_written;
    kept++;
  }
  for (int k = 0; k <= op->n_in; k++)
    for (int l = kept; l < op->n_loops; l++)
      sw_operand(op, k)->step[l] = 0;
  op->n_loops = kept;
  op->n_written = written;
}

/* -- new buffers and ops -- */

int sw_tiles__add_buffer(struct sw_applier *a, const struct sw_storage *like, const char *name)
{
  struct sw_storage s = *like;
  s.name = name;
  s.kind = SW_STORAGE_TEMPORARY;
  s.input = -1;
  s.data = NULL;
  s.n_bytes = 0;
  s.is_output = s.host_only = s.has_pad_fill = false;
  s.place = NULL;
  *SW_PUSH(a->arena, &a->t->p->storages) = s;
  return a->t->p->storages.n - 1;
}

static int add_scalar(struct sw_applier *a, double value, enum sw_dtype dtype)
{
  struct sw_program *p = a->t->p;
  for (int s = 0; s < p->storages.n; s++)
    if (p->storages.v[s].kind == SW_STORAGE_SCALAR && p->storages.v[s].fill == value && p->storages.v[s].dtype == dtype)
      return s;
  enum sw_format format = sw_format_of(dtype);
  struct sw_layout *l = SW_NEW(a->arena, struct sw_layout);
  *l = (struct sw_layout){.rank = 2, .device_size = {1, sw_format_eps(format)}, .stride_map = {-1, -1}, .format = format};
  struct sw_storage *s = SW_PUSH(a->arena, &p->storages);
  *s = (struct sw_storage){.kind = SW_STORAGE_SCALAR, .dtype = dtype, .input = -1, .fill = value, .layout = l};
  s->name = sw_arena_printf(a->arena, "tile:%g:%s", value, sw_dtype_text(dtype));
  return p->storages.n - 1;
}

int sw_tiles__push_op(struct sw_applier *a, const struct sw_op *op)
{
  *SW_PUSH(a->arena, &a->t->p->ops) = *op;
  return a->t->p->ops.n - 1;
}

bool sw_tiles__tile_of(const struct sw_applier *a, int index, int k, struct sw_storage *out)
{
  struct sw_op old = a->old_op[index];
  const struct sw_nest *nest = &a->t->nest[index];
  const struct sw_access *x = sw_operand(&old, k);
  const struct sw_storage *s = &a->old_storage[x->storage];
  *out = a->t->p->storages.v[x->storage];
  if (!is_plain(s, &old, x))
    return false;
  for (int v = a->local[x->storage].n; v < nest->n; v++) {
    int d = sw_walked_dim(s, &old, x, nest->cut[v]);
    if (x->step[nest->cut[v]] && (d < 0 || !sw_shorten(a->arena, out, d, nest->count[v])))
      return false;
  }
  return true;
}

/* -- reductions -- */

static const struct combination {
  enum sw_device_op op, with;
  double neutral;
} combinations[] = {
    {SW_OP_SUM, SW_OP_ADD, 0},           {SW_OP_MEAN, SW_OP_ADD, 0},         {SW_OP_MATMUL, SW_OP_ADD, 0},
    {SW_OP_MAX, SW_OP_MAXIMUM, -INFINITY}, {SW_OP_MIN, SW_OP_MINIMUM, INFINITY}, {SW_OP_PROD, SW_OP_MUL, 1},
};

static const struct combination *combination_of(enum sw_device_op op)
{
  for (size_t i = 0; i < sizeof combinations / sizeof *combinations; i++)
    if (combinations[i].op == op)
      return &combinations[i];
  return NULL;
}

struct sw_op sw_tiles__like_result(const struct sw_op *op, const char *name)
{
  struct sw_op more = {.name = name,
                       .n_loops = op->n_written,
                       .n_written = op->n_written,
                       .source = op->source,
                       .out = op->out};
  more.nodes.v = op->nodes.v;
  more.nodes.n = more.nodes.cap = op->nodes.n;
  memcpy(more.range, op->range, sizeof more.range);
  memset(more.out.step + op->n_written, 0, sizeof *more.out.step * (size_t)(SW_MAX_LOOPS - op->n_written));
  return more;
}

/* Puts a step in front of the loop of this depth. */
static void push_before_loop(struct sw_applier *a, int depth, int index)
{
  int at = a->first_step[depth];
  *SW_PUSH(a->arena, &a->steps) = (struct sw_step){0};
  memmove(&a->steps.v[at + 1], &a->steps.v[at], sizeof *a->steps.v * (size_t)(a->steps.n - 1 - at));
  a->steps.v[at] = (struct sw_step){false, index};
  for (int v = depth; v < a->depth; v++)
    a->first_step[v]++;
}

void sw_tiles__push_step(struct sw_applier *a, int index)
{
  *SW_PUSH(a->arena, &a->steps) = (struct sw_step){false, index};
}

/* Fill in front, combine behind; `op` writes the tile's own buffer afterwards. */
static enum sw_rc accumulate(struct sw_applier *a, int index, struct sw_op *op, struct sw_op *combine)
{
  struct sw_program *p = a->t->p;
  const struct sw_op *whole = &a->whole[index];
  const struct sw_nest *nest = &a->t->nest[index];
  const struct combination *c = combination_of(op->op);
  struct sw_storage part;
  int result = op->out.storage, depth = first_reduction(whole, nest);
  enum sw_dtype dtype = p->storages.v[result].dtype;
  if (!c || !sw_tiles__tile_of(a, index, op->n_in, &part))
    return refuse(a, op, result, "has no part that is the result of one tile");
  const struct sw_storage all = p->storages.v[result];
  struct sw_op fill = sw_tiles__like_result(whole, sw_arena_printf(a->arena, "coarse_tile_fill_%s", all.name));
  fill.op = SW_OP_IDENTITY;
  fill.role = SW_ROLE_FILL;
  fill.n_in = 1;
  fill.in[0] = (struct sw_access){.storage = add_scalar(a, c->neutral, dtype), .index_input = -1};
  fill = sw_tiles__cut(a, &fill, nest, depth);
  sw_tiles__drop_single_loops(&fill);
  push_before_loop(a, depth, sw_tiles__push_op(a, &fill));

  *combine = sw_tiles__like_result(whole, sw_arena_printf(a->arena, "coarse_tile_combine_%s", all.name));
  combine->op = c->with;
  combine->n_in = 2;
  combine->in[0] = combine->in[1] = combine->out;
  *combine = sw_tiles__cut(a, combine, nest, nest->n);
  int buffer = sw_tiles__add_buffer(a, &part, sw_arena_printf(a->arena, "%s:tile", all.name));
  sw_tiles__walk_shorter(&all, &part, op, &op->out);
  op->out.storage = buffer;
  memset(op->out.advance, 0, sizeof op->out.advance);
  combine->in[1] = op->out;
  return SW_OK;
}

/* -- the steps -- */

static void enter_group(struct sw_applier *a, int group, int step)
{
  a->group = group;
  a->copies.n = 0;
  memset(a->tile_of, -1, sizeof *a->tile_of * (size_t)a->n_storages);
  for (int i = step; group >= 0 && i < a->t->steps.n && !a->t->steps.v[i].is_host; i++) {
    int op = a->t->steps.v[i].index;
    if (!a->t->nest[op].n || a->t->nest[op].loop[0] != group)
      break;
    a->written_in[a->whole[op].out.storage] = group;
  }
}

static void open_loops(struct sw_applier *a, const struct sw_nest *nest, int step)
{
  int same = 0;
  while (same < a->depth && same < nest->n && a->opened[same] == nest->loop[same])
    same++;
  for (int v = same; v < nest->n; v++) {
    a->opened[v] = nest->loop[v];
    a->first_step[v] = a->steps.n;
  }
  a->depth = nest->n;
  int group = nest->n ? nest->loop[0] : -1;
  if (group != a->group)
    enter_group(a, group, step);
}

static enum sw_rc apply(struct sw_applier *a, int step)
{
  struct sw_program *p = a->t->p;
  int index = a->t->steps.v[step].index;
  const struct sw_op *whole = &a->whole[index];
  const struct sw_nest *nest = &a->t->nest[index];
  bool copies = a->t->o->profile == SW_PROFILE_TORCH_SPYRE, more = false;
  open_loops(a, nest, step);
  if (!nest->n) {
    sw_tiles__push_step(a, index);
    return SW_OK;
  }
  struct sw_op op = sw_tiles__cut(a, whole, nest, nest->n), behind;
  if (copies && a->t->copies_operands)
    sw_tiles__copy_operands(a, index, &op);
  if (first_reduction(whole, nest) < nest->n) {
    SW_TRY(accumulate(a, index, &op, &behind));
    more = true;
  } else if (copies) {
    more = sw_tiles__copy_result(a, index, &op, &behind);
  }
  if (sw_access_moves(&op, &op.out) && op.role == SW_ROLE_PLAIN)
    op.role = SW_ROLE_WRITE;
  sw_tiles__drop_single_loops(&op);
  p->ops.v[index] = op;
  sw_tiles__push_step(a, index);
  if (more) {
    sw_tiles__drop_single_loops(&behind);
    sw_tiles__push_step(a, sw_tiles__push_op(a, &behind));
  }
  return SW_OK;
}

/* Buffers within a turn become as short as a tile, and all accesses with them. */
static enum sw_rc shorten_locals(struct sw_applier *a)
{
  struct sw_program *p = a->t->p;
  for (int s = 0; s < a->n_storages; s++) {
    struct sw_tile_local *at = &a->local[s];
    for (int v = 0; v < at->n; v++)
      if (!sw_shorten(a->arena, &p->storages.v[s], at->dim[v], at->count[v]))
        return refuse(a, &p->ops.v[at->writer], s, "has no part of one tile: it would end inside a stick");
  }
  for (int i = 0; i < p->ops.n; i++)
    for (int k = 0; k <= p->ops.v[i].n_in; k++) {
      struct sw_access *x = sw_operand(&p->ops.v[i], k);
      if (a->local[x->storage].n)
        sw_tiles__walk_shorter(&a->old_storage[x->storage], &p->storages.v[x->storage], &p->ops.v[i], x);
    }
  return SW_OK;
}

/* What a bundle can't say. */
static enum sw_rc check(const struct sw_applier *a)
{
  struct sw_program *p = a->t->p;
  enum sw_rc worst = SW_OK;
  for (int i = 0; i < a->steps.n; i++) {
    struct sw_op *op = a->steps.v[i].is_host ? NULL : &p->ops.v[a->steps.v[i].index];
    const struct sw_storage *s = op && op->n_levels ? sw_op_strays(p, op) : NULL;
    if (s)
      worst = refuse(a, op, (int)(s - p->storages.v), "has tiles that end inside a stick or are not equally far apart in memory");
  }
  return worst;
}

enum sw_rc sw_apply_tiles(struct sw_tiling *t)
{
  struct sw_program *p = t->p;
  struct sw_applier a = {.t = t, .arena = t->job->arena, .n_storages = p->storages.n, .group = -1};
  size_t n = (size_t)p->storages.n;
  a.local = SW_NEW_N(t->scratch, struct sw_tile_local, p->storages.n);
  a.tile_of = SW_NEW_N(t->scratch, int, p->storages.n);
  a.tile_writer = SW_NEW_N(t->scratch, int, p->storages.n);
  a.written_in = SW_NEW_N(t->scratch, int, p->storages.n);
  memset(a.written_in, -1, sizeof *a.written_in * n);
  a.old_op = sw_arena_copy(t->scratch, p->ops.v, (size_t)p->ops.n, sizeof *p->ops.v);
  a.old_storage = sw_arena_copy(t->scratch, p->storages.v, n, sizeof *p->storages.v);
  find_outside(&a);
  find_locals(&a);
  SW_TRY(shorten_locals(&a));
  a.whole = sw_arena_copy(t->scratch, p->ops.v, (size_t)p->ops.n, sizeof *p->ops.v);
  enum sw_rc worst = SW_OK;
  for (int i = 0; i < t->steps.n; i++) {
    if (t->steps.v[i].is_host) {
      open_loops(&a, &(struct sw_nest){0}, i);
      *SW_PUSH(a.arena, &a.steps) = t->steps.v[i];
      continue;
    }
    enum sw_rc rc = apply(&a, i);
    worst = rc > worst ? rc : worst;
  }
  SW_TRY(worst);
  SW_TRY(check(&a));
  memcpy(&p->steps, &a.steps, sizeof a.steps);
  return sw_program_verify(t->job, p, "tile");
}
