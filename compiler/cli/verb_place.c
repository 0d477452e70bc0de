/* `stickwright place`: the scratchpad problem alone. */
#include "compiler/cli/verb.h"

#include "solver/place/place.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static bool number(struct sw_job *job, const struct sw_cli_args *args, const char *name, int64_t *out)
{
  const char *text = sw_cli_flag(args, name);
  if (!text)
    return true;
  char *end;
  errno = 0;
  long long v = strtoll(text, &end, 10);
  if (!*text || *end || errno || v < 0) {
    sw_fail(job, SW_USAGE, "--%s %s: a number from 0 on is expected", name, text);
    return false;
  }
  *out = v;
  return true;
}

/* Names of the placers, in the order of the enum. */
static bool placer(struct sw_job *job, const char *text, enum sw_lx_placer *out)
{
  static const char *const names[] = {"exact", "greedy", "firstfit", "bestfit", "stack"};
  for (size_t i = 0; text && i < sizeof names / sizeof names[0]; i++)
    if (!strcmp(text, names[i])) {
      *out = (enum sw_lx_placer)i;
      return true;
    }
  if (text)
    sw_fail(job, SW_USAGE, "--placer %s: exact, greedy, firstfit, bestfit or stack is expected", text);
  return !text;
}

static void print_text(const struct sw_place_problem *p, const struct sw_place_result *r, struct sw_buf *out)
{
  sw_buf_printf(out, "%s: %s", p->name ? p->name : "problem", sw_place_status_text(r->status));
  int resident = 0;
  for (int i = 0; r->address && i < p->buffers.n; i++)
    resident += r->address[i] >= 0;
  if (r->address)
    sw_buf_printf(out, ", %d of %d buffers resident, value %" PRId64, resident, p->buffers.n, r->value);
  if (r->address && r->bound >= 0 && r->bound != r->value)
    sw_buf_printf(out, " (bound %" PRId64 ")", r->bound);
  if (r->address)
    sw_buf_printf(out, ", peak %" PRId64 " of %" PRId64 " bytes", r->peak, p->capacity);
  if (r->address && r->peak_bound >= 0 && r->peak_bound != r->peak)
    sw_buf_printf(out, " (bound %" PRId64 ")", r->peak_bound);
  sw_buf_puts(out, "\n");
  for (int i = 0; r->address && i < p->buffers.n; i++)
    if (r->address[i] >= 0)
      sw_buf_printf(out, "  %-20s %12" PRId64 "\n", p->buffers.v[i].name, r->address[i]);
    else
      sw_buf_printf(out, "  %-20s %12s  %s\n", p->buffers.v[i].name, "-", r->reason[i]);
  for (int i = 0; i < r->conflict.n; i++)
    sw_buf_printf(out, "%s%s", i ? ", " : "can't be resident together: ", p->buffers.v[r->conflict.v[i]].name);
  if (r->conflict.n)
    sw_buf_puts(out, "\n");
}

int sw_verb_place(struct sw_job *job, int argc, char **argv)
{
  struct sw_options defaults;
  sw_options_init(&defaults);
  struct sw_place_options o = {.placer = SW_LX_EXACT, .budget = defaults.budget};
  struct sw_cli_args args = {0};
  int64_t capacity = -1;
  if (!sw_cli_parse(job, argc, argv, "place", NULL, &args) || !number(job, &args, "budget", &o.budget) ||
      !number(job, &args, "capacity", &capacity) || !placer(job, sw_cli_flag(&args, "placer"), &o.placer))
    return sw_rc_exit(job->worst);
  if (args.operands.n != 1)
    return sw_rc_exit(sw_fail(job, SW_USAGE, "one problem is expected: a .json or .csv file, or - for stdin"));
  o.no_peak = sw_cli_flag(&args, "no-peak") != NULL;
  const char *path = args.operands.v[0], *text;
  size_t len, n = strlen(path);
  struct sw_place_problem *p;
  struct sw_place_result *r;
  enum sw_rc rc = sw_cli_read(job, path, &text, &len);
  if (rc == SW_OK)
    rc = n > 4 && !strcmp(path + n - 4, ".csv") ? sw_place_read_csv(job, path, text, len, capacity, &p)
                                                : sw_place_read_json(job, text, len, &p);
  if (rc == SW_OK && capacity >= 0)
    p->capacity = capacity;
  if (rc == SW_OK)
    rc = sw_place_validate(job, p);
  if (rc == SW_OK)
    rc = sw_place_solve(job, p, &o, &r);
  if (rc != SW_OK)
    return sw_rc_exit(rc);
  struct sw_buf out = {.arena = job->arena};
  bool all = r->address != NULL;
  for (int i = 0; all && i < p->buffers.n; i++)
    all = r->address[i] >= 0;
  if (sw_cli_flag(&args, "csv")) {
    if (!all)
      return sw_rc_exit(sw_fail(job, r->status == SW_PLACED_INFEASIBLE ? SW_INFEASIBLE : SW_LIMIT,
                                "no plan with every buffer: %s", sw_place_status_text(r->status)));
    sw_place_write_csv(p, r, &out);
  } else if (sw_cli_flag(&args, "json")) {
    struct sw_jw w = {.out = &out, .indent = 2};
    sw_place_write_json(p, r, &w);
    sw_buf_puts(&out, "\n");
  } else {
    print_text(p, r, &out);
  }
  int code = sw_cli_print(job, sw_buf_text(&out), out.n);
  if (code)
    return code;
  return sw_rc_exit(r->status == SW_PLACED_INFEASIBLE ? SW_INFEASIBLE
                    : r->status == SW_PLACED_UNKNOWN  ? SW_LIMIT
                                                      : SW_OK);
}
