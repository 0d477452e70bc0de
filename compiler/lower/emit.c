/* Storages and device ops. Every function appends at most a few ops to the program; with an unknown operand it appends
 * nothing and gives an unknown tensor. */
#include "compiler/lower/lower.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

void lw_contiguous_strides(int rank, const int64_t *size, int64_t *stride)
{
  int64_t n = 1;
  for (int d = rank - 1; d >= 0; d--) {
    stride[d] = n;
    n *= size[d] > 0 ? size[d] : 1;
  }
}

/* Dims in descending order of stride (size-1 dims keep their place in dim order: their stride says nothing), then
 * strides without gaps: size [4,3,5] stride [1,100,4] is ordered 1,2,0 and becomes [1,20,4]. */
void lw_dense_strides(int rank, const int64_t *size, const int64_t *like, int64_t *stride)
{
  int order[SW_MAX_RANK], n = 0;
  for (int d = 0; d < rank; d++) {
    if (size[d] > 1 && like[d] <= 0) {
      lw_contiguous_strides(rank, size, stride);
      return;
    }
    int at = n;
    if (size[d] > 1)
      while (at > 0 && size[order[at - 1]] > 1 && like[order[at - 1]] < like[d])
        at--;
    memmove(order + at + 1, order + at, (size_t)(n - at) * sizeof *order);
    order[at] = d;
    n++;
  }
  int64_t step = 1;
  for (int i = rank - 1; i >= 0; i--) {
    stride[order[i]] = step;
    step *= size[order[i]] > 0 ? size[order[i]] : 1;
  }
}

static const char *intermediate_name(struct lower *l)
{
  const struct sw_value *v = lw_value(l, 0);
  return sw_arena_printf(l->arena, "%s:%d", v ? v->name : lw_node(l)->name, ++l->n_named);
}

static int add_storage(struct lower *l, enum sw_storage_kind kind, enum sw_dtype dtype, const char *name)
{
  struct sw_storage *s = SW_PUSH(l->arena, &l->program->storages);
  s->kind = kind;
  s->dtype = dtype;
  s->name = name;
  s->input = -1;
  return l->program->storages.n - 1;
}

struct tensor lw_new(struct lower *l, enum sw_dtype dtype, int rank, const int64_t *size, const int64_t *stride)
{
  return lw_new_named(l, intermediate_name(l), dtype, rank, size, stride);
}

struct tensor lw_new_named(struct lower *l, const char *name, enum sw_dtype dtype, int rank, const int64_t *size,
                           const int64_t *stride)
{
  struct tensor t = {.dtype = dtype, .rank = rank};
  t.storage = add_storage(l, SW_STORAGE_TEMPORARY, dtype, name);
  struct sw_storage *s = &l->program->storages.v[t.storage];
  s->rank = rank;
  for (int d = 0; d < rank; d++)
    t.size[d] = s->size[d] = size[d];
  if (stride)
    lw_dense_strides(rank, size, stride, t.stride);
  else
    lw_contiguous_strides(rank, size, t.stride);
  memcpy(s->stride, t.stride, sizeof s->stride);
  return t;
}

static bool equal_sizes(int rank, const int64_t *a, const int64_t *b)
{
  for (int d = 0; d < rank; d++)
    if (a[d] != b[d])
      return false;
  return true;
}

/* Reference: layouts.md 3.1. In profile best a tensor of the shape of the node's result lies as PyTorch laid the result
 * out. */
struct tensor lw_new_like(struct lower *l, enum sw_dtype dtype, int rank, const int64_t *size, int n_in,
                          const struct tensor *in)
{
  if (!l->best) {
    int64_t voted[SW_MAX_RANK];
    lw_voted_strides(l, rank, size, n_in, in, voted);
    return lw_new(l, dtype, rank, size, voted);
  }
  const struct sw_value *v = lw_value(l, 0);
  if (v && v->kind == SW_VALUE_TENSOR && v->rank == rank && equal_sizes(rank, size, v->size))
    return lw_new(l, dtype, rank, size, v->stride);
  int64_t agreed[SW_MAX_RANK], own[SW_MAX_RANK];
  bool any = false;
  for (int i = 0; i < n_in; i++) {
    if (in[i].rank != rank || !equal_sizes(rank, size, in[i].size))
      continue;
    lw_dense_strides(rank, size, in[i].stride, own);
    if (any && !equal_sizes(rank, own, agreed))
      return lw_new(l, dtype, rank, size, NULL);
    memcpy(agreed, own, sizeof agreed);
    any = true;
  }
  return lw_new(l, dtype, rank, size, any ? agreed : NULL);
}

struct tensor lw_scalar(struct lower *l, double value, enum sw_dtype dtype)
{
  struct {
    double value;
    int64_t dtype;
  } key = {value, dtype};
  int64_t at = sw_map_get(&l->scalars, &key, sizeof key);
  if (at < 0) {
    char text[32];
    if (isfinite(value))
      sw_real_text(text, value);
    else
      snprintf(text, sizeof text, "%s", isnan(value) ? "nan" : value < 0 ? "-inf" : "inf");
    at = add_storage(l, SW_STORAGE_SCALAR, dtype, sw_arena_printf(l->arena, "%s:%s", text, sw_dtype_text(dtype)));
    l->program->storages.v[at].fill = value;
    sw_map_set(&l->scalars, &key, sizeof key, at);
  }
  return (struct tensor){.storage = (int)at, .dtype = dtype};
}

/* -- formats -- */

enum sw_dtype lw_lanes(struct lower *l, struct tensor t)
{
  if (!lw_known(t) || t.dtype != SW_BOOL)
    return t.dtype;
  return lw_storage(l, t.storage)->bool32 ? SW_F32 : SW_F16;
}

struct lw_storage *lw_storage(struct lower *l, int storage)
{
  if (storage >= l->cap_storages) {
    int cap = 2 * storage + 64;
    struct lw_storage *v = SW_NEW_N(l->arena, struct lw_storage, cap);
    if (l->cap_storages)
      memcpy(v, l->storages, (size_t)l->cap_storages * sizeof *v);
    l->storages = v;
    l->cap_storages = cap;
  }
  return &l->storages[storage];
}

static bool check_formats(struct lower *l, enum sw_device_op op, struct tensor out, int n_in, const struct tensor *in)
{
  for (int i = 0; i <= n_in; i++) {
    struct tensor t = i < n_in ? in[i] : out;
    enum sw_dtype lanes = lw_lanes(l, t);
    if (!sw_device_op_takes(op, lanes)) {
      lw_refuse(l,
                lanes == SW_F32 ? "compute this in float16: cast the operands before the node"
                                : "the device computes in float16 and float32 only: cast before the node",
                "the device has no %s on %s", sw_device_op_name(op), sw_dtype_torch(lanes));
      return false;
    }
  }
  return true;
}

/* -- ops -- */

static struct sw_access access_of(struct tensor t, int n_loops, const int64_t *range)
{
  struct sw_access x = {.storage = t.storage, .offset = t.offset, .index_input = -1};
  for (int d = 0, at = 0; d < n_loops; d++)
    if (range[d] != 1)
      x.step[at++] = t.stride[d];
  return x;
}

struct sw_op *lw_nest(struct lower *l, enum sw_device_op op, enum sw_op_role role, int n_written, int n_loops,
                      const int64_t *range, struct tensor out, int n_in, const struct tensor *in)
{
  bool known = lw_known(out);
  for (int i = 0; i < n_in; i++)
    known = known && lw_known(in[i]);
  if (!known || !check_formats(l, op, out, n_in, in))
    return NULL;
  int loops = 0, written = 0;
  for (int d = 0; d < n_loops; d++) {
    if (range[d] == 0)
      return NULL;
    if (range[d] != 1) {
      loops++;
      written += d < n_written;
    }
  }
  if (loops > SW_MAX_LOOPS) {
    lw_refuse(l, "merge dims before this node", "%d loops, the limit is %d", loops, SW_MAX_LOOPS);
    return NULL;
  }
  struct sw_op *o = SW_PUSH(l->arena, &l->program->ops);
  o->op = op;
  o->role = role;
  for (int d = 0; d < n_loops; d++)
    if (range[d] != 1)
      o->range[o->n_loops++] = range[d];
  o->n_written = written;
  o->n_in = n_in;
  bool cast_up = op == SW_OP_DL16TOFP32;
  for (int i = 0; i < n_in; i++) {
    o->in[i] = access_of(in[i], n_loops, range);
    cast_up = cast_up || lw_storage(l, in[i].storage)->cast_up;
  }
  lw_storage(l, out.storage)->cast_up |= cast_up && out.dtype == SW_F32;
  o->out = access_of(out, n_loops, range);
  if (l->node >= 0)
    *SW_PUSH(l->arena, &o->nodes) = l->node;
  o->source = lw_node(l)->source;
  struct sw_step *s = SW_PUSH(l->arena, &l->program->steps);
  s->index = l->program->ops.n - 1;
  return o;
}

void lw_constant(struct lower *l, struct sw_op *op, const char *name, double value)
{
  if (op)
    *SW_PUSH(l->arena, &op->constants) = (struct sw_named_number){name, value};
}

double lw_not_vanishing(const struct lower *l, double x, enum sw_dtype dtype)
{
  const double smallest = 0x1p-24; /* of float16; half of it still rounds to it */
  bool vanishes = x != 0 && fabs(x) <= smallest / 2 && (dtype == SW_F16 || dtype == SW_BF16);
  return vanishes && l->best ? copysign(smallest, x) : x;
}

/* A number that is added or a bound must not vanish. */
static struct tensor not_vanishing(struct lower *l, enum sw_device_op op, struct tensor t)
{
  bool bound = op == SW_OP_ADD || op == SW_OP_SUB || op == SW_OP_MAXIMUM || op == SW_OP_MINIMUM;
  if (!bound || l->program->storages.v[t.storage].kind != SW_STORAGE_SCALAR)
    return t;
  double x = l->program->storages.v[t.storage].fill, kept = lw_not_vanishing(l, x, t.dtype);
  if (kept != x)
    t.storage = lw_scalar(l, kept, t.dtype).storage;
  return t;
}

struct tensor lw_pointwise(struct lower *l, enum sw_device_op op, enum sw_dtype dtype, int n_in, const struct tensor *in)
{
  struct tensor x[SW_MAX_INPUTS];
  int rank;
  int64_t size[SW_MAX_RANK];
  for (int i = 0; i < n_in; i++)
    if (!lw_known(in[i]))
      return lw_unknown();
  if (!lw_broadcast(n_in, in, &rank, size))
    return lw_refuse(l, NULL, "the shapes of the operands do not broadcast");
  for (int i = 0; i < n_in; i++)
    x[i] = not_vanishing(l, op, lw_expand(l, in[i], rank, size));
  struct tensor out = lw_new_like(l, dtype, rank, size, n_in, l->best ? in : x);
  if (dtype == SW_BOOL && lw_lanes(l, in[0]) == SW_F32)
    lw_storage(l, out.storage)->bool32 = true;
  lw_nest(l, op, SW_ROLE_PLAIN, rank, rank, size, out, n_in, x);
  return l->failed ? lw_unknown() : out;
}

struct tensor lw_unary(struct lower *l, enum sw_device_op op, struct tensor x)
{
  return lw_pointwise(l, op, x.dtype, 1, &x);
}

static bool is_comparison(enum sw_device_op op)
{
  return op == SW_OP_EQ || op == SW_OP_NE || op == SW_OP_GT || op == SW_OP_GE || op == SW_OP_LT || op == SW_OP_LE;
}

struct tensor lw_binary(struct lower *l, enum sw_device_op op, struct tensor a, struct tensor b)
{
  struct tensor in[] = {a, b};
  enum sw_dtype dtype = a.dtype == SW_BOOL ? b.dtype : a.dtype; /* a bool may stand for 0 and 1 among numbers */
  return lw_pointwise(l, op, is_comparison(op) ? SW_BOOL : dtype, 2, in);
}

struct tensor lw_binary_number(struct lower *l, enum sw_device_op op, struct tensor x, double number)
{
  return lw_known(x) ? lw_binary(l, op, x, lw_scalar(l, number, lw_lanes(l, x))) : x;
}

struct tensor lw_where(struct lower *l, struct tensor c, struct tensor a, struct tensor b)
{
  struct tensor in[] = {c, a, b};
  return lw_pointwise(l, SW_OP_WHERE, a.dtype, 3, in);
}

/* Reference: ops.md 4.1; an absent bound is the largest fp16 number. */
struct tensor lw_clip(struct lower *l, struct tensor x, double low, double high)
{
  if (isnan(low) || isnan(high))
    return lw_refuse(l, "leave the bound out", "a bound that is NaN");
  low = low > high ? high : low; /* as PyTorch: min(max(x, low), high); the card looks at the lower bound first */
  int before = l->program->ops.n;
  struct tensor y = lw_unary(l, SW_OP_CLIP, x);
  if (l->program->ops.n > before) {
    struct sw_op *op = &l->program->ops.v[before];
    lw_constant(l, op, "clipMin", lw_not_vanishing(l, low, x.dtype));
    lw_constant(l, op, "clipMax", lw_not_vanishing(l, high, x.dtype));
  }
  return y;
}

static struct tensor fill(struct lower *l, double value, enum sw_dtype dtype, int rank, const int64_t *size, const int64_t *stride)
{
  struct tensor t = lw_new(l, dtype, rank, size, stride);
  struct tensor s = lw_expand(l, lw_scalar(l, value, dtype), rank, size);
  lw_nest(l, SW_OP_IDENTITY, SW_ROLE_FILL, rank, rank, size, t, 1, &s);
  return t;
}

/* zeros_like and the like: the reference writes a tensor whose dims are in order of memory and looks at it in the order
 * that was asked for. */
struct tensor lw_fill(struct lower *l, double value, enum sw_dtype dtype, int rank, const int64_t *size, const int64_t *stride)
{
  if (l->best || !stride)
    return fill(l, value, dtype, rank, size, stride);
  int64_t dense[SW_MAX_RANK], sorted[SW_MAX_RANK];
  int at[SW_MAX_RANK]; /* dim of the written tensor */
  lw_dense_strides(rank, size, stride, dense);
  for (int d = 0; d < rank; d++) {
    at[d] = 0;
    for (int e = 0; e < rank; e++)
      at[d] += dense[e] > dense[d] || (dense[e] == dense[d] && e < d);
    sorted[at[d]] = size[d];
  }
  return lw_permute(fill(l, value, dtype, rank, sorted, NULL), at);
}

struct tensor lw_zeros(struct lower *l, enum sw_dtype dtype, int rank, const int64_t *size)
{
  struct tensor out = lw_new(l, dtype, rank, size, NULL);
  struct tensor zero = lw_expand(l, lw_scalar(l, 0, dtype), rank, size);
  lw_nest(l, SW_OP_IDENTITY, SW_ROLE_FILL, rank, rank, size, out, 1, &zero);
  return out;
}

struct tensor lw_clone(struct lower *l, struct tensor x)
{
  if (!lw_known(x))
    return x;
  if (x.pair)
    return lw_refuse(l, "reshape the real tensor before", "complex numbers that would have to be copied");
  struct tensor t = lw_new(l, x.dtype, x.rank, x.size, NULL);
  if (x.dtype == SW_BOOL && lw_lanes(l, x) == SW_F32)
    lw_storage(l, t.storage)->bool32 = true;
  lw_nest(l, SW_OP_IDENTITY, SW_ROLE_CLONE, x.rank, x.rank, x.size, t, 1, &x);
  return t;
}

void lw_write(struct lower *l, struct tensor dst, struct tensor src)
{
  if (!lw_known(dst) || !lw_known(src))
    return;
  src = lw_expand(l, lw_cast(l, src, dst.dtype), dst.rank, dst.size);
  /* Reading what is written here and there would depend on the order of the loops. */
  if (src.storage == dst.storage && !lw_same_view(src, dst))
    src = lw_clone(l, src);
  lw_nest(l, SW_OP_IDENTITY, SW_ROLE_WRITE, dst.rank, dst.rank, dst.size, dst, 1, &src);
}

/* -- casts (reference: ops.md 1.3) -- */

/* Float32 that the host casts to fp16. What a host step made has its lanes in host order, see is_host_float(). What is
 * loaded with an odd number of sticks in a row has half a pair at the end, and the device's cast takes pairs: a scalar,
 * 96 elements, but not 64 or 100. */
static bool is_cast_by_host(struct lower *l, struct tensor x)
{
  const struct sw_storage *s = &l->program->storages.v[x.storage];
  int64_t row = s->rank ? s->size[s->rank - 1] : 1;
  return l->best && (lw_storage(l, x.storage)->by_host || (s->kind != SW_STORAGE_TEMPORARY && row > 0 && (row - 1) / 32 % 2 == 0));
}

struct tensor lw_cast(struct lower *l, struct tensor x, enum sw_dtype dtype)
{
  if (!lw_known(x) || x.dtype == dtype)
    return x;
  const struct sw_storage *s = &l->program->storages.v[x.storage];
  if (s->kind == SW_STORAGE_SCALAR) {
    struct tensor c = lw_scalar(l, dtype == SW_BOOL ? s->fill != 0 : sw_dtype_is_float(dtype) ? s->fill : trunc(s->fill), dtype);
    return lw_expand(l, c, x.rank, x.size);
  }
  enum sw_dtype from = lw_lanes(l, x);
  if (dtype == SW_BOOL && (lw_is_half(from) || from == SW_F32))
    return lw_binary_number(l, SW_OP_NE, x, 0);
  if (lw_is_half(from) && lw_is_half(dtype))
    return lw_pointwise(l, SW_OP_IDENTITY, dtype, 1, &x);
  bool loaded_bool = x.dtype == SW_BOOL && s->kind != SW_STORAGE_TEMPORARY;
  if (from == SW_F32 && dtype == SW_F32)
    return lw_pointwise(l, SW_OP_IDENTITY, dtype, 1, &x);
  if (lw_is_half(from) && dtype == SW_F32 && !loaded_bool)
    return lw_pointwise(l, SW_OP_DL16TOFP32, dtype, 1, &x);
  if (from == SW_F32 && lw_is_half(dtype) && is_cast_by_host(l, x))
    return lw_host_cast(l, x, dtype);
  if (from == SW_F32 && lw_is_half(dtype))
    return lw_pointwise(l, SW_OP_FP32TODL16, dtype, 1, &x);
  if (from == SW_F8E4M3 && (dtype == SW_F16 || (l->best && dtype == SW_BF16)))
    return lw_pointwise(l, SW_OP_FP8TODL16, dtype, 1, &x);
  if (loaded_bool && dtype == SW_F32 && l->best) /* its lanes are fp16 on the device */
    return lw_cast(l, lw_cast(l, x, SW_F16), SW_F32);
  return lw_host_cast(l, x, dtype);
}

struct tensor lw_operand(struct lower *l, struct tensor x, enum sw_dtype dtype)
{
  if (lw_known(x) && x.dtype == SW_BOOL && l->best && lw_lanes(l, x) == (dtype == SW_BF16 ? SW_F16 : dtype))
    return x;
  return lw_cast(l, x, dtype);
}

/* -- reductions -- */

/* A row that is one number all along a dim that stays: the sum is made once, and spread afterwards. The card could not do
 * it in one go, since its operand has no stick along that dim and its result needs one. */
static struct tensor reduce_and_spread(struct lower *l, enum sw_device_op op, struct tensor x, uint32_t dims, bool keepdim)
{
  int64_t size[SW_MAX_RANK];
  int rank = 0;
  bool is_number = true; /* nothing but one number */
  struct tensor once = x;
  for (int d = 0; d < x.rank; d++) {
    bool stays = !(dims >> d & 1);
    once.size[d] = stays && x.stride[d] == 0 ? 1 : x.size[d];
    is_number &= once.size[d] == 1 || x.stride[d] == 0;
    if (keepdim || stays)
      size[rank++] = stays ? x.size[d] : 1;
  }
  if (is_number)
    once = lw_clone(l, once);
  return lw_clone(l, lw_expand(l, lw_reduce(l, op, once, dims, keepdim), rank, size));
}

/* Reduced dims along which x is one number (an expanded tensor): the card reads x's lanes, not the number once a step of the loop. The
 * largest, smallest and mean of n equal numbers is the number, so the dim is 1; their sum is n times it, *times then; for
 * a product or more than 2048 numbers, not all of which fp16 can count, they are written out first. */
static struct tensor without_repeats(struct lower *l, enum sw_device_op op, struct tensor x, uint32_t dims, int64_t *times)
{
  int64_t n = 1;
  struct tensor once = x;
  *times = 1;
  for (int d = 0; d < x.rank; d++)
    if (dims >> d & 1 && x.size[d] > 1 && x.stride[d] == 0) {
      n *= x.size[d];
      once.size[d] = 1;
    }
  if (n == 1 || sw_storage_elements(&l->program->storages.v[x.storage]) == 0)
    return x;
  if (op == SW_OP_MAX || op == SW_OP_MIN || op == SW_OP_MEAN)
    return once;
  if (op != SW_OP_SUM || n > 2048)
    return lw_clone(l, x);
  *times = n;
  return once;
}

struct tensor lw_reduce(struct lower *l, enum sw_device_op op, struct tensor x, uint32_t dims, bool keepdim)
{
  if (!lw_known(x))
    return x;
  int64_t times;
  x = without_repeats(l, op, x, dims, &times);
  if (times > 1)
    return lw_binary_number(l, SW_OP_MUL, lw_reduce(l, op, x, dims, keepdim), (double)times);
  if (!lw_known(x))
    return x;
  int last = x.rank - 1;
  if (last >= 0 && !(dims >> last & 1) && x.stride[last] == 0 && x.size[last] > 1 && op != SW_OP_EXX2)
    return reduce_and_spread(l, op, x, dims, keepdim);
  int order[SW_MAX_RANK] = {0}, n = 0;
  int64_t kept[SW_MAX_RANK], range[SW_MAX_RANK], count = 1;
  for (int d = 0; d < x.rank; d++)
    if (!(dims >> d & 1)) {
      kept[n] = x.size[d];
      order[n++] = d;
    }
  int n_kept = n;
  for (int d = 0; d < x.rank; d++)
    if (dims >> d & 1) {
      order[n++] = d;
      count *= x.size[d];
    }
  struct tensor in = lw_permute(x, order);
  memcpy(range, in.size, sizeof range);
  struct tensor out, votes = in;
  int n_votes = !l->best;
  if (keepdim) {
    int64_t full[SW_MAX_RANK];
    votes = x;
    for (int d = 0; d < x.rank; d++) {
      full[d] = dims >> d & 1 ? 1 : x.size[d];
      votes.stride[d] = dims >> d & 1 ? 0 : x.stride[d];
    }
    out = lw_new_like(l, x.dtype, x.rank, full, n_votes, &votes);
  } else {
    out = lw_new_like(l, x.dtype, n_kept, kept, n_votes, &votes);
  }
  if (x.dtype == SW_BOOL && lw_lanes(l, x) == SW_F32)
    lw_storage(l, out.storage)->bool32 = true;
  struct tensor nest = keepdim ? lw_permute(out, order) : out;
  for (int d = n_kept; d < n; d++)
    nest.stride[d] = 0;
  if (count == 0) { /* nothing to reduce: the neutral element */
    if (op != SW_OP_SUM && op != SW_OP_PROD && sw_storage_elements(&l->program->storages.v[out.storage]) > 0)
      return lw_refuse(l, "drop this node", "a reduction over no elements");
    lw_write(l, out, lw_scalar(l, op == SW_OP_PROD, out.dtype));
    return out;
  }
  if (count == 1 && op != SW_OP_EXX2) { /* nothing to reduce: a copy */
    lw_nest(l, SW_OP_IDENTITY, SW_ROLE_PLAIN, n_kept, n, range, nest, 1, &in);
    return out;
  }
  struct sw_op *o = lw_nest(l, op, SW_ROLE_PLAIN, n_kept, n, range, nest, 1, &in);
  if (op == SW_OP_MEAN)
    lw_constant(l, o, "scaling_factor", 1.0 / (double)count);
  return out;
}
