#include "solver/glpk_trap.h"

#include <glpk.h>
#include <setjmp.h>
#include <stdio.h>

struct trap {
  jmp_buf back;
  char *message;
};

/* Swallowed, but the last text says what went wrong if something does. GLP_OFF alone would still print errors. */
static int on_text(void *info, const char *text)
{
  struct trap *t = info;
  snprintf(t->message, 128, "%.120s", text);
  return 1;
}

static void on_error(void *info)
{
  longjmp(((struct trap *)info)->back, 1);
}

bool sw_glpk_run(void (*body)(void *ctx), void *ctx, char message[128])
{
  struct trap t = {.message = message};
  message[0] = 0;
  volatile bool finished = false;
  if (!setjmp(t.back)) {
    glp_term_hook(on_text, &t);
    glp_error_hook(on_error, &t);
    body(ctx);
    finished = true;
  }
  glp_error_hook(NULL, NULL);
  glp_term_hook(NULL, NULL);
  glp_free_env();
  return finished;
}
