/* A stranger's check of a result. It knows the document's meaning and what the certificate claims, and shares nothing
 * with the solvers: its own tables, its own plain elimination, its own search for conflicts. Simple, not fast. */
#include "solver/assign/internal.h"

#include <inttypes.h>
#include <string.h>

/* A table over some variables; row-major, the last of the scope fastest, over all labels of the document. */
struct term {
  int n, *scope;
  int64_t *cost;
  bool gone;
};

struct check {
  struct sw_job *job;
  struct sw_arena *arena;
  const struct sw_assign_problem *p;
  int n;             /* variables with copies */
  int *k;
  bool **possible;   /* labels left */
  int64_t **unary;
  int *into;         /* where a merged variable went, or -1 */
  SW_VEC(struct term) terms;
  SW_VEC(int) * of;  /* terms of a variable */
  struct sw_map pair; /* (a, b), a < b: term */
  int64_t constant, max_entries;
  bool unchecked;
};

#define WRONG(c, ...) (sw_fail((c)->job, SW_DIFFERENT, __VA_ARGS__), false)

/* -- the document as pairs -- */

static struct term *pair_of(struct check *c, int a, int b, bool make)
{
  int key[2] = {a < b ? a : b, a < b ? b : a};
  int64_t at = sw_map_get(&c->pair, key, sizeof key);
  if (at >= 0)
    return &c->terms.v[at];
  if (!make)
    return NULL;
  sw_map_set(&c->pair, key, sizeof key, c->terms.n);
  *SW_PUSH(c->arena, &c->of[a]) = c->terms.n;
  *SW_PUSH(c->arena, &c->of[b]) = c->terms.n;
  struct term *t = SW_PUSH(c->arena, &c->terms);
  *t = (struct term){2, sw_arena_copy(c->arena, key, 2, sizeof *key), NULL, false};
  t->cost = SW_NEW_N(c->arena, int64_t, (size_t)c->k[a] * (size_t)c->k[b]);
  return t;
}

static int64_t *entry(const struct check *c, const struct term *t, int a, int i, int j)
{
  return t->scope[0] == a ? &t->cost[i * c->k[t->scope[1]] + j] : &t->cost[j * c->k[a] + i];
}

static int64_t plus(int64_t x, int64_t y)
{
  return x == SW_ASSIGN_INF || y == SW_ASSIGN_INF ? SW_ASSIGN_INF : x + y;
}

static void add(struct check *c, int a, int i, int b, int j, int64_t cost)
{
  if (!cost)
    return;
  int64_t *e = entry(c, pair_of(c, a, b, true), a, i, j);
  *e = plus(*e, cost);
}

static void add_groups(struct check *c)
{
  const struct sw_assign_problem *p = c->p;
  int *copy = SW_NEW_N(c->arena, int, p->groups.n + 1);
  copy[0] = p->variables.n;
  for (int g = 0; g < p->groups.n; g++)
    copy[g + 1] = copy[g] + p->groups.v[g].n_classes;
  for (int g = 0; g < p->groups.n && p->mode == SW_ASSIGN_SHARED; g++)
    for (int i = 0; i < c->k[p->groups.v[g].producer]; i++)
      for (int t = 0; t < p->groups.v[g].n_classes; t++)
        add(c, p->groups.v[g].producer, i, copy[g] + t, 1,
            p->tables.v[p->groups.v[g].table].cost[i * p->groups.v[g].n_classes + t]);
  for (int r = 0; r < p->readers.n; r++) {
    const struct sw_assign_reader *e = &p->readers.v[r];
    const struct sw_assign_group *g = &p->groups.v[e->group];
    for (int j = 0; j < c->k[e->variable]; j++) {
      int t = e->wants[j];
      if (t < 0)
        continue;
      if (p->mode == SW_ASSIGN_SHARED) {
        *entry(c, pair_of(c, e->variable, copy[e->group] + t, true), e->variable, j, 0) = SW_ASSIGN_INF;
        continue;
      }
      for (int i = 0; i < c->k[g->producer]; i++)
        add(c, g->producer, i, e->variable, j, p->tables.v[g->table].cost[i * g->n_classes + t]);
    }
  }
}

static void load(struct check *c)
{
  const struct sw_assign_problem *p = c->p;
  int n = p->variables.n;
  c->n = n;
  for (int g = 0; g < p->groups.n && p->mode == SW_ASSIGN_SHARED; g++)
    c->n += p->groups.v[g].n_classes;
  c->k = SW_NEW_N(c->arena, int, c->n);
  c->into = SW_NEW_N(c->arena, int, c->n);
  c->possible = SW_NEW_N(c->arena, bool *, c->n);
  c->unary = SW_NEW_N(c->arena, int64_t *, c->n);
  c->of = (void *)SW_NEW_N(c->arena, __typeof__(*c->of), c->n);
  c->pair.arena = c->arena;
  for (int v = 0; v < c->n; v++) {
    c->k[v] = v < n ? p->variables.v[v].n_labels : 2;
    c->into[v] = -1;
    c->possible[v] = SW_NEW_N(c->arena, bool, c->k[v]);
    memset(c->possible[v], true, (size_t)c->k[v]);
    c->unary[v] = SW_NEW_N(c->arena, int64_t, c->k[v]);
    for (int i = 0; i < c->k[v] && v < n && p->variables.v[v].cost; i++)
      c->unary[v][i] = p->variables.v[v].cost[i];
  }
  for (int i = 0; i < p->edges.n; i++) {
    const struct sw_assign_edge *e = &p->edges.v[i];
    for (int x = 0; x < c->k[e->a]; x++)
      for (int y = 0; y < c->k[e->b]; y++)
        add(c, e->a, x, e->b, y, p->tables.v[e->table].cost[x * c->k[e->b] + y]);
  }
  add_groups(c);
}

/* -- the steps -- */

static bool step_impossible(struct check *c, int v, int i)
{
  if (c->unary[v][i] == SW_ASSIGN_INF)
    return true;
  for (int n = 0; n < c->of[v].n; n++) {
    const struct term *t = &c->terms.v[c->of[v].v[n]];
    int w = t->scope[0] == v ? t->scope[1] : t->scope[0];
    bool partner = t->gone;
    for (int j = 0; j < c->k[w] && !partner; j++)
      partner = c->possible[w][j] && *entry(c, t, v, i, j) != SW_ASSIGN_INF;
    if (!partner)
      return true;
  }
  return false;
}

static bool step_worse(struct check *c, int v, int i, int by)
{
  if (!c->possible[v][by] || c->unary[v][by] == SW_ASSIGN_INF)
    return false;
  __int128 loss = (__int128)c->unary[v][by] - c->unary[v][i];
  for (int n = 0; n < c->of[v].n; n++) {
    const struct term *t = &c->terms.v[c->of[v].v[n]];
    int w = t->scope[0] == v ? t->scope[1] : t->scope[0];
    bool any = false;
    int64_t most = 0;
    for (int j = 0; j < c->k[w] && !t->gone; j++) {
      int64_t mine = *entry(c, t, v, i, j), other = *entry(c, t, v, by, j);
      if (!c->possible[w][j] || mine == SW_ASSIGN_INF)
        continue;
      if (other == SW_ASSIGN_INF)
        return false;
      most = !any || other - mine > most ? other - mine : most;
      any = true;
    }
    loss += most;
  }
  return loss <= 0;
}

static bool step_merged(struct check *c, int v, int into)
{
  struct term *link = pair_of(c, v, into, false);
  if (!link || link->gone)
    return false;
  int *f = SW_NEW_N(c->arena, int, c->k[into]);
  for (int i = 0; i < c->k[into]; i++) {
    int found = 0;
    for (int j = 0; j < c->k[v]; j++)
      if (c->possible[v][j] && *entry(c, link, into, i, j) != SW_ASSIGN_INF) {
        found++;
        f[i] = j;
      }
    if (!c->possible[into][i])
      continue;
    if (found > 1)
      return false;
    if (!found) { /* earlier steps left it no partner: it goes, as an impossible label would */
      c->unary[into][i] = SW_ASSIGN_INF;
      continue;
    }
    c->unary[into][i] = plus(c->unary[into][i], plus(c->unary[v][f[i]], *entry(c, link, into, i, f[i])));
  }
  link->gone = true;
  c->into[v] = into;
  for (int n = 0; n < c->of[v].n; n++) {
    int at = c->of[v].v[n];
    if (c->terms.v[at].gone)
      continue;
    c->terms.v[at].gone = true;
    int w = c->terms.v[at].scope[0] == v ? c->terms.v[at].scope[1] : c->terms.v[at].scope[0];
    for (int i = 0; i < c->k[into]; i++)
      for (int j = 0; j < c->k[w] && c->possible[into][i]; j++)
        add(c, into, i, w, j, *entry(c, &c->terms.v[at], v, f[i], j));
  }
  return true;
}

static bool follow(struct check *c, const struct sw_assign_certificate *cert)
{
  for (int s = 0; s < cert->steps.n; s++) {
    const struct sw_assign_step *e = &cert->steps.v[s];
    bool merged = e->kind == SW_ASSIGN_MERGED;
    if (e->variable < 0 || e->variable >= c->n || c->into[e->variable] >= 0 ||
        (!merged && (e->label < 0 || e->label >= c->k[e->variable])) ||
        (merged && (e->by < 0 || e->by >= c->n || c->into[e->by] >= 0 || e->by == e->variable)) ||
        (e->kind == SW_ASSIGN_WORSE && (e->by < 0 || e->by >= c->k[e->variable] || e->by == e->label)))
      return WRONG(c, "certificate: step %d is out of range", s);
    bool holds = merged ? step_merged(c, e->variable, e->by)
                 : e->kind == SW_ASSIGN_WORSE ? step_worse(c, e->variable, e->label, e->by)
                                              : step_impossible(c, e->variable, e->label);
    if (!holds)
      return WRONG(c, "certificate: step %d does not hold", s);
    if (!merged)
      c->possible[e->variable][e->label] = false;
  }
  return true;
}

/* -- the elimination -- */

/* Holds v at its only label, in all its terms. */
static void plug(struct check *c, int v, int label)
{
  c->constant = plus(c->constant, c->unary[v][label]);
  for (int n = 0; n < c->of[v].n; n++) {
    struct term *t = &c->terms.v[c->of[v].v[n]];
    if (t->gone)
      continue;
    t->gone = true;
    int w = t->scope[0] == v ? t->scope[1] : t->scope[0];
    for (int j = 0; j < c->k[w]; j++)
      c->unary[w][j] = plus(c->unary[w][j], *entry(c, t, v, label, j));
  }
}

static int64_t value(const struct check *c, const struct term *t, const int *x)
{
  int64_t at = 0;
  for (int i = 0; i < t->n; i++)
    at = at * c->k[t->scope[i]] + x[t->scope[i]];
  return t->cost[at];
}

/* Next labelling of the scope; impossible labels are gone over too, their tables say so. */
static bool advance(const struct check *c, const int *scope, int n, int *x)
{
  for (int i = n - 1; i >= 0; i--) {
    if (++x[scope[i]] < c->k[scope[i]])
      return true;
    x[scope[i]] = 0;
  }
  return false;
}

static bool eliminate(struct check *c, int v, int *x)
{
  SW_VEC(int) mine = {0}, scope = {0};
  double entries = c->k[v];
  for (int n = 0; n < c->of[v].n; n++) {
    const struct term *t = &c->terms.v[c->of[v].v[n]];
    if (t->gone)
      continue;
    *SW_PUSH(c->arena, &mine) = c->of[v].v[n];
    for (int i = 0; i < t->n; i++) {
      bool known = t->scope[i] == v;
      for (int j = 0; j < scope.n && !known; j++)
        known = scope.v[j] == t->scope[i];
      if (known)
        continue;
      *SW_PUSH(c->arena, &scope) = t->scope[i];
      entries *= c->k[t->scope[i]];
    }
  }
  if (entries > (double)c->max_entries) {
    c->unchecked = true;
    return false;
  }
  struct term out = {scope.n, scope.v, SW_NEW_N(c->arena, int64_t, entries / c->k[v]), false};
  for (int i = 0; i < scope.n; i++)
    x[scope.v[i]] = 0;
  int64_t at = 0;
  do {
    int64_t least = SW_ASSIGN_INF;
    for (x[v] = 0; x[v] < c->k[v]; x[v]++) {
      int64_t sum = c->possible[v][x[v]] ? c->unary[v][x[v]] : SW_ASSIGN_INF;
      for (int m = 0; m < mine.n && sum != SW_ASSIGN_INF; m++)
        sum = plus(sum, value(c, &c->terms.v[mine.v[m]], x));
      least = sum < least ? sum : least;
    }
    out.cost[at++] = least;
  } while (advance(c, scope.v, scope.n, x));
  for (int m = 0; m < mine.n; m++)
    c->terms.v[mine.v[m]].gone = true;
  if (!scope.n) {
    c->constant = plus(c->constant, out.cost[0]);
    return true;
  }
  for (int i = 0; i < scope.n; i++)
    *SW_PUSH(c->arena, &c->of[scope.v[i]]) = c->terms.n;
  *SW_PUSH(c->arena, &c->terms) = out;
  return true;
}

static bool check_elimination(struct check *c, const struct sw_assign_result *r)
{
  const struct sw_assign_certificate *cert = &r->certificate;
  if (!follow(c, cert))
    return false;
  bool *ordered = SW_NEW_N(c->arena, bool, c->n);
  for (int i = 0; i < cert->order.n; i++) {
    int v = cert->order.v[i];
    if (v < 0 || v >= c->n || ordered[v] || c->into[v] >= 0)
      return WRONG(c, "certificate: the order is no order of the variables left");
    ordered[v] = true;
  }
  for (int v = 0; v < c->n; v++) {
    if (ordered[v] || c->into[v] >= 0)
      continue;
    int left = 0, only = 0;
    for (int i = 0; i < c->k[v]; i++)
      if (c->possible[v][i]) {
        left++;
        only = i;
      }
    if (left != 1)
      return WRONG(c, "certificate: variable %d has %d labels left and is not in the order", v, left);
    plug(c, v, only);
  }
  int *x = SW_NEW_N(c->arena, int, c->n);
  for (int i = 0; i < cert->order.n; i++)
    if (!eliminate(c, cert->order.v[i], x))
      return true; /* too large */
  if (c->constant != r->cost)
    return WRONG(c, "certificate: elimination gives %" PRId64 ", the result says %" PRId64, c->constant, r->cost);
  return true;
}

/* -- labels and conversions -- */

static bool check_labels(struct check *c, const struct sw_assign_result *r)
{
  const struct sw_assign_problem *p = c->p;
  for (int v = 0; v < p->variables.n; v++)
    if (r->labels[v] < 0 || r->labels[v] >= p->variables.v[v].n_labels)
      return WRONG(c, "label of variable %d is out of range", v);
  if (sw_assign_cost(p, r->labels) != r->cost || r->cost == SW_ASSIGN_INF)
    return WRONG(c, "the labels cost %" PRId64 ", the result says %" PRId64, sw_assign_cost(p, r->labels), r->cost);
  if (r->bound > r->cost || (r->status == SW_ASSIGN_OPTIMAL && r->bound != r->cost))
    return WRONG(c, "bound %" PRId64 " with cost %" PRId64, r->bound, r->cost);
  int64_t sum = 0;
  for (int i = 0; i < r->conversions.n; i++)
    sum += r->conversions.v[i].cost;
  for (int v = 0; v < p->variables.n; v++)
    sum += p->variables.v[v].cost ? p->variables.v[v].cost[r->labels[v]] : 0;
  for (int e = 0; e < p->edges.n; e++) {
    const struct sw_assign_table *t = &p->tables.v[p->edges.v[e].table];
    sum += t->cost[r->labels[p->edges.v[e].a] * t->cols + r->labels[p->edges.v[e].b]];
  }
  if (sum != r->cost)
    return WRONG(c, "conversions, unary and edge costs add up to %" PRId64 ", the result says %" PRId64, sum, r->cost);
  return true;
}

/* -- conflicts -- */

struct puzzle {
  const struct sw_assign_problem *p;
  SW_VEC(int) edges, groups, variables;
  int *x;
  bool *set;
  int64_t nodes;
};

/* No term whose variables are all set is impossible. */
static bool so_far(const struct puzzle *z, int v)
{
  const struct sw_assign_problem *p = z->p;
  if (p->variables.v[v].cost && p->variables.v[v].cost[z->x[v]] == SW_ASSIGN_INF)
    return false;
  for (int i = 0; i < z->edges.n; i++) {
    const struct sw_assign_edge *e = &p->edges.v[z->edges.v[i]];
    const struct sw_assign_table *t = &p->tables.v[e->table];
    if (z->set[e->a] && z->set[e->b] && t->cost[z->x[e->a] * t->cols + z->x[e->b]] == SW_ASSIGN_INF)
      return false;
  }
  for (int r = 0; r < p->readers.n; r++) {
    const struct sw_assign_reader *e = &p->readers.v[r];
    const struct sw_assign_group *g = &p->groups.v[e->group];
    bool in = false;
    for (int i = 0; i < z->groups.n; i++)
      in |= z->groups.v[i] == e->group;
    if (!in || !z->set[e->variable] || !z->set[g->producer] || e->wants[z->x[e->variable]] < 0)
      continue;
    if (p->tables.v[g->table].cost[z->x[g->producer] * g->n_classes + e->wants[z->x[e->variable]]] == SW_ASSIGN_INF)
      return false;
  }
  return true;
}

static bool solvable(struct puzzle *z, int at)
{
  if (at == z->variables.n || --z->nodes < 0)
    return true;
  int v = z->variables.v[at];
  z->set[v] = true;
  bool found = false;
  for (z->x[v] = 0; z->x[v] < z->p->variables.v[v].n_labels && !found; z->x[v]++)
    found = so_far(z, v) && solvable(z, at + 1);
  z->set[v] = false;
  return found;
}

/* Whether the conflict without term `left_out` (counted over edges, then groups; -1: with all) is feasible. */
static bool feasible_without(struct check *c, const struct sw_assign_conflict *f, int left_out)
{
  struct sw_arena *a = sw_arena_new(c->arena, 0);
  struct puzzle z = {.p = c->p, .x = SW_NEW_N(a, int, c->p->variables.n), .set = SW_NEW_N(a, bool, c->p->variables.n),
                     .nodes = c->max_entries};
  bool *used = SW_NEW_N(a, bool, c->p->variables.n);
  for (int i = 0; i < f->variables.n; i++)
    used[f->variables.v[i]] = true;
  for (int i = 0; i < f->edges.n; i++) {
    if (i == left_out)
      continue;
    *SW_PUSH(a, &z.edges) = f->edges.v[i];
    used[c->p->edges.v[f->edges.v[i]].a] = used[c->p->edges.v[f->edges.v[i]].b] = true;
  }
  for (int i = 0; i < f->groups.n; i++) {
    if (f->edges.n + i == left_out)
      continue;
    *SW_PUSH(a, &z.groups) = f->groups.v[i];
    used[c->p->groups.v[f->groups.v[i]].producer] = true;
    for (int r = 0; r < c->p->readers.n; r++)
      if (c->p->readers.v[r].group == f->groups.v[i])
        used[c->p->readers.v[r].variable] = true;
  }
  for (int v = 0; v < c->p->variables.n; v++)
    if (used[v])
      *SW_PUSH(a, &z.variables) = v;
  bool feasible = solvable(&z, 0);
  c->unchecked |= z.nodes < 0;
  sw_arena_free(a);
  return feasible;
}

static bool check_conflict(struct check *c, const struct sw_assign_conflict *f)
{
  if (!f || f->variables.n + f->edges.n + f->groups.n == 0)
    return WRONG(c, "infeasible without a conflict");
  if (feasible_without(c, f, -1) && !c->unchecked)
    return WRONG(c, "the conflict is feasible");
  for (int i = 0; i < f->edges.n + f->groups.n; i++)
    if (!feasible_without(c, f, i))
      return WRONG(c, "the conflict is not minimal: term %d can go", i);
  return true;
}

enum sw_rc sw_assign_check(struct sw_job *job, const struct sw_assign_problem *p, const struct sw_assign_result *r,
                           int64_t max_entries, bool *unchecked)
{
  struct check c = {.job = job, .arena = sw_arena_new(job->arena, 0), .p = p, .max_entries = max_entries};
  bool good = true;
  if (r->labels)
    good = check_labels(&c, r);
  else if (r->status == SW_ASSIGN_OPTIMAL || r->status == SW_ASSIGN_FEASIBLE)
    good = WRONG(&c, "%s without labels", sw_assign_status_name(r->status));
  if (good && r->status == SW_ASSIGN_INFEASIBLE) {
    good = check_conflict(&c, r->conflict);
  } else if (good && r->status == SW_ASSIGN_OPTIMAL && r->certificate.method &&
             !strcmp(r->certificate.method, "elimination")) {
    load(&c);
    good = check_elimination(&c, r);
  } else if (r->status != SW_ASSIGN_UNKNOWN) {
    c.unchecked = true;
  }
  *unchecked = c.unchecked;
  sw_arena_free(c.arena);
  return good ? SW_OK : SW_DIFFERENT;
}
