#include "compiler/report/report.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* 1234567 as "1,234,567". */
static void thousands(char out[32], int64_t n)
{
  char digits[32];
  int len = snprintf(digits, sizeof digits, "%" PRId64, n < 0 ? 0 : n), at = 0;
  for (int i = 0; i < len; i++) {
    if (i && (len - i) % 3 == 0)
      out[at++] = ',';
    out[at++] = digits[i];
  }
  out[at] = 0;
}

static void layout_sizes(struct sw_buf *out, const struct sw_layout *l)
{
  sw_buf_puts(out, "[");
  for (int i = 0; i < l->rank; i++)
    sw_buf_printf(out, "%s%" PRId64, i ? "," : "", l->device_size[i]);
  sw_buf_puts(out, "]");
}

static void write_conversions(const struct sw_report *r, struct sw_buf *out)
{
  enum { MOST = 12 };
  const struct sw_choice *c = r->choice;
  for (int i = 0; i < c->conversions.n && i < MOST; i++) {
    const struct sw_conversion *v = &c->conversions.v[i];
    char n[32];
    thousands(n, v->elements);
    sw_buf_printf(out, "  %s ", r->program->storages.v[v->storage].name);
    layout_sizes(out, r->program->storages.v[v->storage].layout);
    sw_buf_puts(out, " -> ");
    layout_sizes(out, r->program->storages.v[v->copy].layout);
    sw_buf_printf(out, " %s elements: %s\n", n, v->reason ? v->reason : "");
    if (v->advice)
      sw_buf_printf(out, "    advice: %s\n", v->advice);
  }
  if (c->conversions.n > MOST)
    sw_buf_printf(out, "  and %d more (result.json has all)\n", c->conversions.n - MOST);
}

/* Only where the plan is not that of the layout optimum, which comes first. */
static void write_plan_of(const struct sw_plan *p, struct sw_buf *out)
{
  if (p->plan_of && strcmp(p->plan_of, p->tried.v[0].name) != 0)
    sw_buf_printf(out, "plan        with the layouts of %s: %.1f us; the layout optimum, whose bound this is, takes %.1f us\n",
                  p->plan_of, p->predicted_ns / 1e3, p->tried.v[0].predicted_ns / 1e3);
}

static void write_time(const struct sw_report *r, struct sw_buf *out)
{
  struct sw_time sum = {0};
  double restickify = 0;
  int in_lx = 0, in_pool = 0;
  for (int i = 0; i < r->program->ops.n; i++) {
    const struct sw_op *op = &r->program->ops.v[i];
    if (!op->plan)
      continue;
    sum.compute += op->plan->time.compute;
    sum.hbm += op->plan->time.hbm;
    sum.lx += op->plan->time.lx;
    sum.overhead += op->plan->time.overhead;
    if (op->op == SW_OP_RESTICKIFY)
      restickify += op->plan->time.total;
  }
  for (int i = 0; i < r->program->storages.n; i++) {
    const struct sw_place *p = r->program->storages.v[i].place;
    in_lx += p && p->kind == SW_PLACE_LX;
    in_pool += p && p->kind == SW_PLACE_POOL;
  }
  sw_buf_printf(out, "predicted   %.1f us (", r->plan->predicted_ns / 1e3);
  if (r->plan->host_ns > 0)
    sw_buf_printf(out, "host steps %.1f, ", r->plan->host_ns / 1e3);
  sw_buf_printf(out, "restickify %.1f; busy: compute %.1f, HBM %.1f, LX %.1f, overhead %.1f)\n",
                restickify / 1e3, sum.compute / 1e3, sum.hbm / 1e3, sum.lx / 1e3, sum.overhead / 1e3);
  sw_buf_printf(out, "memory      %d storages in LX (peak %" PRId64 " bytes a core), %d in the pool (peak %" PRId64
                     " bytes)\n",
                in_lx, r->plan->lx_peak_bytes, in_pool, r->plan->peak_pool_bytes);
}

static void write_verdict(const struct sw_verdict *v, struct sw_buf *out)
{
  sw_buf_puts(out, "verify      ");
  if (v->why)
    sw_buf_printf(out, "%s: %s\n", v->outcome, v->why);
  else
    sw_buf_printf(out, "executed on the simulated card with made-up %s: all %d outputs agree with the graph\n",
                  v->weights_made_up ? "inputs and weights" : "inputs", v->n_outputs);
}

void sw_report_summary(const struct sw_report *r, struct sw_buf *out)
{
  sw_buf_printf(out, "status      %s\n", r->status);
  if (r->graph)
    sw_buf_printf(out, "input       %s%s%d nodes, %d inputs, %d outputs, sha256 %.12s\n", r->graph->name,
                  *r->graph->name ? ": " : "", r->graph->nodes.n, r->graph->inputs.n, r->graph->outputs.n,
                  r->graph->digest);
  if (r->program)
    sw_buf_printf(out, "program     %d device ops, %d host steps, %d storages\n", r->program->ops.n,
                  r->program->host_steps.n, r->program->storages.n);
  if (r->choice && r->job->worst == SW_OK) {
    char value[32], bound[32];
    thousands(value, r->choice->cost);
    thousands(bound, r->choice->bound);
    sw_buf_printf(out, "objective   %s %s, proved bound %s; %d conversion%s\n", value, r->choice->unit, bound,
                  r->choice->conversions.n, r->choice->conversions.n == 1 ? "" : "s");
    write_conversions(r, out);
  }
  if (r->plan) {
    write_plan_of(r->plan, out);
    write_time(r, out);
  }
  if (r->plan)
    sw_buf_printf(out, "kernels     %d\n", r->plan->kernels.n);
  if (r->verdict && r->options->verify != SW_VERIFY_NEVER)
    write_verdict(r->verdict, out);
  for (int i = 0; r->program && i < r->program->host_steps.n && i < 8; i++)
    sw_buf_printf(out, "host step   %s: %s\n", r->program->host_steps.v[i].target, r->program->host_steps.v[i].why);
}
