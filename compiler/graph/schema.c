/* The table of known overloads, parsed from the lines of schemas.def at first use. */
#include "compiler/graph/build.h"

#include <ctype.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static const char *const lines[] = {
#include "compiler/graph/schemas.def"
};
enum { N_SCHEMAS = sizeof lines / sizeof lines[0] };

/* Lives as long as the process. Overloads of one packet are neighbours because schemas.def is sorted by packet. */
static struct {
  struct sw_arena *arena;
  struct sw_schema schemas[N_SCHEMAS];
  struct sw_map by_target, by_packet; /* packet: number of its first overload */
  int packet_size[N_SCHEMAS];
  bool ready;
} table;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* Packets that PyTorch has under another name: same arguments, same meaning. An alias has the schema of the original, and
 * whoever goes by schema->target needs to know nothing about it. In-place forms go along: subtract_ is sub_. */
static const struct {
  const char *name, *of;
} aliases[] = {
    {"absolute", "abs"},
    {"arccos", "acos"},
    {"arccosh", "acosh"},
    {"arcsin", "asin"},
    {"arcsinh", "asinh"},
    {"arctan", "atan"},
    {"arctan2", "atan2"},
    {"arctanh", "atanh"},
    {"clip", "clamp"},
    {"concat", "cat"},
    {"concatenate", "cat"},
    {"divide", "div"},
    {"fix", "trunc"},
    {"ger", "outer"},
    {"greater", "gt"},
    {"greater_equal", "ge"},
    {"less", "lt"},
    {"less_equal", "le"},
    {"linalg_matmul", "matmul"},
    {"moveaxis", "movedim"},
    {"multiply", "mul"},
    {"negative", "neg"},
    {"not_equal", "ne"},
    {"row_stack", "vstack"},
    {"special_erf", "erf"},
    {"special_erfc", "erfc"},
    {"special_exp2", "exp2"},
    {"special_expit", "sigmoid"},
    {"special_expm1", "expm1"},
    {"special_log1p", "log1p"},
    {"special_log_softmax", "log_softmax"},
    {"special_logit", "logit"},
    {"special_logsumexp", "logsumexp"},
    {"special_round", "round"},
    {"special_sinc", "sinc"},
    {"special_softmax", "softmax"},
    {"special_xlogy", "xlogy"},
    {"subtract", "sub"},
    {"true_divide", "div"},
    {"_unsafe_index", "index"},
    {"_unsafe_index_put", "index_put"},
};

const char *sw_schema_alias(int i, const char **of)
{
  if (i < 0 || i >= (int)(sizeof aliases / sizeof aliases[0]))
    return NULL;
  *of = aliases[i].of;
  return aliases[i].name;
}

static const struct {
  const char *name;
  enum sw_type_base base;
} bases[] = {
    {"Tensor", SW_TYPE_TENSOR}, {"SymInt", SW_TYPE_INT},       {"int", SW_TYPE_INT},
    {"float", SW_TYPE_FLOAT},   {"bool", SW_TYPE_BOOL},        {"Scalar", SW_TYPE_SCALAR},
    {"str", SW_TYPE_STR},       {"ScalarType", SW_TYPE_DTYPE}, {"Layout", SW_TYPE_LAYOUT},
    {"Device", SW_TYPE_DEVICE}, {"MemoryFormat", SW_TYPE_MEMORY_FORMAT},
};

struct sw_type sw_schema__type(const char *text)
{
  struct sw_type t = {.base = SW_TYPE_OTHER};
  size_t n = strcspn(text, "([?");
  for (size_t i = 0; i < sizeof bases / sizeof bases[0]; i++)
    if (strlen(bases[i].name) == n && !memcmp(bases[i].name, text, n))
      t.base = bases[i].base;
  const char *s = text + n;
  if (*s == '(')
    s += strcspn(s, ")") + 1;
  bool question = *s == '?';
  s += question;
  if (*s == '[') {
    t.is_list = true;
    t.element_is_optional = question;
    t.length = atoi(s + 1);
    s += strcspn(s, "]") + 1;
    question = *s == '?';
  }
  t.is_optional = question;
  return t;
}

struct cursor {
  struct sw_arena *arena;
  const char *s;
};

/* Text up to one of `stop` outside brackets; the cursor moves onto that character. */
static char *until(struct cursor *c, const char *stop)
{
  int depth = 0;
  size_t n = 0;
  for (; c->s[n]; n++) {
    if (!depth && strchr(stop, c->s[n]))
      break;
    depth += (c->s[n] == '(' || c->s[n] == '[') - (c->s[n] == ')' || c->s[n] == ']');
  }
  char *text = sw_arena_strndup(c->arena, c->s, n);
  c->s += n;
  return text;
}

static bool skip(struct cursor *c, const char *text)
{
  size_t n = strlen(text);
  if (strncmp(c->s, text, n))
    return false;
  c->s += n;
  return true;
}

/* c10's memory format numbers, which schemas print, to those of a .pt2 (pt2.md section 5). */
static const int memory_format_of_c10[] = {1, 4, 2, 3};

/* One value behind "=": None, False, 1, 1., -1, "text", [], [1, 1]. */
static struct sw_arg literal(struct cursor *c, struct sw_type type)
{
  struct sw_arg a = {.kind = SW_ARG_NONE};
  if (skip(c, "None"))
    return a;
  if (skip(c, "True") || skip(c, "False")) {
    a.kind = SW_ARG_BOOL;
    a.i = c->s[-2] == 'u';
  } else if (skip(c, "\"")) {
    a.kind = SW_ARG_STR;
    a.s = until(c, "\"");
    c->s++;
  } else if (skip(c, "[")) {
    a.kind = SW_ARG_LIST;
    SW_VEC(struct sw_arg) v = {0};
    struct sw_type element = {.base = type.base};
    while (!skip(c, "]")) {
      *SW_PUSH(c->arena, &v) = literal(c, element);
      skip(c, ", ");
    }
    a.list.v = v.v;
    a.list.n = v.n;
  } else {
    const char *text = until(c, ",)]");
    bool is_real = type.base == SW_TYPE_FLOAT || strpbrk(text, ".e");
    a.kind = is_real ? SW_ARG_REAL : SW_ARG_INT;
    if (is_real)
      a.r = strtod(text, NULL);
    else
      a.i = strtoll(text, NULL, 10);
    if (type.base == SW_TYPE_MEMORY_FORMAT) {
      a.kind = SW_ARG_MEMORY_FORMAT;
      a.i = memory_format_of_c10[a.i & 3];
    }
    if (type.is_list) { /* int[2] padding=0 */
      struct sw_arg *v = SW_NEW_N(c->arena, struct sw_arg, type.length);
      for (int i = 0; i < type.length; i++)
        v[i] = a;
      a = (struct sw_arg){.kind = SW_ARG_LIST, .list = {v, type.length}};
    }
  }
  return a;
}

/* "Tensor self" or "SymInt[2] stride=[1, 1]" */
static struct sw_schema_arg argument(struct cursor *c, bool keyword_only)
{
  struct sw_schema_arg a = {.keyword_only = keyword_only};
  a.type = until(c, " ");
  c->s++;
  a.name = until(c, "=,)");
  if (skip(c, "=")) {
    a.has_default = true;
    a.def = literal(c, sw_schema__type(a.type));
  }
  a.def.name = a.name;
  return a;
}

/* "aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor" */
static void parse(struct cursor *c, struct sw_schema *out)
{
  char *space = until(c, ":");
  c->s += 2;
  char *op = until(c, "(");
  out->target = sw_arena_printf(c->arena, "%s.%s%s", space, op, strchr(op, '.') ? "" : ".default");
  SW_VEC(struct sw_schema_arg) args = {0};
  bool keyword_only = false;
  for (c->s++; !skip(c, ")"); skip(c, ", ")) {
    if (skip(c, "*"))
      keyword_only = true;
    else
      *SW_PUSH(c->arena, &args) = argument(c, keyword_only);
  }
  out->args = args.v;
  out->n_args = args.n;
  SW_VEC(const char *) returns = {0};
  skip(c, " -> ");
  bool several = skip(c, "(");
  while (*c->s && !skip(c, ")")) {
    char *type = until(c, ",)");
    if (several) /* results may have names: "Tensor values" */
      type[strcspn(type, " ")] = 0;
    *SW_PUSH(c->arena, &returns) = type;
    skip(c, ", ");
  }
  out->returns = returns.v;
  out->n_returns = returns.n;
}

static size_t packet_length(const char *target)
{
  return (size_t)(strrchr(target, '.') - target);
}

/* Enters overload i of packet `packet` under one more packet name. */
static void add_name(int i, const char *name, const char *suffix)
{
  const char *overload = strrchr(table.schemas[i].target, '.');
  sw_map_set_str(&table.by_target, sw_arena_printf(table.arena, "aten.%s%s%s", name, suffix, overload), i);
  const char *packet = sw_arena_printf(table.arena, "aten.%s%s", name, suffix);
  if (sw_map_get_str(&table.by_packet, packet) < 0)
    sw_map_set_str(&table.by_packet, packet, sw_map_get(&table.by_packet, table.schemas[i].target, packet_length(table.schemas[i].target)));
}

static void add_aliases(void)
{
  for (int i = 0; i < N_SCHEMAS; i++) {
    const char *target = table.schemas[i].target;
    if (strncmp(target, "aten.", 5))
      continue;
    for (size_t k = 0; k < sizeof aliases / sizeof aliases[0]; k++) {
      size_t n = strlen(aliases[k].of), length = packet_length(target) - 5;
      bool in_place = length == n + 1 && target[5 + n] == '_';
      if ((length == n || in_place) && !memcmp(target + 5, aliases[k].of, n))
        add_name(i, aliases[k].name, in_place ? "_" : "");
    }
  }
}

static void fill_table(void *unused)
{
  (void)unused;
  table.by_target.arena = table.by_packet.arena = table.arena;
  for (int i = 0; i < N_SCHEMAS; i++) {
    struct cursor c = {table.arena, lines[i]};
    struct sw_schema *s = &table.schemas[i];
    parse(&c, s);
    sw_map_set_str(&table.by_target, s->target, i);
    int64_t first = sw_map_get(&table.by_packet, s->target, packet_length(s->target));
    if (first < 0)
      sw_map_set(&table.by_packet, s->target, packet_length(s->target), first = i);
    table.packet_size[first]++;
  }
  add_aliases();
  table.ready = true;
}

static void make_table(void)
{
  table.arena = sw_arena_new(NULL, (size_t)16 << 20);
  if (table.arena)
    sw_arena_run(table.arena, fill_table, NULL);
}

const struct sw_schema *sw_schema_find(const char *target)
{
  pthread_once(&once, make_table);
  int64_t i = table.ready ? sw_map_get_str(&table.by_target, target) : -1;
  return i < 0 ? NULL : &table.schemas[i];
}

int sw_schema__packet(const char *packet, const struct sw_schema **first)
{
  pthread_once(&once, make_table);
  int64_t i = table.ready ? sw_map_get_str(&table.by_packet, packet) : -1;
  if (i < 0)
    return 0;
  *first = &table.schemas[i];
  return table.packet_size[i];
}

const struct sw_arg *sw_node_arg(const struct sw_node *n, const char *name)
{
  for (int i = 0; i < n->n_args; i++)
    if (!strcmp(n->args[i].name, name))
      return &n->args[i];
  return NULL;
}
