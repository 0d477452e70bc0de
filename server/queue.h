/* Work that waits for one of N threads; each thread runs one child process at a time. */
#ifndef SW_SERVER_QUEUE_H
#define SW_SERVER_QUEUE_H

#include "server/worker.h"

#include <stdbool.h>

struct sw_queue;

/* done(ctx, result) is called on the worker's thread, once for every accepted work. */
struct sw_queue *sw_queue_new(const struct sw_limits *limits);
/* False when as many are waiting as may wait. Borrows `work` until done. */
bool sw_queue_add(struct sw_queue *q, const struct sw_work *work, void (*done)(void *, struct sw_work_result *),
                  void *ctx);
/* Cancels everything (each gets a 503), ends the threads, frees the queue. */
void sw_queue_stop(struct sw_queue *q);

#endif
