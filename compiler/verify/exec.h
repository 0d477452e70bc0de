/* One execute of one op on all its cores. Reference: superdsc.md section 16, M4 to M13. */
#ifndef SW_VERIFY_EXEC_H
#define SW_VERIFY_EXEC_H

#include "compiler/verify/dsc.h"

/* Where addresses of HBM lead: argument k of the bundle lies at (k + 1) << 40, the pool behind the arguments. */
enum { SIM_SPACE_BITS = 40 };

struct sim_card {
  struct sim_memory **hbm; /* by space number - 1 */
  int n_hbm;
  const struct sim_memory *pool; /* one of them, or NULL */
  struct sim_memory *lx[DSC_MAX_CORES]; /* made when a core first uses its own */
  struct sw_arena *scratch;             /* for them */
  size_t lx_bytes;                      /* of each */
  bool is_dl16;                         /* as the memory of the arguments */
  bool leaves_half;                     /* a number was written that fp16 does not hold */
  uint32_t n_executes;
};

/* Value of a symbol id for this execute; false when it was not passed. */
struct sim_symbols {
  const int64_t *ids, *values;
  int n;
};

/* Runs the op. SW_DIFFERENT with a fault that names file, tensor and rule; SW_UNSUPPORTED for ops not simulated. */
enum sw_rc sim_execute(struct sw_job *job, struct sim_card *card, const struct dsc *d, const struct sim_symbols *symbols);

#endif
