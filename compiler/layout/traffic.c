/* What reading and writing a storage costs in each of its layouts (profile best, objective time).
 *
 * A conversion is not paid with its own time alone: it moves data between cores, so what it reads and what it makes are in
 * memory, where otherwise the buffer might have stayed in the scratchpads. And a lean layout is no gain where a vector
 * never leaves the scratchpads but has all its numbers in one stick, for one core. Four rules, before there is a plan:
 *
 *   resident   a temporary that one op writes whole and others read whole, within one kernel, and that has room: its
 *              traffic counts 1/16, so that of two layouts the leaner one is still better. Likewise an input that several
 *              ops read: it can be copied in once
 *   in step    it stays so only where every op gives the cores what they wrote. An op is cut along its largest loops,
 *              a matmul along the written ones; if those are not all loops of the operand, or fewer cores than its writer
 *              had find work along them, the operand goes through memory: once written and once read
 *   rate       ops have the rates of the time model (rate.h), in kernels with a matmul all the plain one; and memory is slower
 *              when few cores ask for it
 *
 * Example: m [64], the largest numbers of 64 rows, is subtracted from s [64,64] with the stick of s on its columns. All of m
 * in one stick is 128 bytes against 8192 with one number a stick. But one stick is written by one core, the difference runs
 * on 32: neither s nor m could stay where they are. With one number a stick all of it does, and nothing is paid.
 *
 * What counts is by how much a pair of layouts is worse than the best one for that reader, so that a program where nothing
 * can be gained costs 0. */
#include "compiler/layout/choose.h"
#include "compiler/layout/machine.h"
#include "compiler/layout/rate.h"

#include <math.h>

enum { RESIDENT_SHARE = 16 };

/* -- who may stay in the scratchpads -- */

static double walked(const struct sw_op *op, const struct sw_access *x)
{
  double n = 1;
  for (int l = 0; l < op->n_loops; l++)
    if (x->step[l])
      n *= (double)op->range[l];
  return n;
}

/* Whether an access covers its storage dim by dim, a loop each: what walks rows of [4,512] as [32,64] does not. */
static bool is_whole(const struct sw_choosing *c, const struct sw_op *op, const struct sw_access *x)
{
  const struct sw_storage *s = &c->p->storages.v[x->storage];
  int dims = 0, loops = 0;
  for (int l = 0; l < op->n_loops; l++)
    loops += x->step[l] != 0;
  for (int d = 0; d < s->rank; d++) {
    bool covered = s->size[d] == 1;
    dims += !covered;
    for (int l = 0; l < op->n_loops && !covered; l++)
      covered = x->step[l] == s->stride[d] && op->range[l] == s->size[d];
    if (!covered)
      return false;
  }
  return !x->offset && dims == loops;
}

static int64_t least_bytes(const struct sw_choosing *c, int storage)
{
  const sw_layout_list *all = &c->candidates[storage];
  int64_t least = sw_layout_bytes(&all->v[0]);
  for (int i = 1; i < all->n; i++)
    if (sw_layout_bytes(&all->v[i]) < least)
      least = sw_layout_bytes(&all->v[i]);
  return least;
}

static void bar_host_args(struct sw_choosing *c, const struct sw_host_arg *args, int n)
{
  for (int i = 0; i < n; i++) {
    if (args[i].kind == SW_HOST_VIEW)
      c->resident[args[i].view.storage] = false;
    bar_host_args(c, args[i].list, args[i].n_list);
  }
}

static void look_at_op(struct sw_choosing *c, int op_i, int kernel, int *kernel_of)
{
  const struct sw_op *op = &c->p->ops.v[op_i];
  int r = op->out.storage;
  c->writer[r] = op_i;
  kernel_of[r] = kernel;
  if (!sw_follows_slices(op) || op->op == SW_OP_EXX2 || op->op == SW_OP_LAYERNORMSCALE || op->role == SW_ROLE_WRITE ||
      op->role == SW_ROLE_PADDING || !is_whole(c, op, &op->out))
    c->resident[r] = false;
  for (int k = 0; k < op->n_in; k++) {
    int p = op->in[k].storage;
    if (kernel_of[p] < 0)
      kernel_of[p] = kernel;
    if (!sw_follows_slices(op) || kernel_of[p] != kernel || !is_whole(c, op, &op->in[k]))
      c->resident[p] = false;
  }
}

/* ns a byte at the plain rate, half of the turnaround included. */
static double plain_byte_ns(const struct sw_choosing *c)
{
  const struct sw_machine *m = sw_machine_or_spyre(c->p->machine);
  return 1 / m->hbm + m->turnaround / 2;
}

static double byte_ns(const struct sw_choosing *c, const struct sw_op *op)
{
  const struct sw_storage *s = &c->p->storages.v[op->out.storage];
  struct sw_rate r = {.rows = sw_host_dim(s, 2), .cols = sw_host_dim(s, 1), .outer = sw_host_dim(s, 3)};
  sw_rate_of(c->p, op, NULL, NULL, false, &r);
  double rate = sw_rate_gbps(&r);
  return rate > 0 ? 1 / rate : plain_byte_ns(c);
}

/* Rates of the ops of one kernel, steps [from, to). */
static void look_at_rates(struct sw_choosing *c, int from, int to)
{
  bool matmul = false;
  for (int i = from; i < to; i++)
    matmul |= c->p->ops.v[c->p->steps.v[i].index].op == SW_OP_MATMUL;
  for (int i = from; i < to; i++) {
    int op_i = c->p->steps.v[i].index;
    const struct sw_op *op = &c->p->ops.v[op_i];
    double ns = matmul ? plain_byte_ns(c) : byte_ns(c, op);
    c->byte_ns[op_i] = ns;
    c->touch_ns[op->out.storage] += ns;
    for (int k = 0; k < op->n_in; k++)
      c->touch_ns[op->in[k].storage] += ns;
  }
}

void sw_layout__survey(struct sw_choosing *c)
{
  int n = c->n_storages, kernel = 0, *kernel_of = SW_NEW_N(c->arena, int, n + 1);
  c->resident = SW_NEW_N(c->arena, bool, n + 1);
  c->writer = SW_NEW_N(c->arena, int, n + 1);
  c->touch_ns = SW_NEW_N(c->arena, double, n + 1);
  c->n_ops = c->p->ops.n;
  c->byte_ns = SW_NEW_N(c->arena, double, c->n_ops + 1);
  if (!c->weighs_traffic)
    return;
  for (int s = 0; s < n; s++) {
    kernel_of[s] = c->writer[s] = -1;
    const struct sw_storage *t = &c->p->storages.v[s];
    bool is_input = t->kind == SW_STORAGE_INPUT || t->kind == SW_STORAGE_PARAMETER || t->kind == SW_STORAGE_BUFFER;
    c->resident[s] = c->o->lx && c->written[s] == !is_input && c->accesses[s] > 1 && !t->host_only &&
                     t->kind != SW_STORAGE_CONSTANT && t->kind != SW_STORAGE_SCALAR && c->candidates[s].n &&
                     least_bytes(c, s) <= c->o->lx_bytes * c->o->cores;
  }
  for (int i = 0, from = 0; i <= c->p->steps.n; i++)
    if (i == c->p->steps.n || c->p->steps.v[i].is_host) {
      look_at_rates(c, from, i);
      from = i + 1;
    }
  for (int i = 0; i < c->p->steps.n; i++) {
    if (c->p->steps.v[i].is_host) {
      const struct sw_host_step *h = &c->p->host_steps.v[c->p->steps.v[i].index];
      bar_host_args(c, h->args.v, h->args.n);
      kernel++;
    } else {
      look_at_op(c, c->p->steps.v[i].index, kernel, kernel_of);
    }
  }
}

/* -- cores -- */

static int64_t largest_divisor(int64_t n, int64_t most)
{
  int64_t d = most < n ? most : n;
  while (d > 1 && n % d)
    d--;
  return d > 1 ? d : 1;
}

/* The largest loop of [from, to) that is not done; -1: none. */
static int largest_of(const int64_t *slices, const bool *done, int from, int to)
{
  int largest = -1;
  for (int l = from; l < to; l++)
    if (!done[l] && (largest < 0 || slices[l] > slices[largest]))
      largest = l;
  return largest;
}

int64_t sw_layout__divide(const struct sw_op *op, unsigned loops, unsigned on_stick, bool whole_sticks, int eps,
                          int64_t cores, int64_t *split)
{
  int64_t slices[SW_MAX_LOOPS], left = cores, used = 1;
  bool done[SW_MAX_LOOPS] = {false};
  for (int l = 0; l < op->n_loops; l++) {
    bool stick = on_stick >> l & 1;
    slices[l] = stick ? (op->range[l] + eps - 1) / eps : op->range[l];
    if (!(loops >> l & 1) || (stick && op->range[l] % eps && (whole_sticks || l >= op->n_written)))
      slices[l] = 1;
    split[l] = 1;
  }
  for (int n = 0; n <= op->n_written && left > 1; n++) {
    int l = n < op->n_written ? largest_of(slices, done, 0, op->n_written) : largest_of(slices, done, n, op->n_loops);
    if (l < 0)
      break;
    done[l] = true;
    split[l] = largest_divisor(slices[l], left);
    left /= split[l];
    used *= split[l];
  }
  return used;
}

static unsigned bit(int loop)
{
  return loop >= 0 ? 1u << loop : 0;
}

static unsigned loops_of(const struct sw_op *op, const struct sw_access *x)
{
  unsigned loops = 0;
  for (int l = 0; l < op->n_loops; l++)
    if (x->step[l])
      loops |= bit(l);
  return loops;
}

static int64_t divide(const struct sw_choosing *c, const struct sw_op *op, unsigned loops, unsigned on_stick, int eps,
                      int64_t *split)
{
  return sw_layout__divide(op, loops, on_stick, op->op == SW_OP_EXP, eps, c->o->cores, split);
}

static unsigned written_loops(const struct sw_op *op)
{
  return (1u << op->n_written) - 1;
}

/* Cores that can write a storage in this layout, each its own sticks. */
static int64_t divide_writer(const struct sw_choosing *c, const struct sw_op *op, const struct sw_layout *l, int64_t *split)
{
  struct sw_seen seen = sw_layout__see(l, op, &op->out, c->rule);
  return divide(c, op, written_loops(op), seen.formed ? bit(seen.stick.loop) : 0, sw_format_eps(l->format), split);
}

/* Whether cores are numbered differently along the dims that the reader cuts: the first loop varies fastest, and the
 * loops of a sum come last. */
static bool numbers_otherwise(const struct sw_op *writer, const struct sw_op *op, const struct sw_access *x,
                              const int64_t *split)
{
  int last = -1;
  for (int l = 0; l < op->n_loops; l++)
    for (int w = 0; split[l] > 1 && x->step[l] && w < writer->n_written; w++)
      if (writer->out.step[w] == x->step[l]) {
        if (w < last)
          return true;
        last = w;
      }
  return false;
}

/* -- prices -- */

/* ns of bytes that an op moves on so many cores; of what was inserted nobody asks but the check, and not for the price. */
static double price(const struct sw_choosing *c, const struct sw_op *op, double bytes, int64_t cores)
{
  ptrdiff_t at = op - c->p->ops.v;
  return at < c->n_ops ? bytes * c->byte_ns[at] / sw_cores_factor(sw_machine_or_spyre(c->p->machine), (int)cores) : 0;
}

static double part_walked(const struct sw_op *op, const struct sw_access *x, const struct sw_storage *s)
{
  return fmin(1, walked(op, x) / (double)sw_storage_elements(s));
}

double sw_layout__loss(const struct sw_choosing *c, int storage, const struct sw_layout *l)
{
  if (!c->weighs_traffic || !c->resident[storage])
    return 0;
  int n = c->accesses[storage];
  return (double)sw_layout_bytes(l) * c->touch_ns[storage] * (n - 1) / n / sw_cores_factor(sw_machine_or_spyre(c->p->machine), (int)c->o->cores);
}

double sw_layout__copy_read(const struct sw_choosing *c, const struct sw_op *op, const struct sw_access *x,
                            const struct sw_storage *s, const struct sw_layout *copy, const struct sw_seen *to_seen)
{
  if (!c->weighs_traffic)
    return 0;
  int64_t split[SW_MAX_LOOPS], cores = divide(c, op, ~0u, bit(to_seen->stick.loop), sw_format_eps(copy->format), split);
  return price(c, op, (double)sw_layout_bytes(copy) * part_walked(op, x, s), cores);
}

double sw_layout__read(const struct sw_choosing *c, const struct sw_op *op, int input, const struct sw_layout *from,
                       const struct sw_seen *seen, const struct sw_seen *to_seen)
{
  const struct sw_access *x = &op->in[input];
  int p = x->storage, eps = sw_format_eps(from->format);
  const struct sw_storage *s = &c->p->storages.v[p];
  if (!c->weighs_traffic)
    return 0;
  unsigned on_stick = bit(seen->stick.loop) | bit(to_seen->stick.loop);
  double bytes = (double)sw_layout_bytes(from) * part_walked(op, x, s);
  int64_t split[SW_MAX_LOOPS], own = 0;
  double in_memory = price(c, op, bytes, divide(c, op, ~0u, on_stick, eps, split));
  if (p >= c->n_storages || !c->resident[p])
    return in_memory;
  unsigned loops = op->op == SW_OP_MATMUL ? written_loops(op) : ~0u;
  const struct sw_op *writer = c->writer[p] >= 0 ? &c->p->ops.v[c->writer[p]] : NULL;
  if (writer)
    own = divide_writer(c, writer, from, split);
  int64_t all = divide(c, op, loops, on_stick, eps, split);
  int64_t common = divide(c, op, loops & loops_of(op, x), on_stick, eps, split);
  if (common >= all && common >= own && !(writer && numbers_otherwise(writer, op, x, split)))
    return price(c, op, bytes, c->o->cores) / RESIDENT_SHARE;
  return in_memory + (own ? price(c, writer, bytes, own) : 0);
}

double sw_layout__write(const struct sw_choosing *c, const struct sw_op *op, const struct sw_layout *to,
                        const struct sw_seen *seen)
{
  int r = op->out.storage;
  int64_t split[SW_MAX_LOOPS];
  if (!c->weighs_traffic || !seen->formed)
    return 0;
  double bytes = (double)sw_layout_bytes(to) * part_walked(op, &op->out, &c->p->storages.v[r]);
  if (c->resident[r] && !c->p->storages.v[r].is_output)
    return price(c, op, bytes, c->o->cores) / RESIDENT_SHARE;
  return price(c, op, bytes, divide(c, op, ~0u, bit(seen->stick.loop), sw_format_eps(to->format), split));
}
