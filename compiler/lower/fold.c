/* Constants, and values as tensors of the program.
 *
 * A constant node (analyse.c) is computed here, in program order (an in-place op on a constant writes into it as in
 * PyTorch), and never reaches the program; where a device op or an output reads such a value it becomes a storage of its
 * own, in the dtype the reader needs. */
#include "compiler/lower/lower.h"

#include <math.h>
#include <string.h>

struct scan {
  struct lower *l;
  bool all; /* so far */
};

/* -- computing constants -- */

static void check_known(void *ctx, int value)
{
  struct scan *s = ctx;
  if (s->l->graph->values.v[value].kind == SW_VALUE_TENSOR)
    s->all = s->all && sw_eval_value(s->l->eval, value)->kind != SW_UNKNOWN;
}

/* Computes the node at work if it is constant and its arguments have values. */
bool lw_fold_node(struct lower *l)
{
  const struct sw_node *n = lw_node(l);
  if (!l->node_constant[l->node])
    return false;
  struct scan s = {l, true};
  int from = lw_n_for_size(l, n);
  lw_each_value(n->args + from, n->n_args - from, check_known, &s);
  if (!s.all || sw_eval_node(l->eval, l->node) != SW_OK)
    return false;
  for (int r = 0; r < n->n_results; r++)
    if (n->results[r] >= 0 && sw_eval_value(l->eval, n->results[r])->kind == SW_UNKNOWN)
      return false;
  return true;
}

const struct sw_tensor *lw_constant_elements(struct lower *l, int value)
{
  if (!l->values[value].constant)
    return NULL;
  const struct sw_evaluated *e = sw_eval_value(l->eval, value);
  return e->kind == SW_TENSOR && e->tensor.cells ? &e->tensor : NULL;
}

/* -- constants as storages -- */

/* Element number i in row-major order. */
static double element(const struct sw_tensor *t, int64_t i)
{
  int64_t at = t->offset;
  for (int d = t->rank - 1; d >= 0; d--) {
    at += i % t->size[d] * t->stride[d];
    i /= t->size[d];
  }
  return t->cells->real ? t->cells->real[at] : (double)t->cells->integer[at];
}

double lw_narrowed(double x, enum sw_dtype dtype)
{
  return dtype == SW_F16 && isfinite(x) ? fmin(fmax(x, -65504), 65504) : x;
}

struct tensor lw_table(struct lower *l, const char *name, enum sw_dtype dtype, int rank, const int64_t *size,
                       const double *elements)
{
  struct tensor t = lw_new_named(l, name, dtype, rank, size, NULL);
  struct sw_storage *s = &l->program->storages.v[t.storage];
  int64_t n = sw_storage_elements(s);
  struct sw_cells cells = {.dtype = dtype, .n = n};
  if (sw_dtype_is_float(dtype)) {
    cells.real = SW_NEW_N(lw_scratch(l), double, n);
    for (int64_t i = 0; i < n; i++)
      cells.real[i] = sw_round_to(dtype, elements[i]);
  } else {
    cells.integer = SW_NEW_N(lw_scratch(l), int64_t, n);
    for (int64_t i = 0; i < n; i++)
      cells.integer[i] = dtype == SW_BOOL ? elements[i] != 0 : (int64_t)elements[i];
  }
  struct sw_tensor all = {.dtype = dtype, .rank = rank, .cells = &cells};
  memcpy(all.size, t.size, sizeof all.size);
  memcpy(all.stride, t.stride, sizeof all.stride);
  s->kind = SW_STORAGE_CONSTANT;
  s->data = sw_tensor_bytes(l->arena, &all, &s->n_bytes);
  return t;
}

double *lw_constant_doubles(struct lower *l, int value)
{
  const struct sw_tensor *e = lw_constant_elements(l, value);
  int64_t n = sw_value_elements(&l->graph->values.v[value]);
  double *x = SW_NEW_N(lw_scratch(l), double, n);
  for (int64_t i = 0; e && i < n; i++)
    x[i] = element(e, i);
  return x;
}

static struct tensor whole(struct lower *l, int storage)
{
  const struct sw_storage *s = &l->program->storages.v[storage];
  struct tensor t = {.storage = storage, .dtype = s->dtype, .rank = s->rank};
  memcpy(t.size, s->size, sizeof t.size);
  memcpy(t.stride, s->stride, sizeof t.stride);
  return t;
}

struct tensor lw_cached(struct lower *l, struct lw_table_key key)
{
  int64_t at = sw_map_get(&l->tables, &key, sizeof key);
  return at < 0 ? lw_unknown() : whole(l, (int)at);
}

void lw_cache(struct lower *l, struct lw_table_key key, struct tensor t)
{
  if (lw_known(t))
    sw_map_set(&l->tables, &key, sizeof key, t.storage);
}

struct sw_arena *lw_scratch(struct lower *l)
{
  if (!l->scratch)
    l->scratch = sw_arena_new(l->arena, SIZE_MAX);
  return l->scratch ? l->scratch : l->arena;
}

struct tensor lw_constant_value(struct lower *l, int value, enum sw_dtype dtype)
{
  const struct sw_value *v = &l->graph->values.v[value];
  if (!lw_constant_elements(l, value))
    return lw_unknown();
  enum sw_dtype own = lw_dtype_of_value(l, value);
  if (dtype == SW_N_DTYPES)
    dtype = own;
  struct lw_table_key key = {LW_TABLE_VALUE, value, 0, dtype};
  bool keep = !l->values[l->values[value].root].mutated;
  struct tensor known = keep ? lw_cached(l, key) : lw_unknown();
  if (lw_known(known))
    return known;
  int64_t n = sw_value_elements(v);
  double *x = lw_constant_doubles(l, value);
  bool uniform = n > 0;
  for (int64_t i = 0; i < n; i++)
    x[i] = lw_narrowed(x[i], dtype);
  for (int64_t i = 0; i < n; i++)
    uniform = uniform && memcmp(&x[i], &x[0], sizeof *x) == 0;
  if (uniform && !l->best && n > 1 && (dtype == SW_F16 || dtype == SW_BF16 || dtype == SW_F32)) {
    struct tensor t = lw_fill(l, x[0], dtype, v->rank, v->size, v->stride); /* the reference writes it, ops.md 2.6 */
    if (keep)
      lw_cache(l, key, t);
    return t;
  }
  if (uniform && sw_dtype_is_float(dtype))
    return lw_expand(l, lw_scalar(l, x[0], dtype), v->rank, v->size);
  const char *name = dtype == own ? v->name : sw_arena_printf(l->arena, "%s:%s", v->name, sw_dtype_text(dtype));
  struct tensor t = lw_table(l, name, dtype, v->rank, v->size, x);
  if (keep)
    lw_cache(l, key, t);
  return t;
}

/* -- values as tensors -- */

static struct tensor input_tensor(struct lower *l, int value)
{
  const struct sw_graph *g = l->graph;
  const struct sw_value *v = &g->values.v[value];
  int k = l->input_of[value];
  struct tensor t = lw_new_named(l, v->name, v->dtype, v->rank, v->size, v->stride);
  struct sw_storage *s = &l->program->storages.v[t.storage];
  s->input = k;
  switch (g->inputs.v[k].kind) {
  case SW_INPUT_PARAMETER:
    s->kind = SW_STORAGE_PARAMETER;
    break;
  case SW_INPUT_USER:
    s->kind = SW_STORAGE_INPUT;
    break;
  default:
    s->kind = SW_STORAGE_BUFFER;
  }
  return t;
}

/* Where the contents of a storage are now; the way there is shortened. */
static int newest(struct lower *l, int storage)
{
  int at = storage;
  while (at >= 0 && lw_storage(l, at)->moved)
    at = lw_storage(l, at)->moved - 1;
  while (storage != at) {
    int next = lw_storage(l, storage)->moved - 1;
    lw_storage(l, storage)->moved = at + 1;
    storage = next;
  }
  return at;
}

struct tensor lw_tensor_of_value(struct lower *l, int value)
{
  struct tensor *t = &l->tensors[value];
  if (t->storage != LW_LATER) {
    struct tensor now = *t;
    now.storage = newest(l, t->storage);
    return now;
  }
  const struct sw_value *v = &l->graph->values.v[value];
  struct tensor made;
  if (v->node < 0 && !(sw_value_elements(v) == 1 && lw_constant_elements(l, value)))
    made = input_tensor(l, value);
  else
    made = lw_constant_value(l, value, SW_N_DTYPES);
  if (v->node < 0 || !l->values[l->values[value].root].mutated)
    *t = made;
  if (v->node < 0 && lw_known(made)) {
    lw_storage(l, made.storage)->last_use = l->values[value].last_use;
    lw_storage(l, made.storage)->mutated = l->values[value].mutated;
  }
  return made;
}

bool lw_is_last_use(struct lower *l, int value, int storage)
{
  int input = l->input_of[l->values[value].root];
  if (l->program->storages.v[storage].kind != SW_STORAGE_TEMPORARY && (input < 0 || !l->replaced[input]))
    return false;
  int last = l->values[l->values[value].root].last_use, any = lw_storage(l, storage)->last_use;
  return last <= l->node && any <= l->node;
}

static void check_tensor(void *ctx, int value)
{
  struct scan *s = ctx;
  if (s->l->graph->values.v[value].kind == SW_VALUE_TENSOR)
    s->all = s->all && lw_known(lw_tensor_of_value(s->l, value));
}

/* False when an argument is unknown, so that its fault stands already. */
bool lw_arguments_known(struct lower *l)
{
  struct scan s = {l, true};
  lw_each_value(lw_node(l)->args, lw_node(l)->n_args, check_tensor, &s);
  return s.all;
}

static void touch(void *ctx, int value)
{
  struct lower *l = ctx;
  if (l->graph->values.v[value].kind == SW_VALUE_TENSOR && l->input_of[value] >= 0)
    lw_tensor_of_value(l, value);
}

/* Graph inputs become storages in order of first use, whatever the node's function does with them. */
void lw_touch_arguments(struct lower *l)
{
  lw_each_value(lw_node(l)->args, lw_node(l)->n_args, touch, l);
}
