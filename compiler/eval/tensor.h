/* Tensors as ops see them: memory with a budget, rows of elements, views. Inside compiler/eval only. */
#ifndef SW_EVAL_TENSOR_H
#define SW_EVAL_TENSOR_H

#include "compiler/eval/eval.h"

/* -- memory -- */

/* All cells of an evaluator and of those it starts for subgraphs. */
struct sw_memory {
  size_t used, max;
  struct sw_block *newest;
  uint64_t n_made;
};

/* Zeroed cells without readers, or NULL when they would not fit. */
struct sw_cells *sw_cells_new(struct sw_memory *m, enum sw_dtype dtype, int64_t n);
void sw_cells_take(struct sw_cells *c);
void sw_cells_drop(struct sw_cells *c);
/* Frees what was made since `mark` (a value of n_made) and has no reader: the temporaries of one node. */
void sw_memory_sweep(struct sw_memory *m, uint64_t mark);
void sw_memory_free(void *m);

/* -- elements -- */

/* How elements of a dtype are held and computed. */
enum sw_class { SW_CLASS_WHOLE, SW_CLASS_REAL, SW_CLASS_COMPLEX };
enum sw_class sw_class_of(enum sw_dtype t);

/* An integer as a value of its dtype: 300 as uint8 is 44, 2 as bool is 1. */
int64_t sw_whole_to(enum sw_dtype t, int64_t x);

/* `n` elements from place `at` on, `step` apart, converted to the kind asked for. Writing rounds. */
void sw_row_reals(const struct sw_tensor *t, int64_t at, int64_t step, int64_t n, double *out);
void sw_row_wholes(const struct sw_tensor *t, int64_t at, int64_t step, int64_t n, int64_t *out);
void sw_row_complex(const struct sw_tensor *t, int64_t at, int64_t step, int64_t n, double _Complex *out);
void sw_row_put_reals(const struct sw_tensor *t, int64_t at, int64_t step, int64_t n, const double *v,
                      enum sw_rounding r);
void sw_row_put_wholes(const struct sw_tensor *t, int64_t at, int64_t step, int64_t n, const int64_t *v,
                       enum sw_rounding r);
void sw_row_put_complex(const struct sw_tensor *t, int64_t at, int64_t step, int64_t n, const double _Complex *v,
                        enum sw_rounding r);

double _Complex sw_complex(double re, double im);

/* -- walking -- */

/* Several tensors of one size, row by row: for (sw_walk(&w, n, ts); w.more; sw_walk_on(&w)) { row of w.n elements, the
 * first of tensor k at place w.at[k], w.step[k] apart }. Dims that run on in all tensors are one. */
enum { SW_WALK_MAX = 8 };

struct sw_walk {
  bool more;
  int64_t n, at[SW_WALK_MAX], step[SW_WALK_MAX];
  /* how it goes on */
  int n_tensors, rank;
  int64_t size[SW_MAX_RANK], index[SW_MAX_RANK], stride[SW_WALK_MAX][SW_MAX_RANK];
};

void sw_walk(struct sw_walk *w, int n_tensors, const struct sw_tensor *const *ts);
void sw_walk_on(struct sw_walk *w);

/* Elements of `from` into `to` (equal sizes), converted. */
void sw_tensor_copy(const struct sw_tensor *to, const struct sw_tensor *from, enum sw_rounding r);

/* All elements, row-major. */
void sw_get_reals(const struct sw_tensor *t, double *out);
void sw_get_wholes(const struct sw_tensor *t, int64_t *out);
void sw_put_reals(const struct sw_tensor *t, const double *v, enum sw_rounding r);
void sw_put_wholes(const struct sw_tensor *t, const int64_t *v, enum sw_rounding r);

/* Elements from little-endian bytes, all of the cells. */
void sw_cells_decode(struct sw_cells *c, const unsigned char *bytes);

/* -- sizes -- */

/* False when the product does not fit. */
bool sw_product(int n, const int64_t *size, int64_t *product);
/* Strides of a row-major tensor. */
void sw_dense(int rank, const int64_t *size, int64_t *stride);
/* Gives strides that nobody follows (dims of size 1, tensors without elements) harmless values. */
void sw_tensor_tidy(struct sw_tensor *t);
/* Whether every element lies within the cells. */
bool sw_tensor_inside(const struct sw_tensor *t);
/* The view of one index of a dim, without it. */
struct sw_tensor sw_tensor_at(const struct sw_tensor *t, int dim, int64_t index);
/* The same elements with dim `from` moved to place `to`. */
struct sw_tensor sw_tensor_move(const struct sw_tensor *t, int from, int to);

#endif
