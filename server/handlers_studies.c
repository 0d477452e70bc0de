/* Handlers of /studies. */
#include "server/server.h"
#include "server/studies.h"

#include <stdlib.h>

static enum MHD_Result no_study(struct sw_request *q)
{
  return sw_send_problem(q, 404, "not-found", "there is no such study (only the newest ended ones are kept)", NULL);
}

static enum MHD_Result accepted(struct sw_request *q, const char *id)
{
  struct sw_buf b = {.arena = q->arena};
  sw_studies_write(q->server->studies, id, &b);
  struct MHD_Response *r =
      MHD_create_response_from_buffer(b.n, (void *)(intptr_t)sw_buf_text(&b), MHD_RESPMEM_MUST_COPY);
  if (r) {
    MHD_add_response_header(r, "Content-Type", "application/json");
    MHD_add_response_header(r, "Location", sw_arena_printf(q->arena, "/studies/%s", id));
  }
  return sw_send(q, 202, r);
}

static struct sw_request *request_of(struct sw_study_asker *a)
{
  return (struct sw_request *)(void *)((char *)a - offsetof(struct sw_request, asker));
}

static void told(struct sw_study_asker *a, const struct sw_outcome *refused)
{
  sw_wake(request_of(a), refused);
}

static void client_gone(void *request)
{
  struct sw_request *q = request;
  if (sw_studies_leave(q->server->studies, &q->asker)) /* else it is being told */
    sw_wake_gone(q);
}

/* Called again when the study was read. */
enum MHD_Result sw_post_study(struct sw_request *q)
{
  struct sw_server *s = q->server;
  if (q->has_gone)
    return MHD_NO;
  if (q->is_done && !q->done.status)
    return accepted(q, q->asker.id);
  if (q->is_done)
    return sw_send_outcome(q);
  struct sw_body *body = q->body;
  q->body = NULL;
  q->asker.told = told;
  sw_wait(q);
  if (sw_studies_add(s->studies, body, &q->asker)) {
    sw_connection_waits(s->connections, q->socket, client_gone, q);
    return MHD_YES;
  }
  sw_body_free(body);
  sw_wake_refused(q, "busy", "as many studies are in work as may be");
  return MHD_YES;
}

enum MHD_Result sw_get_study(struct sw_request *q)
{
  struct sw_buf b = {.arena = q->arena};
  if (!sw_studies_write(q->server->studies, q->in_path[0], &b))
    return no_study(q);
  return sw_send_text(q, 200, "application/json", sw_buf_text(&b), b.n);
}

enum MHD_Result sw_delete_study(struct sw_request *q)
{
  return sw_studies_cancel(q->server->studies, q->in_path[0]) ? sw_get_study(q) : no_study(q);
}

enum MHD_Result sw_get_study_events(struct sw_request *q)
{
  enum MHD_Result answered;
  return sw_send_events(q, sw_studies_records(q->server->studies), &answered) ? answered : no_study(q);
}

static enum MHD_Result send_table(struct sw_request *q, enum sw_studies_table which, const char *type)
{
  char *text = NULL;
  size_t len = 0;
  enum MHD_Result ok;
  switch (sw_studies_table(q->server->studies, q->in_path[0], which, &text, &len)) {
  case SW_STUDIES_OK:
    ok = sw_send_text(q, 200, type, text, len);
    free(text);
    return ok;
  case SW_STUDIES_NOT_DONE:
    return sw_send_problem(q, 409, "not-done", "the study has no tables (yet): its state is not done", NULL);
  case SW_STUDIES_LOST:
    return sw_send_problem(q, 500, "io", "the table is damaged in the store; post the study again", NULL);
  default:
    return no_study(q);
  }
}

enum MHD_Result sw_get_study_csv(struct sw_request *q)
{
  return send_table(q, SW_STUDY_CSV, "text/csv; charset=utf-8");
}

enum MHD_Result sw_get_study_json(struct sw_request *q)
{
  return send_table(q, SW_STUDY_JSON, "application/json");
}

enum MHD_Result sw_get_study_markdown(struct sw_request *q)
{
  return send_table(q, SW_STUDY_MARKDOWN, "text/markdown; charset=utf-8");
}
