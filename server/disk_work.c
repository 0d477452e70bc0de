/* Jobs and studies in the store, and the bodies of both in a folder beside it. */
#define _GNU_SOURCE
#include "server/disk_inside.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Whether there really is no row more, and not only none that can be read. */
static bool end_of_rows(struct sw_disk *d, sqlite3_stmt *st)
{
  bool is_end = st && sqlite3_errcode(d->reads.db) == SQLITE_DONE;
  if (!is_end)
    fprintf(stderr, "{\"store\":\"a table can't be read to its end: %s\"}\n", sqlite3_errmsg(d->reads.db));
  sqlite3_finalize(st);
  pthread_mutex_unlock(&d->reads.lock);
  return is_end;
}

/* -- jobs -- */

bool sw_disk_job_put(struct sw_disk *d, const struct sw_disk_job *j)
{
  bool ok = sw_disk_begin(d) &&
            sw_sql_do(d->writes.db,
                      "INSERT INTO jobs(id, address, state, slug, detail, errors, status, args, starts)"
                      " VALUES(?,?,?,?,?,?,?,?,?) ON CONFLICT(id) DO UPDATE SET address = excluded.address,"
                      " state = excluded.state, slug = excluded.slug, detail = excluded.detail, errors = excluded.errors,"
                      " status = excluded.status, starts = excluded.starts",
                      "ssssssibi", j->id, j->address, j->state, j->slug, j->detail, j->errors, (int64_t)j->status, j->args,
                      j->args_len, (int64_t)j->starts);
  return sw_disk_end(d, ok);
}

void sw_disk_job_drop(struct sw_disk *d, const char *id)
{
  sw_disk_end(d, sw_disk_begin(d) && sw_sql_do(d->writes.db, "DELETE FROM jobs WHERE id = ?", "s", id));
}

bool sw_disk_jobs(struct sw_disk *d, void (*each)(void *ctx, const struct sw_disk_job *), void *ctx)
{
  pthread_mutex_lock(&d->reads.lock);
  sqlite3_stmt *st = sw_sql_prepare(
      d->reads.db, "SELECT id, address, state, slug, detail, errors, status, args, starts FROM jobs ORDER BY number", "");
  while (sw_sql_row(st)) {
    const char *text[6];
    for (int i = 0; i < 6; i++)
      text[i] = (const char *)sqlite3_column_text(st, i);
    const void *args = sqlite3_column_blob(st, 7);
    if (text[0] && text[1] && text[2] && args)
      each(ctx, &(struct sw_disk_job){text[0], text[1], text[2], text[3], text[4], text[5],
                                      (unsigned)sqlite3_column_int(st, 6), args, (size_t)sqlite3_column_bytes(st, 7),
                                      sqlite3_column_int(st, 8)});
  }
  return end_of_rows(d, st);
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

/* One that has ended never waits again: the thread of the studies may write down a state that a cancellation has overtaken. */
static bool put_study(struct sw_disk *d, const struct sw_disk_study *s)
{
  return sw_sql_do(d->writes.db,
                   "INSERT INTO studies(id, state, name, slug, detail, errors, status, runs, done, compiled, starts)"
                   " VALUES(?,?,?,?,?,?,?,?,?,?,?) ON CONFLICT(id) DO UPDATE SET state = excluded.state,"
                   " name = excluded.name, slug = excluded.slug, detail = excluded.detail, errors = excluded.errors,"
                   " status = excluded.status, runs = excluded.runs, done = excluded.done, compiled = excluded.compiled,"
                   " starts = excluded.starts WHERE state = 'queued' OR excluded.state <> 'queued'",
                   "ssssssiiiii", s->id, s->state, s->name, s->slug, s->detail, s->errors, (int64_t)s->status,
                   (int64_t)s->runs, (int64_t)s->done, (int64_t)s->compiled, (int64_t)s->starts);
}

static bool put_part(struct sw_disk *d, const char *id, const struct sw_disk_part *p)
{
  unsigned char digest[EVP_MAX_MD_SIZE];
  sw_disk_digest(p->bytes, p->len, digest);
  return sw_sql_do(d->writes.db, "INSERT OR REPLACE INTO study_parts VALUES(?,?,?,?)", "ssbb", id, p->name, digest,
                   (size_t)SW_DIGEST_LEN, p->bytes, p->len);
}

bool sw_disk_study_put(struct sw_disk *d, const struct sw_disk_study *s)
{
  return sw_disk_end(d, sw_disk_begin(d) && put_study(d, s));
}

bool sw_disk_study_end(struct sw_disk *d, const struct sw_disk_study *s, const struct sw_disk_part *parts, int n)
{
  bool ok = sw_disk_begin(d) && put_study(d, s) &&
            sw_sql_do(d->writes.db, "DELETE FROM study_parts WHERE study = ?", "s", s->id);
  for (int i = 0; i < n && ok; i++)
    ok = put_part(d, s->id, &parts[i]);
  return sw_disk_end(d, ok);
}

bool sw_disk_study_part(struct sw_disk *d, const char *id, const struct sw_disk_part *part)
{
  return sw_disk_end(d, sw_disk_begin(d) && put_part(d, id, part) &&
                    sw_sql_do(d->writes.db, "UPDATE studies SET starts = 0 WHERE id = ?", "s", id));
}

void sw_disk_study_drop(struct sw_disk *d, const char *id)
{
  sw_disk_end(d, sw_disk_begin(d) && sw_sql_do(d->writes.db, "DELETE FROM study_parts WHERE study = ?", "s", id) &&
             sw_sql_do(d->writes.db, "DELETE FROM studies WHERE id = ?", "s", id));
}

bool sw_disk_studies(struct sw_disk *d, void (*each)(void *ctx, const struct sw_disk_study *), void *ctx)
{
  pthread_mutex_lock(&d->reads.lock);
  sqlite3_stmt *st = sw_sql_prepare(d->reads.db,
                             "SELECT id, state, name, slug, detail, errors, status, runs, done, compiled, starts"
                             " FROM studies ORDER BY number", "");
  while (sw_sql_row(st)) {
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
  return end_of_rows(d, st);
}

/* Parts of a study, or the one of that name. */
static void read_parts(struct sw_disk *d, const char *id, const char *name,
                       void (*each)(void *ctx, const struct sw_disk_part *), void *ctx)
{
  pthread_mutex_lock(&d->reads.lock);
  sqlite3_stmt *st = sw_sql_prepare(d->reads.db,
                             "SELECT name, digest, bytes FROM study_parts WHERE study = ? AND (? IS NULL OR name = ?)",
                             "sss", id, name, name);
  while (sw_sql_row(st)) {
    struct sw_disk_part p = {(const char *)sqlite3_column_text(st, 0), sqlite3_column_blob(st, 2),
                             (size_t)sqlite3_column_bytes(st, 2)};
    bool whole = p.name && sw_disk_digest_fits(st, 1, p.bytes, p.len);
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
