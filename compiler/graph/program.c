/* The program's JSON (reference: pt2.md sections 3 to 12): one walk that defines all names of a graph and a second one
 * that reads the arguments, so that a name used before its node is told apart from one that nothing defines. */
#include "compiler/graph/program.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Values of a document; 20 to 80 bytes of heap each. A node takes about 60, so this is over 500,000 nodes. */
enum { MAX_VALUES = 40 * 1000 * 1000 };

static const char *text_of(struct sw_reader *r, const json_t *string)
{
  return sw_arena_strdup(r->doc->job->arena, json_string_value(string));
}

/* -- nodes -- */

static const struct {
  const char *variant;
  enum sw_value_kind kind;
  const char *key;
} result_kinds[] = {
    {"as_tensor", SW_VALUE_TENSOR, "name"},
    {"as_sym_int", SW_VALUE_SYM_INT, "as_name"},
    {"as_sym_bool", SW_VALUE_SYM_BOOL, "as_name"},
    {"as_sym_float", SW_VALUE_SYM_FLOAT, "as_name"},
};

/* One entry of outputs, or an element of a Tensor[] result. */
static int define_result(struct sw_reader *r, const struct sw_at *at, const char *variant, const json_t *v, int node,
                         int result)
{
  for (size_t i = 0; i < sizeof result_kinds / sizeof result_kinds[0]; i++) {
    if (strcmp(result_kinds[i].variant, variant))
      continue;
    const json_t *name = sw_program__member(r, at, v, result_kinds[i].key, JSON_STRING);
    return name ? sw_program__define(r, at, json_string_value(name), result_kinds[i].kind, node, result) : -1;
  }
  if (strcmp(variant, "as_none"))
    sw_program__fault(r, at, SW_UNSUPPORTED, "results of kind \"%.60s\" are not supported", variant);
  return -1;
}

static void define_results(struct sw_reader *r, const struct sw_at *at, const json_t *outputs, struct sw_node *n,
                           int node)
{
  SW_VEC(int) results = {0};
  struct sw_arena *a = r->doc->job->arena;
  size_t i;
  const json_t *o;
  json_array_foreach(outputs, i, o) {
    struct sw_at here = {at, NULL, i};
    const char *variant;
    const json_t *v = sw_program__union(r, &here, o, &variant);
    if (!v)
      continue;
    bool optional = !strcmp(variant, "as_optional_tensors");
    struct sw_at list_at = {&here, variant, 0};
    if (!optional && strcmp(variant, "as_tensors")) {
      int id = define_result(r, &list_at, variant, v, node, results.n);
      *SW_PUSH(a, &results) = id;
      continue;
    }
    size_t k;
    const json_t *e;
    json_array_foreach(v, k, e) {
      struct sw_at item = {&list_at, NULL, k};
      const char *kind = "as_tensor";
      const json_t *t = optional ? sw_program__union(r, &item, e, &kind) : e;
      int id = t ? define_result(r, &item, kind, t, node, results.n) : -1;
      *SW_PUSH(a, &results) = id;
    }
  }
  n->results = results.v;
  n->n_results = results.n;
}

/* -- metadata -- */

/* "transformers/models/llama/modeling_llama.py" of a path below site-packages, else the last component. */
static const char *short_path(const char *path, size_t len, size_t *out_len)
{
  static const char installed[] = "/site-packages/";
  const char *start = path;
  for (size_t i = 0; i < len; i++)
    if (path[i] == '/')
      start = path + i + 1;
  for (size_t i = 0; i + sizeof installed - 1 < len; i++)
    if (!memcmp(path + i, installed, sizeof installed - 1))
      start = path + i + sizeof installed - 1;
  *out_len = len - (size_t)(start - path);
  return start;
}

static bool in_torch(const char *path, size_t len)
{
  for (size_t i = 0; i + 7 <= len; i++)
    if (!memcmp(path + i, "/torch/", 7))
      return true;
  return len >= 6 && !memcmp(path, "torch/", 6);
}

/* The last frame `File "PATH", line N` whose file is not torch's own (pt2.md section 8). */
static const char *source_line(struct sw_arena *a, const char *trace)
{
  const char *found = NULL;
  for (const char *s = trace; (s = strstr(s, "File \"")); ) {
    const char *path = s += 6;
    const char *end = strchr(path, '"');
    if (!end)
      break;
    s = end;
    if (strncmp(end, "\", line ", 8) || !isdigit((unsigned char)end[8]) || path[0] == '<' ||
        in_torch(path, (size_t)(end - path)))
      continue;
    size_t len;
    const char *p = short_path(path, (size_t)(end - path), &len);
    if (!len || strcspn(p, " \n\r") < len) /* the text form ends a source at a blank */
      continue;
    found = sw_arena_printf(a, "%.*s:%ld", (int)(len < 200 ? len : 200), p, strtol(end + 8, NULL, 10));
  }
  return found;
}

/* Second field of the last entry of `key,path,type;key,path,type`. A type may hold commas, a path does not. */
static const char *module_path(struct sw_arena *a, const char *stack)
{
  const char *last = strrchr(stack, ';');
  const char *comma = strchr(last ? last + 1 : stack, ',');
  if (!comma)
    return NULL;
  size_t n = strcspn(comma + 1, ", \n\r");
  bool is_placeholder = !strncmp(comma + 1, "_empty_nn_module_stack", 22);
  return n && !is_placeholder ? sw_arena_strndup(a, comma + 1, n) : NULL;
}

/* The innermost name of `from_node`: [{"name": "rms_norm", "target": "aten.rms_norm.default", .., "from_node": [{"name":
 * "norm", "target": "aten.rms_norm.default", .., "from_node": []}]}] gives norm. Two sources side by side: none; nor a
 * region (wrap_with_autocast), whose nodes all name it. */
static const char *origin_name(struct sw_arena *a, const char *from_node)
{
  static const char key[] = "\"name\": \"", nested[] = "\"from_node\": [{", target[] = "\", \"target\": \"aten.";
  const char *last = NULL;
  int levels = 1, names = 0;
  for (const char *at = from_node; (at = strstr(at, key)); names++)
    last = at += sizeof key - 1;
  for (const char *at = from_node; (at = strstr(at, nested)); levels++)
    at += sizeof nested - 1;
  size_t n = last ? strcspn(last, "\"\\ \t\n\r") : 0; /* a name with a blank or an escape is none of torch's */
  return n && names == levels && !strncmp(last + n, target, sizeof target - 1) ? sw_arena_strndup(a, last, n) : NULL;
}

/* -- one node -- */

static void define_node(struct sw_reader *r, const struct sw_at *at, const json_t *j, int number)
{
  struct sw_arena *a = r->doc->job->arena;
  struct sw_node *n = SW_PUSH(a, &r->names.graph->nodes);
  *n = (struct sw_node){.name = "", .target = ""};
  const json_t *name = json_object_get(j, "name"); /* missing in old files: then the first result's name */
  if (json_is_string(name))
    n->name = text_of(r, name);
  r->node = *n->name ? n->name : NULL;
  const json_t *target = sw_program__member(r, at, j, "target", JSON_STRING);
  const json_t *outputs = sw_program__member(r, at, j, "outputs", JSON_ARRAY);
  if (target) {
    const char *t = json_string_value(target);
    n->target = sw_arena_strdup(a, strncmp(t, "torch.ops.", 10) ? t : t + 10);
    n->schema = sw_schema_find(n->target);
  }
  struct sw_at here = {at, "outputs", 0};
  if (outputs)
    define_results(r, &here, outputs, n, number);
  if (!*n->name && n->n_results && n->results[0] >= 0)
    n->name = r->names.graph->values.v[n->results[0]].name;
  if (!*n->name)
    n->name = sw_arena_printf(a, "node_%d", number);
  const json_t *metadata = json_object_get(j, "metadata");
  const char *trace = json_string_value(json_object_get(metadata, "stack_trace"));
  const char *stack = json_string_value(json_object_get(metadata, "nn_module_stack"));
  n->source = trace ? source_line(a, trace) : NULL;
  n->module = stack ? module_path(a, stack) : NULL;
  const char *from = json_string_value(json_object_get(metadata, "from_node"));
  n->origin = from ? origin_name(a, from) : NULL;
}

static void read_node_args(struct sw_reader *r, const struct sw_at *at, const json_t *j, int number)
{
  r->node = r->names.graph->nodes.v[number].name;
  const json_t *inputs = sw_program__member(r, at, j, "inputs", JSON_ARRAY);
  if (!inputs)
    return;
  struct sw_at inputs_at = {at, "inputs", 0};
  size_t n = json_array_size(inputs);
  struct sw_arena *a = r->doc->job->arena;
  struct sw_written *w = SW_NEW_N(a, struct sw_written, n);
  bool good = true;
  for (size_t i = 0; i < n; i++) {
    struct sw_at here = {&inputs_at, NULL, i}, arg_at = {&here, "arg", 0};
    const json_t *e = json_array_get(inputs, i);
    const json_t *name = sw_program__member(r, &here, e, "name", JSON_STRING);
    const json_t *arg = sw_program__member(r, &here, e, "arg", JSON_OBJECT);
    w[i].name = name ? text_of(r, name) : "";
    good = name && arg && sw_program__arg(r, &arg_at, arg, &w[i].arg) && good;
  }
  struct sw_node *node = &r->names.graph->nodes.v[number];
  int n_faults = r->doc->job->faults.n;
  if (good)
    sw_graph__bind(&r->names, node, w, (int)n);
  for (int i = n_faults; i < r->doc->job->faults.n; i++)
    r->doc->job->faults.v[i].source = sw_program__pointer(r, &inputs_at);
}

/* -- inputs and outputs -- */

/* Largest element that the tensor reaches, or -1 when that does not fit 63 bits. */
static int64_t last_element(const struct sw_payload *p)
{
  int64_t last = p->offset, step;
  bool good = last >= 0;
  for (int d = 0; d < p->rank; d++)
    good = good && p->size[d] > 0 && p->stride[d] >= 0 &&
           !__builtin_mul_overflow(p->size[d] - 1, p->stride[d], &step) && !__builtin_add_overflow(last, step, &last);
  return good ? last : -1;
}

/* The input's payload, checked against the program and the record (pt2.md section 2). */
static void attach_payload(struct sw_reader *r, const struct sw_at *at, struct sw_input *in)
{
  const struct sw_payloads *ps = r->doc->payloads;
  if (!ps)
    return;
  int first = in->kind == SW_INPUT_TENSOR_CONSTANT || (in->kind == SW_INPUT_BUFFER && !in->persistent);
  int64_t i = sw_map_get_str(&ps->by_name[first], in->target);
  if (i < 0)
    i = sw_map_get_str(&ps->by_name[!first], in->target);
  if (i < 0) {
    if (!ps->unknown)
      sw_program__fault(r, at, SW_INVALID, "the archive has no record for %s", in->target)->tensor = in->name;
    return;
  }
  const struct sw_payload *p = &ps->list.v[i];
  if (p->opaque) {
    sw_program__fault(r, at, SW_UNSUPPORTED, "%s is stored as a pickle, which only Python can read", in->target)
        ->tensor = in->name;
    return;
  }
  const struct sw_value *v = &r->names.graph->values.v[in->value];
  bool same = p->dtype == v->dtype && p->rank == v->rank, empty = false;
  for (int d = 0; same && d < v->rank; d++) {
    same = p->size[d] == v->size[d];
    empty |= p->size[d] == 0;
  }
  if (!same) {
    sw_program__fault(r, at, SW_INVALID, "the record of %s has another dtype or size than the program says",
                      in->target)
        ->tensor = in->name;
    return;
  }
  in->stride = p->stride;
  in->offset = p->offset;
  if (!empty && !p->n_bytes) /* a program without weights: all tensors of a dtype share an empty record */
    return;
  int64_t last = empty ? 0 : last_element(p);
  if (!empty && (last < 0 || (uint64_t)last >= p->n_bytes / (size_t)sw_dtype_bytes(v->dtype))) {
    sw_program__fault(r, at, SW_INVALID, "%s reaches past the end of its record of %zu bytes", in->target, p->n_bytes)
        ->tensor = in->name;
    return;
  }
  in->bytes = p->bytes;
  in->n_bytes = p->n_bytes;
  in->record = p->record;
}

static void define_weight(struct sw_reader *r, const struct sw_at *at, const json_t *spec, const char *target_key,
                          struct sw_input *in)
{
  const json_t *arg = sw_program__member(r, at, spec, "arg", JSON_OBJECT);
  const json_t *target = sw_program__member(r, at, spec, target_key, JSON_STRING);
  struct sw_at arg_at = {at, "arg", 0};
  const json_t *name = arg ? sw_program__member(r, &arg_at, arg, "name", JSON_STRING) : NULL;
  if (!name || !target)
    return;
  in->name = text_of(r, name);
  in->target = text_of(r, target);
  in->persistent = in->kind == SW_INPUT_BUFFER && !json_is_false(json_object_get(spec, "persistent"));
  in->value = sw_program__define(r, at, in->name, SW_VALUE_TENSOR, -1, 0);
  if (in->value >= 0)
    attach_payload(r, at, in);
}

/* An Argument that is an input: names a value, or is a literal. */
static void define_user_input(struct sw_reader *r, const struct sw_at *at, const json_t *argument,
                              struct sw_input *in)
{
  const char *variant;
  const json_t *v = sw_program__union(r, at, argument, &variant);
  struct sw_at here = {at, v ? variant : "", 0};
  for (size_t i = 0; v && i < sizeof result_kinds / sizeof result_kinds[0]; i++) {
    const char *name = json_string_value(json_object_get(v, result_kinds[i].key));
    if (strcmp(result_kinds[i].variant, variant) || !name)
      continue;
    in->name = sw_arena_strdup(r->doc->job->arena, name);
    in->value = sw_program__define(r, &here, name, result_kinds[i].kind, -1, 0);
    return;
  }
  in->kind = SW_INPUT_CONSTANT;
  if (v)
    sw_program__arg(r, at, argument, &in->literal);
}

static const struct {
  const char *variant, *target_key;
  enum sw_input_kind kind;
} input_kinds[] = {
    {"parameter", "parameter_name", SW_INPUT_PARAMETER},
    {"buffer", "buffer_name", SW_INPUT_BUFFER},
    {"tensor_constant", "tensor_constant_name", SW_INPUT_TENSOR_CONSTANT},
    {"user_input", NULL, SW_INPUT_USER},
    {"constant_input", NULL, SW_INPUT_CONSTANT},
};

static void read_input_spec(struct sw_reader *r, const struct sw_at *at, const json_t *spec, struct sw_input *in)
{
  const char *variant;
  const json_t *s = sw_program__union(r, at, spec, &variant);
  struct sw_at here = {at, s ? variant : "", 0}, arg_at = {&here, "arg", 0}, value_at = {&here, "value", 0};
  for (size_t i = 0; s && i < sizeof input_kinds / sizeof input_kinds[0]; i++) {
    if (strcmp(input_kinds[i].variant, variant))
      continue;
    in->kind = input_kinds[i].kind;
    if (in->kind == SW_INPUT_USER) {
      const json_t *arg = sw_program__member(r, &here, s, "arg", JSON_OBJECT);
      if (arg)
        define_user_input(r, &arg_at, arg, in);
    } else if (in->kind == SW_INPUT_CONSTANT) {
      const json_t *name = sw_program__member(r, &here, s, "name", JSON_STRING);
      const json_t *value = sw_program__member(r, &here, s, "value", JSON_OBJECT);
      if (name)
        in->name = text_of(r, name);
      if (value)
        sw_program__arg(r, &value_at, value, &in->literal);
    } else {
      define_weight(r, &here, s, input_kinds[i].target_key, in);
    }
    return;
  }
  if (s)
    sw_program__fault(r, &here, SW_UNSUPPORTED, "inputs of kind \"%.60s\" are not supported", variant);
}

static void read_inputs(struct sw_reader *r, const struct sw_at *at, const json_t *inputs, const json_t *specs,
                        const struct sw_at *specs_at)
{
  size_t i;
  const json_t *j;
  json_array_foreach(specs ? specs : inputs, i, j) {
    struct sw_at here = {specs ? specs_at : at, NULL, i};
    struct sw_input in = {.name = "", .kind = SW_INPUT_USER, .value = -1, .record = -1, .literal = {.name = ""}};
    if (specs)
      read_input_spec(r, &here, j, &in);
    else
      define_user_input(r, &here, j, &in);
    *SW_PUSH(r->doc->job->arena, &r->names.graph->inputs) = in;
  }
}

static const struct {
  const char *variant, *target_key;
  enum sw_output_kind kind;
} output_kinds[] = {
    {"buffer_mutation", "buffer_name", SW_OUTPUT_BUFFER_MUTATION},
    {"user_input_mutation", "user_input_name", SW_OUTPUT_INPUT_MUTATION},
    {"user_output", NULL, SW_OUTPUT_USER},
};

static void read_output_spec(struct sw_reader *r, const struct sw_at *at, const json_t *spec, struct sw_output *out)
{
  const char *variant;
  const json_t *s = sw_program__union(r, at, spec, &variant);
  struct sw_at here = {at, s ? variant : "", 0};
  for (size_t i = 0; s && i < sizeof output_kinds / sizeof output_kinds[0]; i++) {
    if (strcmp(output_kinds[i].variant, variant))
      continue;
    out->kind = output_kinds[i].kind;
    const json_t *target = out->kind == SW_OUTPUT_USER
                               ? NULL
                               : sw_program__member(r, &here, s, output_kinds[i].target_key, JSON_STRING);
    if (target)
      out->target = text_of(r, target);
    return;
  }
  if (s)
    sw_program__fault(r, &here, SW_UNSUPPORTED, "outputs of kind \"%.60s\" are not supported", variant)->advice =
        "export the forward pass only";
}

static void read_outputs(struct sw_reader *r, const struct sw_at *at, const json_t *outputs, const json_t *specs,
                         const struct sw_at *specs_at)
{
  size_t i;
  const json_t *j;
  json_array_foreach(outputs, i, j) {
    struct sw_at here = {at, NULL, i}, spec_at = {specs_at, NULL, i};
    struct sw_output out = {.kind = SW_OUTPUT_USER, .arg = {.name = ""}};
    if (specs)
      read_output_spec(r, &spec_at, json_array_get(specs, i), &out);
    sw_program__arg(r, &here, j, &out.arg);
    *SW_PUSH(r->doc->job->arena, &r->names.graph->outputs) = out;
  }
}

/* -- a graph -- */

struct sw_graph *sw_program__graph(struct sw_document *doc, const struct sw_at *at, const json_t *graph,
                                   const json_t *signature, const struct sw_at *signature_at)
{
  struct sw_arena *a = doc->job->arena;
  struct sw_graph *g = SW_NEW(a, struct sw_graph);
  g->name = g->dialect = "";
  g->form = "json";
  struct sw_reader r = {.doc = doc, .at = at};
  r.names = (struct sw_names){.job = doc->job, .graph = g, .values = {.arena = a}};
  r.tensors = sw_program__member(&r, at, graph, "tensor_values", JSON_OBJECT);
  r.numbers[0] = json_object_get(graph, "sym_int_values");
  r.numbers[1] = json_object_get(graph, "sym_bool_values");
  r.numbers[2] = json_object_get(graph, "sym_float_values");
  const json_t *inputs = sw_program__member(&r, at, graph, "inputs", JSON_ARRAY);
  const json_t *outputs = sw_program__member(&r, at, graph, "outputs", JSON_ARRAY);
  const json_t *nodes = sw_program__member(&r, at, graph, "nodes", JSON_ARRAY);
  const json_t *in_specs = NULL, *out_specs = NULL;
  if (signature) {
    in_specs = sw_program__member(&r, signature_at, signature, "input_specs", JSON_ARRAY);
    out_specs = sw_program__member(&r, signature_at, signature, "output_specs", JSON_ARRAY);
  }
  if (!r.tensors || !inputs || !outputs || !nodes || (signature && (!in_specs || !out_specs)))
    return g;
  if (signature && (json_array_size(in_specs) != json_array_size(inputs) ||
                    json_array_size(out_specs) != json_array_size(outputs))) {
    sw_program__fault(&r, signature_at, SW_INVALID,
                      "%zu input and %zu output specs for %zu inputs and %zu outputs", json_array_size(in_specs),
                      json_array_size(out_specs), json_array_size(inputs), json_array_size(outputs));
    return g;
  }
  struct sw_at inputs_at = {at, "inputs", 0}, outputs_at = {at, "outputs", 0}, nodes_at = {at, "nodes", 0};
  struct sw_at in_specs_at = {signature_at, "input_specs", 0}, out_specs_at = {signature_at, "output_specs", 0};
  read_inputs(&r, &inputs_at, inputs, in_specs, &in_specs_at);
  size_t i;
  const json_t *j;
  json_array_foreach(nodes, i, j) {
    struct sw_at here = {&nodes_at, NULL, i};
    define_node(&r, &here, j, (int)i);
  }
  json_array_foreach(nodes, i, j) {
    struct sw_at here = {&nodes_at, NULL, i};
    read_node_args(&r, &here, j, (int)i);
  }
  r.node = NULL;
  read_outputs(&r, &outputs_at, outputs, out_specs, &out_specs_at);
  return g;
}

/* -- the document -- */

/* range_constraints: {"s39": {"min_val": 2, "max_val": 64}} */
static void read_ranges(struct sw_reader *r, const json_t *ranges, struct sw_graph *g)
{
  const char *symbol;
  json_t *j;
  json_object_foreach((json_t *)(uintptr_t)ranges, symbol, j) {
    const json_t *min = json_object_get(j, "min_val"), *max = json_object_get(j, "max_val");
    if (!sw_expr_parse(r->doc->job->arena, symbol)) {
      struct sw_at at = {NULL, "range_constraints", 0}, here = {&at, symbol, 0};
      sw_program__fault(r, &here, SW_UNSUPPORTED, "\"%.100s\" is no expression over symbols", symbol);
      continue;
    }
    struct sw_range *range = SW_PUSH(r->doc->job->arena, &g->ranges);
    range->symbol = sw_arena_strdup(r->doc->job->arena, symbol);
    range->has_min = json_is_integer(min);
    range->has_max = json_is_integer(max);
    range->min = json_integer_value(min);
    range->max = json_integer_value(max);
  }
}

struct settle {
  const struct sw_document *doc;
  const struct sw_map *ranges;
  const struct sw_graph *graph;
};

/* A symbol at export time; one that had no value then stands at its upper bound, without one at its lower. */
static bool symbol_value(void *ctx, const char *symbol, int64_t *value)
{
  const struct settle *s = ctx;
  int64_t hint = sw_map_get_str(&s->doc->hints, symbol), i = sw_map_get_str(s->ranges, symbol);
  const struct sw_range *range = i < 0 ? NULL : &s->graph->ranges.v[i];
  *value = hint >= 0 ? hint : !range ? 1 : range->has_max ? range->max : range->has_min ? range->min : 1;
  return true;
}

static void settle_unbacked(struct sw_document *doc, const struct sw_graph *g)
{
  struct sw_map ranges = {.arena = doc->job->arena};
  for (int i = 0; i < g->ranges.n; i++)
    sw_map_set_str(&ranges, g->ranges.v[i].symbol, i);
  struct settle s = {doc, &ranges, g};
  for (int i = 0; i < doc->unbacked.n; i++) {
    struct sw_unbacked *u = &doc->unbacked.v[i];
    int64_t value = 1;
    if (!sw_expr_eval(u->expr, symbol_value, &s, &value))
      value = 1;
    if (u->slot)
      *u->slot = value;
    else
      u->graph->values.v[u->value].hint = value;
  }
}

static bool check_version(struct sw_reader *r, const json_t *root)
{
  const json_t *version = sw_program__member(r, NULL, root, "schema_version", JSON_OBJECT);
  struct sw_at at = {NULL, "schema_version", 0};
  const json_t *major = version ? sw_program__member(r, &at, version, "major", JSON_INTEGER) : NULL;
  const json_t *minor = version ? json_object_get(version, "minor") : NULL;
  if (!major || json_integer_value(major) == 8)
    return major != NULL;
  sw_program__fault(r, &at, SW_UNSUPPORTED, "schema version %lld.%lld, this reader knows version 8",
                    (long long)json_integer_value(major), (long long)json_integer_value(minor))
      ->advice = "export again with torch 2.13";
  return false;
}

static struct sw_graph *read_document(struct sw_job *job, const json_t *root, const struct sw_payloads *payloads)
{
  struct sw_document doc = {.job = job, .hints = {.arena = job->arena}, .payloads = payloads};
  struct sw_reader r = {.doc = &doc};
  const json_t *module = sw_program__member(&r, NULL, root, "graph_module", JSON_OBJECT);
  struct sw_at module_at = {NULL, "graph_module", 0}, graph_at = {&module_at, "graph", 0};
  struct sw_at signature_at = {&module_at, "signature", 0};
  if (!module || !check_version(&r, root))
    return NULL;
  const json_t *graph = sw_program__member(&r, &module_at, module, "graph", JSON_OBJECT);
  const json_t *signature = sw_program__member(&r, &module_at, module, "signature", JSON_OBJECT);
  if (!graph || !signature)
    return NULL;
  struct sw_graph *g = sw_program__graph(&doc, &graph_at, graph, signature, &signature_at);
  read_ranges(&r, json_object_get(root, "range_constraints"), g);
  settle_unbacked(&doc, g);
  sw_program__guards(job, root, g);
  const char *dialect = json_string_value(json_array_get(json_object_get(root, "verifiers"), 0));
  g->dialect = dialect ? sw_arena_strdup(job->arena, dialect) : "";
  return g;
}

struct sw_graph *sw_graph__read_program(struct sw_job *job, const char *text, size_t len,
                                        const struct sw_payloads *payloads)
{
  struct sw_arena *scratch = sw_arena_new(job->arena, 0);
  const json_t *root = sw_graph__json(job, scratch, "program", text, len, MAX_VALUES);
  struct sw_graph *g = root ? read_document(job, root, payloads) : NULL;
  sw_arena_free(scratch);
  return g;
}
