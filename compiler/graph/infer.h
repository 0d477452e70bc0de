/* Sizes that a node's result must have. */
#ifndef SW_GRAPH_INFER_H
#define SW_GRAPH_INFER_H

#include "compiler/graph/build.h"

struct sw_shape {
  int rank;
  int64_t size[SW_MAX_RANK], stride[SW_MAX_RANK], offset;
};

/* Where the result of a view, or of an in-place op, lies in the storage of its argument. False: its own storage, no
 * rule, or dynamic. */
bool sw_graph__infer_view(const struct sw_graph *g, const struct sw_node *n, struct sw_shape *out);

/* Compares declared sizes and dtypes with what the arguments give; every difference is a fault. */
void sw_graph__check_shapes(struct sw_job *job, const struct sw_graph *g);

#endif
