/* Jobs: work that somebody comes back for. A job waits in the queue like a connection does, and remembers what happened
 * to it. Finished ones are kept, the newest `jobs` of them. Thread-safe. */
#ifndef SW_SERVER_JOBS_H
#define SW_SERVER_JOBS_H

#include "base/buf.h"
#include "server/queue.h"
#include "server/records.h"

struct sw_jobs;
struct sw_jobs *sw_jobs_new(const struct sw_limits *limits, struct sw_queue *queue, struct sw_disk *disk);
/* For their events, and for who needs which body. */
struct sw_records *sw_jobs_records(struct sw_jobs *js);
/* After sw_queue_halt. */
void sw_jobs_free(struct sw_jobs *js);
/* Puts the jobs that had not ended when the last daemon did back into the queue; how many. */
int sw_jobs_resume(struct sw_jobs *js);

enum sw_jobs_rc { SW_JOBS_OK, SW_JOBS_BUSY, SW_JOBS_NOT_KEPT };

/* A new job for the task, which it takes over, to be done within so many seconds (0: whenever). `known`: the result is there already.
 * BUSY: the queue is full, or as many jobs have not ended as are kept; NOT_KEPT: the store can't be written; then nothing was taken. */
enum sw_jobs_rc sw_jobs_add(struct sw_jobs *js, struct sw_task *t, const char *client, double seconds, bool known,
                            char id[SW_JOB_ID_LEN + 1]);

/* The job as a JSON document; false when there is none of that id. */
bool sw_jobs_write(struct sw_jobs *js, const char *id, struct sw_buf *out);
/* Cancels what has not ended; false when there is no such job. */
bool sw_jobs_cancel(struct sw_jobs *js, const char *id);

#endif
