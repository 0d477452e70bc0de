/* Relayouts: copies within the scratchpads that hand a buffer to other cores (scratchpad.md section 9).
 *
 * A buffer can stay in the scratchpads only if its readers are cut over the cores exactly as its writer is. Where they
 * are not, but run on as many cores, a copy in front of the first of them gives every core the part that they want.
 * There is one copy for all readers of one part, and the readers that agree with the writer read the buffer itself.
 *
 * Example: a matmul writes [64,512] cut 4 x 8, the addition of its bias is cut by 32 rows. The copy's source has rows
 * c mod 4 of 4 and columns c / 4 mod 8 of 8, its destination rows c mod 32 of 32. Every core sends 8 pieces, every core
 * gets 8: 115 ns on the chip where writing and reading 64 KiB of memory take 870. */
#include "compiler/plan/liveness.h"
#include "compiler/plan/loops.h"
#include "compiler/plan/scratchpad.h"

#include "base/options.h"
#include "compiler/layout/machine.h"
#include "compiler/plan/parts.h"

#include <math.h>
#include <string.h>

/* -- whether -- */

bool sw_part_of_view(const struct sw_core_view *view, struct sw_part *out)
{
  int64_t parts = 1;
  *out = (struct sw_part){.cores = view->cores};
  for (int d = 0; d < view->rank; d++) {
    if (view->factor[d] == 1)
      continue;
    int64_t below = 0;
    while (view->slice[d][below] != 1)
      below++; /* the first core of the second slice */
    out->cut[out->n++] = (struct sw_cut){d, view->factor[d], below};
    parts *= view->factor[d];
  }
  return parts == view->cores;
}

/* The part that every core has through an access; false when several cores share one. */
static bool owns(const struct sw_program *p, const struct sw_op *op, int operand, struct sw_core_view *view,
                 struct sw_part *part)
{
  return sw_core_view(p, op, operand, view) == SW_LX_FITS && sw_part_of_view(view, part);
}

/* What the reference lets read a copy. */
static bool may_read_copy(const struct sw_op *op)
{
  bool matmul = op->op == SW_OP_MATMUL && op->n_in == 2 && op->in[0].storage != op->in[1].storage;
  return matmul || !sw_device_op_is_reduction(op->op);
}

/* -- what -- */

struct destination {
  struct sw_core_view view;
  struct sw_op copy; /* its relayout and loops */
  int before;          /* first reader */
  double ns;
  SW_VEC(struct sw_touch) readers;
};

struct group {
  struct sw_arena *arena;
  const struct sw_program *p;
  const struct sw_op *writer;
  struct sw_core_view source;
  struct sw_part part;
  SW_VEC(struct destination) to;
};

/* A part in loops of the copy, device dims from the outside in. */
static bool owners_of(const struct sw_part *part, const int *loop, struct sw_owners *out)
{
  for (out->n = 0; out->n < part->n; out->n++) {
    const struct sw_cut *c = &part->cut[out->n];
    for (int k = 0; k < out->n; k++)
      if (out->cut[k].loop == loop[c->dim])
        return false;
    if (loop[c->dim] < 0)
      return false;
    out->cut[out->n] = (struct sw_owned_loop){loop[c->dim], c->factor, c->stride};
  }
  return true;
}

static bool add_destination(struct group *g, const struct sw_touch *t, const struct sw_core_view *view,
                            const struct sw_part *part)
{
  struct destination *d = SW_PUSH(g->arena, &g->to);
  struct sw_relayout *relayout = SW_NEW(g->arena, struct sw_relayout);
  struct sw_core_view own;
  *d = (struct destination){.view = *view, .before = t->op};
  if (!sw_part_moves_evenly(&g->part, part) ||
      !sw_boundary_copy(g->arena, g->p, &g->p->ops.v[t->op], t->operand, &d->copy) ||
      sw_core_view(g->p, &d->copy, -1, &own) != SW_LX_FITS || !owners_of(&g->part, own.loop, &relayout->from) ||
      !owners_of(part, own.loop, &relayout->to))
    return false;
  ((struct sw_op_plan *)d->copy.plan)->relayout = relayout;
  sw_enter_loops(&d->copy, &g->p->ops.v[t->op], sw_common_levels(&g->p->ops.v[t->op], g->writer));
  d->ns = sw_part_move_ns(sw_machine_or_spyre(g->p->machine), g->p->storages.v[d->copy.out.storage].layout, &g->part, part);
  return true;
}

/* All readers of a storage, by the part they want. False where one of them can't be served. */
static bool collect(struct group *g, const struct sw_life *l, bool best)
{
  const struct sw_touch *writer = &l->touch[0];
  struct sw_core_view view;
  struct sw_part part;
  g->writer = &g->p->ops.v[writer->op];
  if (sw_splits_reduction(&g->p->ops.v[writer->op]) || !owns(g->p, &g->p->ops.v[writer->op], -1, &g->source, &g->part))
    return false;
  for (int t = 1; t < l->n; t++) {
    const struct sw_op *op = &g->p->ops.v[l->touch[t].op];
    if (l->touch[t].op == l->touch[t - 1].op || op->role == SW_ROLE_WRITE || !sw_follows_slices(op) ||
        (!best && sw_splits_reduction(op)) || !owns(g->p, op, l->touch[t].operand, &view, &part) ||
        view.cores != g->source.cores)
      return false;
    if (sw_core_view_equal(&g->source, &view))
      continue;
    if (!best && !may_read_copy(op))
      return false;
    int k = 0;
    while (k < g->to.n && !sw_core_view_equal(&g->to.v[k].view, &view))
      k++;
    if (k == g->to.n && !add_destination(g, &l->touch[t], &view, &part))
      return false;
    *SW_PUSH(g->arena, &g->to.v[k].readers) = l->touch[t];
  }
  return g->to.n > 0;
}

/* ns of memory traffic that the copies save, less what they take. */
static bool pays(const struct group *g, const struct sw_life *l, const struct sw_layout *layout)
{
  double ns = (double)sw_layout_bytes(layout) * (double)l->turns / sw_machine_or_spyre(g->p->machine)->hbm;
  for (int k = 0; k < g->to.n; k++)
    ns -= g->to.v[k].ns * (double)sw_op_turns(&g->to.v[k].copy);
  return ns > 0;
}

/* -- into the program -- */

static int add_storage(struct sw_job *job, struct sw_program *p, int source, int number)
{
  struct sw_storage *s = SW_PUSH(job->arena, &p->storages), *from = &p->storages.v[source];
  *s = (struct sw_storage){.kind = SW_STORAGE_TEMPORARY,
                           .dtype = from->dtype,
                           .rank = from->rank,
                           .input = -1,
                           .layout = from->layout};
  s->name = number ? sw_arena_printf(job->arena, "%s:relayout%d", from->name, number)
                   : sw_arena_printf(job->arena, "%s:relayout", from->name);
  memcpy(s->size, from->size, sizeof s->size);
  memcpy(s->stride, from->stride, sizeof s->stride);
  return p->storages.n - 1;
}

static void insert(struct sw_job *job, struct sw_program *p, int source, const struct group *g, struct sw_arena *a,
                   const struct sw_span *span, struct sw_around *around, struct sw_relayouts *out)
{
  for (int k = 0; k < g->to.n; k++) {
    const struct destination *d = &g->to.v[k];
    int twin = add_storage(job, p, source, k);
    struct sw_op *op = SW_PUSH(job->arena, &p->ops);
    struct sw_op_plan *plan = SW_NEW(job->arena, struct sw_op_plan);
    struct sw_relayout *relayout = SW_NEW(job->arena, struct sw_relayout);
    *op = d->copy;
    *plan = *d->copy.plan;
    *relayout = *d->copy.plan->relayout;
    plan->relayout = relayout;
    op->plan = plan;
    op->name = p->storages.v[twin].name;
    op->in[0].storage = source;
    op->out.storage = twin;
    int at = sw_entrance(p, span, &p->ops.v[d->before], op->n_levels, d->before);
    *SW_PUSH(a, &around->before[at].of) = p->ops.n - 1;
    for (int r = 0; r < d->readers.n; r++)
      p->ops.v[d->readers.v[r].op].in[d->readers.v[r].operand].storage = twin;
    out->copy[out->n++] = (struct sw_relayout_copy){source, twin};
  }
}

void sw_insert_relayouts(struct sw_job *job, const struct sw_options *o, struct sw_program *p, struct sw_plan *plan,
                         const bool *barred, struct sw_relayouts *out)
{
  struct sw_arena *scratch = sw_arena_new(job->arena, SIZE_MAX);
  struct sw_life *lives = sw_lives_make(scratch, p);
  const struct sw_span *span = sw_loop_spans(scratch, p);
  bool best = o->profile == SW_PROFILE_BEST;
  int n_ops = p->ops.n, n_storages = p->storages.n;
  struct sw_around around = {SW_NEW_N(scratch, struct sw_ops, n_ops), SW_NEW_N(scratch, struct sw_ops, n_ops), n_ops};
  int n_reads = 0;
  for (int s = 0; s < n_storages; s++)
    n_reads += lives[s].n_reads;
  *out = (struct sw_relayouts){.n_ops = n_ops, .n_storages = n_storages, .n_steps = p->steps.n};
  out->copy = SW_NEW_N(job->arena, struct sw_relayout_copy, n_reads + 1);
  for (int s = 0; s < n_storages; s++) {
    const struct sw_life *l = &lives[s];
    const struct sw_storage *storage = &p->storages.v[s];
    if (barred[s] || storage->kind != SW_STORAGE_TEMPORARY || !storage->layout || l->kernel < 0 || l->by_host ||
        l->n_writes != 1 || !l->n_reads || l->touch[0].operand >= 0 || !sw_follows_slices(&p->ops.v[l->touch[0].op]))
      continue;
    struct group g = {.arena = sw_arena_new(scratch, 0), .p = p};
    if (collect(&g, l, best) && 2 * sw_layout_bytes(storage->layout) / g.source.cores <= o->lx_bytes &&
        (!best || pays(&g, l, storage->layout)))
      insert(job, p, s, &g, scratch, span, &around, out);
    sw_arena_free(g.arena);
  }
  if (out->n) {
    out->kernels = SW_NEW_N(job->arena, struct sw_ops, plan->kernels.n);
    for (int k = 0; k < plan->kernels.n; k++)
      memcpy(&out->kernels[k].of, &plan->kernels.v[k].ops, sizeof out->kernels[k].of);
    out->steps = p->steps.v;
    sw_insert_around(job, p, plan, &around);
  }
  sw_arena_free(scratch);
}

void sw_remove_relayouts(struct sw_program *p, struct sw_plan *plan, struct sw_relayouts *r)
{
  p->ops.n = r->n_ops;
  for (int i = 0; i < p->ops.n; i++)
    for (int k = 0; k < p->ops.v[i].n_in; k++)
      if (p->ops.v[i].in[k].storage >= r->n_storages)
        p->ops.v[i].in[k].storage = r->copy[p->ops.v[i].in[k].storage - r->n_storages].source;
  p->storages.n = r->n_storages;
  p->steps.v = r->steps;
  p->steps.n = p->steps.cap = r->n_steps;
  for (int k = 0; k < plan->kernels.n; k++)
    memcpy(&plan->kernels.v[k].ops, &r->kernels[k].of, sizeof r->kernels[k].of);
  r->removed = true;
}
