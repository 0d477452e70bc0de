/* Recorded whole-graph plans of the reference: accesses, layouts and splits in, its op specs out. The data are cut down
 * from its plan files; SW_RECORDED names another file of the same form to run over. */
#include "../unit.h"

#include "base/files.h"
#include "base/json.h"
#include "compiler/emit/emit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int ints(const json_t *list, int64_t *out)
{
  int n = (int)json_array_size(list);
  for (int i = 0; i < n; i++)
    out[i] = json_integer_value(json_array_get(list, (size_t)i));
  return n;
}

static const char *text(const json_t *o, const char *key)
{
  return json_string_value(json_object_get(o, key));
}

static int64_t number(const json_t *o, const char *key, int64_t def)
{
  const json_t *v = json_object_get(o, key);
  return v ? json_integer_value(v) : def;
}

static void read_storage(struct sw_job *job, const json_t *o, struct sw_storage *s)
{
  struct sw_layout *l = SW_NEW(job->arena, struct sw_layout);
  struct sw_place *p = SW_NEW(job->arena, struct sw_place);
  s->name = text(o, "name");
  s->input = -1;
  s->kind = !strcmp(text(o, "kind"), "scalar") ? SW_STORAGE_SCALAR : SW_STORAGE_TEMPORARY;
  s->dtype = sw_dtype_from_text(text(o, "dtype"));
  s->rank = ints(json_object_get(o, "size"), s->size);
  ints(json_object_get(o, "stride"), s->stride);
  l->rank = ints(json_object_get(o, "device_size"), l->device_size);
  ints(json_object_get(o, "stride_map"), l->stride_map);
  for (int f = 0; f < SW_N_FORMATS; f++)
    if (!strcmp(sw_format_name((enum sw_format)f), text(o, "format")))
      l->format = (enum sw_format)f;
  s->layout = l;
  s->place = p;
  const json_t *place = json_object_get(o, "place");
  if (json_object_get(place, "lx")) {
    p->kind = SW_PLACE_LX;
    p->offset = number(place, "lx", 0);
  } else if (json_object_get(place, "hbm_pool")) {
    p->kind = SW_PLACE_POOL;
    p->offset = number(place, "hbm_pool", 0);
  }
}

static struct sw_access read_access(const json_t *o)
{
  struct sw_access a = {.storage = (int)number(o, "storage", -1), .offset = number(o, "offset", 0)};
  ints(json_object_get(o, "steps"), a.step);
  a.index_input = (int)number(o, "index_input", -1);
  a.index_step = number(o, "index_step", 0);
  a.index_range = number(o, "index_range", 0);
  return a;
}

static void read_op(struct sw_job *job, const json_t *o, struct sw_op *op)
{
  struct sw_op_plan *plan = SW_NEW(job->arena, struct sw_op_plan);
  int found = 0;
  for (int i = 0; i < SW_N_DEVICE_OPS; i++)
    if (!strcmp(sw_device_op_name((enum sw_device_op)i), text(o, "op"))) {
      op->op = (enum sw_device_op)i;
      found = 1;
    }
  assert_true(found);
  op->name = text(o, "op");
  op->n_loops = ints(json_object_get(o, "loops"), op->range);
  op->n_written = (int)number(o, "n_written", 0);
  ints(json_object_get(o, "split"), plan->split);
  op->plan = plan;
  const json_t *reads = json_object_get(o, "reads");
  op->n_in = (int)json_array_size(reads);
  for (int i = 0; i < op->n_in; i++)
    op->in[i] = read_access(json_array_get(reads, (size_t)i));
  op->out = read_access(json_object_get(o, "write"));
}

/* "floor(v1/64) + 1": symbols by their place. */
static const char *coord_text(struct sw_job *job, const struct sw_spec_coord *c)
{
  const char *plus = c->k ? sw_arena_printf(job->arena, " + %d", (int)c->k) : "";
  switch (c->form) {
  case SW_COORD_CONST:
    return sw_arena_printf(job->arena, "%d", (int)c->k);
  case SW_COORD_SYMBOL:
    return sw_arena_printf(job->arena, "v%d%s", c->symbol, plus);
  case SW_COORD_FLOOR:
    return sw_arena_printf(job->arena, "floor(v%d/%d)%s", c->symbol, (int)c->e, plus);
  case SW_COORD_MOD:
    return sw_arena_printf(job->arena, "Mod(v%d, %d)", c->symbol, (int)c->e);
  case SW_COORD_INDIRECT:
    break;
  }
  return "IndirectAccess";
}

static const char *spec_text(struct sw_job *job, const struct sw_spec *s)
{
  struct sw_buf b = {.arena = job->arena};
  sw_buf_printf(&b, "%s (", s->op);
  for (int i = 0; i < s->space.n; i++)
    sw_buf_printf(&b, "%s%d/%d", i ? " " : "", (int)s->space.v[i].range, (int)s->space.v[i].split);
  sw_buf_puts(&b, ")");
  for (int i = 0; i < s->args.n; i++) {
    const struct sw_spec_arg *a = &s->args.v[i];
    sw_buf_puts(&b, "\n    ");
    for (int j = 0; j < a->rank; j++)
      sw_buf_printf(&b, " %d:%s", (int)a->device_size[j], coord_text(job, &a->coord[j]));
    if (a->alloc != SW_ALLOC_HBM)
      sw_buf_printf(&b, " %s %d", a->alloc == SW_ALLOC_LX ? "lx" : "hbm_pool", (int)a->address);
  }
  return sw_buf_text(&b);
}

static const char *want_text(struct sw_job *job, const json_t *s)
{
  struct sw_buf b = {.arena = job->arena};
  sw_buf_printf(&b, "%s (", text(s, "op"));
  size_t i, j;
  json_t *x, *y;
  json_array_foreach(json_object_get(s, "space"), i, x)
    sw_buf_printf(&b, "%s%d/%d", i ? " " : "", (int)json_integer_value(json_array_get(x, 0)),
                  (int)json_integer_value(json_array_get(x, 1)));
  sw_buf_puts(&b, ")");
  json_array_foreach(json_object_get(s, "args"), i, x)
  {
    sw_buf_puts(&b, "\n    ");
    json_array_foreach(json_object_get(x, "coord"), j, y)
    {
      const char *c = json_string_value(y);
      sw_buf_printf(&b, " %d:%s", (int)json_integer_value(json_array_get(json_object_get(x, "device_size"), j)),
                    strncmp(c, "Indirect", 8) ? c : "IndirectAccess");
    }
    const char *key;
    json_object_foreach(json_object_get(x, "allocation"), key, y)
      if (strcmp(key, "hbm"))
        sw_buf_printf(&b, " %s %d", key, (int)json_integer_value(y));
  }
  return sw_buf_text(&b);
}

static int check_case(struct sw_job *job, const json_t *c, int *n_ops)
{
  struct sw_program p = {0};
  struct sw_plan plan = {0};
  struct sw_kernel_specs out = {0};
  const json_t *storages = json_object_get(c, "storages"), *ops = json_object_get(c, "ops");
  for (size_t i = 0; i < json_array_size(storages); i++)
    read_storage(job, json_array_get(storages, i), SW_PUSH(job->arena, &p.storages));
  struct sw_kernel *k = SW_PUSH(job->arena, &plan.kernels);
  k->name = text(c, "case");
  for (size_t i = 0; i < json_array_size(ops); i++) {
    read_op(job, json_array_get(ops, i), SW_PUSH(job->arena, &p.ops));
    *SW_PUSH(job->arena, &k->ops) = (int)i;
  }
  int bad = 0, faults = job->faults.n;
  sw_kernel_specs(job, &p, &plan, 0, &out);
  for (; faults < job->faults.n; faults++, bad++)
    print_error("%s: %s: %s\n", k->name, job->faults.v[faults].node, job->faults.v[faults].detail);
  for (int i = 0; i < p.ops.n && !bad; i++) {
    const char *got = spec_text(job, out.specs.specs.v[i]);
    const char *want = want_text(job, json_object_get(json_array_get(ops, (size_t)i), "want"));
    if (strcmp(got, want)) {
      print_error("%s op %d: got %s\n  want %s\n", k->name, i, got, want);
      bad++;
    }
  }
  *n_ops += p.ops.n;
  return bad;
}

static void recorded_accesses_give_the_recorded_op_specs(void **state)
{
  (void)state;
  struct sw_job job = unit_job();
  const char *path = getenv("SW_RECORDED"), *bytes;
  size_t len;
  assert_int_equal(sw_file_read(&job, path ? path : SW_SOURCE_DIR "/tests/data/recorded_specs.json", 1 << 24, &bytes,
                                &len), SW_OK);
  const json_t *cases = sw_json_parse(&job, "recorded specs", bytes, len, 10000000);
  assert_non_null(cases);
  int n_ops = 0, bad = 0;
  for (size_t i = 0; i < json_array_size(cases); i++)
    bad += check_case(&job, json_array_get(cases, i), &n_ops);
  print_message("%d of %d ops of %d cases differ\n", bad, n_ops, (int)json_array_size(cases));
  assert_int_equal(bad, 0);
  assert_true(n_ops > 100);
  sw_arena_free(job.arena);
}

int main(void)
{
  const struct CMUnitTest tests[] = {cmocka_unit_test(recorded_accesses_give_the_recorded_op_specs)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
