#include "cases.h"

#include <math.h>

static double cost_of(const json_t *c)
{
  const json_t *s = json_object_get(c, "split");
  struct sw_matmul_sizes z = {.b = (double)get_int(c, "B"),
                              .m = (double)get_int(c, "M"),
                              .n = (double)get_int(c, "N"),
                              .k = (double)get_int(c, "K"),
                              .shared = json_is_true(json_object_get(c, "shared_weight"))};
  int64_t split[4] = {get_int(s, "b"), get_int(s, "m"), get_int(s, "n"), get_int(s, "k")};
  return sw_matmul_split_cost(&z, split, (int)get_int(c, "max_cores"));
}

static void recorded_costs_come_out(void **state)
{
  (void)state;
  struct sw_job job = unit_job();
  size_t i;
  json_t *c;
  json_t *cases = cases_of(&job, "matmul_split_cost");
  json_array_foreach (cases, i, c) {
    double want = json_number_value(json_object_get(c, "cost_us")), got = cost_of(c);
    if (fabs(got - want) > 1e-9 * want)
      fail_msg("case %zu: %.12g us, expected %.12g", i, got, want);
  }
  sw_arena_free(job.arena);
}

static void equal_costs_are_equal_to_the_bit(void **state)
{
  (void)state;
  struct sw_matmul_sizes z = {.b = 1, .m = 1024, .n = 1024, .k = 1024, .shared = true};
  assert_true(sw_matmul_split_cost(&z, (int64_t[]){1, 4, 8, 1}, 32) ==
              sw_matmul_split_cost(&z, (int64_t[]){1, 8, 4, 1}, 32));
  assert_true(isinf(sw_matmul_split_cost(&z, (int64_t[]){1, 8, 8, 1}, 32)));
}

static size_t menu_size(struct sw_job *job, const struct sw_work *w)
{
  struct sw_menu menu = {0};
  assert_int_equal(sw_work_menu(job, job->arena, w, &menu), SW_OK);
  return (size_t)menu.divisions.n;
}

static struct sw_work pointwise(struct sw_job *job, int n, const int64_t *size)
{
  static const char *const names[] = {"c0", "c1", "c2"};
  struct sw_work w = plain_work(32);
  struct dim d[3];
  for (int i = 0; i < n; i++)
    d[i] = (struct dim){size[i], add_var(&w, names[i], size[i])};
  w.n_written = n;
  w.out = tensor_of("x", d, n, n - 1, 64);
  assert_int_equal(sw_work_settle(job, &w), SW_OK);
  return w;
}

static void menus_have_the_sizes_of_the_page(void **state)
{
  (void)state;
  struct sw_job job = unit_job();
  struct sw_work w = pointwise(&job, 2, (int64_t[]){512, 1024});
  assert_int_equal(menu_size(&job, &w), 20);
  w = pointwise(&job, 2, (int64_t[]){4096, 2048});
  assert_int_equal(menu_size(&job, &w), 21);
  w = pointwise(&job, 3, (int64_t[]){32, 512, 4096});
  assert_int_equal(menu_size(&job, &w), 56);
  w = matmul_work(&job, 32, NULL, 512, 4096, 4096, false);
  assert_int_equal(menu_size(&job, &w), 56);
  w = matmul_work(&job, 32, (int64_t[]){32, 0}, 512, 128, 512, false);
  assert_int_equal(menu_size(&job, &w), 86);
  sw_arena_free(job.arena);
}

static void cores_compute_the_recorded_slices(void **state)
{
  (void)state;
  struct sw_job job = unit_job();
  size_t i, core, d;
  json_t *c, *slices;
  json_t *cases = cases_of(&job, "core_mapping");
  json_array_foreach (cases, i, c) {
    const json_t *splits = json_object_get(c, "splits"), *first = json_object_get(c, "contiguous_dim");
    int n = (int)json_array_size(splits);
    int64_t split[SW_MAX_LOOPS], slice[SW_MAX_LOOPS];
    for (int k = 0; k < n; k++)
      split[k] = json_integer_value(json_array_get(splits, (size_t)k));
    json_array_foreach (json_object_get(c, "core_to_slices"), core, slices) {
      sw_core_slices(n, split, json_is_null(first) ? -1 : (int)json_integer_value(first), (int)core, slice);
      for (d = 0; d < (size_t)n; d++)
        if (slice[d] != json_integer_value(json_array_get(slices, d)))
          fail_msg("%s: core %zu, dim %zu: slice %d", get_text(c, "id"), core, d, (int)slice[d]);
    }
  }
  sw_arena_free(job.arena);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(recorded_costs_come_out),
      cmocka_unit_test(equal_costs_are_equal_to_the_bit),
      cmocka_unit_test(menus_have_the_sizes_of_the_page),
      cmocka_unit_test(cores_compute_the_recorded_slices),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
