/* Guards of an export: what it assumed of the sizes of its inputs, as Python text (reference: pt2.md section 10).
 *
 * "((-1) + L['args'][0].size()[0]) != 1" with a first input of size [s33, 64] becomes "s33 - 1 != 1". Where the inputs
 * are nested or the text says something else than arithmetic, it stays as it is, and nobody can check it. */
#include "compiler/graph/program.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct guard {
  const struct sw_graph *g;
  struct sw_arena *arena;
  int n_plain; /* so many first positional arguments are plain values, so they count like the inputs */
};

/* "[1, {tuple, children: [{tuple, children: args}, {dict, children: kwargs}]}]"; a leaf has no type. */
static int plain_arguments(struct sw_job *job, struct sw_arena *scratch, const json_t *module)
{
  const json_t *call = json_array_get(json_object_get(module, "module_call_graph"), 0);
  const char *spec = json_string_value(json_object_get(json_object_get(call, "signature"), "in_spec"));
  const json_t *tree = spec ? sw_graph__json(job, scratch, "in_spec", spec, strlen(spec), 1000000) : NULL;
  const json_t *both = json_object_get(json_array_get(tree, 1), "children_spec");
  const json_t *args = json_object_get(json_array_get(both, 0), "children_spec");
  size_t n = 0;
  while (n < json_array_size(args) && json_is_null(json_object_get(json_array_get(args, n), "type")))
    n++;
  return (int)n;
}

/* Number behind `open` and before "]". */
static bool bracket(const char **s, const char *open, int64_t *out)
{
  size_t n = strlen(open);
  char *end;
  if (strncmp(*s, open, n))
    return false;
  *out = strtoll(*s + n, &end, 10);
  if (end == *s + n || *end != ']')
    return false;
  *s = end + 1;
  return true;
}

/* The input that "L['args'][0]" or "L['x']" means. */
static const struct sw_value *input_of(const struct guard *u, const char **s)
{
  int64_t wanted = -1, order = 0;
  const char *name = NULL;
  if (!bracket(s, "L['args'][", &wanted)) {
    const char *end = strncmp(*s, "L['", 3) ? NULL : strstr(*s, "']");
    if (!end)
      return NULL;
    name = sw_arena_strndup(u->arena, *s + 3, (size_t)(end - *s - 3));
    *s = end + 2;
  }
  for (int i = 0; i < u->g->inputs.n; i++) {
    const struct sw_input *in = &u->g->inputs.v[i];
    if (in->kind != SW_INPUT_USER && in->kind != SW_INPUT_CONSTANT)
      continue;
    if (in->value >= 0 && (name ? !strcmp(name, in->name) : order == wanted && order < u->n_plain))
      return &u->g->values.v[in->value];
    order++;
  }
  return NULL;
}

static bool put_operand(const struct guard *u, const char **s, struct sw_buf *out)
{
  const struct sw_value *v = input_of(u, s);
  if (!v)
    return false;
  int64_t dim = -1, number = v->hint;
  const char *expr = v->expr;
  if (v->kind == SW_VALUE_TENSOR) {
    if (!bracket(s, ".size()[", &dim) || dim < 0 || dim >= v->rank)
      return false;
    expr = v->size_expr ? v->size_expr[dim] : NULL;
    number = v->size[dim];
  }
  if (**s == '.' || **s == '[')
    return false;
  if (expr)
    sw_buf_printf(out, "(%s)", expr);
  else
    sw_buf_printf(out, "(%" PRId64 ")", number);
  return true;
}

static const char *translate(const struct guard *u, const char *s)
{
  struct sw_buf b = {.arena = u->arena};
  for (const char *p = s; *p;) {
    if (p[0] != 'L' || p[1] != '[')
      sw_buf_add(&b, p++, 1);
    else if (!put_operand(u, &p, &b))
      return NULL;
  }
  const struct sw_expr *e = sw_expr_parse(u->arena, sw_buf_text(&b));
  return e ? sw_expr_text(u->arena, e) : NULL;
}

void sw_program__guards(struct sw_job *job, const json_t *root, struct sw_graph *g)
{
  const json_t *list = json_object_get(root, "guards_code");
  if (!json_array_size(list))
    return;
  struct sw_arena *scratch = sw_arena_new(job->arena, 0);
  struct guard u = {g, job->arena, plain_arguments(job, scratch, json_object_get(root, "graph_module"))};
  for (size_t i = 0; i < json_array_size(list); i++) {
    const char *text = json_string_value(json_array_get(list, i)), *guard = text ? translate(&u, text) : NULL;
    if (text)
      *SW_PUSH(job->arena, &g->guards) = guard ? guard : sw_arena_strdup(job->arena, text);
  }
  sw_arena_free(scratch);
}
