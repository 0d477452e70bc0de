#include "server/queue.h"

#include <pthread.h>
#include <stdlib.h>

struct item {
  struct item *next;
  const struct sw_work *work;
  void (*done)(void *, struct sw_work_result *);
  void *ctx;
};

struct sw_queue {
  struct sw_limits limits;
  pthread_mutex_t lock;
  pthread_cond_t some;
  struct item *first, **last;
  long waiting;
  atomic_bool stop;
  pthread_t *threads;
  long n_threads;
};

static void *serve(void *p)
{
  struct sw_queue *q = p;
  for (;;) {
    pthread_mutex_lock(&q->lock);
    while (!q->first && !atomic_load(&q->stop))
      pthread_cond_wait(&q->some, &q->lock);
    struct item *it = q->first;
    if (it) {
      q->first = it->next;
      if (!q->first)
        q->last = &q->first;
      q->waiting--;
    }
    pthread_mutex_unlock(&q->lock);
    if (!it)
      return NULL;
    struct sw_work_result r;
    sw_worker_run(it->work, &q->limits, &q->stop, &r);
    it->done(it->ctx, &r);
    free(it);
  }
}

struct sw_queue *sw_queue_new(const struct sw_limits *limits)
{
  struct sw_queue *q = calloc(1, sizeof *q);
  pthread_t *threads = calloc((size_t)limits->workers, sizeof *threads);
  if (!q || !threads) {
    free(q);
    free(threads);
    return NULL;
  }
  q->limits = *limits;
  q->last = &q->first;
  q->threads = threads;
  pthread_mutex_init(&q->lock, NULL);
  pthread_cond_init(&q->some, NULL);
  for (; q->n_threads < limits->workers; q->n_threads++)
    if (pthread_create(&threads[q->n_threads], NULL, serve, q)) {
      sw_queue_stop(q);
      return NULL;
    }
  return q;
}

bool sw_queue_add(struct sw_queue *q, const struct sw_work *work, void (*done)(void *, struct sw_work_result *),
                  void *ctx)
{
  struct item *it = calloc(1, sizeof *it);
  if (!it)
    return false;
  *it = (struct item){NULL, work, done, ctx};
  pthread_mutex_lock(&q->lock);
  bool ok = !atomic_load(&q->stop) && q->waiting < q->limits.queue;
  if (ok) {
    *q->last = it;
    q->last = &it->next;
    q->waiting++;
    pthread_cond_signal(&q->some);
  }
  pthread_mutex_unlock(&q->lock);
  if (!ok)
    free(it);
  return ok;
}

void sw_queue_stop(struct sw_queue *q)
{
  if (!q)
    return;
  pthread_mutex_lock(&q->lock);
  atomic_store(&q->stop, true);
  pthread_cond_broadcast(&q->some);
  pthread_mutex_unlock(&q->lock);
  for (long i = 0; i < q->n_threads; i++)
    pthread_join(q->threads[i], NULL);
  pthread_mutex_destroy(&q->lock);
  pthread_cond_destroy(&q->some);
  free(q->threads);
  free(q);
}
