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
  *ss = (struct sw_studies){.limits = limits, .queue = queue, .store = store, .disk = disk, .metrics = metrics};
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
  free(s->is.name);
  free(s->is.slug);
  free(s->is.detail);
  free(s->is.errors);
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
  while (s && (!s->is_accepted || strcmp(s->id, id)))
    s = s->older;
  return s;
}

static void unlink_locked(struct sw_studies *ss, struct sw_study_record *s)
{
  *(s->newer ? &s->newer->older : &ss->newest) = s->older;
  *(s->older ? &s->older->newer : &ss->oldest) = s->newer;
  ss->n--;
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

static void release(struct sw_study_record *s)
{
  struct sw_studies *ss = s->all;
  pthread_mutex_lock(&ss->lock);
  s->users--;
  pthread_cond_signal(&ss->some);
  pthread_mutex_unlock(&ss->lock);
}

void sw_study_set_state(struct sw_study_record *s, enum sw_job_state state)
{
  char data[40];
  s->is.state = state;
  snprintf(data, sizeof data, "{\"state\":\"%s\"}", states[state]);
  sw_events_add(&s->events, "state", data, sw_study_ended(s));
}

void sw_study_tell_runs(struct sw_study_record *s, int n_before)
{
  char data[80];
  int64_t all = s->is.n_runs ? s->is.n_runs : 1;
  if (n_before >= 0 && 100 * (int64_t)n_before / all == 100 * (int64_t)s->is.n_done / all)
    return;
  snprintf(data, sizeof data, "{\"done\":%d,\"total\":%d}", s->is.n_done, s->is.n_runs);
  sw_events_add(&s->events, "runs", data, false);
}

/* A state that is not its last is written down as queued: that is what the next daemon makes of it. */
static struct sw_disk_study head_of(const struct sw_study_record *s)
{
  const struct sw_study_standing *is = &s->is;
  return (struct sw_disk_study){s->id, states[sw_study_ended(s) ? is->state : SW_JOB_QUEUED], is->name, is->slug, is->detail,
                                is->errors, is->status, is->n_runs, is->n_done, is->n_compiled, s->starts};
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
  pthread_mutex_lock(&s->all->lock);
  bool is_first = !sw_study_ended(s);
  if (is_first) {
    s->is.status = status;
    s->is.slug = copy_text(slug);
    s->is.detail = copy_text(detail);
    s->is.errors = copy_text(errors);
    sw_study_set_state(s, SW_JOB_FAILED);
  }
  struct sw_study_asker *a = take_asker_locked(s);
  pthread_mutex_unlock(&s->all->lock);
  if (a)
    a->told(a, &(struct sw_outcome){.status = s->is.status, .slug = s->is.slug, .detail = s->is.detail, .errors = s->is.errors});
  else if (is_first && s->is_accepted && sw_study_keep(s))
    sw_study_drop_body(s);
}

void sw_study_too_large(struct sw_study_record *s)
{
  char text[120];
  snprintf(text, sizeof text, "the graphs or the rows of the study need more than %ld MB", s->all->limits->study_mb);
  sw_study_fail(s, 413, "limit", text, NULL);
}

/* The body beside the store, then the study in it. */
static bool secure(struct sw_study_record *s)
{
  char *path = s->all->disk ? sw_disk_body_path(s->all->disk, s->id) : NULL;
  bool ok = !s->all->disk || (path && sw_body_keep(s->body, path) && sw_study_keep(s));
  free(path);
  return ok;
}

void sw_study_accept(struct sw_study_record *s)
{
  if (s->is_accepted)
    return;
  if (!secure(s)) {
    sw_study_fail(s, 503, "io", "the store can't be written, so no study can be accepted", NULL);
    return;
  }
  pthread_mutex_lock(&s->all->lock);
  struct sw_study_asker *a = take_asker_locked(s); /* NULL: he has left, and the study has ended */
  s->is_accepted = a;
  pthread_mutex_unlock(&s->all->lock);
  if (a)
    a->told(a, NULL);
}

/* Of the thread: it has let go of what it drops. */
static bool may_go(const struct sw_study_record *s)
{
  return sw_study_ended(s) && !s->users && !s->events.listeners && !s->n_flying && !s->arena && !s->body &&
         (!s->is_accepted || s->all->n > s->all->limits->studies);
}

void sw_studies_drop_old(struct sw_studies *ss)
{
  for (;;) {
    pthread_mutex_lock(&ss->lock);
    struct sw_study_record *s = ss->oldest;
    while (s && !may_go(s))
      s = s->newer;
    if (s)
      unlink_locked(ss, s);
    pthread_mutex_unlock(&ss->lock);
    if (!s)
      return;
    if (ss->disk)
      sw_disk_study_drop(ss->disk, s->id);
    sw_study_drop_body(s); /* of one whose asker left while it was accepted */
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

static void link_locked(struct sw_studies *ss, struct sw_study_record *s)
{
  s->older = ss->newest;
  *(ss->newest ? &ss->newest->newer : &ss->oldest) = s;
  ss->newest = s;
  ss->n++;
  sw_study_set_state(s, s->is.state);
  pthread_cond_signal(&ss->some);
}

/* As many studies that have not ended as are kept at all: no more. */
static bool is_full_locked(const struct sw_studies *ss)
{
  long n = 0;
  for (const struct sw_study_record *s = ss->newest; s; s = s->older)
    n += !sw_study_ended(s);
  return ss->is_closed || n >= ss->limits->studies;
}

bool sw_studies_add(struct sw_studies *ss, struct sw_body *body, struct sw_study_asker *a)
{
  struct sw_study_record *s = sw_jobs_random_id(a->id) ? new_record(ss, a->id) : NULL;
  if (!s)
    return false;
  s->starts = 1;
  s->body = body;
  s->asker = a;
  a->study = s;
  pthread_mutex_lock(&ss->lock);
  bool ok = !is_full_locked(ss);
  if (ok)
    link_locked(ss, s);
  pthread_mutex_unlock(&ss->lock);
  if (!ok) {
    s->body = NULL;
    free_record(s);
  }
  return ok;
}

bool sw_studies_leave(struct sw_studies *ss, struct sw_study_asker *a)
{
  pthread_mutex_lock(&ss->lock);
  struct sw_study_record *s = a->study;
  if (s) {
    take_asker_locked(s);
    if (!sw_study_ended(s))
      sw_study_set_state(s, SW_JOB_CANCELLED);
    pthread_cond_signal(&ss->some);
  }
  pthread_mutex_unlock(&ss->lock);
  return s;
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
      s->is.state = (enum sw_job_state)i;
  s->is.name = copy_text(row->name);
  s->is.slug = copy_text(row->slug);
  s->is.detail = copy_text(row->detail);
  s->is.errors = copy_text(row->errors);
  s->is.status = row->status;
  s->is.n_runs = row->runs;
  s->is.n_done = row->done;
  s->is.n_compiled = row->compiled;
  s->starts = row->starts + 1;
  s->is_accepted = true;
  s->users = 1; /* until it is known whether it goes on */
  pthread_mutex_lock(&ss->lock);
  link_locked(ss, s);
  pthread_mutex_unlock(&ss->lock);
}

/* Goes on with it; or the honest reason why not. */
static bool take_up(struct sw_studies *ss, struct sw_study_record *s)
{
  char *path = sw_disk_body_path(ss->disk, s->id);
  struct sw_body *body = path ? sw_body_load(path, (size_t)ss->limits->body_mb << 20) : NULL;
  free(path);
  if (s->starts > MAX_STARTS)
    sw_study_fail(s, 500, "internal", "the service ended three times while this study was running", NULL);
  else if (!body)
    sw_study_fail(s, 500, "internal", "the service ended, and the body of this study is lost or damaged", NULL);
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
  ss->is_partial = !sw_disk_studies(ss->disk, load, ss);
  for (struct sw_study_record *s = ss->oldest, *next; s; s = next) { /* nobody else adds or drops yet */
    next = s->newer;
    if (!sw_study_ended(s))
      n += take_up(ss, s);
    release(s);
  }
  return n;
}

bool sw_studies_need_body(struct sw_studies *ss, const char *id)
{
  pthread_mutex_lock(&ss->lock);
  const struct sw_study_record *s = find_locked(ss, id);
  bool needed = ss->is_partial || (s && !sw_study_ended(s));
  pthread_mutex_unlock(&ss->lock);
  return needed;
}

/* -- asking -- */

static void write_record(const char *id, const struct sw_study_standing *is, struct sw_buf *out)
{
  struct sw_jw w = {.out = out, .indent = 1};
  sw_jw_object(&w);
  sw_jw_kstr(&w, "id", id);
  sw_jw_kstr(&w, "name", is->name);
  sw_jw_kstr(&w, "state", states[is->state]);
  sw_jw_key(&w, "runs");
  sw_jw_object(&w);
  sw_jw_kint(&w, "total", is->n_runs);
  sw_jw_kint(&w, "done", is->n_done);
  sw_jw_kint(&w, "compiled", is->n_compiled);
  sw_jw_end_object(&w);
  sw_jw_key(&w, "tables");
  sw_jw_array(&w);
  for (int i = 0; i < SW_STUDY_N_TABLES && is->state == SW_JOB_DONE; i++)
    sw_jw_str(&w, sw_arena_printf(out->arena, "/studies/%s/%s", id, sw_study_table_names[i]));
  sw_jw_end_array(&w);
  sw_jw_key(&w, "problem");
  if (is->state == SW_JOB_FAILED)
    sw_problem_object(&w, is->slug ? is->slug : "internal", is->status, is->detail ? is->detail : "", id, is->errors);
  else
    sw_jw_null(&w);
  sw_jw_end_object(&w);
  sw_buf_puts(out, "\n");
}

/* The study while its document is written, which may end in the middle: the arena's end lets go of it. */
static void release_held(void *p)
{
  struct sw_study_record **held = p;
  if (*held)
    release(*held);
}

bool sw_studies_write(struct sw_studies *ss, const char *id, struct sw_buf *out)
{
  struct sw_study_record **held = SW_NEW(out->arena, struct sw_study_record *);
  sw_arena_defer(out->arena, release_held, held);
  *held = hold(ss, id);
  if (!*held)
    return false;
  pthread_mutex_lock(&ss->lock);
  struct sw_study_standing is = (*held)->is;
  pthread_mutex_unlock(&ss->lock);
  write_record((*held)->id, &is, out);
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
  release(s); /* and the thread lets go of what is in the queue */
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
  bool is_done = s->is.state == SW_JOB_DONE;
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
  release(s);
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
  struct sw_study_asker *askers = NULL, *a;
  pthread_mutex_lock(&ss->lock);
  ss->is_closed = true;
  for (struct sw_study_record *s = ss->newest; s; s = s->older) {
    sw_events_end(&s->events);
    if (!(a = take_asker_locked(s)))
      continue;
    sw_study_set_state(s, SW_JOB_CANCELLED);
    a->next = askers;
    askers = a;
  }
  pthread_mutex_unlock(&ss->lock);
  struct sw_outcome o = {0};
  sw_outcome_problem(&o, 503, "cancelled", "the service is stopping");
  while ((a = askers)) {
    askers = a->next;
    a->told(a, &o);
  }
  sw_outcome_clear(&o);
}
