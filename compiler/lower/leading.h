/* Programs that serve several sizes of a dynamic dim: data fill the leading rows of buffers made for the largest. */
#ifndef SW_LOWER_LEADING_H
#define SW_LOWER_LEADING_H

#include "compiler/lower/program.h"

struct sw_leading {
  int *dim;  /* by storage: the host dim that is a multiple of the dynamic one, -1: none */
  int *loop; /* by op: the loop over it, -1: none */
};

/* Whether `big`, made for the size `max`, is right for smaller ones too; `small` is the same graph lowered for `size`,
 * another one. Arrays of *out live in the arena. */
bool sw_program_serves_less(struct sw_arena *arena, const struct sw_program *big, const struct sw_program *small,
                            int64_t max, int64_t size, struct sw_leading *out);

#endif
