/* Errors as application/problem+json (RFC 9457), with all faults of the input in errors[]. */
#ifndef SW_SERVER_PROBLEM_H
#define SW_SERVER_PROBLEM_H

#include "base/json.h"

/* {type, title, status, detail, request_id, errors[]}. `status` is the HTTP one; type is /problems/SLUG. */
void sw_problem_write(struct sw_buf *out, const char *slug, unsigned status, const char *detail,
                      const char *request_id, const struct sw_job *faults);

#endif
