/* The result looked at from the program alone: what stands in it now must be executable, and what its conversions cost
 * must be what was reported. A fault here is a bug of ours. */
#include "compiler/layout/choose.h"

static void broken(struct sw_choosing *c, const struct sw_op *op, const struct sw_access *x, const char *what)
{
  struct sw_fault *f = sw_fault(c->job, SW_INTERNAL, "layouts chosen for %s do not work: %s", op->name, what);
  f->node = op->name;
  f->tensor = c->p->storages.v[x->storage].name;
}

static void check_op(struct sw_choosing *c, const struct sw_op *op)
{
  const struct sw_layout *to = c->p->storages.v[op->out.storage].layout;
  struct sw_seen out = sw_layout__see(to, op, &op->out, SW_OFFSET_EXACT);
  if (!out.formed || out.stick.class > SW_STICK_LOOP) {
    broken(c, op, &op->out, "the stick of what it writes is not clean");
    return;
  }
  for (int k = 0; k < op->n_in; k++) {
    const struct sw_access *x = &op->in[k];
    const struct sw_layout *from = c->p->storages.v[x->storage].layout;
    if (sw_layout__need(c, op, k).kind == SW_NEED_NONE)
      continue;
    struct sw_seen seen = sw_layout__see(from, op, x, SW_OFFSET_EXACT);
    if (!seen.formed || seen.stick.class > SW_STICK_LOOP) {
      broken(c, op, x, "the stick of an operand is not clean");
      continue;
    }
    if (op->op == SW_OP_RESTICKIFY) {
      if (seen.stick.loop < 0 || out.stick.loop < 0 || seen.stick.loop == out.stick.loop)
        broken(c, op, x, "a conversion that converts nothing");
      continue;
    }
    struct sw_outcome o = sw_layout__outcome(c, op, k, from, &seen, to, &out);
    if (o.kind != SW_FREE)
      broken(c, op, x, sw_layout__why(c, op, k, from, to, &o));
  }
}

/* `all`: also of copies that profile torch-spyre does not count. */
static int64_t cost_of(struct sw_choosing *c, const struct sw_op *op, bool all)
{
  const struct sw_storage *from = &c->p->storages.v[op->in[0].storage], *to = &c->p->storages.v[op->out.storage];
  bool conversion = op->role == SW_ROLE_CONVERSION, plain = op->op == SW_OP_RESTICKIFY || op->op == SW_OP_IDENTITY;
  if (conversion && !plain) {
    const struct sw_layout *l[SW_MAX_INPUTS + 1];
    int n = 0;
    for (int k = 0; k < op->n_in; k++)
      if (c->p->storages.v[op->in[k].storage].kind != SW_STORAGE_SCALAR)
        l[n++] = c->p->storages.v[op->in[k].storage].layout;
    l[n++] = to->layout;
    return sw_layout__work_cost(c, op, l, n);
  }
  bool copy = conversion ? op->op == SW_OP_RESTICKIFY || all : op->op == SW_OP_RESTICKIFY && all;
  return copy ? sw_layout__copy_cost(c, from, op, from->layout, to->layout) : 0;
}

/* Traffic is a matter of the labels alone. */
static int64_t traffic_of(const struct sw_choosing *c, const struct sw_problem *q)
{
  int64_t ns = 0;
  for (int s = 0; s < c->n_storages; s++)
    if (c->candidates[s].n && q->writing[s])
      ns += q->writing[s][c->choice->candidates[s].chosen];
  for (int i = 0; i < q->groups.n; i++)
    for (int k = 0; k < q->groups.v[i].readings.n; k++) {
      const struct sw_reading *x = &q->groups.v[i].readings.v[k];
      const struct sw_candidates *from = &c->choice->candidates[q->groups.v[i].storage];
      const struct sw_candidates *to = &c->choice->candidates[c->p->ops.v[x->op].out.storage];
      ns += x->traffic ? x->traffic[from->chosen * to->n + to->chosen] : 0;
    }
  return ns;
}

/* What conversions take from the scratchpads. */
static int64_t losses_of(const struct sw_choosing *c)
{
  int64_t ns = 0;
  for (int i = 0; i < c->choice->conversions.n; i++) {
    const struct sw_conversion *x = &c->choice->conversions.v[i];
    if (x->storage < c->n_storages && c->p->ops.v[x->op].role == SW_ROLE_CONVERSION)
      ns += (int64_t)(sw_layout__loss(c, x->storage, c->p->storages.v[x->storage].layout) + 0.5);
  }
  return ns;
}

enum sw_rc sw_layout__check(struct sw_choosing *c, const struct sw_problem *q)
{
  int64_t cost = c->loaded_again_cost, left_out = 0;
  for (int i = 0; i < c->p->steps.n; i++) {
    if (c->p->steps.v[i].is_host)
      continue;
    const struct sw_op *op = &c->p->ops.v[c->p->steps.v[i].index];
    check_op(c, op);
    int64_t counted = cost_of(c, op, c->best);
    cost += counted;
    left_out += cost_of(c, op, true) - counted;
  }
  for (int s = 0; s < c->p->storages.n; s++)
    if (!c->p->storages.v[s].layout && !c->p->storages.v[s].host_only)
      sw_fault(c->job, SW_INTERNAL, "%s has no layout", c->p->storages.v[s].name);
  cost += traffic_of(c, q) + losses_of(c);
  if (cost != c->choice->cost)
    sw_fault(c->job, SW_INTERNAL, "the program converts for %lld %s, the solver said %lld", (long long)cost,
             c->choice->unit, (long long)c->choice->cost);
  c->choice->full_cost = cost + left_out;
  return c->job->worst;
}
