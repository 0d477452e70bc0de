/* One computation as the training dialect and as core ATen spell it: the same program but for names. */
#include "../unit.h"

#include "base/options.h"
#include "compiler/lower/program.h"

#include <string.h>

struct fixture {
  struct sw_job job;
  struct sw_program *p;
};

static void lower(struct fixture *f, const char *text, enum sw_precision precision)
{
  *f = (struct fixture){.job = unit_job()};
  struct sw_options *o = SW_NEW(f->job.arena, struct sw_options);
  sw_options_init(o);
  o->profile = SW_PROFILE_BEST;
  o->precision = precision;
  sw_options_settle(o);
  struct sw_graph *g;
  assert_int_equal(sw_graph_read(&f->job, "test", text, strlen(text), NULL, &g), SW_OK);
  assert_int_equal(sw_lower(&f->job, o, g, &f->p), SW_OK);
  assert_int_equal(sw_program_verify(&f->job, f->p, "test"), SW_OK);
}

/* Storage numbers of one program, by those of the other. */
static void same_storage(int *as, int a, int b)
{
  if (as[a] < 0)
    as[a] = b;
  assert_int_equal(as[a], b);
}

static void same_access(int *as, const struct sw_access *a, const struct sw_access *b)
{
  same_storage(as, a->storage, b->storage);
  assert_int_equal(a->offset, b->offset);
  assert_int_equal(a->index_input, b->index_input);
  assert_memory_equal(a->step, b->step, sizeof a->step);
}

static void same(const char *training, const char *core)
{
  struct fixture f, g;
  lower(&f, training, SW_PRECISION_DEVICE);
  lower(&g, core, SW_PRECISION_DEVICE);
  assert_int_equal(f.p->ops.n, g.p->ops.n);
  assert_int_equal(f.p->host_steps.n, g.p->host_steps.n);
  int *as = SW_NEW_N(f.job.arena, int, f.p->storages.n);
  for (int s = 0; s < f.p->storages.n; s++)
    as[s] = -1;
  for (int i = 0; i < f.p->ops.n; i++) {
    const struct sw_op *a = &f.p->ops.v[i], *b = &g.p->ops.v[i];
    assert_int_equal(a->op, b->op);
    assert_int_equal(a->n_loops, b->n_loops);
    assert_int_equal(a->n_written, b->n_written);
    assert_int_equal(a->n_in, b->n_in);
    assert_memory_equal(a->range, b->range, (size_t)a->n_loops * sizeof *a->range);
    for (int k = 0; k < a->n_in; k++)
      same_access(as, &a->in[k], &b->in[k]);
    same_access(as, &a->out, &b->out);
  }
  for (int i = 0; i < f.p->outputs.n; i++)
    same_storage(as, f.p->outputs.v[i].view.storage, g.p->outputs.v[i].view.storage);
  sw_arena_free(f.job.arena);
  sw_arena_free(g.job.arena);
}

static const char decomposed_norm[] =
    "%x : f16[4,128] = input\n"
    "%c : f32[4,128] = aten._to_copy(%x, dtype=f32)  # of norm\n"
    "%p : f32[4,128] = aten.pow.Tensor_Scalar(%c, 2)  # of norm\n"
    "%m : f32[4,1] = aten.mean.dim(%p, [1], True)  # of norm\n"
    "%a : f32[4,1] = aten.add.Scalar(%m, 0.001)  # of norm\n"
    "%r : f32[4,1] = aten.rsqrt(%a)  # of norm\n"
    "%n : f32[4,128] = aten.mul.Tensor(%c, %r)  # of norm\n"
    "%y : f16[4,128] = aten._to_copy(%n, dtype=f16)  # of norm\nreturn %y\n";

static void what_one_node_was_decomposed_into_runs_in_its_dtype(void **state)
{
  (void)state;
  same("%x : f16[4,128] = input\n%y : f16[4,128] = aten.rms_norm(%x, [128], None, 0.001)\nreturn %y\n", decomposed_norm);
  struct fixture f;
  lower(&f, decomposed_norm, SW_PRECISION_DEVICE);
  assert_int_equal(f.job.warnings.n, 1);
  assert_non_null(strstr(f.job.warnings.v[0], "norm was decomposed into"));
  sw_arena_free(f.job.arena);
}

static bool has_float32(const struct sw_program *p)
{
  for (int s = 0; s < p->storages.n; s++)
    if (p->storages.v[s].dtype == SW_F32)
      return true;
  return false;
}

/* The same nodes with a cast that somebody wrote, and with --precision=strict. */
static void float32_that_somebody_asked_for_stays(void **state)
{
  (void)state;
  struct fixture f;
  char text[sizeof decomposed_norm];
  memcpy(text, decomposed_norm, sizeof text);
  memcpy(strstr(text, "norm"), "cast", 4);
  lower(&f, text, SW_PRECISION_DEVICE);
  assert_true(has_float32(f.p));
  assert_int_equal(f.job.warnings.n, 0);
  sw_arena_free(f.job.arena);
  lower(&f, decomposed_norm, SW_PRECISION_STRICT);
  assert_true(has_float32(f.p));
  sw_arena_free(f.job.arena);
}

static void logsumexp(void **state)
{
  (void)state;
  same("%x : f16[4,128] = input\n%y : f16[4] = aten.logsumexp(%x, [1])\nreturn %y\n",
       "%x : f16[4,128] = input\n%c : f32[4,128] = aten._to_copy(%x, dtype=f32)\n"
       "%m : f32[4,1] = aten.amax(%c, [1], True)\n%a : f32[4,1] = aten.abs(%m)\n%e : bool[4,1] = aten.eq.Scalar(%a, inf)\n"
       "%z : f32[] = aten.scalar_tensor(0.0, dtype=f32)\n%w : f32[4,1] = aten.where.self(%e, %z, %m)\n"
       "%q : f32[4] = aten.squeeze.dims(%w, [1])\n%d : f32[4,128] = aten.sub.Tensor(%c, %w)\n%x1 : f32[4,128] = aten.exp(%d)\n"
       "%s : f32[4] = aten.sum.dim_IntList(%x1, [1])\n%l : f32[4] = aten.log(%s)\n%t : f32[4] = aten.add.Tensor(%l, %q)\n"
       "%y : f16[4] = aten._to_copy(%t, dtype=f16)\nreturn %y\n");
}

static void all(void **state)
{
  (void)state;
  same("%x : f16[4,128] = input\n%b : bool[4,128] = aten.gt.Scalar(%x, 0)\n%y : bool[128] = aten.all.dim(%b, 0)\nreturn %y\n",
       "%x : f16[4,128] = input\n%b : bool[4,128] = aten.gt.Scalar(%x, 0)\n%n : bool[4,128] = aten.logical_not(%b)\n"
       "%a : bool[128] = aten.any.dim(%n, 0)\n%y : bool[128] = aten.logical_not(%a)\nreturn %y\n");
}

/* Rows 2 0 1: two copies. */
static void a_roll_by_row_numbers(void **state)
{
  (void)state;
  same("%x : f16[3,64] = input\n%y : f16[3,64] = aten.roll(%x, [1], [0])\nreturn %y\n",
       "%x : f16[3,64] = input\n%a : i64[3] = aten.arange.start_step(2, 5)\n%r : i64[3] = aten.remainder.Scalar(%a, 3)\n"
       "%y : f16[3,64] = aten.index_select(%x, 0, %r)\nreturn %y\n");
}

/* Rows 1 | 0 1 2 3 | 2 of four: three copies. */
static void reflection_by_row_numbers(void **state)
{
  (void)state;
  same("%x : f16[4,64] = input\n%y : f16[6,64] = aten.pad(%x, [0, 0, 1, 1], \"reflect\")\nreturn %y\n",
       "%x : f16[4,64] = input\n%a : i64[6] = aten.arange.start_step(-1, 5)\n%b : i64[6] = aten.abs(%a)\n"
       "%n : i64[6] = aten.mul.Tensor(%b, -1)\n%s : i64[6] = aten.add.Tensor(%n, 3)\n%c : i64[6] = aten.abs(%s)\n"
       "%o : i64[6] = aten.mul.Tensor(%c, -1)\n%r : i64[6] = aten.add.Tensor(%o, 3)\n"
       "%y : f16[6,64] = aten.index.Tensor(%x, [%r])\nreturn %y\n");
}

static void a_stack(void **state)
{
  (void)state;
  same("%a : f16[2,64] = input\n%b : f16[2,64] = input\n%y : f16[2,2,64] = aten.stack([%a, %b], 1)\nreturn %y\n",
       "%a : f16[2,64] = input\n%b : f16[2,64] = input\n%c : f16[2,128] = aten.cat([%a, %b], 1)\n"
       "%y : f16[2,2,64] = aten.view(%c, [2, 2, 64])\nreturn %y\n");
}

/* y[n,c] = w[c] (x[n,c] - mean) / std + b[c] as a batch norm of one image of n c channels. */
static void an_instance_norm(void **state)
{
  (void)state;
  same("%x : f16[2,4,64] = input\n%w : f16[4] = parameter\n%b : f16[4] = parameter\n"
       "%y : f16[2,4,64] = aten.instance_norm(%x, %w, %b, None, None, True, 0.1, 0.001, False)\nreturn %y\n",
       "%x : f16[2,4,64] = input\n%w : f16[4] = parameter\n%b : f16[4] = parameter\n"
       "%v : f16[8] = aten.repeat(%w, [2])\n%c : f16[8] = aten.repeat(%b, [2])\n%f : f16[1,8,64] = aten.view(%x, [1, 8, 64])\n"
       "%n : f16[1,8,64], %m : f16[8], %r : f16[8] = aten._native_batch_norm_legit.no_stats(%f, %v, %c, True, 0.1, 0.001)\n"
       "%y : f16[2,4,64] = aten.view(%n, [2, 4, 64])\nreturn %y\n");
}

/* From 0.5 on from the other end. */
static void an_interpolation(void **state)
{
  (void)state;
  same("%a : f16[4,64] = input\n%b : f16[4,64] = input\n%y : f16[4,64] = aten.lerp.Scalar(%a, %b, 0.75)\nreturn %y\n",
       "%a : f16[4,64] = input\n%b : f16[4,64] = input\n%w : f16[] = aten.full([], 0.75, dtype=f16)\n"
       "%g : bool[] = aten.ge.Scalar(%w, 0.5)\n%u : f16[] = aten.sub.Tensor(%w, 1)\n%v : f16[] = aten.where.self(%g, %u, %w)\n"
       "%s : f16[4,64] = aten.where.self(%g, %b, %a)\n%d : f16[4,64] = aten.sub.Tensor(%b, %a)\n"
       "%m : f16[4,64] = aten.mul.Tensor(%v, %d)\n%y : f16[4,64] = aten.add.Tensor(%m, %s)\nreturn %y\n");
}

/* y[:, 3] = 1: one lane of every stick. */
static void one_lane_written(void **state)
{
  (void)state;
  same("%x : f16[4,64] = input\n%y : f16[4,64] = aten.relu(%x)\n%s : f16[4] strides=[64] offset=3 = aten.select.int(%y, 1, 3)\n"
       "%f : f16[4] strides=[64] offset=3 = aten.fill_.Scalar(%s, 1.0)\n%z : f16[4,64] = aten.neg(%y)\nreturn %z\n",
       "%x : f16[4,64] = input\n%y : f16[4,64] = aten.relu(%x)\n%a : i64[64] = aten.arange(64)\n%e : bool[64] = aten.eq.Scalar(%a, 3)\n"
       "%o : f16[] = aten.full([], 1.0, dtype=f16)\n%w : f16[4,64] = aten.where.self(%e, %o, %y)\n%z : f16[4,64] = aten.neg(%w)\n"
       "return %z\n");
}

/* y[2] = 1: one row, written in place in both. */
static void one_row_written(void **state)
{
  (void)state;
  same("%x : f16[4,64] = input\n%y : f16[4,64] = aten.relu(%x)\n%s : f16[64] offset=128 = aten.select.int(%y, 0, 2)\n"
       "%f : f16[64] offset=128 = aten.fill_.Scalar(%s, 1.0)\n%z : f16[4,64] = aten.neg(%y)\nreturn %z\n",
       "%x : f16[4,64] = input\n%y : f16[4,64] = aten.relu(%x)\n%a : i64[4] = aten.arange(4)\n%b : i64[4,1] = aten.unsqueeze(%a, 1)\n"
       "%e : bool[4,1] = aten.eq.Scalar(%b, 2)\n%o : f16[] = aten.full([], 1.0, dtype=f16)\n"
       "%w : f16[4,64] = aten.where.self(%e, %o, %y)\n%z : f16[4,64] = aten.neg(%w)\nreturn %z\n");
}

/* A running mean: m = 0.5 m + x, read again afterwards. It lies in the buffer that was loaded. */
static const char running_mean[] =
    "%m : f16[64] = buffer(\"m\")\n%x : f16[64] = input\n%a : f16[64] = aten.mul_.Tensor(%m, 0.5)\n"
    "%b : f16[64] = aten.add_.Tensor(%m, %x)\n%y : f16[64] = aten.sub.Tensor(%x, %m)\nreturn %y\n";

static void what_a_run_changes(void **state)
{
  (void)state;
  same(running_mean,
       "%m : f16[64] = buffer(\"m\")\n%x : f16[64] = input\n%a : f16[64] = aten.mul.Tensor(%m, 0.5)\n"
       "%b : f16[64] = aten.add.Tensor(%a, %x)\n%y : f16[64] = aten.sub.Tensor(%x, %b)\nmutate %m = %b\nreturn %y\n");
  struct fixture f;
  lower(&f, running_mean, SW_PRECISION_DEVICE);
  assert_int_equal(f.p->outputs.n, 2);
  assert_int_equal(f.p->storages.v[f.p->outputs.v[1].view.storage].kind, SW_STORAGE_BUFFER);
  sw_arena_free(f.job.arena);
}

/* The old value is read after the new one is there: the new one stays a tensor of its own. */
static void an_old_value_that_is_still_read(void **state)
{
  (void)state;
  struct fixture f;
  lower(&f, "%m : f16[64] = buffer(\"m\")\n%x : f16[64] = input\n%b : f16[64] = aten.add.Tensor(%m, %x)\n"
            "%y : f16[64] = aten.sub.Tensor(%b, %m)\nmutate %m = %b\nreturn %y\n", SW_PRECISION_DEVICE);
  assert_int_equal(f.p->storages.v[f.p->outputs.v[1].view.storage].kind, SW_STORAGE_TEMPORARY);
  sw_arena_free(f.job.arena);
}

/* A counter's buffer gets the position, is read, and then raised: what reads it may read the position. */
static void a_copy_that_is_overwritten(void **state)
{
  (void)state;
  same("%c : f16[64] = buffer(\"c\")\n%x : f16[64] = input\n%a : f16[64] = aten.copy_(%c, %x)\n%y : f16[64] = aten.neg(%c)\n"
       "%b : f16[64] = aten.add_.Tensor(%c, 1)\nreturn %y\n",
       "%c : f16[64] = buffer(\"c\")\n%x : f16[64] = input\n%y : f16[64] = aten.neg(%x)\n%b : f16[64] = aten.add.Tensor(%x, 1)\n"
       "mutate %c = %b\nreturn %y\n");
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_one_node_was_decomposed_into_runs_in_its_dtype),
      cmocka_unit_test(float32_that_somebody_asked_for_stays),
      cmocka_unit_test(logsumexp),
      cmocka_unit_test(all),
      cmocka_unit_test(a_roll_by_row_numbers),
      cmocka_unit_test(reflection_by_row_numbers),
      cmocka_unit_test(a_stack),
      cmocka_unit_test(an_instance_norm),
      cmocka_unit_test(an_interpolation),
      cmocka_unit_test(one_lane_written),
      cmocka_unit_test(one_row_written),
      cmocka_unit_test(what_a_run_changes),
      cmocka_unit_test(an_old_value_that_is_still_read),
      cmocka_unit_test(a_copy_that_is_overwritten),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
