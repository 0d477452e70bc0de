/* Packing of a chosen set of units: which children take their parents' slots, and then where everything goes. */
#ifndef SW_PLACE_CHOSEN_H
#define SW_PLACE_CHOSEN_H

#include "solver/place/pack.h"

struct sw_chosen {
  struct sw_arena *arena; /* scratch; the answer lives there too */
  const struct sw_job *job;
  const struct sw_model *model;
  const bool *in;     /* per unit */
  const bool *merged; /* per edge: tried first; may be NULL */
  int64_t height;
  int64_t work;       /* counts down */
  /* out */
  int64_t *address;   /* per buffer */
  const char *by;
  int *failed, n_failed; /* units that do not pack together (SW_UNPACKABLE: proved) */
};

enum sw_packed sw_pack_chosen(struct sw_chosen *c);

#endif
