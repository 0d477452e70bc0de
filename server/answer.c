/* Answers: texts, problems, results. */
#include "server/server.h"

#include "server/problem.h"
#include "server/zip.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORTH_COMPRESSING = 1024, TOO_LARGE_TO_COMPRESS = 8 << 20 };

const char *sw_header(const struct sw_request *q, const char *name)
{
  return MHD_lookup_connection_value(q->connection, MHD_HEADER_KIND, name);
}

enum MHD_Result sw_send(struct sw_request *q, unsigned status, struct MHD_Response *r)
{
  if (!r)
    return MHD_NO;
  q->status = status;
  MHD_add_response_header(r, "X-Request-Id", q->id);
  MHD_add_response_header(r, "X-Content-Type-Options", "nosniff");
  if (q->ends_connection || atomic_load(&q->server->stopping))
    MHD_add_response_header(r, "Connection", "close");
  sw_connection_phase(q->server->connections, q->socket, SW_PHASE_ANSWER);
  enum MHD_Result ok = MHD_queue_response(q->connection, status, r);
  MHD_destroy_response(r);
  return ok;
}

/* The coding for an answer of that length. */
static enum sw_coding coding_for(const struct sw_request *q, size_t len)
{
  bool worth = len >= WORTH_COMPRESSING && len <= TOO_LARGE_TO_COMPRESS;
  return worth ? sw_coding_accepted(sw_header(q, "Accept-Encoding")) : SW_CODING_NONE;
}

static struct MHD_Response *copied(const char *bytes, size_t len, const char *type)
{
  struct MHD_Response *r = MHD_create_response_from_buffer(len, (void *)(intptr_t)bytes, MHD_RESPMEM_MUST_COPY);
  if (r && type)
    MHD_add_response_header(r, "Content-Type", type);
  return r;
}

enum MHD_Result sw_send_text(struct sw_request *q, unsigned status, const char *type, const char *text, size_t len)
{
  size_t coded_len = 0;
  enum sw_coding c = coding_for(q, len);
  char *coded = c ? sw_compress(c, text, len, &coded_len) : NULL;
  struct MHD_Response *r = coded ? copied(coded, coded_len, type) : copied(text, len, type);
  if (r && coded)
    MHD_add_response_header(r, "Content-Encoding", sw_coding_name(c));
  if (r && len >= WORTH_COMPRESSING)
    MHD_add_response_header(r, "Vary", "Accept-Encoding");
  free(coded);
  return sw_send(q, status, r);
}

enum MHD_Result sw_send_problem(struct sw_request *q, unsigned status, const char *slug, const char *detail,
                                const char *errors)
{
  struct sw_buf b = {.arena = q->arena};
  sw_problem_write(&b, slug, status, detail, q->id, errors);
  struct MHD_Response *r = copied(sw_buf_text(&b), b.n, "application/problem+json");
  if (r && status == 503)
    MHD_add_response_header(r, "Retry-After", "5");
  if (r && status == 405)
    MHD_add_response_header(r, "Allow", q->allow);
  if (r && !strcmp(slug, "encoding"))
    MHD_add_response_header(r, "Accept-Encoding", "gzip, zstd");
  if (r && status == 401)
    MHD_add_response_header(r, "WWW-Authenticate", "Bearer");
  return sw_send(q, status, r);
}

enum MHD_Result sw_send_outcome(struct sw_request *q)
{
  const struct sw_outcome *o = &q->done;
  return sw_send_problem(q, o->status, o->slug ? o->slug : "limit", o->detail ? o->detail : "the service is out of memory",
                         o->errors);
}

static const char *media_type(const char *path)
{
  const char *dot = strrchr(path, '.');
  return !dot                     ? "application/octet-stream"
         : !strcmp(dot, ".json")  ? "application/json"
         : !strcmp(dot, ".mlir")  ? "text/plain; charset=utf-8"
                                  : "application/octet-stream";
}

static void put_result(void *r)
{
  sw_result_put(r);
}

/* Bytes that belong to the result: the answer keeps a reference to it until they are sent, and nothing is copied. */
static struct MHD_Response *shared(struct sw_result *r, const char *bytes, size_t len)
{
  sw_result_take(r);
  struct MHD_Response *m = MHD_create_response_from_buffer_with_free_callback_cls(len, (void *)(uintptr_t)bytes, put_result, r);
  if (!m)
    sw_result_put(r);
  return m;
}

/* The coding that a file is answered in. */
static enum sw_coding coding_of(const struct sw_request *q, const struct sw_result_file *f)
{
  size_t len;
  enum sw_coding c = coding_for(q, f->len);
  return c && sw_result_coded(f, c, &len) ? c : SW_CODING_NONE;
}

static struct MHD_Response *file_response(struct sw_result *res, const struct sw_result_file *f, enum sw_coding c)
{
  size_t len = 0;
  const char *coded = c ? sw_result_coded(f, c, &len) : NULL;
  struct MHD_Response *r = coded ? shared(res, coded, len) : shared(res, f->bytes, f->len);
  if (!r)
    return NULL;
  MHD_add_response_header(r, "Content-Type", media_type(f->path));
  if (coded)
    MHD_add_response_header(r, "Content-Encoding", sw_coding_name(c));
  return r;
}

/* Entity tags: "ID" of a result's own bytes, "ID-gzip", "ID-zstd" and "ID-zip" of its other forms; each file of a result has the
 * address of the result, its path tells it from the others. */
static bool tag_matches(const struct sw_request *q, const char *id)
{
  const char *match = sw_header(q, "If-None-Match");
  return match && (!strcmp(match, "*") || strstr(match, id));
}

enum MHD_Result sw_send_result(struct sw_request *q, struct sw_result *res, const char *path, bool created)
{
  struct MHD_Response *r;
  unsigned status = MHD_HTTP_OK;
  const char *form; /* a 304 has the headers that the 200 would have */
  const struct sw_result_file *f = q->wants_zip ? NULL : sw_result_find(res, path);
  if (!f && !q->wants_zip)
    return sw_send_problem(q, 404, "not-found", "the result has no such file; the documents manifest.json and GET /results/ID.zip name those it has", NULL);
  enum sw_coding c = f ? coding_of(q, f) : SW_CODING_NONE;
  form = f ? (const char *const[]){"", "-gzip", "-zstd"}[c] : "-zip";
  if (!created && tag_matches(q, res->id)) {
    status = MHD_HTTP_NOT_MODIFIED;
    r = MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT);
  } else if (q->wants_zip) {
    size_t len = 0;
    char *zip = sw_result_zip(res, &len);
    if (!zip)
      return sw_send_problem(q, 500, "internal", "the archive could not be written", NULL);
    r = MHD_create_response_from_buffer(len, zip, MHD_RESPMEM_MUST_FREE);
    if (r)
      MHD_add_response_header(r, "Content-Type", "application/zip");
  } else {
    r = file_response(res, f, c);
  }
  if (!r)
    return MHD_NO;
  if (f && f->len >= WORTH_COMPRESSING)
    MHD_add_response_header(r, "Vary", "Accept-Encoding");
  char etag[SW_ID_LEN + 16], location[SW_ID_LEN + 16];
  snprintf(etag, sizeof etag, "\"%s%s\"", res->id, form);
  MHD_add_response_header(r, "ETag", etag);
  if (!created) {
    MHD_add_response_header(r, "Cache-Control", "max-age=31536000, immutable");
  } else {
    snprintf(location, sizeof location, "/results/%s", res->id);
    MHD_add_response_header(r, "Location", location);
    if (res->server_timing)
      MHD_add_response_header(r, "Server-Timing", res->server_timing);
  }
  return sw_send(q, status, r);
}
