/* Divisions chosen together (profile best). Planned one by one, neighbours often cut the same buffer differently, and
 * then it can't stay in the scratchpads. Here every op of a kernel gets the division that saves most traffic overall.
 *
 * Variables of one assignment problem:
 *   d[o]  division of op o: its own plan first, then the others of its menu with more than half as many cores
 *   r[b]  where buffer b lives: in the scratchpads, in one of the parts its writer can leave it in, or in memory
 * Costs, in bytes of traffic with memory:
 *   d[o]  what its idle cores and a dearer matmul split cost more than the best of its menu
 *   r[b]  in memory: its bytes, once written and once a reader
 * Pairs: a buffer in the scratchpads in part v is impossible with a division of its writer or of a reader that does
 * not touch it in part v. Room is not looked at, but for buffers that no division makes small enough; the placement
 * decides about it later.
 *
 * Example: matmul 128 x 256 x 1024 (cut 4 x 8), bias and silu on its result (cut by rows, 32): with 4 x 8 for all of
 * them both buffers in between stay on the cores, 2 * 256 KiB less traffic each. */
#include "compiler/plan/cost.h"
#include "compiler/plan/liveness.h"
#include "compiler/plan/part.h"
#include "compiler/plan/parts.h"

#include "base/options.h"
#include "solver/assign/assign.h"

#include <math.h>
#include <string.h>

enum { MAX_CHOICES = 32, NO_PART = -1 };

struct op_choices {
  int n, variable;
  struct sw_division *division; /* the first one is the op's own plan */
  int *part;                    /* number of the part of operand k under choice i at [k * n + i]; output last */
};

struct together {
  struct sw_job *job;
  const struct sw_options *o;
  struct sw_program *p;
  struct sw_arena *scratch;
  struct op_choices *choices; /* by op */
  struct sw_map parts;        /* by content */
  struct sw_assign_problem *problem;
};

/* A number for each different part, so that equal numbers mean equal parts. */
static int number_of(struct together *g, const struct sw_work *w, const struct sw_work_tensor *t, const int64_t *split)
{
  struct sw_part part;
  int64_t key[1 + 3 * SW_MAX_DEVICE_RANK];
  sw_part_of(w, t, split, &part);
  if (part.broken)
    return NO_PART;
  int n = 0;
  key[n++] = part.cores;
  for (int i = 0; i < part.n; i++) {
    key[n++] = part.cut[i].dim;
    key[n++] = part.cut[i].factor;
    key[n++] = part.cut[i].stride;
  }
  int64_t number = sw_map_get(&g->parts, key, sizeof *key * (size_t)n);
  if (number < 0) {
    number = (int64_t)g->parts.n;
    sw_map_set(&g->parts, key, sizeof *key * (size_t)n, number);
  }
  return (int)number;
}

/* Bytes of memory traffic that would take as long as what a division costs beyond a perfect one. */
static double price_of(const struct together *g, const struct sw_op *op, const struct sw_work *w,
                       const struct sw_cost_op *cost, const int64_t *split)
{
  double us = sw_matmul_cost(w, split);
  double ns = us >= 0 ? us * 1000 * (double)sw_op_turns(op) : sw_extra_ns(g->p, op, cost, w, split);
  return ns * sw_machine_or_spyre(g->p->machine)->hbm;
}

static bool cuts_a_reduction(const struct sw_work *w, const int64_t *split)
{
  for (int v = 0; v < w->n_vars; v++)
    if (split[v] > 1 && !w->var[v].is_output)
      return true;
  return false;
}

/* The op's own plan and what else is worth a thought. A split given by the user stays, and so does a matmul
 * outside the cost model. */
static void collect(struct together *g, const struct sw_work *w, const int64_t *own, struct op_choices *c)
{
  struct sw_division found[MAX_CHOICES] = {0};
  struct sw_arena *scratch = sw_arena_new(g->scratch, 0); /* a menu has many entries, few are kept */
  struct sw_menu menu = {0};
  int64_t own_cores = sw_split_product(own, w->n_vars);
  memcpy(found[c->n++].split, own, sizeof found->split);
  bool fixed = w->n_hints || (w->kind == SW_WORK_MATMUL && sw_matmul_cost(w, own) < 0) || w->kind == SW_WORK_MATMUL_FP8;
  bool has_menu = !fixed && sw_work_menu(g->job, scratch, w, &menu) == SW_OK;
  for (int64_t cores = w->cores; has_menu && cores * 2 > own_cores; cores--)
    for (int i = 0; i < menu.divisions.n && c->n < MAX_CHOICES; i++) {
      const int64_t *split = menu.divisions.v[i].split;
      if (sw_split_product(split, w->n_vars) == cores && !cuts_a_reduction(w, split) &&
          memcmp(split, own, sizeof *own * (size_t)w->n_vars) != 0)
        found[c->n++] = menu.divisions.v[i];
    }
  sw_arena_free(scratch);
  c->division = sw_arena_copy(g->scratch, found, (size_t)c->n, sizeof *found);
}

/* Conversions read memory, and so do gathers and their row numbers. */
static bool reads_memory(const struct sw_op *op, int operand)
{
  if (operand == op->n_in)
    return op->out.index_input >= 0;
  bool barred = op->op == SW_OP_RESTICKIFY || op->in[operand].index_input >= 0 || op->out.index_input == operand;
  for (int i = 0; i < op->n_in; i++)
    barred |= op->in[i].index_input == operand;
  return barred;
}

static enum sw_rc add_op(struct together *g, int index, struct sw_work *w)
{
  const struct sw_op *op = &g->p->ops.v[index];
  struct op_choices *c = &g->choices[index];
  struct sw_cost_op cost;
  double price[MAX_CHOICES], least = INFINITY;
  int64_t costs[MAX_CHOICES];
  SW_TRY(sw_work_of(g->job, g->o, g->p, op, w));
  sw_cost_of(g->p, op, false, &cost);
  collect(g, w, op->plan->split, c);
  for (int i = 0; i < c->n; i++) {
    price[i] = price_of(g, op, w, &cost, c->division[i].split);
    least = fmin(least, price[i]);
  }
  for (int i = 0; i < c->n; i++)
    costs[i] = (int64_t)(price[i] - least + 0.5);
  c->variable = sw_assign_add_variable(g->problem, op->name, c->n, NULL, costs);
  c->part = SW_NEW_N(g->scratch, int, (op->n_in + 1) * c->n);
  for (int k = 0; k <= op->n_in; k++) {
    struct sw_work_tensor t;
    bool fine = !reads_memory(op, k) && sw_work_tensor_of(g->p, op, k < op->n_in ? &op->in[k] : &op->out, &t);
    for (int i = 0; i < c->n; i++)
      c->part[k * c->n + i] = fine ? number_of(g, w, &t, c->division[i].split) : NO_PART;
  }
  return SW_OK;
}

/* Rows are the parts the buffer may be left in and, last, memory; columns the choices of an op that touches it. */
static void add_pair(struct together *g, int buffer, const int *part, int n_parts, const struct op_choices *c,
                     const int *part_of_choice)
{
  int64_t table[(MAX_CHOICES + 1) * MAX_CHOICES] = {0};
  for (int v = 0; v < n_parts; v++)
    for (int i = 0; i < c->n; i++)
      table[v * c->n + i] = part_of_choice[i] == part[v] ? 0 : SW_ASSIGN_INF;
  sw_assign_add_edge(g->problem, buffer, c->variable, sw_assign_add_table(g->problem, n_parts + 1, c->n, table));
}

static const int *parts_at(const struct together *g, const struct sw_touch *t)
{
  const struct op_choices *c = &g->choices[t->op];
  int operand = t->operand < 0 ? g->p->ops.v[t->op].n_in : t->operand;
  return &c->part[operand * c->n];
}

static void add_buffer(struct together *g, int storage, const struct sw_life *life)
{
  const struct sw_storage *s = &g->p->storages.v[storage];
  int part[MAX_CHOICES], n_parts = 0;
  const struct sw_touch *writer = life->touch;
  bool inside = life->kernel >= 0 && !life->by_host && !life->outside;
  if (!inside || life->n_writes != 1 || !life->n_reads || writer->operand >= 0)
    return;
  if (sw_layout_bytes(s->layout) > g->o->lx_bytes * g->o->cores)
    return; /* has no room under any division */
  for (int i = 0; i < g->choices[writer->op].n; i++) {
    int number = parts_at(g, writer)[i], v = 0;
    while (v < n_parts && part[v] != number)
      v++;
    if (number != NO_PART && v == n_parts)
      part[n_parts++] = number;
  }
  if (!n_parts)
    return;
  int64_t costs[MAX_CHOICES + 1] = {0}, touches = 0;
  for (int i = 0; i < life->n; i++)
    touches += sw_op_turns(&g->p->ops.v[life->touch[i].op]);
  costs[n_parts] = sw_layout_bytes(s->layout) * touches;
  int buffer = sw_assign_add_variable(g->problem, s->name, n_parts + 1, NULL, costs);
  for (int i = 0; i < life->n; i++)
    add_pair(g, buffer, part, n_parts, &g->choices[life->touch[i].op], parts_at(g, &life->touch[i]));
}

/* Whether any division is another now. */
static bool adopt(struct together *g, const struct sw_assign_result *r)
{
  bool changed = false;
  for (int i = 0; i < g->p->ops.n; i++) {
    const struct op_choices *c = &g->choices[i];
    struct sw_op_plan *plan = plan_of(g->p, i);
    memcpy(plan->split, c->division[r->labels[c->variable]].split, sizeof plan->split);
    plan->cores = (int)sw_split_product(plan->split, g->p->ops.v[i].n_loops);
    changed |= r->labels[c->variable] != 0;
  }
  return changed;
}

enum sw_rc sw_divide_together(struct sw_job *job, const struct sw_options *o, struct sw_program *p, bool *changed)
{
  struct together g = {.job = job, .o = o, .p = p, .scratch = sw_arena_new(job->arena, SIZE_MAX)};
  struct sw_life *lives = sw_lives_make(g.scratch, p);
  struct sw_work *w = SW_NEW(g.scratch, struct sw_work);
  struct sw_assign_options options = sw_assign_defaults();
  struct sw_assign_result *r;
  options.budget = o->budget;
  g.parts.arena = g.scratch;
  g.choices = SW_NEW_N(g.scratch, struct op_choices, p->ops.n);
  g.problem = sw_assign_new(g.scratch);
  for (int i = 0; i < p->ops.n; i++)
    SW_TRY(add_op(&g, i, w));
  for (int s = 0; o->lx && s < p->storages.n; s++)
    add_buffer(&g, s, &lives[s]);
  /* An answer that is not proved is as legal as one that is; without any, every op keeps its own plan, so that whatever
   * the solver has to say is no fault of the graph. */
  struct sw_job quiet = {.arena = g.scratch, .cancel = job->cancel};
  *changed = sw_assign_solve(&quiet, g.problem, &options, &r) == SW_OK && r->labels && adopt(&g, r);
  sw_arena_free(g.scratch);
  return sw_cancelled(job) ? sw_fail(job, SW_CANCELLED, "cancelled while dividing work over the cores") : SW_OK;
}
