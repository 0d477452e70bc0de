/* Reading a problem document, in place (scan.h). Every fault carries the JSON pointer of the place. Lists of names are
 * kept once for equal text, tables once for equal content. */
#include "solver/assign/internal.h"
#include "solver/assign/scan.h"

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

struct names {
  const char *const *v;
  int n;
};

struct reader {
  struct sw_job *job;
  struct sw_assign_problem *p;
  struct sw_arena *scratch;
  int64_t *cost; /* of the table that is being read */
  size_t cost_cap;
  int n_tables, n_domains; /* of the document */
  const int *table_id;
  const struct names *domains;
  struct sw_map lists; /* names by their text in the document */
  SW_VEC(struct names) known_lists;
  struct { /* variables by name: open addressing */
    int *slot;
    size_t cap;
  } by_name;
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

/* -- generic -- */

/* The values of an object's members by the list of known keys, NULL where absent. False after a fault. */
static bool members(struct reader *r, const char *s, const struct at *at, const char *const *known, int n_known,
                    const char **out, const char *what)
{
  for (int i = 0; i < n_known; i++)
    out[i] = NULL;
  if (*s != '{') {
    BAD(r, at, "an object expected");
    return false;
  }
  for (const char *key = sw_scan_first(s); key; key = sw_scan_next(key)) {
    int i = 0;
    while (i < n_known && !sw_scan_is(key, known[i]))
      i++;
    if (i == n_known) {
      sw_warn(r->job, "unknown key \"%.60s\" in %s", sw_scan_text(r->scratch, key), what);
    } else if (out[i]) {
      BAD(r, KEY(at, known[i]), "the key appears twice");
      return false;
    } else {
      out[i] = sw_scan_value(key);
    }
  }
  return true;
}
#define MEMBERS(r, s, at, known, out, what) \
  members((r), (s), (at), (known), (int)(sizeof(known) / sizeof *(known)), (out), (what))

/* A list, or NULL: absent, or a fault. */
static const char *list(struct reader *r, const char *s, const struct at *at)
{
  if (s && *s != '[') {
    BAD(r, at, "a list expected");
    return NULL;
  }
  return s;
}

static const char *elements_of(const char *list_or_null)
{
  return list_or_null ? sw_scan_first(list_or_null) : NULL;
}

static bool read_cost(struct reader *r, const char *s, const struct at *at, int64_t *out)
{
  *out = SW_ASSIGN_INF;
  if (s && sw_scan_is(s, "inf"))
    return true;
  *out = 0;
  if (!s || !sw_scan_int(s, out)) {
    BAD(r, at, "a cost is an integer from 0 to 2^53 or \"inf\"");
    return false;
  }
  if (*out >= 0 && *out <= SW_ASSIGN_MAX_COST)
    return true;
  BAD(r, at, "cost %" PRId64 " is outside 0 to 2^53", *out);
  return false;
}

/* An index below n; -1 after a fault. */
static int read_index(struct reader *r, const char *s, const struct at *at, int n, const char *what)
{
  int64_t i;
  if (!s || !sw_scan_int(s, &i))
    BAD(r, at, "the index of a %s expected", what);
  else if (i < 0 || i >= n)
    BAD(r, at, "%s %" PRId64 ", there are %d", what, i, n);
  else
    return (int)i;
  return -1;
}

/* The elements of a list of just n; false (no fault) if it is none. */
static bool tuple(const char *s, int n, const char **out)
{
  int i = 0;
  for (const char *e = *s == '[' ? sw_scan_first(s) : NULL; e; e = sw_scan_next(e), i++)
    if (i < n)
      out[i] = e;
  return i == n;
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

static int read_dense(struct reader *r, const char *s, const struct at *at)
{
  const char *row = sw_scan_first(s), *e;
  size_t rows = sw_scan_count(s), cols = row && *row == '[' ? sw_scan_count(row) : 0, i = 0, j;
  int64_t *cost = cost_space(r, rows * cols);
  bool good = true;
  for (; row; row = sw_scan_next(row), i++) {
    if (*row != '[' || sw_scan_count(row) != cols) {
      BAD(r, INDEX(at, i), "a row of %zu costs expected", cols);
      return -1;
    }
    for (e = sw_scan_first(row), j = 0; e; e = sw_scan_next(e), j++)
      good &= read_cost(r, e, INDEX(INDEX(at, i), j), &cost[i * cols + j]);
  }
  return good ? sw_assign_add_table(r->p, (int)rows, (int)cols, cost) : -1;
}

static int read_size(struct reader *r, const char *s, const struct at *at)
{
  int64_t n;
  if (s && sw_scan_int(s, &n) && n >= 1 && n <= MAX_LABELS)
    return (int)n;
  BAD(r, at, "a number from 1 to %d expected", MAX_LABELS);
  return -1;
}

static int read_sparse(struct reader *r, const char *s, const struct at *at)
{
  static const char *const known[] = {"rows", "cols", "default", "entries"};
  const char *m[4], *part[3];
  if (!MEMBERS(r, s, at, known, m, "a table"))
    return -1;
  int rows = read_size(r, m[0], KEY(at, "rows")), cols = read_size(r, m[1], KEY(at, "cols"));
  int64_t other, c;
  bool good = read_cost(r, m[2], KEY(at, "default"), &other);
  if (rows < 0 || cols < 0 || !good)
    return -1;
  if ((int64_t)rows * cols > MAX_TABLE) {
    BAD(r, at, "a table of %d x %d, at most %d costs are possible", rows, cols, MAX_TABLE);
    return -1;
  }
  size_t n = (size_t)rows * (size_t)cols, k = 0;
  int64_t *cost = cost_space(r, n);
  bool *named = SW_NEW_N(r->scratch, bool, n);
  for (size_t i = 0; i < n; i++)
    cost[i] = other;
  for (const char *e = elements_of(list(r, m[3], KEY(at, "entries"))); e; e = sw_scan_next(e), k++) {
    const struct at *here = INDEX(KEY(at, "entries"), k);
    if (!tuple(e, 3, part)) {
      BAD(r, here, "[row, column, cost] expected");
      return -1;
    }
    int i = read_index(r, part[0], INDEX(here, 0), rows, "row");
    int j = read_index(r, part[1], INDEX(here, 1), cols, "column");
    if (!read_cost(r, part[2], INDEX(here, 2), &c) || i < 0 || j < 0)
      return -1;
    size_t entry = (size_t)i * (size_t)cols + (size_t)j;
    if (named[entry]) {
      BAD(r, here, "entry %d, %d is named twice", i, j);
      return -1;
    }
    named[entry] = true;
    cost[entry] = c;
  }
  return sw_assign_add_table(r->p, rows, cols, cost);
}

/* The problem's number of a table written in place or named by the document's index; -1 after a fault. */
static int read_table(struct reader *r, const char *s, const struct at *at)
{
  if (s && *s == '[')
    return read_dense(r, s, at);
  if (s && *s == '{')
    return read_sparse(r, s, at);
  int i = read_index(r, s, at, r->n_tables, "table");
  return i < 0 ? -1 : r->table_id[i];
}

static void read_tables(struct reader *r, const char *s)
{
  int n = s ? (int)sw_scan_count(s) : 0, *id = SW_NEW_N(r->scratch, int, n), i = 0;
  for (const char *e = elements_of(s); e; e = sw_scan_next(e), i++) {
    const struct at *here = INDEX(KEY(NULL, "tables"), (size_t)i);
    id[i] = -1;
    if (*e == '[' || *e == '{')
      id[i] = read_table(r, e, here);
    else
      BAD(r, here, "a table expected: rows of costs or {rows, cols, default, entries}");
  }
  r->table_id = id;
  r->n_tables = n;
}

/* -- names -- */

/* Names, unique within the list; at least `least` of them. NULL after a fault. */
static const struct names *read_names(struct reader *r, const char *s, const struct at *at, size_t least)
{
  if (!s || *s != '[') {
    BAD(r, at, "a list of names expected");
    return NULL;
  }
  size_t len = (size_t)(sw_scan_skip(s) - s), n = sw_scan_count(s), i = 0;
  if (n < least || n > MAX_LABELS) {
    BAD(r, at, n ? "too many names" : "at least one label expected");
    return NULL;
  }
  int64_t known = sw_map_get(&r->lists, s, len);
  if (known >= 0)
    return &r->known_lists.v[known];
  const char **names = SW_NEW_N(r->p->arena, const char *, n);
  struct sw_map seen = {.arena = r->scratch};
  for (const char *e = sw_scan_first(s); e; e = sw_scan_next(e), i++) {
    if (*e != '"') {
      BAD(r, INDEX(at, i), "a name expected");
      return NULL;
    }
    names[i] = sw_scan_text(r->p->arena, e);
    if (sw_map_set_str(&seen, names[i], 0) >= 0) {
      BAD(r, INDEX(at, i), "name \"%.60s\" appears twice", names[i]);
      return NULL;
    }
  }
  sw_map_set(&r->lists, s, len, r->known_lists.n);
  struct names *out = SW_PUSH(r->scratch, &r->known_lists);
  *out = (struct names){names, (int)n};
  return out;
}

static void read_domains(struct reader *r, const char *s)
{
  int n = s ? (int)sw_scan_count(s) : 0, i = 0;
  struct names *domains = SW_NEW_N(r->scratch, struct names, n);
  for (const char *e = elements_of(s); e; e = sw_scan_next(e), i++) {
    const struct names *d = read_names(r, e, INDEX(KEY(NULL, "domains"), (size_t)i), 1);
    if (d)
      domains[i] = *d;
  }
  r->domains = domains;
  r->n_domains = n;
}

/* -- variables -- */

/* Enters variable v under its name; false if the name is taken. */
static bool enter_name(struct reader *r, int v)
{
  const char *name = r->p->variables.v[v].name;
  size_t h = sw_hash(name, strlen(name)) & (r->by_name.cap - 1);
  for (; r->by_name.slot[h] >= 0; h = (h + 1) & (r->by_name.cap - 1))
    if (!strcmp(r->p->variables.v[r->by_name.slot[h]].name, name))
      return false;
  r->by_name.slot[h] = v;
  return true;
}

static void read_variable(struct reader *r, const char *s, const struct at *at)
{
  static const char *const known[] = {"name", "domain", "labels", "cost"};
  const char *m[4], *name = NULL;
  const struct names *labels = NULL;
  const int64_t *cost = NULL;
  if (MEMBERS(r, s, at, known, m, "a variable")) {
    if (!m[1] == !m[2]) {
      BAD(r, at, "exactly one of domain and labels expected");
    } else if (m[2]) {
      labels = read_names(r, m[2], KEY(at, "labels"), 1);
    } else {
      int i = read_index(r, m[1], KEY(at, "domain"), r->n_domains, "domain");
      labels = i >= 0 && r->domains[i].n ? &r->domains[i] : NULL;
    }
    if (m[0] && *m[0] != '"')
      BAD(r, KEY(at, "name"), "a name expected");
    else if (m[0])
      name = sw_scan_text(r->scratch, m[0]);
    const char *costs = list(r, m[3], KEY(at, "cost"));
    if (costs && labels) {
      size_t n = sw_scan_count(costs), i = 0;
      int64_t *c = cost_space(r, n);
      if (n != (size_t)labels->n)
        BAD(r, KEY(at, "cost"), "%zu costs, the variable has %d labels", n, labels->n);
      else
        cost = c;
      for (const char *e = cost ? sw_scan_first(costs) : NULL; e; e = sw_scan_next(e), i++)
        read_cost(r, e, INDEX(KEY(at, "cost"), i), &c[i]);
    }
  }
  char fallback[32];
  snprintf(fallback, sizeof fallback, "v%d", r->p->variables.n);
  int v = sw_assign_add_variable(r->p, name ? name : fallback, labels ? labels->n : 0, labels ? labels->v : NULL, cost);
  if (!enter_name(r, v))
    BAD(r, KEY(at, "name"), "variable name \"%.60s\" appears twice", r->p->variables.v[v].name);
}

static void read_variables(struct reader *r, const char *s)
{
  size_t n = s ? sw_scan_count(s) : 0, i = 0;
  for (r->by_name.cap = 64; r->by_name.cap < 2 * n;)
    r->by_name.cap *= 2;
  r->by_name.slot = SW_NEW_N(r->scratch, int, r->by_name.cap);
  memset(r->by_name.slot, -1, r->by_name.cap * sizeof *r->by_name.slot);
  r->p->variables.v = SW_NEW_N(r->p->arena, struct sw_assign_variable, n);
  r->p->variables.cap = (int)n;
  for (const char *e = elements_of(s); e; e = sw_scan_next(e), i++)
    read_variable(r, e, INDEX(KEY(NULL, "variables"), i));
}

/* -- edges and groups -- */

static void read_edges(struct reader *r, const char *s)
{
  int n = r->p->variables.n;
  size_t i = 0;
  for (const char *e = elements_of(s), *part[3]; e; e = sw_scan_next(e), i++) {
    const struct at *here = INDEX(KEY(NULL, "edges"), i);
    if (!tuple(e, 3, part)) {
      BAD(r, here, "[variable, variable, table] expected");
      continue;
    }
    int a = read_index(r, part[0], INDEX(here, 0), n, "variable");
    int b = read_index(r, part[1], INDEX(here, 1), n, "variable");
    int t = read_table(r, part[2], INDEX(here, 2));
    if (a >= 0 && b >= 0 && t >= 0)
      sw_assign_add_edge(r->p, a, b, t);
  }
}

static void read_reader(struct reader *r, const char *s, const struct at *at, int group)
{
  const char *part[2];
  if (!tuple(s, 2, part) || *part[1] != '[') {
    BAD(r, at, "[variable, [class or null, ...]] expected");
    return;
  }
  int variable = read_index(r, part[0], INDEX(at, 0), r->p->variables.n, "variable");
  if (variable < 0)
    return;
  size_t n = (size_t)r->p->variables.v[variable].n_labels, given = sw_scan_count(part[1]), j = 0;
  if (given != n) {
    BAD(r, INDEX(at, 1), "%zu classes, the variable has %zu labels", given, n);
    return;
  }
  int few[32], *wants = n <= 32 ? few : SW_NEW_N(r->scratch, int, n);
  for (const char *e = sw_scan_first(part[1]); e; e = sw_scan_next(e), j++) {
    wants[j] = -1;
    if (*e == 'n')
      continue;
    wants[j] = read_index(r, e, INDEX(INDEX(at, 1), j), r->p->groups.v[group].n_classes, "class");
    if (wants[j] < 0)
      return;
  }
  sw_assign_add_reader(r->p, group, variable, wants);
}

static void read_group(struct reader *r, const char *s, const struct at *at)
{
  static const char *const known[] = {"producer", "classes", "conv", "readers"};
  const char *m[4];
  if (!MEMBERS(r, s, at, known, m, "a sharing group"))
    return;
  int producer = read_index(r, m[0], KEY(at, "producer"), r->p->variables.n, "variable");
  const struct names *classes = read_names(r, m[1], KEY(at, "classes"), 0);
  int table = read_table(r, m[2], KEY(at, "conv"));
  const char *readers = list(r, m[3], KEY(at, "readers"));
  if (producer < 0 || table < 0 || !classes)
    return;
  int group = sw_assign_add_group(r->p, producer, classes->n, classes->v, table);
  size_t i = 0;
  for (const char *e = elements_of(readers); e; e = sw_scan_next(e), i++)
    read_reader(r, e, INDEX(KEY(at, "readers"), i), group);
}

static void read_groups(struct reader *r, const char *s)
{
  size_t n = s ? sw_scan_count(s) : 0, i = 0;
  r->p->groups.v = SW_NEW_N(r->p->arena, struct sw_assign_group, n);
  r->p->groups.cap = (int)n;
  r->p->readers.v = SW_NEW_N(r->p->arena, struct sw_assign_reader, n); /* at least about one each */
  r->p->readers.cap = (int)n;
  for (const char *e = elements_of(s); e; e = sw_scan_next(e), i++)
    read_group(r, e, INDEX(KEY(NULL, "sharing"), i));
}

static void read_root(struct reader *r, const char *root)
{
  static const char *const known[] = {"format", "name", "mode", "domains", "tables", "variables", "edges", "sharing"};
  const char *m[8];
  if (!MEMBERS(r, root, NULL, known, m, "the problem"))
    return;
  if (!m[0] || !sw_scan_is(m[0], "stickwright.assign/1"))
    BAD(r, KEY(NULL, "format"), "\"stickwright.assign/1\" expected");
  if (m[1] && *m[1] != '"')
    BAD(r, KEY(NULL, "name"), "a text expected");
  else if (m[1])
    r->p->name = sw_scan_text(r->p->arena, m[1]);
  if (m[2] && sw_scan_is(m[2], "shared"))
    r->p->mode = SW_ASSIGN_SHARED;
  else if (m[2] && !sw_scan_is(m[2], "per-edge"))
    BAD(r, KEY(NULL, "mode"), "\"per-edge\" or \"shared\" expected");
  if (!m[5])
    BAD(r, KEY(NULL, "variables"), "variables are missing");
  for (int i = 3; i < 8; i++)
    m[i] = list(r, m[i], KEY(NULL, known[i]));
  read_domains(r, m[3]);
  read_tables(r, m[4]);
  read_variables(r, m[5]);
  read_edges(r, m[6]);
  read_groups(r, m[7]);
}

struct sw_assign_problem *sw_assign_read(struct sw_job *job, const char *text, size_t len)
{
  const char *root = sw_scan(text, len);
  if (!root) { /* the slow reader says what is wrong, with line and column */
    if (sw_json_parse(job, "problem", text, len, SIZE_MAX))
      sw_assign__bad(job, "", "not a JSON document in UTF-8, or a text with \\u0000 in it");
    return NULL;
  }
  struct sw_arena *scratch = sw_arena_new(job->arena, 0);
  struct reader r = {.job = job, .scratch = scratch, .p = sw_assign_new(job->arena), .lists = {.arena = scratch}};
  int before = job->faults.n;
  read_root(&r, root);
  bool good = job->faults.n == before && sw_assign_validate(job, r.p) == SW_OK;
  sw_arena_free(scratch);
  return good ? r.p : NULL;
}
