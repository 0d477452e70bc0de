/* The thread that does the studies. Each step is one of: have a body read by a worker, begin a run, make the tables, let
 * go of what has ended. What ends in the queue comes to the inbox, so that everything of a study is seen by this thread
 * alone. A study has one run fewer in the queue than there are workers (one at least): who asks for a single compile
 * finds a worker. */
#define _GNU_SOURCE
#include "server/studies_inside.h"

#include "server/call.h"
#include "server/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAUSE_MS = 500, STEP_MB = 64, BUSY = 503 };

bool sw_studies_owns(const struct sw_task *t)
{
  return !strcmp(t->args, "study");
}

/* -- work to the queue and back -- */

static void on_done(struct sw_waiter *waiter, const struct sw_outcome *o)
{
  struct sw_study_work *w = (struct sw_study_work *)(void *)((char *)waiter - offsetof(struct sw_study_work, waiter));
  struct sw_studies *ss = w->study->all;
  sw_outcome_copy(&w->outcome, o);
  pthread_mutex_lock(&ss->records.lock);
  struct sw_study_work **at = &w->study->flying;
  while (*at != w)
    at = &(*at)->next;
  *at = w->next;
  w->next = ss->inbox;
  ss->inbox = w;
  pthread_cond_signal(&ss->some);
  pthread_mutex_unlock(&ss->records.lock);
}

static void free_work(struct sw_study_work *w)
{
  sw_outcome_clear(&w->outcome);
  free(w);
}

bool sw_study_fly(struct sw_study_record *s, struct sw_task *t, int run)
{
  struct sw_studies *ss = s->all;
  struct sw_study_work *w = t->args && t->body ? calloc(1, sizeof *w) : NULL;
  if (!w) {
    sw_task_clear(t);
    return false;
  }
  *w = (struct sw_study_work){.study = s, .run = run, .waiter = {.done = on_done, .deadline = SW_NO_DEADLINE}};
  pthread_mutex_lock(&ss->records.lock);
  w->next = s->flying;
  s->flying = w;
  s->n_flying++;
  pthread_mutex_unlock(&ss->records.lock);
  char client[64];
  snprintf(client, sizeof client, "study %s", s->r.id);
  if (sw_queue_join(ss->queue, t, client, &w->waiter))
    return true;
  sw_task_clear(t);
  pthread_mutex_lock(&ss->records.lock);
  s->flying = w->next; /* only this thread adds, so w is still the first */
  s->n_flying--;
  pthread_mutex_unlock(&ss->records.lock);
  free(w);
  return false;
}

/* -- runs -- */

static void row_of(void *ctx)
{
  struct sw_study_step *st = ctx;
  struct sw_study_run *r = &st->s->spec->runs.v[st->run];
  const struct sw_result_file *f = sw_result_find(st->result, "result.json");
  st->ok = f && sw_study_row_of_result(&st->job, f->bytes, f->len, r);
}

struct failure {
  struct sw_study_step step;
  const struct sw_outcome *o;
};

static void row_of_failure(void *ctx)
{
  struct failure *f = ctx;
  const struct sw_outcome *o = f->o;
  sw_study_row_of_faults(&f->step.job, o->slug ? o->slug : "internal", o->detail ? o->detail : "", o->errors,
                         &f->step.s->spec->runs.v[f->step.run]);
  f->step.ok = true;
}

static void keep_row(void *ctx)
{
  struct sw_study_step *st = ctx;
  struct sw_buf text = {.arena = st->job.arena};
  sw_study_row_text(&st->s->spec->runs.v[st->run], &text);
  const char *name = sw_arena_printf(st->job.arena, "run/%d", st->run);
  sw_disk_study_part(st->s->all->records.disk, st->s->r.id, &(struct sw_disk_part){name, text.p, text.n});
}

/* The run has a row: it is written down, counted and told. */
static void row_is_there(struct sw_study_record *s, int run)
{
  struct sw_studies *ss = s->all;
  struct sw_study_step st = {.s = s, .run = run, .job = {.arena = sw_arena_new(NULL, STEP_MB << 20)}};
  if (ss->records.disk && st.job.arena)
    sw_arena_run(st.job.arena, keep_row, &st); /* one that can't be kept is done again after a restart */
  sw_arena_free(st.job.arena);
  pthread_mutex_lock(&ss->records.lock);
  s->is.n_done++;
  s->is.n_compiled += s->spec->runs.v[run].row.has_plan;
  s->starts = 0;
  if (!sw_record_ended(&s->r))
    sw_study_tell_runs(s, s->is.n_done - 1);
  pthread_mutex_unlock(&ss->records.lock);
}

static void take_result(struct sw_study_record *s, int run, struct sw_result *result)
{
  struct sw_study_step st = {.s = s, .run = run, .job = {.arena = s->arena}, .result = result};
  if (!sw_arena_run(s->arena, row_of, &st))
    sw_study_too_large(s);
  else if (!st.ok)
    sw_study_fail(s, 500, "internal", "a result has no numbers in it", NULL);
  else
    row_is_there(s, run);
}

static void take_failure(struct sw_study_record *s, int run, const struct sw_outcome *o)
{
  struct failure f = {{.s = s, .run = run, .job = {.arena = s->arena}}, o};
  if (sw_arena_run(s->arena, row_of_failure, &f))
    row_is_there(s, run);
  else
    sw_study_too_large(s);
}

struct beginning {
  struct sw_study_step step;
  struct sw_task task;
};

static void prepare_run(void *ctx)
{
  struct beginning *b = ctx;
  struct sw_buf args = {.arena = b->step.job.arena};
  b->step.ok = sw_study_address(b->step.s, b->step.run, &args, b->task.id);
  b->task.args = malloc(args.n);
  if (b->task.args)
    memcpy(b->task.args, args.p, args.n);
  b->task.args_len = args.n;
}

/* Begins a run, or takes its result from the store. False: not now. */
static bool begin_run(struct sw_study_record *s, int run)
{
  struct sw_studies *ss = s->all;
  struct beginning b = {.step = {.s = s, .run = run, .job = {.arena = sw_arena_new(NULL, STEP_MB << 20)}}};
  bool ok = b.step.job.arena && sw_arena_run(b.step.job.arena, prepare_run, &b) && b.step.ok;
  sw_arena_free(b.step.job.arena);
  struct sw_result *known = ok ? sw_store_find(ss->store, b.task.id) : NULL;
  if (ok)
    sw_metrics_count(ss->metrics, known ? SW_METRIC_cache_hits : SW_METRIC_cache_misses);
  if (ok && !known) {
    b.task.body = sw_body_again(s->graphs[s->spec->runs.v[run].graph]);
    ok = sw_study_fly(s, &b.task, run);
  } else {
    sw_task_clear(&b.task);
  }
  if (ok)
    s->is_begun[run] = 1;
  if (known)
    take_result(s, run, known);
  sw_result_put(known);
  return ok;
}

/* -- the end -- */

static void make_tables(void *ctx)
{
  struct sw_study_step *st = ctx;
  struct sw_study_record *s = st->s;
  struct sw_studies *ss = s->all;
  struct sw_buf b[SW_STUDY_N_TABLES];
  struct sw_disk_part parts[SW_STUDY_N_TABLES];
  for (int i = 0; i < SW_STUDY_N_TABLES; i++)
    b[i] = (struct sw_buf){.arena = s->arena};
  sw_study_csv(s->spec, &b[SW_STUDY_CSV]);
  sw_study_json(s->spec, &b[SW_STUDY_JSON]);
  sw_study_summary(&st->job, s->spec, &b[SW_STUDY_MARKDOWN]);
  for (int i = 0; i < SW_STUDY_N_TABLES; i++)
    parts[i] = (struct sw_disk_part){sw_study_table_names[i], b[i].p, b[i].n};
  const struct sw_disk_study head = {.id = s->r.id, .state = "done", .name = s->is.name, .runs = s->is.n_runs,
                                     .done = s->is.n_done, .compiled = s->is.n_compiled}; /* only this thread sets them */
  bool is_kept = ss->records.disk && sw_disk_study_end(ss->records.disk, &head, parts, SW_STUDY_N_TABLES);
  st->ok = true;
  for (int i = 0; i < SW_STUDY_N_TABLES && !is_kept; i++) { /* then they are there until the daemon ends */
    s->tables[i] = malloc(b[i].n + 1);
    s->table_lens[i] = b[i].n;
    if (s->tables[i])
      memcpy(s->tables[i], sw_buf_text(&b[i]), b[i].n + 1);
    st->ok &= s->tables[i] != NULL;
  }
}

static void finish(struct sw_study_record *s)
{
  struct sw_study_step st = {.s = s, .job = {.arena = s->arena}};
  if (!sw_arena_run(s->arena, make_tables, &st) || !st.ok) {
    sw_study_too_large(s);
    return;
  }
  pthread_mutex_lock(&s->all->records.lock);
  bool is_first = !sw_record_ended(&s->r);
  if (is_first)
    sw_record_set_state(&s->r, SW_JOB_DONE);
  pthread_mutex_unlock(&s->all->records.lock);
  if (is_first)
    sw_record_drop_body(&s->r);
  else
    sw_study_keep(s); /* it was cancelled meanwhile */
}

/* What is in the queue of a study that has ended. */
static void leave_queue(struct sw_study_record *s)
{
  struct sw_studies *ss = s->all;
  pthread_mutex_lock(&ss->records.lock);
  struct sw_study_work *list = NULL, *w;
  while ((w = s->flying)) {
    pthread_mutex_unlock(&ss->records.lock);
    bool mine = sw_queue_leave(ss->queue, &w->waiter); /* false: on_done moves it to the inbox */
    pthread_mutex_lock(&ss->records.lock);
    if (!mine)
      break;
    s->flying = w->next;
    s->n_flying--;
    w->next = list;
    list = w;
  }
  pthread_mutex_unlock(&ss->records.lock);
  while ((w = list)) {
    list = w->next;
    free_work(w);
  }
}

static void let_go(struct sw_study_record *s)
{
  sw_arena_free(s->arena); /* and the bodies of the graphs */
  sw_body_free(s->body);
  pthread_mutex_lock(&s->all->records.lock);
  s->arena = NULL;
  s->spec = NULL;
  s->body = NULL;
  pthread_mutex_unlock(&s->all->records.lock);
}

/* -- the loop -- */

/* Something that has come back. */
static void take_work(struct sw_study_work *w)
{
  struct sw_study_record *s = w->study;
  struct sw_studies *ss = s->all;
  pthread_mutex_lock(&ss->records.lock);
  s->n_flying--;
  bool counts = !sw_record_ended(&s->r);
  pthread_mutex_unlock(&ss->records.lock);
  bool again = counts && sw_study_accepted(s) && !w->outcome.result && w->outcome.status == BUSY; /* no property of the work */
  if (again)
    ss->pause = sw_now() + 1e-3 * PAUSE_MS;
  if (again && w->run >= 0) {
    s->is_begun[w->run] = 0;
    s->next = w->run < s->next ? w->run : s->next;
  } else if (counts && !again) {
    if (w->run < 0)
      sw_study_take_reading(s, &w->outcome);
    else if (w->outcome.result)
      take_result(s, w->run, w->outcome.result);
    else
      take_failure(s, w->run, &w->outcome);
  }
  free_work(w);
}

enum action { NOTHING, READ, RUN, FINISH, LEAVE, LET_GO };

/* What there is to do for a study; with the lock held. */
static enum action next_action(struct sw_study_record *s, double now)
{
  const struct sw_studies *ss = s->all;
  if (s->r.users && !s->body && !s->arena)
    return NOTHING; /* being taken up, or nothing but a record */
  if (sw_record_ended(&s->r))
    return s->flying ? LEAVE : !s->n_flying && (s->arena || s->body) ? LET_GO : NOTHING;
  if (!s->body || (sw_study_accepted(s) && now < ss->pause))
    return NOTHING;
  if (!s->spec)
    return s->n_flying ? NOTHING : READ;
  if (s->is.n_done == s->is.n_runs)
    return FINISH;
  int most = ss->records.limits->workers > 1 ? (int)ss->records.limits->workers - 1 : 1;
  while (s->next < s->is.n_runs && s->is_begun[s->next])
    s->next++;
  return s->n_flying < most && s->next < s->is.n_runs ? RUN : NOTHING;
}

/* Who waits for his study to be accepted waits no longer than for a place in the queue. */
static bool refuse(struct sw_study_record *s)
{
  if (sw_study_accepted(s))
    return false;
  sw_metrics_count(s->all->metrics, SW_METRIC_queue_refusals);
  sw_study_fail(s, 503, "busy", "as many requests are waiting as may wait", NULL);
  return true;
}

static void act(struct sw_study_record *s, enum action what)
{
  bool ok = true;
  switch (what) {
  case READ: ok = sw_study_begin_reading(s) || refuse(s); break;
  case RUN: ok = begin_run(s, s->next); break;
  case FINISH: finish(s); break;
  case LEAVE: leave_queue(s); break;
  case LET_GO: let_go(s); break;
  case NOTHING: break;
  }
  if (!ok)
    s->all->pause = sw_now() + 1e-3 * PAUSE_MS;
}

static void wait_locked(struct sw_studies *ss, double now)
{
  double until = ss->pause > now ? ss->pause : now + 1;
  struct timespec t = {.tv_sec = (time_t)until};
  t.tv_nsec = (long)((until - (double)t.tv_sec) * 1e9);
  pthread_cond_timedwait(&ss->some, &ss->records.lock, &t);
}

/* Every study in turn does one step; when none has one to do, the thread waits. */
void *sw_studies_serve(void *p)
{
  struct sw_studies *ss = p;
  pthread_mutex_lock(&ss->records.lock);
  while (!ss->stop) {
    struct sw_study_work *w = ss->inbox;
    if (w) {
      ss->inbox = w->next;
      pthread_mutex_unlock(&ss->records.lock);
      take_work(w);
      pthread_mutex_lock(&ss->records.lock);
      continue;
    }
    bool acted = false;
    for (struct sw_record *r = ss->records.oldest; r && !ss->inbox && !ss->stop; r = r->newer) { /* only we take one away */
      struct sw_study_record *s = sw_study_of(r);
      enum action what = next_action(s, sw_now());
      if (what == NOTHING)
        continue;
      pthread_mutex_unlock(&ss->records.lock);
      act(s, what);
      pthread_mutex_lock(&ss->records.lock);
      acted = true;
    }
    if (acted || ss->inbox)
      continue;
    pthread_mutex_unlock(&ss->records.lock);
    sw_studies_drop_old(ss);
    pthread_mutex_lock(&ss->records.lock);
    if (!ss->inbox && !ss->stop)
      wait_locked(ss, sw_now());
  }
  /* The queue has been halted: nothing flies any more. */
  for (struct sw_study_work *w = ss->inbox, *next; w; w = next) {
    next = w->next;
    w->study->n_flying--;
    free_work(w);
  }
  ss->inbox = NULL;
  struct sw_record *r = ss->records.oldest;
  pthread_mutex_unlock(&ss->records.lock);
  for (; r; r = r->newer)
    let_go(sw_study_of(r));
  return NULL;
}
