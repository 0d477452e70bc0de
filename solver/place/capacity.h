/* The capacity program as numbers: columns, rows, factors (see capacity.c). */
#ifndef SW_PLACE_CAPACITY_H
#define SW_PLACE_CAPACITY_H

#include "solver/place/master.h"

struct sw_row {
  int from, n; /* in the entries */
  int64_t limit;
};

struct sw_entry {
  int column;
  int64_t factor;
};

struct sw_capacity {
  struct sw_master *m;
  struct sw_arena *arena;
  SW_VEC(struct sw_row) rows; /* first n_sections ones for sections in order of time, then of edges, then of cuts */
  SW_VEC(struct sw_entry) entries;
  int n_sections;
  int *column_of_unit, *column_of_edge; /* 0: none */
  int *unit_of_column, *edge_of_column; /* -1: none */
  int n_columns;
  int64_t always;     /* value of the units without a column */
  int64_t value_unit; /* of which all values of columns are multiples */
};

/* Builds the program. False when a required unit can't be in. Units without a column are settled in m->in. */
bool sw_capacity_make(struct sw_arena *arena, struct sw_master *m, struct sw_capacity *out);

/* Solves it section by section; false when too many sets are possible at a time (then nothing is known). */
bool sw_frontier_solve(struct sw_capacity *g);

#endif
