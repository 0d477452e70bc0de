#include "check.h"

static void views_show_the_right_elements(void **state)
{
  (void)state;
  struct numbers x = V(0, 1, 2, 3, 4, 5);
  EXPECT("%x : f32[2,3] = input\n%y : f32[3,2] strides=[1,3] = aten.t(%x)\nreturn %y\n", V(0, 3, 1, 4, 2, 5), x);
  EXPECT("%x : f32[2,3] = input\n%y : f32[3,2] strides=[1,3] = aten.numpy_T(%x)\nreturn %y\n", V(0, 3, 1, 4, 2, 5), x);
  EXPECT("%x : f32[2,3] = input\n%y : f32[3] = aten.select.int(%x, 0, -1)\nreturn %y\n", V(3, 4, 5), x);
  EXPECT("%x : f32[2,3] = input\n%y : f32[2,2] strides=[3,2] = aten.slice.Tensor(%x, 1, -3, 9223372036854775807, 2)\n"
         "return %y\n",
         V(0, 2, 3, 5), x);
  EXPECT("%x : f32[2,3] = input\n%y : f32[2] strides=[4] = aten.diagonal(%x, 0, 0, 1)\n"
         "%z : f32[2] strides=[4] = aten.diagonal(%x, 1)\nreturn %y, %z\n",
         V(0, 4, 1, 5), x);
  EXPECT("%x : f32[6] = input\n%y : f32[2,3] strides=[3,1] = aten.unfold(%x, 0, 3, 3)\nreturn %y\n",
         V(0, 1, 2, 3, 4, 5), x);
  EXPECT("%x : f32[2,3] = input\n%y : f32[0] = aten.diagonal(%x, 3)\n%z : f32[1] = aten.diagonal(%x, -1)\nreturn %y, %z\n",
         V(3), x);
  EXPECT("%x : f32[6] = input\n%y : f32[3,2] strides=[1,3] = aten.as_strided(%x, [3,2], [1,3])\nreturn %y\n",
         V(0, 3, 1, 4, 2, 5), x);
  EXPECT("%x : f32[2,3] = input\n%y : f32[6] = aten.flatten.using_ints(%x)\n"
         "%z : f32[3,2] = aten.unflatten.int(%y, 0, [3,-1])\n"
         "return %z\n",
         x, x);
  EXPECT("%x : f32[2,3] = input\n%t : f32[3,2] strides=[1,3] = aten.t(%x)\n%y : f32[6] = aten.reshape(%t, [-1])\n"
         "return %y\n",
         V(0, 3, 1, 4, 2, 5), x);
  EXPECT("%x : f32[2,3] = input\n%y : f32[1,2,1,3] = aten.view(%x, [1,2,1,3])\n%z : f32[2,3] = aten.squeeze(%y)\n"
         "%w : f32[2,1,3] = aten.squeeze.dim(%y, 0)\nreturn %z, %w\n",
         V(0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5), x);
  EXPECT("%x : f32[2,3] = input\n%y : f32[2,3] = aten.view_as(%x, %x)\nreturn %y\n", x, x);
}

static void lists_of_pieces(void **state)
{
  (void)state;
  struct numbers x = V(0, 1, 2, 3, 4);
  EXPECT("%x : f32[5] = input\nc: %a : f32[2], %b : f32[2], %c : f32[1] = aten.chunk(%x, 3)\nreturn %c, %a\n",
         V(4, 0, 1), x);
  EXPECT("%x : f32[5] = input\nc: %a : f32[4], %b : f32[1] = aten.split.Tensor(%x, 4)\nreturn %b\n", V(4), x);
  EXPECT("%x : f32[5] = input\nc: %a : f32[1], %b : f32[4] = aten.split_with_sizes(%x, [1,4])\nreturn %b\n",
         V(1, 2, 3, 4), x);
}

static void in_place_ops_write_through_views(void **state)
{
  (void)state;
  /* Row 1 of x doubles; the transposed view taken before sees it. */
  EXPECT("%x : f32[2,2] = input\n%c : f32[2,2] = aten.clone(%x)\n%t : f32[2,2] strides=[1,2] = aten.t(%c)\n"
         "%r : f32[2] = aten.select.int(%c, 0, 1)\n%m : f32[2] = aten.mul_.Tensor(%r, 2)\nreturn %t, %c\n",
         V(1, 6, 2, 8, 1, 2, 6, 8), V(1, 2, 3, 4));
  EXPECT("%x : f32[4] = input\n%c : f32[4] = aten.clone(%x)\n%s : f32[2] = aten.slice.Tensor(%c, 0, 1, 3)\n"
         "%z : f32[2] = aten.zero_(%s)\n%e : f32[4] = aten.exp_(%c)\nreturn %c\n",
         V(M_E, 1, 1, M_E), V(1, 5, 5, 1));
  /* The pieces overlap: the source counts as it was. */
  EXPECT("%x : f32[4] = input\n%c : f32[4] = aten.clone(%x)\n%a : f32[3] = aten.slice.Tensor(%c, 0, 1, 4)\n"
         "%b : f32[3] = aten.slice.Tensor(%c, 0, 0, 3)\n%w : f32[3] = aten.copy_(%a, %b)\nreturn %c\n",
         V(1, 1, 2, 3), V(1, 2, 3, 4));
  EXPECT("%x : i64[2] = input\n%c : i64[2] = aten.clone(%x)\n%f : i64[2] = aten.fill_.Scalar(%c, 7)\n"
         "%i : i64[1] = aten.full([1], 0)\n%p : i64[2] = aten.index_put_(%c, [%i], %i)\nreturn %c\n",
         V(0, 7), V(1, 2));
  EXPECT("%x : f32[2] = input\n%o : bool[] = aten.full([], False)\n%y : bool[] = aten.any.all_out(%x, out=%o)\n"
         "return %o\n",
         V(1), V(0, 3));
}

static void a_reshape_that_must_copy_does_not_write_through(void **state)
{
  (void)state;
  EXPECT("%x : f32[2,2] = input\n%c : f32[2,2] = aten.clone(%x)\n%t : f32[2,2] strides=[1,2] = aten.t(%c)\n"
         "%r : f32[4] = aten.reshape(%t, [4])\n%z : f32[4] = aten.zero_(%r)\nreturn %c\n",
         V(1, 2, 3, 4), V(1, 2, 3, 4));
}

static void creation(void **state)
{
  (void)state;
  EXPECT_ALONE("%y : i64[3] = aten.arange.start_step(5, -1, -2)\nreturn %y\n", V(5, 3, 1));
  EXPECT_ALONE("%y : f32[4] = aten.arange.start_step(0., 1., 0.3)\nreturn %y\n", V(0, 0.3, 0.6, 0.9));
  EXPECT_ALONE("%y : i64[2] = aten.arange.start(3, 5)\nreturn %y\n", V(3, 4));
  EXPECT_ALONE("%y : f32[5] = aten.linspace(-1, 1, 5)\nreturn %y\n", V(-1, -0.5, 0, 0.5, 1));
  EXPECT_ALONE("%y : f32[2,2] = aten.eye(2)\nreturn %y\n", V(1, 0, 0, 1));
  EXPECT_ALONE("%y : bool[2] = aten.ones([2], dtype=bool)\n%z : bool[2] = aten.zeros_like(%y)\nreturn %y, %z\n",
               V(1, 1, 0, 0));
  EXPECT("%x : f32[2] = input\n%y : f32[1,2] = aten.new_full(%x, [1,2], 3)\n%z : f32[2] = aten.new_zeros(%x, [2])\n"
         "return %y, %z\n",
         V(3, 3, 0, 0), V(1, 2));
  EXPECT("%x : f32[3,3] = input\n%l : f32[3,3] = aten.tril(%x, -1)\n%u : f32[3,3] = aten.triu(%x, 1)\n"
         "return %l, %u\n",
         V(0, 0, 0, 4, 0, 0, 7, 8, 0, 0, 2, 3, 0, 0, 6, 0, 0, 0), V(1, 2, 3, 4, 5, 6, 7, 8, 9));
  EXPECT("%x : i64[2] = input\n%y : i64[2,3] = aten.one_hot(%x, 3)\nreturn %y\n", V(0, 0, 1, 1, 0, 0), V(2, 0));
}

static void casts(void **state)
{
  (void)state;
  EXPECT("%x : f32[4] = input\n%y : i32[4] = aten.to.dtype(%x, i32)\n%z : bool[4] = aten._to_copy(%x, dtype=bool)\n"
         "return %y, %z\n",
         V(1, -1, 0, 300, 1, 1, 1, 1), V(1.9, -1.9, 0.1, 300));
  EXPECT("%x : f32[1] = input\n%y : f16[1] = aten.to.dtype(%x, f16)\n%z : f32[1] = aten.to.dtype(%y, f32)\n"
         "return %z\n",
         V(0.0999755859375), V(0.1));
  EXPECT("%x : i32[1] = input\n%y : u8[1] = prims.convert_element_type(%x, u8)\nreturn %y\n", V(44), V(300));
}

static void joined_tensors(void **state)
{
  (void)state;
  EXPECT("%a : f32[1,2] = input\n%b : f32[2,2] = input\n%y : f32[3,2] = aten.cat([%a, %b], 0)\nreturn %y\n",
         V(1, 2, 3, 4, 5, 6), V(1, 2), V(3, 4, 5, 6));
  EXPECT("%a : f32[2] = input\n%b : f32[2] = input\n%y : f32[2,2] = aten.stack([%a, %b], -1)\nreturn %y\n",
         V(1, 3, 2, 4), V(1, 2), V(3, 4));
  EXPECT("%a : f32[2] = input\n%y : f32[2,4] = aten.repeat(%a, [2,2])\n%z : f32[4] = aten.tile(%a, [2])\n"
         "return %y, %z\n",
         V(1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2), V(1, 2));
  EXPECT("%a : f32[2,2] = input\n%y : f32[2,4] = aten.repeat_interleave.self_int(%a, 2, 1)\nreturn %y\n",
         V(1, 1, 2, 2, 3, 3, 4, 4), V(1, 2, 3, 4));
  EXPECT("%a : f32[2,3] = input\n%y : f32[2,3] = aten.flip(%a, [0,1])\n%z : f32[2,3] = aten.roll(%a, [1], [1])\n"
         "%w : f32[2,3] = aten.roll(%a, [-1])\nreturn %y, %z, %w\n",
         V(6, 5, 4, 3, 2, 1, 3, 1, 2, 6, 4, 5, 2, 3, 4, 5, 6, 1), V(1, 2, 3, 4, 5, 6));
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(views_show_the_right_elements),
      cmocka_unit_test(lists_of_pieces),
      cmocka_unit_test(in_place_ops_write_through_views),
      cmocka_unit_test(a_reshape_that_must_copy_does_not_write_through),
      cmocka_unit_test(creation),
      cmocka_unit_test(casts),
      cmocka_unit_test(joined_tensors),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
