#include "compiler/emit/superdsc.h"

#include <inttypes.h>
#include <string.h>

/* Who may read what, when (superdsc.md section 16, M1, M5, M6). The cores of one op are unordered, so an op must not
 * write what another of its cores still reads; pool and scratchpads are used again and again, so a reader must find what
 * its own tensor's writer left; and a scratchpad holds only what its own core wrote, so a reader must be cut over the
 * cores exactly as the writer was.
 *
 * Worked number: 128 rows written by 32 cores lie 4 by 4 in the scratchpads. A reader with rows cut into 4 x 32 and
 * cores into 4 x 8 owns the same rows if its first part varies slowest: slot 8 * outer + inner, 4 rows each. */

/* -- within one op -- */

static int64_t length(const struct sw_spec *p, const struct sw_spec_coord *c)
{
  switch (c->form) {
  case SW_COORD_SYMBOL:
    return p->space.v[c->symbol].range;
  case SW_COORD_FLOOR:
    return (p->space.v[c->symbol].range + c->e - 1) / c->e;
  case SW_COORD_MOD:
    return c->e;
  case SW_COORD_CONST:
  case SW_COORD_INDIRECT:
    break;
  }
  return 1;
}

static bool same_place(const struct sw_spec_arg *a, const struct sw_spec_arg *b)
{
  if (a->rank != b->rank || a->address != b->address)
    return false;
  for (int j = 0; j < a->rank; j++) {
    const struct sw_spec_coord *x = &a->coord[j], *y = &b->coord[j];
    if (a->device_size[j] != b->device_size[j] || x->form != y->form || x->k != y->k ||
        (x->form != SW_COORD_CONST && x->form != SW_COORD_INDIRECT && x->symbol != y->symbol))
      return false;
  }
  return true;
}

/* Whether two parts of one buffer have a device dim in which they do not meet. */
static bool apart(const struct sw_spec *p, const struct sw_spec_arg *a, const struct sw_spec_arg *b)
{
  bool same_shape = a->rank == b->rank && a->address == b->address &&
                    !memcmp(a->device_size, b->device_size, (size_t)a->rank * sizeof *a->device_size);
  for (int j = 0; same_shape && j < a->rank; j++) {
    const struct sw_spec_coord *x = &a->coord[j], *y = &b->coord[j];
    if (x->form == SW_COORD_INDIRECT || y->form == SW_COORD_INDIRECT)
      continue;
    if (x->k + length(p, x) <= y->k || y->k + length(p, y) <= x->k)
      return true;
  }
  return false;
}

/* Bytes from the start address on: a whole buffer, in LX one core's part. */
static int64_t bytes_of(const struct sw_sdsc_tensor *t)
{
  int64_t bytes = 128;
  for (int j = 0; j < t->arg->rank - 1; j++)
    bytes *= t->arg->device_size[j];
  for (int k = 0; t->arg->alloc == SW_ALLOC_LX && k < t->order.n; k++)
    if (t->scale[t->order.v[k]] == 1)
      bytes /= t->own_split[t->order.v[k]];
  return bytes;
}

static bool meet(const struct sw_sdsc_tensor *a, const struct sw_sdsc_tensor *b)
{
  if (a->arg->alloc != b->arg->alloc)
    return false;
  if (a->arg->alloc == SW_ALLOC_HBM)
    return a->arg->arg_index == b->arg->arg_index;
  return a->start < b->start + bytes_of(b) && b->start < a->start + bytes_of(a);
}

static enum sw_rc broken(struct sw_job *job, const struct sw_sdsc *s, int i, const char *what)
{
  /* From our own plan this is our mistake, from a file somebody else's. */
  enum sw_rc rc = s->spec->origin ? SW_INTERNAL : SW_UNSUPPORTED;
  sw_sdsc_fault(job, s, rc, i, what)->advice = "place the buffers apart, or cut both ops alike over the cores";
  return rc;
}

static enum sw_rc check_op(struct sw_job *job, const struct sw_sdsc *s)
{
  const struct sw_sdsc_tensor *out = &s->tensor[s->n_tensors - 1];
  bool lanewise = !s->spec->is_reduction && !s->is.restickify && !s->has_index && strcmp(s->fn, "shuffle");
  for (int i = 0; i < s->n_tensors - 1; i++) {
    const struct sw_sdsc_tensor *in = &s->tensor[i];
    if (!meet(in, out) || (lanewise && same_place(in->arg, out->arg)) || apart(s->spec, in->arg, out->arg))
      continue;
    return broken(job, s, i, "the op writes memory that another of its cores may still read");
  }
  if (s->spec->is_reduction && out->arg->alloc == SW_ALLOC_LX)
    for (int k = 0; k < s->dims.n; k++) {
      enum sw_label d = s->dims.v[k];
      if (s->split[d] > 1 && (!sw_labels_has(&out->order, d) || out->scale[d] != 1))
        return broken(job, s, s->n_tensors - 1, "partial sums of several cores can't be added up in LX");
    }
  return SW_OK;
}

/* -- what lies where: memory that a kernel reuses -- */

/* Device dims with more than one element, outermost first, neighbours merged where that changes nothing: how many
 * slices each is cut into, and which one each core has. */
struct ownership {
  enum sw_alloc_kind where;
  const char *storage; /* NULL: not known */
  int64_t start, bytes;
  int n, cores;
  int64_t extent[SW_N_LABELS], split[SW_N_LABELS];
  int *slot; /* cores x SW_N_LABELS */
};

static int slot_of(const struct sw_sdsc *s, const struct sw_sdsc_tensor *t, int core, enum sw_label d)
{
  if (!strcmp(s->fn, "shuffle"))
    return (int)(core / t->own_below[d] % t->own_split[d]);
  return s->slot[core * (int)SW_N_LABELS + (int)d];
}

static struct ownership own(struct sw_arena *a, const struct sw_sdsc *s, const struct sw_sdsc_tensor *t)
{
  struct ownership o = {.where = t->arg->alloc,
                        .storage = t->arg->storage,
                        .start = t->start,
                        .bytes = bytes_of(t),
                        .cores = s->cores};
  o.slot = SW_NEW_N(a, int, s->cores * (int)SW_N_LABELS);
  for (int k = t->order.n - 1; k >= 0; k--) {
    enum sw_label d = t->order.v[k];
    int p = t->position[d];
    if (p < 0 || t->scale[d] != 1 || t->arg->device_size[p] == 1)
      continue;
    int64_t extent = t->arg->device_size[p], split = t->own_split[d];
    int last = o.n - 1;
    bool merges = o.n && (split == 1 || o.extent[last] == o.split[last]);
    int at = merges ? last : o.n++;
    o.extent[at] = merges ? o.extent[at] * extent : extent;
    o.split[at] = merges ? o.split[at] * split : split;
    for (int c = 0; c < s->cores; c++) {
      int *slot = &o.slot[c * (int)SW_N_LABELS + at];
      *slot = merges ? *slot * (int)split + slot_of(s, t, c, d) : slot_of(s, t, c, d);
    }
  }
  return o;
}

static bool same_owner(const struct ownership *writer, const struct ownership *reader)
{
  if (writer->n != reader->n || writer->cores < reader->cores || writer->bytes != reader->bytes)
    return false;
  for (int k = 0; k < writer->n; k++) {
    if (writer->extent[k] != reader->extent[k] || writer->split[k] != reader->split[k])
      return false;
    for (int c = 0; c < reader->cores; c++)
      if (writer->slot[c * (int)SW_N_LABELS + k] != reader->slot[c * (int)SW_N_LABELS + k])
        return false;
  }
  return true;
}

struct live {
  SW_VEC(struct ownership) v;
};

static bool overlap(const struct ownership *a, const struct ownership *b)
{
  return a->where == b->where && a->start < b->start + b->bytes && b->start < a->start + a->bytes;
}

static enum sw_rc check_read(struct sw_job *job, struct sw_arena *a, const struct live *live, const struct sw_sdsc *s,
                             int i)
{
  struct ownership r = own(a, s, &s->tensor[i]);
  bool found = false;
  for (int k = 0; k < live->v.n; k++) {
    const struct ownership *w = &live->v.v[k];
    if (!overlap(w, &r))
      continue;
    found = true;
    if (w->storage && r.storage && strcmp(w->storage, r.storage))
      return broken(job, s, i, sw_arena_printf(job->arena, "%s has been written over it", w->storage));
    if (r.where == SW_ALLOC_LX && (w->start != r.start || !same_owner(w, &r)))
      return broken(job, s, i, "a core reads another part in LX than it wrote");
  }
  /* Scratchpads and a new pool hold nothing when a kernel starts. */
  return found || !s->spec->origin ? SW_OK : broken(job, s, i, "it is read, but this kernel has not written it");
}

static void note_write(struct sw_arena *a, struct live *live, const struct sw_sdsc *s)
{
  struct ownership w = own(a, s, &s->tensor[s->n_tensors - 1]);
  int n = 0;
  for (int k = 0; k < live->v.n; k++)
    if (!overlap(&live->v.v[k], &w))
      live->v.v[n++] = live->v.v[k];
  live->v.n = n;
  *SW_PUSH(a, &live->v) = w;
}

struct walker {
  struct sw_job *job;
  struct sw_arena *scratch;
  const struct sw_bundle *b;
  struct live live;
  int at; /* number of the next op */
};

static enum sw_rc check_one(struct walker *w)
{
  const struct sw_sdsc *s = w->b->sdsc.v[w->at++];
  enum sw_rc rc = check_op(w->job, s);
  for (int i = 0; i < s->n_tensors - 1 && rc == SW_OK; i++)
    if (s->tensor[i].arg->alloc != SW_ALLOC_HBM)
      rc = check_read(w->job, w->scratch, &w->live, s, i);
  if (s->tensor[s->n_tensors - 1].arg->alloc != SW_ALLOC_HBM)
    note_write(w->scratch, &w->live, s);
  return rc;
}

/* The second turn of a loop finds what the first one left; a third would find nothing else. */
static enum sw_rc walk(struct walker *w, struct sw_spec *const *specs, int n)
{
  enum sw_rc worst = SW_OK, rc;
  for (int i = 0; i < n; i++) {
    int first = w->at;
    for (int turn = 0; turn == 0 || (turn == 1 && specs[i]->is_loop && worst == SW_OK); turn++) {
      w->at = first;
      rc = specs[i]->is_loop ? walk(w, specs[i]->body.v, specs[i]->body.n) : check_one(w);
      worst = rc > worst ? rc : worst;
    }
  }
  return worst;
}

enum sw_rc sw_bundle_hazards(struct sw_job *job, const struct sw_bundle *b)
{
  struct walker w = {.job = job, .scratch = sw_arena_new(job->arena, 0), .b = b};
  enum sw_rc rc = walk(&w, b->specs->specs.v, b->specs->specs.n);
  sw_arena_free(w.scratch);
  return rc;
}
