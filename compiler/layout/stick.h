/* What the rooms' other files share about sticks: coordinates in either kind of memory, stick classes, compatibility,
 * and the layout a conversion makes. Reference: layouts.md sections 3.2 to 3.6. */
#ifndef SW_LAYOUT_STICK_H
#define SW_LAYOUT_STICK_H

#include "compiler/layout/layout.h"

/* How the constant part of an index is taken apart. The reference takes it modulo each next stride; where a row is not
 * a whole number of sticks that sees an offset in the stick where there is none ([4,100], rows 1 to 3: 36). */
enum sw_offset_rule { SW_OFFSET_EXACT, SW_OFFSET_REFERENCE };

bool sw_layout__coords(const struct sw_layout *l, const struct sw_op *op, const struct sw_access *x,
                       enum sw_offset_rule rule, struct sw_coord out[SW_MAX_DEVICE_RANK]);

/* The same for the host tensor itself: one coordinate a dim of the storage. */
bool sw_layout__host_coords(const struct sw_storage *s, const struct sw_op *op, const struct sw_access *x,
                            enum sw_offset_rule rule, struct sw_coord out[SW_MAX_RANK]);

enum sw_stick_class {
  SW_STICK_ZERO,   /* one element a stick, or read as if there were */
  SW_STICK_LOOP,   /* along one loop */
  SW_STICK_OFFSET, /* along one loop, starting inside a stick: usable only through a conversion */
  SW_STICK_OTHER,  /* not representable */
};

/* The stick of an access: its class and its loop (-1 for ZERO and OTHER). */
struct sw_stick {
  enum sw_stick_class class;
  int loop;
  struct sw_coord coord;
};

struct sw_stick sw_layout__stick(const struct sw_layout *l, const struct sw_coord *coords);

/* An access with its coordinates taken apart once: the stick, and the loops that any other device dim depends on. */
struct sw_seen {
  bool formed; /* false: reversed or without a form; nothing else is set */
  struct sw_stick stick;
  unsigned nonstick; /* bit per loop */
  struct sw_coord coord[SW_MAX_DEVICE_RANK];
};

struct sw_seen sw_layout__see(const struct sw_layout *l, const struct sw_op *op, const struct sw_access *x,
                              enum sw_offset_rule rule);

/* Whether two accesses of one op can go lane by lane: at most one loop on the sticks, and it is on no other device dim
 * of either. Offsets are the caller's business. */
bool sw_layout__compatible(const struct sw_seen *a, const struct sw_seen *b);

/* The dim whose coordinate is the stick's loop itself, or -1 when none or several are. */
int sw_layout__covering_dim(const struct sw_coord *host, int rank, const struct sw_stick *stick);

/* The host dim that a layout of this storage has on its stick; -1: none (sparse, scalar, or of size 1). */
int sw_layout__stick_dim(const struct sw_storage *s, const struct sw_layout *l);

/* The layout that a conversion to host dim `to` makes of `from`; false when there is none. The stick moves, the other
 * device dims keep their places, the arrangement becomes standard. */
bool sw_layout__move_stick(const struct sw_storage *s, const struct sw_layout *from, int to, struct sw_layout *out);

#endif
