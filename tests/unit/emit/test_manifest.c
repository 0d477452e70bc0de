#include "../unit.h"

#include "base/options.h"
#include "compiler/emit/emit.h"

#include <math.h>
#include <string.h>

static const struct sw_options options = {.lx_bytes = 1625344};

/* x + w * -inf, both [64,128], made up to have one of everything: kernel 0 multiplies, a host step takes the cumulative
 * sum of the left half, kernel 1 adds. */
static struct sw_program *one_of_everything(struct sw_job *job, struct sw_plan **plan_out)
{
  struct sw_arena *a = job->arena;
  struct sw_graph *g = SW_NEW(a, struct sw_graph);
  *SW_PUSH(a, &g->inputs) = (struct sw_input){.kind = SW_INPUT_PARAMETER, .name = "p_w", .target = "layer.w"};
  *SW_PUSH(a, &g->inputs) = (struct sw_input){.kind = SW_INPUT_USER, .name = "x"};
  struct sw_program *p = SW_NEW(a, struct sw_program);
  p->graph = g;
  static const struct sw_layout rows = {.rank = 3,
                                        .device_size = {2, 64, 64},
                                        .stride_map = {64, 128, 1},
                                        .format = SW_FORMAT_FP16};
  static const float table[2] = {1, 2};
  static const struct sw_storage storages[] = {
      {.name = "w", .kind = SW_STORAGE_PARAMETER, .dtype = SW_F16, .rank = 2, .size = {64, 128}, .stride = {128, 1},
       .input = 0, .layout = &rows, .has_pad_fill = true},
      {.name = "x", .kind = SW_STORAGE_INPUT, .dtype = SW_F16, .rank = 2, .size = {64, 128}, .stride = {128, 1},
       .input = 1, .layout = &rows},
      {.name = "-inf:f16", .kind = SW_STORAGE_SCALAR, .dtype = SW_F16, .input = -1, .fill = -INFINITY},
      {.name = "y", .kind = SW_STORAGE_TEMPORARY, .dtype = SW_F16, .rank = 2, .size = {64, 128}, .stride = {128, 1},
       .input = -1, .layout = &rows},
      {.name = "table", .kind = SW_STORAGE_CONSTANT, .dtype = SW_F32, .rank = 1, .size = {2}, .stride = {1}, .input = -1,
       .data = table, .n_bytes = 8, .host_only = true},
      {.name = "half", .kind = SW_STORAGE_TEMPORARY, .dtype = SW_F16, .rank = 2, .size = {64, 64}, .stride = {64, 1},
       .input = -1, .host_only = true, .is_output = true},
      {.name = "z", .kind = SW_STORAGE_TEMPORARY, .dtype = SW_F16, .rank = 2, .size = {64, 128}, .stride = {128, 1},
       .input = -1, .layout = &rows, .is_output = true},
      {.name = "unused", .kind = SW_STORAGE_TEMPORARY, .dtype = SW_F16, .input = -1},
  };
  for (size_t i = 0; i < sizeof storages / sizeof *storages; i++)
    *SW_PUSH(a, &p->storages) = storages[i];
  struct sw_plan *plan = SW_NEW(a, struct sw_plan);
  static const struct sw_op_plan first = {.split = {4, 1}, .cores = 4, .kernel = 0}, second = {
                                                                        .split = {1, 1}, .cores = 1, .kernel = 1};
#define READ(s, k) {.storage = s, .step = {k ? 128 : 0, k ? 1 : 0}, .index_input = -1}
  *SW_PUSH(a, &p->ops) = (struct sw_op){.name = "mul", .op = SW_OP_MUL, .n_loops = 2, .n_written = 2, .range = {64, 128},
                                        .n_in = 2, .in = {READ(0, 1), READ(2, 0)}, .out = READ(3, 1), .plan = &first};
  *SW_PUSH(a, &p->ops) = (struct sw_op){.name = "add", .op = SW_OP_ADD, .n_loops = 2, .n_written = 2, .range = {64, 128},
                                        .n_in = 2, .in = {READ(1, 1), READ(3, 1)}, .out = READ(6, 1), .plan = &second};
  struct sw_host_step *h = SW_PUSH(a, &p->host_steps);
  *h = (struct sw_host_step){.name = "cumsum", .target = "aten.cumsum.default", .why = "no device op"};
  *SW_PUSH(a, &h->args) = (struct sw_host_arg){
      .kind = SW_HOST_VIEW, .view = {.storage = 3, .rank = 2, .size = {64, 64}, .stride = {128, 1}}};
  *SW_PUSH(a, &h->args) = (struct sw_host_arg){.kind = SW_HOST_LITERAL, .literal = {.kind = SW_ARG_INT, .i = 1}};
  *SW_PUSH(a, &h->args) = (struct sw_host_arg){
      .kind = SW_HOST_LITERAL, .name = "dtype", .literal = {.kind = SW_ARG_DTYPE, .dtype = SW_F32}};
  *SW_PUSH(a, &h->args) = (struct sw_host_arg){
      .kind = SW_HOST_LITERAL, .name = "device", .literal = {.kind = SW_ARG_DEVICE, .s = "cpu"}};
  *SW_PUSH(a, &h->results) = (struct sw_view){.storage = 5, .rank = 2, .size = {64, 64}, .stride = {64, 1}};
  static const struct sw_step steps[] = {{false, 0}, {true, 0}, {false, 1}};
  for (int i = 0; i < 3; i++)
    *SW_PUSH(a, &p->steps) = steps[i];
  for (int i = 0; i < 2; i++) {
    struct sw_kernel *k = SW_PUSH(a, &plan->kernels);
    k->name = i ? "sdsc_fused_add_1" : "sdsc_fused_mul_0";
    *SW_PUSH(a, &k->ops) = i;
  }
  *SW_PUSH(a, &p->outputs) = (struct sw_program_output){
      .name = "z", .is_tensor = true, .dtype = SW_F16,
      .view = {.storage = 6, .rank = 2, .size = {128, 64}, .stride = {1, 128}}};
  *SW_PUSH(a, &p->outputs) = (struct sw_program_output){
      .name = "n", .literal = {.kind = SW_ARG_REAL, .r = -INFINITY}};
  *plan_out = plan;
  return p;
}

static const struct sw_file *find(const struct sw_files *f, const char *path)
{
  for (int i = 0; i < f->list.n; i++)
    if (!strcmp(f->list.v[i].path, path))
      return &f->list.v[i];
  fail_msg("no %s", path);
  return NULL;
}

static void contains(const struct sw_file *f, const char *text)
{
  /* Blanks and line ends do not matter here. */
  char *flat = test_malloc(f->len + 1);
  size_t n = 0;
  for (size_t i = 0; i < f->len; i++) {
    char c = ((const char *)f->bytes)[i];
    if (c != ' ' && c != '\n')
      flat[n++] = c;
  }
  flat[n] = 0;
  if (!strstr(flat, text))
    fail_msg("%s: no %s in %s", f->path, text, flat);
  test_free(flat);
}

static void the_manifest_names_buffers_steps_and_outputs(void **state)
{
  (void)state;
  struct sw_job job = unit_job();
  struct sw_plan *plan;
  struct sw_program *p = one_of_everything(&job, &plan);
  struct sw_files files = {0};
  assert_int_equal(sw_emit(&job, &options, p, plan, &files), SW_OK);
  const struct sw_file *m = find(&files, "manifest.json");
  contains(m, "{\"format\":\"stickwright.manifest/1\",\"lx_bytes\":1625344,\"symbols\":[],\"buffers\":[{\"name\":\"w\",\"kind\":\"parameter\",\"source\":"
              "\"layer.w\",\"dtype\":\"float16\",\"size\":[64,128],\"stride\":[128,1],\"layout\":{\"device_size\":[2,64,64]"
              ",\"stride_map\":[64,128,1],\"element_arrangement\":\"STANDARD\",\"format\":\"SEN169_FP16\"},\"fill\":0.0,"
              "\"bytes\":16384}");
  contains(m, "{\"name\":\"x\",\"kind\":\"input\",\"source\":\"x\"");
  contains(m, "{\"name\":\"-inf:f16\",\"kind\":\"constant\",\"source\":\"constants/0_-inf_f16.bin\",\"dtype\":\"float16\","
              "\"size\":[],\"stride\":[],\"layout\":{\"device_size\":[1,64],\"stride_map\":[-1,-1]");
  contains(m, "{\"name\":\"y\",\"kind\":\"intermediate\",\"source\":null");
  contains(m, "{\"name\":\"half\",\"kind\":\"output\",\"source\":null,\"dtype\":\"float16\",\"size\":[64,64],\"stride\":"
              "[64,1],\"layout\":null,\"fill\":null,\"bytes\":8192}");
  contains(m, "\"steps\":[{\"kernel\":\"bundle_0\",\"args\":[\"w\",\"-inf:f16\",\"y\"],\"symbols\":{}},"
              "{\"host\":\"aten.cumsum.default\",\"inputs\":[{\"buffer\":\"y\",\"size\":[64,64],\"stride\":[128,1],"
              "\"offset\":0},1],\"kwargs\":{\"dtype\":{\"dtype\":\"float32\"}},\"outputs\":[{\"buffer\":\"half\"}],"
              "\"why\":\"nodeviceop\"},{\"kernel\":\"bundle_1\",\"args\":[\"x\",\"y\",\"z\"],\"symbols\":{}}]");
  contains(m, "\"outputs\":[{\"name\":\"z\",\"buffer\":\"z\",\"dtype\":\"float16\",\"size\":[128,64],\"stride\":[1,128],"
              "\"offset\":0,\"mutates\":null},{\"name\":\"n\",\"value\":{\"float\":\"-inf\"}}]}");
  assert_null(strstr(sw_arena_strndup(job.arena, m->bytes, m->len), "unused"));
  sw_arena_free(job.arena);
}

/* float16 -inf is 0xFC00, little-endian. */
static void scalars_are_files_of_one_element(void **state)
{
  (void)state;
  struct sw_job job = unit_job();
  struct sw_plan *plan;
  struct sw_program *p = one_of_everything(&job, &plan);
  struct sw_files files = {0};
  assert_int_equal(sw_emit(&job, &options, p, plan, &files), SW_OK);
  const struct sw_file *f = find(&files, "constants/0_-inf_f16.bin");
  assert_int_equal(f->len, 2);
  assert_memory_equal(f->bytes, "\x00\xFC", 2);
  sw_arena_free(job.arena);
}

static void weights_say_how_parameters_are_laid_out(void **state)
{
  (void)state;
  struct sw_job job = unit_job();
  struct sw_plan *plan;
  struct sw_program *p = one_of_everything(&job, &plan);
  struct sw_files files = {0};
  assert_int_equal(sw_emit(&job, &options, p, plan, &files), SW_OK);
  contains(find(&files, "weights.json"),
           "{\"format\":\"stickwright.weights/1\",\"weights\":[{\"name\":\"layer.w\",\"buffer\":\"w\",\"dtype\":\"float16\","
           "\"size\":[64,128],\"stride\":[128,1],\"layout\":{\"device_size\":[2,64,64],\"stride_map\":[64,128,1],"
           "\"element_arrangement\":\"STANDARD\",\"format\":\"SEN169_FP16\"},\"dim_order\":[0,1],\"fill\":0.0}]}");
  /* [64,128] by columns: device_size [1,128,64], stride_map [8192,1,128], dim order 1,0 (layouts.md 1.3). */
  struct sw_layout columns;
  static const int order[] = {1, 0};
  assert_true(sw_layout_make(&columns, SW_FORMAT_FP16, SW_EA_STANDARD, 2, p->storages.v[0].size,
                             p->storages.v[0].stride, order, 2));
  p->storages.v[0].layout = &columns;
  files = (struct sw_files){0};
  sw_write_weights(&job, p, &files);
  contains(find(&files, "weights.json"), "\"device_size\":[1,128,64],\"stride_map\":[8192,1,128]");
  contains(find(&files, "weights.json"), "\"dim_order\":[1,0]");
  sw_arena_free(job.arena);
}

/* Columns 0..99 of 128 end inside the second stick. */
static void a_slice_that_ends_inside_a_stick_is_not_written(void **state)
{
  (void)state;
  struct sw_job job = unit_job();
  struct sw_plan *plan;
  struct sw_program *p = one_of_everything(&job, &plan);
  struct sw_files files = {0};
  p->ops.v[1].range[1] = 100;
  assert_int_equal(sw_emit(&job, &options, p, plan, &files), SW_UNSUPPORTED);
  assert_string_equal(job.faults.v[0].node, "add");
  assert_string_equal(job.faults.v[0].tensor, "z");
  assert_non_null(strstr(job.faults.v[0].detail, "elements 0..99 of 128"));
  sw_arena_free(job.arena);
}

static void equal_input_gives_equal_bytes(void **state)
{
  (void)state;
  struct sw_job job = unit_job();
  struct sw_plan *plan;
  struct sw_files a = {0}, b = {0};
  struct sw_program *p = one_of_everything(&job, &plan);
  assert_int_equal(sw_emit(&job, &options, p, plan, &a), SW_OK);
  p = one_of_everything(&job, &plan);
  assert_int_equal(sw_emit(&job, &options, p, plan, &b), SW_OK);
  assert_int_equal(a.list.n, b.list.n);
  for (int i = 0; i < a.list.n; i++) {
    assert_string_equal(a.list.v[i].path, b.list.v[i].path);
    assert_int_equal(a.list.v[i].len, b.list.v[i].len);
    assert_memory_equal(a.list.v[i].bytes, b.list.v[i].bytes, a.list.v[i].len);
  }
  sw_arena_free(job.arena);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_manifest_names_buffers_steps_and_outputs),
      cmocka_unit_test(scalars_are_files_of_one_element),
      cmocka_unit_test(weights_say_how_parameters_are_laid_out),
      cmocka_unit_test(a_slice_that_ends_inside_a_stick_is_not_written),
      cmocka_unit_test(equal_input_gives_equal_bytes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
