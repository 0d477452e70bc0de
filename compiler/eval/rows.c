#include "compiler/eval/rows.h"

#include <math.h>
#include <string.h>

int sw_row_compare(const struct sw_row *r, int64_t i, int64_t j)
{
  if (r->whole)
    return (r->whole[i] > r->whole[j]) - (r->whole[i] < r->whole[j]);
  double a = r->real[i], b = r->real[j];
  if (isnan(a) || isnan(b))
    return isnan(a) - isnan(b);
  return (a > b) - (a < b);
}

/* Merge sort from runs of one upwards: stable, n log n whatever the values. */
void sw_row_sort(const struct sw_row *r, bool falling, int64_t *order, int64_t *room)
{
  int sign = falling ? -1 : 1;
  for (int64_t i = 0; i < r->n; i++)
    order[i] = i;
  for (int64_t run = 1; run < r->n; run *= 2) {
    for (int64_t low = 0; low < r->n; low += 2 * run) {
      int64_t middle = low + run < r->n ? low + run : r->n, high = middle + run < r->n ? middle + run : r->n;
      for (int64_t a = low, b = middle, k = low; k < high; k++) {
        bool first = b == high || (a < middle && sign * sw_row_compare(r, order[a], order[b]) <= 0);
        room[k] = order[first ? a++ : b++];
      }
    }
    memcpy(order, room, (size_t)r->n * sizeof *order);
  }
}

int64_t sw_row_best(const struct sw_row *r, bool smallest)
{
  int64_t best = 0;
  for (int64_t i = 1; i < r->n; i++) {
    bool is_nan = !r->whole && isnan(r->real[i]), had_nan = !r->whole && isnan(r->real[best]);
    int order = sw_row_compare(r, i, best);
    if (!had_nan && (is_nan || (smallest ? order < 0 : order > 0)))
      best = i;
  }
  return best;
}

struct sw_split sw_split_dims(const struct sw_tensor *t, const bool *in_row)
{
  struct sw_split s = {.kept = *t, .row = *t};
  s.kept.rank = s.row.rank = 0;
  for (int d = 0; d < t->rank; d++) {
    struct sw_tensor *to = in_row[d] ? &s.row : &s.kept;
    to->size[to->rank] = t->size[d];
    to->stride[to->rank++] = t->stride[d];
  }
  return s;
}

void sw_call_dims(struct sw_call *c, const char *name, int rank, bool *in_row)
{
  struct sw_ints dims = name ? sw_call_ints(c, name) : (struct sw_ints){0};
  for (int d = 0; d < rank; d++)
    in_row[d] = dims.n == 0;
  for (int i = 0; i < dims.n; i++) {
    int d = sw_dim_of(c, dims.v[i], rank);
    if (rank > 0)
      in_row[d] = true;
  }
}

void sw_reduce_rows(struct sw_call *c, struct sw_tensor x, sw_row_fn *of, double parameter)
{
  bool in_row[SW_MAX_RANK] = {0}, keepdim = sw_call_bool(c, "keepdim");
  sw_call_dims(c, "dim", x.rank, in_row);
  struct sw_split s = sw_split_dims(&x, in_row);
  int64_t size[SW_MAX_RANK], n = sw_tensor_elements(&s.row);
  int rank = 0;
  for (int d = 0; d < x.rank; d++)
    if (keepdim || !in_row[d])
      size[rank++] = in_row[d] ? 1 : x.size[d];
  struct sw_tensor out = sw_call_out(c, 0, rank, size);
  if (keepdim)
    out = sw_split_dims(&out, in_row).kept;
  double *row = sw_call_reals(c, n);
  struct sw_walk w;
  for (sw_walk(&w, 2, (const struct sw_tensor *const[]){&out, &s.kept}); w.more; sw_walk_on(&w))
    for (int64_t i = 0; i < w.n; i++) {
      s.row.offset = w.at[1] + i * w.step[1];
      sw_get_reals(&s.row, row);
      double v = of(c, row, n, parameter);
      sw_row_put_reals(&out, w.at[0] + i * w.step[0], 1, 1, &v, c->rounding);
    }
}
