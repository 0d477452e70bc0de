/* Files as values: reading one with a limit, and a set of output files that is written to disk all or nothing (or put
 * into an HTTP answer, or a zip) when the work is done. */
#ifndef SW_BASE_FILES_H
#define SW_BASE_FILES_H

#include "base/job.h"

struct sw_file {
  const char *path; /* relative, '/' between parts, never "..", in order of adding */
  const void *bytes;
  size_t len;
};

struct sw_files {
  SW_VEC(struct sw_file) list;
};

/* Borrows bytes; they live in the job's arena. */
void sw_files_add(struct sw_job *job, struct sw_files *fs, const char *path, const void *bytes, size_t len);

/* Whole file, or stdin for "-", NUL-terminated behind the end; SW_NO_INPUT, SW_LIMIT over max_bytes, SW_IO. */
enum sw_rc sw_file_read(struct sw_job *job, const char *path, size_t max_bytes, const char **bytes, size_t *len);

/* Writes a file beside its place and renames it, so that there is the old one or the whole new one; SW_IO. */
enum sw_rc sw_file_put(struct sw_job *job, const char *path, const void *bytes, size_t len);

/* Writes the set as directory `dir`: into a temporary sibling, then renamed. An existing directory is replaced when
 * it holds a `marker` file of an earlier run (or is empty), else refused. Nothing is left behind on failure. */
enum sw_rc sw_files_write(struct sw_job *job, const struct sw_files *fs, const char *dir, const char *marker);

#endif
