/* The capacity program solved by a walk through time.
 *
 * Only units that are live now matter for what comes: a state is the set of those that are resident, with the largest
 * value that leads to it. At every row units that begin double the states, states over the limit go, and units that end
 * are forgotten, which merges states. A state that holds a subset of another's units and is worth as much makes the
 * other one useless: less room taken now, never more later. Hand-overs belong to one row; the best of them are found
 * there, for each state. Exact, and fast as long as few buffers are live at a time, which is what programs are like: a
 * decoder has 5 to 10.
 *
 * Example (place-problem.md 5 A), capacity 10: u (6 bytes, value 7) and v (5, 4) at tick 0 give {} 0, {u} 7, {v} 4; w
 * (5, 4) joins at tick 1: {u} 7, {v,w} 8 are the best. */
#include "solver/place/capacity.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_SLOTS = 64, MAX_STATES = 10000, MAX_KEPT = 4000000, MAX_ROW_EDGES = 12 };

struct state {
  uint64_t set; /* of slots */
  int64_t value;
  int from;     /* state of the row before */
};

/* The states of a row while units that end there are still in. */
struct layer {
  struct state *v;
  int n;
};

struct hand_over {
  int column, parent, child; /* buffers */
  uint64_t both;             /* slots of their units */
  int64_t saved;
};

struct frontier {
  struct sw_capacity *g;
  struct sw_arena *arena;
  int *first, *last; /* per column: rows */
  int *slot;         /* per column of a unit */
  uint64_t taken;    /* slots in use */
  struct layer *layers;
  SW_VEC(struct state) now;
  int64_t kept;
  /* of the row in hand */
  struct hand_over edge[MAX_ROW_EDGES];
  int n_edges;
};

static const struct sw_entry *entry(const struct frontier *f, int row, int k)
{
  return &f->g->entries.v[f->g->rows.v[row].from + k];
}

static void find_lives(struct frontier *f)
{
  const struct sw_capacity *g = f->g;
  f->first = SW_NEW_N(f->arena, int, g->n_columns + 1);
  f->last = SW_NEW_N(f->arena, int, g->n_columns + 1);
  f->slot = SW_NEW_N(f->arena, int, g->n_columns + 1);
  memset(f->first, -1, sizeof *f->first * (size_t)(g->n_columns + 1));
  for (int r = 0; r < g->n_sections; r++)
    for (int k = 0; k < g->rows.v[r].n; k++) {
      int c = entry(f, r, k)->column;
      if (f->first[c] < 0)
        f->first[c] = r;
      f->last[c] = r;
    }
}

/* -- hand-overs -- */

static bool find_edges(struct frontier *f, int row)
{
  const struct sw_model *d = f->g->m->model;
  f->n_edges = 0;
  for (int k = 0; k < f->g->rows.v[row].n; k++) {
    const struct sw_entry *x = entry(f, row, k);
    int e = f->g->edge_of_column[x->column];
    if (e < 0)
      continue;
    if (f->n_edges == MAX_ROW_EDGES)
      return false;
    int parent = d->edges[e].parent, child = d->edges[e].child;
    int from = f->g->column_of_unit[d->unit_of[parent]], to = f->g->column_of_unit[d->unit_of[child]];
    f->edge[f->n_edges++] = (struct hand_over){x->column, parent, child,
                                               (uint64_t)1 << f->slot[from] | (uint64_t)1 << f->slot[to], -x->factor};
  }
  return true;
}

/* The most that edges from k on can save beside those chosen; `best` keeps the choice (bits of edges). A buffer hands
 * over once, takes over once, and does not do both in one section. */
static int64_t most_saved(const struct frontier *f, uint64_t set, int k, unsigned chosen, unsigned *best)
{
  for (; k < f->n_edges; k++) {
    const struct hand_over *x = &f->edge[k];
    bool possible = (x->both & set) == x->both;
    for (int j = 0; j < k && possible; j++)
      if (chosen >> j & 1)
        possible = f->edge[j].parent != x->parent && f->edge[j].child != x->child && f->edge[j].parent != x->child &&
                   f->edge[j].child != x->parent;
    if (!possible)
      continue;
    unsigned with, without;
    int64_t a = x->saved + most_saved(f, set, k + 1, chosen | 1u << k, &with);
    int64_t b = most_saved(f, set, k + 1, chosen, &without);
    *best = a >= b ? with : without;
    return a >= b ? a : b;
  }
  *best = chosen;
  return 0;
}

/* -- states -- */

static bool begin_units(struct frontier *f, int row)
{
  const struct sw_capacity *g = f->g;
  for (int k = 0; k < g->rows.v[row].n; k++) {
    int c = entry(f, row, k)->column, u = g->unit_of_column[c];
    if (u < 0 || f->first[c] != row)
      continue;
    if (f->taken == UINT64_MAX)
      return false;
    f->slot[c] = __builtin_ctzll(~f->taken);
    f->taken |= (uint64_t)1 << f->slot[c];
    int n = f->now.n;
    for (int i = 0; i < n; i++) {
      struct state with = f->now.v[i];
      with.set |= (uint64_t)1 << f->slot[c];
      with.value += g->m->model->units[u].value;
      if (g->m->model->units[u].required)
        f->now.v[i] = with;
      else
        *SW_PUSH(f->arena, &f->now) = with;
    }
    if (f->now.n > MAX_STATES)
      return false;
  }
  return true;
}

static void drop_overfull(struct frontier *f, int row)
{
  const struct sw_row *r = &f->g->rows.v[row];
  int kept = 0;
  for (int i = 0; i < f->now.n; i++) {
    int64_t load = 0;
    for (int k = 0; k < r->n; k++) {
      const struct sw_entry *x = entry(f, row, k);
      if (f->g->unit_of_column[x->column] >= 0 && f->now.v[i].set >> f->slot[x->column] & 1)
        load += x->factor;
    }
    unsigned choice;
    if (load > r->limit && f->n_edges)
      load -= most_saved(f, f->now.v[i].set, 0, 0, &choice);
    if (load <= r->limit)
      f->now.v[kept++] = f->now.v[i];
  }
  f->g->m->work -= (int64_t)f->now.n * r->n;
  f->now.n = kept;
}

static bool keep_layer(struct frontier *f, int row)
{
  f->kept += f->now.n;
  if (f->kept > MAX_KEPT)
    return false;
  f->layers[row].n = f->now.n;
  f->layers[row].v = sw_arena_copy(f->arena, f->now.v, (size_t)f->now.n, sizeof *f->now.v);
  for (int i = 0; i < f->now.n; i++)
    f->now.v[i].from = i;
  return true;
}

static void end_units(struct frontier *f, int row)
{
  uint64_t ended = 0;
  for (int k = 0; k < f->g->rows.v[row].n; k++) {
    int c = entry(f, row, k)->column;
    if (f->g->unit_of_column[c] >= 0 && f->last[c] == row)
      ended |= (uint64_t)1 << f->slot[c];
  }
  f->taken &= ~ended;
  for (int i = 0; i < f->now.n; i++)
    f->now.v[i].set &= ~ended;
}

/* Most valuable first, small sets before large ones, so that whatever makes a state useless stands before it. */
static int by_value(const void *a, const void *b)
{
  const struct state *x = a, *y = b;
  if (x->value != y->value)
    return x->value > y->value ? -1 : 1;
  int n = __builtin_popcountll(x->set) - __builtin_popcountll(y->set);
  if (n)
    return n;
  if (x->set != y->set)
    return x->set < y->set ? -1 : 1;
  return x->from - y->from;
}

static void drop_useless(struct frontier *f)
{
  int kept = 0;
  qsort(f->now.v, (size_t)f->now.n, sizeof *f->now.v, by_value);
  for (int i = 0; i < f->now.n; i++) {
    bool useless = false;
    for (int j = 0; j < kept && !useless; j++)
      useless = !(f->now.v[j].set & ~f->now.v[i].set);
    if (!useless)
      f->now.v[kept++] = f->now.v[i];
    f->g->m->work -= kept / 16;
  }
  f->now.n = kept;
}

/* -- all -- */

static void trace_back(struct frontier *f)
{
  struct sw_capacity *g = f->g;
  struct sw_master *m = g->m;
  int at = f->now.v[0].from;
  for (int r = g->n_sections - 1; r >= 0; r--) {
    const struct state *s = &f->layers[r].v[at];
    unsigned choice = 0;
    for (int k = 0; k < g->rows.v[r].n; k++) {
      int c = entry(f, r, k)->column;
      if (g->unit_of_column[c] >= 0 && f->first[c] == r)
        m->in[g->unit_of_column[c]] = s->set >> f->slot[c] & 1;
    }
    find_edges(f, r);
    most_saved(f, s->set, 0, 0, &choice);
    for (int k = 0; k < f->n_edges; k++)
      m->merged[g->edge_of_column[f->edge[k].column]] = choice >> k & 1;
    at = s->from;
  }
}

bool sw_frontier_solve(struct sw_capacity *g)
{
  struct sw_master *m = g->m;
  struct frontier f = {.g = g, .arena = g->arena, .layers = SW_NEW_N(g->arena, struct layer, g->n_sections)};
  if (m->n_cuts) /* they tie units together that do not live at one time */
    return false;
  find_lives(&f);
  *SW_PUSH(f.arena, &f.now) = (struct state){0, g->always, 0};
  for (int r = 0; r < g->n_sections; r++) {
    if (!begin_units(&f, r) || !find_edges(&f, r) || m->work <= 0)
      return false;
    drop_overfull(&f, r);
    if (!keep_layer(&f, r))
      return false;
    end_units(&f, r);
    drop_useless(&f);
  }
  m->answer = SW_MASTER_NONE;
  if (!f.now.n || f.now.v[0].value < m->need)
    return true;
  m->answer = SW_MASTER_BEST;
  m->value = m->bound = f.now.v[0].value;
  trace_back(&f);
  return true;
}
