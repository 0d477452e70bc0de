#include "compiler/layout/machine.h"

#include "base/options.h"

#include <assert.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

const struct sw_machine sw_spyre = {
    .hbm = 150,
    .turnaround = 0.00574,
    .restickify = 116,
    .reduce_outer = 113,
    .broadcast_unknown = 118,
    .scatter = {144, 9.6, 2.4, 44},
    .transpose = {140, 6.8, 1.2, 83},
    .concat = {110, 0.8, 0, 90},
    .transpose_narrow = 13,
    .transpose_narrow_least = 40,
    .broadcast =
        {
            {{.base = 183.5, .rows = -2.6, .cols = -2.8, .least = 100, .most = 135},
             {.base = 162, .rows = -2.2, .cols = -1.8, .least = 95, .most = 130}},
            {{.base = -350, .rows = 105, .rows2 = -5.5, .cols = -2, .least = 45, .most = 140},
             {.base = -270, .rows = 70, .rows2 = -3.5, .cols = 3, .least = 45, .most = 120}},
            {{.base = 92, .flat = 32, .tall = 10, .least = 40, .most = 128},
             {.base = 98, .flat = 15, .tall = 8, .least = 40, .most = 120}},
        },
    .row_reduction_least = 114,
    .row_reduction_more = 61,
    .row_reduction_rows = 3700,
    .reduction_cores = {0.11, 0.22, 0.43, 0.54, 0.54, 1},
    .turn = 40,
    .link = 28,     /* one measurement: 4.2 MB each way in 0.297 ms (section 12, row 18) */
    .launch = 7000, /* measured on the host (section 1) */
    .interval = {8.75, 7.5, 3.75},

    .macs = 1140,
    .macs_default_bmm = 160,
    .macs_projection = {705, 470},
    .macs_full_rows = 64,
    .macs_rows_exponent = 0.35,
    .spill_area = 65536,
    .spill_slope = 0.45,
    .spill_most = 1.5,
    .relayout_base = 1.14,
    .relayout_doubling = 3.92,
    .relayout_bytes = 547,
    .split_area = 131072,
    .split_long = 2.62,
    .split_short = 2.88,

    .tile = {7.9, 0.5, 2048, 0.38, 1.08, 0.248, 0.1, 524288, 0.06},
    .matmul_tile = {13, 0.68, 1, 0, 0.95, 0.28003925749734376, 0.1 / 0.68, 2097152, 0.15}, /* low: (2 / 13)^0.68 */
    .again = 0.85,
};

double sw_cores_factor(const struct sw_machine *m, int cores)
{
  enum { LAST = sizeof m->reduction_cores / sizeof *m->reduction_cores - 1 };
  double at = log2(cores < 1 ? 1 : cores);
  int low = (int)at;
  if (low >= LAST)
    return m->reduction_cores[LAST];
  const double *g = &m->reduction_cores[low];
  return g[0] + (g[1] - g[0]) * (at - low);
}

/* -- other constants -- */

/* What a constant may be. RATE: something is divided by it. PART: of a rate. FIT: a term of a formula that is clamped behind
 * it, or a power. */
enum range { RATE, PART, TIME, FIT, N_RANGES };
static const struct {
  double least, most;
} ranges[] = {[RATE] = {1e-3, 1e9}, [PART] = {1e-3, 1}, [TIME] = {0, 1e9}, [FIT] = {-1e4, 1e4}};
static_assert(sizeof ranges / sizeof *ranges == N_RANGES, "a range each");

#define TRANSPORT(X, f) X(f.a, FIT) X(f.b, FIT) X(f.d, FIT) X(f.least, RATE)
#define BROADCAST(X, f)                                                                                               \
  X(f.base, FIT) X(f.rows, FIT) X(f.rows2, FIT) X(f.cols, FIT) X(f.flat, FIT) X(f.tall, FIT) X(f.least, RATE) X(f.most, RATE)
#define TILE(X, f)                                                                                                \
  X(f.rows, RATE) X(f.by_rows, FIT) X(f.cols, RATE) X(f.by_cols, FIT) X(f.most, RATE) X(f.low, RATE) X(f.by_low, FIT) \
  X(f.bytes, RATE) X(f.over, FIT)
#define CONSTANTS(X)                                                                                                  \
  X(hbm, RATE) X(turnaround, TIME) X(restickify, RATE) X(reduce_outer, RATE) X(broadcast_unknown, RATE)               \
  TRANSPORT(X, scatter) TRANSPORT(X, transpose) TRANSPORT(X, concat)                                                  \
  X(transpose_narrow, FIT) X(transpose_narrow_least, RATE)                                                            \
  BROADCAST(X, broadcast[0][0]) BROADCAST(X, broadcast[0][1]) BROADCAST(X, broadcast[1][0])                           \
  BROADCAST(X, broadcast[1][1]) BROADCAST(X, broadcast[2][0]) BROADCAST(X, broadcast[2][1])                           \
  X(row_reduction_least, RATE) X(row_reduction_more, TIME) X(row_reduction_rows, RATE)                                \
  X(reduction_cores[0], PART) X(reduction_cores[1], PART) X(reduction_cores[2], PART) X(reduction_cores[3], PART)     \
  X(reduction_cores[4], PART) X(reduction_cores[5], PART)                                                             \
  X(turn, RATE) X(link, RATE) X(launch, TIME) X(interval[0], TIME) X(interval[1], TIME) X(interval[2], TIME)          \
  X(macs, RATE) X(macs_default_bmm, RATE) X(macs_projection[0], RATE) X(macs_projection[1], RATE)                     \
  X(macs_full_rows, RATE) X(macs_rows_exponent, PART) X(spill_area, RATE) X(spill_slope, TIME) X(spill_most, TIME)    \
  X(relayout_base, TIME) X(relayout_doubling, TIME) X(relayout_bytes, RATE)                                           \
  X(split_area, TIME) X(split_long, TIME) X(split_short, TIME) TILE(X, tile) TILE(X, matmul_tile) X(again, TIME)

static const struct {
  const char *name;
  size_t at;
  enum range range;
} constants[] = {
#define X(member, range) {#member, offsetof(struct sw_machine, member), range},
    CONSTANTS(X)
#undef X
};
enum { N_CONSTANTS = sizeof constants / sizeof *constants };
static_assert(sizeof(struct sw_machine) == N_CONSTANTS * sizeof(double), "every constant has a name");

bool sw_machine_constant(const struct sw_machine *m, int i, struct sw_constant *out)
{
  if (i < 0 || i >= N_CONSTANTS)
    return false;
  out->name = constants[i].name;
  memcpy(&out->value, (const char *)m + constants[i].at, sizeof out->value);
  return true;
}

static enum sw_rc set(struct sw_job *job, struct sw_machine *m, const char *text)
{
  size_t n = strcspn(text, "=");
  int i = 0;
  while (i < N_CONSTANTS && (strlen(constants[i].name) != n || memcmp(constants[i].name, text, n) != 0))
    i++;
  if (i == N_CONSTANTS) {
    sw_fault(job, SW_USAGE, "option constant: there is no %.*s", (int)n, text)->advice =
        "docs/cost-model.md and data/spyre.machine.json name them all";
    return SW_USAGE;
  }
  char *end;
  double least = ranges[constants[i].range].least, most = ranges[constants[i].range].most;
  double x = strtod(text + n + 1, &end);
  if (end == text + n + 1 || *end || !(x >= least && x <= most))
    return sw_fail(job, SW_USAGE, "option constant: %s is a number from %g to %g, \"%s\" found", constants[i].name, least,
                   most, text + n + 1);
  memcpy((char *)m + constants[i].at, &x, sizeof x);
  return SW_OK;
}

enum sw_rc sw_machine_read(struct sw_job *job, const struct sw_options *o, const struct sw_machine **out)
{
  *out = NULL;
  if (!o->constants.n)
    return SW_OK;
  struct sw_machine *m = SW_NEW(job->arena, struct sw_machine);
  enum sw_rc worst = SW_OK;
  *m = sw_spyre;
  for (int i = 0; i < o->constants.n; i++) {
    enum sw_rc rc = set(job, m, o->constants.v[i]);
    worst = rc > worst ? rc : worst;
  }
  for (int i = 0; i < 3 && worst == SW_OK; i++)
    for (int k = 0; k < 2; k++)
      if (m->broadcast[i][k].least > m->broadcast[i][k].most)
        return sw_fail(job, SW_USAGE, "option constant: broadcast[%d][%d].least is above its most", i, k);
  if (worst == SW_OK)
    *out = m;
  return worst;
}
