#include "compiler/emit/opspec.h"

#include "base/json.h"
#include "base/number.h"
#include "compiler/emit/superdsc.h"

#include <inttypes.h>
#include <string.h>

/* Writing opspec.json in the form in which it is read, one blank of indentation a level. */

void sw_jw_json(struct sw_jw *w, const json_t *v)
{
  const char *key;
  json_t *x;
  switch (json_typeof(v)) {
  case JSON_OBJECT:
    sw_jw_object(w);
    json_object_foreach((json_t *)v, key, x)
    {
      sw_jw_key(w, key);
      sw_jw_json(w, x);
    }
    sw_jw_end_object(w);
    break;
  case JSON_ARRAY:
    sw_jw_array(w);
    for (size_t i = 0; i < json_array_size(v); i++)
      sw_jw_json(w, json_array_get(v, i));
    sw_jw_end_array(w);
    break;
  case JSON_STRING:
    sw_jw_str(w, json_string_value(v));
    break;
  case JSON_INTEGER:
    sw_jw_int(w, json_integer_value(v));
    break;
  case JSON_REAL:
    sw_jw_real(w, json_real_value(v));
    break;
  case JSON_TRUE:
  case JSON_FALSE:
    sw_jw_bool(w, json_is_true(v));
    break;
  case JSON_NULL:
    sw_jw_null(w);
    break;
  }
}

static void write_coordinate(struct sw_jw *w, struct sw_arena *a, const struct sw_spec *s,
                             const struct sw_spec_coord *c)
{
  const char *name = c->form == SW_COORD_CONST || c->form == SW_COORD_INDIRECT ? "" : s->space.v[c->symbol].name;
  const char *plus = c->k ? sw_arena_printf(a, " + %" PRId64, c->k) : "";
  switch (c->form) {
  case SW_COORD_CONST:
    sw_jw_str(w, sw_arena_printf(a, "%" PRId64, c->k));
    break;
  case SW_COORD_SYMBOL:
    sw_jw_str(w, sw_arena_printf(a, "%s%s", name, plus));
    break;
  case SW_COORD_FLOOR:
    sw_jw_str(w, sw_arena_printf(a, "floor(%s/%" PRId64 ")%s", name, c->e, plus));
    break;
  case SW_COORD_MOD:
    sw_jw_str(w, sw_arena_printf(a, "Mod(%s, %" PRId64 ")", name, c->e));
    break;
  case SW_COORD_INDIRECT:
    sw_jw_str(w, sw_arena_printf(a, "IndirectAccess(%s)", c->name));
    break;
  }
}

static void write_work_division(struct sw_jw *w, struct sw_arena *a, const struct sw_work_division *d)
{
  sw_jw_key(w, "work_division");
  sw_jw_object(w);
  sw_jw_key(w, "work_slices");
  sw_jw_object(w);
  for (int i = 0; i < d->slices.n; i++)
    sw_jw_kint(w, d->slices.v[i].symbol, d->slices.v[i].n);
  sw_jw_end_object(w);
  sw_jw_key(w, "core_id_to_work_slice");
  sw_jw_object(w);
  for (int i = 0; i < d->slices.n; i++) {
    const struct sw_work_slice *s = &d->slices.v[i];
    const char *core = s->below == 1 ? "core_id" : sw_arena_printf(a, "floor(core_id/%" PRId64 ")", s->below);
    sw_jw_kstr(w, s->symbol, sw_arena_printf(a, "Mod(%s, %" PRId64 ")", core, s->n));
  }
  sw_jw_end_object(w);
  sw_jw_end_object(w);
}

static void write_ints(struct sw_jw *w, const char *key, const int64_t *v, int n)
{
  sw_jw_key(w, key);
  sw_jw_array(w);
  for (int i = 0; i < n; i++)
    sw_jw_int(w, v[i]);
  sw_jw_end_array(w);
}

static void write_arg(struct sw_jw *w, struct sw_arena *a, const struct sw_spec *s, const struct sw_spec_arg *x)
{
  static const char *const kinds[] = {[SW_ALLOC_HBM] = "hbm", [SW_ALLOC_LX] = "lx", [SW_ALLOC_POOL] = "hbm_pool"};
  sw_jw_object(w);
  sw_jw_kbool(w, "is_input", x->is_input);
  sw_jw_kint(w, "arg_index", x->arg_index);
  sw_jw_kstr(w, "device_dtype", sw_format_name(x->format));
  write_ints(w, "device_size", x->device_size, x->rank);
  sw_jw_key(w, "device_coordinates");
  sw_jw_array(w);
  for (int i = 0; i < x->rank; i++)
    write_coordinate(w, a, s, &x->coord[i]);
  sw_jw_end_array(w);
  sw_jw_key(w, "allocation");
  sw_jw_object(w);
  sw_jw_kint(w, kinds[x->alloc], x->address);
  sw_jw_end_object(w);
  sw_jw_kstr(w, "element_arrangement", sw_arrangement_name(x->arrangement));
  if (x->name)
    sw_jw_kstr(w, "name", x->name);
  if (x->tile_advance)
    sw_jw_kstr(w, "device_tile_advance_expr", x->tile_advance);
  if (x->work_division)
    write_work_division(w, a, x->work_division);
  sw_jw_end_object(w);
}

/* Constants are reals but for the flags and whole numbers that the lowerings name. */
static void write_numbers(struct sw_jw *w, const char *key, const struct sw_named_number *v, int n, bool whole,
                          const char *pad_type)
{
  static const char *const whole_names[] = {"kernel_h", "kernel_w", "stride_h", "stride_w", "pad_h", "pad_w"};
  sw_jw_key(w, key);
  sw_jw_object(w);
  for (int i = 0; i < n; i++) {
    bool is_whole = whole;
    for (size_t j = 0; j < sizeof whole_names / sizeof *whole_names; j++)
      is_whole = is_whole || !strcmp(v[i].name, whole_names[j]);
    if (!strcmp(v[i].name, "useZeroMean"))
      sw_jw_kbool(w, v[i].name, v[i].value != 0);
    else if (is_whole)
      sw_jw_kint(w, v[i].name, sw_whole_of_real(v[i].value));
    else
      sw_jw_kreal(w, v[i].name, v[i].value);
  }
  if (pad_type)
    sw_jw_kstr(w, "pad_type", pad_type);
  sw_jw_end_object(w);
}

static void write_info(struct sw_jw *w, const struct sw_spec *s)
{
  sw_jw_key(w, "op_info");
  sw_jw_object(w);
  if (s->constants.n || !strcmp(s->op, "conv2d"))
    write_numbers(w, "constants", s->constants.v, s->constants.n, false, NULL);
  if (s->conv.n)
    write_numbers(w, "conv_params", s->conv.v, s->conv.n, true, s->pad_type);
  if (s->shared_weight_unit_bmm) {
    sw_jw_key(w, "shared_weight_unit_bmm");
    sw_jw_object(w);
    sw_jw_kint(w, "batch_dim", 0);
    sw_jw_end_object(w);
  }
  sw_jw_end_object(w);
}

static void write_tiles(struct sw_jw *w, const struct sw_spec *s)
{
  sw_jw_key(w, "tiled_symbols");
  sw_jw_array(w);
  for (int l = 0; l < s->n_tile_levels; l++) {
    sw_jw_array(w);
    for (int i = 0; i < s->tile_levels[l].n; i++)
      sw_jw_str(w, s->tile_levels[l].symbols[i]);
    sw_jw_end_array(w);
  }
  sw_jw_end_array(w);
  write_numbers(w, "tiled_symbol_trip_counts", s->tile_trip_counts.v, s->tile_trip_counts.n, true, NULL);
}

static void write_bounds(struct sw_jw *w, const struct sw_spec *s)
{
  bool any = false;
  for (int i = 0; i < s->space.n; i++) {
    const struct sw_spec_symbol *x = &s->space.v[i];
    bool seen = !x->dynamic;
    for (int j = 0; j < i && !seen; j++)
      seen = s->space.v[j].dynamic && !strcmp(s->space.v[j].dynamic, x->dynamic);
    if (seen)
      continue;
    if (!any) {
      sw_jw_key(w, "symbolic_dim_bounds");
      sw_jw_object(w);
      any = true;
    }
    sw_jw_key(w, x->dynamic);
    sw_jw_object(w);
    sw_jw_kint(w, "max", x->range);
    sw_jw_kint(w, "granularity", x->granularity);
    sw_jw_end_object(w);
  }
  if (any)
    sw_jw_end_object(w);
}

static void write_spec(struct sw_jw *w, struct sw_arena *a, const struct sw_spec *s)
{
  sw_jw_object(w);
  sw_jw_kstr(w, "kind", s->is_loop ? "loop" : "op");
  if (s->is_loop) {
    sw_jw_kstr(w, "count", sw_arena_printf(a, "%" PRId64, s->count));
    sw_jw_key(w, "body");
    sw_jw_array(w);
    for (int i = 0; i < s->body.n; i++)
      write_spec(w, a, s->body.v[i]);
    sw_jw_end_array(w);
    sw_jw_end_object(w);
    return;
  }
  sw_jw_kstr(w, "op", s->op);
  sw_jw_kbool(w, "is_reduction", s->is_reduction);
  sw_jw_key(w, "iteration_space");
  sw_jw_array(w);
  for (int i = 0; i < s->space.n; i++) {
    const struct sw_spec_symbol *x = &s->space.v[i];
    sw_jw_object(w);
    sw_jw_kstr(w, "symbol", x->name);
    if (x->dynamic)
      sw_jw_kstr(w, "range", x->dynamic);
    else
      sw_jw_kint(w, "range", x->range);
    sw_jw_kint(w, "split", x->split);
    sw_jw_end_object(w);
  }
  sw_jw_end_array(w);
  write_info(w, s);
  sw_jw_key(w, "args");
  sw_jw_array(w);
  for (int i = 0; i < s->args.n; i++)
    write_arg(w, a, s, &s->args.v[i]);
  sw_jw_end_array(w);
  if (s->n_tile_levels)
    write_tiles(w, s);
  write_bounds(w, s);
  if (s->n_node_output_ranges)
    write_ints(w, "node_output_ranges", s->node_output_ranges, s->n_node_output_ranges);
  if (s->debug_handle) {
    sw_jw_key(w, "debug_handle");
    sw_jw_json(w, s->debug_handle);
  }
  sw_jw_end_object(w);
}

void sw_opspecs_write(const struct sw_opspecs *s, struct sw_buf *out)
{
  struct sw_jw w = {.out = out, .indent = 1};
  sw_jw_object(&w);
  sw_jw_kstr(&w, "case", s->name);
  if (s->note)
    sw_jw_kstr(&w, "note", s->note);
  sw_jw_kint(&w, "pool_size", s->pool_bytes);
  sw_jw_key(&w, "config");
  sw_jw_object(&w);
  sw_jw_kbool(&w, "core_id_k_fast_emission", s->k_fast);
  sw_jw_end_object(&w);
  sw_jw_key(&w, "specs");
  sw_jw_array(&w);
  for (int i = 0; i < s->specs.n; i++)
    write_spec(&w, out->arena, s->specs.v[i]);
  sw_jw_end_array(&w);
  sw_jw_end_object(&w);
}
