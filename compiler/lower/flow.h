/* Control flow made straight: cond as both sides and a choice, while_loop as so many copies of its body. */
#ifndef SW_LOWER_FLOW_H
#define SW_LOWER_FLOW_H

#include "base/options.h"
#include "compiler/graph/graph.h"

/* What a loop may grow to. */
enum { LW_MAX_TURNS = 1000, LW_MAX_FLOW_NODES = 100000, LW_MAX_FLOW_DEPTH = 32 };

/* *g without cond and while_loop (a new graph; the same one where it has none), or one fault for each that can't be made straight.
 * Numbers of nodes and values change, names of outputs don't. */
enum sw_rc lw_straighten(struct sw_job *job, const struct sw_options *o, const struct sw_graph **g);

#endif
