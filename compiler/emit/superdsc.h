/* What one op spec becomes before it is printed: dims with labels, tensors over those dims, per-core addresses as
 * symbols of the bundle. Reference: superdsc.md sections 3 to 10; the section numbers below are its. */
#ifndef SW_EMIT_SUPERDSC_H
#define SW_EMIT_SUPERDSC_H

#include "base/json.h"
#include "base/map.h"
#include "compiler/emit/opspec.h"

/* Dims of SuperDSC. Labels are positional and say nothing about roles (4.1). */
#define SW_LABELS(X) \
  X(MB, "mb")        \
  X(X, "x")          \
  X(Y, "y")          \
  X(I, "i")          \
  X(J, "j")          \
  X(KI, "ki")        \
  X(KJ, "kj")        \
  X(OUT, "out")      \
  X(IN, "in")

enum sw_label {
#define X(id, name) SW_LABEL_##id,
  SW_LABELS(X)
#undef X
  SW_N_LABELS,
  SW_NO_LABEL = SW_N_LABELS,
};

const char *sw_label_name(enum sw_label d);

/* A list of distinct labels, innermost device dim first where it is a tensor's order. */
struct sw_labels {
  int n;
  enum sw_label v[SW_N_LABELS];
};

bool sw_labels_has(const struct sw_labels *l, enum sw_label d);
int sw_labels_find(const struct sw_labels *l, enum sw_label d); /* -1: not there */
void sw_labels_add(struct sw_labels *l, enum sw_label d);       /* at the end, if new */
void sw_labels_add_first(struct sw_labels *l, enum sw_label d);

/* What kind of op it is decides most rules (section 3). */
struct sw_op_class {
  bool mat, fwd, dw, conv, pool, topk, cvt, restickify, layernormscale;
};

/* Geometry of a sliding window along i or j (9.3), for the whole op and for one core. */
struct sw_window {
  enum sw_label spatial, window;
  int64_t kernel, stride;
  struct sw_window_pads {
    int64_t front, back, unneeded, unneeded_front, unneeded_back, total;
  } whole, core;
};

/* One layout class: tensors whose orders are permutations of each other share it (5.4). */
struct sw_sdsc_layout {
  const char *name; /* "OUTPUT" */
  struct sw_labels order;
  int n_sticks;
  enum sw_label stick[2];
  int64_t stick_size[2];
};

struct sw_tile_step {
  const char *symbol;
  int64_t bytes;
};
struct sw_tile_steps {
  struct sw_tile_step *v;
  int n;
};

struct sw_sdsc_tensor {
  const struct sw_spec_arg *arg;
  enum sw_format fmt; /* as printed */
  int64_t e, bytes;   /* elements a stick of fmt, bytes an element */
  bool is_index, is_value;
  int related; /* the value tensor of an index and the other way round, else -1 */
  struct sw_labels order;
  enum sw_label stick;
  enum sw_label placeholder;        /* P of an index tensor (4.6c), else none */
  int position[SW_N_LABELS];        /* of the dim among the device dims, -1 and below: none */
  int64_t scale[SW_N_LABELS], stride[SW_N_LABELS], offset[SW_N_LABELS], gap[SW_N_LABELS], max_dim[SW_N_LABELS];
  int64_t own_split[SW_N_LABELS];   /* `shuffle`: the tensor's own cut */
  int64_t own_below[SW_N_LABELS];
  int layout;
  int64_t start;                    /* byte address or argument number, without core offsets */
  int64_t *address;                 /* per core, start included */
  int64_t *rows;                    /* per core: more bytes for each one of the dynamic size that is split */
  int *symbol;                      /* per core: 1, 2, .. (printed negative); NULL in LX */
  struct sw_tile_steps *levels;     /* outermost loop first; spec->n_tile_levels of them */
  bool moves;
};

struct sw_sdsc_constant {
  const char *name;
  double value;
};

/* Names a run-time size, the symbol of a dynamic dim (7.3). */
struct sw_sdsc_dynamic {
  enum sw_label dim;
  const char *name;
  int64_t max, granularity;
  int symbol;
};

struct sw_sdsc {
  const struct sw_spec *spec;
  int number; /* of the file */
  bool k_fast;
  struct sw_op_class is;
  bool has_index;
  const char *fn, *unit;
  enum sw_format format; /* of constants and the op */
  int n_in;
  struct sw_labels dims;
  int64_t size[SW_N_LABELS], split[SW_N_LABELS], pad[SW_N_LABELS];
  enum sw_label label[SW_MAX_LOOPS]; /* of the iteration symbols */
  struct sw_labels ref_order;
  enum sw_label ref_stick;
  enum sw_label single;  /* V: dim injected for a tensor that has only a stick or one index (4.6a, b) */
  enum sw_label top_one; /* TK: rank dim of topk with k = 1 (4.6g) */
  struct sw_window window[2];
  int n_windows;
  int cores;
  struct sw_labels core_order; /* the dim whose slots vary fastest over the cores first */
  int *slot;                   /* cores x SW_N_LABELS */
  struct sw_sdsc_tensor *tensor;
  int n_tensors;
  struct sw_sdsc_layout layout[4];
  int n_layouts;
  struct sw_labels masked;
  SW_VEC(struct sw_sdsc_constant) constants;
  int mask_constant; /* number of it, -1 */
  SW_VEC(struct sw_sdsc_dynamic) dynamics;
};

/* Address symbols of a bundle, numbered from 1 (7.3). */
enum sw_address_kind {
  SW_ADDRESS_KERNEL,    /* argument `arg` */
  SW_ADDRESS_SLICE,     /* argument + bytes */
  SW_ADDRESS_DERIVED,   /* symbol `base` + bytes */
  SW_ADDRESS_POOL,      /* pool + bytes */
  SW_ADDRESS_DIMENSION, /* a dynamic size */
  SW_ADDRESS_ROWS,      /* symbol `base` + bytes times the dynamic size `size` */
};
struct sw_address {
  enum sw_address_kind kind;
  int arg, base, size;
  int64_t bytes;
  const char *name; /* of the SSA value */
  int64_t granularity, max; /* of a dynamic size */
};

struct sw_bundle {
  const struct sw_opspecs *specs;
  SW_VEC(struct sw_sdsc *) sdsc; /* in file order */
  SW_VEC(struct sw_address) addresses;
  struct sw_map sizes; /* dynamic size -> the first address that stands for it */
};

/* A fault about an op of the bundle: names file, op and tensor ("max: tensor 1"). tensor -1: the op. */
struct sw_fault *sw_sdsc_fault(struct sw_job *job, const struct sw_sdsc *s, enum sw_rc rc, int tensor,
                               const char *detail);

/* Elements of an iteration symbol, label of a symbol name (none: not one of the op's). */
enum sw_label sw_sdsc_label_of(const struct sw_sdsc *s, int symbol);

/* Value of a name among numbers as an integer, `def` when absent. */
int64_t sw_named_int(const struct sw_named_number *v, int n, const char *name, int64_t def);
#define SW_NAMED_INT(vec, name, def) sw_named_int((vec).v, (vec).n, name, def)

/* Steps of the translation. Each records faults and gives the worst. */
enum sw_rc sw_spec_check(struct sw_job *job, const struct sw_opspecs *specs);                        /* 2.5 */
enum sw_rc sw_sdsc_dims(struct sw_job *job, struct sw_sdsc *s);                                      /* 4 */
enum sw_rc sw_sdsc_tensors(struct sw_job *job, struct sw_sdsc *s);                                   /* 5, 6 */
enum sw_rc sw_sdsc_windows(struct sw_job *job, struct sw_sdsc *s);                                   /* 9.3 */
enum sw_rc sw_sdsc_meaning(struct sw_job *job, const struct sw_opspecs *specs, const struct sw_sdsc *s); /* 16 */
enum sw_rc sw_bundle_hazards(struct sw_job *job, const struct sw_bundle *b);                         /* 16, M1, M6 */
enum sw_rc sw_sdsc_addresses(struct sw_job *job, struct sw_bundle *b, struct sw_sdsc *s);            /* 7 */
void sw_sdsc_write(const struct sw_sdsc *s, struct sw_buf *out);                                     /* 8 */
void sw_bundle_write(const struct sw_bundle *b, struct sw_buf *out);                                 /* 10 */

/* Orders of a tensor's dims (4.4): the plain variant skips a gather's row coordinate, the other puts the index
 * tensor's dims there. *stick is none when the last coordinate has no symbol. */
void sw_sdsc_order(const struct sw_sdsc *s, int tensor, bool plain, struct sw_labels *order, enum sw_label *stick);
/* Labels of an index tensor's dims, innermost first. */
void sw_sdsc_index_dims(const struct sw_sdsc *s, int index, struct sw_labels *out);

/* Whether a dim is printed for a layout class: window dims are not, except under KERNEL (9.3). */
bool sw_sdsc_prints(const struct sw_sdsc *s, const struct sw_sdsc_layout *l, enum sw_label d);
const struct sw_window *sw_sdsc_window(const struct sw_sdsc *s, enum sw_label spatial);

/* A constant as the device stores it: DLFLOAT16 or the bits of a float (6.4). 0.01 is 12431. */
uint32_t sw_device_constant(enum sw_format f, double value);

/* A json_t of the input as it came, in the writer's form. */
void sw_jw_json(struct sw_jw *w, const json_t *v);

#endif
