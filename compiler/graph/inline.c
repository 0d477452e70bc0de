#include "compiler/graph/build.h"

struct sw_graph *sw_graph__inline(struct sw_job *job, struct sw_graph *g)
{
  (void)job;
  return g;
}
