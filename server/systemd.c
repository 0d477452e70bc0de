#define _GNU_SOURCE
#include "server/systemd.h"

#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { FIRST_DESCRIPTOR = 3 };

static struct {
  int fd; /* connected to NOTIFY_SOCKET, or -1 */
  double every, last; /* seconds between signs of life; 0: nobody asks for them */
} supervisor = {.fd = -1};

/* A number from the environment, and its name taken out of it; 0 when there is none. */
static long take(const char *name)
{
  const char *text = getenv(name);
  long n = text ? strtol(text, NULL, 10) : 0;
  unsetenv(name);
  return n;
}

/* "/run/..." or, with @ for the leading NUL, an abstract address. */
static void connect_to(const char *name)
{
  struct sockaddr_un a = {.sun_family = AF_UNIX};
  size_t n = strlen(name);
  if ((*name != '/' && *name != '@') || n >= sizeof a.sun_path)
    return;
  memcpy(a.sun_path, name, n);
  if (*name == '@')
    a.sun_path[0] = 0;
  int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd >= 0 && !connect(fd, (struct sockaddr *)&a, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n)))
    supervisor.fd = fd;
  else if (fd >= 0)
    close(fd);
}

static int number_of(int fd, int option)
{
  int n = -1;
  socklen_t len = sizeof n;
  return getsockopt(fd, SOL_SOCKET, option, &n, &len) ? -1 : n;
}

int sw_systemd_begin(void)
{
  const char *notify = getenv("NOTIFY_SOCKET");
  if (notify)
    connect_to(notify);
  unsetenv("NOTIFY_SOCKET");
  long pid = take("WATCHDOG_PID"), watchdog = take("WATCHDOG_USEC");
  if (watchdog > 0 && (!pid || pid == getpid()))
    supervisor.every = (double)watchdog * 1e-6 / 3;
  long listen_pid = take("LISTEN_PID"), n = take("LISTEN_FDS");
  unsetenv("LISTEN_FDNAMES");
  if (listen_pid != getpid() || !n)
    return -1;
  int fd = FIRST_DESCRIPTOR, family = number_of(fd, SO_DOMAIN);
  if (n == 1 && number_of(fd, SO_ACCEPTCONN) == 1 && number_of(fd, SO_TYPE) == SOCK_STREAM &&
      (family == AF_INET || family == AF_INET6) && !fcntl(fd, F_SETFD, FD_CLOEXEC))
    return fd;
  fprintf(stderr, "stickwrightd: %ld descriptors were passed, one listening TCP socket expected\n", n);
  return -2;
}

void sw_systemd_tell(const char *state)
{
  if (supervisor.fd >= 0 && send(supervisor.fd, state, strlen(state), MSG_NOSIGNAL) < 0)
    return; /* whoever asked is gone */
}

void sw_systemd_alive(double now)
{
  if (!(supervisor.every > 0) || now - supervisor.last < supervisor.every)
    return;
  supervisor.last = now;
  sw_systemd_tell("WATCHDOG=1");
}

void sw_systemd_end(void)
{
  if (supervisor.fd >= 0)
    close(supervisor.fd);
  supervisor.fd = -1;
}
