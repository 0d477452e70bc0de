#include "../unit.h"

#include "base/options.h"
#include "compiler/layout/machine.h"

#include <string.h>

static double value_of(const struct sw_machine *m, const char *name)
{
  struct sw_constant c;
  for (int i = 0; sw_machine_constant(m, i, &c); i++)
    if (!strcmp(c.name, name))
      return c.value;
  fail_msg("there is no constant %s", name);
  return 0;
}

static void a_constant_replaces_one_and_no_other(void **state)
{
  (void)state;
  struct sw_job job = unit_job();
  struct sw_options o;
  const struct sw_machine *m;
  sw_options_init(&o);
  assert_int_equal(sw_machine_read(&job, &o, &m), SW_OK);
  assert_null(m);
  assert_int_equal(sw_option_set(&job, &o, "constant", "interval[2]=4.5"), SW_OK);
  assert_int_equal(sw_option_set(&job, &o, "constant", "matmul_tile.by_low=0.25"), SW_OK);
  assert_int_equal(sw_machine_read(&job, &o, &m), SW_OK);
  assert_true(m->interval[2] == 4.5 && m->matmul_tile.by_low == 0.25);
  assert_true(value_of(m, "interval[2]") == 4.5 && value_of(&sw_spyre, "interval[2]") == 3.75);
  struct sw_machine back = *m;
  back.interval[2] = sw_spyre.interval[2];
  back.matmul_tile.by_low = sw_spyre.matmul_tile.by_low;
  assert_memory_equal(&back, &sw_spyre, sizeof back);
  sw_arena_free(job.arena);
}

static void every_wrong_constant_is_named(void **state)
{
  (void)state;
  static const char *const wrong[] = {"hbm=0", "hbm=nan", "reduction_cores[5]=1.5", "speed=1", "macs=1x", "launch=-1"};
  struct sw_job job = unit_job();
  struct sw_options o;
  const struct sw_machine *m;
  int n = sizeof wrong / sizeof *wrong;
  sw_options_init(&o);
  for (int i = 0; i < n; i++)
    assert_int_equal(sw_option_set(&job, &o, "constant", wrong[i]), SW_OK);
  assert_int_equal(sw_machine_read(&job, &o, &m), SW_USAGE);
  assert_null(m);
  assert_int_equal(job.faults.n, n);
  for (int i = 0; i < n; i++)
    assert_non_null(strstr(job.faults.v[i].detail, sw_arena_strndup(job.arena, wrong[i], strcspn(wrong[i], "="))));
  sw_arena_free(job.arena);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_constant_replaces_one_and_no_other),
      cmocka_unit_test(every_wrong_constant_is_named),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
