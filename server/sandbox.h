/* What a worker may no longer do, once it has its input: open files, reach the network, start programs. */
#ifndef SW_SERVER_SANDBOX_H
#define SW_SERVER_SANDBOX_H

#include <stdbool.h>

/* Limits for this process: memory (with some room for libraries beside the arenas' own budget, which gives the better
 * message), no core files, a megabyte for messages, few descriptors; standard input, output and error stay open, all others
 * are closed. False when the kernel refuses. */
bool sw_sandbox_limits(long memory_mb);
/* From here on everything but computing ends with EPERM: opening, connecting, starting, reaching other processes, making code. */
bool sw_sandbox_close(void);

#endif
