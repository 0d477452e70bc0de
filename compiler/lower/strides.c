/* Where the dims of a new tensor lie in memory, in profile torch-spyre: as the reference's framework (Inductor) decides
 * for buffers whose order is free, not as eager PyTorch does. Reference: layouts.md 3.1.
 *
 * The operands vote. Of two dims the inner one is that which more operands step through in smaller steps; an operand
 * that does not have a dim at all wants it outside. A tie stays row major:
 *
 *   a.t() + b       [256,128], steps (1,256) and (128,1): one vote each, row major   [128,1]
 *   a.t() + b.t()   (1,256) twice: dim 0 is the inner one                            [1,256]
 *
 * PyTorch gives [1,256] to both. It has its way with what leaves the program, and with what mm reads.
 *
 * Orders are settled at the end, in order of buffers, or as soon as somebody wants to know: a view, or a reduction of more
 * than 32 elements. Then operands that are not settled themselves vote as if they were row major:
 *
 *   s = q k^T, both [2,n,64] with steps (64,128,1), q settled at the end, k looked at through its transpose
 *   n = 17: heads inside rows for both operands, strides [1,34,2]
 *   n = 64: max(s) reduces 64 elements and asks at once; q votes as (4096,64,1), so no order wins: row major */
#include "compiler/lower/lower.h"

#include <string.h>

struct ballot {
  int n;               /* operands, each once */
  const struct tensor *in;
  bool counts[SW_MAX_INPUTS];
  const int64_t *size;
};

/* Whether dim a goes inside dim b. */
static bool is_inside(const struct ballot *v, int a, int b)
{
  if (v->size[a] == 1 || v->size[b] == 1) {
    if ((v->size[a] == 1) != (v->size[b] == 1))
      return v->size[b] == 1;
  } else {
    int for_a = 0, for_b = 0;
    for (int i = 0; i < v->n; i++) {
      int64_t x = v->in[i].stride[a], y = v->in[i].stride[b];
      for_a += v->counts[i] && (y == 0 || x < y);
      for_b += v->counts[i] && (x == 0 || y < x);
    }
    if (for_a != for_b)
      return for_a > for_b;
  }
  return a > b;
}

/* Python's sort of a short list: the run it begins with, then one element after the other put in by bisection. Majorities
 * need not be transitive, so the way matters. */
static void sort_dims(const struct ballot *v, int n, int *dim)
{
  int run = n < 2 ? n : 2;
  if (n >= 2 && is_inside(v, dim[1], dim[0])) {
    while (run < n && is_inside(v, dim[run], dim[run - 1]))
      run++;
    for (int i = 0; i < run / 2; i++) {
      int other = dim[run - 1 - i];
      dim[run - 1 - i] = dim[i];
      dim[i] = other;
    }
  } else {
    while (run < n && !is_inside(v, dim[run], dim[run - 1]))
      run++;
  }
  for (; run < n; run++) {
    int pivot = dim[run], low = 0, high = run;
    while (low < high) {
      int middle = (low + high) / 2;
      if (is_inside(v, pivot, dim[middle]))
        high = middle;
      else
        low = middle + 1;
    }
    memmove(dim + low + 1, dim + low, (size_t)(run - low) * sizeof *dim);
    dim[low] = pivot;
  }
}

/* A view of a storage, as if the storage were row major. */
static struct tensor row_major(const struct lower *l, struct tensor t)
{
  const struct sw_storage *s = &l->program->storages.v[t.storage];
  int64_t dense[SW_MAX_RANK];
  struct tensor r = t;
  lw_contiguous_strides(s->rank, s->size, dense);
  for (int d = 0; d < t.rank; d++)
    for (int e = 0; e < s->rank; e++)
      if (t.stride[d] && s->size[e] > 1 && s->stride[e] == t.stride[d])
        r.stride[d] = dense[e];
  return r;
}

void lw_voted_strides(struct lower *l, int rank, const int64_t *size, int n_in, const struct tensor *in, int64_t *stride)
{
  struct tensor votes[SW_MAX_INPUTS];
  struct ballot v = {.n = n_in, .in = votes, .size = size};
  bool any = false;
  for (int i = 0; i < n_in; i++) {
    bool open = l->program->storages.v[in[i].storage].kind == SW_STORAGE_TEMPORARY && !lw_storage(l, in[i].storage)->settled;
    votes[i] = l->early && open ? row_major(l, in[i]) : in[i];
    v.counts[i] = l->program->storages.v[in[i].storage].kind != SW_STORAGE_SCALAR;
    for (int k = 0; k < i; k++)
      v.counts[i] = v.counts[i] && !(v.counts[k] && lw_same_view(in[i], in[k]));
    any = any || v.counts[i];
  }
  int dim[SW_MAX_RANK];
  for (int d = 0; d < rank; d++)
    dim[d] = rank - 1 - d;
  if (any)
    sort_dims(&v, rank, dim);
  int64_t step = 1;
  for (int d = 0; d < rank; d++) {
    stride[dim[d]] = step;
    step *= size[dim[d]] > 0 ? size[dim[d]] : 1;
  }
}

/* Gives the storage that the node has just made whole, in one op, other strides. */
static void restride(struct lower *l, struct tensor *t, const int64_t *stride)
{
  struct sw_program *p = l->program;
  struct sw_storage *s = &p->storages.v[t->storage];
  struct sw_op *op = p->ops.n ? &p->ops.v[p->ops.n - 1] : NULL;
  if (t->storage < l->first_storage || p->ops.n == l->first_op || op->out.storage != t->storage || t->offset ||
      s->rank != t->rank || memcmp(s->size, t->size, (size_t)t->rank * sizeof *s->size) ||
      memcmp(s->stride, t->stride, (size_t)t->rank * sizeof *s->stride))
    return;
  for (int i = l->first_op; i < p->ops.n - 1; i++)
    if (p->ops.v[i].out.storage == t->storage)
      return;
  int64_t step[SW_MAX_LOOPS] = {0};
  for (int i = 0; i < op->n_loops; i++) {
    for (int d = 0; d < t->rank && op->out.step[i] && !step[i]; d++)
      if (t->size[d] != 1 && t->stride[d] == op->out.step[i])
        step[i] = stride[d];
    if (op->out.step[i] && !step[i])
      return;
  }
  memcpy(op->out.step, step, sizeof step);
  memcpy(s->stride, stride, (size_t)t->rank * sizeof *stride);
  memcpy(t->stride, stride, (size_t)t->rank * sizeof *stride);
}

/* A value that is an output itself, or an operand of mm, lies as PyTorch laid it out. */
void lw_pin_strides(struct lower *l, int value, struct tensor *t)
{
  const struct sw_value *v = &l->graph->values.v[value];
  if (l->best || !lw_known(*t) || !l->values[value].pinned || v->kind != SW_VALUE_TENSOR || v->rank != t->rank ||
      memcmp(v->size, t->size, (size_t)v->rank * sizeof *v->size))
    return;
  int64_t want[SW_MAX_RANK];
  lw_dense_strides(v->rank, v->size, v->stride, want);
  restride(l, t, want);
}
