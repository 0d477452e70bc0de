#include "server/events.h"

#include "server/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* More are not kept: a comparison of many variants tells the first ones and its end. */
enum { MAX_EVENTS = 200, QUIET_SECONDS = 10 };

struct sw_event {
  char name[8];
  char data[200];
};

static void wake(struct sw_listener *l)
{
  if (!(l->parked > 0))
    return;
  l->parked = 0;
  l->wake(l->ctx);
}

void sw_events_add(struct sw_events *e, const char *name, const char *data, bool is_last)
{
  if (!strcmp(name, "solver") && e->n && !strcmp(e->list[e->n - 1].name, name)) {
    e->n--;
    for (struct sw_listener *l = e->listeners; l; l = l->next)
      l->at = l->at < e->n ? l->at : e->n;
  }
  struct sw_event *more = e->n < MAX_EVENTS || is_last ? realloc(e->list, (size_t)(e->n + 1) * sizeof *more) : NULL;
  if (more) {
    e->list = more;
    snprintf(more[e->n].name, sizeof more->name, "%s", name);
    snprintf(more[e->n].data, sizeof more->data, "%s", data);
    e->n++;
  }
  e->over |= is_last;
  for (struct sw_listener *l = e->listeners; l; l = l->next)
    wake(l);
}

void sw_events_end(struct sw_events *e)
{
  e->over = true;
  for (struct sw_listener *l = e->listeners; l; l = l->next)
    wake(l);
}

void sw_events_listen(struct sw_events *e, struct sw_listener *l)
{
  l->of = e;
  l->next = e->listeners;
  e->listeners = l;
}

void sw_events_tick(struct sw_events *e, double now)
{
  for (struct sw_listener *l = e->listeners; l; l = l->next)
    if (l->parked > 0 && now - l->parked > QUIET_SECONDS) {
      l->quiet_too_long = true;
      wake(l);
    }
}

void sw_events_clear(struct sw_events *e)
{
  free(e->list);
  e->list = NULL;
  e->n = 0;
}

void sw_events_unlisten(struct sw_listener *l)
{
  pthread_mutex_t *lock = l->of->lock;
  pthread_mutex_lock(lock);
  struct sw_listener **at = &l->of->listeners;
  while (*at != l)
    at = &(*at)->next;
  *at = l->next;
  pthread_mutex_unlock(lock);
}

long sw_events_next(struct sw_listener *l, char *out, size_t room)
{
  long n = 0;
  struct sw_events *e = l->of;
  pthread_mutex_lock(e->lock);
  if (l->at < e->n) {
    const struct sw_event *v = &e->list[l->at++];
    n = snprintf(out, room, "event: %s\ndata: %s\n\n", v->name, v->data);
  } else if (e->over) {
    n = -1;
  } else if (l->quiet_too_long) {
    l->quiet_too_long = false;
    n = snprintf(out, room, ": still here\n\n");
  } else {
    l->parked = sw_now();
    l->park(l->ctx);
  }
  pthread_mutex_unlock(e->lock);
  return n;
}
