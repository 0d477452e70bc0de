#define _XOPEN_SOURCE 700
#include "base/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void write_now(struct sw_files_dir *d, const char *path, const void *bytes, size_t len);

void sw_files_add(struct sw_job *job, struct sw_files *fs, const char *path, const void *bytes, size_t len)
{
  if (fs->dir) {
    write_now(fs->dir, path, bytes, len);
    return;
  }
  struct sw_file *f = SW_PUSH(job->arena, &fs->list);
  f->path = sw_arena_strdup(job->arena, path);
  f->bytes = bytes;
  f->len = len;
}

static void close_fd(void *p)
{
  int fd = (int)(intptr_t)p;
  if (fd > STDERR_FILENO)
    close(fd);
}

enum sw_rc sw_file_read(struct sw_job *job, const char *path, size_t max_bytes, const char **bytes, size_t *len)
{
  struct sw_arena *scratch = sw_arena_new(job->arena, 0);
  int fd = strcmp(path, "-") ? open(path, O_RDONLY | O_CLOEXEC) : STDIN_FILENO;
  if (fd < 0) {
    int why = errno;
    sw_arena_free(scratch);
    return sw_fail(job, SW_NO_INPUT, "%s: %s", path, strerror(why));
  }
  sw_arena_defer(scratch, close_fd, (void *)(intptr_t)fd);
  struct stat st;
  /* One more than the size and the NUL, so that the end is seen before there is need to grow. */
  size_t cap = !fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_size > 0 ? (size_t)st.st_size + 2 : 1 << 16;
  if (cap - 2 > max_bytes && S_ISREG(st.st_mode)) {
    sw_arena_free(scratch);
    return sw_fail(job, SW_LIMIT, "%s: %zu bytes, limit %zu", path, cap - 2, max_bytes);
  }
  char *p = sw_arena_alloc(job->arena, cap, 1);
  size_t n = 0;
  for (;;) {
    ssize_t got = read(fd, p + n, cap - 1 - n);
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0) {
      int why = errno;
      sw_arena_free(scratch);
      return sw_fail(job, SW_IO, "%s: %s", path, strerror(why));
    }
    n += (size_t)got;
    if (!got)
      break;
    if (n > max_bytes) {
      sw_arena_free(scratch);
      return sw_fail(job, SW_LIMIT, "%s: more than %zu bytes", path, max_bytes);
    }
    if (n == cap - 1) {
      char *q = sw_arena_alloc(job->arena, cap * 2, 1);
      memcpy(q, p, n);
      p = q;
      cap *= 2;
    }
  }
  sw_arena_free(scratch);
  p[n] = 0;
  *bytes = p;
  *len = n;
  return SW_OK;
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
  (void)st, (void)kind, (void)at;
  return remove(path);
}

static void remove_tree(void *path)
{
  nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static int write_one(const char *path, const void *bytes, size_t len)
{
  int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  const char *p = bytes;
  while (fd >= 0 && len) {
    ssize_t n = write(fd, p, len);
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0)
      break;
    p += n;
    len -= (size_t)n;
  }
  int why = errno;
  if (fd >= 0 && close(fd) && !len)
    return -1;
  errno = why;
  return fd >= 0 && !len ? 0 : -1;
}

enum sw_rc sw_file_put(struct sw_job *job, const char *path, const void *bytes, size_t len)
{
  const char *temp = sw_arena_printf(job->arena, "%s.%ld", path, (long)getpid());
  if (!write_one(temp, bytes, len) && !rename(temp, path))
    return SW_OK;
  int why = errno;
  unlink(temp);
  return sw_fail(job, SW_IO, "%s: can't be written: %s", path, strerror(why));
}

/* -- a set as a directory -- */

struct sw_files_dir {
  struct sw_arena *arena; /* of its own: freeing it removes what was not renamed */
  char *final, *temp;
  char *folder; /* that a file was last written to: it exists */
  bool exists, is_made, is_nowhere;
  const char *fault; /* the first one */
};

static bool is_empty(const char *path)
{
  DIR *dir = opendir(path);
  const struct dirent *e;
  int n = 0;
  while (dir && (e = readdir(dir)))
    n += strcmp(e->d_name, ".") && strcmp(e->d_name, "..");
  if (dir)
    closedir(dir);
  return dir && !n;
}

struct sw_files_dir *sw_files_dir(struct sw_job *job, const char *path, const char *marker)
{
  size_t n = strlen(path);
  while (n > 1 && path[n - 1] == '/')
    n--;
  struct sw_arena *a = sw_arena_new(job->arena, 0);
  struct sw_files_dir *d = SW_NEW(a, struct sw_files_dir);
  d->arena = a;
  d->final = sw_arena_strndup(a, path, n);
  d->temp = sw_arena_printf(a, "%s.tmpXXXXXX", d->final);
  d->folder = sw_arena_strdup(a, "");
  struct stat st;
  d->exists = !lstat(d->final, &st);
  if (d->exists && !S_ISDIR(st.st_mode)) {
    sw_fail(job, SW_IO, "%s: exists and is not a directory", d->final);
    return NULL;
  }
  if (d->exists && access(sw_arena_printf(a, "%s/%s", d->final, marker), F_OK) && !is_empty(d->final)) {
    sw_fail(job, SW_IO, "%s: exists and is not an earlier result (it has no %s); remove it or choose another", d->final,
            marker);
    return NULL;
  }
  return d;
}

struct sw_files_dir *sw_files_nowhere(struct sw_job *job)
{
  struct sw_files_dir *d = SW_NEW(job->arena, struct sw_files_dir);
  d->is_nowhere = true;
  return d;
}

static void remember(struct sw_files_dir *d, const char *path)
{
  if (!d->fault)
    d->fault = sw_arena_printf(d->arena, "%s%s%s: %s", d->final, *path ? "/" : "", path, strerror(errno));
}

static bool make_temp(struct sw_files_dir *d)
{
  if (!mkdtemp(d->temp))
    return false;
  d->is_made = true;
  sw_arena_defer(d->arena, remove_tree, d->temp); /* after the rename there is nothing to remove */
  return !chmod(d->temp, 0755);
}

/* Makes the folders above path[from..]. */
static bool make_parents(char *path, size_t from)
{
  for (char *s = path + from; *s; s++)
    if (*s == '/') {
      *s = 0;
      bool bad = mkdir(path, 0777) && errno != EEXIST;
      *s = '/';
      if (bad)
        return false;
    }
  return true;
}

static void write_now(struct sw_files_dir *d, const char *path, const void *bytes, size_t len)
{
  if (d->fault || d->is_nowhere)
    return;
  const char *slash = strrchr(path, '/');
  size_t n = slash ? (size_t)(slash - path) : 0;
  struct sw_arena *scratch = sw_arena_new(d->arena, 0);
  bool ok = d->is_made || make_temp(d);
  char *full = sw_arena_printf(scratch, "%s/%s", d->temp, path);
  if (ok && (strlen(d->folder) != n || memcmp(d->folder, path, n))) {
    ok = make_parents(full, strlen(d->temp) + 1);
    d->folder = sw_arena_strndup(d->arena, path, n);
  }
  if (!ok || write_one(full, bytes, len))
    remember(d, path);
  sw_arena_free(scratch);
}

enum sw_rc sw_files_close(struct sw_job *job, struct sw_files_dir *d)
{
  if (!d->fault && !d->is_made && !make_temp(d))
    remember(d, "");
  if (!d->fault && d->exists)
    remove_tree(d->final);
  if (!d->fault && rename(d->temp, d->final))
    remember(d, "");
  enum sw_rc rc = d->fault ? sw_fail(job, SW_IO, "%s", d->fault) : SW_OK;
  sw_arena_free(d->arena);
  return rc;
}

enum sw_rc sw_files_write(struct sw_job *job, const struct sw_files *fs, const char *dir, const char *marker)
{
  struct sw_files_dir *d = sw_files_dir(job, dir, marker);
  if (!d)
    return job->worst;
  for (int i = 0; i < fs->list.n; i++)
    write_now(d, fs->list.v[i].path, fs->list.v[i].bytes, fs->list.v[i].len);
  return sw_files_close(job, d);
}
