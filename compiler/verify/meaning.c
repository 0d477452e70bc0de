#include "compiler/verify/meaning.h"

#include <math.h>
#include <string.h>

enum { MOST_BYTES_SHIFT = 33 }; /* 8 GiB */

/* The evaluator writes into what it is given when the graph changes an input in place. */
static struct sw_tensor *copy_of(struct sw_arena *a, const struct sw_tensor *t)
{
  struct sw_tensor *c = sw_arena_copy(a, t, 1, sizeof *t);
  c->cells = sw_arena_copy(a, t->cells, 1, sizeof *t->cells);
  if (t->cells->real)
    c->cells->real = sw_arena_copy(a, t->cells->real, (size_t)t->cells->n, sizeof(double));
  if (t->cells->integer)
    c->cells->integer = sw_arena_copy(a, t->cells->integer, (size_t)t->cells->n, sizeof(int64_t));
  return c;
}

static struct sw_eval *begin(struct sw_job *job, const struct sw_graph *g, const struct sim_given *given, int n,
                             enum sw_rounding rounding)
{
  struct sw_eval *e = sw_eval_new(job, g, rounding, (size_t)1 << MOST_BYTES_SHIFT);
  for (int i = 0; i < g->inputs.n; i++) {
    int value = g->inputs.v[i].value;
    if (value < 0)
      continue;
    if (g->values.v[value].kind == SW_VALUE_SYM_INT)
      sw_eval_set_number(e, value, (struct sw_number){.kind = SW_NUMBER_INT, .i = g->values.v[value].hint});
    else if (g->inputs.v[i].kind != SW_INPUT_USER)
      sw_eval_load(e, i);
  }
  for (int i = 0; i < n; i++)
    sw_eval_set(e, given[i].value, copy_of(job->arena, given[i].t));
  return e;
}

enum sw_rc sim_evaluate(struct sw_job *job, const struct sw_graph *g, const struct sim_given *given, int n,
                        enum sw_rounding rounding, struct sw_eval **out)
{
  *out = begin(job, g, given, n, rounding);
  return sw_eval_all(*out);
}

double sim_distance(struct sw_arena *a, const struct sw_evaluated *x, const struct sw_evaluated *y)
{
  int64_t n, m;
  double most = 0;
  if (!x || !y || x->kind != SW_TENSOR || y->kind != SW_TENSOR || !x->tensor.cells || !x->tensor.cells->real)
    return 0;
  const double *v = sw_tensor_reals(a, &x->tensor, &n), *w = sw_tensor_reals(a, &y->tensor, &m);
  for (int64_t i = 0; i < n && i < m; i++)
    if (isfinite(v[i]) && isfinite(w[i]))
      most = fmax(most, fabs(v[i] - w[i]));
  return most;
}

/* Ops whose results jump, by the middle of their name. */
static const char *const jumps[] = {"floor", "ceil", "round", "trunc", "frac", "sign", "sgn", "eq", "ne", "gt", "ge", "lt", "le",
                                    "argmax", "argmin", "topk", "sort", "argsort", "fmod", "remainder", "floor_divide",
                                    "bucketize", "searchsorted", "nonzero", "max", "min", "logical_not"};

static const struct sw_node *jump(const struct sw_graph *g)
{
  for (int i = 0; i < g->nodes.n; i++) {
    const struct sw_node *node = &g->nodes.v[i];
    const char *dot = strchr(node->target, '.'), *name = dot ? dot + 1 : node->target;
    size_t n = strcspn(name, ".");
    bool to_integer = node->n_results && node->results[0] >= 0 && !sw_dtype_is_float(g->values.v[node->results[0]].dtype);
    for (size_t k = 0; k < sizeof jumps / sizeof jumps[0]; k++)
      if (strlen(jumps[k]) == n && !memcmp(jumps[k], name, n))
        return node;
    if (to_integer && (!strncmp(name, "_to_copy", n) || !strncmp(name, "to", n)))
      return node;
  }
  return NULL;
}

/* The first node whose 16-bit numbers are beyond what fp16 holds: above 65504, or below half of its smallest step. */
static const struct sw_node *out_of_range(struct sw_job *job, const struct sw_graph *g, const struct sim_given *given, int n)
{
  struct sw_eval *e = begin(job, g, given, n, SW_ROUND_NONE);
  for (int i = 0; i < g->nodes.n; i++) {
    const struct sw_node *node = &g->nodes.v[i];
    if (sw_eval_node(e, i) != SW_OK)
      return NULL;
    for (int k = 0; k < node->n_results; k++) {
      const struct sw_evaluated *v = node->results[k] < 0 ? NULL : sw_eval_value(e, node->results[k]);
      if (!v || v->kind != SW_TENSOR || !v->tensor.cells || !v->tensor.cells->real ||
          (v->tensor.dtype != SW_F16 && v->tensor.dtype != SW_BF16))
        continue;
      for (int64_t j = 0; j < v->tensor.cells->n; j++) {
        double size = fabs(v->tensor.cells->real[j]);
        if (size > 65504 || (size > 0 && size < 0x1p-25))
          return node;
      }
    }
  }
  return NULL;
}

/* Moves every element of a float by half a step of a 16-bit number as large as the tensor's largest: what rounding inside of
 * an op does to results much smaller than what they are made of, as the middle of a norm's row. Which way is a matter of the
 * element's number alone. */
static void disturb(const struct sw_tensor *t)
{
  double most = 0;
  for (int64_t j = 0; j < t->cells->n; j++)
    if (isfinite(t->cells->real[j]))
      most = fmax(most, fabs(t->cells->real[j]));
  for (int64_t j = 0; j < t->cells->n; j++)
    t->cells->real[j] += ((uint32_t)j * 2654435761u >> 31 ? 1 : -1) * most * 0x1p-11;
}

/* The first output that differs, if no output differs by more than four times what disturbing each result of the graph
 * does to it. Views and results in place show cells that were disturbed already. */
static const char *amplified(struct sw_job *job, const struct sw_graph *g, const struct sim_given *given, int n,
                             const struct sw_verified *v)
{
  struct sw_eval *exact = begin(job, g, given, n, SW_ROUND_NONE), *moved = begin(job, g, given, n, SW_ROUND_NONE);
  for (int i = 0; i < g->nodes.n; i++) {
    if (sw_eval_node(exact, i) != SW_OK || sw_eval_node(moved, i) != SW_OK)
      return NULL;
    for (int k = 0; k < g->nodes.v[i].n_results; k++) {
      int value = g->nodes.v[i].results[k];
      const struct sw_evaluated *r = value < 0 ? NULL : sw_eval_value(moved, value);
      if (r && r->kind == SW_TENSOR && r->tensor.cells && r->tensor.cells->real && r->tensor.cells->readers == 1 &&
          !sw_dtype_is_complex(r->tensor.dtype))
        disturb(&r->tensor);
    }
  }
  const char *first = NULL;
  for (int i = 0; i < v->outputs.n; i++) {
    const struct sw_verified_output *o = &v->outputs.v[i];
    if (o->difference.agrees || !o->is_compared)
      continue;
    if (o->value < 0 || !(o->difference.max_error <= 4 * sim_distance(job->arena, sw_eval_value(exact, o->value),
                                                                      sw_eval_value(moved, o->value))))
      return NULL;
    first = first ? first : o->name;
  }
  return first;
}

const char *sim_doubt(struct sw_job *job, const struct sw_graph *g, const struct sim_given *given, int n,
                      const struct sw_verified *v)
{
  const struct sw_node *node = jump(g);
  for (int i = 0; i < v->outputs.n; i++) {
    const struct sw_verified_output *o = &v->outputs.v[i];
    if (o->undefined || o->difference.why)
      return NULL;
    if (!o->difference.agrees && o->difference.outside > 2 && o->difference.outside * 100 > o->difference.elements)
      node = NULL; /* too many for a few numbers beside a jump */
  }
  if (node)
    return sw_arena_printf(job->arena, "rounding may decide in %s (%s)", node->name, node->target);
  node = out_of_range(job, g, given, n);
  if (node)
    return sw_arena_printf(job->arena, "numbers of %s (%s) are beyond fp16", node->name, node->target);
  const char *output = amplified(job, g, given, n, v);
  return output ? sw_arena_printf(job->arena, "the graph amplifies what rounding does on the way to %s", output) : NULL;
}
