/* Shared by the files that make candidates (prefix cand_): one op at work, and the helper rules of layouts.md 4.1. */
#ifndef SW_LAYOUT_CANDIDATES_H
#define SW_LAYOUT_CANDIDATES_H

#include "compiler/layout/choose.h"

struct cand_op {
  struct sw_choosing *c;
  const struct sw_op *op;
  int storage; /* written */
  const struct sw_storage *s;
  enum sw_format format;
  int eps;
  struct sw_coord oc[SW_MAX_RANK]; /* host coordinates of the output access */
};

/* Dim of the output that is the stick, -1: none. */
int cand_pick(const struct cand_op *m, const struct sw_stick *stick);
/* Order of dims with `stick` (-1: sparse) last; gives their number. */
int cand_order_for(const struct cand_op *m, int stick, int *order);
/* The layout in that order, when its stick is clean under the output access. */
bool cand_make(const struct cand_op *m, int stick, enum sw_arrangement ea, struct sw_layout *out);
/* Float32 in the order of a cast: tiles in pairs. False when it can't have them. */
bool cand_pair_tiles(const struct cand_op *m, int stick, struct sw_layout *l);
/* Notes that the output gets no such layout (`stick` -1: sparse); false, to be returned. `words`: NULL for those of the
 * reason. */
bool cand_drop(const struct cand_op *m, int stick, enum sw_arrangement ea, enum sw_reason why, const char *words);
/* Makes and proposes; false when there is none or it is there already. */
bool cand_offer(const struct cand_op *m, int stick, enum sw_arrangement ea);
void cand_offer_all(const struct cand_op *m, enum sw_arrangement ea);
void cand_offer_order(const struct cand_op *m, const int *order, int n, enum sw_arrangement ea);
bool cand_aligned(const struct cand_op *m, int d); /* the dim is a number of whole sticks */
bool cand_wants_whole(const struct cand_op *m, int d); /* the same; noted where it is not */

const struct sw_storage *cand_operand(const struct cand_op *m, int input);
const sw_layout_list *cand_layouts(const struct cand_op *m, int input); /* its candidates */
bool cand_same_frame(const struct cand_op *m, int input);
/* Of a candidate: noted where the operand can't be read through it. */
struct sw_seen cand_seen_by(const struct cand_op *m, int input, const struct sw_layout *l);
bool cand_clean(const struct sw_seen *seen);
bool cand_is_staggered(const struct sw_layout *l);

/* NULL, or why the op can't be laid out. */
const char *cand_several_arguments(const struct cand_op *m, const int *input, int n_inputs);
void cand_one_argument(const struct cand_op *m, int input);

#endif
