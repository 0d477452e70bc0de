/* The plan: core splits and predicted time of every op, and where every storage lives. Reference: work-division.md,
 * cost-model.md, scratchpad.md. */
#ifndef SW_PLAN_H
#define SW_PLAN_H

#include "compiler/layout/layout.h"

enum sw_place_kind {
  SW_PLACE_HBM,  /* an argument of its kernels */
  SW_PLACE_POOL, /* byte offset in the kernel's pool; lives inside one kernel */
  SW_PLACE_LX,   /* byte offset in every core's scratchpad; lives inside one kernel */
};

struct sw_place {
  enum sw_place_kind kind;
  int64_t offset;
  int64_t bytes;          /* whole storage; for LX per core */
  const char *not_in_lx;  /* reason from the closed list of scratchpad.md section 4, NULL when in LX */
};

static inline bool sw_in_lx(const struct sw_storage *s)
{
  return s->place && s->place->kind == SW_PLACE_LX;
}

/* Time of one op in ns, and where it comes from. */
struct sw_time {
  double total, compute, hbm, lx, overhead;
};

/* Which part of a tensor each core has: core c has slice (c / below) mod n of a loop, and all of the other loops. */
struct sw_owners {
  int n;
  struct sw_owned_loop {
    int loop;
    int64_t n, below;
  } cut[SW_MAX_DEVICE_RANK];
};

/* A copy within the scratchpads that hands a buffer to other cores (scratchpad.md section 9). */
struct sw_relayout {
  struct sw_owners from, to;
};

struct sw_op_plan {
  int64_t split[SW_MAX_LOOPS]; /* slices per loop; product = cores */
  int cores;
  int kernel; /* number of the bundle */
  int dynamic_loop;    /* 1 + the loop that runs as far as a dynamic size goes, 0: none, all run to the maximum */
  int64_t granularity; /* of that size; its split divides it */
  const int *order; /* loops as the op spec lists them; NULL: by sw_loop_order */
  const struct sw_relayout *relayout; /* NULL for every other op */
  struct sw_time time;
};

struct sw_kernel {
  const char *name;
  SW_VEC(int) ops; /* in order */
  int64_t pool_bytes;
};

/* What profile best may do with a program, or leave (choose_way.c). X(id, key, what): its key in a result. */
#define SW_MEANS(X)                                                                                \
  X(TILES, "tiles", "ops around large buffers run in counted loops")                               \
  X(TOGETHER, "together", "divisions of neighbouring ops are chosen together")                     \
  X(INPUT_COPIES, "input_copies", "a graph input that several ops read is copied into LX")         \
  X(RELAYOUTS, "relayouts", "copies within LX where readers are cut otherwise than the writer")

enum sw_means {
#define X(id, key, what) SW_MEANS_##id,
  SW_MEANS(X)
#undef X
  SW_N_MEANS
};

/* A plan that was compared with others. */
struct sw_tried {
  const char *name; /* "ilp", "greedy", "beam": who chose the layouts; "torch-spyre": all as in that profile */
  double predicted_ns;
};

struct sw_plan {
  SW_VEC(struct sw_kernel) kernels; /* launch order; host steps lie between them by program.steps */
  double predicted_ns; /* the same yardstick in every profile; host steps included */
  double host_ns;      /* of it: host steps and the starts of kernels behind them */
  double reference_ns; /* what the reference's own report would say of this plan */
  int64_t peak_pool_bytes, lx_peak_bytes;
  double without_ns[SW_N_MEANS]; /* the best time when that is left out; 0: it was not compared */
  const char *plan_of;          /* of those tried the one that this is; NULL: no others were tried */
  SW_VEC(struct sw_tried) tried;
};

/* ns of a host step (host.c). */
double sw_host_step_ns(const struct sw_program *p, const struct sw_host_step *h);

struct sw_options;
enum sw_rc sw_make_plan(struct sw_job *job, const struct sw_options *o, struct sw_program *p, struct sw_plan **out);

#endif
