#include "compiler/eval/float.h"

#include "compiler/eval/eval.h"

#include <math.h>
#include <string.h>

/* A format has a sign, exponent bits, mantissa bits and a bias. What the largest exponent field means differs:
 *   IEEE  infinities and NaN
 *   FN    numbers, apart from the all-ones mantissa, which is NaN; no infinities
 *   FNUZ  numbers; NaN is the pattern of -0, which does not exist; no infinities
 * float8_e4m3fn (4, 3, 7, FN): largest 1.75 * 2^8 = 448. */
enum kind { IEEE, FN, FNUZ };

struct format {
  int exponent, mantissa, bias;
  enum kind kind;
  double least, largest; /* normal numbers */
  double grid; /* 1.5 * 2^(52 + exponent of the smallest number): adding it rounds to multiples of that number */
};

static const struct format formats[SW_N_DTYPES] = {
    [SW_F16] = {5, 10, 15, IEEE, 0x1p-14, 65504, 0x1.8p28},
    [SW_BF16] = {8, 7, 127, IEEE, 0x1p-126, 0x1.fep127, 0x1.8p-81},
    [SW_F8E4M3] = {4, 3, 7, FN, 0x1p-6, 448, 0x1.8p43},
    [SW_F8E5M2] = {5, 2, 15, IEEE, 0x1p-14, 57344, 0x1.8p36},
    [SW_F8E4M3Z] = {4, 3, 8, FNUZ, 0x1p-7, 240, 0x1.8p42},
    [SW_F8E5M2Z] = {5, 2, 16, FNUZ, 0x1p-15, 57344, 0x1.8p35},
};

/* float8_e8m0fnu is a bare power of two from 2^-127 to 2^127; a tie goes up. */
static double round_e8m0(double x)
{
  if (isnan(x) || fabs(x) >= 0x1.8p127)
    return (double)NAN;
  int e;
  double m = frexp(fabs(x), &e); /* in [0.5, 1), or 0 */
  e -= m < 0.75;
  return ldexp(1, m == 0 || e < -127 ? -127 : e);
}

/* In the range of normal numbers the low bits of the double go: half of the last bit kept is added first, less one when
 * that bit is 0, so that ties go to the even side. 2049 as float16: 42 bits go, 2049 lies halfway and becomes 2048. */
static double round_bits(const struct format *f, double x)
{
  uint64_t u;
  int drop = 52 - f->mantissa;
  memcpy(&u, &x, sizeof u);
  u += ((uint64_t)1 << (drop - 1)) - 1 + (u >> drop & 1);
  u &= ~(((uint64_t)1 << drop) - 1);
  memcpy(&x, &u, sizeof x);
  return x;
}

double sw_round_to(enum sw_dtype t, double x)
{
  if (t == SW_F32)
    return (double)(float)x;
  if (t == SW_F8E8M0)
    return round_e8m0(x);
  const struct format *f = &formats[t];
  if (!f->exponent || isnan(x))
    return x;
  double r = x;
  if (fabs(x) < f->least)
    r = copysign(x + f->grid - f->grid, x);
  else if (!isinf(x))
    r = round_bits(f, x);
  if (fabs(r) > f->largest)
    return f->kind == IEEE ? copysign((double)INFINITY, x) : (double)NAN;
  return f->kind == FNUZ && r == 0 ? 0 : r;
}

uint64_t sw_float_encode(enum sw_dtype t, double x)
{
  if (t == SW_F32) {
    float y = (float)x;
    uint32_t u;
    memcpy(&u, &y, sizeof u);
    return u;
  }
  if (t == SW_F64) {
    uint64_t u;
    memcpy(&u, &x, sizeof u);
    return u;
  }
  if (t == SW_F8E8M0)
    return isnan(x) ? 255 : (uint64_t)(ilogb(x) + 127);
  const struct format *f = &formats[t];
  uint64_t ones = ((uint64_t)1 << f->exponent) - 1, sign = (uint64_t)!!signbit(x) << (f->exponent + f->mantissa);
  if (isnan(x)) {
    if (f->kind == FNUZ)
      return (uint64_t)1 << (f->exponent + f->mantissa);
    uint64_t full = ((uint64_t)1 << f->mantissa) - 1;
    return ones << f->mantissa | (f->kind == FN ? full : (uint64_t)1 << (f->mantissa - 1));
  }
  if (isinf(x))
    return sign | ones << f->mantissa;
  x = fabs(x);
  if (x == 0)
    return sign;
  int e = ilogb(x), least = 1 - f->bias;
  if (e < least)
    return sign | (uint64_t)ldexp(x, f->mantissa - least);
  uint64_t mantissa = (uint64_t)ldexp(x, f->mantissa - e) - ((uint64_t)1 << f->mantissa);
  return sign | (uint64_t)(e + f->bias) << f->mantissa | mantissa;
}

double sw_float_decode(enum sw_dtype t, uint64_t bits)
{
  if (t == SW_F32) {
    uint32_t u = (uint32_t)bits;
    float y;
    memcpy(&y, &u, sizeof y);
    return (double)y;
  }
  if (t == SW_F64) {
    double y;
    memcpy(&y, &bits, sizeof y);
    return y;
  }
  if (t == SW_F8E8M0)
    return bits == 255 ? (double)NAN : ldexp(1, (int)bits - 127);
  const struct format *f = &formats[t];
  uint64_t ones = ((uint64_t)1 << f->exponent) - 1, full = ((uint64_t)1 << f->mantissa) - 1;
  uint64_t mantissa = bits & full, exponent = bits >> f->mantissa & ones;
  bool negative = bits >> (f->exponent + f->mantissa) & 1;
  if (f->kind == FNUZ && negative && !exponent && !mantissa)
    return (double)NAN;
  if (exponent == ones && f->kind == FN && mantissa == full)
    return (double)NAN;
  double x;
  if (exponent == ones && f->kind == IEEE)
    x = mantissa ? (double)NAN : (double)INFINITY;
  else if (!exponent)
    x = ldexp((double)mantissa, 1 - f->bias - f->mantissa);
  else
    x = ldexp((double)(mantissa | (full + 1)), (int)exponent - f->bias - f->mantissa);
  return negative ? -x : x;
}
