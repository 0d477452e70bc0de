#define _GNU_SOURCE
#include "server/worker.h"

#include "server/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

struct child {
  pid_t pid;
  int out; /* its frames */
  int err; /* what it says on standard error: a file in memory */
};

/* stickwrightd --worker MEMORY_MB VERB NAME=VALUE... */
static char **arguments(const struct sw_task *t, char *memory)
{
  size_t n = 0;
  for (size_t i = 0; i < t->args_len; i++)
    n += !t->args[i];
  char **argv = calloc(n + 4, sizeof *argv);
  if (!argv)
    return NULL;
  argv[0] = (char *)(intptr_t) "stickwrightd";
  argv[1] = (char *)(intptr_t) "--worker";
  argv[2] = memory;
  char *s = t->args;
  for (size_t i = 0; i < n; i++, s += strlen(s) + 1)
    argv[3 + i] = s;
  return argv;
}

static pid_t spawn(char **argv, int in, int out, int err)
{
  pid_t pid = -1;
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes; /* the daemon's threads block SIGTERM, the child must not */
  sigset_t none;
  sigemptyset(&none);
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, err, STDERR_FILENO);
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setpgroup(&attributes, 0); /* an interrupt at a terminal is for the daemon, which ends its work in order */
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
  if (posix_spawn(&pid, "/proc/self/exe", &actions, &attributes, argv, environ))
    pid = -1;
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return pid;
}

/* Starts the child; false when that fails. */
static bool start(const struct sw_task *t, const struct sw_limits *limits, struct child *c)
{
  char memory[32];
  snprintf(memory, sizeof memory, "%ld", limits->memory_mb);
  int ends[2] = {-1, -1}, in = sw_body_open(t->body);
  char **argv = arguments(t, memory);
  *c = (struct child){-1, -1, memfd_create("log", MFD_CLOEXEC)};
  if (argv && in >= 0 && c->err >= 0 && !pipe2(ends, O_CLOEXEC))
    c->pid = spawn(argv, in, ends[1], c->err);
  free(argv);
  if (in >= 0)
    close(in);
  if (ends[1] >= 0)
    close(ends[1]);
  c->out = ends[0];
  if (c->pid > 0)
    return true;
  if (c->out >= 0)
    close(c->out);
  if (c->err >= 0)
    close(c->err);
  return false;
}

/* The child's frames as they come. */
struct frames {
  char *bytes;
  size_t n, cap;
  size_t at; /* behind the last pass that was told */
};

/* Tells the passes at the front of what has not been looked at. */
static void tell_passes(struct frames *f, void (*on_pass)(void *, const char *), void *ctx)
{
  char *nl;
  while (f->n - f->at > 5 && !memcmp(f->bytes + f->at, "pass ", 5) &&
         (nl = memchr(f->bytes + f->at, '\n', f->n - f->at))) {
    *nl = 0;
    on_pass(ctx, f->bytes + f->at + 5);
    f->at = (size_t)(nl + 1 - f->bytes);
  }
}

enum ending { ENDED, TOO_LATE, TOO_LARGE, CANCELLED, NO_MEMORY };

/* Whether the child must end now; ENDED when it need not. The limit is read each time, as it may be changed meanwhile. */
static enum ending cut_short(const struct sw_limits *limits, const atomic_bool *cancel, double began)
{
  return atomic_load(cancel)                                    ? CANCELLED
         : sw_now() - began > (double)limits->compile_seconds ? TOO_LATE
                                                                : ENDED;
}

/* All of the child's output, or why it was cut short. */
static enum ending collect(int fd, const struct sw_limits *limits, const atomic_bool *cancel, double began, struct frames *f,
                           void (*on_pass)(void *, const char *), void *ctx)
{
  size_t most = (size_t)limits->output_mb << 20;
  for (;;) {
    enum ending cut = cut_short(limits, cancel, began);
    if (cut != ENDED)
      return cut;
    if (f->n == f->cap) {
      if (f->n > most)
        return TOO_LARGE;
      size_t cap = f->cap ? f->cap * 2 : 1 << 16;
      cap = cap <= most ? cap : most + 1;
      char *bytes = realloc(f->bytes, cap);
      if (!bytes)
        return NO_MEMORY;
      f->bytes = bytes;
      f->cap = cap;
    }
    struct pollfd pf = {.fd = fd, .events = POLLIN};
    if (poll(&pf, 1, 100) <= 0)
      continue;
    ssize_t got = read(fd, f->bytes + f->n, f->cap - f->n);
    if (got < 0 && errno == EINTR)
      continue;
    if (got <= 0)
      return ENDED;
    f->n += (size_t)got;
    tell_passes(f, on_pass, ctx);
  }
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

/* Frames to an outcome; false when they are not whole (the child died) or memory is short. */
static bool parse(struct frames *f, struct sw_result *r, struct sw_outcome *out)
{
  char *p = f->bytes + f->at, *end = f->bytes + f->n, *s;
  while ((s = line(&p, end))) {
    if (!strcmp(s, "end"))
      return true;
    if (!strncmp(s, "status ", 7)) {
      out->status = (unsigned)strtoul(s + 7, NULL, 10);
    } else if (!strncmp(s, "solver ", 7)) {
      free(out->solver);
      out->solver = strdup(s + 7);
    } else if (!strncmp(s, "timing ", 7)) {
      free(r->server_timing);
      r->server_timing = strdup(s + 7);
    } else if (!strncmp(s, "slug ", 5)) {
      free(out->slug);
      out->slug = strdup(s + 5);
    } else if (!strncmp(s, "file ", 5)) {
      char *path;
      size_t len = strtoull(s + 5, &path, 10);
      if (*path != ' ' || len > (size_t)(end - p) || !sw_result_add_file(r, path + 1, p, len))
        return false;
      p += len;
    } else {
      return false;
    }
  }
  return false;
}

static char *text_of(const struct sw_result *r, const char *path)
{
  const struct sw_result_file *f = sw_result_find(r, path);
  return f ? strdup(f->bytes) : NULL;
}

/* The end of what the child wrote to standard error. */
static char *last_words(int fd)
{
  enum { MOST = 8192 };
  char *log = calloc(1, MOST + 1);
  off_t size = lseek(fd, 0, SEEK_END);
  ssize_t n = log ? pread(fd, log, MOST, size > MOST ? size - MOST : 0) : 0;
  if (log)
    log[n > 0 ? n : 0] = 0;
  return log;
}

static void answer(const struct sw_task *t, struct frames *f, const struct child *c, int wait_status,
                   struct sw_outcome *out)
{
  struct sw_result *r = sw_result_new(t->id);
  if (!r) {
    sw_outcome_problem(out, 503, "limit", "the service is out of memory");
    return;
  }
  if (!parse(f, r, out) || wait_status) { /* who wrote a whole answer and then failed has no answer */
    sw_outcome_clear(out);
    if (WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == 4) {
      sw_outcome_problem(out, 413, "limit", "the work needs more memory than a worker may use");
    } else {
      sw_outcome_problem(out, 500, "internal", "the worker process ended before its answer was complete");
      out->died = wait_status ? wait_status : -1;
      out->log = last_words(c->err);
    }
  } else if (out->slug) {
    out->detail = text_of(r, "detail");
    out->errors = text_of(r, "errors");
  } else {
    out->result = r;
    return;
  }
  sw_result_put(r);
}

void sw_worker_run(const struct sw_task *t, const struct sw_limits *limits, const atomic_bool *cancel,
                   void (*on_pass)(void *ctx, const char *pass), void *ctx, struct sw_outcome *out)
{
  memset(out, 0, sizeof *out);
  struct child c;
  if (!start(t, limits, &c)) {
    sw_outcome_problem(out, 503, "internal", "no worker process could be started");
    return;
  }
  struct frames f = {0};
  int wait_status = 0;
  double began = sw_now();
  enum ending e = collect(c.out, limits, cancel, began, &f, on_pass, ctx);
  close(c.out);
  while (e == ENDED && !waitpid(c.pid, &wait_status, WNOHANG)) { /* its output has ended, so it does; or it hangs */
    e = cut_short(limits, cancel, began);
    nanosleep(&(struct timespec){0, 1000000}, NULL);
  }
  if (e != ENDED) {
    kill(c.pid, SIGKILL);
    while (waitpid(c.pid, &wait_status, 0) < 0 && errno == EINTR)
      ;
  }
  switch (e) {
  case ENDED: answer(t, &f, &c, wait_status, out); break;
  case TOO_LATE: sw_outcome_problem(out, 504, "deadline", "the work took longer than a worker may run"); break;
  case TOO_LARGE: sw_outcome_problem(out, 413, "limit", "the result is larger than a worker may write"); break;
  case CANCELLED: sw_outcome_problem(out, 503, "cancelled", "the work was cancelled"); break;
  case NO_MEMORY: sw_outcome_problem(out, 503, "limit", "the service is out of memory"); break;
  }
  close(c.err);
  free(f.bytes);
}
