/* Checks a result directory by executing what it holds on a simulated card, and compares every output with the graph's
 * own meaning, or with outputs that PyTorch computed. */
#ifndef SW_VERIFY_H
#define SW_VERIFY_H

#include "compiler/eval/io.h"

struct sw_verified_output {
  const char *name;
  const char *mutates; /* input or buffer whose new value this is, or NULL */
  int value;           /* of the graph, that it was compared with; -1: none */
  int64_t undefined;   /* elements that the program never wrote */
  bool is_compared;    /* false: there is nothing to compare with */
  struct sw_difference difference;
};

struct sw_verified {
  SW_VEC(struct sw_verified_output) outputs;
  int n_wrong;
  const char *doubt;   /* why an output that differs may be right all the same, or NULL */
  bool in_dl16;        /* executed with the card's own format: as asked, or since the program makes numbers that fp16 does not hold */
  bool values_made_up; /* inputs are a fixed sequence of ours; expected values are the evaluator's */
};

/* What a compile says about the execution of its own program. */
struct sw_verdict {
  const char *outcome; /* "agrees", "differs", "undecided" (the graph's numbers allow no verdict), "not executed" */
  const char *why;     /* NULL when it agrees */
  int n_outputs;       /* compared; with made-up inputs against the graph's own meaning */
  int64_t work;        /* loop iterations and elements, see sw_work_to_verify */
  bool weights_made_up;
};

/* io NULL: inputs are made up. dl16: 16-bit floats of the card have its own 9 fraction bits, not half's 10. SW_OK when all agrees, SW_DIFFERENT when files break a rule of the machine or an output
 * differs, SW_UNSUPPORTED when something is not simulated. */
enum sw_rc sw_verify_directory(struct sw_job *job, const char *dir, const struct sw_graph *g, const struct sw_io *io,
                               bool dl16, struct sw_verified *out);

/* The same for a directory that was not written yet. */
struct sw_files;
enum sw_rc sw_verify_files(struct sw_job *job, const struct sw_files *files, const struct sw_graph *g,
                           const struct sw_io *io, struct sw_verified *out);

/* Weights without values get the fixed sequence too, with a warning each: layouts can be checked without them. */
void sw_verify_make_up_weights(struct sw_job *job, struct sw_graph *g);

#endif
