/* Layouts chosen for whole graphs. The recorded cases (tests/data/layout/cases.json) hold what the reference compiler
 * found for them: candidates in order, cost, conversions. The others are the fault reports' graphs, with the numbers
 * that are worked out there, and small ones whose answer can be seen. */
#include "../unit.h"

#include "base/files.h"
#include "base/json.h"
#include "base/options.h"
#include "compiler/layout/layout.h"

#include <stdio.h>
#include <string.h>

struct run {
  struct sw_job job;
  struct sw_options o;
  struct sw_graph *g;
  struct sw_program *p;
  struct sw_choice *c;
  enum sw_rc rc;
};

/* Options as on the command line, up to a NULL name. */
static struct run choose(const char *text, const char *const *options)
{
  struct run r = {.job = unit_job()};
  sw_options_init(&r.o);
  for (; options && *options; options += 2)
    assert_int_equal(sw_option_set(&r.job, &r.o, options[0], options[1]), SW_OK);
  sw_options_settle(&r.o);
  r.rc = sw_graph_read(&r.job, "test", text, strlen(text), NULL, &r.g);
  if (r.rc == SW_OK)
    r.rc = sw_lower(&r.job, &r.o, r.g, &r.p);
  if (r.rc == SW_OK)
    r.rc = sw_choose_layouts(&r.job, &r.o, r.p, &r.c);
  if (r.rc == SW_INTERNAL)
    fail_msg("%s", r.job.faults.v[0].detail);
  return r;
}

static const char *const reference[] = {"profile", "torch-spyre", NULL};
static const char *const best[] = {"objective", "elements", NULL};

static void done(struct run *r)
{
  sw_arena_free(r->job.arena);
}

/* Cost and number of conversions. */
static void expect(const char *text, const char *const *options, int64_t cost, int conversions)
{
  struct run r = choose(text, options);
  if (r.rc != SW_OK)
    fail_msg("%s: %s", text, r.job.faults.n ? r.job.faults.v[0].detail : "no fault");
  if (r.c->cost != cost || r.c->conversions.n != conversions)
    fail_msg("%s: cost %lld in %d conversions, expected %lld in %d", text, (long long)r.c->cost, r.c->conversions.n,
             (long long)cost, conversions);
  assert_string_equal(r.c->status, "optimal");
  assert_int_equal(r.c->bound, cost);
  done(&r);
}

static int storage(const struct run *r, const char *name)
{
  for (int i = 0; i < r->p->storages.n; i++)
    if (!strcmp(r->p->storages.v[i].name, name))
      return i;
  fail_msg("no storage %s", name);
  return -1;
}

static void expect_layout(const struct run *r, const char *name, const char *layout)
{
  assert_string_equal(sw_layout_text(r->job.arena, r->p->storages.v[storage(r, name)].layout), layout);
}

/* -- recorded -- */

static void check_candidates(struct run *r, const char *name, const char *value, const json_t *want)
{
  int at = -1;
  for (int i = 0; i < r->c->n_candidates; i++)
    if (!strcmp(r->p->storages.v[i].name, value))
      at = i;
  if (at < 0) /* a view, or a piece of a concatenation */
    return;
  const struct sw_candidates *k = &r->c->candidates[at];
  if (k->n != (int)json_array_size(want))
    fail_msg("%s: %s has %d candidates, expected %zu", name, value, k->n, json_array_size(want));
  for (int i = 0; i < k->n; i++)
    if (strcmp(sw_layout_text(r->job.arena, &k->v[i]), json_string_value(json_array_get(want, (size_t)i))) != 0)
      fail_msg("%s: candidate %d of %s is %s", name, i, value, sw_layout_text(r->job.arena, &k->v[i]));
}

static void recorded_graphs_have_the_recorded_candidates_and_costs(void **state)
{
  (void)state;
  struct sw_job job = unit_job();
  const char *text;
  size_t len;
  assert_int_equal(sw_file_read(&job, SW_SOURCE_DIR "/tests/data/layout/cases.json", 1 << 24, &text, &len), SW_OK);
  json_t *cases = sw_json_parse(&job, "cases", text, len, 100000), *one;
  assert_non_null(cases);
  size_t at;
  json_array_foreach(cases, at, one)
  {
    const char *name = json_string_value(json_object_get(one, "name"));
    struct run r = choose(json_string_value(json_object_get(one, "text")), reference);
    if (json_object_get(one, "error")) {
      if (r.rc != SW_UNSUPPORTED && r.rc != SW_INFEASIBLE)
        fail_msg("%s is accepted", name);
    } else {
      if (r.rc != SW_OK)
        fail_msg("%s: %s", name, r.job.faults.v[0].detail);
      int64_t cost = json_integer_value(json_object_get(one, "cost"));
      if (cost >= 0 && (r.c->cost != cost ||
                        r.c->conversions.n != json_integer_value(json_object_get(one, "conversions"))))
        fail_msg("%s: cost %lld in %d conversions", name, (long long)r.c->cost, r.c->conversions.n);
      const char *value;
      json_t *want;
      json_object_foreach(json_object_get(one, "candidates"), value, want)
        check_candidates(&r, name, value, want);
    }
    done(&r);
  }
  sw_arena_free(job.arena);
}

/* -- fault reports -- */

static void a_conflict_is_repaired_not_rejected(void **state)
{
  (void)state; /* 1 */
  const char *g = "%a : f16[128,256] = input\n%x : f16[256,128] = input\n%t : f16[256,128] = aten.t(%a)\n"
                  "%y : f16[256,128] = aten.add.Tensor(%t, %x)\nreturn %y\n";
  expect(g, reference, 32768, 1);
  expect(g, best, 32768, 1);
}

static void greedy_pays_twice_where_the_whole_chain_pays_once(void **state)
{
  (void)state; /* 3 */
  const char *g = "%a : f16[128,128] = input\n%x : f16[128,128] = input\n%b : f16[128,128] = input\n"
                  "%ta : f16[128,128] = aten.t(%a)\n%n1 : f16[128,128] = aten.add.Tensor(%x, %ta)\n"
                  "%tb : f16[128,128] = aten.t(%b)\n%n2 : f16[128,128] = aten.add.Tensor(%n1, %tb)\nreturn %n2\n";
  int64_t cost[3];
  const char *solver[] = {"ilp", "beam", "greedy"};
  for (int i = 0; i < 3; i++) {
    struct run r = choose(g, (const char *const[]){"profile", "torch-spyre", "solver", solver[i], NULL});
    assert_int_equal(r.rc, SW_OK);
    cost[i] = r.c->cost;
    done(&r);
  }
  assert_int_equal(cost[0], 16384);
  assert_true(cost[0] <= cost[1] && cost[1] <= cost[2]);
  assert_int_equal(cost[2], 32768);
}

static void sparse_and_dense_are_compatible_where_they_broadcast(void **state)
{
  (void)state; /* 4 */
  expect("%x : f16[128,128] = input\n%m : f16[128,1] = aten.amax(%x, [-1], keepdim=True)\n"
         "%y : f16[128,128] = aten.sub.Tensor(%x, %m)\nreturn %y\n", reference, 0, 0);
}

static void what_cannot_be_built_names_the_pair(void **state)
{
  (void)state; /* 7: infeasible with the reference's candidates; best converts before the reduction */
  const char *g = "%a : f16[128,128,128] = input\n%b : f16[128,128] = input\n%m : f16[128,128] = aten.amin(%a, [-1])\n"
                  "%y : f16[128,128] = aten.add.Tensor(%m, %b)\nreturn %y\n";
  struct run r = choose(g, reference);
  assert_int_equal(r.rc, SW_INFEASIBLE);
  assert_non_null(strstr(r.job.faults.v[0].detail, "No mechanism to gather elements from multiple sticks"));
  assert_string_equal(r.job.faults.v[0].node, "y");
  assert_string_equal(r.job.faults.v[0].tensor, "m -> y");
  done(&r);
  expect(g, best, 2097152, 1);
}

static void heads_of_whole_sticks_are_free(void **state)
{
  (void)state; /* 9 */
  expect("%p : f16[64,4096] = input\n%v : f16[64,32,128] = aten.view(%p, [64,32,128])\n"
         "%q : f16[32,64,128] = aten.permute(%v, [1,0,2])\n%y : f16[32,64,128] = aten.mul.Scalar(%q, 0.5)\nreturn %y\n",
         reference, 0, 0);
}

static void one_tensor_in_two_places_is_redirected_in_one(void **state)
{
  (void)state; /* 11 iii */
  struct run r = choose("%x : f16[128,128] = input\n%t : f16[128,128] = aten.t(%x)\n"
                        "%y : f16[128,128] = aten.mm(%x, %t)\nreturn %y\n", reference);
  assert_int_equal(r.rc, SW_OK);
  assert_int_equal(r.c->cost, 16384);
  int x = storage(&r, "x");
  const struct sw_op *mm = &r.p->ops.v[0];
  assert_int_equal(mm->op, SW_OP_MATMUL);
  assert_int_equal(mm->in[0].storage, x);
  assert_int_not_equal(mm->in[1].storage, x);
  done(&r);
}

static void a_free_weight_is_loaded_as_its_reader_wants_it(void **state)
{
  (void)state; /* 12 */
  const char *g = "%x : f16[1,4096] = input\n%w : f16[51200,4096] = ";
  const char *rest = "\n%t : f16[4096,51200] = aten.t(%w)\n%y : f16[1,51200] = aten.mm(%x, %t)\nreturn %y\n";
  char text[400];
  snprintf(text, sizeof text, "%sinput%s", g, rest);
  expect(text, best, 209715200, 1);
  snprintf(text, sizeof text, "%sparameter%s", g, rest);
  struct run r = choose(text, best);
  assert_int_equal(r.rc, SW_OK);
  assert_int_equal(r.c->cost, 0);
  expect_layout(&r, "w", "device_size:800,4096,64/stride_map:262144,1,4096");
  done(&r);
}

static void a_weight_wanted_in_two_ways_is_loaded_twice(void **state)
{
  (void)state; /* 61: no conversion at run time, one more buffer */
  expect("%w : f16[128,128] = parameter\n%x : f16[128,128] = input\n%p : f16[128,128] = aten.mm(%x, %w)\n"
         "%t : f16[128,128] = aten.t(%w)\n%q : f16[128,128] = aten.mm(%x, %t)\nreturn %p, %q\n", best, 1, 0);
}

static void row_slices_of_padded_rows_are_free_in_profile_best(void **state)
{
  (void)state; /* 15; the reference refuses them */
  const char *g = "%x : f16[4,100] = input\n%s : f16[3,100] = aten.slice(%x, 0, 1, 4)\n"
                  "%y : f16[3,100] = aten.add.Tensor(%s, %s)\nreturn %y\n";
  expect(g, best, 0, 0);
  struct run r = choose(g, reference);
  assert_int_equal(r.rc, SW_UNSUPPORTED);
  done(&r);
}

static void an_unaligned_column_slice_moves_two_sticks(void **state)
{
  (void)state; /* 17 */
  expect("%x : f16[128,128] = input\n%y : f16[128,64] = input\n%s : f16[128,64] = aten.slice(%x, 1, 32, 96)\n"
         "%z : f16[128,64] = aten.add.Tensor(%s, %y)\nreturn %z\n", reference, 24576, 2);
}

static void the_second_operand_gets_rows_of_zeros(void **state)
{
  (void)state; /* 24: pinned it is copied; loaded by us it is laid out so */
  struct run r = choose("%x : f16[55,2] = input\n%w : f16[2,99] = input\n%y : f16[55,99] = aten.mm(%x, %w)\nreturn %y\n",
                        reference);
  assert_int_equal(r.rc, SW_OK);
  assert_int_equal(r.c->cost, 0);
  expect_layout(&r, "w:padded", "device_size:2,64,64/stride_map:64,99,1");
  expect_layout(&r, "x", "device_size:1,55,64/stride_map:64,2,1");
  done(&r);
}

static void a_loaded_operand_has_its_zeros_from_the_loader(void **state)
{
  (void)state;
  struct run r = choose("%x : f16[55,67] = input\n%w : f16[67,128] = parameter\n%y : f16[55,128] = aten.mm(%x, %w)\n"
                        "return %y\n", best);
  assert_int_equal(r.rc, SW_OK);
  assert_int_equal(r.p->ops.n, 1);
  const struct sw_storage *w = &r.p->storages.v[storage(&r, "w")];
  assert_true(w->has_pad_fill && w->pad_fill == 0);
  expect_layout(&r, "w", "device_size:2,128,64/stride_map:64,128,1");
  done(&r);
}

static void writers_of_one_storage_agree(void **state)
{
  (void)state; /* 27 */
  const char *g = "%a : f16[128,128] = input\n%b : f16[128,128] = input\n%d : f16[128,128] = input\n"
                  "%tb : f16[128,128] = aten.t(%b)\n%c : f16[128,128] = aten.add.Tensor(%a, %tb)\n"
                  "%e : f16[128,128] = aten.mul.Scalar(%c, 2.0)\n%td : f16[128,128] = aten.t(%d)\n"
                  "%m : f16[128,128] = aten.copy_(%c, %td)\nreturn %e, %m\n";
  expect(g, best, 16384, 1);
}

static void float32_has_no_conversion(void **state)
{
  (void)state; /* 37 */
  struct run r = choose("%a : f32[64,64] = input\n%b : f32[64,64] = input\n%t : f32[64,64] = aten.t(%a)\n"
                        "%y : f32[64,64] = aten.add.Tensor(%t, %b)\nreturn %y\n", reference);
  assert_int_equal(r.rc, SW_INFEASIBLE);
  assert_non_null(strstr(r.job.faults.v[0].detail, "ReStickifyOpHBM on IEEE_FP32"));
  done(&r);
}

static void a_concatenation_off_the_stick_takes_another_dim(void **state)
{
  (void)state; /* 58 ii: 96 is lane 32 of a stick, 64 rows are one */
  expect("%a : f16[64,96] = input\n%b : f16[64,96] = input\n%c : f16[64,192] = aten.cat([%a, %b], 1)\nreturn %c\n", best,
         64 * 128 * 2, 2);
}

/* -- sharing, pins -- */

static void one_copy_serves_several_readers(void **state)
{
  (void)state;
  const char *g = "%a : f16[128,128] = input\n%b : f16[128,128] = input\n%c : f16[128,128] = input\n"
                  "%t : f16[128,128] = aten.t(%a)\n%x : f16[128,128] = aten.mm(%t, %b)\n"
                  "%y : f16[128,128] = aten.mm(%t, %c)\nreturn %x, %y\n";
  expect(g, reference, 32768, 2);
  expect(g, best, 16384, 1);
  expect(g, (const char *const[]){"objective", "elements", "sharing", "off", NULL}, 32768, 2);
}

static void a_copy_does_not_outlive_a_write(void **state)
{
  (void)state; /* x is converted before and after it changes */
  const char *g = "%x : f16[128,128] = input\n%b : f16[128,128] = input\n%c : f16[128,128] = input\n"
                  "%t : f16[128,128] = aten.t(%x)\n%p : f16[128,128] = aten.mm(%t, %b)\n"
                  "%w : f16[128,128] = aten.copy_(%x, %c)\n%s : f16[128,128] = aten.t(%x)\n"
                  "%q : f16[128,128] = aten.mm(%s, %b)\nreturn %p, %q\n";
  expect(g, best, 32768, 2);
}

static void a_pin_is_kept(void **state)
{
  (void)state;
  const char *g = "%a : f16[128,256] = input\n%x : f16[256,128] = input\n%t : f16[256,128] = aten.t(%a)\n"
                  "%y : f16[256,128] = aten.add.Tensor(%t, %x)\nreturn %y\n";
  expect(g, (const char *const[]){"profile", "torch-spyre", "pin", "a=order:1,0", NULL}, 0, 0);
  expect(g, (const char *const[]){"profile", "torch-spyre", "pin", "x=device_size:4,128,64/stride_map:8192,1,128", NULL},
         0, 0);
}

static void a_wrong_pin_is_refused_with_its_reason(void **state)
{
  (void)state;
  const char *g = "%a : f16[128,256] = input\n%y : f16[128,256] = aten.neg(%a)\nreturn %y\n";
  static const struct {
    const char *pin, *why;
  } rows[] = {
      {"b=order:1,0", "no tensor of this name"},
      {"a=order:1,1", "does not name each dim"},
      {"a=rowmajor", "not a layout"},
      {"a=device_size:4,128,32/stride_map:64,256,1", "one stick"},
      {"a=device_size:2,128,64/stride_map:64,256,1", "a place of its own"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    struct run r = choose(g, (const char *const[]){"pin", rows[i].pin, NULL});
    assert_int_equal(r.rc, SW_INVALID);
    if (!strstr(r.job.faults.v[0].detail, rows[i].why))
      fail_msg("%s: %s", rows[i].pin, r.job.faults.v[0].detail);
    done(&r);
  }
}

static void pins_that_contradict_are_named(void **state)
{
  (void)state; /* a matmul's result has its columns on the stick */
  struct run r = choose("%a : f16[128,128] = input\n%b : f16[128,128] = input\n%p : f16[128,128] = aten.mm(%a, %b)\n"
                        "return %p\n", (const char *const[]){"pin", "p=order:1,0", NULL});
  assert_int_equal(r.rc, SW_INFEASIBLE);
  assert_string_equal(r.job.faults.v[0].tensor, "p");
  assert_non_null(strstr(r.job.faults.v[0].detail, "pinned"));
  done(&r);
}

static void heads_of_half_a_stick_are_copied_out(void **state)
{
  (void)state; /* 2 heads of 32 in rows of 64: no layout of q has one head's elements alone on a stick */
  struct run r = choose("%q : f16[64,64] = input\n%k : f16[64,64] = input\n%qv : f16[64,2,32] = aten.view(%q, [64,2,32])\n"
                        "%kv : f16[64,2,32] = aten.view(%k, [64,2,32])\n%qh : f16[2,64,32] = aten.permute(%qv, [1,0,2])\n"
                        "%kh : f16[2,32,64] = aten.permute(%kv, [1,2,0])\n%s : f16[2,64,64] = aten.bmm(%qh, %kh)\n"
                        "return %s\n", best);
  assert_int_equal(r.rc, SW_OK);
  assert_true(r.c->conversions.n >= 3);
  done(&r);
}

static void part_of_a_users_stick_is_written_through_a_copy(void **state)
{
  (void)state; /* 32 of 64 columns: out to rows on the stick, write, back */
  expect("%x : f16[64,64] = input\n%y : f16[64,32] = input\n%s : f16[64,32] = aten.slice(%x, 1, 0, 32)\n"
         "%w : f16[64,32] = aten.copy_(%s, %y)\n%z : f16[64,64] = aten.mul.Scalar(%x, 2.0)\nreturn %z\n", best,
         3 * 4096, 3);
}

static void a_piece_is_copied_into_the_shape_of_its_place(void **state)
{
  (void)state; /* 4 x 4 patches behind one row: rows 1 + 4a + b are written as rows 1 + c */
  struct run r = choose("%p : f16[64,4,4] = input\n%c : f16[1,64] = input\n%v : f16[64,16] = aten.view(%p, [64,16])\n"
                        "%t : f16[16,64] = aten.t(%v)\n%y : f16[17,64] = aten.cat([%c, %t], 0)\nreturn %y\n", best);
  assert_int_equal(r.rc, SW_OK);
  int piece = storage(&r, "p:piece");
  assert_int_equal(r.p->storages.v[piece].rank, 2);
  assert_int_equal(r.p->storages.v[piece].size[0], 16);
  done(&r);
}

static void a_worse_search_is_never_better(void **state)
{
  (void)state;
  struct sw_job job = unit_job();
  const char *text;
  size_t len, at;
  assert_int_equal(sw_file_read(&job, SW_SOURCE_DIR "/tests/data/layout/cases.json", 1 << 24, &text, &len), SW_OK);
  json_t *cases = sw_json_parse(&job, "cases", text, len, 100000), *one;
  json_array_foreach(cases, at, one)
  {
    int64_t cost[4];
    static const char *const solver[] = {"ilp", "ilp-full", "beam", "greedy"};
    for (int i = 0; i < 4; i++) {
      struct run r = choose(json_string_value(json_object_get(one, "text")),
                            (const char *const[]){"objective", "elements", "solver", solver[i], NULL});
      cost[i] = r.rc == SW_OK ? r.c->cost : INT64_MAX;
      done(&r);
    }
    assert_int_equal(cost[0], cost[1]);
    assert_true(cost[0] <= cost[2] && cost[2] <= cost[3]);
    if (json_object_get(one, "cost") && json_integer_value(json_object_get(one, "cost")) >= 0)
      assert_true(cost[0] <= json_integer_value(json_object_get(one, "cost")));
  }
  sw_arena_free(job.arena);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(recorded_graphs_have_the_recorded_candidates_and_costs),
      cmocka_unit_test(a_conflict_is_repaired_not_rejected),
      cmocka_unit_test(greedy_pays_twice_where_the_whole_chain_pays_once),
      cmocka_unit_test(sparse_and_dense_are_compatible_where_they_broadcast),
      cmocka_unit_test(what_cannot_be_built_names_the_pair),
      cmocka_unit_test(heads_of_whole_sticks_are_free),
      cmocka_unit_test(one_tensor_in_two_places_is_redirected_in_one),
      cmocka_unit_test(a_free_weight_is_loaded_as_its_reader_wants_it),
      cmocka_unit_test(a_weight_wanted_in_two_ways_is_loaded_twice),
      cmocka_unit_test(row_slices_of_padded_rows_are_free_in_profile_best),
      cmocka_unit_test(an_unaligned_column_slice_moves_two_sticks),
      cmocka_unit_test(the_second_operand_gets_rows_of_zeros),
      cmocka_unit_test(a_loaded_operand_has_its_zeros_from_the_loader),
      cmocka_unit_test(writers_of_one_storage_agree),
      cmocka_unit_test(float32_has_no_conversion),
      cmocka_unit_test(a_concatenation_off_the_stick_takes_another_dim),
      cmocka_unit_test(one_copy_serves_several_readers),
      cmocka_unit_test(a_copy_does_not_outlive_a_write),
      cmocka_unit_test(a_pin_is_kept),
      cmocka_unit_test(a_wrong_pin_is_refused_with_its_reason),
      cmocka_unit_test(pins_that_contradict_are_named),
      cmocka_unit_test(heads_of_half_a_stick_are_copied_out),
      cmocka_unit_test(part_of_a_users_stick_is_written_through_a_copy),
      cmocka_unit_test(a_piece_is_copied_into_the_shape_of_its_place),
      cmocka_unit_test(a_worse_search_is_never_better),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
