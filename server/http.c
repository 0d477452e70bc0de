#define _GNU_SOURCE
#include "server/http.h"

#include "base/options.h"
#include "server/problem.h"
#include "server/queue.h"
#include "server/zip.h"

#include <microhttpd.h>
#include <openssl/evp.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

struct sw_server {
  struct sw_limits limits;
  struct MHD_Daemon *daemon;
  struct sw_queue *queue;
  struct sw_store *store;
  unsigned port;
  bool loopback;
  atomic_uint_fast64_t n_requests;
  uint64_t boot; /* makes request ids differ between runs */
};

/* One request from its headers to its last byte. */
struct request {
  struct sw_server *server;
  const struct route *route;
  char id[17];
  const char *method;
  char *path;
  double start;
  unsigned status; /* as answered */
  /* body */
  int fd; /* unlinked temporary file, or -1 */
  size_t body_bytes;
  EVP_MD_CTX *digest;
  /* work */
  struct sw_arena *arena;
  struct sw_options options;
  SW_VEC(char *) option_texts;
  struct sw_work work;
  char result_id[SW_ID_LEN + 1];
  bool wants_zip;
  struct MHD_Connection *connection;
  struct sw_work_result done;
  bool is_done, is_busy;
};

static double now(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* -- answers -- */

static enum MHD_Result send_response(struct request *q, unsigned status, struct MHD_Response *r)
{
  if (!r)
    return MHD_NO;
  q->status = status;
  MHD_add_response_header(r, "X-Request-Id", q->id);
  MHD_add_response_header(r, "X-Content-Type-Options", "nosniff");
  enum MHD_Result ok = MHD_queue_response(q->connection, status, r);
  MHD_destroy_response(r);
  return ok;
}

static struct MHD_Response *text_response(const char *text, size_t len, const char *type)
{
  struct MHD_Response *r = MHD_create_response_from_buffer(len, (void *)(intptr_t)text, MHD_RESPMEM_MUST_COPY);
  if (r)
    MHD_add_response_header(r, "Content-Type", type);
  return r;
}

static enum MHD_Result send_problem(struct request *q, unsigned status, const char *slug, const char *detail,
                                    const struct sw_job *faults)
{
  struct sw_buf b = {.arena = q->arena};
  sw_problem_write(&b, slug, status, detail, q->id, faults);
  struct MHD_Response *r = text_response(sw_buf_text(&b), b.n, "application/problem+json");
  if (r && status == 503)
    MHD_add_response_header(r, "Retry-After", "5");
  if (r && status == 405)
    MHD_add_response_header(r, "Allow", detail);
  return send_response(q, status, r);
}

static const char *media_type(const char *path)
{
  const char *dot = strrchr(path, '.');
  return !dot ? "application/octet-stream" : !strcmp(dot, ".json") ? "application/json"
         : !strcmp(dot, ".mlir") ? "text/plain; charset=utf-8" : "application/octet-stream";
}

static enum MHD_Result send_result(struct request *q, const struct sw_result *res, const char *path, bool created)
{
  char etag[SW_ID_LEN + 3], location[SW_ID_LEN + 16];
  snprintf(etag, sizeof etag, "\"%s\"", res->id);
  snprintf(location, sizeof location, "/results/%s", res->id);
  const char *match = MHD_lookup_connection_value(q->connection, MHD_HEADER_KIND, "If-None-Match");
  struct MHD_Response *r;
  unsigned status = MHD_HTTP_OK;
  if (!created && match && (!strcmp(match, "*") || strstr(match, etag))) {
    status = MHD_HTTP_NOT_MODIFIED;
    r = MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT);
  } else if (q->wants_zip) {
    size_t len = 0;
    char *zip = sw_result_zip(res, &len);
    if (!zip)
      return send_problem(q, 500, "internal", "the archive could not be written", NULL);
    r = MHD_create_response_from_buffer(len, zip, MHD_RESPMEM_MUST_FREE);
    if (r)
      MHD_add_response_header(r, "Content-Type", "application/zip");
  } else {
    const struct sw_result_file *f = sw_result_find(res, path);
    if (!f)
      return send_problem(q, 404, "not-found", "the result has no such file", NULL);
    r = text_response(f->bytes, f->len, media_type(path));
  }
  if (r) {
    MHD_add_response_header(r, "ETag", etag);
    MHD_add_response_header(r, "Cache-Control", "immutable");
    if (created) {
      MHD_add_response_header(r, "Location", location);
      if (res->server_timing)
        MHD_add_response_header(r, "Server-Timing", res->server_timing);
    }
  }
  return send_response(q, status, r);
}

/* -- POST /compile -- */

/* The result's address: digest of version, verb, effective options and body. */
static void address(struct request *q)
{
  unsigned char sum[EVP_MAX_MD_SIZE];
  unsigned n = 0;
  struct sw_buf b = {.arena = q->arena};
  sw_buf_printf(&b, "stickwright " SW_VERSION "\n%s\n", q->work.verb);
  sw_options_write(&q->options, &(struct sw_jw){.out = &b});
  EVP_DigestUpdate(q->digest, b.p, b.n); /* behind the body */
  EVP_DigestFinal_ex(q->digest, sum, &n);
  for (unsigned i = 0; i < n && i < SW_ID_LEN / 2; i++)
    snprintf(q->result_id + 2 * i, 3, "%02x", sum[i]);
}

static void work_done(void *ctx, struct sw_work_result *r)
{
  struct request *q = ctx;
  q->done = *r;
  if (q->done.result) {
    memcpy(q->done.result->id, q->result_id, sizeof q->result_id);
    q->done.result = sw_store_add(q->server->store, q->done.result);
  }
  q->is_done = true;
  MHD_resume_connection(q->connection);
}

static enum MHD_Result post_work(struct request *q)
{
  if (q->is_busy)
    return send_problem(q, 503, "busy", "as many requests are waiting as may wait", NULL);
  if (q->is_done) {
    if (q->done.result)
      return send_result(q, q->done.result, "result.json", true);
    if (!q->done.problem)
      return send_problem(q, 503, "limit", "the service is out of memory", NULL);
    struct MHD_Response *r = text_response(q->done.problem, q->done.problem_len, "application/problem+json");
    return send_response(q, q->done.status, r);
  }
  address(q);
  struct sw_result *known = sw_store_find(q->server->store, q->result_id);
  if (known) {
    enum MHD_Result ok = send_result(q, known, "result.json", true);
    sw_result_put(known);
    return ok;
  }
  q->work.options = q->option_texts.v;
  q->work.n_options = q->option_texts.n;
  q->work.body_fd = q->fd;
  memcpy(q->work.request_id, q->id, sizeof q->id);
  MHD_suspend_connection(q->connection); /* before the work can end and resume it */
  if (!sw_queue_add(q->server->queue, &q->work, work_done, q)) {
    q->is_busy = true; /* a suspended connection can't be answered: it comes here again */
    MHD_resume_connection(q->connection);
  }
  return MHD_YES;
}

/* -- GET -- */

static enum MHD_Result get_result(struct request *q)
{
  const char *rest = q->path + strlen("/results/");
  size_t n = strspn(rest, "0123456789abcdef");
  char id[SW_ID_LEN + 1] = "";
  const char *path = NULL;
  if (n == SW_ID_LEN) {
    memcpy(id, rest, SW_ID_LEN);
    path = !rest[n]                              ? "result.json"
           : !strcmp(rest + n, ".zip")           ? ""
           : !strncmp(rest + n, "/files/", 7)    ? rest + n + 7
                                                 : NULL;
  }
  struct sw_result *r = path ? sw_store_find(q->server->store, id) : NULL;
  if (!r)
    return send_problem(q, 404, "not-found", "no result has this address (it may have been dropped: post again)", NULL);
  q->wants_zip = !*path;
  enum MHD_Result ok = send_result(q, r, path, false);
  sw_result_put(r);
  return ok;
}

static enum MHD_Result get_health(struct request *q)
{
  return send_response(q, 200, text_response("ok\n", 3, "text/plain"));
}

static enum MHD_Result get_version(struct request *q)
{
  static const char text[] = "{\"name\":\"stickwright\",\"version\":\"" SW_VERSION "\"}\n";
  return send_response(q, 200, text_response(text, sizeof text - 1, "application/json"));
}

/* -- routes -- */

static const struct route {
  const char *method, *path; /* a path that ends in '/' takes everything below it */
  const char *verb;          /* of a worker, for routes with a body */
  enum MHD_Result (*handle)(struct request *);
} routes[] = {
    {"POST", "/compile", "compile", post_work},
    {"GET", "/results/", NULL, get_result},
    {"GET", "/healthz", NULL, get_health},
    {"GET", "/version", NULL, get_version},
};

static bool path_matches(const struct route *r, const char *path)
{
  size_t n = strlen(r->path);
  return r->path[n - 1] == '/' ? !strncmp(path, r->path, n) : !strcmp(path, r->path);
}

/* A request to a loopback address must name a loopback host: else a web page could reach us through its own name. */
static bool host_allowed(const struct request *q)
{
  const char *host = MHD_lookup_connection_value(q->connection, MHD_HEADER_KIND, "Host");
  if (!q->server->loopback || !host)
    return true;
  size_t n = host[0] == '[' ? strcspn(host, "]") + 1 : strcspn(host, ":");
  static const char *const ours[] = {"localhost", "127.0.0.1", "[::1]"};
  for (int i = 0; i < 3; i++)
    if (n == strlen(ours[i]) && !strncasecmp(host, ours[i], n))
      return true;
  return false;
}

struct query {
  struct request *q;
  struct sw_job *job;
};

static enum MHD_Result take_option(void *p, enum MHD_ValueKind kind, const char *key, const char *value)
{
  (void)kind;
  struct query *c = p;
  const char *text = value ? value : "";
  if (sw_option_set(c->job, &c->q->options, key, text) == SW_OK)
    *SW_PUSH(c->q->arena, &c->q->option_texts) = sw_arena_printf(c->q->arena, "%s=%s", key, text);
  return MHD_YES;
}

static bool media_type_accepted(const struct request *q)
{
  static const char *const types[] = {"application/zip", "application/octet-stream", "application/json", "text/plain"};
  const char *given = MHD_lookup_connection_value(q->connection, MHD_HEADER_KIND, "Content-Type");
  if (!given)
    return true;
  size_t n = strcspn(given, "; ");
  for (int i = 0; i < 4; i++)
    if (n == strlen(types[i]) && !strncasecmp(given, types[i], n))
      return true;
  return false;
}

/* What can be decided before the body: MHD_YES to go on, or the queued refusal in *answered. */
static bool refuse_early(struct request *q, enum MHD_Result *answered)
{
  bool path_known = false;
  const char *allow = NULL;
  for (size_t i = 0; i < sizeof routes / sizeof routes[0]; i++)
    if (path_matches(&routes[i], q->path)) {
      path_known = true;
      allow = routes[i].method;
      if (!strcmp(routes[i].method, q->method) || (!strcmp(q->method, "HEAD") && !strcmp(routes[i].method, "GET")))
        q->route = &routes[i];
    }
  if (!host_allowed(q))
    *answered = send_problem(q, 421, "host", "this service answers to localhost, 127.0.0.1 and [::1] only", NULL);
  else if (!path_known)
    *answered = send_problem(q, 404, "not-found", "there is no such path; /version, /healthz, /compile, /results/ID",
                             NULL);
  else if (!q->route)
    *answered = send_problem(q, 405, "method", allow, NULL);
  else if (!q->route->verb)
    return false;
  else {
    struct sw_job job = {.arena = q->arena};
    sw_options_init(&q->options);
    MHD_get_connection_values(q->connection, MHD_GET_ARGUMENT_KIND, take_option, &(struct query){q, &job});
    sw_options_settle(&q->options);
    const char *length = MHD_lookup_connection_value(q->connection, MHD_HEADER_KIND, "Content-Length");
    const char *accept = MHD_lookup_connection_value(q->connection, MHD_HEADER_KIND, "Accept");
    q->wants_zip = accept && strstr(accept, "application/zip");
    q->work.verb = q->route->verb;
    char detail[160];
    if (job.worst != SW_OK) {
      *answered = send_problem(q, 400, "usage", job.faults.v[0].detail, &job);
    } else if (!media_type_accepted(q)) {
      *answered = send_problem(q, 415, "media-type",
                               "application/zip, application/octet-stream (.pt2), application/json (program) or "
                               "text/plain (text graph) expected",
                               NULL);
    } else if (length && strtoull(length, NULL, 10) > (uint64_t)q->server->limits.body_mb << 20) {
      snprintf(detail, sizeof detail, "the body has %.20s bytes, limit %" PRIu64, length,
               (uint64_t)q->server->limits.body_mb << 20);
      *answered = send_problem(q, 413, "limit", detail, NULL);
    } else {
      return false;
    }
  }
  return true;
}

/* -- one request -- */

static void request_id(struct sw_server *s, char out[17])
{
  uint64_t n = atomic_fetch_add(&s->n_requests, 1);
  snprintf(out, 17, "%08" PRIx32 "%08" PRIx32, (uint32_t)s->boot, (uint32_t)n);
}

static struct request *request_new(struct sw_server *s, struct MHD_Connection *c, const char *url, const char *method)
{
  struct request *q = calloc(1, sizeof *q);
  if (!q)
    return NULL;
  q->server = s;
  q->connection = c;
  q->fd = -1;
  q->start = now();
  q->arena = sw_arena_new(NULL, 4 << 20);
  q->path = strdup(url);
  q->method = method;
  q->digest = EVP_MD_CTX_new();
  request_id(s, q->id);
  if (!q->arena || !q->path || !q->digest || !EVP_DigestInit_ex(q->digest, EVP_sha256(), NULL)) {
    EVP_MD_CTX_free(q->digest);
    sw_arena_free(q->arena);
    free(q->path);
    free(q);
    return NULL;
  }
  return q;
}

static int body_file(void)
{
  char name[] = "/tmp/stickwright-XXXXXX";
  int fd = mkostemp(name, O_CLOEXEC);
  if (fd >= 0)
    unlink(name);
  return fd;
}

/* Takes a piece of the body; false ends the connection (too large, too slow, disk full). */
static bool take_body(struct request *q, const char *data, size_t n)
{
  q->body_bytes += n;
  if (q->body_bytes > (size_t)q->server->limits.body_mb << 20 ||
      now() - q->start > (double)q->server->limits.body_seconds)
    return false;
  if (q->fd < 0 && (q->fd = body_file()) < 0)
    return false;
  EVP_DigestUpdate(q->digest, data, n);
  while (n) {
    ssize_t put = write(q->fd, data, n);
    if (put < 0 && errno != EINTR)
      return false;
    if (put > 0) {
      data += put;
      n -= (size_t)put;
    }
  }
  return true;
}

struct step {
  struct sw_server *server;
  struct request *q;
  const char *data;
  size_t *size;
  bool first;
  enum MHD_Result result;
};

static void step(void *p)
{
  struct step *s = p;
  struct request *q = s->q;
  if (s->first) {
    s->result = MHD_YES;
    refuse_early(q, &s->result);
    return;
  }
  if (*s->size) {
    s->result = q->status || take_body(q, s->data, *s->size) ? MHD_YES : MHD_NO;
    *s->size = 0;
    return;
  }
  if (q->route->verb && !q->is_done && q->fd < 0)
    s->result = send_problem(q, 400, "usage", "the request has no body; post the model as it is", NULL);
  else
    s->result = q->route->handle(q);
}

static enum MHD_Result on_request(void *cls, struct MHD_Connection *c, const char *url, const char *method,
                                  const char *version, const char *data, size_t *size, void **state)
{
  (void)version;
  struct sw_server *server = cls;
  struct step s = {.server = server, .data = data, .size = size, .result = MHD_NO};
  if (!*state) {
    s.first = true;
    *state = request_new(server, c, url, method);
    if (!*state)
      return MHD_NO;
  }
  s.q = *state;
  if (!sw_arena_run(s.q->arena, step, &s))
    return MHD_NO; /* a request's own small budget is spent: close */
  return s.result;
}

/* One JSON line a request, without bodies. */
static void on_completed(void *cls, struct MHD_Connection *c, void **state, enum MHD_RequestTerminationCode why)
{
  (void)cls, (void)c;
  struct request *q = *state;
  if (!q)
    return;
  fprintf(stderr, "{\"request_id\":\"%s\",\"method\":\"%.8s\",\"status\":%u,\"bytes\":%zu,\"ms\":%.0f,\"ended\":%d}\n",
          q->id, q->route ? q->route->method : "-", q->status, q->body_bytes, (now() - q->start) * 1e3, (int)why);
  sw_result_put(q->done.result);
  free(q->done.problem);
  if (q->fd >= 0)
    close(q->fd);
  EVP_MD_CTX_free(q->digest);
  sw_arena_free(q->arena);
  free(q->path);
  free(q);
  *state = NULL;
}

/* -- start and stop -- */

static bool parse_address(const char *listen, struct sockaddr_storage *out, bool *loopback)
{
  const char *colon = strrchr(listen, ':');
  char host[64];
  if (!colon || colon - listen >= (long)sizeof host)
    return false;
  snprintf(host, sizeof host, "%.*s", (int)(colon - listen), listen);
  char *end;
  unsigned long port = strtoul(colon + 1, &end, 10);
  if (!colon[1] || *end || port > 65535)
    return false;
  memset(out, 0, sizeof *out);
  size_t n = strlen(host);
  if (host[0] == '[' && n > 2) {
    host[n - 1] = 0;
    struct sockaddr_in6 *a = (struct sockaddr_in6 *)out;
    a->sin6_family = AF_INET6;
    a->sin6_port = htons((uint16_t)port);
    *loopback = !strcmp(host + 1, "::1");
    return inet_pton(AF_INET6, host + 1, &a->sin6_addr) == 1;
  }
  struct sockaddr_in *a = (struct sockaddr_in *)out;
  a->sin_family = AF_INET;
  a->sin_port = htons((uint16_t)port);
  *loopback = !strncmp(host, "127.", 4);
  return inet_pton(AF_INET, host, &a->sin_addr) == 1;
}

struct sw_server *sw_server_start(const char *listen, const struct sw_limits *limits)
{
  struct sockaddr_storage address;
  struct sw_server *s = calloc(1, sizeof *s);
  if (!s)
    return NULL;
  if (!parse_address(listen, &address, &s->loopback)) {
    fprintf(stderr, "stickwrightd: --listen wants ADDRESS:PORT such as 127.0.0.1:8417 or [::1]:0, \"%s\" found\n", listen);
    free(s);
    return NULL;
  }
  s->limits = *limits;
  s->boot = (uint64_t)time(NULL) ^ (uint64_t)getpid() << 20;
  s->store = sw_store_new((size_t)limits->store_mb << 20);
  s->queue = sw_queue_new(limits);
  unsigned flags = MHD_USE_AUTO | MHD_USE_INTERNAL_POLLING_THREAD | MHD_ALLOW_SUSPEND_RESUME;
  if (address.ss_family == AF_INET6)
    flags |= MHD_USE_IPv6;
  if (s->store && s->queue)
    s->daemon = MHD_start_daemon(flags, 0, NULL, NULL, on_request, s, MHD_OPTION_SOCK_ADDR, &address,
                                 MHD_OPTION_NOTIFY_COMPLETED, on_completed, NULL, MHD_OPTION_CONNECTION_LIMIT,
                                 (unsigned)limits->connections, MHD_OPTION_CONNECTION_TIMEOUT,
                                 (unsigned)limits->idle_seconds, MHD_OPTION_END);
  if (!s->daemon) {
    fprintf(stderr, "stickwrightd: %s: can't listen: %s\n", listen, strerror(errno));
    sw_server_stop(s);
    return NULL;
  }
  s->port = MHD_get_daemon_info(s->daemon, MHD_DAEMON_INFO_BIND_PORT)->port;
  return s;
}

unsigned sw_server_port(const struct sw_server *s)
{
  return s->port;
}

void sw_server_stop(struct sw_server *s)
{
  if (!s)
    return;
  MHD_socket listening = s->daemon ? MHD_quiesce_daemon(s->daemon) : MHD_INVALID_SOCKET;
  sw_queue_stop(s->queue); /* every waiting request is answered and its connection resumed */
  if (s->daemon) {
    for (int i = 0; i < 20; i++) { /* at most 2 s for the answers to leave */
      if (!MHD_get_daemon_info(s->daemon, MHD_DAEMON_INFO_CURRENT_CONNECTIONS)->num_connections)
        break;
      nanosleep(&(struct timespec){0, 100000000}, NULL);
    }
    MHD_stop_daemon(s->daemon);
  }
  if (listening != MHD_INVALID_SOCKET)
    close(listening);
  sw_store_free(s->store);
  free(s);
}
