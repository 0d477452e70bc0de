#include "cases.h"

#include "compiler/plan/part.h"

#include <math.h>

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

/* graphs/052: from rows c mod 4, columns c / 4 mod 8 to 32 rows each way 8 pieces. 3 x 2 slices of 6 cores against 2 x 3
 * of the same dims: slice 0 of 3 meets one half, slice 1 both. */
static void parts_move_where_every_core_has_as_much_to_send(void **state)
{
  (void)state;
  struct sw_part from = {.cores = 32, .n = 2, .cut = {{0, 8, 4}, {1, 4, 1}}}, to = {.cores = 32, .n = 1, .cut = {{1, 32, 1}}};
  assert_true(sw_part_moves_evenly(&from, &to));
  assert_true(sw_part_moves_evenly(&to, &from));
  struct sw_part thirds = {.cores = 6, .n = 2, .cut = {{0, 3, 1}, {1, 2, 3}}}, halves = {.cores = 6, .n = 2, .cut = {{0, 2, 1}, {1, 3, 2}}};
  assert_false(sw_part_moves_evenly(&thirds, &halves));
  struct sw_part fewer = {.cores = 16, .n = 1, .cut = {{1, 16, 1}}};
  assert_false(sw_part_moves_evenly(&from, &fewer));
}

/* The page's example (cost-model.md 10.4): 2 MiB on 8 cores, runs of 256 bytes, s 4: 1024 runs * 6.70 + 1917 = 8778 ns.
 * Device [64,32,8,64] has 16384 sticks; its innermost cut leaves runs of two of them. */
static void a_move_takes_what_the_page_says(void **state)
{
  (void)state;
  struct sw_layout l = {.rank = 4, .device_size = {64, 32, 8, 64}};
  struct sw_part from = {.cores = 8, .n = 2, .cut = {{0, 2, 4}, {2, 4, 1}}}, to = {.cores = 8, .n = 1, .cut = {{0, 8, 1}}};
  assert_true(fabs(sw_part_move_ns(&sw_spyre, &l, &from, &to) - 8778) < 2);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(parts_move_where_every_core_has_as_much_to_send),
      cmocka_unit_test(a_move_takes_what_the_page_says),
      cmocka_unit_test(equal_cuts_of_equal_dims_are_equal_parts),
      cmocka_unit_test(shared_and_added_up_parts_are_none),
      cmocka_unit_test(the_k_of_a_matmul_runs_fastest),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
