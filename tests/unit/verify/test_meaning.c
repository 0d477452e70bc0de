/* When an output that differs from the graph's meaning may be right all the same. */
#include "../unit.h"

#include "compiler/verify/meaning.h"

#include <math.h>
#include <string.h>

static const char *doubt_of(struct sw_job *job, const char *text, int64_t elements, int64_t outside, double error)
{
  struct sw_graph *g;
  assert_int_equal(sw_graph_read(job, "", text, strlen(text), NULL, &g), SW_OK);
  struct sw_verified v = {0};
  *SW_PUSH(job->arena, &v.outputs) =
      (struct sw_verified_output){.name = "y", .value = g->outputs.v[0].arg.value, .is_compared = true,
                                  .difference = {.elements = elements, .outside = outside, .max_error = error}};
  struct sw_tensor x = {.dtype = SW_F16, .rank = 1, .size = {4}, .stride = {1}};
  x.cells = SW_NEW(job->arena, struct sw_cells);
  *x.cells = (struct sw_cells){.dtype = SW_F16, .n = 4, .real = SW_NEW_N(job->arena, double, 4)};
  x.cells->real[2] = 0.5;
  return sim_doubt(job, g, &(struct sim_given){g->inputs.v[0].value, &x}, 1, &v);
}

static const char *doubt(struct sw_job *job, const char *text, int64_t elements, int64_t outside)
{
  return doubt_of(job, text, elements, outside, INFINITY);
}

static void rounding_decides_a_few_elements_at_a_jump(void **state)
{
  (void)state;
  struct sw_job job = unit_job();
  static const char floors[] = "%x : f16[4] = input\n%f : f16[4] = aten.floor(%x)\n%y : f16[4] = aten.neg(%f)\nreturn %y\n";
  assert_non_null(strstr(doubt(&job, floors, 1000, 7), "rounding may decide in f (aten.floor"));
  assert_null(doubt(&job, floors, 1000, 11)); /* more than one in a hundred */
  assert_null(doubt(&job, "%x : f16[4] = input\n%y : f16[4] = aten.neg(%x)\nreturn %y\n", 1000, 1));
  sw_arena_free(job.arena);
}

/* 0.5 * 60000 * 60000 does not fit in fp16; in float32 it would. */
static void numbers_beyond_half_have_no_meaning(void **state)
{
  (void)state;
  struct sw_job job = unit_job();
  static const char big[] = "%x : f16[4] = input\n%a : f16[4] = aten.mul.Tensor(%x, 60000)\n"
                            "%b : f16[4] = aten.mul.Tensor(%a, 60000)\n%y : f16[4] = aten.tanh(%b)\nreturn %y\n";
  static const char wide[] = "%x : f32[4] = input\n%a : f32[4] = aten.mul.Tensor(%x, 60000)\n"
                             "%y : f32[4] = aten.mul.Tensor(%a, 60000)\nreturn %y\n";
  assert_non_null(strstr(doubt(&job, big, 4, 4), "numbers of b (aten.mul.Tensor) are beyond fp16"));
  assert_null(doubt(&job, wide, 4, 4));
  sw_arena_free(job.arena);
}

/* Half a step of 16 bits near 500 is 500 / 2048 = 0.244, and the same for 499: b, which is 1, may be off by 0.488, and four
 * times that is not yet wrong. */
static void a_small_difference_of_large_numbers_is_uncertain(void **state)
{
  (void)state;
  struct sw_job job = unit_job();
  static const char text[] = "%x : f16[4] = input\n%a : f16[4] = aten.mul.Tensor(%x, 1000)\n"
                             "%b : f16[4] = aten.sub.Tensor(%a, 499)\nreturn %b\n";
  assert_non_null(strstr(doubt_of(&job, text, 4, 4, 1.9), "amplifies what rounding does on the way to y"));
  assert_null(doubt_of(&job, text, 4, 4, 2.0));
  sw_arena_free(job.arena);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(rounding_decides_a_few_elements_at_a_jump),
      cmocka_unit_test(numbers_beyond_half_have_no_meaning),
      cmocka_unit_test(a_small_difference_of_large_numbers_is_uncertain),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
