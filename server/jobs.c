#include "server/jobs.h"

#include "base/json.h"
#include "server/call.h"
#include "server/clock.h"
#include "server/disk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How far a job is. */
struct progress {
  char pass[24], solver[160]; /* the last of each */
  double began, ended;        /* 0: not yet */
};

struct sw_job_record {
  struct sw_record r;
  /* the same from the moment it is found in the list */
  char address[SW_ID_LEN + 1];
  char *args;
  size_t args_len;
  double added;
  int starts;
  struct progress is; /* guarded by the lock of the jobs */
  struct sw_waiter waiter; /* of the queue, under its own lock */
};

struct sw_jobs {
  struct sw_records all;
  struct sw_queue *queue;
};

static struct sw_job_record *job_of(struct sw_record *r)
{
  return (struct sw_job_record *)(void *)r;
}

static struct sw_jobs *jobs_of(const struct sw_job_record *j)
{
  return (struct sw_jobs *)(void *)j->r.all;
}

struct sw_jobs *sw_jobs_new(const struct sw_limits *limits, struct sw_queue *queue, struct sw_disk *disk)
{
  struct sw_jobs *js = calloc(1, sizeof *js);
  if (!js)
    return NULL;
  sw_records_init(&js->all, limits, disk);
  js->queue = queue;
  return js;
}

struct sw_records *sw_jobs_records(struct sw_jobs *js)
{
  return &js->all;
}

static void free_record(struct sw_job_record *j)
{
  free(j->args);
  sw_record_clear(&j->r);
  free(j);
}

void sw_jobs_free(struct sw_jobs *js)
{
  if (!js)
    return;
  while (js->all.newest) {
    struct sw_job_record *j = job_of(js->all.newest);
    js->all.newest = j->r.older;
    free_record(j);
  }
  pthread_mutex_destroy(&js->all.lock);
  free(js);
}

static void set_state_locked(struct sw_job_record *j, enum sw_job_state state)
{
  if (state == SW_JOB_RUNNING)
    j->is.began = sw_now();
  if (state >= SW_JOB_DONE)
    j->is.ended = sw_now();
  sw_record_set_state(&j->r, state);
}

/* Writes the job down, where there is a disk; without locks. How it stands can't change any more, or not meanwhile: only who
 * ends it (the queue, or a cancellation that came first) or has not put it into the queue yet comes here. */
static bool keep(struct sw_job_record *j)
{
  struct sw_disk *d = j->r.all->disk;
  const struct sw_standing *is = &j->r.is;
  return !d || sw_disk_job_put(d, &(struct sw_disk_job){j->r.id, j->address, sw_record_kept_state(&j->r), is->slug, is->detail,
                                                       is->errors, is->status, j->args, j->args_len, j->starts});
}

/* Ended jobs beyond the limit, oldest first. */
static void drop_old(struct sw_jobs *js)
{
  for (;;) {
    pthread_mutex_lock(&js->all.lock);
    struct sw_record *r = js->all.n > js->all.limits->jobs ? js->all.oldest : NULL;
    while (r && !(sw_record_ended(r) && sw_record_idle(r)))
      r = r->newer;
    if (r)
      sw_record_unlink(r);
    pthread_mutex_unlock(&js->all.lock);
    if (!r)
      return;
    if (js->all.disk)
      sw_disk_job_drop(js->all.disk, r->id);
    free_record(job_of(r));
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
  char data[80];
  pthread_mutex_lock(&j->r.all->lock);
  if (j->r.is.state == SW_JOB_QUEUED)
    set_state_locked(j, SW_JOB_RUNNING);
  if (*pass == '{') {
    snprintf(j->is.solver, sizeof j->is.solver, "%s", pass);
    sw_events_add(&j->r.events, "solver", pass, false);
  } else if (*pass) {
    snprintf(j->is.pass, sizeof j->is.pass, "%s", pass);
    snprintf(data, sizeof data, "{\"pass\":\"%s\"}", pass);
    sw_events_add(&j->r.events, "pass", data, false);
  }
  pthread_mutex_unlock(&j->r.all->lock);
}

static void job_done(struct sw_waiter *w, const struct sw_outcome *o)
{
  struct sw_job_record *j = record_of(w);
  struct sw_jobs *js = jobs_of(j);
  bool stays = js->all.disk && !o->result && sw_queue_halted(js->queue); /* the next daemon goes on with it */
  pthread_mutex_lock(&js->all.lock);
  j->r.users++;
  if (!o->result)
    sw_record_set_reason(&j->r, o->status, o->slug, o->detail, o->errors);
  set_state_locked(j, o->result ? SW_JOB_DONE : SW_JOB_FAILED);
  pthread_mutex_unlock(&js->all.lock);
  if (!stays && keep(j))
    sw_record_drop_body(&j->r);
  sw_record_release(&j->r);
  drop_old(js);
}

/* -- adding -- */

static struct sw_job_record *new_record(struct sw_jobs *js, const char *id, const char *address, const char *args, size_t args_len)
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
  sw_record_init(&j->r, &js->all, id);
  j->args = copy;
  j->args_len = args_len;
  j->added = sw_now();
  memcpy(j->address, address, SW_ID_LEN);
  j->waiter.done = job_done;
  j->waiter.on_pass = job_pass;
  return j;
}

/* As many jobs that have not ended as are kept at all: no more. Equal work takes one place in the queue, whoever asks for it. */
static bool link_new(struct sw_job_record *j)
{
  struct sw_records *rs = j->r.all;
  pthread_mutex_lock(&rs->lock);
  bool has_room = sw_records_open(rs) < rs->limits->jobs;
  if (has_room)
    sw_record_link(&j->r);
  pthread_mutex_unlock(&rs->lock);
  return has_room;
}

/* The body beside the store, then the job in it: from then on it survives. */
static bool secure(struct sw_job_record *j, const struct sw_body *body)
{
  j->starts = 1;
  return !j->r.all->disk || (sw_record_keep_body(&j->r, body) && keep(j));
}

static void forget(struct sw_jobs *js, struct sw_job_record *j)
{
  pthread_mutex_lock(&js->all.lock);
  sw_record_unlink(&j->r);
  pthread_mutex_unlock(&js->all.lock);
  if (js->all.disk)
    sw_disk_job_drop(js->all.disk, j->r.id);
  sw_record_drop_body(&j->r);
  free_record(j);
}

enum sw_jobs_rc sw_jobs_add(struct sw_jobs *js, struct sw_task *t, const char *client, double seconds, bool known,
                            char id[SW_JOB_ID_LEN + 1])
{
  struct sw_job_record *j = sw_records_random_id(id) ? new_record(js, id, t->id, t->args, t->args_len) : NULL;
  if (!j)
    return SW_JOBS_BUSY;
  j->waiter.deadline = seconds > 0 ? j->added + seconds : SW_NO_DEADLINE;
  j->r.users = 1;
  if (!link_new(j)) {
    free_record(j);
    return SW_JOBS_BUSY;
  }
  enum sw_jobs_rc rc = SW_JOBS_OK;
  if (known) {
    pthread_mutex_lock(&js->all.lock);
    set_state_locked(j, SW_JOB_DONE);
    pthread_mutex_unlock(&js->all.lock);
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
  sw_record_release(&j->r);
  drop_old(js);
  return SW_JOBS_OK;
}

/* -- what the last daemon left -- */

static void load(void *ctx, const struct sw_disk_job *row)
{
  struct sw_jobs *js = ctx;
  struct sw_job_record *j = strlen(row->id) == SW_JOB_ID_LEN && strlen(row->address) == SW_ID_LEN
                                ? new_record(js, row->id, row->address, row->args, row->args_len)
                                : NULL;
  if (!j)
    return;
  j->r.is.state = sw_record_state_of(row->state);
  sw_record_set_reason(&j->r, row->status, row->slug, row->detail, row->errors);
  j->is.began = j->is.ended = sw_record_ended(&j->r) ? j->added : 0;
  j->starts = row->starts + 1;
  j->r.users = 1; /* until it is known whether it goes on */
  pthread_mutex_lock(&js->all.lock);
  sw_record_link(&j->r);
  pthread_mutex_unlock(&js->all.lock);
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
  t.args_len = j->args_len;
  t.args = malloc(t.args_len + 1);
  if (t.args)
    memcpy(t.args, j->args, t.args_len);
  t.body = sw_record_load_body(&j->r);
  j->waiter.deadline = SW_NO_DEADLINE;
  if (j->starts > SW_RECORD_STARTS)
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

int sw_jobs_resume(struct sw_jobs *js)
{
  int n = 0;
  if (!js->all.disk)
    return 0;
  js->all.is_partial = !sw_disk_jobs(js->all.disk, load, js);
  /* Nobody else adds yet, and what `load` holds is not dropped; but the first jobs end while the last ones are looked at. */
  for (struct sw_record *r = js->all.oldest, *next; r; r = next) {
    next = r->newer;
    if (!sw_record_ended(r))
      n += requeue(js, job_of(r));
    sw_record_release(r);
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

static void write_record(const struct sw_job_record *j, const struct sw_standing *stands, const struct progress *is, struct sw_buf *out)
{
  struct sw_jw w = {.out = out, .indent = 1};
  sw_jw_object(&w);
  sw_jw_kstr(&w, "id", j->r.id);
  sw_jw_kstr(&w, "verb", j->args);
  sw_jw_kstr(&w, "state", sw_record_state_name(stands->state));
  sw_jw_kstr(&w, "pass", *is->pass ? is->pass : NULL);
  sw_jw_key(&w, "solver");
  sw_jw_raw(&w, *is->solver ? is->solver : "null");
  sw_jw_kstr(&w, "result", stands->state == SW_JOB_DONE ? sw_arena_printf(out->arena, "/results/%s", j->address) : NULL);
  sw_record_write_problem(&w, j->r.id, stands);
  double now = is->ended > 0 ? is->ended : sw_now();
  sw_jw_key(&w, "seconds");
  sw_jw_object(&w);
  sw_jw_kreal(&w, "queued", milliseconds((is->began > 0 ? is->began : now) - j->added));
  sw_jw_kreal(&w, "running", is->began > 0 ? milliseconds(now - is->began) : 0);
  sw_jw_end_object(&w);
  sw_jw_end_object(&w);
  sw_buf_puts(out, "\n");
}

bool sw_jobs_write(struct sw_jobs *js, const char *id, struct sw_buf *out)
{
  struct sw_record *r = sw_record_hold_in(out->arena, &js->all, id);
  if (!r)
    return false;
  pthread_mutex_lock(&js->all.lock);
  struct sw_standing stands = r->is;
  struct progress is = job_of(r)->is;
  pthread_mutex_unlock(&js->all.lock);
  write_record(job_of(r), &stands, &is, out);
  return true;
}

bool sw_jobs_cancel(struct sw_jobs *js, const char *id)
{
  struct sw_record *r = sw_record_hold(&js->all, id);
  if (!r)
    return false;
  struct sw_job_record *j = job_of(r);
  if (sw_queue_leave(js->queue, &j->waiter)) {
    pthread_mutex_lock(&js->all.lock);
    set_state_locked(j, SW_JOB_CANCELLED);
    pthread_mutex_unlock(&js->all.lock);
    if (keep(j))
      sw_record_drop_body(r);
  }
  sw_record_release(r);
  return true;
}
