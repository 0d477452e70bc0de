#include "server/sql.h"

#include <stdarg.h>
#include <stdio.h>

static sqlite3_stmt *prepare(sqlite3 *db, const char *sql, const char *types, va_list values)
{
  sqlite3_stmt *st = NULL;
  int rc = sqlite3_prepare_v2(db, sql, -1, &st, NULL);
  for (int i = 1; rc == SQLITE_OK && *types; i++, types++) {
    if (*types == 's') {
      rc = sqlite3_bind_text(st, i, va_arg(values, const char *), -1, SQLITE_STATIC);
    } else if (*types == 'i') {
      rc = sqlite3_bind_int64(st, i, va_arg(values, int64_t));
    } else {
      const void *p = va_arg(values, const void *);
      rc = sqlite3_bind_blob64(st, i, p ? p : "", va_arg(values, size_t), SQLITE_STATIC);
    }
  }
  if (rc == SQLITE_OK)
    return st;
  fprintf(stderr, "{\"store\":\"%s\"}\n", sqlite3_errmsg(db));
  sqlite3_finalize(st);
  return NULL;
}

sqlite3_stmt *sw_sql_prepare(sqlite3 *db, const char *sql, const char *types, ...)
{
  va_list values;
  va_start(values, types);
  sqlite3_stmt *st = prepare(db, sql, types, values);
  va_end(values);
  return st;
}

bool sw_sql_do(sqlite3 *db, const char *sql, const char *types, ...)
{
  va_list values;
  va_start(values, types);
  sqlite3_stmt *st = prepare(db, sql, types, values);
  va_end(values);
  int rc = st ? sqlite3_step(st) : SQLITE_ERROR;
  if (st && rc != SQLITE_DONE)
    fprintf(stderr, "{\"store\":\"%s\"}\n", sqlite3_errmsg(db));
  sqlite3_finalize(st);
  return rc == SQLITE_DONE;
}

bool sw_sql_row(sqlite3_stmt *st)
{
  return st && sqlite3_step(st) == SQLITE_ROW;
}

bool sw_sql_run(sqlite3 *db, const char *sql)
{
  char *why = NULL;
  bool ok = sqlite3_exec(db, sql, NULL, NULL, &why) == SQLITE_OK;
  if (!ok)
    fprintf(stderr, "{\"store\":\"%s\"}\n", why ? why : sqlite3_errmsg(db));
  sqlite3_free(why);
  return ok;
}

int64_t sw_sql_number(sqlite3 *db, const char *sql)
{
  sqlite3_stmt *st = sw_sql_prepare(db, sql, "");
  int64_t n = sw_sql_row(st) ? sqlite3_column_int64(st, 0) : 0;
  sqlite3_finalize(st);
  return n;
}
