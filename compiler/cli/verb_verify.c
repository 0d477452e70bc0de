/* verify DIR: the result directory is executed on the simulated card and compared with the graph's own meaning, or with
 * outputs that PyTorch computed. verify --reference MODEL: the graph is evaluated on the host and compared with those.
 * verify --structure PATH...: files, bundles and result directories, by what needs neither model nor data. */
#include "compiler/cli/verb.h"

#include "base/json.h"
#include "base/options.h"
#include "compiler/verify/check.h"
#include "compiler/verify/verify.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* What an evaluation may hold at a time. */
#define MAX_BYTES ((size_t)8 << 30)
#define MAX_RESULT ((size_t)1 << 30)

/* One compared value. */
struct line {
  const char *kind, *name;
  const char *remark; /* instead of a comparison, or NULL */
  struct sw_difference d;
};

struct report {
  const char *model, *mode;
  SW_VEC(struct line) lines;
  bool agrees, values_made_up, in_dl16;
  const char *doubt;
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
    if (l->remark)
      sw_buf_printf(b, "%s\n", l->remark);
    else if (l->d.why)
      sw_buf_printf(b, "differs, %s\n", l->d.why);
    else if (l->d.agrees)
      sw_buf_printf(b, "agrees, %" PRId64 " elements, max error %.3g, %.3g of the tolerance\n", l->d.elements,
                    l->d.max_error, l->d.worst);
    else
      sw_buf_printf(b, "differs in %" PRId64 " of %" PRId64 " elements, max error %.3g, worst element %" PRId64
                       " at %.3g times the tolerance\n",
                    l->d.outside, l->d.elements, l->d.max_error, l->d.worst_at, l->d.worst);
  }
  if (r->values_made_up)
    sw_buf_puts(b, "inputs are made up, and what is expected is the graph's own meaning\n");
  if (r->in_dl16)
    sw_buf_puts(b, "executed with the card's own 16-bit floats\n");
  if (r->doubt)
    sw_buf_printf(b, "perhaps no fault: %s\n", r->doubt);
}

static void put_json(struct sw_buf *b, const struct report *r)
{
  struct sw_jw w = {.out = b, .indent = 1};
  sw_jw_object(&w);
  sw_jw_kstr(&w, "model", r->model);
  sw_jw_kstr(&w, "mode", r->mode);
  sw_jw_kbool(&w, "agrees", r->agrees);
  sw_jw_kbool(&w, "values_made_up", r->values_made_up);
  sw_jw_kbool(&w, "in_dl16", r->in_dl16);
  sw_jw_kstr(&w, "doubt", r->doubt);
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
    sw_jw_kstr(&w, "why", l->remark ? l->remark : l->d.why);
    sw_jw_end_object(&w);
  }
  sw_jw_end_array(&w);
  sw_jw_end_object(&w);
  sw_buf_puts(b, "\n");
}

static enum sw_rc read_model(struct sw_job *job, const char *model, const char *program, struct sw_graph **out)
{
  const char *bytes;
  size_t len;
  struct sw_programs all = {0};
  SW_TRY(sw_cli_read(job, model, &bytes, &len));
  SW_TRY(sw_graph_programs(job, bytes, len, &all));
  if (!program && all.names.n > 1)
    program = all.names.v[0];
  return sw_graph_read(job, model, bytes, len, program, out);
}

static enum sw_rc evaluate(struct sw_job *job, const struct sw_graph *g, const struct sw_io *io,
                           enum sw_rounding rounding, struct report *r)
{
  struct sw_eval *e = sw_eval_new(job, g, rounding, MAX_BYTES);
  SW_TRY(sw_io_give_inputs(job, io, e, g));
  SW_TRY(sw_eval_all(e));
  compare(job, g, e, io, r);
  return r->agrees ? SW_OK : SW_DIFFERENT;
}

/* -- dynamic dims: what was compiled is for one size of each, or for all up to it -- */

/* The size that an input file has for a dim, or `otherwise`. */
static int64_t size_in_file(const struct sw_graph *g, const struct sw_io *io, const json_t *serves, int64_t otherwise)
{
  const char *input = json_string_value(json_object_get(serves, "input"));
  int dim = (int)json_integer_value(json_object_get(serves, "dim")), order = 0;
  for (int i = 0; io && input && i < g->inputs.n; i++) {
    const struct sw_input *in = &g->inputs.v[i];
    if (in->kind != SW_INPUT_USER && in->kind != SW_INPUT_CONSTANT)
      continue;
    for (int k = 0; !strcmp(in->name, input) && k < io->values.n; k++) {
      const struct sw_io_value *v = &io->values.v[k];
      if (v->role == SW_IO_INPUT && v->order == order && v->value.kind == SW_TENSOR && dim < v->value.tensor.rank)
        return v->value.tensor.size[dim];
    }
    order++;
  }
  return otherwise;
}

/* Of a dim that serves several sizes the one that is run: of option dim, of the inputs, else the largest. */
static int64_t size_to_run(struct sw_job *job, const struct sw_graph *g, const struct sw_io *io, const char *symbol,
                           const json_t *serves, int64_t size, const char *option)
{
  size_t n = strlen(symbol);
  if (!serves)
    return size;
  int64_t run = size_in_file(g, io, serves, size);
  if (option && !strncmp(option, symbol, n) && option[n] == '=')
    run = strtoll(option + n + 1, NULL, 10);
  int64_t min = json_integer_value(json_object_get(serves, "min")), step = json_integer_value(json_object_get(serves, "step"));
  if (run < min || run > size || (step > 1 && run % step)) {
    struct sw_fault *f = sw_fault(job, SW_INVALID, "%s is %" PRId64 " here, the program serves %" PRId64 " to %" PRId64
                                  " in steps of %" PRId64, symbol, run, min, size, step);
    f->has_limit = true;
    f->value = run;
    f->limit = run < min ? min : size;
    f->advice = sw_arena_printf(job->arena, "compile with --dim-max %s=%" PRId64, symbol, run);
  }
  return run;
}

/* Gives the graph the sizes that the directory was compiled for, as its result.json says. */
static enum sw_rc fix_dims(struct sw_job *job, const char *dir, struct sw_graph *g, const struct sw_io *io,
                           const char *option)
{
  const char *text, *path = sw_arena_printf(job->arena, "%s/result.json", dir), *symbol;
  size_t len;
  struct sw_texts sizes = {0};
  sw_graph_find_dims(job, g);
  if (!g->dims.n)
    return option ? sw_fail(job, SW_USAGE, "option dim: the graph has no dynamic dim") : SW_OK;
  SW_TRY(sw_file_read(job, path, MAX_RESULT, &text, &len));
  const json_t *root = sw_json_parse(job, path, text, len, MAX_RESULT), *size;
  if (!root)
    return job->worst;
  const json_t *input = json_object_get(root, "input"), *serves = json_object_get(input, "sizes");
  size_t n = option ? strcspn(option, "=") : 0;
  if (option && (!option[n] || !json_object_get(serves, sw_arena_strndup(job->arena, option, n))))
    return sw_fail(job, SW_USAGE, "option dim: \"%.100s\" is no SYMBOL=SIZE of a dim that serves several sizes", option);
  json_object_foreach(json_object_get(input, "dims"), symbol, size)
    *SW_PUSH(job->arena, &sizes) =
        sw_arena_printf(job->arena, "%s=%" PRId64, symbol,
                        size_to_run(job, g, io, symbol, json_object_get(serves, symbol), json_integer_value(size), option));
  if (sizes.n != g->dims.n)
    return sw_fail(job, SW_INVALID, "%s is for %d dynamic dims, %s has %d: not the same model", path, sizes.n,
                   g->name, g->dims.n);
  return job->worst != SW_OK ? job->worst : sw_graph_fix_dims(job, g, &sizes);
}

/* Inputs of another size than the program is for: which option would make one that fits. */
static void wrong_size(struct sw_job *job, const char *input, const char *expr, int64_t is, int64_t wanted)
{
  const char *symbol = NULL;
  int64_t size = expr ? sw_graph_solve_dim(job, expr, is, &symbol) : -1;
  struct sw_fault *f = sw_fault(job, SW_INVALID,
                                "input %s: %s is %" PRId64 " here, the program is compiled for exactly %" PRId64, input,
                                expr ? expr : "a fixed size", is, wanted);
  f->tensor = input;
  f->has_limit = true;
  f->value = is;
  f->limit = wanted;
  if (size >= 0)
    f->advice = sw_arena_printf(job->arena, "compile with --dim-max %s=%" PRId64, symbol, size);
}

/* As each input was before its dims were fixed, by its number. */
struct before {
  const char **size_expr, *expr;
};

static struct before *remember(struct sw_job *job, const struct sw_graph *g)
{
  struct before *b = SW_NEW_N(job->arena, struct before, g->inputs.n);
  for (int i = 0; i < g->inputs.n; i++)
    if (g->inputs.v[i].value >= 0)
      b[i] = (struct before){g->values.v[g->inputs.v[i].value].size_expr, g->values.v[g->inputs.v[i].value].expr};
  return b;
}

static enum sw_rc check_sizes(struct sw_job *job, const struct sw_graph *g, const struct sw_io *io, const struct before *b)
{
  int order = 0, n_faults = job->faults.n;
  for (int i = 0; i < g->inputs.n; i++) {
    const struct sw_input *in = &g->inputs.v[i];
    if (in->kind != SW_INPUT_USER && in->kind != SW_INPUT_CONSTANT)
      continue;
    const struct sw_value *v = in->value >= 0 ? &g->values.v[in->value] : NULL;
    for (int k = 0; v && k < io->values.n; k++) {
      const struct sw_io_value *given = &io->values.v[k];
      if (given->role != SW_IO_INPUT || given->order != order)
        continue;
      if (given->value.kind == SW_NUMBER && v->kind == SW_VALUE_SYM_INT && given->value.number.i != v->hint)
        wrong_size(job, in->name, b[i].expr, given->value.number.i, v->hint);
      const struct sw_tensor *t = &given->value.tensor;
      for (int d = 0; given->value.kind == SW_TENSOR && v->kind == SW_VALUE_TENSOR && t->rank == v->rank && d < v->rank; d++)
        if (t->size[d] != v->size[d])
          wrong_size(job, in->name, b[i].size_expr ? b[i].size_expr[d] : NULL, t->size[d], v->size[d]);
    }
    order++;
  }
  return job->faults.n == n_faults ? SW_OK : job->worst;
}

static enum sw_rc execute(struct sw_job *job, const char *dir, const struct sw_graph *g, const struct sw_io *io,
                          bool dl16, struct report *r)
{
  struct sw_verified v;
  enum sw_rc rc = sw_verify_directory(job, dir, g, io, dl16, &v);
  r->agrees = rc == SW_OK;
  r->values_made_up = v.values_made_up;
  r->in_dl16 = v.in_dl16;
  r->doubt = v.doubt;
  for (int i = 0; i < v.outputs.n; i++) {
    const struct sw_verified_output *o = &v.outputs.v[i];
    struct line *l = SW_PUSH(job->arena, &r->lines);
    *l = (struct line){.kind = o->mutates ? "changed" : "output", .name = o->mutates ? o->mutates : o->name,
                       .d = o->difference};
    if (o->undefined) {
      l->remark = sw_arena_printf(job->arena, "%" PRId64 " elements were never written", o->undefined);
      l->d.agrees = false;
    } else if (!o->is_compared) {
      l->remark = "nothing to compare with";
    }
  }
  return rc;
}

static int check_structure(struct sw_job *job, const struct sw_cli_args *args)
{
  struct sw_buf out = {.arena = job->arena};
  if (!args->operands.n)
    return sw_rc_exit(sw_fail(job, SW_USAGE, "verify --structure needs a file, a bundle or a result directory"));
  for (int i = 0; i < args->operands.n; i++) {
    int n = 0;
    if (sw_check_path(job, args->operands.v[i], &n) == SW_OK)
      sw_buf_printf(&out, "%s: %d file%s, all as they must be\n", args->operands.v[i], n, n == 1 ? "" : "s");
  }
  int printed = sw_cli_print(job, sw_buf_text(&out), out.n);
  return job->worst == SW_OK ? printed : sw_rc_exit(job->worst);
}

int sw_verb_verify(struct sw_job *job, int argc, char **argv)
{
  struct sw_cli_args args = {0};
  if (!sw_cli_parse(job, argc, argv, "verify", NULL, &args))
    return sw_rc_exit(SW_USAGE);
  const char *inputs = sw_cli_flag(&args, "inputs"), *model = sw_cli_flag(&args, "model");
  bool reference = sw_cli_flag(&args, "reference");
  if (sw_cli_flag(&args, "structure"))
    return check_structure(job, &args);
  if (args.operands.n != 1)
    return sw_rc_exit(sw_fail(job, SW_USAGE, "verify takes one DIR, --reference and one MODEL, or --structure and files"));
  if (reference ? !inputs : !model)
    return sw_rc_exit(sw_fail(job, SW_USAGE, reference ? "verify --reference needs --inputs IO.json"
                                                       : "verify DIR needs --model MODEL, for weights and meaning"));
  struct report r = {.model = reference ? args.operands.v[0] : model, .mode = reference ? "reference" : "execution"};
  struct sw_graph *g = NULL;
  struct sw_io *io = NULL;
  enum sw_rc rc = read_model(job, r.model, sw_cli_flag(&args, "program"), &g);
  if (rc == SW_OK && inputs)
    rc = sw_io_read(job, inputs, &io);
  const struct before *before = rc == SW_OK ? remember(job, g) : NULL;
  if (rc == SW_OK && !reference)
    rc = fix_dims(job, args.operands.v[0], g, io, sw_cli_flag(&args, "dim"));
  if (rc == SW_OK && !reference && io)
    rc = check_sizes(job, g, io, before);
  if (rc == SW_OK && !reference && !inputs)
    sw_verify_make_up_weights(job, g);
  if (rc == SW_OK)
    rc = reference ? evaluate(job, g, io, sw_cli_flag(&args, "round") ? SW_ROUND_DTYPE : SW_ROUND_NONE, &r)
                   : execute(job, args.operands.v[0], g, io, sw_cli_flag(&args, "dl16"), &r);
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
