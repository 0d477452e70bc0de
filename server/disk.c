#define _GNU_SOURCE
#include "server/disk.h"

#include <dirent.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdint.h>
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

enum { MAX_TOUCHED = 256, FORMAT = 1 };

/* Two connections: a reader never waits for a writer. */
struct side {
  sqlite3 *db;
  pthread_mutex_t lock;
};

struct sw_disk {
  struct side reads, writes;
  char *path;
  int lock_fd; /* one daemon a store */
  size_t max_bytes;
  int64_t use;                      /* of the writer's, as is the rest */
  char touched[MAX_TOUCHED][SW_ID_LEN + 1];
  int n_touched;
  struct sw_disk_state state;
};

/* -- SQLite in short -- */

/* A statement with its values bound: s text, i int64, b bytes (pointer, size_t). NULL is told on stderr. */
static sqlite3_stmt *prepare(sqlite3 *db, const char *sql, const char *types, ...)
{
  sqlite3_stmt *st = NULL;
  int rc = sqlite3_prepare_v2(db, sql, -1, &st, NULL);
  va_list ap;
  va_start(ap, types);
  for (int i = 1; rc == SQLITE_OK && *types; i++, types++) {
    if (*types == 's') {
      rc = sqlite3_bind_text(st, i, va_arg(ap, const char *), -1, SQLITE_STATIC);
    } else if (*types == 'i') {
      rc = sqlite3_bind_int64(st, i, va_arg(ap, int64_t));
    } else {
      const void *p = va_arg(ap, const void *);
      rc = sqlite3_bind_blob64(st, i, p ? p : "", va_arg(ap, size_t), SQLITE_STATIC);
    }
  }
  va_end(ap);
  if (rc == SQLITE_OK)
    return st;
  fprintf(stderr, "{\"store\":\"%s\"}\n", sqlite3_errmsg(db));
  sqlite3_finalize(st);
  return NULL;
}

/* Steps a statement that gives no rows, and ends it. */
static bool done(sqlite3_stmt *st)
{
  int rc = st ? sqlite3_step(st) : SQLITE_ERROR;
  if (st && rc != SQLITE_DONE)
    fprintf(stderr, "{\"store\":\"%s\"}\n", sqlite3_errmsg(sqlite3_db_handle(st)));
  sqlite3_finalize(st);
  return rc == SQLITE_DONE;
}

static bool row(sqlite3_stmt *st)
{
  return st && sqlite3_step(st) == SQLITE_ROW;
}

static bool run(sqlite3 *db, const char *sql)
{
  char *why = NULL;
  bool ok = sqlite3_exec(db, sql, NULL, NULL, &why) == SQLITE_OK;
  if (!ok)
    fprintf(stderr, "{\"store\":\"%s\"}\n", why ? why : sqlite3_errmsg(db));
  sqlite3_free(why);
  return ok;
}

static int64_t number(sqlite3 *db, const char *sql)
{
  sqlite3_stmt *st = prepare(db, sql, "");
  int64_t n = row(st) ? sqlite3_column_int64(st, 0) : 0;
  sqlite3_finalize(st);
  return n;
}

static bool begin(struct sw_disk *d)
{
  pthread_mutex_lock(&d->writes.lock);
  return run(d->writes.db, "BEGIN IMMEDIATE");
}

/* Commits, or takes everything back. */
static bool end(struct sw_disk *d, bool ok)
{
  ok = ok && run(d->writes.db, "COMMIT");
  if (!ok) {
    if (!sqlite3_get_autocommit(d->writes.db))
      run(d->writes.db, "ROLLBACK");
    d->state.failed_writes++;
  }
  pthread_mutex_unlock(&d->writes.lock);
  return ok;
}

/* -- opening -- */

static bool open_side(struct side *s, const char *path, const char *pragmas)
{
  pthread_mutex_init(&s->lock, NULL);
  if (sqlite3_open_v2(path, &s->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL) != SQLITE_OK)
    return false;
  sqlite3_busy_timeout(s->db, 5000);
  return run(s->db, pragmas);
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
  d->lock_fd = -1;
  d->max_bytes = max_bytes;
  why = "it can't be written, or another daemon has it open";
  if (!lock_store(d))
    goto fail;
  why = "it can't be opened";
  if (!open_side(&d->writes, path, "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL"))
    goto fail;
  int64_t format = number(d->writes.db, "PRAGMA user_version");
  why = "it was written by another version";
  if (format && format != FORMAT)
    goto fail;
  why = "its tables can't be made";
  if (!run(d->writes.db, schema) || !run(d->writes.db, "PRAGMA user_version=1") ||
      !open_side(&d->reads, path, "PRAGMA query_only=1"))
    goto fail;
  char *bodies = NULL;
  if (asprintf(&bodies, "%s.bodies", path) < 0)
    goto fail;
  mkdir(bodies, 0700);
  free(bodies);
  d->use = number(d->writes.db, "SELECT max(used) FROM results");
  d->state.results = (long)number(d->writes.db, "SELECT count(*) FROM results");
  d->state.bytes = (long)number(d->writes.db, "SELECT total(bytes) FROM results");
  return d;
fail:
  fprintf(stderr, "stickwrightd: store %s: %s\n", path, why);
  sw_disk_close(d);
  return NULL;
}

static bool write_touched(struct sw_disk *d)
{
  bool ok = true;
  for (int i = 0; i < d->n_touched && ok; i++)
    ok = done(prepare(d->writes.db, "UPDATE results SET used = ? WHERE id = ?", "is", ++d->use, d->touched[i]));
  d->n_touched = 0;
  return ok;
}

void sw_disk_close(struct sw_disk *d)
{
  if (!d)
    return;
  if (d->n_touched)
    end(d, begin(d) && write_touched(d));
  sqlite3_close(d->reads.db);
  sqlite3_close(d->writes.db);
  if (d->lock_fd >= 0)
    close(d->lock_fd);
  free(d->path);
  free(d);
}

/* -- results -- */

static void digest_of(const void *p, size_t n, unsigned char out[EVP_MAX_MD_SIZE])
{
  EVP_Digest(p, n, out, NULL, EVP_sha256(), NULL);
}

static bool drop(struct sw_disk *d, const char *id, int64_t bytes)
{
  bool ok = done(prepare(d->writes.db, "DELETE FROM files WHERE result = ?", "s", id)) &&
            done(prepare(d->writes.db, "DELETE FROM results WHERE id = ?", "s", id));
  d->state.bytes -= bytes;
  d->state.results--;
  return ok;
}

/* Until `more` bytes fit under the limit. */
static bool make_room(struct sw_disk *d, size_t more)
{
  bool ok = true;
  while (ok && (size_t)d->state.bytes + more > d->max_bytes) {
    sqlite3_stmt *st = prepare(d->writes.db, "SELECT id, bytes FROM results ORDER BY used LIMIT 1", "");
    if (!row(st)) {
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
    digest_of(f->bytes, f->len, digest);
    if (!done(prepare(d->writes.db, "INSERT INTO files VALUES(?,?,?,?,?)", "sisbb", r->id, (int64_t)i, f->path, digest,
                      (size_t)32, f->bytes, f->len)))
      return false;
  }
  return true;
}

static bool knows(struct sw_disk *d, const char *id)
{
  sqlite3_stmt *st = prepare(d->writes.db, "SELECT 1 FROM results WHERE id = ?", "s", id);
  bool there = row(st);
  sqlite3_finalize(st);
  return there;
}

bool sw_disk_put(struct sw_disk *d, const struct sw_result *r)
{
  if (r->bytes > d->max_bytes)
    return false;
  bool ok = begin(d);
  struct sw_disk_state before = d->state;
  if (ok && knows(d, r->id))
    return end(d, true);
  ok = ok && write_touched(d) && make_room(d, r->bytes) && put_files(d, r) &&
       done(prepare(d->writes.db, "INSERT INTO results VALUES(?,?,?,?)", "siis", r->id, (int64_t)r->bytes, ++d->use,
                    r->server_timing));
  if (ok) {
    d->state.bytes += (long)r->bytes;
    d->state.results++;
  } else {
    d->state = before;
  }
  return end(d, ok);
}

/* The files of a result; false when one is not what was written, or memory is short. */
static bool read_files(sqlite3 *db, struct sw_result *r)
{
  sqlite3_stmt *st = prepare(db, "SELECT path, digest, bytes FROM files WHERE result = ? ORDER BY place", "s", r->id);
  bool ok = st;
  while (ok && row(st)) {
    const void *bytes = sqlite3_column_blob(st, 2);
    size_t n = (size_t)sqlite3_column_bytes(st, 2);
    unsigned char digest[EVP_MAX_MD_SIZE];
    digest_of(n ? bytes : "", n, digest);
    const char *path = (const char *)sqlite3_column_text(st, 0);
    ok = path && sqlite3_column_bytes(st, 1) == 32 && !memcmp(digest, sqlite3_column_blob(st, 1), 32) &&
         sw_result_add_file(r, path, bytes, n);
  }
  if (ok && sqlite3_errcode(db) != SQLITE_DONE)
    ok = false; /* the database itself is damaged here */
  sqlite3_finalize(st);
  return ok;
}

static void drop_damaged(struct sw_disk *d, const char *id, int64_t bytes)
{
  fprintf(stderr, "{\"store\":\"result %s is damaged and was dropped\"}\n", id);
  bool ok = begin(d);
  struct sw_disk_state before = d->state;
  ok = ok && drop(d, id, bytes);
  if (!ok)
    d->state = before;
  d->state.damaged++;
  end(d, ok);
}

struct sw_result *sw_disk_get(struct sw_disk *d, const char *id)
{
  struct sw_result *r = NULL;
  bool whole = true;
  int64_t bytes = 0;
  pthread_mutex_lock(&d->reads.lock);
  sqlite3_stmt *st = prepare(d->reads.db, "SELECT bytes, timing FROM results WHERE id = ?", "s", id);
  if (row(st) && (r = sw_result_new(id))) {
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
  pthread_mutex_lock(&d->writes.lock);
  if (d->n_touched < MAX_TOUCHED)
    memcpy(d->touched[d->n_touched++], id, SW_ID_LEN);
  bool full = d->n_touched == MAX_TOUCHED;
  pthread_mutex_unlock(&d->writes.lock);
  if (full)
    end(d, begin(d) && write_touched(d));
}

struct sw_disk_state sw_disk_state(struct sw_disk *d)
{
  pthread_mutex_lock(&d->writes.lock);
  struct sw_disk_state s = d->state;
  pthread_mutex_unlock(&d->writes.lock);
  return s;
}

/* -- jobs -- */

bool sw_disk_job_put(struct sw_disk *d, const struct sw_disk_job *j)
{
  return end(d, begin(d) && done(prepare(d->writes.db,
                                         "INSERT INTO jobs(id, address, state, slug, detail, errors, status, args, starts)"
                                         " VALUES(?,?,?,?,?,?,?,?,?) ON CONFLICT(id) DO UPDATE SET state = excluded.state,"
                                         " slug = excluded.slug, detail = excluded.detail, errors = excluded.errors,"
                                         " status = excluded.status, starts = excluded.starts",
                                         "ssssssibi", j->id, j->address, j->state, j->slug, j->detail, j->errors,
                                         (int64_t)j->status, j->args, j->args_len, (int64_t)j->starts)));
}

void sw_disk_job_drop(struct sw_disk *d, const char *id)
{
  end(d, begin(d) && done(prepare(d->writes.db, "DELETE FROM jobs WHERE id = ?", "s", id)));
}

void sw_disk_jobs(struct sw_disk *d, void (*each)(void *ctx, const struct sw_disk_job *), void *ctx)
{
  pthread_mutex_lock(&d->reads.lock);
  sqlite3_stmt *st = prepare(
      d->reads.db, "SELECT id, address, state, slug, detail, errors, status, args, starts FROM jobs ORDER BY number", "");
  while (row(st)) {
    const char *text[6];
    for (int i = 0; i < 6; i++)
      text[i] = (const char *)sqlite3_column_text(st, i);
    const void *args = sqlite3_column_blob(st, 7);
    if (text[0] && text[1] && text[2] && args)
      each(ctx, &(struct sw_disk_job){text[0], text[1], text[2], text[3], text[4], text[5],
                                      (unsigned)sqlite3_column_int(st, 6), args, (size_t)sqlite3_column_bytes(st, 7),
                                      sqlite3_column_int(st, 8)});
  }
  sqlite3_finalize(st);
  pthread_mutex_unlock(&d->reads.lock);
}

char *sw_disk_body_path(const struct sw_disk *d, const char *job_id)
{
  char *path = NULL;
  return asprintf(&path, "%s.bodies/%s", d->path, job_id) < 0 ? NULL : path;
}

void sw_disk_sweep_bodies(const struct sw_disk *d, bool (*needed)(void *ctx, const char *job_id), void *ctx)
{
  char *path = sw_disk_body_path(d, "");
  DIR *dir = path ? opendir(path) : NULL;
  const struct dirent *e;
  while (dir && (e = readdir(dir)))
    if (e->d_name[0] != '.' && !needed(ctx, e->d_name))
      unlinkat(dirfd(dir), e->d_name, 0);
  if (dir)
    closedir(dir);
  free(path);
}

/* -- studies -- */

static bool put_study(struct sw_disk *d, const struct sw_disk_study *s)
{
  return done(prepare(d->writes.db,
                      "INSERT INTO studies(id, state, name, slug, detail, errors, status, runs, done, compiled, starts)"
                      " VALUES(?,?,?,?,?,?,?,?,?,?,?) ON CONFLICT(id) DO UPDATE SET state = excluded.state,"
                      " name = excluded.name, slug = excluded.slug, detail = excluded.detail, errors = excluded.errors,"
                      " status = excluded.status, runs = excluded.runs, done = excluded.done, compiled = excluded.compiled,"
                      " starts = excluded.starts",
                      "ssssssiiiii", s->id, s->state, s->name, s->slug, s->detail, s->errors, (int64_t)s->status,
                      (int64_t)s->runs, (int64_t)s->done, (int64_t)s->compiled, (int64_t)s->starts));
}

static bool put_part(struct sw_disk *d, const char *id, const struct sw_disk_part *p)
{
  unsigned char digest[EVP_MAX_MD_SIZE];
  digest_of(p->bytes, p->len, digest);
  return done(prepare(d->writes.db, "INSERT OR REPLACE INTO study_parts VALUES(?,?,?,?)", "ssbb", id, p->name, digest,
                      (size_t)32, p->bytes, p->len));
}

bool sw_disk_study_put(struct sw_disk *d, const struct sw_disk_study *s)
{
  return end(d, begin(d) && put_study(d, s));
}

bool sw_disk_study_end(struct sw_disk *d, const struct sw_disk_study *s, const struct sw_disk_part *parts, int n)
{
  bool ok = begin(d) && put_study(d, s) && done(prepare(d->writes.db, "DELETE FROM study_parts WHERE study = ?", "s", s->id));
  for (int i = 0; i < n && ok; i++)
    ok = put_part(d, s->id, &parts[i]);
  return end(d, ok);
}

bool sw_disk_study_part(struct sw_disk *d, const char *id, const struct sw_disk_part *part)
{
  return end(d, begin(d) && put_part(d, id, part) &&
                    done(prepare(d->writes.db, "UPDATE studies SET starts = 0 WHERE id = ?", "s", id)));
}

void sw_disk_study_drop(struct sw_disk *d, const char *id)
{
  end(d, begin(d) && done(prepare(d->writes.db, "DELETE FROM study_parts WHERE study = ?", "s", id)) &&
             done(prepare(d->writes.db, "DELETE FROM studies WHERE id = ?", "s", id)));
}

void sw_disk_studies(struct sw_disk *d, void (*each)(void *ctx, const struct sw_disk_study *), void *ctx)
{
  pthread_mutex_lock(&d->reads.lock);
  sqlite3_stmt *st = prepare(d->reads.db,
                             "SELECT id, state, name, slug, detail, errors, status, runs, done, compiled, starts"
                             " FROM studies ORDER BY number", "");
  while (row(st)) {
    const char *text[6];
    int n[5];
    for (int i = 0; i < 6; i++)
      text[i] = (const char *)sqlite3_column_text(st, i);
    for (int i = 0; i < 5; i++)
      n[i] = sqlite3_column_int(st, 6 + i);
    if (text[0] && text[1])
      each(ctx, &(struct sw_disk_study){text[0], text[1], text[2], text[3], text[4], text[5], (unsigned)n[0], n[1], n[2],
                                        n[3], n[4]});
  }
  sqlite3_finalize(st);
  pthread_mutex_unlock(&d->reads.lock);
}

/* Parts of a study, or the one of that name. */
static void read_parts(struct sw_disk *d, const char *id, const char *name,
                       void (*each)(void *ctx, const struct sw_disk_part *), void *ctx)
{
  pthread_mutex_lock(&d->reads.lock);
  sqlite3_stmt *st = prepare(d->reads.db,
                             "SELECT name, digest, bytes FROM study_parts WHERE study = ? AND (? IS NULL OR name = ?)",
                             "sss", id, name, name);
  while (row(st)) {
    struct sw_disk_part p = {(const char *)sqlite3_column_text(st, 0), sqlite3_column_blob(st, 2),
                             (size_t)sqlite3_column_bytes(st, 2)};
    unsigned char digest[EVP_MAX_MD_SIZE];
    digest_of(p.len ? p.bytes : "", p.len, digest);
    bool whole = p.name && sqlite3_column_bytes(st, 1) == 32 && !memcmp(digest, sqlite3_column_blob(st, 1), 32);
    if (whole)
      each(ctx, &p);
    else
      fprintf(stderr, "{\"store\":\"a part of study %s is damaged and was left out\"}\n", id);
  }
  sqlite3_finalize(st);
  pthread_mutex_unlock(&d->reads.lock);
}

void sw_disk_study_parts(struct sw_disk *d, const char *id, void (*each)(void *ctx, const struct sw_disk_part *), void *ctx)
{
  read_parts(d, id, NULL, each, ctx);
}

struct copied_part {
  char *bytes;
  size_t len;
};

static void copy_part(void *ctx, const struct sw_disk_part *p)
{
  struct copied_part *c = ctx;
  c->bytes = malloc(p->len + 1);
  if (!c->bytes)
    return;
  memcpy(c->bytes, p->bytes, p->len);
  c->bytes[p->len] = 0;
  c->len = p->len;
}

char *sw_disk_study_get(struct sw_disk *d, const char *id, const char *name, size_t *len)
{
  struct copied_part c = {0};
  read_parts(d, id, name, copy_part, &c);
  *len = c.len;
  return c.bytes;
}
