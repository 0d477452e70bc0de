#include "../unit.h"

#include "base/files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char place[64];

static const char *in_place(struct sw_job *job, const char *name)
{
  return sw_arena_printf(job->arena, "%s/%s", place, name);
}

static bool is_there(struct sw_job *job, const char *name)
{
  return !access(in_place(job, name), F_OK);
}

static void a_directory_appears_with_its_close(void **state)
{
  (void)state;
  struct sw_job job = unit_job();
  struct sw_files fs = {.dir = sw_files_dir(&job, in_place(&job, "out"), "result.json")};
  char text[8] = "first";
  sw_files_add(&job, &fs, "a/b/one", text, 5);
  strcpy(text, "other"); /* the bytes may go */
  sw_files_add(&job, &fs, "result.json", text, 5);
  assert_int_equal(fs.list.n, 0);
  assert_false(is_there(&job, "out"));
  assert_int_equal(sw_files_close(&job, fs.dir), SW_OK);
  const char *bytes;
  size_t len;
  assert_int_equal(sw_file_read(&job, in_place(&job, "out/a/b/one"), 100, &bytes, &len), SW_OK);
  assert_string_equal(bytes, "first");

  /* an earlier result is replaced, anything else is not */
  fs.dir = sw_files_dir(&job, in_place(&job, "out/"), "result.json");
  sw_files_add(&job, &fs, "two", "", 0);
  assert_int_equal(sw_files_close(&job, fs.dir), SW_OK);
  assert_false(is_there(&job, "out/a"));
  assert_null(sw_files_dir(&job, in_place(&job, "out"), "result.json"));
  assert_int_equal(job.worst, SW_IO);
  sw_arena_free(job.arena);
}

static void nothing_is_left_of_a_set_that_was_not_closed(void **state)
{
  (void)state;
  struct sw_job job = unit_job();
  struct sw_files fs = {.dir = sw_files_dir(&job, in_place(&job, "never"), "result.json")};
  sw_files_add(&job, &fs, "a/one", "x", 1);
  sw_arena_free(job.arena);
  assert_int_equal(rmdir(place), -1); /* "out" of the test before */
  job = unit_job();
  char *all = sw_arena_printf(job.arena, "rm -r %s/out && rmdir %s", place, place);
  assert_int_equal(system(all), 0); /* nothing else was in there */
  assert_int_equal(mkdir(place, 0700), 0);
  sw_arena_free(job.arena);
}

static void the_first_fault_of_writing_is_told_by_the_close(void **state)
{
  (void)state;
  struct sw_job job = unit_job();
  struct sw_files fs = {.dir = sw_files_dir(&job, in_place(&job, "bad"), "result.json")};
  sw_files_add(&job, &fs, "one", "x", 1);
  sw_files_add(&job, &fs, "one/two", "x", 1); /* "one" is a file */
  sw_files_add(&job, &fs, "three", "x", 1);
  assert_int_equal(sw_files_close(&job, fs.dir), SW_IO);
  assert_non_null(strstr(job.faults.v[0].detail, "bad/one/two: "));
  sw_arena_free(job.arena);
  job = unit_job();
  assert_false(is_there(&job, "bad"));
  sw_arena_free(job.arena);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_directory_appears_with_its_close),
      cmocka_unit_test(nothing_is_left_of_a_set_that_was_not_closed),
      cmocka_unit_test(the_first_fault_of_writing_is_told_by_the_close),
  };
  strcpy(place, "/tmp/stickwright-files-XXXXXX");
  if (!mkdtemp(place))
    return 1;
  int bad = cmocka_run_group_tests(tests, NULL, NULL);
  rmdir(place);
  return bad;
}
