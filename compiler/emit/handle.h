/* The debug handle of an op: its source line, its nodes, its own name, as the files carry it. The card does not read it. */
#ifndef SW_EMIT_HANDLE_H
#define SW_EMIT_HANDLE_H

#include "compiler/lower/program.h"

#include <jansson.h>

/* {id, source, aten_op, ir_chain: names of the nodes, then of the op, fused_from, transform_history}; the job's. */
const json_t *sw_debug_handle(struct sw_job *job, const struct sw_program *p, const struct sw_op *op);

#endif
