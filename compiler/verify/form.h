/* The form of a SuperDSC file: names, kinds, ranges. docs/superdsc.schema.json says it, and is part of the program;
 * this reads it, so what the document says and what is checked are one. */
#ifndef SW_VERIFY_FORM_H
#define SW_VERIFY_FORM_H

#include "base/json.h"

struct sim_form;

/* The rules of the schema, ready to use; they belong to the job. */
struct sim_form *sim_form_new(struct sw_job *job);

/* Whether a document has the form. A fault for each place that has not (at most eight a file): file, JSON pointer, what
 * is wrong and the rule of the schema. */
bool sim_form_check(struct sw_job *job, const struct sim_form *f, const char *file, const json_t *root);

#endif
