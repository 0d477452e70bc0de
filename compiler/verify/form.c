#include "compiler/verify/form.h"

#include "base/map.h"

#include <assert.h>
#include <inttypes.h>
#include <regex.h>
#include <string.h>

/* The schema uses a part of JSON Schema 2020-12: type, const, enum, required, properties, patternProperties,
 * additionalProperties (always false), items, minItems, maxItems, minProperties, maxProperties, minimum, maximum, pattern,
 * and $ref into $defs. Each schema object is read once into a rule; a `$ref` is the number of another rule. */
__asm__(".section .rodata\n"
        "sw_superdsc_schema:\n.incbin \"" SW_SUPERDSC_SCHEMA_FILE "\"\n"
        "sw_superdsc_schema_end:\n.byte 0\n.previous\n");

extern const char sw_superdsc_schema[] __asm__("sw_superdsc_schema");
extern const char sw_superdsc_schema_end[] __asm__("sw_superdsc_schema_end");

struct pattern {
  regex_t re;
  int rule;
};

struct rule {
  const char *name;        /* of the definition it is part of, for messages */
  unsigned kinds;          /* a bit for each json_type that is allowed; 0: all */
  const json_t *same, *one_of, *required;
  int64_t least, most;     /* of a number */
  size_t fewest, longest;  /* of an array's items, an object's members */
  bool is_closed;          /* no members but the named ones */
  struct sw_map members;   /* name -> rule */
  int n_patterns;
  struct pattern *patterns;
  int items;               /* rule, or -1 */
  const struct pattern *text;
};

struct sim_form {
  SW_VEC(struct rule) rules;
};

struct reader {
  struct sw_arena *arena;
  struct sim_form *form;
  const json_t *definitions;
  struct sw_map known; /* name of a definition -> rule */
};

static const struct {
  const char *name;
  unsigned kinds;
} kinds[] = {{"object", 1u << JSON_OBJECT}, {"array", 1u << JSON_ARRAY}, {"string", 1u << JSON_STRING},
             {"integer", 1u << JSON_INTEGER}, {"null", 1u << JSON_NULL}};

static unsigned kinds_of(const json_t *type)
{
  unsigned all = 0;
  for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
    bool named = json_is_string(type) && !strcmp(json_string_value(type), kinds[i].name);
    for (size_t k = 0; k < json_array_size(type); k++)
      named |= !strcmp(json_string_value(json_array_get(type, k)), kinds[i].name);
    all |= named ? kinds[i].kinds : 0;
  }
  return all;
}

static void free_pattern(void *p)
{
  regfree(p);
}

/* The patterns of the schema mean the same as POSIX extended ones. */
static void read_pattern(struct reader *r, struct pattern *p, const char *text)
{
  int bad = regcomp(&p->re, text, REG_EXTENDED | REG_NOSUB);
  assert(!bad);
  (void)bad;
  sw_arena_defer(r->arena, free_pattern, &p->re);
}

static int64_t number(const json_t *o, const char *key, int64_t otherwise)
{
  const json_t *v = json_object_get(o, key);
  return v ? json_integer_value(v) : otherwise;
}

static int read_rule(struct reader *r, const json_t *o, const char *name)
{
  const char *ref = json_string_value(json_object_get(o, "$ref")), *key;
  json_t *v;
  if (ref) {
    name = ref + strlen("#/$defs/");
    int64_t at = sw_map_get_str(&r->known, name);
    if (at >= 0)
      return (int)at;
    o = json_object_get(r->definitions, name);
  }
  int at = r->form->rules.n;
  *SW_PUSH(r->arena, &r->form->rules) = (struct rule){.items = -1};
  if (ref)
    sw_map_set_str(&r->known, name, at); /* before its parts: a definition may contain itself */
  struct rule rule = {
      .name = name, .kinds = kinds_of(json_object_get(o, "type")),
      .same = json_object_get(o, "const"), .one_of = json_object_get(o, "enum"), .required = json_object_get(o, "required"),
      .least = number(o, "minimum", INT64_MIN), .most = number(o, "maximum", INT64_MAX),
      .is_closed = json_is_false(json_object_get(o, "additionalProperties")), .members = {.arena = r->arena}, .items = -1,
  };
  rule.fewest = (size_t)number(o, "minItems", number(o, "minProperties", 0));
  rule.longest = (size_t)number(o, "maxItems", number(o, "maxProperties", INT64_MAX));
  json_object_foreach (json_object_get(o, "properties"), key, v)
    sw_map_set_str(&rule.members, key, read_rule(r, v, name));
  const json_t *by_pattern = json_object_get(o, "patternProperties");
  rule.patterns = SW_NEW_N(r->arena, struct pattern, (int64_t)json_object_size(by_pattern));
  json_object_foreach ((json_t *)(intptr_t)by_pattern, key, v) {
    struct pattern *p = &rule.patterns[rule.n_patterns++];
    read_pattern(r, p, key);
    p->rule = read_rule(r, v, name);
  }
  if (json_object_get(o, "items"))
    rule.items = read_rule(r, json_object_get(o, "items"), name);
  if (json_object_get(o, "pattern")) {
    struct pattern *p = SW_NEW(r->arena, struct pattern);
    read_pattern(r, p, json_string_value(json_object_get(o, "pattern")));
    rule.text = p;
  }
  r->form->rules.v[at] = rule;
  return at;
}

struct sim_form *sim_form_new(struct sw_job *job)
{
  struct sw_arena *a = job->arena;
  json_t *schema = sw_json_parse(job, "superdsc.schema.json", sw_superdsc_schema,
                                 (size_t)(sw_superdsc_schema_end - sw_superdsc_schema), 100000);
  if (!schema)
    return NULL;
  struct sim_form *f = SW_NEW(a, struct sim_form);
  struct reader r = {.arena = a, .form = f, .definitions = json_object_get(schema, "$defs"), .known = {.arena = a}};
  read_rule(&r, schema, "file");
  return f;
}

/* -- checking -- */

/* A place in the document, from the inside out. */
struct place {
  const struct place *of;
  const char *key; /* NULL: item */
  size_t item;
};

struct check {
  struct sw_job *job;
  const struct sim_form *form;
  const char *file;
  int n_faults;
};

enum { MOST_FAULTS = 8 };

static void pointer(const struct place *p, struct sw_buf *out)
{
  if (!p)
    return;
  pointer(p->of, out);
  if (p->key)
    sw_buf_printf(out, "/%s", p->key);
  else
    sw_buf_printf(out, "/%zu", p->item);
}

static void wrong(struct check *c, const struct place *at, const struct rule *r, const char *what)
{
  if (c->n_faults++ >= MOST_FAULTS)
    return;
  struct sw_buf path = {.arena = c->job->arena};
  pointer(at, &path);
  sw_fault(c->job, SW_DIFFERENT, "%s: %s (schema: %s)", sw_buf_text(&path), what, r->name)->source = c->file;
}

/* A short value as JSON text. */
static const char *text_of(struct check *c, const json_t *v)
{
  char text[64];
  size_t n = json_dumpb(v, text, sizeof text, JSON_COMPACT | JSON_ENCODE_ANY);
  return n > sizeof text ? "a long value" : sw_arena_printf(c->job->arena, "%.*s", (int)n, text);
}

static bool is_one_of(const json_t *list, const json_t *v)
{
  for (size_t i = 0; i < json_array_size(list); i++)
    if (json_equal(json_array_get(list, i), v))
      return true;
  return false;
}

static void check_value(struct check *c, const struct place *at, int rule, const json_t *v);

static void check_object(struct check *c, const struct place *at, const struct rule *r, const json_t *v)
{
  const char *key;
  json_t *member;
  for (size_t i = 0; i < json_array_size(r->required); i++) {
    key = json_string_value(json_array_get(r->required, i));
    if (!json_object_get(v, key))
      wrong(c, at, r, sw_arena_printf(c->job->arena, "%s is missing", key));
  }
  json_object_foreach ((json_t *)(intptr_t)v, key, member) {
    struct place here = {at, key, 0};
    int64_t rule = sw_map_get_str(&r->members, key);
    for (int i = 0; rule < 0 && i < r->n_patterns; i++)
      rule = regexec(&r->patterns[i].re, key, 0, NULL, 0) ? -1 : r->patterns[i].rule;
    if (rule >= 0)
      check_value(c, &here, (int)rule, member);
    else if (r->is_closed)
      wrong(c, &here, r, "a member of unknown name");
  }
}

static void check_value(struct check *c, const struct place *at, int rule, const json_t *v)
{
  const struct rule *r = &c->form->rules.v[rule];
  struct sw_arena *a = c->job->arena;
  if (c->n_faults >= MOST_FAULTS)
    return;
  if ((r->kinds && !(r->kinds >> json_typeof(v) & 1)) || (r->same && !json_equal(r->same, v)) ||
      (r->one_of && !is_one_of(r->one_of, v))) {
    const char *wanted = r->same ? text_of(c, r->same) : r->one_of ? sw_arena_printf(a, "one of %s", text_of(c, r->one_of))
                                                                   : "another kind of value";
    wrong(c, at, r, sw_arena_printf(a, "is %s, %s expected", text_of(c, v), wanted));
    return;
  }
  size_t n = json_is_object(v) ? json_object_size(v) : json_array_size(v);
  if (json_is_integer(v) && (json_integer_value(v) < r->least || json_integer_value(v) > r->most))
    wrong(c, at, r, sw_arena_printf(a, "%" JSON_INTEGER_FORMAT " is too %s", json_integer_value(v),
                                    json_integer_value(v) < r->least ? "small" : "large"));
  if (json_is_string(v) && r->text && regexec(&r->text->re, json_string_value(v), 0, NULL, 0))
    wrong(c, at, r, sw_arena_printf(a, "%s does not have the form of such a text", text_of(c, v)));
  if ((json_is_object(v) || json_is_array(v)) && (n < r->fewest || n > r->longest))
    wrong(c, at, r, sw_arena_printf(a, "%zu parts are too %s", n, n < r->fewest ? "few" : "many"));
  if (json_is_object(v))
    check_object(c, at, r, v);
  for (size_t i = 0; json_is_array(v) && r->items >= 0 && i < n; i++)
    check_value(c, &(struct place){at, NULL, i}, r->items, json_array_get(v, i));
}

bool sim_form_check(struct sw_job *job, const struct sim_form *f, const char *file, const json_t *root)
{
  struct check c = {job, f, file, 0};
  check_value(&c, NULL, 0, root);
  return c.n_faults == 0;
}
