/* Text or bytes that grow, in an arena; always NUL-terminated behind the last byte. */
#ifndef SW_BASE_BUF_H
#define SW_BASE_BUF_H

#include "base/arena.h"

struct sw_buf {
  struct sw_arena *arena;
  char *p; /* NULL while empty */
  size_t n, cap;
};

void sw_buf_add(struct sw_buf *b, const void *p, size_t n);
void sw_buf_puts(struct sw_buf *b, const char *s);
void sw_buf_printf(struct sw_buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The text so far, "" when empty. Valid until the next change. */
const char *sw_buf_text(const struct sw_buf *b);

#endif
