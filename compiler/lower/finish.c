/* The end of lowering: outputs, then what nobody needs goes, and everything gets its name and number. */
#include "compiler/lower/lower.h"

#include <stdio.h>
#include <string.h>

/* -- outputs -- */

/* Whether it lies in memory as the graph says. Strides that no tensor of its own has, of an expanded value or a diagonal, are
 * nobody's business: such a value may leave as it is. */
static bool lies_right(const struct sw_value *v, struct tensor t)
{
  int64_t dense[SW_MAX_RANK];
  lw_dense_strides(v->rank, v->size, v->stride, dense);
  for (int d = 0; d < v->rank; d++)
    if (v->size[d] > 1 && v->stride[d] != dense[d])
      return true;
  for (int d = 0; d < v->rank; d++)
    if (v->size[d] > 1 && v->stride[d] != t.stride[d])
      return false;
  return true;
}

/* What the caller sees has the strides of the graph: contiguous(a.t()) is no view of a. The op that makes it writes it so where
 * it can (forward.c). */
static struct tensor laid_out(struct lower *l, const struct sw_value *v, struct tensor t)
{
  bool on_device = sw_dtype_is_integer(t.dtype) || t.dtype == SW_BOOL || t.dtype == SW_F16 || t.dtype == SW_BF16 || t.dtype == SW_F32;
  if (t.pair || !on_device || lies_right(v, t))
    return t;
  if (l->best && sw_dtype_is_integer(t.dtype) && t.dtype != SW_I64 && t.dtype != SW_I32)
    return lw_host_clone(l, t, v->stride, "no program is known that moves integers of this width on the device");
  struct tensor out = lw_new(l, t.dtype, v->rank, v->size, v->stride);
  lw_storage(l, out.storage)->bool32 = t.dtype == SW_BOOL && lw_lanes(l, t) == SW_F32;
  lw_nest(l, SW_OP_IDENTITY, SW_ROLE_CLONE, v->rank, v->rank, v->size, out, 1, &t);
  return out;
}

/* A constant leaves as a table of its own, scalars too: outputs name real tensors. */
static struct tensor as_output(struct lower *l, int value)
{
  const struct sw_value *v = &l->graph->values.v[value];
  struct tensor t = lw_tensor_of_value(l, value);
  if (!lw_known(t))
    return t;
  if (t.dtype != v->dtype)
    t = lw_cast(l, t, v->dtype);
  if (!lw_known(t))
    return t;
  if (l->program->storages.v[t.storage].kind != SW_STORAGE_SCALAR)
    return laid_out(l, v, t);
  int64_t n = sw_value_elements(v);
  double *x = SW_NEW_N(lw_scratch(l), double, n);
  for (int64_t i = 0; i < n; i++)
    x[i] = l->program->storages.v[t.storage].fill;
  t = lw_table(l, v->name, v->dtype, v->rank, v->size, x);
  lw_dense_strides(v->rank, v->size, v->stride, t.stride); /* all elements are equal: it lies in any order */
  return t;
}

static struct sw_program_output *add_output(struct lower *l, const char *name)
{
  struct sw_program_output *o = SW_PUSH(l->arena, &l->program->outputs);
  o->name = name;
  return o;
}

static void add_tensor(struct lower *l, const char *name, struct tensor t, const char *mutates)
{
  struct sw_program_output *o = add_output(l, name);
  o->is_tensor = true;
  o->dtype = t.dtype;
  o->mutates = mutates;
  if (lw_known(t)) {
    o->view = lw_view_of(t);
    l->program->storages.v[t.storage].is_output = true;
  } else if (l->job->worst == SW_OK) {
    sw_fault(l->job, SW_INTERNAL, "nothing makes this output")->tensor = name;
  }
}

/* The output added last is the new value of graph input k. */
static void add_change(struct lower *l, int k)
{
  int storage = l->tensors[l->graph->inputs.v[k].value].storage;
  *SW_PUSH(l->arena, &l->changes) = (struct lw_change){l->program->outputs.n - 1, storage};
}

/* Whether the caller gets a view of input k back: it shows what the run has made of the input. */
static bool is_given_back(const struct lower *l, int k)
{
  const struct sw_graph *g = l->graph;
  for (int i = 0; i < g->outputs.n; i++) {
    const struct sw_output *o = &g->outputs.v[i];
    if (o->kind == SW_OUTPUT_USER && o->arg.kind == SW_ARG_VALUE && l->values[o->arg.value].root == g->inputs.v[k].value)
      return true;
  }
  return false;
}

void lw_outputs(struct lower *l)
{
  const struct sw_graph *g = l->graph;
  l->node = -1; /* casts and copies of the end */
  l->failed = false;
  l->first_op = l->program->ops.n;
  l->first_storage = l->program->storages.n;
  bool *listed = SW_NEW_N(l->arena, bool, g->inputs.n);
  for (int pass = 0; pass < 2; pass++)
    for (int i = 0; i < g->outputs.n; i++) {
      const struct sw_output *o = &g->outputs.v[i];
      if ((o->kind != SW_OUTPUT_USER) != pass)
        continue;
      if (o->arg.kind != SW_ARG_VALUE || g->values.v[o->arg.value].kind != SW_VALUE_TENSOR) {
        struct sw_program_output *p = add_output(l, "");
        p->literal = o->arg;
        if (o->arg.kind == SW_ARG_VALUE)
          p->literal = (struct sw_arg){.name = o->arg.name, .kind = SW_ARG_INT, .i = lw_number(l, o->arg.value)};
        continue;
      }
      const char *name = g->values.v[o->arg.value].name;
      struct tensor t = as_output(l, o->arg.value);
      if (o->kind == SW_OUTPUT_USER) {
        add_tensor(l, name, t, NULL);
        continue;
      }
      int k = o->input;
      listed[k] = true;
      if (g->inputs.v[k].value >= 0 && (!l->best || is_given_back(l, k))) { /* the reference always copies into the input itself */
        lw_tensor_of_value(l, g->inputs.v[k].value);
        struct tensor dst = l->tensors[g->inputs.v[k].value];
        if (lw_known(dst) && lw_known(t) && !lw_same_view(dst, t)) {
          lw_write(l, dst, t);
          t = dst;
        }
      }
      add_tensor(l, name, t, o->target);
      if (g->inputs.v[k].value >= 0)
        add_change(l, k);
    }
  /* The training dialect lists no mutations: inputs that something wrote into. Reference: pt2.md section 12. */
  for (int k = 0; k < g->inputs.n; k++) {
    const struct sw_input *in = &g->inputs.v[k];
    if (in->value < 0 || listed[k] || !l->values[in->value].mutated)
      continue;
    struct tensor t = lw_tensor_of_value(l, in->value), dst = l->tensors[in->value];
    if (!l->best && lw_known(t) && t.storage != dst.storage) { /* replaced in lower.c: the input gets its new contents now */
      lw_write(l, dst, t);
      t = dst;
    }
    add_tensor(l, in->name, t, in->kind == SW_INPUT_USER || !in->target ? in->name : in->target);
    add_change(l, k);
  }
}

/* -- what nobody needs -- */

static void need_args(bool *needed, const struct sw_host_arg *args, int n)
{
  for (int i = 0; i < n; i++)
    if (args[i].kind == SW_HOST_VIEW)
      needed[args[i].view.storage] = true;
    else if (args[i].kind == SW_HOST_LIST)
      need_args(needed, args[i].list, args[i].n_list);
}

bool lw_writes_all(const struct sw_program *p, const struct sw_op *op)
{
  int64_t covered = 1;
  for (bool found = true; found;) {
    found = false;
    for (int l = 0; l < op->n_written && !found; l++)
      if (op->out.step[l] == covered) {
        covered *= op->range[l];
        found = true;
      }
  }
  return op->out.index_input < 0 && covered == sw_storage_elements(&p->storages.v[op->out.storage]);
}

/* Backwards over the steps: an op stays when a later step or an output needs what it writes, and was not overwritten as a
 * whole since. `used`: storages that what stays names. */
static void drop_dead_steps(struct lower *l, bool *used)
{
  struct sw_program *p = l->program;
  bool *needed = SW_NEW_N(l->arena, bool, p->storages.n);
  for (int i = 0; i < p->outputs.n; i++)
    if (p->outputs.v[i].is_tensor)
      needed[p->outputs.v[i].view.storage] = used[p->outputs.v[i].view.storage] = true;
  int kept = p->steps.n;
  for (int i = p->steps.n - 1; i >= 0; i--) {
    struct sw_step s = p->steps.v[i];
    bool live = false;
    if (s.is_host) {
      const struct sw_host_step *h = &p->host_steps.v[s.index];
      for (int r = 0; r < h->results.n; r++)
        live = live || (h->results.v[r].storage >= 0 && needed[h->results.v[r].storage]);
      if (live) {
        need_args(needed, h->args.v, h->args.n);
        need_args(used, h->args.v, h->args.n);
      }
    } else {
      const struct sw_op *op = &p->ops.v[s.index];
      live = needed[op->out.storage];
      if (live && lw_writes_all(p, op))
        needed[op->out.storage] = false;
      for (int k = 0; live && k < op->n_in; k++)
        needed[op->in[k].storage] = used[op->in[k].storage] = true;
    }
    if (live)
      p->steps.v[--kept] = s;
  }
  if (kept)
    memmove(p->steps.v, p->steps.v + kept, (size_t)(p->steps.n - kept) * sizeof *p->steps.v);
  p->steps.n -= kept;
}

/* -- order -- */

struct hazards {
  bool *reads, *writes; /* storages that the steps passed over read or write */
};

static bool args_meet(const bool *set, const struct sw_host_arg *args, int n)
{
  for (int i = 0; i < n; i++)
    if ((args[i].kind == SW_HOST_VIEW && set[args[i].view.storage]) ||
        (args[i].kind == SW_HOST_LIST && args_meet(set, args[i].list, args[i].n_list)))
      return true;
  return false;
}

static void pass_over(const struct sw_program *p, struct sw_step s, struct hazards *z)
{
  if (!s.is_host) {
    const struct sw_op *op = &p->ops.v[s.index];
    for (int k = 0; k < op->n_in; k++)
      z->reads[op->in[k].storage] = true;
    z->writes[op->out.storage] = true;
    return;
  }
  const struct sw_host_step *h = &p->host_steps.v[s.index];
  need_args(z->reads, h->args.v, h->args.n);
  for (int r = 0; r < h->results.n; r++)
    if (h->results.v[r].storage >= 0)
      z->writes[h->results.v[r].storage] = true;
}

/* Whether a host step may change places with all steps passed over. */
static bool may_pass(const struct sw_program *p, struct sw_step s, const struct hazards *z)
{
  const struct sw_host_step *h = &p->host_steps.v[s.index];
  if (args_meet(z->writes, h->args.v, h->args.n))
    return false;
  for (int r = 0; r < h->results.n; r++) {
    int storage = h->results.v[r].storage;
    if (storage >= 0 && (z->reads[storage] || z->writes[storage]))
      return false;
  }
  return true;
}

/* A host step ends a kernel. Those that need nothing from the device go to the front, those that the device needs
 * nothing from to the end: positions, counters and masks of all layers then cost one border, not one each. */
static void gather_host_steps(struct lower *l)
{
  struct sw_program *p = l->program;
  struct sw_step *order = SW_NEW_N(l->arena, struct sw_step, p->steps.n);
  bool *placed = SW_NEW_N(l->arena, bool, p->steps.n);
  int front = 0, back = p->steps.n;
  struct hazards z = {SW_NEW_N(l->arena, bool, p->storages.n), SW_NEW_N(l->arena, bool, p->storages.n)};
  for (int i = 0; i < p->steps.n; i++)
    if (p->steps.v[i].is_host && may_pass(p, p->steps.v[i], &z)) {
      order[front++] = p->steps.v[i];
      placed[i] = true;
    } else {
      pass_over(p, p->steps.v[i], &z);
    }
  z = (struct hazards){SW_NEW_N(l->arena, bool, p->storages.n), SW_NEW_N(l->arena, bool, p->storages.n)};
  for (int i = p->steps.n - 1; i >= 0; i--)
    if (!placed[i] && p->steps.v[i].is_host && may_pass(p, p->steps.v[i], &z)) {
      order[--back] = p->steps.v[i];
      placed[i] = true;
    } else if (!placed[i]) {
      pass_over(p, p->steps.v[i], &z);
    }
  for (int i = 0; i < p->steps.n; i++)
    if (!placed[i])
      order[front++] = p->steps.v[i];
  if (p->steps.n)
    memcpy(p->steps.v, order, (size_t)p->steps.n * sizeof *order);
}

/* Ops and host steps in execution order, storages in order of first appearance among those still named. */
static void compact(struct lower *l, const bool *used)
{
  struct sw_program *p = l->program;
  int *number = SW_NEW_N(l->arena, int, p->storages.n), n = 0;
  for (int s = 0; s < p->storages.n; s++) {
    number[s] = used[s] ? n : -1;
    if (used[s])
      p->storages.v[n++] = p->storages.v[s];
  }
  p->storages.n = n;
  struct sw_op *ops = SW_NEW_N(l->arena, struct sw_op, p->steps.n);
  struct sw_host_step *hosts = SW_NEW_N(l->arena, struct sw_host_step, p->host_steps.n);
  int n_ops = 0, n_hosts = 0;
  for (int i = 0; i < p->steps.n; i++) {
    struct sw_step *s = &p->steps.v[i];
    if (s->is_host) {
      hosts[n_hosts] = p->host_steps.v[s->index];
      s->index = n_hosts++;
    } else {
      ops[n_ops] = p->ops.v[s->index];
      s->index = n_ops++;
    }
  }
  p->ops.v = ops;
  p->ops.n = n_ops;
  p->ops.cap = p->steps.n;
  p->host_steps.v = hosts;
  p->host_steps.n = n_hosts;
  p->host_steps.cap = n_hosts;
  sw_renumber_storages(p, number);
}

/* An op is called as the storage it makes; later writers get a number: "cache", "cache/2". Who writes all of a new tensor
 * first makes it, whichever way it came to be written (profile best). */
static void name_ops(struct lower *l)
{
  struct sw_program *p = l->program;
  int *writers = SW_NEW_N(l->arena, int, p->storages.n);
  bool *on_device = SW_NEW_N(l->arena, bool, p->storages.n);
  for (int i = 0; i < p->ops.n; i++) {
    struct sw_op *op = &p->ops.v[i];
    const struct sw_storage *s = &p->storages.v[op->out.storage];
    int n = ++writers[op->out.storage];
    op->name = n == 1 ? s->name : sw_arena_printf(l->arena, "%s/%d", s->name, n);
    if (l->best && n == 1 && op->role == SW_ROLE_WRITE && s->kind == SW_STORAGE_TEMPORARY && lw_writes_all(p, op))
      op->role = op->op == SW_OP_IDENTITY ? SW_ROLE_CLONE : SW_ROLE_PLAIN;
    on_device[op->out.storage] = true;
    for (int k = 0; k < op->n_in; k++)
      on_device[op->in[k].storage] = true;
  }
  for (int s = 0; s < p->storages.n; s++)
    p->storages.v[s].host_only = !on_device[s];
}

/* Device tensors have at most 6 dims (ops.md 8.20); dims of size 1 don't count in a tensor of our own. */
static void limit_ranks(struct lower *l)
{
  enum { MAX_DEVICE_DIMS = 6 };
  for (int i = 0; i < l->program->storages.n; i++) {
    struct sw_storage *s = &l->program->storages.v[i];
    if (s->host_only || s->rank <= MAX_DEVICE_DIMS)
      continue;
    int n = 0;
    if (s->kind == SW_STORAGE_TEMPORARY || s->kind == SW_STORAGE_CONSTANT) {
      for (int d = 0; d < s->rank; d++)
        if (s->size[d] != 1) {
          s->size[n] = s->size[d];
          s->stride[n++] = s->stride[d];
        }
      s->rank = n;
    }
    if (s->rank <= MAX_DEVICE_DIMS)
      continue;
    struct sw_fault *f = sw_fault(l->job, SW_UNSUPPORTED, "a tensor of %d dims on the device", s->rank);
    f->tensor = s->name;
    f->advice = "join dims (reshape, flatten) before it";
    f->has_limit = true;
    f->value = s->rank;
    f->limit = MAX_DEVICE_DIMS;
  }
}

void lw_finish(struct lower *l)
{
  if (l->best)
    lw_tabulate(l);
  bool *used = SW_NEW_N(l->arena, bool, l->program->storages.n);
  if (l->best) {
    lw_change_in_place(l);
    lw_forward_copies(l);
  }
  drop_dead_steps(l, used);
  if (l->best)
    gather_host_steps(l);
  else
    lw_order_for_locality(l);
  compact(l, used);
  name_ops(l);
  limit_ranks(l);
}
