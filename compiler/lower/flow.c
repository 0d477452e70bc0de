/* cond and while_loop before anything is lowered (profile best).
 *
 *   %y = cond(%p, @yes, @no, [%x])        %cond/true/relu, %cond/false/sub: both sides, then
 *                                         %y = where(%p, %cond/true/relu, %cond/false/sub)
 *   %n, %h = while_loop(@more, @step,     counter 0 1 2 3: "more" is computed with the evaluator while it depends on
 *                       [%zero, %x], [%w])  constants alone, and says no at 3; %while_loop/0/tanh, %while_loop/1/tanh,
 *                                         %while_loop/2/tanh are three copies of "step"
 *
 * where() does not mix the sides: NaN of the one that is not taken stays there. But both sides run, so neither may write into
 * an operand, nor hold what can fail on data that the predicate was there to keep away (row numbers, division of integers).
 * A predicate that is constant takes its side alone.
 *
 * One level a round: graphs inside graphs are straight after as many rounds as they are deep. */
#include "compiler/lower/flow.h"

#include "compiler/lower/lower.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Constants that are followed through the turns of a loop: counters, not tables. */
enum { MOST_ELEMENTS = 4096, MOST_BYTES = 64 << 20 };

struct flow {
  struct sw_job *job;
  struct sw_arena *arena;
  struct lower *l;      /* the analysis of g, and its constants up to `computed` */
  const struct sw_graph *g;
  struct sw_graph *out;
  struct sw_map names;
  int *table;           /* values of g -> values of out */
  int computed;         /* nodes */
  const struct sw_node *node; /* at work */
  bool failed, missing;
};

static bool is_cond(const struct sw_node *n)
{
  return !strcmp(n->target, "higher_order.cond");
}

static bool is_flow(const struct sw_node *n)
{
  return is_cond(n) || !strcmp(n->target, "higher_order.while_loop");
}

static bool has_flow(const struct sw_graph *g)
{
  for (int i = 0; i < g->nodes.n; i++)
    if (is_flow(&g->nodes.v[i]))
      return true;
  return false;
}

static bool __attribute__((format(printf, 4, 5))) refuse(struct flow *f, enum sw_rc rc, const char *advice, const char *fmt, ...)
{
  char why[256];
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(why, sizeof why, fmt, ap);
  va_end(ap);
  struct sw_fault *at = sw_fault(f->job, rc, "%s: %s", f->node->target, why);
  at->node = f->node->name;
  at->source = f->node->source;
  at->advice = advice;
  f->failed = true;
  return false;
}

/* -- what a subgraph may hold -- */

static bool writes(const struct sw_schema_arg *a)
{
  return !strncmp(a->type, "Tensor(", 7) && strchr(a->type, '!');
}

/* Whether no node writes into a tensor that came in as an operand, or into a view of one. */
static bool keeps_operands(struct flow *f, const struct sw_graph *g)
{
  bool *outer = SW_NEW_N(f->arena, bool, g->values.n);
  for (int i = 0; i < g->inputs.n; i++)
    if (g->inputs.v[i].value >= 0)
      outer[g->inputs.v[i].value] = true;
  for (int i = 0; i < g->nodes.n; i++) {
    const struct sw_node *n = &g->nodes.v[i];
    bool shares = false;
    for (int k = 0; n->schema && k < n->n_args && k < n->schema->n_args; k++) {
      if (n->args[k].kind != SW_ARG_VALUE || strncmp(n->schema->args[k].type, "Tensor(", 7) || !outer[n->args[k].value])
        continue;
      if (writes(&n->schema->args[k]))
        return refuse(f, SW_UNSUPPORTED, "give the new value back as a result", "its subgraph writes into an operand (%s)", n->name);
      shares = true;
    }
    for (int r = 0; shares && r < n->n_results; r++)
      if (n->results[r] >= 0)
        outer[n->results[r]] = true;
  }
  return true;
}

/* What fails on numbers out of range, or divides whole numbers by 0. */
static bool may_fail(const struct sw_graph *g, const struct sw_node *n)
{
  static const char *const by_number[] = {"embedding", "index", "_unsafe_index", "gather", "scatter", "take", "one_hot", "bincount", "nll_loss",
                                          "cross_entropy_loss", "put", "masked_scatter", "nonzero_static"};
  static const char *const division[] = {"floor_divide", "remainder", "fmod", "div", "divide", "pow"};
  if (strncmp(n->target, "aten.", 5))
    return false;
  const char *packet = n->target + 5;
  for (size_t i = 0; i < sizeof by_number / sizeof by_number[0]; i++)
    if (!strncmp(packet, by_number[i], strlen(by_number[i])))
      return true;
  for (size_t i = 0; i < sizeof division / sizeof division[0]; i++) {
    size_t length = strlen(division[i]);
    if (!strncmp(packet, division[i], length) && (packet[length] == '.' || packet[length] == '_') && n->n_results == 1 && n->results[0] >= 0 &&
        sw_dtype_is_integer(g->values.v[n->results[0]].dtype))
      return true;
  }
  return false;
}

static bool never_fails(struct flow *f, const struct sw_graph *g)
{
  for (int i = 0; i < g->nodes.n; i++) {
    const struct sw_node *n = &g->nodes.v[i];
    if (may_fail(g, n))
      return refuse(f, SW_UNSUPPORTED, "move it in front of the choice, or choose with where",
                    "both sides would run, and %s (%s) may fail on data that its side is not taken for", n->name, n->target);
    for (int k = 0; k < n->n_args; k++)
      if (n->args[k].kind == SW_ARG_GRAPH && !never_fails(f, n->args[k].graph))
        return false;
  }
  return true;
}

/* -- copying -- */

static const char *unique(struct flow *f, const char *name)
{
  const char *text = name;
  for (int64_t n = 1; sw_map_get_str(&f->names, text) >= 0; n++)
    text = sw_arena_printf(f->arena, "%s_%lld", name, (long long)n);
  sw_map_set_str(&f->names, text, 1);
  return text;
}

static struct sw_arg translate(struct flow *f, const struct sw_arg *a, const int *table)
{
  struct sw_arg b = *a;
  if (a->kind == SW_ARG_VALUE)
    b.value = table[a->value];
  else if (a->kind == SW_ARG_LIST) {
    b.list.v = SW_NEW_N(f->arena, struct sw_arg, a->list.n);
    for (int i = 0; i < a->list.n; i++)
      b.list.v[i] = translate(f, &a->list.v[i], table);
  }
  return b;
}

static int add_value(struct flow *f, const struct sw_value *v, const char *name, int node, int result)
{
  struct sw_value *c = SW_PUSH(f->arena, &f->out->values);
  *c = *v;
  c->name = name;
  c->node = node;
  c->result = result;
  return f->out->values.n - 1;
}

/* Node `n` of a graph whose values `table` maps. Its names get `prefix`, those of values with a wish the wished ones. */
static void copy_node(struct flow *f, const struct sw_graph *g, const struct sw_node *n, int *table, const char *prefix,
                      const char *const *wish)
{
  struct sw_node c = *n;
  c.args = SW_NEW_N(f->arena, struct sw_arg, n->n_args);
  for (int k = 0; k < n->n_args; k++)
    c.args[k] = translate(f, &n->args[k], table);
  c.results = SW_NEW_N(f->arena, int, n->n_results);
  if (prefix) {
    c.name = sw_arena_printf(f->arena, "%s/%s", prefix, n->name);
    c.source = n->source ? n->source : f->node->source;
  }
  for (int r = 0; r < n->n_results; r++) {
    c.results[r] = -1;
    if (n->results[r] < 0)
      continue;
    const struct sw_value *v = &g->values.v[n->results[r]];
    const char *name = v->name;
    if (prefix)
      name = wish && wish[n->results[r]] ? wish[n->results[r]] : unique(f, sw_arena_printf(f->arena, "%s/%s", prefix, v->name));
    c.results[r] = table[n->results[r]] = add_value(f, v, name, f->out->nodes.n, r);
  }
  *SW_PUSH(f->arena, &f->out->nodes) = c;
}

/* The nodes of `inner` on `operands` (values of out); its outputs go to `results`. */
static bool splice(struct flow *f, const struct sw_graph *inner, int n_operands, const int *operands, const char *prefix,
                   const char *const *names, int n_results, int *results)
{
  if (inner->inputs.n != n_operands || inner->outputs.n != n_results)
    return refuse(f, SW_INVALID, NULL, "operands or results are not as many as its graph's inputs or outputs");
  if (f->out->nodes.n + inner->nodes.n > LW_MAX_FLOW_NODES) {
    refuse(f, SW_LIMIT, "fewer turns, or compile the body alone", "more than %d nodes", LW_MAX_FLOW_NODES);
    return false;
  }
  int *table = SW_NEW_N(f->arena, int, inner->values.n);
  for (int v = 0; v < inner->values.n; v++)
    table[v] = -1;
  for (int i = 0; i < n_operands; i++)
    if (inner->inputs.v[i].value >= 0) {
      table[inner->inputs.v[i].value] = operands[i];
      if (operands[i] < 0)
        return refuse(f, SW_UNSUPPORTED, NULL, "operand %d is no value", i);
    }
  const char **wish = SW_NEW_N(f->arena, const char *, inner->values.n);
  for (int i = 0; names && i < n_results; i++) {
    const struct sw_arg *o = &inner->outputs.v[i].arg;
    if (o->kind == SW_ARG_VALUE && names[i] && !wish[o->value])
      wish[o->value] = names[i];
  }
  for (int i = 0; i < inner->nodes.n; i++)
    copy_node(f, inner, &inner->nodes.v[i], table, prefix, wish);
  for (int i = 0; i < n_results; i++) {
    const struct sw_arg *o = &inner->outputs.v[i].arg;
    if (o->kind != SW_ARG_VALUE)
      return refuse(f, SW_UNSUPPORTED, "give tensors back", "its graph returns something else than a tensor");
    results[i] = table[o->value];
  }
  return true;
}

/* Operands of a list argument as values of g; -1: no value. */
static int *operands_of(struct flow *f, const struct sw_arg *a, int *n)
{
  *n = a->kind == SW_ARG_LIST ? a->list.n : 0;
  int *v = SW_NEW_N(f->arena, int, *n + 1);
  for (int i = 0; i < *n; i++)
    v[i] = a->list.v[i].kind == SW_ARG_VALUE ? a->list.v[i].value : -1;
  return v;
}

static int *in_out(struct flow *f, const int *values, int n)
{
  int *v = SW_NEW_N(f->arena, int, n + 1);
  for (int i = 0; i < n; i++)
    v[i] = values[i] < 0 ? -1 : f->table[values[i]];
  return v;
}

static const char **result_names(struct flow *f)
{
  const char **names = SW_NEW_N(f->arena, const char *, f->node->n_results + 1);
  for (int r = 0; r < f->node->n_results; r++)
    names[r] = f->node->results[r] < 0 ? NULL : f->g->values.v[f->node->results[r]].name;
  return names;
}

static void set_results(struct flow *f, const int *values)
{
  for (int r = 0; r < f->node->n_results; r++)
    if (f->node->results[r] >= 0)
      f->table[f->node->results[r]] = values[r];
}

/* -- constants -- */

/* What is known of a value of g without running the program. */
static struct sw_evaluated known(struct flow *f, int value)
{
  static const struct sw_evaluated unknown = {.kind = SW_UNKNOWN};
  int node = (int)(f->node - f->g->nodes.v);
  if (value < 0 || !f->l->values[value].constant)
    return unknown;
  for (; f->computed < node; f->computed++)
    if (f->l->node_constant[f->computed] && f->l->node_live[f->computed])
      sw_eval_node(f->l->eval, f->computed);
  struct sw_evaluated v = *sw_eval_value(f->l->eval, value);
  return v.kind == SW_TENSOR && sw_tensor_elements(&v.tensor) > MOST_ELEMENTS ? unknown : v;
}

static bool truth(struct flow *f, const struct sw_evaluated *v, bool *yes)
{
  int64_t n = 0;
  if (v->kind == SW_TENSOR && sw_tensor_elements(&v->tensor) == 1)
    *yes = *sw_tensor_reals(f->arena, &v->tensor, &n) != 0;
  else if (v->kind == SW_NUMBER)
    *yes = v->number.kind == SW_NUMBER_REAL ? v->number.r != 0 : v->number.i != 0;
  else
    return false;
  return true;
}

struct knows {
  struct sw_eval *e;
  bool all;
};

static void check_known(void *ctx, int value)
{
  struct knows *k = ctx;
  k->all = k->all && sw_eval_value(k->e, value)->kind != SW_UNKNOWN;
}

/* What of a subgraph's results depends on nothing but the known ones of its operands. False: a fault. */
static bool evaluate(struct flow *f, const struct sw_graph *g, int n, const struct sw_evaluated *operands, struct sw_evaluated *results)
{
  struct sw_eval *e = sw_eval_new(f->job, g, SW_ROUND_DTYPE, MOST_BYTES);
  for (int i = 0; i < n && i < g->inputs.n; i++)
    if (g->inputs.v[i].value >= 0 && operands[i].kind == SW_TENSOR)
      sw_eval_set(e, g->inputs.v[i].value, &operands[i].tensor);
    else if (g->inputs.v[i].value >= 0 && operands[i].kind == SW_NUMBER)
      sw_eval_set_number(e, g->inputs.v[i].value, operands[i].number);
  for (int i = 0; i < g->nodes.n; i++) {
    const struct sw_node *node = &g->nodes.v[i];
    struct knows k = {e, sw_eval_knows(node->target) && node->schema};
    lw_each_value(node->args, node->n_args, check_known, &k);
    for (int a = 0; !k.all && node->schema && a < node->n_args && a < node->schema->n_args; a++)
      if (writes(&node->schema->args[a]))
        return true; /* into something that may be known: nothing is, from here on */
    if (k.all && sw_eval_node(e, i) != SW_OK)
      return refuse(f, SW_INVALID, NULL, "%s can't be computed", node->name);
  }
  for (int i = 0; i < g->outputs.n; i++) {
    const struct sw_arg *o = &g->outputs.v[i].arg;
    if (o->kind != SW_ARG_VALUE)
      continue;
    struct sw_evaluated v = *sw_eval_value(e, o->value);
    if (v.kind == SW_TENSOR && sw_tensor_elements(&v.tensor) <= MOST_ELEMENTS) {
      struct sw_tensor t = v.tensor;
      size_t bytes;
      const void *p = sw_tensor_bytes(f->arena, &t, &bytes);
      sw_tensor_from_bytes(f->arena, &results[i].tensor, t.dtype, t.rank, t.size, p);
      results[i].kind = SW_TENSOR;
    } else if (v.kind == SW_NUMBER) {
      results[i] = v;
    }
  }
  sw_eval_forget(e);
  return true;
}

/* -- cond -- */

/* The result r of a cond: %y = aten.where.self(%predicate, %yes, %no) */
static int choose(struct flow *f, int predicate, int yes, int no, int r)
{
  const struct sw_schema *s = sw_schema_find("aten.where.self");
  const struct sw_value *v = &f->g->values.v[f->node->results[r]];
  struct sw_node n = {.name = v->name, .target = s->target, .schema = s, .source = f->node->source, .module = f->node->module,
                      .origin = f->node->origin, .n_args = s->n_args, .n_results = 1};
  struct sw_value like = f->out->values.v[yes];
  const int operands[] = {predicate, yes, no};
  n.args = SW_NEW_N(f->arena, struct sw_arg, s->n_args);
  for (int k = 0; k < s->n_args; k++)
    n.args[k] = (struct sw_arg){.name = s->args[k].name, .kind = SW_ARG_VALUE, .given = true, .value = operands[k]};
  like.offset = 0;
  like.stride = SW_NEW_N(f->arena, int64_t, like.rank + 1);
  lw_contiguous_strides(like.rank, like.size, like.stride);
  int result = add_value(f, &like, v->name, f->out->nodes.n, 0);
  n.results = sw_arena_copy(f->arena, &result, 1, sizeof result);
  *SW_PUSH(f->arena, &f->out->nodes) = n;
  return result;
}

static bool alike(const struct sw_value *a, const struct sw_value *b)
{
  return a->kind == SW_VALUE_TENSOR && b->kind == SW_VALUE_TENSOR && !a->size_expr && !b->size_expr && a->dtype == b->dtype &&
         a->rank == b->rank && !memcmp(a->size, b->size, (size_t)a->rank * sizeof *a->size);
}

static bool expand_cond(struct flow *f)
{
  const struct sw_node *n = f->node;
  if (n->n_args < 4 || n->args[1].kind != SW_ARG_GRAPH || n->args[2].kind != SW_ARG_GRAPH)
    return refuse(f, SW_INVALID, NULL, "its arguments are no predicate, two graphs and operands");
  const struct sw_graph *side[] = {n->args[2].graph, n->args[1].graph};
  int n_operands, *operands = operands_of(f, &n->args[3], &n_operands);
  int *at = in_out(f, operands, n_operands), *results[2] = {0};
  bool yes, is_value = n->args[0].kind == SW_ARG_VALUE;
  struct sw_evaluated p = is_value ? known(f, n->args[0].value) : (struct sw_evaluated){.kind = SW_UNKNOWN};
  bool constant = n->args[0].kind == SW_ARG_BOOL || truth(f, &p, &yes);
  if (n->args[0].kind == SW_ARG_BOOL)
    yes = n->args[0].i != 0;
  if (!keeps_operands(f, side[0]) || !keeps_operands(f, side[1]))
    return false;
  if (constant) {
    results[0] = SW_NEW_N(f->arena, int, n->n_results + 1);
    if (!splice(f, side[yes], n_operands, at, sw_arena_printf(f->arena, "%s/%s", n->name, yes ? "true" : "false"), result_names(f),
                n->n_results, results[0]))
      return false;
    set_results(f, results[0]);
    return true;
  }
  const struct sw_value *v = is_value ? &f->g->values.v[n->args[0].value] : NULL;
  if (!v || v->kind != SW_VALUE_TENSOR || v->dtype != SW_BOOL || v->rank)
    return refuse(f, SW_UNSUPPORTED, "choose by a tensor of bool without dims", "its predicate is no tensor of bool without dims");
  if (!never_fails(f, side[0]) || !never_fails(f, side[1]))
    return false;
  for (int i = 1; i >= 0; i--) {
    results[i] = SW_NEW_N(f->arena, int, n->n_results + 1);
    if (!splice(f, side[i], n_operands, at, sw_arena_printf(f->arena, "%s/%s", n->name, i ? "true" : "false"), NULL, n->n_results, results[i]))
      return false;
  }
  for (int r = 0; r < n->n_results; r++) {
    if (n->results[r] < 0)
      continue;
    if (!alike(&f->out->values.v[results[0][r]], &f->out->values.v[results[1][r]]))
      return refuse(f, SW_UNSUPPORTED, "give both sides results of one size and dtype", "result %d has not the same size or dtype on both sides", r);
    f->table[n->results[r]] = choose(f, f->table[n->args[0].value], results[1][r], results[0][r], r);
  }
  return true;
}

/* -- while_loop -- */

/* How often the loop turns, from the constants among its values; -1: a fault. */
static int count_turns(struct flow *f, const struct sw_graph *more, const struct sw_graph *body, int n_carried, int n, const int *operands)
{
  struct sw_evaluated *now = SW_NEW_N(f->arena, struct sw_evaluated, n + 1);
  for (int i = 0; i < n; i++)
    now[i] = known(f, operands[i]);
  for (int turns = 0;; turns++) {
    struct sw_evaluated goes_on = {.kind = SW_UNKNOWN}, *next = SW_NEW_N(f->arena, struct sw_evaluated, n + 1);
    bool yes;
    if (sw_cancelled(f->job)) {
      refuse(f, SW_CANCELLED, NULL, "stopped");
      return -1;
    }
    if (!evaluate(f, more, n, now, &goes_on))
      return -1;
    if (!truth(f, &goes_on, &yes)) {
      refuse(f, SW_UNSUPPORTED, "count the turns with a constant, or compile the body alone and loop on the host",
             "how often it turns depends on data%s", turns ? sw_arena_printf(f->arena, " (after turn %d)", turns) : "");
      return -1;
    }
    if (!yes)
      return turns;
    if (turns == LW_MAX_TURNS || (int64_t)(turns + 1) * body->nodes.n > LW_MAX_FLOW_NODES) {
      refuse(f, SW_LIMIT, "fewer turns, or compile the body alone and loop on the host", "it turns more often than %d times, or makes more than %d nodes",
             LW_MAX_TURNS, LW_MAX_FLOW_NODES);
      return -1;
    }
    if (!evaluate(f, body, n, now, next))
      return -1;
    memcpy(now, next, (size_t)n_carried * sizeof *now);
  }
}

static bool expand_while(struct flow *f)
{
  const struct sw_node *n = f->node;
  if (n->n_args < 3 || n->args[0].kind != SW_ARG_GRAPH || n->args[1].kind != SW_ARG_GRAPH || n->args[2].kind != SW_ARG_LIST)
    return refuse(f, SW_INVALID, NULL, "its arguments are no two graphs and operands");
  const struct sw_graph *more = n->args[0].graph, *body = n->args[1].graph;
  int n_carried, n_more = 0, *carried = operands_of(f, &n->args[2], &n_carried), *added = NULL;
  if (n->n_args > 3)
    added = operands_of(f, &n->args[3], &n_more);
  int count = n_carried + n_more, *operands = SW_NEW_N(f->arena, int, count + 1);
  memcpy(operands, carried, (size_t)n_carried * sizeof *operands);
  for (int i = 0; i < n_more; i++)
    operands[n_carried + i] = added[i];
  if (more->inputs.n != count || body->inputs.n != count || more->outputs.n != 1 || body->outputs.n != n_carried || n->n_results != n_carried)
    return refuse(f, SW_INVALID, NULL, "its graphs take or give another number of values than it has");
  if (!keeps_operands(f, more) || !keeps_operands(f, body))
    return false;
  int turns = count_turns(f, more, body, n_carried, count, operands), *now = in_out(f, operands, count);
  int *next = SW_NEW_N(f->arena, int, n_carried + 1);
  for (int t = 0; t < turns; t++) {
    const char *prefix = sw_arena_printf(f->arena, "%s/%d", n->name, t);
    if (!splice(f, body, count, now, prefix, t == turns - 1 ? result_names(f) : NULL, n_carried, next))
      return false;
    for (int i = 0; i < n_carried; i++) {
      if (!alike(&f->out->values.v[next[i]], &f->out->values.v[now[i]]))
        return refuse(f, SW_UNSUPPORTED, "keep sizes and dtypes", "carried value %d changes its size or dtype in turn %d", i, t);
      now[i] = next[i];
    }
  }
  for (int i = 0; turns == 0 && i < n_carried; i++)
    if (now[i] < 0)
      return refuse(f, SW_UNSUPPORTED, NULL, "carried value %d is no value", i);
  if (turns >= 0)
    set_results(f, now);
  return turns >= 0;
}

/* -- one round -- */

static void check_there(void *ctx, int value)
{
  struct flow *f = ctx;
  f->missing = f->missing || f->table[value] < 0;
}

static bool reads_dropped(struct flow *f, const struct sw_node *n)
{
  f->missing = false;
  lw_each_value(n->args, n->n_args, check_there, f);
  return f->missing;
}

static void expand(struct flow *f, const struct sw_node *n)
{
  f->node = n;
  if (!(is_cond(n) ? expand_cond(f) : expand_while(f)))
    copy_node(f, f->g, n, f->table, NULL, NULL); /* the values after it have something to read: more faults are found */
}

static const struct sw_graph *one_round(struct sw_job *job, const struct sw_options *o, const struct sw_graph *g, bool *failed)
{
  struct sw_arena *a = job->arena;
  struct flow f = {.job = job, .arena = a, .g = g, .names = {.arena = a}};
  f.l = SW_NEW(a, struct lower);
  f.out = SW_NEW(a, struct sw_graph);
  lw_begin(f.l, job, o, g);
  lw_analyse(f.l);
  *f.out = *g;
  memset(&f.out->values, 0, sizeof f.out->values);
  memset(&f.out->nodes, 0, sizeof f.out->nodes);
  memset(&f.out->inputs, 0, sizeof f.out->inputs);
  memset(&f.out->outputs, 0, sizeof f.out->outputs);
  f.table = SW_NEW_N(a, int, g->values.n);
  for (int i = 0; i < g->values.n; i++) {
    f.table[i] = -1;
    sw_map_set_str(&f.names, g->values.v[i].name, 1);
  }
  for (int i = 0; i < g->inputs.n; i++) {
    struct sw_input *c = SW_PUSH(a, &f.out->inputs);
    *c = g->inputs.v[i];
    if (c->value >= 0)
      c->value = f.table[c->value] = add_value(&f, &g->values.v[c->value], g->values.v[c->value].name, -1, g->values.v[c->value].result);
  }
  for (int i = 0; i < g->nodes.n; i++)
    if (!f.l->node_live[i] && (is_flow(&g->nodes.v[i]) || reads_dropped(&f, &g->nodes.v[i])))
      continue; /* nobody needs it */
    else if (is_flow(&g->nodes.v[i]))
      expand(&f, &g->nodes.v[i]);
    else
      copy_node(&f, g, &g->nodes.v[i], f.table, NULL, NULL);
  for (int i = 0; i < g->outputs.n; i++) {
    struct sw_output *c = SW_PUSH(a, &f.out->outputs);
    *c = g->outputs.v[i];
    c->arg = translate(&f, &g->outputs.v[i].arg, f.table);
  }
  sw_eval_forget(f.l->eval);
  *failed = f.failed;
  return f.out;
}

enum sw_rc lw_straighten(struct sw_job *job, const struct sw_options *o, const struct sw_graph **g)
{
  bool failed = false;
  for (int depth = 0; has_flow(*g); depth++) {
    if (depth == LW_MAX_FLOW_DEPTH)
      return sw_fail(job, SW_LIMIT, "cond and while_loop are nested deeper than %d", LW_MAX_FLOW_DEPTH);
    *g = one_round(job, o, *g, &failed);
    if (failed || job->worst == SW_CANCELLED)
      return job->worst;
  }
  return SW_OK;
}
