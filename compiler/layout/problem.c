/* From candidates to an assignment problem and back to words. Reference: assign-problem.md section 6.
 *
 *   variable   a storage, its labels the candidates in order; loaded storages first, then in order of first writing
 *   unary      traffic of its writers, impossible where one of them can't write that layout
 *   group      a storage and those who read it between two writes. A class is what one reader wants: for each label of
 *              the storage "as it is", "with the stick on dim d", or impossible. Readers that want the same share a
 *              copy in mode shared; in mode per-edge every read is a group of its own
 *   edge       traffic of a reader for each pair of labels, and where a copy moves the stick itself the cost of that
 *
 * Example: x is read by a sum over its rows and by an add in its own order. Under label "stick on dim 1" the add wants
 * class (as it is | to 1), under "stick on dim 0" class (to 0 | as it is). */
#include "compiler/layout/choose.h"

#include <math.h>
#include <string.h>

struct building {
  struct sw_choosing *c;
  struct sw_problem *q;
  int64_t **unary;  /* per storage */
  int *open_group;  /* per storage: the group that reads now belong to, -1 */
};

static struct sw_op *op_at(const struct sw_choosing *c, int op)
{
  return &c->p->ops.v[op];
}

static void add_cost(int64_t *to, int64_t cost)
{
  *to = *to == SW_ASSIGN_INF || cost == SW_ASSIGN_INF ? SW_ASSIGN_INF : *to + cost;
}

static bool same_access(const struct sw_op *op, int a, int b)
{
  const struct sw_access *x = &op->in[a], *y = &op->in[b];
  return x->storage == y->storage && x->offset == y->offset && x->index_input == y->index_input &&
         !memcmp(x->step, y->step, sizeof x->step);
}

/* An operand that reads what an earlier one of the same op reads, and needs the same of it. */
int sw_layout__twin(const struct sw_choosing *c, const struct sw_op *op, int input)
{
  struct sw_need need = sw_layout__need(c, op, input);
  for (int k = 0; k < input; k++) {
    struct sw_need other = sw_layout__need(c, op, k);
    if (same_access(op, k, input) && other.kind == need.kind && other.loop == need.loop)
      return k;
  }
  return input;
}

static bool same_outcomes(const struct sw_outcome *a, const struct sw_outcome *b, int n)
{
  for (int i = 0; i < n; i++)
    if (a[i].kind != b[i].kind || a[i].dim != b[i].dim || a[i].front != b[i].front || a[i].load != b[i].load ||
        a[i].slice || b[i].slice || a[i].select || b[i].select)
      return false;
  return true;
}

static int64_t whole_ns(double ns)
{
  return ns > 9e14 ? (int64_t)9e14 : (int64_t)(ns + 0.5);
}

/* Traffic of one reader, by how much each pair of labels is worse than the best one. A stick that moves inside the op
 * is read and written by the move; what is lost is the place of both in the scratchpads. */
static void add_traffic(struct building *b, struct sw_reading *x, int p, int r,
                        struct sw_outcome all[SW_MAX_LABELS][SW_MAX_LABELS])
{
  struct sw_choosing *c = b->c;
  const sw_layout_list *from = &c->candidates[p], *to = &c->candidates[r];
  double ns[SW_MAX_LABELS][SW_MAX_LABELS], least = INFINITY;
  bool any = false;
  for (int i = 0; i < from->n; i++)
    for (int j = 0; j < to->n; j++) {
      const struct sw_outcome *o = &all[j][i];
      ns[i][j] = o->read;
      if (o->move)
        ns[i][j] = sw_layout__loss(c, r, &to->v[j]) + (o->kind == SW_IN_OP ? sw_layout__loss(c, p, &from->v[i]) : 0);
      if (o->kind != SW_IMPOSSIBLE && b->unary[r][j] != SW_ASSIGN_INF)
        least = fmin(least, ns[i][j]);
    }
  int64_t *traffic = SW_NEW_N(c->arena, int64_t, from->n * to->n);
  for (int i = 0; i < from->n; i++)
    for (int j = 0; j < to->n; j++) {
      traffic[i * to->n + j] = whole_ns(fmax(0, ns[i][j] - least));
      any |= traffic[i * to->n + j] > 0;
    }
  if (any)
    x->traffic = traffic;
}

static int class_of(struct building *b, struct sw_group *g, const struct sw_outcome *wanted, int n)
{
  struct sw_choosing *c = b->c;
  bool free = true;
  for (int i = 0; i < n; i++)
    free = free && wanted[i].kind == SW_FREE;
  if (free)
    return -1;
  for (int t = 0; t < g->classes.n; t++)
    if (same_outcomes(g->classes.v[t].wanted, wanted, n))
      return t;
  struct sw_class *t = SW_PUSH(c->arena, &g->classes);
  t->wanted = sw_arena_copy(c->arena, wanted, (size_t)n, sizeof *wanted);
  t->conv = SW_NEW_N(c->arena, int64_t, n);
  t->conversion = -1;
  for (int i = 0; i < n; i++) {
    t->conv[i] = wanted[i].kind == SW_IMPOSSIBLE ? SW_ASSIGN_INF : wanted[i].kind == SW_CONVERT ? wanted[i].cost : 0;
    if (wanted[i].kind == SW_CONVERT && !wanted[i].load)
      t->conv[i] += whole_ns(sw_layout__loss(c, g->storage, &c->candidates[g->storage].v[i]));
  }
  return g->classes.n - 1;
}

static int group_for(struct building *b, int storage)
{
  struct sw_choosing *c = b->c;
  if (c->o->sharing && b->open_group[storage] >= 0)
    return b->open_group[storage];
  *SW_PUSH(c->arena, &b->q->groups) = (struct sw_group){.storage = storage};
  return b->open_group[storage] = b->q->groups.n - 1;
}

/* No label of the other end goes with this one: what is in the way of the first that is tried. */
static void drop_label(struct building *b, int op_i, int input, int storage, const struct sw_layout *l,
                       const struct sw_layout *from, const struct sw_layout *to, const struct sw_outcome *o)
{
  struct sw_choosing *c = b->c;
  const struct sw_op *op = op_at(c, op_i);
  struct sw_drop d = {SW_DROP_IMPOSSIBLE, storage, sw_layout__stick_dim(&c->p->storages.v[storage], l), l, op, input, o->why};
  if (!sw_layout__is_dropped(c, &d))
    sw_layout__drop(c, &d, sw_layout__why(c, op, input, from, to, o));
}

static void drop_hopeless(struct building *b, int op_i, int input,
                          struct sw_outcome all[SW_MAX_LABELS][SW_MAX_LABELS])
{
  struct sw_choosing *c = b->c;
  int p = op_at(c, op_i)->in[input].storage, r = op_at(c, op_i)->out.storage;
  const sw_layout_list *from = &c->candidates[p], *to = &c->candidates[r];
  bool any = false; /* label of r that can be written */
  for (int j = 0; j < to->n; j++)
    any |= b->unary[r][j] != SW_ASSIGN_INF;
  for (int i = 0; i < from->n && any; i++) {
    int bad = -1;
    bool goes = false;
    for (int j = 0; j < to->n && !goes; j++) {
      if (b->unary[r][j] == SW_ASSIGN_INF)
        continue;
      goes = all[j][i].kind != SW_IMPOSSIBLE;
      bad = bad < 0 ? j : bad;
    }
    if (!goes)
      drop_label(b, op_i, input, p, &from->v[i], &from->v[i], &to->v[bad], &all[bad][i]);
  }
  for (int j = 0; j < to->n; j++) {
    bool goes = b->unary[r][j] == SW_ASSIGN_INF;
    for (int i = 0; i < from->n && !goes; i++)
      goes = all[j][i].kind != SW_IMPOSSIBLE;
    if (!goes)
      drop_label(b, op_i, input, r, &to->v[j], &from->v[0], &to->v[j], &all[j][0]);
  }
}

/* One operand: what it wants of its storage for each label of the output. */
static void add_reading(struct building *b, int op_i, int input, const struct sw_seen *out_seen)
{
  struct sw_choosing *c = b->c;
  const struct sw_op *op = op_at(c, op_i);
  int p = op->in[input].storage, r = op->out.storage;
  const sw_layout_list *from = &c->candidates[p], *to = &c->candidates[r];
  struct sw_outcome all[SW_MAX_LABELS][SW_MAX_LABELS]; /* [label of r][label of p] */
  bool any_move = false;
  for (int i = 0; i < from->n; i++) {
    struct sw_seen seen = sw_layout__see(&from->v[i], op, &op->in[input], c->rule);
    for (int j = 0; j < to->n; j++) {
      if (b->unary[r][j] == SW_ASSIGN_INF)
        all[j][i] = (struct sw_outcome){.kind = SW_FREE, .dim = -1, .front = -1}; /* the label is out anyway */
      else
        all[j][i] = sw_layout__outcome(c, op, input, &from->v[i], &seen, &to->v[j], &out_seen[j]);
      any_move = any_move || all[j][i].move;
    }
  }
  if (p == r) {
    for (int i = 0; i < to->n; i++) {
      enum sw_outcome_kind kind = all[i][i].kind;
      add_cost(&b->unary[r][i], kind == SW_IMPOSSIBLE ? SW_ASSIGN_INF : all[i][i].cost + all[i][i].move);
    }
    *SW_PUSH(c->arena, &b->q->reads) = (struct sw_read){op_i, input, -1, -1};
    return;
  }
  drop_hopeless(b, op_i, input, all);
  int at = group_for(b, p);
  struct sw_group *g = &b->q->groups.v[at];
  struct sw_reading *x = SW_PUSH(c->arena, &g->readings);
  x->op = op_i;
  x->input = input;
  x->wants = SW_NEW_N(c->arena, int, to->n);
  for (int j = 0; j < to->n; j++)
    x->wants[j] = class_of(b, g, all[j], from->n);
  *SW_PUSH(c->arena, &b->q->reads) = (struct sw_read){op_i, input, at, g->readings.n - 1};
  add_traffic(b, x, p, r, all);
  if (!any_move && !x->traffic)
    return;
  int64_t *cost = SW_NEW_N(c->arena, int64_t, from->n * to->n);
  for (int i = 0; i < from->n; i++)
    for (int j = 0; j < to->n; j++)
      cost[i * to->n + j] = all[j][i].move + (x->traffic ? x->traffic[i * to->n + j] : 0);
  *SW_PUSH(c->arena, &b->q->moves) = (struct sw_move){op_i, p, r, cost};
}

static void add_op(struct building *b, int op_i)
{
  struct sw_choosing *c = b->c;
  const struct sw_op *op = op_at(c, op_i);
  int r = op->out.storage;
  const sw_layout_list *to = &c->candidates[r];
  struct sw_seen out_seen[SW_MAX_LABELS];
  double writing[SW_MAX_LABELS], least = INFINITY;
  for (int j = 0; j < to->n; j++) {
    out_seen[j] = sw_layout__see(&to->v[j], op, &op->out, c->rule);
    enum sw_reason why = sw_layout__unwritable(c, op, &to->v[j], &out_seen[j]);
    if (why) {
      int stick = sw_layout__stick_dim(&c->p->storages.v[r], &to->v[j]);
      sw_layout__drop(c, &(struct sw_drop){SW_DROP_IMPOSSIBLE, r, stick, &to->v[j], op, -1, why},
                      sw_layout__why_unwritable(c, op, &to->v[j], why));
      b->unary[r][j] = SW_ASSIGN_INF;
    }
    writing[j] = sw_layout__write(c, op, &to->v[j], &out_seen[j]);
    if (b->unary[r][j] != SW_ASSIGN_INF)
      least = fmin(least, writing[j]);
  }
  for (int j = 0; j < to->n; j++) {
    int64_t more = whole_ns(fmax(0, writing[j] - least));
    b->q->writing[r][j] += more;
    add_cost(&b->unary[r][j], more);
  }
  for (int k = 0; k < op->n_in; k++)
    if (sw_layout__need(c, op, k).kind != SW_NEED_NONE && sw_layout__twin(c, op, k) == k)
      add_reading(b, op_i, k, out_seen);
  b->open_group[r] = -1;
}

static void add_variable(struct building *b, int storage)
{
  struct sw_choosing *c = b->c;
  int n = c->candidates[storage].n;
  if (!n || b->q->variable[storage] >= 0)
    return;
  b->q->variable[storage] = b->q->n_variables++;
  b->q->storage[b->q->variable[storage]] = storage;
  b->unary[storage] = SW_NEW_N(c->arena, int64_t, n);
  b->q->writing[storage] = SW_NEW_N(c->arena, int64_t, n);
}

const char *sw_layout__label(struct sw_arena *a, const struct sw_layout *l)
{
  const char *text = sw_layout_text(a, l);
  return l->arrangement == SW_EA_STANDARD ? text
                                          : sw_arena_printf(a, "%s/%s", text, sw_arrangement_name(l->arrangement));
}

static void hand_over(struct building *b)
{
  struct sw_choosing *c = b->c;
  struct sw_problem *q = b->q;
  struct sw_assign_problem *a = q->assign;
  for (int v = 0; v < q->n_variables; v++) {
    int s = q->storage[v], n = c->candidates[s].n;
    const char **labels = SW_NEW_N(c->arena, const char *, n);
    for (int i = 0; i < n; i++)
      labels[i] = sw_layout__label(c->arena, &c->candidates[s].v[i]);
    sw_assign_add_variable(a, c->p->storages.v[s].name, n, labels, b->unary[s]);
  }
  for (int i = 0; i < q->moves.n; i++) {
    const struct sw_move *m = &q->moves.v[i];
    int table = sw_assign_add_table(a, c->candidates[m->from].n, c->candidates[m->to].n, m->cost);
    sw_assign_add_edge(a, q->variable[m->from], q->variable[m->to], table);
  }
  for (int i = 0; i < q->groups.n; i++) {
    struct sw_group *g = &q->groups.v[i];
    int rows = c->candidates[g->storage].n, cols = g->classes.n;
    if (!cols)
      continue;
    int64_t *conv = SW_NEW_N(c->arena, int64_t, rows * cols);
    for (int r = 0; r < rows; r++)
      for (int t = 0; t < cols; t++)
        conv[r * cols + t] = g->classes.v[t].conv[r];
    int at = sw_assign_add_group(a, q->variable[g->storage], cols, NULL, sw_assign_add_table(a, rows, cols, conv));
    *SW_PUSH(c->arena, &q->handed) = i;
    for (int k = 0; k < g->readings.n; k++)
      sw_assign_add_reader(a, at, q->variable[op_at(c, g->readings.v[k].op)->out.storage], g->readings.v[k].wants);
  }
}

void sw_layout__build(struct sw_choosing *c, struct sw_problem *q)
{
  struct building b = {.c = c, .q = q};
  *q = (struct sw_problem){.assign = sw_assign_new(c->job->arena)};
  q->assign->name = c->p->graph ? c->p->graph->name : "";
  q->assign->mode = c->o->sharing ? SW_ASSIGN_SHARED : SW_ASSIGN_PER_EDGE;
  q->variable = SW_NEW_N(c->arena, int, c->n_storages + 1);
  q->storage = SW_NEW_N(c->arena, int, c->n_storages + 1);
  q->writing = SW_NEW_N(c->arena, int64_t *, c->n_storages + 1);
  b.unary = SW_NEW_N(c->arena, int64_t *, c->n_storages + 1);
  b.open_group = SW_NEW_N(c->arena, int, c->n_storages + 1);
  for (int s = 0; s < c->n_storages; s++)
    q->variable[s] = b.open_group[s] = -1;
  for (int s = 0; s < c->n_storages; s++)
    if (c->p->storages.v[s].kind != SW_STORAGE_TEMPORARY)
      add_variable(&b, s);
  for (int i = 0; i < c->p->steps.n; i++) {
    const struct sw_step *step = &c->p->steps.v[i];
    if (!step->is_host) {
      add_variable(&b, op_at(c, step->index)->out.storage);
      add_op(&b, step->index);
      continue;
    }
    const struct sw_host_step *h = &c->p->host_steps.v[step->index];
    for (int r = 0; r < h->results.n; r++)
      if (h->results.v[r].storage >= 0) {
        add_variable(&b, h->results.v[r].storage);
        b.open_group[h->results.v[r].storage] = -1;
      }
  }
  hand_over(&b);
}

/* -- words for a conflict -- */

static void explain_reading(struct sw_choosing *c, const struct sw_reading *x)
{
  const struct sw_op *op = op_at(c, x->op);
  int p = op->in[x->input].storage, r = op->out.storage;
  const struct sw_layout *from = &c->candidates[p].v[0], *to = &c->candidates[r].v[0];
  struct sw_outcome o = {.kind = SW_FREE};
  for (int i = 0; i < c->candidates[p].n && o.kind != SW_IMPOSSIBLE; i++)
    for (int j = 0; j < c->candidates[r].n && o.kind != SW_IMPOSSIBLE; j++) {
      from = &c->candidates[p].v[i];
      to = &c->candidates[r].v[j];
      struct sw_seen seen = sw_layout__see(from, op, &op->in[x->input], c->rule);
      struct sw_seen out = sw_layout__see(to, op, &op->out, c->rule);
      if (!sw_layout__unwritable(c, op, to, &out))
        o = sw_layout__outcome(c, op, x->input, from, &seen, to, &out);
    }
  const char *operand = c->p->storages.v[p].name, *result = c->p->storages.v[r].name;
  struct sw_fault *f =
      sw_fault(c->job, SW_INFEASIBLE, "%s: no mechanism to resolve stick incompatibility of %s (%s%s) and %s (%s%s): %s",
               sw_device_op_name(op->op), operand, sw_layout_text(c->arena, from), c->pinned[p] ? ", pinned" : "", result,
               sw_layout_text(c->arena, to), c->pinned[r] ? ", pinned" : "",
               o.why ? sw_layout__why(c, op, x->input, from, to, &o) : "each choice for one rules the other out");
  f->node = op->name;
  f->tensor = sw_arena_printf(c->job->arena, "%s -> %s", operand, result);
  f->source = op->source;
  f->advice = c->pinned[p] || c->pinned[r] ? "change or drop the pin, or put .contiguous() before this op"
                                           : "put .contiguous() before this op, or change the order of dims";
}

static void explain_variable(struct sw_choosing *c, int storage)
{
  const struct sw_storage *s = &c->p->storages.v[storage];
  for (int i = 0; i < c->p->ops.n; i++) {
    const struct sw_op *op = op_at(c, i);
    bool fits = op->out.storage != storage;
    for (int j = 0; j < c->candidates[storage].n && !fits; j++) {
      struct sw_seen seen = sw_layout__see(&c->candidates[storage].v[j], op, &op->out, c->rule);
      fits = !sw_layout__unwritable(c, op, &c->candidates[storage].v[j], &seen);
    }
    if (fits)
      continue;
    struct sw_seen seen = sw_layout__see(&c->candidates[storage].v[0], op, &op->out, c->rule);
    bool inside = seen.formed && seen.stick.class == SW_STICK_OFFSET;
    struct sw_fault *f = sw_fault(
        c->job, SW_INFEASIBLE, "%s can't write into %s%s: %s", sw_device_op_name(op->op), s->name,
        c->pinned[storage] ? " as it is pinned" : "",
        inside ? sw_arena_printf(c->job->arena, "the write starts at lane %lld of a stick and no other dim can be the stick",
                                 (long long)seen.stick.coord.constant)
               : "no layout of it has a clean stick under this write");
    f->node = op->name;
    f->tensor = s->name;
    f->source = op->source;
    f->advice = c->pinned[storage] ? "change or drop the pin" : "write at a multiple of 64 elements in the last dim";
    return;
  }
  sw_fault(c->job, SW_INFEASIBLE, "%s has no layout that all its writers and readers can use", s->name)->tensor = s->name;
}

struct sw_prospect sw_layout__prospect(const struct sw_choosing *c, const struct sw_group *g, const struct sw_reading *x)
{
  struct sw_prospect is = {.hopeless = true};
  for (int j = 0; j < c->candidates[op_at(c, x->op)->out.storage].n; j++)
    for (int p = 0; p < c->candidates[g->storage].n; p++) {
      bool goes = x->wants[j] < 0 || g->classes.v[x->wants[j]].conv[p] != SW_ASSIGN_INF;
      is.hopeless = is.hopeless && !goes;
      is.can_fail = is.can_fail || !goes;
    }
  return is;
}

/* Readings that no pair of labels allows, whatever the others do. */
static void explain_hopeless(struct sw_choosing *c, const struct sw_problem *q)
{
  for (int i = 0; i < q->groups.n; i++)
    for (int k = 0; k < q->groups.v[i].readings.n; k++)
      if (sw_layout__prospect(c, &q->groups.v[i], &q->groups.v[i].readings.v[k]).hopeless)
        explain_reading(c, &q->groups.v[i].readings.v[k]);
}

/* One fault per pair of the minimal conflict. A group with several readers is in it as a whole: those of its readers
 * are named that are in it too, or else all that can fail. */
void sw_layout__explain(struct sw_choosing *c, const struct sw_problem *q)
{
  const struct sw_assign_conflict *x = q->conflict;
  int before = c->job->faults.n;
  explain_hopeless(c, q);
  if (c->job->faults.n > before)
    return;
  for (int i = 0; x && i < x->groups.n; i++) {
    const struct sw_group *g = &q->groups.v[q->handed.v[x->groups.v[i]]];
    for (int k = 0; k < g->readings.n; k++) {
      int reader = q->variable[op_at(c, g->readings.v[k].op)->out.storage];
      bool named = g->readings.n == 1;
      for (int v = 0; v < x->variables.n && !named; v++)
        named = x->variables.v[v] == reader;
      if (named)
        explain_reading(c, &g->readings.v[k]);
    }
  }
  for (int i = 0; x && i < x->variables.n && c->job->faults.n == before; i++)
    explain_variable(c, q->storage[x->variables.v[i]]);
  for (int i = 0; x && i < x->groups.n && c->job->faults.n == before; i++) {
    const struct sw_group *g = &q->groups.v[q->handed.v[x->groups.v[i]]];
    for (int k = 0; k < g->readings.n; k++)
      if (sw_layout__prospect(c, g, &g->readings.v[k]).can_fail)
        explain_reading(c, &g->readings.v[k]);
  }
  if (c->job->faults.n == before)
    sw_fault(c->job, SW_INFEASIBLE, "no choice of layouts satisfies all ops");
}

/* -- solving -- */

static void report(struct sw_choosing *c, const struct sw_assign_result *r)
{
  struct sw_choice *x = c->choice;
  x->cost = r->labels ? r->cost : 0;
  x->bound = r->bound;
  x->stopped_by = sw_assign_stop_name(r->stopped_by);
  x->status = sw_assign_status_name(r->status);
  x->n_variables = r->stats.variables;
  x->n_labels = r->stats.labels;
  x->n_presolved = r->stats.presolved;
  x->n_islands = r->stats.islands;
  x->n_distinct = r->stats.distinct;
  x->n_eliminated = r->stats.eliminated;
  x->n_glpk_calls = r->stats.glpk_calls;
  x->n_pruned = r->stats.pruned;
  x->n_glpk_nodes = r->stats.glpk_nodes;
  x->work = r->stats.work;
  x->max_width = r->stats.max_width;
}

enum sw_rc sw_layout__solve(struct sw_choosing *c, struct sw_problem *q)
{
  struct sw_assign_options o = sw_assign_defaults();
  struct sw_assign_result *r;
  o.solver = c->o->solver;
  o.beam_width = (int)(c->o->beam_width < 1000000 ? c->o->beam_width : 1000000);
  o.budget = c->o->budget;
  SW_TRY(sw_assign_solve(c->job, q->assign, &o, &r));
  report(c, r);
  q->labels = r->labels;
  if (r->status == SW_ASSIGN_INFEASIBLE) {
    q->conflict = r->conflict;
    return SW_INFEASIBLE;
  }
  if (r->labels)
    return SW_OK;
  struct sw_fault *f = sw_fault(c->job, SW_LIMIT, "the solver found no choice of layouts within its limits (%s)",
                                c->choice->stopped_by ? c->choice->stopped_by : "its search is not complete");
  f->advice = "use --solver ilp, or raise --beam-width or --budget";
  return SW_LIMIT;
}
