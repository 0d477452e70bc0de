/* stickwright study SPEC.json: reads limits, runs or merges or hands over to Slurm, and writes the tables. */
#include "compiler/cli/verb.h"

#include "compiler/study/study.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static atomic_bool asked_to_end;
static volatile sig_atomic_t by_signal;

static void on_signal(int sig)
{
  by_signal = sig;
  atomic_store(&asked_to_end, true);
}

/* Without SA_RESTART, so that waiting for a run ends too. */
static void catch_signals(struct sw_job *job)
{
  job->cancel = &asked_to_end;
  for (int i = 0; i < 3; i++)
    sigaction((const int[]){SIGINT, SIGTERM, SIGHUP}[i], &(struct sigaction){.sa_handler = on_signal}, NULL);
}

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
  l->only_merge = sw_cli_flag(args, "merge");
  if (shard && l->only_merge)
    rc = sw_fail(job, SW_USAGE, "--merge makes the tables of all shards; leave out --shard");
  return rc;
}

static enum sw_rc put_file(struct sw_job *job, const char *dir, const char *name, const struct sw_buf *b)
{
  return sw_file_put(job, sw_arena_printf(job->arena, "%s/%s", dir, name), b->p, b->n);
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

/* --slurm and --slurm-script: one task for each of --shards, or for each run when there are fewer. */
static enum sw_rc hand_over(struct sw_job *job, const struct sw_cli_args *args, const struct sw_study *s, const char *spec,
                            const char *dir, struct sw_study_limits *l)
{
  int64_t shards = 16;
  SW_TRY(number_flag(job, args, "shards", 1000000, &shards));
  if (l->n_shards > 1 || l->only_merge || sw_cli_flag(args, "baseline") || !strcmp(spec, "-"))
    return sw_fail(job, SW_USAGE, "study: --slurm takes a spec in a file, and no --shard, --merge or --baseline");
  l->n_shards = shards < s->runs.n ? shards : s->runs.n;
  const char *script, *number;
  SW_TRY(sw_study_slurm_write(job, s, spec, dir, l, &script));
  if (sw_cli_flag(args, "slurm-script")) {
    printf("%s\n", script);
    return SW_OK;
  }
  SW_TRY(sw_study_slurm_submit(job, script, &number));
  printf("%s: job %s, %" PRId64 " tasks for %d runs; when it has ended:\n"
         "stickwright study %s -o %s --seconds %" PRId64 " --memory %" PRId64 " --merge\n",
         script, number, l->n_shards, s->runs.n, spec, dir, l->seconds, l->memory_mb);
  return SW_OK;
}

static enum sw_rc study(struct sw_job *job, const struct sw_cli_args *args, struct sw_study_limits *limits)
{
  if (args->operands.n != 1)
    return sw_fail(job, SW_USAGE, "study: one SPEC.json expected");
  const char *spec = args->operands.v[0], *text;
  size_t len;
  struct sw_study *s;
  SW_TRY(sw_cli_read(job, spec, &text, &len));
  struct sw_study_source source = {dir_of(job, spec), NULL, SW_STUDY_MAX_RUNS};
  struct sw_files graphs = {0};
  if (len > 1 && !memcmp(text, "PK", 2)) { /* an archive */
    struct sw_file inside;
    SW_TRY(sw_study_unpack(job, text, len, &inside, &graphs));
    source.files = &graphs;
    text = inside.bytes;
    len = inside.len;
  }
  SW_TRY(sw_study_read(job, text, len, &source, &s));
  const char *dir = sw_cli_flag(args, "output");
  if (!dir)
    dir = sw_arena_printf(job->arena, "%s.study", s->name);
  if (sw_cli_flag(args, "slurm") || sw_cli_flag(args, "slurm-script"))
    return hand_over(job, args, s, spec, dir, limits);
  catch_signals(job);
  SW_TRY(sw_study_run(job, s, dir, limits));
  if (limits->n_shards > 1)
    return SW_OK; /* --merge makes the tables */
  return write_tables(job, s, dir, sw_cli_flag(args, "json"), sw_cli_flag(args, "baseline"));
}

int sw_verb_study(struct sw_job *job, int argc, char **argv)
{
  struct sw_cli_args args = {0};
  struct sw_study_limits limits;
  enum sw_rc rc = SW_USAGE;
  if (sw_cli_parse(job, argc, argv, "study", NULL, &args) && (rc = read_limits(job, &args, &limits)) == SW_OK)
    rc = study(job, &args, &limits);
  return by_signal ? 128 + by_signal : sw_rc_exit(rc);
}
