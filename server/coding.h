/* Content codings: bodies that come compressed, inflated piece by piece so that the limit of a body holds for what comes
 * out; and answers to clients who accept it. */
#ifndef SW_SERVER_CODING_H
#define SW_SERVER_CODING_H

#include "server/body.h"

enum sw_coding { SW_CODING_NONE, SW_CODING_GZIP, SW_CODING_ZSTD, SW_N_CODINGS };

/* Its name in headers; "identity" for none. */
const char *sw_coding_name(enum sw_coding c);
/* By a Content-Encoding header (NULL: none); -1 when it is another one, or several. */
int sw_coding_of(const char *header);
/* The one to answer with, by an Accept-Encoding header (NULL: none): the highest q, zstd before gzip. */
enum sw_coding sw_coding_accepted(const char *header);

struct sw_inflater;
/* Takes in at most `most` compressed bytes; what it needs itself counts in the budget. NULL: out of memory, or no room there. */
struct sw_inflater *sw_inflater_new(enum sw_coding c, size_t most, struct sw_budget *budget);
void sw_inflater_free(struct sw_inflater *z);
/* Inflates a piece into the body. False when it is not of that coding; *rc says what became of the body. */
bool sw_inflate(struct sw_inflater *z, const void *data, size_t n, struct sw_body *body, enum sw_body_rc *rc);
/* Whether the data ended where its end was. */
bool sw_inflater_complete(const struct sw_inflater *z);

/* Compresses; NULL when that does not make it smaller. malloced. */
char *sw_compress(enum sw_coding c, const void *data, size_t n, size_t *len);

#endif
