/* The order of steps in profile torch-spyre. The reference's framework (Inductor, reorder_for_locality) moves what makes an
 * operand in front of its reader. It goes over the steps backwards: when all readers of an operand are behind it already,
 * the operand's maker goes right in front of the step at hand, one operand after the other.
 *
 *   a = exp(x); b = neg(y); c = sum(a); d = sub(b, c)      at d: b goes in front of d, then c:  a b c d
 *                                                          at c: a goes in front of c:          b a c d
 *
 * A step that writes into a tensor in place divides the program: nothing moves across it. Copies into inputs at the end
 * stay where they are, and so do the views that a split gives, with what makes the tensor in front of them. */
#include "compiler/lower/lower.h"

struct part {       /* steps that stand for one node of the reference: the pieces of a cat are one */
  int first, n;     /* steps */
  int region;       /* in-place writes up to here */
  bool moves;
  int unseen;       /* readers in front of the step at hand */
  int before, after; /* in the order so far; -1: none */
  SW_VEC(int) makers; /* parts that made the operands, in order of operands */
};

struct order {
  struct lower *l;
  struct sw_arena *arena;
  struct part *part;
  int n;
  int *writer; /* per storage: the part that wrote it last, or -1 */
  int n_splits; /* passed */
};

static void add_maker(struct order *x, struct part *t, int storage)
{
  int maker = x->writer[storage];
  if (maker >= 0 && maker != (int)(t - x->part)) {
    *SW_PUSH(x->arena, &t->makers) = maker;
    x->part[maker].unseen++;
  }
}

static void add_host_makers(struct order *x, struct part *t, const struct sw_host_arg *args, int n)
{
  for (int i = 0; i < n; i++)
    if (args[i].kind == SW_HOST_VIEW)
      add_maker(x, t, args[i].view.storage);
    else if (args[i].kind == SW_HOST_LIST)
      add_host_makers(x, t, args[i].list, args[i].n_list);
}

/* Whether step i writes another piece of what the step before it writes, for the same node. */
static bool continues(const struct sw_program *p, int i)
{
  if (!i || p->steps.v[i].is_host || p->steps.v[i - 1].is_host)
    return false;
  const struct sw_op *a = &p->ops.v[p->steps.v[i - 1].index], *b = &p->ops.v[p->steps.v[i].index];
  return b->role == SW_ROLE_WRITE && a->out.storage == b->out.storage && a->nodes.n && b->nodes.n && a->nodes.v[0] == b->nodes.v[0];
}

/* A split in front of step i is a part without steps that reads the tensor; who reads the tensor later reads the split. */
static void pass_splits(struct order *x, int i, int op, int region)
{
  for (; x->n_splits < x->l->splits.n && x->l->splits.v[x->n_splits].op <= op; x->n_splits++) {
    int storage = x->l->splits.v[x->n_splits].storage;
    if (x->writer[storage] < 0)
      continue;
    struct part *t = &x->part[x->n++];
    *t = (struct part){.first = i, .region = region};
    add_maker(x, t, storage);
    x->writer[storage] = x->n - 1;
  }
}

/* The parts, their operands and regions. Returns the first copy into an input at the end, or -1. */
static int find_parts(struct order *x)
{
  struct sw_program *p = x->l->program;
  int region = 0, epilogue = -1;
  for (int i = 0; i < p->steps.n; i++) {
    if (!p->steps.v[i].is_host)
      pass_splits(x, i, p->steps.v[i].index, region);
    if (!x->n || !x->part[x->n - 1].n || !continues(p, i))
      x->part[x->n++] = (struct part){.first = i};
    struct part *t = &x->part[x->n - 1];
    bool begins = !t->n++;
    if (p->steps.v[i].is_host) {
      const struct sw_host_step *h = &p->host_steps.v[p->steps.v[i].index];
      add_host_makers(x, t, h->args.v, h->args.n);
      bool again = false; /* writes what was there before */
      for (int r = 0; r < h->results.n; r++) {
        int s = h->results.v[r].storage;
        again = again || (s >= 0 && (x->writer[s] >= 0 || p->storages.v[s].kind != SW_STORAGE_TEMPORARY));
        if (s >= 0)
          x->writer[s] = x->n - 1;
      }
      t->moves = h->results.n == 1 && !again;
      t->region = region += again;
      continue;
    }
    const struct sw_op *op = &p->ops.v[p->steps.v[i].index];
    for (int k = 0; k < op->n_in; k++)
      add_maker(x, t, op->in[k].storage);
    int s = op->out.storage;
    if (begins) {
      bool again = x->writer[s] >= 0 || p->storages.v[s].kind != SW_STORAGE_TEMPORARY;
      if (again) {
        add_maker(x, t, s);
        if (!op->nodes.n && epilogue < 0)
          epilogue = x->n - 1;
      }
      t->moves = !again;
      t->region = region += again;
    }
    x->writer[s] = x->n - 1;
  }
  return epilogue;
}

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

void lw_order_for_locality(struct lower *l)
{
  struct sw_program *p = l->program;
  struct order x = {.l = l, .arena = lw_scratch(l), .part = SW_NEW_N(lw_scratch(l), struct part, p->steps.n + l->splits.n),
                    .writer = SW_NEW_N(lw_scratch(l), int, p->storages.n)};
  for (int s = 0; s < p->storages.n; s++)
    x.writer[s] = -1;
  int epilogue = find_parts(&x);
  for (int k = 0; k < x.n; k++) {
    x.part[k].before = k - 1;
    x.part[k].after = k + 1 < x.n ? k + 1 : -1;
  }
  int first = x.n - 1;
  bool at_end = epilogue >= 0;
  for (int k = x.n - 1; k >= 0; k = x.part[k].before) {
    struct part *t = &x.part[k];
    first = k;
    for (int m = 0; m < t->makers.n; m++)
      x.part[t->makers.v[m]].unseen--;
    for (int m = 0; m < t->makers.n && !at_end; m++) {
      struct part *maker = &x.part[t->makers.v[m]];
      if (maker->moves && !maker->unseen && maker->region == t->region)
        put_before(&x, t->makers.v[m], k);
    }
    at_end = at_end && k != epilogue;
  }
  struct sw_step *steps = SW_NEW_N(l->arena, struct sw_step, p->steps.n);
  int n = 0;
  for (int k = first; k >= 0; k = x.part[k].after)
    for (int i = 0; i < x.part[k].n; i++)
      steps[n++] = p->steps.v[x.part[k].first + i];
  p->steps.v = steps;
  p->steps.cap = p->steps.n;
}
