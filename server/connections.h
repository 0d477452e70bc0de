/* Absolute deadlines on sockets. libmicrohttpd's own timeout counts silence only, and a byte a second is no silence. */
#ifndef SW_SERVER_CONNECTIONS_H
#define SW_SERVER_CONNECTIONS_H

#include "server/limits.h"

#include <stdbool.h>

/* What a connection is doing; each phase has its own time. */
enum sw_phase { SW_PHASE_HEADERS, SW_PHASE_BODY, SW_PHASE_WORK, SW_PHASE_ANSWER, SW_PHASE_EVENTS };

struct sw_connection;
struct sw_connections;
/* The limits are borrowed. */
struct sw_connections *sw_connections_new(const struct sw_limits *limits);
void sw_connections_free(struct sw_connections *cs);

struct sw_connection *sw_connection_add(struct sw_connections *cs, int fd);
void sw_connection_remove(struct sw_connections *cs, struct sw_connection *c);
/* The connection waits for work (SW_PHASE_WORK). When its client goes away, sw_connections_tick calls gone(waiting), once, with
 * the connections' lock held, so that the connection can't leave its phase meanwhile. */
void sw_connection_waits(struct sw_connections *cs, struct sw_connection *c, void (*gone)(void *waiting), void *waiting);
void sw_connection_phase(struct sw_connections *cs, struct sw_connection *c, enum sw_phase phase);
/* Shuts down sockets whose phase has lasted too long; to be called now and then. */
void sw_connections_tick(struct sw_connections *cs);
long sw_connections_open(struct sw_connections *cs);

#endif
