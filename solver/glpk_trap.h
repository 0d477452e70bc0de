/* GLPK calls abort() when it is misused or out of memory, and prints. Here it does neither. */
#ifndef SW_SOLVER_GLPK_TRAP_H
#define SW_SOLVER_GLPK_TRAP_H

#include <stdbool.h>

/* Runs body(ctx), which makes and deletes its glp_prob and allocates nothing else. False when GLPK stopped: `message`
 * says why. GLPK's memory of this thread is freed in both cases. */
bool sw_glpk_run(void (*body)(void *ctx), void *ctx, char message[128]);

#endif
