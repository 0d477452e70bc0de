#include "check.h"

static void unary_functions(void **state)
{
  (void)state;
  EXPECT_NODE("aten.abs(%a)", V(2, 0, 3.5), V(-2, 0, 3.5));
  EXPECT_NODE("aten.sign(%a)", V(-1, 0, 1), V(-2, 0, 3.5));
  EXPECT_NODE("aten.round(%a)", V(-2, 0, 2, 2, 4), V(-1.5, 0.5, 1.5, 2.5, 3.5)); /* halves to even */
  EXPECT_NODE("aten.trunc(%a)", V(-1, 0, 1), V(-1.5, 0.5, 1.5));
  EXPECT_NODE("aten.floor(%a)", V(-2, 0, 1), V(-1.5, 0.5, 1.5));
  EXPECT_NODE("aten.ceil(%a)", V(-1, 1, 2), V(-1.5, 0.5, 1.5));
  EXPECT_NODE("aten.rsqrt(%a)", V(0.5, 1, INF), V(4, 1, 0));
  EXPECT_NODE("aten.reciprocal(%a)", V(0.25, INF, -2), V(4, 0, -0.5));
  EXPECT_NODE("aten.exp2(%a)", V(8, 0.5), V(3, -1));
  EXPECT_NODE("aten.log2(%a)", V(3, -1), V(8, 0.5));
  EXPECT_NODE("aten.log10(%a)", V(3, -1), V(1000, 0.1));
  EXPECT_NODE("aten.acos(%a)", V(0, M_PI), V(1, -1));
  EXPECT_NODE("aten.asin(%a)", V(M_PI_2, 0), V(1, 0));
  EXPECT_NODE("aten.cosh(%a)", V(1, 1.25), V(0, M_LN2));
  EXPECT_NODE("aten.sinh(%a)", V(0, 0.75), V(0, M_LN2));
}

static void activations(void **state)
{
  (void)state;
  struct numbers x = V(-2, -0.5, 0, 0.5, 2);
  EXPECT_NODE("aten.gelu(%a)", V(-0.0455002639, -0.1542687694, 0, 0.3457312306, 1.9544997361), x);
  EXPECT_NODE("aten.gelu(%a, approximate=\"tanh\")", V(-0.0454023059, -0.1542859902, 0, 0.3457140098, 1.9545976941), x);
  EXPECT_NODE("aten.silu(%a)", V(-0.238405844, -0.1887703344, 0, 0.3112296656, 1.761594156), x);
  EXPECT_NODE("aten.softplus(%a)", V(0.126928011, 0.4740769842, 0.6931471806, 0.9740769842, 2.126928011), x);
  EXPECT_NODE("aten.softplus(%a, 2, 1)", V(0.0090749639, 0.1566308087, 0.3465735903, 0.6566308087, 2), x);
  EXPECT_NODE("aten.mish(%a)", V(-0.2525014827, -0.2207437747, 0, 0.3752452113, 1.9439589595), x);
  EXPECT_NODE("aten.elu(%a)", V(-0.8646647168, -0.3934693403, 0, 0.5, 2), x);
  EXPECT_NODE("aten.celu(%a, 2.)", V(-1.2642411177, -0.4423984339, 0, 0.5, 2), x);
  EXPECT_NODE("aten.selu(%a)", V(-1.5201664686, -0.6917581878, 0, 0.5253504937, 2.1014019747), x);
  EXPECT_NODE("aten.log_sigmoid(%a)", V(-2.126928011, -0.9740769842, -0.6931471806, -0.4740769842, -0.126928011), x);
  EXPECT_NODE("aten.hardswish(%a)", V(-0.3333333333, -0.2083333333, 0, 0.2916666667, 1.6666666667), x);
  EXPECT_NODE("aten.leaky_relu(%a, 0.25)", V(-0.5, -0.125, 0, 0.5, 2), x);
  EXPECT_NODE("aten.hardtanh(%a)", V(-1, -0.5, 0, 0.5, 1), x);
  EXPECT_NODE("aten.glu(%a)", V(0.5, 2 / (1 + exp(-1.0))), V(1, 2, 0, 1));
  EXPECT("%x : f32[1,2,2] = input\n%w : f32[2] = input\n%y : f32[1,2,2] = aten.prelu(%x, %w)\nreturn %y\n",
         V(-0.5, 1, -2, 4), V(-1, 1, -1, 4), V(0.5, 2));
}

static void binary_functions(void **state)
{
  (void)state;
  struct numbers a = V(7, -7, 7, -7), b = V(2, 2, -2, -2);
  EXPECT_NODE("aten.div.Tensor_mode(%a, %b, rounding_mode=\"floor\")", V(3, -4, -4, 3), a, b);
  EXPECT_NODE("aten.div.Tensor_mode(%a, %b, rounding_mode=\"trunc\")", V(3, -3, -3, 3), a, b);
  EXPECT_NODE("aten.remainder.Tensor(%a, %b)", V(1, 1, -1, -1), a, b);
  EXPECT_NODE("aten.fmod.Tensor(%a, %b)", V(1, -1, 1, -1), a, b);
  /* 0.8 as float16 is 0.7998046875, a quarter of 3.19921875 */
  EXPECT("%x : f16[1] = input\n%y : f16[1] = aten.fmod.Scalar(%x, 0.8)\nreturn %y\n", V(0), V(3.19921875));
  EXPECT("%x : f16[1] = input\n%y : f16[1] = aten.remainder.Scalar(%x, 0.8)\nreturn %y\n", V(0), V(3.19921875));
  EXPECT_NODE("aten.add.Tensor(%a, %b, alpha=3)", V(13, -1, 1, -13), a, b);
  EXPECT_NODE("aten.rsub.Tensor(%a, %b, alpha=2)", V(-12, 16, -16, 12), a, b);
  EXPECT_NODE("aten.rsub.Scalar(%a, 1)", V(-6, 8, -6, 8), a);
  EXPECT_NODE("aten.maximum(%a, %b)", V(2, NAN, NAN), V(1, NAN, 3), V(2, 2, NAN));
  EXPECT_NODE("aten.addcmul(%a, %b, %b, value=0.5)", V(3, 6), V(1, -2), V(2, 4));
  EXPECT_NODE("aten.lerp.Scalar(%a, %b, 0.25)", V(2, 0), V(1, 0), V(5, 0));
  EXPECT_NODE("aten.atan2(%a, %b)", V(M_PI_4, -M_PI_2), V(1, -1), V(1, 0));
  EXPECT_NODE("aten.hypot(%a, %b)", V(5), V(3), V(4));
  EXPECT_NODE("aten.pow.Scalar(2, %a)", V(8, 0.5), V(3, -1));
  EXPECT_NODE("aten.clamp(%a, 0)", V(0, 5, NAN), V(-1, 5, NAN));
  EXPECT_NODE("aten.clamp(%a, max=1)", V(-1, 1), V(-1, 5));
  EXPECT_NODE("aten.clamp_max(%a, 1)", V(-1, 1), V(-1, 5));
}

static void integers_are_exact_and_wrap(void **state)
{
  (void)state;
  EXPECT_ALONE("%x : i64[1] = aten.full([1], 9007199254740993)\n%y : i64[1] = aten.add.Tensor(%x, 1)\n"
               "%z : i64[1] = aten.sub.Tensor(%y, 9007199254740990)\nreturn %z\n",
               V(4));
  EXPECT("%x : u8[2] = input\n%y : u8[2] = aten.add.Tensor(%x, 100)\nreturn %y\n", V(44, 101), V(200, 1));
  EXPECT("%x : i8[2] = input\n%y : i8[2] = aten.mul.Tensor(%x, 2)\nreturn %y\n", V(-56, 2), V(100, 1));
  EXPECT("%x : i64[4] = input\n%y : i64[4] = aten.floor_divide(%x, 2)\n%z : i64[4] = aten.remainder.Scalar(%x, -3)\n"
         "return %y, %z\n",
         V(-4, 3, -1, 0, -1, -2, -1, -2), V(-7, 7, -1, 1));
  EXPECT("%x : i64[3] = input\n%y : i64[3] = aten.__lshift__.Scalar(%x, 2)\n%z : i64[3] = aten.bitwise_not(%x)\n"
         "return %y, %z\n",
         V(4, 8, -12, -2, -3, 2), V(1, 2, -3));
  EXPECT("%x : bool[2] = input\n%y : bool[2] = aten.bitwise_not(%x)\n%z : bool[2] = aten.add.Tensor(%x, %x)\n"
         "return %y, %z\n",
         V(0, 1, 1, 0), V(1, 0));
  EXPECT_FAULT("%x : i64[1] = input\n%y : i64[1] = aten.floor_divide(%x, %x)\nreturn %y\n", SW_INVALID, "divided by 0",
               V(0));
}

static void masks_and_choices(void **state)
{
  (void)state;
  EXPECT("%x : f32[2,2] = input\n%m : bool[2] = input\n%y : f32[2,2] = aten.masked_fill.Scalar(%x, %m, -1)\n"
         "return %y\n",
         V(1, -1, 3, -1), V(1, 2, 3, 4), V(0, 1));
  EXPECT("%m : bool[2] = input\n%x : f32[2] = input\n%y : f32[2] = aten.where.ScalarSelf(%m, 9, %x)\nreturn %y\n",
         V(9, 2), V(1, 0), V(1, 2));
  EXPECT("%m : bool[2] = input\n%y : i64[2] = aten.where.Scalar(%m, 5, 6)\nreturn %y\n", V(5, 6), V(1, 0));
  EXPECT("%x : f32[3] = input\n%y : bool[3] = aten.ge.Tensor(%x, 1)\n%z : bool[3] = aten.isnan(%x)\nreturn %y, %z\n",
         V(0, 1, 0, 0, 0, 1), V(0.5, 1, NAN));
}

static void numbers_do_not_promote_but_their_category_does(void **state)
{
  (void)state;
  /* 0.1 is compared as a float16. */
  EXPECT("%x : f16[1] = input\n%y : bool[1] = aten.eq.Scalar(%x, 0.1)\nreturn %y\n", V(1), V(0.0999755859375));
  EXPECT("%x : i64[2] = input\n%y : f32[2] = aten.mul.Tensor(%x, 0.5)\nreturn %y\n", V(0.5, 1), V(1, 2));
  EXPECT("%x : f16[1] = input\n%y : f16[1] = aten.add.Tensor(%x, 1)\nreturn %y\n", V(2048), V(2048));
  EXPECT_FAULT("%x : f32[1] = input\n%y : i64[1] = aten.mul.Tensor(%x, 2)\nreturn %y\n", SW_INVALID, "do not give",
               V(1.5));
}

static void sizes_broadcast(void **state)
{
  (void)state;
  EXPECT("%x : f32[2,1] = input\n%y : f32[3] = input\n%z : f32[2,3] = aten.add.Tensor(%x, %y)\nreturn %z\n",
         V(11, 21, 31, 12, 22, 32), V(1, 2), V(10, 20, 30));
}

static void complex_numbers_multiply(void **state)
{
  (void)state;
  /* (1 + 2i) i = -2 + i */
  EXPECT("%x : f32[1,2] = input\n%z : c64[1] = aten.view_as_complex(%x)\n%r : f32[1] = aten.full([1], 1.)\n"
         "%phi : f32[1] = aten.full([1], 1.5707963267948966)\n%p : c64[1] = aten.polar(%r, %phi)\n"
         "%y : c64[1] = aten.mul.Tensor(%z, %p)\n%w : f32[1,2] = aten.view_as_real(%y)\nreturn %w\n",
         V(-2, 1), V(1, 2));
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(unary_functions),
      cmocka_unit_test(activations),
      cmocka_unit_test(binary_functions),
      cmocka_unit_test(integers_are_exact_and_wrap),
      cmocka_unit_test(masks_and_choices),
      cmocka_unit_test(numbers_do_not_promote_but_their_category_does),
      cmocka_unit_test(sizes_broadcast),
      cmocka_unit_test(complex_numbers_multiply),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
