#include "server/jobs.h"

#include "base/json.h"
#include "server/call.h"
#include "server/clock.h"
#include "server/disk.h"
#include "server/problem.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

enum { MAX_STARTS = 3 };

/* How a job stands. Its texts are set once and live as long as the job. */
struct standing {
  enum sw_job_state state;
  char pass[24], solver[160]; /* the last of each */
  double began, ended;        /* 0: not yet */
  unsigned status;            /* of a failure, as are the next three */
  char *slug, *detail, *errors;
};

struct sw_job_record {
  /* the same from the moment it is found in the list */
  struct sw_jobs *all;
  char id[SW_JOB_ID_LEN + 1], address[SW_ID_LEN + 1];
  char *args;
  size_t args_len;
  double added;
  int starts;
  /* guarded by the lock of the jobs */
  struct sw_job_record *newer, *older;
  struct standing is;
  struct sw_events events;
  int users; /* calls in progress; not dropped while there are any, or listeners */
  /* of the queue, under its own lock */
  struct sw_waiter waiter;
};

struct sw_jobs {
  struct sw_queue *queue;
  struct sw_disk *disk;
  const struct sw_limits *limits;
  pthread_mutex_t lock; /* may be taken with the queue's held, never the other way round */
  struct sw_job_record *newest, *oldest;
  long n;
  bool is_partial; /* the store has some that could not be read: their bodies stay */
};

static const char *const states[] = {"queued", "running", "done", "failed", "cancelled"};

static bool has_ended(const struct sw_job_record *j)
{
  return j->is.state >= SW_JOB_DONE;
}

struct sw_jobs *sw_jobs_new(const struct sw_limits *limits, struct sw_queue *queue, struct sw_disk *disk)
{
  struct sw_jobs *js = calloc(1, sizeof *js);
  if (!js)
    return NULL;
  pthread_mutex_init(&js->lock, NULL);
  js->queue = queue;
  js->disk = disk;
  js->limits = limits;
  return js;
}

static void free_record(struct sw_job_record *j)
{
  free(j->args);
  free(j->is.slug);
  free(j->is.detail);
  free(j->is.errors);
  sw_events_clear(&j->events);
  free(j);
}

void sw_jobs_free(struct sw_jobs *js)
{
  if (!js)
    return;
  while (js->newest) {
    struct sw_job_record *j = js->newest;
    js->newest = j->older;
    free_record(j);
  }
  pthread_mutex_destroy(&js->lock);
  free(js);
}

static struct sw_job_record *find_locked(struct sw_jobs *js, const char *id)
{
  struct sw_job_record *j = js->newest;
  while (j && strcmp(j->id, id))
    j = j->older;
  return j;
}

static void unlink_locked(struct sw_jobs *js, struct sw_job_record *j)
{
  *(j->newer ? &j->newer->older : &js->newest) = j->older;
  *(j->older ? &j->older->newer : &js->oldest) = j->newer;
  js->n--;
}

static void add_event_locked(struct sw_job_record *j, const char *name, const char *what)
{
  char data[80];
  snprintf(data, sizeof data, "{\"%s\":\"%s\"}", name, what);
  sw_events_add(&j->events, name, data, has_ended(j));
}

static void set_state_locked(struct sw_job_record *j, enum sw_job_state state)
{
  j->is.state = state;
  if (state == SW_JOB_RUNNING)
    j->is.began = sw_now();
  if (has_ended(j))
    j->is.ended = sw_now();
  add_event_locked(j, "state", states[state]);
}

/* Writes the job down, where there is a disk; without locks. How it stands can't change any more, or not meanwhile: only who
 * ends it (the queue, or a cancellation that came first) or has not put it into the queue yet comes here. */
static bool keep(struct sw_job_record *j)
{
  struct sw_disk *d = j->all->disk;
  return !d || sw_disk_job_put(d, &(struct sw_disk_job){j->id, j->address, states[has_ended(j) ? j->is.state : SW_JOB_QUEUED],
                                                       j->is.slug, j->is.detail, j->is.errors, j->is.status, j->args, j->args_len,
                                                       j->starts});
}

static void drop_body(struct sw_job_record *j)
{
  char *path = j->all->disk ? sw_disk_body_path(j->all->disk, j->id) : NULL;
  if (path)
    unlink(path);
  free(path);
}

/* A job that can't go away until release(). */
static struct sw_job_record *hold(struct sw_jobs *js, const char *id)
{
  pthread_mutex_lock(&js->lock);
  struct sw_job_record *j = find_locked(js, id);
  if (j)
    j->users++;
  pthread_mutex_unlock(&js->lock);
  return j;
}

static void release(struct sw_job_record *j)
{
  struct sw_jobs *js = j->all;
  pthread_mutex_lock(&js->lock);
  j->users--;
  pthread_mutex_unlock(&js->lock);
}

/* Ended jobs beyond the limit, oldest first. */
static void drop_old(struct sw_jobs *js)
{
  for (;;) {
    pthread_mutex_lock(&js->lock);
    struct sw_job_record *j = js->n > js->limits->jobs ? js->oldest : NULL;
    while (j && (!has_ended(j) || j->users || j->events.listeners))
      j = j->newer;
    if (j)
      unlink_locked(js, j);
    pthread_mutex_unlock(&js->lock);
    if (!j)
      return;
    if (js->disk)
      sw_disk_job_drop(js->disk, j->id);
    free_record(j);
  }
}

/* -- called by the queue -- */

static struct sw_job_record *record_of(struct sw_waiter *w)
{
  return (struct sw_job_record *)(void *)((char *)w - offsetof(struct sw_job_record, waiter));
}

static void job_pass(struct sw_waiter *w, const char *pass)
{
  struct sw_job_record *j = record_of(w);
  pthread_mutex_lock(&j->all->lock);
  if (j->is.state == SW_JOB_QUEUED)
    set_state_locked(j, SW_JOB_RUNNING);
  if (*pass == '{') {
    snprintf(j->is.solver, sizeof j->is.solver, "%s", pass);
    sw_events_add(&j->events, "solver", pass, false);
  } else if (*pass) {
    snprintf(j->is.pass, sizeof j->is.pass, "%s", pass);
    add_event_locked(j, "pass", pass);
  }
  pthread_mutex_unlock(&j->all->lock);
}

static char *copy_text(const char *s)
{
  return s ? strdup(s) : NULL;
}

static void job_done(struct sw_waiter *w, const struct sw_outcome *o)
{
  struct sw_job_record *j = record_of(w);
  struct sw_jobs *js = j->all;
  bool stays = js->disk && !o->result && sw_queue_halted(js->queue); /* the next daemon goes on with it */
  pthread_mutex_lock(&js->lock);
  j->users++;
  if (!o->result) {
    j->is.status = o->status;
    j->is.slug = copy_text(o->slug);
    j->is.detail = copy_text(o->detail);
    j->is.errors = copy_text(o->errors);
  }
  set_state_locked(j, o->result ? SW_JOB_DONE : SW_JOB_FAILED);
  pthread_mutex_unlock(&js->lock);
  if (!stays && keep(j))
    drop_body(j);
  release(j);
  drop_old(js);
}

/* -- adding -- */

static struct sw_job_record *new_record(struct sw_jobs *js, const char *address, const char *args, size_t args_len)
{
  struct sw_job_record *j = calloc(1, sizeof *j);
  char *copy = malloc(args_len + 1);
  if (!j || !copy) {
    free(j);
    free(copy);
    return NULL;
  }
  memcpy(copy, args, args_len);
  copy[args_len] = 0;
  j->all = js;
  j->events.lock = &js->lock;
  j->args = copy;
  j->args_len = args_len;
  j->added = sw_now();
  memcpy(j->address, address, SW_ID_LEN);
  j->waiter.done = job_done;
  j->waiter.on_pass = job_pass;
  return j;
}

bool sw_jobs_random_id(char id[SW_JOB_ID_LEN + 1])
{
  unsigned char bytes[SW_JOB_ID_LEN / 2];
  if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes)
    return false;
  for (size_t i = 0; i < sizeof bytes; i++)
    snprintf(id + 2 * i, 3, "%02x", bytes[i]);
  return true;
}

/* As many jobs that have not ended as are kept at all: no more. Equal work takes one place in the queue, whoever asks for it. */
static bool is_full_locked(const struct sw_jobs *js)
{
  long n = 0;
  for (const struct sw_job_record *j = js->newest; j; j = j->older)
    n += !has_ended(j);
  return n >= js->limits->jobs;
}

/* False when there are too many; one that was accepted before is none. */
static bool link_record(struct sw_jobs *js, struct sw_job_record *j, bool is_new)
{
  pthread_mutex_lock(&js->lock);
  if (is_new && is_full_locked(js)) {
    pthread_mutex_unlock(&js->lock);
    return false;
  }
  j->older = js->newest;
  *(js->newest ? &js->newest->newer : &js->oldest) = j;
  js->newest = j;
  js->n++;
  add_event_locked(j, "state", states[j->is.state]);
  pthread_mutex_unlock(&js->lock);
  return true;
}

/* The body beside the store, then the job in it: from then on it survives. */
static bool secure(struct sw_job_record *j, const struct sw_body *body)
{
  j->starts = 1;
  if (!j->all->disk)
    return true;
  char *path = sw_disk_body_path(j->all->disk, j->id);
  bool ok = path && sw_body_keep(body, path) && keep(j);
  free(path);
  return ok;
}

static void forget(struct sw_jobs *js, struct sw_job_record *j)
{
  pthread_mutex_lock(&js->lock);
  unlink_locked(js, j);
  pthread_mutex_unlock(&js->lock);
  if (js->disk)
    sw_disk_job_drop(js->disk, j->id);
  drop_body(j);
  free_record(j);
}

enum sw_jobs_rc sw_jobs_add(struct sw_jobs *js, struct sw_task *t, const char *client, double seconds, bool known,
                            char id[SW_JOB_ID_LEN + 1])
{
  struct sw_job_record *j = new_record(js, t->id, t->args, t->args_len);
  if (!j || !sw_jobs_random_id(j->id)) {
    if (j)
      free_record(j);
    return SW_JOBS_BUSY;
  }
  memcpy(id, j->id, sizeof j->id);
  j->waiter.deadline = seconds > 0 ? j->added + seconds : SW_NO_DEADLINE;
  j->users = 1;
  if (!link_record(js, j, true)) {
    free_record(j);
    return SW_JOBS_BUSY;
  }
  enum sw_jobs_rc rc = SW_JOBS_OK;
  if (known) {
    pthread_mutex_lock(&js->lock);
    set_state_locked(j, SW_JOB_DONE);
    pthread_mutex_unlock(&js->lock);
    keep(j);
    sw_task_clear(t);
  } else if (!secure(j, t->body)) {
    rc = SW_JOBS_NOT_KEPT;
  } else if (!sw_queue_join(js->queue, t, client, &j->waiter)) {
    rc = SW_JOBS_BUSY;
  }
  if (rc != SW_JOBS_OK) {
    forget(js, j);
    return rc;
  }
  release(j);
  drop_old(js);
  return SW_JOBS_OK;
}

/* -- what the last daemon left -- */

static enum sw_job_state state_of(const char *name)
{
  for (int i = SW_JOB_DONE; i <= SW_JOB_CANCELLED; i++)
    if (!strcmp(name, states[i]))
      return (enum sw_job_state)i;
  return SW_JOB_QUEUED;
}

static void load(void *ctx, const struct sw_disk_job *row)
{
  struct sw_jobs *js = ctx;
  struct sw_job_record *j = strlen(row->id) == SW_JOB_ID_LEN && strlen(row->address) == SW_ID_LEN
                                ? new_record(js, row->address, row->args, row->args_len)
                                : NULL;
  if (!j)
    return;
  memcpy(j->id, row->id, sizeof j->id);
  j->is.state = state_of(row->state);
  j->is.status = row->status;
  j->is.slug = copy_text(row->slug);
  j->is.detail = copy_text(row->detail);
  j->is.errors = copy_text(row->errors);
  j->is.began = j->is.ended = has_ended(j) ? j->added : 0;
  j->starts = row->starts + 1;
  j->users = 1; /* until it is known whether it goes on */
  link_record(js, j, false);
}

struct addressing {
  struct sw_job_record *j;
  const struct sw_body *body;
  struct sw_job job;
  bool ok;
};

static void find_address(void *p)
{
  struct addressing *a = p;
  struct sw_call call;
  a->ok = sw_call_read(&a->job, &call, a->j->args, a->j->args_len) == SW_OK &&
          sw_call_address(&call, a->job.arena, a->body, a->j->address);
}

/* What this version computes has another address than what the last one would have. */
static bool address_anew(struct sw_job_record *j, const struct sw_body *body)
{
  struct addressing a = {j, body, {.arena = sw_arena_new(NULL, 1 << 20)}, false};
  bool ok = a.job.arena && sw_arena_run(a.job.arena, find_address, &a) && a.ok;
  sw_arena_free(a.job.arena);
  return ok;
}

/* Back into the queue; or the honest reason why not. */
static bool requeue(struct sw_jobs *js, struct sw_job_record *j)
{
  struct sw_task t = {0};
  struct sw_outcome o = {0};
  char *path = sw_disk_body_path(js->disk, j->id);
  t.args_len = j->args_len;
  t.args = malloc(t.args_len + 1);
  if (t.args)
    memcpy(t.args, j->args, t.args_len);
  t.body = path ? sw_body_load(path, (size_t)js->limits->body_mb << 20) : NULL;
  free(path);
  j->waiter.deadline = SW_NO_DEADLINE;
  if (j->starts > MAX_STARTS)
    sw_outcome_problem(&o, 500, "internal", "the service ended three times while this job was running");
  else if (!t.body || !t.args)
    sw_outcome_problem(&o, 500, "internal", "the service ended, and the body of this job is lost or damaged");
  else if (!address_anew(j, t.body))
    sw_outcome_problem(&o, 500, "internal", "the service ended, and its next version has no such parameters");
  else if (memcpy(t.id, j->address, sizeof t.id), keep(j), sw_queue_join(js->queue, &t, NULL, &j->waiter))
    return true;
  else
    sw_outcome_problem(&o, 503, "limit", "the service ended, and is out of memory now");
  sw_task_clear(&t);
  job_done(&j->waiter, &o);
  sw_outcome_clear(&o);
  return false;
}

bool sw_jobs_need_body(struct sw_jobs *js, const char *id)
{
  pthread_mutex_lock(&js->lock);
  const struct sw_job_record *j = find_locked(js, id);
  bool needed = js->is_partial || (j && !has_ended(j));
  pthread_mutex_unlock(&js->lock);
  return needed;
}

int sw_jobs_resume(struct sw_jobs *js)
{
  int n = 0;
  if (!js->disk)
    return 0;
  js->is_partial = !sw_disk_jobs(js->disk, load, js);
  /* Nobody else adds yet, and what `load` holds is not dropped; but the first jobs end while the last ones are looked at. */
  for (struct sw_job_record *j = js->oldest, *next; j; j = next) {
    next = j->newer;
    if (!has_ended(j))
      n += requeue(js, j);
    release(j);
  }
  drop_old(js);
  return n;
}

/* -- asking -- */

/* Seconds, to three digits. */
static double milliseconds(double seconds)
{
  return (double)(long)(seconds * 1e3) / 1e3;
}

static void write_record(const struct sw_job_record *j, const struct standing *is, struct sw_buf *out)
{
  struct sw_jw w = {.out = out, .indent = 1};
  sw_jw_object(&w);
  sw_jw_kstr(&w, "id", j->id);
  sw_jw_kstr(&w, "verb", j->args);
  sw_jw_kstr(&w, "state", states[is->state]);
  sw_jw_kstr(&w, "pass", *is->pass ? is->pass : NULL);
  sw_jw_key(&w, "solver");
  sw_jw_raw(&w, *is->solver ? is->solver : "null");
  sw_jw_kstr(&w, "result", is->state == SW_JOB_DONE ? sw_arena_printf(out->arena, "/results/%s", j->address) : NULL);
  sw_jw_key(&w, "problem");
  if (is->state == SW_JOB_FAILED)
    sw_problem_object(&w, is->slug ? is->slug : "internal", is->status, is->detail ? is->detail : "", j->id, is->errors);
  else
    sw_jw_null(&w);
  double now = is->ended > 0 ? is->ended : sw_now();
  sw_jw_key(&w, "seconds");
  sw_jw_object(&w);
  sw_jw_kreal(&w, "queued", milliseconds((is->began > 0 ? is->began : now) - j->added));
  sw_jw_kreal(&w, "running", is->began > 0 ? milliseconds(now - is->began) : 0);
  sw_jw_end_object(&w);
  sw_jw_end_object(&w);
  sw_buf_puts(out, "\n");
}

/* The job while its document is written, which may end in the middle: the arena's end lets go of it. */
static void release_held(void *p)
{
  struct sw_job_record **held = p;
  if (*held)
    release(*held);
}

bool sw_jobs_write(struct sw_jobs *js, const char *id, struct sw_buf *out)
{
  struct sw_job_record **held = SW_NEW(out->arena, struct sw_job_record *);
  sw_arena_defer(out->arena, release_held, held);
  *held = hold(js, id);
  if (!*held)
    return false;
  pthread_mutex_lock(&js->lock);
  struct standing is = (*held)->is;
  pthread_mutex_unlock(&js->lock);
  write_record(*held, &is, out);
  return true;
}

int sw_jobs_cancel(struct sw_jobs *js, const char *id)
{
  struct sw_job_record *j = hold(js, id);
  if (!j)
    return -1;
  bool mine = sw_queue_leave(js->queue, &j->waiter);
  if (mine) {
    pthread_mutex_lock(&js->lock);
    set_state_locked(j, SW_JOB_CANCELLED);
    pthread_mutex_unlock(&js->lock);
    if (keep(j))
      drop_body(j);
  }
  pthread_mutex_lock(&js->lock);
  int state = (int)j->is.state;
  j->users--;
  pthread_mutex_unlock(&js->lock);
  return state;
}

/* -- events -- */

bool sw_jobs_listen(void *jobs, const char *id, struct sw_listener *l)
{
  struct sw_jobs *js = jobs;
  pthread_mutex_lock(&js->lock);
  struct sw_job_record *j = find_locked(js, id);
  if (j)
    sw_events_listen(&j->events, l);
  pthread_mutex_unlock(&js->lock);
  return j;
}

void sw_jobs_tick(struct sw_jobs *js)
{
  double now = sw_now();
  pthread_mutex_lock(&js->lock);
  for (struct sw_job_record *j = js->newest; j; j = j->older)
    sw_events_tick(&j->events, now);
  pthread_mutex_unlock(&js->lock);
}

void sw_jobs_hush(struct sw_jobs *js)
{
  pthread_mutex_lock(&js->lock);
  for (struct sw_job_record *j = js->newest; j; j = j->older)
    sw_events_end(&j->events);
  pthread_mutex_unlock(&js->lock);
}
