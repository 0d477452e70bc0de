/* scratchpad_cases.json, tiling: those lists that have a counterpart here, as values. */
#include "../unit.h"

#include "compiler/plan/apply_tiles.h"

#include <string.h>

/* Every dim in a device dim of its own around a stick of one element, so that any of them can be cut. */
static struct sw_storage strided(struct sw_arena *a, int rank, const int64_t *size, const int64_t *stride)
{
  struct sw_layout *l = SW_NEW(a, struct sw_layout);
  struct sw_storage s = {.kind = SW_STORAGE_TEMPORARY, .dtype = SW_F16, .rank = rank, .input = -1, .layout = l};
  *l = (struct sw_layout){.rank = rank + 1};
  for (int d = 0; d < rank; d++) {
    s.size[d] = l->device_size[d] = size[d];
    s.stride[d] = l->stride_map[d] = stride[d];
  }
  l->device_size[rank] = 64;
  l->stride_map[rank] = -1;
  return s;
}

/* tile_stride. Left out: the three with a stride of 0, which no storage has here. A dim of one element has no stride. */
static void strides_shrink_with_the_dims_inside_them(void **state)
{
  (void)state;
  static const struct {
    int rank;
    int64_t size[3], stride[3], tile[3], want[3];
  } cases[] = {
      {1, {1024}, {1}, {256}, {1}},
      {2, {1024, 4096}, {4096, 1}, {512, 1024}, {1024, 1}},
      {2, {1024, 4096}, {4104, 1}, {512, 1024}, {1026, 1}},
      {3, {8, 16, 32}, {512, 32, 1}, {2, 4, 8}, {32, 8, 1}},
      {3, {8, 16, 32}, {1, 8, 128}, {2, 4, 8}, {1, 2, 8}},
      {3, {4, 8, 16}, {8192, 1024, 64}, {2, 4, 8}, {2048, 512, 64}},
      {3, {8, 16, 32}, {512, 32, 1}, {2, 1, 8}, {8, 0, 1}},
      {3, {1, 16, 32}, {512, 32, 1}, {1, 4, 8}, {0, 8, 1}},
      {3, {8, 1, 32}, {32, 32, 1}, {2, 1, 8}, {8, 0, 1}},
      {3, {8, 16, 1}, {16, 1, 1}, {2, 4, 1}, {4, 1, 0}},
      {3, {8, 16, 32}, {544, 32, 1}, {2, 4, 8}, {34, 8, 1}},
  };
  struct sw_job job = unit_job();
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct sw_storage s = strided(job.arena, cases[i].rank, cases[i].size, cases[i].stride);
    for (int d = 0; d < cases[i].rank; d++)
      if (cases[i].size[d] != cases[i].tile[d])
        assert_true(sw_shorten(job.arena, &s, d, cases[i].size[d] / cases[i].tile[d]));
    for (int d = 0; d < cases[i].rank; d++) {
      assert_int_equal(s.size[d], cases[i].tile[d]);
      if (s.size[d] > 1)
        assert_int_equal(s.stride[d], cases[i].want[d]);
    }
  }
  sw_arena_free(job.arena);
}

/* tile_index and retile_load_index: those that walk whole dims from their start. What does not is never made shorter. */
static void an_index_walks_the_tile_as_it_walked_the_whole(void **state)
{
  (void)state;
  static const struct {
    int64_t size[2], stride[2], tile_stride[2], step[3], want[3];
  } cases[] = {
      {{1024, 4096}, {4096, 1}, {1024, 1}, {4096, 1}, {1024, 1}},
      {{4096, 1024}, {1024, 1}, {512, 1}, {1, 1024}, {1, 512}},
      {{1024, 4096}, {1, 1024}, {1, 512}, {1, 1024}, {1, 512}},
      {{4, 4096}, {4096, 1}, {512, 1}, {4096, 1}, {512, 1}},
      {{2, 2}, {2, 1}, {1, 1}, {2, 1}, {1, 1}},
      {{2, 2}, {256, 128}, {64, 32}, {256, 0}, {64, 0}},
      {{2, 2}, {256, 128}, {64, 32}, {0, 128}, {0, 32}},
  };
  struct sw_job job = unit_job();
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct sw_storage whole = strided(job.arena, 2, cases[i].size, cases[i].stride);
    struct sw_storage tile = strided(job.arena, 2, cases[i].size, cases[i].tile_stride);
    struct sw_op op = {.n_loops = 3, .range = {2, 2, 2}};
    struct sw_access x = {.index_input = -1};
    memcpy(x.step, cases[i].step, sizeof cases[i].step);
    sw_tiles__walk_shorter(&whole, &tile, &op, &x);
    assert_memory_equal(x.step, cases[i].want, sizeof cases[i].want);
  }
  sw_arena_free(job.arena);
}

/* An op of these ranges in loops {count, cut}; its output and its first operand have the steps given. */
static struct sw_op tile_of(int n_loops, int n_written, const int64_t *range, const int64_t *out, const int64_t *in, int n,
                            const int64_t (*level)[2])
{
  struct sw_op op = {.n_loops = n_loops, .n_written = n_written, .n_in = 1, .in[0].index_input = -1, .out.index_input = -1};
  struct sw_nest nest = {.n = n};
  const struct sw_applier applier = {.n_storages = 0};
  memcpy(op.range, range, sizeof *range * (size_t)n_loops);
  memcpy(op.out.step, out, sizeof *out * (size_t)n_loops);
  memcpy(op.in[0].step, in, sizeof *in * (size_t)n_loops);
  for (int v = 0; v < n; v++) {
    nest.loop[v] = v;
    nest.count[v] = level[v][0];
    nest.cut[v] = (int)level[v][1];
  }
  return sw_tiles__cut(&applier, &op, &nest, n);
}

/* divide_ranges and group_stamps. Left out: one level that cuts two dims (here a level has one), and a count that does
 * not divide, which tests/golden/tiles.py has. */
static void ranges_are_divided_level_by_level(void **state)
{
  (void)state;
  static const struct {
    int n_loops, n_written;
    int64_t range[3];
    int n;
    int64_t level[2][2], want[3];
  } cases[] = {
      {1, 1, {64}, 1, {{4, 0}}, {16}},
      {2, 2, {32, 8}, 1, {{4, 0}}, {8, 8}},
      {1, 1, {32}, 0, {{0}}, {32}},
      {0, 0, {0}, 0, {{0}}, {0}},
      {2, 1, {64, 128}, 1, {{4, 0}}, {16, 128}}, /* a reduction */
      {2, 2, {256, 128}, 2, {{4, 0}, {2, 1}}, {64, 64}},
      {3, 3, {32, 64, 16}, 2, {{4, 0}, {8, 1}}, {8, 8, 16}},
      {1, 1, {256}, 2, {{4, 0}, {2, 0}}, {32}},
      {2, 2, {64, 32}, 1, {{4, 0}}, {16, 32}},
      {2, 2, {128, 64}, 2, {{4, 0}, {2, 1}}, {32, 32}},
  };
  static const int64_t ones[3] = {1, 1, 1};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct sw_op op = tile_of(cases[i].n_loops, cases[i].n_written, cases[i].range, ones, ones, cases[i].n, cases[i].level);
    assert_memory_equal(op.range, cases[i].want, sizeof *op.range * (size_t)cases[i].n_loops);
    assert_int_equal(op.n_levels, cases[i].n);
  }
  /* 256 in 4, then in 2: a turn of the outer loop is 64 elements, one of the inner 32 */
  struct sw_op twice = tile_of(1, 1, (int64_t[]){256}, ones, ones, 2, (int64_t[][2]){{4, 0}, {2, 0}});
  assert_int_equal(twice.out.advance[0], 64);
  assert_int_equal(twice.out.advance[1], 32);
}

/* tiled_dims_decision: extents of a turn, in host elements: extent times stride, 0 where the operand lacks the dim. */
static void an_access_moves_along_the_dims_it_has(void **state)
{
  (void)state;
  static const int64_t plane[2] = {1024, 4096}, rows[2] = {4096, 1}, turned[2] = {1, 1024}, row[2] = {0, 1};
  static const int64_t both[2][2] = {{2, 0}, {4, 1}};
  struct sw_op op = tile_of(2, 2, plane, rows, rows, 2, both);
  assert_int_equal(op.out.advance[0], 512 * 4096);
  assert_int_equal(op.out.advance[1], 1024);
  assert_int_equal(op.in[0].advance[0], 512 * 4096);
  assert_int_equal(op.in[0].advance[1], 1024);
  op = tile_of(2, 2, plane, rows, row, 2, both);
  assert_int_equal(op.in[0].advance[0], 0); /* broadcast over the rows */
  assert_int_equal(op.in[0].advance[1], 1024);
  op = tile_of(2, 2, plane, rows, turned, 2, both);
  assert_int_equal(op.in[0].advance[0], 512);
  assert_int_equal(op.in[0].advance[1], 1024 * 1024);
  op = tile_of(2, 1, (int64_t[]){8, 16}, (int64_t[]){1, 0}, (int64_t[]){16, 1}, 2, both);
  assert_int_equal(op.in[0].advance[0], 4 * 16); /* the sum over the columns */
  assert_int_equal(op.in[0].advance[1], 4);
  assert_int_equal(op.out.advance[0], 4);
  assert_int_equal(op.out.advance[1], 0);
  static const int64_t cube[3] = {512, 32, 1};
  op = tile_of(3, 3, (int64_t[]){8, 16, 32}, cube, cube, 2, (int64_t[][2]){{2, 0}, {4, 2}});
  assert_int_equal(op.out.advance[0], 4 * 512);
  assert_int_equal(op.out.advance[1], 8);
}

/* resize_device_layout where a size or a stride occurs twice: the host dim is told, nothing has to be guessed. */
static void equal_sizes_are_told_apart(void **state)
{
  (void)state;
  struct sw_job job = unit_job();
  static const struct sw_layout pairs = {
      .rank = 5, .device_size = {2, 2, 1, 2, 64}, .stride_map = {32, 16, -1, 64, 1}}; /* of [2,2,2,16] */
  struct sw_storage s = {.dtype = SW_F16, .rank = 4, .size = {2, 2, 2, 16}, .stride = {64, 32, 16, 1}, .layout = &pairs};
  assert_true(sw_shorten(job.arena, &s, 0, 2));
  assert_memory_equal(s.layout->device_size, ((int64_t[]){2, 2, 1, 1, 64}), 5 * sizeof(int64_t));
  static const struct sw_layout sticks = {.rank = 3, .device_size = {2, 2, 64}, .stride_map = {64, 128, 1}}; /* of [2,128] */
  s = (struct sw_storage){.dtype = SW_F16, .rank = 2, .size = {2, 128}, .stride = {128, 1}, .layout = &sticks};
  assert_true(sw_shorten(job.arena, &s, 0, 2));
  assert_memory_equal(s.layout->device_size, ((int64_t[]){2, 1, 64}), 3 * sizeof(int64_t));
  sw_arena_free(job.arena);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(strides_shrink_with_the_dims_inside_them),
      cmocka_unit_test(an_index_walks_the_tile_as_it_walked_the_whole),
      cmocka_unit_test(ranges_are_divided_level_by_level),
      cmocka_unit_test(an_access_moves_along_the_dims_it_has),
      cmocka_unit_test(equal_sizes_are_told_apart),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
