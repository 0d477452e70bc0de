/* A study: graphs x profiles x solvers x option sets, each compiled in a process of its own, to one table.
 *
 * What a run gave is kept in DIR/runs/KEY.json, KEY being a digest of the graph's bytes, the effective options, the
 * limits and the program itself. So a study that was interrupted goes on where it stood, shards can share a directory,
 * and the tables, which are made from these files alone, are the same bytes either way. */
#ifndef SW_STUDY_H
#define SW_STUDY_H

#include "base/files.h"
#include "compiler/compare.h"

struct sw_study_graph {
  const char *name; /* last part of the path where that is unique, else the path as the spec's pattern found it */
  const char *path;
  const char *bytes; /* of a graph that came with the spec; NULL: they are in the file `path` */
  size_t len;
  char digest[65]; /* of its bytes; empty when it can't be read */
};

struct sw_study_setting {
  const char *name, *value;
};

struct sw_study_options {
  const char *label; /* "lx=off cores=16"; "" for the defaults */
  SW_VEC(struct sw_study_setting) given;
  struct sw_options base; /* with them */
};

struct sw_study_run {
  int graph, options;
  enum sw_profile profile;
  enum sw_solver_kind solver;
  char key[33];
  bool done;
  struct sw_compared row;
  double seconds; /* of processor time */
};

struct sw_study {
  const char *name;
  SW_VEC(struct sw_study_graph) graphs;
  SW_VEC(enum sw_profile) profiles;
  SW_VEC(enum sw_solver_kind) solvers;
  SW_VEC(struct sw_study_options) options;
  SW_VEC(struct sw_study_run) runs; /* graphs, then option sets, then profiles, then solvers */
};

/* Where the patterns of a spec look, and how much a spec may ask for. */
struct sw_study_source {
  const char *dir;              /* paths are relative to this folder, */
  const struct sw_files *files; /* or these are all the files there are */
  int64_t max_runs;
};

enum { SW_STUDY_MAX_RUNS = 1000000 };

/* Reads a spec. All its faults are reported. */
enum sw_rc sw_study_read(struct sw_job *job, const char *text, size_t len, const struct sw_study_source *source,
                         struct sw_study **out);

/* A study in one piece, a ZIP archive with study.json and the graphs, or a spec that holds them: its spec, in which
 * /graphs are exact names now, and those graphs. */
enum sw_rc sw_study_unpack(struct sw_job *job, const char *bytes, size_t len, struct sw_file *spec, struct sw_files *graphs);

struct sw_study_limits {
  int jobs;               /* processes at a time */
  int64_t seconds;        /* processor time of one run */
  int64_t memory_mb;      /* of one run */
  int64_t shard, n_shards; /* only every n_shards-th run, from number `shard` on */
  bool progress;          /* a bar on stderr that is written over */
  bool only_merge;        /* no run is done; one that DIR has not got is a fault */
};

/* Does the runs that DIR has not got yet, and fills in all rows of the shard. job->cancel ends it: what runs is killed,
 * what is done stays in DIR. */
enum sw_rc sw_study_run(struct sw_job *job, struct sw_study *s, const char *dir, const struct sw_study_limits *limits);

/* Writes DIR/study.sbatch, which does the study in `n_shards` tasks of a Slurm job array, each as `limits` say; gives its
 * path. `spec` is the spec's file. */
enum sw_rc sw_study_slurm_write(struct sw_job *job, const struct sw_study *s, const char *spec, const char *dir,
                                const struct sw_study_limits *limits, const char **script);
/* Gives it to sbatch; the number of its job. */
enum sw_rc sw_study_slurm_submit(struct sw_job *job, const char *script, const char **number);

/* Makes DIR and DIR/runs. */
enum sw_rc sw_study_make_dirs(struct sw_job *job, const char *dir);

/* -- one run as a file -- */

void sw_study_row_write(const struct sw_study_run *r, struct sw_jw *w); /* members of an open object */
/* The row as a document of its own, with the run's key. */
void sw_study_row_text(const struct sw_study_run *r, struct sw_buf *out);
/* False when the text is not a whole row of that key. */
bool sw_study_row_read(struct sw_job *job, const char *text, size_t len, struct sw_study_run *r);

/* The row of a run from what a compile gave: its result.json, ... */
bool sw_study_row_of_result(struct sw_job *job, const char *result, size_t len, struct sw_study_run *r);
/* ... or its end without one: a slug, and the faults as sw_jw_faults writes them (or NULL, then `detail` is the fault). */
void sw_study_row_of_faults(struct sw_job *job, const char *slug, const char *detail, const char *errors,
                            struct sw_study_run *r);

/* -- tables -- */

const char *sw_study_profile_name(enum sw_profile p);
const char *sw_study_solver_name(enum sw_solver_kind s);

void sw_study_csv(const struct sw_study *s, struct sw_buf *out);
void sw_study_json(const struct sw_study *s, struct sw_buf *out);
void sw_study_times(const struct sw_study *s, struct sw_buf *out); /* CSV of what differs from one day to the next */
void sw_study_summary(struct sw_job *job, const struct sw_study *s, struct sw_buf *out); /* Markdown */

/* Runs of `baseline`, an earlier study.json, that are here too and now cost more, take longer or fail: their number,
 * each named in `out`. -1 after a fault. */
int sw_study_check(struct sw_job *job, const struct sw_study *s, const char *baseline, size_t len, struct sw_buf *out);

#endif
