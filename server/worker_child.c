/* The child: limits first, then the verb, then frames:
 *
 *   status 200\n                 HTTP status
 *   timing TEXT\n                for the Server-Timing header, perhaps
 *   file LENGTH PATH\n BYTES     each file of the answer, or problem.json alone
 *   end\n                        without it nothing of the above counts
 */
#include "server/worker.h"

#include "compiler/pipeline.h"
#include "server/problem.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

struct child {
  struct sw_job job;
  const char *request_id, *verb;
  char **options;
  int n_options;
  unsigned status;
  struct sw_files files;
  struct sw_buf timing;
};

static enum sw_rc compile(struct child *c, const struct sw_options *o, const char *bytes, size_t len)
{
  struct sw_compile_input in = {.bytes = bytes, .len = len};
  struct sw_compiled done;
  enum sw_rc rc = sw_compile(&c->job, o, &in, NULL, NULL, &done);
  c->files = done.files;
  static const char *const names[] = {
#define X(name, ensures) #name,
      SW_PASSES(X)
#undef X
  };
  c->timing.arena = c->job.arena;
  for (int i = 0; i < SW_N_PASSES; i++)
    sw_buf_printf(&c->timing, "%s%s;dur=%.1f", i ? ", " : "", names[i], done.seconds[i] * 1e3);
  return rc;
}

static const struct {
  const char *verb;
  enum sw_rc (*run)(struct child *, const struct sw_options *, const char *bytes, size_t len);
} verbs[] = {
    {"compile", compile},
};

static enum sw_rc run_verb(struct child *c)
{
  struct sw_options o;
  const char *bytes;
  size_t len;
  sw_options_init(&o);
  for (int i = 0; i < c->n_options; i++) {
    char *name = sw_arena_strdup(c->job.arena, c->options[i]);
    char *value = strchr(name, '=');
    *value++ = 0;
    SW_TRY(sw_option_set(&c->job, &o, name, value));
  }
  sw_options_settle(&o);
  SW_TRY(sw_file_read(&c->job, "-", SIZE_MAX / 2, &bytes, &len));
  for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++)
    if (!strcmp(verbs[i].verb, c->verb))
      return verbs[i].run(c, &o, bytes, len);
  return sw_fail(&c->job, SW_INTERNAL, "worker without verb %s", c->verb);
}

static void run(void *p)
{
  struct child *c = p;
  enum sw_rc rc = run_verb(c);
  c->status = (unsigned)sw_rc_http(rc);
  if (rc == SW_OK)
    return;
  struct sw_buf *b = SW_NEW(c->job.arena, struct sw_buf);
  b->arena = c->job.arena;
  const char *detail = c->job.faults.n ? c->job.faults.v[0].detail : "no reason was given";
  sw_problem_write(b, sw_rc_slug(rc), c->status, detail, c->request_id, &c->job);
  c->files.list.n = 0;
  sw_files_add(&c->job, &c->files, "problem.json", b->p, b->n);
}

static bool write_frames(const struct child *c)
{
  printf("status %u\n", c->status);
  if (c->timing.n)
    printf("timing %s\n", sw_buf_text(&c->timing));
  for (int i = 0; i < c->files.list.n; i++) {
    const struct sw_file *f = &c->files.list.v[i];
    printf("file %zu %s\n", f->len, f->path);
    fwrite(f->bytes, 1, f->len, stdout);
  }
  puts("end");
  return !fflush(stdout);
}

int sw_worker_main(int argc, char **argv)
{
  if (argc < 3)
    return 64;
  long memory_mb = strtol(argv[0], NULL, 10);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  signal(SIGPIPE, SIG_DFL);
  setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  /* Behind the arena's own budget, which gives the better message; the rest is for libraries. */
  rlim_t bytes = ((rlim_t)memory_mb + 256) << 20;
  setrlimit(RLIMIT_AS, &(struct rlimit){bytes, bytes});
#endif
  struct child c = {.request_id = argv[1], .verb = argv[2], .options = argv + 3, .n_options = argc - 3};
  c.job.arena = sw_arena_new(NULL, (size_t)memory_mb << 20);
  if (!c.job.arena || !sw_arena_run(c.job.arena, run, &c))
    return 4;
  bool ok = write_frames(&c);
  sw_arena_free(c.job.arena);
  return ok ? 0 : 74;
}
