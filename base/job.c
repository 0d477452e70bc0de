#include "base/job.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct {
  const char *slug;
  int http, exit_code;
} codes[] = {
#define X(id, slug, http, exit_code) {slug, http, exit_code},
    SW_RC_LIST(X)
#undef X
};

const char *sw_rc_slug(enum sw_rc rc)
{
  return codes[rc].slug;
}

int sw_rc_http(enum sw_rc rc)
{
  return codes[rc].http;
}

int sw_rc_exit(enum sw_rc rc)
{
  return codes[rc].exit_code;
}

static char *format(struct sw_arena *a, const char *fmt, va_list ap)
{
  char line[1024];
  vsnprintf(line, sizeof line, fmt, ap);
  return sw_arena_strdup(a, line);
}

static struct sw_fault *record(struct sw_job *job, enum sw_rc rc, const char *fmt, va_list ap)
{
  if (rc > job->worst)
    job->worst = rc;
  struct sw_fault *f;
  if (job->faults.n >= SW_MAX_FAULTS) {
    job->faults_left_out++;
    f = SW_NEW(job->arena, struct sw_fault);
  } else {
    f = SW_PUSH(job->arena, &job->faults);
  }
  f->rc = rc;
  f->detail = format(job->arena, fmt, ap);
  return f;
}

struct sw_fault *sw_fault(struct sw_job *job, enum sw_rc rc, const char *fmt, ...)
{
  va_list ap;
  va_start(ap, fmt);
  struct sw_fault *f = record(job, rc, fmt, ap);
  va_end(ap);
  return f;
}

enum sw_rc sw_fail(struct sw_job *job, enum sw_rc rc, const char *fmt, ...)
{
  va_list ap;
  va_start(ap, fmt);
  record(job, rc, fmt, ap);
  va_end(ap);
  return rc;
}

void sw_warn(struct sw_job *job, const char *fmt, ...)
{
  va_list ap;
  va_start(ap, fmt);
  char *text = format(job->arena, fmt, ap);
  va_end(ap);
  for (int i = 0; i < job->warnings.n; i++)
    if (!strcmp(job->warnings.v[i], text))
      return;
  *SW_PUSH(job->arena, &job->warnings) = text;
}
