/* Jobs: work that somebody comes back for. A job waits in the queue like a connection does, and remembers what happened
 * to it. Finished ones are kept, the newest `jobs` of them. Thread-safe.
 *
 *   queued -> running -> done | failed        cancelled: by its owner
 */
#ifndef SW_SERVER_JOBS_H
#define SW_SERVER_JOBS_H

#include "base/buf.h"
#include "server/events.h"
#include "server/queue.h"

enum { SW_JOB_ID_LEN = 32 };

enum sw_job_state { SW_JOB_QUEUED, SW_JOB_RUNNING, SW_JOB_DONE, SW_JOB_FAILED, SW_JOB_CANCELLED };

/* False when the system has no random numbers. */
bool sw_jobs_random_id(char id[SW_JOB_ID_LEN + 1]);

struct sw_jobs;
struct sw_jobs *sw_jobs_new(const struct sw_limits *limits, struct sw_queue *queue, struct sw_disk *disk);
/* After sw_queue_halt. */
void sw_jobs_free(struct sw_jobs *js);
/* Puts the jobs that had not ended when the last daemon did back into the queue; how many. */
int sw_jobs_resume(struct sw_jobs *js);
/* Whether the body of that name in the store is of a job that has not ended. */
bool sw_jobs_need_body(struct sw_jobs *js, const char *id);

enum sw_jobs_rc { SW_JOBS_OK, SW_JOBS_BUSY, SW_JOBS_NOT_KEPT };

/* A new job for the task, which it takes over, to be done within so many seconds (0: whenever). `known`: the result is there already.
 * BUSY: the queue is full, or as many jobs have not ended as are kept; NOT_KEPT: the store can't be written; then nothing was taken. */
enum sw_jobs_rc sw_jobs_add(struct sw_jobs *js, struct sw_task *t, const char *client, double seconds, bool known,
                 char id[SW_JOB_ID_LEN + 1]);

/* The job as a JSON document; false when there is none of that id. */
bool sw_jobs_write(struct sw_jobs *js, const char *id, struct sw_buf *out);
/* Cancels what has not ended; the state behind it, or -1 when there is no such job. */
int sw_jobs_cancel(struct sw_jobs *js, const char *id);

/* -- events -- */

/* False when there is no such job. The listener reads with sw_events_next and ends with sw_events_unlisten. */
bool sw_jobs_listen(void *jobs, const char *id, struct sw_listener *l);
/* To be called now and then. */
void sw_jobs_tick(struct sw_jobs *js);
/* From here on no event stream waits for anything. */
void sw_jobs_hush(struct sw_jobs *js);

#endif
