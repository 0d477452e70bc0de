/* Copies that nobody needs (profile best). Both dialects of a model come out alike by that.
 *
 *  - The only reader of a tensor copies it whole into another order, heads [2,50,32] to rows [50,2,32]: the op that makes it
 *    writes it there. One dialect has the copy, the other a product that writes its rows in place.
 *  - A tensor is copied as it is into one that is overwritten as a whole later, or never read at the end: until then
 *    everybody reads the first one. One dialect copies a position into a counter's buffer and reads that. */
#include "compiler/lower/lower.h"

#include <string.h>

struct touches {
  int *reads, *writes, *writer; /* per storage; writer: op that wrote last */
};

static void count_args(struct touches *t, const struct sw_host_arg *args, int n)
{
  for (int i = 0; i < n; i++)
    if (args[i].kind == SW_HOST_VIEW)
      t->reads[args[i].view.storage]++;
    else if (args[i].kind == SW_HOST_LIST)
      count_args(t, args[i].list, args[i].n_list);
}

static void count(const struct sw_program *p, struct touches *t)
{
  for (int i = 0; i < p->steps.n; i++) {
    int at = p->steps.v[i].index;
    if (p->steps.v[i].is_host) {
      const struct sw_host_step *h = &p->host_steps.v[at];
      count_args(t, h->args.v, h->args.n);
      for (int r = 0; r < h->results.n; r++)
        if (h->results.v[r].storage >= 0)
          t->writes[h->results.v[r].storage]++;
      continue;
    }
    const struct sw_op *op = &p->ops.v[at];
    for (int k = 0; k < op->n_in; k++)
      t->reads[op->in[k].storage]++;
    t->writes[op->out.storage]++;
    t->writer[op->out.storage] = at;
  }
  for (int i = 0; i < p->outputs.n; i++)
    if (p->outputs.v[i].is_tensor)
      t->reads[p->outputs.v[i].view.storage]++;
}

/* Ops that may write in any order: a lane of the result is where its loops are. */
static bool writes_anywhere(const struct sw_op *op)
{
  return op->op == SW_OP_MATMUL || (op->op >= SW_OP_ABS && op->op <= SW_OP_TANH) || (op->op >= SW_OP_ADD && op->op <= SW_OP_WHERE);
}

/* Whether a dim of whole sticks is there. Heads of 32 lanes side by side fill a stick two by two: a product can write its
 * heads into sticks of their own only, or sticks along the rows, where there are whole ones of them; else the copy is where
 * the heads come together. */
static bool has_whole_sticks(const struct sw_op *copy)
{
  for (int k = 0; k < copy->n_loops; k++)
    if (copy->range[k] % 64 == 0)
      return true;
  return false;
}

/* Whether the copy reads just what `op` writes, loop by loop; then `op` writes what the copy does. */
static bool take_over(const struct sw_op *copy, struct sw_op *op)
{
  struct sw_access out = copy->out;
  memset(out.step, 0, sizeof out.step);
  if (copy->n_loops != op->n_written || copy->in[0].offset != op->out.offset)
    return false;
  for (int l = 0; l < op->n_written; l++) {
    int c = 0;
    while (c < copy->n_loops && (copy->in[0].step[c] != op->out.step[l] || copy->range[c] != op->range[l]))
      c++;
    if (c == copy->n_loops || !copy->in[0].step[c])
      return false;
    out.step[l] = copy->out.step[c];
  }
  op->out = out;
  return true;
}

/* The dims of the copy in the order of its source, as a tensor made so in the first place has them: [2,50,32] in steps
 * 32, 64, 1. What the caller sees stays as it is. */
static void take_order(const struct sw_op *copy, const struct sw_storage *s, struct sw_storage *d)
{
  int64_t stride[SW_MAX_RANK];
  if (d->is_output)
    return;
  for (int i = 0; i < s->rank; i++) {
    int c = 0;
    stride[i] = s->stride[i];
    while (s->size[i] > 1 && c < copy->n_loops && (copy->in[0].step[c] != s->stride[i] || copy->range[c] != s->size[i]))
      c++;
    if (s->size[i] > 1 && c == copy->n_loops)
      return;
    if (s->size[i] > 1)
      stride[i] = copy->out.step[c];
  }
  d->rank = s->rank;
  memcpy(d->size, s->size, sizeof d->size);
  memcpy(d->stride, stride, sizeof stride);
}

/* -- copies in the same order -- */

static bool is_plain_copy(const struct sw_program *p, const struct sw_op *op)
{
  const struct sw_storage *from = &p->storages.v[op->in[0].storage], *to = &p->storages.v[op->out.storage];
  return op->op == SW_OP_IDENTITY && op->n_in == 1 && from != to && from->dtype == to->dtype && from->dtype != SW_F32 &&
         from->kind != SW_STORAGE_SCALAR && op->n_loops == op->n_written && sw_storage_elements(from) == sw_storage_elements(to) &&
         op->in[0].offset == op->out.offset && op->in[0].index_input < 0 &&
         !memcmp(op->in[0].step, op->out.step, sizeof op->out.step) && lw_writes_all(p, op);
}

static void read_first(const int *source, struct sw_host_arg *args, int n)
{
  for (int i = 0; i < n; i++)
    if (args[i].kind == SW_HOST_VIEW)
      args[i].view.storage = source[args[i].view.storage];
    else if (args[i].kind == SW_HOST_LIST)
      read_first(source, args[i].list, args[i].n_list);
}

/* Per step: whether what it writes is never looked at, or overwritten as a whole, after the readers that come before the
 * next write. last_write: per storage, the last step that writes it, or -1. */
static bool *find_passing(struct lower *l, int *last_write)
{
  const struct sw_program *p = l->program;
  bool *passing = SW_NEW_N(l->arena, bool, p->steps.n), *needed = SW_NEW_N(l->arena, bool, p->storages.n);
  for (int i = 0; i < p->outputs.n; i++)
    if (p->outputs.v[i].is_tensor)
      needed[p->outputs.v[i].view.storage] = true; /* by whatever comes next: a write into a part, or the caller */
  for (int s = 0; s < p->storages.n; s++)
    last_write[s] = -1;
  for (int i = p->steps.n - 1; i >= 0; i--) {
    const struct sw_step *s = &p->steps.v[i];
    const struct sw_host_step *h = s->is_host ? &p->host_steps.v[s->index] : NULL;
    const struct sw_op *op = h ? NULL : &p->ops.v[s->index];
    for (int r = 0; h && r < h->results.n; r++) {
      int to = h->results.v[r].storage;
      if (to < 0)
        continue;
      last_write[to] = last_write[to] < 0 ? i : last_write[to];
      needed[to] = true;
    }
    if (!op)
      continue;
    int to = op->out.storage;
    last_write[to] = last_write[to] < 0 ? i : last_write[to];
    passing[i] = !needed[to];
    needed[to] = !lw_writes_all(p, op);
  }
  return passing;
}

static void read_sources(struct lower *l)
{
  struct sw_program *p = l->program;
  int *last_write = SW_NEW_N(l->arena, int, p->storages.n), *source = SW_NEW_N(l->arena, int, p->storages.n), kept = 0;
  bool *passing = find_passing(l, last_write);
  for (int s = 0; s < p->storages.n; s++)
    source[s] = s;
  for (int i = 0; i < p->steps.n; i++) {
    struct sw_step step = p->steps.v[i];
    if (step.is_host) {
      struct sw_host_step *h = &p->host_steps.v[step.index];
      read_first(source, h->args.v, h->args.n);
      for (int r = 0; r < h->results.n; r++)
        if (h->results.v[r].storage >= 0)
          source[h->results.v[r].storage] = h->results.v[r].storage;
    } else {
      struct sw_op *op = &p->ops.v[step.index];
      for (int k = 0; k < op->n_in; k++)
        op->in[k].storage = source[op->in[k].storage];
      int from = op->n_in ? op->in[0].storage : -1, to = op->out.storage;
      source[to] = to;
      if (passing[i] && is_plain_copy(p, op) && last_write[from] < i) {
        source[to] = from;
        continue;
      }
    }
    p->steps.v[kept++] = step;
  }
  p->steps.n = kept;
}

/* -- all copies -- */

void lw_forward_copies(struct lower *l)
{
  read_sources(l);
  struct sw_program *p = l->program;
  int n = p->storages.n, kept = 0;
  struct touches t = {SW_NEW_N(l->arena, int, n), SW_NEW_N(l->arena, int, n), SW_NEW_N(l->arena, int, n)};
  count(p, &t);
  for (int i = 0; i < p->steps.n; i++) {
    struct sw_step step = p->steps.v[i];
    const struct sw_op *copy = step.is_host ? NULL : &p->ops.v[step.index];
    if (copy && copy->op == SW_OP_IDENTITY && copy->role == SW_ROLE_CLONE && copy->n_in == 1) {
      int from = copy->in[0].storage, to = copy->out.storage;
      const struct sw_storage *s = &p->storages.v[from];
      struct sw_storage *d = &p->storages.v[to];
      bool alone = t.reads[from] == 1 && t.writes[from] == 1 && t.writes[to] == 1 && s->kind == SW_STORAGE_TEMPORARY &&
                   d->kind == SW_STORAGE_TEMPORARY && s->dtype == d->dtype && (s->dtype == SW_F16 || s->dtype == SW_BF16) && copy->in[0].index_input < 0;
      struct sw_op *op = alone ? &p->ops.v[t.writer[from]] : NULL;
      if (op && op->out.storage == from && op->role == SW_ROLE_PLAIN && op->out.index_input < 0 && writes_anywhere(op) &&
          sw_storage_elements(s) == sw_storage_elements(d) && has_whole_sticks(copy) && take_over(copy, op)) {
        t.writer[to] = t.writer[from];
        take_order(copy, s, d);
        continue;
      }
    }
    p->steps.v[kept++] = step;
  }
  p->steps.n = kept;
}
