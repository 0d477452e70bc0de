/* The graph readers on any bytes: they may refuse them, but never crash, leak or hang. A graph that is read is written
 * as text and must read back to the same text. */
#include "compiler/graph/graph.h"
#include "fuzz.h"

static void read_and_write(struct fuzz *f)
{
  struct sw_graph *g = NULL, *again = NULL;
  struct sw_programs all = {0};
  sw_graph_programs(&f->job, f->bytes, f->len, &all);
  if (sw_graph_read(&f->job, "fuzz", f->bytes, f->len, all.names.n ? all.names.v[0] : NULL, &g) != SW_OK)
    return;
  struct sw_buf once = {.arena = f->job.arena}, twice = {.arena = f->job.arena};
  sw_graph_write_text(g, &once);
  fuzz_check(sw_graph_read(&f->job, "fuzz", sw_buf_text(&once), once.n, NULL, &again) == SW_OK);
  sw_graph_write_text(again, &twice);
  fuzz_check(!strcmp(sw_buf_text(&once), sw_buf_text(&twice)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  return fuzz_run(data, size, (size_t)256 << 20, read_and_write);
}
