/* Memory of the simulated card. Every byte is defined or poison; within one execute the cores have no order, so a byte
 * that one core writes must not be read or written by another (except the same value twice).
 * Reference: superdsc.md section 16, M1. */
#ifndef SW_VERIFY_MEMORY_H
#define SW_VERIFY_MEMORY_H

#include "base/job.h"

enum sim_format { SIM_FP16, SIM_FP32, SIM_INT32, SIM_FP8, SIM_N_FORMATS };

/* -1 when the name is none that the simulator knows. */
int sim_format_find(const char *superdsc_name);
int sim_format_bytes(enum sim_format f);

struct sim_memory {
  const char *name;
  unsigned char *bytes, *defined; /* one flag a byte */
  uint32_t *writer, *reader;      /* per 2 bytes: stamp of the last one; NULL for a private scratchpad */
  size_t n;
  bool is_dl16;     /* 16-bit floats are DL16, else IEEE half */
  bool leaves_half; /* an op of a bundle that had it as an argument made a number that half does not hold */
};

/* DL16: 1 sign, 6 exponent (bias 31), 9 fraction bits. 0 is 0, all ones is infinity, exponent 0 is like any other.
 * Rounded half away from zero; what is too small becomes 0, what is too large, infinite or no number becomes infinity
 * (superdsc.md 6.4, M9). 0.01 -> 12431 -> 0.0099945068359375. */
uint16_t sim_dl16_bits(double v);
double sim_dl16_value(unsigned bits);

/* All poison. `shared`: several cores use it, so accesses are stamped. */
struct sim_memory *sim_memory_new(struct sw_arena *a, const char *name, size_t bytes, bool shared);

struct sim_value {
  double v;
  bool poison;
};

/* Who accesses: stamp = number of the execute * 64 + core + 1. */
enum sim_clash { SIM_FINE, SIM_OUTSIDE, SIM_RACE };
enum sim_clash sim_load(struct sim_memory *m, int64_t at, enum sim_format f, uint32_t stamp, struct sim_value *out);
enum sim_clash sim_store(struct sim_memory *m, int64_t at, enum sim_format f, uint32_t stamp, struct sim_value v);
/* Moves the bits of one element. */
enum sim_clash sim_copy(struct sim_memory *to, int64_t to_at, struct sim_memory *from, int64_t from_at, int bytes,
                        uint32_t stamp);

#endif
