/* Views: sizes, strides and offset as PyTorch gives them. */
#include "compiler/graph/infer.h"

static bool same_view(struct sw_infer *c)
{
  sw_infer__copy_shape(c->out, sw_infer__self(c));
  return true;
}

static bool permute(struct sw_infer *c)
{
  const struct sw_value *v = sw_infer__self(c);
  int64_t dims[SW_MAX_RANK];
  bool seen[SW_MAX_RANK] = {false};
  if (sw_infer__integers(c, "dims", dims) != v->rank)
    return sw_infer__wrong(c, "dims is no permutation of all dims");
  sw_infer__copy_shape(c->out, v);
  for (int i = 0; i < v->rank; i++) {
    int d = sw_infer__dim_of(dims[i], v->rank);
    if (d < 0 || seen[d])
      return sw_infer__wrong(c, "dims is no permutation of all dims");
    seen[d] = true;
    c->out->size[i] = v->size[d];
    c->out->stride[i] = v->stride[d];
  }
  return true;
}

static bool swap(struct sw_infer *c, int64_t a, int64_t b)
{
  const struct sw_value *v = sw_infer__self(c);
  sw_infer__copy_shape(c->out, v);
  int x = sw_infer__dim_of(a, v->rank), y = sw_infer__dim_of(b, v->rank);
  if (x < 0 || y < 0)
    return v->rank ? sw_infer__wrong(c, "a dim is out of range") : true;
  c->out->size[x] = v->size[y];
  c->out->stride[x] = v->stride[y];
  c->out->size[y] = v->size[x];
  c->out->stride[y] = v->stride[x];
  return true;
}

static bool transpose(struct sw_infer *c)
{
  int64_t a, b;
  return sw_infer__integer(c, "dim0", &a) && sw_infer__integer(c, "dim1", &b) ? swap(c, a, b) : SW_INFER_UNKNOWN;
}

static bool transpose_two(struct sw_infer *c)
{
  const struct sw_value *v = sw_infer__self(c);
  if (v->rank > 2)
    return sw_infer__wrong(c, "t takes at most 2 dims");
  return v->rank == 2 ? swap(c, 0, 1) : same_view(c);
}

static bool unsqueeze(struct sw_infer *c)
{
  const struct sw_value *v = sw_infer__self(c);
  int64_t at;
  if (!sw_infer__integer(c, "dim", &at) || v->rank == SW_MAX_RANK)
    return SW_INFER_UNKNOWN;
  int d = sw_infer__dim_of(at, v->rank + 1);
  if (d < 0)
    return sw_infer__wrong(c, "dim is out of range");
  struct sw_shape *s = c->out;
  sw_infer__copy_shape(s, v);
  for (int i = s->rank++; i > d; i--) {
    s->size[i] = s->size[i - 1];
    s->stride[i] = s->stride[i - 1];
  }
  s->size[d] = 1;
  s->stride[d] = d < v->rank ? sw_infer__times(v->size[d], v->stride[d]) : 1;
  return true;
}

static bool squeeze(struct sw_infer *c)
{
  const struct sw_value *v = sw_infer__self(c);
  int64_t dims[SW_MAX_RANK];
  bool drop[SW_MAX_RANK] = {false};
  int n = sw_infer__integers(c, "dim", dims);
  if (n < 0)
    n = sw_infer__integer(c, "dim", &dims[0]) ? 1 : -1;
  bool all = n < 0 && !sw_node_arg(c->n, "dim");
  if (n < 0 && !all)
    return SW_INFER_UNKNOWN;
  for (int i = 0; i < n; i++) {
    int d = sw_infer__dim_of(dims[i], v->rank);
    if (d < 0 && v->rank)
      return sw_infer__wrong(c, "dim is out of range");
    if (d >= 0)
      drop[d] = true;
  }
  sw_infer__copy_shape(c->out, v);
  for (int d = v->rank - 1; d >= 0; d--)
    if (v->size[d] == 1 && (all || drop[d]))
      sw_infer__drop_dim(c->out, d);
  return true;
}

static bool expand(struct sw_infer *c)
{
  const struct sw_value *v = sw_infer__self(c);
  int64_t want[SW_MAX_RANK];
  int n = sw_infer__integers(c, "size", want);
  if (n < 0)
    return SW_INFER_UNKNOWN;
  if (n < v->rank)
    return sw_infer__wrong(c, "fewer sizes than dims");
  struct sw_shape *s = c->out;
  s->rank = n;
  s->offset = v->offset;
  for (int i = n - 1; i >= 0; i--) {
    int d = i - (n - v->rank);
    s->size[i] = d >= 0 ? v->size[d] : 1;
    s->stride[i] = d >= 0 ? v->stride[d] : i + 1 < n ? sw_infer__times(s->size[i + 1], s->stride[i + 1]) : 1;
    if (want[i] == -1 ? d < 0 : want[i] != s->size[i] && s->size[i] != 1)
      return sw_infer__wrong(c, "a dim that is not 1 can't be expanded");
    if (want[i] != -1 && want[i] != s->size[i]) {
      s->size[i] = want[i];
      s->stride[i] = 0;
    }
  }
  return true;
}

static bool select_one(struct sw_infer *c)
{
  const struct sw_value *v = sw_infer__self(c);
  int64_t dim, index;
  if (!sw_infer__integer(c, "dim", &dim) || !sw_infer__integer(c, "index", &index))
    return SW_INFER_UNKNOWN;
  int d = sw_infer__dim_of(dim, v->rank);
  if (d < 0)
    return sw_infer__wrong(c, "dim is out of range");
  if (index < -v->size[d] || index >= v->size[d])
    return sw_infer__wrong(c, "index is out of range");
  sw_infer__copy_shape(c->out, v);
  c->out->offset += (index < 0 ? index + v->size[d] : index) * v->stride[d];
  sw_infer__drop_dim(c->out, d);
  return true;
}

static int64_t clamp(int64_t i, int64_t least, int64_t size)
{
  i += i < 0 ? size : 0;
  return i < least ? least : i > size ? size : i;
}

static bool cut(struct sw_infer *c, int64_t dim, int64_t start, int64_t end, int64_t step)
{
  const struct sw_value *v = sw_infer__self(c);
  int d = sw_infer__dim_of(dim, v->rank);
  if (d < 0)
    return sw_infer__wrong(c, "dim is out of range");
  if (step < 1)
    return sw_infer__wrong(c, "step is not positive");
  start = clamp(start, 0, v->size[d]);
  end = clamp(end, start, v->size[d]);
  sw_infer__copy_shape(c->out, v);
  c->out->offset = sw_infer__plus(v->offset, sw_infer__times(start, v->stride[d]));
  c->out->size[d] = (end - start) / step + ((end - start) % step != 0);
  c->out->stride[d] = sw_infer__times(v->stride[d], step);
  return true;
}

static bool slice(struct sw_infer *c)
{
  const struct sw_arg *a = sw_node_arg(c->n, "start"), *b = sw_node_arg(c->n, "end");
  int64_t dim, step, start = 0, end = INT64_MAX;
  if (!sw_infer__integer(c, "dim", &dim) || !sw_infer__integer(c, "step", &step) ||
      (a->kind != SW_ARG_NONE && !sw_infer__integer(c, "start", &start)) ||
      (b->kind != SW_ARG_NONE && !sw_infer__integer(c, "end", &end)))
    return SW_INFER_UNKNOWN;
  return cut(c, dim, start, end, step);
}

static bool narrow(struct sw_infer *c)
{
  int64_t dim, start, length, end;
  if (!sw_infer__integer(c, "dim", &dim) || !sw_infer__integer(c, "start", &start) ||
      !sw_infer__integer(c, "length", &length))
    return SW_INFER_UNKNOWN;
  int d = sw_infer__dim_of(dim, sw_infer__self(c)->rank);
  start += start < 0 && d >= 0 ? sw_infer__self(c)->size[d] : 0;
  end = sw_infer__plus(start, length);
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
    if (d && (v->size[d - 1] == 1 || v->stride[d - 1] == sw_infer__times(old, base)))
      continue;
    for (; k >= 0 && (new < old || s->size[k] == 1); k--) {
      s->stride[k] = sw_infer__times(new, base);
      new = sw_infer__times(new, s->size[k]);
    }
    if (new != old)
      return false;
    if (d) {
      base = v->stride[d - 1];
      old = new = 1;
    }
  }
  for (; k >= 0; k--)
    s->stride[k] = sw_infer__times(new, base);
  return true;
}

static bool reshaped(struct sw_infer *c, struct sw_shape *s)
{
  const struct sw_value *v = sw_infer__self(c);
  int64_t elements = sw_value_elements(v), known = 1;
  int hole = -1;
  for (int i = 0; i < s->rank; i++) {
    if (s->size[i] == -1 && hole < 0)
      hole = i;
    else if (s->size[i] < 0 || __builtin_mul_overflow(known, s->size[i], &known))
      return sw_infer__wrong(c, "sizes are not possible");
  }
  if (hole >= 0 && (!known || elements % known))
    return sw_infer__wrong(c, "the size that is -1 can't be found");
  if (hole >= 0) {
    s->size[hole] = elements / known;
    known = elements;
  }
  if (known != elements)
    return sw_infer__wrong(c, "the number of elements changes");
  s->offset = v->offset;
  if (!elements || !view_strides(v, s)) {
    c->is_view = false;
    s->offset = 0;
  }
  return true;
}

static bool view(struct sw_infer *c)
{
  int n = sw_infer__integers(c, "size", c->out->size);
  if (n < 0)
    n = sw_infer__integers(c, "shape", c->out->size);
  c->out->rank = n;
  return n >= 0 ? reshaped(c, c->out) : SW_INFER_UNKNOWN;
}

static bool flatten(struct sw_infer *c)
{
  const struct sw_value *v = sw_infer__self(c);
  int64_t first, last;
  if (!v->rank || !sw_infer__integer(c, "start_dim", &first) || !sw_infer__integer(c, "end_dim", &last))
    return SW_INFER_UNKNOWN;
  int from = sw_infer__dim_of(first, v->rank), to = sw_infer__dim_of(last, v->rank);
  if (from < 0 || to < from)
    return sw_infer__wrong(c, "start_dim or end_dim is out of range");
  sw_infer__copy_shape(c->out, v);
  for (int d = to; d > from; d--) {
    c->out->size[d - 1] *= c->out->size[d];
    sw_infer__drop_dim(c->out, d);
  }
  return reshaped(c, c->out);
}

/* -- what is written into a part -- */

static bool scatter(struct sw_infer *c, bool (*part)(struct sw_infer *))
{
  const struct sw_value *written = sw_infer__tensor(c, "src");
  if (!part(c) || !written)
    return false;
  bool fits = c->out->rank == written->rank;
  for (int d = 0; fits && d < written->rank; d++)
    fits = c->out->size[d] == written->size[d];
  if (!fits)
    return sw_infer__wrong(c, "what is written has not the size of the part");
  sw_infer__copy_shape(c->out, sw_infer__self(c));
  return true;
}

bool sw_infer__slice_scatter(struct sw_infer *c)
{
  return scatter(c, slice);
}

bool sw_infer__select_scatter(struct sw_infer *c)
{
  return scatter(c, select_one);
}

const struct sw_infer_rule sw_infer__views[] = {
    {permute, true, SW_INFER_LIKE_SELF, true, " permute "},
    {transpose, true, SW_INFER_LIKE_SELF, true, " transpose "},
    {transpose_two, true, SW_INFER_LIKE_SELF, true, " t "},
    {unsqueeze, true, SW_INFER_LIKE_SELF, true, " unsqueeze "},
    {squeeze, true, SW_INFER_LIKE_SELF, true, " squeeze "},
    {expand, true, SW_INFER_LIKE_SELF, true, " expand "},
    {select_one, true, SW_INFER_LIKE_SELF, true, " select "},
    {slice, true, SW_INFER_LIKE_SELF, true, " slice "},
    {narrow, true, SW_INFER_LIKE_SELF, true, " narrow "},
    {view, true, SW_INFER_LIKE_SELF, true, " view reshape _unsafe_view "},
    {flatten, true, SW_INFER_LIKE_SELF, true, " flatten "},
    {same_view, true, SW_INFER_LIKE_SELF, true, " alias detach "},
};
const int sw_infer__n_views = sizeof sw_infer__views / sizeof sw_infer__views[0];
