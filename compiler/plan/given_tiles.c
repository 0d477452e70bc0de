/* Tiles given by the user: which ops run in which loops. Reference: tiling.md 3.
 *
 * Option tile names dims of tensors and a number of tiles, "x:0=4", or "a:1+b:1=4" for one loop over a dim of both. The
 * name goes with the data: an op whose loop walks a named dim of what it reads from end to end gives it to the dim of its
 * result that the loop walks. All ops with such a loop are done tile by tile; several options nest, the first one
 * outermost, and an op is in those loops only whose dims it has.
 *
 * A loop is a run of neighbours. What lies between and has no such dim moves in front of the loop, or behind it, as
 * nothing it reads or writes is touched; else the loop ends there, and another begins. It ends as well where an op would
 * read what is complete only behind it: the sum of a reduced dim, or a dim that the reader walks in another way.
 *
 * Example: x [256,512], y = x / sum(x, 1), "x:1=4": a loop that adds up the sum, and one for the quotient. */
#include "compiler/plan/given_tiles.h"
#include "compiler/plan/parts.h"

#include "base/map.h"
#include "base/options.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { NO_DIM = -1, MIXED = -2 };

/* How the ops of an open loop touch a storage. */
struct touched {
  int loop, dim;
  bool written;
};

/* Who touches a storage in the group at hand, or waits behind it. */
struct waiting {
  int read, written; /* number of the group */
};

/* The loops of an op that the levels cut, -1: none. */
struct op_loops {
  int of[SW_MAX_LEVELS];
};

struct finder {
  struct sw_tiling *t;
  unsigned *dims[SW_MAX_LEVELS]; /* by storage: its dims that the level tiles, as bits */
  struct op_loops *loop;         /* by op */
  struct touched *touched[SW_MAX_LEVELS];
  struct waiting *member, *deferred; /* by storage */
  int group;                         /* number of the open one, 0: none */
  SW_VEC(struct sw_step) inside, behind;
  struct sw_nest last;               /* of the group's last op */
};

static enum sw_rc refuse(const struct finder *f, enum sw_rc rc, const struct sw_op *op, const char *tensor,
                         const char *text, const char *advice)
{
  struct sw_fault *x = sw_fault(f->t->job, rc, "option tile: %s", text);
  x->node = op ? op->name : NULL;
  x->source = op ? op->source : NULL;
  x->tensor = tensor;
  x->advice = advice;
  return rc;
}

/* -- the option -- */

static int storage_named(const struct sw_program *p, const char *name)
{
  for (int i = 0; i < p->storages.n; i++) {
    const struct sw_storage *s = &p->storages.v[i];
    const struct sw_input *in = p->graph && s->input >= 0 ? &p->graph->inputs.v[s->input] : NULL;
    if (!strcmp(s->name, name) || (in && in->target && !strcmp(in->target, name)) || (in && in->name && !strcmp(in->name, name)))
      return i;
  }
  return -1;
}

/* "x:0" */
static enum sw_rc read_dim(struct finder *f, int level, const char *text)
{
  struct sw_arena *a = f->t->job->arena;
  const char *colon = strrchr(text, ':');
  char *end = NULL;
  long dim = colon ? strtol(colon + 1, &end, 10) : 0;
  static const char advice[] = "write NAME:DIM=COUNT, for example x:0=4; names are those of storages[] in a result";
  if (!colon || end == colon + 1 || *end)
    return refuse(f, SW_USAGE, NULL, NULL, sw_arena_printf(a, "\"%s\" is not a dim of a tensor", text), advice);
  const char *name = sw_arena_strndup(a, text, (size_t)(colon - text));
  int s = storage_named(f->t->p, name);
  if (s < 0)
    return refuse(f, SW_USAGE, NULL, name, sw_arena_printf(a, "there is no tensor %s: it is unknown, a view, or not used", name),
                  advice);
  const struct sw_storage *storage = &f->t->p->storages.v[s];
  dim += dim < 0 ? storage->rank : 0;
  if (dim < 0 || dim >= storage->rank)
    return refuse(f, SW_USAGE, NULL, name, sw_arena_printf(a, "%s has %d dims", name, storage->rank), advice);
  f->dims[level][s] |= 1u << dim;
  return SW_OK;
}

/* "a:1+b:1=4". A level of one tile is none. */
static enum sw_rc read_level(struct finder *f, const char *text)
{
  struct sw_tiling *t = f->t;
  struct sw_arena *a = t->job->arena;
  const char *is = strrchr(text, '=');
  char *end = NULL;
  int64_t count = is ? strtoll(is + 1, &end, 10) : 0;
  if (!is || *end || count < 1 || count > 65535)
    return refuse(f, SW_USAGE, NULL, NULL, sw_arena_printf(a, "\"%s\" has no number of tiles from 1 to 65535", text),
                  "write NAME:DIM=COUNT, for example x:0=4");
  if (count == 1)
    return SW_OK;
  if (t->n_levels == SW_MAX_LEVELS)
    return refuse(f, SW_UNSUPPORTED, NULL, NULL, "more than 4 loops in each other", "leave one out");
  t->level[t->n_levels] = (struct sw_given_level){text, count};
  f->dims[t->n_levels] = SW_NEW_N(t->scratch, unsigned, t->p->storages.n);
  for (const char *at = text; at < is;) {
    size_t len = strcspn(at, "+=");
    if (at + len > is)
      len = (size_t)(is - at);
    SW_TRY(read_dim(f, t->n_levels, sw_arena_strndup(a, at, len)));
    at += len + 1;
  }
  t->n_levels++;
  return SW_OK;
}

/* -- which loops of which ops -- */

static const char *why_not(const struct sw_op *op, int loop)
{
  bool reduced = loop >= op->n_written;
  for (int k = 0; k <= op->n_in; k++)
    if ((k < op->n_in ? &op->in[k] : &op->out)->index_input >= 0)
      return "it picks rows by number";
  if (op->conv.n || op->op == SW_OP_AVGPOOL)
    return "its windows overlap";
  switch (op->op) {
  case SW_OP_TOPKVALUE:
  case SW_OP_TOPKINDEX: return reduced ? "the largest of all are not found tile by tile" : NULL;
  case SW_OP_SUM:
  case SW_OP_MEAN:
  case SW_OP_MAX:
  case SW_OP_MIN:
  case SW_OP_PROD:
  case SW_OP_MATMUL: return !reduced && !op->out.step[loop] ? "its result does not depend on the dim" : NULL;
  default: return reduced || !op->out.step[loop] ? "it can't be added up tile by tile" : NULL;
  }
}

/* The loop of an op that walks a named dim; the dim of the result gets the name too. */
static enum sw_rc find_loop(struct finder *f, int index, int level)
{
  struct sw_tiling *t = f->t;
  struct sw_op *op = &t->p->ops.v[index];
  struct sw_arena *a = t->job->arena;
  const char *text = t->level[level].text;
  unsigned *dims = f->dims[level];
  int found = -1;
  for (int k = 0; k <= op->n_in; k++) {
    const struct sw_access *x = sw_operand(op, k);
    const struct sw_storage *s = &t->p->storages.v[x->storage];
    for (int l = 0; dims[x->storage] && l < op->n_loops; l++) {
      int d = sw_walked_dim(s, op, x, l);
      if (d < 0 || !(dims[x->storage] >> d & 1) || l == found)
        continue;
      if (found >= 0)
        return refuse(f, SW_UNSUPPORTED, op, s->name,
                      sw_arena_printf(a, "%s: two loops of %s walk that dim", text, op->name),
                      "name a dim that one of them walks only, of an inner tensor");
      found = l;
    }
  }
  f->loop[index].of[level] = found;
  if (found < 0)
    return SW_OK;
  const char *why = why_not(op, found);
  if (why)
    return refuse(f, SW_UNSUPPORTED, op, NULL, sw_arena_printf(a, "%s: %s has no tiles: %s", text, op->name, why),
                  "tile another dim");
  int64_t n = t->level[level].count;
  for (int other = 0; other < level; other++)
    n *= f->loop[index].of[other] == found ? t->level[other].count : 1;
  if (op->range[found] % n)
    return refuse(f, SW_UNSUPPORTED, op, NULL,
                  sw_arena_printf(a, "%s: %" PRId64 " of %s is not divisible by %" PRId64, text, op->range[found], op->name, n),
                  "give a divisor, or pad the tensor: there is no shorter last tile");
  int d = found < op->n_written ? sw_walked_dim(&t->p->storages.v[op->out.storage], op, &op->out, found) : NO_DIM;
  if (d >= 0)
    dims[op->out.storage] |= 1u << d;
  return SW_OK;
}

static enum sw_rc find_loops(struct finder *f)
{
  struct sw_tiling *t = f->t;
  bool any[SW_MAX_LEVELS] = {false};
  enum sw_rc worst = SW_OK;
  for (int i = 0; i < t->p->steps.n; i++) {
    const struct sw_step *step = &t->p->steps.v[i];
    for (int v = 0; !step->is_host && v < t->n_levels; v++) {
      enum sw_rc rc = find_loop(f, step->index, v);
      worst = rc > worst ? rc : worst;
      any[v] |= f->loop[step->index].of[v] >= 0;
    }
  }
  for (int v = 0; v < t->n_levels && worst == SW_OK; v++)
    if (!any[v])
      worst = refuse(f, SW_USAGE, NULL, NULL,
                     sw_arena_printf(t->job->arena, "%s: no op walks that dim from end to end", t->level[v].text),
                     "name a dim of the tensor that the op reads or writes");
  return worst;
}

/* -- which ops are neighbours -- */

static void note(struct waiting *w, const struct sw_op *op, int group)
{
  for (int k = 0; k < op->n_in; k++)
    w[op->in[k].storage].read = group;
  w[op->out.storage].written = group;
}

static bool conflicts(const struct waiting *w, const struct sw_op *op, int group)
{
  for (int k = 0; k < op->n_in; k++)
    if (w[op->in[k].storage].written == group)
      return true;
  return w[op->out.storage].written == group || w[op->out.storage].read == group;
}

static void close_group(struct finder *f)
{
  struct sw_tiling *t = f->t;
  for (int i = 0; i < f->inside.n; i++)
    *SW_PUSH(t->job->arena, &t->steps) = f->inside.v[i];
  for (int i = 0; i < f->behind.n; i++)
    *SW_PUSH(t->job->arena, &t->steps) = f->behind.v[i];
  f->inside.n = f->behind.n = 0;
  f->last.n = 0;
  f->group++;
}

/* Whether the op may run in the open loop of this depth: what a turn writes is touched in that turn's tile only. */
static bool may_enter(const struct finder *f, struct sw_op *op, int depth, int cut)
{
  for (int k = 0; k <= op->n_in; k++) {
    const struct sw_access *x = sw_operand(op, k);
    const struct touched *at = &f->touched[depth][x->storage];
    if (at->loop != f->last.loop[depth])
      continue;
    int dim = sw_walked_dim(&f->t->p->storages.v[x->storage], op, x, cut);
    bool together = dim >= 0 && dim == at->dim;
    if ((at->written || k == op->n_in) && !together)
      return false;
  }
  return true;
}

static void enter(struct finder *f, struct sw_op *op, const struct sw_nest *nest)
{
  for (int v = 0; v < nest->n; v++)
    for (int k = 0; k <= op->n_in; k++) {
      const struct sw_access *x = sw_operand(op, k);
      struct touched *at = &f->touched[v][x->storage];
      int dim = sw_walked_dim(&f->t->p->storages.v[x->storage], op, x, nest->cut[v]);
      if (at->loop != nest->loop[v])
        *at = (struct touched){nest->loop[v], dim, false};
      at->dim = at->dim == dim ? dim : MIXED;
      at->written |= k == op->n_in;
    }
}

static void add_op(struct finder *f, struct sw_step step)
{
  struct sw_tiling *t = f->t;
  struct sw_op *op = &t->p->ops.v[step.index];
  struct sw_nest *nest = &t->nest[step.index];
  for (int v = 0; v < t->n_levels; v++)
    if (f->loop[step.index].of[v] >= 0) {
      nest->level[nest->n] = v;
      nest->count[nest->n] = t->level[v].count;
      nest->cut[nest->n++] = f->loop[step.index].of[v];
    }
  if (!nest->n) {
    bool waits = f->inside.n && (conflicts(f->member, op, f->group) || conflicts(f->deferred, op, f->group));
    if (waits) {
      *SW_PUSH(t->scratch, &f->behind) = step;
      note(f->deferred, op, f->group);
    } else {
      *SW_PUSH(t->job->arena, &t->steps) = step;
    }
    return;
  }
  int shared = 0;
  while (shared < nest->n && shared < f->last.n && nest->level[shared] == f->last.level[shared] &&
         may_enter(f, op, shared, nest->cut[shared]))
    shared++;
  if (f->inside.n && (!shared || conflicts(f->deferred, op, f->group))) {
    close_group(f);
    shared = 0;
  }
  for (int v = 0; v < nest->n; v++)
    nest->loop[v] = v < shared ? f->last.loop[v] : t->p->n_loops++;
  enter(f, op, nest);
  note(f->member, op, f->group);
  f->last = *nest;
  *SW_PUSH(t->scratch, &f->inside) = step;
}

static void order_steps(struct finder *f)
{
  struct sw_tiling *t = f->t;
  int n = t->p->storages.n;
  f->member = SW_NEW_N(t->scratch, struct waiting, n);
  f->deferred = SW_NEW_N(t->scratch, struct waiting, n);
  for (int v = 0; v < t->n_levels; v++) {
    f->touched[v] = SW_NEW_N(t->scratch, struct touched, n);
    for (int s = 0; s < n; s++)
      f->touched[v][s].loop = -1;
  }
  f->group = 1;
  for (int i = 0; i < t->p->steps.n; i++) {
    struct sw_step step = t->p->steps.v[i];
    if (!step.is_host) {
      add_op(f, step);
      continue;
    }
    close_group(f);
    *SW_PUSH(t->job->arena, &t->steps) = step;
  }
  close_group(f);
}

enum sw_rc sw_tile_given(struct sw_job *job, const struct sw_options *o, struct sw_program *p)
{
  struct sw_arena *scratch = sw_arena_new(job->arena, SIZE_MAX);
  struct sw_tiling t = {.job = job, .o = o, .p = p, .scratch = scratch, .copies_operands = true};
  struct finder f = {.t = &t};
  enum sw_rc rc = SW_OK;
  t.nest = SW_NEW_N(scratch, struct sw_nest, p->ops.n);
  f.loop = SW_NEW_N(scratch, struct op_loops, p->ops.n);
  for (int i = 0; i < o->tile.n && rc == SW_OK; i++)
    rc = read_level(&f, o->tile.v[i]);
  if (rc == SW_OK && t.n_levels)
    rc = find_loops(&f);
  if (rc == SW_OK && t.n_levels) {
    order_steps(&f);
    rc = sw_apply_tiles(&t);
  }
  sw_arena_free(scratch);
  return rc;
}
