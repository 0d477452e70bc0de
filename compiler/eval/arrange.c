/* Elements in another arrangement, as PyTorch's composite names spell it: pieces, stacks, turns, diagonals, shuffles. */
#include "compiler/eval/ops.h"

#include <string.h>

/* The last two dims swapped: mT, mH, adjoint. */
void sw_op_turn(struct sw_call *c)
{
  struct sw_tensor t = sw_call_tensor(c, "self");
  sw_call_out_view(c, 0, t.rank < 2 ? t : sw_tensor_move(&t, t.rank - 1, t.rank - 2));
}

/* -- pieces and stacks -- */

/* tensor_split and, by `what` 1, 2, 3, hsplit, vsplit, dsplit: `sections` pieces whose sizes differ by at most one, the
 * larger ones first, or cuts in front of `indices`. */
void sw_op_pieces(struct sw_call *c)
{
  struct sw_tensor t = sw_call_tensor(c, "self");
  int dims[] = {0, t.rank > 1, 0, 2};
  int dim = c->op->what ? dims[c->op->what] : sw_call_dim(c, "dim", t.rank), n = sw_call_n_results(c);
  if (dim >= t.rank)
    sw_call_stop(c, SW_INVALID, "a tensor of rank %d has no dim %d to split", t.rank, dim);
  bool cuts = sw_call_has(c, "indices");
  struct sw_ints at = {0};
  int64_t size = t.size[dim], start = 0, sections = 0;
  if (cuts)
    at = sw_call_ints(c, "indices");
  else
    sections = sw_call_int(c, "sections");
  if (n != (cuts ? at.n + 1 : sections) || (!cuts && sections < 1))
    sw_call_stop(c, SW_INVALID, "%d pieces", n);
  for (int i = 0; i < n; i++) {
    int64_t end = cuts && i < at.n ? at.v[i] : size;
    end = end < 0 ? end + size : end;
    end = end < 0 ? 0 : end > size ? size : end;
    if (!cuts)
      end = start + size / sections + (i < size % sections);
    struct sw_tensor v = t;
    v.size[dim] = end > start ? end - start : 0;
    v.offset += (v.size[dim] ? start : 0) * t.stride[dim];
    sw_call_out_view(c, i, v);
    start = end;
  }
}

/* The tensor with at least `least` dims: [n] is [1,n] of two and [1,n,1] of three, as a column [n,1]. */
static struct sw_tensor at_least(struct sw_call *c, const struct sw_tensor *t, int least, bool column)
{
  int64_t n = sw_tensor_elements(t), size[] = {1, 1, 1};
  if (t->rank >= least)
    return *t;
  if (t->rank == 2) {
    size[0] = t->size[0];
    size[1] = t->size[1];
  } else {
    size[least == 1 || column ? 0 : 1] = n;
  }
  return sw_call_reshape(c, t, least, size);
}

/* By `what` hstack, vstack, dstack, column_stack. */
void sw_op_stacked(struct sw_call *c)
{
  static const int least[] = {1, 2, 3, 2};
  int n, what = c->op->what;
  const struct sw_tensor *given = sw_call_tensors(c, "tensors", &n);
  struct sw_tensor *ts = SW_NEW_N(c->scratch, struct sw_tensor, n);
  int64_t size[SW_MAX_RANK], at = 0;
  int dim = 0;
  for (int i = 0; i < n; i++) {
    ts[i] = at_least(c, &given[i], least[what], what == 3);
    dim = what == 0 ? ts[0].rank > 1 : what == 1 ? 0 : what == 2 ? 2 : 1;
    if (ts[i].rank != ts[0].rank)
      sw_call_stop(c, SW_INVALID, "tensors of rank %d and %d can't be joined", ts[0].rank, ts[i].rank);
    if (i == 0)
      memcpy(size, ts[0].size, sizeof size);
    else
      size[dim] += ts[i].size[dim];
  }
  if (n == 0)
    sw_call_stop(c, SW_INVALID, "no tensors");
  struct sw_tensor out = sw_call_out(c, 0, ts[0].rank, size);
  for (int i = 0; i < n; i++) {
    struct sw_tensor to = out;
    to.offset += at * out.stride[dim];
    to.size[dim] = ts[i].size[dim];
    sw_call_copy(c, &to, &ts[i]);
    at += to.size[dim];
  }
}

/* atleast_1d, _2d, _3d by `what`. */
void sw_op_at_least(struct sw_call *c)
{
  struct sw_tensor t = sw_call_tensor(c, "self");
  sw_call_out_view(c, 0, at_least(c, &t, c->op->what, false));
}

/* Tensor i runs along dim i of a common size; with indexing "xy" the first two dims change places. */
void sw_op_meshgrid(struct sw_call *c)
{
  int n;
  const struct sw_tensor *ts = sw_call_tensors(c, "tensors", &n);
  int64_t size[SW_MAX_RANK];
  if (n > SW_MAX_RANK || n != sw_call_n_results(c))
    sw_call_stop(c, SW_INVALID, "a grid of %d tensors", n);
  for (int i = 0; i < n; i++)
    size[i] = sw_tensor_elements(&ts[i]);
  bool swapped = n > 1 && !strcmp(sw_call_text(c, "indexing", "ij"), "xy");
  for (int i = 0; i < n; i++) {
    int64_t own[SW_MAX_RANK];
    for (int d = 0; d < n; d++)
      own[d] = d == i ? size[i] : 1;
    struct sw_tensor t = sw_call_reshape(c, &ts[i], n, own);
    t = sw_call_expand(c, &t, n, size);
    sw_call_out_view(c, i, swapped ? sw_tensor_move(&t, 1, 0) : t);
  }
}

/* All tensors in the size they broadcast to. */
void sw_op_broadcast(struct sw_call *c)
{
  int n, rank = 0;
  const struct sw_tensor *ts = sw_call_tensors(c, "tensors", &n);
  int64_t size[SW_MAX_RANK];
  for (int i = 0; i < n; i++)
    rank = sw_call_broadcast(c, size, rank, &ts[i]);
  for (int i = 0; i < n; i++)
    sw_call_out_view(c, i, sw_call_expand(c, &ts[i], rank, size));
}

/* -- turned round -- */

static struct sw_tensor reversed(const struct sw_tensor *t, int dim)
{
  struct sw_tensor v = *t;
  if (v.size[dim] > 1) {
    v.offset += (v.size[dim] - 1) * v.stride[dim];
    v.stride[dim] = -v.stride[dim];
  }
  return v;
}

static void put(struct sw_call *c, const struct sw_tensor *t)
{
  struct sw_tensor out = sw_call_out(c, 0, t->rank, t->size);
  sw_call_copy(c, &out, t);
}

/* flipud (`what` 0) and fliplr (1). */
void sw_op_flip_dim(struct sw_call *c)
{
  struct sw_tensor t = sw_call_tensor(c, "self");
  if (t.rank <= c->op->what)
    sw_call_stop(c, SW_INVALID, "a tensor of rank %d", t.rank);
  t = reversed(&t, c->op->what);
  put(c, &t);
}

/* k quarter turns from dims[0] towards dims[1]: [[1,2],[3,4]] once is [[2,4],[1,3]]. */
void sw_op_rot90(struct sw_call *c)
{
  struct sw_tensor t = sw_call_tensor(c, "self");
  struct sw_ints dims = sw_call_ints(c, "dims");
  int64_t k = (sw_call_int(c, "k") % 4 + 4) % 4;
  if (dims.n != 2 || t.rank < 2)
    sw_call_stop(c, SW_INVALID, "a turn of %d dims", dims.n);
  int a = sw_dim_of(c, dims.v[0], t.rank), b = sw_dim_of(c, dims.v[1], t.rank);
  if (k == 1 || k == 2)
    t = reversed(&t, b);
  if (k == 2 || k == 3)
    t = reversed(&t, a);
  if (k % 2) {
    struct sw_tensor v = t;
    t.size[a] = v.size[b];
    t.stride[a] = v.stride[b];
    t.size[b] = v.size[a];
    t.stride[b] = v.stride[a];
  }
  put(c, &t);
}

/* -- diagonals -- */

/* Writes the last dim of t onto the diagonal of dims a and b of a new result. */
static void embed_diagonal(struct sw_call *c, struct sw_tensor t, int64_t offset, int a, int b)
{
  int64_t n = t.size[t.rank - 1], size[SW_MAX_RANK];
  int64_t side = n + (offset < 0 ? -offset : offset);
  int rank = t.rank + 1;
  if (rank > SW_MAX_RANK || a == b)
    sw_call_stop(c, SW_INVALID, "a diagonal of dims %d and %d of rank %d", a, b, rank);
  for (int d = 0, k = 0; d < rank; d++)
    size[d] = d == a || d == b ? side : t.size[k++];
  struct sw_tensor out = sw_call_out(c, 0, rank, size), to = out;
  to.offset += offset < 0 ? -offset * out.stride[a] : offset * out.stride[b];
  to.rank = 0;
  for (int d = 0; d < rank; d++)
    if (d != a && d != b) {
      to.size[to.rank] = out.size[d];
      to.stride[to.rank++] = out.stride[d];
    }
  to.size[to.rank] = n;
  to.stride[to.rank++] = out.stride[a] + out.stride[b];
  sw_call_copy(c, &to, &t);
}

/* The diagonal of the last two dims as the last dim. */
static struct sw_tensor diagonal_of(const struct sw_tensor *t, int64_t offset)
{
  int a = t->rank - 2, b = t->rank - 1;
  int64_t down = offset < 0 ? -offset : 0, right = offset > 0 ? offset : 0;
  int64_t rows = t->size[a] - down, columns = t->size[b] - right, n = rows < columns ? rows : columns;
  struct sw_tensor v = *t;
  v.rank--;
  v.size[a] = n > 0 ? n : 0;
  v.stride[a] = t->stride[a] + t->stride[b];
  v.offset += n > 0 ? down * t->stride[a] + right * t->stride[b] : 0;
  return v;
}

/* By `what`: diag (a matrix of a vector, a vector of a matrix), diagflat, diag_embed. */
void sw_op_diag(struct sw_call *c)
{
  struct sw_tensor t = sw_call_tensor(c, "self");
  int64_t offset = sw_call_int(c, c->op->args), open = -1;
  if (c->op->what == 1)
    t = sw_call_reshape(c, &t, 1, &open);
  if (offset > 1 << 30 || offset < -(1 << 30) || t.rank == 0)
    sw_call_stop(c, SW_INVALID, "diagonal %lld of rank %d", (long long)offset, t.rank);
  if (c->op->what == 2) {
    embed_diagonal(c, t, offset, sw_call_dim(c, "dim1", t.rank + 1), sw_call_dim(c, "dim2", t.rank + 1));
  } else if (t.rank == 1) {
    embed_diagonal(c, t, offset, 0, 1);
  } else {
    t = diagonal_of(&t, offset);
    put(c, &t);
  }
}

void sw_op_trace(struct sw_call *c)
{
  struct sw_tensor t = sw_call_tensor(c, "self");
  if (t.rank != 2)
    sw_call_stop(c, SW_INVALID, "the trace of a tensor of rank %d", t.rank);
  t = diagonal_of(&t, 0);
  struct sw_tensor out = sw_call_out(c, 0, 0, NULL);
  bool whole = sw_class_of(out.dtype) == SW_CLASS_WHOLE;
  double sum = 0, *v = whole ? NULL : sw_call_get(c, &t);
  uint64_t count = 0;
  int64_t *w = whole ? sw_call_get_wholes(c, &t) : NULL, total;
  for (int64_t i = 0; i < t.size[0]; i++) {
    sum += whole ? 0 : v[i];
    count += whole ? (uint64_t)w[i] : 0;
  }
  total = (int64_t)count;
  if (whole)
    sw_put_wholes(&out, &total, c->rounding);
  else
    sw_put_reals(&out, &sum, c->rounding);
}

/* Rows and columns of the lower (`what` 0) or upper triangle of a matrix, row by row. */
void sw_op_triangle_indices(struct sw_call *c)
{
  int64_t rows = sw_call_int(c, "row"), columns = sw_call_int(c, "col"), offset = sw_call_int(c, "offset");
  if (rows < 0 || columns < 0 || rows > 1 << 24 || columns > 1 << 24)
    sw_call_stop(c, SW_INVALID, "a matrix of %lld x %lld", (long long)rows, (long long)columns);
  int64_t n = 0, *places = NULL;
  for (int pass = 0; pass < 2; pass++) {
    int64_t count = 0;
    for (int64_t i = 0; i < rows; i++) {
      int64_t cut = i + offset + (c->op->what == 0), first, end;
      cut = cut < 0 ? 0 : cut > columns ? columns : cut;
      first = c->op->what ? cut : 0;
      end = c->op->what ? columns : cut;
      for (int64_t j = first; pass && j < end; j++) {
        places[count + j - first] = i;
        places[n + count + j - first] = j;
      }
      count += end - first;
    }
    n = count;
    if (!pass)
      places = sw_call_wholes(c, 2 * n);
  }
  struct sw_tensor out = sw_call_out(c, 0, 2, (int64_t[]){2, n});
  sw_put_wholes(&out, places, c->rounding);
}

/* Matrices along a diagonal. */
void sw_op_block_diag(struct sw_call *c)
{
  int n;
  const struct sw_tensor *given = sw_call_tensors(c, "tensors", &n);
  struct sw_tensor *ts = SW_NEW_N(c->scratch, struct sw_tensor, n);
  int64_t size[2] = {0, 0}, at[2] = {0, 0};
  for (int i = 0; i < n; i++) {
    ts[i] = at_least(c, &given[i], 2, false);
    size[0] += ts[i].size[0];
    size[1] += ts[i].size[1];
  }
  struct sw_tensor out = sw_call_out(c, 0, 2, size);
  for (int i = 0; i < n; i++) {
    struct sw_tensor to = out;
    to.offset += at[0] * out.stride[0] + at[1] * out.stride[1];
    memcpy(to.size, ts[i].size, 2 * sizeof to.size[0]);
    sw_call_copy(c, &to, &ts[i]);
    at[0] += ts[i].size[0];
    at[1] += ts[i].size[1];
  }
}

/* -- shuffles -- */

/* [.., g k, rest] as [.., k, g, rest] of channels, dim 1. */
void sw_op_channel_shuffle(struct sw_call *c)
{
  struct sw_tensor t = sw_call_tensor(c, "self");
  int64_t groups = sw_call_int(c, "groups"), size[SW_MAX_RANK];
  if (t.rank < 3 || t.rank == SW_MAX_RANK || groups < 1 || t.size[1] % groups)
    sw_call_stop(c, SW_INVALID, "channels can't be shuffled by %lld", (long long)groups);
  size[0] = t.size[0];
  size[1] = groups;
  size[2] = t.size[1] / groups;
  memcpy(size + 3, t.size + 2, (size_t)(t.rank - 2) * sizeof size[0]);
  struct sw_tensor v = sw_call_reshape(c, &t, t.rank + 1, size);
  v = sw_tensor_move(&v, 2, 1);
  v = sw_call_reshape(c, &v, t.rank, t.size);
  put(c, &v);
}

/* [n, c, h r, w r] as [n, c r r, h, w]. */
void sw_op_pixel_unshuffle(struct sw_call *c)
{
  struct sw_tensor t = sw_call_tensor(c, "self");
  int64_t r = sw_call_int(c, "downscale_factor"), size[SW_MAX_RANK];
  int k = t.rank - 3;
  if (k < 0 || t.rank + 2 > SW_MAX_RANK || r < 1 || r > 1 << 15 || t.size[k + 1] % r || t.size[k + 2] % r)
    sw_call_stop(c, SW_INVALID, "pixels can't be unshuffled by %lld", (long long)r);
  memcpy(size, t.size, sizeof size);
  int64_t parts[] = {t.size[k], t.size[k + 1] / r, r, t.size[k + 2] / r, r};
  memcpy(&size[k], parts, sizeof parts);
  struct sw_tensor v = sw_call_reshape(c, &t, t.rank + 2, size);
  v = sw_tensor_move(&v, k + 2, k + 1); /* c r h w r */
  v = sw_tensor_move(&v, k + 4, k + 2); /* c r r h w */
  memcpy(size, t.size, sizeof size);
  size[k] *= r * r;
  size[k + 1] /= r;
  size[k + 2] /= r;
  v = sw_call_reshape(c, &v, t.rank, size);
  put(c, &v);
}
