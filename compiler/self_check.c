#include "compiler/self_check.h"

#include <inttypes.h>
#include <math.h>

static double elements(const struct sw_value *v)
{
  double n = 1;
  for (int d = 0; d < v->rank; d++)
    n *= (double)v->size[d];
  return n;
}

/* The two largest operands. */
static void largest(const struct sw_program *p, const struct sw_host_arg *args, int n, double largest_two[2])
{
  for (int i = 0; i < n; i++) {
    largest(p, args[i].list, args[i].n_list, largest_two);
    if (args[i].kind != SW_HOST_VIEW)
      continue;
    double size = (double)sw_storage_elements(&p->storages.v[args[i].view.storage]);
    largest_two[1] = fmax(largest_two[1], fmin(size, largest_two[0]));
    largest_two[0] = fmax(largest_two[0], size);
  }
}

int64_t sw_work_to_verify(const struct sw_program *p)
{
  double sum = 0;
  for (int i = 0; i < p->ops.n; i++) {
    double n = 1;
    for (int k = 0; k < p->ops.v[i].n_loops; k++)
      n *= (double)p->ops.v[i].range[k];
    sum += n;
  }
  for (int i = 0; i < p->graph->values.n; i++)
    if (p->graph->values.v[i].kind == SW_VALUE_TENSOR)
      sum += elements(&p->graph->values.v[i]);
  for (int i = 0; i < p->host_steps.n; i++) {
    double operand[2] = {1, 1};
    largest(p, p->host_steps.v[i].args.v, p->host_steps.v[i].args.n, operand);
    sum += operand[0] * operand[1];
  }
  return sum < 0x1p62 ? (int64_t)sum : INT64_MAX;
}

/* Whether the execution has no values of its own for some weight. */
static bool lacks_weights(const struct sw_graph *g)
{
  for (int i = 0; i < g->inputs.n; i++)
    if (g->inputs.v[i].value >= 0 && g->inputs.v[i].kind != SW_INPUT_USER && !g->inputs.v[i].bytes)
      return true;
  return false;
}

/* The graph with inputs of its own, so that made-up weights stay here. */
static struct sw_graph *borrow(struct sw_arena *a, const struct sw_graph *g)
{
  struct sw_graph *copy = sw_arena_copy(a, g, 1, sizeof *g);
  copy->inputs.v = sw_arena_copy(a, g->inputs.v, (size_t)g->inputs.n, sizeof *g->inputs.v);
  return copy;
}

bool sw_self_check_executes(const struct sw_options *o, const struct sw_program *p)
{
  return o->verify == SW_VERIFY_ALWAYS || (o->verify == SW_VERIFY_AUTO && sw_work_to_verify(p) <= SW_VERIFY_AUTO_WORK);
}

enum sw_rc sw_self_check(struct sw_job *job, const struct sw_options *o, const struct sw_program *p,
                         const struct sw_files *files, struct sw_verdict *out)
{
  *out = (struct sw_verdict){.outcome = "not executed", .work = sw_work_to_verify(p)};
  if (o->verify == SW_VERIFY_NEVER) {
    out->why = "verify is never";
    return SW_OK;
  }
  if (o->verify == SW_VERIFY_AUTO && out->work > SW_VERIFY_AUTO_WORK) {
    out->why = sw_arena_printf(job->arena, "%" PRId64 " loop iterations and elements are more than the %d that auto executes; --verify always executes it",
                               out->work, SW_VERIFY_AUTO_WORK);
    return SW_OK;
  }
  struct sw_arena *scratch = sw_arena_new(job->arena, 0);
  struct sw_job own = {.arena = scratch, .cancel = job->cancel};
  struct sw_graph *g = borrow(scratch, p->graph);
  out->weights_made_up = lacks_weights(g);
  if (out->weights_made_up)
    sw_verify_make_up_weights(&own, g);
  struct sw_verified v;
  enum sw_rc rc = sw_verify_files(&own, files, g, NULL, &v);
  const struct sw_fault *f = own.faults.n ? &own.faults.v[0] : NULL;
  out->n_outputs = v.outputs.n;
  out->outcome = rc == SW_OK ? "agrees" : rc != SW_DIFFERENT ? "not executed" : f || !v.doubt ? "differs" : "undecided";
  if (f)
    out->why = f->source ? sw_arena_printf(job->arena, "%s: %s", f->source, f->detail) : sw_arena_strdup(job->arena, f->detail);
  else if (rc != SW_OK)
    out->why = v.doubt ? sw_arena_strdup(job->arena, v.doubt) : "an output differs from the graph's meaning";
  sw_arena_free(scratch);
  if (rc == SW_CANCELLED || rc == SW_DEADLINE)
    return sw_fail(job, rc, "cancelled while the program was executed");
  if (rc == SW_DIFFERENT && (f || !v.doubt)) {
    sw_fault(job, SW_INTERNAL, "the emitted program is wrong: %s", out->why)->advice =
        "this is a fault of the compiler; please report it with the input. --verify=never gives the program out all the same";
    return SW_INTERNAL;
  }
  if (rc != SW_OK && rc != SW_DIFFERENT && o->verify == SW_VERIFY_ALWAYS)
    return sw_fail(job, rc, "can't verify: %s", out->why);
  return SW_OK;
}
