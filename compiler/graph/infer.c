/* What size a result must have, and for views which strides and offset: a check of what the file states, and the
 * strides of views in text graphs that state none. Only rules that are short and sure; an op without a rule, and a node
 * with dynamic sizes, passes unchecked. */
#include "compiler/graph/infer.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

bool sw_infer__wrong(struct sw_infer *c, const char *why)
{
  c->why = why;
  return false;
}

/* A tensor argument with static sizes; NULL otherwise. */
const struct sw_value *sw_infer__tensor(const struct sw_infer *c, const char *name)
{
  const struct sw_arg *a = sw_node_arg(c->n, name);
  const struct sw_value *v = a && a->kind == SW_ARG_VALUE ? &c->g->values.v[a->value] : NULL;
  return v && v->kind == SW_VALUE_TENSOR && !v->size_expr ? v : NULL;
}

const struct sw_value *sw_infer__self(const struct sw_infer *c)
{
  const struct sw_arg *a = c->n->n_args ? &c->n->args[0] : NULL;
  const struct sw_value *v = a && a->kind == SW_ARG_VALUE ? &c->g->values.v[a->value] : NULL;
  return v && v->kind == SW_VALUE_TENSOR && !v->size_expr ? v : NULL;
}

bool sw_infer__integer(const struct sw_infer *c, const char *name, int64_t *out)
{
  const struct sw_arg *a = sw_node_arg(c->n, name);
  *out = a ? a->i : 0;
  return a && (a->kind == SW_ARG_INT || a->kind == SW_ARG_BOOL);
}

/* A list of at most SW_MAX_RANK plain integers; its length, or -1. */
int sw_infer__integers(const struct sw_infer *c, const char *name, int64_t *out)
{
  const struct sw_arg *a = sw_node_arg(c->n, name);
  if (!a || a->kind != SW_ARG_LIST || a->list.n > SW_MAX_RANK)
    return -1;
  for (int i = 0; i < a->list.n; i++) {
    if (a->list.v[i].kind != SW_ARG_INT)
      return -1;
    out[i] = a->list.v[i].i;
  }
  return a->list.n;
}

/* Products and sums that stop at the largest number: strides of an input may be anything. */
int64_t sw_infer__times(int64_t a, int64_t b)
{
  int64_t r;
  return __builtin_mul_overflow(a, b, &r) ? INT64_MAX : r;
}

int64_t sw_infer__plus(int64_t a, int64_t b)
{
  int64_t r;
  return __builtin_add_overflow(a, b, &r) ? INT64_MAX : r;
}

/* Dim number with negative ones counted from the end, or -1. */
int sw_infer__dim_of(int64_t d, int rank)
{
  d += d < 0 ? rank : 0;
  return d >= 0 && d < rank ? (int)d : -1;
}

void sw_infer__copy_shape(struct sw_shape *s, const struct sw_value *v)
{
  s->rank = v->rank;
  s->offset = v->offset;
  for (int d = 0; d < v->rank; d++) {
    s->size[d] = v->size[d];
    s->stride[d] = v->stride[d];
  }
}

void sw_infer__drop_dim(struct sw_shape *s, int d)
{
  s->rank--;
  for (; d < s->rank; d++) {
    s->size[d] = s->size[d + 1];
    s->stride[d] = s->stride[d + 1];
  }
}

/* -- results of their own -- */

static bool same(struct sw_infer *c)
{
  sw_infer__copy_shape(c->out, sw_infer__self(c));
  return true;
}

/* Adds a tensor to a broadcast: dims are aligned at the right, 1 stretches. */
static bool broadcast_with(struct sw_infer *c, const int64_t *size, int rank)
{
  struct sw_shape *s = c->out;
  if (rank > s->rank) {
    for (int d = rank - 1; d >= 0; d--)
      s->size[d] = d >= rank - s->rank ? s->size[d - (rank - s->rank)] : 1;
    s->rank = rank;
  }
  for (int d = 0; d < rank; d++) {
    int64_t *have = &s->size[s->rank - rank + d];
    if (*have == 1)
      *have = size[d];
    else if (size[d] != 1 && size[d] != *have)
      return sw_infer__wrong(c, "sizes do not broadcast");
  }
  return true;
}

static bool broadcast(struct sw_infer *c)
{
  c->out->rank = 0;
  for (int i = 0; i < c->n->n_args; i++) {
    if (c->n->args[i].kind != SW_ARG_VALUE)
      continue;
    const struct sw_value *v = &c->g->values.v[c->n->args[i].value];
    if (v->size_expr)
      return SW_INFER_UNKNOWN;
    if (v->kind == SW_VALUE_TENSOR && !broadcast_with(c, v->size, v->rank))
      return false;
  }
  return true;
}

/* [.., m, k] x [.., k, n]; a tensor of one dim is a row on the left and a column on the right. */
static bool product(struct sw_infer *c, const struct sw_value *a, const struct sw_value *b)
{
  if (!a || !b)
    return SW_INFER_UNKNOWN;
  if (!a->rank || !b->rank)
    return sw_infer__wrong(c, "an operand has no dims");
  int64_t k = a->size[a->rank - 1], other = b->size[b->rank > 1 ? b->rank - 2 : 0];
  if (k != other)
    return sw_infer__wrong(c, "inner sizes differ");
  struct sw_shape *s = c->out;
  s->rank = 0;
  int batch_a = a->rank > 2 ? a->rank - 2 : 0, batch_b = b->rank > 2 ? b->rank - 2 : 0;
  if (!broadcast_with(c, a->size, batch_a) || !broadcast_with(c, b->size, batch_b))
    return false;
  if (a->rank > 1)
    s->size[s->rank++] = a->size[a->rank - 2];
  if (b->rank > 1)
    s->size[s->rank++] = b->size[b->rank - 1];
  return true;
}

static bool matmul(struct sw_infer *c)
{
  return product(c, sw_infer__self(c), sw_infer__tensor(c, "other"));
}

static bool mm(struct sw_infer *c)
{
  const struct sw_value *a = sw_infer__self(c), *b = sw_infer__tensor(c, "mat2");
  int rank = strstr(c->n->target, ".bmm.") ? 3 : 2;
  if (a && b && (a->rank != rank || b->rank != rank))
    return sw_infer__wrong(c, rank == 3 ? "bmm takes 3 dims" : "mm takes 2 dims");
  if (a && b && rank == 3 && a->size[0] != b->size[0])
    return sw_infer__wrong(c, "batch sizes differ");
  return product(c, a, b);
}

static bool addmm(struct sw_infer *c)
{
  const struct sw_value *a = sw_infer__tensor(c, "mat1"), *b = sw_infer__tensor(c, "mat2");
  if (a && b && (a->rank != 2 || b->rank != 2))
    return sw_infer__wrong(c, "addmm takes 2 dims");
  return product(c, a, b);
}

static bool linear(struct sw_infer *c)
{
  const struct sw_value *a = sw_infer__self(c), *w = sw_infer__tensor(c, "weight");
  if (!w)
    return SW_INFER_UNKNOWN;
  if (w->rank != 2)
    return sw_infer__wrong(c, "linear takes a weight of 2 dims");
  if (!a->rank || a->size[a->rank - 1] != w->size[1])
    return sw_infer__wrong(c, "inner sizes differ");
  sw_infer__copy_shape(c->out, a);
  c->out->size[a->rank - 1] = w->size[0];
  return true;
}

/* sum, amax, max.dim, ..: dims by list, number or None (all), kept as 1 or dropped. */
static bool reduce(struct sw_infer *c)
{
  const struct sw_value *v = sw_infer__self(c);
  if (sw_node_arg(c->n, "other")) /* max.other is maximum */
    return broadcast(c);
  const struct sw_arg *a = sw_node_arg(c->n, "dim");
  int64_t dims[SW_MAX_RANK], keep = 0;
  int n = sw_infer__integers(c, "dim", dims);
  if (n < 0 && sw_infer__integer(c, "dim", &dims[0]))
    n = 1;
  if (n < 0 && a && a->kind != SW_ARG_NONE)
    return SW_INFER_UNKNOWN;
  if (sw_node_arg(c->n, "keepdim") && !sw_infer__integer(c, "keepdim", &keep))
    return SW_INFER_UNKNOWN;
  bool gone[SW_MAX_RANK] = {false};
  for (int i = 0; i < n; i++) {
    int d = sw_infer__dim_of(dims[i], v->rank);
    if (d < 0 && v->rank)
      return sw_infer__wrong(c, "dim is out of range");
    if (d >= 0)
      gone[d] = true;
  }
  sw_infer__copy_shape(c->out, v);
  for (int d = v->rank - 1; d >= 0; d--) {
    if (n > 0 && !gone[d])
      continue;
    if (keep)
      c->out->size[d] = 1;
    else
      sw_infer__drop_dim(c->out, d);
  }
  return true;
}

static bool cat(struct sw_infer *c)
{
  const struct sw_arg *list = &c->n->args[0];
  int64_t dim;
  if (list->kind != SW_ARG_LIST || !list->list.n || !sw_infer__integer(c, "dim", &dim))
    return SW_INFER_UNKNOWN;
  int d = -1;
  for (int i = 0; i < list->list.n; i++) {
    if (list->list.v[i].kind != SW_ARG_VALUE)
      return SW_INFER_UNKNOWN;
    const struct sw_value *v = &c->g->values.v[list->list.v[i].value];
    bool is_skipped = v->rank == 1 && v->size[0] == 0; /* PyTorch's old empty tensor fits everywhere */
    if (v->kind != SW_VALUE_TENSOR || v->size_expr || is_skipped)
      return SW_INFER_UNKNOWN;
    if (!i) {
      sw_infer__copy_shape(c->out, v);
      d = sw_infer__dim_of(dim, v->rank);
      if (d < 0)
        return sw_infer__wrong(c, "dim is out of range");
      continue;
    }
    if (v->rank != c->out->rank)
      return sw_infer__wrong(c, "numbers of dims differ");
    for (int k = 0; k < v->rank; k++)
      if (k != d && v->size[k] != c->out->size[k])
        return sw_infer__wrong(c, "sizes differ outside dim");
    if (__builtin_add_overflow(c->out->size[d], v->size[d], &c->out->size[d]))
      return sw_infer__wrong(c, "sizes are too large");
  }
  return true;
}

static bool embedding(struct sw_infer *c)
{
  const struct sw_value *w = sw_infer__self(c), *i = sw_infer__tensor(c, "indices");
  if (w->rank != 2)
    return sw_infer__wrong(c, "embedding takes a weight of 2 dims");
  if (!i || i->rank == SW_MAX_RANK)
    return SW_INFER_UNKNOWN;
  sw_infer__copy_shape(c->out, i);
  c->out->size[c->out->rank++] = w->size[1];
  return true;
}

static bool filled(struct sw_infer *c)
{
  c->out->rank = sw_infer__integers(c, "size", c->out->size);
  return c->out->rank >= 0;
}

/* -- the table -- */

static const struct sw_infer_rule rules[] = {
    {same, false, SW_INFER_LIKE_SELF, true,
     " abs ceil celu clone contiguous dropout elu flip floor gelu hardsigmoid hardswish hardtanh "
     "leaky_relu mish neg relu relu6 round selu sign silu softplus square tril triu trunc lift_fresh_copy roll copy "
     "layer_norm rms_norm group_norm batch_norm instance_norm index_put index_copy index_add scatter scatter_add "
     "masked_scatter zero fill "},
    {same, false, SW_INFER_ANY, true,
     " acos asin atan cos cosh cumprod cumsum exp exp2 expm1 log log10 log1p log2 log_sigmoid logcumsumexp reciprocal "
     "rsqrt sigmoid sin sinh sqrt tan tanh erf softmax _softmax log_softmax _log_softmax zeros_like ones_like "
     "full_like empty_like bitwise_not type_as argsort "},
    {same, false, SW_INFER_BOOLEAN, true, " isinf isnan logical_not "},
    {same, false, SW_INFER_GIVEN, true, " to _to_copy convert_element_type "},
    {broadcast, false, SW_INFER_ANY, false,
     " add sub mul div rsub where maximum minimum pow atan2 hypot fmod remainder floor_divide bitwise_and bitwise_or "
     "bitwise_xor __and__ __or__ __xor__ clamp clamp_min clamp_max lerp addcmul masked_fill "},
    {broadcast, false, SW_INFER_BOOLEAN, false, " eq ne lt le gt ge logical_and logical_or logical_xor "},
    {matmul, false, SW_INFER_LIKE_SELF, true, " matmul "},
    {mm, false, SW_INFER_LIKE_SELF, true, " mm bmm "},
    {addmm, false, SW_INFER_LIKE_SELF, true, " addmm "},
    {linear, false, SW_INFER_LIKE_SELF, true, " linear "},
    {reduce, false, SW_INFER_LIKE_SELF, true, " amax amin "},
    {reduce, false, SW_INFER_ANY, true, " sum mean prod any all argmax argmin logsumexp var std max min median mode "},
    {cat, false, SW_INFER_ANY, false, " cat "},
    {embedding, false, SW_INFER_LIKE_SELF, true, " embedding "},
    {sw_infer__slice_scatter, false, SW_INFER_LIKE_SELF, true, " slice_scatter "},
    {sw_infer__select_scatter, false, SW_INFER_LIKE_SELF, true, " select_scatter "},
    {sw_infer__convolution, false, SW_INFER_LIKE_SELF, true,
     " convolution conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d "},
    {sw_infer__pool, false, SW_INFER_LIKE_SELF, true,
     " max_pool1d max_pool2d max_pool3d avg_pool1d avg_pool2d avg_pool3d max_pool2d_with_indices max_pool3d_with_indices "},
    {filled, false, SW_INFER_ANY, false, " full zeros ones new_full new_zeros new_ones "},
};

static const struct sw_infer_rule *rule_of(const struct sw_node *n)
{
  if (!n->schema || !n->n_results || n->results[0] < 0)
    return NULL;
  const char *op = strchr(n->target, '.') + 1;
  size_t len = strcspn(op, ".");
  char padded[64];
  if (len > 60)
    return NULL;
  bool in_place = op[len - 1] == '_' && op[0] != '_';
  len -= in_place;
  padded[0] = ' ';
  memcpy(padded + 1, op, len);
  memcpy(padded + 1 + len, " ", 2);
  for (int i = 0; i < sw_infer__n_views; i++)
    if (strstr(sw_infer__views[i].ops, padded))
      return &sw_infer__views[i];
  for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
    if (strstr(rules[i].ops, padded))
      return &rules[i];
  return NULL;
}

static bool apply(const struct sw_infer_rule *rule, struct sw_infer *c)
{
  if (rule->needs_self && !sw_infer__self(c))
    return false;
  c->is_view = rule->is_view;
  return rule->infer(c);
}

bool sw_graph__infer_view(const struct sw_graph *g, const struct sw_node *n, struct sw_shape *out)
{
  const struct sw_infer_rule *rule = rule_of(n);
  struct sw_infer c = {.g = g, .n = n, .out = out};
  if (!sw_infer__self(&c) || !sw_graph__is_sane(sw_infer__self(&c)))
    return false;
  if (rule && n->n_results == 1 && rule->is_view && apply(rule, &c) && c.is_view)
    return true;
  /* an in-place op gives its own argument back */
  if (n->schema && n->n_results == 1 && n->schema->n_returns == 1 && strstr(n->schema->returns[0], "!")) {
    sw_infer__copy_shape(out, sw_infer__self(&c));
    return true;
  }
  return false;
}

static void describe(struct sw_buf *b, int rank, const int64_t *size)
{
  sw_buf_puts(b, "[");
  for (int d = 0; d < rank; d++)
    sw_buf_printf(b, "%s%" PRId64, d ? "," : "", size[d]);
  sw_buf_puts(b, "]");
}

static void check_dtype(struct sw_job *job, const struct sw_infer_rule *rule, const struct sw_infer *c,
                        const struct sw_value *v)
{
  enum sw_dtype want = SW_N_DTYPES;
  if (rule->dtype == SW_INFER_LIKE_SELF)
    want = sw_infer__self(c) ? sw_infer__self(c)->dtype : SW_N_DTYPES;
  else if (rule->dtype == SW_INFER_BOOLEAN)
    want = SW_BOOL;
  else if (rule->dtype == SW_INFER_GIVEN) {
    const struct sw_arg *a = sw_node_arg(c->n, "dtype");
    want = a && a->kind == SW_ARG_DTYPE ? a->dtype : SW_N_DTYPES;
  }
  if (want != SW_N_DTYPES && sw_dtype_is_complex(want) && !strcmp(c->n->target, "aten.abs.default"))
    want = want == SW_C128 ? SW_F64 : want == SW_C64 ? SW_F32 : SW_F16;
  bool in_place = c->n->schema->n_returns == 1 && strstr(c->n->schema->returns[0], "!");
  if (want == SW_N_DTYPES || want == v->dtype || in_place) /* logical_not_ of floats writes 0. and 1. */
    return;
  struct sw_fault *f = sw_fault(job, SW_INVALID, "%s gives %s, but %s is declared %s", c->n->target,
                                sw_dtype_text(want), v->name, sw_dtype_text(v->dtype));
  f->node = c->n->name;
  f->tensor = v->name;
  f->source = c->n->source;
}

/* -- numbers of dims -- */

/* Arguments that number dims of the first tensor. */
static const char *const dim_args[] = {"dim", "dims", "dim0", "dim1", "dim2", "axis", "axis0", "axis1", "dimension", "start_dim", "end_dim",
                                       "source", "destination"};
/* Packets whose result has one dim more, which the number counts, too; and those whose arguments of that name are none. */
static const char one_more[] = " unsqueeze unsqueeze_copy stack diag_embed ";
static const char none[] = " tile cosine_similarity ";

static bool is_one_of(const char *packets, const struct sw_node *n)
{
  const char *op = strchr(n->target, '.') + 1;
  char padded[64];
  snprintf(padded, sizeof padded, " %.*s ", (int)strcspn(op, "."), op);
  return strstr(packets, padded);
}

/* Dims of the first tensor, or of the largest of a list; -1: there is none. */
static int first_rank(const struct sw_graph *g, const struct sw_node *n)
{
  const struct sw_arg *a = n->n_args ? &n->args[0] : NULL, *all = a && a->kind == SW_ARG_LIST ? a->list.v : a;
  int rank = -1;
  for (int i = 0, count = !a ? 0 : a->kind == SW_ARG_LIST ? a->list.n : 1; i < count; i++)
    if (all[i].kind == SW_ARG_VALUE && g->values.v[all[i].value].kind == SW_VALUE_TENSOR && g->values.v[all[i].value].rank > rank)
      rank = g->values.v[all[i].value].rank;
  return rank;
}

/* A number of no dim is a fault; true: one was. [2,3] has dims -2 to 1, a scalar -1 and 0. */
static bool has_no_such_dim(struct sw_job *job, const struct sw_graph *g, const struct sw_node *n)
{
  int rank = n->schema && !is_one_of(none, n) && !strstr(n->target, "backward") ? first_rank(g, n) : -1;
  if (rank < 0)
    return false;
  int dims = is_one_of(one_more, n) ? rank + 1 : rank ? rank : 1;
  for (size_t i = 0; i < sizeof dim_args / sizeof *dim_args; i++) {
    const struct sw_arg *a = sw_node_arg(n, dim_args[i]), *all = a && a->kind == SW_ARG_LIST ? a->list.v : a;
    for (int k = 0, count = !a ? 0 : a->kind == SW_ARG_LIST ? a->list.n : 1; k < count; k++) {
      if (all[k].kind != SW_ARG_INT || (all[k].i >= -dims && all[k].i < dims))
        continue;
      struct sw_fault *f = sw_fault(job, SW_INVALID, "%s: %s %" PRId64 " is out of range: -%d to %d", n->target, dim_args[i], all[k].i, dims,
                                    dims - 1);
      f->node = n->name;
      f->source = n->source;
      return true;
    }
  }
  return false;
}

static void check_node(struct sw_job *job, const struct sw_graph *g, const struct sw_node *n)
{
  const struct sw_infer_rule *rule = rule_of(n);
  const struct sw_value *v = rule ? &g->values.v[n->results[0]] : NULL;
  if (!v || v->kind != SW_VALUE_TENSOR || v->size_expr)
    return;
  struct sw_shape s = {0};
  struct sw_infer c = {.g = g, .n = n, .out = &s};
  struct sw_fault *f = NULL;
  if (apply(rule, &c)) {
    bool equal = s.rank == v->rank;
    for (int d = 0; equal && d < s.rank; d++)
      equal = s.size[d] == v->size[d];
    if (equal) {
      check_dtype(job, rule, &c, v);
      return;
    }
    struct sw_arena *scratch = sw_arena_new(job->arena, 0);
    struct sw_buf want = {.arena = scratch}, have = {.arena = scratch};
    describe(&want, s.rank, s.size);
    describe(&have, v->rank, v->size);
    f = sw_fault(job, SW_INVALID, "%s gives size %s, but %s is declared %s", n->target,
                 sw_buf_text(&want), v->name, sw_buf_text(&have));
    sw_arena_free(scratch);
  } else if (c.why) {
    f = sw_fault(job, SW_INVALID, "%s: %s", n->target, c.why);
  }
  if (!f)
    return;
  f->node = n->name;
  f->tensor = v->name;
  f->source = n->source;
}

void sw_graph__check_shapes(struct sw_job *job, const struct sw_graph *g)
{
  for (int i = 0; i < g->nodes.n; i++) {
    const struct sw_node *n = &g->nodes.v[i];
    if (!has_no_such_dim(job, g, n))
      check_node(job, g, n);
    for (int k = 0; k < n->n_args; k++)
      if (n->args[k].kind == SW_ARG_GRAPH)
        sw_graph__check_shapes(job, n->args[k].graph);
  }
}
