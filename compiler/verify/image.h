/* A host tensor in device memory: which device element holds which host element. Reference: layouts.md 1.5, and
 * superdsc.md M11 for the arrangements. */
#ifndef SW_VERIFY_IMAGE_H
#define SW_VERIFY_IMAGE_H

#include "compiler/eval/eval.h"
#include "compiler/verify/memory.h"

struct image_layout {
  int rank;
  int64_t device_size[16], stride_map[16];
  enum sim_format format;
  const char *arrangement; /* "STANDARD", "DL16_TO_FP32", "FP32_TO_DL16" */
};

struct image {
  struct image_layout layout;
  int rank; /* of the host tensor */
  int64_t size[SW_MAX_RANK], stride[SW_MAX_RANK];
};

/* A host tensor's storage, element by element. */
struct image_host {
  int64_t n;
  double *v;
  bool *undefined;
};

int64_t image_bytes(const struct image *im);
/* Elements of the host storage: 1 + sum (size-1) * stride. */
int64_t image_span(const struct image *im);

/* Writes a host storage into memory; lanes without an element get `fill` if has_fill, else stay as they are. False
 * when the layout does not hold every element exactly once. */
bool image_upload(struct sw_arena *a, const struct image *im, const struct image_host *host, bool has_fill, double fill,
                  struct sim_memory *to);
/* The other way round. */
bool image_download(struct sw_arena *a, const struct image *im, struct sim_memory *from, struct image_host *out);

#endif
