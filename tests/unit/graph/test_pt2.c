/* Archives and programs' JSON, made here entry by entry (reference: pt2.md). */
#include "graph_unit.h"

#include <zip.h>

struct entry {
  const char *name;
  const void *bytes;
  size_t len; /* 0: a string */
};

/* A zip of these entries, stored or deflated. libzip refuses names given twice, so `twice` renames the last entry in
 * the finished bytes to the one before it (of equal length). */
static char *make_zip(struct sw_job *job, const struct entry *e, int n, bool packed, bool twice, size_t *len)
{
  zip_error_t error;
  zip_source_t *s = zip_source_buffer_create(NULL, 0, 0, &error);
  zip_source_keep(s);
  zip_t *z = zip_open_from_source(s, ZIP_TRUNCATE, &error);
  assert_non_null(z);
  for (int i = 0; i < n; i++) {
    size_t size = e[i].len ? e[i].len : strlen(e[i].bytes);
    zip_int64_t k = zip_file_add(z, e[i].name, zip_source_buffer(z, e[i].bytes, size, 0), 0);
    assert_true(k >= 0);
    zip_set_file_compression(z, (zip_uint64_t)k, packed ? ZIP_CM_DEFLATE : ZIP_CM_STORE, 0);
  }
  assert_int_equal(zip_close(z), 0);
  zip_source_open(s);
  zip_source_seek(s, 0, SEEK_END);
  *len = (size_t)zip_source_tell(s);
  zip_source_seek(s, 0, SEEK_SET);
  char *bytes = sw_arena_alloc(job->arena, *len, 1);
  assert_int_equal(zip_source_read(s, bytes, *len), *len);
  zip_source_close(s);
  zip_source_free(s);
  size_t m = twice ? strlen(e[n - 1].name) : 0;
  for (size_t i = 0; twice && i + m <= *len; i++)
    if (!memcmp(bytes + i, e[n - 1].name, m))
      memcpy(bytes + i, e[n - 2].name, m);
  return bytes;
}

#define META(dtype, sizes, strides)                                                                                  \
  "{\"dtype\": " dtype ", \"sizes\": " sizes ", \"strides\": " strides                                               \
  ", \"storage_offset\": {\"as_int\": 0}, \"layout\": 7}"
#define N(n) "{\"as_int\": " #n "}"
#define T(name) "{\"as_tensor\": {\"name\": \"" name "\"}}"

/* y = (w + x) * 2 with w a parameter; `nodes`, `values` can be replaced. */
#define ADD                                                                                                          \
  "{\"target\": \"torch.ops.aten.add.Tensor\", \"inputs\": [{\"name\": \"self\", \"arg\": " T("p_w") ", \"kind\": 1}, " \
  "{\"name\": \"other\", \"arg\": " T("x") ", \"kind\": 1}], \"outputs\": [" T("add") "], \"name\": \"add\", "       \
  "\"metadata\": {\"stack_trace\": \"File \\\"/home/me/model.py\\\", line 12, in forward\\n    y = self.lin(x)\\n"   \
  "  File \\\"/site-packages/torch/nn/linear.py\\\", line 134, in forward\\n\", "                                    \
  "\"nn_module_stack\": \"L__self__,,M;L__self__lin,layers.0.lin,torch.nn.Linear\"}}"
#define MUL                                                                                                          \
  "{\"target\": \"torch.ops.aten.mul.Tensor\", \"inputs\": [{\"name\": \"self\", \"arg\": " T("add") ", \"kind\": 1}, " \
  "{\"name\": \"other\", \"arg\": {\"as_float\": \"-Infinity\"}, \"kind\": 1}], \"outputs\": [" T("mul") "]}"
#define F16_2x3 META("6", "[" N(2) ", " N(3) "]", "[" N(3) ", " N(1) "]")
#define VALUES "\"p_w\": " F16_2x3 ", \"x\": " F16_2x3 ", \"add\": " F16_2x3 ", \"mul\": " F16_2x3
#define PROGRAM(version, nodes, values, more_specs)                                                                  \
  "{\"graph_module\": {\"graph\": {\"inputs\": [" T("p_w") ", " T("x") "], \"outputs\": [" T("mul") "], \"nodes\": ["  \
  nodes "], \"tensor_values\": {" values "}, \"sym_int_values\": {}, \"sym_bool_values\": {}}, \"signature\": "      \
  "{\"input_specs\": [{\"parameter\": {\"arg\": {\"name\": \"p_w\"}, \"parameter_name\": \"layers.0.w\"}}, "         \
  "{\"user_input\": {\"arg\": " T("x") "}}" more_specs "], \"output_specs\": [{\"user_output\": {\"arg\": " T("mul") \
  "}}]}}, \"schema_version\": {\"major\": " version ", \"minor\": 20}, \"verifiers\": [\"ATEN\"], "                  \
  "\"range_constraints\": {}}"
#define GOOD PROGRAM("8", ADD ", " MUL, VALUES, "")

#define CONFIG(path, meta)                                                                                           \
  "{\"config\": {\"layers.0.w\": {\"path_name\": \"" path "\", \"is_param\": true, \"use_pickle\": false, "          \
  "\"tensor_meta\": " meta "}}}"
#define PICKLED "{\"config\": {\"layers.0.w\": {\"path_name\": \"weight_0\", \"use_pickle\": true, \"tensor_meta\": null}}}"
#define NO_CONFIG "{\"config\": {}}"

static const unsigned char weights[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};

/* The entries of a good archive; tests change some. */
struct parts {
  struct entry e[8];
  int n;
};

static struct parts good_parts(void)
{
  return (struct parts){{{"m/data/weights/weight_0", weights, sizeof weights},
                         {"m/data/weights/model_weights_config.json", CONFIG("weight_0", F16_2x3), 0},
                         {"m/data/constants/model_constants_config.json", NO_CONFIG, 0},
                         {"m/models/model.json", GOOD, 0},
                         {"m/archive_format", "pt2", 0},
                         {"m/archive_version", "0", 0},
                         {"m/byteorder", "little", 0}},
                        7};
}

static struct sw_graph *read_parts(struct sw_job *job, const struct parts *p)
{
  size_t len;
  char *bytes = make_zip(job, p->e, p->n, false, false, &len);
  return read_graph(job, bytes, len);
}

static void a_good_archive_reads(void **state)
{
  (void)state;
  struct sw_job job = unit_job();
  struct parts p = good_parts();
  struct sw_graph *g = read_parts(&job, &p);
  assert_non_null(g);
  assert_string_equal(g->form, "pt2");
  assert_string_equal(g->dialect, "ATEN");
  assert_int_equal(g->inputs.n, 2);
  const struct sw_input *w = &g->inputs.v[0];
  assert_int_equal(w->kind, SW_INPUT_PARAMETER);
  assert_string_equal(w->target, "layers.0.w");
  assert_int_equal(w->n_bytes, sizeof weights);
  assert_memory_equal(w->bytes, weights, sizeof weights);
  assert_int_equal(w->stride[0], 3);
  const struct sw_node *add = node_of(g, "add");
  assert_string_equal(add->source, "model.py:12"); /* not torch's own file */
  assert_string_equal(add->module, "layers.0.lin");
  assert_int_equal(add->args[0].value, w->value);
  const struct sw_node *mul = node_of(g, "mul"); /* a node without a name takes its result's */
  assert_true(mul->args[1].r < -1e308);
  assert_null(mul->source);
  sw_arena_free(job.arena);
}

static void the_programs_json_alone_reads_without_weights(void **state)
{
  (void)state;
  struct sw_job job = unit_job();
  struct sw_graph *g = read_graph(&job, " \n" GOOD, sizeof " \n" GOOD - 1);
  assert_non_null(g);
  assert_string_equal(g->form, "json");
  assert_null(g->inputs.v[0].bytes);
  assert_int_equal(g->inputs.v[0].record, -1);
  sw_arena_free(job.arena);
}

static void an_empty_record_means_unknown_weights(void **state)
{
  (void)state;
  struct sw_job job = unit_job();
  struct parts p = good_parts();
  p.e[0] = (struct entry){"m/data/weights/weight_0", "", 0};
  struct sw_graph *g = read_parts(&job, &p);
  assert_non_null(g);
  assert_null(g->inputs.v[0].bytes);
  assert_int_equal(g->inputs.v[0].record, -1);
  sw_arena_free(job.arena);
}

static void several_programs_are_told_apart(void **state)
{
  (void)state;
  struct sw_job job = unit_job();
  struct parts p = good_parts();
  p.e[p.n++] = (struct entry){"m/models/other.json", GOOD, 0};
  size_t len;
  char *bytes = make_zip(&job, p.e, p.n, true, false, &len);
  struct sw_programs all = {0};
  assert_int_equal(sw_graph_programs(&job, bytes, len, &all), SW_OK);
  assert_int_equal(all.names.n, 2);
  struct sw_graph *g = NULL;
  assert_int_equal(sw_graph_read(&job, "x", bytes, len, NULL, &g), SW_INVALID);
  assert_true(has_fault(&job, "it holds 2 programs: model, other", NULL));
  assert_int_equal(sw_graph_read(&job, "x", bytes, len, "third", &g), SW_INVALID);
  assert_true(has_fault(&job, "there is no program \"third\"; it holds model, other", NULL));
  job.faults.n = 0;
  assert_int_equal(sw_graph_read(&job, "x", bytes, len, "model", &g), SW_OK);
  sw_arena_free(job.arena);
}

/* -- archives that are refused -- */

static const struct {
  const char *name;
  struct entry change; /* replaces the entry of that name, or is added */
  const char *fault, *where;
} bad_archives[] = {
    {"format", {"m/archive_format", "pt3", 0}, "archive_format is not \"pt2\"", NULL},
    {"version", {"m/archive_version", "1", 0}, "archive_version is \"1\", this reader knows 0", NULL},
    {"big-endian", {"m/byteorder", "big", 0}, "byte order \"big\"", NULL},
    {"torchscript", {"m/constants.pkl", "x", 0}, "this is a TorchScript file", NULL},
    {"torch.save", {"m/data.pkl", "x", 0}, "this is a file of torch.save", NULL},
    {"outside", {"other/file", "x", 0}, "entry \"other/file\" is outside the folder m/", NULL},
    {"record", {"m/data/weights/model_weights_config.json", CONFIG("weight_9", F16_2x3), 0},
     "record data/weights/weight_9 of layers.0.w is missing", NULL},
    {"no record", {"m/data/weights/model_weights_config.json", NO_CONFIG, 0},
     "the archive has no record for layers.0.w", "/graph_module/signature/input_specs/0/parameter"},
    {"pickle", {"m/data/weights/model_weights_config.json", PICKLED, 0},
     "layers.0.w is stored as a pickle, which only Python can read", NULL},
    {"short", {"m/data/weights/weight_0", weights, 11}, "layers.0.w reaches past the end of its record of 11 bytes", NULL},
    {"stride", {"m/data/weights/model_weights_config.json",
                CONFIG("weight_0", META("6", "[" N(2) ", " N(3) "]", "[" N(9223372036854775807) ", " N(1) "]")), 0},
     "reaches past the end of its record", NULL},
    {"negative", {"m/data/weights/model_weights_config.json",
                  CONFIG("weight_0", META("6", "[" N(2) ", " N(3) "]", "[" N(-3) ", " N(1) "]")), 0},
     "reaches past the end of its record", NULL},
    {"dtype", {"m/data/weights/model_weights_config.json",
               CONFIG("weight_0", META("7", "[" N(2) ", " N(3) "]", "[" N(3) ", " N(1) "]")), 0},
     "has another dtype or size than the program says", NULL},
    {"config", {"m/data/weights/model_weights_config.json", "{\"config\": 3}", 0}, "/config: object expected", NULL},
};

static void each_bad_archive_says_why(void **state)
{
  (void)state;
  for (size_t i = 0; i < sizeof bad_archives / sizeof bad_archives[0]; i++) {
    struct sw_job job = unit_job();
    struct parts p = good_parts();
    int k = 0;
    while (k < p.n && strcmp(p.e[k].name, bad_archives[i].change.name))
      k++;
    p.e[k] = bad_archives[i].change;
    p.n += k == p.n;
    assert_null(read_parts(&job, &p));
    assert_true(has_fault(&job, bad_archives[i].fault, bad_archives[i].where));
    sw_arena_free(job.arena);
  }
}

static void duplicate_entries_are_refused(void **state)
{
  (void)state;
  struct sw_job job = unit_job();
  struct entry e[] = {{"m/one", "1", 0}, {"m/two", "2", 0}};
  size_t len;
  char *bytes = make_zip(&job, e, 2, false, true, &len);
  assert_null(read_graph(&job, bytes, len));
  assert_true(has_fault(&job, "two entries are named \"m/one\"", NULL));
  sw_arena_free(job.arena);
}

/* 64 MB of zeros pack a thousand to one. */
static void a_zip_bomb_is_refused_before_it_is_unpacked(void **state)
{
  (void)state;
  struct sw_job job = unit_job();
  struct parts p = good_parts();
  p.e[0].len = (size_t)64 << 20;
  p.e[0].bytes = sw_arena_alloc(job.arena, p.e[0].len, 1);
  size_t len;
  char *bytes = make_zip(&job, p.e, p.n, true, false, &len);
  assert_true(len < 100000);
  assert_null(read_graph(&job, bytes, len));
  assert_int_equal(job.worst, SW_LIMIT);
  assert_true(has_fault(&job, "unpacked size of \"m/data/weights/weight_0\" is 67108864, limit", NULL));
  sw_arena_free(job.arena);
}

static void every_truncation_is_a_fault(void **state)
{
  (void)state;
  struct sw_job job = unit_job();
  struct parts p = good_parts();
  size_t len;
  char *bytes = make_zip(&job, p.e, p.n, true, false, &len);
  for (size_t n = 4; n < len; n += 7) {
    struct sw_job one = unit_job();
    assert_null(read_graph(&one, bytes, n));
    sw_arena_free(one.arena);
  }
  sw_arena_free(job.arena);
}

static void a_broken_checksum_is_a_fault(void **state)
{
  (void)state;
  struct sw_job job = unit_job();
  struct parts p = good_parts();
  size_t len;
  char *bytes = make_zip(&job, p.e, p.n, false, false, &len);
  for (size_t i = 0; i + sizeof weights < len; i++)
    if (!memcmp(bytes + i, weights, sizeof weights))
      bytes[i + 3] ^= 1;
  assert_null(read_graph(&job, bytes, len));
  assert_true(has_fault(&job, "entry \"m/data/weights/weight_0\" can't be read", NULL));
  sw_arena_free(job.arena);
}

/* -- programs that are refused -- */

#define NODE(target, arg, result)                                                                                    \
  "{\"target\": \"" target "\", \"inputs\": [{\"name\": \"self\", \"arg\": " arg ", \"kind\": 1}], \"outputs\": [" result \
  "], \"name\": \"mul\"}"

static const struct {
  const char *name, *program, *fault, *where;
} bad_programs[] = {
    {"major", PROGRAM("9", ADD ", " MUL, VALUES, ""), "schema version 9.20, this reader knows version 8", "/schema_version"},
    {"order", PROGRAM("8", MUL ", " ADD, VALUES, ""), "mul reads add, a result of the later node add: a cycle or a wrong order", "mul"},
    {"dangling", PROGRAM("8", MUL, VALUES, ""), "add is read but nothing defines it",
     "/graph_module/graph/nodes/0/inputs/0/arg/as_tensor"},
    {"twice", PROGRAM("8", ADD ", " ADD ", " MUL, VALUES, ""), "the name add is defined twice",
     "/graph_module/graph/nodes/1/outputs/0/as_tensor"},
    {"no metadata", PROGRAM("8", ADD ", " MUL, "\"p_w\": " F16_2x3 ", \"x\": " F16_2x3 ", \"mul\": " F16_2x3, ""),
     "add is not in tensor_values", "add"},
    {"variant", PROGRAM("8", ADD ", " NODE("torch.ops.aten.neg.default", "{\"as_surprise\": 3}", T("mul")), VALUES, ""),
     "arguments of kind \"as_surprise\" are not supported", "/graph_module/graph/nodes/1/inputs/0/arg/as_surprise"},
    {"two variants", PROGRAM("8", ADD ", " NODE("torch.ops.aten.neg.default", "{\"as_int\": 3, \"as_none\": true}", T("mul")), VALUES, ""),
     "exactly one key", "/graph_module/graph/nodes/1/inputs/0/arg"},
    {"result", PROGRAM("8", ADD ", " NODE("torch.ops.aten.neg.default", T("add"), "{\"as_custom_obj\": {}}"), VALUES, ""),
     "results of kind \"as_custom_obj\" are not supported", "mul"},
    {"dtype", PROGRAM("8", ADD ", " MUL, "\"p_w\": " F16_2x3 ", \"x\": " F16_2x3 ", \"add\": "
     META("27", "[]", "[]") ", \"mul\": " F16_2x3, ""), "dtype number 27 is unknown", "/graph_module/graph/tensor_values/add"},
    {"overflow", PROGRAM("8", ADD ", " MUL, "\"p_w\": " F16_2x3 ", \"x\": " F16_2x3 ", \"add\": "
     META("6", "[" N(4294967296) ", " N(4294967296) "]", "[" N(4294967296) ", " N(1) "]") ", \"mul\": " F16_2x3, ""),
     "tensor add: its size in bytes does not fit 63 bits", "add"},
    {"negative", PROGRAM("8", ADD ", " MUL, "\"p_w\": " F16_2x3 ", \"x\": " F16_2x3 ", \"add\": "
     META("6", "[" N(-2) ", " N(3) "]", "[" N(3) ", " N(1) "]") ", \"mul\": " F16_2x3, ""),
     "tensor add: size of dim 0 is -2", "add"},
    {"rank", PROGRAM("8", ADD ", " MUL, "\"p_w\": " F16_2x3 ", \"x\": " F16_2x3 ", \"mul\": " F16_2x3 ", \"add\": "
     META("6", "[" N(1) "," N(1) "," N(1) "," N(1) "," N(1) "," N(1) "," N(1) "," N(1) "," N(1) "," N(1) "," N(1) ","
          N(1) "," N(1) "," N(1) "," N(1) "," N(1) "," N(1) "]", "[]"), ""),
     "tensor add has 17 dims, at most 16 are supported", "/graph_module/graph/tensor_values/add"},
    {"specs", PROGRAM("8", ADD ", " MUL, VALUES, ", {\"token\": {}}"), "3 input and 1 output specs for 2 inputs",
     "/graph_module/signature"},
    {"size", PROGRAM("8", ADD ", " MUL, "\"p_w\": " F16_2x3 ", \"x\": " F16_2x3 ", \"add\": "
     META("6", "[" N(2) ", " N(4) "]", "[" N(4) ", " N(1) "]") ", \"mul\": " F16_2x3, ""),
     "aten.add.Tensor gives size [2,3], but add is declared [2,4]", "add"},
    {"NUL", PROGRAM("8", ADD ", " NODE("torch.ops.aten.neg.default", "{\"as_string\": \"a\\u0000b\"}", T("mul")), VALUES, ""),
     "a string with \\u0000 in it", "/graph_module/graph/nodes/1/inputs/0/arg/as_string"},
    {"syntax", "{\"graph_module\": ", "program: line 1 column", NULL},
    {"duplicate key", "{\"graph_module\": {}, \"graph_module\": {}}", "duplicate", NULL},
    {"nothing", "{}", "object is missing", "/graph_module"},
};

static void each_bad_program_is_named_with_its_place(void **state)
{
  (void)state;
  for (size_t i = 0; i < sizeof bad_programs / sizeof bad_programs[0]; i++) {
    struct sw_job job = unit_job();
    assert_null(read_graph(&job, bad_programs[i].program, strlen(bad_programs[i].program)));
    assert_true(has_fault(&job, bad_programs[i].fault, bad_programs[i].where));
    sw_arena_free(job.arena);
  }
}

static void deep_json_is_refused(void **state)
{
  (void)state;
  struct sw_job job = unit_job();
  struct sw_buf b = {.arena = job.arena};
  for (int i = 0; i < 10000; i++)
    sw_buf_puts(&b, "{\"a\": ");
  assert_null(read_graph(&job, sw_buf_text(&b), b.n));
  assert_int_equal(job.worst, SW_LIMIT);
  assert_true(has_fault(&job, "nested deeper than 64", NULL));
  sw_arena_free(job.arena);
}

static void all_faults_of_a_program_are_reported(void **state)
{
  (void)state;
  static const char program[] =
      PROGRAM("8", NODE("torch.ops.aten.neg.default", T("nowhere"), T("mul")) ", "
                   NODE("torch.ops.aten.neg.default", "{\"as_surprise\": 3}", T("add")),
              "\"p_w\": " F16_2x3 ", \"x\": " META("99", "[]", "[]") ", \"add\": " F16_2x3 ", \"mul\": " F16_2x3, "");
  struct sw_job job = unit_job();
  assert_null(read_graph(&job, program, sizeof program - 1));
  assert_true(has_fault(&job, "nowhere is read but nothing defines it", NULL));
  assert_true(has_fault(&job, "as_surprise", NULL));
  assert_true(has_fault(&job, "dtype number 99 is unknown", NULL));
  sw_arena_free(job.arena);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_good_archive_reads),
      cmocka_unit_test(the_programs_json_alone_reads_without_weights),
      cmocka_unit_test(an_empty_record_means_unknown_weights),
      cmocka_unit_test(several_programs_are_told_apart),
      cmocka_unit_test(each_bad_archive_says_why),
      cmocka_unit_test(duplicate_entries_are_refused),
      cmocka_unit_test(a_zip_bomb_is_refused_before_it_is_unpacked),
      cmocka_unit_test(every_truncation_is_a_fault),
      cmocka_unit_test(a_broken_checksum_is_a_fault),
      cmocka_unit_test(each_bad_program_is_named_with_its_place),
      cmocka_unit_test(deep_json_is_refused),
      cmocka_unit_test(all_faults_of_a_program_are_reported),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
