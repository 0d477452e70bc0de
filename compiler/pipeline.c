#include "compiler/pipeline.h"

#include "compiler/dims.h"
#include "compiler/emit/opspec.h"
#include "compiler/layout/machine.h"
#include "compiler/rivals.h"
#include "compiler/report/report.h"
#include "compiler/self_check.h"

#include <string.h>
#include <time.h>

struct run {
  struct sw_job *job;
  const struct sw_options *o;
  const struct sw_compile_input *in;
  struct sw_compiled *c;
  const char *program; /* the one of an archive that is compiled */
};

/* Of an archive with several programs the first one, which is no secret. */
static enum sw_rc pass_read(struct run *r)
{
  struct sw_programs all = {0};
  if (!r->in->program) {
    SW_TRY(sw_graph_programs(r->job, r->in->bytes, r->in->len, &all));
    if (all.names.n > 1)
      sw_warn(r->job, "the archive holds %d programs; this is %s, --program takes another", all.names.n, all.names.v[0]);
  }
  r->program = all.names.n > 1 ? all.names.v[0] : r->in->program;
  SW_TRY(sw_graph_read(r->job, "", r->in->bytes, r->in->len, r->program, &r->c->graph));
  return sw_graph_fix_dims(r->job, r->c->graph, &r->o->dim_max);
}

static enum sw_rc pass_lower(struct run *r)
{
  const struct sw_machine *machine;
  SW_TRY(sw_machine_read(r->job, r->o, &machine));
  enum sw_rc rc = sw_lower(r->job, r->o, r->c->graph, &r->c->program);
  if (r->c->program)
    r->c->program->machine = machine;
  if (rc == SW_OK)
    sw_find_serving_dims(r->job, r->o, r->in, r->program, r->c->graph, r->c->program);
  return rc;
}

static enum sw_rc pass_choose(struct run *r)
{
  return sw_choose_layouts(r->job, r->o, r->c->program, &r->c->choice);
}

static enum sw_rc pass_plan(struct run *r)
{
  SW_TRY(sw_make_plan(r->job, r->o, r->c->program, &r->c->plan));
  struct sw_planned p = {r->c->program, r->c->choice, r->c->plan};
  SW_TRY(sw_keep_best_rival(r->job, r->o, r->in, r->program, r->c->graph, &p));
  r->c->program = p.program;
  r->c->choice = p.choice;
  r->c->plan = p.plan;
  sw_find_steps_of_dims(r->c->graph, r->c->program);
  return SW_OK;
}

static enum sw_rc pass_emit(struct run *r)
{
  if (!sw_self_check_executes(r->o, r->c->program))
    r->c->files.dir = r->in->dir;
  return sw_emit(r->job, r->o, r->c->program, r->c->plan, &r->c->files);
}

static enum sw_rc pass_verify(struct run *r)
{
  return sw_self_check(r->job, r->o, r->c->program, &r->c->files, &r->c->verdict);
}

static const struct {
  const char *name;
  enum sw_rc (*run)(struct run *);
} passes[] = {
#define X(name, ensures) {#name, pass_##name},
    SW_PASSES(X)
#undef X
};

static double now(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Bytes are part of the memory statistics, times of the others: all that differs between two runs lives here. */
static void add_stats(struct run *r)
{
  struct sw_buf *b = SW_NEW(r->job->arena, struct sw_buf);
  b->arena = r->job->arena;
  struct sw_jw w = {.out = b, .indent = 1};
  sw_jw_object(&w);
  sw_jw_kstr(&w, "format", "stickwright.stats/1");
  sw_jw_key(&w, "seconds");
  sw_jw_object(&w);
  for (int i = 0; i < SW_N_PASSES; i++)
    sw_jw_kreal(&w, passes[i].name, r->c->seconds[i]);
  sw_jw_end_object(&w);
  sw_jw_kint(&w, "arena_bytes", (int64_t)sw_arena_bytes(r->job->arena));
  sw_jw_end_object(&w);
  sw_buf_puts(b, "\n");
  sw_files_add(r->job, &r->c->files, "stats.json", b->p, b->n);
}

static void dump_state(const struct run *r, enum sw_pass at, struct sw_buf *out)
{
  if (at == SW_PASS_read)
    sw_graph_write_text(r->c->graph, out);
  else
    sw_program_write(r->c->program, out);
}

enum sw_rc sw_compile(struct sw_job *job, const struct sw_options *o, const struct sw_compile_input *in,
                      const char *dump_after, struct sw_buf *dump, struct sw_compiled *out)
{
  struct run r = {.job = job, .o = o, .in = in, .c = out};
  memset(out, 0, sizeof *out);
  enum sw_rc rc = SW_OK;
  for (int i = 0; i < SW_N_PASSES && rc == SW_OK; i++) {
    double start = now();
    if (in->on_pass)
      in->on_pass(in->ctx, passes[i].name);
    rc = passes[i].run(&r);
    out->seconds[i] = now() - start;
    if (rc == SW_OK && sw_cancelled(job))
      rc = sw_fail(job, SW_CANCELLED, "cancelled after pass %s", passes[i].name);
    if (rc == SW_OK && dump_after && !strcmp(dump_after, passes[i].name)) {
      dump_state(&r, (enum sw_pass)i, dump);
      return SW_OK;
    }
  }
  if (out->graph)
    sw_graph_warn_of_dims(job, out->graph);
  if (rc == SW_OK)
    rc = job->worst; /* a pass must not hide a fault */
  if (rc != SW_OK)
    out->files.list.n = 0;
  out->files.dir = in->dir;
  for (int i = 0; in->dir && i < out->files.list.n; i++) /* kept until they were executed */
    sw_files_add(job, &out->files, out->files.list.v[i].path, out->files.list.v[i].bytes, out->files.list.v[i].len);
  if (in->dir)
    out->files.list.n = 0;
  out->status = rc != SW_OK ? sw_rc_slug(rc) : out->choice->status;
  struct sw_buf b = {.arena = job->arena};
  sw_report_result(&(struct sw_report){job, o, out->status, out->graph, out->program, out->choice, out->plan,
                                        out->verdict.outcome ? &out->verdict : NULL},
                   &b);
  out->result = sw_buf_text(&b);
  out->result_len = b.n;
  sw_files_add(job, &out->files, "result.json", out->result, out->result_len);
  if (rc == SW_OK) {
    struct sw_buf dropped = {.arena = job->arena};
    sw_layout_dropped_json(out->choice, &dropped);
    sw_files_add(job, &out->files, "layout_problem.json", out->choice->problem, strlen(out->choice->problem));
    sw_files_add(job, &out->files, "dropped.json", sw_buf_text(&dropped), dropped.n);
  }
  add_stats(&r);
  return rc;
}
