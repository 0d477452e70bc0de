#define _XOPEN_SOURCE 700
#include "base/files.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void sw_files_add(struct sw_job *job, struct sw_files *fs, const char *path, const void *bytes, size_t len)
{
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

/* Makes the directories above path[from..]. */
static int make_parents(char *path, size_t from)
{
  for (char *s = path + from; *s; s++)
    if (*s == '/') {
      *s = 0;
      int bad = mkdir(path, 0777) && errno != EEXIST;
      *s = '/';
      if (bad)
        return -1;
    }
  return 0;
}

static int write_one(const char *path, const void *bytes, size_t len)
{
  FILE *f = fopen(path, "wb");
  if (!f)
    return -1;
  bool ok = fwrite(bytes, 1, len, f) == len;
  ok = !fflush(f) && ok;
  return !fclose(f) && ok ? 0 : -1;
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

enum sw_rc sw_files_write(struct sw_job *job, const struct sw_files *fs, const char *dir, const char *marker)
{
  size_t n = strlen(dir);
  while (n > 1 && dir[n - 1] == '/')
    n--;
  char *final = sw_arena_strndup(job->arena, dir, n);
  struct stat st;
  bool exists = !lstat(final, &st);
  if (exists && !S_ISDIR(st.st_mode))
    return sw_fail(job, SW_IO, "%s: exists and is not a directory", final);
  if (exists && access(sw_arena_printf(job->arena, "%s/%s", final, marker), F_OK) && rmdir(final))
    return sw_fail(job, SW_IO, "%s: exists and is not an earlier result (it has no %s); remove it or choose another",
                   final, marker);
  char *temp = sw_arena_printf(job->arena, "%s.tmpXXXXXX", final);
  if (!mkdtemp(temp))
    return sw_fail(job, SW_IO, "%s: %s", final, strerror(errno));
  struct sw_arena *scratch = sw_arena_new(job->arena, 0);
  sw_arena_defer(scratch, remove_tree, temp); /* after the rename there is nothing to remove */
  enum sw_rc rc = chmod(temp, 0755) ? sw_fail(job, SW_IO, "%s: %s", temp, strerror(errno)) : SW_OK;
  for (int i = 0; i < fs->list.n && rc == SW_OK; i++) {
    const struct sw_file *f = &fs->list.v[i];
    char *path = sw_arena_printf(scratch, "%s/%s", temp, f->path);
    if (make_parents(path, strlen(temp) + 1) || write_one(path, f->bytes, f->len))
      rc = sw_fail(job, SW_IO, "%s/%s: %s", final, f->path, strerror(errno));
  }
  if (rc == SW_OK) {
    if (exists)
      remove_tree(final);
    if (rename(temp, final))
      rc = sw_fail(job, SW_IO, "%s: %s", final, strerror(errno));
  }
  sw_arena_free(scratch);
  return rc;
}
