#include "compiler/verify/runtime.h"

#include "base/json.h"
#include "base/map.h"
#include "compiler/verify/host_step.h"
#include "compiler/verify/image.h"
#include "compiler/verify/sizes.h"

#include <inttypes.h>
#include <string.h>

struct buffer {
  const char *name, *kind, *source;
  enum sw_dtype dtype;
  struct image image;  /* layout.rank 0: host memory only */
  const json_t *json;
  bool has_fill;
  bool is_loaded;  /* holds values of its source */
  uint64_t digest; /* of its memory when it was loaded */
  double fill;
  int64_t index_range; /* it holds row numbers below this; 0: it holds none */
  bool index_from_end; /* and the loader adds that to negative ones */
  struct sim_memory *memory;
  struct image_host host;
};

struct rt {
  struct sw_job *job;
  const struct sim_files *files;
  const struct sw_graph *graph;
  json_t *manifest;
  SW_VEC(struct buffer) buffers;
  struct sw_map by_name, inputs;
  SW_VEC(const struct sw_tensor *) input_tensors;
  const char *bundle; /* folder of the one that runs */
  bool is_dl16;
  struct sim_sizes sizes;
  int64_t lx_bytes;
};

static void wrong(struct rt *r, const char *where, const char *what)
{
  sw_fault(r->job, SW_DIFFERENT, "manifest.json: %s: %s", where, what)->source = "manifest.json";
}

static int numbers(const json_t *list, int64_t *out, int most)
{
  int n = (int)json_array_size(list);
  for (int i = 0; i < n && i < most; i++)
    out[i] = json_integer_value(json_array_get(list, (size_t)i));
  return n > most ? -1 : n;
}

static bool read_layout(struct rt *r, struct buffer *b, const json_t *l)
{
  if (!json_is_object(l))
    return true;
  struct image_layout *out = &b->image.layout;
  const char *format = json_string_value(json_object_get(l, "format"));
  const char *arrangement = json_string_value(json_object_get(l, "element_arrangement"));
  out->rank = numbers(json_object_get(l, "device_size"), out->device_size, 16);
  int f = sim_format_find(format ? format : "");
  if (out->rank < 1 || numbers(json_object_get(l, "stride_map"), out->stride_map, 16) != out->rank || f < 0) {
    wrong(r, b->name, "a layout that the simulator does not know");
    return false;
  }
  out->format = (enum sim_format)f;
  for (int i = 0; i < out->rank; i++)
    if (out->device_size[i] < 1 || out->stride_map[i] < -1) {
      wrong(r, b->name, "a layout with a size below 1 or a step below -1");
      return false;
    }
  if (out->device_size[out->rank - 1] * sim_format_bytes(out->format) != 128) {
    wrong(r, b->name, "a stick that is not 128 bytes");
    return false;
  }
  out->arrangement = arrangement ? arrangement : "STANDARD";
  return true;
}

static void read_buffer(struct rt *r, const json_t *j)
{
  const char *name = json_string_value(json_object_get(j, "name"));
  const char *dtype = json_string_value(json_object_get(j, "dtype"));
  const char *kind = json_string_value(json_object_get(j, "kind"));
  enum sw_dtype t = sw_dtype_from_text(dtype ? dtype : "");
  if (!name || !kind || t == SW_N_DTYPES) {
    wrong(r, name ? name : "buffers[]", "name, kind or dtype is missing");
    return;
  }
  if (sw_map_set_str(&r->by_name, name, r->buffers.n) >= 0)
    wrong(r, name, "two buffers of one name");
  struct buffer *b = SW_PUSH(r->job->arena, &r->buffers);
  b->name = name;
  b->json = j;
  b->kind = kind;
  b->dtype = t;
  b->source = json_string_value(json_object_get(j, "source"));
  b->image.rank = numbers(json_object_get(j, "size"), b->image.size, SW_MAX_RANK);
  if (b->image.rank < 0 || numbers(json_object_get(j, "stride"), b->image.stride, SW_MAX_RANK) != b->image.rank)
    wrong(r, name, "size and stride differ in length");
  const json_t *fill = json_object_get(j, "fill");
  b->has_fill = json_is_number(fill);
  b->fill = json_number_value(fill);
  b->index_range = json_integer_value(json_object_get(j, "index_range"));
  b->index_from_end = json_is_true(json_object_get(j, "index_from_end"));
  if (!read_layout(r, b, json_object_get(j, "layout")))
    return;
  int64_t bytes = json_integer_value(json_object_get(j, "bytes"));
  if (b->image.layout.rank && bytes < image_bytes(&b->image))
    wrong(r, name, "its bytes do not hold its layout");
}

struct rt *rt_open(struct sw_job *job, const struct sim_files *files, const struct sw_graph *weights)
{
  struct rt *r = SW_NEW(job->arena, struct rt);
  const char *text;
  size_t len;
  r->job = job;
  r->files = files;
  r->graph = weights;
  r->by_name.arena = r->inputs.arena = job->arena;
  int before = job->faults.n;
  if (!files->read(files->ctx, job, "manifest.json", &text, &len))
    return NULL;
  r->manifest = sw_json_parse(job, "manifest.json", text, len, 100000000);
  if (!r->manifest)
    return NULL;
  const char *format = json_string_value(json_object_get(r->manifest, "format"));
  if (!format || strcmp(format, "stickwright.manifest/1"))
    wrong(r, "format", "stickwright.manifest/1 expected");
  const json_t *lx = json_object_get(r->manifest, "lx_bytes");
  r->lx_bytes = lx ? json_integer_value(lx) : SIM_LX_BYTES;
  if (r->lx_bytes < 0 || r->lx_bytes > SIM_LX_BYTES)
    wrong(r, "lx_bytes", "more than a scratchpad has");
  if (!sim_read_sizes(job, r->manifest, &r->sizes))
    return NULL;
  size_t i;
  json_t *b;
  json_array_foreach (json_object_get(r->manifest, "buffers"), i, b)
    read_buffer(r, b);
  return job->faults.n == before ? r : NULL;
}

void rt_set_input(struct rt *r, const char *name, const struct sw_tensor *t)
{
  sw_map_set_str(&r->inputs, name, r->input_tensors.n);
  *SW_PUSH(r->job->arena, &r->input_tensors) = t;
}

static struct buffer *find(struct rt *r, const char *name)
{
  int64_t at = name ? sw_map_get_str(&r->by_name, name) : -1;
  if (at < 0)
    wrong(r, name ? name : "null", "no such buffer");
  return at < 0 ? NULL : &r->buffers.v[at];
}

/* -- loading -- */

static double element(const struct sw_tensor *t, const int64_t *at)
{
  int64_t i = t->offset;
  for (int d = 0; d < t->rank; d++)
    i += at[d] * t->stride[d];
  return t->cells->real ? t->cells->real[i] : (double)t->cells->integer[i];
}

static bool next(int rank, const int64_t *size, int64_t *at)
{
  for (int d = rank - 1; d >= 0; d--) {
    if (++at[d] < size[d])
      return true;
    at[d] = 0;
  }
  return false;
}

static void make_host(struct rt *r, struct buffer *b)
{
  int64_t n = image_span(&b->image);
  b->host = (struct image_host){n, SW_NEW_N(r->job->arena, double, n), SW_NEW_N(r->job->arena, bool, n)};
  for (int64_t i = 0; i < n; i++)
    b->host.undefined[i] = true;
}

/* Host storage of a buffer from a tensor of the same size; of a dynamic one its first rows. */
static bool fill_host(struct rt *r, struct buffer *b, const struct sw_tensor *t)
{
  int64_t size[SW_MAX_RANK];
  memcpy(size, b->image.size, sizeof size);
  make_host(r, b);
  if (!sim_cut_rows(&r->sizes, b->json, b->image.rank, size)) {
    wrong(r, b->name, "its rows follow no symbol");
    return false;
  }
  if (t->rank != b->image.rank || memcmp(t->size, size, sizeof *t->size * (size_t)t->rank)) {
    wrong(r, b->name, "its size is not that of its source");
    return false;
  }
  int64_t at[SW_MAX_RANK] = {0};
  for (bool more = b->host.n > 0; more; more = next(t->rank, t->size, at)) {
    int64_t i = 0;
    for (int d = 0; d < t->rank; d++)
      i += at[d] * b->image.stride[d];
    double v = element(t, at);
    b->host.v[i] = b->index_from_end && v < 0 ? v + (double)b->index_range : v;
    b->host.undefined[i] = false;
  }
  return true;
}

static bool constant_file(struct rt *r, const struct buffer *b, struct sw_tensor *out)
{
  const char *bytes;
  size_t len;
  int64_t n = 1;
  char *path = sw_arena_printf(r->job->arena, "%s%s", strncmp(b->source, "constants/", 10) ? "constants/" : "", b->source);
  if (!r->files->read(r->files->ctx, r->job, path, &bytes, &len))
    return false;
  for (int d = 0; d < b->image.rank; d++)
    n *= b->image.size[d];
  if (len != (size_t)(n * sw_dtype_bytes(b->dtype))) {
    wrong(r, b->name, "its file has another length than its size");
    return false;
  }
  sw_tensor_from_bytes(r->job->arena, out, b->dtype, b->image.rank, b->image.size, bytes);
  return true;
}

/* A parameter, buffer or lifted constant of the model by its qualified name. */
static bool stored_value(struct rt *r, struct sw_eval *e, const struct buffer *b, struct sw_tensor *out)
{
  for (int i = 0; r->graph && b->source && i < r->graph->inputs.n; i++) {
    const struct sw_input *in = &r->graph->inputs.v[i];
    if (!in->target || strcmp(in->target, b->source))
      continue;
    if (!sw_eval_load(e, i))
      break;
    *out = sw_eval_value(e, in->value)->tensor;
    return true;
  }
  wrong(r, b->name, "the model has no stored values for its source");
  return false;
}

/* FNV-1a of a buffer's bytes, poison apart. */
static uint64_t digest(const struct sim_memory *m)
{
  uint64_t h = UINT64_C(14695981039346656037);
  for (size_t i = 0; i < m->n; i++)
    h = (h ^ (uint64_t)(m->bytes[i] | m->defined[i] << 8)) * UINT64_C(1099511628211);
  return h;
}

/* What was loaded is as it was, but where the manifest says that the run changes it. */
static void check_unchanged(struct rt *r)
{
  size_t k;
  json_t *out;
  json_array_foreach (json_object_get(r->manifest, "outputs"), k, out) {
    const char *name = json_string_value(json_object_get(out, "buffer"));
    int64_t at = json_is_string(json_object_get(out, "mutates")) && name ? sw_map_get_str(&r->by_name, name) : -1;
    if (at >= 0)
      r->buffers.v[at].is_loaded = false;
  }
  for (int i = 0; i < r->buffers.n; i++) {
    struct buffer *b = &r->buffers.v[i];
    if (b->is_loaded && digest(b->memory) != b->digest)
      wrong(r, b->name, "the run changes it, and outputs[] does not say so");
  }
}

static bool load_buffer(struct rt *r, struct sw_eval *e, struct buffer *b)
{
  struct sw_tensor t = {0};
  bool has_value = true;
  if (!strcmp(b->kind, "input")) {
    int64_t at = sw_map_get_str(&r->inputs, b->source ? b->source : "");
    if (at < 0) {
      wrong(r, b->name, "no values were given for this input");
      return false;
    }
    t = *r->input_tensors.v[at];
  } else if (!strcmp(b->kind, "constant") && b->source) {
    if (!constant_file(r, b, &t))
      return false;
  } else if (!strcmp(b->kind, "parameter") || !strcmp(b->kind, "buffer")) {
    if (!stored_value(r, e, b, &t))
      return false;
  } else {
    has_value = false;
  }
  if (has_value && !fill_host(r, b, &t))
    return false;
  if (!has_value)
    make_host(r, b);
  if (!b->image.layout.rank)
    return true;
  b->memory = sim_memory_new(r->job->arena, b->name, (size_t)image_bytes(&b->image), true);
  b->memory->is_dl16 = r->is_dl16;
  if (!has_value && !b->has_fill)
    return true;
  if (!has_value) { /* a scalar constant: every lane */
    struct sim_value v = {b->fill, false};
    int bytes = sim_format_bytes(b->image.layout.format);
    for (int64_t at = 0; at + bytes <= (int64_t)b->memory->n; at += bytes)
      sim_store(b->memory, at, b->image.layout.format, 0, v);
    return true;
  }
  if (!image_upload(r->job->arena, &b->image, &b->host, b->has_fill, b->fill, b->memory)) {
    wrong(r, b->name, "its layout does not hold each of its elements once");
    return false;
  }
  b->is_loaded = true;
  b->digest = digest(b->memory);
  return true;
}

/* -- steps -- */

static bool bundle_file(void *ctx, struct sw_job *job, const char *name, const char **text, size_t *len)
{
  struct rt *r = ctx;
  return r->files->read(r->files->ctx, job, sw_arena_printf(job->arena, "%s/%s", r->bundle, name), text, len);
}

/* Row numbers that name no row are refused: the card would read elsewhere. */
static enum sw_rc check_rows(struct rt *r, struct buffer *b)
{
  if (!b->index_range)
    return SW_OK;
  if (!image_download(r->job->arena, &b->image, b->memory, &b->host)) {
    wrong(r, b->name, "its layout does not hold each of its elements once");
    return SW_DIFFERENT;
  }
  for (int64_t i = 0; i < b->host.n; i++)
    if (!b->host.undefined[i] && (b->host.v[i] < 0 || b->host.v[i] >= (double)b->index_range)) {
      struct sw_fault *f = sw_fault(r->job, SW_INVALID, "%s holds row number %.0f, and there are rows 0 to %" PRId64,
                                    b->source ? b->source : b->name, b->host.v[i], b->index_range - 1);
      f->tensor = b->name;
      f->advice = b->index_from_end ? "row numbers count from 0, negative ones from the end"
                                    : "row numbers count from 0; negative ones are taken for indexing with an input alone";
      return SW_INVALID;
    }
  return SW_OK;
}

static enum sw_rc launch(struct rt *r, const json_t *step)
{
  const json_t *names = json_object_get(step, "args"), *symbols = json_object_get(step, "symbols");
  int n = (int)json_array_size(names), n_args = n + (int)json_object_size(symbols);
  r->bundle = json_string_value(json_object_get(step, "kernel"));
  struct sim_argument *args = SW_NEW_N(r->job->arena, struct sim_argument, n_args);
  for (int i = 0; i < n; i++) {
    struct buffer *b = find(r, json_string_value(json_array_get(names, (size_t)i)));
    if (!b || !b->memory) {
      if (b)
        wrong(r, b->name, "a kernel argument without a device layout");
      return SW_DIFFERENT;
    }
    SW_TRY(check_rows(r, b));
    args[i].memory = b->memory;
  }
  const char *name;
  json_t *symbol;
  json_object_foreach ((json_t *)(intptr_t)symbols, name, symbol) {
    const struct sim_size *size;
    struct sim_argument *arg = &args[n++];
    if (!sim_size_of_symbol(&r->sizes, symbol, &arg->number, &size)) {
      wrong(r, name, "its input and dim show no size");
      return SW_DIFFERENT;
    }
    if (size) {
      arg->step = size->step;
      arg->most = size->max;
    }
  }
  struct sim_files files = {bundle_file, r};
  return sim_run_bundle(r->job, &files, r->lx_bytes, args, n_args);
}

/* A view's buffer with its host storage up to date. */
static struct buffer *fetch(struct rt *r, const json_t *name)
{
  struct buffer *b = find(r, json_string_value(name));
  if (b && b->memory && !image_download(r->job->arena, &b->image, b->memory, &b->host)) {
    wrong(r, b->name, "its layout does not hold each of its elements once");
    return NULL;
  }
  return b;
}

/* size, stride and offset of a view; without them the whole buffer. */
static bool read_view(struct rt *r, const struct buffer *b, const json_t *v, struct sw_tensor *out)
{
  *out = (struct sw_tensor){.dtype = b->dtype, .rank = b->image.rank};
  memcpy(out->size, b->image.size, sizeof out->size);
  memcpy(out->stride, b->image.stride, sizeof out->stride);
  if (json_object_get(v, "size")) {
    out->rank = numbers(json_object_get(v, "size"), out->size, SW_MAX_RANK);
    out->offset = json_integer_value(json_object_get(v, "offset"));
    if (out->rank < 0 || numbers(json_object_get(v, "stride"), out->stride, SW_MAX_RANK) != out->rank) {
      wrong(r, b->name, "a view whose size and stride differ in length");
      return false;
    }
  }
  int64_t last = out->offset, n = 1;
  for (int d = 0; d < out->rank; d++) {
    last += (out->size[d] - 1) * out->stride[d];
    n *= out->size[d];
  }
  if (n && (out->offset < 0 || last >= b->host.n)) {
    wrong(r, b->name, "a view that leaves its buffer");
    return false;
  }
  return true;
}

/* The view's elements as a contiguous tensor of its own. */
static bool gather(struct rt *r, const struct buffer *b, const struct sw_tensor *view, struct sw_tensor *out,
                   int64_t *undefined)
{
  *out = *view;
  int64_t n = 1;
  for (int d = view->rank - 1; d >= 0; d--) {
    out->stride[d] = n;
    n *= view->size[d];
  }
  out->offset = 0;
  out->cells = SW_NEW(r->job->arena, struct sw_cells);
  out->cells->dtype = view->dtype;
  out->cells->n = n;
  bool is_float = sw_dtype_is_float(view->dtype);
  if (is_float)
    out->cells->real = SW_NEW_N(r->job->arena, double, n);
  else
    out->cells->integer = SW_NEW_N(r->job->arena, int64_t, n);
  *undefined = 0;
  int64_t at[SW_MAX_RANK] = {0}, to = 0;
  for (bool more = n > 0; more; more = next(view->rank, view->size, at), to++) {
    int64_t i = view->offset;
    for (int d = 0; d < view->rank; d++)
      i += at[d] * view->stride[d];
    *undefined += b->host.undefined[i];
    if (is_float)
      out->cells->real[to] = b->host.v[i];
    else
      out->cells->integer[to] = view->dtype == SW_BOOL ? b->host.v[i] != 0 : (int64_t)b->host.v[i];
  }
  return true;
}

static bool read_tensor_arg(void *ctx, const json_t *view, struct sw_tensor *out)
{
  struct rt *r = ctx;
  struct sw_tensor v;
  int64_t undefined;
  const struct buffer *b = fetch(r, json_is_string(view) ? view : json_object_get(view, "buffer"));
  if (!b || !read_view(r, b, view, &v) || !gather(r, b, &v, out, &undefined))
    return false;
  if (undefined)
    wrong(r, b->name, "a host step reads elements that nobody wrote");
  return !undefined;
}

static bool shape_of(void *ctx, const json_t *view, struct sw_tensor *out)
{
  struct rt *r = ctx;
  const struct buffer *b = find(r, json_string_value(json_is_string(view) ? view : json_object_get(view, "buffer")));
  return b && read_view(r, b, view, out);
}

static bool write_tensor(void *ctx, const json_t *view, const struct sw_tensor *t)
{
  struct rt *r = ctx;
  struct sw_tensor v;
  struct buffer *b = fetch(r, json_is_string(view) ? view : json_object_get(view, "buffer"));
  if (!b || !read_view(r, b, view, &v))
    return false;
  if (v.rank != t->rank || memcmp(v.size, t->size, sizeof *v.size * (size_t)v.rank)) {
    wrong(r, b->name, "a host step's result has another size than its buffer");
    return false;
  }
  int64_t at[SW_MAX_RANK] = {0}, n = 1;
  for (int d = 0; d < v.rank; d++)
    n *= v.size[d];
  for (bool more = n > 0; more; more = next(v.rank, v.size, at)) {
    int64_t i = v.offset;
    for (int d = 0; d < v.rank; d++)
      i += at[d] * v.stride[d];
    b->host.v[i] = element(t, at);
    b->host.undefined[i] = false;
  }
  return !b->memory || image_upload(r->job->arena, &b->image, &b->host, b->has_fill, b->fill, b->memory);
}

void rt_use_dl16(struct rt *r)
{
  r->is_dl16 = true;
}

bool rt_leaves_half(const struct rt *r)
{
  bool leaves = false;
  for (int i = 0; i < r->buffers.n; i++)
    leaves |= r->buffers.v[i].memory && r->buffers.v[i].memory->leaves_half;
  return leaves;
}

enum sw_rc rt_run(struct rt *r)
{
  for (int i = 0; i < r->buffers.n; i++) {
    const struct buffer *b = &r->buffers.v[i];
    int64_t at = !strcmp(b->kind, "input") && b->source ? sw_map_get_str(&r->inputs, b->source) : -1;
    if (at >= 0 && !sim_size_of_input(r->job, &r->sizes, b->source, r->input_tensors.v[at]))
      return r->job->worst;
  }
  struct sw_eval *e =
      r->graph ? sw_eval_new(r->job, r->graph, SW_ROUND_DTYPE, (size_t)8 << 30) : NULL;
  for (int i = 0; i < r->buffers.n; i++)
    if (!load_buffer(r, e, &r->buffers.v[i]))
      return r->job->worst;
  size_t i;
  json_t *step;
  json_array_foreach (json_object_get(r->manifest, "steps"), i, step) {
    struct host_memory memory = {read_tensor_arg, shape_of, write_tensor, r};
    SW_TRY(json_object_get(step, "kernel") ? launch(r, step) : sim_host_step(r->job, step, &memory));
  }
  check_unchanged(r);
  return r->job->worst;
}

int rt_n_outputs(const struct rt *r)
{
  return (int)json_array_size(json_object_get(r->manifest, "outputs"));
}

enum sw_rc rt_output(struct rt *r, int i, struct rt_output *out)
{
  const json_t *j = json_array_get(json_object_get(r->manifest, "outputs"), (size_t)i);
  *out = (struct rt_output){.name = json_string_value(json_object_get(j, "name")),
                            .mutates = json_string_value(json_object_get(j, "mutates"))};
  const json_t *name = json_object_get(j, "buffer");
  if (!name)
    return SW_OK;
  struct sw_tensor v;
  const struct buffer *b = fetch(r, name);
  if (!b || !read_view(r, b, j, &v))
    return SW_DIFFERENT;
  if (!sim_cut_rows(&r->sizes, j, v.rank, v.size)) {
    wrong(r, out->name, "its rows follow no symbol");
    return SW_DIFFERENT;
  }
  const json_t *rows = json_object_get(j, "rows"), *of = json_object_get(b->json, "rows");
  if (rows && json_equal(json_object_get(j, "size"), json_object_get(b->json, "size")) ? !json_equal(rows, of) : rows && !of) {
    wrong(r, out->name, "its rows are not those of its buffer");
    return SW_DIFFERENT;
  }
  const char *dtype = json_string_value(json_object_get(j, "dtype"));
  if (dtype && sw_dtype_from_text(dtype) != SW_N_DTYPES)
    v.dtype = sw_dtype_from_text(dtype);
  out->is_tensor = true;
  return gather(r, b, &v, &out->tensor, &out->undefined) ? SW_OK : SW_DIFFERENT;
}
