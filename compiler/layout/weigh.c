/* What copies cost, in the unit of the objective. Reference: cost-model.md 10.3.
 *
 * In elements a conversion is as large as what it reads, or of a slice what it makes. In ns it is weighed as the plan will
 * weigh it: the plan is not there yet, but how a copy will be cut over the cores follows from its loops. Both loops that
 * change places count whole sticks, so that few cores may have work: [64,384] is 1 x 6 sticks and runs on 6 cores, and a
 * loop that ends inside a stick is not cut at all. */
#include "compiler/layout/burst.h"
#include "compiler/layout/choose.h"
#include "compiler/layout/machine.h"

#include <math.h>

/* What one core reads in one piece: the stick, then neighbouring dims outward until one is cut. */
static double run_of(const struct sw_layout *from, const struct sw_seen *seen, const int64_t *split)
{
  double run = 128;
  for (int j = from->rank - 2; j >= 0 && run < 4096; j--) {
    int64_t cut = 1;
    for (int t = 0; t < seen->coord[j].n; t++)
      cut *= split[seen->coord[j].term[t].loop];
    run *= ceil((double)from->device_size[j] / (double)cut);
    if (cut > 1)
      break;
  }
  return run;
}

static int64_t copy_ns(const struct sw_choosing *c, const struct sw_op *op, const struct sw_layout *from,
                       const struct sw_layout *to, double read, double written)
{
  struct sw_seen in = sw_layout__see(from, op, &op->in[0], SW_OFFSET_EXACT);
  struct sw_seen out = sw_layout__see(to, op, &op->out, SW_OFFSET_EXACT);
  bool formed = in.formed && out.formed;
  unsigned on_stick = 0;
  int64_t split[SW_MAX_LOOPS];
  if (formed && in.stick.loop >= 0)
    on_stick |= 1u << in.stick.loop;
  if (formed && out.stick.loop >= 0)
    on_stick |= 1u << out.stick.loop;
  bool turns = !formed || in.stick.loop != out.stick.loop;
  struct sw_burst b = {.bytes = fmin(read, written)};
  b.cores = (int)sw_layout__divide(op, ~0u, on_stick, turns, sw_format_eps(from->format), c->o->cores, split);
  b.run = formed ? run_of(from, &in, split) : 128;
  b.machine = c->p->machine;
  double ns = (read + written) / sw_machine_or_spyre(c->p->machine)->restickify + sw_burst_extra_ns(&b, true, false);
  return ns < 1 ? 1 : ns > 9e15 ? (int64_t)9e15 : (int64_t)(ns + 0.5);
}

int64_t sw_layout__copy_cost(const struct sw_choosing *c, const struct sw_storage *s, const struct sw_op *op,
                             const struct sw_layout *from, const struct sw_layout *to)
{
  bool conversion = op->role == SW_ROLE_CONVERSION;
  bool whole = conversion && !sw_layout__is_slice(s, op);
  if (c->o->objective == SW_OBJECTIVE_TIME) {
    double read = (double)sw_layout_bytes(from), written = (double)sw_layout_bytes(to);
    return copy_ns(c, op, from, to, whole ? read : fmin(read, written), written);
  }
  int64_t read = sw_layout_elements(from), written = sw_layout_elements(to);
  return whole ? read : conversion || written < read ? written : read;
}

int64_t sw_layout__in_op_cost(const struct sw_choosing *c, const struct sw_op *op, const struct sw_layout *from,
                              const struct sw_layout *to)
{
  const struct sw_storage *s = &c->p->storages.v[op->in[0].storage];
  return c->best ? sw_layout__copy_cost(c, s, op, from, to) : 0; /* the reference does not count these */
}

/* An op of a selection: what it moves at the rate of copies, and 100 ns until its first result. As work it is small
 * beside them: [32,128] by [128,128] is half a million multiplications, of which the card does 32768 a ns. */
int64_t sw_layout__work_cost(const struct sw_choosing *c, const struct sw_op *op, const struct sw_layout *const *l, int n)
{
  double bytes = 0, loops = 1;
  int64_t elements = 0;
  for (int i = 0; i < n; i++) {
    bytes += (double)sw_layout_bytes(l[i]);
    elements += i < n - 1 ? sw_layout_elements(l[i]) : 0; /* what is read */
  }
  if (c->o->objective != SW_OBJECTIVE_TIME)
    return elements;
  for (int d = 0; d < op->n_loops; d++)
    loops *= (double)op->range[d];
  double ns = 100 + bytes / sw_machine_or_spyre(c->p->machine)->restickify + loops / 32768;
  return ns > 9e15 ? (int64_t)9e15 : (int64_t)(ns + 0.5);
}

/* 1 for a parameter, so that fewer are better. An input goes over the host link on every run, and a transfer has its own
 * cost. Reference: cost-model.md 1, 10.6. */
int64_t sw_layout__reload_cost(const struct sw_choosing *c, int storage, const struct sw_layout *l)
{
  if (c->load_twice[storage])
    return 1;
  if (c->o->objective != SW_OBJECTIVE_TIME)
    return sw_layout_elements(l);
  const struct sw_machine *m = sw_machine_or_spyre(c->p->machine);
  double ns = m->launch + (double)sw_layout_bytes(l) / m->link;
  return ns > 9e15 ? (int64_t)9e15 : (int64_t)(ns + 0.5);
}
