/* Finished results by content address. The most recently used ones are in memory, bounded; with a disk (server/disk.h)
 * behind it all of them are there too. Thread-safe. */
#ifndef SW_SERVER_STORE_H
#define SW_SERVER_STORE_H

#include "server/coding.h"

#include <stdbool.h>
#include <stddef.h>

enum { SW_ID_LEN = 64 }; /* hex digits of a SHA-256 */

struct sw_result_file {
  char *path; /* relative */
  char *bytes; /* a NUL behind the last one */
  size_t len;
  struct sw_coded {
    char *bytes;
    size_t len;
    bool tried;
  } coded[SW_N_CODINGS]; /* the same compressed, made when first asked for; NULL until then */
};

/* One result: its files, result.json among them. Counted references: who takes one puts it back. */
struct sw_result {
  char id[SW_ID_LEN + 1];
  struct sw_result_file *files;
  size_t n_files, bytes;
  char *server_timing; /* value of the Server-Timing header, may be NULL */
  int references;
  double touched; /* when the disk was last told of its use */
  struct sw_result *newer, *older, *chain; /* of the store */
};

struct sw_result *sw_result_new(const char *id); /* NULL: out of memory */
/* Copies path and bytes; false when memory is short. */
bool sw_result_add_file(struct sw_result *r, const char *path, const void *bytes, size_t len);
const struct sw_result_file *sw_result_find(const struct sw_result *r, const char *path);
void sw_result_take(struct sw_result *r);
void sw_result_put(struct sw_result *r);
/* The file compressed, made the first time; NULL when that is no smaller. For the HTTP thread only. */
const char *sw_result_coded(const struct sw_result_file *f, enum sw_coding c, size_t *len);

struct sw_disk;
struct sw_store;
/* `disk` may be NULL. NULL: out of memory. */
struct sw_store *sw_store_new(size_t max_bytes, struct sw_disk *disk);
void sw_store_free(struct sw_store *s);

/* Takes over the caller's reference of `r` and gives one back: to r, or to the equal result that was there already. */
struct sw_result *sw_store_add(struct sw_store *s, struct sw_result *r);
/* A reference to the result, or NULL. */
struct sw_result *sw_store_find(struct sw_store *s, const char *id);
size_t sw_store_bytes(const struct sw_store *s);

#endif
