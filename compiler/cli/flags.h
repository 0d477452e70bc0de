/* What each verb takes besides its operands and (where its arguments say OPTIONS) the options of the pipeline. Parsing,
 * `stickwright help VERB`, the man page and the completions all read this table. */
#ifndef SW_CLI_FLAGS_H
#define SW_CLI_FLAGS_H

/* X(verb, letter or 0, name, what its value is or NULL, what it does) */
#define SW_FLAGS(X)                                                                                                     \
  X(compile, 'o', "output", "DIR", "write the result directory, all or nothing")                                        \
  X(compile, 0, "json", NULL, "print result.json in place of the summary")                                              \
  X(compile, 0, "program", "NAME", "which one of an archive with several programs")                                     \
  X(compile, 0, "pin-file", "FILE", "pins as JSON: {NAME: {device_size, stride_map}} or {NAME: \"order:1,0\"}")         \
  X(compile, 0, "machine", "FILE", "constants of the time model as JSON: {NAME: number}")                               \
  X(compile, 0, "dump-after", "PASS", "print the state behind a pass: read, lower, choose, plan, emit")               \
  X(inspect, 0, "json", NULL, "print what was read as JSON")                                                            \
  X(inspect, 0, "text", NULL, "print the graph in the text form, which can be edited and compiled")                     \
  X(inspect, 0, "program", "NAME", "which one of an archive with several programs")                                     \
  X(solve, 0, "json", NULL, "print the result as JSON")                                                                 \
  X(solve, 0, "mode", "per-edge|shared", "whether one copy may serve several readers, in place of what the problem says") \
  X(solve, 0, "lp", "FILE", "write the integer program in CPLEX LP format")                                             \
  X(place, 0, "json", NULL, "print the result as JSON")                                                                 \
  X(place, 0, "csv", NULL, "the problem is CSV (as a file name that ends in .csv says)")                                \
  X(place, 0, "placer", "exact|greedy|firstfit|bestfit|stack", "how buffers are packed (exact)")                              \
  X(place, 0, "budget", "N", "work of the exact placer: search nodes and simplex steps")                                                     \
  X(place, 0, "capacity", "BYTES", "size of the scratchpad, in place of what the problem says")                         \
  X(place, 0, "no-peak", NULL, "stop when the value is settled: no search for a lower peak")                            \
  X(emit, 'o', "output", "DIR", "where the bundle is written")                                                          \
  X(verify, 0, "model", "MODEL", "the graph to compare with")                                                           \
  X(verify, 0, "inputs", "IO.json", "inputs, and expected outputs where there are some")                                \
  X(verify, 0, "program", "NAME", "which one of an archive with several programs")                                      \
  X(verify, 0, "dim", "SYMBOL=SIZE", "run a smaller size of a dynamic dim that the program serves")                     \
  X(verify, 0, "dl16", NULL, "execute with the card's own 16-bit floats")                                               \
  X(verify, 0, "reference", NULL, "evaluate a model on the host; no result directory is read")                          \
  X(verify, 0, "round", NULL, "with --reference: round as the device does")                                             \
  X(verify, 0, "structure", NULL, "check files alone, by the schema and the rules between their parts")                 \
  X(verify, 0, "json", NULL, "print the verdict as JSON")                                                               \
  X(compare, 0, "profile", "A,B", "profiles to compare (best,torch-spyre)")                                             \
  X(compare, 0, "solver", "A,B", "solvers to compare (ilp,beam,greedy)")                                                \
  X(compare, 0, "baseline", "FILE", "make the file, or fail when a cost is higher than in it")                          \
  X(compare, 0, "json", NULL, "print the comparison as JSON")                                                           \
  X(explain, 0, "json", NULL, "print the reasons as JSON")                                                              \
  X(study, 'o', "output", "DIR", "directory of rows and tables (NAME.study)")                                           \
  X(study, 'j', "jobs", "N", "runs at the same time (the number of processors)")                                        \
  X(study, 0, "seconds", "N", "processor time of one run (600)")                                                        \
  X(study, 0, "memory", "MB", "memory of one run (4096)")                                                               \
  X(study, 0, "baseline", "FILE", "an earlier study.json: fail when a cost or time is higher than in it")               \
  X(study, 0, "shard", "K/N", "do every N-th run from the K-th on, and make no tables")                                 \
  X(study, 0, "merge", NULL, "make the tables from the rows that are there; run nothing")                               \
  X(study, 0, "slurm", NULL, "write DIR/study.sbatch, a job array of shards, and give it to sbatch")                    \
  X(study, 0, "slurm-script", NULL, "only write it")                                                                    \
  X(study, 0, "shards", "N", "tasks of the job array (16)")                                                             \
  X(study, 0, "json", NULL, "print study.json in place of study.md")                                                    \
  X(ops, 0, "json", NULL, "print the tables as JSON")                                                                   \
  X(ops, 0, "markdown", NULL, "print the tables as Markdown")

struct sw_cli_known {
  const char *verb, *name, *value, *what;
  char letter;
};
extern const struct sw_cli_known sw_cli_flags[];
extern const int sw_cli_n_flags;

#endif
