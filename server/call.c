#include "server/call.h"

#include "compiler/compare.h"
#include "compiler/study/study.h"
#include "server/body.h"
#include "solver/assign/assign.h"
#include "solver/place/place.h"

#include <stdlib.h>
#include <string.h>

struct run {
  struct sw_job *job;
  struct sw_call *call;
  const char *bytes;
  size_t len;
  void (*on_pass)(void *, const char *);
  void *ctx;
  struct sw_call_answer *out;
};

struct sw_verb {
  const char *name;
  const char *options; /* of the pipeline that mean something here; NULL: all of them */
  const char *own;     /* parameters of its own */
  enum sw_rc (*run)(struct run *);
};

/* The answer is one document, which ends with a newline as on the command line. */
static enum sw_rc answer(struct run *r, struct sw_buf *b)
{
  sw_files_add(r->job, &r->out->files, "result.json", sw_buf_text(b), b->n);
  return SW_OK;
}

static struct sw_buf *new_buf(struct run *r)
{
  struct sw_buf *b = SW_NEW(r->job->arena, struct sw_buf);
  b->arena = r->job->arena;
  return b;
}

static struct sw_compile_input input(const struct run *r)
{
  return (struct sw_compile_input){.bytes = r->bytes, .len = r->len, .program = r->call->own.program,
                                   .on_pass = r->on_pass, .ctx = r->ctx};
}

static enum sw_rc run_compile(struct run *r)
{
  struct sw_compile_input in = input(r);
  struct sw_compiled done;
  enum sw_rc rc = sw_compile(r->job, &r->call->options, &in, NULL, NULL, &done);
  static const char *const names[] = {
#define X(name, ensures) #name,
      SW_PASSES(X)
#undef X
  };
  for (int i = 0; i < SW_N_PASSES; i++)
    sw_buf_printf(&r->out->timing, "%s%s;dur=%.1f", i ? ", " : "", names[i], done.seconds[i] * 1e3);
  r->out->files = done.files;
  r->out->solver = done.status;
  return rc;
}

/* A model that no run could read is no model: its faults, instead of a table that says so in each line. */
static enum sw_rc refuse_unreadable(struct sw_job *job, const struct sw_comparison *c)
{
  for (int i = 0; i < c->runs.n; i++)
    if (strcmp(c->runs.v[i].status, sw_rc_slug(SW_INVALID)))
      return SW_OK;
  for (int i = 0; c->runs.n && i < c->runs.v[0].faults.n; i++)
    sw_fail(job, SW_INVALID, "%s", c->runs.v[0].faults.v[i]);
  return job->worst;
}

static enum sw_rc run_compare(struct run *r)
{
  struct sw_compile_input in = input(r);
  struct sw_comparison c = {0};
  const char *name = r->call->own.name ? r->call->own.name : "-";
  SW_TRY(sw_compare_grid(r->job, name, &in, r->call->own.profiles, r->call->own.solvers, &r->call->options, &c));
  SW_TRY(refuse_unreadable(r->job, &c));
  struct sw_buf *b = new_buf(r);
  sw_compare_json(&c, b);
  return answer(r, b);
}

/* Infeasible and unknown are answers here: the document says so, and why. */
static enum sw_rc run_solve(struct run *r)
{
  const struct sw_options *o = &r->call->options;
  struct sw_assign_problem *p = sw_assign_read(r->job, r->bytes, r->len);
  struct sw_assign_result *result;
  if (!p)
    return r->job->worst;
  if (r->call->own.mode)
    p->mode = strcmp(r->call->own.mode, "shared") ? SW_ASSIGN_PER_EDGE : SW_ASSIGN_SHARED;
  r->on_pass(r->ctx, "solve");
  SW_TRY(sw_assign_solve(r->job, p, &(struct sw_assign_options){o->solver, (int)o->beam_width, o->budget}, &result));
  struct sw_buf *b = new_buf(r);
  sw_assign_write_result(result, &(struct sw_jw){.out = b});
  sw_buf_puts(b, "\n");
  r->out->solver = sw_assign_status_name(result->status);
  return answer(r, b);
}

/* Place of `value` in "a|b|c", or -1. */
static int choice(const char *values, const char *value)
{
  size_t n = strlen(value);
  for (int at = 0;; at++) {
    size_t len = strcspn(values, "|");
    if (len == n && !memcmp(values, value, n))
      return at;
    if (!values[len])
      return -1;
    values += len + 1;
  }
}

#define PLACERS "exact|greedy|firstfit|bestfit|stack" /* in the order of the enum */

static enum sw_rc run_place(struct run *r)
{
  struct sw_job *job = r->job;
  const struct sw_call *c = r->call;
  int64_t capacity = c->own.capacity ? strtoll(c->own.capacity, NULL, 10) : -1;
  size_t blank = strspn(r->bytes, " \t\r\n"); /* behind the last byte there is a NUL */
  struct sw_place_problem *p;
  struct sw_place_result *result;
  SW_TRY(r->bytes[blank] == '{' ? sw_place_read_json(job, r->bytes, r->len, &p)
                                : sw_place_read_csv(job, c->own.name ? c->own.name : "-", r->bytes, r->len, capacity, &p));
  if (capacity >= 0)
    p->capacity = capacity;
  SW_TRY(sw_place_validate(job, p));
  r->on_pass(r->ctx, "place");
  struct sw_place_options o = {.budget = c->options.budget};
  if (c->own.placer)
    o.placer = (enum sw_lx_placer)choice(PLACERS, c->own.placer);
  o.no_peak = c->own.no_peak && !strcmp(c->own.no_peak, "on");
  SW_TRY(sw_place_solve(job, p, &o, &result));
  struct sw_buf *b = new_buf(r);
  sw_place_write_json(p, result, &(struct sw_jw){.out = b, .indent = 2});
  sw_buf_puts(b, "\n");
  r->out->solver = sw_place_status_text(result->status);
  return answer(r, b);
}

/* The spec first, then the graphs it names, in its order. */
static enum sw_rc run_study(struct run *r)
{
  struct sw_file spec;
  struct sw_files graphs = {0};
  SW_TRY(sw_study_unpack(r->job, r->bytes, r->len, &spec, &graphs));
  sw_files_add(r->job, &r->out->files, spec.path, spec.bytes, spec.len);
  for (int i = 0; i < graphs.list.n; i++)
    sw_files_add(r->job, &r->out->files, graphs.list.v[i].path, graphs.list.v[i].bytes, graphs.list.v[i].len);
  return SW_OK;
}

static const struct sw_verb verbs[] = {
    {"compile", NULL, "program", run_compile},
    {"compare", NULL, "name program profile solver", run_compare},
    {"solve", "solver beam-width budget", "mode", run_solve},
    {"place", "budget", "placer capacity no-peak name", run_place},
    {"study", "", "", run_study},
};

/* Whether `name` is one of the words of a list. */
static bool is_word(const char *list, const char *name)
{
  size_t n = strchr(name, ' ') ? 0 : strlen(name);
  for (const char *s = list; n && (s = strstr(s, name)); s += n)
    if ((s == list || s[-1] == ' ') && (!s[n] || s[n] == ' '))
      return true;
  return false;
}

bool sw_call_init(struct sw_call *c, const char *verb)
{
  memset(c, 0, sizeof *c);
  sw_options_init(&c->options);
  for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++)
    if (!strcmp(verbs[i].name, verb))
      c->verb = &verbs[i];
  if (c->verb && c->verb->run == run_solve)
    c->options.budget = sw_assign_defaults().budget;
  return c->verb;
}

/* Parameters of its own whose values can be told to be wrong before the work starts. */
static enum sw_rc check_own(struct sw_job *job, const char *name, const char *value)
{
  static const struct {
    const char *name, *values;
  } choices[] = {{"mode", "per-edge|shared"}, {"placer", PLACERS}, {"no-peak", "off|on"}};
  for (size_t i = 0; i < sizeof choices / sizeof choices[0]; i++)
    if (!strcmp(name, choices[i].name) && choice(choices[i].values, value) < 0)
      return sw_fail(job, SW_USAGE, "parameter %s: one of %s expected, \"%s\" found", name, choices[i].values, value);
  if (!strcmp(name, "capacity") && (!*value || strspn(value, "0123456789") != strlen(value) || strlen(value) > 18))
    return sw_fail(job, SW_USAGE, "parameter capacity: a number from 0 on expected, \"%s\" found", value);
  if (!strcmp(name, "profile") || !strcmp(name, "solver")) {
    struct sw_comparison none = {0};
    struct sw_options o;
    sw_options_init(&o);
    return sw_compare_grid(job, "", NULL, *name == 'p' ? value : NULL, *name == 's' ? value : NULL, &o, &none);
  }
  return SW_OK;
}

bool sw_call_repeats(const struct sw_call *c, const char *name)
{
  return !is_word(c->verb->own, name) && sw_option_repeats(name);
}

enum sw_rc sw_call_set(struct sw_job *job, struct sw_call *c, const char *name, const char *value)
{
  const struct sw_verb *v = c->verb;
  if (is_word(v->own, name)) {
    SW_TRY(check_own(job, name, value));
#define X(field, text)      \
  if (!strcmp(name, text)) \
    c->own.field = sw_arena_strdup(job->arena, value);
    SW_CALL_OWN(X)
#undef X
    return SW_OK;
  }
  if (v->options ? is_word(v->options, name) : sw_option_known(name))
    return sw_option_set(job, &c->options, name, value);
  struct sw_fault *f = sw_fault(job, SW_USAGE, "%s has no parameter %s", v->name, name);
  f->advice = sw_arena_printf(job->arena, "it takes %s %s", v->own, v->options ? v->options : "and the options of `stickwright compile`");
  return SW_USAGE;
}

enum sw_rc sw_call_set_pair(struct sw_job *job, struct sw_call *c, const char *pair)
{
  const char *equals = strchr(pair, '=');
  if (!equals)
    return sw_fail(job, SW_USAGE, "NAME=VALUE expected, \"%s\" found", pair);
  return sw_call_set(job, c, sw_arena_strndup(job->arena, pair, (size_t)(equals - pair)), equals + 1);
}

enum sw_rc sw_call_read(struct sw_job *job, struct sw_call *c, const char *args, size_t len)
{
  if (!sw_call_init(c, args))
    return sw_fail(job, SW_USAGE, "there is no verb %s", args);
  for (const char *s = args + strlen(args) + 1; s < args + len; s += strlen(s) + 1)
    SW_TRY(sw_call_set_pair(job, c, s));
  return SW_OK;
}

void sw_call_write(struct sw_call *c, struct sw_buf *out)
{
  struct sw_jw w = {.out = out};
  sw_options_settle(&c->options);
  sw_jw_object(&w);
  sw_jw_kstr(&w, "verb", c->verb->name);
#define X(field, text) \
  if (c->own.field)    \
    sw_jw_kstr(&w, text, c->own.field);
  SW_CALL_OWN(X)
#undef X
  sw_jw_key(&w, "options");
  sw_options_write(&c->options, &w);
  sw_jw_end_object(&w);
}

bool sw_call_address(struct sw_call *c, struct sw_arena *scratch, const struct sw_body *body, char out[65])
{
  struct sw_buf text = {.arena = scratch};
  sw_buf_puts(&text, "stickwright " SW_VERSION "\n");
  sw_call_write(c, &text);
  return sw_body_digest(body, text.p, text.n, out);
}

enum sw_rc sw_call_run(struct sw_job *job, struct sw_call *c, const char *bytes, size_t len,
                       void (*on_pass)(void *ctx, const char *pass), void *ctx, struct sw_call_answer *out)
{
  memset(out, 0, sizeof *out);
  out->timing.arena = job->arena;
  sw_options_settle(&c->options);
  return c->verb->run(&(struct run){job, c, bytes, len, on_pass, ctx, out});
}
