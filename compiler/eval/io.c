#include "compiler/eval/io.h"

#include "base/files.h"
#include "base/json.h"

#include <math.h>
#include <string.h>

/* A file of values over its size is refused unread, unless it is this small. */
enum { MAX_JSON = 64 << 20, MAX_VALUES = 1 << 20, SMALL_FILE = 1 << 20 };

/* -- reading -- */

static const char *folder_of(struct sw_arena *a, const char *path)
{
  const char *slash = strrchr(path, '/');
  return slash ? sw_arena_strndup(a, path, (size_t)(slash - path) + 1) : "";
}

static enum sw_rc read_tensor(struct sw_job *job, const json_t *v, const char *where, const char *folder,
                              enum sw_dtype dtype, struct sw_tensor *out)
{
  const json_t *file = sw_json_member(job, v, where, "file", JSON_STRING);
  const json_t *shape = sw_json_member(job, v, where, "shape", JSON_ARRAY);
  if (!file || !shape)
    return SW_INVALID;
  int rank = (int)json_array_size(shape);
  int64_t size[SW_MAX_RANK], n = 1;
  if (rank > SW_MAX_RANK)
    return sw_fail(job, SW_INVALID, "%s/shape: %d dims, the limit is %d", where, rank, SW_MAX_RANK);
  for (int d = 0; d < rank; d++) {
    size[d] = json_integer_value(json_array_get(shape, (size_t)d));
    if (size[d] < 0 || __builtin_mul_overflow(n, size[d], &n))
      return sw_fail(job, SW_INVALID, "%s/shape: the size is negative or too large", where);
  }
  const char *path = sw_arena_printf(job->arena, "%s%s", folder, json_string_value(file)), *bytes;
  size_t len, want;
  if (__builtin_mul_overflow((size_t)n, (size_t)sw_dtype_bytes(dtype), &want))
    return sw_fail(job, SW_INVALID, "%s/shape: the size is too large", where);
  SW_TRY(sw_file_read(job, path, want < SMALL_FILE ? SMALL_FILE : want, &bytes, &len));
  if (len != want)
    return sw_fail(job, SW_INVALID, "%s: %zu bytes, but %s says %zu", path, len, where, want);
  sw_tensor_from_bytes(job->arena, out, dtype, rank, size, bytes);
  return SW_OK;
}

static enum sw_rc read_value(struct sw_job *job, const json_t *v, const char *where, const char *folder,
                             struct sw_io_value *out)
{
  const json_t *dtype = sw_json_member(job, v, where, "dtype", JSON_STRING);
  if (!dtype)
    return SW_INVALID;
  out->atol = json_number_value(json_object_get(v, "atol"));
  out->rtol = json_number_value(json_object_get(v, "rtol"));
  const json_t *number = json_object_get(v, "value");
  if (json_is_null(number))
    return SW_OK;
  if (number) {
    out->value.kind = SW_NUMBER;
    if (json_is_boolean(number))
      out->value.number = (struct sw_number){.kind = SW_NUMBER_BOOL, .i = json_is_true(number)};
    else if (json_is_integer(number))
      out->value.number = (struct sw_number){.kind = SW_NUMBER_INT, .i = json_integer_value(number)};
    else if (json_is_real(number))
      out->value.number = (struct sw_number){.kind = SW_NUMBER_REAL, .r = json_real_value(number)};
    else
      return sw_fail(job, SW_INVALID, "%s/value: a number, true, false or null expected", where);
    return SW_OK;
  }
  enum sw_dtype t = sw_dtype_from_text(json_string_value(dtype));
  if (t == SW_N_DTYPES)
    return sw_fail(job, SW_INVALID, "%s/dtype: there is no dtype %s", where, json_string_value(dtype));
  out->value.kind = SW_TENSOR;
  return read_tensor(job, v, where, folder, t, &out->value.tensor);
}

enum sw_rc sw_io_read(struct sw_job *job, const char *path, struct sw_io **out)
{
  static const struct {
    const char *key, *name; /* name NULL: the order is the name */
    enum sw_io_role role;
  } lists[] = {
      {"inputs", "name", SW_IO_INPUT},
      {"outputs", NULL, SW_IO_OUTPUT},
      {"buffers_after", "buffer", SW_IO_BUFFER_AFTER},
      {"user_inputs_after", "input", SW_IO_INPUT_AFTER},
  };
  const char *text;
  size_t len;
  SW_TRY(sw_file_read(job, path, MAX_JSON, &text, &len));
  json_t *root = sw_json_parse(job, path, text, len, MAX_VALUES);
  if (!root)
    return SW_INVALID;
  struct sw_io *io = SW_NEW(job->arena, struct sw_io);
  const char *folder = folder_of(job->arena, path);
  io->name = json_string_value(json_object_get(root, "name"));
  enum sw_rc worst = SW_OK;
  for (int l = 0; l < (int)(sizeof lists / sizeof lists[0]); l++) {
    const json_t *list = json_object_get(root, lists[l].key);
    for (size_t i = 0; i < json_array_size(list); i++) {
      const json_t *v = json_array_get(list, i);
      const char *where = sw_arena_printf(job->arena, "/%s/%zu", lists[l].key, i);
      struct sw_io_value *value = SW_PUSH(job->arena, &io->values);
      value->role = lists[l].role;
      value->order = (int)i;
      value->name = sw_arena_printf(job->arena, "%zu", i);
      const json_t *name = lists[l].name ? sw_json_member(job, v, where, lists[l].name, JSON_STRING) : NULL;
      if (lists[l].name && !name)
        worst = SW_INVALID;
      else if (name)
        value->name = json_string_value(name);
      enum sw_rc rc = read_value(job, v, where, folder, value);
      worst = rc > worst ? rc : worst;
    }
  }
  if (worst == SW_OK)
    *out = io;
  return worst;
}

/* -- inputs -- */

static enum sw_rc give(struct sw_job *job, const struct sw_io_value *v, struct sw_eval *e, const struct sw_graph *g,
                       int value)
{
  const struct sw_value *declared = &g->values.v[value];
  if (declared->kind != SW_VALUE_TENSOR) {
    if (v->value.kind != SW_NUMBER)
      return sw_fail(job, SW_INVALID, "input %s is a number in the graph", declared->name);
    sw_eval_set_number(e, value, v->value.number);
    return SW_OK;
  }
  const struct sw_tensor *t = &v->value.tensor;
  bool agrees = v->value.kind == SW_TENSOR && t->rank == declared->rank && t->dtype == declared->dtype;
  for (int d = 0; agrees && d < t->rank; d++)
    agrees = (declared->size_expr && declared->size_expr[d]) || t->size[d] == declared->size[d];
  if (!agrees)
    return sw_fail(job, SW_INVALID, "the values for input %s have another dtype or size than the graph declares",
                   declared->name);
  sw_eval_set(e, value, t);
  return SW_OK;
}

enum sw_rc sw_io_give_inputs(struct sw_job *job, const struct sw_io *io, struct sw_eval *e, const struct sw_graph *g)
{
  SW_VEC(const struct sw_io_value *) given = {0};
  for (int i = 0; i < io->values.n; i++)
    if (io->values.v[i].role == SW_IO_INPUT)
      *SW_PUSH(job->arena, &given) = &io->values.v[i];
  int n = 0;
  enum sw_rc worst = SW_OK;
  for (int i = 0; i < g->inputs.n; i++) {
    const struct sw_input *in = &g->inputs.v[i];
    if (in->kind != SW_INPUT_USER && in->kind != SW_INPUT_CONSTANT)
      continue;
    if (n < given.n && in->value >= 0) {
      enum sw_rc rc = give(job, given.v[n], e, g, in->value);
      worst = rc > worst ? rc : worst;
    }
    n++;
  }
  if (n != given.n)
    worst = sw_fail(job, SW_INVALID, "%d inputs are given, the graph takes %d", given.n, n);
  return worst;
}

/* -- comparing -- */

static struct sw_evaluated tensor_of_number(struct sw_arena *a, struct sw_number n)
{
  struct sw_evaluated v = {.kind = SW_TENSOR};
  struct sw_cells *c = v.tensor.cells = SW_NEW(a, struct sw_cells);
  c->n = 1;
  c->dtype = v.tensor.dtype = n.kind == SW_NUMBER_REAL ? SW_F64 : n.kind == SW_NUMBER_BOOL ? SW_BOOL : SW_I64;
  if (n.kind == SW_NUMBER_REAL)
    c->real = sw_arena_copy(a, &n.r, 1, sizeof n.r);
  else
    c->integer = sw_arena_copy(a, &n.i, 1, sizeof n.i);
  return v;
}

static void compare_element(struct sw_difference *d, const struct sw_io_value *want, double got, double expected,
                            int64_t at)
{
  double error = 0, worst = 0;
  if (isnan(got) || isnan(expected) || isinf(got) || isinf(expected))
    error = worst = (isnan(got) && isnan(expected)) || got == expected ? 0 : (double)INFINITY;
  else if (got != expected) {
    error = fabs(got - expected);
    worst = error / (want->atol + want->rtol * fabs(expected));
  }
  d->outside += worst > 1;
  d->max_error = fmax(d->max_error, error);
  if (worst > d->worst) {
    d->worst = worst;
    d->worst_at = at;
  }
}

void sw_io_compare(struct sw_arena *a, const struct sw_io_value *want, const struct sw_evaluated *got,
                   struct sw_difference *out)
{
  *out = (struct sw_difference){.worst_at = -1};
  if (want->value.kind != got->kind) {
    out->why = got->kind == SW_UNKNOWN ? "there is no value" : want->value.kind == SW_UNKNOWN ? "None is expected"
               : want->value.kind == SW_TENSOR ? "a tensor is expected" : "a number is expected";
    return;
  }
  out->agrees = true;
  if (got->kind == SW_UNKNOWN)
    return;
  struct sw_evaluated x = *got, y = want->value;
  if (x.kind == SW_NUMBER) {
    x = tensor_of_number(a, got->number);
    y = tensor_of_number(a, want->value.number);
  }
  const struct sw_tensor *s = &x.tensor, *t = &y.tensor;
  if (s->rank != t->rank || memcmp(s->size, t->size, sizeof s->size[0] * (size_t)s->rank)) {
    out->agrees = false;
    out->why = "another size is expected";
    return;
  }
  const double *p = sw_tensor_reals(a, s, &out->elements), *q = sw_tensor_reals(a, t, &out->elements);
  for (int64_t i = 0; i < out->elements; i++)
    compare_element(out, want, p[i], q[i], i);
  out->agrees = out->outside == 0;
}
