/* The meaning of a graph on the host: every node computed as PyTorch would. Used to fold constant subgraphs and to
 * check what the compiler emits. */
#ifndef SW_EVAL_H
#define SW_EVAL_H

#include "compiler/graph/graph.h"

/* A tensor's storage with values: float dtypes (rounded to the dtype or not) and complex ones as doubles, integers and
 * bool as int64. A complex element is two doubles. */
struct sw_cells {
  enum sw_dtype dtype;
  int64_t n; /* elements */
  double *real;
  int64_t *integer;
  int readers; /* of the evaluator: freed at zero */
};

struct sw_tensor {
  enum sw_dtype dtype;
  int rank;
  int64_t size[SW_MAX_RANK], stride[SW_MAX_RANK], offset; /* into cells; views share them */
  struct sw_cells *cells; /* NULL: not a tensor or not known */
};

struct sw_number {
  enum { SW_NUMBER_INT, SW_NUMBER_REAL, SW_NUMBER_BOOL } kind;
  int64_t i;
  double r;
};

/* One value of the graph: a tensor, a number, or unknown. */
struct sw_evaluated {
  enum { SW_UNKNOWN, SW_TENSOR, SW_NUMBER } kind;
  struct sw_tensor tensor;
  struct sw_number number;
};

enum sw_rounding {
  SW_ROUND_DTYPE, /* each result is rounded to its dtype, as PyTorch does */
  SW_ROUND_NONE,  /* float results stay double: the float32 reference of model outputs */
};

struct sw_eval;

/* An evaluator over one graph. max_bytes bounds what it holds at a time; a node that would pass it stays unknown (when
 * folding) or is a SW_LIMIT fault (sw_eval_all). */
struct sw_eval *sw_eval_new(struct sw_job *job, const struct sw_graph *g, enum sw_rounding rounding, size_t max_bytes);

/* Gives an input its values; *t is borrowed. */
void sw_eval_set(struct sw_eval *e, int value, const struct sw_tensor *t);
/* Values of a parameter, buffer or constant from its stored bytes; false when they are unknown. */
bool sw_eval_load(struct sw_eval *e, int input);

/* Whether this overload has a meaning here. */
bool sw_eval_knows(const char *target);

/* Computes one node whose arguments are all known. SW_UNSUPPORTED with a fault for an overload without a meaning. */
enum sw_rc sw_eval_node(struct sw_eval *e, int node);
/* Computes everything, in order; in-place ops write through views, as in PyTorch. */
enum sw_rc sw_eval_all(struct sw_eval *e);

const struct sw_evaluated *sw_eval_value(const struct sw_eval *e, int value);

/* Elements in row-major order as bytes of the tensor's dtype (what constants/ and .bin files hold). */
const void *sw_tensor_bytes(struct sw_arena *a, const struct sw_tensor *t, size_t *n_bytes);
/* The same the other way round. */
void sw_tensor_from_bytes(struct sw_arena *a, struct sw_tensor *out, enum sw_dtype dtype, int rank, const int64_t *size,
                          const void *bytes);

/* Round to nearest even into a float dtype and back; identity for float64. 65520 as float16 is inf. */
double sw_round_to(enum sw_dtype t, double x);

#endif
