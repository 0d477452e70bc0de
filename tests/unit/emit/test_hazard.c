#include "../unit.h"

#include "compiler/emit/opspec.h"
#include "spec_text.h"

/* Rows and columns of [128,128] in each tensor; `cut` is the loops text. */
static const char rows_and_columns[] = "floor(c1/64)|c0|Mod(c1, 64)";

static enum sw_rc emit(struct sw_job *job, const char *text)
{
  struct sw_opspecs *s;
  SW_TRY(sw_opspecs_read(job, text, strlen(text), &s));
  return sw_emit_superdsc(job, s, "", NULL);
}

static void says(struct sw_job *job, const char *text, const char *what)
{
  assert_int_equal(emit(job, text), SW_UNSUPPORTED);
  assert_int_equal(job->faults.n, 1);
  if (!strstr(job->faults.v[0].detail, what))
    fail_msg("\"%s\" expected in \"%s\"", what, job->faults.v[0].detail);
  sw_arena_free(job->arena);
}

/* Two copies through LX: argument 0 to LX with one cut, LX to argument 1 with another. */
static const char *through_lx(struct sw_job *job, const char *writer, const char *reader, const char *reader_size,
                              const char *reader_coords)
{
  const char *const in[] = {"2,128,64", "2,128,64@lx:0"}, *const out[] = {reader_size, "1,2,128,64"};
  const char *const in_coords[] = {rows_and_columns, rows_and_columns};
  const char *const out_coords[] = {reader_coords, "0|floor(c1/64)|c0|Mod(c1, 64)"};
  struct sw_buf b = {.arena = job->arena};
  sw_buf_puts(&b, bundle_head);
  op_text(&b, "neg", false, writer, in, in_coords, 2);
  sw_buf_puts(&b, ", ");
  op_text(&b, "neg", false, reader, out, out_coords, 2);
  sw_buf_puts(&b, bundle_tail);
  return sw_buf_text(&b);
}

static void a_reader_cut_like_the_writer_finds_its_rows(void **state)
{
  (void)state;
  struct sw_job job = unit_job();
  assert_int_equal(emit(&job, through_lx(&job, "c0,128,32;c1,128,1", "c0,128,32;c1,128,1", "1,2,128,64@lx:0",
                                         "0|floor(c1/64)|c0|Mod(c1, 64)")), SW_OK);
  sw_arena_free(job.arena);
}

static void a_reader_cut_another_way_is_refused(void **state)
{
  (void)state;
  struct sw_job job = unit_job();
  says(&job, through_lx(&job, "c0,128,32;c1,128,1", "c0,128,16;c1,128,2", "1,2,128,64@lx:0",
                        "0|floor(c1/64)|c0|Mod(c1, 64)"), "another part in LX");
}

/* 2 x 2 cores both times, but the loops are named in another order, so core 1 has other columns. */
static void the_order_of_loops_numbers_the_cores(void **state)
{
  (void)state;
  struct sw_job job = unit_job();
  const char *text = through_lx(&job, "c1,128,2;c0,128,2", "c0,128,2;c1,128,2", "1,2,128,64@lx:0",
                                "0|floor(c1/64)|c0|Mod(c1, 64)");
  says(&job, text, "another part in LX");
}

/* In the recorded attention graphs the result of a max lies on its own input. */
static void a_reduction_over_its_own_input_is_refused(void **state)
{
  (void)state;
  static const char *const sizes[] = {"2,128,64@hbm_pool:0", "1,128,64@hbm_pool:0"};
  static const char *const coords[] = {rows_and_columns, "0|c0|0"};
  struct sw_job job = unit_job();
  says(&job, spec_text(&job, "max", true, "c0,128,32;c1,128,1", sizes, coords, 2), "may still read");
}

static void lane_by_lane_a_result_may_take_the_place_of_its_operand(void **state)
{
  (void)state;
  static const char *const sizes[] = {"2,128,64@hbm_pool:0", "2,128,64@hbm_pool:0"};
  static const char *const coords[] = {rows_and_columns, rows_and_columns};
  struct sw_job job = unit_job();
  assert_int_equal(emit(&job, spec_text(&job, "neg", false, "c0,128,32;c1,128,1", sizes, coords, 2)), SW_OK);
  sw_arena_free(job.arena);
}

/* Rows 0..63 to rows 64..127 of one buffer do not meet, to rows 32..95 they do. */
static void parts_of_one_buffer_may_not_meet(void **state)
{
  (void)state;
  static const char *const sizes[] = {"2,128,64@hbm_pool:0", "2,128,64@hbm_pool:0"};
  static const char *const away[] = {rows_and_columns, "floor(c1/64)|c0 + 64|Mod(c1, 64)"};
  static const char *const near[] = {rows_and_columns, "floor(c1/64)|c0 + 32|Mod(c1, 64)"};
  struct sw_job job = unit_job();
  assert_int_equal(emit(&job, spec_text(&job, "neg", false, "c0,64,32;c1,128,1", sizes, away, 2)), SW_OK);
  says(&job, spec_text(&job, "neg", false, "c0,64,32;c1,128,1", sizes, near, 2), "may still read");
}

static void partial_sums_in_lx_are_refused(void **state)
{
  (void)state;
  static const char *const sizes[] = {"2,128,64", "1,2,64@lx:0"};
  static const char *const coords[] = {rows_and_columns, "0|floor(c1/64)|Mod(c1, 64)"};
  struct sw_job job = unit_job();
  says(&job, spec_text(&job, "sum", true, "c1,128,1;c0,128,4", sizes, coords, 2), "partial sums");
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_reader_cut_like_the_writer_finds_its_rows),
      cmocka_unit_test(a_reader_cut_another_way_is_refused),
      cmocka_unit_test(the_order_of_loops_numbers_the_cores),
      cmocka_unit_test(a_reduction_over_its_own_input_is_refused),
      cmocka_unit_test(lane_by_lane_a_result_may_take_the_place_of_its_operand),
      cmocka_unit_test(parts_of_one_buffer_may_not_meet),
      cmocka_unit_test(partial_sums_in_lx_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
