/* The body of a request: in memory while it is small, in an unlinked file beyond, digested as it comes. */
#ifndef SW_SERVER_BODY_H
#define SW_SERVER_BODY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

enum { SW_BODY_IN_MEMORY = 256 << 10 };

/* What all bodies together may take: each is small enough, and a thousand of them fill a disk. */
struct sw_budget {
  const _Atomic long *most_mb;
  atomic_size_t used;
};
/* False when there is no such room left; then nothing was taken. */
bool sw_budget_take(struct sw_budget *b, size_t n);
void sw_budget_give(struct sw_budget *b, size_t n);

struct sw_body;

/* `budget` may be NULL: this body does not count. NULL: out of memory. */
struct sw_body *sw_body_new(size_t most, struct sw_budget *budget);
void sw_body_free(struct sw_body *b);

/* NO_ROOM: in the budget. IO: memory is short, or the file can't be written. */
enum sw_body_rc { SW_BODY_OK, SW_BODY_TOO_LARGE, SW_BODY_NO_ROOM, SW_BODY_IO };
enum sw_body_rc sw_body_add(struct sw_body *b, const void *data, size_t n);
/* What the body looks like from its first bytes: an archive, a JSON object, or anything else. */
enum sw_body_form { SW_BODY_ARCHIVE, SW_BODY_OBJECT, SW_BODY_OTHER };
enum sw_body_form sw_body_form(const struct sw_body *b);
size_t sw_body_bytes(const struct sw_body *b);

/* Hex SHA-256 of the body and then `text`; false: out of memory. */
bool sw_body_digest(const struct sw_body *b, const char *text, size_t len, char out[65]);

/* A descriptor of the caller's own that reads the body from its start; -1 when that fails. */
int sw_body_open(const struct sw_body *b);

/* The same bytes as a body of its own that does not count, without copying what is in a file; NULL: out of memory. */
struct sw_body *sw_body_again(const struct sw_body *b);

/* Writes the body to a new file. */
bool sw_body_save(const struct sw_body *b, const char *path);
/* The same with its digest behind it, and back again; NULL when the file is not there or not whole. */
bool sw_body_keep(const struct sw_body *b, const char *path);
struct sw_body *sw_body_load(const char *path); /* of any size: it was accepted once */

#endif
