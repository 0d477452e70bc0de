/* Shared inside compiler/lower (prefix lw_): tensors as views of storages, and a small vocabulary in which the
 * decompositions are written. A decomposition reads like the PyTorch code of the same thing:
 *
 *   struct tensor m = lw_reduce(l, SW_OP_MAX, x, dim, true);
 *   struct tensor e = lw_unary(l, SW_OP_EXP, lw_binary(l, SW_OP_SUB, x, m));
 *
 * Each such call appends one device op to the program; views only change the numbers in struct tensor. C does not say
 * which argument is computed first: at most one argument of a call may append. */
#ifndef SW_LOWER_LOWER_H
#define SW_LOWER_LOWER_H

#include "base/map.h"
#include "base/options.h"
#include "compiler/eval/eval.h"
#include "compiler/lower/program.h"

/* Element (i0,..) lies at host element offset + sum stride*i of the storage. storage -1: unknown, because a fault is
 * recorded already; whatever is computed from it is unknown too, so every cause is reported once. */
struct tensor {
  int storage;
  enum sw_dtype dtype;
  int rank;
  int64_t size[SW_MAX_RANK], stride[SW_MAX_RANK], offset;
  int64_t pair; /* of a complex dtype: how far behind its real part an element's imaginary part is (complex.c); else 0 */
};

/* What becomes of an overload. */
enum lw_kind {
  LW_DEVICE,     /* one device op */
  LW_DECOMPOSED, /* several, or a device op after views and casts */
  LW_VIEW,       /* folded into accesses */
  LW_CONSTANT,   /* a constant, or a fill where the tensor is written later */
  LW_NOTHING,    /* no effect at run time */
  LW_HOST,       /* a host step unless its arguments are constant */
  LW_REFUSED,
};

struct lower;
typedef void lw_fn(struct lower *l, int param);

struct lw_operation {
  const char *target; /* overload */
  enum lw_kind kind;
  lw_fn *run;
  int param;
  const char *becomes; /* device ops in order, for documents */
  const char *note;    /* limits; the advice of a refusal; why it runs on the host */
  bool half_only;      /* the device computes it in fp16 only */
};

/* The line of a node's overload: its own, or that of its functional twin ("aten.clamp.default" of clamp_); NULL: none. */
const struct lw_operation *lw_operation_of(struct lower *l, const struct sw_node *n);

/* advice.c: what to do instead of an overload without a line, and why it has none. */
const char *lw_advice(const char *target, const char **why);

/* Matrix products and what is made of them: too much work for the host. */
bool lw_is_product(const struct lw_operation *o);
extern const struct lw_operation lw_operations[];
extern const int lw_n_operations;

/* What the whole graph tells about a value, before anything is lowered. Reference: alias analysis, pt2.md section 12. */
struct lw_value {
  int root;       /* smallest value of its alias class: views of one tensor */
  bool constant;  /* computed from constants alone: the evaluator has it */
  bool live;      /* somebody needs it */
  bool mutated;   /* of a root: written in place by some node */
  bool root_live; /* of a root: somebody needs some value of the class */
  bool output;    /* of a root: leaves the program */
  bool pinned;    /* itself an output, or an operand of mm: its strides are PyTorch's */
  bool looked_at; /* a view or a long reduction wants its strides as soon as it is there (strides.c) */
  bool narrow;    /* declared float32, computed in fp16 (precision=device) */
  bool narrow_bf16;
  int last_use;   /* of a root: last node that reads any value of the class; INT_MAX for outputs */
  int reader, n_readers; /* one node that reads it, and how many arguments and outputs do */
};

/* A node whose result is that of a composite operation spelled out before it (pattern.c). */
struct lw_match {
  enum { LW_MATCH_ATTENTION, LW_MATCH_SILU, LW_MATCH_SOFTPLUS, LW_MATCH_LOGSUMEXP, LW_MATCH_ALL } kind;
  int q, k, v, mask; /* values, -1: none; only attention has more than q */
  double scale;   /* of softplus: its threshold */
  uint32_t dims;  /* of a reduction: bit mask, and whether it keeps them */
  bool keepdim;
  bool precision; /* the graph computes it in float32 */
};

/* What lowering knows about a storage. */
struct lw_storage {
  bool bool32;  /* a bool that has float32 lanes */
  bool cast_up; /* float32 made from float16: its lanes are in the order of that cast */
  bool by_host; /* written by host steps */
  int last_use; /* last node that reads a value in it; INT_MAX for outputs */
  bool mutated; /* some value in it is written in place, now or later */
  bool settled; /* its strides were wanted by a view of it, or the like */
  int moved;    /* 1 + the storage that has its new contents, 0: itself */
};

/* A node that gives several views of one tensor, where it stood. */
struct lw_split {
  int storage, op; /* number of ops before it */
};

/* An output that is the new value of a loaded storage. */
struct lw_change {
  int output, storage; /* LW_LATER: nobody has read the old one */
};

struct lower {
  struct sw_job *job;
  struct sw_arena *arena;
  const struct sw_options *options;
  const struct sw_graph *graph;
  struct sw_program *program;
  struct sw_eval *eval;
  bool best; /* profile best */

  struct lw_value *values;
  struct tensor *tensors;  /* per value; storage -2: not there yet */
  bool *node_live, *node_constant;
  struct lw_match **matches; /* per node, or NULL */
  int *input_of;           /* per value: number of the graph input, or -1 */
  bool *replaced;          /* per graph input: an output is its new value */
  struct lw_storage *storages; /* per storage of the program, as far as cap_storages */
  int cap_storages;
  struct sw_map scalars;   /* value and dtype -> storage */
  struct sw_map tables;    /* struct lw_table_key -> storage */
  struct sw_arena *scratch; /* of the node at work; NULL until it is needed */
  struct sw_map operations;

  SW_VEC(struct lw_split) splits; /* in order of nodes */
  SW_VEC(struct lw_change) changes;

  /* the node at work; -1: the outputs */
  int node;
  int n_named;             /* intermediates named so far */
  int first_op, first_storage; /* of the node */
  int taken_over; /* by the node at work: the storage of an operand that nobody reads any more, or LW_NONE */
  int warned_of_zeros; /* node + 1 that was last named for a product with zeros */
  bool early;              /* strides of its results are wanted at once */
  bool failed;             /* the node has its fault */
};

enum { LW_NONE = -1, LW_LATER = -2 };

static inline struct tensor lw_unknown(void)
{
  return (struct tensor){.storage = LW_NONE};
}
static inline bool lw_known(struct tensor t)
{
  return t.storage >= 0;
}
/* Formats of the device's 16 bit lanes, and whatever it computes in. */
static inline bool lw_is_half(enum sw_dtype t)
{
  return t == SW_F16 || t == SW_BF16;
}
static inline bool lw_computes(enum sw_dtype t)
{
  return lw_is_half(t) || t == SW_F32;
}

/* -- the node at work and its arguments (argument.c) -- */

const struct sw_node *lw_node(const struct lower *l);
const struct sw_arg *lw_arg(struct lower *l, const char *name); /* never NULL: an absent one is of kind NONE */
bool lw_given(struct lower *l, const char *name);               /* there and not None */
bool lw_is_tensor(struct lower *l, const struct sw_arg *a);
struct tensor lw_tensor(struct lower *l, const char *name);
struct tensor lw_tensor_of(struct lower *l, const struct sw_arg *a);
struct tensor lw_tensor_of_value(struct lower *l, int value);
int64_t lw_int(struct lower *l, const char *name);
/* Of a symbolic number; refused when it is known at run time only. */
int64_t lw_number(struct lower *l, int value);
int64_t lw_int_of(struct lower *l, const struct sw_arg *a);
double lw_real(struct lower *l, const char *name);
bool lw_bool(struct lower *l, const char *name);
/* A list of ints (or one int); returns how many, at most SW_MAX_RANK. */
int lw_ints(struct lower *l, const char *name, int64_t out[SW_MAX_RANK]);
/* Dim number in 0..rank-1. */
int lw_dim(int64_t dim, int rank);
const struct sw_value *lw_value(struct lower *l, int result); /* of the node; NULL when undefined */
/* The dtype in which result k is computed: float16 for a narrowed float32. */
enum sw_dtype lw_result_dtype(struct lower *l, int result);
enum sw_dtype lw_dtype_of_value(struct lower *l, int value);
void lw_set(struct lower *l, int result, struct tensor t);
/* Whether somebody reads result k. */
bool lw_wanted(struct lower *l, int result);

/* A fault about the node at work: recorded once a node. Gives an unknown tensor back. */
struct tensor lw_refuse(struct lower *l, const char *advice, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* -- storages and ops (emit.c) -- */

struct lw_storage *lw_storage(struct lower *l, int storage);
struct tensor lw_new(struct lower *l, enum sw_dtype dtype, int rank, const int64_t *size, const int64_t *stride);
struct tensor lw_new_named(struct lower *l, const char *name, enum sw_dtype dtype, int rank, const int64_t *size,
                           const int64_t *stride);
/* A new tensor whose dims lie in memory in the order most of the operands agree on, else row major. */
struct tensor lw_new_like(struct lower *l, enum sw_dtype dtype, int rank, const int64_t *size, int n_in,
                          const struct tensor *in);
struct tensor lw_scalar(struct lower *l, double value, enum sw_dtype dtype);
/* Profile torch-spyre (strides.c): strides of a result by vote of the operands, which are spread to its size already. */
void lw_voted_strides(struct lower *l, int rank, const int64_t *size, int n_in, const struct tensor *in, int64_t *stride);
enum { LW_LONG_REDUCTION = 32 };
void lw_pin_strides(struct lower *l, int value, struct tensor *t);
void lw_contiguous_strides(int rank, const int64_t *size, int64_t *stride);
/* The same order of dims without gaps; stride 0 counts as row major. */
void lw_dense_strides(int rank, const int64_t *size, const int64_t *like, int64_t *stride);

/* One loop nest: loop d has range[d]; tensors have one stride per loop. Loops of range 1 vanish; a range 0 means no
 * op at all. */
struct sw_op *lw_nest(struct lower *l, enum sw_device_op op, enum sw_op_role role, int n_written, int n_loops,
                      const int64_t *range, struct tensor out, int n_in, const struct tensor *in);
void lw_constant(struct lower *l, struct sw_op *op, const char *name, double value);

struct tensor lw_pointwise(struct lower *l, enum sw_device_op op, enum sw_dtype dtype, int n_in, const struct tensor *in);
struct tensor lw_unary(struct lower *l, enum sw_device_op op, struct tensor x);
struct tensor lw_binary(struct lower *l, enum sw_device_op op, struct tensor a, struct tensor b);
/* with a scalar of x's dtype on the right */
struct tensor lw_binary_number(struct lower *l, enum sw_device_op op, struct tensor x, double number);
struct tensor lw_where(struct lower *l, struct tensor c, struct tensor a, struct tensor b);
struct tensor lw_clip(struct lower *l, struct tensor x, double low, double high);
/* stride NULL: row major */
struct tensor lw_fill(struct lower *l, double value, enum sw_dtype dtype, int rank, const int64_t *size, const int64_t *stride);
/* A tensor of zeros to write into. */
struct tensor lw_zeros(struct lower *l, enum sw_dtype dtype, int rank, const int64_t *size);
struct tensor lw_cast(struct lower *l, struct tensor x, enum sw_dtype dtype);
/* x as an operand of an op that computes in `dtype`: bools of that format need no cast. */
struct tensor lw_operand(struct lower *l, struct tensor x, enum sw_dtype dtype);
struct tensor lw_clone(struct lower *l, struct tensor x); /* row major, role CLONE */
/* Writes src, broadcast, into the elements of dst. */
void lw_write(struct lower *l, struct tensor dst, struct tensor src);
/* Reduces the dims of `dims` (bit mask; one op for all). */
struct tensor lw_reduce(struct lower *l, enum sw_device_op op, struct tensor x, uint32_t dims, bool keepdim);
/* [.., M, K] x [.., K, N] with broadcast batch dims. */
struct tensor lw_matmul(struct lower *l, struct tensor x, struct tensor y);
/* The same into the elements of `out`, whose batch dims both operands broadcast to. */
void lw_matmul_into(struct lower *l, struct tensor x, struct tensor y, struct tensor out);
/* Loops it takes after merging batch dims that lie in one another; an unknown `out` merges with anything. */
enum { LW_MATMUL_LOOPS = 5 };
int lw_matmul_loops(struct tensor x, struct tensor y, struct tensor out);
/* Format of the lanes: float16 for bool unless it came from float32 operands. */
enum sw_dtype lw_lanes(struct lower *l, struct tensor t);

/* -- views (views.c) -- */

bool lw_reshape_view(struct tensor x, int rank, const int64_t *size, struct tensor *out);
struct tensor lw_reshape(struct lower *l, struct tensor x, int rank, const int64_t *size); /* clones when it must */
struct tensor lw_expand(struct lower *l, struct tensor x, int rank, const int64_t *size);
struct tensor lw_permute(struct tensor x, const int *order);
struct tensor lw_transpose(struct tensor x, int a, int b);
struct tensor lw_slice(struct tensor x, int dim, int64_t start, int64_t n, int64_t step);
struct tensor lw_select(struct tensor x, int dim, int64_t index);
struct tensor lw_unsqueeze(struct tensor x, int dim);
struct tensor lw_squeeze(struct tensor x, int dim);
struct tensor lw_apart(struct lower *l, struct tensor t); /* copies where dims walk over the same elements */
bool lw_is_contiguous(struct tensor x);
bool lw_same_view(struct tensor a, struct tensor b);
/* Broadcast shape of several tensors; false when they don't fit. */
bool lw_broadcast(int n, const struct tensor *in, int *rank, int64_t size[SW_MAX_RANK]);

/* -- the whole graph (analyse.c) -- */

/* Calls fn for every value among arguments, those in lists included. */
void lw_each_value(const struct sw_arg *args, int n, void (*fn)(void *ctx, int value), void *ctx);
/* Fills in l->values: aliases, constants, liveness. */
void lw_begin(struct lower *l, struct sw_job *job, const struct sw_options *o, const struct sw_graph *g);
enum sw_rc lw_analyse(struct lower *l);
bool lw_node_writes(const struct lower *l, int node);
/* Whether the node at work makes that result anew, by its schema: no view of an argument. */
bool lw_is_fresh(struct lower *l, int result);

/* -- constants, and values as tensors (fold.c) -- */

/* Computes the node at work if it is constant and its arguments have values. */
bool lw_fold_node(struct lower *l);
int lw_n_for_size(const struct lower *l, const struct sw_node *n); /* arguments at the front that only give a size */
void lw_touch_arguments(struct lower *l);
bool lw_arguments_known(struct lower *l);
/* A constant value as a tensor of dtype (SW_N_DTYPES: its own): a scalar when all elements are equal. */
struct tensor lw_constant_value(struct lower *l, int value, enum sw_dtype dtype);
/* Its elements in row-major order, ours to change. */
double *lw_constant_doubles(struct lower *l, int value);
/* Elements of a constant value, or NULL. */
const struct sw_tensor *lw_constant_elements(struct lower *l, int value);
/* A number for a tensor of dtype: float32's most negative one stands for "masked", and the largest fp16 one does the
 * same. */
double lw_narrowed(double x, enum sw_dtype dtype);
/* A number that float16 would round to zero, as it is to be added to a tensor or to bound it: profile best takes the
 * smallest float16, 2^-24, so that the eps 1e-12 of a norm still keeps a row of zeros from being divided by zero. No
 * sum or bound is off by more than that. */
double lw_not_vanishing(const struct lower *l, double x, enum sw_dtype dtype);
/* Constants made once: what it is of (a value, or a size), and in which dtype. */
struct lw_table_key {
  int64_t kind, a, b, dtype;
};
enum { LW_TABLE_VALUE, LW_TABLE_MASK, LW_TABLE_CAUSAL, LW_TABLE_ROTATION, LW_TABLE_CHOSEN };
struct tensor lw_cached(struct lower *l, struct lw_table_key key); /* unknown: not made yet */
void lw_cache(struct lower *l, struct lw_table_key key, struct tensor t);
/* Memory that goes when the node is done. */
struct sw_arena *lw_scratch(struct lower *l);
/* A constant of our own making, row major. */
struct tensor lw_table(struct lower *l, const char *name, enum sw_dtype dtype, int rank, const int64_t *size,
                       const double *elements);

/* Whether nothing behind the node at work reads the value's storage, so that a functional write may reuse it: a
 * temporary, or an input whose new value is an output anyway. */
bool lw_is_last_use(struct lower *l, int value, int storage);

/* -- host steps (host.c) -- */

/* The node at work as a host step: all its results. */
enum { LW_NO_FUNCTION, LW_HOST_FLOAT, LW_HALF_ONLY, LW_ELEMENTS }; /* why */
extern const char lw_why_half_only[];
void lw_host(struct lower *l, int why);
void lw_host_except(struct lower *l, int why, uint32_t made); /* bit mask of results that are made already */
struct sw_view lw_view_of(struct tensor t);
struct sw_host_step *lw_add_host_step(struct lower *l, struct sw_host_step h);
/* One cast on the host. */
struct tensor lw_host_cast(struct lower *l, struct tensor x, enum sw_dtype dtype);
bool lw_is_given_floats(const struct lower *l);
/* A copy made by the host, laid out by `stride` (NULL: row-major). */
struct tensor lw_host_clone(struct lower *l, struct tensor x, const int64_t *stride, const char *why);

/* -- patterns (pattern.c, pattern_attention.c) -- */

void lw_find_patterns(struct lower *l);
/* narrow.c: float32 regions between casts that are computed in fp16. After liveness. */
void lw_find_narrow(struct lower *l);
void lw_run_match(struct lower *l, const struct lw_match *m);

/* -- operands as they were before (operand.c) -- */

/* A value of repeated heads: the one before the repetition, else itself. */
int lw_unrepeated(struct lower *l, int value);
/* x of a node that is cat([-x[.., D/2:], x[.., :D/2]], -1); else -1. */
int lw_rotated_half(struct lower *l, const struct sw_node *cat);
/* A value that is table[rows] of a table of rank 3 with 1-d row numbers, its last two dims swapped or not. */
struct lw_gathered {
  int table, rows;
  bool turned;
};
bool lw_find_gathered(struct lower *l, int value, struct lw_gathered *out);
/* A matrix operand before its leading dims were joined; its last `kept` dims are the same. */
int lw_unflattened(struct lower *l, int value, int kept);
/* An instance norm that core ATen spells as a batch norm of one image of N C channels, weight and bias (-1: none) N times
 * one behind the other: the [N,C,..] tensor, and the vectors as they were. */
struct lw_instances {
  int x, weight, bias;
};
bool lw_find_instances(struct lower *l, const struct sw_node *n, struct lw_instances *out);

/* -- finishing (finish.c) -- */

/* Host steps that are functions of one row number as look-ups (tabulate.c). */
void lw_tabulate(struct lower *l);
/* Outputs and mutations; then dead ops, unused storages, names. */
void lw_outputs(struct lower *l);
/* Whether an op writes every element of its storage: its loops, from the smallest step on, lie in one another without
 * gaps up to the end. */
bool lw_writes_all(const struct sw_program *p, const struct sw_op *op);
/* Copies that nobody needs (forward.c). */
void lw_forward_copies(struct lower *l);
/* New values of what the run changes are written where the old ones lie, as far as nobody is in the way (state.c). */
void lw_change_in_place(struct lower *l);
void lw_finish(struct lower *l);
/* Profile torch-spyre: the order in which the reference's framework puts nodes (locality.c). */
void lw_order_for_locality(struct lower *l);

/* -- decompositions used by others -- */

/* The node at work where complex numbers take part (complex.c); false: none do, or it is a view or makes them. */
bool lw_run_complex(struct lower *l, const struct lw_operation *op);
/* The node at work as products by every expert (experts.c); false: it is no product of gathered weights. */
bool lw_run_experts(struct lower *l);

struct tensor lw_softmax(struct lower *l, struct tensor x, int dim);
/* queries: the value that q is. */
struct tensor lw_attention(struct lower *l, int queries, struct tensor q, struct tensor k, struct tensor v,
                           const struct sw_arg *mask, bool causal, double scale);
struct tensor lw_linear(struct lower *l, struct tensor x, struct tensor w, const struct tensor *bias);

#endif
