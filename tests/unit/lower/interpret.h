/* Runs a lowered program in doubles, op by op as its accesses say: a check of decompositions and views that shares
 * nothing with the code that made them. Host steps are given to the evaluator. */
#ifndef SW_TESTS_INTERPRET_H
#define SW_TESTS_INTERPRET_H

#include "compiler/eval/eval.h"
#include "compiler/lower/program.h"

#include <math.h>
#include <string.h>

struct machine {
  struct sw_job *job;
  const struct sw_program *p;
  double **cells;  /* per storage: host elements */
  double **second; /* of an exx2 result: the mean of squares beside the mean */
  bool failed;     /* a host step nobody can compute */
  const char *why;
};

static double *storage_cells(struct machine *m, int s)
{
  if (!m->cells[s]) {
    int64_t n = sw_storage_elements(&m->p->storages.v[s]);
    m->cells[s] = SW_NEW_N(m->job->arena, double, n);
    for (int64_t i = 0; i < n; i++)
      m->cells[s][i] = NAN; /* what nobody wrote */
  }
  return m->cells[s];
}

static double cell_of(const struct sw_tensor *t, int64_t at)
{
  return t->cells->real ? t->cells->real[at] : (double)t->cells->integer[at];
}

/* Elements of a tensor in row-major order into a storage with the given strides. */
static void put(double *to, const int64_t *stride, int64_t offset, const struct sw_tensor *t)
{
  int64_t n = 1;
  for (int d = 0; d < t->rank; d++)
    n *= t->size[d];
  for (int64_t i = 0; i < n; i++) {
    int64_t rest = i, from = t->offset, at = offset;
    for (int d = t->rank - 1; d >= 0; d--) {
      from += rest % t->size[d] * t->stride[d];
      at += rest % t->size[d] * stride[d];
      rest /= t->size[d];
    }
    to[at] = cell_of(t, from);
  }
}

/* A view as a tensor of its own, row major. */
static struct sw_tensor get(struct machine *m, const struct sw_view *v, enum sw_dtype dtype)
{
  struct sw_tensor t = {.dtype = dtype, .rank = v->rank};
  int64_t n = 1;
  for (int d = v->rank - 1; d >= 0; d--) {
    t.size[d] = v->size[d];
    t.stride[d] = n;
    n *= v->size[d];
  }
  t.cells = SW_NEW(m->job->arena, struct sw_cells);
  *t.cells = (struct sw_cells){.dtype = dtype, .n = n, .readers = 1 << 20};
  bool real = sw_dtype_is_float(dtype);
  if (real)
    t.cells->real = SW_NEW_N(m->job->arena, double, n);
  else
    t.cells->integer = SW_NEW_N(m->job->arena, int64_t, n);
  double *from = storage_cells(m, v->storage);
  for (int64_t i = 0; i < n; i++) {
    int64_t rest = i, at = v->offset;
    for (int d = v->rank - 1; d >= 0; d--) {
      at += rest % v->size[d] * v->stride[d];
      rest /= v->size[d];
    }
    if (real)
      t.cells->real[i] = from[at];
    else
      t.cells->integer[i] = (int64_t)from[at];
  }
  return t;
}

static double named(const struct sw_op *op, const char *name)
{
  for (int i = 0; i < op->constants.n; i++)
    if (!strcmp(op->constants.v[i].name, name))
      return op->constants.v[i].value;
  return NAN;
}

static double compute(const struct sw_op *op, const double *x)
{
  switch (op->op) {
  case SW_OP_ABS: return fabs(x[0]);
  case SW_OP_EXP: return exp(x[0]);
  case SW_OP_FLOOR: return floor(x[0]);
  case SW_OP_GELU: return x[0] / 2 * (1 + erf(x[0] / sqrt(2)));
  case SW_OP_LOG: return log(x[0]);
  case SW_OP_NEG: return -x[0];
  case SW_OP_RECIPROCAL: return 1 / x[0];
  case SW_OP_RELU: return x[0] > 0 ? x[0] : 0;
  case SW_OP_RSQRT: return 1 / sqrt(x[0]);
  case SW_OP_SIGMOID: return 1 / (1 + exp(-x[0]));
  case SW_OP_SILU: return x[0] / (1 + exp(-x[0]));
  case SW_OP_SQRT: return sqrt(x[0]);
  case SW_OP_TANH: return tanh(x[0]);
  case SW_OP_CLIP: return fmin(fmax(x[0], named(op, "clipMin")), named(op, "clipMax"));
  case SW_OP_SOFTPLUS:
    return x[0] * named(op, "softplusBeta") > named(op, "softplusThresh") ? x[0]
           : log1p(exp(x[0] * named(op, "softplusBeta"))) / named(op, "softplusBeta");
  case SW_OP_ADD: return x[0] + x[1];
  case SW_OP_SUB: return x[0] - x[1];
  case SW_OP_MUL: case SW_OP_MATMUL: case SW_OP_MATMULFP8: return x[0] * x[1];
  case SW_OP_DIV: return x[0] / x[1];
  case SW_OP_MAXIMUM: return fmax(x[0], x[1]);
  case SW_OP_MINIMUM: return fmin(x[0], x[1]);
  case SW_OP_EQ: return x[0] == x[1];
  case SW_OP_NE: return x[0] != x[1];
  case SW_OP_GT: return x[0] > x[1];
  case SW_OP_GE: return x[0] >= x[1];
  case SW_OP_LT: return x[0] < x[1];
  case SW_OP_LE: return x[0] <= x[1];
  case SW_OP_WHERE: return x[0] != 0 ? x[1] : x[2];
  default: return x[0]; /* copies, casts, reductions */
  }
}

static double fold(enum sw_device_op op, double sum, double x)
{
  return op == SW_OP_MAX ? fmax(sum, x) : op == SW_OP_MIN ? fmin(sum, x) : op == SW_OP_PROD ? sum * x : sum + x;
}

/* The last loop is searched; the written loop that the input does not depend on counts the results. */
static void run_topk(struct machine *m, const struct sw_op *op)
{
  int64_t at[SW_MAX_LOOPS] = {0}, n = 1;
  int last = op->n_loops - 1;
  for (int d = 0; d < last; d++)
    n *= op->range[d];
  double *out = storage_cells(m, op->out.storage), *in = storage_cells(m, op->in[0].storage);
  for (int64_t i = 0; i < n; i++) {
    int64_t from = op->in[0].offset, to = op->out.offset, k = 0;
    for (int d = 0; d < last; d++) {
      from += op->in[0].step[d] * at[d];
      to += op->out.step[d] * at[d];
      k = op->in[0].step[d] == 0 ? at[d] : k;
    }
    for (int64_t r = 0; r < op->range[last]; r++) {
      double x = in[from + r * op->in[0].step[last]];
      int64_t before = 0; /* elements in front of this one when sorted */
      for (int64_t s = 0; s < op->range[last]; s++) {
        double y = in[from + s * op->in[0].step[last]];
        before += y > x || (y == x && s < r);
      }
      if (before == k)
        out[to] = op->op == SW_OP_TOPKVALUE ? x : (double)r;
    }
    for (int d = last - 1; d >= 0 && ++at[d] == op->range[d]; d--)
      at[d] = 0;
  }
}

static void run_op(struct machine *m, const struct sw_op *op)
{
  int64_t at[SW_MAX_LOOPS] = {0}, n = 1, inner = 1;
  for (int d = 0; d < op->n_loops; d++) {
    n *= op->range[d];
    inner *= d >= op->n_written ? op->range[d] : 1;
  }
  bool reduces = sw_device_op_is_reduction(op->op);
  double *out = storage_cells(m, op->out.storage);
  double sum = 0, squares = 0;
  if (op->op == SW_OP_TOPKVALUE || op->op == SW_OP_TOPKINDEX) {
    run_topk(m, op);
    return;
  }
  for (int64_t i = 0; i < n; i++) {
    double x[SW_MAX_INPUTS];
    int64_t index[SW_MAX_INPUTS], written = op->out.offset;
    for (int k = 0; k < op->n_in; k++) {
      const struct sw_access *a = &op->in[k];
      index[k] = a->offset;
      for (int d = 0; d < op->n_loops; d++)
        index[k] += a->step[d] * at[d];
      if (a->index_input >= 0)
        index[k] += a->index_step * (int64_t)x[a->index_input];
      x[k] = storage_cells(m, a->storage)[index[k]];
    }
    for (int d = 0; d < op->n_written; d++)
      written += op->out.step[d] * at[d];
    if (op->out.index_input >= 0)
      written += op->out.index_step * (int64_t)x[op->out.index_input];
    bool gathers = op->n_in == 2 && op->op == SW_OP_IDENTITY;
    double y = gathers ? x[1] : compute(op, x);
    if (op->op == SW_OP_LAYERNORMSCALE)
      y = 1 / sqrt(m->second[op->in[0].storage][index[0]] - x[0] * x[0] + named(op, "eps"));
    else if (op->op == SW_OP_LAYERNORMNORM)
      y = (x[0] - x[1]) * x[2] * x[3] + x[4];
    if (reduces) {
      sum = i % inner == 0 ? y : fold(op->op, sum, y);
      squares = (i % inner == 0 ? 0 : squares) + y * y;
    }
    if (!reduces) {
      out[written] = y;
    } else if (i % inner == inner - 1) {
      out[written] = op->op == SW_OP_MEAN ? sum * named(op, "scaling_factor") : op->op == SW_OP_EXX2 ? sum / (double)inner : sum;
      if (op->op == SW_OP_EXX2) {
        double **s = &m->second[op->out.storage];
        if (!*s)
          *s = SW_NEW_N(m->job->arena, double, sw_storage_elements(&m->p->storages.v[op->out.storage]));
        (*s)[written] = squares / (double)inner;
      }
    }
    for (int d = op->n_loops - 1; d >= 0 && ++at[d] == op->range[d]; d--)
      at[d] = 0;
  }
}

static void set_values(struct machine *m, struct sw_eval *e, const struct sw_arg *args, const struct sw_host_arg *views, int n)
{
  for (int i = 0, k = 0; i < n; i++) {
    if (args[i].kind == SW_ARG_LIST) {
      set_values(m, e, args[i].list.v, views[k].list, args[i].list.n);
      k++;
    } else if (args[i].kind == SW_ARG_VALUE && views[k].kind == SW_HOST_LITERAL) {
      sw_eval_set_number(e, args[i].value, (struct sw_number){.kind = SW_NUMBER_INT, .i = views[k++].literal.i});
    } else if (views[k].kind == SW_HOST_VIEW) {
      struct sw_tensor t = get(m, &views[k].view, m->p->graph->values.v[args[i].value].dtype);
      sw_eval_set(e, args[i].value, &t);
      k++;
    } else {
      k++;
    }
  }
}

static void run_columns(struct machine *m, const struct sw_host_step *h)
{
  const struct sw_view *x = &h->args.v[0].view, *y = &h->results.v[0];
  int64_t w[4][2];
  for (int a = 0; a < 4; a++)
    for (int i = 0; i < 2; i++)
      w[a][i] = h->args.v[a + 1].list[i].literal.i; /* kernel, dilation, padding, stride */
  int64_t out_w = (x->size[3] + 2 * w[2][1] - w[1][1] * (w[0][1] - 1) - 1) / w[3][1] + 1;
  double *from = storage_cells(m, x->storage), *to = storage_cells(m, y->storage);
  for (int64_t b = 0; b < y->size[0]; b++)
    for (int64_t r = 0; r < y->size[1]; r++)
      for (int64_t l = 0; l < y->size[2]; l++) {
        int64_t c = r / (w[0][0] * w[0][1]), i = r / w[0][1] % w[0][0], j = r % w[0][1];
        int64_t row = l / out_w * w[3][0] + i * w[1][0] - w[2][0], col = l % out_w * w[3][1] + j * w[1][1] - w[2][1];
        bool inside = row >= 0 && row < x->size[2] && col >= 0 && col < x->size[3];
        to[y->offset + b * y->stride[0] + r * y->stride[1] + l * y->stride[2]] =
            inside ? from[x->offset + b * x->stride[0] + c * x->stride[1] + row * x->stride[2] + col * x->stride[3]] : 0;
      }
}

static void run_host(struct machine *m, const struct sw_host_step *h)
{
  const struct sw_graph *g = m->p->graph;
  const struct sw_node *n = &g->nodes.v[h->node];
  if (!strcmp(h->target, "aten.im2col.default")) {
    run_columns(m, h);
    return;
  }
  if (!strcmp(h->target, "aten.reshape.default") && h->name != n->name) {
    struct sw_tensor t = get(m, &h->args.v[0].view, SW_F64);
    memcpy(storage_cells(m, h->results.v[0].storage), t.cells->real, (size_t)t.cells->n * sizeof(double));
    return;
  }
  if (!strcmp(h->target, "aten._to_copy.default") && h->name != n->name) { /* a cast of our own */
    struct sw_tensor t = get(m, &h->args.v[0].view, m->p->storages.v[h->args.v[0].view.storage].dtype);
    enum sw_dtype to = h->args.v[1].literal.dtype;
    for (int64_t i = 0; i < t.cells->n; i++) {
      if (to == SW_BOOL && t.cells->real)
        t.cells->real[i] = t.cells->real[i] != 0;
      else if (to == SW_BOOL)
        t.cells->integer[i] = t.cells->integer[i] != 0;
      else if (t.cells->real)
        t.cells->real[i] = sw_dtype_is_float(to) ? sw_round_to(to, t.cells->real[i]) : trunc(t.cells->real[i]);
    }
    put(storage_cells(m, h->results.v[0].storage), h->results.v[0].stride, h->results.v[0].offset, &t);
    return;
  }
  if (!sw_eval_knows(h->target)) {
    m->failed = true;
    m->why = h->target;
    return;
  }
  struct sw_eval *e = sw_eval_new(m->job, g, SW_ROUND_NONE, (size_t)1 << 30);
  for (int i = 0, k = 0; i < n->n_args; i++) {
    bool keyword = n->schema->args[i].keyword_only;
    const struct sw_arg *a = &n->args[i];
    if (a->kind == SW_ARG_DEVICE || a->kind == SW_ARG_LAYOUT || a->kind == SW_ARG_MEMORY_FORMAT || (keyword && !a->given))
      continue;
    set_values(m, e, a, &h->args.v[k++], 1);
  }
  if (sw_eval_node(e, h->node) != SW_OK) {
    m->failed = true;
    m->why = h->target;
    return;
  }
  for (int r = 0; r < h->results.n; r++) {
    const struct sw_view *v = &h->results.v[r];
    const struct sw_evaluated *y = v->storage < 0 ? NULL : sw_eval_value(e, n->results[r]);
    if (y && y->kind == SW_TENSOR)
      put(storage_cells(m, v->storage), v->stride, v->offset, &y->tensor);
  }
}

/* Inputs must be in m->cells; constants and scalars are filled in here. */
static void run_program(struct machine *m)
{
  const struct sw_program *p = m->p;
  for (int s = 0; s < p->storages.n; s++) {
    const struct sw_storage *st = &p->storages.v[s];
    if (st->kind == SW_STORAGE_SCALAR) {
      storage_cells(m, s)[0] = st->fill;
    } else if (st->kind == SW_STORAGE_CONSTANT) {
      struct sw_tensor t;
      sw_tensor_from_bytes(m->job->arena, &t, st->dtype, st->rank, st->size, st->data);
      put(storage_cells(m, s), st->stride, 0, &t);
    }
  }
  for (int i = 0; i < p->steps.n && !m->failed; i++)
    if (p->steps.v[i].is_host)
      run_host(m, &p->host_steps.v[p->steps.v[i].index]);
    else
      run_op(m, &p->ops.v[p->steps.v[i].index]);
}

#endif
