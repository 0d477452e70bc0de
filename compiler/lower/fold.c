/* What the whole graph tells before anything is lowered, and constants.
 *
 * Constant is a value that depends on no user input, no parameter and nothing that a run changes: positions, masks,
 * RoPE tables from a frequency buffer. Its nodes are computed here, in program order (an in-place op on a constant
 * writes into it as in PyTorch), and never reach the program; where a device op or an output reads such a value it
 * becomes a storage of its own, in the dtype the reader needs. */
#include "compiler/lower/lower.h"

#include <limits.h>
#include <math.h>
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

bool lw_node_writes(struct lower *l, int node)
{
  const struct sw_node *n = &l->graph->nodes.v[node];
  for (int k = 0; n->schema && k < n->n_args && k < n->schema->n_args; k++)
    if (is_written(n->schema->args[k].type) && n->args[k].kind == SW_ARG_VALUE)
      return true;
  return false;
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

static void find_constants(struct lower *l)
{
  const struct sw_graph *g = l->graph;
  /* Roots that something not constant writes into; grows until nothing changes. */
  bool *tainted = SW_NEW_N(l->arena, bool, g->values.n);
  for (int i = 0; i < g->outputs.n; i++) {
    const struct sw_output *o = &g->outputs.v[i];
    for (int k = 0; o->kind != SW_OUTPUT_USER && k < g->inputs.n; k++)
      if (g->inputs.v[k].value >= 0 && !strcmp(o->target, o->kind == SW_OUTPUT_INPUT_MUTATION || !g->inputs.v[k].target
                                                              ? g->inputs.v[k].name
                                                              : g->inputs.v[k].target)) {
        l->values[g->inputs.v[k].value].mutated = true;
        l->replaced[k] = true;
        tainted[g->inputs.v[k].value] = true;
      }
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
      lw_each_value(n->args, n->n_args, check_constant, &s);
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
    int64_t at = sw_map_get_str(&l->operations, n->target);
    bool view = at >= 0 && lw_operations[at].kind == LW_VIEW && strcmp(n->target, "aten.expand.default");
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
  l->node = node;
  if (m) {
    from[count++] = m->k < 0 ? m->q : lw_unrepeated(l, m->k);
    from[count++] = m->v < 0 ? m->q : lw_unrepeated(l, m->v);
  } else if (!strcmp(n->target, "aten.cat.default")) {
    from[count++] = lw_rotated_half(l, n);
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
    bool live = false;
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

/* -- computing constants -- */

static void check_known(void *ctx, int value)
{
  struct scan *s = ctx;
  if (s->l->graph->values.v[value].kind == SW_VALUE_TENSOR)
    s->all = s->all && sw_eval_value(s->l->eval, value)->kind != SW_UNKNOWN;
}

/* Computes the node at work if it is constant and its arguments have values. */
bool lw_fold_node(struct lower *l)
{
  const struct sw_node *n = lw_node(l);
  if (!l->node_constant[l->node])
    return false;
  struct scan s = {l, true};
  lw_each_value(n->args, n->n_args, check_known, &s);
  if (!s.all || sw_eval_node(l->eval, l->node) != SW_OK)
    return false;
  for (int r = 0; r < n->n_results; r++)
    if (n->results[r] >= 0 && sw_eval_value(l->eval, n->results[r])->kind == SW_UNKNOWN)
      return false;
  return true;
}

const struct sw_tensor *lw_constant_elements(struct lower *l, int value)
{
  if (!l->values[value].constant)
    return NULL;
  const struct sw_evaluated *e = sw_eval_value(l->eval, value);
  return e->kind == SW_TENSOR && e->tensor.cells ? &e->tensor : NULL;
}

/* -- constants as storages -- */

/* Element number i in row-major order. */
static double element(const struct sw_tensor *t, int64_t i)
{
  int64_t at = t->offset;
  for (int d = t->rank - 1; d >= 0; d--) {
    at += i % t->size[d] * t->stride[d];
    i /= t->size[d];
  }
  return t->cells->real ? t->cells->real[at] : (double)t->cells->integer[at];
}

double lw_narrowed(double x, enum sw_dtype dtype)
{
  return dtype == SW_F16 && isfinite(x) ? fmin(fmax(x, -65504), 65504) : x;
}

struct tensor lw_table(struct lower *l, const char *name, enum sw_dtype dtype, int rank, const int64_t *size,
                       const double *elements)
{
  struct tensor t = lw_new_named(l, name, dtype, rank, size, NULL);
  struct sw_storage *s = &l->program->storages.v[t.storage];
  int64_t n = sw_storage_elements(s);
  struct sw_cells cells = {.dtype = dtype, .n = n};
  if (sw_dtype_is_float(dtype)) {
    cells.real = SW_NEW_N(lw_scratch(l), double, n);
    for (int64_t i = 0; i < n; i++)
      cells.real[i] = sw_round_to(dtype, elements[i]);
  } else {
    cells.integer = SW_NEW_N(lw_scratch(l), int64_t, n);
    for (int64_t i = 0; i < n; i++)
      cells.integer[i] = dtype == SW_BOOL ? elements[i] != 0 : (int64_t)elements[i];
  }
  struct sw_tensor all = {.dtype = dtype, .rank = rank, .cells = &cells};
  memcpy(all.size, t.size, sizeof all.size);
  memcpy(all.stride, t.stride, sizeof all.stride);
  s->kind = SW_STORAGE_CONSTANT;
  s->data = sw_tensor_bytes(l->arena, &all, &s->n_bytes);
  return t;
}

double *lw_constant_doubles(struct lower *l, int value)
{
  const struct sw_tensor *e = lw_constant_elements(l, value);
  int64_t n = sw_value_elements(&l->graph->values.v[value]);
  double *x = SW_NEW_N(lw_scratch(l), double, n);
  for (int64_t i = 0; e && i < n; i++)
    x[i] = element(e, i);
  return x;
}

static struct tensor whole(struct lower *l, int storage)
{
  const struct sw_storage *s = &l->program->storages.v[storage];
  struct tensor t = {.storage = storage, .dtype = s->dtype, .rank = s->rank};
  memcpy(t.size, s->size, sizeof t.size);
  memcpy(t.stride, s->stride, sizeof t.stride);
  return t;
}

struct tensor lw_cached(struct lower *l, struct lw_table_key key)
{
  int64_t at = sw_map_get(&l->tables, &key, sizeof key);
  return at < 0 ? lw_unknown() : whole(l, (int)at);
}

void lw_cache(struct lower *l, struct lw_table_key key, struct tensor t)
{
  if (lw_known(t))
    sw_map_set(&l->tables, &key, sizeof key, t.storage);
}

struct sw_arena *lw_scratch(struct lower *l)
{
  if (!l->scratch)
    l->scratch = sw_arena_new(l->arena, SIZE_MAX);
  return l->scratch ? l->scratch : l->arena;
}

struct tensor lw_constant_value(struct lower *l, int value, enum sw_dtype dtype)
{
  const struct sw_value *v = &l->graph->values.v[value];
  if (!lw_constant_elements(l, value))
    return lw_unknown();
  enum sw_dtype own = lw_dtype_of_value(l, value);
  if (dtype == SW_N_DTYPES)
    dtype = own;
  struct lw_table_key key = {LW_TABLE_VALUE, value, 0, dtype};
  bool keep = !l->values[l->values[value].root].mutated;
  struct tensor known = keep ? lw_cached(l, key) : lw_unknown();
  if (lw_known(known))
    return known;
  int64_t n = sw_value_elements(v);
  double *x = lw_constant_doubles(l, value);
  bool uniform = n > 0;
  for (int64_t i = 0; i < n; i++)
    x[i] = lw_narrowed(x[i], dtype);
  for (int64_t i = 0; i < n; i++)
    uniform = uniform && memcmp(&x[i], &x[0], sizeof *x) == 0;
  if (uniform && !l->best && n > 1 && (dtype == SW_F16 || dtype == SW_BF16 || dtype == SW_F32)) {
    struct tensor t = lw_fill(l, x[0], dtype, v->rank, v->size, v->stride); /* the reference writes it, ops.md 2.6 */
    if (keep)
      lw_cache(l, key, t);
    return t;
  }
  if (uniform && sw_dtype_is_float(dtype))
    return lw_expand(l, lw_scalar(l, x[0], dtype), v->rank, v->size);
  const char *name = dtype == own ? v->name : sw_arena_printf(l->arena, "%s:%s", v->name, sw_dtype_text(dtype));
  struct tensor t = lw_table(l, name, dtype, v->rank, v->size, x);
  if (keep)
    lw_cache(l, key, t);
  return t;
}

/* -- values as tensors -- */

static struct tensor input_tensor(struct lower *l, int value)
{
  const struct sw_graph *g = l->graph;
  const struct sw_value *v = &g->values.v[value];
  int k = l->input_of[value];
  struct tensor t = lw_new_named(l, v->name, v->dtype, v->rank, v->size, v->stride);
  struct sw_storage *s = &l->program->storages.v[t.storage];
  s->input = k;
  switch (g->inputs.v[k].kind) {
  case SW_INPUT_PARAMETER:
    s->kind = SW_STORAGE_PARAMETER;
    break;
  case SW_INPUT_USER:
    s->kind = SW_STORAGE_INPUT;
    break;
  default:
    s->kind = SW_STORAGE_BUFFER;
  }
  return t;
}

/* Where the contents of a storage are now; the way there is shortened. */
static int newest(struct lower *l, int storage)
{
  int at = storage;
  while (at >= 0 && lw_storage(l, at)->moved)
    at = lw_storage(l, at)->moved - 1;
  while (storage != at) {
    int next = lw_storage(l, storage)->moved - 1;
    lw_storage(l, storage)->moved = at + 1;
    storage = next;
  }
  return at;
}

struct tensor lw_tensor_of_value(struct lower *l, int value)
{
  struct tensor *t = &l->tensors[value];
  if (t->storage != LW_LATER) {
    struct tensor now = *t;
    now.storage = newest(l, t->storage);
    return now;
  }
  const struct sw_value *v = &l->graph->values.v[value];
  struct tensor made;
  if (v->node < 0 && !(sw_value_elements(v) == 1 && lw_constant_elements(l, value)))
    made = input_tensor(l, value);
  else
    made = lw_constant_value(l, value, SW_N_DTYPES);
  if (v->node < 0 || !l->values[l->values[value].root].mutated)
    *t = made;
  if (v->node < 0 && lw_known(made)) {
    lw_storage(l, made.storage)->last_use = l->values[value].last_use;
    lw_storage(l, made.storage)->mutated = l->values[value].mutated;
  }
  return made;
}

bool lw_is_last_use(struct lower *l, int value, int storage)
{
  int input = l->input_of[l->values[value].root];
  if (l->program->storages.v[storage].kind != SW_STORAGE_TEMPORARY && (input < 0 || !l->replaced[input]))
    return false;
  int last = l->values[l->values[value].root].last_use, any = lw_storage(l, storage)->last_use;
  return last <= l->node && any <= l->node;
}

static void check_tensor(void *ctx, int value)
{
  struct scan *s = ctx;
  if (s->l->graph->values.v[value].kind == SW_VALUE_TENSOR)
    s->all = s->all && lw_known(lw_tensor_of_value(s->l, value));
}

/* False when an argument is unknown, so that its fault stands already. */
bool lw_arguments_known(struct lower *l)
{
  struct scan s = {l, true};
  lw_each_value(lw_node(l)->args, lw_node(l)->n_args, check_tensor, &s);
  return s.all;
}

static void touch(void *ctx, int value)
{
  struct lower *l = ctx;
  if (l->graph->values.v[value].kind == SW_VALUE_TENSOR && l->input_of[value] >= 0)
    lw_tensor_of_value(l, value);
}

/* Graph inputs become storages in order of first use, whatever the node's function does with them. */
void lw_touch_arguments(struct lower *l)
{
  lw_each_value(lw_node(l)->args, lw_node(l)->n_args, touch, l);
}
