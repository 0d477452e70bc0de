/* A study that travels in one piece. What comes out is plain: a spec whose graphs are exact names, and the bytes of each,
 * so that whoever reads it afterwards has no archive and no pattern to worry about. */
#include "compiler/graph/archive.h"
#include "compiler/study/study.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_VALUES = 1000000 };

/* A name as a pattern that only it fits. */
static const char *as_pattern(struct sw_arena *a, const char *name)
{
  struct sw_buf b = {.arena = a};
  for (; *name; name++)
    sw_buf_printf(&b, "%s%c", strchr("*?[]\\", *name) ? "\\" : "", *name);
  return sw_buf_text(&b);
}

static enum sw_rc whole_study(struct sw_job *job, const char *given, size_t len, const struct sw_files *files,
                              struct sw_file *spec, struct sw_files *graphs)
{
  struct sw_study *s;
  SW_TRY(sw_study_read(job, given, len, &(struct sw_study_source){"", files, SW_STUDY_MAX_RUNS}, &s));
  json_t *root = sw_json_parse(job, "study", given, len, MAX_VALUES); /* it was read before, so it is an object */
  for (int i = 0; i < s->graphs.n; i++)
    if (strpbrk(s->graphs.v[i].path, "\r\n"))
      return sw_fail(job, SW_USAGE, "study: graph %d has a line break in its name", i);
  json_t *names = json_array();
  for (int i = 0; i < s->graphs.n; i++)
    json_array_append_new(names, json_string(as_pattern(job->arena, s->graphs.v[i].path)));
  if (json_object_set_new(root, "graphs", names))
    return sw_fail(job, SW_LIMIT, "study: out of memory");
  char *text = json_dumps(root, JSON_COMPACT);
  if (!text)
    return sw_fail(job, SW_LIMIT, "study: out of memory");
  sw_arena_defer(job->arena, free, text);
  *spec = (struct sw_file){"study.json", text, strlen(text)};
  for (int i = 0; i < s->graphs.n; i++)
    sw_files_add(job, graphs, s->graphs.v[i].path, s->graphs.v[i].bytes, s->graphs.v[i].len);
  return SW_OK;
}

enum sw_rc sw_study_unpack(struct sw_job *job, const char *bytes, size_t len, struct sw_file *spec, struct sw_files *graphs)
{
  struct sw_files files = {0};
  if (len < 2 || memcmp(bytes, "PK", 2))
    return whole_study(job, bytes, len, &files, spec, graphs);
  SW_TRY(sw_archive_files(job, bytes, len, &files));
  for (int i = 0; i < files.list.n; i++) {
    const struct sw_file *f = &files.list.v[i];
    if (!strcmp(f->path, "study.json"))
      return whole_study(job, f->bytes, f->len, &files, spec, graphs);
  }
  sw_fault(job, SW_USAGE, "study: the archive has no study.json")->advice =
      "put the spec at its top, under this name; /graphs are names in the archive";
  return SW_USAGE;
}
