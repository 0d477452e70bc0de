/* What the time model wants to know of an op. Reference: cost-model.md section 2. */
#include "compiler/plan/cost.h"

#include "compiler/plan/loops.h"

#include <string.h>

/* How much of a storage an access walks, at most all of it. */
static double walked_part(const struct sw_op *op, const struct sw_access *x, const struct sw_storage *s)
{
  double walked = 1;
  for (int l = 0; l < op->n_loops; l++)
    if (x->step[l])
      walked *= (double)op->range[l];
  double all = (double)sw_storage_elements(s);
  return walked < all ? walked / all : 1;
}

/* How often a tensor is fetched. The reference counts a loop that does not cut the operand, and takes a buffer of one
 * tile for the whole tensor otherwise; in truth every turn fetches what the op walks. */
static double fetches(const struct sw_op *op, const struct sw_access *x, bool as_recorded)
{
  double n = 1;
  for (int l = 0; l < op->n_levels; l++) {
    int cut = op->level[l].cut;
    if (!as_recorded || (!x->advance[l] && (cut < 0 || !x->step[cut])))
      n *= (double)op->level[l].count;
  }
  return n;
}

/* Whole storages count, padding included; but a part where only a part is read, which the reference does not see. */
static struct sw_cost_arg argument(const struct sw_program *p, const struct sw_op *op, const struct sw_access *x,
                                   double element_bytes, bool as_recorded)
{
  const struct sw_storage *s = &p->storages.v[x->storage];
  struct sw_cost_arg a = {.storage = x->storage, .rows = sw_host_dim(s, 2)};
  a.is_graph_input = s->kind == SW_STORAGE_INPUT || s->kind == SW_STORAGE_PARAMETER || s->kind == SW_STORAGE_BUFFER;
  if (s->layout && !sw_in_lx(s))
    a.bytes = element_bytes * (double)sw_layout_elements(s->layout) * (as_recorded ? 1 : walked_part(op, x, s)) *
              fetches(op, x, as_recorded);
  return a;
}

/* The reference lists a tensor that an op reads twice in the same way, x * x, once. */
static bool read_before(const struct sw_op *op, int input)
{
  const struct sw_access *x = &op->in[input];
  for (int k = 0; k < input; k++)
    if (op->in[k].storage == x->storage && op->in[k].offset == x->offset && !memcmp(op->in[k].step, x->step, sizeof x->step))
      return true;
  return false;
}

/* Of a destination that others write too, only the part that this op writes. */
static void count_written_part(const struct sw_op *op, struct sw_cost_arg *out, double element_bytes)
{
  if (op->role != SW_ROLE_WRITE && op->role != SW_ROLE_PADDING)
    return;
  double part = element_bytes * (double)sw_op_turns(op);
  for (int l = 0; l < op->n_written; l++)
    part *= (double)op->range[l];
  if (out->bytes > part)
    out->bytes = part;
}

/* Whether an operand is three-dim to the model: a batch of matrices. The reference goes by the tensor's shape; a matmul with
 * one matrix of it, the weights of one expert out of eight, has no batch. */
static bool is_batch(const struct sw_storage *s, const struct sw_op *op, const struct sw_access *x, bool as_recorded)
{
  bool walked = as_recorded;
  for (int l = 0; l < op->n_loops; l++)
    walked |= x->step[l] == s->stride[0];
  return s->rank == 3 && s->size[0] > 1 && walked;
}

/* N is the innermost dim of the output, M the next one; everything else is batch. */
static struct sw_matmul_work matmul_of(const struct sw_program *p, const struct sw_op *op, double bytes,
                                       bool as_recorded)
{
  const struct sw_machine *machine = sw_machine_or_spyre(p->machine);
  struct sw_matmul_work w = {.macs = (double)sw_op_turns(op), .rate = machine->macs, .m_split = 1, .n_split = 1};
  int m = -1, n = -1;
  double k = 1;
  for (int l = 0; l < op->n_loops; l++) {
    w.macs *= (double)op->range[l];
    if (l >= op->n_written) {
      k *= (double)op->range[l];
    } else if (n < 0 || op->out.step[l] < op->out.step[n]) {
      m = n;
      n = l;
    } else if (m < 0 || op->out.step[l] < op->out.step[m]) {
      m = l;
    }
  }
  w.m = m >= 0 ? (double)op->range[m] : 1;
  w.n = n >= 0 ? (double)op->range[n] : 1;
  w.m_split = m >= 0 ? (double)op->plan->split[m] : 1;
  w.n_split = n >= 0 ? (double)op->plan->split[n] : 1;
  w.rows = w.m > 1 ? w.m / w.m_split : 0;
  w.cols = w.n > 1 ? w.n / w.n_split : 0;
  w.turns = as_recorded ? 1 : (double)sw_op_turns(op);
  w.operand_bytes = bytes * k * (w.m + w.n) * w.turns;

  int three_dim = 0, default_order = 0;
  double batch = 1;
  for (int i = 0; i < op->n_in; i++) {
    const struct sw_storage *s = &p->storages.v[op->in[i].storage];
    if (!is_batch(s, op, &op->in[i], as_recorded))
      continue;
    batch = (double)s->size[0];
    three_dim++;
    default_order += s->layout->device_size[s->layout->rank - 2] == s->size[0];
  }
  if (three_dim == 1)
    w.rate = machine->macs_projection[batch > 4];
  else if (three_dim == 2 && default_order == 2 && batch >= 4 && op->plan->cores >= 8)
    w.rate = machine->macs_default_bmm;
  return w;
}

/* Rows are those of the output's second-last dim, and the split is that of its largest step (2, rule 6). The reference
 * divides by the turns whatever is not in LX, also a buffer of one tile. */
struct sw_tile_work sw_tile_work_of(const struct sw_program *p, const struct sw_op *op, const struct sw_cost_op *c,
                                    bool as_recorded)
{
  const struct sw_storage *result = &p->storages.v[op->out.storage];
  bool whole = as_recorded ? !sw_in_lx(result) : sw_access_moves(op, &op->out);
  struct sw_tile_work t = {.element_bytes = as_recorded ? sw_dtype_bytes(result->dtype)
                                                        : 128.0 / sw_format_eps(result->layout->format)};
  int outer = -1;
  for (int l = 0; l < op->n_levels; l++)
    t.output |= op->out.advance[l] || (op->level[l].cut >= 0 && op->level[l].cut < op->n_written);
  for (int l = 0; l < op->n_written; l++)
    if (outer < 0 || op->out.step[l] > op->out.step[outer])
      outer = l;
  t.rows = sw_host_dim(result, 2) / (whole ? (double)sw_op_turns(op) : 1) /
           (outer < 0 ? 1 : (double)op->plan->split[outer]);
  t.cols = sw_host_dim(result, 1);
  for (int i = 0; i < op->n_in; i++) {
    double n = fetches(op, &op->in[i], true), cols = sw_host_dim(&p->storages.v[op->in[i].storage], 1);
    t.again += c->in[i].bytes * (n - 1) / n;
    t.cols = cols > t.cols ? cols : t.cols;
  }
  return t;
}

void sw_cost_of(const struct sw_program *p, const struct sw_op *op, bool as_recorded, struct sw_cost_op *out)
{
  const struct sw_storage *result = &p->storages.v[op->out.storage];
  double bytes = as_recorded ? sw_dtype_bytes(result->dtype) : 128.0 / sw_format_eps(result->layout->format);
  *out = (struct sw_cost_op){.machine = p->machine,
                             .cores = op->plan->cores,
                             .n_in = op->n_in,
                             .is_matmul = op->op == SW_OP_MATMUL || (op->op == SW_OP_MATMULFP8 && !as_recorded)};
  if (!as_recorded || !sw_in_lx(result)) {
    out->rate.rows = sw_host_dim(result, 2);
    out->rate.cols = sw_host_dim(result, 1);
    out->rate.outer = sw_host_dim(result, 3);
  }
  out->is_reduction = sw_device_op_is_reduction(op->op) && !out->is_matmul;
  for (int i = 0; i < op->n_in; i++)
    if (!as_recorded || !read_before(op, i))
      out->in[i] = argument(p, op, &op->in[i], bytes, as_recorded);
  out->out = argument(p, op, &op->out, bytes, as_recorded);
  count_written_part(op, &out->out, bytes);
  bool in_memory[SW_MAX_INPUTS];
  for (int i = 0; i < op->n_in; i++)
    in_memory[i] = out->in[i].bytes > 0;
  if (out->is_matmul)
    out->matmul = matmul_of(p, op, bytes, as_recorded);
  else
    sw_rate_of(p, op, result->layout, in_memory, as_recorded, &out->rate);
  if (as_recorded && op->n_levels)
    out->tile = sw_tile_work_of(p, op, out, true);
}
