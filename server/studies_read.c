/* Reading a study: a worker makes of its body a spec and plain graphs, and the thread of the studies takes both over. */
#include "server/studies_inside.h"

#include "server/call.h"
#include "server/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool sw_study_begin_reading(struct sw_study_record *s)
{
  static const char text[] = "stickwright " SW_VERSION " study\n";
  struct sw_task t = {.args = strdup("study"), .args_len = sizeof "study", .body = sw_body_again(s->body)};
  if (sw_body_digest(s->body, text, sizeof text - 1, t.id))
    return sw_study_fly(s, &t, -1);
  sw_task_clear(&t);
  return false;
}

static void free_bodies(void *p)
{
  struct sw_study_record *s = p;
  for (int i = 0; s->graphs && i < s->spec->graphs.n; i++)
    sw_body_free(s->graphs[i]);
  s->graphs = NULL;
}

/* Sets what the run is called with. Its options were checked when the spec was read. */
static bool set_call(struct sw_job *job, const struct sw_study *spec, const struct sw_study_run *r, struct sw_call *c,
                     struct sw_buf *args)
{
  sw_call_init(c, "compile");
  sw_buf_add(args, "compile", sizeof "compile");
  const struct sw_study_options *o = &spec->options.v[r->options];
  for (int i = -2; i < o->given.n; i++) {
    struct sw_study_setting set = i == -2   ? (struct sw_study_setting){"profile", sw_study_profile_name(r->profile)}
                                  : i == -1 ? (struct sw_study_setting){"solver", sw_study_solver_name(r->solver)}
                                            : o->given.v[i];
    if (sw_call_set(job, c, set.name, set.value) != SW_OK)
      return false;
    sw_buf_printf(args, "%s=%s", set.name, set.value);
    sw_buf_add(args, "", 1);
  }
  return true;
}

bool sw_study_address(struct sw_study_record *s, int run, struct sw_buf *args, char address[SW_ID_LEN + 1])
{
  struct sw_arena *a = args->arena;
  const struct sw_study_run *r = &s->spec->runs.v[run];
  struct sw_job job = {.arena = a};
  struct sw_call call;
  return set_call(&job, s->spec, r, &call, args) && sw_call_address(&call, a, s->graphs[r->graph], address);
}

/* The graphs as bodies; their digests, as studies have them, from the bytes. */
static bool take_graphs(struct sw_study_record *s, const struct sw_result *result)
{
  s->graphs = SW_NEW_N(s->arena, struct sw_body *, s->spec->graphs.n);
  bool ok = true;
  for (int i = 0; i < s->spec->graphs.n && ok; i++) {
    const struct sw_result_file *f = &result->files[i + 1];
    struct sw_study_graph *g = &s->spec->graphs.v[i];
    s->graphs[i] = sw_body_new(f->len, NULL);
    ok = s->graphs[i] && sw_body_add(s->graphs[i], f->bytes, f->len) == SW_BODY_OK &&
         sw_body_digest(s->graphs[i], "", 0, g->digest);
    g->bytes = NULL;
  }
  return ok;
}

struct kept_row {
  struct sw_study_record *s;
  const struct sw_disk_part *part;
};

static void read_row(void *ctx)
{
  const struct kept_row *k = ctx;
  struct sw_study *spec = k->s->spec;
  long i = strncmp(k->part->name, "run/", 4) ? -1 : strtol(k->part->name + 4, NULL, 10);
  struct sw_job job = {.arena = k->s->arena};
  if (i >= 0 && i < spec->runs.n)
    sw_study_row_read(&job, k->part->bytes, k->part->len, &spec->runs.v[i]);
}

/* The store is locked here, so an arena that is spent may not jump further. */
static void take_row(void *ctx, const struct sw_disk_part *p)
{
  struct sw_study_step *st = ctx;
  st->ok &= sw_arena_run(st->s->arena, read_row, &(struct kept_row){st->s, p});
}

/* The spec, the graphs, the key of each run, and the rows that an earlier daemon has kept. */
static void take_spec(void *ctx)
{
  struct sw_study_step *st = ctx;
  struct sw_study_record *s = st->s;
  struct sw_files files = {0};
  for (size_t i = 1; i < st->result->n_files; i++)
    sw_files_add(&st->job, &files, st->result->files[i].path, st->result->files[i].bytes, st->result->files[i].len);
  const struct sw_study_source source = {"", &files, s->all->records.limits->study_runs};
  if (!st->result->n_files || sw_study_read(&st->job, st->result->files[0].bytes, st->result->files[0].len, &source, &s->spec) != SW_OK)
    return;
  sw_arena_defer(s->arena, free_bodies, s);
  if ((size_t)s->spec->graphs.n + 1 != st->result->n_files || !take_graphs(s, st->result)) {
    sw_fail(&st->job, SW_LIMIT, "the service is out of memory or its disk is full");
    return;
  }
  s->is_begun = SW_NEW_N(s->arena, char, s->spec->runs.n);
  struct sw_arena *scratch = sw_arena_new(s->arena, 0);
  for (int i = 0; i < s->spec->runs.n; i++) {
    struct sw_buf args = {.arena = scratch};
    char address[SW_ID_LEN + 1];
    if (!sw_study_address(s, i, &args, address)) {
      sw_fail(&st->job, SW_LIMIT, "the service is out of memory");
      return;
    }
    memcpy(s->spec->runs.v[i].key, address, sizeof s->spec->runs.v[i].key - 1);
  }
  sw_arena_free(scratch);
  st->ok = true;
  if (s->all->records.disk)
    sw_disk_study_parts(s->all->records.disk, s->r.id, take_row, st);
}

static void fail_with(struct sw_study_record *s, struct sw_job *job)
{
  struct sw_buf errors = {.arena = job->arena};
  sw_jw_faults(&(struct sw_jw){.out = &errors, .indent = 1, .depth = 1, .after_key = true}, job);
  sw_study_fail(s, (unsigned)sw_rc_http(job->worst), sw_rc_slug(job->worst), job->faults.v[0].detail, sw_buf_text(&errors));
}

/* What is known of the runs, a restart's old rows included. */
static void count_runs(struct sw_study_record *s)
{
  struct sw_studies *ss = s->all;
  int done = 0, compiled = 0;
  for (int i = 0; i < s->spec->runs.n; i++) {
    const struct sw_study_run *r = &s->spec->runs.v[i];
    s->is_begun[i] = r->done;
    done += r->done;
    compiled += r->done && r->row.has_plan;
  }
  char *name = strdup(s->spec->name);
  pthread_mutex_lock(&ss->records.lock);
  if (!s->is.name) {
    s->is.name = name;
    name = NULL;
  }
  s->is.n_runs = s->spec->runs.n;
  s->is.n_done = done;
  s->is.n_compiled = compiled;
  pthread_mutex_unlock(&ss->records.lock);
  free(name);
}

static void begin_running(struct sw_study_record *s)
{
  struct sw_studies *ss = s->all;
  pthread_mutex_lock(&ss->records.lock);
  bool runs = !sw_record_ended(&s->r);
  if (runs) {
    sw_record_set_state(&s->r, SW_JOB_RUNNING);
    sw_study_tell_runs(s, -1);
  }
  pthread_mutex_unlock(&ss->records.lock);
  if (runs && sw_study_accepted(s))
    sw_study_keep(s);
}

void sw_study_take_reading(struct sw_study_record *s, const struct sw_outcome *o)
{
  if (!o->result) {
    sw_study_fail(s, o->status, o->slug ? o->slug : "internal", o->detail ? o->detail : "", o->errors);
    return;
  }
  size_t most = (size_t)s->all->records.limits->study_mb << 20;
  s->arena = o->result->bytes > most ? NULL : sw_arena_new(NULL, most);
  struct sw_study_step st = {.s = s, .job = {.arena = s->arena}, .result = o->result};
  bool has_room = s->arena && sw_arena_run(s->arena, take_spec, &st);
  if (has_room && !st.ok && st.job.faults.n) {
    fail_with(s, &st.job);
  } else if (!has_room || !st.ok) {
    sw_study_too_large(s);
  } else {
    count_runs(s);
    begin_running(s);
    sw_study_accept(s);
  }
}
