/* The program: storages, and device ops or host steps that read and write them through accesses.
 *
 * Made by compiler/lower; compiler/layout gives every storage a layout and adds conversions; compiler/plan gives every
 * op its core splits and every storage its place; compiler/emit writes it down. Views are no longer there: an access is
 * a storage, an offset and a step per loop, all counted in host elements of the storage. */
#ifndef SW_LOWER_PROGRAM_H
#define SW_LOWER_PROGRAM_H

#include "compiler/graph/graph.h"

enum {
  SW_MAX_LOOPS = 12,  /* of one op: at most 6 written dims plus reduced ones */
  SW_MAX_INPUTS = 8,  /* tensors read by one op */
  SW_MAX_DEVICE_RANK = 8,
  SW_MAX_LEVELS = 4,  /* counted loops around one op */
};

struct sw_layout; /* compiler/layout/layout.h */
struct sw_place;  /* compiler/plan/plan.h */
struct sw_op_plan;

enum sw_storage_kind {
  SW_STORAGE_INPUT,     /* user input */
  SW_STORAGE_PARAMETER,
  SW_STORAGE_BUFFER,    /* buffers and lifted constants of the model */
  SW_STORAGE_CONSTANT,  /* folded by us: `data` has the elements, row-major */
  SW_STORAGE_SCALAR,    /* 0-d constant of value `fill`; takes no part in layout choice */
  SW_STORAGE_TEMPORARY, /* written by an op or a host step */
};

/* One allocation. Views, in-place writes and several writers share it, so it has one layout. */
struct sw_storage {
  const char *name; /* unique; of a value of the graph where there is one */
  enum sw_storage_kind kind;
  enum sw_dtype dtype;
  int rank;
  int64_t size[SW_MAX_RANK], stride[SW_MAX_RANK]; /* the host tensor whose elements accesses count; dense */
  int input;           /* number of the graph input, -1 */
  double fill;         /* of SW_STORAGE_SCALAR */
  const void *data;    /* of SW_STORAGE_CONSTANT */
  size_t n_bytes;      /* of data */
  bool has_pad_fill;   /* a loader writes pad_fill into lanes without an element (zero rows of a padded K), or the op that makes it */
  double pad_fill;
  bool host_only;      /* read and written by host steps only: never laid out */
  bool is_output;      /* named by an entry of program.outputs */
  int dynamic;         /* 1 + number of the graph's dynamic dim whose smaller sizes fill its first rows only; 0: none */
  int rows;            /* then the host dim that is a multiple of it */
  /* by compiler/layout */
  const struct sw_layout *layout;
  /* by compiler/plan */
  const struct sw_place *place;
};

/* index = offset + sum over loops of step[l] * l  (+ index_step * value of operand `index_input` for a gather) */
struct sw_access {
  int storage;
  int64_t offset;
  int64_t step[SW_MAX_LOOPS]; /* 0: the access does not depend on that loop (broadcast) */
  int index_input;            /* number of the op's input that holds row numbers, or -1 */
  int64_t index_step;         /* elements a row number counts */
  int64_t index_range;        /* rows there are */
  int64_t advance[SW_MAX_LEVELS]; /* how far it moves on with every turn of a counted loop around the op; 0: it stays */
};

/* A counted loop around an op: a number that is its own in the program, how often its body runs, and which of the op's
 * loops it cuts into tiles. */
enum {
  SW_CUT_AWAY = -1, /* one that is gone: its tiles have one element, or another op reduced them */
  SW_UNCUT = -2,    /* none: the op is repeated as it is */
};
struct sw_level {
  int loop;
  int64_t count;
  int cut;
};

/* Device operations: X(id, SuperDSC name, is_reduction, inputs (-1: varies)). Reference: ops.md section 4. */
#define SW_DEVICE_OPS(X)                       \
  X(ABS, "abs", 0, 1)                          \
  X(EXP, "exp", 0, 1)                          \
  X(FLOOR, "floor", 0, 1)                      \
  X(GELU, "gelufwd", 0, 1)                     \
  X(LOG, "log", 0, 1)                          \
  X(NEG, "neg", 0, 1)                          \
  X(RECIPROCAL, "reciprocal", 0, 1)            \
  X(RELU, "relufwd", 0, 1)                     \
  X(RSQRT, "rsqrt", 0, 1)                      \
  X(SIGMOID, "sigmoid", 0, 1)                  \
  X(SILU, "silu", 0, 1)                        \
  X(SQRT, "sqrt", 0, 1)                        \
  X(TANH, "tanh", 0, 1)                        \
  X(QFP8CH, "qfp8ch", 0, 1)                    \
  X(QFP8WT, "qfp8wt", 0, 1)                    \
  X(CLIP, "clip", 0, 1)                        \
  X(SOFTPLUS, "softplus", 0, 1)                \
  X(LAYERNORMSCALE, "layernormscale", 0, 1)    \
  X(ADD, "add", 0, 2)                          \
  X(SUB, "sub", 0, 2)                          \
  X(MUL, "mul", 0, 2)                          \
  X(DIV, "realdiv", 0, 2)                      \
  X(MAXIMUM, "maximum", 0, 2)                  \
  X(MINIMUM, "minimum", 0, 2)                  \
  X(EQ, "equal", 0, 2)                         \
  X(NE, "notequal", 0, 2)                      \
  X(GT, "greaterthan", 0, 2)                   \
  X(GE, "greaterequal", 0, 2)                  \
  X(LT, "lesserthan", 0, 2)                    \
  X(LE, "lesserequal", 0, 2)                   \
  X(WHERE, "where3", 0, 3)                     \
  X(LAYERNORMNORM, "layernormnorm", 0, -1)     \
  X(DL16TOFP32, "dl16tofp32", 0, 1)            \
  X(FP32TODL16, "fp32todl16", 0, 1)            \
  X(FP8TODL16, "fp8todl16", 0, 1)              \
  X(IDENTITY, "identity", 0, -1)               \
  X(RESTICKIFY, "ReStickifyOpHBM", 0, 1)       \
  X(SUM, "sum", 1, 1)                          \
  X(MEAN, "mean", 1, 1)                        \
  X(MAX, "max", 1, 1)                          \
  X(MIN, "min", 1, 1)                          \
  X(PROD, "prod", 1, 1)                        \
  X(EXX2, "exx2", 1, 1)                        \
  X(TOPKVALUE, "topkvalue", 1, 1)              \
  X(TOPKINDEX, "topkindex", 1, 1)              \
  X(AVGPOOL, "avgpoolfwd", 1, 1)               \
  X(MATMUL, "batchmatmul", 1, 2)               \
  X(MATMULFP8, "batchmatmulfp8", 1, 2)         \
  X(CONV2D, "conv2d", 1, 2)                    \
  X(DEPTHWISE, "depthwiseconv2dnative", 1, 2)

enum sw_device_op {
#define X(id, name, is_reduction, inputs) SW_OP_##id,
  SW_DEVICE_OPS(X)
#undef X
  SW_N_DEVICE_OPS
};

const char *sw_device_op_name(enum sw_device_op op);
bool sw_device_op_is_reduction(enum sw_device_op op);
/* Whether its operands and result may have lanes of this dtype. Reference: ops.md 1.2. */
bool sw_device_op_takes(enum sw_device_op op, enum sw_dtype lanes);

struct sw_named_number {
  const char *name;
  double value;
};

/* Why an op is there, for candidate rules and reports. */
enum sw_op_role {
  SW_ROLE_PLAIN,
  SW_ROLE_CLONE,      /* aten.clone / contiguous: its output has the default layout */
  SW_ROLE_WRITE,      /* writes into a storage that exists already (slice write, cat piece, fill of a region) */
  SW_ROLE_FILL,       /* a whole tensor from a scalar */
  SW_ROLE_ALLOCATE,   /* reserved: storages need no op to exist */
  SW_ROLE_CONVERSION, /* inserted by compiler/layout: one storage in another layout */
  SW_ROLE_PADDING,    /* inserted by compiler/layout: padded operand of a matmul */
};

struct sw_op {
  const char *name; /* unique */
  enum sw_device_op op;
  enum sw_op_role role;
  /* Loops: first n_written ones index the output, outermost first; the others are reduced (matmul: batch.., m, n, k).
   * No loop has range 1. */
  int n_loops, n_written;
  int64_t range[SW_MAX_LOOPS];
  int n_in;
  struct sw_access in[SW_MAX_INPUTS]; /* a row-number operand of a gather comes first */
  struct sw_access out;
  /* Counted loops around the op, outermost first. The ops of a loop are neighbours in program.steps; its body runs from
   * the first to the last of them, `count` times. [1024,64] in tiles of 256 rows: range 256 and 64, count 4, advance
   * 256 * 64. */
  int n_levels;
  struct sw_level level[SW_MAX_LEVELS];
  SW_VEC(struct sw_named_number) constants; /* op_info.constants: clipMin, eps, scaling_factor.. */
  SW_VEC(struct sw_named_number) conv;      /* op_info.conv_params */
  SW_VEC(int) nodes;                        /* graph nodes it stands for */
  const char *source;
  int row_loop; /* 1 + the loop over such rows; 0: none */
  /* by compiler/plan */
  const struct sw_op_plan *plan;
};

/* A tensor argument of a host step or an output: host elements of a storage. */
struct sw_view {
  int storage;
  int rank;
  int64_t size[SW_MAX_RANK], stride[SW_MAX_RANK], offset;
};

struct sw_host_arg {
  enum { SW_HOST_NONE, SW_HOST_VIEW, SW_HOST_LITERAL, SW_HOST_LIST } kind;
  const char *name; /* keyword, or NULL when positional */
  struct sw_view view;
  struct sw_arg literal; /* never a value */
  struct sw_host_arg *list;
  int n_list;
};

/* A step that runs on the host between two kernels. */
struct sw_host_step {
  const char *name;
  const char *target; /* "aten.cumsum.default" */
  SW_VEC(struct sw_host_arg) args;
  SW_VEC(struct sw_view) results; /* storage -1: nobody wants it */
  const char *why;
  int node;
};

struct sw_step {
  bool is_host;
  int index; /* into ops or host_steps */
};

struct sw_program_output {
  const char *name;
  bool is_tensor;
  struct sw_view view;
  enum sw_dtype dtype;
  struct sw_arg literal; /* not a tensor */
  const char *mutates;   /* name of the input or buffer whose new value this is, or NULL */
};

/* A value of the graph that is a view: ops read the storage under it. */
struct sw_named_view {
  const char *name, *of;
};

struct sw_program {
  const struct sw_graph *graph;
  SW_VEC(struct sw_storage) storages;
  SW_VEC(struct sw_op) ops;
  SW_VEC(struct sw_host_step) host_steps;
  SW_VEC(struct sw_step) steps; /* execution order of all ops and host steps */
  SW_VEC(struct sw_program_output) outputs;
  SW_VEC(struct sw_named_view) views; /* for explanations */
  int n_loops; /* counted loops there are: numbers below this one */
  const struct sw_machine *machine; /* what times are reckoned with (compiler/layout/machine.h); NULL: the built-in one */
};

/* Elements of the host tensor. */
int64_t sw_storage_elements(const struct sw_storage *s);

/* number[s] for s in every access, view and output; the list of storages is the caller's. */
void sw_renumber_storages(struct sw_program *p, const int *number);

/* How often an op runs: the product of the counts around it. */
int64_t sw_op_turns(const struct sw_op *op);

/* Whether the op's tensors simply follow its own slices, so that they may be in LX. Left out: windows, top-k and everything
 * that picks rows, whose cores read outside their slices; conversions, which move data between cores. */
bool sw_follows_slices(const struct sw_op *op);

/* Checks what every pass may rely on: references in range, loops without range 1, accesses inside their storage, every
 * read storage written before (inputs, parameters, constants, scalars apart), names unique. For tests and debug
 * builds; a fault here is SW_INTERNAL. `pass` names who made the program. */
enum sw_rc sw_program_verify(struct sw_job *job, const struct sw_program *p, const char *pass);

/* A readable dump, one line a storage and an op; for --dump-after and tests. */
void sw_program_write(const struct sw_program *p, struct sw_buf *out);

/* Line i of the table of operations: what becomes of an ATen overload. False behind the last one. */
struct sw_operation {
  const char *target, *kind; /* "device", "decomposed", "view", "constant", "nothing", "host", "refused" */
  const char *becomes;       /* device ops in order */
  const char *note;          /* limits, or why; NULL: nothing to say */
  bool half_only;            /* fp16 and bf16 only */
};
bool sw_operation_at(int i, struct sw_operation *out);

struct sw_options;
/* compiler/lower's pass: decomposes, folds constant subgraphs and views, one device op per node. Every unsupported
 * node is a fault of its own. */
enum sw_rc sw_lower(struct sw_job *job, const struct sw_options *o, const struct sw_graph *g, struct sw_program **out);

#endif
