/* What work owns, and what became of it. */
#include "server/worker.h"

#include <stdlib.h>
#include <string.h>

void sw_task_clear(struct sw_task *t)
{
  free(t->args);
  sw_body_free(t->body);
  t->args = NULL;
  t->body = NULL;
}

void sw_outcome_problem(struct sw_outcome *o, unsigned status, const char *slug, const char *detail)
{
  o->status = status;
  o->slug = strdup(slug);
  o->detail = strdup(detail);
}

static char *copy_text(const char *s)
{
  return s ? strdup(s) : NULL;
}

void sw_outcome_copy(struct sw_outcome *to, const struct sw_outcome *from)
{
  *to = (struct sw_outcome){.status = from->status, .result = from->result, .slug = copy_text(from->slug),
                            .detail = copy_text(from->detail), .errors = copy_text(from->errors)};
  if (to->result)
    sw_result_take(to->result);
}

void sw_outcome_clear(struct sw_outcome *o)
{
  sw_result_put(o->result);
  free(o->slug);
  free(o->detail);
  free(o->errors);
  free(o->solver);
  free(o->log);
  memset(o, 0, sizeof *o);
}
