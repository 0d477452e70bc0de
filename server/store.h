/* Finished results by content address, in memory, bounded; the least recently used go first. Thread-safe. */
#ifndef SW_SERVER_STORE_H
#define SW_SERVER_STORE_H

#include <stdbool.h>
#include <stddef.h>

enum { SW_ID_LEN = 64 }; /* hex digits of a SHA-256 */

struct sw_result_file {
  char *path; /* relative */
  char *bytes;
  size_t len;
};

/* One result: its files, result.json among them. Counted references: who takes one puts it back. */
struct sw_result {
  char id[SW_ID_LEN + 1];
  struct sw_result_file *files;
  size_t n_files, bytes;
  char *server_timing; /* value of the Server-Timing header, may be NULL */
  int references;
  struct sw_result *newer, *older; /* of the store */
};

struct sw_store;
struct sw_store *sw_store_new(size_t max_bytes); /* NULL: out of memory */
void sw_store_free(struct sw_store *s);

/* Takes over the caller's reference of `r` and gives one back: to r, or to the equal result that was there already. */
struct sw_result *sw_store_add(struct sw_store *s, struct sw_result *r);
/* A reference to the result, or NULL. */
struct sw_result *sw_store_find(struct sw_store *s, const char *id);
void sw_result_put(struct sw_result *r);

const struct sw_result_file *sw_result_find(const struct sw_result *r, const char *path);

#endif
