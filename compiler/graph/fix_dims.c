/* Dynamic dims get the sizes that the graph is compiled for.
 *
 * Every symbol has one value: --dim-max, else its declared maximum, else what it was at export time. Whatever the file
 * says of a tensor in symbols is computed from these. With s39 = 64, x : f16[1, 8*s39, 64] with strides
 * [512*s39, 64, 1] is x : f16[1, 512, 64], strides [32768, 64, 1], and a number "s39 - 1" is 63.
 *
 * What is compiled is right for inputs of exactly these sizes: a sum over a padded dim would take the padding in. Where
 * that can't be, because rows stay apart, the pipeline finds out afterwards (compiler/dims.c). Each symbol is a warning,
 * and what an exporter assumed of it is checked: its range, guards and assertions. */
#include "compiler/graph/expr.h"
#include "compiler/graph/infer.h"

#include "base/options.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* A declared maximum above this is no plan, only a limit. */
enum { LARGEST_DEFAULT = 65536 };

/* An expression of the graph. Many values have the same one, so it is parsed and computed once. */
struct term {
  const struct sw_expr *e;
  bool on_data; /* has a symbol like u0 */
  bool known;
  int64_t value;
};

struct fix {
  struct sw_job *job;
  struct sw_graph *g;
  struct sw_arena *scratch;
  struct sw_map dims;  /* name -> number in g->dims */
  struct sw_map terms; /* text -> number in list */
  SW_VEC(struct term) list;
  bool closed; /* all values were seen: a symbol that only ranges and guards name has no value */
};

/* -- symbols -- */

static bool is_on_data(const char *symbol)
{
  return symbol[0] == 'u' && isdigit((unsigned char)symbol[1]);
}

static void add_symbol(void *ctx, const char *symbol)
{
  struct fix *f = ctx;
  struct term *t = &f->list.v[f->list.n - 1];
  t->on_data = t->on_data || is_on_data(symbol);
  if (f->closed || is_on_data(symbol) || sw_map_get_str(&f->dims, symbol) >= 0)
    return;
  sw_map_set_str(&f->dims, symbol, f->g->dims.n);
  *SW_PUSH(f->job->arena, &f->g->dims) = (struct sw_dim){.range.symbol = symbol};
}

/* The term of a text that a reader parsed before; a guard may be none: NULL. */
static struct term *term_of(struct fix *f, const char *text)
{
  int64_t at = sw_map_get_str(&f->terms, text);
  if (at >= 0)
    return &f->list.v[at];
  const struct sw_expr *e = sw_expr_parse(f->job->arena, text);
  if (!e)
    return NULL;
  sw_map_set_str(&f->terms, text, f->list.n);
  *SW_PUSH(f->scratch, &f->list) = (struct term){.e = e};
  sw_expr_symbols(e, add_symbol, f);
  return &f->list.v[f->list.n - 1];
}

/* Called for each number of a value that is symbolic; true: *number is its value and the expression can go. */
typedef bool each_number(struct fix *f, const struct sw_value *v, const char *text, int64_t *number);

static void each_of_list(struct fix *f, const struct sw_value *v, const char ***texts, int64_t *numbers,
                         each_number *fn)
{
  bool all = true;
  for (int d = 0; *texts && d < v->rank; d++)
    if ((*texts)[d])
      all = fn(f, v, (*texts)[d], &numbers[d]) && all;
  if (all)
    *texts = NULL;
}

static void each_in_graph(struct fix *f, struct sw_graph *g, each_number *fn);

static void each_in_arg(struct fix *f, const struct sw_arg *a, each_number *fn)
{
  if (a->kind == SW_ARG_GRAPH)
    each_in_graph(f, a->graph, fn);
  for (int i = 0; a->kind == SW_ARG_LIST && i < a->list.n; i++)
    each_in_arg(f, &a->list.v[i], fn);
}

static void each_in_graph(struct fix *f, struct sw_graph *g, each_number *fn)
{
  for (int i = 0; i < g->values.n; i++) {
    struct sw_value *v = &g->values.v[i];
    each_of_list(f, v, &v->size_expr, v->size, fn);
    each_of_list(f, v, &v->stride_expr, v->stride, fn);
    if (v->offset_expr && fn(f, v, v->offset_expr, &v->offset))
      v->offset_expr = NULL;
    if (v->expr && fn(f, v, v->expr, &v->hint))
      v->expr = NULL;
  }
  for (int i = 0; i < g->nodes.n; i++)
    for (int k = 0; k < g->nodes.v[i].n_args; k++)
      each_in_arg(f, &g->nodes.v[i].args[k], fn);
}

/* A value that is a symbol alone says what the symbol was at export time. */
static bool note(struct fix *f, const struct sw_value *v, const char *text, int64_t *number)
{
  (void)v;
  const struct term *t = term_of(f, text);
  const char *symbol = t ? sw_expr_symbol(t->e) : NULL;
  int64_t at = symbol ? sw_map_get_str(&f->dims, symbol) : -1;
  if (at >= 0 && !f->g->dims.v[at].has_hint) {
    f->g->dims.v[at].has_hint = true;
    f->g->dims.v[at].hint = *number;
  }
  return false;
}

static void find(struct fix *f)
{
  f->g->dims.n = 0;
  each_in_graph(f, f->g, note);
  f->closed = true;
  for (int i = 0; i < f->g->ranges.n; i++) {
    int64_t at = sw_map_get_str(&f->dims, f->g->ranges.v[i].symbol);
    if (at >= 0)
      f->g->dims.v[at].range = f->g->ranges.v[i];
  }
}

static struct fix start(struct sw_job *job, struct sw_graph *g)
{
  struct sw_arena *scratch = sw_arena_new(job->arena, 0);
  return (struct fix){
      .job = job, .g = g, .scratch = scratch, .dims = {.arena = scratch}, .terms = {.arena = scratch}};
}

void sw_graph_find_dims(struct sw_job *job, struct sw_graph *g)
{
  struct fix f = start(job, g);
  find(&f);
  sw_arena_free(f.scratch);
}

/* -- values of symbols -- */

/* "2..64", "2.." */
static const char *range_text(struct sw_arena *a, const struct sw_range *r)
{
  struct sw_buf b = {.arena = a};
  if (r->has_min)
    sw_buf_printf(&b, "%" PRId64, r->min);
  sw_buf_puts(&b, "..");
  if (r->has_max)
    sw_buf_printf(&b, "%" PRId64, r->max);
  return sw_buf_text(&b);
}

/* "s39 = 64, s6 = 9" */
static const char *all_values(struct fix *f)
{
  struct sw_buf b = {.arena = f->job->arena};
  for (int i = 0; i < f->g->dims.n && i < 20; i++)
    sw_buf_printf(&b, "%s%s = %" PRId64, i ? ", " : "", f->g->dims.v[i].range.symbol, f->g->dims.v[i].value);
  return sw_buf_text(&b);
}

static const char *all_symbols(struct fix *f)
{
  struct sw_buf b = {.arena = f->job->arena};
  for (int i = 0; i < f->g->dims.n && i < 20; i++)
    sw_buf_printf(&b, "%s%s (%s)", i ? ", " : "", f->g->dims.v[i].range.symbol, range_text(f->job->arena, &f->g->dims.v[i].range));
  return f->g->dims.n ? sw_buf_text(&b) : "none";
}

static void broken_limit(struct sw_fault *at, const char *symbol, int64_t value, int64_t limit, const char *advice)
{
  at->tensor = symbol;
  at->has_limit = true;
  at->value = value;
  at->limit = limit;
  at->advice = advice;
}

/* Whether the value is what the file allows; `rc` when not. */
static void check_range(struct fix *f, const struct sw_range *r, int64_t value, enum sw_rc rc)
{
  bool low = r->has_min && value < r->min, high = r->has_max && value > r->max;
  if (!low && !high)
    return;
  int64_t limit = low ? r->min : r->max;
  broken_limit(sw_fault(f->job, rc, "%s = %" PRId64 " is %s its declared %s, %" PRId64, r->symbol, value,
                        low ? "below" : "above", low ? "minimum" : "maximum", limit),
               r->symbol, value, limit,
               sw_arena_printf(f->job->arena, "the model was exported for %s in %s", r->symbol, range_text(f->job->arena, r)));
}

/* "s0=2048:64" */
static void take_option(struct fix *f, const char *text, bool *given)
{
  size_t n = strcspn(text, "=");
  const char *symbol = sw_arena_strndup(f->job->arena, text, n);
  char *end = (char *)(uintptr_t)text + n;
  int64_t value = 0, step = 1, at = sw_map_get_str(&f->dims, symbol);
  errno = 0;
  if (*end == '=' && isdigit((unsigned char)end[1]))
    value = strtoll(end + 1, &end, 10);
  if (*end == ':' && isdigit((unsigned char)end[1]))
    step = strtoll(end + 1, &end, 10);
  if (!text[n] || *end || errno || step < 1) {
    sw_fault(f->job, SW_USAGE, "option dim-max: \"%.100s\" is no SYMBOL=MAX[:STEP]", text)->advice =
        "say s0=2048 or s0=2048:64";
    return;
  }
  if (at < 0) {
    sw_fault(f->job, SW_USAGE, "option dim-max: the graph has no dynamic dim %.100s", symbol)->advice =
        sw_arena_printf(f->job->arena, "its dynamic dims: %s", all_symbols(f));
    return;
  }
  struct sw_dim *d = &f->g->dims.v[at];
  if (given[at] && d->value != value)
    sw_fault(f->job, SW_USAGE, "option dim-max: %s is given twice, %" PRId64 " and %" PRId64, symbol, d->value, value);
  given[at] = true;
  d->value = value;
  check_range(f, &d->range, value, SW_USAGE);
  if (value % step)
    broken_limit(sw_fault(f->job, SW_USAGE, "option dim-max: %s = %" PRId64 " is no multiple of %" PRId64, symbol, value,
                          step),
                 symbol, value, step,
                 sw_arena_printf(f->job->arena, "--dim-max %s=%" PRId64 ":%" PRId64, symbol,
                                 value - value % step + (value < step ? step : 0), step));
}

static void choose(struct fix *f, const struct sw_texts *dim_max)
{
  bool *given = SW_NEW_N(f->scratch, bool, f->g->dims.n);
  for (int i = 0; dim_max && i < dim_max->n; i++)
    take_option(f, dim_max->v[i], given);
  for (int i = 0; i < f->g->dims.n; i++) {
    struct sw_dim *d = &f->g->dims.v[i];
    const struct sw_range *r = &d->range;
    if (!given[i] && r->has_max && r->max >= 0 && r->max <= LARGEST_DEFAULT)
      d->value = r->max;
    else if (!given[i] && d->has_hint)
      d->value = d->hint;
    else if (!given[i])
      sw_fault(f->job, SW_UNSUPPORTED, "dynamic dim %s (%s) has no maximum and no value at export time", r->symbol,
               range_text(f->job->arena, r))
          ->advice = sw_arena_printf(f->job->arena, "--dim-max %s=N", r->symbol);
    d->given = given[i];
  }
}

void sw_graph_warn_of_dims(struct sw_job *job, const struct sw_graph *g)
{
  for (int i = 0; i < g->dims.n; i++) {
    const struct sw_dim *d = &g->dims.v[i];
    const char *symbol = d->range.symbol, *range = range_text(job->arena, &d->range);
    const char *more = d->given ? "" : sw_arena_printf(job->arena, "; --dim-max %s=N compiles for another", symbol);
    if (d->serves_less)
      sw_warn(job, "dynamic dim %s (range %s) is compiled for sizes up to %" PRId64 "%s%s", symbol, range, d->value,
              d->step > 1 ? sw_arena_printf(job->arena, " in steps of %" PRId64, d->step) : "", more);
    else
      sw_warn(job, "dynamic dim %s (range %s) is compiled for exactly %" PRId64 ": run it with inputs of that size%s",
              symbol, range, d->value, more);
  }
}

/* -- values of expressions -- */

static bool lookup(void *ctx, const char *symbol, int64_t *value)
{
  struct fix *f = ctx;
  int64_t at = sw_map_get_str(&f->dims, symbol);
  if (at >= 0)
    *value = f->g->dims.v[at].value;
  return at >= 0;
}

/* Computes all terms there are. */
static void compute(struct fix *f)
{
  for (int i = 0; i < f->list.n; i++) {
    struct term *t = &f->list.v[i];
    t->known = !t->on_data && sw_expr_eval(t->e, lookup, f, &t->value);
  }
}

static bool settle(struct fix *f, const struct sw_value *v, const char *text, int64_t *number)
{
  const struct term *t = term_of(f, text);
  if (!t || v->kind == SW_VALUE_SYM_FLOAT)
    return false;
  if (t->known)
    *number = t->value;
  else if (!t->on_data && v->kind == SW_VALUE_TENSOR)
    sw_fault(f->job, SW_LIMIT, "tensor %s: %s has no value in 63 bits at %s", v->name, text, all_values(f))->tensor =
        v->name;
  return t->known;
}

/* -- what must hold -- */

static void check_sizes(struct fix *f, const struct sw_graph *g);

static void check_arg(struct fix *f, const struct sw_arg *a)
{
  if (a->kind == SW_ARG_GRAPH)
    check_sizes(f, a->graph);
  for (int i = 0; a->kind == SW_ARG_LIST && i < a->list.n; i++)
    check_arg(f, &a->list.v[i]);
}

static void check_sizes(struct fix *f, const struct sw_graph *g)
{
  for (int i = 0; i < g->values.n; i++) {
    const struct sw_value *v = &g->values.v[i];
    if (v->kind != SW_VALUE_TENSOR || sw_graph__is_sane(v))
      continue;
    struct sw_buf b = {.arena = f->job->arena};
    for (int d = 0; d < v->rank; d++)
      sw_buf_printf(&b, "%s%" PRId64, d ? ", " : "", v->size[d]);
    struct sw_fault *at =
        sw_fault(f->job, SW_LIMIT, "tensor %s: size [%s] at %s is negative or does not fit 63 bits of bytes", v->name,
                 v->rank ? b.p : "", all_values(f));
    at->tensor = v->name;
    at->node = v->node >= 0 ? g->nodes.v[v->node].name : NULL;
    at->advice = "another --dim-max";
  }
  for (int i = 0; i < g->nodes.n; i++)
    for (int k = 0; k < g->nodes.v[i].n_args; k++)
      check_arg(f, &g->nodes.v[i].args[k]);
}

/* Ranges of expressions, guards and assertions: promises of the export that every run must keep. */
static void check_ranges(struct fix *f, enum sw_rc rc)
{
  for (int i = 0; i < f->g->ranges.n; i++) {
    const struct sw_range *r = &f->g->ranges.v[i];
    const struct term *t = term_of(f, r->symbol);
    if (t && t->known && !sw_expr_symbol(t->e))
      check_range(f, r, t->value, rc);
  }
}

static void check_guards(struct fix *f, enum sw_rc rc)
{
  for (int i = 0; i < f->g->guards.n; i++) {
    const char *guard = f->g->guards.v[i];
    const struct term *t = term_of(f, guard);
    if (!t || !t->known)
      sw_warn(f->job, "the export assumed \"%.200s\", which is not checked", guard);
    else if (!t->value)
      sw_fault(f->job, rc, "the export assumed %.200s, which is false at %s", guard, all_values(f))->advice =
          "another --dim-max, or export the model for these sizes";
  }
  f->g->guards.n = 0; /* nothing is left to assume */
}

static void check_assertions(struct fix *f, enum sw_rc rc)
{
  for (int i = 0; i < f->g->nodes.n; i++) {
    const struct sw_node *n = &f->g->nodes.v[i];
    if (strcmp(n->target, "aten._assert_scalar.default") || n->args[0].kind != SW_ARG_VALUE)
      continue;
    const struct sw_value *v = &f->g->values.v[n->args[0].value];
    const struct sw_arg *said = sw_node_arg(n, "assert_msg");
    if (v->kind == SW_VALUE_TENSOR || v->kind == SW_VALUE_SYM_FLOAT || v->expr || v->hint)
      continue;
    struct sw_fault *at = sw_fault(f->job, rc, "an assertion of the graph is false at %s: %.200s", all_values(f),
                                   said && said->kind == SW_ARG_STR ? said->s : n->name);
    at->node = n->name;
    at->source = n->source;
    at->advice = "another --dim-max";
  }
}

enum sw_rc sw_graph_fix_dims(struct sw_job *job, struct sw_graph *g, const struct sw_texts *dim_max)
{
  struct fix f = start(job, g);
  int n_faults = job->faults.n;
  find(&f);
  for (int i = 0; i < g->ranges.n; i++)
    term_of(&f, g->ranges.v[i].symbol);
  for (int i = 0; i < g->guards.n; i++)
    term_of(&f, g->guards.v[i]);
  choose(&f, dim_max);
  if (job->faults.n == n_faults) {
    compute(&f);
    each_in_graph(&f, g, settle);
    enum sw_rc broken = dim_max && dim_max->n ? SW_USAGE : SW_UNSUPPORTED;
    check_ranges(&f, broken);
    check_guards(&f, broken);
    check_assertions(&f, broken);
  }
  if (job->faults.n == n_faults)
    check_sizes(&f, g);
  if (job->faults.n == n_faults && g->dims.n)
    sw_graph__check_shapes(job, g);
  sw_arena_free(f.scratch);
  return job->faults.n == n_faults ? SW_OK : job->worst;
}

/* -- the other way round -- */

struct candidate {
  const char *symbol;
  bool several;
  int64_t value;
};

static void only_symbol(void *ctx, const char *symbol)
{
  struct candidate *c = ctx;
  c->several = c->several || (c->symbol && strcmp(c->symbol, symbol));
  c->symbol = symbol;
}

static bool same_value(void *ctx, const char *symbol, int64_t *value)
{
  (void)symbol;
  *value = ((struct candidate *)ctx)->value;
  return true;
}

int64_t sw_graph_solve_dim(struct sw_job *job, const char *expr, int64_t wanted, const char **symbol)
{
  const struct sw_expr *e = sw_expr_parse(job->arena, expr);
  struct candidate c = {0};
  if (e)
    sw_expr_symbols(e, only_symbol, &c);
  *symbol = c.symbol;
  if (!c.symbol || c.several)
    return -1;
  if (sw_expr_symbol(e))
    return wanted;
  for (c.value = 0; c.value <= LARGEST_DEFAULT; c.value++) {
    int64_t value;
    if (sw_expr_eval(e, same_value, &c, &value) && value == wanted)
      return c.value;
  }
  return -1;
}
