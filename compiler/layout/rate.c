#include "compiler/layout/rate.h"

#include "compiler/layout/machine.h"

#include <math.h>

static double clamp(double x, double least, double most)
{
  return fmin(fmax(x, least), most);
}

static double positive(double x)
{
  return fmax(x, 0);
}

static double rate_of_transport(const struct sw_machine *m, const struct sw_transport_fit *t, const struct sw_rate *op)
{
  if (op->rows <= 0 || op->cols <= 0)
    return t->least;
  double planes = fmax(1, op->cols / 64);
  return clamp(t->a - t->b * log2(planes) - t->d * log2(fmax(2, op->rows)), t->least, m->hbm);
}

static double rate_of_transpose(const struct sw_machine *m, const struct sw_rate *op)
{
  double rate = rate_of_transport(m, &m->transpose, op);
  if (op->outer >= 8)
    return rate;
  return fmax(rate - m->transpose_narrow * log2(8 / fmax(1, op->outer)), m->transpose_narrow_least);
}

static double rate_of_broadcast(const struct sw_machine *m, const struct sw_rate *op)
{
  if (op->rows <= 0 || op->cols <= 0)
    return m->broadcast_unknown;
  int regime = op->rows >= 1024 ? 0 : op->cols <= 4096 ? 1 : 2;
  const struct sw_broadcast_fit *f = &m->broadcast[regime][op->row_operand ? 0 : 1];
  double lr = log2(op->rows), lc = log2(op->cols), d = lc - 6;
  double rate = f->base + f->rows * lr + f->rows2 * lr * lr + f->cols * lc + f->flat * positive(d - lr) +
                f->tall * positive(lr - d);
  return clamp(rate, f->least, f->most);
}

double sw_rate_gbps(const struct sw_rate *op)
{
  const struct sw_machine *m = sw_machine_or_spyre(op->machine);
  switch (op->traffic) {
  case SW_TRAFFIC_SCATTER: return rate_of_transport(m, &m->scatter, op);
  case SW_TRAFFIC_RESTICKIFY: return m->restickify;
  case SW_TRAFFIC_REDUCE_OUTER: return m->reduce_outer;
  case SW_TRAFFIC_BROADCAST: return rate_of_broadcast(m, op);
  case SW_TRAFFIC_TRANSPOSE: return rate_of_transpose(m, op);
  case SW_TRAFFIC_CONCAT: return rate_of_transport(m, &m->concat, op);
  case SW_TRAFFIC_PLAIN: break;
  }
  return 0;
}

/* Variables of an access; a row number is one. */
static int vars_used(const struct sw_op *op, const struct sw_access *x)
{
  int n = x->index_input >= 0;
  for (int l = 0; l < op->n_loops; l++)
    n += x->step[l] != 0;
  return n;
}

/* The written loop that steps through the output's elements one by one: the columns. -1 when there is none. */
static int column_loop(const struct sw_op *op)
{
  for (int l = 0; l < op->n_written; l++)
    if (op->out.step[l] == 1)
      return l;
  return -1;
}

/* [R,M,C] to [M,R,C]: both sides walk the columns one by one and the other two dims in opposite order. */
static bool is_transpose(const struct sw_op *op)
{
  const int64_t *in = op->in[0].step, *out = op->out.step;
  return op->op == SW_OP_IDENTITY && op->n_in == 1 && op->n_loops == 3 && in[2] == 1 && out[2] == 1 &&
         out[0] > out[1] && in[0] && in[0] < in[1];
}

static bool is_concat(const struct sw_program *p, const struct sw_op *op)
{
  const struct sw_storage *in = &p->storages.v[op->in[0].storage], *out = &p->storages.v[op->out.storage];
  return op->op == SW_OP_IDENTITY && op->n_in == 1 && in->rank == 2 && out->rank == 3 && out->size[1] >= 2 &&
         in->size[0] == out->size[0] && in->size[1] == out->size[2];
}

static bool reads_loop(const struct sw_op *op, int loop)
{
  for (int i = 0; i < op->n_in; i++)
    if (op->in[i].step[loop])
      return true;
  return false;
}

/* Whether the columns of the output are walked across an input, by steps in host memory. */
static bool reads_across(const struct sw_op *op, int column)
{
  for (int i = 0; column >= 0 && i < op->n_in; i++)
    if (op->in[i].step[column] != 0 && op->in[i].step[column] != 1)
      return true;
  return false;
}

/* An operand of one row: [1,C]. */
static bool is_row(const struct sw_program *p, const struct sw_op *op, int input, int column, bool as_recorded)
{
  const struct sw_storage *s = &p->storages.v[op->in[input].storage];
  if (column < 0 || !op->in[input].step[column])
    return false;
  return !as_recorded || (s->rank >= 2 && s->size[s->rank - 2] == 1);
}

static enum sw_traffic traffic_of(const struct sw_program *p, const struct sw_op *op, const struct sw_layout *l,
                                  const bool *in_memory, bool as_recorded, bool *row_operand)
{
  int column = column_loop(op);
  for (int v = 0; v < op->n_written; v++)
    if (l && !reads_loop(op, v) && l->rank > 3 && l->device_size[l->rank - 2] > 0 && l->device_size[l->rank - 2] < 64)
      return SW_TRAFFIC_SCATTER;
  bool reduces = sw_device_op_is_reduction(op->op);
  if (as_recorded ? !reduces && reads_across(op, column) : op->op == SW_OP_RESTICKIFY)
    return SW_TRAFFIC_RESTICKIFY;
  if (reduces) {
    for (int i = 0; column >= 0 && i < op->n_in; i++)
      for (int v = op->n_written; v < op->n_loops; v++)
        if (op->in[i].step[v] > 1)
          return SW_TRAFFIC_REDUCE_OUTER;
    return SW_TRAFFIC_PLAIN;
  }
  bool broadcast = false, full = false;
  for (int i = 0; i < op->n_in; i++) {
    bool small = vars_used(op, &op->in[i]) < p->storages.v[op->out.storage].rank;
    if (in_memory && !in_memory[i])
      continue;
    broadcast |= small;
    full |= !small;
    *row_operand |= small && is_row(p, op, i, column, as_recorded);
  }
  if (broadcast && full)
    return SW_TRAFFIC_BROADCAST;
  if (is_transpose(op))
    return SW_TRAFFIC_TRANSPOSE;
  return is_concat(p, op) ? SW_TRAFFIC_CONCAT : SW_TRAFFIC_PLAIN;
}

void sw_rate_of(const struct sw_program *p, const struct sw_op *op, const struct sw_layout *to, const bool *in_memory,
                bool as_recorded, struct sw_rate *r)
{
  r->machine = p->machine;
  r->traffic = traffic_of(p, op, to, in_memory, as_recorded, &r->row_operand);
}
