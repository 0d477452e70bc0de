/* What stands in front of gathers and scatters, and of casts of float32, besides conversions of sticks. None of it
 * moves a stick, and none of it is in the objective. Reference: layouts.md 4.11, 4.13. */
#include "compiler/layout/choose.h"

/* Whether the access reads all of its storage in the order of its dims. */
static bool reads_all(const struct sw_storage *s, const struct sw_op *op, const struct sw_access *x)
{
  int l = 0;
  for (int d = 0; d < s->rank; d++) {
    if (s->size[d] == 1)
      continue;
    while (l < op->n_loops && !x->step[l])
      l++;
    if (l == op->n_loops || x->step[l] != s->stride[d] || op->range[l] != s->size[d])
      return false;
    l++;
  }
  return !x->offset;
}

/* Row numbers come from a tensor of their own: a row of a larger one is copied out first. They are read in whole
 * sticks, so lanes without an element must hold the number of some row, too. */
static void copy_row_numbers(struct sw_choosing *c, int op_i, int input)
{
  const struct sw_op *op = &c->p->ops.v[op_i];
  const struct sw_access *x = &op->in[input];
  struct sw_storage *s = &c->p->storages.v[x->storage];
  struct sw_storage shape = {.dtype = s->dtype};
  if (s->kind != SW_STORAGE_TEMPORARY && s->kind != SW_STORAGE_SCALAR && !s->has_pad_fill) {
    s->has_pad_fill = true;
    s->pad_fill = 0;
  }
  struct sw_op copy = {.op = SW_OP_IDENTITY, .role = SW_ROLE_PADDING, .n_in = 1, .source = op->source};
  struct sw_access reads = {.index_input = -1};
  if (s->kind == SW_STORAGE_SCALAR || reads_all(s, op, x))
    return;
  copy.in[0] = (struct sw_access){.storage = x->storage, .offset = x->offset, .index_input = -1};
  copy.out = (struct sw_access){.index_input = -1};
  int64_t step = 1;
  for (int l = op->n_loops - 1; l >= 0; l--)
    if (x->step[l]) {
      reads.step[l] = step;
      step *= op->range[l];
    }
  for (int l = 0; l < op->n_loops; l++)
    if (x->step[l]) {
      int d = copy.n_loops++;
      copy.range[d] = shape.size[d] = op->range[l];
      copy.in[0].step[d] = x->step[l];
      copy.out.step[d] = shape.stride[d] = reads.step[l];
    }
  copy.n_written = shape.rank = copy.n_loops;
  struct sw_seen seen = sw_layout__see(s->layout, &copy, &copy.in[0], SW_OFFSET_EXACT);
  if (!seen.formed || seen.stick.class > SW_STICK_LOOP)
    return; /* what writes the kernel says so */
  const char *name = s->name;
  int at = sw_layout__add_storage(c, &shape, sw_arena_printf(c->job->arena, "%s:rows", name));
  sw_layout__place_default(c, at);
  copy.out.storage = reads.storage = at;
  int added_i = sw_layout__add_op(c, &copy, sw_arena_printf(c->job->arena, "row numbers %s", name));
  const struct sw_op *added = &c->p->ops.v[added_i];
  const struct sw_layout *from = c->p->storages.v[added->in[0].storage].layout, *to = c->p->storages.v[at].layout;
  struct sw_seen out = sw_layout__see(to, added, &added->out, SW_OFFSET_EXACT);
  struct sw_outcome o = sw_layout__outcome(c, added, 0, from, &seen, to, &out);
  c->p->ops.v[op_i].in[input] = reads;
  if (o.kind == SW_FREE)
    return;
  struct sw_fault *f = sw_fault(c->job, SW_UNSUPPORTED, "row numbers %s can't be copied into sticks of their own: %s", name,
                                sw_layout__why(c, added, 0, from, to, &o));
  f->tensor = name;
  f->source = added->source;
  f->advice = "make the row numbers contiguous before the program, as an input of their own";
}

/* A copy of what the access looks rows up in, or writes rows of, with the dim that is indexed first on the device; -1:
 * it is first. */
static int rows_first(struct sw_choosing *c, int op_i, const struct sw_access *x)
{
  const struct sw_op *op = &c->p->ops.v[op_i];
  int storage = x->storage, at = -1;
  struct sw_storage s = c->p->storages.v[storage];
  struct sw_seen seen = sw_layout__see(s.layout, op, x, SW_OFFSET_EXACT);
  for (int j = 0; seen.formed && j < s.layout->rank; j++)
    if (seen.coord[j].index)
      at = j;
  struct sw_layout front;
  if (at <= 0 || !sw_layout__converted(&s, s.layout, sw_layout__stick_dim(&s, s.layout), at, &front))
    return -1;
  int copy = sw_layout__add_storage(c, &s, sw_arena_printf(c->job->arena, "%s:rows", s.name));
  c->p->storages.v[copy].layout = sw_arena_copy(c->job->arena, &front, 1, sizeof front);
  struct sw_op move = sw_layout__whole_copy(c, storage, copy);
  move.source = op->source;
  sw_layout__add_op(c, &move, sw_arena_printf(c->job->arena, "relayout %s", s.name));
  return copy;
}

void sw_layout__place_scatter(struct sw_choosing *c, int op_i)
{
  const struct sw_op *op = &c->p->ops.v[op_i];
  int target = op->out.storage, copy = op->out.index_input < 0 || c->best ? -1 : rows_first(c, op_i, &op->out);
  *SW_PUSH(c->job->arena, &c->steps) = (struct sw_step){false, op_i};
  if (copy < 0)
    return;
  c->p->ops.v[op_i].out.storage = copy;
  struct sw_op back = sw_layout__whole_copy(c, copy, target);
  back.role = SW_ROLE_WRITE;
  back.source = c->p->ops.v[op_i].source;
  sw_layout__add_op(c, &back, sw_arena_printf(c->job->arena, "copy back %s", c->p->storages.v[target].name));
}

/* A float32 tensor of one element a stick that a cast made has half a pair of sticks for every element, as its outermost
 * dim, and that is where row numbers count. */
static void refuse_half_pairs(struct sw_choosing *c, const struct sw_op *op, const struct sw_access *x)
{
  const struct sw_storage *s = &c->p->storages.v[x->storage];
  struct sw_seen seen = sw_layout__see(s->layout, op, x, SW_OFFSET_EXACT);
  if (sw_layout_half_pair(s->layout) != 0 || !seen.formed || seen.coord[0].index)
    return;
  struct sw_fault *f = sw_fault(c->job, SW_UNSUPPORTED, "rows of one float32 element each can't be taken from %s, which a cast "
                                "makes: its sticks are in pairs, outside the dim that row numbers count", s->name);
  f->node = op->name;
  f->source = op->source;
  f->tensor = s->name;
  f->advice = "take the rows first and cast them then";
}

void sw_layout__prepare_gather(struct sw_choosing *c, int op_i)
{
  for (int k = 0; k < c->p->ops.v[op_i].n_in; k++)
    if (c->p->ops.v[op_i].in[k].index_input >= 0) {
      copy_row_numbers(c, op_i, c->p->ops.v[op_i].in[k].index_input);
      if (c->best)
        refuse_half_pairs(c, &c->p->ops.v[op_i], &c->p->ops.v[op_i].in[k]);
      int copy = c->best ? -1 : rows_first(c, op_i, &c->p->ops.v[op_i].in[k]);
      if (copy >= 0)
        c->p->ops.v[op_i].in[k].storage = copy;
    }
  if (c->p->ops.v[op_i].out.index_input >= 0)
    copy_row_numbers(c, op_i, c->p->ops.v[op_i].out.index_input);
}

/* The layout of a float32 storage with its tiles in pairs, NULL: it has pairs, or (torch-spyre) can't. */
static const struct sw_layout *paired(struct sw_choosing *c, int storage)
{
  const struct sw_storage *s = &c->p->storages.v[storage];
  struct sw_layout l = *s->layout;
  int d = sw_layout__stick_dim(s, &l);
  if (!c->best && (d < 0 || s->size[d] <= 32))
    return NULL;
  if (!sw_layout_pair_tiles(&l, d < 0 ? -1 : s->stride[d], d < 0 ? 1 : s->size[d]) || sw_layout_equal(&l, s->layout))
    return NULL;
  return sw_arena_copy(c->job->arena, &l, 1, sizeof l);
}

/* A float16 stick is made of two float32 sticks. [4,96] in 3 float32 tiles lacks the last: what ops make gets one more,
 * anything else is copied into 4. */
void sw_layout__complete_pairs(struct sw_choosing *c, int op_i)
{
  const struct sw_op *op = &c->p->ops.v[op_i];
  bool down = op->op == SW_OP_FP32TODL16;
  if (!down && op->op != SW_OP_DL16TOFP32)
    return;
  int storage = down ? op->in[0].storage : op->out.storage;
  const struct sw_storage s = c->p->storages.v[storage];
  const struct sw_layout *pairs = paired(c, storage);
  if (!pairs)
    return;
  bool pinned = storage < c->n_storages && c->pinned[storage];
  if (c->best && s.kind == SW_STORAGE_TEMPORARY && !pinned) {
    c->p->storages.v[storage].layout = pairs;
    return;
  }
  if (!down)
    return; /* what writes the kernel says so */
  int copy = sw_layout__add_storage(c, &s, sw_arena_printf(c->job->arena, "%s:pairs", s.name));
  c->p->storages.v[copy].layout = pairs;
  struct sw_op move = sw_layout__whole_copy(c, storage, copy);
  move.role = SW_ROLE_PADDING;
  move.source = op->source;
  sw_layout__add_op(c, &move, sw_arena_printf(c->job->arena, "pairs of %s", s.name));
  c->p->ops.v[op_i].in[0].storage = copy;
}
