/* Problem and result documents, and the integer program as a file for other solvers. */
#include "solver/assign/internal.h"

#include <stdio.h>

static void write_cost(struct sw_jw *w, int64_t c)
{
  if (c == SW_ASSIGN_INF)
    sw_jw_str(w, "inf");
  else
    sw_jw_int(w, c);
}

static void write_names(struct sw_jw *w, const char *const *names, int n)
{
  sw_jw_array(w);
  for (int i = 0; i < n; i++) {
    char number[16];
    snprintf(number, sizeof number, "%d", i);
    sw_jw_str(w, names ? names[i] : number);
  }
  sw_jw_end_array(w);
}

static void write_variable(struct sw_jw *w, const struct sw_assign_variable *v, int index)
{
  char number[16];
  snprintf(number, sizeof number, "v%d", index);
  sw_jw_object(w);
  sw_jw_kstr(w, "name", v->name ? v->name : number);
  sw_jw_key(w, "labels");
  write_names(w, v->labels, v->n_labels);
  if (v->cost) {
    sw_jw_key(w, "cost");
    sw_jw_array(w);
    for (int i = 0; i < v->n_labels; i++)
      write_cost(w, v->cost[i]);
    sw_jw_end_array(w);
  }
  sw_jw_end_object(w);
}

/* `reader` lists the group's readers. */
static void write_group(struct sw_jw *w, const struct sw_assign_problem *p, int g, const int *reader, int n)
{
  const struct sw_assign_group *group = &p->groups.v[g];
  sw_jw_object(w);
  sw_jw_kint(w, "producer", group->producer);
  sw_jw_key(w, "classes");
  write_names(w, group->classes, group->n_classes);
  sw_jw_kint(w, "conv", group->table);
  sw_jw_key(w, "readers");
  sw_jw_array(w);
  for (int i = 0; i < n; i++) {
    const struct sw_assign_reader *r = &p->readers.v[reader[i]];
    sw_jw_array(w);
    sw_jw_int(w, r->variable);
    sw_jw_array(w);
    for (int j = 0; j < p->variables.v[r->variable].n_labels; j++) {
      if (r->wants[j] < 0)
        sw_jw_null(w);
      else
        sw_jw_int(w, r->wants[j]);
    }
    sw_jw_end_array(w);
    sw_jw_end_array(w);
  }
  sw_jw_end_array(w);
  sw_jw_end_object(w);
}

void sw_assign_write(const struct sw_assign_problem *p, struct sw_buf *out)
{
  struct sw_jw w = {.out = out};
  struct sw_arena *scratch = sw_arena_new(p->arena, 0);
  sw_jw_object(&w);
  sw_jw_kstr(&w, "format", "stickwright.assign/1");
  sw_jw_kstr(&w, "name", p->name);
  sw_jw_kstr(&w, "mode", p->mode == SW_ASSIGN_SHARED ? "shared" : "per-edge");
  sw_jw_key(&w, "tables");
  sw_jw_array(&w);
  for (int t = 0; t < p->tables.n; t++) {
    const struct sw_assign_table *table = &p->tables.v[t];
    sw_jw_array(&w);
    for (int i = 0; i < table->rows; i++) {
      sw_jw_array(&w);
      for (int j = 0; j < table->cols; j++)
        write_cost(&w, table->cost[i * table->cols + j]);
      sw_jw_end_array(&w);
    }
    sw_jw_end_array(&w);
  }
  sw_jw_end_array(&w);
  sw_jw_key(&w, "variables");
  sw_jw_array(&w);
  for (int v = 0; v < p->variables.n; v++)
    write_variable(&w, &p->variables.v[v], v);
  sw_jw_end_array(&w);
  sw_jw_key(&w, "edges");
  sw_jw_array(&w);
  for (int e = 0; e < p->edges.n; e++)
    sw_jw_ints(&w, (int64_t[]){p->edges.v[e].a, p->edges.v[e].b, p->edges.v[e].table}, 3);
  sw_jw_end_array(&w);
  int *first = SW_NEW_N(scratch, int, p->groups.n + 2), *reader = SW_NEW_N(scratch, int, p->readers.n);
  for (int i = 0; i < p->readers.n; i++)
    first[p->readers.v[i].group + 2]++;
  for (int g = 2; g <= p->groups.n; g++)
    first[g + 1] += first[g];
  for (int i = 0; i < p->readers.n; i++)
    reader[first[p->readers.v[i].group + 1]++] = i;
  sw_jw_key(&w, "sharing");
  sw_jw_array(&w);
  for (int g = 0; g < p->groups.n; g++)
    write_group(&w, p, g, reader + first[g], first[g + 1] - first[g]);
  sw_jw_end_array(&w);
  sw_jw_end_object(&w);
  sw_buf_add(out, "\n", 1);
  sw_arena_free(scratch);
}

/* -- result -- */

static void write_list(struct sw_jw *w, const char *key, const int *v, int n)
{
  sw_jw_key(w, key);
  sw_jw_array(w);
  for (int i = 0; i < n; i++)
    sw_jw_int(w, v[i]);
  sw_jw_end_array(w);
}

static void write_certificate(struct sw_jw *w, const struct sw_assign_certificate *c)
{
  static const char *const kinds[] = {"impossible", "worse", "merged"};
  sw_jw_key(w, "certificate");
  if (!c->method) {
    sw_jw_null(w);
    return;
  }
  sw_jw_object(w);
  sw_jw_kstr(w, "method", c->method);
  sw_jw_key(w, "steps");
  sw_jw_array(w);
  for (int i = 0; i < c->steps.n; i++) {
    const struct sw_assign_step *s = &c->steps.v[i];
    sw_jw_array(w);
    sw_jw_str(w, kinds[s->kind]);
    sw_jw_int(w, s->variable);
    if (s->label >= 0)
      sw_jw_int(w, s->label);
    if (s->by >= 0)
      sw_jw_int(w, s->by);
    sw_jw_end_array(w);
  }
  sw_jw_end_array(w);
  write_list(w, "order", c->order.v, c->order.n);
  sw_jw_kint(w, "width", c->width);
  sw_jw_end_object(w);
}

static void write_conversions(struct sw_jw *w, const struct sw_assign_result *r)
{
  sw_jw_key(w, "conversions");
  sw_jw_array(w);
  for (int i = 0; i < r->conversions.n; i++) {
    const struct sw_assign_conversion *c = &r->conversions.v[i];
    sw_jw_object(w);
    sw_jw_kint(w, "producer", c->producer);
    sw_jw_kint(w, "class", c->class_index);
    sw_jw_kint(w, "cost", c->cost);
    write_list(w, "readers", c->readers, c->n_readers);
    sw_jw_end_object(w);
  }
  sw_jw_end_array(w);
}

static void write_conflict(struct sw_jw *w, const struct sw_assign_conflict *c)
{
  sw_jw_key(w, "conflict");
  sw_jw_object(w);
  write_list(w, "variables", c->variables.v, c->variables.n);
  write_list(w, "edges", c->edges.v, c->edges.n);
  write_list(w, "groups", c->groups.v, c->groups.n);
  sw_jw_end_object(w);
}

void sw_assign_write_result(const struct sw_assign_result *r, struct sw_jw *w)
{
  const struct sw_assign_stats *s = &r->stats;
  sw_jw_object(w);
  sw_jw_kstr(w, "format", "stickwright.assign.result/1");
  sw_jw_kstr(w, "status", sw_assign_status_name(r->status));
  sw_jw_kstr(w, "mode", r->mode == SW_ASSIGN_SHARED ? "shared" : "per-edge");
  sw_jw_key(w, "cost");
  if (r->labels)
    sw_jw_int(w, r->cost);
  else
    sw_jw_null(w);
  sw_jw_key(w, "bound");
  if (r->status == SW_ASSIGN_INFEASIBLE)
    sw_jw_null(w);
  else
    sw_jw_int(w, r->bound);
  if (r->labels) {
    write_list(w, "labels", r->labels, s->variables);
  } else {
    sw_jw_key(w, "labels");
    sw_jw_null(w);
  }
  write_conversions(w, r);
  if (r->conflict)
    write_conflict(w, r->conflict);
  write_certificate(w, &r->certificate);
  sw_jw_kstr(w, "stopped_by", sw_assign_stop_name(r->stopped_by));
  sw_jw_key(w, "stats");
  sw_jw_object(w);
  sw_jw_kint(w, "variables", s->variables);
  sw_jw_kint(w, "labels", s->labels);
  sw_jw_kint(w, "presolved", s->presolved);
  sw_jw_kint(w, "islands", s->islands);
  sw_jw_kint(w, "distinct", s->distinct);
  sw_jw_kint(w, "eliminated", s->eliminated);
  sw_jw_kint(w, "glpk_calls", s->glpk_calls);
  sw_jw_kint(w, "glpk_nodes", s->glpk_nodes);
  sw_jw_kint(w, "max_width", s->max_width);
  sw_jw_kint(w, "work", s->work);
  sw_jw_end_object(w);
  sw_jw_end_object(w);
}
