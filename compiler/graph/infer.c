/* What size a result must have, and for views which strides and offset: a check of what the file states, and the
 * strides of views in text graphs that state none. Only rules that are short and sure; an op without a rule, and a node
 * with dynamic sizes, passes unchecked. */
#include "compiler/graph/infer.h"

#include <inttypes.h>
#include <string.h>

struct call {
  const struct sw_graph *g;
  const struct sw_node *n;
  struct sw_shape *out;
  const char *why; /* set when the arguments do not fit together */
  bool is_view;
};

/* The rule's answer when it can't say: dynamic or odd arguments. */
#define UNKNOWN false

static bool wrong(struct call *c, const char *why)
{
  c->why = why;
  return false;
}

/* A tensor argument with static sizes; NULL otherwise. */
static const struct sw_value *tensor(const struct call *c, const char *name)
{
  const struct sw_arg *a = sw_node_arg(c->n, name);
  const struct sw_value *v = a && a->kind == SW_ARG_VALUE ? &c->g->values.v[a->value] : NULL;
  return v && v->kind == SW_VALUE_TENSOR && !v->size_expr ? v : NULL;
}

static const struct sw_value *self(const struct call *c)
{
  const struct sw_arg *a = c->n->n_args ? &c->n->args[0] : NULL;
  const struct sw_value *v = a && a->kind == SW_ARG_VALUE ? &c->g->values.v[a->value] : NULL;
  return v && v->kind == SW_VALUE_TENSOR && !v->size_expr ? v : NULL;
}

static bool integer(const struct call *c, const char *name, int64_t *out)
{
  const struct sw_arg *a = sw_node_arg(c->n, name);
  *out = a ? a->i : 0;
  return a && (a->kind == SW_ARG_INT || a->kind == SW_ARG_BOOL);
}

/* A list of at most SW_MAX_RANK plain integers; its length, or -1. */
static int integers(const struct call *c, const char *name, int64_t *out)
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
static int64_t times(int64_t a, int64_t b)
{
  int64_t r;
  return __builtin_mul_overflow(a, b, &r) ? INT64_MAX : r;
}

static int64_t plus(int64_t a, int64_t b)
{
  int64_t r;
  return __builtin_add_overflow(a, b, &r) ? INT64_MAX : r;
}

/* Dim number with negative ones counted from the end, or -1. */
static int dim_of(int64_t d, int rank)
{
  d += d < 0 ? rank : 0;
  return d >= 0 && d < rank ? (int)d : -1;
}

static void copy_shape(struct sw_shape *s, const struct sw_value *v)
{
  s->rank = v->rank;
  s->offset = v->offset;
  for (int d = 0; d < v->rank; d++) {
    s->size[d] = v->size[d];
    s->stride[d] = v->stride[d];
  }
}

static void drop_dim(struct sw_shape *s, int d)
{
  s->rank--;
  for (; d < s->rank; d++) {
    s->size[d] = s->size[d + 1];
    s->stride[d] = s->stride[d + 1];
  }
}

/* -- views -- */

static bool same_view(struct call *c)
{
  copy_shape(c->out, self(c));
  return true;
}

static bool permute(struct call *c)
{
  const struct sw_value *v = self(c);
  int64_t dims[SW_MAX_RANK];
  bool seen[SW_MAX_RANK] = {false};
  if (integers(c, "dims", dims) != v->rank)
    return wrong(c, "dims is no permutation of all dims");
  copy_shape(c->out, v);
  for (int i = 0; i < v->rank; i++) {
    int d = dim_of(dims[i], v->rank);
    if (d < 0 || seen[d])
      return wrong(c, "dims is no permutation of all dims");
    seen[d] = true;
    c->out->size[i] = v->size[d];
    c->out->stride[i] = v->stride[d];
  }
  return true;
}

static bool swap(struct call *c, int64_t a, int64_t b)
{
  const struct sw_value *v = self(c);
  copy_shape(c->out, v);
  int x = dim_of(a, v->rank), y = dim_of(b, v->rank);
  if (x < 0 || y < 0)
    return v->rank ? wrong(c, "a dim is out of range") : true;
  c->out->size[x] = v->size[y];
  c->out->stride[x] = v->stride[y];
  c->out->size[y] = v->size[x];
  c->out->stride[y] = v->stride[x];
  return true;
}

static bool transpose(struct call *c)
{
  int64_t a, b;
  return integer(c, "dim0", &a) && integer(c, "dim1", &b) ? swap(c, a, b) : UNKNOWN;
}

static bool transpose_two(struct call *c)
{
  const struct sw_value *v = self(c);
  if (v->rank > 2)
    return wrong(c, "t takes at most 2 dims");
  return v->rank == 2 ? swap(c, 0, 1) : same_view(c);
}

static bool unsqueeze(struct call *c)
{
  const struct sw_value *v = self(c);
  int64_t at;
  if (!integer(c, "dim", &at) || v->rank == SW_MAX_RANK)
    return UNKNOWN;
  int d = dim_of(at, v->rank + 1);
  if (d < 0)
    return wrong(c, "dim is out of range");
  struct sw_shape *s = c->out;
  copy_shape(s, v);
  for (int i = s->rank++; i > d; i--) {
    s->size[i] = s->size[i - 1];
    s->stride[i] = s->stride[i - 1];
  }
  s->size[d] = 1;
  s->stride[d] = d < v->rank ? times(v->size[d], v->stride[d]) : 1;
  return true;
}

static bool squeeze(struct call *c)
{
  const struct sw_value *v = self(c);
  int64_t dims[SW_MAX_RANK];
  bool drop[SW_MAX_RANK] = {false};
  int n = integers(c, "dim", dims);
  if (n < 0)
    n = integer(c, "dim", &dims[0]) ? 1 : -1;
  bool all = n < 0 && !sw_node_arg(c->n, "dim");
  if (n < 0 && !all)
    return UNKNOWN;
  for (int i = 0; i < n; i++) {
    int d = dim_of(dims[i], v->rank);
    if (d < 0 && v->rank)
      return wrong(c, "dim is out of range");
    if (d >= 0)
      drop[d] = true;
  }
  copy_shape(c->out, v);
  for (int d = v->rank - 1; d >= 0; d--)
    if (v->size[d] == 1 && (all || drop[d]))
      drop_dim(c->out, d);
  return true;
}

static bool expand(struct call *c)
{
  const struct sw_value *v = self(c);
  int64_t want[SW_MAX_RANK];
  int n = integers(c, "size", want);
  if (n < 0)
    return UNKNOWN;
  if (n < v->rank)
    return wrong(c, "fewer sizes than dims");
  struct sw_shape *s = c->out;
  s->rank = n;
  s->offset = v->offset;
  for (int i = n - 1; i >= 0; i--) {
    int d = i - (n - v->rank);
    s->size[i] = d >= 0 ? v->size[d] : 1;
    s->stride[i] = d >= 0 ? v->stride[d] : i + 1 < n ? times(s->size[i + 1], s->stride[i + 1]) : 1;
    if (want[i] == -1 ? d < 0 : want[i] != s->size[i] && s->size[i] != 1)
      return wrong(c, "a dim that is not 1 can't be expanded");
    if (want[i] != -1 && want[i] != s->size[i]) {
      s->size[i] = want[i];
      s->stride[i] = 0;
    }
  }
  return true;
}

static bool select_one(struct call *c)
{
  const struct sw_value *v = self(c);
  int64_t dim, index;
  if (!integer(c, "dim", &dim) || !integer(c, "index", &index))
    return UNKNOWN;
  int d = dim_of(dim, v->rank);
  if (d < 0)
    return wrong(c, "dim is out of range");
  if (index < -v->size[d] || index >= v->size[d])
    return wrong(c, "index is out of range");
  copy_shape(c->out, v);
  c->out->offset += (index < 0 ? index + v->size[d] : index) * v->stride[d];
  drop_dim(c->out, d);
  return true;
}

static int64_t clamp(int64_t i, int64_t least, int64_t size)
{
  i += i < 0 ? size : 0;
  return i < least ? least : i > size ? size : i;
}

static bool cut(struct call *c, int64_t dim, int64_t start, int64_t end, int64_t step)
{
  const struct sw_value *v = self(c);
  int d = dim_of(dim, v->rank);
  if (d < 0)
    return wrong(c, "dim is out of range");
  if (step < 1)
    return wrong(c, "step is not positive");
  start = clamp(start, 0, v->size[d]);
  end = clamp(end, start, v->size[d]);
  copy_shape(c->out, v);
  c->out->offset = plus(v->offset, times(start, v->stride[d]));
  c->out->size[d] = (end - start) / step + ((end - start) % step != 0);
  c->out->stride[d] = times(v->stride[d], step);
  return true;
}

static bool slice(struct call *c)
{
  const struct sw_arg *a = sw_node_arg(c->n, "start"), *b = sw_node_arg(c->n, "end");
  int64_t dim, step, start = 0, end = INT64_MAX;
  if (!integer(c, "dim", &dim) || !integer(c, "step", &step) || (a->kind != SW_ARG_NONE && !integer(c, "start", &start)) ||
      (b->kind != SW_ARG_NONE && !integer(c, "end", &end)))
    return UNKNOWN;
  return cut(c, dim, start, end, step);
}

static bool narrow(struct call *c)
{
  int64_t dim, start, length, end;
  if (!integer(c, "dim", &dim) || !integer(c, "start", &start) || !integer(c, "length", &length))
    return UNKNOWN;
  int d = dim_of(dim, self(c)->rank);
  start += start < 0 && d >= 0 ? self(c)->size[d] : 0;
  end = plus(start, length);
  return cut(c, dim, start, end, 1);
}

/* Strides of a view with other sizes over the same elements, as in PyTorch: runs of old dims that are contiguous with
 * each other are cut anew. False when a new dim would need elements of two runs: then reshape copies. */
static bool view_strides(const struct sw_value *v, struct sw_shape *s)
{
  int64_t base = v->rank ? v->stride[v->rank - 1] : 1, old = 1, new = 1;
  int k = s->rank - 1;
  for (int d = v->rank - 1; d >= 0; d--) {
    old *= v->size[d];
    if (d && (v->size[d - 1] == 1 || v->stride[d - 1] == times(old, base)))
      continue;
    for (; k >= 0 && (new < old || s->size[k] == 1); k--) {
      s->stride[k] = times(new, base);
      new = times(new, s->size[k]);
    }
    if (new != old)
      return false;
    if (d) {
      base = v->stride[d - 1];
      old = new = 1;
    }
  }
  for (; k >= 0; k--)
    s->stride[k] = times(new, base);
  return true;
}

static bool reshaped(struct call *c, struct sw_shape *s)
{
  const struct sw_value *v = self(c);
  int64_t elements = sw_value_elements(v), known = 1;
  int hole = -1;
  for (int i = 0; i < s->rank; i++) {
    if (s->size[i] == -1 && hole < 0)
      hole = i;
    else if (s->size[i] < 0 || __builtin_mul_overflow(known, s->size[i], &known))
      return wrong(c, "sizes are not possible");
  }
  if (hole >= 0 && (!known || elements % known))
    return wrong(c, "the size that is -1 can't be found");
  if (hole >= 0) {
    s->size[hole] = elements / known;
    known = elements;
  }
  if (known != elements)
    return wrong(c, "the number of elements changes");
  s->offset = v->offset;
  if (!elements || !view_strides(v, s)) {
    c->is_view = false;
    s->offset = 0;
  }
  return true;
}

static bool view(struct call *c)
{
  int n = integers(c, "size", c->out->size);
  if (n < 0)
    n = integers(c, "shape", c->out->size);
  c->out->rank = n;
  return n >= 0 ? reshaped(c, c->out) : UNKNOWN;
}

static bool flatten(struct call *c)
{
  const struct sw_value *v = self(c);
  int64_t first, last;
  if (!v->rank || !integer(c, "start_dim", &first) || !integer(c, "end_dim", &last))
    return UNKNOWN;
  int from = dim_of(first, v->rank), to = dim_of(last, v->rank);
  if (from < 0 || to < from)
    return wrong(c, "start_dim or end_dim is out of range");
  copy_shape(c->out, v);
  for (int d = to; d > from; d--) {
    c->out->size[d - 1] *= c->out->size[d];
    drop_dim(c->out, d);
  }
  return reshaped(c, c->out);
}

/* -- results of their own -- */

static bool same(struct call *c)
{
  copy_shape(c->out, self(c));
  return true;
}

/* Adds a tensor to a broadcast: dims are aligned at the right, 1 stretches. */
static bool broadcast_with(struct call *c, const int64_t *size, int rank)
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
      return wrong(c, "sizes do not broadcast");
  }
  return true;
}

static bool broadcast(struct call *c)
{
  c->out->rank = 0;
  for (int i = 0; i < c->n->n_args; i++) {
    if (c->n->args[i].kind != SW_ARG_VALUE)
      continue;
    const struct sw_value *v = &c->g->values.v[c->n->args[i].value];
    if (v->size_expr)
      return UNKNOWN;
    if (v->kind == SW_VALUE_TENSOR && !broadcast_with(c, v->size, v->rank))
      return false;
  }
  return true;
}

/* [.., m, k] x [.., k, n]; a tensor of one dim is a row on the left and a column on the right. */
static bool product(struct call *c, const struct sw_value *a, const struct sw_value *b)
{
  if (!a || !b)
    return UNKNOWN;
  if (!a->rank || !b->rank)
    return wrong(c, "an operand has no dims");
  int64_t k = a->size[a->rank - 1], other = b->size[b->rank > 1 ? b->rank - 2 : 0];
  if (k != other)
    return wrong(c, "inner sizes differ");
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

static bool matmul(struct call *c)
{
  return product(c, self(c), tensor(c, "other"));
}

static bool mm(struct call *c)
{
  const struct sw_value *a = self(c), *b = tensor(c, "mat2");
  int rank = strstr(c->n->target, ".bmm.") ? 3 : 2;
  if (a && b && (a->rank != rank || b->rank != rank))
    return wrong(c, rank == 3 ? "bmm takes 3 dims" : "mm takes 2 dims");
  if (a && b && rank == 3 && a->size[0] != b->size[0])
    return wrong(c, "batch sizes differ");
  return product(c, a, b);
}

static bool addmm(struct call *c)
{
  const struct sw_value *a = tensor(c, "mat1"), *b = tensor(c, "mat2");
  if (a && b && (a->rank != 2 || b->rank != 2))
    return wrong(c, "addmm takes 2 dims");
  return product(c, a, b);
}

static bool linear(struct call *c)
{
  const struct sw_value *a = self(c), *w = tensor(c, "weight");
  if (!w || w->rank != 2)
    return UNKNOWN;
  if (!a->rank || a->size[a->rank - 1] != w->size[1])
    return wrong(c, "inner sizes differ");
  copy_shape(c->out, a);
  c->out->size[a->rank - 1] = w->size[0];
  return true;
}

/* sum, amax, max.dim, ..: dims by list, number or None (all), kept as 1 or dropped. */
static bool reduce(struct call *c)
{
  const struct sw_value *v = self(c);
  const struct sw_arg *a = sw_node_arg(c->n, "dim");
  int64_t dims[SW_MAX_RANK], keep = 0;
  int n = integers(c, "dim", dims);
  if (n < 0 && integer(c, "dim", &dims[0]))
    n = 1;
  if (n < 0 && a && a->kind != SW_ARG_NONE)
    return UNKNOWN;
  if (sw_node_arg(c->n, "keepdim") && !integer(c, "keepdim", &keep))
    return UNKNOWN;
  bool gone[SW_MAX_RANK] = {false};
  for (int i = 0; i < n; i++) {
    int d = dim_of(dims[i], v->rank);
    if (d < 0 && v->rank)
      return wrong(c, "dim is out of range");
    if (d >= 0)
      gone[d] = true;
  }
  copy_shape(c->out, v);
  for (int d = v->rank - 1; d >= 0; d--) {
    if (n > 0 && !gone[d])
      continue;
    if (keep)
      c->out->size[d] = 1;
    else
      drop_dim(c->out, d);
  }
  return true;
}

static bool cat(struct call *c)
{
  const struct sw_arg *list = &c->n->args[0];
  int64_t dim;
  if (list->kind != SW_ARG_LIST || !list->list.n || !integer(c, "dim", &dim))
    return UNKNOWN;
  int d = -1;
  for (int i = 0; i < list->list.n; i++) {
    const struct sw_value *v = &c->g->values.v[list->list.v[i].value];
    if (v->size_expr || (v->rank == 1 && v->size[0] == 0)) /* an empty list of numbers is skipped by PyTorch */
      return UNKNOWN;
    if (!i) {
      copy_shape(c->out, v);
      d = dim_of(dim, v->rank);
      if (d < 0)
        return wrong(c, "dim is out of range");
      continue;
    }
    if (v->rank != c->out->rank)
      return wrong(c, "numbers of dims differ");
    for (int k = 0; k < v->rank; k++)
      if (k != d && v->size[k] != c->out->size[k])
        return wrong(c, "sizes differ outside dim");
    if (__builtin_add_overflow(c->out->size[d], v->size[d], &c->out->size[d]))
      return wrong(c, "sizes are too large");
  }
  return true;
}

static bool embedding(struct call *c)
{
  const struct sw_value *w = self(c), *i = tensor(c, "indices");
  if (!i || w->rank != 2 || i->rank == SW_MAX_RANK)
    return UNKNOWN;
  copy_shape(c->out, i);
  c->out->size[c->out->rank++] = w->size[1];
  return true;
}

static bool filled(struct call *c)
{
  c->out->rank = integers(c, "size", c->out->size);
  return c->out->rank >= 0;
}

/* -- the table -- */

/* Which dtype a result has, where that is sure. */
enum dtype_rule { ANY, LIKE_SELF, BOOLEAN, GIVEN };

static const struct rule {
  bool (*infer)(struct call *c);
  enum { SIZE_ONLY, VIEW } kind;
  enum dtype_rule dtype;
  bool needs_self; /* argument 0 is a tensor of static size */
  const char *ops; /* packets, blanks between; an in-place op (add_) goes by its plain name */
} rules[] = {
    {permute, VIEW, LIKE_SELF, true, " permute "},
    {transpose, VIEW, LIKE_SELF, true, " transpose "},
    {transpose_two, VIEW, LIKE_SELF, true, " t "},
    {unsqueeze, VIEW, LIKE_SELF, true, " unsqueeze "},
    {squeeze, VIEW, LIKE_SELF, true, " squeeze "},
    {expand, VIEW, LIKE_SELF, true, " expand "},
    {select_one, VIEW, LIKE_SELF, true, " select "},
    {slice, VIEW, LIKE_SELF, true, " slice "},
    {narrow, VIEW, LIKE_SELF, true, " narrow "},
    {view, VIEW, LIKE_SELF, true, " view reshape _unsafe_view "},
    {flatten, VIEW, LIKE_SELF, true, " flatten "},
    {same_view, VIEW, LIKE_SELF, true, " alias detach "},
    {same, SIZE_ONLY, LIKE_SELF, true,
     " abs ceil celu clone contiguous dropout elu flip floor gelu hardsigmoid hardswish hardtanh "
     "leaky_relu mish neg relu relu6 round selu sign silu softplus square tril triu trunc lift_fresh_copy roll copy "
     "layer_norm rms_norm group_norm batch_norm instance_norm index_put index_copy index_add scatter scatter_add "
     "slice_scatter select_scatter masked_scatter zero fill "},
    {same, SIZE_ONLY, ANY, true,
     " acos asin atan cos cosh cumprod cumsum exp exp2 expm1 log log10 log1p log2 log_sigmoid logcumsumexp reciprocal "
     "rsqrt sigmoid sin sinh sqrt tan tanh erf softmax _softmax log_softmax _log_softmax zeros_like ones_like full_like "
     "empty_like bitwise_not type_as argsort "},
    {same, SIZE_ONLY, BOOLEAN, true, " isinf isnan logical_not "},
    {same, SIZE_ONLY, GIVEN, true, " to _to_copy convert_element_type "},
    {broadcast, SIZE_ONLY, ANY, false,
     " add sub mul div rsub where maximum minimum pow atan2 hypot fmod remainder floor_divide bitwise_and bitwise_or "
     "bitwise_xor __and__ __or__ __xor__ clamp clamp_min clamp_max lerp addcmul masked_fill "},
    {broadcast, SIZE_ONLY, BOOLEAN, false, " eq ne lt le gt ge logical_and logical_or logical_xor "},
    {matmul, SIZE_ONLY, LIKE_SELF, true, " matmul "},
    {mm, SIZE_ONLY, LIKE_SELF, true, " mm bmm "},
    {addmm, SIZE_ONLY, LIKE_SELF, true, " addmm "},
    {linear, SIZE_ONLY, LIKE_SELF, true, " linear "},
    {reduce, SIZE_ONLY, LIKE_SELF, true, " amax amin "},
    {reduce, SIZE_ONLY, ANY, true, " sum mean prod any all argmax argmin logsumexp var std max min median mode "},
    {cat, SIZE_ONLY, ANY, false, " cat "},
    {embedding, SIZE_ONLY, LIKE_SELF, true, " embedding "},
    {filled, SIZE_ONLY, ANY, false, " full zeros ones new_full new_zeros new_ones "},
};

static const struct rule *rule_of(const struct sw_node *n)
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
  for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
    if (strstr(rules[i].ops, padded))
      return &rules[i];
  return NULL;
}

static bool apply(const struct rule *rule, struct call *c)
{
  if (rule->needs_self && !self(c))
    return false;
  c->is_view = rule->kind == VIEW;
  return rule->infer(c);
}

bool sw_graph__infer_view(const struct sw_graph *g, const struct sw_node *n, struct sw_shape *out)
{
  const struct rule *rule = rule_of(n);
  struct call c = {.g = g, .n = n, .out = out};
  if (!self(&c) || !sw_graph__is_sane(self(&c)))
    return false;
  if (rule && n->n_results == 1 && rule->kind == VIEW && apply(rule, &c) && c.is_view)
    return true;
  /* an in-place op gives its own argument back */
  if (n->schema && n->n_results == 1 && n->schema->n_returns == 1 && strstr(n->schema->returns[0], "!")) {
    copy_shape(out, self(&c));
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

static void check_dtype(struct sw_job *job, const struct rule *rule, const struct call *c, const struct sw_value *v)
{
  enum sw_dtype want = SW_N_DTYPES;
  if (rule->dtype == LIKE_SELF)
    want = self(c) ? self(c)->dtype : SW_N_DTYPES;
  else if (rule->dtype == BOOLEAN)
    want = SW_BOOL;
  else if (rule->dtype == GIVEN) {
    const struct sw_arg *a = sw_node_arg(c->n, "dtype");
    want = a && a->kind == SW_ARG_DTYPE ? a->dtype : SW_N_DTYPES;
  }
  if (want == SW_N_DTYPES || want == v->dtype)
    return;
  struct sw_fault *f = sw_fault(job, SW_INVALID, "%s: %s gives %s, but %s is declared %s", c->n->name, c->n->target,
                                sw_dtype_text(want), v->name, sw_dtype_text(v->dtype));
  f->node = c->n->name;
  f->tensor = v->name;
  f->source = c->n->source;
}

static void check_node(struct sw_job *job, const struct sw_graph *g, const struct sw_node *n)
{
  const struct rule *rule = rule_of(n);
  const struct sw_value *v = rule ? &g->values.v[n->results[0]] : NULL;
  if (!v || v->kind != SW_VALUE_TENSOR || v->size_expr)
    return;
  struct sw_shape s = {0};
  struct call c = {.g = g, .n = n, .out = &s};
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
    f = sw_fault(job, SW_INVALID, "%s: %s gives size %s, but %s is declared %s", n->name, n->target,
                 sw_buf_text(&want), v->name, sw_buf_text(&have));
    sw_arena_free(scratch);
  } else if (c.why) {
    f = sw_fault(job, SW_INVALID, "%s: %s: %s", n->name, n->target, c.why);
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
    check_node(job, g, n);
    for (int k = 0; k < n->n_args; k++)
      if (n->args[k].kind == SW_ARG_GRAPH)
        sw_graph__check_shapes(job, n->args[k].graph);
  }
}
