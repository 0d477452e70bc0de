/* Float formats bit by bit. */
#ifndef SW_EVAL_FLOAT_H
#define SW_EVAL_FLOAT_H

#include "base/dtype.h"

#include <stdint.h>

/* The low bits hold the value, which must be rounded to the format already. */
uint64_t sw_float_encode(enum sw_dtype t, double x);
double sw_float_decode(enum sw_dtype t, uint64_t bits);

#endif
