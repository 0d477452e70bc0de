/* Ops along some dims of a tensor: for every index of the others there is a row of elements. Inside compiler/eval
 * only. */
#ifndef SW_EVAL_ROWS_H
#define SW_EVAL_ROWS_H

#include "compiler/eval/ops.h"

/* Elements of a row, as reals or as integers. */
struct sw_row {
  int64_t n;
  double *real;
  int64_t *whole; /* not NULL: these are meant */
};

/* Which of i and j comes first in rising order: -1, 0, 1. NaN is the largest, as in PyTorch. */
int sw_row_compare(const struct sw_row *r, int64_t i, int64_t j);
/* Indices of the row in rising or falling order, equal ones in the order they stand. `room` holds n indices. */
void sw_row_sort(const struct sw_row *r, bool falling, int64_t *order, int64_t *room);
/* Place of the first largest or smallest element. */
int64_t sw_row_best(const struct sw_row *r, bool smallest);

/* A tensor split into kept dims and those of the rows. */
struct sw_split {
  struct sw_tensor kept, row;
};
struct sw_split sw_split_dims(const struct sw_tensor *t, const bool *in_row);

/* The dims of argument `name`: a number, a list, or none for all. */
void sw_call_dims(struct sw_call *c, const char *name, int rank, bool *in_row);

/* Result 0: one number for each row of x over the dims of argument "dim", which stay with size 1 where "keepdim" says so. */
typedef double sw_row_fn(const struct sw_call *c, const double *row, int64_t n, double parameter);
void sw_reduce_rows(struct sw_call *c, struct sw_tensor x, sw_row_fn *of, double parameter);

#endif
