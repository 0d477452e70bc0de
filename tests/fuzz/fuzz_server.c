/* The request path of the daemon on any bytes: each input is what one client sends over a connection before it closes its
 * side. Routes, parameters, codings, bodies, jobs and studies are the daemon's own; only the worker is not a process but an
 * answer made here. It may refuse anything, but never crash, leak or hang; whatever it answers is HTTP.
 *
 * What hangs is measured by the daemon itself: its watchdog has looked at the connection PATIENCE times, ten times a second when
 * there is a processor for it. Seconds would not do: beside other work at nice 19 this process may get none for a minute. */
#include "server/server.h"
#include "server/http.h"
#include "server/systemd.h"

#include <arpa/inet.h>
#include <linux/sockios.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { PATIENCE = 900 };

static atomic_long n_looks;

/* Instead of server/systemd.c's: the watchdog calls it each time. */
void sw_systemd_alive(double now)
{
  (void)now;
  atomic_fetch_add(&n_looks, 1);
}

/* Instead of server/worker.c's: every third piece of work fails. */
void sw_worker_run(const struct sw_task *t, const struct sw_limits *limits, const atomic_bool *cancel,
                   void (*on_pass)(void *ctx, const char *pass), void *ctx, struct sw_outcome *out)
{
  (void)limits, (void)cancel;
  memset(out, 0, sizeof *out);
  on_pass(ctx, "read");
  on_pass(ctx, "{\"solver\":\"assign\",\"part\":0,\"parts\":1}");
  char text[2000];
  memset(text, ' ', sizeof text);
  memcpy(text, "{}", 2);
  struct sw_result *r = sw_result_new(t->id);
  if (t->id[0] % 3 && r && sw_result_add_file(r, "result.json", text, sizeof text)) {
    out->result = r;
    out->solver = strdup("optimal");
  } else {
    sw_result_put(r);
    sw_outcome_problem(out, 422, "bad-input", "as it was made to");
  }
}

static struct sw_server *server(void)
{
  static struct sw_server *s;
  if (s)
    return s;
  static const struct sw_limits limits = {
#define X(name, value, unit, what) .name = value,
      SW_SERVER_LIMITS(X)
#undef X
  };
  struct sw_server_settings settings = {.listen = "127.0.0.1:0", .socket = -1};
  memcpy(&settings.limits, &limits, sizeof limits);
  settings.limits.body_mb = 1;
  settings.limits.jobs = settings.limits.studies = 20;
  settings.limits.address_connections = settings.limits.connections;
  signal(SIGPIPE, SIG_IGN);
  s = sw_server_start(&settings);
  return s ? s : (abort(), NULL);
}

/* Closes our side once all was read: libmicrohttpd does not see an end that comes together with data, and a deadline would
 * have to look for it. */
static void end_behind(int fd)
{
  int unread = 1;
  for (int i = 0; i < 20000 && !ioctl(fd, SIOCOUTQ, &unread) && unread; i++)
    usleep(20);
  usleep(20);
  shutdown(fd, SHUT_WR);
}

/* Sends while it can, so that neither side waits for the other, and reads all that comes back; the first bytes of it. */
static void talk(int fd, const uint8_t *data, size_t size, char head[9])
{
  size_t at = 0, got = 0;
  long first = atomic_load(&n_looks);
  for (;;) {
    struct pollfd p = {.fd = fd, .events = (short)(POLLIN | (at < size ? POLLOUT : 0))};
    if (poll(&p, 1, 1000) <= 0) {
      if (atomic_load(&n_looks) - first > PATIENCE)
        abort(); /* it hangs */
      continue;
    }
    if (p.revents & POLLOUT) {
      ssize_t n = send(fd, data + at, size - at, MSG_NOSIGNAL);
      at = n < 0 ? size : at + (size_t)n;
      if (at == size)
        end_behind(fd);
    }
    if (!(p.revents & (POLLIN | POLLHUP | POLLERR)))
      continue;
    char piece[4096];
    ssize_t n = recv(fd, piece, sizeof piece, 0);
    if (n <= 0)
      return;
    for (ssize_t i = 0; i < n && got < 8; i++)
      head[got++] = piece[i];
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  int ends[2];
  char head[9] = "";
  struct sockaddr_in who = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  if (!size || socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
    return 0;
  if (MHD_add_connection(server()->daemon, ends[1], (struct sockaddr *)&who, sizeof who) == MHD_YES)
    talk(ends[0], data, size, head);
  close(ends[0]);
  if (*head && strncmp(head, "HTTP/1.", 7))
    abort();
  return 0;
}
