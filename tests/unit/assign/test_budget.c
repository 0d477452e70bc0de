/* What a budget does: never a wrong word, only a weaker one. */
#include "../unit.h"

#include "solver/assign/assign.h"

static uint64_t state;

static int below(int n)
{
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (int)((state >> 33) % (uint64_t)n);
}

/* side x side, two labels; attractive: neighbours want to be equal, else a coin decides. */
static struct sw_assign_problem *grid(struct sw_arena *a, int side, uint64_t seed, bool attractive)
{
  struct sw_assign_problem *p = sw_assign_new(a);
  state = seed;
  for (int v = 0; v < side * side; v++)
    sw_assign_add_variable(p, NULL, 2, NULL, (int64_t[]){64 * below(4), 64 * below(4)});
  for (int v = 0; v < side * side; v++)
    for (int way = 0; way < 2; way++) {
      int64_t c = 64 * (1 + below(16));
      int w = v + (way ? side : 1);
      if (way ? w >= side * side : w % side == 0)
        continue;
      bool equal = attractive || below(2);
      int64_t same[] = {0, c, c, 0}, other[] = {c, 0, 0, c};
      sw_assign_add_edge(p, v, w, sw_assign_add_table(p, 2, 2, equal ? same : other));
    }
  return p;
}

static struct sw_assign_result *solve(struct sw_job *job, const struct sw_assign_problem *p, int64_t budget)
{
  struct sw_assign_options o = sw_assign_defaults();
  struct sw_assign_result *r;
  bool unchecked;
  if (budget)
    o.budget = budget;
  assert_int_equal(sw_assign_solve(job, p, &o, &r), SW_OK);
  assert_int_equal(sw_assign_check(job, p, r, 1 << 22, &unchecked), SW_OK);
  return r;
}

static void a_grid_is_solved_or_bounded(void **unused)
{
  (void)unused;
  for (uint64_t seed = 1; seed <= 2; seed++) {
    struct sw_job job = unit_job();
    struct sw_assign_problem *p = grid(job.arena, 13, seed, false);
    struct sw_assign_result *best = solve(&job, p, 0);
    assert_int_equal(best->status, SW_ASSIGN_OPTIMAL);
    static const int64_t budgets[] = {1, 30000, 300000};
    for (int i = 0; i < 3; i++) {
      struct sw_assign_result *r = solve(&job, p, budgets[i]), *again = solve(&job, p, budgets[i]);
      assert_int_equal(r->status, SW_ASSIGN_FEASIBLE);
      assert_int_equal(r->stopped_by, SW_ASSIGN_STOP_NODES);
      assert_true(r->bound <= best->cost && best->cost <= r->cost);
      assert_true(r->cost == again->cost && r->bound == again->bound);
    }
    sw_arena_free(job.arena);
  }
}

/* The relaxation of such grids is whole, so GLPK closes what is too wide for the budget, ties included. */
static void glpk_closes_what_the_relaxation_can(void **unused)
{
  (void)unused;
  struct sw_job job = unit_job();
  struct sw_assign_problem *p = grid(job.arena, 16, 7, true);
  struct sw_assign_result *best = solve(&job, p, 0), *r = solve(&job, p, 6000000);
  assert_int_equal(best->status, SW_ASSIGN_OPTIMAL);
  assert_string_equal(best->certificate.method, "elimination");
  assert_int_equal(r->status, SW_ASSIGN_OPTIMAL);
  assert_true(r->stats.glpk_calls > 0);
  assert_true(r->cost == best->cost);
  assert_memory_equal(r->labels, best->labels, 256 * sizeof(int));
  sw_arena_free(job.arena);
}

/* 40 % of the pairs can't be converted, an answer is planted: beams say "infeasible" here, wrongly. */
static void hard_pairs_with_an_answer_are_never_infeasible(void **unused)
{
  (void)unused;
  static const enum sw_solver_kind solvers[] = {SW_SOLVER_ILP, SW_SOLVER_ILP, SW_SOLVER_BEAM, SW_SOLVER_GREEDY};
  int stuck = 0;
  for (uint64_t seed = 1; seed <= 1000; seed++) {
    struct sw_job job = unit_job();
    struct sw_assign_problem *p = sw_assign_new(job.arena);
    int plant[60];
    state = seed;
    for (int v = 0; v < 60; v++) {
      plant[v] = below(3);
      sw_assign_add_variable(p, NULL, 3, NULL, (int64_t[]){below(9), below(9), below(9)});
      for (int e = v ? 2 : 0; e > 0; e--) {
        int u = v - 1 - below(v < 30 ? v : 30), shift = (plant[v] - plant[u] + 3) % 3;
        bool hard = below(10) < 4;
        int64_t t[9];
        for (int i = 0; i < 9; i++)
          t[i] = (i / 3 + shift) % 3 == i % 3 || (hard && !below(4)) ? 0 : hard ? SW_ASSIGN_INF : below(64);
        sw_assign_add_edge(p, u, v, sw_assign_add_table(p, 3, 3, t));
      }
    }
    for (int i = 0; i < 4; i++) {
      struct sw_assign_options o = {solvers[i], 20, i == 1 ? 1000 : 2000000000};
      struct sw_assign_result *r;
      assert_int_equal(sw_assign_solve(&job, p, &o, &r), SW_OK);
      assert_true(r->status != SW_ASSIGN_INFEASIBLE);
      assert_true(i || r->status == SW_ASSIGN_OPTIMAL);
      stuck += i >= 2 && r->status == SW_ASSIGN_UNKNOWN;
    }
    sw_arena_free(job.arena);
  }
  assert_true(stuck > 0); /* the case is there */
}

static void a_cancelled_job_stops_with_a_weaker_word(void **unused)
{
  (void)unused;
  struct sw_job job = unit_job();
  atomic_bool cancel = true;
  struct sw_assign_problem *p = grid(job.arena, 13, 1, false);
  job.cancel = &cancel;
  struct sw_assign_result *r = solve(&job, p, 0);
  assert_true(r->status == SW_ASSIGN_UNKNOWN || r->status == SW_ASSIGN_FEASIBLE);
  assert_int_equal(r->stopped_by, SW_ASSIGN_STOP_CANCELLED);
  sw_arena_free(job.arena);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_grid_is_solved_or_bounded),
      cmocka_unit_test(glpk_closes_what_the_relaxation_can),
      cmocka_unit_test(hard_pairs_with_an_answer_are_never_infeasible),
      cmocka_unit_test(a_cancelled_job_stops_with_a_weaker_word),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
