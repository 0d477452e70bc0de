/* Helpers for the tests of the graph readers. */
#ifndef SW_TESTS_GRAPH_UNIT_H
#define SW_TESTS_GRAPH_UNIT_H

#include "../unit.h"

#include <stdio.h>
#include <string.h>

#include "compiler/graph/graph.h"

static inline struct sw_graph *read_graph(struct sw_job *job, const char *bytes, size_t len)
{
  struct sw_graph *g = NULL;
  enum sw_rc rc = sw_graph_read(job, "folder/case.graph", bytes, len, NULL, &g);
  assert_int_equal(rc == SW_OK, g != NULL);
  assert_true(rc == SW_OK || job->faults.n);
  return g;
}

/* Whether some fault's detail has this text; prints all when not. `where` is its source or node. */
static inline bool has_fault(const struct sw_job *job, const char *text, const char *where)
{
  for (int i = 0; i < job->faults.n; i++) {
    const struct sw_fault *f = &job->faults.v[i];
    bool there = !where || (f->source && !strcmp(f->source, where)) || (f->node && !strcmp(f->node, where));
    if (strstr(f->detail, text) && there)
      return true;
  }
  fprintf(stderr, "no fault \"%s\" at %s among:\n", text, where ? where : "any place");
  for (int i = 0; i < job->faults.n; i++)
    fprintf(stderr, "  %s %s: %s\n", job->faults.v[i].source ? job->faults.v[i].source : "-",
            job->faults.v[i].node ? job->faults.v[i].node : "-", job->faults.v[i].detail);
  return false;
}

static inline const struct sw_value *value_of(const struct sw_graph *g, const char *name)
{
  for (int i = 0; i < g->values.n; i++)
    if (!strcmp(g->values.v[i].name, name))
      return &g->values.v[i];
  fail_msg("no value %s", name);
  return NULL;
}

static inline const struct sw_node *node_of(const struct sw_graph *g, const char *name)
{
  for (int i = 0; i < g->nodes.n; i++)
    if (!strcmp(g->nodes.v[i].name, name))
      return &g->nodes.v[i];
  fail_msg("no node %s", name);
  return NULL;
}

static inline const char *text_of(struct sw_job *job, const struct sw_graph *g)
{
  struct sw_buf b = {.arena = job->arena};
  sw_graph_write_text(g, &b);
  return sw_buf_text(&b);
}

#endif
