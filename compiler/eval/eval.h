/* The meaning of a graph on the host: every node computed as PyTorch would. Used to fold constant subgraphs and to
 * check what the compiler emits. docs/evaluator.md
 *
 * Folding: sw_eval_new, sw_eval_load or sw_eval_set for the inputs that are known, sw_eval_node for the nodes whose
 * arguments are, sw_eval_value to look at the result. A whole run: sw_eval_set for the user inputs, sw_eval_all. */
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
  int readers;             /* values of an evaluator that show these cells: freed at zero */
  struct sw_memory *owner; /* of the evaluator; NULL: the cells live in an arena and stay */
};

struct sw_tensor {
  enum sw_dtype dtype;
  int rank;
  int64_t size[SW_MAX_RANK], stride[SW_MAX_RANK], offset; /* into cells; views share them */
  struct sw_cells *cells; /* NULL: not a tensor or not known */
};

struct sw_number {
  enum { SW_NUMBER_INT, SW_NUMBER_REAL, SW_NUMBER_BOOL } kind;
  int64_t i; /* INT, BOOL */
  double r;  /* REAL */
};

/* One value of the graph: a tensor, a number, or unknown. */
struct sw_evaluated {
  enum { SW_UNKNOWN, SW_TENSOR, SW_NUMBER } kind;
  struct sw_tensor tensor;
  struct sw_number number;
};

enum sw_rounding {
  SW_ROUND_DTYPE, /* each result is rounded to its dtype, as PyTorch does */
  SW_ROUND_NONE,  /* float results stay double (fp8 ones apart, whose point is to be rounded): the float32 reference of
                     model outputs */
};

struct sw_eval;

/* An evaluator over one graph. max_bytes bounds what it holds at a time; a node that would pass it stays unknown (when
 * folding) or is a SW_LIMIT fault (sw_eval_all). Lives as long as the job's arena. */
struct sw_eval *sw_eval_new(struct sw_job *job, const struct sw_graph *g, enum sw_rounding rounding, size_t max_bytes);
/* Frees the elements of all values: what was taken from them must have been copied. */
void sw_eval_forget(struct sw_eval *e);

/* Gives an input its values; *t is borrowed: a program that writes into the input writes there. */
void sw_eval_set(struct sw_eval *e, int value, const struct sw_tensor *t);
/* The same for a symbolic number. */
void sw_eval_set_number(struct sw_eval *e, int value, struct sw_number n);
/* Values of a parameter, buffer or constant from its stored bytes; false when they are unknown. Inputs of one record
 * share cells. */
bool sw_eval_load(struct sw_eval *e, int input);

/* Whether this overload has a meaning here. */
bool sw_eval_knows(const char *target);

/* Whether the first argument gives this overload a size and nothing else: full_like, new_zeros. The others compute it. */
bool sw_eval_needs_size_only(const char *target);

/* Computes one node. Its results stay unknown when an argument is of which it needs more than the size, or when they would
 * not fit. SW_UNSUPPORTED with a fault for an overload without a meaning, SW_INVALID for arguments that make no sense. */
enum sw_rc sw_eval_node(struct sw_eval *e, int node);
/* Computes everything, in order; in-place ops write through views, as in PyTorch, and mutation outputs are copied into
 * their buffers and inputs at the end. A value is forgotten after its last reader, outputs, user inputs and buffers
 * apart. */
enum sw_rc sw_eval_all(struct sw_eval *e);

const struct sw_evaluated *sw_eval_value(const struct sw_eval *e, int value);

/* Elements in row-major order as bytes of the tensor's dtype (what constants/ and .bin files hold). */
const void *sw_tensor_bytes(struct sw_arena *a, const struct sw_tensor *t, size_t *n_bytes);
/* The same the other way round. */
void sw_tensor_from_bytes(struct sw_arena *a, struct sw_tensor *out, enum sw_dtype dtype, int rank, const int64_t *size,
                          const void *bytes);
/* Elements in row-major order as doubles: integers converted, of complex ones the real parts. */
const double *sw_tensor_reals(struct sw_arena *a, const struct sw_tensor *t, int64_t *n);
int64_t sw_tensor_elements(const struct sw_tensor *t);

/* Round to nearest even into a float dtype and back; identity for float64. 65520 as float16 is inf. */
double sw_round_to(enum sw_dtype t, double x);

#endif
