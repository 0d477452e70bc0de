/* stickwright solve: the assignment problem alone. */
#include "compiler/cli/verb.h"
#include "solver/assign/assign.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void print_result(struct sw_buf *b, const struct sw_assign_problem *p, const struct sw_assign_result *r)
{
  enum { MAX_LINES = 20 };
  sw_buf_printf(b, "%s%s%s", p->name, *p->name ? ": " : "", sw_assign_status_name(r->status));
  if (r->labels)
    sw_buf_printf(b, ", cost %" PRId64, r->cost);
  if (r->status == SW_ASSIGN_FEASIBLE)
    sw_buf_printf(b, ", bound %" PRId64 ", gap %.2f %%", r->bound, 100 * sw_assign_gap(r));
  if (r->stopped_by)
    sw_buf_printf(b, ", stopped by %s", sw_assign_stop_name(r->stopped_by));
  sw_buf_printf(b, "\n%d variables with %d labels, %d presolved, %d islands (%d distinct), width %d\n",
                r->stats.variables, r->stats.labels, r->stats.presolved, r->stats.islands, r->stats.distinct,
                r->stats.max_width);
  for (int i = 0; i < r->conversions.n && i < MAX_LINES; i++) {
    const struct sw_assign_conversion *c = &r->conversions.v[i];
    const struct sw_assign_group *g = &p->groups.v[c->group];
    char number[16];
    snprintf(number, sizeof number, "%d", c->class_index);
    sw_buf_printf(b, "  copy of %s in %s: cost %" PRId64 ", for", p->variables.v[c->producer].name,
                  g->classes ? g->classes[c->class_index] : number, c->cost);
    for (int j = 0; j < c->n_readers && j < 4; j++)
      sw_buf_printf(b, " %s", p->variables.v[c->readers[j]].name);
    sw_buf_puts(b, c->n_readers > 4 ? " ...\n" : "\n");
  }
  if (r->conversions.n > MAX_LINES)
    sw_buf_printf(b, "  and %d more copies\n", r->conversions.n - MAX_LINES);
  for (int v = 0; r->labels && v < p->variables.n && p->variables.n <= MAX_LINES; v++)
    sw_buf_printf(b, "  %s = %s\n", p->variables.v[v].name, p->variables.v[v].labels[r->labels[v]]);
  if (!r->conflict)
    return;
  sw_buf_puts(b, "these can't all be met:\n");
  for (int i = 0; i < r->conflict->variables.n && i < MAX_LINES; i++)
    sw_buf_printf(b, "  %s has no possible label\n", p->variables.v[r->conflict->variables.v[i]].name);
  for (int i = 0; i < r->conflict->edges.n && i < MAX_LINES; i++) {
    const struct sw_assign_edge *e = &p->edges.v[r->conflict->edges.v[i]];
    sw_buf_printf(b, "  edge %d: %s - %s\n", r->conflict->edges.v[i], p->variables.v[e->a].name,
                  p->variables.v[e->b].name);
  }
  for (int i = 0; i < r->conflict->groups.n && i < MAX_LINES; i++)
    sw_buf_printf(b, "  readers of %s\n", p->variables.v[p->groups.v[r->conflict->groups.v[i]].producer].name);
}

/* The refusal of a document is a result too. */
static int print_invalid(struct sw_job *job)
{
  const struct sw_fault *f = &job->faults.v[0];
  struct sw_buf b = {.arena = job->arena};
  struct sw_jw w = {.out = &b};
  sw_jw_object(&w);
  sw_jw_kstr(&w, "format", "stickwright.assign.result/1");
  sw_jw_kstr(&w, "status", "invalid");
  sw_jw_key(&w, "error");
  sw_jw_object(&w);
  sw_jw_kstr(&w, "pointer", f->source ? f->source : "");
  sw_jw_kstr(&w, "detail", f->detail);
  sw_jw_end_object(&w);
  sw_jw_end_object(&w);
  sw_buf_add(&b, "\n", 1);
  sw_cli_print(job, b.p, b.n);
  return sw_rc_exit(job->worst);
}

static bool write_file(struct sw_job *job, const char *path, const struct sw_buf *b)
{
  FILE *f = fopen(path, "wb");
  bool good = f && fwrite(b->p, 1, b->n, f) == b->n;
  if ((f && fclose(f)) || !good)
    sw_fail(job, SW_IO, "%s can't be written", path);
  return job->worst == SW_OK;
}

int sw_verb_solve(struct sw_job *job, int argc, char **argv)
{
  struct sw_options options;
  sw_options_init(&options);
  options.budget = sw_assign_defaults().budget;
  struct sw_cli_args args = {0};
  if (!sw_cli_parse(job, argc, argv, "solve", &options, &args))
    return sw_rc_exit(job->worst);
  if (args.operands.n != 1)
    return sw_rc_exit(sw_fail(job, SW_USAGE, "solve: one problem document expected (- for stdin)"));
  const char *text, *mode = sw_cli_flag(&args, "mode"), *lp = sw_cli_flag(&args, "lp");
  bool json = sw_cli_flag(&args, "json");
  size_t len;
  if (mode && strcmp(mode, "shared") && strcmp(mode, "per-edge"))
    return sw_rc_exit(sw_fail(job, SW_USAGE, "option --mode: per-edge or shared expected, \"%s\" found", mode));
  if (sw_cli_read(job, args.operands.v[0], &text, &len) != SW_OK)
    return sw_rc_exit(job->worst);
  struct sw_assign_problem *p = sw_assign_read(job, text, len);
  if (!p)
    return json ? print_invalid(job) : sw_rc_exit(job->worst);
  if (mode)
    p->mode = strcmp(mode, "shared") ? SW_ASSIGN_PER_EDGE : SW_ASSIGN_SHARED;
  struct sw_buf b = {.arena = job->arena};
  if (lp) {
    sw_assign_write_lp(p, &b);
    if (!write_file(job, lp, &b))
      return sw_rc_exit(job->worst);
    b.n = 0;
  }
  struct sw_assign_options o = {options.solver, (int)options.beam_width, options.budget};
  struct sw_assign_result *r;
  if (sw_assign_solve(job, p, &o, &r) != SW_OK)
    return sw_rc_exit(job->worst);
  if (json) {
    struct sw_jw w = {.out = &b};
    sw_assign_write_result(r, &w);
    sw_buf_add(&b, "\n", 1);
  } else {
    print_result(&b, p, r);
  }
  int written = sw_cli_print(job, b.p, b.n);
  return written                                ? written
         : r->status == SW_ASSIGN_INFEASIBLE    ? sw_rc_exit(SW_INFEASIBLE)
         : r->stopped_by == SW_ASSIGN_STOP_CANCELLED ? sw_rc_exit(SW_CANCELLED)
         : r->status == SW_ASSIGN_UNKNOWN       ? sw_rc_exit(SW_LIMIT)
                                                : 0;
}
