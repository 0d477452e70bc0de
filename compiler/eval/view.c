/* Views: results that show the cells of an argument. */
#include "compiler/eval/ops.h"

#include <string.h>

void sw_op_alias(struct sw_call *c)
{
  sw_call_out_view(c, 0, sw_call_tensor(c, "self"));
}

void sw_op_reshape(struct sw_call *c)
{
  struct sw_tensor t = sw_call_tensor(c, "self");
  struct sw_ints size = sw_call_ints(c, c->op->args);
  sw_call_out_view(c, 0, sw_call_reshape(c, &t, size.n, size.v));
}

void sw_op_ravel(struct sw_call *c)
{
  struct sw_tensor t = sw_call_tensor(c, "self");
  int64_t open = -1;
  sw_call_out_view(c, 0, sw_call_reshape(c, &t, 1, &open));
}

void sw_op_view_as(struct sw_call *c)
{
  struct sw_tensor t = sw_call_tensor(c, "self"), like = sw_call_tensor(c, "other");
  sw_call_out_view(c, 0, sw_call_reshape(c, &t, like.rank, like.size));
}

void sw_op_flatten(struct sw_call *c)
{
  struct sw_tensor t = sw_call_tensor(c, "self");
  int first = sw_call_dim(c, "start_dim", t.rank), last = sw_call_dim(c, "end_dim", t.rank), n = 0;
  if (first > last)
    sw_call_stop(c, SW_INVALID, "start_dim lies behind end_dim");
  int64_t size[SW_MAX_RANK];
  for (int d = 0; d < t.rank || d == 0; d++) {
    int64_t s = t.rank ? t.size[d] : 1;
    if (d <= first || d > last)
      size[n++] = s;
    else if (__builtin_mul_overflow(size[n - 1], s, &size[n - 1]))
      sw_call_over_limit(c);
  }
  sw_call_out_view(c, 0, sw_call_reshape(c, &t, n, size));
}

void sw_op_unflatten(struct sw_call *c)
{
  struct sw_tensor t = sw_call_tensor(c, "self");
  int dim = sw_call_dim(c, "dim", t.rank), n = 0;
  struct sw_ints parts = sw_call_ints(c, "sizes");
  if (t.rank + parts.n - 1 > SW_MAX_RANK || t.rank == 0)
    sw_call_stop(c, SW_UNSUPPORTED, "unflattening rank %d into %d parts", t.rank, parts.n);
  int64_t size[SW_MAX_RANK], known = 1;
  for (int i = 0; i < parts.n; i++)
    if (parts.v[i] != -1)
      known *= parts.v[i] > 0 && parts.v[i] <= t.size[dim] ? parts.v[i] : 1;
  for (int d = 0; d < t.rank; d++)
    for (int i = 0; i < (d == dim ? parts.n : 1); i++)
      size[n++] = d != dim ? t.size[d] : parts.v[i] != -1 ? parts.v[i] : known > 0 ? t.size[dim] / known : 0;
  sw_call_out_view(c, 0, sw_call_reshape(c, &t, n, size));
}

void sw_op_permute(struct sw_call *c)
{
  struct sw_tensor t = sw_call_tensor(c, "self"), v = t;
  struct sw_ints dims = sw_call_ints(c, "dims");
  bool seen[SW_MAX_RANK] = {false};
  if (dims.n != t.rank)
    sw_call_stop(c, SW_INVALID, "%d dims for a tensor of rank %d", dims.n, t.rank);
  for (int d = 0; d < t.rank; d++) {
    int from = sw_dim_of(c, dims.v[d], t.rank);
    if (seen[from])
      sw_call_stop(c, SW_INVALID, "dim %d occurs twice", from);
    seen[from] = true;
    v.size[d] = t.size[from];
    v.stride[d] = t.stride[from];
  }
  sw_call_out_view(c, 0, v);
}

void sw_op_transpose(struct sw_call *c)
{
  struct sw_tensor t = sw_call_tensor(c, "self"), v = t;
  bool axes = !strcmp(c->op->args, "axis0");
  int a = sw_call_dim(c, axes ? "axis0" : "dim0", t.rank), b = sw_call_dim(c, axes ? "axis1" : "dim1", t.rank);
  if (t.rank > 0) {
    v.size[a] = t.size[b];
    v.stride[a] = t.stride[b];
    v.size[b] = t.size[a];
    v.stride[b] = t.stride[a];
  }
  sw_call_out_view(c, 0, v);
}

/* All dims the other way round. */
void sw_op_t(struct sw_call *c)
{
  struct sw_tensor t = sw_call_tensor(c, "self"), v = t;
  for (int d = 0; d < t.rank; d++) {
    v.size[d] = t.size[t.rank - 1 - d];
    v.stride[d] = t.stride[t.rank - 1 - d];
  }
  sw_call_out_view(c, 0, v);
}

/* Dims named in `source` take the places in `destination`, the others keep their order. */
void sw_op_movedim(struct sw_call *c)
{
  struct sw_tensor t = sw_call_tensor(c, "self"), v = t;
  struct sw_ints from = sw_call_ints(c, "source"), to = sw_call_ints(c, "destination");
  int order[SW_MAX_RANK], next = 0;
  bool moved[SW_MAX_RANK] = {false};
  if (from.n != to.n || from.n > (t.rank ? t.rank : 1))
    sw_call_stop(c, SW_INVALID, "%d dims moved to %d places", from.n, to.n);
  for (int d = 0; d < t.rank; d++)
    order[d] = -1;
  for (int i = 0; i < from.n; i++) {
    int f = sw_dim_of(c, from.v[i], t.rank), at = sw_dim_of(c, to.v[i], t.rank);
    if (t.rank && (moved[f] || order[at] >= 0))
      sw_call_stop(c, SW_INVALID, "a dim or a place occurs twice");
    if (t.rank) {
      order[at] = f;
      moved[f] = true;
    }
  }
  for (int d = 0; d < t.rank; d++) {
    while (order[d] < 0 && moved[next])
      next++;
    int f = order[d] < 0 ? next++ : order[d];
    v.size[d] = t.size[f];
    v.stride[d] = t.stride[f];
  }
  sw_call_out_view(c, 0, v);
}

void sw_op_unsqueeze(struct sw_call *c)
{
  struct sw_tensor t = sw_call_tensor(c, "self");
  if (t.rank == SW_MAX_RANK)
    sw_call_stop(c, SW_UNSUPPORTED, "a tensor of rank %d is over the limit of %d", t.rank + 1, SW_MAX_RANK);
  int dim = sw_call_dim(c, "dim", t.rank + 1);
  t.size[t.rank] = 1;
  t.stride[t.rank] = dim < t.rank ? t.size[dim] * t.stride[dim] : 1;
  t.rank++;
  sw_call_out_view(c, 0, sw_tensor_move(&t, t.rank - 1, dim));
}

/* `what` 0: all dims of size 1, 1: those of the list */
void sw_op_squeeze(struct sw_call *c)
{
  struct sw_tensor t = sw_call_tensor(c, "self"), v = t;
  bool out[SW_MAX_RANK];
  struct sw_ints dims = {0};
  for (int d = 0; d < t.rank; d++)
    out[d] = c->op->what == 0 && t.size[d] == 1;
  if (c->op->what)
    dims = sw_call_ints(c, "dim");
  for (int i = 0; i < dims.n && t.rank > 0; i++) {
    int d = sw_dim_of(c, dims.v[i], t.rank);
    out[d] = t.size[d] == 1;
  }
  v.rank = 0;
  for (int d = 0; d < t.rank; d++)
    if (!out[d]) {
      v.size[v.rank] = t.size[d];
      v.stride[v.rank++] = t.stride[d];
    }
  sw_call_out_view(c, 0, v);
}

void sw_op_expand(struct sw_call *c)
{
  struct sw_tensor t = sw_call_tensor(c, "self");
  struct sw_ints asked = sw_call_ints(c, "size");
  int64_t size[SW_MAX_RANK];
  if (asked.n > SW_MAX_RANK || asked.n < t.rank)
    sw_call_stop(c, SW_INVALID, "a tensor of rank %d does not expand to rank %d", t.rank, asked.n);
  for (int d = 0; d < asked.n; d++) {
    int from = d - (asked.n - t.rank);
    size[d] = asked.v[d] == -1 && from >= 0 ? t.size[from] : asked.v[d];
  }
  sw_call_out_view(c, 0, sw_call_expand(c, &t, asked.n, size));
}

void sw_op_expand_as(struct sw_call *c)
{
  struct sw_tensor t = sw_call_tensor(c, "self"), like = sw_call_tensor(c, "other");
  sw_call_out_view(c, 0, sw_call_expand(c, &t, like.rank, like.size));
}

static int64_t clip(int64_t x, int64_t n)
{
  x = x < 0 ? x + n : x;
  return x < 0 ? 0 : x > n ? n : x;
}

struct sw_tensor sw_call_slice(struct sw_call *c, const struct sw_tensor *t)
{
  int dim = (int)sw_call_int_or(c, "dim", 0);
  dim = sw_dim_of(c, dim, t->rank);
  if (t->rank == 0)
    sw_call_stop(c, SW_INVALID, "a tensor of rank 0 has no slices");
  int64_t n = t->size[dim], step = sw_call_int_or(c, "step", 1);
  int64_t start = clip(sw_call_int_or(c, "start", 0), n), end = clip(sw_call_int_or(c, "end", INT64_MAX), n);
  if (step <= 0)
    sw_call_stop(c, SW_INVALID, "step %lld", (long long)step);
  struct sw_tensor v = *t;
  int64_t span = end > start ? end - start : 0;
  v.size[dim] = span / step + (span % step != 0);
  v.offset += start * t->stride[dim];
  v.stride[dim] *= v.size[dim] > 1 ? step : 1;
  return v;
}

void sw_op_slice(struct sw_call *c)
{
  struct sw_tensor t = sw_call_tensor(c, "self");
  sw_call_out_view(c, 0, sw_call_slice(c, &t));
}

static struct sw_tensor piece(struct sw_call *c, const struct sw_tensor *t, int dim, int64_t start, int64_t n)
{
  if (t->rank == 0 || start < 0 || n < 0 || n > t->size[dim] || start > t->size[dim] - n)
    sw_call_stop(c, SW_INVALID, "%lld elements from %lld on are not in dim %d", (long long)n, (long long)start, dim);
  struct sw_tensor v = *t;
  v.offset += start * t->stride[dim];
  v.size[dim] = n;
  return v;
}

void sw_op_narrow(struct sw_call *c)
{
  struct sw_tensor t = sw_call_tensor(c, "self");
  int dim = sw_call_dim(c, "dim", t.rank);
  int64_t start = sw_call_int(c, "start");
  start += start < 0 && t.rank ? t.size[dim] : 0;
  sw_call_out_view(c, 0, piece(c, &t, dim, start, sw_call_int(c, "length")));
}

struct sw_tensor sw_call_select(struct sw_call *c, const struct sw_tensor *t)
{
  int dim = sw_call_dim(c, "dim", t->rank);
  int64_t i = sw_call_int(c, "index"), n = t->rank ? t->size[dim] : 0;
  if (i < -n || i >= n)
    sw_call_stop(c, SW_INVALID, "index %lld is not in a dim of %lld", (long long)i, (long long)n);
  return sw_tensor_at(t, dim, i < 0 ? i + n : i);
}

void sw_op_select(struct sw_call *c)
{
  struct sw_tensor t = sw_call_tensor(c, "self");
  sw_call_out_view(c, 0, sw_call_select(c, &t));
}

static void split(struct sw_call *c, const struct sw_tensor *t, int dim, int64_t each, struct sw_ints sizes)
{
  int64_t at = 0, n = t->rank ? t->size[dim] : 0;
  for (int i = 0; i < sw_call_n_results(c); i++) {
    int64_t take = sizes.n ? sw_ints_at(c, sizes, i, 0) : n - at < each ? n - at : each;
    sw_call_out_view(c, i, piece(c, t, dim, at, take));
    at += take;
  }
  if (at != n)
    sw_call_stop(c, SW_INVALID, "the pieces have %lld elements, dim %d has %lld", (long long)at, dim, (long long)n);
}

void sw_op_split(struct sw_call *c)
{
  struct sw_tensor t = sw_call_tensor(c, "self");
  int64_t each = sw_call_int(c, "split_size");
  if (each < 0)
    sw_call_stop(c, SW_INVALID, "split_size %lld", (long long)each);
  split(c, &t, sw_call_dim(c, "dim", t.rank), each, (struct sw_ints){0});
}

void sw_op_split_with_sizes(struct sw_call *c)
{
  struct sw_tensor t = sw_call_tensor(c, "self");
  struct sw_ints sizes = sw_call_ints(c, c->op->what ? "split_size" : "split_sizes"); /* split.sizes has its own name for them */
  if (sizes.n != sw_call_n_results(c))
    sw_call_stop(c, SW_INVALID, "%d sizes for %d pieces", sizes.n, sw_call_n_results(c));
  split(c, &t, sw_call_dim(c, "dim", t.rank), 0, sizes);
}

/* Pieces of ceil(size / chunks), the last smaller, perhaps fewer. */
void sw_op_chunk(struct sw_call *c)
{
  struct sw_tensor t = sw_call_tensor(c, "self");
  int dim = sw_call_dim(c, "dim", t.rank);
  int64_t chunks = sw_call_int(c, "chunks"), n = t.rank ? t.size[dim] : 0;
  if (chunks <= 0)
    sw_call_stop(c, SW_INVALID, "%lld chunks", (long long)chunks);
  split(c, &t, dim, n / chunks + (n % chunks != 0), (struct sw_ints){0});
}

void sw_op_unbind(struct sw_call *c)
{
  struct sw_tensor t = sw_call_tensor(c, "self");
  int dim = sw_call_dim(c, "dim", t.rank);
  if (t.rank == 0 || t.size[dim] != sw_call_n_results(c))
    sw_call_stop(c, SW_INVALID, "dim %d does not have %d indices", dim, sw_call_n_results(c));
  for (int i = 0; i < sw_call_n_results(c); i++)
    sw_call_out_view(c, i, sw_tensor_at(&t, dim, i));
}

/* Beyond the corners a diagonal has no elements. */
void sw_op_diagonal(struct sw_call *c)
{
  struct sw_tensor t = sw_call_tensor(c, "self");
  int a = sw_call_dim(c, "dim1", t.rank), b = sw_call_dim(c, "dim2", t.rank);
  int64_t offset = sw_call_int(c, "offset");
  if (a == b || t.rank < 2)
    sw_call_stop(c, SW_INVALID, "no diagonal of dims %d and %d", a, b);
  int64_t down = offset >= 0 ? 0 : offset < -t.size[a] ? t.size[a] : -offset;
  int64_t right = offset <= 0 ? 0 : offset > t.size[b] ? t.size[b] : offset;
  int64_t rows = t.size[a] - down, columns = t.size[b] - right, step = t.stride[a] + t.stride[b];
  t.offset += down * t.stride[a] + right * t.stride[b];
  struct sw_tensor v = sw_tensor_at(&t, a > b ? a : b, 0);
  v = sw_tensor_at(&v, a > b ? b : a, 0);
  v.size[v.rank] = rows < columns ? rows : columns;
  v.stride[v.rank++] = step;
  sw_call_out_view(c, 0, v);
}

void sw_op_as_strided(struct sw_call *c)
{
  struct sw_tensor t = sw_call_tensor(c, "self");
  struct sw_ints size = sw_call_ints(c, "size"), stride = sw_call_ints(c, "stride");
  if (size.n != stride.n || size.n > SW_MAX_RANK)
    sw_call_stop(c, SW_INVALID, "%d sizes and %d strides", size.n, stride.n);
  t.offset = sw_call_int_or(c, "storage_offset", t.offset);
  t.rank = size.n;
  for (int d = 0; d < size.n; d++) {
    t.size[d] = size.v[d];
    t.stride[d] = stride.v[d];
  }
  sw_tensor_tidy(&t);
  sw_call_out_view(c, 0, t);
}

/* Windows of `size` elements, `step` apart; the window is the last dim. */
void sw_op_unfold(struct sw_call *c)
{
  struct sw_tensor t = sw_call_tensor(c, "self");
  int dim = sw_call_dim(c, "dimension", t.rank);
  int64_t size = sw_call_int(c, "size"), step = sw_call_int(c, "step");
  if (t.rank == 0 || t.rank == SW_MAX_RANK || size < 0 || size > t.size[dim] || step <= 0)
    sw_call_stop(c, SW_INVALID, "no windows of %lld elements", (long long)size);
  t.stride[t.rank] = t.stride[dim];
  t.size[t.rank] = size;
  t.size[dim] = (t.size[dim] - size) / step + 1;
  t.stride[dim] *= t.size[dim] > 1 ? step : 1;
  t.rank++;
  sw_call_out_view(c, 0, t);
}

/* The last dim of size 2 holds real and imaginary parts. */
void sw_op_view_as_complex(struct sw_call *c)
{
  struct sw_tensor t = sw_call_tensor(c, "self");
  bool fits = t.rank > 0 && t.size[t.rank - 1] == 2 && t.stride[t.rank - 1] == 1 && t.offset % 2 == 0;
  for (int d = 0; fits && d < t.rank - 1; d++)
    fits = t.stride[d] % 2 == 0;
  if (!fits)
    sw_call_stop(c, SW_INVALID, "the last dim does not hold pairs");
  t.dtype = sw_call_out_dtype(c, 0);
  if (sw_class_of(t.dtype) != SW_CLASS_COMPLEX)
    sw_call_stop(c, SW_INVALID, "the result is declared as %s", sw_dtype_torch(t.dtype));
  t.offset /= 2;
  t.rank--;
  for (int d = 0; d < t.rank; d++)
    t.stride[d] /= 2;
  sw_call_out_view(c, 0, t);
}

void sw_op_view_as_real(struct sw_call *c)
{
  struct sw_tensor t = sw_call_tensor(c, "self");
  if (sw_class_of(t.dtype) != SW_CLASS_COMPLEX || t.rank == SW_MAX_RANK)
    sw_call_stop(c, SW_INVALID, "a tensor of dtype %s and rank %d", sw_dtype_torch(t.dtype), t.rank);
  t.dtype = sw_call_out_dtype(c, 0);
  t.offset *= 2;
  for (int d = 0; d < t.rank; d++)
    t.stride[d] *= 2;
  t.size[t.rank] = 2;
  t.stride[t.rank++] = 1;
  sw_call_out_view(c, 0, t);
}

/* -- copies that may be views -- */

static void convert(struct sw_call *c, const struct sw_tensor *t)
{
  struct sw_tensor out = sw_call_out(c, 0, t->rank, t->size);
  sw_call_copy(c, &out, t);
}

void sw_op_clone(struct sw_call *c)
{
  struct sw_tensor t = sw_call_tensor(c, c->op->args);
  convert(c, &t);
}

/* The same tensor when it has the dtype already, unless a copy is asked for. */
void sw_op_to(struct sw_call *c)
{
  struct sw_tensor t = sw_call_tensor(c, "self");
  if (t.dtype == sw_call_out_dtype(c, 0) && !sw_call_bool(c, "copy"))
    sw_call_out_view(c, 0, t);
  else
    convert(c, &t);
}

void sw_op_contiguous(struct sw_call *c)
{
  struct sw_tensor t = sw_call_tensor(c, "self");
  int64_t stride[SW_MAX_RANK];
  sw_dense(t.rank, t.size, stride);
  bool is_dense = true;
  for (int d = 0; d < t.rank; d++)
    is_dense = is_dense && (t.size[d] == 1 || t.stride[d] == stride[d]);
  if (is_dense)
    sw_call_out_view(c, 0, t);
  else
    convert(c, &t);
}

/* In evaluation dropout is its input. */
void sw_op_dropout(struct sw_call *c)
{
  struct sw_tensor t = sw_call_tensor(c, c->op->what ? "input" : "self");
  if (sw_call_bool(c, "train") && sw_call_real(c, "p") > 0)
    sw_call_stop(c, SW_UNSUPPORTED, "random numbers of a training run");
  sw_call_out_view(c, 0, t);
  if (sw_call_n_results(c) > 1) {
    struct sw_tensor mask = sw_call_out(c, 1, t.rank, t.size);
    sw_call_fill(c, &mask, (struct sw_number){.kind = SW_NUMBER_BOOL, .i = 1});
  }
}
