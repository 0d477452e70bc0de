#include "compiler/layout/machine.h"

#include <math.h>

const struct sw_machine sw_spyre = {
    .hbm = 150,
    .turnaround = 0.00574,
    .restickify = 116,
    .reduce_outer = 113,
    .broadcast_unknown = 118,
    .scatter = {144, 9.6, 2.4, 44},
    .transpose = {140, 6.8, 1.2, 83},
    .concat = {110, 0.8, 0, 90},
    .transpose_narrow = 13,
    .transpose_narrow_least = 40,
    .broadcast =
        {
            {{.base = 183.5, .rows = -2.6, .cols = -2.8, .least = 100, .most = 135},
             {.base = 162, .rows = -2.2, .cols = -1.8, .least = 95, .most = 130}},
            {{.base = -350, .rows = 105, .rows2 = -5.5, .cols = -2, .least = 45, .most = 140},
             {.base = -270, .rows = 70, .rows2 = -3.5, .cols = 3, .least = 45, .most = 120}},
            {{.base = 92, .flat = 32, .tall = 10, .least = 40, .most = 128},
             {.base = 98, .flat = 15, .tall = 8, .least = 40, .most = 120}},
        },
    .row_reduction_least = 114,
    .row_reduction_more = 61,
    .row_reduction_rows = 3700,
    .reduction_cores = {0.11, 0.22, 0.43, 0.54, 0.54, 1},
    .turn = 40,
    .link = 28,     /* one measurement: 4.2 MB each way in 0.297 ms (section 12, row 18) */
    .launch = 7000, /* measured on the host (section 1) */
    .interval = {8.75, 7.5, 3.75},

    .macs = 1140,
    .macs_default_bmm = 160,
    .macs_projection = {705, 470},
    .macs_full_rows = 64,
    .macs_rows_exponent = 0.35,
    .spill_area = 65536,
    .spill_slope = 0.45,
    .spill_most = 1.5,
    .relayout_base = 1.14,
    .relayout_doubling = 3.92,
    .relayout_bytes = 547,
    .split_area = 131072,
    .split_long = 2.62,
    .split_short = 2.88,

    .tile = {7.9, 0.5, 2048, 0.38, 1.08, 0.248, 0.1, 524288, 0.06},
    .matmul_tile = {13, 0.68, 1, 0, 0.95, 0.28003925749734376, 0.1 / 0.68, 2097152, 0.15}, /* low: (2 / 13)^0.68 */
    .again = 0.85,
};

double sw_cores_factor(int cores)
{
  enum { LAST = sizeof sw_spyre.reduction_cores / sizeof *sw_spyre.reduction_cores - 1 };
  double at = log2(cores < 1 ? 1 : cores);
  int low = (int)at;
  if (low >= LAST)
    return sw_spyre.reduction_cores[LAST];
  const double *g = &sw_spyre.reduction_cores[low];
  return g[0] + (g[1] - g[0]) * (at - low);
}
