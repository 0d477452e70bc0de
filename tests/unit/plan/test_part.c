#include "cases.h"

#include "compiler/plan/part.h"

static bool equal(const struct sw_part *a, const struct sw_part *b)
{
  if (a->broken || b->broken || a->cores != b->cores || a->n != b->n)
    return false;
  for (int i = 0; i < a->n; i++)
    if (a->cut[i].dim != b->cut[i].dim || a->cut[i].factor != b->cut[i].factor || a->cut[i].stride != b->cut[i].stride)
      return false;
  return true;
}

static struct sw_work pointwise(struct sw_job *job, int64_t rows, int64_t cols)
{
  struct sw_work w = plain_work(32);
  struct dim d[2] = {{rows, add_var(&w, "c0", rows)}, {cols, add_var(&w, "c1", cols)}};
  w.n_written = 2;
  w.out = w.in[0] = tensor_of("x", d, 2, 1, 64);
  w.n_in = 1;
  assert_int_equal(sw_work_settle(job, &w), SW_OK);
  return w;
}

/* The result of a matmul cut m 4, n 8 lies as a pointwise op cut 4, 8 wants it, and not as one cut by rows does. */
static void equal_cuts_of_equal_dims_are_equal_parts(void **state)
{
  (void)state;
  struct sw_job job = unit_job();
  struct sw_work mm = matmul_work(&job, 32, NULL, 128, 256, 1024, false), pw = pointwise(&job, 128, 1024);
  struct sw_part a, b;
  sw_part_of(&mm, &mm.out, (int64_t[]){4, 8, 1}, &a);
  sw_part_of(&pw, &pw.in[0], (int64_t[]){4, 8}, &b);
  assert_null(a.broken);
  assert_int_equal(a.n, 2);
  /* device dims of [16,128,64]: sticks 0, rows 1; rows vary fastest with the core number */
  assert_true(a.cut[0].dim == 0 && a.cut[0].factor == 8 && a.cut[0].stride == 4);
  assert_true(a.cut[1].dim == 1 && a.cut[1].factor == 4 && a.cut[1].stride == 1);
  assert_true(equal(&a, &b));
  sw_part_of(&pw, &pw.in[0], (int64_t[]){32, 1}, &b);
  assert_false(equal(&a, &b));
  sw_arena_free(job.arena);
}

static void shared_and_added_up_parts_are_none(void **state)
{
  (void)state;
  struct sw_job job = unit_job();
  struct sw_work mm = matmul_work(&job, 32, NULL, 128, 1024, 256, false);
  struct sw_part v;
  sw_part_of(&mm, &mm.out, (int64_t[]){8, 2, 2}, &v);
  assert_string_equal(v.broken, "cores add up one result");
  sw_part_of(&mm, &mm.in[0], (int64_t[]){8, 4, 1}, &v);
  assert_string_equal(v.broken, "cores share a broadcast operand");
  assert_false(equal(&v, &v));
  sw_part_of(&mm, &mm.in[0], (int64_t[]){32, 1, 1}, &v);
  assert_null(v.broken);
  sw_arena_free(job.arena);
}

/* K runs fastest over the cores, so that m and n of an 8,2,2 split step by 2 and 16 (work-division.md 15). */
static void the_k_of_a_matmul_runs_fastest(void **state)
{
  (void)state;
  struct sw_job job = unit_job();
  struct sw_work mm = matmul_work(&job, 32, NULL, 128, 1024, 256, false);
  struct sw_part v;
  mm.var[1].is_output = mm.var[2].is_output = true; /* look at A as if n did not matter */
  sw_part_of(&mm, &mm.in[0], (int64_t[]){8, 1, 2}, &v);
  assert_null(v.broken);
  assert_true(v.cut[0].dim == 0 && v.cut[0].stride == 1 && v.cut[1].stride == 2);
  sw_arena_free(job.arena);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(equal_cuts_of_equal_dims_are_equal_parts),
      cmocka_unit_test(shared_and_added_up_parts_are_none),
      cmocka_unit_test(the_k_of_a_matmul_runs_fastest),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
