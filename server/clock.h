/* Seconds that only go forward: for deadlines and times taken, never for dates. */
#ifndef SW_SERVER_CLOCK_H
#define SW_SERVER_CLOCK_H

#include <time.h>

static inline double sw_now(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

#endif
