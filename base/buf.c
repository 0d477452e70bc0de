#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void grow(struct sw_buf *b, size_t more)
{
  size_t cap = b->cap ? b->cap * 2 : 256;
  while (cap < b->n + more + 1)
    cap *= 2;
  char *p = sw_arena_alloc(b->arena, cap, 1);
  if (b->n)
    memcpy(p, b->p, b->n);
  b->p = p;
  b->cap = cap;
}

char *sw_buf_room(struct sw_buf *b, size_t n)
{
  if (b->n + n + 1 > b->cap)
    grow(b, n);
  return b->p + b->n;
}

void sw_buf_add(struct sw_buf *b, const void *p, size_t n)
{
  char *at = sw_buf_room(b, n);
  if (n)
    memcpy(at, p, n);
  sw_buf_end(b, at + n);
}

char *sw_int_text(char *out, int64_t i)
{
  char digits[20];
  int n = 0;
  uint64_t u = i < 0 ? -(uint64_t)i : (uint64_t)i;
  do
    digits[n++] = (char)('0' + u % 10);
  while (u /= 10);
  if (i < 0)
    *out++ = '-';
  while (n)
    *out++ = digits[--n];
  return out;
}

void sw_buf_puts(struct sw_buf *b, const char *s)
{
  sw_buf_add(b, s, strlen(s));
}

/* Into the room there is; once more when it was too small. */
void sw_buf_printf(struct sw_buf *b, const char *fmt, ...)
{
  va_list ap, again;
  va_start(ap, fmt);
  va_copy(again, ap);
  size_t room = b->cap - b->n;
  int n = vsnprintf(b->p ? b->p + b->n : NULL, room, fmt, ap);
  va_end(ap);
  if (n >= 0 && (size_t)n >= room) {
    sw_buf_room(b, (size_t)n);
    vsnprintf(b->p + b->n, (size_t)n + 1, fmt, again);
  }
  va_end(again);
  if (n > 0)
    b->n += (size_t)n;
  else if (b->p)
    b->p[b->n] = 0;
}

const char *sw_buf_text(const struct sw_buf *b)
{
  return b->p ? b->p : "";
}
