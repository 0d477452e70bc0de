#define _GNU_SOURCE
#include "server/connections.h"

#include "server/clock.h"

#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

enum { HALF_SECONDS = 1 }; /* for half a request whose client has gone */

struct sw_connection {
  struct sw_connection *next, *previous;
  int fd;
  enum sw_phase phase;
  double since;
  void (*gone)(void *);
  void *waiting; /* in phase work */
};

struct sw_connections {
  pthread_mutex_t lock;
  struct sw_connection *first;
  long n;
  const struct sw_limits *limits;
};

struct sw_connections *sw_connections_new(const struct sw_limits *limits)
{
  struct sw_connections *cs = calloc(1, sizeof *cs);
  if (!cs)
    return NULL;
  pthread_mutex_init(&cs->lock, NULL);
  cs->limits = limits;
  return cs;
}

void sw_connections_free(struct sw_connections *cs)
{
  if (!cs)
    return;
  while (cs->first)
    sw_connection_remove(cs, cs->first);
  pthread_mutex_destroy(&cs->lock);
  free(cs);
}

struct sw_connection *sw_connection_add(struct sw_connections *cs, int fd)
{
  struct sw_connection *c = calloc(1, sizeof *c);
  if (!c)
    return NULL;
  c->fd = fd;
  c->since = sw_now();
  pthread_mutex_lock(&cs->lock);
  c->next = cs->first;
  if (c->next)
    c->next->previous = c;
  cs->first = c;
  cs->n++;
  pthread_mutex_unlock(&cs->lock);
  return c;
}

void sw_connection_remove(struct sw_connections *cs, struct sw_connection *c)
{
  if (!c)
    return;
  pthread_mutex_lock(&cs->lock);
  *(c->previous ? &c->previous->next : &cs->first) = c->next;
  if (c->next)
    c->next->previous = c->previous;
  cs->n--;
  pthread_mutex_unlock(&cs->lock);
  free(c);
}

void sw_connection_waits(struct sw_connections *cs, struct sw_connection *c, void (*gone)(void *), void *waiting)
{
  if (!c)
    return;
  pthread_mutex_lock(&cs->lock);
  c->phase = SW_PHASE_WORK;
  c->since = sw_now();
  c->gone = gone;
  c->waiting = waiting;
  pthread_mutex_unlock(&cs->lock);
}

/* The client has closed its side, and all that it sent before was read: while it waits for work, it will read no answer;
 * before, its request will never be whole. (libmicrohttpd does not see an end that comes together with data.) */
static bool has_gone(const struct sw_connection *c)
{
  struct pollfd p = {.fd = c->fd, .events = POLLRDHUP};
  int unread = 0;
  return poll(&p, 1, 0) > 0 && !ioctl(c->fd, FIONREAD, &unread) && !unread;
}

void sw_connection_phase(struct sw_connections *cs, struct sw_connection *c, enum sw_phase phase)
{
  if (!c)
    return;
  pthread_mutex_lock(&cs->lock);
  c->phase = phase;
  c->since = sw_now();
  c->gone = NULL;
  pthread_mutex_unlock(&cs->lock);
}

void sw_connections_tick(struct sw_connections *cs)
{
  const struct sw_limits *l = cs->limits;
  const double now = sw_now(), seconds[SW_PHASE_EVENTS + 1] = {[SW_PHASE_HEADERS] = (double)l->header_seconds, /* 0: no end */
                                                               [SW_PHASE_BODY] = (double)l->body_seconds,
                                                               [SW_PHASE_ANSWER] = (double)l->answer_seconds};
  pthread_mutex_lock(&cs->lock);
  for (struct sw_connection *c = cs->first; c; c = c->next) {
    if (c->phase == SW_PHASE_WORK && c->gone && has_gone(c)) {
      void (*gone)(void *) = c->gone;
      c->gone = NULL;
      gone(c->waiting);
    }
    bool is_half = c->phase <= SW_PHASE_BODY && now - c->since > HALF_SECONDS && has_gone(c);
    if (is_half || (seconds[c->phase] > 0 && now - c->since > seconds[c->phase]))
      shutdown(c->fd, SHUT_RDWR); /* its own thread sees the end, and closes it */
  }
  pthread_mutex_unlock(&cs->lock);
}

long sw_connections_open(struct sw_connections *cs)
{
  pthread_mutex_lock(&cs->lock);
  long n = cs->n;
  pthread_mutex_unlock(&cs->lock);
  return n;
}
