/* All limits of the daemon in one place: X(name, default, unit, what). --NAME on the command line changes one, and a new
 * value in the config file while the daemon runs: so everybody reads them where they are used. */
#ifndef SW_SERVER_LIMITS_H
#define SW_SERVER_LIMITS_H

#define SW_SERVER_LIMITS(X)                                                                        \
  X(workers, 2, "processes", "pieces of work at the same time")                                    \
  X(queue, 256, "requests", "waiting for a worker; more are answered 503")                         \
  X(client_queue, 224, "requests", "of one client waiting for a worker; more are answered 503")      \
  X(jobs, 1000, "jobs", "kept for GET /jobs/ID; ended ones go first")                              \
  X(studies, 100, "studies", "kept for GET /studies/ID; ended ones go first")                      \
  X(study_runs, 10000, "runs", "of one study")                                                     \
  X(study_mb, 256, "MB", "graphs of one study, unpacked, and likewise its rows")                   \
  X(connections, 4096, "sockets", "open at the same time")                                         \
  X(address_connections, 3072, "sockets", "open at the same time from one address")                \
  X(body_mb, 512, "MB", "largest request body, after decompression")                               \
  X(bodies_mb, 4096, "MB", "of all bodies that are read, waiting or in work; more are answered 503")    \
  X(header_seconds, 20, "s", "from a connection, or the answer before, to the end of the headers") \
  X(body_seconds, 120, "s", "from the headers to the end of the body")                             \
  X(answer_seconds, 600, "s", "for the client to read an answer")                                  \
  X(idle_seconds, 30, "s", "without a byte on a connection")                                       \
  X(drain_seconds, 10, "s", "for work to end after SIGTERM; then it is cancelled")                 \
  X(compile_seconds, 300, "s", "for one worker process; it is killed then")                          \
  X(memory_mb, 4096, "MB", "for one worker process")                                               \
  X(output_mb, 1024, "MB", "result directory of one compile")                                      \
  X(notes, 100, "notes", "on workers that died, in --aside; more are in the log only")              \
  X(cache_mb, 256, "MB", "results kept in memory; the least recently used go first")               \
  X(store_mb, 4096, "MB", "results kept in the store's file; the least recently used go first")

struct sw_limits {
#define X(name, value, unit, what) _Atomic long name;
  SW_SERVER_LIMITS(X)
#undef X
};

#endif
