#include "../unit.h"

#include "compiler/emit/superdsc.h"
#include "spec_text.h"

#include <string.h>

static enum sw_rc emit(struct sw_job *job, const char *text, struct sw_files *files)
{
  struct sw_opspecs *s;
  SW_TRY(sw_opspecs_read(job, text, strlen(text), &s));
  return sw_emit_superdsc(job, s, "", files);
}

static void refused_with(const char *op, bool is_reduction, const char *loops, const char *const *sizes,
                         const char *const *coords, int n, const char *why)
{
  struct sw_job job = unit_job();
  struct sw_files files = {0};
  assert_int_not_equal(emit(&job, spec_text(&job, op, is_reduction, loops, sizes, coords, n), &files), SW_OK);
  assert_true(job.faults.n > 0);
  if (!strstr(job.faults.v[0].detail, why))
    fail_msg("\"%s\" expected in \"%s\"", why, job.faults.v[0].detail);
  assert_int_equal(files.list.n, 0);
  sw_arena_free(job.arena);
}

/* The four pairs known from the public history, and those of the recorded files. */
static void constants_are_encoded_as_the_device_stores_them(void **state)
{
  (void)state;
  assert_int_equal(sw_device_constant(SW_FORMAT_FP16, 0.00390625), 11776);
  assert_int_equal(sw_device_constant(SW_FORMAT_FP16, 1e-5), 7327);
  assert_int_equal(sw_device_constant(SW_FORMAT_FP16, 1.0 / 2880), 9944);
  assert_int_equal(sw_device_constant(SW_FORMAT_FP16, 0), 0);
  assert_int_equal(sw_device_constant(SW_FORMAT_FP16, 0.01), 12431);
  assert_int_equal(sw_device_constant(SW_FORMAT_FP16, 0.25), 14848);
  assert_int_equal(sw_device_constant(SW_FORMAT_FP16, -__builtin_inf()), 65535);
  assert_int_equal(sw_device_constant(SW_FORMAT_FP16, 1e30), 0x7FFF);
  assert_int_equal(sw_device_constant(SW_FORMAT_FP16, 1e-12), 0);
  assert_int_equal(sw_device_constant(SW_FORMAT_FP32, -__builtin_inf()), 4286578688u);
  assert_int_equal(sw_device_constant(SW_FORMAT_FP32, __builtin_inf()), 2139095040u);
}

static const char everything[] =
    "{\n \"case\": \"all\",\n \"note\": \"every field\",\n \"pool_size\": 4096,\n \"config\": {\n"
    "  \"core_id_k_fast_emission\": false\n },\n \"specs\": [\n  {\n   \"kind\": \"loop\",\n   \"count\": \"2\",\n"
    "   \"body\": [\n    {\n     \"kind\": \"op\",\n     \"op\": \"mean\",\n     \"is_reduction\": true,\n"
    "     \"iteration_space\": [\n      {\n       \"symbol\": \"c0\",\n       \"range\": \"s97\",\n       \"split\": 1\n"
    "      },\n      {\n       \"symbol\": \"c1\",\n       \"range\": 64,\n       \"split\": 1\n      }\n     ],\n"
    "     \"op_info\": {\n      \"constants\": {\n       \"scaling_factor\": 0.015625,\n       \"useZeroMean\": false,\n"
    "       \"kernel_h\": 2\n      }\n     },\n     \"args\": [\n      {\n       \"is_input\": true,\n"
    "       \"arg_index\": 0,\n       \"device_dtype\": \"SEN169_FP16\",\n       \"device_size\": [\n        2,\n"
    "        64,\n        64\n       ],\n       \"device_coordinates\": [\n        \"floor(c1/64) + 1\",\n"
    "        \"c0 + 3\",\n        \"Mod(c1, 64)\"\n       ],\n       \"allocation\": {\n        \"hbm\": 0\n       },\n"
    "       \"element_arrangement\": \"STANDARD\",\n       \"device_tile_advance_expr\": \"floor(4096*t0)\"\n      },\n"
    "      {\n       \"is_input\": false,\n       \"arg_index\": -1,\n       \"device_dtype\": \"IEEE_FP32\",\n"
    "       \"device_size\": [\n        32\n       ],\n       \"device_coordinates\": [\n        \"0\"\n       ],\n"
    "       \"allocation\": {\n        \"lx\": 128\n       },\n       \"element_arrangement\": \"EXX2\",\n"
    "       \"work_division\": {\n        \"work_slices\": {\n         \"c0\": 4\n        },\n"
    "        \"core_id_to_work_slice\": {\n         \"c0\": \"Mod(floor(core_id/2), 4)\"\n        }\n       }\n      }\n"
    "     ],\n     \"tiled_symbols\": [\n      [\n       \"t0\"\n      ]\n     ],\n"
    "     \"tiled_symbol_trip_counts\": {\n      \"t0\": 2\n     },\n     \"symbolic_dim_bounds\": {\n"
    "      \"s97\": {\n       \"max\": 512,\n       \"granularity\": 64\n      }\n     },\n"
    "     \"debug_handle\": {\n      \"id\": \"7\",\n      \"source\": null\n     }\n    }\n   ]\n  }\n ]\n}";

static void writing_what_was_read_gives_the_same_bytes(void **state)
{
  (void)state;
  struct sw_job job = unit_job();
  struct sw_opspecs *s;
  assert_int_equal(sw_opspecs_read(&job, everything, strlen(everything), &s), SW_OK);
  struct sw_buf out = {.arena = job.arena};
  sw_opspecs_write(s, &out);
  assert_string_equal(sw_buf_text(&out), everything);
  sw_arena_free(job.arena);
}

static void core_maps_of_nested_quotients_are_read(void **state)
{
  (void)state;
  struct sw_job job = unit_job();
  char *text = sw_arena_strdup(job.arena, everything);
  char *map = strstr(text, "Mod(floor(core_id/2), 4)");
  memcpy(map, "Mod(core_id/2, 4)       ", 24);
  struct sw_opspecs *s;
  assert_int_equal(sw_opspecs_read(&job, text, strlen(text), &s), SW_OK);
  const struct sw_work_slice *w = s->specs.v[0]->body.v[0]->args.v[1].work_division->slices.v;
  assert_int_equal(w->below, 2);
  assert_int_equal(w->n, 4);
  sw_arena_free(job.arena);
}

/* Case 03: add [128,256] on 2 x 2 cores starts at 0, 8192, 32768, 40960 bytes. */
static void cores_start_at_their_slices(void **state)
{
  (void)state;
  static const char *const sizes[] = {"4,128,64", "4,128,64"};
  static const char *const coords[] = {"floor(c1/64)|c0|Mod(c1, 64)", "floor(c1/64)|c0|Mod(c1, 64)"};
  struct sw_job job = unit_job();
  struct sw_files files = {0};
  assert_int_equal(emit(&job, spec_text(&job, "neg", false, "c0,128,2;c1,256,2", sizes, coords, 2), &files), SW_OK);
  assert_int_equal(files.list.n, 2);
  assert_string_equal(files.list.v[1].path, "bundle.mlir");
  char *mlir = sw_arena_strndup(job.arena, files.list.v[1].bytes, files.list.v[1].len);
  assert_non_null(strstr(mlir, "sdsc_execute (%arg_0, %arg_0_core_8192, %arg_0_core_32768, %arg_0_core_40960, "
                               "%arg_1, %arg_1_core_8192, %arg_1_core_32768, %arg_1_core_40960)"));
  sw_arena_free(job.arena);
}

/* superdsc.md section 16, M5: rows 0..99 of 150 are rounded up to 128 and leave 22, less than a stick. */
static void a_gap_that_reads_in_two_ways_is_refused(void **state)
{
  (void)state;
  static const char *const sizes[] = {"2,150,64", "2,128,64"};
  static const char *const coords[] = {"floor(c1/64)|c0|Mod(c1, 64)", "floor(c0/64)|c1|Mod(c0, 64)"};
  refused_with("ReStickifyOpHBM", false, "c0,100,1;c1,128,1", sizes, coords, 2, "instead of 150");
}

/* 100 rows of 200 leave 72 behind the padded 128: 128 + 72 are the 200 in memory. */
static void a_large_gap_is_counted_from_the_padded_size(void **state)
{
  (void)state;
  static const char *const sizes[] = {"2,200,64", "2,128,64"};
  static const char *const coords[] = {"floor(c1/64)|c0|Mod(c1, 64)", "floor(c0/64)|c1|Mod(c0, 64)"};
  struct sw_job job = unit_job();
  struct sw_files files = {0};
  assert_int_equal(emit(&job, spec_text(&job, "ReStickifyOpHBM", false, "c0,100,1;c1,128,1", sizes, coords, 2), &files),
                   SW_OK);
  char *json = sw_arena_strndup(job.arena, files.list.v[0].bytes, files.list.v[0].len);
  assert_non_null(strstr(json, "\"-1\": \"72\""));
  sw_arena_free(job.arena);
}

/* 16 columns become rows 1..16 of 18; rounded up to 64 they would run over row 17 and the next image line. */
static void a_restickify_into_a_slice_may_not_pad_rows(void **state)
{
  (void)state;
  static const char *const sizes[] = {"1,64,64", "1,18,64"};
  static const char *const inside[] = {"floor(c1/64)|c0|Mod(c1, 64)", "floor(c0/64)|c1 + 1|Mod(c0, 64)"};
  static const char *const first[] = {"floor(c1/64)|c0|Mod(c1, 64)", "floor(c0/64)|c1|Mod(c0, 64)"};
  refused_with("ReStickifyOpHBM", false, "c0,64,1;c1,16,1", sizes, inside, 2, "starts at 1");
  refused_with("ReStickifyOpHBM", false, "c0,64,1;c1,16,1", sizes, first, 2, "48 rows of padding");
}

/* A whole-graph program of the reference (042) hands the matrix unit an operand with the wrong stick. */
static void a_matmul_with_a_wrong_stick_is_refused(void **state)
{
  (void)state;
  static const char *const sizes[] = {"2,128,64", "2,128,64", "2,128,64"};
  static const char *const coords[] = {"floor(c0/64)|c2|Mod(c0, 64)", "floor(c1/64)|c2|Mod(c1, 64)",
                                       "floor(c1/64)|c0|Mod(c1, 64)"};
  refused_with("batchmatmul", true, "c0,128,1;c1,128,1;c2,128,1", sizes, coords, 3, "not the reduced dim");
}

/* One value a stick summed into whole sticks: no lane of the operand belongs to a lane of the result. */
static void a_sum_into_sticks_of_what_has_none_is_refused(void **state)
{
  (void)state;
  static const char *const sizes[] = {"1,5,96,64", "1,1,96,64"};
  static const char *const coords[] = {"0|c2|c0|0", "floor(c1/64)|0|c0|Mod(c1, 64)"};
  refused_with("sum", true, "c0,96,1;c1,16,1;c2,5,1", sizes, coords, 2, "can't fill the sticks of its result");
}

/* 100 rows of the second operand are read as 128. */
/* Its operand is one number: no row, no stick along it. */
static void moments_of_no_row_are_refused(void **state)
{
  (void)state;
  static const char *const sizes[] = {"1,64", "1,64,64"}, *const coords[] = {"0|0", "0|c0|0"};
  refused_with("exx2", true, "c0,64,1;c1,64,1", sizes, coords, 2, "leaves its sums in the stick");
}

static void a_matmul_over_unpadded_rows_is_refused(void **state)
{
  (void)state;
  static const char *const sizes[] = {"2,64,64", "1,100,64", "1,64,64"};
  static const char *const coords[] = {"floor(c2/64)|c0|Mod(c2, 64)", "floor(c1/64)|c2|Mod(c1, 64)",
                                       "floor(c1/64)|c0|Mod(c1, 64)"};
  refused_with("batchmatmul", true, "c0,64,1;c1,64,1;c2,100,1", sizes, coords, 3, "reaches 128 of 100");
}

/* Every second row: the dim of the steps has no symbol (the reference's 093 reads wrong rows). */
static void a_constant_in_a_long_dim_is_refused(void **state)
{
  (void)state;
  static const char *const sizes[] = {"2,64,2,64", "1,2,64,64"};
  static const char *const coords[] = {"floor(c1/64)|c0|0|Mod(c1, 64)", "0|floor(c1/64)|c0|Mod(c1, 64)"};
  refused_with("neg", false, "c0,64,1;c1,128,1", sizes, coords, 2, "device dim");
}

static void a_stick_cut_between_cores_is_refused(void **state)
{
  (void)state;
  static const char *const sizes[] = {"3,64,64", "3,64,64"};
  static const char *const coords[] = {"floor(c1/64)|c0|Mod(c1, 64)", "floor(c1/64)|c0|Mod(c1, 64)"};
  refused_with("neg", false, "c0,64,1;c1,192,2", sizes, coords, 2, "in whole sticks");
}

/* Every dim of a table is walked, and rows of one number have none along c1: 16 steps of it would leave the table. */
static void a_table_that_repeats_along_a_dim_is_refused(void **state)
{
  (void)state;
  static const char text[] =
      "{\"case\": \"t\", \"pool_size\": 0, \"specs\": [{\"kind\": \"op\", \"op\": \"identity\", \"is_reduction\": false, "
      "\"iteration_space\": [{\"symbol\": \"c0\", \"range\": 40, \"split\": 1}, {\"symbol\": \"c1\", \"range\": 16, \"split\": 1}], "
      "\"op_info\": {}, \"args\": ["
      "{\"is_input\": true, \"arg_index\": 1, \"device_dtype\": \"IEEE_INT32\", \"device_size\": [1, 40, 32], \"name\": \"arg1_1\", "
      "\"device_coordinates\": [\"0\", \"c0\", \"0\"], \"allocation\": {\"hbm\": 1}, \"element_arrangement\": \"STANDARD\"}, "
      "{\"is_input\": true, \"arg_index\": 0, \"device_dtype\": \"SEN169_FP16\", \"device_size\": [130, 1, 64], "
      "\"device_coordinates\": [\"IndirectAccess(arg1_1)\", \"0\", \"0\"], \"allocation\": {\"hbm\": 0}, \"element_arrangement\": \"STANDARD\"}, "
      "{\"is_input\": false, \"arg_index\": 2, \"device_dtype\": \"SEN169_FP16\", \"device_size\": [16, 40, 64], "
      "\"device_coordinates\": [\"c1\", \"c0\", \"0\"], \"allocation\": {\"hbm\": 2}, \"element_arrangement\": \"STANDARD\"}]}]}";
  struct sw_job job = unit_job();
  struct sw_files files = {0};
  assert_int_equal(emit(&job, text, &files), SW_UNSUPPORTED);
  if (!strstr(job.faults.v[0].detail, "rows are one value along"))
    fail_msg("%s", job.faults.v[0].detail);
  sw_arena_free(job.arena);
}

static void ill_formed_specs_are_faults_with_their_place(void **state)
{
  (void)state;
  static const char *const sizes[] = {"2,64,64", "2,64,64"};
  static const char *const unknown[] = {"floor(c7/64)|c0|Mod(c1, 64)", "floor(c1/64)|c0|Mod(c1, 64)"};
  static const char *const odd[] = {"floor(c1/32)|c0|Mod(c1, 64)", "floor(c1/64)|c0|Mod(c1, 64)"};
  static const char *const good[] = {"floor(c1/64)|c0|Mod(c1, 64)", "floor(c1/64)|c0|Mod(c1, 64)"};
  refused_with("neg", false, "c0,64,1;c1,128,1", sizes, unknown, 2, "/specs/0/args/0/device_coordinates/0");
  refused_with("neg", false, "c0,64,1;c1,128,1", sizes, odd, 2, "elements of a stick");
  refused_with("neg", true, "c0,64,1;c1,128,1", sizes, good, 2, "is_reduction must be false");
  refused_with("add", false, "c0,64,1;c1,128,1", sizes, good, 2, "at least 2 expected");
  refused_with("neg", false, "c0,64,0;c1,128,1", sizes, good, 2, "at least 1");
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(constants_are_encoded_as_the_device_stores_them),
      cmocka_unit_test(writing_what_was_read_gives_the_same_bytes),
      cmocka_unit_test(core_maps_of_nested_quotients_are_read),
      cmocka_unit_test(cores_start_at_their_slices),
      cmocka_unit_test(a_gap_that_reads_in_two_ways_is_refused),
      cmocka_unit_test(a_large_gap_is_counted_from_the_padded_size),
      cmocka_unit_test(a_restickify_into_a_slice_may_not_pad_rows),
      cmocka_unit_test(a_sum_into_sticks_of_what_has_none_is_refused),
      cmocka_unit_test(moments_of_no_row_are_refused),
      cmocka_unit_test(a_matmul_with_a_wrong_stick_is_refused),
      cmocka_unit_test(a_matmul_over_unpadded_rows_is_refused),
      cmocka_unit_test(a_constant_in_a_long_dim_is_refused),
      cmocka_unit_test(a_stick_cut_between_cores_is_refused),
      cmocka_unit_test(a_table_that_repeats_along_a_dim_is_refused),
      cmocka_unit_test(ill_formed_specs_are_faults_with_their_place),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
