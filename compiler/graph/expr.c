#include "compiler/graph/expr.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DEPTH = 64, MAX_TERMS = 256, MAX_TEXT = 16384 };

/* Functions by sympy's class names. Infix text of two-sided ones; precedence as sympy has it. */
enum head {
  NUMBER,
  SYMBOL,
  ADD,
  MUL,
  POW,
  FLOOR_DIV,
  CEIL_DIV,
  MOD,
  MAX,
  MIN,
  GE,
  LE,
  GT,
  LT,
  EQ,
  NE,
  AND,
  OR,
  NOT,
  OTHER /* printed, never evaluated */
};

static const struct {
  const char *name;
  enum head head;
} heads[] = {
    {"Add", ADD},
    {"Mul", MUL},
    {"Pow", POW},
    {"PowByNatural", POW},
    {"FloorDiv", FLOOR_DIV},
    {"CleanDiv", FLOOR_DIV},
    {"CeilDiv", CEIL_DIV},
    {"Mod", MOD},
    {"PythonMod", MOD},
    {"Max", MAX},
    {"Min", MIN},
    {"GreaterThan", GE},
    {"LessThan", LE},
    {"StrictGreaterThan", GT},
    {"StrictLessThan", LT},
    {"Equality", EQ},
    {"Eq", EQ},
    {"Unequality", NE},
    {"Ne", NE},
    {"And", AND},
    {"Or", OR},
    {"Not", NOT},
};

struct sw_expr {
  enum head head;
  int64_t number;
  const char *name; /* symbol, or the function as it was written */
  const struct sw_expr **arg;
  int n;
  const char **text; /* as printed, once somebody asked; nested sums ask often */
};

/* -- parsing -- */

struct parser {
  struct sw_arena *arena;
  const char *s;
  int depth;
};

static struct sw_expr *make(struct parser *p, enum head head, const char *name, const struct sw_expr *a,
                            const struct sw_expr *b)
{
  struct sw_expr *e = SW_NEW(p->arena, struct sw_expr);
  e->head = head;
  e->name = name;
  e->text = SW_NEW(p->arena, const char *);
  e->n = (a != NULL) + (b != NULL);
  e->arg = SW_NEW_N(p->arena, const struct sw_expr *, e->n);
  if (a)
    e->arg[0] = a;
  if (b)
    e->arg[1] = b;
  return e;
}

static struct sw_expr *number(struct parser *p, int64_t value)
{
  struct sw_expr *e = make(p, NUMBER, NULL, NULL, NULL);
  e->number = value;
  return e;
}

static bool skip(struct parser *p, const char *text)
{
  while (*p->s == ' ')
    p->s++;
  size_t n = strlen(text);
  if (strncmp(p->s, text, n))
    return false;
  p->s += n;
  return true;
}

/* Length of a name: what a symbol must be, so that its text can be read again. */
static size_t word(const char *s)
{
  size_t n = 0;
  while (isalnum((unsigned char)s[n]) || s[n] == '_')
    n++;
  return n;
}

static const struct sw_expr *parse_any(struct parser *p);

/* Arguments behind "NAME(". Keyword arguments (positive=True) say nothing we use. */
static const struct sw_expr *parse_call(struct parser *p, const char *name)
{
  if (!strcmp(name, "Symbol")) {
    char quote = *p->s == '\'' ? '\'' : '"';
    const char *end = *p->s == quote ? strchr(p->s + 1, quote) : NULL;
    const char *close = end ? strchr(end, ')') : NULL;
    if (!close || word(p->s + 1) != (size_t)(end - p->s - 1))
      return NULL;
    struct sw_expr *e = make(p, SYMBOL, sw_arena_strndup(p->arena, p->s + 1, (size_t)(end - p->s - 1)), NULL, NULL);
    p->s = close + 1;
    return e;
  }
  SW_VEC(const struct sw_expr *) args = {0};
  while (!skip(p, ")")) {
    if (args.n && !skip(p, ","))
      return NULL;
    const struct sw_expr *a = parse_any(p);
    if (!a)
      return NULL;
    *SW_PUSH(p->arena, &args) = a;
  }
  if (!strcmp(name, "Integer"))
    return args.n == 1 && args.v[0]->head == NUMBER ? args.v[0] : NULL;
  struct sw_expr *e = make(p, OTHER, name, NULL, NULL);
  for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++)
    if (!strcmp(heads[i].name, name))
      e->head = heads[i].head;
  bool any_number = e->head == ADD || e->head == MUL || e->head == MAX || e->head == MIN || e->head == AND ||
                    e->head == OR;
  int wanted = e->head == NOT ? 1 : 2;
  if (e->head != OTHER && (any_number ? args.n < 1 : args.n != wanted))
    return NULL;
  e->arg = args.v;
  e->n = args.n;
  return e;
}

static const struct sw_expr *parse_atom(struct parser *p)
{
  if (skip(p, "(")) {
    const struct sw_expr *e = parse_any(p);
    return e && skip(p, ")") ? e : NULL;
  }
  if (isdigit((unsigned char)*p->s)) {
    char *end;
    errno = 0;
    long long v = strtoll(p->s, &end, 10);
    if (errno)
      return NULL;
    p->s = end;
    return number(p, v);
  }
  size_t n = word(p->s);
  if (!n)
    return NULL;
  const char *name = sw_arena_strndup(p->arena, p->s, n);
  p->s += n;
  if (*p->s == '(') {
    p->s++;
    return parse_call(p, name);
  }
  return make(p, SYMBOL, name, NULL, NULL);
}

static const struct sw_expr *parse_unary(struct parser *p);

static const struct sw_expr *parse_power(struct parser *p)
{
  const struct sw_expr *a = parse_atom(p);
  if (!a || !skip(p, "**"))
    return a;
  const struct sw_expr *b = parse_unary(p);
  return b ? make(p, POW, "Pow", a, b) : NULL;
}

static const struct sw_expr *negative(struct parser *p, const struct sw_expr *e)
{
  if (e->head == NUMBER && e->number != INT64_MIN)
    return number(p, -e->number);
  return make(p, MUL, "Mul", number(p, -1), e);
}

/* Every recursion passes here, so the depth is counted here. */
static const struct sw_expr *parse_unary(struct parser *p)
{
  if (p->depth >= MAX_DEPTH)
    return NULL;
  p->depth++;
  const struct sw_expr *e;
  if (skip(p, "-"))
    e = (e = parse_unary(p)) ? negative(p, e) : NULL;
  else if (skip(p, "~"))
    e = (e = parse_unary(p)) ? make(p, NOT, "Not", e, NULL) : NULL;
  else
    e = parse_power(p);
  p->depth--;
  return e;
}

/* Two-sided operators by level, loosest first; a longer text stands before its prefix. */
static const struct infix {
  int level;
  const char *text, *name;
  enum head head;
} infix[] = {
    {0, "|", "Or", OR},          {1, "&", "And", AND},         {2, ">=", "GreaterThan", GE},
    {2, "<=", "LessThan", LE},   {2, "==", "Equality", EQ},    {2, "!=", "Unequality", NE},
    {2, ">", "StrictGreaterThan", GT}, {2, "<", "StrictLessThan", LT}, {3, "+", "Add", ADD},
    {3, "-", "Add", ADD},        {4, "//", "FloorDiv", FLOOR_DIV}, {4, "*", "Mul", MUL},
    {4, "%", "Mod", MOD},
};
enum { N_INFIX = sizeof infix / sizeof infix[0], N_LEVELS = 5 };

static const struct infix *next_infix(struct parser *p, int level)
{
  for (int i = 0; i < N_INFIX; i++)
    if (infix[i].level == level && skip(p, infix[i].text))
      return &infix[i];
  return NULL;
}

static const struct sw_expr *parse_level(struct parser *p, int level)
{
  const struct sw_expr *e = level == N_LEVELS ? parse_unary(p) : parse_level(p, level + 1);
  const struct infix *op;
  while (e && level < N_LEVELS && (op = next_infix(p, level))) {
    const struct sw_expr *right = parse_level(p, level + 1);
    if (!right)
      return NULL;
    if (op->text[0] == '-')
      right = negative(p, right);
    if ((op->head == ADD || op->head == MUL) && e->head == op->head && e->n < MAX_TERMS) { /* a + b + c is one sum */
      struct sw_expr *sum = make(p, op->head, op->name, NULL, NULL);
      sum->n = e->n + 1;
      sum->arg = SW_NEW_N(p->arena, const struct sw_expr *, sum->n);
      memcpy(sum->arg, e->arg, (size_t)e->n * sizeof *e->arg);
      sum->arg[e->n] = right;
      e = sum;
    } else {
      e = make(p, op->head, op->name, e, right);
    }
  }
  return e;
}

static const struct sw_expr *parse_any(struct parser *p)
{
  return parse_level(p, 0);
}

const struct sw_expr *sw_expr_parse(struct sw_arena *a, const char *text)
{
  if (strlen(text) > MAX_TEXT)
    return NULL;
  struct parser p = {.arena = a, .s = text};
  const struct sw_expr *e = parse_any(&p);
  return e && (skip(&p, ""), !*p.s) ? e : NULL;
}

const char *sw_expr_symbol(const struct sw_expr *e)
{
  return e->head == SYMBOL ? e->name : NULL;
}

void sw_expr_symbols(const struct sw_expr *e, void (*fn)(void *ctx, const char *symbol), void *ctx)
{
  if (e->head == SYMBOL)
    fn(ctx, e->name);
  for (int i = 0; i < e->n; i++)
    sw_expr_symbols(e->arg[i], fn, ctx);
}

/* -- printing -- */

static int precedence(const struct sw_expr *e)
{
  switch (e->head) {
  case NUMBER:
    return e->number < 0 ? 40 : 1000;
  case SYMBOL:
    return 1000;
  case ADD:
    return 40;
  case MUL:
    return e->arg[0]->head == NUMBER && e->arg[0]->number < 0 ? 40 : 50;
  case POW:
    return 60;
  case OR:
    return 20;
  case AND:
    return 30;
  case NOT:
    return 100;
  case OTHER:
  case MAX:
  case MIN:
  case CEIL_DIV:
    return 70;
  default:
    return 35; /* relations, and torch's FloorDiv and Mod, which want brackets even in a sum */
  }
}

static void print_in(struct sw_buf *b, const struct sw_expr *e, int level)
{
  bool brackets = precedence(e) < level;
  if (brackets)
    sw_buf_puts(b, "(");
  sw_buf_puts(b, sw_expr_text(b->arena, e));
  if (brackets)
    sw_buf_puts(b, ")");
}

static void print_list(struct sw_buf *b, const struct sw_expr *e, const char *between, int level)
{
  for (int i = 0; i < e->n; i++) {
    if (i)
      sw_buf_puts(b, between);
    print_in(b, e->arg[i], level);
  }
}

/* -3*x prints as "-3*x", -1*x as "-x". */
static void print_product(struct sw_buf *b, const struct sw_expr *e)
{
  int first = 0;
  if (e->n > 1 && e->arg[0]->head == NUMBER && e->arg[0]->number == -1) {
    sw_buf_puts(b, "-");
    first = 1;
  } else if (e->arg[0]->head == NUMBER) {
    sw_buf_puts(b, sw_expr_text(b->arena, e->arg[0]));
    first = 1;
  }
  for (int i = first; i < e->n; i++) {
    if (i > first || (first && e->arg[0]->number != -1))
      sw_buf_puts(b, "*");
    print_in(b, e->arg[i], 50);
  }
}

/* Power of `base` (a printed factor) in a term of a sum. */
static int64_t power_of(struct sw_arena *a, const struct sw_expr *term, const char *base)
{
  if (term->head == MUL) {
    int64_t most = 0;
    for (int i = 0; i < term->n; i++) {
      int64_t p = power_of(a, term->arg[i], base);
      most = p > most ? p : most;
    }
    return most;
  }
  bool is_power = term->head == POW && term->arg[1]->head == NUMBER;
  const struct sw_expr *of = is_power ? term->arg[0] : term;
  if (of->head == NUMBER || strcmp(sw_expr_text(a, of), base))
    return 0;
  return is_power ? term->arg[1]->number : 1;
}

/* Bases of all factors, symbols first, by name. */
static void collect(struct sw_arena *a, const struct sw_expr *term, const char **bases, int *n)
{
  if (term->head == MUL) {
    for (int i = 0; i < term->n; i++)
      collect(a, term->arg[i], bases, n);
    return;
  }
  const struct sw_expr *of = term->head == POW && term->arg[1]->head == NUMBER ? term->arg[0] : term;
  if (of->head == NUMBER || *n == MAX_TERMS)
    return;
  const char *text = sw_expr_text(a, of);
  bool is_symbol = isalpha((unsigned char)text[0]) && !strpbrk(text, "( ");
  int at = 0;
  for (; at < *n; at++) {
    bool other_is_symbol = isalpha((unsigned char)bases[at][0]) && !strpbrk(bases[at], "( ");
    int order = is_symbol != other_is_symbol ? other_is_symbol - is_symbol : strcmp(text, bases[at]);
    if (!order)
      return;
    if (order < 0)
      break;
  }
  memmove(bases + at + 1, bases + at, (size_t)(*n - at) * sizeof *bases);
  bases[at] = text;
  (*n)++;
}

/* Terms of a sum in sympy's order: by powers of the bases (lexicographic, higher first), so constants come last. */
static void print_sum(struct sw_buf *b, const struct sw_expr *e)
{
  struct sw_arena *a = b->arena;
  const char **bases = SW_NEW_N(a, const char *, MAX_TERMS + 1);
  int n = 0;
  for (int i = 0; i < e->n; i++)
    collect(a, e->arg[i], bases, &n);
  const struct sw_expr **terms = sw_arena_copy(a, e->arg, (size_t)e->n, sizeof *e->arg);
  for (int i = 1; i < e->n; i++) { /* insertion sort: sums are short */
    const struct sw_expr *t = terms[i];
    int k = i;
    for (; k > 0; k--) {
      int64_t before = 0;
      for (int j = 0; j < n && !before; j++)
        before = power_of(a, t, bases[j]) - power_of(a, terms[k - 1], bases[j]);
      if (before <= 0)
        break;
      terms[k] = terms[k - 1];
    }
    terms[k] = t;
  }
  for (int i = 0; i < e->n; i++) {
    struct sw_buf one = {.arena = a};
    print_in(&one, terms[i], 40);
    const char *text = sw_buf_text(&one);
    if (!i)
      sw_buf_puts(b, text);
    else if (*text == '-')
      sw_buf_printf(b, " - %s", text + 1);
    else
      sw_buf_printf(b, " + %s", text);
  }
}

static void print(struct sw_buf *b, const struct sw_expr *e)
{
  static const char *const relation[] = {
      [GE] = " >= ", [LE] = " <= ", [GT] = " > ", [LT] = " < ", [EQ] = " == ", [NE] = " != ",
  };
  switch (e->head) {
  case NUMBER:
    sw_buf_printf(b, "%" PRId64, e->number);
    break;
  case SYMBOL:
    sw_buf_puts(b, e->name);
    break;
  case ADD:
    print_sum(b, e);
    break;
  case MUL:
    print_product(b, e);
    break;
  case POW:
    print_list(b, e, "**", 61);
    break;
  case FLOOR_DIV:
    sw_buf_puts(b, "(");
    print_list(b, e, "//", 999);
    sw_buf_puts(b, ")");
    break;
  case GE:
  case LE:
  case GT:
  case LT:
  case EQ:
  case NE:
    print_list(b, e, relation[e->head], 36);
    break;
  case AND:
    print_list(b, e, " & ", 31);
    break;
  case OR:
    print_list(b, e, " | ", 21);
    break;
  case NOT:
    sw_buf_puts(b, "~");
    print_in(b, e->arg[0], 101);
    break;
  case CEIL_DIV:
  case MOD:
  case MAX:
  case MIN:
  case OTHER:
    sw_buf_printf(b, "%s(", e->name);
    print_list(b, e, ", ", 0);
    sw_buf_puts(b, ")");
    break;
  }
}

const char *sw_expr_text(struct sw_arena *a, const struct sw_expr *e)
{
  if (!*e->text) {
    struct sw_buf b = {.arena = a};
    print(&b, e);
    *e->text = sw_buf_text(&b);
  }
  return *e->text;
}

/* -- evaluating -- */

static int64_t floor_div(int64_t a, int64_t b)
{
  return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

static bool fold(enum head head, int64_t a, int64_t b, int64_t *out)
{
  switch (head) {
  case ADD:
    return !__builtin_add_overflow(a, b, out);
  case MUL:
    return !__builtin_mul_overflow(a, b, out);
  case POW:
    if (b < 0 || b > 63)
      return false;
    for (*out = 1; b > 0; b--)
      if (__builtin_mul_overflow(*out, a, out))
        return false;
    return true;
  case FLOOR_DIV:
  case CEIL_DIV:
  case MOD:
    if (!b || (b == -1 && a == INT64_MIN))
      return false;
    *out = head == FLOOR_DIV ? floor_div(a, b)
           : head == MOD     ? a - b * floor_div(a, b)
                             : floor_div(a, b) + (a % b != 0);
    return true;
  case MAX:
    *out = a > b ? a : b;
    return true;
  case MIN:
    *out = a < b ? a : b;
    return true;
  case GE:
    *out = a >= b;
    return true;
  case LE:
    *out = a <= b;
    return true;
  case GT:
    *out = a > b;
    return true;
  case LT:
    *out = a < b;
    return true;
  case EQ:
    *out = a == b;
    return true;
  case NE:
    *out = a != b;
    return true;
  case AND:
    *out = a && b;
    return true;
  case OR:
    *out = a || b;
    return true;
  default:
    return false;
  }
}

bool sw_expr_eval(const struct sw_expr *e, sw_expr_lookup *lookup, void *ctx, int64_t *value)
{
  if (e->head == NUMBER) {
    *value = e->number;
    return true;
  }
  if (e->head == SYMBOL)
    return lookup(ctx, e->name, value);
  int64_t acc;
  if (e->head == OTHER || !sw_expr_eval(e->arg[0], lookup, ctx, &acc))
    return false;
  if (e->head == NOT)
    acc = !acc;
  for (int i = 1; i < e->n; i++) {
    int64_t next;
    if (!sw_expr_eval(e->arg[i], lookup, ctx, &next) || !fold(e->head, acc, next, &acc))
      return false;
  }
  *value = acc;
  return true;
}
