/* Inside the HTTP side: one request, and what the files beside http.c share. Only they see libmicrohttpd. */
#ifndef SW_SERVER_SERVER_H
#define SW_SERVER_SERVER_H

#include "server/body.h"
#include "server/call.h"
#include "server/coding.h"
#include "server/connections.h"
#include "server/jobs.h"
#include "server/metrics.h"
#include "server/queue.h"
#include "server/studies.h"

#include <microhttpd.h>
#include <pthread.h>

struct sw_server {
  struct sw_limits limits;
  struct MHD_Daemon *daemon;
  struct sw_queue *queue;
  struct sw_store *store;
  struct sw_disk *disk; /* NULL without --store */
  struct sw_jobs *jobs;
  struct sw_studies *studies;
  struct sw_metrics *metrics;
  struct sw_budget bodies;
  struct sw_connections *connections;
  pthread_mutex_t token_lock;
  char token[256]; /* "": none is asked for */
  char *aside;
  unsigned port;
  bool loopback, was_passed; /* the socket */
  MHD_socket listening; /* after sw_server_drain */
  atomic_bool stopping, ended; /* no more work is taken; nothing is watched any more */
  pthread_t watchdog;
  bool is_watched;
  atomic_int n_waiting; /* requests that wait for work, up to the end of their answers */
  atomic_uint_fast64_t n_requests;
  uint64_t boot; /* makes request ids differ between runs */
};

/* One request from its headers to its last byte. */
struct sw_request {
  struct sw_server *server;
  struct MHD_Connection *connection;
  struct sw_connection *socket;
  bool begun;
  bool ends_connection; /* after the answer */
  bool is_crowded;      /* its query is too large for libmicrohttpd, and was cut off */
  const struct sw_route *route;
  struct sw_arena *arena, *spare;
  char id[17];
  const char *method, *version;
  char *path;
  const char *allow; /* methods of the path */
  const char *in_path[2]; /* what stands for {id} and {path} */
  double start;
  unsigned status; /* as answered */
  /* body */
  struct sw_body *body;
  struct sw_inflater *inflater; /* of a compressed one */
  enum { SW_BODY_TAKEN, SW_BODY_MISCODED, SW_BODY_INFLATED, SW_BODY_CROWDED, SW_BODY_UNWRITTEN } refusal; /* the rest is read and dropped */
  /* work */
  struct sw_call call;
  struct sw_buf args; /* verb and NAME=VALUE..., for the child */
  char result_id[SW_ID_LEN + 1];
  double seconds; /* deadline; 0: none */
  bool wants_zip, wants_job;
  struct sw_waiter waiter;
  struct sw_study_asker asker;
  struct sw_outcome done; /* empty when a study was accepted */
  bool is_done, has_waited, has_gone;
};

typedef enum MHD_Result sw_handler(struct sw_request *q);

/* A route. In its path, as in the OpenAPI document, {id} stands for letters and digits, {path} for all that follows. */
struct sw_route {
  const char *method, *path;
  const char *verb, *types; /* of a worker; media types of the body, separated by blanks */
  sw_handler *handle;
};
extern const struct sw_route sw_routes[];
extern const int sw_n_routes;

/* What can be decided from the headers: true when the request was refused, and *answered is what to return. */
bool sw_refuse_early(struct sw_request *q, enum MHD_Result *answered);

bool sw_body_fits(const struct sw_request *q);

/* -- answers -- */

const char *sw_header(const struct sw_request *q, const char *name); /* of the request, or NULL */
enum MHD_Result sw_send(struct sw_request *q, unsigned status, struct MHD_Response *r);
/* Copies the text. */
enum MHD_Result sw_send_text(struct sw_request *q, unsigned status, const char *type, const char *text, size_t len);
enum MHD_Result sw_send_problem(struct sw_request *q, unsigned status, const char *slug, const char *detail,
                                const char *errors);
/* The problem that work came to. */
enum MHD_Result sw_send_outcome(struct sw_request *q);
/* The events of what {id} names; false when none of the records has that name. */
bool sw_send_events(struct sw_request *q, struct sw_records *of, enum MHD_Result *answered);
enum MHD_Result sw_send_result(struct sw_request *q, struct sw_result *r, const char *path, bool created);

/* -- waiting: the handler is called again when is_done or has_gone -- */

/* Suspends the connection; to be called before anything can wake it. */
void sw_wait(struct sw_request *q);
/* The end of it, on any thread: an outcome to copy, or NULL for success without one. */
void sw_wake(struct sw_request *q, const struct sw_outcome *o);
/* It comes to nothing, and 503: a suspended connection can't be answered at once. */
void sw_wake_refused(struct sw_request *q, const char *slug, const char *detail);
/* The client has gone, and nobody else will wake the request. */
void sw_wake_gone(struct sw_request *q);

/* -- handlers -- */

sw_handler sw_post_work, sw_get_result, sw_get_result_zip, sw_get_result_file, sw_get_job, sw_get_job_events,
    sw_delete_job, sw_get_ops, sw_get_version, sw_get_health, sw_get_ready, sw_get_metrics, sw_get_openapi,
    sw_post_study, sw_get_study, sw_delete_study, sw_get_study_events, sw_get_study_csv, sw_get_study_json,
    sw_get_study_markdown;

#endif
