#include "compiler/cli/verb.h"

#include "base/options.h"
#include "compiler/cli/flags.h"

#include <stdio.h>
#include <string.h>

const struct sw_cli_known sw_cli_flags[] = {
#define X(verb, letter, name, value, what) {#verb, name, value, what, letter},
    SW_FLAGS(X)
#undef X
};
const int sw_cli_n_flags = sizeof sw_cli_flags / sizeof sw_cli_flags[0];

/* The verb's flag of that long name or (is_letter) letter, or NULL. */
static const struct sw_cli_known *lookup(const char *verb, const char *name, size_t len, bool is_letter)
{
  for (int i = 0; i < sw_cli_n_flags; i++) {
    const struct sw_cli_known *k = &sw_cli_flags[i];
    bool fits = is_letter ? k->letter && k->letter == *name : strlen(k->name) == len && !memcmp(k->name, name, len);
    if (fits && !strcmp(k->verb, verb))
      return k;
  }
  return NULL;
}

bool sw_cli_parse(struct sw_job *job, int argc, char **argv, const char *verb, struct sw_options *options,
                  struct sw_cli_args *out)
{
  bool only_operands = false;
  for (int i = 0; i < argc; i++) {
    const char *s = argv[i];
    if (only_operands || s[0] != '-' || !s[1]) {
      *SW_PUSH(job->arena, &out->operands) = s;
      continue;
    }
    if (!strcmp(s, "--")) {
      only_operands = true;
      continue;
    }
    bool is_letter = s[1] != '-';
    const char *name = s + (is_letter ? 1 : 2);
    size_t len = is_letter ? 1 : strcspn(name, "=");
    const char *value = name[len] == '=' ? name + len + 1 : is_letter && name[1] ? name + 1 : NULL;
    const struct sw_cli_known *k = lookup(verb, name, len, is_letter);
    char *copy = sw_arena_strndup(job->arena, name, len);
    bool is_option = !k && !is_letter && options && sw_option_known(copy);
    if (!k && !is_option) {
      sw_fault(job, SW_USAGE, "%s has no option %s", verb, s)->advice =
          sw_arena_printf(job->arena, "`stickwright help %s` lists what there is", verb);
      return false;
    }
    bool wants_value = is_option || k->value;
    if (wants_value && !value) {
      if (++i >= argc) {
        sw_fail(job, SW_USAGE, "option %s needs a value", s);
        return false;
      }
      value = argv[i];
    } else if (!wants_value && value) {
      sw_fail(job, SW_USAGE, "option %s takes no value", s);
      return false;
    }
    if (is_option) {
      if (sw_option_set(job, options, copy, value) != SW_OK)
        return false;
    } else {
      struct sw_cli_arg *a = SW_PUSH(job->arena, &out->flags);
      a->name = k->name;
      a->value = value ? value : "";
    }
  }
  return true;
}

const char *sw_cli_flag(const struct sw_cli_args *args, const char *name)
{
  for (int i = args->flags.n - 1; i >= 0; i--)
    if (!strcmp(args->flags.v[i].name, name))
      return args->flags.v[i].value;
  return NULL;
}

int sw_cli_print(struct sw_job *job, const char *text, size_t len)
{
  if (fwrite(text, 1, len, stdout) != len || fflush(stdout))
    return sw_rc_exit(sw_fail(job, SW_IO, "stdout can't be written"));
  return 0;
}

enum sw_rc sw_cli_read(struct sw_job *job, const char *path, const char **bytes, size_t *len)
{
  return sw_file_read(job, path, (size_t)SW_MAX_INPUT_MB << 20, bytes, len);
}
