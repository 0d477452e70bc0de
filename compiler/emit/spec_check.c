#include "compiler/emit/superdsc.h"

#include <string.h>

/* The validation before generation (superdsc.md 2.5). Ops without args are skipped, as there is nothing
 * to generate a tensor from. */

enum need {
  NEED_NONE = 0,
  NEED_REDUCTION = 1,
  NEED_POINTWISE = 2,
};

/* What the reference demands of the ops it knows: the flag, and how many inputs at least. */
static const struct demand {
  const char *op;
  enum need need;
  int inputs;
} demands[] = {
    {"batchmatmul", NEED_REDUCTION, 2},
    {"batchmatmulfp8", NEED_REDUCTION, 2},
    {"sum", NEED_REDUCTION, 0},
    {"mean", NEED_REDUCTION, 0},
    {"max", NEED_REDUCTION, 0},
    {"min", NEED_REDUCTION, 0},
    {"topkvalue", NEED_REDUCTION, 0},
    {"topkindex", NEED_REDUCTION, 0},
    {"add", NEED_POINTWISE, 2},
    {"sub", NEED_POINTWISE, 2},
    {"mul", NEED_POINTWISE, 2},
    {"realdiv", NEED_POINTWISE, 2},
    {"maximum", NEED_POINTWISE, 2},
    {"minimum", NEED_POINTWISE, 2},
    {"equal", NEED_POINTWISE, 2},
    {"notequal", NEED_POINTWISE, 2},
    {"greaterthan", NEED_POINTWISE, 2},
    {"greaterequal", NEED_POINTWISE, 2},
    {"lesserthan", NEED_POINTWISE, 2},
    {"lesserequal", NEED_POINTWISE, 2},
    {"where3", NEED_POINTWISE, 3},
    {"abs", NEED_POINTWISE, 1},
    {"exp", NEED_POINTWISE, 1},
    {"floor", NEED_POINTWISE, 1},
    {"gelufwd", NEED_POINTWISE, 1},
    {"log", NEED_POINTWISE, 1},
    {"neg", NEED_POINTWISE, 1},
    {"reciprocal", NEED_POINTWISE, 1},
    {"relufwd", NEED_POINTWISE, 1},
    {"rsqrt", NEED_POINTWISE, 1},
    {"sigmoid", NEED_POINTWISE, 1},
    {"silu", NEED_POINTWISE, 1},
    {"sqrt", NEED_POINTWISE, 1},
    {"tanh", NEED_POINTWISE, 1},
    {"qfp8ch", NEED_POINTWISE, 1},
    {"clip", NEED_POINTWISE, 1},
    {"softplus", NEED_POINTWISE, 1},
    {"identity", NEED_POINTWISE, 1},
    {"ReStickifyOpHBM", NEED_POINTWISE, 1},
};

/* Products of sizes stay far from overflow: 2^46 elements are more than the card's memory. */
static const int64_t MOST_ELEMENTS = (int64_t)1 << 46;

static enum sw_rc fault(struct sw_job *job, const struct sw_spec *s, const char *what)
{
  const char *name = s->origin ? s->origin : s->op && *s->op ? s->op : "without a name";
  struct sw_fault *f = sw_fault(job, SW_INVALID, "op spec %s: %s", name, what);
  f->node = name;
  f->source = s->source;
  return SW_INVALID;
}

static enum sw_rc check_arg(struct sw_job *job, const struct sw_spec *s, int i)
{
  const struct sw_spec_arg *a = &s->args.v[i];
  const char *what = NULL;
  if (a->alloc == SW_ALLOC_HBM ? a->arg_index < 0 : a->arg_index != -1)
    what = "arg_index must be >= 0 in HBM, -1 in LX and pool";
  if (a->alloc == SW_ALLOC_HBM && a->address < a->arg_index)
    what = "an HBM allocation is the argument number plus an offset";
  if (a->address < 0 || a->address > MOST_ELEMENTS)
    what = "the address is below 0 or beyond all memory";
  int64_t elements = 1;
  for (int d = 0; d < a->rank; d++) {
    if (a->device_size[d] < 1 || a->device_size[d] > MOST_ELEMENTS / elements)
      what = "device sizes must be at least 1, and all elements countable";
    else
      elements *= a->device_size[d];
    const struct sw_spec_coord *c = &a->coord[d];
    if (c->form == SW_COORD_CONST && c->k)
      what = "a constant start needs a symbol of range 1 (z0 + k)";
    if (c->k > a->device_size[d])
      what = "a start behind the end of the dim";
    if (c->form == SW_COORD_MOD && d != a->rank - 1)
      what = "Mod may only stand in the last coordinate";
    if ((c->form == SW_COORD_MOD || c->form == SW_COORD_FLOOR) && c->e != sw_format_eps(a->format))
      what = "floor and Mod must count elements of a stick";
    if (c->form == SW_COORD_INDIRECT) {
      bool found = false;
      for (int j = 0; j < s->args.n; j++)
        found = found || (j != i && s->args.v[j].name && !strcmp(s->args.v[j].name, c->name));
      if (!found)
        what = "IndirectAccess of a tensor that is not among the args";
    }
  }
  if (a->device_size[a->rank - 1] != sw_format_eps(a->format))
    what = "the last device size must be the elements of a stick";
  return what ? fault(job, s, sw_arena_printf(job->arena, "arg %d: %s", i, what)) : SW_OK;
}

static bool tile_symbol_known(const struct sw_spec *s, const char *name)
{
  for (int i = 0; i < s->space.n; i++)
    if (!strcmp(s->space.v[i].name, name))
      return true;
  for (int i = 0; i < s->args.n; i++)
    if (s->args.v[i].tile_advance && strstr(s->args.v[i].tile_advance, name))
      return true;
  for (int i = 0; i < s->tile_trip_counts.n; i++)
    if (!strcmp(s->tile_trip_counts.v[i].name, name))
      return true;
  return false;
}

static enum sw_rc check_op(struct sw_job *job, const struct sw_spec *s, int loops)
{
  if (!s->op || !*s->op)
    return fault(job, s, "an op needs a name");
  if (!s->args.n)
    return SW_OK;
  if (s->space.n > SW_MAX_LOOPS)
    return fault(job, s, "more than 12 loops");
  for (int i = 0; i < s->space.n; i++)
    if (s->space.v[i].split < 1 || s->space.v[i].range < 1 || s->space.v[i].range > MOST_ELEMENTS ||
        s->space.v[i].split > MOST_ELEMENTS || (s->space.v[i].dynamic && s->space.v[i].granularity < 1))
      return fault(job, s, sw_arena_printf(job->arena, "%s: range, split and granularity must be at least 1",
                                           s->space.v[i].name));
  enum sw_rc worst = SW_OK;
  int n_in = 0, n_out = 0;
  for (int i = 0; i < s->args.n; i++) {
    enum sw_rc rc = check_arg(job, s, i);
    worst = rc > worst ? rc : worst;
    n_in += s->args.v[i].is_input;
    n_out += !s->args.v[i].is_input;
  }
  if (n_out != 1 || s->args.v[s->args.n - 1].is_input)
    worst = fault(job, s, "exactly one output, as the last arg, expected");
  for (size_t i = 0; i < sizeof demands / sizeof *demands; i++) {
    const struct demand *d = &demands[i];
    if (strcmp(d->op, s->op))
      continue;
    if (d->need != NEED_NONE && s->is_reduction != (d->need == NEED_REDUCTION))
      worst = fault(job, s, d->need == NEED_REDUCTION ? "is_reduction must be true" : "is_reduction must be false");
    if (n_in < d->inputs)
      worst = fault(job, s, sw_arena_printf(job->arena, "%d inputs, at least %d expected", n_in, d->inputs));
  }
  if (s->n_tile_levels > loops)
    worst = fault(job, s, "more levels of tiled symbols than loops around it");
  for (int l = 0; l < s->n_tile_levels; l++)
    for (int i = 0; i < s->tile_levels[l].n; i++)
      if (!tile_symbol_known(s, s->tile_levels[l].symbols[i]))
        worst = fault(job, s, sw_arena_printf(job->arena, "tiled symbol %s belongs to nothing",
                                              s->tile_levels[l].symbols[i]));
  return worst;
}

static enum sw_rc check(struct sw_job *job, const struct sw_spec *s, int loops)
{
  if (!s->is_loop)
    return check_op(job, s, loops);
  if (s->count < 1 || !s->body.n)
    return sw_fail(job, SW_INVALID, "a loop needs a count of at least 1 and a body");
  enum sw_rc worst = SW_OK;
  for (int i = 0; i < s->body.n; i++) {
    enum sw_rc rc = check(job, s->body.v[i], loops + 1);
    worst = rc > worst ? rc : worst;
  }
  return worst;
}

enum sw_rc sw_spec_check(struct sw_job *job, const struct sw_opspecs *specs)
{
  enum sw_rc worst = SW_OK;
  for (int i = 0; i < specs->specs.n; i++) {
    enum sw_rc rc = check(job, specs->specs.v[i], 0);
    worst = rc > worst ? rc : worst;
  }
  return worst;
}
