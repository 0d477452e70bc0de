#include "compiler/emit/superdsc.h"

#include <string.h>

/* From op specs to sdsc_N.json and bundle.mlir: every op is worked out completely before the first byte is written, so
 * that all faults are found and a bundle with one is not written at all. */

static bool is(const struct sw_spec *p, const char *op)
{
  return !strcmp(p->op, op);
}

static struct sw_op_class class_of(const struct sw_spec *p)
{
  struct sw_op_class c = {
      .mat = is(p, "batchmatmul") || is(p, "batchmatmulfp8"),
      .fwd = is(p, "conv2d"),
      .dw = is(p, "depthwiseconv2dnative"),
      .pool = is(p, "avgpoolfwd"),
      .topk = is(p, "topkvalue") || is(p, "topkindex"),
      .cvt = is(p, "dl16tofp32") || is(p, "fp32todl16") || is(p, "fp8todl16"),
      .restickify = is(p, "ReStickifyOpHBM"),
      .layernormscale = is(p, "layernormscale"),
  };
  c.conv = c.fwd || c.dw;
  return c;
}

/* Which tensors hold row numbers for which. */
static void relate(struct sw_sdsc *s)
{
  for (int i = 0; i < s->n_tensors; i++)
    for (int d = 0; d < s->tensor[i].arg->rank; d++) {
      const struct sw_spec_coord *c = &s->tensor[i].arg->coord[d];
      for (int j = 0; c->form == SW_COORD_INDIRECT && j < s->n_tensors; j++) {
        struct sw_sdsc_tensor *index = &s->tensor[j];
        if (j == i || !index->arg->name || strcmp(index->arg->name, c->name))
          continue;
        index->is_index = s->tensor[i].is_value = s->has_index = true;
        index->related = i;
        s->tensor[i].related = j;
      }
    }
}

static void set_formats(struct sw_sdsc *s)
{
  for (int i = 0; i < s->n_tensors; i++) {
    struct sw_sdsc_tensor *t = &s->tensor[i];
    t->fmt = t->is_index                                                       ? SW_FORMAT_UINT32
             : is(s->spec, "identity") && t->arg->format == SW_FORMAT_INT32 ? SW_FORMAT_FP32
                                                                            : t->arg->format;
    t->e = sw_format_eps(t->fmt);
    t->bytes = 128 / t->e;
  }
}

static struct sw_sdsc *make(struct sw_job *job, const struct sw_opspecs *specs, const struct sw_spec *p, int number)
{
  struct sw_sdsc *s = SW_NEW(job->arena, struct sw_sdsc);
  s->spec = p;
  s->number = number;
  s->k_fast = specs->k_fast;
  s->is = class_of(p);
  s->n_tensors = p->args.n;
  s->tensor = SW_NEW_N(job->arena, struct sw_sdsc_tensor, s->n_tensors);
  for (int d = 0; d < SW_N_LABELS; d++)
    s->split[d] = 1;
  for (int i = 0; i < s->n_tensors; i++) {
    s->tensor[i].arg = &p->args.v[i];
    s->tensor[i].related = -1;
    s->tensor[i].placeholder = SW_NO_LABEL;
    for (int d = 0; d < SW_N_LABELS; d++)
      s->tensor[i].position[d] = -1;
  }
  relate(s);
  set_formats(s);
  return s;
}

static bool same_division(const struct sw_work_division *a, const struct sw_work_division *b)
{
  if (a->slices.n != b->slices.n)
    return false;
  for (int i = 0; i < a->slices.n; i++)
    if (strcmp(a->slices.v[i].symbol, b->slices.v[i].symbol) || a->slices.v[i].n != b->slices.v[i].n ||
        a->slices.v[i].below != b->slices.v[i].below)
      return false;
  return true;
}

/* A copy inside LX between two ways of spreading a tensor over the cores is a shuffle (9.5). */
static enum sw_rc set_ownership(struct sw_job *job, struct sw_sdsc *s)
{
  bool any = false;
  for (int i = 0; i < s->n_tensors; i++) {
    struct sw_sdsc_tensor *t = &s->tensor[i];
    any = any || t->arg->work_division;
    for (int d = 0; d < SW_N_LABELS; d++) {
      t->own_split[d] = s->split[d];
      t->own_below[d] = 1;
    }
  }
  if (!any)
    return SW_OK;
  const struct sw_spec_arg *a = s->tensor[0].arg, *b = s->tensor[s->n_tensors - 1].arg;
  if (!is(s->spec, "identity") || s->n_tensors != 2 || a->alloc != SW_ALLOC_LX || b->alloc != SW_ALLOC_LX ||
      !a->work_division || !b->work_division) {
    sw_sdsc_fault(job, s, SW_UNSUPPORTED, -1, "only a copy from LX to LX may have a work division per tensor");
    return SW_UNSUPPORTED;
  }
  if (!same_division(a->work_division, b->work_division))
    s->fn = "shuffle";
  int64_t cores = 1;
  for (int k = 0; k < s->dims.n; k++)
    cores *= s->split[s->dims.v[k]];
  for (int i = 0; i < 2; i++) {
    struct sw_sdsc_tensor *t = &s->tensor[i];
    const struct sw_work_division *w = t->arg->work_division;
    int64_t product = 1;
    for (int d = 0; d < SW_N_LABELS; d++)
      t->own_split[d] = 1;
    for (int k = 0; k < w->slices.n; k++)
      for (int j = 0; j < s->spec->space.n; j++)
        if (!strcmp(s->spec->space.v[j].name, w->slices.v[k].symbol)) {
          t->own_split[s->label[j]] = w->slices.v[k].n;
          t->own_below[s->label[j]] = w->slices.v[k].below;
          product *= w->slices.v[k].n;
        }
    if (product != cores) {
      sw_sdsc_fault(job, s, SW_INVALID, i, "the slices of a work division are not as many as the cores");
      return SW_INVALID;
    }
  }
  return SW_OK;
}

static enum sw_rc work_out(struct sw_job *job, struct sw_bundle *b, struct sw_sdsc *s)
{
  if (s->spec->shared_weight_unit_bmm && s->spec->space.n < 4) {
    sw_sdsc_fault(job, s, SW_UNSUPPORTED, -1, "shared_weight_unit_bmm without its unit symbol");
    return SW_UNSUPPORTED;
  }
  SW_TRY(sw_sdsc_dims(job, s));
  SW_TRY(sw_sdsc_tensors(job, s));
  SW_TRY(sw_sdsc_windows(job, s));
  SW_TRY(set_ownership(job, s));
  SW_TRY(sw_sdsc_meaning(job, b->specs, s));
  return sw_sdsc_addresses(job, b, s);
}

static enum sw_rc visit(struct sw_job *job, struct sw_bundle *b, const struct sw_spec *p)
{
  enum sw_rc worst = SW_OK;
  if (!p->is_loop) {
    struct sw_sdsc *s = make(job, b->specs, p, b->sdsc.n);
    *SW_PUSH(job->arena, &b->sdsc) = s;
    return p->args.n ? work_out(job, b, s) : sw_fail(job, SW_UNSUPPORTED, "%s: an op without tensors", p->op);
  }
  for (int i = 0; i < p->body.n; i++) {
    enum sw_rc rc = visit(job, b, p->body.v[i]);
    worst = rc > worst ? rc : worst;
  }
  return worst;
}

/* One text after the other in the same memory. */
static void write_files(struct sw_job *job, struct sw_arena *scratch, const struct sw_bundle *b, const char *folder,
                        struct sw_files *out)
{
  struct sw_buf text = {.arena = scratch};
  for (int i = 0; i < b->sdsc.n; i++) {
    char path[64];
    text.n = 0;
    sw_sdsc_write(b->sdsc.v[i], &text);
    snprintf(path, sizeof path, "%ssdsc_%d.json", folder, i);
    sw_emit_keep(job, out, path, &text);
  }
  text.n = 0;
  sw_bundle_write(b, &text);
  sw_emit_keep(job, out, sw_arena_printf(scratch, "%sbundle.mlir", folder), &text);
}

enum sw_rc sw_emit_superdsc(struct sw_job *job, const struct sw_opspecs *specs, const char *folder,
                            struct sw_files *out)
{
  SW_TRY(sw_spec_check(job, specs));
  struct sw_arena *scratch = sw_arena_new(job->arena, 0);
  struct sw_bundle b = {.specs = specs, .sizes = {.arena = scratch}};
  enum sw_rc worst = SW_OK;
  for (int i = 0; i < specs->specs.n; i++) {
    enum sw_rc rc = visit(job, &b, specs->specs.v[i]);
    worst = rc > worst ? rc : worst;
  }
  if (worst == SW_OK)
    worst = sw_bundle_hazards(job, &b);
  if (worst == SW_OK && out)
    write_files(job, scratch, &b, folder, out);
  sw_arena_free(scratch);
  return worst;
}
