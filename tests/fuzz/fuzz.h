/* What every target shares: a job with an arena of its own, and an exact copy of the bytes, so that reading one byte too
 * far is seen. A target gives its work to fuzz_run:
 *
 *   static void work(struct fuzz *f) { ... f->job, f->bytes, f->len ... }
 *   int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) { return fuzz_run(data, size, (size_t)64 << 20, work); }
 *
 * What a target asserts it asserts with fuzz_check: a claim that must hold whatever the bytes are. */
#ifndef SW_TESTS_FUZZ_H
#define SW_TESTS_FUZZ_H

#include "base/job.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct fuzz {
  struct sw_job job;
  const char *bytes;
  size_t len;
  void (*work)(struct fuzz *f);
};

static inline void fuzz_check(bool claim)
{
  if (!claim)
    abort();
}

static inline void fuzz_call(void *p)
{
  struct fuzz *f = p;
  f->work(f);
}

static inline int fuzz_run(const uint8_t *data, size_t size, size_t memory, void (*work)(struct fuzz *f))
{
  struct fuzz f = {.job = {.arena = sw_arena_new(NULL, memory)}, .len = size, .work = work};
  char *copy = malloc(size ? size : 1);
  if (f.job.arena && copy) {
    memcpy(copy, data, size);
    f.bytes = copy;
    sw_arena_run(f.job.arena, fuzz_call, &f);
  }
  sw_arena_free(f.job.arena);
  free(copy);
  return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
