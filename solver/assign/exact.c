/* The exact solver: reduce, split into islands, solve each once, put the answers together.
 *
 * A variable with one label left cuts the network: its costs go into its neighbours' labels. What hangs together then
 * is an island; a matmul fixes its layouts, so graphs of tensors fall into many. Islands of equal content (costs,
 * and the order of variables and labels, which decides ties) have equal answers: layers of a model are solved once. */
#include "solver/assign/exact.h"

#include <string.h>

struct exact {
  struct sw_job *job;
  const struct sw_assign_options *options;
  struct sw_assign_result *r;
  struct sw_arena *arena;
  struct sw_net *net;
  int *component; /* island of a variable, -1 */
  int *member_first, *member; /* variables of an island, ascending */
  int n_islands;
  int *local;    /* number within the island */
  int *chosen;   /* label of each variable of the network */
  int64_t base;  /* cost of fixed variables, and what was taken out of the islands */
  int live;
  struct sw_map memo;
  SW_VEC(struct sw_answer) answers;
};

static int only_label(const struct sw_net *net, int v)
{
  int found = -1;
  for (int i = net->first[v]; i < net->first[v + 1]; i++)
    if (net->unary[i] != SW_ASSIGN_INF) {
      if (found >= 0)
        return -1;
      found = i - net->first[v];
    }
  return found;
}

/* Chooses what has no choice, and moves its costs to the neighbours. */
static void fix(struct exact *x)
{
  struct sw_net *net = x->net;
  for (int v = 0; v < net->n; v++) {
    x->chosen[v] = net->rep[v] == v ? only_label(net, v) : -1;
    if (net->rep[v] != v)
      continue;
    if (x->chosen[v] >= 0)
      x->base = sw_assign__plus(x->base, net->unary[net->first[v] + x->chosen[v]]);
    else
      x->live++;
  }
  for (int i = 0; i < net->n_pairs; i++) {
    const struct sw_pair *p = &net->pairs[i];
    int la = x->chosen[p->a], lb = x->chosen[p->b];
    if (la >= 0 && lb >= 0) {
      x->base = sw_assign__plus(x->base, sw_pair_cost(p, p->a, la, lb));
    } else if (la >= 0 || lb >= 0) {
      int fixed = la >= 0 ? p->a : p->b, v = sw_pair_other(p, fixed), label = la >= 0 ? la : lb;
      int64_t *u = net->unary + net->first[v];
      for (int j = 0; j < sw_net_labels(net, v); j++)
        u[j] = sw_assign__plus(u[j], sw_pair_cost(p, v, j, label));
    }
  }
}

static bool is_live(const struct exact *x, int v)
{
  return x->net->rep[v] == v && x->chosen[v] < 0;
}

static void find_islands(struct exact *x)
{
  const struct sw_net *net = x->net;
  int *todo = SW_NEW_N(x->arena, int, x->live + 1), n = 0;
  x->component = SW_NEW_N(x->arena, int, net->n);
  x->member_first = SW_NEW_N(x->arena, int, x->live + 2);
  x->member = SW_NEW_N(x->arena, int, x->live);
  x->local = SW_NEW_N(x->arena, int, net->n);
  for (int v = 0; v < net->n; v++)
    x->component[v] = -1;
  for (int v = 0; v < net->n; v++) {
    if (!is_live(x, v) || x->component[v] >= 0)
      continue;
    x->component[v] = x->n_islands;
    for (todo[n++] = v; n;) {
      int u = todo[--n];
      x->member_first[x->n_islands + 2]++;
      for (int e = net->adj_first[u]; e < net->adj_first[u + 1]; e++) {
        int w = sw_pair_other(&net->pairs[net->adj[e]], u);
        if (is_live(x, w) && x->component[w] < 0) {
          x->component[w] = x->n_islands;
          todo[n++] = w;
        }
      }
    }
    x->n_islands++;
  }
  /* Counts stand two places ahead, so that filling leaves the first members where they belong. */
  for (int i = 2; i <= x->n_islands; i++)
    x->member_first[i + 1] += x->member_first[i];
  for (int v = 0; v < net->n; v++)
    if (x->component[v] >= 0)
      x->member[x->member_first[x->component[v] + 1]++] = v;
}

/* -- one island -- */

static struct sw_island *island_of(struct exact *x, struct sw_arena *a, int index, int **label_of)
{
  const struct sw_net *net = x->net;
  const int *member = x->member + x->member_first[index];
  struct sw_island *is = SW_NEW(a, struct sw_island);
  int n = is->n = x->member_first[index + 1] - x->member_first[index], labels = 0, pairs = 0;
  for (int i = 0; i < n; i++) {
    x->local[member[i]] = i;
    labels += sw_net_labels(net, member[i]);
    is->n_ranked += member[i] < net->n_real;
    for (int e = net->adj_first[member[i]]; e < net->adj_first[member[i] + 1]; e++)
      pairs += is_live(x, net->pairs[net->adj[e]].a) && is_live(x, net->pairs[net->adj[e]].b);
  }
  is->k = SW_NEW_N(a, int, n);
  is->first = SW_NEW_N(a, int, n + 1);
  is->unary = SW_NEW_N(a, int64_t, labels);
  is->pairs = SW_NEW_N(a, struct sw_pair, pairs / 2);
  is->adj_first = SW_NEW_N(a, int, n + 1);
  is->adj = SW_NEW_N(a, int, pairs);
  *label_of = SW_NEW_N(a, int, labels);
  for (int i = 0; i < n; i++) {
    const int64_t *u = net->unary + net->first[member[i]];
    int at = is->first[i];
    int64_t least = SW_ASSIGN_INF;
    for (int j = 0; j < sw_net_labels(net, member[i]); j++) {
      if (u[j] == SW_ASSIGN_INF)
        continue;
      least = u[j] < least ? u[j] : least;
      (*label_of)[at] = j;
      is->unary[at++] = u[j];
    }
    is->first[i + 1] = at;
    is->k[i] = at - is->first[i];
    for (int j = is->first[i]; j < at; j++)
      is->unary[j] -= least;
    x->base += least;
  }
  for (int i = 0; i < n; i++)
    for (int e = net->adj_first[member[i]]; e < net->adj_first[member[i] + 1]; e++) {
      const struct sw_pair *p = &net->pairs[net->adj[e]];
      if (p->a != member[i] || !is_live(x, p->b))
        continue;
      int a_at = is->first[i], j = x->local[p->b], b_at = is->first[j], kb = is->k[j];
      int64_t *t = SW_NEW_N(a, int64_t, (size_t)is->k[i] * (size_t)kb);
      for (int l = 0; l < is->k[i]; l++)
        for (int m = 0; m < kb; m++)
          t[l * kb + m] = sw_pair_cost(p, p->a, (*label_of)[a_at + l], (*label_of)[b_at + m]);
      is->adj_first[i]++, is->adj_first[j]++;
      is->pairs[is->n_pairs++] = (struct sw_pair){i, j, kb, 1, t};
    }
  for (int i = 0, sum = 0; i <= n; i++) {
    int degree = i < n ? is->adj_first[i] : 0;
    is->adj_first[i] = sum;
    sum += degree;
  }
  for (int i = 0; i < is->n_pairs; i++)
    is->adj[is->adj_first[is->pairs[i].a]++] = i, is->adj[is->adj_first[is->pairs[i].b]++] = i;
  for (int i = n; i > 0; i--)
    is->adj_first[i] = is->adj_first[i - 1];
  is->adj_first[0] = 0;
  return is;
}

/* The island as one string of bytes. */
static struct sw_buf content_of(const struct sw_island *is, struct sw_arena *a)
{
  struct sw_buf b = {.arena = a};
  int head[] = {is->n, is->n_ranked, is->n_pairs};
  sw_buf_add(&b, head, sizeof head);
  sw_buf_add(&b, is->k, (size_t)is->n * sizeof *is->k);
  sw_buf_add(&b, is->unary, (size_t)is->first[is->n] * sizeof *is->unary);
  for (int i = 0; i < is->n_pairs; i++) {
    const struct sw_pair *p = &is->pairs[i];
    int ends[] = {p->a, p->b};
    sw_buf_add(&b, ends, sizeof ends);
    sw_buf_add(&b, p->t, (size_t)is->k[p->a] * (size_t)is->k[p->b] * sizeof *p->t);
  }
  return b;
}

enum { MAX_WIDTH = 40 }; /* 2^40 entries are out of reach anyway */
static const double max_memory = (double)(1ull << 31); /* bytes of one elimination */

static struct sw_answer solve_island(struct exact *x, struct sw_arena *scratch, const struct sw_island *is)
{
  struct sw_answer s = {.status = SW_ASSIGN_OPTIMAL};
  struct sw_order *o = sw_order_find(scratch, is);
  double left = (double)(x->options->budget - x->r->stats.work);
  if (!o || o->entries > left || o->width > MAX_WIDTH || 24 * o->largest + o->entries / 8 > max_memory)
    return sw_wide(x->job, x->arena, is, x->options->budget - x->r->stats.work, &x->r->stats);
  int *labels = SW_NEW_N(x->arena, int, is->n);
  bool smallest = sw_eliminate(scratch, is, o, &s.cost, labels);
  x->r->stats.work += (int64_t)o->entries;
  x->r->stats.eliminated += is->n;
  s.bound = s.cost;
  s.width = o->width;
  s.order = sw_arena_copy(x->arena, o->order, (size_t)is->n, sizeof *o->order);
  if (s.cost == SW_ASSIGN_INF)
    return s.status = SW_ASSIGN_INFEASIBLE, s;
  s.labels = labels;
  if (!smallest) {
    s.status = SW_ASSIGN_FEASIBLE;
    s.stopped_by = SW_ASSIGN_STOP_MEMORY;
  }
  return s;
}

static void worst_of(struct sw_assign_result *r, const struct sw_answer *s)
{
  static const int badness[] = {[SW_ASSIGN_OPTIMAL] = 0, [SW_ASSIGN_FEASIBLE] = 1, [SW_ASSIGN_UNKNOWN] = 2,
                                [SW_ASSIGN_INFEASIBLE] = 3};
  if (badness[s->status] > badness[r->status])
    r->status = s->status;
  if (r->stopped_by == SW_ASSIGN_STOP_NONE)
    r->stopped_by = s->stopped_by;
}

static void one_island(struct exact *x, int index)
{
  struct sw_assign_result *r = x->r;
  struct sw_arena *scratch = sw_arena_new(x->arena, 0);
  int *label_of;
  struct sw_island *is = island_of(x, scratch, index, &label_of);
  const int *member = x->member + x->member_first[index];
  struct sw_answer s;
  /* One that is most of the problem has no twin: don't copy it. */
  bool remember = 2 * is->n <= x->live;
  struct sw_buf content = {0};
  int64_t known = -1;
  if (remember) {
    content = content_of(is, scratch);
    known = sw_map_get(&x->memo, content.p, content.n);
  }
  if (known >= 0) {
    s = x->answers.v[known];
  } else {
    r->stats.distinct++;
    s = solve_island(x, scratch, is);
    if (remember)
      sw_map_set(&x->memo, content.p, content.n, x->answers.n);
    *SW_PUSH(x->arena, &x->answers) = s;
  }
  sw_tell(x->job, (struct sw_progress){"assign", index + 1, x->n_islands, s.labels, s.bound != SW_ASSIGN_INF, s.cost, s.bound});
  worst_of(r, &s);
  r->bound = sw_assign__plus(r->bound, s.bound);
  for (int i = 0; s.labels && i < is->n; i++)
    x->chosen[member[i]] = label_of[is->first[i] + s.labels[i]];
  if (!s.order)
    r->certificate.method = "search";
  for (int i = 0; s.order && i < is->n; i++)
    *SW_PUSH(x->job->arena, &r->certificate.order) = member[s.order[i]];
  if (s.width > r->stats.max_width)
    r->stats.max_width = s.width;
  sw_arena_free(scratch);
}

/* The budget ended before there was a vector: what greedy or a beam finds is better than nothing. */
static const int *any_vector(struct sw_job *job, const struct sw_assign_problem *p, struct sw_assign_result *r)
{
  struct sw_assign_options cheap = sw_assign_defaults();
  struct sw_assign_result other = {0};
  const int *labels = sw_assign__greedy(job, p, &cheap, &other);
  if (!labels)
    labels = sw_assign__beam(job, p, &cheap, &other);
  if (labels)
    r->status = SW_ASSIGN_FEASIBLE;
  return labels;
}

const int *sw_assign__exact(struct sw_job *job, const struct sw_assign_problem *p, const struct sw_assign_options *o,
                            struct sw_assign_result *r)
{
  struct exact x = {.job = job, .options = o, .r = r, .arena = sw_arena_new(job->arena, 0)};
  x.memo.arena = x.arena;
  r->status = SW_ASSIGN_OPTIMAL;
  r->certificate.method = "elimination";
  x.net = sw_net_build(x.arena, p, p->mode == SW_ASSIGN_SHARED ? SW_NET_COPIES : SW_NET_PER_EDGE);
  int empty;
  x.net = sw_net_reduce(x.arena, x.net, &r->certificate, job->arena, &empty);
  int *labels = NULL;
  if (empty >= 0) {
    r->status = SW_ASSIGN_INFEASIBLE;
  } else {
    x.chosen = SW_NEW_N(x.arena, int, x.net->n);
    fix(&x);
    find_islands(&x);
    r->stats.islands = x.n_islands;
    for (int i = 0; i < x.n_islands && r->status != SW_ASSIGN_INFEASIBLE; i++) {
      if (sw_cancelled(job)) {
        worst_of(r, &(struct sw_answer){.status = SW_ASSIGN_UNKNOWN, .stopped_by = SW_ASSIGN_STOP_CANCELLED});
        break;
      }
      job->part = i + 1;
      job->parts = x.n_islands;
      one_island(&x, i);
    }
    r->stats.presolved = p->variables.n;
    for (int v = 0; v < p->variables.n; v++)
      r->stats.presolved -= is_live(&x, v) || x.component[v] >= 0;
    r->bound = sw_assign__plus(r->bound, x.base);
  }
  if (r->status == SW_ASSIGN_OPTIMAL || r->status == SW_ASSIGN_FEASIBLE) {
    labels = SW_NEW_N(job->arena, int, p->variables.n);
    for (int v = 0; v < p->variables.n; v++) {
      int top = x.net->rep[v];
      labels[v] = top == v ? x.chosen[v] : x.net->map[v][x.chosen[top]];
    }
  }
  r->certificate.width = r->stats.max_width;
  sw_arena_free(x.arena);
  bool ran_out = r->status == SW_ASSIGN_UNKNOWN && r->stopped_by != SW_ASSIGN_STOP_CANCELLED;
  return ran_out ? any_vector(job, p, r) : labels;
}
