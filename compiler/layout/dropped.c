#include "compiler/layout/dropped.h"

#include "compiler/layout/choose.h"

#include <string.h>

static const char *const kinds[] = {
#define X(id, name) name,
    SW_DROPS(X)
#undef X
};

static bool same_layout(const struct sw_layout *a, const struct sw_layout *b)
{
  return a && b ? sw_layout_equal(a, b) : a == b;
}

/* Drops of one op stand together, so only the end of the list is looked through. */
bool sw_layout__is_dropped(const struct sw_choosing *c, const struct sw_drop *d)
{
  for (int i = c->drops.n - 1; i >= 0 && c->drops.v[i].op == d->op; i--) {
    const struct sw_drop *o = &c->drops.v[i];
    if (o->kind == d->kind && o->storage == d->storage && o->stick == d->stick && o->input == d->input &&
        same_layout(o->layout, d->layout))
      return true;
  }
  return false;
}

void sw_layout__drop(struct sw_choosing *c, const struct sw_drop *d, const char *words)
{
  if (sw_layout__is_dropped(c, d))
    return;
  struct sw_drop *own = SW_PUSH(c->arena, &c->drops);
  *own = *d;
  own->layout = d->layout ? sw_arena_copy(c->arena, d->layout, 1, sizeof *d->layout) : NULL;
  *SW_PUSH(c->job->arena, &c->choice->dropped) = (struct sw_dropped){
      .kind = kinds[d->kind],
      .storage = c->p->storages.v[d->storage].name,
      .layout = d->layout ? sw_layout__label(c->job->arena, d->layout) : NULL,
      .stick = d->stick,
      .op = d->op ? d->op->name : NULL,
      .operand = d->input,
      .reason = sw_layout__reason_name(d->reason),
      .detail = words ? words : sw_layout__reason_words(d->reason),
  };
}

void sw_layout_dropped_json(const struct sw_choice *choice, struct sw_buf *out)
{
  struct sw_jw w = {.out = out, .indent = 1};
  sw_jw_object(&w);
  sw_jw_kstr(&w, "format", "stickwright.dropped/1");
  sw_jw_key(&w, "dropped");
  sw_jw_array(&w);
  for (int i = 0; i < choice->dropped.n; i++) {
    const struct sw_dropped *d = &choice->dropped.v[i];
    sw_jw_object(&w);
    sw_jw_kstr(&w, "storage", d->storage);
    sw_jw_kstr(&w, "layout", d->layout);
    sw_jw_kint(&w, "stick", d->stick);
    sw_jw_kstr(&w, "kind", d->kind);
    sw_jw_kstr(&w, "op", d->op);
    sw_jw_key(&w, "operand");
    if (d->operand < 0)
      sw_jw_null(&w);
    else
      sw_jw_int(&w, d->operand);
    sw_jw_kstr(&w, "reason", d->reason);
    sw_jw_kstr(&w, "detail", d->detail);
    sw_jw_end_object(&w);
  }
  sw_jw_end_array(&w);
  sw_jw_end_object(&w);
  sw_buf_puts(out, "\n");
}

static const char *drop_key(const struct sw_choosing *c, int i)
{
  const struct sw_dropped *d = &c->choice->dropped.v[i];
  return sw_arena_printf(c->arena, "%s %s %s", d->op, d->storage, d->layout);
}

static void keep_only(struct sw_choosing *c, bool (*stays)(const struct sw_choosing *, const struct sw_drop *))
{
  int n = 0;
  for (int i = 0; i < c->drops.n; i++) {
    if (!stays(c, &c->drops.v[i]))
      continue;
    c->drops.v[n] = c->drops.v[i];
    c->choice->dropped.v[n++] = c->choice->dropped.v[i];
  }
  c->drops.n = c->choice->dropped.n = n;
}

static bool is_possible(const struct sw_choosing *c, const struct sw_drop *d)
{
  (void)c;
  return d->kind != SW_DROP_IMPOSSIBLE;
}

void sw_layout__forget_impossible(struct sw_choosing *c)
{
  keep_only(c, is_possible);
}

/* A stick that one rule leaves out another may give. What is unread must be a candidate: rules try others too. */
static bool is_final(const struct sw_choosing *c, const struct sw_drop *d)
{
  const struct sw_storage *s = &c->p->storages.v[d->storage];
  const sw_layout_list *all = &c->candidates[d->storage];
  for (int i = 0; i < all->n && d->kind == SW_DROP_NO_CANDIDATE; i++)
    if (sw_layout__stick_dim(s, &all->v[i]) == d->stick && (!d->layout || d->layout->arrangement == all->v[i].arrangement))
      return false;
  if (d->kind != SW_DROP_UNREAD)
    return true;
  for (int i = 0; i < all->n; i++)
    if (sw_layout_equal(&all->v[i], d->layout))
      return true;
  return false;
}

/* What is impossible for an op need not be called unread by it as well. */
static void leave_the_worse(struct sw_choosing *c)
{
  struct sw_map impossible = {.arena = c->arena};
  int n = 0;
  for (int i = 0; i < c->drops.n; i++) {
    const struct sw_drop *d = &c->drops.v[i];
    if (d->kind == SW_DROP_IMPOSSIBLE && d->input >= 0)
      sw_map_set_str(&impossible, drop_key(c, i), i);
  }
  for (int i = 0; i < c->drops.n; i++) {
    if (c->drops.v[i].kind == SW_DROP_UNREAD && sw_map_get_str(&impossible, drop_key(c, i)) >= 0)
      continue;
    c->drops.v[n] = c->drops.v[i];
    c->choice->dropped.v[n++] = c->choice->dropped.v[i];
  }
  c->drops.n = c->choice->dropped.n = n;
}

/* Sticks of what the op is the first to write, candidates or not: bit d for dim d, bit rank for none. */
static unsigned sticks_judged(const struct sw_choosing *c, int storage)
{
  const struct sw_storage *s = &c->p->storages.v[storage];
  unsigned judged = 0;
  for (int i = 0; i < c->candidates[storage].n; i++) {
    int d = sw_layout__stick_dim(s, &c->candidates[storage].v[i]);
    judged |= 1u << (d < 0 ? s->rank : d);
  }
  return judged;
}

/* So that each stick of each tensor that an op writes is a candidate or has a reason. */
static void note_the_rest(struct sw_choosing *c)
{
  unsigned *judged = SW_NEW_N(c->arena, unsigned, c->n_storages + 1);
  bool *done = SW_NEW_N(c->arena, bool, c->n_storages + 1);
  for (int i = 0; i < c->drops.n; i++) {
    const struct sw_drop *d = &c->drops.v[i];
    if (d->kind == SW_DROP_NO_CANDIDATE)
      judged[d->storage] |= 1u << (d->stick < 0 ? c->p->storages.v[d->storage].rank : d->stick);
  }
  for (int i = 0; i < c->p->ops.n; i++) {
    const struct sw_op *op = &c->p->ops.v[i];
    int storage = op->out.storage;
    const struct sw_storage *s = &c->p->storages.v[storage];
    if (done[storage] || s->kind != SW_STORAGE_TEMPORARY || c->pinned[storage])
      continue;
    done[storage] = true;
    unsigned there = judged[storage] | sticks_judged(c, storage);
    for (int d = 0; d <= s->rank; d++)
      if (!(there >> d & 1) && (d == s->rank || s->size[d] > 1))
        sw_layout__drop(c, &(struct sw_drop){SW_DROP_NO_CANDIDATE, storage, d < s->rank ? d : -1, NULL, op, -1, SW_WHY_NOT_OFFERED}, NULL);
  }
}

void sw_layout__settle_drops(struct sw_choosing *c)
{
  keep_only(c, is_final);
  leave_the_worse(c);
  note_the_rest(c);
}
