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

/* -- rules (infer.c, infer_view.c, infer_window.c) -- */

/* One question: the node, and where the answer goes. */
struct sw_infer {
  const struct sw_graph *g;
  const struct sw_node *n;
  struct sw_shape *out;
  const char *why; /* set when the arguments do not fit together */
  bool is_view;    /* the rule of a view clears it when there has to be a copy */
};

/* A rule's answer when it can't say: dynamic or odd arguments. */
#define SW_INFER_UNKNOWN false

/* Which dtype a result has, where that is sure. */
enum sw_infer_dtype { SW_INFER_ANY, SW_INFER_LIKE_SELF, SW_INFER_BOOLEAN, SW_INFER_GIVEN };

struct sw_infer_rule {
  bool (*infer)(struct sw_infer *c);
  bool is_view;
  enum sw_infer_dtype dtype;
  bool needs_self; /* argument 0 is a tensor of static size */
  const char *ops; /* packets, blanks around each; an in-place op (add_) goes by its plain name */
};

extern const struct sw_infer_rule sw_infer__views[];
extern const int sw_infer__n_views;

bool sw_infer__convolution(struct sw_infer *c);
bool sw_infer__pool(struct sw_infer *c);
/* Of slice_scatter and select_scatter: what is written has the size of the part. */
bool sw_infer__slice_scatter(struct sw_infer *c);
bool sw_infer__select_scatter(struct sw_infer *c);

bool sw_infer__wrong(struct sw_infer *c, const char *why); /* gives false */
/* A tensor argument with static sizes, by name or the first; NULL otherwise. */
const struct sw_value *sw_infer__tensor(const struct sw_infer *c, const char *name);
const struct sw_value *sw_infer__self(const struct sw_infer *c);
bool sw_infer__integer(const struct sw_infer *c, const char *name, int64_t *out);
/* A list of at most SW_MAX_RANK plain integers; its length, or -1. */
int sw_infer__integers(const struct sw_infer *c, const char *name, int64_t *out);
/* Products and sums that stop at the largest number: strides of an input may be anything. */
int64_t sw_infer__times(int64_t a, int64_t b);
int64_t sw_infer__plus(int64_t a, int64_t b);
/* Dim number with negative ones counted from the end, or -1. */
int sw_infer__dim_of(int64_t d, int rank);
void sw_infer__copy_shape(struct sw_shape *s, const struct sw_value *v);
void sw_infer__drop_dim(struct sw_shape *s, int d);

#endif
