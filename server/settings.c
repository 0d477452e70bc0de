#define _GNU_SOURCE
#include "server/settings.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_VALUE = 1000000, MIN_TOKEN = 16 };

static const struct {
  const char *name, *unit, *what;
  long value;
} limit_table[] = {
#define X(name, value, unit, what) {#name, unit, what, value},
    SW_SERVER_LIMITS(X)
#undef X
};
enum { N_LIMITS = sizeof limit_table / sizeof limit_table[0] };

static const struct {
  const char *name, *value, *what;
} text_table[] = {
#define X(field, name, value, what) {name, value, what},
    SW_SERVER_TEXTS(X)
#undef X
};
enum { N_TEXTS = sizeof text_table / sizeof text_table[0] };

/* Settings while they are read: as given, the first to come wins. */
struct reading {
  char *texts[N_TEXTS];
  long limits[N_LIMITS]; /* 0: not given */
};

void sw_settings_usage(FILE *to)
{
  fputs("usage: stickwrightd [--OPTION VALUE]...\n", to);
  for (int i = 0; i < N_TEXTS; i++)
    fprintf(to, "  --%-20s %s: %s\n", text_table[i].name, text_table[i].value, text_table[i].what);
  for (int i = 0; i < N_LIMITS; i++) {
    char name[32];
    snprintf(name, sizeof name, "%s", limit_table[i].name);
    for (char *c = name; *c; c++)
      *c = *c == '_' ? '-' : *c;
    fprintf(to, "  --%-20s %s: %s (%ld)\n", name, limit_table[i].unit, limit_table[i].what, limit_table[i].value);
  }
  fputs("  --routes               print the routes and exit\n"
        "  --help, --version\n",
        to);
}

/* "body-mb" and "body_mb" are the same limit; its place in the table, or -1. */
static int find_limit(const char *name)
{
  for (int i = 0; i < N_LIMITS; i++) {
    const char *a = name, *b = limit_table[i].name;
    while (*b && (*a == *b || (*a == '-' && *b == '_')))
      a++, b++;
    if (!*a && !*b)
      return i;
  }
  return -1;
}

static int find_text(const char *name)
{
  for (int i = 0; i < N_TEXTS; i++)
    if (!strcmp(text_table[i].name, name))
      return i;
  return -1;
}

/* `where` begins the message when something is wrong. */
static bool set(struct reading *r, const char *where, const char *name, const char *value)
{
  int text = find_text(name), limit = find_limit(name);
  if (text < 0 && limit < 0) {
    fprintf(stderr, "stickwrightd: %s: %s is no option\n", where, name);
    return false;
  }
  if (text >= 0) {
    if (!r->texts[text])
      r->texts[text] = strdup(value);
    return r->texts[text];
  }
  char *end = NULL;
  long n = *value >= '0' && *value <= '9' ? strtol(value, &end, 10) : 0;
  if (n < 1 || *end || n > MAX_VALUE) {
    fprintf(stderr, "stickwrightd: %s: %s wants a number from 1 to %d, \"%s\" found\n", where, name, MAX_VALUE, value);
    return false;
  }
  if (!r->limits[limit])
    r->limits[limit] = n;
  return true;
}

static void print_routes(void)
{
  struct sw_buf b = {.arena = sw_arena_new(NULL, 1 << 20)};
  if (b.arena) {
    sw_server_routes(&b);
    fputs(sw_buf_text(&b), stdout);
  }
  sw_arena_free(b.arena);
}

static int read_arguments(struct reading *r, int argc, char **argv)
{
  for (int i = 1; i < argc; i++) {
    const char *arg = argv[i];
    if (!strcmp(arg, "--help") || !strcmp(arg, "-h"))
      return sw_settings_usage(stdout), 0;
    if (!strcmp(arg, "--version"))
      return puts("stickwrightd " SW_VERSION), 0;
    if (!strcmp(arg, "--routes"))
      return print_routes(), 0;
    bool is_known = !strncmp(arg, "--", 2) && (find_text(arg + 2) >= 0 || find_limit(arg + 2) >= 0);
    if (!is_known || i + 1 == argc) {
      fprintf(stderr, "stickwrightd: %s %s\n", arg, is_known ? "needs a value" : "is no option");
      sw_settings_usage(stderr);
      return 64;
    }
    if (!set(r, "command line", arg + 2, argv[++i]))
      return 64;
  }
  return -1;
}

static char *trimmed(char *s)
{
  while (isspace((unsigned char)*s))
    s++;
  char *end = s + strlen(s);
  while (end > s && isspace((unsigned char)end[-1]))
    *--end = 0;
  return s;
}

/* Lines NAME = VALUE; empty ones and those that begin with # say nothing. */
static int read_config(struct reading *r, const char *path)
{
  FILE *f = fopen(path, "re");
  if (!f) {
    fprintf(stderr, "stickwrightd: %s: %s\n", path, strerror(errno));
    return 66;
  }
  char *line = NULL, where[64];
  size_t room = 0;
  int code = -1;
  for (int n = 1; code < 0 && getline(&line, &room, f) >= 0; n++) {
    char *s = trimmed(line), *equals = strchr(s, '=');
    if (!*s || *s == '#')
      continue;
    snprintf(where, sizeof where, "config file, line %d", n);
    if (equals)
      *equals++ = 0;
    if (!equals) {
      fprintf(stderr, "stickwrightd: %s: NAME = VALUE expected\n", where);
      code = 64;
    } else if (!set(r, where, trimmed(s), trimmed(equals))) {
      code = 64;
    }
  }
  free(line);
  fclose(f);
  return code;
}

/* The first line of the token file. */
static int read_token(const char *path, char *out, size_t room)
{
  FILE *f = fopen(path, "re");
  bool ok = f && fgets(out, (int)room, f);
  if (f)
    fclose(f);
  if (ok)
    out[strcspn(out, "\r\n")] = 0;
  if (ok && strlen(out) >= MIN_TOKEN)
    return -1;
  fprintf(stderr, "stickwrightd: %s: a token of %d characters or more is expected in the first line\n", path, MIN_TOKEN);
  return 66;
}

static char *joined(const char *a, const char *b)
{
  char *s = NULL;
  return asprintf(&s, "%s%s", a, b) < 0 ? NULL : s;
}

/* What follows from the rest where nobody said it. */
static void fill_in(struct sw_settings *s)
{
  const char *state = getenv("STATE_DIRECTORY");
  if (!s->listen)
    s->listen = strdup("127.0.0.1:8417");
  if (!s->store && state && *state)
    s->store = joined(state, "/store.db");
  if (!s->aside && s->store)
    s->aside = joined(s->store, ".aside");
}

int sw_settings_read(struct sw_settings *s, int argc, char **argv)
{
  struct reading r = {0};
  int code = read_arguments(&r, argc, argv);
  const char *config = r.texts[find_text("config")];
  if (code < 0 && config)
    code = read_config(&r, config);
  int text = 0, limit = 0;
#define X(field, name, value, what) s->field = r.texts[text++];
  SW_SERVER_TEXTS(X)
#undef X
#define X(name, value, unit, what)                        \
  s->limits.name = r.limits[limit] ? r.limits[limit] : value; \
  limit++;
  SW_SERVER_LIMITS(X)
#undef X
  if (code < 0)
    fill_in(s);
  if (code < 0 && s->token_file)
    code = read_token(s->token_file, s->token, sizeof s->token);
  return code;
}

void sw_settings_clear(struct sw_settings *s)
{
#define X(field, name, value, what) free(s->field);
  SW_SERVER_TEXTS(X)
#undef X
  memset(s, 0, sizeof *s);
}
