/* Notes on workers that died: what they were given and what they said last, for whoever looks for the reason. */
#ifndef SW_SERVER_ASIDE_H
#define SW_SERVER_ASIDE_H

#include "server/worker.h"

/* Writes DIR/ADDRESS.json {id, verb, parameters, ended, log} and, when it is not larger than 16 MB, DIR/ADDRESS.body.
 * `stickwright VERB` with these parameters on that body is the reproducer. `dir` NULL, or as many
 * notes as that there already: only the log line. */
void sw_aside_write(const char *dir, long most, const struct sw_task *t, const struct sw_outcome *o);

#endif
