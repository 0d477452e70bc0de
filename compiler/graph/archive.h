/* A zip file that is not trusted, as files; archive.c says what is looked at. */
#ifndef SW_GRAPH_ARCHIVE_H
#define SW_GRAPH_ARCHIVE_H

#include "base/files.h"

/* All files of the archive in order of their names; each ends at a NUL that is not counted. */
enum sw_rc sw_archive_files(struct sw_job *job, const char *bytes, size_t len, struct sw_files *out);

#endif
