/* Dynamic dims after lowering: for which sizes the program is right. */
#ifndef SW_DIMS_H
#define SW_DIMS_H

#include "compiler/pipeline.h"

/* Marks the dims of the graph whose smaller sizes run with the program for the largest one, and the storages and loops
 * that follow them. The graph is read and lowered again for other sizes to see it (compiler/lower/leading.h). */
void sw_find_serving_dims(struct sw_job *job, const struct sw_options *o, const struct sw_compile_input *in,
                          const char *name_of_program, struct sw_graph *g, struct sw_program *p);

/* Sizes that loops share out evenly over the cores, after the plan: `step` of those dims. */
void sw_find_steps_of_dims(struct sw_graph *g, const struct sw_program *p);

#endif
