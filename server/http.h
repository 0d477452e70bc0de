/* The HTTP side: routes, bodies, answers. libmicrohttpd is seen here only. Its one thread reads and writes sockets;
 * compiles wait suspended while worker threads run child processes. */
#ifndef SW_SERVER_HTTP_H
#define SW_SERVER_HTTP_H

#include "server/limits.h"

#include <stdbool.h>

struct sw_server;

/* Listens on "ADDRESS:PORT" (port 0: a free one). NULL with a message on stderr when that can't be done. */
struct sw_server *sw_server_start(const char *listen, const struct sw_limits *limits);
/* The port in use. */
unsigned sw_server_port(const struct sw_server *s);
/* Stops accepting, cancels what runs, answers what waits, frees everything. */
void sw_server_stop(struct sw_server *s);

#endif
