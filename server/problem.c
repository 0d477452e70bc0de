#include "server/problem.h"

#include <string.h>

/* Slugs that are not codes of a job: the daemon's own. */
static const struct {
  const char *slug, *title;
} titles[] = {
    {"infeasible", "No plan exists under the given pins and rules"},
    {"unsupported", "The graph uses something that is not supported"},
    {"bad-input", "The input can't be understood"},
    {"limit", "A limit is exceeded"},
    {"deadline", "The work took too long"},
    {"cancelled", "The work was cancelled"},
    {"usage", "The request is not well formed"},
    {"io", "Reading or writing failed"},
    {"internal", "A fault of the service"},
    {"not-found", "There is no such resource"},
    {"not-done", "The resource is not there yet"},
    {"method", "The resource has no such method"},
    {"media-type", "The body's media type is not accepted"},
    {"busy", "Too many requests are waiting"},
    {"host", "The Host header names another host"},
    {"token", "The request needs a bearer token"},
    {"encoding", "The body's encoding is not accepted"},
};

static const char *title(const char *slug)
{
  for (size_t i = 0; i < sizeof titles / sizeof titles[0]; i++)
    if (!strcmp(titles[i].slug, slug))
      return titles[i].title;
  return slug;
}

void sw_problem_object(struct sw_jw *w, const char *slug, unsigned status, const char *detail, const char *request_id,
                       const char *errors)
{
  sw_jw_object(w);
  sw_jw_kstr(w, "type", sw_arena_printf(w->out->arena, "/problems/%s", slug));
  sw_jw_kstr(w, "title", title(slug));
  sw_jw_kint(w, "status", status);
  sw_jw_kstr(w, "detail", detail);
  sw_jw_kstr(w, "request_id", request_id);
  sw_jw_key(w, "errors");
  sw_jw_array(w);
  size_t n = errors && errors[0] == '[' ? strlen(errors) - 1 : 0; /* up to its last bracket and the blanks before it */
  while (n > 1 && strchr(" \n]", errors[n - 1]))
    n--;
  if (n > 1) {
    sw_buf_add(w->out, errors + 1, n - 1);
    w->need_comma = true;
  }
  sw_jw_end_array(w);
  sw_jw_end_object(w);
}

void sw_problem_write(struct sw_buf *out, const char *slug, unsigned status, const char *detail,
                      const char *request_id, const char *errors)
{
  struct sw_jw w = {.out = out, .indent = 1};
  sw_problem_object(&w, slug, status, detail, request_id, errors);
  sw_buf_puts(out, "\n");
}
