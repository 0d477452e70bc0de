/* What host steps cost. */
#include "../unit.h"

#include "compiler/plan/plan.h"

/* argmax over f16 [16,1024] that the card has: 7000 ns and 32768 bytes at 28 GB/s. Its result stays with the host, and a
 * step on host memory alone costs nothing. */
static void a_host_step_costs_its_transfers(void **state)
{
  (void)state;
  struct sw_job unit = unit_job(), *job = &unit;
  struct sw_program *p = SW_NEW(job->arena, struct sw_program);
  struct sw_layout l = {.format = SW_FORMAT_FP16, .rank = 3, .device_size = {16, 16, 64}};
  *SW_PUSH(job->arena, &p->storages) = (struct sw_storage){.name = "x", .dtype = SW_F16, .layout = &l};
  *SW_PUSH(job->arena, &p->storages) = (struct sw_storage){.name = "y", .dtype = SW_I64, .host_only = true};
  struct sw_host_step h = {.name = "argmax"};
  struct sw_host_arg *a = SW_PUSH(job->arena, &h.args);
  a->kind = SW_HOST_VIEW;
  a->view = (struct sw_view){.storage = 0, .rank = 2, .size = {16, 1024}};
  *SW_PUSH(job->arena, &h.results) = (struct sw_view){.storage = 1, .rank = 1, .size = {16}};
  assert_true(sw_host_step_ns(p, &h) > 8170.2 && sw_host_step_ns(p, &h) < 8170.4);
  h.args.v[0].view.storage = 1;
  assert_true(sw_host_step_ns(p, &h) < 1e-9);
  sw_arena_free(job->arena);
}

int main(void)
{
  const struct CMUnitTest tests[] = {cmocka_unit_test(a_host_step_costs_its_transfers)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
