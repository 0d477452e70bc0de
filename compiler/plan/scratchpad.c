/* Who lives in the scratchpad: eligibility, core-division agreement, in-place edges, and the placement problem that
 * solver/place answers (scratchpad.md sections 3 to 5).
 *
 * Differences from the reference, all on the safe side: nothing in LX crosses a kernel border (superdsc.md M1: what a
 * bundle finds in a scratchpad is undefined), and a storage is in LX only if every access to it covers it whole, dim by
 * dim, and gives every core what that core wrote. In profile best the list of operations is wider and the placement is
 * exact. Example, softmax [512,1024] on one core: max 2048 bytes at 0, sub and exp at 2048 (exp in sub's place), sum
 * at 0. */
#include "compiler/plan/scratchpad.h"

#include "base/options.h"
#include "compiler/plan/liveness.h"
#include "solver/place/place.h"

#include <stdlib.h>
#include <string.h>

static const char *const reason_texts[] = {
#define X(id, text, means) text,
    SW_LX_REASONS(X)
#undef X
};

const char *sw_lx_reason_means(const char *text)
{
  static const char *const meanings[] = {
#define X(id, text, means) means,
      SW_LX_REASONS(X)
#undef X
  };
  for (size_t i = 0; i < sizeof meanings / sizeof *meanings; i++)
    if (!strncmp(text, reason_texts[i], strlen(reason_texts[i])))
      return meanings[i];
  return NULL;
}

struct resident {
  bool may;
  bool copied;     /* a graph input or output: it needs a copy at the border */
  const char *why; /* not, with detail */
  int64_t bytes;   /* per core */
};

struct planner {
  struct sw_job *job;
  const struct sw_options *o;
  struct sw_program *p;
  struct sw_plan *plan;
  struct sw_life *lives;
  struct resident *r; /* per storage */
  bool copy_inputs;
  int64_t budget;     /* of the placer, for all stretches of time */
};

/* -- operations -- */

/* What the reference lets write into LX (scratchpad.md 4.1): names of its operations. */
static bool reference_allows(const struct sw_program *p, const struct sw_op *op)
{
  const char *node = op->nodes.n == 1 ? p->graph->nodes.v[op->nodes.v[0]].target : "";
  bool other_name = !strncmp(node, "aten.pow", 8) || !strncmp(node, "aten.copy", 9);
  switch (other_name ? SW_N_DEVICE_OPS : op->op) { /* a power is lowered to mul, a copy is no clone */
  case SW_OP_MAX:
  case SW_OP_MAXIMUM:
  case SW_OP_SUM:
  case SW_OP_EXP:
  case SW_OP_SUB:
  case SW_OP_MUL:
  case SW_OP_MEAN:
  case SW_OP_ADD:
  case SW_OP_RSQRT:
  case SW_OP_NEG:
  case SW_OP_MATMUL:
  case SW_OP_DIV:
  case SW_OP_SILU: return true;
  case SW_OP_IDENTITY: return op->role == SW_ROLE_CLONE || op->role == SW_ROLE_PLAIN;
  default: return false;
  }
}

/* The same for what they write; the statistics of a layer norm have a form of their own. */
static bool may_write(const struct sw_op *op)
{
  return sw_follows_slices(op) && op->op != SW_OP_EXX2 && op->op != SW_OP_LAYERNORMSCALE && op->role != SW_ROLE_WRITE &&
         op->role != SW_ROLE_PADDING && op->role != SW_ROLE_CONVERSION;
}

static bool reads_through_index(const struct sw_op *op, int storage)
{
  for (int i = 0; i < op->n_in; i++) {
    int row = op->in[i].index_input;
    if (row >= 0 && (op->in[i].storage == storage || op->in[row].storage == storage))
      return true;
  }
  return op->out.index_input >= 0;
}

/* -- eligibility -- */

/* Ticks at which it is touched; an op may touch it through several operands. */
static int uses_of(const struct sw_life *l)
{
  int n = l->n > 0;
  for (int t = 1; t < l->n; t++)
    n += l->touch[t].tick != l->touch[t - 1].tick;
  return n;
}

/* What rules out LX by the ops that read it. */
static enum sw_lx_reason check_readers(const struct planner *x, int s)
{
  const struct sw_life *l = &x->lives[s];
  for (int t = 0; t < l->n; t++)
    if (l->touch[t].operand >= 0 && x->p->ops.v[l->touch[t].op].op == SW_OP_RESTICKIFY)
      return SW_LX_RESTICKIFY_REASON;
  for (int t = 0; t < l->n; t++)
    if (reads_through_index(&x->p->ops.v[l->touch[t].op], s))
      return SW_LX_INDEX_REASON;
  for (int t = 0; t < l->n; t++)
    if (x->p->ops.v[l->touch[t].op].plan->dynamic_loop)
      return SW_LX_PARTIAL_REASON; /* it is not known how much of it a core has */
  for (int t = 0; t < l->n; t++)
    if (!sw_follows_slices(&x->p->ops.v[l->touch[t].op]))
      return SW_LX_NOT_REWRITABLE_REASON;
  if (l->by_host)
    return SW_LX_EXTERN_REASON;
  return l->kernel < 0 ? SW_LX_KERNELS_REASON : SW_LX_FITS;
}

/* Graph inputs (scratchpad.md 4.2). */
static enum sw_lx_reason check_input(const struct planner *x, int s)
{
  const struct sw_life *l = &x->lives[s];
  enum sw_storage_kind kind = x->p->storages.v[s].kind;
  if (!x->copy_inputs || kind == SW_STORAGE_CONSTANT || kind == SW_STORAGE_SCALAR)
    return SW_LX_INPUT_REASON;
  if (l->n_writes)
    return SW_LX_MUTATION_REASON;
  if (uses_of(l) < 2)
    return SW_LX_UNREAD_REASON;
  return check_readers(x, s);
}

static bool is_returned_whole(const struct planner *x, int s)
{
  const struct sw_storage *storage = &x->p->storages.v[s];
  for (int k = 0; k < x->p->outputs.n; k++) {
    const struct sw_view *v = &x->p->outputs.v[k].view;
    if (!x->p->outputs.v[k].is_tensor || v->storage != s)
      continue;
    if (v->offset || v->rank != storage->rank || memcmp(v->size, storage->size, sizeof *v->size * (size_t)v->rank) ||
        memcmp(v->stride, storage->stride, sizeof *v->stride * (size_t)v->rank))
      return false;
  }
  return true;
}

/* Whether a relayout writes or reads it. */
static bool is_moved(const struct planner *x, int s)
{
  for (int t = 0; t < x->lives[s].n; t++)
    if (x->p->ops.v[x->lives[s].touch[t].op].plan->relayout)
      return true;
  return false;
}

/* The checks that do not look at cores, in the reference's order. */
static enum sw_lx_reason check_storage(const struct planner *x, int s)
{
  const struct sw_life *l = &x->lives[s];
  const struct sw_storage *storage = &x->p->storages.v[s];
  if (!x->o->lx)
    return SW_LX_OFF_REASON;
  if (!storage->layout || storage->host_only)
    return SW_LX_UNSIZED_REASON;
  if (storage->kind != SW_STORAGE_TEMPORARY)
    return check_input(x, s);
  if (!l->n_writes || l->touch[0].operand >= 0)
    return SW_LX_OP_REASON;
  bool moved = is_moved(x, s);
  for (int t = 0; t < l->n; t++) {
    const struct sw_op *op = &x->p->ops.v[l->touch[t].op];
    if (l->touch[t].operand < 0 &&
        (!may_write(op) || (x->o->profile == SW_PROFILE_TORCH_SPYRE && !moved && !reference_allows(x->p, op))))
      return SW_LX_OP_REASON;
  }
  if (l->n_writes > 1)
    return SW_LX_MUTATION_REASON;
  enum sw_lx_reason why = check_readers(x, s);
  if (why == SW_LX_FITS && l->outside && !is_returned_whole(x, s))
    why = SW_LX_OUTPUT_VIEW_REASON;
  return why;
}

bool sw_splits_reduction(const struct sw_op *op)
{
  for (int v = op->n_written; v < op->n_loops; v++)
    if (op->plan->split[v] > 1)
      return true;
  return false;
}

/* Whether all accesses give every core the same part, and how much that is. `why` has the detail. */
static enum sw_lx_reason check_cores(const struct planner *x, int s, int64_t *bytes, const char **why)
{
  const struct sw_life *l = &x->lives[s];
  struct sw_core_view first = {0}, view;
  struct sw_arena *a = x->job->arena;
  for (int t = 0; t < l->n; t++) {
    const struct sw_op *op = &x->p->ops.v[l->touch[t].op];
    bool is_write = l->touch[t].operand < 0;
    if (is_write && sw_splits_reduction(op)) {
      *why = sw_arena_printf(a, "%s: K-split writer '%s'", reason_texts[SW_LX_CORES_REASON], op->name);
      return SW_LX_CORES_REASON;
    }
    enum sw_lx_reason reason = sw_core_view(x->p, op, l->touch[t].operand, &view);
    if (reason != SW_LX_FITS)
      return reason;
    int64_t covered = 1;
    for (int d = 0; d < view.rank; d++)
      covered *= view.factor[d];
    if (covered != view.cores) {
      *why = sw_arena_printf(a, "%s: broadcast read on '%s': view covers %lld cores but op runs %d",
                             reason_texts[SW_LX_CORES_REASON], op->name, (long long)covered, view.cores);
      return SW_LX_CORES_REASON;
    }
    if (t == 0)
      first = view;
    else if (!sw_core_view_equal(&first, &view)) {
      *why = sw_arena_printf(a, "%s: '%s' and '%s' give different parts to the cores", reason_texts[SW_LX_CORES_REASON],
                             x->p->ops.v[l->touch[0].op].name, op->name);
      return SW_LX_CORES_REASON;
    }
  }
  *bytes = sw_layout_bytes(x->p->storages.v[s].layout) / (first.cores ? first.cores : 1);
  return SW_LX_FITS;
}

static void judge(struct planner *x, int s)
{
  struct resident *r = &x->r[s];
  enum sw_lx_reason why = check_storage(x, s);
  if (why == SW_LX_FITS)
    why = check_cores(x, s, &r->bytes, &r->why);
  if (why == SW_LX_FITS && x->lives[s].first == x->lives[s].last)
    why = SW_LX_UNREAD_REASON;
  r->copied = x->lives[s].outside;
  if (why == SW_LX_FITS && r->copied) {
    const struct sw_touch *t = &x->lives[s].touch[0];
    struct sw_op copy;
    if (!sw_boundary_copy(x->job->arena, x->p, &x->p->ops.v[t->op], t->operand, &copy))
      why = SW_LX_NOT_REWRITABLE_REASON;
  }
  r->may = why == SW_LX_FITS;
  if (!r->may && !r->why)
    r->why = reason_texts[why];
}

/* -- in-place edges -- */

static bool same_place(const struct sw_access *a, const struct sw_access *b, int n_loops)
{
  return a->offset == b->offset && a->index_input < 0 && b->index_input < 0 &&
         !memcmp(a->step, b->step, sizeof *a->step * (size_t)n_loops);
}

/* Whether the output of op may take the place of input i: every element is read where it is then written, by the core
 * that writes it, and the input is read for the last time and not by another operand. */
static bool may_reuse(const struct planner *x, const struct sw_op *op, int tick, int i)
{
  int parent = op->in[i].storage, child = op->out.storage;
  if (parent == child || !x->r[parent].may || !x->r[child].may || sw_device_op_is_reduction(op->op) ||
      op->plan->relayout || (x->o->profile == SW_PROFILE_TORCH_SPYRE && is_moved(x, parent)) ||
      x->lives[parent].carried || x->lives[child].carried ||
      x->lives[parent].last != tick || x->lives[child].first != tick || x->r[parent].bytes != x->r[child].bytes)
    return false;
  for (int k = 0; k < op->n_in; k++)
    if (op->in[k].storage == parent && !same_place(&op->in[k], &op->out, op->n_loops))
      return false;
  for (int k = 0; k < i; k++)
    if (op->in[k].storage == parent)
      return false; /* declared by the earlier operand */
  return sw_layout_equal(x->p->storages.v[parent].layout, x->p->storages.v[child].layout);
}

/* -- placement -- */

enum { LEAST_BUDGET = 1000000 }; /* for a stretch of time when others have spent it all */

/* The problem of one stretch of time that nothing crosses: outputs of ops in their order, then inputs. */
static struct sw_place_problem problem_of(struct planner *x, const int *storages, int n, int *buffer_of)
{
  struct sw_arena *a = x->job->arena;
  struct sw_place_problem p = {.name = "lx", .capacity = x->o->lx_bytes, .alignment = 128};
  for (int k = 0; k < n; k++) {
    int s = storages[k];
    const struct sw_life *l = &x->lives[s];
    const struct sw_storage *storage = &x->p->storages.v[s];
    int uses = uses_of(l);
    struct sw_place_buffer *b = sw_place_add(x->job, &p, storage->name, x->r[s].bytes, l->first, l->last + 1,
                                             sw_layout_bytes(storage->layout) * (l->turns - x->r[s].copied));
    b->uses = uses;
    b->is_input = storage->kind != SW_STORAGE_TEMPORARY;
    buffer_of[s] = k + 1;
  }
  for (int k = 0; k < n; k++) {
    const struct sw_touch *t = &x->lives[storages[k]].touch[0];
    const struct sw_op *op = &x->p->ops.v[t->op];
    struct sw_place_buffer *b = &p.buffers.v[k];
    if (b->is_input)
      continue;
    b->parents = SW_NEW_N(a, int, op->n_in);
    for (int i = 0; i < op->n_in; i++)
      if (may_reuse(x, op, t->tick, i))
        b->parents[b->n_parents++] = buffer_of[op->in[i].storage] - 1;
  }
  return p;
}

static enum sw_rc place_stretch(struct planner *x, const int *storages, int n, int *buffer_of)
{
  struct sw_job *job = x->job;
  struct sw_place_problem p = problem_of(x, storages, n, buffer_of);
  struct sw_place_options options = {.placer = x->o->lx_placer,
                                     .budget = x->budget > LEAST_BUDGET ? x->budget : LEAST_BUDGET,
                                     .no_peak = true};
  struct sw_place_result *result;
  SW_TRY(sw_place_validate(job, &p));
  SW_TRY(sw_place_solve(job, &p, &options, &result));
  x->budget -= result->work;
  for (int k = 0; k < n; k++) {
    struct resident *r = &x->r[storages[k]];
    buffer_of[storages[k]] = 0;
    if (!result->address || result->address[k] < 0) {
      r->may = false;
      r->why = result->address ? result->reason[k] : reason_texts[SW_LX_ROOM_REASON];
      continue;
    }
    struct sw_place *place = SW_NEW(job->arena, struct sw_place);
    *place = (struct sw_place){.kind = SW_PLACE_LX, .offset = result->address[k], .bytes = r->bytes};
    x->p->storages.v[storages[k]].place = place;
    if (place->offset + place->bytes > x->plan->lx_peak_bytes)
      x->plan->lx_peak_bytes = place->offset + place->bytes;
  }
  return SW_OK;
}

struct ordered {
  int first, is_input, operand, storage;
};

/* By first tick; of one tick outputs before inputs, inputs as their reader names them. */
static int by_first_tick(const void *a, const void *b)
{
  const struct ordered *x = a, *y = b;
  return x->first != y->first         ? x->first - y->first
         : x->is_input != y->is_input ? x->is_input - y->is_input
                                      : x->operand - y->operand;
}

/* Cuts time where nothing crosses and places every stretch. */
static enum sw_rc place_all(struct planner *x)
{
  struct sw_arena *a = sw_arena_new(x->job->arena, SIZE_MAX);
  struct ordered *order = SW_NEW_N(a, struct ordered, x->p->storages.n);
  int n = 0, *list = SW_NEW_N(a, int, x->p->storages.n), *buffer_of = SW_NEW_N(a, int, x->p->storages.n);
  for (int s = 0; s < x->p->storages.n; s++)
    if (x->r[s].may)
      order[n++] = (struct ordered){x->lives[s].first, x->p->storages.v[s].kind != SW_STORAGE_TEMPORARY,
                                    x->lives[s].touch[0].operand, s};
  qsort(order, (size_t)n, sizeof *order, by_first_tick);
  enum sw_rc rc = SW_OK;
  for (int from = 0, to; from < n && rc == SW_OK; from = to) {
    int last = -1, k = 0;
    for (to = from; to < n && (to == from || order[to].first <= last); to++)
      if (x->lives[order[to].storage].last > last)
        last = x->lives[order[to].storage].last;
    for (int is_input = 0; is_input < 2; is_input++)
      for (int i = from; i < to; i++)
        if (order[i].is_input == is_input)
          list[k++] = order[i].storage;
    rc = place_stretch(x, list, k, buffer_of);
  }
  sw_arena_free(a);
  return rc;
}

/* Copies for those inputs and outputs that are in LX now. */
static void copy_at_borders(struct planner *x, struct sw_arena *scratch)
{
  SW_VEC(struct sw_boundary) copies = {0};
  for (int s = 0; s < x->p->storages.n; s++)
    if (x->r[s].may && x->r[s].copied) {
      const struct sw_touch *t = &x->lives[s].touch[0];
      *SW_PUSH(scratch, &copies) = (struct sw_boundary){s, t->op, t->operand};
    }
  sw_insert_boundary_copies(x->job, x->p, x->plan, x->lives, copies.v, copies.n);
}

static void place_rest_in_hbm(struct planner *x, int n_judged)
{
  for (int s = 0; s < x->p->storages.n; s++) {
    struct sw_storage *storage = &x->p->storages.v[s];
    if (!storage->layout || storage->place)
      continue;
    struct sw_place *place = SW_NEW(x->job->arena, struct sw_place);
    *place = (struct sw_place){.bytes = sw_layout_bytes(storage->layout),
                               .not_in_lx = s < n_judged ? x->r[s].why : reason_texts[SW_LX_UNREAD_REASON]};
    storage->place = place;
  }
}

/* One attempt with these relayouts, which are taken out again if one of them has no room. */
static enum sw_rc place_with(struct planner *x, struct sw_arena *scratch, struct sw_relayouts *moves, bool *barred)
{
  struct sw_program *p = x->p;
  x->lives = sw_lives_make(scratch, p);
  x->r = SW_NEW_N(scratch, struct resident, p->storages.n);
  for (int s = 0; s < p->storages.n; s++) {
    p->storages.v[s].place = NULL;
    judge(x, s);
  }
  int n_judged = p->storages.n, homeless = 0;
  SW_TRY(place_all(x));
  for (int k = 0; k < moves->n; k++)
    if (!x->r[moves->copy[k].source].may || !x->r[moves->copy[k].destination].may) {
      barred[moves->copy[k].source] = true;
      homeless++;
    }
  if (homeless) {
    sw_remove_relayouts(p, x->plan, moves);
    x->plan->lx_peak_bytes = 0;
    return SW_OK;
  }
  copy_at_borders(x, scratch);
  place_rest_in_hbm(x, n_judged);
  const struct sw_life *lives = sw_lives_make(scratch, p);
  if (x->o->profile == SW_PROFILE_TORCH_SPYRE)
    sw_align_loops(x->job->arena, p, lives);
  return sw_plan_pools(x->job, x->o, p, lives, x->plan);
}

enum sw_rc sw_plan_places(struct sw_job *job, const struct sw_options *o, struct sw_program *p, struct sw_plan *plan,
                          struct sw_lx_copies copies)
{
  enum { MOST_ATTEMPTS = 8 };
  struct sw_arena *all = sw_arena_new(job->arena, SIZE_MAX);
  bool *barred = SW_NEW_N(all, bool, p->storages.n), again = true;
  enum sw_rc rc = SW_OK;
  for (int n = 0; again && rc == SW_OK; n++) {
    struct sw_arena *scratch = sw_arena_new(all, SIZE_MAX);
    struct planner x = {.job = job, .o = o, .p = p, .plan = plan, .copy_inputs = copies.inputs, .budget = o->budget};
    struct sw_relayouts moves = {0};
    if (copies.relayouts && o->lx && n < MOST_ATTEMPTS)
      sw_insert_relayouts(job, o, p, plan, barred, &moves);
    rc = place_with(&x, scratch, &moves, barred);
    again = moves.removed;
    sw_arena_free(scratch);
  }
  sw_arena_free(all);
  return rc;
}
