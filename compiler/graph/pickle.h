/* The pickle in a file of torch.save that holds nothing but a dict of tensors: weights in archives of torch <= 2.7
 * (reference: pt2.md section 13). Read as data: nothing is imported, nothing is called. */
#ifndef SW_GRAPH_PICKLE_H
#define SW_GRAPH_PICKLE_H

#include "base/dtype.h"
#include "base/job.h"

struct sw_pickled {
  const char *name;
  const char *key; /* of the record data/KEY beside the pickle; NULL: the entry is no plain tensor */
  enum sw_dtype dtype;
  int rank;
  int64_t *size, *stride, offset;
};

struct sw_pickled_dict {
  SW_VEC(struct sw_pickled) list;
};

/* False after a fault. */
bool sw_pickle__read(struct sw_job *job, const unsigned char *bytes, size_t len, struct sw_pickled_dict *out);

#endif
