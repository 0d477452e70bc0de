/* Dynamic sizes of a manifest: symbols, and the dims of buffers and outputs whose first rows hold data. */
#ifndef SW_VERIFY_SIZES_H
#define SW_VERIFY_SIZES_H

#include "compiler/eval/tensor.h"
#include "base/json.h"

struct sim_size {
  const char *name, *input; /* of the graph: its dim `dim` is the size */
  int dim;
  int64_t min, max, step, value; /* value: of this run */
};
struct sim_sizes {
  SW_VEC(struct sim_size) v;
};

/* manifest.symbols; values are the maxima until an input tells. False after a fault. */
bool sim_read_sizes(struct sw_job *job, const json_t *manifest, struct sim_sizes *out);

/* The size that an input of this shape shows; false: it is not one of those that the program serves. */
bool sim_size_of_input(struct sw_job *job, struct sim_sizes *s, const char *input, const struct sw_tensor *t);

/* The value of a kernel's symbol: a number (*size NULL), or {input, dim} of a size. */
bool sim_size_of_symbol(const struct sim_sizes *s, const json_t *symbol, int64_t *value, const struct sim_size **size);

/* Cuts a shape at the maxima down to this run, by the `rows` of a buffer or output. False: they name nothing. */
bool sim_cut_rows(const struct sim_sizes *s, const json_t *of, int rank, int64_t *size);

#endif
