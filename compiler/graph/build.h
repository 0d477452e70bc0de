/* Shared by the readers of this folder; nobody else includes it. */
#ifndef SW_GRAPH_BUILD_H
#define SW_GRAPH_BUILD_H

#include "base/json.h"
#include "base/map.h"
#include "compiler/graph/graph.h"

/* -- types of schema arguments (schema.c) -- */

enum sw_type_base {
  SW_TYPE_TENSOR,
  SW_TYPE_INT, /* int and SymInt */
  SW_TYPE_FLOAT,
  SW_TYPE_BOOL,
  SW_TYPE_SCALAR,
  SW_TYPE_STR,
  SW_TYPE_DTYPE,
  SW_TYPE_LAYOUT,
  SW_TYPE_MEMORY_FORMAT,
  SW_TYPE_DEVICE,
  SW_TYPE_OTHER, /* Generator */
};

/* "SymInt[2]?": base INT, list, length 2, optional. An element may be None in "Tensor?[]". */
struct sw_type {
  enum sw_type_base base;
  bool is_list, is_optional, element_is_optional;
  int length; /* of a list that one number may stand for, else 0 */
};

struct sw_type sw_schema__type(const char *text);

/* All overloads of the packet "aten.add", for names without overload. */
int sw_schema__packet(const char *packet, const struct sw_schema **first);

/* -- a graph under construction, and binding (build.c) -- */

enum { SW_NODE_UNDEFINED = -2 }; /* value.node of a name that was read but not yet defined */

struct sw_names {
  struct sw_job *job;
  struct sw_graph *graph;
  struct sw_map values;
};

/* Value of that name; made undefined when there is none. */
int sw_graph__value(struct sw_names *names, const char *name);

/* An argument as written: by name, or by position when name is NULL. */
struct sw_written {
  const char *name;
  struct sw_arg arg;
};

/* Gives the node its arguments: in the schema's order with defaults filled in, or as written when node->schema is
 * NULL. Numbers take the schema's form: 2 for a float is 2.0, 1 for an int[2] is [1, 1]. Every misfit is a fault. */
void sw_graph__bind(struct sw_names *names, struct sw_node *node, const struct sw_written *w, int n);

/* The overload of `packet` ("aten.add") that fits the arguments best, or NULL when none or several do; then `why` says
 * so. */
const struct sw_schema *sw_graph__overload(struct sw_names *names, const char *packet, const struct sw_written *w,
                                           int n, const char **why);

/* Row-major strides of a size; a dim of size 0 counts as 1, as in PyTorch. False on overflow. */
bool sw_graph__row_major(int rank, const int64_t *size, int64_t *stride);

/* -- the readers -- */

/* As sw_json_parse, but the tree belongs to `scratch`, a child of the job's arena: it is ten times as large as the graph
 * and not needed once that is read. */
const json_t *sw_graph__json(struct sw_job *job, struct sw_arena *scratch, const char *what, const char *text,
                             size_t len, size_t max_values);

/* A payload of an archive: where a tensor lies in a record. */
struct sw_payload {
  bool opaque; /* only Python could read it */
  enum sw_dtype dtype;
  int rank;
  int64_t *size, *stride, offset;
  const unsigned char *bytes;
  size_t n_bytes;
  int record;
};

struct sw_payloads {
  struct sw_map by_name[2]; /* weights, constants: qualified name -> number in list */
  SW_VEC(struct sw_payload) list;
  bool unknown; /* weights are missing or can't be read, which was reported */
};

struct sw_graph *sw_graph__read_text(struct sw_job *job, const char *text, size_t len);
struct sw_graph *sw_graph__read_program(struct sw_job *job, const char *text, size_t len,
                                        const struct sw_payloads *payloads);
struct sw_graph *sw_graph__read_archive(struct sw_job *job, const char *bytes, size_t len, const char *program);
void sw_graph__list_programs(struct sw_job *job, const char *bytes, size_t len, struct sw_programs *out);
/* Counts what the file said, into g->census. */
void sw_graph__census(struct sw_job *job, struct sw_graph *g);
/* Copies of wrapped subgraphs in place of the ops that only run them; the graph itself when there is none. */
struct sw_graph *sw_graph__inline(struct sw_job *job, struct sw_graph *g);
void sw_graph__verify(struct sw_job *job, struct sw_graph *g);
/* Sizes, strides and offset are not negative, and all that follows from them fits 63 bits. */
bool sw_graph__is_sane(const struct sw_value *v);

#endif
