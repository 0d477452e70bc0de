#define _GNU_SOURCE
#include "server/http.h"

#include "server/address.h"
#include "server/aside.h"
#include "server/clock.h"
#include "server/disk.h"
#include "server/server.h"
#include "server/studies.h"
#include "server/systemd.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* -- one request -- */

static void request_free(struct sw_request *q)
{
  sw_outcome_clear(&q->done);
  sw_body_free(q->body);
  sw_inflater_free(q->inflater);
  sw_arena_free(q->arena);
  sw_arena_free(q->spare);
  free(q);
}

static struct sw_request *request_new(struct sw_server *s, struct MHD_Connection *c)
{
  struct sw_request *q = calloc(1, sizeof *q);
  if (!q)
    return NULL;
  const union MHD_ConnectionInfo *info = MHD_get_connection_info(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
  q->server = s;
  q->connection = c;
  q->socket = info ? info->socket_context : NULL;
  q->start = sw_now();
  q->arena = sw_arena_new(NULL, 4 << 20);
  q->spare = sw_arena_new(NULL, 16 << 10);
  snprintf(q->id, sizeof q->id, "%08" PRIx32 "%08" PRIx32, (uint32_t)s->boot,
           (uint32_t)atomic_fetch_add(&s->n_requests, 1));
  if (q->arena && q->spare)
    return q;
  request_free(q);
  return NULL;
}

/* A request's state is its sw_request from its headers on. Before, it is NULL or one of these marks. */
static char nul_in_path, crowded_query;

/* Of the 32 kB that libmicrohttpd has for a request, what a request line may take. */
enum { LINE_ROOM = 24 << 10, PARAMETER_RECORD = 64 };

/* Called with the request line, before anything in it is decoded: what the handler gets ends at a NUL. A query for whose parameters
 * libmicrohttpd has no room would end the connection without a word; it reads the query in its own buffer, which is where `uri`
 * points, when we are done, so such a one is cut off here. */
static void *on_line(void *cls, const char *uri, struct MHD_Connection *c)
{
  (void)cls, (void)c;
  size_t path = uri ? strcspn(uri, "?") : 0, room = path;
  const char *nul = uri ? strstr(uri, "%00") : NULL;
  for (const char *s = uri + path; uri && *s; s++)
    room += *s == '?' || *s == '&' ? PARAMETER_RECORD + 1 : 1;
  if (room > LINE_ROOM && uri[path])
    ((char *)(uintptr_t)uri)[path + 1] = 0;
  return nul && nul < uri + path ? &nul_in_path : room > LINE_ROOM ? &crowded_query : NULL;
}

/* What was held of the body. */
static void drop_body(struct sw_request *q)
{
  sw_body_free(q->body);
  sw_inflater_free(q->inflater);
  q->body = NULL;
  q->inflater = NULL;
}

/* A piece of the body. What is wrong with it is said when all of it has come; false ends the connection: the body goes on beyond
 * what was announced. */
static bool take_body(struct sw_request *q, const char *data, size_t n)
{
  struct sw_server *s = q->server;
  if (!q->route || !q->route->verb || q->refusal)
    return true;
  if (!q->body && !(q->body = sw_body_new((size_t)s->limits.body_mb << 20, &s->bodies)))
    return false;
  enum sw_body_rc rc = SW_BODY_OK;
  bool is_data = q->inflater ? sw_inflate(q->inflater, data, n, q->body, &rc) : (rc = sw_body_add(q->body, data, n), true);
  if (rc == SW_BODY_TOO_LARGE && !q->inflater)
    return false;
  q->refusal = !is_data                 ? SW_BODY_MISCODED
               : rc == SW_BODY_TOO_LARGE ? SW_BODY_INFLATED
               : rc == SW_BODY_NO_ROOM   ? SW_BODY_CROWDED
               : rc == SW_BODY_IO        ? SW_BODY_UNWRITTEN
                                         : SW_BODY_TAKEN;
  if (q->refusal)
    drop_body(q);
  return true;
}

/* All of the request is there, or its work is done. */
static enum MHD_Result answer(struct sw_request *q)
{
  if (!q->route->verb || q->is_done)
    return q->route->handle(q);
  if (q->inflater && q->body && !sw_inflater_complete(q->inflater))
    q->refusal = SW_BODY_MISCODED;
  sw_inflater_free(q->inflater); /* megabytes, while the work waits */
  q->inflater = NULL;
  switch (q->refusal) {
  case SW_BODY_MISCODED:
    return sw_send_problem(q, 400, "usage", "the body is not of its Content-Encoding", NULL);
  case SW_BODY_INFLATED:
    return sw_send_problem(q, 413, "limit", "the body inflates to more bytes than a body may have", NULL);
  case SW_BODY_CROWDED:
    sw_metrics_count(q->server->metrics, SW_METRIC_queue_refusals);
    return sw_send_problem(q, 503, "busy", "the bodies of other requests leave no room for this one", NULL);
  case SW_BODY_UNWRITTEN:
    return sw_send_problem(q, 503, "io", "the body can't be kept while it is read: the service's memory or TMPDIR is full", NULL);
  case SW_BODY_TAKEN:
    break;
  }
  if (q->has_gone)
    return q->route->handle(q);
  if (!q->body)
    return sw_send_problem(q, 400, "usage", "the request has no body; post the model or problem as it is", NULL);
  if (!sw_body_fits(q))
    return sw_send_problem(q, 415, "media-type", "the body is not what its Content-Type says", NULL);
  return q->route->handle(q);
}

struct step {
  struct sw_request *q;
  const char *url, *method, *version, *data;
  size_t *size;
  enum MHD_Result result;
};

static void step(void *p)
{
  struct step *s = p;
  struct sw_request *q = s->q;
  if (!q->begun) {
    q->begun = true;
    q->path = sw_arena_strdup(q->arena, s->url);
    q->method = s->method;
    q->version = s->version;
    s->result = MHD_YES;
    sw_connection_phase(q->server->connections, q->socket, SW_PHASE_BODY);
    sw_refuse_early(q, &s->result);
  } else if (*s->size) {
    s->result = q->status || take_body(q, s->data, *s->size) ? MHD_YES : MHD_NO;
    *s->size = 0;
  } else {
    s->result = answer(q);
  }
}

/* The request's small budget is spent: what would be said needs more. */
static void say_too_much(void *p)
{
  struct step *s = p;
  struct sw_request *q = s->q;
  struct sw_arena *spent = q->arena;
  q->arena = q->spare;
  q->spare = spent;
  s->result = sw_send_problem(q, 413, "limit", "the answer needs more memory than a request may use", NULL);
}

static enum MHD_Result on_request(void *cls, struct MHD_Connection *c, const char *url, const char *method,
                                  const char *version, const char *data, size_t *size, void **state)
{
  bool has_nul = *state == &nul_in_path, is_crowded = *state == &crowded_query, is_new = !*state || has_nul || is_crowded;
  struct sw_request *q = is_new ? request_new(cls, c) : *state;
  struct step s = {.q = q, .url = has_nul ? "" : url, .method = method, .version = version, .data = data, .size = size,
                   .result = MHD_NO};
  *state = q;
  if (!q)
    return MHD_NO;
  q->is_crowded |= is_crowded;
  if (!sw_arena_run(q->arena, step, &s) && !sw_arena_run(q->spare, say_too_much, &s))
    return MHD_NO;
  return s.result;
}

/* One JSON line a request, without bodies; of one that libmicrohttpd did not let through only that it ended. */
static void on_completed(void *cls, struct MHD_Connection *c, void **state, enum MHD_RequestTerminationCode why)
{
  (void)c;
  struct sw_server *s = cls;
  struct sw_request *q = *state == &nul_in_path || *state == &crowded_query ? NULL : *state;
  double seconds = q ? sw_now() - q->start : 0;
  const struct sw_route *route = q ? q->route : NULL;
  unsigned status = q ? q->status : 0;
  fprintf(stderr, "{\"request_id\":\"%s\",\"method\":\"%s\",\"route\":\"%s\",\"status\":%u,\"ms\":%.1f,\"ended\":%d}\n",
          q ? q->id : "-", route ? route->method : "-", route ? route->path : "-", status, seconds * 1e3, (int)why);
  sw_metrics_request(s->metrics, route ? (int)(route - sw_routes) : -1, status, seconds);
  *state = NULL;
  if (!q)
    return;
  sw_connection_phase(s->connections, q->socket, SW_PHASE_HEADERS);
  if (q->has_waited)
    atomic_fetch_sub(&s->n_waiting, 1);
  request_free(q);
}

static void on_connection(void *cls, struct MHD_Connection *c, void **socket_context,
                          enum MHD_ConnectionNotificationCode what)
{
  struct sw_server *s = cls;
  if (what == MHD_CONNECTION_NOTIFY_STARTED) {
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);
    *socket_context = info ? sw_connection_add(s->connections, info->connect_fd) : NULL;
  } else {
    sw_connection_remove(s->connections, *socket_context);
    *socket_context = NULL;
  }
}

/* -- work that ends -- */

static void on_work_end(void *ctx, const struct sw_task *t, struct sw_outcome *o)
{
  struct sw_server *s = ctx;
  if (o->result && !sw_studies_owns(t))
    o->result = sw_store_add(s->store, o->result);
  if (o->solver)
    sw_metrics_solver(s->metrics, o->solver);
  if (o->died) {
    sw_metrics_count(s->metrics, SW_METRIC_worker_deaths);
    sw_aside_write(s->aside, s->limits.notes, t, o);
  }
}

/* -- start and stop -- */

static void *watch(void *p)
{
  struct sw_server *s = p;
  while (!atomic_load(&s->ended)) {
    nanosleep(&(struct timespec){0, 100000000}, NULL);
    sw_queue_tick(s->queue);
    sw_records_tick(sw_jobs_records(s->jobs));
    sw_records_tick(sw_studies_records(s->studies));
    sw_connections_tick(s->connections);
    sw_systemd_alive(sw_now());
  }
  return NULL;
}

/* At the address, or on a socket that somebody opened for us. */
static bool listen_on(struct sw_server *s, const struct sockaddr_storage *address, int socket)
{
  const struct sw_limits *l = &s->limits;
  unsigned flags = MHD_USE_AUTO | MHD_USE_INTERNAL_POLLING_THREAD | MHD_ALLOW_SUSPEND_RESUME;
  if (address->ss_family == AF_INET6)
    flags |= MHD_USE_IPv6;
  struct MHD_OptionItem where[] = {
      socket >= 0 ? (struct MHD_OptionItem){MHD_OPTION_LISTEN_SOCKET, socket, NULL}
                  : (struct MHD_OptionItem){MHD_OPTION_SOCK_ADDR, 0, (void *)(uintptr_t)address},
      {MHD_OPTION_END, 0, NULL}};
  s->daemon = MHD_start_daemon(
      flags, 0, NULL, NULL, on_request, s, MHD_OPTION_ARRAY, where, MHD_OPTION_URI_LOG_CALLBACK, on_line, s,
      MHD_OPTION_NOTIFY_COMPLETED, on_completed, s, MHD_OPTION_NOTIFY_CONNECTION, on_connection, s,
      MHD_OPTION_CONNECTION_LIMIT, (unsigned)l->connections, MHD_OPTION_PER_IP_CONNECTION_LIMIT,
      (unsigned)l->address_connections, MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)l->idle_seconds, MHD_OPTION_END);
  return s->daemon;
}

/* Where we shall listen; of a socket, where it does. */
static bool find_address(struct sw_server *s, const struct sw_server_settings *settings, struct sockaddr_storage *address)
{
  if (settings->socket >= 0 && sw_address_of(settings->socket, address, &s->loopback))
    return true;
  if (settings->socket < 0 && sw_address_parse(settings->listen, address, &s->loopback))
    return true;
  fprintf(stderr, "stickwrightd: --listen wants ADDRESS:PORT such as 127.0.0.1:8417 or [::1]:0, \"%s\" found\n",
          settings->listen);
  return false;
}

static bool make_parts(struct sw_server *s, const char *store)
{
  const struct sw_limits *l = &s->limits;
  s->disk = store ? sw_disk_open(store, (size_t)l->store_mb << 20) : NULL;
  if (store && !s->disk)
    return false;
  s->metrics = sw_metrics_new(sw_n_routes);
  s->connections = sw_connections_new(l);
  s->store = sw_store_new((size_t)l->cache_mb << 20, s->disk);
  s->queue = sw_queue_new(l, on_work_end, s);
  s->jobs = s->queue ? sw_jobs_new(l, s->queue, s->disk) : NULL;
  s->studies = s->jobs && s->store && s->metrics ? sw_studies_new(l, s->queue, s->store, s->disk, s->metrics) : NULL;
  if (s->metrics && s->connections && s->store && s->studies)
    return true;
  fputs("stickwrightd: out of memory\n", stderr);
  return false;
}

static bool needs_body(void *ctx, const char *id)
{
  struct sw_server *s = ctx;
  return sw_records_need_body(sw_jobs_records(s->jobs), id) || sw_records_need_body(sw_studies_records(s->studies), id);
}

struct sw_server *sw_server_start(const struct sw_server_settings *settings)
{
  struct sockaddr_storage address;
  struct sw_server *s = calloc(1, sizeof *s);
  if (!s)
    return NULL;
  if (!find_address(s, settings, &address)) {
    free(s);
    return NULL;
  }
  s->bodies.most_mb = &s->limits.bodies_mb;
  s->listening = MHD_INVALID_SOCKET;
  s->was_passed = settings->socket >= 0;
  pthread_mutex_init(&s->token_lock, NULL);
  sw_server_reload(s, settings);
  s->aside = settings->aside ? strdup(settings->aside) : NULL;
  s->boot = (uint64_t)time(NULL) ^ (uint64_t)getpid() << 20;
  if (!make_parts(s, settings->store)) {
    sw_server_stop(s);
    return NULL;
  }
  int resumed = sw_jobs_resume(s->jobs);
  if (resumed)
    fprintf(stderr, "{\"jobs_resumed\":%d}\n", resumed);
  resumed = sw_studies_resume(s->studies);
  if (resumed)
    fprintf(stderr, "{\"studies_resumed\":%d}\n", resumed);
  if (s->disk)
    sw_disk_sweep_bodies(s->disk, needs_body, s);
  if (!listen_on(s, &address, settings->socket)) {
    fprintf(stderr, "stickwrightd: %s: can't listen: %s\n", settings->listen, strerror(errno));
    sw_server_stop(s);
    return NULL;
  }
  s->is_watched = !pthread_create(&s->watchdog, NULL, watch, s);
  const union MHD_DaemonInfo *listening = MHD_get_daemon_info(s->daemon, MHD_DAEMON_INFO_LISTEN_FD);
  bool same; /* loopback is known already, and its thread reads it from here on */
  s->port = listening ? sw_address_of(listening->listen_fd, &address, &same) : 0;
  return s;
}

unsigned sw_server_port(const struct sw_server *s)
{
  return s->port;
}

void sw_server_reload(struct sw_server *s, const struct sw_server_settings *settings)
{
#define X(name, value, unit, what) s->limits.name = settings->limits.name;
  SW_SERVER_LIMITS(X)
#undef X
  pthread_mutex_lock(&s->token_lock);
  snprintf(s->token, sizeof s->token, "%s", settings->token ? settings->token : "");
  pthread_mutex_unlock(&s->token_lock);
}

const struct sw_limits *sw_server_limits(const struct sw_server *s)
{
  return &s->limits;
}

void sw_server_drain(struct sw_server *s)
{
  if (atomic_exchange(&s->stopping, true) || !s->daemon)
    return;
  s->listening = MHD_quiesce_daemon(s->daemon);
  /* Who comes now is refused at once; at a socket that was passed to us, he waits for the next daemon. */
  if (s->listening != MHD_INVALID_SOCKET && !s->was_passed)
    shutdown(s->listening, SHUT_RDWR);
}

bool sw_server_idle(struct sw_server *s)
{
  struct sw_queue_state q = sw_queue_state(s->queue);
  return !atomic_load(&s->n_waiting) && (s->disk || (!q.waiting && !q.running));
}

void sw_server_stop(struct sw_server *s)
{
  if (!s)
    return;
  sw_server_drain(s);
  atomic_store(&s->ended, true);
  if (s->is_watched)
    pthread_join(s->watchdog, NULL);
  if (s->jobs)
    sw_records_end_events(sw_jobs_records(s->jobs));
  if (s->studies)
    sw_studies_hush(s->studies);
  sw_queue_halt(s->queue); /* every waiting request is answered and its connection resumed */
  if (s->daemon) {
    for (int i = 0; i < 20; i++) { /* at most 2 s for the answers to leave */
      if (!MHD_get_daemon_info(s->daemon, MHD_DAEMON_INFO_CURRENT_CONNECTIONS)->num_connections)
        break;
      nanosleep(&(struct timespec){0, 100000000}, NULL);
    }
    MHD_stop_daemon(s->daemon);
  }
  if (s->listening != MHD_INVALID_SOCKET)
    close(s->listening);
  sw_studies_free(s->studies);
  sw_jobs_free(s->jobs);
  sw_queue_free(s->queue);
  sw_store_free(s->store);
  sw_disk_close(s->disk);
  sw_metrics_free(s->metrics);
  sw_connections_free(s->connections);
  pthread_mutex_destroy(&s->token_lock);
  free(s->aside);
  free(s);
}

void sw_server_routes(struct sw_buf *out)
{
  for (int i = 0; i < sw_n_routes; i++)
    sw_buf_printf(out, "%s %s\n", sw_routes[i].method, sw_routes[i].path);
}
