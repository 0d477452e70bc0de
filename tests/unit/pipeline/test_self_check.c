/* A compile executes its own program. The wrong one is made here, between the passes emit and verify. */
#include "../unit.h"

#include "compiler/pipeline.h"

#include <stdio.h>
#include <string.h>

static const char graph[] = "%a : f16[64,128] = input\n%b : f16[64,128] = input\n"
                            "%y : f16[64,128] = aten.sub.Tensor(%a, %b)\nreturn %y\n";

struct spoiler {
  struct sw_compiled *c;
  const char *from, *to; /* of equal length: every one in the first SuperDSC file */
  int n_replaced;
};

static void spoil(void *ctx, const char *pass)
{
  struct spoiler *s = ctx;
  if (strcmp(pass, "verify") || !s->from)
    return;
  for (int i = 0; i < s->c->files.list.n; i++) {
    if (strcmp(s->c->files.list.v[i].path, "bundle_0/sdsc_0.json"))
      continue;
    char *at = (char *)(uintptr_t)s->c->files.list.v[i].bytes, *end = at + s->c->files.list.v[i].len;
    for (size_t n = strlen(s->from); at + n <= end; at++)
      if (!memcmp(at, s->from, n)) {
        memcpy(at, s->to, n);
        s->n_replaced++;
      }
  }
}

static enum sw_rc compile(struct sw_job *job, const char *text, const char *mode, struct spoiler *s, struct sw_compiled *c)
{
  struct sw_options o;
  sw_options_init(&o);
  assert_int_equal(sw_option_set(job, &o, "verify", mode), SW_OK);
  assert_int_equal(sw_option_set(job, &o, "cores", "4"), SW_OK);
  sw_options_settle(&o);
  s->c = c;
  struct sw_compile_input in = {.bytes = text, .len = strlen(text), .on_pass = spoil, .ctx = s};
  struct sw_buf dump = {.arena = job->arena};
  return sw_compile(job, &o, &in, NULL, &dump, c);
}

static void a_small_program_is_executed_by_itself(void **state)
{
  (void)state;
  struct sw_job job = unit_job();
  struct sw_compiled c;
  assert_int_equal(compile(&job, graph, "auto", &(struct spoiler){0}, &c), SW_OK);
  assert_string_equal(c.verdict.outcome, "agrees");
  assert_int_equal(c.verdict.n_outputs, 1);
  assert_int_equal(c.verdict.work, 4 * 64 * 128); /* one loop nest and three values */
  assert_non_null(strstr(c.result, "\"outcome\": \"agrees\""));
  sw_arena_free(job.arena);
}

/* Each of these would compute something else, or break a rule of the machine. */
static void a_wrong_program_is_not_given_out(void **state)
{
  (void)state;
  static const struct {
    const char *from, *to, *says;
  } faults[] = {
      {"\"opFuncName\": \"sub\"", "\"opFuncName\": \"add\"", "opFuncName"},
      {"0_sub", "0_max", "is missing"},
      {"\"mb_\": 16", "\"mb_\": 17", "N_ and slices"},
      {"\"[1, 0, 0]\": \"-", "\"[1, 0, 0]\": \"9", "sdsc_0.json"},
  };
  for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
    struct sw_job job = unit_job();
    struct sw_compiled c;
    struct spoiler s = {.from = faults[i].from, .to = faults[i].to};
    enum sw_rc rc = compile(&job, graph, "auto", &s, &c);
    if (!s.n_replaced || rc != SW_INTERNAL)
      fail_msg("%s: %d places, %s", faults[i].from, s.n_replaced, sw_rc_slug(rc));
    assert_int_equal(sw_rc_exit(rc), 70);
    assert_string_equal(c.status, "internal");
    assert_string_equal(c.verdict.outcome, "differs");
    assert_non_null(strstr(job.faults.v[0].detail, "the emitted program is wrong: "));
    if (!strstr(job.faults.v[0].detail, faults[i].says))
      fail_msg("%s in: %s", faults[i].says, job.faults.v[0].detail);
    assert_int_equal(c.files.list.n, 2); /* result.json and stats.json alone */
    assert_non_null(strstr(c.result, "\"outcome\": \"differs\""));
    sw_arena_free(job.arena);
  }
}

/* A subtraction with its operands exchanged obeys every rule: only the values tell. */
static void values_are_compared(void **state)
{
  (void)state;
  static const char swapped[] = "%a : f16[64,128] = input\n%b : f16[64,128] = input\n"
                                "%y : f16[64,128] = aten.maximum(%a, %b)\nreturn %y\n";
  struct sw_job job = unit_job();
  struct sw_compiled c;
  struct spoiler s = {.from = "maximum", .to = "minimum"};
  assert_int_equal(compile(&job, swapped, "auto", &s, &c), SW_INTERNAL);
  assert_int_equal(s.n_replaced, 4); /* outer key, inner key, opFuncName, and in the debug handle */
  assert_non_null(strstr(job.faults.v[0].detail, "differs from the graph's meaning"));
  sw_arena_free(job.arena);
}

/* The squares of numbers around 1000 are infinite as halves, and every mean gives 0: the card's own format decides. */
static void leaving_fp16_on_the_way_excuses_nothing(void **state)
{
  (void)state;
  static const char norm[] = "%a : f16[4,128] = input\n%b : f16[4,128] = input\n"
                             "%m : f16[4,128] = aten.maximum(%a, %b)\n%n : f16[4,128] = aten.mul.Tensor(%m, 1000)\n"
                             "%y : f16[4,128] = aten.rms_norm.default(%n, [128], None, 1e-05)\nreturn %y\n";
  for (int wrong = 0; wrong < 2; wrong++) {
    struct sw_job job = unit_job();
    struct sw_compiled c;
    struct spoiler s = {.from = wrong ? "maximum" : NULL, .to = "minimum"};
    assert_int_equal(compile(&job, norm, "auto", &s, &c), wrong ? SW_INTERNAL : SW_OK);
    assert_string_equal(c.verdict.outcome, wrong ? "differs" : "agrees");
    assert_int_equal(s.n_replaced, 4 * wrong);
    sw_arena_free(job.arena);
  }
}

static void never_means_never(void **state)
{
  (void)state;
  struct sw_job job = unit_job();
  struct sw_compiled c;
  struct spoiler s = {.from = "\"opFuncName\": \"sub\"", .to = "\"opFuncName\": \"add\""};
  assert_int_equal(compile(&job, graph, "never", &s, &c), SW_OK);
  assert_string_equal(c.verdict.outcome, "not executed");
  sw_arena_free(job.arena);
}

static void large_programs_are_left_alone_unless_asked(void **state)
{
  (void)state;
  static const char large[] = "%a : f16[128,256] = input\n%b : f16[256,128] = parameter\n"
                              "%y : f16[128,128] = aten.mm.default(%a, %b)\nreturn %y\n";
  for (int i = 0; i < 2; i++) {
    struct sw_job job = unit_job();
    struct sw_compiled c;
    assert_int_equal(compile(&job, large, i ? "always" : "auto", &(struct spoiler){0}, &c), SW_OK);
    assert_string_equal(c.verdict.outcome, i ? "agrees" : "not executed");
    assert_true(i || strstr(c.verdict.why, "more than the 4000000"));
    assert_int_equal(c.verdict.weights_made_up, i);
    assert_int_equal(job.warnings.n, 0);
    sw_arena_free(job.arena);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_small_program_is_executed_by_itself), cmocka_unit_test(a_wrong_program_is_not_given_out),
      cmocka_unit_test(values_are_compared),                   cmocka_unit_test(leaving_fp16_on_the_way_excuses_nothing),
      cmocka_unit_test(never_means_never),
      cmocka_unit_test(large_programs_are_left_alone_unless_asked),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
