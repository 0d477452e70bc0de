#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void reserve(struct sw_buf *b, size_t more)
{
  if (b->n + more + 1 <= b->cap)
    return;
  size_t cap = b->cap ? b->cap * 2 : 256;
  while (cap < b->n + more + 1)
    cap *= 2;
  char *p = sw_arena_alloc(b->arena, cap, 1);
  if (b->n)
    memcpy(p, b->p, b->n);
  b->p = p;
  b->cap = cap;
}

void sw_buf_add(struct sw_buf *b, const void *p, size_t n)
{
  reserve(b, n);
  if (n)
    memcpy(b->p + b->n, p, n);
  b->n += n;
  b->p[b->n] = 0;
}

void sw_buf_puts(struct sw_buf *b, const char *s)
{
  sw_buf_add(b, s, strlen(s));
}

void sw_buf_printf(struct sw_buf *b, const char *fmt, ...)
{
  va_list ap, again;
  va_start(ap, fmt);
  va_copy(again, ap);
  int n = vsnprintf(NULL, 0, fmt, ap);
  va_end(ap);
  if (n > 0) {
    reserve(b, (size_t)n);
    vsnprintf(b->p + b->n, (size_t)n + 1, fmt, again);
    b->n += (size_t)n;
  }
  va_end(again);
}

const char *sw_buf_text(const struct sw_buf *b)
{
  return b->p ? b->p : "";
}
