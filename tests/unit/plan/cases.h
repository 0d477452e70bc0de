/* The recorded cases of work division and predicted time, and works built from them. */
#ifndef SW_TESTS_PLAN_CASES_H
#define SW_TESTS_PLAN_CASES_H

#include "../unit.h"

#include "base/files.h"
#include "base/json.h"
#include "compiler/plan/division.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static inline json_t *cases_of(struct sw_job *job, const char *key)
{
  const char *text;
  size_t len;
  const char *path = SW_SOURCE_DIR "/tests/data/work_division_cases.json";
  assert_int_equal(sw_file_read(job, path, 1 << 20, &text, &len), SW_OK);
  json_t *root = sw_json_parse(job, "cases", text, len, 1000000);
  assert_non_null(json_object_get(root, key));
  return json_object_get(root, key);
}

static inline int64_t get_int(const json_t *o, const char *key)
{
  return json_integer_value(json_object_get(o, key));
}

static inline const char *get_text(const json_t *o, const char *key)
{
  const char *s = json_string_value(json_object_get(o, key));
  return s ? s : "";
}

/* A dim of a host tensor: its size and the variable that walks along it (-1: size 1). */
struct dim {
  int64_t size;
  int var;
};

static inline struct sw_coord coord_of(int var, int64_t mod, int64_t den)
{
  struct sw_coord c = {0};
  if (var >= 0) {
    c.n = 1;
    c.term[0] = (struct sw_term){.loop = var, .num = 1, .mod = mod, .den = den};
  }
  return c;
}

/* Default layout [d1.., ceil(last / eps), d0, eps] of a host tensor read straight; stick = the host dim in the stick
 * (dims before it then play d0 d1..), -1: one value a stick. Dims of device size 1 have coordinate 0. */
static inline struct sw_work_tensor tensor_of(const char *name, const struct dim *d, int n, int stick, int eps)
{
  struct sw_work_tensor t = {.name = name};
  int order[SW_MAX_DEVICE_RANK], k = 0;
  for (int i = 0; i < n; i++)
    if (i != stick)
      order[k++] = i;
  for (int i = 1; i < k; i++) {
    t.coord[t.rank] = coord_of(d[order[i]].var, 0, 1);
    t.device_size[t.rank++] = d[order[i]].size;
  }
  if (stick >= 0) {
    int64_t sticks = (d[stick].size + eps - 1) / eps;
    t.coord[t.rank] = coord_of(sticks > 1 ? d[stick].var : -1, 0, eps);
    t.device_size[t.rank++] = sticks;
  }
  if (k) {
    t.coord[t.rank] = coord_of(d[order[0]].var, 0, 1);
    t.device_size[t.rank++] = d[order[0]].size;
  }
  t.coord[t.rank] = stick >= 0 ? coord_of(d[stick].var, d[stick].size > eps ? eps : 0, 1) : coord_of(-1, 0, 1);
  t.device_size[t.rank++] = eps;
  return t;
}

static inline int var_of(const struct sw_work *w, const char *name)
{
  for (int v = 0; v < w->n_vars; v++)
    if (!strcmp(w->var[v].name, name))
      return v;
  return -1;
}

static inline struct sw_work plain_work(int cores)
{
  return (struct sw_work){.op = "case", .cores = cores};
}

static inline int add_var(struct sw_work *w, const char *name, int64_t size)
{
  w->var[w->n_vars] = (struct sw_work_var){.name = name, .size = size};
  return w->n_vars++;
}

/* [batch..,M,K] by [batch..,K,N], or by [K,N] when shared; batch NULL-terminated by 0. */
static inline struct sw_work matmul_work(struct sw_job *job, int cores, const int64_t *batch, int64_t m, int64_t k,
                                         int64_t n, bool shared)
{
  static const char *const batch_names[] = {"b0", "b1", "b2"};
  struct sw_work w = plain_work(cores);
  w.kind = SW_WORK_MATMUL;
  struct dim a[6], b[6], c[6];
  int na = 0, nb = 0, nc = 0;
  for (int i = 0; batch && batch[i]; i++) {
    struct dim d = {batch[i], batch[i] > 1 ? add_var(&w, batch_names[i], batch[i]) : -1};
    a[na++] = c[nc++] = d;
    if (!shared)
      b[nb++] = d;
  }
  struct dim dm = {m, m > 1 ? add_var(&w, "m", m) : -1};
  struct dim dn = {n, add_var(&w, "n", n)};
  w.n_written = w.n_vars;
  struct dim dk = {k, add_var(&w, "k", k)};
  a[na++] = dm, a[na++] = dk;
  b[nb++] = dk, b[nb++] = dn;
  c[nc++] = dm, c[nc++] = dn;
  w.in[w.n_in++] = tensor_of("A", a, na, na - 1, 64);
  w.in[w.n_in++] = tensor_of("B", b, nb, nb - 1, 64);
  w.out = tensor_of("C", c, nc, nc - 1, 64);
  int64_t step = 1;
  for (int i = nc - 1; i >= 0; i--) {
    if (c[i].var >= 0)
      w.out_step[c[i].var] = step;
    step *= c[i].size;
  }
  assert_int_equal(sw_work_settle(job, &w), SW_OK);
  return w;
}

#endif
