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
