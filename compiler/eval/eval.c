#include "compiler/eval/call.h"

#include "base/map.h"

#include <limits.h>
#include <string.h>

/* Subgraphs in subgraphs. */
enum { MAX_DEPTH = 32 };

static struct sw_eval *make(struct sw_arena *a, struct sw_job *job, const struct sw_graph *g, enum sw_rounding rounding,
                            struct sw_memory *m)
{
  struct sw_eval *e = SW_NEW(a, struct sw_eval);
  *e = (struct sw_eval){.job = job, .graph = g, .rounding = rounding, .memory = m};
  e->values = SW_NEW_N(a, struct sw_evaluated, g->values.n);
  for (int i = 0; i < g->inputs.n; i++)
    if (g->inputs.v[i].record >= e->n_records)
      e->n_records = g->inputs.v[i].record + 1;
  e->records = SW_NEW_N(a, struct sw_cells *, e->n_records);
  return e;
}

struct sw_eval *sw_eval_new(struct sw_job *job, const struct sw_graph *g, enum sw_rounding rounding, size_t max_bytes)
{
  struct sw_memory *m = SW_NEW(job->arena, struct sw_memory);
  m->max = max_bytes;
  sw_arena_defer(job->arena, sw_memory_free, m);
  return make(job->arena, job, g, rounding, m);
}

void sw_eval_forget(struct sw_eval *e)
{
  sw_memory_free(e->memory);
  memset(e->values, 0, (size_t)e->graph->values.n * sizeof *e->values);
  memset(e->records, 0, (size_t)e->n_records * sizeof *e->records);
}

void sw_eval_release(struct sw_eval *e, int value)
{
  struct sw_evaluated *v = &e->values[value];
  if (v->kind == SW_TENSOR)
    sw_cells_drop(v->tensor.cells);
  *v = (struct sw_evaluated){.kind = SW_UNKNOWN};
}

void sw_eval_keep(struct sw_eval *e, int value, const struct sw_evaluated *v)
{
  if (v->kind == SW_TENSOR)
    sw_cells_take(v->tensor.cells);
  sw_eval_release(e, value);
  e->values[value] = *v;
}

void sw_eval_set(struct sw_eval *e, int value, const struct sw_tensor *t)
{
  sw_eval_keep(e, value, &(struct sw_evaluated){.kind = SW_TENSOR, .tensor = *t});
}

void sw_eval_set_number(struct sw_eval *e, int value, struct sw_number n)
{
  sw_eval_keep(e, value, &(struct sw_evaluated){.kind = SW_NUMBER, .number = n});
}

const struct sw_evaluated *sw_eval_value(const struct sw_eval *e, int value)
{
  return &e->values[value];
}

bool sw_eval_knows(const char *target)
{
  bool in_place;
  return sw_eval_op_find(target, &in_place) != NULL;
}

bool sw_eval_load(struct sw_eval *e, int input)
{
  const struct sw_input *in = &e->graph->inputs.v[input];
  if (in->value < 0)
    return false;
  const struct sw_value *v = &e->graph->values.v[in->value];
  struct sw_tensor t = {.dtype = v->dtype, .rank = v->rank, .offset = in->offset};
  for (int d = 0; d < v->rank; d++) {
    t.size[d] = v->size[d];
    t.stride[d] = in->stride ? in->stride[d] : 0;
  }
  if (!in->stride)
    sw_dense(t.rank, t.size, t.stride);
  sw_tensor_tidy(&t);
  int64_t n = (int64_t)(in->n_bytes / (size_t)sw_dtype_bytes(v->dtype));
  if (!in->bytes) {
    if (sw_tensor_elements(&t) != 0)
      return false;
    n = 0;
  }
  struct sw_cells *shared = in->record >= 0 ? e->records[in->record] : NULL;
  if (shared && shared->dtype == v->dtype) {
    t.cells = shared;
  } else {
    t.cells = sw_cells_new(e->memory, v->dtype, n);
    if (!t.cells)
      return false;
    if (n > 0)
      sw_cells_decode(t.cells, in->bytes);
    if (in->record >= 0 && !shared) {
      e->records[in->record] = t.cells;
      sw_cells_take(t.cells);
    }
  }
  if (sw_tensor_inside(&t)) {
    sw_eval_set(e, in->value, &t);
    return true;
  }
  sw_cells_take(t.cells);
  sw_cells_drop(t.cells);
  return false;
}

/* -- one node -- */

/* Calls fn for every value among arguments, those in lists included. */
static void each_value(const struct sw_arg *args, int n, void (*fn)(void *ctx, int value), void *ctx)
{
  for (int i = 0; i < n; i++) {
    if (args[i].kind == SW_ARG_VALUE)
      fn(ctx, args[i].value);
    else if (args[i].kind == SW_ARG_LIST)
      each_value(args[i].list.v, args[i].list.n, fn, ctx);
  }
}

struct ask {
  const struct sw_eval *e;
  bool known;
};

static void note_unknown(void *p, int value)
{
  struct ask *q = p;
  q->known = q->known && q->e->values[value].kind != SW_UNKNOWN;
}

/* An op that writes into an argument (`self` of an in-place one, or `out`) computed its result aside; here it goes
 * there, and the argument becomes the result. */
static void write_through(struct sw_call *c, const char *name)
{
  struct sw_tensor to = sw_call_tensor(c, name);
  if (c->first.cells != to.cells) {
    sw_call_copy(c, &to, &c->first);
    sw_call_out_view(c, 0, to);
  }
}

static enum sw_rc run_op(struct sw_eval *e, const struct sw_node *node, bool *over_limit)
{
  bool in_place;
  const struct sw_eval_op *op = sw_eval_op_find(node->target, &in_place);
  if (!op) {
    struct sw_fault *f = sw_fault(e->job, SW_UNSUPPORTED, "%s has no meaning on the host", node->target);
    f->node = node->name;
    f->source = node->source;
    return SW_UNSUPPORTED;
  }
  uint64_t mark = e->memory->n_made;
  struct sw_arena *scratch = sw_arena_new(e->job->arena, 0);
  struct sw_call *c = SW_NEW(scratch, struct sw_call);
  *c = (struct sw_call){.eval = e, .node = node, .op = op, .scratch = scratch, .rounding = e->rounding,
                        .in_place = in_place};
  if (!setjmp(c->out)) {
    op->fn(c);
    if (in_place || sw_call_has(c, "out"))
      write_through(c, in_place ? "self" : "out");
  } else {
    for (int i = 0; i < node->n_results; i++)
      if (node->results[i] >= 0)
        sw_eval_release(e, node->results[i]);
  }
  enum sw_rc rc = c->rc;
  *over_limit = c->over_limit;
  sw_memory_sweep(e->memory, mark);
  sw_arena_free(scratch);
  return rc;
}

static enum sw_rc run_node(struct sw_eval *e, int node, bool *over_limit)
{
  const struct sw_node *n = &e->graph->nodes.v[node];
  struct ask q = {e, true};
  int first = sw_eval_needs_size_only(n->target) && n->n_args ? 1 : 0;
  each_value(n->args + first, n->n_args - first, note_unknown, &q);
  for (int i = 0; i < n->n_results; i++)
    if (n->results[i] >= 0)
      sw_eval_release(e, n->results[i]);
  return q.known ? run_op(e, n, over_limit) : SW_OK;
}

enum sw_rc sw_eval_node(struct sw_eval *e, int node)
{
  bool over_limit = false;
  return run_node(e, node, &over_limit);
}

/* -- a whole graph -- */

struct run {
  struct sw_eval *e;
  int *last;     /* per value: the last node that reads it; INT_MAX: stays */
  int *input_of; /* per value: its input, or -1 */
  int node;
  enum sw_rc rc;
};

static void note_reader(void *p, int value)
{
  struct run *r = p;
  if (r->last[value] < r->node)
    r->last[value] = r->node;
}

/* An input that nobody gave is a parameter, buffer or constant to be loaded when the first reader comes. */
static void load_input(void *p, int value)
{
  struct run *r = p;
  int i = r->input_of[value];
  if (r->e->values[value].kind != SW_UNKNOWN || i < 0 || sw_eval_load(r->e, i))
    return;
  const struct sw_input *in = &r->e->graph->inputs.v[i];
  r->input_of[value] = -1;
  bool too_large = in->bytes != NULL;
  struct sw_fault *f = sw_fault(r->e->job, too_large ? SW_LIMIT : SW_INVALID,
                                too_large ? "%s does not fit into the memory of the evaluator" : "%s has no values",
                                in->target ? in->target : in->name);
  f->tensor = in->name;
  f->advice = too_large ? NULL : in->kind == SW_INPUT_USER ? "give it among the inputs" : "use a program with weights";
  if (r->rc < f->rc)
    r->rc = f->rc;
}

static void forget_if_last(void *p, int value)
{
  struct run *r = p;
  if (r->last[value] != r->node)
    return;
  sw_eval_release(r->e, value);
  int i = r->input_of[value];
  int record = i >= 0 ? r->e->graph->inputs.v[i].record : -1;
  if (record >= 0 && r->e->records[record]) {
    sw_cells_drop(r->e->records[record]);
    r->e->records[record] = NULL;
  }
}

/* Inputs of one record show the same cells: those stay until the last reader of any of them. */
static void join_records(struct run *r, struct sw_arena *a)
{
  const struct sw_graph *g = r->e->graph;
  int *last = SW_NEW_N(a, int, r->e->n_records);
  for (int pass = 0; pass < 2; pass++)
    for (int i = 0; i < g->inputs.n; i++) {
      const struct sw_input *in = &g->inputs.v[i];
      if (in->value < 0 || in->record < 0)
        continue;
      int *one = &r->last[in->value], *all = &last[in->record];
      if (*one > *all)
        *all = *one;
      else if (pass == 1)
        *one = *all;
    }
}

static void plan(struct run *r, struct sw_arena *a)
{
  const struct sw_graph *g = r->e->graph;
  r->last = SW_NEW_N(a, int, g->values.n);
  r->input_of = SW_NEW_N(a, int, g->values.n);
  for (int v = 0; v < g->values.n; v++)
    r->input_of[v] = -1;
  for (r->node = 0; r->node < g->nodes.n; r->node++) {
    const struct sw_node *n = &g->nodes.v[r->node];
    each_value(n->args, n->n_args, note_reader, r);
    for (int i = 0; i < n->n_results; i++)
      if (n->results[i] >= 0)
        note_reader(r, n->results[i]);
  }
  for (int i = 0; i < g->inputs.n; i++)
    if (g->inputs.v[i].value >= 0)
      r->input_of[g->inputs.v[i].value] = i;
  r->node = INT_MAX;
  for (int i = 0; i < g->inputs.n; i++)
    if (g->inputs.v[i].value >= 0 && (g->inputs.v[i].kind == SW_INPUT_USER || g->inputs.v[i].kind == SW_INPUT_BUFFER))
      note_reader(r, g->inputs.v[i].value);
  for (int i = 0; i < g->outputs.n; i++)
    each_value(&g->outputs.v[i].arg, 1, note_reader, r);
  join_records(r, a);
}

static enum sw_rc run_nodes(struct run *r)
{
  const struct sw_graph *g = r->e->graph;
  struct sw_job *job = r->e->job;
  for (r->node = 0; r->node < g->nodes.n; r->node++) {
    const struct sw_node *n = &g->nodes.v[r->node];
    if (sw_cancelled(job))
      return sw_fail(job, SW_CANCELLED, "cancelled at node %s", n->name);
    bool over_limit = false;
    each_value(n->args, n->n_args, load_input, r);
    enum sw_rc rc = run_node(r->e, r->node, &over_limit);
    if (over_limit) {
      struct sw_fault *f = sw_fault(job, SW_LIMIT, "%s would not fit into the memory of the evaluator", n->target);
      f->node = n->name;
      f->source = n->source;
      f->has_limit = true;
      f->value = (int64_t)r->e->memory->used;
      f->limit = (int64_t)r->e->memory->max;
      rc = SW_LIMIT;
    }
    if (rc > r->rc)
      r->rc = rc;
    each_value(n->args, n->n_args, forget_if_last, r);
    for (int i = 0; i < n->n_results; i++)
      if (n->results[i] >= 0)
        forget_if_last(r, n->results[i]);
  }
  for (int i = 0; i < g->outputs.n; i++)
    each_value(&g->outputs.v[i].arg, 1, load_input, r);
  return r->rc;
}

/* What a functional program says to copy into buffers and inputs after the run. New values are taken aside first: one
 * may be another's old one. */
static enum sw_rc write_mutations(struct sw_eval *e, struct sw_arena *a)
{
  const struct sw_graph *g = e->graph;
  struct sw_map names = {.arena = a};
  for (int i = 0; i < g->inputs.n; i++) {
    const struct sw_input *in = &g->inputs.v[i];
    if (in->value >= 0 && (in->kind == SW_INPUT_USER ? in->name : in->target))
      sw_map_set_str(&names, in->kind == SW_INPUT_USER ? in->name : in->target, i);
  }
  struct sw_tensor *fresh = SW_NEW_N(a, struct sw_tensor, g->outputs.n);
  for (int pass = 0; pass < 2; pass++)
    for (int i = 0; i < g->outputs.n; i++) {
      const struct sw_output *o = &g->outputs.v[i];
      if (o->kind == SW_OUTPUT_USER || o->arg.kind != SW_ARG_VALUE)
        continue;
      const struct sw_evaluated *v = &e->values[o->arg.value];
      int64_t input = sw_map_get_str(&names, o->target);
      if (input < 0)
        return sw_fail(e->job, SW_INVALID, "the mutated %s is not an input", o->target);
      if (e->values[g->inputs.v[input].value].kind == SW_UNKNOWN)
        sw_eval_load(e, (int)input);
      const struct sw_evaluated *to = &e->values[g->inputs.v[input].value];
      if (v->kind != SW_TENSOR || to->kind != SW_TENSOR || v->tensor.rank != to->tensor.rank ||
          memcmp(v->tensor.size, to->tensor.size, sizeof v->tensor.size[0] * (size_t)v->tensor.rank))
        return sw_fail(e->job, SW_INVALID, "the new value of %s has another size", o->target);
      if (pass == 0) {
        fresh[i] = v->tensor;
        fresh[i].cells = sw_cells_new(e->memory, v->tensor.dtype, sw_tensor_elements(&v->tensor));
        if (!fresh[i].cells)
          return sw_fail(e->job, SW_LIMIT, "the new value of %s does not fit into the memory of the evaluator",
                         o->target);
        fresh[i].offset = 0;
        sw_dense(fresh[i].rank, fresh[i].size, fresh[i].stride);
        sw_tensor_copy(&fresh[i], &v->tensor, e->rounding);
      } else {
        sw_tensor_copy(&to->tensor, &fresh[i], e->rounding);
      }
    }
  return SW_OK;
}

static enum sw_rc run_all(struct sw_eval *e)
{
  struct sw_arena *a = sw_arena_new(e->job->arena, 0);
  uint64_t mark = e->memory->n_made;
  struct run r = {.e = e};
  plan(&r, a);
  enum sw_rc rc = run_nodes(&r);
  if (rc == SW_OK)
    rc = write_mutations(e, a);
  sw_memory_sweep(e->memory, mark);
  sw_arena_free(a);
  return rc;
}

enum sw_rc sw_eval_all(struct sw_eval *e)
{
  return run_all(e);
}

void sw_eval_subgraph(struct sw_call *c, const struct sw_graph *g, int n_args, const struct sw_evaluated *args,
                      int n_results, struct sw_evaluated *results)
{
  struct sw_eval *e = c->eval;
  if (e->depth == MAX_DEPTH)
    sw_call_stop(c, SW_LIMIT, "subgraphs are nested deeper than %d", MAX_DEPTH);
  if (g->inputs.n != n_args || g->outputs.n != n_results)
    sw_call_stop(c, SW_INVALID, "a subgraph takes %d values and gives %d, not %d and %d", g->inputs.n, g->outputs.n,
                 n_args, n_results);
  struct sw_arena *a = sw_arena_new(e->job->arena, 0);
  struct sw_eval *inner = make(a, e->job, g, c->rounding, e->memory);
  inner->depth = e->depth + 1;
  for (int i = 0; i < n_args; i++)
    if (g->inputs.v[i].value >= 0)
      sw_eval_keep(inner, g->inputs.v[i].value, &args[i]);
  enum sw_rc rc = run_all(inner);
  for (int i = 0; rc == SW_OK && i < n_results; i++) {
    const struct sw_arg *o = &g->outputs.v[i].arg;
    if (o->kind == SW_ARG_VALUE)
      results[i] = inner->values[o->value];
    else if (o->kind == SW_ARG_INT || o->kind == SW_ARG_BOOL || o->kind == SW_ARG_REAL)
      results[i] = (struct sw_evaluated){.kind = SW_NUMBER, .number = sw_call_number(c, o)};
    if (results[i].kind == SW_TENSOR)
      sw_cells_take(results[i].tensor.cells);
  }
  for (int v = 0; v < g->values.n; v++)
    sw_eval_release(inner, v);
  sw_arena_free(a);
  if (rc != SW_OK)
    sw_call_leave(c, rc);
}
