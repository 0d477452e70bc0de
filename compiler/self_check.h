/* Part of a compile: what was emitted is executed on the simulated card and compared with the graph's own meaning. */
#ifndef SW_SELF_CHECK_H
#define SW_SELF_CHECK_H

#include "base/files.h"
#include "base/options.h"
#include "compiler/lower/program.h"
#include "compiler/verify/verify.h"

/* What an execution costs, counted, so that equal input decides equally: iterations of all loops, elements of all values
 * (the evaluator makes each), and for a host step the product of its two largest operands. INT64_MAX when it is more. */
int64_t sw_work_to_verify(const struct sw_program *p);

/* Most work that mode auto does. */
enum { SW_VERIFY_AUTO_WORK = 4000000 };

/* Whether the check executes the program: then it reads the files from memory. */
bool sw_self_check_executes(const struct sw_options *o, const struct sw_program *p);

/* SW_INTERNAL when the program is wrong. In mode auto a program that is large, or that can't be simulated, passes as
 * "not executed"; in mode always the reason is a fault. Inputs, and weights without values, are a fixed sequence. */
enum sw_rc sw_self_check(struct sw_job *job, const struct sw_options *o, const struct sw_program *p,
                         const struct sw_files *files, struct sw_verdict *out);

#endif
