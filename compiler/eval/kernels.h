/* Elementwise functions as expressions of up to four operands a, b, c, d. The table of overloads says which arguments
 * those are. Inside compiler/eval only.
 *
 *   REAL(name, e)      floats; integers are converted
 *   BOTH(name, e, i)   floats, and integers exactly
 *   TEST(name, e)      truth of e, on floats or on integers; the result is a bool
 *   WHOLE(name, i)     integers only
 * Integers are int64_t a, b, c, d; u(x) is x as unsigned, where wrapping is defined. bool is 0 or 1. */
#ifndef SW_EVAL_KERNELS_H
#define SW_EVAL_KERNELS_H

#define SW_KERNELS(REAL, BOTH, TEST, WHOLE)                                                              \
  /* arithmetic */                                                                                       \
  BOTH(add, a + c * b, s(u(a) + u(c) * u(b)))                                                            \
  BOTH(sub, a - c * b, s(u(a) - u(c) * u(b)))                                                            \
  BOTH(rsub, b - c * a, s(u(b) - u(c) * u(a)))                                                           \
  BOTH(mul, a * b, s(u(a) * u(b)))                                                                       \
  REAL(div, a / b)                                                                                       \
  BOTH(div_trunc, trunc(a / b), int_div(a, b))                                                         \
  BOTH(div_floor, floor_div(a, b), int_floor_div(a, b))                                                \
  BOTH(remainder, floor_mod(a, b), s(u(a) - u(int_floor_div(a, b)) * u(b)))                            \
  BOTH(fmod, fmod(a, b), s(u(a) - u(int_div(a, b)) * u(b)))                                            \
  BOTH(pow, pow(a, b), int_pow(a, b))                                                                  \
  BOTH(neg, -a, s(-u(a)))                                                                                \
  BOTH(abs, fabs(a), a < 0 ? s(-u(a)) : a)                                                               \
  BOTH(sign, (double)((a > 0) - (a < 0)), (a > 0) - (a < 0))                                             \
  BOTH(square, a * a, s(u(a) * u(a)))                                                                    \
  BOTH(maximum, isnan(a) || a > b ? a : b, a > b ? a : b)                                                \
  BOTH(minimum, isnan(a) || a < b ? a : b, a < b ? a : b)                                                \
  BOTH(fmax, fmax(a, b), a > b ? a : b)                                                                  \
  BOTH(fmin, fmin(a, b), a < b ? a : b)                                                                  \
  BOTH(clamp, clamp(a, b, c), a < b ? (b < c ? b : c) : a > c ? c : a)                                   \
  BOTH(addcmul, a + d * b * c, s(u(a) + u(d) * u(b) * u(c)))                                             \
  REAL(addcdiv, a + d * b / c)                                                                           \
  REAL(lerp, a + c * (b - a))                                                                            \
  REAL(atan2, atan2(a, b))                                                                               \
  REAL(hypot, hypot(a, b))                                                                               \
  REAL(copysign, copysign(a, b))                                                                         \
  REAL(xlogy, isnan(b) ? b : a == 0 ? 0 : a * log(b))                                                    \
  REAL(ldexp, a * exp2(b))                                                                              \
  REAL(deg2rad, a * (M_PI / 180))                                                                       \
  REAL(rad2deg, a * (180 / M_PI))                                                                       \
  BOTH(heaviside, a == 0 ? b : a > 0, a == 0 ? b : a > 0)                                               \
  /* choosing: a is the condition */                                                                     \
  BOTH(where, a != 0 ? b : c, a != 0 ? b : c)                                                            \
  REAL(nan_to_num, isnan(a) ? b : isinf(a) ? (a > 0 ? c : d) : a)                                       \
  /* rounding */                                                                                         \
  BOTH(floor, floor(a), a)                                                                               \
  BOTH(ceil, ceil(a), a)                                                                                 \
  BOTH(round, nearbyint(a), a)                                                                           \
  BOTH(round_decimals, nearbyint(a * pow(10, b)) / pow(10, b), a)                                       \
  BOTH(trunc, trunc(a), a)                                                                               \
  REAL(frac, a - trunc(a))                                                                               \
  /* roots, powers, logarithms */                                                                        \
  REAL(sqrt, sqrt(a))                                                                                    \
  REAL(rsqrt, 1 / sqrt(a))                                                                               \
  REAL(reciprocal, 1 / a)                                                                                \
  REAL(exp, exp(a))                                                                                      \
  REAL(exp2, exp2(a))                                                                                    \
  REAL(expm1, expm1(a))                                                                                  \
  REAL(log, log(a))                                                                                      \
  REAL(log2, log2(a))                                                                                    \
  REAL(log10, log10(a))                                                                                  \
  REAL(log1p, log1p(a))                                                                                  \
  REAL(logaddexp, a == b ? a + log(2) : fmax(a, b) + log1p(exp(-fabs(a - b))))                           \
  REAL(logaddexp2, a == b ? a + 1 : fmax(a, b) + log2(1 + exp2(-fabs(a - b))))                          \
  REAL(logit, logit(a, b))                                                                               \
  /* angles */                                                                                           \
  REAL(sin, sin(a))                                                                                      \
  REAL(sinc, a == 0 ? 1 : sin(M_PI * a) / (M_PI * a))                                                   \
  REAL(cos, cos(a))                                                                                      \
  REAL(tan, tan(a))                                                                                      \
  REAL(asin, asin(a))                                                                                    \
  REAL(acos, acos(a))                                                                                    \
  REAL(atan, atan(a))                                                                                    \
  REAL(sinh, sinh(a))                                                                                    \
  REAL(cosh, cosh(a))                                                                                    \
  REAL(tanh, tanh(a))                                                                                    \
  REAL(asinh, asinh(a))                                                                                  \
  REAL(acosh, acosh(a))                                                                                  \
  REAL(atanh, atanh(a))                                                                                  \
  REAL(erf, erf(a))                                                                                      \
  REAL(erfc, erfc(a))                                                                                    \
  REAL(lgamma, lgamma(a))                                                                               \
  /* activations */                                                                                      \
  REAL(sigmoid, sigmoid(a))                                                                              \
  REAL(silu, a * sigmoid(a))                                                                             \
  REAL(glu, a * sigmoid(b))                                                                              \
  BOTH(relu, a < 0 ? 0 : a, a < 0 ? 0 : a)                                                               \
  BOTH(relu6, clamp(a, 0, 6), a < 0 ? 0 : a > 6 ? 6 : a)                                                 \
  REAL(leaky_relu, a > 0 ? a : a * b)                                                                    \
  REAL(rrelu, a >= 0 ? a : a * (b + c) / 2)                                                             \
  REAL(gelu, 0.5 * a * (1 + erf(a * M_SQRT1_2)))                                                         \
  REAL(gelu_tanh, 0.5 * a * (1 + tanh(M_2_SQRTPI * M_SQRT1_2 * (a + 0.044715 * a * a * a))))             \
  REAL(elu, a > 0 ? a * c : b * c * expm1(a * d))                                                        \
  REAL(celu, a > 0 ? a : b * expm1(a / b))                                                               \
  REAL(selu, 1.0507009873554804934193349852946 * (a > 0 ? a : 1.6732632423543772848170429916717 * expm1(a))) \
  REAL(mish, a * tanh(softplus(a, 1, 20)))                                                               \
  REAL(softplus, softplus(a, b, c))                                                                      \
  REAL(log_sigmoid, fmin(a, 0) - log1p(exp(-fabs(a))))                                                   \
  REAL(hardsigmoid, clamp(a + 3, 0, 6) / 6)                                                              \
  REAL(hardswish, a * clamp(a + 3, 0, 6) / 6)                                                            \
  REAL(hardshrink, a >= -b && a <= b ? 0 : a)                                                            \
  REAL(softshrink, a > b ? a - b : a < -b ? a + b : 0 * a)                                               \
  BOTH(threshold, a <= b ? c : a, a <= b ? c : a)                                                        \
  /* questions */                                                                                        \
  TEST(eq, a == b)                                                                                       \
  TEST(ne, a != b)                                                                                       \
  TEST(lt, a < b)                                                                                        \
  TEST(le, a <= b)                                                                                       \
  TEST(gt, a > b)                                                                                        \
  TEST(ge, a >= b)                                                                                       \
  TEST(logical_and, a != 0 && b != 0)                                                                    \
  TEST(logical_or, a != 0 || b != 0)                                                                     \
  TEST(logical_xor, (a != 0) != (b != 0))                                                                \
  TEST(logical_not, a == 0)                                                                              \
  TEST(isnan, isnan((double)a))                                                                          \
  TEST(isinf, isinf((double)a))                                                                          \
  TEST(isfinite, isfinite((double)a))                                                                    \
  TEST(isposinf, isinf((double)a) && a > 0)                                                             \
  TEST(isneginf, isinf((double)a) && a < 0)                                                             \
  TEST(signbit, signbit((double)a))                                                                      \
  /* bits */                                                                                             \
  WHOLE(bitwise_and, a & b)                                                                              \
  WHOLE(bitwise_or, a | b)                                                                               \
  WHOLE(bitwise_xor, a ^ b)                                                                              \
  WHOLE(bitwise_not, ~a)                                                                                 \
  WHOLE(shift_left, b >= 0 && b < 64 ? s(u(a) << b) : 0)                                                 \
  WHOLE(shift_right, b >= 0 && b < 64 ? a >> b : a >> 63)

/* The same for complex numbers, of the few that occur. */
#define SW_COMPLEX_KERNELS(X) \
  X(add, a + c * b)           \
  X(sub, a - c * b)           \
  X(rsub, b - c * a)          \
  X(mul, a * b)               \
  X(div, a / b)               \
  X(neg, -a)                  \
  X(square, a * a)            \
  X(reciprocal, 1 / a)        \
  X(exp, cexp(a))             \
  X(where, a != 0 ? b : c)

enum sw_kernel {
#define REAL(name, e) SW_K_##name,
#define BOTH(name, e, i) SW_K_##name,
  SW_KERNELS(REAL, BOTH, REAL, REAL) SW_N_KERNELS
#undef REAL
#undef BOTH
};

#endif
