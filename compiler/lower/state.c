/* What a run changes, profile best: the new value of an input or buffer is written where the old one lies when its writer
 * is the last that touches the old one. A counter, running statistics or a state are then the very buffer that was loaded,
 * and the next run finds them there. Both dialects come out alike: one writes in place (lower.c makes that a new value),
 * the other names the new value as an output.
 *
 *   mul = mul %mean, 0.5                      mul = mul %mean, 0.5
 *   add = add %mul, %mean:1        becomes    mean = add %mul, %mean:1
 *   return add = %add mutates mean            return add = %mean mutates mean
 */
#include "compiler/lower/lower.h"

#include <string.h>

enum { NEVER = -1 };

struct uses {
  int *writer, *n_writes; /* step that wrote last */
  int *touched;           /* last step that reads or writes */
  int *n_outputs;
};

static void touch_args(struct uses *u, const struct sw_host_arg *args, int n, int step)
{
  for (int i = 0; i < n; i++)
    if (args[i].kind == SW_HOST_VIEW)
      u->touched[args[i].view.storage] = step;
    else if (args[i].kind == SW_HOST_LIST)
      touch_args(u, args[i].list, args[i].n_list, step);
}

static void wrote(struct uses *u, int storage, int step)
{
  u->touched[storage] = u->writer[storage] = step;
  u->n_writes[storage]++;
}

static struct uses find_uses(struct lower *l)
{
  const struct sw_program *p = l->program;
  int n = p->storages.n;
  struct uses u = {SW_NEW_N(l->arena, int, n), SW_NEW_N(l->arena, int, n), SW_NEW_N(l->arena, int, n), SW_NEW_N(l->arena, int, n)};
  for (int s = 0; s < n; s++)
    u.writer[s] = u.touched[s] = NEVER;
  for (int i = 0; i < p->steps.n; i++) {
    const struct sw_step *s = &p->steps.v[i];
    if (s->is_host) {
      const struct sw_host_step *h = &p->host_steps.v[s->index];
      touch_args(&u, h->args.v, h->args.n, i);
      for (int r = 0; r < h->results.n; r++)
        if (h->results.v[r].storage >= 0)
          wrote(&u, h->results.v[r].storage, i);
      continue;
    }
    const struct sw_op *op = &p->ops.v[s->index];
    for (int k = 0; k < op->n_in; k++)
      u.touched[op->in[k].storage] = i;
    wrote(&u, op->out.storage, i);
  }
  for (int i = 0; i < p->outputs.n; i++)
    if (p->outputs.v[i].is_tensor)
      u.n_outputs[p->outputs.v[i].view.storage]++;
  return u;
}

static bool lie_alike(const struct sw_storage *a, const struct sw_storage *b)
{
  return a->dtype == b->dtype && a->rank == b->rank && !memcmp(a->size, b->size, (size_t)a->rank * sizeof *a->size) &&
         !memcmp(a->stride, b->stride, (size_t)a->rank * sizeof *a->stride);
}

/* Whether the writer may write over `old`: it reads it, if at all, just where it writes; the host reads all first. Float32
 * from the device has its lanes in another order than what was loaded (ops.md 1.4). */
static bool may_overwrite(const struct sw_program *p, const struct sw_step *s, int old, enum sw_dtype dtype)
{
  if (s->is_host)
    return true;
  const struct sw_op *op = &p->ops.v[s->index];
  for (int k = 0; k < op->n_in; k++)
    if (op->in[k].storage == old && (op->in[k].index_input >= 0 || op->in[k].offset != op->out.offset ||
                                     memcmp(op->in[k].step, op->out.step, sizeof op->out.step) != 0))
      return false;
  return op->out.index_input < 0 && dtype != SW_F32 && dtype != SW_BOOL;
}

void lw_change_in_place(struct lower *l)
{
  struct sw_program *p = l->program;
  if (!l->changes.n)
    return;
  struct uses u = find_uses(l);
  int *now = SW_NEW_N(l->arena, int, p->storages.n);
  for (int s = 0; s < p->storages.n; s++)
    now[s] = s;
  for (int i = 0; i < l->changes.n; i++) {
    int new = p->outputs.v[l->changes.v[i].output].view.storage, old = l->changes.v[i].storage;
    if (old < 0 || new == old || p->storages.v[new].kind != SW_STORAGE_TEMPORARY || now[new] != new)
      continue;
    bool alone = u.n_outputs[new] == 1 && u.n_outputs[old] == 0 && u.n_writes[new] == 1 && u.touched[old] <= u.writer[new];
    if (!alone || !lie_alike(&p->storages.v[new], &p->storages.v[old]) ||
        !may_overwrite(p, &p->steps.v[u.writer[new]], old, p->storages.v[new].dtype))
      continue;
    now[new] = old;
    p->storages.v[old].is_output = true;
    struct sw_step *s = &p->steps.v[u.writer[new]];
    if (!s->is_host)
      p->ops.v[s->index].role = SW_ROLE_WRITE;
  }
  sw_renumber_storages(p, now);
}
