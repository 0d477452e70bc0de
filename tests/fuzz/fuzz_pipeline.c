/* Graphs on any bytes through all passes, in both profiles: compiled or refused with a reason, never a crash, and a
 * compile that succeeds has files. */
#include "compiler/pipeline.h"
#include "fuzz.h"

static void compile(struct fuzz *f)
{
  for (int profile = SW_PROFILE_BEST; profile <= SW_PROFILE_TORCH_SPYRE; profile++) {
    struct sw_options o;
    struct sw_compiled c = {0};
    sw_options_init(&o);
    o.profile = (enum sw_profile)profile;
    o.budget = 100000;
    sw_options_settle(&o);
    struct sw_compile_input in = {.bytes = f->bytes, .len = f->len};
    enum sw_rc rc = sw_compile(&f->job, &o, &in, NULL, NULL, &c);
    fuzz_check(c.result && c.status);
    fuzz_check(rc != SW_OK || c.files.list.n > 0);
    fuzz_check(rc == SW_OK || f->job.faults.n > 0);
    f->job.faults.n = 0;
    f->job.worst = SW_OK;
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  return fuzz_run(data, size, (size_t)512 << 20, compile);
}
