#include "../unit.h"

#include "compiler/plan/liveness.h"
#include "compiler/plan/loops.h"

#include <string.h>

static struct sw_storage dense(int64_t rows, int64_t cols, const struct sw_layout *l)
{
  return (struct sw_storage){
      .kind = SW_STORAGE_TEMPORARY, .dtype = SW_F16, .rank = 2, .size = {rows, cols}, .stride = {cols, 1}, .input = -1, .layout = l};
}

static const struct sw_layout by_columns = {.rank = 3, .device_size = {64, 1024, 64}, .stride_map = {64, 4096, 1}};

/* Reads 512 x 1024 of [1024,4096], 2 tiles of rows around 4 of columns (tiling.md 5.1). */
static struct sw_op tile_of_both(void)
{
  struct sw_op op = {.name = "op", .n_loops = 2, .n_written = 2, .range = {512, 1024}, .n_in = 1, .n_levels = 2};
  op.level[0] = (struct sw_level){.loop = 0, .count = 2, .cut = 0};
  op.level[1] = (struct sw_level){.loop = 1, .count = 4, .cut = 1};
  op.in[0] = (struct sw_access){.step = {4096, 1}, .index_input = -1, .advance = {512 * 4096, 1024}};
  op.out = op.in[0];
  return op;
}

static void tiles_are_counted_in_elements_of_the_device(void **state)
{
  (void)state;
  struct sw_op op = tile_of_both();
  int64_t advance[SW_MAX_LEVELS];
  assert_true(sw_access_advance(&by_columns, &op, &op.in[0], advance));
  assert_int_equal(advance[0], 32768);
  assert_int_equal(advance[1], 1048576);
}

static void a_tile_that_ends_inside_a_stick_has_no_address(void **state)
{
  (void)state;
  struct sw_op op = tile_of_both();
  int64_t advance[SW_MAX_LEVELS];
  op.range[1] = 96;
  op.in[0].advance[1] = 96;
  assert_false(sw_access_advance(&by_columns, &op, &op.in[0], advance));
}

/* Rows in two device dims, 4 by 256: blocks of 384 rows are not equally far apart, blocks of 256 are. */
static void tiles_are_equally_far_apart_or_refused(void **state)
{
  (void)state;
  const struct sw_layout l = {.rank = 4, .device_size = {256, 1, 4, 64}, .stride_map = {64, -1, 64 * 256, 1}};
  struct sw_op op = {.name = "op", .n_loops = 2, .n_written = 2, .range = {128, 64}, .n_levels = 1};
  int64_t advance[SW_MAX_LEVELS];
  op.level[0] = (struct sw_level){.count = 8, .cut = 0};
  op.out = (struct sw_access){.step = {64, 1}, .index_input = -1, .advance = {128 * 64}};
  assert_false(sw_access_advance(&l, &op, &op.out, advance));
  op.level[0].count = 4;
  op.range[0] = 256;
  op.out.advance[0] = 256 * 64;
  assert_true(sw_access_advance(&l, &op, &op.out, advance));
  assert_int_equal(advance[0], 64);
}

static void expect_layout(const struct sw_storage *s, int rank, const int64_t *size, const int64_t *map)
{
  assert_int_equal(s->layout->rank, rank);
  assert_memory_equal(s->layout->device_size, size, sizeof *size * (size_t)rank);
  assert_memory_equal(s->layout->stride_map, map, sizeof *map * (size_t)rank);
}

/* tile_stride and resize_device_layout of the recorded cases. */
static void a_tile_is_a_smaller_tensor_of_the_same_order(void **state)
{
  (void)state;
  struct sw_job job = unit_job();
  struct sw_arena *a = job.arena;
  struct sw_storage s = dense(1024, 4096, &by_columns);
  assert_true(sw_shorten(a, &s, 0, 2) && sw_shorten(a, &s, 1, 4));
  assert_int_equal(s.stride[0], 1024);
  expect_layout(&s, 3, (int64_t[]){16, 512, 64}, (int64_t[]){64, 1024, 1});

  const struct sw_layout turned = {.rank = 3, .device_size = {4, 128, 64}, .stride_map = {8192, 1, 128}};
  s = dense(256, 128, &turned); /* the stick on the rows */
  assert_true(sw_shorten(a, &s, 1, 2));
  expect_layout(&s, 3, (int64_t[]){4, 64, 64}, (int64_t[]){4096, 1, 64});

  const struct sw_layout sparse = {.rank = 3, .device_size = {1, 128, 64}, .stride_map = {-1, 1, -1}};
  s = (struct sw_storage){.dtype = SW_F16, .rank = 1, .size = {128}, .stride = {1}, .layout = &sparse};
  assert_true(sw_shorten(a, &s, 0, 2));
  expect_layout(&s, 3, (int64_t[]){1, 64, 64}, (int64_t[]){-1, 1, -1});

  const struct sw_layout heads = {.rank = 5, .device_size = {32, 512, 8, 1, 64}, .stride_map = {512, 16384, 64, -1, 1}};
  s = (struct sw_storage){
      .dtype = SW_F16, .rank = 4, .size = {1, 32, 512, 512}, .stride = {8388608, 512, 16384, 1}, .layout = &heads};
  assert_true(sw_shorten(a, &s, 2, 2));
  expect_layout(&s, 5, (int64_t[]){32, 256, 8, 1, 64}, (int64_t[]){512, 16384, 64, -1, 1});

  s = dense(1024, 4096, &by_columns);
  assert_false(sw_shorten(a, &s, 1, 128)); /* half a stick */
  assert_false(sw_shorten(a, &s, 0, 3));
  sw_arena_free(a);
}

static void add_op(struct sw_arena *a, struct sw_program *p, int from, int to, bool in_loop)
{
  struct sw_op *op = SW_PUSH(a, &p->ops);
  struct sw_op_plan *plan = SW_NEW(a, struct sw_op_plan);
  *op = (struct sw_op){.name = "op", .n_in = 1, .plan = plan, .n_levels = in_loop};
  op->in[0] = (struct sw_access){.storage = from, .index_input = -1};
  op->out = (struct sw_access){.storage = to, .index_input = -1};
  op->level[0] = (struct sw_level){.loop = 0, .count = 4, .cut = 0};
  *SW_PUSH(a, &p->steps) = (struct sw_step){false, p->ops.n - 1};
}

/* 0 -> 1, then a loop 1 -> 2 -> 3 -> 4 in which 4 moves, then 4 -> 5. What comes in is read in every turn, what goes out
 * is whole at the end only; 2 and 3 are new in every turn. */
static void a_loop_carries_what_comes_in_and_what_goes_out(void **state)
{
  (void)state;
  struct sw_job job = unit_job();
  struct sw_program p = {.n_loops = 1};
  for (int s = 0; s < 6; s++)
    *SW_PUSH(job.arena, &p.storages) = dense(64, 64, NULL);
  for (int s = 0; s < 5; s++)
    add_op(job.arena, &p, s, s + 1, s >= 1 && s <= 3);
  p.ops.v[3].out.advance[0] = 64;
  const struct sw_life *l = sw_lives_make(job.arena, &p);
  static const struct {
    int first, last, turns;
    bool carried;
  } want[] = {{0, 0, 1, false}, {0, 3, 5, true}, {1, 2, 8, false}, {2, 3, 8, false}, {1, 4, 5, true}, {4, 4, 1, false}};
  for (int s = 0; s < 6; s++) {
    assert_int_equal(l[s].first, want[s].first);
    assert_int_equal(l[s].last, want[s].last);
    assert_int_equal(l[s].turns, want[s].turns);
    assert_int_equal(l[s].carried, want[s].carried);
  }
  sw_arena_free(job.arena);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(tiles_are_counted_in_elements_of_the_device),
      cmocka_unit_test(a_tile_that_ends_inside_a_stick_has_no_address),
      cmocka_unit_test(tiles_are_equally_far_apart_or_refused),
      cmocka_unit_test(a_tile_is_a_smaller_tensor_of_the_same_order),
      cmocka_unit_test(a_loop_carries_what_comes_in_and_what_goes_out),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
