/* The normal form of op specs: every coordinate one symbol. Reference: layouts.md 3.7. */
#ifndef SW_EMIT_ALIGN_H
#define SW_EMIT_ALIGN_H

#include "compiler/emit/opspec.h"

/* A tensor of an op before alignment: its layout and where the op's loops lead in it. */
struct sw_align_tensor {
  const struct sw_layout *layout;
  struct sw_coord coord[SW_MAX_DEVICE_RANK];
  bool is_index;          /* holds row numbers */
  const char *row_number; /* name of the index tensor behind a coordinate with `index` */
  const char *name;       /* for faults */
};

/* Fills spec->space, and rank, device_size and coord of spec->args (there must be n of them). Where no normal form
 * exists: SW_UNSUPPORTED naming op and tensor. */
enum sw_rc sw_align(struct sw_job *job, const struct sw_op *op, const int64_t *split, const struct sw_align_tensor *t,
                    int n, struct sw_spec *spec);

#endif
