/* Studies over HTTP: graphs x profiles x solvers x options. Each run is the work of a POST /compile, with the same queue,
 * workers and store; a study adds who is next, a row a run, and the tables. Its events are
 * `state`, and `runs` with how many of how many are done. Thread-safe.
 *
 * A study is read before it is accepted, so who posts a wrong one hears of it at once. With a store, an accepted study and its
 * rows survive the daemon: the next one does what is missing. */
#ifndef SW_SERVER_STUDIES_H
#define SW_SERVER_STUDIES_H

#include "base/buf.h"
#include "server/metrics.h"
#include "server/queue.h"
#include "server/records.h"

struct sw_studies;
struct sw_studies *sw_studies_new(const struct sw_limits *limits, struct sw_queue *queue, struct sw_store *store,
                                  struct sw_disk *disk, struct sw_metrics *metrics);
/* For their events, and for who needs which body. */
struct sw_records *sw_studies_records(struct sw_studies *ss);
/* After sw_queue_halt. */
void sw_studies_free(struct sw_studies *ss);
/* Takes up the studies that had not ended when the last daemon did; how many. */
int sw_studies_resume(struct sw_studies *ss);
/* Whether it is a study's own work, whose result is for nobody else. */
bool sw_studies_owns(const struct sw_task *t);

/* One who waits to hear whether his study is accepted; valid until he was told or sw_studies_leave gave true. */
struct sw_study_asker {
  /* On any thread, without locks held. `refused` is borrowed for the call; NULL: accepted. */
  void (*told)(struct sw_study_asker *, const struct sw_outcome *refused);
  char id[SW_JOB_ID_LEN + 1];    /* of the study */
  struct sw_study_record *study; /* the rest is the studies' */
  struct sw_study_asker *next;
};

/* A new study from a body (a spec with its graphs, or an archive), which it takes over. It is accepted when a worker has read it
 * and found no fault. False when as many studies are in work as may be: then nothing was taken. */
bool sw_studies_add(struct sw_studies *ss, struct sw_body *body, struct sw_study_asker *a);
/* True when he won't be told any more: there will be no such study. */
bool sw_studies_leave(struct sw_studies *ss, struct sw_study_asker *a);

/* The study as a JSON document; false when there is none of that id. */
bool sw_studies_write(struct sw_studies *ss, const char *id, struct sw_buf *out);
/* Cancels what has not ended; false when there is no such study. */
bool sw_studies_cancel(struct sw_studies *ss, const char *id);

enum sw_studies_table { SW_STUDY_CSV, SW_STUDY_JSON, SW_STUDY_MARKDOWN, SW_STUDY_N_TABLES };
enum sw_studies_rc { SW_STUDIES_OK, SW_STUDIES_NONE, SW_STUDIES_NOT_DONE, SW_STUDIES_LOST };
/* A table of a study that is done, malloced. */
enum sw_studies_rc sw_studies_table(struct sw_studies *ss, const char *id, enum sw_studies_table which, char **text,
                                    size_t *len);

/* From here on nobody waits for anything: event streams end, no study is accepted. */
void sw_studies_hush(struct sw_studies *ss);

#endif
