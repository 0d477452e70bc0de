/* stickwrightd [--listen ADDRESS:PORT] [--LIMIT N]... : compiles over HTTP. */
#include "server/http.h"
#include "server/worker.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
  const char *name, *unit, *what;
  long value;
} limit_table[] = {
#define X(name, value, unit, what) {#name, unit, what, value},
    SW_SERVER_LIMITS(X)
#undef X
};
enum { N_LIMITS = sizeof limit_table / sizeof limit_table[0] };

static void usage(FILE *to)
{
  fputs("usage: stickwrightd [--listen 127.0.0.1:8417] [--LIMIT N]...\n"
        "Port 0 takes a free one; the first line of output names it. Limits:\n",
        to);
  for (int i = 0; i < N_LIMITS; i++)
    fprintf(to, "  --%-16s %s: %s (%ld)\n", limit_table[i].name, limit_table[i].unit, limit_table[i].what,
            limit_table[i].value);
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

int main(int argc, char **argv)
{
  if (argc > 1 && !strcmp(argv[1], "--worker"))
    return sw_worker_main(argc - 2, argv + 2);
  const char *listen = "127.0.0.1:8417";
  long values[N_LIMITS];
  for (int i = 0; i < N_LIMITS; i++)
    values[i] = limit_table[i].value;
  for (int i = 1; i < argc; i++) {
    if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) {
      usage(stdout);
      return 0;
    }
    if (!strcmp(argv[i], "--version")) {
      puts("stickwrightd " SW_VERSION);
      return 0;
    }
    bool is_listen = !strcmp(argv[i], "--listen");
    int limit = strncmp(argv[i], "--", 2) ? -1 : find_limit(argv[i] + 2);
    if ((!is_listen && limit < 0) || i + 1 == argc) {
      fprintf(stderr, "stickwrightd: %s %s\n", argv[i], i + 1 == argc ? "needs a value" : "is no option");
      usage(stderr);
      return 64;
    }
    char *end = NULL;
    const char *value = argv[++i];
    if (is_listen) {
      listen = value;
    } else if ((values[limit] = strtol(value, &end, 10)) < 1 || *end || values[limit] > 1000000) {
      fprintf(stderr, "stickwrightd: --%s wants a number from 1 to 1000000, \"%s\" found\n", limit_table[limit].name, value);
      return 64;
    }
  }
  int next = 0;
  struct sw_limits limits;
#define X(name, value, unit, what) limits.name = values[next++];
  SW_SERVER_LIMITS(X)
#undef X

  /* Every thread inherits the mask, so the signals wait for sigwait below. */
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGTERM);
  sigaddset(&ends, SIGINT);
  pthread_sigmask(SIG_BLOCK, &ends, NULL);
  signal(SIGPIPE, SIG_IGN);
  struct sw_server *s = sw_server_start(listen, &limits);
  if (!s)
    return 74;
  printf("stickwrightd listens on port %u\n", sw_server_port(s));
  fflush(stdout);
  int got;
  sigwait(&ends, &got);
  sw_server_stop(s);
  return 0;
}
