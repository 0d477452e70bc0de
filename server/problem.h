/* Errors as application/problem+json (RFC 9457), with all faults of the input in errors[]. */
#ifndef SW_SERVER_PROBLEM_H
#define SW_SERVER_PROBLEM_H

#include "base/json.h"

/* {type, title, status, detail, request_id, errors[]}. `status` is the HTTP one; type is /problems/SLUG; `errors` the
 * text of a JSON array (of sw_jw_faults), NULL for none. */
void sw_problem_object(struct sw_jw *w, const char *slug, unsigned status, const char *detail, const char *request_id,
                       const char *errors);
/* The same as a document of its own. */
void sw_problem_write(struct sw_buf *out, const char *slug, unsigned status, const char *detail,
                      const char *request_id, const char *errors);

#endif
