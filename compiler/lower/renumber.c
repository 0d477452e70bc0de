/* Storages of a program under other numbers. */
#include "compiler/lower/program.h"

static void renumber_args(const int *number, struct sw_host_arg *args, int n)
{
  for (int i = 0; i < n; i++)
    if (args[i].kind == SW_HOST_VIEW)
      args[i].view.storage = number[args[i].view.storage];
    else if (args[i].kind == SW_HOST_LIST)
      renumber_args(number, args[i].list, args[i].n_list);
}

void sw_renumber_storages(struct sw_program *p, const int *number)
{
  for (int i = 0; i < p->ops.n; i++) {
    struct sw_op *op = &p->ops.v[i];
    op->out.storage = number[op->out.storage];
    for (int k = 0; k < op->n_in; k++)
      op->in[k].storage = number[op->in[k].storage];
  }
  for (int i = 0; i < p->host_steps.n; i++) {
    struct sw_host_step *h = &p->host_steps.v[i];
    renumber_args(number, h->args.v, h->args.n);
    for (int r = 0; r < h->results.n; r++)
      if (h->results.v[r].storage >= 0)
        h->results.v[r].storage = number[h->results.v[r].storage];
  }
  for (int i = 0; i < p->outputs.n; i++)
    if (p->outputs.v[i].is_tensor)
      p->outputs.v[i].view.storage = number[p->outputs.v[i].view.storage];
}
