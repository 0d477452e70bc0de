/* Tokens, types and arguments of the text form. */
#include "compiler/graph/text.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool sw_text__fail(struct sw_text *t, const char *fmt, ...)
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

void sw_text__blanks(struct sw_text *t)
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

bool sw_text__skip(struct sw_text *t, char c)
{
  sw_text__blanks(t);
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
const char *sw_text__here(struct sw_text *t)
{
  sw_text__blanks(t);
  if (!*t->s)
    return "the end";
  if (*t->s == '\n')
    return "the end of the line";
  int n = (int)strcspn(t->s, "\n");
  return sw_arena_printf(t->job->arena, "\"%.*s\"", n < 24 ? n : 24, t->s);
}

bool sw_text__expect(struct sw_text *t, char c)
{
  return sw_text__skip(t, c) || sw_text__fail(t, "'%c' expected, found %s", c, sw_text__here(t));
}

/* Length of a bare word: a name, an op, a keyword. */
static size_t word(const struct sw_text *t)
{
  size_t n = 0;
  while (sw_text__in_word(t->s[n]))
    n++;
  return n;
}

bool sw_text__at(struct sw_text *t, const char *w)
{
  sw_text__blanks(t);
  size_t n = word(t);
  return n == strlen(w) && !memcmp(t->s, w, n);
}

static int hex(char c)
{
  return isdigit((unsigned char)c) ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* "text" with \" \\ \n \t \xHH */
char *sw_text__string(struct sw_text *t)
{
  struct sw_buf b = {.arena = t->job->arena};
  sw_buf_add(&b, "", 0);
  for (t->s++; *t->s != '"'; t->s++) {
    char c = *t->s;
    if (!c || c == '\n') {
      sw_text__fail(t, "a string does not end");
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
        sw_text__fail(t, "unknown escape in a string; there are \\\" \\\\ \\n \\t \\xHH");
        return NULL;
      }
    }
    sw_buf_add(&b, &c, 1);
  }
  t->s++;
  return b.p;
}

/* A bare word or a string. */
char *sw_text__name(struct sw_text *t, const char *what)
{
  sw_text__blanks(t);
  if (*t->s == '"')
    return sw_text__string(t);
  size_t n = word(t);
  if (!n) {
    sw_text__fail(t, "%s expected, found %s", what, sw_text__here(t));
    return NULL;
  }
  char *s = sw_arena_strndup(t->job->arena, t->s, n);
  t->s += n;
  return s;
}

bool sw_text__integer(struct sw_text *t, int64_t *out)
{
  sw_text__blanks(t);
  char *end;
  errno = 0;
  *out = strtoll(t->s, &end, 10);
  if (end == t->s || errno || *end == '.' || sw_text__in_word(*end))
    return sw_text__fail(t, "integer expected, found %s", sw_text__here(t));
  t->s = end;
  return true;
}

bool sw_text__integers(struct sw_text *t, int64_t *out, int max, int *n)
{
  *n = 0;
  if (!sw_text__expect(t, '['))
    return false;
  while (!sw_text__skip(t, ']')) {
    if (*n && !sw_text__expect(t, ','))
      return false;
    if (*n == max)
      return sw_text__fail(t, "more than %d numbers in a list", max);
    if (!sw_text__integer(t, &out[(*n)++]))
      return false;
  }
  return true;
}

/* -- types -- */

/* A dim, an offset: 128, or EXPRESSION:VALUE for a dynamic one. */
static bool dim(struct sw_text *t, int64_t *size, const char **expr)
{
  sw_text__blanks(t);
  size_t n = 0;
  int depth = 0;
  for (; t->s[n] && t->s[n] != '\n'; n++) {
    if (!depth && (strchr(",[]:)", t->s[n]) || !strncmp(t->s + n, " = ", 3)))
      break;
    depth += (t->s[n] == '(') - (t->s[n] == ')');
  }
  *expr = NULL;
  if (t->s[n] != ':')
    return sw_text__integer(t, size);
  const char *text = sw_arena_strndup(t->job->arena, t->s, n);
  const struct sw_expr *e = sw_expr_parse(t->job->arena, text);
  if (!e)
    return sw_text__fail(t, "\"%.100s\" is no expression over symbols", text);
  *expr = sw_expr_text(t->job->arena, e);
  t->s += n + 1;
  return sw_text__integer(t, size);
}

static bool dims(struct sw_text *t, int64_t **out, const char ***exprs, int *rank)
{
  int64_t v[SW_MAX_RANK];
  const char *e[SW_MAX_RANK];
  bool symbolic = false;
  int n = 0;
  if (!sw_text__expect(t, '['))
    return false;
  while (!sw_text__skip(t, ']')) {
    if (n && !sw_text__expect(t, ','))
      return false;
    if (n == SW_MAX_RANK)
      return sw_text__fail(t, "more than %d dims", SW_MAX_RANK);
    if (!dim(t, &v[n], &e[n]))
      return false;
    symbolic |= e[n++] != NULL;
  }
  *out = sw_arena_copy(t->job->arena, v, (size_t)n, sizeof *v);
  *exprs = symbolic ? sw_arena_copy(t->job->arena, e, (size_t)n, sizeof *e) : NULL;
  *rank = n;
  return true;
}

/* Strides nobody stated. A dynamic dim makes those before it dynamic: [2,s0:5,64] has strides [64*s0,64,1]. */
static bool row_major(struct sw_text *t, struct sw_value *v)
{
  struct sw_arena *a = t->job->arena;
  v->stride = SW_NEW_N(a, int64_t, v->rank);
  if (!sw_graph__row_major(v->rank, v->size, v->stride))
    return sw_text__fail(t, "tensor %s: its size in bytes does not fit 63 bits", v->name);
  const char *expr = NULL;
  for (int d = v->rank - 1; v->size_expr && d > 0; d--) {
    if (expr && v->size_expr[d])
      expr = sw_arena_printf(a, "%s*(%s)", expr, v->size_expr[d]);
    else if (expr && v->size[d] != 1)
      expr = sw_arena_printf(a, "%" PRId64 "*%s", v->size[d], expr);
    else if (v->size_expr[d])
      expr = v->stride[d] == 1 ? v->size_expr[d]
                               : sw_arena_printf(a, "%" PRId64 "*(%s)", v->stride[d], v->size_expr[d]);
    if (!expr)
      continue;
    const struct sw_expr *e = sw_expr_parse(a, expr);
    if (!e)
      return sw_text__fail(t, "tensor %s: the expressions of its dims are too long", v->name);
    if (!v->stride_expr)
      v->stride_expr = SW_NEW_N(a, const char *, v->rank);
    v->stride_expr[d - 1] = expr = sw_expr_text(a, e);
  }
  return true;
}

/* strides=[..] and offset=N behind a tensor type. */
static bool placement(struct sw_text *t, struct sw_value *v, bool *placed)
{
  bool has_strides = false;
  for (;;) {
    if (sw_text__at(t, "strides")) {
      t->s += 7;
      int n;
      if (!sw_text__expect(t, '=') || !dims(t, &v->stride, &v->stride_expr, &n))
        return false;
      if (n != v->rank)
        return sw_text__fail(t, "%s has %d dims but %d strides", v->name, v->rank, n);
      has_strides = true;
    } else if (sw_text__at(t, "offset")) {
      t->s += 6;
      *placed = true;
      if (!sw_text__expect(t, '=') || !dim(t, &v->offset, &v->offset_expr))
        return false;
    } else {
      break;
    }
  }
  *placed |= has_strides;
  return has_strides || row_major(t, v);
}

static const struct {
  const char *word;
  enum sw_value_kind kind;
} number_types[] = {{"int", SW_VALUE_SYM_INT}, {"bool", SW_VALUE_SYM_BOOL}, {"float", SW_VALUE_SYM_FLOAT}};

/* f16[128,256] strides=[..] offset=..; or a number known at run time: int(8*s39:48) */
bool sw_text__type(struct sw_text *t, int id)
{
  struct sw_value v = t->scope->names.graph->values.v[id];
  char *w = sw_text__name(t, "type");
  if (!w)
    return false;
  sw_text__blanks(t);
  bool good;
  if (*t->s == '(') {
    int k = 0;
    while (k < 3 && strcmp(number_types[k].word, w))
      k++;
    if (k == 3)
      return sw_text__fail(t, "\"%.60s\" is no kind of number; there are int, bool, float", w);
    v.kind = number_types[k].kind;
    good = sw_text__expect(t, '(') && dim(t, &v.hint, &v.expr) && sw_text__expect(t, ')');
  } else {
    v.kind = SW_VALUE_TENSOR;
    v.dtype = sw_dtype_from_text(w);
    if (v.dtype == SW_N_DTYPES)
      return sw_text__fail(t, "dtype \"%.60s\" is unknown", w);
    good = dims(t, &v.size, &v.size_expr, &v.rank) && placement(t, &v, &t->scope->mentions.v[id].placed);
  }
  if (good)
    t->scope->names.graph->values.v[id] = v;
  return good;
}

/* -- values -- */

int sw_text__value(struct sw_text *t)
{
  if (!sw_text__expect(t, '%'))
    return -1;
  const char *n = sw_text__name(t, "name");
  if (!n)
    return -1;
  int id = sw_graph__value(&t->scope->names, n);
  while (t->scope->mentions.n <= id)
    *SW_PUSH(t->job->arena, &t->scope->mentions) = (struct sw_text_mention){.line = t->line};
  return id;
}

/* -- arguments -- */

static bool list(struct sw_text *t, struct sw_arg *out)
{
  SW_VEC(struct sw_arg) v = {0};
  if (++t->nesting > SW_TEXT_MAX_NESTING)
    return sw_text__fail(t, "lists are nested deeper than %d", SW_TEXT_MAX_NESTING);
  sw_text__expect(t, '[');
  while (!sw_text__skip(t, ']')) {
    struct sw_arg a;
    if ((v.n && !sw_text__expect(t, ',')) || !sw_text__argument(t, &a))
      return false;
    *SW_PUSH(t->job->arena, &v) = a;
  }
  t->nesting--;
  out->kind = SW_ARG_LIST;
  out->list.v = v.v;
  out->list.n = v.n;
  return true;
}

static bool number(struct sw_text *t, struct sw_arg *out)
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
      return sw_text__fail(t, "%s does not fit 64 bits", sw_text__here(t));
  }
  if (end == t->s || sw_text__in_word(*end))
    return sw_text__fail(t, "argument expected, found %s", sw_text__here(t));
  t->s = end;
  return true;
}

static bool graph_reference(struct sw_text *t, struct sw_arg *out)
{
  t->s++;
  const char *n = sw_text__name(t, "graph");
  int64_t i = n ? sw_map_get_str(&t->scope->blocks_by_name, n) : -1;
  if (i < 0)
    return n && sw_text__fail(t, "there is no graph @%s above", n);
  struct sw_text_block *b = &t->scope->blocks.v[i];
  if (b->used)
    return sw_text__fail(t, "graph @%s is used twice; write it twice", n);
  b->used = true;
  out->kind = SW_ARG_GRAPH;
  out->graph = b->graph;
  return true;
}

/* True, None, f16, torch.strided, device("cpu") */
static bool word_argument(struct sw_text *t, struct sw_arg *out)
{
  const char *w = sw_text__name(t, "argument");
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
    return sw_text__expect(t, '(') && (out->s = sw_text__name(t, "device")) && sw_text__expect(t, ')');
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
  return out->dtype != SW_N_DTYPES || sw_text__fail(t, "\"%.60s\" is no argument; a string stands in quotes", w);
}

bool sw_text__argument(struct sw_text *t, struct sw_arg *out)
{
  *out = (struct sw_arg){.name = "", .kind = SW_ARG_NONE};
  sw_text__blanks(t);
  char c = *t->s;
  if (c == '%') {
    out->kind = SW_ARG_VALUE;
    out->value = sw_text__value(t);
    return out->value >= 0;
  }
  if (c == '[')
    return list(t, out);
  if (c == '@')
    return graph_reference(t, out);
  if (c == '"') {
    out->kind = SW_ARG_STR;
    out->s = sw_text__string(t);
    return out->s != NULL;
  }
  if (isdigit((unsigned char)c) || c == '-' || c == '+' || c == '.' || sw_text__at(t, "inf") || sw_text__at(t, "nan"))
    return number(t, out);
  return word_argument(t, out);
}

/* The name in front of '=', when there is one. */
static bool keyword(struct sw_text *t, const char **out)
{
  *out = NULL;
  sw_text__blanks(t);
  struct sw_text ahead = *t;
  if (*t->s == '"') {
    const char *n = sw_text__string(&ahead);
    sw_text__blanks(&ahead);
    if (!n)
      return false;
    if (*ahead.s != '=')
      return true; /* a string argument */
    *out = n;
  } else {
    size_t n = word(&ahead);
    ahead.s += n;
    sw_text__blanks(&ahead);
    if (!n || *ahead.s != '=')
      return true;
    *out = sw_arena_strndup(t->job->arena, t->s, n);
  }
  *t = ahead;
  t->s++;
  return true;
}

bool sw_text__arguments(struct sw_text *t, struct sw_text_args *out)
{
  if (!sw_text__expect(t, '('))
    return false;
  while (!sw_text__skip(t, ')')) {
    if (out->list.n && !sw_text__expect(t, ','))
      return false;
    struct sw_written w = {0};
    if (!keyword(t, &w.name) || !sw_text__argument(t, &w.arg))
      return false;
    *SW_PUSH(t->job->arena, &out->list) = w;
  }
  return true;
}
