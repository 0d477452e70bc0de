/* A runtime for a result directory: reads manifest.json, lays buffers out in simulated memory, launches the bundles and
 * host steps, reads outputs back. Everything from the written files and the model's weights; nothing of the compiler. */
#ifndef SW_VERIFY_RUNTIME_H
#define SW_VERIFY_RUNTIME_H

#include "compiler/eval/eval.h"
#include "compiler/verify/bundle.h"

struct rt;

/* Reads manifest.json and checks it. NULL after a fault. `files` holds the result directory, names as in it; `weights`
 * gives parameters and buffers their values. */
struct rt *rt_open(struct sw_job *job, const struct sim_files *files, const struct sw_graph *weights);

/* 16-bit floats of the card are DL16 from here on; the transfer to and from the host rounds. */
void rt_use_dl16(struct rt *r);

/* Values of a graph input, by name; borrowed. */
void rt_set_input(struct rt *r, const char *name, const struct sw_tensor *t);

/* Loads, runs all steps. SW_DIFFERENT when the files break a rule of the machine, SW_UNSUPPORTED when an op is not
 * simulated. */
enum sw_rc rt_run(struct rt *r);

/* Whether an op made a number that fp16 does not hold: too large, or so small that it becomes zero. */
bool rt_leaves_half(const struct rt *r);

struct rt_output {
  const char *name, *mutates; /* mutates NULL: a user output */
  bool is_tensor;
  struct sw_tensor tensor;  /* contiguous */
  int64_t undefined;        /* elements that nobody wrote */
};
int rt_n_outputs(const struct rt *r);
enum sw_rc rt_output(struct rt *r, int i, struct rt_output *out);

#endif
