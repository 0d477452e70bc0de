/* Lowered programs of small text graphs, as a person would write them down. */
#include "../unit.h"

#include "base/options.h"
#include "compiler/lower/program.h"

#include <stdlib.h>
#include <string.h>

struct fixture {
  struct sw_job job;
  struct sw_program *p;
};

static enum sw_rc lower(struct fixture *f, enum sw_profile profile, const char *text)
{
  *f = (struct fixture){.job = unit_job()};
  struct sw_options *o = SW_NEW(f->job.arena, struct sw_options);
  sw_options_init(o);
  o->profile = profile;
  sw_options_settle(o);
  struct sw_graph *g;
  enum sw_rc rc = sw_graph_read(&f->job, "test", text, strlen(text), NULL, &g);
  return rc ? rc : sw_lower(&f->job, o, g, &f->p);
}

/* The dump without the lines of storages. */
static const char *steps(struct fixture *f)
{
  struct sw_buf b = {.arena = f->job.arena};
  sw_program_write(f->p, &b);
  const char *s = sw_buf_text(&b);
  while (*s == '%')
    s = strchr(s, '\n') + 1;
  return s;
}

static void expect(enum sw_profile profile, const char *text, const char *dump)
{
  struct fixture f;
  assert_int_equal(lower(&f, profile, text), SW_OK);
  assert_string_equal(steps(&f), dump);
  assert_int_equal(sw_program_verify(&f.job, f.p, "test"), SW_OK);
  sw_arena_free(f.job.arena);
}

static void a_transpose_is_only_another_step(void **state)
{
  (void)state;
  expect(SW_PROFILE_BEST,
         "%a : f16[128,64] = input\n%b : f16[64,128] = input\n"
         "%t : f16[128,64] strides=[1,128] = aten.t.default(%b)\n%y : f16[128,64] = aten.add.Tensor(%a, %t)\nreturn %y\n",
         "y = add (128,64) %y[64,1] <- %a[64,1], %b[1,128]\nreturn y = %y[128,64]/[64,1]\n");
}

/* Dims of size 1 have no loop, a broadcast dim has step 0, a slice an offset of start * stride = 2 * 6. */
static void size_one_broadcast_and_slice(void **state)
{
  (void)state;
  expect(SW_PROFILE_BEST,
         "%a : f16[4,1,6] = input\n%b : f16[5,6] = input\n"
         "%s : f16[2,1,6] = aten.slice.Tensor(%a, 0, 2, 4)\n%y : f16[2,5,6] = aten.mul.Tensor(%s, %b)\nreturn %y\n",
         "y = mul (2,5,6) %y[30,6,1] <- %a[6,0,1]+12, %b[0,6,1]\nreturn y = %y[2,5,6]/[30,6,1]\n");
}

/* Heads split without a copy; joined again they need one: 2 x 3 x 4 in the order 3, 2, 4 is no view of 24. */
static void a_view_over_a_seam_needs_a_copy(void **state)
{
  (void)state;
  expect(SW_PROFILE_BEST,
         "%x : f16[3,8] = input\n%h : f16[3,2,4] = aten.view.default(%x, [3, 2, 4])\n"
         "%p : f16[2,3,4] strides=[4,8,1] = aten.permute.default(%h, [1, 0, 2])\n"
         "%r : f16[24] = aten.reshape.default(%p, [24])\n%y : f16[24] = aten.neg.default(%r)\nreturn %y\n",
         "r = identity clone (2,3,4) %r[12,4,1] <- %x[4,8,1]\ny = neg (24) %y[1] <- %r[1]\nreturn y = %y[24]/[1]\n");
}

static void softmax_is_five_ops(void **state)
{
  (void)state;
  expect(SW_PROFILE_BEST,
         "%x : f16[2,8] = input\n%y : f16[2,8] = aten.softmax.int(%x, -1)\nreturn %y\n",
         "y:1 = max (2 | 8) %y:1[1] <- %x[8,1]\ny:2 = sub (2,8) %y:2[8,1] <- %x[8,1], %y:1[1,0]\n"
         "y:3 = exp (2,8) %y:3[8,1] <- %y:2[8,1]\ny:4 = sum (2 | 8) %y:4[1] <- %y:3[8,1]\n"
         "y = realdiv (2,8) %y[8,1] <- %y:3[8,1], %y:4[1,0]\nreturn y = %y[2,8]/[8,1]\n");
}

/* Loops batch, m, n, k; K = 1 is no matrix product, N = 1 neither. */
static void matrix_products(void **state)
{
  (void)state;
  expect(SW_PROFILE_BEST,
         "%x : f16[2,3,4] = input\n%w : f16[5,4] = parameter\n%y : f16[2,3,5] = aten.linear.default(%x, %w)\nreturn %y\n",
         "y = batchmatmul (2,3,5 | 4) %y[15,5,1] <- %x[12,4,0,1], %w[0,0,4,1]\nreturn y = %y[2,3,5]/[15,5,1]\n");
  expect(SW_PROFILE_BEST,
         "%x : f16[3,1] = input\n%w : f16[1,4] = input\n%y : f16[3,4] = aten.mm.default(%x, %w)\nreturn %y\n",
         "y = mul (3,4) %y[4,1] <- %x[1,0], %w[0,1]\nreturn y = %y[3,4]/[4,1]\n");
  expect(SW_PROFILE_BEST,
         "%x : f16[3,4] = input\n%w : f16[4,1] = input\n%y : f16[3,1] = aten.mm.default(%x, %w)\nreturn %y\n",
         "y:1 = mul (3,4) %y:1[4,1] <- %x[4,1], %w[0,1]\ny = sum (3 | 4) %y[1] <- %y:1[4,1]\nreturn y = %y[3,1]/[1,1]\n");
}

/* 4 query heads on 2 heads of keys: one more loop with step 0 in k and v instead of a copy. */
static void grouped_heads_are_read_in_place(void **state)
{
  (void)state;
  struct fixture f;
  assert_int_equal(lower(&f, SW_PROFILE_BEST,
                         "%q : f16[1,4,8,16] = input\n%k : f16[1,2,8,16] = input\n%v : f16[1,2,8,16] = input\n"
                         "%y : f16[1,4,8,16] = aten.scaled_dot_product_attention.default(%q, %k, %v, enable_gqa=True)\n"
                         "return %y\n"),
                   SW_OK);
  assert_int_equal(f.p->ops.n, 8);
  const struct sw_op *scores = &f.p->ops.v[1];
  assert_int_equal(scores->op, SW_OP_MATMUL);
  assert_int_equal(scores->n_loops, 5); /* group of 2, head in it, row, key, dim */
  assert_int_equal(scores->in[1].step[0], 128);
  assert_int_equal(scores->in[1].step[1], 0);
  sw_arena_free(f.job.arena);
}

/* The mask depends on nothing: no step is left of it. Row 0 sees key 0 only. */
static void constants_are_folded(void **state)
{
  (void)state;
  struct fixture f;
  assert_int_equal(lower(&f, SW_PROFILE_BEST,
                         "%x : f16[2,2] = input\n%i : i64[2] = aten.arange.default(2)\n"
                         "%c : i64[2,1] = aten.unsqueeze.default(%i, 1)\n%m : bool[2,2] = aten.le.Tensor(%i, %c)\n"
                         "%n : bool[2,2] = aten.logical_not.default(%m)\n"
                         "%y : f16[2,2] = aten.masked_fill.Scalar(%x, %n, -1.0)\nreturn %y\n"),
                   SW_OK);
  assert_int_equal(f.p->host_steps.n, 0);
  assert_int_equal(f.p->ops.n, 1);
  assert_int_equal(f.p->ops.v[0].op, SW_OP_WHERE);
  const struct sw_storage *m = &f.p->storages.v[f.p->ops.v[0].in[0].storage];
  assert_int_equal(m->kind, SW_STORAGE_CONSTANT);
  assert_memory_equal(m->data, "\0\1\0\0", 4);
  sw_arena_free(f.job.arena);
}

/* Positions counted from ones of an input's size: 0 1 2, whatever the tokens are. */
static void what_takes_a_size_alone_is_constant(void **state)
{
  (void)state;
  struct fixture f;
  assert_int_equal(lower(&f, SW_PROFILE_BEST,
                         "%ids : i64[1,3] = input\n%x : f16[1,3] = input\n%o : i64[1,3] = aten.ones_like.default(%ids)\n"
                         "%c : i64[1,3] = aten.cumsum.default(%o, 1)\n%n : i64[1,1] = aten.new_ones.default(%ids, [1, 1])\n"
                         "%p : i64[1,3] = aten.sub.Tensor(%c, %n)\n%t : f16[1,3] = aten.to.dtype(%p, f16)\n"
                         "%y : f16[1,3] = aten.add.Tensor(%x, %t)\nreturn %y\n"),
                   SW_OK);
  assert_int_equal(f.p->host_steps.n, 0);
  assert_int_equal(f.p->ops.n, 1);
  const struct sw_storage *t = &f.p->storages.v[f.p->ops.v[0].in[1].storage];
  assert_int_equal(t->kind, SW_STORAGE_CONSTANT);
  assert_memory_equal(t->data, "\0\0\0\x3c\0\x40", 6);
  sw_arena_free(f.job.arena);
}

/* x[:, 2:4] += 1 is one op on x's own storage; the training dialect lists no mutation, the program does. */
static void a_write_through_a_view_changes_the_input(void **state)
{
  (void)state;
  expect(SW_PROFILE_BEST,
         "%x : f16[3,6] = input\n%s : f16[3,2] strides=[6,1] = aten.slice.Tensor(%x, 1, 2, 4)\n"
         "%a : f16[3,2] strides=[6,1] = aten.add_.Tensor(%s, 1.0)\n%y : f16[3,6] = aten.neg.default(%x)\nreturn %y\n",
         "x = add write (3,2) %x[6,1]+2 <- %x[6,1]+2, %1.0:f16[0,0]\ny = neg (3,6) %y[6,1] <- %x[6,1]\n"
         "return y = %y[3,6]/[6,1]\nreturn x = %x[3,6]/[6,1] mutates x\n");
}

static void host_steps_have_a_reason_and_stand_together(void **state)
{
  (void)state;
  struct fixture f;
  assert_int_equal(lower(&f, SW_PROFILE_BEST,
                         "%x : f16[4] = input\n%i : i64[4] = input\n%a : f16[4] = aten.neg.default(%x)\n"
                         "%j : i64[4] = aten.add.Tensor(%i, %i)\n%b : f16[4] = aten.sin.default(%a)\n"
                         "%y : f16[4] = aten.exp.default(%b)\nreturn %y, %j\n"),
                   SW_OK);
  assert_string_equal(steps(&f), "host j = aten.add.Tensor %i %i -> %j : the device has no such operation on these dtypes\n"
                                 "a = neg (4) %a[1] <- %x[1]\n"
                                 "host b = aten.sin.default %a -> %b : the device has no such function\n"
                                 "y = exp (4) %y[1] <- %b[1]\nreturn y = %y[4]/[1]\nreturn j = %j[4]/[1]\n");
  sw_arena_free(f.job.arena);
}

/* Every cause once: the sum that uses both unsupported results adds no fault of its own. */
static void all_unsupported_nodes_are_named(void **state)
{
  (void)state;
  struct fixture f;
  assert_int_equal(lower(&f, SW_PROFILE_BEST,
                         "%x : f32[4,4] = input\n%y : f32[4,4] = input\n%a : f32[4,4] = aten.mm.default(%x, %y)\n"
                         "%b : f32[4,4] = aten.mm.default(%y, %x)\n%c : f32[4,4] = aten.add.Tensor(%a, %b)\nreturn %c\n"),
                   SW_UNSUPPORTED);
  assert_int_equal(f.job.faults.n, 2);
  assert_string_equal(f.job.faults.v[0].node, "a");
  assert_string_equal(f.job.faults.v[1].node, "b");
  assert_non_null(f.job.faults.v[0].advice);
  sw_arena_free(f.job.arena);
}

/* fp16 in, fp16 out, float32 between, and a product the device has in fp16 only: run there, with a warning. */
static void fp32_between_casts_runs_in_fp16(void **state)
{
  (void)state;
  static const char text[] =
      "%x : f16[4,8] = input\n%w : f16[8,4] = input\n%a : f32[4,8] = aten.to.dtype(%x, f32)\n"
      "%b : f32[8,4] = aten.to.dtype(%w, f32)\n%c : f32[4,4] = aten.mm.default(%a, %b)\n"
      "%y : f16[4,4] = aten.to.dtype(%c, f16)\nreturn %y\n";
  struct fixture f;
  assert_int_equal(lower(&f, SW_PROFILE_BEST, text), SW_OK);
  assert_int_equal(f.p->ops.n, 1);
  assert_int_equal(f.job.warnings.n, 1);
  assert_non_null(strstr(f.job.warnings.v[0], "precision: node c"));
  sw_arena_free(f.job.arena);
}

/* The reference writes a tensor of ones (ops.md 2.6); best reads the number with step 0. */
static void a_tensor_full_of_one_number(void **state)
{
  (void)state;
  static const char text[] = "%x : f16[2,4] = input\n%o : f16[2,4] = aten.full.default([2, 4], 0.5, dtype=f16)\n"
                             "%y : f16[2,4] = aten.add.Tensor(%x, %o)\nreturn %y\n";
  expect(SW_PROFILE_BEST, text, "y = add (2,4) %y[4,1] <- %x[4,1], %0.5:f16[0,0]\nreturn y = %y[2,4]/[4,1]\n");
  expect(SW_PROFILE_TORCH_SPYRE, text,
         "o = identity fill (2,4) %o[4,1] <- %0.5:f16[0,0]\ny = add (2,4) %y[4,1] <- %x[4,1], %o[4,1]\n"
         "return y = %y[2,4]/[4,1]\n");
}

/* A functional cache update whose old value nobody reads again writes into the cache itself. */
static void functional_writes_are_done_in_place(void **state)
{
  (void)state;
  expect(SW_PROFILE_BEST,
         "%c : f16[8,4] = input\n%k : f16[2,4] = input\n%n : f16[8,4] = aten.slice_scatter.default(%c, %k, 0, 3, 5)\n"
         "%y : f16[8,4] = aten.neg.default(%n)\nmutate %c = %n\nreturn %y\n",
         "c = identity write (2,4) %c[4,1]+12 <- %k[4,1]\ny = neg (8,4) %y[4,1] <- %c[4,1]\n"
         "return y = %y[8,4]/[4,1]\nreturn n = %c[8,4]/[4,1] mutates c\n");
}

static void rows_by_number_are_gathered(void **state)
{
  (void)state;
  expect(SW_PROFILE_BEST,
         "%w : f16[10,4] = parameter\n%i : i64[3] = input\n%y : f16[3,4] = aten.embedding.default(%w, %i)\nreturn %y\n",
         "y = identity (3,4) %y[4,1] <- %i[1,0], %w[0,1]@0*4\nreturn y = %y[3,4]/[4,1]\n");
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_transpose_is_only_another_step),
      cmocka_unit_test(size_one_broadcast_and_slice),
      cmocka_unit_test(a_view_over_a_seam_needs_a_copy),
      cmocka_unit_test(softmax_is_five_ops),
      cmocka_unit_test(matrix_products),
      cmocka_unit_test(grouped_heads_are_read_in_place),
      cmocka_unit_test(constants_are_folded),
      cmocka_unit_test(what_takes_a_size_alone_is_constant),
      cmocka_unit_test(a_write_through_a_view_changes_the_input),
      cmocka_unit_test(host_steps_have_a_reason_and_stand_together),
      cmocka_unit_test(all_unsupported_nodes_are_named),
      cmocka_unit_test(fp32_between_casts_runs_in_fp16),
      cmocka_unit_test(a_tensor_full_of_one_number),
      cmocka_unit_test(functional_writes_are_done_in_place),
      cmocka_unit_test(rows_by_number_are_gathered),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
