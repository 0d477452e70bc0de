/* Cores that find work in an op, and what traffic and conversions cost, worked out by hand. */
#include "../unit.h"

#include "compiler/layout/choose.h"

#include <string.h>

/* sum over the 128 rows of [128,256] in fp16: the 256 columns are 4 sticks and are cut first, then 8 of the rows. Of the
 * columns alone 4 cores can be busy. */
static void written_loops_are_cut_first(void **state)
{
  (void)state;
  struct sw_op op = {.op = SW_OP_SUM, .n_loops = 2, .n_written = 1, .range = {256, 128}};
  int64_t split[SW_MAX_LOOPS];
  assert_int_equal(sw_layout__divide(&op, ~0u, 1, false, 64, 32, split), 32);
  assert_int_equal(split[0], 4);
  assert_int_equal(split[1], 8);
  assert_int_equal(sw_layout__divide(&op, 1, 1, false, 64, 32, split), 4);
}

/* A loop of 100 ends inside its second stick: 2 cores, but 1 where sticks must be whole. */
static void a_padded_stick_is_not_cut_where_it_must_be_whole(void **state)
{
  (void)state;
  struct sw_op op = {.op = SW_OP_ADD, .n_loops = 1, .n_written = 1, .range = {100}};
  int64_t split[SW_MAX_LOOPS];
  assert_int_equal(sw_layout__divide(&op, ~0u, 1, false, 64, 32, split), 2);
  assert_int_equal(sw_layout__divide(&op, ~0u, 1, true, 64, 32, split), 1);
}

static struct sw_choice *choose(struct sw_job *job, const char *text)
{
  struct sw_options *o = SW_NEW(job->arena, struct sw_options);
  struct sw_graph *g;
  struct sw_program *p;
  struct sw_choice *c;
  sw_options_init(o);
  sw_options_settle(o);
  assert_int_equal(sw_graph_read(job, "", text, strlen(text), NULL, &g), SW_OK);
  assert_int_equal(sw_lower(job, o, g, &p), SW_OK);
  assert_int_equal(sw_choose_layouts(job, o, p, &c), SW_OK);
  return c;
}

/* The largest numbers of 64 rows, subtracted from the rows and multiplied again: 128 bytes in one stick, which one core
 * would write, against 8192 with one number a stick. All stays in the scratchpads with one a stick and the stick of the
 * rows where it is; nothing is converted. */
static void a_vector_that_stays_on_the_cores_may_be_spread(void **state)
{
  (void)state;
  struct sw_job unit = unit_job(), *job = &unit;
  struct sw_choice *c = choose(job, "%a : f16[64,64] = input\n"
                                    "%b : f16[64,64] = input\n"
                                    "%p : f16[64,64] = aten.mm.default(%a, %b)\n"
                                    "%m : f16[64,1] = aten.amax.default(%p, [1], True)\n"
                                    "%s : f16[64,64] = aten.sub.Tensor(%p, %m)\n"
                                    "%e : f16[64,64] = aten.exp.default(%s)\n"
                                    "%y : f16[64,64] = aten.mm.default(%e, %b)\n"
                                    "return %y\n");
  assert_int_equal(c->conversions.n, 0);
  assert_string_equal(c->status, "optimal");
  sw_arena_free(job->arena);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(written_loops_are_cut_first),
      cmocka_unit_test(a_padded_stick_is_not_cut_where_it_must_be_whole),
      cmocka_unit_test(a_vector_that_stays_on_the_cores_may_be_spread),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
