/* Every constant of the time model in one table, for the layout choice and the plan. All of them are fits to
 * measurements of one hardware build. Reference: cost-model.md sections 1, 4, 5, 7, 8, 10.3. Rates of memory in GB/s are
 * bytes per ns. Option `constant` replaces them, one by one, or as many as a file has (data/spyre.machine.json has all). */
#ifndef SW_LAYOUT_MACHINE_H
#define SW_LAYOUT_MACHINE_H

#include "base/job.h"

/* Rate of a copy that rearranges stick planes: a - b * log2(planes) - d * log2(rows), at least `least`. */
struct sw_transport_fit {
  double a, b, d, least;
};

/* Rate of an op with one operand broadcast over the other, in lr = log2(rows), lc = log2(columns), d = lc - 6:
 * base + rows * lr + rows2 * lr * lr + cols * lc + flat * max(0, d - lr) + tall * max(0, lr - d), clamped. */
struct sw_broadcast_fit {
  double base, rows, rows2, cols, flat, tall, least, most;
};

/* Part of the rate that tiles of h rows and c columns a core reach: x = (h / rows)^by_rows * (c / cols)^by_cols, at most
 * `most`; below `low` it falls with the power `by_low` of x / low. Tiles above `bytes` slow down by the power `over`. */
struct sw_tile_fit {
  double rows, by_rows, cols, by_cols, most, low, by_low, bytes, over;
};

struct sw_machine {
  double hbm;        /* one direction */
  double turnaround; /* ns per byte that is read as well as written */
  double restickify, reduce_outer, broadcast_unknown;
  struct sw_transport_fit scatter, transpose, concat;
  double transpose_narrow, transpose_narrow_least; /* GB/s lost per halving of a middle dim under 8 */
  struct sw_broadcast_fit broadcast[3][2]; /* many rows; few rows, narrow; few rows, wide: row operand, other operand */
  double row_reduction_least, row_reduction_more, row_reduction_rows; /* least + more * exp(-rows / rows) */
  double reduction_cores[6]; /* part of the rate on 1, 2, 4, 8, 16, 32 cores */
  double turn;               /* one core turns sticks from memory to memory */
  double link;               /* between host and card, GB/s */
  double launch;             /* ns until a kernel or a transfer that the host starts is under way */
  double interval[3];        /* ns between loads on fewer than 4, fewer than 32 and all cores */

  double macs; /* per ns and core */
  double macs_default_bmm; /* both operands of a bmm have the batch in the second-last device dim */
  double macs_projection[2]; /* 3-D by 2-D: batch up to 4, above */
  double macs_full_rows, macs_rows_exponent; /* efficiency (rows / full)^exponent */
  double spill_area, spill_slope, spill_most; /* of a core's part of the output, in elements */
  double relayout_base, relayout_doubling; /* ns per run of a copy between scratchpads: doubling * log2(split) - base */
  double relayout_bytes;                   /* bytes of such a copy per ns and slice */
  double split_area, split_long, split_short; /* ns per element above the area and doubling of a split */
  struct sw_tile_fit tile, matmul_tile;
  double again; /* part of the rate's time that fetching an operand again takes */
};

extern const struct sw_machine sw_spyre;

static inline const struct sw_machine *sw_machine_or_spyre(const struct sw_machine *given)
{
  return given ? given : &sw_spyre;
}

struct sw_options;
/* The machine with the options' constants in it; NULL when there are none. SW_USAGE for a name that does not exist and a value
 * that the model can't work with: what is divided by must not be nothing, and parts of a rate are at most 1. */
enum sw_rc sw_machine_read(struct sw_job *job, const struct sw_options *o, const struct sw_machine **out);

/* Constant i with its name, "scatter.a" or "interval[2]"; false behind the last one. */
struct sw_constant {
  const char *name;
  double value;
};
bool sw_machine_constant(const struct sw_machine *m, int i, struct sw_constant *out);

/* Part of the memory rate that this many cores reach: 1 core 0.11, 8 or 16 cores 0.54, 32 cores all. */
double sw_cores_factor(const struct sw_machine *m, int cores);

#endif
