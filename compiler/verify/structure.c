#include "compiler/verify/structure.h"

#include "compiler/verify/function.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

struct checker {
  struct sw_job *job;
  const struct dsc *d;
  const struct sim_function *function; /* NULL: one that is not simulated */
  const char *where;                   /* JSON pointer */
  bool bad;
};

/* Members of the whole file, and of the op's own object in it. */
static void in_file(struct checker *c, const char *member)
{
  c->where = sw_arena_printf(c->job->arena, "/%s/%s", c->d->key, member);
}

static void in_body(struct checker *c, const char *member)
{
  c->where = sw_arena_printf(c->job->arena, "/%s/dscs_/0/%s/%s", c->d->key, c->d->fn, member);
}

static void expect(struct checker *c, bool holds, const char *rule)
{
  if (holds || c->bad)
    return;
  c->bad = true;
  sw_fault(c->job, SW_DIFFERENT, "%s: %s", c->where, rule)->source = c->d->file;
}

static void expect_number(struct checker *c, const json_t *got, int64_t want, const char *what)
{
  if (!json_is_integer(got) || json_integer_value(got) != want)
    expect(c, false, sw_arena_printf(c->job->arena, "%s is %" PRId64 ", %" PRId64 " expected", what,
                                     (int64_t)json_integer_value(got), want));
}

static void expect_text(struct checker *c, const json_t *got, const char *want)
{
  const char *s = json_string_value(got);
  if (!s || strcmp(s, want))
    expect(c, false, sw_arena_printf(c->job->arena, "is %s, %s expected", s ? s : "no text", want));
}

static const json_t *get(const json_t *o, const char *key)
{
  return json_object_get(o, key);
}

static int dim_number(const struct dsc *d, const char *name)
{
  for (int i = 0; i < d->n_dims; i++)
    if (!strcmp(d->dim[i], name))
      return i;
  return -1;
}

/* One {"factor_": n, "label_": ...} and one {"Affine": {"alpha_": a, "beta_": 0}}. */
static void check_fold(struct checker *c, const json_t *folds, size_t i, const char *label, int64_t alpha, int64_t factor)
{
  const json_t *affine = get(json_array_get(get(folds, "dim_prop_func"), i), "Affine");
  const json_t *attribute = json_array_get(get(folds, "dim_prop_attr"), i);
  expect_number(c, get(affine, "alpha_"), alpha, "alpha_");
  expect_number(c, get(attribute, "factor_"), factor, "factor_");
  expect_text(c, get(attribute, "label_"), label);
}

struct fold {
  int64_t alpha, factor;
};

/* The folds of a dim's elements, outermost first (section 8.6); gives their number. S elements a core, e in a stick of
 * the format. A dim that is no stick: S elements by 1. A stick: S/e sticks by e, then e lanes by 1; with scale -2 one
 * stick whose lanes all are lane 0. Sticks of two dims and the first operand of their matmul have forms of their own. */
static int element_folds(const struct checker *c, const struct dsc_tensor *t, int dim, int64_t s, struct fold *out)
{
  int64_t e = 128 / sim_format_bytes(t->format);
  bool is_sparse = t->scale[dim] == -2, is_first = t == &c->d->tensor[0];
  if (dim != t->stick && dim != t->rows_dim) {
    out[0] = (struct fold){1, s};
    return 1;
  }
  if (t->rows_dim >= 0 && dim == t->stick) {
    memcpy(out, (struct fold[]){{s / 8, 64}, {8, 2}, {1, 1}}, 3 * sizeof *out);
    return 3;
  }
  if (!strcmp(c->d->fn, "batchmatmulfp8") && is_first) {
    memcpy(out, (struct fold[]){{128, s / 128}, {8, 8}, {64, 2}, {1, 8}}, 4 * sizeof *out);
    return 4;
  }
  out[0] = (struct fold){e, is_sparse ? 1 : s / e};
  out[1] = (struct fold){is_sparse ? 0 : 1, e};
  return 2;
}

static void check_coordinate(struct checker *c, const struct dsc_tensor *t, int dim, const json_t *info)
{
  const struct dsc *d = c->d;
  bool is_there = t->scale[dim] == 1, is_sparse = dim == t->stick && t->scale[dim] == -2;
  int64_t own = !is_there ? 1 : t->has_own ? t->own_split[dim] : d->split[dim];
  int64_t s = is_there ? d->size[dim] / own : 1;
  struct fold element[4];
  int n = element_folds(c, t, dim, s, element);
  const json_t *folds = get(info, "folds");
  expect_number(c, get(info, "elemArr"), n, "elemArr");
  expect(c, json_array_size(get(folds, "dim_prop_func")) == 3 + (size_t)n &&
                json_array_size(get(folds, "dim_prop_attr")) == 3 + (size_t)n,
         "another number of folds than its elements need");
  check_fold(c, folds, 0, "core_fold", is_sparse ? t->e : s, own);
  check_fold(c, folds, 1, "corelet_fold", 0, 1);
  check_fold(c, folds, 2, "row_fold", 0, 1);
  for (int k = 0; k < n; k++)
    check_fold(c, folds, (size_t)(3 + k), sw_arena_printf(c->job->arena, "elem_arr_%d", n - 1 - k), element[k].alpha,
               element[k].factor);
}

/* Cores, corelets and time of an address or a constant. */
static void check_factors(struct checker *c, const json_t *attributes)
{
  static const char *const labels[] = {"core", "corelet", "time"};
  for (size_t i = 0; i < 3; i++) {
    expect_text(c, get(json_array_get(attributes, i), "label_"), labels[i]);
    expect_number(c, get(json_array_get(attributes, i), "factor_"), i ? 1 : c->d->n_cores, labels[i]);
  }
}

static void check_tensor(struct checker *c, const json_t *body, int i, bool has_window)
{
  const struct dsc_tensor *t = &c->d->tensor[i];
  const json_t *node = json_array_get(get(body, "scheduleTree_"), (size_t)i);
  const json_t *lds = json_array_get(get(body, "labeledDs_"), (size_t)i);
  const json_t *info = get(get(node, "coordinates_"), "coordInfo"), *memory = get(lds, "memOrg_");
  struct sw_arena *a = c->job->arena;
  const char *component = t->is_lx ? "lx" : "hbm", *dim;
  in_body(c, sw_arena_printf(a, "scheduleTree_/%d", i));
  expect_text(c, get(node, "name_"), sw_arena_printf(a, "allocate-Tensor%d_%s", i, component));
  expect_number(c, get(node, "ldsIdx_"), i, "ldsIdx_");
  expect(c, t->is_lx == !get(node, "isStartAddrSymbolic_"), "isStartAddrSymbolic_ is for HBM and nothing else");
  check_factors(c, get(get(node, "startAddressCoreCorelet_"), "dim_prop_attr"));
  for (int k = 0; k < c->d->n_dims; k++)
    expect(c, t->scale[k] != -1 || k != t->stick, "scale -1 on the stick dim");
  const char *type = json_string_value(get(lds, "dsType_"));
  const json_t *order = get(get(get(body, "primaryDsInfo_"), type ? type : ""), "layoutDimOrder_");
  size_t place = 0;
  json_t *v;
  json_object_foreach ((json_t *)(intptr_t)info, dim, v) {
    int k = dim_number(c->d, dim);
    const char *in_label = json_string_value(json_array_get(order, place++));
    in_body(c, sw_arena_printf(a, "scheduleTree_/%d/coordinates_/coordInfo/%s", i, dim));
    expect(c, k >= 0 && t->scale[k], "a dim that the tensor has not");
    expect(c, has_window || (in_label && !strcmp(in_label, dim)), "not in the order of its label");
    if (k >= 0 && !has_window && !c->bad)
      check_coordinate(c, t, k, v);
  }
  in_body(c, sw_arena_printf(a, "labeledDs_/%d", i));
  expect(c, has_window || json_object_size(info) == json_array_size(get(lds, "scale_")), "coordInfo and scale_ differ in dims");
  expect_text(c, get(lds, "dsName_"), sw_arena_printf(a, "Tensor%d", i));
  expect(c, get(memory, component), "memOrg_ does not name the tensor's own memory");
  expect(c, !t->is_lx || !get(memory, "hbm"), "memOrg_ names HBM for a tensor in LX");
}

/* Section 6.3: what replaces masked elements is the op's neutral constant; a reduction over a stick and exp have masks,
 * nothing else. */
static void check_mask(struct checker *c, const json_t *body)
{
  const struct dsc *d = c->d;
  in_body(c, "maskingConstId_");
  if (!d->has_mask) {
    expect_number(c, get(body, "maskingConstId_"), -1, "without a mask it");
    return;
  }
  double want = !strncmp(d->fn, "max", 3) || !strcmp(d->fn, "exp") ? -INFINITY
                : !strncmp(d->fn, "min", 3)                        ? INFINITY
                : !strncmp(d->fn, "prod", 4)                       ? 1
                                                                   : 0;
  expect(c, d->mask_value == want, "the masking constant is not neutral for its op");
  for (int i = 0; i < d->n_dims; i++) {
    in_body(c, sw_arena_printf(c->job->arena, "coordinateMasking_/%s", d->dim[i]));
    expect(c, !d->is_masked[i] || !strcmp(d->fn, "exp") || d->tensor[d->out].scale[i] == -2,
           "a mask on a dim whose stick is not reduced, in an op that is not exp");
  }
}

/* Sections 8.8 and 6.5: the constants an op can't do without, in its own format. */
static void check_constants(struct checker *c, const json_t *body)
{
  const struct dsc *d = c->d;
  const char *format = json_string_value(get(get(json_array_get(get(body, "computeOp_"), 0), "attributes_"), "dataFormat_"));
  const json_t *info = get(body, "constantInfo_");
  const char *key;
  json_t *v;
  in_body(c, "constantInfo_");
  for (int i = 0; c->function && i < 3 && c->function->constants[i]; i++) {
    bool found = false;
    for (int k = 0; k < d->n_constants; k++)
      found |= !strcmp(d->constant[k].name, c->function->constants[i]);
    expect(c, found, sw_arena_printf(c->job->arena, "%s needs a constant %s", d->fn, c->function->constants[i]));
  }
  json_object_foreach ((json_t *)(intptr_t)info, key, v) {
    in_body(c, sw_arena_printf(c->job->arena, "constantInfo_/%s", key));
    expect_text(c, get(v, "dataFormat_"), format);
    check_factors(c, get(get(v, "data_"), "dim_prop_attr"));
  }
  in_body(c, "computeOp_/0/attributes_/dataFormat_");
  const json_t *first = json_array_get(get(body, "labeledDs_"), d->n_index && d->n_tensors > 1 ? 1 : 0);
  expect_text(c, get(first, "dataFormat_"), format);
}

/* Section 8.9: the output is the last tensor, inputs are the first ones in order, index tensors apart; section 2.5: as
 * many as the op takes, and a summed stick shows in the name. */
static void check_operands(struct checker *c)
{
  const struct dsc *d = c->d;
  const struct sim_function *f = c->function;
  bool sums_stick = false;
  int n_index = 0;
  in_body(c, "computeOp_/0/outputLabeledDs");
  expect(c, d->out == d->n_tensors - 1, "not the last tensor");
  in_body(c, "computeOp_/0/inputLabeledDs");
  for (int i = 0, next = 0; i < d->n_in; i++, next++) {
    while (next < d->n_tensors && d->tensor[next].is_index)
      next++;
    expect(c, d->in[i] == next, "the tensors are not listed in their order");
  }
  if (f)
    expect(c, d->n_in >= f->least && d->n_in <= f->most,
           sw_arena_printf(c->job->arena, "%s has %d operands, %d expected", d->fn, d->n_in, f->least));
  in_body(c, "computeOp_/0/indirectAccessIndexLabeledDs");
  for (int i = 0; i < d->n_tensors; i++)
    n_index += d->tensor[i].is_index;
  expect(c, n_index == d->n_index, "not every index tensor and nothing else");
  for (int i = 0; i < d->n_dims; i++)
    sums_stick |= d->tensor[d->out].scale[i] == -2;
  in_body(c, "computeOp_/0/opFuncName");
  if (f && f->kind == SIM_REDUCE && f->fn != F_POOL)
    expect(c, sums_stick != sim_function_is_nonstick(d->fn), "nonstick is the name of sums that leave the stick, and of them alone");
}

/* Section 8.3: dims that are nowhere else, and windows that a stage does not have. */
static void check_dims(struct checker *c, const json_t *top, const json_t *body)
{
  const struct dsc *d = c->d;
  static const char *const stages[] = {"ss_", "el_"};
  in_file(c, "numWkSlicesPerDim_");
  expect(c, json_object_size(get(top, "numWkSlicesPerDim_")) == (size_t)d->n_dims, "other dims than N_");
  for (int i = 0; i < d->n_cores; i++) {
    in_file(c, sw_arena_printf(c->job->arena, "coreIdToWkSlice_/%d", i));
    const json_t *slot = get(get(top, "coreIdToWkSlice_"), strrchr(c->where, '/') + 1);
    expect(c, json_object_size(slot) == (size_t)d->n_dims, "other dims than N_");
    in_file(c, sw_arena_printf(c->job->arena, "coreIdToDsc_/%d", i));
    expect(c, get(get(top, "coreIdToDsc_"), strrchr(c->where, '/') + 1), "is missing");
    in_file(c, sw_arena_printf(c->job->arena, "coreIdToDscSchedule/%d", i));
    expect(c, get(get(top, "coreIdToDscSchedule"), strrchr(c->where, '/') + 1), "is missing");
  }
  for (int i = 0; i < 2; i++) {
    in_body(c, sw_arena_printf(c->job->arena, "dataStageParam_/0/%s", stages[i]));
    const json_t *stage = get(get(get(body, "dataStageParam_"), "0"), stages[i]);
    int n = 0;
    const char *key;
    json_t *v;
    json_object_foreach ((json_t *)(intptr_t)stage, key, v)
      n += json_is_integer(v);
    expect(c, n == d->n_dims, "other dims than N_");
    const json_t *windows = get(get(body, "N_"), "paddingSizes_");
    expect(c, json_object_size(get(stage, "paddingSizes_")) == json_object_size(windows), "other windows than N_");
  }
}

bool dsc_check_structure(struct sw_job *job, const struct dsc *d, const json_t *top)
{
  struct checker c = {.job = job, .d = d, .function = sim_function_find(d->fn)};
  const json_t *body = get(json_array_get(get(top, "dscs_"), 0), d->fn);
  const json_t *op = json_array_get(get(body, "computeOp_"), 0);
  bool has_window = false, on_pt = c.function && c.function->on_pt;
  for (int i = 0; i < d->n_dims; i++)
    has_window |= d->window[i].is_set;
  in_file(&c, "coreFoldProp_");
  expect_number(&c, get(get(top, "coreFoldProp_"), "factor_"), d->n_cores, "factor_");
  in_file(&c, "coreletFoldProp_");
  expect_number(&c, get(get(top, "coreletFoldProp_"), "factor_"), 1, "factor_");
  for (int i = 0; i < d->n_cores; i++) {
    in_body(&c, sw_arena_printf(job->arena, "coreIdsUsed_/%d", i));
    expect_number(&c, json_array_get(get(body, "coreIdsUsed_"), (size_t)i), i, "it");
  }
  in_file(&c, "coreIdToDscSchedule");
  expect(&c, json_object_size(get(top, "coreIdToDscSchedule")) == (size_t)d->n_cores, "another number of cores");
  check_dims(&c, top, body);
  for (int i = 0; i < d->n_tensors && !c.bad; i++)
    check_tensor(&c, body, i, has_window);
  check_operands(&c);
  check_mask(&c, body);
  check_constants(&c, body);
  in_body(&c, "computeOp_/0/exUnit");
  expect_text(&c, get(op, "exUnit"), on_pt ? "pt" : "sfp");
  return !c.bad;
}
