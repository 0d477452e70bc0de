/* Shared inside the pass (prefix sw_layout__): candidates, what an operand needs, the problem, the insertion.
 *
 * One layout variable per storage. An op ties the layouts of its operands to that of its output; how, its needs say:
 *
 *   SAME   the operand's stick must be compatible with the output's (pointwise, reductions, writes)
 *   LOOP   the operand's stick must be on one loop, whatever the output has (matmul, exx2)
 *   COPY   any stick will do, the op changes it itself (clone; in profile best every plain copy)
 *   ROWS   row numbers of a gather, profile best: any clean stick
 *   NONE   takes no part (scalars)
 *
 * For one candidate of the operand and one of the output there are three outcomes: free, convertible to another host
 * dim at a cost, impossible. Reference: layouts.md sections 3.5, 4, 5. */
#ifndef SW_LAYOUT_CHOOSE_H
#define SW_LAYOUT_CHOOSE_H

#include "base/options.h"
#include "compiler/layout/dropped.h"
#include "solver/assign/assign.h"

typedef SW_VEC(struct sw_layout) sw_layout_list;

/* Candidates of one storage; further ones are left out. Six dims and their sparse form give at most seven sticks. */
enum { SW_MAX_LABELS = 32 };

/* Means that are tried when there is no way without them, one after the other, profile best. */
enum sw_means {
  SW_MEANS_COPIES, /* conversions, copies of slices, parameters loaded twice */
  SW_MEANS_SELECT, /* and selection matrices */
  SW_MEANS_RELOAD, /* and inputs laid out twice by the loader */
  SW_N_MEANS,
};

/* Whether a tensor may hold infinities: only by an overflow; because an input does or a division by zero or the like
 * makes one; or by design. */
enum sw_infinities { SW_FINITE, SW_MAYBE_INFINITE, SW_INFINITE };
/* Elements of a matrix of zeros and ones at most: 8 MB of constants for one conversion. */
enum { SW_MOST_SELECTION = 1 << 22 };

struct sw_choosing {
  struct sw_job *job;
  struct sw_arena *arena; /* scratch of the pass */
  const struct sw_options *o;
  struct sw_program *p;
  struct sw_choice *choice;
  bool best;
  enum sw_means means;
  enum sw_offset_rule rule;
  sw_layout_list *candidates; /* per storage of the program before insertion; empty: takes no part or is refused */
  bool *pinned;
  int *written;  /* by how many ops */
  bool *free_layout; /* laid out by the loader as we like */
  bool *load_twice;  /* and as often as we like */
  sw_layout_list *reload; /* of a user input: other layouts in which the loader could lay it out once more */
  int *accesses; /* by ops, reads and writes */
  int first_host_copy; /* storages from here on are copies by the host */
  bool weighs_traffic; /* profile best, objective time */
  bool *resident; /* may stay in the scratchpads where layouts let it (traffic.c) */
  double *byte_ns;  /* per op of the program before insertion: ns of a byte that it moves */
  int n_ops;        /* of that program */
  double *touch_ns; /* per storage: the sum of that over all accesses */
  int *writer;    /* op that writes it, the last one of several; -1: none */
  bool *refused; /* no candidate, and a fault says why: whatever depends on it is passed over in silence */
  int n_storages;
  int64_t loaded_again_cost; /* of readers, or classes of them, served by a second load */
  struct sw_map loaded_again; /* storage and candidate: the storage loaded again */
  SW_VEC(struct sw_step) steps; /* the new order, while inserting */
  struct sw_map names;          /* of storages and ops */
  enum sw_infinities *infinite; /* per storage, from SW_MEANS_SELECT on */
  struct sw_map selections;     /* size and content of a selection matrix: its storage */
  SW_VEC(struct sw_drop) drops; /* choice->dropped, an entry each */
};

/* -- before -- */

/* Changes to the program that give layouts a chance (prepare.c). */
void sw_layout__prepare(struct sw_choosing *c);
void sw_layout__mend_writes(struct sw_choosing *c); /* that suit no stick (mend.c) */

/* -- candidates -- */

/* Layouts of what is loaded, pins, and results of host steps. */
void sw_layout__load_candidates(struct sw_choosing *c);
/* Layouts of everything that ops write, in execution order. */
void sw_layout__op_candidates(struct sw_choosing *c);

bool sw_layout__propose(struct sw_choosing *c, int storage, const struct sw_layout *l); /* false: was there already */
/* The default layout of a tensor: form A. False after a fault when it can't be on the device. */
bool sw_layout__default(struct sw_choosing *c, int storage, enum sw_format f, struct sw_layout *out);

/* -- needs and outcomes -- */

enum sw_need_kind { SW_NEED_NONE, SW_NEED_SAME, SW_NEED_LOOP, SW_NEED_COPY, SW_NEED_ROWS };

struct sw_need {
  enum sw_need_kind kind;
  int loop; /* of LOOP; -1: no such loop, the operand must have one element a stick */
};

bool sw_layout__is_row_number(const struct sw_op *op, int input);
struct sw_need sw_layout__need(const struct sw_choosing *c, const struct sw_op *op, int input);

/* Loops that only the sum runs over, as bits: read by some operand and not part of the output. */
unsigned sw_layout__reduced_loops(const struct sw_op *op);
/* The loops of a matmul; -1: of range 1, or not unique. */
int sw_layout__matmul_k(const struct sw_op *op);
int sw_layout__matmul_n(const struct sw_op *op);

/* Why an output can't have this layout at all: its stick is not clean, or not on the loop that the op fixes. */
enum sw_reason sw_layout__unwritable(const struct sw_choosing *c, const struct sw_op *op, const struct sw_layout *l,
                                     const struct sw_seen *seen);

/* Whether a write touches all lanes that its sticks share with other elements: sticks are written whole. */
bool sw_layout__writes_whole_sticks(const struct sw_storage *s, const struct sw_op *op, const struct sw_layout *l,
                                    const struct sw_seen *seen);

enum sw_outcome_kind {
  SW_FREE,
  SW_IN_OP,   /* the op, a copy, moves the stick itself */
  SW_CONVERT, /* through a copy */
  SW_IMPOSSIBLE,
};

struct sw_outcome {
  enum sw_outcome_kind kind;
  int dim;      /* of CONVERT: host dim of the copy's stick; -1: no copy of the whole */
  int front;    /* device dim to come first (gathers in profile best), -1: none */
  int slice;    /* 0, or 1 + the loop that gets the stick in a copy of just what this operand reads, made behind the
                   copy of the whole if there is one */
  int select;   /* 0, or 2 + the loop (or -1) that gets the stick by a selection matrix, behind the copy of the whole if any */
  bool alone;   /* of select: one element a stick, broadcast along that loop */
  int load;     /* 0, or 1 + the candidate (of an input: of `reload`) in which a loaded tensor is loaded a second time */
  int64_t cost; /* of the copies that CONVERT makes, in the unit of the objective */
  int64_t move; /* of the op's own move of the stick */
  double read;  /* ns of reading the operand, or its copy (traffic.c) */
  enum sw_reason why; /* of all but FREE: what does not go as it is */
};

/* `from` a layout of operand `input`, `to` one of the output, with what the op sees through each. */
struct sw_outcome sw_layout__outcome(const struct sw_choosing *c, const struct sw_op *op, int input,
                                     const struct sw_layout *from, const struct sw_seen *from_seen,
                                     const struct sw_layout *to, const struct sw_seen *to_seen);
/* What does not go, in words: of operand `input` in one layout and the output in another. */
const char *sw_layout__why(const struct sw_choosing *c, const struct sw_op *op, int input, const struct sw_layout *from,
                           const struct sw_layout *to, const struct sw_outcome *o);
/* Why the output can't have the layout, in words. */
const char *sw_layout__why_unwritable(const struct sw_choosing *c, const struct sw_op *op, const struct sw_layout *l,
                                      enum sw_reason r);
/* The copy of a whole storage with its stick on host dim `dim` and device dim `front` moved to the front. */
bool sw_layout__converted(const struct sw_storage *s, const struct sw_layout *from, int dim, int front,
                          struct sw_layout *out);

/* Whether a copy from one stick to the other is one device op. */
bool sw_layout__moves_stick(const struct sw_choosing *c, const struct sw_op *op, const struct sw_layout *from,
                            const struct sw_seen *seen, const struct sw_storage *written, const struct sw_layout *to,
                            const struct sw_seen *to_seen);

/* A copy of just what one operand reads (slice.c): a tensor with one dim per loop of the copying op. */
struct sw_slice {
  struct sw_storage shape;
  struct sw_access read; /* how the operand reads it */
  struct sw_op op;       /* storage of the copy not filled in */
  int stick;             /* the dim of shape, and loop of op, that the operand needs on its stick */
};

/* How it is made from one layout of the operand. */
struct sw_slice_plan {
  bool at_once;                  /* the op that moves the stick reads the slice itself */
  struct sw_layout middle, last; /* middle: before the stick is moved */
  int64_t cost;
};

/* `loop` may be one that the operand is broadcast along: an outer product of vectors needs that. */
bool sw_layout__slice(const struct sw_choosing *c, const struct sw_op *op, int input, int loop, struct sw_slice *out);
bool sw_layout__plan_slice(const struct sw_choosing *c, const struct sw_slice *slice, const struct sw_layout *from,
                           struct sw_slice_plan *plan);
/* Whether a conversion is such a copy: it does not read its storage whole and in order. */
bool sw_layout__is_slice(const struct sw_storage *read, const struct sw_op *op);
/* What one operand reads, put in place with a matrix of zeros and ones (select.c). */
struct sw_select_run {
  unsigned part;
  int64_t range, step; /* step over the operand */
  int loop, dim;       /* of the reading op; of the operand; -1 */
};

struct sw_select {
  bool alone, sums;                      /* one element a stick; there is a second op */
  int dim;                               /* the operand's stick dim */
  struct sw_coord place[SW_MAX_RANK];    /* the operand's index over the loops of the reading op */
  struct sw_select_run run[SW_MAX_LOOPS];
  int n_runs;
  struct sw_storage matrix, made, copy;  /* the constant; what the first op writes; what is read, made unless it sums */
  struct sw_layout rows, middle, to;     /* theirs */
  struct sw_op first, second;            /* storages but the operand not filled in */
  struct sw_access read;                 /* of the copy */
};

/* `from`: the layout of the operand, or of the copy of its whole. `loop` gets the stick, or is broadcast (alone). */
bool sw_layout__select(const struct sw_choosing *c, const struct sw_op *op, int input, int loop, bool alone,
                       const struct sw_layout *from, struct sw_select *out);
int64_t sw_layout__select_cost(const struct sw_choosing *c, const struct sw_select *x, const struct sw_layout *from);
/* The constant: a storage, one for equal matrices. */
int sw_layout__selection_matrix(struct sw_choosing *c, const struct sw_select *x);
void sw_layout__find_infinities(struct sw_choosing *c);
void sw_layout__warn_of_product(struct sw_choosing *c, const struct sw_op *op, const struct sw_storage *operand);
/* Of an op that computes, with these tensors. */
int64_t sw_layout__work_cost(const struct sw_choosing *c, const struct sw_op *op, const struct sw_layout *const *l, int n);
/* A scalar (padding.c). */
int sw_layout__number(struct sw_choosing *c, double value, enum sw_dtype dtype);

/* Cost of a copy, conversion or not, in the unit of the objective, at least 1 (weigh.c). */
int64_t sw_layout__copy_cost(const struct sw_choosing *c, const struct sw_storage *read, const struct sw_op *op,
                             const struct sw_layout *from, const struct sw_layout *to);
/* The same where a copy of the model moves the stick on its way. */
int64_t sw_layout__in_op_cost(const struct sw_choosing *c, const struct sw_op *op, const struct sw_layout *from,
                              const struct sw_layout *to);

/* Layouts in which a loaded tensor may be loaded a second time, and what one costs (load.c, weigh.c). */
const sw_layout_list *sw_layout__reloads(const struct sw_choosing *c, int storage);
int64_t sw_layout__reload_cost(const struct sw_choosing *c, int storage, const struct sw_layout *l);

/* -- traffic (traffic.c), in ns; 0 unless c->weighs_traffic -- */

/* Finds out who may stay in the scratchpads; wants candidates. */
void sw_layout__survey(struct sw_choosing *c);
/* Reading an operand as it is. */
double sw_layout__read(const struct sw_choosing *c, const struct sw_op *op, int input, const struct sw_layout *from,
                       const struct sw_seen *seen, const struct sw_seen *to_seen);
/* Reading a copy of it, which has the elements of s, through access x. */
double sw_layout__copy_read(const struct sw_choosing *c, const struct sw_op *op, const struct sw_access *x,
                            const struct sw_storage *s, const struct sw_layout *copy, const struct sw_seen *to_seen);
double sw_layout__write(const struct sw_choosing *c, const struct sw_op *op, const struct sw_layout *to,
                        const struct sw_seen *seen);
/* What a storage costs its writer and its other readers because a conversion reads or writes it in memory. */
double sw_layout__loss(const struct sw_choosing *c, int storage, const struct sw_layout *l);

/* Cores that find work in an op when only these loops (bits) are cut, largest loop first, as work division does it, and
 * the split. Loops on a stick count sticks; one that ends inside a stick is not cut when the op wants whole sticks. */
int64_t sw_layout__divide(const struct sw_op *op, unsigned loops, unsigned on_stick, bool whole_sticks, int eps,
                          int64_t cores, int64_t *split);

/* -- the problem -- */

/* What a reader wants of a storage, for each label of the storage. */
struct sw_class {
  struct sw_outcome *wanted;
  int64_t *conv;  /* what that costs */
  int conversion; /* of the choice: the shared copy, -1 before it exists */
  bool loaded;    /* a second time, and counted */
};

struct sw_reading {
  int op, input;
  int *wants; /* class per label of the op's output, -1: as it is, whatever it is */
  int64_t *traffic; /* beyond the least, [label of the storage][label of the output]; NULL: none */
};

/* Readers of one storage between two writes to it (one reader when copies are not shared). */
struct sw_group {
  int storage;
  SW_VEC(struct sw_class) classes;
  SW_VEC(struct sw_reading) readings;
};

/* An operand in order of execution; group -1: the op reads the storage that it writes. */
struct sw_read {
  int op, input, group, reading;
};

/* What pairs of labels cost beside conversions: copies that move the stick, and traffic. */
struct sw_move {
  int op, from, to;
  int64_t *cost; /* [label of from][label of to] */
};

struct sw_problem {
  struct sw_assign_problem *assign;
  int *variable; /* per storage, -1: none */
  int *storage;  /* per variable */
  int n_variables;
  SW_VEC(struct sw_group) groups;
  SW_VEC(int) handed; /* groups of the assignment problem: number here */
  SW_VEC(struct sw_read) reads;
  SW_VEC(struct sw_move) moves;
  int64_t **writing; /* per storage: traffic of its writers for each label */
  const int *labels; /* per variable */
  const struct sw_assign_conflict *conflict; /* of an infeasible one */
};

/* The label's name in the problem: unlike the text of a pin it tells arrangements apart. */
const char *sw_layout__label(struct sw_arena *a, const struct sw_layout *l);
/* The first operand of the op that reads the same and needs the same: `input` itself or an earlier one. */
int sw_layout__twin(const struct sw_choosing *c, const struct sw_op *op, int input);
void sw_layout__build(struct sw_choosing *c, struct sw_problem *q);
/* Solves and fills in the choice. Infeasible: no fault yet, sw_layout__explain has them. */
enum sw_rc sw_layout__solve(struct sw_choosing *c, struct sw_problem *q);
void sw_layout__explain(struct sw_choosing *c, const struct sw_problem *q);
/* Of the layouts of both ends of a reading: no pair goes together; some pair does not. */
struct sw_prospect {
  bool hopeless, can_fail;
};
struct sw_prospect sw_layout__prospect(const struct sw_choosing *c, const struct sw_group *g, const struct sw_reading *x);
/* Of a problem without a solution, profile best: puts host steps into the program that copy operands nothing can read
 * (host_copy.c). False when there is none to copy; otherwise everything starts anew. */
bool sw_layout__copy_by_host(struct sw_choosing *c, const struct sw_problem *q);

/* -- the program afterwards -- */

/* Layouts into storages; then, in execution order, conversions in front of their first readers, what gathers and
 * matmuls need besides, and copies that move a stick renamed. */
enum sw_rc sw_layout__insert(struct sw_choosing *c, struct sw_problem *q);
/* What gathers need besides: row numbers in a tensor of their own, the dim that is indexed first on the device (profile
 * torch-spyre; best decides that with the layouts). */
void sw_layout__prepare_gather(struct sw_choosing *c, int op);
/* Puts the op itself into the steps. A scatter's target whose rows are not outermost (profile torch-spyre) is copied out
 * before it and copied back behind it: layouts.md 4.13. */
void sw_layout__place_scatter(struct sw_choosing *c, int op);
/* Half a pair of float32 sticks at the end of a row gets its other half. */
void sw_layout__complete_pairs(struct sw_choosing *c, int op);
/* Rows of zeros up to a whole stick where a matmul's K is not one. */
void sw_layout__pad_matmul(struct sw_choosing *c, int op);
/* Every access of every op once more, and the cost from the program alone. */
enum sw_rc sw_layout__check(struct sw_choosing *c, const struct sw_problem *q);
/* Copies into inputs whose source came out in the same layout: its maker writes into the input (elide.c). */
void sw_layout__elide_copies_back(struct sw_choosing *c);

void sw_layout__take_names(struct sw_choosing *c);
void sw_layout__take_steps(struct sw_choosing *c);
/* For those that insert: a copy of the storage's description under a new name, an op at the end of the new order. */
int sw_layout__add_storage(struct sw_choosing *c, const struct sw_storage *like, const char *name);
void sw_layout__place_default(struct sw_choosing *c, int storage);
int sw_layout__add_op(struct sw_choosing *c, const struct sw_op *op, const char *name);
/* Reads and writes two storages of one shape in their own order. */
struct sw_op sw_layout__whole_copy(const struct sw_choosing *c, int from, int to);
struct sw_op sw_layout__copy_of(const struct sw_storage *s); /* the same, storages not filled in */

#endif
