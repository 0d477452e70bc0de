/* What has happened to something that runs, as text/event-stream: kept from the beginning, told to any number of
 * listeners, each at its own speed. A record (a job, a study) has one, guarded by the lock of the record's keeper. */
#ifndef SW_SERVER_EVENTS_H
#define SW_SERVER_EVENTS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

struct sw_listener;

struct sw_events {
  pthread_mutex_t *lock; /* set by the owner */
  struct sw_event *list;
  int n;
  bool over; /* nothing comes any more */
  struct sw_listener *listeners; /* the owner may not go away while there are any */
};

/* One who reads. park and wake are called with the lock held, in turns. */
struct sw_listener {
  void (*park)(void *ctx), (*wake)(void *ctx);
  void *ctx;
  struct sw_events *of; /* the rest is the events' */
  int at;
  double parked; /* since, or 0 */
  bool quiet_too_long;
  struct sw_listener *next;
};

/* -- with the lock held -- */

/* `data` is JSON, up to 199 characters. Only so many are kept; the last one always is, and ends the streams. Of events
 * `solver` in a row only the newest is kept: who reads slowly misses the others. */
void sw_events_add(struct sw_events *e, const char *name, const char *data, bool is_last);
/* Ends the streams as they are. */
void sw_events_end(struct sw_events *e);
void sw_events_listen(struct sw_events *e, struct sw_listener *l);
/* Wakes listeners who heard nothing for 10 s, so that a dead connection is noticed; to be called now and then. */
void sw_events_tick(struct sw_events *e, double now);
void sw_events_clear(struct sw_events *e);

/* -- without -- */

void sw_events_unlisten(struct sw_listener *l);
/* The next event, at most `room` bytes (every one fits into 256); 0: parked, nothing yet; -1: that was the last. */
long sw_events_next(struct sw_listener *l, char *out, size_t room);

#endif
