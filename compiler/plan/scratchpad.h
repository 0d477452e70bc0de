/* Where every storage lives: scratchpad (LX), pool of its kernel, or HBM. Reference: scratchpad.md.
 *
 * Safety comes first: nothing in LX or in a pool outlives its kernel, a core reads in LX only what it wrote itself, and
 * bytes are reused only after the op that read them last. */
#ifndef SW_PLAN_SCRATCHPAD_H
#define SW_PLAN_SCRATCHPAD_H

#include "compiler/plan/part.h"
#include "compiler/plan/plan.h"

/* The closed list of reasons why a storage is not in LX: X(id, text, what it means and what changes it). A text may be followed
 * by ": " and detail. */
#define SW_LX_REASONS(X)                                                                                                   \
  X(OFF, "scratchpad planning is off", "--lx on plans it")                                                                \
  X(OP, "op not allowed",                                                                                                 \
    "what writes it moves data between cores or reads outside its slices (conversion, window, top-k, gather, scatter); "  \
    "profile torch-spyre has a list of ops besides")                                                                      \
  X(UNSIZED, "unsized (no device layout)", "it lives in host memory")                                                     \
  X(MUTATION, "mutation target", "it is written more than once, or changed for the caller, who looks for it in memory")   \
  X(RESTICKIFY, "read by restickify (cross-frame barrier)",                                                               \
    "a conversion of its stick reads it across cores; without the conversion it could stay")                              \
  X(EXTERN, "extern kernel user or live across extern kernel", "a host step uses it, or runs while it lives")             \
  X(INDEX, "index tensor or indirectly accessed", "row numbers, and what they pick rows of, are read from memory")        \
  X(INPUT, "graph input (no clone)", "what is loaded starts in memory, and copying it in first is not planned here")      \
  X(OUTPUT, "graph output (no clone)", "what is returned is in memory at the end")                                        \
  X(OUTPUT_VIEW, "graph output is a ReinterpretView", "it is returned in part or in another shape: return it whole")      \
  X(NOT_REWRITABLE, "use is not rewritable to the clone",                                                                 \
    "an op that touches it moves data between cores or reads outside its slices (conversion, window, top-k, gather)")     \
  X(PARTIAL, "partial/offset read", "an op reads or writes a part of it: whole tensors stay, slices and heads don't")     \
  X(CORES, "core div mismatch",                                                                                           \
    "a core reads what another one wrote: --split of these ops can make them agree")                                      \
  X(UNREAD, "no consumer reads it from LX", "no op reads it in its kernel behind its writer; of what is loaded, fewer than two do") \
  X(GAP, "lx back gap", "an op covers less of a dim than the layout has, as where rows are padded")                       \
  X(KERNELS, "used by several kernels", "scratchpads are empty at the start of a kernel; host steps part kernels")        \
  X(ROOM, "no room on scratchpad", "others are worth more while it lives; --lx-bytes is the size")

enum sw_lx_reason {
#define X(id, text, means) SW_LX_##id##_REASON,
  SW_LX_REASONS(X)
#undef X
  SW_LX_FITS
};

/* What a text of the list, with or without detail, means; NULL: it is none of it. */
const char *sw_lx_reason_means(const char *text);

/* Sets the place of every storage that has a layout, pool_bytes of the kernels and the peaks of the plan. Wants the
 * splits of the ops and the kernels. */
struct sw_lx_copies {
  bool inputs;    /* a graph input that several ops read may be copied into LX */
  bool relayouts; /* within LX, where readers are cut over the cores otherwise than the writer */
};
enum sw_rc sw_plan_places(struct sw_job *job, const struct sw_options *o, struct sw_program *p, struct sw_plan *plan,
                          struct sw_lx_copies copies);
struct sw_life;
/* The pool part: every storage of one kernel that `place` leaves in HBM (compiler/plan/pool.c). */
enum sw_rc sw_plan_pools(struct sw_job *job, const struct sw_options *o, const struct sw_program *p,
                         const struct sw_life *lives, struct sw_plan *plan);

/* Profile torch-spyre (align.c): sets the order of loops of every op's spec, once all places are known. */
void sw_align_loops(struct sw_arena *arena, const struct sw_program *p, const struct sw_life *lives);

/* The reference's pool allocator (section 10): n blocks in order of birth, written first at step first[k], read last at
 * last[k]. Offsets, -1 where the pool would grow over the limit; gives the size of the pool. Blocks of 128, 128 at steps
 * 0..1 and one of 256 from step 2 on need 512: neighbours are not merged. */
int64_t sw_pool_first_fit(struct sw_arena *arena, int n, const int64_t *bytes, const int *first, const int *last,
                          int64_t limit, int64_t *offset);

/* Whether several cores add up one result of it. */
bool sw_splits_reduction(const struct sw_op *op);

/* What every core has of a storage through one access: for each device dim the number of its slice. */
struct sw_core_view {
  int rank, cores;
  int64_t factor[SW_MAX_DEVICE_RANK];
  signed char slice[SW_MAX_DEVICE_RANK][SW_MAX_CORES]; /* of dim and core */
  int loop[SW_MAX_DEVICE_RANK]; /* of the op, that walks along the dim, or -1; no part of the view */
};

/* The view of operand (-1: output) of op. Not SW_LX_FITS: why the access can't be one of LX. */
enum sw_lx_reason sw_core_view(const struct sw_program *p, const struct sw_op *op, int operand,
                               struct sw_core_view *out);
/* The copy of a storage at the border of the program: an identity op with the loops and splits of `like`, which
 * accesses the storage through `operand`. False when that op would give the cores other parts. Storages of the copy are
 * still those of the access. */
bool sw_boundary_copy(struct sw_arena *arena, const struct sw_program *p, const struct sw_op *like, int operand,
                      struct sw_op *out);

struct sw_ops {
  SW_VEC(int) of;
};

/* Ops to be put in front of old ones and behind them, by old op; n old ones. */
struct sw_around {
  struct sw_ops *before, *behind;
  int n;
};
void sw_insert_around(struct sw_job *job, struct sw_program *p, struct sw_plan *plan, const struct sw_around *x);

/* Relayouts: where the readers of a buffer are cut over the cores otherwise than its writer, a copy within the
 * scratchpads (scratchpad.md section 9). */
struct sw_relayouts {
  int n; /* copies */
  struct sw_relayout_copy {
    int source, destination; /* storages */
  } *copy;
  bool removed;
  /* what was there before */
  int n_ops, n_storages, n_steps;
  struct sw_step *steps;
  struct sw_ops *kernels;
};
/* Puts copies into the program, but for the sources that are `barred` (by storage); in profile best those that are
 * faster than memory, else by the reference's rule. Source and copies must all find room in LX, or the program be put
 * back as it was. */
void sw_insert_relayouts(struct sw_job *job, const struct sw_options *o, struct sw_program *p, struct sw_plan *plan,
                         const bool *barred, struct sw_relayouts *out);
/* Takes them out again, as long as nothing else has been put in. */
void sw_remove_relayouts(struct sw_program *p, struct sw_plan *plan, struct sw_relayouts *r);
/* Puts copies at the border into the program. */
struct sw_boundary {
  int storage;     /* in LX: a graph input gets a copy in LX that all its readers read; a graph output a copy in HBM */
  int like;        /* op: in front of it (its first reader), or behind it (its writer) */
  int operand;
};
void sw_insert_boundary_copies(struct sw_job *job, struct sw_program *p, struct sw_plan *plan,
                               const struct sw_life *lives, const struct sw_boundary *copies, int n);

/* The same as the numbers that part.h counts with; false when a core has nothing of its own. */
bool sw_part_of_view(const struct sw_core_view *view, struct sw_part *out);

bool sw_core_view_equal(const struct sw_core_view *a, const struct sw_core_view *b);

#endif
