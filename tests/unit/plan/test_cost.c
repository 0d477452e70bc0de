#include "cases.h"

#include "compiler/layout/burst.h"
#include "compiler/plan/cost.h"

#include <math.h>

static struct sw_cost_op op_of(double read, double written, int n_in)
{
  struct sw_cost_op op = {.cores = 32, .n_in = n_in};
  for (int i = 0; i < n_in; i++)
    op.in[i] = (struct sw_cost_arg){.storage = i, .is_graph_input = true, .bytes = read / n_in};
  op.out = (struct sw_cost_arg){.storage = n_in, .bytes = written};
  return op;
}

static void set_matmul(struct sw_cost_op *op, double b, double m, double k, double n, int ms, int ns, int ks,
                       double rate)
{
  op->is_matmul = true;
  op->cores = ms * ns * ks;
  op->matmul = (struct sw_matmul_work){.macs = b * m * k * n,
                                       .rows = m / ms,
                                       .cols = n / ns,
                                       .m_split = ms,
                                       .n_split = ns,
                                       .m = m,
                                       .n = n,
                                       .operand_bytes = 2 * k * (m + n),
                                       .rate = rate};
}

/* 4096 x 2048 by 2048 x 1024 in 8 tiles of rows, 64 of them a core (m 8, n 4): B is fetched in every tile. */
static void describe_tiled_matmul(struct sw_cost_op *op)
{
  set_matmul(op, 1, 4096, 2048, 1024, 8, 4, 1, 1140);
  op->matmul.rows = op->tile.rows = 64;
  op->tile.output = true;
  op->tile.cols = 2048;
  op->tile.element_bytes = 2;
  op->tile.again = 7.0 * 2048 * 1024 * 2;
}

/* The op that a case's name describes. */
static void describe(const json_t *c, struct sw_cost_op *op)
{
  const char *id = get_text(c, "id");
  int a = 0, b = 0, d = 0, m = 1, n = 1, k = 1, batch = 1;
  *op = op_of((double)get_int(c, "read_bytes"), (double)get_int(c, "write_bytes"), 1);
  if (!strcmp(id, "mm_rowtiled8_4096x2048x1024")) {
    describe_tiled_matmul(op);
  } else if (sscanf(id, "softmax_tiled_%dx%d_T%d", &a, &b, &d) == 3) {
    op->tile = (struct sw_tile_work){.output = true, .rows = a / 32.0 / d, .cols = b, .element_bytes = 2};
  } else if (sscanf(id, "pw_%dR", &n) == 1) {
    *op = op_of((double)get_int(c, "read_bytes"), (double)get_int(c, "write_bytes"), n);
  } else if (sscanf(id, "rowsum_%dx%d_c%d", &a, &b, &op->cores) == 3) {
    op->is_reduction = true;
    op->in[0].rows = a;
  } else if (!strncmp(id, "colsum", 6)) {
    op->is_reduction = true;
    op->rate.traffic = SW_TRAFFIC_REDUCE_OUTER;
  } else if (!strncmp(id, "restickify", 10)) {
    op->rate.traffic = SW_TRAFFIC_RESTICKIFY;
  } else if (sscanf(id, "rowbcast_%dx%d", &a, &b) == 2 || sscanf(id, "scalaradd_%dx%d", &a, &b) == 2) {
    op->rate.traffic = SW_TRAFFIC_BROADCAST;
    op->rate.row_operand = id[0] == 'r';
  } else if (sscanf(id, "transpose_outer_M%d_%dx%d", &d, &a, &b) == 3) {
    op->rate.traffic = SW_TRAFFIC_TRANSPOSE;
  } else if (sscanf(id, "cat1_%dx%d", &a, &b) == 2) {
    op->rate.traffic = SW_TRAFFIC_CONCAT;
  } else if (sscanf(id, "cat0_%dx%d", &a, &b) == 2) {
    op->rate.traffic = SW_TRAFFIC_SCATTER;
  } else if (sscanf(id, "mm_%dx%dx%d_m%d_n%d_k%d", &a, &b, &d, &m, &n, &k) == 6) {
    set_matmul(op, 1, a, b, d, m, n, k, 1140);
  } else if (sscanf(id, "bmm_default_B%d_%dx%dx%d", &batch, &a, &b, &d) == 4) {
    set_matmul(op, batch, a, b, d, 8, 4, 1, (double)get_int(c, "mac_rate"));
  } else if (sscanf(id, "bmm3d2d_B%d_%dx%dx%d", &batch, &a, &b, &d) == 4) {
    set_matmul(op, batch, a, b, d, 4, 8, 1, (double)get_int(c, "mac_rate"));
  } else if (strncmp(id, "softmax_fused", 13) != 0) {
    fail_msg("%s: what is it?", id);
  }
  op->rate.rows = a;
  op->rate.cols = b;
  op->rate.outer = d;
}

static void recorded_kernels_take_the_recorded_time(void **state)
{
  (void)state;
  struct sw_job job = unit_job();
  json_t *cases = cases_of(&job, "kernel_cost");
  size_t i;
  json_t *c;
  int n = 0;
  json_array_foreach (cases, i, c) {
    struct sw_cost_op op;
    describe(c, &op);
    double got = sw_kernel_time(job.arena, &op, 1).total / 1000;
    double want = json_number_value(json_object_get(c, "predicted_us"));
    if (fabs(got - want) > 0.0006)
      fail_msg("%s: %.4f us, expected %.3f", get_text(c, "id"), got, want);
    n++;
  }
  assert_int_equal(n, 52);
  sw_arena_free(job.arena);
}

/* Two ops that read the same graph input fetch it once: 3 MiB read and written by both 2 MiB. */
static void shared_inputs_are_fetched_once(void **state)
{
  (void)state;
  struct sw_job job = unit_job();
  double mib = 1 << 20;
  struct sw_cost_op ops[2] = {op_of(mib, mib, 1), op_of(mib, mib, 1)};
  double both = sw_kernel_time(job.arena, ops, 2).total;
  assert_true(fabs(both - (3 * mib / 150 + 0.00574 * mib)) < 1e-6);
  ops[1].in[0].is_graph_input = false;
  assert_true(fabs(sw_kernel_time(job.arena, ops, 2).total - (4 * mib / 150 + 0.00574 * 2 * mib)) < 1e-6);
  sw_arena_free(job.arena);
}

static void few_cores_reach_part_of_the_rate(void **state)
{
  (void)state;
  assert_true(sw_cores_factor(&sw_spyre, 1) == 0.11 && sw_cores_factor(&sw_spyre, 16) == 0.54 && sw_cores_factor(&sw_spyre, 32) == 1);
  assert_true(fabs(sw_cores_factor(&sw_spyre, 24) - (0.54 + 0.46 * log2(1.5))) < 1e-12);
}

/* The table of cost-model.md 10.3. */
static void short_runs_wait_for_their_requests(void **state)
{
  (void)state;
  static const struct {
    double mib, run;
    int cores;
    double us;
  } rows[] = {{2, 4096, 32, 36.16}, {2, 512, 32, 36.16},   {2, 256, 32, 48.80},    {2, 128, 32, 79.52},
              {2, 256, 8, 79.52},   {2, 4096, 1, 52.43},   {32, 4096, 32, 578.52}, {32, 128, 32, 1272.30}};
  for (int i = 0; i < 8; i++) {
    struct sw_burst b = {rows[i].mib * (1 << 20), rows[i].run, rows[i].cores, NULL};
    assert_true(fabs((2 * b.bytes / 116 + sw_burst_extra_ns(&b, true, false)) / 1000 - rows[i].us) < 0.006);
  }
}

static void a_run_ends_where_a_core_reads_in_part(void **state)
{
  (void)state;
  struct sw_work w = plain_work(32);
  struct dim d[2] = {{4096, add_var(&w, "c0", 4096)}, {2048, add_var(&w, "c1", 2048)}};
  w.in[0] = tensor_of("x", d, 2, 1, 64);
  assert_int_equal(sw_work_run(&w, &w.in[0], (int64_t[]){1, 1}), 4096 * 2048 * 2);
  assert_int_equal(sw_work_run(&w, &w.in[0], (int64_t[]){32, 1}), 128 * 128);
  assert_int_equal(sw_work_run(&w, &w.in[0], (int64_t[]){1, 32}), 4096 * 128);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(recorded_kernels_take_the_recorded_time),
      cmocka_unit_test(shared_inputs_are_fetched_once),
      cmocka_unit_test(few_cores_reach_part_of_the_rate),
      cmocka_unit_test(short_runs_wait_for_their_requests),
      cmocka_unit_test(a_run_ends_where_a_core_reads_in_part),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
