#include "../unit.h"

#include "base/options.h"

#include <string.h>

static void every_kind_of_option_is_set_and_echoed(void **state)
{
  (void)state;
  struct sw_job job = unit_job();
  struct sw_options o;
  sw_options_init(&o);
  assert_int_equal(sw_option_set(&job, &o, "profile", "torch-spyre"), SW_OK);
  assert_int_equal(sw_option_set(&job, &o, "solver", "greedy"), SW_OK);
  assert_int_equal(sw_option_set(&job, &o, "cores", "4"), SW_OK);
  assert_int_equal(sw_option_set(&job, &o, "lx", "off"), SW_OK);
  assert_int_equal(sw_option_set(&job, &o, "pin", "x=order:1,0"), SW_OK);
  sw_options_settle(&o);
  struct sw_buf b = {.arena = job.arena};
  sw_options_write(&o, &(struct sw_jw){.out = &b});
  assert_string_equal(sw_buf_text(&b),
                      "{\"profile\":\"torch-spyre\",\"solver\":\"greedy\",\"objective\":\"elements\",\"cores\":4,"
                      "\"lx-bytes\":1625344,\"sharing\":\"off\",\"free-weights\":\"off\",\"beam-width\":200,"
                      "\"budget\":200000000,\"precision\":\"device\",\"lx\":\"off\",\"lx-placer\":\"greedy\","
                      "\"pool\":\"on\",\"verify\":\"auto\",\"pin\":{\"x\":\"order:1,0\"},\"dim-max\":[],\"tile\":[],\"split\":[],\"constant\":[]}");
  sw_arena_free(job.arena);
}

static void what_is_given_beats_the_profile(void **state)
{
  (void)state;
  struct sw_job job = unit_job();
  struct sw_options o;
  sw_options_init(&o);
  assert_int_equal(sw_option_set(&job, &o, "sharing", "on"), SW_OK);
  assert_int_equal(sw_option_set(&job, &o, "profile", "torch-spyre"), SW_OK);
  sw_options_settle(&o);
  assert_true(o.sharing);
  assert_false(o.free_weights);
  sw_arena_free(job.arena);
}

static void a_refusal_names_the_legal_values(void **state)
{
  (void)state;
  struct sw_job job = unit_job();
  struct sw_options o;
  sw_options_init(&o);
  static const char *const bad[][3] = {{"solver", "magic", "ilp|ilp-full|beam|greedy"}, {"cores", "33", "1 to 32"},
                                       {"cores", "", "1 to 32"},    {"pin", "x", "NAME=LAYOUT"},
                                       {"colour", "red", "no option colour"}};
  for (int i = 0; i < 5; i++) {
    assert_int_equal(sw_option_set(&job, &o, bad[i][0], bad[i][1]), SW_USAGE);
    assert_non_null(strstr(job.faults.v[i].detail, bad[i][2]));
  }
  sw_arena_free(job.arena);
}

/* scratchpad_cases.json, lx_capacity. */
static void a_part_of_the_scratchpad_leaves_the_references_bytes(void **state)
{
  (void)state;
  struct sw_job job = unit_job();
  struct sw_options o;
  static const struct {
    const char *part;
    int64_t bytes;
  } cases[] = {{"0.0", 2031616}, {"0.1", 1828480}, {"0.2", 1625344}, {"0.25", 1523712}, {"0.5", 1015808}, {"0.75", 507904}, {"1.0", 0}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    assert_int_equal(sw_option_set(&job, &o, "lx-fraction", cases[i].part), SW_OK);
    assert_int_equal(o.lx_bytes, cases[i].bytes);
  }
  static const char *const bad[] = {"-0.01", "1.01", "nan", "", "0.5x", "inf"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    assert_int_equal(sw_option_set(&job, &o, "lx-fraction", bad[i]), SW_USAGE);
    assert_non_null(strstr(job.faults.v[job.faults.n - 1].detail, "DXP_LX_FRAC_AVAIL"));
    assert_non_null(strstr(job.faults.v[job.faults.n - 1].detail, "between 0 and 1"));
  }
  sw_arena_free(job.arena);
}

static void pin_files_take_layouts_and_orders(void **state)
{
  (void)state;
  struct sw_job job = unit_job();
  struct sw_options o;
  sw_options_init(&o);
  static const char text[] = "{\"a\": {\"device_size\": [4,128,64], \"stride_map\": [64,256,1]}, \"b\": \"order:1,0\"}";
  assert_int_equal(sw_options_pin_file(&job, &o, text, sizeof text - 1), SW_OK);
  assert_int_equal(o.pins.n, 2);
  assert_string_equal(o.pins.v[0].layout, "device_size:4,128,64/stride_map:64,256,1");
  assert_string_equal(o.pins.v[1].layout, "order:1,0");
  sw_arena_free(job.arena);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_kind_of_option_is_set_and_echoed),
      cmocka_unit_test(what_is_given_beats_the_profile),
      cmocka_unit_test(a_part_of_the_scratchpad_leaves_the_references_bytes),
      cmocka_unit_test(a_refusal_names_the_legal_values),
      cmocka_unit_test(pin_files_take_layouts_and_orders),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
