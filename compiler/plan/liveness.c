#include "compiler/plan/liveness.h"

#include "compiler/plan/loops.h"

static void see(struct sw_life *lives, int storage, struct sw_touch touch, int kernel, bool fill)
{
  struct sw_life *l = &lives[storage];
  if (fill)
    l->touch[l->n] = touch;
  l->n++;
  if (fill)
    return;
  if (l->n == 1) {
    l->first = touch.tick;
    l->kernel = kernel;
  } else if (l->kernel != kernel) {
    l->kernel = -1;
  }
  l->last = touch.tick;
  *(touch.operand < 0 ? &l->n_writes : &l->n_reads) += 1;
}

/* Run twice, to count and to fill. */
static void walk(const struct sw_program *p, struct sw_life *lives, bool fill)
{
  for (int t = 0; t < p->steps.n; t++) {
    if (p->steps.v[t].is_host)
      continue;
    int o = p->steps.v[t].index;
    const struct sw_op *op = &p->ops.v[o];
    int kernel = op->plan->kernel;
    for (int i = 0; i < op->n_in; i++)
      see(lives, op->in[i].storage, (struct sw_touch){t, o, i}, kernel, fill);
    see(lives, op->out.storage, (struct sw_touch){t, o, -1}, kernel, fill);
  }
}

static void mark_host_args(struct sw_life *lives, const struct sw_host_arg *args, int n)
{
  for (int i = 0; i < n; i++) {
    if (args[i].kind == SW_HOST_VIEW)
      lives[args[i].view.storage].by_host = true;
    mark_host_args(lives, args[i].list, args[i].n_list);
  }
}

static const struct sw_access *access_of(const struct sw_program *p, const struct sw_touch *t)
{
  const struct sw_op *op = &p->ops.v[t->op];
  return t->operand < 0 ? &op->out : &op->in[t->operand];
}

/* How many of the loops around all that touch it find it new in every turn, from the outside in. */
static int local_levels(const struct sw_program *p, const struct sw_life *l)
{
  const struct sw_op *first = &p->ops.v[l->touch[0].op];
  int n = l->touch[0].operand < 0 && !l->outside && !l->by_host ? first->n_levels : 0;
  for (int t = 0; t < l->n; t++) {
    const struct sw_op *op = &p->ops.v[l->touch[t].op];
    int same = 0;
    while (same < n && same < op->n_levels && op->level[same].loop == first->level[same].loop &&
           !access_of(p, &l->touch[t])->advance[same])
      same++;
    n = same;
  }
  return n;
}

static void stretch_over_loops(const struct sw_program *p, const struct sw_span *span, struct sw_life *l)
{
  int local = l->n ? local_levels(p, l) : 0;
  for (int t = 0; t < l->n; t++) {
    const struct sw_op *op = &p->ops.v[l->touch[t].op];
    if (!t || l->touch[t].tick != l->touch[t - 1].tick)
      l->turns += sw_op_turns(op);
    if (op->n_levels <= local)
      continue;
    const struct sw_span *s = &span[op->level[local].loop];
    l->first = s->first < l->first ? s->first : l->first;
    l->last = s->last > l->last ? s->last : l->last;
    l->carried = true;
  }
}

struct sw_life *sw_lives_make(struct sw_arena *arena, const struct sw_program *p)
{
  struct sw_life *lives = SW_NEW_N(arena, struct sw_life, p->storages.n);
  for (int s = 0; s < p->storages.n; s++) {
    lives[s].kernel = lives[s].first = lives[s].last = -1;
    lives[s].outside = p->storages.v[s].kind != SW_STORAGE_TEMPORARY || p->storages.v[s].is_output;
  }
  walk(p, lives, false);
  for (int s = 0; s < p->storages.n; s++) {
    lives[s].touch = SW_NEW_N(arena, struct sw_touch, lives[s].n);
    lives[s].n = 0;
  }
  walk(p, lives, true);
  for (int h = 0; h < p->host_steps.n; h++) {
    const struct sw_host_step *step = &p->host_steps.v[h];
    mark_host_args(lives, step->args.v, step->args.n);
    for (int r = 0; r < step->results.n; r++)
      if (step->results.v[r].storage >= 0)
        lives[step->results.v[r].storage].by_host = true;
  }
  for (int i = 0; i < p->outputs.n; i++)
    if (p->outputs.v[i].is_tensor)
      lives[p->outputs.v[i].view.storage].outside = true;
  const struct sw_span *span = sw_loop_spans(arena, p);
  for (int s = 0; s < p->storages.n; s++)
    stretch_over_loops(p, span, &lives[s]);
  return lives;
}
