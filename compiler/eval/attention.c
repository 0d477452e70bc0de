/* softmax(q k^T * scale + mask) v. */
#include "compiler/eval/rows.h"

#include <math.h>
#include <string.h>

/* Query heads that share one head of keys and values: heads of k are repeated, one after the other. The repetition is
 * a dim of stride 0 and becomes a copy only where dims must merge. */
static struct sw_tensor repeat_heads(struct sw_call *c, const struct sw_tensor *t, int64_t heads)
{
  if (t->rank < 3 || t->size[t->rank - 3] == heads)
    return *t;
  int64_t have = t->size[t->rank - 3];
  if (have == 0 || heads % have || t->rank == SW_MAX_RANK)
    sw_call_stop(c, SW_INVALID, "%lld query heads on %lld heads of keys", (long long)heads, (long long)have);
  struct sw_tensor v = *t;
  int at = t->rank - 2;
  v.rank++;
  v.size[t->rank] = heads / have;
  v.stride[t->rank] = 0;
  v = sw_tensor_move(&v, t->rank, at);
  int64_t size[SW_MAX_RANK];
  memcpy(size, t->size, sizeof size);
  size[t->rank - 3] = heads;
  return sw_call_reshape(c, &v, t->rank, size);
}

/* A row of scores becomes weights. A row in which nothing may be seen becomes 0. Gives the log of the sum of exps. */
static double weigh(double *row, int64_t n)
{
  double sum = sw_row_softmax_shift(row, n);
  for (int64_t i = 0; i < n; i++)
    row[i] = isinf(sum) && sum < 0 ? 0 : exp(row[i] - sum);
  return sum;
}

struct attention {
  struct sw_tensor q, k, v, out;
  struct sw_tensor mask, weights, sums; /* without cells: not there, not asked for */
  bool causal;
  double scale;
};

/* One head: q [l,e], k [s,e], v [s,f]. */
static void head(const struct attention *a, double *q, double *k, double *v, double *scores,
                 double *mask, double *out, double *sums)
{
  int64_t l = a->q.size[a->q.rank - 2], e = a->q.size[a->q.rank - 1], s = a->k.size[a->k.rank - 2],
          f = a->v.size[a->v.rank - 1];
  bool boolean = mask && a->mask.dtype == SW_BOOL;
  memset(out, 0, (size_t)(l * f) * sizeof *out);
  for (int64_t i = 0; i < l; i++) {
    double *row = scores + i * s;
    for (int64_t j = 0; j < s; j++) {
      double sum = 0;
      for (int64_t x = 0; x < e; x++)
        sum += q[i * e + x] * k[j * e + x];
      sum *= a->scale;
      bool hidden = (a->causal && j > i) || (boolean && mask[i * s + j] == 0);
      row[j] = hidden ? -(double)INFINITY : mask && !boolean ? sum + mask[i * s + j] : sum;
    }
    sums[i] = weigh(row, s);
  }
  sw_gemm(l, f, s, scores, v, out);
}

/* The view of the last `dims` dims at a place. */
static struct sw_tensor tail(const struct sw_tensor *t, int dims, int64_t at)
{
  struct sw_tensor v = *t;
  v.rank = dims;
  v.offset = at;
  for (int d = 0; d < dims; d++) {
    v.size[d] = t->size[t->rank - dims + d];
    v.stride[d] = t->stride[t->rank - dims + d];
  }
  return v;
}

static struct sw_tensor batch_of(const struct sw_tensor *t, int dims)
{
  struct sw_tensor v = *t;
  v.rank -= dims;
  return v;
}

static void attend(struct sw_call *c, struct attention *a, int batch_rank)
{
  int64_t l = a->q.size[a->q.rank - 2], e = a->q.size[a->q.rank - 1], s = a->k.size[a->k.rank - 2],
          f = a->v.size[a->v.rank - 1];
  double *q = sw_call_reals(c, l * e), *k = sw_call_reals(c, s * e), *v = sw_call_reals(c, s * f);
  double *scores = sw_call_reals(c, l * s), *mask = a->mask.cells ? sw_call_reals(c, l * s) : NULL;
  double *out = sw_call_reals(c, l * f), *sums = sw_call_reals(c, l);
  struct sw_tensor unused = a->out;
  struct sw_tensor batches[7] = {
      batch_of(&a->q, 2),
      batch_of(&a->k, 2),
      batch_of(&a->v, 2),
      batch_of(&a->out, 2),
      batch_of(mask ? &a->mask : &unused, 2),
      batch_of(a->weights.cells ? &a->weights : &unused, 2),
      batch_of(a->sums.cells ? &a->sums : &unused, a->sums.cells ? 1 : 2),
  };
  const struct sw_tensor *all[7];
  for (int i = 0; i < 7; i++) {
    if (batches[i].rank != batch_rank)
      sw_call_stop(c, SW_INVALID, "a result of another rank than its inputs");
    all[i] = &batches[i];
  }
  struct sw_walk w;
  for (sw_walk(&w, 7, all); w.more; sw_walk_on(&w))
    for (int64_t i = 0; i < w.n; i++) {
      int64_t at[7];
      for (int j = 0; j < 7; j++)
        at[j] = w.at[j] + i * w.step[j];
      struct sw_tensor part = tail(&a->q, 2, at[0]);
      sw_get_reals(&part, q);
      part = tail(&a->k, 2, at[1]);
      sw_get_reals(&part, k);
      part = tail(&a->v, 2, at[2]);
      sw_get_reals(&part, v);
      if (mask) {
        part = tail(&a->mask, 2, at[4]);
        sw_get_reals(&part, mask);
      }
      head(a, q, k, v, scores, mask, out, sums);
      part = tail(&a->out, 2, at[3]);
      sw_put_reals(&part, out, c->rounding);
      if (a->weights.cells) {
        part = tail(&a->weights, 2, at[5]);
        sw_put_reals(&part, scores, c->rounding);
      }
      if (a->sums.cells) {
        part = tail(&a->sums, 1, at[6]);
        sw_put_reals(&part, sums, c->rounding);
      }
    }
}

/* `args`: name of the mask. Result 1 is nothing, the weights or the log of the sums (`what`); results beyond it concern
 * random numbers, which an evaluation does not draw: zeros of the declared size. */
void sw_op_attention(struct sw_call *c)
{
  struct attention a = {.q = sw_call_tensor(c, "query"), .k = sw_call_tensor(c, "key"), .v = sw_call_tensor(c, "value"),
                        .causal = sw_call_bool(c, "is_causal")};
  if (sw_call_real_or(c, "dropout_p", 0) > 0)
    sw_call_stop(c, SW_UNSUPPORTED, "dropout_p over 0: random numbers can't be repeated here");
  if (a.q.rank < 2 || a.k.rank < 2 || a.v.rank < 2)
    sw_call_stop(c, SW_INVALID, "query, key and value of rank %d, %d, %d", a.q.rank, a.k.rank, a.v.rank);
  int64_t l = a.q.size[a.q.rank - 2], e = a.q.size[a.q.rank - 1], s = a.k.size[a.k.rank - 2];
  int64_t f = a.v.size[a.v.rank - 1];
  if (a.k.size[a.k.rank - 1] != e || a.v.size[a.v.rank - 2] != s)
    sw_call_stop(c, SW_INVALID, "query, key and value do not fit one another");
  a.scale = sw_call_real_or(c, "scale", 1 / sqrt((double)e));
  if (sw_call_bool(c, "enable_gqa") && a.q.rank >= 3) {
    a.k = repeat_heads(c, &a.k, a.q.size[a.q.rank - 3]);
    a.v = repeat_heads(c, &a.v, a.q.size[a.q.rank - 3]);
  }
  if (sw_call_has(c, c->op->args))
    a.mask = sw_call_tensor(c, c->op->args);

  struct sw_tensor *inputs[] = {&a.q, &a.k, &a.v, &a.mask};
  int n = a.mask.cells ? 4 : 3, rank = 0;
  int64_t size[SW_MAX_RANK], rows[4] = {l, s, s, l}, columns[4] = {e, e, f, s};
  for (int i = 0; i < n; i++) {
    struct sw_tensor batch = *inputs[i];
    batch.rank = batch.rank > 2 ? batch.rank - 2 : 0;
    rank = sw_call_broadcast(c, size, rank, &batch);
  }
  if (rank + 2 > SW_MAX_RANK)
    sw_call_stop(c, SW_UNSUPPORTED, "attention of rank %d", rank + 2);
  for (int i = 0; i < n; i++) {
    size[rank] = rows[i];
    size[rank + 1] = columns[i];
    *inputs[i] = sw_call_expand(c, inputs[i], rank + 2, size);
  }
  size[rank] = l;
  size[rank + 1] = f;
  a.out = sw_call_out(c, 0, rank + 2, size);
  size[rank + 1] = s;
  if (c->op->what == SW_ATTENTION_WEIGHTS)
    a.weights = sw_call_out(c, 1, rank + 2, size);
  if (c->op->what == SW_ATTENTION_SUMS)
    a.sums = sw_call_out(c, 1, rank + 1, size);
  attend(c, &a, rank);
  for (int i = c->op->what == SW_ATTENTION_PLAIN ? 1 : 2; i < sw_call_n_results(c); i++) {
    const struct sw_value *v = sw_call_declared(c, i);
    if (v && v->kind == SW_VALUE_TENSOR)
      sw_call_out(c, i, v->rank, v->size);
    else
      sw_call_out_number(c, i, (struct sw_number){.kind = SW_NUMBER_INT});
  }
}
