/* The time of a kernel: max(compute, memory) + split. Reference: cost-model.md sections 4, 5, 7.
 *
 * neg [512,1024] in fp16 reads and writes 1 MiB: 2097152 / 150 + 0.00574 * 1048576 = 20000 ns.
 * matmul 1024^3 cut m 4, n 8: memory 53981 ns covers 29434 ns of computing. */
#include "compiler/plan/cost.h"

#include <math.h>
#include <stdlib.h>

static double positive(double x)
{
  return fmax(x, 0);
}

/* Both ways at the plain rate, and the turnaround for what overlaps. */
static double plain_ns(const struct sw_machine *m, double read, double written)
{
  return (read + written) / m->hbm + m->turnaround * fmin(read, written);
}

static double read_bytes(const struct sw_cost_op *op)
{
  double sum = 0;
  for (int i = 0; i < op->n_in; i++)
    sum += op->in[i].bytes;
  return sum;
}

/* -- matmul -- */

static double area(const struct sw_matmul_work *m)
{
  return m->rows * m->cols;
}

double sw_compute_ns(const struct sw_cost_op *op)
{
  const struct sw_matmul_work *m = &op->matmul;
  if (!op->is_matmul)
    return 0;
  const struct sw_machine *machine = sw_machine_or_spyre(op->machine);
  double e = m->rows > 0 && !op->tile.output ? fmin(1, pow(m->rows / machine->macs_full_rows, machine->macs_rows_exponent)) : 1;
  return m->macs / (op->cores * m->rate * e);
}

/* Operands that are fetched again because a core's part of the output is too large to be kept. */
static double spill_bytes(const struct sw_machine *machine, const struct sw_matmul_work *m)
{
  double part = machine->spill_slope * log2(fmax(1, area(m) / machine->spill_area));
  return m->operand_bytes * fmin(machine->spill_most, part);
}

/* Penalty for uneven splits of large parts: 4096^3 cut m 32 has parts of 128 x 4096 and pays 2060 us. */
static double split_ns(const struct sw_machine *machine, const struct sw_matmul_work *m)
{
  bool by_rows = m->m >= m->n;
  double longer = by_rows ? m->m_split : m->n_split, shorter = by_rows ? m->n_split : m->m_split;
  double doublings = machine->split_long * positive(log2(longer / 8)) + machine->split_short * positive(log2(shorter / 16));
  return fmax(1, m->turns) * positive(area(m) - machine->split_area) * doublings;
}

/* -- coarse tiling -- */

double sw_tile_efficiency(const struct sw_cost_op *op, bool beside_matmul)
{
  const struct sw_machine *m = sw_machine_or_spyre(op->machine);
  const struct sw_tile_fit *f = beside_matmul ? &m->matmul_tile : &m->tile;
  if (!op->tile.output || op->tile.rows <= 0)
    return 1;
  double x = pow(op->tile.rows / f->rows, f->by_rows) * pow(fmax(1, op->tile.cols) / f->cols, f->by_cols);
  return x >= f->low ? fmin(f->most, x) : f->low * pow(x / f->low, f->by_low);
}

/* Part of the rate that a kernel with tiles reaches: that of its worst op, the slow-down by its largest tile beside it.
 * It never is above 1, though the fit of plain tiles ends at 1.08. */
static double tiles_rate(const struct sw_machine *m, const struct sw_cost_op *ops, int n, bool any_matmul)
{
  const struct sw_tile_fit *f = any_matmul ? &m->matmul_tile : &m->tile;
  double least = 1, largest = 0;
  for (int i = 0; i < n; i++) {
    least = fmin(least, sw_tile_efficiency(&ops[i], any_matmul));
    if (ops[i].tile.output)
      largest = fmax(largest, 2 * ops[i].tile.rows * ops[i].tile.cols * ops[i].tile.element_bytes);
  }
  return least * (largest > f->bytes ? pow(f->bytes / largest, f->over) : 1);
}

/* -- kernels -- */

struct shared_read {
  int storage;
  double bytes;
};

static int by_storage(const void *a, const void *b)
{
  const struct shared_read *x = a, *y = b;
  if (x->storage != y->storage)
    return x->storage < y->storage ? -1 : 1;
  return (x->bytes < y->bytes) - (x->bytes > y->bytes); /* the largest first */
}

/* Bytes that a kernel reads: each graph input once, everything else as often as it is read. */
static double kernel_read_bytes(struct sw_arena *scratch, const struct sw_cost_op *ops, int n)
{
  SW_VEC(struct shared_read) inputs = {0};
  double sum = 0;
  for (int i = 0; i < n; i++)
    for (int k = 0; k < ops[i].n_in; k++) {
      const struct sw_cost_arg *a = &ops[i].in[k];
      if (a->is_graph_input)
        *SW_PUSH(scratch, &inputs) = (struct shared_read){a->storage, a->bytes};
      else
        sum += a->bytes;
    }
  if (inputs.n)
    qsort(inputs.v, (size_t)inputs.n, sizeof *inputs.v, by_storage);
  for (int i = 0; i < inputs.n; i++)
    if (!i || inputs.v[i].storage != inputs.v[i - 1].storage)
      sum += inputs.v[i].bytes;
  return sum;
}

/* A reduction alone: the only kind of op whose rate the model knows to depend on rows and cores. */
static double reduction_ns(const struct sw_machine *m, const struct sw_cost_op *op, double read, double written)
{
  const struct sw_cost_arg *largest = &op->in[0];
  for (int i = 1; i < op->n_in; i++)
    if (op->in[i].bytes > largest->bytes)
      largest = &op->in[i];
  double more = m->row_reduction_more * exp(-largest->rows / m->row_reduction_rows);
  double rate = fmin(m->hbm, m->row_reduction_least + more);
  return (read + written) / (rate * sw_cores_factor(m, op->cores));
}

struct sw_kernel_time sw_kernel_time(struct sw_arena *scratch, const struct sw_cost_op *ops, int n)
{
  const struct sw_machine *m = sw_machine_or_spyre(n ? ops[0].machine : NULL);
  struct sw_kernel_time t = {0};
  double written = 0, spilled = 0, one_by_one = 0, again = 0;
  bool any_matmul = false, any_rate = false;
  for (int i = 0; i < n; i++) {
    const struct sw_cost_op *op = &ops[i];
    double rate = sw_traffic_rate(op), read = read_bytes(op);
    written += op->out.bytes;
    one_by_one += rate > 0 ? (read + op->out.bytes) / rate : plain_ns(m, read, op->out.bytes);
    any_rate |= rate > 0;
    any_matmul |= op->is_matmul;
    if (op->is_matmul) {
      t.compute += sw_compute_ns(op);
      t.split += split_ns(m, &op->matmul);
      spilled += spill_bytes(m, &op->matmul);
      again += op->tile.output ? op->tile.again : 0;
    }
  }
  double read = kernel_read_bytes(scratch, ops, n);
  if (any_matmul)
    t.memory = plain_ns(m, read - again, written) + spilled / m->hbm;
  else if (any_rate)
    t.memory = one_by_one;
  else if (n == 1 && ops[0].is_reduction)
    t.memory = reduction_ns(m, &ops[0], read, written);
  else
    t.memory = plain_ns(m, read, written);
  t.memory = t.memory / tiles_rate(m, ops, n, any_matmul) + m->again * again / m->hbm;
  t.total = fmax(t.compute, t.memory) + t.split;
  return t;
}
