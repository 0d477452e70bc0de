#include "../unit.h"

#include <string.h>

struct ask {
  struct sw_arena *a;
  size_t bytes;
  void *got;
};

static void take(void *p)
{
  struct ask *q = p;
  q->got = sw_arena_alloc(q->a, 1, q->bytes);
}

static void arena_jumps_back_past_its_budget(void **state)
{
  (void)state;
  struct sw_arena *a = sw_arena_new(NULL, 8192);
  struct ask small = {.a = a, .bytes = 100}, large = {.a = a, .bytes = 100000};
  assert_true(sw_arena_run(a, take, &small));
  assert_non_null(small.got);
  assert_false(sw_arena_run(a, take, &large));
  assert_null(large.got);
  sw_arena_free(a);
}

static void child_draws_on_its_parents_budget_and_gives_it_back(void **state)
{
  (void)state;
  struct sw_arena *a = sw_arena_new(NULL, 8192), *b = sw_arena_new(a, 0);
  struct ask q = {.a = b, .bytes = 6000};
  assert_true(sw_arena_run(a, take, &q));
  assert_false(sw_arena_run(a, take, &q));
  sw_arena_free(b);
  q.a = a;
  assert_true(sw_arena_run(a, take, &q));
  sw_arena_free(a);
}

static void count(void *p)
{
  ++*(int *)p;
}

static void deferred_calls_run_once_children_included(void **state)
{
  (void)state;
  int n = 0;
  struct sw_arena *a = sw_arena_new(NULL, 1 << 20), *b = sw_arena_new(a, 0);
  sw_arena_defer(a, count, &n);
  sw_arena_defer(b, count, &n);
  sw_arena_free(a);
  assert_int_equal(n, 2);
}

static void vectors_keep_their_elements_when_they_grow(void **state)
{
  (void)state;
  struct sw_arena *a = sw_arena_new(NULL, 1 << 20);
  SW_VEC(int) v = {0};
  for (int i = 0; i < 1000; i++)
    *SW_PUSH(a, &v) = i;
  for (int i = 0; i < 1000; i++)
    assert_int_equal(v.v[i], i);
  sw_arena_free(a);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(arena_jumps_back_past_its_budget),
      cmocka_unit_test(child_draws_on_its_parents_budget_and_gives_it_back),
      cmocka_unit_test(deferred_calls_run_once_children_included),
      cmocka_unit_test(vectors_keep_their_elements_when_they_grow),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
