/* The graph readers on any bytes: they may refuse them, but never crash, leak or hang. A graph that is read is written
 * as text and must read back to the same text. */
#include "compiler/graph/graph.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct one {
  struct sw_job job;
  const char *bytes;
  size_t len;
};

static void read_and_write(void *p)
{
  struct one *o = p;
  struct sw_graph *g = NULL, *again = NULL;
  struct sw_programs all = {0};
  sw_graph_programs(&o->job, o->bytes, o->len, &all);
  if (sw_graph_read(&o->job, "fuzz", o->bytes, o->len, all.names.n ? all.names.v[0] : NULL, &g) != SW_OK)
    return;
  struct sw_buf once = {.arena = o->job.arena}, twice = {.arena = o->job.arena};
  sw_graph_write_text(g, &once);
  if (sw_graph_read(&o->job, "fuzz", sw_buf_text(&once), once.n, NULL, &again) != SW_OK)
    abort();
  sw_graph_write_text(again, &twice);
  if (strcmp(sw_buf_text(&once), sw_buf_text(&twice)))
    abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  struct one o = {.job = {.arena = sw_arena_new(NULL, (size_t)256 << 20)}};
  if (!o.job.arena)
    return 0;
  /* An exact copy, so that reading one byte too far is seen. */
  char *copy = malloc(size ? size : 1);
  if (copy) {
    memcpy(copy, data, size);
    o.bytes = copy;
    o.len = size;
    sw_arena_run(o.job.arena, read_and_write, &o);
  }
  sw_arena_free(o.job.arena);
  free(copy);
  return 0;
}
