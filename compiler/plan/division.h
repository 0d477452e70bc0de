/* Work division: how one op is cut over the cores. Numbers only, no program; sw_work_of() makes the numbers from an
 * op. Reference: work-division.md (section numbers below are its).
 *
 * A split is the number of equal slices of one loop variable. Splits of a stick variable count sticks, so that a core
 * always gets whole sticks. Example: matmul 512 x 4096 by 4096 x 12800 in fp16 has the variables m, n, k of adjusted
 * size 512, 200, 64 and is cut m 4, n 8, k 1 on 32 cores. */
#ifndef SW_PLAN_DIVISION_H
#define SW_PLAN_DIVISION_H

#include "compiler/layout/layout.h"

/* What one core can address of one tensor; 65535 units of 4096 bytes, just under 256 MiB. */
#define SW_MAX_SPAN ((int64_t)65535 * 4096)
enum { SW_MAX_CORES = 32 };

struct sw_work_var {
  const char *name;
  int64_t size;        /* elements; the maximum of a dynamic one */
  int64_t granularity; /* of a dynamic one, else 0: splits must divide it (section 12) */
  /* by sw_work_settle */
  int eps;          /* elements a stick of a stick variable, else 0; the largest of all tensors */
  int64_t adjusted; /* sticks of a stick variable, else size */
  bool is_output;   /* occurs in the output's coordinates outside the stick (section 4.2) */
};

struct sw_work_tensor {
  const char *name;
  int rank; /* of the device; the last dim is the stick */
  int64_t device_size[SW_MAX_DEVICE_RANK];
  struct sw_coord coord[SW_MAX_DEVICE_RANK]; /* loops are numbers of variables */
  bool two_dim_stick;                        /* QFP8WT: the last two coordinates are stick coordinates */
  bool pairs;                                /* float32 in DL16_TO_FP32 order: its sticks go in pairs */
};

enum sw_work_kind {
  SW_WORK_PLAIN,
  SW_WORK_RESTICKIFY,
  SW_WORK_MATMUL,
  SW_WORK_MATMUL_FP8,
  SW_WORK_TOPK,
};

/* A split given by the user. */
struct sw_hint {
  const char *var;
  int64_t slices;
};

struct sw_work {
  const char *op; /* for messages */
  enum sw_work_kind kind;
  int cores; /* 1..SW_MAX_CORES */
  int n_vars, n_written; /* first the n_written ones of the output, outermost first, then reduced ones in read order */
  struct sw_work_var var[SW_MAX_LOOPS];
  int64_t out_step[SW_MAX_LOOPS]; /* host elements of the output per step of a variable */
  int n_in;                       /* distinct reads, in order */
  struct sw_work_tensor in[SW_MAX_INPUTS], out;
  bool indirect;        /* any gather or scatter access */
  int strided_window;   /* conv or pool with stride > 1: that many last written variables stay whole */
  int window;           /* kernel window: that many last variables stay whole */
  bool greedy_only;     /* a matmul that the cost model leaves alone */
  bool pads_output;     /* emission masks or pads stick dims of the output too */
  const struct sw_hint *hint; /* in order of importance; with any, the planner adds nothing of its own */
  int n_hints;
  int dynamic_loop;            /* 1 + the variable that has a granularity */
  bool best; /* profile best: padded dims are not even cut for the span, and what was cut for it may get more cores */
};

/* What may not be cut (section 7), given what the span made necessary. */
struct sw_work_limits {
  bool blocked[SW_MAX_LOOPS];
  int64_t pin[SW_MAX_LOOPS]; /* the split it must have, 0: free */
  bool any_pin;
};

/* Fills in what follows from tensors and sizes. SW_UNSUPPORTED: a dynamic stick variable or dynamic matmul. */
enum sw_rc sw_work_settle(struct sw_job *job, struct sw_work *w);

/* Splits must divide this. */
static inline int64_t sw_work_basis(const struct sw_work *w, int v)
{
  return w->var[v].granularity ? w->var[v].granularity : w->var[v].adjusted;
}

bool sw_coord_uses(const struct sw_coord *c, int var);
bool sw_tensor_uses(const struct sw_work_tensor *t, int var);

/* Bytes between the first and the last element that one core touches (section 5). */
int64_t sw_work_span(const struct sw_work *w, const struct sw_work_tensor *t, const int64_t *split);

/* Contiguous bytes that one core reads: the stick and neighbouring dims outward, until one is read in part. */
int64_t sw_work_run(const struct sw_work *w, const struct sw_work_tensor *t, const int64_t *split);

/* Section 7. SW_UNSUPPORTED when two rules contradict each other or the span. */
enum sw_rc sw_work_limits(struct sw_job *job, const struct sw_work *w, const int64_t *committed,
                          struct sw_work_limits *out);

/* The passes. split[] holds 1 for what isn't cut. */
enum sw_rc sw_divide_for_span(struct sw_job *job, const struct sw_work *w, int64_t *committed);
/* False when this op is none of the cost model's business. */
bool sw_divide_matmul(const struct sw_work *w, const struct sw_work_limits *limits, const int64_t *committed,
                      const int64_t *greedy, int64_t *split);
enum sw_rc sw_divide_hinted(struct sw_job *job, const struct sw_work *w, const struct sw_work_limits *limits,
                            int64_t *split);
void sw_divide_greedy(const struct sw_work *w, const struct sw_work_limits *limits, const int64_t *committed,
                      int64_t *split);

/* All three passes and the final check of the span; the fault of an op that doesn't fit names the tensor. */
enum sw_rc sw_divide(struct sw_job *job, const struct sw_work *w, int64_t *split);

/* Microseconds of one matmul by the split cost (section 9.3); infinite when the split needs more than w cores. */
struct sw_matmul_sizes {
  double b, m, n, k; /* padded elements */
  bool shared;       /* the weight has no batch */
};
double sw_matmul_split_cost(const struct sw_matmul_sizes *z, const int64_t split_bmnk[4], int cores);
/* The same for an op; negative when the cost model does not cover it. */
double sw_matmul_cost(const struct sw_work *w, const int64_t *split);

int64_t sw_split_product(const int64_t *split, int n);

/* The granularity of a dynamic size (section 12): `min` when declared (> 2), else the smallest divisor >= 4 of max
 * that gives at most 32 buckets; 0 when there is none. */
int64_t sw_granularity(int64_t min, int64_t max);

/* Slice of every dim that a core computes (section 15): mixed radix, the first dim varies fastest; `first` >= 0 names
 * a dim that varies faster than all others. Splits 2,3 on 12 cores: core 4 computes (0,2), core 6 again (0,0). */
void sw_core_slices(int n, const int64_t *split, int first, int core, int64_t *slice);
/* The same as numbers: core c computes slice (c / below[d]) mod split[d] of dim d. */
void sw_core_strides(int n, const int64_t *split, int first, int64_t *below);

/* Every legal division of an op (section 16), smallest splits first, the last variable fastest. */
struct sw_division {
  int64_t split[SW_MAX_LOOPS];
};
struct sw_menu {
  SW_VEC(struct sw_division) divisions;
};
enum sw_rc sw_work_menu(struct sw_job *job, struct sw_arena *arena, const struct sw_work *w, struct sw_menu *out);

/* The numbers of an op whose storages have layouts. */
enum sw_rc sw_work_of(struct sw_job *job, const struct sw_options *o, const struct sw_program *p,
                      const struct sw_op *op, struct sw_work *out);
/* Whether option split "NAME=.." means this op. */
bool sw_split_names(const char *split, const struct sw_op *op);
/* One tensor of it. False when the access has no device coordinates. */
bool sw_work_tensor_of(const struct sw_program *p, const struct sw_op *op, const struct sw_access *x,
                       struct sw_work_tensor *out);

#endif
