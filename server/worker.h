/* One piece of work in a process of its own. The daemon starts itself with --worker; the child reads the body from its
 * standard input and writes frames to its standard output. Whatever happens to it, the daemon only sees the frames
 * end too early. */
#ifndef SW_SERVER_WORKER_H
#define SW_SERVER_WORKER_H

#include "server/body.h"
#include "server/limits.h"
#include "server/store.h"

#include <stdatomic.h>

/* What is to be done. */
struct sw_task {
  char id[SW_ID_LEN + 1]; /* address of the result */
  char *args;             /* verb and NAME=VALUE..., each with a NUL behind it */
  size_t args_len;
  struct sw_body *body;
};
/* Frees what the task owns. */
void sw_task_clear(struct sw_task *t);

/* What became of it: a result, or the parts of a problem document (all malloced; NULL when memory was short). */
struct sw_outcome {
  unsigned status;          /* HTTP */
  struct sw_result *result; /* of a success: one reference */
  char *slug, *detail;      /* else; */
  char *errors;             /* a JSON array, or NULL */
  char *solver;             /* status of the solver, or NULL */
  char *log;                /* of a child that died: the end of what it wrote to standard error */
  int died;                 /* 0, or its wait status */
};
void sw_outcome_problem(struct sw_outcome *o, unsigned status, const char *slug, const char *detail);
/* What an asker needs of it, as an outcome of its own: all but the last three. */
void sw_outcome_copy(struct sw_outcome *to, const struct sw_outcome *from);
void sw_outcome_clear(struct sw_outcome *o);

/* Parent side: runs the task to its end, its time limit, or until *cancel becomes true. on_pass is told the name of each
 * pass that begins, and a JSON object when a solver has got further. */
void sw_worker_run(const struct sw_task *t, const struct sw_limits *limits, const atomic_bool *cancel,
                   void (*on_pass)(void *ctx, const char *pass), void *ctx, struct sw_outcome *out);

/* Child side: main of `stickwrightd --worker MEMORY_MB VERB [NAME=VALUE...]`. */
int sw_worker_main(int argc, char **argv);

#endif
