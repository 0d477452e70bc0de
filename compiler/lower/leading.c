/* Whether a program that was made for the largest size of a dynamic dim serves smaller ones too.
 *
 * It does if that dim is the outermost of every storage that has it, and if row r of whatever is computed depends on row r
 * alone: then the first rows of its outputs are right when the first rows of its inputs are, whatever lies behind them.
 * To see it, the graph is lowered for a smaller size, too, and both programs are compared. They must be the same up to
 * ranges and outermost sizes that are the same multiple of the two sizes. Rows are kept apart if every access walks
 * them with the op's loop over the dim and with nothing else.
 *
 * Example: x : f16[s,64], layer norm over 64. For s = 64 and s = 1 the loops are (64,64) and (1,64), the rows of all
 * storages 64 apart. A softmax over s itself has a reduced loop of range s and is refused; so is anything with a constant
 * of its own for each s, like a mean over rows (1/64 and 1/1). */
#include "compiler/lower/leading.h"

#include <string.h>

struct pair {
  const struct sw_program *big, *small;
  int64_t max, size;
  struct sw_arena *arena;
  int64_t *unit;   /* by storage: its elements per one of the dim, 0: it is the same for all sizes */
  int *dim;        /* by storage: its dim */
};

/* The multiple that two sizes are of the dim, 0: they are equal, -1: neither. */
static int64_t times(const struct pair *x, int64_t big, int64_t small)
{
  if (big == small)
    return 0;
  return big % x->max || big / x->max * x->size != small ? -1 : big / x->max;
}

/* Finds the dim in which two shapes differ, the outermost one longer than 1; *elements per one of it. */
static bool compare_shapes(const struct pair *x, int rank, const int64_t *big, const int64_t *small, const int64_t *step,
                           const int64_t *small_step, int *dim, int64_t *elements)
{
  int64_t inner = 0;
  *dim = -1;
  *elements = 0;
  for (int d = 0; d < rank; d++) {
    int64_t n = times(x, big[d], small[d]);
    if (n < 0 || (n > 0 && *dim >= 0))
      return false;
    if (n > 0) {
      *dim = d;
      *elements = n * step[d];
    }
  }
  for (int d = 0; d < rank; d++) {
    if (*dim >= 0 && d < *dim && big[d] != 1)
      return false;
    if ((*dim < 0 || d >= *dim) && big[d] > 1 && small[d] > 1 && step[d] != small_step[d])
      return false;
    if (d > *dim && *dim >= 0)
      inner += (big[d] - 1) * step[d];
  }
  return *dim < 0 || inner < step[*dim];
}

static bool same_text(const char *a, const char *b)
{
  return a == b || (a && b && !strcmp(a, b));
}

static bool compare_storage(struct pair *x, int s)
{
  const struct sw_storage *a = &x->big->storages.v[s], *b = &x->small->storages.v[s];
  if (!same_text(a->name, b->name) || a->kind != b->kind || a->dtype != b->dtype || a->rank != b->rank ||
      a->input != b->input || memcmp(&a->fill, &b->fill, sizeof a->fill) || a->host_only != b->host_only ||
      a->has_pad_fill != b->has_pad_fill || memcmp(&a->pad_fill, &b->pad_fill, sizeof a->pad_fill) ||
      !compare_shapes(x, a->rank, a->size, b->size, a->stride, b->stride, &x->dim[s], &x->unit[s]))
    return false;
  bool grows = x->unit[s] > 0;
  if (grows && a->kind != SW_STORAGE_INPUT && a->kind != SW_STORAGE_TEMPORARY && a->kind != SW_STORAGE_CONSTANT)
    return false;
  if (!a->data || !b->data)
    return !a->data && !b->data;
  return (grows || a->n_bytes == b->n_bytes) && a->n_bytes >= b->n_bytes && !memcmp(a->data, b->data, b->n_bytes);
}

/* Rows of a storage are walked one by one with this loop, and nothing else leaves its row. */
static bool walks_rows(const struct pair *x, const struct sw_op *op, const struct sw_access *a, int loop, int64_t n)
{
  int64_t inner = a->offset;
  if (loop < 0 || a->index_input >= 0 || a->offset < 0 || a->step[loop] * n != x->unit[a->storage])
    return false;
  for (int l = 0; l < op->n_loops; l++) {
    if (a->step[l] < 0)
      return false;
    inner += l == loop ? 0 : (op->range[l] - 1) * a->step[l];
  }
  return inner < a->step[loop];
}

static bool compare_access(const struct pair *x, const struct sw_op *op, const struct sw_access *a,
                           const struct sw_access *b, int loop, int64_t n)
{
  if (a->storage != b->storage || a->offset != b->offset || a->index_input != b->index_input ||
      a->index_step != b->index_step || a->index_range != b->index_range ||
      memcmp(a->step, b->step, sizeof *a->step * (size_t)op->n_loops))
    return false;
  if (x->unit[a->storage])
    return walks_rows(x, op, a, loop, n);
  return loop < 0 || !a->step[loop];
}

static bool same_numbers(const struct sw_named_number *a, const struct sw_named_number *b, int n)
{
  for (int i = 0; i < n; i++)
    if (strcmp(a[i].name, b[i].name) || memcmp(&a[i].value, &b[i].value, sizeof a[i].value))
      return false;
  return true;
}

/* *loop: the one over the dim, or -1. */
static bool compare_op(const struct pair *x, int o, int *loop)
{
  const struct sw_op *a = &x->big->ops.v[o], *b = &x->small->ops.v[o];
  int64_t n = 0;
  *loop = -1;
  if (a->op != b->op || a->role != b->role || a->n_loops != b->n_loops || a->n_written != b->n_written ||
      a->n_in != b->n_in || a->constants.n != b->constants.n || a->conv.n != b->conv.n || a->conv.n ||
      !same_numbers(a->constants.v, b->constants.v, a->constants.n))
    return false;
  for (int l = 0; l < a->n_loops; l++) {
    int64_t k = times(x, a->range[l], b->range[l]);
    if (k < 0 || (k > 0 && (*loop >= 0 || l >= a->n_written)))
      return false;
    if (k > 0) {
      *loop = l;
      n = k;
    }
  }
  for (int i = 0; i < a->n_in; i++) {
    bool is_index = a->out.index_input == i; /* rows behind the last hold no row numbers */
    for (int k = 0; k < a->n_in; k++)
      is_index |= a->in[k].index_input == i;
    if ((is_index && x->unit[a->in[i].storage]) || !compare_access(x, a, &a->in[i], &b->in[i], *loop, n))
      return false;
  }
  return compare_access(x, a, &a->out, &b->out, *loop, n) && (x->unit[a->out.storage] != 0) == (*loop >= 0);
}

static bool same_literal(const struct sw_arg *a, const struct sw_arg *b)
{
  if (a->kind != b->kind)
    return false;
  switch (a->kind) {
  case SW_ARG_INT:
  case SW_ARG_BOOL: return a->i == b->i;
  case SW_ARG_REAL: return !memcmp(&a->r, &b->r, sizeof a->r);
  case SW_ARG_STR: return same_text(a->s, b->s);
  case SW_ARG_DTYPE: return a->dtype == b->dtype;
  case SW_ARG_LIST:
    if (a->list.n != b->list.n)
      return false;
    for (int i = 0; i < a->list.n; i++)
      if (!same_literal(&a->list.v[i], &b->list.v[i]))
        return false;
    return true;
  default: return true;
  }
}

static bool same_view(const struct pair *x, const struct sw_view *a, const struct sw_view *b)
{
  size_t n = sizeof *a->size * (size_t)a->rank;
  return a->storage == b->storage && a->rank == b->rank && a->offset == b->offset && !memcmp(a->size, b->size, n) &&
         !memcmp(a->stride, b->stride, n) && (a->storage < 0 || !x->unit[a->storage]);
}

/* A host step would take rows that hold nothing. */
static bool same_host_arg(const struct pair *x, const struct sw_host_arg *a, const struct sw_host_arg *b)
{
  if (a->kind != b->kind || !same_text(a->name, b->name) || a->n_list != b->n_list)
    return false;
  for (int i = 0; i < a->n_list; i++)
    if (!same_host_arg(x, &a->list[i], &b->list[i]))
      return false;
  return a->kind == SW_HOST_VIEW ? same_view(x, &a->view, &b->view)
                                 : a->kind != SW_HOST_LITERAL || same_literal(&a->literal, &b->literal);
}

static bool compare_host_step(const struct pair *x, int h)
{
  const struct sw_host_step *a = &x->big->host_steps.v[h], *b = &x->small->host_steps.v[h];
  if (strcmp(a->target, b->target) || a->args.n != b->args.n || a->results.n != b->results.n)
    return false;
  for (int i = 0; i < a->args.n; i++)
    if (!same_host_arg(x, &a->args.v[i], &b->args.v[i]))
      return false;
  for (int i = 0; i < a->results.n; i++)
    if (!same_view(x, &a->results.v[i], &b->results.v[i]))
      return false;
  return true;
}

static bool compare_output(const struct pair *x, int o)
{
  const struct sw_program_output *a = &x->big->outputs.v[o], *b = &x->small->outputs.v[o];
  const struct sw_view *v = &a->view, *w = &b->view;
  int dim;
  int64_t unit, inner = v->offset;
  if (a->is_tensor != b->is_tensor || !same_text(a->mutates, b->mutates))
    return false;
  if (!a->is_tensor)
    return same_literal(&a->literal, &b->literal);
  if (v->storage != w->storage || v->rank != w->rank || v->offset != w->offset ||
      !compare_shapes(x, v->rank, v->size, w->size, v->stride, w->stride, &dim, &unit) || unit != x->unit[v->storage])
    return false;
  for (int d = dim + 1; dim >= 0 && d < v->rank; d++)
    inner += (v->size[d] - 1) * v->stride[d];
  return dim < 0 || inner < v->stride[dim];
}

bool sw_program_serves_less(struct sw_arena *arena, const struct sw_program *big, const struct sw_program *small,
                            int64_t max, int64_t size, struct sw_leading *out)
{
  struct pair x = {.big = big, .small = small, .max = max, .size = size, .arena = arena};
  if (big->storages.n != small->storages.n || big->ops.n != small->ops.n || big->steps.n != small->steps.n ||
      big->host_steps.n != small->host_steps.n || big->outputs.n != small->outputs.n)
    return false;
  x.unit = SW_NEW_N(arena, int64_t, big->storages.n);
  x.dim = SW_NEW_N(arena, int, big->storages.n);
  *out = (struct sw_leading){SW_NEW_N(arena, int, big->storages.n), SW_NEW_N(arena, int, big->ops.n)};
  for (int s = 0; s < big->storages.n; s++) {
    if (!compare_storage(&x, s))
      return false;
    out->dim[s] = x.dim[s];
  }
  for (int t = 0; t < big->steps.n; t++)
    if (big->steps.v[t].is_host != small->steps.v[t].is_host || big->steps.v[t].index != small->steps.v[t].index)
      return false;
  for (int o = 0; o < big->ops.n; o++)
    if (!compare_op(&x, o, &out->loop[o]))
      return false;
  for (int h = 0; h < big->host_steps.n; h++)
    if (!compare_host_step(&x, h))
      return false;
  for (int o = 0; o < big->outputs.n; o++)
    if (!compare_output(&x, o))
      return false;
  return true;
}
