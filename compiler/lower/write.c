/* The dump of a program, one line each:
 *
 *   %x : f16[64,128] input
 *   %y : f16[64,128] strides=[1,64]
 *   y = add (64,128) %y[1,64] <- %x[128,1], %two[0,0]
 *   s = sum (64 | 128) %s[1] <- %x[128,1]                   after the bar: reduced loops
 *   z = add (64,128) in loops 0:4 %z[128,1] <- %x[128,1]>8192  4 turns of loop 0, each 8192 elements further on
 *   host c = aten.cumsum.default -> %c : why
 *   return %y[64,128]/[1,64]
 *
 * An access is %storage[step per loop]+offset; @k*s: rows numbered by input k, s elements apart. */
#include "compiler/lower/program.h"

#include <inttypes.h>

static void list(struct sw_buf *out, const int64_t *v, int n)
{
  sw_buf_puts(out, "[");
  for (int i = 0; i < n; i++)
    sw_buf_printf(out, "%s%" PRId64, i ? "," : "", v[i]);
  sw_buf_puts(out, "]");
}

static void write_storage(const struct sw_storage *s, struct sw_buf *out)
{
  static const char *const kinds[] = {"input", "parameter", "buffer", "constant", "scalar", "temporary"};
  sw_buf_printf(out, "%%%s : %s", s->name, sw_dtype_text(s->dtype));
  list(out, s->size, s->rank);
  int64_t dense = 1;
  bool row_major = true;
  for (int d = s->rank - 1; d >= 0; d--) {
    row_major = row_major && (s->size[d] <= 1 || s->stride[d] == dense);
    dense *= s->size[d];
  }
  if (!row_major) {
    sw_buf_puts(out, " strides=");
    list(out, s->stride, s->rank);
  }
  sw_buf_printf(out, " %s%s%s\n", kinds[s->kind], s->host_only ? " host" : "", s->is_output ? " output" : "");
}

static void write_access(const struct sw_program *p, const struct sw_op *op, const struct sw_access *x, int n,
                         struct sw_buf *out)
{
  sw_buf_printf(out, "%%%s", p->storages.v[x->storage].name);
  list(out, x->step, n);
  if (x->offset)
    sw_buf_printf(out, "+%" PRId64, x->offset);
  if (x->index_input >= 0)
    sw_buf_printf(out, "@%d*%" PRId64, x->index_input, x->index_step);
  for (int l = 0; l < op->n_levels; l++)
    sw_buf_printf(out, "%s%" PRId64, l ? "," : ">", x->advance[l]);
}

static void write_op(const struct sw_program *p, const struct sw_op *op, struct sw_buf *out)
{
  static const char *const roles[] = {"", " clone", " write", " fill", " allocate", " conversion", " padding"};
  sw_buf_printf(out, "%s = %s%s (", op->name, sw_device_op_name(op->op), roles[op->role]);
  for (int d = 0; d < op->n_loops; d++)
    sw_buf_printf(out, "%s%" PRId64, d == op->n_written ? d ? " | " : "| " : d ? "," : "", op->range[d]);
  sw_buf_puts(out, ") ");
  for (int l = 0; l < op->n_levels; l++)
    sw_buf_printf(out, "%s%d:%" PRId64 "%s", l ? "," : "in loops ", op->level[l].loop, op->level[l].count,
                  l == op->n_levels - 1 ? " " : "");
  write_access(p, op, &op->out, op->n_written, out);
  sw_buf_puts(out, " <-");
  for (int i = 0; i < op->n_in; i++) {
    sw_buf_puts(out, i ? ", " : " ");
    write_access(p, op, &op->in[i], op->n_loops, out);
  }
  for (int i = 0; i < op->constants.n; i++)
    sw_buf_printf(out, " %s=%.9g", op->constants.v[i].name, op->constants.v[i].value);
  sw_buf_puts(out, "\n");
}

static void write_args(const struct sw_program *p, const struct sw_host_arg *args, int n, struct sw_buf *out)
{
  for (int i = 0; i < n; i++)
    if (args[i].kind == SW_HOST_VIEW)
      sw_buf_printf(out, " %%%s", p->storages.v[args[i].view.storage].name);
    else if (args[i].kind == SW_HOST_LIST)
      write_args(p, args[i].list, args[i].n_list, out);
}

void sw_program_write(const struct sw_program *p, struct sw_buf *out)
{
  for (int i = 0; i < p->storages.n; i++)
    write_storage(&p->storages.v[i], out);
  for (int i = 0; i < p->steps.n; i++) {
    if (!p->steps.v[i].is_host) {
      write_op(p, &p->ops.v[p->steps.v[i].index], out);
      continue;
    }
    const struct sw_host_step *h = &p->host_steps.v[p->steps.v[i].index];
    sw_buf_printf(out, "host %s = %s", h->name, h->target);
    write_args(p, h->args.v, h->args.n, out);
    sw_buf_puts(out, " ->");
    for (int r = 0; r < h->results.n; r++)
      sw_buf_printf(out, " %s%s", h->results.v[r].storage < 0 ? "-" : "%",
                    h->results.v[r].storage < 0 ? "" : p->storages.v[h->results.v[r].storage].name);
    sw_buf_printf(out, " : %s\n", h->why);
  }
  for (int i = 0; i < p->outputs.n; i++) {
    const struct sw_program_output *o = &p->outputs.v[i];
    sw_buf_printf(out, "return %s", o->name);
    if (o->is_tensor) {
      sw_buf_printf(out, " = %%%s", p->storages.v[o->view.storage].name);
      list(out, o->view.size, o->view.rank);
      sw_buf_puts(out, "/");
      list(out, o->view.stride, o->view.rank);
      if (o->view.offset)
        sw_buf_printf(out, "+%" PRId64, o->view.offset);
    }
    if (o->mutates)
      sw_buf_printf(out, " mutates %s", o->mutates);
    sw_buf_puts(out, "\n");
  }
}
