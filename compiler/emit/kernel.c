#include "compiler/emit/emit.h"
#include "compiler/emit/handle.h"

#include "base/map.h"
#include "compiler/plan/loops.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

/* A kernel of the plan as op specs: one op each, in order, its tensors in normal form, its buffers numbered. Counted
 * loops become loops of specs. What moves with one says by how much, in elements of the device: a symbol for each op and
 * level counts the turns, "floor(32768*t0) + floor(1048576*t1)". */

enum sw_place_kind sw_place_of(const struct sw_storage *s)
{
  return s->place ? s->place->kind : SW_PLACE_HBM;
}

const struct sw_layout *sw_emit_layout(struct sw_arena *a, const struct sw_storage *s)
{
  enum sw_format f = sw_format_of(s->dtype);
  if (s->layout || s->kind != SW_STORAGE_SCALAR || f == SW_N_FORMATS)
    return s->layout;
  struct sw_layout *l = SW_NEW(a, struct sw_layout);
  *l = (struct sw_layout){
      .rank = 2, .device_size = {1, sw_format_eps(f)}, .stride_map = {-1, -1}, .format = f, .arrangement = SW_EA_STANDARD};
  return l;
}

/* -- arguments -- */

struct numbering {
  struct sw_map of; /* storage -> argument */
  struct sw_kernel_specs *out;
};

static void number(struct sw_job *job, struct numbering *n, const struct sw_program *p, int storage)
{
  if (sw_place_of(&p->storages.v[storage]) != SW_PLACE_HBM || sw_map_get(&n->of, &storage, sizeof storage) >= 0)
    return;
  sw_map_set(&n->of, &storage, sizeof storage, n->out->args.n);
  *SW_PUSH(job->arena, &n->out->args) = storage;
}

/* Buffers that are read before the kernel writes them, in order of first read; then those it writes, in order of first
 * write. */
static void number_args(struct sw_job *job, struct numbering *n, const struct sw_program *p, const struct sw_kernel *k)
{
  struct sw_map written = {.arena = n->of.arena};
  for (int i = 0; i < k->ops.n; i++) {
    const struct sw_op *op = &p->ops.v[k->ops.v[i]];
    for (int j = 0; j < op->n_in; j++)
      if (sw_map_get(&written, &op->in[j].storage, sizeof op->in[j].storage) < 0)
        number(job, n, p, op->in[j].storage);
    sw_map_set(&written, &op->out.storage, sizeof op->out.storage, 1);
  }
  for (int i = 0; i < k->ops.n; i++)
    number(job, n, p, p->ops.v[k->ops.v[i]].out.storage);
}

/* -- one op -- */

struct op_spec {
  struct sw_job *job;
  const struct sw_program *p;
  const struct sw_op *op;
  const struct numbering *numbers;
  struct sw_normal_input t[SW_MAX_INPUTS + 1];
  const struct sw_access *access[SW_MAX_INPUTS + 1];
  const char *row_number[SW_MAX_INPUTS + 1]; /* name of the index tensor that a tensor is read through */
  int storage[SW_MAX_INPUTS + 1];
  int n;
  int order[SW_MAX_LOOPS]; /* loops as the spec lists them; the number of a symbol is its place in here */
};

static const struct sw_access *access_of(const struct sw_op *op, int i)
{
  return i < op->n_in ? &op->in[i] : &op->out;
}

static bool has_row_number(const struct sw_normal_input *t)
{
  for (int j = 0; j < t->layout->rank; j++)
    if (t->coord[j].index)
      return true;
  return false;
}

/* The name by which a coordinate refers to an index tensor; inputs have the names that the reference gives them. */
static const char *index_name(const struct op_spec *s, int storage)
{
  int input = s->p->storages.v[storage].input;
  return input >= 0 ? sw_arena_printf(s->job->arena, "arg%d_1", input)
                    : sw_arena_printf(s->job->arena, "buf%d", storage);
}

static enum sw_rc add_tensor(struct op_spec *s, int i)
{
  const struct sw_access *x = access_of(s->op, i);
  const struct sw_storage *storage = &s->p->storages.v[x->storage];
  struct sw_normal_input *t = &s->t[s->n];
  struct sw_fault *f = NULL;
  t->layout = sw_emit_layout(s->job->arena, storage);
  if (!t->layout)
    f = sw_fault(s->job, SW_INTERNAL, "%s has no layout", storage->name);
  else if (storage->kind != SW_STORAGE_SCALAR && !sw_layout_coords(t->layout, s->op, x, t->coord))
    f = sw_fault(s->job, SW_UNSUPPORTED, "%s: the access has no form in the layout %s", storage->name,
                 sw_layout_text(s->job->arena, t->layout));
  if (f) {
    f->node = s->op->name;
    f->tensor = storage->name;
    f->source = s->op->source;
    f->advice = "copy the tensor (contiguous, clone) before this op";
    return f->rc;
  }
  if (x->index_input >= 0)
    s->row_number[s->n] = index_name(s, access_of(s->op, x->index_input)->storage);
  s->access[s->n] = x;
  s->storage[s->n++] = x->storage;
  return SW_OK;
}

/* Whether operand i holds row numbers for another one; *used: whether anybody needs them (a table of one row does
 * not). */
static bool is_index(const struct op_spec *s, int i, bool *used)
{
  bool found = false;
  *used = false;
  for (int j = 0; j <= s->op->n_in; j++)
    if (access_of(s->op, j)->index_input == i) {
      found = true;
      *used = *used || access_of(s->op, j)->index_range > 1;
    }
  return found;
}

/* Index tensors, inputs, output. */
static enum sw_rc collect(struct op_spec *s)
{
  for (int pass = 0; pass < 2; pass++)
    for (int i = 0; i <= s->op->n_in; i++) {
      bool used, index = is_index(s, i, &used);
      if (index != (pass == 0) || (index && !used))
        continue;
      s->t[s->n].is_index = index;
      SW_TRY(add_tensor(s, i));
    }
  return SW_OK;
}

static int stick_loop(const struct sw_normal_input *t)
{
  const struct sw_coord *c = &t->coord[t->layout->rank - 1];
  return c->n ? c->term[0].loop : -1;
}

/* A copy between different stick dims is a restickify, every other copy an identity (superdsc.md 2.7). A source with
 * one value a stick is read along the stick of the result like any broadcast operand. */
static const char *op_name(const struct op_spec *s)
{
  if (s->op->op != SW_OP_IDENTITY && s->op->op != SW_OP_RESTICKIFY)
    return sw_device_op_name(s->op->op);
  const struct sw_normal_input *from = &s->t[s->n - 2], *to = &s->t[s->n - 1];
  bool gathers = has_row_number(from) || has_row_number(to);
  bool moves = !gathers && stick_loop(from) >= 0 && stick_loop(from) != stick_loop(to);
  return sw_device_op_name(moves ? SW_OP_RESTICKIFY : SW_OP_IDENTITY);
}

static enum sw_rc check_write(const struct op_spec *s)
{
  const struct sw_normal_input *t = &s->t[s->n - 1];
  const struct sw_storage *storage = &s->p->storages.v[s->storage[s->n - 1]];
  struct sw_written_part part;
  if (!sw_write_ends_inside(s->op, t->layout, t->coord, storage, &part))
    return SW_OK;
  struct sw_fault *f = sw_fault(s->job, SW_UNSUPPORTED,
                                "%s: elements %" PRId64 "..%" PRId64 " of %" PRId64
                                " are written, but sticks of %d are written whole",
                                storage->name, part.first, part.end - 1, part.size, sw_format_eps(t->layout->format));
  f->node = s->op->name;
  f->tensor = storage->name;
  f->source = s->op->source;
  f->advice = "end the slice at a multiple of the stick, or put the stick on another dim";
  return SW_UNSUPPORTED;
}

/* The symbol that counts the turns of a level around an op, as the reference names it. It stands in expressions, so it
 * has letters and digits only. */
static const char *turn_symbol(struct sw_arena *a, const struct sw_op *op, int level)
{
  char *name = sw_arena_printf(a, "_tile_adv_%s_lvl%d", op->name, level);
  for (char *c = name; *c; c++)
    if (!isalnum((unsigned char)*c))
      *c = '_';
  return name;
}

static enum sw_rc add_advance(const struct op_spec *s, int i, const struct sw_access *x, struct sw_spec_arg *a)
{
  struct sw_arena *arena = s->job->arena;
  struct sw_buf text = {.arena = arena};
  int64_t advance[SW_MAX_LEVELS];
  if (s->p->storages.v[s->storage[i]].kind == SW_STORAGE_SCALAR)
    return SW_OK;
  if (!sw_access_advance(s->t[i].layout, s->op, x, advance)) {
    struct sw_fault *f = sw_fault(s->job, SW_UNSUPPORTED, "%s: the tiles of a loop are not equally far apart in memory",
                                  s->p->storages.v[s->storage[i]].name);
    f->node = s->op->name;
    f->tensor = s->p->storages.v[s->storage[i]].name;
    f->source = s->op->source;
    f->advice = "tile another dim, or in whole sticks";
    return SW_UNSUPPORTED;
  }
  for (int l = 0; l < s->op->n_levels; l++)
    if (advance[l])
      sw_buf_printf(&text, "%sfloor(%" PRId64 "*%s)", text.n ? " + " : "", advance[l], turn_symbol(arena, s->op, l));
  a->tile_advance = text.n ? sw_buf_text(&text) : NULL;
  return SW_OK;
}

/* Levels are listed innermost first. One that cuts nothing of the op has no symbol. */
static void add_levels(const struct op_spec *s, struct sw_spec *spec)
{
  struct sw_arena *arena = s->job->arena;
  int n = s->op->n_levels;
  spec->tile_levels = SW_NEW_N(arena, struct sw_tile_level, n);
  spec->n_tile_levels = n;
  for (int l = 0; l < n; l++) {
    const struct sw_level *level = &s->op->level[l];
    if (level->cut == SW_UNCUT)
      continue;
    struct sw_tile_level *at = &spec->tile_levels[n - 1 - l];
    at->symbols = SW_NEW(arena, const char *);
    at->symbols[at->n++] = turn_symbol(arena, s->op, l);
    *SW_PUSH(arena, &spec->tile_trip_counts) = (struct sw_named_number){at->symbols[0], (double)level->count};
  }
}

static void allocate(const struct op_spec *s, int i, struct sw_spec_arg *a)
{
  int storage = s->storage[i];
  const struct sw_place *place = s->p->storages.v[storage].place;
  enum sw_place_kind kind = sw_place_of(&s->p->storages.v[storage]);
  a->is_input = i < s->n - 1;
  a->format = s->t[i].layout->format;
  a->arrangement = s->t[i].layout->arrangement;
  a->storage = s->p->storages.v[storage].name;
  a->name = s->t[i].is_index ? index_name(s, storage) : NULL;
  a->alloc = kind == SW_PLACE_HBM ? SW_ALLOC_HBM : kind == SW_PLACE_POOL ? SW_ALLOC_POOL : SW_ALLOC_LX;
  a->arg_index = kind == SW_PLACE_HBM ? (int)sw_map_get(&s->numbers->of, &storage, sizeof storage) : -1;
  a->address = kind == SW_PLACE_HBM ? a->arg_index : place->offset;
}

static enum sw_rc normalise(struct op_spec *s, struct sw_spec *spec)
{
  struct sw_arena *a = s->job->arena;
  struct sw_normal normal;
  bool in_lx = false;
  for (int i = 0; i < s->n; i++)
    in_lx = in_lx || sw_place_of(&s->p->storages.v[s->storage[i]]) == SW_PLACE_LX;
  if (s->op->plan->order)
    memcpy(s->order, s->op->plan->order, sizeof s->order);
  else
    sw_loop_order(s->op, s->op->plan->split, in_lx, s->order);
  if (!sw_normal_form(a, s->op, s->op->plan->split, s->order, s->t, s->n, &normal)) {
    const char *name = s->p->storages.v[s->storage[normal.culprit]].name;
    struct sw_fault *f = sw_fault(s->job, SW_UNSUPPORTED, "%s: %s", name, normal.why);
    f->node = s->op->name;
    f->tensor = name;
    f->source = s->op->source;
    f->advice = normal.advice;
    return SW_UNSUPPORTED;
  }
  for (int i = 0; i < normal.space.n; i++) {
    const struct sw_normal_symbol *x = &normal.space.v[i];
    *SW_PUSH(a, &spec->space) = (struct sw_spec_symbol){
        .name = sw_arena_printf(a, "%c%d", x->is_new ? 'z' : 'c', x->number), .range = x->range, .split = x->split};
    if (!x->is_new && s->order[x->number] == s->op->plan->dynamic_loop - 1) {
      struct sw_spec_symbol *dynamic = &spec->space.v[i];
      dynamic->dynamic = s->p->graph->dims.v[s->p->storages.v[s->op->out.storage].dynamic - 1].range.symbol;
      dynamic->granularity = s->op->plan->granularity;
    }
  }
  for (int i = 0; i < s->n; i++) {
    struct sw_spec_arg *x = &spec->args.v[i];
    const struct sw_normal_tensor *t = &normal.tensor[i];
    x->rank = t->rank;
    memcpy(x->device_size, t->size, sizeof t->size);
    memcpy(x->coord, t->coord, sizeof t->coord);
    for (int j = 0; j < t->rank; j++)
      if (t->coord[j].form == SW_COORD_INDIRECT)
        x->coord[j].name = s->row_number[i];
  }
  return SW_OK;
}

/* The slices of a relayout by symbol. A loop that is cut into parts has no symbol of its own. */
static const struct sw_work_division *division_of(const struct op_spec *s, const struct sw_spec *spec,
                                                  const struct sw_owners *owners)
{
  struct sw_arena *a = s->job->arena;
  struct sw_work_division *w = SW_NEW(a, struct sw_work_division);
  for (int k = 0; k < owners->n; k++) {
    int place = 0;
    while (s->order[place] != owners->cut[k].loop)
      place++;
    const char *symbol = sw_arena_printf(a, "c%d", place);
    for (int i = 0; i < spec->space.n; i++)
      if (!strcmp(spec->space.v[i].name, symbol))
        *SW_PUSH(a, &w->slices) = (struct sw_work_slice){symbol, owners->cut[k].n, owners->cut[k].below};
  }
  return w;
}

static enum sw_rc make_spec(struct op_spec *s, struct sw_spec **out)
{
  const struct sw_op *op = s->op;
  struct sw_spec *spec = SW_NEW(s->job->arena, struct sw_spec);
  SW_TRY(collect(s));
  spec->origin = op->name;
  spec->source = op->source;
  spec->debug_handle = sw_debug_handle(s->job, s->p, op);
  spec->op = op_name(s);
  spec->is_reduction = sw_device_op_is_reduction(op->op);
  spec->constants.v = op->constants.v;
  spec->constants.n = spec->constants.cap = op->constants.n;
  if (op->conv.n) {
    struct sw_fault *f = sw_fault(s->job, SW_UNSUPPORTED, "%s: windows that overlap have no op spec yet", op->name);
    f->node = op->name;
    f->source = op->source;
    f->advice = "use im2col on the host and a matmul";
    return SW_UNSUPPORTED;
  }
  SW_TRY(check_write(s));
  for (int i = 0; i < s->n; i++)
    allocate(s, i, SW_PUSH(s->job->arena, &spec->args));
  for (int i = 0; op->n_levels && i < s->n; i++)
    SW_TRY(add_advance(s, i, s->access[i], &spec->args.v[i]));
  if (op->n_levels)
    add_levels(s, spec);
  *out = spec;
  SW_TRY(normalise(s, spec));
  if (op->plan->relayout) {
    spec->args.v[0].work_division = division_of(s, spec, &op->plan->relayout->from);
    spec->args.v[1].work_division = division_of(s, spec, &op->plan->relayout->to);
  }
  return SW_OK;
}

/* Loops that are open while specs are listed. */
struct nest {
  struct sw_opspecs *specs;
  struct sw_spec *open[SW_MAX_LEVELS];
  int number[SW_MAX_LEVELS], n;
};

static void add_spec(struct sw_arena *a, struct nest *nest, const struct sw_op *op, struct sw_spec *spec)
{
  int same = 0;
  while (same < nest->n && same < op->n_levels && nest->number[same] == op->level[same].loop)
    same++;
  for (nest->n = same; nest->n < op->n_levels; nest->n++) {
    struct sw_spec *loop = SW_NEW(a, struct sw_spec);
    loop->is_loop = true;
    loop->count = op->level[nest->n].count;
    if (nest->n)
      *SW_PUSH(a, &nest->open[nest->n - 1]->body) = loop;
    else
      *SW_PUSH(a, &nest->specs->specs) = loop;
    nest->open[nest->n] = loop;
    nest->number[nest->n] = op->level[nest->n].loop;
  }
  if (nest->n)
    *SW_PUSH(a, &nest->open[nest->n - 1]->body) = spec;
  else
    *SW_PUSH(a, &nest->specs->specs) = spec;
}

enum sw_rc sw_kernel_specs(struct sw_job *job, const struct sw_program *p, const struct sw_plan *plan, int kernel,
                           struct sw_kernel_specs *out)
{
  const struct sw_kernel *k = &plan->kernels.v[kernel];
  struct sw_arena *scratch = sw_arena_new(job->arena, 0);
  struct numbering numbers = {.of = {.arena = scratch}, .out = out};
  enum sw_rc worst = SW_OK;
  out->specs = (struct sw_opspecs){.name = k->name, .pool_bytes = k->pool_bytes, .k_fast = true};
  number_args(job, &numbers, p, k);
  struct nest nest = {.specs = &out->specs};
  for (int i = 0; i < k->ops.n; i++) {
    struct op_spec s = {.job = job, .p = p, .op = &p->ops.v[k->ops.v[i]], .numbers = &numbers};
    struct sw_spec *spec = NULL;
    enum sw_rc rc = make_spec(&s, &spec);
    worst = rc > worst ? rc : worst;
    add_spec(job->arena, &nest, s.op, spec);
  }
  sw_arena_free(scratch);
  return worst;
}
