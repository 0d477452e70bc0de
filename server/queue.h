/* Work in flight: it waits for, or runs in, one of N threads, each with one child process at a time. Equal work is done
 * once: who asks for what is already in flight joins it.
 *
 *   struct sw_waiter w = {.done = tell_me, .deadline = sw_now() + 30};
 *   sw_queue_join(q, &task, "client", &w);      tell_me is called once: on the end, or when w's deadline has passed
 */
#ifndef SW_SERVER_QUEUE_H
#define SW_SERVER_QUEUE_H

#include "server/worker.h"

struct sw_flight;

enum { SW_NO_DEADLINE = 1000000000 };

/* One who waits; embedded in what it waits for, and valid until `done` was called or sw_queue_leave gave true. */
struct sw_waiter {
  /* On any thread, without locks held; the outcome is borrowed for the call. */
  void (*done)(struct sw_waiter *, const struct sw_outcome *);
  void (*on_pass)(struct sw_waiter *, const char *pass); /* as of a worker, "" when the work begins; may be NULL */
  double deadline;                                       /* on sw_now()'s clock */
  struct sw_flight *flight;                              /* the rest is the queue's */
  struct sw_waiter *next;
};

/* Called for each work that ends, before its waiters hear of it; may change the outcome (put the result into a store). */
typedef void sw_on_end(void *ctx, const struct sw_task *, struct sw_outcome *);

struct sw_queue;
/* The limits are borrowed. */
struct sw_queue *sw_queue_new(const struct sw_limits *limits, sw_on_end *on_end, void *ctx);
/* Takes over what the task owns. False when as many are waiting as may wait (or memory is short): then nothing was taken.
 * Client NULL: work that was accepted before, by another daemon; no limit keeps it out. */
bool sw_queue_join(struct sw_queue *q, struct sw_task *t, const char *client, struct sw_waiter *w);
/* True when w waited and won't be called any more; work that nobody waits for is cancelled. */
bool sw_queue_leave(struct sw_queue *q, struct sw_waiter *w);
/* Sends away those whose deadline has passed; to be called now and then. */
void sw_queue_tick(struct sw_queue *q);

struct sw_queue_state {
  long waiting, running;
};
struct sw_queue_state sw_queue_state(struct sw_queue *q);

/* Takes no more work, cancels everything (each waiter hears `cancelled`), and ends the threads. */
void sw_queue_halt(struct sw_queue *q);
bool sw_queue_halted(const struct sw_queue *q);
/* After sw_queue_halt. */
void sw_queue_free(struct sw_queue *q);

#endif
