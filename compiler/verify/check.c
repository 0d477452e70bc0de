#include "compiler/verify/check.h"

#include "base/files.h"
#include "compiler/verify/bundle.h"

#include <string.h>
#include <sys/stat.h>

static bool from_disk(void *ctx, struct sw_job *job, const char *name, const char **text, size_t *len)
{
  char *path = sw_arena_printf(job->arena, "%s/%s", (const char *)ctx, name);
  return sw_file_read(job, path, (size_t)1 << 31, text, len) == SW_OK;
}

static bool exists(const char *path)
{
  struct stat s;
  return !stat(path, &s);
}

static enum sw_rc check_bundle(struct sw_job *job, const char *dir, int *n_files)
{
  int n = 0;
  enum sw_rc rc = sim_check_bundle(job, &(struct sim_files){from_disk, (void *)(intptr_t)dir}, &n);
  *n_files += n;
  return rc;
}

static enum sw_rc check_file(struct sw_job *job, const char *path, int *n_files)
{
  const char *text, *slash = strrchr(path, '/');
  size_t len;
  SW_TRY(sw_file_read(job, path, (size_t)1 << 31, &text, &len));
  const struct sim_form *form = sim_form_new(job);
  if (!form || !dsc_read(job, form, slash ? slash + 1 : path, text, len))
    return job->worst;
  ++*n_files;
  return SW_OK;
}

enum sw_rc sw_check_path(struct sw_job *job, const char *path, int *n_files)
{
  struct stat s;
  if (stat(path, &s) || !S_ISDIR(s.st_mode))
    return check_file(job, path, n_files);
  if (exists(sw_arena_printf(job->arena, "%s/bundle.mlir", path)))
    return check_bundle(job, path, n_files);
  int n = 0;
  enum sw_rc worst = SW_OK;
  for (char *at; exists(at = sw_arena_printf(job->arena, "%s/bundle_%d", path, n)); n++)
    worst = check_bundle(job, at, n_files) == SW_OK ? worst : job->worst;
  return n ? worst : sw_fail(job, SW_NO_INPUT, "%s holds no bundle", path);
}
