/* One op at work: its arguments by schema name, its results, and the way out when something is wrong. Inside
 * compiler/eval only.
 *
 * Reading an argument that is missing or of the wrong kind, or making a result that does not fit, does not return:
 * control goes back to the evaluator, which has recorded why. Tensors made during a call are freed at its end unless
 * they became results, so ops own nothing. */
#ifndef SW_EVAL_CALL_H
#define SW_EVAL_CALL_H

#include "compiler/eval/tensor.h"

#include <setjmp.h>

struct sw_call;
typedef void sw_op_fn(struct sw_call *c);

/* A line of the table of overloads. */
struct sw_eval_op {
  const char *target;
  sw_op_fn *fn;
  int what;         /* kernel, reduction, .. of fn's family */
  const char *args; /* names that fn's family asks for */
};

/* Of an in-place variant ("aten.add_.Tensor") without a line of its own it is the line of "aten.add.Tensor". */
const struct sw_eval_op *sw_eval_op_find(const char *target, bool *in_place);

/* The table is sorted by target. */
extern const struct sw_eval_op sw_eval_ops[];
extern const int sw_n_eval_ops;

struct sw_eval {
  struct sw_job *job;
  const struct sw_graph *graph;
  enum sw_rounding rounding;
  struct sw_memory *memory;
  struct sw_evaluated *values; /* per value of the graph */
  struct sw_cells **records;   /* per record of the file: cells that are alive */
  int n_records;
  int depth; /* of subgraphs */
};

struct sw_call {
  struct sw_eval *eval;
  const struct sw_node *node;
  const struct sw_eval_op *op;
  struct sw_arena *scratch; /* for lists; gone after the call */
  enum sw_rounding rounding;
  bool in_place; /* result 0 goes into argument `self` */
  struct sw_tensor first; /* what became result 0 */
  bool over_limit;
  enum sw_rc rc;
  jmp_buf out;
};

/* Records a fault with the node's name and leaves the op. */
_Noreturn void sw_call_stop(struct sw_call *c, enum sw_rc rc, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Leaves the op because its results would not fit. */
_Noreturn void sw_call_over_limit(struct sw_call *c);
/* Leaves the op; the fault is recorded already. */
_Noreturn void sw_call_leave(struct sw_call *c, enum sw_rc rc);

/* -- arguments -- */

struct sw_ints {
  int n;
  const int64_t *v;
};

/* NULL when the node has none of that name or it is None. */
const struct sw_arg *sw_call_arg(struct sw_call *c, const char *name);
const struct sw_arg *sw_call_need(struct sw_call *c, const char *name);
bool sw_call_has(struct sw_call *c, const char *name);

struct sw_tensor sw_call_tensor(struct sw_call *c, const char *name);
/* A tensor, or a number as one of rank 0 (*is_number, if asked for). */
struct sw_tensor sw_call_operand(struct sw_call *c, const char *name, bool *is_number);
/* Tensors of a list; *n of them. An absent one has no cells. */
const struct sw_tensor *sw_call_tensors(struct sw_call *c, const char *name, int *n);
int64_t sw_call_int(struct sw_call *c, const char *name);
int64_t sw_call_int_or(struct sw_call *c, const char *name, int64_t otherwise);
double sw_call_real(struct sw_call *c, const char *name);
double sw_call_real_or(struct sw_call *c, const char *name, double otherwise);
bool sw_call_bool(struct sw_call *c, const char *name); /* false when there is none */
const char *sw_call_text(struct sw_call *c, const char *name, const char *otherwise);
enum sw_dtype sw_call_dtype(struct sw_call *c, const char *name, enum sw_dtype otherwise);
/* A list of integers; a bare one is a list of one, none is empty. */
struct sw_ints sw_call_ints(struct sw_call *c, const char *name);
/* Entry i of a list of one for all or one per dim. */
int64_t sw_ints_at(struct sw_call *c, struct sw_ints l, int i, int64_t otherwise);
struct sw_number sw_call_number(struct sw_call *c, const struct sw_arg *a);
double sw_number_real(struct sw_number n);
int64_t sw_number_int(struct sw_number n);

/* A dim of a tensor, counted from the end when negative. Rank 0 has a dim 0 here, as in PyTorch. */
int sw_call_dim(struct sw_call *c, const char *name, int rank);
int sw_dim_of(struct sw_call *c, int64_t dim, int rank);

/* -- results -- */

/* A fresh result with the dtype and the order of strides that the graph declares. A declared static size must agree. */
struct sw_tensor sw_call_out(struct sw_call *c, int result, int rank, const int64_t *size);
/* A result that shows cells there are. */
void sw_call_out_view(struct sw_call *c, int result, struct sw_tensor view);
void sw_call_out_number(struct sw_call *c, int result, struct sw_number n);
const struct sw_value *sw_call_declared(struct sw_call *c, int result); /* NULL: nobody wants it */
enum sw_dtype sw_call_out_dtype(struct sw_call *c, int result);
int sw_call_n_results(struct sw_call *c);

/* -- temporaries -- */

struct sw_tensor sw_call_new(struct sw_call *c, enum sw_dtype dtype, int rank, const int64_t *size);
struct sw_tensor sw_call_scalar(struct sw_call *c, struct sw_number n); /* of rank 0 */
double *sw_call_reals(struct sw_call *c, int64_t n);  /* zeroed */
int64_t *sw_call_wholes(struct sw_call *c, int64_t n);
/* All elements of a tensor, row-major. */
double *sw_call_get(struct sw_call *c, const struct sw_tensor *t);
int64_t *sw_call_get_wholes(struct sw_call *c, const struct sw_tensor *t);
void sw_call_copy(struct sw_call *c, const struct sw_tensor *to, const struct sw_tensor *from);
struct sw_tensor sw_call_contiguous(struct sw_call *c, const struct sw_tensor *t);
void sw_call_fill(struct sw_call *c, const struct sw_tensor *t, struct sw_number n);

/* -- shapes -- */

/* The size that both broadcast to, into *size; gives the rank. */
int sw_call_broadcast(struct sw_call *c, int64_t *size, int rank, const struct sw_tensor *t);
/* The tensor seen in a size it broadcasts to. */
struct sw_tensor sw_call_expand(struct sw_call *c, const struct sw_tensor *t, int rank, const int64_t *size);
/* The same elements in another size of as many elements: a view where there is one, else a copy. */
struct sw_tensor sw_call_reshape(struct sw_call *c, const struct sw_tensor *t, int rank, const int64_t *size);
int64_t sw_call_product(struct sw_call *c, int n, const int64_t *size);

/* -- values of an evaluator -- */

void sw_eval_keep(struct sw_eval *e, int value, const struct sw_evaluated *v);
void sw_eval_release(struct sw_eval *e, int value);

/* Runs a subgraph on arguments. Cells of the results have one reader more, which the caller drops. */
void sw_eval_subgraph(struct sw_call *c, const struct sw_graph *g, int n_args, const struct sw_evaluated *args,
                      int n_results, struct sw_evaluated *results);

#endif
