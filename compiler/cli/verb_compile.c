/* stickwright compile MODEL [-o DIR] [--json] [--dump-after=PASS] [--program NAME] [--pin-file FILE]
 *   [--verify=auto|always|never] [OPTIONS] */
#include "compiler/cli/verb.h"

#include "compiler/pipeline.h"
#include "compiler/report/report.h"
#include "compiler/verify/verify.h"

#include <string.h>

static bool is_pass(const char *name)
{
#define X(pass, ensures)      \
  if (!strcmp(name, #pass)) \
    return true;
  SW_PASSES(X)
#undef X
  return false;
}

static enum sw_rc pin_files(struct sw_job *job, const struct sw_cli_args *args, struct sw_options *o)
{
  for (int i = 0; i < args->flags.n; i++) {
    const char *text;
    size_t len;
    if (strcmp(args->flags.v[i].name, "pin-file"))
      continue;
    SW_TRY(sw_cli_read(job, args->flags.v[i].value, &text, &len));
    SW_TRY(sw_options_pin_file(job, o, text, len));
  }
  return SW_OK;
}

/* Iterations of all ops: what an execution costs, in multiply-adds. */
static double work(const struct sw_program *p)
{
  double sum = 0;
  for (int i = 0; i < p->ops.n; i++) {
    double n = 1;
    for (int k = 0; k < p->ops.v[i].n_loops; k++)
      n *= (double)p->ops.v[i].range[k];
    sum += n;
  }
  return sum;
}

static bool has_all_values(const struct sw_graph *g)
{
  for (int i = 0; i < g->inputs.n; i++)
    if (g->inputs.v[i].value >= 0 && g->inputs.v[i].kind != SW_INPUT_USER && !g->inputs.v[i].bytes)
      return false;
  return true;
}

/* Executes what was emitted, with made-up inputs, against the graph's meaning; a sentence about it to *outcome. In mode
 * auto only small programs, and one that can't be simulated is no fault. */
static enum sw_rc check(struct sw_job *job, const char *mode, struct sw_compiled *c, const char **outcome)
{
  enum { MOST = 20000000 };
  bool always = !strcmp(mode, "always");
  *outcome = NULL;
  if (!strcmp(mode, "never"))
    return SW_OK;
  if (!always && (!has_all_values(c->graph) || work(c->program) > MOST)) {
    *outcome = has_all_values(c->graph) ? "not executed: too large for auto" : "not executed: weights without values";
    return SW_OK;
  }
  if (always)
    sw_verify_make_up_weights(job, c->graph);
  struct sw_job own = {.arena = job->arena, .cancel = job->cancel};
  struct sw_verified v;
  enum sw_rc rc = sw_verify_files(&own, &c->files, c->graph, NULL, &v);
  const struct sw_fault *f = own.faults.n ? &own.faults.v[0] : NULL;
  const char *why = !f          ? "an output differs from the graph's meaning"
                    : f->source ? sw_arena_printf(job->arena, "%s: %s", f->source, f->detail)
                                : f->detail;
  if (rc == SW_OK) {
    *outcome = sw_arena_printf(job->arena, "executed on the simulated card: all %d outputs agree", v.outputs.n);
    return SW_OK;
  }
  *outcome = sw_arena_printf(job->arena, rc == SW_DIFFERENT ? "executed on the simulated card: WRONG, %s" : "not executed: %s",
                             why);
  if (rc == SW_DIFFERENT)
    return sw_fail(job, SW_INTERNAL, "the emitted program is wrong: %s", why);
  return always ? sw_fail(job, rc, "can't verify: %s", why) : SW_OK;
}

int sw_verb_compile(struct sw_job *job, int argc, char **argv)
{
  struct sw_cli_args args = {0};
  struct sw_options o;
  sw_options_init(&o);
  if (!sw_cli_parse(job, argc, argv, "compile", &o, &args) || pin_files(job, &args, &o) != SW_OK)
    return sw_rc_exit(job->worst);
  sw_options_settle(&o);
  const char *dump_after = sw_cli_flag(&args, "dump-after"), *dir = sw_cli_flag(&args, "output");
  if (args.operands.n != 1)
    return sw_rc_exit(sw_fail(job, SW_USAGE, "compile: one MODEL expected, %d given", args.operands.n));
  if (dump_after && !is_pass(dump_after))
    return sw_rc_exit(sw_fail(job, SW_USAGE, "there is no pass %s", dump_after));
  const char *mode = sw_cli_flag(&args, "verify");
  mode = mode ? mode : "never";
  if (strcmp(mode, "auto") && strcmp(mode, "always") && strcmp(mode, "never"))
    return sw_rc_exit(sw_fail(job, SW_USAGE, "--verify=%s: auto, always or never expected", mode));
  struct sw_compile_input in = {.program = sw_cli_flag(&args, "program")};
  enum sw_rc rc = sw_cli_read(job, args.operands.v[0], &in.bytes, &in.len);
  if (rc != SW_OK)
    return sw_rc_exit(rc);
  bool streams = !strcmp(mode, "never"); /* checking wants the files in memory */
  if (streams)
    in.dir = dir ? sw_files_dir(job, dir, "result.json") : sw_files_nowhere(job);
  if (streams && !in.dir)
    return sw_rc_exit(job->worst);
  struct sw_compiled c;
  struct sw_buf out = {.arena = job->arena};
  rc = sw_compile(job, &o, &in, dump_after, &out, &c);
  if (!c.result)
    return rc == SW_OK ? sw_cli_print(job, sw_buf_text(&out), out.n) : sw_rc_exit(rc);
  const char *outcome = NULL;
  if (rc == SW_OK)
    rc = check(job, mode, &c, &outcome);
  if (rc == SW_OK && dir)
    rc = streams ? sw_files_close(job, in.dir) : sw_files_write(job, &c.files, dir, "result.json");
  int printed;
  if (sw_cli_flag(&args, "json")) {
    printed = sw_cli_print(job, c.result, c.result_len);
  } else {
    sw_report_summary(&(struct sw_report){job, &o, c.status, c.graph, c.program, c.choice, c.plan}, &out);
    if (outcome)
      sw_buf_printf(&out, "verify: %s\n", outcome);
    printed = sw_cli_print(job, sw_buf_text(&out), out.n);
  }
  return rc == SW_OK ? printed : sw_rc_exit(rc);
}
