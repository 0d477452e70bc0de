/* Dynamic dims get one size each; numbers worked out by hand. */
#include "graph_unit.h"

#include "base/options.h"

/* With s0 = 6, as exported: x is 6 x 48 x 4. */
#define GRAPH                                                              \
  "range s0 = 2..64\nrange 8*s0 = 16..512\nassume \"s0 - 1 != 1\"\n"        \
  "%x : f16[s0:6,8*s0:48,4] = input\n"                                     \
  "%n : int(s0:6) = aten.sym_size.int(%x, 0)\n"                            \
  "%m : int(s0 - 1:5) = _operator.sub(a=%n, b=1)\n"                        \
  "%ok : bool(s0 >= 4:1) = _operator.ge(a=%n, b=4)\n"                      \
  "check: aten._assert_scalar.default(%ok, \"too short\")\n"               \
  "%y : f16[8*s0:48,s0:6,4] strides=[4,32*s0:192,1] = aten.transpose.int(%x, 0, 1)\n" \
  "return %y\n"

static enum sw_rc fix(struct sw_job *job, struct sw_graph *g, const char *option)
{
  struct sw_texts t = {.v = &option, .n = option != NULL, .cap = 1};
  return sw_graph_fix_dims(job, g, &t);
}

static struct sw_graph *fixed(struct sw_job *job, const char *text, const char *option)
{
  struct sw_graph *g = read_graph(job, text, strlen(text));
  assert_non_null(g);
  assert_int_equal(fix(job, g, option), SW_OK);
  return g;
}

static void is_shape(const struct sw_graph *g, const char *name, const int64_t *size, const int64_t *stride)
{
  const struct sw_value *v = value_of(g, name);
  assert_null(v->size_expr);
  assert_null(v->stride_expr);
  for (int d = 0; d < v->rank; d++) {
    assert_int_equal(v->size[d], size[d]);
    assert_int_equal(v->stride[d], stride[d]);
  }
}

static void the_declared_maximum_is_the_default(void **unused)
{
  (void)unused;
  struct sw_job job = unit_job();
  const struct sw_graph *g = fixed(&job, GRAPH, NULL);
  is_shape(g, "x", (int64_t[]){64, 512, 4}, (int64_t[]){2048, 4, 1});
  is_shape(g, "y", (int64_t[]){512, 64, 4}, (int64_t[]){4, 2048, 1});
  assert_int_equal(value_of(g, "m")->hint, 63);
  assert_null(value_of(g, "m")->expr);
  assert_int_equal(g->dims.n, 1);
  assert_string_equal(g->dims.v[0].range.symbol, "s0");
  assert_int_equal(g->dims.v[0].value, 64);
  assert_int_equal(g->dims.v[0].hint, 6);
  sw_graph_warn_of_dims(&job, g);
  assert_string_equal(job.warnings.v[0], "dynamic dim s0 (range 2..64) is compiled for exactly 64: run it with inputs of that "
                                         "size; --dim-max s0=N compiles for another");
  sw_arena_free(job.arena);
}

static void an_option_sets_it(void **unused)
{
  (void)unused;
  struct sw_job job = unit_job();
  const struct sw_graph *g = fixed(&job, GRAPH, "s0=10:5");
  is_shape(g, "x", (int64_t[]){10, 80, 4}, (int64_t[]){320, 4, 1});
  is_shape(g, "y", (int64_t[]){80, 10, 4}, (int64_t[]){4, 320, 1});
  assert_int_equal(value_of(g, "n")->hint, 10);
  sw_arena_free(job.arena);
}

/* Without a maximum, or with one that is no plan, the export's own size is taken. */
static void an_unbounded_dim_keeps_its_size(void **unused)
{
  (void)unused;
  struct sw_job job = unit_job();
  const struct sw_graph *g = fixed(&job, "range s0 = 2..\nrange s1 = ..100000\n%x : f16[s0:5,s1:7] = input\nreturn %x\n", NULL);
  is_shape(g, "x", (int64_t[]){5, 7}, (int64_t[]){7, 1});
  sw_arena_free(job.arena);
}

static void what_depends_on_data_stays(void **unused)
{
  (void)unused;
  struct sw_job job = unit_job();
  const struct sw_graph *g = fixed(&job, "range u0 = 0..64\n%x : f16[s0:8,8] = input\n"
                                         "%i : i64[u0:64,2] = aten.nonzero.default(%x)\nreturn %i\n", "s0=4");
  is_shape(g, "x", (int64_t[]){4, 8}, (int64_t[]){8, 1});
  assert_string_equal(value_of(g, "i")->size_expr[0], "u0");
  assert_int_equal(g->dims.n, 1);
  sw_arena_free(job.arena);
}

static void broken_promises_are_faults(void **unused)
{
  (void)unused;
  static const struct {
    const char *option, *says, *where;
    enum sw_rc rc;
  } cases[] = {
      {"s0=65", "s0 = 65 is above its declared maximum, 64", NULL, SW_USAGE},
      {"s0=1", "s0 = 1 is below its declared minimum, 2", NULL, SW_USAGE},
      {"s0=10:4", "s0 = 10 is no multiple of 4", NULL, SW_USAGE},
      {"s1=10", "no dynamic dim s1", NULL, SW_USAGE},
      {"s0", "no SYMBOL=MAX", NULL, SW_USAGE},
      {"s0=9x", "no SYMBOL=MAX", NULL, SW_USAGE},
      {"s0=9:0", "no SYMBOL=MAX", NULL, SW_USAGE},
      {"s0=99999999999999999999", "no SYMBOL=MAX", NULL, SW_USAGE},
      {"s0=2", "s0 - 1 != 1, which is false at s0 = 2", NULL, SW_USAGE},
      {"s0=3", "assertion of the graph is false at s0 = 3: too short", "check", SW_USAGE},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    struct sw_job job = unit_job();
    struct sw_graph *g = read_graph(&job, GRAPH, strlen(GRAPH));
    assert_int_equal(fix(&job, g, cases[i].option), cases[i].rc);
    assert_true(has_fault(&job, cases[i].says, cases[i].where));
    assert_non_null(job.faults.v[0].advice);
    sw_arena_free(job.arena);
  }
}

/* 65536^4 elements are 2^64. */
static void sizes_that_do_not_fit_are_faults(void **unused)
{
  (void)unused;
  struct sw_job job = unit_job();
  const char *text = "range s0 = 1..65536\n%x : f16[s0:2,s0:2,s0:2,s0:2] strides=[1,1,1,1] = input\nreturn %x\n";
  assert_int_equal(fix(&job, read_graph(&job, text, strlen(text)), NULL), SW_LIMIT);
  assert_true(has_fault(&job, "tensor x: size [65536, 65536, 65536, 65536] at s0 = 65536", NULL));
  sw_arena_free(job.arena);
}

static void a_guard_nobody_can_read_is_a_warning(void **unused)
{
  (void)unused;
  struct sw_job job = unit_job();
  fixed(&job, "assume \"L['a'][0] is None\"\n%x : f16[s0:5] = input\nreturn %x\n", NULL);
  assert_string_equal(job.warnings.v[0], "the export assumed \"L['a'][0] is None\", which is not checked");
  sw_arena_free(job.arena);
}

static void a_size_gives_the_symbol_back(void **unused)
{
  (void)unused;
  struct sw_job job = unit_job();
  const char *symbol;
  assert_int_equal(sw_graph_solve_dim(&job, "8*s39", 48, &symbol), 6);
  assert_string_equal(symbol, "s39");
  assert_int_equal(sw_graph_solve_dim(&job, "8*s39", 50, &symbol), -1);
  assert_int_equal(sw_graph_solve_dim(&job, "s1 + s2", 50, &symbol), -1);
  assert_int_equal(sw_graph_solve_dim(&job, "s1", 1 << 20, &symbol), 1 << 20);
  sw_arena_free(job.arena);
}

/* Guards and offsets in symbols come back from the text form. */
static void the_text_form_keeps_it_all(void **unused)
{
  (void)unused;
  struct sw_job job = unit_job();
  const char *text = "assume \"s0 != 3\"\n%x : f16[8,4] = input\n%y : f16[2,4] strides=[4,1] offset=4*s0:20 = "
                     "aten.as_strided(%x, [2,4], [4,1], 20)\n"
                     "return %y\n";
  const struct sw_graph *g = read_graph(&job, text, strlen(text));
  const char *once = text_of(&job, g);
  assert_non_null(strstr(once, "assume \"s0 != 3\"\n"));
  assert_non_null(strstr(once, "offset=4*s0:20"));
  assert_string_equal(text_of(&job, read_graph(&job, once, strlen(once))), once);
  sw_arena_free(job.arena);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_declared_maximum_is_the_default),
      cmocka_unit_test(an_option_sets_it),
      cmocka_unit_test(an_unbounded_dim_keeps_its_size),
      cmocka_unit_test(what_depends_on_data_stays),
      cmocka_unit_test(broken_promises_are_faults),
      cmocka_unit_test(sizes_that_do_not_fit_are_faults),
      cmocka_unit_test(a_guard_nobody_can_read_is_a_warning),
      cmocka_unit_test(a_size_gives_the_symbol_back),
      cmocka_unit_test(the_text_form_keeps_it_all),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
