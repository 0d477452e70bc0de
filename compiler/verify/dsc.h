/* One sdsc_N.json, read for execution, with everything that is said twice compared (superdsc.md section 16, M2). */
#ifndef SW_VERIFY_DSC_H
#define SW_VERIFY_DSC_H

#include "compiler/verify/form.h"
#include "compiler/verify/memory.h"

enum { DSC_MAX_DIMS = 12, DSC_MAX_TENSORS = 10, DSC_MAX_CORES = 32 };

struct dsc_tensor {
  int n;                   /* dims in its own order, innermost first */
  int order[DSC_MAX_DIMS];
  int scale[DSC_MAX_DIMS]; /* by dim: 1 present, -1, -2; 0: the tensor has no such dim */
  int stick;               /* dim of the label's stick */
  int64_t e;               /* elements of it in a stick */
  int rows_dim;            /* of a stick of two dims the one whose `rows` elements lie apart; else -1 */
  int64_t rows;
  bool is_lx;
  int64_t start[DSC_MAX_CORES]; /* byte offset in LX, or symbol id (negative) */
  int64_t gap[DSC_MAX_DIMS], max_dim[DSC_MAX_DIMS];
  enum sim_format format;
  bool is_index, is_value;
  int related;                                     /* index tensor of a value tensor */
  bool has_own;                                    /* shuffle: a map of its own */
  int64_t own_slot[DSC_MAX_CORES][DSC_MAX_DIMS], own_split[DSC_MAX_DIMS];
};

struct dsc_window {
  bool is_set;
  int tap; /* window dim */
  int64_t stride, pad_front, pad_back, total, dilation;
};

struct dsc_constant {
  const char *name;
  double value;
};

struct dsc {
  const char *file, *key, *fn; /* "sdsc_3.json", "3_add", "add" */
  const json_t *handle;        /* debug_handle_; belongs to the job */
  int n_dims;
  const char *dim[DSC_MAX_DIMS];
  int64_t size[DSC_MAX_DIMS], split[DSC_MAX_DIMS], slice[DSC_MAX_DIMS]; /* N_, work slices, ss_ */
  int n_cores;
  int64_t slot[DSC_MAX_CORES][DSC_MAX_DIMS];
  int n_tensors;
  struct dsc_tensor tensor[DSC_MAX_TENSORS];
  int n_in, in[DSC_MAX_TENSORS], out;
  int n_index, index[DSC_MAX_TENSORS];
  bool is_masked[DSC_MAX_DIMS];
  int64_t mask_start[DSC_MAX_DIMS];
  bool has_mask;
  double mask_value;
  struct dsc_window window[DSC_MAX_DIMS];
  int n_constants;
  struct dsc_constant constant[8];
  int n_symbols; /* ids of dynamic sizes, and the dims that have them */
  int64_t symbol[DSC_MAX_DIMS];
  int symbol_dim[DSC_MAX_DIMS];
  int64_t symbol_step[DSC_MAX_DIMS], symbol_most[DSC_MAX_DIMS]; /* of all cores: which sizes symbolicDimInfo_ allows */
};

/* NULL after a fault. `file` is the file's name. */
struct dsc *dsc_read(struct sw_job *job, const struct sim_form *form, const char *file, const char *text, size_t len);

/* Value of a named constant, or `otherwise`. */
double dsc_constant(const struct dsc *d, const char *name, double otherwise);

#endif
