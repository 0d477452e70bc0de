#include "server/metrics.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* Upper ends of the latency buckets, in seconds; the last one is +Inf. */
static const double ends[] = {0.0005, 0.001, 0.0025, 0.01, 0.05, 0.25, 1, 5, 30, 300};
enum { N_ENDS = sizeof ends / sizeof ends[0] };

/* A status is counted under its number; there are few different ones. */
enum { MAX_STATUSES = 24, MAX_SOLVER = 16 };

struct route {
  unsigned status[MAX_STATUSES];
  long requests[MAX_STATUSES];
  long buckets[N_ENDS + 1];
  double seconds;
};

struct sw_metrics {
  pthread_mutex_t lock;
  long values[SW_N_METRICS];
  struct {
    char name[16];
    long n;
  } solver[MAX_SOLVER];
  int n_routes;
  struct route routes[]; /* one more than n_routes: requests without a route come first */
};

struct sw_metrics *sw_metrics_new(int n_routes)
{
  struct sw_metrics *m = calloc(1, sizeof *m + (size_t)(n_routes + 1) * sizeof m->routes[0]);
  if (!m)
    return NULL;
  pthread_mutex_init(&m->lock, NULL);
  m->n_routes = n_routes;
  return m;
}

void sw_metrics_free(struct sw_metrics *m)
{
  if (m)
    pthread_mutex_destroy(&m->lock);
  free(m);
}

void sw_metrics_count(struct sw_metrics *m, enum sw_metric which)
{
  pthread_mutex_lock(&m->lock);
  m->values[which]++;
  pthread_mutex_unlock(&m->lock);
}

void sw_metrics_set(struct sw_metrics *m, enum sw_metric which, long value)
{
  pthread_mutex_lock(&m->lock);
  m->values[which] = value;
  pthread_mutex_unlock(&m->lock);
}

void sw_metrics_request(struct sw_metrics *m, int route, unsigned status, double seconds)
{
  pthread_mutex_lock(&m->lock);
  struct route *r = &m->routes[route + 1];
  int i = 0;
  if (!status)
    status = 499; /* the client went away before there was an answer */
  while (i < MAX_STATUSES - 1 && r->status[i] && r->status[i] != status)
    i++;
  r->status[i] = status;
  r->requests[i]++;
  int b = 0;
  while (b < N_ENDS && seconds > ends[b])
    b++;
  r->buckets[b]++;
  r->seconds += seconds;
  pthread_mutex_unlock(&m->lock);
}

void sw_metrics_solver(struct sw_metrics *m, const char *status)
{
  pthread_mutex_lock(&m->lock);
  for (int i = 0; i < MAX_SOLVER; i++)
    if (!m->solver[i].n || !strncmp(m->solver[i].name, status, sizeof m->solver[i].name - 1)) {
      strncpy(m->solver[i].name, status, sizeof m->solver[i].name - 1);
      m->solver[i].n++;
      break;
    }
  pthread_mutex_unlock(&m->lock);
}

static void head(struct sw_buf *out, const char *name, const char *kind, const char *help)
{
  sw_buf_printf(out, "# HELP stickwright_%s %s.\n# TYPE stickwright_%s %s\n", name, help, name, kind);
}

static long total(const struct route *r)
{
  long n = 0;
  for (int i = 0; i <= N_ENDS; i++)
    n += r->buckets[i];
  return n;
}

static void write_routes(const struct sw_metrics *m, const char *(*route_name)(int), struct sw_buf *out)
{
  head(out, "http_requests_total", "counter", "Requests by route and status");
  for (int k = 0; k <= m->n_routes; k++)
    for (int i = 0; i < MAX_STATUSES && m->routes[k].requests[i]; i++)
      sw_buf_printf(out, "stickwright_http_requests_total{route=\"%s\",status=\"%u\"} %ld\n", route_name(k - 1),
                    m->routes[k].status[i], m->routes[k].requests[i]);
  head(out, "http_request_seconds", "histogram", "From the headers to the end of the answer");
  for (int k = 0; k <= m->n_routes; k++) {
    const struct route *r = &m->routes[k];
    long n = 0;
    if (!total(r))
      continue;
    for (int i = 0; i < N_ENDS; i++)
      sw_buf_printf(out, "stickwright_http_request_seconds_bucket{route=\"%s\",le=\"%g\"} %ld\n", route_name(k - 1),
                    ends[i], n += r->buckets[i]);
    sw_buf_printf(out, "stickwright_http_request_seconds_bucket{route=\"%s\",le=\"+Inf\"} %ld\n", route_name(k - 1),
                  total(r));
    sw_buf_printf(out, "stickwright_http_request_seconds_sum{route=\"%s\"} %.6f\n", route_name(k - 1), r->seconds);
    sw_buf_printf(out, "stickwright_http_request_seconds_count{route=\"%s\"} %ld\n", route_name(k - 1), total(r));
  }
}

/* Into memory of our own first: `out` may give up in the middle, and must not do so with the lock held. */
void sw_metrics_write(struct sw_metrics *m, const char *(*route_name)(int route), struct sw_buf *out)
{
  size_t size = sizeof *m + (size_t)(m->n_routes + 1) * sizeof m->routes[0];
  struct sw_metrics *now = sw_arena_alloc(out->arena, 1, size);
  pthread_mutex_lock(&m->lock);
  memcpy(now, m, size);
  pthread_mutex_unlock(&m->lock);
  write_routes(now, route_name, out);
  head(out, "solver_results_total", "counter", "Finished work by what the solver could prove");
  for (int i = 0; i < MAX_SOLVER && now->solver[i].n; i++)
    sw_buf_printf(out, "stickwright_solver_results_total{status=\"%s\"} %ld\n", now->solver[i].name, now->solver[i].n);
  static const struct {
    const char *name, *kind, *help;
  } metrics[] = {
#define X(name, kind, help) {#name, kind, help},
      SW_METRICS(X)
#undef X
  };
  for (int i = 0; i < SW_N_METRICS; i++) {
    const char *total_suffix = metrics[i].kind[0] == 'c' ? "_total" : "";
    const char *name = sw_arena_printf(out->arena, "%s%s", metrics[i].name, total_suffix);
    head(out, name, metrics[i].kind, metrics[i].help);
    sw_buf_printf(out, "stickwright_%s %ld\n", name, now->values[i]);
  }
}
