#include "compiler/plan/part.h"

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

/* Whether a device dim is walked from end to end by one variable, in steps of one (or of a stick), so that equal slices
 * of the variable are equal slices of the dim. Gives the variable, -1 for a dim of one position. */
static bool is_whole_walk(const struct sw_work *w, const struct sw_work_tensor *t, int dim, int *var)
{
  const struct sw_coord *c = &t->coord[dim];
  const struct sw_term *term = &c->term[0];
  *var = c->n ? term->loop : -1;
  if (c->constant || c->index)
    return false;
  if (!c->n)
    return t->device_size[dim] == 1;
  int64_t den = w->var[term->loop].eps && term->den > 1 ? t->device_size[t->rank - 1] : 1;
  return c->n == 1 && !term->mod && term->num == 1 && term->den == den &&
         t->device_size[dim] == (w->var[term->loop].size + den - 1) / den;
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
    int v;
    if (!is_whole_walk(w, t, d, &v) || (v >= 0 && (seen[v] || t->device_size[d] % split[v]))) {
      out->broken = "a dim is walked in part or in steps";
    } else if (v >= 0) {
      seen[v] = true;
      if (split[v] > 1)
        out->cut[out->n++] = (struct sw_cut){d, split[v], stride[v]};
    }
  }
  for (int v = 0; v < w->n_vars && !out->broken; v++)
    if (split[v] > 1 && !seen[v])
      out->broken = w->var[v].is_output ? "cores share a broadcast operand" : "cores add up one result";
}
