#include "compiler/layout/normal.h"

#include <inttypes.h>

/* Layouts whose sticks agree may still have no emission: the op has no normal form, or rounding up to sticks would touch
 * what is not its own. Reference: layouts.md 3.7, superdsc.md section 16 (M5, M8). */

bool sw_write_ends_inside(const struct sw_op *op, const struct sw_layout *l, const struct sw_coord *coord,
                          const struct sw_storage *s, struct sw_written_part *part)
{
  const struct sw_coord *lane = &coord[l->rank - 1];
  int64_t e = sw_format_eps(l->format), host_step = l->stride_map[l->rank - 1];
  if (!lane->n)
    return false;
  *part = (struct sw_written_part){0};
  for (int j = 0; j < l->rank - 1; j++)
    if (l->stride_map[j] == e * host_step)
      part->first = coord[j].constant * e;
  part->end = part->first + op->range[lane->term[0].loop];
  for (int d = 0; d < s->rank; d++)
    if (s->stride[d] == host_step && s->size[d] > part->end && part->end % e) {
      part->size = s->size[d];
      return true;
    }
  return false;
}

/* A restickify rounds both stick dims up. Along the stick dim of the other tensor this one has rows, n of them from row
 * k on, N after rounding, D in memory. Memory that ends early is told to the card as missing rows, which works for a
 * whole dim only; more memory is told as a gap, and a gap below a stick reads as missing rows. */
static const char *rows(struct sw_arena *a, const struct sw_normal *f, int i)
{
  const struct sw_normal_tensor *t = &f->tensor[i], *other = &f->tensor[1 - i];
  const struct sw_spec_coord *lane = &other->coord[other->rank - 1];
  for (int j = 0; j < t->rank - 1 && lane->form == SW_COORD_MOD; j++) {
    const struct sw_spec_coord *c = &t->coord[j];
    if (c->form != SW_COORD_SYMBOL || c->symbol != lane->symbol)
      continue;
    int64_t n = f->space.v[c->symbol].range, padded = (n + lane->e - 1) / lane->e * lane->e, in_memory = t->size[j];
    int64_t gap = in_memory - padded;
    bool is_output = i == 1;
    if (padded > n && is_output && (in_memory > n || c->k))
      return sw_arena_printf(a, "%" PRId64 " rows are rounded up to %" PRId64 " and would be written over their neighbours",
                             n, padded);
    if (gap < 0 ? c->k > 0 : c->k > gap)
      return sw_arena_printf(a, "rows %" PRId64 "..%" PRId64 " are rounded up to %" PRId64 " and leave the %" PRId64
                             " in memory",
                             c->k, c->k + n - 1, padded, in_memory);
    if (gap > 0 && gap < lane->e && j)
      return sw_arena_printf(a, "%" PRId64 " rows of %" PRId64 " leave a gap below a stick, which reads as missing rows", n,
                             in_memory);
  }
  return NULL;
}

static bool is_copy(const struct sw_op *op)
{
  return (op->op == SW_OP_IDENTITY || op->op == SW_OP_RESTICKIFY) && op->n_in == 1;
}

/* The op's tensors, inputs then output; layout NULL: a scalar. False: *culprit has no form. */
static bool see_tensors(const struct sw_op *op, const struct sw_layout *const *layouts, struct sw_normal_input *t,
                        int *culprit)
{
  static const struct sw_layout one_stick = {.rank = 2, .device_size = {1, 64}, .stride_map = {-1, -1}};
  int n = op->n_in + 1;
  for (int i = 0; i < n; i++) {
    const struct sw_access *x = i < op->n_in ? &op->in[i] : &op->out;
    t[i] = (struct sw_normal_input){.layout = layouts[i] ? layouts[i] : &one_stick};
    for (int j = 0; j < n; j++)
      t[i].is_index = t[i].is_index || (j < op->n_in ? &op->in[j] : &op->out)->index_input == i;
    *culprit = i;
    if (layouts[i] && !sw_layout_coords(layouts[i], op, x, t[i].coord))
      return false;
  }
  return true;
}

/* The same with the layouts that the program has. */
static bool see_in_program(const struct sw_program *p, const struct sw_op *op, struct sw_normal_input *t)
{
  const struct sw_layout *layouts[SW_MAX_INPUTS + 1];
  int culprit;
  for (int i = 0; i <= op->n_in; i++) {
    const struct sw_storage *s = &p->storages.v[i < op->n_in ? op->in[i].storage : op->out.storage];
    layouts[i] = s->kind == SW_STORAGE_SCALAR ? NULL : s->layout;
  }
  return see_tensors(op, layouts, t, &culprit);
}

unsigned sw_op_cut_loops(const struct sw_program *p, const struct sw_op *op)
{
  struct sw_normal_input t[SW_MAX_INPUTS + 1];
  return see_in_program(p, op, t) ? sw_normal_cut_loops(op, t, op->n_in + 1) : ~0u;
}

bool sw_op_has_form(struct sw_arena *a, const struct sw_program *p, const struct sw_op *op)
{
  struct sw_normal_input t[SW_MAX_INPUTS + 1];
  struct sw_normal f;
  int order[SW_MAX_LOOPS];
  struct sw_arena *scratch = sw_arena_new(a, SIZE_MAX);
  sw_loop_order(op, NULL, false, order);
  bool has = see_in_program(p, op, t) && sw_normal_form(scratch, op, NULL, order, t, op->n_in + 1, &f);
  sw_arena_free(scratch);
  return has;
}

const char *sw_layout_obstacle(struct sw_arena *a, const struct sw_op *op, const struct sw_layout *const *layouts,
                               const struct sw_storage *written, int *culprit)
{
  struct sw_normal_input t[SW_MAX_INPUTS + 1];
  struct sw_normal f;
  int n = op->n_in + 1;
  if (!see_tensors(op, layouts, t, culprit))
    return "the access has no form in this layout";
  struct sw_written_part part;
  if (sw_write_ends_inside(op, t[n - 1].layout, t[n - 1].coord, written, &part))
    return sw_arena_printf(a, "elements %" PRId64 "..%" PRId64 " of %" PRId64 " are written, but sticks are written whole",
                           part.first, part.end - 1, part.size);
  int order[SW_MAX_LOOPS];
  sw_loop_order(op, NULL, false, order);
  bool ok = sw_normal_form(a, op, NULL, order, t, n, &f);
  *culprit = f.culprit;
  if (!ok)
    return f.why;
  const struct sw_coord *from = &t[0].coord[t[0].layout->rank - 1], *to = &t[n - 1].coord[t[n - 1].layout->rank - 1];
  if (!is_copy(op) || !from->n || !to->n || from->term[0].loop == to->term[0].loop)
    return NULL;
  for (int i = 0; i < 2; i++) {
    const char *why = rows(a, &f, i);
    *culprit = i;
    if (why)
      return why;
  }
  return NULL;
}
