/* Op specs on any bytes: what is read is written back to the same text, and emitted or refused. */
#include "compiler/emit/opspec.h"
#include "fuzz.h"

static void read_and_emit(struct fuzz *f)
{
  struct sw_opspecs *s = NULL, *again = NULL;
  struct sw_files files = {0};
  if (sw_opspecs_read(&f->job, f->bytes, f->len, &s) != SW_OK)
    return;
  struct sw_buf once = {.arena = f->job.arena}, twice = {.arena = f->job.arena};
  sw_opspecs_write(s, &once);
  fuzz_check(sw_opspecs_read(&f->job, sw_buf_text(&once), once.n, &again) == SW_OK);
  sw_opspecs_write(again, &twice);
  fuzz_check(!strcmp(sw_buf_text(&once), sw_buf_text(&twice)));
  sw_emit_superdsc(&f->job, s, "", &files);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  return fuzz_run(data, size, (size_t)256 << 20, read_and_emit);
}
