/* The child: limits first, then the verb, then frames:
 *
 *   pass NAME\n                  while it works: a pass begins
 *   pass {...}\n                 or, as JSON, how far a solver is
 *   status 200\n                 HTTP status
 *   solver STATUS\n              how the solver ended, perhaps
 *   timing TEXT\n                for the Server-Timing header, perhaps
 *   slug NAME\n                  of a problem; its files are `detail` and `errors` (a JSON array)
 *   file LENGTH PATH\n BYTES     each file of the answer
 *   end\n                        without it nothing of the above counts
 */
#include "server/worker.h"

#include "server/call.h"
#include "server/clock.h"
#include "server/sandbox.h"

#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

enum { MAX_TEXT = 1000 };

struct child {
  struct sw_job job;
  const char *verb;
  char **parameters;
  int n_parameters;
  enum sw_rc rc;
  struct sw_call_answer answer;
  double told; /* when a solver's progress last was */
};

static void on_pass(void *ctx, const char *pass)
{
  (void)ctx;
  printf("pass %s\n", pass);
  fflush(stdout);
}

/* Ten times a second at most, but for the end of a problem. */
static void on_progress(void *ctx, const struct sw_progress *p)
{
  double *last = ctx, now = sw_now();
  if (p->part && now - *last < 0.1)
    return;
  *last = now;
  printf("pass {\"solver\":\"%s\",\"part\":%d,\"parts\":%d", p->solver, p->part, p->parts);
  if (p->has_value)
    printf(",\"value\":%" PRId64, p->value);
  if (p->has_bound)
    printf(",\"bound\":%" PRId64, p->bound);
  if (p->has_value && p->has_bound)
    printf(",\"gap\":%.4g", fabs((double)p->value - (double)p->bound) / fmax(1, fabs((double)p->value)));
  puts("}");
  fflush(stdout);
}

static enum sw_rc run_verb(struct child *c)
{
  struct sw_call call;
  const char *bytes;
  size_t len;
  if (!sw_call_init(&call, c->verb))
    return sw_fail(&c->job, SW_INTERNAL, "worker without verb %s", c->verb);
  for (int i = 0; i < c->n_parameters; i++)
    SW_TRY(sw_call_set_pair(&c->job, &call, c->parameters[i]));
  SW_TRY(sw_file_read(&c->job, "-", SIZE_MAX / 2, &bytes, &len));
  return sw_call_run(&c->job, &call, bytes, len, on_pass, NULL, &c->answer);
}

/* A graph may have names of megabytes, and each fault repeats some: a problem document has the beginning of them. */
static const char *shortened(struct sw_arena *a, const char *s)
{
  size_t n = MAX_TEXT;
  if (!s || strlen(s) <= n)
    return s;
  while (n && ((unsigned char)s[n] & 0xC0) == 0x80) /* not within a character */
    n--;
  return sw_arena_printf(a, "%.*s...", (int)n, s);
}

static void shorten(struct sw_job *job)
{
  for (int i = 0; i < job->faults.n; i++) {
    struct sw_fault *f = &job->faults.v[i];
    f->detail = shortened(job->arena, f->detail);
    f->node = shortened(job->arena, f->node);
    f->tensor = shortened(job->arena, f->tensor);
    f->source = shortened(job->arena, f->source);
    f->advice = shortened(job->arena, f->advice);
  }
}

static void run(void *p)
{
  struct child *c = p;
  c->rc = run_verb(c);
  if (c->rc == SW_OK)
    return;
  shorten(&c->job);
  const char *detail = c->job.faults.n ? c->job.faults.v[0].detail : "no reason was given";
  struct sw_buf *b = SW_NEW(c->job.arena, struct sw_buf);
  b->arena = c->job.arena;
  sw_jw_faults(&(struct sw_jw){.out = b, .indent = 1, .depth = 1, .after_key = true}, &c->job);
  c->answer.files.list.n = 0;
  sw_files_add(&c->job, &c->answer.files, "detail", detail, strlen(detail));
  sw_files_add(&c->job, &c->answer.files, "errors", b->p, b->n);
}

static bool write_frames(const struct child *c)
{
  const struct sw_call_answer *a = &c->answer;
  /* A parameter is well formed when it comes here: the daemon looked. If it is wrong, then for this body. */
  printf("status %d\n", sw_rc_http(c->rc == SW_USAGE ? SW_INVALID : c->rc));
  if (a->solver)
    printf("solver %s\n", a->solver);
  if (a->timing.n)
    printf("timing %s\n", sw_buf_text(&a->timing));
  if (c->rc != SW_OK)
    printf("slug %s\n", sw_rc_slug(c->rc));
  for (int i = 0; i < a->files.list.n; i++) {
    const struct sw_file *f = &a->files.list.v[i];
    printf("file %zu %s\n", f->len, f->path);
    fwrite(f->bytes, 1, f->len, stdout);
  }
  puts("end");
  return !fflush(stdout);
}

int sw_worker_main(int argc, char **argv)
{
  if (argc < 2)
    return 64;
  long memory_mb = strtol(argv[0], NULL, 10);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  signal(SIGPIPE, SIG_DFL);
  if (!sw_sandbox_limits(memory_mb) || !sw_sandbox_close()) {
    fputs("stickwrightd: the limits of a worker can't be set\n", stderr);
    return 71;
  }
  struct child c = {.verb = argv[1], .parameters = argv + 2, .n_parameters = argc - 2};
  c.job.on_progress = on_progress;
  c.job.progress_ctx = &c.told;
  c.job.arena = sw_arena_new(NULL, (size_t)memory_mb << 20);
  bool has_room = c.job.arena && sw_arena_run(c.job.arena, run, &c);
  bool ok = has_room && write_frames(&c);
  sw_arena_free(c.job.arena);
  return !has_room ? 4 : ok ? 0 : 74;
}
