/* stickwright compare MODEL... [--profile A,B] [--solver A,B] [--baseline FILE] [--json] [OPTIONS] */
#include "compiler/cli/verb.h"

#include "compiler/compare.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static enum sw_rc compare_model(struct sw_job *job, const char *path, const struct sw_cli_args *args,
                                const struct sw_options *base, struct sw_comparison *c)
{
  struct sw_compile_input in = {0};
  SW_TRY(sw_cli_read(job, path, &in.bytes, &in.len));
  const char *slash = strrchr(path, '/');
  return sw_compare_grid(job, slash ? slash + 1 : path, &in, sw_cli_flag(args, "profile"), sw_cli_flag(args, "solver"),
                         base, c);
}

/* Saves the comparison where there is no baseline yet, else checks against it. */
static enum sw_rc use_baseline(struct sw_job *job, const struct sw_comparison *c, const char *path)
{
  struct sw_buf text = {.arena = job->arena};
  if (access(path, F_OK)) {
    sw_compare_json(c, &text);
    FILE *f = fopen(path, "w");
    bool ok = f && fwrite(text.p, 1, text.n, f) == text.n;
    ok = f && !fclose(f) && ok;
    return ok ? SW_OK : sw_fail(job, SW_IO, "%s: can't be written", path);
  }
  const char *old;
  size_t len;
  SW_TRY(sw_cli_read(job, path, &old, &len));
  int worse = sw_compare_check(job, c, old, len, &text);
  if (worse < 0)
    return job->worst;
  fputs(sw_buf_text(&text), stderr);
  return worse ? sw_fail(job, SW_DIFFERENT, "%d runs are worse than in %s", worse, path) : SW_OK;
}

int sw_verb_compare(struct sw_job *job, int argc, char **argv)
{
  struct sw_cli_args args = {0};
  struct sw_options o;
  sw_options_init(&o);
  if (!sw_cli_parse(job, argc, argv, "compare", &o, &args))
    return sw_rc_exit(job->worst);
  if (!args.operands.n)
    return sw_rc_exit(sw_fail(job, SW_USAGE, "compare: MODEL... expected"));
  struct sw_comparison c = {0};
  for (int i = 0; i < args.operands.n; i++)
    if (compare_model(job, args.operands.v[i], &args, &o, &c) != SW_OK)
      return sw_rc_exit(job->worst);
  struct sw_buf out = {.arena = job->arena};
  (sw_cli_flag(&args, "json") ? sw_compare_json : sw_compare_text)(&c, &out);
  const char *baseline = sw_cli_flag(&args, "baseline");
  enum sw_rc rc = baseline ? use_baseline(job, &c, baseline) : SW_OK;
  int printed = sw_cli_print(job, sw_buf_text(&out), out.n);
  return rc == SW_OK ? printed : sw_rc_exit(rc);
}
