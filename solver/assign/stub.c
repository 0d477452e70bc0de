#include "solver/assign/exact.h"

const int *sw_assign__ilp_full(struct sw_job *job, const struct sw_assign_problem *p, const struct sw_assign_options *o,
                               struct sw_assign_result *r)
{
  (void)p, (void)o;
  sw_fault(job, SW_UNSUPPORTED, "solver ilp-full is not in this version");
  r->status = SW_ASSIGN_UNKNOWN;
  return NULL;
}

void sw_assign_write_lp(const struct sw_assign_problem *p, struct sw_buf *out)
{
  (void)p;
  sw_buf_puts(out, "\\ not in this version\n");
}
