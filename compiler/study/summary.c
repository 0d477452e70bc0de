/* study.md: who wins where, by how much, and what was refused. Means are geometric, over the graphs that every
 * configuration compiled, so that one large graph doesn't decide; conversion elements may be 0 and are counted from 1. */
#include "base/map.h"
#include "compiler/study/study.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* A cell of a Markdown table. */
static void table_text(struct sw_buf *out, const char *s)
{
  for (; *s; s++)
    if (*s == '|')
      sw_buf_puts(out, "\\|");
    else
      sw_buf_add(out, *s == '\n' ? " " : s, 1);
}

/* A configuration: options x profile x solver; its run of graph g is runs[g * n + number]. */
struct config {
  const char *name;
  int compiled, optimal, wins;
  double log_ns, log_elements, log_ratio; /* sums over common graphs; ratio: to the best of the graph */
};

struct view {
  struct sw_arena *a;
  const struct sw_study *s;
  struct sw_buf *out;
  int n;
  struct config *configs;
  int n_common;
};

static const struct sw_study_run *run_of(const struct view *v, int graph, int config)
{
  return &v->s->runs.v[graph * v->n + config];
}

static void name_configs(struct view *v)
{
  for (int i = 0; i < v->n; i++) {
    const struct sw_study_run *r = run_of(v, 0, i);
    const char *label = v->s->options.v[r->options].label;
    v->configs[i].name = sw_arena_printf(v->a, "%s, %s%s%s", sw_study_profile_name(r->profile),
                                         sw_study_solver_name(r->solver), *label ? ", " : "", label);
  }
}

/* Adds a graph that all configurations compiled. A prediction of 0 ns (nothing to do) counts as 1 ns. */
static void add_common(struct view *v, int g)
{
  double least = INFINITY;
  for (int i = 0; i < v->n; i++)
    least = fmin(least, run_of(v, g, i)->row.predicted_ns);
  for (int i = 0; i < v->n; i++) {
    const struct sw_compared *c = &run_of(v, g, i)->row;
    struct config *k = &v->configs[i];
    k->log_ns += log(fmax(c->predicted_ns, 1));
    k->log_elements += log1p((double)c->conversion_elements);
    k->log_ratio += log(fmax(c->predicted_ns, 1) / fmax(least, 1));
    k->wins += c->predicted_ns <= least * (1 + 1e-9);
  }
  v->n_common++;
}

static void count(struct view *v)
{
  for (int g = 0; g < v->s->graphs.n; g++) {
    bool all = true;
    for (int i = 0; i < v->n; i++) {
      const struct sw_compared *c = &run_of(v, g, i)->row;
      v->configs[i].compiled += c->has_plan;
      v->configs[i].optimal += c->has_plan && !strcmp(c->status, "optimal");
      all &= c->has_plan;
    }
    if (all)
      add_common(v, g);
  }
}

static void write_configs(const struct view *v)
{
  sw_buf_printf(v->out, "\n## Who wins\n\nMeans over the %d graphs that every configuration compiled; fastest: graphs on which "
                        "no other is faster; behind: mean of its time over that of the fastest.\n\n", v->n_common);
  sw_buf_puts(v->out, "| configuration | compiled | proved | mean us | mean conversion elements | fastest | behind |\n"
                      "|---|---|---|---|---|---|---|\n");
  for (int i = 0; i < v->n; i++) {
    const struct config *k = &v->configs[i];
    sw_buf_printf(v->out, "| %s | %d | %d | ", k->name, k->compiled, k->optimal);
    if (v->n_common)
      sw_buf_printf(v->out, "%.2f | %.0f | %d | %.4f |\n", exp(k->log_ns / v->n_common) / 1e3,
                    expm1(k->log_elements / v->n_common), k->wins, exp(k->log_ratio / v->n_common));
    else
      sw_buf_puts(v->out, "| | | |\n");
  }
}

/* -- graph by graph -- */

static bool is_fastest(const struct sw_compared *c, double least)
{
  return c->has_plan && c->predicted_ns <= least * (1 + 1e-9);
}

/* One row: the fastest configurations, and how far the others are behind them. Only where they differ. */
static void add_winner(const struct view *v, int g, struct sw_buf *rows)
{
  double least = INFINITY;
  for (int i = 0; i < v->n; i++)
    if (run_of(v, g, i)->row.has_plan)
      least = fmin(least, run_of(v, g, i)->row.predicted_ns);
  struct sw_buf first = {.arena = v->a}, rest = first;
  for (int i = 0; i < v->n && least < INFINITY; i++) {
    const struct sw_compared *c = &run_of(v, g, i)->row;
    bool is_first = is_fastest(c, least);
    struct sw_buf *to = is_first ? &first : &rest;
    sw_buf_printf(to, "%s%s", to->n ? "; " : "", v->configs[i].name);
    if (!c->has_plan)
      sw_buf_printf(to, ": %s", c->status);
    else if (!is_first)
      sw_buf_printf(to, " +%.1f %%", 100 * (c->predicted_ns / fmax(least, 1) - 1));
  }
  if (!rest.n)
    return;
  sw_buf_puts(rows, "| ");
  table_text(rows, v->s->graphs.v[g].name);
  sw_buf_puts(rows, " | ");
  table_text(rows, sw_buf_text(&first));
  sw_buf_printf(rows, " | %.2f | ", least / 1e3);
  table_text(rows, sw_buf_text(&rest));
  sw_buf_puts(rows, " |\n");
}

static void write_winners(const struct view *v)
{
  struct sw_buf rows = {.arena = v->a};
  for (int g = 0; g < v->s->graphs.n; g++)
    add_winner(v, g, &rows);
  if (rows.n)
    sw_buf_printf(v->out, "\n## Where they differ\n\nGraphs on which not all are equally fast.\n\n"
                          "| graph | fastest | us | behind it |\n|---|---|---|---|\n%s", sw_buf_text(&rows));
}

/* -- two configurations against each other -- */

struct duel {
  int n, better, equal, worse, fewer, more; /* by time; by conversion elements */
  double log_ratio;
};

static void add_duel(struct duel *d, const struct sw_compared *a, const struct sw_compared *b)
{
  d->n++;
  d->log_ratio += log(fmax(a->predicted_ns, 1) / fmax(b->predicted_ns, 1));
  bool is_better = a->predicted_ns < b->predicted_ns * (1 - 1e-9), is_worse = a->predicted_ns > b->predicted_ns * (1 + 1e-9);
  d->better += is_better;
  d->worse += is_worse;
  d->equal += !is_better && !is_worse;
  d->fewer += a->conversion_elements < b->conversion_elements;
  d->more += a->conversion_elements > b->conversion_elements;
}

/* The configuration that differs from `config` in the profile only, or -1. */
static int other_profile(const struct view *v, int config, enum sw_profile wanted)
{
  const struct sw_study_run *r = run_of(v, 0, config);
  for (int i = 0; i < v->n; i++) {
    const struct sw_study_run *q = run_of(v, 0, i);
    if (q->profile == wanted && q->solver == r->solver && q->options == r->options)
      return i;
  }
  return -1;
}

static void write_duel(const struct view *v, int mine, int theirs)
{
  struct duel d = {0};
  struct sw_buf slower = {.arena = v->a};
  for (int g = 0; g < v->s->graphs.n; g++) {
    const struct sw_compared *a = &run_of(v, g, mine)->row, *b = &run_of(v, g, theirs)->row;
    if (!a->has_plan || !b->has_plan)
      continue;
    int before = d.worse;
    add_duel(&d, a, b);
    if (d.worse > before)
      sw_buf_printf(&slower, "| %s | %s | %.2f | %.2f | %.4f | %" PRId64 " | %" PRId64 " |\n", v->s->graphs.v[g].name,
                    v->configs[mine].name, a->predicted_ns / 1e3, b->predicted_ns / 1e3,
                    fmax(a->predicted_ns, 1) / fmax(b->predicted_ns, 1), a->conversion_elements, b->conversion_elements);
  }
  if (!d.n)
    return;
  sw_buf_printf(v->out, "\n%s: %d graphs compile in both profiles. Time of best over torch-spyre, mean: %.4f. Faster on %d, equal on "
                        "%d, slower on %d. Fewer conversion elements on %d, more on %d.\n", v->configs[mine].name, d.n,
                exp(d.log_ratio / d.n), d.better, d.equal, d.worse, d.fewer, d.more);
  if (slower.n)
    sw_buf_printf(v->out, "\n| slower | configuration | us | torch-spyre us | ratio | elements | torch-spyre elements |\n"
                          "|---|---|---|---|---|---|---|\n%s", sw_buf_text(&slower));
}

static void write_duels(const struct view *v)
{
  bool any = false;
  for (int i = 0; i < v->n; i++) {
    int theirs = run_of(v, 0, i)->profile == SW_PROFILE_BEST ? other_profile(v, i, SW_PROFILE_TORCH_SPYRE) : -1;
    if (theirs < 0)
      continue;
    if (!any)
      sw_buf_puts(v->out, "\n## best against torch-spyre\n");
    any = true;
    write_duel(v, i, theirs);
  }
}

/* -- refusals -- */

struct reason {
  const char *text; /* of the first run that has it */
  int runs, n_graphs, last_run, last_graph;
  struct sw_buf graphs;
};

/* What faults that differ in names and numbers only have in common: without the node before the first colon, numbers
 * as N, quoted text and parentheses as "..", and without the name that parentheses explain. "mm_1: no way from a
 * (64,1) to b (1,64) in 3 steps" gives "no way from (..) to (..) in N steps". */
static const char *reason_of(struct sw_arena *a, const char *fault)
{
  const char *colon = strstr(fault, ": ");
  const char *s = colon && !memchr(fault, ' ', (size_t)(colon - fault)) ? colon + 2 : fault;
  struct sw_buf b = {.arena = a};
  while (*s) {
    size_t digits = strspn(s, "0123456789");
    if (digits) {
      sw_buf_puts(&b, "N");
      s += digits;
    } else if (*s == '"' || *s == '(') {
      if (*s == '(' && b.n && b.p[b.n - 1] == ' ')
        for (b.n--; b.n && b.p[b.n - 1] != ' '; b.n--) {
        }
      sw_buf_puts(&b, *s == '"' ? "\"..\"" : "(..)");
      size_t inside = strcspn(s + 1, *s == '"' ? "\"" : ")");
      s += 1 + inside + (s[1 + inside] != 0);
    } else {
      sw_buf_add(&b, s++, 1);
    }
  }
  return sw_buf_text(&b);
}

struct reasons {
  SW_VEC(struct reason) list;
  struct sw_map at;
};

static void add_reason(const struct view *v, struct reasons *all, int run, const char *fault)
{
  const struct sw_study_run *r = &v->s->runs.v[run];
  const char *key = sw_arena_printf(v->a, "%s: %s", r->row.status, reason_of(v->a, fault));
  int64_t k = sw_map_get_str(&all->at, key);
  if (k < 0) {
    k = all->list.n;
    *SW_PUSH(v->a, &all->list) = (struct reason){.text = sw_arena_printf(v->a, "%s: %s", r->row.status, fault),
                                                 .last_run = -1, .last_graph = -1, .graphs = {.arena = v->a}};
    sw_map_set_str(&all->at, key, k);
  }
  struct reason *q = &all->list.v[k];
  q->runs += q->last_run != run;
  if (q->last_graph != r->graph)
    sw_buf_printf(&q->graphs, "%s%s", q->n_graphs++ ? ", " : "", v->s->graphs.v[r->graph].name);
  q->last_run = run;
  q->last_graph = r->graph;
}

static void write_refusals(const struct view *v)
{
  struct reasons all = {.at = {.arena = v->a}};
  for (int i = 0; i < v->s->runs.n; i++) {
    const struct sw_compared *c = &v->s->runs.v[i].row;
    for (int k = 0; !c->has_plan && k < c->faults.n; k++)
      add_reason(v, &all, i, c->faults.v[k]);
  }
  if (!all.list.n)
    return;
  sw_buf_puts(v->out, "\n## Not compiled\n\nFaults that differ in names and numbers only are one line, with the first of them as "
                      "text; a run with several is counted in each.\n\n| runs | reason | graphs |\n|---|---|---|\n");
  for (int i = 0; i < all.list.n; i++) {
    sw_buf_printf(v->out, "| %d | ", all.list.v[i].runs);
    table_text(v->out, all.list.v[i].text);
    sw_buf_puts(v->out, " | ");
    table_text(v->out, sw_buf_text(&all.list.v[i].graphs));
    sw_buf_puts(v->out, " |\n");
  }
}

void sw_study_summary(struct sw_job *job, const struct sw_study *s, struct sw_buf *out)
{
  struct view v = {.a = job->arena, .s = s, .out = out, .n = s->runs.n / s->graphs.n};
  v.configs = SW_NEW_N(v.a, struct config, v.n);
  name_configs(&v);
  count(&v);
  int compiled = 0;
  for (int i = 0; i < v.n; i++)
    compiled += v.configs[i].compiled;
  sw_buf_printf(out, "# Study %s\n\n%d graphs, %d configurations, %d runs: %d compiled, %d not.\n", s->name, s->graphs.n, v.n,
                s->runs.n, compiled, s->runs.n - compiled);
  write_configs(&v);
  write_winners(&v);
  write_duels(&v);
  write_refusals(&v);
}
