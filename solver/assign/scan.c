#include "solver/assign/scan.h"

#include <stdint.h>
#include <string.h>

struct scan {
  const char *end;
  int depth;
};

static bool is_blank(char c)
{
  return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

static bool is_digit(char c)
{
  return c >= '0' && c <= '9';
}

static int hex(char c)
{
  return is_digit(c) ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* -- the pass that trusts nothing: each function gives the place behind what it names, or NULL -- */

static const char *blanks(const struct scan *c, const char *s)
{
  while (s < c->end && is_blank(*s))
    s++;
  return s;
}

/* Four hex digits behind \u, -1 if they are none. */
static int unit(const struct scan *c, const char *s)
{
  int u = 0;
  for (int i = 0; i < 4; i++) {
    int h = s + i < c->end ? hex(s[i]) : -1;
    if (h < 0)
      return -1;
    u = u << 4 | h;
  }
  return u;
}

static const char *escape(const struct scan *c, const char *s)
{
  if (s >= c->end)
    return NULL;
  if (*s != 'u')
    return *s && strchr("\"\\/bfnrt", *s) ? s + 1 : NULL;
  int u = unit(c, s + 1);
  if (u <= 0 || (u & 0xFC00) == 0xDC00) /* texts end at a NUL, so none may be in them */
    return NULL;
  s += 5;
  if ((u & 0xFC00) != 0xD800)
    return s;
  int low = c->end - s >= 6 && s[0] == '\\' && s[1] == 'u' ? unit(c, s + 2) : -1;
  return low >= 0xDC00 && low <= 0xDFFF ? s + 6 : NULL;
}

/* One character beyond ASCII: no overlong forms, surrogates, or more than U+10FFFF. */
static const char *utf8(const struct scan *c, const char *s)
{
  unsigned char first = (unsigned char)*s;
  int more = first >= 0xF0 && first < 0xF5 ? 3 : first >= 0xE0 ? 2 : first >= 0xC2 ? 1 : 0;
  if (first >= 0xF5 || !more || c->end - s <= more)
    return NULL;
  for (int i = 1; i <= more; i++)
    if (((unsigned char)s[i] & 0xC0) != 0x80)
      return NULL;
  unsigned char second = (unsigned char)s[1];
  if ((first == 0xE0 && second < 0xA0) || (first == 0xED && second > 0x9F) || (first == 0xF0 && second < 0x90) ||
      (first == 0xF4 && second > 0x8F))
    return NULL;
  return s + more + 1;
}

static const char *string(const struct scan *c, const char *s)
{
  for (s++; s < c->end && *s != '"';) {
    if (*s == '\\')
      s = escape(c, s + 1);
    else if ((unsigned char)*s < 0x20)
      return NULL;
    else if ((unsigned char)*s < 0x80)
      s++;
    else
      s = utf8(c, s);
    if (!s)
      return NULL;
  }
  return s < c->end ? s + 1 : NULL;
}

static const char *digits(const struct scan *c, const char *s)
{
  const char *from = s;
  while (s < c->end && is_digit(*s))
    s++;
  return s > from ? s : NULL;
}

static const char *number(const struct scan *c, const char *s)
{
  if (*s == '-')
    s++;
  s = s < c->end && *s == '0' ? s + 1 : digits(c, s);
  if (s && s < c->end && *s == '.')
    s = digits(c, s + 1);
  if (s && s < c->end && (*s == 'e' || *s == 'E')) {
    s++;
    if (s < c->end && (*s == '+' || *s == '-'))
      s++;
    s = digits(c, s);
  }
  return s;
}

static const char *word(const struct scan *c, const char *s, const char *text)
{
  size_t n = strlen(text);
  return (size_t)(c->end - s) >= n && !memcmp(s, text, n) ? s + n : NULL;
}

static const char *value(struct scan *c, const char *s);

/* A list or an object, whose elements begin with a key. */
static const char *elements(struct scan *c, const char *s, char close)
{
  if (++c->depth > SW_SCAN_MAX_DEPTH)
    return NULL;
  s = blanks(c, s + 1);
  if (s < c->end && *s == close) {
    c->depth--;
    return s + 1;
  }
  for (;;) {
    if (close == '}') {
      s = s < c->end && *s == '"' ? string(c, s) : NULL;
      s = s ? blanks(c, s) : NULL;
      if (!s || s >= c->end || *s != ':')
        return NULL;
      s = blanks(c, s + 1);
    }
    s = value(c, s);
    s = s ? blanks(c, s) : NULL;
    if (!s || s >= c->end)
      return NULL;
    if (*s == close) {
      c->depth--;
      return s + 1;
    }
    if (*s != ',')
      return NULL;
    s = blanks(c, s + 1);
  }
}

static const char *value(struct scan *c, const char *s)
{
  if (s >= c->end)
    return NULL;
  switch (*s) {
  case '{': return elements(c, s, '}');
  case '[': return elements(c, s, ']');
  case '"': return string(c, s);
  case 't': return word(c, s, "true");
  case 'f': return word(c, s, "false");
  case 'n': return word(c, s, "null");
  default: return *s == '-' || is_digit(*s) ? number(c, s) : NULL;
  }
}

const char *sw_scan(const char *text, size_t len)
{
  struct scan c = {.end = text + len};
  const char *root = blanks(&c, text), *end = value(&c, root);
  return end && blanks(&c, end) == c.end ? root : NULL;
}

/* -- visiting what is known to be well-formed -- */

static const char *past_string(const char *s)
{
  for (s++; *s != '"'; s++)
    if (*s == '\\')
      s++;
  return s + 1;
}

static const char *past_blanks(const char *s)
{
  while (is_blank(*s))
    s++;
  return s;
}

static const char *past_value(const char *s)
{
  if (*s == '"')
    return past_string(s);
  if (*s != '[' && *s != '{') {
    while (is_digit(*s) || (*s >= 'a' && *s <= 'z') || *s == '-' || *s == '+' || *s == '.' || *s == 'E')
      s++;
    return s;
  }
  for (int depth = 0;; s++) {
    if (*s == '"')
      s = past_string(s) - 1;
    else if (*s == '[' || *s == '{')
      depth++;
    else if ((*s == ']' || *s == '}') && !--depth)
      return s + 1;
  }
}

const char *sw_scan_skip(const char *s)
{
  /* The root has nothing behind it that could be looked at; all others have a bracket to come. */
  return past_blanks(past_value(s));
}

const char *sw_scan_first(const char *s)
{
  s = past_blanks(s + 1);
  return *s == ']' || *s == '}' ? NULL : s;
}

const char *sw_scan_value(const char *key)
{
  return past_blanks(past_blanks(past_string(key)) + 1);
}

const char *sw_scan_next(const char *s)
{
  s = sw_scan_skip(s);
  if (*s == ':')
    s = sw_scan_skip(past_blanks(s + 1));
  return *s == ',' ? past_blanks(s + 1) : NULL;
}

size_t sw_scan_count(const char *s)
{
  size_t n = 0;
  for (const char *e = sw_scan_first(s); e; e = sw_scan_next(e))
    n++;
  return n;
}

bool sw_scan_int(const char *s, int64_t *out)
{
  bool negative = *s == '-';
  int64_t n = 0;
  if (negative)
    s++;
  if (!is_digit(*s))
    return false;
  for (; is_digit(*s); s++)
    if (__builtin_mul_overflow(n, 10, &n) || __builtin_sub_overflow(n, *s - '0', &n))
      return false;
  if (*s == '.' || *s == 'e' || *s == 'E' || (!negative && n == INT64_MIN))
    return false;
  *out = negative ? n : -n;
  return true;
}

bool sw_scan_is(const char *s, const char *text)
{
  size_t n = strlen(text);
  return *s == '"' && !strncmp(s + 1, text, n) && s[n + 1] == '"';
}

static char *put(char *to, uint32_t u)
{
  if (u < 0x80) {
    *to++ = (char)u;
  } else if (u < 0x800) {
    *to++ = (char)(0xC0 | u >> 6);
    *to++ = (char)(0x80 | (u & 0x3F));
  } else if (u < 0x10000) {
    *to++ = (char)(0xE0 | u >> 12);
    *to++ = (char)(0x80 | (u >> 6 & 0x3F));
    *to++ = (char)(0x80 | (u & 0x3F));
  } else {
    *to++ = (char)(0xF0 | u >> 18);
    *to++ = (char)(0x80 | (u >> 12 & 0x3F));
    *to++ = (char)(0x80 | (u >> 6 & 0x3F));
    *to++ = (char)(0x80 | (u & 0x3F));
  }
  return to;
}

static uint32_t four(const char *s)
{
  return (uint32_t)(hex(s[0]) << 12 | hex(s[1]) << 8 | hex(s[2]) << 4 | hex(s[3]));
}

const char *sw_scan_text(struct sw_arena *a, const char *s)
{
  static const char from[] = "bfnrt", to[] = "\b\f\n\r\t";
  size_t n = (size_t)(past_string(s) - s) - 2;
  char *text = sw_arena_strndup(a, s + 1, n);
  if (!memchr(text, '\\', n))
    return text;
  char *out = text; /* never longer than what it decodes */
  for (const char *p = s + 1; *p != '"';) {
    if (*p != '\\') {
      *out++ = *p++;
      continue;
    }
    const char *simple = strchr(from, p[1]);
    if (p[1] != 'u') {
      *out++ = simple ? to[simple - from] : p[1];
      p += 2;
      continue;
    }
    uint32_t u = four(p + 2);
    p += 6;
    if ((u & 0xFC00) == 0xD800) {
      u = 0x10000 + ((u & 0x3FF) << 10) + (four(p + 2) & 0x3FF);
      p += 6;
    }
    out = put(out, u ? u : 0xFFFD);
  }
  *out = 0;
  return text;
}
