#include "compiler/verify/dsc.h"

#include "base/json.h"
#include "compiler/verify/structure.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The file has the form of the schema, so members are there and of their kind; what one says of another is checked here
 * while it is read. */
struct reader {
  struct sw_job *job;
  const char *file;
  const char *where; /* JSON pointer of the part that is being read */
  bool bad;
};

static void fail(struct reader *r, const char *what)
{
  if (!r->bad)
    sw_fault(r->job, SW_DIFFERENT, "%s: %s", r->where, what)->source = r->file;
  r->bad = true;
}

static const json_t *get(struct reader *r, const json_t *o, const char *key)
{
  const json_t *v = json_object_get(o, key);
  if (!v)
    fail(r, sw_arena_printf(r->job->arena, "%s is missing", key));
  return v;
}

static void enter(struct reader *r, const struct dsc *d, const char *part)
{
  r->where = sw_arena_printf(r->job->arena, "/%s/dscs_/0/%s/%s", d->key, d->fn, part);
}

static int64_t integer(struct reader *r, const json_t *v, const char *what)
{
  if (!json_is_integer(v))
    fail(r, sw_arena_printf(r->job->arena, "%s is not an integer", what));
  return json_integer_value(v);
}

static void same(struct reader *r, int64_t a, int64_t b, const char *what)
{
  if (a != b)
    fail(r, sw_arena_printf(r->job->arena, "%s: %" PRId64 " and %" PRId64 " contradict each other", what, a, b));
}

static int dim_number(struct reader *r, const struct dsc *d, const char *name, size_t len)
{
  for (int i = 0; i < d->n_dims; i++)
    if (strlen(d->dim[i]) == len && !memcmp(d->dim[i], name, len))
      return i;
  fail(r, sw_arena_printf(r->job->arena, "dim %.*s is not in N_", (int)len, name));
  return 0;
}

static int dim_of(struct reader *r, const struct dsc *d, const json_t *name)
{
  const char *s = json_string_value(name);
  return dim_number(r, d, s ? s : "", s ? strlen(s) : 0);
}

/* "mb_": 64 for every dim; other members are not numbers. */
static void read_sizes(struct reader *r, struct dsc *d, const json_t *n)
{
  const char *key;
  json_t *v;
  json_object_foreach ((json_t *)(intptr_t)n, key, v) {
    size_t len = strlen(key);
    if (!json_is_integer(v) || !len || key[len - 1] != '_')
      continue;
    if (d->n_dims == DSC_MAX_DIMS) {
      fail(r, "more dims than there can be");
      return;
    }
    d->dim[d->n_dims] = sw_arena_strndup(r->job->arena, key, len - 1);
    d->size[d->n_dims++] = json_integer_value(v);
  }
  const json_t *windows = json_object_get(n, "paddingSizes_");
  json_object_foreach ((json_t *)(intptr_t)windows, key, v) {
    struct dsc_window *w = &d->window[dim_number(r, d, key, strlen(key))];
    w->is_set = true;
    w->tap = dim_of(r, d, get(r, v, "windowDim_"));
    w->stride = integer(r, get(r, v, "stride_"), "stride_");
    w->pad_front = integer(r, get(r, v, "padFront_"), "padFront_");
    w->pad_back = integer(r, get(r, v, "padBack_"), "padBack_");
    w->total = integer(r, get(r, v, "totalSize_"), "totalSize_");
    w->dilation = integer(r, get(r, v, "dilation_"), "dilation_");
  }
}

static void read_division(struct reader *r, struct dsc *d, const json_t *top, const json_t *body)
{
  const json_t *slices = get(r, top, "numWkSlicesPerDim_"), *map = get(r, top, "coreIdToWkSlice_");
  const json_t *stage = get(r, get(r, get(r, body, "dataStageParam_"), "0"), "ss_");
  const json_t *again = get(r, get(r, json_object_get(body, "dataStageParam_"), "0"), "el_");
  d->n_cores = (int)integer(r, get(r, top, "numCoresUsed_"), "numCoresUsed_");
  if (d->n_cores < 1 || d->n_cores > DSC_MAX_CORES) {
    fail(r, "numCoresUsed_ is not 1 to 32");
    return;
  }
  same(r, d->n_cores, integer(r, get(r, body, "numCoresUsed_"), "numCoresUsed_"), "numCoresUsed_");
  same(r, d->n_cores, (int64_t)json_array_size(get(r, body, "coreIdsUsed_")), "coreIdsUsed_");
  same(r, d->n_cores, (int64_t)json_object_size(get(r, top, "coreIdToDsc_")), "coreIdToDsc_");
  same(r, d->n_cores, (int64_t)json_object_size(map), "coreIdToWkSlice_");
  for (int i = 0; i < d->n_dims && !r->bad; i++) {
    char *key = sw_arena_printf(r->job->arena, "%s_", d->dim[i]);
    d->slice[i] = integer(r, get(r, stage, key), key);
    same(r, d->slice[i], integer(r, get(r, again, key), key), "ss_ and el_");
    d->split[i] = integer(r, get(r, slices, d->dim[i]), d->dim[i]);
    same(r, d->size[i], d->split[i] * d->slice[i], "N_ and slices");
    for (int c = 0; c < d->n_cores && !r->bad; c++) {
      char number[12];
      snprintf(number, sizeof number, "%d", c);
      d->slot[c][i] = integer(r, get(r, get(r, map, number), d->dim[i]), d->dim[i]);
      if (d->slot[c][i] < 0 || d->slot[c][i] >= d->split[i])
        fail(r, "a core's slot is outside the split");
    }
  }
}

/* Every combination of slots is done by some core. */
static void check_cover(struct reader *r, const struct dsc *d)
{
  int64_t all = 1;
  for (int i = 0; i < d->n_dims; i++)
    if (__builtin_mul_overflow(all, d->split[i], &all) || all > DSC_MAX_CORES) {
      fail(r, "more slices than cores");
      return;
    }
  uint64_t seen = 0;
  for (int c = 0; c < d->n_cores; c++) {
    int64_t at = 0;
    for (int i = 0; i < d->n_dims; i++)
      at = at * d->split[i] + d->slot[c][i];
    seen |= (uint64_t)1 << at;
  }
  if (seen != ((uint64_t)1 << (all - 1) << 1) - 1)
    fail(r, "not every slice is given to a core");
}

static void read_starts(struct reader *r, const struct dsc *d, struct dsc_tensor *t, const json_t *node)
{
  const json_t *data = get(r, get(r, node, "startAddressCoreCorelet_"), "data_");
  same(r, d->n_cores, (int64_t)json_object_size(data), "start addresses");
  for (int c = 0; c < d->n_cores && !r->bad; c++) {
    char key[24];
    snprintf(key, sizeof key, "[%d, 0, 0]", c);
    const char *text = json_string_value(get(r, data, key)), *end = text;
    if (text)
      t->start[c] = strtoll(text, (char **)(intptr_t)&end, 10);
    if (!text || end == text || *end || (t->start[c] < 0) == t->is_lx)
      fail(r, "a start address is neither a symbol of HBM nor an offset of LX");
  }
}

static void read_own_map(struct reader *r, const struct dsc *d, struct dsc_tensor *t, const json_t *node)
{
  const json_t *map = json_object_get(json_object_get(node, "coordinates_"), "coreIdToWkSlice_");
  if (!json_object_size(map))
    return;
  t->has_own = true;
  for (int i = 0; i < d->n_dims; i++)
    t->own_split[i] = 1;
  for (int c = 0; c < d->n_cores; c++) {
    char number[12];
    const char *dim;
    json_t *slot;
    snprintf(number, sizeof number, "%d", c);
    json_object_foreach (json_object_get(map, number), dim, slot) {
      int i = dim_number(r, d, dim, strlen(dim));
      t->own_slot[c][i] = json_integer_value(slot);
      if (t->own_slot[c][i] >= t->own_split[i])
        t->own_split[i] = t->own_slot[c][i] + 1;
    }
  }
}

static void read_tensor(struct reader *r, struct dsc *d, const json_t *body, int i)
{
  struct dsc_tensor *t = &d->tensor[i];
  const json_t *node = json_array_get(json_object_get(body, "scheduleTree_"), (size_t)i);
  const json_t *lds = json_array_get(json_object_get(body, "labeledDs_"), (size_t)i);
  enter(r, d, sw_arena_printf(r->job->arena, "scheduleTree_/%d", i));
  const char *type = json_string_value(get(r, lds, "dsType_"));
  const json_t *label = get(r, get(r, body, "primaryDsInfo_"), type ? type : "");
  const json_t *label_order = get(r, label, "layoutDimOrder_"), *scale = get(r, lds, "scale_");
  const json_t *order = get(r, node, "layoutDimOrder_"), *max = get(r, node, "maxDimSizes_");
  const json_t *sticks = get(r, label, "stickDimOrder_"), *sizes = get(r, label, "stickSize_");
  if (r->bad)
    return;
  same(r, i, integer(r, get(r, lds, "ldsIdx_"), "ldsIdx_"), "ldsIdx_");
  size_t n_sticks = json_array_size(sticks);
  same(r, (int64_t)n_sticks, (int64_t)json_array_size(sizes), "stickSize_");
  t->stick = dim_of(r, d, json_array_get(sticks, n_sticks - 1));
  t->e = integer(r, json_array_get(sizes, n_sticks - 1), "stickSize_");
  t->rows_dim = n_sticks > 1 ? dim_of(r, d, json_array_get(sticks, 0)) : -1;
  t->rows = n_sticks > 1 ? integer(r, json_array_get(sizes, 0), "stickSize_") : 1;
  const char *format = json_string_value(get(r, lds, "dataFormat_"));
  int f = sim_format_find(format ? format : "");
  if (f < 0) {
    fail(r, "a data format that is not simulated");
    return;
  }
  t->format = (enum sim_format)f;
  same(r, sim_format_bytes(t->format), integer(r, get(r, lds, "wordLength"), "wordLength"), "wordLength");
  same(r, sim_format_bytes(t->format) * t->e * t->rows, 128, "bytes of a stick");
  same(r, (int64_t)json_array_size(label_order), (int64_t)json_array_size(scale), "scale_");
  same(r, (int64_t)json_array_size(order), (int64_t)json_array_size(max), "maxDimSizes_");
  same(r, (int64_t)json_array_size(order), (int64_t)json_array_size(scale), "dims of a tensor and of its label");
  if (r->bad || json_array_size(order) > DSC_MAX_DIMS)
    return;
  for (size_t k = 0; k < json_array_size(scale); k++)
    t->scale[dim_of(r, d, json_array_get(label_order, k))] = (int)integer(r, json_array_get(scale, k), "scale_");
  t->n = (int)json_array_size(order);
  for (int k = 0; k < t->n; k++) {
    int dim = t->order[k] = dim_of(r, d, json_array_get(order, (size_t)k));
    t->max_dim[dim] = integer(r, json_array_get(max, (size_t)k), "maxDimSizes_");
    if (!t->scale[dim])
      fail(r, "a tensor has a dim that its label has not");
    if (t->scale[dim] == -2 && dim != t->stick)
      fail(r, "scale -2 on a dim that is not the stick");
  }
  const char *component = json_string_value(get(r, node, "component_"));
  t->is_lx = component && !strcmp(component, "lx");
  const char *indirect = json_string_value(get(r, node, "indirectAllocType_"));
  t->is_index = indirect && !strcmp(indirect, "index_tensor");
  t->is_value = indirect && !strcmp(indirect, "value_tensor");
  const char *related = json_string_value(json_object_get(node, "relatedIndirectAccessAlloc_"));
  t->related = related && !strncmp(related, "allocate-Tensor", 15) ? atoi(related + 15) : -1;
  const char *dim;
  json_t *gap;
  json_object_foreach (json_object_get(node, "backGapCore_"), dim, gap) {
    const char *text = json_string_value(json_object_get(gap, t->is_lx ? "0" : "-1"));
    t->gap[dim_number(r, d, dim, strlen(dim))] = text ? strtoll(text, NULL, 10) : 0;
    if (t->is_lx && text && strcmp(text, "0"))
      fail(r, "a gap in LX has no meaning");
  }
  read_starts(r, d, t, node);
  read_own_map(r, d, t, node);
}

static void read_symbols(struct reader *r, struct dsc *d, const json_t *body)
{
  const char *dim;
  json_t *ids;
  json_object_foreach (json_object_get(body, "dimToSymbolMapping_"), dim, ids) {
    int at = dim_number(r, d, dim, strlen(dim)), k = d->n_symbols++;
    static const char *const stages[] = {"ss_", "el_"};
    d->symbol_dim[k] = at;
    d->symbol[k] = json_integer_value(json_array_get(ids, 0));
    for (int s = 0; s < 2 && !r->bad; s++) {
      const json_t *stage = get(r, get(r, get(r, body, "dataStageParam_"), "0"), stages[s]);
      const json_t *info = get(r, get(r, stage, "symbolicDimInfo_"), dim);
      int64_t most = integer(r, get(r, info, "maxSize_"), "maxSize_"), step = integer(r, get(r, info, "granularity_"), "granularity_");
      if (r->bad)
        return;
      same(r, d->slice[at], most, "maxSize_ and the slice");
      d->symbol_most[k] = most * d->split[at];
      if (step < 1 || step > most || (s && step * d->split[at] != d->symbol_step[k]))
        fail(r, "a granularity_ that is none, or not the same twice");
      d->symbol_step[k] = step * d->split[at];
    }
  }
}

static void read_constants(struct reader *r, struct dsc *d, const json_t *body)
{
  const json_t *info = get(r, body, "constantInfo_");
  for (int i = 0; i < 8 && i < (int)json_object_size(info); i++) {
    char key[12];
    snprintf(key, sizeof key, "%d", i);
    const json_t *c = get(r, info, key);
    const char *name = json_string_value(get(r, c, "name_")), *format = json_string_value(get(r, c, "dataFormat_"));
    const json_t *data = json_object_get(get(r, c, "data_"), "data_");
    int64_t bits = integer(r, json_array_get(json_object_get(data, "[0, 0, 0]"), 0), "a constant");
    float single;
    uint32_t pattern = (uint32_t)bits;
    memcpy(&single, &pattern, 4);
    d->constant[d->n_constants].name = name ? name : "";
    d->constant[d->n_constants++].value = format && !strcmp(format, "IEEE_FP32") ? (double)single : sim_dl16_value((unsigned)bits);
  }
  const char *dim;
  json_t *mask;
  int64_t id = integer(r, get(r, body, "maskingConstId_"), "maskingConstId_");
  json_object_foreach (json_object_get(body, "coordinateMasking_"), dim, mask) {
    int i = dim_number(r, d, dim, strlen(dim));
    const json_t *range = json_array_get(mask, 0);
    d->has_mask = d->is_masked[i] = true;
    d->mask_start[i] = integer(r, json_array_get(range, 0), "mask");
    same(r, d->mask_start[i] + integer(r, json_array_get(range, 1), "mask"), d->size[i], "end of the mask");
  }
  if (d->has_mask && (id < 0 || id >= d->n_constants))
    fail(r, "maskingConstId_ names no constant");
  else if (d->has_mask)
    d->mask_value = d->constant[id].value;
}

/* "Tensor3-idx3" */
static int tensor_number(struct reader *r, const struct dsc *d, const json_t *name)
{
  const char *s = json_string_value(name);
  int n = s && !strncmp(s, "Tensor", 6) ? atoi(s + 6) : -1;
  if (n < 0 || n >= d->n_tensors) {
    fail(r, "an operand names no tensor");
    return 0;
  }
  return n;
}

static void read_compute(struct reader *r, struct dsc *d, const json_t *body)
{
  const json_t *op = json_array_get(get(r, body, "computeOp_"), 0);
  const char *fn = json_string_value(get(r, op, "opFuncName"));
  if (!fn || strcmp(fn, d->fn))
    fail(r, "opFuncName is not the name of the op");
  const json_t *in = get(r, op, "inputLabeledDs"), *out = get(r, op, "outputLabeledDs");
  const json_t *index = json_object_get(op, "indirectAccessIndexLabeledDs");
  for (size_t i = 0; i < json_array_size(in) && d->n_in < DSC_MAX_TENSORS; i++)
    d->in[d->n_in++] = tensor_number(r, d, json_array_get(in, i));
  for (size_t i = 0; i < json_array_size(index) && d->n_index < DSC_MAX_TENSORS; i++)
    d->index[d->n_index++] = tensor_number(r, d, json_array_get(index, i));
  d->out = tensor_number(r, d, json_array_get(out, 0));
}

struct dsc *dsc_read(struct sw_job *job, const struct sim_form *form, const char *file, const char *text, size_t len)
{
  struct reader r = {job, file, "", false};
  json_t *root = sw_json_parse(job, file, text, len, 10000000);
  if (!root || !sim_form_check(job, form, file, root))
    return NULL;
  struct dsc *d = SW_NEW(job->arena, struct dsc);
  d->file = file;
  const char *key = json_object_iter_key(json_object_iter(root));
  const json_t *top = json_object_iter_value(json_object_iter(root));
  int number = 0;
  char *end = NULL;
  if (key)
    number = (int)strtol(key, &end, 10);
  if (!key || *end != '_' || atoi(file + strcspn(file, "0123456789")) != number) {
    fail(&r, "the outer key does not carry the file's number");
    return NULL;
  }
  d->key = key;
  d->fn = end + 1;
  d->handle = json_object_get(top, "debug_handle_");
  const json_t *dsc = json_array_get(get(&r, top, "dscs_"), 0), *body = get(&r, dsc, d->fn);
  if (r.bad)
    return NULL;
  enter(&r, d, "N_");
  read_sizes(&r, d, get(&r, body, "N_"));
  r.where = sw_arena_printf(job->arena, "/%s", key);
  read_division(&r, d, top, body);
  if (!r.bad)
    check_cover(&r, d);
  enter(&r, d, "scheduleTree_");
  size_t n = json_array_size(get(&r, body, "scheduleTree_"));
  same(&r, (int64_t)n, (int64_t)json_array_size(get(&r, body, "labeledDs_")), "tensors");
  if (n > DSC_MAX_TENSORS)
    fail(&r, "more tensors than there can be");
  d->n_tensors = (int)n;
  for (int i = 0; i < d->n_tensors && !r.bad; i++)
    read_tensor(&r, d, body, i);
  if (r.bad)
    return NULL;
  enter(&r, d, "dimToSymbolMapping_");
  read_symbols(&r, d, body);
  enter(&r, d, "constantInfo_");
  read_constants(&r, d, body);
  enter(&r, d, "computeOp_/0");
  read_compute(&r, d, body);
  return !r.bad && dsc_check_structure(job, d, top) ? d : NULL;
}

double dsc_constant(const struct dsc *d, const char *name, double otherwise)
{
  for (int i = 0; i < d->n_constants; i++)
    if (!strcmp(d->constant[i].name, name))
      return d->constant[i].value;
  return otherwise;
}
