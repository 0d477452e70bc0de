#include "server/records.h"

#include "server/clock.h"
#include "server/disk.h"
#include "server/problem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

static const char *const states[] = {"queued", "running", "done", "failed", "cancelled"};

void sw_records_init(struct sw_records *rs, const struct sw_limits *limits, struct sw_disk *disk)
{
  *rs = (struct sw_records){.limits = limits, .disk = disk};
  pthread_mutex_init(&rs->lock, NULL);
}

bool sw_records_random_id(char id[SW_JOB_ID_LEN + 1])
{
  unsigned char bytes[SW_JOB_ID_LEN / 2];
  if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes)
    return false;
  for (size_t i = 0; i < sizeof bytes; i++)
    snprintf(id + 2 * i, 3, "%02x", bytes[i]);
  return true;
}

void sw_record_init(struct sw_record *r, struct sw_records *rs, const char *id)
{
  r->all = rs;
  r->events.lock = &rs->lock;
  memcpy(r->id, id, SW_JOB_ID_LEN);
}

void sw_record_clear(struct sw_record *r)
{
  free(r->is.slug);
  free(r->is.detail);
  free(r->is.errors);
  sw_events_clear(&r->events);
}

const char *sw_record_state_name(enum sw_job_state state)
{
  return states[state];
}

const char *sw_record_kept_state(const struct sw_record *r)
{
  return states[sw_record_ended(r) ? r->is.state : SW_JOB_QUEUED];
}

enum sw_job_state sw_record_state_of(const char *kept)
{
  for (int i = SW_JOB_DONE; i <= SW_JOB_CANCELLED; i++)
    if (!strcmp(kept, states[i]))
      return (enum sw_job_state)i;
  return SW_JOB_QUEUED;
}

/* -- with the lock held -- */

void sw_record_link(struct sw_record *r)
{
  struct sw_records *rs = r->all;
  r->older = rs->newest;
  *(rs->newest ? &rs->newest->newer : &rs->oldest) = r;
  rs->newest = r;
  rs->n++;
  sw_record_set_state(r, r->is.state);
}

void sw_record_unlink(struct sw_record *r)
{
  struct sw_records *rs = r->all;
  *(r->newer ? &r->newer->older : &rs->newest) = r->older;
  *(r->older ? &r->older->newer : &rs->oldest) = r->newer;
  rs->n--;
}

struct sw_record *sw_records_find(struct sw_records *rs, const char *id)
{
  struct sw_record *r = rs->newest;
  while (r && (r->is_hidden || strcmp(r->id, id)))
    r = r->older;
  return r;
}

long sw_records_open(const struct sw_records *rs)
{
  long n = 0;
  for (const struct sw_record *r = rs->newest; r; r = r->older)
    n += !sw_record_ended(r);
  return n;
}

void sw_record_set_state(struct sw_record *r, enum sw_job_state state)
{
  char data[40];
  r->is.state = state;
  snprintf(data, sizeof data, "{\"state\":\"%s\"}", states[state]);
  sw_events_add(&r->events, "state", data, sw_record_ended(r));
}

static char *copy_text(const char *s)
{
  return s ? strdup(s) : NULL;
}

void sw_record_set_reason(struct sw_record *r, unsigned status, const char *slug, const char *detail, const char *errors)
{
  r->is.status = status;
  r->is.slug = copy_text(slug);
  r->is.detail = copy_text(detail);
  r->is.errors = copy_text(errors);
}

bool sw_record_idle(const struct sw_record *r)
{
  return !r->users && !r->events.listeners;
}

/* -- without -- */

struct sw_record *sw_record_hold(struct sw_records *rs, const char *id)
{
  pthread_mutex_lock(&rs->lock);
  struct sw_record *r = sw_records_find(rs, id);
  if (r)
    r->users++;
  pthread_mutex_unlock(&rs->lock);
  return r;
}

void sw_record_release(struct sw_record *r)
{
  struct sw_records *rs = r->all;
  pthread_mutex_lock(&rs->lock);
  r->users--;
  if (rs->freed)
    pthread_cond_signal(rs->freed);
  pthread_mutex_unlock(&rs->lock);
}

static void release_held(void *p)
{
  struct sw_record **held = p;
  if (*held)
    sw_record_release(*held);
}

struct sw_record *sw_record_hold_in(struct sw_arena *a, struct sw_records *rs, const char *id)
{
  struct sw_record **held = SW_NEW(a, struct sw_record *);
  sw_arena_defer(a, release_held, held); /* may jump: so nothing is held before */
  return *held = sw_record_hold(rs, id);
}

struct sw_standing sw_record_standing(struct sw_record *r)
{
  pthread_mutex_lock(&r->all->lock);
  struct sw_standing is = r->is;
  pthread_mutex_unlock(&r->all->lock);
  return is;
}

void sw_record_write_problem(struct sw_jw *w, const char *id, const struct sw_standing *is)
{
  sw_jw_key(w, "problem");
  if (is->state == SW_JOB_FAILED)
    sw_problem_object(w, is->slug ? is->slug : "internal", is->status, is->detail ? is->detail : "", id, is->errors);
  else
    sw_jw_null(w);
}

bool sw_record_keep_body(const struct sw_record *r, const struct sw_body *body)
{
  char *path = sw_disk_body_path(r->all->disk, r->id);
  bool ok = path && sw_body_keep(body, path);
  free(path);
  return ok;
}

struct sw_body *sw_record_load_body(const struct sw_record *r)
{
  char *path = sw_disk_body_path(r->all->disk, r->id);
  struct sw_body *body = path ? sw_body_load(path) : NULL;
  free(path);
  return body;
}

void sw_record_drop_body(const struct sw_record *r)
{
  char *path = r->all->disk ? sw_disk_body_path(r->all->disk, r->id) : NULL;
  if (path)
    unlink(path);
  free(path);
}

bool sw_records_need_body(struct sw_records *rs, const char *id)
{
  pthread_mutex_lock(&rs->lock);
  const struct sw_record *r = sw_records_find(rs, id);
  bool needed = rs->is_partial || (r && !sw_record_ended(r));
  pthread_mutex_unlock(&rs->lock);
  return needed;
}

/* -- events -- */

bool sw_records_listen(struct sw_records *rs, const char *id, struct sw_listener *l)
{
  pthread_mutex_lock(&rs->lock);
  struct sw_record *r = sw_records_find(rs, id);
  if (r)
    sw_events_listen(&r->events, l);
  pthread_mutex_unlock(&rs->lock);
  return r;
}

void sw_records_tick(struct sw_records *rs)
{
  double now = sw_now();
  pthread_mutex_lock(&rs->lock);
  for (struct sw_record *r = rs->newest; r; r = r->older)
    sw_events_tick(&r->events, now);
  pthread_mutex_unlock(&rs->lock);
}

void sw_records_end_events(struct sw_records *rs)
{
  pthread_mutex_lock(&rs->lock);
  for (struct sw_record *r = rs->newest; r; r = r->older)
    sw_events_end(&r->events);
  pthread_mutex_unlock(&rs->lock);
}
