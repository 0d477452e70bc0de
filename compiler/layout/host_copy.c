/* The last resort of profile best: where no layouts let an op read what it reads, the host lays that operand out anew, in
 * a step of its own in front of the op, and the layouts are chosen once more.
 *
 *   y = x[:, ::3] + 1, x [4,80]: one element in three of a stick, and no dim of 4 can be the stick of both ends
 *   x:copied [4,27] = aten.clone.default x[4,27]/[80,3] on the host;  y = x:copied + 1
 *
 * A step on the host costs more than any conversion, so this comes after all means of the device. Every pair that
 * nothing but such a copy can serve is copied; else one pair of the minimal conflict, since without it the others go
 * together: the one that moves the least. */
#include "compiler/layout/choose.h"

static int64_t elements_read(const struct sw_op *op, int input)
{
  int64_t n = 1;
  for (int l = 0; l < op->n_loops; l++)
    n *= op->in[input].step[l] ? op->range[l] : 1;
  return n;
}

/* Rows that are picked by number, pinned tensors, tensors of dynamic sizes and copies of this kind stay as they are. */
static bool can_be_copied(const struct sw_choosing *c, const struct sw_op *op, int input)
{
  const struct sw_access *x = &op->in[input];
  const struct sw_storage *s = &c->p->storages.v[x->storage];
  int rank = 0;
  bool backwards = false;
  for (int l = 0; l < op->n_loops; l++) {
    rank += x->step[l] != 0;
    backwards = backwards || x->step[l] < 0;
  }
  return x->index_input < 0 && !sw_layout__is_row_number(op, input) && !backwards && rank > 0 && rank <= SW_MAX_RANK &&
         op->n_levels == 0 && s->kind != SW_STORAGE_SCALAR && s->dtype != SW_BOOL && !s->dynamic && !c->pinned[x->storage] &&
         !c->pinned[op->out.storage] && x->storage < c->first_host_copy;
}

static bool same_access(const struct sw_op *op, const struct sw_access *a, const struct sw_access *b)
{
  bool same = a->storage == b->storage && a->offset == b->offset && a->index_input == b->index_input;
  for (int l = 0; l < op->n_loops; l++)
    same = same && a->step[l] == b->step[l];
  return same;
}

/* The operand becomes a tensor of its own, row major in the order of the loops. Gives the number of the step that makes it. */
static int copy_operand(struct sw_choosing *c, int op_at, int input)
{
  struct sw_op *op = &c->p->ops.v[op_at];
  const struct sw_access was = op->in[input];
  struct sw_storage like = {.dtype = c->p->storages.v[was.storage].dtype};
  struct sw_access now = {.index_input = -1};
  struct sw_view from = {.storage = was.storage, .offset = was.offset};
  int64_t stride = 1;
  for (int l = 0; l < op->n_loops; l++)
    if (was.step[l]) {
      like.size[like.rank++] = from.size[from.rank] = op->range[l];
      from.stride[from.rank++] = was.step[l];
    }
  for (int d = like.rank - 1; d >= 0; stride *= like.size[d--])
    like.stride[d] = stride;
  for (int l = 0, d = 0; l < op->n_loops; l++)
    now.step[l] = was.step[l] ? like.stride[d++] : 0;
  const char *name = sw_arena_printf(c->job->arena, "%s:copied", c->p->storages.v[was.storage].name);
  now.storage = sw_layout__add_storage(c, &like, name);
  for (int k = 0; k < op->n_in; k++)
    if (same_access(op, &op->in[k], &was))
      op->in[k] = now;
  struct sw_view to = {.storage = now.storage, .rank = like.rank};
  for (int d = 0; d < like.rank; d++) {
    to.size[d] = like.size[d];
    to.stride[d] = like.stride[d];
  }
  struct sw_host_step h = {.name = c->p->storages.v[now.storage].name, .target = "aten.clone.default",
                           .node = op->nodes.n ? op->nodes.v[0] : -1,
                           .why = sw_arena_printf(c->job->arena, "no layout of %s suits %s: the host lays it out anew",
                                                  c->p->storages.v[was.storage].name, op->name)};
  *SW_PUSH(c->job->arena, &h.args) = (struct sw_host_arg){.kind = SW_HOST_VIEW, .view = from};
  *SW_PUSH(c->job->arena, &h.results) = to;
  *SW_PUSH(c->job->arena, &c->p->host_steps) = h;
  return c->p->host_steps.n - 1;
}

/* The new steps, each in front of its op. */
static void place_steps(struct sw_choosing *c, const int *of_op, int n_ops)
{
  struct sw_step *old = c->p->steps.v;
  int n = c->p->steps.n;
  c->p->steps.v = NULL;
  c->p->steps.n = c->p->steps.cap = 0;
  for (int i = 0; i < n; i++) {
    if (!old[i].is_host && old[i].index < n_ops && of_op[old[i].index] >= 0)
      *SW_PUSH(c->job->arena, &c->p->steps) = (struct sw_step){true, of_op[old[i].index]};
    *SW_PUSH(c->job->arena, &c->p->steps) = old[i];
  }
}

bool sw_layout__copy_by_host(struct sw_choosing *c, const struct sw_problem *q)
{
  int n_ops = c->p->ops.n, best_op = -1, best_input = -1, copied = 0;
  int64_t least = 0;
  int *of_op = SW_NEW_N(c->arena, int, n_ops + 1);
  bool *in_conflict = SW_NEW_N(c->arena, bool, q->groups.n + 1);
  for (int i = 0; i < n_ops; i++)
    of_op[i] = -1;
  for (int i = 0; q->conflict && i < q->conflict->groups.n; i++)
    in_conflict[q->handed.v[q->conflict->groups.v[i]]] = true;
  for (int i = 0; i < q->groups.n; i++) {
    const struct sw_group *g = &q->groups.v[i];
    for (int k = 0; k < g->readings.n; k++) {
      const struct sw_reading *x = &g->readings.v[k];
      const struct sw_op *op = &c->p->ops.v[x->op];
      struct sw_prospect is = sw_layout__prospect(c, g, x);
      if ((!is.hopeless && !(is.can_fail && in_conflict[i])) || !can_be_copied(c, op, x->input))
        continue;
      int64_t n = elements_read(op, x->input);
      if (is.hopeless && of_op[x->op] < 0) {
        of_op[x->op] = copy_operand(c, x->op, x->input);
        copied++;
      } else if (!is.hopeless && (best_op < 0 || n < least)) {
        best_op = x->op;
        best_input = x->input;
        least = n;
      }
    }
  }
  if (!copied && best_op >= 0) {
    of_op[best_op] = copy_operand(c, best_op, best_input);
    copied++;
  }
  place_steps(c, of_op, n_ops);
  return copied > 0;
}
