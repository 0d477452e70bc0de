/* Building a problem, what makes one valid, and the cost of a vector straight from the document. */
#include "solver/assign/internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct sw_assign_problem *sw_assign_new(struct sw_arena *a)
{
  struct sw_assign_problem *p = SW_NEW(a, struct sw_assign_problem);
  p->arena = a;
  p->name = "";
  p->table_ids.arena = a;
  return p;
}

int sw_assign_add_variable(struct sw_assign_problem *p, const char *name, int n_labels, const char *const *labels,
                           const int64_t *cost)
{
  struct sw_assign_variable *v = SW_PUSH(p->arena, &p->variables);
  v->name = name ? sw_arena_strdup(p->arena, name) : NULL;
  v->labels = labels;
  v->n_labels = n_labels;
  if (cost && n_labels > 0)
    v->cost = sw_arena_copy(p->arena, cost, (size_t)n_labels, sizeof *cost);
  return p->variables.n - 1;
}

int sw_assign_add_table(struct sw_assign_problem *p, int rows, int cols, const int64_t *cost)
{
  /* The key is the shape and the costs. */
  size_t n = (size_t)rows * (size_t)cols;
  struct sw_arena *scratch = n + 1 <= 64 ? NULL : sw_arena_new(p->arena, 0);
  int64_t few[64], *key = scratch ? SW_NEW_N(scratch, int64_t, n + 1) : few;
  key[0] = (int64_t)rows << 32 | cols;
  if (n)
    memcpy(key + 1, cost, n * sizeof *cost);
  int64_t was = sw_map_get(&p->table_ids, key, (n + 1) * sizeof *key);
  if (was < 0)
    sw_map_set(&p->table_ids, key, (n + 1) * sizeof *key, p->tables.n);
  sw_arena_free(scratch);
  if (was >= 0)
    return (int)was;
  struct sw_assign_table *t = SW_PUSH(p->arena, &p->tables);
  t->rows = rows;
  t->cols = cols;
  t->cost = sw_arena_copy(p->arena, cost, n, sizeof *cost);
  return p->tables.n - 1;
}

int sw_assign_add_edge(struct sw_assign_problem *p, int a, int b, int table)
{
  *SW_PUSH(p->arena, &p->edges) = (struct sw_assign_edge){a, b, table};
  return p->edges.n - 1;
}

int sw_assign_add_group(struct sw_assign_problem *p, int producer, int n_classes, const char *const *classes, int table)
{
  *SW_PUSH(p->arena, &p->groups) = (struct sw_assign_group){producer, table, n_classes, classes};
  return p->groups.n - 1;
}

int sw_assign_add_reader(struct sw_assign_problem *p, int group, int variable, const int *wants)
{
  int n = variable >= 0 && variable < p->variables.n ? p->variables.v[variable].n_labels : 0;
  const int *copy = sw_arena_copy(p->arena, wants, (size_t)n, sizeof *wants);
  *SW_PUSH(p->arena, &p->readers) = (struct sw_assign_reader){group, variable, copy};
  return p->readers.n - 1;
}

/* -- validity -- */

void sw_assign__bad(struct sw_job *job, const char *pointer, const char *fmt, ...)
{
  char text[256];
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(text, sizeof text, fmt, ap);
  va_end(ap);
  sw_fault(job, SW_INVALID, "%s", text)->source = pointer;
}

#define AT(...) sw_arena_printf(job->arena, __VA_ARGS__)

static void check_costs(struct sw_job *job, const char *where, int index, const int64_t *cost, int n)
{
  for (int i = 0; i < n; i++)
    if (cost[i] != SW_ASSIGN_INF && (cost[i] < 0 || cost[i] > SW_ASSIGN_MAX_COST))
      sw_assign__bad(job, AT("/%s/%d", where, index), "cost %" PRId64 ", 0 to 2^53 or impossible expected", cost[i]);
}

static int64_t largest(const int64_t *cost, int64_t n)
{
  int64_t max = 0;
  for (int64_t i = 0; i < n; i++)
    if (cost[i] != SW_ASSIGN_INF && cost[i] > max)
      max = cost[i];
  return max;
}

static bool outside(int i, int n)
{
  return i < 0 || i >= n;
}

static void check_edge(struct sw_job *job, const struct sw_assign_problem *p, int i)
{
  const struct sw_assign_edge *e = &p->edges.v[i];
  int n = p->variables.n;
  if (outside(e->a, n) || outside(e->b, n)) {
    sw_assign__bad(job, AT("/edges/%d", i), "variable %d, there are %d", outside(e->a, n) ? e->a : e->b, n);
  } else if (e->a == e->b) {
    sw_assign__bad(job, AT("/edges/%d", i), "an edge from variable %d to itself", e->a);
  } else if (outside(e->table, p->tables.n)) {
    sw_assign__bad(job, AT("/edges/%d/2", i), "table %d, there are %d", e->table, p->tables.n);
  } else {
    const struct sw_assign_table *t = &p->tables.v[e->table];
    int rows = p->variables.v[e->a].n_labels, cols = p->variables.v[e->b].n_labels;
    if (t->rows != rows || t->cols != cols)
      sw_assign__bad(job, AT("/edges/%d/2", i), "table of %d x %d, the variables have %d and %d labels",
                     t->rows, t->cols, rows, cols);
  }
}

static void check_group(struct sw_job *job, const struct sw_assign_problem *p, int i)
{
  const struct sw_assign_group *g = &p->groups.v[i];
  if (outside(g->producer, p->variables.n)) {
    sw_assign__bad(job, AT("/sharing/%d/producer", i), "variable %d, there are %d", g->producer, p->variables.n);
  } else if (outside(g->table, p->tables.n)) {
    sw_assign__bad(job, AT("/sharing/%d/conv", i), "table %d, there are %d", g->table, p->tables.n);
  } else {
    const struct sw_assign_table *t = &p->tables.v[g->table];
    int rows = p->variables.v[g->producer].n_labels;
    if (t->rows != rows || t->cols != g->n_classes)
      sw_assign__bad(job, AT("/sharing/%d/conv", i),
                     "table of %d x %d, the producer has %d labels and the group %d classes", t->rows, t->cols, rows,
                     g->n_classes);
  }
}

static void check_reader(struct sw_job *job, const struct sw_assign_problem *p, int i, int position)
{
  const struct sw_assign_reader *r = &p->readers.v[i];
  if (outside(r->group, p->groups.n)) {
    sw_assign__bad(job, AT("/sharing/%d", r->group), "group of a reader, there are %d", p->groups.n);
    return;
  }
  const struct sw_assign_group *g = &p->groups.v[r->group];
  if (outside(r->variable, p->variables.n)) {
    sw_assign__bad(job, AT("/sharing/%d/readers/%d/0", r->group, position), "variable %d, there are %d", r->variable,
                   p->variables.n);
    return;
  }
  if (r->variable == g->producer)
    sw_assign__bad(job, AT("/sharing/%d/readers/%d/0", r->group, position), "the producer reads itself");
  for (int j = 0; j < p->variables.v[r->variable].n_labels; j++)
    if (r->wants[j] < -1 || r->wants[j] >= g->n_classes)
      sw_assign__bad(job, AT("/sharing/%d/readers/%d/1/%d", r->group, position, j), "class %d, there are %d", r->wants[j],
                     g->n_classes);
}

/* Largest finite value that all terms together can have; false at 2^63 - 1 and beyond. */
static bool fits(const struct sw_assign_problem *p)
{
  int64_t sum = 0;
  bool over = false;
  for (int i = 0; i < p->variables.n; i++)
    if (p->variables.v[i].cost)
      over |= __builtin_add_overflow(sum, largest(p->variables.v[i].cost, p->variables.v[i].n_labels), &sum);
  int64_t *max = SW_NEW_N(p->arena, int64_t, p->tables.n);
  for (int i = 0; i < p->tables.n; i++)
    max[i] = largest(p->tables.v[i].cost, (int64_t)p->tables.v[i].rows * p->tables.v[i].cols);
  for (int i = 0; i < p->edges.n && !over; i++)
    over |= __builtin_add_overflow(sum, max[p->edges.v[i].table], &sum);
  for (int i = 0; i < p->readers.n && !over; i++)
    over |= __builtin_add_overflow(sum, max[p->groups.v[p->readers.v[i].group].table], &sum);
  return !over && sum < SW_ASSIGN_INF;
}

enum sw_rc sw_assign_validate(struct sw_job *job, const struct sw_assign_problem *p)
{
  int before = job->faults.n;
  for (int i = 0; i < p->variables.n; i++) {
    const struct sw_assign_variable *v = &p->variables.v[i];
    if (v->n_labels < 1)
      sw_assign__bad(job, AT("/variables/%d", i), "no labels");
    else if (v->cost)
      check_costs(job, "variables", i, v->cost, v->n_labels);
  }
  for (int i = 0; i < p->tables.n; i++)
    check_costs(job, "tables", i, p->tables.v[i].cost, p->tables.v[i].rows * p->tables.v[i].cols);
  for (int i = 0; i < p->edges.n; i++)
    check_edge(job, p, i);
  int *position = SW_NEW_N(p->arena, int, p->groups.n);
  for (int i = 0; i < p->groups.n; i++)
    check_group(job, p, i);
  for (int i = 0; i < p->readers.n; i++)
    check_reader(job, p, i, outside(p->readers.v[i].group, p->groups.n) ? 0 : position[p->readers.v[i].group]++);
  if (job->faults.n > before)
    return SW_INVALID;
  if (!fits(p))
    return sw_fail(job, SW_LIMIT, "the largest finite costs add up to 2^63 or more");
  return SW_OK;
}

/* -- the cost of a vector -- */

int64_t sw_assign_cost(const struct sw_assign_problem *p, const int *labels)
{
  int64_t sum = 0;
  for (int v = 0; v < p->variables.n; v++)
    if (p->variables.v[v].cost)
      sum = sw_assign__plus(sum, p->variables.v[v].cost[labels[v]]);
  for (int i = 0; i < p->edges.n; i++) {
    const struct sw_assign_edge *e = &p->edges.v[i];
    const struct sw_assign_table *t = &p->tables.v[e->table];
    sum = sw_assign__plus(sum, t->cost[labels[e->a] * t->cols + labels[e->b]]);
  }
  /* Classes already paid, in mode shared: one flag for each class of each group. */
  struct sw_arena *scratch = sw_arena_new(p->arena, 0);
  int64_t *first = SW_NEW_N(scratch, int64_t, p->groups.n + 1);
  for (int g = 0; g < p->groups.n; g++)
    first[g + 1] = first[g] + p->groups.v[g].n_classes;
  bool *paid = SW_NEW_N(scratch, bool, first[p->groups.n]);
  for (int i = 0; i < p->readers.n; i++) {
    const struct sw_assign_reader *r = &p->readers.v[i];
    const struct sw_assign_group *g = &p->groups.v[r->group];
    int t = r->wants[labels[r->variable]];
    if (t < 0 || (p->mode == SW_ASSIGN_SHARED && paid[first[r->group] + t]))
      continue;
    paid[first[r->group] + t] = true;
    sum = sw_assign__plus(sum, p->tables.v[g->table].cost[labels[g->producer] * g->n_classes + t]);
  }
  sw_arena_free(scratch);
  return sum;
}

/* -- names -- */

const char *sw_assign_status_name(enum sw_assign_status s)
{
#define X(id, name) name,
  static const char *const names[] = {SW_ASSIGN_STATUSES(X)};
#undef X
  return names[s];
}

const char *sw_assign_stop_name(enum sw_assign_stop s)
{
#define X(id, name) name,
  static const char *const names[] = {SW_ASSIGN_STOPS(X)};
#undef X
  return names[s];
}

double sw_assign_gap(const struct sw_assign_result *r)
{
  return !r->labels ? 0 : (double)(r->cost - r->bound) / (double)(r->cost > 1 ? r->cost : 1);
}

struct sw_assign_options sw_assign_defaults(void)
{
  return (struct sw_assign_options){.solver = SW_SOLVER_ILP, .beam_width = 200, .budget = 2000000000};
}
