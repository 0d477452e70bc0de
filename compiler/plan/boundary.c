/* Copies at the border of the program (scratchpad.md section 6). A graph input that several ops of a kernel read is
 * copied into LX once, right in front of its first reader, and all of them read the copy. A graph output that is read
 * inside stays in LX, and right behind its writer a copy goes to HBM and becomes the output. A loop that one of them is
 * in counts as one op. */
#include "compiler/plan/liveness.h"
#include "compiler/plan/loops.h"
#include "compiler/plan/scratchpad.h"

#include <string.h>

/* Loops of `like` that walk along the access, outermost first (by step), or as they are. */
static int take_loops(const struct sw_op *like, const struct sw_access *x, bool by_step, int loop[SW_MAX_LOOPS])
{
  int n = 0;
  for (int l = 0; l < like->n_loops; l++) {
    if (!x->step[l])
      continue;
    int k = n++;
    for (; by_step && k > 0 && x->step[loop[k - 1]] < x->step[l]; k--)
      loop[k] = loop[k - 1];
    loop[k] = l;
  }
  return n;
}

bool sw_boundary_copy(struct sw_arena *arena, const struct sw_program *p, const struct sw_op *like, int operand,
                      struct sw_op *out)
{
  const struct sw_access *x = operand < 0 ? &like->out : &like->in[operand];
  struct sw_core_view want, got;
  if (sw_core_view(p, like, operand, &want) != SW_LX_FITS)
    return false;
  for (int by_step = 1; by_step >= 0; by_step--) {
    int loop[SW_MAX_LOOPS], n = take_loops(like, x, by_step, loop);
    struct sw_op_plan *plan = SW_NEW(arena, struct sw_op_plan);
    *out = (struct sw_op){.op = SW_OP_IDENTITY,
                          .role = SW_ROLE_CLONE,
                          .n_loops = n,
                          .n_written = n,
                          .n_in = 1,
                          .source = like->source,
                          .plan = plan};
    out->out = (struct sw_access){.storage = x->storage, .offset = x->offset, .index_input = -1};
    plan->cores = 1;
    plan->kernel = like->plan->kernel;
    for (int l = 0; l < SW_MAX_LOOPS; l++)
      plan->split[l] = 1;
    for (int l = 0; l < n; l++) {
      out->range[l] = like->range[loop[l]];
      out->out.step[l] = x->step[loop[l]];
      plan->split[l] = like->plan->split[loop[l]];
      plan->cores *= (int)plan->split[l];
    }
    out->in[0] = out->out;
    if (sw_core_view(p, out, -1, &got) == SW_LX_FITS && sw_core_view_equal(&want, &got))
      return true;
  }
  return false;
}

/* A second storage of the same shape. Input: it takes over the place in LX; output: it takes over being the output. */
static int add_twin(struct sw_job *job, struct sw_program *p, int storage, bool is_input)
{
  struct sw_storage *twin = SW_PUSH(job->arena, &p->storages), *s = &p->storages.v[storage];
  *twin = (struct sw_storage){.name = sw_arena_printf(job->arena, "%s:%s", s->name, is_input ? "lx" : "hbm"),
                              .kind = SW_STORAGE_TEMPORARY,
                              .dtype = s->dtype,
                              .rank = s->rank,
                              .input = -1,
                              .dynamic = s->dynamic,
                              .rows = s->rows,
                              .layout = s->layout};
  memcpy(twin->size, s->size, sizeof s->size);
  memcpy(twin->stride, s->stride, sizeof s->stride);
  if (is_input) {
    twin->place = s->place;
    s->place = NULL;
  } else {
    twin->is_output = s->is_output;
    s->is_output = false;
  }
  return p->storages.n - 1;
}

/* The copy as the last op of the program; its readers or, for an output, the program's outputs are told by the caller. */
static int add_copy(struct sw_job *job, struct sw_program *p, const struct sw_boundary *b, int *twin)
{
  struct sw_op *op = SW_PUSH(job->arena, &p->ops);
  sw_boundary_copy(job->arena, p, &p->ops.v[b->like], b->operand, op);
  *twin = add_twin(job, p, b->storage, b->operand >= 0);
  op->name = p->storages.v[*twin].name;
  op->in[0].storage = b->storage;
  op->out.storage = *twin;
  return p->ops.n - 1;
}

void sw_insert_boundary_copies(struct sw_job *job, struct sw_program *p, struct sw_plan *plan,
                               const struct sw_life *lives, const struct sw_boundary *copies, int n)
{
  if (!n)
    return;
  int n_ops = p->ops.n, n_storages = p->storages.n;
  struct sw_arena *scratch = sw_arena_new(job->arena, SIZE_MAX);
  struct sw_around around = {SW_NEW_N(scratch, struct sw_ops, n_ops), SW_NEW_N(scratch, struct sw_ops, n_ops), n_ops};
  int *output_of = SW_NEW_N(scratch, int, n_storages);
  const struct sw_span *span = sw_loop_spans(scratch, p);
  for (int c = 0; c < n; c++) {
    int twin, op = add_copy(job, p, &copies[c], &twin);
    const struct sw_life *l = &lives[copies[c].storage];
    bool is_input = copies[c].operand >= 0;
    const struct sw_op *like = &p->ops.v[copies[c].like];
    int at = is_input || !like->n_levels ? sw_entrance(p, span, like, 0, copies[c].like)
                                         : p->steps.v[span[like->level[0].loop].last].index;
    *SW_PUSH(scratch, &(is_input ? around.before : around.behind)[at].of) = op;
    if (!is_input)
      output_of[copies[c].storage] = twin;
    for (int t = 0; is_input && t < l->n; t++)
      p->ops.v[l->touch[t].op].in[l->touch[t].operand].storage = twin;
  }
  for (int k = 0; k < p->outputs.n; k++) {
    struct sw_view *view = &p->outputs.v[k].view;
    if (p->outputs.v[k].is_tensor && output_of[view->storage])
      view->storage = output_of[view->storage];
  }
  sw_insert_around(job, p, plan, &around);
  sw_arena_free(scratch);
}
