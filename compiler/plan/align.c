/* Order of loops in op specs, profile torch-spyre: an op that leaves its result in the scratchpads goes over it in the order
 * in which its first reader does. Reference: scratchpad.md section 7 (align_lx_producer_loop_order).
 *
 *   add   [256,128], votes for loops (d0, d1)   writes %a, row major, in LX
 *   add   [128,256] reads %a.t()                goes d0 (128), d1 (256): %a's columns first, so the first add does too
 *
 * Core numbers count the split loops in their order; where another order would renumber them the op keeps its own. */
#include "compiler/layout/normal.h"
#include "compiler/plan/liveness.h"
#include "compiler/plan/scratchpad.h"

#include <string.h>

static bool is_in_lx(const struct sw_program *p, int storage)
{
  const struct sw_place *place = p->storages.v[storage].place;
  return place && place->kind == SW_PLACE_LX;
}

static bool touches_lx(const struct sw_program *p, const struct sw_op *op)
{
  bool lx = is_in_lx(p, op->out.storage);
  for (int i = 0; i < op->n_in; i++)
    lx = lx || is_in_lx(p, op->in[i].storage);
  return lx;
}

/* The reader's order in terms of the writer's loops: loops with equal steps through the storage are one. False when the two
 * do not have the same loops; a reduction or a product keeps to itself. */
static bool order_of_reader(const struct sw_op *writer, const struct sw_op *reader, int operand, const int *of_reader, int *order)
{
  int n = 0;
  if (sw_device_op_is_reduction(writer->op) || sw_device_op_is_reduction(reader->op) || reader->n_loops != writer->n_loops)
    return false;
  for (int k = 0; k < reader->n_loops; k++) {
    int64_t step = reader->in[operand].step[of_reader[k]];
    for (int l = 0; step && l < writer->n_loops && n < writer->n_loops; l++)
      if (writer->out.step[l] == step && writer->range[l] == reader->range[of_reader[k]])
        order[n++] = l;
  }
  return n == writer->n_loops;
}

void sw_align_loops(struct sw_arena *arena, const struct sw_program *p, const struct sw_life *lives)
{
  for (int i = p->steps.n - 1; i >= 0; i--) {
    if (p->steps.v[i].is_host)
      continue;
    const struct sw_op *op = &p->ops.v[p->steps.v[i].index];
    int own[SW_MAX_LOOPS], aligned[SW_MAX_LOOPS];
    sw_loop_order(op, op->plan->split, touches_lx(p, op), own);
    const struct sw_life *l = &lives[op->out.storage];
    const struct sw_touch *t = l->n > 1 ? &l->touch[1] : NULL;
    if (is_in_lx(p, op->out.storage) && t && t->operand >= 0 && p->ops.v[t->op].plan->order &&
        order_of_reader(op, &p->ops.v[t->op], t->operand, p->ops.v[t->op].plan->order, aligned) &&
        !sw_renumbers_cores(op, op->plan->split, aligned))
      memcpy(own, aligned, sizeof own);
    int *order = SW_NEW_N(arena, int, SW_MAX_LOOPS);
    memcpy(order, own, sizeof own);
    ((struct sw_op_plan *)op->plan)->order = order;
  }
}
