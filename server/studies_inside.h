/* What studies.c (the records, and who asks for them), studies_run.c (the thread that does them) and studies_read.c (its first
 * step) share. */
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

/* How far a study is. */
struct sw_study_progress {
  char *name; /* of the spec, once it was read; set once */
  int n_runs, n_done, n_compiled;
};

struct sw_study_record {
  struct sw_record r; /* hidden until it is accepted */
  struct sw_studies *all;
  /* guarded by the lock of the studies */
  struct sw_study_progress is;
  int starts;
  char *tables[SW_STUDY_N_TABLES]; /* without a store */
  size_t table_lens[SW_STUDY_N_TABLES];
  struct sw_study_asker *asker; /* until he was told */
  struct sw_study_work *flying; /* in the queue */
  int n_flying;                 /* the same, and those in the inbox */
  /* of the thread; once the study has ended, NULL and 0 */
  struct sw_body *body;
  struct sw_arena *arena;
  struct sw_study *spec;
  struct sw_body **graphs;
  char *is_begun; /* for each run: in the queue, or done */
  int next;       /* no run before it is to be begun */
};

struct sw_studies {
  struct sw_records records;
  struct sw_queue *queue;
  struct sw_store *store;
  struct sw_metrics *metrics;
  pthread_cond_t some;
  struct sw_study_work *inbox; /* work that has ended */
  bool is_closed, stop;        /* no study is accepted any more; the thread ends */
  double pause;                /* of the thread: until then the queue is left alone */
  pthread_t thread;
  bool has_thread;
};

extern const char *const sw_study_table_names[SW_STUDY_N_TABLES]; /* "study.csv", ... */

static inline struct sw_study_record *sw_study_of(struct sw_record *r)
{
  return (struct sw_study_record *)(void *)r;
}

static inline bool sw_study_accepted(const struct sw_study_record *s)
{
  return !s->r.is_hidden;
}

/* -- with the lock held -- */

/* A `runs` event, when the percentage has changed by one at least. */
void sw_study_tell_runs(struct sw_study_record *s, int n_before);

/* -- without -- */

/* Writes the head down, where there is a disk. */
bool sw_study_keep(struct sw_study_record *s);
/* Ends the study with a problem (strings are copied), unless it has ended. One that was not accepted yet is refused with it. */
void sw_study_fail(struct sw_study_record *s, unsigned status, const char *slug, const char *detail, const char *errors);
void sw_study_too_large(struct sw_study_record *s);
/* Accepts the study that was read, if somebody still asks; from then on it survives. */
void sw_study_accept(struct sw_study_record *s);
/* Ended studies beyond the limit go, oldest first, and those that were not accepted. */
void sw_studies_drop_old(struct sw_studies *ss);

/* -- the thread -- */

/* One step in an arena: what it needs, and whether it went well. */
struct sw_study_step {
  struct sw_study_record *s;
  struct sw_job job;
  struct sw_result *result;
  int run;
  bool ok;
};

/* Puts a task of the study into the queue, which takes it over; false when the queue is full or memory is short. */
bool sw_study_fly(struct sw_study_record *s, struct sw_task *t, int run);
/* Has a worker read the body; false as above. */
bool sw_study_begin_reading(struct sw_study_record *s);
/* What the worker made of it: the study can run, or ends. */
void sw_study_take_reading(struct sw_study_record *s, const struct sw_outcome *o);
/* The arguments of a run for a worker, and the address of its result. */
bool sw_study_address(struct sw_study_record *s, int run, struct sw_buf *args, char address[SW_ID_LEN + 1]);

/* The thread itself; its argument is the struct sw_studies. */
void *sw_studies_serve(void *ss);

#endif
