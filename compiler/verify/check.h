/* Written files by their form and structure alone: no model, no data, nothing is executed. */
#ifndef SW_VERIFY_CHECK_H
#define SW_VERIFY_CHECK_H

#include "base/job.h"

/* `path` is a sdsc_N.json, a bundle (a directory with bundle.mlir) or a result directory. Adds to *n_files the files that
 * were read. SW_DIFFERENT with a fault for each rule that is broken; SW_NO_INPUT when there is nothing to check. */
enum sw_rc sw_check_path(struct sw_job *job, const char *path, int *n_files);

#endif
