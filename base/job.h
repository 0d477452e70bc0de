/* A job: one piece of work with its memory, its faults and its cancellation. Every pass takes one.
 *
 * Faults are collected, not thrown: a pass reports all that is wrong with a graph and then returns the worst code. */
#ifndef SW_BASE_JOB_H
#define SW_BASE_JOB_H

#include "base/arena.h"

#include <stdatomic.h>

/* One list gives the enum, the slug (result status, problem type), the HTTP status and the exit code. Slugs and codes
 * are interface: never reused. Ordered from harmless to worst. */
#define SW_RC_LIST(X)                          \
  X(OK, "ok", 200, 0)                          \
  X(DIFFERENT, "difference", 409, 1)           \
  X(USAGE, "usage", 400, 64)                   \
  X(NO_INPUT, "no-input", 400, 66)             \
  X(INFEASIBLE, "infeasible", 422, 3)          \
  X(UNSUPPORTED, "unsupported", 422, 65)       \
  X(INVALID, "bad-input", 422, 65)             \
  X(LIMIT, "limit", 413, 4)                    \
  X(DEADLINE, "deadline", 504, 5)              \
  X(CANCELLED, "cancelled", 409, 5)            \
  X(IO, "io", 500, 74)                         \
  X(INTERNAL, "internal", 500, 70)

enum sw_rc {
#define X(id, slug, http, exit_code) SW_##id,
  SW_RC_LIST(X)
#undef X
};

const char *sw_rc_slug(enum sw_rc rc);
int sw_rc_http(enum sw_rc rc);
int sw_rc_exit(enum sw_rc rc);

/* What is wrong, where, by how much, and what the user can change. Strings live in the job's arena or are literals;
 * NULL where there is nothing to say. */
struct sw_fault {
  enum sw_rc rc;
  const char *detail; /* one sentence with the values; always there */
  const char *node;   /* node or op, by the name of the input */
  const char *tensor; /* value, storage or pair "a -> b" */
  const char *source; /* "file.py:12" or a JSON pointer */
  const char *advice; /* what to change */
  bool has_limit;     /* then value is over (or under) limit */
  int64_t value, limit;
};

/* How far a solver is, told while it works to whoever looks on. No result depends on it. A problem may fall into parts
 * that are solved one after the other; part 0 is the whole of it, at the end. */
struct sw_progress {
  const char *solver; /* "assign" or "place" */
  int part, parts;
  bool has_value, has_bound;
  int64_t value, bound; /* best found and best proved, of the part */
};

struct sw_job {
  struct sw_arena *arena;
  SW_VEC(struct sw_fault) faults;
  int faults_left_out; /* beyond SW_MAX_FAULTS only counted */
  enum sw_rc worst;    /* of all faults */
  SW_VEC(const char *) warnings;
  const atomic_bool *cancel; /* may be NULL */
  void (*on_progress)(void *ctx, const struct sw_progress *); /* may be NULL; must not allocate from the job's arena */
  void *progress_ctx;
  int part, parts; /* in which part of its problem a solver is */
};

enum { SW_MAX_FAULTS = 200 };

/* Records a fault and gives it back so that the caller can add node, tensor, advice; never NULL. */
struct sw_fault *sw_fault(struct sw_job *job, enum sw_rc rc, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* The same for the common case: records and returns rc. */
enum sw_rc sw_fail(struct sw_job *job, enum sw_rc rc, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* A remark that goes to the result and to stderr, at most once per text. */
void sw_warn(struct sw_job *job, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* True when somebody asked this job to stop; long loops look now and then. */
static inline bool sw_cancelled(const struct sw_job *job)
{
  return job->cancel && atomic_load_explicit(job->cancel, memory_order_relaxed);
}

static inline void sw_tell(const struct sw_job *job, struct sw_progress p)
{
  if (job->on_progress)
    job->on_progress(job->progress_ctx, &p);
}

#define SW_TRY(expr)         \
  do {                       \
    enum sw_rc rc_ = (expr); \
    if (rc_ != SW_OK)        \
      return rc_;            \
  } while (0)

#endif
