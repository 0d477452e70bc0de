/* The route table, and what is decided from the headers alone. */
#include "server/server.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DEADLINE = 86400 };

#define MODELS "application/zip application/octet-stream application/json text/plain"

const struct sw_route sw_routes[] = {
    {"POST", "/compile", "compile", MODELS, sw_post_work},
    {"POST", "/compare", "compare", MODELS, sw_post_work},
    {"POST", "/solve", "solve", "application/json", sw_post_work},
    {"POST", "/place", "place", "application/json text/csv", sw_post_work},
    {"GET", "/results/{id}", NULL, NULL, sw_get_result},
    {"GET", "/results/{id}.zip", NULL, NULL, sw_get_result_zip},
    {"GET", "/results/{id}/files/{path}", NULL, NULL, sw_get_result_file},
    {"GET", "/jobs/{id}", NULL, NULL, sw_get_job},
    {"DELETE", "/jobs/{id}", NULL, NULL, sw_delete_job},
    {"GET", "/jobs/{id}/events", NULL, NULL, sw_get_job_events},
    {"POST", "/studies", "study", "application/json application/zip", sw_post_study},
    {"GET", "/studies/{id}", NULL, NULL, sw_get_study},
    {"DELETE", "/studies/{id}", NULL, NULL, sw_delete_study},
    {"GET", "/studies/{id}/events", NULL, NULL, sw_get_study_events},
    {"GET", "/studies/{id}/study.csv", NULL, NULL, sw_get_study_csv},
    {"GET", "/studies/{id}/study.json", NULL, NULL, sw_get_study_json},
    {"GET", "/studies/{id}/study.md", NULL, NULL, sw_get_study_markdown},
    {"GET", "/ops", NULL, NULL, sw_get_ops},
    {"GET", "/version", NULL, NULL, sw_get_version},
    {"GET", "/healthz", NULL, NULL, sw_get_health},
    {"GET", "/readyz", NULL, NULL, sw_get_ready},
    {"GET", "/metrics", NULL, NULL, sw_get_metrics},
    {"GET", "/openapi.yaml", NULL, NULL, sw_get_openapi},
};
const int sw_n_routes = sizeof sw_routes / sizeof sw_routes[0];

static bool is_id(char c)
{
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z');
}

/* Whether the path fits; then what stands for {id} and {path}. */
static bool path_matches(struct sw_request *q, const char *pattern)
{
  const char *s = q->path, *id = NULL, *rest = NULL;
  size_t id_len = 0;
  for (const char *p = pattern; *p; p++) {
    if (!strncmp(p, "{path}", 6)) {
      rest = s;
      s += strlen(s);
    } else if (*p == '{') {
      for (id = s; is_id(*s); s++)
        ;
      id_len = (size_t)(s - id);
    } else if (*p == *s) {
      s++;
      continue;
    } else {
      return false;
    }
    p = strchr(p, '}');
  }
  if (*s || (id && !id_len) || (rest && !*rest))
    return false;
  q->in_path[0] = id ? sw_arena_strndup(q->arena, id, id_len) : NULL;
  q->in_path[1] = rest;
  return true;
}

/* Of the headers: what is wrong with one, and how often those come that say where a body ends or who is asked. */
struct heads {
  int lengths, codings, hosts;
  const char *wrong;
};

static bool is_token(const char *s, size_t n)
{
  for (size_t i = 0; i < n; i++)
    if (!(is_id(s[i]) || (s[i] >= 'A' && s[i] <= 'Z') || (s[i] && strchr("!#$%&'*+-.^_`|~", s[i]))))
      return false;
  return n;
}

static enum MHD_Result look_at_header(void *p, enum MHD_ValueKind kind, const char *key, size_t key_len, const char *value,
                                      size_t value_len)
{
  (void)kind;
  struct heads *h = p;
  if (!is_token(key, key_len))
    h->wrong = "the name of a header has a blank or another character in it that none may have";
  else if (value_len && memchr(value, '\r', value_len))
    h->wrong = "a header has a carriage return in it";
  h->lengths += !strcasecmp(key, "Content-Length");
  h->codings += !strcasecmp(key, "Transfer-Encoding");
  h->hosts += !strcasecmp(key, "Host");
  return MHD_YES;
}

/* What libmicrohttpd lets pass, though RFC 9112 does not: NULL, or what is wrong. Where a body ends, and whom a request is for, must
 * not be a matter of taste, or a proxy before us sees other requests than we do. */
static const char *malformed(const struct sw_request *q, const struct heads *h)
{
  const char *coding = sw_header(q, "Transfer-Encoding");
  if (h->wrong)
    return h->wrong;
  if (h->lengths + h->codings > 1)
    return "the length of the body is given in more than one way";
  if (coding && (strcasecmp(coding, "chunked") || !strcmp(q->version, MHD_HTTP_VERSION_1_0)))
    return "a body comes with its Content-Length or, in HTTP/1.1, with Transfer-Encoding: chunked";
  if (!h->hosts && !strcmp(q->version, MHD_HTTP_VERSION_1_1))
    return "a request has a Host";
  return NULL;
}

/* "localhost", "[::1]" or an address 127.x.x.x, `n` characters of it. */
static bool is_loopback(const char *host, size_t n)
{
  char text[16];
  struct in_addr a;
  if ((n == 9 && !strncasecmp(host, "localhost", n)) || (n == 5 && !strncmp(host, "[::1]", n)))
    return true;
  return snprintf(text, sizeof text, "%.*s", (int)n, host) < (int)sizeof text && inet_pton(AF_INET, text, &a) == 1 &&
         ntohl(a.s_addr) >> 24 == 127;
}

/* A request to a loopback address must name a loopback host, once: else a web page could reach us through its own name. */
static bool host_allowed(const struct sw_request *q, int hosts)
{
  const char *host = sw_header(q, "Host");
  if (!q->server->loopback || !hosts)
    return hosts < 2;
  return hosts == 1 && is_loopback(host, host[0] == '[' ? strcspn(host, "]") + 1 : strcspn(host, ":"));
}

/* With a token file, everything but the probes of a supervisor needs its token. */
static bool token_allowed(const struct sw_request *q)
{
  struct sw_server *s = q->server;
  const char *given = sw_header(q, "Authorization");
  char token[sizeof s->token];
  pthread_mutex_lock(&s->token_lock);
  memcpy(token, s->token, sizeof token);
  pthread_mutex_unlock(&s->token_lock);
  if (!*token || !strcmp(q->path, "/healthz") || !strcmp(q->path, "/readyz"))
    return true;
  size_t n = strlen(token);
  return given && !strncasecmp(given, "Bearer ", 7) && strlen(given + 7) == n && !CRYPTO_memcmp(given + 7, token, n);
}

static bool word_of(const char *list, const char *word, size_t n)
{
  for (const char *s = list; *s; s += strspn(s, " ")) {
    size_t len = strcspn(s, " ");
    if (len == n && !strncasecmp(s, word, n))
      return true;
    s += len;
  }
  return false;
}

static bool media_type_accepted(const struct sw_request *q)
{
  const char *given = sw_header(q, "Content-Type");
  return !given || word_of(q->route->types, given, strcspn(given, "; "));
}

struct query {
  struct sw_request *q;
  struct sw_job job;
  struct sw_texts seen; /* names of parameters that may come once */
};

/* Text in UTF-8 without NUL, `n` bytes of it. */
static bool is_text(const char *s, size_t n)
{
  for (int len; n; s += len, n -= (size_t)len)
    if (!*s || (sw_utf8_point((const unsigned char *)s, &len) == 0xFFFD && len == 1))
      return false;
  return true;
}

static bool is_again(struct query *c, const char *name)
{
  if (sw_call_repeats(&c->q->call, name))
    return false;
  for (int i = 0; i < c->seen.n; i++)
    if (!strcmp(c->seen.v[i], name))
      return true;
  return false;
}

static void set_parameter(struct query *c, const char *name, const char *value)
{
  struct sw_request *q = c->q;
  if (sw_call_set(&c->job, &q->call, name, value) != SW_OK)
    return;
  sw_buf_printf(&q->args, "%s=%s", name, value);
  sw_buf_add(&q->args, "", 1);
}

static void set_deadline(struct query *c, const char *text)
{
  char *end;
  double s = strtod(text, &end);
  if (strspn(text, "0123456789.eE+") != strlen(text) || *text < '0' || *end || !(s >= 1 && s <= MAX_DEADLINE))
    sw_fail(&c->job, SW_USAGE, "parameter deadline: seconds from 1 to %d expected, \"%s\" found", MAX_DEADLINE, text);
  else
    c->q->seconds = s;
}

static enum MHD_Result take_parameter(void *p, enum MHD_ValueKind kind, const char *key, size_t key_len,
                                      const char *value, size_t value_len)
{
  (void)kind;
  struct query *c = p;
  value = value ? value : "";
  if (!is_text(key, key_len) || !is_text(value, value_len))
    sw_fail(&c->job, SW_USAGE, "a parameter is no text in UTF-8, or has a NUL in it");
  else if (is_again(c, key))
    sw_fail(&c->job, SW_USAGE, "parameter %s is given twice", key);
  else if (!strcmp(key, "deadline") && strcmp(c->q->route->verb, "study")) /* DELETE ends a study */
    set_deadline(c, value);
  else
    set_parameter(c, key, value);
  if (c->job.worst == SW_OK)
    *SW_PUSH(c->q->arena, &c->seen) = sw_arena_strdup(c->q->arena, key);
  return MHD_YES;
}

/* Whether the body can be what its media type says. */
bool sw_body_fits(const struct sw_request *q)
{
  static const struct {
    const char *type;
    enum sw_body_form form;
  } forms[] = {{"application/zip", SW_BODY_ARCHIVE}, {"application/json", SW_BODY_OBJECT}, {"text/", SW_BODY_OTHER}};
  const char *given = sw_header(q, "Content-Type");
  for (size_t i = 0; given && i < sizeof forms / sizeof forms[0]; i++)
    if (!strncasecmp(given, forms[i].type, strlen(forms[i].type)))
      return sw_body_form(q->body) == forms[i].form;
  return true;
}

/* The headers of work: its parameters, what the body is, and how the answer shall come. */
static bool refuse_work(struct sw_request *q, enum MHD_Result *answered)
{
  struct query c = {.q = q, .job = {.arena = q->arena}};
  const char *accept = sw_header(q, "Accept"), *prefer = sw_header(q, "Prefer");
  const char *length = sw_header(q, "Content-Length"), *encoding = sw_header(q, "Content-Encoding");
  uint64_t most = (uint64_t)q->server->limits.body_mb << 20;
  q->args.arena = q->arena;
  sw_buf_add(&q->args, q->route->verb, strlen(q->route->verb) + 1);
  sw_call_init(&q->call, q->route->verb);
  if (!media_type_accepted(q)) {
    const char *found = sw_header(q, "Content-Type");
    const char *detail = sw_arena_printf(q->arena, "Content-Type: one of %s expected, \"%.60s\" found; the body comes as it is, not as a form",
                                         q->route->types, found);
    *answered = sw_send_problem(q, 415, "media-type", detail, NULL);
    return true;
  }
  MHD_get_connection_values_n(q->connection, MHD_GET_ARGUMENT_KIND, take_parameter, &c);
  q->wants_zip = accept && strstr(accept, "application/zip");
  q->wants_job = prefer && strstr(prefer, "respond-async");
  int coding = sw_coding_of(encoding);
  if (c.job.worst != SW_OK) {
    struct sw_buf errors = {.arena = q->arena};
    sw_jw_faults(&(struct sw_jw){.out = &errors, .indent = 1, .depth = 1, .after_key = true}, &c.job);
    *answered = sw_send_problem(q, 400, "usage", c.job.faults.v[0].detail, sw_buf_text(&errors));
  } else if (coding < 0) {
    *answered = sw_send_problem(q, 415, "encoding", "a body comes as it is, or with Content-Encoding: gzip or zstd", NULL);
  } else if (length && strtoull(length, NULL, 10) > most) {
    *answered = sw_send_problem(
        q, 413, "limit", sw_arena_printf(q->arena, "the body has %.20s bytes, limit %" PRIu64, length, most), NULL);
  } else {
    q->inflater = coding ? sw_inflater_new((enum sw_coding)coding, (size_t)most, &q->server->bodies) : NULL;
    if (coding && !q->inflater)
      *answered = sw_send_problem(q, 503, "busy", "the bodies of other requests leave no room for this one", NULL);
    return coding && !q->inflater;
  }
  return true;
}

bool sw_refuse_early(struct sw_request *q, enum MHD_Result *answered)
{
  const char *method = strcmp(q->method, "HEAD") ? q->method : "GET";
  struct sw_buf allow = {.arena = q->arena};
  for (int i = 0; i < sw_n_routes; i++)
    if (path_matches(q, sw_routes[i].path)) {
      sw_buf_printf(&allow, "%s%s", allow.n ? ", " : "", sw_routes[i].method);
      if (!strcmp(sw_routes[i].method, "GET"))
        sw_buf_puts(&allow, ", HEAD");
      if (!strcmp(sw_routes[i].method, method))
        q->route = &sw_routes[i];
    }
  q->allow = sw_buf_text(&allow);
  struct heads heads = {0};
  MHD_get_connection_values_n(q->connection, MHD_HEADER_KIND, look_at_header, &heads);
  const char *wrong = malformed(q, &heads);
  if (wrong) {
    q->ends_connection = true;
    *answered = sw_send_problem(q, 400, "usage", wrong, NULL);
  } else if (q->is_crowded) {
    *answered = sw_send_problem(q, 414, "limit", "the query is too long or has too many parameters; a study takes options in its body", NULL);
  } else if (!host_allowed(q, heads.hosts)) {
    const char *why = q->server->loopback ? "this service answers to one Host: localhost, an address 127.x.x.x or [::1]" : "more than one Host";
    *answered = sw_send_problem(q, 421, "host", why, NULL);
  } else if (!token_allowed(q)) {
    *answered = sw_send_problem(q, 401, "token", "Authorization: Bearer with the service's token expected", NULL);
  } else if (!allow.n) {
    *answered = sw_send_problem(q, 404, "not-found", "there is no such path; GET /openapi.yaml lists them", NULL);
  } else if (!q->route) {
    *answered = sw_send_problem(q, 405, "method", sw_arena_printf(q->arena, "the path has %s", q->allow), NULL);
  } else if (q->route->verb && atomic_load(&q->server->stopping)) {
    *answered = sw_send_problem(q, 503, "cancelled", "the service is stopping", NULL);
  } else {
    return q->route->verb && refuse_work(q, answered);
  }
  return true;
}
