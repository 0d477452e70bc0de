/* What the files of this folder share. */
#ifndef SW_SOLVER_ASSIGN_INTERNAL_H
#define SW_SOLVER_ASSIGN_INTERNAL_H

#include "solver/assign/assign.h"

/* Records an SW_INVALID fault at a JSON pointer. */
void sw_assign__bad(struct sw_job *job, const char *pointer, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Sum of two costs, impossible if one is. Finite sums stay below 2^63 - 1 (sw_assign_validate), so one unsigned
 * comparison is enough. */
static inline int64_t sw_assign__plus(int64_t a, int64_t b)
{
  uint64_t s = (uint64_t)a + (uint64_t)b;
  return s > (uint64_t)SW_ASSIGN_INF ? SW_ASSIGN_INF : (int64_t)s;
}

#endif
