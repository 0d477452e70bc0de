/* The solution put into the program. A conversion is a storage of its own and one op that reads all of the old storage
 * and writes all of the new one; it stands right in front of its first reader, and exactly the operands that want it
 * are redirected, by operand and not by buffer: a + a.t() reads a and one copy. Reference: layouts.md 5.5. */
#include "compiler/layout/choose.h"

#include <inttypes.h>
#include <string.h>

void sw_layout__take_names(struct sw_choosing *c)
{
  c->names = c->loaded_again = c->selections = (struct sw_map){.arena = c->arena};
  for (int i = 0; i < c->p->storages.n; i++)
    sw_map_set_str(&c->names, c->p->storages.v[i].name, 0);
  for (int i = 0; i < c->p->ops.n; i++)
    sw_map_set_str(&c->names, c->p->ops.v[i].name, 0);
}

/* The name, or the first free one of name.1, name.2, ... */
static const char *unique(struct sw_choosing *c, const char *name)
{
  const char *tried = name;
  int64_t n = sw_map_get_str(&c->names, name);
  while (sw_map_get_str(&c->names, tried) >= 0)
    tried = sw_arena_printf(c->job->arena, "%s.%lld", name, (long long)++n);
  if (n >= 0)
    sw_map_set_str(&c->names, name, n);
  sw_map_set_str(&c->names, tried, 0);
  return tried;
}

int sw_layout__add_storage(struct sw_choosing *c, const struct sw_storage *like, const char *name)
{
  struct sw_storage s = *like;
  s.name = unique(c, name);
  s.kind = SW_STORAGE_TEMPORARY;
  s.input = -1;
  s.data = NULL;
  s.n_bytes = 0;
  s.has_pad_fill = s.host_only = s.is_output = false;
  s.layout = NULL;
  *SW_PUSH(c->job->arena, &c->p->storages) = s;
  return c->p->storages.n - 1;
}

int sw_layout__add_op(struct sw_choosing *c, const struct sw_op *op, const char *name)
{
  struct sw_op o = *op;
  o.name = unique(c, name);
  *SW_PUSH(c->job->arena, &c->p->ops) = o;
  int at = c->p->ops.n - 1;
  *SW_PUSH(c->job->arena, &c->steps) = (struct sw_step){false, at};
  return at;
}

struct sw_op sw_layout__copy_of(const struct sw_storage *s)
{
  struct sw_op op = {.op = SW_OP_IDENTITY, .role = SW_ROLE_CONVERSION, .n_in = 1};
  op.in[0] = (struct sw_access){.index_input = -1};
  for (int d = 0; d < s->rank; d++) {
    if (s->size[d] == 1)
      continue;
    op.in[0].step[op.n_loops] = s->stride[d];
    op.range[op.n_loops++] = s->size[d];
  }
  op.n_written = op.n_loops;
  op.out = op.in[0];
  return op;
}

struct sw_op sw_layout__whole_copy(const struct sw_choosing *c, int from, int to)
{
  struct sw_op op = sw_layout__copy_of(&c->p->storages.v[from]);
  op.in[0].storage = from;
  op.out.storage = to;
  return op;
}

static const struct sw_layout *keep(struct sw_choosing *c, const struct sw_layout *l)
{
  return sw_arena_copy(c->job->arena, l, 1, sizeof *l);
}

/* Sends the operand, and its twins, to a copy: of the whole storage (the index stays), or of the slice. */
static void redirect(struct sw_choosing *c, int op_i, int input, int copy, const struct sw_access *slice)
{
  struct sw_op *op = &c->p->ops.v[op_i];
  for (int k = op->n_in - 1; k >= input; k--)
    if (k == input || sw_layout__twin(c, op, k) == input) {
      if (slice)
        op->in[k] = *slice;
      op->in[k].storage = copy;
    }
}

/* Puts a conversion op into the program and lists it, without its reason; gives its number in the choice. Counted are the elements of the
 * layout that it reads, and of a slice those that it makes: only that part is read. */
static int add_conversion(struct sw_choosing *c, struct sw_op *op, int storage, const struct sw_storage *shape,
                          const struct sw_layout *to, const char *suffix, int reader)
{
  const char *name = c->p->storages.v[storage].name;
  int copy = sw_layout__add_storage(c, shape, sw_arena_printf(c->job->arena, "%s:%s", name, suffix));
  c->p->storages.v[copy].layout = keep(c, to);
  op->out.storage = copy;
  op->source = c->p->ops.v[reader].source;
  struct sw_conversion *x = SW_PUSH(c->job->arena, &c->choice->conversions);
  x->storage = storage;
  x->copy = copy;
  x->elements = sw_layout_elements(sw_layout__is_slice(&c->p->storages.v[storage], op) ? to : c->p->storages.v[storage].layout);
  x->op = sw_layout__add_op(
      c, op, sw_arena_printf(c->job->arena, "%s %s",
                         op->op == SW_OP_RESTICKIFY ? "restickify" : op->op == SW_OP_IDENTITY ? "relayout" : "select", name));
  c->choice->conversion_elements += x->elements;
  *SW_PUSH(c->job->arena, &x->readers) = reader;
  return c->choice->conversions.n - 1;
}

static int convert_whole(struct sw_choosing *c, int storage, const struct sw_outcome *o, int reader)
{
  struct sw_storage s = c->p->storages.v[storage];
  struct sw_layout to;
  if (!sw_layout__converted(&s, s.layout, o->dim, o->front, &to)) {
    sw_fault(c->job, SW_INTERNAL, "the conversion of %s can't be built", s.name);
    return -1;
  }
  struct sw_op op = sw_layout__whole_copy(c, storage, storage);
  bool moves = s.size[o->dim] > 1 && o->dim != sw_layout__stick_dim(&s, s.layout);
  op.op = moves ? SW_OP_RESTICKIFY : SW_OP_IDENTITY;
  int at = add_conversion(c, &op, storage, &s, &to, sw_arena_printf(c->job->arena, "stick%d", o->dim), reader);
  if (s.kind != SW_STORAGE_TEMPORARY && !c->written[storage]) {
    struct sw_conversion *x = &c->choice->conversions.v[at];
    x->advice = sw_arena_printf(c->job->arena, "load %s as %s: that saves these %" PRId64 " elements on every run", s.name,
                                sw_layout_text(c->job->arena, &to), x->elements);
  }
  return at;
}

static int no_slice(struct sw_choosing *c, int op_i)
{
  sw_fault(c->job, SW_INTERNAL, "a copy of what %s reads can't be built", c->p->ops.v[op_i].name);
  return -1;
}

/* The loaded tensor once more, in another layout; once for each layout. */
static int load_again(struct sw_choosing *c, int storage, int candidate)
{
  int key[] = {storage, candidate};
  int at = (int)sw_map_get(&c->loaded_again, key, sizeof key);
  if (at >= 0)
    return at;
  struct sw_storage s = c->p->storages.v[storage];
  at = sw_layout__add_storage(c, &s, sw_arena_printf(c->job->arena, "%s:again", s.name));
  s.name = c->p->storages.v[at].name;
  s.is_output = false;
  if (s.kind == SW_STORAGE_INPUT)
    sw_warn(c->job, "input %s is laid out a second time by the loader, as %s", c->p->storages.v[storage].name,
            sw_layout_text(c->job->arena, &sw_layout__reloads(c, storage)->v[candidate]));
  s.layout = keep(c, &sw_layout__reloads(c, storage)->v[candidate]);
  c->p->storages.v[at] = s;
  sw_map_set(&c->loaded_again, key, sizeof key, at);
  return at;
}
/* A product reads more than what is converted. */
static void count_elements(struct sw_choosing *c, int conversion, int64_t elements)
{
  struct sw_conversion *x = &c->choice->conversions.v[conversion];
  c->choice->conversion_elements += elements - x->elements;
  x->elements = elements;
}

/* By a matrix of zeros and ones: one op or two. Counted as sw_layout__select_cost does. */
static int select_lanes(struct sw_choosing *c, int op_i, int input, const struct sw_outcome *o, int whole)
{
  const struct sw_op *op = &c->p->ops.v[op_i];
  int storage = op->in[input].storage, from = whole < 0 ? storage : c->choice->conversions.v[whole].copy;
  struct sw_select x;
  if (!sw_layout__select(c, op, input, o->select - 2, o->alone, c->p->storages.v[from].layout, &x))
    return no_slice(c, op_i);
  if (!o->alone && storage < c->n_storages && c->infinite[storage] == SW_MAYBE_INFINITE)
    sw_layout__warn_of_product(c, op, &c->p->storages.v[storage]);
  x.first.in[o->alone].storage = from;
  x.first.in[!o->alone].storage = sw_layout__selection_matrix(c, &x);
  if (o->alone)
    x.first.in[2].storage = sw_layout__number(c, 0, x.made.dtype);
  int at = add_conversion(c, &x.first, from, x.sums ? &x.made : &x.copy, x.sums ? &x.middle : &x.to, "selected", op_i);
  count_elements(c, at, sw_layout_elements(c->p->storages.v[from].layout) + sw_layout_elements(&x.rows));
  if (x.sums) {
    x.second.in[0].storage = c->choice->conversions.v[at].copy;
    at = add_conversion(c, &x.second, x.second.in[0].storage, &x.copy, &x.to, "summed", op_i);
    count_elements(c, at, sw_layout_elements(&x.middle));
  }
  redirect(c, op_i, input, c->choice->conversions.v[at].copy, &x.read);
  return at;
}

/* The copies that an outcome CONVERT asks for, one behind the other; the operand is sent to the last. */
static int make_copies(struct sw_choosing *c, int op_i, int input, const struct sw_outcome *o)
{
  int storage = c->p->ops.v[op_i].in[input].storage, at = -1;
  if (o->dim >= 0 && (at = convert_whole(c, storage, o, op_i)) < 0)
    return -1;
  if (o->select)
    return select_lanes(c, op_i, input, o, at);
  if (!o->slice) {
    redirect(c, op_i, input, c->choice->conversions.v[at].copy, NULL);
    return at;
  }
  struct sw_slice slice;
  struct sw_slice_plan plan;
  if (!sw_layout__slice(c, &c->p->ops.v[op_i], input, o->slice - 1, &slice))
    return no_slice(c, op_i);
  if (at >= 0)
    slice.op.in[0].storage = c->choice->conversions.v[at].copy;
  if (!sw_layout__plan_slice(c, &slice, c->p->storages.v[slice.op.in[0].storage].layout, &plan))
    return no_slice(c, op_i);
  if (!plan.at_once) {
    at = add_conversion(c, &slice.op, slice.op.in[0].storage, &slice.shape, &plan.middle, "slice", op_i);
    slice.op = sw_layout__whole_copy(c, c->choice->conversions.v[at].copy, c->choice->conversions.v[at].copy);
  }
  slice.op.op = SW_OP_RESTICKIFY;
  at = add_conversion(c, &slice.op, slice.op.in[0].storage, &slice.shape, &plan.last, plan.at_once ? "slice" : "stick", op_i);
  redirect(c, op_i, input, c->choice->conversions.v[at].copy, &slice.read);
  return at;
}

/* All copies on the way of one operand have one reason: why it can't be read as it is. */
static int convert(struct sw_choosing *c, int op_i, int input, const struct sw_outcome *o)
{
  const struct sw_op *op = &c->p->ops.v[op_i];
  const struct sw_storage *from = &c->p->storages.v[op->in[input].storage], *to = &c->p->storages.v[op->out.storage];
  const char *why = sw_arena_printf(c->job->arena, "%s reads %s: %s", op->name, from->name,
                                    sw_layout__why(c, op, input, from->layout, to->layout, o));
  int first = c->choice->conversions.n, last = make_copies(c, op_i, input, o), n = c->choice->conversions.n - first;
  for (int i = 0; i < n; i++)
    c->choice->conversions.v[first + i].reason =
        n == 1 ? why : sw_arena_printf(c->job->arena, "%s (copy %d of %d on the way)", why, i + 1, n);
  return last;
}

/* A copy whose sticks differ is the op that moves sticks. In profile best it counts, so it is listed too: the smaller
 * side, as the choice was made by. */
static void rename_move(struct sw_choosing *c, int op_i)
{
  struct sw_op *op = &c->p->ops.v[op_i];
  op->op = SW_OP_RESTICKIFY;
  if (!c->best)
    return;
  const struct sw_layout *from = c->p->storages.v[op->in[0].storage].layout;
  const struct sw_layout *to = c->p->storages.v[op->out.storage].layout;
  int64_t read = sw_layout_elements(from), written = sw_layout_elements(to);
  struct sw_conversion *x = SW_PUSH(c->job->arena, &c->choice->conversions);
  x->storage = op->in[0].storage;
  x->copy = op->out.storage;
  x->elements = read < written ? read : written;
  x->op = op_i;
  x->reason = sw_arena_printf(c->job->arena, "%s copies %s and moves the stick on its way", op->name,
                              c->p->storages.v[x->storage].name);
  c->choice->conversion_elements += x->elements;
}

static bool same_stick_loops(const struct sw_choosing *c, const struct sw_op *op)
{
  const struct sw_layout *from = c->p->storages.v[op->in[0].storage].layout;
  const struct sw_layout *to = c->p->storages.v[op->out.storage].layout;
  struct sw_seen a = sw_layout__see(from, op, &op->in[0], SW_OFFSET_EXACT);
  struct sw_seen b = sw_layout__see(to, op, &op->out, SW_OFFSET_EXACT);
  return a.stick.loop < 0 || b.stick.loop < 0 || a.stick.loop == b.stick.loop;
}

static void serve(struct sw_choosing *c, struct sw_problem *q, const struct sw_read *read)
{
  const struct sw_op *op = &c->p->ops.v[read->op];
  int r = op->out.storage, to_label = q->labels[q->variable[r]];
  if (read->group < 0) { /* reads what it writes */
    const struct sw_layout *l = &c->candidates[r].v[to_label];
    struct sw_seen seen = sw_layout__see(l, op, &op->in[read->input], c->rule);
    struct sw_seen out = sw_layout__see(l, op, &op->out, c->rule);
    struct sw_outcome o = sw_layout__outcome(c, op, read->input, l, &seen, l, &out);
    if (o.kind == SW_CONVERT)
      convert(c, read->op, read->input, &o);
    return;
  }
  struct sw_group *g = &q->groups.v[read->group];
  int want = g->readings.v[read->reading].wants[to_label];
  if (want < 0)
    return;
  struct sw_class *t = &g->classes.v[want];
  const struct sw_outcome *o = &t->wanted[q->labels[q->variable[g->storage]]];
  if (o->kind != SW_CONVERT)
    return;
  if (o->load) {
    c->loaded_again_cost += t->loaded ? 0 : o->cost;
    t->loaded = c->o->sharing;
    redirect(c, read->op, read->input, load_again(c, g->storage, o->load - 1), NULL);
    return;
  }
  if (t->conversion < 0 || !c->o->sharing) {
    t->conversion = convert(c, read->op, read->input, o);
    return;
  }
  redirect(c, read->op, read->input, c->choice->conversions.v[t->conversion].copy, NULL);
  *SW_PUSH(c->job->arena, &c->choice->conversions.v[t->conversion].readers) = read->op;
}

static void place_layouts(struct sw_choosing *c, const struct sw_problem *q)
{
  for (int s = 0; s < c->n_storages; s++) {
    struct sw_candidates *k = &c->choice->candidates[s];
    if (!k->n)
      continue;
    k->chosen = q->variable[s] >= 0 ? q->labels[q->variable[s]] : 0;
    c->p->storages.v[s].layout = &k->v[k->chosen];
  }
}

/* The default layout for scalars and for what nothing writes. */
void sw_layout__place_default(struct sw_choosing *c, int storage)
{
  struct sw_storage *s = &c->p->storages.v[storage];
  struct sw_layout l;
  if (!s->layout && !s->host_only && sw_layout__default(c, storage, sw_format_of(s->dtype), &l))
    s->layout = keep(c, &l);
}

/* The new order becomes the program's. */
void sw_layout__take_steps(struct sw_choosing *c)
{
  c->p->steps.v = c->steps.v;
  c->p->steps.n = c->steps.n;
  c->p->steps.cap = c->steps.cap;
  c->steps.v = NULL;
  c->steps.n = c->steps.cap = 0;
}

enum sw_rc sw_layout__insert(struct sw_choosing *c, struct sw_problem *q)
{
  int next = 0;
  place_layouts(c, q);
  for (int s = 0; s < c->n_storages; s++)
    sw_layout__place_default(c, s);
  for (int i = 0; i < c->p->steps.n; i++) {
    struct sw_step step = c->p->steps.v[i];
    if (!step.is_host) {
      for (; next < q->reads.n && q->reads.v[next].op == step.index; next++)
        serve(c, q, &q->reads.v[next]);
      const struct sw_op *op = &c->p->ops.v[step.index];
      if (op->op == SW_OP_IDENTITY && op->n_in == 1 && !same_stick_loops(c, op))
        rename_move(c, step.index);
      sw_layout__prepare_gather(c, step.index);
      sw_layout__complete_pairs(c, step.index);
      sw_layout__pad_matmul(c, step.index);
      sw_layout__place_scatter(c, step.index);
    } else {
      *SW_PUSH(c->job->arena, &c->steps) = step;
    }
  }
  sw_layout__take_steps(c);
  return c->job->worst;
}
