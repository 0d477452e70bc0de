/* verify --reference: the graph is evaluated on the host and compared with expected outputs. */
#include "compiler/cli/verb.h"

#include "base/json.h"
#include "compiler/eval/io.h"

#include <inttypes.h>
#include <string.h>

/* What an evaluation may hold at a time. */
#define MAX_BYTES ((size_t)8 << 30)

/* One compared value. */
struct line {
  const char *kind, *name;
  struct sw_difference d;
};

struct report {
  const char *model;
  SW_VEC(struct line) lines;
  bool agrees;
};

static const char *const kinds[] = {"input", "output", "buffer", "changed input"};

/* The graph value that an expected one belongs to, or NULL: a literal output is turned into *literal. */
static const struct sw_evaluated *find(const struct sw_graph *g, const struct sw_eval *e, const struct sw_io_value *want,
                                       struct sw_evaluated *literal)
{
  int n = 0;
  for (int i = 0; want->role == SW_IO_OUTPUT && i < g->outputs.n; i++) {
    const struct sw_arg *a = &g->outputs.v[i].arg;
    if (g->outputs.v[i].kind != SW_OUTPUT_USER || n++ != want->order)
      continue;
    if (a->kind == SW_ARG_VALUE)
      return sw_eval_value(e, a->value);
    *literal = (struct sw_evaluated){.kind = a->kind == SW_ARG_NONE ? SW_UNKNOWN : SW_NUMBER};
    if (a->kind == SW_ARG_REAL)
      literal->number = (struct sw_number){.kind = SW_NUMBER_REAL, .r = a->r};
    else
      literal->number = (struct sw_number){.kind = a->kind == SW_ARG_BOOL ? SW_NUMBER_BOOL : SW_NUMBER_INT, .i = a->i};
    return literal;
  }
  for (int i = 0; want->role != SW_IO_OUTPUT && i < g->inputs.n; i++) {
    const struct sw_input *in = &g->inputs.v[i];
    const char *name = want->role == SW_IO_BUFFER_AFTER ? in->target : in->kind == SW_INPUT_USER ? in->name : NULL;
    if (name && in->value >= 0 && !strcmp(name, want->name))
      return sw_eval_value(e, in->value);
  }
  return NULL;
}

static void compare(struct sw_job *job, const struct sw_graph *g, const struct sw_eval *e, const struct sw_io *io,
                    struct report *r)
{
  r->agrees = true;
  for (int i = 0; i < io->values.n; i++) {
    const struct sw_io_value *want = &io->values.v[i];
    if (want->role == SW_IO_INPUT)
      continue;
    struct line *l = SW_PUSH(job->arena, &r->lines);
    *l = (struct line){.kind = kinds[want->role], .name = want->name};
    struct sw_evaluated literal;
    const struct sw_evaluated *got = find(g, e, want, &literal);
    if (got)
      sw_io_compare(job->arena, want, got, &l->d);
    else
      l->d.why = "the graph has none";
    r->agrees = r->agrees && l->d.agrees;
  }
}

static void put_text(struct sw_buf *b, const struct report *r)
{
  for (int i = 0; i < r->lines.n; i++) {
    const struct line *l = &r->lines.v[i];
    sw_buf_printf(b, "%s %s: ", l->kind, l->name);
    if (l->d.why)
      sw_buf_printf(b, "differs, %s\n", l->d.why);
    else if (l->d.agrees)
      sw_buf_printf(b, "agrees, %" PRId64 " elements, max error %.3g, %.3g of the tolerance\n", l->d.elements,
                    l->d.max_error, l->d.worst);
    else
      sw_buf_printf(b, "differs in %" PRId64 " of %" PRId64 " elements, max error %.3g, worst element %" PRId64
                       " at %.3g times the tolerance\n",
                    l->d.outside, l->d.elements, l->d.max_error, l->d.worst_at, l->d.worst);
  }
}

static void put_json(struct sw_buf *b, const struct report *r)
{
  struct sw_jw w = {.out = b, .indent = 1};
  sw_jw_object(&w);
  sw_jw_kstr(&w, "model", r->model);
  sw_jw_kstr(&w, "mode", "reference");
  sw_jw_kbool(&w, "agrees", r->agrees);
  sw_jw_key(&w, "values");
  sw_jw_array(&w);
  for (int i = 0; i < r->lines.n; i++) {
    const struct line *l = &r->lines.v[i];
    sw_jw_object(&w);
    sw_jw_kstr(&w, "kind", l->kind);
    sw_jw_kstr(&w, "name", l->name);
    sw_jw_kbool(&w, "agrees", l->d.agrees);
    sw_jw_kint(&w, "elements", l->d.elements);
    sw_jw_kint(&w, "outside", l->d.outside);
    sw_jw_kreal(&w, "max_error", l->d.max_error);
    sw_jw_kreal(&w, "of_tolerance", l->d.worst);
    sw_jw_kstr(&w, "why", l->d.why);
    sw_jw_end_object(&w);
  }
  sw_jw_end_array(&w);
  sw_jw_end_object(&w);
  sw_buf_puts(b, "\n");
}

static enum sw_rc evaluate(struct sw_job *job, const char *model, const char *inputs, const char *program,
                           enum sw_rounding rounding, struct report *r)
{
  const char *bytes;
  size_t len;
  struct sw_programs all = {0};
  struct sw_graph *g;
  struct sw_io *io;
  SW_TRY(sw_cli_read(job, model, &bytes, &len));
  SW_TRY(sw_graph_programs(job, bytes, len, &all));
  if (!program && all.names.n > 1)
    program = all.names.v[0];
  SW_TRY(sw_graph_read(job, model, bytes, len, program, &g));
  SW_TRY(sw_io_read(job, inputs, &io));
  struct sw_eval *e = sw_eval_new(job, g, rounding, MAX_BYTES);
  SW_TRY(sw_io_give_inputs(job, io, e, g));
  SW_TRY(sw_eval_all(e));
  compare(job, g, e, io, r);
  return r->agrees ? SW_OK : SW_DIFFERENT;
}

int sw_verb_verify(struct sw_job *job, int argc, char **argv)
{
  static const char *const known[] = {"reference", "inputs=", "model=", "program=", "round", "json", NULL};
  struct sw_cli_args args = {0};
  if (!sw_cli_parse(job, argc, argv, known, NULL, &args))
    return sw_rc_exit(SW_USAGE);
  const char *inputs = sw_cli_flag(&args, "inputs");
  if (args.operands.n != 1)
    return sw_rc_exit(sw_fail(job, SW_USAGE, "verify takes one DIR, or --reference and one MODEL"));
  if (!sw_cli_flag(&args, "reference"))
    return sw_rc_exit(sw_fail(job, SW_UNSUPPORTED, "verify of a result directory is unsupported in this version"));
  if (!inputs)
    return sw_rc_exit(sw_fail(job, SW_USAGE, "verify --reference needs --inputs IO.json"));
  struct report r = {.model = args.operands.v[0]};
  enum sw_rc rc = evaluate(job, r.model, inputs, sw_cli_flag(&args, "program"),
                           sw_cli_flag(&args, "round") ? SW_ROUND_DTYPE : SW_ROUND_NONE, &r);
  if (rc != SW_OK && rc != SW_DIFFERENT)
    return sw_rc_exit(rc);
  struct sw_buf out = {.arena = job->arena};
  if (sw_cli_flag(&args, "json"))
    put_json(&out, &r);
  else
    put_text(&out, &r);
  int printed = sw_cli_print(job, sw_buf_text(&out), out.n);
  return printed ? printed : sw_rc_exit(rc);
}
