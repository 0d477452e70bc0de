/* A stack machine for the part of pickle that torch.save uses for tensors. An object that is not a number, string,
 * tuple, list, dict or tensor is opaque: it may stand in the pickle, but has no meaning. */
#include "compiler/graph/pickle.h"

#include <limits.h>
#include <string.h>

enum kind { NOTHING, NUMBER, TEXT, SEQUENCE, DICT, GLOBAL, STORAGE, TENSOR, OPAQUE, MARK };

struct object {
  enum kind kind;
  int64_t number;       /* NUMBER; offset of a TENSOR */
  const char *text;     /* TEXT; GLOBAL "module name"; key of a STORAGE */
  enum sw_dtype dtype;  /* STORAGE */
  SW_VEC(struct object *) items; /* SEQUENCE; DICT: key, value, ..; TENSOR: storage, size, stride */
};

struct machine {
  struct sw_job *job;
  const unsigned char *p;
  size_t at, len;
  SW_VEC(struct object *) stack;
  SW_VEC(struct object *) memo;
  bool broken;
};

static struct object *make(struct machine *m, enum kind kind)
{
  struct object *o = SW_NEW(m->job->arena, struct object);
  o->kind = kind;
  return o;
}

static void push(struct machine *m, struct object *o)
{
  *SW_PUSH(m->job->arena, &m->stack) = o;
}

static struct object *pop(struct machine *m)
{
  if (!m->stack.n) {
    m->broken = true;
    return make(m, OPAQUE);
  }
  return m->stack.v[--m->stack.n];
}

/* n bytes, or NULL past the end. */
static const unsigned char *take(struct machine *m, size_t n)
{
  if (n > m->len - m->at) {
    m->broken = true;
    return NULL;
  }
  m->at += n;
  return m->p + m->at - n;
}

/* Little endian; a signed number of n < 8 bytes is extended by the caller. */
static uint64_t take_number(struct machine *m, size_t n)
{
  const unsigned char *b = take(m, n);
  uint64_t v = 0;
  for (size_t i = n; b && i > 0; i--)
    v = v << 8 | b[i - 1];
  return v;
}

static void push_number(struct machine *m, int64_t v)
{
  struct object *o = make(m, NUMBER);
  o->number = v;
  push(m, o);
}

static void push_text(struct machine *m, size_t n)
{
  const unsigned char *b = take(m, n);
  struct object *o = make(m, TEXT);
  o->text = b ? sw_arena_strndup(m->job->arena, (const char *)b, n) : "";
  push(m, o);
}

/* Objects above the mark, which goes too, as items of `o`. */
static struct object *collect(struct machine *m, struct object *o)
{
  int mark = m->stack.n - 1;
  while (mark >= 0 && m->stack.v[mark]->kind != MARK)
    mark--;
  if (mark < 0) {
    m->broken = true;
    return o;
  }
  for (int i = mark + 1; i < m->stack.n; i++)
    *SW_PUSH(m->job->arena, &o->items) = m->stack.v[i];
  m->stack.n = mark;
  return o;
}

static void push_tuple(struct machine *m, int n)
{
  struct object *o = make(m, SEQUENCE);
  if (n > m->stack.n) {
    m->broken = true;
    return;
  }
  for (int i = m->stack.n - n; i < m->stack.n; i++)
    *SW_PUSH(m->job->arena, &o->items) = m->stack.v[i];
  m->stack.n -= n;
  push(m, o);
}

static void remember(struct machine *m, uint64_t i)
{
  if (i > m->len || !m->stack.n) { /* more names than bytes: not written by pickle */
    m->broken = true;
    return;
  }
  while ((uint64_t)m->memo.n <= i)
    *SW_PUSH(m->job->arena, &m->memo) = NULL;
  m->memo.v[i] = m->stack.v[m->stack.n - 1];
}

static void recall(struct machine *m, uint64_t i)
{
  if (i >= (uint64_t)m->memo.n || !m->memo.v[i])
    m->broken = true;
  else
    push(m, m->memo.v[i]);
}

static const char *line(struct machine *m)
{
  const unsigned char *end = memchr(m->p + m->at, '\n', m->len - m->at);
  if (!end) {
    m->broken = true;
    return "";
  }
  size_t n = (size_t)(end - (m->p + m->at));
  const char *s = sw_arena_strndup(m->job->arena, (const char *)m->p + m->at, n);
  m->at += n + 1;
  return s;
}

static void push_global(struct machine *m, const char *module, const char *name)
{
  struct object *o = make(m, GLOBAL);
  o->text = sw_arena_printf(m->job->arena, "%s %s", module, name);
  push(m, o);
}

static const struct {
  const char *name;
  enum sw_dtype dtype;
} storages[] = {
    {"torch HalfStorage", SW_F16},      {"torch FloatStorage", SW_F32},        {"torch DoubleStorage", SW_F64},
    {"torch BFloat16Storage", SW_BF16}, {"torch LongStorage", SW_I64},         {"torch IntStorage", SW_I32},
    {"torch ShortStorage", SW_I16},     {"torch CharStorage", SW_I8},          {"torch ByteStorage", SW_U8},
    {"torch BoolStorage", SW_BOOL},     {"torch ComplexFloatStorage", SW_C64}, {"torch ComplexDoubleStorage", SW_C128},
};

/* ("storage", torch HalfStorage, "0", "cpu", 4096) */
static struct object *storage(struct machine *m, const struct object *id)
{
  struct object *o = make(m, OPAQUE);
  if (id->kind != SEQUENCE || id->items.n < 3 || id->items.v[1]->kind != GLOBAL || id->items.v[2]->kind != TEXT)
    return o;
  for (size_t i = 0; i < sizeof storages / sizeof storages[0]; i++)
    if (!strcmp(storages[i].name, id->items.v[1]->text)) {
      o->kind = STORAGE;
      o->dtype = storages[i].dtype;
      o->text = id->items.v[2]->text;
    }
  return o;
}

/* What a call with these arguments would give. */
static struct object *call(struct machine *m, const struct object *fn, const struct object *args)
{
  const char *name = fn->kind == GLOBAL ? fn->text : "";
  struct object *const *a = args->items.v;
  int n = args->kind == SEQUENCE ? args->items.n : 0;
  if (!strcmp(name, "collections OrderedDict"))
    return make(m, DICT);
  if (!strncmp(name, "torch._utils _rebuild_parameter", 31) && n >= 1)
    return a[0];
  if (!strcmp(name, "torch._utils _rebuild_tensor_v2") && n >= 4 && a[0]->kind == STORAGE && a[1]->kind == NUMBER &&
      a[2]->kind == SEQUENCE && a[3]->kind == SEQUENCE && a[2]->items.n == a[3]->items.n) {
    struct object *t = make(m, TENSOR);
    t->number = a[1]->number;
    *SW_PUSH(m->job->arena, &t->items) = a[0];
    *SW_PUSH(m->job->arena, &t->items) = a[2];
    *SW_PUSH(m->job->arena, &t->items) = a[3];
    return t;
  }
  return make(m, OPAQUE);
}

/* Adds `from`'s items to the dict or list on top of the stack. */
static void extend(struct machine *m, const struct object *from)
{
  struct object *o = pop(m);
  if (o->kind == DICT || o->kind == SEQUENCE)
    for (int i = 0; i < from->items.n; i++)
      *SW_PUSH(m->job->arena, &o->items) = from->items.v[i];
  push(m, o);
}

/* One instruction; false at the end or for one that torch.save does not write. */
static bool step(struct machine *m)
{
  const unsigned char *op = take(m, 1);
  struct object *a, *b;
  switch (op ? *op : '.') {
  case 0x80: /* PROTO */
    take(m, 1);
    break;
  case 0x95: /* FRAME */
    take(m, 8);
    break;
  case '}':
    push(m, make(m, DICT));
    break;
  case ')':
  case ']':
    push(m, make(m, SEQUENCE));
    break;
  case '(':
    push(m, make(m, MARK));
    break;
  case 't':
    push(m, collect(m, make(m, SEQUENCE)));
    break;
  case 0x85: /* TUPLE1, 2, 3 */
  case 0x86:
  case 0x87:
    push_tuple(m, *op - 0x84);
    break;
  case 'N':
    push(m, make(m, NOTHING));
    break;
  case 0x88: /* NEWTRUE, NEWFALSE */
  case 0x89:
    push_number(m, *op == 0x88);
    break;
  case 'K':
    push_number(m, (int64_t)take_number(m, 1));
    break;
  case 'M':
    push_number(m, (int64_t)take_number(m, 2));
    break;
  case 'J':
    push_number(m, (int32_t)take_number(m, 4));
    break;
  case 0x8a: { /* LONG1 */
    size_t n = (size_t)take_number(m, 1);
    uint64_t v = n <= 8 ? take_number(m, n) : 0;
    if (n > 8)
      m->broken = true;
    if (n && n < 8 && v >> (8 * n - 1)) /* sign */
      v |= ~(uint64_t)0 << (8 * n);
    push_number(m, (int64_t)v);
    break;
  }
  case 'G': /* BINFLOAT */
    take(m, 8);
    push(m, make(m, OPAQUE));
    break;
  case 'X':
    push_text(m, (size_t)take_number(m, 4));
    break;
  case 0x8c: /* SHORT_BINUNICODE */
    push_text(m, (size_t)take_number(m, 1));
    break;
  case 'c': {
    const char *module = line(m), *name = line(m);
    push_global(m, module, name);
    break;
  }
  case 0x93: /* STACK_GLOBAL */
    b = pop(m);
    a = pop(m);
    push_global(m, a->kind == TEXT ? a->text : "", b->kind == TEXT ? b->text : "");
    break;
  case 'q':
    remember(m, take_number(m, 1));
    break;
  case 'r':
    remember(m, take_number(m, 4));
    break;
  case 0x94: /* MEMOIZE */
    remember(m, (uint64_t)m->memo.n);
    break;
  case 'h':
    recall(m, take_number(m, 1));
    break;
  case 'j':
    recall(m, take_number(m, 4));
    break;
  case 'Q': /* BINPERSID */
    push(m, storage(m, pop(m)));
    break;
  case 'R':
    b = pop(m);
    a = pop(m);
    push(m, call(m, a, b));
    break;
  case 'b': /* BUILD: attributes of the object below, which say nothing here */
    pop(m);
    break;
  case 'a':
  case 's': {
    struct object *one = make(m, SEQUENCE);
    b = pop(m);
    if (*op == 's')
      *SW_PUSH(m->job->arena, &one->items) = pop(m);
    *SW_PUSH(m->job->arena, &one->items) = b;
    extend(m, one);
    break;
  }
  case 'e':
  case 'u':
    extend(m, collect(m, make(m, SEQUENCE)));
    break;
  case '.':
    return false;
  default:
    m->broken = true;
    break;
  }
  return !m->broken;
}

static bool read_numbers(struct machine *m, const struct object *list, int64_t **out)
{
  *out = SW_NEW_N(m->job->arena, int64_t, list->items.n);
  for (int i = 0; i < list->items.n; i++) {
    if (list->items.v[i]->kind != NUMBER)
      return false;
    (*out)[i] = list->items.v[i]->number;
  }
  return true;
}

bool sw_pickle__read(struct sw_job *job, const unsigned char *bytes, size_t len, struct sw_pickled_dict *out)
{
  struct machine m = {.job = job, .p = bytes, .len = len};
  while (step(&m))
    ;
  struct object *dict = m.stack.n == 1 ? m.stack.v[0] : NULL;
  if (m.broken || !dict || dict->kind != DICT) {
    sw_fail(job, SW_UNSUPPORTED, "pickled weights: no plain dict of tensors (byte %zu of %zu)", m.at, len);
    return false;
  }
  for (int i = 0; i + 1 < dict->items.n; i += 2) {
    const struct object *key = dict->items.v[i], *value = dict->items.v[i + 1];
    if (key->kind != TEXT)
      continue;
    struct sw_pickled *p = SW_PUSH(job->arena, &out->list);
    p->name = key->text;
    if (value->kind != TENSOR || !read_numbers(&m, value->items.v[1], &p->size) ||
        !read_numbers(&m, value->items.v[2], &p->stride))
      continue;
    p->key = value->items.v[0]->text;
    p->dtype = value->items.v[0]->dtype;
    p->rank = value->items.v[1]->items.n;
    p->offset = value->number;
  }
  return true;
}
