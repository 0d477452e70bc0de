#include "compiler/layout/choose.h"

#include <inttypes.h>
#include <string.h>

static const struct {
  const char *name, *words;
} reasons[] = {
#define X(id, name, words) {name, words},
    SW_REASONS(X)
#undef X
};

const char *sw_layout__reason_name(enum sw_reason r)
{
  return reasons[r].name;
}

const char *sw_layout__reason_words(enum sw_reason r)
{
  return reasons[r].words;
}

/* num * ((loop mod m) div den): 2*floor(Mod(d1,128)/64), without what does nothing. */
static void write_term(struct sw_buf *b, const struct sw_term *t)
{
  if (t->num != 1)
    sw_buf_printf(b, "%" PRId64 "*", t->num);
  if (t->den > 1)
    sw_buf_puts(b, "floor(");
  if (t->mod)
    sw_buf_printf(b, "Mod(d%d,%" PRId64 ")", t->loop, t->mod);
  else
    sw_buf_printf(b, "d%d", t->loop);
  if (t->den > 1)
    sw_buf_printf(b, "/%" PRId64 ")", t->den);
}

const char *sw_layout__coord_text(struct sw_arena *a, const struct sw_coord *c)
{
  struct sw_buf b = {.arena = a};
  for (int t = 0; t < c->n; t++) {
    sw_buf_puts(&b, t ? " + " : "");
    write_term(&b, &c->term[t]);
  }
  if (c->index)
    sw_buf_printf(&b, "%srow number", c->n ? " + " : "");
  if (c->constant || (!c->n && !c->index))
    sw_buf_printf(&b, "%s%" PRId64, c->n || c->index ? " + " : "", c->constant);
  return sw_buf_text(&b);
}

enum sw_reason sw_layout__stick_reason(const struct sw_seen *seen)
{
  if (!seen->formed)
    return SW_WHY_NO_FORM;
  return seen->stick.class == SW_STICK_OTHER    ? SW_WHY_MIXED
         : seen->stick.class == SW_STICK_OFFSET ? SW_WHY_INSIDE
                                                : SW_WHY_NONE;
}

/* Why a lane that is no loop by itself can't be one. */
static const char *lane_words(struct sw_arena *a, const struct sw_coord *lane)
{
  const struct sw_term *t = &lane->term[0];
  if (lane->index)
    return "rows are gathered inside a stick";
  if (lane->n > 1)
    return "it mixes loops";
  if (!lane->n)
    return "one lane of it is read alone";
  if (t->den > 1)
    return sw_arena_printf(a, "it stays on each lane for %" PRId64 " steps", t->den);
  return t->num != 1 ? "it skips lanes" : sw_arena_printf(a, "it starts again after %" PRId64 " lanes", t->mod);
}

const char *sw_layout__stick_words(struct sw_arena *a, enum sw_reason r, const struct sw_op *op, const struct sw_seen *seen,
                                   bool is_written)
{
  const struct sw_coord *lane = &seen->stick.coord;
  if (r == SW_WHY_MIXED) {
    struct sw_buf b = {.arena = a};
    sw_buf_printf(&b, "its stick would be %s", sw_layout__coord_text(a, lane));
    for (int t = 0; t < lane->n; t++)
      sw_buf_printf(&b, "%sd%d < %" PRId64, t ? ", " : " (", lane->term[t].loop, op->range[lane->term[t].loop]);
    sw_buf_printf(&b, "%s: %s", lane->n ? ")" : "", lane_words(a, lane));
    return sw_buf_text(&b);
  }
  if (r == SW_WHY_INSIDE)
    return sw_arena_printf(a, "the %s starts inside a stick, at lane %" PRId64, is_written ? "write" : "read", lane->constant);
  return sw_layout__reason_words(r);
}

/* -- of an operand and a result -- */

/* Where a loop is in the operand: "dim 1 (256 elements)", or the loop itself where it has not a dim to itself. */
static const char *loop_words(const struct sw_choosing *c, const struct sw_op *op, const struct sw_access *x, int loop)
{
  struct sw_arena *a = c->job->arena;
  const struct sw_storage *s = &c->p->storages.v[x->storage];
  struct sw_coord host[SW_MAX_RANK];
  if (!x->step[loop])
    return sw_arena_printf(a, "d%d (%" PRId64 " elements), along which it is broadcast", loop, op->range[loop]);
  if (sw_layout__host_coords(s, op, x, c->rule, host))
    for (int d = 0; d < s->rank; d++)
      if (host[d].n == 1 && host[d].term[0].loop == loop && host[d].term[0].num == 1 && !host[d].term[0].mod &&
          host[d].term[0].den == 1)
        return sw_arena_printf(a, "dim %d (%" PRId64 " elements)", d, s->size[d]);
  return sw_arena_printf(a, "d%d (%" PRId64 " elements)", loop, op->range[loop]);
}

struct pair {
  const struct sw_choosing *c;
  const struct sw_op *op;
  const struct sw_access *x;
  const struct sw_layout *from, *to;
  struct sw_seen seen, to_seen;
  int wanted; /* loop that is to be on the operand's stick, -1: none */
  const char *result;
};

/* With the numbers of this pair, or NULL: the words of the list say it all. */
static const char *pair_words(const struct pair *p, enum sw_reason r)
{
  struct sw_arena *a = p->c->job->arena;
  const char *words = sw_layout__reason_words(r);
  int own = p->seen.stick.loop, eps = sw_format_eps(p->from->format);
  const char *is_on = own < 0 ? NULL : loop_words(p->c, p->op, p->x, own);
  const char *wanted = p->wanted < 0 ? NULL : loop_words(p->c, p->op, p->x, p->wanted);
  switch (r) {
  case SW_WHY_OTHER_DIM:
  case SW_WHY_MATRIX_DIM:
    if (!is_on || !wanted || own == p->wanted)
      return NULL;
    return sw_arena_printf(a, "%s: %s, not %s", words, is_on, wanted);
  case SW_WHY_GATHER:
    return wanted ? sw_arena_printf(a, "%s: it has one element a stick and should have %s on it", words, wanted) : NULL;
  case SW_WHY_SCATTER:
    return is_on ? sw_arena_printf(a, "%s: it is on %s, and %s has one element a stick", words, is_on, p->result) : NULL;
  case SW_WHY_FLOAT32_SUM:
  case SW_WHY_LANES_SUM:
  case SW_WHY_SEARCH:
    return sw_arena_printf(a, "%s (%" PRId64 " elements, sticks of %d)", words, p->op->range[own],
                           p->from->arrangement == SW_EA_STANDARD ? eps : 64);
  case SW_WHY_LANES:
    return sw_arena_printf(a, "%s: %s, and %s has %s", words, sw_arrangement_name(p->from->arrangement), p->result,
                           sw_arrangement_name(p->to->arrangement));
  case SW_WHY_STICK_SIZES:
    return sw_arena_printf(a, "%s: %d, and %s has %d", words, eps, p->result, sw_format_eps(p->to->format));
  default:
    return NULL;
  }
}

const char *sw_layout__why(const struct sw_choosing *c, const struct sw_op *op, int input, const struct sw_layout *from,
                           const struct sw_layout *to, const struct sw_outcome *o)
{
  struct sw_need need = sw_layout__need(c, op, input);
  struct pair p = {.c = c, .op = op, .x = &op->in[input], .from = from, .to = to};
  p.seen = sw_layout__see(from, op, p.x, c->rule);
  p.to_seen = sw_layout__see(to, op, &op->out, c->rule);
  p.wanted = need.kind == SW_NEED_LOOP ? need.loop : p.to_seen.stick.loop;
  p.result = c->p->storages.v[op->out.storage].name;
  const char *words = sw_layout__stick_reason(&p.seen) == o->why ? sw_layout__stick_words(c->job->arena, o->why, op, &p.seen, false)
                                                                 : pair_words(&p, o->why);
  if (!words)
    words = sw_layout__reason_words(o->why);
  if (o->kind != SW_IMPOSSIBLE || from->format == SW_FORMAT_FP16)
    return words;
  return sw_arena_printf(c->job->arena, "%s, and there is no ReStickifyOpHBM on %s", words, sw_format_name(from->format));
}

const char *sw_layout__why_unwritable(const struct sw_choosing *c, const struct sw_op *op, const struct sw_layout *l,
                                      enum sw_reason r)
{
  struct sw_seen seen = sw_layout__see(l, op, &op->out, c->rule);
  return sw_layout__stick_words(c->job->arena, r, op, &seen, true);
}
