#include "server/gzip.h"

#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <zlib.h>

enum { GZIP_ONLY = 16, WINDOW = 15 };

struct sw_inflater {
  z_stream z;
  bool complete;
};

struct sw_inflater *sw_inflater_new(void)
{
  struct sw_inflater *i = calloc(1, sizeof *i);
  if (i && inflateInit2(&i->z, WINDOW + GZIP_ONLY) != Z_OK) {
    free(i);
    return NULL;
  }
  return i;
}

void sw_inflater_free(struct sw_inflater *i)
{
  if (!i)
    return;
  inflateEnd(&i->z);
  free(i);
}

bool sw_inflate(struct sw_inflater *i, const void *data, size_t n, struct sw_body *body, enum sw_body_rc *rc)
{
  unsigned char piece[1 << 14];
  i->z.next_in = (unsigned char *)(uintptr_t)data;
  i->z.avail_in = (unsigned)n; /* libmicrohttpd's pieces are small */
  *rc = SW_BODY_OK;
  do {
    if (i->complete)
      return !i->z.avail_in; /* nothing may follow */
    i->z.next_out = piece;
    i->z.avail_out = sizeof piece;
    int z = inflate(&i->z, Z_NO_FLUSH);
    if (z != Z_OK && z != Z_STREAM_END && z != Z_BUF_ERROR)
      return false;
    i->complete = z == Z_STREAM_END;
    size_t out = sizeof piece - i->z.avail_out;
    if (out)
      *rc = sw_body_add(body, piece, out);
  } while (*rc == SW_BODY_OK && (i->z.avail_in || !i->z.avail_out));
  return true;
}

bool sw_inflater_complete(const struct sw_inflater *i)
{
  return i->complete;
}

char *sw_gzip(const void *data, size_t n, size_t *len)
{
  z_stream z = {0};
  if (n > UINT_MAX / 2 || deflateInit2(&z, 1, Z_DEFLATED, WINDOW + GZIP_ONLY, 8, Z_DEFAULT_STRATEGY) != Z_OK)
    return NULL;
  char *out = malloc(n ? n : 1);
  z.next_in = (unsigned char *)(uintptr_t)data;
  z.avail_in = (unsigned)n;
  z.next_out = (unsigned char *)out;
  z.avail_out = (unsigned)n;
  bool fits = out && deflate(&z, Z_FINISH) == Z_STREAM_END;
  *len = z.total_out;
  deflateEnd(&z);
  if (fits)
    return out;
  free(out);
  return NULL;
}
