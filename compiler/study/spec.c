/* The spec of a study. Every fault is recorded with its JSON pointer; reading goes on. */
#define _GNU_SOURCE
#include "base/map.h"
#include "compiler/study/study.h"

#include <fnmatch.h>
#include <glob.h>
#include <inttypes.h>
#include <string.h>

static const char *const profile_names[] = {"best", "torch-spyre"};
static const char *const solver_names[] = {"ilp", "ilp-full", "beam", "greedy"};

const char *sw_study_profile_name(enum sw_profile p)
{
  return profile_names[p];
}

const char *sw_study_solver_name(enum sw_solver_kind s)
{
  return solver_names[s];
}

struct reader {
  struct sw_job *job;
  struct sw_study *s;
  const struct sw_study_source *source;
  struct sw_map seen; /* paths of graphs */
};

/* Member `key` of the spec if it is a list with something in it; NULL with a fault if it is anything else; NULL without
 * one if it is missing. */
static const json_t *list_of(struct reader *r, const json_t *root, const char *key)
{
  const json_t *list = json_object_get(root, key);
  if (!list)
    return NULL;
  if (json_is_array(list) && json_array_size(list))
    return list;
  sw_fail(r->job, SW_USAGE, "study: /%s: a list with at least one entry expected", key);
  return NULL;
}

static const char *text_at(struct reader *r, const json_t *list, const char *key, size_t i)
{
  const char *s = json_string_value(json_array_get(list, i));
  if (!s)
    sw_fail(r->job, SW_USAGE, "study: /%s/%zu: text expected", key, i);
  return s;
}

/* The folder's own name is no pattern. */
static const char *in_folder(struct reader *r, const char *pattern)
{
  if (pattern[0] == '/' || !r->source->dir[0])
    return pattern;
  struct sw_buf b = {.arena = r->job->arena};
  for (const char *c = r->source->dir; *c; c++)
    sw_buf_printf(&b, "%s%c", strchr("*?[]\\{}~", *c) ? "\\" : "", *c);
  sw_buf_printf(&b, "/%s", pattern);
  return sw_buf_text(&b);
}

static void free_glob(void *p)
{
  globfree(p);
}

static void add_graph(struct reader *r, const char *path, const char *bytes, size_t len)
{
  if (sw_map_set_str(&r->seen, path, 1) < 0)
    *SW_PUSH(r->job->arena, &r->s->graphs) = (struct sw_study_graph){.path = path, .bytes = bytes, .len = len};
}

/* The files of a pattern in order of their names; false when there are none. */
static bool find_on_disk(struct reader *r, const char *pattern)
{
  glob_t *g = SW_NEW(r->job->arena, glob_t);
  int bad = glob(in_folder(r, pattern), GLOB_BRACE, NULL, g);
  sw_arena_defer(r->job->arena, free_glob, g);
  for (size_t k = 0; !bad && k < g->gl_pathc; k++)
    add_graph(r, g->gl_pathv[k], NULL, 0);
  return !bad;
}

static bool find_in_files(struct reader *r, const char *pattern)
{
  bool found = false;
  for (int i = 0; i < r->source->files->list.n; i++) {
    const struct sw_file *f = &r->source->files->list.v[i];
    if (fnmatch(pattern, f->path, FNM_PATHNAME | FNM_PERIOD))
      continue;
    add_graph(r, f->path, f->bytes, f->len);
    found = true;
  }
  return found;
}

static void read_patterns(struct reader *r, const json_t *list)
{
  for (size_t i = 0; i < json_array_size(list); i++) {
    const char *pattern = text_at(r, list, "graphs", i);
    if (pattern && !(r->source->files ? find_in_files(r, pattern) : find_on_disk(r, pattern)))
      sw_fail(r->job, SW_USAGE, "study: /graphs/%zu: there is no file %s", i, pattern);
  }
}

/* Graphs that stand in the spec itself: {NAME: text}. */
static void read_texts(struct reader *r, const json_t *graphs)
{
  const char *name;
  json_t *v;
  json_object_foreach ((json_t *)(uintptr_t)graphs, name, v) {
    if (!*name || !json_is_string(v))
      sw_fail(r->job, SW_USAGE, "study: /graphs/%s: a name and its graph as text expected", name);
    else
      add_graph(r, name, json_string_value(v), json_string_length(v));
  }
  if (!json_object_size(graphs))
    sw_fail(r->job, SW_USAGE, "study: /graphs: at least one expected");
}

static void read_graphs(struct reader *r, const json_t *root)
{
  const json_t *graphs = json_object_get(root, "graphs");
  if (json_is_object(graphs))
    read_texts(r, graphs);
  else if (graphs)
    read_patterns(r, list_of(r, root, "graphs"));
  else
    sw_fail(r->job, SW_USAGE, "study: /graphs is missing");
}

static const char *last_part(const char *path)
{
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

static void name_graphs(struct reader *r)
{
  struct sw_map uses = {.arena = r->job->arena};
  for (int i = 0; i < r->s->graphs.n; i++) {
    const char *name = last_part(r->s->graphs.v[i].path);
    int64_t n = sw_map_get_str(&uses, name);
    sw_map_set_str(&uses, name, n < 0 ? 1 : n + 1);
  }
  for (int i = 0; i < r->s->graphs.n; i++) {
    struct sw_study_graph *g = &r->s->graphs.v[i];
    g->name = sw_map_get_str(&uses, last_part(g->path)) == 1 ? last_part(g->path) : g->path;
  }
}

/* Names of a CHOICE, each once; `add` is told the number of each. */
static void read_names(struct reader *r, const json_t *root, const char *key, const char *const *names, int n_names,
                       void (*add)(struct reader *r, int which))
{
  const json_t *list = list_of(r, root, key);
  unsigned taken = 0;
  for (size_t i = 0; i < json_array_size(list); i++) {
    const char *s = text_at(r, list, key, i);
    int which = 0;
    while (s && which < n_names && strcmp(s, names[which]))
      which++;
    if (!s)
      continue;
    if (which == n_names)
      sw_fail(r->job, SW_USAGE, "study: /%s/%zu: there is no %.*s \"%s\"", key, i, (int)strlen(key) - 1, key, s);
    else if (taken & 1u << which)
      sw_fail(r->job, SW_USAGE, "study: /%s/%zu: \"%s\" a second time", key, i, s);
    else
      add(r, which);
    taken |= which < n_names ? 1u << which : 0;
  }
}

static void add_profile(struct reader *r, int which)
{
  *SW_PUSH(r->job->arena, &r->s->profiles) = (enum sw_profile)which;
}

static void add_solver(struct reader *r, int which)
{
  *SW_PUSH(r->job->arena, &r->s->solvers) = (enum sw_solver_kind)which;
}

/* One value of an option; numbers and switches may be written as such. */
static void set_option(struct reader *r, struct sw_study_options *o, struct sw_buf *label, const char *name,
                       const json_t *v, size_t i)
{
  const char *text = json_string_value(v);
  if (json_is_integer(v))
    text = sw_arena_printf(r->job->arena, "%" PRId64, (int64_t)json_integer_value(v));
  if (json_is_boolean(v))
    text = json_is_true(v) ? "on" : "off";
  if (!text) {
    sw_fail(r->job, SW_USAGE, "study: /options/%zu/%s: text, an integer, true or false expected", i, name);
    return;
  }
  int before = r->job->faults.n;
  sw_option_set(r->job, &o->base, name, text);
  if (r->job->faults.n > before) {
    struct sw_fault *f = &r->job->faults.v[before];
    f->detail = sw_arena_printf(r->job->arena, "study: /options/%zu: %s", i, f->detail);
  }
  sw_buf_printf(label, "%s%s=%s", label->n ? " " : "", name, text);
  *SW_PUSH(r->job->arena, &o->given) = (struct sw_study_setting){name, text};
}

static void read_option_set(struct reader *r, const json_t *set, size_t i, struct sw_map *labels)
{
  struct sw_study_options *o = SW_PUSH(r->job->arena, &r->s->options);
  sw_options_init(&o->base);
  struct sw_buf label = {.arena = r->job->arena};
  if (!json_is_object(set)) {
    sw_fail(r->job, SW_USAGE, "study: /options/%zu: an object {NAME: value} expected", i);
    return;
  }
  const char *name;
  json_t *v;
  json_object_foreach ((json_t *)(uintptr_t)set, name, v) {
    if (!strcmp(name, "profile") || !strcmp(name, "solver")) {
      sw_fail(r->job, SW_USAGE, "study: /options/%zu: %s has a list of its own, /%ss", i, name, name);
      continue;
    }
    size_t k;
    json_t *e;
    if (json_is_array(v))
      json_array_foreach (v, k, e)
        set_option(r, o, &label, name, e, i);
    else
      set_option(r, o, &label, name, v, i);
  }
  o->label = sw_buf_text(&label);
  int64_t before = sw_map_set_str(labels, o->label, (int64_t)i);
  if (before >= 0)
    sw_fail(r->job, SW_USAGE, "study: /options/%zu is the same as /options/%" PRId64, i, before);
}

static void read_options(struct reader *r, const json_t *root)
{
  const json_t *list = list_of(r, root, "options");
  struct sw_map labels = {.arena = r->job->arena};
  for (size_t i = 0; i < json_array_size(list); i++)
    read_option_set(r, json_array_get(list, i), i, &labels);
  if (!list) {
    struct sw_study_options *o = SW_PUSH(r->job->arena, &r->s->options);
    o->label = "";
    sw_options_init(&o->base);
  }
}

static void read_head(struct reader *r, const json_t *root)
{
  static const char *const known[] = {"format", "name", "graphs", "profiles", "solvers", "options"};
  enum { N_KNOWN = sizeof known / sizeof known[0] };
  const char *key;
  json_t *v;
  json_object_foreach ((json_t *)(uintptr_t)root, key, v) {
    int k = 0;
    while (k < N_KNOWN && strcmp(key, known[k]))
      k++;
    if (k == N_KNOWN)
      sw_fault(r->job, SW_USAGE, "study: there is no key /%s", key)->advice =
          "known are format, name, graphs, profiles, solvers, options";
  }
  const char *format = json_string_value(json_object_get(root, "format"));
  if (!format || strcmp(format, "stickwright.study/1"))
    sw_fail(r->job, SW_USAGE, "study: /format: \"stickwright.study/1\" expected");
  const char *name = json_string_value(json_object_get(root, "name"));
  if (!name || !*name || name[0] == '.' || strlen(name) > 100 ||
      name[strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")])
    sw_fail(r->job, SW_USAGE, "study: /name: up to 100 letters, digits, '.', '_' and '-' expected");
  else
    r->s->name = name;
}

static enum sw_rc make_runs(struct reader *r)
{
  struct sw_study *s = r->s;
  int64_t n = (int64_t)s->profiles.n * s->solvers.n * s->options.n * s->graphs.n; /* a spec has at most 10^6 values */
  if (n > r->source->max_runs) {
    struct sw_fault *f = sw_fault(r->job, SW_LIMIT, "study: %d graphs are %" PRId64 " runs, limit %" PRId64, s->graphs.n, n,
                                  r->source->max_runs);
    f->has_limit = true;
    f->value = n;
    f->limit = r->source->max_runs;
    f->advice = "cut the study into several";
    return SW_LIMIT;
  }
  for (int g = 0; g < s->graphs.n; g++)
    for (int o = 0; o < s->options.n; o++)
      for (int p = 0; p < s->profiles.n; p++)
        for (int v = 0; v < s->solvers.n; v++)
          *SW_PUSH(r->job->arena, &s->runs) = (struct sw_study_run){
              .graph = g, .options = o, .profile = s->profiles.v[p], .solver = s->solvers.v[v]};
  return SW_OK;
}

enum sw_rc sw_study_read(struct sw_job *job, const char *text, size_t len, const struct sw_study_source *source,
                         struct sw_study **out)
{
  const json_t *root = sw_json_parse(job, "study", text, len, 1000000);
  if (!root)
    return job->worst;
  if (!json_is_object(root))
    return sw_fail(job, SW_USAGE, "study: an object expected");
  struct reader r = {.job = job, .s = SW_NEW(job->arena, struct sw_study), .source = source, .seen = {.arena = job->arena}};
  read_head(&r, root);
  read_graphs(&r, root);
  name_graphs(&r);
  read_names(&r, root, "profiles", profile_names, 2, add_profile);
  read_names(&r, root, "solvers", solver_names, 4, add_solver);
  read_options(&r, root);
  if (job->worst != SW_OK)
    return job->worst;
  if (!r.s->profiles.n)
    add_profile(&r, SW_PROFILE_BEST);
  if (!r.s->solvers.n)
    add_solver(&r, SW_SOLVER_ILP);
  SW_TRY(make_runs(&r));
  *out = r.s;
  return SW_OK;
}
