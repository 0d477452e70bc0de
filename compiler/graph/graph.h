/* The graph as it was exported: values and ATen nodes, nothing lowered. Read from a .pt2 archive, from the program
 * JSON inside one, or from the text form (docs/formats.md); written as text.
 *
 * Values, nodes, inputs are numbered by their place in the arrays; references are such numbers. */
#ifndef SW_GRAPH_H
#define SW_GRAPH_H

#include "base/buf.h"
#include "base/dtype.h"
#include "base/job.h"

/* Device tensors have at most 6 dims; host tensors of a graph may have more, folding and host steps handle them. */
enum { SW_MAX_RANK = 16 };

enum sw_value_kind {
  SW_VALUE_TENSOR,
  SW_VALUE_SYM_INT,   /* a number known at run time only; `expr` says which */
  SW_VALUE_SYM_BOOL,
  SW_VALUE_SYM_FLOAT,
};

struct sw_value {
  const char *name; /* unique within its graph */
  enum sw_value_kind kind;
  enum sw_dtype dtype;
  int rank;
  int64_t *size;           /* elements; for a dynamic dim its value at export time until sw_graph_fix_dims */
  int64_t *stride, offset; /* elements; what PyTorch computed on the CPU */
  const char **size_expr;  /* NULL when all dims are static, else one text or NULL a dim */
  const char **stride_expr; /* the same for strides */
  const char *offset_expr;  /* NULL when static */
  const char *expr;        /* of a symbolic number, in ordinary notation ("8*s39"); NULL when a plain constant */
  int64_t hint;            /* of a symbolic number */
  int node, result;        /* result number of that node; node -1: graph input */
};

enum sw_arg_kind {
  SW_ARG_NONE,
  SW_ARG_VALUE, /* tensor or symbolic number */
  SW_ARG_INT,
  SW_ARG_REAL,
  SW_ARG_BOOL,
  SW_ARG_STR,
  SW_ARG_DTYPE,
  SW_ARG_LAYOUT,        /* number in the .pt2 */
  SW_ARG_MEMORY_FORMAT, /* number in the .pt2 */
  SW_ARG_DEVICE,        /* s = "cpu", "cuda:0" */
  SW_ARG_LIST,
  SW_ARG_GRAPH, /* of a higher-order op */
};

struct sw_arg {
  const char *name; /* the schema's; "" for higher-order ops */
  enum sw_arg_kind kind;
  bool given; /* false: the schema's default was filled in */
  union {
    int value;
    int64_t i; /* INT, BOOL, LAYOUT, MEMORY_FORMAT */
    double r;
    const char *s;
    enum sw_dtype dtype;
    struct {
      struct sw_arg *v;
      int n;
    } list;
    struct sw_graph *graph;
  };
};

/* One overload as torch prints it. The table of all known ones is schemas.def; see sw_schema_find. */
struct sw_schema;

struct sw_node {
  const char *name;
  const char *target;             /* "aten.add.Tensor", "_operator.add", "higher_order.cond" */
  const struct sw_schema *schema; /* NULL: unknown overload; args are then as they were written */
  struct sw_arg *args;            /* with a schema: all arguments in the schema's order, defaults filled in */
  int n_args;
  int *results; /* values; a Tensor[] result is flattened; -1: undefined optional tensor */
  int n_results;
  const char *source; /* "model.py:12", or NULL */
  const char *module; /* path in the module tree, or NULL */
  const char *origin; /* node of the graph before its decomposition that this one was made of, or NULL: unknown */
};

enum sw_input_kind {
  SW_INPUT_PARAMETER,
  SW_INPUT_BUFFER,
  SW_INPUT_TENSOR_CONSTANT,
  SW_INPUT_USER,
  SW_INPUT_CONSTANT, /* a Python number, bool, string or None baked into the program; no value */
};

/* A layout that the text form fixes for an input (design: input(device_size=[..], stride_map=[..])). */
struct sw_given_layout {
  int rank;
  int64_t *device_size, *stride_map;
};

struct sw_input {
  enum sw_input_kind kind;
  const char *name;
  const char *target; /* qualified name of a parameter, buffer or constant, else NULL */
  bool persistent;    /* buffers */
  int value;          /* -1 for SW_INPUT_CONSTANT */
  struct sw_arg literal;
  const struct sw_given_layout *layout; /* NULL: not given */
  /* Where the stored elements are: a storage (all of it) and where the tensor lies in it. bytes NULL: values unknown
   * (programs without weights). Element (i0,..) at byte (offset + sum i*stride) * element size. */
  const unsigned char *bytes;
  size_t n_bytes;
  int record;       /* equal numbers: one storage (tied or shared weights); -1: none */
  int64_t *stride, offset;
};

enum sw_output_kind { SW_OUTPUT_USER, SW_OUTPUT_BUFFER_MUTATION, SW_OUTPUT_INPUT_MUTATION };

struct sw_output {
  enum sw_output_kind kind;
  struct sw_arg arg;  /* a value, a literal or none */
  const char *target; /* of a mutation: qualified buffer name, or name of the input */
  int input;          /* of a mutation: place of that input; names alone don't tell, a buffer "k" and an input k are two */
};

struct sw_range {
  const char *symbol; /* expression text */
  bool has_min, has_max;
  int64_t min, max;
};

/* A symbol of dynamic sizes and numbers ("s39"; one that depends on data, "u0", is none). */
struct sw_dim {
  struct sw_range range; /* its name and what the file declares */
  bool has_hint;         /* the value at export time is known: */
  int64_t hint;
  int64_t value;         /* what the graph is compiled for */
  bool given;            /* by option */
  /* by the pipeline: */
  bool serves_less; /* right for every size from `least` on: data fill the leading rows, output `in_dim` of `input` is it */
  int64_t least, step;
  int input, in_dim;
};

/* What the file said before wrapped subgraphs were inlined. */
struct sw_op_count {
  const char *target;
  int n;
};

struct sw_census {
  int nodes;
  SW_VEC(struct sw_op_count) ops;          /* of the top graph, by target */
  SW_VEC(struct sw_op_count) subgraph_ops; /* of all graphs inside */
  int subgraphs;                           /* of the top graph: graphs as arguments */
  int getitems;                            /* results that torch.fx takes with getitem */
  int static_tensors;                      /* among inputs and results that somebody reads */
  int64_t static_elements;
};

struct sw_graph {
  const char *name;       /* file name without folders, or "" */
  const char *form;       /* "pt2", "json", "text" */
  const char *dialect;    /* "TRAINING", "ATEN", or "" */
  char digest[65];        /* SHA-256 of the input bytes, hex */
  SW_VEC(struct sw_value) values;
  SW_VEC(struct sw_node) nodes; /* in execution order */
  SW_VEC(struct sw_input) inputs;
  SW_VEC(struct sw_output) outputs; /* mutations first, as in the file */
  SW_VEC(struct sw_range) ranges;
  SW_VEC(const char *) guards;  /* what the exporter assumed of the symbols ("s33 - 1 != 1"), or its own words for it */
  SW_VEC(struct sw_dim) dims;   /* after sw_graph_find_dims, in order of appearance */
  struct sw_census census;
};

/* Reads any of the three forms (by content), resolves names, fills defaults in and verifies: order, references, sizes
 * whose products fit 63 bits. `program` picks one of several in an archive (NULL: the only one, else a fault that
 * lists them). `bytes` is borrowed for the graph's lifetime. All faults are recorded; *out is set only when the graph
 * can be used. */
enum sw_rc sw_graph_read(struct sw_job *job, const char *name, const char *bytes, size_t len, const char *program,
                         struct sw_graph **out);

/* -- dynamic dims (fix_dims.c) -- */

/* Lists the symbols that values use in g->dims; changes nothing else. */
void sw_graph_find_dims(struct sw_job *job, struct sw_graph *g);

/* Gives every symbol one value: that of `dim_max` ("s0=2048", "s0=2048:64"; a multiple of 64), else the declared maximum
 * up to 65536, else the value at export time. Sizes, strides, offsets and numbers are computed from it and lose their
 * expressions: the graph is static then, and right for inputs of exactly these sizes. What depends on data keeps its
 * expression, and lowering refuses it. A value that breaks a range, a guard or an assertion of the graph is a fault. */
struct sw_texts;
enum sw_rc sw_graph_fix_dims(struct sw_job *job, struct sw_graph *g, const struct sw_texts *dim_max);

/* A warning for each dim: which sizes the program is for. */
void sw_graph_warn_of_dims(struct sw_job *job, const struct sw_graph *g);

/* The value of the only symbol in `expr` (then *symbol) at which it is `wanted`; -1: there is none up to 65536. */
int64_t sw_graph_solve_dim(struct sw_job *job, const char *expr, int64_t wanted, const char **symbol);

/* -- reading -- */

/* Names of the programs in a file: those of an archive, in its order, or one empty name. Faults as sw_graph_read. */
struct sw_programs {
  SW_VEC(const char *) names;
};
enum sw_rc sw_graph_programs(struct sw_job *job, const char *bytes, size_t len, struct sw_programs *out);

/* The text form. Reading it back gives the same graph (payloads apart), and writing that the same text. */
void sw_graph_write_text(const struct sw_graph *g, struct sw_buf *out);

/* What the reader saw, as members of a JSON object that the caller opened and closes: counts, inputs with the SHA-256
 * of stored values in row-major order, outputs, mutations, dynamic dims (docs/formats.md). */
struct sw_jw;
void sw_graph_write_facts(struct sw_job *job, const struct sw_graph *g, struct sw_jw *w);

/* Elements of a tensor; checked at reading, so it can't overflow. */
int64_t sw_value_elements(const struct sw_value *v);

/* -- schemas -- */

struct sw_schema_arg {
  const char *name;
  const char *type; /* "Tensor", "Tensor(a!)", "SymInt[]?", "Scalar" */
  struct sw_arg def;
  bool has_default, keyword_only;
};

struct sw_schema {
  const char *target; /* "aten.add.Tensor" */
  struct sw_schema_arg *args;
  int n_args;
  const char **returns; /* types: "Tensor", "Tensor(a)", "Tensor[]" */
  int n_returns;
};

/* The schema of an overload, or NULL. The table is parsed once a process; safe from several threads. */
const struct sw_schema *sw_schema_find(const char *target);
/* Packet i that is another name of packet *of; NULL behind the last one. */
const char *sw_schema_alias(int i, const char **of);

/* Argument of a node by schema name, or NULL when the node has none of that name. */
const struct sw_arg *sw_node_arg(const struct sw_node *n, const char *name);

#endif
