#define _GNU_SOURCE
#include "server/body.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct sw_body {
  size_t n, most;
  char *bytes; /* NULL once it is in the file */
  size_t cap;
  int fd;
  char head[2], first; /* the first two bytes, and the first that is no blank */
  EVP_MD_CTX *digest;
  struct sw_budget *budget; /* or NULL */
};

bool sw_budget_take(struct sw_budget *b, size_t n)
{
  size_t most = (size_t)*b->most_mb << 20, used = atomic_fetch_add(&b->used, n);
  if (n <= most && used <= most - n)
    return true;
  atomic_fetch_sub(&b->used, n);
  return false;
}

void sw_budget_give(struct sw_budget *b, size_t n)
{
  atomic_fetch_sub(&b->used, n);
}

struct sw_body *sw_body_new(size_t most, struct sw_budget *budget)
{
  struct sw_body *b = calloc(1, sizeof *b);
  EVP_MD_CTX *digest = EVP_MD_CTX_new();
  if (!b || !digest || !EVP_DigestInit_ex(digest, EVP_sha256(), NULL)) {
    EVP_MD_CTX_free(digest);
    free(b);
    return NULL;
  }
  *b = (struct sw_body){.most = most, .fd = -1, .digest = digest, .budget = budget};
  return b;
}

void sw_body_free(struct sw_body *b)
{
  if (!b)
    return;
  if (b->fd >= 0)
    close(b->fd);
  if (b->budget)
    sw_budget_give(b->budget, b->n);
  EVP_MD_CTX_free(b->digest);
  free(b->bytes);
  free(b);
}

static bool write_all(int fd, const char *data, size_t n)
{
  while (n) {
    ssize_t put = write(fd, data, n);
    if (put < 0 && errno != EINTR)
      return false;
    if (put > 0) {
      data += put;
      n -= (size_t)put;
    }
  }
  return true;
}

static int temporary_file(void)
{
  const char *dir = getenv("TMPDIR");
  char name[4096];
  if (snprintf(name, sizeof name, "%s/stickwright-XXXXXX", dir && *dir ? dir : "/tmp") >= (int)sizeof name)
    return -1;
  int fd = mkostemp(name, O_CLOEXEC);
  if (fd >= 0)
    unlink(name);
  return fd;
}

static bool move_to_file(struct sw_body *b)
{
  b->fd = temporary_file();
  if (b->fd < 0 || !write_all(b->fd, b->bytes, b->n))
    return false;
  free(b->bytes);
  b->bytes = NULL;
  return true;
}

static bool reserve(struct sw_body *b, size_t n)
{
  if (n <= b->cap)
    return true;
  size_t cap = b->cap ? b->cap : 4096;
  while (cap < n)
    cap *= 2;
  char *bytes = realloc(b->bytes, cap);
  if (!bytes)
    return false;
  b->bytes = bytes;
  b->cap = cap;
  return true;
}

static void look(struct sw_body *b, const char *data, size_t n)
{
  for (size_t i = b->n; i < sizeof b->head && i < b->n + n; i++)
    b->head[i] = data[i - b->n];
  for (size_t i = 0; i < n && !b->first; i++)
    b->first = data[i] == ' ' || data[i] == '\t' || data[i] == '\r' || data[i] == '\n' ? 0 : data[i];
}

enum sw_body_form sw_body_form(const struct sw_body *b)
{
  return !memcmp(b->head, "PK", sizeof b->head) ? SW_BODY_ARCHIVE : b->first == '{' ? SW_BODY_OBJECT : SW_BODY_OTHER;
}

enum sw_body_rc sw_body_add(struct sw_body *b, const void *data, size_t n)
{
  if (n > b->most - b->n)
    return SW_BODY_TOO_LARGE;
  if (b->budget && !sw_budget_take(b->budget, n))
    return SW_BODY_NO_ROOM;
  EVP_DigestUpdate(b->digest, data, n);
  look(b, data, n);
  bool ok = b->fd >= 0 || b->n + n <= SW_BODY_IN_MEMORY || move_to_file(b);
  if (!ok || (b->fd >= 0 ? !write_all(b->fd, data, n) : !reserve(b, b->n + n))) {
    if (b->budget)
      sw_budget_give(b->budget, n);
    return SW_BODY_IO;
  }
  if (b->fd < 0)
    memcpy(b->bytes + b->n, data, n);
  b->n += n;
  return SW_BODY_OK;
}

size_t sw_body_bytes(const struct sw_body *b)
{
  return b->n;
}

bool sw_body_digest(const struct sw_body *b, const char *text, size_t len, char out[65])
{
  unsigned char sum[EVP_MAX_MD_SIZE];
  unsigned n = 0;
  EVP_MD_CTX *digest = EVP_MD_CTX_new();
  bool ok = digest && EVP_MD_CTX_copy_ex(digest, b->digest) && EVP_DigestUpdate(digest, text, len) &&
            EVP_DigestFinal_ex(digest, sum, &n);
  EVP_MD_CTX_free(digest);
  if (!ok)
    return false;
  static const char hex[] = "0123456789abcdef";
  for (unsigned i = 0; i < 32; i++) {
    out[2 * i] = hex[sum[i] >> 4];
    out[2 * i + 1] = hex[sum[i] & 15];
  }
  out[64] = 0;
  return true;
}

int sw_body_open(const struct sw_body *b)
{
  int fd = b->fd >= 0 ? fcntl(b->fd, F_DUPFD_CLOEXEC, 3) : memfd_create("body", MFD_CLOEXEC);
  if (fd < 0 || ((b->fd >= 0 || write_all(fd, b->bytes, b->n)) && lseek(fd, 0, SEEK_SET) == 0))
    return fd;
  close(fd);
  return -1;
}

static bool copy(int from, int to)
{
  char piece[1 << 16];
  ssize_t n;
  while ((n = read(from, piece, sizeof piece)) > 0)
    if (!write_all(to, piece, (size_t)n))
      return false;
  return !n;
}

static bool save(const struct sw_body *b, const char *path, const char *behind)
{
  int to = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600), from = sw_body_open(b);
  bool ok = to >= 0 && from >= 0 && copy(from, to) && write_all(to, behind, strlen(behind));
  if (from >= 0)
    close(from);
  if (to >= 0 && close(to))
    ok = false;
  if (!ok)
    unlink(path);
  return ok;
}

bool sw_body_save(const struct sw_body *b, const char *path)
{
  return save(b, path, "");
}

enum { DIGEST = 64 };

bool sw_body_keep(const struct sw_body *b, const char *path)
{
  char digest[DIGEST + 1];
  return sw_body_digest(b, "", 0, digest) && save(b, path, digest);
}

/* Takes n bytes from the file. */
static bool take(struct sw_body *b, int from, off_t n)
{
  char piece[1 << 16];
  while (n > 0) {
    ssize_t got = read(from, piece, n < (off_t)sizeof piece ? (size_t)n : sizeof piece);
    if (got <= 0 || sw_body_add(b, piece, (size_t)got) != SW_BODY_OK)
      return false;
    n -= got;
  }
  return true;
}

struct sw_body *sw_body_load(const char *path)
{
  struct stat about;
  char kept[DIGEST], digest[DIGEST + 1];
  int from = open(path, O_RDONLY | O_CLOEXEC);
  struct sw_body *b = from < 0 ? NULL : sw_body_new(SIZE_MAX, NULL);
  bool ok = b && !fstat(from, &about) && about.st_size >= DIGEST && take(b, from, about.st_size - DIGEST) &&
            read(from, kept, DIGEST) == DIGEST && sw_body_digest(b, "", 0, digest) && !memcmp(kept, digest, DIGEST);
  if (from >= 0)
    close(from);
  if (ok)
    return b;
  sw_body_free(b);
  return NULL;
}

struct sw_body *sw_body_again(const struct sw_body *b)
{
  struct sw_body *c = sw_body_new(b->most, NULL);
  if (!c)
    return NULL;
  c->n = b->n;
  memcpy(c->head, b->head, sizeof c->head);
  c->first = b->first;
  if (b->fd >= 0) { /* opened anew: it has a position of its own */
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", b->fd);
    c->fd = open(path, O_RDONLY | O_CLOEXEC);
  }
  bool ok = EVP_MD_CTX_copy_ex(c->digest, b->digest) && (b->fd >= 0 ? c->fd >= 0 : reserve(c, b->n ? b->n : 1));
  if (ok && b->fd < 0 && b->n)
    memcpy(c->bytes, b->bytes, b->n);
  if (ok)
    return c;
  sw_body_free(c);
  return NULL;
}
