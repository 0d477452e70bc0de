/* How the traffic of an op with memory runs, and how fast. For the plan and for the layout choice, which needs it before
 * there is a plan. Reference: cost-model.md sections 2, 5. */
#ifndef SW_LAYOUT_RATE_H
#define SW_LAYOUT_RATE_H

#include "compiler/layout/layout.h"

/* How an op's traffic with memory runs; all but plain have rates of their own. */
enum sw_traffic {
  SW_TRAFFIC_PLAIN,
  SW_TRAFFIC_SCATTER,      /* a new dim interleaved below the sticks */
  SW_TRAFFIC_RESTICKIFY,
  SW_TRAFFIC_REDUCE_OUTER, /* reduction that keeps the stick */
  SW_TRAFFIC_BROADCAST,    /* one operand smaller than the result */
  SW_TRAFFIC_TRANSPOSE,    /* [R,M,C] to [M,R,C], sticks kept */
  SW_TRAFFIC_CONCAT,       /* [R,C] into a slice of [R,k,C] */
};

struct sw_rate {
  enum sw_traffic traffic;
  double rows, cols, outer; /* last two and third-last host dims of the output; 0 unknown */
  bool row_operand;         /* of a broadcast: it varies along the columns */
  const struct sw_machine *machine; /* NULL: the built-in one */
};

/* Size of a host dim counted from the last one, 1; 0 where there is none. */
static inline double sw_host_dim(const struct sw_storage *s, int from_last)
{
  return s->rank >= from_last ? (double)s->size[s->rank - from_last] : 0;
}

/* GB/s, turnaround included; 0: the op shares the plain rate of its kernel. */
double sw_rate_gbps(const struct sw_rate *r);

/* Fills in traffic, row_operand and machine of an op that is no matmul. `to`: layout of the output, NULL when not known yet.
 * in_memory[i]: whether operand i is fetched from memory, NULL: all are. `as_recorded`: as the reference sees it. */
void sw_rate_of(const struct sw_program *p, const struct sw_op *op, const struct sw_layout *to, const bool *in_memory,
                bool as_recorded, struct sw_rate *r);

#endif
