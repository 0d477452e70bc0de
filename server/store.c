#include "server/store.h"

#include "server/clock.h"
#include "server/disk.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* A list from newest to oldest, and chains by the first three digits of the address, which are as good as random. */
enum { N_CHAINS = 4096 };

struct sw_store {
  struct sw_result *newest, *oldest;
  struct sw_result *chains[N_CHAINS];
  size_t bytes, max_bytes;
  struct sw_disk *disk;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all stores and all reference counts */

/* -- one result -- */

struct sw_result *sw_result_new(const char *id)
{
  struct sw_result *r = calloc(1, sizeof *r);
  if (!r)
    return NULL;
  r->references = 1;
  memcpy(r->id, id, SW_ID_LEN);
  return r;
}

bool sw_result_add_file(struct sw_result *r, const char *path, const void *bytes, size_t len)
{
  struct sw_result_file *more = realloc(r->files, (r->n_files + 1) * sizeof *more);
  if (!more)
    return false;
  r->files = more;
  struct sw_result_file *f = &more[r->n_files++];
  *f = (struct sw_result_file){strdup(path), malloc(len + 1), len, {{0}}};
  if (!f->path || !f->bytes)
    return false;
  if (len)
    memcpy(f->bytes, bytes, len);
  f->bytes[len] = 0;
  r->bytes += len;
  return true;
}

const struct sw_result_file *sw_result_find(const struct sw_result *r, const char *path)
{
  for (size_t i = 0; i < r->n_files; i++)
    if (!strcmp(r->files[i].path, path))
      return &r->files[i];
  return NULL;
}

const char *sw_result_coded(const struct sw_result_file *f, enum sw_coding c, size_t *len)
{
  struct sw_coded *coded = &((struct sw_result_file *)(uintptr_t)f)->coded[c];
  if (!coded->tried) {
    coded->tried = true;
    coded->bytes = sw_compress(c, f->bytes, f->len, &coded->len);
  }
  *len = coded->len;
  return coded->bytes;
}

void sw_result_take(struct sw_result *r)
{
  pthread_mutex_lock(&lock);
  r->references++;
  pthread_mutex_unlock(&lock);
}

static void put_locked(struct sw_result *r)
{
  if (--r->references)
    return;
  for (size_t i = 0; i < r->n_files; i++) {
    free(r->files[i].path);
    free(r->files[i].bytes);
    for (int c = 0; c < SW_N_CODINGS; c++)
      free(r->files[i].coded[c].bytes);
  }
  free(r->files);
  free(r->server_timing);
  free(r);
}

void sw_result_put(struct sw_result *r)
{
  if (!r)
    return;
  pthread_mutex_lock(&lock);
  put_locked(r);
  pthread_mutex_unlock(&lock);
}

/* -- the store -- */

struct sw_store *sw_store_new(size_t max_bytes, struct sw_disk *disk)
{
  struct sw_store *s = calloc(1, sizeof *s);
  if (s) {
    s->max_bytes = max_bytes;
    s->disk = disk;
  }
  return s;
}

static struct sw_result **chain_of(struct sw_store *s, const char *id)
{
  char digits[4] = {id[0], id[1], id[2], 0};
  return &s->chains[strtoul(digits, NULL, 16) % N_CHAINS];
}

static void unlink_locked(struct sw_store *s, struct sw_result *r)
{
  *(r->newer ? &r->newer->older : &s->newest) = r->older;
  *(r->older ? &r->older->newer : &s->oldest) = r->newer;
}

static void link_locked(struct sw_store *s, struct sw_result *r)
{
  r->newer = NULL;
  r->older = s->newest;
  *(s->newest ? &s->newest->newer : &s->oldest) = r;
  s->newest = r;
}

static void drop_locked(struct sw_store *s, struct sw_result *r)
{
  struct sw_result **at = chain_of(s, r->id);
  while (*at != r)
    at = &(*at)->chain;
  *at = r->chain;
  unlink_locked(s, r);
  s->bytes -= r->bytes;
  put_locked(r);
}

static struct sw_result *find_locked(struct sw_store *s, const char *id)
{
  struct sw_result *r = *chain_of(s, id);
  while (r && strcmp(r->id, id))
    r = r->chain;
  if (!r)
    return NULL;
  if (r != s->newest) {
    unlink_locked(s, r);
    link_locked(s, r);
  }
  r->references++;
  return r;
}

static struct sw_result *add_to_memory(struct sw_store *s, struct sw_result *r)
{
  pthread_mutex_lock(&lock);
  struct sw_result *same = find_locked(s, r->id);
  if (same) {
    put_locked(r);
    r = same;
  } else if (r->bytes <= s->max_bytes) {
    while (s->oldest && s->bytes + r->bytes > s->max_bytes)
      drop_locked(s, s->oldest);
    struct sw_result **chain = chain_of(s, r->id);
    r->chain = *chain;
    *chain = r;
    link_locked(s, r);
    s->bytes += r->bytes;
    r->references++;
  }
  pthread_mutex_unlock(&lock);
  return r;
}

struct sw_result *sw_store_add(struct sw_store *s, struct sw_result *r)
{
  if (s->disk)
    sw_disk_put(s->disk, r);
  return add_to_memory(s, r);
}

/* Whether the disk should hear of this use: once a minute is enough to tell what is used from what is not. */
static bool note_use(struct sw_result *r)
{
  double now = sw_now();
  pthread_mutex_lock(&lock);
  bool due = now - r->touched > 60;
  if (due)
    r->touched = now;
  pthread_mutex_unlock(&lock);
  return due;
}

struct sw_result *sw_store_find(struct sw_store *s, const char *id)
{
  pthread_mutex_lock(&lock);
  struct sw_result *r = find_locked(s, id);
  pthread_mutex_unlock(&lock);
  if (!s->disk)
    return r;
  if (!r && (r = sw_disk_get(s->disk, id)))
    r = add_to_memory(s, r);
  if (r && note_use(r))
    sw_disk_touch(s->disk, id);
  return r;
}

size_t sw_store_bytes(const struct sw_store *s)
{
  pthread_mutex_lock(&lock);
  size_t n = s->bytes;
  pthread_mutex_unlock(&lock);
  return n;
}

void sw_store_free(struct sw_store *s)
{
  if (!s)
    return;
  pthread_mutex_lock(&lock);
  while (s->newest)
    drop_locked(s, s->newest);
  pthread_mutex_unlock(&lock);
  free(s);
}
