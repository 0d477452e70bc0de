#include "../unit.h"

#include "base/json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void writer_has_fixed_format_and_ascii_text(void **state)
{
  (void)state;
  struct sw_job job = unit_job();
  struct sw_buf b = {.arena = job.arena};
  struct sw_jw w = {.out = &b};
  sw_jw_object(&w);
  sw_jw_kreal(&w, "tenth", 0.1);
  sw_jw_kreal(&w, "two", 2.0);
  sw_jw_kint(&w, "n", INT64_MIN);
  sw_jw_kstr(&w, "s", "a\"\\\n\xC3\xA4\xF0\x9F\x98\x80");
  sw_jw_key(&w, "list");
  sw_jw_array(&w);
  sw_jw_bool(&w, true);
  sw_jw_null(&w);
  sw_jw_end_array(&w);
  sw_jw_kints(&w, "ints", (const int64_t[]){1, -2}, 2);
  sw_jw_end_object(&w);
  assert_string_equal(sw_buf_text(&b), "{\"tenth\":0.1,\"two\":2.0,\"n\":-9223372036854775808,"
                                       "\"s\":\"a\\\"\\\\\\n\\u00e4\\ud83d\\ude00\",\"list\":[true,null],\"ints\":[1,-2]}");
  sw_arena_free(job.arena);
}

static void indented_writer_puts_one_member_a_line(void **state)
{
  (void)state;
  struct sw_job job = unit_job();
  struct sw_buf b = {.arena = job.arena};
  struct sw_jw w = {.out = &b, .indent = 2};
  sw_jw_object(&w);
  sw_jw_key(&w, "a");
  sw_jw_array(&w);
  sw_jw_int(&w, 1);
  sw_jw_int(&w, 2);
  sw_jw_end_array(&w);
  sw_jw_key(&w, "b");
  sw_jw_object(&w);
  sw_jw_end_object(&w);
  sw_jw_end_object(&w);
  assert_string_equal(sw_buf_text(&b), "{\n  \"a\": [\n    1,\n    2\n  ],\n  \"b\": {}\n}");
  sw_arena_free(job.arena);
}

static void deep_and_wide_documents_are_refused_before_parsing(void **state)
{
  (void)state;
  struct sw_job job = unit_job();
  char deep[20001];
  memset(deep, '[', 10000);
  memset(deep + 10000, ']', 10000);
  deep[20000] = 0;
  assert_null(sw_json_parse(&job, "x", deep, 20000, 1000000));
  assert_int_equal(job.worst, SW_LIMIT);
  assert_null(sw_json_parse(&job, "x", "[1,2,3,4]", 9, 4));
  assert_int_equal(job.faults.n, 2);
  assert_non_null(sw_json_parse(&job, "x", "[\"[[[[\",2]", 10, 4));
  sw_arena_free(job.arena);
}

static void repeated_keys_and_broken_text_name_line_and_column(void **state)
{
  (void)state;
  struct sw_job job = unit_job();
  assert_null(sw_json_parse(&job, "x", "{\"a\":1,\n\"a\":2}", 14, 100));
  assert_int_equal(job.worst, SW_INVALID);
  assert_non_null(strstr(job.faults.v[0].detail, "line 2"));
  sw_arena_free(job.arena);
}

/* The shortest is what the fewest digits give that read back equal: tried one after the other. */
static void reals_are_the_shortest_text_that_reads_back(void **state)
{
  (void)state;
  double fixed[] = {0, -0.0, 0.1, 1e5, 123456, 1e15, 1e16, 1e17, 1.0 / 3, 2.5, 5e-324, 2.2250738585072014e-308,
                    2.225073858507201e-308, 1.7976931348623157e308, 0.30000000000000004, 100, 1e22, 9007199254740993.0};
  uint64_t seed = 1;
  for (int k = 0; k < 20000; k++) {
    double r;
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    uint64_t bits = seed ^ seed >> 33;
    memcpy(&r, &bits, sizeof r);
    if (k % 3 == 1)
      r = (double)(seed >> 40) / 1000; /* few digits */
    if (k < (int)(sizeof fixed / sizeof fixed[0]))
      r = fixed[k];
    if (!isfinite(r))
      continue;
    char wanted[40], got[32];
    for (int digits = 1; digits <= 17; digits++) {
      snprintf(wanted, 32, "%.*g", digits, r);
      if (strtod(wanted, NULL) == r)
        break;
    }
    if (!strpbrk(wanted, ".en"))
      strcat(wanted, ".0");
    sw_real_text(got, r);
    assert_string_equal(got, wanted);
  }
}

static void integers_and_escapes_at_their_ends(void **state)
{
  (void)state;
  struct sw_job job = unit_job();
  struct sw_buf b = {.arena = job.arena};
  struct sw_jw w = {.out = &b, .indent = 2};
  sw_jw_array(&w);
  sw_jw_int(&w, INT64_MIN);
  sw_jw_int(&w, 0);
  sw_jw_ints(&w, (const int64_t[]){INT64_MAX, -1}, 2);
  sw_jw_str(&w, "");
  sw_jw_str(&w, "\"a\\b\"");
  sw_jw_str(&w, "x\n\xc3\xa4y\x01");
  sw_jw_object(&w);
  sw_jw_end_object(&w);
  sw_jw_end_array(&w);
  assert_string_equal(b.p, "[\n  -9223372036854775808,\n  0,\n  [9223372036854775807, -1],\n  \"\",\n  \"\\\"a\\\\b\\\"\",\n"
                           "  \"x\\n\\u00e4y\\u0001\",\n  {}\n]");
  sw_arena_free(job.arena);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(reals_are_the_shortest_text_that_reads_back),
      cmocka_unit_test(integers_and_escapes_at_their_ends),
      cmocka_unit_test(writer_has_fixed_format_and_ascii_text),
      cmocka_unit_test(indented_writer_puts_one_member_a_line),
      cmocka_unit_test(deep_and_wide_documents_are_refused_before_parsing),
      cmocka_unit_test(repeated_keys_and_broken_text_name_line_and_column),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
