/* Splits of every op and predicted time of every graph of the recorded plans, from their layouts, index expressions
 * and scratchpad addresses. The plans are not part of the source: the test looks for them in $SW_SHARED or in ../shared
 * beside the source, and says when they are not there. */
#include "../unit.h"

#include "base/files.h"
#include "base/json.h"
#include "base/map.h"
#include "base/options.h"
#include "compiler/plan/cost.h"
#include "compiler/plan/division.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct recorded {
  struct sw_job *job;
  struct sw_program program;
  struct sw_map storages; /* by buffer name */
  const char *where;
  int ops, skipped, different;
};

static const char *text(const json_t *o, const char *key)
{
  const char *s = json_string_value(json_object_get(o, key));
  return s ? s : "";
}

static int read_ints(const json_t *list, int64_t *out, int most)
{
  int n = (int)json_array_size(list);
  for (int i = 0; i < n && i < most; i++)
    out[i] = json_integer_value(json_array_get(list, (size_t)i));
  return n <= most ? n : -1;
}

/* A buffer with its device layout; -1 when it is not on the device. */
static int add_storage(struct recorded *r, const char *name, const json_t *tensor)
{
  struct sw_arena *a = r->job->arena;
  const json_t *from = json_object_get(tensor, "layout");
  if (!json_object_get(from, "device_size"))
    return -1;
  struct sw_storage *s = SW_PUSH(a, &r->program.storages);
  *s = (struct sw_storage){.name = sw_arena_strdup(a, name), .kind = SW_STORAGE_TEMPORARY, .input = -1};
  s->rank = read_ints(json_object_get(tensor, "size"), s->size, SW_MAX_RANK);
  read_ints(json_object_get(tensor, "stride"), s->stride, SW_MAX_RANK);
  struct sw_layout *l = SW_NEW(a, struct sw_layout);
  l->rank = read_ints(json_object_get(from, "device_size"), l->device_size, SW_MAX_DEVICE_RANK);
  read_ints(json_object_get(from, "stride_map"), l->stride_map, SW_MAX_DEVICE_RANK);
  for (int f = 0; f < SW_N_FORMATS; f++)
    if (!strcmp(sw_format_name((enum sw_format)f), text(from, "format")))
      l->format = (enum sw_format)f;
  for (int e = 0; e < SW_N_ARRANGEMENTS; e++)
    if (!strcmp(sw_arrangement_name((enum sw_arrangement)e), text(from, "arrangement")))
      l->arrangement = (enum sw_arrangement)e;
  s->layout = l;
  s->dtype = sw_dtype_from_text(text(tensor, "dtype"));
  if (!strncmp(name, "arg", 3))
    s->kind = SW_STORAGE_INPUT;
  if (json_object_get(json_object_get(tensor, "allocation"), "lx")) {
    struct sw_place *place = SW_NEW(a, struct sw_place);
    place->kind = SW_PLACE_LX;
    s->place = place;
  }
  sw_map_set_str(&r->storages, name, r->program.storages.n - 1);
  return r->program.storages.n - 1;
}

/* "4096*d0 + d2 + 64": steps per variable and an offset. A row number ("256*tmp0") makes it a gather. */
static struct sw_access read_index(const char *expr, int storage, const char *const *vars, int n_vars)
{
  struct sw_access x = {.storage = storage, .index_input = -1};
  while (*expr) {
    char *end;
    int64_t factor = strtoll(expr, &end, 10);
    bool has_factor = end != expr;
    if (!has_factor)
      factor = 1;
    expr = end;
    if (*expr == '*')
      expr++;
    size_t len = strcspn(expr, " +*");
    int v = 0;
    while (v < n_vars && (strlen(vars[v]) != len || strncmp(vars[v], expr, len) != 0))
      v++;
    if (!len)
      x.offset += factor;
    else if (v < n_vars)
      x.step[v] = factor;
    else
      x.index_input = 0, x.index_step = factor, x.index_range = 2;
    expr += len;
    expr += strspn(expr, " +");
  }
  return x;
}

static enum sw_device_op device_op(const char *kind)
{
  static const struct {
    const char *kind;
    enum sw_device_op op;
  } table[] = {{"reduction:batchmatmul", SW_OP_MATMUL},
               {"reduction:batchmatmulfp8", SW_OP_MATMULFP8},
               {"reduction:topkvalue", SW_OP_TOPKVALUE},
               {"reduction:topkindex", SW_OP_TOPKINDEX}};
  for (int i = 0; i < 4; i++)
    if (!strcmp(kind, table[i].kind))
      return table[i].op;
  return strncmp(kind, "reduction", 9) ? SW_OP_ADD : SW_OP_SUM;
}

/* Copies into a permuted destination are recorded with the splits of one index beside the loops of another. */
static bool splits_fit(const json_t *space, const json_t *splits)
{
  const char *name;
  json_t *n;
  json_object_foreach ((json_t *)space, name, n)
    if (json_integer_value(json_object_get(splits, name)) > json_integer_value(n))
      return false;
  return true;
}

/* One recorded plan (fp8 below a stick) holds buffers with a device dim of 0 and layouts made from them. */
static bool has_empty_dims(const struct recorded *r)
{
  for (int i = 0; i < r->program.storages.n; i++) {
    const struct sw_layout *l = r->program.storages.v[i].layout;
    for (int d = 0; d < l->rank; d++)
      if (!l->device_size[d])
        return true;
  }
  return false;
}

/* Adds the op to the program. False when it holds what an access here can't say (dynamic sizes, tiles). */
static bool read_op(struct recorded *r, const json_t *o, const char **vars)
{
  const json_t *space = json_object_get(o, "iteration_space");
  struct sw_op op = {.name = text(o, "name"), .op = device_op(text(o, "kind"))};
  int64_t output = sw_map_get_str(&r->storages, text(o, "buffer"));
  const char *target = json_string_value(json_object_get(o, "mutates"));
  if (target) {
    output = sw_map_get_str(&r->storages, target);
    op.role = SW_ROLE_WRITE;
  }
  if (json_object_get(o, "loop") || json_object_get(o, "dim_hints") || output < 0)
    return false;
  const char *name;
  json_t *n;
  json_object_foreach ((json_t *)space, name, n) {
    if (!json_is_integer(n) || op.n_loops == SW_MAX_LOOPS)
      return false;
    op.range[op.n_loops] = json_integer_value(n);
    vars[op.n_loops++] = name;
  }
  int reduced = 0;
  size_t i;
  json_t *read;
  json_array_foreach (json_object_get(o, "reduction_ranges"), i, n)
    reduced += json_integer_value(n) > 1;
  op.n_written = op.n_loops - reduced;
  const char *write = json_string_value(json_array_get(json_object_get(o, "write_index"), 0));
  op.out = read_index(write, (int)output, vars, op.n_loops);
  json_array_foreach (json_object_get(o, "reads"), i, read) {
    int64_t storage = sw_map_get_str(&r->storages, text(read, "buffer"));
    if (storage >= 0 && op.n_in < SW_MAX_INPUTS && json_object_get(read, "index"))
      op.in[op.n_in++] = read_index(text(read, "index"), (int)storage, vars, op.n_loops);
  }
  *SW_PUSH(r->job->arena, &r->program.ops) = op;
  return !has_empty_dims(r);
}

static void compare_op(struct recorded *r, const json_t *o, int cores)
{
  const char *vars[SW_MAX_LOOPS];
  if (!json_object_get(o, "splits"))
    return;
  if (!read_op(r, o, vars) || !splits_fit(json_object_get(o, "iteration_space"), json_object_get(o, "splits"))) {
    r->skipped++;
    return;
  }
  struct sw_options options;
  sw_options_init(&options);
  options.profile = SW_PROFILE_TORCH_SPYRE;
  options.cores = cores;
  struct sw_work w;
  int64_t split[SW_MAX_LOOPS];
  bool same = sw_work_of(r->job, &options, &r->program, &r->program.ops.v[r->program.ops.n - 1], &w) == SW_OK &&
              sw_divide(r->job, &w, split) == SW_OK;
  struct sw_buf got = {.arena = r->job->arena};
  for (int v = 0; same && v < w.n_vars; v++)
    sw_buf_printf(&got, " %s %d", vars[v], (int)split[v]);
  for (int v = 0; same && v < w.n_vars; v++)
    same &= split[v] == json_integer_value(json_object_get(json_object_get(o, "splits"), vars[v]));
  r->ops++;
  if (same)
    return;
  r->different++;
  char *recorded = json_dumps(json_object_get(o, "splits"), JSON_COMPACT);
  print_message("%s %s (%s):%s, recorded %s\n", r->where, text(o, "buffer"), text(o, "kind"),
                got.n ? sw_buf_text(&got) : " refused", recorded);
  free(recorded);
}

static void read_storages(struct recorded *r, const json_t *g)
{
  size_t k;
  json_t *x;
  json_array_foreach (json_object_get(g, "inputs"), k, x)
    add_storage(r, text(x, "name"), x);
  json_array_foreach (json_object_get(g, "ops"), k, x) {
    if (!json_is_string(json_object_get(x, "mutates")))
      add_storage(r, text(x, "buffer"), json_object_get(x, "out"));
  }
}

static void compare_splits(struct recorded *r, const json_t *plan, const json_t *g)
{
  const json_t *cores = json_object_get(json_object_get(plan, "config"), "sencores");
  size_t k;
  json_t *x;
  json_array_foreach (json_object_get(g, "ops"), k, x)
    compare_op(r, x, cores ? (int)json_integer_value(cores) : 32);
}

/* The model counts the no-op node of a destination as an op that writes it all, and host steps cut its runs. */
static bool has_borders(const json_t *g)
{
  size_t k;
  json_t *x;
  json_array_foreach (json_object_get(g, "groups"), k, x)
    if (!strncmp(text(x, "node"), "Nop", 3))
      return true;
  json_array_foreach (json_object_get(g, "ops"), k, x)
    if (!strcmp(text(x, "kind"), "host") || !strcmp(text(x, "kind"), "alloc"))
      return true;
  return false;
}

static void compare_time(struct recorded *r, const json_t *plan, const json_t *g)
{
  (void)plan;
  SW_VEC(struct sw_cost_op) costs = {0};
  double want = json_number_value(json_object_get(json_object_get(g, "predicted"), "total_us"));
  size_t k;
  json_t *x;
  if (has_borders(g))
    return;
  json_array_foreach (json_object_get(g, "ops"), k, x) {
    const char *vars[SW_MAX_LOOPS];
    if (strcmp(text(x, "class"), "ComputedBuffer") != 0)
      continue;
    if (!read_op(r, x, vars)) {
      r->skipped++;
      return;
    }
    struct sw_op *op = &r->program.ops.v[r->program.ops.n - 1];
    struct sw_op_plan *p = SW_NEW(r->job->arena, struct sw_op_plan);
    for (int v = 0; v < op->n_loops; v++) {
      const json_t *split = json_object_get(json_object_get(x, "splits"), vars[v]);
      p->split[v] = split ? json_integer_value(split) : 1;
    }
    p->cores = (int)sw_split_product(p->split, op->n_loops);
    op->plan = p;
    if (strncmp(text(x, "kind"), "reduction", 9) != 0)
      op->op = op->n_in == 1 ? SW_OP_IDENTITY : SW_OP_ADD;
    sw_cost_of(&r->program, op, true, SW_PUSH(r->job->arena, &costs));
  }
  double got = costs.n ? sw_kernel_time(r->job->arena, costs.v, costs.n).total / 1000 : 0;
  r->ops++;
  if (fabs(got - want) <= 1e-9 * want)
    return;
  r->different++;
  print_message("%s: %.9g us, recorded %.9g\n", r->where, got, want);
}

typedef void compare(struct recorded *, const json_t *plan, const json_t *graph);

static void compare_plan(struct sw_job *job, const char *path, const char *name, compare *what, struct recorded *sum)
{
  const char *bytes;
  size_t len, i;
  assert_int_equal(sw_file_read(job, path, 1 << 24, &bytes, &len), SW_OK);
  json_t *plan = sw_json_parse(job, "plan", bytes, len, 1000000), *g;
  assert_non_null(plan);
  bool joint = json_is_true(json_object_get(json_object_get(plan, "config"), "co_optimizing_lx_planning"));
  if (json_is_object(json_object_get(plan, "error")) || json_is_object(json_object_get(plan, "hint")) || joint)
    return;
  json_array_foreach (json_object_get(plan, "graphs"), i, g) {
    struct recorded r = {.job = job, .storages.arena = job->arena, .where = name};
    read_storages(&r, g);
    what(&r, plan, g);
    sum->ops += r.ops;
    sum->skipped += r.skipped;
    sum->different += r.different;
  }
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
  return strcmp((*a)->d_name, (*b)->d_name);
}

static void compare_all(compare *what, const char *things, int at_least)
{
  const char *shared = getenv("SW_SHARED");
  char folder[4096], path[8192];
  snprintf(folder, sizeof folder, "%s/reference/graphs", shared ? shared : SW_SOURCE_DIR "/../shared");
  struct dirent **names;
  struct recorded sum = {0};
  int n = scandir(folder, &names, NULL, by_name);
  if (n < 0) {
    print_message("skipped: no recorded plans at %s\n", folder);
    skip();
  }
  for (int i = 0; i < n; i++) {
    struct sw_job job = unit_job();
    snprintf(path, sizeof path, "%s/%s/plan.json", folder, names[i]->d_name);
    FILE *f = fopen(path, "r");
    if (f) {
      fclose(f);
      compare_plan(&job, path, names[i]->d_name, what, &sum);
    }
    sw_arena_free(job.arena);
    free(names[i]);
  }
  free(names);
  print_message("%d %s compared, %d different, %d left out (dynamic, tiled, hinted, inconsistent records)\n", sum.ops,
                things, sum.different, sum.skipped);
  assert_int_equal(sum.different, 0);
  assert_true(sum.ops >= at_least);
}

static void recorded_plans_have_these_splits(void **state)
{
  (void)state;
  compare_all(compare_splits, "ops", 1500);
}

static void recorded_plans_take_this_time(void **state)
{
  (void)state;
  compare_all(compare_time, "graphs", 130);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(recorded_plans_have_these_splits),
      cmocka_unit_test(recorded_plans_take_this_time),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
