/* Small op specs as text, for tests. */
#ifndef SW_TESTS_SPEC_TEXT_H
#define SW_TESTS_SPEC_TEXT_H

#include "base/buf.h"

#include <stdio.h>
#include <string.h>

/* One op: loops "c0,64,4;c1,100,1", per tensor a device size "2,64,64" (argument number = its place), "2,64,64@lx:0" or
 * "2,64,64@hbm_pool:0", and coordinates "floor(c1/64)|c0|Mod(c1, 64)"; the last tensor is the output. */
static inline void op_text(struct sw_buf *b, const char *op, bool is_reduction, const char *loops,
                           const char *const *sizes, const char *const *coords, int n)
{
  sw_buf_printf(b, "{\"kind\": \"op\", \"op\": \"%s\", \"is_reduction\": %s, \"iteration_space\": [", op,
                is_reduction ? "true" : "false");
  for (const char *p = loops; *p;) {
    char name[16];
    int range, split, used;
    assert_int_equal(sscanf(p, "%15[^,],%d,%d%n", name, &range, &split, &used), 3);
    p += used;
    sw_buf_printf(b, "%s{\"symbol\": \"%s\", \"range\": %d, \"split\": %d}", p == loops + used ? "" : ", ", name,
                  range, split);
    p += *p == ';';
  }
  sw_buf_puts(b, "], \"op_info\": {}, \"args\": [");
  for (int i = 0; i < n; i++) {
    const char *place = strchr(sizes[i], '@'), *colon = place ? strchr(place, ':') : NULL;
    sw_buf_printf(b, "%s{\"is_input\": %s, \"arg_index\": %d, \"device_dtype\": \"SEN169_FP16\", \"device_size\": "
                  "[%.*s], \"device_coordinates\": [", i ? ", " : "", i < n - 1 ? "true" : "false", place ? -1 : i,
                  (int)strcspn(sizes[i], "@"), sizes[i]);
    for (const char *p = coords[i]; *p;) {
      int len = (int)strcspn(p, "|");
      sw_buf_printf(b, "%s\"%.*s\"", p == coords[i] ? "" : ", ", len, p);
      p += len + (p[len] == '|');
    }
    sw_buf_puts(b, "], \"allocation\": {");
    if (place)
      sw_buf_printf(b, "\"%.*s\": %s", (int)(colon - place - 1), place + 1, colon + 1);
    else
      sw_buf_printf(b, "\"hbm\": %d", i);
    sw_buf_puts(b, "}, \"element_arrangement\": \"STANDARD\"}");
  }
  sw_buf_puts(b, "]}");
}

static const char bundle_head[] = "{\"case\": \"t\", \"pool_size\": 65536, \"specs\": [";
static const char bundle_tail[] = "]}";

static inline const char *spec_text(struct sw_job *job, const char *op, bool is_reduction, const char *loops,
                                    const char *const *sizes, const char *const *coords, int n)
{
  struct sw_buf b = {.arena = job->arena};
  sw_buf_puts(&b, bundle_head);
  op_text(&b, op, is_reduction, loops, sizes, coords, n);
  sw_buf_puts(&b, bundle_tail);
  return sw_buf_text(&b);
}

#endif
