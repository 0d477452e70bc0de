/* What the reader saw: one screen, the facts as JSON, or the whole graph as text. */
#include "compiler/cli/verb.h"

#include "base/json.h"
#include "compiler/graph/graph.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_LINES = 8 }; /* of each list on the screen */

static const char *type_text(struct sw_arena *a, const struct sw_value *v)
{
  if (v->kind != SW_VALUE_TENSOR)
    return v->expr ? v->expr : "a number";
  struct sw_buf b = {.arena = a};
  sw_buf_printf(&b, "%s[", sw_dtype_text(v->dtype));
  for (int d = 0; d < v->rank; d++) {
    sw_buf_puts(&b, d ? "," : "");
    if (v->size_expr && v->size_expr[d])
      sw_buf_puts(&b, v->size_expr[d]);
    else
      sw_buf_printf(&b, "%" PRId64, v->size[d]);
  }
  sw_buf_puts(&b, "]");
  return sw_buf_text(&b);
}

/* "parameters   9 tensors, 1,234 elements, values known for 9" */
static void put_kind(struct sw_buf *b, const struct sw_graph *g, enum sw_input_kind kind, const char *title)
{
  int n = 0, known = 0;
  int64_t elements = 0, bytes = 0;
  for (int i = 0; i < g->inputs.n; i++) {
    const struct sw_input *in = &g->inputs.v[i];
    if (in->kind != kind || in->value < 0)
      continue;
    int64_t e = sw_value_elements(&g->values.v[in->value]);
    n++;
    known += in->bytes != NULL;
    elements += e;
    bytes += e * sw_dtype_bytes(g->values.v[in->value].dtype);
  }
  if (n)
    sw_buf_printf(b, "%-12s %d, %" PRId64 " elements, %" PRId64 " bytes, values %s\n", title, n, elements, bytes,
                  known == n ? "known" : known ? "partly known" : "unknown");
}

static void put_user_inputs(struct sw_arena *a, struct sw_buf *b, const struct sw_graph *g)
{
  int n = 0;
  for (int i = 0; i < g->inputs.n; i++) {
    const struct sw_input *in = &g->inputs.v[i];
    if ((in->kind != SW_INPUT_USER && in->kind != SW_INPUT_CONSTANT) || n++ >= MAX_LINES)
      continue;
    sw_buf_printf(b, "%-12s %s %s\n", n == 1 ? "inputs" : "", in->name,
                  in->value < 0 ? "baked in" : type_text(a, &g->values.v[in->value]));
  }
  if (n > MAX_LINES)
    sw_buf_printf(b, "%-12s and %d more\n", "", n - MAX_LINES);
}

static void put_outputs(struct sw_arena *a, struct sw_buf *b, const struct sw_graph *g, bool mutations)
{
  int n = 0;
  for (int i = 0; i < g->outputs.n; i++) {
    const struct sw_output *o = &g->outputs.v[i];
    if ((o->kind != SW_OUTPUT_USER) != mutations || n++ >= MAX_LINES)
      continue;
    const struct sw_value *v = o->arg.kind == SW_ARG_VALUE ? &g->values.v[o->arg.value] : NULL;
    sw_buf_printf(b, "%-12s %s%s%s %s\n", n > 1 ? "" : mutations ? "mutations" : "outputs", mutations ? o->target : "",
                  mutations ? " = " : "", v ? v->name : "literal", v ? type_text(a, v) : "");
  }
  if (n > MAX_LINES)
    sw_buf_printf(b, "%-12s and %d more\n", "", n - MAX_LINES);
}

static void put_ranges(struct sw_buf *b, const struct sw_graph *g)
{
  for (int i = 0; i < g->ranges.n && i < MAX_LINES; i++) {
    const struct sw_range *r = &g->ranges.v[i];
    sw_buf_printf(b, "%-12s %s in ", i ? "" : "dynamic", r->symbol);
    if (r->has_min)
      sw_buf_printf(b, "%" PRId64, r->min);
    sw_buf_puts(b, "..");
    if (r->has_max)
      sw_buf_printf(b, "%" PRId64, r->max);
    sw_buf_puts(b, "\n");
  }
}

static int by_count(const void *a, const void *b)
{
  const struct sw_op_count *x = a, *y = b;
  return x->n != y->n ? (x->n < y->n) - (x->n > y->n) : strcmp(x->target, y->target);
}

static void put_ops(struct sw_arena *a, struct sw_buf *b, const struct sw_graph *g)
{
  int n = g->census.ops.n;
  struct sw_op_count *ops = sw_arena_copy(a, g->census.ops.v, (size_t)n, sizeof *ops);
  if (n)
    qsort(ops, (size_t)n, sizeof *ops, by_count);
  sw_buf_printf(b, "%-12s %d nodes, %d overloads\n", "ops", g->census.nodes, n);
  for (int i = 0; i < n && i < 2 * MAX_LINES; i++)
    sw_buf_printf(b, "%-6s%6d %s\n", "", ops[i].n, ops[i].target);
  if (n > 2 * MAX_LINES)
    sw_buf_printf(b, "%-12s and %d more overloads\n", "", n - 2 * MAX_LINES);
}

static void put_screen(struct sw_arena *a, struct sw_buf *b, const struct sw_graph *g)
{
  sw_buf_printf(b, "%s: %s%s%s, sha256 %.16s\n", g->name, g->form, *g->dialect ? ", dialect " : "", g->dialect,
                g->digest);
  put_kind(b, g, SW_INPUT_PARAMETER, "parameters");
  put_kind(b, g, SW_INPUT_BUFFER, "buffers");
  put_kind(b, g, SW_INPUT_TENSOR_CONSTANT, "constants");
  put_user_inputs(a, b, g);
  put_outputs(a, b, g, false);
  put_outputs(a, b, g, true);
  put_ranges(b, g);
  put_ops(a, b, g);
}

static void put_json(struct sw_job *job, struct sw_buf *b, const struct sw_graph *g, const struct sw_programs *all)
{
  struct sw_jw w = {.out = b, .indent = 1};
  sw_jw_object(&w);
  if (g) {
    sw_graph_write_facts(job, g, &w);
    sw_jw_key(&w, "programs");
    sw_jw_array(&w);
    for (int i = 0; i < all->names.n; i++)
      sw_jw_str(&w, all->names.v[i]);
    sw_jw_end_array(&w);
  } else {
    sw_jw_kstr(&w, "status", sw_rc_slug(job->worst));
    sw_jw_key(&w, "faults");
    sw_jw_faults(&w, job);
  }
  sw_jw_end_object(&w);
  sw_buf_puts(b, "\n");
}

int sw_verb_inspect(struct sw_job *job, int argc, char **argv)
{
  struct sw_cli_args args = {0};
  if (!sw_cli_parse(job, argc, argv, "inspect", NULL, &args))
    return sw_rc_exit(SW_USAGE);
  if (args.operands.n != 1)
    return sw_rc_exit(sw_fail(job, SW_USAGE, "inspect: one MODEL expected (- for stdin)"));
  const char *path = args.operands.v[0], *bytes, *program = sw_cli_flag(&args, "program");
  size_t len;
  enum sw_rc rc = sw_cli_read(job, path, &bytes, &len);
  struct sw_programs all = {0};
  struct sw_graph *g = NULL;
  if (rc == SW_OK)
    rc = sw_graph_programs(job, bytes, len, &all);
  if (rc == SW_OK) { /* of several programs the first is shown, and all are named */
    if (!program && all.names.n > 1)
      program = all.names.v[0];
    rc = sw_graph_read(job, path, bytes, len, program, &g);
  }
  struct sw_buf out = {.arena = job->arena};
  if (sw_cli_flag(&args, "json"))
    put_json(job, &out, g, &all);
  else if (g && sw_cli_flag(&args, "text"))
    sw_graph_write_text(g, &out);
  else if (g)
    put_screen(job->arena, &out, g);
  if (g && all.names.n > 1 && !sw_cli_flag(&args, "json") && !sw_cli_flag(&args, "text"))
    for (int i = 0; i < all.names.n; i++)
      sw_buf_printf(&out, "%-12s %s%s\n", i ? "" : "programs", all.names.v[i],
                    strcmp(program, all.names.v[i]) ? "" : " (this one)");
  int printed = sw_cli_print(job, sw_buf_text(&out), out.n);
  return rc != SW_OK ? sw_rc_exit(rc) : printed;
}
