/* Copies, casts, creation, concatenation, padding, writes into slices. Reference: ops.md 5.10. */
#include "compiler/lower/families.h"

#include <math.h>
#include <string.h>

/* Whether values of this class are written in place by anybody. */
static bool is_mutated(struct lower *l, int value)
{
  return l->values[l->values[value].root].mutated;
}

/* Whether two values lie in memory alike. */
static bool same_strides(const struct lower *l, int a, int b)
{
  const struct sw_value *x = &l->graph->values.v[a], *y = &l->graph->values.v[b];
  return x->rank == y->rank && x->dtype == y->dtype && !memcmp(x->size, y->size, (size_t)x->rank * sizeof *x->size) &&
         !memcmp(x->stride, y->stride, (size_t)x->rank * sizeof *x->stride);
}

/* A tensor that this program made, as it lies in memory, which leaves it under no other name. */
static bool is_ours(struct lower *l, int value, struct tensor x)
{
  const struct sw_storage *s = lw_known(x) ? &l->program->storages.v[x.storage] : NULL;
  return s && s->kind == SW_STORAGE_TEMPORARY && !l->values[l->values[value].root].output && lw_is_contiguous(x) &&
         sw_storage_elements(s) == sw_value_elements(&l->graph->values.v[value]);
}

/* A clone is nothing unless somebody writes into the copy or the original: in profile best any that stays inside or
 * changes no place, in the reference one that changes no stride and would not make an output of an input or of another
 * output. */
void lw_op_clone(struct lower *l, int unused)
{
  (void)unused;
  const struct sw_arg *a = &lw_node(l)->args[0];
  struct tensor x = lw_tensor_of(l, a);
  int result = lw_node(l)->results[0], root = l->values[a->value].root;
  bool shared = !is_mutated(l, a->value) && !is_mutated(l, result), out = l->values[result].output;
  if (l->best)
    shared = shared && (!out || is_ours(l, a->value, x));
  else
    shared = shared && same_strides(l, a->value, result) && !(out && (l->input_of[root] >= 0 || l->values[root].output));
  lw_set(l, 0, shared ? x : lw_clone(l, x));
}

/* A view where it is contiguous already, as in PyTorch. */
void lw_op_contiguous(struct lower *l, int unused)
{
  (void)unused;
  struct tensor x = lw_tensor(l, "self");
  if (!lw_known(x) || lw_is_contiguous(x))
    lw_set(l, 0, x);
  else
    lw_op_clone(l, 0);
}

void lw_op_cast(struct lower *l, int unused)
{
  (void)unused;
  const struct sw_arg *a = &lw_node(l)->args[0];
  enum sw_dtype t = lw_result_dtype(l, 0);
  if (lw_constant_elements(l, a->value)) {
    lw_set(l, 0, lw_constant_value(l, a->value, t));
    return;
  }
  struct tensor x = lw_tensor_of(l, a);
  bool narrowed = x.dtype != l->graph->values.v[a->value].dtype; /* the float32 tensor that the graph casts is not there */
  if (lw_known(x) && x.dtype == t && !narrowed && !strcmp(lw_node(l)->target, "aten._to_copy.default")) {
    lw_op_clone(l, 0);
    return;
  }
  lw_set(l, 0, lw_cast(l, x, t));
}

/* copy_(dst, src) and copy(self, src): the source in the shape and dtype of the first; writing it is the caller's. */
void lw_op_copy(struct lower *l, int unused)
{
  (void)unused;
  const struct sw_value *v = lw_value(l, 0);
  struct tensor x = lw_argument(l, lw_arg(l, "src"), lw_result_dtype(l, 0));
  lw_set(l, 0, lw_expand(l, x, v->rank, v->size));
}

/* full, zeros, ones, *_like, new_*: folded where nobody writes into them and their shape is no other tensor's; this is the
 * other case. */
void lw_op_full(struct lower *l, int one)
{
  const struct sw_value *v = lw_value(l, 0);
  double value = one;
  const char *const names[] = {"fill_value", "value", "s"};
  for (int i = 0; i < 3; i++)
    if (lw_given(l, names[i]) && !lw_is_tensor(l, lw_arg(l, names[i])))
      value = lw_real(l, names[i]);
  enum sw_dtype t = lw_result_dtype(l, 0);
  if (!lw_computes(t))
    lw_host(l, 0);
  else if (l->best && (lw_node_writes(l, l->node) || !is_mutated(l, lw_node(l)->results[0])))
    lw_set(l, 0, lw_expand(l, lw_scalar(l, value, t), v->rank, v->size));
  else
    lw_set(l, 0, lw_fill(l, value, t, v->rank, v->size, l->best ? NULL : v->stride));
}

void lw_op_nothing(struct lower *l, int unused)
{
  (void)unused;
  (void)l;
}

void lw_op_dropout(struct lower *l, int unused)
{
  (void)unused;
  if (lw_bool(l, "train") && lw_real(l, "p") != 0)
    lw_refuse(l, "export the model in eval mode", "dropout in training mode");
  else
    lw_op_alias(l, 0);
}

void lw_op_refuse(struct lower *l, int unused)
{
  (void)unused;
  lw_refuse(l, lw_operation_of(l, lw_node(l))->note, "not supported");
}

/* -- pieces into one tensor -- */

struct tensor lw_join(struct lower *l, int n, const struct tensor *piece, int dim, struct tensor out)
{
  int64_t at = 0;
  for (int i = 0; i < n; i++) {
    if (!lw_known(piece[i]))
      return lw_unknown();
    if (piece[i].rank == 1 && piece[i].size[0] == 0)
      continue;
    lw_write(l, lw_slice(out, dim, at, piece[i].size[dim], 1), piece[i]);
    at += piece[i].size[dim];
  }
  return l->failed ? lw_unknown() : out;
}

static struct tensor result(struct lower *l)
{
  const struct sw_value *v = lw_value(l, 0);
  return lw_new(l, lw_result_dtype(l, 0), v->rank, v->size, v->stride);
}

/* stack as core ATen has it: a cat along the dim that is there already, then a view. */
static struct tensor stack_by_view(struct lower *l, int n, const struct tensor *piece, int dim)
{
  const struct sw_value *v = lw_value(l, 0);
  struct tensor out = piece[0];
  out.size[dim] *= n;
  out = lw_join(l, n, piece, dim, lw_new(l, out.dtype, out.rank, out.size, NULL));
  return lw_known(out) ? lw_reshape(l, out, v->rank, v->size) : out;
}

/* The half turn of rotary embeddings as a product with a signed permutation: exact for finite numbers, one op, and no half
 * of 32 lanes has to move inside a stick. out[n] = -x[n + D/2] for n < D/2, else x[n - D/2]. */
static struct tensor half_turn(struct lower *l, struct tensor x)
{
  int64_t d = x.size[x.rank - 1], size[] = {d, d};
  struct lw_table_key key = {LW_TABLE_ROTATION, d, 0, x.dtype};
  struct tensor r = lw_cached(l, key);
  if (!lw_known(r)) {
    double *m = SW_NEW_N(lw_scratch(l), double, (size_t)(d * d));
    for (int64_t n = 0; n < d; n++)
      m[(n < d / 2 ? n + d / 2 : n - d / 2) * d + n] = n < d / 2 ? -1 : 1;
    r = lw_table(l, sw_arena_printf(l->arena, "half_turn:%d:%s", (int)d, sw_dtype_text(x.dtype)), x.dtype, 2, size, m);
    lw_cache(l, key, r);
  }
  return lw_matmul(l, x, r);
}

/* Infinities and NaN come with floats of the user's: a product spreads them over the whole row, and the half turn does not. */
bool lw_is_given_floats(const struct lower *l)
{
  const struct sw_graph *g = l->graph;
  for (int i = 0; i < g->inputs.n; i++)
    if (g->inputs.v[i].kind == SW_INPUT_USER && g->inputs.v[i].value >= 0 &&
        sw_dtype_is_float(g->values.v[g->inputs.v[i].value].dtype))
      return true;
  return false;
}

static bool run_rotation(struct lower *l)
{
  enum sw_dtype t = lw_result_dtype(l, 0);
  int value = l->best && (t == SW_F16 || t == SW_BF16) ? lw_rotated_half(l, lw_node(l)) : -1;
  if (value < 0)
    return false;
  struct tensor x = lw_tensor_of_value(l, value);
  int64_t d = lw_known(x) ? x.size[x.rank - 1] : 0;
  if (!lw_known(x) || x.dtype != t || x.rank < 2 || d / 2 % 64 == 0) /* halves of whole sticks are copied as they are */
    return false;
  bool is_exact = !lw_is_given_floats(l);
  if (!is_exact && l->options->precision == SW_PRECISION_STRICT)
    return false;
  if (!is_exact)
    sw_warn(l->job, "precision: node %s: its halves are exchanged by a product with zeros and ones, which is right for finite "
                    "numbers", lw_node(l)->name);
  lw_set(l, 0, half_turn(l, x));
  return true;
}

void lw_op_cat(struct lower *l, int stack)
{
  if (!stack && run_rotation(l))
    return;
  const struct sw_arg *list = lw_arg(l, "tensors");
  int n = list->kind == SW_ARG_LIST ? list->list.n : 0;
  int dim = lw_dim(lw_int(l, "dim"), lw_value(l, 0)->rank);
  struct tensor *piece = SW_NEW_N(l->arena, struct tensor, n);
  for (int i = 0; i < n; i++) {
    piece[i] = lw_argument(l, &list->list.v[i], lw_result_dtype(l, 0));
    if (!lw_known(piece[i])) {
      lw_set(l, 0, lw_unknown());
      return;
    }
  }
  if (stack && n > 1 && dim < piece[0].rank) {
    lw_set(l, 0, stack_by_view(l, n, piece, dim));
    return;
  }
  for (int i = 0; stack && i < n; i++)
    piece[i] = lw_unsqueeze(piece[i], dim);
  lw_set(l, 0, n == 1 ? lw_clone(l, piece[0]) : lw_join(l, n, piece, dim, result(l)));
}

static const char *const pad_modes[] = {"reflect", "replicate", "circular"};

/* The row of n that stands at place i of the padded dim, i < 0 before it and i >= n behind it: 5 rows padded by 2 on
 * both sides are 2 1 | 0 1 2 3 4 | 3 2 (reflect), 0 0 | .. | 4 4 (replicate), 3 4 | .. | 0 1 (circular, over the rows that negative padding leaves). */
static int64_t padded_row(int mode, int64_t i, int64_t n, int64_t before, int64_t after)
{
  int64_t first = before < 0 ? -before : 0, left = n - first + (after < 0 ? after : 0);
  if (mode == 0)
    return i < 0 ? -i : i >= n ? 2 * (n - 1) - i : i;
  if (mode == 1)
    return i < 0 ? 0 : i >= n ? n - 1 : i;
  return first + ((i - first) % left + left) % left;
}

/* Padding with rows of the tensor itself, outer dims first. False: no such mode. */
static bool pad_by_rows(struct lower *l, const char *name)
{
  struct tensor x = lw_argument(l, &lw_node(l)->args[0], lw_result_dtype(l, 0));
  int64_t pad[SW_MAX_RANK];
  int n = lw_ints(l, "pad", pad) / 2, mode = 0;
  while (mode < 3 && strcmp(name, pad_modes[mode]))
    mode++;
  for (int i = n - 1; mode < 3 && i >= 0 && lw_known(x); i--) {
    int dim = x.rank - 1 - i;
    int64_t size = x.size[dim], rows = size + pad[2 * i] + pad[2 * i + 1];
    if (!pad[2 * i] && !pad[2 * i + 1])
      continue;
    if (size + (pad[2 * i] < 0 ? pad[2 * i] : 0) + (pad[2 * i + 1] < 0 ? pad[2 * i + 1] : 0) < 1)
      lw_refuse(l, "a smaller negative padding", "nothing is left of a dim to pad it with");
    if (l->failed)
      break;
    int64_t *row = SW_NEW_N(lw_scratch(l), int64_t, rows);
    for (int64_t k = 0; k < rows; k++)
      row[k] = padded_row(mode, k - pad[2 * i], size, pad[2 * i], pad[2 * i + 1]);
    x = lw_known_rows(l, x, dim, rows, row);
  }
  if (mode < 3)
    lw_set(l, 0, x);
  return mode < 3;
}

/* pads: (before, after) from the last dim on; a negative one crops. */
void lw_op_pad(struct lower *l, int unused)
{
  (void)unused;
  const struct sw_arg *mode = lw_arg(l, "mode");
  enum sw_dtype t = lw_result_dtype(l, 0);
  if (mode->kind == SW_ARG_STR && strcmp(mode->s, "constant")) {
    if (!l->best || (t != SW_F16 && t != SW_BF16) || !pad_by_rows(l, mode->s))
      lw_host(l, 0);
    return;
  }
  const struct sw_value *v = lw_value(l, 0);
  struct tensor x = lw_argument(l, &lw_node(l)->args[0], t);
  int64_t pad[SW_MAX_RANK];
  int n = lw_ints(l, "pad", pad) / 2;
  if (!lw_known(x)) {
    lw_set(l, 0, x);
    return;
  }
  struct tensor out = lw_new(l, t, v->rank, v->size, NULL), inner = out;
  struct tensor value = lw_scalar(l, lw_given(l, "value") ? lw_real(l, "value") : 0, t);
  for (int i = 0; i < n; i++) {
    int dim = x.rank - 1 - i;
    int64_t before = pad[2 * i], after = pad[2 * i + 1];
    if (before < 0)
      x = lw_slice(x, dim, -before, x.size[dim] + before, 1);
    if (after < 0)
      x = lw_slice(x, dim, 0, x.size[dim] + after, 1);
    if (before > 0)
      lw_write(l, lw_slice(out, dim, 0, before, 1), value);
    if (after > 0)
      lw_write(l, lw_slice(out, dim, out.size[dim] - after, after, 1), value);
    inner = lw_slice(inner, dim, before > 0 ? before : 0, x.size[dim], 1);
  }
  lw_write(l, inner, x);
  lw_set(l, 0, l->failed ? lw_unknown() : out);
}

/* -- a tensor with one part replaced -- */

/* A copy whose dims lie in memory in the order of x: a row-major tensor seen through the permutation that x is. */
static struct tensor clone_in_order(struct lower *l, struct tensor x)
{
  int order[SW_MAX_RANK], back[SW_MAX_RANK];
  int64_t stride[SW_MAX_RANK];
  lw_dense_strides(x.rank, x.size, x.stride, stride);
  for (int d = 0; d < x.rank; d++) {
    int at = d;
    for (; at > 0 && stride[order[at - 1]] < stride[d]; at--)
      order[at] = order[at - 1];
    order[at] = d;
  }
  for (int d = 0; d < x.rank; d++)
    back[order[d]] = d;
  return lw_permute(lw_clone(l, lw_permute(x, order)), back);
}

/* The tensor that a functional write starts from: the old value's own storage when nobody reads the old value any more
 * (profile best), else a copy. */
struct tensor lw_writable(struct lower *l, const struct sw_arg *a)
{
  struct tensor x = lw_argument(l, a, lw_result_dtype(l, 0));
  if (!lw_known(x))
    return x;
  const struct sw_storage *s = &l->program->storages.v[x.storage];
  bool whole = lw_is_tensor(l, a) && sw_storage_elements(s) == sw_value_elements(&l->graph->values.v[a->value]);
  if (l->best && whole && s->kind != SW_STORAGE_CONSTANT && s->kind != SW_STORAGE_SCALAR &&
      lw_is_last_use(l, a->value, x.storage)) {
    l->taken_over = x.storage;
    return x;
  }
  return l->best && !x.pair && x.dtype != SW_BOOL ? clone_in_order(l, x) : lw_clone(l, x);
}

static void replace_part(struct lower *l, struct tensor whole, struct tensor part)
{
  if (lw_known(whole))
    lw_write(l, part, lw_argument(l, lw_arg(l, "src"), whole.dtype));
  lw_set(l, 0, l->failed ? lw_unknown() : whole);
}

void lw_op_slice_scatter(struct lower *l, int unused)
{
  (void)unused;
  const struct sw_value *src = &l->graph->values.v[lw_arg(l, "src")->value];
  struct tensor x = lw_writable(l, lw_arg(l, "self"));
  if (!lw_known(x)) {
    lw_set(l, 0, x);
    return;
  }
  int dim = lw_dim(lw_int(l, "dim"), x.rank);
  int64_t start = lw_given(l, "start") ? lw_int(l, "start") : 0, step = lw_given(l, "step") ? lw_int(l, "step") : 1;
  start = start < 0 ? start + x.size[dim] : start;
  start = start < 0 ? 0 : start > x.size[dim] ? x.size[dim] : start;
  replace_part(l, x, lw_slice(x, dim, start, src->size[dim], step));
}

void lw_op_select_scatter(struct lower *l, int unused)
{
  (void)unused;
  struct tensor x = lw_writable(l, lw_arg(l, "self"));
  int dim = lw_dim(lw_int(l, "dim"), x.rank);
  int64_t index = lw_int(l, "index");
  replace_part(l, x, lw_known(x) ? lw_select(x, dim, index < 0 ? index + x.size[dim] : index) : x);
}

/* -- repetition: a broadcast dim, then a copy -- */

void lw_op_repeat(struct lower *l, int unused)
{
  (void)unused;
  const struct sw_value *v = lw_value(l, 0);
  struct tensor x = lw_tensor(l, "self");
  int64_t times[SW_MAX_RANK], wide[SW_MAX_RANK];
  int n = lw_ints(l, lw_given(l, "repeats") ? "repeats" : "dims", times), rank = 0;
  if (!lw_known(x) || 2 * v->rank > SW_MAX_RANK) {
    lw_set(l, 0, lw_known(x) ? lw_refuse(l, NULL, "rank %d", v->rank) : x);
    return;
  }
  struct tensor t = x;
  t.rank = 0;
  for (int d = 0; d < v->rank; d++) { /* every dim of the result: (times, size) */
    int own = d - (v->rank - x.rank), k = d - (v->rank - n);
    t.size[rank] = wide[rank] = k < 0 ? 1 : times[k];
    t.stride[rank++] = 0;
    t.size[rank] = wide[rank] = own < 0 ? 1 : x.size[own];
    t.stride[rank++] = own < 0 ? 0 : x.stride[own];
  }
  t.rank = rank;
  lw_set(l, 0, lw_reshape(l, t, v->rank, v->size));
}

void lw_op_repeat_interleave(struct lower *l, int unused)
{
  (void)unused;
  const struct sw_value *v = lw_value(l, 0);
  struct tensor x = lw_tensor(l, "self");
  if (!lw_given(l, "dim") && lw_known(x)) {
    int64_t n = sw_value_elements(&l->graph->values.v[lw_arg(l, "self")->value]);
    x = lw_reshape(l, x, 1, &n);
  }
  if (lw_known(x)) {
    int dim = lw_given(l, "dim") ? lw_dim(lw_int(l, "dim"), x.rank) : 0;
    x = lw_unsqueeze(x, dim + 1);
    x.size[dim + 1] = lw_int(l, "repeats");
  }
  lw_set(l, 0, lw_reshape(l, x, v->rank, v->size));
}

/* One dim at a time: the tail in front of the head. */
void lw_op_roll(struct lower *l, int unused)
{
  (void)unused;
  struct tensor x = lw_tensor(l, "self");
  int64_t shifts[SW_MAX_RANK], dims[SW_MAX_RANK];
  int n = lw_ints(l, "shifts", shifts), n_dims = lw_ints(l, "dims", dims);
  if (n_dims == 0) {
    lw_refuse(l, "name the dims", "a roll over the flattened tensor");
    return;
  }
  for (int i = 0; i < n && lw_known(x); i++) {
    int dim = lw_dim(dims[i], x.rank);
    int64_t size = x.size[dim], shift = size ? (shifts[i] % size + size) % size : 0;
    if (shift == 0)
      continue;
    struct tensor piece[] = {lw_slice(x, dim, size - shift, shift, 1), lw_slice(x, dim, 0, size - shift, 1)};
    x = lw_join(l, 2, piece, dim, result(l));
  }
  lw_set(l, 0, x);
}

void lw_op_fill_tensor(struct lower *l, int unused)
{
  (void)unused;
  const struct sw_value *v = lw_value(l, 0);
  struct tensor x = lw_argument(l, lw_arg(l, "value"), lw_result_dtype(l, 0));
  lw_set(l, 0, lw_expand(l, x, v->rank, v->size));
}

/* [.., C r r, H, W] as [.., C, r, r, H, W], in the order C, H, r, W, r. */
void lw_op_pixel_shuffle(struct lower *l, int unused)
{
  (void)unused;
  const struct sw_value *v = lw_value(l, 0);
  struct tensor x = lw_tensor(l, "self");
  int64_t r = lw_int(l, "upscale_factor");
  int n = x.rank - 3;
  if (!lw_known(x) || n + 5 > SW_MAX_RANK) {
    lw_set(l, 0, lw_unknown());
    return;
  }
  int64_t size[SW_MAX_RANK];
  int order[SW_MAX_RANK];
  for (int d = 0; d < n; d++) {
    size[d] = x.size[d];
    order[d] = d;
  }
  const int64_t split[] = {x.size[n] / (r * r), r, r, x.size[n + 1], x.size[n + 2]};
  const int moved[] = {n, n + 3, n + 1, n + 4, n + 2};
  memcpy(size + n, split, sizeof split);
  memcpy(order + n, moved, sizeof moved);
  lw_set(l, 0, lw_reshape(l, lw_permute(lw_reshape(l, x, n + 5, size), order), v->rank, v->size));
}
