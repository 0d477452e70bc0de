/* The text form (grammar: docs/formats.md). One statement a line; brackets may span lines. A statement with a mistake
 * is one fault with its line, and reading goes on with the next line. */
#include "compiler/graph/text.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_NESTING = 32 }; /* lists in lists, graphs in graphs */

/* One graph that is being read: the top one, or a block `graph @name { .. }` in it. */
struct scope {
  struct sw_names names;
  SW_VEC(int) first_line; /* a value: where its name was first seen */
  struct sw_map graphs;   /* name -> blocks */
  SW_VEC(struct sw_graph *) blocks;
  bool returned;
};

struct text {
  struct sw_job *job;
  const char *s;
  int line, brackets, nesting;
  struct scope *scope;
};

static bool parse_fail(struct text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static bool parse_fail(struct text *t, const char *fmt, ...)
{
  char text[400];
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(text, sizeof text, fmt, ap);
  va_end(ap);
  sw_fault(t->job, SW_INVALID, "%s", text)->source = sw_arena_printf(t->job->arena, "line %d", t->line);
  return false;
}

/* -- tokens -- */

static void blanks(struct text *t)
{
  for (;; t->s++) {
    if (*t->s == '\n' && t->brackets)
      t->line++;
    else if (*t->s == '#' && t->brackets)
      t->s += strcspn(t->s, "\n") - 1;
    else if (*t->s != ' ' && *t->s != '\t' && *t->s != '\r')
      return;
  }
}

static bool skip(struct text *t, char c)
{
  blanks(t);
  if (*t->s != c)
    return false;
  t->s++;
  if (strchr("([", c))
    t->brackets++;
  else if (strchr(")]", c))
    t->brackets -= t->brackets > 0;
  return true;
}

/* What stands here, for messages. */
static const char *here(struct text *t)
{
  blanks(t);
  if (!*t->s)
    return "the end";
  if (*t->s == '\n')
    return "the end of the line";
  int n = (int)strcspn(t->s, "\n");
  return sw_arena_printf(t->job->arena, "\"%.*s\"", n < 24 ? n : 24, t->s);
}

static bool expect(struct text *t, char c)
{
  return skip(t, c) || parse_fail(t, "'%c' expected, found %s", c, here(t));
}

/* Length of a bare word: a name, an op, a keyword. */
static size_t word(const struct text *t)
{
  size_t n = 0;
  while (sw_text__in_word(t->s[n]))
    n++;
  return n;
}

static bool at_word(struct text *t, const char *w)
{
  blanks(t);
  size_t n = word(t);
  return n == strlen(w) && !memcmp(t->s, w, n);
}

static int hex(char c)
{
  return isdigit((unsigned char)c) ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* "text" with \" \\ \n \t \xHH */
static char *quoted(struct text *t)
{
  struct sw_buf b = {.arena = t->job->arena};
  sw_buf_add(&b, "", 0);
  for (t->s++; *t->s != '"'; t->s++) {
    char c = *t->s;
    if (!c || c == '\n') {
      parse_fail(t, "a string does not end");
      return NULL;
    }
    if (c == '\\') {
      c = *++t->s;
      int high = c == 'x' ? hex(t->s[1]) : -1, low = high >= 0 ? hex(t->s[2]) : -1;
      if (c == 'n' || c == 't') {
        c = c == 'n' ? '\n' : '\t';
      } else if (low >= 0 && high + low) {
        c = (char)(high * 16 + low);
        t->s += 2;
      } else if (c != '"' && c != '\\') {
        parse_fail(t, "unknown escape in a string; there are \\\" \\\\ \\n \\t \\xHH");
        return NULL;
      }
    }
    sw_buf_add(&b, &c, 1);
  }
  t->s++;
  return b.p;
}

/* A bare word or a string. */
static char *name(struct text *t, const char *what)
{
  blanks(t);
  if (*t->s == '"')
    return quoted(t);
  size_t n = word(t);
  if (!n) {
    parse_fail(t, "%s expected, found %s", what, here(t));
    return NULL;
  }
  char *s = sw_arena_strndup(t->job->arena, t->s, n);
  t->s += n;
  return s;
}

static bool integer(struct text *t, int64_t *out)
{
  blanks(t);
  char *end;
  errno = 0;
  *out = strtoll(t->s, &end, 10);
  if (end == t->s || errno || *end == '.' || sw_text__in_word(*end))
    return parse_fail(t, "integer expected, found %s", here(t));
  t->s = end;
  return true;
}

static bool integers(struct text *t, int64_t *out, int max, int *n)
{
  *n = 0;
  if (!expect(t, '['))
    return false;
  while (!skip(t, ']')) {
    if (*n && !expect(t, ','))
      return false;
    if (*n == max)
      return parse_fail(t, "more than %d numbers in a list", max);
    if (!integer(t, &out[(*n)++]))
      return false;
  }
  return true;
}

/* -- types -- */

/* One dim: 128, or EXPRESSION:VALUE for a dynamic one. */
static bool dim(struct text *t, int64_t *size, const char **expr)
{
  blanks(t);
  size_t n = 0;
  int depth = 0;
  for (; t->s[n] && t->s[n] != '\n'; n++) {
    if (!depth && strchr(",]:)", t->s[n]))
      break;
    depth += (t->s[n] == '(') - (t->s[n] == ')');
  }
  *expr = NULL;
  if (t->s[n] != ':')
    return integer(t, size);
  const char *text = sw_arena_strndup(t->job->arena, t->s, n);
  if (!sw_expr_parse(t->job->arena, text))
    return parse_fail(t, "\"%.100s\" is no expression over symbols", text);
  *expr = text;
  t->s += n + 1;
  return integer(t, size);
}

static bool dims(struct text *t, int64_t **out, const char ***exprs, int *rank)
{
  int64_t v[SW_MAX_RANK];
  const char *e[SW_MAX_RANK];
  bool symbolic = false;
  int n = 0;
  if (!expect(t, '['))
    return false;
  while (!skip(t, ']')) {
    if (n && !expect(t, ','))
      return false;
    if (n == SW_MAX_RANK)
      return parse_fail(t, "more than %d dims", SW_MAX_RANK);
    if (!dim(t, &v[n], &e[n]))
      return false;
    symbolic |= e[n++] != NULL;
  }
  *out = sw_arena_copy(t->job->arena, v, (size_t)n, sizeof *v);
  *exprs = symbolic ? sw_arena_copy(t->job->arena, e, (size_t)n, sizeof *e) : NULL;
  *rank = n;
  return true;
}

/* strides=[..] and offset=N behind a tensor type. */
static bool placement(struct text *t, struct sw_value *v)
{
  bool has_strides = false;
  for (;;) {
    if (at_word(t, "strides")) {
      t->s += 7;
      int n;
      if (!expect(t, '=') || !dims(t, &v->stride, &v->stride_expr, &n))
        return false;
      if (n != v->rank)
        return parse_fail(t, "%s has %d dims but %d strides", v->name, v->rank, n);
      has_strides = true;
    } else if (at_word(t, "offset")) {
      t->s += 6;
      if (!expect(t, '=') || !integer(t, &v->offset))
        return false;
    } else {
      break;
    }
  }
  if (!has_strides) {
    v->stride = SW_NEW_N(t->job->arena, int64_t, v->rank);
    if (!sw_graph__row_major(v->rank, v->size, v->stride))
      return parse_fail(t, "tensor %s: its size in bytes does not fit 63 bits", v->name);
  }
  return true;
}

static const struct {
  const char *word;
  enum sw_value_kind kind;
} number_types[] = {{"int", SW_VALUE_SYM_INT}, {"bool", SW_VALUE_SYM_BOOL}, {"float", SW_VALUE_SYM_FLOAT}};

/* f16[128,256] strides=[..] offset=..; or a number known at run time: int(8*s39:48) */
static bool type(struct text *t, int id)
{
  struct sw_value v = t->scope->names.graph->values.v[id];
  char *w = name(t, "type");
  if (!w)
    return false;
  blanks(t);
  bool good;
  if (*t->s == '(') {
    int k = 0;
    while (k < 3 && strcmp(number_types[k].word, w))
      k++;
    if (k == 3)
      return parse_fail(t, "\"%.60s\" is no kind of number; there are int, bool, float", w);
    v.kind = number_types[k].kind;
    good = expect(t, '(') && dim(t, &v.hint, &v.expr) && expect(t, ')');
  } else {
    v.kind = SW_VALUE_TENSOR;
    v.dtype = sw_dtype_from_text(w);
    if (v.dtype == SW_N_DTYPES)
      return parse_fail(t, "dtype \"%.60s\" is unknown", w);
    good = dims(t, &v.size, &v.size_expr, &v.rank) && placement(t, &v);
  }
  t->scope->names.graph->values.v[id] = v;
  return good;
}

/* -- values -- */

static int value(struct text *t)
{
  if (!expect(t, '%'))
    return -1;
  const char *n = name(t, "name");
  if (!n)
    return -1;
  int id = sw_graph__value(&t->scope->names, n);
  while (t->scope->first_line.n <= id)
    *SW_PUSH(t->job->arena, &t->scope->first_line) = t->line;
  return id;
}

static bool define(struct text *t, int id, int node, int result)
{
  struct sw_value *v = &t->scope->names.graph->values.v[id];
  if (v->node != SW_NODE_UNDEFINED)
    return parse_fail(t, "%%%s is defined twice", v->name);
  v->node = node;
  v->result = result;
  return true;
}

/* -- arguments -- */

static bool argument(struct text *t, struct sw_arg *out);

static bool list(struct text *t, struct sw_arg *out)
{
  SW_VEC(struct sw_arg) v = {0};
  if (++t->nesting > MAX_NESTING)
    return parse_fail(t, "lists are nested deeper than %d", MAX_NESTING);
  expect(t, '[');
  while (!skip(t, ']')) {
    struct sw_arg a;
    if ((v.n && !expect(t, ',')) || !argument(t, &a))
      return false;
    *SW_PUSH(t->job->arena, &v) = a;
  }
  t->nesting--;
  out->kind = SW_ARG_LIST;
  out->list.v = v.v;
  out->list.n = v.n;
  return true;
}

static bool number(struct text *t, struct sw_arg *out)
{
  const char *s = t->s + (*t->s == '-' || *t->s == '+');
  char *end;
  errno = 0;
  if (!strncmp(s, "inf", 3) || !strncmp(s, "nan", 3) || s[strspn(s, "0123456789")] == '.' ||
      tolower((unsigned char)s[strspn(s, "0123456789")]) == 'e') {
    out->kind = SW_ARG_REAL;
    out->r = strtod(t->s, &end);
  } else {
    out->kind = SW_ARG_INT;
    out->i = strtoll(t->s, &end, 10);
    if (errno)
      return parse_fail(t, "%s does not fit 64 bits", here(t));
  }
  if (end == t->s || sw_text__in_word(*end))
    return parse_fail(t, "argument expected, found %s", here(t));
  t->s = end;
  return true;
}

static bool graph_reference(struct text *t, struct sw_arg *out)
{
  t->s++;
  const char *n = name(t, "graph");
  int64_t i = n ? sw_map_get_str(&t->scope->graphs, n) : -1;
  if (i < 0)
    return n && parse_fail(t, "there is no graph @%s above", n);
  out->kind = SW_ARG_GRAPH;
  out->graph = t->scope->blocks.v[i];
  return true;
}

/* True, None, f16, torch.strided, device("cpu") */
static bool word_argument(struct text *t, struct sw_arg *out)
{
  const char *w = name(t, "argument");
  if (!w)
    return false;
  if (!strcmp(w, "True") || !strcmp(w, "False")) {
    out->kind = SW_ARG_BOOL;
    out->i = *w == 'T';
    return true;
  }
  if (!strcmp(w, "None"))
    return true;
  if (!strcmp(w, "device")) {
    out->kind = SW_ARG_DEVICE;
    return expect(t, '(') && (out->s = name(t, "device")) && expect(t, ')');
  }
  const char *torch = !strncmp(w, "torch.", 6) ? w + 6 : NULL;
  int64_t n = torch ? sw_text__number_of(SW_TEXT_LAYOUTS, torch) : -1;
  if (n >= 0) {
    out->kind = SW_ARG_LAYOUT;
    out->i = n;
    return true;
  }
  n = torch ? sw_text__number_of(SW_TEXT_MEMORY_FORMATS, torch) : -1;
  if (n >= 0) {
    out->kind = SW_ARG_MEMORY_FORMAT;
    out->i = n;
    return true;
  }
  out->kind = SW_ARG_DTYPE;
  out->dtype = sw_dtype_from_text(torch ? torch : w);
  return out->dtype != SW_N_DTYPES || parse_fail(t, "\"%.60s\" is no argument; a string stands in quotes", w);
}

static bool argument(struct text *t, struct sw_arg *out)
{
  *out = (struct sw_arg){.name = "", .kind = SW_ARG_NONE};
  blanks(t);
  char c = *t->s;
  if (c == '%') {
    out->kind = SW_ARG_VALUE;
    out->value = value(t);
    return out->value >= 0;
  }
  if (c == '[')
    return list(t, out);
  if (c == '@')
    return graph_reference(t, out);
  if (c == '"') {
    out->kind = SW_ARG_STR;
    out->s = quoted(t);
    return out->s != NULL;
  }
  if (isdigit((unsigned char)c) || c == '-' || c == '+' || c == '.' || at_word(t, "inf") || at_word(t, "nan"))
    return number(t, out);
  return word_argument(t, out);
}

/* The name in front of '=', when there is one. */
static bool keyword(struct text *t, const char **out)
{
  *out = NULL;
  blanks(t);
  struct text ahead = *t;
  if (*t->s == '"') {
    const char *n = quoted(&ahead);
    blanks(&ahead);
    if (!n || *ahead.s != '=')
      return true; /* a string argument; a broken one is reported when it is read */
    *out = n;
  } else {
    size_t n = word(&ahead);
    ahead.s += n;
    blanks(&ahead);
    if (!n || *ahead.s != '=')
      return true;
    *out = sw_arena_strndup(t->job->arena, t->s, n);
  }
  *t = ahead;
  t->s++;
  return true;
}

struct written {
  SW_VEC(struct sw_written) list;
};

static bool arguments(struct text *t, struct written *out)
{
  if (!expect(t, '('))
    return false;
  while (!skip(t, ')')) {
    if (out->list.n && !expect(t, ','))
      return false;
    struct sw_written w = {0};
    if (!keyword(t, &w.name) || !argument(t, &w.arg))
      return false;
    *SW_PUSH(t->job->arena, &out->list) = w;
  }
  return true;
}

/* -- statements -- */

/* "# model.py:12 in layers.0" at the end of a line; any other comment says nothing. */
static bool end_of_statement(struct text *t, struct sw_node *n)
{
  blanks(t);
  if (*t->s == '#') {
    const char *s = t->s + 1 + strspn(t->s + 1, " ");
    int len = (int)strcspn(s, "\r\n"), source = len;
    while (len && s[len - 1] == ' ')
      len--;
    for (int i = 0; i + 4 <= len; i++)
      if (!strncmp(s + i, " in ", 4))
        source = i;
    if (len > 3 && !strncmp(s, "in ", 3))
      source = -1;
    int digits = source > 0 ? source : 0;
    while (digits > 0 && isdigit((unsigned char)s[digits - 1]))
      digits--;
    bool is_source = source < 0 || (digits > 1 && digits < source && s[digits - 1] == ':');
    if (n && is_source && source > 0)
      n->source = sw_arena_strndup(t->job->arena, s, (size_t)source);
    if (n && is_source && source < len)
      n->module = sw_arena_strndup(t->job->arena, s + (source < 0 ? 3 : source + 4),
                                   (size_t)(len - (source < 0 ? 3 : source + 4)));
    t->s += strcspn(t->s, "\n");
  }
  return !*t->s || *t->s == '\n' || parse_fail(t, "end of line expected, found %s", here(t));
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

static bool input_options(struct text *t, struct sw_input *in)
{
  struct sw_arena *a = t->job->arena;
  int64_t v[2][SW_MAX_RANK], number_;
  int n[2] = {-1, -1};
  for (bool first = true; !skip(t, ')'); first = false) {
    if (!first && !expect(t, ','))
      return false;
    blanks(t);
    if (first && *t->s == '"') {
      if (!(in->target = quoted(t)))
        return false;
      continue;
    }
    const char *w = name(t, "device_size, stride_map, persistent or record");
    if (!w || !expect(t, '='))
      return false;
    int which = !strcmp(w, "stride_map");
    struct sw_arg arg;
    if (which || !strcmp(w, "device_size")) {
      if (!integers(t, v[which], SW_MAX_RANK, &n[which]))
        return false;
    } else if (!strcmp(w, "persistent")) {
      if (!argument(t, &arg) || arg.kind != SW_ARG_BOOL)
        return parse_fail(t, "persistent is True or False");
      in->persistent = arg.i;
    } else if (!strcmp(w, "record")) {
      if (!integer(t, &number_))
        return false;
      if (number_ < 0 || number_ > INT_MAX)
        return parse_fail(t, "record is out of range");
      in->record = (int)number_;
    } else {
      return parse_fail(t, "there is no option %.60s here; there are device_size, stride_map, persistent, record", w);
    }
  }
  if (n[0] != n[1])
    return parse_fail(t, "device_size and stride_map must have the same number of entries");
  if (n[0] < 0)
    return true;
  struct sw_given_layout *layout = SW_NEW(a, struct sw_given_layout);
  layout->rank = n[0];
  layout->device_size = sw_arena_copy(a, v[0], (size_t)n[0], sizeof **v);
  layout->stride_map = sw_arena_copy(a, v[1], (size_t)n[1], sizeof **v);
  in->layout = layout;
  return true;
}

static bool input(struct text *t, enum sw_input_kind kind, int id)
{
  struct sw_graph *g = t->scope->names.graph;
  struct sw_input in = {.kind = kind, .value = id, .record = -1, .literal = {.name = ""}};
  g->values.v[id].node = -1;
  in.name = g->values.v[id].name;
  in.persistent = kind == SW_INPUT_BUFFER;
  if (skip(t, '(') && !input_options(t, &in))
    return false;
  if (kind != SW_INPUT_USER && !in.target)
    in.target = in.name;
  *SW_PUSH(t->job->arena, &g->inputs) = in;
  return end_of_statement(t, NULL);
}

/* %flag = literal(3): an argument that was baked into the program */
static bool literal_input(struct text *t, int id)
{
  struct sw_graph *g = t->scope->names.graph;
  struct sw_input in = {.kind = SW_INPUT_CONSTANT, .value = -1, .record = -1};
  in.name = g->values.v[id].name;
  if (!at_word(t, "literal"))
    return parse_fail(t, "%%%s needs a type", in.name);
  t->s += 7;
  if (!expect(t, '(') || !argument(t, &in.literal) || !expect(t, ')'))
    return false;
  *SW_PUSH(t->job->arena, &g->inputs) = in;
  return end_of_statement(t, NULL);
}

/* -- nodes -- */

/* "aten.add" of "aten.add.Tensor" is a packet; "_assert_scalar" its last part */
static const char *node_name(struct text *t, const struct sw_node *n)
{
  const struct sw_graph *g = t->scope->names.graph;
  for (int i = 0; i < n->n_results; i++)
    if (n->results[i] >= 0)
      return g->values.v[n->results[i]].name;
  return sw_arena_printf(t->job->arena, "node_%d", g->nodes.n - 1);
}

static bool node(struct text *t, const char *label, const int *results, int n_results)
{
  struct sw_graph *g = t->scope->names.graph;
  struct sw_node *n = SW_PUSH(t->job->arena, &g->nodes);
  int number_ = g->nodes.n - 1;
  *n = (struct sw_node){.name = label, .target = ""};
  n->results = sw_arena_copy(t->job->arena, results, (size_t)n_results, sizeof *results);
  n->n_results = n_results;
  if (!label)
    n->name = node_name(t, n);
  char *target = name(t, "op");
  struct written w = {0};
  if (!target || !arguments(t, &w))
    return false;
  n = &g->nodes.v[number_];
  n->target = target;
  n->schema = sw_schema_find(target);
  const struct sw_schema *first;
  if (!n->schema && sw_schema__packet(target, &first)) {
    const char *why = "";
    n->schema = sw_graph__overload(&t->scope->names, target, w.list.v, w.list.n, &why);
    if (!n->schema)
      return parse_fail(t, "%s", why);
    n->target = n->schema->target;
  }
  const char *where = sw_arena_printf(t->job->arena, "line %d", t->line);
  bool good = end_of_statement(t, n);
  sw_graph__bind(&t->scope->names, n, w.list.v, w.list.n, where);
  return good;
}

/* %a : f16[..], _ = op(..); %x : f16[..] = input; %n = literal(3) */
static bool definition(struct text *t, const char *label)
{
  SW_VEC(int) results = {0};
  struct sw_graph *g = t->scope->names.graph;
  int number_ = g->nodes.n;
  do {
    blanks(t);
    if (at_word(t, "_")) {
      t->s++;
      *SW_PUSH(t->job->arena, &results) = -1;
      continue;
    }
    int id = value(t);
    if (id < 0 || !define(t, id, number_, results.n))
      return false;
    if (!results.n && skip(t, '='))
      return literal_input(t, id);
    if (!expect(t, ':') || !type(t, id))
      return false;
    *SW_PUSH(t->job->arena, &results) = id;
  } while (skip(t, ','));
  if (!expect(t, '='))
    return false;
  for (size_t i = 0; i < sizeof input_words / sizeof input_words[0]; i++)
    if (at_word(t, input_words[i].word)) {
      t->s += strlen(input_words[i].word);
      if (results.n != 1)
        return parse_fail(t, "one name a line for inputs");
      return input(t, input_words[i].kind, results.v[0]);
    }
  return node(t, label, results.v, results.n);
}

/* -- outputs and the rest -- */

static bool return_statement(struct text *t)
{
  struct sw_graph *g = t->scope->names.graph;
  if (t->scope->returned)
    return parse_fail(t, "a second return");
  t->scope->returned = true;
  blanks(t);
  for (bool first = true; *t->s && !strchr("\n#", *t->s); blanks(t), first = false) {
    struct sw_output out = {.kind = SW_OUTPUT_USER};
    if ((!first && !expect(t, ',')) || !argument(t, &out.arg))
      return false;
    *SW_PUSH(t->job->arena, &g->outputs) = out;
  }
  return end_of_statement(t, NULL);
}

/* mutate %cache = %new. Which kind it is follows from what %cache is; settled at the end. */
static bool mutate_statement(struct text *t)
{
  struct sw_graph *g = t->scope->names.graph;
  struct sw_output out = {.kind = SW_OUTPUT_BUFFER_MUTATION};
  int id = value(t);
  if (id < 0 || !expect(t, '=') || !argument(t, &out.arg))
    return false;
  if (t->scope->returned)
    return parse_fail(t, "mutate stands before return");
  out.target = g->values.v[id].name;
  *SW_PUSH(t->job->arena, &g->outputs) = out;
  return end_of_statement(t, NULL);
}

/* range s39 = 2..64; a bound may be missing */
static bool range_statement(struct text *t)
{
  struct sw_range r = {0};
  size_t n = 0;
  blanks(t);
  for (; t->s[n] && t->s[n] != '\n'; n++) /* the last " = ": an expression may hold one of its own */
    if (!strncmp(t->s + n, " = ", 3))
      break;
  if (strncmp(t->s + n, " = ", 3))
    return parse_fail(t, "range SYMBOL = MIN..MAX expected");
  r.symbol = sw_arena_strndup(t->job->arena, t->s, n);
  t->s += n + 3;
  blanks(t);
  char *end;
  r.min = strtoll(t->s, &end, 10);
  r.has_min = end != t->s;
  t->s = end;
  if (strncmp(t->s, "..", 2))
    return parse_fail(t, "'..' expected, found %s", here(t));
  t->s += 2;
  r.max = strtoll(t->s, &end, 10);
  r.has_max = end != t->s;
  t->s = end;
  *SW_PUSH(t->job->arena, &t->scope->names.graph->ranges) = r;
  return end_of_statement(t, NULL);
}

static bool dialect_statement(struct text *t)
{
  const char *d = name(t, "dialect");
  if (d)
    t->scope->names.graph->dialect = d;
  return d && end_of_statement(t, NULL);
}

static struct sw_graph *graph_body(struct text *t, bool is_block);

/* graph @name { .. } */
static bool graph_statement(struct text *t)
{
  if (!expect(t, '@'))
    return false;
  char *n = name(t, "name");
  if (!n || !expect(t, '{') || !end_of_statement(t, NULL))
    return false;
  if (++t->nesting > MAX_NESTING)
    return parse_fail(t, "graphs are nested deeper than %d", MAX_NESTING);
  struct sw_graph *g = graph_body(t, true);
  t->nesting--;
  g->name = n;
  if (sw_map_set_str(&t->scope->graphs, n, t->scope->blocks.n) >= 0)
    return parse_fail(t, "graph @%s is defined twice", n);
  *SW_PUSH(t->job->arena, &t->scope->blocks) = g;
  return end_of_statement(t, NULL);
}

static const struct {
  const char *word;
  bool (*parse)(struct text *t);
} statements[] = {
    {"return", return_statement},   {"mutate", mutate_statement}, {"range", range_statement},
    {"dialect", dialect_statement}, {"graph", graph_statement},
};

static bool statement(struct text *t)
{
  for (size_t i = 0; i < sizeof statements / sizeof statements[0]; i++)
    if (at_word(t, statements[i].word)) {
      t->s += strlen(statements[i].word);
      return statements[i].parse(t);
    }
  const char *label = NULL;
  blanks(t);
  if (*t->s != '%' && !at_word(t, "_")) { /* a label, or an op without results */
    struct text ahead = *t;
    label = name(&ahead, "statement");
    if (!label) {
      t->s = ahead.s;
      return false;
    }
    if (!skip(&ahead, ':'))
      return node(t, NULL, NULL, 0);
    *t = ahead;
    blanks(t);
    if (*t->s != '%' && !at_word(t, "_"))
      return node(t, label, NULL, 0);
  }
  return definition(t, label);
}

/* -- a graph -- */

/* What only the end shows: names that nothing defines, what is mutated. */
static void finish(struct text *t)
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
    f->source = sw_arena_printf(t->job->arena, "line %d", t->scope->first_line.v[i]);
    f->tensor = v->name;
  }
  if (!t->scope->returned)
    parse_fail(t, "the graph has no return");
}

static struct sw_graph *graph_body(struct text *t, bool is_block)
{
  struct sw_arena *a = t->job->arena;
  struct sw_graph *g = SW_NEW(a, struct sw_graph);
  g->name = g->dialect = "";
  g->form = "text";
  struct scope scope = {.names = {.job = t->job, .graph = g, .values = {.arena = a}}, .graphs = {.arena = a}};
  struct scope *outer = t->scope;
  t->scope = &scope;
  bool closed = false;
  while (*t->s && !closed) {
    blanks(t);
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
    parse_fail(t, "'}' is missing");
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
  struct text t = {.job = job, .s = sw_arena_strndup(job->arena, text, len), .line = 1};
  return graph_body(&t, false);
}
