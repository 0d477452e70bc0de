/* Counters of the daemon, written as Prometheus text. Labels are routes, statuses and solver states: few. */
#ifndef SW_SERVER_METRICS_H
#define SW_SERVER_METRICS_H

#include "base/buf.h"

#include <stdbool.h>

/* X(name, kind, help): single numbers. */
#define SW_METRICS(X)                                                                     \
  X(cache_hits, "counter", "Work answered from the store")                                \
  X(cache_misses, "counter", "Work that had to be done, or was in flight")                \
  X(worker_deaths, "counter", "Worker processes that ended before their answer")          \
  X(queue_refusals, "counter", "Requests refused because the queue, or the room for bodies, was full")             \
  X(queue_waiting, "gauge", "Pieces of work that wait for a worker")                      \
  X(queue_running, "gauge", "Pieces of work in a worker")                                 \
  X(connections, "gauge", "Open connections")                                             \
  X(cache_bytes, "gauge", "Results in memory")                                            \
  X(store_results, "gauge", "Results in the store's file")                                \
  X(store_bytes, "gauge", "Bytes of results in the store's file")                         \
  X(store_damaged, "counter", "Results dropped because their digest was wrong")           \
  X(store_failed_writes, "counter", "Changes of the store's file that failed")

enum sw_metric {
#define X(name, kind, help) SW_METRIC_##name,
  SW_METRICS(X)
#undef X
  SW_N_METRICS
};

struct sw_metrics;
struct sw_metrics *sw_metrics_new(int n_routes);
void sw_metrics_free(struct sw_metrics *m);

void sw_metrics_count(struct sw_metrics *m, enum sw_metric which);
void sw_metrics_set(struct sw_metrics *m, enum sw_metric which, long value);
/* A request has ended; route -1 is "none". */
void sw_metrics_request(struct sw_metrics *m, int route, unsigned status, double seconds);
void sw_metrics_solver(struct sw_metrics *m, const char *status);
/* `route_name` gives the label of a route. */
void sw_metrics_write(struct sw_metrics *m, const char *(*route_name)(int route), struct sw_buf *out);

#endif
