/* The .pt2 container (reference: pt2.md sections 1, 2, 13): a zip file that is not trusted. What is looked at before
 * any entry is read: number of entries, names given twice, and that the packed sizes fit into the file, so that no
 * bytes serve two entries. What bounds each read: the size that the directory states, at most RATIO times the packed
 * size. */
#include "compiler/graph/archive.h"

#include "compiler/graph/build.h"
#include "compiler/graph/pickle.h"

#include <stdlib.h>
#include <string.h>
#include <zip.h>

enum {
  MAX_ENTRIES = 200 * 1000,
  RATIO = 100,             /* deflate reaches 1000 on zeros; a program's JSON about 30 */
  SMALL = 16 * 1024 * 1024 /* below this any ratio is fine */
};

struct archive {
  struct sw_job *job;
  zip_t *zip;
  zip_int64_t n;
  struct sw_map index; /* full name -> entry */
  const char *root;    /* top folder with '/', "" for the container of torch <= 2.7 */
  bool legacy;
};

static void discard(void *zip)
{
  zip_discard(zip);
}

static bool too_big(struct archive *z, const char *what, uint64_t value, uint64_t limit)
{
  struct sw_fault *f = sw_fault(z->job, SW_LIMIT, "archive: %s is %llu, limit %llu", what, (unsigned long long)value,
                                (unsigned long long)limit);
  f->has_limit = true;
  f->value = (int64_t)value;
  f->limit = (int64_t)limit;
  return false;
}

static bool open_zip(struct archive *z, const char *bytes, size_t len)
{
  zip_error_t error;
  zip_error_init(&error);
  zip_source_t *source = zip_source_buffer_create(bytes, len, 0, &error);
  z->zip = source ? zip_open_from_source(source, ZIP_RDONLY, &error) : NULL;
  if (!z->zip) {
    sw_fault(z->job, SW_INVALID, "archive: %s", zip_error_strerror(&error))->advice =
        "the file may be cut off; copy or export it again";
    zip_source_free(source);
    zip_error_fini(&error);
    return false;
  }
  zip_error_fini(&error);
  sw_arena_defer(z->job->arena, discard, z->zip);
  z->n = zip_get_num_entries(z->zip, 0);
  return true;
}

static bool check_entries(struct archive *z, size_t len)
{
  if (z->n > MAX_ENTRIES)
    return too_big(z, "number of entries", (uint64_t)z->n, MAX_ENTRIES);
  uint64_t packed = 0;
  for (zip_int64_t i = 0; i < z->n; i++) {
    zip_stat_t st;
    if (zip_stat_index(z->zip, (zip_uint64_t)i, 0, &st) || !(st.valid & ZIP_STAT_NAME) ||
        !(st.valid & ZIP_STAT_SIZE) || !(st.valid & ZIP_STAT_COMP_SIZE)) {
      sw_fail(z->job, SW_INVALID, "archive: entry %lld has no name or size", (long long)i);
      return false;
    }
    if (sw_map_set_str(&z->index, st.name, i) >= 0) {
      sw_fail(z->job, SW_INVALID, "archive: two entries are named \"%.200s\"", st.name);
      return false;
    }
    if (__builtin_add_overflow(packed, st.comp_size, &packed) || packed > len) {
      sw_fail(z->job, SW_INVALID, "archive: entries overlap: their packed sizes exceed the file's %zu bytes", len);
      return false;
    }
    if (st.size > SMALL && st.size / RATIO > st.comp_size)
      return too_big(z, sw_arena_printf(z->job->arena, "unpacked size of \"%.200s\"", st.name), st.size,
                     st.comp_size * RATIO);
  }
  return true;
}

/* Entry number of root/name, or -1. */
static int64_t find(const struct archive *z, const char *name)
{
  return sw_map_get_str(&z->index, sw_arena_printf(z->job->arena, "%s%s", z->root, name));
}

/* Contents of an entry, NUL behind the end; NULL after a fault. */
static char *contents(struct archive *z, int64_t i, size_t *len)
{
  zip_stat_t st;
  zip_stat_index(z->zip, (zip_uint64_t)i, 0, &st);
  struct sw_arena *a = z->job->arena;
  char *p = sw_arena_alloc(a, st.size + 1, 1); /* before opening: an arena that is spent leaves nothing open */
  zip_file_t *f = zip_fopen_index(z->zip, (zip_uint64_t)i, 0);
  zip_int64_t got = f ? zip_fread(f, p, st.size) : -1;
  char more;
  bool whole = got >= 0 && (zip_uint64_t)got == st.size && zip_fread(f, &more, 1) == 0; /* the end checks the CRC */
  const char *why = f ? zip_file_strerror(f) : zip_strerror(z->zip);
  if (!whole)
    sw_fail(z->job, SW_INVALID, "archive: entry \"%.200s\" can't be read: %s", st.name,
            got >= 0 && (zip_uint64_t)got != st.size ? "its size is not the stated one" : why);
  if (f)
    zip_fclose(f);
  *len = st.size;
  return whole ? p : NULL;
}

/* Whether root/name holds this text. A missing entry is a fault. */
static const char *text_entry(struct archive *z, const char *name)
{
  size_t len;
  int64_t i = find(z, name);
  if (i >= 0)
    return contents(z, i, &len);
  sw_fail(z->job, SW_INVALID, "archive: there is no entry %s%s", z->root, name);
  return NULL;
}

static bool refuse(struct archive *z, enum sw_rc rc, const char *text)
{
  sw_fail(z->job, rc, "archive: %s", text);
  return false;
}

/* Finds out which container it is. */
static bool recognise(struct archive *z)
{
  z->root = "";
  if (find(z, "serialized_exported_program.json") >= 0)
    return z->legacy = true;
  const char *first = z->n ? zip_get_name(z->zip, 0, 0) : NULL;
  const char *slash = first ? strchr(first, '/') : NULL;
  if (!slash)
    return refuse(z, SW_INVALID, "not an exported program: its entries are not in one folder");
  z->root = sw_arena_strndup(z->job->arena, first, (size_t)(slash - first) + 1);
  if (find(z, "constants.pkl") >= 0)
    return refuse(z, SW_UNSUPPORTED, "this is a TorchScript file; export the model with torch.export.save");
  if (find(z, "data.pkl") >= 0)
    return refuse(z, SW_UNSUPPORTED, "this is a file of torch.save; export the model with torch.export.save");
  const char *format = text_entry(z, "archive_format");
  if (!format)
    return false;
  if (strcmp(format, "pt2"))
    return refuse(z, SW_INVALID, "archive_format is not \"pt2\"");
  const char *version = text_entry(z, "archive_version");
  if (!version)
    return false;
  if (strcmp(version, "0"))
    return refuse(z, SW_UNSUPPORTED,
                  sw_arena_printf(z->job->arena, "archive_version is \"%.40s\", this reader knows 0", version));
  const char *order = find(z, "byteorder") >= 0 ? text_entry(z, "byteorder") : "little";
  if (order && strcmp(order, "little"))
    return refuse(z, SW_UNSUPPORTED,
                  sw_arena_printf(z->job->arena, "byte order \"%.40s\": weights of big-endian machines are not read",
                                  order));
  size_t n = strlen(z->root);
  for (zip_int64_t i = 0; i < z->n; i++) {
    const char *name = zip_get_name(z->zip, (zip_uint64_t)i, 0);
    if (strncmp(name, z->root, n))
      return refuse(z, SW_INVALID, sw_arena_printf(z->job->arena, "entry \"%.200s\" is outside the folder %.200s", name,
                                                   z->root));
  }
  return order != NULL;
}

static bool open_archive(struct archive *z, struct sw_job *job, const char *bytes, size_t len)
{
  *z = (struct archive){.job = job, .index = {.arena = job->arena}};
  return open_zip(z, bytes, len) && check_entries(z, len) && recognise(z);
}

static int by_path(const void *a, const void *b)
{
  return strcmp(((const struct sw_file *)a)->path, ((const struct sw_file *)b)->path);
}

enum sw_rc sw_archive_files(struct sw_job *job, const char *bytes, size_t len, struct sw_files *out)
{
  struct archive z = {.job = job, .index = {.arena = job->arena}};
  bool ok = open_zip(&z, bytes, len) && check_entries(&z, len);
  for (zip_int64_t i = 0; ok && i < z.n; i++) {
    const char *name = zip_get_name(z.zip, (zip_uint64_t)i, 0);
    size_t n, end = strlen(name);
    if (end && name[end - 1] == '/')
      continue; /* a folder */
    const char *p = contents(&z, i, &n);
    if (!p)
      return job->worst;
    sw_files_add(job, out, name, p, n);
  }
  if (ok && out->list.n)
    qsort(out->list.v, (size_t)out->list.n, sizeof *out->list.v, by_path);
  return ok ? SW_OK : job->worst;
}

/* -- programs -- */

static void list_programs(struct archive *z, struct sw_programs *out)
{
  if (z->legacy) {
    *SW_PUSH(z->job->arena, &out->names) = "model";
    return;
  }
  size_t n = strlen(z->root);
  for (zip_int64_t i = 0; i < z->n; i++) {
    const char *name = zip_get_name(z->zip, (zip_uint64_t)i, 0) + n;
    size_t len = strlen(name);
    if (len > 12 && !strncmp(name, "models/", 7) && !strcmp(name + len - 5, ".json"))
      *SW_PUSH(z->job->arena, &out->names) = sw_arena_strndup(z->job->arena, name + 7, len - 12);
  }
  if (!out->names.n)
    sw_fail(z->job, SW_UNSUPPORTED, "archive: it holds no models/*.json; packages of compiled code are not programs");
}

void sw_graph__list_programs(struct sw_job *job, const char *bytes, size_t len, struct sw_programs *out)
{
  struct archive z;
  if (open_archive(&z, job, bytes, len))
    list_programs(&z, out);
}

static const char *pick(struct archive *z, const char *wanted)
{
  struct sw_programs all = {0};
  list_programs(z, &all);
  if (!all.names.n)
    return NULL;
  if (!wanted && all.names.n == 1)
    return all.names.v[0];
  struct sw_buf list = {.arena = z->job->arena};
  for (int i = 0; i < all.names.n; i++) {
    if (wanted && !strcmp(wanted, all.names.v[i]))
      return all.names.v[i];
    if (i < 20)
      sw_buf_printf(&list, "%s%.100s", i ? ", " : "", all.names.v[i]);
  }
  if (wanted)
    sw_fail(z->job, SW_INVALID, "archive: there is no program \"%.100s\"; it holds %s", wanted, sw_buf_text(&list));
  else
    sw_fault(z->job, SW_INVALID, "archive: it holds %d programs: %s", all.names.n, sw_buf_text(&list))->advice =
        "name the one to use";
  return NULL;
}

/* -- payloads -- */

enum { MAX_CONFIG_VALUES = 10 * 1000 * 1000 };

struct record {
  const unsigned char *bytes;
  size_t n_bytes;
};

struct payload_reader {
  struct archive *z;
  struct sw_map by_entry; /* entry -> record: several tensors may share one */
  SW_VEC(struct record) records;
  struct sw_payloads *out;
};

/* Number of the record at root/data/FOLDER/PATH, read once; -1 after a fault. */
static int record_of(struct payload_reader *p, const char *path, const char *name)
{
  int64_t entry = find(p->z, path);
  if (entry < 0) {
    sw_fail(p->z->job, SW_INVALID, "archive: record %.200s of %.200s is missing", path, name);
    return -1;
  }
  int64_t number = sw_map_get(&p->by_entry, &entry, sizeof entry);
  if (number >= 0)
    return (int)number;
  struct record r;
  r.bytes = (const unsigned char *)contents(p->z, entry, &r.n_bytes);
  if (!r.bytes)
    return -1;
  number = p->records.n;
  *SW_PUSH(p->z->job->arena, &p->records) = r;
  sw_map_set(&p->by_entry, &entry, sizeof entry, number);
  return (int)number;
}

static void add_payload(struct payload_reader *p, int which, const char *name, struct sw_payload payload)
{
  if (payload.record >= 0) {
    payload.bytes = p->records.v[payload.record].bytes;
    payload.n_bytes = p->records.v[payload.record].n_bytes;
  }
  sw_map_set_str(&p->out->by_name[which], name, p->out->list.n);
  *SW_PUSH(p->z->job->arena, &p->out->list) = payload;
}

/* [{"as_int": 64}, ..]; always numbers here */
static bool plain_numbers(struct sw_arena *a, const json_t *list, int64_t **out)
{
  size_t n = json_array_size(list);
  *out = SW_NEW_N(a, int64_t, n);
  for (size_t i = 0; i < n; i++) {
    const json_t *v = json_object_get(json_array_get(list, i), "as_int");
    if (!json_is_integer(v))
      return false;
    (*out)[i] = json_integer_value(v);
  }
  return json_is_array(list);
}

static bool config_entry(struct payload_reader *p, const json_t *j, struct sw_payload *out)
{
  const json_t *m = json_object_get(j, "tensor_meta");
  *out = (struct sw_payload){.record = -1};
  out->opaque = json_is_true(json_object_get(j, "use_pickle")) || !json_is_object(m);
  if (out->opaque)
    return true;
  struct sw_arena *a = p->z->job->arena;
  const json_t *offset = json_object_get(json_object_get(m, "storage_offset"), "as_int");
  const json_t *dtype = json_object_get(m, "dtype");
  json_int_t number = json_integer_value(dtype);
  out->dtype = !json_is_integer(dtype) || number < 0 || number > 1000 ? SW_N_DTYPES : sw_dtype_from_number((int)number);
  out->offset = json_integer_value(offset);
  out->rank = (int)json_array_size(json_object_get(m, "sizes"));
  return json_is_integer(offset) && plain_numbers(a, json_object_get(m, "sizes"), &out->size) &&
         plain_numbers(a, json_object_get(m, "strides"), &out->stride) &&
         json_array_size(json_object_get(m, "strides")) == (size_t)out->rank;
}

static void read_config_entry(struct payload_reader *p, const char *folder, int which, const char *name,
                              const json_t *j, const char *where)
{
  struct sw_job *job = p->z->job;
  const json_t *record = sw_json_member(job, j, where, "path_name", JSON_STRING);
  struct sw_payload payload;
  if (!record)
    return;
  if (!config_entry(p, j, &payload)) {
    sw_fault(job, SW_INVALID, "archive: tensor_meta of %.200s is incomplete", name)->source = where;
    return;
  }
  if (!payload.opaque) {
    const char *path = sw_arena_printf(job->arena, "data/%s/%s", folder, json_string_value(record));
    payload.record = record_of(p, path, name);
    if (payload.record < 0)
      return;
  }
  add_payload(p, which, name, payload);
}

/* {"config": {NAME: {"path_name": .., "use_pickle": .., "tensor_meta": ..}}} */
static void read_config(struct payload_reader *p, const char *folder, const char *program, int which)
{
  struct sw_job *job = p->z->job;
  const char *path = sw_arena_printf(job->arena, "data/%s/%s_%s_config.json", folder, program, folder);
  int64_t entry = find(p->z, path);
  if (entry < 0) { /* early archives hold one pickle instead (pt2.md section 13) */
    p->out->unknown = true;
    sw_warn(job, "%s%s is missing: values of weights are unknown", p->z->root, path);
    return;
  }
  size_t len;
  const char *text = contents(p->z, entry, &len);
  struct sw_arena *scratch = sw_arena_new(job->arena, 0);
  const json_t *root = text ? sw_graph__json(job, scratch, path, text, len, MAX_CONFIG_VALUES) : NULL;
  const json_t *config = root ? sw_json_member(job, root, "", "config", JSON_OBJECT) : NULL;
  const char *name;
  json_t *j;
  json_object_foreach((json_t *)(uintptr_t)config, name, j) {
    const char *where = sw_arena_printf(job->arena, "%s:/config/%s", path, name);
    read_config_entry(p, folder, which, name, j, where);
  }
  sw_arena_free(scratch);
}

/* A file of torch.save inside the archive: a zip of its own with data.pkl and records data/KEY. */
static void read_pickled(struct payload_reader *p, const char *path, int which)
{
  struct archive *outer = p->z;
  struct sw_job *job = outer->job;
  int64_t entry = find(outer, path);
  size_t len = 0, n;
  const char *bytes = entry < 0 ? NULL : contents(outer, entry, &len);
  struct archive z = {.job = job, .index = {.arena = job->arena}};
  if (entry >= 0 && !bytes)
    return;
  if (len < 2 || memcmp(bytes, "PK", 2)) {
    p->out->unknown = true;
    sw_warn(job, "%s is no file of torch.save: values of weights are unknown", path);
    return;
  }
  if (!open_zip(&z, bytes, len) || !check_entries(&z, len))
    return;
  const char *first = z.n ? zip_get_name(z.zip, 0, 0) : "";
  z.root = sw_arena_strndup(job->arena, first, strcspn(first, "/") + (strchr(first, '/') != NULL));
  const char *order = find(&z, "byteorder") >= 0 ? text_entry(&z, "byteorder") : "little";
  int64_t pickle = find(&z, "data.pkl");
  if (pickle < 0 || !order || strcmp(order, "little")) {
    refuse(&z, SW_UNSUPPORTED, "weights of an older torch in a form that can't be read (no data.pkl, or big-endian)");
    return;
  }
  struct sw_pickled_dict dict = {0};
  const char *text = contents(&z, pickle, &n);
  if (!text || !sw_pickle__read(job, (const unsigned char *)text, n, &dict))
    return;
  p->z = &z;
  p->by_entry = (struct sw_map){.arena = job->arena};
  for (int i = 0; i < dict.list.n; i++) {
    const struct sw_pickled *t = &dict.list.v[i];
    struct sw_payload payload = {.opaque = !t->key, .dtype = t->dtype, .rank = t->rank, .size = t->size,
                                 .stride = t->stride, .offset = t->offset, .record = -1};
    if (t->key && (payload.record = record_of(p, sw_arena_printf(job->arena, "data/%s", t->key), t->name)) < 0)
      continue;
    add_payload(p, which, t->name, payload);
  }
  p->z = outer;
}

struct sw_graph *sw_graph__read_archive(struct sw_job *job, const char *bytes, size_t len, const char *program)
{
  struct archive z;
  if (!open_archive(&z, job, bytes, len))
    return NULL;
  const char *name = pick(&z, program);
  if (!name)
    return NULL;
  int64_t entry = find(&z, z.legacy ? "serialized_exported_program.json"
                                    : sw_arena_printf(job->arena, "models/%s.json", name));
  size_t n;
  const char *text = contents(&z, entry, &n);
  if (!text)
    return NULL;
  struct sw_payloads payloads = {.by_name = {{.arena = job->arena}, {.arena = job->arena}}};
  struct payload_reader p = {.z = &z, .by_entry = {.arena = job->arena}, .out = &payloads};
  if (z.legacy) {
    read_pickled(&p, "serialized_state_dict.pt", 0);
    read_pickled(&p, "serialized_constants.pt", 1);
  } else {
    read_config(&p, "weights", name, 0);
    read_config(&p, "constants", name, 1);
  }
  struct sw_graph *g = sw_graph__read_program(job, text, n, &payloads);
  if (g)
    g->form = "pt2";
  return g;
}
