/* stickwright compile MODEL [-o DIR] [--json] [--dump-after=PASS] [--program NAME] [--pin-file FILE] [--machine FILE]
 * [OPTIONS] */
#include "compiler/cli/verb.h"

#include "compiler/pipeline.h"
#include "compiler/report/report.h"

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

/* Options that come in files. */
static enum sw_rc read_files(struct sw_job *job, const struct sw_cli_args *args, struct sw_options *o)
{
  for (int i = 0; i < args->flags.n; i++) {
    const char *text, *name = args->flags.v[i].name;
    size_t len;
    bool pins = !strcmp(name, "pin-file");
    if (!pins && strcmp(name, "machine") != 0)
      continue;
    SW_TRY(sw_cli_read(job, args->flags.v[i].value, &text, &len));
    SW_TRY(pins ? sw_options_pin_file(job, o, text, len) : sw_options_machine_file(job, o, text, len));
  }
  return SW_OK;
}

int sw_verb_compile(struct sw_job *job, int argc, char **argv)
{
  struct sw_cli_args args = {0};
  struct sw_options o;
  sw_options_init(&o);
  if (!sw_cli_parse(job, argc, argv, "compile", &o, &args) || read_files(job, &args, &o) != SW_OK)
    return sw_rc_exit(job->worst);
  sw_options_settle(&o);
  const char *dump_after = sw_cli_flag(&args, "dump-after"), *dir = sw_cli_flag(&args, "output");
  if (args.operands.n != 1)
    return sw_rc_exit(sw_fail(job, SW_USAGE, "compile: one MODEL expected (- for stdin), %d given", args.operands.n));
  if (dump_after && !is_pass(dump_after))
    return sw_rc_exit(sw_fail(job, SW_USAGE, "option --dump-after: one of read, lower, choose, plan, emit expected, \"%s\" found", dump_after));
  struct sw_compile_input in = {.program = sw_cli_flag(&args, "program")};
  enum sw_rc rc = sw_cli_read(job, args.operands.v[0], &in.bytes, &in.len);
  if (rc != SW_OK)
    return sw_rc_exit(rc);
  in.dir = dir ? sw_files_dir(job, dir, "result.json") : sw_files_nowhere(job);
  if (!in.dir)
    return sw_rc_exit(job->worst);
  struct sw_compiled c;
  struct sw_buf out = {.arena = job->arena};
  rc = sw_compile(job, &o, &in, dump_after, &out, &c);
  if (!c.result)
    return rc == SW_OK ? sw_cli_print(job, sw_buf_text(&out), out.n) : sw_rc_exit(rc);
  if (rc == SW_OK && dir)
    rc = sw_files_close(job, in.dir);
  int printed;
  if (sw_cli_flag(&args, "json")) {
    printed = sw_cli_print(job, c.result, c.result_len);
  } else {
    sw_report_summary(&(struct sw_report){job, &o, c.status, c.graph, c.program, c.choice, c.plan,
                                           c.verdict.outcome ? &c.verdict : NULL},
                      &out);
    printed = sw_cli_print(job, sw_buf_text(&out), out.n);
  }
  return rc == SW_OK ? printed : sw_rc_exit(rc);
}
