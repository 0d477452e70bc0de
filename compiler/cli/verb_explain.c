/* stickwright explain DIR NAME... [--json] */
#include "compiler/cli/verb.h"

#include "compiler/report/explain.h"

int sw_verb_explain(struct sw_job *job, int argc, char **argv)
{
  struct sw_cli_args args = {0};
  if (!sw_cli_parse(job, argc, argv, "explain", NULL, &args))
    return sw_rc_exit(job->worst);
  if (args.operands.n < 2)
    return sw_rc_exit(sw_fail(job, SW_USAGE, "explain: DIR and NAME expected"));
  struct sw_buf out = {.arena = job->arena};
  for (int i = 1; i < args.operands.n; i++)
    sw_explain(job, args.operands.v[0], args.operands.v[i], sw_cli_flag(&args, "json"), &out);
  int printed = sw_cli_print(job, sw_buf_text(&out), out.n);
  return job->worst == SW_OK ? printed : sw_rc_exit(job->worst);
}
