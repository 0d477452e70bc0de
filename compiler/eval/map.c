/* Elementwise ops. */
#include "compiler/eval/kernels.h"
#include "compiler/eval/ops.h"

#include <complex.h>
#include <float.h>
#include <math.h>
#include <string.h>

/* Operands are gathered into pieces of this many elements; a kernel runs over a piece. */
enum { PIECE = 256, MAX_OPERANDS = 4 };

typedef void real_fn(int n, double (*x)[PIECE], double *y);
typedef void whole_fn(int n, int64_t (*x)[PIECE], int64_t *y);
typedef void complex_fn(int n, double _Complex (*x)[PIECE], double _Complex *y);

static uint64_t u(int64_t x)
{
  return (uint64_t)x;
}

static int64_t s(uint64_t x)
{
  return (int64_t)x;
}

/* Divisors are not 0: sw_apply has looked. */
static int64_t int_div(int64_t a, int64_t b)
{
  return b == -1 ? s(-u(a)) : a / b;
}

static int64_t int_floor_div(int64_t a, int64_t b)
{
  return b == -1 ? s(-u(a)) : a / b - (a % b != 0 && (a < 0) != (b < 0));
}

static int64_t int_pow(int64_t a, int64_t b)
{
  if (b < 0)
    return a == 1 ? 1 : a == -1 ? (b % 2 ? -1 : 1) : 0;
  uint64_t r = 1;
  for (uint64_t x = u(a); b > 0; b >>= 1, x *= x)
    if (b & 1)
      r *= x;
  return s(r);
}

/* As Python: the remainder has the divisor's sign. -7 // 2 is -4, -7 % 2 is 1. */
static double floor_mod(double a, double b)
{
  double r = fmod(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

static double floor_div(double a, double b)
{
  if (b == 0)
    return a / b;
  double q = (a - fmod(a, b)) / b;
  if (fmod(a, b) != 0 && (b < 0) != (fmod(a, b) < 0))
    q -= 1;
  return nearbyint(q);
}

static double clamp(double a, double low, double high)
{
  double x = a < low ? low : a;
  return x > high ? high : x;
}

/* Numbers nearer than eps to 0 or 1 count as eps away; NaN: no eps. */
static double logit(double a, double eps)
{
  if (!isnan(eps))
    a = a < eps ? eps : a > 1 - eps ? 1 - eps : a; /* PyTorch's order, which matters above 0.5 */
  return log(a / (1 - a));
}

static double sigmoid(double a)
{
  return 1 / (1 + exp(-a));
}

static double softplus(double a, double beta, double threshold)
{
  return a * beta > threshold ? a : log1p(exp(a * beta)) / beta;
}

#define LOOP(T, e)                                 \
  for (int i = 0; i < n; i++) {                    \
    T a = x[0][i], b = x[1][i], c = x[2][i], d = x[3][i]; \
    (void)a, (void)b, (void)c, (void)d;            \
    y[i] = (e);                                    \
  }
#define REAL(name, e)                                             \
  static void real_##name(int n, double (*x)[PIECE], double *y)   \
  {                                                               \
    LOOP(double, e)                                               \
  }
#define WHOLE(name, e)                                              \
  static void whole_##name(int n, int64_t (*x)[PIECE], int64_t *y)  \
  {                                                                 \
    LOOP(int64_t, e)                                                \
  }
#define BOTH(name, e, i) REAL(name, e) WHOLE(name, i)
#define TEST(name, e) REAL(name, e) WHOLE(name, e)
#define COMPLEX(name, e)                                                              \
  static void complex_##name(int n, double _Complex (*x)[PIECE], double _Complex *y)  \
  {                                                                                   \
    LOOP(double _Complex, e)                                                          \
  }
SW_KERNELS(REAL, BOTH, TEST, WHOLE)
SW_COMPLEX_KERNELS(COMPLEX)
#undef REAL
#undef WHOLE
#undef BOTH
#undef TEST
#undef COMPLEX

static const struct {
  real_fn *real;
  whole_fn *whole;
  bool is_test;
} kernels[SW_N_KERNELS] = {
#define REAL(name, e) [SW_K_##name] = {real_##name, NULL, false},
#define BOTH(name, e, i) [SW_K_##name] = {real_##name, whole_##name, false},
#define TEST(name, e) [SW_K_##name] = {real_##name, whole_##name, true},
#define WHOLE(name, e) [SW_K_##name] = {NULL, whole_##name, false},
    SW_KERNELS(REAL, BOTH, TEST, WHOLE)
#undef REAL
#undef BOTH
#undef TEST
#undef WHOLE
};

static complex_fn *const complex_kernels[SW_N_KERNELS] = {
#define COMPLEX(name, e) [SW_K_##name] = complex_##name,
    SW_COMPLEX_KERNELS(COMPLEX)
#undef COMPLEX
};

/* -- type promotion -- */

/* bool, integer, float, complex */
static int category(enum sw_dtype t)
{
  return sw_dtype_is_complex(t) ? 3 : sw_dtype_is_float(t) ? 2 : t == SW_BOOL ? 0 : 1;
}

/* The dtype that both fit. Of two floats the larger; fp16 and bf16 meet in float32; signed and unsigned of one width
 * in the next signed one. */
static enum sw_dtype join(enum sw_dtype a, enum sw_dtype b)
{
  if (a == b)
    return a;
  if (category(a) != category(b))
    return category(a) > category(b) ? a : b;
  int n = sw_dtype_bytes(a), m = sw_dtype_bytes(b);
  if (category(a) == 1 && (a == SW_U8 || b == SW_U8) && n == m)
    return SW_I16;
  if (n == m)
    return category(a) == 2 && n == 2 ? SW_F32 : a;
  return n > m ? a : b;
}

/* PyTorch's rule: tensors with dims decide, those without and numbers only when their category is higher. */
static enum sw_dtype promoted(int n, const struct sw_tensor *ts, const bool *is_number)
{
  enum sw_dtype best[3] = {SW_N_DTYPES, SW_N_DTYPES, SW_N_DTYPES}, r = SW_N_DTYPES;
  for (int k = 0; k < n; k++) {
    int level = is_number && is_number[k] ? 2 : ts[k].rank == 0 ? 1 : 0;
    enum sw_dtype t = level == 2 && ts[k].dtype == SW_F64 ? SW_F32 : ts[k].dtype;
    best[level] = best[level] == SW_N_DTYPES ? t : join(best[level], t);
  }
  for (int level = 0; level < 3; level++)
    if (best[level] != SW_N_DTYPES && (r == SW_N_DTYPES || category(best[level]) > category(r)))
      r = best[level];
  return r;
}

/* -- running -- */

static void refuse_zero_divisor(struct sw_call *c, enum sw_kernel k, const struct sw_tensor *t)
{
  if (k != SW_K_div_trunc && k != SW_K_div_floor && k != SW_K_remainder && k != SW_K_fmod)
    return;
  struct sw_walk w;
  for (sw_walk(&w, 1, &t); w.more; sw_walk_on(&w))
    for (int64_t i = 0; i < w.n; i++) {
      int64_t x;
      sw_row_wholes(t, w.at[0] + i * w.step[0], 1, 1, &x);
      if (x == 0)
        sw_call_stop(c, SW_INVALID, "an integer is divided by 0");
    }
}

union operands {
  double real[MAX_OPERANDS][PIECE];
  int64_t whole[MAX_OPERANDS][PIECE];
  double _Complex pair[MAX_OPERANDS][PIECE];
};

/* One row of the walk: ts[0] is written, n operands follow. */
static void run_row(struct sw_call *c, enum sw_kernel k, int n, enum sw_class class, const struct sw_walk *w,
                    const struct sw_tensor *const *ts, enum sw_dtype round_operands, union operands *x)
{
  union {
    double real[PIECE];
    int64_t whole[PIECE];
    double _Complex pair[PIECE];
  } y;
  for (int64_t i = 0; i < w->n; i += PIECE) {
    int m = (int)(w->n - i < PIECE ? w->n - i : PIECE);
    for (int j = 0; j < n; j++) {
      int64_t at = w->at[j + 1] + i * w->step[j + 1];
      if (class == SW_CLASS_WHOLE)
        sw_row_wholes(ts[j + 1], at, w->step[j + 1], m, x->whole[j]);
      else if (class == SW_CLASS_COMPLEX)
        sw_row_complex(ts[j + 1], at, w->step[j + 1], m, x->pair[j]);
      else
        sw_row_reals(ts[j + 1], at, w->step[j + 1], m, x->real[j]);
      for (int l = 0; l < m && class == SW_CLASS_REAL && round_operands != SW_N_DTYPES; l++)
        x->real[j][l] = sw_round_to(round_operands, x->real[j][l]);
    }
    int64_t at = w->at[0] + i * w->step[0];
    if (class == SW_CLASS_WHOLE) {
      kernels[k].whole(m, x->whole, y.whole);
      sw_row_put_wholes(ts[0], at, w->step[0], m, y.whole, c->rounding);
    } else if (class == SW_CLASS_COMPLEX) {
      complex_kernels[k](m, x->pair, y.pair);
      sw_row_put_complex(ts[0], at, w->step[0], m, y.pair, c->rounding);
    } else {
      kernels[k].real(m, x->real, y.real);
      sw_row_put_reals(ts[0], at, w->step[0], m, y.real, c->rounding);
    }
  }
}

void sw_apply(struct sw_call *c, const struct sw_tensor *to, enum sw_kernel k, int n, const struct sw_tensor *ts,
              const bool *is_number)
{
  struct sw_tensor out = *to, seen[MAX_OPERANDS];
  const struct sw_tensor *all[MAX_OPERANDS + 1] = {&out};
  for (int i = 0; i < n; i++) {
    seen[i] = sw_call_expand(c, &ts[i], out.rank, out.size);
    all[i + 1] = &seen[i];
  }
  int first = k == SW_K_where; /* the condition has no say */
  enum sw_dtype meet = promoted(n - first, ts + first, is_number ? is_number + first : NULL);
  enum sw_class class = sw_class_of(kernels[k].is_test ? meet : out.dtype);
  bool fits = category(meet) < 2 || category(meet) <= category(out.dtype);
  if (!kernels[k].is_test && !c->in_place && !fits)
    sw_call_stop(c, SW_INVALID, "operands of dtype %s do not give %s", sw_dtype_torch(meet), sw_dtype_torch(out.dtype));
  if (class == SW_CLASS_WHOLE && !kernels[k].whole)
    class = SW_CLASS_REAL;
  if (class == SW_CLASS_WHOLE)
    for (int i = 1; i < n; i++)
      refuse_zero_divisor(c, k, &ts[i]);
  if (class == SW_CLASS_REAL ? !kernels[k].real : class == SW_CLASS_COMPLEX && !complex_kernels[k])
    sw_call_stop(c, SW_UNSUPPORTED, "no meaning for dtype %s", sw_dtype_torch(out.dtype));
  /* Comparisons and remainders happen in the common dtype: 0.1 beside float16 values is 0.0999755859375. */
  bool in_common = kernels[k].is_test || k == SW_K_fmod || k == SW_K_remainder;
  bool rounds = in_common && c->rounding == SW_ROUND_DTYPE && sw_class_of(meet) == SW_CLASS_REAL;
  union operands x;
  memset(&x, 0, sizeof x);
  struct sw_walk w;
  for (sw_walk(&w, n + 1, all); w.more; sw_walk_on(&w))
    run_row(c, k, n, class, &w, all, rounds ? meet : SW_N_DTYPES, &x);
}

void sw_map(struct sw_call *c, int result, enum sw_kernel k, int n, const struct sw_tensor *ts, const bool *is_number)
{
  int64_t size[SW_MAX_RANK];
  int rank = 0;
  for (int i = 0; i < n; i++)
    rank = sw_call_broadcast(c, size, rank, &ts[i]);
  struct sw_tensor out = sw_call_out(c, result, rank, size);
  sw_apply(c, &out, k, n, ts, is_number);
}

/* -- ops -- */

/* Operands from the names in the table. A bound that is absent is none. */
static void map_args(struct sw_call *c, enum sw_kernel k, const char *names)
{
  struct sw_tensor ts[MAX_OPERANDS];
  bool is_number[MAX_OPERANDS];
  int n = 0;
  for (const char *p = names; *p && n < MAX_OPERANDS; n++) {
    size_t len = strcspn(p, " ");
    const char *name = sw_arena_strndup(c->scratch, p, len);
    p += len + (p[len] == ' ');
    if (k == SW_K_clamp && n > 0 && !sw_call_has(c, name)) {
      bool whole = sw_class_of(sw_call_out_dtype(c, 0)) == SW_CLASS_WHOLE, low = !strcmp(name, "min");
      ts[n] = sw_call_new(c, whole ? SW_I64 : SW_F64, 0, NULL);
      is_number[n] = true;
      if (whole)
        ts[n].cells->integer[0] = low ? INT64_MIN : INT64_MAX;
      else
        ts[n].cells->real[0] = low ? -(double)INFINITY : (double)INFINITY;
      continue;
    }
    ts[n] = sw_call_operand(c, name, &is_number[n]);
  }
  sw_map(c, 0, k, n, ts, is_number);
}

static double largest(enum sw_dtype t)
{
  return t == SW_F16 ? 65504 : t == SW_BF16 ? 0x1.fep127 : t == SW_F32 ? FLT_MAX : DBL_MAX;
}

/* The numbers that stand for NaN, inf and -inf; left out they are 0 and the ends of the dtype. */
void sw_op_nan_to_num(struct sw_call *c)
{
  static const char *const names[] = {"nan", "posinf", "neginf"};
  struct sw_tensor ts[4] = {sw_call_tensor(c, "self")};
  double most = largest(sw_call_out_dtype(c, 0)), normal[] = {0, most, -most};
  bool is_number[] = {false, true, true, true};
  for (int i = 0; i < 3; i++)
    ts[1 + i] = sw_call_scalar(c, (struct sw_number){.kind = SW_NUMBER_REAL, .r = sw_call_real_or(c, names[i], normal[i])});
  if (sw_class_of(ts[0].dtype) == SW_CLASS_WHOLE) {
    struct sw_tensor out = sw_call_out(c, 0, ts[0].rank, ts[0].size);
    sw_call_copy(c, &out, &ts[0]);
  } else {
    sw_map(c, 0, SW_K_nan_to_num, 4, ts, is_number);
  }
}

/* In evaluation the slope is the mean of its bounds. */
void sw_op_rrelu(struct sw_call *c)
{
  if (sw_call_bool(c, "training"))
    sw_call_stop(c, SW_UNSUPPORTED, "random numbers of a training run");
  map_args(c, SW_K_rrelu, "self lower upper");
}

void sw_op_logit(struct sw_call *c)
{
  struct sw_tensor ts[2] = {sw_call_tensor(c, "self")};
  ts[1] = sw_call_scalar(c, (struct sw_number){.kind = SW_NUMBER_REAL, .r = sw_call_real_or(c, "eps", NAN)});
  sw_map(c, 0, SW_K_logit, 2, ts, (const bool[]){false, true});
}

void sw_op_map(struct sw_call *c)
{
  map_args(c, (enum sw_kernel)c->op->what, c->op->args);
}

void sw_op_gelu(struct sw_call *c)
{
  bool by_tanh = !strcmp(sw_call_text(c, "approximate", "none"), "tanh");
  map_args(c, by_tanh ? SW_K_gelu_tanh : SW_K_gelu, "self");
}

void sw_op_div_mode(struct sw_call *c)
{
  const char *mode = sw_call_text(c, "rounding_mode", "");
  bool floors = !strcmp(mode, "floor"), truncates = !strcmp(mode, "trunc");
  map_args(c, floors ? SW_K_div_floor : truncates ? SW_K_div_trunc : SW_K_div, "self other");
}

void sw_op_bitwise_not(struct sw_call *c)
{
  map_args(c, sw_call_out_dtype(c, 0) == SW_BOOL ? SW_K_logical_not : SW_K_bitwise_not, "self");
}

/* The slope is one number or one per channel, dim 1. */
void sw_op_prelu(struct sw_call *c)
{
  struct sw_tensor ts[2] = {sw_call_tensor(c, "self"), sw_call_tensor(c, "weight")};
  if (sw_tensor_elements(&ts[1]) > 1) {
    int64_t size[SW_MAX_RANK];
    for (int d = 0; d < ts[0].rank; d++)
      size[d] = d == 1 ? -1 : 1;
    ts[1] = sw_call_reshape(c, &ts[1], ts[0].rank, size);
  }
  sw_map(c, 0, SW_K_leaky_relu, 2, ts, NULL);
}

/* The first half gated by the second. */
void sw_op_glu(struct sw_call *c)
{
  struct sw_tensor ts[2] = {sw_call_tensor(c, "self")};
  int dim = sw_call_dim(c, "dim", ts[0].rank);
  if (ts[0].rank == 0 || ts[0].size[dim] % 2)
    sw_call_stop(c, SW_INVALID, "dim %d can't be halved", dim);
  ts[0].size[dim] /= 2;
  ts[1] = ts[0];
  ts[1].offset += ts[1].size[dim] * ts[1].stride[dim];
  sw_map(c, 0, SW_K_glu, 2, ts, NULL);
}

/* abs * (cos(angle) + i sin(angle)) */
void sw_op_polar(struct sw_call *c)
{
  struct sw_tensor r = sw_call_tensor(c, "abs"), phi = sw_call_tensor(c, "angle");
  int64_t size[SW_MAX_RANK];
  int rank = sw_call_broadcast(c, size, sw_call_broadcast(c, size, 0, &r), &phi);
  struct sw_tensor out = sw_call_out(c, 0, rank, size);
  r = sw_call_expand(c, &r, rank, size);
  phi = sw_call_expand(c, &phi, rank, size);
  struct sw_walk w;
  for (sw_walk(&w, 3, (const struct sw_tensor *const[]){&out, &r, &phi}); w.more; sw_walk_on(&w))
    for (int64_t i = 0; i < w.n; i++) {
      double length, angle;
      sw_row_reals(&r, w.at[1] + i * w.step[1], 1, 1, &length);
      sw_row_reals(&phi, w.at[2] + i * w.step[2], 1, 1, &angle);
      double _Complex z = sw_complex(length * cos(angle), length * sin(angle));
      sw_row_put_complex(&out, w.at[0] + i * w.step[0], 1, 1, &z, c->rounding);
    }
}
