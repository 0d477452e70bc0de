/* stickwright ops [--json|--markdown] */
#include "compiler/cli/verb.h"

#include "compiler/ops.h"

int sw_verb_ops(struct sw_job *job, int argc, char **argv)
{
  struct sw_cli_args args = {0};
  if (!sw_cli_parse(job, argc, argv, "ops", NULL, &args))
    return sw_rc_exit(job->worst);
  if (args.operands.n)
    return sw_rc_exit(sw_fail(job, SW_USAGE, "ops takes no arguments, \"%s\" found", args.operands.v[0]));
  struct sw_buf out = {.arena = job->arena};
  if (sw_cli_flag(&args, "json"))
    sw_ops_json(&out);
  else if (sw_cli_flag(&args, "markdown"))
    sw_ops_markdown(&out);
  else
    sw_ops_text(&out);
  return sw_cli_print(job, sw_buf_text(&out), out.n);
}
