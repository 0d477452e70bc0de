#include "server/store.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* A list from newest to oldest; some hundreds of results at most, so finding one by walking is fast enough. */
struct sw_store {
  struct sw_result *newest, *oldest;
  size_t bytes, max_bytes;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all stores and all reference counts */

struct sw_store *sw_store_new(size_t max_bytes)
{
  struct sw_store *s = calloc(1, sizeof *s);
  if (s)
    s->max_bytes = max_bytes;
  return s;
}

static void put_locked(struct sw_result *r)
{
  if (--r->references)
    return;
  for (size_t i = 0; i < r->n_files; i++) {
    free(r->files[i].path);
    free(r->files[i].bytes);
  }
  free(r->files);
  free(r->server_timing);
  free(r);
}

static void unlink_locked(struct sw_store *s, struct sw_result *r)
{
  *(r->newer ? &r->newer->older : &s->newest) = r->older;
  *(r->older ? &r->older->newer : &s->oldest) = r->newer;
  s->bytes -= r->bytes;
}

static void link_locked(struct sw_store *s, struct sw_result *r)
{
  r->newer = NULL;
  r->older = s->newest;
  *(s->newest ? &s->newest->newer : &s->oldest) = r;
  s->newest = r;
  s->bytes += r->bytes;
}

static struct sw_result *find_locked(struct sw_store *s, const char *id)
{
  for (struct sw_result *r = s->newest; r; r = r->older)
    if (!strcmp(r->id, id)) {
      unlink_locked(s, r);
      link_locked(s, r);
      r->references++;
      return r;
    }
  return NULL;
}

struct sw_result *sw_store_add(struct sw_store *s, struct sw_result *r)
{
  pthread_mutex_lock(&lock);
  struct sw_result *same = find_locked(s, r->id);
  if (same) {
    put_locked(r);
    r = same;
  } else if (r->bytes <= s->max_bytes) {
    while (s->oldest && s->bytes + r->bytes > s->max_bytes) {
      struct sw_result *old = s->oldest;
      unlink_locked(s, old);
      put_locked(old);
    }
    link_locked(s, r);
    r->references++;
  }
  pthread_mutex_unlock(&lock);
  return r;
}

struct sw_result *sw_store_find(struct sw_store *s, const char *id)
{
  pthread_mutex_lock(&lock);
  struct sw_result *r = find_locked(s, id);
  pthread_mutex_unlock(&lock);
  return r;
}

void sw_result_put(struct sw_result *r)
{
  if (!r)
    return;
  pthread_mutex_lock(&lock);
  put_locked(r);
  pthread_mutex_unlock(&lock);
}

void sw_store_free(struct sw_store *s)
{
  if (!s)
    return;
  while (s->newest) {
    struct sw_result *r = s->newest;
    unlink_locked(s, r);
    sw_result_put(r);
  }
  free(s);
}

const struct sw_result_file *sw_result_find(const struct sw_result *r, const char *path)
{
  for (size_t i = 0; i < r->n_files; i++)
    if (!strcmp(r->files[i].path, path))
      return &r->files[i];
  return NULL;
}
