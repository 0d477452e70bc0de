/* The normal form of op specs: every device coordinate one symbol. Reference: layouts.md 3.7.
 *
 * Not every op with compatible sticks has one, and not every one that has means what it says once dims are rounded up to
 * sticks: sw_layout_obstacle tells before an op with given layouts is settled on. */
#ifndef SW_LAYOUT_NORMAL_H
#define SW_LAYOUT_NORMAL_H

#include "compiler/layout/layout.h"

enum { SW_NORMAL_RANK = 16 };

enum sw_coord_form {
  SW_COORD_CONST,    /* k */
  SW_COORD_SYMBOL,   /* s + k */
  SW_COORD_FLOOR,    /* floor(s/e) + k */
  SW_COORD_MOD,      /* Mod(s, e) */
  SW_COORD_INDIRECT, /* IndirectAccess(name) */
};

struct sw_spec_coord {
  enum sw_coord_form form;
  int symbol; /* entry of the iteration space */
  int64_t e, k;
  const char *name; /* of the index tensor; sw_normal_form leaves it NULL */
};

/* A tensor of an op before: its layout and where the op's loops lead in it. */
struct sw_normal_input {
  const struct sw_layout *layout;
  struct sw_coord coord[SW_MAX_DEVICE_RANK];
  bool is_index; /* holds row numbers */
};

/* And after. */
struct sw_normal_tensor {
  int rank;
  int64_t size[SW_NORMAL_RANK];
  struct sw_spec_coord coord[SW_NORMAL_RANK];
};

struct sw_normal_symbol {
  bool is_new; /* z<number>: a part cut off a loop, or a fixed place; else c<number> */
  int number;
  int64_t range, split;
};

struct sw_normal {
  SW_VEC(struct sw_normal_symbol) space;
  struct sw_normal_tensor *tensor; /* one per input, in their order */
  /* where there is no normal form: */
  int culprit; /* number of the tensor */
  const char *why, *advice;
};

/* The order in which an op spec lists the loops: as most accesses lie in memory, like the reference's framework. keeps_cores:
 * loops that are split stay in the program's order, so that the cores have the parts that the plan gave them (tensors in
 * LX need that). split: cores per loop, NULL for one each. */
void sw_loop_order(const struct sw_op *op, const int64_t *split, bool keeps_cores, int *order);
/* Core numbers count the loops that are split in their order. */
bool sw_renumbers_cores(const struct sw_op *op, const int64_t *split, const int *order);

/* order: loops in the order of the spec. False: see out->why. */
bool sw_normal_form(struct sw_arena *a, const struct sw_op *op, const int64_t *split, const int *order,
                    const struct sw_normal_input *t, int n, struct sw_normal *out);

/* Loops that some tensor cuts into parts, as bits; all of them when there is no normal form. The parts of a loop share
 * its cores from the outside in, so a core's slice of a cut loop is in general not one piece. */
unsigned sw_normal_cut_loops(const struct sw_op *op, const struct sw_normal_input *t, int n);
/* The same for an op of a program whose storages have layouts. */
unsigned sw_op_cut_loops(const struct sw_program *p, const struct sw_op *op);

/* Whether an op of a program whose storages have layouts has a normal form at all. */
bool sw_op_has_form(struct sw_arena *a, const struct sw_program *p, const struct sw_op *op);

/* Ops work on whole sticks: lanes behind the last element are written too. Where a slice ends inside a stick of a longer
 * row, these lanes are somebody's elements: columns 0..99 of 200 would destroy 100..127. */
struct sw_written_part {
  int64_t first, end, size; /* elements of the stick dim: those written, and all */
};
bool sw_write_ends_inside(const struct sw_op *op, const struct sw_layout *l, const struct sw_coord *coord,
                          const struct sw_storage *s, struct sw_written_part *part);

/* Why an op can't be emitted with these layouts (of its inputs, then of its output; NULL for a scalar), or NULL: no
 * normal form, a padded restickify into or out of a slice, a write that ends inside a stick. `written` is the storage of
 * the output. *culprit is the number of the tensor. */
const char *sw_layout_obstacle(struct sw_arena *a, const struct sw_op *op, const struct sw_layout *const *layouts,
                               const struct sw_storage *written, int *culprit);

#endif
