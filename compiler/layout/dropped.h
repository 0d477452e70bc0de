/* Layouts that were considered and left out, for explain. One list a choice; it costs a few words where something is left
 * out, and nothing is asked a second time for it.
 *
 *   no-candidate  the storage got no such layout
 *   unread        a candidate that this reader can't read as it is: it makes no candidate of its own from it, and what
 *                 reads it is a copy
 *   impossible    a candidate that no plan has, since this op can't write into it, or read an operand with it, by any copy */
#ifndef SW_LAYOUT_DROPPED_H
#define SW_LAYOUT_DROPPED_H

#include "compiler/layout/reason.h"

#define SW_DROPS(X)             \
  X(NO_CANDIDATE, "no-candidate") \
  X(UNREAD, "unread")           \
  X(IMPOSSIBLE, "impossible")

enum sw_drop_kind {
#define X(id, name) SW_DROP_##id,
  SW_DROPS(X)
#undef X
  SW_N_DROPS
};

struct sw_choosing;

struct sw_drop {
  enum sw_drop_kind kind;
  int storage, stick;      /* stick: host dim, -1: one element a stick */
  const struct sw_layout *layout; /* NULL: none can be made */
  const struct sw_op *op;  /* NULL: no one in particular */
  int input;               /* operand of the op, -1: it writes the storage */
  enum sw_reason reason;
};

/* `words`: NULL where those of the reason say it all; kept as given. The list is that of c->choice. */
void sw_layout__drop(struct sw_choosing *c, const struct sw_drop *d, const char *words);
/* Whether the list has it: then words need not be made. */
bool sw_layout__is_dropped(const struct sw_choosing *c, const struct sw_drop *d);
/* Before labels are judged again, with more means. */
void sw_layout__forget_impossible(struct sw_choosing *c);
/* At the end: takes out what became a candidate by another way. */
void sw_layout__settle_drops(struct sw_choosing *c);

#endif
