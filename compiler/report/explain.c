#include "compiler/report/explain.h"

#include "base/files.h"
#include "compiler/plan/scratchpad.h"
#include "solver/assign/assign.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* A layout that the storage may have, and the best plan in which it does. */
struct candidate {
  const char *layout;
  bool chosen, possible;
  int64_t cost;        /* of that plan */
  int own_conversions; /* copies of this storage in it */
  int conversions;     /* all copies in it */
};

struct explaining {
  struct sw_job *job;
  const char *name;
  const json_t *result, *storage;
  const char *view_of;      /* the name asked for is a view of the storage; NULL: its own */
  const json_t *conversion; /* that makes the storage; NULL: none */
  SW_VEC(const json_t *) dropped; /* of dropped.json, what is about the storage */
  bool loads_again;         /* where readers want a second layout, the loader makes it */
  SW_VEC(const json_t *) ops;  /* that have the name, stand for the node, come from the line, are in the file */
  SW_VEC(const json_t *) host; /* host steps of that name or line */
  const char *unit;
  int64_t cost;
  struct candidate *candidates;
  int n_candidates;
};

static const json_t *where(const json_t *list, const char *key, const char *value)
{
  size_t i;
  json_t *e;
  json_array_foreach (list, i, e) {
    const char *s = json_string_value(json_object_get(e, key));
    if (s && !strcmp(s, value))
      return e;
  }
  return NULL;
}

static const json_t *read_document(struct sw_job *job, const char *dir, const char *file, const char **text, size_t *len)
{
  char *path = sw_arena_printf(job->arena, "%s/%s", dir, file);
  if (sw_file_read(job, path, (size_t)1 << 31, text, len) != SW_OK)
    return NULL;
  return sw_json_parse(job, file, *text, *len, 500000000);
}

/* "device_size:4,128,64/stride_map:64,256,1", with the arrangement behind it unless standard: how layout_problem.json names
 * labels. */
static const char *layout_text(struct sw_arena *a, const json_t *l)
{
  static const char *const keys[] = {"device_size", "stride_map"};
  struct sw_buf b = {.arena = a};
  for (int k = 0; k < 2; k++) {
    size_t i;
    json_t *n;
    sw_buf_printf(&b, "%s%s:", k ? "/" : "", keys[k]);
    json_array_foreach (json_object_get(l, keys[k]), i, n)
      sw_buf_printf(&b, "%s%" PRId64, i ? "," : "", (int64_t)json_integer_value(n));
  }
  const char *arrangement = json_string_value(json_object_get(l, "element_arrangement"));
  if (arrangement && strcmp(arrangement, "STANDARD"))
    sw_buf_printf(&b, "/%s", arrangement);
  return sw_buf_text(&b);
}

static void solve_forced(struct explaining *x, struct sw_assign_problem *p, int variable, int label, struct candidate *c)
{
  struct sw_assign_variable *v = &p->variables.v[variable];
  const int64_t *before = v->cost;
  struct sw_arena *scratch = sw_arena_new(x->job->arena, 0);
  struct sw_job job = {.arena = scratch, .cancel = x->job->cancel};
  int64_t *cost = SW_NEW_N(scratch, int64_t, v->n_labels);
  for (int i = 0; i < v->n_labels; i++)
    cost[i] = i == label ? (before ? before[i] : 0) : SW_ASSIGN_INF;
  v->cost = cost;
  struct sw_assign_options o = sw_assign_defaults();
  struct sw_assign_result *r;
  if (sw_assign_solve(&job, p, &o, &r) == SW_OK && r->labels) {
    c->possible = true;
    c->cost = r->cost;
    c->conversions = r->conversions.n;
    for (int i = 0; i < r->conversions.n; i++)
      c->own_conversions += r->conversions.v[i].producer == variable;
  }
  v->cost = before;
  sw_arena_free(scratch);
}

/* The candidate that the storage has; its rows may have been padded since, [1,160,64] to [1,192,64]. -1: none. */
static int chosen_label(const struct explaining *x, const struct sw_assign_variable *v)
{
  const char *now = layout_text(x->job->arena, json_object_get(x->storage, "layout")), *map = strchr(now, '/');
  int same_map = -1, n = 0;
  for (int i = 0; i < v->n_labels; i++) {
    const char *its = strchr(v->labels[i], '/');
    if (!strcmp(v->labels[i], now))
      return i;
    if (its && map && !strcmp(its, map)) {
      same_map = i;
      n++;
    }
  }
  return n == 1 ? same_map : -1;
}

static enum sw_rc force_each(struct explaining *x, const char *dir)
{
  const char *text;
  size_t len;
  if (sw_file_read(x->job, sw_arena_printf(x->job->arena, "%s/layout_problem.json", dir), (size_t)1 << 31, &text, &len) != SW_OK)
    return x->job->worst;
  struct sw_assign_problem *p = sw_assign_read(x->job, text, len);
  if (!p)
    return x->job->worst;
  for (int v = 0; v < p->variables.n; v++) {
    const struct sw_assign_variable *variable = &p->variables.v[v];
    if (!variable->name || strcmp(variable->name, x->name))
      continue;
    int chosen = chosen_label(x, variable);
    x->n_candidates = variable->n_labels;
    x->candidates = SW_NEW_N(x->job->arena, struct candidate, x->n_candidates);
    for (int i = 0; i < x->n_candidates; i++) {
      x->candidates[i].layout = variable->labels[i];
      x->candidates[i].chosen = i == chosen;
      solve_forced(x, p, v, i, &x->candidates[i]);
    }
  }
  return SW_OK;
}

/* Layouts can be pinned, the order of lanes that a cast leaves can't. */
static bool can_be_pinned(const struct candidate *c)
{
  const char *map = strchr(c->layout, '/');
  return map && !strchr(map + 1, '/');
}

/* The cheapest candidate with fewer copies of this storage than the chosen one has; NULL: none. */
static const struct candidate *remedy(const struct explaining *x)
{
  const struct candidate *chosen = NULL, *best = NULL;
  for (int i = 0; i < x->n_candidates; i++)
    if (x->candidates[i].chosen)
      chosen = &x->candidates[i];
  for (int i = 0; i < x->n_candidates && chosen; i++) {
    const struct candidate *c = &x->candidates[i];
    if (c->possible && can_be_pinned(c) && c->own_conversions < chosen->own_conversions && (!best || c->cost < best->cost))
      best = c;
  }
  return best;
}

static const char *text_of(const json_t *o, const char *key)
{
  const char *s = json_string_value(json_object_get(o, key));
  return s ? s : "-";
}

static void numbers(struct sw_buf *out, const json_t *list)
{
  size_t i;
  json_t *n;
  sw_buf_puts(out, "[");
  json_array_foreach (list, i, n)
    sw_buf_printf(out, "%s%" PRId64, i ? "," : "", (int64_t)json_integer_value(n));
  sw_buf_puts(out, "]");
}

/* Of a storage that a conversion makes, and of the op that does: of what, for whom and why. */
static void text_copy(const struct explaining *x, const json_t *v, struct sw_buf *out)
{
  const json_t *reader;
  size_t i;
  sw_buf_printf(out, "made from   %s, %s, %" PRId64 " elements\nfor        ", text_of(v, "storage"),
                layout_text(x->job->arena, json_object_get(v, "from")), (int64_t)json_integer_value(json_object_get(v, "elements")));
  json_array_foreach (json_object_get(v, "readers"), i, reader)
    sw_buf_printf(out, " %s", json_string_value(reader));
  sw_buf_printf(out, "\nreason      %s\n", text_of(v, "reason"));
  if (json_is_string(json_object_get(v, "advice")))
    sw_buf_printf(out, "remedy      %s\n", text_of(v, "advice"));
  else
    sw_buf_printf(out, "remedy      see what other layouts of %s would cost: explain %s\n", text_of(v, "storage"), text_of(v, "storage"));
}

static bool is_kind(const json_t *dropped, const char *kind)
{
  return !strcmp(text_of(dropped, "kind"), kind);
}

/* "y reads it as operand 0: its stick would be floor(d1/128) .." */
static void text_reason(const json_t *d, struct sw_buf *out)
{
  const json_t *op = json_object_get(d, "op"), *operand = json_object_get(d, "operand");
  if (json_is_string(op) && json_is_integer(operand))
    sw_buf_printf(out, "operand %d of %s: ", (int)json_integer_value(operand), json_string_value(op));
  else if (json_is_string(op))
    sw_buf_printf(out, "%s writes it: ", json_string_value(op));
  sw_buf_printf(out, "%s\n", text_of(d, "detail"));
}

/* What candidate c has against it, or (NULL) what never became one. */
static void text_dropped(const struct explaining *x, const struct candidate *c, struct sw_buf *out)
{
  for (int i = 0; i < x->dropped.n; i++) {
    const json_t *d = x->dropped.v[i];
    const char *layout = json_string_value(json_object_get(d, "layout"));
    int stick = (int)json_integer_value(json_object_get(d, "stick"));
    if (c) {
      if (!layout || strcmp(layout, c->layout) || is_kind(d, "no-candidate"))
        continue;
      sw_buf_printf(out, "  %s ", is_kind(d, "impossible") ? "impossible" : "unread    ");
    } else if (is_kind(d, "no-candidate")) {
      sw_buf_puts(out, "dropped     ");
      if (stick < 0)
        sw_buf_puts(out, "one element a stick");
      else
        sw_buf_printf(out, "stick on dim %d", stick);
      sw_buf_printf(out, "%s%s: ", layout ? ", " : "", layout ? layout : "");
    } else {
      continue;
    }
    text_reason(d, out);
  }
}

/* Who writes and who reads the storage. */
static void text_users(const struct explaining *x, struct sw_buf *out)
{
  struct sw_buf writers = {.arena = x->job->arena}, readers = {.arena = x->job->arena};
  size_t i, k;
  json_t *op, *read;
  json_array_foreach (json_object_get(x->result, "ops"), i, op) {
    if (!strcmp(text_of(op, "writes"), x->name))
      sw_buf_printf(&writers, "%s%s", writers.n ? ", " : "", text_of(op, "name"));
    json_array_foreach (json_object_get(op, "reads"), k, read)
      if (!strcmp(json_string_value(read), x->name)) {
        sw_buf_printf(&readers, "%s%s", readers.n ? ", " : "", text_of(op, "name"));
        break;
      }
  }
  if (writers.n)
    sw_buf_printf(out, "written by  %s\n", sw_buf_text(&writers));
  if (readers.n)
    sw_buf_printf(out, "read by     %s\n", sw_buf_text(&readers));
}

static void text_storage(const struct explaining *x, struct sw_buf *out)
{
  const json_t *s = x->storage, *place = json_object_get(s, "place");
  if (x->view_of)
    sw_buf_printf(out, "view        %s has no tensor of its own: who reads it reads %s\n", x->view_of, x->name);
  sw_buf_printf(out, "storage     %s: %s %s", x->name, text_of(s, "kind"), text_of(s, "dtype"));
  numbers(out, json_object_get(s, "size"));
  sw_buf_printf(out, "%s\nlayout      %s\n", json_is_true(json_object_get(s, "pinned")) ? ", pinned" : "",
                layout_text(x->job->arena, json_object_get(s, "layout")));
  const char *where = json_object_iter_key(json_object_iter((json_t *)(intptr_t)place));
  sw_buf_printf(out, "place       %s", where ? where : "host memory");
  if (json_is_string(json_object_get(s, "not_in_lx"))) {
    const char *means = sw_lx_reason_means(text_of(s, "not_in_lx"));
    sw_buf_printf(out, "; not in the scratchpad: %s%s%s", text_of(s, "not_in_lx"), means ? "\n            " : "", means ? means : "");
  }
  sw_buf_puts(out, "\n");
  text_users(x, out);
  if (x->conversion)
    text_copy(x, x->conversion, out);
  for (int i = 0; i < x->n_candidates; i++) {
    const struct candidate *c = &x->candidates[i];
    sw_buf_printf(out, "%s %s: ", c->chosen ? "chosen     " : "candidate  ", c->layout);
    if (c->possible && x->loads_again)
      sw_buf_printf(out, "best plan costs %" PRId64 " %s (%+" PRId64 "), loaded in %d layouts\n", c->cost, x->unit,
                    c->cost - x->cost, 1 + c->own_conversions);
    else if (c->possible)
      sw_buf_printf(out, "best plan costs %" PRId64 " %s (%+" PRId64 "), %d copies of it, %d in all\n", c->cost, x->unit,
                    c->cost - x->cost, c->own_conversions, c->conversions);
    else
      sw_buf_puts(out, "no conversions make a plan with it\n");
    text_dropped(x, c, out);
  }
  text_dropped(x, NULL, out);
  if (!strcmp(text_of(s, "kind"), "input") && !json_is_true(json_object_get(s, "pinned")))
    sw_buf_printf(out, "given       an input comes row major; if its caller can lay it out otherwise, --pin %s=order:.. says so\n", x->name);
  size_t i;
  json_t *v;
  bool has_conversion = false;
  json_array_foreach (json_object_get(x->result, "conversions"), i, v) {
    if (strcmp(text_of(v, "storage"), x->name))
      continue;
    has_conversion = true;
    sw_buf_printf(out, "converted   to %s, %" PRId64 " elements (%s): %s\n",
                  layout_text(x->job->arena, json_object_get(v, "to")),
                  (int64_t)json_integer_value(json_object_get(v, "elements")), text_of(v, "copy"), text_of(v, "reason"));
  }
  const struct candidate *r = has_conversion ? remedy(x) : NULL;
  if (r)
    sw_buf_printf(out, "%s--pin %s=%s: %d copies of it, %d in all, the whole plan %+" PRId64 " %s\n",
                  r->cost > x->cost ? "remedy      none that pays; " : "remedy      ", x->name, r->layout, r->own_conversions,
                  r->conversions, r->cost - x->cost, x->unit);
  else if (has_conversion)
    sw_buf_puts(out, "remedy      no layout of this storage alone needs fewer copies\n");
}

static void text_op(const struct explaining *x, const json_t *op, struct sw_buf *out)
{
  const json_t *time = json_object_get(op, "time");
  const json_t *copy = where(json_object_get(x->result, "conversions"), "copy", text_of(op, "writes"));
  size_t i;
  json_t *node;
  sw_buf_printf(out, "op          %s: %s", text_of(op, "name"), text_of(op, "device_op"));
  if (json_is_string(json_object_get(op, "source")))
    sw_buf_printf(out, ", %s", text_of(op, "source"));
  sw_buf_puts(out, "\nnodes      ");
  json_array_foreach (json_object_get(op, "nodes"), i, node)
    sw_buf_printf(out, " %s", json_string_value(node));
  if (!json_array_size(json_object_get(op, "nodes")))
    sw_buf_puts(out, " none of the graph: it was put in");
  sw_buf_puts(out, "\nreads      ");
  json_array_foreach (json_object_get(op, "reads"), i, node)
    sw_buf_printf(out, "%s %s", i ? "," : "", json_string_value(node));
  sw_buf_printf(out, "\nwrites      %s\n", text_of(op, "writes"));
  if (copy && !x->storage)
    text_copy(x, copy, out);
  sw_buf_printf(out, "file        %s\nloops       ", text_of(op, "file"));
  numbers(out, json_object_get(op, "loops"));
  sw_buf_puts(out, " split ");
  numbers(out, json_object_get(op, "split"));
  sw_buf_printf(out, " over %d cores, kernel %d\n", (int)json_integer_value(json_object_get(op, "cores")),
                (int)json_integer_value(json_object_get(op, "kernel")));
  json_array_foreach (json_object_get(op, "in_loops"), i, node)
    sw_buf_printf(out, "in loop     %d: %d turns\n", (int)json_integer_value(json_object_get(node, "loop")),
                  (int)json_integer_value(json_object_get(node, "turns")));
  sw_buf_printf(out, "predicted   %.1f ns: compute %.1f, HBM %.1f, LX %.1f, overhead %.1f\n",
                json_number_value(json_object_get(op, "predicted_ns")), json_number_value(json_object_get(time, "compute")),
                json_number_value(json_object_get(time, "hbm")), json_number_value(json_object_get(time, "lx")),
                json_number_value(json_object_get(time, "overhead")));
}

static void raw_value(struct sw_jw *w, const json_t *v)
{
  char *text = v ? json_dumps(v, JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(15)) : NULL;
  if (!text) {
    sw_jw_null(w);
    return;
  }
  if (w->need_comma && !w->after_key)
    sw_buf_puts(w->out, ",");
  sw_buf_puts(w->out, text);
  free(text);
  w->after_key = false;
  w->need_comma = true;
}

static void raw(struct sw_jw *w, const char *key, const json_t *v)
{
  sw_jw_key(w, key);
  raw_value(w, v);
}

static void as_document(const struct explaining *x, struct sw_buf *out)
{
  struct sw_jw w = {.out = out, .indent = 1};
  sw_jw_object(&w);
  sw_jw_kstr(&w, "format", "stickwright.explanation/1");
  sw_jw_kstr(&w, "name", x->name);
  raw(&w, "storage", x->storage);
  raw(&w, "conversion", x->conversion);
  sw_jw_key(&w, "ops");
  sw_jw_array(&w);
  for (int i = 0; i < x->ops.n; i++)
    raw_value(&w, x->ops.v[i]);
  sw_jw_end_array(&w);
  sw_jw_key(&w, "host_steps");
  sw_jw_array(&w);
  for (int i = 0; i < x->host.n; i++)
    raw_value(&w, x->host.v[i]);
  sw_jw_end_array(&w);
  sw_jw_kstr(&w, "unit", x->unit);
  sw_jw_kint(&w, "cost", x->cost);
  sw_jw_key(&w, "candidates");
  sw_jw_array(&w);
  for (int i = 0; i < x->n_candidates; i++) {
    const struct candidate *c = &x->candidates[i];
    sw_jw_object(&w);
    sw_jw_kstr(&w, "layout", c->layout);
    sw_jw_kbool(&w, "chosen", c->chosen);
    sw_jw_key(&w, "cost");
    if (c->possible)
      sw_jw_int(&w, c->cost);
    else
      sw_jw_null(&w);
    sw_jw_kint(&w, "own_conversions", c->own_conversions);
    sw_jw_kint(&w, "conversions", c->conversions);
    sw_jw_end_object(&w);
  }
  sw_jw_end_array(&w);
  sw_jw_key(&w, "dropped");
  sw_jw_array(&w);
  for (int i = 0; i < x->dropped.n; i++)
    raw_value(&w, x->dropped.v[i]);
  sw_jw_end_array(&w);
  const struct candidate *r = remedy(x);
  sw_jw_kstr(&w, "remedy", r ? r->layout : NULL);
  sw_jw_end_object(&w);
  sw_buf_puts(out, "\n");
}

/* "bundle_0/sdsc_3.json", or the end of it behind a slash. */
static bool is_file(const json_t *op, const char *name)
{
  const char *file = json_string_value(json_object_get(op, "file")), *end = file ? strrchr(file, '/') : NULL;
  return file && (!strcmp(file, name) || (end && !strcmp(end + 1, name)));
}

/* A name may be that of an op, of a node, of a source line ("model.py:12") or of a file: what belongs together is found
 * from either end. */
static void find_ops(struct explaining *x)
{
  struct sw_arena *a = x->job->arena;
  size_t i, k;
  json_t *op, *node;
  json_array_foreach (json_object_get(x->result, "ops"), i, op) {
    bool found = !strcmp(text_of(op, "name"), x->name) || !strcmp(text_of(op, "source"), x->name) || is_file(op, x->name);
    json_array_foreach (json_object_get(op, "nodes"), k, node)
      found |= !strcmp(json_string_value(node), x->name);
    if (found)
      *SW_PUSH(a, &x->ops) = op;
  }
  json_array_foreach (json_object_get(x->result, "host_steps"), i, op)
    if (!strcmp(text_of(op, "name"), x->name))
      *SW_PUSH(a, &x->host) = op;
}

static void read_dropped(struct explaining *x, const char *dir)
{
  const char *text;
  size_t len, i;
  json_t *d;
  struct sw_job quiet = {.arena = x->job->arena}; /* results of earlier versions have no such file */
  const json_t *doc = read_document(&quiet, dir, "dropped.json", &text, &len);
  json_array_foreach (json_object_get(doc, "dropped"), i, d)
    if (!strcmp(text_of(d, "storage"), x->name))
      *SW_PUSH(x->job->arena, &x->dropped) = d;
}

/* A parameter may be called as the module calls it, "mlp.up.weight", or by the end of that behind a dot if no other ends so:
 * weights.json says which storage that is. */
static const char *storage_name(struct sw_job *job, const char *dir, const char *name)
{
  const char *text;
  size_t len, i, n = strlen(name);
  struct sw_job quiet = {.arena = job->arena}; /* a program without weights has no such file */
  const json_t *doc = read_document(&quiet, dir, "weights.json", &text, &len);
  const json_t *weight = doc ? where(json_object_get(doc, "weights"), "name", name) : NULL, *ends = NULL;
  json_t *w;
  int found = 0;
  json_array_foreach (json_object_get(doc, "weights"), i, w) {
    const char *full = text_of(w, "name");
    size_t len_full = strlen(full);
    if (len_full > n && full[len_full - n - 1] == '.' && !strcmp(full + len_full - n, name)) {
      ends = w;
      found++;
    }
  }
  weight = weight ? weight : found == 1 ? ends : NULL;
  return weight ? text_of(weight, "buffer") : name;
}

static bool is_alike(const char *a, const char *b)
{
  return strstr(a, b) || strstr(b, a);
}

/* Names that have the wrong one in them or the other way round, a few. */
static enum sw_rc refuse_name(struct explaining *x, const char *dir)
{
  enum { MOST = 5 };
  static const char *const lists[] = {"storages", "ops"};
  struct sw_buf near = {.arena = x->job->arena};
  int n = 0;
  for (int k = 0; k < 2; k++) {
    size_t i;
    json_t *e;
    json_array_foreach (json_object_get(x->result, lists[k]), i, e) {
      const char *name = text_of(e, "name");
      bool again = k == 1 && where(json_object_get(x->result, lists[0]), "name", name);
      if (n < MOST && !again && is_alike(name, x->name))
        sw_buf_printf(&near, "%s%s", n++ ? ", " : "", name);
    }
  }
  sw_fault(x->job, SW_NO_INPUT, "%s: no storage, op, node, source line or file of this result is called %s", dir, x->name)->advice =
      n ? sw_arena_printf(x->job->arena, "there are %s; result.json lists all", sw_buf_text(&near)) : "result.json lists them";
  return SW_NO_INPUT;
}

/* Whether the loader may make several layouts of it. */
static bool loads_again(const struct explaining *x)
{
  const json_t *options = json_object_get(x->result, "options");
  const char *kind = text_of(x->storage, "kind");
  return (!strcmp(kind, "parameter") || !strcmp(kind, "buffer") || !strcmp(kind, "constant")) &&
         !strcmp(text_of(options, "profile"), "best") && !strcmp(text_of(options, "free-weights"), "on") &&
         !json_is_true(json_object_get(x->storage, "pinned"));
}

enum sw_rc sw_explain(struct sw_job *job, const char *dir, const char *name, bool as_json, struct sw_buf *out)
{
  const char *text;
  size_t len;
  struct explaining x = {.job = job, .name = name};
  x.result = read_document(job, dir, "result.json", &text, &len);
  if (!x.result)
    return job->worst;
  x.storage = where(json_object_get(x.result, "storages"), "name", name);
  find_ops(&x);
  if (!x.storage && !x.ops.n && !x.host.n) {
    const char *base = json_string_value(json_object_get(json_object_get(x.result, "views"), name));
    x.view_of = base ? name : NULL;
    x.name = base ? base : storage_name(job, dir, name);
    x.storage = where(json_object_get(x.result, "storages"), "name", x.name);
  }
  x.unit = text_of(json_object_get(x.result, "objective"), "unit");
  x.cost = json_integer_value(json_object_get(json_object_get(x.result, "objective"), "value"));
  if (!x.storage && !x.ops.n && !x.host.n)
    return x.view_of ? sw_fail(job, SW_NO_INPUT, "%s: %s is a view of %s, which is a constant or nobody reads it", dir, name, x.name)
                     : refuse_name(&x, dir);
  if (x.storage) {
    x.loads_again = loads_again(&x);
    x.conversion = where(json_object_get(x.result, "conversions"), "copy", x.name);
    read_dropped(&x, dir);
    SW_TRY(force_each(&x, dir));
  }
  if (as_json) {
    as_document(&x, out);
    return SW_OK;
  }
  if (x.storage)
    text_storage(&x, out);
  for (int i = 0; i < x.ops.n; i++)
    text_op(&x, x.ops.v[i], out);
  for (int i = 0; i < x.host.n; i++)
    sw_buf_printf(out, "host step   %s: %s, %s\n", text_of(x.host.v[i], "name"), text_of(x.host.v[i], "op"),
                  text_of(x.host.v[i], "why"));
  return SW_OK;
}
