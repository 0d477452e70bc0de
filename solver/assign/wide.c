/* Islands too wide to eliminate: a good vector, a proved bound, and GLPK if that can close the gap.
 *
 * Vector: threshold accepting from a few random starts (one label at a time; a change for the worse is taken while it
 *   is below a falling threshold). Then leave out variables until no table exceeds 2^w entries, hold them at their
 *   labels, and eliminate the rest: the best of exponentially many vectors in one go. Again with other variables left
 *   out, until that stops helping, then with larger tables. On a 39 x 39 grid with w = 14 about one variable in fifteen is held.
 *   While searching, impossible is a large number: a start need not be possible.
 * Bound: leave out variables and what they cost; each pair to a left one keeps its least cost. No cost is negative, so
 *   the optimum of the rest is a bound. */
#include "solver/assign/program.h"

#include <string.h>

enum { LEAST_LOG2 = 12, MOST_LOG2 = 16, PATIENCE = 8, MAX_ROUNDS = 120, BOUND_LOG2 = 18, BOUNDS = 3 };
enum { STARTS = 8, SWEEPS = 3000 };

struct wide {
  struct sw_arena *arena;
  const struct sw_island *is;
  int64_t budget, work;
  uint64_t seed;
};

/* The island with impossible entries as a number that any possible vector stays below, as far as int64 allows. */
static struct sw_island *soften(struct sw_arena *a, const struct sw_island *is, int64_t *penalty_out)
{
  int64_t sum = 1, terms = is->n + is->n_pairs + 1;
  for (int v = 0; v < is->n; v++) {
    int64_t most = 0;
    for (int i = is->first[v]; i < is->first[v + 1]; i++)
      most = is->unary[i] > most ? is->unary[i] : most; /* labels that are gone don't come here */
    sum += most;
  }
  for (int p = 0; p < is->n_pairs; p++) {
    int64_t most = 0, entries = (int64_t)is->k[is->pairs[p].a] * is->k[is->pairs[p].b];
    for (int64_t e = 0; e < entries; e++)
      if (is->pairs[p].t[e] != SW_ASSIGN_INF && is->pairs[p].t[e] > most)
        most = is->pairs[p].t[e];
    sum += most;
  }
  int64_t half = SW_ASSIGN_INF / 2, penalty = sum < (half - sum) / terms ? sum : (half - sum / 2) / terms;
  *penalty_out = penalty;
  struct sw_island *soft = SW_NEW(a, struct sw_island);
  *soft = *is;
  soft->pairs = sw_arena_copy(a, is->pairs, (size_t)is->n_pairs, sizeof *is->pairs);
  for (int p = 0; p < is->n_pairs; p++) {
    size_t entries = (size_t)is->k[is->pairs[p].a] * (size_t)is->k[is->pairs[p].b];
    int64_t *t = sw_arena_copy(a, is->pairs[p].t, entries, sizeof *t);
    for (size_t e = 0; e < entries; e++)
      t[e] = t[e] == SW_ASSIGN_INF ? penalty : t[e];
    soft->pairs[p].t = t;
  }
  return soft;
}

static int64_t cost_of(const struct sw_island *is, const int *labels)
{
  int64_t sum = 0;
  for (int v = 0; v < is->n; v++)
    sum = sw_assign__plus(sum, is->unary[is->first[v] + labels[v]]);
  for (int p = 0; p < is->n_pairs; p++) {
    const struct sw_pair *e = &is->pairs[p];
    sum = sw_assign__plus(sum, sw_pair_cost(e, e->a, labels[e->a], labels[e->b]));
  }
  return sum;
}

/* The kept variables as an island. A pair to a left one costs what it does at the left one's label, or (labels NULL) at
 * least. number[v]: the variable's number in the part. */
static struct sw_island *part_of(struct sw_arena *a, const struct sw_island *is, const bool *left_out,
                                 const int *labels, int *number)
{
  struct sw_island *part = SW_NEW(a, struct sw_island);
  part->k = SW_NEW_N(a, int, is->n);
  part->first = SW_NEW_N(a, int, is->n + 1);
  part->unary = SW_NEW_N(a, int64_t, is->first[is->n]);
  for (int v = 0; v < is->n; v++) {
    if (left_out[v])
      continue;
    int w = number[v] = part->n++;
    part->k[w] = is->k[v];
    part->first[w + 1] = part->first[w] + is->k[v];
    memcpy(part->unary + part->first[w], is->unary + is->first[v], (size_t)is->k[v] * sizeof *is->unary);
  }
  part->pairs = SW_NEW_N(a, struct sw_pair, is->n_pairs);
  part->adj_first = SW_NEW_N(a, int, part->n + 1);
  part->adj = SW_NEW_N(a, int, 2 * (size_t)is->n_pairs);
  for (int p = 0; p < is->n_pairs; p++) {
    struct sw_pair e = is->pairs[p];
    if (!left_out[e.a] && !left_out[e.b]) {
      e.a = number[e.a];
      e.b = number[e.b];
      part->adj_first[e.a]++, part->adj_first[e.b]++;
      part->pairs[part->n_pairs++] = e;
    } else if (!left_out[e.a] || !left_out[e.b]) {
      int v = left_out[e.a] ? e.b : e.a, u = sw_pair_other(&e, v);
      int64_t *to = part->unary + part->first[number[v]];
      for (int i = 0; i < is->k[v]; i++) {
        int64_t c = SW_ASSIGN_INF;
        for (int j = 0; j < is->k[u]; j++)
          if ((!labels || labels[u] == j) && sw_pair_cost(&e, v, i, j) < c)
            c = sw_pair_cost(&e, v, i, j);
        to[i] = sw_assign__plus(to[i], c);
      }
    }
  }
  for (int v = 0, sum = 0; v <= part->n; v++) {
    int degree = v < part->n ? part->adj_first[v] : 0;
    part->adj_first[v] = sum;
    sum += degree;
  }
  for (int p = 0; p < part->n_pairs; p++)
    part->adj[part->adj_first[part->pairs[p].a]++] = p, part->adj[part->adj_first[part->pairs[p].b]++] = p;
  for (int v = part->n; v > 0; v--)
    part->adj_first[v] = part->adj_first[v - 1];
  part->adj_first[0] = 0;
  return part;
}

/* Optimum of a part, its labels into `labels` when these were held; SW_ASSIGN_INF when the budget is spent. */
static int64_t solve_part(struct wide *w, const struct sw_island *is, int max_log2, int *labels)
{
  struct sw_arena *a = sw_arena_new(w->arena, 0);
  int *order = SW_NEW_N(a, int, is->n), *number = SW_NEW_N(a, int, is->n);
  bool *left_out = SW_NEW_N(a, bool, is->n);
  int n = sw_order_partial(a, is, max_log2, ++w->seed, order, left_out);
  struct sw_island *part = part_of(a, is, left_out, labels, number);
  for (int i = 0; i < n; i++)
    order[i] = number[order[i]];
  struct sw_order *o = sw_order_scopes(a, part, order, (double)(w->budget - w->work));
  int64_t cost = SW_ASSIGN_INF;
  if (o) {
    int *found = SW_NEW_N(a, int, n);
    o->natural = true; /* any of the best vectors will do */
    w->work += (int64_t)o->entries + is->n;
    sw_eliminate(a, part, o, &cost, found);
    for (int v = 0; v < is->n && labels && cost != SW_ASSIGN_INF; v++)
      if (!left_out[v])
        labels[v] = found[number[v]];
  }
  sw_arena_free(a);
  return cost;
}

static uint32_t random32(uint64_t *state)
{
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(*state >> 32);
}

/* Cost of v having label i next to its neighbours. */
static int64_t local_cost(const struct sw_island *is, const int *labels, int v, int i)
{
  int64_t sum = is->unary[is->first[v] + i];
  for (int e = is->adj_first[v]; e < is->adj_first[v + 1]; e++) {
    const struct sw_pair *p = &is->pairs[is->adj[e]];
    sum = sw_assign__plus(sum, sw_pair_cost(p, v, i, labels[sw_pair_other(p, v)]));
  }
  return sum;
}

/* Entries all over the place cost more than those in a row. */
static int64_t sweep_work(const struct sw_island *is)
{
  return 8 * (int64_t)is->n_pairs + 8;
}

/* One run; the threshold falls from the largest cost of an entry that is no penalty to 0. */
static void anneal(struct wide *w, const struct sw_island *is, int64_t top, int64_t sweeps, int *labels)
{
  uint64_t state = ++w->seed * 0x9E3779B97F4A7C15u;
  for (int v = 0; v < is->n; v++)
    labels[v] = (int)(random32(&state) % (uint32_t)is->k[v]);
  for (int64_t sweep = 0; sweep < sweeps; sweep++) {
    int64_t threshold = (int64_t)((__int128)top * (sweeps - 1 - sweep) / sweeps);
    for (int n = 0; n < is->n; n++) {
      int v = (int)(random32(&state) % (uint32_t)is->n);
      int i = (int)(random32(&state) % (uint32_t)(is->k[v] - 1));
      i += i >= labels[v];
      int64_t allowed = (int64_t)((__int128)threshold * random32(&state) >> 32);
      if (local_cost(is, labels, v, i) <= sw_assign__plus(local_cost(is, labels, v, labels[v]), allowed))
        labels[v] = i;
    }
    w->work += sweep_work(is);
  }
}

static void search(struct wide *w, struct sw_job *job, int *labels)
{
  int64_t penalty, cost = SW_ASSIGN_INF, top = 1;
  struct sw_island *soft = soften(w->arena, w->is, &penalty);
  for (int p = 0; p < soft->n_pairs; p++)
    for (int e = 0; e < soft->k[soft->pairs[p].a] * soft->k[soft->pairs[p].b]; e++)
      if (soft->pairs[p].t[e] > top && soft->pairs[p].t[e] < penalty)
        top = soft->pairs[p].t[e];
  int *trial = SW_NEW_N(w->arena, int, soft->n);
  /* Half of the budget at most; rather fewer starts than hasty ones. */
  int starts = 2 * STARTS;
  int64_t sweeps;
  do {
    starts /= 2;
    sweeps = w->budget / 2 / (starts * sweep_work(soft));
  } while (sweeps < SWEEPS / 4 && starts > 1);
  sweeps = sweeps < 1 ? 1 : sweeps < SWEEPS ? sweeps : SWEEPS;
  for (int i = 0; i < starts && !sw_cancelled(job); i++) {
    anneal(w, soft, top, sweeps, trial);
    int64_t now = cost_of(soft, trial);
    if (now > cost)
      continue;
    cost = now;
    memcpy(labels, trial, (size_t)soft->n * sizeof *labels);
  }
  int log2 = LEAST_LOG2;
  for (int idle = 0, round = 0; log2 <= MOST_LOG2 && round < MAX_ROUNDS && !sw_cancelled(job); round++) {
    if (solve_part(w, soft, log2, labels) == SW_ASSIGN_INF)
      break;
    int64_t now = cost_of(soft, labels);
    idle = now < cost ? 0 : idle + 1;
    cost = now;
    if (idle > PATIENCE) {
      idle = 0;
      log2 += 2;
    }
  }
}

struct sw_answer sw_wide(struct sw_job *job, struct sw_arena *keep, const struct sw_island *is, int64_t budget,
                         struct sw_assign_stats *stats)
{
  struct wide w = {.arena = sw_arena_new(keep, 0), .is = is, .budget = budget / 2};
  struct sw_answer s = {.status = SW_ASSIGN_UNKNOWN, .stopped_by = SW_ASSIGN_STOP_NODES, .cost = SW_ASSIGN_INF};
  int *labels = SW_NEW_N(keep, int, is->n);
  search(&w, job, labels);
  int64_t cost = cost_of(is, labels);
  if (cost != SW_ASSIGN_INF) {
    s.status = SW_ASSIGN_FEASIBLE;
    s.cost = cost;
    s.labels = labels;
  }
  w.budget = budget / 4 * 3;
  for (int i = 0; i < BOUNDS && !sw_cancelled(job); i++) {
    int64_t bound = solve_part(&w, is, BOUND_LOG2, NULL);
    if (bound != SW_ASSIGN_INF && bound > s.bound)
      s.bound = bound;
  }
  stats->work += w.work;
  if (sw_cancelled(job)) {
    s.stopped_by = SW_ASSIGN_STOP_CANCELLED;
    sw_arena_free(w.arena);
    return s;
  }
  /* A node costs about as much as a hundred entries a column. */
  enum { ENTRIES_A_COLUMN = 100, MOST_NODES = 300, MOST_COLUMNS = 20000 };
  struct sw_program *q = sw_program_build(w.arena, is->n, is->first, is->unary, is->n_pairs, is->pairs);
  int64_t nodes = (budget - w.work) / ((int64_t)q->n_cols * ENTRIES_A_COLUMN + 1);
  if (nodes > 0 && q->n_cols <= MOST_COLUMNS) {
    struct sw_ilp ilp;
    sw_ilp_solve(job, w.arena, q, nodes < MOST_NODES ? nodes : MOST_NODES, s.labels, s.cost, is->n_ranked, &ilp);
    stats->glpk_calls += ilp.calls;
    stats->glpk_nodes += ilp.nodes;
    stats->work += ilp.nodes * q->n_cols * ENTRIES_A_COLUMN;
    if (ilp.bound > s.bound)
      s.bound = ilp.bound;
    if (ilp.labels) {
      s.labels = sw_arena_copy(keep, ilp.labels, (size_t)is->n, sizeof *ilp.labels);
      s.cost = ilp.cost;
      s.status = ilp.status;
    } else if (ilp.status == SW_ASSIGN_INFEASIBLE) {
      s.status = SW_ASSIGN_INFEASIBLE;
    }
    if (ilp.status == SW_ASSIGN_OPTIMAL || ilp.status == SW_ASSIGN_INFEASIBLE)
      s.stopped_by = SW_ASSIGN_STOP_NONE;
    else if (ilp.stopped_by == SW_ASSIGN_STOP_CANCELLED)
      s.stopped_by = SW_ASSIGN_STOP_CANCELLED;
  }
  if (s.labels && s.bound > s.cost)
    s.bound = s.cost;
  sw_arena_free(w.arena);
  return s;
}
