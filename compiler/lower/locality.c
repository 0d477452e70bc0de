/* The order of steps in profile torch-spyre. The reference's framework (Inductor, reorder_for_locality) moves what makes an
 * operand in front of its reader. It goes over the steps backwards: when all readers of an operand are behind it already,
 * the operand's maker goes right in front of the step at hand, one operand after the other.
 *
 *   a = exp(x); b = neg(y); c = sum(a); d = sub(b, c)      at d: b goes in front of d, then c:  a b c d
 *                                                          at c: a goes in front of c:          b a c d
 *
 * Its nodes are functional then: a write into a part of a tensor is a node like any other. Here it happens in place, so an
 * order counts only if every step still sees the contents that it saw; else nothing moves across such a write. Copies into
 * inputs at the end stay where they are, and so do the views that a split gives, with what makes the tensor in front of
 * them. */
#include "compiler/lower/lower.h"

#include <string.h>

struct contents { /* of a storage, counted by its writes so far */
  int storage, version;
  bool written;
};

struct part {        /* steps that stand for one node of the reference: the pieces of a cat are one */
  int first, n;      /* steps */
  int region;        /* in-place writes up to here, where they divide the program */
  bool moves;
  int unseen;        /* readers in front of the step at hand */
  int before, after; /* in the order so far; -1: none */
  SW_VEC(int) makers; /* parts that made the operands, in order of operands */
  SW_VEC(struct contents) touched;
};

struct order {
  struct lower *l;
  struct sw_arena *arena;
  bool divided; /* by in-place writes */
  struct part *part;
  int n, region, n_splits; /* passed so far */
  int *writer;  /* per storage: the part that wrote it last, or -1 */
  int *version; /* per storage */
  int epilogue; /* the first copy into an input at the end, or -1 */
};

/* -- parts -- */

static void add_maker(struct order *x, struct part *t, int storage)
{
  int maker = x->writer[storage];
  if (maker >= 0 && maker != (int)(t - x->part)) {
    *SW_PUSH(x->arena, &t->makers) = maker;
    x->part[maker].unseen++;
  }
}

static void reads(struct order *x, struct part *t, int storage)
{
  add_maker(x, t, storage);
  *SW_PUSH(x->arena, &t->touched) = (struct contents){storage, x->version[storage], false};
}

/* Whether the storage had contents before, which somebody may have wanted. */
static bool writes(struct order *x, struct part *t, int storage)
{
  bool again = x->writer[storage] >= 0 || x->l->program->storages.v[storage].kind != SW_STORAGE_TEMPORARY;
  if (again && x->writer[storage] != (int)(t - x->part))
    add_maker(x, t, storage);
  *SW_PUSH(x->arena, &t->touched) = (struct contents){storage, x->version[storage]++, true};
  x->writer[storage] = (int)(t - x->part);
  return again;
}

static void read_by_host(struct order *x, struct part *t, const struct sw_host_arg *args, int n)
{
  for (int i = 0; i < n; i++)
    if (args[i].kind == SW_HOST_VIEW)
      reads(x, t, args[i].view.storage);
    else if (args[i].kind == SW_HOST_LIST)
      read_by_host(x, t, args[i].list, args[i].n_list);
}

/* A split in front of step i is a part without steps that reads the tensor; who reads the tensor later reads the split. */
static void pass_splits(struct order *x, int i, int op)
{
  for (; x->n_splits < x->l->splits.n && x->l->splits.v[x->n_splits].op <= op; x->n_splits++) {
    int storage = x->l->splits.v[x->n_splits].storage;
    if (x->writer[storage] < 0)
      continue;
    struct part *t = &x->part[x->n++];
    *t = (struct part){.first = i, .region = x->region};
    add_maker(x, t, storage);
    x->writer[storage] = x->n - 1;
  }
}

/* Whether step i writes another piece of what the step before it writes, for the same node. */
static bool continues(const struct order *x, int i)
{
  const struct sw_program *p = x->l->program;
  if (!x->n || !x->part[x->n - 1].n || p->steps.v[i].is_host || p->steps.v[i - 1].is_host)
    return false;
  const struct sw_op *a = &p->ops.v[p->steps.v[i - 1].index], *b = &p->ops.v[p->steps.v[i].index];
  return b->role == SW_ROLE_WRITE && a->out.storage == b->out.storage && a->nodes.n && b->nodes.n && a->nodes.v[0] == b->nodes.v[0];
}

static void add_step(struct order *x, int i)
{
  const struct sw_program *p = x->l->program;
  int index = p->steps.v[i].index;
  if (!p->steps.v[i].is_host)
    pass_splits(x, i, index);
  if (!continues(x, i))
    x->part[x->n++] = (struct part){.first = i, .moves = true};
  struct part *t = &x->part[x->n - 1];
  bool begins = !t->n++, again = false;
  if (p->steps.v[i].is_host) {
    const struct sw_host_step *h = &p->host_steps.v[index];
    read_by_host(x, t, h->args.v, h->args.n);
    for (int r = 0; r < h->results.n; r++)
      again = (h->results.v[r].storage >= 0 && writes(x, t, h->results.v[r].storage)) || again;
    t->moves = h->results.n == 1 && !again;
  } else {
    const struct sw_op *op = &p->ops.v[index];
    for (int k = 0; k < op->n_in; k++)
      reads(x, t, op->in[k].storage);
    again = writes(x, t, op->out.storage) && begins;
    if (again && !op->nodes.n && x->epilogue < 0)
      x->epilogue = x->n - 1;
    t->moves = t->moves && !(again && x->divided);
  }
  t->region = x->region += again && x->divided;
}

/* -- the order -- */

/* Part a right in front of part b. */
static void put_before(struct order *x, int a, int b)
{
  struct part *t = x->part;
  if (t[b].before == a)
    return;
  if (t[a].before >= 0)
    t[t[a].before].after = t[a].after;
  if (t[a].after >= 0)
    t[t[a].after].before = t[a].before;
  t[a].before = t[b].before;
  t[a].after = b;
  if (t[b].before >= 0)
    t[t[b].before].after = a;
  t[b].before = a;
}

/* Gives the first part. */
static int move_makers(struct order *x)
{
  int first = x->n - 1;
  bool at_end = x->epilogue >= 0;
  for (int k = x->n - 1; k >= 0; k = x->part[k].before) {
    struct part *t = &x->part[k];
    first = k;
    for (int m = 0; m < t->makers.n; m++)
      x->part[t->makers.v[m]].unseen--;
    for (int m = 0; m < t->makers.n && !at_end; m++) {
      struct part *maker = &x->part[t->makers.v[m]];
      if (maker->moves && !maker->unseen && maker->region == t->region)
        put_before(x, t->makers.v[m], k);
    }
    at_end = at_end && k != x->epilogue;
  }
  return first;
}

static bool sees_the_same(struct order *x, int first)
{
  memset(x->version, 0, (size_t)x->l->program->storages.n * sizeof *x->version);
  for (int k = first; k >= 0; k = x->part[k].after)
    for (int i = 0; i < x->part[k].touched.n; i++) {
      const struct contents *c = &x->part[k].touched.v[i];
      if (x->version[c->storage] != c->version)
        return false;
      x->version[c->storage] += c->written;
    }
  return true;
}

static bool order_steps(struct lower *l, bool divided)
{
  struct sw_program *p = l->program;
  struct sw_arena *a = sw_arena_new(l->arena, SIZE_MAX);
  struct order x = {.l = l, .arena = a, .divided = divided, .epilogue = -1,
                    .part = SW_NEW_N(a, struct part, p->steps.n + l->splits.n),
                    .writer = SW_NEW_N(a, int, p->storages.n), .version = SW_NEW_N(a, int, p->storages.n)};
  for (int s = 0; s < p->storages.n; s++)
    x.writer[s] = -1;
  for (int i = 0; i < p->steps.n; i++)
    add_step(&x, i);
  for (int k = 0; k < x.n; k++) {
    x.part[k].before = k - 1;
    x.part[k].after = k + 1 < x.n ? k + 1 : -1;
  }
  int first = move_makers(&x);
  bool fine = sees_the_same(&x, first);
  if (fine) {
    struct sw_step *steps = SW_NEW_N(l->arena, struct sw_step, p->steps.n);
    int n = 0;
    for (int k = first; k >= 0; k = x.part[k].after)
      for (int i = 0; i < x.part[k].n; i++)
        steps[n++] = p->steps.v[x.part[k].first + i];
    p->steps.v = steps;
    p->steps.cap = p->steps.n;
  }
  sw_arena_free(a);
  return fine;
}

void lw_order_for_locality(struct lower *l)
{
  if (!order_steps(l, false))
    order_steps(l, true);
}
