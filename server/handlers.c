/* Handlers of the route table: work, results, and what the service says of itself. */
#include "server/server.h"

#include "compiler/ops.h"
#include "server/address.h"
#include "server/clock.h"
#include "server/disk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* -- POST /compile, /compare, /solve, /place -- */

static struct sw_request *request_of(struct sw_waiter *w)
{
  return (struct sw_request *)(void *)((char *)w - offsetof(struct sw_request, waiter));
}

void sw_wait(struct sw_request *q)
{
  q->has_waited = true;
  atomic_fetch_add(&q->server->n_waiting, 1);
  MHD_suspend_connection(q->connection);
}

void sw_wake(struct sw_request *q, const struct sw_outcome *o)
{
  if (o)
    sw_outcome_copy(&q->done, o);
  q->is_done = true;
  MHD_resume_connection(q->connection);
}

void sw_wake_refused(struct sw_request *q, const char *slug, const char *detail)
{
  struct sw_outcome o = {0};
  sw_outcome_problem(&o, 503, slug, detail);
  sw_wake(q, &o);
  sw_outcome_clear(&o);
}

void sw_wake_gone(struct sw_request *q)
{
  q->has_gone = true;
  MHD_resume_connection(q->connection);
}

/* The client went away: its work ends, if nobody else waits for it. */
static void client_gone(void *request)
{
  struct sw_request *q = request;
  if (sw_queue_leave(q->server->queue, &q->waiter)) /* else it is being told of the end */
    sw_wake_gone(q);
}

static void work_done(struct sw_waiter *w, const struct sw_outcome *o)
{
  sw_wake(request_of(w), o);
}

/* Who asks, for the fair queue: the address, and a name that clients behind one address may give themselves. */
static const char *client(const struct sw_request *q)
{
  const union MHD_ConnectionInfo *info = MHD_get_connection_info(q->connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
  const char *name = sw_header(q, "X-Client");
  char host[64] = "";
  if (info)
    sw_address_text(info->client_addr, host, sizeof host);
  return sw_arena_printf(q->arena, "%s %.30s", host, name ? name : "");
}

static bool make_task(struct sw_request *q, struct sw_task *t)
{
  memset(t, 0, sizeof *t);
  t->args = malloc(q->args.n);
  if (!t->args)
    return false;
  memcpy(t->args, q->args.p, q->args.n);
  t->args_len = q->args.n;
  memcpy(t->id, q->result_id, sizeof t->id);
  t->body = q->body;
  q->body = NULL;
  return true;
}

static const char too_many[] = "as many requests are waiting as may wait";

static enum MHD_Result start_job(struct sw_request *q, struct sw_task *t, bool known)
{
  char id[SW_JOB_ID_LEN + 1];
  enum sw_jobs_rc rc = sw_jobs_add(q->server->jobs, t, client(q), q->seconds, known, id);
  if (rc != SW_JOBS_OK)
    sw_task_clear(t);
  if (rc == SW_JOBS_NOT_KEPT)
    return sw_send_problem(q, 503, "io", "the store can't be written, so no job can be accepted", NULL);
  if (rc == SW_JOBS_BUSY) {
    sw_metrics_count(q->server->metrics, SW_METRIC_queue_refusals);
    return sw_send_problem(q, 503, "busy", too_many, NULL);
  }
  struct sw_buf b = {.arena = q->arena};
  sw_jobs_write(q->server->jobs, id, &b);
  struct MHD_Response *r =
      MHD_create_response_from_buffer(b.n, (void *)(intptr_t)sw_buf_text(&b), MHD_RESPMEM_MUST_COPY);
  if (r) {
    MHD_add_response_header(r, "Content-Type", "application/json");
    MHD_add_response_header(r, "Location", sw_arena_printf(q->arena, "/jobs/%s", id));
    MHD_add_response_header(r, "Preference-Applied", "respond-async");
  }
  return sw_send(q, 202, r);
}

/* Called again when the work is done. */
enum MHD_Result sw_post_work(struct sw_request *q)
{
  struct sw_server *s = q->server;
  if (q->has_gone)
    return MHD_NO;
  if (q->is_done && q->done.result)
    return sw_send_result(q, q->done.result, "result.json", true);
  if (q->is_done)
    return sw_send_outcome(q);
  if (!sw_call_address(&q->call, q->arena, q->body, q->result_id))
    return sw_send_problem(q, 503, "limit", "the service is out of memory", NULL);
  struct sw_result *known = sw_store_find(s->store, q->result_id);
  sw_metrics_count(s->metrics, known ? SW_METRIC_cache_hits : SW_METRIC_cache_misses);
  if (known && !q->wants_job) {
    enum MHD_Result ok = sw_send_result(q, known, "result.json", true);
    sw_result_put(known);
    return ok;
  }
  sw_result_put(known);
  struct sw_task t;
  if (!make_task(q, &t))
    return sw_send_problem(q, 503, "limit", "the service is out of memory", NULL);
  if (q->wants_job)
    return start_job(q, &t, known);
  q->waiter.done = work_done;
  q->waiter.deadline = q->seconds > 0 ? sw_now() + q->seconds : SW_NO_DEADLINE;
  const char *who = client(q);
  sw_wait(q);
  if (!sw_queue_join(s->queue, &t, who, &q->waiter)) {
    sw_task_clear(&t);
    sw_metrics_count(s->metrics, SW_METRIC_queue_refusals);
    sw_wake_refused(q, "busy", too_many);
    return MHD_YES;
  }
  sw_connection_waits(s->connections, q->socket, client_gone, q); /* it can't end before: that is up to this thread */
  return MHD_YES;
}

/* -- results -- */

static enum MHD_Result send_stored(struct sw_request *q, const char *path)
{
  const char *id = q->in_path[0];
  struct sw_result *r = strlen(id) == SW_ID_LEN ? sw_store_find(q->server->store, id) : NULL;
  if (!r)
    return sw_send_problem(q, 404, "not-found", "no result has this address (it may have been dropped: post again)",
                           NULL);
  enum MHD_Result ok = sw_send_result(q, r, path, false);
  sw_result_put(r);
  return ok;
}

enum MHD_Result sw_get_result(struct sw_request *q)
{
  return send_stored(q, "result.json");
}

enum MHD_Result sw_get_result_file(struct sw_request *q)
{
  return send_stored(q, q->in_path[1]);
}

enum MHD_Result sw_get_result_zip(struct sw_request *q)
{
  q->wants_zip = true;
  return send_stored(q, NULL);
}

/* -- the service itself -- */

enum MHD_Result sw_get_ops(struct sw_request *q)
{
  struct sw_buf b = {.arena = q->arena};
  sw_ops_json(&b);
  return sw_send_text(q, 200, "application/json", sw_buf_text(&b), b.n);
}

enum MHD_Result sw_get_version(struct sw_request *q)
{
  static const char text[] = "{\"name\":\"stickwright\",\"version\":\"" SW_VERSION "\"}\n";
  return sw_send_text(q, 200, "application/json", text, sizeof text - 1);
}

enum MHD_Result sw_get_health(struct sw_request *q)
{
  return sw_send_text(q, 200, "text/plain", "ok\n", 3);
}

enum MHD_Result sw_get_ready(struct sw_request *q)
{
  if (atomic_load(&q->server->stopping))
    return sw_send_problem(q, 503, "cancelled", "the service is stopping", NULL);
  return sw_send_text(q, 200, "text/plain", "ready\n", 6);
}

static const char *route_name(int route)
{
  static __thread char name[64];
  if (route < 0)
    return "none";
  snprintf(name, sizeof name, "%s %s", sw_routes[route].method, sw_routes[route].path);
  return name;
}

enum MHD_Result sw_get_metrics(struct sw_request *q)
{
  struct sw_server *s = q->server;
  struct sw_queue_state queue = sw_queue_state(s->queue);
  struct sw_disk_state disk = s->disk ? sw_disk_state(s->disk) : (struct sw_disk_state){0};
  const long now[][2] = {{SW_METRIC_queue_waiting, queue.waiting},
                         {SW_METRIC_queue_running, queue.running},
                         {SW_METRIC_connections, sw_connections_open(s->connections)},
                         {SW_METRIC_cache_bytes, (long)sw_store_bytes(s->store)},
                         {SW_METRIC_store_results, disk.results},
                         {SW_METRIC_store_bytes, disk.bytes},
                         {SW_METRIC_store_damaged, disk.damaged},
                         {SW_METRIC_store_failed_writes, disk.failed_writes}};
  for (size_t i = 0; i < sizeof now / sizeof now[0]; i++)
    sw_metrics_set(s->metrics, (enum sw_metric)now[i][0], now[i][1]);
  struct sw_buf b = {.arena = q->arena};
  sw_metrics_write(s->metrics, route_name, &b);
  return sw_send_text(q, 200, "text/plain; version=0.0.4", sw_buf_text(&b), b.n);
}
