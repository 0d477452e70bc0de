/* The records of studies: adding, asking, cancelling, and what the last daemon left. */
#include "server/studies_inside.h"

#include "server/clock.h"
#include "server/problem.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_STARTS = 3 };

static const char *const states[] = {"queued", "running", "done", "failed", "cancelled"};
const char *const sw_study_table_names[] = {"study.csv", "study.json", "study.md"};

struct sw_studies *sw_studies_new(const struct sw_limits *limits, struct sw_queue *queue, struct sw_store *store,
                                  struct sw_disk *disk, struct sw_metrics *metrics)
{
  struct sw_studies *ss = calloc(1, sizeof *ss);
  if (!ss)
    return NULL;
  *ss = (struct sw_studies){.limits = *limits, .queue = queue, .store = store, .disk = disk, .metrics = metrics};
  pthread_condattr_t monotonic; /* sw_now()'s clock */
  pthread_condattr_init(&monotonic);
  pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
  pthread_cond_init(&ss->some, &monotonic);
  pthread_condattr_destroy(&monotonic);
  pthread_mutex_init(&ss->lock, NULL);
  ss->has_thread = !pthread_create(&ss->thread, NULL, sw_studies_serve, ss);
  if (ss->has_thread)
    return ss;
  sw_studies_free(ss);
  return NULL;
}

static void free_record(struct sw_study_record *s)
{
  free(s->name);
  free(s->slug);
  free(s->detail);
  free(s->errors);
  for (int i = 0; i < SW_STUDY_N_TABLES; i++)
    free(s->tables[i]);
  sw_events_clear(&s->events);
  sw_body_free(s->body);
  free(s);
}

void sw_studies_free(struct sw_studies *ss)
{
  if (!ss)
    return;
  pthread_mutex_lock(&ss->lock);
  ss->stop = true;
  pthread_cond_signal(&ss->some);
  pthread_mutex_unlock(&ss->lock);
  if (ss->has_thread)
    pthread_join(ss->thread, NULL);
  while (ss->newest) {
    struct sw_study_record *s = ss->newest;
    ss->newest = s->older;
    free_record(s);
  }
  pthread_mutex_destroy(&ss->lock);
  pthread_cond_destroy(&ss->some);
  free(ss);
}

static struct sw_study_record *find_locked(struct sw_studies *ss, const char *id)
{
  struct sw_study_record *s = ss->newest;
  while (s && strcmp(s->id, id))
    s = s->older;
  return s;
}

static void unlink_locked(struct sw_studies *ss, struct sw_study_record *s)
{
  *(s->newer ? &s->newer->older : &ss->newest) = s->older;
  *(s->older ? &s->older->newer : &ss->oldest) = s->newer;
  ss->n--;
}

void sw_study_set_state(struct sw_study_record *s, enum sw_job_state state)
{
  char data[40];
  s->state = state;
  snprintf(data, sizeof data, "{\"state\":\"%s\"}", states[state]);
  sw_events_add(&s->events, "state", data, sw_study_ended(s));
}

void sw_study_tell_runs(struct sw_study_record *s, int n_before)
{
  char data[80];
  int64_t all = s->n_runs ? s->n_runs : 1;
  if (n_before >= 0 && 100 * (int64_t)n_before / all == 100 * (int64_t)s->n_done / all)
    return;
  snprintf(data, sizeof data, "{\"done\":%d,\"total\":%d}", s->n_done, s->n_runs);
  sw_events_add(&s->events, "runs", data, false);
}

/* A state that is not its last is written down as queued: that is what the next daemon makes of it. */
static struct sw_disk_study head_of(const struct sw_study_record *s)
{
  return (struct sw_disk_study){s->id, states[sw_study_ended(s) ? s->state : SW_JOB_QUEUED], s->name, s->slug, s->detail,
                                s->errors, s->status, s->n_runs, s->n_done, s->n_compiled, s->starts};
}

bool sw_study_keep(struct sw_study_record *s)
{
  struct sw_studies *ss = s->all;
  if (!ss->disk)
    return true;
  pthread_mutex_lock(&ss->lock);
  struct sw_disk_study head = head_of(s); /* its texts are set once */
  bool has_ended = sw_study_ended(s);
  pthread_mutex_unlock(&ss->lock);
  return has_ended ? sw_disk_study_end(ss->disk, &head, NULL, 0) : sw_disk_study_put(ss->disk, &head);
}

void sw_study_drop_body(struct sw_study_record *s)
{
  char *path = s->all->disk ? sw_disk_body_path(s->all->disk, s->id) : NULL;
  if (path)
    unlink(path);
  free(path);
}

static char *copy_text(const char *s)
{
  return s ? strdup(s) : NULL;
}

void sw_study_fail(struct sw_study_record *s, unsigned status, const char *slug, const char *detail, const char *errors)
{
  pthread_mutex_lock(&s->all->lock);
  bool is_first = !sw_study_ended(s);
  if (is_first) {
    s->status = status;
    s->slug = copy_text(slug);
    s->detail = copy_text(detail);
    s->errors = copy_text(errors);
    sw_study_set_state(s, SW_JOB_FAILED);
  }
  pthread_mutex_unlock(&s->all->lock);
  if (is_first && sw_study_keep(s))
    sw_study_drop_body(s);
}

/* Of the thread: it has let go of what it drops. */
void sw_studies_drop_old(struct sw_studies *ss)
{
  for (;;) {
    pthread_mutex_lock(&ss->lock);
    struct sw_study_record *s = ss->n > ss->limits.studies ? ss->oldest : NULL;
    while (s && (!sw_study_ended(s) || s->users || s->events.listeners || s->n_flying || s->arena || s->body))
      s = s->newer;
    if (s)
      unlink_locked(ss, s);
    pthread_mutex_unlock(&ss->lock);
    if (!s)
      return;
    if (ss->disk)
      sw_disk_study_drop(ss->disk, s->id);
    free_record(s);
  }
}

/* -- adding -- */

static struct sw_study_record *new_record(struct sw_studies *ss, const char *id)
{
  struct sw_study_record *s = calloc(1, sizeof *s);
  if (!s)
    return NULL;
  s->all = ss;
  s->events.lock = &ss->lock;
  memcpy(s->id, id, SW_JOB_ID_LEN);
  return s;
}

static void link_record(struct sw_studies *ss, struct sw_study_record *s)
{
  pthread_mutex_lock(&ss->lock);
  s->older = ss->newest;
  *(ss->newest ? &ss->newest->newer : &ss->oldest) = s;
  ss->newest = s;
  ss->n++;
  sw_study_set_state(s, s->state);
  pthread_cond_signal(&ss->some);
  pthread_mutex_unlock(&ss->lock);
}

/* As many studies that have not ended as are kept at all: no more. */
static bool is_full(struct sw_studies *ss)
{
  long n = 0;
  pthread_mutex_lock(&ss->lock);
  for (const struct sw_study_record *s = ss->newest; s; s = s->older)
    n += !sw_study_ended(s);
  bool stop = ss->stop;
  pthread_mutex_unlock(&ss->lock);
  return stop || n >= ss->limits.studies;
}

enum sw_jobs_rc sw_studies_add(struct sw_studies *ss, struct sw_body *body, char id[SW_JOB_ID_LEN + 1])
{
  struct sw_study_record *s = is_full(ss) || !sw_jobs_random_id(id) ? NULL : new_record(ss, id);
  if (!s)
    return SW_JOBS_BUSY;
  s->starts = 1;
  char *path = ss->disk ? sw_disk_body_path(ss->disk, s->id) : NULL;
  bool ok = !ss->disk || (path && sw_body_save(body, path) && sw_study_keep(s));
  free(path);
  if (!ok) {
    sw_study_drop_body(s);
    free_record(s);
    return SW_JOBS_NOT_KEPT;
  }
  s->body = body;
  link_record(ss, s);
  return SW_JOBS_OK;
}

/* -- what the last daemon left -- */

static void load(void *ctx, const struct sw_disk_study *row)
{
  struct sw_studies *ss = ctx;
  struct sw_study_record *s = strlen(row->id) == SW_JOB_ID_LEN ? new_record(ss, row->id) : NULL;
  if (!s)
    return;
  for (int i = SW_JOB_DONE; i <= SW_JOB_CANCELLED; i++)
    if (!strcmp(row->state, states[i]))
      s->state = (enum sw_job_state)i;
  s->name = copy_text(row->name);
  s->slug = copy_text(row->slug);
  s->detail = copy_text(row->detail);
  s->errors = copy_text(row->errors);
  s->status = row->status;
  s->n_runs = row->runs;
  s->n_done = row->done;
  s->n_compiled = row->compiled;
  s->starts = row->starts + 1;
  s->users = 1; /* until it is known whether it goes on */
  link_record(ss, s);
}

/* Goes on with it; or the honest reason why not. */
static bool take_up(struct sw_studies *ss, struct sw_study_record *s)
{
  char *path = sw_disk_body_path(ss->disk, s->id);
  struct sw_body *body = path ? sw_body_load(path, (size_t)ss->limits.body_mb << 20) : NULL;
  free(path);
  if (s->starts > MAX_STARTS)
    sw_study_fail(s, 500, "internal", "the service ended three times while this study was running", NULL);
  else if (!body)
    sw_study_fail(s, 500, "internal", "the service ended, and the body of this study is lost", NULL);
  pthread_mutex_lock(&ss->lock);
  bool goes_on = !sw_study_ended(s);
  if (goes_on)
    s->body = body;
  pthread_mutex_unlock(&ss->lock);
  if (goes_on)
    sw_study_keep(s);
  else
    sw_body_free(body);
  return goes_on;
}

int sw_studies_resume(struct sw_studies *ss)
{
  int n = 0;
  if (!ss->disk)
    return 0;
  sw_disk_studies(ss->disk, load, ss);
  for (struct sw_study_record *s = ss->oldest, *next; s; s = next) { /* nobody else adds or drops yet */
    next = s->newer;
    if (!sw_study_ended(s))
      n += take_up(ss, s);
    pthread_mutex_lock(&ss->lock);
    s->users--;
    pthread_cond_signal(&ss->some);
    pthread_mutex_unlock(&ss->lock);
  }
  return n;
}

bool sw_studies_need_body(struct sw_studies *ss, const char *id)
{
  pthread_mutex_lock(&ss->lock);
  const struct sw_study_record *s = find_locked(ss, id);
  bool needed = s && !sw_study_ended(s);
  pthread_mutex_unlock(&ss->lock);
  return needed;
}

/* -- asking -- */

static void write_record(const struct sw_study_record *s, struct sw_buf *out)
{
  struct sw_jw w = {.out = out, .indent = 1};
  sw_jw_object(&w);
  sw_jw_kstr(&w, "id", s->id);
  sw_jw_kstr(&w, "name", s->name);
  sw_jw_kstr(&w, "state", states[s->state]);
  sw_jw_key(&w, "runs");
  sw_jw_object(&w);
  sw_jw_kint(&w, "total", s->n_runs);
  sw_jw_kint(&w, "done", s->n_done);
  sw_jw_kint(&w, "compiled", s->n_compiled);
  sw_jw_end_object(&w);
  sw_jw_key(&w, "tables");
  sw_jw_array(&w);
  for (int i = 0; i < SW_STUDY_N_TABLES && s->state == SW_JOB_DONE; i++)
    sw_jw_str(&w, sw_arena_printf(out->arena, "/studies/%s/%s", s->id, sw_study_table_names[i]));
  sw_jw_end_array(&w);
  sw_jw_key(&w, "problem");
  if (s->state == SW_JOB_FAILED)
    sw_problem_object(&w, s->slug ? s->slug : "internal", s->status, s->detail ? s->detail : "", s->id, s->errors);
  else
    sw_jw_null(&w);
  sw_jw_end_object(&w);
  sw_buf_puts(out, "\n");
}

/* A study that can't go away until release(). */
static struct sw_study_record *hold(struct sw_studies *ss, const char *id)
{
  pthread_mutex_lock(&ss->lock);
  struct sw_study_record *s = find_locked(ss, id);
  if (s)
    s->users++;
  pthread_mutex_unlock(&ss->lock);
  return s;
}

static void release(struct sw_studies *ss, struct sw_study_record *s)
{
  pthread_mutex_lock(&ss->lock);
  s->users--;
  pthread_cond_signal(&ss->some);
  pthread_mutex_unlock(&ss->lock);
}

bool sw_studies_write(struct sw_studies *ss, const char *id, struct sw_buf *out)
{
  struct sw_study_record *s = hold(ss, id), as_of_now = {0};
  if (!s)
    return false;
  pthread_mutex_lock(&ss->lock); /* it guards all but the thread's own fields; texts are set once and live as long as the study */
  memcpy(&as_of_now, s, offsetof(struct sw_study_record, body));
  pthread_mutex_unlock(&ss->lock);
  write_record(&as_of_now, out);
  release(ss, s);
  return true;
}

bool sw_studies_cancel(struct sw_studies *ss, const char *id)
{
  struct sw_study_record *s = hold(ss, id);
  if (!s)
    return false;
  pthread_mutex_lock(&ss->lock);
  bool is_first = !sw_study_ended(s);
  if (is_first)
    sw_study_set_state(s, SW_JOB_CANCELLED);
  pthread_mutex_unlock(&ss->lock);
  if (is_first && sw_study_keep(s))
    sw_study_drop_body(s);
  release(ss, s); /* and the thread lets go of what is in the queue */
  return true;
}

enum sw_studies_rc sw_studies_table(struct sw_studies *ss, const char *id, enum sw_studies_table which, char **text,
                                    size_t *len)
{
  struct sw_study_record *s = hold(ss, id);
  if (!s)
    return SW_STUDIES_NONE;
  enum sw_studies_rc rc = SW_STUDIES_NOT_DONE;
  pthread_mutex_lock(&ss->lock);
  bool is_done = s->state == SW_JOB_DONE;
  pthread_mutex_unlock(&ss->lock);
  *text = NULL;
  if (is_done && s->tables[which]) { /* set before the state */
    *len = s->table_lens[which];
    *text = malloc(*len + 1);
    if (*text)
      memcpy(*text, s->tables[which], *len + 1);
  } else if (is_done && ss->disk) {
    *text = sw_disk_study_get(ss->disk, id, sw_study_table_names[which], len);
  }
  if (is_done)
    rc = *text ? SW_STUDIES_OK : SW_STUDIES_LOST;
  release(ss, s);
  return rc;
}

/* -- events -- */

bool sw_studies_listen(void *studies, const char *id, struct sw_listener *l)
{
  struct sw_studies *ss = studies;
  pthread_mutex_lock(&ss->lock);
  struct sw_study_record *s = find_locked(ss, id);
  if (s)
    sw_events_listen(&s->events, l);
  pthread_mutex_unlock(&ss->lock);
  return s;
}

void sw_studies_tick(struct sw_studies *ss)
{
  double now = sw_now();
  pthread_mutex_lock(&ss->lock);
  for (struct sw_study_record *s = ss->newest; s; s = s->older)
    sw_events_tick(&s->events, now);
  pthread_mutex_unlock(&ss->lock);
}

void sw_studies_hush(struct sw_studies *ss)
{
  pthread_mutex_lock(&ss->lock);
  for (struct sw_study_record *s = ss->newest; s; s = s->older)
    sw_events_end(&s->events);
  pthread_mutex_unlock(&ss->lock);
}
