#include "compiler/verify/function.h"

#include <stddef.h>
#include <string.h>

/* Name, kind, formula, inputs from, to, whether on the matrix unit, constants. */
#define FUNCTIONS(X) \
  X("abs", POINTWISE, ABS, 1, 1, false) X("exp", POINTWISE, EXP, 1, 1, false) \
  X("floor", POINTWISE, FLOOR, 1, 1, false) X("gelufwd", POINTWISE, GELU, 1, 1, false) \
  X("log", POINTWISE, LOG, 1, 1, false) X("neg", POINTWISE, NEG, 1, 1, false) \
  X("reciprocal", POINTWISE, RECIPROCAL, 1, 1, false) X("relufwd", POINTWISE, RELU, 1, 1, false) \
  X("rsqrt", POINTWISE, RSQRT, 1, 1, false) X("sigmoid", POINTWISE, SIGMOID, 1, 1, false) \
  X("silu", POINTWISE, SILU, 1, 1, false) X("sqrt", POINTWISE, SQRT, 1, 1, false) \
  X("tanh", POINTWISE, TANH, 1, 1, false) X("clip", POINTWISE, CLIP, 1, 1, false, "clipMin", "clipMax") \
  X("softplus", POINTWISE, SOFTPLUS, 1, 1, false, "softplusBeta", "softplusThresh") \
  X("fp8todl16", POINTWISE, FIRST, 1, 1, false) X("qfp8ch", POINTWISE, FIRST, 1, 1, false) \
  X("qfp8wt", POINTWISE, FIRST, 1, 1, false) X("add", POINTWISE, ADD, 2, 2, false) \
  X("sub", POINTWISE, SUB, 2, 2, false) X("mul", POINTWISE, MUL, 2, 2, false) \
  X("realdiv", POINTWISE, DIV, 2, 2, false) X("maximum", POINTWISE, MAX, 2, 2, false) \
  X("minimum", POINTWISE, MIN, 2, 2, false) X("equal", POINTWISE, EQ, 2, 2, false) \
  X("notequal", POINTWISE, NE, 2, 2, false) X("greaterthan", POINTWISE, GT, 2, 2, false) \
  X("greaterequal", POINTWISE, GE, 2, 2, false) X("lesserthan", POINTWISE, LT, 2, 2, false) \
  X("lesserequal", POINTWISE, LE, 2, 2, false) X("where3", POINTWISE, WHERE, 3, 3, false) \
  X("layernormnorm", POINTWISE, NORM, 3, 5, false) X("identity", MOVE, FIRST, 1, 1, false) \
  X("ReStickifyOpHBM", MOVE, FIRST, 1, 1, false) X("shuffle", SHUFFLE, FIRST, 1, 1, false) \
  X("dl16tofp32", CAST, WIDEN, 1, 1, false) X("fp32todl16", CAST, NARROW, 1, 1, false) \
  X("sum", REDUCE, SUM, 2, 2, false) X("max", REDUCE, MAX, 2, 2, false) X("min", REDUCE, MIN, 2, 2, false) \
  X("prod", REDUCE, PROD, 2, 2, false) X("mean", REDUCE, MEAN, 2, 2, false, "scaling_factor") \
  X("avgpoolfwd", REDUCE, POOL, 1, 1, false, "nmap") X("batchmatmul", MATMUL, SUM, 2, 2, true) \
  X("batchmatmulfp8", MATMUL, SUM, 2, 2, true) X("conv2d", MATMUL, SUM, 2, 2, true) \
  X("depthwiseconv2dnative", MATMUL, SUM, 3, 3, false) \
  X("exx2", EXX2, SUM, 2, 2, false, "exx2scale", "useZeroMean") \
  X("layernormscale", NORMSCALE, FIRST, 1, 1, false, "eps") X("topkvalue", TOPK, VALUE, 1, 1, false) \
  X("topkindex", TOPK, INDEX, 1, 1, false)

static const struct sim_function functions[] = {
#define X(name, kind, fn, least, most, on_pt, ...) {name, SIM_##kind, F_##fn, least, most, {__VA_ARGS__}, on_pt},
    FUNCTIONS(X)
#undef X
};

static const char tail[] = "nonstick";

bool sim_function_is_nonstick(const char *fn)
{
  size_t n = strlen(fn), m = strlen(tail);
  return n > m && !strcmp(fn + n - m, tail);
}

const struct sim_function *sim_function_find(const char *fn)
{
  size_t n = strlen(fn) - (sim_function_is_nonstick(fn) ? strlen(tail) : 0);
  for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++)
    if (strlen(functions[i].name) == n && !memcmp(functions[i].name, fn, n) &&
        (!fn[n] || functions[i].kind == SIM_REDUCE))
      return &functions[i];
  return NULL;
}
