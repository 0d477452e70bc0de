/* What a SuperDSC file says twice must agree: rules that need no execution (superdsc.md section 16, M2). */
#ifndef SW_VERIFY_STRUCTURE_H
#define SW_VERIFY_STRUCTURE_H

#include "compiler/verify/dsc.h"

/* `top` is the value of the outer key, `d` what was read from it. False after a fault that names file, JSON path and
 * rule. */
bool dsc_check_structure(struct sw_job *job, const struct dsc *d, const json_t *top);

#endif
