/* Reference bundles, run on the simulated card with random data, against the op's formula on the host.
 * data/superdsc holds copies of the reference's golden directories. */
#include "golden.h"

static void two_split_dims(void **state)
{
  (void)state;
  struct golden g = begin("03_add_4core_2x2");
  struct image_host *a = add_2d(&g, 128, 256), *b = add_2d(&g, 128, 256);
  add_2d(&g, 128, 256);
  assert_int_equal(run(&g), SW_OK);
  for (int i = 0; i < 128 * 256; i++)
    expect(&g, i, a->v[i] + b->v[i], 0);
  sw_arena_free(g.job.arena);
}

static void max_over_a_padded_stick_is_masked(void **state)
{
  (void)state;
  struct golden g = begin("33_max_stick_padded");
  struct image_host *a = add_2d(&g, 64, 100);
  add(&g, 1, (int64_t[]){64}, 3, (int64_t[]){1, 64, 64}, (int64_t[]){-1, 1, -1}, SIM_FP16);
  assert_int_equal(run(&g), SW_OK);
  for (int i = 0; i < 64; i++) {
    double most = -INFINITY;
    for (int j = 0; j < 100; j++)
      most = fmax(most, a->v[100 * i + j]);
    expect(&g, i, most, 0);
  }
  sw_arena_free(g.job.arena);
}

/* The recorded program names the wrong constant as mask, 0.01 where 0 belongs: a sum over 28 lanes of it is refused. */
static void wrong_mask_constant_is_reported(void **state)
{
  (void)state;
  struct golden g = begin("36_mean_stick_padded");
  add_2d(&g, 64, 100);
  add(&g, 1, (int64_t[]){64}, 3, (int64_t[]){1, 64, 64}, (int64_t[]){-1, 1, -1}, SIM_FP16);
  assert_int_equal(run(&g), SW_DIFFERENT);
  assert_non_null(strstr(g.job.faults.v[0].detail, "not neutral"));
  sw_arena_free(g.job.arena);
}

static void cores_that_share_a_reduced_dim_add_up(void **state)
{
  (void)state;
  struct golden g = begin("39_max_nonstick_padded");
  struct image_host *a = add_2d(&g, 8, 100);
  add(&g, 1, (int64_t[]){100}, 3, (int64_t[]){1, 2, 64}, (int64_t[]){-1, 64, 1}, SIM_FP16);
  assert_int_equal(run(&g), SW_OK);
  for (int j = 0; j < 100; j++) {
    double most = -INFINITY;
    for (int i = 0; i < 8; i++)
      most = fmax(most, a->v[100 * i + j]);
    expect(&g, j, most, 0);
  }
  sw_arena_free(g.job.arena);
}

static void matmul_with_k_split_over_cores(void **state)
{
  (void)state;
  struct golden g = begin("41_matmul_32core_ksplit");
  struct image_host *a = add_2d(&g, 64, 128), *b = add_2d(&g, 128, 256);
  add_2d(&g, 64, 256);
  assert_int_equal(run(&g), SW_OK);
  for (int i = 0; i < 64; i++)
    for (int j = 0; j < 256; j++) {
      double sum = 0;
      for (int k = 0; k < 128; k++)
        sum += a->v[128 * i + k] * b->v[256 * k + j];
      expect(&g, 256 * i + j, sum, fabs(sum) / 1024);
    }
  sw_arena_free(g.job.arena);
}

/* K = 100: the second operand has 128 rows, the last 28 zero. With poison there instead, the result is poison. */
static void padded_k_needs_zero_rows(void **state)
{
  (void)state;
  for (int zero = 0; zero < 2; zero++) {
    struct golden g = begin("43_matmul_padded");
    struct image_host *a = add_2d(&g, 65, 100), *b = add_2d(&g, 128, 70);
    add_2d(&g, 65, 70);
    for (int i = 100 * 70; i < 128 * 70; i++) {
      b->v[i] = 0;
      b->undefined[i] = !zero;
    }
    assert_int_equal(run(&g), SW_OK);
    double sum = 0;
    for (int k = 0; k < 100; k++)
      sum += a->v[100 * 3 + k] * b->v[70 * k + 5];
    if (zero)
      expect(&g, 70 * 3 + 5, sum, fabs(sum) / 1024);
    else
      assert_true(g.host[2].undefined[70 * 3 + 5]);
    sw_arena_free(g.job.arena);
  }
}

static void restickify_with_both_dims_padded(void **state)
{
  (void)state;
  struct golden g = begin("29_restickify_padded");
  struct image_host *a =
      add(&g, 2, (int64_t[]){100, 130}, 3, (int64_t[]){2, 130, 64}, (int64_t[]){8320, 1, 130}, SIM_FP16);
  add_2d(&g, 100, 130);
  assert_int_equal(run(&g), SW_OK);
  for (int i = 0; i < 100 * 130; i++)
    expect(&g, i, a->v[i], 0);
  sw_arena_free(g.job.arena);
}

static void softmax_through_the_scratchpad(void **state)
{
  (void)state;
  struct golden g = begin("50_lx_softmax_chain");
  struct image_host *a = add_2d(&g, 64, 256);
  add_2d(&g, 64, 256);
  assert_int_equal(run(&g), SW_OK);
  for (int i = 0; i < 64; i++) {
    double sum = 0;
    for (int j = 0; j < 256; j++)
      sum += exp(a->v[256 * i + j] - 2);
    for (int j = 0; j < 256; j++)
      expect(&g, 256 * i + j, exp(a->v[256 * i + j] - 2) / sum, 2e-4);
  }
  sw_arena_free(g.job.arena);
}

static void layer_norm_chain(void **state)
{
  (void)state;
  struct golden g = begin("70_layernorm_chain");
  struct image_host *x = add_2d(&g, 64, 256);
  struct image_host *w = add(&g, 1, (int64_t[]){256}, 3, (int64_t[]){1, 4, 64}, (int64_t[]){-1, 64, 1}, SIM_FP16);
  struct image_host *b = add(&g, 1, (int64_t[]){256}, 3, (int64_t[]){1, 4, 64}, (int64_t[]){-1, 64, 1}, SIM_FP16);
  add_2d(&g, 64, 256);
  assert_int_equal(run(&g), SW_OK);
  for (int i = 0; i < 64; i++) {
    double mean = 0, square = 0;
    for (int j = 0; j < 256; j++) {
      mean += x->v[256 * i + j] / 256;
      square += x->v[256 * i + j] * x->v[256 * i + j] / 256;
    }
    for (int j = 0; j < 256; j++)
      expect(&g, 256 * i + j, (x->v[256 * i + j] - mean) / sqrt(square - mean * mean + 1e-5) * w->v[j] + b->v[j], 0.02);
  }
  sw_arena_free(g.job.arena);
}

static void gather_reads_rows_by_number(void **state)
{
  (void)state;
  struct golden g = begin("81_gather_1d_index_exp");
  struct image_host *index = add(&g, 1, (int64_t[]){32}, 3, (int64_t[]){1, 1, 32}, (int64_t[]){32, -1, 1}, SIM_INT32);
  struct image_host *x = add(&g, 2, (int64_t[]){128, 256}, 3, (int64_t[]){128, 4, 64}, (int64_t[]){256, 64, 1}, SIM_FP16);
  add_2d(&g, 32, 256);
  for (int i = 0; i < 32; i++)
    index->v[i] = (i * 37) % 128;
  assert_int_equal(run(&g), SW_OK);
  for (int i = 0; i < 32; i++)
    for (int j = 0; j < 256; j++)
      expect(&g, 256 * i + j, exp(x->v[256 * ((i * 37) % 128) + j]), 0.01);
  index->v[5] = 128;
  g.job.worst = SW_OK;
  assert_int_equal(run(&g), SW_DIFFERENT);
  sw_arena_free(g.job.arena);
}

static void nested_loops_move_their_tensors(void **state)
{
  (void)state;
  struct golden g = begin("90_loop_nested_2x4");
  struct image_host *a = add_2d(&g, 1024, 4096), *b = add_2d(&g, 1024, 4096), *c = add_2d(&g, 1024, 4096);
  add_2d(&g, 1024, 4096);
  assert_int_equal(run(&g), SW_OK);
  for (int i = 0; i < 1024 * 4096; i += 97)
    expect(&g, i, (a->v[i] + b->v[i]) * c->v[i], 0);
  sw_arena_free(g.job.arena);
}

/* fp16 to fp32 interleaves lanes; the host undoes it by the tensor's arrangement. */
static void cast_changes_the_order_in_a_stick(void **state)
{
  (void)state;
  struct golden g = begin("60_dl16tofp32");
  struct image_host *a = add_2d(&g, 64, 128);
  add(&g, 2, (int64_t[]){64, 128}, 3, (int64_t[]){4, 64, 32}, (int64_t[]){32, 128, 1}, SIM_FP32);
  g.image[1].layout.arrangement = "DL16_TO_FP32";
  assert_int_equal(run(&g), SW_OK);
  for (int i = 0; i < 64 * 128; i++)
    expect(&g, i, a->v[i], 0);
  sw_arena_free(g.job.arena);
}

/* [2,64,16,16] pooled by 2 x 2; memory is [row, tap row, column, tap column, image, channel]. */
static void average_pool(void **state)
{
  (void)state;
  struct golden g = begin("A0_avgpool_2x2");
  struct image_host *x = add_flat(&g, 16 * 16 * 2 * 64, SIM_FP16);
  add_flat(&g, 8 * 8 * 2 * 64, SIM_FP16);
  assert_int_equal(run(&g), SW_OK);
  for (int i = 0; i < 8; i++)
    for (int j = 0; j < 8; j++)
      for (int c = 0; c < 128; c++) { /* image and channel */
        double sum = 0;
        for (int k = 0; k < 4; k++)
          sum += x->v[((2 * i + k / 2) * 16 + 2 * j + k % 2) * 128 + c];
        expect(&g, (i * 8 + j) * 128 + c, sum / 4, 0);
      }
  sw_arena_free(g.job.arena);
}

/* [2,64,10,10] with [128,64,3,3]: 8 cores, rows in 4 slices, output channels in 2. */
static void convolution(void **state)
{
  (void)state;
  struct golden g = begin("A2_conv2d_3x3");
  struct image_host *x = add_flat(&g, 10 * 10 * 2 * 64, SIM_FP16), *w = add_flat(&g, 9 * 2 * 64 * 64, SIM_FP16);
  add_flat(&g, 8 * 8 * 2 * 2 * 64, SIM_FP16);
  assert_int_equal(run(&g), SW_OK);
  for (int i = 0; i < 8; i++)
    for (int j = 0; j < 8; j++)
      for (int o = 0; o < 128; o += 5) {
        double sum = 0;
        for (int k = 0; k < 9; k++)
          for (int c = 0; c < 64; c++)
            sum += x->v[(((i + k / 3) * 10 + j + k % 3) * 2 + 1) * 64 + c] * w->v[((k * 2 + o / 64) * 64 + c) * 64 + o % 64];
        expect(&g, ((int64_t)((i * 8 + j) * 2 + o / 64) * 2 + 1) * 64 + o % 64, sum, fabs(sum) / 1024 + 1e-3);
      }
  sw_arena_free(g.job.arena);
}

static void depthwise_convolution(void **state)
{
  (void)state;
  struct golden g = begin("A4_depthwise_conv2d");
  struct image_host *x = add_flat(&g, 10 * 10 * 2 * 64, SIM_FP16), *w = add_flat(&g, 9 * 64, SIM_FP16);
  add_flat(&g, 8 * 8 * 2 * 64, SIM_FP16);
  assert_int_equal(run(&g), SW_OK);
  for (int i = 0; i < 8; i++)
    for (int j = 0; j < 8; j++)
      for (int c = 0; c < 128; c++) {
        double sum = 0;
        for (int k = 0; k < 9; k++)
          sum += x->v[((i + k / 3) * 10 + j + k % 3) * 128 + c] * w->v[k * 64 + c % 64];
        expect(&g, (i * 8 + j) * 128 + c, sum, fabs(sum) / 1024 + 1e-3);
      }
  sw_arena_free(g.job.arena);
}

/* The four largest of 256 rows, for each of 64 columns. */
static void largest_values(void **state)
{
  (void)state;
  struct golden g = begin("75_topkvalue");
  struct image_host *x = add_flat(&g, 256 * 64, SIM_FP16);
  add_flat(&g, 4 * 64, SIM_FP16);
  for (int r = 0; r < 256; r++) /* all different in a column: 7 and 256 have no common factor */
    for (int c = 0; c < 64; c++)
      x->v[r * 64 + c] = (r * 7 + c) % 256;
  assert_int_equal(run(&g), SW_OK);
  for (int k = 0; k < 4; k++)
    for (int c = 0; c < 64; c++)
      expect(&g, k * 64 + c, 255 - k, 0);
  sw_arena_free(g.job.arena);
}

/* 32 rows of 256 go to rows of a table of 128; the other rows stay as they were: never written. */
static void scatter_writes_rows_by_number(void **state)
{
  (void)state;
  struct golden g = begin("83_scatter");
  struct image_host *index = add_flat(&g, 32, SIM_INT32), *x = add_2d(&g, 32, 256);
  add(&g, 2, (int64_t[]){128, 256}, 3, (int64_t[]){128, 4, 64}, (int64_t[]){256, 64, 1}, SIM_FP16);
  for (int i = 0; i < 32; i++)
    index->v[i] = (i * 37 + 5) % 128;
  assert_int_equal(run(&g), SW_OK);
  for (int i = 0; i < 32; i++)
    for (int j = 0; j < 256; j++)
      expect(&g, (i * 37 + 5) % 128 * 256 + j, x->v[256 * i + j], 0);
  assert_true(g.host[2].undefined[6 * 256]); /* 6 is no row number: 37 i = 1 mod 128 has i = 45 */
  sw_arena_free(g.job.arena);
}

/* A weight in sticks of two dims: 2 rows of 64 columns each. Cores halve the columns. */
static void fp8_matmul_with_sticks_of_two_dims(void **state)
{
  (void)state;
  struct golden g = begin("64_batchmatmulfp8");
  struct image_host *x = add(&g, 2, (int64_t[]){64, 256}, 3, (int64_t[]){2, 64, 128}, (int64_t[]){128, 256, 1}, SIM_FP8);
  struct image_host *w = add_flat(&g, 256 * 256, SIM_FP8);
  add_2d(&g, 64, 256);
  assert_int_equal(run(&g), SW_OK);
  for (int i = 0; i < 64; i += 7)
    for (int j = 0; j < 256; j++) {
      double sum = 0;
      for (int k = 0; k < 256; k++)
        sum += x->v[256 * i + k] * w->v[((j / 64 * 128) + k / 2) * 128 + k % 2 * 64 + j % 64];
      expect(&g, 256 * i + j, sum, fabs(sum) / 1024 + 1e-3);
    }
  sw_arena_free(g.job.arena);
}

/* Quantising to fp8 and back; eighths up to 2 have at most 4 bits. */
static void fp8_there_and_back(void **state)
{
  (void)state;
  static const char *const folders[] = {"63_qfp8ch", "65_fp8todl16"};
  for (int k = 0; k < 2; k++) {
    struct golden g = begin(folders[k]);
    struct image_host *x = NULL;
    for (int n = 0; n < 2; n++) {
      int64_t e = n == k ? 64 : 128;
      struct image_host *h = add(&g, 2, (int64_t[]){64, 256}, 3, (int64_t[]){256 / e, 64, e}, (int64_t[]){e, 256, 1},
                                 e == 64 ? SIM_FP16 : SIM_FP8);
      x = n ? x : h;
    }
    assert_int_equal(run(&g), SW_OK);
    for (int i = 0; i < 64 * 256; i++)
      expect(&g, i, x->v[i], 0);
    sw_arena_free(g.job.arena);
  }
}

/* Known pairs of the reference (superdsc.md 6.4) and the ends of the range. */
static void dl16_numbers(void **state)
{
  (void)state;
  static const struct {
    double v;
    unsigned bits;
  } pairs[] = {{0, 0},        {1, 15872},        {0.00390625, 11776}, {1e-5, 7327},     {1.0 / 2880, 9944}, {0.01, 12431},
               {0.25, 14848}, {-INFINITY, 65535}, {-0.25, 47616},     {1e12, 0x7FFF}, {1e-12, 0},       {NAN, 0x7FFF}};
  for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
    if (sim_dl16_bits(pairs[i].v) != pairs[i].bits)
      fail_msg("%g is %u, %u expected", pairs[i].v, sim_dl16_bits(pairs[i].v), pairs[i].bits);
  assert_true(sim_dl16_value(12431) == 0.0099945068359375);
  for (unsigned bits = 1; bits < 0x7FFF; bits++)
    assert_int_equal(sim_dl16_bits(sim_dl16_value(bits)), bits);
}

/* 1 + 1/1024 is a half, not a DL16; 200,000 is a DL16, not a half. */
static void a_card_of_dl16_has_another_step_and_range(void **state)
{
  (void)state;
  for (int dl16 = 0; dl16 < 2; dl16++) {
    struct golden g = begin("03_add_4core_2x2");
    for (int i = 0; i < 3; i++) {
      struct image_host *h = add_2d(&g, 128, 256);
      h->v[0] = i ? 0 : 1 + 1.0 / 1024;
      h->v[1] = 100000.0 * (dl16 ? 1 : 0.5);
      g.args[i].memory->is_dl16 = dl16;
    }
    assert_int_equal(run(&g), SW_OK);
    expect(&g, 0, dl16 ? 1 + 1.0 / 512 : 1 + 1.0 / 1024, 0); /* half away from zero */
    if (dl16)
      expect(&g, 1, 200000, 200);
    else
      assert_true(isinf(g.host[2].v[1]));
    sw_arena_free(g.job.arena);
  }
}

/* Two cores of one execute have no order. */
static void a_core_must_not_read_what_another_writes(void **state)
{
  (void)state;
  struct golden g = begin("03_add_4core_2x2");
  add_2d(&g, 128, 256);
  add_2d(&g, 128, 256);
  add_2d(&g, 128, 256);
  struct sim_memory *m = g.args[0].memory;
  struct sim_value v;
  assert_int_equal(sim_store(m, 0, SIM_FP16, 64 + 1, (struct sim_value){1, false}), SIM_FINE);
  assert_int_equal(sim_load(m, 0, SIM_FP16, 64 + 1, &v), SIM_FINE);
  assert_int_equal(sim_load(m, 0, SIM_FP16, 64 + 2, &v), SIM_RACE);
  assert_int_equal(sim_load(m, 0, SIM_FP16, 128 + 2, &v), SIM_FINE);
  assert_int_equal(sim_store(m, 0, SIM_FP16, 128 + 1, v), SIM_RACE);
  assert_int_equal(sim_load(m, 128 * 256 * 2, SIM_FP16, 128 + 2, &v), SIM_OUTSIDE);
  sw_arena_free(g.job.arena);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(two_split_dims),
      cmocka_unit_test(max_over_a_padded_stick_is_masked),
      cmocka_unit_test(wrong_mask_constant_is_reported),
      cmocka_unit_test(cores_that_share_a_reduced_dim_add_up),
      cmocka_unit_test(matmul_with_k_split_over_cores),
      cmocka_unit_test(padded_k_needs_zero_rows),
      cmocka_unit_test(restickify_with_both_dims_padded),
      cmocka_unit_test(softmax_through_the_scratchpad),
      cmocka_unit_test(layer_norm_chain),
      cmocka_unit_test(gather_reads_rows_by_number),
      cmocka_unit_test(nested_loops_move_their_tensors),
      cmocka_unit_test(cast_changes_the_order_in_a_stick),
      cmocka_unit_test(average_pool),
      cmocka_unit_test(convolution),
      cmocka_unit_test(depthwise_convolution),
      cmocka_unit_test(largest_values),
      cmocka_unit_test(scatter_writes_rows_by_number),
      cmocka_unit_test(dl16_numbers),
      cmocka_unit_test(a_card_of_dl16_has_another_step_and_range),
      cmocka_unit_test(fp8_matmul_with_sticks_of_two_dims),
      cmocka_unit_test(fp8_there_and_back),
      cmocka_unit_test(a_core_must_not_read_what_another_writes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
