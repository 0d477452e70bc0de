/* One compile in a process of its own. The daemon starts itself with --worker; the child reads the body from its
 * standard input and writes frames to its standard output. Whatever happens to it, the daemon only sees the frames
 * end too early. */
#ifndef SW_SERVER_WORKER_H
#define SW_SERVER_WORKER_H

#include "server/limits.h"
#include "server/store.h"

#include <stdatomic.h>

struct sw_work {
  const char *verb;           /* "compile" */
  char **options;             /* "name=value", n_options of them */
  int n_options;
  int body_fd;                /* a file, read from its start */
  char request_id[17];
};

struct sw_work_result {
  unsigned status;           /* HTTP */
  struct sw_result *result;  /* of a success: one reference */
  char *problem;             /* else: a problem document, to be freed */
  size_t problem_len;
};

/* Parent side: runs the work to its end, its deadline, or until *stop becomes true. */
void sw_worker_run(const struct sw_work *work, const struct sw_limits *limits, const atomic_bool *stop,
                   struct sw_work_result *out);

/* Child side: main of `stickwrightd --worker MEMORY_MB REQUEST_ID VERB [NAME=VALUE...]`. */
int sw_worker_main(int argc, char **argv);

#endif
