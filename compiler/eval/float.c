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
};

static const struct format formats[SW_N_DTYPES] = {
    [SW_F16] = {5, 10, 15, IEEE},    [SW_BF16] = {8, 7, 127, IEEE},  [SW_F32] = {8, 23, 127, IEEE},
    [SW_F64] = {11, 52, 1023, IEEE}, [SW_F8E4M3] = {4, 3, 7, FN},    [SW_F8E5M2] = {5, 2, 15, IEEE},
    [SW_F8E4M3Z] = {4, 3, 8, FNUZ},  [SW_F8E5M2Z] = {5, 2, 16, FNUZ},
};

static double largest(const struct format *f)
{
  int top = (1 << f->exponent) - (f->kind == IEEE ? 2 : 1) - f->bias;
  double ulps = ldexp(1, f->mantissa + 1) - (f->kind == FN ? 2 : 1);
  return ldexp(ulps, top - f->mantissa);
}

/* float8_e8m0fnu is a bare power of two; a tie goes up. */
static double round_e8m0(double x)
{
  if (isnan(x) || isinf(x))
    return (double)NAN;
  int e;
  double m = frexp(fabs(x), &e); /* in [0.5, 1), or 0 */
  if (m == 0)
    return ldexp(1, -127);
  return ldexp(1, m >= 0.75 ? e : e - 1);
}

double sw_round_to(enum sw_dtype t, double x)
{
  if (t == SW_F32)
    return (double)(float)x;
  if (t == SW_F8E8M0)
    return round_e8m0(x);
  const struct format *f = &formats[t];
  if (t == SW_F64 || !f->exponent || isnan(x))
    return x;
  if (isinf(x))
    return f->kind == IEEE ? x : (double)NAN;
  int e;
  frexp(x, &e);
  int least = 1 - f->bias;
  int ulp = (e - 1 < least ? least : e - 1) - f->mantissa;
  double r = ldexp(nearbyint(ldexp(x, -ulp)), ulp);
  if (fabs(r) > largest(f))
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
