/* Why a problem has no answer: a minimal set of terms that can't all be met.
 *
 * Only what is impossible matters, so costs are dropped. Propagation usually finds the contradiction and says which
 * variables its proof used; else all are suspects. Among the suspects' terms a minimal set is found by halving
 * (Junker's QuickXplain): about k log(m / k) questions "is this subset feasible?" for k terms out of m, each answered
 * by the exact solver. */
#include "solver/assign/exact.h"

#include <string.h>

struct explain {
  struct sw_job *job;
  const struct sw_assign_problem *p;
  struct sw_arena *arena;
  int *term; /* edges 0 .. n_edges - 1, then groups */
  int *reader_first, *reader; /* of a group */
  bool *in;  /* the subset that is asked about */
};

static int64_t only_hard(int64_t c)
{
  return c == SW_ASSIGN_INF ? SW_ASSIGN_INF : 0;
}

static int hard_table(struct sw_assign_problem *q, const struct sw_assign_table *t)
{
  int64_t n = (int64_t)t->rows * t->cols, *cost = SW_NEW_N(q->arena, int64_t, n);
  for (int64_t i = 0; i < n; i++)
    cost[i] = only_hard(t->cost[i]);
  return sw_assign_add_table(q, t->rows, t->cols, cost);
}

/* Variable v in the smaller problem. */
static int variable_of(const struct explain *x, struct sw_assign_problem *q, int *number, int v)
{
  if (number[v] >= 0)
    return number[v];
  const struct sw_assign_variable *old = &x->p->variables.v[v];
  int64_t *cost = SW_NEW_N(q->arena, int64_t, old->n_labels);
  for (int i = 0; i < old->n_labels && old->cost; i++)
    cost[i] = only_hard(old->cost[i]);
  return number[v] = sw_assign_add_variable(q, NULL, old->n_labels, NULL, cost);
}

static bool feasible(struct explain *x, const int *term, int n)
{
  const struct sw_assign_problem *p = x->p;
  struct sw_job job = {.arena = sw_arena_new(x->arena, 0), .cancel = x->job->cancel};
  struct sw_assign_problem *q = sw_assign_new(job.arena);
  int *number = SW_NEW_N(job.arena, int, p->variables.n);
  memset(number, -1, (size_t)p->variables.n * sizeof *number);
  for (int i = 0; i < n; i++) {
    if (term[i] < p->edges.n) {
      const struct sw_assign_edge *e = &p->edges.v[term[i]];
      int a = variable_of(x, q, number, e->a), b = variable_of(x, q, number, e->b);
      sw_assign_add_edge(q, a, b, hard_table(q, &p->tables.v[e->table]));
      continue;
    }
    int g = term[i] - p->edges.n;
    const struct sw_assign_group *group = &p->groups.v[g];
    int producer = variable_of(x, q, number, group->producer);
    int copy = sw_assign_add_group(q, producer, group->n_classes, NULL, hard_table(q, &p->tables.v[group->table]));
    for (int r = x->reader_first[g]; r < x->reader_first[g + 1]; r++) {
      const struct sw_assign_reader *e = &p->readers.v[x->reader[r]];
      sw_assign_add_reader(q, copy, variable_of(x, q, number, e->variable), e->wants);
    }
  }
  struct sw_assign_options o = sw_assign_defaults();
  struct sw_assign_result r = {0};
  sw_assign__exact(&job, q, &o, &r);
  bool answer = r.status != SW_ASSIGN_INFEASIBLE;
  sw_arena_free(job.arena);
  return answer;
}

/* Puts a minimal subset of term[0 .. n) that is infeasible together with what stands in base[0 .. n_base) behind the
 * base, and gives its size. `fresh`: the base has grown since it was known to be feasible. */
static int minimal(struct explain *x, int *base, int n_base, bool fresh, const int *term, int n)
{
  if (fresh && !feasible(x, base, n_base))
    return 0;
  if (n == 1) {
    base[n_base] = term[0];
    return 1;
  }
  int half = n / 2;
  memcpy(base + n_base, term, (size_t)half * sizeof *term);
  int *found = SW_NEW_N(x->arena, int, n);
  int n_found = minimal(x, base, n_base + half, true, term + half, n - half);
  memcpy(found, base + n_base + half, (size_t)n_found * sizeof *found);
  memcpy(base + n_base, found, (size_t)n_found * sizeof *found);
  return n_found + minimal(x, base, n_base + n_found, n_found > 0, term, half);
}

static bool is_hard(const struct sw_assign_table *t)
{
  for (int64_t i = 0; i < (int64_t)t->rows * t->cols; i++)
    if (t->cost[i] == SW_ASSIGN_INF)
      return true;
  return false;
}

/* Terms that may have to do with it, in the order of the document. */
static int suspects(struct explain *x, const bool *involved)
{
  const struct sw_assign_problem *p = x->p;
  int n = 0;
  bool *hard = SW_NEW_N(x->arena, bool, p->tables.n);
  for (int t = 0; t < p->tables.n; t++)
    hard[t] = is_hard(&p->tables.v[t]);
  for (int e = 0; e < p->edges.n; e++)
    if (hard[p->edges.v[e].table] && involved[p->edges.v[e].a] && involved[p->edges.v[e].b])
      x->term[n++] = e;
  for (int g = 0; g < p->groups.n; g++) {
    bool reads = false;
    for (int r = x->reader_first[g]; r < x->reader_first[g + 1] && !reads; r++)
      reads = involved[p->readers.v[x->reader[r]].variable];
    if (hard[p->groups.v[g].table] && reads && involved[p->groups.v[g].producer])
      x->term[n++] = p->edges.n + g;
  }
  return n;
}

struct sw_assign_conflict *sw_assign__conflict(struct sw_job *job, const struct sw_assign_problem *p)
{
  struct sw_assign_conflict *c = SW_NEW(job->arena, struct sw_assign_conflict);
  struct explain x = {.job = job, .p = p, .arena = sw_arena_new(job->arena, 0)};
  for (int v = 0; v < p->variables.n; v++) {
    bool possible = !p->variables.v[v].cost;
    for (int i = 0; i < p->variables.v[v].n_labels && !possible; i++)
      possible = p->variables.v[v].cost[i] != SW_ASSIGN_INF;
    if (possible)
      continue;
    *SW_PUSH(job->arena, &c->variables) = v;
    sw_arena_free(x.arena);
    return c;
  }
  int n = p->groups.n, *first = SW_NEW_N(x.arena, int, n + 2);
  x.reader = SW_NEW_N(x.arena, int, p->readers.n);
  for (int i = 0; i < p->readers.n; i++)
    first[p->readers.v[i].group + 2]++;
  for (int g = 2; g <= n; g++)
    first[g + 1] += first[g];
  for (int i = 0; i < p->readers.n; i++)
    x.reader[first[p->readers.v[i].group + 1]++] = i;
  x.reader_first = first;
  x.term = SW_NEW_N(x.arena, int, p->edges.n + n);
  struct sw_net *net = sw_net_build(x.arena, p, SW_NET_PER_EDGE);
  bool *involved = SW_NEW_N(x.arena, bool, net->n);
  if (sw_net_propagate(net, NULL, x.arena, involved) < 0)
    memset(involved, true, (size_t)net->n * sizeof *involved);
  int terms = suspects(&x, involved), *found = SW_NEW_N(x.arena, int, terms + 1);
  int size = terms ? minimal(&x, found, 0, false, x.term, terms) : 0;
  for (int i = 0; i < p->edges.n + n; i++)
    for (int j = 0; j < size; j++)
      if (found[j] == i) {
        if (i < p->edges.n)
          *SW_PUSH(job->arena, &c->edges) = i;
        else
          *SW_PUSH(job->arena, &c->groups) = i - p->edges.n;
      }
  sw_arena_free(x.arena);
  return c;
}
