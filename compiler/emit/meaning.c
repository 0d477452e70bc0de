#include "compiler/emit/superdsc.h"

#include <inttypes.h>
#include <string.h>

/* Whether the files that are about to be written mean what the op spec says (superdsc.md section 16). The strides of
 * memory are printed nowhere: a reader rebuilds them from the padded sizes and the gaps, so both must give back the
 * device size of the tensor. Where they can't, the op is refused.
 *
 * Worked number: rows 3..6 of device size [4,16,64]: N of the rows is 4, the gap 12, and 4 + 12 = 16 is the extent. A
 * restickify of 100 rows in a buffer of 150 pads the rows to 128 and leaves a gap of 22: a reader takes a gap below a
 * stick for rows that do not exist and finds an extent of 106. */

enum { LX_BYTES = (2 << 20) - (64 << 10) }; /* the rest of a scratchpad holds programs */
static const int64_t pool_limit = 0x400000000 - ((int64_t)2 << 30);

static enum sw_rc refuse(struct sw_job *job, const struct sw_sdsc *s, int i, const char *what, const char *advice)
{
  sw_sdsc_fault(job, s, SW_UNSUPPORTED, i, what)->advice = advice;
  return SW_UNSUPPORTED;
}

/* The extent of a dim in memory as a reader of the files finds it. */
static int64_t extent(const struct sw_sdsc *s, const struct sw_sdsc_tensor *t, enum sw_label d)
{
  const struct sw_sdsc_tensor *other = &s->tensor[t == s->tensor ? 1 : 0];
  if (s->is.restickify && t->gap[d] && d != s->layout[t->layout].stick[0] && d == s->layout[other->layout].stick[0] &&
      t->gap[d] < s->layout[other->layout].stick_size[0])
    return s->size[d] - t->gap[d];
  return s->size[d] + t->gap[d];
}

static enum sw_rc check_dim(struct sw_job *job, const struct sw_sdsc *s, int i, enum sw_label d, bool outermost)
{
  const struct sw_sdsc_tensor *t = &s->tensor[i];
  int p = t->position[d];
  if (p < 0 || t->scale[d] != 1 || t->arg->coord[p].form == SW_COORD_INDIRECT)
    return SW_OK;
  int64_t e = d == t->stick ? sw_format_eps(t->arg->format) : 1, in_memory = t->arg->device_size[p] * e;
  int64_t found = extent(s, t, d), start = t->arg->coord[p].k * e;
  const char *name = sw_label_name(d);
  if (t->arg->alloc == SW_ALLOC_LX && in_memory != s->size[d])
    return refuse(job, s, i,
                  sw_arena_printf(job->arena, "%s has %" PRId64 " elements in LX, the op works on %" PRId64, name,
                                  in_memory, s->size[d]),
                  "a part of a tensor in LX can't be named; keep the tensor in HBM");
  bool rows_end_early = found < s->size[d]; /* of a padded restickify: reads there give nothing, writes vanish */
  if (!rows_end_early && start + s->size[d] > in_memory)
    return refuse(job, s, i,
                  sw_arena_printf(job->arena, "%s reaches %" PRId64 " of %" PRId64 " elements in memory", name,
                                  start + s->size[d], in_memory),
                  "a dim that is rounded up to sticks needs memory for them: pad or copy the tensor first");
  if (found != in_memory && !(outermost && found > in_memory - start && !rows_end_early))
    return refuse(job, s, i,
                  sw_arena_printf(job->arena, "a reader would find %" PRId64 " elements of %s in memory instead of %" PRId64,
                                  found, name, in_memory),
                  "copy the slice into a tensor of its own first");
  if (rows_end_early && start)
    return refuse(job, s, i,
                  sw_arena_printf(job->arena, "%s starts at %" PRId64 ", so the padded rows end behind the tensor", name,
                                  start),
                  "copy the slice into a tensor of its own first");
  /* Lanes and rows above the real size are written too: behind a slice they belong to somebody. */
  bool is_output = i == s->n_tensors - 1, is_slice = !rows_end_early || in_memory > s->size[d] - s->pad[d];
  if (is_output && s->pad[d] && d != t->stick && is_slice)
    return refuse(job, s, i, sw_arena_printf(job->arena, "%" PRId64 " rows of padding along %s would be written over "
                                             "the rows behind the slice", s->pad[d], name),
                  "write a whole tensor first, then copy the slice");
  return SW_OK;
}

/* Row numbers are read for the padded dim as well. */
static enum sw_rc check_index_dim(struct sw_job *job, const struct sw_sdsc *s, int i, enum sw_label d)
{
  const struct sw_sdsc_tensor *t = &s->tensor[i];
  int p = t->position[d];
  if (p < 0 || d == s->single || d == t->placeholder)
    return SW_OK;
  int64_t in_memory = t->arg->device_size[p] * (d == t->stick ? t->e : 1);
  if (s->tensor[s->n_tensors - 1].is_value && s->pad[d])
    return refuse(job, s, i,
                  sw_arena_printf(job->arena, "%" PRId64 " row numbers are rounded up to %" PRId64 ", and rows would be written "
                                  "that nobody names", s->size[d] - s->pad[d], s->size[d]),
                  "put the stick of what is written on a dim that row numbers do not count");
  if (in_memory >= s->size[d])
    return SW_OK;
  return refuse(job, s, i,
                sw_arena_printf(job->arena, "%s has %" PRId64 " row numbers in memory, the op reads %" PRId64,
                                sw_label_name(d), in_memory, s->size[d]),
                "put the stick of the result on a dim of the table");
}

/* The two tiles of a pair of float32 sticks of which only lane 0 counts: a cast reads both. */
static bool is_pair(const struct sw_spec_arg *a, int j)
{
  return a->format == SW_FORMAT_FP32 && a->coord[a->rank - 1].form == SW_COORD_CONST && a->device_size[j] == 2;
}

/* Whether a table does not step along a dim of the op. The files can say so of other operands (scale -1), but in a table
 * every dim but those of the row numbers is walked. */
static bool repeats(const struct sw_sdsc *s, const struct sw_sdsc_tensor *t, enum sw_label d)
{
  int p = t->position[d];
  return t->is_value && t->max_dim[d] != 1 && d != t->stick && s->size[d] > 1 &&
         (p < 0 || t->arg->coord[p].form == SW_COORD_CONST);
}

/* Dims are found in memory by their place in the order alone, so each must lie where its coordinate says. A constant
 * in a dim of more than one element would shift all dims outside it. */
static enum sw_rc check_positions(struct sw_job *job, const struct sw_sdsc *s, int i)
{
  const struct sw_sdsc_tensor *t = &s->tensor[i];
  const struct sw_spec_arg *a = t->arg;
  for (int j = 0, outside = 1; j < a->rank; outside *= a->device_size[j++] == 1)
    if (a->coord[j].form == SW_COORD_INDIRECT && !outside)
      return refuse(job, s, i, "the dim that row numbers count is not the outermost one",
                    "copy the table so that its rows are outermost");
  for (int k = 0; k < t->order.n; k++) {
    enum sw_label d = t->order.v[k];
    int p = t->position[d];
    if (repeats(s, t, d))
      return refuse(job, s, i, sw_arena_printf(job->arena, "its rows are one value along %s", sw_label_name(d)),
                    "look the rows up first, then expand them");
    if (p < 0 || t->scale[d] != 1 || a->coord[p].form == SW_COORD_INDIRECT)
      continue;
    bool placeholder = a->coord[p].form == SW_COORD_CONST;
    if (placeholder ? a->device_size[p] != 1 && !t->is_index && !is_pair(a, p) : s->label[a->coord[p].symbol] != d)
      return refuse(job, s, i, sw_arena_printf(job->arena, "device dim %d is not %s", p, sw_label_name(d)),
                    "dims of one element must be outermost, and every other dim needs a symbol");
  }
  for (int j = 0; j < a->rank - 1; j++)
    if (a->coord[j].form == SW_COORD_CONST && a->device_size[j] > 1 && !is_pair(a, j))
      return refuse(job, s, i, sw_arena_printf(job->arena, "device dim %d of %" PRId64 " elements has no symbol", j,
                                               a->device_size[j]),
                    "a fixed place in a dim needs a symbol of range 1");
  return SW_OK;
}

static enum sw_label own_stick(const struct sw_sdsc *s, const struct sw_sdsc_tensor *t)
{
  const struct sw_spec_coord *c = &t->arg->coord[t->arg->rank - 1];
  return c->form == SW_COORD_CONST || c->form == SW_COORD_INDIRECT ? SW_NO_LABEL : s->label[c->symbol];
}

/* The stick dims an op needs: a matmul sums over the stick of its first operand and keeps that of its second, a
 * restickify changes the stick, and everything else works lane by lane. */
static enum sw_rc check_sticks(struct sw_job *job, const struct sw_sdsc *s)
{
  const struct sw_sdsc_tensor *t = s->tensor, *out = &t[s->n_tensors - 1];
  if (s->is.mat) {
    if (sw_labels_has(&out->order, own_stick(s, &t[0])))
      return refuse(job, s, 0, "the stick of the first operand is not the reduced dim", "convert it to another stick");
    if (own_stick(s, &t[1]) != own_stick(s, out))
      return refuse(job, s, 1, "the stick of the second operand is not the stick of the result",
                    "convert it to another stick");
    return SW_OK;
  }
  if (s->is.restickify) {
    enum sw_label from = own_stick(s, t), to = own_stick(s, out);
    return from != to && from != SW_NO_LABEL && to != SW_NO_LABEL
               ? SW_OK
               : refuse(job, s, 0, "a restickify needs two different sticks", "use a copy");
  }
  if (!strcmp(s->fn, "exx2nonstick"))
    return refuse(job, s, 0, "exx2 leaves its sums in the stick that it reads, and its operand has none along the rows",
                  "copy the operand first");
  if (s->spec->is_reduction && !s->is.conv && !s->is.pool && !s->is.topk && s->ref_stick == SW_NO_LABEL &&
      own_stick(s, out) != SW_NO_LABEL)
    return refuse(job, s, 0, "a reduction of one value a stick can't fill the sticks of its result",
                  "copy the operand into whole sticks first");
  if (s->is.conv || s->is.pool || s->is.topk || s->ref_stick == SW_NO_LABEL)
    return SW_OK;
  for (int i = 0; i < s->n_tensors; i++) {
    enum sw_label stick = own_stick(s, &t[i]);
    if (t[i].is_index || stick == s->ref_stick)
      continue;
    bool moves = t[i].is_value || (s->has_index && i == s->n_tensors - 1);
    bool broadcast = stick == SW_NO_LABEL && !moves; /* a gather moves whole sticks of rows */
    for (int j = 0; j < t[i].arg->rank - 1 && broadcast; j++) {
      const struct sw_spec_coord *c = &t[i].arg->coord[j];
      broadcast = c->form == SW_COORD_CONST || c->form == SW_COORD_INDIRECT || s->label[c->symbol] != s->ref_stick;
    }
    if (!broadcast)
      return refuse(job, s, i, sw_arena_printf(job->arena, "the stick is not %s as in the other tensors",
                                               sw_label_name(s->ref_stick)),
                    "convert it to another stick");
  }
  return SW_OK;
}

/* The rows that the windows need are what is in memory (case A3 has 16 and says 17). */
static enum sw_rc check_window(struct sw_job *job, const struct sw_sdsc *s, int i, const struct sw_window *w)
{
  const struct sw_sdsc_tensor *t = &s->tensor[i];
  int64_t rows = 1;
  const enum sw_label parts[] = {w->spatial, w->window};
  for (int k = 0; k < 2; k++)
    if (sw_labels_has(&t->order, parts[k]) && t->position[parts[k]] >= 0)
      rows *= t->arg->device_size[t->position[parts[k]]];
  int64_t wanted = w->whole.total - w->whole.front - w->whole.back;
  if (rows != wanted)
    return refuse(job, s, i,
                  sw_arena_printf(job->arena, "%s has %" PRId64 " rows in memory, the windows need %" PRId64,
                                  sw_label_name(w->spatial), rows, wanted),
                  "crop the image to what the windows cover first");
  int p = t->position[w->spatial];
  if (w->stride > 1 && s->split[w->spatial] > 1 && t->arg->device_size[p] != s->size[w->spatial])
    return refuse(job, s, i, "windows with a stride are split over cores along the rows",
                  "split another loop");
  return SW_OK;
}

static enum sw_rc check_place(struct sw_job *job, const struct sw_opspecs *specs, const struct sw_sdsc *s, int i)
{
  const struct sw_spec_arg *a = s->tensor[i].arg;
  int64_t bytes = 128;
  for (int j = 0; j < a->rank - 1; j++)
    bytes *= a->device_size[j];
  if (a->alloc == SW_ALLOC_POOL &&
      (specs->pool_bytes > pool_limit || a->address + bytes > specs->pool_bytes)) {
    struct sw_fault *f = sw_sdsc_fault(
        job, s, SW_LIMIT, i,
        sw_arena_printf(job->arena, "it ends at byte %" PRId64 " of a pool of %" PRId64, a->address + bytes,
                        specs->pool_bytes));
    f->has_limit = true;
    f->value = specs->pool_bytes > pool_limit ? specs->pool_bytes : a->address + bytes;
    f->limit = specs->pool_bytes > pool_limit ? pool_limit : specs->pool_bytes;
    return SW_LIMIT;
  }
  if (a->alloc != SW_ALLOC_LX)
    return SW_OK;
  const struct sw_sdsc_tensor *t = &s->tensor[i];
  for (int k = 0; k < t->order.n; k++)
    if (t->scale[t->order.v[k]] == 1)
      bytes /= t->own_split[t->order.v[k]];
  if (a->address + bytes > LX_BYTES) {
    struct sw_fault *f = sw_sdsc_fault(job, s, SW_LIMIT, i, "it ends behind the scratchpad");
    f->has_limit = true;
    f->value = a->address + bytes;
    f->limit = LX_BYTES;
    return SW_LIMIT;
  }
  return SW_OK;
}

static enum sw_rc check_split(struct sw_job *job, const struct sw_sdsc *s, enum sw_label d)
{
  int64_t slice = s->size[d] / s->split[d];
  bool whole = s->size[d] % s->split[d] == 0;
  for (int i = 0; i < s->n_tensors && whole; i++) {
    const struct sw_sdsc_tensor *t = &s->tensor[i];
    int64_t own = s->size[d] / t->own_split[d];
    whole = d != t->stick || t->scale[d] != 1 ||
            ((own % t->e == 0 || s->split[d] == 1) && s->size[d] % t->own_split[d] == 0);
  }
  if (whole)
    return SW_OK;
  struct sw_fault *f = sw_sdsc_fault(
      job, s, SW_UNSUPPORTED, -1,
      sw_arena_printf(job->arena, "%s of %" PRId64 " elements does not split over %" PRId64 " cores in whole %s (%" PRId64
                      " each)",
                      sw_label_name(d), s->size[d], s->split[d], s->size[d] % s->split[d] ? "rows" : "sticks", slice));
  f->advice = "choose a number of cores that divides the rows, or the sticks";
  return SW_UNSUPPORTED;
}

enum sw_rc sw_sdsc_meaning(struct sw_job *job, const struct sw_opspecs *specs, const struct sw_sdsc *s)
{
  enum sw_rc worst = check_sticks(job, s), rc;
  for (int k = 0; k < s->dims.n; k++)
    worst = (rc = check_split(job, s, s->dims.v[k])) > worst ? rc : worst;
  for (int i = 0; i < s->n_tensors; i++) {
    const struct sw_sdsc_tensor *t = &s->tensor[i];
    worst = (rc = check_place(job, specs, s, i)) > worst ? rc : worst;
    if (!s->is.conv && !s->is.pool)
      worst = (rc = check_positions(job, s, i)) > worst ? rc : worst;
    for (int k = 0; k < s->n_windows; k++)
      if (i < s->n_in && !(s->is.conv && i > 0) && sw_labels_has(&t->order, s->window[k].spatial))
        worst = (rc = check_window(job, s, i, &s->window[k])) > worst ? rc : worst;
    for (int k = 0; k < t->order.n; k++)
      if (t->is_index)
        worst = (rc = check_index_dim(job, s, i, t->order.v[k])) > worst ? rc : worst;
      else if (!t->is_value && !s->n_windows)
        worst = (rc = check_dim(job, s, i, t->order.v[k], k == t->order.n - 1)) > worst ? rc : worst;
  }
  return worst;
}
