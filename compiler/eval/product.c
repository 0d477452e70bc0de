/* Products under names of their own, as chains of the plain one. */
#include "compiler/eval/ops.h"

#include <string.h>

static int64_t elements(const int64_t *size, int n)
{
  int64_t p = 1;
  for (int i = 0; i < n; i++)
    p *= size[i];
  return p;
}

static void put(struct sw_call *c, int rank, const int64_t *size, const double *v)
{
  struct sw_tensor out = sw_call_out(c, 0, rank, size);
  sw_put_reals(&out, v, c->rounding);
}

/* Dims of x named by `dims` behind the others, or before them. */
static struct sw_tensor gathered(struct sw_call *c, const struct sw_tensor *x, struct sw_ints dims, bool behind)
{
  struct sw_tensor v = *x;
  bool named[SW_MAX_RANK] = {false};
  int order[SW_MAX_RANK], n = 0;
  for (int i = 0; i < dims.n; i++) {
    int d = sw_dim_of(c, dims.v[i], x->rank);
    if (x->rank == 0 || named[d])
      sw_call_stop(c, SW_INVALID, "dim %d occurs twice", d);
    named[d] = true;
  }
  for (int pass = 0; pass < 2; pass++) {
    if ((pass == 1) == behind)
      for (int i = 0; i < dims.n; i++)
        order[n++] = sw_dim_of(c, dims.v[i], x->rank);
    else
      for (int d = 0; d < x->rank; d++)
        if (!named[d])
          order[n++] = d;
  }
  for (int d = 0; d < x->rank; d++) {
    v.size[d] = x->size[order[d]];
    v.stride[d] = x->stride[order[d]];
  }
  return v;
}

/* a with `k` dims at its end by b with `k` dims in front. */
static void contract(struct sw_call *c, const struct sw_tensor *a, const struct sw_tensor *b, int k)
{
  int64_t size[2 * SW_MAX_RANK];
  for (int i = 0; i < k; i++)
    if (a->size[a->rank - k + i] != b->size[i])
      sw_call_stop(c, SW_INVALID, "sizes %lld and %lld are contracted", (long long)a->size[a->rank - k + i], (long long)b->size[i]);
  int64_t m = elements(a->size, a->rank - k), inner = elements(b->size, k), n = elements(b->size + k, b->rank - k);
  memcpy(size, a->size, (size_t)(a->rank - k) * sizeof *size);
  memcpy(size + a->rank - k, b->size + k, (size_t)(b->rank - k) * sizeof *size);
  double *out = sw_call_reals(c, sw_call_product(c, 2, (int64_t[]){m, n}));
  sw_gemm(m, n, inner, sw_call_get(c, a), sw_call_get(c, b), out);
  put(c, a->rank + b->rank - 2 * k, size, out);
}

void sw_op_tensordot(struct sw_call *c)
{
  struct sw_tensor a = sw_call_tensor(c, "self"), b = sw_call_tensor(c, "other");
  struct sw_ints da = sw_call_ints(c, "dims_self"), db = sw_call_ints(c, "dims_other");
  if (da.n != db.n || a.rank + b.rank - 2 * da.n > SW_MAX_RANK)
    sw_call_stop(c, SW_INVALID, "%d and %d dims are contracted", da.n, db.n);
  a = gathered(c, &a, da, true);
  b = gathered(c, &b, db, false);
  contract(c, &a, &b, da.n);
}

/* The last dims of both; a tensor of rank 0 is a factor. */
void sw_op_inner(struct sw_call *c)
{
  struct sw_tensor a = sw_call_tensor(c, "self"), b = sw_call_tensor(c, "other");
  if (a.rank == 0 || b.rank == 0) {
    sw_map(c, 0, SW_K_mul, 2, (struct sw_tensor[]){a, b}, NULL);
    return;
  }
  b = sw_tensor_move(&b, b.rank - 1, 0);
  contract(c, &a, &b, 1);
}

/* chain_matmul, linalg_multi_dot: matrices one behind the other; the first and the last may be vectors. */
void sw_op_chain(struct sw_call *c)
{
  int n;
  const struct sw_tensor *ts = sw_call_tensors(c, c->op->args, &n);
  if (n < 1)
    sw_call_stop(c, SW_INVALID, "no matrices");
  struct sw_tensor first = ts[0], last = ts[n - 1];
  int64_t m = first.rank == 1 ? 1 : first.size[0], k = first.size[first.rank - 1];
  double *v = sw_call_get(c, &first);
  for (int i = 1; i < n; i++) {
    int64_t columns = ts[i].rank == 1 ? 1 : ts[i].size[1];
    if (ts[i].rank < 1 || ts[i].rank > 2 || ts[i].size[0] != k)
      sw_call_stop(c, SW_INVALID, "matrix %d does not fit", i);
    double *out = sw_call_reals(c, sw_call_product(c, 2, (int64_t[]){m, columns}));
    sw_gemm(m, columns, k, v, sw_call_get(c, &ts[i]), out);
    v = out;
    k = columns;
  }
  int64_t size[2];
  int rank = 0;
  if (first.rank == 2)
    size[rank++] = m;
  if (n == 1 || last.rank == 2)
    size[rank++] = k;
  put(c, rank, size, v);
}

/* beta self + alpha times a product: of two vectors (addr, `what` 0) or the sum of a batch of matrix products (addbmm). */
void sw_op_add_product(struct sw_call *c)
{
  struct sw_tensor a = sw_call_tensor(c, c->op->what ? "batch1" : "vec1"), b = sw_call_tensor(c, c->op->what ? "batch2" : "vec2");
  int64_t batch = c->op->what ? a.size[0] : 1, m = a.size[c->op->what], k = c->op->what ? a.size[2] : 1, n = b.size[b.rank - 1];
  if (a.rank != (c->op->what ? 3 : 1) || b.rank != a.rank || sw_tensor_elements(&b) != batch * k * n)
    sw_call_stop(c, SW_INVALID, "operands of rank %d and %d", a.rank, b.rank);
  double alpha = sw_call_real(c, "alpha"), beta = sw_call_real(c, "beta");
  double *va = sw_call_get(c, &a), *vb = sw_call_get(c, &b), *out = sw_call_reals(c, sw_call_product(c, 2, (int64_t[]){m, n}));
  for (int64_t i = 0; i < batch; i++)
    sw_gemm(m, n, k, va + i * m * k, vb + i * k * n, out);
  struct sw_tensor self = sw_call_tensor(c, "self");
  int64_t size[] = {m, n};
  self = sw_call_expand(c, &self, 2, size);
  double *s = beta != 0 ? sw_call_get(c, &self) : NULL;
  for (int64_t i = 0; i < m * n; i++)
    out[i] = alpha * out[i] + (s ? beta * s[i] : 0);
  put(c, 2, size, out);
}

/* out[n,o] = sum over i, j of x1[n,i] w[o,i,j] x2[n,j], plus the bias. */
void sw_op_bilinear(struct sw_call *c)
{
  struct sw_tensor a = sw_call_tensor(c, "input1"), b = sw_call_tensor(c, "input2"), w = sw_call_tensor(c, "weight");
  if (a.rank < 1 || b.rank != a.rank || w.rank != 3 || a.size[a.rank - 1] != w.size[1] || b.size[b.rank - 1] != w.size[2])
    sw_call_stop(c, SW_INVALID, "inputs of rank %d and %d, a weight of rank %d", a.rank, b.rank, w.rank);
  int64_t rows = elements(a.size, a.rank - 1), i_n = w.size[1], j_n = w.size[2], outs = w.size[0], size[SW_MAX_RANK];
  if (elements(b.size, b.rank - 1) != rows)
    sw_call_stop(c, SW_INVALID, "inputs of different sizes");
  double *x = sw_call_get(c, &a), *y = sw_call_get(c, &b), *v = sw_call_get(c, &w), *bias = NULL;
  if (sw_call_has(c, "bias")) {
    struct sw_tensor t = sw_call_tensor(c, "bias");
    if (sw_tensor_elements(&t) != outs)
      sw_call_stop(c, SW_INVALID, "a bias of %lld elements", (long long)sw_tensor_elements(&t));
    bias = sw_call_get(c, &t);
  }
  double *out = sw_call_reals(c, sw_call_product(c, 2, (int64_t[]){rows, outs}));
  for (int64_t n = 0; n < rows; n++)
    for (int64_t o = 0; o < outs; o++) {
      double sum = bias ? bias[o] : 0;
      for (int64_t i = 0; i < i_n; i++)
        for (int64_t j = 0; j < j_n; j++)
          sum += x[n * i_n + i] * v[(o * i_n + i) * j_n + j] * y[n * j_n + j];
      out[n * outs + o] = sum;
    }
  memcpy(size, a.size, sizeof size);
  size[a.rank - 1] = outs;
  put(c, a.rank, size, out);
}

/* Every element of the first times the whole second: sizes multiply dim by dim. */
void sw_op_kron(struct sw_call *c)
{
  struct sw_tensor a = sw_call_tensor(c, "self"), b = sw_call_tensor(c, "other");
  int rank = a.rank > b.rank ? a.rank : b.rank;
  int64_t wide_a[SW_MAX_RANK], wide_b[SW_MAX_RANK], size[SW_MAX_RANK];
  if (2 * rank > SW_MAX_RANK)
    sw_call_stop(c, SW_UNSUPPORTED, "tensors of rank %d", rank);
  for (int d = 0; d < rank; d++) {
    int64_t x = d < rank - a.rank ? 1 : a.size[d - (rank - a.rank)], y = d < rank - b.rank ? 1 : b.size[d - (rank - b.rank)];
    wide_a[2 * d] = x;
    wide_b[2 * d + 1] = y;
    wide_a[2 * d + 1] = wide_b[2 * d] = 1;
    size[d] = sw_call_product(c, 2, (int64_t[]){x, y});
  }
  a = sw_call_reshape(c, &a, 2 * rank, wide_a);
  b = sw_call_reshape(c, &b, 2 * rank, wide_b);
  struct sw_tensor out = sw_call_out(c, 0, rank, size), to = out;
  to.rank = 2 * rank;
  for (int d = 0; d < rank; d++) {
    to.size[2 * d] = wide_a[2 * d];
    to.size[2 * d + 1] = wide_b[2 * d + 1];
    to.stride[2 * d] = out.stride[d] * wide_b[2 * d + 1];
    to.stride[2 * d + 1] = out.stride[d];
  }
  sw_apply(c, &to, SW_K_mul, 2, (struct sw_tensor[]){a, b}, NULL);
}

/* Of vectors of three along a dim. `args` names the dim that is meant when none is given: NULL the first of size 3. */
void sw_op_cross(struct sw_call *c)
{
  struct sw_tensor a = sw_call_tensor(c, "self"), b = sw_call_tensor(c, "other");
  int64_t size[SW_MAX_RANK];
  int rank = sw_call_broadcast(c, size, sw_call_broadcast(c, size, 0, &a), &b), dim = -1;
  a = sw_call_expand(c, &a, rank, size);
  b = sw_call_expand(c, &b, rank, size);
  if (sw_call_has(c, "dim"))
    dim = sw_call_dim(c, "dim", rank);
  for (int d = 0; d < rank && dim < 0; d++)
    dim = size[d] == 3 ? d : -1;
  if (dim < 0 || rank == 0 || size[dim] != 3)
    sw_call_stop(c, SW_INVALID, "no dim of 3 elements");
  struct sw_tensor out = sw_call_out(c, 0, rank, size);
  for (int i = 0; i < 3; i++) {
    struct sw_tensor to = sw_tensor_at(&out, dim, i);
    struct sw_tensor x = sw_tensor_at(&a, dim, (i + 1) % 3), y = sw_tensor_at(&b, dim, (i + 2) % 3);
    struct sw_tensor u = sw_tensor_at(&a, dim, (i + 2) % 3), v = sw_tensor_at(&b, dim, (i + 1) % 3);
    double *p = sw_call_get(c, &x), *q = sw_call_get(c, &y), *r = sw_call_get(c, &u), *s = sw_call_get(c, &v);
    for (int64_t k = 0; k < sw_tensor_elements(&to); k++)
      p[k] = p[k] * q[k] - r[k] * s[k];
    sw_put_reals(&to, p, c->rounding);
  }
}

/* The dot products along a dim. */
void sw_op_vecdot(struct sw_call *c)
{
  struct sw_tensor a = sw_call_tensor(c, "x"), b = sw_call_tensor(c, "y");
  int64_t size[SW_MAX_RANK];
  int rank = sw_call_broadcast(c, size, sw_call_broadcast(c, size, 0, &a), &b), dim = sw_call_dim(c, "dim", rank);
  a = sw_call_expand(c, &a, rank, size);
  b = sw_call_expand(c, &b, rank, size);
  if (rank == 0)
    sw_call_stop(c, SW_INVALID, "numbers without dims");
  a = sw_tensor_move(&a, dim, rank - 1);
  b = sw_tensor_move(&b, dim, rank - 1);
  int64_t n = a.size[rank - 1], rows = elements(a.size, rank - 1);
  double *p = sw_call_get(c, &a), *q = sw_call_get(c, &b), *out = sw_call_reals(c, rows);
  for (int64_t r = 0; r < rows; r++)
    for (int64_t i = 0; i < n; i++)
      out[r] += p[r * n + i] * q[r * n + i];
  put(c, rank - 1, a.size, out);
}

/* _trilinear: three tensors with dims of size 1 put in at their places, multiplied, summed over some dims. */
void sw_op_trilinear(struct sw_call *c)
{
  static const char *const names[3][2] = {{"i1", "expand1"}, {"i2", "expand2"}, {"i3", "expand3"}};
  struct sw_tensor t[3];
  int64_t size[SW_MAX_RANK];
  int rank = 0, n = 0;
  for (int i = 0; i < 3; i++) {
    struct sw_tensor x = sw_call_tensor(c, names[i][0]);
    struct sw_ints put_in = sw_call_ints(c, names[i][1]);
    int whole = x.rank + put_in.n;
    bool is_new[SW_MAX_RANK] = {false};
    if (whole > SW_MAX_RANK)
      sw_call_stop(c, SW_UNSUPPORTED, "rank %d", whole);
    for (int k = 0; k < put_in.n; k++)
      is_new[sw_dim_of(c, put_in.v[k], whole)] = true;
    t[i] = x;
    t[i].rank = whole;
    for (int d = 0, from = 0; d < whole; d++) {
      bool fresh = is_new[d] || from == x.rank;
      t[i].size[d] = fresh ? 1 : x.size[from];
      t[i].stride[d] = fresh ? 0 : x.stride[from];
      from += !fresh;
    }
    rank = sw_call_broadcast(c, size, rank, &t[i]);
  }
  double *v[3];
  for (int i = 0; i < 3; i++) {
    t[i] = sw_call_expand(c, &t[i], rank, size);
    v[i] = sw_call_get(c, &t[i]);
  }
  struct sw_ints summed = sw_call_ints(c, "sumdim");
  bool gone[SW_MAX_RANK] = {false};
  int64_t kept[SW_MAX_RANK], step[SW_MAX_RANK] = {0}, run = 1;
  for (int k = 0; k < summed.n; k++)
    gone[sw_dim_of(c, summed.v[k], rank)] = true;
  for (int d = 0; d < rank; d++)
    if (!gone[d])
      kept[n++] = size[d];
  for (int d = rank - 1; d >= 0; d--)
    if (!gone[d]) {
      step[d] = run;
      run *= size[d];
    }
  double *out = sw_call_reals(c, run);
  int64_t all = elements(size, rank);
  for (int64_t i = 0; i < all; i++) {
    int64_t at = 0, rest = i;
    for (int d = rank - 1; d >= 0; d--) {
      at += rest % size[d] * step[d];
      rest /= size[d];
    }
    out[at] += v[0][i] * v[1][i] * v[2][i];
  }
  put(c, n, kept, out);
}
