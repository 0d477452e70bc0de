#include "compiler/eval/call.h"

#include "base/number.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void sw_call_stop(struct sw_call *c, enum sw_rc rc, const char *fmt, ...)
{
  char line[512];
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(line, sizeof line, fmt, ap);
  va_end(ap);
  struct sw_fault *f = sw_fault(c->eval->job, rc, "%s: %s", c->node->target, line);
  f->node = c->node->name;
  f->source = c->node->source;
  sw_call_leave(c, rc);
}

void sw_call_leave(struct sw_call *c, enum sw_rc rc)
{
  c->rc = rc;
  longjmp(c->out, 1);
}

void sw_call_over_limit(struct sw_call *c)
{
  c->over_limit = true;
  longjmp(c->out, 1);
}

/* -- arguments -- */

const struct sw_arg *sw_call_arg(struct sw_call *c, const char *name)
{
  const struct sw_arg *a = sw_node_arg(c->node, name);
  return a && a->kind != SW_ARG_NONE ? a : NULL;
}

bool sw_call_has(struct sw_call *c, const char *name)
{
  return sw_call_arg(c, name) != NULL;
}

const struct sw_arg *sw_call_need(struct sw_call *c, const char *name)
{
  const struct sw_arg *a = sw_call_arg(c, name);
  if (!a)
    sw_call_stop(c, SW_INVALID, "argument %s is missing", name);
  return a;
}

static const struct sw_evaluated *value_of(struct sw_call *c, const struct sw_arg *a)
{
  return &c->eval->values[a->value];
}

double sw_number_real(struct sw_number n)
{
  return n.kind == SW_NUMBER_REAL ? n.r : (double)n.i;
}

int64_t sw_number_int(struct sw_number n)
{
  return n.kind == SW_NUMBER_REAL ? sw_whole_of_real(n.r) : n.i;
}

struct sw_number sw_call_number(struct sw_call *c, const struct sw_arg *a)
{
  if (a->kind == SW_ARG_INT)
    return (struct sw_number){.kind = SW_NUMBER_INT, .i = a->i};
  if (a->kind == SW_ARG_BOOL)
    return (struct sw_number){.kind = SW_NUMBER_BOOL, .i = a->i != 0};
  if (a->kind == SW_ARG_REAL)
    return (struct sw_number){.kind = SW_NUMBER_REAL, .r = a->r};
  if (a->kind == SW_ARG_VALUE) {
    const struct sw_evaluated *v = value_of(c, a);
    if (v->kind == SW_NUMBER)
      return v->number;
    if (v->kind == SW_TENSOR && sw_tensor_elements(&v->tensor) == 1) {
      struct sw_number n = {.kind = v->tensor.dtype == SW_BOOL ? SW_NUMBER_BOOL : SW_NUMBER_INT};
      if (sw_class_of(v->tensor.dtype) == SW_CLASS_WHOLE) {
        sw_get_wholes(&v->tensor, &n.i);
        return n;
      }
      n.kind = SW_NUMBER_REAL;
      sw_get_reals(&v->tensor, &n.r);
      return n;
    }
  }
  sw_call_stop(c, SW_INVALID, "argument %s is not a number", a->name);
}

struct sw_tensor sw_call_operand(struct sw_call *c, const char *name, bool *is_number)
{
  const struct sw_arg *a = sw_call_need(c, name);
  bool is_tensor = a->kind == SW_ARG_VALUE && value_of(c, a)->kind == SW_TENSOR;
  if (is_number)
    *is_number = !is_tensor;
  if (is_tensor)
    return value_of(c, a)->tensor;
  return sw_call_scalar(c, sw_call_number(c, a));
}

struct sw_tensor sw_call_tensor(struct sw_call *c, const char *name)
{
  return sw_call_operand(c, name, NULL);
}

const struct sw_tensor *sw_call_tensors(struct sw_call *c, const char *name, int *n)
{
  const struct sw_arg *a = sw_call_need(c, name);
  bool is_list = a->kind == SW_ARG_LIST;
  const struct sw_arg *v = is_list ? a->list.v : a;
  *n = is_list ? a->list.n : 1;
  struct sw_tensor *ts = SW_NEW_N(c->scratch, struct sw_tensor, *n);
  for (int i = 0; i < *n; i++) {
    if (v[i].kind == SW_ARG_NONE)
      continue;
    if (v[i].kind != SW_ARG_VALUE || value_of(c, &v[i])->kind != SW_TENSOR)
      sw_call_stop(c, SW_INVALID, "argument %s is not a list of tensors", name);
    ts[i] = value_of(c, &v[i])->tensor;
  }
  return ts;
}

int64_t sw_call_int(struct sw_call *c, const char *name)
{
  return sw_number_int(sw_call_number(c, sw_call_need(c, name)));
}

int64_t sw_call_int_or(struct sw_call *c, const char *name, int64_t otherwise)
{
  return sw_call_has(c, name) ? sw_call_int(c, name) : otherwise;
}

double sw_call_real(struct sw_call *c, const char *name)
{
  return sw_number_real(sw_call_number(c, sw_call_need(c, name)));
}

double sw_call_real_or(struct sw_call *c, const char *name, double otherwise)
{
  return sw_call_has(c, name) ? sw_call_real(c, name) : otherwise;
}

bool sw_call_bool(struct sw_call *c, const char *name)
{
  return sw_call_has(c, name) && sw_call_int(c, name) != 0;
}

const char *sw_call_text(struct sw_call *c, const char *name, const char *otherwise)
{
  const struct sw_arg *a = sw_call_arg(c, name);
  if (a && a->kind != SW_ARG_STR)
    sw_call_stop(c, SW_INVALID, "argument %s is not a string", name);
  return a ? a->s : otherwise;
}

enum sw_dtype sw_call_dtype(struct sw_call *c, const char *name, enum sw_dtype otherwise)
{
  const struct sw_arg *a = sw_call_arg(c, name);
  if (a && a->kind != SW_ARG_DTYPE)
    sw_call_stop(c, SW_INVALID, "argument %s is not a dtype", name);
  return a ? a->dtype : otherwise;
}

struct sw_ints sw_call_ints(struct sw_call *c, const char *name)
{
  const struct sw_arg *a = sw_call_arg(c, name);
  if (!a)
    return (struct sw_ints){0};
  bool is_list = a->kind == SW_ARG_LIST;
  int n = is_list ? a->list.n : 1;
  int64_t *v = SW_NEW_N(c->scratch, int64_t, n);
  for (int i = 0; i < n; i++)
    v[i] = sw_number_int(sw_call_number(c, is_list ? &a->list.v[i] : a));
  return (struct sw_ints){n, v};
}

int64_t sw_ints_at(struct sw_call *c, struct sw_ints l, int i, int64_t otherwise)
{
  if (l.n == 0)
    return otherwise;
  if (l.n > 1 && i >= l.n)
    sw_call_stop(c, SW_INVALID, "a list of %d numbers is too short", l.n);
  return l.v[l.n == 1 ? 0 : i];
}

int sw_dim_of(struct sw_call *c, int64_t dim, int rank)
{
  int dims = rank > 0 ? rank : 1;
  if (dim < -dims || dim >= dims)
    sw_call_stop(c, SW_INVALID, "there is no dim %lld in a tensor of rank %d", (long long)dim, rank);
  return (int)(dim < 0 ? dim + dims : dim);
}

int sw_call_dim(struct sw_call *c, const char *name, int rank)
{
  return sw_dim_of(c, sw_call_int(c, name), rank);
}

/* -- temporaries -- */

int64_t sw_call_product(struct sw_call *c, int n, const int64_t *size)
{
  int64_t p;
  if (!sw_product(n, size, &p))
    sw_call_stop(c, SW_INVALID, "a tensor has a negative size, or more elements than can be counted");
  return p;
}

static struct sw_cells *cells(struct sw_call *c, enum sw_dtype dtype, int64_t n)
{
  struct sw_cells *made = sw_cells_new(c->eval->memory, dtype, n);
  if (!made)
    sw_call_over_limit(c);
  return made;
}

struct sw_tensor sw_call_new(struct sw_call *c, enum sw_dtype dtype, int rank, const int64_t *size)
{
  if (rank > SW_MAX_RANK)
    sw_call_stop(c, SW_UNSUPPORTED, "a tensor of rank %d is over the limit of %d", rank, SW_MAX_RANK);
  struct sw_tensor t = {.dtype = dtype, .rank = rank, .cells = cells(c, dtype, sw_call_product(c, rank, size))};
  if (rank > 0)
    memcpy(t.size, size, (size_t)rank * sizeof *size);
  sw_dense(rank, size, t.stride);
  return t;
}

struct sw_tensor sw_call_scalar(struct sw_call *c, struct sw_number n)
{
  enum sw_dtype dtype = n.kind == SW_NUMBER_REAL ? SW_F64 : n.kind == SW_NUMBER_BOOL ? SW_BOOL : SW_I64;
  struct sw_tensor t = sw_call_new(c, dtype, 0, NULL);
  sw_call_fill(c, &t, n);
  return t;
}

double *sw_call_reals(struct sw_call *c, int64_t n)
{
  return cells(c, SW_F64, n)->real;
}

int64_t *sw_call_wholes(struct sw_call *c, int64_t n)
{
  return cells(c, SW_I64, n)->integer;
}

double *sw_call_get(struct sw_call *c, const struct sw_tensor *t)
{
  double *v = sw_call_reals(c, sw_tensor_elements(t));
  sw_get_reals(t, v);
  return v;
}

int64_t *sw_call_get_wholes(struct sw_call *c, const struct sw_tensor *t)
{
  int64_t *v = sw_call_wholes(c, sw_tensor_elements(t));
  sw_get_wholes(t, v);
  return v;
}

static bool same_size(const struct sw_tensor *a, const struct sw_tensor *b)
{
  return a->rank == b->rank && !memcmp(a->size, b->size, (size_t)a->rank * sizeof a->size[0]);
}

void sw_call_copy(struct sw_call *c, const struct sw_tensor *to, const struct sw_tensor *from)
{
  if (!same_size(to, from))
    sw_call_stop(c, SW_INVALID, "tensors of different sizes where one is copied into the other");
  sw_tensor_copy(to, from, c->rounding);
}

struct sw_tensor sw_call_contiguous(struct sw_call *c, const struct sw_tensor *t)
{
  struct sw_tensor n = sw_call_new(c, t->dtype, t->rank, t->size);
  sw_call_copy(c, &n, t);
  return n;
}

void sw_call_fill(struct sw_call *c, const struct sw_tensor *t, struct sw_number n)
{
  struct sw_walk w;
  for (sw_walk(&w, 1, &t); w.more; sw_walk_on(&w))
    for (int64_t i = 0; i < w.n; i++) {
      if (n.kind == SW_NUMBER_REAL)
        sw_row_put_reals(t, w.at[0] + i * w.step[0], 1, 1, &n.r, c->rounding);
      else
        sw_row_put_wholes(t, w.at[0] + i * w.step[0], 1, 1, &n.i, c->rounding);
    }
}

/* -- shapes -- */

int sw_call_broadcast(struct sw_call *c, int64_t *size, int rank, const struct sw_tensor *t)
{
  int more = t->rank - rank;
  if (more > 0) {
    memmove(size + more, size, (size_t)rank * sizeof *size);
    for (int d = 0; d < more; d++)
      size[d] = 1;
    rank = t->rank;
  }
  for (int d = 1; d <= t->rank; d++) {
    int64_t *s = &size[rank - d], other = t->size[t->rank - d];
    if (*s == 1)
      *s = other;
    else if (other != 1 && other != *s)
      sw_call_stop(c, SW_INVALID, "sizes %lld and %lld do not broadcast", (long long)*s, (long long)other);
  }
  return rank;
}

struct sw_tensor sw_call_expand(struct sw_call *c, const struct sw_tensor *t, int rank, const int64_t *size)
{
  if (rank < t->rank || rank > SW_MAX_RANK)
    sw_call_stop(c, SW_INVALID, "a tensor of rank %d does not expand to rank %d", t->rank, rank);
  struct sw_tensor v = *t;
  v.rank = rank;
  for (int d = 0; d < rank; d++) {
    int from = d - (rank - t->rank);
    v.size[d] = size[d];
    v.stride[d] = from < 0 || (t->size[from] == 1 && size[d] != 1) ? 0 : t->stride[from];
    if (size[d] < 0 || (from >= 0 && t->size[from] != 1 && t->size[from] != size[d]))
      sw_call_stop(c, SW_INVALID, "size %lld does not expand to %lld", (long long)(from < 0 ? 1 : t->size[from]),
                   (long long)size[d]);
  }
  return v;
}

/* Strides of a view, or false. Walks both sizes from the end: a run of old dims that follow one another in memory
 * takes the new dims whose product is the run's. [4,6] with strides [6,1] as [2,2,6] is [12,6,1]. */
static bool view_strides(const struct sw_tensor *t, int rank, const int64_t *size, int64_t *stride)
{
  int n = rank - 1;
  for (int d = t->rank - 1; d >= 0;) {
    int64_t step = t->stride[d], run = t->size[d];
    while (d > 0 && (t->size[d - 1] == 1 || t->stride[d - 1] == run * step))
      run *= t->size[--d];
    d--;
    int64_t left = run;
    while (n >= 0 && (left > 1 || size[n] == 1)) {
      if (left % size[n])
        return false;
      stride[n] = step * (run / left);
      left /= size[n--];
    }
    if (left > 1)
      return false;
  }
  while (n >= 0)
    stride[n--] = 1;
  return true;
}

struct sw_tensor sw_call_reshape(struct sw_call *c, const struct sw_tensor *t, int rank, const int64_t *size)
{
  int64_t fixed[SW_MAX_RANK], n = sw_tensor_elements(t), product = 1;
  if (rank > SW_MAX_RANK)
    sw_call_stop(c, SW_UNSUPPORTED, "a tensor of rank %d is over the limit of %d", rank, SW_MAX_RANK);
  int open = -1;
  for (int d = 0; d < rank; d++) {
    fixed[d] = size[d];
    if (size[d] == -1 && open < 0) {
      open = d;
      fixed[d] = 1;
    }
  }
  product = sw_call_product(c, rank, fixed);
  if (open >= 0 && product > 0 && n % product == 0) {
    fixed[open] = n / product;
    product = n;
  }
  if (product != n)
    sw_call_stop(c, SW_INVALID, "%lld elements do not make the size asked for", (long long)n);
  struct sw_tensor v = *t;
  if (n == 0)
    sw_dense(rank, fixed, v.stride);
  else if (!view_strides(t, rank, fixed, v.stride)) {
    v = sw_call_contiguous(c, t);
    sw_dense(rank, fixed, v.stride);
  }
  v.rank = rank;
  memcpy(v.size, fixed, sizeof fixed[0] * (size_t)rank);
  return v;
}

/* -- results -- */

int sw_call_n_results(struct sw_call *c)
{
  return c->node->n_results;
}

const struct sw_value *sw_call_declared(struct sw_call *c, int result)
{
  int v = result < c->node->n_results ? c->node->results[result] : -1;
  return v >= 0 ? &c->eval->graph->values.v[v] : NULL;
}

enum sw_dtype sw_call_out_dtype(struct sw_call *c, int result)
{
  const struct sw_value *v = sw_call_declared(c, result);
  return v ? v->dtype : SW_F64;
}

/* A result must be what the graph declares: a tensor of that dtype, rank and, where they are static, sizes. */
static void check_declared(struct sw_call *c, int result, enum sw_dtype dtype, int rank, const int64_t *size)
{
  const struct sw_value *v = sw_call_declared(c, result);
  if (!v)
    return;
  if (v->kind != SW_VALUE_TENSOR)
    sw_call_stop(c, SW_INVALID, "the result %s is a tensor but is declared as a number", v->name);
  if (v->dtype != dtype)
    sw_call_stop(c, SW_INVALID, "the result %s has dtype %s but is declared %s", v->name, sw_dtype_torch(dtype),
                 sw_dtype_torch(v->dtype));
  bool agrees = v->rank == rank;
  for (int d = 0; agrees && d < rank; d++)
    agrees = (v->size_expr && v->size_expr[d]) || v->size[d] == size[d];
  if (agrees)
    return;
  struct sw_buf b = {.arena = c->scratch};
  for (int d = 0; d < rank; d++)
    sw_buf_printf(&b, "%s%lld", d ? "," : "", (long long)size[d]);
  sw_buf_puts(&b, "] but is declared [");
  for (int d = 0; d < v->rank; d++)
    sw_buf_printf(&b, "%s%lld", d ? "," : "", (long long)v->size[d]);
  sw_call_stop(c, SW_INVALID, "the result %s has size [%s]", v->name, sw_buf_text(&b));
}

/* Dense strides in the order that the graph declares; the graph's dim of the largest stride comes first. */
static void ordered_strides(const struct sw_value *v, struct sw_tensor *t)
{
  int order[SW_MAX_RANK];
  for (int d = 0; d < t->rank; d++) {
    int at = d;
    for (; at > 0 && v->stride[order[at - 1]] < v->stride[d] && v->size[d] != 1; at--)
      order[at] = order[at - 1];
    order[at] = d;
  }
  int64_t step = 1;
  for (int i = t->rank - 1; i >= 0; i--) {
    t->stride[order[i]] = step;
    step *= t->size[order[i]] > 1 ? t->size[order[i]] : 1;
  }
}

struct sw_tensor sw_call_out(struct sw_call *c, int result, int rank, const int64_t *size)
{
  const struct sw_value *v = sw_call_declared(c, result);
  check_declared(c, result, sw_call_out_dtype(c, result), rank, size);
  struct sw_tensor t = sw_call_new(c, sw_call_out_dtype(c, result), rank, size);
  if (v && v->stride)
    ordered_strides(v, &t);
  sw_call_out_view(c, result, t);
  return t;
}

void sw_call_out_view(struct sw_call *c, int result, struct sw_tensor view)
{
  check_declared(c, result, view.dtype, view.rank, view.size);
  if (!sw_tensor_inside(&view))
    sw_call_stop(c, SW_INVALID, "the view reaches beyond its tensor");
  if ((size_t)sw_tensor_elements(&view) > c->eval->memory->max)
    sw_call_over_limit(c);
  if (result == 0)
    c->first = view;
  if (result < c->node->n_results && c->node->results[result] >= 0)
    sw_eval_keep(c->eval, c->node->results[result], &(struct sw_evaluated){.kind = SW_TENSOR, .tensor = view});
}

void sw_call_out_number(struct sw_call *c, int result, struct sw_number n)
{
  const struct sw_value *v = sw_call_declared(c, result);
  if (v && v->kind == SW_VALUE_TENSOR)
    sw_call_stop(c, SW_INVALID, "the result %s is a number but is declared as a tensor", v->name);
  if (result < c->node->n_results && c->node->results[result] >= 0)
    sw_eval_keep(c->eval, c->node->results[result], &(struct sw_evaluated){.kind = SW_NUMBER, .number = n});
}
