#include "check.h"

static void rows_by_number(void **state)
{
  (void)state;
  struct numbers x = V(0, 1, 10, 11, 20, 21);
  EXPECT("%x : f32[3,2] = input\n%i : i64[2] = input\n%y : f32[2,2] = aten.embedding(%x, %i)\n"
         "%z : f32[3,2] = aten.index_select(%x, 1, %i)\nreturn %y, %z\n",
         V(10, 11, 0, 1, 1, 0, 11, 10, 21, 20), x, V(1, 0));
  EXPECT_FAULT("%x : f32[3,2] = input\n%i : i64[1] = input\n%y : f32[1,2] = aten.embedding(%x, %i)\nreturn %y\n",
               SW_INVALID,
               "index 3 is not in a dim of 3", x, V(3));
}

static void advanced_indexing_follows_numpy(void **state)
{
  (void)state;
  struct numbers x = V(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11); /* [2,3,2] */
  EXPECT("%x : f32[2,3,2] = input\n%i : i64[2] = input\n%y : f32[2,2] = aten.index.Tensor(%x, [%i, %i])\nreturn %y\n",
         V(0, 1, 8, 9), x, V(0, 1));
  /* Indices apart: their dims come first. x[i, :, i] */
  EXPECT("%x : f32[2,3,2] = input\n%i : i64[2] = input\n%y : f32[2,3] = aten.index.Tensor(%x, [%i, None, %i])\n"
         "return %y\n",
         V(0, 2, 4, 7, 9, 11), x, V(0, 1));
  /* Indices side by side: their dims stay there. x[:, i, i] */
  EXPECT("%x : f32[2,3,2] = input\n%i : i64[2] = input\n%y : f32[2,2] = aten.index.Tensor(%x, [None, %i, %i])\n"
         "return %y\n",
         V(0, 3, 6, 9), x, V(0, 1));
  EXPECT("%x : f32[2,3,2] = input\n%i : i64[1] = input\n%y : f32[2,1,2] = aten.index.Tensor(%x, [None, %i])\n"
         "return %y\n",
         V(4, 5, 10, 11), x, V(-1));
}

static void writes_by_index(void **state)
{
  (void)state;
  struct numbers x = V(1, 2, 3, 4), i = V(0, 0);
  EXPECT("%x : f32[4] = input\n%i : i64[2] = input\n%v : f32[2] = input\n"
         "%y : f32[4] = aten.index_put(%x, [%i], %v, True)\n"
         "%z : f32[4] = aten.index_put(%x, [%i], %v)\nreturn %y, %z, %x\n",
         V(31, 2, 3, 4, 20, 2, 3, 4, 1, 2, 3, 4), x, i, V(10, 20));
  EXPECT("%x : f32[4] = input\n%m : bool[4] = input\n%v : f32[] = input\n"
         "%y : f32[4] = aten.index_put(%x, [%m], %v)\nreturn %y\n",
         V(1, 9, 3, 9), x, V(0, 1, 0, 1), V(9));
  EXPECT("%x : f32[2,2] = input\n%i : i64[1] = input\n%v : f32[2,1] = input\n"
         "%y : f32[2,2] = aten.index_copy(%x, 1, %i, %v)\n"
         "%z : f32[2,2] = aten.index_add(%x, 1, %i, %v, alpha=2)\n"
         "%w : f32[2,2] = aten.index_fill.int_Scalar(%x, 0, %i, 7)\n"
         "return %y, %z, %w\n",
         V(1, 8, 3, 9, 1, 18, 3, 22, 1, 2, 7, 7), x, V(1), V(8, 9));
  EXPECT("%x : f32[2,2] = input\n%v : f32[2] = input\n%y : f32[2,2] = aten.select_scatter(%x, %v, 1, 0)\n"
         "%c : f32[2,1] = aten.view(%v, [2,1])\n%z : f32[2,2] = aten.slice_scatter(%x, %c, 1, 1)\nreturn %y, %z\n",
         V(8, 2, 9, 4, 1, 8, 3, 9), x, V(8, 9));
  EXPECT("%x : f32[2,2] = input\n%m : bool[2,2] = input\n%v : f32[3] = input\n"
         "%y : f32[2,2] = aten.masked_scatter(%x, %m, %v)\nreturn %y\n",
         V(7, 2, 8, 4), x, V(1, 0, 1, 0), V(7, 8, 9));
}

static void one_index_per_element(void **state)
{
  (void)state;
  struct numbers x = V(1, 2, 3, 4, 5, 6);
  EXPECT("%x : f32[2,3] = input\n%i : i64[2,2] = input\n%y : f32[2,2] = aten.gather(%x, 1, %i)\nreturn %y\n",
         V(1, 3, 4, 4), x, V(0, 2, 0, 0));
}

static void scattered_elements(void **state)
{
  (void)state;
  struct numbers x = V(1, 2, 3, 4), i = V(0, 0, 2), v = V(10, 20, 30);
  EXPECT("%x : f32[4] = input\n%i : i64[3] = input\n%v : f32[3] = input\n"
         "%a : f32[4] = aten.scatter.src(%x, 0, %i, %v)\n"
         "%b : f32[4] = aten.scatter_add(%x, 0, %i, %v)\n%c : f32[4] = aten.scatter.value(%x, 0, %i, 7)\n"
         "return %a, %b, %c\n",
         V(20, 2, 30, 4, 31, 2, 33, 4, 7, 2, 7, 4), x, i, v);
  EXPECT("%x : f32[4] = input\n%i : i64[3] = input\n%v : f32[3] = input\n"
         "%a : f32[4] = aten.scatter_reduce.two(%x, 0, %i, %v, \"prod\")\n"
         "%b : f32[4] = aten.scatter_reduce.two(%x, 0, %i, %v, \"amax\", include_self=False)\n"
         "%c : f32[4] = aten.scatter_reduce.two(%x, 0, %i, %v, \"mean\", include_self=False)\n"
         "%d : f32[4] = aten.scatter_reduce.two(%x, 0, %i, %v, \"mean\")\nreturn %a, %b, %c, %d\n",
         V(200, 2, 90, 4, 20, 2, 30, 4, 15, 2, 30, 4, 10.3333333333, 2, 16.5, 4), x, i, v);
}

static void counting(void **state)
{
  (void)state;
  EXPECT("%x : f32[5] = input\n%y : f32[4] = aten.histc(%x, 4, 0, 4)\nreturn %y\n", V(1, 2, 0, 1), V(0, 1, 1.5, 4, 9));
  EXPECT("%x : i64[4] = input\n%w : f32[4] = input\n%y : i64[3] = aten.bincount(%x)\n"
         "%z : f32[3] = aten.bincount(%x, %w)\n"
         "return %y, %z\n",
         V(1, 0, 3, 1, 0, 9), V(2, 0, 2, 2), V(2, 1, 3, 4));
  EXPECT("%x : i64[4] = input\n%t : i64[2] = input\n%y : bool[4] = aten.isin.Tensor_Tensor(%x, %t)\n"
         "%z : bool[4] = aten.isin.Tensor_Tensor(%x, %t, invert=True)\nreturn %y, %z\n",
         V(1, 0, 0, 1, 0, 1, 1, 0), V(5, 2, 3, 5), V(5, 9));
}

static void sizes_that_only_values_tell(void **state)
{
  (void)state;
  EXPECT("range u0 = 0..4\n%x : i64[2,2] = input\n%y : i64[u0:4,2] = aten.nonzero(%x)\n"
         "%n : int(u0:4) = aten.sym_size.int(%y, 0)\n"
         "return %y, %n\n",
         V(0, 1, 1, 1, 2), V(0, 3, 0, -1));
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(rows_by_number),         cmocka_unit_test(advanced_indexing_follows_numpy),
      cmocka_unit_test(writes_by_index),        cmocka_unit_test(one_index_per_element),
      cmocka_unit_test(scattered_elements),     cmocka_unit_test(counting),
      cmocka_unit_test(sizes_that_only_values_tell),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
