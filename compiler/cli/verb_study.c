/* stickwright study SPEC.json -o DIR [--shard K/N] */
#include "compiler/cli/verb.h"

#include "compiler/study.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void show(void *ctx, int done, int of, const char *what)
{
  (void)ctx;
  fprintf(stderr, "\r\033[K%d of %d  %s", done + 1, of, what);
}

static bool parse_shard(struct sw_job *job, const char *text, int *k, int *n)
{
  char behind;
  *k = 0;
  *n = 1;
  if (!text || (sscanf(text, "%d/%d%c", k, n, &behind) == 2 && *k >= 0 && *n > 0 && *k < *n && *n <= 100000))
    return true;
  sw_fail(job, SW_USAGE, "option --shard: K/N with K from 0 to N-1 expected, \"%s\" found", text);
  return false;
}

/* Each table is written under another name and then renamed. */
static enum sw_rc write_tables(struct sw_job *job, const struct sw_files *files, const char *dir)
{
  for (int i = 0; i < files->list.n; i++) {
    const struct sw_file *t = &files->list.v[i];
    const char *path = sw_arena_printf(job->arena, "%s/%s", dir, t->path), *temp = sw_arena_printf(job->arena, "%s.new", path);
    FILE *f = fopen(temp, "we");
    bool ok = f && fwrite(t->bytes, 1, t->len, f) == t->len;
    ok = f && !fclose(f) && ok;
    if (!ok || rename(temp, path))
      return sw_fail(job, SW_IO, "%s: can't be written", path);
  }
  return SW_OK;
}

int sw_verb_study(struct sw_job *job, int argc, char **argv)
{
  static const char *const known[] = {"o:output=", "shard=", NULL};
  struct sw_cli_args args = {0};
  int shard, n_shards;
  if (!sw_cli_parse(job, argc, argv, known, NULL, &args) || !parse_shard(job, sw_cli_flag(&args, "shard"), &shard, &n_shards))
    return sw_rc_exit(job->worst);
  const char *dir = sw_cli_flag(&args, "output");
  if (args.operands.n != 1 || !dir)
    return sw_rc_exit(sw_fail(job, SW_USAGE, "study: SPEC.json and -o DIR expected"));
  const struct sw_study *s = sw_study_read(job, args.operands.v[0]);
  if (!s)
    return sw_rc_exit(job->worst);
  bool tty = isatty(STDERR_FILENO);
  enum sw_rc rc = sw_study_run(job, s, dir, shard, n_shards, tty ? show : NULL, NULL);
  if (tty)
    fputs("\r\033[K", stderr);
  if (rc != SW_OK || n_shards > 1)
    return sw_rc_exit(rc);
  struct sw_files files = {0};
  rc = sw_study_tables(job, s, dir, &files);
  if (rc == SW_OK)
    rc = write_tables(job, &files, dir);
  if (rc != SW_OK)
    return sw_rc_exit(rc);
  return sw_cli_print(job, files.list.v[2].bytes, files.list.v[2].len);
}
