/* Evaluates text graphs on given numbers. Expected numbers in these tests were worked out by hand or with numpy. */
#ifndef SW_TESTS_EVAL_CHECK_H
#define SW_TESTS_EVAL_CHECK_H

#include "../unit.h"

#include "compiler/eval/eval.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct numbers {
  const double *v;
  int n;
};
#define V(...) \
  ((struct numbers){(const double[]){__VA_ARGS__}, (int)(sizeof((double[]){__VA_ARGS__}) / sizeof(double))})
#define NOTHING ((struct numbers){(const double[]){0}, 0})
#define INF ((double)INFINITY)

struct evaluation {
  struct sw_job job;
  struct sw_graph *graph;
  struct sw_eval *eval;
  enum sw_rc rc;
};

static inline struct sw_tensor make_tensor(struct sw_arena *a, const struct sw_value *v, struct numbers x)
{
  struct sw_tensor t = {.dtype = v->dtype, .rank = v->rank};
  for (int d = 0; d < v->rank; d++) {
    t.size[d] = v->size[d];
    t.stride[d] = v->stride[d];
  }
  assert_int_equal(sw_value_elements(v), x.n);
  t.cells = SW_NEW(a, struct sw_cells);
  t.cells->dtype = v->dtype;
  t.cells->n = x.n;
  t.cells->real = SW_NEW_N(a, double, x.n);
  t.cells->integer = SW_NEW_N(a, int64_t, x.n);
  for (int i = 0; i < x.n; i++) {
    t.cells->real[i] = x.v[i];
    t.cells->integer[i] = sw_dtype_is_float(v->dtype) ? 0 : (int64_t)x.v[i];
  }
  return t;
}

/* in[] holds the user inputs, as the graph's strides lay them, and ends with one whose v is NULL. */
static inline struct evaluation evaluate(const char *text, const struct numbers *in, size_t max_bytes)
{
  struct evaluation e = {.job = unit_job()};
  if (sw_graph_read(&e.job, "test", text, strlen(text), NULL, &e.graph) != SW_OK) {
    print_error("%s: %s\n", text, e.job.faults.v[0].detail);
    fail();
  }
  e.eval = sw_eval_new(&e.job, e.graph, SW_ROUND_DTYPE, max_bytes);
  for (int i = 0; in && in[i].v; i++) {
    int value = e.graph->inputs.v[i].value;
    struct sw_tensor t = make_tensor(e.job.arena, &e.graph->values.v[value], in[i]);
    sw_eval_set(e.eval, value, &t);
  }
  e.rc = sw_eval_all(e.eval);
  return e;
}

static inline const struct sw_evaluated *output(const struct evaluation *e, int i)
{
  return sw_eval_value(e->eval, e->graph->outputs.v[i].arg.value);
}

static inline void expect_numbers(const struct evaluation *e, const char *text, const struct sw_evaluated *got,
                                struct numbers want)
{
  int64_t n = 1;
  double number = sw_tensor_elements(&got->tensor) ? 0 : 1;
  const double *v = &number;
  if (got->kind == SW_TENSOR)
    v = sw_tensor_reals(e->job.arena, &got->tensor, &n);
  else
    number = got->number.kind == SW_NUMBER_REAL ? got->number.r : (double)got->number.i;
  if (n != want.n)
    print_error("%s: %d elements\n", text, (int)n);
  assert_int_equal(n, want.n);
  for (int i = 0; i < want.n; i++) {
    bool same = v[i] == want.v[i] || (isnan(v[i]) && isnan(want.v[i])) ||
                fabs(v[i] - want.v[i]) <= 2e-7 * fmax(1, fabs(want.v[i]));
    if (!same)
      print_error("%s: element %d is %.10g, not %.10g\n", text, i, v[i], want.v[i]);
    assert_true(same);
  }
}

static inline struct evaluation run_graph(const char *text, const struct numbers *in)
{
  struct evaluation e = evaluate(text, in, (size_t)64 << 20);
  if (e.rc != SW_OK)
    print_error("%s: %s\n", text, e.job.faults.n ? e.job.faults.v[0].detail : "no fault");
  assert_int_equal(e.rc, SW_OK);
  return e;
}

/* All outputs of a graph, one after the other in `want`. */
static inline void expect_graph(const char *text, struct numbers want, const struct numbers *in)
{
  struct evaluation e = run_graph(text, in);
  int at = 0;
  for (int i = 0; i < e.graph->outputs.n; i++) {
    const struct sw_evaluated *got = output(&e, i);
    int n = got->kind == SW_TENSOR ? (int)sw_tensor_elements(&got->tensor) : 1;
    assert_true(at + n <= want.n);
    expect_numbers(&e, text, got, (struct numbers){want.v + at, n});
    at += n;
  }
  assert_int_equal(at, want.n);
  sw_arena_free(e.job.arena);
}

/* EXPECT("%x : f32[2] = input\n%y : ..", V(wanted), V(input 0), V(input 1)) */
#define EXPECT(text, want, ...) expect_graph(text, want, (const struct numbers[]){__VA_ARGS__, {0}})
#define EXPECT_ALONE(text, want) expect_graph(text, want, NULL)

/* One node on f64 vectors of one size: its arguments behind the inputs %a, %b. */
static inline void expect_node(const char *call, struct numbers want, const struct numbers *in)
{
  char text[1024];
  int n = snprintf(text, sizeof text, "%%a : f64[%d] = input\n", in[0].n);
  if (in[1].v)
    n += snprintf(text + n, sizeof text - (size_t)n, "%%b : f64[%d] = input\n", in[1].n);
  snprintf(text + n, sizeof text - (size_t)n, "%%y : f64[%d] = %s\nreturn %%y\n", want.n, call);
  expect_graph(text, want, in);
}
#define EXPECT_NODE(call, want, ...) expect_node(call, want, (const struct numbers[]){__VA_ARGS__, {0}, {0}})

/* The graph can't be evaluated: the code, and a word that the first fault says. */
static inline void expect_fault(const char *text, enum sw_rc rc, const char *word, const struct numbers *in)
{
  struct evaluation e = evaluate(text, in, 1 << 20);
  assert_int_equal(e.rc, rc);
  assert_true(e.job.faults.n > 0);
  if (!strstr(e.job.faults.v[0].detail, word))
    print_error("%s\n", e.job.faults.v[0].detail);
  assert_non_null(strstr(e.job.faults.v[0].detail, word));
  sw_arena_free(e.job.arena);
}
#define EXPECT_FAULT(text, rc, word, ...) expect_fault(text, rc, word, (const struct numbers[]){__VA_ARGS__, {0}})

#endif
