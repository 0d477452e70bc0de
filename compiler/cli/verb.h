/* Verbs of the command line. A verb is one line here and one file verb_NAME.c. */
#ifndef SW_CLI_VERB_H
#define SW_CLI_VERB_H

#include "base/files.h"

/* X(name, arguments, what it does, ready) */
#define SW_VERBS(X)                                                                                                \
  X(compile, "MODEL [-o DIR] [--json] [OPTIONS]", "the pipeline: layouts, plan, SuperDSC", 1)                      \
  X(inspect, "MODEL [--json|--text] [--program NAME]", "what the reader saw", 1)                                                           \
  X(solve, "PROBLEM.json [--solver NAME] [--budget N] [--mode shared] [--lp FILE] [--json]",                       \
    "the assignment problem alone", 1)                                                                             \
  X(place, "PROBLEM.json|.csv [--placer NAME] [--capacity BYTES] [--json]", "the scratchpad problem alone", 1)                                        \
  X(emit, "OPSPEC.json -o DIR", "op specs to SuperDSC", 1)                                                         \
  X(verify, "DIR [--model MODEL] [--inputs IO.json] [--dim SYMBOL=SIZE] [--json], or --reference MODEL --inputs IO.json [--round] [--json], or --structure PATH...", \
    "checks and executes a result directory; --reference: evaluates a model; --structure: checks files alone", 1)  \
  X(compare, "MODEL... [OPTIONS]", "the same graph under several solvers and profiles", 1)                         \
  X(explain, "DIR NAME... [--json]", "why a storage has its layout, a conversion its place", 1)                               \
  X(study, "SPEC.json|STUDY.zip [-o DIR] [--baseline FILE] [--shard K/N|--merge|--slurm] [--json]",                  \
    "a batch: graphs x profiles x solvers x options, to a table", 1)                                               \
  X(show, "sdsc_N.json|DIR", "what a SuperDSC file or all bundles of a directory do, in plain words", 1)            \
  X(ops, "[--json|--markdown]", "operations and what becomes of them", 1)

/* A verb gets the arguments behind its name. It prints its result to stdout and returns the exit code; faults that it
 * leaves in the job are printed to stderr by main. */
#define X(name, args, help, ready) int sw_verb_##name(struct sw_job *job, int argc, char **argv);
SW_VERBS(X)
#undef X

/* -- for verbs -- */

/* Splits arguments into operands and flags: those that flags.h has for the verb, and, when `options` is not NULL, the
 * options of the pipeline, which are set. False after a fault (usage). */
struct sw_cli_arg {
  const char *name, *value; /* value NULL for a flag */
};
struct sw_options;
struct sw_cli_args {
  SW_VEC(const char *) operands;
  SW_VEC(struct sw_cli_arg) flags;
};
bool sw_cli_parse(struct sw_job *job, int argc, char **argv, const char *verb, struct sw_options *options,
                  struct sw_cli_args *out);
/* Value of a flag ("" for one without value), or NULL when it was not given. */
const char *sw_cli_flag(const struct sw_cli_args *args, const char *name);

/* Writes text to stdout and checks that it got there. */
int sw_cli_print(struct sw_job *job, const char *text, size_t len);

/* Largest input file. */
enum { SW_MAX_INPUT_MB = 4096 };
enum sw_rc sw_cli_read(struct sw_job *job, const char *path, const char **bytes, size_t *len);

#endif
