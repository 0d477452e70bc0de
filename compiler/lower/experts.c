/* A mixture of experts as batches of gathered weights: bmm(W[rows], x), a matrix of the table [E,N,K] for each of B rows.
 * With 1024 rows and 8 experts of 28672 x 4096 the gathered weights would be 240 GB. Once there are as many rows as experts,
 * profile best multiplies all rows by every expert and keeps what each row asked for:
 *
 *   y = nan
 *   y = where(rows == e, x W[e]^T, y)       e = 0 .. E-1
 *
 * so that a number that names no expert shows. Each weight is read once; the products are E times those of the graph. */
#include "compiler/lower/families.h"

#include <math.h>

enum { MOST_EXPERTS = 64 };

/* bool [B,E], on the host, where the row numbers are: rows[b] == e. Once for all products by the same numbers. */
static struct tensor chosen(struct lower *l, int rows, int64_t experts)
{
  struct lw_table_key key = {LW_TABLE_CHOSEN, rows, experts, SW_BOOL};
  struct tensor out = lw_cached(l, key), number = lw_tensor_of_value(l, rows);
  if (lw_known(out) || !lw_known(number))
    return lw_known(number) ? out : lw_unknown();
  double *all = SW_NEW_N(lw_scratch(l), double, experts);
  for (int64_t e = 0; e < experts; e++)
    all[e] = (double)e;
  struct tensor table = lw_table(l, sw_arena_printf(l->arena, "experts:%s", l->graph->values.v[rows].name), SW_I64, 1, &experts, all);
  out = lw_new(l, SW_BOOL, 2, (int64_t[]){number.size[0], experts}, NULL);
  struct sw_host_step h = {.name = l->program->storages.v[out.storage].name,
                           .target = "aten.eq.Tensor",
                           .node = l->node,
                           .why = "the device compares no row numbers: which row asks for which expert"};
  *SW_PUSH(l->arena, &h.args) = (struct sw_host_arg){.kind = SW_HOST_VIEW, .view = lw_view_of(lw_unsqueeze(number, 1))};
  *SW_PUSH(l->arena, &h.args) = (struct sw_host_arg){.kind = SW_HOST_VIEW, .view = lw_view_of(table)};
  *SW_PUSH(l->arena, &h.results) = lw_view_of(out);
  lw_add_host_step(l, h);
  lw_cache(l, key, out);
  return out;
}

bool lw_run_experts(struct lower *l)
{
  const struct sw_node *n = lw_node(l);
  enum sw_dtype t = lw_result_dtype(l, 0);
  struct lw_gathered g;
  int weights = 0;
  while (weights < 2 && !(n->args[weights].kind == SW_ARG_VALUE && lw_find_gathered(l, n->args[weights].value, &g)))
    weights++;
  if (!l->best || weights == 2 || (t != SW_F16 && t != SW_BF16) || n->args[!weights].kind != SW_ARG_VALUE)
    return false;
  const struct sw_value *table = &l->graph->values.v[g.table], *rows = &l->graph->values.v[g.rows];
  int64_t experts = table->size[0];
  if (table->dtype != t || rows->size[0] < experts || experts > MOST_EXPERTS || experts < 2)
    return false;
  struct tensor w = lw_tensor_of_value(l, g.table), x = lw_argument(l, &n->args[!weights], t), mask = chosen(l, g.rows, experts), y;
  if (!lw_known(w) || !lw_known(x) || !lw_known(mask)) {
    lw_set(l, 0, lw_unknown());
    return true;
  }
  if (g.turned)
    w = lw_transpose(w, 1, 2);
  if (!weights) { /* W x = (x^T W^T)^T */
    w = lw_transpose(w, 1, 2);
    x = lw_transpose(x, 1, 2);
  }
  bool vectors = x.size[1] == 1;
  if (vectors)
    x = lw_squeeze(x, 1);
  for (int64_t e = 0; e < experts; e++) {
    struct tensor product = lw_matmul(l, x, lw_select(w, 0, e)), here = lw_select(mask, 1, e);
    while (lw_known(product) && here.rank < product.rank)
      here = lw_unsqueeze(here, here.rank);
    y = lw_where(l, here, product, e ? y : lw_scalar(l, NAN, t));
  }
  if (vectors && lw_known(y))
    y = lw_unsqueeze(y, 1);
  lw_set(l, 0, weights || !lw_known(y) ? y : lw_transpose(y, 1, 2));
  return true;
}
