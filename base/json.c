#include "base/json.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Depth and a bound on the number of values, without building anything: brackets and commas outside strings. */
static enum sw_rc look(struct sw_job *job, const char *what, const char *text, size_t len, size_t max_values)
{
  int depth = 0;
  size_t values = 1;
  for (size_t i = 0; i < len; i++) {
    char c = text[i];
    if (c == '"') {
      for (i++; i < len && text[i] != '"'; i++)
        if (text[i] == '\\')
          i++;
    } else if (c == '[' || c == '{') {
      values++;
      if (++depth > SW_JSON_MAX_DEPTH) {
        struct sw_fault *f = sw_fault(job, SW_LIMIT, "%s: JSON nested deeper than %d at byte %zu", what,
                                      SW_JSON_MAX_DEPTH, i);
        f->has_limit = true;
        f->value = depth;
        f->limit = SW_JSON_MAX_DEPTH;
        return SW_LIMIT;
      }
    } else if (c == ']' || c == '}') {
      depth--;
    } else if (c == ',') {
      values++;
    }
  }
  if (values > max_values) {
    struct sw_fault *f = sw_fault(job, SW_LIMIT, "%s: JSON with %zu values, limit %zu", what, values, max_values);
    f->has_limit = true;
    f->value = (int64_t)values;
    f->limit = (int64_t)max_values;
    return SW_LIMIT;
  }
  return SW_OK;
}

static void drop(void *p)
{
  json_decref(p);
}

json_t *sw_json_parse(struct sw_job *job, const char *what, const char *text, size_t len, size_t max_values)
{
  if (look(job, what, text, len, max_values) != SW_OK)
    return NULL;
  json_error_t at;
  json_t *root = json_loadb(text, len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &at);
  if (!root) {
    sw_fault(job, SW_INVALID, "%s: line %d column %d: %s", what, at.line, at.column, at.text);
    return NULL;
  }
  sw_arena_defer(job->arena, drop, root);
  return root;
}

static const char *type_name(json_type t)
{
  static const char *const names[] = {"object", "array", "string", "integer", "real", "true", "false", "null"};
  return names[t];
}

const json_t *sw_json_member(struct sw_job *job, const json_t *object, const char *where, const char *key,
                             json_type type)
{
  const json_t *v = json_object_get(object, key);
  if (v && json_typeof(v) == type)
    return v;
  struct sw_fault *f = v ? sw_fault(job, SW_INVALID, "%s/%s: %s expected, %s found", where, key, type_name(type),
                                    type_name(json_typeof(v)))
                         : sw_fault(job, SW_INVALID, "%s/%s: %s is missing", where, key, type_name(type));
  f->source = sw_arena_printf(job->arena, "%s/%s", where, key);
  return NULL;
}

/* Every token begins with what is due before it: a comma, a line break, blanks. These are written, in place, at the
 * front of the room for the token itself. */
static char *start(struct sw_jw *w, size_t n, bool has_comma, bool has_line)
{
  size_t blanks = has_line && w->indent ? (size_t)(w->indent * w->depth) : 0;
  char *p = sw_buf_room(w->out, n + blanks + 2);
  if (has_comma)
    *p++ = ',';
  if (has_line && w->indent)
    *p++ = '\n';
  memset(p, ' ', blanks);
  return p + blanks;
}

static char *before(struct sw_jw *w, size_t n)
{
  bool is_value_of_key = w->after_key;
  w->after_key = false;
  return start(w, n, !is_value_of_key && w->need_comma, !is_value_of_key && w->depth);
}

static void open_with(struct sw_jw *w, char bracket)
{
  char *p = before(w, 1);
  *p++ = bracket;
  sw_buf_end(w->out, p);
  w->depth++;
  w->need_comma = false;
}

static void close_with(struct sw_jw *w, char bracket)
{
  bool empty = !w->need_comma;
  w->depth--;
  char *p = start(w, 1, false, !empty);
  *p++ = bracket;
  sw_buf_end(w->out, p);
  w->need_comma = true;
}

void sw_jw_object(struct sw_jw *w)
{
  open_with(w, '{');
}

void sw_jw_end_object(struct sw_jw *w)
{
  close_with(w, '}');
}

void sw_jw_array(struct sw_jw *w)
{
  open_with(w, '[');
}

void sw_jw_end_array(struct sw_jw *w)
{
  close_with(w, ']');
}

uint32_t sw_utf8_point(const unsigned char *s, int *n)
{
  static const uint32_t least[] = {0, 0x80, 0x800, 0x10000};
  int more = s[0] >= 0xF0 && s[0] < 0xF8 ? 3 : s[0] >= 0xE0 && s[0] < 0xF0 ? 2 : s[0] >= 0xC0 && s[0] < 0xE0 ? 1 : 0;
  uint32_t c = more ? s[0] & (0x3Fu >> more) : s[0];
  *n = 1;
  if (s[0] < 0x80)
    return c;
  for (int i = 1; i <= more; i++) {
    if ((s[i] & 0xC0) != 0x80)
      return 0xFFFD;
    c = c << 6 | (s[i] & 0x3Fu);
  }
  if (!more || c < least[more] || c > 0x10FFFF || (c >= 0xD800 && c < 0xE000))
    return 0xFFFD;
  *n = more + 1;
  return c;
}

/* Length of the text that needs no escapes, from its beginning. */
static size_t plain(const char *s)
{
  size_t n = 0;
  while ((unsigned char)s[n] >= 0x20 && (unsigned char)s[n] < 0x7F && s[n] != '"' && s[n] != '\\')
    n++;
  return n;
}

static void escaped(struct sw_buf *out, const char *s)
{
  int n;
  uint32_t c = sw_utf8_point((const unsigned char *)s, &n);
  if (c == '"' || c == '\\')
    sw_buf_printf(out, "\\%c", (int)c);
  else if (c == '\n')
    sw_buf_puts(out, "\\n");
  else if (c == '\t')
    sw_buf_puts(out, "\\t");
  else if (c < 0x10000)
    sw_buf_printf(out, "\\u%04x", c);
  else
    sw_buf_printf(out, "\\u%04x\\u%04x", 0xD7C0 + (c >> 10), 0xDC00 + (c & 0x3FF));
}

/* The text in quotes, with `behind` after it. */
static void quoted(struct sw_jw *w, const char *s, const char *behind)
{
  size_t n = plain(s), tail = strlen(behind);
  char *p = before(w, n + 2 + tail);
  *p++ = '"';
  memcpy(p, s, n);
  p += n;
  if (s[n]) {
    sw_buf_end(w->out, p);
    for (s += n; *s; s += n) {
      int len = 0;
      n = plain(s);
      sw_buf_add(w->out, s, n);
      if (!s[n])
        continue;
      escaped(w->out, s + n);
      sw_utf8_point((const unsigned char *)s + n, &len);
      n += (size_t)len;
    }
    p = sw_buf_room(w->out, 1 + tail);
  }
  *p++ = '"';
  memcpy(p, behind, tail);
  sw_buf_end(w->out, p + tail);
}

void sw_jw_key(struct sw_jw *w, const char *key)
{
  quoted(w, key, w->indent ? ": " : ":");
  w->need_comma = false;
  w->after_key = true;
}

static void atom(struct sw_jw *w, const char *text)
{
  size_t n = strlen(text);
  char *p = before(w, n);
  memcpy(p, text, n);
  sw_buf_end(w->out, p + n);
  w->need_comma = true;
}

void sw_jw_str(struct sw_jw *w, const char *s)
{
  if (!s) {
    atom(w, "null");
    return;
  }
  quoted(w, s, "");
  w->need_comma = true;
}

void sw_jw_int(struct sw_jw *w, int64_t i)
{
  char *p = before(w, 20);
  sw_buf_end(w->out, sw_int_text(p, i));
  w->need_comma = true;
}

/* Digits of a number's text from the first to the last that is no zero; at least 1. */
static int significant(const char *text)
{
  int n = 0, last = 1;
  for (; *text && *text != 'e'; text++) {
    if (*text < '0' || *text > '9' || (!n && *text == '0'))
      continue;
    n++;
    last = *text == '0' ? last : n;
  }
  return last;
}

void sw_real_text(char out[32], double r)
{
  /* What reads back equal with 15 digits or fewer reads back from 15, and those end in zeros that %g leaves out: so the
   * digits that are left are counted. 0.1 has 1 of them. Below the normal numbers a double has fewer than 15 digits. */
  bool is_normal = fabs(r) >= DBL_MIN;
  for (int digits = is_normal ? 15 : 1; digits <= 17; digits++) {
    snprintf(out, 32, "%.*g", digits, r);
    if (strtod(out, NULL) == r)
      break;
  }
  if (is_normal)
    snprintf(out, 32, "%.*g", significant(out), r);
  if (!strpbrk(out, ".en"))
    strcat(out, ".0");
}

void sw_jw_real(struct sw_jw *w, double r)
{
  if (!isfinite(r)) {
    sw_jw_str(w, isnan(r) ? "NaN" : r > 0 ? "Infinity" : "-Infinity");
    return;
  }
  char text[32];
  sw_real_text(text, r);
  atom(w, text);
}

void sw_jw_bool(struct sw_jw *w, bool b)
{
  atom(w, b ? "true" : "false");
}

void sw_jw_null(struct sw_jw *w)
{
  atom(w, "null");
}

void sw_jw_raw(struct sw_jw *w, const char *json)
{
  atom(w, json);
}

void sw_jw_ints(struct sw_jw *w, const int64_t *v, int n)
{
  char *p = before(w, 2 + (size_t)n * 22);
  *p++ = '[';
  for (int i = 0; i < n; i++) {
    if (i)
      *p++ = ',';
    if (i && w->indent)
      *p++ = ' ';
    p = sw_int_text(p, v[i]);
  }
  *p++ = ']';
  sw_buf_end(w->out, p);
  w->need_comma = true;
}

void sw_jw_kstr(struct sw_jw *w, const char *key, const char *s)
{
  sw_jw_key(w, key);
  sw_jw_str(w, s);
}

void sw_jw_kint(struct sw_jw *w, const char *key, int64_t i)
{
  sw_jw_key(w, key);
  sw_jw_int(w, i);
}

void sw_jw_kreal(struct sw_jw *w, const char *key, double r)
{
  sw_jw_key(w, key);
  sw_jw_real(w, r);
}

void sw_jw_kbool(struct sw_jw *w, const char *key, bool b)
{
  sw_jw_key(w, key);
  sw_jw_bool(w, b);
}

void sw_jw_kints(struct sw_jw *w, const char *key, const int64_t *v, int n)
{
  sw_jw_key(w, key);
  sw_jw_ints(w, v, n);
}

void sw_jw_faults(struct sw_jw *w, const struct sw_job *job)
{
  sw_jw_array(w);
  for (int i = 0; i < job->faults.n; i++) {
    const struct sw_fault *f = &job->faults.v[i];
    sw_jw_object(w);
    sw_jw_kstr(w, "code", sw_rc_slug(f->rc));
    sw_jw_kstr(w, "node", f->node);
    sw_jw_kstr(w, "tensor", f->tensor);
    sw_jw_kstr(w, "source", f->source);
    sw_jw_kstr(w, "detail", f->detail);
    if (f->has_limit) {
      sw_jw_kint(w, "limit", f->limit);
      sw_jw_kint(w, "value", f->value);
    }
    sw_jw_kstr(w, "advice", f->advice);
    sw_jw_end_object(w);
  }
  sw_jw_end_array(w);
}
