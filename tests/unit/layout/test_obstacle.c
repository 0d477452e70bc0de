#include "../unit.h"

#include "compiler/layout/normal.h"

#include <string.h>

/* A copy over two loops: source [rows, columns] from element `from` on, destination likewise; fp16, row-major. */
struct copy {
  struct sw_op op;
  struct sw_storage to;
  struct sw_layout layout[2];
};

static struct copy copy_of(int64_t rows, int64_t columns, const int64_t source[2], int source_stick,
                           const int64_t target[2], int target_stick, int64_t first_row)
{
  struct copy c = {.op = {.op = SW_OP_RESTICKIFY, .n_loops = 2, .n_written = 2, .range = {rows, columns}, .n_in = 1},
                   .to = {.rank = 2, .size = {target[0], target[1]}, .stride = {target[1], 1}}};
  const int64_t *size[2] = {source, target};
  const int stick[2] = {source_stick, target_stick};
  for (int i = 0; i < 2; i++) {
    const int64_t stride[2] = {size[i][1], 1};
    const int order[2] = {1 - stick[i], stick[i]};
    assert_true(sw_layout_make(&c.layout[i], SW_FORMAT_FP16, SW_EA_STANDARD, 2, size[i], stride, order, 2));
    struct sw_access *x = i ? &c.op.out : &c.op.in[0];
    *x = (struct sw_access){.step = {stride[0], 1}, .index_input = -1, .offset = i ? 0 : first_row * stride[0]};
  }
  return c;
}

static const char *obstacle(struct sw_job *job, const struct copy *c)
{
  const struct sw_layout *const layouts[2] = {&c->layout[0], &c->layout[1]};
  int culprit;
  return sw_layout_obstacle(job->arena, &c->op, layouts, &c->to, &culprit);
}

static void is_free(struct copy c)
{
  struct sw_job job = unit_job();
  assert_null(obstacle(&job, &c));
  sw_arena_free(job.arena);
}

static void is_stopped(struct copy c, const char *why)
{
  struct sw_job job = unit_job();
  const char *got = obstacle(&job, &c);
  assert_non_null(got);
  if (!strstr(got, why))
    fail_msg("\"%s\" expected in \"%s\"", why, got);
  sw_arena_free(job.arena);
}

/* superdsc.md section 16, M5. */
static void a_padded_restickify_needs_whole_dims(void **state)
{
  (void)state;
  static const int64_t whole[] = {100, 128}, longer[] = {150, 128}, much[] = {200, 128};
  is_free(copy_of(100, 128, whole, 1, whole, 0, 0));
  is_stopped(copy_of(100, 128, longer, 1, whole, 0, 0), "gap below a stick");
  is_free(copy_of(100, 128, much, 1, whole, 0, 0));
  is_free(copy_of(100, 128, much, 1, whole, 0, 50));
  is_stopped(copy_of(100, 128, much, 1, whole, 0, 100), "leave the 200");
}

static void padding_rows_are_not_written_over_neighbours(void **state)
{
  (void)state;
  static const int64_t part[] = {128, 100}, whole[] = {128, 200};
  is_stopped(copy_of(128, 100, part, 1, whole, 0, 0), "over their neighbours");
  is_stopped(copy_of(128, 100, part, 0, whole, 1, 0), "sticks are written whole");
}

/* [4,32] whose dims are not neighbours in memory, read as one loop of 128 on the stick of the target: lanes 0..31 and
 * 32..63 of a stick would come from two rows. */
static void a_stick_is_not_cut(void **state)
{
  (void)state;
  struct copy c = {.op = {.op = SW_OP_IDENTITY, .n_loops = 2, .n_written = 2, .range = {64, 128}, .n_in = 1},
                   .to = {.rank = 2, .size = {64, 128}, .stride = {128, 1}}};
  c.op.in[0] = c.op.out = (struct sw_access){.step = {128, 1}, .index_input = -1};
  c.layout[0] = (struct sw_layout){.rank = 4, .device_size = {4, 1, 32, 64}, .stride_map = {32, 8192, 1, 128}};
  c.layout[1] = (struct sw_layout){.rank = 3, .device_size = {2, 64, 64}, .stride_map = {64, 128, 1}};
  is_free(c); /* the tile dim of one element between them does not count */
  c.layout[0] = (struct sw_layout){.rank = 4, .device_size = {32, 1, 4, 64}, .stride_map = {1, 8192, 32, 128}};
  is_stopped(c, "cut at element 32");
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_padded_restickify_needs_whole_dims),
      cmocka_unit_test(padding_rows_are_not_written_over_neighbours),
      cmocka_unit_test(a_stick_is_not_cut),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
