#include "graph_unit.h"

#include <pthread.h>

static const char *const lines[] = {
#include "compiler/graph/schemas.def"
};

static void every_line_is_found_by_its_target(void **state)
{
  (void)state;
  for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
    const char *open = strchr(lines[i], '('), *colon = strstr(lines[i], "::");
    char op[100], target[200];
    snprintf(op, sizeof op, "%.*s", (int)(open - colon - 2), colon + 2);
    snprintf(target, sizeof target, "%.*s.%s%s", (int)(colon - lines[i]), lines[i], op, strchr(op, '.') ? "" : ".default");
    const struct sw_schema *s = sw_schema_find(target);
    assert_non_null(s);
    assert_string_equal(s->target, target);
  }
}

static void an_alias_has_the_schema_of_its_original(void **state)
{
  (void)state;
  static const char *const pairs[][2] = {{"aten.multiply.Tensor", "aten.mul.Tensor"},
                                         {"aten.subtract_.Scalar", "aten.sub_.Scalar"},
                                         {"aten.clip.default", "aten.clamp.default"},
                                         {"aten.special_expit.default", "aten.sigmoid.default"},
                                         {"aten._unsafe_index.Tensor", "aten.index.Tensor"}};
  for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
    assert_string_equal(sw_schema_find(pairs[i][0])->target, pairs[i][1]);
  const char *name, *of;
  for (int i = 0; (name = sw_schema_alias(i, &of)); i++) {
    bool known = false; /* some overload of the original goes by that name */
    for (size_t k = 0; k < sizeof lines / sizeof lines[0]; k++) {
      const char *open = strchr(lines[k], '('), *op = strstr(lines[k], "::") + 2;
      size_t n = strcspn(op, ".(");
      if (n != strlen(of) || memcmp(op, of, n))
        continue;
      char target[120];
      snprintf(target, sizeof target, "aten.%s.%.*s", name, op[n] == '.' ? (int)(open - op - (ptrdiff_t)n - 1) : 7,
               op[n] == '.' ? op + n + 1 : "default");
      known = known || sw_schema_find(target);
    }
    assert_true(known);
  }
  assert_null(sw_schema_find("aten.multiply_add.Tensor"));
}

/* Their result is another view of the same elements: nothing is written. */
static void in_place_views_are_views(void **state)
{
  (void)state;
  assert_string_equal(sw_schema_find("aten.transpose_.default")->args[0].type, "Tensor(a)");
  assert_string_equal(sw_schema_find("aten.clamp_.default")->args[0].type, "Tensor(a!)");
}

static void arguments_have_names_types_and_defaults(void **state)
{
  (void)state;
  const struct sw_schema *s = sw_schema_find("aten.add.Tensor");
  assert_int_equal(s->n_args, 3);
  assert_string_equal(s->args[1].name, "other");
  assert_string_equal(s->args[1].type, "Tensor");
  assert_false(s->args[1].keyword_only);
  assert_false(s->args[1].has_default);
  assert_string_equal(s->args[2].name, "alpha");
  assert_true(s->args[2].keyword_only);
  assert_int_equal(s->args[2].def.kind, SW_ARG_INT);
  assert_int_equal(s->args[2].def.i, 1);
  assert_int_equal(s->n_returns, 1);

  s = sw_schema_find("aten.conv2d.padding");
  assert_string_equal(s->args[4].name, "padding");
  assert_string_equal(s->args[4].def.s, "valid");
  assert_int_equal(s->args[3].def.kind, SW_ARG_LIST);
  assert_int_equal(s->args[3].def.list.n, 2);
  assert_int_equal(s->args[3].def.list.v[1].i, 1);

  s = sw_schema_find("aten.avg_pool2d.default"); /* int[2] padding=0 */
  assert_string_equal(s->args[3].name, "padding");
  assert_int_equal(s->args[3].def.list.n, 2);
  assert_int_equal(s->args[3].def.list.v[1].i, 0);
  assert_int_equal(s->args[2].def.list.n, 0); /* int[2] stride=[] */
  assert_int_equal(s->args[5].def.i, true);

  s = sw_schema_find("aten.layer_norm.default");
  assert_int_equal(s->args[4].def.kind, SW_ARG_REAL);
  assert_true(s->args[4].def.r == 1e-5);

  s = sw_schema_find("aten.contiguous.default"); /* c10's 0 is contiguous, number 1 of a .pt2 */
  assert_int_equal(s->args[1].def.kind, SW_ARG_MEMORY_FORMAT);
  assert_int_equal(s->args[1].def.i, 1);
}

static void results_have_types(void **state)
{
  (void)state;
  const struct sw_schema *s = sw_schema_find("aten.max.dim");
  assert_int_equal(s->n_returns, 2);
  assert_string_equal(s->returns[1], "Tensor");
  s = sw_schema_find("aten.split.Tensor");
  assert_int_equal(s->n_returns, 1);
  assert_string_equal(s->returns[0], "Tensor(a)[]");
  assert_string_equal(s->args[0].type, "Tensor(a -> *)");
  assert_int_equal(sw_schema_find("aten._assert_scalar.default")->n_returns, 0);
  assert_string_equal(sw_schema_find("aten.sym_size.int")->returns[0], "SymInt");
}

static void unknown_overloads_are_null(void **state)
{
  (void)state;
  assert_null(sw_schema_find("aten.add.Nothing"));
  assert_null(sw_schema_find("aten.add"));
  assert_null(sw_schema_find(""));
}

static void *find_one(void *out)
{
  *(const struct sw_schema **)out = sw_schema_find("aten.mm.default");
  return NULL;
}

static void threads_get_the_same_table(void **state)
{
  (void)state;
  pthread_t t[8];
  const struct sw_schema *s[8];
  for (int i = 0; i < 8; i++)
    assert_int_equal(pthread_create(&t[i], NULL, find_one, &s[i]), 0);
  for (int i = 0; i < 8; i++) {
    pthread_join(t[i], NULL);
    assert_non_null(s[i]);
    assert_ptr_equal(s[i], s[0]);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(threads_get_the_same_table), /* first: the table is made then */
      cmocka_unit_test(every_line_is_found_by_its_target),
      cmocka_unit_test(an_alias_has_the_schema_of_its_original),
      cmocka_unit_test(in_place_views_are_views),
      cmocka_unit_test(arguments_have_names_types_and_defaults),
      cmocka_unit_test(results_have_types),
      cmocka_unit_test(unknown_overloads_are_null),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
