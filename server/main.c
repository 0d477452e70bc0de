/* stickwrightd [--OPTION VALUE]... : compiles over HTTP. */
#define _GNU_SOURCE
#include "server/clock.h"
#include "server/settings.h"
#include "server/systemd.h"
#include "server/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* Descriptors for all connections and their bodies, which are files when they are large, for the bodies in the queue, and some for
 * other files and workers; as many as the system allows. */
static void allow_descriptors(const struct sw_limits *l)
{
  struct rlimit r;
  rlim_t want = 2 * (rlim_t)l->connections + (rlim_t)l->queue + 8 * (rlim_t)l->workers + 64;
  if (getrlimit(RLIMIT_NOFILE, &r) || r.rlim_cur >= want)
    return;
  r.rlim_cur = want < r.rlim_max ? want : r.rlim_max;
  setrlimit(RLIMIT_NOFILE, &r);
}

/* Standard error goes to the log file from here on; opened anew each time, as it may have been moved away. */
static bool open_log(const char *path)
{
  int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
  bool ok = fd >= 0 && dup2(fd, STDERR_FILENO) >= 0;
  if (!ok)
    fprintf(stderr, "stickwrightd: %s: %s\n", path, strerror(errno));
  if (fd >= 0)
    close(fd);
  return ok;
}

static struct sw_server_settings for_server(const struct sw_settings *s, int socket)
{
  return (struct sw_server_settings){s->listen, s->store, s->aside, *s->token ? s->token : NULL, socket, s->limits};
}

/* SIGHUP: all of the new settings, or none of them. */
static void reload(struct sw_server *server, int argc, char **argv)
{
  struct sw_settings s = {0};
  sw_systemd_tell("RELOADING=1");
  bool ok = sw_settings_read(&s, argc, argv) < 0 && (!s.log || open_log(s.log));
  if (ok) {
    struct sw_server_settings settings = for_server(&s, -1);
    sw_server_reload(server, &settings);
  }
  fprintf(stderr, "{\"reload\":\"%s\"}\n", ok ? "done" : "refused, the old settings hold");
  sw_settings_clear(&s);
  sw_systemd_tell("READY=1");
}

/* What runs and waits may end, for a time; a second signal ends the patience. */
static void drain(struct sw_server *server, const sigset_t *signals, long seconds)
{
  sw_systemd_tell("STOPPING=1\nSTATUS=Draining");
  sw_server_drain(server);
  double end = sw_now() + (double)seconds;
  while (!sw_server_idle(server) && sw_now() < end) {
    int got = sigtimedwait(signals, NULL, &(struct timespec){0, 50000000});
    if (got == SIGTERM || got == SIGINT)
      return;
  }
}

int main(int argc, char **argv)
{
  if (argc > 1 && !strcmp(argv[1], "--worker"))
    return sw_worker_main(argc - 2, argv + 2);
  struct sw_settings s = {0};
  int code = sw_settings_read(&s, argc, argv), socket = code < 0 ? sw_systemd_begin() : -1;
  if (code >= 0 || socket == -2) {
    sw_settings_clear(&s);
    return code >= 0 ? code : 74;
  }
  allow_descriptors(&s.limits);

  /* Every thread inherits the mask, so the signals wait for sigwait below. */
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGHUP);
  pthread_sigmask(SIG_BLOCK, &signals, NULL);
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN); /* a file at its limit is a full disk */
  struct sw_server_settings settings = for_server(&s, socket);
  struct sw_server *server = sw_server_start(&settings);
  if (!server || (s.log && !open_log(s.log))) {
    sw_server_stop(server);
    sw_settings_clear(&s);
    return 74;
  }
  printf("stickwrightd listens on port %u\n", sw_server_port(server));
  fflush(stdout);
  sw_systemd_tell("READY=1");
  int got;
  while (!sigwait(&signals, &got) && got == SIGHUP)
    reload(server, argc, argv);
  drain(server, &signals, sw_server_limits(server)->drain_seconds);
  sw_server_stop(server);
  sw_systemd_end();
  sw_settings_clear(&s);
  return 0;
}
