#include "graph_unit.h"

#include <math.h>

static struct sw_graph *read_text(struct sw_job *job, const char *text)
{
  return read_graph(job, text, strlen(text));
}

static void the_example_of_the_manual_reads(void **state)
{
  (void)state;
  struct sw_job job = unit_job();
  struct sw_graph *g = read_text(&job, "%a : f16[128,256] = input\n"
                                       "%w : f16[256,128] = parameter\n"
                                       "%t : f16[256,128] = aten.t.default(%a)   # model.py:12 in layers.0 of gate\n"
                                       "%y : f16[256,128] = aten.add.Tensor(%t, %w)\n"
                                       "%r : f16[256]     = aten.sum.dim_IntList(%y, [1], keepdim=False)\n"
                                       "return %y, %r\n");
  assert_non_null(g);
  assert_string_equal(g->name, "case.graph");
  assert_string_equal(g->form, "text");
  assert_int_equal(g->inputs.n, 2);
  assert_int_equal(g->inputs.v[1].kind, SW_INPUT_PARAMETER);
  assert_string_equal(g->inputs.v[1].target, "w");
  assert_null(g->inputs.v[1].bytes);
  assert_int_equal(g->nodes.n, 3);
  const struct sw_node *t = node_of(g, "t");
  assert_string_equal(t->target, "aten.t.default");
  assert_string_equal(t->source, "model.py:12");
  assert_string_equal(t->module, "layers.0");
  const struct sw_node *y = node_of(g, "y");
  const struct sw_arg *alpha = sw_node_arg(y, "alpha");
  assert_false(alpha->given);
  assert_int_equal(alpha->i, 1);
  assert_null(sw_node_arg(y, "beta"));
  assert_int_equal(g->outputs.n, 2);
  assert_int_equal(sw_value_elements(value_of(g, "y")), 256 * 128);
  sw_arena_free(job.arena);
}

/* sha256sum of "return\n" */
static void the_digest_is_sha256_of_the_bytes(void **state)
{
  (void)state;
  struct sw_job job = unit_job();
  struct sw_graph *g = read_text(&job, "return\n");
  assert_string_equal(g->digest, "9e34e5324d74f5d7636894144e2b8804df7ae09ca2268fc207a328e4811b8200");
  sw_arena_free(job.arena);
}

/* Strides that torch.empty(128, 256).t() and so on have. */
static void views_without_strides_lie_as_in_pytorch(void **state)
{
  (void)state;
  struct sw_job job = unit_job();
  struct sw_graph *g = read_text(&job, "%a : f16[4,6,8] = input\n"
                                       "%p : f16[8,4,6] = aten.permute(%a, [2, 0, 1])\n"
                                       "%s : f16[4,2,8] = aten.slice(%a, 1, 1, 5, 2)\n"
                                       "%e : f16[3,4,6,8] = aten.expand(%a, [3, -1, -1, -1])\n"
                                       "%u : f16[4,1,6,8] = aten.unsqueeze(%a, 1)\n"
                                       "%i : f16[4,8] = aten.select(%a, 1, -1)\n"
                                       "%v : f16[24,8] = aten.view(%a, [-1, 8])\n"
                                       "%w : f16[8,24] = aten.view(%p, [8, 24])\n"
                                       "%c : f16[8,24] = aten.clone(%w)\n"
                                       "%d : f16[4,6,8] strides=[1,4,24] = aten.exp(%a)\n"
                                       "return %p\n");
  assert_non_null(g);
  static const struct {
    const char *name;
    int64_t stride[4], offset;
  } cases[] = {{"p", {1, 48, 8}, 0}, {"s", {48, 16, 1}, 8}, {"e", {0, 48, 8, 1}, 0}, {"u", {48, 48, 8, 1}, 0},
               {"i", {48, 1}, 40},   {"v", {8, 1}, 0},      {"w", {1, 8}, 0},        {"c", {24, 1}, 0},
               {"d", {1, 4, 24}, 0}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    const struct sw_value *v = value_of(g, cases[i].name);
    for (int d = 0; d < v->rank; d++)
      assert_int_equal(v->stride[d], cases[i].stride[d]);
    assert_int_equal(v->offset, cases[i].offset);
  }
  sw_arena_free(job.arena);
}

static void short_overload_names_are_resolved_by_arguments(void **state)
{
  (void)state;
  struct sw_job job = unit_job();
  struct sw_graph *g = read_text(&job, "%a : f16[4,4] = input\n"
                                       "%1 : f16[4,4] = aten.add(%a, %a)\n"
                                       "%2 : f16[4,4] = aten.add(%a, 2)\n"
                                       "%3 : f16[] = aten.sum(%a)\n"
                                       "%4 : f16[4] = aten.sum(%a, [1])\n"
                                       "%5 : f32[4,4] = aten.to(%a, f32)\n"
                                       "%6 : f16[4,4] = aten.pow(%a, 2)\n"
                                       "%7 : f16[4,4] = aten.pow(2, %a)\n"
                                       "%8 : f16[4], %9 : i64[4] = aten.max(%a, 0)\n"
                                       "%b : bool[4,4] = aten.eq(%a, %a)\n"
                                       "%c : f16[4,4] = aten.where(%b, %a, %a)\n"
                                       "%d : f16[4,4] = aten.where(%b, %a, 1.0)\n"
                                       "return %1\n");
  assert_non_null(g);
  static const char *const want[] = {"aten.add.Tensor",   "aten.add.Scalar",        "aten.sum.default",
                                     "aten.sum.dim_IntList", "aten.to.dtype",       "aten.pow.Tensor_Scalar",
                                     "aten.pow.Scalar",   "aten.max.dim",           "aten.eq.Tensor",
                                     "aten.where.self",   "aten.where.ScalarOther"};
  for (int i = 0; i < g->nodes.n; i++)
    assert_string_equal(g->nodes.v[i].target, want[i]);
  sw_arena_free(job.arena);
}

static void arguments_take_the_schemas_form(void **state)
{
  (void)state;
  struct sw_job job = unit_job();
  struct sw_graph *g =
      read_text(&job, "%x : f16[1,8,16,16] = input\n"
                      "%w : f16[8,8,3,3] = parameter(\"conv.weight\")\n"
                      "%c : f16[1,8,16,16] = aten.conv2d(%x, %w, None, 1, 1)\n"
                      "%l : f16[1,8,16,16] = aten.layer_norm(%c, [16], eps=1)\n"
                      "%p : f16[1,8,16,16] = aten.to.dtype_layout(%l, dtype=f16, device=\"cpu\", layout=torch.strided, "
                      "memory_format=torch.channels_last)\n"
                      "%f : f32[2] = aten.full([2], -inf, dtype=torch.float32)\n"
                      "return %p, nan, -inf, 1e-05, 2.0, -9223372036854775808, \"a\\n\\\"b\\x01\"\n");
  assert_non_null(g);
  const struct sw_arg *stride = sw_node_arg(node_of(g, "c"), "stride"), *eps = sw_node_arg(node_of(g, "l"), "eps");
  assert_int_equal(stride->kind, SW_ARG_LIST);
  assert_int_equal(stride->list.n, 2);
  assert_int_equal(stride->list.v[1].i, 1);
  assert_int_equal(eps->kind, SW_ARG_REAL);
  assert_true(eps->r == 1.0);
  const struct sw_node *p = node_of(g, "p");
  assert_int_equal(sw_node_arg(p, "device")->kind, SW_ARG_DEVICE);
  assert_int_equal(sw_node_arg(p, "layout")->i, 7);
  assert_int_equal(sw_node_arg(p, "memory_format")->i, 2);
  assert_true(isinf(sw_node_arg(node_of(g, "f"), "fill_value")->r));
  assert_int_equal(sw_node_arg(node_of(g, "f"), "dtype")->dtype, SW_F32);
  assert_true(isnan(g->outputs.v[1].arg.r));
  assert_true(g->outputs.v[3].arg.r == 1e-5);
  assert_true(g->outputs.v[5].arg.i == INT64_MIN);
  assert_string_equal(g->outputs.v[6].arg.s, "a\n\"b\x01");
  sw_arena_free(job.arena);
}

static const char everything[] = "dialect TRAINING\n"
                                 "range s0 = 2..64\n"
                                 "range u0 = 0..\n"
                                 "%p_w : f16[64,64] = parameter(\"layers.0.weight\", record=0)\n"
                                 "%p_v : f16[32,64] strides=[1,64] offset=64 = parameter(\"layers.0.bias\", record=0)\n"
                                 "%b_cache : f16[8,64] = buffer(\"cache\", persistent=False)\n"
                                 "%c_0 : f32[] = constant(\"lifted_tensor_0\")\n"
                                 "%x : f16[s0:8,64] = input(device_size=[1,8,64], stride_map=[64,64,1])\n"
                                 "%n : int(u0:3) = input\n"
                                 "%flag = literal(True)\n"
                                 "%\"odd name\" : f16[s0:8,64] strides=[64,1] = aten.exp.default(%x)\n"
                                 "guard: aten._assert_scalar.default(%n, \"n is # odd\")\n"
                                 "%ge : bool(u0 >= 1:1) = _operator.ge(a=%n, b=1)\n"
                                 "%m : f16[64,64] = aten.mm.default(%p_w, %p_w)  # model.py:12 in layers.0\n"
                                 "norm: %a : f16[64,64], _, %c : f32[64,1] = aten.native_layer_norm.default(%m, [64], None, "
                                 "None, 1e-05)  # in layers.1\n"
                                 "graph @true_graph_0 {\n"
                                 "  %x : f16[64,64] = input\n"
                                 "  %relu : f16[64,64] = aten.relu.default(%x)\n"
                                 "  return %relu\n"
                                 "}\n"
                                 "graph @false_graph_0 {\n"
                                 "  %x : f16[64,64] = input\n"
                                 "  return %x\n"
                                 "}\n"
                                 "cond: %r : f16[64,64] = higher_order.cond(%ge, @true_graph_0, @false_graph_0, [%m])\n"
                                 "mutate %b_cache = %\"odd name\"\n"
                                 "mutate %x = %r\n"
                                 "return %r, %x, 3, None, -inf, [1, 2.0], f16, device(\"cpu\"), torch.strided\n";

static void writing_is_a_fixed_point(void **state)
{
  (void)state;
  struct sw_job job = unit_job();
  struct sw_graph *g = read_text(&job, everything);
  assert_non_null(g);
  const char *once = text_of(&job, g);
  struct sw_graph *again = read_text(&job, once);
  assert_non_null(again);
  assert_string_equal(text_of(&job, again), once);
  assert_non_null(strstr(once, "%b_cache : f16[8,64] = buffer(\"cache\", persistent=False)\n"));
  assert_non_null(strstr(once, "%n : int(u0:3) = input\n"));
  assert_non_null(strstr(once, "range u0 = 0..\n"));
  assert_non_null(strstr(once, "mutate %b_cache = %\"odd name\"\nmutate %x = %r\nreturn %r, %x, 3, None, -inf"));
  assert_int_equal(g->outputs.v[0].kind, SW_OUTPUT_BUFFER_MUTATION);
  assert_string_equal(g->outputs.v[0].target, "cache");
  assert_int_equal(g->outputs.v[1].kind, SW_OUTPUT_INPUT_MUTATION);
  assert_string_equal(g->outputs.v[1].target, "x");
  assert_int_equal(g->inputs.v[4].layout->device_size[1], 8);
  assert_int_equal(g->inputs.v[6].kind, SW_INPUT_CONSTANT);
  assert_int_equal(node_of(g, "norm")->results[1], -1);
  assert_string_equal(node_of(g, "norm")->module, "layers.1");
  sw_arena_free(job.arena);
}

/* Wrapped graphs run in place; in an autocast region matmul casts its operands (as run_decompositions writes it). */
static void wrappers_are_inlined(void **state)
{
  (void)state;
  struct sw_job job = unit_job();
  struct sw_graph *g = read_text(&job, "%x : f32[8,64] = input\n"
                                       "%w : f32[64,64] = parameter\n"
                                       "%mul : f32[8,64] = aten.mul.Tensor(%x, 2)\n"
                                       "graph @body {\n"
                                       "  graph @inner {\n"
                                       "    %a : f32[8,64] = input\n"
                                       "    %mul : f32[8,64] = aten.mul.Tensor(%a, 3)\n"
                                       "    return %mul, %a\n"
                                       "  }\n"
                                       "  %a : f32[8,64] = input\n"
                                       "  %b : f32[64,64] = input\n"
                                       "  %g0 : f32[8,64], %g1 : f32[8,64] = "
                                       "higher_order.wrap_with_set_grad_enabled(False, @inner, %a)\n"
                                       "  %mm : bf16[8,64] = aten.matmul.default(%g0, %b)\n"
                                       "  return %mm, %g1\n"
                                       "}\n"
                                       "%y : bf16[8,64], %z : f32[8,64] = higher_order.wrap_with_autocast(\"cpu\", bf16, "
                                       "True, False, @body, %mul, %w)\n"
                                       "return %y, %z\n");
  assert_non_null(g);
  assert_string_equal(text_of(&job, g), "%x : f32[8,64] = input\n"
                                        "%w : f32[64,64] = parameter\n"
                                        "%mul : f32[8,64] = aten.mul.Tensor(%x, 2)\n"
                                        "%g0 : f32[8,64] = aten.mul.Tensor(%mul, 3)\n"
                                        "%g0_bf16 : bf16[8,64] = aten.to.dtype(%g0, bf16)\n"
                                        "%w_bf16 : bf16[64,64] = aten.to.dtype(%w, bf16)\n"
                                        "%y : bf16[8,64] = aten.matmul.default(%g0_bf16, %w_bf16)\n"
                                        "return %y, %mul\n");
  assert_int_equal(g->census.nodes, 2); /* what the file said */
  assert_int_equal(g->census.subgraph_ops.n, 3);
  sw_arena_free(job.arena);
}

/* -- mistakes -- */

static const struct {
  const char *name, *text, *fault, *where;
} mistakes[] = {
    {"dtype", "%a : f17[2] = input\nreturn %a\n", "dtype \"f17\" is unknown", "line 1"},
    {"undefined", "%a : f16[2] = input\n%b : f16[2] = aten.exp(%c)\nreturn %b\n",
     "%c is read but nothing defines it", "line 2"},
    {"twice", "%a : f16[2] = input\n%a : f16[2] = input\nreturn %a\n", "%a is defined twice", "line 2"},
    {"order", "%a : f16[2] = input\n%b : f16[2] = aten.exp(%c)\n%c : f16[2] = aten.exp(%a)\nreturn %b\n",
     "b reads c, a result of the later node c: a cycle or a wrong order", "b"},
    {"cycle", "%a : f16[2] = aten.exp(%a)\nreturn %a\n", "a reads its own result a: a cycle", "a"},
    {"negative size", "%a : f16[-2] = input\nreturn %a\n", "size of dim 0 is -2", NULL},
    {"overflow", "%a : f16[4294967296,4294967296] = input\nreturn %a\n", "does not fit 63 bits", NULL},
    {"stride overflow", "%a : f16[2,2] strides=[9223372036854775807,9223372036854775807] = input\nreturn %a\n",
     "does not fit 63 bits", NULL},
    {"rank", "%a : f16[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1] = input\nreturn %a\n", "more than 16 dims", "line 1"},
    {"missing argument", "%a : f16[2] = input\n%b : f16[2] = aten.mm.default(%a)\nreturn %b\n",
     "argument mat2 is missing", "line 2"},
    {"unknown argument", "%a : f16[2] = input\n%b : f16[2] = aten.exp(%a, beta=2)\nreturn %b\n",
     "has no argument beta", "line 2"},
    {"argument type", "%a : f16[2] = input\n%b : f16[2] = aten.cumsum(%a, \"x\")\nreturn %b\n",
     "argument dim is a string, expected int", "line 2"},
    {"positional keyword", "%a : f16[2] = input\n%b : f16[2] = aten.add.Tensor(%a, %a, 2)\nreturn %b\n",
     "takes fewer positional arguments than 3", "line 2"},
    {"argument twice", "%a : f16[2] = input\n%b : f16[2] = aten.add.Tensor(%a, %a, other=%a)\nreturn %b\n",
     "argument other is given twice", "line 2"},
    {"ambiguous", "%a : f16[2] = input\n%b : f16[2] = aten.where(%a)\n%c : f16[2] = aten.add(\"x\", 2)\nreturn %a\n",
     "aten.add: no overload fits these arguments; write one of aten.add.Scalar, aten.add.Tensor", "line 3"},
    {"results", "%a : f16[2,2] = input\n%b : f16[2] = aten.max.dim(%a, 0)\nreturn %b\n",
     "has 1 results, 2 expected", "b"},
    {"size", "%a : f16[2,3] = input\n%b : f16[2,3] = aten.t(%a)\nreturn %b\n",
     "gives size [3,2], but b is declared [2,3]", "b"},
    {"inner size", "%a : f16[2,3] = input\n%b : f16[2,3] = aten.mm(%a, %a)\nreturn %b\n", "inner sizes differ", "b"},
    {"broadcast", "%a : f16[2,3] = input\n%c : f16[2] = input\n%b : f16[2,3] = aten.add(%a, %c)\nreturn %b\n",
     "sizes do not broadcast", "b"},
    {"elements", "%a : f16[2,3] = input\n%b : f16[4,2] = aten.view(%a, [4, 2])\nreturn %b\n",
     "the number of elements changes", "b"},
    {"cast", "%a : f16[2] = input\n%b : f16[2] = aten.to(%a, f32)\nreturn %b\n",
     "gives f32, but b is declared f16", "b"},
    {"mutation", "%a : f16[2] = input\n%b : f16[2] = aten.exp(%a)\nmutate %b = %a\nreturn %a\n",
     "b can't be mutated: it is no input and no buffer", NULL},
    {"no return", "%a : f16[2] = input\n", "the graph has no return", NULL},
    {"string", "%a : f16[2] = parameter(\"x\nreturn %a\n", "a string does not end", "line 1"},
    {"layout", "%a : f16[2] = input(device_size=[1,64])\nreturn %a\n",
     "device_size and stride_map must have the same number of entries", "line 1"},
    {"rest", "%a : f16[2] = input input\nreturn %a\n", "end of line expected, found \"input\"", "line 1"},
    {"twice used block", "graph @g {\n%x : f16[1] = input\nreturn %x\n}\n%a : f16[1] = input\n"
     "%b : f16[1] = higher_order.cond(True, @g, @g, [%a])\nreturn %b\n", "graph @g is used twice", "line 6"},
    {"operands", "graph @g {\n%x : f16[1] = input\nreturn %x\n}\ngraph @h {\n%x : f16[1] = input\nreturn %x\n}\n"
     "%a : f16[1] = input\n%b : f16[1] = higher_order.cond(True, @g, @h, [%a, %a])\nreturn %b\n",
     "graph g has 1 inputs for 2 operands", "b"},
    {"literal", "%a : f16[2] = input\n%n = literal(3)\n%b : f16[2] = aten.exp(%n)\nreturn %b\n",
     "%n is read but nothing defines it", "line 3"},
    {"nameless input", "_ = input\n%a : f16[2] = input\nreturn %a\n", "an input has one name, %name", "line 1"},
    {"input of two names", "%a : f16[2], %b : f16[2] = parameter\nreturn %a\n", "an input has one name, %name", "line 1"},
    {"nameless result", "%a : f16[2,2] = input\n_ = aten.mm(%a, %a)\nreturn %a\n",
     "the first result of aten.mm.default has no name", "node_0"},
    {"nameless values", "%a : f16[2,2] = input\n_, %b : i64[2] = aten.max(%a, 0)\nreturn %b\n",
     "the first result of aten.max.dim has no name", "b"},
    {"nameless piece", "%a : f16[2,2] = input\n_, %b : f16[1,2] = aten.split(%a, 1)\nreturn %b\n",
     "the first result of aten.split.Tensor has no name", "b"},
    {"no such dim", "%a : f16[2,3] = input\n%b : f16[2,3] = aten.softmax.int(%a, 2)\nreturn %b\n",
     "aten.softmax.int: dim 2 is out of range: -2 to 1", "b"},
    {"no such dim from the end", "%a : f16[2,3] = input\n%b : f16[] = aten.sum.dim_IntList(%a, [0, -3])\nreturn %b\n",
     "aten.sum.dim_IntList: dim -3 is out of range: -2 to 1", "b"},
    {"no such dim of a scalar", "%a : f16[] = input\n%b : f16[] = aten.softmax.int(%a, 1)\nreturn %b\n",
     "aten.softmax.int: dim 1 is out of range: -1 to 0", "b"},
    {"no such new dim", "%a : f16[2,3] = input\n%b : f16[2,3,2] = aten.stack.default([%a, %a], 3)\nreturn %b\n",
     "aten.stack.default: dim 3 is out of range: -3 to 2", "b"},
    {"no type", "%a = input\nreturn %a\n", "%a needs a type", "line 1"},
    {"node names", "%a : f16[2] = input\nn: %b : f16[2] = aten.exp(%a)\nn: %c : f16[2] = aten.exp(%a)\nreturn %b\n",
     "two nodes are named n", "n"},
    {"open block", "graph @g {\nreturn\n", "'}' is missing", NULL},
    {"not ours", "\x7f" "ELF\n", "statement expected", "line 1"},
};

static void each_mistake_is_named_with_its_place(void **state)
{
  (void)state;
  for (size_t i = 0; i < sizeof mistakes / sizeof mistakes[0]; i++) {
    struct sw_job job = unit_job();
    assert_null(read_text(&job, mistakes[i].text));
    assert_true(has_fault(&job, mistakes[i].fault, mistakes[i].where));
    sw_arena_free(job.arena);
  }
}

/* A dim more in what adds one, one at least in a scalar, and numbers that number no dims. */
static void the_last_dims_are_in_range(void **state)
{
  (void)state;
  struct sw_job job = unit_job();
  assert_non_null(read_text(&job, "%a : f16[2,3] = input\n%s : f16[] = input\n%i : f16[2,3,1] = aten.unsqueeze.default(%a, 2)\n"
                                  "%t : f16[2,3,2] = aten.stack.default([%a, %a], 2)\n%u : f16[2,2,3] = aten.stack.default([%a, %a], -3)\n"
                                  "%v : f16[] = aten.softmax.int(%s, -1)\n%w : f16[14,27] = aten.tile.default(%a, [7, 9])\n"
                                  "return %i, %t, %u, %v, %w\n"));
  assert_int_equal(job.faults.n, 0);
  sw_arena_free(job.arena);
}

static void all_mistakes_are_reported_at_once(void **state)
{
  (void)state;
  struct sw_job job = unit_job();
  assert_null(read_text(&job, "%a : f17[2] = input\n%b : f16[2] = aten.exp(%nowhere)\n%b : f16[2] = input\nreturn %a\n"));
  assert_int_equal(job.faults.n, 3);
  sw_arena_free(job.arena);
}

static void deep_nesting_is_refused(void **state)
{
  (void)state;
  struct sw_job job = unit_job();
  struct sw_buf b = {.arena = job.arena};
  sw_buf_puts(&b, "return ");
  for (int i = 0; i < 100000; i++)
    sw_buf_puts(&b, "[");
  assert_null(read_text(&job, sw_buf_text(&b)));
  assert_true(has_fault(&job, "nested deeper than 32", "line 1"));
  b.n = 0;
  for (int i = 0; i < 100000; i++)
    sw_buf_puts(&b, "graph @g {\n");
  job.faults.n = 0;
  assert_null(read_text(&job, sw_buf_text(&b)));
  assert_true(has_fault(&job, "nested deeper than 32", NULL));
  sw_arena_free(job.arena);
}

static void a_hundred_thousand_nodes_take_linear_time(void **state)
{
  (void)state;
  struct sw_job job = unit_job();
  struct sw_buf b = {.arena = job.arena};
  sw_buf_puts(&b, "%v0 : f16[64,64] = input\n");
  for (int i = 0; i < 100000; i++)
    sw_buf_printf(&b, "%%v%d : f16[64,64] = aten.add.Tensor(%%v%d, %%v%d)\n", i + 1, i, i);
  sw_buf_puts(&b, "return %v100000\n");
  struct sw_graph *g = read_text(&job, sw_buf_text(&b));
  assert_non_null(g);
  assert_int_equal(g->nodes.n, 100000);
  assert_string_equal(text_of(&job, g), sw_buf_text(&b));
  sw_arena_free(job.arena);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_example_of_the_manual_reads),
      cmocka_unit_test(the_digest_is_sha256_of_the_bytes),
      cmocka_unit_test(views_without_strides_lie_as_in_pytorch),
      cmocka_unit_test(short_overload_names_are_resolved_by_arguments),
      cmocka_unit_test(arguments_take_the_schemas_form),
      cmocka_unit_test(writing_is_a_fixed_point),
      cmocka_unit_test(wrappers_are_inlined),
      cmocka_unit_test(each_mistake_is_named_with_its_place),
      cmocka_unit_test(the_last_dims_are_in_range),
      cmocka_unit_test(all_mistakes_are_reported_at_once),
      cmocka_unit_test(deep_nesting_is_refused),
      cmocka_unit_test(a_hundred_thousand_nodes_take_linear_time),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
