/* What the whole graph tells before anything is lowered: which values are views of one tensor, which are constant, which
 * somebody needs, and until when.
 *
 * Constant is a value that depends on no user input, no parameter and nothing that a run changes: positions, masks,
 * RoPE tables from a frequency buffer, zeros of an input's size. Its nodes are computed by fold.c, in program order. */
#include "compiler/lower/lower.h"

#include <limits.h>
#include <string.h>

enum { MAX_FOLDED_MB = 256 };

/* The alias letter of a schema type: 'a' of "Tensor(a!)", 0 for a fresh one. */
static char alias_letter(const char *type)
{
  return strncmp(type, "Tensor(", 7) ? 0 : type[7];
}

static bool is_written(const char *type)
{
  const char *close = strchr(type, ')');
  return alias_letter(type) && close && memchr(type, '!', (size_t)(close - type));
}

void lw_each_value(const struct sw_arg *args, int n, void (*fn)(void *ctx, int value), void *ctx)
{
  for (int i = 0; i < n; i++)
    if (args[i].kind == SW_ARG_VALUE)
      fn(ctx, args[i].value);
    else if (args[i].kind == SW_ARG_LIST)
      lw_each_value(args[i].list.v, args[i].list.n, fn, ctx);
}

static void find_aliases(struct lower *l)
{
  const struct sw_graph *g = l->graph;
  for (int v = 0; v < g->values.n; v++)
    l->values[v].root = v;
  for (int i = 0; i < g->nodes.n; i++) {
    const struct sw_node *n = &g->nodes.v[i];
    if (!n->schema)
      continue;
    for (int k = 0; k < n->n_args && k < n->schema->n_args; k++) {
      const char *type = n->schema->args[k].type;
      char letter = alias_letter(type);
      if (!letter || n->args[k].kind != SW_ARG_VALUE)
        continue;
      int root = l->values[n->args[k].value].root;
      if (is_written(type))
        l->values[root].mutated = true;
      for (int r = 0; r < n->n_results && n->schema->n_returns > 0; r++) {
        const char *returns = n->schema->returns[n->schema->n_returns == n->n_results ? r : 0];
        if (alias_letter(returns) == letter && n->results[r] >= 0)
          l->values[n->results[r]].root = root;
      }
    }
  }
}

bool lw_is_fresh(struct lower *l, int result)
{
  const struct sw_node *n = lw_node(l);
  return n->schema && n->schema->n_returns > 0 &&
         !alias_letter(n->schema->returns[n->schema->n_returns == n->n_results ? result : 0]);
}

bool lw_node_writes(const struct lower *l, int node)
{
  const struct sw_node *n = &l->graph->nodes.v[node];
  for (int k = 0; n->schema && k < n->n_args && k < n->schema->n_args; k++)
    if (is_written(n->schema->args[k].type) && n->args[k].kind == SW_ARG_VALUE)
      return true;
  return false;
}

/* Whether a node that nobody reads may still matter: an overload that is not known here, and by its name or by what becomes of its
 * result writes into a tensor; norms that keep statistics, which their schemas do not tell. Such nodes are lowered, that is refused. */
static bool has_effect(const struct lower *l, const struct sw_node *n)
{
  static const char *const norms[][2] = {{"aten.instance_norm.default", "use_input_stats"}, {"aten.batch_norm.default", "training"}};
  for (size_t i = 0; i < sizeof norms / sizeof norms[0]; i++) {
    const struct sw_arg *mean = sw_node_arg(n, "running_mean"), *training = sw_node_arg(n, norms[i][1]);
    if (!strcmp(n->target, norms[i][0]) && mean && mean->kind == SW_ARG_VALUE && training && training->kind == SW_ARG_BOOL && training->i)
      return true;
  }
  if (n->schema)
    return false;
  for (int r = 0; r < n->n_results; r++)
    if (n->results[r] >= 0 && l->values[n->results[r]].mutated)
      return true;
  static const char *const pure[] = {"aten.", "prims.", "_operator.", "math.", "torch.sym_", "higher_order.cond", "higher_order.while_loop"};
  bool known = false;
  for (size_t i = 0; i < sizeof pure / sizeof pure[0]; i++)
    known = known || !strncmp(n->target, pure[i], strlen(pure[i]));
  size_t length = strlen(n->target);
  return !known || strstr(n->target, "_.") || (length > 3 && !strcmp(n->target + length - 3, "out"));
}

/* -- constness -- */

struct scan {
  struct lower *l;
  bool all; /* so far */
};

static void check_constant(void *ctx, int value)
{
  struct scan *s = ctx;
  const struct sw_value *v = &s->l->graph->values.v[value];
  bool known = v->kind == SW_VALUE_TENSOR ? s->l->values[value].constant : v->kind == SW_VALUE_SYM_INT;
  s->all = s->all && known && !v->expr && !v->size_expr;
}

static bool is_random(const char *target)
{
  return strstr(target, "rand") || strstr(target, "normal_") || strstr(target, "uniform_") ||
         strstr(target, "bernoulli") || strstr(target, "multinomial");
}

/* The reference folds uniform tensors through pointwise ops, but reduces them on the device
 * (restickify case amax_full). */
static bool is_reduced_on_device(const struct lower *l, const struct sw_node *n)
{
  static const char *const reductions[] = {"aten.amax.default", "aten.amin.default", "aten.sum.dim_IntList", "aten.mean.dim"};
  if (l->best || n->n_results != 1 || n->results[0] < 0 || l->graph->values.v[n->results[0]].dtype != SW_F16)
    return false;
  for (size_t i = 0; i < sizeof reductions / sizeof reductions[0]; i++)
    if (!strcmp(n->target, reductions[i]))
      return true;
  return false;
}

/* Arguments at the front of which a node needs the size alone. The reference writes zeros_like on the device. */
int lw_n_for_size(const struct lower *l, const struct sw_node *n)
{
  return l->best && n->n_args > 0 && sw_eval_needs_size_only(n->target);
}

static void find_constants(struct lower *l)
{
  const struct sw_graph *g = l->graph;
  /* Roots that something not constant writes into; grows until nothing changes. */
  bool *tainted = SW_NEW_N(l->arena, bool, g->values.n);
  for (int i = 0; i < g->outputs.n; i++) {
    const struct sw_output *o = &g->outputs.v[i];
    if (o->kind == SW_OUTPUT_USER || g->inputs.v[o->input].value < 0)
      continue;
    int value = g->inputs.v[o->input].value;
    l->values[value].mutated = true;
    l->replaced[o->input] = true;
    tainted[value] = true;
  }
  for (int k = 0; k < g->inputs.n; k++) {
    const struct sw_input *in = &g->inputs.v[k];
    if (in->value < 0)
      continue;
    struct lw_value *v = &l->values[in->value];
    if (in->kind == SW_INPUT_USER || in->kind == SW_INPUT_PARAMETER || v->mutated)
      tainted[in->value] = true;
    else
      v->constant = true;
  }
  for (bool again = true; again;) {
    again = false;
    for (int i = 0; i < g->nodes.n; i++) {
      const struct sw_node *n = &g->nodes.v[i];
      struct scan s = {l, n->schema && !is_random(n->target) && sw_eval_knows(n->target)};
      int from = lw_n_for_size(l, n);
      lw_each_value(n->args + from, n->n_args - from, check_constant, &s);
      for (int r = 0; r < n->n_results; r++)
        if (n->results[r] >= 0) { /* what is written into later, by whatever, has to be in the program from the start */
          const struct sw_value *v = &g->values.v[n->results[r]];
          s.all = s.all && v->kind == SW_VALUE_TENSOR && !v->size_expr && !tainted[l->values[n->results[r]].root];
        }
      s.all = s.all && !is_reduced_on_device(l, n);
      l->node_constant[i] = s.all;
      for (int r = 0; r < n->n_results; r++)
        if (n->results[r] >= 0)
          l->values[n->results[r]].constant = s.all;
      if (s.all)
        continue;
      for (int k = 0; n->schema && k < n->n_args && k < n->schema->n_args; k++) {
        if (!is_written(n->schema->args[k].type) || n->args[k].kind != SW_ARG_VALUE)
          continue;
        int root = l->values[n->args[k].value].root;
        if (!tainted[root]) {
          tainted[root] = again = true;
          l->values[root].constant = false;
        }
      }
    }
  }
}

/* -- liveness, backwards -- */

struct use {
  struct lower *l;
  int node;
};

static void count_reader(void *ctx, int value)
{
  struct use *u = ctx;
  u->l->values[value].reader = u->node;
  u->l->values[value].n_readers++;
}

static void count_readers(struct lower *l)
{
  const struct sw_graph *g = l->graph;
  for (int i = 0; i < g->nodes.n; i++) {
    struct use u = {l, i};
    if (strcmp(g->nodes.v[i].target, "aten._assert_tensor_metadata.default"))
      lw_each_value(g->nodes.v[i].args, g->nodes.v[i].n_args, count_reader, &u);
  }
  for (int i = 0; i < g->outputs.n; i++) {
    struct use u = {l, -1};
    lw_each_value(&g->outputs.v[i].arg, 1, count_reader, &u);
  }
}

/* Reference: strides.c. A product of two matrices is an mm, whatever it is called. */
static void find_pinned(struct lower *l)
{
  const struct sw_graph *g = l->graph;
  for (int i = 0; i < g->outputs.n; i++)
    if (g->outputs.v[i].kind == SW_OUTPUT_USER && g->outputs.v[i].arg.kind == SW_ARG_VALUE)
      l->values[g->outputs.v[i].arg.value].pinned = true;
  for (int i = 0; i < g->nodes.n; i++) {
    const struct sw_node *n = &g->nodes.v[i];
    if (strcmp(n->target, "aten.mm.default") && strcmp(n->target, "aten.matmul.default") && strcmp(n->target, "aten.linear.default") &&
        strcmp(n->target, "aten.addmm.default"))
      continue;
    for (int k = 0; k < n->n_args; k++)
      if (n->args[k].kind == SW_ARG_VALUE && g->values.v[n->results[0]].rank == 2)
        l->values[n->args[k].value].pinned = true;
  }
}

static void look_at(void *ctx, int value)
{
  struct lower *l = ctx;
  l->values[value].looked_at = true;
}

/* Elements that a node reduces to one; 1: it reduces nothing. */
static int64_t reduced_elements(const struct lower *l, const struct sw_node *n)
{
  static const char *const names[] = {"aten.amax.default", "aten.amin.default", "aten.sum.dim_IntList", "aten.mean.dim",
                                      "aten.softmax.int", "aten._softmax.default"};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    if (strcmp(n->target, names[i]) || n->args[0].kind != SW_ARG_VALUE)
      continue;
    const struct sw_value *x = &l->graph->values.v[n->args[0].value];
    const struct sw_arg *dims = sw_node_arg(n, "dim");
    int64_t count = 1;
    if (dims && dims->kind == SW_ARG_INT && x->rank)
      return x->size[lw_dim(dims->i, x->rank)];
    for (int k = 0; dims && dims->kind == SW_ARG_LIST && k < dims->list.n && x->rank; k++)
      count *= x->size[lw_dim(dims->list.v[k].i, x->rank)];
    return count;
  }
  return 1;
}

/* Reference: strides.c. */
static void find_looked_at(struct lower *l)
{
  for (int i = 0; i < l->graph->nodes.n; i++) {
    const struct sw_node *n = &l->graph->nodes.v[i];
    const struct lw_operation *o = lw_operation_of(l, n);
    bool view = o && o->kind == LW_VIEW && strcmp(n->target, "aten.expand.default");
    if (view || reduced_elements(l, n) > LW_LONG_REDUCTION)
      lw_each_value(n->args, n->n_args, look_at, l);
  }
}

static void mark_use(void *ctx, int value)
{
  struct use *u = ctx;
  struct lw_value *v = &u->l->values[value], *root = &u->l->values[v->root];
  v->live = true;
  if (root->last_use < u->node)
    root->last_use = u->node;
  root->root_live = true;
}

/* Operands that the node may read instead of its own: before they were flattened, repeated or cut in halves (pattern.c).
 * They must keep their elements until then. */
static void extend_uses(struct lower *l, int node)
{
  const struct sw_node *n = &l->graph->nodes.v[node];
  const struct lw_match *m = l->matches[node];
  int from[SW_MAX_INPUTS], count = 0;
  struct lw_instances instances;
  l->node = node;
  if (m) {
    from[count++] = m->k < 0 ? m->q : lw_unrepeated(l, m->k);
    from[count++] = m->v < 0 ? m->q : lw_unrepeated(l, m->v);
  } else if (!strcmp(n->target, "aten.cat.default")) {
    from[count++] = lw_rotated_half(l, n);
  } else if (lw_find_instances(l, n, &instances)) {
    from[count++] = instances.x;
    from[count++] = instances.weight;
    from[count++] = instances.bias;
  } else if (!strcmp(n->target, "aten.mm.default") || !strcmp(n->target, "aten.bmm.default") ||
             !strcmp(n->target, "aten.addmm.default") || !strcmp(n->target, "aten.scaled_dot_product_attention.default")) {
    int kept = strcmp(n->target, "aten.bmm.default") ? 1 : 2;
    bool heads = strstr(n->target, "attention") != NULL;
    for (int k = 0; k < 3 && k < n->n_args; k++)
      if (n->args[k].kind == SW_ARG_VALUE)
        from[count++] = heads ? lw_unrepeated(l, n->args[k].value) : lw_unflattened(l, n->args[k].value, kept);
  }
  for (int k = 0; k < count; k++)
    if (from[k] >= 0) {
      struct lw_value *root = &l->values[l->values[from[k]].root];
      root->last_use = root->last_use < node ? node : root->last_use;
    }
}

static void find_live(struct lower *l)
{
  const struct sw_graph *g = l->graph;
  for (int v = 0; v < g->values.n; v++)
    l->values[v].last_use = -1;
  for (int i = 0; i < g->outputs.n; i++) {
    struct use u = {l, INT_MAX};
    lw_each_value(&g->outputs.v[i].arg, 1, mark_use, &u);
    if (g->outputs.v[i].arg.kind == SW_ARG_VALUE)
      l->values[l->values[g->outputs.v[i].arg.value].root].output = true;
  }
  for (int i = g->nodes.n - 1; i >= 0; i--) {
    const struct sw_node *n = &g->nodes.v[i];
    bool live = has_effect(l, n);
    for (int r = 0; r < n->n_results; r++)
      live = live || (n->results[r] >= 0 && l->values[n->results[r]].live);
    for (int k = 0; !live && n->schema && k < n->n_args && k < n->schema->n_args; k++)
      if (is_written(n->schema->args[k].type) && n->args[k].kind == SW_ARG_VALUE) {
        int root = l->values[n->args[k].value].root;
        live = l->values[root].root_live || g->values.v[root].node < 0;
      }
    l->node_live[i] = live;
    if (!live)
      continue;
    struct use u = {l, i};
    const struct lw_match *m = l->matches[i];
    extend_uses(l, i);
    if (!m) {
      lw_each_value(n->args, n->n_args, mark_use, &u);
      continue;
    }
    const int values[] = {m->q, m->k, m->v, m->mask};
    for (int k = 0; k < 4; k++)
      if (values[k] >= 0)
        mark_use(&u, values[k]);
  }
}

enum sw_rc lw_analyse(struct lower *l)
{
  const struct sw_graph *g = l->graph;
  l->values = SW_NEW_N(l->arena, struct lw_value, g->values.n);
  l->node_live = SW_NEW_N(l->arena, bool, g->nodes.n);
  l->node_constant = SW_NEW_N(l->arena, bool, g->nodes.n);
  l->replaced = SW_NEW_N(l->arena, bool, g->inputs.n);
  l->input_of = SW_NEW_N(l->arena, int, g->values.n);
  for (int v = 0; v < g->values.n; v++)
    l->input_of[v] = -1;
  for (int k = 0; k < g->inputs.n; k++)
    if (g->inputs.v[k].value >= 0)
      l->input_of[g->inputs.v[k].value] = k;
  find_aliases(l);
  find_constants(l);
  count_readers(l);
  find_pinned(l);
  find_looked_at(l);
  lw_find_patterns(l);
  find_live(l);
  lw_find_narrow(l);
  l->eval = sw_eval_new(l->job, g, SW_ROUND_DTYPE, (size_t)MAX_FOLDED_MB << 20);
  for (int v = 0; v < g->values.n; v++)
    if (g->values.v[v].kind == SW_VALUE_SYM_INT && !g->values.v[v].expr)
      sw_eval_set_number(l->eval, v, (struct sw_number){.kind = SW_NUMBER_INT, .i = g->values.v[v].hint});
  for (int k = 0; k < g->inputs.n; k++)
    if (g->inputs.v[k].value >= 0 && l->values[g->inputs.v[k].value].constant && l->values[g->inputs.v[k].value].live)
      sw_eval_load(l->eval, k);
  return SW_OK;
}

