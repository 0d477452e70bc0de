#include "compiler/eval/tensor.h"

#include "base/number.h"
#include "compiler/eval/float.h"

#include <complex.h>
#include <math.h>
#include <string.h>

enum sw_class sw_class_of(enum sw_dtype t)
{
  return sw_dtype_is_complex(t) ? SW_CLASS_COMPLEX : sw_dtype_is_float(t) ? SW_CLASS_REAL : SW_CLASS_WHOLE;
}

int64_t sw_whole_to(enum sw_dtype t, int64_t x)
{
  switch (t) {
  case SW_BOOL:
    return x != 0;
  case SW_U8:
    return (uint8_t)x;
  case SW_I8:
    return (int8_t)x;
  case SW_U16:
    return (uint16_t)x;
  case SW_I16:
    return (int16_t)x;
  case SW_U32:
    return (uint32_t)x;
  case SW_I32:
    return (int32_t)x;
  default:
    return x;
  }
}

static double rounded(enum sw_dtype t, double x, enum sw_rounding r)
{
  return r == SW_ROUND_DTYPE || sw_dtype_bytes(t) == 1 ? sw_round_to(t, x) : x;
}

static enum sw_dtype part_of(enum sw_dtype complex_dtype)
{
  return complex_dtype == SW_C32 ? SW_F16 : complex_dtype == SW_C64 ? SW_F32 : SW_F64;
}

void sw_row_reals(const struct sw_tensor *t, int64_t at, int64_t step, int64_t n, double *out)
{
  if (sw_class_of(t->dtype) == SW_CLASS_WHOLE) {
    const int64_t *v = t->cells->integer;
    for (int64_t i = 0; i < n; i++)
      out[i] = t->dtype == SW_U64 ? (double)(uint64_t)v[at + i * step] : (double)v[at + i * step];
    return;
  }
  int64_t width = sw_class_of(t->dtype) == SW_CLASS_COMPLEX ? 2 : 1;
  const double *v = t->cells->real;
  for (int64_t i = 0; i < n; i++)
    out[i] = v[(at + i * step) * width];
}

void sw_row_wholes(const struct sw_tensor *t, int64_t at, int64_t step, int64_t n, int64_t *out)
{
  if (sw_class_of(t->dtype) == SW_CLASS_WHOLE) {
    const int64_t *v = t->cells->integer;
    for (int64_t i = 0; i < n; i++)
      out[i] = v[at + i * step];
    return;
  }
  int64_t width = sw_class_of(t->dtype) == SW_CLASS_COMPLEX ? 2 : 1;
  const double *v = t->cells->real;
  for (int64_t i = 0; i < n; i++)
    out[i] = sw_whole_of_real(v[(at + i * step) * width]);
}

/* Not re + im * I, which is NaN for an infinite im. */
double _Complex sw_complex(double re, double im)
{
  double parts[2] = {re, im};
  double _Complex z;
  memcpy(&z, parts, sizeof z);
  return z;
}

void sw_row_complex(const struct sw_tensor *t, int64_t at, int64_t step, int64_t n, double _Complex *out)
{
  for (int64_t i = 0; i < n; i++) {
    int64_t j = at + i * step;
    if (sw_class_of(t->dtype) == SW_CLASS_COMPLEX)
      out[i] = sw_complex(t->cells->real[2 * j], t->cells->real[2 * j + 1]);
    else {
      double re;
      sw_row_reals(t, j, 1, 1, &re);
      out[i] = re;
    }
  }
}

void sw_row_put_reals(const struct sw_tensor *t, int64_t at, int64_t step, int64_t n, const double *v,
                      enum sw_rounding r)
{
  switch (sw_class_of(t->dtype)) {
  case SW_CLASS_WHOLE:
    for (int64_t i = 0; i < n; i++)
      t->cells->integer[at + i * step] =
          t->dtype == SW_BOOL ? v[i] != 0 : sw_whole_to(t->dtype, sw_whole_of_real(v[i]));
    return;
  case SW_CLASS_REAL:
    for (int64_t i = 0; i < n; i++)
      t->cells->real[at + i * step] = rounded(t->dtype, v[i], r);
    return;
  case SW_CLASS_COMPLEX:
    for (int64_t i = 0; i < n; i++) {
      double *z = &t->cells->real[2 * (at + i * step)];
      z[0] = rounded(part_of(t->dtype), v[i], r);
      z[1] = 0;
    }
  }
}

void sw_row_put_wholes(const struct sw_tensor *t, int64_t at, int64_t step, int64_t n, const int64_t *v,
                       enum sw_rounding r)
{
  for (int64_t i = 0; i < n; i++) {
    double x = (double)v[i];
    if (sw_class_of(t->dtype) == SW_CLASS_WHOLE)
      t->cells->integer[at + i * step] = sw_whole_to(t->dtype, v[i]);
    else
      sw_row_put_reals(t, at + i * step, 1, 1, &x, r);
  }
}

void sw_row_put_complex(const struct sw_tensor *t, int64_t at, int64_t step, int64_t n, const double _Complex *v,
                        enum sw_rounding r)
{
  for (int64_t i = 0; i < n; i++) {
    double re = creal(v[i]);
    sw_row_put_reals(t, at + i * step, 1, 1, &re, r);
    if (sw_class_of(t->dtype) == SW_CLASS_COMPLEX)
      t->cells->real[2 * (at + i * step) + 1] = rounded(part_of(t->dtype), cimag(v[i]), r);
  }
}

/* -- walking -- */

void sw_walk(struct sw_walk *w, int n_tensors, const struct sw_tensor *const *ts)
{
  w->n_tensors = n_tensors;
  w->rank = 0;
  w->more = true;
  for (int k = 0; k < n_tensors; k++)
    w->at[k] = ts[k]->offset;
  for (int d = 0; d < ts[0]->rank; d++) {
    int64_t size = ts[0]->size[d];
    if (size == 0)
      w->more = false;
    if (size == 1)
      continue;
    /* The dim before goes on in this one when each of its steps is a whole run of this one. */
    bool joins = w->rank > 0;
    for (int k = 0; k < n_tensors && joins; k++)
      joins = w->stride[k][w->rank - 1] == ts[k]->stride[d] * size;
    if (!joins)
      w->size[w->rank++] = 1;
    w->size[w->rank - 1] *= size;
    for (int k = 0; k < n_tensors; k++)
      w->stride[k][w->rank - 1] = ts[k]->stride[d];
  }
  w->n = 1;
  if (w->rank > 0)
    w->n = w->size[--w->rank];
  for (int k = 0; k < n_tensors; k++)
    w->step[k] = w->n > 1 ? w->stride[k][w->rank] : 0;
  memset(w->index, 0, sizeof w->index);
}

void sw_walk_on(struct sw_walk *w)
{
  for (int d = w->rank - 1; d >= 0; d--) {
    bool wraps = ++w->index[d] == w->size[d];
    for (int k = 0; k < w->n_tensors; k++)
      w->at[k] += wraps ? -w->stride[k][d] * (w->size[d] - 1) : w->stride[k][d];
    if (!wraps)
      return;
    w->index[d] = 0;
  }
  w->more = false;
}

/* Rows are converted in pieces of this many elements. */
enum { PIECE = 256 };

void sw_tensor_copy(const struct sw_tensor *to, const struct sw_tensor *from, enum sw_rounding r)
{
  enum sw_class a = sw_class_of(to->dtype), b = sw_class_of(from->dtype);
  struct sw_walk w;
  for (sw_walk(&w, 2, (const struct sw_tensor *const[]){to, from}); w.more; sw_walk_on(&w))
    for (int64_t i = 0; i < w.n; i += PIECE) {
      int64_t n = w.n - i < PIECE ? w.n - i : PIECE, at = w.at[0] + i * w.step[0], src = w.at[1] + i * w.step[1];
      if (a == SW_CLASS_WHOLE && b == SW_CLASS_WHOLE) {
        int64_t v[PIECE];
        sw_row_wholes(from, src, w.step[1], n, v);
        sw_row_put_wholes(to, at, w.step[0], n, v, r);
      } else if (a == SW_CLASS_COMPLEX && b == SW_CLASS_COMPLEX) {
        double _Complex v[PIECE];
        sw_row_complex(from, src, w.step[1], n, v);
        sw_row_put_complex(to, at, w.step[0], n, v, r);
      } else {
        double v[PIECE];
        sw_row_reals(from, src, w.step[1], n, v);
        sw_row_put_reals(to, at, w.step[0], n, v, r);
      }
    }
}

void sw_get_reals(const struct sw_tensor *t, double *out)
{
  struct sw_walk w;
  for (sw_walk(&w, 1, &t); w.more; sw_walk_on(&w), out += w.n)
    sw_row_reals(t, w.at[0], w.step[0], w.n, out);
}

void sw_get_wholes(const struct sw_tensor *t, int64_t *out)
{
  struct sw_walk w;
  for (sw_walk(&w, 1, &t); w.more; sw_walk_on(&w), out += w.n)
    sw_row_wholes(t, w.at[0], w.step[0], w.n, out);
}

void sw_put_reals(const struct sw_tensor *t, const double *v, enum sw_rounding r)
{
  struct sw_walk w;
  for (sw_walk(&w, 1, &t); w.more; sw_walk_on(&w), v += w.n)
    sw_row_put_reals(t, w.at[0], w.step[0], w.n, v, r);
}

void sw_put_wholes(const struct sw_tensor *t, const int64_t *v, enum sw_rounding r)
{
  struct sw_walk w;
  for (sw_walk(&w, 1, &t); w.more; sw_walk_on(&w), v += w.n)
    sw_row_put_wholes(t, w.at[0], w.step[0], w.n, v, r);
}

/* -- sizes -- */

bool sw_product(int n, const int64_t *size, int64_t *product)
{
  int64_t p = 1;
  bool fits = true, empty = false;
  for (int d = 0; d < n; d++) {
    if (size[d] < 0)
      return false;
    empty = empty || size[d] == 0;
    fits = fits && !__builtin_mul_overflow(p, size[d], &p);
  }
  *product = empty ? 0 : p;
  return fits || empty;
}

int64_t sw_tensor_elements(const struct sw_tensor *t)
{
  int64_t n;
  return sw_product(t->rank, t->size, &n) ? n : 0;
}

void sw_dense(int rank, const int64_t *size, int64_t *stride)
{
  int64_t step = 1;
  for (int d = rank - 1; d >= 0; d--) {
    stride[d] = step;
    step *= size[d] > 1 ? size[d] : 1;
  }
}

void sw_tensor_tidy(struct sw_tensor *t)
{
  int64_t n;
  if (sw_product(t->rank, t->size, &n) && n == 0) {
    t->offset = 0;
    for (int d = 0; d < t->rank; d++)
      t->stride[d] = 0;
  }
  for (int d = 0; d < t->rank; d++)
    if (t->size[d] == 1)
      t->stride[d] = 0;
}

bool sw_tensor_inside(const struct sw_tensor *t)
{
  int64_t n, low = t->offset, high = t->offset;
  if (!sw_product(t->rank, t->size, &n))
    return false;
  if (n == 0)
    return true;
  for (int d = 0; d < t->rank; d++) {
    int64_t reach, *end = t->stride[d] < 0 ? &low : &high;
    if (__builtin_mul_overflow(t->stride[d], t->size[d] - 1, &reach) || __builtin_add_overflow(*end, reach, end))
      return false;
  }
  int64_t have = t->cells->n;
  enum sw_class held = sw_class_of(t->cells->dtype), shown = sw_class_of(t->dtype);
  if (held == SW_CLASS_COMPLEX && shown == SW_CLASS_REAL)
    have *= 2;
  else if (held == SW_CLASS_REAL && shown == SW_CLASS_COMPLEX)
    have /= 2;
  else if (held != shown)
    return false;
  return low >= 0 && high < have;
}

struct sw_tensor sw_tensor_at(const struct sw_tensor *t, int dim, int64_t index)
{
  struct sw_tensor v = *t;
  v.offset += index * t->stride[dim];
  v.rank--;
  for (int d = dim; d < v.rank; d++) {
    v.size[d] = t->size[d + 1];
    v.stride[d] = t->stride[d + 1];
  }
  return v;
}

struct sw_tensor sw_tensor_move(const struct sw_tensor *t, int from, int to)
{
  struct sw_tensor v = *t;
  int step = from < to ? 1 : -1;
  for (int d = from; d != to; d += step) {
    v.size[d] = t->size[d + step];
    v.stride[d] = t->stride[d + step];
  }
  v.size[to] = t->size[from];
  v.stride[to] = t->stride[from];
  return v;
}

/* -- bytes -- */

const void *sw_tensor_bytes(struct sw_arena *a, const struct sw_tensor *t, size_t *n_bytes)
{
  size_t n = (size_t)sw_tensor_elements(t), part = (size_t)sw_dtype_bytes(t->dtype);
  enum sw_class class = sw_class_of(t->dtype);
  bool pairs = class == SW_CLASS_COMPLEX;
  enum sw_dtype number = pairs ? part_of(t->dtype) : t->dtype;
  unsigned char *bytes = sw_arena_alloc(a, n, part), *p = bytes;
  part = (size_t)sw_dtype_bytes(number);
  struct sw_walk w;
  for (sw_walk(&w, 1, &t); w.more; sw_walk_on(&w))
    for (int64_t i = 0; i < w.n; i++) {
      int64_t at = w.at[0] + i * w.step[0];
      for (int k = 0; k <= pairs; k++, p += part) {
        uint64_t u;
        if (class == SW_CLASS_WHOLE)
          u = (uint64_t)t->cells->integer[at];
        else
          u = sw_float_encode(number, sw_round_to(number, t->cells->real[pairs ? 2 * at + k : at]));
        for (size_t b = 0; b < part; b++)
          p[b] = (unsigned char)(u >> 8 * b);
      }
    }
  *n_bytes = n * (size_t)sw_dtype_bytes(t->dtype);
  return bytes;
}

static uint64_t little_endian(const unsigned char *p, int bytes)
{
  uint64_t u = 0;
  for (int b = 0; b < bytes; b++)
    u |= (uint64_t)p[b] << 8 * b;
  return u;
}

void sw_cells_decode(struct sw_cells *c, const unsigned char *bytes)
{
  if (sw_class_of(c->dtype) == SW_CLASS_WHOLE) {
    int width = sw_dtype_bytes(c->dtype);
    for (int64_t i = 0; i < c->n; i++)
      c->integer[i] = sw_whole_to(c->dtype, (int64_t)little_endian(bytes + i * width, width));
    return;
  }
  bool pairs = sw_class_of(c->dtype) == SW_CLASS_COMPLEX;
  enum sw_dtype number = pairs ? part_of(c->dtype) : c->dtype;
  int width = sw_dtype_bytes(number);
  for (int64_t i = 0; i < c->n * (pairs ? 2 : 1); i++)
    c->real[i] = sw_float_decode(number, little_endian(bytes + i * width, width));
}

void sw_tensor_from_bytes(struct sw_arena *a, struct sw_tensor *out, enum sw_dtype dtype, int rank, const int64_t *size,
                          const void *bytes)
{
  *out = (struct sw_tensor){.dtype = dtype, .rank = rank};
  if (rank > 0)
    memcpy(out->size, size, (size_t)rank * sizeof *size);
  sw_dense(rank, size, out->stride);
  struct sw_cells *c = out->cells = SW_NEW(a, struct sw_cells);
  c->dtype = dtype;
  c->n = sw_tensor_elements(out);
  if (sw_class_of(dtype) == SW_CLASS_WHOLE)
    c->integer = SW_NEW_N(a, int64_t, c->n);
  else
    c->real = sw_arena_alloc(a, (size_t)c->n, sw_dtype_is_complex(dtype) ? 2 * sizeof(double) : sizeof(double));
  sw_cells_decode(c, bytes);
}

const double *sw_tensor_reals(struct sw_arena *a, const struct sw_tensor *t, int64_t *n)
{
  *n = sw_tensor_elements(t);
  double *v = SW_NEW_N(a, double, *n);
  sw_get_reals(t, v);
  return v;
}
