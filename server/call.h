/* What is asked of a worker: a verb with its parameters.
 *
 * The daemon sets them from the query before the body comes, so that a wrong one is refused at once, and takes their
 * canonical text into the address of the result. The child gets the same pairs as NAME=VALUE arguments, sets them again,
 * and runs. */
#ifndef SW_SERVER_CALL_H
#define SW_SERVER_CALL_H

#include "base/files.h"
#include "base/options.h"

/* Parameters that are no options of the pipeline: X(field, name). */
#define SW_CALL_OWN(X)                                                                                         \
  X(program, "program") X(name, "name") X(profiles, "profile") X(solvers, "solver") X(mode, "mode")            \
  X(placer, "placer") X(capacity, "capacity") X(no_peak, "no-peak")

struct sw_call {
  const struct sw_verb *verb;
  struct sw_options options;
#define X(field, text) const char *field;
  struct { SW_CALL_OWN(X) } own; /* as given, NULL when not */
#undef X
};

/* What a verb has to say; lives in the job's arena. */
struct sw_call_answer {
  struct sw_files files; /* result.json first or among them */
  struct sw_buf timing;  /* value of the Server-Timing header */
  const char *solver;    /* status of the solver, for statistics */
};

/* False when there is no such verb. */
bool sw_call_init(struct sw_call *c, const char *verb);
/* Whether a parameter may stand in a query more than once. */
bool sw_call_repeats(const struct sw_call *c, const char *name);
/* SW_USAGE with the legal names or values. */
enum sw_rc sw_call_set(struct sw_job *job, struct sw_call *c, const char *name, const char *value);
/* The same for "NAME=VALUE". */
enum sw_rc sw_call_set_pair(struct sw_job *job, struct sw_call *c, const char *pair);
/* A call from the arguments of a task: verb and NAME=VALUE..., each with a NUL behind it. */
enum sw_rc sw_call_read(struct sw_job *job, struct sw_call *c, const char *args, size_t len);
/* Verb and every effective parameter: equal text, equal work. */
void sw_call_write(struct sw_call *c, struct sw_buf *out);
/* The address of the result: of the version, the body and that text. False: out of memory. */
struct sw_body;
bool sw_call_address(struct sw_call *c, struct sw_arena *scratch, const struct sw_body *body, char out[65]);
/* on_pass is told the name of each pass that begins. */
enum sw_rc sw_call_run(struct sw_job *job, struct sw_call *c, const char *bytes, size_t len,
                       void (*on_pass)(void *ctx, const char *pass), void *ctx, struct sw_call_answer *out);

#endif
