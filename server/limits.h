/* All limits of the daemon in one place: X(name, default, unit, what). --NAME on the command line changes one. */
#ifndef SW_SERVER_LIMITS_H
#define SW_SERVER_LIMITS_H

#define SW_SERVER_LIMITS(X)                                                                     \
  X(workers, 2, "processes", "compiles at the same time")                                       \
  X(queue, 64, "requests", "waiting for a worker; more are answered 503")                       \
  X(connections, 256, "sockets", "open at the same time")                                       \
  X(body_mb, 512, "MB", "largest request body")                                                 \
  X(body_seconds, 120, "s", "from the headers to the end of the body")                          \
  X(idle_seconds, 30, "s", "without a byte on a connection")                                    \
  X(compile_seconds, 300, "s", "for one worker process")                                        \
  X(memory_mb, 4096, "MB", "for one worker process")                                            \
  X(output_mb, 1024, "MB", "result directory of one compile")                                   \
  X(store_mb, 1024, "MB", "results kept for GET /results; the least recently used go first")

struct sw_limits {
#define X(name, value, unit, what) long name;
  SW_SERVER_LIMITS(X)
#undef X
};

#endif
