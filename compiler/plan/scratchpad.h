/* Where every storage lives: scratchpad (LX), pool of its kernel, or HBM. Reference: scratchpad.md.
 *
 * Safety comes first: nothing in LX or in a pool outlives its kernel, a core reads in LX only what it wrote itself, and
 * bytes are reused only after the op that read them last. */
#ifndef SW_PLAN_SCRATCHPAD_H
#define SW_PLAN_SCRATCHPAD_H

#include "compiler/plan/plan.h"

/* The closed list of reasons why a storage is not in LX: X(id, text). A text may be followed by ": " and detail. */
#define SW_LX_REASONS(X)                                                      \
  X(OFF, "scratchpad planning is off")                                        \
  X(OP, "op not allowed")                                                     \
  X(UNSIZED, "unsized (no device layout)")                                    \
  X(MUTATION, "mutation target")                                              \
  X(RESTICKIFY, "read by restickify (cross-frame barrier)")                   \
  X(EXTERN, "extern kernel user or live across extern kernel")                \
  X(INDEX, "index tensor or indirectly accessed")                             \
  X(INPUT, "graph input (no clone)")                                          \
  X(OUTPUT, "graph output (no clone)")                                        \
  X(OUTPUT_VIEW, "graph output is a ReinterpretView")                         \
  X(NOT_REWRITABLE, "use is not rewritable to the clone")                     \
  X(PARTIAL, "partial/offset read")                                           \
  X(CORES, "core div mismatch")                                               \
  X(UNREAD, "no consumer reads it from LX")                                   \
  X(GAP, "lx back gap")                                                       \
  X(KERNELS, "used by several kernels")                                       \
  X(ROOM, "no room on scratchpad")

enum sw_lx_reason {
#define X(id, text) SW_LX_##id##_REASON,
  SW_LX_REASONS(X)
#undef X
  SW_LX_FITS
};

/* Sets the place of every storage that has a layout, pool_bytes of the kernels and the peaks of the plan. Wants the
 * splits of the ops and the kernels. `copy_inputs`: a graph input that several ops read may be copied into LX. */
enum sw_rc sw_plan_places(struct sw_job *job, const struct sw_options *o, struct sw_program *p, struct sw_plan *plan,
                          bool copy_inputs);
/* Tries both and keeps the faster plan. */
enum sw_rc sw_plan_best_places(struct sw_job *job, const struct sw_options *o, struct sw_program *p,
                               struct sw_plan *plan);

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

/* What every core has of a storage through one access: for each device dim the number of its slice. */
struct sw_core_view {
  int rank, cores;
  int64_t factor[SW_MAX_DEVICE_RANK];
  signed char slice[SW_MAX_DEVICE_RANK][32]; /* of dim and core */
};

/* The view of operand (-1: output) of op. Not SW_LX_FITS: why the access can't be one of LX. */
enum sw_lx_reason sw_core_view(const struct sw_program *p, const struct sw_op *op, int operand,
                               struct sw_core_view *out);
/* The copy of a storage at the border of the program: an identity op with the loops and splits of `like`, which
 * accesses the storage through `operand`. False when that op would give the cores other parts. Storages of the copy are
 * still those of the access. */
bool sw_boundary_copy(struct sw_arena *arena, const struct sw_program *p, const struct sw_op *like, int operand,
                      struct sw_op *out);

/* Puts such copies into the program. */
struct sw_boundary {
  int storage;     /* in LX: a graph input gets a copy in LX that all its readers read; a graph output a copy in HBM */
  int like;        /* op: in front of it (its first reader), or behind it (its writer) */
  int operand;
};
void sw_insert_boundary_copies(struct sw_job *job, struct sw_program *p, struct sw_plan *plan,
                               const struct sw_life *lives, const struct sw_boundary *copies, int n);

bool sw_core_view_equal(const struct sw_core_view *a, const struct sw_core_view *b);

#endif
