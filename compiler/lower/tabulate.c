/* Host steps that compute a function of one integer, as look-ups on the device. In a decoder the cosines and sines of the
 * position, the row of the mask and the next position all depend on a counter that a buffer or an input holds. Which
 * values it can have follows from its use: as a row number of a cache of 64 rows it is one of 0 .. 63. So the function is
 * computed for each of them at compile time, and the device gathers the row:
 *
 *   p : i64[1], cache[p] = k            T[r] = cos((r + 0) * f) for r = 0 .. 63        cos = T[p]
 *
 * A number is gathered as a row of two and its first element copied; one that is the counter itself is a copy. A run with another
 * counter is refused, as PyTorch would (docs/formats.md, rows). Profile best. */
#include "compiler/lower/lower.h"

#include <string.h>

enum { MOST_ROWS = 1 << 16, MOST_ELEMENTS = 1 << 23, ALL_ELEMENTS = 1 << 25 };

/* What a storage holds. */
struct holds {
  enum { UNKNOWN, KNOWN, FUNCTION } kind;
  int cursor, version; /* of a function: the storage of its integer, and how often that had been written by then */
  int made_by;         /* the step */
};

struct tabulate {
  struct lower *l;
  struct sw_program *p;
  const struct sw_step *old; /* the steps before */
  int n_old;
  struct holds *holds; /* per storage */
  int *version, *writers; /* per storage: writes so far; in all */
  int64_t *rows;       /* per storage: its range as a row number, 0: it is none */
  int64_t *range;      /* per storage: values that a cursor can have, 0: unknown */
  int *range_version;
  int64_t elements;    /* of all tables */
};

static const struct sw_host_step *host_at(const struct tabulate *t, int step)
{
  return &t->p->host_steps.v[t->old[step].index];
}

static bool is_one_integer(const struct sw_storage *s)
{
  return sw_storage_elements(s) == 1 && (s->dtype == SW_I64 || s->dtype == SW_I32);
}

static bool is_row_major(const struct sw_storage *s)
{
  int64_t n = 1;
  for (int d = s->rank - 1; d >= 0; n *= s->size[d--])
    if (s->size[d] > 1 && s->stride[d] != n)
      return false;
  return true;
}

/* Calls fn for every view among arguments; stops at the first false. */
static bool each_view(const struct sw_host_arg *args, int n, bool (*fn)(void *ctx, const struct sw_view *v), void *ctx)
{
  for (int i = 0; i < n; i++)
    if ((args[i].kind == SW_HOST_VIEW && !fn(ctx, &args[i].view)) ||
        (args[i].kind == SW_HOST_LIST && !each_view(args[i].list, args[i].n_list, fn, ctx)))
      return false;
  return true;
}

/* -- the host steps behind a result, as a graph -- */

struct operand {
  int value;
  struct sw_view view;
};

struct link {
  int step, first; /* its first operand */
};

struct chain {
  struct sw_arena *arena, *row; /* of the chain; of the latest value computed, which the evaluator holds on to */
  struct sw_graph graph;
  struct sw_job job;
  struct sw_eval *eval;
  SW_VEC(struct link) links; /* one per node */
  SW_VEC(struct operand) operands;
  struct sw_tensor *now;     /* per storage: its contents, or cells NULL */
};

static struct sw_arg as_argument(struct chain *c, const struct sw_host_arg *h)
{
  struct sw_arg out = {.kind = SW_ARG_NONE, .given = true};
  if (h->kind == SW_HOST_LITERAL)
    return h->literal;
  if (h->kind == SW_HOST_VIEW) {
    out.kind = SW_ARG_VALUE;
    out.value = c->graph.values.n;
    *SW_PUSH(c->arena, &c->graph.values) = (struct sw_value){.node = -1};
    *SW_PUSH(c->arena, &c->operands) = (struct operand){out.value, h->view};
  } else if (h->kind == SW_HOST_LIST) {
    out.kind = SW_ARG_LIST;
    out.list.n = h->n_list;
    out.list.v = SW_NEW_N(c->arena, struct sw_arg, h->n_list);
    for (int i = 0; i < h->n_list; i++)
      out.list.v[i] = as_argument(c, &h->list[i]);
  }
  return out;
}

static bool add_node(struct tabulate *t, struct chain *c, int step)
{
  const struct sw_host_step *h = host_at(t, step);
  const struct sw_schema *schema = sw_schema_find(h->target);
  if (!schema)
    return false;
  *SW_PUSH(c->arena, &c->links) = (struct link){step, c->operands.n};
  struct sw_node n = {.name = h->name, .target = h->target, .schema = schema, .n_args = schema->n_args};
  n.args = SW_NEW_N(c->arena, struct sw_arg, schema->n_args);
  for (int i = 0; i < schema->n_args; i++)
    n.args[i] = schema->args[i].def;
  for (int i = 0, at = 0; i < h->args.n; i++) {
    const struct sw_host_arg *x = &h->args.v[i];
    int k = x->name ? 0 : at++;
    while (x->name && k < schema->n_args && strcmp(schema->args[k].name, x->name) != 0)
      k++;
    if (k >= schema->n_args)
      return false;
    n.args[k] = as_argument(c, x);
  }
  for (int i = 0; i < schema->n_args; i++)
    n.args[i].name = schema->args[i].name;
  n.n_results = h->results.n;
  n.results = SW_NEW_N(c->arena, int, h->results.n);
  for (int r = 0; r < h->results.n; r++) {
    const struct sw_view *v = &h->results.v[r];
    n.results[r] = v->storage < 0 ? -1 : c->graph.values.n;
    if (v->storage < 0)
      continue;
    struct sw_value *x = SW_PUSH(c->arena, &c->graph.values);
    *x = (struct sw_value){.name = h->name, .dtype = t->p->storages.v[v->storage].dtype, .rank = v->rank, .node = -1};
    x->size = sw_arena_copy(c->arena, v->size, (size_t)v->rank, sizeof *v->size);
    x->stride = sw_arena_copy(c->arena, v->stride, (size_t)v->rank, sizeof *v->stride);
  }
  *SW_PUSH(c->arena, &c->graph.nodes) = n;
  return true;
}

struct collecting {
  struct tabulate *t;
  bool *needed; /* per step */
};

static bool collect(void *ctx, const struct sw_view *v)
{
  struct collecting *x = ctx;
  const struct holds *h = &x->t->holds[v->storage];
  if (h->kind != FUNCTION || h->cursor == v->storage || x->needed[h->made_by])
    return true;
  x->needed[h->made_by] = true;
  const struct sw_host_step *step = host_at(x->t, h->made_by);
  return each_view(step->args.v, step->args.n, collect, ctx);
}

/* Elements of a buffer that nobody changes, where the file has them. */
static const struct sw_tensor *stored(struct lower *l, const struct sw_storage *s)
{
  int value = s->kind == SW_STORAGE_BUFFER && s->input >= 0 ? l->graph->inputs.v[s->input].value : -1;
  return value < 0 ? NULL : lw_constant_elements(l, value);
}

/* Elements of a storage that no step makes. */
static bool load(struct lower *l, struct sw_arena *a, const struct sw_storage *s, struct sw_tensor *out)
{
  const struct sw_tensor *buffer = stored(l, s);
  size_t n;
  if (buffer) {
    const void *bytes = sw_tensor_bytes(a, buffer, &n);
    sw_tensor_from_bytes(a, out, s->dtype, s->rank, s->size, bytes);
    return true;
  }
  if (s->kind == SW_STORAGE_CONSTANT && s->data) {
    sw_tensor_from_bytes(a, out, s->dtype, s->rank, s->size, s->data);
    return true;
  }
  if (s->kind != SW_STORAGE_SCALAR)
    return false;
  struct sw_cells *cells = SW_NEW(a, struct sw_cells);
  *cells = (struct sw_cells){.dtype = s->dtype, .n = 1, .readers = 1};
  if (sw_dtype_is_float(s->dtype)) {
    cells->real = SW_NEW(a, double);
    *cells->real = s->fill;
  } else {
    cells->integer = SW_NEW(a, int64_t);
    *cells->integer = (int64_t)s->fill;
  }
  *out = (struct sw_tensor){.dtype = s->dtype, .cells = cells};
  return true;
}

static bool build(struct tabulate *t, int last, struct chain *c)
{
  struct sw_arena *a = sw_arena_new(t->l->arena, 0);
  struct collecting x = {t, SW_NEW_N(a, bool, last + 1)};
  *c = (struct chain){.arena = a, .job = {.arena = a}, .now = SW_NEW_N(a, struct sw_tensor, t->p->storages.n)};
  const struct sw_host_step *h = host_at(t, last);
  each_view(h->args.v, h->args.n, collect, &x);
  x.needed[last] = true;
  for (int i = 0; i <= last; i++)
    if (x.needed[i] && !add_node(t, c, i))
      return false;
  for (int i = 0; i < c->operands.n; i++) {
    int s = c->operands.v[i].view.storage;
    if (t->holds[s].kind == KNOWN && !c->now[s].cells && !load(t->l, a, &t->p->storages.v[s], &c->now[s]))
      return false;
  }
  c->eval = sw_eval_new(&c->job, &c->graph, SW_ROUND_DTYPE, (size_t)1 << 28);
  return true;
}

/* The first result of the last step for one value of the cursor, valid until the next; cells NULL: it can't be computed. */
static struct sw_tensor compute(struct tabulate *t, struct chain *c, int cursor, int64_t value)
{
  struct sw_arena *a = sw_arena_new(c->arena, 0);
  struct sw_tensor x = {.dtype = t->p->storages.v[cursor].dtype}, none = {0};
  x.cells = SW_NEW(a, struct sw_cells);
  *x.cells = (struct sw_cells){.dtype = x.dtype, .n = 1, .readers = 1, .integer = SW_NEW(a, int64_t)};
  *x.cells->integer = value;
  c->now[cursor] = x;
  for (int i = 0; i < c->links.n; i++) {
    int end = i + 1 < c->links.n ? c->links.v[i + 1].first : c->operands.n;
    for (int k = c->links.v[i].first; k < end; k++) {
      const struct sw_view *v = &c->operands.v[k].view;
      x = c->now[v->storage];
      if (!x.cells)
        return none;
      x.rank = v->rank;
      x.offset = v->offset;
      memcpy(x.size, v->size, sizeof x.size);
      memcpy(x.stride, v->stride, sizeof x.stride);
      sw_eval_set(c->eval, c->operands.v[k].value, &x);
    }
    if (sw_eval_node(c->eval, i) != SW_OK)
      return none;
    const struct sw_node *n = &c->graph.nodes.v[i];
    const struct sw_host_step *h = host_at(t, c->links.v[i].step);
    for (int r = n->n_results - 1; r >= 0; r--) {
      const struct sw_evaluated *v = n->results[r] < 0 ? NULL : sw_eval_value(c->eval, n->results[r]);
      if (v && v->kind != SW_TENSOR)
        return none;
      size_t bytes;
      if (v) {
        const void *data = sw_tensor_bytes(a, &v->tensor, &bytes);
        sw_tensor_from_bytes(a, &x, v->tensor.dtype, v->tensor.rank, v->tensor.size, data);
        c->now[h->results.v[r].storage] = x;
      }
    }
  }
  sw_arena_free(c->row);
  c->row = a;
  return x;
}

/* -- which steps -- */

static bool note_view(void *ctx, const struct sw_view *v)
{
  struct tabulate *t = ((void **)ctx)[0];
  struct holds *so_far = ((void **)ctx)[1], *h = &t->holds[v->storage];
  const struct sw_storage *s = &t->p->storages.v[v->storage];
  if (h->kind == KNOWN)
    return true;
  struct holds own = *h;
  if (h->kind == UNKNOWN) {
    if (!is_one_integer(s) || s->kind == SW_STORAGE_CONSTANT)
      return false;
    own = (struct holds){FUNCTION, v->storage, t->version[v->storage], -1};
  }
  if (own.version != t->version[own.cursor] ||
      (so_far->kind == FUNCTION && (own.cursor != so_far->cursor || own.version != so_far->version)))
    return false;
  *so_far = own;
  return true;
}

/* A step with one result that is a function of one integer. */
static bool is_function(struct tabulate *t, const struct sw_host_step *h, struct holds *out)
{
  void *ctx[] = {t, out};
  *out = (struct holds){.kind = KNOWN};
  if (h->results.n != 1 || h->results.v[0].storage < 0 || !sw_eval_knows(h->target) ||
      !each_view(h->args.v, h->args.n, note_view, ctx))
    return false;
  int r = h->results.v[0].storage;
  return out->kind == FUNCTION && is_row_major(&t->p->storages.v[r]) &&
         ((t->writers[r] == 1 && t->p->storages.v[r].kind == SW_STORAGE_TEMPORARY) || r == out->cursor);
}

static void set_range(struct tabulate *t, int cursor, int version, int64_t n)
{
  if (n && (!t->range[cursor] || (t->range_version[cursor] == version && n < t->range[cursor]))) {
    t->range[cursor] = n;
    t->range_version[cursor] = version;
  }
}

/* A cursor that is a row number itself. */
static void use_rows(struct tabulate *t, const struct sw_op *op, const struct sw_access *x)
{
  int s = x->index_input < 0 ? -1 : op->in[x->index_input].storage;
  if (s >= 0 && t->holds[s].kind == UNKNOWN && is_one_integer(&t->p->storages.v[s]) && x->index_range <= MOST_ROWS)
    set_range(t, s, t->version[s], x->index_range);
}

static void find_functions(struct tabulate *t)
{
  for (int s = 0; s < t->p->storages.n; s++) {
    const struct sw_storage *x = &t->p->storages.v[s];
    bool known = x->kind == SW_STORAGE_SCALAR ||
                 (is_row_major(x) && ((x->kind == SW_STORAGE_CONSTANT && x->data) || (!t->writers[s] && stored(t->l, x))));
    t->holds[s] = (struct holds){.kind = known ? KNOWN : UNKNOWN};
  }
  for (int i = 0; i < t->n_old; i++) {
    struct holds h;
    if (!t->old[i].is_host) {
      const struct sw_op *op = &t->p->ops.v[t->old[i].index];
      use_rows(t, op, &op->out);
      for (int k = 0; k < op->n_in; k++)
        use_rows(t, op, &op->in[k]);
      t->version[op->out.storage]++;
      continue;
    }
    const struct sw_host_step *step = host_at(t, i);
    bool is = is_function(t, step, &h);
    for (int r = 0; r < step->results.n; r++)
      if (step->results.v[r].storage >= 0)
        t->version[step->results.v[r].storage]++;
    h.made_by = i;
    if (is && step->results.v[0].storage != h.cursor)
      t->holds[step->results.v[0].storage] = h;
  }
}

static void find_rows(struct tabulate *t, const struct sw_op *op, const struct sw_access *x)
{
  if (x->index_input < 0)
    return;
  int64_t *rows = &t->rows[op->in[x->index_input].storage];
  if (!*rows || x->index_range < *rows)
    *rows = x->index_range;
}

/* Values from 0 on for which all row numbers that follow from a cursor exist. */
static void find_ranges(struct tabulate *t)
{
  for (int s = 0; s < t->p->storages.n; s++) {
    struct holds h = t->holds[s];
    struct chain c;
    int64_t n = 0;
    if (!t->rows[s] || h.kind != FUNCTION || t->rows[s] > MOST_ROWS)
      continue;
    bool good = build(t, h.made_by, &c);
    while (good && n < t->rows[s]) {
      struct sw_tensor x = compute(t, &c, h.cursor, n);
      for (int64_t i = 0; good && i < (x.cells ? x.cells->n : 0); i++)
        good = x.cells->integer && x.cells->integer[i] >= 0 && x.cells->integer[i] < t->rows[s];
      good = good && x.cells;
      n += good;
    }
    sw_arena_free(c.arena);
    set_range(t, h.cursor, h.version, n);
  }
}

/* -- tables -- */

/* One row per value of the cursor, of `width` elements (a number: twice); NULL: they can't be computed. */
static double *tabled(struct tabulate *t, int step, struct holds h, int64_t rows, int64_t n, int64_t width, bool *is_cursor)
{
  struct chain c;
  double *all = SW_NEW_N(lw_scratch(t->l), double, rows * width);
  bool good = build(t, step, &c);
  *is_cursor = true;
  for (int64_t r = 0; good && r < rows; r++) {
    struct sw_tensor x = compute(t, &c, h.cursor, r);
    good = x.cells && x.cells->n == n;
    for (int64_t i = 0; good && i < width; i++) {
      double v = x.cells->integer ? (double)x.cells->integer[i % n] : x.cells->real[i % n];
      all[r * width + i] = v;
      *is_cursor = *is_cursor && v == (double)r;
    }
  }
  sw_arena_free(c.arena);
  return good ? all : NULL;
}

static struct tensor whole(const struct tabulate *t, int storage)
{
  const struct sw_storage *s = &t->p->storages.v[storage];
  struct tensor x = {.storage = storage, .dtype = s->dtype, .rank = s->rank};
  memcpy(x.size, s->size, sizeof x.size);
  memcpy(x.stride, s->stride, sizeof x.stride);
  return x;
}

/* The looked-up function in a new tensor, or written into the cursor itself. False: it stays on the host. */
static bool look_up(struct tabulate *t, int step, struct holds h, int into)
{
  struct lower *l = t->l;
  int result = host_at(t, step)->results.v[0].storage;
  const struct sw_storage s = t->p->storages.v[result];
  int64_t rows = t->range[h.cursor], n = sw_storage_elements(&s), width = n == 1 ? 2 : n;
  bool integer = is_one_integer(&s), is_cursor;
  if (!rows || t->range_version[h.cursor] != h.version || rows * width > MOST_ELEMENTS ||
      t->elements + rows * width > ALL_ELEMENTS || (integer && s.dtype != t->p->storages.v[h.cursor].dtype) ||
      (!integer && (n == 1 || (s.dtype != SW_F16 && s.dtype != SW_BF16 && s.dtype != SW_BOOL))))
    return false;
  l->node = host_at(t, step)->node;
  double *all = tabled(t, step, h, rows, n, width, &is_cursor);
  if (!all)
    return false;
  struct tensor cursor = whole(t, h.cursor), out = whole(t, into), first = cursor;
  first.rank = 0;
  out.rank = n == 1 ? 0 : out.rank;
  if (integer && is_cursor) {
    lw_nest(l, SW_OP_IDENTITY, into == h.cursor ? SW_ROLE_WRITE : SW_ROLE_PLAIN, 0, 0, NULL, out, 1, &first);
    return !l->failed;
  }
  t->elements += rows * width;
  int64_t size[SW_MAX_RANK] = {rows, width};
  int rank = 2;
  for (int d = 0, k = 1; n > 1 && d < s.rank; d++)
    if (s.size[d] > 1) {
      size[k++] = s.size[d];
      rank = k;
    }
  struct tensor table = lw_table(l, sw_arena_printf(l->arena, "%s:table", s.name), s.dtype, rank, size, all), row;
  row = n > 1 ? out : lw_new_named(l, sw_arena_printf(l->arena, "%s:pair", s.name), s.dtype, 1, &width, NULL);
  struct tensor in[2] = {first, table};
  in[0].rank = in[1].rank = row.rank;
  for (int d = 0, k = 1; d < row.rank; d++) {
    in[0].stride[d] = 0;
    in[1].stride[d] = row.size[d] > 1 ? table.stride[k++] : 0;
  }
  struct sw_op *op = lw_nest(l, SW_OP_IDENTITY, SW_ROLE_PLAIN, row.rank, row.rank, row.size, row, 2, in);
  if (op) {
    op->in[1].index_input = 0;
    op->in[1].index_step = table.stride[0];
    op->in[1].index_range = rows;
  }
  row.rank = n > 1 ? row.rank : 0;
  if (n == 1)
    lw_nest(l, SW_OP_IDENTITY, into == h.cursor ? SW_ROLE_WRITE : SW_ROLE_PLAIN, 0, 0, NULL, out, 1, &row);
  return !l->failed;
}

static void redirect(struct tabulate *t, int from, int to)
{
  for (int i = 0; i < t->p->ops.n; i++)
    for (int k = 0; k < t->p->ops.v[i].n_in; k++)
      if (t->p->ops.v[i].in[k].storage == from)
        t->p->ops.v[i].in[k].storage = to;
  for (int i = 0; i < t->p->outputs.n; i++) {
    struct sw_program_output *o = &t->p->outputs.v[i];
    if (!o->is_tensor || o->view.storage != from)
      continue;
    o->view.storage = to;
    t->p->storages.v[to].is_output = true;
    t->p->storages.v[from].is_output = false;
  }
}

void lw_tabulate(struct lower *l)
{
  struct sw_program *p = l->program;
  int n = p->storages.n;
  struct tabulate t = {.l = l, .p = p, .old = p->steps.v, .n_old = p->steps.n};
  bool *read = SW_NEW_N(l->arena, bool, n + 1);
  t.holds = SW_NEW_N(l->arena, struct holds, n + 1);
  t.version = SW_NEW_N(l->arena, int, n + 1);
  t.writers = SW_NEW_N(l->arena, int, n + 1);
  t.range_version = SW_NEW_N(l->arena, int, n + 1);
  t.rows = SW_NEW_N(l->arena, int64_t, n + 1);
  t.range = SW_NEW_N(l->arena, int64_t, n + 1);
  for (int i = 0; i < p->ops.n; i++) {
    const struct sw_op *op = &p->ops.v[i];
    t.writers[op->out.storage]++;
    find_rows(&t, op, &op->out);
    for (int k = 0; k < op->n_in; k++) {
      read[op->in[k].storage] = true;
      find_rows(&t, op, &op->in[k]);
    }
  }
  for (int i = 0; i < p->outputs.n; i++)
    if (p->outputs.v[i].is_tensor)
      read[p->outputs.v[i].view.storage] = true;
  for (int i = 0; i < p->host_steps.n; i++)
    for (int r = 0; r < p->host_steps.v[i].results.n; r++)
      if (p->host_steps.v[i].results.v[r].storage >= 0)
        t.writers[p->host_steps.v[i].results.v[r].storage]++;
  if (!p->host_steps.n)
    return;
  find_functions(&t);
  find_ranges(&t);
  memset(t.version, 0, (size_t)n * sizeof *t.version);
  p->steps.v = NULL;
  p->steps.n = p->steps.cap = 0;
  for (int i = 0; i < t.n_old; i++) {
    struct holds h = {.kind = UNKNOWN};
    const struct sw_host_step *step = t.old[i].is_host ? host_at(&t, i) : NULL;
    int result = step && is_function(&t, step, &h) ? step->results.v[0].storage : -1;
    bool counts = result >= 0 && result == h.cursor; /* the next position, in place */
    if (!counts || !look_up(&t, i, h, result))
      *SW_PUSH(l->arena, &p->steps) = t.old[i];
    if (result >= 0 && !counts && read[result]) {
      const struct sw_storage s = p->storages.v[result];
      struct tensor x = lw_new_named(l, sw_arena_printf(l->arena, "%s:row", s.name), s.dtype, s.rank, s.size, s.stride);
      if (look_up(&t, i, h, x.storage))
        redirect(&t, result, x.storage);
    }
    for (int r = 0; step && r < step->results.n; r++)
      if (step->results.v[r].storage >= 0)
        t.version[step->results.v[r].storage]++;
    if (!step)
      t.version[p->ops.v[t.old[i].index].out.storage]++;
  }
}
