/* Why something in a result directory is as it is. Reads result.json, layout_problem.json and dropped.json; the model is not
 * needed. */
#ifndef SW_EXPLAIN_H
#define SW_EXPLAIN_H

#include "base/json.h"

/* NAME is a storage, an op, a node of the graph, a source line ("model.py:12") or a SuperDSC file of the result. A storage:
 * its layout and place, every candidate with the cost of the best plan that has it (the problem solved again with that
 * label forced), layouts that were left out and why, its conversions and what would remove them. Ops, all that belong to the name: nodes, source, file, split,
 * time. SW_NO_INPUT when nothing has that name. */
enum sw_rc sw_explain(struct sw_job *job, const char *dir, const char *name, bool as_json, struct sw_buf *out);

#endif
