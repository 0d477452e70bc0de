/* stickwrightd [--OPTION VALUE]... : compiles over HTTP. */
#include "server/http.h"
#include "server/worker.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

static const struct {
  const char *name, *unit, *what;
  long value;
} limit_table[] = {
#define X(name, value, unit, what) {#name, unit, what, value},
    SW_SERVER_LIMITS(X)
#undef X
};
enum { N_LIMITS = sizeof limit_table / sizeof limit_table[0] };

static const struct {
  const char *name, *value, *what;
} text_table[] = {
    {"listen", "ADDRESS:PORT", "where to listen (127.0.0.1:8417); port 0 takes a free one, the first line of output names it"},
    {"store", "FILE", "keep results and jobs in this file (STATE_DIRECTORY/store.db; without either: in memory)"},
    {"aside", "DIR", "keep notes on workers that died here (beside the store: FILE.aside)"},
    {"token-file", "FILE", "ask for the bearer token in this file; for listening beyond loopback"},
};
enum text_option { LISTEN, STORE, ASIDE, TOKEN_FILE, N_TEXTS };

static void usage(FILE *to)
{
  fputs("usage: stickwrightd [--OPTION VALUE]...\n", to);
  for (int i = 0; i < N_TEXTS; i++)
    fprintf(to, "  --%-20s %s: %s\n", text_table[i].name, text_table[i].value, text_table[i].what);
  for (int i = 0; i < N_LIMITS; i++) {
    char name[32];
    snprintf(name, sizeof name, "%s", limit_table[i].name);
    for (char *c = name; *c; c++)
      *c = *c == '_' ? '-' : *c;
    fprintf(to, "  --%-20s %s: %s (%ld)\n", name, limit_table[i].unit, limit_table[i].what, limit_table[i].value);
  }
  fputs("  --routes               print the routes and exit\n"
        "  --help, --version\n",
        to);
}

/* "--body-mb" and "--body_mb" are the same limit; its place in the table, or -1. */
static int find_limit(const char *name)
{
  for (int i = 0; i < N_LIMITS; i++) {
    const char *a = name, *b = limit_table[i].name;
    while (*b && (*a == *b || (*a == '-' && *b == '_')))
      a++, b++;
    if (!*a && !*b)
      return i;
  }
  return -1;
}

static int find_text(const char *name)
{
  for (int i = 0; i < N_TEXTS; i++)
    if (!strcmp(text_table[i].name, name))
      return i;
  return -1;
}

static void print_routes(void)
{
  struct sw_buf b = {.arena = sw_arena_new(NULL, 1 << 20)};
  if (b.arena) {
    sw_server_routes(&b);
    fputs(sw_buf_text(&b), stdout);
  }
  sw_arena_free(b.arena);
}

struct settings {
  const char *texts[N_TEXTS];
  long limits[N_LIMITS];
};

/* Sets what the arguments say; an exit code, or -1 to go on. */
static int parse(int argc, char **argv, struct settings *s)
{
  for (int i = 1; i < argc; i++) {
    const char *arg = argv[i];
    if (!strcmp(arg, "--help") || !strcmp(arg, "-h")) {
      usage(stdout);
      return 0;
    }
    if (!strcmp(arg, "--version")) {
      puts("stickwrightd " SW_VERSION);
      return 0;
    }
    if (!strcmp(arg, "--routes")) {
      print_routes();
      return 0;
    }
    bool is_long = !strncmp(arg, "--", 2);
    int text = is_long ? find_text(arg + 2) : -1, limit = is_long ? find_limit(arg + 2) : -1;
    if ((text < 0 && limit < 0) || i + 1 == argc) {
      fprintf(stderr, "stickwrightd: %s %s\n", arg, text < 0 && limit < 0 ? "is no option" : "needs a value");
      usage(stderr);
      return 64;
    }
    char *end = NULL;
    const char *value = argv[++i];
    if (text >= 0) {
      s->texts[text] = value;
    } else if ((s->limits[limit] = strtol(value, &end, 10)) < 1 || *end || s->limits[limit] > 1000000) {
      fprintf(stderr, "stickwrightd: --%s wants a number from 1 to 1000000, \"%s\" found\n", limit_table[limit].name, value);
      return 64;
    }
  }
  return -1;
}

/* Descriptors for all connections, and some for files and workers; as many as the system allows. */
static void allow_descriptors(const struct sw_limits *l)
{
  struct rlimit r;
  rlim_t want = (rlim_t)l->connections + 8 * (rlim_t)l->workers + 64;
  if (getrlimit(RLIMIT_NOFILE, &r) || r.rlim_cur >= want)
    return;
  r.rlim_cur = want < r.rlim_max ? want : r.rlim_max;
  setrlimit(RLIMIT_NOFILE, &r);
}

/* The first line of the token file. */
static bool read_token(const char *path, char *out, size_t room)
{
  FILE *f = fopen(path, "re");
  bool ok = f && fgets(out, (int)room, f);
  if (f)
    fclose(f);
  if (ok)
    out[strcspn(out, "\r\n")] = 0;
  if (ok && strlen(out) >= 16)
    return true;
  fprintf(stderr, "stickwrightd: %s: a token of 16 characters or more is expected in the first line\n", path);
  return false;
}

int main(int argc, char **argv)
{
  if (argc > 1 && !strcmp(argv[1], "--worker"))
    return sw_worker_main(argc - 2, argv + 2);
  struct settings s = {.texts = {"127.0.0.1:8417"}};
  for (int i = 0; i < N_LIMITS; i++)
    s.limits[i] = limit_table[i].value;
  int code = parse(argc, argv, &s);
  if (code >= 0)
    return code;
  char token[256], store[4096], aside[4096 + 8];
  if (s.texts[TOKEN_FILE] && !read_token(s.texts[TOKEN_FILE], token, sizeof token))
    return 66;
  const char *state = getenv("STATE_DIRECTORY");
  if (!s.texts[STORE] && state && *state) {
    snprintf(store, sizeof store, "%s/store.db", state);
    s.texts[STORE] = store;
  }
  if (!s.texts[ASIDE] && s.texts[STORE]) {
    snprintf(aside, sizeof aside, "%s.aside", s.texts[STORE]);
    s.texts[ASIDE] = aside;
  }
  int next = 0;
  struct sw_server_settings settings = {.listen = s.texts[LISTEN], .store = s.texts[STORE], .aside = s.texts[ASIDE],
                                        .token = s.texts[TOKEN_FILE] ? token : NULL};
#define X(name, value, unit, what) settings.limits.name = s.limits[next++];
  SW_SERVER_LIMITS(X)
#undef X

  allow_descriptors(&settings.limits);

  /* Every thread inherits the mask, so the signals wait for sigwait below. */
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGTERM);
  sigaddset(&ends, SIGINT);
  pthread_sigmask(SIG_BLOCK, &ends, NULL);
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN); /* a file at its limit is a full disk */
  struct sw_server *server = sw_server_start(&settings);
  if (!server)
    return 74;
  printf("stickwrightd listens on port %u\n", sw_server_port(server));
  fflush(stdout);
  int got;
  sigwait(&ends, &got);
  sw_server_stop(server);
  return 0;
}
