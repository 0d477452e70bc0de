/* Per-core views: what part of a storage each core touches (scratchpad.md 4.3).
 *
 * A scratchpad holds its core's part only, dense. So writer and readers of a storage in LX must cut it in the same
 * pieces and give each piece to the same core. Example: add [128,256] on 32 cores by rows writes device dim 1 of
 * [4,128,64] in 32 slices, core c slice c; a reader that is cut 8 x 4 by rows and columns disagrees. */
#include "compiler/layout/normal.h"
#include "compiler/plan/division.h"
#include "compiler/plan/loops.h"
#include "compiler/plan/scratchpad.h"

#include <string.h>

static bool is_matmul(enum sw_device_op op)
{
  return op == SW_OP_MATMUL || op == SW_OP_MATMULFP8;
}

/* How the loops are shared out: core c has slice (c / below) mod split. */
struct shares {
  int64_t split[SW_MAX_LOOPS], below[SW_MAX_LOOPS];
};

/* As it will be written down (superdsc.md 7.1); the operands of a relayout have owners of their own. */
static void shares_of(const struct sw_op *op, int operand, struct shares *out)
{
  int last = op->n_loops - 1;
  int first = is_matmul(op->op) && last >= 0 && op->plan->split[last] > 1 ? last : -1;
  memcpy(out->split, op->plan->split, sizeof out->split);
  if (op->plan->relayout) {
    const struct sw_owners *o = operand < 0 ? &op->plan->relayout->to : &op->plan->relayout->from;
    for (int v = 0; v < op->n_loops; v++)
      out->split[v] = out->below[v] = 1;
    for (int k = 0; k < o->n; k++) {
      out->split[o->cut[k].loop] = o->cut[k].n;
      out->below[o->cut[k].loop] = o->cut[k].below;
    }
  } else {
    sw_core_strides(op->n_loops, op->plan->split, first, out->below);
  }
}

/* One device dim of an access: the loop that walks along it (-1: none), in steps of `den` elements of the loop. */
struct walk {
  int loop;
  int64_t den, mod;
};

static enum sw_lx_reason walk_of(const struct sw_coord *c, int64_t size, struct walk *w)
{
  *w = (struct walk){.loop = -1, .den = 1};
  if (c->index || c->constant)
    return c->index ? SW_LX_INDEX_REASON : SW_LX_PARTIAL_REASON;
  if (!c->n)
    return size == 1 ? SW_LX_FITS : SW_LX_GAP_REASON;
  if (c->n > 1 || c->term[0].num != 1)
    return SW_LX_PARTIAL_REASON;
  *w = (struct walk){c->term[0].loop, c->term[0].den > 1 ? c->term[0].den : 1, c->term[0].mod};
  return SW_LX_FITS;
}

/* Whether the dims that loop `v` walks along are its digits, all of them and side by side: a loop over 8 on dims 2, 4
 * has the digits v div 4 and v mod 4. `lane` is the size of the lowest digit if that is in the stick, else 1. A core's
 * part is dense in LX, so that dims side by side may be seen as one; but only a loop with one dim may be cut. */
static enum sw_lx_reason check_digits(const struct sw_op *op, const struct shares *shares, const struct sw_layout *l,
                                      const struct walk *w, int v, int64_t lane)
{
  int64_t below = lane;
  int inner = -1;
  for (int d = l->rank - 2; d >= 0; d--) {
    if (w[d].loop != v)
      continue;
    for (int between = d + 1; between < inner; between++)
      if (l->device_size[between] > 1)
        return SW_LX_PARTIAL_REASON;
    if (w[d].den != below || (inner >= 0 && shares->split[v] > 1))
      return SW_LX_PARTIAL_REASON;
    int64_t end = below * l->device_size[d];
    if (w[d].mod ? w[d].mod != end : (op->range[v] + lane - 1) / lane * lane != end)
      return w[d].mod ? SW_LX_PARTIAL_REASON : SW_LX_GAP_REASON;
    below = end;
    inner = d;
  }
  if (below < op->range[v] || (inner < 0 && shares->split[v] > 1)) /* not all of it, or cut inside a stick */
    return SW_LX_PARTIAL_REASON;
  return SW_LX_FITS;
}

enum sw_lx_reason sw_core_view(const struct sw_program *p, const struct sw_op *op, int operand,
                               struct sw_core_view *out)
{
  const struct sw_access *x = operand < 0 ? &op->out : &op->in[operand];
  const struct sw_layout *l = p->storages.v[x->storage].layout;
  struct sw_coord coord[SW_MAX_DEVICE_RANK];
  struct walk w[SW_MAX_DEVICE_RANK];
  if (x->index_input >= 0)
    return SW_LX_INDEX_REASON;
  if (sw_access_moves(op, x) || !sw_layout_coords(l, op, x, coord))
    return SW_LX_PARTIAL_REASON;
  unsigned cut = sw_op_cut_loops(p, op); /* another operand may cut a loop: then a core has several pieces */
  struct shares shares;
  shares_of(op, operand, &shares);
  for (int v = 0; v < op->n_loops; v++)
    if (shares.split[v] > 1 && cut >> v & 1)
      return SW_LX_PARTIAL_REASON;
  memset(out, 0, sizeof *out);
  out->rank = l->rank;
  out->cores = op->plan->cores;
  int64_t eps = l->device_size[l->rank - 1];
  const struct sw_coord *lane = &coord[l->rank - 1];
  if (lane->constant || lane->index || lane->n > 1 ||
      (lane->n && (lane->term[0].num != 1 || lane->term[0].den > 1 || (lane->term[0].mod && lane->term[0].mod != eps))))
    return SW_LX_PARTIAL_REASON;
  for (int d = 0; d + 1 < l->rank; d++) {
    enum sw_lx_reason why = walk_of(&coord[d], l->device_size[d], &w[d]);
    if (why != SW_LX_FITS)
      return why;
    out->factor[d] = w[d].loop < 0 ? 1 : shares.split[w[d].loop];
    if (l->device_size[d] % out->factor[d])
      return SW_LX_GAP_REASON;
  }
  out->factor[l->rank - 1] = 1;
  for (int v = 0; v < op->n_loops; v++) {
    bool is_lane = lane->n && lane->term[0].loop == v, walks = is_lane;
    for (int d = 0; d + 1 < l->rank; d++)
      walks |= w[d].loop == v;
    enum sw_lx_reason why = walks ? check_digits(op, &shares, l, w, v, is_lane ? eps : 1) : SW_LX_FITS;
    if (why != SW_LX_FITS)
      return why;
  }
  for (int d = 0; d + 1 < l->rank; d++) {
    out->loop[d] = w[d].loop;
    for (int c = 0; c < out->cores && w[d].loop >= 0; c++)
      out->slice[d][c] = (signed char)(c / shares.below[w[d].loop] % shares.split[w[d].loop]);
  }
  return SW_LX_FITS;
}

bool sw_core_view_equal(const struct sw_core_view *a, const struct sw_core_view *b)
{
  return a->rank == b->rank && a->cores == b->cores && !memcmp(a->factor, b->factor, sizeof a->factor) &&
         !memcmp(a->slice, b->slice, sizeof a->slice);
}
