/* Candidates of pointwise ops: of one argument, casts between formats, and of several. Reference: layouts.md 4.3, 4.4,
 * 4.11. */
#include "compiler/layout/candidates.h"

static bool on_loop(const struct sw_coord *c, int loop)
{
  for (int t = 0; t < c->n; t++)
    if (c->term[t].loop == loop)
      return true;
  return false;
}

/* -- pointwise with one argument (4.3) and conversions of the format (4.11) -- */

static enum sw_arrangement converted_arrangement(enum sw_device_op op, const struct sw_layout *l)
{
  enum sw_arrangement a = l->arrangement;
  bool one_lane = l->stride_map[l->rank - 1] == -1;
  switch (op) {
  case SW_OP_DL16TOFP32:
    return a == SW_EA_STANDARD && !one_lane ? SW_EA_DL16_TO_FP32 : SW_EA_STANDARD;
  case SW_OP_FP32TODL16:
    return a == SW_EA_STANDARD && !one_lane ? SW_EA_FP32_TO_DL16 : SW_EA_STANDARD;
  case SW_OP_QFP8CH:
    return SW_EA_QFP8CH;
  case SW_OP_QFP8WT:
    return SW_EA_QFP8WT;
  default:
    return SW_EA_STANDARD;
  }
}

/* Tiles of a row of the output that has as many lanes as in tiles of `in_eps`. */
static int64_t tiles_for(const struct cand_op *m, int64_t tiles, int in_eps)
{
  return (tiles * in_eps - 1) / m->eps + 1;
}

/* Device dim j becomes the tiles of the stick, with the footprint of the operand's. False when they would have to be half
 * a pair: only profile best has a layout for that. */
static bool set_tiles(const struct cand_op *m, int stick, int j, int64_t tiles, struct sw_layout *out)
{
  bool half = m->format == SW_FORMAT_FP32 && (m->s->size[stick] - 1) / 32 % 2 == 0;
  if (half && !m->c->best && out->arrangement == SW_EA_DL16_TO_FP32)
    return false;
  out->device_size[j] = tiles;
  out->stride_map[j] = half && m->c->best && m->s->size[stick] <= 32 && tiles == 2 ? -1 : m->s->stride[stick] * m->eps;
  return true;
}

/* A layout made from scratch with the footprint that the operand has on this stick. */
static bool make_rescaled(const struct cand_op *m, int stick, int in_eps, enum sw_arrangement ea, struct sw_layout *out)
{
  if (!cand_make(m, stick, ea, out))
    return false;
  if (sw_layout_half_pair(out) >= 0)
    return true;
  for (int j = 0; j < out->rank - 1 && stick >= 0; j++)
    if (out->stride_map[j] == m->s->stride[stick] * m->eps)
      return set_tiles(m, stick, j, tiles_for(m, (m->s->size[stick] - 1) / in_eps + 1, in_eps), out);
  return stick < 0;
}

/* The output has the footprint of its operand, lane for lane: [2,120] f16 in 2 tiles of 64 is 4 tiles of 32 in f32;
 * back it is 2. Rounded up: [4,32] f32 in 1 tile is 1 tile in f16. */
static void rescale(const struct cand_op *m, int input, const struct sw_layout *l)
{
  struct sw_seen seen = cand_seen_by(m, input, l);
  enum sw_arrangement ea = converted_arrangement(m->op->op, l);
  struct sw_layout out;
  if (!cand_clean(&seen))
    return;
  int in_eps = sw_format_eps(l->format), stick = cand_pick(m, &seen.stick), tiles = -1;
  if (!cand_same_frame(m, input)) {
    if (make_rescaled(m, stick, in_eps, ea, &out))
      sw_layout__propose(m->c, m->storage, &out);
    return;
  }
  out = *l;
  out.format = m->format;
  out.arrangement = ea;
  out.device_size[out.rank - 1] = m->eps;
  if (stick >= 0) {
    for (int j = 0; j < out.rank - 1; j++)
      if (on_loop(&seen.coord[j], seen.stick.loop) ||
          (out.device_size[j] == 1 && out.stride_map[j] == m->s->stride[stick] * in_eps))
        tiles = j;
    if (tiles < 0 || !set_tiles(m, stick, tiles, tiles_for(m, out.device_size[tiles], in_eps), &out))
      return;
  }
  sw_layout__propose(m->c, m->storage, &out);
}

/* Profile best: f16 operands can be moved first, so every stick will do, whatever they are laid out like now. */
static void offer_rescaled(const struct cand_op *m, int input)
{
  const struct sw_layout plain = {.rank = 1, .device_size = {64}, .stride_map = {1}, .format = SW_FORMAT_FP16};
  const int eps = sw_format_eps(plain.format);
  struct sw_layout out;
  if (!m->c->best || cand_layouts(m, input)->v[0].format != plain.format)
    return;
  for (int d = 0; d < m->s->rank; d++)
    if (m->s->size[d] > 1 && make_rescaled(m, d, eps, converted_arrangement(m->op->op, &plain), &out))
      sw_layout__propose(m->c, m->storage, &out);
  if (make_rescaled(m, -1, eps, SW_EA_STANDARD, &out))
    sw_layout__propose(m->c, m->storage, &out);
}

static bool rescales(const struct sw_op *op)
{
  return op->op == SW_OP_DL16TOFP32 || op->op == SW_OP_FP32TODL16 || op->op == SW_OP_FP8TODL16 ||
         op->op == SW_OP_QFP8CH || op->op == SW_OP_QFP8WT;
}

void cand_one_argument(const struct cand_op *m, int input)
{
  const sw_layout_list *in = cand_layouts(m, input);
  for (int i = 0; i < in->n; i++) {
    const struct sw_layout *l = &in->v[i];
    if (rescales(m->op)) {
      rescale(m, input, l);
      continue;
    }
    if (cand_same_frame(m, input) && sw_format_eps(l->format) == m->eps) {
      struct sw_layout same = *l;
      same.format = m->format;
      struct sw_seen seen = cand_seen_by(m, input, l);
      if (cand_clean(&seen) || !m->c->best)
        sw_layout__propose(m->c, m->storage, &same);
      continue;
    }
    struct sw_seen seen = cand_seen_by(m, input, l);
    if (!seen.formed || seen.stick.class == SW_STICK_OTHER)
      continue;
    int stick = cand_pick(m, &seen.stick);
    struct sw_layout made;
    if (cand_clean(&seen) && cand_make(m, stick, l->arrangement, &made)) {
      sw_layout__propose(m->c, m->storage, &made);
      continue;
    }
    for (int d = 0; d < m->s->rank; d++)
      if (d != stick && cand_wants_whole(m, d))
        cand_offer(m, d, SW_EA_STANDARD);
  }
  if (rescales(m->op))
    offer_rescaled(m, input);
  else
    cand_offer_all(m, SW_EA_STANDARD);
  const sw_layout_list *again = &m->c->reload[m->op->in[input].storage];
  for (int i = 0; i < again->n && m->op->op == SW_OP_FP32TODL16; i++) /* as it would be if the input were loaded in that order */
    if (cand_is_staggered(&again->v[i]))
      rescale(m, input, &again->v[i]);
}

/* -- pointwise with several arguments (4.4) -- */

/* Would a layout of the operand in the same order of dims be clean? Broadcasting aligns dims at the end. It is noted where not. */
static bool projects(const struct cand_op *m, int input, const int *order, int n)
{
  const struct sw_storage *s = cand_operand(m, input);
  int drop = m->s->rank - s->rank, shifted[SW_MAX_RANK + 1], k = 0;
  if (drop < 0)
    return true; /* a view of a tensor of more dims: the edge decides */
  for (int i = 0; i < n; i++)
    if (order[i] < 0 || order[i] >= drop)
      shifted[k++] = order[i] < 0 ? -1 : order[i] - drop;
  struct sw_layout l;
  if (!sw_layout_make(&l, m->format, SW_EA_STANDARD, s->rank, s->size, s->stride, shifted, k))
    return cand_drop(m, order[n - 1], SW_EA_STANDARD, SW_WHY_FOLLOW, NULL);
  struct sw_seen seen = sw_layout__see(&l, m->op, &m->op->in[input], m->c->rule);
  enum sw_reason why = sw_layout__stick_reason(&seen);
  return !why || cand_drop(m, order[n - 1], SW_EA_STANDARD, SW_WHY_FOLLOW,
                           sw_arena_printf(m->c->job->arena, "%s laid out likewise: %s", s->name,
                                           sw_layout__stick_words(m->c->job->arena, why, m->op, &seen, false)));
}

static void try_stick(const struct cand_op *m, const int *input, int n_inputs, int stick, enum sw_arrangement ea)
{
  int order[SW_MAX_RANK + 1], n = cand_order_for(m, stick, order);
  for (int i = 0; i < n_inputs && !m->c->best; i++)
    if (!projects(m, input[i], order, n))
      return;
  cand_offer_order(m, order, n, ea);
}

/* The stick expressions of all candidates of all arguments, without those of gathered rows. */
struct sticks {
  SW_VEC(struct sw_stick) all;
};

static bool same_stick(const struct sw_stick *a, const struct sw_stick *b)
{
  return a->class == b->class && a->loop == b->loop && a->coord.constant == b->coord.constant &&
         (a->coord.n == 0 || a->coord.term[0].mod == b->coord.term[0].mod);
}

static void collect_sticks(const struct cand_op *m, const int *input, int n_inputs, struct sticks *e)
{
  for (int i = 0; i < n_inputs; i++)
    for (int k = 0; k < cand_layouts(m, input[i])->n; k++) {
      struct sw_seen seen = cand_seen_by(m, input[i], &cand_layouts(m, input[i])->v[k]);
      bool there = !seen.formed || seen.stick.class == SW_STICK_OTHER;
      for (int j = 0; j < e->all.n && !there; j++)
        there = same_stick(&e->all.v[j], &seen.stick);
      if (!there)
        *SW_PUSH(m->c->arena, &e->all) = seen.stick;
    }
}

/* An argument in the output's own frame lets the output take its exact layout, so that it can be overwritten
 * (4.4.6). */
static void promote(const struct cand_op *m, const int *input, int n_inputs)
{
  sw_layout_list *list = &m->c->candidates[m->storage];
  int before = list->n;
  struct sw_layout found[SW_MAX_LABELS];
  for (int i = 0; i < before; i++)
    found[i] = list->v[i];
  for (int i = 0; i < n_inputs; i++) {
    if (!cand_same_frame(m, input[i]) || !cand_layouts(m, input[i])->n)
      continue;
    struct sw_layout l = cand_layouts(m, input[i])->v[0];
    if (sw_format_eps(l.format) != m->eps)
      continue;
    l.format = m->format;
    l.arrangement = SW_EA_STANDARD;
    bool as_large = false;
    for (int k = 0; k < before; k++)
      as_large = as_large || sw_layout_elements(&found[k]) == sw_layout_elements(&l);
    struct sw_seen seen = sw_layout__see(&l, m->op, &m->op->out, m->c->rule);
    if (!as_large || !cand_clean(&seen))
      continue;
    int at = 0;
    while (at < list->n && !sw_layout_equal(&list->v[at], &l))
      at++;
    if (at == SW_MAX_LABELS)
      continue;
    if (at == list->n)
      *SW_PUSH(m->c->arena, list) = l;
    for (; at > 0; at--)
      list->v[at] = list->v[at - 1];
    list->v[0] = l;
  }
}

/* Lane orders among the candidates of an argument, as bits; STANDARD where one lane a stick counts. */
static unsigned arrangements(const struct cand_op *m, int input)
{
  unsigned all = 0;
  for (int k = 0; k < cand_layouts(m, input)->n; k++) {
    const struct sw_layout *l = &cand_layouts(m, input)->v[k];
    all |= 1u << (cand_is_staggered(l) ? l->arrangement : SW_EA_STANDARD);
  }
  return all;
}

static const char *mixed_arrangements(const struct cand_op *m, const int *input, int n_inputs, enum sw_arrangement ea)
{
  for (int i = 0; i < n_inputs; i++)
    for (int k = 0; k < cand_layouts(m, input[i])->n; k++) {
      const struct sw_layout *l = &cand_layouts(m, input[i])->v[k];
      if (l->arrangement == SW_EA_STANDARD && l->stride_map[l->rank - 1] != -1)
        return sw_arena_printf(m->c->job->arena,
                               "mixed element arrangements: %s is in standard order and does not broadcast along the "
                               "stick, another operand is in order %s",
                               cand_operand(m, input[i])->name, sw_arrangement_name(ea));
    }
  return NULL;
}

/* Outputs with their lanes in order `ea`. */
static void sticks_of_arguments(const struct cand_op *m, const int *input, int n_inputs, const struct sticks *e,
                                enum sw_arrangement ea)
{
  if (!e->all.n)
    try_stick(m, input, n_inputs, -1, ea);
  for (int loop = -1; loop < m->op->n_loops; loop++)
    for (int i = 0; i < e->all.n; i++)
      if (e->all.v[i].loop == loop && e->all.v[i].class <= SW_STICK_LOOP)
        try_stick(m, input, n_inputs, cand_pick(m, &e->all.v[i]), ea);
}

const char *cand_several_arguments(const struct cand_op *m, const int *input, int n_inputs)
{
  unsigned all = 0, staggered = 1u << SW_EA_DL16_TO_FP32 | 1u << SW_EA_FP32_TO_DL16;
  for (int i = 0; i < n_inputs; i++)
    all |= arrangements(m, input[i]);
  enum sw_arrangement ea = all >> SW_EA_DL16_TO_FP32 & 1   ? SW_EA_DL16_TO_FP32
                           : all >> SW_EA_FP32_TO_DL16 & 1 ? SW_EA_FP32_TO_DL16
                                                           : SW_EA_STANDARD;
  if ((all & staggered) == staggered && !m->c->best)
    return "operands whose lanes are in different orders (element arrangement): convert one of them";
  const char *why = ea && !m->c->best ? mixed_arrangements(m, input, n_inputs, ea) : NULL;
  if (why)
    return why;

  struct sticks e = {0};
  collect_sticks(m, input, n_inputs, &e);
  bool same = e.all.n <= 1;
  for (int i = 0; i < n_inputs && same; i++)
    same = cand_layouts(m, input[i])->n == 1 && cand_same_frame(m, input[i]) &&
           sw_format_eps(cand_layouts(m, input[i])->v[0].format) == m->eps;
  if (same && !ea) {
    struct sw_layout l = cand_layouts(m, input[0])->v[0];
    l.format = m->format;
    sw_layout__propose(m->c, m->storage, &l);
  } else {
    sticks_of_arguments(m, input, n_inputs, &e, ea);
  }
  if (!ea) {
    for (int d = 0; d < m->s->rank; d++)
      if (cand_wants_whole(m, d))
        try_stick(m, input, n_inputs, d, ea);
    promote(m, input, n_inputs);
    cand_offer_all(m, ea);
  } else if (m->c->best) { /* which operands go together, the pairs decide */
    for (int a = 0; a < SW_N_ARRANGEMENTS; a++)
      if ((all & (staggered | 1u << SW_EA_STANDARD)) >> a & 1)
        sticks_of_arguments(m, input, n_inputs, &e, (enum sw_arrangement)a);
  }
  return NULL;
}
