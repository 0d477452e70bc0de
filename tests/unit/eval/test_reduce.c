#include "check.h"

static void sums_and_extremes(void **state)
{
  (void)state;
  struct numbers x = V(1, 2, 3, 4, 5, 9);
  EXPECT("%x : f32[2,3] = input\n%a : f32[2] = aten.sum.dim_IntList(%x, [1])\n"
         "%b : f32[1,3] = aten.mean.dim(%x, [0], True)\n"
         "%c : f32[] = aten.sum(%x)\n%d : f32[] = aten.amax(%x)\n%e : f32[3] = aten.prod.dim_int(%x, 0)\n"
         "return %a, %b, %c, %d, %e\n",
         V(6, 18, 2.5, 3.5, 6, 24, 9, 4, 10, 27), x);
  EXPECT("%x : f32[2,3] = input\n%a : f32[2] = aten.std.dim(%x, [1])\n"
         "%b : f32[2] = aten.var.correction(%x, [1], correction=0)\n"
         "return %a, %b\n",
         V(1, 2.6457513111, 0.6666666667, 4.6666666667), x);
  EXPECT("%x : f32[2,3] = input\nm: %v : f32[2], %m : f32[2] = aten.var_mean.correction(%x, [1])\nreturn %v, %m\n",
         V(1, 7, 2, 6), x);
  EXPECT("%x : f32[2,3] = input\nm: %a : f32[3], %b : f32[3] = aten.aminmax(%x, dim=0)\nreturn %a, %b\n",
         V(1, 2, 3, 4, 5, 9), x);
  EXPECT("%x : f32[2] = input\n%a : f32[1] = aten.linalg_vector_norm(%x, 1., [0], True)\n"
         "%b : f32[] = aten.linalg_vector_norm(%x)\n"
         "%c : f32[] = aten.linalg_vector_norm(%x, inf)\n%d : f32[] = aten.linalg_vector_norm(%x, 3)\n"
         "return %a, %b, %c, %d\n",
         V(7, 5, 4, 4.4979414453), V(3, -4));
  EXPECT("%x : bool[3] = input\n%a : i64[] = aten.sum(%x)\n%b : bool[] = aten.any.default(%x)\n"
         "%c : bool[] = aten.all.dim(%x, 0)\n"
         "return %a, %b, %c\n",
         V(2, 1, 0), V(1, 0, 1));
  EXPECT("%x : f32[3] = input\n%a : f32[] = aten.logsumexp(%x, [0])\nreturn %a\n", V(3.40760596444438), V(1, 2, 3));
  EXPECT("%x : f32[2] = input\n%a : f32[] = aten.logsumexp(%x, [0])\nreturn %a\n", V(-INF), V(-INF, -INF));
}

static void no_elements(void **state)
{
  (void)state;
  EXPECT("%x : f32[0,2] = input\n%a : f32[2] = aten.sum.dim_IntList(%x, [0])\n%b : f32[2] = aten.mean.dim(%x, [0])\n"
         "%c : bool[] = aten.any.default(%x)\nreturn %a, %b, %c\n",
         V(0, 0, NAN, NAN, 0), NOTHING);
  EXPECT_FAULT("%x : f32[0,2] = input\n%a : f32[2] = aten.amax(%x, [0])\nreturn %a\n",
               SW_INVALID, "no extreme", NOTHING);
}

static void places(void **state)
{
  (void)state;
  EXPECT("%x : f32[2,3] = input\nm: %v : f32[2], %i : i64[2] = aten.max.dim(%x, 1)\n%a : i64[] = aten.argmax(%x)\n"
         "%b : i64[2,1] = aten.argmin(%x, 1, True)\nreturn %v, %i, %a, %b\n",
         V(5, 7, 0, 2, 5, 2, 0), V(5, 5, 1, 2, 3, 7)); /* of equal ones the first */
  EXPECT("%x : f32[3] = input\n%a : i64[] = aten.argmax(%x)\n%b : f32[] = aten.amin(%x)\nreturn %a, %b\n", V(1, NAN),
         V(5, NAN, 9));
  EXPECT("%x : f32[4] = input\nm: %v : f32[], %i : i64[] = aten.median.dim(%x, 0)\n"
         "n: %w : f32[], %j : i64[] = aten.mode(%x)\n"
         "return %v, %i, %w\n",
         V(2, 2, 2), V(9, 1, 2, 2));
}

static void sorting_is_stable(void **state)
{
  (void)state;
  struct numbers x = V(2, 1, 2, 3, 1);
  EXPECT("%x : f32[5] = input\ns: %v : f32[5], %i : i64[5] = aten.sort(%x)\nreturn %v, %i\n",
         V(1, 1, 2, 2, 3, 1, 4, 0, 2, 3), x);
  EXPECT("%x : f32[5] = input\n"
         "s: %v : f32[5], %i : i64[5] = aten.sort.stable(%x, stable=True, descending=True)\nreturn %i\n",
         V(3, 0, 2, 1, 4), x);
  EXPECT("%x : f32[5] = input\n%i : i64[5] = aten.argsort(%x)\n"
         "s: %v : f32[2], %j : i64[2] = aten.topk(%x, 2, -1, False)\n"
         "return %i, %v, %j\n",
         V(1, 4, 0, 2, 3, 1, 1, 1, 4), x);
  EXPECT("%x : f32[3] = input\ns: %v : f32[3], %i : i64[3] = aten.sort(%x)\nreturn %v, %i\n", V(-1, 4, NAN, 2, 0, 1),
         V(4, NAN, -1));
  EXPECT("%x : i64[2,2] = input\ns: %v : i64[2,2], %i : i64[2,2] = aten.sort(%x, 0)\nreturn %v, %i\n",
         V(1, 2, 3, 4, 1, 0, 0, 1), V(3, 2, 1, 4));
}

static void running_results(void **state)
{
  (void)state;
  struct numbers x = V(1, 2, 3);
  EXPECT_NODE("aten.cumsum(%a, 0)", V(1, 3, 6), x);
  EXPECT_NODE("aten.cumprod(%a, 0)", V(1, 2, 6), x);
  EXPECT_NODE("aten.logcumsumexp(%a, 0)", V(1, 2.3132616875, 3.4076059644), x);
  EXPECT_NODE("aten.logcumsumexp(%a, 0)", V(1, NAN, NAN), V(1, NAN, 3));
  EXPECT_NODE("aten.diff(%a)", V(1, 1), x);
  EXPECT_NODE("aten.diff(%a, 1, -1, %b)", V(-3, 1, 1), x, V(4));
  EXPECT("%x : f32[4] = input\nm: %v : f32[4], %i : i64[4] = aten.cummax(%x, 0)\n"
         "n: %w : f32[4], %j : i64[4] = aten.cummin(%x, 0)\n"
         "return %v, %i, %w, %j\n",
         V(2, 2, 5, 5, 0, 0, 2, 2, 2, 1, 1, 1, 0, 1, 1, 3), V(2, 1, 5, 1));
  EXPECT("%x : bool[3] = input\n%y : i64[3] = aten.cumsum(%x, 0)\nreturn %y\n", V(1, 1, 2), V(1, 0, 1));
}

static void softmaxes(void **state)
{
  (void)state;
  struct numbers x = V(1, 2, 3);
  EXPECT_NODE("aten.softmax.int(%a, 0)", V(0.0900305732, 0.2447284711, 0.6652409558), x);
  EXPECT_NODE("aten._log_softmax(%a, 0, False)", V(-2.4076059644, -1.4076059644, -0.4076059644), x);
  EXPECT_NODE("aten.softmax.int(%a, 0)", V(NAN, NAN), V(-INF, -INF));
  EXPECT_NODE("aten._safe_softmax(%a, 0)", V(0, 0), V(-INF, -INF));
  EXPECT_NODE("aten.softmax.int(%a, 0)", V(NAN, NAN, NAN), V(1, INF, 0)); /* inf - inf, in the sum of all */
  EXPECT_NODE("aten._log_softmax(%a, 0, False)", V(NAN, NAN, NAN), V(1, INF, 0));
  EXPECT_NODE("aten.logsumexp(%a, [0], True)", V(INF), V(1, INF, 0));
  EXPECT_NODE("aten.softmax.int(%a, 0)", V(0.5, 0.5, 0), V(1e4, 1e4, -1e4));
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(sums_and_extremes), cmocka_unit_test(no_elements),     cmocka_unit_test(places),
      cmocka_unit_test(sorting_is_stable), cmocka_unit_test(running_results), cmocka_unit_test(softmaxes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
