/* What disk.c (the file, its transactions, results) and disk_work.c (jobs and studies) share. */
#ifndef SW_SERVER_DISK_INSIDE_H
#define SW_SERVER_DISK_INSIDE_H

#include "server/disk.h"
#include "server/sql.h"

#include <openssl/evp.h>
#include <pthread.h>

enum { SW_DISK_MAX_TOUCHED = 256 };

/* Two connections: a reader never waits for a writer. */
struct sw_disk_side {
  sqlite3 *db;
  pthread_mutex_t lock;
};

struct sw_disk {
  struct sw_disk_side reads, writes;
  char *path;
  int lock_fd; /* one daemon a store */
  size_t max_bytes;
  int64_t use; /* of the writer's, as is the next */
  struct sw_disk_state state, before; /* the latter: when the transaction began */
  /* Guarded by `quick`, which is never held while the file is waited for: a large result takes seconds to write. */
  pthread_mutex_t quick;
  char touched[SW_DISK_MAX_TOUCHED][SW_ID_LEN + 1];
  int n_touched;
  struct sw_disk_state shown; /* of the last transaction that ended */
};

/* Takes the writer's lock and begins a transaction; false when that fails. sw_disk_end(d, whether all went well) must follow
 * either way: it commits, or takes everything back. */
bool sw_disk_begin(struct sw_disk *d);
bool sw_disk_end(struct sw_disk *d, bool ok);
void sw_disk_show(struct sw_disk *d);

enum { SW_DIGEST_LEN = 32 };
void sw_disk_digest(const void *p, size_t n, unsigned char out[EVP_MAX_MD_SIZE]);
/* Whether a column has the digest of those bytes. */
bool sw_disk_digest_fits(sqlite3_stmt *st, int column, const void *p, size_t n);

#endif
