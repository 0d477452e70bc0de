/* Resampling of images as one matrix a dim: out[o] = sum over i of matrix[o, i] * in[i]. Used by the evaluator, and by
 * compiler/lower, whose device has products. */
#ifndef SW_EVAL_RESAMPLE_H
#define SW_EVAL_RESAMPLE_H

#include <stdbool.h>
#include <stdint.h>

enum sw_resampling { SW_NEAREST, SW_NEAREST_EXACT, SW_LINEAR, SW_CUBIC, SW_LINEAR_SMOOTH, SW_CUBIC_SMOOTH };

/* `factor`: the scale that was asked for, 0: the ratio of the sizes. `matrix`: [out, in], zeroed. */
void sw_resample_matrix(enum sw_resampling how, int64_t in, int64_t out, double factor, bool align_corners, double *matrix);

#endif
