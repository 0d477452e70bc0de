#include "server/coding.h"

#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

enum { GZIP_ONLY = 16, WINDOW = 15 };

/* A zstd frame names the memory that its reader needs. RFC 8878 asks for 8 MB, and nobody may ask us for more. */
enum { ZSTD_WINDOW = 23 };

/* Memory of one that inflates: zstd has the window twice, once for what comes out. */
static const size_t needs[] = {0, 64 << 10, 2 << ZSTD_WINDOW};

static const char *const names[] = {"identity", "gzip", "zstd"};

const char *sw_coding_name(enum sw_coding c)
{
  return names[c];
}

int sw_coding_of(const char *header)
{
  for (int c = 0; header && c < SW_N_CODINGS; c++)
    if (!strcasecmp(header, names[c]))
      return c;
  return header ? -1 : SW_CODING_NONE;
}

/* The q of an element "name;q=0.5"; 1 when it has none. */
static double weight(const char *element, size_t n)
{
  const char *semicolon = memchr(element, ';', n);
  const char *q = semicolon ? semicolon + 1 + strspn(semicolon + 1, " \t") : NULL;
  return q && q < element + n && strncasecmp(q, "q=", 2) == 0 ? strtod(q + 2, NULL) : 1;
}

enum sw_coding sw_coding_accepted(const char *header)
{
  double q[SW_N_CODINGS] = {0, -1, -1}, any = 0;
  for (const char *s = header ? header : ""; *s; s += *s == ',') {
    s += strspn(s, " \t");
    size_t n = strcspn(s, ","), name = strcspn(s, ",; \t");
    for (int c = SW_CODING_GZIP; c < SW_N_CODINGS; c++)
      if (name == strlen(names[c]) && !strncasecmp(s, names[c], name))
        q[c] = weight(s, n);
    if (name == 1 && *s == '*')
      any = weight(s, n);
    s += n;
  }
  enum sw_coding best = SW_CODING_NONE;
  for (int c = SW_CODING_GZIP; c < SW_N_CODINGS; c++) {
    q[c] = q[c] < 0 ? any : q[c];
    if (q[c] > 0 && q[c] >= q[best])
      best = (enum sw_coding)c;
  }
  return best;
}

/* -- bodies -- */

struct sw_inflater {
  enum sw_coding coding;
  struct sw_budget *budget;
  z_stream gzip;
  ZSTD_DStream *zstd;
  size_t left; /* compressed bytes that may still come: data that inflates to nothing can go on for ever */
  bool complete;
};

struct sw_inflater *sw_inflater_new(enum sw_coding c, size_t most, struct sw_budget *budget)
{
  if (!sw_budget_take(budget, needs[c]))
    return NULL;
  struct sw_inflater *i = calloc(1, sizeof *i);
  if (!i) {
    sw_budget_give(budget, needs[c]);
    return NULL;
  }
  i->coding = c;
  i->budget = budget;
  i->left = most;
  if (c == SW_CODING_ZSTD) {
    i->zstd = ZSTD_createDStream();
    if (i->zstd && !ZSTD_isError(ZSTD_DCtx_setParameter(i->zstd, ZSTD_d_windowLogMax, ZSTD_WINDOW)))
      return i;
    ZSTD_freeDStream(i->zstd);
  } else if (c == SW_CODING_GZIP && inflateInit2(&i->gzip, WINDOW + GZIP_ONLY) == Z_OK) {
    return i;
  }
  sw_budget_give(budget, needs[c]);
  free(i);
  return NULL;
}

void sw_inflater_free(struct sw_inflater *i)
{
  if (!i)
    return;
  if (i->coding == SW_CODING_GZIP)
    inflateEnd(&i->gzip);
  ZSTD_freeDStream(i->zstd);
  sw_budget_give(i->budget, needs[i->coding]);
  free(i);
}

/* One step from *in on: how many bytes came out, or -1. */
static long step(struct sw_inflater *i, ZSTD_inBuffer *in, unsigned char *piece, size_t room)
{
  if (i->coding == SW_CODING_ZSTD) {
    ZSTD_outBuffer out = {piece, room, 0};
    size_t hint = ZSTD_decompressStream(i->zstd, &out, in);
    i->complete = !hint; /* the end of a frame; another may follow */
    return ZSTD_isError(hint) ? -1 : (long)out.pos;
  }
  i->gzip.next_in = (unsigned char *)(uintptr_t)in->src + in->pos;
  i->gzip.avail_in = (unsigned)(in->size - in->pos); /* libmicrohttpd's pieces are small */
  i->gzip.next_out = piece;
  i->gzip.avail_out = (unsigned)room;
  int z = inflate(&i->gzip, Z_NO_FLUSH);
  if (z != Z_OK && z != Z_STREAM_END && z != Z_BUF_ERROR)
    return -1;
  i->complete = z == Z_STREAM_END;
  in->pos = in->size - i->gzip.avail_in;
  return (long)(room - i->gzip.avail_out);
}

bool sw_inflate(struct sw_inflater *i, const void *data, size_t n, struct sw_body *body, enum sw_body_rc *rc)
{
  unsigned char piece[1 << 14];
  ZSTD_inBuffer in = {data, n, 0};
  long out = 0;
  *rc = n > i->left ? SW_BODY_TOO_LARGE : SW_BODY_OK;
  i->left -= n;
  while (*rc == SW_BODY_OK && (in.pos < in.size || out == sizeof piece)) {
    if (i->complete && i->coding == SW_CODING_GZIP)
      return in.pos == in.size; /* nothing may follow */
    out = step(i, &in, piece, sizeof piece);
    if (out < 0)
      return false;
    if (out)
      *rc = sw_body_add(body, piece, (size_t)out);
  }
  return true;
}

bool sw_inflater_complete(const struct sw_inflater *i)
{
  return i->complete;
}

/* -- answers -- */

/* Both give the length, or 0 when it does not fit into n bytes. */
static size_t gzip(const void *data, size_t n, char *out)
{
  z_stream z = {0};
  if (n > UINT_MAX / 2 || deflateInit2(&z, 1, Z_DEFLATED, WINDOW + GZIP_ONLY, 8, Z_DEFAULT_STRATEGY) != Z_OK)
    return 0;
  z.next_in = (unsigned char *)(uintptr_t)data;
  z.avail_in = (unsigned)n;
  z.next_out = (unsigned char *)out;
  z.avail_out = (unsigned)n;
  bool fits = deflate(&z, Z_FINISH) == Z_STREAM_END;
  deflateEnd(&z);
  return fits ? z.total_out : 0;
}

static size_t zstd(const void *data, size_t n, char *out)
{
  size_t len = ZSTD_compress(out, n, data, n, ZSTD_CLEVEL_DEFAULT);
  return ZSTD_isError(len) ? 0 : len;
}

char *sw_compress(enum sw_coding c, const void *data, size_t n, size_t *len)
{
  char *out = malloc(n ? n : 1);
  *len = !out ? 0 : c == SW_CODING_ZSTD ? zstd(data, n, out) : gzip(data, n, out);
  if (*len)
    return out;
  free(out);
  return NULL;
}
