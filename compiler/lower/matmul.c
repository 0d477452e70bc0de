/* Matrix products. Reference: ops.md 5.5. The operands may be any views; only the number of batch dims is matched. */
#include "compiler/lower/families.h"

#include <string.h>

/* A matrix product as a loop nest: batch dims, m, n, k. x has step 0 along n, y along m; a batch dim of size 1 in one
 * operand is a broadcast, step 0. */
struct product {
  int n; /* loops */
  int64_t range[SW_MAX_RANK];
  struct tensor x, y, out;
};

static struct tensor as_nest(struct tensor t, int rank, const int64_t *size, int row, int column, int n)
{
  struct tensor w = t;
  w.rank = n;
  for (int d = 0; d < rank; d++) {
    int own = d - (rank - (t.rank - 2));
    w.stride[d] = own < 0 || (t.size[own] == 1 && size[d] != 1) ? 0 : t.stride[own];
  }
  for (int d = rank; d < n; d++)
    w.stride[d] = 0;
  w.stride[rank + row] = t.stride[t.rank - 2];
  w.stride[rank + column] = t.stride[t.rank - 1];
  return w;
}

static bool merges(const struct product *p, struct tensor t, int d)
{
  return t.storage == LW_NONE || t.stride[d] == t.stride[d + 1] * p->range[d + 1];
}

static void remove_loop(struct product *p, int d)
{
  for (int e = d; e + 1 < p->n; e++) {
    p->range[e] = p->range[e + 1];
    p->x.stride[e] = p->x.stride[e + 1];
    p->y.stride[e] = p->y.stride[e + 1];
    p->out.stride[e] = p->out.stride[e + 1];
  }
  p->n--;
}

/* Batch loops that lie in one another in all three tensors become one, from the outside in, until the matrix unit has
 * loops enough: [2,8] heads of a contiguous tensor are [16]. False when the operands do not fit. */
static bool make_product(struct product *p, struct tensor x, struct tensor y, struct tensor out)
{
  struct tensor batch[3] = {x, y, out};
  if (x.rank < 2 || y.rank < 2)
    return false;
  for (int i = 0; i < 3; i++)
    batch[i].rank -= 2;
  int rank;
  if (x.size[x.rank - 1] != y.size[y.rank - 2] || !lw_broadcast(out.storage == LW_NONE ? 2 : 3, batch, &rank, p->range) ||
      rank + 3 > SW_MAX_RANK)
    return false;
  p->range[rank] = x.size[x.rank - 2];
  p->range[rank + 1] = y.size[y.rank - 1];
  p->range[rank + 2] = x.size[x.rank - 1];
  p->n = rank + 3;
  p->x = as_nest(x, rank, p->range, 0, 2, p->n);
  p->y = as_nest(y, rank, p->range, 2, 1, p->n);
  p->out = out.storage == LW_NONE ? out : as_nest(out, rank, p->range, 0, 1, p->n);
  int matrix = 0; /* loops m, n, k that are there */
  for (int d = rank; d < p->n; d++)
    matrix += p->range[d] != 1;
  for (int d = p->n - 1; d >= 0; d--)
    if (p->range[d] == 1)
      remove_loop(p, d);
  for (int d = 0; p->n > LW_MATMUL_LOOPS && d + 1 < p->n - matrix;)
    if (merges(p, p->x, d) && merges(p, p->y, d) && merges(p, p->out, d)) {
      p->range[d + 1] *= p->range[d];
      remove_loop(p, d);
    } else {
      d++;
    }
  return true;
}

int lw_matmul_loops(struct tensor x, struct tensor y, struct tensor out)
{
  struct product p;
  if (lw_known(x) && lw_known(y) && make_product(&p, x, y, out))
    return p.n;
  return 0;
}

/* The matrix unit finds its loops by who has them: an operand that is one number along M, N or K (a fill, an expand) is
 * written out first. */
static struct tensor written_out(struct lower *l, struct tensor x)
{
  for (int d = x.rank - 2; l->best && d < x.rank; d++)
    if (!x.stride[d] && x.size[d] > 1)
      return lw_clone(l, x);
  return x;
}

void lw_matmul_into(struct lower *l, struct tensor x, struct tensor y, struct tensor out)
{
  struct product p;
  if (!lw_known(x) || !lw_known(y) || !lw_known(out))
    return;
  x = written_out(l, x);
  y = written_out(l, y);
  if (!make_product(&p, x, y, out)) {
    lw_refuse(l, NULL, "the operands of a matrix product do not fit");
    return;
  }
  if (x.size[x.rank - 1] == 0) {
    lw_refuse(l, "drop this node", "a matrix product over no elements");
    return;
  }
  struct tensor in[] = {p.x, p.y};
  bool outer = x.size[x.rank - 1] == 1;
  lw_nest(l, outer ? SW_OP_MUL : SW_OP_MATMUL, SW_ROLE_PLAIN, outer ? p.n : p.n - 1, p.n, p.range, p.out, 2, in);
}

/* K = 1 is an outer product, which the matrix unit does not take; with N = 1 it could not tell its operands apart, so
 * that is mul and sum. Reference: ops.md 4.4. */
struct tensor lw_matmul(struct lower *l, struct tensor x, struct tensor y)
{
  if (!lw_known(x) || !lw_known(y))
    return lw_unknown();
  if (x.size[x.rank - 1] == 1 && y.size[y.rank - 2] == 1)
    return lw_binary(l, SW_OP_MUL, x, y);
  if (y.size[y.rank - 1] == 1 && x.size[x.rank - 1] == y.size[y.rank - 2]) {
    struct tensor p = lw_binary(l, SW_OP_MUL, x, lw_transpose(y, y.rank - 2, y.rank - 1));
    return lw_known(p) ? lw_reduce(l, SW_OP_SUM, p, 1u << (p.rank - 1), true) : p;
  }
  struct tensor batch[2] = {x, y};
  batch[0].rank -= 2;
  batch[1].rank -= 2;
  int rank;
  int64_t size[SW_MAX_RANK];
  if (!lw_broadcast(2, batch, &rank, size) || rank + 3 > SW_MAX_RANK)
    return lw_refuse(l, NULL, "the operands of a matrix product do not fit");
  size[rank] = x.size[x.rank - 2];
  size[rank + 1] = y.size[y.rank - 1];
  struct tensor votes[] = {as_nest(x, rank, size, 0, 2, rank + 3), as_nest(y, rank, size, 2, 1, rank + 3)};
  int64_t stride[SW_MAX_RANK];
  lw_voted_strides(l, rank + 2, size, 2, votes, stride);
  struct tensor out = lw_new(l, x.dtype, rank + 2, size, l->best ? NULL : stride);
  lw_matmul_into(l, x, y, out);
  return l->failed ? lw_unknown() : out;
}

/* -- operands that were flattened for mm, addmm and bmm -- */

static int rank_of(const struct lower *l, int value)
{
  return l->graph->values.v[value].rank;
}

/* A tensor argument, as it was before its leading dims were joined when `other` allows it: then the product keeps the
 * dims apart, as the training dialect's linear and matmul do, and its own view back costs nothing. */
static struct tensor unflattened(struct lower *l, const struct sw_arg *a, int kept, enum sw_dtype t)
{
  struct sw_arg wide = *a;
  if (l->best && lw_is_tensor(l, a))
    wide.value = lw_unflattened(l, a->value, kept);
  return lw_argument(l, &wide, t);
}

static void set_flat(struct lower *l, struct tensor y)
{
  const struct sw_value *v = lw_value(l, 0);
  lw_set(l, 0, lw_known(y) ? lw_reshape(l, y, v->rank, v->size) : y);
}

/* bmm of two operands that both come from [b, h, .., ..] with equal b, h. False: not of that kind. */
static bool run_bmm(struct lower *l)
{
  const struct sw_node *n = lw_node(l);
  if (!l->best || strcmp(n->target, "aten.bmm.default") || !lw_is_tensor(l, &n->args[0]) || !lw_is_tensor(l, &n->args[1]))
    return false;
  int a = lw_unflattened(l, n->args[0].value, 2), b = lw_unflattened(l, n->args[1].value, 2);
  const struct sw_value *x = &l->graph->values.v[a], *y = &l->graph->values.v[b];
  if (x->rank != y->rank || x->rank <= 3)
    return false;
  for (int d = 0; d < x->rank - 2; d++)
    if (x->size[d] != y->size[d])
      return false;
  enum sw_dtype t = lw_result_dtype(l, 0);
  struct tensor p = unflattened(l, &n->args[0], 2, t), q = unflattened(l, &n->args[1], 2, t);
  set_flat(l, lw_matmul(l, p, q));
  return true;
}

/* mm, bmm, matmul: 1-d operands get a dim that goes away again. */
void lw_op_matmul(struct lower *l, int unused)
{
  (void)unused;
  const struct sw_node *n = lw_node(l);
  enum sw_dtype t = lw_result_dtype(l, 0);
  if (lw_run_experts(l) || run_bmm(l))
    return;
  if (!strcmp(n->target, "aten.mm.default")) {
    struct tensor a = unflattened(l, &n->args[0], 1, t), b = lw_argument(l, &n->args[1], t);
    set_flat(l, lw_matmul(l, a, b));
    return;
  }
  struct tensor x = lw_argument(l, &n->args[0], t), y = lw_argument(l, &n->args[1], t);
  if (!lw_known(x) || !lw_known(y)) {
    lw_set(l, 0, lw_unknown());
    return;
  }
  bool row = x.rank == 1, column = y.rank == 1;
  if (row)
    x = lw_unsqueeze(x, 0);
  if (column)
    y = lw_unsqueeze(y, 1);
  struct tensor z = lw_matmul(l, x, y);
  if (column)
    z = lw_squeeze(z, z.rank - 1);
  if (row)
    z = lw_squeeze(z, z.rank - (column ? 1 : 2));
  lw_set(l, 0, z);
}

struct tensor lw_linear(struct lower *l, struct tensor x, struct tensor w, const struct tensor *bias)
{
  if (!lw_known(x) || !lw_known(w))
    return lw_unknown();
  bool row = x.rank == 1;
  if (row)
    x = lw_unsqueeze(x, 0);
  struct tensor y = lw_matmul(l, x, lw_transpose(w, 0, 1));
  if (row)
    y = lw_squeeze(y, 0);
  return bias ? lw_binary(l, SW_OP_ADD, y, *bias) : y;
}

void lw_op_linear(struct lower *l, int unused)
{
  (void)unused;
  enum sw_dtype t = lw_result_dtype(l, 0);
  struct tensor bias;
  bool has_bias = lw_given(l, "bias");
  if (has_bias)
    bias = lw_argument(l, lw_arg(l, "bias"), t);
  struct tensor x = lw_argument(l, lw_arg(l, "input"), t), w = lw_argument(l, lw_arg(l, "weight"), t);
  lw_set(l, 0, lw_linear(l, x, w, has_bias ? &bias : NULL));
}

/* beta * self + alpha * (a @ b); beta 0 ignores self. */
void lw_op_addmm(struct lower *l, int unused)
{
  (void)unused;
  const struct sw_node *n = lw_node(l);
  enum sw_dtype t = lw_result_dtype(l, 0);
  double alpha = lw_real(l, "alpha"), beta = lw_real(l, "beta");
  /* the bias broadcasts over rows only when it is a vector */
  bool vector = lw_is_tensor(l, &n->args[0]) && rank_of(l, n->args[0].value) == 1 && !strcmp(n->target, "aten.addmm.default");
  struct tensor a = vector ? unflattened(l, &n->args[1], 1, t) : lw_argument(l, &n->args[1], t);
  struct tensor b = lw_argument(l, &n->args[2], t), y;
  bool column = lw_known(b) && b.rank == 1; /* addmv */
  y = lw_matmul(l, a, column ? lw_unsqueeze(b, 1) : b);
  if (column)
    y = lw_squeeze(y, y.rank - 1);
  if (alpha != 1)
    y = lw_binary_number(l, SW_OP_MUL, y, alpha);
  if (beta != 0) {
    struct tensor s = lw_argument(l, &n->args[0], t);
    if (beta != 1)
      s = lw_binary_number(l, SW_OP_MUL, s, beta);
    bool bias_last = vector && l->best;
    y = lw_binary(l, SW_OP_ADD, bias_last ? y : s, bias_last ? s : y);
  }
  set_flat(l, y);
}

void lw_op_dot(struct lower *l, int unused)
{
  (void)unused;
  const struct sw_node *n = lw_node(l);
  enum sw_dtype t = lw_result_dtype(l, 0);
  struct tensor a = lw_argument(l, &n->args[0], t), b = lw_argument(l, &n->args[1], t);
  struct tensor p = lw_binary(l, SW_OP_MUL, a, b);
  lw_set(l, 0, lw_reduce(l, SW_OP_SUM, p, 1, false));
}

void lw_op_outer(struct lower *l, int unused)
{
  (void)unused;
  const struct sw_node *n = lw_node(l);
  enum sw_dtype t = lw_result_dtype(l, 0);
  struct tensor a = lw_argument(l, &n->args[0], t), b = lw_argument(l, &n->args[1], t);
  lw_set(l, 0, lw_binary(l, SW_OP_MUL, lw_unsqueeze(a, 1), lw_unsqueeze(b, 0)));
}

/* fp8 operands, then the scales and the bias (ops.md 1.5). */
/* Whether the device has quantised it: the matrix unit takes no other fp8 as its second operand. */
static bool is_quantised_here(struct lower *l, struct tensor w)
{
  for (int i = l->program->ops.n - 1; i >= 0; i--)
    if (l->program->ops.v[i].out.storage == w.storage)
      return l->program->ops.v[i].op == SW_OP_QFP8WT;
  return false;
}

/* fp8 in 16 bits, where every fp8 number is. The device's cast works on whole sticks of 128. */
static struct tensor widened(struct lower *l, struct tensor x, enum sw_dtype t)
{
  bool whole = !lw_storage(l, x.storage)->by_host;
  for (int d = 0; d < x.rank; d++)
    whole = whole && (x.size[d] == 1 || x.size[d] % 128 == 0);
  return whole ? lw_cast(l, x, t) : lw_host_cast(l, x, t);
}

/* Profile best multiplies a loaded fp8 weight in 16 bits. */
static struct tensor scaled_product(struct lower *l, struct tensor x, struct tensor w, enum sw_dtype t)
{
  if (l->best && !is_quantised_here(l, w)) {
    x = widened(l, x, t);
    w = widened(l, w, t);
    return lw_matmul(l, x, w);
  }
  int64_t range[] = {x.size[0], w.size[1], x.size[1]};
  struct tensor out = lw_new(l, t, 2, range, NULL), nest = out, in[2] = {x, w};
  in[0].stride[1] = 0;
  in[0].stride[2] = x.stride[1];
  in[1].stride[0] = 0;
  in[1].stride[2] = w.stride[0];
  nest.stride[2] = 0;
  lw_nest(l, SW_OP_MATMULFP8, SW_ROLE_PLAIN, 2, 3, range, nest, 2, in);
  return out;
}

void lw_op_scaled_mm(struct lower *l, int unused)
{
  (void)unused;
  enum sw_dtype t = lw_result_dtype(l, 0);
  struct tensor x = lw_tensor(l, "self"), w = lw_tensor(l, "mat2");
  if (!lw_known(x) || !lw_known(w)) {
    lw_set(l, 0, lw_unknown());
    return;
  }
  struct tensor out = scaled_product(l, x, w, t);
  static const char *const scales[] = {"scale_a", "scale_b"};
  for (int i = 0; i < 2; i++)
    out = lw_binary(l, SW_OP_MUL, out, lw_argument(l, lw_arg(l, scales[i]), t));
  if (lw_given(l, "bias"))
    out = lw_binary(l, SW_OP_ADD, out, lw_argument(l, lw_arg(l, "bias"), t));
  if (lw_given(l, "scale_result"))
    sw_warn(l->job, "%s: scale_result is ignored for a result that is not fp8", lw_node(l)->name);
  lw_set(l, 0, l->failed ? lw_unknown() : out);
}
