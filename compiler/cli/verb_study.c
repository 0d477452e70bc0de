/* stickwright study SPEC.json [-o DIR] [--jobs N] [--seconds N] [--memory MB] [--shard K/N] [--baseline FILE] [--json] */
#include "compiler/cli/verb.h"

#include "compiler/study/study.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A number from `low` to `high` at *s, which moves behind it. */
static bool take_number(const char **s, int64_t low, int64_t high, int64_t *out)
{
  char *end;
  errno = 0;
  *out = strtoll(*s, &end, 10);
  bool ok = !errno && end != *s && *out >= low && *out <= high;
  *s = end;
  return ok;
}

static enum sw_rc number_flag(struct sw_job *job, const struct sw_cli_args *args, const char *name, int64_t high,
                              int64_t *value)
{
  const char *s = sw_cli_flag(args, name), *rest = s;
  if (!s || (take_number(&rest, 1, high, value) && !*rest))
    return SW_OK;
  return sw_fail(job, SW_USAGE, "option --%s: a number from 1 to %" PRId64 " expected, \"%s\" found", name, high, s);
}

static enum sw_rc read_limits(struct sw_job *job, const struct sw_cli_args *args, struct sw_study_limits *l)
{
  long cores = sysconf(_SC_NPROCESSORS_ONLN);
  int64_t jobs = cores > 0 ? cores : 1;
  *l = (struct sw_study_limits){.seconds = 600, .memory_mb = 4096, .n_shards = 1, .progress = isatty(STDERR_FILENO)};
  enum sw_rc rc = number_flag(job, args, "jobs", 1024, &jobs);
  if (number_flag(job, args, "seconds", 1000000, &l->seconds) != SW_OK ||
      number_flag(job, args, "memory", 1000000, &l->memory_mb) != SW_OK)
    rc = job->worst;
  l->jobs = (int)jobs;
  const char *shard = sw_cli_flag(args, "shard"), *s = shard;
  if (shard && (!take_number(&s, 1, 1000000, &l->shard) || *s++ != '/' ||
                !take_number(&s, l->shard, 1000000, &l->n_shards) || *s))
    rc = sw_fail(job, SW_USAGE, "option --shard: K/N expected, the first is 1/N; \"%s\" found", shard);
  l->shard -= shard != NULL;
  return rc;
}

static enum sw_rc put_file(struct sw_job *job, const char *dir, const char *name, const struct sw_buf *b)
{
  const char *path = sw_arena_printf(job->arena, "%s/%s", dir, name);
  const char *temp = sw_arena_printf(job->arena, "%s.tmp", path);
  FILE *f = fopen(temp, "w");
  bool ok = f && fwrite(b->p, 1, b->n, f) == b->n;
  ok = f && !fclose(f) && ok && !rename(temp, path);
  return ok ? SW_OK : sw_fail(job, SW_IO, "%s: can't be written: %s", path, strerror(errno));
}

static enum sw_rc check_baseline(struct sw_job *job, const struct sw_study *s, const char *path)
{
  const char *old;
  size_t len;
  SW_TRY(sw_cli_read(job, path, &old, &len));
  struct sw_buf text = {.arena = job->arena};
  int worse = sw_study_check(job, s, old, len, &text);
  if (worse < 0)
    return job->worst;
  fputs(sw_buf_text(&text), stderr);
  return worse ? sw_fail(job, SW_DIFFERENT, "%d runs are worse than in %s", worse, path) : SW_OK;
}

static enum sw_rc write_tables(struct sw_job *job, const struct sw_study *s, const char *dir, bool as_json,
                               const char *baseline)
{
  struct sw_buf csv = {.arena = job->arena}, json = csv, summary = csv, times = csv;
  sw_study_csv(s, &csv);
  sw_study_json(s, &json);
  sw_study_summary(job, s, &summary);
  sw_study_times(s, &times);
  SW_TRY(put_file(job, dir, "study.csv", &csv));
  SW_TRY(put_file(job, dir, "study.json", &json));
  SW_TRY(put_file(job, dir, "study.md", &summary));
  SW_TRY(put_file(job, dir, "times.csv", &times));
  enum sw_rc rc = baseline ? check_baseline(job, s, baseline) : SW_OK;
  const struct sw_buf *shown = as_json ? &json : &summary;
  int printed = sw_cli_print(job, sw_buf_text(shown), shown->n);
  return printed ? job->worst : rc;
}

/* The folder that a file is in, "" for the current one. */
static const char *dir_of(struct sw_job *job, const char *path)
{
  const char *slash = strrchr(path, '/');
  return !slash ? "" : slash == path ? "/" : sw_arena_strndup(job->arena, path, (size_t)(slash - path));
}

int sw_verb_study(struct sw_job *job, int argc, char **argv)
{
  static const char *const known[] = {"o:output=", "j:jobs=", "seconds=", "memory=", "shard=", "baseline=", "json", NULL};
  struct sw_cli_args args = {0};
  struct sw_study_limits limits;
  if (!sw_cli_parse(job, argc, argv, known, NULL, &args) || read_limits(job, &args, &limits) != SW_OK)
    return sw_rc_exit(job->worst);
  if (args.operands.n != 1)
    return sw_rc_exit(sw_fail(job, SW_USAGE, "study: one SPEC.json expected"));
  const char *spec = args.operands.v[0], *text;
  size_t len;
  struct sw_study *s;
  if (sw_cli_read(job, spec, &text, &len) != SW_OK ||
      sw_study_read(job, text, len, dir_of(job, spec), &s) != SW_OK)
    return sw_rc_exit(job->worst);
  const char *dir = sw_cli_flag(&args, "output");
  if (!dir)
    dir = sw_arena_printf(job->arena, "%s.study", s->name);
  if (sw_study_run(job, s, dir, &limits) != SW_OK)
    return sw_rc_exit(job->worst);
  if (limits.n_shards > 1)
    return 0; /* the tables are made by a study without --shard over the same directory */
  return sw_rc_exit(write_tables(job, s, dir, sw_cli_flag(&args, "json"), sw_cli_flag(&args, "baseline")));
}
