#include "compiler/cli/verb.h"

#include "compiler/emit/opspec.h"

int sw_verb_emit(struct sw_job *job, int argc, char **argv)
{
  struct sw_cli_args args = {0};
  if (!sw_cli_parse(job, argc, argv, "emit", NULL, &args))
    return sw_rc_exit(SW_USAGE);
  const char *dir = sw_cli_flag(&args, "output");
  if (args.operands.n != 1 || !dir) {
    sw_fault(job, SW_USAGE, "emit takes one file of op specs and a directory")->advice =
        "stickwright emit OPSPEC.json -o DIR";
    return sw_rc_exit(SW_USAGE);
  }
  const char *text;
  size_t len;
  struct sw_opspecs *specs;
  struct sw_files files = {0};
  enum sw_rc rc = sw_cli_read(job, args.operands.v[0], &text, &len);
  if (rc == SW_OK)
    rc = sw_opspecs_read(job, text, len, &specs);
  if (rc == SW_OK)
    rc = sw_emit_superdsc(job, specs, "", &files);
  if (rc == SW_OK)
    rc = sw_files_write(job, &files, dir, "bundle.mlir");
  return sw_rc_exit(rc);
}
