/* Complex numbers as two real planes: a complex tensor is a view of real numbers whose imaginary parts lie `pair` elements behind
 * the real ones. view_as_complex takes every second element, so pair is 1; products make two planes of their own:
 *
 *   z = x y      re = xr yr - xi yi      im = xr yi + xi yr
 *
 * That is what a rotation of pairs needs (RoPE with polar). Views work as on real tensors; whatever else sees a complex number is
 * refused. */
#include "compiler/lower/families.h"

#include <string.h>

static enum sw_dtype part_of(enum sw_dtype t)
{
  return t == SW_C32 ? SW_F16 : t == SW_C64 ? SW_F32 : SW_F64;
}

static struct tensor plane(struct tensor x, bool imaginary)
{
  x.offset += imaginary ? x.pair : 0;
  x.dtype = part_of(x.dtype);
  x.pair = 0;
  return x;
}

/* Two planes of a new tensor. */
static struct tensor new_planes(struct lower *l, enum sw_dtype t, int rank, const int64_t *size)
{
  int64_t all[SW_MAX_RANK] = {2};
  if (rank >= SW_MAX_RANK)
    return lw_refuse(l, NULL, "rank %d", rank);
  memcpy(all + 1, size, (size_t)rank * sizeof *size);
  struct tensor both = lw_new(l, part_of(t), rank + 1, all, NULL), x = lw_select(both, 0, 0);
  x.dtype = t;
  x.pair = both.stride[0];
  return x;
}

static struct tensor constant_planes(struct lower *l, int value)
{
  const struct sw_tensor *c = lw_constant_elements(l, value);
  const struct sw_value *v = &l->graph->values.v[value];
  int64_t n = sw_value_elements(v), size[SW_MAX_RANK] = {2}, at[SW_MAX_RANK] = {0};
  double *parts = SW_NEW_N(lw_scratch(l), double, 2 * n);
  for (int64_t i = 0; i < n; i++) {
    int64_t from = c->offset;
    for (int d = 0; d < c->rank; d++)
      from += at[d] * c->stride[d];
    parts[i] = c->cells->real[2 * from];
    parts[n + i] = c->cells->real[2 * from + 1];
    for (int d = c->rank - 1; d >= 0 && ++at[d] == c->size[d]; d--)
      at[d] = 0;
  }
  memcpy(size + 1, v->size, (size_t)v->rank * sizeof *size);
  struct tensor both = lw_table(l, sw_arena_printf(l->arena, "%s:planes:%d", v->name, l->program->storages.n), part_of(v->dtype),
                                v->rank + 1, size, parts);
  struct tensor x = lw_select(both, 0, 0);
  x.dtype = v->dtype;
  x.pair = n;
  return x;
}

static struct tensor operand(struct lower *l, const struct sw_arg *a)
{
  if (!lw_is_tensor(l, a) || !sw_dtype_is_complex(l->graph->values.v[a->value].dtype))
    return lw_refuse(l, NULL, "a product of a complex and a real number");
  if (lw_constant_elements(l, a->value))
    return constant_planes(l, a->value);
  struct tensor x = lw_tensor_of_value(l, a->value);
  return lw_known(x) && !x.pair ? lw_refuse(l, "pass real and imaginary parts", "a complex input") : x;
}

void lw_op_view_as_complex(struct lower *l, int unused)
{
  (void)unused;
  struct tensor x = lw_tensor(l, "self");
  if (lw_known(x)) {
    x.pair = x.stride[--x.rank];
    x.dtype = lw_value(l, 0)->dtype;
  }
  lw_set(l, 0, x);
}

void lw_op_view_as_real(struct lower *l, int unused)
{
  (void)unused;
  struct tensor x = operand(l, &lw_node(l)->args[0]);
  if (lw_known(x)) {
    x.size[x.rank] = 2;
    x.stride[x.rank++] = x.pair;
    x.dtype = part_of(x.dtype);
    x.pair = 0;
  }
  lw_set(l, 0, x);
}

static void host_part(struct lower *l, const char *target, struct tensor out, int n, const struct tensor *in)
{
  struct sw_host_step h = {.name = lw_node(l)->name, .target = target, .node = l->node, .why = "the device has no such function"};
  for (int i = 0; i < n; i++)
    *SW_PUSH(l->arena, &h.args) = (struct sw_host_arg){.kind = SW_HOST_VIEW, .view = lw_view_of(in[i])};
  *SW_PUSH(l->arena, &h.results) = lw_view_of(out);
  lw_add_host_step(l, h);
}

/* abs (cos angle + i sin angle); sines and cosines are the host's. */
void lw_op_polar(struct lower *l, int unused)
{
  (void)unused;
  const struct sw_value *v = lw_value(l, 0);
  enum sw_dtype t = part_of(v->dtype);
  const double *length = lw_arg(l, "abs")->kind == SW_ARG_VALUE && lw_constant_elements(l, lw_arg(l, "abs")->value)
                             ? lw_constant_doubles(l, lw_arg(l, "abs")->value)
                             : NULL;
  struct tensor angle = lw_argument(l, lw_arg(l, "angle"), t), z = new_planes(l, v->dtype, v->rank, v->size);
  bool ones = length != NULL;
  for (int64_t i = 0, n = length ? sw_value_elements(&l->graph->values.v[lw_arg(l, "abs")->value]) : 0; i < n; i++)
    ones = ones && length[i] == 1;
  struct tensor size = ones ? angle : lw_argument(l, lw_arg(l, "abs"), t);
  if (!lw_known(angle) || !lw_known(size) || !lw_known(z)) {
    lw_set(l, 0, lw_unknown());
    return;
  }
  for (int i = 0; i < 2; i++) {
    struct tensor part = plane(z, i);
    host_part(l, i ? "aten.sin.default" : "aten.cos.default", part, 1, &angle);
    if (!ones)
      host_part(l, "aten.mul.Tensor", part, 2, (struct tensor[]){part, size});
  }
  lw_set(l, 0, z);
}

static void into(struct lower *l, enum sw_device_op op, struct tensor out, struct tensor a, struct tensor b)
{
  struct tensor in[] = {lw_expand(l, a, out.rank, out.size), lw_expand(l, b, out.rank, out.size)};
  if (lw_known(in[0]) && lw_known(in[1]))
    lw_nest(l, op, SW_ROLE_WRITE, out.rank, out.rank, out.size, out, 2, in);
}

static void multiply(struct lower *l)
{
  const struct sw_value *v = lw_value(l, 0);
  struct tensor x = operand(l, &lw_node(l)->args[0]), y = operand(l, &lw_node(l)->args[1]);
  struct tensor z = new_planes(l, v->dtype, v->rank, v->size);
  if (!lw_known(x) || !lw_known(y) || !lw_known(z)) {
    lw_set(l, 0, lw_unknown());
    return;
  }
  for (int i = 0; i < 2; i++) {
    struct tensor p = lw_binary(l, SW_OP_MUL, plane(x, false), plane(y, i));
    struct tensor q = lw_binary(l, SW_OP_MUL, plane(x, true), plane(y, !i));
    into(l, i ? SW_OP_ADD : SW_OP_SUB, plane(z, i), p, q);
  }
  lw_set(l, 0, l->failed ? lw_unknown() : z);
}

static bool is_complex(const struct lower *l, int value)
{
  const struct sw_value *v = value < 0 ? NULL : &l->graph->values.v[value];
  return v && v->kind == SW_VALUE_TENSOR && sw_dtype_is_complex(v->dtype);
}

static void note_complex(void *ctx, int value)
{
  void **x = ctx;
  if (is_complex(x[0], value))
    *(bool *)x[1] = true;
}

bool lw_run_complex(struct lower *l, const struct lw_operation *op)
{
  const struct sw_node *n = lw_node(l);
  bool any = false, left = false;
  void *ctx[] = {l, &any};
  lw_each_value(n->args, n->n_args, note_complex, ctx);
  for (int r = 0; r < n->n_results; r++)
    any = any || is_complex(l, n->results[r]);
  for (int i = 0; any && i < l->graph->outputs.n; i++)
    for (int r = 0; r < n->n_results; r++)
      left = left || (l->graph->outputs.v[i].arg.kind == SW_ARG_VALUE && l->graph->outputs.v[i].arg.value == n->results[r] &&
                      is_complex(l, n->results[r]));
  bool plain = op->run == lw_op_view_as_complex || op->run == lw_op_view_as_real || op->run == lw_op_polar ||
               op->kind == LW_VIEW || op->kind == LW_NOTHING;
  if (!any || (plain && !left && l->best))
    return false;
  if (l->best && !left && !strcmp(n->target, "aten.mul.Tensor"))
    multiply(l);
  else if (lw_arguments_known(l))
    lw_refuse(l, "write it with sines and cosines of real numbers", "the device has no complex numbers");
  return true;
}
