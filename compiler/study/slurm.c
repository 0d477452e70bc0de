/* Shards as the tasks of a Slurm job array. The script is plain: task K runs `stickwright study ... --shard K/N` over one
 * directory, which the nodes have to share. */
#define _GNU_SOURCE
#include "compiler/study/study.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { OWN_MB = 256 }; /* what a run needs beside its arena */

static const char *absolute(struct sw_job *job, const char *path)
{
  char real[PATH_MAX];
  if (realpath(path, real))
    return sw_arena_strdup(job->arena, real);
  sw_fail(job, SW_IO, "%s: %s", path, strerror(errno));
  return NULL;
}

/* A word of the shell. */
static void word(struct sw_buf *out, const char *s)
{
  sw_buf_puts(out, "'");
  for (; *s; s++)
    if (*s == '\'')
      sw_buf_puts(out, "'\\''");
    else
      sw_buf_add(out, s, 1);
  sw_buf_puts(out, "'");
}

/* A path in a line of #SBATCH: in quotes, and a percent sign is none of sbatch's fields. */
static void sbatch_path(struct sw_buf *out, const char *s)
{
  sw_buf_puts(out, "\"");
  for (; *s; s++)
    sw_buf_printf(out, "%s%c", *s == '%' ? "%" : *s == '"' || *s == '\\' ? "\\" : "", *s);
}

static void script_text(const struct sw_study *s, const char *program, const char *spec, const char *dir,
                        const struct sw_study_limits *l, struct sw_buf *out)
{
  sw_buf_printf(out, "#!/bin/sh\n"
                     "#SBATCH --job-name=%s\n"
                     "#SBATCH --array=1-%" PRId64 "\n"
                     "#SBATCH --cpus-per-task=%d\n"
                     "#SBATCH --mem=%" PRId64 "M\n"
                     "#SBATCH --output=",
                s->name, l->n_shards, l->jobs, l->jobs * (l->memory_mb + OWN_MB));
  sbatch_path(out, dir);
  sw_buf_puts(out, "/slurm-%a.log\"\nexec ");
  word(out, program);
  sw_buf_puts(out, " study ");
  word(out, spec);
  sw_buf_puts(out, " -o ");
  word(out, dir);
  sw_buf_printf(out, " --jobs %d --seconds %" PRId64 " --memory %" PRId64 " --shard \"$SLURM_ARRAY_TASK_ID/%" PRId64 "\"\n",
                l->jobs, l->seconds, l->memory_mb, l->n_shards);
}

enum sw_rc sw_study_slurm_write(struct sw_job *job, const struct sw_study *s, const char *spec, const char *dir,
                                const struct sw_study_limits *limits, const char **script)
{
  SW_TRY(sw_study_make_dirs(job, dir));
  const char *program = absolute(job, "/proc/self/exe"), *full_spec = absolute(job, spec), *full_dir = absolute(job, dir);
  if (!program || !full_spec || !full_dir)
    return job->worst;
  if (strpbrk(full_dir, "\r\n"))
    return sw_fail(job, SW_USAGE, "study: a line break in the name of the directory can't be written for sbatch");
  struct sw_buf text = {.arena = job->arena};
  script_text(s, program, full_spec, full_dir, limits, &text);
  *script = sw_arena_printf(job->arena, "%s/study.sbatch", dir);
  return sw_file_put(job, *script, text.p, text.n);
}

/* What the program writes to standard output; its exit code, or -1 when it could not be started (errno). */
static int output_of(char *const argv[], char *out, size_t room)
{
  int ends[2];
  if (pipe2(ends, O_CLOEXEC))
    return -1;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  pid_t pid;
  int error = posix_spawnp(&pid, argv[0], &actions, NULL, argv, environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  size_t n = 0;
  ssize_t got;
  while (!error && n < room - 1 && (got = read(ends[0], out + n, room - 1 - n)) > 0)
    n += (size_t)got;
  out[n] = 0;
  close(ends[0]);
  int end = 0;
  while (!error && waitpid(pid, &end, 0) < 0 && errno == EINTR)
    ;
  errno = error;
  return error ? -1 : WIFEXITED(end) ? WEXITSTATUS(end) : 255;
}

enum sw_rc sw_study_slurm_submit(struct sw_job *job, const char *script, const char **number)
{
  char *const argv[] = {(char *)(intptr_t) "sbatch", (char *)(intptr_t) "--parsable", (char *)(intptr_t)script, NULL};
  char out[128];
  int code = output_of(argv, out, sizeof out);
  size_t digits = strspn(out, "0123456789"); /* perhaps with ;CLUSTER behind it */
  if (!code && digits) {
    *number = sw_arena_strndup(job->arena, out, digits);
    return SW_OK;
  }
  struct sw_fault *f = code < 0 ? sw_fault(job, SW_IO, "sbatch can't be started: %s", strerror(errno))
                                : sw_fault(job, SW_IO, "sbatch ended with exit code %d", code);
  f->advice = sw_arena_printf(job->arena, "%s is written; give it to sbatch where Slurm is", script);
  return SW_IO;
}
