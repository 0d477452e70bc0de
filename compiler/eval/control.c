/* Ops about nodes and numbers: subgraphs, checks, arithmetic on symbolic numbers. */
#include "compiler/eval/ops.h"

#include "base/number.h"

#include <math.h>
#include <string.h>

/* -- subgraphs -- */

struct values {
  int n;
  struct sw_evaluated *v;
};

/* What arguments first.. stand for; lists count their members. */
static struct values operands(struct sw_call *c, const struct sw_arg *args, int n)
{
  struct values all = {0};
  SW_VEC(struct sw_evaluated) list = {0};
  for (int i = 0; i < n; i++) {
    bool is_list = args[i].kind == SW_ARG_LIST;
    for (int j = 0; j < (is_list ? args[i].list.n : 1); j++) {
      const struct sw_arg *a = is_list ? &args[i].list.v[j] : &args[i];
      struct sw_evaluated *v = SW_PUSH(c->scratch, &list);
      if (a->kind == SW_ARG_VALUE)
        *v = c->eval->values[a->value];
      else if (a->kind != SW_ARG_NONE)
        *v = (struct sw_evaluated){.kind = SW_NUMBER, .number = sw_call_number(c, a)};
    }
  }
  all.n = list.n;
  all.v = list.v;
  return all;
}

static const struct sw_arg *arg_at(struct sw_call *c, int i, enum sw_arg_kind kind)
{
  if (i >= c->node->n_args || (kind != SW_ARG_NONE && c->node->args[i].kind != kind))
    sw_call_stop(c, SW_INVALID, "argument %d is missing or of another kind", i);
  return &c->node->args[i];
}

static void drop(struct values v)
{
  for (int i = 0; i < v.n; i++)
    if (v.v[i].kind == SW_TENSOR)
      sw_cells_drop(v.v[i].tensor.cells);
}

static void give(struct sw_call *c, struct values v)
{
  for (int i = 0; i < v.n; i++)
    if (v.v[i].kind == SW_TENSOR)
      sw_call_out_view(c, i, v.v[i].tensor);
    else if (v.v[i].kind == SW_NUMBER)
      sw_call_out_number(c, i, v.v[i].number);
}

static struct values run(struct sw_call *c, const struct sw_graph *g, struct values args, int n_results)
{
  struct values r = {n_results, SW_NEW_N(c->scratch, struct sw_evaluated, n_results)};
  sw_eval_subgraph(c, g, args.n, args.v, n_results, r.v);
  return r;
}

void sw_op_cond(struct sw_call *c)
{
  bool yes = sw_number_real(sw_call_number(c, arg_at(c, 0, SW_ARG_NONE))) != 0;
  const struct sw_graph *g = arg_at(c, yes ? 1 : 2, SW_ARG_GRAPH)->graph;
  struct values r = run(c, g, operands(c, arg_at(c, 3, SW_ARG_LIST), 1), sw_call_n_results(c));
  give(c, r);
  drop(r);
}

enum { MAX_ROUNDS = 1000000 };

/* The condition sees what the body sees: carried values, then additional ones. */
void sw_op_while_loop(struct sw_call *c)
{
  const struct sw_graph *condition = arg_at(c, 0, SW_ARG_GRAPH)->graph, *body = arg_at(c, 1, SW_ARG_GRAPH)->graph;
  struct values args = operands(c, arg_at(c, 2, SW_ARG_LIST), c->node->n_args > 3 ? 2 : 1);
  int n = c->node->args[2].list.n;
  struct values carried = {n, args.v};
  for (int i = 0; i < n; i++)
    if (args.v[i].kind == SW_TENSOR)
      sw_cells_take(args.v[i].tensor.cells);
  for (int round = 0;; round++) {
    struct values more = run(c, condition, args, 1);
    bool goes_on = false;
    if (more.v[0].kind == SW_TENSOR) {
      double truth = 0;
      if (sw_tensor_elements(&more.v[0].tensor) == 1)
        sw_get_reals(&more.v[0].tensor, &truth);
      goes_on = truth != 0;
    } else {
      goes_on = more.v[0].kind == SW_NUMBER && sw_number_real(more.v[0].number) != 0;
    }
    drop(more);
    if (!goes_on)
      break;
    if (sw_cancelled(c->eval->job))
      sw_call_stop(c, SW_CANCELLED, "cancelled");
    if (round == MAX_ROUNDS)
      sw_call_stop(c, SW_LIMIT, "the loop has not ended after %d rounds", round);
    struct values next = run(c, body, args, n);
    drop(carried);
    memcpy(args.v, next.v, (size_t)n * sizeof *args.v);
  }
  give(c, carried);
  drop(carried);
}

/* The first graph among the arguments, on what follows it. */
void sw_op_wrap(struct sw_call *c)
{
  int at = 0;
  while (at < c->node->n_args && c->node->args[at].kind != SW_ARG_GRAPH)
    at++;
  const struct sw_graph *g = arg_at(c, at, SW_ARG_GRAPH)->graph;
  struct values r = run(c, g, operands(c, c->node->args + at + 1, c->node->n_args - at - 1), sw_call_n_results(c));
  give(c, r);
  drop(r);
}

/* -- numbers -- */

void sw_op_item(struct sw_call *c)
{
  sw_call_out_number(c, 0, sw_call_number(c, sw_call_need(c, "self")));
}

void sw_op_sym_size(struct sw_call *c)
{
  struct sw_tensor t = sw_call_tensor(c, "self");
  int dim = sw_call_dim(c, "dim", t.rank);
  if (t.rank == 0)
    sw_call_stop(c, SW_INVALID, "a tensor of rank 0 has no sizes");
  sw_call_out_number(c, 0, (struct sw_number){.kind = SW_NUMBER_INT, .i = c->op->what ? t.stride[dim] : t.size[dim]});
}

static int64_t floor_div(int64_t a, int64_t b)
{
  return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

static struct sw_number on_wholes(struct sw_call *c, enum sw_arithmetic what, int64_t a, int64_t b)
{
  int64_t r = 0;
  bool over = false;
  if (b == 0 && (what == SW_A_FLOORDIV || what == SW_A_MOD || what == SW_A_TRUEDIV))
    sw_call_stop(c, SW_INVALID, "a division by 0");
  switch (what) {
  case SW_A_ADD:
    over = __builtin_add_overflow(a, b, &r);
    break;
  case SW_A_SUB:
    over = __builtin_sub_overflow(a, b, &r);
    break;
  case SW_A_MUL:
    over = __builtin_mul_overflow(a, b, &r);
    break;
  case SW_A_NEG:
    over = __builtin_sub_overflow(0, a, &r);
    break;
  case SW_A_FLOORDIV:
    over = b == -1 && __builtin_sub_overflow(0, a, &r);
    r = b == -1 ? r : floor_div(a, b);
    break;
  case SW_A_MOD:
    r = b == -1 ? 0 : a - floor_div(a, b) * b;
    break;
  case SW_A_TRUEDIV:
    return (struct sw_number){.kind = SW_NUMBER_REAL, .r = (double)a / (double)b};
  case SW_A_POW:
    if (b < 0)
      return (struct sw_number){.kind = SW_NUMBER_REAL, .r = pow((double)a, (double)b)};
    over = fabs(pow((double)a, (double)b)) >= 0x1p62;
    for (r = 1; !over && b > 0 && a != 1; b--) {
      r *= a;
      if (a == 0 || a == -1) {
        r = a == 0 ? 0 : b % 2 ? -1 : 1;
        break;
      }
    }
    break;
  case SW_A_MAX:
    r = a > b ? a : b;
    break;
  case SW_A_MIN:
    r = a < b ? a : b;
    break;
  default:
    r = a;
  }
  if (over)
    sw_call_stop(c, SW_INVALID, "an integer result does not fit into 64 bits");
  return (struct sw_number){.kind = SW_NUMBER_INT, .i = r};
}

static struct sw_number on_reals(struct sw_call *c, enum sw_arithmetic what, double a, double b)
{
  double r = a;
  switch (what) {
  case SW_A_ADD:
    r = a + b;
    break;
  case SW_A_SUB:
    r = a - b;
    break;
  case SW_A_MUL:
    r = a * b;
    break;
  case SW_A_NEG:
    r = -a;
    break;
  case SW_A_TRUEDIV:
    r = a / b;
    break;
  case SW_A_FLOORDIV:
    r = floor(a / b);
    break;
  case SW_A_MOD:
    r = a - b * floor(a / b);
    break;
  case SW_A_POW:
    r = pow(a, b);
    break;
  case SW_A_MAX:
    r = fmax(a, b);
    break;
  case SW_A_MIN:
    r = fmin(a, b);
    break;
  case SW_A_SQRT:
    r = sqrt(a);
    break;
  case SW_A_INT:
  case SW_A_TRUNC:
    return (struct sw_number){.kind = SW_NUMBER_INT, .i = sw_whole_of_real(a)};
  case SW_A_FLOOR:
    return (struct sw_number){.kind = SW_NUMBER_INT, .i = sw_whole_of_real(floor(a))};
  case SW_A_CEIL:
    return (struct sw_number){.kind = SW_NUMBER_INT, .i = sw_whole_of_real(ceil(a))};
  case SW_A_ROUND:
    return (struct sw_number){.kind = SW_NUMBER_INT, .i = sw_whole_of_real(nearbyint(a))};
  default:
    sw_call_stop(c, SW_UNSUPPORTED, "no meaning for these numbers");
  }
  return (struct sw_number){.kind = SW_NUMBER_REAL, .r = r};
}

static bool truth_of(enum sw_arithmetic what, double a, double b)
{
  switch (what) {
  case SW_A_EQ:
    return a == b;
  case SW_A_NE:
    return a != b;
  case SW_A_LT:
    return a < b;
  case SW_A_LE:
    return a <= b;
  case SW_A_GT:
    return a > b;
  case SW_A_GE:
    return a >= b;
  case SW_A_AND:
    return a != 0 && b != 0;
  case SW_A_OR:
    return a != 0 || b != 0;
  default:
    return a == 0;
  }
}

/* Python's operators on numbers; arguments are a and b, or the first two whatever their names. */
void sw_op_arithmetic(struct sw_call *c)
{
  enum sw_arithmetic what = (enum sw_arithmetic)c->op->what;
  struct sw_number a = sw_call_number(c, arg_at(c, 0, SW_ARG_NONE)), b = a;
  if (c->node->n_args > 1)
    b = sw_call_number(c, arg_at(c, 1, SW_ARG_NONE));
  bool whole = a.kind != SW_NUMBER_REAL && b.kind != SW_NUMBER_REAL;
  struct sw_number r;
  if (what == SW_A_FLOAT)
    r = (struct sw_number){.kind = SW_NUMBER_REAL, .r = sw_number_real(a)};
  else if (what >= SW_A_EQ)
    r = (struct sw_number){.kind = SW_NUMBER_BOOL, .i = truth_of(what, sw_number_real(a), sw_number_real(b))};
  else if (whole && what != SW_A_SQRT)
    r = on_wholes(c, what, a.i, b.i);
  else
    r = on_reals(c, what, sw_number_real(a), sw_number_real(b));
  sw_call_out_number(c, 0, r);
}

/* -- checks -- */

void sw_op_nothing(struct sw_call *c)
{
  (void)c;
}

void sw_op_assert(struct sw_call *c)
{
  if (sw_number_real(sw_call_number(c, sw_call_need(c, "self"))) == 0)
    sw_call_stop(c, SW_INVALID, "%s", sw_call_text(c, "assert_msg", "the assertion does not hold"));
}
