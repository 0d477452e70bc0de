#include "base/options.h"

#include "base/number.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One line an option. CHOICE: one of the names in `values`, in the order of the enum. SWITCH: off or on. NUMBER:
 * low..high. SHARE: another way to give a NUMBER, as what a part from 0 to 1 leaves; not echoed. LIST: may be given again. `at` is the field it sets; `given` a flag beside it, where the profile decides
 * as long as nobody else does. */
enum kind { CHOICE, SWITCH, NUMBER, SHARE, LIST };

#define FIELD(name) offsetof(struct sw_options, name)
#define NO_FIELD ((size_t)-1)

/* Bytes of a scratchpad behind programs and their debugging area: 2 MiB - 64 KiB. */
enum { SW_LX_ALL = 2031616 };

static const struct option {
  const char *name;
  enum kind kind;
  size_t at, given;
  const char *values; /* of a CHOICE, separated by '|'; else the placeholder in help texts */
  int64_t low, high;  /* of a NUMBER */
  const char *help;
} table[] = {
    {"profile", CHOICE, FIELD(profile), NO_FIELD, "best|torch-spyre", 0, 0,
     "what may be chosen freely: all, or what the reference compiler does"},
    {"solver", CHOICE, FIELD(solver), NO_FIELD, "ilp|ilp-full|beam|greedy", 0, 0,
     "how layouts are chosen; only ilp and ilp-full prove it"},
    {"objective", CHOICE, FIELD(objective), FIELD(given_objective), "time|elements", 0, 0,
     "what a conversion costs: predicted ns, or padded source elements"},
    {"cores", NUMBER, FIELD(cores), NO_FIELD, "N", 1, 32, "cores of the card that may be used"},
    {"lx-bytes", NUMBER, FIELD(lx_bytes), NO_FIELD, "BYTES", 0, SW_LX_ALL, "scratchpad bytes per core for buffers"},
    {"lx-fraction", SHARE, FIELD(lx_bytes), NO_FIELD, "PART", 0, 0,
     "part of a scratchpad that the card's own software keeps, as DXP_LX_FRAC_AVAIL; lx-bytes is the rest"},
    {"sharing", SWITCH, FIELD(sharing), FIELD(given_sharing), "off|on", 0, 0,
     "one converted copy may serve several readers"},
    {"free-weights", SWITCH, FIELD(free_weights), FIELD(given_free_weights), "off|on", 0, 0,
     "parameters and constants may be laid out at load time"},
    {"beam-width", NUMBER, FIELD(beam_width), NO_FIELD, "N", 1, 1000000, "states that the beam keeps"},
    {"budget", NUMBER, FIELD(budget), NO_FIELD, "N", 1, INT64_MAX,
     "solver work: table entries and branch-and-bound nodes"},
    {"precision", CHOICE, FIELD(precision), NO_FIELD, "device|strict", 0, 0,
     "fp32 attention of core ATen: run in the device's fp16, or refuse"},
    {"lx", SWITCH, FIELD(lx), NO_FIELD, "off|on", 0, 0, "plan the scratchpad"},
    {"lx-placer", CHOICE, FIELD(lx_placer), FIELD(given_lx_placer), "exact|greedy|firstfit|bestfit|stack", 0, 0,
     "how buffers are packed into the scratchpad"},
    {"pool", SWITCH, FIELD(pool), NO_FIELD, "off|on", 0, 0, "intermediates share one pool of memory in a kernel"},
    {"verify", CHOICE, FIELD(verify), NO_FIELD, "auto|always|never", 0, 0,
     "execute the program on the simulated card before it is given out; auto: small ones"},
    {"pin", LIST, FIELD(pins), NO_FIELD, "NAME=LAYOUT", 0, 0,
     "fix a layout: order:1,0 or device_size:4,128,64/stride_map:64,256,1"},
    {"dim-max", LIST, FIELD(dim_max), NO_FIELD, "SYMBOL=MAX[:STEP]", 0, 0, "size of a dynamic dim to compile for"},
    {"tile", LIST, FIELD(tile), NO_FIELD, "NAME:DIM=COUNT", 0, 0,
     "run ops in a loop over that many tiles of a tensor's dim; several nest, the first one outermost"},
    {"split", LIST, FIELD(splits), NO_FIELD, "OP=N,N,..", 0, 0, "cut an op's loops into that many slices over the cores"},
    {"constant", LIST, FIELD(constants), NO_FIELD, "NAME=NUMBER", 0, 0, "replace a constant of the time model"},
};
enum { N_OPTIONS = sizeof table / sizeof table[0] };

void sw_options_init(struct sw_options *o)
{
  *o = (struct sw_options){
      .objective = SW_OBJECTIVE_TIME,
      .sharing = true,
      .free_weights = true,
      .lx = true,
      .pool = true,
      .cores = 32,
      .lx_bytes = 1625344, /* scratchpad.md section 2, fraction 0.2 for the back end */
      .beam_width = 200,
      .budget = 200000000,
  };
}

void sw_options_settle(struct sw_options *o)
{
  bool reference = o->profile == SW_PROFILE_TORCH_SPYRE;
  if (!o->given_sharing)
    o->sharing = !reference;
  if (!o->given_free_weights)
    o->free_weights = !reference;
  if (!o->given_lx_placer)
    o->lx_placer = reference ? SW_LX_GREEDY : SW_LX_EXACT;
  if (!o->given_objective)
    o->objective = reference ? SW_OBJECTIVE_ELEMENTS : SW_OBJECTIVE_TIME;
}

static const struct option *find(const char *name)
{
  for (int i = 0; i < N_OPTIONS; i++)
    if (!strcmp(table[i].name, name))
      return &table[i];
  return NULL;
}

bool sw_option_known(const char *name)
{
  return find(name);
}

bool sw_option_repeats(const char *name)
{
  const struct option *t = find(name);
  return t && t->kind == LIST;
}

/* Position of `value` among the names of a CHOICE, or -1. */
static int choice(const char *values, const char *value)
{
  size_t n = strlen(value);
  int at = 0;
  for (const char *s = values; s; at++) {
    const char *bar = strchr(s, '|');
    size_t len = bar ? (size_t)(bar - s) : strlen(s);
    if (len == n && !memcmp(s, value, n))
      return at;
    s = bar ? bar + 1 : NULL;
  }
  return -1;
}

static enum sw_rc set_list(struct sw_job *job, struct sw_options *o, const struct option *t, const char *value)
{
  const char *equals = strrchr(value, '=');
  if (!equals || equals == value || !equals[1])
    return sw_fail(job, SW_USAGE, "option %s: %s expected, \"%s\" found", t->name, t->values, value);
  if (t->at == FIELD(pins)) {
    struct sw_pin_text *p = SW_PUSH(job->arena, &o->pins);
    p->name = sw_arena_strndup(job->arena, value, (size_t)(equals - value));
    p->layout = sw_arena_strdup(job->arena, equals + 1);
  } else {
    struct sw_texts *texts = (void *)((char *)o + t->at);
    *SW_PUSH(job->arena, texts) = sw_arena_strdup(job->arena, value);
  }
  return SW_OK;
}

static enum sw_rc set_number(struct sw_job *job, const struct option *t, const char *value, int64_t *out)
{
  char *end;
  errno = 0;
  *out = strtoll(value, &end, 10);
  if (*value < '0' || *value > '9' || errno || *end || *out < t->low || *out > t->high)
    return sw_fail(job, SW_USAGE, "option %s: a number from %" PRId64 " to %" PRId64 " expected, \"%s\" found", t->name,
                   t->low, t->high, value);
  return SW_OK;
}

/* Bytes left for buffers, cut to whole bytes and then rounded up to sticks (scratchpad.md section 2): the card's software
 * computes where its part begins in the same way. 0.2 leaves 1,625,344. */
static enum sw_rc set_share(struct sw_job *job, const struct option *t, const char *value, int64_t *out)
{
  char *end;
  double part = strtod(value, &end);
  if (((*value < '0' || *value > '9') && *value != '.') || *end || !(part >= 0 && part <= 1))
    return sw_fail(job, SW_USAGE, "option %s (DXP_LX_FRAC_AVAIL): a number between 0 and 1 expected, \"%s\" found", t->name, value);
  *out = sw_round_up((int64_t)(SW_LX_ALL * (1 - part)), 128);
  return SW_OK;
}

enum sw_rc sw_option_set(struct sw_job *job, struct sw_options *o, const char *name, const char *value)
{
  const struct option *t = find(name);
  if (!t) {
    sw_fault(job, SW_USAGE, "there is no option %s", name)->advice = "see `stickwright help compile`";
    return SW_USAGE;
  }
  char *field = (char *)o + t->at;
  if (t->kind == LIST)
    return set_list(job, o, t, value);
  if (t->kind == NUMBER)
    return set_number(job, t, value, (int64_t *)(void *)field);
  if (t->kind == SHARE)
    return set_share(job, t, value, (int64_t *)(void *)field);
  int at = choice(t->values, value);
  if (at < 0)
    return sw_fail(job, SW_USAGE, "option %s: one of %s expected, \"%s\" found", name, t->values, value);
  if (t->kind == SWITCH)
    *(bool *)(void *)field = at;
  else
    *(unsigned *)(void *)field = (unsigned)at; /* an enum */
  if (t->given != NO_FIELD)
    *(bool *)(void *)((char *)o + t->given) = true;
  return SW_OK;
}

enum sw_rc sw_options_pin_file(struct sw_job *job, struct sw_options *o, const char *text, size_t len)
{
  json_t *root = sw_json_parse(job, "pin file", text, len, 10000000);
  if (!root)
    return job->worst;
  if (!json_is_object(root))
    return sw_fail(job, SW_INVALID, "pin file: an object {NAME: layout} expected");
  const char *name;
  json_t *v;
  json_object_foreach (root, name, v) {
    struct sw_pin_text *p = SW_PUSH(job->arena, &o->pins);
    p->name = sw_arena_strdup(job->arena, name);
    if (json_is_string(v)) {
      p->layout = sw_arena_strdup(job->arena, json_string_value(v));
      continue;
    }
    struct sw_buf b = {.arena = job->arena};
    static const char *const keys[] = {"device_size", "stride_map"};
    for (int k = 0; k < 2; k++) {
      const json_t *list = sw_json_member(job, v, name, keys[k], JSON_ARRAY);
      if (!list)
        return job->worst;
      sw_buf_printf(&b, "%s%s:", k ? "/" : "", keys[k]);
      size_t i;
      json_t *e;
      json_array_foreach (list, i, e) {
        if (!json_is_integer(e))
          return sw_fail(job, SW_INVALID, "pin file: /%s/%s/%zu: an integer expected", name, keys[k], i);
        sw_buf_printf(&b, "%s%" PRId64, i ? "," : "", (int64_t)json_integer_value(e));
      }
    }
    p->layout = sw_buf_text(&b);
  }
  return SW_OK;
}

enum sw_rc sw_options_machine_file(struct sw_job *job, struct sw_options *o, const char *text, size_t len)
{
  json_t *root = sw_json_parse(job, "machine file", text, len, 10000);
  if (!root)
    return job->worst;
  if (!json_is_object(root))
    return sw_fail(job, SW_INVALID, "machine file: an object {NAME: number} expected");
  const char *name;
  json_t *v;
  json_object_foreach (root, name, v) {
    char number[32];
    if (!json_is_number(v))
      return sw_fail(job, SW_INVALID, "machine file: /%s: a number expected", name);
    sw_real_text(number, json_number_value(v));
    *SW_PUSH(job->arena, &o->constants) = sw_arena_printf(job->arena, "%s=%s", name, number);
  }
  return SW_OK;
}

static void write_list(struct sw_jw *w, const struct sw_options *o, const struct option *t)
{
  if (t->at == FIELD(pins)) {
    sw_jw_object(w);
    for (int i = 0; i < o->pins.n; i++)
      sw_jw_kstr(w, o->pins.v[i].name, o->pins.v[i].layout);
    sw_jw_end_object(w);
    return;
  }
  const struct sw_texts *texts = (const void *)((const char *)o + t->at);
  sw_jw_array(w);
  for (int i = 0; i < texts->n; i++)
    sw_jw_str(w, texts->v[i]);
  sw_jw_end_array(w);
}

static void write_choice(struct sw_jw *w, const char *values, unsigned at)
{
  char text[32];
  while (at--)
    values = strchr(values, '|') + 1;
  snprintf(text, sizeof text, "%.*s", (int)strcspn(values, "|"), values);
  sw_jw_str(w, text);
}

void sw_options_write(const struct sw_options *o, struct sw_jw *w)
{
  sw_jw_object(w);
  for (int i = 0; i < N_OPTIONS; i++) {
    const struct option *t = &table[i];
    const char *field = (const char *)o + t->at;
    if (t->kind != SHARE)
      sw_jw_key(w, t->name);
    switch (t->kind) {
    case SHARE: break;
    case CHOICE: write_choice(w, t->values, *(const unsigned *)(const void *)field); break;
    case SWITCH: write_choice(w, t->values, *(const bool *)(const void *)field); break;
    case NUMBER: sw_jw_int(w, *(const int64_t *)(const void *)field); break;
    case LIST: write_list(w, o, t); break;
    }
  }
  sw_jw_end_object(w);
}

void sw_options_help(struct sw_buf *out)
{
  for (int i = 0; i < N_OPTIONS; i++) {
    char left[64];
    snprintf(left, sizeof left, "--%s %s", table[i].name, table[i].values);
    sw_buf_printf(out, "  %-44s %s\n", left, table[i].help);
  }
}
