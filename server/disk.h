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
/* All jobs, oldest first. False when some could not be read. */
bool sw_disk_jobs(struct sw_disk *d, void (*each)(void *ctx, const struct sw_disk_job *), void *ctx);
/* Where the body of a job or study lies until that has ended; malloced. */
char *sw_disk_body_path(const struct sw_disk *d, const char *job_id);
/* Removes bodies that nobody needs: a daemon that was killed leaves some. */
void sw_disk_sweep_bodies(const struct sw_disk *d, bool (*needed)(void *ctx, const char *job_id), void *ctx);

/* A study as it is kept; strings may be NULL, where they may. */
struct sw_disk_study {
  const char *id, *state, *name, *slug, *detail, *errors;
  unsigned status;
  int runs, done, compiled;
  int starts; /* daemons that have tried since its last row */
};
/* Parts of a study: rows of runs, later its tables. Digests are checked: a part that does not match is not given out. */
struct sw_disk_part {
  const char *name;
  const void *bytes;
  size_t len;
};
/* Adds the study, or replaces what is known of it. */
bool sw_disk_study_put(struct sw_disk *d, const struct sw_disk_study *s);
/* The same, and the parts it had are replaced by these. */
bool sw_disk_study_end(struct sw_disk *d, const struct sw_disk_study *s, const struct sw_disk_part *parts, int n);
bool sw_disk_study_part(struct sw_disk *d, const char *id, const struct sw_disk_part *part);
void sw_disk_study_drop(struct sw_disk *d, const char *id);
/* The same for studies; then all parts of one. */
bool sw_disk_studies(struct sw_disk *d, void (*each)(void *ctx, const struct sw_disk_study *), void *ctx);
void sw_disk_study_parts(struct sw_disk *d, const char *id, void (*each)(void *ctx, const struct sw_disk_part *), void *ctx);
/* One part, malloced, or NULL. */
char *sw_disk_study_get(struct sw_disk *d, const char *id, const char *name, size_t *len);

#endif
