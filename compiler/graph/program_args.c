/* Arguments and tensor metadata of a program's JSON. */
#include "compiler/graph/program.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* -- places and faults -- */

static void add_pointer(struct sw_buf *b, const struct sw_at *at)
{
  if (!at)
    return;
  add_pointer(b, at->up);
  if (!at->key) {
    sw_buf_printf(b, "/%zu", at->index);
    return;
  }
  sw_buf_puts(b, "/");
  for (const char *s = at->key; *s; s++) /* RFC 6901 */
    sw_buf_add(b, *s == '~' ? "~0" : *s == '/' ? "~1" : s, *s == '~' || *s == '/' ? 2 : 1);
}

const char *sw_program__pointer(struct sw_reader *r, const struct sw_at *at)
{
  struct sw_buf b = {.arena = r->doc->job->arena};
  add_pointer(&b, at);
  return sw_buf_text(&b);
}

struct sw_fault *sw_program__fault(struct sw_reader *r, const struct sw_at *at, enum sw_rc rc, const char *fmt, ...)
{
  char text[512];
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(text, sizeof text, fmt, ap);
  va_end(ap);
  struct sw_fault *f = sw_fault(r->doc->job, rc, "%s", text);
  f->node = r->node;
  f->source = sw_program__pointer(r, at);
  return f;
}

static const char *type_name(json_type t)
{
  static const char *const names[] = {"object", "list", "string", "integer", "real", "true", "false", "null"};
  return names[t];
}

/* Strings are C strings everywhere behind this file. */
static bool has_nul(struct sw_reader *r, const struct sw_at *at, const json_t *string)
{
  if (strlen(json_string_value(string)) == json_string_length(string))
    return false;
  sw_program__fault(r, at, SW_UNSUPPORTED, "a string with \\u0000 in it is not supported");
  return true;
}

const json_t *sw_program__member(struct sw_reader *r, const struct sw_at *at, const json_t *object, const char *key,
                                 json_type type)
{
  const json_t *v = json_object_get(object, key);
  struct sw_at here = {at, key, 0};
  if (v && json_typeof(v) == type)
    return type == JSON_STRING && has_nul(r, &here, v) ? NULL : v;
  if (v)
    sw_program__fault(r, &here, SW_INVALID, "%s expected, %s found", type_name(type), type_name(json_typeof(v)));
  else
    sw_program__fault(r, &here, SW_INVALID, "%s is missing", type_name(type));
  return NULL;
}

const json_t *sw_program__union(struct sw_reader *r, const struct sw_at *at, const json_t *object,
                                const char **variant)
{
  if (!json_is_object(object) || json_object_size(object) != 1) {
    sw_program__fault(r, at, SW_INVALID, "an object with exactly one key expected");
    return NULL;
  }
  void *it = json_object_iter((json_t *)(uintptr_t)object);
  *variant = json_object_iter_key(it);
  return json_object_iter_value(it);
}

/* -- numbers -- */

/* {"expr_str": srepr, "hint": {"as_int": n} | null}: text and value at export time. A number without hint is noted to
 * be settled when all ranges are known. */
static bool expression(struct sw_reader *r, const struct sw_at *at, const json_t *j, const char **text,
                       int64_t *hint)
{
  struct sw_arena *a = r->doc->job->arena;
  const json_t *s = sw_program__member(r, at, j, "expr_str", JSON_STRING);
  if (!s)
    return false;
  const struct sw_expr *e = sw_expr_parse(a, json_string_value(s));
  if (!e) {
    sw_program__fault(r, at, SW_UNSUPPORTED, "expression \"%.200s\" can't be read", json_string_value(s));
    return false;
  }
  *text = sw_expr_text(a, e);
  const json_t *h = json_object_get(j, "hint");
  const json_t *value = json_is_object(h) ? json_object_get(h, "as_int") : NULL;
  if (!value && json_is_object(h))
    value = json_object_get(h, "as_bool");
  if (json_is_integer(value) || json_is_boolean(value)) {
    *hint = json_is_integer(value) ? json_integer_value(value) : json_is_true(value);
    const char *symbol = sw_expr_symbol(e);
    if (symbol && *hint >= 0)
      sw_map_set_str(&r->doc->hints, symbol, *hint);
  } else {
    *SW_PUSH(a, &r->doc->unbacked) = (struct sw_unbacked){.expr = e, .slot = hint};
  }
  return true;
}

/* A SymInt, SymBool or SymFloat of metadata: {"as_int": n} or {"as_expr": {..}}. */
static bool symbolic(struct sw_reader *r, const struct sw_at *at, const json_t *j, const char **text, int64_t *hint)
{
  const char *variant;
  const json_t *v = sw_program__union(r, at, j, &variant);
  if (!v)
    return false;
  if (!strcmp(variant, "as_expr"))
    return expression(r, at, v, text, hint);
  *text = NULL;
  if (!strcmp(variant, "as_int") && json_is_integer(v))
    *hint = json_integer_value(v);
  else if (!strcmp(variant, "as_bool") && json_is_boolean(v))
    *hint = json_is_true(v);
  else if (!strcmp(variant, "as_float") && json_is_number(v) && fabs(json_number_value(v)) < 9e18)
    *hint = (int64_t)json_number_value(v);
  else {
    sw_program__fault(r, at, SW_INVALID, "not a number: %s", variant);
    return false;
  }
  return true;
}

bool sw_program__dims(struct sw_reader *r, const struct sw_at *at, const json_t *list, int64_t *out,
                      const char ***exprs)
{
  size_t n = json_array_size(list);
  *exprs = NULL;
  for (size_t d = 0; d < n; d++) {
    struct sw_at here = {at, NULL, d};
    const char *text;
    if (!symbolic(r, &here, json_array_get(list, d), &text, &out[d]))
      return false;
    if (!text)
      continue;
    if (!*exprs)
      *exprs = SW_NEW_N(r->doc->job->arena, const char *, n);
    (*exprs)[d] = text;
  }
  return true;
}

/* -- values -- */

/* TensorMeta (pt2.md section 5). */
static bool tensor_meta(struct sw_reader *r, const struct sw_at *at, const json_t *m, struct sw_value *v)
{
  struct sw_arena *a = r->doc->job->arena;
  const json_t *dtype = sw_program__member(r, at, m, "dtype", JSON_INTEGER);
  const json_t *sizes = sw_program__member(r, at, m, "sizes", JSON_ARRAY);
  const json_t *strides = sw_program__member(r, at, m, "strides", JSON_ARRAY);
  const json_t *offset = sw_program__member(r, at, m, "storage_offset", JSON_OBJECT);
  const json_t *layout = sw_program__member(r, at, m, "layout", JSON_INTEGER);
  if (!dtype || !sizes || !strides || !offset || !layout)
    return false;
  json_int_t number = json_integer_value(dtype);
  v->dtype = number < 0 || number > 1000 ? SW_N_DTYPES : sw_dtype_from_number((int)number);
  if (v->dtype == SW_N_DTYPES) {
    sw_program__fault(r, at, SW_UNSUPPORTED, "dtype number %lld is unknown", (long long)number)->tensor = v->name;
    v->dtype = SW_U8;
    return false;
  }
  if (json_integer_value(layout) != 7) {
    sw_program__fault(r, at, SW_UNSUPPORTED, "tensor layout number %lld is not strided (7)",
                      (long long)json_integer_value(layout))
        ->tensor = v->name;
    return false;
  }
  size_t rank = json_array_size(sizes);
  if (rank > SW_MAX_RANK) {
    struct sw_fault *f = sw_program__fault(r, at, SW_UNSUPPORTED, "tensor %s has %zu dims, at most %d are supported",
                                           v->name, rank, SW_MAX_RANK);
    f->tensor = v->name;
    f->has_limit = true;
    f->value = (int64_t)rank;
    f->limit = SW_MAX_RANK;
    return false;
  }
  if (json_array_size(strides) != rank) {
    sw_program__fault(r, at, SW_INVALID, "tensor %s has %zu sizes but %zu strides", v->name, rank,
                      json_array_size(strides))
        ->tensor = v->name;
    return false;
  }
  v->size = SW_NEW_N(a, int64_t, rank);
  v->stride = SW_NEW_N(a, int64_t, rank);
  struct sw_at sizes_at = {at, "sizes", 0}, strides_at = {at, "strides", 0}, offset_at = {at, "storage_offset", 0};
  int64_t *offset_slot = SW_NEW(a, int64_t); /* v itself may still move */
  if (!sw_program__dims(r, &sizes_at, sizes, v->size, &v->size_expr) ||
      !sw_program__dims(r, &strides_at, strides, v->stride, &v->stride_expr) ||
      !symbolic(r, &offset_at, offset, &v->offset_expr, offset_slot))
    return false;
  v->rank = (int)rank;
  v->offset = *offset_slot;
  return true;
}

int sw_program__define(struct sw_reader *r, const struct sw_at *at, const char *name, enum sw_value_kind kind,
                       int node, int result)
{
  int id = sw_graph__value(&r->names, name);
  struct sw_value *v = &r->names.graph->values.v[id];
  if (v->node != SW_NODE_UNDEFINED) {
    sw_program__fault(r, at, SW_INVALID, "the name %s is defined twice", name)->tensor = v->name;
    return -1;
  }
  v->kind = kind;
  v->node = node;
  v->result = result;
  static const char *const tables[] = {"tensor_values", "sym_int_values", "sym_bool_values", "sym_float_values"};
  const json_t *table = kind == SW_VALUE_TENSOR ? r->tensors : r->numbers[kind - SW_VALUE_SYM_INT];
  const json_t *meta = json_object_get(table, name);
  if (!meta) {
    sw_program__fault(r, at, SW_INVALID, "%s is not in %s", name, tables[kind])->tensor = v->name;
    return -1;
  }
  struct sw_at table_at = {r->at, tables[kind], 0}, here = {&table_at, name, 0};
  if (kind == SW_VALUE_TENSOR)
    return tensor_meta(r, &here, meta, v) ? id : -1;
  int n_unbacked = r->doc->unbacked.n;
  if (!symbolic(r, &here, meta, &v->expr, &v->hint))
    return -1;
  if (r->doc->unbacked.n > n_unbacked) { /* the list of values still grows: no pointer into it */
    struct sw_unbacked *u = &r->doc->unbacked.v[n_unbacked];
    u->slot = NULL;
    u->graph = r->names.graph;
    u->value = id;
  }
  return id;
}

/* -- arguments -- */

enum element { TENSOR, NONE, INT, FLOAT, BOOL, STRING, NUMBER, DTYPE, MEMORY_FORMAT, LAYOUT, DEVICE, GRAPH, ANY };

/* Variants of Argument: what they hold, and whether a list of it. The others of the schema have no meaning here. */
static const struct variant {
  const char *name;
  enum element of;
  bool is_list;
} variants[] = {
    {"as_tensor", TENSOR, false},       {"as_none", NONE, false},         {"as_int", INT, false},
    {"as_float", FLOAT, false},         {"as_bool", BOOL, false},         {"as_string", STRING, false},
    {"as_tensors", TENSOR, true},       {"as_ints", INT, true},           {"as_floats", FLOAT, true},
    {"as_bools", BOOL, true},           {"as_strings", STRING, true},     {"as_sym_int", NUMBER, false},
    {"as_sym_ints", NUMBER, true},      {"as_sym_bool", NUMBER, false},   {"as_sym_bools", NUMBER, true},
    {"as_sym_float", NUMBER, false},    {"as_sym_floats", NUMBER, true},  {"as_scalar_type", DTYPE, false},
    {"as_memory_format", MEMORY_FORMAT, false}, {"as_layout", LAYOUT, false}, {"as_device", DEVICE, false},
    {"as_graph", GRAPH, false},         {"as_optional_tensor", ANY, false}, {"as_optional_tensors", ANY, true},
};

static bool value_named(struct sw_reader *r, const struct sw_at *at, const char *name, struct sw_arg *out)
{
  int64_t id = sw_map_get_str(&r->names.values, name);
  if (id < 0 || r->names.graph->values.v[id].node == SW_NODE_UNDEFINED) {
    sw_program__fault(r, at, SW_INVALID, "%s is read but nothing defines it", name)->tensor =
        sw_arena_strdup(r->doc->job->arena, name);
    return false;
  }
  out->kind = SW_ARG_VALUE;
  out->value = (int)id;
  return true;
}

static bool wrong(struct sw_reader *r, const struct sw_at *at, const char *expected)
{
  sw_program__fault(r, at, SW_INVALID, "%s expected", expected);
  return false;
}

/* Infinity and NaN are strings (pt2.md section 3). */
static bool real(const json_t *j, double *out)
{
  const char *s = json_string_value(j);
  if (!s) {
    *out = json_number_value(j);
    return json_is_number(j);
  }
  bool infinite = !strcmp(s, "Infinity") || !strcmp(s, "-Infinity");
  *out = infinite ? (*s == '-' ? -INFINITY : INFINITY) : (double)NAN;
  return infinite || !strcmp(s, "NaN");
}

static bool dtype_number(struct sw_reader *r, const struct sw_at *at, const json_t *j, struct sw_arg *out)
{
  json_int_t n = json_integer_value(j);
  out->kind = SW_ARG_DTYPE;
  out->dtype = n < 0 || n > 1000 ? SW_N_DTYPES : sw_dtype_from_number((int)n);
  if (out->dtype != SW_N_DTYPES)
    return true;
  sw_program__fault(r, at, SW_UNSUPPORTED, "dtype number %lld is unknown", (long long)n);
  return false;
}

static bool device(struct sw_reader *r, const struct sw_at *at, const json_t *j, struct sw_arg *out)
{
  const json_t *type = sw_program__member(r, at, j, "type", JSON_STRING);
  const json_t *index = json_object_get(j, "index");
  out->kind = SW_ARG_DEVICE;
  if (type && json_is_integer(index))
    out->s = sw_arena_printf(r->doc->job->arena, "%s:%lld", json_string_value(type),
                             (long long)json_integer_value(index));
  else if (type)
    out->s = sw_arena_strdup(r->doc->job->arena, json_string_value(type));
  return type != NULL;
}

/* {"as_name": N}, or a plain {"as_int": 3}. */
static bool number_or_name(struct sw_reader *r, const struct sw_at *at, const json_t *j, struct sw_arg *out)
{
  const char *variant;
  const json_t *v = sw_program__union(r, at, j, &variant);
  if (!v)
    return false;
  if (!strcmp(variant, "as_name"))
    return json_is_string(v) ? value_named(r, at, json_string_value(v), out) : wrong(r, at, "name");
  return sw_program__arg(r, at, j, out);
}

static bool subgraph(struct sw_reader *r, const struct sw_at *at, const json_t *j, struct sw_arg *out)
{
  const json_t *name = sw_program__member(r, at, j, "name", JSON_STRING);
  const json_t *graph = sw_program__member(r, at, j, "graph", JSON_OBJECT);
  if (!name || !graph)
    return false;
  struct sw_at here = {at, "graph", 0};
  out->kind = SW_ARG_GRAPH;
  out->graph = sw_program__graph(r->doc, &here, graph, NULL, NULL);
  out->graph->name = sw_arena_strdup(r->doc->job->arena, json_string_value(name));
  return true;
}

static bool element(struct sw_reader *r, const struct sw_at *at, enum element of, const json_t *j, struct sw_arg *out)
{
  switch (of) {
  case NONE:
    out->kind = SW_ARG_NONE;
    return true;
  case TENSOR: {
    const json_t *name = sw_program__member(r, at, j, "name", JSON_STRING);
    return name && value_named(r, at, json_string_value(name), out);
  }
  case INT:
    out->kind = SW_ARG_INT;
    out->i = json_integer_value(j);
    return json_is_integer(j) || wrong(r, at, "integer");
  case FLOAT: /* the writer may pass an integer through */
    out->kind = SW_ARG_REAL;
    return real(j, &out->r) || wrong(r, at, "number, \"Infinity\", \"-Infinity\" or \"NaN\"");
  case BOOL:
    out->kind = SW_ARG_BOOL;
    out->i = json_is_true(j);
    return json_is_boolean(j) || wrong(r, at, "true or false");
  case STRING:
    out->kind = SW_ARG_STR;
    if (!json_is_string(j))
      return wrong(r, at, "string");
    out->s = sw_arena_strdup(r->doc->job->arena, json_string_value(j));
    return !has_nul(r, at, j);
  case NUMBER:
    return number_or_name(r, at, j, out);
  case DTYPE:
    return json_is_integer(j) ? dtype_number(r, at, j, out) : wrong(r, at, "dtype number");
  case MEMORY_FORMAT:
  case LAYOUT:
    out->kind = of == LAYOUT ? SW_ARG_LAYOUT : SW_ARG_MEMORY_FORMAT;
    out->i = json_integer_value(j);
    return json_is_integer(j) || wrong(r, at, "number");
  case DEVICE:
    return json_is_object(j) ? device(r, at, j, out) : wrong(r, at, "device");
  case GRAPH:
    return json_is_object(j) ? subgraph(r, at, j, out) : wrong(r, at, "graph");
  case ANY:
    return sw_program__arg(r, at, j, out);
  }
  return false;
}

bool sw_program__arg(struct sw_reader *r, const struct sw_at *at, const json_t *argument, struct sw_arg *out)
{
  const char *name;
  const json_t *v = sw_program__union(r, at, argument, &name);
  if (!v)
    return false;
  *out = (struct sw_arg){.name = "", .kind = SW_ARG_NONE};
  struct sw_at here = {at, name, 0};
  const struct variant *variant = NULL;
  for (size_t i = 0; i < sizeof variants / sizeof variants[0]; i++)
    if (!strcmp(variants[i].name, name))
      variant = &variants[i];
  if (!variant) {
    sw_program__fault(r, &here, SW_UNSUPPORTED, "arguments of kind \"%.60s\" are not supported", name);
    return false;
  }
  if (!variant->is_list)
    return element(r, &here, variant->of, v, out);
  if (!json_is_array(v))
    return wrong(r, &here, "list");
  size_t n = json_array_size(v);
  struct sw_arg *list = SW_NEW_N(r->doc->job->arena, struct sw_arg, n);
  bool good = true;
  for (size_t i = 0; i < n; i++) {
    struct sw_at item = {&here, NULL, i};
    list[i].name = "";
    good = element(r, &item, variant->of, json_array_get(v, i), &list[i]) && good;
  }
  out->kind = SW_ARG_LIST;
  out->list.v = list;
  out->list.n = (int)n;
  return good;
}
