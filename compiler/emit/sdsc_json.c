#include "compiler/emit/superdsc.h"

#include <inttypes.h>
#include <string.h>

/* Printing one op as sdsc_N.json, in the key order of the reference (superdsc.md section 8). */

static void object(struct sw_jw *w, const char *key)
{
  sw_jw_key(w, key);
  sw_jw_object(w);
}

static void array(struct sw_jw *w, const char *key)
{
  sw_jw_key(w, key);
  sw_jw_array(w);
}

static void empty_object(struct sw_jw *w, const char *key)
{
  object(w, key);
  sw_jw_end_object(w);
}

static const char *decimal(char text[32], int64_t n)
{
  snprintf(text, 32, "%" PRId64, n);
  return text;
}

/* [{"factor_": .., "label_": ".."}, ..] under "dim_prop_attr" or a key of its own */
static void factor(struct sw_jw *w, int64_t n, const char *label)
{
  sw_jw_object(w);
  sw_jw_kint(w, "factor_", n);
  sw_jw_kstr(w, "label_", label);
  sw_jw_end_object(w);
}

static void affine(struct sw_jw *w, int64_t alpha)
{
  sw_jw_object(w);
  object(w, "Affine");
  sw_jw_kint(w, "alpha_", alpha);
  sw_jw_kint(w, "beta_", 0);
  sw_jw_end_object(w);
  sw_jw_end_object(w);
}

/* Folds over cores, corelets and time with a property each ("Map" or "Const"). */
static void core_folds(struct sw_jw *w, int cores, const char *const kinds[3])
{
  static const char *const labels[] = {"core", "corelet", "time"};
  array(w, "dim_prop_func");
  for (int i = 0; i < 3; i++) {
    sw_jw_object(w);
    empty_object(w, kinds[i]);
    sw_jw_end_object(w);
  }
  sw_jw_end_array(w);
  array(w, "dim_prop_attr");
  for (int i = 0; i < 3; i++)
    factor(w, i ? 1 : cores, labels[i]);
  sw_jw_end_array(w);
}

static void labels(struct sw_jw *w, const char *key, const struct sw_sdsc *s, const struct sw_sdsc_layout *l,
                   const struct sw_labels *order)
{
  array(w, key);
  for (int i = 0; i < order->n; i++)
    if (sw_sdsc_prints(s, l, order->v[i]))
      sw_jw_str(w, sw_label_name(order->v[i]));
  sw_jw_end_array(w);
}

/* -- the whole op -- */

static void write_top(struct sw_jw *w, const struct sw_sdsc *s)
{
  char c[32];
  sw_jw_key(w, "debug_handle_");
  if (s->spec->debug_handle)
    sw_jw_json(w, s->spec->debug_handle);
  else
    sw_jw_null(w);
  array(w, "sdscFoldProps_");
  factor(w, 1, "time");
  sw_jw_end_array(w);
  object(w, "sdscFolds_");
  array(w, "dim_prop_func");
  affine(w, 1);
  sw_jw_end_array(w);
  array(w, "dim_prop_attr");
  factor(w, 1, "time");
  sw_jw_end_array(w);
  object(w, "data_");
  sw_jw_kstr(w, "[0]", "0");
  sw_jw_end_object(w);
  sw_jw_end_object(w);
  sw_jw_key(w, "coreFoldProp_");
  factor(w, s->cores, "core");
  sw_jw_key(w, "coreletFoldProp_");
  factor(w, 1, "corelet");
  sw_jw_kint(w, "numCoresUsed_", s->cores);
  object(w, "coreIdToDsc_");
  for (int i = 0; i < s->cores; i++)
    sw_jw_kint(w, decimal(c, i), 0);
  sw_jw_end_object(w);
  object(w, "numWkSlicesPerDim_");
  for (int i = 0; i < s->dims.n; i++)
    sw_jw_kint(w, sw_label_name(s->dims.v[i]), s->split[s->dims.v[i]]);
  sw_jw_end_object(w);
  object(w, "coreIdToWkSlice_");
  for (int i = 0; i < s->cores; i++) {
    object(w, decimal(c, i));
    for (int j = 0; j < s->core_order.n; j++)
      sw_jw_kint(w, sw_label_name(s->core_order.v[j]), s->slot[i * (int)SW_N_LABELS + (int)s->core_order.v[j]]);
    sw_jw_end_object(w);
  }
  sw_jw_end_object(w);
  object(w, "coreIdToDscSchedule");
  for (int i = 0; i < s->cores; i++) {
    array(w, decimal(c, i));
    sw_jw_array(w);
    for (int j = 0; j < 4; j++)
      sw_jw_int(w, j ? 0 : -1);
    sw_jw_end_array(w);
    sw_jw_end_array(w);
  }
  sw_jw_end_object(w);
}

static void write_windows(struct sw_jw *w, const struct sw_sdsc *s, bool per_core)
{
  object(w, "paddingSizes_");
  for (int i = 0; i < s->n_windows; i++) {
    const struct sw_window *x = &s->window[i];
    const struct sw_window_pads *p = per_core ? &x->core : &x->whole;
    object(w, sw_label_name(x->spatial));
    sw_jw_kint(w, "padFront_", p->front);
    sw_jw_kint(w, "padBack_", p->back);
    if (s->is.dw) {
      sw_jw_kint(w, "unneededPad_", p->unneeded);
      sw_jw_kint(w, "unneededPadFront_", p->unneeded_front);
      sw_jw_kint(w, "unneededPadBack_", p->unneeded_back);
    }
    sw_jw_kint(w, "totalSize_", p->total);
    sw_jw_kint(w, "stride_", x->stride);
    sw_jw_kint(w, "dilation_", 1);
    sw_jw_kstr(w, "windowDim_", sw_label_name(x->window));
    sw_jw_end_object(w);
  }
  sw_jw_end_object(w);
}

/* "mb_": 64, .. ; the only place where labels carry an underscore */
static void write_sizes(struct sw_jw *w, const struct sw_sdsc *s, bool per_core)
{
  for (int i = 0; i < s->dims.n; i++) {
    enum sw_label d = s->dims.v[i];
    char key[16];
    snprintf(key, sizeof key, "%s_", sw_label_name(d));
    sw_jw_kint(w, key, per_core ? s->size[d] / s->split[d] : s->size[d]);
  }
}

static void write_stage(struct sw_jw *w, const struct sw_sdsc *s, const char *key)
{
  static const char *const empties[] = {"maxSymbolicVolume_", "coreletSplit_", "rowSplit_", "peSfpSplit_"};
  object(w, key);
  sw_jw_kstr(w, "name_", "core");
  write_sizes(w, s, true);
  object(w, "symbolicDimInfo_");
  for (int i = 0; i < s->dynamics.n; i++) {
    const struct sw_sdsc_dynamic *d = &s->dynamics.v[i];
    object(w, sw_label_name(d->dim));
    int64_t split = s->split[d->dim];
    sw_jw_kint(w, "maxSize_", d->max / split);
    sw_jw_kint(w, "granularity_", d->granularity > split ? d->granularity / split : 1);
    sw_jw_end_object(w);
  }
  sw_jw_end_object(w);
  for (int i = 0; i < 4; i++)
    empty_object(w, empties[i]);
  write_windows(w, s, true);
  sw_jw_end_object(w);
}

static void write_layouts(struct sw_jw *w, const struct sw_sdsc *s)
{
  object(w, "primaryDsInfo_");
  for (int i = 0; i < s->n_layouts; i++) {
    const struct sw_sdsc_layout *l = &s->layout[i];
    object(w, l->name);
    labels(w, "layoutDimOrder_", s, l, &l->order);
    array(w, "stickDimOrder_");
    for (int j = 0; j < l->n_sticks; j++)
      sw_jw_str(w, sw_label_name(l->stick[j]));
    sw_jw_end_array(w);
    array(w, "stickSize_");
    for (int j = 0; j < l->n_sticks; j++)
      sw_jw_int(w, l->stick_size[j]);
    sw_jw_end_array(w);
    if (s->is.pool || s->is.fwd) {
      array(w, "stickRepl_");
      sw_jw_int(w, 1);
      sw_jw_end_array(w);
    }
    sw_jw_end_object(w);
  }
  sw_jw_end_object(w);
  if (s->is.pool || s->is.fwd) {
    object(w, "pdsRelation_");
    sw_jw_kint(w, "isPdsReuse", 1);
    sw_jw_end_object(w);
  }
}

/* -- tensors -- */

static bool is_shuffle(const struct sw_sdsc *s)
{
  return !strcmp(s->fn, "shuffle");
}

/* How a dim is cut and walked (8.6): alpha of the core fold, then alphas and factors of the element folds, outermost
 * first. */
struct folds {
  int n;
  int64_t own, core;
  int64_t alpha[4], factor[4];
  const char *padding;
};

static struct folds folds_of(const struct sw_sdsc *s, const struct sw_sdsc_tensor *t, enum sw_label d)
{
  const struct sw_sdsc_layout *l = &s->layout[t->layout];
  bool has = t->scale[d] == 1, is_input = t - s->tensor < s->n_in;
  struct folds f = {.own = !has ? 1 : is_shuffle(s) ? t->own_split[d] : s->split[d], .padding = "nopad"};
  int64_t n = has ? s->size[d] / f.own : 1;
  f.core = n;
  const struct sw_window *w = sw_sdsc_window(s, d);
  if (w && is_input && (!s->is.dw || t == s->tensor)) {
    f.padding = s->is.dw ? s->spec->pad_type : "padded_fullspan_wunneeded";
    if (s->is.pool) {
      f.core = n = w->whole.total / f.own;
    } else {
      int64_t out = s->size[d] / f.own;
      f.core = out * w->stride;
      n = s->is.fwd ? (out - 1) * w->stride + w->kernel : f.core + w->kernel - 1;
    }
  }
  bool first = d == l->stick[0], second = l->n_sticks == 2 && d == l->stick[1];
  if (!first && !second) {
    f.n = 1;
    f.alpha[0] = 1;
    f.factor[0] = n;
  } else if (t->fmt == SW_FORMAT_FP8 && second) {
    f = (struct folds){3, f.own, n, {n / 8, 8, 1}, {64, 2, 1}, "nopad"};
  } else if (!strcmp(s->fn, "batchmatmulfp8") && t == s->tensor) {
    f = (struct folds){4, f.own, n, {128, 8, 64, 1}, {n / 128, 8, 2, 8}, "nopad"};
  } else if (t->scale[d] == -2) {
    f.n = 2;
    f.core = f.alpha[0] = t->e;
    f.factor[0] = 1;
    f.factor[1] = t->e;
  } else {
    f.n = 2;
    f.alpha[0] = t->e;
    f.factor[0] = n / t->e;
    f.alpha[1] = 1;
    f.factor[1] = t->e;
  }
  return f;
}

static void write_coordinates(struct sw_jw *w, const struct sw_sdsc *s, const struct sw_sdsc_tensor *t)
{
  static const char *const elements[] = {"elem_arr_0", "elem_arr_1", "elem_arr_2", "elem_arr_3"};
  const struct sw_sdsc_layout *l = &s->layout[t->layout];
  object(w, "coordInfo");
  for (int i = 0; i < l->order.n; i++) {
    enum sw_label d = l->order.v[i];
    if (!sw_sdsc_prints(s, l, d))
      continue;
    struct folds f = folds_of(s, t, d);
    object(w, sw_label_name(d));
    sw_jw_kint(w, "spatial", 3);
    sw_jw_kint(w, "temporal", 0);
    sw_jw_kint(w, "elemArr", f.n);
    sw_jw_kstr(w, "padding", f.padding);
    object(w, "folds");
    array(w, "dim_prop_func");
    affine(w, f.core);
    affine(w, 0);
    affine(w, 0);
    for (int k = 0; k < f.n; k++)
      affine(w, f.alpha[k]);
    sw_jw_end_array(w);
    array(w, "dim_prop_attr");
    factor(w, f.own, "core_fold");
    factor(w, 1, "corelet_fold");
    factor(w, 1, "row_fold");
    for (int k = 0; k < f.n; k++)
      factor(w, f.factor[k], elements[f.n - 1 - k]);
    sw_jw_end_array(w);
    sw_jw_end_object(w);
    sw_jw_end_object(w);
  }
  sw_jw_end_object(w);
  object(w, "coreIdToWkSlice_");
  for (int c = 0; is_shuffle(s) && c < s->cores; c++) {
    char text[32];
    object(w, decimal(text, c));
    for (int i = 0; i < s->dims.n; i++) {
      enum sw_label d = s->dims.v[i];
      sw_jw_kint(w, sw_label_name(d), c / t->own_below[d] % t->own_split[d]);
    }
    sw_jw_end_object(w);
  }
  sw_jw_end_object(w);
}

static void write_gaps(struct sw_jw *w, const struct sw_sdsc *s, const struct sw_sdsc_tensor *t)
{
  bool any = false;
  for (int i = 0; i < t->order.n; i++) {
    enum sw_label d = t->order.v[i];
    char gap[32];
    if (!t->gap[d] || !sw_sdsc_prints(s, &s->layout[t->layout], d))
      continue;
    if (!any)
      object(w, "backGapCore_");
    any = true;
    object(w, sw_label_name(d));
    sw_jw_kstr(w, "-1", decimal(gap, t->gap[d]));
    sw_jw_end_object(w);
  }
  if (any)
    sw_jw_end_object(w);
}

static void write_paddings(struct sw_jw *w, const struct sw_sdsc *s, const struct sw_sdsc_tensor *t, const char *what)
{
  if (!s->n_windows)
    return;
  object(w, "padding_");
  for (int i = 0; i < s->n_windows; i++)
    if (sw_labels_has(&t->order, s->window[i].spatial))
      sw_jw_kstr(w, sw_label_name(s->window[i].spatial), what);
  sw_jw_end_object(w);
}

static bool has_spatial(const struct sw_sdsc_tensor *t)
{
  return sw_labels_has(&t->order, SW_LABEL_I) || sw_labels_has(&t->order, SW_LABEL_J);
}

static void write_allocation(struct sw_jw *w, const struct sw_sdsc *s, int i)
{
  const struct sw_sdsc_tensor *t = &s->tensor[i];
  const struct sw_sdsc_layout *l = &s->layout[t->layout];
  static const char *const kinds[] = {"Map", "Const", "Const"};
  bool in_lx = t->arg->alloc == SW_ALLOC_LX;
  char text[64];
  sw_jw_object(w);
  sw_jw_kstr(w, "nodeType_", "allocate");
  snprintf(text, sizeof text, "allocate-Tensor%d_%s", i, in_lx ? "lx" : "hbm");
  sw_jw_kstr(w, "name_", text);
  sw_jw_kstr(w, "prev_", "");
  sw_jw_kint(w, "ldsIdx_", i);
  sw_jw_kstr(w, "component_", in_lx ? "lx" : "hbm");
  if (s->is.dw && i == 0)
    write_paddings(w, s, t, s->spec->pad_type);
  if (!in_lx)
    sw_jw_kint(w, "isStartAddrSymbolic_", 1);
  labels(w, "layoutDimOrder_", s, l, &t->order);
  array(w, "maxDimSizes_");
  for (int k = 0; k < t->order.n; k++)
    if (sw_sdsc_prints(s, l, t->order.v[k]))
      sw_jw_int(w, t->max_dim[t->order.v[k]]);
  sw_jw_end_array(w);
  sw_jw_kstr(w, "indirectAllocType_", t->is_index ? "index_tensor" : t->is_value ? "value_tensor" : "no_indirection");
  if (t->related >= 0) {
    snprintf(text, sizeof text, "allocate-Tensor%d_hbm", t->related);
    sw_jw_kstr(w, "relatedIndirectAccessAlloc_", text);
  }
  if (t->is_index)
    sw_jw_kstr(w, "indexTensorType_", "index");
  object(w, "startAddressCoreCorelet_");
  core_folds(w, s->cores, kinds);
  object(w, "data_");
  for (int c = 0; c < s->cores; c++) {
    char value[32];
    snprintf(text, sizeof text, "[%d, 0, 0]", c);
    sw_jw_kstr(w, text, decimal(value, in_lx ? t->address[c] : -t->symbol[c]));
  }
  sw_jw_end_object(w);
  sw_jw_end_object(w);
  if ((s->is.pool || s->is.fwd) && i < s->n_in && has_spatial(t))
    write_paddings(w, s, t, "padded_fullspan_wunneeded");
  write_gaps(w, s, t);
  object(w, "coordinates_");
  write_coordinates(w, s, t);
  sw_jw_end_object(w);
  sw_jw_end_object(w);
}

static void write_memory(struct sw_jw *w, const struct sw_sdsc *s, int i, const char *place, const char *node)
{
  const struct sw_sdsc_tensor *t = &s->tensor[i];
  object(w, place);
  sw_jw_kint(w, "isPresent", 1);
  if (s->is.dw && i == 0 && s->n_windows) {
    sw_jw_kint(w, "isPadded", 1);
    if (t->arg->alloc != SW_ALLOC_LX)
      sw_jw_kint(w, "isZeroPadded", 0);
  } else if ((s->is.pool || s->is.fwd) && t->arg->alloc != SW_ALLOC_LX) {
    sw_jw_kint(w, "isPadded", i < s->n_in);
    sw_jw_kint(w, "isZeroPadded", 0);
    sw_jw_kint(w, "dsOffset", 0);
    sw_jw_kstr(w, "allocateNode_", node);
  }
  sw_jw_end_object(w);
}

static void write_labeled(struct sw_jw *w, const struct sw_sdsc *s, int i)
{
  const struct sw_sdsc_tensor *t = &s->tensor[i];
  const struct sw_sdsc_layout *l = &s->layout[t->layout];
  char text[64];
  sw_jw_object(w);
  sw_jw_kint(w, "ldsIdx_", i);
  snprintf(text, sizeof text, "Tensor%d", i);
  sw_jw_kstr(w, "dsName_", text);
  sw_jw_kstr(w, "dsType_", l->name);
  array(w, "scale_");
  for (int k = 0; k < l->order.n; k++)
    if (sw_sdsc_prints(s, l, l->order.v[k]))
      sw_jw_int(w, t->scale[l->order.v[k]]);
  sw_jw_end_array(w);
  sw_jw_kint(w, "wordLength", t->bytes);
  sw_jw_kstr(w, "dataFormat_", sw_format_name(t->fmt));
  object(w, "memOrg_");
  snprintf(text, sizeof text, "allocate-Tensor%d_hbm", i);
  if (t->arg->alloc != SW_ALLOC_LX)
    write_memory(w, s, i, "hbm", text);
  if (!t->is_index)
    write_memory(w, s, i, "lx", "");
  sw_jw_end_object(w);
  sw_jw_end_object(w);
}

/* -- constants and the op -- */

static void write_constants(struct sw_jw *w, const struct sw_sdsc *s)
{
  static const char *const kinds[] = {"Const", "Const", "Map"};
  if (!s->constants.n) {
    sw_jw_kstr(w, "constantInfo_", "{}"); /* a string: that is how the reference prints it */
    return;
  }
  object(w, "constantInfo_");
  for (int i = 0; i < s->constants.n; i++) {
    char number[32];
    object(w, decimal(number, i));
    sw_jw_kstr(w, "dataFormat_", sw_format_name(s->format));
    sw_jw_kstr(w, "name_", s->constants.v[i].name);
    object(w, "data_");
    core_folds(w, s->cores, kinds);
    object(w, "data_");
    array(w, "[0, 0, 0]");
    sw_jw_int(w, sw_device_constant(s->format, s->constants.v[i].value));
    sw_jw_end_array(w);
    sw_jw_end_object(w);
    sw_jw_end_object(w);
    sw_jw_end_object(w);
  }
  sw_jw_end_object(w);
}

static void write_operands(struct sw_jw *w, const struct sw_sdsc *s, const char *key, int from, int to, bool indices)
{
  array(w, key);
  for (int i = from; i < to; i++) {
    char text[64];
    if (s->tensor[i].is_index != indices)
      continue;
    snprintf(text, sizeof text, "Tensor%d-idx%d", i, i);
    sw_jw_str(w, text);
  }
  sw_jw_end_array(w);
}

static void write_op(struct sw_jw *w, const struct sw_sdsc *s)
{
  array(w, "computeOp_");
  sw_jw_object(w);
  sw_jw_kstr(w, "exUnit", s->unit);
  sw_jw_kstr(w, "opFuncName", s->fn);
  object(w, "attributes_");
  sw_jw_kstr(w, "dataFormat_", sw_format_name(s->format));
  sw_jw_kstr(w, "fidelity_", "regular");
  sw_jw_end_object(w);
  sw_jw_kstr(w, "location", "Inner");
  write_operands(w, s, "inputLabeledDs", 0, s->n_in, false);
  write_operands(w, s, "outputLabeledDs", s->n_tensors - 1, s->n_tensors, false);
  if (s->has_index)
    write_operands(w, s, "indirectAccessIndexLabeledDs", 0, s->n_tensors, true);
  sw_jw_end_object(w);
  sw_jw_end_array(w);
}

static void write_dsc(struct sw_jw *w, const struct sw_sdsc *s)
{
  sw_jw_kint(w, "numCoresUsed_", s->cores);
  sw_jw_kint(w, "numCoreletsUsed_", 1);
  array(w, "coreIdsUsed_");
  for (int i = 0; i < s->cores; i++)
    sw_jw_int(w, i);
  sw_jw_end_array(w);
  object(w, "N_");
  sw_jw_kstr(w, "name_", "n");
  write_sizes(w, s, false);
  if (s->n_windows)
    write_windows(w, s, false);
  sw_jw_end_object(w);
  object(w, "coordinateMasking_");
  for (int i = 0; i < s->masked.n; i++) {
    enum sw_label d = s->masked.v[i];
    array(w, sw_label_name(d));
    sw_jw_array(w);
    sw_jw_int(w, s->size[d] - s->pad[d]);
    sw_jw_int(w, s->pad[d]);
    sw_jw_end_array(w);
    sw_jw_end_array(w);
  }
  sw_jw_end_object(w);
  sw_jw_kint(w, "maskingConstId_", s->mask_constant);
  if (s->dynamics.n) {
    object(w, "dimToSymbolMapping_");
    for (int i = 0; i < s->dynamics.n; i++) {
      array(w, sw_label_name(s->dynamics.v[i].dim));
      sw_jw_int(w, -s->dynamics.v[i].symbol);
      sw_jw_end_array(w);
    }
    sw_jw_end_object(w);
  }
  object(w, "dataStageParam_");
  object(w, "0");
  write_stage(w, s, "ss_");
  write_stage(w, s, "el_");
  sw_jw_end_object(w);
  sw_jw_end_object(w);
  write_layouts(w, s);
  array(w, "scheduleTree_");
  for (int i = 0; i < s->n_tensors; i++)
    write_allocation(w, s, i);
  sw_jw_end_array(w);
  array(w, "labeledDs_");
  for (int i = 0; i < s->n_tensors; i++)
    write_labeled(w, s, i);
  sw_jw_end_array(w);
  write_constants(w, s);
  write_op(w, s);
}

static void write_dynamics(struct sw_jw *w, const struct sw_sdsc *s)
{
  array(w, "datadscs_");
  sw_jw_end_array(w);
  empty_object(w, "dimToSymbolMappingOpcodeCorrection_");
  object(w, "inputSymbolsAndTags_");
  for (int i = 0; i < s->dynamics.n; i++) {
    char id[32];
    bool seen = false;
    for (int j = 0; j < i; j++)
      seen = seen || s->dynamics.v[j].symbol == s->dynamics.v[i].symbol;
    if (!seen)
      sw_jw_kstr(w, decimal(id, -s->dynamics.v[i].symbol), s->dynamics.v[i].name);
  }
  sw_jw_end_object(w);
  empty_object(w, "symbolDefinitions_");
}

void sw_sdsc_write(const struct sw_sdsc *s, struct sw_buf *out)
{
  struct sw_jw w = {.out = out, .indent = 2};
  sw_jw_object(&w);
  object(&w, sw_arena_printf(out->arena, "%d_%s", s->number, s->fn));
  write_top(&w, s);
  array(&w, "dscs_");
  sw_jw_object(&w);
  object(&w, s->fn);
  write_dsc(&w, s);
  sw_jw_end_object(&w);
  sw_jw_end_object(&w);
  sw_jw_end_array(&w);
  if (s->dynamics.n)
    write_dynamics(&w, s);
  sw_jw_end_object(&w);
  sw_jw_end_object(&w);
}
