#include "compiler/lower/program.h"

static const struct {
  const char *name;
  bool is_reduction;
} device_ops[] = {
#define X(id, name, is_reduction, inputs) {name, is_reduction},
    SW_DEVICE_OPS(X)
#undef X
};

const char *sw_device_op_name(enum sw_device_op op)
{
  return device_ops[op].name;
}

bool sw_device_op_is_reduction(enum sw_device_op op)
{
  return device_ops[op].is_reduction;
}

static bool takes_float32(enum sw_device_op op)
{
  switch (op) {
  case SW_OP_ADD: case SW_OP_SUB: case SW_OP_MUL: case SW_OP_DIV: case SW_OP_RELU: case SW_OP_RECIPROCAL:
  case SW_OP_MEAN: case SW_OP_SUM: case SW_OP_MAX: case SW_OP_MIN: case SW_OP_LAYERNORMSCALE: case SW_OP_ABS:
  case SW_OP_NEG: case SW_OP_EXP: case SW_OP_SIGMOID: case SW_OP_EXX2: case SW_OP_LAYERNORMNORM: case SW_OP_SQRT:
  case SW_OP_RSQRT: case SW_OP_TOPKVALUE: case SW_OP_TOPKINDEX: case SW_OP_FLOOR: case SW_OP_MAXIMUM:
  case SW_OP_MINIMUM: case SW_OP_GT: case SW_OP_GE: case SW_OP_LT: case SW_OP_LE: case SW_OP_EQ: case SW_OP_NE:
  case SW_OP_PROD:
    return true;
  default:
    return false;
  }
}

bool sw_device_op_takes(enum sw_device_op op, enum sw_dtype lanes)
{
  switch (op) {
  case SW_OP_IDENTITY: case SW_OP_DL16TOFP32: case SW_OP_FP32TODL16: case SW_OP_FP8TODL16:
    return true;
  default:
    break;
  }
  switch (lanes) {
  case SW_F16: case SW_BF16:
    return true;
  case SW_F32:
    return takes_float32(op);
  case SW_F8E4M3: case SW_F8E5M2:
    return op == SW_OP_QFP8CH || op == SW_OP_QFP8WT || op == SW_OP_MATMULFP8;
  default:
    return false;
  }
}
