/* Handlers of /jobs. */
#include "server/server.h"

#include <stdlib.h>
#include <string.h>

static enum MHD_Result no_job(struct sw_request *q)
{
  return sw_send_problem(q, 404, "not-found", "there is no such job (only the newest ended ones are kept)", NULL);
}

enum MHD_Result sw_get_job(struct sw_request *q)
{
  struct sw_buf b = {.arena = q->arena};
  if (!sw_jobs_write(q->server->jobs, q->in_path[0], &b))
    return no_job(q);
  return sw_send_text(q, 200, "application/json", sw_buf_text(&b), b.n);
}

enum MHD_Result sw_delete_job(struct sw_request *q)
{
  return sw_jobs_cancel(q->server->jobs, q->in_path[0]) ? sw_get_job(q) : no_job(q);
}

/* -- events -- */

/* A stream of events; the connection is suspended while there is none, so that it costs nothing. */
struct stream {
  struct sw_listener listener;
  struct MHD_Connection *connection;
  char text[256];
  size_t n, at;
};

static void park(void *ctx)
{
  MHD_suspend_connection(((struct stream *)ctx)->connection);
}

static void wake(void *ctx)
{
  MHD_resume_connection(((struct stream *)ctx)->connection);
}

static ssize_t read_stream(void *ctx, uint64_t pos, char *out, size_t room)
{
  (void)pos;
  struct stream *s = ctx;
  if (s->at == s->n) {
    long n = sw_events_next(&s->listener, s->text, sizeof s->text);
    if (n <= 0)
      return n ? MHD_CONTENT_READER_END_OF_STREAM : 0;
    s->n = (size_t)n;
    s->at = 0;
  }
  size_t n = s->n - s->at < room ? s->n - s->at : room;
  memcpy(out, s->text + s->at, n);
  s->at += n;
  return (ssize_t)n;
}

static void close_stream(void *ctx)
{
  struct stream *s = ctx;
  sw_events_unlisten(&s->listener);
  free(s);
}

bool sw_send_events(struct sw_request *q, struct sw_records *of, enum MHD_Result *answered)
{
  *answered = MHD_NO;
  struct stream *s = calloc(1, sizeof *s);
  if (!s)
    return true;
  s->connection = q->connection;
  s->listener = (struct sw_listener){.park = park, .wake = wake, .ctx = s};
  if (!sw_records_listen(of, q->in_path[0], &s->listener)) {
    free(s);
    return false;
  }
  struct MHD_Response *r = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, sizeof s->text, read_stream, s, close_stream);
  if (!r) {
    close_stream(s);
    return true;
  }
  MHD_add_response_header(r, "Content-Type", "text/event-stream");
  MHD_add_response_header(r, "Cache-Control", "no-store");
  *answered = sw_send(q, 200, r);
  sw_connection_phase(q->server->connections, q->socket, SW_PHASE_EVENTS);
  return true;
}

enum MHD_Result sw_get_job_events(struct sw_request *q)
{
  enum MHD_Result answered;
  return sw_send_events(q, sw_jobs_records(q->server->jobs), &answered) ? answered : no_job(q);
}
