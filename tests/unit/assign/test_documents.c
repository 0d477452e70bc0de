/* Documents: the worked examples of docs/solver.md, what is refused and where, and writing what was read. */
#include "../unit.h"

#include "solver/assign/assign.h"

#include <string.h>

static struct sw_assign_result *solve(struct sw_job *job, const char *text, int mode)
{
  struct sw_assign_problem *p = sw_assign_read(job, text, strlen(text));
  assert_non_null(p);
  if (mode >= 0)
    p->mode = (enum sw_assign_mode)mode;
  struct sw_assign_options o = sw_assign_defaults();
  struct sw_assign_result *r;
  bool unchecked;
  assert_int_equal(sw_assign_solve(job, p, &o, &r), SW_OK);
  assert_int_equal(sw_assign_check(job, p, r, 1000000, &unchecked), SW_OK);
  assert_false(unchecked);
  return r;
}

static void assert_labels(const struct sw_assign_result *r, int64_t cost, const int *labels)
{
  assert_int_equal(r->status, SW_ASSIGN_OPTIMAL);
  assert_int_equal(r->cost, cost);
  assert_memory_equal(r->labels, labels, (size_t)r->stats.variables * sizeof *labels);
}

#define HEAD "{\"format\":\"stickwright.assign/1\","
#define XY "\"variables\":[{\"name\":\"x\",\"labels\":[\"0\",\"1\"]},{\"name\":\"y\",\"labels\":[\"0\",\"1\"]}],"

static void example_a_ties_are_global(void **unused)
{
  (void)unused;
  struct sw_job job = unit_job();
  assert_labels(solve(&job, HEAD XY "\"edges\":[[0,1,[[9,5],[5,9]]]]}", -1), 5, (int[]){0, 1});
  assert_labels(solve(&job, HEAD XY "\"edges\":[[0,1,[[9,5],[4,9]]]]}", -1), 4, (int[]){1, 0});
  sw_arena_free(job.arena);
}

#define PQR                                                                                  \
  "\"variables\":[{\"name\":\"p\",\"labels\":[\"0\",\"1\"],\"cost\":[0,3]},"                 \
  "{\"name\":\"q\",\"labels\":[\"0\",\"1\"]},{\"name\":\"r\",\"labels\":[\"0\",\"1\"]}],"

static void example_b_impossible_pairs(void **unused)
{
  (void)unused;
  struct sw_job job = unit_job();
  const char *text = HEAD PQR "\"edges\":[[0,1,[[0,\"inf\"],[\"inf\",2]]],[1,2,[[\"inf\",\"inf\"],[4,4]]]]}";
  assert_labels(solve(&job, text, -1), 9, (int[]){1, 1, 0});
  struct sw_assign_problem *p = sw_assign_read(&job, text, strlen(text));
  struct sw_assign_options o = sw_assign_defaults();
  struct sw_assign_result *r;
  o.solver = SW_SOLVER_GREEDY;
  assert_int_equal(sw_assign_solve(&job, p, &o, &r), SW_OK);
  assert_int_equal(r->status, SW_ASSIGN_FEASIBLE); /* at the second attempt, without impossible labels */
  assert_int_equal(r->cost, 9);
  r = solve(&job, HEAD PQR
            "\"edges\":[[0,1,[[0,\"inf\"],[\"inf\",2]]],[1,2,[[\"inf\",\"inf\"],[\"inf\",\"inf\"]]]]}", -1);
  assert_int_equal(r->status, SW_ASSIGN_INFEASIBLE);
  assert_int_equal(r->conflict->edges.n, 1);
  assert_int_equal(r->conflict->edges.v[0], 1);
  sw_arena_free(job.arena);
}

#define M(name) ",{\"name\":\"" name "\",\"labels\":[\"o\"]}"
#define C_START "\"variables\":[{\"name\":\"p\",\"labels\":[\"k\",\"s\"],\"cost\":[0,15]}" M("m1") M("m2") M("m3") M("m4")
#define C_GROUP                                                                                         \
  "],\"sharing\":[{\"producer\":0,\"classes\":[\"k\",\"s\"],\"conv\":[[0,10],[10,0]],\"readers\":[[1,[1]],[2,[1]]," \
  "[3,[1]],[4,[0]]"

static void example_c_sharing_moves_the_optimum(void **unused)
{
  (void)unused;
  struct sw_job job = unit_job();
  const char *four = HEAD C_START C_GROUP "]}]}";
  const char *five = HEAD C_START ",{\"name\":\"m5\",\"labels\":[\"k\",\"s\"]}" C_GROUP ",[5,[0,1]]]}]}";
  struct sw_assign_result *r = solve(&job, four, SW_ASSIGN_PER_EDGE);
  assert_labels(r, 25, (int[]){1, 0, 0, 0, 0});
  assert_int_equal(r->conversions.n, 1);
  r = solve(&job, four, SW_ASSIGN_SHARED);
  assert_labels(r, 10, (int[]){0, 0, 0, 0, 0});
  assert_int_equal(r->conversions.n, 1);
  assert_int_equal(r->conversions.v[0].class_index, 1);
  assert_int_equal(r->conversions.v[0].n_readers, 3);
  assert_memory_equal(r->conversions.v[0].readers, ((int[]){1, 2, 3}), 3 * sizeof(int));
  assert_labels(solve(&job, five, SW_ASSIGN_PER_EDGE), 25, (int[]){1, 0, 0, 0, 0, 1});
  assert_labels(solve(&job, five, SW_ASSIGN_SHARED), 10, (int[]){0, 0, 0, 0, 0, 0});
  sw_arena_free(job.arena);
}

static void nothing_to_choose_costs_nothing(void **unused)
{
  (void)unused;
  struct sw_job job = unit_job();
  assert_labels(solve(&job, HEAD "\"variables\":[]}", -1), 0, (int[]){0});
  struct sw_assign_result *r = solve(&job, HEAD "\"variables\":[{\"labels\":[\"a\"],\"cost\":[\"inf\"]}]}", -1);
  assert_int_equal(r->status, SW_ASSIGN_INFEASIBLE);
  assert_int_equal(r->conflict->variables.n, 1);
  sw_arena_free(job.arena);
}

#define AB "\"variables\":[{\"name\":\"a\",\"labels\":[\"k\",\"s\"]},{\"name\":\"b\",\"labels\":[\"k\",\"s\"]}]"
#define BIG "9007199254740992" /* 2^53, the largest cost */

static const struct refusal {
  const char *text, *pointer;
} refusals[] = {
    {"{\"format\":\"stickwright.assign/2\"," AB "}", "/format"},
    {HEAD "\"mode\":\"both\"," AB "}", "/mode"},
    {HEAD "\"edges\":[]}", "/variables"},
    {HEAD "\"variables\":[{\"labels\":[]}]}", "/variables/0/labels"},
    {HEAD "\"variables\":[{}]}", "/variables/0"},
    {HEAD "\"domains\":[[\"a\"]],\"variables\":[{\"domain\":0,\"labels\":[\"a\"]}]}", "/variables/0"},
    {HEAD "\"domains\":[[\"a\"]],\"variables\":[{\"domain\":1}]}", "/variables/0/domain"},
    {HEAD "\"domains\":[[\"a\",\"b\",\"a\"]],\"variables\":[]}", "/domains/0/2"},
    {HEAD "\"variables\":[{\"labels\":[\"a\",\"a\"]}]}", "/variables/0/labels/1"},
    {HEAD "\"variables\":[{\"name\":\"n\",\"labels\":[\"a\"]},{\"name\":\"n\",\"labels\":[\"a\"]}]}", "/variables/1/name"},
    {HEAD "\"variables\":[{\"name\":\"v1\",\"labels\":[\"a\"]},{\"labels\":[\"a\"]}]}", "/variables/1/name"},
    {HEAD "\"variables\":[{\"labels\":[\"a\"],\"cost\":[-1]}]}", "/variables/0/cost/0"},
    {HEAD "\"variables\":[{\"labels\":[\"a\"],\"cost\":[1.5]}]}", "/variables/0/cost/0"},
    {HEAD "\"variables\":[{\"labels\":[\"a\"],\"cost\":[true]}]}", "/variables/0/cost/0"},
    {HEAD "\"variables\":[{\"labels\":[\"a\"],\"cost\":[9007199254740993]}]}", "/variables/0/cost/0"},
    {HEAD "\"variables\":[{\"labels\":[\"a\"],\"cost\":[\"Inf\"]}]}", "/variables/0/cost/0"},
    {HEAD "\"variables\":[{\"labels\":[\"a\"],\"cost\":[1,2]}]}", "/variables/0/cost"},
    {HEAD AB ",\"edges\":[[0,2,[[0,0],[0,0]]]]}", "/edges/0/1"},
    {HEAD AB ",\"edges\":[[-1,1,[[0,0],[0,0]]]]}", "/edges/0/0"},
    {HEAD AB ",\"edges\":[[1,1,[[0,0],[0,0]]]]}", "/edges/0"},
    {HEAD AB ",\"edges\":[[0,1,[[0,0]]]]}", "/edges/0/2"},
    {HEAD AB ",\"edges\":[[0,1,[[0,0],[0]]]]}", "/edges/0/2/1"},
    {HEAD AB ",\"edges\":[[0,1,[[0,0],[0,-5]]]]}", "/edges/0/2/1/1"},
    {HEAD AB ",\"edges\":[[0,1,0]]}", "/edges/0/2"},
    {HEAD AB ",\"edges\":[[0,1]]}", "/edges/0"},
    {HEAD AB ",\"tables\":[[[0,0],[0,0.5]]]}", "/tables/0/1/1"},
    {HEAD AB ",\"tables\":[7]}", "/tables/0"},
    {HEAD AB ",\"tables\":[{\"rows\":2,\"cols\":2,\"default\":0,\"entries\":[[0,0,1],[0,0,2]]}]}", "/tables/0/entries/1"},
    {HEAD AB ",\"tables\":[{\"rows\":2,\"cols\":2,\"default\":0,\"entries\":[[0,2,1]]}]}", "/tables/0/entries/0/1"},
    {HEAD AB ",\"tables\":[{\"rows\":0,\"cols\":2,\"default\":0,\"entries\":[]}]}", "/tables/0/rows"},
    {HEAD AB ",\"tables\":[{\"rows\":2,\"cols\":2,\"entries\":[]}]}", "/tables/0/default"},
    {HEAD AB ",\"sharing\":[{\"producer\":2,\"classes\":[\"k\"],\"conv\":[[0],[1]],\"readers\":[]}]}", "/sharing/0/producer"},
    {HEAD AB ",\"sharing\":[{\"producer\":0,\"classes\":[\"k\",\"k\"],\"conv\":[[0,0],[1,1]],\"readers\":[]}]}",
     "/sharing/0/classes/1"},
    {HEAD AB ",\"sharing\":[{\"producer\":0,\"classes\":[\"k\"],\"conv\":[[0,1]],\"readers\":[]}]}", "/sharing/0/conv"},
    {HEAD AB ",\"sharing\":[{\"producer\":0,\"classes\":[\"k\"],\"conv\":[[0],[1]],\"readers\":[[0,[0,0]]]}]}",
     "/sharing/0/readers/0/0"},
    {HEAD AB ",\"sharing\":[{\"producer\":0,\"classes\":[\"k\"],\"conv\":[[0],[1]],\"readers\":[[1,[0]]]}]}",
     "/sharing/0/readers/0/1"},
    {HEAD AB ",\"sharing\":[{\"producer\":0,\"classes\":[\"k\"],\"conv\":[[0],[1]],\"readers\":[[1,[0,1]]]}]}",
     "/sharing/0/readers/0/1/1"},
    {HEAD "\"variables\":{}}", "/variables"},
    {"[]", ""},
};

static void refusals_point_at_the_place(void **unused)
{
  (void)unused;
  for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
    struct sw_job job = unit_job();
    struct sw_assign_problem *p = sw_assign_read(&job, refusals[i].text, strlen(refusals[i].text));
    if (p || job.faults.n < 1 || strcmp(job.faults.v[0].source, refusals[i].pointer))
      print_message("%s\nexpected at %s, found %s\n", refusals[i].text, refusals[i].pointer,
                    p ? "nothing" : job.faults.v[0].source);
    assert_null(p);
    assert_int_equal(job.worst, SW_INVALID);
    assert_string_equal(job.faults.v[0].source, refusals[i].pointer);
    sw_arena_free(job.arena);
  }
}

static void sums_beyond_63_bits_are_a_limit(void **unused)
{
  (void)unused;
  struct sw_job job = unit_job();
  struct sw_buf b = {.arena = job.arena};
  sw_buf_puts(&b, HEAD "\"variables\":[");
  for (int v = 0; v < 1024; v++) /* 1024 times 2^53 is 2^63 */
    sw_buf_printf(&b, "%s{\"labels\":[\"a\"],\"cost\":[" BIG "]}", v ? "," : "");
  sw_buf_puts(&b, "]}");
  assert_null(sw_assign_read(&job, b.p, b.n));
  assert_int_equal(job.worst, SW_LIMIT);
  sw_arena_free(job.arena);
  job = unit_job();
  b = (struct sw_buf){.arena = job.arena};
  sw_buf_puts(&b, HEAD "\"variables\":[");
  for (int v = 0; v < 1023; v++)
    sw_buf_printf(&b, "%s{\"labels\":[\"a\"],\"cost\":[" BIG "]}", v ? "," : "");
  sw_buf_puts(&b, "]}");
  struct sw_assign_result *r = solve(&job, b.p, -1);
  assert_true(r->cost == 1023 * ((int64_t)1 << 53));
  sw_arena_free(job.arena);
}

static void unknown_keys_are_only_a_warning(void **unused)
{
  (void)unused;
  struct sw_job job = unit_job();
  solve(&job, HEAD AB ",\"colour\":\"red\"}", -1);
  assert_int_equal(job.warnings.n, 1);
  assert_int_equal(job.faults.n, 0);
  sw_arena_free(job.arena);
}

static void members_may_come_in_any_order(void **unused)
{
  (void)unused;
  struct sw_job job = unit_job();
  assert_labels(solve(&job, "{\"edges\":[[0,1,0]],\"tables\":[[[9,5],[5,9]]],\"variables\":[{\"domain\":0},{\"cost\":[0,0],"
                            "\"domain\":0,\"name\":\"y\"}],\"domains\":[[\"0\",\"1\"]],\"format\":\"stickwright.assign/1\"}", -1),
                5, (int[]){0, 1});
  sw_arena_free(job.arena);
}

static void written_and_read_again_is_the_same(void **unused)
{
  (void)unused;
  struct sw_job job = unit_job();
  const char *text = HEAD "\"name\":\"n \\\"quoted\\\" \\u00e9\",\"mode\":\"shared\",\"tables\":[{\"rows\":2,\"cols\":3,"
    "\"default\":\"inf\",\"entries\":[[0,0,0],[1,2,128]]}],\"variables\":[{\"name\":\"a\",\"labels\":[\"k\",\"s\"],"
    "\"cost\":[0,\"inf\"]},{\"name\":\"b\",\"labels\":[\"x\",\"y\",\"z\"]}],\"edges\":[[0,1,0]],\"sharing\":[{\"producer\":1,"
    "\"classes\":[\"k\"],\"conv\":[[0],[1],[2]],\"readers\":[[0,[null,0]]]}]}";
  struct sw_buf first = {.arena = job.arena}, second = {.arena = job.arena};
  sw_assign_write(sw_assign_read(&job, text, strlen(text)), &first);
  sw_assign_write(sw_assign_read(&job, first.p, first.n), &second);
  assert_string_equal(sw_buf_text(&first), sw_buf_text(&second));
  assert_non_null(strstr(first.p, "\"readers\":[[0,[null,0]]]"));
  sw_arena_free(job.arena);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(example_a_ties_are_global),
      cmocka_unit_test(example_b_impossible_pairs),
      cmocka_unit_test(example_c_sharing_moves_the_optimum),
      cmocka_unit_test(nothing_to_choose_costs_nothing),
      cmocka_unit_test(refusals_point_at_the_place),
      cmocka_unit_test(sums_beyond_63_bits_are_a_limit),
      cmocka_unit_test(unknown_keys_are_only_a_warning),
      cmocka_unit_test(members_may_come_in_any_order),
      cmocka_unit_test(written_and_read_again_is_the_same),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
