/* Graph to program, node by node in order.
 *
 * requires  a verified graph
 * ensures   every live node became device ops (views and constants: none), a host step, or a fault of its own;
 *           sw_program_verify accepts the program
 *
 * A node is looked up in the table of operations (operations.c) and its function appends ops through the vocabulary of
 * lower.h. In-place overloads run as their functional twins; the result is then written into the tensor, see
 * write_back(). */
#include "compiler/lower/families.h"
#include "compiler/lower/flow.h"

#include <stdio.h>
#include <string.h>

/* -- in-place nodes -- */

/* The last op of the node may write straight into dst when it alone made the whole result, element by element, and
 * reads dst, if at all, just where it writes. x.add_(y) is then one op on x's own storage. */
static bool retarget(struct lower *l, struct tensor dst, struct tensor r)
{
  struct sw_program *p = l->program;
  if (r.storage < l->first_storage || p->ops.n == l->first_op || dst.dtype != r.dtype || dst.rank != r.rank)
    return false;
  struct sw_op *op = &p->ops.v[p->ops.n - 1];
  if (op->out.storage != r.storage || sw_device_op_is_reduction(op->op) || !p->steps.n ||
      p->steps.v[p->steps.n - 1].is_host)
    return false;
  for (int i = l->first_op; i < p->ops.n - 1; i++)
    if (p->ops.v[i].out.storage == r.storage)
      return false;
  struct sw_access out = {.storage = dst.storage, .offset = dst.offset, .index_input = -1};
  int at = 0;
  for (int d = 0; d < dst.rank; d++) {
    if (dst.size[d] != r.size[d])
      return false;
    if (dst.size[d] != 1)
      out.step[at++] = dst.stride[d];
  }
  if (at != op->n_loops)
    return false;
  for (int i = 0; i < op->n_in; i++)
    if (op->in[i].storage == dst.storage &&
        (op->in[i].offset != out.offset || memcmp(op->in[i].step, out.step, sizeof out.step) != 0))
      return false;
  op->out = out;
  op->role = SW_ROLE_WRITE;
  return true;
}

/* A node that writes a whole tensor makes a new one: whoever reads the old one, or a view of it, afterwards reads the new
 * one, as in core ATen, where there are no writes. That takes a new tensor that lies in memory as the old one does; in
 * profile best one that this node made for itself, since a second write goes where the first one went. What the run
 * changes gets its new contents in place again where nobody is in the way (state.c); in the reference at the end (finish.c). */
static bool replaces(struct lower *l, struct tensor dst, struct tensor r)
{
  const struct sw_storage *old = &l->program->storages.v[dst.storage], *new = &l->program->storages.v[r.storage];
  bool own = r.storage >= l->first_storage && new->kind == SW_STORAGE_TEMPORARY;
  if ((l->best && (!own || r.storage == dst.storage)) || dst.offset || r.offset || dst.rank != r.rank || old->rank != dst.rank || new->rank != r.rank ||
      dst.dtype != r.dtype || new->kind == SW_STORAGE_SCALAR || new->kind == SW_STORAGE_CONSTANT ||
      (!own && lw_storage(l, r.storage)->mutated))
    return false; /* an input that is read here for the first time is no tensor of this node either */
  for (int d = 0; d < dst.rank; d++)
    if (dst.size[d] != r.size[d] || old->size[d] != dst.size[d] || new->size[d] != r.size[d] ||
        (dst.size[d] != 1 &&
         (dst.stride[d] != r.stride[d] || old->stride[d] != dst.stride[d] || new->stride[d] != r.stride[d])))
      return false;
  lw_storage(l, dst.storage)->moved = r.storage + 1;
  return true;
}

/* copy_ is two nodes in the reference: the source laid out as it likes, then the write. The first is nothing where both
 * lie in memory alike. */
static struct tensor copied(struct lower *l, struct tensor r)
{
  const struct sw_node *n = lw_node(l);
  if (l->best || strcmp(n->target, "aten.copy_.default") || !lw_is_tensor(l, &n->args[0]) || !lw_is_tensor(l, &n->args[1]))
    return r;
  const struct sw_value *to = &l->graph->values.v[n->args[0].value], *from = &l->graph->values.v[n->args[1].value];
  bool alike = to->rank == from->rank && to->dtype == from->dtype && !memcmp(to->size, from->size, (size_t)to->rank * sizeof *to->size) &&
               !memcmp(to->stride, from->stride, (size_t)to->rank * sizeof *to->stride);
  return alike ? r : lw_pointwise(l, SW_OP_IDENTITY, r.dtype, 1, &r);
}

static void write_back(struct lower *l)
{
  const struct sw_node *n = lw_node(l);
  for (int k = 0, result = 0; k < n->n_args && k < n->schema->n_args; k++) {
    const char *type = n->schema->args[k].type;
    const char *mark = strchr(type, '!');
    if (strncmp(type, "Tensor(", 7) || !mark || n->args[k].kind != SW_ARG_VALUE)
      continue;
    if (result >= n->n_results || n->results[result] < 0)
      return;
    struct tensor r = l->tensors[n->results[result]];
    struct tensor dst = lw_tensor_of_value(l, n->args[k].value);
    if (r.storage != LW_LATER && lw_known(r) && lw_known(dst) && !lw_same_view(r, dst)) {
      r = copied(l, r);
      if (!replaces(l, dst, r) && !lw_write_lane(l, dst, r) && (!l->best || !retarget(l, dst, r)))
        lw_write(l, dst, r);
    }
    l->tensors[n->results[result]] = dst;
    result++;
  }
}

/* -- one node -- */

/* A node that depends on constants without stored values (a program without weights) runs on the host as long as
 * something in it is not fp16: integer positions, float32 RoPE tables. With weights it would be folded. */
static bool is_load_time_work(struct lower *l)
{
  const struct sw_node *n = lw_node(l);
  if (!l->node_constant[l->node])
    return false;
  if (n->n_args && lw_is_tensor(l, &n->args[0]) && lw_value(l, 0) && !strcmp(n->target, "aten.to.device") &&
      l->graph->values.v[n->args[0].value].dtype == lw_value(l, 0)->dtype)
    return false; /* nothing is done */
  bool half = true;
  for (int r = 0; r < n->n_results; r++)
    half = half && (n->results[r] < 0 || lw_is_half(l->graph->values.v[n->results[r]].dtype));
  for (int k = 0; k < n->n_args; k++)
    half = half && (!lw_is_tensor(l, &n->args[k]) || lw_is_half(l->graph->values.v[n->args[k].value].dtype));
  return !half;
}

/* A float32 tensor from the host has its lanes in host order; the device's cast to fp16 would leave them in another
 * order than any fp16 tensor has (ops.md 1.4). So float32 arithmetic on nothing but such tensors, and their cast to fp16, stays on
 * the host: the RoPE factors of a position that is known at run time. */
static bool is_from_host(struct lower *l, const struct sw_arg *a, bool *any)
{
  if (a->kind == SW_ARG_LIST) {
    for (int i = 0; i < a->list.n; i++)
      if (!is_from_host(l, &a->list.v[i], any))
        return false;
    return true;
  }
  if (!lw_is_tensor(l, a) || lw_constant_elements(l, a->value))
    return true;
  struct tensor t = lw_tensor_of_value(l, a->value);
  if (!lw_known(t) || t.dtype != SW_F32)
    return false;
  bool made = lw_storage(l, t.storage)->by_host;
  *any = *any || made;
  return made || (l->values[a->value].constant && l->input_of[l->values[a->value].root] >= 0); /* frequencies that are not in the file */
}

static bool is_host_float(struct lower *l)
{
  const struct sw_node *n = lw_node(l);
  const struct sw_value *v = lw_value(l, 0);
  bool any = false;
  if (!l->best || !v || v->kind != SW_VALUE_TENSOR || (v->dtype != SW_F32 && !lw_is_half(v->dtype)))
    return false;
  for (int k = 0; k < n->n_args; k++)
    if (!is_from_host(l, &n->args[k], &any))
      return false;
  return any && sw_eval_knows(n->target);
}

/* Float32 that is not computed in fp16 (narrow.c). */
static bool is_float32_only(struct lower *l)
{
  const struct sw_value *v = lw_value(l, 0);
  return v && v->kind == SW_VALUE_TENSOR && v->dtype == SW_F32 && lw_result_dtype(l, 0) == SW_F32;
}

/* Folded nodes that are lowered all the same: a view of a buffer stays a view, without a second copy of the buffer's
 * elements; and the reference writes a tensor that is full of one number (ops.md 2.6). */
static bool stays(struct lower *l, const struct lw_operation *op)
{
  const struct sw_value *v = lw_value(l, 0);
  if (!op || !v)
    return false;
  if (op->kind == LW_VIEW)
    return l->input_of[l->values[lw_node(l)->results[0]].root] >= 0;
  return !l->best && op->kind == LW_CONSTANT && v->rank > 0 && (lw_is_half(v->dtype) || v->dtype == SW_F32);
}

/* Why a result's size or place is known at run time only, or NULL: nothing here has a run-time size. */
static const char *size_on_data(struct lower *l)
{
  for (int r = 0; r < lw_node(l)->n_results; r++) {
    const struct sw_value *v = lw_value(l, r);
    if (v && v->offset_expr)
      return v->offset_expr;
    for (int d = 0; v && d < v->rank; d++)
      if ((v->size_expr && v->size_expr[d]) || (v->stride_expr && v->stride_expr[d]))
        return v->size_expr && v->size_expr[d] ? v->size_expr[d] : v->stride_expr[d];
  }
  return NULL;
}

/* A result that PyTorch makes anew may be an operand itself here (roll by 0, an index that is a view) as long as nobody
 * writes into either. */
static void keep_apart(struct lower *l)
{
  const struct sw_node *n = lw_node(l);
  for (int r = 0; r < n->n_results; r++) {
    if (n->results[r] < 0 || !lw_is_fresh(l, r))
      continue;
    struct tensor t = l->tensors[n->results[r]];
    if (t.storage == LW_LATER || !lw_known(t) || t.storage == l->taken_over)
      continue;
    enum sw_storage_kind kind = l->program->storages.v[t.storage].kind;
    if (kind == SW_STORAGE_SCALAR || (kind == SW_STORAGE_TEMPORARY && t.storage >= l->first_storage))
      continue;
    if (lw_storage(l, t.storage)->mutated || l->values[l->values[n->results[r]].root].mutated)
      lw_set(l, r, lw_clone(l, t));
  }
}

static void run_node(struct lower *l, int node)
{
  const struct sw_node *n = &l->graph->nodes.v[node];
  l->node = node;
  l->n_named = 0;
  l->failed = false;
  l->early = n->n_results > 0 && n->results[0] >= 0 && l->values[n->results[0]].looked_at;
  l->first_op = l->program->ops.n;
  l->first_storage = l->program->storages.n;
  l->taken_over = LW_NONE;
  const struct lw_operation *op = lw_operation_of(l, n);
  const struct lw_match *match = l->matches[node];
  bool folded = !match && lw_fold_node(l);
  if (!folded && !match)
    lw_touch_arguments(l);
  if (folded && !stays(l, op))
    return;
  if (match) {
    lw_run_match(l, match);
  } else if (!op) {
    const char *why, *advice = lw_advice(n->target, &why);
    lw_refuse(l, advice, "%s", why);
  } else if (op->kind != LW_REFUSED && size_on_data(l)) {
    if (lw_arguments_known(l))
      lw_refuse(l, "give the result a fixed size", "the size of the result depends on the data (%s)", size_on_data(l));
  } else if (!folded && op->kind != LW_REFUSED && lw_run_complex(l, op)) {
    /* done, or refused */
  } else if (!folded && op->kind != LW_VIEW && op->kind != LW_NOTHING && is_load_time_work(l)) {
    lw_host(l, 0);
  } else if (!folded && op->kind != LW_VIEW && op->kind != LW_NOTHING && is_host_float(l)) {
    lw_host(l, LW_HOST_FLOAT);
  } else if (l->best && op->half_only && op->run != lw_op_cast && is_float32_only(l) && !lw_is_product(op)) {
    lw_host(l, LW_HALF_ONLY);
  } else {
    op->run(l, op->param);
    if (op->kind == LW_VIEW && n->n_results > 1 && l->tensors[n->results[0]].storage >= 0)
      *SW_PUSH(l->arena, &l->splits) = (struct lw_split){l->tensors[n->results[0]].storage, l->program->ops.n};
    if (lw_node_writes(l, node))
      write_back(l);
    else if (op->kind != LW_VIEW)
      keep_apart(l);
  }
  for (int r = 0; r < n->n_results; r++)
    if (n->results[r] >= 0 && l->tensors[n->results[r]].storage == LW_LATER) {
      const struct sw_value *v = &l->graph->values.v[n->results[r]];
      if (v->kind == SW_VALUE_TENSOR && l->values[n->results[r]].live && !l->failed && lw_arguments_known(l))
        lw_refuse(l, NULL, "result %s is not available", v->name);
      l->tensors[n->results[r]] = lw_unknown();
    }
}

/* Results of nodes that have no storage of their own name. */
static void list_views(struct lower *l)
{
  for (int i = 0; i < l->graph->nodes.n; i++)
    for (int r = 0; r < l->graph->nodes.v[i].n_results; r++) {
      int value = l->graph->nodes.v[i].results[r], storage = value < 0 ? LW_LATER : l->tensors[value].storage;
      if (storage < 0)
        continue;
      const char *name = l->graph->values.v[value].name, *of = l->program->storages.v[storage].name;
      if (strcmp(name, of) != 0)
        *SW_PUSH(l->job->arena, &l->program->views) = (struct sw_named_view){name, of};
    }
}

void lw_begin(struct lower *l, struct sw_job *job, const struct sw_options *o, const struct sw_graph *g)
{
  l->job = job;
  l->arena = job->arena;
  l->options = o;
  l->graph = g;
  l->best = o->profile == SW_PROFILE_BEST;
  l->program = SW_NEW(job->arena, struct sw_program);
  l->program->graph = g;
  l->scalars.arena = l->tables.arena = l->operations.arena = job->arena;
  for (int i = 0; i < lw_n_operations; i++)
    sw_map_set_str(&l->operations, lw_operations[i].target, i);
}

enum sw_rc sw_lower(struct sw_job *job, const struct sw_options *o, const struct sw_graph *g, struct sw_program **out)
{
  if (o->profile == SW_PROFILE_BEST)
    SW_TRY(lw_straighten(job, o, &g));
  struct lower *l = SW_NEW(job->arena, struct lower);
  lw_begin(l, job, o, g);
  SW_TRY(lw_analyse(l));
  l->tensors = SW_NEW_N(job->arena, struct tensor, g->values.n);
  for (int v = 0; v < g->values.n; v++)
    l->tensors[v].storage = LW_LATER;
  int faults = job->faults.n;
  for (int i = 0; i < g->nodes.n; i++) {
    if (sw_cancelled(job))
      return sw_fail(job, SW_CANCELLED, "stopped while lowering");
    if (l->node_live[i])
      run_node(l, i);
    sw_arena_free(l->scratch);
    l->scratch = NULL;
  }
  if (job->faults.n > faults)
    return job->worst;
  lw_outputs(l);
  if (job->faults.n > faults)
    return job->worst;
  list_views(l);
  lw_finish(l);
  sw_eval_forget(l->eval); /* constants that are left are storages now */
  if (job->faults.n > faults)
    return job->worst;
#ifndef NDEBUG
  SW_TRY(sw_program_verify(job, l->program, "lower"));
#endif
  *out = l->program;
  return SW_OK;
}
