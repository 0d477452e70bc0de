#include "cases.h"

/* Variables of a case: those of the output first, then the reduced ones. */
static void add_vars(struct sw_work *w, const json_t *space)
{
  for (int reduced = 0; reduced < 2; reduced++) {
    size_t i;
    json_t *v;
    json_array_foreach (space, i, v) {
      if (json_is_true(json_object_get(v, "reduction")) != reduced)
        continue;
      const json_t *size = json_object_get(v, "size");
      int at = add_var(w, get_text(v, "name"), json_is_integer(size) ? json_integer_value(size) : get_int(v, "max"));
      w->var[at].granularity = get_int(v, "granularity");
    }
    if (!reduced)
      w->n_written = w->n_vars;
  }
}

/* The dims of a case's tensor; dim i is walked by variable c<i>. */
static int shape_of(const struct sw_work *w, const json_t *shape, struct dim *d)
{
  int n = (int)json_array_size(shape);
  for (int i = 0; i < n; i++) {
    char name[16];
    snprintf(name, sizeof name, "c%d", i);
    d[i].var = var_of(w, name);
    d[i].size = d[i].var >= 0 ? w->var[d[i].var].size : json_integer_value(json_array_get(shape, (size_t)i));
  }
  return n;
}

static bool is_reduced(const struct sw_work *w, const struct dim *d)
{
  return d->var >= w->n_written;
}

/* A pointwise op, reduction or restickify over one tensor. */
static struct sw_work one_tensor_work(struct sw_job *job, const json_t *c)
{
  struct sw_work w = plain_work((int)get_int(c, "cores"));
  add_vars(&w, json_object_get(c, "iteration_space"));
  const json_t *shapes = json_object_get(c, "shapes");
  const json_t *shape = json_object_get(shapes, "x") ? json_object_get(shapes, "x") : json_object_get(shapes, "out");
  struct dim d[6], kept[6];
  int n = shape_of(&w, shape, d), n_kept = 0;
  int stick = n - 1;
  if (!strncmp(get_text(c, "op"), "restickify", 10)) {
    struct dim turned[2] = {d[1], d[0]};
    w.kind = SW_WORK_RESTICKIFY;
    w.in[0] = tensor_of("x", turned, 2, 1, 64);
  } else {
    w.in[0] = tensor_of("x", d, n, stick, 64);
  }
  w.n_in = 1;
  for (int i = 0; i < n; i++)
    if (!is_reduced(&w, &d[i]))
      kept[n_kept++] = d[i];
  w.out = tensor_of("y", kept, n_kept, is_reduced(&w, &d[stick]) ? -1 : n_kept - 1, 64);
  if (!n_kept)
    w.out = (struct sw_work_tensor){.name = "y", .rank = 2, .device_size = {1, 64}};
  assert_int_equal(sw_work_settle(job, &w), SW_OK);
  return w;
}

static struct sw_work matmul_case(struct sw_job *job, const json_t *c)
{
  const json_t *a = json_object_get(json_object_get(c, "shapes"), "A");
  const json_t *b = json_object_get(json_object_get(c, "shapes"), "B");
  size_t rank = json_array_size(a), rank_b = json_array_size(b);
  int64_t batch[4] = {0};
  for (size_t i = 0; i + 2 < rank; i++)
    batch[i] = json_integer_value(json_array_get(a, i));
  return matmul_work(job, (int)get_int(c, "cores"), batch, json_integer_value(json_array_get(a, rank - 2)),
                     json_integer_value(json_array_get(a, rank - 1)), json_integer_value(json_array_get(b, rank_b - 1)),
                     rank_b < rank);
}

static void check_split(const struct sw_work *w, const json_t *expected, const int64_t *split, const char *id)
{
  const char *name;
  json_t *n;
  json_object_foreach ((json_t *)expected, name, n) {
    int v = var_of(w, name);
    if (v < 0 || split[v] != json_integer_value(n))
      fail_msg("%s: %s is cut %d times, expected %d", id, name, v < 0 ? 0 : (int)split[v], (int)json_integer_value(n));
  }
}

/* Left out: the hint cases (given_splits_are_taken_or_refused). */
static bool is_planned_alone(const json_t *c)
{
  return strcmp(get_text(c, "decided_by"), "user hint") != 0;
}

static void recorded_cases_get_the_recorded_splits(void **state)
{
  (void)state;
  struct sw_job job = unit_job();
  size_t i;
  json_t *c;
  int n = 0;
  json_t *cases = cases_of(&job, "cases");
  json_array_foreach (cases, i, c) {
    const char *id = get_text(c, "id"), *op = get_text(c, "op");
    if (!is_planned_alone(c))
      continue;
    bool matmul = json_object_get(json_object_get(c, "shapes"), "A");
    struct sw_work w = matmul ? matmul_case(&job, c) : one_tensor_work(&job, c);
    w.indirect = !strcmp(op, "reduction with indirect access");
    if (!strncmp(id, "test_sdpa", 9))
      w.var[0].name = "b";
    const char *name;
    json_t *x;
    json_object_foreach (json_object_get(c, "stick_adjusted"), name, x) {
      if (var_of(&w, name) < 0 || w.var[var_of(&w, name)].adjusted != json_integer_value(x))
        fail_msg("%s: adjusted size of %s", id, name);
    }
    int64_t committed[SW_MAX_LOOPS], split[SW_MAX_LOOPS];
    assert_int_equal(sw_divide_for_span(&job, &w, committed), SW_OK);
    check_split(&w, json_object_get(c, "span_commit"), committed, id);
    if (sw_divide(&job, &w, split) != SW_OK)
      fail_msg("%s: %s", id, job.faults.v[job.faults.n - 1].detail);
    if (!strncmp(get_text(c, "decided_by"), "co-optimiser", 12)) { /* its notes: alone m 8, n 4 */
      assert_int_equal(split[var_of(&w, "m")], 8);
      assert_int_equal(split[var_of(&w, "n")], 4);
      continue;
    }
    check_split(&w, json_object_get(c, "expected_split"), split, id);
    assert_int_equal(sw_split_product(split, w.n_vars), get_int(c, "cores_used"));
    n++;
  }
  assert_int_equal(n, 107 - 4);
  sw_arena_free(job.arena);
}

static void cores_go_to_the_largest_output_first(void **state)
{
  (void)state;
  struct sw_job job = unit_job();
  size_t i;
  json_t *c;
  json_t *cases = cases_of(&job, "greedy_distribution");
  json_array_foreach (cases, i, c) {
    struct sw_work w = plain_work((int)get_int(c, "max_cores"));
    int64_t committed[SW_MAX_LOOPS], split[SW_MAX_LOOPS];
    struct sw_work_limits none = {0};
    const char *name;
    json_t *n;
    json_object_foreach (json_object_get(c, "sizes"), name, n) {
      int v = add_var(&w, name, json_integer_value(n));
      w.var[v].adjusted = w.var[v].size;
      w.var[v].is_output = name[0] == 'o';
      int64_t least = get_int(json_object_get(c, "min_splits"), name);
      committed[v] = least ? least : 1;
    }
    sw_divide_greedy(&w, &none, committed, split);
    check_split(&w, json_object_get(c, "expect"), split, get_text(c, "id"));
  }
  sw_arena_free(job.arena);
}

/* top-k of [rows 64, 256] over columns: rows in the stick, k rows out. */
static struct sw_work topk_work(struct sw_job *job, int64_t k)
{
  struct sw_work w = plain_work(32);
  w.kind = SW_WORK_TOPK;
  struct dim rows = {64, add_var(&w, "rows", 64)};
  struct dim found = {k, k > 1 ? add_var(&w, "k", k) : -1};
  w.n_written = w.n_vars;
  struct dim searched = {256, add_var(&w, "search", 256)};
  struct dim in[2] = {searched, rows}, out[2] = {found, rows};
  w.in[w.n_in++] = tensor_of("x", in, 2, 1, 64);
  w.out = tensor_of("y", out, 2, 1, 64);
  assert_int_equal(sw_work_settle(job, &w), SW_OK);
  return w;
}

static void a_core_finds_at_most_four_rows_of_a_topk(void **state)
{
  (void)state;
  struct sw_job job = unit_job();
  const char *k;
  json_t *expected;
  json_t *cases = cases_of(&job, "topk_k_split_32_cores");
  json_object_foreach (cases, k, expected) {
    struct sw_work w = topk_work(&job, atoi(k));
    int64_t split[SW_MAX_LOOPS];
    enum sw_rc rc = sw_divide(&job, &w, split);
    if (json_is_null(expected)) {
      assert_int_equal(rc, SW_UNSUPPORTED);
      continue;
    }
    if (rc != SW_OK)
      fail_msg("k %s: %s", k, job.faults.v[job.faults.n - 1].detail);
    int at = var_of(&w, "k");
    int64_t got = at < 0 ? 1 : split[at], want = json_integer_value(expected);
    if (got != want && !(want == 1 && got <= 4)) /* 1: no pin, so k takes part in the distribution */
      fail_msg("k %s is cut %d times, expected %d", k, (int)got, (int)want);
    assert_int_equal(split[var_of(&w, "search")], 1);
  }
  sw_arena_free(job.arena);
}

static void masked_reductions_stay_whole(void **state)
{
  (void)state;
  struct sw_job job = unit_job();
  static const struct {
    int64_t size;
    bool stick, blocked;
  } cases[] = {{10, true, true}, {128, true, false}, {10, false, false}};
  for (int i = 0; i < 3; i++) {
    struct sw_work w = plain_work(32);
    struct dim kept = {64, add_var(&w, "kept", 64)};
    w.n_written = 1;
    struct dim reduced = {cases[i].size, add_var(&w, "reduced", cases[i].size)};
    struct dim in[2] = {cases[i].stick ? kept : reduced, cases[i].stick ? reduced : kept};
    w.in[w.n_in++] = tensor_of("x", in, 2, 1, 64);
    w.out = tensor_of("y", &kept, 1, cases[i].stick ? -1 : 0, 64);
    assert_int_equal(sw_work_settle(&job, &w), SW_OK);
    struct sw_work_limits limits;
    assert_int_equal(sw_work_limits(&job, &w, (int64_t[]){1, 1}, &limits), SW_OK);
    assert_int_equal(limits.blocked[1], cases[i].blocked);
  }
  sw_arena_free(job.arena);
}

/* conv out [mb 2, out 32, i 32, j 32]. */
static struct sw_work conv_work(struct sw_job *job, int strided)
{
  struct sw_work w = plain_work(32);
  struct dim d[4] = {{2, 0}, {32, 1}, {32, 2}, {32, 3}};
  static const char *const names[] = {"mb", "out", "i", "j"};
  for (int i = 0; i < 4; i++)
    add_var(&w, names[i], d[i].size);
  w.n_written = 4;
  w.strided_window = strided;
  struct dim stick_last[4] = {d[0], d[2], d[3], d[1]};
  w.out = tensor_of("y", stick_last, 4, -1, 64);
  assert_int_equal(sw_work_settle(job, &w), SW_OK);
  return w;
}

static void strided_windows_keep_their_rows_together(void **state)
{
  (void)state;
  struct sw_job job = unit_job();
  struct sw_work w = conv_work(&job, 2);
  struct sw_work_limits limits;
  int64_t split[SW_MAX_LOOPS], committed[4] = {1, 1, 1, 1};
  assert_int_equal(sw_work_limits(&job, &w, committed, &limits), SW_OK);
  assert_true(limits.blocked[2] && limits.blocked[3]);
  sw_divide_greedy(&w, &limits, committed, split);
  assert_true(split[0] == 1 && split[1] == 32 && split[2] == 1 && split[3] == 1);

  committed[2] = 2; /* the span goes first */
  assert_int_equal(sw_work_limits(&job, &w, committed, &limits), SW_OK);
  assert_true(!limits.blocked[2] && limits.blocked[3]);

  w = conv_work(&job, 0);
  assert_int_equal(sw_work_limits(&job, &w, committed, &limits), SW_OK);
  assert_true(!limits.blocked[2] && !limits.blocked[3]);
  sw_arena_free(job.arena);
}

static void a_two_dim_stick_is_not_cut(void **state)
{
  (void)state;
  struct sw_job job = unit_job();
  struct sw_work w = matmul_work(&job, 32, NULL, 128, 256, 128, false);
  struct sw_work_limits limits;
  int64_t committed[3] = {1, 1, 1};
  assert_int_equal(sw_work_limits(&job, &w, committed, &limits), SW_OK);
  assert_false(limits.any_pin);
  w.in[1].two_dim_stick = true;
  assert_int_equal(sw_work_limits(&job, &w, committed, &limits), SW_OK);
  assert_true(limits.pin[0] == 0 && limits.pin[2] == 1);
  committed[2] = 2;
  assert_int_equal(sw_work_limits(&job, &w, committed, &limits), SW_UNSUPPORTED);
  assert_non_null(strstr(job.faults.v[job.faults.n - 1].detail, "hardware memory-span limit"));
  sw_arena_free(job.arena);
}

static void gathers_run_on_one_core(void **state)
{
  (void)state;
  struct sw_job job = unit_job();
  struct sw_work w = topk_work(&job, 4);
  w.kind = SW_WORK_PLAIN;
  w.indirect = true;
  int64_t split[SW_MAX_LOOPS];
  assert_int_equal(sw_divide(&job, &w, split), SW_OK);
  assert_int_equal(sw_split_product(split, w.n_vars), 1);

  w = topk_work(&job, 16); /* pinned to 4 by one rule and to 1 by the other */
  w.indirect = true;
  assert_int_equal(sw_divide(&job, &w, split), SW_UNSUPPORTED);
  assert_non_null(strstr(job.faults.v[job.faults.n - 1].detail, "conflicting pinned split"));
  sw_arena_free(job.arena);
}

static void dynamic_sizes_are_cut_by_their_granularity(void **state)
{
  (void)state;
  struct sw_job job = unit_job();
  assert_int_equal(sw_granularity(0, 512), 16);
  assert_int_equal(sw_granularity(2, 512), 16); /* 2 is what an undeclared minimum looks like */
  assert_int_equal(sw_granularity(64, 1024), 64);
  assert_int_equal(sw_granularity(64, 1000), 0);
  assert_int_equal(sw_granularity(16, 1024), 0); /* 64 buckets */
  struct sw_work w = plain_work(32);
  struct dim d = {512, add_var(&w, "c0", 512)};
  w.var[0].granularity = 16;
  w.n_written = 1;
  w.out = w.in[0] = tensor_of("x", &d, 1, 0, 64);
  w.n_in = 1;
  assert_int_equal(sw_work_settle(&job, &w), SW_UNSUPPORTED);
  assert_non_null(strstr(job.faults.v[0].detail, "symbolic stick dim"));
  sw_arena_free(job.arena);
}

/* Dims as they come in `sizes`; all are output dims unless the case names some. */
static struct sw_work hint_work(struct sw_job *job, const json_t *c, struct sw_hint *hint)
{
  struct sw_work w = plain_work((int)get_int(c, "max_cores"));
  const json_t *outputs = json_object_get(c, "output_dims"), *ops_dims = json_object_get(c, "op_dims");
  const char *name;
  json_t *n;
  size_t i;
  if (!w.cores)
    w.cores = 32;
  w.out = (struct sw_work_tensor){.name = "y", .rank = 1, .device_size = {64}};
  json_object_foreach (json_object_get(c, "sizes"), name, n)
    add_var(&w, name, json_integer_value(n));
  json_array_foreach (ops_dims, i, n)
    add_var(&w, json_string_value(n), 512);
  assert_int_equal(sw_work_settle(job, &w), SW_OK);
  for (int v = 0; v < w.n_vars; v++) {
    w.var[v].is_output = !outputs;
    json_array_foreach (outputs, i, n)
      w.var[v].is_output |= !strcmp(json_string_value(n), w.var[v].name);
  }
  json_array_foreach (json_object_get(c, "hint"), i, n)
    hint[w.n_hints++] = (struct sw_hint){.var = json_string_value(json_array_get(n, 0)),
                                         .slices = json_integer_value(json_array_get(n, 1))};
  w.hint = hint;
  return w;
}

static void given_splits_are_taken_or_refused(void **state)
{
  (void)state;
  struct sw_job job = unit_job();
  json_t *cases = cases_of(&job, "hints");
  size_t i;
  json_t *c;
  json_array_foreach (cases, i, c) {
    struct sw_hint hint[4];
    struct sw_work w = hint_work(&job, c, hint);
    struct sw_work_limits limits = {0};
    int64_t split[SW_MAX_LOOPS];
    const char *name, *error = get_text(c, "expect_error");
    json_t *n;
    json_object_foreach (json_object_get(c, "pinned"), name, n)
      limits.pin[var_of(&w, name)] = json_integer_value(n);
    enum sw_rc rc = sw_divide_hinted(&job, &w, &limits, split);
    if (*error) {
      assert_int_equal(rc, SW_USAGE);
      if (!strstr(job.faults.v[job.faults.n - 1].detail, error))
        fail_msg("%s: \"%s\", expected \"%s\"", get_text(c, "id"), job.faults.v[job.faults.n - 1].detail, error);
      continue;
    }
    assert_int_equal(rc, SW_OK);
    const json_t *expected = json_object_get(c, "expect");
    check_split(&w, expected ? expected : json_object_get(c, "expect_resolved"), split, get_text(c, "id"));
  }
  /* nothing is distributed beside what is given: matmul 128 x 256 x 64 on 8 cores */
  struct sw_work w = matmul_work(&job, 8, NULL, 128, 256, 64, false);
  int64_t split[SW_MAX_LOOPS];
  w.hint = (struct sw_hint[]){{"k", 4}, {"m", 2}};
  w.n_hints = 2;
  assert_int_equal(sw_divide(&job, &w, split), SW_OK);
  assert_true(split[0] == 2 && split[1] == 1 && split[2] == 4);
  w = matmul_work(&job, 4, NULL, 128, 128, 128, false);
  w.hint = (struct sw_hint[]){{"m", 2}, {"n", 2}, {"k", 2}};
  w.n_hints = 3;
  assert_int_equal(sw_divide(&job, &w, split), SW_OK);
  assert_true(split[0] == 2 && split[1] == 2 && split[2] == 1);
  sw_arena_free(job.arena);
}

/* Section 5 and 6 example C. */
static void what_no_split_can_address_is_refused(void **state)
{
  (void)state;
  struct sw_job job = unit_job();
  struct sw_work w = plain_work(32);
  struct dim d[2] = {{5120, add_var(&w, "c0", 5120)}, {131072, add_var(&w, "c1", 131072)}};
  struct dim turned[2] = {d[1], d[0]};
  w.kind = SW_WORK_RESTICKIFY;
  w.n_written = 2;
  w.in[w.n_in++] = tensor_of("weight", turned, 2, 1, 64);
  w.out = tensor_of("y", d, 2, 1, 64);
  assert_int_equal(sw_work_settle(&job, &w), SW_OK);
  int64_t split[SW_MAX_LOOPS];
  assert_int_equal(sw_divide(&job, &w, split), SW_LIMIT);
  const struct sw_fault *f = &job.faults.v[0];
  assert_string_equal(f->tensor, "y");
  assert_int_equal(f->value, 335544320);
  assert_int_equal(f->limit, 268431360);
  sw_arena_free(job.arena);
}

/* The weight [4096, 51200] of section 19.3: 2 x 2 by the reference; in profile best all cores help. */
static void what_the_span_has_cut_can_get_more_cores(void **state)
{
  (void)state;
  struct sw_job job = unit_job();
  struct sw_work w = plain_work(32);
  struct dim d[2] = {{4096, add_var(&w, "c0", 4096)}, {51200, add_var(&w, "c1", 51200)}};
  struct dim turned[2] = {d[1], d[0]};
  w.kind = SW_WORK_RESTICKIFY;
  w.n_written = 2;
  w.in[w.n_in++] = tensor_of("weight", turned, 2, 1, 64);
  w.out = tensor_of("y", d, 2, 1, 64);
  assert_int_equal(sw_work_settle(&job, &w), SW_OK);
  int64_t split[SW_MAX_LOOPS];
  assert_int_equal(sw_divide(&job, &w, split), SW_OK);
  assert_true(split[0] == 2 && split[1] == 2);
  w.best = true;
  assert_int_equal(sw_divide(&job, &w, split), SW_OK);
  assert_true(split[0] == 2 && split[1] == 16);
  sw_arena_free(job.arena);
}

static void spans_are_those_of_the_page(void **state)
{
  (void)state;
  struct sw_work w = plain_work(32);
  struct dim d[2] = {{4096, add_var(&w, "c0", 4096)}, {2048, add_var(&w, "c1", 2048)}};
  struct sw_work_tensor t = tensor_of("x", d, 2, 1, 64);
  assert_int_equal(sw_work_span(&w, &t, (int64_t[]){1, 1}), 16777216);
  assert_int_equal(sw_work_span(&w, &t, (int64_t[]){32, 1}), 16777216);
  w = plain_work(32);
  struct dim e[3] = {{1, -1}, {512, add_var(&w, "c1", 512)}, {4096, add_var(&w, "c2", 4096)}};
  t = tensor_of("x", e, 3, 2, 64);
  assert_int_equal(sw_work_span(&w, &t, (int64_t[]){32, 1}), 131072);
}

/* All of them are about one number or one refusal; what a core is told of the size is emission's (tests/golden/emit.py, 95). */
static void dynamic_sizes_are_split_by_their_granularity(void **state)
{
  (void)state;
  struct sw_job job = unit_job();
  json_t *cases = cases_of(&job, "symbolic"), *c;
  size_t i;
  int n = 0;
  json_array_foreach (cases, i, c) {
    const char *id = get_text(c, "id");
    const json_t *expect = json_object_get(c, "expect");
    if (!strcmp(id, "granularity_auto"))
      assert_int_equal(sw_granularity(0, get_int(c, "max")), get_int(expect, "granularity"));
    else if (strcmp(id, "stick_symbolic") != 0)
      continue;
    n++;
  }
  assert_int_equal(n, 2);
  /* declared: 64..1024; 32..256 (graph 196); 3 does not divide 512, 2 is no declaration */
  assert_int_equal(sw_granularity(64, 1024), 64);
  assert_int_equal(sw_granularity(32, 256), 32);
  assert_int_equal(sw_granularity(3, 512), 0);
  assert_int_equal(sw_granularity(2, 512), 16);
  struct sw_work w = plain_work(32);
  struct dim d[2] = {{1024, add_var(&w, "c0", 1024)}, {128, add_var(&w, "c1", 128)}};
  w.n_written = 2;
  w.var[0].granularity = 64;
  w.out = w.in[0] = tensor_of("x", d, 2, 1, 64);
  w.n_in = 1;
  int64_t split[SW_MAX_LOOPS];
  assert_int_equal(sw_work_settle(&job, &w), SW_OK);
  assert_int_equal(sw_divide(&job, &w, split), SW_OK);
  assert_true(split[0] == 32 && split[1] == 1);
  w = plain_work(32);
  struct dim e[2] = {{64, add_var(&w, "c0", 64)}, {512, add_var(&w, "c1", 512)}};
  w.n_written = 2;
  w.var[1].granularity = 16;
  w.out = w.in[0] = tensor_of("x", e, 2, 1, 64);
  w.n_in = 1;
  assert_int_equal(sw_work_settle(&job, &w), SW_UNSUPPORTED);
  assert_non_null(strstr(job.faults.v[0].detail, "symbolic stick dim"));
  sw_arena_free(job.arena);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(dynamic_sizes_are_split_by_their_granularity),
      cmocka_unit_test(recorded_cases_get_the_recorded_splits),
      cmocka_unit_test(cores_go_to_the_largest_output_first),
      cmocka_unit_test(a_core_finds_at_most_four_rows_of_a_topk),
      cmocka_unit_test(masked_reductions_stay_whole),
      cmocka_unit_test(strided_windows_keep_their_rows_together),
      cmocka_unit_test(a_two_dim_stick_is_not_cut),
      cmocka_unit_test(gathers_run_on_one_core),
      cmocka_unit_test(dynamic_sizes_are_cut_by_their_granularity),
      cmocka_unit_test(given_splits_are_taken_or_refused),
      cmocka_unit_test(what_no_split_can_address_is_refused),
      cmocka_unit_test(what_the_span_has_cut_can_get_more_cores),
      cmocka_unit_test(spans_are_those_of_the_page),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
