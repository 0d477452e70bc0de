#include "compiler/cli/verb.h"

#include "base/options.h"
#include "compiler/cli/flags.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

/* Verbs that are not ready say so; a verb that is ready has a file of its own. */
typedef int verb_fn(struct sw_job *job, int argc, char **argv);
#define SW_VERB_0(name) NULL
#define SW_VERB_1(name) sw_verb_##name

static const struct verb {
  const char *name, *args, *help;
  verb_fn *run;
} verbs[] = {
#define X(name, args, help, ready) {#name, args, help, SW_VERB_##ready(name)},
    SW_VERBS(X)
#undef X
};
enum { N_VERBS = sizeof verbs / sizeof verbs[0] };

/* "  -o, --output DIR            what it does", a line each. */
static void print_flags(FILE *to, const char *verb)
{
  for (int i = 0; i < sw_cli_n_flags; i++) {
    const struct sw_cli_known *k = &sw_cli_flags[i];
    if (strcmp(k->verb, verb))
      continue;
    char left[80], letter[] = {'-', k->letter, ',', ' ', 0};
    snprintf(left, sizeof left, "%s--%s%s%s", k->letter ? letter : "", k->name, k->value ? " " : "", k->value ? k->value : "");
    fprintf(to, "  %-36s %s\n", left, k->what);
  }
}

static void print_help(FILE *to, const struct verb *v)
{
  if (v) {
    fprintf(to, "usage: stickwright %s %s\n%s\n", v->name, v->args, v->help);
    print_flags(to, v->name);
    if (strstr(v->args, "OPTIONS")) {
      struct sw_arena *a = sw_arena_new(NULL, 1 << 20);
      struct sw_buf b = {.arena = a};
      sw_options_help(&b);
      fprintf(to, "options:\n%s", sw_buf_text(&b));
      sw_arena_free(a);
    }
    return;
  }
  fputs("usage: stickwright VERB ...\n", to);
  for (int i = 0; i < N_VERBS; i++)
    fprintf(to, "  %-8s %s%s\n", verbs[i].name, verbs[i].help, verbs[i].run ? "" : " (not in this version)");
  fputs("`stickwright help VERB` says more; `stickwright --version`\n", to);
}

static const struct verb *find(const char *name)
{
  for (int i = 0; i < N_VERBS; i++)
    if (!strcmp(verbs[i].name, name))
      return &verbs[i];
  return NULL;
}

static void print_faults(const struct sw_job *job)
{
  for (int i = 0; i < job->warnings.n; i++)
    fprintf(stderr, "stickwright: warning: %s\n", job->warnings.v[i]);
  for (int i = 0; i < job->faults.n; i++) {
    const struct sw_fault *f = &job->faults.v[i];
    fputs("stickwright: ", stderr);
    if (f->source)
      fprintf(stderr, "%s: ", f->source);
    if (f->node)
      fprintf(stderr, "%s: ", f->node);
    fputs(f->detail, stderr);
    if (f->tensor && !strstr(f->detail, f->tensor))
      fprintf(stderr, " [%s]", f->tensor);
    if (f->advice)
      fprintf(stderr, "; %s", f->advice);
    fputc('\n', stderr);
  }
  if (job->faults_left_out)
    fprintf(stderr, "stickwright: and %d more\n", job->faults_left_out);
}

struct call {
  struct sw_job job;
  const struct verb *verb;
  int argc;
  char **argv;
  int exit_code;
};

static void run(void *p)
{
  struct call *c = p;
  c->exit_code = c->verb->run(&c->job, c->argc, c->argv);
}

int main(int argc, char **argv)
{
  signal(SIGPIPE, SIG_IGN);
  const char *name = argc > 1 ? argv[1] : "";
  if (!strcmp(name, "--version") || !strcmp(name, "version")) {
    puts("stickwright " SW_VERSION);
    return 0;
  }
  if (!strcmp(name, "help") || !strcmp(name, "--help") || !strcmp(name, "-h")) {
    const struct verb *v = argc > 2 ? find(argv[2]) : NULL;
    print_help(argc > 2 && !v ? stderr : stdout, v);
    return argc > 2 && !v ? sw_rc_exit(SW_USAGE) : 0;
  }
  struct call c = {.verb = find(name), .argc = argc - 2, .argv = argv + 2};
  if (!c.verb) {
    if (*name)
      fprintf(stderr, "stickwright: there is no verb \"%s\"\n", name);
    print_help(stderr, NULL);
    return sw_rc_exit(SW_USAGE);
  }
  for (int i = 0; i < c.argc; i++)
    if (!strcmp(c.argv[i], "--help") || !strcmp(c.argv[i], "-h")) {
      print_help(stdout, c.verb);
      return 0;
    }
  if (!c.verb->run) {
    fprintf(stderr, "stickwright: %s is unsupported in this version\n", name);
    return sw_rc_exit(SW_UNSUPPORTED);
  }
  c.job.arena = sw_arena_new(NULL, (size_t)16 << 30);
  if (!c.job.arena || !sw_arena_run(c.job.arena, run, &c)) {
    fputs("stickwright: out of memory\n", stderr);
    c.exit_code = sw_rc_exit(SW_LIMIT);
  }
  print_faults(&c.job);
  sw_arena_free(c.job.arena);
  return c.exit_code;
}
