/* What the reader saw. */
#include "compiler/cli/verb.h"

#include "compiler/graph/graph.h"

int sw_verb_inspect(struct sw_job *job, int argc, char **argv)
{
  static const char *const known[] = {"json", "text", "program=", NULL};
  struct sw_cli_args args = {0};
  if (!sw_cli_parse(job, argc, argv, known, NULL, &args))
    return sw_rc_exit(SW_USAGE);
  if (args.operands.n != 1)
    return sw_rc_exit(sw_fail(job, SW_USAGE, "usage: stickwright inspect MODEL [--json]"));
  const char *bytes;
  size_t len;
  struct sw_graph *g;
  enum sw_rc rc = sw_cli_read(job, args.operands.v[0], &bytes, &len);
  if (rc == SW_OK)
    rc = sw_graph_read(job, args.operands.v[0], bytes, len, sw_cli_flag(&args, "program"), &g);
  if (rc != SW_OK)
    return sw_rc_exit(rc);
  struct sw_buf out = {.arena = job->arena};
  sw_graph_write_text(g, &out);
  return sw_cli_print(job, sw_buf_text(&out), out.n);
}
