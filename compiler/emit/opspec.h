/* Op specs: what SuperDSC is generated from. The in-memory form of opspec.json. Reference: superdsc.md section 2. */
#ifndef SW_EMIT_OPSPEC_H
#define SW_EMIT_OPSPEC_H

#include "base/files.h"
#include "compiler/layout/normal.h"

enum sw_alloc_kind { SW_ALLOC_HBM, SW_ALLOC_LX, SW_ALLOC_POOL };

struct sw_spec_arg {
  bool is_input;
  int arg_index; /* -1 for LX and pool */
  enum sw_format format;
  enum sw_arrangement arrangement;
  int rank;
  int64_t device_size[SW_NORMAL_RANK];
  struct sw_spec_coord coord[SW_NORMAL_RANK];
  enum sw_alloc_kind alloc;
  int64_t address;         /* arg_index for HBM, else bytes */
  const char *name;        /* index tensors, else NULL */
  const char *storage;     /* of the program, for messages; NULL when read from a file */
  const char *tile_advance; /* text of the expression, or NULL */
  const struct sw_work_division *work_division; /* LX relayout only, else NULL */
};

/* How a tensor in LX is spread over the cores, where that differs from the op's own splits (superdsc.md 9.5): the core
 * numbered c owns slice (c / below) mod n of the symbol. */
struct sw_work_slice {
  const char *symbol;
  int64_t n, below;
};
struct sw_work_division {
  SW_VEC(struct sw_work_slice) slices;
};

struct sw_spec_symbol {
  const char *name;
  int64_t range;        /* the maximum of a dynamic one */
  const char *dynamic;  /* printed range expression, or NULL */
  int64_t granularity;
  int64_t split;
};

struct sw_spec {
  bool is_loop;
  /* loop */
  int64_t count;
  SW_VEC(struct sw_spec *) body;
  /* op */
  const char *origin, *source; /* op of the program and its source line, for messages; NULL when read from a file */
  const char *op;
  bool is_reduction;
  SW_VEC(struct sw_spec_symbol) space; /* ordered */
  SW_VEC(struct sw_spec_arg) args;     /* index tensors, inputs, output last */
  SW_VEC(struct sw_named_number) constants, conv;
  bool shared_weight_unit_bmm;
  const char *pad_type;    /* of a depthwise convolution, else NULL */
  int n_tile_levels;       /* tiled_symbols, innermost first */
  struct sw_tile_level {
    const char **symbols;
    int n;
  } *tile_levels;
  SW_VEC(struct sw_named_number) tile_trip_counts;
  int64_t *node_output_ranges;
  int n_node_output_ranges;
  const void *debug_handle; /* json_t, or NULL */
};

struct sw_opspecs {
  const char *name; /* of the case or kernel */
  const char *note; /* for a person, or NULL */
  int64_t pool_bytes;
  bool k_fast; /* config.core_id_k_fast_emission, default true */
  SW_VEC(struct sw_spec *) specs;
};

enum sw_rc sw_opspecs_read(struct sw_job *job, const char *text, size_t len, struct sw_opspecs **out);
void sw_opspecs_write(const struct sw_opspecs *s, struct sw_buf *out);

/* sdsc_N.json and bundle.mlir under `folder` ("" or "bundle_0/"); out NULL: only the checks. Refuses what superdsc.md
 * 2.5 forbids, and what section 16 shows to have no meaning. */
enum sw_rc sw_emit_superdsc(struct sw_job *job, const struct sw_opspecs *s, const char *folder, struct sw_files *out);

struct sw_plan;
struct sw_options;
/* The whole result directory but result.json and stats.json: bundle_K/ (opspec.json, sdsc_*.json, bundle.mlir),
 * manifest.json, weights.json, constants/. out NULL: only the checks. */
enum sw_rc sw_emit(struct sw_job *job, const struct sw_options *o, const struct sw_program *p, const struct sw_plan *plan,
                   struct sw_files *out);

/* Adds a text, which is copied when the set is kept in memory. */
void sw_emit_keep(struct sw_job *job, struct sw_files *out, const char *path, const struct sw_buf *text);

#endif
