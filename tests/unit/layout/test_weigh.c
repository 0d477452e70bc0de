/* What a conversion costs, worked out by hand from cost-model.md 10.3. */
#include "../unit.h"

#include "compiler/layout/choose.h"

/* A projection [1,64,384] in fp16, stick on its last dim, turned to its rows: 64 rows are 1 stick, 384 columns are 6, so
 * 6 cores. Each reads 64 rows of one stick, 128 bytes a run: the sticks of a row are neighbours and cut. 49152 bytes:
 * byte time 49152 / 116 = 423.7, 384 requests of 7.5 ns = 2880, 3303.7 together. On all cores it would be
 * 423.7 + 1440. */
static void few_sticks_leave_few_cores(void **state)
{
  (void)state;
  struct sw_job unit = unit_job(), *job = &unit;
  struct sw_options *o = SW_NEW(job->arena, struct sw_options);
  sw_options_init(o);
  o->profile = SW_PROFILE_BEST;
  sw_options_settle(o);
  struct sw_program p = {0};
  struct sw_choosing c = {.job = job, .arena = job->arena, .o = o, .p = &p, .best = true};
  struct sw_storage s = {.rank = 3, .size = {1, 64, 384}, .stride = {24576, 384, 1}};
  struct sw_layout from = {.format = SW_FORMAT_FP16, .rank = 4, .device_size = {64, 6, 1, 64}, .stride_map = {384, 64, -1, 1}};
  struct sw_layout to;
  assert_true(sw_layout__move_stick(&s, &from, 1, &to));
  struct sw_op op = sw_layout__copy_of(&s);
  assert_int_equal(sw_layout__copy_cost(&c, &s, &op, &from, &to), 3304);
  o->objective = SW_OBJECTIVE_ELEMENTS;
  assert_int_equal(sw_layout__copy_cost(&c, &s, &op, &from, &to), 64 * 6 * 64);
  sw_arena_free(job->arena);
}

int main(void)
{
  const struct CMUnitTest tests[] = {cmocka_unit_test(few_sticks_leave_few_cores)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
