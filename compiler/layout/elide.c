/* Copies back into an input that nobody needs. Reference: layouts.md 4.12.
 *
 *   m = mm(x, w); cache.copy_(m)        m and cache have come out in one layout: mm writes into cache, m is gone
 *
 * It is done behind the choice, where it can only gain: the copy was there in any case, and had the two come out in different
 * layouts it would move the stick and stay. What must hold: the copy is of the whole, element by element; nobody else reads m,
 * and one op writes it; between that op and the copy nobody reads or writes the input. The op itself may read it in profile
 * best, just where it writes (see retarget() in compiler/lower/lower.c).
 *
 * Profile torch-spyre does it where the reference does: nothing else reads, writes or returns the input, and the layout of m was
 * no choice. */
#include "compiler/layout/choose.h"

#include <string.h>

struct uses {
  int reads, writes; /* by ops and host steps */
  int writer;        /* step of the last write */
  int touched;       /* last step so far that reads or writes it; -1: none */
  bool returned;     /* by an output that is not its own new value */
};

static void use_args(struct uses *u, const struct sw_host_arg *args, int n, int step)
{
  for (int i = 0; i < n; i++)
    if (args[i].kind == SW_HOST_VIEW) {
      u[args[i].view.storage].reads++;
      u[args[i].view.storage].touched = step;
    } else if (args[i].kind == SW_HOST_LIST) {
      use_args(u, args[i].list, args[i].n_list, step);
    }
}

static void use_write(struct uses *u, int storage, int step)
{
  u[storage].writes++;
  u[storage].writer = u[storage].touched = step;
}

static void use(const struct sw_program *p, struct uses *u, int step)
{
  if (!p->steps.v[step].is_host) {
    const struct sw_op *op = &p->ops.v[p->steps.v[step].index];
    for (int k = 0; k < op->n_in; k++) {
      u[op->in[k].storage].reads++;
      u[op->in[k].storage].touched = step;
    }
    use_write(u, op->out.storage, step);
    return;
  }
  const struct sw_host_step *h = &p->host_steps.v[p->steps.v[step].index];
  use_args(u, h->args.v, h->args.n, step);
  for (int r = 0; r < h->results.n; r++)
    if (h->results.v[r].storage >= 0)
      use_write(u, h->results.v[r].storage, step);
}

/* Of the whole program. */
static struct uses *count_uses(struct sw_choosing *c)
{
  const struct sw_program *p = c->p;
  struct uses *u = SW_NEW_N(c->arena, struct uses, p->storages.n + 1);
  for (int i = 0; i < p->steps.n; i++)
    use(p, u, i);
  for (int i = 0; i < p->outputs.n; i++)
    if (p->outputs.v[i].is_tensor && !p->outputs.v[i].mutates)
      u[p->outputs.v[i].view.storage].returned = true;
  return u;
}

static bool same_place(const struct sw_access *a, const struct sw_access *b)
{
  return a->offset == b->offset && a->index_input < 0 && b->index_input < 0 && !memcmp(a->step, b->step, sizeof a->step);
}

/* Whether it copies one tensor into another of the same elements, all of them, to where they were. */
static bool copies_whole(const struct sw_program *p, const struct sw_op *op)
{
  const struct sw_storage *from = &p->storages.v[op->in[0].storage], *to = &p->storages.v[op->out.storage];
  size_t bytes = (size_t)to->rank * sizeof *to->size;
  int64_t n = 1;
  for (int l = 0; l < op->n_loops; l++)
    n *= op->range[l];
  return op->op == SW_OP_IDENTITY && op->role == SW_ROLE_WRITE && op->n_in == 1 && from->dtype == to->dtype &&
         from->rank == to->rank && !memcmp(from->size, to->size, bytes) && !memcmp(from->stride, to->stride, bytes) &&
         from->dynamic == to->dynamic && from->rows == to->rows && n == sw_storage_elements(to) && same_place(&op->in[0], &op->out);
}

/* Whether `op`, which makes m, may write into the input instead. */
static bool may_write(const struct sw_choosing *c, const struct sw_op *op, int input)
{
  if (op->role == SW_ROLE_CONVERSION || op->role == SW_ROLE_PADDING || op->out.index_input >= 0)
    return false;
  for (int k = 0; k < op->n_in; k++)
    if (op->in[k].storage == input &&
        (!c->best || !same_place(&op->in[k], &op->out) || op->n_loops != op->n_written || !sw_follows_slices(op)))
      return false;
  return true;
}

/* Whether the copy at `step` can go: the uses so far, and those of the whole program. */
static bool can_go(const struct sw_choosing *c, const struct uses *so_far, const struct uses *all, int step)
{
  const struct sw_program *p = c->p;
  const struct sw_op *copy = &p->ops.v[p->steps.v[step].index];
  int m = copy->in[0].storage, input = copy->out.storage;
  if (!copies_whole(p, copy) || m >= c->n_storages || input >= c->n_storages)
    return false;
  const struct sw_storage *from = &p->storages.v[m], *to = &p->storages.v[input];
  bool alone = from->kind == SW_STORAGE_TEMPORARY && !from->is_output && all[m].reads == 1 && all[m].writes == 1;
  bool given = to->kind == SW_STORAGE_INPUT || to->kind == SW_STORAGE_PARAMETER || to->kind == SW_STORAGE_BUFFER;
  if (!alone || !given || c->pinned[m] || from->has_pad_fill || to->has_pad_fill || !sw_layout_equal(from->layout, to->layout))
    return false;
  if (!c->best && (c->candidates[m].n != 1 || all[input].reads || all[input].writes != 1 || all[input].returned))
    return false;
  struct sw_step maker = p->steps.v[all[m].writer];
  return !maker.is_host && so_far[input].touched <= all[m].writer && may_write(c, &p->ops.v[maker.index], input);
}

/* Takes ops out of the program, and storages, and out of the choice, which counts them too. */
static void take_out(struct sw_choosing *c, const bool *op_gone, const bool *storage_gone)
{
  struct sw_program *p = c->p;
  struct sw_choice *choice = c->choice;
  int *op_number = SW_NEW_N(c->arena, int, p->ops.n + 1), *number = SW_NEW_N(c->arena, int, p->storages.n + 1), n = 0;
  for (int s = 0; s < p->storages.n; s++) {
    number[s] = n;
    if (storage_gone[s])
      continue;
    if (s < choice->n_candidates)
      choice->candidates[n] = choice->candidates[s];
    p->storages.v[n++] = p->storages.v[s];
  }
  choice->n_candidates -= p->storages.n - n;
  p->storages.n = n;
  n = 0;
  for (int i = 0; i < p->ops.n; i++) {
    op_number[i] = n;
    if (op_gone[i])
      continue;
    p->ops.v[n++] = p->ops.v[i];
  }
  p->ops.n = n;
  n = 0;
  for (int i = 0; i < p->steps.n; i++) {
    struct sw_step s = p->steps.v[i];
    if (!s.is_host && op_gone[s.index])
      continue;
    s.index = s.is_host ? s.index : op_number[s.index];
    p->steps.v[n++] = s;
  }
  p->steps.n = n;
  sw_renumber_storages(p, number);
  for (int i = 0; i < choice->conversions.n; i++) {
    struct sw_conversion *x = &choice->conversions.v[i];
    x->storage = number[x->storage];
    x->copy = number[x->copy];
    x->op = op_number[x->op];
    for (int r = 0; r < x->readers.n; r++)
      x->readers.v[r] = op_number[x->readers.v[r]];
  }
}

void sw_layout__elide_copies_back(struct sw_choosing *c)
{
  struct sw_program *p = c->p;
  struct uses *all = count_uses(c), *so_far = SW_NEW_N(c->arena, struct uses, p->storages.n + 1);
  bool *op_gone = SW_NEW_N(c->arena, bool, p->ops.n + 1), *storage_gone = SW_NEW_N(c->arena, bool, p->storages.n + 1);
  bool any = false;
  for (int s = 0; s < p->storages.n; s++)
    so_far[s].touched = -1;
  for (int i = 0; i < p->steps.n; i++) {
    if (!p->steps.v[i].is_host && can_go(c, so_far, all, i)) {
      const struct sw_op *copy = &p->ops.v[p->steps.v[i].index];
      int m = copy->in[0].storage;
      struct sw_op *maker = &p->ops.v[p->steps.v[all[m].writer].index];
      maker->out.storage = copy->out.storage;
      maker->role = SW_ROLE_WRITE;
      for (int k = 0; k < copy->nodes.n; k++)
        *SW_PUSH(c->job->arena, &maker->nodes) = copy->nodes.v[k];
      op_gone[p->steps.v[i].index] = storage_gone[m] = any = true;
    }
    use(p, so_far, i);
  }
  if (any)
    take_out(c, op_gone, storage_gone);
}
