/* Searches and counts: places in sorted rows, elements by flat number, reductions that leave some elements out, bags of rows. */
#include "compiler/eval/rows.h"

#include <math.h>
#include <string.h>

/* How many of a rising row are below x, or (right) not above it. */
static int64_t place_in(const double *row, int64_t n, double x, bool right)
{
  int64_t low = 0, high = n;
  while (low < high) {
    int64_t middle = low + (high - low) / 2;
    bool before = right ? !(row[middle] > x) : row[middle] < x || (isnan(x) && !isnan(row[middle]));
    low = before ? middle + 1 : low;
    high = before ? high : middle;
  }
  return low;
}

/* searchsorted and bucketize (`args` names the sorted tensor). Rows of the last dim, or one row for all. */
void sw_op_search_sorted(struct sw_call *c)
{
  struct sw_tensor row = sw_call_tensor(c, c->op->args), x = sw_call_tensor(c, "self");
  bool right = sw_call_bool(c, "right") || !strcmp(sw_call_text(c, "side", "left"), "right");
  if (sw_call_has(c, "sorter"))
    sw_call_stop(c, SW_UNSUPPORTED, "a sorter");
  int64_t n = row.rank ? row.size[row.rank - 1] : 1, m = x.rank ? x.size[x.rank - 1] : 1;
  bool same = row.rank == x.rank;
  for (int d = 0; same && d < x.rank - 1; d++)
    same = row.size[d] == x.size[d];
  if (row.rank != 1 && !same)
    sw_call_stop(c, SW_INVALID, "rows of a tensor of rank %d for one of rank %d", row.rank, x.rank);
  double *v = sw_call_get(c, &row), *w = sw_call_get(c, &x);
  int64_t all = sw_tensor_elements(&x), *to = sw_call_wholes(c, all);
  for (int64_t i = 0; i < all; i++)
    to[i] = place_in(v + (row.rank > 1 ? i / m * n : 0), n, w[i], right);
  struct sw_tensor out = sw_call_out(c, 0, x.rank, x.size);
  sw_put_wholes(&out, to, c->rounding);
}

/* Elements by their number in the flat tensor. */
void sw_op_take(struct sw_call *c)
{
  struct sw_tensor x = sw_call_tensor(c, "self"), index = sw_call_tensor(c, "index");
  int64_t all = sw_tensor_elements(&x), n = sw_tensor_elements(&index), *at = sw_call_get_wholes(c, &index), open = -1;
  struct sw_tensor row = sw_call_reshape(c, &x, 1, &open), made = sw_call_new(c, x.dtype, 1, &n);
  for (int64_t i = 0; i < n; i++) {
    if (at[i] < -all || at[i] >= all)
      sw_call_stop(c, SW_INVALID, "index %lld of %lld elements", (long long)at[i], (long long)all);
    struct sw_tensor to = sw_tensor_at(&made, 0, i), from = sw_tensor_at(&row, 0, at[i] < 0 ? at[i] + all : at[i]);
    sw_call_copy(c, &to, &from);
  }
  made = sw_call_reshape(c, &made, index.rank, index.size);
  struct sw_tensor out = sw_call_out(c, 0, index.rank, index.size);
  sw_call_copy(c, &out, &made);
}

/* By `what`: nansum, nanmean, count_nonzero. */
static double partial_of_row(const struct sw_call *c, const double *row, int64_t n, double unused)
{
  (void)unused;
  double sum = 0, count = 0, nonzero = 0;
  for (int64_t k = 0; k < n; k++) {
    sum += isnan(row[k]) ? 0 : row[k];
    count += !isnan(row[k]);
    nonzero += row[k] != 0;
  }
  return c->op->what == 0 ? sum : c->op->what == 1 ? sum / count : nonzero;
}

void sw_op_partial(struct sw_call *c)
{
  sw_reduce_rows(c, sw_call_tensor(c, "self"), partial_of_row, 0);
}

/* Sums (mode 0), means (1) or maxima (2) of rows of a table: bag i is indices offsets[i] .. offsets[i + 1]. Only the first
 * of the results has a meaning here. */
void sw_op_embedding_bag(struct sw_call *c)
{
  struct sw_tensor table = sw_call_tensor(c, "weight"), index = sw_call_tensor(c, "indices"), offsets = sw_call_tensor(c, "offsets");
  int64_t mode = sw_call_int(c, "mode"), n = sw_tensor_elements(&index), bags = sw_tensor_elements(&offsets);
  int64_t *at = sw_call_get_wholes(c, &index), *start = sw_call_get_wholes(c, &offsets), padding = sw_call_int_or(c, "padding_idx", -1);
  if (sw_call_bool(c, "include_last_offset"))
    bags--;
  if (table.rank != 2 || bags < 0 || mode < 0 || mode > 2)
    sw_call_stop(c, SW_INVALID, "a table of rank %d, mode %lld", table.rank, (long long)mode);
  int64_t rows = table.size[0], width = table.size[1];
  double *v = sw_call_get(c, &table), *weight = NULL, *to = sw_call_reals(c, sw_call_product(c, 2, (int64_t[]){bags, width}));
  if (sw_call_has(c, "per_sample_weights")) {
    struct sw_tensor w = sw_call_tensor(c, "per_sample_weights");
    if (sw_tensor_elements(&w) != n)
      sw_call_stop(c, SW_INVALID, "%lld weights for %lld indices", (long long)sw_tensor_elements(&w), (long long)n);
    weight = sw_call_get(c, &w);
  }
  for (int64_t b = 0; b < bags; b++) {
    int64_t end = b + 1 < sw_tensor_elements(&offsets) ? start[b + 1] : n, count = 0;
    if (start[b] < 0 || end > n)
      sw_call_stop(c, SW_INVALID, "a bag from %lld to %lld", (long long)start[b], (long long)end);
    for (int64_t i = start[b]; i < end; i++) {
      if (at[i] < 0 || at[i] >= rows)
        sw_call_stop(c, SW_INVALID, "row %lld of %lld", (long long)at[i], (long long)rows);
      if (padding >= 0 && at[i] == padding)
        continue;
      for (int64_t k = 0; k < width; k++) {
        double x = v[at[i] * width + k] * (weight ? weight[i] : 1), *sum = &to[b * width + k];
        *sum = mode == 2 ? (count == 0 || x > *sum ? x : *sum) : *sum + x;
      }
      count++;
    }
    for (int64_t k = 0; k < width && mode == 1 && count; k++)
      to[b * width + k] /= (double)count;
  }
  struct sw_tensor out = sw_call_out(c, 0, 2, (int64_t[]){bags, width});
  sw_put_reals(&out, to, c->rounding);
}
