#include "check.h"

static void float16_rounds_to_even_and_overflows_past_65519(void **state)
{
  (void)state;
  assert_true(sw_round_to(SW_F16, 65504) == 65504);
  assert_true(sw_round_to(SW_F16, 65519.999) == 65504);
  assert_true(isinf(sw_round_to(SW_F16, 65520)));
  assert_true(sw_round_to(SW_F16, 2049) == 2048); /* halfway between 2048 and 2050 */
  assert_true(sw_round_to(SW_F16, 2051) == 2052);
  assert_true(sw_round_to(SW_F16, 0.1) == 0.0999755859375);
  assert_true(sw_round_to(SW_F16, 0x1p-24) == 0x1p-24); /* the smallest */
  assert_true(sw_round_to(SW_F16, 0x1p-25) == 0);       /* halfway to it, even is 0 */
  assert_true(sw_round_to(SW_F16, 0x1.8p-24) == 0x1p-23);
}

static void bfloat16_keeps_8_bits(void **state)
{
  (void)state;
  assert_true(sw_round_to(SW_BF16, 1.0 + 0x1p-8) == 1);
  assert_true(sw_round_to(SW_BF16, 1.0 + 0x1.8p-7) == 1.0 + 0x1p-6);
  assert_true(sw_round_to(SW_BF16, 3.0e38) > 2.9e38);
  assert_true(isinf(sw_round_to(SW_BF16, 3.4e38)));
}

static void float8_formats_end_where_they_should(void **state)
{
  (void)state;
  assert_true(sw_round_to(SW_F8E4M3, 464) == 448); /* halfway to 480, which is NaN; even is 448 */
  assert_true(isnan(sw_round_to(SW_F8E4M3, 465)));
  assert_true(isnan(sw_round_to(SW_F8E4M3, INF)));
  assert_true(sw_round_to(SW_F8E4M3, 0.3) == 0.3125);
  assert_true(sw_round_to(SW_F8E5M2, 57344) == 57344);
  assert_true(isinf(sw_round_to(SW_F8E5M2, 61440)));
  assert_true(sw_round_to(SW_F8E4M3Z, 240) == 240);
  assert_true(isnan(sw_round_to(SW_F8E4M3Z, 260)));
  assert_false(signbit(sw_round_to(SW_F8E4M3Z, -1e-9)));
  assert_true(sw_round_to(SW_F8E8M0, 3) == 4);
  assert_true(sw_round_to(SW_F8E8M0, 2.9) == 2);
  assert_true(sw_round_to(SW_F8E8M0, 1e-300) == 0x1p-127);
  assert_true(isnan(sw_round_to(SW_F8E8M0, 1e300)));
}

/* Every pattern of 8 and 16 bits is read and written back as it was; NaN becomes the one NaN of its format. */
static void every_pattern_reads_and_writes_back(void **state)
{
  (void)state;
  static const enum sw_dtype types[] = {SW_F16,     SW_BF16,     SW_F8E4M3, SW_F8E5M2,
                                        SW_F8E4M3Z, SW_F8E5M2Z, SW_F8E8M0, SW_I8, SW_U8, SW_I16, SW_U16};
  for (int k = 0; k < (int)(sizeof types / sizeof types[0]); k++) {
    struct sw_job job = unit_job();
    int width = sw_dtype_bytes(types[k]);
    int64_t n = width == 1 ? 256 : 65536;
    unsigned char *bytes = SW_NEW_N(job.arena, unsigned char, n * width);
    for (int64_t i = 0; i < n; i++) {
      bytes[i * width] = (unsigned char)i;
      if (width == 2)
        bytes[i * 2 + 1] = (unsigned char)(i >> 8);
    }
    struct sw_tensor t;
    size_t len;
    sw_tensor_from_bytes(job.arena, &t, types[k], 1, &n, bytes);
    const unsigned char *back = sw_tensor_bytes(job.arena, &t, &len);
    assert_int_equal(len, n * width);
    for (int64_t i = 0; i < n; i++)
      if (!sw_dtype_is_float(types[k]) || !isnan(t.cells->real[i]))
        assert_memory_equal(bytes + i * width, back + i * width, (size_t)width);
    sw_arena_free(job.arena);
  }
}

static void known_patterns_have_their_values(void **state)
{
  (void)state;
  static const struct {
    enum sw_dtype dtype;
    unsigned char bytes[8];
    double value;
  } cases[] = {
      {SW_F16, {0x00, 0x3c}, 1},       {SW_F16, {0xff, 0x7b}, 65504}, {SW_F16, {0x01, 0x80}, -0x1p-24},
      {SW_BF16, {0x49, 0x40}, 3.140625}, {SW_F8E4M3, {0x7e}, 448},    {SW_F8E4M3, {0x01}, 0x1p-9},
      {SW_F8E5M2, {0x7b}, 57344},      {SW_F8E4M3Z, {0x7f}, 240},     {SW_F8E5M2Z, {0x7f}, 57344},
      {SW_F32, {0, 0, 0x80, 0x3f}, 1}, {SW_I16, {0xfe, 0xff}, -2},    {SW_U16, {0xfe, 0xff}, 65534},
      {SW_F8E8M0, {0x80}, 2},          {SW_BOOL, {2}, 1},
  };
  struct sw_job job = unit_job();
  for (int i = 0; i < (int)(sizeof cases / sizeof cases[0]); i++) {
    struct sw_tensor t;
    int64_t one = 1;
    sw_tensor_from_bytes(job.arena, &t, cases[i].dtype, 1, &one, cases[i].bytes);
    assert_true(sw_tensor_reals(job.arena, &t, &one)[0] == cases[i].value);
  }
  sw_arena_free(job.arena);
}

static void bytes_are_row_major_whatever_the_strides(void **state)
{
  (void)state;
  struct evaluation e = run_graph("%x : i16[2,3] = input\n%y : i16[3,2] strides=[1,3] = aten.t(%x)\nreturn %y\n",
                                  (const struct numbers[]){V(1, 2, 3, 4, 5, 6), {0}});
  size_t len;
  const unsigned char *bytes = sw_tensor_bytes(e.job.arena, &output(&e, 0)->tensor, &len);
  static const unsigned char want[] = {1, 0, 4, 0, 2, 0, 5, 0, 3, 0, 6, 0};
  assert_int_equal(len, sizeof want);
  assert_memory_equal(bytes, want, len);
  sw_arena_free(e.job.arena);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(float16_rounds_to_even_and_overflows_past_65519),
      cmocka_unit_test(bfloat16_keeps_8_bits),
      cmocka_unit_test(float8_formats_end_where_they_should),
      cmocka_unit_test(every_pattern_reads_and_writes_back),
      cmocka_unit_test(known_patterns_have_their_values),
      cmocka_unit_test(bytes_are_row_major_whatever_the_strides),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
