#include "compiler/verify/verify.h"

#include "compiler/eval/float.h"
#include "base/files.h"
#include "base/map.h"
#include "compiler/verify/meaning.h"
#include "compiler/verify/runtime.h"

#include <math.h>
#include <string.h>

/* Where expected values come from. */
struct expected {
  struct sw_job *job;
  const struct sw_graph *g;
  bool dl16;
  const struct sw_io *io; /* or NULL: then */
  SW_VEC(struct sim_given) given;
  struct sw_eval *eval;    /* the graph, evaluated in double */
  struct sw_eval *rounded; /* and with every result rounded to its dtype, as PyTorch does: what that alone changes */
};

/* A fixed sequence: floats from -1 to 1 in steps of 1/64, integers and bool 0 and 1, so that they are legal row numbers
 * and masks almost everywhere. */
static struct sw_tensor *made_up(struct sw_arena *a, const struct sw_value *v, int number)
{
  struct sw_tensor *t = SW_NEW(a, struct sw_tensor);
  t->dtype = v->dtype;
  t->rank = v->rank;
  memcpy(t->size, v->size, sizeof *v->size * (size_t)v->rank);
  int64_t n = 1;
  for (int d = v->rank - 1; d >= 0; d--) {
    t->stride[d] = n;
    n *= v->size[d];
  }
  t->cells = SW_NEW(a, struct sw_cells);
  t->cells->dtype = v->dtype;
  t->cells->n = n;
  bool is_float = sw_dtype_is_float(v->dtype);
  if (is_float)
    t->cells->real = SW_NEW_N(a, double, n);
  else
    t->cells->integer = SW_NEW_N(a, int64_t, n);
  for (int64_t i = 0; i < n; i++) {
    uint32_t x = ((uint32_t)i + (uint32_t)number * 7919u) * 2654435761u >> 16;
    if (is_float)
      t->cells->real[i] = sw_round_to(v->dtype, (double)(x % 129) / 64 - 1);
    else
      t->cells->integer[i] = x & 1;
  }
  return t;
}

void sw_verify_make_up_weights(struct sw_job *job, struct sw_graph *g)
{
  for (int i = 0; i < g->inputs.n; i++) {
    struct sw_input *in = &g->inputs.v[i];
    const struct sw_value *v = in->value >= 0 ? &g->values.v[in->value] : NULL;
    if (!v || in->kind == SW_INPUT_USER || in->bytes || v->kind != SW_VALUE_TENSOR)
      continue;
    const struct sw_tensor *t = made_up(job->arena, v, in->record >= 0 ? in->record : i);
    size_t each = (size_t)sw_dtype_bytes(v->dtype);
    unsigned char *bytes = SW_NEW_N(job->arena, unsigned char, (size_t)t->cells->n * each);
    for (int64_t k = 0; k < t->cells->n; k++) {
      uint64_t bits = t->cells->real ? sw_float_encode(v->dtype, t->cells->real[k]) : (uint64_t)t->cells->integer[k];
      for (size_t b = 0; b < each; b++)
        bytes[(size_t)k * each + b] = (unsigned char)(bits >> 8 * b);
    }
    in->bytes = bytes;
    in->n_bytes = (size_t)t->cells->n * each;
    in->stride = NULL;
    in->offset = 0;
    sw_warn(job, "%s has no values in this file: made up", in->target ? in->target : in->name);
  }
}

static void give_inputs(struct expected *x, struct rt *r)
{
  int order = 0;
  for (int i = 0; i < x->g->inputs.n; i++) {
    const struct sw_input *in = &x->g->inputs.v[i];
    if (in->kind != SW_INPUT_USER && in->kind != SW_INPUT_CONSTANT)
      continue;
    const struct sw_tensor *t = NULL;
    for (int k = 0; x->io && k < x->io->values.n; k++) {
      const struct sw_io_value *v = &x->io->values.v[k];
      if (v->role == SW_IO_INPUT && v->order == order && v->value.kind == SW_TENSOR)
        t = &v->value.tensor;
    }
    order++;
    if (in->value < 0 || x->g->values.v[in->value].kind != SW_VALUE_TENSOR)
      continue;
    if (!x->io)
      t = made_up(x->job->arena, &x->g->values.v[in->value], i);
    if (!t)
      continue;
    rt_set_input(r, in->name, t);
    *SW_PUSH(x->job->arena, &x->given) = (struct sim_given){in->value, t};
  }
}

/* What an output of the manifest is in the graph. */
struct meant {
  int order;  /* number of the user output, or -1: */
  int input;  /* the graph input whose new value it is, -1: none is known */
  int output; /* of the graph; -1: none (the training dialect lists no mutations) */
};

/* A mutation names a qualified buffer or an input; where both have the name, the output's own name tells. */
static int mutated_input(const struct sw_graph *g, const struct rt_output *got)
{
  int found = -1;
  for (int i = 0; i < g->inputs.n; i++) {
    const struct sw_input *in = &g->inputs.v[i];
    const char *name = in->kind == SW_INPUT_USER || !in->target ? in->name : in->target;
    if (in->value >= 0 && !strcmp(name, got->mutates) && (found < 0 || !strcmp(in->name, got->name)))
      found = i;
  }
  return found;
}

static struct meant meant(const struct expected *x, const struct rt_output *got, int order)
{
  struct meant m = {got->mutates ? -1 : order, -1, -1};
  for (int i = 0; i < x->g->outputs.n; i++) {
    const struct sw_output *o = &x->g->outputs.v[i];
    bool same = got->mutates ? o->target && !strcmp(o->target, got->mutates) && o->arg.kind == SW_ARG_VALUE &&
                                   !strcmp(x->g->values.v[o->arg.value].name, got->name)
                             : o->kind == SW_OUTPUT_USER && !order--;
    if (same) {
      m.output = i;
      m.input = got->mutates ? o->input : -1;
      return m;
    }
  }
  if (got->mutates)
    m.input = mutated_input(x->g, got);
  return m;
}

static bool from_file(const struct expected *x, struct meant m, struct sw_io_value *want)
{
  const struct sw_input *in = m.input < 0 ? NULL : &x->g->inputs.v[m.input];
  bool is_user = in && in->kind == SW_INPUT_USER;
  for (int i = 0; i < x->io->values.n; i++) {
    const struct sw_io_value *v = &x->io->values.v[i];
    bool same = in ? v->role == (is_user ? SW_IO_INPUT_AFTER : SW_IO_BUFFER_AFTER) &&
                         !strcmp(v->name, is_user || !in->target ? in->name : in->target)
                   : v->role == SW_IO_OUTPUT && v->order == m.order;
    if (same) {
      *want = *v;
      return true;
    }
  }
  return false;
}

/* Where the graph itself leaves its dtype, there is nothing to compare: such an element may be anything. */
static void forgive_overflow(struct expected *x, int value, const struct sw_tensor *got, struct sw_io_value *want)
{
  struct sw_arena *a = x->job->arena;
  const struct sw_evaluated *r = sw_eval_value(x->rounded, value);
  int64_t n, m, k;
  const double *exact = sw_tensor_reals(a, &want->value.tensor, &n), *rounded = sw_tensor_reals(a, &r->tensor, &m);
  const double *found = sw_tensor_reals(a, got, &k);
  double *v = sw_arena_copy(a, exact, (size_t)n, sizeof *v);
  for (int64_t i = 0; i < n && i < m && i < k; i++)
    if (isfinite(exact[i]) && !isfinite(rounded[i]))
      v[i] = found[i];
  struct sw_tensor *t = &want->value.tensor;
  t->cells = sw_arena_copy(a, t->cells, 1, sizeof *t->cells);
  *t->cells = (struct sw_cells){.dtype = t->dtype, .n = n, .real = v};
  t->offset = 0;
  for (int64_t d = t->rank - 1, step = 1; d >= 0; step *= t->size[d--])
    t->stride[d] = step;
}

/* The tolerance is 2 % of the largest value (half precision after a few hundred operations, superdsc.md M12), or four
 * times what rounding to the graph's own dtypes does, where a graph amplifies it. */
static bool from_graph(struct expected *x, struct meant m, const struct sw_tensor *got, struct sw_io_value *want, int *of)
{
  int value = -1;
  if (m.output >= 0 && x->g->outputs.v[m.output].arg.kind == SW_ARG_VALUE)
    value = x->g->outputs.v[m.output].arg.value;
  else if (m.input >= 0)
    value = x->g->inputs.v[m.input].value;
  const struct sw_evaluated *v = value < 0 ? NULL : sw_eval_value(x->eval, value);
  *of = value;
  if (!v || v->kind != SW_TENSOR)
    return false;
  *want = (struct sw_io_value){.role = SW_IO_OUTPUT, .name = "", .value = *v};
  double most = 0;
  int64_t n = v->tensor.cells ? v->tensor.cells->n : 0;
  for (int64_t i = 0; i < n && v->tensor.cells->real; i++)
    if (isfinite(v->tensor.cells->real[i]))
      most = fmax(most, fabs(v->tensor.cells->real[i]));
  double own = sim_distance(x->job->arena, v, sw_eval_value(x->rounded, value));
  want->atol = n && v->tensor.cells->real ? fmax(0.02 * most, (x->dl16 ? 8 : 4) * own) : 0;
  if (n && v->tensor.cells->real)
    forgive_overflow(x, value, got, want);
  return true;
}

static enum sw_rc compare(struct expected *x, struct rt *r, struct sw_verified *out)
{
  int order = 0;
  for (int i = 0; i < rt_n_outputs(r); i++) {
    struct rt_output got;
    SW_TRY(rt_output(r, i, &got));
    struct sw_verified_output *v = SW_PUSH(x->job->arena, &out->outputs);
    v->name = got.name;
    v->mutates = got.mutates;
    v->undefined = got.undefined;
    v->value = -1;
    struct meant m = meant(x, &got, order);
    order += !got.mutates;
    struct sw_io_value want;
    if (!got.is_tensor)
      continue;
    v->is_compared = x->io ? from_file(x, m, &want) : from_graph(x, m, &got.tensor, &want, &v->value);
    if (v->is_compared)
      sw_io_compare(x->job->arena, &want, &(struct sw_evaluated){.kind = SW_TENSOR, .tensor = got.tensor}, &v->difference);
    if ((v->is_compared && !v->difference.agrees) || (v->undefined && sw_tensor_elements(&got.tensor)))
      out->n_wrong++;
  }
  return SW_OK;
}

static enum sw_rc execute(struct expected *x, const struct sim_files *files, struct sw_verified *out, bool *leaves_half)
{
  struct rt *r = rt_open(x->job, files, x->g);
  if (!r)
    return x->job->worst;
  if (x->dl16)
    rt_use_dl16(r);
  x->given.n = 0;
  give_inputs(x, r);
  if (!x->io && !x->eval) {
    SW_TRY(sim_evaluate(x->job, x->g, x->given.v, x->given.n, SW_ROUND_NONE, &x->eval));
    SW_TRY(sim_evaluate(x->job, x->g, x->given.v, x->given.n, SW_ROUND_DTYPE, &x->rounded));
  }
  SW_TRY(rt_run(r));
  *leaves_half = rt_leaves_half(r);
  return compare(x, r, out);
}

/* A program may leave fp16 where its graph does not: the sum of squares inside an rms_norm of rows around 400 is infinite as
 * a half, and every result is 0. The card's own format goes to 8.6e9; what the program computes there decides. */
static enum sw_rc verify(struct sw_job *job, const struct sim_files *files, const struct sw_graph *g,
                         const struct sw_io *io, bool dl16, struct sw_verified *out)
{
  struct expected x = {.job = job, .g = g, .io = io, .dl16 = dl16};
  bool leaves_half = false;
  *out = (struct sw_verified){.in_dl16 = dl16, .values_made_up = !io};
  SW_TRY(execute(&x, files, out, &leaves_half));
  if (out->n_wrong && !io && !dl16 && leaves_half) {
    struct sw_verified own = {.in_dl16 = true, .values_made_up = true};
    x.dl16 = true;
    SW_TRY(execute(&x, files, &own, &leaves_half));
    if (!own.n_wrong)
      *out = own;
  }
  if (out->n_wrong && !io)
    out->doubt = sim_doubt(job, g, x.given.v, x.given.n, out);
  return out->n_wrong ? SW_DIFFERENT : SW_OK;
}

static bool from_disk(void *ctx, struct sw_job *job, const char *name, const char **text, size_t *len)
{
  char *path = sw_arena_printf(job->arena, "%s/%s", (const char *)ctx, name);
  return sw_file_read(job, path, (size_t)1 << 31, text, len) == SW_OK;
}

enum sw_rc sw_verify_directory(struct sw_job *job, const char *dir, const struct sw_graph *g, const struct sw_io *io,
                               bool dl16, struct sw_verified *out)
{
  struct sim_files files = {from_disk, (void *)(intptr_t)dir};
  return verify(job, &files, g, io, dl16, out);
}

struct in_memory {
  const struct sw_files *files;
  struct sw_map by_path;
};

static bool from_memory(void *ctx, struct sw_job *job, const char *name, const char **text, size_t *len)
{
  const struct in_memory *m = ctx;
  int64_t at = sw_map_get_str(&m->by_path, name);
  if (at < 0) {
    sw_fail(job, SW_DIFFERENT, "%s is missing", name);
    return false;
  }
  /* readers of text want a NUL behind it */
  *len = m->files->list.v[at].len;
  *text = sw_arena_strndup(job->arena, m->files->list.v[at].bytes, *len);
  return true;
}

enum sw_rc sw_verify_files(struct sw_job *job, const struct sw_files *files, const struct sw_graph *g,
                           const struct sw_io *io, struct sw_verified *out)
{
  struct in_memory m = {.files = files};
  m.by_path.arena = job->arena;
  for (int i = 0; i < files->list.n; i++)
    sw_map_set_str(&m.by_path, files->list.v[i].path, i);
  struct sim_files source = {from_memory, &m};
  return verify(job, &source, g, io, false, out);
}
