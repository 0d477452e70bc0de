/* Candidate layouts of everything that ops write, in execution order and, within an op, in the reference's order: a
 * tie is won by the earlier one. Reference: layouts.md section 4; the numbers at the rules are its sections.
 *
 * Profile best adds what the reference leaves out: a stick on every other dim that can carry one. */
#include "compiler/layout/choose.h"

/* One op at work. */
struct making {
  struct sw_choosing *c;
  const struct sw_op *op;
  int storage; /* written */
  const struct sw_storage *s;
  enum sw_format format;
  int eps;
  struct sw_coord oc[SW_MAX_RANK]; /* host coordinates of the output access */
};

bool sw_layout__propose(struct sw_choosing *c, int storage, const struct sw_layout *l)
{
  sw_layout_list *list = &c->candidates[storage];
  for (int i = 0; i < list->n; i++)
    if (sw_layout_equal(&list->v[i], l))
      return false;
  if (list->n == SW_MAX_LABELS)
    return false;
  *SW_PUSH(c->arena, list) = *l;
  return true;
}

/* -- helper rules (4.1) -- */

static int pick(const struct making *m, const struct sw_stick *stick)
{
  return sw_layout__covering_dim(m->oc, m->s->rank, stick);
}

/* Other dims in order, those without a coordinate just before the stick, so that they are not the one that moves. */
static int order_for(const struct making *m, int stick, int *order)
{
  int n = 0;
  for (int still = 0; still < 2; still++)
    for (int d = 0; d < m->s->rank; d++)
      if (d != stick && (m->oc[d].n == 0 && m->oc[d].constant == 0) == still)
        order[n++] = d;
  order[n++] = stick;
  return n;
}

static bool make(const struct making *m, int stick, enum sw_arrangement ea, struct sw_layout *out)
{
  int order[SW_MAX_RANK + 1];
  if (stick >= 0 && m->s->size[stick] == 1)
    return false;
  int n = order_for(m, stick, order);
  if (!sw_layout_make(out, m->format, ea, m->s->rank, m->s->size, m->s->stride, order, n))
    return false;
  struct sw_seen seen = sw_layout__see(out, m->op, &m->op->out, m->c->rule);
  return seen.formed && seen.stick.class <= SW_STICK_LOOP;
}

static bool offer(const struct making *m, int stick, enum sw_arrangement ea)
{
  struct sw_layout l;
  return make(m, stick, ea, &l) && sw_layout__propose(m->c, m->storage, &l);
}

static bool aligned(const struct making *m, int d)
{
  return m->s->size[d] % m->eps == 0;
}

/* Every other dim as the stick, whole sticks first, and at last none (best only). */
static void offer_all(const struct making *m, enum sw_arrangement ea)
{
  for (int whole = 1; whole >= 0 && m->c->best; whole--)
    for (int d = 0; d < m->s->rank; d++)
      if (aligned(m, d) == whole)
        offer(m, d, ea);
  if (m->c->best)
    offer(m, -1, ea);
}

static void offer_order(const struct making *m, const int *order, int n, enum sw_arrangement ea)
{
  struct sw_layout l;
  if (sw_layout_make(&l, m->format, ea, m->s->rank, m->s->size, m->s->stride, order, n))
    sw_layout__propose(m->c, m->storage, &l);
}

/* Dims in order with the stick last (-1: sparse). */
static void offer_plain_order(const struct making *m, int stick, enum sw_arrangement ea)
{
  int order[SW_MAX_RANK + 1], n = 0;
  for (int d = 0; d < m->s->rank; d++)
    if (d != stick)
      order[n++] = d;
  order[n++] = stick;
  offer_order(m, order, n, ea);
}

/* -- operands -- */

static bool same_index(const struct sw_op *op, const struct sw_access *a, const struct sw_access *b)
{
  if (a->offset != b->offset || a->index_input != b->index_input || a->index_step != b->index_step)
    return false;
  for (int l = 0; l < op->n_loops; l++)
    if (a->step[l] != b->step[l])
      return false;
  return true;
}

/* Inputs that count for layouts, each distinct access once. */
static int arguments(const struct making *m, int *input)
{
  int n = 0;
  for (int k = 0; k < m->op->n_in; k++) {
    bool seen = sw_layout__need(m->c, m->op, k).kind == SW_NEED_NONE;
    for (int i = 0; i < n && !seen; i++)
      seen = m->op->in[input[i]].storage == m->op->in[k].storage &&
             same_index(m->op, &m->op->in[input[i]], &m->op->in[k]);
    if (!seen)
      input[n++] = k;
  }
  return n;
}

static const struct sw_storage *operand(const struct making *m, int input)
{
  return &m->c->p->storages.v[m->op->in[input].storage];
}

static const sw_layout_list *layouts(const struct making *m, int input)
{
  return &m->c->candidates[m->op->in[input].storage];
}

/* Same size, strides and index as the output: then a layout of the operand is one of the output too. */
static bool same_frame(const struct making *m, int input)
{
  const struct sw_storage *s = operand(m, input);
  if (s->rank != m->s->rank || !same_index(m->op, &m->op->in[input], &m->op->out))
    return false;
  for (int d = 0; d < s->rank; d++)
    if (s->size[d] != m->s->size[d] || s->stride[d] != m->s->stride[d])
      return false;
  return true;
}

static struct sw_seen seen_by(const struct making *m, int input, const struct sw_layout *l)
{
  return sw_layout__see(l, m->op, &m->op->in[input], m->c->rule);
}

static bool clean(const struct sw_seen *seen)
{
  return seen->formed && seen->stick.class <= SW_STICK_LOOP;
}

static bool on_loop(const struct sw_coord *c, int loop)
{
  for (int t = 0; t < c->n; t++)
    if (c->term[t].loop == loop)
      return true;
  return false;
}

/* One element a stick has no order of lanes. */
static bool is_staggered(const struct sw_layout *l)
{
  return (l->arrangement == SW_EA_DL16_TO_FP32 || l->arrangement == SW_EA_FP32_TO_DL16) &&
         l->stride_map[l->rank - 1] != -1;
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

/* A staggered f32 row has neighbours in different sticks of a pair, so whatever works on it must reach whole pairs; the
 * loops over a row of 96 reach 3 of 4 sticks. */
static bool pairs_up(const struct making *m, int stick, enum sw_arrangement ea)
{
  return ea != SW_EA_DL16_TO_FP32 || stick < 0 || (m->s->size[stick] + 31) / 32 % 2 == 0;
}

/* Tiles of a row of the output that has as many lanes as in tiles of `in_eps`. */
static int64_t tiles_for(const struct making *m, int64_t tiles, int in_eps)
{
  return (tiles * in_eps - 1) / m->eps + 1;
}

/* A layout made from scratch with the footprint that the operand has on this stick. */
static bool make_rescaled(const struct making *m, int stick, int in_eps, enum sw_arrangement ea, struct sw_layout *out)
{
  if (!pairs_up(m, stick, ea) || !make(m, stick, ea, out))
    return false;
  for (int j = 0; j < out->rank - 1 && stick >= 0; j++)
    if (out->stride_map[j] == m->s->stride[stick] * m->eps) {
      out->device_size[j] = tiles_for(m, (m->s->size[stick] - 1) / in_eps + 1, in_eps);
      return true;
    }
  return stick < 0;
}

/* The output has the footprint of its operand, lane for lane: [2,120] f16 in 2 tiles of 64 is 4 tiles of 32 in f32;
 * back it is 2. Rounded up: [4,32] f32 in 1 tile is 1 tile in f16. */
static void rescale(const struct making *m, int input, const struct sw_layout *l)
{
  struct sw_seen seen = seen_by(m, input, l);
  enum sw_arrangement ea = converted_arrangement(m->op->op, l);
  struct sw_layout out;
  if (!clean(&seen))
    return;
  int in_eps = sw_format_eps(l->format), stick = pick(m, &seen.stick), tiles = -1;
  if (!same_frame(m, input)) {
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
    if (tiles < 0 || !pairs_up(m, stick, ea))
      return;
    out.device_size[tiles] = tiles_for(m, out.device_size[tiles], in_eps);
    out.stride_map[tiles] = m->s->stride[stick] * m->eps;
  }
  sw_layout__propose(m->c, m->storage, &out);
}

/* Profile best: f16 operands can be moved first, so every stick will do that pairs up. */
static void offer_rescaled(const struct making *m, int input)
{
  const struct sw_layout *l = &layouts(m, input)->v[0];
  struct sw_layout out;
  if (!m->c->best || l->format != SW_FORMAT_FP16 || l->arrangement != SW_EA_STANDARD)
    return;
  for (int d = 0; d < m->s->rank; d++)
    if (m->s->size[d] > 1 &&
        make_rescaled(m, d, sw_format_eps(l->format), converted_arrangement(m->op->op, l), &out))
      sw_layout__propose(m->c, m->storage, &out);
}

static bool rescales(const struct sw_op *op)
{
  return op->op == SW_OP_DL16TOFP32 || op->op == SW_OP_FP32TODL16 || op->op == SW_OP_FP8TODL16 ||
         op->op == SW_OP_QFP8CH || op->op == SW_OP_QFP8WT;
}

static void one_argument(const struct making *m, int input)
{
  const sw_layout_list *in = layouts(m, input);
  for (int i = 0; i < in->n; i++) {
    const struct sw_layout *l = &in->v[i];
    if (rescales(m->op)) {
      rescale(m, input, l);
      continue;
    }
    if (same_frame(m, input) && sw_format_eps(l->format) == m->eps) {
      struct sw_layout same = *l;
      same.format = m->format;
      struct sw_seen seen = seen_by(m, input, l);
      if (clean(&seen) || !m->c->best)
        sw_layout__propose(m->c, m->storage, &same);
      continue;
    }
    struct sw_seen seen = seen_by(m, input, l);
    if (!seen.formed || seen.stick.class == SW_STICK_OTHER)
      continue;
    int stick = pick(m, &seen.stick);
    struct sw_layout made;
    if (clean(&seen) && make(m, stick, l->arrangement, &made)) {
      sw_layout__propose(m->c, m->storage, &made);
      continue;
    }
    for (int d = 0; d < m->s->rank; d++)
      if (d != stick && aligned(m, d))
        offer(m, d, SW_EA_STANDARD);
  }
  if (rescales(m->op))
    offer_rescaled(m, input);
  else
    offer_all(m, SW_EA_STANDARD);
}

/* -- pointwise with several arguments (4.4) -- */

/* Would a layout of the operand in the same order of dims be clean? Broadcasting aligns dims at the end. */
static bool projects(const struct making *m, int input, const int *order, int n)
{
  const struct sw_storage *s = operand(m, input);
  int drop = m->s->rank - s->rank, shifted[SW_MAX_RANK + 1], k = 0;
  if (drop < 0)
    return true; /* a view of a tensor of more dims: the edge decides */
  for (int i = 0; i < n; i++)
    if (order[i] < 0 || order[i] >= drop)
      shifted[k++] = order[i] < 0 ? -1 : order[i] - drop;
  struct sw_layout l;
  if (!sw_layout_make(&l, m->format, SW_EA_STANDARD, s->rank, s->size, s->stride, shifted, k))
    return false;
  struct sw_seen seen = seen_by(m, input, &l);
  return clean(&seen);
}

static void try_stick(const struct making *m, const int *input, int n_inputs, int stick, enum sw_arrangement ea)
{
  int order[SW_MAX_RANK + 1], n = order_for(m, stick, order);
  for (int i = 0; i < n_inputs && !m->c->best; i++)
    if (!projects(m, input[i], order, n))
      return;
  offer_order(m, order, n, ea);
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

static void collect_sticks(const struct making *m, const int *input, int n_inputs, struct sticks *e)
{
  for (int i = 0; i < n_inputs; i++)
    for (int k = 0; k < layouts(m, input[i])->n; k++) {
      struct sw_seen seen = seen_by(m, input[i], &layouts(m, input[i])->v[k]);
      bool there = !seen.formed || seen.stick.class == SW_STICK_OTHER;
      for (int j = 0; j < e->all.n && !there; j++)
        there = same_stick(&e->all.v[j], &seen.stick);
      if (!there)
        *SW_PUSH(m->c->arena, &e->all) = seen.stick;
    }
}

/* An argument in the output's own frame lets the output take its exact layout, so that it can be overwritten (4.4.6). */
static void promote(const struct making *m, const int *input, int n_inputs)
{
  sw_layout_list *list = &m->c->candidates[m->storage];
  int before = list->n;
  struct sw_layout found[SW_MAX_LABELS];
  for (int i = 0; i < before; i++)
    found[i] = list->v[i];
  for (int i = 0; i < n_inputs; i++) {
    if (!same_frame(m, input[i]) || !layouts(m, input[i])->n)
      continue;
    struct sw_layout l = layouts(m, input[i])->v[0];
    if (sw_format_eps(l.format) != m->eps)
      continue;
    l.format = m->format;
    l.arrangement = SW_EA_STANDARD;
    bool as_large = false;
    for (int k = 0; k < before; k++)
      as_large = as_large || sw_layout_elements(&found[k]) == sw_layout_elements(&l);
    struct sw_seen seen = sw_layout__see(&l, m->op, &m->op->out, m->c->rule);
    if (!as_large || !clean(&seen))
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
static unsigned arrangements(const struct making *m, int input)
{
  unsigned all = 0;
  for (int k = 0; k < layouts(m, input)->n; k++) {
    const struct sw_layout *l = &layouts(m, input)->v[k];
    all |= 1u << (is_staggered(l) ? l->arrangement : SW_EA_STANDARD);
  }
  return all;
}

static const char *mixed_arrangements(const struct making *m, const int *input, int n_inputs, enum sw_arrangement ea)
{
  for (int i = 0; i < n_inputs; i++)
    for (int k = 0; k < layouts(m, input[i])->n; k++) {
      const struct sw_layout *l = &layouts(m, input[i])->v[k];
      if (l->arrangement == SW_EA_STANDARD && l->stride_map[l->rank - 1] != -1)
        return sw_arena_printf(m->c->job->arena,
                               "mixed element arrangements: %s is in standard order and does not broadcast along the "
                               "stick, another operand is in order %s",
                               operand(m, input[i])->name, sw_arrangement_name(ea));
    }
  return NULL;
}

/* Outputs with their lanes in order `ea`. */
static void sticks_of_arguments(const struct making *m, const int *input, int n_inputs, const struct sticks *e,
                                enum sw_arrangement ea)
{
  if (!e->all.n)
    try_stick(m, input, n_inputs, -1, ea);
  for (int loop = -1; loop < m->op->n_loops; loop++)
    for (int i = 0; i < e->all.n; i++)
      if (e->all.v[i].loop == loop && e->all.v[i].class <= SW_STICK_LOOP)
        try_stick(m, input, n_inputs, pick(m, &e->all.v[i]), ea);
}

static const char *several_arguments(const struct making *m, const int *input, int n_inputs)
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
    same = layouts(m, input[i])->n == 1 && same_frame(m, input[i]) &&
           sw_format_eps(layouts(m, input[i])->v[0].format) == m->eps;
  if (same && !ea) {
    struct sw_layout l = layouts(m, input[0])->v[0];
    l.format = m->format;
    sw_layout__propose(m->c, m->storage, &l);
  } else {
    sticks_of_arguments(m, input, n_inputs, &e, ea);
  }
  if (!ea) {
    for (int d = 0; d < m->s->rank; d++)
      if (aligned(m, d))
        try_stick(m, input, n_inputs, d, ea);
    promote(m, input, n_inputs);
    offer_all(m, ea);
  } else if (m->c->best) { /* which operands go together, the pairs decide */
    for (int a = 0; a < SW_N_ARRANGEMENTS; a++)
      if ((all & (staggered | 1u << SW_EA_STANDARD)) >> a & 1)
        sticks_of_arguments(m, input, n_inputs, &e, (enum sw_arrangement)a);
  }
  return NULL;
}

/* -- reductions (4.5, 4.8, 4.10) -- */

static void reduction(const struct making *m, int input)
{
  const sw_layout_list *in = layouts(m, input);
  const struct sw_storage *s = operand(m, input);
  struct sw_coord host[SW_MAX_RANK];
  unsigned reduced = sw_layout__reduced_loops(m->op);
  bool formed = sw_layout__host_coords(s, m->op, &m->op->in[input], m->c->rule, host);
  for (int i = 0; i < in->n; i++) {
    const struct sw_layout *l = &in->v[i];
    struct sw_seen seen = seen_by(m, input, l);
    if (!seen.formed || seen.stick.class == SW_STICK_OTHER)
      continue;
    bool along = seen.stick.loop >= 0 && reduced >> seen.stick.loop & 1;
    if (clean(&seen) && !(m->op->op == SW_OP_PROD && along)) {
      /* lanes keep their order unless they are summed away */
      offer(m, pick(m, &seen.stick), along || seen.stick.class == SW_STICK_ZERO ? SW_EA_STANDARD : l->arrangement);
      continue;
    }
    for (int d = 0; d < s->rank && formed; d++) {
      if (host[d].n != 1 || host[d].term[0].loop == seen.stick.loop || s->size[d] % m->eps)
        continue;
      struct sw_stick t = {.class = SW_STICK_LOOP, .loop = host[d].term[0].loop, .coord = host[d]};
      bool goes = reduced >> t.loop & 1;
      int to = goes ? -1 : pick(m, &t);
      if (goes || to >= 0)
        offer(m, to, SW_EA_STANDARD);
    }
  }
  offer_all(m, SW_EA_STANDARD);
}

static void topk(const struct making *m, int input)
{
  const sw_layout_list *in = layouts(m, input);
  unsigned reduced = sw_layout__reduced_loops(m->op);
  for (int i = 0; i < in->n; i++) {
    struct sw_seen seen = seen_by(m, input, &in->v[i]);
    if (!clean(&seen))
      continue;
    int before = m->c->candidates[m->storage].n;
    bool along = seen.stick.loop >= 0 && reduced >> seen.stick.loop & 1;
    for (int d = 0; d < m->s->rank; d++) {
      bool survives = m->oc[d].n == 1 && m->op->in[input].step[m->oc[d].term[0].loop];
      if (m->s->size[d] > 1 && (along ? survives : d == pick(m, &seen.stick)))
        offer_plain_order(m, d, SW_EA_STANDARD);
    }
    if (m->c->candidates[m->storage].n == before)
      offer_plain_order(m, -1, SW_EA_STANDARD);
  }
}

/* -- matmul (4.6) -- */

static const char *matmul(const struct making *m)
{
  const struct sw_op *op = m->op;
  int k = sw_layout__matmul_k(op), n = sw_layout__matmul_n(op), count = 0;
  if (k < 0)
    return "expected exactly one loop to sum over, in both operands";
  for (int l = 0; l < op->n_written; l++)
    count += op->in[1].step[l] && !op->in[0].step[l];
  if (count > 1 && !m->c->best)
    return "expected exactly 1 generated variable";
  if (n < 0)
    return "a matrix product with one column (N = 1): multiply and sum instead";
  for (int i = 0; i < 2 && !m->c->best; i++)
    for (int j = 0; j < layouts(m, i)->n; j++) {
      struct sw_seen seen = seen_by(m, i, &layouts(m, i)->v[j]);
      if (seen.formed && seen.stick.class == SW_STICK_OFFSET)
        return sw_arena_printf(m->c->job->arena,
                               "operand %s starts inside a stick; double-restickify is not yet supported: copy the "
                               "slice first", operand(m, i)->name);
    }
  for (int d = 0; d < m->s->rank; d++)
    if (m->oc[d].n == 1 && m->oc[d].term[0].loop == n)
      offer_plain_order(m, d, SW_EA_STANDARD);
  return NULL;
}

/* -- clones and fills (4.9) -- */

static void clone(const struct making *m, int input)
{
  int order[SW_MAX_RANK];
  enum sw_arrangement ea = SW_EA_STANDARD;
  if (is_staggered(&layouts(m, input)->v[0]))
    ea = layouts(m, input)->v[0].arrangement;
  for (int d = 0; d < m->s->rank; d++)
    order[d] = d;
  offer_order(m, order, m->s->rank, ea);
  offer_all(m, ea);
}

/* What is allocated and then written in pieces is row major, or (best) whatever suits all pieces; and so is a fill
 * that others write into later. A fill alone has any stick for free, but only full ones (fault report 6). */
static void allocated(const struct making *m, bool only_full_sticks)
{
  struct sw_layout l;
  if (!sw_layout__default(m->c, m->storage, m->format, &l))
    return;
  sw_layout__propose(m->c, m->storage, &l);
  for (int d = 0; d < m->s->rank && m->c->best; d++) {
    int order[SW_MAX_RANK], n = 0;
    if (m->s->size[d] == 1 || (only_full_sticks && !aligned(m, d)))
      continue;
    for (int i = 0; i < m->s->rank; i++)
      if (i != d)
        order[n++] = i;
    order[n++] = d;
    offer_order(m, order, n, SW_EA_STANDARD);
  }
}

/* -- dispatch (4.2) -- */

/* A computed bool has its operands' lanes; everything else those of its dtype. */
static const char *output_format(struct making *m, const int *input, int n)
{
  m->format = sw_format_of(m->s->dtype);
  if (m->s->dtype != SW_BOOL || !n)
    return NULL;
  m->format = layouts(m, input[0])->v[0].format;
  for (int i = 0; i < n; i++) {
    enum sw_format f = layouts(m, input[i])->v[0].format;
    if (f != SW_FORMAT_FP16 && f != SW_FORMAT_FP32)
      return sw_arena_printf(m->c->job->arena, "torch.bool result of operand with device format %s", sw_format_name(f));
    if (f != m->format)
      return "torch.bool result of operands with different device formats";
  }
  return NULL;
}

static const char *dispatch(struct making *m)
{
  int input[SW_MAX_INPUTS], n = arguments(m, input);
  const char *why = output_format(m, input, n);
  if (why)
    return why;
  if (m->format == SW_N_FORMATS)
    return sw_arena_printf(m->c->job->arena, "%s has no format on the device", sw_dtype_torch(m->s->dtype));
  m->eps = sw_format_eps(m->format);
  if (!sw_layout__host_coords(m->s, m->op, &m->op->out, m->c->rule, m->oc))
    return "what it writes is reversed or has no order of dims";
  if (m->op->role == SW_ROLE_WRITE)
    allocated(m, false);
  else if (!n)
    allocated(m, m->c->written[m->storage] == 1);
  else if (m->op->op == SW_OP_MATMUL || m->op->op == SW_OP_MATMULFP8)
    return matmul(m);
  else if (m->op->op == SW_OP_EXX2)
    offer_plain_order(m, -1, SW_EA_EXX2);
  else if (m->op->op == SW_OP_TOPKVALUE || m->op->op == SW_OP_TOPKINDEX)
    topk(m, input[0]);
  else if (sw_device_op_is_reduction(m->op->op))
    reduction(m, input[0]);
  else if (m->op->role == SW_ROLE_CLONE)
    clone(m, input[0]);
  else if (n > 1)
    return several_arguments(m, input, n);
  else
    one_argument(m, input[0]);
  return NULL;
}

/* What is wrong with the first operand that can't be read at all, or "". */
static const char *unreadable(const struct making *m)
{
  for (int k = 0; k < m->op->n_in; k++) {
    const sw_layout_list *all = &m->c->candidates[m->op->in[k].storage];
    int n = 0;
    for (int i = 0; i < all->n; i++) {
      struct sw_seen seen = sw_layout__see(&all->v[i], m->op, &m->op->in[k], m->c->rule);
      n += !seen.formed || seen.stick.class == SW_STICK_OTHER;
    }
    if (n && n == all->n)
      return sw_arena_printf(m->c->job->arena, "; in none of the %d of %s is the stick one loop here: it mixes loops or skips lanes",
                             n, operand(m, k)->name);
  }
  return "";
}

static void candidates_of(struct sw_choosing *c, const struct sw_op *op)
{
  struct making m = {.c = c, .op = op, .storage = op->out.storage, .s = &c->p->storages.v[op->out.storage]};
  if (c->candidates[m.storage].n || c->refused[m.storage])
    return; /* it exists already: the op writes into it */
  for (int k = 0; k < op->n_in; k++)
    if (c->refused[op->in[k].storage]) {
      c->refused[m.storage] = true;
      return;
    }
  for (int k = 0; k < op->n_in; k++)
    if (sw_layout__need(c, op, k).kind != SW_NEED_NONE && !c->candidates[op->in[k].storage].n) {
      sw_fault(c->job, SW_INTERNAL, "%s is read before anything wrote it", operand(&m, k)->name)->node = op->name;
      c->refused[m.storage] = true;
      return;
    }
  int faults = c->job->faults.n;
  const char *why = dispatch(&m);
  if (!why && c->candidates[m.storage].n)
    return;
  c->refused[m.storage] = true;
  if (!why && c->job->faults.n > faults)
    return;
  struct sw_fault *f = sw_fault(c->job, SW_UNSUPPORTED, "%s: %s%s", sw_device_op_name(op->op),
                                why ? why : "no supported output layout found for any of its operands' layouts",
                                why ? "" : unreadable(&m));
  f->node = op->name;
  f->tensor = m.s->name;
  f->source = op->source;
  if (!why)
    f->advice = "make the last dim a multiple of 64 elements, or put .contiguous() before this op";
}

/* Where rows are gathered from a tensor or scattered into it, its layouts with the rows outermost (4.13). */
static void offer_rows_first(struct sw_choosing *c, const struct sw_op *op, const struct sw_access *x)
{
  const struct sw_storage *s = &c->p->storages.v[x->storage];
  if (x->index_input < 0 || c->pinned[x->storage] || (s->kind != SW_STORAGE_TEMPORARY && !c->free_layout[x->storage]))
    return;
  for (int i = 0, n = c->candidates[x->storage].n; i < n; i++) {
    struct sw_layout l = c->candidates[x->storage].v[i], rows;
    struct sw_seen seen = sw_layout__see(&l, op, x, SW_OFFSET_EXACT);
    for (int j = 1; seen.formed && j < l.rank - 1; j++)
      if (seen.coord[j].index && sw_layout__converted(s, &l, sw_layout__stick_dim(s, &l), j, &rows))
        sw_layout__propose(c, x->storage, &rows);
  }
}

void sw_layout__op_candidates(struct sw_choosing *c)
{
  for (int i = 0; i < c->p->steps.n; i++)
    if (!c->p->steps.v[i].is_host)
      candidates_of(c, &c->p->ops.v[c->p->steps.v[i].index]);
  for (int i = 0; i < c->p->ops.n && c->best; i++) {
    const struct sw_op *op = &c->p->ops.v[i];
    offer_rows_first(c, op, &op->out);
    for (int k = 0; k < op->n_in; k++)
      offer_rows_first(c, op, &op->in[k]);
  }
}
