#include "compiler/plan/part.h"

#include "compiler/layout/machine.h"

#include <math.h>

/* Cores per step of each variable's slice number: mixed radix in order of the variables, the first fastest; the K of a
 * matmul before all others. */
static void strides_of(const struct sw_work *w, const int64_t *split, int64_t *stride)
{
  bool matmul = w->kind == SW_WORK_MATMUL || w->kind == SW_WORK_MATMUL_FP8;
  int first = matmul ? w->n_vars - 1 : -1;
  int64_t next = 1;
  if (first >= 0) {
    stride[first] = 1;
    next = split[first];
  }
  for (int v = 0; v < w->n_vars; v++) {
    if (v == first)
      continue;
    stride[v] = next;
    next *= split[v];
  }
}

/* The variable that alone walks a device dim from end to end, in steps of one (or of a stick), so that equal slices of
 * the variable are equal slices of the dim; -1: none does. */
static int whole_walk(const struct sw_work *w, const struct sw_work_tensor *t, int dim)
{
  const struct sw_coord *c = &t->coord[dim];
  const struct sw_term *term = &c->term[0];
  if (c->n != 1 || c->constant || c->index || term->mod || term->num != 1)
    return -1;
  int64_t den = w->var[term->loop].eps && term->den > 1 ? t->device_size[t->rank - 1] : 1;
  bool whole = term->den == den && t->device_size[dim] == (w->var[term->loop].size + den - 1) / den;
  return whole ? term->loop : -1;
}

static bool is_cut(const struct sw_coord *c, const int64_t *split)
{
  bool cut = c->index;
  for (int i = 0; i < c->n; i++)
    cut |= split[c->term[i].loop] > 1;
  return cut;
}

void sw_part_of(const struct sw_work *w, const struct sw_work_tensor *t, const int64_t *split, struct sw_part *out)
{
  int64_t stride[SW_MAX_LOOPS];
  bool seen[SW_MAX_LOOPS] = {0};
  *out = (struct sw_part){.cores = (int)sw_split_product(split, w->n_vars)};
  strides_of(w, split, stride);
  if (t->coord[t->rank - 1].constant)
    out->broken = "a stick is read in part";
  for (int d = 0; d < t->rank - 1 && !out->broken; d++) {
    if (!is_cut(&t->coord[d], split))
      continue; /* every core has all of it */
    int v = whole_walk(w, t, d);
    if (v < 0 || seen[v] || t->device_size[d] % split[v]) {
      out->broken = "a dim is walked in part or in steps";
    } else {
      seen[v] = true;
      out->cut[out->n++] = (struct sw_cut){d, split[v], stride[v]};
    }
  }
  for (int v = 0; v < w->n_vars && !out->broken; v++)
    if (split[v] > 1 && !seen[v])
      out->broken = w->var[v].is_output ? "cores share a broadcast operand" : "cores add up one result";
}

/* -- moves -- */

static const struct sw_cut uncut = {.factor = 1, .stride = 1};

static const struct sw_cut *cut_of(const struct sw_part *p, int dim)
{
  for (int k = 0; k < p->n; k++)
    if (p->cut[k].dim == dim)
      return &p->cut[k];
  return &uncut;
}

/* Whether two cores have something of a dim in common: slices x of n and y of m of the same length. */
static bool meet(const struct sw_cut *a, int core_a, const struct sw_cut *b, int core_b)
{
  int64_t x = core_a / a->stride % a->factor, y = core_b / b->stride % b->factor;
  return x * b->factor < (y + 1) * a->factor && y * a->factor < (x + 1) * b->factor;
}

bool sw_part_moves_evenly(const struct sw_part *from, const struct sw_part *to)
{
  int out[SW_MAX_CORES] = {0}, in[SW_MAX_CORES] = {0};
  if (from->broken || to->broken || from->cores != to->cores)
    return false;
  for (int a = 0; a < from->cores; a++)
    for (int b = 0; b < to->cores; b++) {
      bool together = true;
      for (int k = 0; k < from->n && together; k++)
        together = meet(&from->cut[k], a, cut_of(to, from->cut[k].dim), b);
      for (int k = 0; k < to->n && together; k++)
        together = meet(cut_of(from, to->cut[k].dim), a, &to->cut[k], b);
      out[a] += together;
      in[b] += together;
    }
  for (int c = 1; c < from->cores; c++)
    if (out[c] != out[0] || in[c] != in[0])
      return false;
  return true;
}

/* The innermost dim that either side cuts tells the contiguous runs and how they interleave (cost-model.md 10.4). */
double sw_part_move_ns(const struct sw_machine *m, const struct sw_layout *l, const struct sw_part *from, const struct sw_part *to)
{
  double run = 128, slices = 1;
  for (int d = l->rank - 2; d >= 0 && slices <= 1; d--) {
    slices = (double)(cut_of(from, d)->factor > cut_of(to, d)->factor ? cut_of(from, d)->factor : cut_of(to, d)->factor);
    run *= (double)l->device_size[d] / slices;
  }
  double bytes = (double)sw_layout_bytes(l) / from->cores, s = fmin(fmax(slices, 2), 8);
  return bytes / run * (m->relayout_doubling * log2(s) - m->relayout_base) +
         bytes * s / m->relayout_bytes;
}
