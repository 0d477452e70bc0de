/* SQLite in short. What goes wrong is told on stderr. */
#ifndef SW_SERVER_SQL_H
#define SW_SERVER_SQL_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

/* A statement with its values bound, one letter each: s text, i int64_t, b bytes (pointer, size_t). They are borrowed until the
 * statement is finalized. NULL when that fails. */
sqlite3_stmt *sw_sql_prepare(sqlite3 *db, const char *sql, const char *types, ...);
/* The next row is there. */
bool sw_sql_row(sqlite3_stmt *st);
/* Does a statement that gives no rows. */
bool sw_sql_do(sqlite3 *db, const char *sql, const char *types, ...);
/* Any number of statements without values or rows. */
bool sw_sql_run(sqlite3 *db, const char *sql);
/* The number that a query gives; 0 when there is none. */
int64_t sw_sql_number(sqlite3 *db, const char *sql);

#endif
