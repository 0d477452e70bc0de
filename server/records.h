/* What jobs and studies have in common: records that somebody comes back for. Each has a random name, a state, events, and once it
 * has failed the reason. The keeper (server/jobs.c, server/studies.c) puts a sw_record first into what it keeps, and says when
 * one may go.
 *
 *   queued -> running -> done | failed        cancelled: by its owner
 */
#ifndef SW_SERVER_RECORDS_H
#define SW_SERVER_RECORDS_H

#include "base/json.h"
#include "server/events.h"
#include "server/limits.h"
#include "server/worker.h"

enum { SW_JOB_ID_LEN = 32, SW_RECORD_STARTS = 3 /* daemons that may try */ };

enum sw_job_state { SW_JOB_QUEUED, SW_JOB_RUNNING, SW_JOB_DONE, SW_JOB_FAILED, SW_JOB_CANCELLED };

/* How a record stands. Its texts are set once and live as long as the record. */
struct sw_standing {
  enum sw_job_state state;
  unsigned status; /* of a failure, as are the next three */
  char *slug, *detail, *errors;
};

struct sw_record {
  /* the same from the moment it is found */
  struct sw_records *all;
  char id[SW_JOB_ID_LEN + 1];
  /* guarded by the lock of the records */
  struct sw_record *newer, *older;
  struct sw_standing is;
  struct sw_events events;
  int users;      /* calls in progress; may not go while there are any, or listeners */
  bool is_hidden; /* nobody finds it by its name yet */
};

struct sw_records {
  const struct sw_limits *limits;
  struct sw_disk *disk;  /* or NULL */
  pthread_mutex_t lock;  /* no other one of the keeper's is taken with it held; it may be taken with the queue's held */
  pthread_cond_t *freed; /* told when a record is let go of, or NULL */
  struct sw_record *newest, *oldest;
  long n;
  bool is_partial; /* the store has some that could not be read: their bodies stay */
};

void sw_records_init(struct sw_records *rs, const struct sw_limits *limits, struct sw_disk *disk);
/* False when the system has no random numbers. */
bool sw_records_random_id(char id[SW_JOB_ID_LEN + 1]);
/* A zeroed record's first steps, before it is linked. */
void sw_record_init(struct sw_record *r, struct sw_records *rs, const char *id);
/* What it owns. */
void sw_record_clear(struct sw_record *r);

static inline bool sw_record_ended(const struct sw_record *r)
{
  return r->is.state >= SW_JOB_DONE;
}

/* "queued", ... */
const char *sw_record_state_name(enum sw_job_state state);
/* As written down: what has not ended is queued, as that is what the next daemon makes of it. */
const char *sw_record_kept_state(const struct sw_record *r);
enum sw_job_state sw_record_state_of(const char *kept);

/* -- with the lock held -- */

/* Puts it into the list and tells its state. */
void sw_record_link(struct sw_record *r);
void sw_record_unlink(struct sw_record *r);
struct sw_record *sw_records_find(struct sw_records *rs, const char *id);
/* How many have not ended. */
long sw_records_open(const struct sw_records *rs);
void sw_record_set_state(struct sw_record *r, enum sw_job_state state);
/* The reason of a failure; copied. */
void sw_record_set_reason(struct sw_record *r, unsigned status, const char *slug, const char *detail, const char *errors);
/* Whether nobody is reading it. */
bool sw_record_idle(const struct sw_record *r);

/* -- without -- */

/* A record that can't go away until sw_record_release; NULL when there is none of that name. */
struct sw_record *sw_record_hold(struct sw_records *rs, const char *id);
void sw_record_release(struct sw_record *r);
/* The same while an arena is used, whose end lets go of it: writing a document may end in the middle. */
struct sw_record *sw_record_hold_in(struct sw_arena *a, struct sw_records *rs, const char *id);
struct sw_standing sw_record_standing(struct sw_record *r);
/* The member `problem` of its document. */
void sw_record_write_problem(struct sw_jw *w, const char *id, const struct sw_standing *is);

/* The body that lies beside the store until the record has ended: kept, read again, dropped. */
bool sw_record_keep_body(const struct sw_record *r, const struct sw_body *body);
struct sw_body *sw_record_load_body(const struct sw_record *r);
void sw_record_drop_body(const struct sw_record *r);
/* Whether the body of that name is of a record that has not ended. */
bool sw_records_need_body(struct sw_records *rs, const char *id);

/* -- events; for all records -- */

/* False when there is none of that name. The listener reads with sw_events_next and ends with sw_events_unlisten. */
bool sw_records_listen(struct sw_records *rs, const char *id, struct sw_listener *l);
/* To be called now and then. */
void sw_records_tick(struct sw_records *rs);
/* From here on no event stream waits for anything. */
void sw_records_end_events(struct sw_records *rs);

#endif
