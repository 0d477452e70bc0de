/* Per-core views: what part of a storage each core touches (scratchpad.md 4.3).
 *
 * A scratchpad holds its core's part only, dense. So writer and readers of a storage in LX must cut it in the same
 * pieces and give each piece to the same core. Example: add [128,256] on 32 cores by rows writes device dim 1 of
 * [4,128,64] in 32 slices, core c slice c; a reader that is cut 8 x 4 by rows and columns disagrees. */
#include "compiler/plan/division.h"
#include "compiler/plan/scratchpad.h"

#include <string.h>

static bool is_matmul(enum sw_device_op op)
{
  return op == SW_OP_MATMUL || op == SW_OP_MATMULFP8;
}

/* Slice of every loop that a core computes, as it will be written down (superdsc.md 7.1). */
static void slices_of(const struct sw_op *op, int core, int64_t slice[SW_MAX_LOOPS])
{
  int last = op->n_loops - 1;
  int first = is_matmul(op->op) && last >= 0 && op->plan->split[last] > 1 ? last : -1;
  sw_core_slices(op->n_loops, op->plan->split, first, core, slice);
}

/* The loop that runs over a whole device dim of `size` in steps of `eps` elements (1, or a stick), or -1: none, the
 * dim is not cut. */
static enum sw_lx_reason loop_of(const struct sw_op *op, const struct sw_coord *c, int64_t size, int64_t eps, int *loop)
{
  *loop = -1;
  if (c->index || c->constant)
    return c->index ? SW_LX_INDEX_REASON : SW_LX_PARTIAL_REASON;
  if (!c->n)
    return size == 1 ? SW_LX_FITS : SW_LX_GAP_REASON;
  const struct sw_term *t = &c->term[0];
  if (c->n > 1 || t->num != 1 || t->mod || (t->den > 1 && t->den != eps))
    return SW_LX_PARTIAL_REASON;
  int64_t den = t->den > 1 ? t->den : 1;
  *loop = t->loop;
  return (op->range[t->loop] + den - 1) / den == size ? SW_LX_FITS : SW_LX_GAP_REASON;
}

enum sw_lx_reason sw_core_view(const struct sw_program *p, const struct sw_op *op, int operand,
                               struct sw_core_view *out)
{
  const struct sw_access *x = operand < 0 ? &op->out : &op->in[operand];
  const struct sw_layout *l = p->storages.v[x->storage].layout;
  struct sw_coord coord[SW_MAX_DEVICE_RANK];
  if (x->index_input >= 0)
    return SW_LX_INDEX_REASON;
  if (!sw_layout_coords(l, op, x, coord))
    return SW_LX_PARTIAL_REASON;
  memset(out, 0, sizeof *out);
  out->rank = l->rank;
  out->cores = op->plan->cores;
  int64_t eps = l->device_size[l->rank - 1];
  int loop[SW_MAX_DEVICE_RANK];
  const struct sw_coord *lane = &coord[l->rank - 1];
  if (lane->constant || lane->index || lane->n > 1 ||
      (lane->n && (lane->term[0].num != 1 || lane->term[0].den > 1 || (lane->term[0].mod && lane->term[0].mod != eps))))
    return SW_LX_PARTIAL_REASON;
  for (int d = 0; d + 1 < l->rank; d++) {
    enum sw_lx_reason why = loop_of(op, &coord[d], l->device_size[d], eps, &loop[d]);
    if (why != SW_LX_FITS)
      return why;
    out->factor[d] = loop[d] < 0 ? 1 : op->plan->split[loop[d]];
    for (int e = 0; e < d; e++) /* a diagonal */
      if (loop[d] >= 0 && loop[e] == loop[d])
        return SW_LX_PARTIAL_REASON;
    if (l->device_size[d] % out->factor[d])
      return SW_LX_GAP_REASON;
  }
  /* Lanes of a loop that has no tile dim: it is all in one stick, and then it is not cut. */
  out->factor[l->rank - 1] = 1;
  if (lane->n) {
    bool has_tiles = false;
    for (int d = 0; d + 1 < l->rank; d++)
      has_tiles |= loop[d] == lane->term[0].loop;
    if (!has_tiles && (op->range[lane->term[0].loop] > eps || op->plan->split[lane->term[0].loop] > 1))
      return SW_LX_PARTIAL_REASON;
  }
  for (int c = 0; c < out->cores; c++) {
    int64_t slice[SW_MAX_LOOPS];
    slices_of(op, c, slice);
    for (int d = 0; d + 1 < l->rank; d++)
      out->slice[d][c] = loop[d] < 0 ? 0 : (signed char)slice[loop[d]];
  }
  return SW_LX_FITS;
}

bool sw_core_view_equal(const struct sw_core_view *a, const struct sw_core_view *b)
{
  return a->rank == b->rank && a->cores == b->cores && !memcmp(a->factor, b->factor, sizeof a->factor) &&
         !memcmp(a->slice, b->slice, sizeof a->slice);
}
