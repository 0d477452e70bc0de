/* Pieces: an op whose tensors no core can address under any split is done piece by piece of one written loop. Equal
 * pieces are the turns of a counted loop, if they are equally far apart in memory; else every one is an op.
 *
 * Splits must divide, so a prime number of sticks can't be cut at all. The lm_head of a model with 49159 words has 769
 * sticks of weights, 402 MB: one core would have to address them all. Its first 768 sticks (24 for each of 32 cores)
 * and the last one are two ops, and each fits.
 *
 * In profile best what has no form as a whole is done stick by stick, if the pieces have one. */
#include "compiler/layout/normal.h"
#include "compiler/plan/division.h"
#include "compiler/plan/given_tiles.h"
#include "compiler/plan/parts.h"

#include "base/options.h"

#include <string.h>

struct cutter {
  struct sw_job quiet; /* takes the faults of attempts */
  const struct sw_options *o;
  struct sw_program *p;
  struct sw_work *w;
  struct pieces {
    int first, n;
  } *more; /* by op: the ops that do the rest of its work */
  struct sw_nest *nest; /* by op: the loop that the reference makes of its pieces, and a copy behind it */
  bool any_nest;
};

static bool is_large(const struct sw_program *p, const struct sw_op *op)
{
  for (int i = 0; i <= op->n_in; i++) {
    const struct sw_layout *l = p->storages.v[(i < op->n_in ? &op->in[i] : &op->out)->storage].layout;
    if (l && sw_layout_bytes(l) > SW_MAX_SPAN)
      return true;
  }
  return false;
}

static enum sw_rc divide(struct cutter *c, const struct sw_op *op)
{
  int64_t split[SW_MAX_LOOPS];
  SW_TRY(sw_work_of(&c->quiet, c->o, c->p, op, c->w));
  return sw_divide(&c->quiet, c->w, split);
}

static void shift(struct sw_access *x, int loop, int64_t by)
{
  x->offset += x->step[loop] * by;
}

/* The same op for `range` steps of a loop from `start` on. */
static struct sw_op piece_of(const struct sw_op *op, int loop, int64_t start, int64_t range)
{
  struct sw_op piece = *op;
  piece.range[loop] = range;
  if (piece.role == SW_ROLE_PLAIN)
    piece.role = SW_ROLE_WRITE;
  for (int i = 0; i < op->n_in; i++)
    shift(&piece.in[i], loop, start);
  shift(&piece.out, loop, start);
  return piece;
}

/* The first one of n pieces as the body of a counted loop; false when they don't lie so. */
static bool put_in_loop(struct sw_program *p, struct sw_op *piece, int loop, int64_t n)
{
  struct sw_op op = *piece;
  if (op.n_levels == SW_MAX_LEVELS)
    return false;
  int level = op.n_levels++;
  op.level[level] = (struct sw_level){.loop = p->n_loops, .count = n, .cut = loop};
  for (int i = 0; i <= op.n_in; i++) {
    struct sw_access *x = i < op.n_in ? &op.in[i] : &op.out;
    x->advance[level] = x->step[loop] * op.range[loop];
  }
  if (sw_op_strays(p, &op))
    return false;
  *piece = op;
  p->n_loops++;
  return true;
}

/* A loop as `n` equal pieces, in whole sticks and together a multiple of the cores if it is that long, and a rest. */
struct piece_sizes {
  int64_t n, each, rest;
};

static bool sizes_of(const struct cutter *c, const struct sw_op *op, int loop, int64_t n, struct piece_sizes *out)
{
  int64_t unit = c->w->var[loop].eps ? c->w->var[loop].eps : 1, range = op->range[loop];
  int64_t even = unit * (range / unit >= c->o->cores ? c->o->cores : 1);
  int64_t whole = range / even * even;
  if (range - whole == 1)
    whole -= even; /* no loop has range 1 */
  *out = (struct piece_sizes){.n = n, .each = whole / n, .rest = range - whole};
  return whole > 0 && whole % (n * unit) == 0 && out->each > 1 && (n > 1 || out->rest);
}

/* Conversions of padded dims exist for whole tensors only: emission has no form for a padded piece. */
static bool can_be_cut(const struct sw_work *w)
{
  for (int v = 0; v < w->n_vars; v++)
    if (w->kind == SW_WORK_RESTICKIFY && w->var[v].eps && w->var[v].size % w->var[v].eps)
      return false;
  return !w->indirect;
}

/* Cuts op i along the first written loop, into as few pieces as possible, so that all of them can be divided. */
static void cut(struct cutter *c, struct sw_job *job, int i)
{
  enum { MAX_PIECES = 64 };
  const struct sw_op op = c->p->ops.v[i];
  const struct sw_work w = *c->w;
  struct piece_sizes z;
  for (int n = 1; n <= MAX_PIECES; n++)
    for (int l = 0; l < op.n_written; l++) {
      *c->w = w;
      if (!sizes_of(c, &op, l, n, &z))
        continue;
      struct sw_op first = piece_of(&op, l, 0, z.each), rest = piece_of(&op, l, z.n * z.each, z.rest);
      if (divide(c, &first) != SW_OK || (z.rest && divide(c, &rest) != SW_OK))
        continue;
      if (c->o->profile == SW_PROFILE_TORCH_SPYRE && n > 1 && !z.rest && op.role == SW_ROLE_PLAIN) {
        c->nest[i] = (struct sw_nest){.n = 1, .loop = {c->p->n_loops++}, .cut = {l}, .count = {n}};
        c->any_nest = true;
        return;
      }
      bool in_loop = n > 1 && put_in_loop(c->p, &first, l, n);
      c->p->ops.v[i] = first;
      c->more[i].first = c->p->ops.n;
      for (int64_t k = in_loop ? z.n : 1; k < z.n + (z.rest > 0); k++) {
        struct sw_op *more = SW_PUSH(job->arena, &c->p->ops);
        *more = k < z.n ? piece_of(&op, l, k * z.each, z.each) : rest;
        more->name = sw_arena_printf(job->arena, "%s/piece%d", op.name, (int)k + 1);
        c->more[i].n++;
      }
      return;
    }
}

/* Cuts op i along a loop into sticks, tile by tile, if each of them has a form where the whole has none: every second row of
 * an odd number of rows can be written down within one tile only. */
static void cut_into_sticks(struct cutter *c, struct sw_job *job, int i)
{
  enum { MAX_TILES = 64 };
  const struct sw_op op = c->p->ops.v[i];
  sw_work_of(&c->quiet, c->o, c->p, &op, c->w);
  for (int l = 0; l < op.n_written; l++) {
    int64_t each = c->w->var[l].eps, n = each ? op.range[l] / each : 0;
    bool all = n > 1 && n <= MAX_TILES && op.range[l] % each == 0;
    for (int64_t k = 0; k < n && all; k++) {
      struct sw_op piece = piece_of(&op, l, k * each, each);
      all = sw_op_has_form(c->quiet.arena, c->p, &piece);
    }
    if (!all)
      continue;
    c->p->ops.v[i] = piece_of(&op, l, 0, each);
    c->more[i].first = c->p->ops.n;
    for (int64_t k = 1; k < n; k++) {
      struct sw_op *more = SW_PUSH(job->arena, &c->p->ops);
      *more = piece_of(&op, l, k * each, each);
      more->name = sw_arena_printf(job->arena, "%s/piece%d", op.name, (int)k + 1);
      c->more[i].n++;
    }
    return;
  }
}

/* The other pieces of an op run right behind its first one. */
static void insert_steps(struct sw_job *job, struct cutter *c)
{
  SW_VEC(struct sw_step) steps = {0};
  for (int i = 0; i < c->p->steps.n; i++) {
    const struct sw_step *step = &c->p->steps.v[i];
    *SW_PUSH(job->arena, &steps) = *step;
    for (int k = 0; !step->is_host && k < c->more[step->index].n; k++)
      *SW_PUSH(job->arena, &steps) = (struct sw_step){.is_host = false, .index = c->more[step->index].first + k};
  }
  memcpy(&c->p->steps, &steps, sizeof steps);
}

enum sw_rc sw_cut_pieces(struct sw_job *job, const struct sw_options *o, struct sw_program *p)
{
  struct sw_arena *scratch = sw_arena_new(job->arena, SIZE_MAX);
  struct cutter c = {.quiet = {.arena = scratch, .cancel = job->cancel}, .o = o, .p = p};
  int n = p->ops.n;
  c.w = SW_NEW(scratch, struct sw_work);
  c.more = SW_NEW_N(scratch, struct pieces, n);
  c.nest = SW_NEW_N(scratch, struct sw_nest, n);
  for (int i = 0; i < n; i++)
    if (o->profile == SW_PROFILE_BEST && !sw_op_has_form(scratch, p, &p->ops.v[i]))
      cut_into_sticks(&c, job, i);
    else if (is_large(p, &p->ops.v[i]) && divide(&c, &p->ops.v[i]) == SW_LIMIT && can_be_cut(c.w))
      cut(&c, job, i);
  if (p->ops.n > n)
    insert_steps(job, &c);
  enum sw_rc rc = SW_OK;
  if (c.any_nest) {
    struct sw_tiling t = {.job = job, .o = o, .p = p, .scratch = scratch};
    t.nest = SW_NEW_N(scratch, struct sw_nest, p->ops.n);
    memcpy(t.nest, c.nest, sizeof *c.nest * (size_t)n);
    memcpy(&t.steps, &p->steps, sizeof t.steps);
    rc = sw_apply_tiles(&t);
  }
  sw_arena_free(scratch);
  return rc;
}
