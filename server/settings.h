/* What the daemon is told: options on the command line, and the same names in a file (--config), which the command line
 * overrides. The file and the token are read again on SIGHUP. */
#ifndef SW_SERVER_SETTINGS_H
#define SW_SERVER_SETTINGS_H

#include "server/http.h"

#include <stdio.h>

/* Options with a text as value: X(field, name, VALUE, what). */
#define SW_SERVER_TEXTS(X)                                                                                                     \
  X(listen, "listen", "ADDRESS:PORT",                                                                                          \
    "where to listen (127.0.0.1:8417); port 0 takes a free one, the first line of output names it")                            \
  X(store, "store", "FILE", "keep results and jobs in this file (STATE_DIRECTORY/store.db; without either: in memory)")        \
  X(aside, "aside", "DIR", "keep notes on workers that died here (beside the store: FILE.aside)")                              \
  X(token_file, "token-file", "FILE", "ask for the bearer token in this file; for listening beyond loopback")                  \
  X(log, "log", "FILE", "append the log to this file (standard error)")                                                        \
  X(config, "config", "FILE", "options as lines NAME = VALUE, read again on SIGHUP; the command line goes first")

struct sw_settings {
#define X(field, name, value, what) char *field; /* malloced, or NULL */
  SW_SERVER_TEXTS(X)
#undef X
  struct sw_limits limits;
  char token[256]; /* of the token file, "" without one */
};

void sw_settings_usage(FILE *to);
/* Reads arguments, file, environment and token into empty settings. An exit code (--help and the like: 0), or -1 to go on.
 * What is wrong is said on standard error. */
int sw_settings_read(struct sw_settings *s, int argc, char **argv);
void sw_settings_clear(struct sw_settings *s);

#endif
