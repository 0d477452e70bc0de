/* Which dynamic dims run with smaller sizes than the program was made for (see compiler/lower/leading.c).
 *
 * The exported graph is the same for all sizes of a symbol, so what it is lowered to depends on the size in two ways
 * only: by numbers that are computed from it, and by decisions of lowering itself (a dim of 1 has no loop). The smallest
 * size, one in the middle and the largest but one are tried; all must keep the guards and give the same program. */
#include "compiler/dims.h"

#include "compiler/lower/leading.h"

#include <inttypes.h>

struct search {
  struct sw_job *job;
  const struct sw_options *o;
  const struct sw_compile_input *in;
  const char *program;
  struct sw_graph *g;
  struct sw_program *p;
};

/* The program for one size of a dim, the others as they are; NULL when the graph does not take that size. */
static const struct sw_program *lower_for(const struct search *x, struct sw_arena *a, int dim, int64_t size)
{
  struct sw_job *quiet = SW_NEW(a, struct sw_job);
  struct sw_graph *g;
  struct sw_program *p;
  struct sw_texts sizes = {0};
  *quiet = (struct sw_job){.arena = a, .cancel = x->job->cancel};
  for (int i = 0; i < x->g->dims.n; i++)
    *SW_PUSH(a, &sizes) = sw_arena_printf(a, "%s=%" PRId64, x->g->dims.v[i].range.symbol,
                                          i == dim ? size : x->g->dims.v[i].value);
  if (sw_graph_read(quiet, "", x->in->bytes, x->in->len, x->program, &g) != SW_OK ||
      sw_graph_fix_dims(quiet, g, &sizes) != SW_OK || sw_lower(quiet, x->o, g, &p) != SW_OK)
    return NULL;
  return p;
}

/* The user input that shows the size: one whose rows are exactly it. */
static bool find_input(const struct search *x, const struct sw_leading *l, struct sw_dim *d)
{
  for (int s = 0; s < x->p->storages.n; s++) {
    const struct sw_storage *t = &x->p->storages.v[s];
    if (t->kind == SW_STORAGE_INPUT && t->input >= 0 && l->dim[s] >= 0 && t->size[l->dim[s]] == d->value) {
      d->input = t->input;
      d->in_dim = l->dim[s];
      return true;
    }
  }
  return false;
}

static bool try_dim(const struct search *x, struct sw_arena *a, int dim, struct sw_leading *l)
{
  struct sw_dim *d = &x->g->dims.v[dim];
  int64_t least = d->range.has_min && d->range.min > 2 ? d->range.min : 2;
  int64_t sizes[] = {least, (least + d->value) / 2, d->value - 1};
  int n = 0;
  for (int i = 0; i < 3; i++) {
    if (sizes[i] < least || sizes[i] >= d->value || (i && sizes[i] == sizes[i - 1]))
      continue;
    const struct sw_program *small = lower_for(x, a, dim, sizes[i]);
    if (!small || !sw_program_serves_less(a, x->p, small, d->value, sizes[i], l))
      return false;
    n++;
  }
  return n > 0 && find_input(x, l, d);
}

void sw_find_serving_dims(struct sw_job *job, const struct sw_options *o, const struct sw_compile_input *in,
                          const char *name_of_program, struct sw_graph *g, struct sw_program *p)
{
  struct search x = {job, o, in, name_of_program, g, p};
  for (int i = 0; i < g->dims.n; i++) {
    struct sw_arena *a = sw_arena_new(job->arena, 0);
    struct sw_dim *d = &g->dims.v[i];
    struct sw_leading l;
    d->least = d->range.has_min && d->range.min > 1 ? d->range.min : 1;
    d->step = 1;
    d->serves_less = try_dim(&x, a, i, &l);
    for (int s = 0; d->serves_less && s < p->storages.n; s++)
      if (l.dim[s] >= 0) {
        p->storages.v[s].dynamic = i + 1;
        p->storages.v[s].rows = l.dim[s];
      }
    for (int k = 0; d->serves_less && k < p->ops.n; k++)
      if (l.loop[k] >= 0)
        p->ops.v[k].row_loop = l.loop[k] + 1;
    sw_arena_free(a);
  }
}

void sw_find_steps_of_dims(struct sw_graph *g, const struct sw_program *p)
{
  for (int i = 0; i < p->ops.n; i++) {
    const struct sw_op *op = &p->ops.v[i];
    if (op->plan->dynamic_loop)
      g->dims.v[p->storages.v[op->out.storage].dynamic - 1].step = op->plan->granularity;
  }
  for (int i = 0; i < g->dims.n; i++) {
    struct sw_dim *d = &g->dims.v[i];
    if (d->serves_less)
      d->least = (d->least + d->step - 1) / d->step * d->step;
  }
}
