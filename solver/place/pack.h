/* Packing alone: every item must get an address below `height`. Items are buffers, or buffers that share an address
 * (in-place chains, alias groups) and then have a shape in time. */
#ifndef SW_PLACE_PACK_H
#define SW_PLACE_PACK_H

#include "solver/place/model.h"

struct sw_item {
  struct sw_shape shape;
  int64_t alignment;
  int64_t address; /* pinned, or -1 */
};

enum sw_packed {
  SW_PACKED,     /* offsets are set */
  SW_UNPACKABLE, /* proved */
  SW_GAVE_UP,    /* the work is spent */
};

/* Two items that meet: their heights where they do. An item that meets another in several parts has several. */
struct sw_meeting {
  int other;
  int64_t own, others;
};

struct sw_pack {
  struct sw_arena *arena;
  const struct sw_item *items;
  int n, n_sections;
  int64_t height;
  int64_t work;    /* what may still be spent, in items looked at */
  int64_t *offset; /* out */
  const char *by;  /* out: who found it */
  const struct sw_job *job; /* for cancellation */

  /* of the component in hand, shared by the packers below */
  int64_t *meet_at; /* meetings of item i: meet[meet_at[i]] .. */
  struct sw_meeting *meet;
  int64_t *tallest; /* of every item */
};

/* Cuts time where nothing crosses, then per piece: orders, gluing, search. */
enum sw_packed sw_pack(struct sw_pack *k);

/* What items are ordered by: descending, equal ones by number. */
struct sw_pack_key {
  int64_t a, b, c;
  int i;
};
int sw_by_pack_key(const void *a, const void *b);

/* -- the parts of it; `list` are the items of one piece in order of their first section -- */

/* Lowest free address, item by item, in several orders, each repaired until `rounds` are over. */
bool sw_pack_by_order(struct sw_pack *k, const int *list, int n, int rounds);

/* Undoes cuts: stacks items of equal life, joins items of equal height that follow one another, and packs the result.
 * Never proves anything. */
bool sw_pack_glued(struct sw_pack *k, const int *list, int n);

/* Depth-first search; exact. */
enum sw_packed sw_pack_search(struct sw_pack *k, const int *list, int n);

#endif
