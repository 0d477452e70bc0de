#include "server/zip.h"

#include <stdlib.h>
#include <string.h>
#include <zip.h>

/* Deflating goes on while everybody else waits: half a second for these bytes at most, and none above. */
enum { WORTH_DEFLATING = 8 << 20, FAST = 1 };

char *sw_result_zip(const struct sw_result *r, size_t *len)
{
  zip_int32_t method = r->bytes <= WORTH_DEFLATING ? ZIP_CM_DEFLATE : ZIP_CM_STORE;
  zip_error_t why;
  zip_error_init(&why);
  zip_source_t *memory = zip_source_buffer_create(NULL, 0, 0, &why);
  zip_t *z = memory ? zip_open_from_source(memory, ZIP_CREATE | ZIP_TRUNCATE, &why) : NULL;
  if (!z) {
    zip_source_free(memory);
    return NULL;
  }
  zip_source_keep(memory);
  bool ok = true;
  for (size_t i = 0; i < r->n_files && ok; i++) {
    zip_source_t *s = zip_source_buffer(z, r->files[i].bytes, r->files[i].len, 0);
    zip_int64_t at = s ? zip_file_add(z, r->files[i].path, s, ZIP_FL_ENC_UTF_8) : -1;
    if (s && at < 0)
      zip_source_free(s);
    ok = at >= 0 && !zip_set_file_compression(z, (zip_uint64_t)at, method, FAST) &&
         !zip_file_set_mtime(z, (zip_uint64_t)at, 315532800, 0); /* 1980, where ZIP dates begin */
  }
  if (!ok || zip_close(z)) {
    zip_discard(z);
    zip_source_free(memory);
    return NULL;
  }
  char *bytes = NULL;
  zip_stat_t st;
  if (!zip_source_stat(memory, &st) && !zip_source_open(memory)) {
    bytes = malloc(st.size ? st.size : 1);
    if (bytes && zip_source_read(memory, bytes, st.size) != (zip_int64_t)st.size) {
      free(bytes);
      bytes = NULL;
    }
    *len = st.size;
    zip_source_close(memory);
  }
  zip_source_free(memory);
  return bytes;
}
