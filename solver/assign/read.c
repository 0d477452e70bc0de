/* Reading a problem document. Every fault carries the JSON pointer of the place. */
#include "solver/assign/internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Where we are: a chain on the C stack, made into text only when something is wrong. */
struct at {
  const struct at *up;
  const char *key; /* NULL: index */
  size_t index;
};
#define KEY(parent, k) (&(struct at){(parent), (k), 0})
#define INDEX(parent, i) (&(struct at){(parent), NULL, (i)})

struct reader {
  struct sw_job *job;
  struct sw_assign_problem *p;
  struct sw_arena *scratch;
  int64_t *cost; /* of the table that is being read */
  size_t cost_cap;
  int n_tables; /* of the document */
  const int *table_id;
  int n_domains;
  const struct domain {
    const char *const *labels;
    int n;
  } *domains;
};

static void append_pointer(struct sw_buf *b, const struct at *at)
{
  if (!at)
    return;
  append_pointer(b, at->up);
  if (at->key)
    sw_buf_printf(b, "/%s", at->key);
  else
    sw_buf_printf(b, "/%zu", at->index);
}

static const char *pointer(struct reader *r, const struct at *at)
{
  struct sw_buf b = {.arena = r->job->arena};
  append_pointer(&b, at);
  return sw_buf_text(&b);
}

#define BAD(r, at, ...) sw_assign__bad((r)->job, pointer((r), (at)), __VA_ARGS__)

static void unknown_keys(struct reader *r, const json_t *object, const char *const *known, const char *what)
{
  if (json_object_size(object) == 0)
    return;
  const char *key;
  json_t *v;
  json_object_foreach ((json_t *)(uintptr_t)object, key, v) {
    const char *const *k = known;
    while (*k && strcmp(*k, key))
      k++;
    if (!*k)
      sw_warn(r->job, "unknown key \"%.60s\" in %s", key, what);
  }
}

static bool read_cost(struct reader *r, const json_t *v, const struct at *at, int64_t *out)
{
  *out = 0;
  if (json_is_string(v) && !strcmp(json_string_value(v), "inf")) {
    *out = SW_ASSIGN_INF;
    return true;
  }
  if (!json_is_integer(v)) {
    BAD(r, at, "a cost is an integer from 0 to 2^53 or \"inf\"");
    return false;
  }
  *out = json_integer_value(v);
  if (*out >= 0 && *out <= SW_ASSIGN_MAX_COST)
    return true;
  BAD(r, at, "cost %" PRId64 " is outside 0 to 2^53", *out);
  return false;
}

/* An index below n; -1 after a fault. */
static int read_index(struct reader *r, const json_t *v, const struct at *at, int n, const char *what)
{
  if (!json_is_integer(v) || json_integer_value(v) < 0 || json_integer_value(v) >= n) {
    if (json_is_integer(v))
      BAD(r, at, "%s %" PRId64 ", there are %d", what, (int64_t)json_integer_value(v), n);
    else
      BAD(r, at, "the index of a %s expected", what);
    return -1;
  }
  return (int)json_integer_value(v);
}

static const json_t *list(struct reader *r, const json_t *object, const char *key, const struct at *at)
{
  const json_t *v = json_object_get(object, key);
  if (v && !json_is_array(v)) {
    BAD(r, KEY(at, key), "a list expected");
    return NULL;
  }
  return v;
}

/* -- tables -- */

static int64_t *cost_space(struct reader *r, size_t n)
{
  if (n > r->cost_cap) {
    r->cost_cap = n > 2 * r->cost_cap ? n : 2 * r->cost_cap;
    r->cost = SW_NEW_N(r->scratch, int64_t, r->cost_cap);
  }
  return r->cost;
}

enum { MAX_LABELS = 1 << 20, MAX_TABLE = 1 << 26 };

static int read_dense(struct reader *r, const json_t *v, const struct at *at)
{
  size_t rows = json_array_size(v), cols = json_array_size(json_array_get(v, 0));
  int64_t *cost = cost_space(r, rows * cols);
  bool good = true;
  for (size_t i = 0; i < rows; i++) {
    const json_t *row = json_array_get(v, i);
    if (!json_is_array(row) || json_array_size(row) != cols) {
      BAD(r, INDEX(at, i), "a row of %zu costs expected", cols);
      return -1;
    }
    for (size_t j = 0; j < cols; j++)
      good &= read_cost(r, json_array_get(row, j), INDEX(INDEX(at, i), j), &cost[i * cols + j]);
  }
  return good ? sw_assign_add_table(r->p, (int)rows, (int)cols, cost) : -1;
}

static int read_size(struct reader *r, const json_t *v, const char *key, const struct at *at)
{
  const json_t *n = json_object_get(v, key);
  if (json_is_integer(n) && json_integer_value(n) >= 1 && json_integer_value(n) <= MAX_LABELS)
    return (int)json_integer_value(n);
  BAD(r, KEY(at, key), "a number from 1 to %d expected", MAX_LABELS);
  return -1;
}

static int read_sparse(struct reader *r, const json_t *v, const struct at *at)
{
  static const char *const known[] = {"rows", "cols", "default", "entries", NULL};
  unknown_keys(r, v, known, "a table");
  int rows = read_size(r, v, "rows", at), cols = read_size(r, v, "cols", at);
  int64_t other;
  bool good = read_cost(r, json_object_get(v, "default"), KEY(at, "default"), &other);
  const json_t *entries = list(r, v, "entries", at), *e;
  if (rows < 0 || cols < 0 || !good)
    return -1;
  if ((int64_t)rows * cols > MAX_TABLE) {
    BAD(r, at, "a table of %d x %d, at most %d costs are possible", rows, cols, MAX_TABLE);
    return -1;
  }
  size_t n = (size_t)rows * (size_t)cols, k;
  int64_t *cost = cost_space(r, n);
  bool *named = SW_NEW_N(r->scratch, bool, n);
  for (size_t i = 0; i < n; i++)
    cost[i] = other;
  json_array_foreach (entries, k, e) {
    const struct at *here = INDEX(KEY(at, "entries"), k);
    if (!json_is_array(e) || json_array_size(e) != 3) {
      BAD(r, here, "[row, column, cost] expected");
      good = false;
      continue;
    }
    int i = read_index(r, json_array_get(e, 0), INDEX(here, 0), rows, "row");
    int j = read_index(r, json_array_get(e, 1), INDEX(here, 1), cols, "column");
    int64_t c;
    good &= read_cost(r, json_array_get(e, 2), INDEX(here, 2), &c) && i >= 0 && j >= 0;
    if (i < 0 || j < 0)
      continue;
    size_t entry = (size_t)i * (size_t)cols + (size_t)j;
    if (named[entry]) {
      BAD(r, here, "entry %d, %d is named twice", i, j);
      good = false;
    }
    named[entry] = true;
    cost[entry] = c;
  }
  return good ? sw_assign_add_table(r->p, rows, cols, cost) : -1;
}

/* The problem's number of a table written in place or named by the document's index; -1 after a fault. */
static int read_table(struct reader *r, const json_t *v, const struct at *at)
{
  if (json_is_array(v))
    return read_dense(r, v, at);
  if (json_is_object(v))
    return read_sparse(r, v, at);
  int i = read_index(r, v, at, r->n_tables, "table");
  return i < 0 ? -1 : r->table_id[i];
}

static void read_tables(struct reader *r, const json_t *root)
{
  const json_t *tables = list(r, root, "tables", NULL), *t;
  int n = (int)json_array_size(tables);
  int *id = SW_NEW_N(r->scratch, int, n);
  size_t i;
  json_array_foreach (tables, i, t) {
    const struct at *here = INDEX(KEY(NULL, "tables"), i);
    id[i] = -1;
    if (json_is_array(t) || json_is_object(t))
      id[i] = read_table(r, t, here);
    else
      BAD(r, here, "a table expected: rows of costs or {rows, cols, default, entries}");
  }
  r->table_id = id;
  r->n_tables = n;
}

/* -- variables -- */

/* Names, unique within the list; at least `least` of them. Labels NULL after a fault. */
static struct domain read_names(struct reader *r, const json_t *v, const struct at *at, size_t least)
{
  struct domain none = {NULL, 0};
  size_t n = json_array_size(v);
  if (!json_is_array(v) || n < least || n > MAX_LABELS) {
    BAD(r, at, !json_is_array(v) ? "a list of names expected" : n ? "too many names" : "at least one label expected");
    return none;
  }
  const char **labels = SW_NEW_N(r->p->arena, const char *, n);
  struct sw_map seen = {.arena = r->scratch};
  for (size_t i = 0; i < n; i++) {
    const json_t *s = json_array_get(v, i);
    if (!json_is_string(s)) {
      BAD(r, INDEX(at, i), "a name expected");
      return none;
    }
    labels[i] = sw_arena_strdup(r->p->arena, json_string_value(s));
    bool twice = false;
    if (n <= 8)
      for (size_t j = 0; j < i; j++)
        twice |= !strcmp(labels[i], labels[j]);
    else
      twice = sw_map_set_str(&seen, labels[i], 0) >= 0;
    if (twice) {
      BAD(r, INDEX(at, i), "name \"%.60s\" appears twice", labels[i]);
      return none;
    }
  }
  return (struct domain){labels, (int)n};
}

static void read_domains(struct reader *r, const json_t *root)
{
  const json_t *domains = list(r, root, "domains", NULL), *d;
  struct domain *out = SW_NEW_N(r->scratch, struct domain, json_array_size(domains));
  size_t i;
  json_array_foreach (domains, i, d)
    out[i] = read_names(r, d, INDEX(KEY(NULL, "domains"), i), 1);
  r->domains = out;
  r->n_domains = (int)json_array_size(domains);
}

static void read_variable(struct reader *r, const json_t *v, const struct at *at, struct sw_map *names)
{
  static const char *const known[] = {"name", "domain", "labels", "cost", NULL};
  struct domain d = {NULL, 0};
  char fallback[32];
  snprintf(fallback, sizeof fallback, "v%d", r->p->variables.n);
  const char *name = fallback;
  const int64_t *cost = NULL;
  if (!json_is_object(v)) {
    BAD(r, at, "an object expected");
  } else {
    unknown_keys(r, v, known, "a variable");
    const json_t *domain = json_object_get(v, "domain"), *labels = json_object_get(v, "labels");
    const json_t *costs = list(r, v, "cost", at), *s = json_object_get(v, "name");
    if (!domain == !labels) {
      BAD(r, at, "exactly one of domain and labels expected");
    } else if (labels) {
      d = read_names(r, labels, KEY(at, "labels"), 1);
    } else {
      int i = read_index(r, domain, KEY(at, "domain"), r->n_domains, "domain");
      if (i >= 0)
        d = r->domains[i];
    }
    if (s && !json_is_string(s))
      BAD(r, KEY(at, "name"), "a name expected");
    else if (s)
      name = json_string_value(s);
    if (costs && d.n && json_array_size(costs) != (size_t)d.n) {
      BAD(r, KEY(at, "cost"), "%zu costs, the variable has %d labels", json_array_size(costs), d.n);
    } else if (costs && d.n) {
      int64_t *c = cost_space(r, (size_t)d.n);
      for (size_t i = 0; i < (size_t)d.n; i++)
        read_cost(r, json_array_get(costs, i), INDEX(KEY(at, "cost"), i), &c[i]);
      cost = c;
    }
  }
  if (sw_map_set_str(names, name, 0) >= 0)
    BAD(r, KEY(at, "name"), "variable name \"%.60s\" appears twice", name);
  sw_assign_add_variable(r->p, name, d.n, d.labels, cost);
}

static void read_variables(struct reader *r, const json_t *root)
{
  const json_t *variables = list(r, root, "variables", NULL), *v;
  if (!variables && !json_object_get(root, "variables"))
    BAD(r, KEY(NULL, "variables"), "variables are missing");
  struct sw_map names = {.arena = r->scratch};
  size_t i;
  json_array_foreach (variables, i, v)
    read_variable(r, v, INDEX(KEY(NULL, "variables"), i), &names);
}

/* -- edges and groups -- */

static void read_edges(struct reader *r, const json_t *root)
{
  const json_t *edges = list(r, root, "edges", NULL), *e;
  int n = r->p->variables.n;
  size_t i;
  json_array_foreach (edges, i, e) {
    const struct at *here = INDEX(KEY(NULL, "edges"), i);
    if (!json_is_array(e) || json_array_size(e) != 3) {
      BAD(r, here, "[variable, variable, table] expected");
      continue;
    }
    int a = read_index(r, json_array_get(e, 0), INDEX(here, 0), n, "variable");
    int b = read_index(r, json_array_get(e, 1), INDEX(here, 1), n, "variable");
    int t = read_table(r, json_array_get(e, 2), INDEX(here, 2));
    if (a >= 0 && b >= 0 && t >= 0)
      sw_assign_add_edge(r->p, a, b, t);
  }
}

static void read_reader(struct reader *r, const json_t *v, const struct at *at, int group)
{
  const json_t *wants = json_array_get(v, 1);
  if (!json_is_array(v) || json_array_size(v) != 2 || !json_is_array(wants)) {
    BAD(r, at, "[variable, [class or null, ...]] expected");
    return;
  }
  int variable = read_index(r, json_array_get(v, 0), INDEX(at, 0), r->p->variables.n, "variable");
  if (variable < 0)
    return;
  size_t n = (size_t)r->p->variables.v[variable].n_labels;
  if (json_array_size(wants) != n) {
    BAD(r, INDEX(at, 1), "%zu classes, the variable has %zu labels", json_array_size(wants), n);
    return;
  }
  int few[32], *out = n <= 32 ? few : SW_NEW_N(r->scratch, int, n);
  for (size_t j = 0; j < n; j++) {
    const json_t *w = json_array_get(wants, j);
    out[j] = -1;
    if (json_is_null(w))
      continue;
    out[j] = read_index(r, w, INDEX(INDEX(at, 1), j), r->p->groups.v[group].n_classes, "class");
    if (out[j] < 0)
      return;
  }
  sw_assign_add_reader(r->p, group, variable, out);
}

static void read_group(struct reader *r, const json_t *v, const struct at *at)
{
  static const char *const known[] = {"producer", "classes", "conv", "readers", NULL};
  if (!json_is_object(v)) {
    BAD(r, at, "an object expected");
    return;
  }
  unknown_keys(r, v, known, "a sharing group");
  const json_t *readers = list(r, v, "readers", at), *e;
  int producer = read_index(r, json_object_get(v, "producer"), KEY(at, "producer"), r->p->variables.n, "variable");
  struct domain classes = read_names(r, json_object_get(v, "classes"), KEY(at, "classes"), 0);
  int table = read_table(r, json_object_get(v, "conv"), KEY(at, "conv"));
  if (producer < 0 || table < 0 || !classes.labels)
    return;
  int group = sw_assign_add_group(r->p, producer, classes.n, classes.labels, table);
  size_t i;
  json_array_foreach (readers, i, e)
    read_reader(r, e, INDEX(KEY(at, "readers"), i), group);
}

static void read_root(struct reader *r, const json_t *root)
{
  static const char *const known[] = {"format", "name",      "mode",  "domains", "tables",
                                      "variables", "edges", "sharing", NULL};
  unknown_keys(r, root, known, "the problem");
  const json_t *format = json_object_get(root, "format"), *name = json_object_get(root, "name");
  const json_t *mode = json_object_get(root, "mode");
  if (!json_is_string(format) || strcmp(json_string_value(format), "stickwright.assign/1"))
    BAD(r, KEY(NULL, "format"), "\"stickwright.assign/1\" expected");
  if (name && !json_is_string(name))
    BAD(r, KEY(NULL, "name"), "a text expected");
  else if (name)
    r->p->name = sw_arena_strdup(r->p->arena, json_string_value(name));
  if (json_is_string(mode) && !strcmp(json_string_value(mode), "shared"))
    r->p->mode = SW_ASSIGN_SHARED;
  else if (mode && (!json_is_string(mode) || strcmp(json_string_value(mode), "per-edge")))
    BAD(r, KEY(NULL, "mode"), "\"per-edge\" or \"shared\" expected");
  read_domains(r, root);
  read_tables(r, root);
  read_variables(r, root);
  read_edges(r, root);
  const json_t *groups = list(r, root, "sharing", NULL), *g;
  size_t i;
  json_array_foreach (groups, i, g)
    read_group(r, g, INDEX(KEY(NULL, "sharing"), i));
}

enum { MAX_VALUES = 200000000 };

struct sw_assign_problem *sw_assign_read(struct sw_job *job, const char *text, size_t len)
{
  /* The tree goes as soon as it is read, for it is the largest thing of all. Not so after a fault, whose text is there. */
  struct sw_arena *scratch = sw_arena_new(job->arena, 0), *kept = job->arena;
  job->arena = scratch;
  json_t *root = sw_json_parse(job, "problem", text, len, MAX_VALUES);
  job->arena = kept;
  struct sw_assign_problem *p = NULL;
  if (root && !json_is_object(root)) {
    sw_assign__bad(job, "", "an object expected");
  } else if (root) {
    struct reader r = {.job = job, .scratch = scratch, .p = sw_assign_new(job->arena)};
    int before = job->faults.n;
    read_root(&r, root);
    if (job->faults.n == before && sw_assign_validate(job, r.p) == SW_OK)
      p = r.p;
  }
  if (root)
    sw_arena_free(scratch);
  return p;
}
