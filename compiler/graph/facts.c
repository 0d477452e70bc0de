/* What the reader saw, for `inspect`. */
#include "base/json.h"
#include "compiler/graph/graph.h"

#include <openssl/evp.h>
#include <string.h>

static void drop_context(void *p)
{
  EVP_MD_CTX_free(p);
}

/* Adds the elements of dims d.. in row-major order. `run`: so many bytes at a time lie in row-major order already. */
static bool hash_dims(EVP_MD_CTX *c, const struct sw_input *in, const struct sw_value *v, int d, int n_dims,
                      const unsigned char *at, size_t run)
{
  if (d == n_dims)
    return EVP_DigestUpdate(c, at, run);
  int64_t step = in->stride[d] * sw_dtype_bytes(v->dtype);
  for (int64_t i = 0; i < v->size[d]; i++)
    if (!hash_dims(c, in, v, d + 1, n_dims, at + i * step, run))
      return false;
  return true;
}

/* SHA-256 of a stored tensor's elements in row-major order, whatever its strides are. */
static const char *hash_values(struct sw_job *job, const struct sw_input *in, const struct sw_value *v)
{
  struct sw_arena *scratch = sw_arena_new(job->arena, 0);
  EVP_MD_CTX *c = EVP_MD_CTX_new();
  if (c)
    sw_arena_defer(scratch, drop_context, c);
  int bytes = sw_dtype_bytes(v->dtype), n_dims = v->rank;
  int64_t dense = 1;
  while (n_dims > 0 && (v->size[n_dims - 1] == 1 || in->stride[n_dims - 1] == dense))
    dense *= v->size[--n_dims];
  unsigned char hash[EVP_MAX_MD_SIZE];
  unsigned int n = 0;
  bool good = c && EVP_DigestInit_ex(c, EVP_sha256(), NULL) &&
              (!sw_value_elements(v) ||
               hash_dims(c, in, v, 0, n_dims, in->bytes + in->offset * bytes, (size_t)(dense * bytes))) &&
              EVP_DigestFinal_ex(c, hash, &n);
  sw_arena_free(scratch);
  if (!good)
    return NULL;
  char *text = sw_arena_alloc(job->arena, 2 * (size_t)n + 1, 1);
  for (unsigned int i = 0; i < n; i++) {
    text[2 * i] = "0123456789abcdef"[hash[i] >> 4];
    text[2 * i + 1] = "0123456789abcdef"[hash[i] & 15];
  }
  return text;
}

static void write_dims(struct sw_jw *w, const char *key, int rank, const int64_t *v, const char *const *exprs)
{
  if (!exprs) {
    sw_jw_kints(w, key, v, rank);
    return;
  }
  sw_jw_key(w, key);
  sw_jw_array(w);
  for (int d = 0; d < rank; d++) {
    if (exprs[d])
      sw_jw_str(w, exprs[d]);
    else
      sw_jw_int(w, v[d]);
  }
  sw_jw_end_array(w);
}

static void write_value(struct sw_jw *w, const struct sw_value *v)
{
  static const char *const numbers[] = {
      [SW_VALUE_SYM_INT] = "SymInt", [SW_VALUE_SYM_BOOL] = "SymBool", [SW_VALUE_SYM_FLOAT] = "SymFloat"};
  if (v->kind != SW_VALUE_TENSOR) {
    sw_jw_kstr(w, "dtype", numbers[v->kind]);
    if (v->expr)
      sw_jw_kstr(w, "expr", v->expr);
    else
      sw_jw_kint(w, "value", v->hint);
    return;
  }
  sw_jw_kstr(w, "dtype", sw_dtype_torch(v->dtype));
  write_dims(w, "shape", v->rank, v->size, v->size_expr);
  write_dims(w, "strides", v->rank, v->stride, v->stride_expr);
}

/* A Python number, bool, string or None. */
static void write_literal(struct sw_jw *w, const struct sw_arg *a)
{
  sw_jw_key(w, "value");
  switch (a->kind) {
  case SW_ARG_INT:
    sw_jw_int(w, a->i);
    break;
  case SW_ARG_REAL:
    sw_jw_real(w, a->r);
    break;
  case SW_ARG_BOOL:
    sw_jw_bool(w, a->i);
    break;
  case SW_ARG_STR:
  case SW_ARG_DEVICE:
    sw_jw_str(w, a->s);
    break;
  case SW_ARG_DTYPE:
    sw_jw_str(w, sw_dtype_torch(a->dtype));
    break;
  default:
    sw_jw_null(w);
    break;
  }
}

static void write_inputs(struct sw_job *job, const struct sw_graph *g, struct sw_jw *w)
{
  static const char *const kinds[] = {[SW_INPUT_PARAMETER] = "parameter",
                                      [SW_INPUT_BUFFER] = "buffer",
                                      [SW_INPUT_TENSOR_CONSTANT] = "constant_tensor",
                                      [SW_INPUT_USER] = "user_input",
                                      [SW_INPUT_CONSTANT] = "constant_input"};
  sw_jw_key(w, "inputs");
  sw_jw_array(w);
  for (int i = 0; i < g->inputs.n; i++) {
    const struct sw_input *in = &g->inputs.v[i];
    sw_jw_object(w);
    sw_jw_kstr(w, "name", in->name);
    sw_jw_kstr(w, "kind", kinds[in->kind]);
    if (in->value < 0)
      write_literal(w, &in->literal);
    else
      write_value(w, &g->values.v[in->value]);
    if (in->target)
      sw_jw_kstr(w, "target", in->target);
    if (in->kind == SW_INPUT_BUFFER)
      sw_jw_kbool(w, "persistent", in->persistent);
    if (in->bytes)
      sw_jw_kstr(w, "sha256", hash_values(job, in, &g->values.v[in->value]));
    sw_jw_end_object(w);
  }
  sw_jw_end_array(w);
}

static void write_outputs(const struct sw_graph *g, struct sw_jw *w, bool mutations)
{
  sw_jw_key(w, mutations ? "mutations" : "outputs");
  sw_jw_array(w);
  for (int i = 0; i < g->outputs.n; i++) {
    const struct sw_output *o = &g->outputs.v[i];
    if ((o->kind != SW_OUTPUT_USER) != mutations)
      continue;
    const struct sw_value *v = o->arg.kind == SW_ARG_VALUE ? &g->values.v[o->arg.value] : NULL;
    sw_jw_object(w);
    if (mutations) {
      sw_jw_kstr(w, "kind", o->kind == SW_OUTPUT_BUFFER_MUTATION ? "buffer_mutation" : "user_input_mutation");
      sw_jw_kstr(w, "target", o->target);
    }
    sw_jw_kstr(w, "name", v ? v->name : "");
    if (v)
      write_value(w, v);
    else
      write_literal(w, &o->arg);
    sw_jw_end_object(w);
  }
  sw_jw_end_array(w);
}

static void write_ranges(const struct sw_graph *g, struct sw_jw *w)
{
  sw_jw_key(w, "dynamic");
  sw_jw_object(w);
  for (int i = 0; i < g->ranges.n; i++) {
    const struct sw_range *r = &g->ranges.v[i];
    sw_jw_key(w, r->symbol);
    sw_jw_array(w);
    if (r->has_min)
      sw_jw_int(w, r->min);
    else
      sw_jw_null(w);
    if (r->has_max)
      sw_jw_int(w, r->max);
    else
      sw_jw_null(w);
    sw_jw_end_array(w);
  }
  sw_jw_end_object(w);
}

static void write_counts(struct sw_jw *w, const char *key, const struct sw_op_count *v, int n)
{
  sw_jw_key(w, key);
  sw_jw_object(w);
  for (int i = 0; i < n; i++)
    sw_jw_kint(w, v[i].target, v[i].n);
  sw_jw_end_object(w);
}

void sw_graph_write_facts(struct sw_job *job, const struct sw_graph *g, struct sw_jw *w)
{
  const struct sw_census *c = &g->census;
  sw_jw_kstr(w, "name", g->name);
  sw_jw_kstr(w, "form", g->form);
  sw_jw_kstr(w, "digest", g->digest);
  sw_jw_key(w, "dialect");
  sw_jw_array(w);
  if (*g->dialect)
    sw_jw_str(w, g->dialect);
  sw_jw_end_array(w);
  sw_jw_kint(w, "nodes", c->nodes);
  /* torch.fx besides has a node an input, a getitem, a subgraph, and one for the output. */
  sw_jw_kint(w, "fx_nodes", (int64_t)c->nodes + g->inputs.n + c->getitems + c->subgraphs + 1);
  sw_jw_kint(w, "fx_getitem", c->getitems);
  write_counts(w, "ops", c->ops.v, c->ops.n);
  write_counts(w, "subgraph_ops", c->subgraph_ops.v, c->subgraph_ops.n);
  sw_jw_kint(w, "static_tensors", c->static_tensors);
  sw_jw_kint(w, "static_elements", c->static_elements);
  write_inputs(job, g, w);
  write_outputs(g, w, false);
  write_outputs(g, w, true);
  write_ranges(g, w);
}
