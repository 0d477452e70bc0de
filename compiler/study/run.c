/* The runs: up to N processes at a time. A child compiles, writes its row beside its final place and renames it; the
 * parent reads rows only. A child that dies has its row written by the parent, so that one bad graph is a line of the
 * table and not the end of the study. */
#define _GNU_SOURCE
#include "compiler/study/study.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <openssl/evp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_GRAPH_MB = 4096, MAX_ROW_BYTES = 16 << 20 };

struct slot {
  pid_t pid; /* 0: free */
  int run;
};

struct farm {
  struct sw_job *job;
  struct sw_study *s;
  const char *dir; /* DIR/runs */
  const struct sw_study_limits *limits;
  char program[65]; /* digest of this executable: another build's rows are not ours */
  struct slot *slots;
  int n_busy, n_done, n_all;
  int n_missing, first_missing; /* of a merge */
};

static void digest(const void *p, size_t n, char out[65])
{
  unsigned char sum[EVP_MAX_MD_SIZE] = {0};
  EVP_Digest(p, n, sum, NULL, EVP_sha256(), NULL);
  for (int i = 0; i < 32; i++)
    snprintf(out + 2 * i, 3, "%02x", sum[i]);
}

static struct sw_options options_of(const struct sw_study *s, const struct sw_study_run *r)
{
  struct sw_options o = s->options.v[r->options].base;
  o.profile = r->profile;
  o.solver = r->solver;
  sw_options_settle(&o);
  return o;
}

static void make_key(struct farm *f, struct sw_arena *scratch, struct sw_study_run *r)
{
  struct sw_buf b = {.arena = scratch};
  sw_buf_printf(&b, "%s %s %s %" PRId64 " %" PRId64 "\n", SW_VERSION, f->program, f->s->graphs.v[r->graph].digest,
                f->limits->seconds, f->limits->memory_mb);
  struct sw_options o = options_of(f->s, r);
  sw_options_write(&o, &(struct sw_jw){.out = &b});
  char all[65];
  digest(b.p, b.n, all);
  memcpy(r->key, all, sizeof r->key - 1);
}

static const char *row_path(const struct farm *f, struct sw_arena *a, const struct sw_study_run *r)
{
  return sw_arena_printf(a, "%s/%s.json", f->dir, r->key);
}

/* Takes the row from its file; false when there is none or not a whole one. */
static bool take_row(struct farm *f, struct sw_study_run *r)
{
  struct sw_job mine = {.arena = sw_arena_new(f->job->arena, 0)};
  const char *text;
  size_t len;
  const char *path = row_path(f, mine.arena, r);
  bool is_there = !access(path, F_OK) && sw_file_read(&mine, path, MAX_ROW_BYTES, &text, &len) == SW_OK;
  struct sw_job into = {.arena = f->job->arena};
  bool ok = is_there && sw_study_row_read(&into, text, len, r);
  sw_arena_free(mine.arena);
  return ok;
}

static bool put_row(const struct farm *f, struct sw_arena *a, const struct sw_study_run *r)
{
  struct sw_job mine = {.arena = a};
  struct sw_buf b = {.arena = a};
  sw_study_row_text(r, &b);
  return sw_file_put(&mine, row_path(f, a, r), b.p, b.n) == SW_OK;
}

/* -- the child -- */

static double processor_seconds(void)
{
  struct rusage u;
  getrusage(RUSAGE_SELF, &u);
  return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) + 1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

/* The arena keeps to the memory limit and says so in words; the limit of the address space is for what allocates
 * beside it. Sanitizers map terabytes, so their builds (own malloc per object) have the first only. */
static void set_limits(const struct sw_study_limits *l)
{
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (int i = 0; i < 3; i++)
    signal((const int[]){SIGINT, SIGTERM, SIGHUP}[i], SIG_DFL);
  setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
  setrlimit(RLIMIT_CPU, &(struct rlimit){(rlim_t)l->seconds, (rlim_t)l->seconds + 1});
#ifndef SW_ARENA_MALLOC
  rlim_t most = ((rlim_t)l->memory_mb * 2 + 1024) << 20;
  setrlimit(RLIMIT_AS, &(struct rlimit){most, most});
#endif
}

static _Noreturn void child(const struct farm *f, const struct sw_study_run *run, const struct sw_compile_input *in)
{
  set_limits(f->limits);
  int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  dup2(null, STDIN_FILENO);
  dup2(null, STDOUT_FILENO);
  struct sw_job job = {.arena = sw_arena_new(NULL, (size_t)f->limits->memory_mb << 20)};
  struct sw_arena *own = sw_arena_new(NULL, (size_t)1 << 30);
  if (!job.arena || !own)
    _exit(1);
  struct sw_study_run r = *run;
  struct sw_options o = options_of(f->s, &r);
  struct sw_comparison c = {0};
  sw_compare_run(&job, f->s->graphs.v[r.graph].name, in, &o, &c);
  r.row = c.runs.v[0];
  r.seconds = processor_seconds();
  _exit(!put_row(f, own, &r));
}

/* -- the parent -- */

/* "[=======>            ]  12 of 40 runs" */
static void show_progress(const struct farm *f)
{
  enum { WIDTH = 30 };
  static const char full[] = "==============================", empty[] = "                              ";
  if (!f->limits->progress)
    return;
  int n = f->n_all ? (int)((int64_t)WIDTH * f->n_done / f->n_all) : WIDTH;
  fprintf(stderr, "\r[%.*s%.*s] %d of %d runs%s", n, full, WIDTH - n, empty, f->n_done, f->n_all,
          f->n_done == f->n_all ? "\n" : "");
}

/* A run that left no row: what its end says. Killed from outside is no property of the run, so it isn't kept and will
 * be done again. */
static void row_of_end(struct farm *f, struct sw_study_run *r, int end, double seconds)
{
  int sig = WIFSIGNALED(end) ? WTERMSIG(end) : 0;
  struct sw_compared *c = &r->row;
  *c = (struct sw_compared){.profile = r->profile, .solver = r->solver, .status = sw_rc_slug(SW_INTERNAL)};
  if (sig == SIGXCPU || (sig == SIGKILL && seconds >= (double)f->limits->seconds)) {
    c->status = sw_rc_slug(SW_DEADLINE);
    c->fault = sw_arena_printf(f->job->arena, "more than %" PRId64 " s of processor time", f->limits->seconds);
  } else if (sig) {
    c->fault = sw_arena_printf(f->job->arena, "the compiler died of signal %d (%s)", sig, strsignal(sig));
  } else {
    c->fault = sw_arena_printf(f->job->arena, "the compiler ended with code %d and left no row", WEXITSTATUS(end));
  }
  *SW_PUSH(f->job->arena, &c->faults) = c->fault;
  r->seconds = seconds;
  r->done = true;
  bool from_outside = sig == SIGKILL || sig == SIGTERM || sig == SIGINT || sig == SIGHUP;
  if (!from_outside || !strcmp(c->status, sw_rc_slug(SW_DEADLINE)))
    put_row(f, f->job->arena, r);
}

/* Waits for one child. A signal that asks for the end interrupts the wait, and the next one is preceded by killing. */
static void reap(struct farm *f)
{
  int end;
  struct rusage u;
  for (int i = 0; sw_cancelled(f->job) && i < f->limits->jobs; i++)
    if (f->slots[i].pid)
      kill(f->slots[i].pid, SIGKILL);
  pid_t pid = wait4(-1, &end, 0, &u);
  for (int i = 0; i < f->limits->jobs; i++) {
    struct slot *slot = &f->slots[i];
    if (pid <= 0 || slot->pid != pid)
      continue;
    struct sw_study_run *r = &f->s->runs.v[slot->run];
    double seconds = (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
                     1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
    slot->pid = 0;
    f->n_busy--;
    bool is_there = take_row(f, r);
    if (!is_there && sw_cancelled(f->job))
      continue; /* we killed it */
    if (!is_there)
      row_of_end(f, r, end, seconds);
    f->n_done++;
    show_progress(f);
  }
}

static enum sw_rc start(struct farm *f, int run, const struct sw_compile_input *in)
{
  while (f->n_busy == f->limits->jobs)
    reap(f);
  if (sw_cancelled(f->job))
    return SW_CANCELLED;
  struct slot *slot = f->slots;
  while (slot->pid)
    slot++;
  fflush(NULL);
  pid_t pid = fork();
  if (pid < 0)
    return sw_fail(f->job, SW_IO, "no process for a run: %s", strerror(errno));
  if (!pid)
    child(f, &f->s->runs.v[run], in);
  *slot = (struct slot){pid, run};
  f->n_busy++;
  return SW_OK;
}

static bool is_of_shard(const struct farm *f, int run)
{
  return run % f->limits->n_shards == f->limits->shard;
}

/* All runs of graph g; they lie at first .. last - 1. The graph's bytes are in memory once, children share them. */
static enum sw_rc run_graph(struct farm *f, int g, int first, int last)
{
  struct sw_study_graph *graph = &f->s->graphs.v[g];
  struct sw_job mine = {.arena = sw_arena_new(f->job->arena, 0)};
  struct sw_compile_input in = {.bytes = graph->bytes, .len = graph->len};
  bool can_read =
      in.bytes || sw_file_read(&mine, graph->path, (size_t)MAX_GRAPH_MB << 20, &in.bytes, &in.len) == SW_OK;
  if (can_read)
    digest(in.bytes, in.len, graph->digest);
  enum sw_rc rc = SW_OK;
  for (int i = first; i < last && rc == SW_OK; i++) {
    struct sw_study_run *r = &f->s->runs.v[i];
    if (!is_of_shard(f, i))
      continue;
    if (!can_read) {
      r->row = (struct sw_compared){.profile = r->profile, .solver = r->solver, .status = sw_rc_slug(mine.worst)};
      r->row.fault = sw_arena_strdup(f->job->arena, mine.faults.v[0].detail);
      *SW_PUSH(f->job->arena, &r->row.faults) = r->row.fault;
      r->done = true;
    } else {
      make_key(f, mine.arena, r);
      bool is_there = take_row(f, r);
      if (!is_there && f->limits->only_merge && !f->n_missing++)
        f->first_missing = i;
      if (!is_there && !f->limits->only_merge)
        rc = start(f, i, &in);
      if (!is_there)
        continue;
    }
    f->n_done++;
    show_progress(f);
  }
  sw_arena_free(mine.arena);
  return rc;
}

static enum sw_rc make_dir(struct sw_job *job, const char *dir)
{
  if (mkdir(dir, 0777) && errno != EEXIST)
    return sw_fail(job, SW_IO, "%s: %s", dir, strerror(errno));
  return SW_OK;
}

enum sw_rc sw_study_make_dirs(struct sw_job *job, const char *dir)
{
  SW_TRY(make_dir(job, dir));
  return make_dir(job, sw_arena_printf(job->arena, "%s/runs", dir));
}

/* What ended the loop over all graphs, in words. */
static enum sw_rc say_why(const struct farm *f, enum sw_rc rc)
{
  if (sw_cancelled(f->job) && f->n_done < f->n_all) {
    if (f->limits->progress)
      fputc('\n', stderr);
    sw_fault(f->job, SW_CANCELLED, "interrupted: %d of %d runs are done", f->n_done, f->n_all)->advice =
        "the same command goes on with the others";
    return SW_CANCELLED;
  }
  if (!f->n_missing)
    return rc;
  const struct sw_study_run *r = &f->s->runs.v[f->first_missing];
  sw_fault(f->job, SW_NO_INPUT, "%d of %d runs are not in %s, the first: %s %s %s %s", f->n_missing, f->n_all, f->dir,
           f->s->graphs.v[r->graph].name, sw_study_profile_name(r->profile), sw_study_solver_name(r->solver),
           f->s->options.v[r->options].label)
      ->advice = "do their shards again, with this program, these graphs and limits; or leave out --merge to do them here";
  return SW_NO_INPUT;
}

enum sw_rc sw_study_run(struct sw_job *job, struct sw_study *s, const char *dir, const struct sw_study_limits *limits)
{
  struct farm f = {.job = job, .s = s, .limits = limits, .dir = sw_arena_printf(job->arena, "%s/runs", dir)};
  SW_TRY(sw_study_make_dirs(job, dir));
  const char *self;
  size_t len;
  SW_TRY(sw_file_read(job, "/proc/self/exe", (size_t)1 << 30, &self, &len));
  digest(self, len, f.program);
  f.slots = SW_NEW_N(job->arena, struct slot, limits->jobs);
  for (int i = 0; i < s->runs.n; i++)
    f.n_all += is_of_shard(&f, i);
  enum sw_rc rc = SW_OK;
  int each = s->runs.n / s->graphs.n;
  for (int g = 0; g < s->graphs.n && rc == SW_OK; g++)
    rc = run_graph(&f, g, g * each, (g + 1) * each);
  while (f.n_busy)
    reap(&f);
  return say_why(&f, rc);
}
