#include "../unit.h"

#include "base/files.h"
#include "base/json.h"
#include "base/options.h"
#include "compiler/plan/scratchpad.h"

#include <string.h>

static int64_t integer(const json_t *object, const char *key)
{
  return json_integer_value(json_object_get(object, key));
}

static void pool_allocator_repeats_the_reference(void **state)
{
  (void)state;
  struct sw_job job = unit_job();
  const char *text;
  size_t len;
  assert_int_equal(sw_file_read(&job, SW_SOURCE_DIR "/tests/data/scratchpad_cases.json", 1 << 20, &text, &len), SW_OK);
  const json_t *list = json_object_get(sw_json_parse(&job, "cases", text, len, 100000), "pool");
  assert_int_equal(json_array_size(list), 11);
  for (size_t i = 0; i < json_array_size(list); i++) {
    const json_t *c = json_array_get(list, i), *buffers = json_object_get(c, "buffers");
    int64_t bytes[8], offset[8];
    int first[8], last[8], n = (int)json_array_size(buffers);
    for (int k = 0; k < n; k++) {
      const json_t *b = json_array_get(buffers, (size_t)k);
      bytes[k] = integer(b, "size");
      first[k] = (int)integer(b, "start");
      last[k] = (int)integer(b, "end");
    }
    assert_int_equal(sw_pool_first_fit(job.arena, n, bytes, first, last, integer(c, "limit"), offset),
                     integer(c, "pool_size"));
    for (int k = 0; k < n; k++) {
      const json_t *want = json_array_get(json_object_get(c, "offsets"), (size_t)k);
      assert_int_equal(offset[k], json_is_null(want) ? -1 : json_integer_value(want));
    }
  }
  sw_arena_free(job.arena);
}

/* -- small programs -- */

/* fp16 [rows, 64 * tiles] or, sparse, one element a stick. */
static int add_storage(struct sw_job *job, struct sw_program *p, const char *name, enum sw_storage_kind kind,
                       int64_t rows, int64_t tiles)
{
  struct sw_layout *l = SW_NEW(job->arena, struct sw_layout);
  *l = (struct sw_layout){3, {tiles, rows, 64}, {64, 64 * tiles, 1}, SW_FORMAT_FP16, SW_EA_STANDARD};
  if (!tiles)
    *l = (struct sw_layout){3, {1, rows, 64}, {-1, 1, -1}, SW_FORMAT_FP16, SW_EA_STANDARD};
  *SW_PUSH(job->arena, &p->storages) = (struct sw_storage){.name = name,
                                                           .kind = kind,
                                                           .dtype = SW_F16,
                                                           .rank = 2,
                                                           .size = {rows, tiles ? 64 * tiles : 1},
                                                           .stride = {tiles ? 64 * tiles : 1, 1},
                                                           .input = -1,
                                                           .layout = l};
  return p->storages.n - 1;
}

static struct sw_access whole(const struct sw_program *p, int s, int64_t cols)
{
  bool sparse = p->storages.v[s].size[1] == 1;
  return (struct sw_access){.storage = s, .step = {sparse ? 1 : cols, sparse ? 0 : 1}, .index_input = -1};
}

/* An op over [rows, cols], cut into `split_rows` x `split_cols`. */
static struct sw_op *add_op(struct sw_job *job, struct sw_program *p, enum sw_device_op code, int64_t rows,
                            int64_t cols, int64_t split_rows, int64_t split_cols, int a, int b, int out)
{
  struct sw_op_plan *plan = SW_NEW(job->arena, struct sw_op_plan);
  for (int l = 0; l < SW_MAX_LOOPS; l++)
    plan->split[l] = 1;
  plan->split[0] = split_rows;
  plan->split[1] = split_cols;
  plan->cores = (int)(split_rows * split_cols);
  struct sw_op *op = SW_PUSH(job->arena, &p->ops);
  *op = (struct sw_op){.name = sw_arena_printf(job->arena, "op%d", p->ops.n - 1),
                       .op = code,
                       .n_loops = 2,
                       .n_written = sw_device_op_is_reduction(code) ? 1 : 2,
                       .range = {rows, cols},
                       .n_in = b < 0 ? 1 : 2,
                       .out = whole(p, out, cols),
                       .plan = plan};
  op->in[0] = whole(p, a, cols);
  if (b >= 0)
    op->in[1] = whole(p, b, cols);
  *SW_PUSH(job->arena, &p->steps) = (struct sw_step){false, p->ops.n - 1};
  return op;
}

static struct sw_plan *plan_of(struct sw_job *job, struct sw_program *p, enum sw_profile profile)
{
  struct sw_options *o = SW_NEW(job->arena, struct sw_options);
  sw_options_init(o);
  o->profile = profile;
  sw_options_settle(o);
  struct sw_plan *plan = SW_NEW(job->arena, struct sw_plan);
  for (int i = 0; i < p->ops.n; i++) {
    while (plan->kernels.n <= p->ops.v[i].plan->kernel)
      *SW_PUSH(job->arena, &plan->kernels) = (struct sw_kernel){.name = "k"};
    *SW_PUSH(job->arena, &plan->kernels.v[p->ops.v[i].plan->kernel].ops) = i;
  }
  assert_int_equal(sw_plan_places(job, o, p, plan, (struct sw_lx_copies){.inputs = profile == SW_PROFILE_TORCH_SPYRE}), SW_OK);
  return plan;
}

static void expect_lx(const struct sw_program *p, int s, int64_t offset, int64_t bytes)
{
  const struct sw_place *x = p->storages.v[s].place;
  if (x->kind != SW_PLACE_LX)
    fail_msg("%s is not in LX: %s", p->storages.v[s].name, x->not_in_lx);
  assert_int_equal(x->offset, offset);
  assert_int_equal(x->bytes, bytes);
}

/* scratchpad.md 11.1: softmax over the columns of [512,1024] on 32 cores. */
static void softmax_keeps_its_intermediates_in_lx(void **state)
{
  (void)state;
  struct sw_job job = unit_job();
  struct sw_program p = {0};
  int x = add_storage(&job, &p, "x", SW_STORAGE_INPUT, 512, 16);
  int max = add_storage(&job, &p, "max", SW_STORAGE_TEMPORARY, 512, 0);
  int sub = add_storage(&job, &p, "sub", SW_STORAGE_TEMPORARY, 512, 16);
  int e = add_storage(&job, &p, "exp", SW_STORAGE_TEMPORARY, 512, 16);
  int sum = add_storage(&job, &p, "sum", SW_STORAGE_TEMPORARY, 512, 0);
  int y = add_storage(&job, &p, "y", SW_STORAGE_TEMPORARY, 512, 16);
  p.storages.v[y].is_output = true;
  add_op(&job, &p, SW_OP_MAX, 512, 1024, 32, 1, x, -1, max);
  add_op(&job, &p, SW_OP_SUB, 512, 1024, 32, 1, x, max, sub);
  add_op(&job, &p, SW_OP_EXP, 512, 1024, 32, 1, sub, -1, e);
  add_op(&job, &p, SW_OP_SUM, 512, 1024, 32, 1, e, -1, sum);
  add_op(&job, &p, SW_OP_DIV, 512, 1024, 32, 1, e, sum, y);
  struct sw_plan *plan = plan_of(&job, &p, SW_PROFILE_TORCH_SPYRE);
  expect_lx(&p, max, 0, 2048);
  expect_lx(&p, sub, 2048, 32768);
  expect_lx(&p, e, 2048, 32768); /* in sub's place */
  expect_lx(&p, sum, 0, 2048);
  assert_int_equal(p.storages.v[y].place->kind, SW_PLACE_HBM);
  assert_int_equal(plan->lx_peak_bytes, 34816);
  /* The input is read twice: copied once, right in front, and sub takes the copy's place. */
  int copy = p.storages.n - 1;
  assert_string_equal(p.storages.v[copy].name, "x:lx");
  expect_lx(&p, copy, 2048, 32768);
  assert_int_equal(p.steps.v[0].index, 5);
  assert_int_equal(plan->kernels.v[0].ops.v[0], 5);
  assert_int_equal(p.ops.v[5].op, SW_OP_IDENTITY);
  assert_int_equal(p.ops.v[5].in[0].storage, x);
  assert_int_equal(p.ops.v[0].in[0].storage, copy);
  assert_int_equal(p.ops.v[1].in[0].storage, copy);
  assert_int_equal(p.storages.v[x].place->kind, SW_PLACE_HBM);
  sw_arena_free(job.arena);
}

static void an_output_that_is_read_inside_is_copied_out(void **state)
{
  (void)state;
  struct sw_job job = unit_job();
  struct sw_program p = {0};
  int x = add_storage(&job, &p, "x", SW_STORAGE_INPUT, 512, 16);
  int a = add_storage(&job, &p, "a", SW_STORAGE_TEMPORARY, 512, 16);
  int b = add_storage(&job, &p, "b", SW_STORAGE_TEMPORARY, 512, 16);
  for (int i = 0; i < 2; i++) {
    struct sw_program_output *o = SW_PUSH(job.arena, &p.outputs);
    *o = (struct sw_program_output){.name = "o", .is_tensor = true};
    o->view = (struct sw_view){.storage = i ? b : a, .rank = 2, .size = {512, 1024}, .stride = {1024, 1}};
  }
  p.storages.v[a].is_output = p.storages.v[b].is_output = true;
  add_op(&job, &p, SW_OP_EXP, 512, 1024, 32, 1, x, -1, a);
  add_op(&job, &p, SW_OP_NEG, 512, 1024, 32, 1, a, -1, b);
  plan_of(&job, &p, SW_PROFILE_BEST);
  expect_lx(&p, a, 0, 32768);
  int copy = p.outputs.v[0].view.storage;
  assert_string_equal(p.storages.v[copy].name, "a:hbm");
  assert_int_equal(p.storages.v[copy].place->kind, SW_PLACE_HBM);
  assert_true(p.storages.v[copy].is_output && !p.storages.v[a].is_output);
  assert_int_equal(p.outputs.v[1].view.storage, b);
  assert_int_equal(p.steps.v[1].index, 2); /* behind its writer */
  assert_int_equal(p.ops.v[1].in[0].storage, a);
  assert_int_equal(p.steps.n, 3);
  sw_arena_free(job.arena);
}

/* a -> b -> y where the reader of b is cut otherwise. */
static const char *why_not(struct sw_job *job, int64_t rows1, int64_t cols1, int64_t rows2, int64_t cols2,
                           enum sw_device_op second, int kernel)
{
  struct sw_program p = {0};
  int a = add_storage(job, &p, "a", SW_STORAGE_INPUT, 512, 16);
  int b = add_storage(job, &p, "b", SW_STORAGE_TEMPORARY, 512, 16);
  int y = add_storage(job, &p, "y", SW_STORAGE_TEMPORARY, 512, 16);
  p.storages.v[y].is_output = true;
  add_op(job, &p, SW_OP_EXP, 512, 1024, rows1, cols1, a, -1, b);
  struct sw_op *reader = add_op(job, &p, second, 512, 1024, rows2, cols2, b, -1, y);
  ((struct sw_op_plan *)reader->plan)->kernel = kernel;
  plan_of(job, &p, SW_PROFILE_BEST);
  return p.storages.v[b].place->not_in_lx;
}

static void only_what_a_core_wrote_itself_is_read_from_lx(void **state)
{
  (void)state;
  struct sw_job job = unit_job();
  assert_null(why_not(&job, 32, 1, 32, 1, SW_OP_EXP, 0));
  assert_null(why_not(&job, 8, 4, 8, 4, SW_OP_EXP, 0));
  assert_non_null(strstr(why_not(&job, 32, 1, 8, 4, SW_OP_EXP, 0), "core div mismatch"));
  assert_non_null(strstr(why_not(&job, 32, 1, 16, 1, SW_OP_EXP, 0), "core div mismatch"));
  assert_string_equal(why_not(&job, 32, 1, 32, 1, SW_OP_RESTICKIFY, 0), "read by restickify (cross-frame barrier)");
  assert_string_equal(why_not(&job, 32, 1, 32, 1, SW_OP_EXP, 1), "used by several kernels");
  sw_arena_free(job.arena);
}

static void pool_blocks_are_reused_only_after_the_op_that_read_them(void **state)
{
  (void)state;
  struct sw_job job = unit_job();
  struct sw_program p = {0};
  int s[6];
  s[0] = add_storage(&job, &p, "in", SW_STORAGE_INPUT, 512, 16);
  for (int i = 1; i < 6; i++)
    s[i] = add_storage(&job, &p, sw_arena_printf(job.arena, "t%d", i), SW_STORAGE_TEMPORARY, 512, 16);
  p.storages.v[s[5]].is_output = true;
  for (int i = 0; i < 5; i++) /* neighbours disagree, so nothing is in LX */
    add_op(&job, &p, SW_OP_EXP, 512, 1024, i % 2 ? 32 : 8, i % 2 ? 1 : 4, s[i], -1, s[i + 1]);
  struct sw_plan *plan = plan_of(&job, &p, SW_PROFILE_BEST);
  for (int i = 1; i < 5; i++)
    assert_int_equal(p.storages.v[s[i]].place->kind, SW_PLACE_POOL);
  for (int i = 1; i < 4; i++)
    assert_int_not_equal(p.storages.v[s[i]].place->offset, p.storages.v[s[i + 1]].place->offset);
  assert_int_equal(plan->kernels.v[0].pool_bytes, 2 << 20);
  assert_int_equal(plan->peak_pool_bytes, 2 << 20);
  sw_arena_free(job.arena);
}

/* scratchpad_cases.json, hbm_pool_allocator: calls as blocks with their first and last step, limit 100; -1: refused. */
static void a_pool_that_is_full_stays_as_it_was(void **state)
{
  (void)state;
  static const struct {
    int n, last[3];
    int64_t bytes[3], offset[3], end;
  } cases[] = {
      {1, {9}, {60}, {0}, 60},
      {1, {9}, {101}, {-1}, 0},
      {3, {9, 9, 9}, {50, 60, 40}, {0, -1, 50}, 90},
      {3, {0, 9, 9}, {50, 60, 50}, {0, -1, 0}, 50},
      {1, {9}, {100}, {0}, 100},
      {3, {1, 1, 9}, {40, 40, 50}, {0, 40, -1}, 80},
  };
  struct sw_arena *a = sw_arena_new(NULL, SIZE_MAX);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    int64_t offset[3];
    int first[3] = {0, 1, 2};
    assert_int_equal(sw_pool_first_fit(a, cases[i].n, cases[i].bytes, first, cases[i].last, 100, offset), cases[i].end);
    for (int k = 0; k < cases[i].n; k++)
      assert_int_equal(offset[k], cases[i].offset[k]);
  }
  sw_arena_free(a);
}

/* -- scratchpad_cases.json, in_place_edge_gate -- */

enum gate { ALL_MET, REDUCED, OTHER_SIZE, OTHER_LAYOUT, READ_AGAIN, OTHER_CORES };

/* Whether b, made from a, takes its place: x -> a -> b -> y. Where it does not, the two must not meet. */
static bool takes_the_place(struct sw_job *job, enum gate gate)
{
  struct sw_program p = {0};
  int x = add_storage(job, &p, "x", SW_STORAGE_INPUT, 512, 16);
  int a = add_storage(job, &p, "a", SW_STORAGE_TEMPORARY, 512, gate == OTHER_SIZE ? 0 : 16);
  int b = add_storage(job, &p, "b", SW_STORAGE_TEMPORARY, 512, gate == REDUCED ? 0 : 16);
  int y = add_storage(job, &p, "y", SW_STORAGE_TEMPORARY, 512, gate == REDUCED ? 0 : 16);
  int64_t cols = gate == REDUCED ? 1 : 1024;
  p.storages.v[y].is_output = true;
  if (gate == OTHER_LAYOUT) {
    struct sw_layout *l = SW_NEW(job->arena, struct sw_layout);
    *l = (struct sw_layout){4, {16, 512, 1, 64}, {64, 1024, -1, 1}, SW_FORMAT_FP16, SW_EA_STANDARD};
    p.storages.v[b].layout = l;
  }
  add_op(job, &p, gate == OTHER_SIZE ? SW_OP_MAX : SW_OP_EXP, 512, 1024, 32, 1, x, -1, a);
  bool narrow = gate == OTHER_CORES;
  add_op(job, &p, gate == REDUCED ? SW_OP_SUM : SW_OP_NEG, 512, 1024, narrow ? 8 : 32, narrow ? 4 : 1, a, -1, b);
  add_op(job, &p, SW_OP_EXP, 512, cols, narrow ? 8 : 32, narrow ? 4 : 1, b, gate == READ_AGAIN ? a : -1, y);
  plan_of(job, &p, SW_PROFILE_BEST);
  const struct sw_place *from = p.storages.v[a].place, *to = p.storages.v[b].place;
  if (from->kind != SW_PLACE_LX || to->kind != SW_PLACE_LX)
    return false;
  if (from->offset == to->offset)
    return true;
  assert_true(from->offset + from->bytes <= to->offset || to->offset + to->bytes <= from->offset);
  return false;
}

static void a_result_takes_the_place_of_an_operand_only_where_all_agree(void **state)
{
  (void)state;
  struct sw_job job = unit_job();
  assert_true(takes_the_place(&job, ALL_MET));
  for (int gate = REDUCED; gate <= OTHER_CORES; gate++)
    assert_false(takes_the_place(&job, (enum gate)gate));
  sw_arena_free(job.arena);
}

/* -- hbm_pool_eligibility and extern_kernel_live_range: x -> a (kernel `writer`), a -> y (kernel `reader`), and a second writer -- */

static enum sw_place_kind kind_of(struct sw_job *job, int writer, int second, int reader, bool pool, int64_t *bytes)
{
  struct sw_program p = {0};
  int x = add_storage(job, &p, "x", SW_STORAGE_INPUT, 512, 16);
  int a = add_storage(job, &p, "a", SW_STORAGE_TEMPORARY, 512, 16);
  int y = add_storage(job, &p, "y", SW_STORAGE_TEMPORARY, 512, 16);
  p.storages.v[y].is_output = true;
  struct sw_op *op = add_op(job, &p, SW_OP_EXP, 512, 1024, 8, 4, x, -1, a);
  ((struct sw_op_plan *)op->plan)->kernel = writer;
  if (second >= 0) {
    op = add_op(job, &p, SW_OP_ADD, 512, 1024, 8, 4, a, x, a);
    ((struct sw_op_plan *)op->plan)->kernel = second;
  }
  op = add_op(job, &p, SW_OP_NEG, 512, 1024, 32, 1, a, -1, y); /* cut otherwise: not in the scratchpads */
  ((struct sw_op_plan *)op->plan)->kernel = reader;
  struct sw_options *o = SW_NEW(job->arena, struct sw_options);
  struct sw_plan *plan = SW_NEW(job->arena, struct sw_plan);
  sw_options_init(o);
  o->pool = pool;
  for (int i = 0; i < p.ops.n; i++) {
    while (plan->kernels.n <= p.ops.v[i].plan->kernel)
      *SW_PUSH(job->arena, &plan->kernels) = (struct sw_kernel){.name = "k"};
    *SW_PUSH(job->arena, &plan->kernels.v[p.ops.v[i].plan->kernel].ops) = i;
  }
  assert_int_equal(sw_plan_places(job, o, &p, plan, (struct sw_lx_copies){0}), SW_OK);
  *bytes = plan->peak_pool_bytes;
  return p.storages.v[a].place->kind;
}

static void only_what_lives_in_one_kernel_is_in_its_pool(void **state)
{
  (void)state;
  struct sw_job job = unit_job();
  int64_t bytes;
  assert_int_equal(kind_of(&job, 0, -1, 0, true, &bytes), SW_PLACE_POOL); /* local */
  assert_int_equal(bytes, 1 << 20);
  assert_int_equal(kind_of(&job, 0, -1, 1, true, &bytes), SW_PLACE_HBM); /* cross_bundle; a host step lies between */
  assert_int_equal(bytes, 0);
  assert_int_equal(kind_of(&job, 0, 1, 1, true, &bytes), SW_PLACE_HBM); /* two_writers_*: another kernel writes it again */
  assert_int_equal(kind_of(&job, 0, 0, 1, true, &bytes), SW_PLACE_HBM);
  assert_int_equal(kind_of(&job, 0, -1, 0, false, &bytes), SW_PLACE_HBM); /* disabled */
  assert_int_equal(bytes, 0);
  sw_arena_free(job.arena);
}

/* scratchpad_cases.json, extern_kernel_live_range: three steps, a host step in the middle or not, and a storage that is
 * written by step `first` and read by step `last` (-1: by none). NULL: in the scratchpads. */
static const char *why_not_across(struct sw_job *job, bool host, int first, int last)
{
  struct sw_program p = {0};
  int s[4];
  for (int i = 0; i < 4; i++)
    s[i] = add_storage(job, &p, sw_arena_printf(job->arena, "s%d", i), i ? SW_STORAGE_TEMPORARY : SW_STORAGE_INPUT, 512, 16);
  int b = add_storage(job, &p, "b", SW_STORAGE_TEMPORARY, 512, 16);
  p.storages.v[s[3]].is_output = true;
  for (int i = 0; i < 3; i++) {
    int in = i == last ? b : s[i], out = i == first ? b : s[i + 1];
    if (i != 1 || !host) {
      struct sw_op *op = add_op(job, &p, SW_OP_EXP, 512, 1024, 32, 1, i && i - 1 == first && i != last ? s[0] : in, -1, out);
      ((struct sw_op_plan *)op->plan)->kernel = host && i == 2;
      continue;
    }
    struct sw_host_step *h = SW_PUSH(job->arena, &p.host_steps);
    *h = (struct sw_host_step){.name = "host"};
    *SW_PUSH(job->arena, &h->args) = (struct sw_host_arg){.kind = SW_HOST_VIEW, .view = {.storage = first == 0 ? s[0] : in}};
    *SW_PUSH(job->arena, &h->results) = (struct sw_view){.storage = out};
    *SW_PUSH(job->arena, &p.steps) = (struct sw_step){true, p.host_steps.n - 1};
  }
  plan_of(job, &p, SW_PROFILE_BEST);
  return p.storages.v[b].place->kind == SW_PLACE_LX ? NULL : p.storages.v[b].place->not_in_lx;
}

static void nothing_stays_on_the_cores_across_a_host_step(void **state)
{
  (void)state;
  struct sw_job job = unit_job();
  assert_non_null(why_not_across(&job, true, 0, 2));  /* behind it read again: barred */
  assert_non_null(why_not_across(&job, true, 1, -1)); /* the host step's own: barred */
  const char *unread = why_not_across(&job, true, 0, -1); /* in front of it, and never read: not because of the step */
  assert_non_null(unread);
  assert_null(strstr(unread, "extern"));
  assert_null(why_not_across(&job, false, 0, 2)); /* no host step: stays */
  sw_arena_free(job.arena);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_result_takes_the_place_of_an_operand_only_where_all_agree),
      cmocka_unit_test(only_what_lives_in_one_kernel_is_in_its_pool),
      cmocka_unit_test(nothing_stays_on_the_cores_across_a_host_step),
      cmocka_unit_test(a_pool_that_is_full_stays_as_it_was),
      cmocka_unit_test(pool_allocator_repeats_the_reference),
      cmocka_unit_test(softmax_keeps_its_intermediates_in_lx),
      cmocka_unit_test(an_output_that_is_read_inside_is_copied_out),
      cmocka_unit_test(only_what_a_core_wrote_itself_is_read_from_lx),
      cmocka_unit_test(pool_blocks_are_reused_only_after_the_op_that_read_them),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
