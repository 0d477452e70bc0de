/* Scratchpad problems, JSON or minimalloc's CSV, on any bytes: what is read is placed by each placer, and every plan must
 * be legal and no better than what the exact placer proved. */
#include "solver/place/place.h"
#include "fuzz.h"

static const enum sw_lx_placer placers[] = {SW_LX_EXACT, SW_LX_GREEDY, SW_LX_FIRSTFIT, SW_LX_BESTFIT, SW_LX_STACK};
enum { N_PLACERS = sizeof placers / sizeof *placers };

static void read_and_place(struct fuzz *f)
{
  struct sw_place_problem *p = NULL;
  bool is_json = f->len > 0 && f->bytes[0] == '{';
  enum sw_rc rc = is_json ? sw_place_read_json(&f->job, f->bytes, f->len, &p)
                          : sw_place_read_csv(&f->job, "A.1048576.csv", f->bytes, f->len, -1, &p);
  if (rc != SW_OK)
    return;
  const struct sw_place_result *exact = NULL;
  for (int i = 0; i < N_PLACERS; i++) {
    struct sw_place_result *r = NULL;
    int64_t value, peak;
    if (sw_place_solve(&f->job, p, &(struct sw_place_options){.placer = placers[i], .budget = 20000}, &r) != SW_OK)
      continue;
    if (r->address) {
      fuzz_check(!sw_place_check(&f->job, p, r->address, &value, &peak));
      fuzz_check(value == r->value && peak == r->peak);
      fuzz_check(!exact || exact->bound < 0 || value <= exact->bound);
      fuzz_check(!exact || exact->status != SW_PLACED_INFEASIBLE);
    }
    if (!exact)
      exact = r;
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  return fuzz_run(data, size, (size_t)128 << 20, read_and_place);
}
