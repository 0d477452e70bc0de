/* Evaluators: memory, what stays unknown, faults, subgraphs, mutation. */
#include "check.h"

#include "compiler/eval/call.h"

static void the_table_is_sorted(void **state)
{
  (void)state;
  for (int i = 1; i < sw_n_eval_ops; i++)
    assert_true(strcmp(sw_eval_ops[i - 1].target, sw_eval_ops[i].target) < 0);
}

static void it_knows_what_it_knows(void **state)
{
  (void)state;
  assert_true(sw_eval_knows("aten.add.Tensor"));
  assert_true(sw_eval_knows("aten.add_.Tensor"));
  assert_true(sw_eval_knows("aten.__and__.Tensor"));
  assert_true(sw_eval_knows("aten._to_copy.default"));
  assert_false(sw_eval_knows("aten.no_such_op.default"));
  assert_false(sw_eval_knows("aten.add"));
  assert_false(sw_eval_knows(""));
}

/* Every overload of the schema table has a meaning. */
static void no_schema_is_without_meaning(void **state)
{
  (void)state;
  static const char *const schemas[] = {
#include "compiler/graph/schemas.def"
  };
  for (int i = 0; i < (int)(sizeof schemas / sizeof schemas[0]); i++) {
    char target[128];
    const char *name = strstr(schemas[i], "::");
    int space = (int)(name - schemas[i]), n = (int)strcspn(name + 2, "(");
    bool has_overload = memchr(name + 2, '.', (size_t)n) != NULL;
    snprintf(target, sizeof target, "%.*s.%.*s%s", space, schemas[i], n, name + 2, has_overload ? "" : ".default");
    if (!sw_eval_knows(target))
      print_error("%s\n", target);
    assert_true(sw_eval_knows(target));
  }
}

static void values_go_after_their_last_reader(void **state)
{
  (void)state;
  /* Ten steps on 8,000 bytes each fit into 20,000: no more than input and output of a step are held. */
  char text[2048];
  int n = snprintf(text, sizeof text, "%%v0 : f64[1000] = aten.full([1000], 1.)\n");
  for (int i = 0; i < 10; i++)
    n += snprintf(text + n, sizeof text - (size_t)n, "%%v%d : f64[1000] = aten.neg(%%v%d)\n", i + 1, i);
  snprintf(text + n, sizeof text - (size_t)n, "return %%v10\n");
  struct evaluation e = evaluate(text, NULL, 20000);
  assert_int_equal(e.rc, SW_OK);
  assert_int_equal(output(&e, 0)->tensor.cells->real[999], 1);
  assert_int_equal(sw_eval_value(e.eval, 0)->kind, SW_UNKNOWN);
  sw_arena_free(e.job.arena);
}

static void what_does_not_fit_is_a_limit(void **state)
{
  (void)state;
  expect_fault("%x : f64[1000,1000] = aten.full([1000,1000], 1.)\n%y : f64[] = aten.sum(%x)\nreturn %y\n", SW_LIMIT,
               "would not fit", NULL);
}

static void folding_leaves_unknown_what_does_not_fit_or_depends_on_it(void **state)
{
  (void)state;
  static const char text[] = "%x : f32[4] = input\n%a : i64[4] = aten.arange(4)\n"
                             "%b : i64[4] = aten.add.Tensor(%a, 1)\n"
                             "%c : f32[4] = aten.add.Tensor(%x, %b)\n"
                             "%d : f32[100000] = aten.full([100000], 0.)\nreturn %c, %d\n";
  struct sw_job job = unit_job();
  struct sw_graph *g;
  assert_int_equal(sw_graph_read(&job, "test", text, strlen(text), NULL, &g), SW_OK);
  struct sw_eval *e = sw_eval_new(&job, g, SW_ROUND_DTYPE, 1000);
  for (int i = 0; i < g->nodes.n; i++)
    assert_int_equal(sw_eval_node(e, i), SW_OK);
  const struct sw_evaluated *b = sw_eval_value(e, g->nodes.v[1].results[0]);
  assert_int_equal(b->kind, SW_TENSOR);
  assert_int_equal(b->tensor.cells->integer[3], 4);
  assert_int_equal(sw_eval_value(e, g->nodes.v[2].results[0])->kind, SW_UNKNOWN);
  assert_int_equal(sw_eval_value(e, g->nodes.v[3].results[0])->kind, SW_UNKNOWN);
  assert_int_equal(job.faults.n, 0);
  sw_arena_free(job.arena);
}

static void faults_name_the_node(void **state)
{
  (void)state;
  struct evaluation e = evaluate("%x : f32[2] = input\n%i : i64[1] = aten.full([1], 9)\n"
                                 "%y : f32[1] = aten.index_select(%x, 0, %i)  # model.py:3\nreturn %y\n",
                                 (const struct numbers[]){V(1, 2), {0}}, 1 << 20);
  assert_int_equal(e.rc, SW_INVALID);
  assert_int_equal(e.job.faults.n, 1);
  assert_string_equal(e.job.faults.v[0].node, "y");
  assert_string_equal(e.job.faults.v[0].source, "model.py:3");
  sw_arena_free(e.job.arena);
}

static void missing_values_are_reported_once_each(void **state)
{
  (void)state;
  struct evaluation e = evaluate("%w : f32[2] = parameter(\"net.w\")\n%a : f32[2] = aten.neg(%w)\n"
                                 "%b : f32[2] = aten.exp(%w)\n"
                                 "return %a, %b\n",
                                 NULL, 1 << 20);
  assert_int_equal(e.rc, SW_INVALID);
  assert_int_equal(e.job.faults.n, 1);
  assert_string_equal(e.job.faults.v[0].detail, "net.w has no values");
  sw_arena_free(e.job.arena);
}

static void random_numbers_are_refused(void **state)
{
  (void)state;
  expect_fault("%x : f32[2] = aten.zeros([2])\n%y : f32[2] = aten.normal_(%x)\nreturn %y\n",
               SW_UNSUPPORTED, "random", NULL);
  EXPECT_FAULT("%x : f32[2] = input\n%y : f32[2] = aten.dropout(%x, 0.5, True)\nreturn %y\n", SW_UNSUPPORTED, "random",
               V(1, 2));
}

/* PyTorch computes these in the integers' own arithmetic, which rounds and wraps around on the way. */
static void integers_that_round_on_the_way_are_refused(void **state)
{
  (void)state;
  EXPECT_FAULT("%x : u8[1,1,2,2] = input\n"
               "%y : u8[1,1,3,3] = aten.upsample_bilinear2d.vec(%x, [3, 3], False, None)\nreturn %y\n",
               SW_UNSUPPORTED, "weighed means of u8", V(0, 10, 255, 3));
  EXPECT_FAULT("%x : i8[1,2] = input\n%y : f32[1] = aten.pairwise_distance(%x, %x)\nreturn %y\n", SW_UNSUPPORTED,
               "a distance of i8 and i8", V(1, 2));
}

static void assertions_hold_or_stop(void **state)
{
  (void)state;
  EXPECT_FAULT("%x : i64[] = input\n%c : bool[] = aten.gt.Scalar(%x, 3)\n"
               "_a: aten._assert_async.msg(%c, \"x is too small\")\n"
               "return %x\n",
               SW_INVALID, "x is too small", V(2));
}

static void subgraphs_run(void **state)
{
  (void)state;
  static const char cond[] = "%p : bool[] = input\n%x : f32[2] = input\n"
                             "graph @yes {\n  %a : f32[2] = input\n  %b : f32[2] = aten.neg(%a)\n  return %b\n}\n"
                             "graph @no {\n  %a : f32[2] = input\n  %b : f32[2] = aten.exp(%a)\n  return %b\n}\n"
                             "c: %y : f32[2] = higher_order.cond(%p, @yes, @no, [%x])\nreturn %y\n";
  EXPECT(cond, V(-1, -2), V(1), V(1, 2));
  EXPECT(cond, V(1, M_E), V(0), V(0, 1));
  /* x doubles until it passes 100. */
  static const char loop[] = "%x : f32[] = input\n"
                             "graph @more {\n  %a : f32[] = input\n  %b : bool[] = aten.le.Scalar(%a, 100)\n"
                             "  return %b\n}\n"
                             "graph @step {\n  %a : f32[] = input\n  %b : f32[] = aten.mul.Tensor(%a, 2)\n"
                             "  return %b\n}\n"
                             "w: %y : f32[] = higher_order.while_loop(@more, @step, [%x], [])\nreturn %y\n";
  EXPECT(loop, V(192), V(3));
  EXPECT(loop, V(101), V(101));
}

static void mutation_outputs_are_copied_at_the_end(void **state)
{
  (void)state;
  /* Two inputs change places; the mutation outputs stand first and show b, a as they are then. */
  EXPECT("%a : f32[2] = input\n%b : f32[2] = input\n%s : f32[2] = aten.add.Tensor(%a, %b)\nmutate %a = %b\n"
         "mutate %b = %a\nreturn %s, %a, %b\n",
         V(1, 2, 3, 4, 4, 6, 3, 4, 1, 2), V(1, 2), V(3, 4));
}

static void unrounded_results_keep_their_digits(void **state)
{
  (void)state;
  static const char text[] = "%x : f16[1] = aten.full([1], 0.1, dtype=f16)\n"
                             "%y : f8e4m3[1] = aten.to.dtype(%x, f8e4m3)\n"
                             "return %x, %y\n";
  struct sw_job job = unit_job();
  struct sw_graph *g;
  assert_int_equal(sw_graph_read(&job, "test", text, strlen(text), NULL, &g), SW_OK);
  struct sw_eval *e = sw_eval_new(&job, g, SW_ROUND_NONE, 1000);
  assert_int_equal(sw_eval_all(e), SW_OK);
  assert_true(sw_eval_value(e, g->outputs.v[0].arg.value)->tensor.cells->real[0] == 0.1);
  assert_true(sw_eval_value(e, g->outputs.v[1].arg.value)->tensor.cells->real[0] == 0.1015625);
  sw_arena_free(job.arena);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_table_is_sorted),
      cmocka_unit_test(it_knows_what_it_knows),
      cmocka_unit_test(no_schema_is_without_meaning),
      cmocka_unit_test(values_go_after_their_last_reader),
      cmocka_unit_test(what_does_not_fit_is_a_limit),
      cmocka_unit_test(folding_leaves_unknown_what_does_not_fit_or_depends_on_it),
      cmocka_unit_test(faults_name_the_node),
      cmocka_unit_test(missing_values_are_reported_once_each),
      cmocka_unit_test(random_numbers_are_refused),
      cmocka_unit_test(integers_that_round_on_the_way_are_refused),
      cmocka_unit_test(assertions_hold_or_stop),
      cmocka_unit_test(subgraphs_run),
      cmocka_unit_test(mutation_outputs_are_copied_at_the_end),
      cmocka_unit_test(unrounded_results_keep_their_digits),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
