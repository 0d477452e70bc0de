/* The HTTP side: routes, bodies, answers. libmicrohttpd's one thread reads and writes sockets; work waits suspended
 * while worker threads run child processes. */
#ifndef SW_SERVER_HTTP_H
#define SW_SERVER_HTTP_H

#include "base/buf.h"
#include "server/limits.h"

#include <stdbool.h>

struct sw_server;

struct sw_server_settings {
  const char *listen;     /* "ADDRESS:PORT", port 0: a free one */
  const char *store;      /* file of the store, or NULL: results and jobs are in memory only */
  const char *aside;      /* directory for notes on workers that died, or NULL */
  const char *token;      /* what a bearer token must be, or NULL */
  int socket;             /* one that listens already, or -1 */
  struct sw_limits limits;
};

/* NULL with a message on stderr when that can't be done. */
struct sw_server *sw_server_start(const struct sw_server_settings *settings);
/* The port in use. */
unsigned sw_server_port(const struct sw_server *s);
/* Takes over token and limits from new settings; those of threads and sockets (workers, connections, address_connections,
 * idle_seconds, cache_mb, store_mb) stay as they were. */
void sw_server_reload(struct sw_server *s, const struct sw_server_settings *settings);
const struct sw_limits *sw_server_limits(const struct sw_server *s);
/* Accepts no more connections and no more work; what is there goes on. */
void sw_server_drain(struct sw_server *s);
/* Whether nothing would be lost: nobody waits for work, and jobs are in a store or at their end. */
bool sw_server_idle(struct sw_server *s);
/* Stops accepting, cancels what runs, answers what waits, frees everything. */
void sw_server_stop(struct sw_server *s);

/* One line a route: METHOD PATH. */
void sw_server_routes(struct sw_buf *out);

#endif
