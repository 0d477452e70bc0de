/* The scratchpad problem alone: buffers with fixed life times compete for one memory. Choose which of them are resident
 * (for their whole life, at one address), as valuable a set as possible, and pack it; then pack it as low as possible.
 * Numbers only: it knows no tensors. Reference: place-problem.md (problem and result), scratchpad.md section 5. */
#ifndef SW_PLACE_PROBLEM_H
#define SW_PLACE_PROBLEM_H

#include "base/options.h"

struct sw_place_buffer {
  const char *name;
  int64_t size;       /* bytes, at least 1; not rounded to the alignment */
  int64_t start, end; /* live in ticks [start, end) */
  int64_t value;      /* gained when resident */
  int64_t alignment;  /* own one besides the problem's, 0: none */
  int64_t address;    /* if resident, exactly here; -1: anywhere */
  const char *barred; /* reason why it may never be resident, or NULL */
  bool required;      /* without it there is no plan */
  bool is_input;      /* the heuristics' order: its first use is a read.. */
  int uses;           /* ..and it is touched at that many ticks; 0: not known, taken as 2 */
  int alias;          /* buffers of one group share one address or are all not resident; -1: none */
  int *parents;       /* buffers whose slot it may take over: end(parent) = start + 1, size(parent) >= size */
  int n_parents;
};

struct sw_place_problem {
  const char *name;
  int64_t capacity, alignment; /* addresses are multiples of alignment in [0, capacity) */
  bool require_all;            /* every buffer was read as required */
  SW_VEC(struct sw_place_buffer) buffers;
  SW_VEC(const char *) aliases; /* names of the alias groups */
};

struct sw_place_options {
  enum sw_lx_placer placer;
  int64_t budget; /* work of the exact placer: search nodes and simplex steps */
  bool no_peak;   /* stop when the value is settled */
};

enum sw_place_status {
  SW_PLACED_OPTIMAL,    /* proved */
  SW_PLACED_FEASIBLE,   /* a legal plan */
  SW_PLACED_INFEASIBLE, /* proved: `conflict` can't be resident together */
  SW_PLACED_UNKNOWN,    /* no plan found, none ruled out */
};

const char *sw_place_status_text(enum sw_place_status s);

struct sw_place_result {
  enum sw_place_status status, peak_status;
  int64_t value, bound;     /* bound -1: none (heuristics) */
  int64_t peak, peak_bound; /* peak_bound -1: none */
  int64_t *address;         /* per buffer; -1: not resident. NULL when there is no plan */
  const char **reason;      /* per buffer: why not resident, or NULL */
  const char *method;       /* how the value was proved: "tick-capacity", "cuts", "search", or NULL */
  const char *packed_by;    /* which packer found the plan */
  const char *stopped_by;   /* "budget", "cancelled", or NULL */
  SW_VEC(int) conflict;     /* of an infeasible problem */
  int n_rows, n_columns, n_cuts, n_glpk_calls;
  int64_t work;
};

/* Adds a buffer with nothing else set: free address, no alias. Borrows name. Valid until the next one is added. */
struct sw_place_buffer *sw_place_add(struct sw_job *job, struct sw_place_problem *p, const char *name, int64_t size,
                                     int64_t start, int64_t end, int64_t value);

/* Refuses what place-problem.md section 1 refuses, every fault with its pointer. Run it before solving a problem that
 * wasn't read by the functions below. */
enum sw_rc sw_place_validate(struct sw_job *job, const struct sw_place_problem *p);

/* Solves; SW_OK also when the status is infeasible or unknown. The result is in the job's arena, was checked, and is
 * the same for the same problem and budget. */
enum sw_rc sw_place_solve(struct sw_job *job, const struct sw_place_problem *p, const struct sw_place_options *o,
                          struct sw_place_result **out);

/* Whether the addresses are a legal plan (place-problem.md section 2): NULL, or a sentence. O(n log n + meetings).
 * Shares nothing with the solvers. Gives value and peak of a legal plan. */
const char *sw_place_check(struct sw_job *job, const struct sw_place_problem *p, const int64_t *address,
                           int64_t *value, int64_t *peak);

/* -- documents -- */

enum sw_rc sw_place_read_json(struct sw_job *job, const char *text, size_t len, struct sw_place_problem **out);
/* minimalloc's CSV (section 4). capacity -1: from the file name "A.1048576.csv". */
enum sw_rc sw_place_read_csv(struct sw_job *job, const char *path, const char *text, size_t len, int64_t capacity,
                             struct sw_place_problem **out);
void sw_place_write_json(const struct sw_place_problem *p, const struct sw_place_result *r, struct sw_jw *w);
/* The CSV with an offset column; for a problem whose buffers are all resident. */
void sw_place_write_csv(const struct sw_place_problem *p, const struct sw_place_result *r, struct sw_buf *out);

#endif
