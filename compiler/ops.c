#include "compiler/ops.h"

#include "base/json.h"
#include "compiler/lower/program.h"

#include <string.h>

static const enum sw_dtype lanes[] = {SW_F16, SW_F32, SW_F8E4M3, SW_I32};
enum { N_LANES = sizeof lanes / sizeof lanes[0] };

void sw_ops_json(struct sw_buf *out)
{
  struct sw_jw w = {.out = out, .indent = 2};
  struct sw_operation o;
  sw_jw_object(&w);
  sw_jw_key(&w, "operations");
  sw_jw_array(&w);
  for (int i = 0; sw_operation_at(i, &o); i++) {
    sw_jw_object(&w);
    sw_jw_kstr(&w, "overload", o.target);
    sw_jw_kstr(&w, "kind", o.kind);
    sw_jw_kstr(&w, "becomes", o.becomes);
    sw_jw_kstr(&w, "note", o.note);
    sw_jw_kbool(&w, "fp16_only", o.half_only);
    sw_jw_end_object(&w);
  }
  sw_jw_end_array(&w);
  sw_jw_key(&w, "aliases");
  sw_jw_object(&w);
  const char *of, *name;
  for (int i = 0; (name = sw_schema_alias(i, &of)); i++)
    sw_jw_kstr(&w, name, of);
  sw_jw_end_object(&w);
  sw_jw_key(&w, "device_ops");
  sw_jw_array(&w);
  for (int op = 0; op < SW_N_DEVICE_OPS; op++) {
    sw_jw_object(&w);
    sw_jw_kstr(&w, "name", sw_device_op_name((enum sw_device_op)op));
    sw_jw_kbool(&w, "reduction", sw_device_op_is_reduction((enum sw_device_op)op));
    sw_jw_key(&w, "dtypes");
    sw_jw_array(&w);
    for (int k = 0; k < N_LANES; k++)
      if (sw_device_op_takes((enum sw_device_op)op, lanes[k]))
        sw_jw_str(&w, sw_dtype_torch(lanes[k]));
    sw_jw_end_array(&w);
    sw_jw_end_object(&w);
  }
  sw_jw_end_array(&w);
  sw_jw_end_object(&w);
  sw_buf_puts(out, "\n");
}

void sw_ops_markdown(struct sw_buf *out)
{
  struct sw_operation o;
  sw_buf_puts(out, "| overload | kind | becomes | note |\n|---|---|---|---|\n");
  for (int i = 0; sw_operation_at(i, &o); i++)
    sw_buf_printf(out, "| %s | %s | %s | %s |\n", o.target, o.kind, o.becomes, o.note ? o.note : "");
  sw_buf_puts(out, "\nOther names of the same, in-place forms included: ");
  const char *of, *name;
  for (int i = 0; (name = sw_schema_alias(i, &of)); i++)
    sw_buf_printf(out, "%s`%s` (%s)", i ? ", " : "", name, of);
  sw_buf_puts(out, ".\n");
  sw_buf_puts(out, "\n| device op | float16 | float32 | fp8 | int32 |\n|---|---|---|---|---|\n");
  for (int op = 0; op < SW_N_DEVICE_OPS; op++) {
    sw_buf_printf(out, "| %s |", sw_device_op_name((enum sw_device_op)op));
    for (int k = 0; k < N_LANES; k++)
      sw_buf_puts(out, sw_device_op_takes((enum sw_device_op)op, lanes[k]) ? " yes |" : " |");
    sw_buf_puts(out, "\n");
  }
}

void sw_ops_text(struct sw_buf *out)
{
  struct sw_operation o;
  for (int i = 0; sw_operation_at(i, &o); i++) {
    const char *name = !strncmp(o.target, "aten.", 5) ? o.target + 5 : o.target;
    sw_buf_printf(out, "%-44s %-10s %s%s%s%s\n", name, o.kind, o.becomes, o.note ? *o.becomes ? "  (" : "(" : "",
                  o.note ? o.note : "", o.note ? ")" : "");
  }
}
