#define _GNU_SOURCE
#include "server/disk_inside.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* `used` counts uses, not seconds, so a clock that jumps does not matter. Files stand in their result's order. */
static const char schema[] =
    "CREATE TABLE IF NOT EXISTS results(id TEXT PRIMARY KEY, bytes INTEGER, used INTEGER, timing TEXT) WITHOUT ROWID;"
    "CREATE INDEX IF NOT EXISTS results_by_use ON results(used);"
    "CREATE TABLE IF NOT EXISTS files(result TEXT, place INTEGER, path TEXT, digest BLOB, bytes BLOB,"
    " PRIMARY KEY(result, place));"
    "CREATE TABLE IF NOT EXISTS jobs(number INTEGER PRIMARY KEY, id TEXT UNIQUE, address TEXT, state TEXT, slug TEXT,"
    " detail TEXT, errors TEXT, status INTEGER, args BLOB, starts INTEGER);"
    "CREATE TABLE IF NOT EXISTS studies(number INTEGER PRIMARY KEY, id TEXT UNIQUE, state TEXT, name TEXT, slug TEXT,"
    " detail TEXT, errors TEXT, status INTEGER, runs INTEGER, done INTEGER, compiled INTEGER, starts INTEGER);"
    "CREATE TABLE IF NOT EXISTS study_parts(study TEXT, name TEXT, digest BLOB, bytes BLOB,"
    " PRIMARY KEY(study, name)) WITHOUT ROWID;";

enum { FORMAT = 1 };

/* -- transactions -- */

static bool begin_locked(struct sw_disk *d)
{
  d->before = d->state;
  return sw_sql_run(d->writes.db, "BEGIN IMMEDIATE");
}

bool sw_disk_begin(struct sw_disk *d)
{
  pthread_mutex_lock(&d->writes.lock);
  return begin_locked(d);
}

bool sw_disk_end(struct sw_disk *d, bool ok)
{
  ok = ok && sw_sql_run(d->writes.db, "COMMIT");
  if (!ok) {
    if (!sqlite3_get_autocommit(d->writes.db))
      sw_sql_run(d->writes.db, "ROLLBACK");
    d->state = d->before;
    d->state.failed_writes++;
  }
  sw_disk_show(d);
  pthread_mutex_unlock(&d->writes.lock);
  return ok;
}

void sw_disk_show(struct sw_disk *d)
{
  pthread_mutex_lock(&d->quick);
  d->shown = d->state;
  pthread_mutex_unlock(&d->quick);
}

/* -- opening -- */

static bool open_side(struct sw_disk_side *s, const char *path, const char *pragmas)
{
  pthread_mutex_init(&s->lock, NULL);
  if (sqlite3_open_v2(path, &s->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL) != SQLITE_OK)
    return false;
  sqlite3_busy_timeout(s->db, 5000);
  return sw_sql_run(s->db, pragmas);
}

/* One daemon a store. A daemon that was killed while it started a worker leaves the lock with that child for the moment
 * until its exec: so look again for a while. */
static bool lock_store(struct sw_disk *d)
{
  char *name = NULL;
  if (asprintf(&name, "%s.lock", d->path) < 0)
    return false;
  d->lock_fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  free(name);
  bool locked = false;
  for (int i = 0; i < 20 && d->lock_fd >= 0 && !(locked = !flock(d->lock_fd, LOCK_EX | LOCK_NB)); i++)
    usleep(100000);
  return locked;
}

struct sw_disk *sw_disk_open(const char *path, size_t max_bytes)
{
  struct sw_disk *d = calloc(1, sizeof *d);
  const char *why = "out of memory";
  if (!d || !(d->path = strdup(path)))
    goto fail;
  pthread_mutex_init(&d->quick, NULL);
  d->lock_fd = -1;
  d->max_bytes = max_bytes;
  why = "it can't be written, or another daemon has it open";
  if (!lock_store(d))
    goto fail;
  why = "it can't be opened";
  if (!open_side(&d->writes, path, "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;"
                                   " PRAGMA journal_size_limit=67108864")) /* after a large result too */
    goto fail;
  int64_t format = sw_sql_number(d->writes.db, "PRAGMA user_version");
  why = "it was written by another version";
  if (format && format != FORMAT)
    goto fail;
  why = "its tables can't be made";
  if (!sw_sql_run(d->writes.db, schema) || !sw_sql_run(d->writes.db, "PRAGMA user_version=1") ||
      !open_side(&d->reads, path, "PRAGMA query_only=1"))
    goto fail;
  char *bodies = NULL;
  if (asprintf(&bodies, "%s.bodies", path) < 0)
    goto fail;
  mkdir(bodies, 0700);
  free(bodies);
  d->use = sw_sql_number(d->writes.db, "SELECT max(used) FROM results");
  d->state.results = (long)sw_sql_number(d->writes.db, "SELECT count(*) FROM results");
  d->state.bytes = (long)sw_sql_number(d->writes.db, "SELECT total(bytes) FROM results");
  sw_disk_show(d);
  return d;
fail:
  fprintf(stderr, "stickwrightd: store %s: %s\n", path, why);
  sw_disk_close(d);
  return NULL;
}

/* In a transaction. What can't be written is forgotten: it only says what was used last. */
static bool write_touched(struct sw_disk *d)
{
  char ids[SW_DISK_MAX_TOUCHED][SW_ID_LEN + 1];
  bool ok = true;
  pthread_mutex_lock(&d->quick);
  int n = d->n_touched;
  memcpy(ids, d->touched, sizeof ids);
  d->n_touched = 0;
  pthread_mutex_unlock(&d->quick);
  for (int i = 0; i < n && ok; i++)
    ok = sw_sql_do(d->writes.db, "UPDATE results SET used = ? WHERE id = ?", "is", ++d->use, ids[i]);
  return ok;
}

void sw_disk_close(struct sw_disk *d)
{
  if (!d)
    return;
  if (d->n_touched)
    sw_disk_end(d, sw_disk_begin(d) && write_touched(d));
  sqlite3_close(d->reads.db);
  sqlite3_close(d->writes.db);
  if (d->lock_fd >= 0)
    close(d->lock_fd);
  free(d->path);
  free(d);
}

/* -- results -- */

void sw_disk_digest(const void *p, size_t n, unsigned char out[EVP_MAX_MD_SIZE])
{
  EVP_Digest(n ? p : "", n, out, NULL, EVP_sha256(), NULL);
}

bool sw_disk_digest_fits(sqlite3_stmt *st, int column, const void *p, size_t n)
{
  unsigned char digest[EVP_MAX_MD_SIZE];
  sw_disk_digest(p, n, digest);
  return sqlite3_column_bytes(st, column) == SW_DIGEST_LEN && !memcmp(digest, sqlite3_column_blob(st, column), SW_DIGEST_LEN);
}

/* Of what another thread has dropped meanwhile nothing is left to count. */
static bool drop(struct sw_disk *d, const char *id, int64_t bytes)
{
  bool ok = sw_sql_do(d->writes.db, "DELETE FROM files WHERE result = ?", "s", id) &&
            sw_sql_do(d->writes.db, "DELETE FROM results WHERE id = ?", "s", id);
  if (ok && sqlite3_changes(d->writes.db)) {
    d->state.bytes -= bytes;
    d->state.results--;
  }
  return ok;
}

/* Until `more` bytes fit under the limit. */
static bool make_room(struct sw_disk *d, size_t more)
{
  bool ok = true;
  while (ok && (size_t)d->state.bytes + more > d->max_bytes) {
    sqlite3_stmt *st = sw_sql_prepare(d->writes.db, "SELECT id, bytes FROM results ORDER BY used LIMIT 1", "");
    if (!sw_sql_row(st)) {
      sqlite3_finalize(st);
      return false;
    }
    char id[SW_ID_LEN + 1];
    snprintf(id, sizeof id, "%s", (const char *)sqlite3_column_text(st, 0));
    int64_t bytes = sqlite3_column_int64(st, 1);
    sqlite3_finalize(st);
    ok = drop(d, id, bytes);
  }
  return ok;
}

static bool put_files(struct sw_disk *d, const struct sw_result *r)
{
  for (size_t i = 0; i < r->n_files; i++) {
    const struct sw_result_file *f = &r->files[i];
    unsigned char digest[EVP_MAX_MD_SIZE];
    sw_disk_digest(f->bytes, f->len, digest);
    if (!sw_sql_do(d->writes.db, "INSERT INTO files VALUES(?,?,?,?,?)", "sisbb", r->id, (int64_t)i, f->path, digest,
                      (size_t)SW_DIGEST_LEN, f->bytes, f->len))
      return false;
  }
  return true;
}

static bool knows(struct sw_disk *d, const char *id)
{
  sqlite3_stmt *st = sw_sql_prepare(d->writes.db, "SELECT 1 FROM results WHERE id = ?", "s", id);
  bool there = sw_sql_row(st);
  sqlite3_finalize(st);
  return there;
}

bool sw_disk_put(struct sw_disk *d, const struct sw_result *r)
{
  if (r->bytes > d->max_bytes)
    return false;
  bool ok = sw_disk_begin(d);
  if (ok && knows(d, r->id))
    return sw_disk_end(d, true);
  ok = ok && write_touched(d) && make_room(d, r->bytes) && put_files(d, r) &&
       sw_sql_do(d->writes.db, "INSERT INTO results VALUES(?,?,?,?)", "siis", r->id, (int64_t)r->bytes, ++d->use,
                    r->server_timing);
  d->state.bytes += (long)r->bytes;
  d->state.results++;
  return sw_disk_end(d, ok);
}

/* The files of a result; false when one is not what was written, or memory is short. */
static bool read_files(sqlite3 *db, struct sw_result *r)
{
  sqlite3_stmt *st = sw_sql_prepare(db, "SELECT path, digest, bytes FROM files WHERE result = ? ORDER BY place", "s", r->id);
  bool ok = st;
  while (ok && sw_sql_row(st)) {
    const void *bytes = sqlite3_column_blob(st, 2);
    size_t n = (size_t)sqlite3_column_bytes(st, 2);
    const char *path = (const char *)sqlite3_column_text(st, 0);
    ok = path && sw_disk_digest_fits(st, 1, bytes, n) && sw_result_add_file(r, path, bytes, n);
  }
  if (ok && sqlite3_errcode(db) != SQLITE_DONE)
    ok = false; /* the database itself is damaged here */
  sqlite3_finalize(st);
  return ok;
}

static void drop_damaged(struct sw_disk *d, const char *id, int64_t bytes)
{
  fprintf(stderr, "{\"store\":\"result %s is damaged and was dropped\"}\n", id);
  bool ok = sw_disk_begin(d);
  d->before.damaged = ++d->state.damaged; /* it is, whatever becomes of the transaction */
  sw_disk_end(d, ok && drop(d, id, bytes));
}

struct sw_result *sw_disk_get(struct sw_disk *d, const char *id)
{
  struct sw_result *r = NULL;
  bool whole = true;
  int64_t bytes = 0;
  pthread_mutex_lock(&d->reads.lock);
  sqlite3_stmt *st = sw_sql_prepare(d->reads.db, "SELECT bytes, timing FROM results WHERE id = ?", "s", id);
  if (sw_sql_row(st) && (r = sw_result_new(id))) {
    const char *timing = (const char *)sqlite3_column_text(st, 1);
    bytes = sqlite3_column_int64(st, 0);
    r->server_timing = timing ? strdup(timing) : NULL;
    whole = read_files(d->reads.db, r) && r->bytes == (size_t)bytes;
  }
  sqlite3_finalize(st);
  pthread_mutex_unlock(&d->reads.lock);
  if (whole)
    return r;
  drop_damaged(d, id, bytes);
  sw_result_put(r);
  return NULL;
}

void sw_disk_touch(struct sw_disk *d, const char *id)
{
  pthread_mutex_lock(&d->quick);
  if (d->n_touched < SW_DISK_MAX_TOUCHED)
    memcpy(d->touched[d->n_touched++], id, SW_ID_LEN);
  bool full = d->n_touched == SW_DISK_MAX_TOUCHED;
  pthread_mutex_unlock(&d->quick);
  if (!full || pthread_mutex_trylock(&d->writes.lock)) /* else who writes now, or next, writes them down too */
    return;
  sw_disk_end(d, begin_locked(d) && write_touched(d));
}

struct sw_disk_state sw_disk_state(struct sw_disk *d)
{
  pthread_mutex_lock(&d->quick);
  struct sw_disk_state s = d->shown;
  pthread_mutex_unlock(&d->quick);
  return s;
}

