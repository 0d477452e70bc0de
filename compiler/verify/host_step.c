#include "compiler/verify/host_step.h"

#include <math.h>
#include <string.h>

/* The step becomes a graph of one node; its tensor arguments are the graph's inputs. */
struct build {
  struct sw_job *job;
  struct sw_graph *graph;
  const struct host_memory *memory;
  SW_VEC(struct sw_tensor) tensors;
  bool bad;
};

static int add_value(struct build *b, const struct sw_tensor *t)
{
  int number = b->graph->values.n;
  struct sw_value *v = SW_PUSH(b->job->arena, &b->graph->values);
  *v = (struct sw_value){.name = sw_arena_printf(b->job->arena, "v%d", number), .dtype = t->dtype, .rank = t->rank};
  v->node = -1;
  v->size = sw_arena_copy(b->job->arena, t->size, (size_t)t->rank, sizeof *t->size);
  v->stride = sw_arena_copy(b->job->arena, t->stride, (size_t)t->rank, sizeof *t->stride);
  *SW_PUSH(b->job->arena, &b->tensors) = *t;
  return number;
}

static bool is_view(const json_t *j)
{
  return json_is_object(j) && json_object_get(j, "buffer");
}

/* Whether the schema's type wants a tensor, so that a string is a buffer's name. */
static struct sw_arg convert(struct build *b, const json_t *j, const char *type)
{
  struct sw_arg a = {.kind = SW_ARG_NONE, .given = true};
  bool wants_tensor = !strncmp(type, "Tensor", 6);
  const json_t *dtype = json_object_get(j, "dtype"), *real = json_object_get(j, "float");
  if (is_view(j) || (json_is_string(j) && wants_tensor)) {
    struct sw_tensor t;
    if (!b->memory->read(b->memory->ctx, j, &t)) {
      b->bad = true;
      return a;
    }
    a.kind = SW_ARG_VALUE;
    a.value = add_value(b, &t);
  } else if (json_is_boolean(j)) {
    a.kind = SW_ARG_BOOL;
    a.i = json_is_true(j);
  } else if (json_is_integer(j)) {
    a.kind = SW_ARG_INT;
    a.i = json_integer_value(j);
  } else if (json_is_real(j)) {
    a.kind = SW_ARG_REAL;
    a.r = json_real_value(j);
  } else if (json_is_string(j)) {
    a.kind = SW_ARG_STR;
    a.s = json_string_value(j);
  } else if (json_is_string(dtype)) {
    a.kind = SW_ARG_DTYPE;
    a.dtype = sw_dtype_from_text(json_string_value(dtype));
  } else if (json_is_string(real)) {
    const char *s = json_string_value(real);
    a.kind = SW_ARG_REAL;
    a.r = *s == '-' ? -INFINITY : *s == 'n' ? NAN : INFINITY;
  } else if (json_is_array(j)) {
    a.kind = SW_ARG_LIST;
    a.list.n = (int)json_array_size(j);
    a.list.v = SW_NEW_N(b->job->arena, struct sw_arg, a.list.n);
    for (int i = 0; i < a.list.n; i++)
      a.list.v[i] = convert(b, json_array_get(j, (size_t)i), type);
  }
  return a;
}

enum sw_rc sim_host_step(struct sw_job *job, const json_t *step, const struct host_memory *memory)
{
  const char *target = json_string_value(json_object_get(step, "host"));
  const struct sw_schema *schema = target ? sw_schema_find(target) : NULL;
  if (!schema)
    return sw_fail(job, SW_UNSUPPORTED, "manifest.json: host step %s is not known", target ? target : "null");
  struct build b = {.job = job, .graph = SW_NEW(job->arena, struct sw_graph), .memory = memory};
  const json_t *inputs = json_object_get(step, "inputs"), *kwargs = json_object_get(step, "kwargs");
  const json_t *outputs = json_object_get(step, "outputs");
  struct sw_node node = {.name = target, .target = target, .schema = schema, .n_args = schema->n_args};
  node.args = SW_NEW_N(job->arena, struct sw_arg, schema->n_args);
  for (int i = 0; i < schema->n_args; i++) {
    const json_t *given = (size_t)i < json_array_size(inputs) ? json_array_get(inputs, (size_t)i)
                                                              : json_object_get(kwargs, schema->args[i].name);
    node.args[i] = given ? convert(&b, given, schema->args[i].type) : schema->args[i].def;
    node.args[i].name = schema->args[i].name;
  }
  if (b.bad)
    return job->worst;
  node.n_results = (int)json_array_size(outputs);
  node.results = SW_NEW_N(job->arena, int, node.n_results);
  for (int i = 0; i < node.n_results; i++) {
    /* The declared result: size and dtype of the buffer that takes it. */
    struct sw_tensor t = {0};
    const json_t *out = json_array_get(outputs, (size_t)i);
    node.results[i] = -1;
    if (json_is_null(out))
      continue;
    if (!memory->shape(memory->ctx, out, &t))
      return job->worst;
    node.results[i] = add_value(&b, &t);
  }
  *SW_PUSH(job->arena, &b.graph->nodes) = node;
  struct sw_eval *e = sw_eval_new(job, b.graph, SW_ROUND_DTYPE, (size_t)4 << 30);
  for (int i = 0; i < b.tensors.n; i++)
    if (b.tensors.v[i].cells)
      sw_eval_set(e, i, &b.tensors.v[i]);
  SW_TRY(sw_eval_node(e, 0));
  for (int i = 0; i < node.n_results; i++) {
    const struct sw_evaluated *v = node.results[i] < 0 ? NULL : sw_eval_value(e, node.results[i]);
    if (v && (v->kind != SW_TENSOR || !memory->write(memory->ctx, json_array_get(outputs, (size_t)i), &v->tensor)))
      return sw_fail(job, SW_DIFFERENT, "manifest.json: host step %s: result %d can't be written", target, i);
  }
  return SW_OK;
}
