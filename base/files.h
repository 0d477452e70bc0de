/* Files as values: reading one with a limit, and a set of output files that is written to disk all or nothing (or put
 * into an HTTP answer, or a zip) when the work is done. A large set need not be in memory: with a directory behind it
 * each file is written as it comes, and the directory appears when the set is closed.
 *
 *   struct sw_files fs = {.dir = sw_files_dir(job, "out", "result.json")};
 *   sw_files_add(job, &fs, "bundle_0/sdsc_0.json", text, n);   the text may go now
 *   sw_files_close(job, fs.dir);                               out/ is there; else nothing of it */
#ifndef SW_BASE_FILES_H
#define SW_BASE_FILES_H

#include "base/job.h"

struct sw_file {
  const char *path; /* relative, '/' between parts, never "..", in order of adding */
  const void *bytes;
  size_t len;
};

struct sw_files_dir;
struct sw_files {
  SW_VEC(struct sw_file) list; /* empty when there is a directory */
  struct sw_files_dir *dir;
};

/* Borrows bytes: until the job's end, or for the call when there is a directory. */
void sw_files_add(struct sw_job *job, struct sw_files *fs, const char *path, const void *bytes, size_t len);

/* Whole file, or stdin for "-", NUL-terminated behind the end; SW_NO_INPUT, SW_LIMIT over max_bytes, SW_IO. */
enum sw_rc sw_file_read(struct sw_job *job, const char *path, size_t max_bytes, const char **bytes, size_t *len);

/* Writes a file beside its place and renames it, so that there is the old one or the whole new one; SW_IO. */
enum sw_rc sw_file_put(struct sw_job *job, const char *path, const void *bytes, size_t len);

/* A directory for a set: files go into a temporary sibling of `path` (made with the first one), which the close renames.
 * An existing directory is replaced when it holds a `marker` file of an earlier run (or is empty), else refused. Nothing
 * is left behind on failure, or when the job ends without a close. NULL after a fault. */
struct sw_files_dir *sw_files_dir(struct sw_job *job, const char *path, const char *marker);
/* A set whose files are made and dropped, for who wants to know whether they can be made. */
struct sw_files_dir *sw_files_nowhere(struct sw_job *job);
/* The first fault of writing, if there was one. */
enum sw_rc sw_files_close(struct sw_job *job, struct sw_files_dir *d);

/* Writes a set that is in memory as directory `dir`, in the same way. */
enum sw_rc sw_files_write(struct sw_job *job, const struct sw_files *fs, const char *dir, const char *marker);

#endif
