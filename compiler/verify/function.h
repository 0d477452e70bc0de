/* The functions of the card that the simulator knows: how each is run, and what a file that uses it must hold.
 * Reference: superdsc.md 2.7 and 6.5. */
#ifndef SW_VERIFY_FUNCTION_H
#define SW_VERIFY_FUNCTION_H

#include <stdbool.h>

/* How an op is run: by element (all its dims are the output's), or with dims that are summed away. */
enum sim_kind {
  SIM_POINTWISE, /* f(inputs) */
  SIM_MOVE,      /* bits */
  SIM_SHUFFLE,   /* bits, between two divisions over scratchpads */
  SIM_CAST,      /* fp16 <-> fp32, lanes interleave */
  SIM_REDUCE,    /* one operand */
  SIM_MATMUL,    /* sum of products */
  SIM_EXX2,
  SIM_NORMSCALE,
  SIM_TOPK,
};

enum sim_fn {
  F_ABS, F_EXP, F_FLOOR, F_GELU, F_LOG, F_NEG, F_RECIPROCAL, F_RELU, F_RSQRT, F_SIGMOID, F_SILU, F_SQRT, F_TANH,
  F_CLIP, F_SOFTPLUS, F_ADD, F_SUB, F_MUL, F_DIV, F_MAX, F_MIN, F_EQ, F_NE, F_GT, F_GE, F_LT, F_LE, F_WHERE, F_NORM,
  F_FIRST, /* the value itself */
  F_SUM, F_MEAN, F_PROD, F_VALUE, F_INDEX, F_WIDEN, F_NARROW, F_POOL,
};

struct sim_function {
  const char *name;
  enum sim_kind kind;
  enum sim_fn fn;
  int least, most;           /* inputs, index tensors apart; a reduction lists its output as the last one */
  const char *constants[3];  /* that it can't do without */
  bool on_pt;                /* runs on the matrix unit */
};

/* By the name in a file, "sumnonstick" for example; NULL: not known. */
const struct sim_function *sim_function_find(const char *fn);

/* Whether a file's name says that the sum goes over no stick. */
bool sim_function_is_nonstick(const char *fn);

#endif
