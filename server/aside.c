#include "server/aside.h"

#include "base/json.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { MAX_BODY = 16 << 20 };

struct note {
  const char *dir;
  long most;
  const struct sw_task *t;
  const struct sw_outcome *o;
  struct sw_buf text;
};

static void write_note(struct note *n, struct sw_jw *w)
{
  int status = n->o->died;
  sw_jw_object(w);
  sw_jw_kstr(w, "id", n->t->id);
  sw_jw_kstr(w, "verb", n->t->args);
  sw_jw_key(w, "parameters");
  sw_jw_array(w);
  for (size_t at = strlen(n->t->args) + 1; at < n->t->args_len; at += strlen(n->t->args + at) + 1)
    sw_jw_str(w, n->t->args + at);
  sw_jw_end_array(w);
  if (status > 0 && WIFSIGNALED(status))
    sw_jw_kint(w, "signal", WTERMSIG(status));
  else
    sw_jw_kint(w, "exit_code", status > 0 ? WEXITSTATUS(status) : 0);
  sw_jw_kstr(w, "log", n->o->log ? n->o->log : "");
  sw_jw_end_object(w);
}

/* A note has two files. Who can make workers die could fill a disk with them. */
static bool has_room(const char *path, long most)
{
  long n = 0;
  DIR *dir = opendir(path);
  while (dir && readdir(dir))
    n++;
  if (dir)
    closedir(dir);
  return n < 2 + 2 * most;
}

static void write_all(void *p)
{
  struct note *n = p;
  struct sw_arena *a = n->text.arena;
  write_note(n, &(struct sw_jw){.out = &n->text});
  sw_buf_puts(&n->text, "\n");
  fprintf(stderr, "{\"worker_died\":%s}\n", sw_arena_strndup(a, n->text.p, n->text.n - 1));
  if (!n->dir)
    return;
  mkdir(n->dir, 0700);
  if (!has_room(n->dir, n->most)) {
    fprintf(stderr, "{\"aside\":\"as many notes as may be are there: this one is not kept\"}\n");
    return;
  }
  const char *path = sw_arena_printf(a, "%s/%s.json", n->dir, n->t->id);
  FILE *f = fopen(path, "we");
  bool ok = f && fwrite(n->text.p, 1, n->text.n, f) == n->text.n;
  if (f && fclose(f))
    ok = false;
  if (ok && sw_body_bytes(n->t->body) <= MAX_BODY)
    ok = sw_body_save(n->t->body, sw_arena_printf(a, "%s/%s.body", n->dir, n->t->id));
  if (!ok)
    fprintf(stderr, "{\"error\":\"%s can't be written\"}\n", path);
}

void sw_aside_write(const char *dir, long most, const struct sw_task *t, const struct sw_outcome *o)
{
  struct sw_arena *a = sw_arena_new(NULL, 1 << 20);
  struct note n = {dir, most, t, o, {.arena = a}};
  if (a)
    sw_arena_run(a, write_all, &n);
  sw_arena_free(a);
}
