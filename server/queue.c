#include "server/queue.h"

#include "server/clock.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Fairness: each work gets a tag when it comes, and the smallest tag runs next. The tag is one more than the larger of
 * the client's last tag and the tag that ran last. Somebody who sends 50 works at once gets 1, 2, ... 50; who then
 * comes with one work while tag 3 runs gets 4 and is next but one, not fifty-first. */
struct sw_flight {
  struct sw_flight *next;
  struct sw_task task;
  char client[64];
  uint64_t tag;
  bool running;
  atomic_bool cancel;
  struct sw_waiter *waiters;
  struct sw_queue *queue;
};

struct sw_queue {
  const struct sw_limits *limits;
  sw_on_end *on_end;
  void *ctx;
  pthread_mutex_t lock;
  pthread_cond_t some;
  struct sw_flight *flights; /* all that wait or run; not more than queue + workers */
  struct sw_queue_state state;
  uint64_t last_tag; /* that ran */
  atomic_bool stop;
  pthread_t *threads;
  long n_threads;
};

static void free_flight(struct sw_flight *f)
{
  sw_task_clear(&f->task);
  free(f);
}

static void unlink_flight(struct sw_queue *q, struct sw_flight *f)
{
  struct sw_flight **at = &q->flights;
  while (*at != f)
    at = &(*at)->next;
  *at = f->next;
}

/* Waiters of a list that nobody else sees any more. */
static void tell(struct sw_waiter *list, const struct sw_outcome *o)
{
  while (list) {
    struct sw_waiter *w = list;
    list = w->next;
    w->done(w, o);
  }
}

static struct sw_waiter *detach(struct sw_flight *f)
{
  struct sw_waiter *list = f->waiters;
  for (struct sw_waiter *w = list; w; w = w->next)
    w->flight = NULL;
  f->waiters = NULL;
  return list;
}

static void on_pass(void *ctx, const char *pass)
{
  struct sw_flight *f = ctx;
  pthread_mutex_lock(&f->queue->lock);
  for (struct sw_waiter *w = f->waiters; w; w = w->next)
    if (w->on_pass)
      w->on_pass(w, pass);
  pthread_mutex_unlock(&f->queue->lock);
}

static struct sw_flight *next_flight(struct sw_queue *q)
{
  struct sw_flight *best = NULL;
  for (struct sw_flight *f = q->flights; f; f = f->next)
    if (!f->running && (!best || f->tag < best->tag))
      best = f;
  return best;
}

static void *serve(void *p)
{
  struct sw_queue *q = p;
  for (;;) {
    pthread_mutex_lock(&q->lock);
    struct sw_flight *f;
    while (!(f = next_flight(q)) && !atomic_load(&q->stop))
      pthread_cond_wait(&q->some, &q->lock);
    if (f) {
      f->running = true;
      q->last_tag = f->tag;
      q->state.waiting--;
      q->state.running++;
    }
    pthread_mutex_unlock(&q->lock);
    if (!f)
      return NULL;
    struct sw_outcome o = {0};
    on_pass(f, "");
    if (atomic_load(&q->stop))
      sw_outcome_problem(&o, 503, "cancelled", "the service is stopping");
    else
      sw_worker_run(&f->task, q->limits, &f->cancel, on_pass, f, &o);
    q->on_end(q->ctx, &f->task, &o);
    pthread_mutex_lock(&q->lock);
    unlink_flight(q, f);
    q->state.running--;
    struct sw_waiter *waiters = detach(f);
    pthread_mutex_unlock(&q->lock);
    tell(waiters, &o);
    sw_outcome_clear(&o);
    free_flight(f);
  }
}

struct sw_queue *sw_queue_new(const struct sw_limits *limits, sw_on_end *on_end, void *ctx)
{
  struct sw_queue *q = calloc(1, sizeof *q);
  pthread_t *threads = calloc((size_t)limits->workers, sizeof *threads);
  if (!q || !threads) {
    free(q);
    free(threads);
    return NULL;
  }
  q->limits = limits;
  q->on_end = on_end;
  q->ctx = ctx;
  q->threads = threads;
  pthread_mutex_init(&q->lock, NULL);
  pthread_cond_init(&q->some, NULL);
  for (; q->n_threads < limits->workers; q->n_threads++)
    if (pthread_create(&threads[q->n_threads], NULL, serve, q)) {
      sw_queue_halt(q);
      sw_queue_free(q);
      return NULL;
    }
  return q;
}

/* A new flight for a task, or NULL when it may not wait. */
static struct sw_flight *add_locked(struct sw_queue *q, const struct sw_task *t, const char *client)
{
  long same = 0;
  for (const struct sw_flight *g = q->flights; client && g; g = g->next)
    same += !g->running && !strncmp(g->client, client, sizeof g->client - 1);
  bool has_room = !client || (q->state.waiting < q->limits->queue && same < q->limits->client_queue);
  struct sw_flight *f = has_room ? calloc(1, sizeof *f) : NULL;
  if (!f)
    return NULL;
  f->task = *t;
  f->queue = q;
  snprintf(f->client, sizeof f->client, "%s", client ? client : "");
  f->tag = q->last_tag;
  for (const struct sw_flight *g = q->flights; g; g = g->next)
    if (!strcmp(g->client, f->client) && g->tag > f->tag)
      f->tag = g->tag;
  f->tag++;
  struct sw_flight **last = &q->flights; /* equal tags in order of coming */
  while (*last)
    last = &(*last)->next;
  *last = f;
  q->state.waiting++;
  pthread_cond_signal(&q->some);
  return f;
}

bool sw_queue_join(struct sw_queue *q, struct sw_task *t, const char *client, struct sw_waiter *w)
{
  pthread_mutex_lock(&q->lock);
  struct sw_flight *f = atomic_load(&q->stop) ? NULL : q->flights;
  while (f && (atomic_load(&f->cancel) || strcmp(f->task.id, t->id)))
    f = f->next;
  bool joins = f;
  if (!f && !atomic_load(&q->stop))
    f = add_locked(q, t, client);
  if (f) {
    w->flight = f;
    w->next = f->waiters;
    f->waiters = w;
    if (f->running && w->on_pass)
      w->on_pass(w, "");
  }
  pthread_mutex_unlock(&q->lock);
  if (joins)
    sw_task_clear(t);
  return f;
}

/* What nobody waits for any more ends: at once when it has not begun, else by the thread that runs it. */
static struct sw_flight *abandon_locked(struct sw_queue *q, struct sw_flight *f)
{
  if (f->waiters)
    return NULL;
  atomic_store(&f->cancel, true);
  if (f->running)
    return NULL;
  unlink_flight(q, f);
  q->state.waiting--;
  return f;
}

static void remove_waiter(struct sw_flight *f, struct sw_waiter *w)
{
  struct sw_waiter **at = &f->waiters;
  while (*at != w)
    at = &(*at)->next;
  *at = w->next;
  w->flight = NULL;
}

bool sw_queue_leave(struct sw_queue *q, struct sw_waiter *w)
{
  pthread_mutex_lock(&q->lock);
  struct sw_flight *f = w->flight, *gone = NULL;
  if (f) {
    remove_waiter(f, w);
    gone = abandon_locked(q, f);
  }
  pthread_mutex_unlock(&q->lock);
  if (gone)
    free_flight(gone);
  return f;
}

void sw_queue_tick(struct sw_queue *q)
{
  double now = sw_now();
  struct sw_waiter *late = NULL;
  struct sw_flight *gone = NULL, *next;
  pthread_mutex_lock(&q->lock);
  for (struct sw_flight *f = q->flights; f; f = next) {
    next = f->next;
    for (struct sw_waiter *w = f->waiters, *after; w; w = after) {
      after = w->next;
      if (w->deadline > now)
        continue;
      remove_waiter(f, w);
      w->next = late;
      late = w;
    }
    struct sw_flight *over = atomic_load(&f->cancel) ? NULL : abandon_locked(q, f);
    if (over) {
      over->next = gone;
      gone = over;
    }
  }
  pthread_mutex_unlock(&q->lock);
  if (late) {
    struct sw_outcome o = {0};
    sw_outcome_problem(&o, 504, "deadline", "the work was not done by the deadline of the request");
    tell(late, &o);
    sw_outcome_clear(&o);
  }
  while (gone) {
    next = gone->next;
    free_flight(gone);
    gone = next;
  }
}

struct sw_queue_state sw_queue_state(struct sw_queue *q)
{
  pthread_mutex_lock(&q->lock);
  struct sw_queue_state s = q->state;
  pthread_mutex_unlock(&q->lock);
  return s;
}

bool sw_queue_halted(const struct sw_queue *q)
{
  return atomic_load(&q->stop);
}

void sw_queue_halt(struct sw_queue *q)
{
  if (!q)
    return;
  pthread_mutex_lock(&q->lock);
  atomic_store(&q->stop, true);
  for (struct sw_flight *f = q->flights; f; f = f->next)
    atomic_store(&f->cancel, true);
  pthread_cond_broadcast(&q->some);
  pthread_mutex_unlock(&q->lock);
  while (q->n_threads)
    pthread_join(q->threads[--q->n_threads], NULL);
}

void sw_queue_free(struct sw_queue *q)
{
  if (!q)
    return;
  pthread_mutex_destroy(&q->lock);
  pthread_cond_destroy(&q->some);
  free(q->threads);
  free(q);
}
