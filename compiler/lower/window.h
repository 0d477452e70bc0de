/* Sliding windows as taps over strided views, shared by convolutions and pools. Inside compiler/lower only. */
#ifndef SW_LOWER_WINDOW_H
#define SW_LOWER_WINDOW_H

#include "compiler/lower/families.h"

struct lw_window {
  int64_t kernel[2], stride[2], padding[2], dilation[2], out_padding[2];
  bool transposed;
  int64_t groups;
};

/* A list of one or two ints; 1-d windows lie in the last dim. */
void lw_read_pair(struct lower *l, const char *name, int dims, int64_t normal, int64_t out[2]);

/* What a tap is for: given its slice of the input and its place in the window. */
typedef struct tensor lw_tap_fn(struct lower *l, struct tensor slice, struct tensor w, const struct lw_window *p, const int64_t at[2]);

/* Combines what the taps give by `op`; places outside x count as `border`. `dims`: where rows and columns are in the result. */
struct tensor lw_over_taps(struct lower *l, struct tensor x, struct tensor w, struct lw_window p, const int64_t out[2],
                           enum sw_device_op op, double border, lw_tap_fn *fn, int dims);

#endif
