/* Small arithmetic that several rooms need. */
#ifndef SW_BASE_NUMBER_H
#define SW_BASE_NUMBER_H

#include <stdint.h>

/* Greatest common divisor of numbers >= 0; gcd(0, b) = b. gcd(12, 18) = 6. */
static inline int64_t sw_gcd(int64_t a, int64_t b)
{
  while (b) {
    int64_t rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

/* The next multiple of `to` at or above n >= 0. 100 to 64: 128. */
static inline int64_t sw_round_up(int64_t n, int64_t to)
{
  return (n + to - 1) / to * to;
}

/* A real cut towards zero; INT64_MIN, as PyTorch on x86-64, for NaN and what is out of range, where C says nothing. */
static inline int64_t sw_whole_of_real(double x)
{
  return x >= -0x1p63 && x < 0x1p63 ? (int64_t)x : INT64_MIN;
}

#endif
