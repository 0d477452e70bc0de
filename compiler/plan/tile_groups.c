/* Groups for automatic tiles: ops joined by buffers that are too large for the scratchpads, with all that only lives between
 * them. A group runs as one, so nothing that waits for it may lie in between, and nothing in it be seen from outside. */
#include "compiler/plan/tile.h"

enum { NOBODY = -1, SEVERAL = -2, MAX_GROUP = 64 };

/* -- facts -- */

static void fix_args(struct sw_tiler *t, const struct sw_host_arg *args, int n)
{
  for (int i = 0; i < n; i++) {
    if (args[i].kind == SW_HOST_VIEW)
      t->storage[args[i].view.storage].fixed = true;
    fix_args(t, args[i].list, args[i].n_list);
  }
}

static void look_at_host_step(struct sw_tiler *t, const struct sw_host_step *h)
{
  fix_args(t, h->args.v, h->args.n);
  for (int i = 0; i < h->results.n; i++)
    if (h->results.v[i].storage >= 0)
      t->storage[h->results.v[i].storage].fixed = true;
}

static void look_at_op(struct sw_tiler *t, int index)
{
  const struct sw_op *op = &t->p->ops.v[index];
  for (int k = 0; k <= op->n_in; k++) {
    struct sw_tiled_storage *s = &t->storage[sw_access_of(op, k)->storage];
    if (!s->ops.n || s->ops.v[s->ops.n - 1] != index)
      *SW_PUSH(t->scratch, &s->ops) = index;
  }
  struct sw_tiled_storage *out = &t->storage[op->out.storage];
  out->writer = out->writer == NOBODY ? index : SEVERAL;
}

void sw_tile_look(struct sw_tiler *t)
{
  for (int s = 0; s < t->p->storages.n; s++) {
    const struct sw_storage *x = &t->p->storages.v[s];
    t->storage[s].writer = NOBODY;
    t->storage[s].fixed = x->kind != SW_STORAGE_TEMPORARY || x->is_output || !x->layout;
  }
  for (int i = 0; i < t->p->steps.n; i++) {
    const struct sw_step *step = &t->p->steps.v[i];
    if (step->is_host) {
      look_at_host_step(t, &t->p->host_steps.v[step->index]);
    } else {
      t->op[step->index] = (struct sw_tiled_op){.tick = i, .loop = -1, .part_kind = -1};
      look_at_op(t, step->index);
    }
  }
  for (int i = 0; i < t->p->outputs.n; i++)
    if (t->p->outputs.v[i].is_tensor)
      t->storage[t->p->outputs.v[i].view.storage].fixed = true;
}

/* -- groups -- */

bool sw_tile_plain(const struct sw_op *op)
{
  bool plain = !op->n_levels && op->op != SW_OP_RESTICKIFY && op->role == SW_ROLE_PLAIN && op->out.index_input < 0;
  for (int i = 0; i < op->n_in; i++)
    plain &= op->in[i].index_input < 0 && op->in[i].storage != op->out.storage;
  return plain;
}

/* Between ops only, written once, and by what a tile can repeat. */
bool sw_tile_free(const struct sw_tiler *t, int storage)
{
  const struct sw_tiled_storage *s = &t->storage[storage];
  bool free = !s->fixed && s->writer >= 0 && s->ops.n > 1 && !s->group;
  for (int i = 0; free && i < s->ops.n; i++)
    free = sw_tile_plain(&t->p->ops.v[s->ops.v[i]]);
  return free;
}

bool sw_tile_large(const struct sw_tiler *t, int storage)
{
  return !t->storage[storage].fixed &&
         sw_layout_bytes(t->p->storages.v[storage].layout) > t->room;
}

static void join(struct sw_tiler *t, int storage)
{
  struct sw_tiled_storage *s = &t->storage[storage];
  s->group = t->number;
  for (int i = 0; i < s->ops.n; i++)
    if (!t->op[s->ops.v[i]].group) {
      t->op[s->ops.v[i]].group = t->number;
      *SW_PUSH(t->scratch, &t->group) = s->ops.v[i];
    }
}

/* The members in order of steps. */
static void sort_members(struct sw_tiler *t)
{
  int first = t->p->steps.n, last = 0;
  for (int i = 0; i < t->group.n; i++) {
    int tick = t->op[t->group.v[i]].tick;
    first = tick < first ? tick : first;
    last = tick > last ? tick : last;
  }
  t->group.n = 0;
  for (int i = first; i <= last; i++) {
    const struct sw_step *step = &t->p->steps.v[i];
    if (!step->is_host && t->op[step->index].group == t->number)
      *SW_PUSH(t->scratch, &t->group) = step->index;
  }
}

/* Whether all that touch what lives inside are members, and no member reads in one place outside what another wrote. */
static bool is_closed(const struct sw_tiler *t)
{
  for (int i = 0; i < t->group.n; i++) {
    const struct sw_op *op = &t->p->ops.v[t->group.v[i]];
    for (int k = 0; k <= op->n_in; k++) {
      const struct sw_tiled_storage *s = &t->storage[sw_access_of(op, k)->storage];
      bool inside = s->group == t->number;
      for (int j = 0; j < s->ops.n; j++) {
        bool member = t->op[s->ops.v[j]].group == t->number;
        if (inside ? !member : k == op->n_in && member && s->ops.v[j] != t->group.v[i])
          return false;
      }
    }
  }
  return true;
}

/* Whether an op reads or overwrites what an earlier member wrote, or overwrites what one read. */
static bool waits_for_group(const struct sw_tiler *t, int index)
{
  const struct sw_op *op = &t->p->ops.v[index];
  for (int k = 0; k <= op->n_in; k++) {
    int s = sw_access_of(op, k)->storage;
    for (int j = 0; j < t->storage[s].ops.n; j++) {
      int other = t->storage[s].ops.v[j];
      bool earlier = t->op[other].group == t->number && t->op[other].tick < t->op[index].tick;
      if (earlier && (k == op->n_in || t->p->ops.v[other].out.storage == s))
        return true;
    }
  }
  return false;
}

/* What lies between members and waits for one has to become a member. */
static void add_between(struct sw_tiler *t)
{
  int first = t->op[t->group.v[0]].tick, last = t->op[t->group.v[t->group.n - 1]].tick;
  for (int i = first; i <= last; i++) {
    const struct sw_step *step = &t->p->steps.v[i];
    if (step->is_host || t->op[step->index].group || !sw_tile_plain(&t->p->ops.v[step->index]) ||
        !waits_for_group(t, step->index))
      continue;
    t->op[step->index].group = t->number;
    *SW_PUSH(t->scratch, &t->group) = step->index;
  }
}

/* Ops of others between the group's first and last step run before it. */
static bool can_run_together(const struct sw_tiler *t)
{
  for (int i = t->op[t->group.v[0]].tick; i <= t->op[t->group.v[t->group.n - 1]].tick; i++) {
    const struct sw_step *step = &t->p->steps.v[i];
    if (step->is_host)
      return false;
    const struct sw_tiled_op *op = &t->op[step->index];
    if (op->group != t->number && (op->tiled || waits_for_group(t, step->index)))
      return false;
  }
  return true;
}

bool sw_tile_settle(struct sw_tiler *t)
{
  sort_members(t);
  return is_closed(t) && can_run_together(t);
}

/* Ops joined to this buffer by large ones, as far as MAX_GROUP, and the smaller buffers that live between them. */
bool sw_tile_collect(struct sw_tiler *t, int storage)
{
  t->group.n = 0;
  t->number++;
  join(t, storage);
  for (int i = 0; i < t->group.n; i++) {
    const struct sw_op *op = &t->p->ops.v[t->group.v[i]];
    for (int k = 0; k <= op->n_in; k++) {
      int s = sw_access_of(op, k)->storage;
      if (t->group.n < MAX_GROUP && sw_tile_large(t, s) && sw_tile_free(t, s))
        join(t, s);
    }
  }
  sort_members(t);
  add_between(t);
  for (int i = 0; i < t->group.n; i++) {
    int s = t->p->ops.v[t->group.v[i]].out.storage;
    bool inside = sw_tile_free(t, s);
    for (int k = 0; inside && k < t->storage[s].ops.n; k++)
      inside = t->op[t->storage[s].ops.v[k]].group == t->number;
    if (inside)
      t->storage[s].group = t->number;
  }
  return sw_tile_settle(t);
}

/* The members may still belong to another group. */
void sw_tile_give_up(struct sw_tiler *t)
{
  for (int i = 0; i < t->group.n; i++) {
    const struct sw_op *op = &t->p->ops.v[t->group.v[i]];
    t->op[t->group.v[i]].group = 0;
    for (int k = 0; k <= op->n_in; k++)
      if (t->storage[sw_access_of(op, k)->storage].group == t->number)
        t->storage[sw_access_of(op, k)->storage].group = 0;
  }
}
