/* Reading JSON with limits (jansson builds 20 to 80 bytes of heap per input byte, so look before parsing), and
 * writing it with a fixed key order and number format, so that equal results are equal bytes. */
#ifndef SW_BASE_JSON_H
#define SW_BASE_JSON_H

#include "base/buf.h"
#include "base/job.h"

#include <jansson.h>

enum { SW_JSON_MAX_DEPTH = 64 };

/* Parses a whole document: duplicates, depth over SW_JSON_MAX_DEPTH and more than max_values values are refused with
 * line and column or the number. The tree belongs to the job's arena (deferred json_decref); NULL when a fault was
 * recorded. `what` names the document in messages ("problem", "weights config"). */
json_t *sw_json_parse(struct sw_job *job, const char *what, const char *text, size_t len, size_t max_values);

/* Member of an object, of the given type. A missing or wrong one is a fault with the JSON pointer where/key, and NULL.
 * `where` is the pointer of the object itself, "" for the root. */
const json_t *sw_json_member(struct sw_job *job, const json_t *object, const char *where, const char *key,
                             json_type type);

/* -- writing -- */

/* A writer: open objects and arrays nest; commas, newlines and indentation come by themselves.
 * indent 0 writes one line without blanks. Text is ASCII: everything else is escaped. */
struct sw_jw {
  struct sw_buf *out;
  int indent;
  int depth;
  bool need_comma, after_key;
};

void sw_jw_object(struct sw_jw *w);
void sw_jw_end_object(struct sw_jw *w);
void sw_jw_array(struct sw_jw *w);
void sw_jw_end_array(struct sw_jw *w);
void sw_jw_key(struct sw_jw *w, const char *key);
void sw_jw_str(struct sw_jw *w, const char *s); /* NULL writes null */
void sw_jw_int(struct sw_jw *w, int64_t i);
void sw_jw_real(struct sw_jw *w, double r); /* shortest text that reads back equal; inf and nan as strings */
void sw_jw_bool(struct sw_jw *w, bool b);
void sw_jw_null(struct sw_jw *w);
void sw_jw_raw(struct sw_jw *w, const char *json); /* a value that is JSON already */
void sw_jw_ints(struct sw_jw *w, const int64_t *v, int n); /* an array on one line */

/* key and value in one go */
void sw_jw_kstr(struct sw_jw *w, const char *key, const char *s);
void sw_jw_kint(struct sw_jw *w, const char *key, int64_t i);
void sw_jw_kreal(struct sw_jw *w, const char *key, double r);
void sw_jw_kbool(struct sw_jw *w, const char *key, bool b);
void sw_jw_kints(struct sw_jw *w, const char *key, const int64_t *v, int n);

/* One code point of UTF-8, its length in *n; a broken byte gives U+FFFD and length 1. Reads no further than a NUL. */
uint32_t sw_utf8_point(const unsigned char *s, int *n);

/* Shortest text of a finite double that reads back equal; always with a point or exponent ("2.0"). */
void sw_real_text(char out[32], double r);

/* The faults of a job as a JSON array of {code, node, tensor, source, detail, limit, value, advice}. */
void sw_jw_faults(struct sw_jw *w, const struct sw_job *job);

#endif
