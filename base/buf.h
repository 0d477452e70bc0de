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
/* Room for n more bytes behind the text. Who has written there calls sw_buf_end with the place behind the last byte. */
char *sw_buf_room(struct sw_buf *b, size_t n);
static inline void sw_buf_end(struct sw_buf *b, char *end)
{
  *end = 0;
  b->n = (size_t)(end - b->p);
}
/* The decimal digits of i at `out`, which has room for 20; the place behind them. */
char *sw_int_text(char *out, int64_t i);
void sw_buf_puts(struct sw_buf *b, const char *s);
void sw_buf_printf(struct sw_buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The text so far, "" when empty. Valid until the next change. */
const char *sw_buf_text(const struct sw_buf *b);

#endif
