#include "compiler/emit/opspec.h"

#include "base/json.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Reading opspec.json (superdsc.md 2.8). Everything that has another form than the writer's is a fault with its JSON
 * pointer; what is well formed but makes no sense is left to sw_spec_check. */

enum { SPEC_MAX_VALUES = 64 << 20 };

struct reader {
  struct sw_job *job;
  struct sw_spec *spec; /* of the coordinates */
};

static enum sw_rc bad(struct reader *r, const char *where, const char *what)
{
  struct sw_fault *f = sw_fault(r->job, SW_INVALID, "%s: %s", *where ? where : "/", what);
  f->source = where;
  return SW_INVALID;
}

static const char *under(struct reader *r, const char *where, const char *key)
{
  return sw_arena_printf(r->job->arena, "%s/%s", where, key);
}

static const char *item(struct reader *r, const char *where, size_t i)
{
  return sw_arena_printf(r->job->arena, "%s/%zu", where, i);
}

static const char *text_of(struct reader *r, const json_t *v)
{
  return sw_arena_strdup(r->job->arena, json_string_value(v));
}

static const char *member_text(struct reader *r, const json_t *o, const char *where, const char *key)
{
  const json_t *v = sw_json_member(r->job, o, where, key, JSON_STRING);
  return v ? text_of(r, v) : NULL;
}

static bool member_bool(struct reader *r, const json_t *o, const char *where, const char *key, bool *out)
{
  const json_t *v = json_object_get(o, key);
  if (!json_is_boolean(v)) {
    bad(r, under(r, where, key), "true or false expected");
    return false;
  }
  *out = json_is_true(v);
  return true;
}

/* -- expressions -- */

static const char *blank(const char *p)
{
  while (*p == ' ')
    p++;
  return p;
}

/* Skips `what` (blanks before it are free); NULL when it is not there. */
static const char *skip(const char *p, const char *what)
{
  if (!p)
    return NULL;
  p = blank(p);
  size_t n = strlen(what);
  return strncmp(p, what, n) ? NULL : p + n;
}

static const char *number(const char *p, int64_t *out)
{
  if (!p)
    return NULL;
  p = blank(p);
  if (!isdigit((unsigned char)*p))
    return NULL;
  char *end;
  *out = strtoll(p, &end, 10);
  return end;
}

static size_t name_length(const char *p)
{
  size_t n = 0;
  while (isalnum((unsigned char)p[n]) || p[n] == '_')
    n++;
  return isdigit((unsigned char)p[0]) ? 0 : n;
}

static int symbol_number(const struct sw_spec *s, const char *name, size_t len)
{
  for (int i = 0; i < s->space.n; i++)
    if (strlen(s->space.v[i].name) == len && !memcmp(s->space.v[i].name, name, len))
      return i;
  return -1;
}

/* A symbol of the iteration space. */
static const char *symbol(const struct sw_spec *s, const char *p, int *out)
{
  if (!p)
    return NULL;
  p = blank(p);
  size_t n = name_length(p);
  *out = n ? symbol_number(s, p, n) : -1;
  return *out < 0 ? NULL : p + n;
}

static const char *plus_constant(const char *p, int64_t *k)
{
  const char *q = skip(p, "+");
  return q ? number(q, k) : p;
}

/* One of the forms of superdsc.md 2.4. */
static bool coordinate(struct reader *r, const char *text, struct sw_spec_coord *c)
{
  const struct sw_spec *s = r->spec;
  const char *p;
  if ((p = skip(text, "IndirectAccess("))) {
    size_t n = name_length(p = blank(p));
    c->form = SW_COORD_INDIRECT;
    c->name = sw_arena_strndup(r->job->arena, p, n);
    p = n ? skip(p + n, ")") : NULL;
  } else if ((p = skip(text, "floor("))) {
    c->form = SW_COORD_FLOOR;
    p = skip(number(skip(symbol(s, p, &c->symbol), "/"), &c->e), ")");
    p = p ? plus_constant(p, &c->k) : NULL;
  } else if ((p = skip(text, "Mod("))) {
    c->form = SW_COORD_MOD;
    p = skip(number(skip(symbol(s, p, &c->symbol), ","), &c->e), ")");
  } else if ((p = number(text, &c->k))) {
    c->form = SW_COORD_CONST;
  } else if ((p = symbol(s, text, &c->symbol))) {
    c->form = SW_COORD_SYMBOL;
    p = plus_constant(p, &c->k);
  }
  return p && !*blank(p);
}

/* An expression of core_id made of floor, Mod and quotients, as (core_id / below) mod n; n = 0: no mod. Mods and
 * quotients nest, so Mod(floor(core_id/4), 8) is below 4, n 8. */
static const char *core_slice(const char *p, struct sw_work_slice *w)
{
  const char *q;
  int64_t k = 0;
  if ((q = skip(p, "core_id"))) {
    w->below = 1;
    w->n = 0;
  } else if ((q = skip(p, "Mod("))) {
    q = skip(number(skip(core_slice(q, w), ","), &k), ")");
    if (q && k > 0 && (!w->n || k < w->n)) {
      if (w->n % k)
        return NULL;
      w->n = k;
    }
  } else if ((q = skip(p, "floor("))) {
    q = skip(core_slice(q, w), ")");
  }
  const char *over = skip(q, "/");
  if (!over)
    return q;
  q = number(over, &k);
  if (!q || k < 1 || w->n % k)
    return NULL;
  w->below *= k;
  w->n /= k;
  return q;
}

/* -- parts of an op -- */

static enum sw_rc read_space(struct reader *r, const json_t *o, const char *where)
{
  struct sw_spec *s = r->spec;
  const json_t *space = sw_json_member(r->job, o, where, "iteration_space", JSON_ARRAY);
  if (!space)
    return SW_INVALID;
  const json_t *bounds = json_object_get(o, "symbolic_dim_bounds");
  where = under(r, where, "iteration_space");
  for (size_t i = 0; i < json_array_size(space); i++) {
    const json_t *e = json_array_get(space, i);
    const char *at = item(r, where, i);
    const char *name = member_text(r, e, at, "symbol");
    const json_t *split = sw_json_member(r->job, e, at, "split", JSON_INTEGER);
    const json_t *range = json_object_get(e, "range");
    if (!name || !split)
      return SW_INVALID;
    if (!name_length(name) || name[name_length(name)] || symbol_number(s, name, strlen(name)) >= 0)
      return bad(r, under(r, at, "symbol"), "a new name expected");
    struct sw_spec_symbol *x = SW_PUSH(r->job->arena, &s->space);
    x->name = name;
    x->split = json_integer_value(split);
    if (json_is_integer(range)) {
      x->range = json_integer_value(range);
    } else if (json_is_string(range)) {
      x->dynamic = text_of(r, range);
      const json_t *b = json_object_get(bounds, x->dynamic);
      const json_t *max = json_object_get(b, "max"), *granularity = json_object_get(b, "granularity");
      if (!json_is_integer(max) || !json_is_integer(granularity))
        return bad(r, under(r, at, "range"), "a dynamic range needs max and granularity in symbolic_dim_bounds");
      x->range = json_integer_value(max);
      x->granularity = json_integer_value(granularity);
    } else {
      return bad(r, under(r, at, "range"), "a number or the name of a dynamic size expected");
    }
  }
  return SW_OK;
}

static enum sw_rc read_allocation(struct reader *r, const json_t *o, const char *where, struct sw_spec_arg *a)
{
  static const char *const kinds[] = {[SW_ALLOC_HBM] = "hbm", [SW_ALLOC_LX] = "lx", [SW_ALLOC_POOL] = "hbm_pool"};
  const json_t *v = sw_json_member(r->job, o, where, "allocation", JSON_OBJECT);
  if (!v)
    return SW_INVALID;
  for (int k = 0; k < 3; k++) {
    const json_t *n = json_object_get(v, kinds[k]);
    if (json_object_size(v) == 1 && json_is_integer(n)) {
      a->alloc = (enum sw_alloc_kind)k;
      a->address = json_integer_value(n);
      return SW_OK;
    }
  }
  return bad(r, under(r, where, "allocation"), "one of hbm, lx, hbm_pool with a number expected");
}

static enum sw_rc read_work_division(struct reader *r, const json_t *v, const char *where, struct sw_spec_arg *a)
{
  struct sw_work_division *w = SW_NEW(r->job->arena, struct sw_work_division);
  const json_t *n = sw_json_member(r->job, v, where, "work_slices", JSON_OBJECT);
  const json_t *map = sw_json_member(r->job, v, where, "core_id_to_work_slice", JSON_OBJECT);
  if (!n || !map)
    return SW_INVALID;
  const char *key;
  json_t *slices;
  json_object_foreach((json_t *)n, key, slices)
  {
    struct sw_work_slice *s = SW_PUSH(r->job->arena, &w->slices);
    s->symbol = sw_arena_strdup(r->job->arena, key);
    const json_t *text = json_object_get(map, key);
    const char *end = json_is_string(text) ? core_slice(json_string_value(text), s) : NULL;
    if (!json_is_integer(slices) || !end || *blank(end))
      return bad(r, under(r, where, key), "a number of slices and core_id in floor, / and Mod expected");
    if (s->n && s->n != json_integer_value(slices))
      return bad(r, under(r, where, key), "the core map does not have that many slices");
    s->n = json_integer_value(slices);
  }
  a->work_division = w;
  return SW_OK;
}

static int find_name(const char *name, const char *(*name_of)(int), int n)
{
  for (int i = 0; i < n; i++)
    if (!strcmp(name_of(i), name))
      return i;
  return -1;
}

static const char *format_name(int i)
{
  return sw_format_name((enum sw_format)i);
}

static const char *arrangement_name(int i)
{
  return sw_arrangement_name((enum sw_arrangement)i);
}

static enum sw_rc read_arg(struct reader *r, const json_t *o, const char *where, struct sw_spec_arg *a)
{
  const json_t *index = sw_json_member(r->job, o, where, "arg_index", JSON_INTEGER);
  const char *format = member_text(r, o, where, "device_dtype");
  const char *arrangement = member_text(r, o, where, "element_arrangement");
  const json_t *size = sw_json_member(r->job, o, where, "device_size", JSON_ARRAY);
  const json_t *coords = sw_json_member(r->job, o, where, "device_coordinates", JSON_ARRAY);
  if (!index || !format || !arrangement || !size || !coords || !member_bool(r, o, where, "is_input", &a->is_input))
    return SW_INVALID;
  SW_TRY(read_allocation(r, o, where, a));
  a->arg_index = (int)json_integer_value(index);
  int f = find_name(format, format_name, SW_N_FORMATS);
  if (f < 0)
    return bad(r, under(r, where, "device_dtype"), "unknown format");
  int ea = find_name(arrangement, arrangement_name, SW_N_ARRANGEMENTS);
  if (ea < 0)
    return bad(r, under(r, where, "element_arrangement"), "unknown arrangement");
  a->format = (enum sw_format)f;
  a->arrangement = (enum sw_arrangement)ea;
  size_t rank = json_array_size(size), most = sizeof a->device_size / sizeof *a->device_size;
  if (!rank || rank > most || json_array_size(coords) != rank)
    return bad(r, under(r, where, "device_coordinates"), "1 to 16 device dims with a coordinate each expected");
  a->rank = (int)rank;
  for (size_t i = 0; i < rank; i++) {
    const json_t *n = json_array_get(size, i), *c = json_array_get(coords, i);
    if (!json_is_integer(n))
      return bad(r, item(r, under(r, where, "device_size"), i), "a number expected");
    a->device_size[i] = json_integer_value(n);
    if (!json_is_string(c) || !coordinate(r, json_string_value(c), &a->coord[i]))
      return bad(r, item(r, under(r, where, "device_coordinates"), i),
                 "k, s + k, floor(s/e) + k, Mod(s, e) or IndirectAccess(name) of a symbol of the iteration space expected");
  }
  if (json_object_get(o, "name") && !(a->name = member_text(r, o, where, "name")))
    return SW_INVALID;
  if (json_object_get(o, "device_tile_advance_expr") &&
      !(a->tile_advance = member_text(r, o, where, "device_tile_advance_expr")))
    return SW_INVALID;
  const json_t *w = json_object_get(o, "work_division");
  return w ? read_work_division(r, w, under(r, where, "work_division"), a) : SW_OK;
}

static enum sw_rc read_numbers(struct reader *r, const json_t *info, const char *where, const char *key,
                               struct sw_named_number **v, int *n)
{
  json_t *o = json_object_get(info, key);
  if (!o)
    return SW_OK;
  *v = SW_NEW_N(r->job->arena, struct sw_named_number, json_object_size(o));
  const char *name;
  json_t *x;
  json_object_foreach(o, name, x)
  {
    if (json_is_string(x) && !strcmp(name, "pad_type")) {
      r->spec->pad_type = text_of(r, x);
      continue;
    }
    if (!json_is_number(x) && !json_is_boolean(x))
      return bad(r, under(r, under(r, where, key), name), "a number expected");
    (*v)[(*n)++] = (struct sw_named_number){
        .name = sw_arena_strdup(r->job->arena, name),
        .value = json_is_boolean(x) ? json_is_true(x) : json_number_value(x),
    };
  }
  return SW_OK;
}

static enum sw_rc read_tiles(struct reader *r, const json_t *o, const char *where)
{
  struct sw_spec *s = r->spec;
  const json_t *levels = json_object_get(o, "tiled_symbols");
  s->n_tile_levels = (int)json_array_size(levels);
  s->tile_levels = SW_NEW_N(r->job->arena, struct sw_tile_level, s->n_tile_levels);
  for (int l = 0; l < s->n_tile_levels; l++) {
    const json_t *level = json_array_get(levels, (size_t)l);
    struct sw_tile_level *t = &s->tile_levels[l];
    t->n = (int)json_array_size(level);
    t->symbols = SW_NEW_N(r->job->arena, const char *, t->n);
    for (int i = 0; i < t->n; i++) {
      const json_t *name = json_array_get(level, (size_t)i);
      if (!json_is_string(name))
        return bad(r, under(r, where, "tiled_symbols"), "lists of names expected");
      t->symbols[i] = text_of(r, name);
    }
  }
  struct sw_named_number *v = NULL;
  int n = 0;
  SW_TRY(read_numbers(r, o, where, "tiled_symbol_trip_counts", &v, &n));
  s->tile_trip_counts.v = v;
  s->tile_trip_counts.n = s->tile_trip_counts.cap = n;
  return SW_OK;
}

static enum sw_rc read_op(struct reader *r, const json_t *o, const char *where)
{
  struct sw_spec *s = r->spec;
  s->op = member_text(r, o, where, "op");
  const json_t *args = sw_json_member(r->job, o, where, "args", JSON_ARRAY);
  const json_t *info = sw_json_member(r->job, o, where, "op_info", JSON_OBJECT);
  if (!s->op || !args || !info || !member_bool(r, o, where, "is_reduction", &s->is_reduction))
    return SW_INVALID;
  SW_TRY(read_space(r, o, where));
  const char *in_info = under(r, where, "op_info"), *in_args = under(r, where, "args");
  SW_TRY(read_numbers(r, info, in_info, "constants", &s->constants.v, &s->constants.n));
  SW_TRY(read_numbers(r, info, in_info, "conv_params", &s->conv.v, &s->conv.n));
  s->constants.cap = s->constants.n;
  s->conv.cap = s->conv.n;
  s->shared_weight_unit_bmm = json_object_get(info, "shared_weight_unit_bmm");
  for (size_t i = 0; i < json_array_size(args); i++)
    SW_TRY(read_arg(r, json_array_get(args, i), item(r, in_args, i), SW_PUSH(r->job->arena, &s->args)));
  SW_TRY(read_tiles(r, o, where));
  const json_t *ranges = json_object_get(o, "node_output_ranges");
  s->n_node_output_ranges = (int)json_array_size(ranges);
  s->node_output_ranges = SW_NEW_N(r->job->arena, int64_t, s->n_node_output_ranges);
  for (int i = 0; i < s->n_node_output_ranges; i++)
    s->node_output_ranges[i] = json_integer_value(json_array_get(ranges, (size_t)i));
  s->debug_handle = json_object_get(o, "debug_handle");
  return SW_OK;
}

static enum sw_rc read_spec(struct reader *r, const json_t *o, const char *where, struct sw_spec **out)
{
  const char *kind = member_text(r, o, where, "kind");
  if (!kind)
    return SW_INVALID;
  struct sw_spec *s = *out = SW_NEW(r->job->arena, struct sw_spec);
  r->spec = s;
  if (!strcmp(kind, "op"))
    return read_op(r, o, where);
  if (strcmp(kind, "loop"))
    return bad(r, under(r, where, "kind"), "\"op\" or \"loop\" expected");
  s->is_loop = true;
  const json_t *count = json_object_get(o, "count"), *body = sw_json_member(r->job, o, where, "body", JSON_ARRAY);
  const char *end = json_is_string(count) ? number(json_string_value(count), &s->count) : NULL;
  if (json_is_integer(count))
    s->count = json_integer_value(count);
  else if (!end || *blank(end))
    return bad(r, under(r, where, "count"), "a number expected: the back end has no symbolic loop counts");
  if (!body)
    return SW_INVALID;
  where = under(r, where, "body");
  for (size_t i = 0; i < json_array_size(body); i++)
    SW_TRY(read_spec(r, json_array_get(body, i), item(r, where, i), SW_PUSH(r->job->arena, &s->body)));
  return SW_OK;
}

enum sw_rc sw_opspecs_read(struct sw_job *job, const char *text, size_t len, struct sw_opspecs **out)
{
  struct reader r = {.job = job};
  const json_t *root = sw_json_parse(job, "op specs", text, len, SPEC_MAX_VALUES);
  if (!root)
    return job->worst;
  const json_t *specs = sw_json_member(job, root, "", "specs", JSON_ARRAY);
  if (!specs)
    return SW_INVALID;
  struct sw_opspecs *s = SW_NEW(job->arena, struct sw_opspecs);
  const json_t *name = json_object_get(root, "case"), *note = json_object_get(root, "note");
  const json_t *k_fast = json_object_get(json_object_get(root, "config"), "core_id_k_fast_emission");
  s->name = json_is_string(name) ? text_of(&r, name) : "";
  s->note = json_is_string(note) ? text_of(&r, note) : NULL;
  s->pool_bytes = json_integer_value(json_object_get(root, "pool_size"));
  s->k_fast = !json_is_false(k_fast);
  for (size_t i = 0; i < json_array_size(specs); i++)
    SW_TRY(read_spec(&r, json_array_get(specs, i), item(&r, "/specs", i), SW_PUSH(job->arena, &s->specs)));
  *out = s;
  return SW_OK;
}
