/* Making the network smaller without changing the answer.
 *
 * Impossible: a label whose own cost is impossible, or that has no possible partner in a neighbour.
 * Worse: label j, when label i of the same variable costs no more whatever the neighbours do:
 *     unary(i) + sum over pairs of max over the neighbour's labels b of (T(i,b) - T(j,b))  <=  unary(j).
 *   On equality only the later label goes, or the lexicographically smallest optimum could be lost; a copy has no place
 *   in that order, so either may go. Twin labels (equal rows) are the case where both sides are equal everywhere.
 *   Example: labels with costs 0 and 5 and one pair [[3, 0], [0, 1]]: the largest loss of the first is 3 <= 5, so the
 *   second goes.
 * Determined: when each label of u leaves just one label of v possible (an equality, a transposition), v is a function
 *   of u and its costs move to u. Only from a later into an earlier variable: then the order of the vectors stays. */
#include "solver/assign/net.h"

#include <string.h>

struct reduce {
  struct sw_net *net;
  struct sw_arena *scratch, *keep;
  struct sw_assign_certificate *certificate;
  bool *hard;       /* pair has an impossible entry */
  int *alive;       /* labels left of a variable */
  int *cause;       /* pair that made a label impossible, or -1; by label offset */
  struct queue {    /* ring of variables, each at most once */
    int *v, head, n, cap;
    bool *in;
  } changed, suspects; /* labels were lost; dominance is worth a look */
  int empty;
};

static void push(struct queue *q, int v)
{
  if (q->in[v])
    return;
  q->in[v] = true;
  q->v[(q->head + q->n++) % q->cap] = v;
}

static int pop(struct queue *q)
{
  int v = q->v[q->head];
  q->head = (q->head + 1) % q->cap;
  q->n--;
  q->in[v] = false;
  return v;
}

static void queue_init(struct queue *q, struct sw_arena *a, int n)
{
  *q = (struct queue){.v = SW_NEW_N(a, int, n + 1), .in = SW_NEW_N(a, bool, n), .cap = n + 1};
}

static void record(struct reduce *r, enum sw_assign_step_kind kind, int v, int label, int by)
{
  if (r->certificate)
    *SW_PUSH(r->keep, &r->certificate->steps) = (struct sw_assign_step){kind, v, label, by};
}

static void start(struct reduce *r)
{
  struct sw_net *net = r->net;
  struct sw_arena *a = r->scratch;
  r->hard = SW_NEW_N(a, bool, net->n_pairs);
  r->alive = SW_NEW_N(a, int, net->n);
  r->cause = SW_NEW_N(a, int, net->first[net->n]);
  r->empty = -1;
  queue_init(&r->changed, a, net->n);
  queue_init(&r->suspects, a, net->n);
  for (int i = 0; i < net->n_pairs; i++) {
    const struct sw_pair *p = &net->pairs[i];
    int entries = sw_net_labels(net, p->a) * sw_net_labels(net, p->b);
    for (int e = 0; e < entries && !r->hard[i]; e++)
      r->hard[i] = p->t[e] == SW_ASSIGN_INF;
  }
  for (int v = 0; v < net->n; v++) {
    if (net->rep[v] != v)
      continue;
    for (int i = net->first[v]; i < net->first[v + 1]; i++) {
      r->cause[i] = -1;
      if (net->unary[i] != SW_ASSIGN_INF) {
        r->alive[v]++;
      } else if (!net->gone[i]) {
        net->gone[i] = true;
        record(r, SW_ASSIGN_IMPOSSIBLE, v, i - net->first[v], -1);
      }
    }
    if (!r->alive[v] && r->empty < 0)
      r->empty = v;
    push(&r->changed, v);
    push(&r->suspects, v);
  }
}

static void lose(struct reduce *r, int v, int label)
{
  r->net->unary[r->net->first[v] + label] = SW_ASSIGN_INF;
  r->net->gone[r->net->first[v] + label] = true;
  if (!--r->alive[v])
    r->empty = v;
  push(&r->changed, v);
}

/* Labels of w that have no possible partner in v any more. */
static void revise(struct reduce *r, int pair, int w, int v)
{
  const struct sw_net *net = r->net;
  const struct sw_pair *p = &net->pairs[pair];
  const int64_t *uw = net->unary + net->first[w], *uv = net->unary + net->first[v];
  int kw = sw_net_labels(net, w), kv = sw_net_labels(net, v);
  for (int j = 0; j < kw; j++) {
    if (uw[j] == SW_ASSIGN_INF)
      continue;
    bool supported = false;
    for (int i = 0; i < kv && !supported; i++)
      supported = uv[i] != SW_ASSIGN_INF && sw_pair_cost(p, w, j, i) != SW_ASSIGN_INF;
    if (supported)
      continue;
    record(r, SW_ASSIGN_IMPOSSIBLE, w, j, -1);
    r->cause[net->first[w] + j] = pair;
    lose(r, w, j);
  }
}

static void propagate(struct reduce *r)
{
  const struct sw_net *net = r->net;
  while (r->changed.n && r->empty < 0) {
    int v = pop(&r->changed);
    push(&r->suspects, v);
    for (int i = net->adj_first[v]; i < net->adj_first[v + 1] && r->empty < 0; i++) {
      int w = sw_pair_other(&net->pairs[net->adj[i]], v);
      push(&r->suspects, w);
      if (r->hard[net->adj[i]])
        revise(r, net->adj[i], w, v);
    }
  }
}

/* Back from the empty variable: who took its labels, and who took theirs. */
static void trace(const struct reduce *r, bool *involved)
{
  const struct sw_net *net = r->net;
  SW_VEC(int) todo = {0};
  involved[r->empty] = true;
  *SW_PUSH(r->scratch, &todo) = r->empty;
  while (todo.n) {
    int v = todo.v[--todo.n];
    for (int i = net->first[v]; i < net->first[v + 1]; i++) {
      if (net->unary[i] != SW_ASSIGN_INF || r->cause[i] < 0)
        continue;
      int w = sw_pair_other(&net->pairs[r->cause[i]], v);
      if (involved[w])
        continue;
      involved[w] = true;
      *SW_PUSH(r->scratch, &todo) = w;
    }
  }
}

int sw_net_propagate(struct sw_net *net, struct sw_assign_certificate *certificate, struct sw_arena *keep,
                     bool *involved)
{
  struct reduce r = {.net = net, .scratch = sw_arena_new(net->arena, 0), .certificate = certificate, .keep = keep};
  start(&r);
  propagate(&r);
  if (involved && r.empty >= 0)
    trace(&r, involved);
  sw_arena_free(r.scratch);
  return r.empty;
}

/* -- dominance -- */

/* unary(j) - unary(i) - the most that i can lose against j; negative: i does not dominate. */
static int64_t advantage(const struct reduce *r, int v, int i, int j)
{
  const struct sw_net *net = r->net;
  const int64_t *u = net->unary + net->first[v];
  int64_t sum = u[j] - u[i];
  for (int n = net->adj_first[v]; n < net->adj_first[v + 1]; n++) {
    const struct sw_pair *p = &net->pairs[net->adj[n]];
    int w = sw_pair_other(p, v), kw = sw_net_labels(net, w);
    const int64_t *uw = net->unary + net->first[w];
    int step_v = v == p->a ? p->step_a : p->step_b, step_w = v == p->a ? p->step_b : p->step_a;
    const int64_t *ti = p->t + i * step_v, *tj = p->t + j * step_v;
    int64_t most = INT64_MIN;
    for (int b = 0; b < kw; b++) {
      int64_t ci = ti[b * step_w], cj = tj[b * step_w];
      if (uw[b] == SW_ASSIGN_INF || cj == SW_ASSIGN_INF)
        continue;
      if (ci == SW_ASSIGN_INF)
        return -1;
      if (ci - cj > most)
        most = ci - cj;
    }
    if (most == INT64_MIN)
      return -1;
    sum -= most;
  }
  return sum;
}

static void dominate(struct reduce *r, int v, int64_t *work)
{
  struct sw_net *net = r->net;
  int k = sw_net_labels(net, v);
  const int64_t *u = net->unary + net->first[v];
  for (int j = k - 1; j >= 0 && r->alive[v] > 1; j--) {
    if (u[j] == SW_ASSIGN_INF)
      continue;
    for (int i = 0; i < k; i++) {
      if (i == j || u[i] == SW_ASSIGN_INF)
        continue;
      *work -= 1 + net->adj_first[v + 1] - net->adj_first[v];
      int64_t gain = advantage(r, v, i, j);
      if (gain > 0 || (gain == 0 && (i < j || v >= net->n_real))) {
        record(r, SW_ASSIGN_WORSE, v, j, i);
        lose(r, v, j);
        break;
      }
    }
  }
}

/* -- merging -- */

/* The label of b that each label of a leaves possible, when it is just one for each; else NULL. Gone labels get 0. */
static int *determined(const struct reduce *r, const struct sw_pair *p, struct sw_arena *a)
{
  const struct sw_net *net = r->net;
  const int64_t *ua = net->unary + net->first[p->a], *ub = net->unary + net->first[p->b];
  int ka = sw_net_labels(net, p->a), kb = sw_net_labels(net, p->b);
  for (int pass = 0, *f = NULL; pass < 2; pass++) {
    if (pass)
      f = SW_NEW_N(a, int, ka);
    for (int i = 0; i < ka; i++) {
      int found = 0;
      for (int j = 0; j < kb && ua[i] != SW_ASSIGN_INF; j++)
        if (ub[j] != SW_ASSIGN_INF && sw_pair_cost(p, p->a, i, j) != SW_ASSIGN_INF) {
          found++;
          if (f)
            f[i] = j;
        }
      if (found != 1 && ua[i] != SW_ASSIGN_INF)
        return NULL;
    }
    if (f)
      return f;
  }
  return NULL;
}

/* Gives the number of variables put into another one. A variable that others went into this time stays itself. */
static int merge(struct reduce *r, struct sw_arena *a)
{
  struct sw_net *net = r->net;
  bool *target = SW_NEW_N(r->scratch, bool, net->n);
  int merged = 0;
  for (int i = 0; i < net->n_pairs; i++) {
    const struct sw_pair *p = &net->pairs[i];
    if (!r->hard[i] || r->alive[p->a] < 2 || r->alive[p->b] < 2 || net->rep[p->a] != p->a || net->rep[p->b] != p->b ||
        target[p->b])
      continue;
    int *f = determined(r, p, a);
    if (!f)
      continue;
    net->rep[p->b] = p->a;
    net->map[p->b] = f;
    target[p->a] = true;
    record(r, SW_ASSIGN_MERGED, p->b, -1, p->a);
    merged++;
  }
  /* Whoever was in one of them before comes along. */
  for (int v = 0; v < net->n && merged; v++) {
    int middle = net->rep[v], top = net->rep[middle];
    if (middle == v || middle == top)
      continue;
    int k = sw_net_labels(net, top), *f = SW_NEW_N(a, int, k);
    for (int i = 0; i < k; i++) {
      int m = net->map[middle][i];
      f[i] = net->map[v] ? net->map[v][m] : m;
    }
    net->rep[v] = top;
    net->map[v] = f;
  }
  return merged;
}

struct sw_net *sw_net_reduce(struct sw_arena *a, struct sw_net *net, struct sw_assign_certificate *certificate,
                             struct sw_arena *keep, int *empty)
{
  for (int merged = 1; merged;) {
    struct reduce r = {.net = net, .scratch = sw_arena_new(a, 0), .certificate = certificate, .keep = keep};
    start(&r);
    propagate(&r);
    /* Dominance can go round for long; what it leaves, elimination does. */
    int64_t work = 1000000 + 100 * (int64_t)net->first[net->n];
    while (r.suspects.n && r.empty < 0 && work > 0) {
      dominate(&r, pop(&r.suspects), &work);
      propagate(&r);
    }
    *empty = r.empty;
    merged = r.empty < 0 ? merge(&r, a) : 0;
    sw_arena_free(r.scratch);
    if (merged)
      net = sw_net_contract(a, net);
  }
  return net;
}
