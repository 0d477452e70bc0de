/* The end of lowering: outputs, then what nobody needs goes, and everything gets its name and number. */
#include "compiler/lower/lower.h"

#include <stdio.h>
#include <string.h>

/* -- outputs -- */

/* A constant leaves as a table of its own, scalars too: outputs name real tensors. */
static struct tensor as_output(struct lower *l, int value)
{
  const struct sw_value *v = &l->graph->values.v[value];
  struct tensor t = lw_tensor_of_value(l, value);
  if (!lw_known(t))
    return t;
  if (t.dtype != v->dtype)
    t = lw_cast(l, t, v->dtype);
  if (!lw_known(t) || l->program->storages.v[t.storage].kind != SW_STORAGE_SCALAR)
    return t;
  int64_t n = sw_value_elements(v);
  double *x = SW_NEW_N(lw_scratch(l), double, n);
  for (int64_t i = 0; i < n; i++)
    x[i] = l->program->storages.v[t.storage].fill;
  return lw_table(l, v->name, v->dtype, v->rank, v->size, x);
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

/* Position of the graph input that a mutation output names. */
static int mutated_input(const struct sw_graph *g, const struct sw_output *o)
{
  for (int k = 0; k < g->inputs.n; k++) {
    const struct sw_input *in = &g->inputs.v[k];
    const char *name = o->kind == SW_OUTPUT_BUFFER_MUTATION && in->target ? in->target : in->name;
    if (in->value >= 0 && !strcmp(o->target, name))
      return k;
  }
  return -1;
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
      int k = mutated_input(g, o);
      if (k >= 0)
        listed[k] = true;
      if (k >= 0 && (!l->best || is_given_back(l, k))) { /* the reference always copies into the input itself */
        lw_tensor_of_value(l, g->inputs.v[k].value);
        struct tensor dst = l->tensors[g->inputs.v[k].value];
        if (lw_known(dst) && lw_known(t) && !lw_same_view(dst, t)) {
          lw_write(l, dst, t);
          t = dst;
        }
      }
      add_tensor(l, name, t, o->target);
    }
  /* The training dialect lists no mutations: inputs that something wrote into. Reference: pt2.md section 12. */
  for (int k = 0; k < g->inputs.n; k++) {
    const struct sw_input *in = &g->inputs.v[k];
    if (in->value < 0 || listed[k] || !l->values[in->value].mutated)
      continue;
    struct tensor t = lw_tensor_of_value(l, in->value), dst = l->tensors[in->value];
    if (lw_known(t) && t.storage != dst.storage) { /* replaced in lower.c: the input gets its new contents now */
      lw_write(l, dst, t);
      t = dst;
    }
    add_tensor(l, in->name, t, in->kind == SW_INPUT_USER || !in->target ? in->name : in->target);
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

/* Whether an op writes every element of its storage: its loops, from the smallest step on, lie in one another without
 * gaps up to the end. */
static bool writes_all(const struct sw_program *p, const struct sw_op *op)
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
      if (live && writes_all(p, op))
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

static void renumber_args(const int *number, struct sw_host_arg *args, int n)
{
  for (int i = 0; i < n; i++)
    if (args[i].kind == SW_HOST_VIEW)
      args[i].view.storage = number[args[i].view.storage];
    else if (args[i].kind == SW_HOST_LIST)
      renumber_args(number, args[i].list, args[i].n_list);
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
      struct sw_host_step *h = &hosts[n_hosts];
      *h = p->host_steps.v[s->index];
      s->index = n_hosts++;
      renumber_args(number, h->args.v, h->args.n);
      for (int r = 0; r < h->results.n; r++)
        if (h->results.v[r].storage >= 0)
          h->results.v[r].storage = number[h->results.v[r].storage];
    } else {
      struct sw_op *op = &ops[n_ops];
      *op = p->ops.v[s->index];
      s->index = n_ops++;
      op->out.storage = number[op->out.storage];
      for (int k = 0; k < op->n_in; k++)
        op->in[k].storage = number[op->in[k].storage];
    }
  }
  p->ops.v = ops;
  p->ops.n = n_ops;
  p->ops.cap = p->steps.n;
  p->host_steps.v = hosts;
  p->host_steps.n = n_hosts;
  p->host_steps.cap = n_hosts;
  for (int i = 0; i < p->outputs.n; i++)
    if (p->outputs.v[i].is_tensor)
      p->outputs.v[i].view.storage = number[p->outputs.v[i].view.storage];
}

/* An op is called as the storage it makes; later writers get a number: "cache", "cache/2". */
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
  if (l->best)
    lw_forward_copies(l);
  drop_dead_steps(l, used);
  if (l->best)
    gather_host_steps(l);
  else
    lw_order_for_locality(l);
  compact(l, used);
  name_ops(l);
  limit_ranks(l);
}
