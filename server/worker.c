#define _GNU_SOURCE
#include "server/worker.h"

#include "server/problem.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

static double now(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void problem(struct sw_work_result *out, const struct sw_work *work, const char *slug, unsigned status,
                    const char *detail)
{
  struct sw_arena *a = sw_arena_new(NULL, 1 << 20);
  struct sw_buf b = {.arena = a};
  out->status = status;
  if (!a)
    return;
  sw_problem_write(&b, slug, status, detail, work->request_id, NULL);
  out->problem = strdup(sw_buf_text(&b));
  out->problem_len = out->problem ? b.n : 0;
  sw_arena_free(a);
}

/* Starts the child with the body as standard input and a pipe as standard output; -1 when that fails. */
static pid_t start(const struct sw_work *work, const struct sw_limits *limits, int *from_child)
{
  int ends[2];
  if (pipe2(ends, O_CLOEXEC))
    return -1;
  char memory[32];
  snprintf(memory, sizeof memory, "%ld", limits->memory_mb);
  char **argv = calloc((size_t)work->n_options + 6, sizeof *argv);
  pid_t pid = -1;
  posix_spawn_file_actions_t actions;
  if (argv && !posix_spawn_file_actions_init(&actions)) {
    char *head[] = {(char[]){"stickwrightd"}, (char[]){"--worker"}, memory, (char *)(intptr_t)work->request_id,
                    (char *)(intptr_t)work->verb};
    memcpy(argv, head, sizeof head);
    for (int i = 0; i < work->n_options; i++)
      argv[5 + i] = work->options[i];
    lseek(work->body_fd, 0, SEEK_SET);
    posix_spawn_file_actions_adddup2(&actions, work->body_fd, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawnattr_t attributes; /* the daemon's threads block SIGTERM, the child must not */
    sigset_t none;
    sigemptyset(&none);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    if (posix_spawn(&pid, "/proc/self/exe", &actions, &attributes, argv, environ))
      pid = -1;
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
  }
  free(argv);
  close(ends[1]);
  if (pid < 0)
    close(ends[0]);
  *from_child = ends[0];
  return pid;
}

enum ending { ENDED, TOO_LATE, TOO_LARGE, STOPPED, NO_MEMORY };

/* All of the child's output, or why it was cut short. */
static enum ending collect(int fd, const struct sw_limits *limits, const atomic_bool *stop, char **bytes, size_t *len)
{
  double deadline = now() + (double)limits->compile_seconds;
  size_t cap = 1 << 16, most = (size_t)limits->output_mb << 20;
  char *p = malloc(cap);
  size_t n = 0;
  enum ending e = p ? ENDED : NO_MEMORY;
  while (e == ENDED) {
    if (atomic_load(stop)) {
      e = STOPPED;
    } else if (now() > deadline) {
      e = TOO_LATE;
    } else if (n == cap) {
      char *q = n > most ? NULL : realloc(p, cap *= 2);
      e = q ? ENDED : n > most ? TOO_LARGE : NO_MEMORY;
      p = q ? q : p;
    } else {
      struct pollfd pf = {.fd = fd, .events = POLLIN};
      if (poll(&pf, 1, 200) <= 0)
        continue;
      ssize_t got = read(fd, p + n, cap - n);
      if (got < 0 && errno == EINTR)
        continue;
      if (got <= 0)
        break;
      n += (size_t)got;
    }
  }
  *bytes = p;
  *len = n;
  return e;
}

/* The next line of the frames without its newline, or NULL. */
static char *line(char **at, char *end)
{
  char *s = *at, *nl = s < end ? memchr(s, '\n', (size_t)(end - s)) : NULL;
  if (!nl)
    return NULL;
  *nl = 0;
  *at = nl + 1;
  return s;
}

static bool add_file(struct sw_result *r, const char *path, const char *bytes, size_t len)
{
  struct sw_result_file *more = realloc(r->files, (r->n_files + 1) * sizeof *more);
  if (!more)
    return false;
  r->files = more;
  struct sw_result_file *f = &more[r->n_files];
  *f = (struct sw_result_file){strdup(path), malloc(len + 1), len};
  r->n_files++;
  if (!f->path || !f->bytes)
    return false;
  memcpy(f->bytes, bytes, len);
  f->bytes[len] = 0;
  r->bytes += len;
  return true;
}

/* Frames to a result; false when they are not whole (the child died) or memory is short. */
static bool parse(char *p, size_t n, struct sw_result *r, unsigned *status)
{
  char *end = p + n, *s;
  while ((s = line(&p, end))) {
    if (!strcmp(s, "end"))
      return true;
    if (!strncmp(s, "status ", 7)) {
      *status = (unsigned)strtoul(s + 7, NULL, 10);
    } else if (!strncmp(s, "timing ", 7)) {
      r->server_timing = strdup(s + 7);
    } else if (!strncmp(s, "file ", 5)) {
      char *path;
      size_t len = strtoull(s + 5, &path, 10);
      if (*path != ' ' || len > (size_t)(end - p) || !add_file(r, path + 1, p, len))
        return false;
      p += len;
    } else {
      return false;
    }
  }
  return false;
}

static void answer(const struct sw_work *work, char *bytes, size_t len, int wait_status, struct sw_work_result *out)
{
  struct sw_result *r = calloc(1, sizeof *r);
  unsigned status = 0;
  if (!r) {
    problem(out, work, "limit", 503, "the service is out of memory");
    return;
  }
  r->references = 1;
  if (!parse(bytes, len, r, &status)) {
    sw_result_put(r);
    if (WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == 4)
      problem(out, work, "limit", 413, "the work needs more memory than a worker may use");
    else
      problem(out, work, "internal", 500, "the worker process ended before its answer was complete");
    return;
  }
  out->status = status;
  const struct sw_result_file *f = sw_result_find(r, "problem.json");
  if (!f) {
    out->result = r;
    return;
  }
  out->problem = malloc(f->len + 1);
  if (out->problem)
    memcpy(out->problem, f->bytes, f->len + 1);
  out->problem_len = out->problem ? f->len : 0;
  sw_result_put(r);
}

void sw_worker_run(const struct sw_work *work, const struct sw_limits *limits, const atomic_bool *stop,
                   struct sw_work_result *out)
{
  memset(out, 0, sizeof *out);
  int from_child = -1, wait_status = 0;
  pid_t pid = start(work, limits, &from_child);
  if (pid < 0) {
    problem(out, work, "internal", 500, "no worker process could be started");
    return;
  }
  char *bytes = NULL;
  size_t len = 0;
  enum ending e = collect(from_child, limits, stop, &bytes, &len);
  if (e != ENDED)
    kill(pid, SIGKILL);
  close(from_child);
  while (waitpid(pid, &wait_status, 0) < 0 && errno == EINTR)
    ;
  switch (e) {
  case ENDED: answer(work, bytes, len, wait_status, out); break;
  case TOO_LATE: problem(out, work, "deadline", 504, "the work took longer than a worker may run"); break;
  case TOO_LARGE: problem(out, work, "limit", 413, "the result is larger than a worker may write"); break;
  case STOPPED: problem(out, work, "cancelled", 503, "the service is stopping"); break;
  case NO_MEMORY: problem(out, work, "limit", 503, "the service is out of memory"); break;
  }
  free(bytes);
}
