#include "compiler/verify/sizes.h"

#include <inttypes.h>
#include <string.h>

bool sim_read_sizes(struct sw_job *job, const json_t *manifest, struct sim_sizes *out)
{
  size_t i;
  json_t *j;
  json_array_foreach (json_object_get(manifest, "symbols"), i, j) {
    struct sim_size *s = SW_PUSH(job->arena, &out->v);
    *s = (struct sim_size){.name = json_string_value(json_object_get(j, "name")),
                           .input = json_string_value(json_object_get(j, "input")),
                           .dim = (int)json_integer_value(json_object_get(j, "dim")),
                           .min = json_integer_value(json_object_get(j, "min")),
                           .max = json_integer_value(json_object_get(j, "max")),
                           .step = json_integer_value(json_object_get(j, "step"))};
    s->value = s->max;
    if (!s->name || !s->input || s->min < 1 || s->max < s->min || s->step < 1 || s->max % s->step) {
      sw_fault(job, SW_DIFFERENT, "manifest.json: symbols: a size without name, input or range")->source = "manifest.json";
      return false;
    }
  }
  return true;
}

bool sim_size_of_input(struct sw_job *job, struct sim_sizes *sizes, const char *input, const struct sw_tensor *t)
{
  for (int i = 0; i < sizes->v.n; i++) {
    struct sim_size *s = &sizes->v.v[i];
    if (strcmp(s->input, input) || s->dim < 0 || s->dim >= t->rank)
      continue;
    s->value = t->size[s->dim];
    if (s->value >= s->min && s->value <= s->max && s->value % s->step == 0)
      continue;
    struct sw_fault *f = sw_fault(job, SW_INVALID, "input %s: %s is %" PRId64 ", the program serves %" PRId64 " to %" PRId64
                                  " in steps of %" PRId64, input, s->name, s->value, s->min, s->max, s->step);
    f->tensor = input;
    f->has_limit = true;
    f->value = s->value;
    f->limit = s->value < s->min ? s->min : s->max;
    f->advice = "pad the input, or compile with another --dim-max";
    return false;
  }
  return true;
}

bool sim_size_of_symbol(const struct sim_sizes *sizes, const json_t *symbol, int64_t *value, const struct sim_size **size)
{
  const char *input = json_string_value(json_object_get(symbol, "input"));
  json_int_t dim = json_integer_value(json_object_get(symbol, "dim"));
  *value = json_integer_value(symbol);
  *size = NULL;
  for (int i = 0; input && i < sizes->v.n; i++)
    if (!strcmp(sizes->v.v[i].input, input) && sizes->v.v[i].dim == dim) {
      *value = sizes->v.v[i].value;
      *size = &sizes->v.v[i];
      return true;
    }
  return json_is_integer(symbol);
}

bool sim_cut_rows(const struct sim_sizes *sizes, const json_t *of, int rank, int64_t *size)
{
  const json_t *rows = json_object_get(of, "rows");
  const char *symbol = json_string_value(json_object_get(rows, "symbol"));
  json_int_t dim = json_integer_value(json_object_get(rows, "dim"));
  if (!rows)
    return true;
  for (int i = 0; symbol && i < sizes->v.n; i++) {
    const struct sim_size *s = &sizes->v.v[i];
    if (strcmp(s->name, symbol))
      continue;
    if (dim < 0 || dim >= rank || size[dim] % s->max)
      return false;
    for (json_int_t d = 0; d < dim; d++)
      if (size[d] != 1)
        return false;
    size[dim] = size[dim] / s->max * s->value;
    return true;
  }
  return false;
}
