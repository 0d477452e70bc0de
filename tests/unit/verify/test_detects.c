/* What the simulated card must notice: reads of what nobody wrote or of what lies elsewhere, races, padding that reaches
 * a result, scratchpads that another program left, symbols that don't fit their file. */
#include "golden.h"

static void says(struct golden *g, enum sw_rc rc, const char *what)
{
  assert_int_equal(rc, SW_DIFFERENT);
  const char *detail = g->job.faults.v[0].detail;
  if (!strstr(detail, what))
    fail_msg("%s: %s", g->folder, detail);
  sw_arena_free(g->job.arena);
}

static struct golden add_of_two(void)
{
  struct golden g = begin("03_add_4core_2x2");
  for (int i = 0; i < 3; i++)
    add_2d(&g, 128, 256);
  return g;
}

static void what_nobody_wrote_makes_its_results_undefined(void **state)
{
  (void)state;
  struct golden g = add_of_two();
  g.host[1].undefined[300] = true;
  assert_int_equal(run(&g), SW_OK);
  for (int i = 0; i < 128 * 256; i++)
    assert_int_equal(g.host[2].undefined[i], i == 300);
  sw_arena_free(g.job.arena);
}

/* Elements 100 to 127 of each row are padding; the mask begins one too late, and the maximum is poison. */
static void padding_that_reaches_a_result_makes_it_undefined(void **state)
{
  (void)state;
  struct golden g = begin("33_max_stick_padded");
  g.in = "sdsc_0.json";
  g.change[0][0] = "                100,", g.change[0][1] = "                101,";
  g.change[1][0] = "                28\n", g.change[1][1] = "                27\n";
  add_2d(&g, 64, 100);
  add(&g, 1, (int64_t[]){64}, 3, (int64_t[]){1, 64, 64}, (int64_t[]){-1, 1, -1}, SIM_FP16);
  assert_int_equal(run(&g), SW_OK);
  for (int i = 0; i < 64; i++)
    assert_true(g.host[1].undefined[i]);
  sw_arena_free(g.job.arena);
}

static void row_numbers_behind_the_table_lie_outside(void **state)
{
  (void)state;
  struct golden g = begin("81_gather_1d_index_exp");
  add(&g, 1, (int64_t[]){32}, 3, (int64_t[]){1, 1, 32}, (int64_t[]){32, -1, 1}, SIM_INT32);
  add(&g, 2, (int64_t[]){128, 256}, 3, (int64_t[]){128, 4, 64}, (int64_t[]){256, 64, 1}, SIM_FP16);
  add_2d(&g, 32, 256);
  for (int i = 0; i < 32; i++)
    g.host[0].v[i] = 128;
  says(&g, run(&g), "lies outside argument of 65536 bytes");
}

/* An unwritten row number is worse than an unwritten value: nobody knows what is read. */
static void unwritten_row_numbers_are_reported(void **state)
{
  (void)state;
  struct golden g = begin("81_gather_1d_index_exp");
  add(&g, 1, (int64_t[]){32}, 3, (int64_t[]){1, 1, 32}, (int64_t[]){32, -1, 1}, SIM_INT32);
  add(&g, 2, (int64_t[]){128, 256}, 3, (int64_t[]){128, 4, 64}, (int64_t[]){256, 64, 1}, SIM_FP16);
  add_2d(&g, 32, 256);
  memset(g.host[0].v, 0, 32 * sizeof(double));
  g.host[0].undefined[31] = true;
  says(&g, run(&g), "a row number was never written");
}

/* [8,32,128] to [32,8,128], 8 cores, in place: each writes rows that others still read. */
static void a_permutation_in_place_is_a_race(void **state)
{
  (void)state;
  struct golden g = begin("24_identity_permute");
  add_flat(&g, 8 * 32 * 128, SIM_FP16);
  add_flat(&g, 8 * 32 * 128, SIM_FP16);
  g.args[1].memory = g.args[0].memory;
  says(&g, run(&g), "is written by one core and used by another");
}

/* All addresses follow from core 0 and the map. */
static void a_core_that_is_not_where_its_slot_says_is_reported(void **state)
{
  (void)state;
  struct golden g = add_of_two();
  g.in = "bundle.mlir";
  g.change[0][0] = "%arg_2_core_offset_8192 = arith.constant 8192", g.change[0][1] = "%arg_2_core_offset_8192 = arith.constant 0";
  says(&g, run(&g), "core 1 starts 0 bytes behind core 0; its slices are 8192 behind");
}

static void a_buffer_of_another_size_is_reported(void **state)
{
  (void)state;
  struct golden g = begin("03_add_4core_2x2");
  add_2d(&g, 128, 256);
  add_2d(&g, 128, 192);
  add_2d(&g, 128, 256);
  says(&g, run(&g), "its extents span 65536 bytes, argument has 49152");
}

/* The first program leaves its maxima in the scratchpads; the second reads them without writing any: they are gone. */
static void scratchpads_do_not_survive_a_program(void **state)
{
  (void)state;
  struct golden g = begin("50_lx_softmax_chain");
  add_2d(&g, 64, 256);
  add_2d(&g, 64, 256);
  assert_int_equal(run(&g), SW_OK);
  for (int i = 0; i < 64 * 256; i++)
    assert_false(g.host[1].undefined[i]);
  g.in = "bundle.mlir";
  g.drop = "sdsc_filename=\"sdsc_0.json\"";
  assert_int_equal(run(&g), SW_OK);
  for (int i = 0; i < 64 * 256; i++)
    assert_true(g.host[1].undefined[i]);
  sw_arena_free(g.job.arena);
}

static void symbols_fit_their_file(void **state)
{
  (void)state;
  static const struct {
    const char *from, *to, *operands, *without, *says;
  } cases[] = {
      {"=[-1, ", "=[-1, -99, ", "(%arg_0, ", "(%arg_0, %arg_0, ", "symbol -99 is passed and sdsc_0.json does not use it"},
      {"=[-1, ", "=[-1, -1, ", "(%arg_0, ", "(%arg_0, %arg_0, ", "symbol -1 is passed twice"},
      {"=[-1, -2, ", "=[-1, ", "(%arg_0, %arg_0_core_8192, ", "(%arg_0, ",
       "sdsc_0.json: tensor 0 starts at symbol -2, which is not passed"},
      {"=[-1, -2, ", "=[-1, ", "nothing", "nothing", "operands and symbol ids differ in number"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    struct golden g = add_of_two();
    g.in = "bundle.mlir";
    g.change[0][0] = cases[i].from, g.change[0][1] = cases[i].to;
    g.change[1][0] = cases[i].operands, g.change[1][1] = cases[i].without;
    says(&g, run(&g), cases[i].says);
  }
}

static void a_loop_must_execute_something(void **state)
{
  (void)state;
  struct golden g = begin("90_loop_nested_2x4");
  for (int i = 0; i < 4; i++)
    add_2d(&g, 1024, 4096);
  g.in = "bundle.mlir";
  g.drop = "sdsc_execute";
  says(&g, run(&g), "a loop without an execute");
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_nobody_wrote_makes_its_results_undefined),
      cmocka_unit_test(padding_that_reaches_a_result_makes_it_undefined),
      cmocka_unit_test(row_numbers_behind_the_table_lie_outside),
      cmocka_unit_test(unwritten_row_numbers_are_reported),
      cmocka_unit_test(a_permutation_in_place_is_a_race),
      cmocka_unit_test(a_core_that_is_not_where_its_slot_says_is_reported),
      cmocka_unit_test(a_buffer_of_another_size_is_reported),
      cmocka_unit_test(scratchpads_do_not_survive_a_program),
      cmocka_unit_test(symbols_fit_their_file),
      cmocka_unit_test(a_loop_must_execute_something),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
