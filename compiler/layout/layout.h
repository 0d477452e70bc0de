/* Device layouts. Reference: layouts.md sections 1 to 3. */
#ifndef SW_LAYOUT_H
#define SW_LAYOUT_H

#include "base/json.h"
#include "compiler/lower/program.h"

/* Formats on the device: X(id, SuperDSC name, elements a stick). */
#define SW_FORMATS(X)         \
  X(FP16, "SEN169_FP16", 64)  \
  X(FP32, "IEEE_FP32", 32)    \
  X(INT32, "IEEE_INT32", 32)  \
  X(FP8, "SEN143_FP8", 128)   \
  X(FP8B, "SEN152_FP8", 128)  \
  X(INT8, "SENINT8", 128)     \
  X(INT16, "SENINT16", 64)    \
  X(UINT32, "SENUINT32", 32)

enum sw_format {
#define X(id, name, eps) SW_FORMAT_##id,
  SW_FORMATS(X)
#undef X
  SW_N_FORMATS /* none: the dtype can't be on the device */
};

/* Order of elements inside a stick. The numbers are a stable serial form. */
#define SW_ARRANGEMENTS(X) \
  X(STANDARD)              \
  X(DL16_TO_FP32)          \
  X(QFP8CH)                \
  X(EXX2)                  \
  X(FP32_TO_DL16)          \
  X(QFP8WT)

enum sw_arrangement {
#define X(id) SW_EA_##id,
  SW_ARRANGEMENTS(X)
#undef X
  SW_N_ARRANGEMENTS
};

const char *sw_format_name(enum sw_format f);
int sw_format_eps(enum sw_format f); /* elements per stick */
enum sw_format sw_format_of(enum sw_dtype t);
const char *sw_arrangement_name(enum sw_arrangement a);

/* Row-major memory over device_size; the last device dim is the stick and has eps elements. stride_map[j]: host
 * elements per step in device dim j, -1 = no host counterpart. */
struct sw_layout {
  int rank;
  int64_t device_size[SW_MAX_DEVICE_RANK], stride_map[SW_MAX_DEVICE_RANK];
  enum sw_format format;
  enum sw_arrangement arrangement;
};

bool sw_layout_equal(const struct sw_layout *a, const struct sw_layout *b);
int64_t sw_layout_elements(const struct sw_layout *l); /* product of device_size, padding included */
int64_t sw_layout_bytes(const struct sw_layout *l);    /* 128 * sticks */
/* "device_size:4,128,64/stride_map:64,256,1" */
const char *sw_layout_text(struct sw_arena *a, const struct sw_layout *l);
/* {device_size, stride_map, element_arrangement, format}, or null: the form of results and manifests. */
void sw_layout_json(struct sw_jw *w, const struct sw_layout *l);

/* Form B of layouts.md 1.3: from host size, stride, and dim order (n entries, or n + 1 with -1 last for a sparse
 * layout). False when the rank is too high. [512,240] in order 0,1 as fp16 is [4,512,64] / [64,240,1]. */
bool sw_layout_make(struct sw_layout *out, enum sw_format f, enum sw_arrangement ea, int n, const int64_t *size,
                    const int64_t *stride, const int *order, int n_order);

/* The casts between float16 and float32 work on pairs of float32 sticks. The layout with its stick's tiles (of host step
 * `stride`, `size` elements) rounded up to pairs; false when it has no such tiles. [8,96] in [3,8,32] / [32,96,1] becomes
 * [4,8,32] / [32,96,1]. [8,32] in [1,8,32] becomes [2,8,32] / [-1,32,1]: the second tile has no element of its own in
 * standard order, and its natural step of 32 would be that of the rows. With one element a stick likewise (stride and size
 * do not count): [1,8,32] / [-1,1,-1] becomes [2,8,32] / [-1,1,-1]. */
bool sw_layout_pair_tiles(struct sw_layout *l, int64_t stride, int64_t size);
/* The device dim of such a second tile, -1: none. */
int sw_layout_half_pair(const struct sw_layout *l);

/* A coordinate: constant + sum of num * ((loop mod m) div den); mod 0 = none. index true: plus the row number of a
 * gather. Reference: layouts.md 3.2. */
struct sw_term {
  int loop;
  int64_t num, mod, den;
};

struct sw_coord {
  int n;
  struct sw_term term[4];
  int64_t constant;
  bool index;
};

/* Device coordinates of an access (one per device dim). False: reversed traversal or an expression that has no form
 * (the candidate must be dropped). */
bool sw_layout_coords(const struct sw_layout *l, const struct sw_op *op, const struct sw_access *x,
                      struct sw_coord out[SW_MAX_DEVICE_RANK]);

/* -- the pass -- */

struct sw_options;

/* A layout fixed by the user. Reference: design section 7. */
struct sw_pin {
  const char *name; /* graph input, qualified parameter name, or value */
  bool by_order;
  int n;
  int order[SW_MAX_RANK];
  int64_t device_size[SW_MAX_DEVICE_RANK], stride_map[SW_MAX_DEVICE_RANK];
};

struct sw_conversion {
  int storage, copy;    /* from, to */
  int op;               /* the restickify op in program.ops */
  int64_t elements;     /* padded elements of the source */
  const char *reason;   /* one sentence for a person */
  const char *advice;   /* how the caller can do without it, or NULL */
  SW_VEC(int) readers;  /* ops */
};

struct sw_candidates {
  struct sw_layout *v;
  int n, chosen;
  bool pinned;
};

/* A layout that was considered and left out, in the words of dropped.json (docs/formats.md). */
struct sw_dropped {
  const char *kind, *storage;
  const char *layout;          /* as layout_problem.json names labels; NULL: none can be made */
  int stick;                   /* host dim, -1: one element a stick */
  const char *op;              /* that has no use for it; NULL: no one in particular */
  int operand;                 /* of the op, -1: it writes the storage */
  const char *reason, *detail; /* of the closed list; in words */
};

/* What the layout pass decided, for result.json, explain and compare. */
struct sw_choice {
  enum sw_rc status_rc;
  const char *status;               /* "optimal", "feasible", "infeasible" */
  int64_t cost, bound;              /* in `unit` */
  int64_t full_cost;                /* with what profile torch-spyre does not count: copies of the model that move a stick,
                                       and tables laid out for gathers */
  const char *unit;                 /* "elements" or "ns" */
  int64_t conversion_elements;
  SW_VEC(struct sw_conversion) conversions;
  struct sw_candidates *candidates; /* per storage of the program before insertion */
  int n_candidates;
  SW_VEC(struct sw_dropped) dropped; /* layouts that were considered and left out */
  /* of the solver */
  const char *solver, *stopped_by;
  int n_variables, n_labels, n_presolved, n_islands, n_distinct, n_eliminated, n_glpk_calls, max_width;
  int64_t n_pruned, n_glpk_nodes, work; /* work: what the budget counts */
  const char *problem; /* the assignment problem as JSON: a variable a storage, layouts as labels; NULL before there is one */
};

void sw_layout_dropped_json(const struct sw_choice *choice, struct sw_buf *out); /* dropped.json */

/* Candidates for every storage, the assignment problem, its solution, conversions and padding ops inserted. Afterwards
 * every storage that is not host_only has a layout. Infeasible: SW_INFEASIBLE with the conflict in the faults. */
enum sw_rc sw_choose_layouts(struct sw_job *job, const struct sw_options *o, struct sw_program *p,
                             struct sw_choice **out);

#endif
