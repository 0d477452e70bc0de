/* The text form (grammar: docs/formats.md). One statement a line; brackets may span lines. A statement with a mistake
 * is one fault with its line, and reading goes on with the next line. */
#include "compiler/graph/infer.h"
#include "compiler/graph/text.h"

#include <ctype.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* -- statements -- */

static bool define(struct sw_text *t, int id, int node, int result)
{
  struct sw_value *v = &t->scope->names.graph->values.v[id];
  if (v->node != SW_NODE_UNDEFINED)
    return sw_text__fail(t, "%%%s is defined twice", v->name);
  v->node = node;
  v->result = result;
  return true;
}

/* model.py:12 */
static bool is_source(const char *s)
{
  const char *colon = strrchr(s, ':');
  return colon && colon > s && colon[1] && !colon[1 + strspn(colon + 1, "0123456789")];
}

/* "# model.py:12 in layers.0 of norm", each of the three may be missing; any other comment says nothing. */
static void comment(struct sw_text *t, struct sw_node *n)
{
  enum { MAX_WORDS = 6 };
  const char *word[MAX_WORDS], *source = NULL, *module = NULL, *origin = NULL;
  int n_words = 0, at = 0;
  const char *s = t->s + 1;
  size_t len;
  for (; n_words < MAX_WORDS && (s += strspn(s, " \t"), len = strcspn(s, " \t\r\n")) > 0; s += len)
    word[n_words++] = sw_arena_strndup(t->job->arena, s, len);
  if (at < n_words && is_source(word[at]))
    source = word[at++];
  if (at + 1 < n_words && !strcmp(word[at], "in")) {
    module = word[at + 1];
    at += 2;
  }
  if (at + 1 < n_words && !strcmp(word[at], "of")) {
    origin = word[at + 1];
    at += 2;
  }
  if (at < n_words)
    return;
  n->source = source;
  n->module = module;
  n->origin = origin;
}

/* Nothing but a comment may follow; that of a node may say where it comes from. */
static bool end_of_statement(struct sw_text *t, struct sw_node *n)
{
  sw_text__blanks(t);
  if (*t->s == '#') {
    if (n)
      comment(t, n);
    t->s += strcspn(t->s, "\n");
  }
  return !*t->s || *t->s == '\n' || sw_text__fail(t, "end of line expected, found %s", sw_text__here(t));
}

/* -- inputs -- */

static const struct {
  const char *word;
  enum sw_input_kind kind;
} input_words[] = {
    {"input", SW_INPUT_USER},
    {"parameter", SW_INPUT_PARAMETER},
    {"buffer", SW_INPUT_BUFFER},
    {"constant", SW_INPUT_TENSOR_CONSTANT},
};

static bool input_options(struct sw_text *t, struct sw_input *in)
{
  struct sw_arena *a = t->job->arena;
  int64_t v[2][SW_MAX_RANK], number;
  int n[2] = {-1, -1};
  for (bool first = true; !sw_text__skip(t, ')'); first = false) {
    if (!first && !sw_text__expect(t, ','))
      return false;
    sw_text__blanks(t);
    if (first && *t->s == '"') {
      if (!(in->target = sw_text__string(t)))
        return false;
      continue;
    }
    const char *w = sw_text__name(t, "device_size, stride_map, persistent or record");
    if (!w || !sw_text__expect(t, '='))
      return false;
    int which = !strcmp(w, "stride_map");
    struct sw_arg arg;
    if (which || !strcmp(w, "device_size")) {
      if (!sw_text__integers(t, v[which], SW_MAX_RANK, &n[which]))
        return false;
    } else if (!strcmp(w, "persistent")) {
      if (!sw_text__argument(t, &arg) || arg.kind != SW_ARG_BOOL)
        return sw_text__fail(t, "persistent is True or False");
      in->persistent = arg.i;
    } else if (!strcmp(w, "record")) {
      if (!sw_text__integer(t, &number))
        return false;
      if (number < 0 || number > INT_MAX)
        return sw_text__fail(t, "record is out of range");
      in->record = (int)number;
    } else {
      return sw_text__fail(t, "no option %.60s here; there are device_size, stride_map, persistent, record", w);
    }
  }
  if (n[0] != n[1])
    return sw_text__fail(t, "device_size and stride_map must have the same number of entries");
  if (n[0] < 0)
    return true;
  struct sw_given_layout *layout = SW_NEW(a, struct sw_given_layout);
  layout->rank = n[0];
  layout->device_size = sw_arena_copy(a, v[0], (size_t)n[0], sizeof **v);
  layout->stride_map = sw_arena_copy(a, v[1], (size_t)n[1], sizeof **v);
  in->layout = layout;
  return true;
}

static bool input(struct sw_text *t, enum sw_input_kind kind, int id)
{
  struct sw_graph *g = t->scope->names.graph;
  struct sw_input in = {.kind = kind, .value = id, .record = -1, .literal = {.name = ""}};
  g->values.v[id].node = -1;
  in.name = g->values.v[id].name;
  in.persistent = kind == SW_INPUT_BUFFER;
  if (sw_text__skip(t, '(') && !input_options(t, &in))
    return false;
  if (kind != SW_INPUT_USER && !in.target)
    in.target = in.name;
  *SW_PUSH(t->job->arena, &g->inputs) = in;
  return end_of_statement(t, NULL);
}

/* %flag = literal(3): an argument that was baked into the program. Nothing can read it, so it is no value. */
static bool literal_input(struct sw_text *t, const char *name)
{
  struct sw_input in = {.kind = SW_INPUT_CONSTANT, .name = name, .value = -1, .record = -1};
  if (!sw_text__at(t, "literal"))
    return sw_text__fail(t, "%%%s needs a type", name);
  t->s += 7;
  if (!sw_text__expect(t, '(') || !sw_text__argument(t, &in.literal) || !sw_text__expect(t, ')'))
    return false;
  *SW_PUSH(t->job->arena, &t->scope->names.graph->inputs) = in;
  return end_of_statement(t, NULL);
}

/* The name in `%name =`, which is passed; NULL and nothing passed when a type follows. */
static const char *untyped_name(struct sw_text *t)
{
  struct sw_text ahead = *t;
  if (!sw_text__skip(&ahead, '%') || (*ahead.s != '"' && !sw_text__in_word(*ahead.s)))
    return NULL;
  size_t n = strcspn(ahead.s, "\n"); /* a string without end is reported when the name is read */
  if (*ahead.s == '"' && !memchr(ahead.s + 1, '"', n - 1))
    return NULL;
  const char *name = sw_text__name(&ahead, "name");
  if (!name || !sw_text__skip(&ahead, '='))
    return NULL;
  *t = ahead;
  return name;
}

/* -- nodes -- */

/* "aten.add" of "aten.add.Tensor" is a packet; "_assert_scalar" its last part */
static const char *node_name(struct sw_text *t, const struct sw_node *n)
{
  const struct sw_graph *g = t->scope->names.graph;
  for (int i = 0; i < n->n_results; i++)
    if (n->results[i] >= 0)
      return g->values.v[n->results[i]].name;
  return sw_arena_printf(t->job->arena, "node_%d", g->nodes.n - 1);
}

/* A view without stated strides lies in its argument as PyTorch would have it. */
static void place_view(struct sw_text *t, const struct sw_node *n)
{
  struct sw_shape s;
  if (n->n_results != 1 || n->results[0] < 0 || t->scope->mentions.v[n->results[0]].placed)
    return;
  struct sw_value *v = &t->scope->names.graph->values.v[n->results[0]];
  if (v->kind != SW_VALUE_TENSOR || v->size_expr || !sw_graph__infer_view(t->scope->names.graph, n, &s) ||
      s.rank != v->rank || memcmp(s.size, v->size, (size_t)s.rank * sizeof *s.size))
    return;
  v->stride = sw_arena_copy(t->job->arena, s.stride, (size_t)s.rank, sizeof *s.stride);
  v->offset = s.offset;
}

static bool node(struct sw_text *t, const char *label, const int *results, int n_results)
{
  struct sw_graph *g = t->scope->names.graph;
  struct sw_node *n = SW_PUSH(t->job->arena, &g->nodes);
  int number = g->nodes.n - 1;
  *n = (struct sw_node){.name = label, .target = ""};
  n->results = sw_arena_copy(t->job->arena, results, (size_t)n_results, sizeof *results);
  n->n_results = n_results;
  if (!label)
    n->name = node_name(t, n);
  char *target = sw_text__name(t, "op");
  struct sw_text_args w = {0};
  if (!target || !sw_text__arguments(t, &w))
    return false;
  n = &g->nodes.v[number];
  n->target = target;
  n->schema = sw_schema_find(target);
  const struct sw_schema *first;
  if (!n->schema && sw_schema__packet(target, &first)) {
    const char *why = "";
    n->schema = sw_graph__overload(&t->scope->names, target, w.list.v, w.list.n, &why);
    if (!n->schema)
      return sw_text__fail(t, "%s", why);
    n->target = n->schema->target;
  }
  bool good = end_of_statement(t, n);
  int n_faults = t->job->faults.n;
  sw_graph__bind(&t->scope->names, n, w.list.v, w.list.n);
  for (int i = n_faults; i < t->job->faults.n; i++)
    t->job->faults.v[i].source = sw_arena_printf(t->job->arena, "line %d", t->line);
  place_view(t, n);
  return good;
}

/* %a : f16[..], _ = op(..); %x : f16[..] = input; %n = literal(3) */
static bool definition(struct sw_text *t, const char *label)
{
  SW_VEC(int) results = {0};
  struct sw_graph *g = t->scope->names.graph;
  int number = g->nodes.n;
  const char *untyped = untyped_name(t);
  if (untyped)
    return literal_input(t, untyped);
  do {
    sw_text__blanks(t);
    if (sw_text__at(t, "_")) {
      t->s++;
      *SW_PUSH(t->job->arena, &results) = -1;
      continue;
    }
    int id = sw_text__value(t);
    if (id < 0 || !define(t, id, number, results.n))
      return false;
    if (!sw_text__expect(t, ':') || !sw_text__type(t, id))
      return false;
    *SW_PUSH(t->job->arena, &results) = id;
  } while (sw_text__skip(t, ','));
  if (!sw_text__expect(t, '='))
    return false;
  for (size_t i = 0; i < sizeof input_words / sizeof input_words[0]; i++)
    if (sw_text__at(t, input_words[i].word)) {
      t->s += strlen(input_words[i].word);
      if (results.n != 1 || results.v[0] < 0)
        return sw_text__fail(t, "an input has one name, %%name");
      return input(t, input_words[i].kind, results.v[0]);
    }
  return node(t, label, results.v, results.n);
}

/* -- outputs and the rest -- */

static bool return_statement(struct sw_text *t)
{
  struct sw_graph *g = t->scope->names.graph;
  if (t->scope->returned)
    return sw_text__fail(t, "a second return");
  t->scope->returned = true;
  sw_text__blanks(t);
  for (bool first = true; *t->s && !strchr("\n#", *t->s); sw_text__blanks(t), first = false) {
    struct sw_output out = {.kind = SW_OUTPUT_USER};
    if ((!first && !sw_text__expect(t, ',')) || !sw_text__argument(t, &out.arg))
      return false;
    *SW_PUSH(t->job->arena, &g->outputs) = out;
  }
  return end_of_statement(t, NULL);
}

/* mutate %cache = %new. Which kind it is follows from what %cache is; settled at the end. */
static bool mutate_statement(struct sw_text *t)
{
  struct sw_graph *g = t->scope->names.graph;
  struct sw_output out = {.kind = SW_OUTPUT_BUFFER_MUTATION};
  int id = sw_text__value(t);
  if (id < 0 || !sw_text__expect(t, '=') || !sw_text__argument(t, &out.arg))
    return false;
  if (t->scope->returned)
    return sw_text__fail(t, "mutate stands before return");
  out.target = g->values.v[id].name;
  *SW_PUSH(t->job->arena, &g->outputs) = out;
  return end_of_statement(t, NULL);
}

/* range s39 = 2..64; a bound may be missing */
static bool range_statement(struct sw_text *t)
{
  struct sw_range r = {0};
  size_t n = 0;
  sw_text__blanks(t);
  for (; t->s[n] && t->s[n] != '\n'; n++) /* the last " = ": an expression may hold one of its own */
    if (!strncmp(t->s + n, " = ", 3))
      break;
  if (strncmp(t->s + n, " = ", 3))
    return sw_text__fail(t, "range SYMBOL = MIN..MAX expected");
  r.symbol = sw_arena_strndup(t->job->arena, t->s, n);
  t->s += n + 3;
  sw_text__blanks(t);
  char *end;
  r.min = strtoll(t->s, &end, 10);
  r.has_min = end != t->s;
  t->s = end;
  if (strncmp(t->s, "..", 2))
    return sw_text__fail(t, "'..' expected, found %s", sw_text__here(t));
  t->s += 2;
  r.max = strtoll(t->s, &end, 10);
  r.has_max = end != t->s;
  t->s = end;
  *SW_PUSH(t->job->arena, &t->scope->names.graph->ranges) = r;
  return end_of_statement(t, NULL);
}

static bool assume_statement(struct sw_text *t)
{
  const char *guard = sw_text__name(t, "a condition in quotes");
  if (guard)
    *SW_PUSH(t->job->arena, &t->scope->names.graph->guards) = guard;
  return guard && end_of_statement(t, NULL);
}

static bool dialect_statement(struct sw_text *t)
{
  const char *d = sw_text__name(t, "dialect");
  if (d)
    t->scope->names.graph->dialect = d;
  return d && end_of_statement(t, NULL);
}

static struct sw_graph *graph_body(struct sw_text *t, bool is_block);

/* graph @name { .. } */
static bool graph_statement(struct sw_text *t)
{
  if (!sw_text__expect(t, '@'))
    return false;
  char *n = sw_text__name(t, "name");
  if (!n || !sw_text__expect(t, '{') || !end_of_statement(t, NULL))
    return false;
  if (++t->nesting > SW_TEXT_MAX_NESTING)
    return sw_text__fail(t, "graphs are nested deeper than %d", SW_TEXT_MAX_NESTING);
  struct sw_graph *g = graph_body(t, true);
  t->nesting--;
  g->name = n;
  if (sw_map_set_str(&t->scope->blocks_by_name, n, t->scope->blocks.n) >= 0)
    return sw_text__fail(t, "graph @%s is defined twice", n);
  *SW_PUSH(t->job->arena, &t->scope->blocks) = (struct sw_text_block){.graph = g};
  return end_of_statement(t, NULL);
}

static const struct {
  const char *word;
  bool (*parse)(struct sw_text *t);
} statements[] = {
    {"return", return_statement},   {"mutate", mutate_statement}, {"range", range_statement},
    {"assume", assume_statement},   {"dialect", dialect_statement}, {"graph", graph_statement},
};

static bool statement(struct sw_text *t)
{
  for (size_t i = 0; i < sizeof statements / sizeof statements[0]; i++)
    if (sw_text__at(t, statements[i].word)) {
      t->s += strlen(statements[i].word);
      return statements[i].parse(t);
    }
  const char *label = NULL;
  sw_text__blanks(t);
  if (*t->s != '%' && !sw_text__at(t, "_")) { /* a label, or an op without results */
    struct sw_text ahead = *t;
    label = sw_text__name(&ahead, "statement");
    if (!label) {
      t->s = ahead.s;
      return false;
    }
    if (!sw_text__skip(&ahead, ':'))
      return node(t, NULL, NULL, 0);
    *t = ahead;
    sw_text__blanks(t);
    if (*t->s != '%' && !sw_text__at(t, "_"))
      return node(t, label, NULL, 0);
  }
  return definition(t, label);
}

/* -- a graph -- */

/* What only the end shows: names that nothing defines, what is mutated. */
static void finish(struct sw_text *t)
{
  struct sw_graph *g = t->scope->names.graph;
  struct sw_map inputs = {.arena = t->job->arena};
  for (int i = 0; i < g->inputs.n; i++)
    sw_map_set_str(&inputs, g->inputs.v[i].name, i);
  for (int i = 0; i < g->outputs.n; i++) {
    struct sw_output *o = &g->outputs.v[i];
    int64_t in = o->target ? sw_map_get_str(&inputs, o->target) : -1;
    if (in < 0)
      continue;
    bool is_user = g->inputs.v[in].kind == SW_INPUT_USER;
    o->kind = is_user ? SW_OUTPUT_INPUT_MUTATION : SW_OUTPUT_BUFFER_MUTATION;
    o->target = is_user ? g->inputs.v[in].name : g->inputs.v[in].target;
  }
  for (int i = 0; i < g->values.n; i++) {
    struct sw_value *v = &g->values.v[i];
    if (v->node != SW_NODE_UNDEFINED)
      continue;
    struct sw_fault *f = sw_fault(t->job, SW_INVALID, "%%%s is read but nothing defines it", v->name);
    f->source = sw_arena_printf(t->job->arena, "line %d", t->scope->mentions.v[i].line);
    f->tensor = v->name;
  }
  if (!t->scope->returned)
    sw_text__fail(t, "the graph has no return");
}

static struct sw_graph *graph_body(struct sw_text *t, bool is_block)
{
  struct sw_arena *a = t->job->arena;
  struct sw_graph *g = SW_NEW(a, struct sw_graph);
  g->name = g->dialect = "";
  g->form = "text";
  struct sw_text_scope scope = {.names = {.job = t->job, .graph = g, .values = {.arena = a}},
                                .blocks_by_name = {.arena = a}};
  struct sw_text_scope *outer = t->scope;
  t->scope = &scope;
  bool closed = false;
  while (*t->s && !closed) {
    sw_text__blanks(t);
    if (*t->s == '}' && is_block) {
      t->s++;
      closed = true;
    } else if (*t->s == '\n') {
      t->s++;
      t->line++;
    } else if (*t->s == '#') {
      t->s += strcspn(t->s, "\n");
    } else if (*t->s) {
      int nesting = t->nesting;
      if (!statement(t)) {
        t->s += strcspn(t->s, "\n");
        t->nesting = nesting;
      }
      t->brackets = 0;
    }
  }
  if (is_block && !closed)
    sw_text__fail(t, "'}' is missing");
  finish(t);
  t->scope = outer;
  return g;
}

struct sw_graph *sw_graph__read_text(struct sw_job *job, const char *text, size_t len)
{
  if (memchr(text, 0, len)) {
    sw_fault(job, SW_INVALID, "the file is neither a .pt2 archive nor a program's JSON nor a text graph")->advice =
        "export the model with torch.export.save";
    return NULL;
  }
  struct sw_text t = {.job = job, .s = sw_arena_strndup(job->arena, text, len), .line = 1};
  return graph_body(&t, false);
}
