/* The documents of the placement problem (place-problem.md sections 1, 3 and 4). */
#include "solver/place/place.h"

#include "base/map.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_VALUES = 40000000 };
static const int64_t MAX_NUMBER = (int64_t)1 << 53;

/* -- JSON, in -- */

static enum sw_rc refuse(struct sw_job *job, const char *pointer, const char *what)
{
  struct sw_fault *f = sw_fault(job, SW_INVALID, "%s", what);
  f->source = pointer;
  return SW_INVALID;
}

static const char *pointer_to(struct sw_job *job, int i, const char *key)
{
  return i < 0 ? sw_arena_printf(job->arena, "/%s", key) : sw_arena_printf(job->arena, "/buffers/%d/%s", i, key);
}

/* An optional integer in [low, 2^53]; absent gives `otherwise`. i is the buffer, -1 for the document. */
static int64_t number(struct sw_job *job, const json_t *object, int i, const char *key, int64_t low, int64_t otherwise)
{
  const json_t *v = json_object_get(object, key);
  if (!v)
    return otherwise;
  int64_t n = json_integer_value(v);
  if (!json_is_integer(v) || n < low || n > MAX_NUMBER) {
    refuse(job, pointer_to(job, i, key),
           sw_arena_printf(job->arena, "must be an integer between %" PRId64 " and 2^53", low));
    return otherwise;
  }
  return n;
}

static bool flag(struct sw_job *job, const json_t *object, int i, const char *key)
{
  const json_t *v = json_object_get(object, key);
  if (v && !json_is_boolean(v))
    refuse(job, pointer_to(job, i, key), "must be true or false");
  return json_is_true(v);
}

/* The text of a string, whole: NULL for anything else, and for one that a NUL would cut short. */
static const char *whole_text(const json_t *v)
{
  const char *s = json_string_value(v);
  return s && strlen(s) == json_string_length(v) ? s : NULL;
}

static const char *text_of(struct sw_job *job, const json_t *object, int i, const char *key)
{
  const json_t *v = json_object_get(object, key);
  const char *s = whole_text(v);
  if (v && !s)
    refuse(job, pointer_to(job, i, key), "must be a string without \\u0000");
  return s ? sw_arena_strdup(job->arena, s) : NULL;
}

static void must_have(struct sw_job *job, const json_t *object, int i, const char *key)
{
  if (!json_object_get(object, key))
    refuse(job, pointer_to(job, i, key), "is missing");
}

/* Known keys of a buffer; anything else is most likely a spelling mistake that would change the answer. */
static void look_for_unknown_keys(struct sw_job *job, const json_t *object, int i)
{
  static const char *const known[] = {"name",    "size",    "start", "end",  "value", "alignment", "required",
                                      "barred",  "address", "parents", "alias", "uses", "input"};
  const char *key;
  json_t *value;
  json_object_foreach((json_t *)object, key, value) {
    bool is_known = false;
    for (size_t k = 0; k < sizeof known / sizeof known[0]; k++)
      is_known |= !strcmp(known[k], key);
    if (!is_known)
      sw_warn(job, "buffers have no key \"%.60s\" (first at /buffers/%d): ignored", key, i);
  }
}

static void read_buffer(struct sw_job *job, const json_t *o, int i, struct sw_place_buffer *b, struct sw_map *groups,
                        struct sw_place_problem *p)
{
  static const char *const needed[] = {"size", "start", "end"};
  for (int k = 0; k < 3; k++)
    must_have(job, o, i, needed[k]);
  look_for_unknown_keys(job, o, i);
  const char *name = text_of(job, o, i, "name");
  b->name = name ? name : sw_arena_printf(job->arena, "b%d", i);
  b->size = number(job, o, i, "size", 1, 1);
  b->start = number(job, o, i, "start", 0, 0);
  b->end = number(job, o, i, "end", 1, b->start + 1);
  b->value = number(job, o, i, "value", 0, 0);
  b->alignment = number(job, o, i, "alignment", 1, 0);
  b->address = number(job, o, i, "address", 0, -1);
  b->required = flag(job, o, i, "required") || p->require_all;
  b->barred = text_of(job, o, i, "barred");
  b->uses = (int)(number(job, o, i, "uses", 0, 0) & INT32_MAX);
  b->is_input = flag(job, o, i, "input");
  const char *alias = text_of(job, o, i, "alias");
  b->alias = -1;
  if (alias) {
    int64_t group = sw_map_get_str(groups, alias);
    if (group < 0) {
      group = p->aliases.n;
      sw_map_set_str(groups, alias, group);
      *SW_PUSH(job->arena, &p->aliases) = alias;
    }
    b->alias = (int)group;
  }
}

/* The parents of buffer i by name. */
static void read_parents(struct sw_job *job, const json_t *o, int i, struct sw_place_problem *p,
                         const struct sw_map *by_name)
{
  const json_t *list = json_object_get(o, "parents");
  if (!list)
    return;
  const char *where = pointer_to(job, i, "parents");
  if (!json_is_array(list)) {
    refuse(job, where, "must be a list of names");
    return;
  }
  struct sw_place_buffer *b = &p->buffers.v[i];
  b->parents = SW_NEW_N(job->arena, int, json_array_size(list));
  for (size_t k = 0; k < json_array_size(list); k++) {
    const char *name = whole_text(json_array_get(list, k));
    int64_t parent = name ? sw_map_get_str(by_name, name) : -1;
    if (parent < 0)
      refuse(job, sw_arena_printf(job->arena, "%s/%zu", where, k), "names no buffer");
    else
      b->parents[b->n_parents++] = (int)parent;
  }
}

enum sw_rc sw_place_read_json(struct sw_job *job, const char *text, size_t len, struct sw_place_problem **out)
{
  json_t *root = sw_json_parse(job, "problem", text, len, MAX_VALUES);
  if (!root)
    return job->worst;
  int before = job->faults.n;
  if (!json_is_object(root))
    return sw_fail(job, SW_INVALID, "the problem is not a JSON object");
  const json_t *format = json_object_get(root, "format");
  if (format && (!whole_text(format) || strcmp(whole_text(format), "stickwright.place/1")))
    return refuse(job, "/format", "must be \"stickwright.place/1\"");
  struct sw_place_problem *p = SW_NEW(job->arena, struct sw_place_problem);
  p->name = text_of(job, root, -1, "name");
  must_have(job, root, -1, "capacity");
  p->capacity = number(job, root, -1, "capacity", 0, 0);
  p->alignment = number(job, root, -1, "alignment", 1, 1);
  p->require_all = flag(job, root, -1, "require_all");
  const json_t *list = sw_json_member(job, root, "", "buffers", JSON_ARRAY);
  if (!list)
    return job->worst;
  struct sw_map groups = {.arena = job->arena}, by_name = {.arena = job->arena};
  int n = (int)json_array_size(list);
  for (int i = 0; i < n; i++) {
    const json_t *o = json_array_get(list, (size_t)i);
    struct sw_place_buffer *b = SW_PUSH(job->arena, &p->buffers);
    if (!json_is_object(o)) {
      refuse(job, sw_arena_printf(job->arena, "/buffers/%d", i), "must be an object");
      continue;
    }
    read_buffer(job, o, i, b, &groups, p);
    if (sw_map_set_str(&by_name, b->name, i) >= 0)
      refuse(job, pointer_to(job, i, "name"), "is the name of an earlier buffer");
  }
  if (job->faults.n > before)
    return job->worst;
  for (int i = 0; i < n; i++)
    read_parents(job, json_array_get(list, (size_t)i), i, p, &by_name);
  if (job->faults.n > before)
    return job->worst;
  SW_TRY(sw_place_validate(job, p));
  *out = p;
  return SW_OK;
}

/* -- CSV, in -- */

/* Columns that a file may have, under either name. */
enum column { ID, LOWER, UPPER, SIZE, ALIGNMENT, N_COLUMNS };
static const char *const column_names[N_COLUMNS][2] = {
    {"id", "buffer"}, {"lower", "start"}, {"upper", "end"}, {"size", "size"}, {"alignment", "alignment"}};

enum { MAX_FIELDS = 16 };

/* Splits text[0..len) at commas and trims blanks; -1 when there are more than MAX_FIELDS. */
static int split(struct sw_job *job, const char *text, size_t len, const char *out[MAX_FIELDS])
{
  int n = 0;
  for (const char *end = text + len;; text++) {
    size_t field = 0;
    while (text + field < end && text[field] != ',')
      field++;
    if (n == MAX_FIELDS)
      return -1;
    const char *a = text, *z = text + field;
    while (a < z && (*a == ' ' || *a == '\t'))
      a++;
    while (z > a && (z[-1] == ' ' || z[-1] == '\t' || z[-1] == '\r'))
      z--;
    out[n++] = sw_arena_strndup(job->arena, a, (size_t)(z - a));
    text += field;
    if (text >= end)
      return n;
  }
}

static bool integer(const char *text, int64_t low, int64_t *out)
{
  char *end;
  long long v = strtoll(text, &end, 10);
  *out = v;
  return *text && !*end && v >= low && v <= MAX_NUMBER;
}

/* 1048576 from "dir/A.1048576.csv"; -1 when the name has no such part. */
static int64_t capacity_of_name(struct sw_job *job, const char *path)
{
  const char *base = strrchr(path, '/');
  char *copy = sw_arena_strdup(job->arena, base ? base + 1 : path);
  char *dot = strrchr(copy, '.');
  if (dot)
    *dot = 0;
  char *number_part = strrchr(copy, '.');
  int64_t capacity;
  return number_part && integer(number_part + 1, 0, &capacity) ? capacity : -1;
}

static enum sw_rc read_header(struct sw_job *job, const char **names, int n, int column[N_COLUMNS])
{
  for (int c = 0; c < N_COLUMNS; c++)
    column[c] = -1;
  for (int k = 0; k < n; k++) {
    int c = 0;
    while (c < N_COLUMNS && strcmp(names[k], column_names[c][0]) && strcmp(names[k], column_names[c][1]))
      c++;
    if (c == N_COLUMNS || column[c] >= 0)
      return sw_fail(job, SW_INVALID, "line 1: column \"%.60s\" is %s", names[k],
                     c == N_COLUMNS ? "not one of id, lower, upper, size, alignment" : "there twice");
    column[c] = k;
  }
  for (int c = 0; c < ALIGNMENT; c++)
    if (column[c] < 0)
      return sw_fail(job, SW_INVALID, "line 1: no column \"%s\"", column_names[c][0]);
  return SW_OK;
}

enum sw_rc sw_place_read_csv(struct sw_job *job, const char *path, const char *text, size_t len, int64_t capacity,
                             struct sw_place_problem **out)
{
  struct sw_place_problem *p = SW_NEW(job->arena, struct sw_place_problem);
  p->alignment = 1;
  p->require_all = true;
  p->capacity = capacity >= 0 ? capacity : capacity_of_name(job, path);
  if (p->capacity < 0) {
    sw_fault(job, SW_INVALID, "the CSV file %s doesn't say the capacity", path)->advice =
        "give --capacity BYTES, or name the file like A.1048576.csv";
    return SW_INVALID;
  }
  struct sw_map by_name = {.arena = job->arena};
  int column[N_COLUMNS], width = 0, before = job->faults.n;
  const char *end = text + len;
  for (int line = 1; text < end; line++) {
    const char *eol = memchr(text, '\n', (size_t)(end - text));
    size_t n = (size_t)((eol ? eol : end) - text);
    const char *field[MAX_FIELDS];
    int fields = split(job, text, n, field);
    text += n + 1;
    if (line == 1) {
      width = fields;
      if (fields < 0)
        return sw_fail(job, SW_INVALID, "line 1 has more than %d columns", MAX_FIELDS);
      SW_TRY(read_header(job, field, fields, column));
      continue;
    }
    if (fields == 1 && !*field[0])
      continue;
    int64_t v[N_COLUMNS] = {0};
    bool good = fields == width;
    for (int c = LOWER; good && c < N_COLUMNS; c++)
      good = column[c] < 0 || integer(field[column[c]], c >= SIZE, &v[c]);
    if (!good) {
      sw_fail(job, SW_INVALID, "line %d: needs %d columns of integers between 0 (sizes: 1) and 2^53", line, width);
      continue;
    }
    struct sw_place_buffer *b = sw_place_add(job, p, field[column[ID]], v[SIZE], v[LOWER], v[UPPER], 0);
    b->alignment = v[ALIGNMENT];
    b->required = true;
    if (sw_map_set_str(&by_name, b->name, line) >= 0)
      sw_fail(job, SW_INVALID, "line %d: id \"%.60s\" was there before", line, b->name);
  }
  if (job->faults.n > before)
    return job->worst;
  SW_TRY(sw_place_validate(job, p));
  *out = p;
  return SW_OK;
}

/* -- out -- */

static const char *const status_texts[] = {"optimal", "feasible", "infeasible", "unknown"};

const char *sw_place_status_text(enum sw_place_status s)
{
  return status_texts[s];
}

/* A number, or null for -1. */
static void write_or_null(struct sw_jw *w, const char *key, int64_t n)
{
  sw_jw_key(w, key);
  if (n < 0)
    sw_jw_null(w);
  else
    sw_jw_int(w, n);
}

void sw_place_write_json(const struct sw_place_problem *p, const struct sw_place_result *r, struct sw_jw *w)
{
  sw_jw_object(w);
  sw_jw_kstr(w, "format", "stickwright.place.result/1");
  sw_jw_kstr(w, "name", p->name);
  sw_jw_kstr(w, "status", sw_place_status_text(r->status));
  write_or_null(w, "value", r->address ? r->value : -1);
  write_or_null(w, "bound", r->bound);
  write_or_null(w, "peak", r->address ? r->peak : -1);
  write_or_null(w, "peak_bound", r->peak_bound);
  sw_jw_kstr(w, "peak_status", sw_place_status_text(r->peak_status));
  sw_jw_key(w, "addresses");
  if (r->address) {
    sw_jw_array(w);
    for (int i = 0; i < p->buffers.n; i++)
      if (r->address[i] < 0)
        sw_jw_null(w);
      else
        sw_jw_int(w, r->address[i]);
    sw_jw_end_array(w);
    sw_jw_key(w, "reasons");
    sw_jw_object(w);
    for (int i = 0; i < p->buffers.n; i++)
      if (r->address[i] < 0)
        sw_jw_kstr(w, p->buffers.v[i].name, r->reason[i]);
    sw_jw_end_object(w);
  } else {
    sw_jw_null(w);
  }
  if (r->conflict.n) {
    sw_jw_key(w, "conflict");
    sw_jw_array(w);
    for (int i = 0; i < r->conflict.n; i++)
      sw_jw_str(w, p->buffers.v[r->conflict.v[i]].name);
    sw_jw_end_array(w);
  }
  sw_jw_key(w, "certificate");
  if (r->method) {
    sw_jw_object(w);
    sw_jw_kstr(w, "method", r->method);
    sw_jw_end_object(w);
  } else {
    sw_jw_null(w);
  }
  sw_jw_kstr(w, "stopped_by", r->stopped_by);
  sw_jw_key(w, "stats");
  sw_jw_object(w);
  sw_jw_kstr(w, "packed_by", r->packed_by);
  sw_jw_kint(w, "rows", r->n_rows);
  sw_jw_kint(w, "columns", r->n_columns);
  sw_jw_kint(w, "cuts", r->n_cuts);
  sw_jw_kint(w, "glpk_calls", r->n_glpk_calls);
  sw_jw_kint(w, "work", r->work);
  sw_jw_end_object(w);
  sw_jw_end_object(w);
}

void sw_place_write_csv(const struct sw_place_problem *p, const struct sw_place_result *r, struct sw_buf *out)
{
  sw_buf_puts(out, "id,lower,upper,size,offset\n");
  for (int i = 0; i < p->buffers.n; i++) {
    const struct sw_place_buffer *b = &p->buffers.v[i];
    sw_buf_printf(out, "%s,%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 "\n", b->name, b->start, b->end, b->size,
                  r->address[i]);
  }
}
