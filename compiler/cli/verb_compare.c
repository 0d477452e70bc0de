/* stickwright compare MODEL... [--profile A,B] [--solver A,B] [--baseline FILE] [--json] [OPTIONS] */
#include "compiler/cli/verb.h"

#include "compiler/compare.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The parts of "a,b,c". */
static int split(struct sw_arena *a, const char *list, const char **out, int most)
{
  int n = 0;
  while (n < most) {
    size_t len = strcspn(list, ",");
    out[n++] = sw_arena_strndup(a, list, len);
    if (!list[len])
      break;
    list += len + 1;
  }
  return n;
}

static enum sw_rc compare_model(struct sw_job *job, const char *path, const struct sw_cli_args *args,
                                const struct sw_options *base, struct sw_comparison *c)
{
  enum { MOST = 8 };
  const char *profiles[MOST], *solvers[MOST];
  const char *profile = sw_cli_flag(args, "profile"), *solver = sw_cli_flag(args, "solver");
  int n_profiles = split(job->arena, profile ? profile : "best,torch-spyre", profiles, MOST);
  int n_solvers = split(job->arena, solver ? solver : "ilp,beam,greedy", solvers, MOST);
  struct sw_compile_input in = {0};
  SW_TRY(sw_cli_read(job, path, &in.bytes, &in.len));
  const char *slash = strrchr(path, '/');
  for (int p = 0; p < n_profiles; p++)
    for (int s = 0; s < n_solvers; s++) {
      struct sw_options o = *base;
      SW_TRY(sw_option_set(job, &o, "profile", profiles[p]));
      SW_TRY(sw_option_set(job, &o, "solver", solvers[s]));
      sw_options_settle(&o);
      sw_compare_run(job, slash ? slash + 1 : path, &in, &o, c);
    }
  return SW_OK;
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
  static const char *const known[] = {"json", "profile=", "solver=", "baseline=", NULL};
  struct sw_cli_args args = {0};
  struct sw_options o;
  sw_options_init(&o);
  if (!sw_cli_parse(job, argc, argv, known, &o, &args))
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
