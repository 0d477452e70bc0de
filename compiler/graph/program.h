/* The reader of a program's JSON, shared by its files (program.c, program_args.c, guards.c). */
#ifndef SW_GRAPH_PROGRAM_H
#define SW_GRAPH_PROGRAM_H

#include "compiler/graph/build.h"
#include "compiler/graph/expr.h"

/* A place in the document: a JSON pointer that costs nothing until a fault needs its text. */
struct sw_at {
  const struct sw_at *up; /* NULL: the root */
  const char *key;        /* NULL: element `index` */
  size_t index;
};

/* A number that is known at run time only and has no value at export time (u0). */
struct sw_unbacked {
  const struct sw_expr *expr;
  int64_t *slot; /* NULL: the hint of that value */
  struct sw_graph *graph;
  int value;
};

/* Of the whole document. */
struct sw_document {
  struct sw_job *job;
  struct sw_map hints; /* symbol -> value at export time */
  SW_VEC(struct sw_unbacked) unbacked;
  const struct sw_payloads *payloads; /* NULL: there are none */
};

/* Of one graph in it: the top one or a subgraph. */
struct sw_reader {
  struct sw_document *doc;
  struct sw_names names;
  const struct sw_at *at;
  const json_t *tensors, *numbers[3]; /* tensor_values; sym_int_values, sym_bool_values, sym_float_values */
  const char *node;                   /* for faults */
};

struct sw_fault *sw_program__fault(struct sw_reader *r, const struct sw_at *at, enum sw_rc rc, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
const char *sw_program__pointer(struct sw_reader *r, const struct sw_at *at);

/* Member of an object with its type checked; NULL after a fault. */
const json_t *sw_program__member(struct sw_reader *r, const struct sw_at *at, const json_t *object, const char *key,
                                 json_type type);

/* The only member of a union: its value, name in *variant. NULL after a fault. */
const json_t *sw_program__union(struct sw_reader *r, const struct sw_at *at, const json_t *object,
                                const char **variant);

/* One Argument (pt2.md section 4). */
bool sw_program__arg(struct sw_reader *r, const struct sw_at *at, const json_t *argument, struct sw_arg *out);

/* Defines a value: `node` -1 for an input. Its metadata come from the graph's tables. Gives its number, -1 after a
 * fault. */
int sw_program__define(struct sw_reader *r, const struct sw_at *at, const char *name, enum sw_value_kind kind,
                       int node, int result);

/* Sizes or strides: numbers at export time, expressions where symbolic (*exprs NULL when there are none). */
bool sw_program__dims(struct sw_reader *r, const struct sw_at *at, const json_t *list, int64_t *out,
                      const char ***exprs);

/* guards_code of a document whose inputs and ranges are read (guards.c). */
void sw_program__guards(struct sw_job *job, const json_t *root, struct sw_graph *g);

struct sw_graph *sw_program__graph(struct sw_document *doc, const struct sw_at *at, const json_t *graph,
                                   const json_t *signature, const struct sw_at *signature_at);

#endif
