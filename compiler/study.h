/* A study: models x profiles x solvers x option sets, each compiled once, to tables. What is done is kept line by line,
 * so that an interrupted study goes on where it was, and several processes can share one. */
#ifndef SW_STUDY_H
#define SW_STUDY_H

#include "compiler/compare.h"

struct sw_study_options {
  const char *name;
  json_t *set; /* {option: value as text} */
};

struct sw_study {
  const char *dir; /* of the spec, "" or with a '/' at its end: models are relative to it */
  struct sw_texts models, profiles, solvers;
  SW_VEC(struct sw_study_options) options;
};

/* A spec {format: "stickwright.study/1", models[], profiles[], solvers[], options[{name, set{}}]}; the last three may be
 * left out. NULL after faults. */
struct sw_study *sw_study_read(struct sw_job *job, const char *path);

/* Does what has no line in out/runs*.jsonl yet; of n shards only shard k (0 of 1: all), which writes runs-K.jsonl.
 * on_run is told each one that begins; may be NULL. */
enum sw_rc sw_study_run(struct sw_job *job, const struct sw_study *s, const char *out, int shard, int n_shards,
                        void (*on_run)(void *ctx, int done, int of, const char *what), void *ctx);

/* Tables of a complete study: study.json, study.csv, study.md. SW_NO_INPUT with their number when runs are missing. */
enum sw_rc sw_study_tables(struct sw_job *job, const struct sw_study *s, const char *out, struct sw_files *files);

#endif
