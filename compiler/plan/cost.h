/* Predicted time of kernels. Numbers only; sw_cost_of() makes the numbers from an op. The model predicts relative time,
 * it is no simulator. Reference: cost-model.md. */
#ifndef SW_PLAN_COST_H
#define SW_PLAN_COST_H

#include "compiler/layout/machine.h"
#include "compiler/layout/rate.h"
#include "compiler/plan/division.h"
#include "compiler/plan/plan.h"

struct sw_cost_arg {
  int storage;
  bool is_graph_input; /* one that several ops of a kernel read is fetched once */
  double bytes;        /* moved to or from memory; 0 when in LX */
  double rows;         /* second-last host dim, 0 when there is none */
};

struct sw_matmul_work {
  double macs;
  double rows, cols;         /* of the output per core; 0 unknown */
  double m_split, n_split;
  double m, n;
  double operand_bytes;      /* both operands without batch */
  double rate;               /* MAC per ns and core */
  double turns;              /* that a penalty for uneven splits is paid */
};

/* What coarse tiling changes (section 8). Bytes and MACs count all turns already. */
struct sw_tile_work {
  bool output;    /* a dim of the output is cut into tiles */
  double rows;    /* of a tile, on one core; 0 unknown */
  double cols, element_bytes;
  double again;   /* bytes of operands that a matmul fetches once more in every turn behind the first */
};

struct sw_cost_op {
  const struct sw_machine *machine; /* the same for all ops of a kernel; NULL: the built-in one */
  struct sw_rate rate;
  int cores;
  int n_in;
  struct sw_cost_arg in[SW_MAX_INPUTS], out;
  bool is_reduction, is_matmul;
  struct sw_matmul_work matmul;
  struct sw_tile_work tile;
};

/* Part of the rate that the tiles of an op reach, by the fit of kernels with a matmul or without: 4 rows a core of 2048
 * columns 0.71; 1 when it has none. */
double sw_tile_efficiency(const struct sw_cost_op *op, bool beside_matmul);

/* ns of one kernel. Shared graph inputs count once and reading overlaps computing, so that it is not the sum of its
 * ops. */
struct sw_kernel_time {
  double total, compute, memory, split;
};
struct sw_kernel_time sw_kernel_time(struct sw_arena *scratch, const struct sw_cost_op *ops, int n);

/* ns that a matmul computes; 0 for other ops. */
double sw_compute_ns(const struct sw_cost_op *op);

/* Rate of one op's traffic in GB/s, turnaround included; 0: it shares the plain rate of its kernel. */
static inline double sw_traffic_rate(const struct sw_cost_op *op)
{
  return sw_rate_gbps(&op->rate);
}

/* Bytes between memory and cores. */
double sw_moved_bytes(const struct sw_cost_op *op);

/* ns beyond the recorded model when the op runs under this split (profile best). */
double sw_extra_ns(const struct sw_program *p, const struct sw_op *op, const struct sw_cost_op *cost,
                   const struct sw_work *w, const int64_t *split);

/* The numbers of an op with layouts, splits and places. `as_recorded` takes them as the reference does (profile
 * torch-spyre), which knows sizes of what is in memory only, bytes of torch's dtype, and a change of stick by the
 * steps in host memory. */
void sw_cost_of(const struct sw_program *p, const struct sw_op *op, bool as_recorded, struct sw_cost_op *out);
/* The tiles of an op in a loop; `c` are its other numbers. The recorded model slows down all that a kernel moves by its
 * worst tile, so there they are part of the numbers; our own yardstick charges every op for its own (sw_extra_ns). */
struct sw_tile_work sw_tile_work_of(const struct sw_program *p, const struct sw_op *op, const struct sw_cost_op *c,
                                    bool as_recorded);

#endif
