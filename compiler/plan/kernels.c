/* Kernels: maximal runs of device ops between two borders, and their names.
 *
 * A border is a host step. In profile torch-spyre also the no-op node that stands for the allocation of a destination
 * (cat, stack, the padded operand of a matmul): right before the first write into it. Reference: graphs.md 7.2, 7.3. */
#include "compiler/plan/parts.h"

#include "base/map.h"
#include "base/options.h"

#include <stdlib.h>
#include <string.h>

static const struct sw_op *op_at(const struct sw_program *p, int step)
{
  return step >= 0 && step < p->steps.n && !p->steps.v[step].is_host ? &p->ops.v[p->steps.v[step].index] : NULL;
}

static bool is_conversion(const struct sw_op *op)
{
  return op && op->role == SW_ROLE_CONVERSION;
}

bool sw_is_destination(const struct sw_program *p, const struct sw_op *op)
{
  return (op->role == SW_ROLE_WRITE || op->role == SW_ROLE_PADDING) &&
         p->storages.v[op->out.storage].kind == SW_STORAGE_TEMPORARY;
}

/* Whether the first write into a destination that nothing else made begins at this step: the op that writes, or the
 * first of the conversions in front of it. */
static bool writes_destination(const struct sw_program *p, int step, const bool *written)
{
  if (is_conversion(op_at(p, step - 1)))
    return false;
  while (is_conversion(op_at(p, step)))
    step++;
  const struct sw_op *op = op_at(p, step);
  return op && !written[op->out.storage] && sw_is_destination(p, op);
}

/* A loop is in one kernel: what its body opens is there before it. */
static bool opens_destination(const struct sw_program *p, int step, const bool *written)
{
  const struct sw_op *op = op_at(p, step), *before = op_at(p, step - 1);
  if (!op->n_levels)
    return writes_destination(p, step, written);
  if (before && before->n_levels && before->level[0].loop == op->level[0].loop)
    return false;
  bool opens = false;
  for (int loop = op->level[0].loop; op && op->n_levels && op->level[0].loop == loop; op = op_at(p, ++step))
    opens |= writes_destination(p, step, written);
  return opens;
}

/* "aten.add.Tensor" gives "add". */
static const char *aten_name(struct sw_arena *a, const char *target)
{
  const char *dot = strchr(target, '.');
  const char *name = dot ? dot + 1 : target;
  return sw_arena_strndup(a, name, strcspn(name, "."));
}

static int by_text(const void *a, const void *b)
{
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static const char *name_kernel(struct sw_arena *arena, struct sw_arena *scratch, const struct sw_program *p,
                               const struct sw_kernel *k, int number)
{
  struct sw_map seen = {.arena = scratch};
  SW_VEC(const char *) names = {0};
  for (int i = 0; i < k->ops.n; i++) {
    const struct sw_op *op = &p->ops.v[k->ops.v[i]];
    for (int j = 0; j < op->nodes.n; j++) {
      const char *name = aten_name(scratch, p->graph->nodes.v[op->nodes.v[j]].target);
      if (sw_map_set_str(&seen, name, 0) < 0)
        *SW_PUSH(scratch, &names) = name;
    }
  }
  if (names.n)
    qsort(names.v, (size_t)names.n, sizeof *names.v, by_text);
  struct sw_buf b = {.arena = arena};
  sw_buf_puts(&b, "sdsc_fused_");
  for (int i = 0; i < names.n; i++)
    sw_buf_printf(&b, "%s_", names.v[i]);
  sw_buf_printf(&b, "%d", number);
  return sw_buf_text(&b);
}

void sw_cut_kernels(struct sw_job *job, const struct sw_options *o, const struct sw_program *p, struct sw_plan *plan)
{
  struct sw_arena *scratch = sw_arena_new(job->arena, SIZE_MAX);
  bool *written = SW_NEW_N(scratch, bool, p->storages.n);
  struct sw_kernel *kernel = NULL;
  for (int i = 0; i < p->steps.n; i++) {
    const struct sw_step *step = &p->steps.v[i];
    if (step->is_host) {
      kernel = NULL;
      continue;
    }
    if (!kernel || (o->profile == SW_PROFILE_TORCH_SPYRE && opens_destination(p, i, written)))
      kernel = SW_PUSH(job->arena, &plan->kernels);
    written[p->ops.v[step->index].out.storage] = true;
    *SW_PUSH(job->arena, &kernel->ops) = step->index;
    plan_of(p, step->index)->kernel = plan->kernels.n - 1;
  }
  for (int k = 0; k < plan->kernels.n; k++)
    plan->kernels.v[k].name = name_kernel(job->arena, scratch, p, &plan->kernels.v[k], k);
  sw_arena_free(scratch);
}
