/* Debug handles: superdsc.md 8.2 has one worked out (case 97). */
#include "../unit.h"

#include "compiler/emit/handle.h"

#include <string.h>

static const char *text_of(const json_t *o, const char *key)
{
  return json_string_value(json_object_get(o, key));
}

static void the_id_is_a_hash_of_the_origin(void **state)
{
  (void)state;
  struct sw_job job = unit_job();
  static const char text[] = "%a : f16[64] = input\n%add : f16[64] = aten.add.Tensor(%a, %a) # model.py:27\nreturn %add\n";
  struct sw_program p = {0};
  struct sw_graph *g;
  assert_int_equal(sw_graph_read(&job, "", text, strlen(text), NULL, &g), SW_OK);
  p.graph = g;
  struct sw_op op = {.name = "buf0", .source = "model.py:27"};
  *SW_PUSH(job.arena, &op.nodes) = 0;
  const json_t *h = sw_debug_handle(&job, &p, &op);
  assert_string_equal(text_of(h, "id"), "8145217986653817596");
  assert_string_equal(text_of(h, "aten_op"), "aten.add.Tensor");
  assert_int_equal(json_integer_value(json_object_get(json_object_get(h, "source"), "start_line")), 27);
  sw_arena_free(job.arena);
}

/* Several nodes in one op: each has a handle of its own; no node: the op was inserted. */
static void fused_and_inserted_ops_say_so(void **state)
{
  (void)state;
  struct sw_job job = unit_job();
  static const char text[] = "%a : f16[64] = input\n%b : f16[64] = aten.neg(%a)\n%c : f16[64] = aten.abs(%b)\nreturn %c\n";
  struct sw_program p = {0};
  struct sw_graph *g;
  assert_int_equal(sw_graph_read(&job, "", text, strlen(text), NULL, &g), SW_OK);
  p.graph = g;
  struct sw_op op = {.name = "c"};
  *SW_PUSH(job.arena, &op.nodes) = 0;
  *SW_PUSH(job.arena, &op.nodes) = 1;
  const json_t *h = sw_debug_handle(&job, &p, &op), *parts = json_object_get(h, "fused_from");
  assert_true(json_is_null(json_object_get(h, "aten_op")));
  assert_true(json_is_null(json_object_get(h, "source")));
  assert_int_equal(json_array_size(parts), 2);
  assert_string_equal(text_of(json_array_get(parts, 1), "aten_op"), "aten.abs.default");
  op.nodes.n = 0;
  h = sw_debug_handle(&job, &p, &op);
  assert_string_equal(text_of(json_array_get(json_object_get(h, "transform_history"), 0), "kind"), "insert");
  sw_arena_free(job.arena);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_id_is_a_hash_of_the_origin),
      cmocka_unit_test(fused_and_inserted_ops_say_so),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
