/* Matrix products, summed in double (integers exactly) and rounded once. */
#include "compiler/eval/ops.h"

#include <string.h>

/* Rows of b that stay in the cache while all rows of a pass. */
enum { BLOCK = 64 };

/* out[m,n] += a[m,k] b[k,n], all row-major. */
#define MULTIPLY(name, T)                                                                             \
  static void name(int64_t m, int64_t n, int64_t k, const T *restrict a, const T *restrict b, T *restrict out) \
  {                                                                                                   \
    for (int64_t p0 = 0; p0 < k; p0 += BLOCK)                                                         \
      for (int64_t i = 0; i < m; i++)                                                                 \
        for (int64_t p = p0; p < k && p < p0 + BLOCK; p++) {                                          \
          T x = a[i * k + p], *to = out + i * n;                                                      \
          const T *row = b + p * n;                                                                   \
          for (int64_t j = 0; j < n; j++)                                                             \
            to[j] += x * row[j];                                                                      \
        }                                                                                             \
  }
MULTIPLY(multiply_reals, double)
MULTIPLY(multiply_wholes, uint64_t)

void sw_gemm(int64_t m, int64_t n, int64_t k, const double *a, const double *b, double *out)
{
  multiply_reals(m, n, k, a, b, out);
}

/* The product of the last two dims, broadcast over the others, as a temporary: float64, or int64 for integers. */
static struct sw_tensor product(struct sw_call *c, const struct sw_tensor *a, const struct sw_tensor *b, bool whole)
{
  int64_t m = a->size[a->rank - 2], k = a->size[a->rank - 1], n = b->size[b->rank - 1], size[SW_MAX_RANK];
  if (b->size[b->rank - 2] != k)
    sw_call_stop(c, SW_INVALID, "a matrix of %lld columns times one of %lld rows", (long long)k,
                 (long long)b->size[b->rank - 2]);
  struct sw_tensor batch_a = *a, batch_b = *b;
  batch_a.rank -= 2;
  batch_b.rank -= 2;
  int rank = sw_call_broadcast(c, size, sw_call_broadcast(c, size, 0, &batch_a), &batch_b);
  batch_a = sw_call_expand(c, &batch_a, rank, size);
  batch_b = sw_call_expand(c, &batch_b, rank, size);
  if (rank + 2 > SW_MAX_RANK)
    sw_call_stop(c, SW_UNSUPPORTED, "a product of rank %d", rank + 2);
  size[rank] = m;
  size[rank + 1] = n;
  struct sw_tensor out = sw_call_new(c, whole ? SW_I64 : SW_F64, rank + 2, size), batch_out = out;
  batch_out.rank = rank;
  struct sw_tensor one_a = sw_call_new(c, out.dtype, 2, (int64_t[]){m, k});
  struct sw_tensor one_b = sw_call_new(c, out.dtype, 2, (int64_t[]){k, n});
  struct sw_walk w;
  for (sw_walk(&w, 3, (const struct sw_tensor *const[]){&batch_out, &batch_a, &batch_b}); w.more; sw_walk_on(&w))
    for (int64_t i = 0; i < w.n; i++) {
      struct sw_tensor from_a = *a, from_b = *b;
      from_a.rank = from_b.rank = 2;
      for (int d = 0; d < 2; d++) {
        from_a.size[d] = a->size[a->rank - 2 + d];
        from_a.stride[d] = a->stride[a->rank - 2 + d];
        from_b.size[d] = b->size[b->rank - 2 + d];
        from_b.stride[d] = b->stride[b->rank - 2 + d];
      }
      from_a.offset = w.at[1] + i * w.step[1];
      from_b.offset = w.at[2] + i * w.step[2];
      int64_t at = w.at[0] + i * w.step[0];
      if (whole) {
        sw_get_wholes(&from_a, one_a.cells->integer);
        sw_get_wholes(&from_b, one_b.cells->integer);
        multiply_wholes(m, n, k, (uint64_t *)one_a.cells->integer, (uint64_t *)one_b.cells->integer,
                        (uint64_t *)out.cells->integer + at);
      } else {
        sw_get_reals(&from_a, one_a.cells->real);
        sw_get_reals(&from_b, one_b.cells->real);
        multiply_reals(m, n, k, one_a.cells->real, one_b.cells->real, out.cells->real + at);
      }
    }
  return out;
}

/* torch.matmul: vectors become matrices of one row or one column, whose dim is dropped again. */
static struct sw_tensor matmul(struct sw_call *c, struct sw_tensor a, struct sw_tensor b)
{
  if (a.rank == 0 || b.rank == 0)
    sw_call_stop(c, SW_INVALID, "a tensor of rank 0 is not a matrix");
  bool row = a.rank == 1, column = b.rank == 1, whole = sw_class_of(sw_call_out_dtype(c, 0)) == SW_CLASS_WHOLE;
  if (row) {
    a.size[1] = a.size[0];
    a.stride[1] = a.stride[0];
    a.size[0] = 1;
    a.rank = 2;
  }
  if (column) {
    b.size[1] = 1;
    b.stride[1] = 0;
    b.rank = 2;
  }
  /* One matrix for all batches: their rows are the rows of one product. */
  int64_t size[SW_MAX_RANK], k = a.size[a.rank - 1];
  int rank = a.rank;
  memcpy(size, a.size, sizeof size);
  size[rank - 1] = b.size[b.rank - 1];
  struct sw_tensor out;
  if (b.rank == 2 && a.rank > 2 && k > 0) {
    a = sw_call_reshape(c, &a, 2, (int64_t[]){-1, k});
    out = product(c, &a, &b, whole);
    out = sw_call_reshape(c, &out, rank, size);
  } else {
    out = product(c, &a, &b, whole);
  }
  if (column)
    out = sw_tensor_at(&out, out.rank - 1, 0);
  if (row)
    out = sw_tensor_at(&out, out.rank - 1 - !column, 0);
  return out;
}

static void finish(struct sw_call *c, const struct sw_tensor *t)
{
  struct sw_tensor out = sw_call_out(c, 0, t->rank, t->size);
  sw_call_copy(c, &out, t);
}

/* `args`: names of the two factors. mm, bmm, mv, dot are special cases that need no code of their own. */
void sw_op_matmul(struct sw_call *c)
{
  struct sw_tensor product_of = matmul(c, sw_call_tensor(c, "self"), sw_call_tensor(c, c->op->args));
  finish(c, &product_of);
}

static struct sw_tensor transposed(const struct sw_tensor *t)
{
  return t->rank < 2 ? *t : sw_tensor_move(t, t->rank - 1, t->rank - 2);
}

void sw_op_linear(struct sw_call *c)
{
  struct sw_tensor w = sw_call_tensor(c, "weight");
  struct sw_tensor t = matmul(c, sw_call_tensor(c, "input"), transposed(&w));
  if (!sw_call_has(c, "bias")) {
    finish(c, &t);
    return;
  }
  struct sw_tensor one = sw_call_scalar(c, (struct sw_number){.kind = SW_NUMBER_BOOL, .i = 1});
  sw_map(c, 0, SW_K_add, 3, (struct sw_tensor[]){t, sw_call_tensor(c, "bias"), one}, NULL);
}

/* beta * self + alpha * product; `args`: names of the factors. With beta 0 self does not count, NaN or not. */
void sw_op_addmm(struct sw_call *c)
{
  const char *second = strchr(c->op->args, ' ') + 1;
  const char *first = sw_arena_strndup(c->scratch, c->op->args, (size_t)(second - c->op->args - 1));
  struct sw_tensor t = matmul(c, sw_call_tensor(c, first), sw_call_tensor(c, second));
  struct sw_tensor alpha = sw_call_operand(c, "alpha", NULL), beta = sw_call_operand(c, "beta", NULL);
  struct sw_tensor self = sw_call_tensor(c, "self"), scaled = sw_call_new(c, t.dtype, t.rank, t.size);
  if (sw_call_real(c, "beta") != 0)
    sw_apply(c, &scaled, SW_K_mul, 2, (struct sw_tensor[]){self, beta}, NULL);
  sw_map(c, 0, SW_K_add, 3, (struct sw_tensor[]){scaled, t, alpha}, NULL);
}

void sw_op_outer(struct sw_call *c)
{
  struct sw_tensor a = sw_call_tensor(c, "self"), b = sw_call_tensor(c, "vec2");
  if (a.rank != 1 || b.rank != 1)
    sw_call_stop(c, SW_INVALID, "the outer product is one of two vectors");
  a = sw_call_reshape(c, &a, 2, (int64_t[]){-1, 1});
  sw_map(c, 0, SW_K_mul, 2, (struct sw_tensor[]){a, b}, NULL);
}

/* The product of fp8 matrices times their scales (one number, or one per row and per column), plus the bias. */
void sw_op_scaled_mm(struct sw_call *c)
{
  struct sw_tensor t = matmul(c, sw_call_tensor(c, "self"), sw_call_tensor(c, "mat2"));
  const char *scales[] = {"scale_a", "scale_b", "scale_result"};
  for (int i = 0; i < 3; i++)
    if (sw_call_has(c, scales[i]))
      sw_apply(c, &t, i < 2 ? SW_K_mul : SW_K_div, 2, (struct sw_tensor[]){t, sw_call_tensor(c, scales[i])}, NULL);
  if (sw_call_has(c, "bias")) {
    struct sw_tensor one = sw_call_scalar(c, (struct sw_number){.kind = SW_NUMBER_BOOL, .i = 1});
    sw_apply(c, &t, SW_K_add, 3, (struct sw_tensor[]){t, sw_call_tensor(c, "bias"), one}, NULL);
  }
  finish(c, &t);
}

/* transformers' grouped_mm_fallback, the experts of a mixture: rows of the input are sorted by expert, offs[g] is the
 * end of group g, and the rows of group g are multiplied by weight[g]. Rows beyond the last end stay 0. */
void sw_op_grouped_mm(struct sw_call *c)
{
  struct sw_tensor x = sw_call_tensor(c, "input"), w = sw_call_tensor(c, "weight"), offs = sw_call_tensor(c, "offs");
  if (x.rank != 2 || w.rank != 3 || offs.rank != 1 || offs.size[0] != w.size[0])
    sw_call_stop(c, SW_INVALID, "input, weight and offs of rank %d, %d, %d", x.rank, w.rank, offs.rank);
  int64_t *ends = sw_call_get_wholes(c, &offs), from = 0;
  struct sw_tensor out = sw_call_out(c, 0, 2, (int64_t[]){x.size[0], w.size[2]});
  for (int64_t g = 0; g < offs.size[0]; g++) {
    if (ends[g] < from || ends[g] > x.size[0])
      sw_call_stop(c, SW_INVALID, "group %lld ends at row %lld", (long long)g, (long long)ends[g]);
    struct sw_tensor rows = x, to = out, one = sw_tensor_at(&w, 0, g);
    rows.offset += from * rows.stride[0];
    to.offset += from * to.stride[0];
    rows.size[0] = to.size[0] = ends[g] - from;
    struct sw_tensor t = product(c, &rows, &one, false);
    sw_call_copy(c, &to, &t);
    from = ends[g];
  }
}
