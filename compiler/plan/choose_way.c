/* Which means a plan uses (profile best). Tiles, divisions chosen together, copies of graph inputs into LX and relayouts
 * each save memory traffic, but none of them is faster always, and which is only the whole program tells: a kernel of
 * plain ops fetches an input once anyway, and then a copy is one op too many; where some op has a rate of its own every op
 * fetches its operands itself. So the program is planned with every subset of them and the fastest plan is kept. What
 * makes no difference needs no second look: most programs have no buffer that is worth tiles, and few have relayouts.
 *
 * Layer norm of [2,64,256]: with a copy the input is read once instead of twice, and what is left of the broadcast in
 * its last op is small: 1991 ns instead of 3451.
 *
 * An attempt plans a copy of the program in memory of its own; its time is all that is left of it. What an attempt says of the
 * program is not heard: the plan that is kept is made again, by the caller. */
#include "compiler/plan/parts.h"

#include "base/options.h"

#include <math.h>

enum { N_SETS = 1 << SW_N_MEANS, MAX_HALVINGS = 2, MAX_OPTIONS = 6 };
static const double worth_a_look = 1e-3; /* of the time: what a kind of parts has to save at most, by its estimate */

struct attempt {
  bool fine;
  unsigned made; /* the means that made a difference */
  double ns;
  int64_t pool_bytes;
};

#define COPY(arena, vec)                                                              \
  do {                                                                                \
    (vec)->cap = (vec)->n;                                                            \
    if ((vec)->n)                                                                     \
      (vec)->v = sw_arena_copy((arena), (vec)->v, (size_t)(vec)->n, sizeof *(vec)->v); \
  } while (0)

/* All that planning changes. */
static struct sw_program copy_of(struct sw_arena *a, const struct sw_program *p)
{
  struct sw_program copy = *p;
  COPY(a, &copy.storages);
  COPY(a, &copy.ops);
  COPY(a, &copy.steps);
  COPY(a, &copy.outputs);
  return copy;
}

static struct attempt attempt(const struct sw_job *job, const struct sw_options *o, const struct sw_program *p,
                              struct sw_way *way)
{
  struct attempt a = {0};
  struct sw_job quiet = {.arena = sw_arena_new(job->arena, SIZE_MAX), .cancel = job->cancel};
  struct sw_program copy = copy_of(quiet.arena, p);
  struct sw_plan plan = {0};
  a.fine = sw_plan_so(&quiet, o, &copy, way, &plan, &a.made) == SW_OK;
  a.ns = plan.predicted_ns;
  a.pool_bytes = plan.peak_pool_bytes;
  sw_arena_free(quiet.arena);
  return a;
}

/* The set with one more of them whose plan is the same as this one's, -1: none. */
static int twin_of(const struct attempt *tried, unsigned set)
{
  for (int k = 0; k < SW_N_MEANS; k++) {
    unsigned more = set | 1U << k;
    if (more != set && more < N_SETS && tried[more].fine && !(tried[more].made & 1U << k))
      return (int)more;
  }
  return -1;
}

/* Sums in another order differ in the last digits. */
static bool is_faster(const struct attempt *a, const struct attempt *than)
{
  return a->fine && (!than->fine || a->ns < than->ns * (1 - 1e-9));
}

/* Of equally fast plans the one with the smaller pool, then the one that does less: the later one. */
static bool is_better(const struct attempt *a, const struct attempt *than)
{
  return is_faster(a, than) || (a->fine && !is_faster(than, a) && a->pool_bytes <= than->pool_bytes);
}

/* Every subset of the means that this program may have. */
static unsigned choose_means(const struct sw_job *job, const struct sw_options *o, const struct sw_program *p,
                             double *without_ns, struct attempt *best)
{
  struct attempt tried[N_SETS] = {0};
  unsigned all = o->lx ? N_SETS - 1 : 1U << SW_MEANS_TOGETHER, chosen = all;
  for (unsigned set = all + 1; set-- > 0 && !sw_cancelled(job);) {
    if (set & ~all)
      continue;
    int twin = twin_of(tried, set);
    tried[set] = twin >= 0 ? tried[twin] : attempt(job, o, p, &(struct sw_way){.means = set});
    if (is_better(&tried[set], &tried[chosen]))
      chosen = set;
    for (int k = 0; k < SW_N_MEANS; k++)
      if (tried[set].fine && all & 1U << k && !(set & 1U << k) && (!(without_ns[k] > 0) || tried[set].ns < without_ns[k]))
        without_ns[k] = tried[set].ns;
  }
  *best = tried[chosen];
  return chosen;
}

static int64_t largest_buffer(const struct sw_program *p)
{
  int64_t most = 0;
  for (int s = 0; s < p->storages.n; s++)
    if (p->storages.v[s].kind == SW_STORAGE_TEMPORARY && p->storages.v[s].layout)
      most = sw_layout_bytes(p->storages.v[s].layout) > most ? sw_layout_bytes(p->storages.v[s].layout) : most;
  return most;
}

struct search {
  const struct sw_job *job;
  const struct sw_options *o;
  const struct sw_program *p;
  struct sw_way way;
  struct attempt best;
};

/* Plans one way more and keeps it if it is faster. Gives its ns. */
static double try(struct search *x, struct sw_way way)
{
  struct attempt a = attempt(x->job, x->o, x->p, &way);
  if (is_faster(&a, &x->best) && !sw_cancelled(x->job)) {
    x->way = way;
    x->best = a;
  }
  return a.fine ? a.ns : INFINITY;
}

/* Parts of groups: for each kind of op that one may grow from whether, along which dim, and how many tiles. */
static void choose_parts(struct search *x)
{
  struct sw_way found = x->way;
  found.means |= 1U << SW_MEANS_TILES;
  attempt(x->job, x->o, x->p, &found); /* with these tiles; it lists the kinds */
  for (int kind = 0; kind < found.tiles.n_part_kinds; kind++)
    for (int k = 1; k <= MAX_OPTIONS && k <= found.tiles.n_part_options[kind] &&
                    found.tiles.part_ns[kind] > worth_a_look * x->best.ns; k++) {
      struct sw_way way = x->way;
      way.means |= 1U << SW_MEANS_TILES;
      way.tiles.part[kind] = k;
      try(x, way);
    }
}

/* From which size on buffers get tiles, and for each kind of group whether, along which dim, and how many. One thing at a
 * time: all together would be too many. */
static void choose_tiles(struct search *x)
{
  int64_t most = largest_buffer(x->p), room = x->o->lx_bytes * x->o->cores;
  for (int h = 1; h <= MAX_HALVINGS; h++) {
    struct sw_way way = x->way;
    way.means |= 1U << SW_MEANS_TILES;
    way.tiles.halvings = h;
    if (most > room >> h)
      try(x, way);
  }
  for (int kind = 0; kind < x->way.tiles.n_kinds; kind++)
    for (int k = -1; k < MAX_OPTIONS && k < x->way.tiles.n_options[kind]; k++) {
      struct sw_way way = x->way;
      way.tiles.option[kind] = k;
      if (k)
        try(x, way);
    }
  if (most > 0)
    choose_parts(x);
}

struct sw_way sw_choose_way(struct sw_job *job, const struct sw_options *o, const struct sw_program *p,
                            struct sw_plan *plan)
{
  struct search x = {.job = job, .o = o, .p = p};
  x.way.means = choose_means(job, o, p, plan->without_ns, &x.best);
  if (o->lx && !sw_cancelled(job)) {
    if (x.way.means & 1U << SW_MEANS_TILES)
      attempt(job, o, p, &x.way); /* the same again: it tells what can be tiled */
    choose_tiles(&x);
    for (unsigned k = 0; k < SW_N_MEANS; k++) { /* once more with these tiles */
      struct sw_way less = x.way;
      less.means &= ~(1U << k);
      if (x.best.made & less.means & 1U << SW_MEANS_TILES && x.best.made & x.way.means & 1U << k)
        plan->without_ns[k] = fmin(plan->without_ns[k], try(&x, less));
    }
  }
  return x.way;
}
