#include "compiler/emit/superdsc.h"

#include <inttypes.h>
#include <string.h>

/* bundle.mlir: parameters, address arithmetic, loops and one sdsc_execute per op (superdsc.md section 10). */

struct writer {
  const struct sw_bundle *b;
  struct sw_buf *out;
  struct sw_map maps; /* text of strides -> number of the affine map */
  int next_op, next_loop, next_address;
};

static void tabs(struct writer *w, int n)
{
  while (n-- > 0)
    sw_buf_puts(w->out, "\t");
}

static const char *ssa(const struct writer *w, int id)
{
  return w->b->addresses.v[id - 1].name;
}

/* "4096*d0 + 64*d1" over all loop variables a tensor moves with, outermost first; "" when it stays. */
static const char *steps_text(struct writer *w, const struct sw_sdsc *s, const struct sw_sdsc_tensor *t)
{
  struct sw_buf text = {.arena = w->out->arena};
  int n = 0;
  for (int l = 0; l < s->spec->n_tile_levels; l++)
    for (int k = 0; k < t->levels[l].n; k++, n++)
      sw_buf_printf(&text, "%s%" PRId64 "*d%d", n ? " + " : "", t->levels[l].v[k].bytes, n);
  return sw_buf_text(&text);
}

static void write_maps(struct writer *w)
{
  for (int i = 0; i < w->b->sdsc.n; i++) {
    const struct sw_sdsc *s = w->b->sdsc.v[i];
    for (int j = 0; j < s->n_tensors; j++) {
      const char *text = steps_text(w, s, &s->tensor[j]);
      if (!*text || sw_map_get_str(&w->maps, text) >= 0)
        continue;
      int number = (int)w->maps.n, n = 1;
      sw_map_set_str(&w->maps, text, number);
      for (const char *p = text; (p = strchr(p, '+')); p++)
        n++;
      sw_buf_printf(w->out, "#map_%d = affine_map<(", number);
      for (int k = 0; k < n; k++)
        sw_buf_printf(w->out, "%sd%d", k ? ", " : "", k);
      sw_buf_printf(w->out, ")[s0] -> (s0 + %s)>\n", text);
    }
  }
}

static const char *rows_text(struct writer *w, const struct sw_address *x)
{
  return sw_arena_printf(w->out->arena, "%" PRId64 "*d0", x->bytes);
}

/* Starts that grow with a dynamic size are maps of it. */
static void write_row_maps(struct writer *w)
{
  for (int i = 0; i < w->b->addresses.n; i++) {
    const struct sw_address *x = &w->b->addresses.v[i];
    if (x->kind != SW_ADDRESS_ROWS || sw_map_get_str(&w->maps, rows_text(w, x)) >= 0)
      continue;
    sw_buf_printf(w->out, "#map_%d = affine_map<(d0)[s0] -> (s0 + %s)>\n", (int)w->maps.n, rows_text(w, x));
    sw_map_set_str(&w->maps, rows_text(w, x), (int64_t)w->maps.n);
  }
}

/* Distinct arguments in ascending order, then dynamic sizes in order of first use. */
static void write_header(struct writer *w)
{
  static const char type[] = "!sdscbundle.input_arg<index>";
  struct sw_arena *a = w->out->arena;
  struct sw_map seen = {.arena = a};
  struct sw_buf params = {.arena = a}, extracts = {.arena = a};
  int n_args = 0;
  bool has_pool = false;
  for (int i = 0; i < w->b->addresses.n; i++) {
    const struct sw_address *x = &w->b->addresses.v[i];
    has_pool = has_pool || x->kind == SW_ADDRESS_POOL;
    if (x->kind == SW_ADDRESS_KERNEL && x->arg >= n_args)
      n_args = x->arg + 1;
  }
  bool *used = SW_NEW_N(a, bool, n_args);
  for (int i = 0; i < w->b->addresses.n; i++)
    if (w->b->addresses.v[i].kind == SW_ADDRESS_KERNEL)
      used[w->b->addresses.v[i].arg] = true;
  for (int i = 0; i < n_args; i++) {
    if (!used[i])
      continue;
    sw_buf_printf(&params, "%s%%arg_%d_base_addr: %s", params.n ? ", " : "", i, type);
    sw_buf_printf(&extracts, "\t\t%%arg_%d = sdscbundle.input_arg_extract value from %%arg_%d_base_addr : %s -> index\n",
                  i, i, type);
  }
  for (int i = 0; i < w->b->addresses.n; i++) {
    const struct sw_address *x = &w->b->addresses.v[i];
    if (x->kind != SW_ADDRESS_DIMENSION || sw_map_set_str(&seen, x->name, 1) >= 0)
      continue;
    const char *name = ssa(w, i + 1);
    const char *bounded = sw_arena_printf(
        a, "!sdscbundle.input_arg<index, granularity=%" PRId64 ", max_value=%" PRId64 ">", x->granularity, x->max);
    sw_buf_printf(&params, "%s%s_base: %s", params.n ? ", " : "", name, bounded);
    sw_buf_printf(&extracts, "\t\t%s = sdscbundle.input_arg_extract value from %s_base : %s -> index\n", name, name,
                  bounded);
  }
  sw_buf_printf(w->out, "module {\n\tfunc.func @sdsc_bundle(%s) {\n", sw_buf_text(&params));
  if (has_pool)
    sw_buf_printf(w->out, "\t\t%%pool = sdscbundle.device_mem_allocate %" PRId64 " bytes : index\n",
                  w->b->specs->pool_bytes);
  sw_buf_puts(w->out, sw_buf_text(&extracts));
}

static void write_bounds(struct writer *w, const struct sw_spec *s)
{
  if (!s->is_loop)
    return;
  if (!w->next_loop)
    sw_buf_puts(w->out, "\t\t%c0 = arith.constant 0 : index\n\t\t%c1 = arith.constant 1 : index\n");
  sw_buf_printf(w->out, "\t\t%%loop_bound_%d = arith.constant %" PRId64 " : index\n", w->next_loop++, s->count);
  for (int i = 0; i < s->body.n; i++)
    write_bounds(w, s->body.v[i]);
}

/* Each SSA name once; symbols of other ops that mean the same address use the same name. */
static void write_addresses(struct writer *w)
{
  struct sw_map seen = {.arena = w->out->arena};
  for (int i = 0; i < w->b->addresses.n; i++) {
    const struct sw_address *x = &w->b->addresses.v[i];
    if (x->kind == SW_ADDRESS_KERNEL || x->kind == SW_ADDRESS_DIMENSION || sw_map_set_str(&seen, x->name, 1) >= 0)
      continue;
    const char *base = "%pool", *offset;
    if (x->kind == SW_ADDRESS_ROWS) {
      sw_buf_printf(w->out, "\t\t%s = affine.apply #map_%d(%s)[%s]\n", x->name,
                    (int)sw_map_get_str(&w->maps, rows_text(w, x)), ssa(w, x->size), ssa(w, x->base));
      continue;
    }
    if (x->kind == SW_ADDRESS_POOL) {
      offset = sw_arena_printf(w->out->arena, "%%pool_offset_%" PRId64, x->bytes);
    } else if (x->kind == SW_ADDRESS_SLICE) {
      base = sw_arena_printf(w->out->arena, "%%arg_%d", x->arg);
      offset = sw_arena_printf(w->out->arena, "%s_slice_offset_%" PRId64, base, x->bytes);
    } else {
      base = w->b->addresses.v[x->base - 1].name;
      offset = sw_arena_printf(w->out->arena, "%s_core_offset_%" PRId64, base, x->bytes);
    }
    sw_buf_printf(w->out, "\t\t%s = arith.constant %" PRId64 " : index\n", offset, x->bytes);
    sw_buf_printf(w->out, "\t\t%s = arith.addi %s, %s : index\n", x->name, base, offset);
  }
}

static void write_execute(struct writer *w, const struct sw_sdsc *s, const int *loops, int depth)
{
  struct sw_arena *a = w->out->arena;
  struct sw_map moved = {.arena = a}, seen = {.arena = a};
  for (int i = 0; i < s->n_tensors; i++) {
    const struct sw_sdsc_tensor *t = &s->tensor[i];
    const char *text = t->symbol ? steps_text(w, s, t) : "";
    for (int c = 0; *text && c < s->cores; c++) {
      if (sw_map_get(&moved, &t->symbol[c], sizeof t->symbol[c]) >= 0)
        continue;
      sw_map_set(&moved, &t->symbol[c], sizeof t->symbol[c], w->next_address);
      tabs(w, depth);
      sw_buf_printf(w->out, "%%addr_%d = affine.apply #map_%d(", w->next_address++,
                    (int)sw_map_get_str(&w->maps, text));
      for (int l = 0, n = 0; l < s->spec->n_tile_levels; l++)
        for (int k = 0; k < t->levels[l].n; k++, n++)
          sw_buf_printf(w->out, "%s%%i_%d", n ? ", " : "", loops[l]);
      sw_buf_printf(w->out, ")[%s]\n", ssa(w, t->symbol[c]));
    }
  }
  struct sw_buf operands = {.arena = a}, ids = {.arena = a};
  for (int i = 0; i < s->dynamics.n; i++) {
    int id = s->dynamics.v[i].symbol;
    if (sw_map_set(&seen, &id, sizeof id, 1) >= 0)
      continue;
    sw_buf_printf(&operands, "%s%s", operands.n ? ", " : "", ssa(w, id));
    sw_buf_printf(&ids, "%s-%d", ids.n ? ", " : "", id);
  }
  for (int i = 0; i < s->n_tensors; i++)
    for (int c = 0; s->tensor[i].symbol && c < s->cores; c++) {
      int id = s->tensor[i].symbol[c];
      if (sw_map_set(&seen, &id, sizeof id, 1) >= 0)
        continue;
      int64_t at = sw_map_get(&moved, &id, sizeof id);
      const char *name = at < 0 ? ssa(w, id) : sw_arena_printf(a, "%%addr_%" PRId64, at);
      sw_buf_printf(&operands, "%s%s", operands.n ? ", " : "", name);
      sw_buf_printf(&ids, "%s-%d", ids.n ? ", " : "", id);
    }
  tabs(w, depth);
  sw_buf_printf(w->out, "sdscbundle.sdsc_execute (%s) {sdsc_filename=\"sdsc_%d.json\", \"symbol_ids\"=[%s]}\n",
                sw_buf_text(&operands), s->number, sw_buf_text(&ids));
}

static void write_body(struct writer *w, const struct sw_spec *s, int *loops, int depth)
{
  if (!s->is_loop) {
    write_execute(w, w->b->sdsc.v[w->next_op++], loops, depth);
    return;
  }
  int l = loops[depth - 2] = w->next_loop++;
  tabs(w, depth);
  sw_buf_printf(w->out, "scf.for %%i_%d = %%c0 to %%loop_bound_%d step %%c1 {\n", l, l);
  for (int i = 0; i < s->body.n; i++)
    write_body(w, s->body.v[i], loops, depth + 1);
  tabs(w, depth);
  sw_buf_puts(w->out, "}\n");
}

void sw_bundle_write(const struct sw_bundle *b, struct sw_buf *out)
{
  struct writer w = {.b = b, .out = out, .maps = {.arena = out->arena}};
  int loops[SW_JSON_MAX_DEPTH];
  write_maps(&w);
  write_row_maps(&w);
  write_header(&w);
  for (int i = 0; i < b->specs->specs.n; i++)
    write_bounds(&w, b->specs->specs.v[i]);
  write_addresses(&w);
  w.next_loop = 0;
  for (int i = 0; i < b->specs->specs.n; i++)
    write_body(&w, b->specs->specs.v[i], loops, 2);
  sw_buf_puts(out, "\t\treturn\n\t}\n}\n");
}
