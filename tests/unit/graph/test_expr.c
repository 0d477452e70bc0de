#include "../unit.h"

#include <string.h>

#include "compiler/graph/expr.h"

static const char *printed(struct sw_arena *a, const char *text)
{
  const struct sw_expr *e = sw_expr_parse(a, text);
  return e ? sw_expr_text(a, e) : "(none)";
}

/* Texts that sympy 1.13 prints for these expressions; the first four pairs are from exported programs. */
static void srepr_prints_like_sympy(void **state)
{
  (void)state;
  static const char *const cases[][2] = {
      {"Mul(Integer(8), Symbol('s39', positive=True, integer=True))", "8*s39"},
      {"Add(Symbol('s33', positive=True, integer=True), Integer(-1))", "s33 - 1"},
      {"FloorDiv(Add(Symbol('s33', positive=True, integer=True), Symbol('s6', positive=True, integer=True)), Integer(2))",
       "((s33 + s6)//2)"},
      {"GreaterThan(Symbol('u0', integer=True), Integer(1))", "u0 >= 1"},
      {"Add(Integer(1), Symbol('s0'))", "s0 + 1"},
      {"Add(Symbol('a'), Mul(Integer(-2), Symbol('b')))", "a - 2*b"},
      {"Mul(Integer(-1), Symbol('s0'))", "-s0"},
      {"Pow(Symbol('s0'), Integer(2))", "s0**2"},
      {"Mul(Integer(2), Add(Symbol('s0'), Integer(1)))", "2*(s0 + 1)"},
      {"Max(Integer(1), Symbol('u0'))", "Max(1, u0)"},
      {"Mod(Symbol('s0'), Integer(8))", "Mod(s0, 8)"},
      {"Add(Mul(Symbol('s0'), Symbol('s1')), Pow(Symbol('s0'), Integer(2)), Symbol('s1'), Integer(3))",
       "s0**2 + s0*s1 + s1 + 3"},
  };
  struct sw_job job = unit_job();
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
    assert_string_equal(printed(job.arena, cases[i][0]), cases[i][1]);
  sw_arena_free(job.arena);
}

/* Ordinary notation reads back as it was printed. */
static void ordinary_notation_is_a_fixed_point(void **state)
{
  (void)state;
  static const char *const cases[] = {"8*s39",  "s33 - 1",   "((s33 + s6)//2)", "u0 >= 1",   "-s0",
                                      "a - 2*b", "Max(1, u0)", "Mod(s0, 8)",      "s0**2 + 1", "2*(s0 + 1)"};
  struct sw_job job = unit_job();
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
    assert_string_equal(printed(job.arena, cases[i]), cases[i]);
  sw_arena_free(job.arena);
}

static bool lookup(void *ctx, const char *symbol, int64_t *value)
{
  (void)ctx;
  *value = !strcmp(symbol, "s0") ? 7 : !strcmp(symbol, "s1") ? -7 : 0;
  return strcmp(symbol, "unknown") != 0;
}

/* Values as Python gives them for s0 = 7, s1 = -7. */
static void evaluates_like_python(void **state)
{
  (void)state;
  static const struct {
    const char *text;
    int64_t value;
  } cases[] = {
      {"8*s0", 56},        {"s0 // 2", 3},     {"s1 // 2", -4},        {"s1 % 4", 1},        {"s0 - 10", -3},
      {"s0**2", 49},       {"CeilDiv(s0, 2)", 4}, {"Max(s0, s1, 9)", 9}, {"Min(s0, s1)", -7}, {"s0 >= 7", 1},
      {"s0 > 7", 0},       {"s0 == 7 & s1 < 0", 1}, {"2 + 3*4", 14},   {"(2 + 3)*4", 20},    {"-s1", 7},
      {"10 - 3 - 2", 5},   {"Not(s0 > 100)", 1},
  };
  struct sw_job job = unit_job();
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    const struct sw_expr *e = sw_expr_parse(job.arena, cases[i].text);
    int64_t v = 12345;
    assert_non_null(e);
    assert_true(sw_expr_eval(e, lookup, NULL, &v));
    assert_int_equal(v, cases[i].value);
  }
  sw_arena_free(job.arena);
}

static void what_has_no_integer_value_is_false(void **state)
{
  (void)state;
  static const char *const cases[] = {"s0 // 0", "unknown + 1", "4611686018427387904*s0", "ToFloat(s0)", "2**99"};
  struct sw_job job = unit_job();
  int64_t v;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    const struct sw_expr *e = sw_expr_parse(job.arena, cases[i]);
    assert_non_null(e);
    assert_false(sw_expr_eval(e, lookup, NULL, &v));
  }
  sw_arena_free(job.arena);
}

static void broken_text_is_no_expression(void **state)
{
  (void)state;
  static const char *const cases[] = {"", "8*", "(s0", "Symbol('s0'", "Integer(x)", "FloorDiv(1)", "s0 s1", "99999999999999999999"};
  struct sw_job job = unit_job();
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
    assert_null(sw_expr_parse(job.arena, cases[i]));
  char deep[2001];
  memset(deep, '(', 2000);
  deep[2000] = 0;
  assert_null(sw_expr_parse(job.arena, deep));
  sw_arena_free(job.arena);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(srepr_prints_like_sympy),
      cmocka_unit_test(ordinary_notation_is_a_fixed_point),
      cmocka_unit_test(evaluates_like_python),
      cmocka_unit_test(what_has_no_integer_value_is_false),
      cmocka_unit_test(broken_text_is_no_expression),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
