#include "../unit.h"

#include "base/json.h"

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

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(writer_has_fixed_format_and_ascii_text),
      cmocka_unit_test(indented_writer_puts_one_member_a_line),
      cmocka_unit_test(deep_and_wide_documents_are_refused_before_parsing),
      cmocka_unit_test(repeated_keys_and_broken_text_name_line_and_column),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
