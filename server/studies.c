/* The records of studies: adding, asking, cancelling, and what the last daemon left. */
#include "server/studies_inside.h"

#include "server/clock.h"
#include "server/problem.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *const sw_study_table_names[] = {"study.csv", "study.json", "study.md"};

struct sw_studies *sw_studies_new(const struct sw_limits *limits, struct sw_queue *queue, struct sw_store *store,
                                  struct sw_disk *disk, struct sw_metrics *metrics)
{
  struct sw_studies *ss = calloc(1, sizeof *ss);
  if (!ss)
    return NULL;
  *ss = (struct sw_studies){.queue = queue, .store = store, .metrics = metrics};
  sw_records_init(&ss->records, limits, disk);
  ss->records.freed = &ss->some; /* its thread looks what may go */
  pthread_condattr_t monotonic; /* sw_now()'s clock */
  pthread_condattr_init(&monotonic);
  pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
  pthread_cond_init(&ss->some, &monotonic);
  pthread_condattr_destroy(&monotonic);
  ss->has_thread = !pthread_create(&ss->thread, NULL, sw_studies_serve, ss);
  if (ss->has_thread)
    return ss;
  sw_studies_free(ss);
  return NULL;
}

struct sw_records *sw_studies_records(struct sw_studies *ss)
{
  return &ss->records;
}

static void free_record(struct sw_study_record *s)
{
  free(s->is.name);
  sw_record_clear(&s->r);
  for (int i = 0; i < SW_STUDY_N_TABLES; i++)
    free(s->tables[i]);
  sw_body_free(s->body);
  free(s);
}

void sw_studies_free(struct sw_studies *ss)
{
  if (!ss)
    return;
  pthread_mutex_lock(&ss->records.lock);
  ss->stop = true;
  pthread_cond_signal(&ss->some);
  pthread_mutex_unlock(&ss->records.lock);
  if (ss->has_thread)
    pthread_join(ss->thread, NULL);
  while (ss->records.newest) {
    struct sw_study_record *s = sw_study_of(ss->records.newest);
    ss->records.newest = s->r.older;
    free_record(s);
  }
  pthread_mutex_destroy(&ss->records.lock);
  pthread_cond_destroy(&ss->some);
  free(ss);
}

void sw_study_tell_runs(struct sw_study_record *s, int n_before)
{
  char data[80];
  int64_t all = s->is.n_runs ? s->is.n_runs : 1;
  if (n_before >= 0 && 100 * (int64_t)n_before / all == 100 * (int64_t)s->is.n_done / all)
    return;
  snprintf(data, sizeof data, "{\"done\":%d,\"total\":%d}", s->is.n_done, s->is.n_runs);
  sw_events_add(&s->r.events, "runs", data, false);
}

static struct sw_disk_study head_of(const struct sw_study_record *s)
{
  const struct sw_standing *is = &s->r.is;
  return (struct sw_disk_study){s->r.id, sw_record_kept_state(&s->r), s->is.name, is->slug, is->detail, is->errors, is->status,
                                s->is.n_runs, s->is.n_done, s->is.n_compiled, s->starts};
}

bool sw_study_keep(struct sw_study_record *s)
{
  struct sw_studies *ss = s->all;
  if (!ss->records.disk)
    return true;
  pthread_mutex_lock(&ss->records.lock);
  struct sw_disk_study head = head_of(s); /* its texts are set once */
  bool has_ended = sw_record_ended(&s->r);
  pthread_mutex_unlock(&ss->records.lock);
  return has_ended ? sw_disk_study_end(ss->records.disk, &head, NULL, 0) : sw_disk_study_put(ss->records.disk, &head);
}

/* Who still asks for the study, and is to be told now. */
static struct sw_study_asker *take_asker_locked(struct sw_study_record *s)
{
  struct sw_study_asker *a = s->asker;
  s->asker = NULL;
  if (a)
    a->study = NULL;
  return a;
}

void sw_study_fail(struct sw_study_record *s, unsigned status, const char *slug, const char *detail, const char *errors)
{
  pthread_mutex_lock(&s->all->records.lock);
  bool is_first = !sw_record_ended(&s->r);
  if (is_first) {
    sw_record_set_reason(&s->r, status, slug, detail, errors);
    sw_record_set_state(&s->r, SW_JOB_FAILED);
  }
  struct sw_study_asker *a = take_asker_locked(s);
  pthread_mutex_unlock(&s->all->records.lock);
  if (a)
    a->told(a, &(struct sw_outcome){.status = s->r.is.status, .slug = s->r.is.slug, .detail = s->r.is.detail, .errors = s->r.is.errors});
  else if (is_first && sw_study_accepted(s) && sw_study_keep(s))
    sw_record_drop_body(&s->r);
}

void sw_study_too_large(struct sw_study_record *s)
{
  char text[120];
  snprintf(text, sizeof text, "the graphs or the rows of the study need more than %ld MB", s->all->records.limits->study_mb);
  sw_study_fail(s, 413, "limit", text, NULL);
}

/* The body beside the store, then the study in it. */
static bool secure(struct sw_study_record *s)
{
  return !s->all->records.disk || (sw_record_keep_body(&s->r, s->body) && sw_study_keep(s));
}

void sw_study_accept(struct sw_study_record *s)
{
  if (sw_study_accepted(s))
    return;
  if (!secure(s)) {
    sw_study_fail(s, 503, "io", "the store can't be written, so no study can be accepted", NULL);
    return;
  }
  pthread_mutex_lock(&s->all->records.lock);
  struct sw_study_asker *a = take_asker_locked(s); /* NULL: he has left, and the study has ended */
  s->r.is_hidden = !a;
  pthread_mutex_unlock(&s->all->records.lock);
  if (a)
    a->told(a, NULL);
}

/* Of the thread: it has let go of what it drops. */
static bool may_go(const struct sw_study_record *s)
{
  return sw_record_ended(&s->r) && sw_record_idle(&s->r) && !s->n_flying && !s->arena && !s->body &&
         (!sw_study_accepted(s) || s->all->records.n > s->all->records.limits->studies);
}

void sw_studies_drop_old(struct sw_studies *ss)
{
  for (;;) {
    pthread_mutex_lock(&ss->records.lock);
    struct sw_record *r = ss->records.oldest;
    while (r && !may_go(sw_study_of(r)))
      r = r->newer;
    if (r)
      sw_record_unlink(r);
    pthread_mutex_unlock(&ss->records.lock);
    if (!r)
      return;
    if (ss->records.disk)
      sw_disk_study_drop(ss->records.disk, r->id);
    sw_record_drop_body(r); /* of one whose asker left while it was accepted */
    free_record(sw_study_of(r));
  }
}

/* -- adding -- */

static struct sw_study_record *new_record(struct sw_studies *ss, const char *id)
{
  struct sw_study_record *s = calloc(1, sizeof *s);
  if (!s)
    return NULL;
  s->all = ss;
  sw_record_init(&s->r, &ss->records, id);
  return s;
}

static void link_locked(struct sw_study_record *s)
{
  sw_record_link(&s->r);
  pthread_cond_signal(&s->all->some);
}

bool sw_studies_add(struct sw_studies *ss, struct sw_body *body, struct sw_study_asker *a)
{
  struct sw_study_record *s = sw_records_random_id(a->id) ? new_record(ss, a->id) : NULL;
  if (!s)
    return false;
  s->starts = 1;
  s->r.is_hidden = true;
  s->body = body;
  s->asker = a;
  a->study = s;
  pthread_mutex_lock(&ss->records.lock);
  /* As many studies that have not ended as are kept at all: no more. */
  bool ok = !ss->is_closed && sw_records_open(&ss->records) < ss->records.limits->studies;
  if (ok)
    link_locked(s);
  pthread_mutex_unlock(&ss->records.lock);
  if (!ok) {
    s->body = NULL;
    free_record(s);
  }
  return ok;
}

bool sw_studies_leave(struct sw_studies *ss, struct sw_study_asker *a)
{
  pthread_mutex_lock(&ss->records.lock);
  struct sw_study_record *s = a->study;
  if (s) {
    take_asker_locked(s);
    if (!sw_record_ended(&s->r))
      sw_record_set_state(&s->r, SW_JOB_CANCELLED);
    pthread_cond_signal(&ss->some);
  }
  pthread_mutex_unlock(&ss->records.lock);
  return s;
}

/* -- what the last daemon left -- */

static void load(void *ctx, const struct sw_disk_study *row)
{
  struct sw_studies *ss = ctx;
  struct sw_study_record *s = strlen(row->id) == SW_JOB_ID_LEN ? new_record(ss, row->id) : NULL;
  if (!s)
    return;
  s->r.is.state = sw_record_state_of(row->state);
  sw_record_set_reason(&s->r, row->status, row->slug, row->detail, row->errors);
  s->is = (struct sw_study_progress){row->name ? strdup(row->name) : NULL, row->runs, row->done, row->compiled};
  s->starts = row->starts + 1;
  s->r.users = 1; /* until it is known whether it goes on */
  pthread_mutex_lock(&ss->records.lock);
  link_locked(s);
  pthread_mutex_unlock(&ss->records.lock);
}

/* Goes on with it; or the honest reason why not. */
static bool take_up(struct sw_studies *ss, struct sw_study_record *s)
{
  struct sw_body *body = sw_record_load_body(&s->r);
  if (s->starts > SW_RECORD_STARTS)
    sw_study_fail(s, 500, "internal", "the service ended three times while this study was running", NULL);
  else if (!body)
    sw_study_fail(s, 500, "internal", "the service ended, and the body of this study is lost or damaged", NULL);
  pthread_mutex_lock(&ss->records.lock);
  bool goes_on = !sw_record_ended(&s->r);
  if (goes_on)
    s->body = body;
  pthread_mutex_unlock(&ss->records.lock);
  if (goes_on)
    sw_study_keep(s);
  else
    sw_body_free(body);
  return goes_on;
}

int sw_studies_resume(struct sw_studies *ss)
{
  int n = 0;
  if (!ss->records.disk)
    return 0;
  ss->records.is_partial = !sw_disk_studies(ss->records.disk, load, ss);
  for (struct sw_record *r = ss->records.oldest, *next; r; r = next) { /* nobody else adds or drops yet */
    next = r->newer;
    if (!sw_record_ended(r))
      n += take_up(ss, sw_study_of(r));
    sw_record_release(r);
  }
  return n;
}

/* -- asking -- */

static void write_record(const char *id, const struct sw_standing *stands, const struct sw_study_progress *is, struct sw_buf *out)
{
  struct sw_jw w = {.out = out, .indent = 1};
  sw_jw_object(&w);
  sw_jw_kstr(&w, "id", id);
  sw_jw_kstr(&w, "name", is->name);
  sw_jw_kstr(&w, "state", sw_record_state_name(stands->state));
  sw_jw_key(&w, "runs");
  sw_jw_object(&w);
  sw_jw_kint(&w, "total", is->n_runs);
  sw_jw_kint(&w, "done", is->n_done);
  sw_jw_kint(&w, "compiled", is->n_compiled);
  sw_jw_end_object(&w);
  sw_jw_key(&w, "tables");
  sw_jw_array(&w);
  for (int i = 0; i < SW_STUDY_N_TABLES && stands->state == SW_JOB_DONE; i++)
    sw_jw_str(&w, sw_arena_printf(out->arena, "/studies/%s/%s", id, sw_study_table_names[i]));
  sw_jw_end_array(&w);
  sw_record_write_problem(&w, id, stands);
  sw_jw_end_object(&w);
  sw_buf_puts(out, "\n");
}

bool sw_studies_write(struct sw_studies *ss, const char *id, struct sw_buf *out)
{
  struct sw_record *r = sw_record_hold_in(out->arena, &ss->records, id);
  if (!r)
    return false;
  pthread_mutex_lock(&ss->records.lock);
  struct sw_standing stands = r->is;
  struct sw_study_progress is = sw_study_of(r)->is;
  pthread_mutex_unlock(&ss->records.lock);
  write_record(r->id, &stands, &is, out);
  return true;
}

bool sw_studies_cancel(struct sw_studies *ss, const char *id)
{
  struct sw_record *r = sw_record_hold(&ss->records, id);
  if (!r)
    return false;
  pthread_mutex_lock(&ss->records.lock);
  bool is_first = !sw_record_ended(r);
  if (is_first)
    sw_record_set_state(r, SW_JOB_CANCELLED);
  pthread_mutex_unlock(&ss->records.lock);
  if (is_first && sw_study_keep(sw_study_of(r)))
    sw_record_drop_body(r);
  sw_record_release(r); /* and the thread lets go of what is in the queue */
  return true;
}

enum sw_studies_rc sw_studies_table(struct sw_studies *ss, const char *id, enum sw_studies_table which, char **text,
                                    size_t *len)
{
  struct sw_record *r = sw_record_hold(&ss->records, id);
  if (!r)
    return SW_STUDIES_NONE;
  const struct sw_study_record *s = sw_study_of(r);
  enum sw_studies_rc rc = SW_STUDIES_NOT_DONE;
  bool is_done = sw_record_standing(r).state == SW_JOB_DONE;
  *text = NULL;
  if (is_done && s->tables[which]) { /* set before the state */
    *len = s->table_lens[which];
    *text = malloc(*len + 1);
    if (*text)
      memcpy(*text, s->tables[which], *len + 1);
  } else if (is_done && ss->records.disk) {
    *text = sw_disk_study_get(ss->records.disk, id, sw_study_table_names[which], len);
  }
  if (is_done)
    rc = *text ? SW_STUDIES_OK : SW_STUDIES_LOST;
  sw_record_release(r);
  return rc;
}

/* -- the end -- */

void sw_studies_hush(struct sw_studies *ss)
{
  struct sw_study_asker *askers = NULL, *a;
  pthread_mutex_lock(&ss->records.lock);
  ss->is_closed = true;
  for (struct sw_record *r = ss->records.newest; r; r = r->older) {
    if (!(a = take_asker_locked(sw_study_of(r))))
      continue;
    sw_record_set_state(r, SW_JOB_CANCELLED);
    a->next = askers;
    askers = a;
  }
  pthread_mutex_unlock(&ss->records.lock);
  sw_records_end_events(&ss->records);
  struct sw_outcome o = {0};
  sw_outcome_problem(&o, 503, "cancelled", "the service is stopping");
  while ((a = askers)) {
    askers = a->next;
    a->told(a, &o);
  }
  sw_outcome_clear(&o);
}
