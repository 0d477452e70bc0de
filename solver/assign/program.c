#include "solver/assign/program.h"

#include "solver/assign/exact.h"

#include <inttypes.h>

static void entry(struct sw_program *q, int row, int col, double value)
{
  int e = ++q->n_entries;
  q->row[e] = row;
  q->col[e] = col;
  q->value[e] = value;
}

static int labels_of(const struct sw_program *q, int v)
{
  return q->first[v + 1] - q->first[v];
}

struct sw_program *sw_program_build(struct sw_arena *a, int n, const int *first, const int64_t *unary, int n_pairs,
                                    const struct sw_pair *pairs)
{
  struct sw_program *q = SW_NEW(a, struct sw_program);
  *q = (struct sw_program){.n = n, .first = first, .n_pairs = n_pairs, .pairs = pairs, .n_rows = n};
  size_t most = (size_t)first[n];
  for (int p = 0; p < n_pairs; p++) {
    most += (size_t)labels_of(q, pairs[p].a) * (size_t)labels_of(q, pairs[p].b);
    q->n_rows += labels_of(q, pairs[p].a) + labels_of(q, pairs[p].b);
  }
  size_t entries = 3 * most + 2 * (size_t)q->n_rows;
  q->col_of = SW_NEW_N(a, int, first[n]);
  q->variable = SW_NEW_N(a, int, most + 1);
  q->label = SW_NEW_N(a, int, most + 1);
  q->cost = SW_NEW_N(a, int64_t, most + 1);
  q->row = SW_NEW_N(a, int, entries + 1);
  q->col = SW_NEW_N(a, int, entries + 1);
  q->value = SW_NEW_N(a, double, entries + 1);
  for (int v = 0; v < n; v++) {
    int64_t least = SW_ASSIGN_INF;
    for (int i = 0; i < labels_of(q, v); i++)
      least = unary[first[v] + i] < least ? unary[first[v] + i] : least;
    q->constant += least == SW_ASSIGN_INF ? 0 : least;
    for (int i = 0; i < labels_of(q, v); i++) {
      if (unary[first[v] + i] == SW_ASSIGN_INF)
        continue;
      int c = q->col_of[first[v] + i] = ++q->n_cols;
      q->variable[c] = v;
      q->label[c] = i;
      q->cost[c] = unary[first[v] + i] - least;
      entry(q, v + 1, c, 1);
    }
  }
  q->n_x = q->n_cols;
  for (int p = 0, row = n + 1; p < n_pairs; p++) {
    const struct sw_pair *e = &pairs[p];
    int ka = labels_of(q, e->a), kb = labels_of(q, e->b);
    for (int i = 0; i < ka; i++)
      for (int j = 0; j < kb; j++) {
        int64_t c = sw_pair_cost(e, e->a, i, j);
        if (c == SW_ASSIGN_INF || !q->col_of[first[e->a] + i] || !q->col_of[first[e->b] + j])
          continue;
        int y = ++q->n_cols;
        q->variable[y] = p;
        q->label[y] = i * kb + j;
        q->cost[y] = c;
        entry(q, row + i, y, 1);
        entry(q, row + ka + j, y, 1);
      }
    for (int i = 0; i < ka; i++)
      if (q->col_of[first[e->a] + i])
        entry(q, row + i, q->col_of[first[e->a] + i], -1);
    for (int j = 0; j < kb; j++)
      if (q->col_of[first[e->b] + j])
        entry(q, row + ka + j, q->col_of[first[e->b] + j], -1);
    row += ka + kb;
  }
  return q;
}

/* -- CPLEX LP -- */

static void write_column(const struct sw_program *q, int c, struct sw_buf *out)
{
  if (c <= q->n_x)
    sw_buf_printf(out, "x_%d_%d", q->variable[c], q->label[c]);
  else {
    int kb = labels_of(q, q->pairs[q->variable[c]].b);
    sw_buf_printf(out, "y_%d_%d_%d", q->variable[c], q->label[c] / kb, q->label[c] % kb);
  }
}

void sw_assign_write_lp(const struct sw_assign_problem *p, struct sw_buf *out)
{
  enum { PER_LINE = 8 };
  struct sw_arena *a = sw_arena_new(p->arena, 0);
  struct sw_net *net = sw_net_build(a, p, p->mode == SW_ASSIGN_SHARED ? SW_NET_COPIES : SW_NET_PER_EDGE);
  struct sw_program *q = sw_program_build(a, net->n, net->first, net->unary, net->n_pairs, net->pairs);
  sw_buf_printf(out, "\\ %d variables (%d of them copies), %d pairs\nMinimize\n cost:", net->n, net->n - net->n_real,
                net->n_pairs);
  for (int c = 1, n = 0; c <= q->n_cols; c++)
    if (q->cost[c]) {
      sw_buf_printf(out, "%s + %" PRId64 " ", n++ % PER_LINE ? "" : "\n", q->cost[c]);
      write_column(q, c, out);
    }
  if (q->constant) /* a column that is held at 1: not every reader of the format takes a bare number */
    sw_buf_printf(out, " + %" PRId64 " one", q->constant);
  sw_buf_puts(out, "\nSubject To");
  /* Entries of a row lie apart: sort them by counting. */
  int *first = SW_NEW_N(a, int, q->n_rows + 3), *at = SW_NEW_N(a, int, q->n_entries + 1);
  for (int e = 1; e <= q->n_entries; e++)
    first[q->row[e] + 2]++;
  for (int r = 2; r <= q->n_rows + 1; r++)
    first[r + 1] += first[r];
  for (int e = 1; e <= q->n_entries; e++)
    at[first[q->row[e] + 1]++] = e;
  for (int r = 1; r <= q->n_rows; r++) {
    if (first[r] == first[r + 1] && r > q->n)
      continue;
    sw_buf_printf(out, "\n r%d:", r);
    for (int i = first[r]; i < first[r + 1]; i++) {
      sw_buf_printf(out, "%s %c ", (i - first[r]) % PER_LINE == PER_LINE - 1 ? "\n" : "",
                    q->value[at[i]] > 0 ? '+' : '-');
      write_column(q, q->col[at[i]], out);
    }
    if (first[r] == first[r + 1]) /* no label at all: a row that can't hold */
      sw_buf_puts(out, " 0 none");
    sw_buf_printf(out, " = %d", r <= q->n);
  }
  if (q->constant)
    sw_buf_puts(out, "\nBounds\n one = 1");
  sw_buf_puts(out, "\nBinary\n");
  for (int c = 1; c <= q->n_x; c++) {
    write_column(q, c, out);
    sw_buf_puts(out, c % PER_LINE ? " " : "\n");
  }
  sw_buf_puts(out, "\nEnd\n");
  sw_arena_free(a);
}

/* -- solver ilp-full -- */

const int *sw_assign__ilp_full(struct sw_job *job, const struct sw_assign_problem *p,
                               const struct sw_assign_options *o, struct sw_assign_result *r)
{
  struct sw_arena *a = sw_arena_new(job->arena, 0);
  struct sw_net *net = sw_net_build(a, p, p->mode == SW_ASSIGN_SHARED ? SW_NET_COPIES : SW_NET_PER_EDGE);
  struct sw_program *q = sw_program_build(a, net->n, net->first, net->unary, net->n_pairs, net->pairs);
  struct sw_ilp s;
  sw_ilp_solve(job, a, q, o->budget, NULL, 0, net->n_real, &s);
  int *labels = s.labels ? sw_arena_copy(job->arena, s.labels, (size_t)p->variables.n, sizeof *labels) : NULL;
  r->status = s.status;
  r->stopped_by = s.stopped_by;
  r->bound = s.bound;
  r->stats.glpk_calls = s.calls;
  r->stats.glpk_nodes = s.nodes;
  r->stats.work = s.nodes;
  r->certificate.method = "ilp";
  sw_arena_free(a);
  return labels;
}
