#include "compiler/emit/emit.h"

#include "base/json.h"
#include "base/map.h"
#include "base/number.h"
#include "compiler/eval/eval.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

/* manifest.json: the buffers that outlive a kernel, the kernels and host steps in order, and the outputs; constants/ has
 * the elements of what we folded. Reference: design, "A result directory". */

struct manifest {
  struct sw_job *job;
  const struct sw_program *p;
  const struct sw_plan *plan;
  const struct sw_kernel_specs *kernels;
  struct sw_files *files;
  struct sw_jw w;
  bool *used; /* storages that appear */
  int64_t *index_range; /* per storage: what its row numbers stay below, 0: it holds none */
  bool *is_number;      /* per storage: read as something else than row numbers that may count from the end */
  int n_constants;
};

/* -- which buffers there are -- */

static void use_view(struct manifest *m, const struct sw_view *v)
{
  if (v->storage >= 0)
    m->used[v->storage] = true;
}

static void use_arg(struct manifest *m, const struct sw_host_arg *a)
{
  if (a->kind == SW_HOST_VIEW)
    use_view(m, &a->view);
  for (int i = 0; a->kind == SW_HOST_LIST && i < a->n_list; i++)
    use_arg(m, &a->list[i]);
}

static void find_used(struct manifest *m)
{
  const struct sw_program *p = m->p;
  for (int k = 0; k < m->plan->kernels.n; k++)
    for (int i = 0; i < m->kernels[k].args.n; i++)
      m->used[m->kernels[k].args.v[i]] = true;
  for (int i = 0; i < p->host_steps.n; i++) {
    const struct sw_host_step *h = &p->host_steps.v[i];
    for (int j = 0; j < h->args.n; j++)
      use_arg(m, &h->args.v[j]);
    for (int j = 0; j < h->results.n; j++)
      use_view(m, &h->results.v[j]);
  }
  for (int i = 0; i < p->outputs.n; i++)
    if (p->outputs.v[i].is_tensor)
      use_view(m, &p->outputs.v[i].view);
  for (int i = 0; i < p->storages.n; i++)
    if (p->storages.v[i].kind == SW_STORAGE_INPUT)
      m->used[i] = true;
}

/* -- row numbers -- */

/* The end of two tables is not one place. */
static void limit_index(struct manifest *m, int storage, int64_t n)
{
  m->is_number[storage] |= n && m->index_range[storage] && n != m->index_range[storage];
  if (n && (!m->index_range[storage] || n < m->index_range[storage]))
    m->index_range[storage] = n;
}

static void find_index_of(struct manifest *m, const struct sw_op *op, const struct sw_access *x)
{
  if (x->index_input >= 0)
    limit_index(m, op->in[x->index_input].storage, x->index_range);
}

static void use_as_numbers(struct manifest *m, const struct sw_host_arg *a)
{
  if (a->kind == SW_HOST_VIEW && a->view.storage >= 0)
    m->is_number[a->view.storage] = true;
  for (int i = 0; a->kind == SW_HOST_LIST && i < a->n_list; i++)
    use_as_numbers(m, &a->list[i]);
}

/* Of the ops with row numbers only indexing takes negative ones: x[-1] is the last row. */
static bool counts_from_end(const struct manifest *m, const struct sw_op *op)
{
  for (int i = 0; i < op->nodes.n; i++) {
    const char *target = m->p->graph->nodes.v[op->nodes.v[i]].target;
    if (!strncmp(target, "aten.index.", 11) || !strncmp(target, "aten.index_put", 14))
      return true;
  }
  return false;
}

static bool is_row_number(const struct sw_op *op, int input)
{
  bool yes = op->out.index_input == input;
  for (int k = 0; k < op->n_in; k++)
    yes |= op->in[k].index_input == input;
  return yes;
}

/* How many rows there are for the row numbers in a storage, and whether they may be negative; backwards, through their
 * copies. */
static void find_index_ranges(struct manifest *m)
{
  for (int i = m->p->steps.n - 1; i >= 0; i--) {
    struct sw_step step = m->p->steps.v[i];
    for (int k = 0; step.is_host && k < m->p->host_steps.v[step.index].args.n; k++)
      use_as_numbers(m, &m->p->host_steps.v[step.index].args.v[k]);
    if (step.is_host)
      continue;
    const struct sw_op *op = &m->p->ops.v[step.index];
    find_index_of(m, op, &op->out);
    for (int k = 0; k < op->n_in; k++) {
      find_index_of(m, op, &op->in[k]);
      bool is_copied = op->op == SW_OP_IDENTITY && op->n_in == 1 && m->index_range[op->out.storage];
      m->is_number[op->in[k].storage] |= is_copied             ? m->is_number[op->out.storage]
                                         : is_row_number(op, k) ? !counts_from_end(m, op)
                                                                : true;
    }
    if (op->op == SW_OP_IDENTITY && op->n_in == 1)
      limit_index(m, op->in[0].storage, m->index_range[op->out.storage]);
  }
  for (int i = 0; i < m->p->outputs.n; i++)
    if (m->p->outputs.v[i].is_tensor)
      m->is_number[m->p->outputs.v[i].view.storage] = true;
}

/* -- buffers -- */

static const char *kind_of(const struct sw_storage *s)
{
  switch (s->kind) {
  case SW_STORAGE_INPUT:
    return "input";
  case SW_STORAGE_PARAMETER:
    return "parameter";
  case SW_STORAGE_BUFFER:
    return "buffer";
  case SW_STORAGE_CONSTANT:
  case SW_STORAGE_SCALAR:
    return "constant";
  case SW_STORAGE_TEMPORARY:
    break;
  }
  return s->is_output ? "output" : "intermediate";
}

static const char *add_constant_file(struct manifest *m, const struct sw_storage *s)
{
  const void *bytes = s->data;
  size_t n = s->n_bytes;
  if (s->kind == SW_STORAGE_SCALAR) {
    struct sw_cells cells = {.dtype = s->dtype, .n = 1, .readers = 1};
    double real[2] = {s->fill, 0};
    int64_t integer = sw_whole_of_real(s->fill);
    cells.real = sw_dtype_is_float(s->dtype) || sw_dtype_is_complex(s->dtype) ? real : NULL;
    cells.integer = cells.real ? NULL : &integer;
    struct sw_tensor t = {.dtype = s->dtype, .cells = &cells};
    bytes = sw_tensor_bytes(m->job->arena, &t, &n);
  }
  char *name = sw_arena_printf(m->job->arena, "constants/%d_%.60s.bin", m->n_constants++, s->name);
  for (char *c = name + strlen("constants/"); *c; c++)
    if (!isalnum((unsigned char)*c) && !strchr("._-", *c))
      *c = '_';
  sw_files_add(m->job, m->files, name, bytes, n);
  return name;
}

static const char *source_of(struct manifest *m, const struct sw_storage *s)
{
  if (s->kind == SW_STORAGE_CONSTANT || s->kind == SW_STORAGE_SCALAR)
    return add_constant_file(m, s);
  if (s->input < 0 || s->kind == SW_STORAGE_TEMPORARY)
    return NULL;
  const struct sw_input *in = &m->p->graph->inputs.v[s->input];
  return s->kind == SW_STORAGE_INPUT || !in->target ? in->name : in->target;
}

static void write_fill(struct sw_jw *w, const struct sw_storage *s)
{
  sw_jw_key(w, "fill");
  if (s->has_pad_fill && s->kind != SW_STORAGE_TEMPORARY)
    sw_jw_real(w, s->pad_fill);
  else
    sw_jw_null(w);
}

/* Which dim of a buffer or output holds data in its first rows only, when a size below the maximum is run. */
static void write_rows(struct manifest *m, const struct sw_storage *s, int dim)
{
  if (!s->dynamic)
    return;
  sw_jw_key(&m->w, "rows");
  sw_jw_object(&m->w);
  sw_jw_kstr(&m->w, "symbol", m->p->graph->dims.v[s->dynamic - 1].range.symbol);
  sw_jw_kint(&m->w, "dim", dim);
  sw_jw_end_object(&m->w);
}

static void write_buffer(struct manifest *m, const struct sw_storage *s)
{
  struct sw_jw *w = &m->w;
  const struct sw_layout *l = s->host_only ? NULL : sw_emit_layout(m->job->arena, s);
  sw_jw_object(w);
  sw_jw_kstr(w, "name", s->name);
  sw_jw_kstr(w, "kind", kind_of(s));
  sw_jw_kstr(w, "source", source_of(m, s));
  sw_jw_kstr(w, "dtype", sw_dtype_torch(s->dtype));
  sw_jw_kints(w, "size", s->size, s->rank);
  sw_jw_kints(w, "stride", s->stride, s->rank);
  sw_jw_key(w, "layout");
  sw_layout_json(w, l);
  write_fill(w, s);
  write_rows(m, s, s->rows);
  int64_t range = m->index_range[s - m->p->storages.v];
  if (range)
    sw_jw_kint(w, "index_range", range);
  if (range && s->kind == SW_STORAGE_INPUT && !m->is_number[s - m->p->storages.v])
    sw_jw_kbool(w, "index_from_end", true);
  sw_jw_kint(w, "bytes", l ? sw_layout_bytes(l) : sw_storage_elements(s) * sw_dtype_bytes(s->dtype));
  sw_jw_end_object(w);
}

/* -- sizes -- */

/* Dynamic dims of which a run may have any of these sizes. */
static void write_symbols(struct manifest *m)
{
  const struct sw_graph *g = m->p->graph;
  struct sw_jw *w = &m->w;
  sw_jw_key(w, "symbols");
  sw_jw_array(w);
  for (int i = 0; i < g->dims.n; i++) {
    const struct sw_dim *d = &g->dims.v[i];
    if (!d->serves_less)
      continue;
    sw_jw_object(w);
    sw_jw_kstr(w, "name", d->range.symbol);
    sw_jw_kint(w, "min", d->least);
    sw_jw_kint(w, "max", d->value);
    sw_jw_kint(w, "step", d->step);
    sw_jw_kstr(w, "input", g->inputs.v[d->input].name);
    sw_jw_kint(w, "dim", d->in_dim);
    sw_jw_end_object(w);
  }
  sw_jw_end_array(w);
}

/* -- steps -- */

static bool is_whole(const struct sw_storage *s, const struct sw_view *v)
{
  size_t n = (size_t)v->rank * sizeof *v->size;
  return !v->offset && v->rank == s->rank && !memcmp(v->size, s->size, n) && !memcmp(v->stride, s->stride, n);
}

static void write_view_keys(struct manifest *m, const struct sw_view *v)
{
  sw_jw_kints(&m->w, "size", v->size, v->rank);
  sw_jw_kints(&m->w, "stride", v->stride, v->rank);
  sw_jw_kint(&m->w, "offset", v->offset);
}

static void write_view(struct manifest *m, const struct sw_view *v)
{
  if (v->storage < 0) {
    sw_jw_null(&m->w);
    return;
  }
  const struct sw_storage *s = &m->p->storages.v[v->storage];
  sw_jw_object(&m->w);
  sw_jw_kstr(&m->w, "buffer", s->name);
  if (!is_whole(s, v))
    write_view_keys(m, v);
  sw_jw_end_object(&m->w);
}

static void write_tagged(struct sw_jw *w, const char *key, const char *text)
{
  sw_jw_object(w);
  sw_jw_kstr(w, key, text);
  sw_jw_end_object(w);
}

/* Device, layout and memory format have no meaning here: null as a positional argument, left out as a keyword. */
static bool is_placement(const struct sw_arg *a)
{
  return a->kind == SW_ARG_DEVICE || a->kind == SW_ARG_LAYOUT || a->kind == SW_ARG_MEMORY_FORMAT;
}

static void write_literal(struct sw_jw *w, const struct sw_arg *a)
{
  switch (a->kind) {
  case SW_ARG_INT:
    sw_jw_int(w, a->i);
    break;
  case SW_ARG_REAL:
    if (isfinite(a->r))
      sw_jw_real(w, a->r);
    else
      write_tagged(w, "float", isnan(a->r) ? "nan" : a->r > 0 ? "inf" : "-inf");
    break;
  case SW_ARG_BOOL:
    sw_jw_bool(w, a->i != 0);
    break;
  case SW_ARG_STR:
    sw_jw_str(w, a->s);
    break;
  case SW_ARG_DTYPE:
    write_tagged(w, "dtype", sw_dtype_torch(a->dtype));
    break;
  case SW_ARG_LIST:
    sw_jw_array(w);
    for (int i = 0; i < a->list.n; i++)
      write_literal(w, &a->list.v[i]);
    sw_jw_end_array(w);
    break;
  case SW_ARG_NONE:
  case SW_ARG_VALUE:
  case SW_ARG_LAYOUT:
  case SW_ARG_MEMORY_FORMAT:
  case SW_ARG_DEVICE:
  case SW_ARG_GRAPH:
    sw_jw_null(w);
    break;
  }
}

static void write_arg(struct manifest *m, const struct sw_host_arg *a)
{
  if (a->kind == SW_HOST_VIEW) {
    write_view(m, &a->view);
  } else if (a->kind == SW_HOST_LITERAL) {
    write_literal(&m->w, &a->literal);
  } else if (a->kind == SW_HOST_LIST) {
    sw_jw_array(&m->w);
    for (int i = 0; i < a->n_list; i++)
      write_arg(m, &a->list[i]);
    sw_jw_end_array(&m->w);
  } else {
    sw_jw_null(&m->w);
  }
}

static void write_host_step(struct manifest *m, const struct sw_host_step *h)
{
  struct sw_jw *w = &m->w;
  sw_jw_object(w);
  sw_jw_kstr(w, "host", h->target);
  sw_jw_key(w, "inputs");
  sw_jw_array(w);
  for (int i = 0; i < h->args.n; i++)
    if (!h->args.v[i].name)
      write_arg(m, &h->args.v[i]);
  sw_jw_end_array(w);
  sw_jw_key(w, "kwargs");
  sw_jw_object(w);
  for (int i = 0; i < h->args.n; i++) {
    const struct sw_host_arg *a = &h->args.v[i];
    if (!a->name || (a->kind == SW_HOST_LITERAL && is_placement(&a->literal)))
      continue;
    sw_jw_key(w, a->name);
    write_arg(m, a);
  }
  sw_jw_end_object(w);
  sw_jw_key(w, "outputs");
  sw_jw_array(w);
  for (int i = 0; i < h->results.n; i++)
    write_view(m, &h->results.v[i]);
  sw_jw_end_array(w);
  sw_jw_kstr(w, "why", h->why);
  sw_jw_end_object(w);
}

/* Dynamic sizes that a kernel takes behind its arguments, named as in bundle.mlir (superdsc.md 10.2): after the op that
 * uses the size first. */
static void write_kernel_symbols(struct manifest *m, const struct sw_opspecs *specs)
{
  struct sw_arena *a = sw_arena_new(m->job->arena, 0);
  struct sw_map seen = {.arena = a};
  for (int i = 0; i < specs->specs.n; i++) {
    const struct sw_spec *s = specs->specs.v[i];
    int ordinal = 0;
    for (int k = 0; k < s->space.n; k++) {
      if (!s->space.v[k].dynamic || sw_map_set_str(&seen, s->space.v[k].dynamic, 1) >= 0)
        continue;
      const struct sw_graph *g = m->p->graph;
      int d = 0;
      while (strcmp(g->dims.v[d].range.symbol, s->space.v[k].dynamic))
        d++;
      sw_jw_key(&m->w, sw_arena_printf(a, "sym_%d_%d", i, ++ordinal));
      sw_jw_object(&m->w);
      sw_jw_kstr(&m->w, "input", g->inputs.v[g->dims.v[d].input].name);
      sw_jw_kint(&m->w, "dim", g->dims.v[d].in_dim);
      sw_jw_end_object(&m->w);
    }
  }
  sw_arena_free(a);
}

static void write_launch(struct manifest *m, int kernel)
{
  struct sw_jw *w = &m->w;
  const struct sw_kernel_specs *k = &m->kernels[kernel];
  sw_jw_object(w);
  sw_jw_kstr(w, "kernel", sw_arena_printf(m->job->arena, "bundle_%d", kernel));
  sw_jw_key(w, "args");
  sw_jw_array(w);
  for (int i = 0; i < k->args.n; i++)
    sw_jw_str(w, m->p->storages.v[k->args.v[i]].name);
  sw_jw_end_array(w);
  sw_jw_key(w, "symbols");
  sw_jw_object(w);
  write_kernel_symbols(m, &k->specs);
  sw_jw_end_object(w);
  sw_jw_end_object(w);
}

/* A kernel is launched where its first op stands; the plan keeps its ops together. */
static enum sw_rc write_steps(struct manifest *m)
{
  int launched = 0, running = -1;
  sw_jw_key(&m->w, "steps");
  sw_jw_array(&m->w);
  for (int i = 0; i < m->p->steps.n; i++) {
    const struct sw_step *s = &m->p->steps.v[i];
    if (s->is_host) {
      running = -1;
      write_host_step(m, &m->p->host_steps.v[s->index]);
      continue;
    }
    int kernel = m->p->ops.v[s->index].plan->kernel;
    if (kernel == running)
      continue;
    if (kernel != launched)
      return sw_fail(m->job, SW_INTERNAL, "op %s belongs to kernel %d, which is not the next one",
                     m->p->ops.v[s->index].name, kernel);
    write_launch(m, kernel);
    running = launched++;
  }
  sw_jw_end_array(&m->w);
  return SW_OK;
}

static void write_outputs(struct manifest *m)
{
  struct sw_jw *w = &m->w;
  sw_jw_key(w, "outputs");
  sw_jw_array(w);
  for (int i = 0; i < m->p->outputs.n; i++) {
    const struct sw_program_output *o = &m->p->outputs.v[i];
    sw_jw_object(w);
    sw_jw_kstr(w, "name", o->name);
    if (!o->is_tensor) {
      sw_jw_key(w, "value");
      write_literal(w, &o->literal);
    } else {
      sw_jw_kstr(w, "buffer", m->p->storages.v[o->view.storage].name);
      sw_jw_kstr(w, "dtype", sw_dtype_torch(o->dtype));
      write_view_keys(m, &o->view);
      int dim = 0;
      while (dim < o->view.rank - 1 && o->view.size[dim] == 1)
        dim++;
      write_rows(m, &m->p->storages.v[o->view.storage], dim);
      sw_jw_kstr(w, "mutates", o->mutates);
    }
    sw_jw_end_object(w);
  }
  sw_jw_end_array(w);
}

enum sw_rc sw_write_manifest(struct sw_job *job, int64_t lx_bytes, const struct sw_program *p, const struct sw_plan *plan,
                             const struct sw_kernel_specs *kernels, struct sw_files *out)
{
  struct sw_buf text = {.arena = job->arena};
  struct manifest m = {.job = job,
                       .p = p,
                       .plan = plan,
                       .kernels = kernels,
                       .files = out,
                       .w = {.out = &text, .indent = 1},
                       .used = SW_NEW_N(job->arena, bool, p->storages.n),
                       .index_range = SW_NEW_N(job->arena, int64_t, p->storages.n),
                       .is_number = SW_NEW_N(job->arena, bool, p->storages.n)};
  find_used(&m);
  find_index_ranges(&m);
  sw_jw_object(&m.w);
  sw_jw_kstr(&m.w, "format", "stickwright.manifest/1");
  sw_jw_kint(&m.w, "lx_bytes", lx_bytes);
  write_symbols(&m);
  sw_jw_key(&m.w, "buffers");
  sw_jw_array(&m.w);
  for (int i = 0; i < p->storages.n; i++)
    if (m.used[i])
      write_buffer(&m, &p->storages.v[i]);
  sw_jw_end_array(&m.w);
  SW_TRY(write_steps(&m));
  write_outputs(&m);
  sw_jw_end_object(&m.w);
  sw_buf_puts(&text, "\n");
  sw_files_add(job, out, "manifest.json", text.p, text.n);
  return SW_OK;
}

/* -- weights.json -- */

/* The dim order that gives the layout from the parameter's own size and stride, if one does: what a runtime that knows
 * dim orders only can use. *n is 0 when there is none. */
static void find_order(const struct sw_storage *s, int *order, int *n, unsigned taken)
{
  struct sw_layout l;
  if (*n == s->rank) {
    if (!sw_layout_make(&l, s->layout->format, s->layout->arrangement, s->rank, s->size, s->stride, order, *n) ||
        !sw_layout_equal(&l, s->layout))
      *n = -1;
    return;
  }
  int at = *n;
  for (int d = 0; d < s->rank; d++) {
    if (taken & 1u << d)
      continue;
    order[at] = d;
    *n = at + 1;
    find_order(s, order, n, taken | 1u << d);
    if (*n > 0)
      return;
  }
  *n = -1;
}

void sw_write_weights(struct sw_job *job, const struct sw_program *p, struct sw_files *out)
{
  struct sw_buf text = {.arena = job->arena};
  struct sw_jw w = {.out = &text, .indent = 1};
  sw_jw_object(&w);
  sw_jw_kstr(&w, "format", "stickwright.weights/1");
  sw_jw_key(&w, "weights");
  sw_jw_array(&w);
  for (int i = 0; i < p->storages.n; i++) {
    const struct sw_storage *s = &p->storages.v[i];
    if ((s->kind != SW_STORAGE_PARAMETER && s->kind != SW_STORAGE_BUFFER) || s->input < 0 || !s->layout)
      continue;
    const struct sw_input *in = &p->graph->inputs.v[s->input];
    int order[SW_MAX_RANK], n = 0;
    if (s->rank > 0 && s->rank <= 6)
      find_order(s, order, &n, 0);
    sw_jw_object(&w);
    sw_jw_kstr(&w, "name", in->target ? in->target : in->name);
    sw_jw_kstr(&w, "buffer", s->name);
    sw_jw_kstr(&w, "dtype", sw_dtype_torch(s->dtype));
    sw_jw_kints(&w, "size", s->size, s->rank);
    sw_jw_kints(&w, "stride", s->stride, s->rank);
    sw_jw_key(&w, "layout");
    sw_layout_json(&w, s->layout);
    sw_jw_key(&w, "dim_order");
    if (n > 0) {
      sw_jw_array(&w);
      for (int d = 0; d < n; d++)
        sw_jw_int(&w, order[d]);
      sw_jw_end_array(&w);
    } else {
      sw_jw_null(&w);
    }
    write_fill(&w, s);
    sw_jw_end_object(&w);
  }
  sw_jw_end_array(&w);
  sw_jw_end_object(&w);
  sw_buf_puts(&text, "\n");
  sw_files_add(job, out, "weights.json", text.p, text.n);
}
