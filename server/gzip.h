/* gzip on the wire: bodies that come compressed, inflated piece by piece so that the limit of a body holds for what
 * comes out; and answers to clients who accept it. */
#ifndef SW_SERVER_GZIP_H
#define SW_SERVER_GZIP_H

#include "server/body.h"
#include "server/store.h"

struct sw_inflater;
struct sw_inflater *sw_inflater_new(void); /* NULL: out of memory */
void sw_inflater_free(struct sw_inflater *z);
/* Inflates a piece into the body. False when it is no gzip data; *rc says what became of the body. */
bool sw_inflate(struct sw_inflater *z, const void *data, size_t n, struct sw_body *body, enum sw_body_rc *rc);
/* Whether the data ended where its end was. */
bool sw_inflater_complete(const struct sw_inflater *z);

/* Compresses; NULL when that does not make it smaller. malloced. */
char *sw_gzip(const void *data, size_t n, size_t *len);

#endif
