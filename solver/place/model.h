/* The problem as the placers see it: time cut into sections, what is resident as a whole gathered into units. */
#ifndef SW_PLACE_MODEL_H
#define SW_PLACE_MODEL_H

#include "base/number.h"
#include "solver/place/place.h"

/* h bytes in the sections [s0, s1). */
struct sw_slab {
  int s0, s1;
  int64_t h;
};

/* A shape in time at one base address: parts in order, disjoint; between them it is not there. */
struct sw_shape {
  struct sw_slab *v;
  int n;
};

/* One buffer, or all buffers of an alias group: resident together at one address, or not at all. */
struct sw_unit {
  int *buffers;
  int n;
  struct sw_shape shape;
  int64_t value;
  int64_t alignment; /* least common multiple of what its buffers want */
  int64_t address;   /* pinned, or -1 */
  bool required;
  const char *out; /* why it can never be resident, or NULL */
};

/* A child may take its parent's slot; then the child's bytes do not count in the shared section. */
struct sw_edge {
  int parent, child; /* buffers, of different units that are not out */
  int section;
};

struct sw_model {
  const struct sw_place_problem *p;
  struct sw_arena *arena;
  int n_sections;     /* between neighbouring starts and ends */
  int *first, *last;  /* sections [first, last) of every buffer */
  struct sw_unit *units;
  int n_units;
  int *unit_of; /* of every buffer */
  struct sw_edge *edges;
  int n_edges;
  int64_t granule; /* all addresses of a plan pushed down, and all sizes, are multiples of it */
};

struct sw_model *sw_model_make(struct sw_arena *arena, const struct sw_place_problem *p);

/* The shape of buffers that sit at one address: in every section the tallest that is live. */
struct sw_shape sw_shape_of(struct sw_arena *arena, const struct sw_model *m, const int *buffers, int n);

/* For every buffer the buffers whose lives meet its own: neighbours of i are v[at[i]] .. v[at[i + 1] - 1]. */
struct sw_meets {
  int64_t *at;
  int *v;
};
struct sw_meets sw_meets_make(struct sw_arena *arena, const struct sw_place_problem *p);

/* -- placers: fill addresses (-1: not resident) -- */

/* The reference's heuristics (scratchpad.md 5.3 to 5.5) for buffers whose `out` is not set. */
void sw_place_greedy(struct sw_arena *arena, const struct sw_place_problem *p, const bool *out, int64_t *address);
void sw_place_fit(struct sw_arena *arena, const struct sw_place_problem *p, const bool *out, bool best,
                  int64_t *address);
void sw_place_stack(struct sw_arena *arena, const struct sw_place_problem *p, const bool *out, int64_t *address);

/* Buffers whose `out` is not set, parents before children, else as `rank` lists them (the earlier of those that are ready). */
int *sw_place_parents_first(struct sw_arena *arena, const struct sw_place_problem *p, const bool *out, const int *rank,
                            int *n_out);

#endif
