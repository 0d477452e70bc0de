/* The text form, written (grammar: docs/formats.md). */
#include "compiler/graph/infer.h"
#include "compiler/graph/text.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

static const char *const layouts[] = {"unknown_layout", "sparse_coo", "sparse_csr", "sparse_csc",
                                      "sparse_bsr",     "sparse_bsc", "_mkldnn",    "strided"};
static const char *const memory_formats[] = {"unknown_format", "contiguous_format", "channels_last",
                                             "channels_last_3d", "preserve_format"};
static const struct {
  const char *const *names;
  int n;
} tables[] = {{layouts, 8}, {memory_formats, 5}};

int64_t sw_text__number_of(enum sw_text_table table, const char *name)
{
  for (int i = 0; i < tables[table].n; i++)
    if (!strcmp(tables[table].names[i], name))
      return i;
  return -1;
}

const char *sw_text__name_of(enum sw_text_table table, int64_t number)
{
  return number >= 0 && number < tables[table].n ? tables[table].names[number] : NULL;
}

bool sw_text__in_word(char c)
{
  return isalnum((unsigned char)c) || c == '_' || c == '.';
}

struct writer {
  struct sw_buf *out;
  const struct sw_graph *g;
  int indent;
};

static void put_string(struct sw_buf *b, const char *s)
{
  sw_buf_puts(b, "\"");
  for (; *s; s++) {
    if (*s == '"' || *s == '\\')
      sw_buf_printf(b, "\\%c", *s);
    else if (*s == '\n' || *s == '\t')
      sw_buf_puts(b, *s == '\n' ? "\\n" : "\\t");
    else if ((unsigned char)*s < 0x20 || *s == 0x7F)
      sw_buf_printf(b, "\\x%02x", (unsigned char)*s);
    else
      sw_buf_add(b, s, 1);
  }
  sw_buf_puts(b, "\"");
}

/* A name, in quotes unless it is a bare word. */
static void put_name(struct sw_buf *b, const char *s)
{
  size_t n = 0;
  while (sw_text__in_word(s[n]))
    n++;
  if (n && !s[n])
    sw_buf_puts(b, s);
  else
    put_string(b, s);
}

static void put_value(struct sw_buf *b, const struct sw_graph *g, int id)
{
  sw_buf_puts(b, "%");
  put_name(b, g->values.v[id].name);
}

static void put_arg(struct sw_buf *b, const struct sw_graph *g, const struct sw_arg *a)
{
  char real[32];
  switch (a->kind) {
  case SW_ARG_NONE:
    sw_buf_puts(b, "None");
    break;
  case SW_ARG_VALUE:
    put_value(b, g, a->value);
    break;
  case SW_ARG_INT:
    sw_buf_printf(b, "%" PRId64, a->i);
    break;
  case SW_ARG_REAL:
    if (isfinite(a->r))
      sw_real_text(real, a->r);
    sw_buf_puts(b, isnan(a->r) ? "nan" : isinf(a->r) ? (a->r > 0 ? "inf" : "-inf") : real);
    break;
  case SW_ARG_BOOL:
    sw_buf_puts(b, a->i ? "True" : "False");
    break;
  case SW_ARG_STR:
    put_string(b, a->s);
    break;
  case SW_ARG_DTYPE:
    sw_buf_puts(b, sw_dtype_text(a->dtype));
    break;
  case SW_ARG_LAYOUT:
  case SW_ARG_MEMORY_FORMAT: {
    const char *s = sw_text__name_of(a->kind == SW_ARG_LAYOUT ? SW_TEXT_LAYOUTS : SW_TEXT_MEMORY_FORMATS, a->i);
    sw_buf_printf(b, "torch.%s", s ? s : tables[a->kind == SW_ARG_MEMORY_FORMAT].names[0]);
    break;
  }
  case SW_ARG_DEVICE:
    sw_buf_puts(b, "device(");
    put_string(b, a->s);
    sw_buf_puts(b, ")");
    break;
  case SW_ARG_LIST:
    sw_buf_puts(b, "[");
    for (int i = 0; i < a->list.n; i++) {
      sw_buf_puts(b, i ? ", " : "");
      put_arg(b, g, &a->list.v[i]);
    }
    sw_buf_puts(b, "]");
    break;
  case SW_ARG_GRAPH:
    sw_buf_puts(b, "@");
    put_name(b, a->graph->name);
    break;
  }
}

static void put_dims(struct sw_buf *b, int rank, const int64_t *v, const char *const *exprs)
{
  sw_buf_puts(b, "[");
  for (int d = 0; d < rank; d++) {
    sw_buf_puts(b, d ? "," : "");
    if (exprs && exprs[d])
      sw_buf_printf(b, "%s:", exprs[d]);
    sw_buf_printf(b, "%" PRId64, v[d]);
  }
  sw_buf_puts(b, "]");
}

/* Whether the reader would find other strides by itself: those of a view. */
static bool is_no_plain_view(const struct sw_graph *g, const struct sw_value *v)
{
  struct sw_shape s;
  if (v->node < 0 || v->size_expr || !sw_graph__infer_view(g, &g->nodes.v[v->node], &s) || s.rank != v->rank ||
      memcmp(s.size, v->size, (size_t)s.rank * sizeof *s.size))
    return false;
  return s.offset != v->offset || memcmp(s.stride, v->stride, (size_t)s.rank * sizeof *s.stride);
}

static void put_type(struct sw_buf *b, const struct sw_graph *g, const struct sw_value *v)
{
  static const char *const numbers[] = {
      [SW_VALUE_SYM_INT] = "int", [SW_VALUE_SYM_BOOL] = "bool", [SW_VALUE_SYM_FLOAT] = "float"};
  if (v->kind != SW_VALUE_TENSOR) {
    sw_buf_printf(b, "%s(", numbers[v->kind]);
    if (v->expr)
      sw_buf_printf(b, "%s:", v->expr);
    sw_buf_printf(b, "%" PRId64 ")", v->hint);
    return;
  }
  sw_buf_puts(b, sw_dtype_text(v->dtype));
  put_dims(b, v->rank, v->size, v->size_expr);
  int64_t dense[SW_MAX_RANK];
  bool is_dense = sw_graph__row_major(v->rank, v->size, dense) && !v->stride_expr;
  for (int d = 0; is_dense && d < v->rank; d++)
    is_dense = v->stride[d] == dense[d];
  if (!is_dense || is_no_plain_view(g, v)) {
    sw_buf_puts(b, " strides=");
    put_dims(b, v->rank, v->stride, v->stride_expr);
  }
  if (v->offset_expr)
    sw_buf_printf(b, " offset=%s:%" PRId64, v->offset_expr, v->offset);
  else if (v->offset)
    sw_buf_printf(b, " offset=%" PRId64, v->offset);
}

/* `uses`: record -> how many inputs lie in it. */
static void put_input(struct writer *w, const struct sw_input *in, const struct sw_map *uses)
{
  static const char *const words[] = {[SW_INPUT_PARAMETER] = "parameter",
                                      [SW_INPUT_BUFFER] = "buffer",
                                      [SW_INPUT_TENSOR_CONSTANT] = "constant",
                                      [SW_INPUT_USER] = "input"};
  struct sw_buf *b = w->out;
  sw_buf_printf(b, "%*s%%", w->indent, "");
  put_name(b, in->name);
  if (in->kind == SW_INPUT_CONSTANT) {
    sw_buf_puts(b, " = literal(");
    put_arg(b, w->g, &in->literal);
    sw_buf_puts(b, ")\n");
    return;
  }
  sw_buf_puts(b, " : ");
  put_type(b, w->g, &w->g->values.v[in->value]);
  sw_buf_printf(b, " = %s", words[in->kind]);
  struct sw_buf options = {.arena = b->arena};
  if (in->target && strcmp(in->target, in->name))
    put_string(&options, in->target);
  if (in->kind == SW_INPUT_BUFFER && !in->persistent)
    sw_buf_printf(&options, "%spersistent=False", options.n ? ", " : "");
  if (in->record >= 0 && sw_map_get(uses, &in->record, sizeof in->record) > 1)
    sw_buf_printf(&options, "%srecord=%d", options.n ? ", " : "", in->record);
  if (in->layout) {
    sw_buf_printf(&options, "%sdevice_size=", options.n ? ", " : "");
    put_dims(&options, in->layout->rank, in->layout->device_size, NULL);
    sw_buf_puts(&options, ", stride_map=");
    put_dims(&options, in->layout->rank, in->layout->stride_map, NULL);
  }
  if (options.n)
    sw_buf_printf(b, "(%s)", options.p);
  sw_buf_puts(b, "\n");
}

/* Given arguments: by position while none is left out, then by name. */
static void put_args(struct writer *w, const struct sw_node *n)
{
  struct sw_buf *b = w->out;
  bool by_position = true, first = true;
  for (int i = 0; i < n->n_args; i++) {
    const struct sw_arg *a = &n->args[i];
    if (n->schema && n->schema->args[i].keyword_only)
      by_position = false;
    if (!a->given) {
      by_position = false;
      continue;
    }
    sw_buf_puts(b, first ? "" : ", ");
    first = false;
    if (n->schema ? !by_position : *a->name != 0) {
      put_name(b, a->name);
      sw_buf_puts(b, "=");
    }
    put_arg(b, w->g, a);
  }
}

static const char *default_name(const struct writer *w, const struct sw_node *n, int number, char out[32])
{
  for (int i = 0; i < n->n_results; i++)
    if (n->results[i] >= 0)
      return w->g->values.v[n->results[i]].name;
  snprintf(out, 32, "node_%d", number);
  return out;
}

/* A name of ours that the reader could take for a keyword. */
static bool is_keyword(const char *s)
{
  static const char *const words[] = {"return", "mutate", "range", "assume", "dialect", "graph", "_"};
  for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
    if (!strcmp(words[i], s))
      return true;
  return false;
}

static void put_node(struct writer *w, const struct sw_node *n, int number)
{
  struct sw_buf *b = w->out;
  char name[32];
  sw_buf_printf(b, "%*s", w->indent, "");
  if (strcmp(default_name(w, n, number, name), n->name)) {
    if (is_keyword(n->name))
      put_string(b, n->name);
    else
      put_name(b, n->name);
    sw_buf_puts(b, ": ");
  }
  for (int i = 0; i < n->n_results; i++) {
    sw_buf_puts(b, i ? ", " : "");
    if (n->results[i] < 0) {
      sw_buf_puts(b, "_");
      continue;
    }
    put_value(b, w->g, n->results[i]);
    sw_buf_puts(b, " : ");
    put_type(b, w->g, &w->g->values.v[n->results[i]]);
  }
  if (n->n_results)
    sw_buf_puts(b, " = ");
  put_name(b, n->target);
  sw_buf_puts(b, "(");
  put_args(w, n);
  sw_buf_puts(b, ")");
  if (n->source || n->module || n->origin)
    sw_buf_puts(b, "  #");
  if (n->source)
    sw_buf_printf(b, " %s", n->source);
  if (n->module)
    sw_buf_printf(b, " in %s", n->module);
  if (n->origin)
    sw_buf_printf(b, " of %s", n->origin);
  sw_buf_puts(b, "\n");
}

static void put_graph(struct sw_buf *b, const struct sw_graph *g, int indent);

static void put_blocks(struct writer *w, const struct sw_arg *a)
{
  if (a->kind == SW_ARG_LIST)
    for (int i = 0; i < a->list.n; i++)
      put_blocks(w, &a->list.v[i]);
  if (a->kind != SW_ARG_GRAPH)
    return;
  sw_buf_printf(w->out, "%*sgraph @", w->indent, "");
  put_name(w->out, a->graph->name);
  sw_buf_puts(w->out, " {\n");
  put_graph(w->out, a->graph, w->indent + 2);
  sw_buf_printf(w->out, "%*s}\n", w->indent, "");
}

static void put_outputs(struct writer *w)
{
  struct sw_buf *b = w->out;
  struct sw_map by_target = {.arena = b->arena};
  for (int i = 0; i < w->g->inputs.n; i++) {
    const struct sw_input *in = &w->g->inputs.v[i];
    if (in->kind != SW_INPUT_USER && in->kind != SW_INPUT_CONSTANT)
      sw_map_set_str(&by_target, in->target, i);
  }
  for (int i = 0; i < w->g->outputs.n; i++) {
    const struct sw_output *o = &w->g->outputs.v[i];
    if (o->kind == SW_OUTPUT_USER)
      continue;
    int64_t in = o->kind == SW_OUTPUT_BUFFER_MUTATION ? sw_map_get_str(&by_target, o->target) : -1;
    sw_buf_printf(b, "%*smutate %%", w->indent, "");
    put_name(b, in >= 0 ? w->g->inputs.v[in].name : o->target);
    sw_buf_puts(b, " = ");
    put_arg(b, w->g, &o->arg);
    sw_buf_puts(b, "\n");
  }
  sw_buf_printf(b, "%*sreturn", w->indent, "");
  bool first = true;
  for (int i = 0; i < w->g->outputs.n; i++) {
    const struct sw_output *o = &w->g->outputs.v[i];
    if (o->kind != SW_OUTPUT_USER)
      continue;
    sw_buf_puts(b, first ? " " : ", ");
    first = false;
    put_arg(b, w->g, &o->arg);
  }
  sw_buf_puts(b, "\n");
}

static void put_graph(struct sw_buf *b, const struct sw_graph *g, int indent)
{
  struct writer w = {b, g, indent};
  if (*g->dialect) {
    sw_buf_printf(b, "%*sdialect ", indent, "");
    put_name(b, g->dialect);
    sw_buf_puts(b, "\n");
  }
  for (int i = 0; i < g->ranges.n; i++) {
    const struct sw_range *r = &g->ranges.v[i];
    sw_buf_printf(b, "%*srange %s = ", indent, "", r->symbol);
    if (r->has_min)
      sw_buf_printf(b, "%" PRId64, r->min);
    sw_buf_puts(b, "..");
    if (r->has_max)
      sw_buf_printf(b, "%" PRId64, r->max);
    sw_buf_puts(b, "\n");
  }
  for (int i = 0; i < g->guards.n; i++) {
    sw_buf_printf(b, "%*sassume ", indent, "");
    put_string(b, g->guards.v[i]);
    sw_buf_puts(b, "\n");
  }
  struct sw_map uses = {.arena = b->arena};
  for (int i = 0; i < g->inputs.n; i++) {
    int record = g->inputs.v[i].record;
    int64_t n = sw_map_get(&uses, &record, sizeof record);
    sw_map_set(&uses, &record, sizeof record, n < 0 ? 1 : n + 1);
  }
  for (int i = 0; i < g->inputs.n; i++)
    put_input(&w, &g->inputs.v[i], &uses);
  for (int i = 0; i < g->nodes.n; i++) {
    for (int k = 0; k < g->nodes.v[i].n_args; k++)
      put_blocks(&w, &g->nodes.v[i].args[k]);
    put_node(&w, &g->nodes.v[i], i);
  }
  put_outputs(&w);
}

void sw_graph_write_text(const struct sw_graph *g, struct sw_buf *out)
{
  put_graph(out, g, 0);
}
