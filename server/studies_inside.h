/* What studies.c (the records, and who asks for them) and studies_run.c (the thread that does them) share. */
#ifndef SW_SERVER_STUDIES_INSIDE_H
#define SW_SERVER_STUDIES_INSIDE_H

#include "compiler/study/study.h"
#include "server/disk.h"
#include "server/studies.h"

/* A piece of work in the queue: the reading of a body, or a run. */
struct sw_study_work {
  struct sw_waiter waiter;
  struct sw_study_record *study;
  int run; /* -1: reading */
  struct sw_outcome outcome;
  struct sw_study_work *next; /* of the study's, then of the inbox */
};

struct sw_study_record {
  struct sw_study_record *newer, *older;
  struct sw_studies *all;
  char id[SW_JOB_ID_LEN + 1];
  /* guarded by the lock */
  char *name; /* of the spec, once it was read */
  enum sw_job_state state;
  unsigned status; /* of a failure, as are the next three */
  char *slug, *detail, *errors;
  int n_runs, n_done, n_compiled, starts;
  char *tables[SW_STUDY_N_TABLES]; /* without a store */
  size_t table_lens[SW_STUDY_N_TABLES];
  struct sw_events events;
  int users; /* calls in progress; not dropped while there are any, or listeners */
  /* of the thread, until the study has ended */
  struct sw_body *body;
  struct sw_arena *arena;
  struct sw_study *spec;
  struct sw_body **graphs;
  char *is_begun; /* for each run: in the queue, or done */
  int next;       /* no run before it is to be begun */
  int n_flying;
  struct sw_study_work *flying;
};

struct sw_studies {
  struct sw_limits limits;
  struct sw_queue *queue;
  struct sw_store *store;
  struct sw_disk *disk;
  struct sw_metrics *metrics;
  pthread_mutex_t lock;
  pthread_cond_t some;
  struct sw_study_record *newest, *oldest;
  long n;
  struct sw_study_work *inbox; /* work that has ended */
  double pause;                /* until then the queue is left alone */
  bool stop, has_thread;
  pthread_t thread;
};

extern const char *const sw_study_table_names[SW_STUDY_N_TABLES]; /* "study.csv", ... */

static inline bool sw_study_ended(const struct sw_study_record *s)
{
  return s->state >= SW_JOB_DONE;
}

/* -- with the lock held -- */

void sw_study_set_state(struct sw_study_record *s, enum sw_job_state state);
/* A `runs` event, when the percentage has changed by one at least. */
void sw_study_tell_runs(struct sw_study_record *s, int n_before);

/* -- without -- */

/* Writes the head down, where there is a disk. */
bool sw_study_keep(struct sw_study_record *s);
void sw_study_drop_body(struct sw_study_record *s);
/* Ends the study with a problem (strings are copied), unless it has ended. */
void sw_study_fail(struct sw_study_record *s, unsigned status, const char *slug, const char *detail, const char *errors);
/* Ended studies beyond the limit go, oldest first. */
void sw_studies_drop_old(struct sw_studies *ss);

/* The thread: argument is the struct sw_studies. */
void *sw_studies_serve(void *ss);

#endif
