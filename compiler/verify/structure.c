#include "compiler/verify/structure.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

struct checker {
  struct sw_job *job;
  const struct dsc *d;
  const char *where; /* JSON path behind the op's own object */
  bool bad;
};

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
static void check_fold(struct checker *c, const json_t *folds, size_t i, int64_t alpha, int64_t factor)
{
  const json_t *affine = get(json_array_get(get(folds, "dim_prop_func"), i), "Affine");
  expect_number(c, get(affine, "alpha_"), alpha, "alpha_");
  expect_number(c, get(affine, "beta_"), 0, "beta_");
  expect_number(c, get(json_array_get(get(folds, "dim_prop_attr"), i), "factor_"), factor, "factor_");
}

/* Section 8.6. A dim that is no stick: S elements by 1. A stick of e: S/e sticks by e, then e lanes by 1; with scale -2
 * one stick whose lanes all are lane 0. In front: cores by S, one corelet, one row. */
static void check_coordinate(struct checker *c, const struct dsc_tensor *t, int dim, const json_t *info)
{
  const struct dsc *d = c->d;
  bool is_there = t->scale[dim] == 1, is_stick = dim == t->stick, is_sparse = is_stick && t->scale[dim] == -2;
  int64_t own = !is_there ? 1 : t->has_own ? t->own_split[dim] : d->split[dim];
  int64_t s = is_there ? d->size[dim] / own : 1;
  size_t n = is_stick ? 2 : 1;
  const json_t *folds = get(info, "folds");
  expect_number(c, get(info, "spatial"), 3, "spatial");
  expect_number(c, get(info, "temporal"), 0, "temporal");
  expect_number(c, get(info, "elemArr"), (int64_t)n, "elemArr");
  expect(c, json_array_size(get(folds, "dim_prop_func")) == 3 + n && json_array_size(get(folds, "dim_prop_attr")) == 3 + n,
         "another number of folds than its elements need");
  check_fold(c, folds, 0, is_sparse ? t->e : s, own);
  check_fold(c, folds, 1, 0, 1);
  check_fold(c, folds, 2, 0, 1);
  if (is_stick) {
    check_fold(c, folds, 3, t->e, is_sparse ? 1 : s / t->e);
    check_fold(c, folds, 4, is_sparse ? 0 : 1, t->e);
  } else {
    check_fold(c, folds, 3, 1, s);
  }
}

static void check_tensor(struct checker *c, const json_t *body, int i, bool has_window)
{
  const struct dsc_tensor *t = &c->d->tensor[i];
  const json_t *node = json_array_get(get(body, "scheduleTree_"), (size_t)i);
  const json_t *lds = json_array_get(get(body, "labeledDs_"), (size_t)i);
  const json_t *info = get(get(node, "coordinates_"), "coordInfo"), *memory = get(lds, "memOrg_");
  struct sw_arena *a = c->job->arena;
  const char *component = t->is_lx ? "lx" : "hbm", *dim, *kept = c->where;
  c->where = sw_arena_printf(a, "scheduleTree_/%d", i);
  expect_text(c, get(node, "nodeType_"), "allocate");
  expect_text(c, get(node, "component_"), component);
  expect_text(c, get(node, "name_"), sw_arena_printf(a, "allocate-Tensor%d_%s", i, component));
  expect_number(c, get(node, "ldsIdx_"), i, "ldsIdx_");
  expect(c, t->is_lx == !get(node, "isStartAddrSymbolic_"), "isStartAddrSymbolic_ is for HBM and nothing else");
  for (int k = 0; k < c->d->n_dims; k++) {
    expect(c, t->scale[k] >= -2 && t->scale[k] <= 1, "a scale is 1, -1 or -2");
    expect(c, t->scale[k] != -1 || k != t->stick, "scale -1 on the stick dim");
  }
  const char *type = json_string_value(get(lds, "dsType_"));
  const json_t *order = get(get(get(body, "primaryDsInfo_"), type ? type : ""), "layoutDimOrder_");
  size_t place = 0;
  json_t *v;
  json_object_foreach ((json_t *)(intptr_t)info, dim, v) {
    int k = dim_number(c->d, dim);
    const char *in_label = json_string_value(json_array_get(order, place++));
    c->where = sw_arena_printf(a, "scheduleTree_/%d/coordinates_/coordInfo/%s", i, dim);
    expect(c, k >= 0 && t->scale[k], "a dim that the tensor has not");
    expect(c, has_window || (in_label && !strcmp(in_label, dim)), "not in the order of its label");
    if (k >= 0 && !has_window && !c->bad)
      check_coordinate(c, t, k, v);
  }
  c->where = sw_arena_printf(a, "labeledDs_/%d", i);
  expect(c, has_window || json_object_size(info) == json_array_size(get(lds, "scale_")), "coordInfo and scale_ differ in dims");
  expect_text(c, get(lds, "dsName_"), sw_arena_printf(a, "Tensor%d", i));
  expect_number(c, get(get(memory, component), "isPresent"), 1, "isPresent");
  expect(c, !t->is_lx || !get(memory, "hbm"), "memOrg_ names HBM for a tensor in LX");
  c->where = kept;
}

/* The constant that replaces masked elements is the op's neutral one. */
static void check_mask(struct checker *c, const json_t *body)
{
  const struct dsc *d = c->d;
  c->where = "maskingConstId_";
  if (!d->has_mask) {
    expect_number(c, get(body, "maskingConstId_"), -1, "without a mask it");
    return;
  }
  double want = !strncmp(d->fn, "max", 3) || !strcmp(d->fn, "exp") ? -INFINITY
                : !strncmp(d->fn, "min", 3)                        ? INFINITY
                : !strncmp(d->fn, "prod", 4)                       ? 1
                                                                   : 0;
  expect(c, d->mask_value == want, "the masking constant is not neutral for its op");
}

/* Section 8.9: the output is the last tensor, inputs are the first ones in order, index tensors apart. */
static void check_operands(struct checker *c)
{
  const struct dsc *d = c->d;
  c->where = "computeOp_/0/outputLabeledDs";
  expect(c, d->out == d->n_tensors - 1, "not the last tensor");
  c->where = "computeOp_/0/inputLabeledDs";
  for (int i = 0, next = 0; i < d->n_in; i++, next++) {
    while (next < d->n_tensors && d->tensor[next].is_index)
      next++;
    expect(c, d->in[i] == next, "the tensors are not listed in their order");
  }
}

bool dsc_check_structure(struct sw_job *job, const struct dsc *d, const json_t *top)
{
  struct checker c = {job, d, "", false};
  const json_t *body = get(json_array_get(get(top, "dscs_"), 0), d->fn);
  const json_t *op = json_array_get(get(body, "computeOp_"), 0);
  bool has_window = false;
  for (int i = 0; i < d->n_dims; i++)
    has_window |= d->window[i].is_set;
  c.where = "coreFoldProp_";
  expect_number(&c, get(get(top, "coreFoldProp_"), "factor_"), d->n_cores, "factor_");
  c.where = "coreletFoldProp_";
  expect_number(&c, get(get(top, "coreletFoldProp_"), "factor_"), 1, "factor_");
  c.where = "numCoreletsUsed_";
  expect_number(&c, get(body, "numCoreletsUsed_"), 1, "it");
  for (int i = 0; i < d->n_cores; i++) {
    c.where = sw_arena_printf(job->arena, "coreIdsUsed_/%d", i);
    expect_number(&c, json_array_get(get(body, "coreIdsUsed_"), (size_t)i), i, "it");
  }
  c.where = "coreIdToDscSchedule";
  expect(&c, json_object_size(get(top, "coreIdToDscSchedule")) == (size_t)d->n_cores, "another number of cores");
  check_mask(&c, body);
  for (int i = 0; i < d->n_tensors && !c.bad; i++)
    check_tensor(&c, body, i, has_window);
  check_operands(&c);
  c.where = "computeOp_/0/exUnit";
  expect_text(&c, get(op, "exUnit"), !strncmp(d->fn, "batchmatmul", 11) || !strcmp(d->fn, "conv2d") ? "pt" : "sfp");
  return !c.bad;
}
