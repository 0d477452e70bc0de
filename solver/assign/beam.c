/* Greedy and beam: the reference compiler's two ways, in variable order, generalised to unary costs and shared copies
 * (layouts.md section 5.4; labels of a variable are an op's candidates, its neighbours before it the op's inputs).
 *
 * Greedy: each variable takes its first label of least cost given what stands already.
 * Beam: all labels of all states; states that agree on everything that still matters merge, the cheapest and first one
 *   stays; then the best `width` by cost + F stay, earlier ones first on a tie. F is the reference's estimate of what
 *   is to come: F[v][i] = sum over later neighbours d of min over d's labels j of pair(i, j) + F[d][j]. Neighbours are
 *   those that read v at all, also for nothing; what j costs by itself or towards d's other neighbours does not count. It
 *   counts a tail once for each branch that leads to it, so it is no bound, and it only decides who is dropped.
 *   While nobody is dropped, merging is exact dynamic programming.
 *
 * A state is a row of cells: labels of variables that later ones look at, and for each class of an open shared group
 * whether it is wanted already. Cells that no longer matter are 0 and used again. */
#include "solver/assign/exact.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct member { /* what a variable is in a shared group */
  int group;
  const int *wants; /* NULL: the producer */
};

struct walk {
  const struct sw_assign_problem *p;
  struct sw_arena *arena;
  struct sw_net *net;   /* pairs; in mode shared without the groups */
  int n, n_groups;      /* variables; shared groups */
  int *member_first;    /* by variable, n + 1 */
  struct member *member;
  int *class_first;     /* classes of all groups in a row, behind the variables: items */
  int *cell, n_cells;   /* of an item */
  int *dying_first, *dying; /* items that don't matter behind variable v */
};

/* item[at[i] .. at[i + 1]) = items whose key is i; keys below n. */
static int *bucket(struct sw_arena *a, int n, const int *key, int n_items, int *item)
{
  int *at = SW_NEW_N(a, int, n + 2);
  for (int i = 0; i < n_items; i++)
    at[key[i] + 2]++;
  for (int i = 2; i <= n; i++)
    at[i + 1] += at[i];
  for (int i = 0; i < n_items; i++)
    item[at[key[i] + 1]++] = i;
  return at;
}

static int later(int a, int b)
{
  return a > b ? a : b;
}

/* First and last variable that an item matters to; cells are given for that time. */
static void lay_out(struct walk *w)
{
  const struct sw_assign_problem *p = w->p;
  int n_items = w->class_first[w->n_groups], *born = SW_NEW_N(w->arena, int, n_items);
  int *last = SW_NEW_N(w->arena, int, n_items);
  for (int v = 0; v < w->n; v++)
    born[v] = last[v] = v;
  for (int i = 0; i < w->net->n_pairs; i++)
    last[w->net->pairs[i].a] = later(last[w->net->pairs[i].a], w->net->pairs[i].b);
  int *first_of = SW_NEW_N(w->arena, int, w->n_groups), *last_of = SW_NEW_N(w->arena, int, w->n_groups);
  for (int g = 0; g < w->n_groups; g++)
    first_of[g] = last_of[g] = p->groups.v[g].producer;
  for (int i = 0; i < p->readers.n && w->n_groups; i++) {
    const struct sw_assign_reader *r = &p->readers.v[i];
    first_of[r->group] = r->variable < first_of[r->group] ? r->variable : first_of[r->group];
    last_of[r->group] = later(last_of[r->group], r->variable);
  }
  for (int g = 0; g < w->n_groups; g++) {
    last[p->groups.v[g].producer] = later(last[p->groups.v[g].producer], last_of[g]);
    for (int t = w->class_first[g]; t < w->class_first[g + 1]; t++) {
      born[t] = first_of[g];
      last[t] = last_of[g];
    }
  }
  int *starting = SW_NEW_N(w->arena, int, n_items);
  w->dying = SW_NEW_N(w->arena, int, n_items);
  w->dying_first = bucket(w->arena, w->n, last, n_items, w->dying);
  int *starting_first = bucket(w->arena, w->n, born, n_items, starting);
  w->cell = SW_NEW_N(w->arena, int, n_items);
  SW_VEC(int) spare = {0};
  for (int v = 0; v < w->n; v++) {
    for (int i = starting_first[v]; i < starting_first[v + 1]; i++)
      w->cell[starting[i]] = spare.n ? spare.v[--spare.n] : w->n_cells++;
    for (int i = w->dying_first[v]; i < w->dying_first[v + 1]; i++)
      *SW_PUSH(w->arena, &spare) = w->cell[w->dying[i]];
  }
}

static struct walk start(struct sw_arena *a, const struct sw_assign_problem *p)
{
  bool shared = p->mode == SW_ASSIGN_SHARED;
  struct walk w = {.p = p, .arena = a, .n = p->variables.n, .n_groups = shared ? p->groups.n : 0};
  w.net = sw_net_build(a, p, shared ? SW_NET_EDGES_ONLY : SW_NET_EVERY_EDGE);
  w.class_first = SW_NEW_N(a, int, w.n_groups + 1);
  w.class_first[0] = w.n;
  for (int g = 0; g < w.n_groups; g++)
    w.class_first[g + 1] = w.class_first[g] + p->groups.v[g].n_classes;
  int n_readers = shared ? p->readers.n : 0, n_members = w.n_groups + n_readers;
  int *key = SW_NEW_N(a, int, n_members), *order = SW_NEW_N(a, int, n_members);
  for (int g = 0; g < w.n_groups; g++)
    key[g] = p->groups.v[g].producer;
  for (int i = 0; i < n_readers; i++)
    key[w.n_groups + i] = p->readers.v[i].variable;
  w.member_first = bucket(a, w.n, key, n_members, order);
  w.member = SW_NEW_N(a, struct member, n_members);
  for (int m = 0; m < n_members; m++) {
    const struct sw_assign_reader *r = order[m] < w.n_groups ? NULL : &p->readers.v[order[m] - w.n_groups];
    w.member[m] = r ? (struct member){r->group, r->wants} : (struct member){order[m], NULL};
  }
  lay_out(&w);
  return w;
}

/* Cost of giving v this label on top of the state; the state's cells are brought up to date, but dying ones stay. */
static int64_t take(const struct walk *w, int v, int label, int *state)
{
  const struct sw_net *net = w->net;
  int64_t sum = net->unary[net->first[v] + label];
  for (int e = net->adj_first[v]; e < net->adj_first[v + 1] && sum != SW_ASSIGN_INF; e++) {
    const struct sw_pair *p = &net->pairs[net->adj[e]];
    if (p->b == v)
      sum = sw_assign__plus(sum, p->t[state[w->cell[p->a]] * p->step_a + label * p->step_b]);
  }
  state[w->cell[v]] = label;
  for (int m = w->member_first[v]; m < w->member_first[v + 1]; m++) {
    const struct member *e = &w->member[m];
    const struct sw_assign_group *g = &w->p->groups.v[e->group];
    const int64_t *conv = w->p->tables.v[g->table].cost;
    const int *wanted = w->cell + w->class_first[e->group];
    if (!e->wants) { /* what earlier readers wanted is paid now */
      for (int t = 0; t < g->n_classes; t++)
        if (state[wanted[t]])
          sum = sw_assign__plus(sum, conv[label * g->n_classes + t]);
      continue;
    }
    int t = e->wants[label];
    if (t < 0 || state[wanted[t]])
      continue;
    state[wanted[t]] = 1;
    if (g->producer < v)
      sum = sw_assign__plus(sum, conv[state[w->cell[g->producer]] * g->n_classes + t]);
  }
  return sum;
}

static void bury(const struct walk *w, int v, int *state)
{
  for (int i = w->dying_first[v]; i < w->dying_first[v + 1]; i++)
    state[w->cell[w->dying[i]]] = 0;
}

/* One way through; labels that are gone are not looked at. False: it ends where no label is possible. */
static bool descend(const struct walk *w, struct sw_arena *scratch, const bool *gone, int *labels)
{
  size_t bytes = (size_t)w->n_cells * sizeof(int);
  int *state = SW_NEW_N(scratch, int, w->n_cells), *trial = SW_NEW_N(scratch, int, w->n_cells);
  for (int v = 0; v < w->n; v++) {
    int64_t least = SW_ASSIGN_INF;
    for (int i = 0; i < w->p->variables.v[v].n_labels; i++) {
      if (gone && gone[w->net->first[v] + i])
        continue;
      memcpy(trial, state, bytes);
      int64_t c = take(w, v, i, trial);
      if (c < least) {
        least = c;
        labels[v] = i;
      }
    }
    if (least == SW_ASSIGN_INF)
      return false;
    take(w, v, labels[v], state);
    bury(w, v, state);
  }
  return true;
}

/* Where the reference's greedy has no answer, labels without a possible partner are taken away and it tries again: what it
 * answers otherwise is not touched by that. A variable that loses all its labels proves that there is no answer. */
const int *sw_assign__greedy(struct sw_job *job, const struct sw_assign_problem *p, const struct sw_assign_options *o,
                             struct sw_assign_result *r)
{
  struct sw_arena *scratch = sw_arena_new(job->arena, 0);
  struct walk w = start(scratch, p);
  int *labels = SW_NEW_N(job->arena, int, w.n);
  bool done = descend(&w, scratch, NULL, labels), empty = false;
  (void)o;
  if (!done) {
    struct sw_net *net = sw_net_build(scratch, p, SW_NET_PER_EDGE);
    empty = sw_net_propagate(net, NULL, scratch, NULL) >= 0;
    done = !empty && descend(&w, scratch, net->gone, labels);
  }
  sw_arena_free(scratch);
  r->status = done ? SW_ASSIGN_FEASIBLE : empty ? SW_ASSIGN_INFEASIBLE : SW_ASSIGN_UNKNOWN;
  return done ? labels : NULL;
}

/* -- beam -- */

struct state {
  int64_t cost;
  double key;
  int serial; /* in order of making */
  int from, label;
  int *cells;
};

/* For every pair and label of its later variable: 1 where the earlier one has a partner. */
static char *partners(struct walk *w, const struct sw_net *net, int *at)
{
  int n = 0;
  for (int e = 0; e < net->n_pairs; e++) {
    at[e] = n;
    n += sw_net_labels(net, net->pairs[e].b);
  }
  char *any = SW_NEW_N(w->arena, char, n);
  for (int e = 0; e < net->n_pairs; e++) {
    const struct sw_pair *p = &net->pairs[e];
    for (int j = 0; j < sw_net_labels(net, p->b); j++)
      for (int i = 0; i < sw_net_labels(net, p->a) && !any[at[e] + j]; i++)
        any[at[e] + j] = p->t[i * p->step_a + j * p->step_b] != SW_ASSIGN_INF;
  }
  return any;
}

/* F of every label of every variable. A label of d counts only when each other neighbour before d has a partner for it; where
 * none counts, the reference puts 1e18. */
static double *estimate(struct walk *w)
{
  struct sw_net *net = sw_net_build(w->arena, w->p, SW_NET_EVERY_EDGE);
  double *f = SW_NEW_N(w->arena, double, net->first[net->n]);
  int *at = SW_NEW_N(w->arena, int, net->n_pairs);
  const char *any = partners(w, net, at);
  for (int v = w->n - 1; v >= 0; v--)
    for (int i = 0; i < sw_net_labels(net, v); i++)
      for (int e = net->adj_first[v]; e < net->adj_first[v + 1]; e++) {
        const struct sw_pair *p = &net->pairs[net->adj[e]];
        if (p->a != v)
          continue;
        double least = INFINITY;
        for (int j = 0; j < sw_net_labels(net, p->b); j++) {
          int64_t c = net->unary[net->first[p->b] + j] == SW_ASSIGN_INF ? SW_ASSIGN_INF : p->t[i * p->step_a + j * p->step_b];
          for (int o = net->adj_first[p->b]; o < net->adj_first[p->b + 1] && c != SW_ASSIGN_INF; o++)
            if (net->pairs[net->adj[o]].b == p->b && !any[at[net->adj[o]] + j])
              c = SW_ASSIGN_INF;
          if (c != SW_ASSIGN_INF)
            least = fmin(least, (double)c + f[net->first[p->b] + j]);
        }
        f[net->first[v] + i] += isfinite(least) ? least : 1e18;
      }
  return f;
}

static int by_key(const void *x, const void *y)
{
  const struct state *a = x, *b = y;
  return a->key != b->key ? (a->key < b->key ? -1 : 1) : a->serial - b->serial;
}

/* Where an equal state stands, or a free place. */
static size_t find(const int *table, size_t cap, const struct state *states, const struct state *s, size_t bytes)
{
  size_t h = sw_hash(s->cells, bytes) & (cap - 1);
  while (table[h] >= 0 && memcmp(states[table[h]].cells, s->cells, bytes))
    h = (h + 1) & (cap - 1);
  return h;
}

struct step { /* what a kept state came from, for the way back */
  int from, label;
};

/* keyed: of two equal states the one with the smaller key stays, not the cheaper one. Beyond 2^53 different costs may have
 * one key; *rounded says whether that mattered. */
static const int *sweep(struct sw_job *job, const struct sw_assign_problem *p, const struct sw_assign_options *o,
                        struct sw_assign_result *r, bool keyed, bool *rounded)
{
  struct sw_arena *scratch = sw_arena_new(job->arena, 0);
  struct walk w = start(scratch, p);
  const double *f = estimate(&w);
  int width = o->beam_width, most = 1, n_states = 1;
  for (int v = 0; v < w.n; v++)
    most = later(most, p->variables.v[v].n_labels);
  size_t bytes = (size_t)w.n_cells * sizeof(int), made = (size_t)width * (size_t)most, cap = 64;
  while (cap < 2 * made)
    cap *= 2;
  struct state *states = SW_NEW_N(scratch, struct state, width + 1), *next = SW_NEW_N(scratch, struct state, made + 1);
  int *table = SW_NEW_N(scratch, int, cap);
  struct step **steps = SW_NEW_N(scratch, struct step *, w.n);
  size_t cells = made * (size_t)w.n_cells + 1;
  int *room[2] = {SW_NEW_N(scratch, int, cells), SW_NEW_N(scratch, int, cells)};
  states[0].cells = room[1];
  for (int v = 0; v < w.n && n_states; v++) {
    int n = 0;
    memset(table, -1, cap * sizeof *table);
    for (int s = 0; s < n_states; s++)
      for (int i = 0; i < p->variables.v[v].n_labels; i++) {
        struct state *t = &next[n];
        t->cells = room[v & 1] + (size_t)n * (size_t)w.n_cells;
        memcpy(t->cells, states[s].cells, bytes);
        t->cost = sw_assign__plus(states[s].cost, take(&w, v, i, t->cells));
        if (t->cost == SW_ASSIGN_INF)
          continue;
        bury(&w, v, t->cells);
        t->key = (double)t->cost + f[w.net->first[v] + i];
        t->serial = n;
        t->from = s;
        t->label = i;
        size_t h = find(table, cap, next, t, bytes);
        struct state *old = table[h] < 0 ? NULL : &next[table[h]];
        *rounded = *rounded || (old && t->cost < old->cost && !(t->key < old->key));
        if (!old) {
          table[h] = n++;
        } else if (keyed ? t->key < old->key : t->cost < old->cost) {
          old->cost = t->cost;
          old->key = t->key;
          old->from = t->from;
          old->label = t->label;
        }
      }
    qsort(next, (size_t)n, sizeof *next, by_key);
    r->stats.pruned += n > width ? n - width : 0;
    n_states = n < width ? n : width;
    memcpy(states, next, (size_t)n_states * sizeof *states);
    steps[v] = SW_NEW_N(scratch, struct step, n_states);
    for (int s = 0; s < n_states; s++)
      steps[v][s] = (struct step){states[s].from, states[s].label};
    r->stats.work += n;
    if (sw_cancelled(job)) {
      r->stopped_by = SW_ASSIGN_STOP_CANCELLED;
      n_states = 0;
    }
  }
  int *labels = n_states ? SW_NEW_N(job->arena, int, w.n) : NULL, best = 0;
  for (int s = 1; s < n_states; s++)
    if (states[s].cost < states[best].cost)
      best = s;
  bool dropped = r->stats.pruned || r->stopped_by != SW_ASSIGN_STOP_NONE;
  /* Nobody dropped: the cost is the optimum, though maybe not with the smallest labels. */
  r->status = n_states ? SW_ASSIGN_FEASIBLE : dropped ? SW_ASSIGN_UNKNOWN : SW_ASSIGN_INFEASIBLE;
  r->bound = n_states && !dropped ? states[best].cost : 0;
  for (int v = w.n - 1, s = best; v >= 0 && labels; v--) {
    labels[v] = steps[v][s].label;
    s = steps[v][s].from;
  }
  sw_arena_free(scratch);
  return labels;
}

/* The labels are those of the reference's way, by key. Where rounding has merged dearer states into cheaper ones, a second
 * sweep, by cost, gives the bound. */
const int *sw_assign__beam(struct sw_job *job, const struct sw_assign_problem *p, const struct sw_assign_options *o,
                           struct sw_assign_result *r)
{
  bool rounded = false, keyed = p->mode == SW_ASSIGN_PER_EDGE; /* the reference shares nothing */
  const int *labels = sweep(job, p, o, r, keyed, &rounded);
  if (!keyed || !rounded || r->stopped_by != SW_ASSIGN_STOP_NONE)
    return labels;
  struct sw_assign_result exact = {0};
  sweep(job, p, o, &exact, false, &rounded);
  r->bound = exact.bound;
  r->stats.work += exact.stats.work;
  return labels;
}
