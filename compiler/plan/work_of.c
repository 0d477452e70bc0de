/* The numbers of work division, taken from an op of the program. */
#include "base/options.h"
#include "compiler/layout/normal.h"
#include "compiler/plan/division.h"

#include <stdlib.h>
#include <string.h>

static double number(const struct sw_named_number *v, int n, const char *name)
{
  for (int i = 0; i < n; i++)
    if (!strcmp(v[i].name, name))
      return v[i].value;
  return 0;
}

/* A parameter of a window op, wherever its lowering put it. */
static double window_number(const struct sw_op *op, const char *name)
{
  double x = number(op->conv.v, op->conv.n, name);
  return x > 0 ? x : number(op->constants.v, op->constants.n, name);
}

static void describe_window(const struct sw_op *op, struct sw_work *w)
{
  static const char *const strides[] = {"stride_i", "stride_j", "stride_h", "stride_w"};
  if (op->op != SW_OP_CONV2D && op->op != SW_OP_DEPTHWISE && op->op != SW_OP_AVGPOOL)
    return;
  for (int i = 0; i < 4; i++)
    if (window_number(op, strides[i]) > 1)
      w->strided_window = 2;
  w->window = (window_number(op, "kernel_h") > 1) + (window_number(op, "kernel_w") > 1);
}

static enum sw_work_kind kind_of(enum sw_device_op op)
{
  switch (op) {
  case SW_OP_MATMUL: return SW_WORK_MATMUL;
  case SW_OP_MATMULFP8: return SW_WORK_MATMUL_FP8;
  case SW_OP_TOPKVALUE:
  case SW_OP_TOPKINDEX: return SW_WORK_TOPK;
  case SW_OP_RESTICKIFY: return SW_WORK_RESTICKIFY;
  default: return SW_WORK_PLAIN;
  }
}

static bool same_access(const struct sw_access *a, const struct sw_access *b, int n_loops)
{
  return a->storage == b->storage && a->offset == b->offset && a->index_input == b->index_input &&
         !memcmp(a->step, b->step, (size_t)n_loops * sizeof *a->step);
}

bool sw_work_tensor_of(const struct sw_program *p, const struct sw_op *op, const struct sw_access *x,
                       struct sw_work_tensor *t)
{
  const struct sw_storage *s = &p->storages.v[x->storage];
  const struct sw_layout *l = s->layout;
  t->name = s->name;
  t->rank = l->rank;
  memcpy(t->device_size, l->device_size, sizeof t->device_size);
  t->two_dim_stick = l->arrangement == SW_EA_QFP8WT;
  t->pairs = l->arrangement == SW_EA_DL16_TO_FP32;
  return sw_layout_coords(l, op, x, t->coord);
}

/* What the recorded plans show beyond the page: a masked K and a matmul with a result of rank 4 (graphs 116; 121, 168,
 * 200) keep the greedy split. */
static bool reference_leaves_alone(const struct sw_program *p, const struct sw_op *op, const struct sw_work *w)
{
  int64_t eps = w->out.device_size[w->out.rank - 1];
  return p->storages.v[op->out.storage].rank == 4 || (op->n_loops && op->range[op->n_loops - 1] % eps);
}

bool sw_split_names(const char *split, const struct sw_op *op)
{
  size_t len = (size_t)(strrchr(split, '=') - split); /* the option's reader saw to it that there is one */
  return strlen(op->name) == len && !memcmp(op->name, split, len);
}

/* "mm=2,4,1": slices of the loops in order, as a result prints them. */
static enum sw_rc read_hints(struct sw_job *job, const struct sw_options *o, const struct sw_op *op, struct sw_work *w)
{
  for (int i = 0; i < o->splits.n; i++) {
    const char *at = o->splits.v[i];
    if (!sw_split_names(at, op))
      continue;
    struct sw_hint *hint = SW_NEW_N(job->arena, struct sw_hint, op->n_loops + 1);
    w->hint = hint;
    at = strrchr(at, '=') + 1;
    for (w->n_hints = 0; w->n_hints < op->n_loops && *at; w->n_hints++) {
      char *end;
      hint[w->n_hints] = (struct sw_hint){w->var[w->n_hints].name, strtoll(at, &end, 10)};
      if (end == at || (*end && *end != ','))
        break;
      at = end + (*end == ',');
    }
    if (*at || w->n_hints != op->n_loops)
      return sw_fail(job, SW_USAGE, "option split: %s has %d loops, as many numbers are expected in \"%s\"", op->name,
                     op->n_loops, o->splits.v[i]);
  }
  return SW_OK;
}

/* The reference keeps dynamic sizes where they are in no stick and in no matmul (section 12); elsewhere, and in profile
 * best, the loop runs to the maximum and computes rows that nobody reads. */
static void find_dynamic_loop(const struct sw_program *p, const struct sw_op *op, struct sw_work *w)
{
  int v = op->row_loop - 1;
  const struct sw_storage *out = &p->storages.v[op->out.storage];
  if (v < 0 || w->best || !out->dynamic || w->kind == SW_WORK_MATMUL || w->kind == SW_WORK_MATMUL_FP8 || w->indirect)
    return;
  const struct sw_dim *d = &p->graph->dims.v[out->dynamic - 1];
  int64_t granularity = sw_granularity(d->range.has_min ? d->range.min : 0, d->value);
  bool in_stick = sw_coord_uses(&w->out.coord[w->out.rank - 1], v);
  for (int i = 0; i < w->n_in; i++)
    in_stick |= sw_coord_uses(&w->in[i].coord[w->in[i].rank - 1], v);
  if (in_stick || op->range[v] != d->value || !granularity || sw_op_cut_loops(p, op) >> v & 1)
    return;
  w->dynamic_loop = v + 1;
  w->var[v].granularity = granularity;
}

enum sw_rc sw_work_of(struct sw_job *job, const struct sw_options *o, const struct sw_program *p,
                      const struct sw_op *op, struct sw_work *w)
{
  static const char *const names[SW_MAX_LOOPS] = {"c0", "c1", "c2", "c3", "c4",  "c5",
                                                  "c6", "c7", "c8", "c9", "c10", "c11"};
  *w = (struct sw_work){.op = op->name,
                        .kind = kind_of(op->op),
                        .cores = (int)o->cores,
                        .n_vars = op->n_loops,
                        .n_written = op->n_written,
                        .best = o->profile == SW_PROFILE_BEST};
  /* The reference plans cuts of padded conversions that emission then drops (superdsc.md 6.2). */
  w->pads_output = op->op == SW_OP_EXP || (op->op == SW_OP_RESTICKIFY && w->best);
  describe_window(op, w);
  for (int v = 0; v < op->n_loops; v++) {
    w->var[v].name = names[v];
    w->var[v].size = op->range[v];
    w->out_step[v] = op->out.step[v];
  }
  SW_TRY(read_hints(job, o, op, w));
  bool fine = true;
  w->indirect = op->out.index_input >= 0;
  for (int i = 0; i < op->n_in; i++) {
    bool seen = !p->storages.v[op->in[i].storage].layout;
    for (int earlier = 0; earlier < i && !seen; earlier++)
      seen = same_access(&op->in[earlier], &op->in[i], op->n_loops);
    w->indirect |= op->in[i].index_input >= 0;
    if (!seen)
      fine &= sw_work_tensor_of(p, op, &op->in[i], &w->in[w->n_in++]);
  }
  fine &= sw_work_tensor_of(p, op, &op->out, &w->out);
  if (fine)
    find_dynamic_loop(p, op, w);
  if (o->profile == SW_PROFILE_TORCH_SPYRE)
    w->greedy_only = reference_leaves_alone(p, op, w);
  if (!fine) {
    sw_fault(job, SW_INTERNAL, "an access has no device coordinates in the chosen layout")->node = op->name;
    return SW_INTERNAL;
  }
  return sw_work_settle(job, w);
}
