/* Scaled dot product attention. Reference: ops.md 6.11.
 *
 * Profile best: the plain form softmax(q k^T s + mask) v, 9 device ops with one head of keys per head of queries or
 * several (the keys are then read with step 0 along the group, nothing is copied). Profile torch-spyre: the reference's
 * flash form for one chunk, 24 ops. */
#include "compiler/lower/families.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

struct attention {
  struct tensor q, k, v; /* [.., heads, rows, dim] */
  struct tensor mask;    /* additive; storage LW_NONE: none */
  bool masked;
  bool closed_rows;      /* some row is masked as a whole */
  bool guard;            /* or may be: PyTorch then gives 0 */
  double scale;
  enum sw_dtype dtype;
  const int64_t *q_stride; /* as PyTorch lays the queries out */
};

/* -- masks -- */

/* Whether each row of an additive mask lets something through. */
static bool rows_open(const struct sw_tensor *t, const double *x)
{
  int64_t n = 1, row = t->rank ? t->size[t->rank - 1] : 1;
  for (int d = 0; d < t->rank; d++)
    n *= t->size[d];
  for (int64_t i = 0; i < n; i += row) {
    bool open = false;
    for (int64_t j = 0; j < row; j++)
      open = open || x[i + j] != -INFINITY;
    if (!open)
      return false;
  }
  return true;
}

static struct tensor constant_mask(struct lower *l, int value, struct attention *a)
{
  struct lw_table_key key = {LW_TABLE_MASK, value, 0, a->dtype};
  struct tensor known = lw_cached(l, key);
  if (lw_known(known))
    return known;
  const struct sw_tensor *t = lw_constant_elements(l, value);
  double *x = lw_constant_doubles(l, value);
  int64_t n = 1;
  bool nothing = true;
  for (int d = 0; d < t->rank; d++)
    n *= t->size[d];
  for (int64_t i = 0; i < n; i++) {
    if (t->dtype == SW_BOOL)
      x[i] = x[i] != 0 ? 0 : -INFINITY;
    nothing = nothing && x[i] == 0;
  }
  if (nothing)
    return lw_unknown();
  a->guard = a->closed_rows = !rows_open(t, x);
  struct tensor m = lw_table(l, sw_arena_printf(l->arena, "%s:mask", lw_node(l)->name), a->dtype, t->rank, t->size, x);
  if (!a->guard)
    lw_cache(l, key, m);
  return m;
}

static struct tensor mask_of(struct lower *l, const struct sw_arg *arg, struct attention *a)
{
  if (lw_constant_elements(l, arg->value))
  {
    struct tensor m = constant_mask(l, arg->value, a);
    a->masked = lw_known(m);
    return m;
  }
  a->masked = a->guard = true;
  struct tensor m = lw_tensor_of(l, arg);
  if (lw_known(m) && m.dtype == SW_BOOL) {
    struct tensor open = lw_scalar(l, 0, a->dtype), shut = lw_scalar(l, -INFINITY, a->dtype);
    return lw_where(l, m, open, shut);
  }
  return lw_cast(l, m, a->dtype);
}

/* Query i sees keys 0..i. */
static struct tensor causal_mask(struct lower *l, struct attention *a)
{
  int64_t size[] = {a->q.size[a->q.rank - 2], a->k.size[a->k.rank - 2]};
  struct lw_table_key key = {LW_TABLE_CAUSAL, size[0], size[1], a->dtype};
  a->masked = true;
  struct tensor m = lw_cached(l, key);
  if (lw_known(m))
    return m;
  double *x = SW_NEW_N(lw_scratch(l), double, (size_t)(size[0] * size[1]));
  for (int64_t i = 0; i < size[0]; i++)
    for (int64_t j = 0; j < size[1]; j++)
      x[i * size[1] + j] = j <= i ? 0 : -INFINITY;
  m = lw_table(l, sw_arena_printf(l->arena, "%s:causal", lw_node(l)->name), a->dtype, 2, size, x);
  lw_cache(l, key, m);
  return m;
}

/* -- the plain form -- */

/* The heads of x split in groups: [.., H, S, D] as [.., H/g, g, S, D]. */
static struct tensor split_heads(struct tensor x, int64_t g)
{
  if (!lw_known(x))
    return x;
  int h = x.rank - 3;
  int64_t stride = x.stride[h];
  x = lw_unsqueeze(x, h + 1);
  x.size[h] /= g;
  x.stride[h] = stride * g;
  x.size[h + 1] = g;
  x.stride[h + 1] = stride;
  return x;
}

/* A row that is masked as a whole has maximum -inf: against -65504 its exponentials are 0, and 0 / 1 is PyTorch's 0.
 * For any other row the sum is at least 1, its largest element's exp(0). */
static struct tensor guarded_softmax(struct lower *l, struct tensor x)
{
  uint32_t last = 1u << (x.rank - 1);
  struct tensor m = lw_binary_number(l, SW_OP_MAXIMUM, lw_reduce(l, SW_OP_MAX, x, last, true), -65504);
  struct tensor e = lw_unary(l, SW_OP_EXP, lw_binary(l, SW_OP_SUB, x, m));
  struct tensor s = lw_binary_number(l, SW_OP_MAXIMUM, lw_reduce(l, SW_OP_SUM, e, last, true), 0.5);
  return lw_binary(l, SW_OP_DIV, e, s);
}

/* A tensor of that size which lies in memory as the queries do: often rows before heads, so that joining the heads is a
 * view. (What the graph says of its strides is asked for outputs alone: core ATen's last copy puts rows before the batch.) */
static struct tensor new_as_queries(struct lower *l, const struct attention *a, int rank, const int64_t *size)
{
  int64_t stride[SW_MAX_RANK];
  lw_dense_strides(rank, size, a->q.stride, stride);
  return lw_new(l, a->dtype, rank, size, a->q.rank == rank ? stride : NULL);
}

static struct tensor scaled_queries(struct lower *l, const struct attention *a)
{
  if (!l->best)
    return lw_binary_number(l, SW_OP_MUL, a->q, a->scale);
  if (a->scale == 1)
    return a->q;
  struct tensor in[] = {a->q, lw_expand(l, lw_scalar(l, a->scale, a->dtype), a->q.rank, a->q.size)};
  struct tensor out = new_as_queries(l, a, a->q.rank, a->q.size);
  lw_nest(l, SW_OP_MUL, SW_ROLE_PLAIN, out.rank, out.rank, out.size, out, 2, in);
  return out;
}

/* P times V, unless lying as the queries do takes more loops than the matrix unit has. */
static struct tensor product_with_values(struct lower *l, const struct attention *a, struct tensor p, struct tensor v, int64_t group)
{
  int64_t size[SW_MAX_RANK];
  int rank = p.rank;
  memcpy(size, p.size, sizeof size);
  size[rank - 1] = v.size[v.rank - 1];
  const struct sw_value *want = lw_value(l, 0);
  if (group > 1) {
    size[rank - 4] *= group;
    memmove(size + rank - 3, size + rank - 2, 2 * sizeof *size);
    rank--;
  }
  bool as_wanted = want && want->rank == rank && !memcmp(size, want->size, (size_t)rank * sizeof *size);
  bool leaves = l->values[l->values[lw_node(l)->results[0]].root].output;
  struct tensor out = l->best && !(leaves && as_wanted) ? new_as_queries(l, a, rank, size) : lw_new(l, p.dtype, rank, size, as_wanted ? want->stride : NULL);
  if (lw_matmul_loops(p, v, group > 1 ? split_heads(out, group) : out) > LW_MATMUL_LOOPS)
    out = lw_new(l, p.dtype, rank, size, NULL);
  lw_matmul_into(l, p, v, group > 1 ? split_heads(out, group) : out);
  return l->failed ? lw_unknown() : out;
}

/* Keys or values that don't fit into the loops of the matrix unit with their group dim are made contiguous. */
static struct tensor fit_group(struct lower *l, struct tensor x, struct tensor other)
{
  return lw_matmul_loops(other, x, lw_unknown()) > LW_MATMUL_LOOPS ? lw_clone(l, x) : x;
}

static struct tensor plain(struct lower *l, struct attention *a)
{
  int heads = a->q.rank - 3;
  int64_t group = heads >= 0 && a->k.size[heads] ? a->q.size[heads] / a->k.size[heads] : 1;
  struct tensor q = scaled_queries(l, a), k = a->k, v = a->v;
  if (group > 1) {
    q = split_heads(q, group);
    k = lw_unsqueeze(fit_group(l, k, q), heads + 1);
    v = lw_unsqueeze(fit_group(l, v, q), heads + 1);
  }
  struct tensor s = lw_matmul(l, q, lw_transpose(k, k.rank - 2, k.rank - 1));
  if (a->masked) {
    struct tensor m = a->mask;
    if (group > 1 && lw_known(m) && m.rank >= 3) {
      int h = m.rank - 3;
      m = m.size[h] == 1 ? lw_unsqueeze(m, h) : split_heads(m, group);
    }
    s = lw_binary(l, SW_OP_ADD, s, m);
  }
  if (!lw_known(s))
    return s;
  s = a->guard ? guarded_softmax(l, s) : lw_softmax(l, s, s.rank - 1);
  return product_with_values(l, a, s, v, group);
}

/* -- the reference's form -- */

static struct tensor repeat_heads(struct lower *l, struct tensor x, int64_t heads)
{
  int h = x.rank - 3;
  int64_t group = heads / x.size[h], wide[SW_MAX_RANK], flat[SW_MAX_RANK];
  if (group == 1)
    return x;
  memcpy(flat, x.size, sizeof flat);
  flat[h] = heads;
  struct tensor t = lw_unsqueeze(x, h + 1);
  memcpy(wide, t.size, sizeof wide);
  wide[h + 1] = group;
  return lw_reshape(l, lw_expand(l, t, t.rank, wide), x.rank, flat);
}

static struct tensor flash(struct lower *l, struct attention *a)
{
  int r = a->q.rank, last = r - 1;
  uint32_t row = 1u << last;
  double root = sqrt(a->scale);
  int64_t stick[SW_MAX_RANK]; /* the reference makes its row vectors from [.., rows, 64] */
  memcpy(stick, a->q.size, sizeof stick);
  stick[last] = 64;
  struct tensor output = lw_fill(l, 0, a->dtype, r, a->q.size, a->q_stride);
  struct tensor max = lw_reduce(l, SW_OP_MAX, lw_fill(l, -INFINITY, a->dtype, r, stick, NULL), row, false);
  struct tensor q = lw_binary_number(l, SW_OP_MUL, a->q, root);
  struct tensor k = lw_binary_number(l, SW_OP_MUL, repeat_heads(l, a->k, r > 2 ? a->q.size[r - 3] : 1), root);
  if (lw_known(k))
    lw_storage(l, k.storage)->settled = true; /* by its transpose */
  l->early = !a->masked && a->k.size[r - 2] > LW_LONG_REDUCTION;
  struct tensor s = lw_matmul(l, q, lw_transpose(k, r - 2, r - 1));
  l->early = a->k.size[r - 2] > LW_LONG_REDUCTION;
  if (a->masked)
    s = lw_binary(l, SW_OP_ADD, s, a->mask);
  l->early = false;
  struct tensor new_max = lw_binary(l, SW_OP_MAXIMUM, max, lw_reduce(l, SW_OP_MAX, s, row, false));
  struct tensor correction = lw_unary(l, SW_OP_EXP, lw_binary(l, SW_OP_SUB, max, new_max));
  struct tensor kept = lw_binary(l, SW_OP_MUL, output, lw_unsqueeze(correction, last));
  struct tensor p = lw_unary(l, SW_OP_EXP, lw_binary(l, SW_OP_SUB, s, lw_unsqueeze(new_max, last)));
  struct tensor v = repeat_heads(l, a->v, r > 2 ? a->q.size[r - 3] : 1);
  lw_write(l, output, lw_binary(l, SW_OP_ADD, kept, lw_matmul(l, p, v)));
  struct tensor sum = lw_reduce(l, SW_OP_MAX, lw_fill(l, 0, a->dtype, r, stick, NULL), row, false);
  struct tensor old = lw_binary(l, SW_OP_MUL, sum, correction);
  lw_write(l, sum, lw_binary(l, SW_OP_ADD, old, lw_reduce(l, SW_OP_SUM, p, row, false)));
  lw_write(l, output, lw_binary(l, SW_OP_DIV, output, lw_unsqueeze(sum, last)));
  return output;
}

/* -- the overloads -- */

/* As many keys as values, and as many heads of queries for each of them, or one head of queries for all. */
static bool heads_fit(const struct attention *a)
{
  int h = a->q.rank - 3;
  if (h < 0 || a->k.rank != a->q.rank || a->v.rank != a->q.rank)
    return true; /* the products say what does not fit */
  int64_t q = a->q.size[h], k = a->k.size[h];
  return k > 0 && k == a->v.size[h] && (q == 1 || q % k == 0);
}

struct tensor lw_attention(struct lower *l, int queries, struct tensor q, struct tensor k, struct tensor v,
                           const struct sw_arg *mask, bool causal, double scale)
{
  struct attention a = {.q = q, .k = k, .v = v, .mask = lw_unknown(), .scale = scale, .dtype = q.dtype,
                        .q_stride = l->graph->values.v[queries].stride};
  if (!lw_known(q) || !lw_known(k) || !lw_known(v))
    return lw_unknown();
  if (q.rank < 2 || k.rank < 2 || v.rank < 2)
    return lw_refuse(l, "export the model with shapes that PyTorch ran", "queries, keys and values of rank %d, %d and %d; each has rows and lanes",
                     q.rank, k.rank, v.rank);
  if (!heads_fit(&a)) {
    int h = q.rank - 3;
    return lw_refuse(l, "export the model with shapes that PyTorch ran", "%" PRId64 " heads of queries for %" PRId64 " of keys and %" PRId64
                     " of values", q.size[h], k.size[h], v.size[h]);
  }
  if (mask)
    a.mask = mask_of(l, mask, &a);
  else if (causal)
    a.mask = causal_mask(l, &a);
  if (a.masked && !lw_known(a.mask))
    return lw_unknown();
  bool same = q.rank == k.rank && q.rank == v.rank;
  return l->best || !same || a.closed_rows ? plain(l, &a) : flash(l, &a);
}

/* Keys or values; heads repeated for the queries' sake are read where they were, once (profile best). */
static struct tensor heads(struct lower *l, const char *name, enum sw_dtype t)
{
  const struct sw_arg *a = lw_arg(l, name);
  struct sw_arg small = *a;
  if (l->best && lw_is_tensor(l, a))
    small.value = lw_unrepeated(l, a->value);
  return lw_argument(l, &small, t);
}

void lw_op_sdpa(struct lower *l, int unused)
{
  (void)unused;
  for (int r = 1; r < lw_node(l)->n_results; r++)
    if (lw_wanted(l, r)) {
      lw_refuse(l, "use the first result only", "results beside the attention itself");
      return;
    }
  if (lw_given(l, "dropout_p") && lw_real(l, "dropout_p") != 0) {
    lw_refuse(l, "export the model in eval mode", "attention with dropout");
    return;
  }
  enum sw_dtype t = lw_result_dtype(l, 0);
  struct tensor q = lw_argument(l, lw_arg(l, "query"), t), k = heads(l, "key", t), v = heads(l, "value", t);
  const char *mask = lw_given(l, "attn_bias") ? "attn_bias" : "attn_mask";
  double scale = lw_given(l, "scale") ? lw_real(l, "scale") : lw_known(q) ? 1 / sqrt((double)q.size[q.rank - 1]) : 1;
  bool causal = lw_given(l, "is_causal") && lw_bool(l, "is_causal");
  const struct sw_value *want = lw_value(l, 0);
  struct tensor y = lw_attention(l, lw_arg(l, "query")->value, q, k, v, lw_given(l, mask) ? lw_arg(l, mask) : NULL, causal, scale);
  lw_set(l, 0, lw_known(y) ? lw_reshape(l, y, want->rank, want->size) : y);
}
