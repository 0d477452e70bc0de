/* Candidate layouts of everything that ops write, in execution order and, within an op, in the reference's order: a
 * tie is won by the earlier one. Reference: layouts.md section 4; the numbers at the rules are its sections.
 *
 * Profile best adds what the reference leaves out: a stick on every other dim that can carry one. */
#include "compiler/layout/candidates.h"

#include <inttypes.h>

bool sw_layout__propose(struct sw_choosing *c, int storage, const struct sw_layout *l)
{
  sw_layout_list *list = &c->candidates[storage];
  for (int i = 0; i < list->n; i++)
    if (sw_layout_equal(&list->v[i], l))
      return false;
  if (list->n == SW_MAX_LABELS) {
    int stick = sw_layout__stick_dim(&c->p->storages.v[storage], l);
    sw_layout__drop(c, &(struct sw_drop){SW_DROP_NO_CANDIDATE, storage, stick, l, NULL, -1, SW_WHY_TOO_MANY}, NULL);
    return false;
  }
  *SW_PUSH(c->arena, list) = *l;
  return true;
}

/* -- helper rules (4.1) -- */

int cand_pick(const struct cand_op *m, const struct sw_stick *stick)
{
  return sw_layout__covering_dim(m->oc, m->s->rank, stick);
}

/* Other dims in order, those without a coordinate just before the stick, so that they are not the one that moves. */
int cand_order_for(const struct cand_op *m, int stick, int *order)
{
  int n = 0;
  for (int still = 0; still < 2; still++)
    for (int d = 0; d < m->s->rank; d++)
      if (d != stick && (m->oc[d].n == 0 && m->oc[d].constant == 0) == still)
        order[n++] = d;
  order[n++] = stick;
  return n;
}

bool cand_drop(const struct cand_op *m, int stick, enum sw_arrangement ea, enum sw_reason why, const char *words)
{
  int order[SW_MAX_RANK + 1], n = cand_order_for(m, stick, order);
  struct sw_layout l;
  bool made = sw_layout_make(&l, m->format, ea, m->s->rank, m->s->size, m->s->stride, order, n);
  sw_layout__drop(m->c, &(struct sw_drop){SW_DROP_NO_CANDIDATE, m->storage, stick, made ? &l : NULL, m->op, -1, why}, words);
  return false;
}

/* In the order of a cast from float16, neighbours lie in different sticks of a pair, so whatever works on it must reach
 * whole pairs: their memory is there in profile best, and where it is not needed in either. */
bool cand_pair_tiles(const struct cand_op *m, int stick, struct sw_layout *l)
{
  if (l->arrangement != SW_EA_DL16_TO_FP32 || l->format != SW_FORMAT_FP32 || stick < 0 || m->s->size[stick] == 1)
    return true;
  if ((m->s->size[stick] - 1) / 32 % 2) /* an even number of tiles */
    return true;
  return m->c->best && sw_layout_pair_tiles(l, m->s->stride[stick], m->s->size[stick]);
}

bool cand_make(const struct cand_op *m, int stick, enum sw_arrangement ea, struct sw_layout *out)
{
  int order[SW_MAX_RANK + 1];
  if (stick >= 0 && m->s->size[stick] == 1)
    return false;
  int n = cand_order_for(m, stick, order);
  if (!sw_layout_make(out, m->format, ea, m->s->rank, m->s->size, m->s->stride, order, n))
    return cand_drop(m, stick, ea, SW_WHY_NO_LAYOUT, NULL);
  if (!cand_pair_tiles(m, stick, out))
    return cand_drop(m, stick, ea, SW_WHY_HALF_PAIR, NULL);
  struct sw_seen seen = sw_layout__see(out, m->op, &m->op->out, m->c->rule);
  enum sw_reason why = sw_layout__stick_reason(&seen);
  return !why || cand_drop(m, stick, ea, why, sw_layout__stick_words(m->c->job->arena, why, m->op, &seen, true));
}

bool cand_offer(const struct cand_op *m, int stick, enum sw_arrangement ea)
{
  struct sw_layout l;
  return cand_make(m, stick, ea, &l) && sw_layout__propose(m->c, m->storage, &l);
}

bool cand_aligned(const struct cand_op *m, int d)
{
  return m->s->size[d] % m->eps == 0;
}

bool cand_wants_whole(const struct cand_op *m, int d)
{
  if (cand_aligned(m, d))
    return true;
  if (m->s->size[d] == 1) /* nothing to put on a stick */
    return false;
  return cand_drop(m, d, SW_EA_STANDARD, SW_WHY_PARTIAL,
                   sw_arena_printf(m->c->job->arena, "dim %d has %" PRId64 " elements, not whole sticks of %d", d, m->s->size[d], m->eps));
}

/* Every other dim as the stick, whole sticks first, and at last none (best only). */
void cand_offer_all(const struct cand_op *m, enum sw_arrangement ea)
{
  for (int whole = 1; whole >= 0 && m->c->best; whole--)
    for (int d = 0; d < m->s->rank; d++)
      if (cand_aligned(m, d) == whole)
        cand_offer(m, d, ea);
  if (m->c->best)
    cand_offer(m, -1, ea);
}

void cand_offer_order(const struct cand_op *m, const int *order, int n, enum sw_arrangement ea)
{
  struct sw_layout l;
  int stick = n ? order[n - 1] : -1;
  if (!sw_layout_make(&l, m->format, ea, m->s->rank, m->s->size, m->s->stride, order, n))
    cand_drop(m, stick, ea, SW_WHY_NO_LAYOUT, NULL);
  else if (!cand_pair_tiles(m, stick, &l))
    cand_drop(m, stick, ea, SW_WHY_HALF_PAIR, NULL);
  else
    sw_layout__propose(m->c, m->storage, &l);
}

/* Dims in order with the stick last (-1: sparse). */
static void offer_plain_order(const struct cand_op *m, int stick, enum sw_arrangement ea)
{
  int order[SW_MAX_RANK + 1], n = 0;
  for (int d = 0; d < m->s->rank; d++)
    if (d != stick)
      order[n++] = d;
  order[n++] = stick;
  cand_offer_order(m, order, n, ea);
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
static int arguments(const struct cand_op *m, int *input)
{
  int n = 0;
  for (int k = 0; k < m->op->n_in; k++) {
    bool seen = sw_layout__need(m->c, m->op, k).kind == SW_NEED_NONE || sw_layout__is_row_number(m->op, k);
    for (int i = 0; i < n && !seen; i++)
      seen = m->op->in[input[i]].storage == m->op->in[k].storage &&
             same_index(m->op, &m->op->in[input[i]], &m->op->in[k]);
    if (!seen)
      input[n++] = k;
  }
  return n;
}

const struct sw_storage *cand_operand(const struct cand_op *m, int input)
{
  return &m->c->p->storages.v[m->op->in[input].storage];
}

const sw_layout_list *cand_layouts(const struct cand_op *m, int input)
{
  return &m->c->candidates[m->op->in[input].storage];
}

/* Same size, strides and index as the output: then a layout of the operand is one of the output too. */
bool cand_same_frame(const struct cand_op *m, int input)
{
  const struct sw_storage *s = cand_operand(m, input);
  if (s->rank != m->s->rank || !same_index(m->op, &m->op->in[input], &m->op->out))
    return false;
  for (int d = 0; d < s->rank; d++)
    if (s->size[d] != m->s->size[d] || s->stride[d] != m->s->stride[d])
      return false;
  return true;
}

struct sw_seen cand_seen_by(const struct cand_op *m, int input, const struct sw_layout *l)
{
  int storage = m->op->in[input].storage;
  struct sw_seen seen = sw_layout__see(l, m->op, &m->op->in[input], m->c->rule);
  enum sw_reason why = sw_layout__stick_reason(&seen);
  if (why && why != SW_WHY_INSIDE) {
    int stick = sw_layout__stick_dim(cand_operand(m, input), l);
    struct sw_drop d = {SW_DROP_UNREAD, storage, stick, l, m->op, input, why};
    if (!sw_layout__is_dropped(m->c, &d))
      sw_layout__drop(m->c, &d, sw_layout__stick_words(m->c->job->arena, why, m->op, &seen, false));
  }
  return seen;
}

bool cand_clean(const struct sw_seen *seen)
{
  return seen->formed && seen->stick.class <= SW_STICK_LOOP;
}

/* One element a stick has no order of lanes. */
bool cand_is_staggered(const struct sw_layout *l)
{
  return (l->arrangement == SW_EA_DL16_TO_FP32 || l->arrangement == SW_EA_FP32_TO_DL16) &&
         l->stride_map[l->rank - 1] != -1;
}

/* -- reductions (4.5, 4.8, 4.10) -- */

static void reduction(const struct cand_op *m, int input)
{
  const sw_layout_list *in = cand_layouts(m, input);
  const struct sw_storage *s = cand_operand(m, input);
  struct sw_coord host[SW_MAX_RANK];
  unsigned reduced = sw_layout__reduced_loops(m->op);
  bool formed = sw_layout__host_coords(s, m->op, &m->op->in[input], m->c->rule, host);
  for (int i = 0; i < in->n; i++) {
    const struct sw_layout *l = &in->v[i];
    struct sw_seen seen = cand_seen_by(m, input, l);
    if (!seen.formed || seen.stick.class == SW_STICK_OTHER)
      continue;
    bool along = seen.stick.loop >= 0 && reduced >> seen.stick.loop & 1;
    if (cand_clean(&seen) && !(m->op->op == SW_OP_PROD && along)) {
      /* lanes keep their order unless they are summed away */
      bool ordered = !along && seen.stick.class != SW_STICK_ZERO;
      cand_offer(m, cand_pick(m, &seen.stick), ordered ? l->arrangement : SW_EA_STANDARD);
      continue;
    }
    for (int d = 0; d < s->rank && formed; d++) {
      if (host[d].n != 1 || host[d].term[0].loop == seen.stick.loop || s->size[d] % m->eps)
        continue;
      struct sw_stick t = {.class = SW_STICK_LOOP, .loop = host[d].term[0].loop, .coord = host[d]};
      bool goes = reduced >> t.loop & 1;
      int to = goes ? -1 : cand_pick(m, &t);
      if (goes || to >= 0)
        cand_offer(m, to, SW_EA_STANDARD);
    }
  }
  cand_offer_all(m, SW_EA_STANDARD);
}

static void topk(const struct cand_op *m, int input)
{
  const sw_layout_list *in = cand_layouts(m, input);
  unsigned reduced = sw_layout__reduced_loops(m->op);
  for (int i = 0; i < in->n; i++) {
    struct sw_seen seen = cand_seen_by(m, input, &in->v[i]);
    if (!cand_clean(&seen))
      continue;
    int before = m->c->candidates[m->storage].n;
    bool along = seen.stick.loop >= 0 && reduced >> seen.stick.loop & 1;
    for (int d = 0; d < m->s->rank; d++) {
      bool survives = m->oc[d].n == 1 && m->op->in[input].step[m->oc[d].term[0].loop];
      if (m->s->size[d] > 1 && (along ? survives : d == cand_pick(m, &seen.stick)))
        offer_plain_order(m, d, SW_EA_STANDARD);
    }
    if (m->c->candidates[m->storage].n == before)
      offer_plain_order(m, -1, SW_EA_STANDARD);
  }
}

/* -- matmul (4.6) -- */

static const char *matmul(const struct cand_op *m)
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
    for (int j = 0; j < cand_layouts(m, i)->n; j++) {
      struct sw_seen seen = cand_seen_by(m, i, &cand_layouts(m, i)->v[j]);
      if (seen.formed && seen.stick.class == SW_STICK_OFFSET)
        return sw_arena_printf(m->c->job->arena,
                               "operand %s starts inside a stick; double-restickify is not yet supported: copy the "
                               "slice first", cand_operand(m, i)->name);
    }
  for (int d = 0; d < m->s->rank; d++)
    if (m->oc[d].n == 1 && m->oc[d].term[0].loop == n)
      offer_plain_order(m, d, SW_EA_STANDARD);
    else if (m->s->size[d] > 1)
      cand_drop(m, d, SW_EA_STANDARD, SW_WHY_MATRIX_RESULT, NULL);
  return NULL;
}

/* -- clones and fills (4.9) -- */

static void clone(const struct cand_op *m, int input)
{
  int order[SW_MAX_RANK];
  enum sw_arrangement ea = SW_EA_STANDARD;
  if (cand_is_staggered(&cand_layouts(m, input)->v[0]))
    ea = cand_layouts(m, input)->v[0].arrangement;
  for (int d = 0; d < m->s->rank; d++)
    order[d] = d;
  cand_offer_order(m, order, m->s->rank, ea);
  cand_offer_all(m, ea);
}

/* What is allocated and then written in pieces is row major, or (best) whatever suits all pieces, float32 also in the
 * order that pieces cast from float16 have; and so is a fill that others write into later. A fill alone has any stick
 * for free, but only full ones (fault report 6). */
static void allocated(const struct cand_op *m, bool only_full_sticks)
{
  struct sw_layout l;
  if (!sw_layout__default(m->c, m->storage, m->format, &l))
    return;
  sw_layout__propose(m->c, m->storage, &l);
  for (int d = 0; d < m->s->rank && m->c->best; d++)
    if (m->s->size[d] > 1 && (!only_full_sticks || cand_aligned(m, d)))
      offer_plain_order(m, d, SW_EA_STANDARD);
  for (int d = 0; d < m->s->rank && m->c->best && m->format == SW_FORMAT_FP32; d++)
    if (m->s->size[d] > 1)
      offer_plain_order(m, d, SW_EA_DL16_TO_FP32);
  if (m->c->best)
    offer_plain_order(m, -1, SW_EA_STANDARD);
}

/* -- dispatch (4.2) -- */

/* A computed bool has its operands' lanes; everything else those of its dtype. */
static const char *output_format(struct cand_op *m, const int *input, int n)
{
  m->format = sw_format_of(m->s->dtype);
  if (m->s->dtype != SW_BOOL || !n)
    return NULL;
  m->format = cand_layouts(m, input[0])->v[0].format;
  for (int i = 0; i < n; i++) {
    enum sw_format f = cand_layouts(m, input[i])->v[0].format;
    if (f != SW_FORMAT_FP16 && f != SW_FORMAT_FP32)
      return sw_arena_printf(m->c->job->arena, "torch.bool result of operand with device format %s", sw_format_name(f));
    if (f != m->format)
      return "torch.bool result of operands with different device formats";
  }
  return NULL;
}

static const char *dispatch(struct cand_op *m)
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
    return cand_several_arguments(m, input, n);
  else
    cand_one_argument(m, input[0]);
  return NULL;
}

/* What is wrong with the first operand that can't be read at all, layout by layout (the first few), or "". */
static const char *unreadable(const struct cand_op *m)
{
  enum { MOST = 3 };
  struct sw_arena *a = m->c->job->arena;
  for (int k = 0; k < m->op->n_in; k++) {
    const sw_layout_list *all = &m->c->candidates[m->op->in[k].storage];
    struct sw_buf each = {.arena = a};
    int n = 0;
    for (int i = 0; i < all->n; i++) {
      struct sw_seen seen = sw_layout__see(&all->v[i], m->op, &m->op->in[k], m->c->rule);
      enum sw_reason why = sw_layout__stick_reason(&seen);
      if (why && n++ < MOST)
        sw_buf_printf(&each, "%s%s (%s)", n > 1 ? "; " : "", sw_layout__stick_words(a, why, m->op, &seen, false),
                      sw_layout__label(a, &all->v[i]));
    }
    if (n && n == all->n)
      return sw_arena_printf(a, "; all %d candidates of operand %d (%s) unreadable: %s%s", n, k, cand_operand(m, k)->name,
                             sw_buf_text(&each), n > MOST ? "; .." : "");
  }
  return "";
}

static void candidates_of(struct sw_choosing *c, const struct sw_op *op)
{
  struct cand_op m = {.c = c, .op = op, .storage = op->out.storage, .s = &c->p->storages.v[op->out.storage]};
  if (c->candidates[m.storage].n || c->refused[m.storage])
    return; /* it exists already: the op writes into it */
  for (int k = 0; k < op->n_in; k++)
    if (c->refused[op->in[k].storage]) {
      c->refused[m.storage] = true;
      return;
    }
  for (int k = 0; k < op->n_in; k++)
    if (sw_layout__need(c, op, k).kind != SW_NEED_NONE && !c->candidates[op->in[k].storage].n) {
      sw_fault(c->job, SW_INTERNAL, "%s is read before anything wrote it", cand_operand(&m, k)->name)->node = op->name;
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
