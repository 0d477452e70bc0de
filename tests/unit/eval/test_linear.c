#include "check.h"

static void matrix_products(void **state)
{
  (void)state;
  struct numbers a = V(1, 2, 3, 4), b = V(5, 6, 7, 8), ab = V(19, 22, 43, 50);
  EXPECT("%a : f32[2,2] = input\n%b : f32[2,2] = input\n%y : f32[2,2] = aten.mm(%a, %b)\nreturn %y\n", ab, a, b);
  EXPECT("%a : i64[2,2] = input\n%b : i64[2,2] = input\n%y : i64[2,2] = aten.mm(%a, %b)\nreturn %y\n", ab, a, b);
  EXPECT("%a : f32[1,2,2] = input\n%b : f32[1,2,2] = input\n%y : f32[1,2,2] = aten.bmm(%a, %b)\nreturn %y\n", ab, a, b);
  EXPECT("%a : f32[2,2] = input\n%b : f32[2] = input\n%y : f32[2] = aten.matmul(%a, %b)\n"
         "%z : f32[2] = aten.matmul(%b, %a)\n"
         "%w : f32[] = aten.dot(%b, %b)\n%m : f32[2] = aten.mv(%a, %b)\nreturn %y, %z, %w, %m\n",
         V(17, 39, 23, 34, 61, 17, 39), a, V(5, 6));
  EXPECT("%a : f32[2,1,1,1] = input\n%b : f32[3,1,2] = input\n%y : f32[2,3,1,2] = aten.matmul(%a, %b)\nreturn %y\n",
         V(1, 2, 3, 4, 5, 6, 10, 20, 30, 40, 50, 60), V(1, 10), V(1, 2, 3, 4, 5, 6));
  EXPECT("%a : f32[1,2] = input\n%w : f32[3,2] = input\n%b : f32[3] = input\n"
         "%y : f32[1,3] = aten.linear(%a, %w, %b)\nreturn %y\n",
         V(11, 22, 33), V(1, 1), V(0, 1, 1, 1, 1, 2), V(10, 20, 30));
  EXPECT("%i : f32[2] = input\n%a : f32[2,2] = input\n%b : f32[2,2] = input\n"
         "%y : f32[2,2] = aten.addmm(%i, %a, %b, beta=10, alpha=2)\n%z : f32[2,2] = aten.addmm(%i, %a, %b, beta=0)\n"
         "return %y, %z\n",
         V(48, 64, 96, 120, 19, 22, 43, 50), V(1, 2), a, b);
  EXPECT("%a : f32[2] = input\n%y : f32[2,2] = aten.outer(%a, %a)\nreturn %y\n", V(4, 6, 6, 9), V(2, 3));
}

static void einsum_reads_its_equation(void **state)
{
  (void)state;
  struct numbers a = V(1, 2, 3, 4), b = V(5, 6, 7, 8);
  EXPECT("%a : f32[2,2] = input\n%b : f32[2,2] = input\n%y : f32[2,2] = aten.einsum(\"ij,jk->ik\", [%a, %b])\n"
         "%z : f32[2,2] strides=[1,2] = aten.einsum(\"ij->ji\", [%a])\n%t : f32[] = aten.einsum(\"ii\", [%a])\n"
         "%s : f32[2] = aten.einsum(\"ij,ij->i\", [%a, %b])\nreturn %y, %z, %t, %s\n",
         V(19, 22, 43, 50, 1, 3, 2, 4, 5, 17, 53), a, b);
  EXPECT("%a : f32[2,1,2] = input\n%b : f32[2,2] = input\n%y : f32[2,2] = aten.einsum(\"...k,...k->...\", [%a, %b])\n"
         "%z : f32[2,2] = aten.einsum(\"...k,...k\", [%a, %b])\nreturn %y, %z\n",
         V(17, 23, 39, 53, 17, 23, 39, 53), a, b);
}

static void scaled_and_grouped_products(void **state)
{
  (void)state;
  EXPECT("%a : f8e4m3[1,2] = input\n%b : f8e4m3[2,1] = input\n%s : f32[] = input\n"
         "%y : bf16[1,1] = aten._scaled_mm(%a, %b, %s, %s, out_dtype=bf16)\nreturn %y\n",
         V(44), V(1, 2), V(3, 4), V(2));
  /* Row 0 belongs to expert 0, rows 1 and 2 to expert 2; expert 1 has none. */
  EXPECT("%x : f32[3,1] = input\n%w : f32[3,1,2] = input\n%o : i32[3] = input\n"
         "%y : f32[3,2] = transformers.grouped_mm_fallback(%x, %w, %o)\nreturn %y\n",
         V(1, 2, 10, 12, 15, 18), V(1, 2, 3), V(1, 2, 3, 4, 5, 6), V(1, 1, 3));
}

static void convolutions(void **state)
{
  (void)state;
  struct numbers x = V(1, 2, 3, 4, 5, 6, 7, 8, 9), w = V(1, 0, 0, 1);
  EXPECT("%x : f32[1,1,3,3] = input\n%w : f32[1,1,2,2] = input\n"
         "%y : f32[1,1,2,2] = aten.conv2d.default(%x, %w)\nreturn %y\n",
         V(6, 8, 12, 14), x, w);
  EXPECT("%x : f32[1,1,3,3] = input\n%w : f32[1,1,2,2] = input\n"
         "%y : f32[1,1,2,2] = aten.conv2d.default(%x, %w, None, [2,2], [1,1])\nreturn %y\n",
         V(1, 3, 7, 14), x, w); /* corners of the padded 5x5 image */
  EXPECT("%x : f32[1,1,3,3] = input\n%w : f32[1,1,2,2] = input\n"
         "%y : f32[1,1,1,1] = aten.conv2d.default(%x, %w, dilation=[2,2])\nreturn %y\n",
         V(10), x, w);
  EXPECT("%x : f32[1,2,3] = input\n%w : f32[2,1,2] = input\n%b : f32[2] = input\n"
         "%y : f32[1,2,2] = aten.conv1d.default(%x, %w, %b, groups=2)\nreturn %y\n",
         V(103, 105, 209, 211), V(1, 2, 3, 4, 5, 6), V(1, 1, 1, 1), V(100, 200));
  EXPECT("%x : f32[1,4] = input\n%w : f32[1,1,2] = input\n"
         "%y : f32[1,4] = aten.conv1d.padding(%x, %w, padding=\"same\")\n"
         "return %y\n",
         V(3, 5, 7, 4), V(1, 2, 3, 4), V(1, 1)); /* the odd pad lies at the end */
  EXPECT("%x : f32[1,1,1,2] = input\n%w : f32[1,1,1,2] = input\n"
         "%y : f32[1,1,1,4] = aten.conv_transpose2d.input(%x, %w, None, [1,2])\nreturn %y\n",
         V(1, 10, 2, 20), V(1, 2), V(1, 10));
  EXPECT("%x : f32[1,1,3,3] = input\n%y : f32[1,4,4] = aten.im2col(%x, [2,2], [1,1], [0,0], [1,1])\nreturn %y\n",
         V(1, 2, 4, 5, 2, 3, 5, 6, 4, 5, 7, 8, 5, 6, 8, 9), x);
}

static void pooling(void **state)
{
  (void)state;
  struct numbers x = V(1, 2, 3, 4, 5, 6, 7, 8, 9);
  EXPECT("%x : f32[1,3,3] = input\n"
         "m: %v : f32[1,2,2], %i : i64[1,2,2] = aten.max_pool2d_with_indices(%x, [2,2], [1,1])\n"
         "return %v, %i\n",
         V(5, 6, 8, 9, 4, 5, 7, 8), x);
  EXPECT("%x : f32[1,3,3] = input\n%y : f32[1,2,2] = aten.avg_pool2d(%x, [2,2], [2,2], [1,1])\n"
         "%z : f32[1,2,2] = aten.avg_pool2d(%x, [2,2], [2,2], [1,1], False, False)\n"
         "%w : f32[1,2,2] = aten.avg_pool2d(%x, [2,2], [2,2], 0, True)\nreturn %y, %z, %w\n",
         V(0.25, 1.25, 2.75, 7, 1, 2.5, 5.5, 7, 3, 4.5, 7.5, 9), x);
  EXPECT("%x : f32[1,3,3] = input\n%y : f32[1,2,1] = aten.adaptive_avg_pool2d(%x, [2,1])\nreturn %y\n", V(3.5, 6.5), x);
  EXPECT("%x : f32[1,1,1,2] = input\n%y : f32[1,1,2,4] = aten.upsample_nearest2d.vec(%x, None, [2.,2.])\n"
         "%z : f32[1,1,1,4] = aten.upsample_bilinear2d.vec(%x, [1,4], False, None)\n"
         "%w : f32[1,1,1,3] = aten.upsample_bilinear2d.vec(%x, [1,3], True, None)\nreturn %y, %z, %w\n",
         V(0, 0, 8, 8, 0, 0, 8, 8, 0, 2, 6, 8, 0, 4, 8), V(0, 8));
  EXPECT("%x : f32[4,1,1] = input\n%y : f32[1,2,2] = aten.pixel_shuffle(%x, 2)\nreturn %y\n",
         V(1, 2, 3, 4), V(1, 2, 3, 4));
  /* a circle closes over what negative padding leaves: of 1 2 3 4 5 stay 3 4 5 */
  EXPECT("%x : f32[1,1,5] = input\n%y : f32[1,1,4] = aten.pad(%x, [-2,1], \"circular\")\nreturn %y\n", V(3, 4, 5, 3), V(1, 2, 3, 4, 5));
  EXPECT("%x : f32[1,1,3] = input\n%y : f32[1,1,7] = aten.pad(%x, [2,2], \"reflect\")\n"
         "%z : f32[1,1,5] = aten.pad(%x, [1,1], \"replicate\")\n%w : f32[1,1,5] = aten.pad(%x, [1,1], \"circular\")\n"
         "%v : f32[1,1,4] = aten.constant_pad_nd(%x, [-1,2], 9)\nreturn %y, %z, %w, %v\n",
         V(3, 2, 1, 2, 3, 2, 1, 1, 1, 2, 3, 3, 3, 1, 2, 3, 1, 2, 3, 9, 9), V(1, 2, 3));
}

static void norms(void **state)
{
  (void)state;
  struct numbers x = V(1, 2, 3, 4, 5, 6, 7, 9);
  EXPECT("%x : f32[2,4] = input\n%y : f32[2,4] = aten.layer_norm(%x, [4])\nreturn %y\n",
         V(-1.34163542, -0.4472118067, 0.4472118067, 1.34163542, -1.1832132521, -0.5070913938, 0.1690304646,
           1.5212741813),
         x);
  EXPECT("%x : f32[2,4] = input\n%y : f32[2,4] = aten.rms_norm(%x, [4], None, 1e-5)\nreturn %y\n",
         V(0.3651481282, 0.7302962565, 1.0954443847, 1.460592513, 0.7235745295, 0.8682894354, 1.0130043413,
           1.3024341531),
         x);
  /* One group of two channels of two: mean 2.5, variance 1.25. With eps 0.3125 the deviation is 1.25. */
  EXPECT("%x : f32[1,2,2] = input\n%w : f32[2] = input\n"
         "%y : f32[1,2,2] = aten.group_norm(%x, 1, %w, %w, 0.3125)\nreturn %y\n",
         V(-0.2, 0.6, 2.8, 4.4), V(1, 2, 3, 4), V(1, 2));
  /* Running values give (x - 1) / sqrt(3 + 1), those of the batch (x - 2) / sqrt(1 + 3). */
  EXPECT("%x : f32[2,1] = input\n%m : f32[1] = input\n%v : f32[1] = input\n"
         "%y : f32[2,1] = aten.batch_norm(%x, None, None, %m, %v, False, 0.1, 1., False)\nreturn %y\n",
         V(0, 1), V(1, 3), V(1), V(3));
  EXPECT("%x : f32[2,1] = input\n%m : f32[1] = input\n%v : f32[1] = input\n"
         "%y : f32[2,1] = aten.batch_norm(%x, None, None, %m, %v, True, 0.5, 3., False)\nreturn %y, %m, %v\n",
         V(-0.5, 0.5, 1.5, 2.5), V(1, 3), V(1), V(3)); /* variance 1 of the batch, 2 of the sample */
}

static void attention(void **state)
{
  (void)state;
  struct numbers q = V(1, 0, 0, 2), k = V(1, 1, 2, 0, 0, 1), v = V(1, 2, 4);
  EXPECT("%q : f32[1,2,2] = input\n%k : f32[1,3,2] = input\n%v : f32[1,3,1] = input\n"
         "%y : f32[1,2,1] = aten.scaled_dot_product_attention(%q, %k, %v)\n"
         "%z : f32[1,2,1] = aten.scaled_dot_product_attention(%q, %k, %v, None, 0., True)\nreturn %y, %z\n",
         V(1.9960630803, 2.4458082741, 1, 1.1955703175), q, k, v);
  EXPECT("%q : f32[1,1,2,2] = input\n%k : f32[1,1,3,2] = input\n%v : f32[1,1,3,1] = input\n"
         "m: %y : f32[1,1,2,1], %l : f32[1,1,2] = aten._scaled_dot_product_flash_attention_for_cpu(%q, %k, %v)\n"
         "return %y, %l\n",
         V(1.9960630803, 2.4458082741, 1.965903985, 2.2220798604), q, k, v);
  /* Scale 0 weighs all that the mask shows equally; a row that shows nothing is 0. */
  EXPECT("%q : f32[1,2,2] = input\n%k : f32[1,3,2] = input\n%v : f32[1,3,1] = input\n%m : bool[2,3] = input\n"
         "%y : f32[1,2,1] = aten.scaled_dot_product_attention(%q, %k, %v, %m, scale=0.)\nreturn %y\n",
         V(2.5, 0), q, k, v, V(1, 0, 1, 0, 0, 0));
  EXPECT("%q : f32[1,2,2] = input\n%k : f32[1,3,2] = input\n%v : f32[1,3,1] = input\n%m : f32[3] = input\n"
         "%y : f32[1,2,1] = aten.scaled_dot_product_attention(%q, %k, %v, %m, scale=0.)\nreturn %y\n",
         V(2, 2), q, k, v, V(log(2), log(2), 0)); /* weights 2, 2, 1 of 5 on 1, 2, 4 */
}

static void heads_share_keys(void **state)
{
  (void)state;
  /* Four query heads on two heads of keys: heads 0, 1 read the first. */
  EXPECT("%q : f32[1,4,1,1] = input\n%k : f32[1,2,1,1] = input\n"
         "%y : f32[1,4,1,1] = aten.scaled_dot_product_attention(%q, %k, %k, enable_gqa=True)\nreturn %y\n",
         V(7, 7, 9, 9), V(1, 2, 3, 4), V(7, 9));
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(matrix_products), cmocka_unit_test(einsum_reads_its_equation),
      cmocka_unit_test(scaled_and_grouped_products), cmocka_unit_test(convolutions), cmocka_unit_test(pooling),
      cmocka_unit_test(norms), cmocka_unit_test(attention), cmocka_unit_test(heads_share_keys),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
