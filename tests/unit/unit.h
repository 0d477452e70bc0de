/* What every unit test needs: cmocka, and a job with memory. */
#ifndef SW_TESTS_UNIT_H
#define SW_TESTS_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/job.h"

static inline struct sw_job unit_job(void)
{
  return (struct sw_job){.arena = sw_arena_new(NULL, (size_t)1 << 30)};
}

#endif
