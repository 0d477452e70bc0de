/* Runs one bundle directory: bundle.mlir in text order, one sdsc file an execute. Reference: superdsc.md section 16,
 * M1 and M3. */
#ifndef SW_VERIFY_BUNDLE_H
#define SW_VERIFY_BUNDLE_H

#include "compiler/verify/exec.h"

struct sim_argument {
  struct sim_memory *memory; /* of an `arg_` parameter */
  int64_t number;            /* of a `sym_` parameter */
  int64_t step, most;        /* and the sizes that the program serves; 0: it always has this number */
};

/* A source of the bundle's files by name; false after a fault. */
struct sim_files {
  bool (*read)(void *ctx, struct sw_job *job, const char *name, const char **text, size_t *len);
  void *ctx;
};

/* `args` in the order of the function's parameters. lx_bytes: of a scratchpad what the plan may use, at most
 * SIM_LX_BYTES. */
enum { SIM_LX_BYTES = (2 << 20) - (64 << 10) };
enum sw_rc sim_run_bundle(struct sw_job *job, const struct sim_files *files, int64_t lx_bytes,
                          const struct sim_argument *args, int n_args);

/* Reads all of a bundle and checks what needs no data: its statements, the form and structure of its files, and that each
 * execute passes the symbols that its file names. *n_files: how many files there are. */
enum sw_rc sim_check_bundle(struct sw_job *job, const struct sim_files *files, int *n_files);

/* An execute as it stands in the text. */
struct sim_seen {
  const struct dsc *d;
  int n; /* symbols */
  struct sim_symbol_seen {
    int64_t id, offset; /* bytes, in the first round of all loops */
    int argument;       /* number of the parameter, SIM_POOL, or SIM_NUMBER (not an address) */
    int64_t *move;      /* by loop around the execute, outermost first: bytes that one round adds */
  } *symbols;
  int n_loops;
};
enum { SIM_POOL = -1, SIM_NUMBER = -2 };

struct sim_seen_list {
  SW_VEC(struct sim_seen) list;
};

/* sim_check_bundle, and what there is to tell about it: the executes in their order. */
enum sw_rc sim_describe_bundle(struct sw_job *job, const struct sim_files *files, struct sim_seen_list *out);

#endif
