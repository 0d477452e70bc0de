/* The store's file: an SQLite database in WAL mode with results, their files, and jobs. Every change is one transaction,
 * so a daemon that is killed at any moment leaves a whole store behind. Thread-safe. */
#ifndef SW_SERVER_DISK_H
#define SW_SERVER_DISK_H

#include "server/worker.h"

struct sw_disk;
/* Opens or makes the file. NULL with a message on stderr when that can't be done. */
struct sw_disk *sw_disk_open(const char *path, size_t max_bytes);
void sw_disk_close(struct sw_disk *d);

/* Keeps a result; the least recently used ones go when the limit is passed. False when it was not kept. */
bool sw_disk_put(struct sw_disk *d, const struct sw_result *r);
/* A new result with one reference, or NULL. Digests are checked: what does not match is dropped and not given out. */
struct sw_result *sw_disk_get(struct sw_disk *d, const char *id);
/* The result was used now; written down with the next change. */
void sw_disk_touch(struct sw_disk *d, const char *id);

struct sw_disk_state {
  long results, bytes, damaged, failed_writes;
};
struct sw_disk_state sw_disk_state(struct sw_disk *d);

/* A job as it is kept; strings may be NULL. */
struct sw_disk_job {
  const char *id, *address, *state, *slug, *detail, *errors;
  unsigned status;
  const char *args;
  size_t args_len;
  int starts; /* daemons that have tried */
};
/* Adds the job, or replaces what is known of it. */
bool sw_disk_job_put(struct sw_disk *d, const struct sw_disk_job *j);
void sw_disk_job_drop(struct sw_disk *d, const char *id);
/* All jobs, oldest first. */
void sw_disk_jobs(struct sw_disk *d, void (*each)(void *ctx, const struct sw_disk_job *), void *ctx);
/* Where a job's body lies until the job has ended; malloced. */
char *sw_disk_body_path(const struct sw_disk *d, const char *job_id);
/* Removes bodies that nobody needs: a daemon that was killed leaves some. */
void sw_disk_sweep_bodies(const struct sw_disk *d, bool (*needed)(void *ctx, const char *job_id), void *ctx);

#endif
