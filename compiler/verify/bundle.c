#include "compiler/verify/bundle.h"

#include "base/map.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* The text has one statement a line and a handful of forms (superdsc.md section 10), so it is read by words. A name
 * (%arg_0, %i_1) stands for one integer; loops are run by going back to their first line. */
struct affine {
  int n;
  int64_t factor[8];
};

/* What a loop variable adds to an address, by place in values. */
struct moves {
  int n;
  int variable[8];
  int64_t factor[8];
};

struct loop {
  int first; /* line behind the scf.for */
  int n_executes; /* before it */
  int64_t count, at;
  int variable;
};

/* Which sizes a parameter says that it takes; 0: it is none. */
struct sizes {
  int64_t step, most;
};

enum { DEEPEST = 16, POOL_SPACE = 1 << 20 };

struct run {
  struct sw_job *job;
  const struct sim_files *files;
  const struct sim_form *form;
  bool has_function, has_pool;
  bool is_dry; /* nothing is executed, a loop runs once, parameters are their numbers */
  struct sim_seen_list *seen;
  struct loop loops[DEEPEST];
  int depth;
  struct sim_card card;
  SW_VEC(char *) lines;
  struct sw_map names; /* name -> place in values */
  SW_VEC(int64_t) values;
  SW_VEC(struct moves) moves; /* by place in values */
  SW_VEC(struct sizes) sizes; /* as well */
  SW_VEC(struct affine) maps;
  struct sw_map parsed; /* file -> place in ops */
  SW_VEC(struct dsc *) ops;
  int line, n_executes;
};

static enum sw_rc wrong(struct run *r, const char *what)
{
  return sw_fail(r->job, SW_DIFFERENT, "bundle.mlir line %d: %s", r->line + 1, what);
}

/* Numbers of a text may be any; what they lead to is checked where it is used. */
static int64_t sum(int64_t a, int64_t b)
{
  return (int64_t)((uint64_t)a + (uint64_t)b);
}

/* The word that starts at s: %name, #name, number with sign. */
static size_t word(const char *s)
{
  return strspn(s, "%#-_.abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789");
}

static int value_place(struct run *r, const char *name, size_t len)
{
  int64_t at = sw_map_get(&r->names, name, len);
  if (at < 0) {
    at = r->values.n;
    sw_map_set(&r->names, name, len, at);
    *SW_PUSH(r->job->arena, &r->values) = 0;
    SW_PUSH(r->job->arena, &r->moves)->n = 0;
    *SW_PUSH(r->job->arena, &r->sizes) = (struct sizes){0};
  }
  return (int)at;
}

static bool lookup(struct run *r, const char *s, int64_t *out)
{
  int64_t at = sw_map_get(&r->names, s, word(s));
  if (at < 0)
    return false;
  *out = r->values.v[at];
  return true;
}

static void define(struct run *r, const char *s, int64_t value)
{
  int at = value_place(r, s, word(s)); /* may move the values */
  r->values.v[at] = value;
}

/* "#map_0 = affine_map<(d0, d1)[s0] -> (s0 + 65536*d0 + 2097152*d1)>" */
static enum sw_rc read_map(struct run *r, const char *s)
{
  struct affine *m = SW_PUSH(r->job->arena, &r->maps);
  const char *p = strstr(s, "(s0");
  if (atoi(s + strlen("#map_")) != r->maps.n - 1 || !p)
    return wrong(r, "an affine map out of order or of unknown form");
  for (p += 3; (p = strstr(p, " + ")); m->n++) {
    char *end;
    if (m->n == 8)
      return wrong(r, "an affine map with more than 8 variables");
    m->factor[m->n] = strtoll(p + 3, &end, 10);
    if (end[0] != '*' || end[1] != 'd' || atoi(end + 2) != m->n)
      return wrong(r, "an affine map of unknown form");
    p = end;
  }
  return SW_OK;
}

/* "%sym_0_1_base: !sdscbundle.input_arg<index, granularity=32, max_value=256>": the sizes that it takes have to be those that
 * the program serves. */
static enum sw_rc read_sizes(struct run *r, const char *s, const struct sim_argument *arg)
{
  const char *end = strchr(s, '>'), *step = strstr(s, "granularity="), *most = strstr(s, "max_value=");
  struct sizes *z = &r->sizes.v[value_place(r, s, word(s))];
  if (!end || !step || !most || step > end || most > end)
    return wrong(r, "a size without granularity and max_value");
  *z = (struct sizes){strtoll(step + strlen("granularity="), NULL, 10), strtoll(most + strlen("max_value="), NULL, 10)};
  if (z->step < 1 || z->most < z->step)
    return wrong(r, "a size of impossible granularity or max_value");
  if (arg && arg->step && (arg->step != z->step || arg->most != z->most))
    return wrong(r, sw_arena_printf(r->job->arena, "a size of granularity %" PRId64 " up to %" PRId64 ", the program serves steps of %"
                                    PRId64 " up to %" PRId64, z->step, z->most, arg->step, arg->most));
  if (arg && (arg->number % z->step || arg->number > z->most))
    return wrong(r, "a size that the parameter does not take");
  return SW_OK;
}

/* Parameters in order; "%arg_3_base_addr: ..." and "%sym_0_1_base: ...". */
static enum sw_rc read_parameters(struct run *r, const char *s, const struct sim_argument *args, int n_args)
{
  int n = 0;
  if (r->has_function)
    return wrong(r, "a second function");
  r->has_function = true;
  for (const char *p = strchr(s, '('); p && (p = strchr(p, '%')); p += word(p), n++) {
    if (r->is_dry) {
      bool is_size = strncmp(p, "%arg_", 5) != 0;
      define(r, p, is_size ? 0 : (int64_t)(n + 1) << SIM_SPACE_BITS);
      if (is_size)
        SW_TRY(read_sizes(r, p, NULL));
      continue;
    }
    if (n == n_args)
      return wrong(r, "the function has more parameters than the launch has arguments");
    bool is_buffer = !strncmp(p, "%arg_", 5);
    if (is_buffer != (args[n].memory != NULL))
      return wrong(r, "a parameter and its argument are of different kind");
    int64_t value = args[n].number;
    if (is_buffer) {
      r->card.hbm[r->card.n_hbm++] = args[n].memory;
      value = (int64_t)r->card.n_hbm << SIM_SPACE_BITS;
    }
    define(r, p, value);
    if (!is_buffer)
      SW_TRY(read_sizes(r, p, &args[n]));
  }
  return n == n_args || r->is_dry ? SW_OK : wrong(r, "the function has fewer parameters than the launch has arguments");
}

static struct dsc *op(struct run *r, const char *file)
{
  int64_t at = sw_map_get_str(&r->parsed, file);
  if (at >= 0)
    return r->ops.v[at];
  const char *text;
  size_t len;
  if (!r->files->read(r->files->ctx, r->job, file, &text, &len))
    return NULL;
  struct dsc *d = dsc_read(r->job, r->form, file, text, len);
  sw_map_set_str(&r->parsed, file, r->ops.n);
  *SW_PUSH(r->job->arena, &r->ops) = d;
  return d;
}

static bool has(const int64_t *list, int n, int64_t id)
{
  for (int i = 0; i < n; i++)
    if (list[i] == id)
      return true;
  return false;
}

/* Section 10.4: an execute passes each symbol that its file names, once, and no other. */
static enum sw_rc check_symbols(struct run *r, const struct dsc *d, const struct sim_symbols *s, const struct sizes *sizes)
{
  struct sw_arena *a = r->job->arena;
  for (int i = 0; i < s->n; i++) {
    bool used = has(d->symbol, d->n_symbols, s->ids[i]);
    for (int t = 0; t < d->n_tensors && !used; t++)
      used = !d->tensor[t].is_lx && has(d->tensor[t].start, d->n_cores, s->ids[i]);
    if (!used || has(s->ids, i, s->ids[i]))
      return wrong(r, sw_arena_printf(a, "symbol %" PRId64 " is passed %s", s->ids[i],
                                      used ? "twice" : sw_arena_printf(a, "and %s does not use it", d->file)));
  }
  for (int t = 0; t < d->n_tensors; t++)
    for (int c = 0; c < d->n_cores && !d->tensor[t].is_lx; c++)
      if (!has(s->ids, s->n, d->tensor[t].start[c]))
        return wrong(r, sw_arena_printf(a, "%s: tensor %d starts at symbol %" PRId64 ", which is not passed", d->file, t,
                                        d->tensor[t].start[c]));
  for (int k = 0; k < d->n_symbols; k++)
    for (int i = 0; i < s->n; i++)
      if (s->ids[i] == d->symbol[k] && (sizes[i].step != d->symbol_step[k] || sizes[i].most != d->symbol_most[k]))
        return wrong(r, sw_arena_printf(a, "%s: symbol %" PRId64 " goes in steps of %" PRId64 " up to %" PRId64 ", what is passed in steps of %"
                                        PRId64 " up to %" PRId64, d->file, s->ids[i], d->symbol_step[k], d->symbol_most[k], sizes[i].step,
                                        sizes[i].most));
  return SW_OK;
}

/* Puts the execute down; `at` is the text of its operands. */
static void see(struct run *r, const struct dsc *d, const struct sim_symbols *symbols, const char *at)
{
  struct sw_arena *a = r->job->arena;
  struct sim_seen *seen = SW_PUSH(a, &r->seen->list);
  seen->d = d;
  seen->n = symbols->n;
  seen->n_loops = r->depth;
  seen->symbols = SW_NEW_N(a, struct sim_symbol_seen, symbols->n);
  for (int i = 0; i < symbols->n; i++, at += word(at)) {
    struct sim_symbol_seen *s = &seen->symbols[i];
    int64_t space = symbols->values[i] >> SIM_SPACE_BITS;
    at = strchr(at, '%');
    const struct moves *m = &r->moves.v[value_place(r, at, word(at))];
    s->id = symbols->ids[i];
    s->argument = space == POOL_SPACE ? SIM_POOL : space ? (int)space - 1 : SIM_NUMBER;
    s->offset = symbols->values[i] - (space << SIM_SPACE_BITS);
    s->move = SW_NEW_N(a, int64_t, r->depth);
    for (int l = 0; l < r->depth; l++)
      for (int k = 0; k < m->n; k++)
        s->move[l] += m->variable[k] == r->loops[l].variable ? m->factor[k] : 0;
  }
}

/* sdscbundle.sdsc_execute (%a, %b) {sdsc_filename="sdsc_0.json", "symbol_ids"=[-1, -2]} */
static enum sw_rc execute(struct run *r, const char *s)
{
  enum { MOST = 4096 };
  static const char file_key[] = "sdsc_filename=\"", ids_key[] = "\"symbol_ids\"=[";
  const char *file = strstr(s, file_key), *ids = strstr(s, ids_key), *end = strchr(s, ')');
  if (!file || !ids || !end)
    return wrong(r, "an execute of unknown form");
  struct sim_symbols symbols = {0};
  struct sw_arena *a = sw_arena_new(r->job->arena, 0);
  int64_t *values = SW_NEW_N(a, int64_t, MOST), *numbers = SW_NEW_N(a, int64_t, MOST);
  struct sizes *sizes = SW_NEW_N(a, struct sizes, MOST);
  int n_values = 0;
  for (const char *p = s; (p = strchr(p, '%')) && p < end && n_values < MOST; p += word(p)) {
    if (!lookup(r, p, &values[n_values])) {
      sw_arena_free(a);
      return wrong(r, "an operand that was never defined");
    }
    sizes[n_values++] = r->sizes.v[value_place(r, p, word(p))];
  }
  for (const char *p = ids + strlen(ids_key); *p && *p != ']' && symbols.n < MOST;) {
    char *next;
    numbers[symbols.n++] = strtoll(p, &next, 10);
    if (next == p)
      break;
    p = next + strspn(next, ", ");
  }
  symbols.ids = numbers;
  symbols.values = values;
  file += strlen(file_key);
  char *name = sw_arena_strndup(r->job->arena, file, strcspn(file, "\""));
  enum sw_rc rc = n_values == symbols.n ? SW_OK : wrong(r, "operands and symbol ids differ in number");
  const struct dsc *d = rc == SW_OK ? op(r, name) : NULL;
  if (rc == SW_OK)
    rc = d ? check_symbols(r, d, &symbols, sizes) : r->job->worst;
  if (rc == SW_OK && sw_cancelled(r->job))
    rc = sw_fail(r->job, SW_CANCELLED, "cancelled in bundle.mlir line %d", r->line + 1);
  if (rc == SW_OK && r->seen)
    see(r, d, &symbols, s);
  if (rc == SW_OK && !r->is_dry)
    rc = sim_execute(r->job, &r->card, d, &symbols);
  sw_arena_free(a);
  return rc;
}

/* "%x = arith.constant 5 : index", "%x = arith.addi %a, %b : index", "%x = affine.apply #map_0(%i_0)[%b]", ... */
static enum sw_rc assign(struct run *r, const char *s)
{
  const char *is = strstr(s, " = ");
  if (!is)
    return wrong(r, "a statement of unknown form");
  const char *what = is + 3;
  int64_t a, b;
  if (!strncmp(what, "arith.constant ", 15)) {
    define(r, s, strtoll(what + 15, NULL, 10));
  } else if (!strncmp(what, "arith.addi ", 11)) {
    const char *second = strchr(what + 11, ',');
    if (!second || !lookup(r, what + 11, &a) || !lookup(r, second + 2, &b))
      return wrong(r, "a sum of unknown names");
    define(r, s, sum(a, b));
  } else if (!strncmp(what, "sdscbundle.device_mem_allocate ", 31)) {
    int64_t bytes = strtoll(what + 31, NULL, 10);
    if (bytes <= 0 || bytes > INT64_C(15032385536))
      return wrong(r, "a pool of impossible size");
    if (r->has_pool)
      return wrong(r, "a second pool");
    r->has_pool = true;
    if (r->is_dry) {
      define(r, s, (int64_t)POOL_SPACE << SIM_SPACE_BITS);
      return SW_OK;
    }
    r->card.pool = r->card.hbm[r->card.n_hbm++] = sim_memory_new(r->job->arena, "the pool", (size_t)bytes, true);
    r->card.hbm[r->card.n_hbm - 1]->is_dl16 = r->card.is_dl16;
    define(r, s, (int64_t)r->card.n_hbm << SIM_SPACE_BITS);
  } else if (!strncmp(what, "sdscbundle.input_arg_extract value from ", 40)) {
    if (!lookup(r, what + 40, &a))
      return wrong(r, "an unknown parameter");
    define(r, s, a);
    r->sizes.v[value_place(r, s, word(s))] = r->sizes.v[value_place(r, what + 40, word(what + 40))];
  } else if (!strncmp(what, "affine.apply #map_", 18)) {
    int map = atoi(what + 18);
    const char *base = strchr(what, '['), *p = strchr(what, '(');
    if (map < 0 || map >= r->maps.n || !base || !p || !lookup(r, base + 1, &a))
      return wrong(r, "an affine map of unknown operands");
    struct moves moves = {0};
    for (int i = 0; i < r->maps.v[map].n; i++, p += word(p)) {
      p = strchr(p, '%');
      if (!p || p > base || !lookup(r, p, &b))
        return wrong(r, "an affine map with too few operands");
      moves.variable[moves.n] = value_place(r, p, word(p));
      moves.factor[moves.n++] = r->maps.v[map].factor[i];
      a = sum(a, (int64_t)((uint64_t)r->maps.v[map].factor[i] * (uint64_t)b));
    }
    define(r, s, a);
    r->moves.v[value_place(r, s, word(s))] = moves;
  } else {
    return wrong(r, "a statement of unknown form");
  }
  return SW_OK;
}

/* "scf.for %i_0 = %c0 to %loop_bound_0 step %c1 {" */
static enum sw_rc begin_loop(struct run *r, const char *s, struct loop *l)
{
  const char *name = strchr(s, '%'), *to = strstr(s, " to ");
  if (!name || !to || !lookup(r, to + 4, &l->count) || l->count < 1)
    return wrong(r, "a loop of unknown form");
  l->first = r->line + 1;
  l->n_executes = r->n_executes;
  l->at = 0;
  l->variable = value_place(r, name, word(name));
  r->values.v[l->variable] = 0;
  return SW_OK;
}

static enum sw_rc run_lines(struct run *r, const struct sim_argument *args, int n_args)
{
  enum { MOST_EXECUTES = 1 << 25 }; /* more executes have no stamps (memory.h) */
  for (r->line = 0; r->line < r->lines.n; r->line++) {
    const char *s = r->lines.v[r->line];
    s += strspn(s, " \t");
    if (!*s || !strncmp(s, "module", 6)) {
      continue;
    } else if (*s == '#') {
      SW_TRY(read_map(r, s));
    } else if (!strncmp(s, "func.func", 9)) {
      SW_TRY(read_parameters(r, s, args, n_args));
    } else if (!strncmp(s, "scf.for", 7)) {
      if (r->depth == DEEPEST)
        return wrong(r, "loops nested too deeply");
      SW_TRY(begin_loop(r, s, &r->loops[r->depth++]));
    } else if (*s == '}') {
      if (!r->depth)
        continue; /* of the function or the module */
      struct loop *l = &r->loops[r->depth - 1];
      if (r->n_executes == l->n_executes)
        return wrong(r, "a loop without an execute");
      if (++l->at < l->count && !r->is_dry) {
        r->values.v[l->variable] = l->at;
        r->line = l->first - 1;
      } else {
        r->depth--;
      }
    } else if (!strncmp(s, "sdscbundle.sdsc_execute", 23)) {
      if (r->n_executes++ == MOST_EXECUTES)
        return sw_fail(r->job, SW_LIMIT, "bundle.mlir line %d: more than %d executes; this simulator stops there",
                       r->line + 1, MOST_EXECUTES);
      SW_TRY(execute(r, s));
    } else if (!strncmp(s, "return", 6)) {
      return r->depth ? wrong(r, "a return inside a loop") : SW_OK;
    } else {
      SW_TRY(assign(r, s));
    }
  }
  return wrong(r, "the text ends without return");
}

/* bundle.mlir, cut into lines. */
static enum sw_rc read_lines(struct run *r)
{
  const char *text;
  size_t len;
  if (!r->files->read(r->files->ctx, r->job, "bundle.mlir", &text, &len))
    return r->job->worst;
  for (char *copy = sw_arena_strndup(r->job->arena, text, len); copy && *copy;) {
    char *nl = strchr(copy, '\n');
    if (nl)
      *nl = 0;
    *SW_PUSH(r->job->arena, &r->lines) = copy;
    copy = nl ? nl + 1 : NULL;
  }
  return SW_OK;
}

static struct run *begin(struct sw_job *job, const struct sim_files *files)
{
  struct run *r = SW_NEW(job->arena, struct run);
  r->job = job;
  r->files = files;
  r->form = sim_form_new(job);
  r->names.arena = r->parsed.arena = job->arena;
  return r;
}

enum sw_rc sim_run_bundle(struct sw_job *job, const struct sim_files *files, int64_t lx_bytes,
                          const struct sim_argument *args, int n_args)
{
  struct run *r = begin(job, files);
  r->card.lx_bytes = (size_t)lx_bytes;
  struct sw_arena *scratch = sw_arena_new(job->arena, 0); /* pool and scratchpads of this bundle */
  r->card.hbm = SW_NEW_N(job->arena, struct sim_memory *, n_args + 1);
  r->card.scratch = scratch;
  enum sw_rc rc = read_lines(r);
  /* stamps of the arguments belong to this bundle only */
  for (int i = 0; i < n_args && rc == SW_OK; i++)
    if (args[i].memory && args[i].memory->writer) {
      r->card.is_dl16 |= args[i].memory->is_dl16;
      memset(args[i].memory->writer, 0, (args[i].memory->n / 2 + 4) * sizeof(uint32_t));
      memset(args[i].memory->reader, 0, (args[i].memory->n / 2 + 4) * sizeof(uint32_t));
    }
  if (rc == SW_OK)
    rc = run_lines(r, args, n_args);
  for (int i = 0; i < n_args; i++)
    if (args[i].memory)
      args[i].memory->leaves_half |= r->card.leaves_half;
  sw_arena_free(scratch);
  return rc;
}

enum sw_rc sim_check_bundle(struct sw_job *job, const struct sim_files *files, int *n_files)
{
  struct run *r = begin(job, files);
  r->is_dry = true;
  SW_TRY(read_lines(r));
  SW_TRY(run_lines(r, NULL, 0));
  *n_files = r->ops.n;
  return SW_OK;
}

enum sw_rc sim_describe_bundle(struct sw_job *job, const struct sim_files *files, struct sim_seen_list *out)
{
  struct run *r = begin(job, files);
  r->is_dry = true;
  r->seen = out;
  SW_TRY(read_lines(r));
  return run_lines(r, NULL, 0);
}
