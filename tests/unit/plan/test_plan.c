/* The pass on a program made by hand: y = cat(x @ w, x @ w), then a host step, then z = exp(y). */
#include "../unit.h"

#include "base/options.h"
#include "compiler/plan/plan.h"

#include <string.h>

enum { X, W, T, Y, Z, N_STORAGES };

static struct sw_layout *default_2d(struct sw_arena *a, int64_t rows, int64_t cols)
{
  struct sw_layout *l = SW_NEW(a, struct sw_layout);
  int64_t size[2] = {rows, cols}, stride[2] = {cols, 1};
  int order[2] = {0, 1};
  assert_true(sw_layout_make(l, SW_FORMAT_FP16, SW_EA_STANDARD, 2, size, stride, order, 2));
  return l;
}

static void add_storage(struct sw_arena *a, struct sw_program *p, const char *name, enum sw_storage_kind kind,
                        int64_t rows, int64_t cols)
{
  struct sw_storage *s = SW_PUSH(a, &p->storages);
  *s = (struct sw_storage){.name = name, .kind = kind, .dtype = SW_F16, .rank = 2, .input = -1};
  s->size[0] = rows, s->size[1] = cols;
  s->stride[0] = cols, s->stride[1] = 1;
  s->layout = default_2d(a, rows, cols);
}

static struct sw_op *add_op(struct sw_arena *a, struct sw_program *p, const char *name, enum sw_device_op device_op,
                            enum sw_op_role role, int node)
{
  struct sw_op *op = SW_PUSH(a, &p->ops);
  *op = (struct sw_op){.name = name, .op = device_op, .role = role, .out.index_input = -1};
  *SW_PUSH(a, &op->nodes) = node;
  *SW_PUSH(a, &p->steps) = (struct sw_step){.is_host = false, .index = p->ops.n - 1};
  return op;
}

static struct sw_access at(int storage, int64_t offset, int64_t s0, int64_t s1, int64_t s2)
{
  return (struct sw_access){.storage = storage, .offset = offset, .step = {s0, s1, s2}, .index_input = -1};
}

static void add_copy(struct sw_arena *a, struct sw_program *p, const char *name, int node, int64_t offset)
{
  struct sw_op *op = add_op(a, p, name, SW_OP_IDENTITY, SW_ROLE_WRITE, node);
  op->n_loops = op->n_written = 2;
  op->range[0] = 128, op->range[1] = 1024;
  op->n_in = 1;
  op->in[0] = at(T, 0, 1024, 1, 0);
  op->out = at(Y, offset, 1024, 1, 0);
}

static struct sw_program *program(struct sw_job *job)
{
  struct sw_arena *a = job->arena;
  struct sw_program *p = SW_NEW(a, struct sw_program);
  struct sw_graph *g = SW_NEW(a, struct sw_graph);
  p->graph = g;
  SW_PUSH(a, &g->nodes)->target = "aten.mm.default";
  SW_PUSH(a, &g->nodes)->target = "aten.cat.default";
  SW_PUSH(a, &g->nodes)->target = "aten.exp.default";
  add_storage(a, p, "x", SW_STORAGE_INPUT, 128, 256);
  add_storage(a, p, "w", SW_STORAGE_PARAMETER, 256, 1024);
  add_storage(a, p, "t", SW_STORAGE_TEMPORARY, 128, 1024);
  add_storage(a, p, "y", SW_STORAGE_TEMPORARY, 256, 1024);
  add_storage(a, p, "z", SW_STORAGE_TEMPORARY, 256, 1024);

  struct sw_op *mm = add_op(a, p, "mm", SW_OP_MATMUL, SW_ROLE_PLAIN, 0);
  mm->n_loops = 3, mm->n_written = 2;
  mm->range[0] = 128, mm->range[1] = 1024, mm->range[2] = 256;
  mm->n_in = 2;
  mm->in[0] = at(X, 0, 256, 0, 1);
  mm->in[1] = at(W, 0, 0, 1, 1024);
  mm->out = at(T, 0, 1024, 1, 0);
  add_copy(a, p, "cat_0", 1, 0);
  add_copy(a, p, "cat_1", 1, 128 * 1024);
  *SW_PUSH(a, &p->steps) = (struct sw_step){.is_host = true};
  SW_PUSH(a, &p->host_steps)->name = "sin";
  struct sw_op *e = add_op(a, p, "exp", SW_OP_EXP, SW_ROLE_PLAIN, 2);
  e->n_loops = e->n_written = 2;
  e->range[0] = 256, e->range[1] = 1024;
  e->n_in = 1;
  e->in[0] = at(Y, 0, 1024, 1, 0);
  e->out = at(Z, 0, 1024, 1, 0);
  return p;
}

static struct sw_plan *plan_with(struct sw_job *job, struct sw_program *p, enum sw_profile profile)
{
  struct sw_options o;
  struct sw_plan *plan = NULL;
  sw_options_init(&o);
  o.profile = profile;
  sw_options_settle(&o);
  o.lx = o.pool = false;
  assert_int_equal(sw_make_plan(job, &o, p, &plan), SW_OK);
  return plan;
}

static void host_steps_cut_kernels(void **state)
{
  (void)state;
  struct sw_job job = unit_job();
  struct sw_plan *plan = plan_with(&job, program(&job), SW_PROFILE_BEST);
  assert_int_equal(plan->kernels.n, 2);
  assert_string_equal(plan->kernels.v[0].name, "sdsc_fused_cat_mm_0");
  assert_string_equal(plan->kernels.v[1].name, "sdsc_fused_exp_1");
  assert_int_equal(plan->kernels.v[0].ops.n, 3);
  sw_arena_free(job.arena);
}

static void the_reference_also_cuts_at_destinations(void **state)
{
  (void)state;
  struct sw_job job = unit_job();
  struct sw_program *p = program(&job);
  struct sw_plan *plan = plan_with(&job, p, SW_PROFILE_TORCH_SPYRE);
  assert_int_equal(plan->kernels.n, 3);
  assert_string_equal(plan->kernels.v[0].name, "sdsc_fused_mm_0");
  assert_string_equal(plan->kernels.v[1].name, "sdsc_fused_cat_1");
  assert_string_equal(plan->kernels.v[2].name, "sdsc_fused_exp_2");
  assert_int_equal(p->ops.v[2].plan->kernel, 1);
  sw_arena_free(job.arena);
}

/* work-division.md 19.1: linear 128 x 256 x 1024 is cut m 4, n 8. */
static void ops_get_their_splits_and_times(void **state)
{
  (void)state;
  struct sw_job job = unit_job();
  struct sw_program *p = program(&job);
  struct sw_plan *plan = plan_with(&job, p, SW_PROFILE_BEST);
  const struct sw_op_plan *mm = p->ops.v[0].plan;
  assert_true(mm->split[0] == 4 && mm->split[1] == 8 && mm->split[2] == 1);
  assert_int_equal(mm->cores, 32);
  double sum = 0;
  for (int i = 0; i < p->ops.n; i++)
    sum += p->ops.v[i].plan->time.total;
  assert_true(sum > 0 && sum > plan->predicted_ns * 0.999999 && sum < plan->predicted_ns * 1.000001);
  /* exp moves 2 * 512 KiB at 150 GB/s, one way of it at the turnaround */
  double exp_ns = 2 * 524288 / 150.0 + 0.00574 * 524288;
  assert_true(p->ops.v[3].plan->time.total > exp_ns - 1e-6 && p->ops.v[3].plan->time.total < exp_ns + 1e-6);
  sw_arena_free(job.arena);
}

/* mm cut 4 x 8 and two pointwise ops behind it: alone they would be cut by rows, together they follow the matmul, so
 * that what lies between them can stay on the cores. */
static void pointwise_ops_follow_the_matmul(void **state)
{
  (void)state;
  struct sw_job job = unit_job();
  struct sw_arena *a = job.arena;
  struct sw_program *p = program(&job);
  p->ops.n = 1;
  p->steps.n = 1;
  p->storages.v[Y].layout = default_2d(a, 128, 1024);
  p->storages.v[Z].layout = default_2d(a, 128, 1024);
  p->storages.v[Y].size[0] = p->storages.v[Z].size[0] = 128;
  p->storages.v[Z].is_output = true;
  for (int i = 0; i < 2; i++) {
    struct sw_op *op = add_op(a, p, i ? "silu" : "neg", i ? SW_OP_SILU : SW_OP_NEG, SW_ROLE_PLAIN, 2);
    op->n_loops = op->n_written = 2;
    op->range[0] = 128, op->range[1] = 1024;
    op->n_in = 1;
    op->in[0] = at(i ? Y : T, 0, 1024, 1, 0);
    op->out = at(i ? Z : Y, 0, 1024, 1, 0);
  }
  struct sw_options o;
  struct sw_plan *plan;
  sw_options_init(&o);
  sw_options_settle(&o);
  assert_int_equal(sw_make_plan(&job, &o, p, &plan), SW_OK);
  for (int i = 0; i < 3; i++)
    assert_true(p->ops.v[i].plan->split[0] == 4 && p->ops.v[i].plan->split[1] == 8);
  o.profile = SW_PROFILE_TORCH_SPYRE;
  assert_int_equal(sw_make_plan(&job, &o, p, &plan), SW_OK);
  assert_true(p->ops.v[1].plan->split[0] == 32);
  sw_arena_free(job.arena);
}

static struct sw_layout *default_3d(struct sw_arena *a, int64_t n0, int64_t n1, int64_t n2)
{
  struct sw_layout *l = SW_NEW(a, struct sw_layout);
  int64_t size[3] = {n0, n1, n2}, stride[3] = {n1 * n2, n2, 1};
  int order[3] = {0, 1, 2};
  assert_true(sw_layout_make(l, SW_FORMAT_FP16, SW_EA_STANDARD, 3, size, stride, order, 3));
  return l;
}

/* exp(neg(x)), x of [64,128,128]: what lies between takes 2 MiB. */
static struct sw_program *chain(struct sw_job *job)
{
  struct sw_arena *a = job->arena;
  struct sw_program *p = SW_NEW(a, struct sw_program);
  struct sw_graph *g = SW_NEW(a, struct sw_graph);
  static const char *const names[] = {"x", "between", "y"};
  p->graph = g;
  SW_PUSH(a, &g->nodes)->target = "aten.neg.default";
  for (int i = 0; i < 3; i++) {
    add_storage(a, p, names[i], i ? SW_STORAGE_TEMPORARY : SW_STORAGE_INPUT, 1, 1);
    struct sw_storage *s = &p->storages.v[i];
    s->rank = 3;
    s->size[0] = 64, s->size[1] = s->size[2] = 128;
    s->stride[0] = 128 * 128, s->stride[1] = 128, s->stride[2] = 1;
    s->layout = default_3d(a, 64, 128, 128);
    s->is_output = i == 2;
  }
  for (int i = 0; i < 2; i++) {
    struct sw_op *op = add_op(a, p, i ? "exp" : "neg", i ? SW_OP_EXP : SW_OP_NEG, SW_ROLE_PLAIN, 0);
    op->n_loops = op->n_written = 3;
    op->range[0] = 64, op->range[1] = op->range[2] = 128;
    op->n_in = 1;
    op->in[0] = at(i, 0, 128 * 128, 128, 1);
    op->out = at(i + 1, 0, 128 * 128, 128, 1);
  }
  return p;
}

static void expect_inside_in_lx(const struct sw_program *p, const struct sw_access *inside)
{
  const struct sw_storage *s = &p->storages.v[inside->storage];
  assert_int_equal(inside->offset, 0);
  assert_int_equal(s->size[0], 32);
  assert_int_equal(sw_layout_bytes(s->layout), 1 << 20);
  assert_int_equal(s->place->kind, SW_PLACE_LX);
}

/* 32 KiB a core hold half of the buffer, so both ops are done for 32 rows and then for the other 32: a loop of 2 turns,
 * the second one 32 * 128 * 128 elements further on. */
static void what_is_too_large_for_the_scratchpads_is_done_in_a_loop(void **state)
{
  (void)state;
  struct sw_job job = unit_job();
  struct sw_program *p = chain(&job);
  struct sw_options o;
  struct sw_plan *plan;
  sw_options_init(&o);
  sw_options_settle(&o);
  o.lx_bytes = 32768;
  assert_int_equal(sw_make_plan(&job, &o, p, &plan), SW_OK);
  assert_int_equal(p->steps.n, 2);
  for (int i = 0; i < 2; i++) {
    const struct sw_op *op = &p->ops.v[p->steps.v[i].index];
    const struct sw_access *outside = i ? &op->out : &op->in[0], *inside = i ? &op->in[0] : &op->out;
    assert_int_equal(op->range[0], 32);
    assert_int_equal(op->n_levels, 1);
    assert_int_equal(op->level[0].count, 2);
    assert_int_equal(outside->offset, 0);
    assert_int_equal(outside->advance[0], 32 * 128 * 128);
    assert_int_equal(inside->advance[0], 0);
    expect_inside_in_lx(p, inside);
  }
  assert_int_equal(p->storages.v[2].size[0], 64);

  p = chain(&job); /* with room there are no tiles */
  o.lx_bytes = 65536;
  assert_int_equal(sw_make_plan(&job, &o, p, &plan), SW_OK);
  assert_int_equal(p->ops.n, 2);
  sw_arena_free(job.arena);
}

/* One conversion of a whole [rows, cols] weight: the stick moves from the columns to the rows. */
static struct sw_program *conversion(struct sw_job *job, int64_t rows, int64_t cols)
{
  struct sw_arena *a = job->arena;
  struct sw_program *p = SW_NEW(a, struct sw_program);
  struct sw_graph *g = SW_NEW(a, struct sw_graph);
  p->graph = g;
  SW_PUSH(a, &g->nodes)->target = "aten.clone.default";
  add_storage(a, p, "big", SW_STORAGE_INPUT, rows, cols);
  add_storage(a, p, "turned", SW_STORAGE_TEMPORARY, rows, cols);
  struct sw_layout *l = SW_NEW(a, struct sw_layout);
  *l = (struct sw_layout){
      .rank = 3, .device_size = {(rows + 63) / 64, cols, 64}, .stride_map = {64 * cols, 1, cols}};
  p->storages.v[1].layout = l;
  p->storages.v[1].is_output = true;
  struct sw_op *op = add_op(a, p, "turn", SW_OP_RESTICKIFY, SW_ROLE_CONVERSION, 0);
  op->n_loops = op->n_written = 2;
  op->range[0] = rows, op->range[1] = cols;
  op->n_in = 1;
  op->in[0] = at(0, 0, cols, 1, 0);
  op->out = at(1, 0, cols, 1, 0);
  return p;
}

static enum sw_rc plan_conversion(struct sw_job *job, struct sw_program *p)
{
  struct sw_options o;
  struct sw_plan *plan;
  sw_options_init(&o);
  sw_options_settle(&o);
  return sw_make_plan(job, &o, p, &plan);
}

/* 5120 x 131072: no split lets a core address both sides (work-division.md 6, example C). Two pieces of 32 sticks of
 * rows, the turns of a loop, and one of 16 do. */
static void what_no_split_makes_addressable_is_done_in_pieces(void **state)
{
  (void)state;
  struct sw_job job = unit_job();
  struct sw_program *p = conversion(&job, 5120, 131072);
  assert_int_equal(plan_conversion(&job, p), SW_OK);
  assert_int_equal(p->steps.n, 2);
  const struct sw_op *equal = &p->ops.v[p->steps.v[0].index], *rest = &p->ops.v[p->steps.v[1].index];
  assert_int_equal(equal->range[0], 2048);
  assert_int_equal(equal->level[0].count, 2);
  assert_int_equal(equal->in[0].advance[0], 2048 * 131072);
  assert_int_equal(equal->out.advance[0], 2048 * 131072);
  assert_int_equal(rest->range[0], 1024);
  assert_int_equal(rest->n_levels, 0);
  assert_int_equal(rest->in[0].offset, 4096 * 131072);
  assert_int_equal(rest->out.offset, 4096 * 131072);
  assert_string_equal(rest->name, "turn/piece3");
  sw_arena_free(job.arena);
}

/* 49159 rows: padded, so there are no pieces; 769 sticks, a prime, so there is no cut. */
static void tensors_over_the_span_are_faults(void **state)
{
  (void)state;
  struct sw_job job = unit_job();
  struct sw_program *p = conversion(&job, 49159, 4096);
  assert_int_equal(plan_conversion(&job, p), SW_LIMIT);
  const struct sw_fault *f = &job.faults.v[0];
  assert_string_equal(f->node, "turn");
  assert_string_equal(f->tensor, "turned");
  assert_int_equal(f->value, 769 * 4096 * 128);
  assert_int_equal(f->limit, 268431360);
  assert_non_null(strstr(f->detail, "[769,4096,64]"));
  assert_non_null(f->advice);
  sw_arena_free(job.arena);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(host_steps_cut_kernels),
      cmocka_unit_test(the_reference_also_cuts_at_destinations),
      cmocka_unit_test(ops_get_their_splits_and_times),
      cmocka_unit_test(pointwise_ops_follow_the_matmul),
      cmocka_unit_test(what_is_too_large_for_the_scratchpads_is_done_in_a_loop),
      cmocka_unit_test(what_no_split_makes_addressable_is_done_in_pieces),
      cmocka_unit_test(tensors_over_the_span_are_faults),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
