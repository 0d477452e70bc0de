/* One core's view of a tensor of an op: where each element of its slice lies, and their values. An op is run in three
 * steps, all elements read, computed on plain arrays, all written, so every element is checked once a core (bounds,
 * poison, races) and the arithmetic runs free of checks. Reference: superdsc.md section 16, M4, M5, M10, M13. */
#ifndef SW_VERIFY_VIEW_H
#define SW_VERIFY_VIEW_H

#include "compiler/verify/exec.h"

/* Instead of an address: there is no such element, and reading it gives poison; the same, and reading gives 0 (a row
 * of a window outside the image). */
enum { SIM_ABSENT = -1, SIM_ZERO = -2 };

struct sim_view {
  const struct dsc_tensor *t;
  int bytes;                    /* of an element */
  struct sim_memory *memory;
  int64_t base;                 /* of the core's own first element */
  int64_t count[DSC_MAX_DIMS];  /* of the core's slice, by op dim */
  int64_t step[DSC_MAX_DIMS];   /* in the arrays below, by op dim; 0: elements don't differ along it */
  int64_t stride[DSC_MAX_DIMS]; /* elements of memory for one step (one stick, for the stick dim) */
  int64_t whole;                /* elements of memory that its extents span, all cores together */
  int64_t n;                    /* elements */
  int64_t *at;                  /* their bytes in memory */
  double *v;                    /* their values, 0 for poison, after sim_read */
  unsigned char *poison;
  bool has_poison;
};

struct sim_exec {
  struct sw_job *job;
  struct sw_arena *arena, *core_arena; /* of this execute, of this core */
  struct sim_card *card;
  const struct dsc *d;
  const struct sim_symbols *symbols;
  struct sim_view view[DSC_MAX_TENSORS];
  int core, inner; /* `inner`: the dim that runs fastest in all arrays */
  uint32_t stamp;
  enum sw_rc rc;
};

/* First fault counts. */
void sim_wrong(struct sim_exec *x, int tensor, const char *what);

/* Turns to a core: views of all tensors are made, nothing is read yet. */
void sim_enter(struct sim_exec *x, int core);

/* Reads all elements, `shift` bytes behind their place. Does nothing after a fault, but v and poison are there. */
void sim_read(struct sim_exec *x, int tensor, int64_t shift);
/* Writes all elements of the output. */
void sim_write(struct sim_exec *x, int64_t shift, const double *v, const unsigned char *poison);

/* Moves the bits of element `from` of a tensor to element `to` of the output. */
void sim_move(struct sim_exec *x, int tensor, int64_t from, int64_t to);

/* Whether the core that was entered starts where core 0 does plus its slices. first_base: by tensor, filled for core 0. */
void sim_check_addresses(struct sim_exec *x, int64_t *first_base);

/* Next coordinates over the dims in `over`; false after the last. */
bool sim_advance(int n_dims, const int64_t *count, const bool *over, int64_t *at);
/* Place in a view's arrays. */
static inline int64_t sim_place(const struct sim_view *v, int n_dims, const int64_t *at)
{
  int64_t i = 0;
  for (int d = 0; d < n_dims; d++)
    i += v->step[d] * at[d];
  return i;
}

#endif
